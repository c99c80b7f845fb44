"""An asynchronous store driven from plain threads, so that a test of a store is written once.

with Blocking(lambda: interlock.open_async("sqlite:///batches.db")) as store:
    store.fire(batch, "begin-testing")
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.store.async_store import AsyncStore

T = TypeVar("T")


class Blocking:
    """Every verb of an asynchronous store, synchronously. Safe to share between threads.

    An event loop of its own, in a thread of its own, runs the verbs; those that several threads
    call at once are tasks beside one another. `close` closes the store, and its verbs then say so;
    leaving the `with` block ends the loop as well.

    Args:
        factory: gives the store, not yet opened: a call of `interlock.open_async`.
    """

    def __init__(self, factory: Callable[[], AsyncStore]) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event
        begun = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._live(begun)), name="interlock-blocking", daemon=True
        )
        self._thread.start()
        begun.wait()
        try:
            self._store = self._wait(_opened(factory))
        except BaseException:
            self._end()
            raise

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        method = getattr(self._store, verb)

        def call(*given: Any, **more: Any) -> Any:
            return self._wait(method(*given, **more))

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._wait(self._store.close())
        finally:
            self._end()

    async def _live(self, begun: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        begun.set()
        await self._ended.wait()

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


async def _opened(factory: Callable[[], AsyncStore]) -> AsyncStore:
    return await factory()
