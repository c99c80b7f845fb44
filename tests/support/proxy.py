"""A proxy in front of a PostgreSQL server that does to connections what networks do.

It has a thread and an event loop of its own, so that tests need neither. Clients come over TCP; the
server listens on a port or a Unix socket. Faults are set for all connections, and those that wait
for a mark (bytes in what a client sends, such as an actor's name) strike once, where it comes by.

    with Proxy(url) as proxy, interlock.open(proxy.url(away_ms=1500)) as store:
        proxy.lose_answer(b"ann")
        store.fire(order, "submit", "ann")    # executed; then the connection is cut
        late = proxy.hold(b"bob")             # what follows is kept back, connection and all
        store.fire(order, "pay", "bob")
        late.deliver()                        # and comes after all
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

T = TypeVar("T")

CHUNK = 1 << 16
READY = b"Z\x00\x00\x00\x05"  # the server's "ready for query", but for its last byte


class Fault:
    """What happens to the connection by which a mark comes.

    Attributes:
        then_refuses: every connection is cut with it, and every new one.
        met: the mark has come by.
        over: what happens then has happened: the connection is cut, the answer is lost.
    """

    def __init__(self, proxy: "Proxy", mark: bytes, act: str, then_refuses: bool) -> None:
        self.mark, self.act, self.then_refuses = mark, act, then_refuses
        self.met, self.over = threading.Event(), threading.Event()
        self._proxy = proxy
        self.link: _Link | None = None

    def deliver(self) -> None:
        """Let the server have what was held, and wait for its answer, which nobody gets."""
        assert self.met.wait(30), f"{self.mark!r} did not come by"
        assert self.link is not None
        self._proxy.do(self.link.deliver)


class _Link:
    """A client's connection and the server's that belongs to it."""

    def __init__(self, proxy: "Proxy", client: Any, server: Any) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._held: bytearray | None = None
        self._mute = False
        self._fault: Fault | None = None
        self._last = b""
        self._answered = asyncio.Event()

    async def run(self) -> None:
        tasks = [asyncio.create_task(way()) for way in (self._up, self._down)]
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in (self._to_client, self._to_server):
            writer.close()

    async def _up(self) -> None:
        """Pass on what the client sends."""
        with suppress(OSError):
            while data := await self._from_client.read(CHUNK):
                await self._proxy.hinder("up")
                if self._held is not None:
                    self._held += data
                    continue
                fault = self._proxy.strike(self._last + data)
                self._last = data[-64:]  # a mark may be torn
                if fault and not self._suffer(fault, data):
                    continue
                if not self._proxy.count("up", data, self._to_server):
                    return self.cut()
                await self._to_server.drain()
                if fault and fault.act == "cut-after":
                    return self._end(fault)
        await self._proxy.hinder("up")
        if self._held is None:
            self._to_server.close()

    def _suffer(self, fault: Fault, data: bytes) -> bool:
        """Say whether the bytes with the mark go on."""
        self._fault, fault.link = fault, self
        if fault.act == "hold":
            self._held = bytearray(data)
        self._answered.clear()
        self._mute = fault.act in ("hold", "lose", "lose-silently")
        fault.met.set()
        if fault.act == "cut-before":
            self._end(fault)
        return fault.act not in ("hold", "cut-before")

    async def _down(self) -> None:
        """Pass on what the server answers."""
        with suppress(OSError):
            while data := await self._from_server.read(CHUNK):
                if READY in data[-6:]:
                    self._answered.set()
                if self._mute:
                    fault = self._fault
                    if fault and self._answered.is_set():
                        if fault.act == "lose":
                            return self._end(fault)
                        fault.over.set()
                    continue
                await self._proxy.hinder("down")
                if not self._proxy.count("down", data, self._to_client):
                    return self.cut()
                await self._to_client.drain()
        self._answered.set()
        await self._proxy.hinder("down")
        if not self._mute:
            self._to_client.close()

    def _end(self, fault: Fault) -> None:
        self.cut()
        if fault.then_refuses:
            self._proxy.refuse_new()
            self._proxy.cut_all()
        fault.over.set()

    async def deliver(self) -> None:
        assert self._held is not None
        self._answered.clear()
        with suppress(OSError):
            self._to_server.write(bytes(self._held))
            await asyncio.wait_for(self._answered.wait(), 30)
        self.cut()

    def cut(self) -> None:
        """Reset both connections."""
        for writer in (self._to_client, self._to_server):
            found = writer.get_extra_info("socket")
            if found is not None and found.family != socket.AF_UNIX:
                with suppress(OSError):
                    linger = struct.pack("ii", 1, 0)
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()


class Proxy:
    """A proxy that is listening while it is entered.

    Args:
        target: the URI of the server's database.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        told = conninfo_to_dict(target)
        self._host, self._port_there = str(told.get("host")), int(told.get("port") or 5432)
        self._links: set[_Link] = set()
        self._faults: list[Fault] = []
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._latency = {"up": 0.0, "down": 0.0}
        self._left: dict[str, int | None] = {"up": None, "down": None}
        self._refuses = False
        self._swallowing: tuple[str, int] | None = None
        self.passed = {"up": 0, "down": 0}
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        self.do(self._listen)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, **settings: object) -> str:
        """Give the URL of the database by way of the proxy."""
        parts = urlsplit(self._target)
        login = parts.netloc.rpartition("@")[0]
        place = parts._replace(netloc=f"{login}@127.0.0.1:{self._port}", query=urlencode(settings))
        return urlunsplit(place)

    def lose_answer(
        self, mark: bytes, *, silently: bool = False, then_refuses: bool = False
    ) -> Fault:
        """Have what comes with the mark executed, and cut the connection before its answer.

        Args:
            silently: do not cut it: no answer ever comes by it again.
        """
        return self._await(mark, "lose-silently" if silently else "lose", then_refuses)

    def cut_before(self, mark: bytes, *, then_refuses: bool = False) -> Fault:
        """Cut the connection when the mark comes; the server does not get it."""
        return self._await(mark, "cut-before", then_refuses)

    def cut_after(self, mark: bytes) -> Fault:
        """Cut the connection when the mark was passed on, executed or not."""
        return self._await(mark, "cut-after")

    def hold(self, mark: bytes) -> Fault:
        """Keep back what comes with the mark and after it, until it is delivered."""
        return self._await(mark, "hold")

    def cut_at(self, way: str, count: int) -> None:
        """Cut the connection that carries byte `count` from now, `up` or `down`, before it."""
        self._left[way] = count

    def slow(self, *, up: float = 0.0, down: float = 0.0) -> None:
        """Delay all that is passed on, by so many seconds."""
        self._latency = {"up": up, "down": down}

    def black_hole(self) -> None:
        """Pass nothing on and close nothing, until healed; new connections are taken up."""
        self._loop.call_soon_threadsafe(self._open.clear)
        self.do(self._settle)

    def refuse(self) -> None:
        """Cut all connections, and every new one."""
        self.refuse_new()
        self.cut()

    def refuse_new(self) -> None:
        """Cut every new connection."""
        self._refuses = True

    def swallow_at(self, way: str, count: int) -> None:
        """Be a black hole from byte `count` from now, `up` or `down`."""
        self._swallowing = (way, self.passed[way] + count)

    def cut(self) -> None:
        """Cut all connections."""
        self.do(self._cut)

    def cut_all(self) -> None:
        """The same, in the proxy's own thread."""
        for link in list(self._links):
            link.cut()

    def heal(self) -> None:
        """Be a good network again; what a black hole kept comes through, late."""
        self._faults.clear()
        self._latency = {"up": 0.0, "down": 0.0}
        self._left = {"up": None, "down": None}
        self._refuses = False
        self._swallowing = None
        self._loop.call_soon_threadsafe(self._open.set)
        self.do(self._settle)

    def do(self, what: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the proxy's thread."""
        return asyncio.run_coroutine_threadsafe(what(), self._loop).result(60)

    async def hinder(self, way: str) -> None:
        """Delay what goes that way as long as it has to be."""
        if self._latency[way]:
            await asyncio.sleep(self._latency[way])
        if self._swallowing and self.passed[self._swallowing[0]] >= self._swallowing[1]:
            self._open.clear()
        await self._open.wait()

    def strike(self, data: bytes) -> Fault | None:
        """Give the fault whose mark is in what a client sends, if any; it strikes once."""
        for fault in self._faults:
            if fault.mark in data:
                self._faults.remove(fault)
                return fault
        return None

    def count(self, way: str, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Pass data on as far as it may go; say whether that is all of it."""
        left = self._left[way]
        going = data if left is None else data[:left]
        self.passed[way] += len(going)
        writer.write(going)
        if left is None or len(data) < left:
            self._left[way] = None if left is None else left - len(data)
            return True
        self._left[way] = None
        return False

    def _await(self, mark: bytes, act: str, then_refuses: bool = False) -> Fault:
        fault = Fault(self, mark, act, then_refuses)
        self._faults.append(fault)
        return fault

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await self._open.wait()
        client = (reader, writer)
        link = _Link(self, client, client)
        if self._refuses:
            return link.cut()
        try:
            link = _Link(self, client, await self._connect())
        except OSError:
            return link.cut()
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    async def _connect(self) -> Any:
        if self._host.startswith("/"):
            path = f"{self._host}/.s.PGSQL.{self._port_there}"
            return await asyncio.open_unix_connection(path)
        return await asyncio.open_connection(self._host, self._port_there)

    async def _cut(self) -> None:
        self.cut_all()

    async def _settle(self) -> None:
        await asyncio.sleep(0)

    async def _end(self) -> None:
        self._open.set()
        self._refuses = True
        self._server.close()
        ends = self._loop.time() + 10
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            assert self._loop.time() < ends, others
            self.cut_all()
            await asyncio.wait(others, timeout=0.1)
        await asyncio.sleep(0.01)  # in which what was cut is closed
