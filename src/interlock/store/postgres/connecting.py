"""Connections of ours: they never wait for an answer without end, and know their tenant."""

import math
import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg._preparing import PrepareManager
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, OperationalError
from psycopg.generators import execute, fetch_many
from psycopg.generators import send as flush
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from interlock.store.plan import Row
from interlock.store.postgres.session import Bound, Sent, check_written
from interlock.store.postgres.settings import Settings
from interlock.store.statements import Query

CONNECT_SECONDS = 10
#: Seconds that a connection may lie idle without being looked at: looking costs a system call.
FRESH = 0.05
#: Seconds for a server that is asked to cut a statement off to do so, and as many to say so.
LAST_WORD = 0.25

_WORDS_MAX = 4  # the server's last word, and its end; a talkative server is alive
_WRONG = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE, ExecStatus.NONFATAL_ERROR)


class Channel:
    """What a connection of ours keeps from one statement to the next.

    A cursor of psycopg learns anew for each statement how to dump its parameters, and a fire has
    twenty; so what was learnt is kept here, and a statement is prepared under the name that it has
    in the store.
    """

    def __init__(self, connection: "Bounded | AsyncBounded") -> None:
        self._connection = connection
        self._preparing = connection._prepared = Preparing()
        self._pgconn = connection.pgconn
        self._prepared: dict[str, bytes] = {}  # what each statement is called on the server
        self._count = 0  # of all that was ever prepared: no name is given twice
        self._transformer = Transformer(connection)
        self._transformer.adapters.register_dumper(int, Int8Dumper)
        self._transformer.adapters.register_dumper(int, Int8BinaryDumper)

    def send(self, sent: Sent) -> PQGen[list[Row]]:
        """Execute statements in one round trip, and give the rows of the one that answers.

        Each is prepared when it is first sent, and beforehand: what follows one that fails is not
        executed, and a pipeline of psycopg's own would take for prepared what was not looked at.
        """
        for query, _ in sent.statements:
            if query.name not in self._prepared:
                yield from self._prepare(query)
        results = yield from self._results(sent.statements)
        try:
            checked = [_checked(result) for result in results]
            for (query, parameters), result in zip(sent.statements, checked, strict=True):
                if query.changes:
                    check_written(query, parameters, result.command_tuples)
        except (FeatureNotSupported, InvalidSqlStatementName):
            # A column is of another type than when it was prepared, or a hook has let all go.
            self._prepared.clear()
            raise
        return self._rows(checked[sent.answering])

    def _results(self, statements: Sequence[Bound]) -> PQGen[list[list[PGresult]]]:
        """Execute what is prepared, and give what came back for each statement."""
        pgconn = self._pgconn
        if len(statements) == 1:
            self._begin(*statements[0])
            return [(yield from execute(pgconn))]
        pgconn.enter_pipeline_mode()
        for query, parameters in statements:
            self._begin(query, parameters)
        pgconn.pipeline_sync()
        yield from flush(pgconn)
        answers = []
        for _ in statements:
            answers.append((yield from fetch_many(pgconn)))
        yield from fetch_many(pgconn)  # where the pipeline ends
        pgconn.exit_pipeline_mode()
        return answers

    def _prepare(self, query: Query) -> PQGen[None]:
        self._count += 1
        name = f"{query.name} {self._count}".encode()
        self._pgconn.send_prepare(name, query.sql.encode())
        _checked((yield from execute(self._pgconn)))
        self._prepared[query.name] = name

    def _begin(self, query: Query, parameters: Sequence[Any]) -> None:
        transformer = self._transformer
        # Arrays are dumped, and read by the server, in half the time when they are binary.
        format = PyFormat.BINARY if query.name.endswith("/many") else PyFormat.AUTO
        dumped = transformer.dump_sequence(parameters, [format] * len(parameters))
        name = self._prepared[query.name]
        self._pgconn.send_query_prepared(name, dumped, transformer.formats)

    def _rows(self, result: PGresult) -> list[Row]:
        if not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def roll_back(self) -> PQGen[None]:
        """End a transaction without its effects.

        Past psycopg, which would then have the server forget every statement that was prepared.
        What it prepared itself is let go, as it would be: that may be why the transaction failed.
        """
        self._pgconn.send_query(b"ROLLBACK")
        _checked((yield from execute(self._pgconn)))
        self._preparing.clear()
        yield from self._preparing.maintain_gen(self._connection)


class Preparing(PrepareManager):
    """What psycopg prepares on a connection of ours, which is what hooks send often.

    After a rollback it would have the server forget every statement that was prepared, those of the
    channel with them; here it lets go its own.
    """

    def clear(self) -> bool:
        names = [*self._names.values()]
        self._counts.clear()
        self._names.clear()
        self._to_flush.extend(names)
        return bool(names)


class Lending:
    """A pool that knows how many of its connections are in use.

    Attributes:
        lent: a token for each of them.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        self.lent: set[object] = set()
        super().__init__(*given, **more)


class Bounded(Connection[Any]):
    """A connection that gives the server up once it has not answered for `answer_within` seconds.

    The server is asked to cut the statement off, and if it answers, nothing is in doubt. If it does
    not, and after an answer that was cut off, the connection is closed.

    Attributes:
        tenant: what the session is set to.
        used_at: when a call was done with it, by `time.monotonic()`.
    """

    answer_within: float | None = CONNECT_SECONDS
    tenant = ""
    used_at = 0.0
    channel: Channel

    def send(self, sent: Sent) -> list[Row]:
        """Execute statements in one round trip, and give the rows of the one that answers."""
        with self.lock:
            rows: list[Row] = self.wait(self.channel.send(sent))
            return rows

    def roll_back(self) -> None:
        """End a transaction without its effects."""
        with self.lock:
            self.wait(self.channel.roll_back())

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, timeout or self.answer_within)
        except psycopg.errors._WaitTimeout as error:
            try:
                self.cancel_safe(timeout=LAST_WORD)
            except psycopg.OperationalError:
                raise _given_up(self) from error
            try:
                return super().wait(gen, interval, LAST_WORD)
            except psycopg.errors._WaitTimeout:
                raise _given_up(self) from error


class AsyncBounded(AsyncConnection[Any]):
    """The same, without blocking."""

    answer_within: float | None = CONNECT_SECONDS
    tenant = ""
    used_at = 0.0
    channel: Channel

    async def send(self, sent: Sent) -> list[Row]:
        """Execute statements in one round trip, and give the rows of the one that answers."""
        async with self.lock:
            rows: list[Row] = await self.wait(self.channel.send(sent))
            return rows

    async def roll_back(self) -> None:
        """End a transaction without its effects."""
        async with self.lock:
            await self.wait(self.channel.roll_back())

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return await super().wait(gen, interval, timeout or self.answer_within)
        except psycopg.errors._WaitTimeout as error:
            try:
                await self.cancel_safe(timeout=LAST_WORD)
            except psycopg.OperationalError:
                raise _given_up(self) from error
            try:
                return await super().wait(gen, interval, LAST_WORD)
            except psycopg.errors._WaitTimeout:
                raise _given_up(self) from error


def _checked(results: "list[PGresult]") -> "PGresult":
    if not results:
        raise OperationalError("the connection was lost before the answer")
    result = results[0]
    if result.status in _WRONG:
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    return result


def options(settings: Settings) -> dict[str, Any]:
    """Give the arguments of a connection."""
    return {
        "autocommit": True,  # a transaction begins where a plan needs one
        "connect_timeout": max(2, min(CONNECT_SECONDS, math.ceil(settings.away_ms / 1000))),
        "application_name": "interlock",
        "client_encoding": "utf8",
        "keepalives_idle": 30,
        "tcp_user_timeout": settings.away_ms,
    }


def set_all(values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Give the statement that sets a session to values, in one round trip, and its parameters."""
    calls = [f"set_config(${2 * n + 1}, ${2 * n + 2}, false)" for n in range(len(values))]
    return f"SELECT {', '.join(calls)}", [text for pair in values.items() for text in pair]


def raw_cursor(connection: Any, kind: type[Any] = RawCursor) -> Any:
    """Give a cursor for statements of ours on anybody's connection.

    Its parameters are the server's own `$1`, rows are tuples, and every whole number is a bigint: a
    statement that is kept prepared is kept for one set of types.
    """
    cursor = kind(connection, row_factory=tuple_row)
    cursor.adapters.register_dumper(int, Int8Dumper)
    return cursor


def raw_cursor_async(connection: Any) -> Any:
    """Give the asynchronous one."""
    return raw_cursor(connection, AsyncRawCursor)


def is_open(connection: Bounded | AsyncBounded) -> bool:
    """Whether the server has not ended an idle session, as far as its word has come.

    So what is sent on a connection that lay idle while the server went away is never in doubt.
    """
    if time.monotonic() - connection.used_at < FRESH:
        return True
    pgconn = connection.pgconn
    try:
        for _ in range(_WORDS_MAX):
            if not _is_readable(pgconn.socket):
                return True
            pgconn.consume_input()
    except psycopg.OperationalError:
        pgconn.finish()
        return False
    return True


def _is_readable(file: int) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([file], [], [], 0)[0])  # Windows, where no number is too large


def _given_up(connection: Any) -> OperationalError:
    connection.pgconn.finish()
    return OperationalError(f"the server did not answer within {connection.answer_within} s")
