"""A caller's own transaction on PostgreSQL, and the runners that drive plans within it.

Each plan is a savepoint: a refusal undoes what the plan wrote and nothing of the caller's. Whether
the caller commits is the caller's affair. The settings that our statements depend on, and the types
that psycopg makes of values, are ours for the time of a plan and the caller's again afterwards.

What enters and what leaves a plan is one round trip each: several statements, so without
parameters. Their values are written in hexadecimal, which any client encoding can write.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.adapt import AdaptersMap
from psycopg.postgres import register_default_adapters, types
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg.types.numeric import Int8Dumper

from interlock.core.rejection import Rejected
from interlock.store.connection import calling, conflicting, ended, is_in_hand, refused, unusable
from interlock.store.plan import Call, Row, Transaction
from interlock.store.postgres.errors import is_conflict, is_lost, translate
from interlock.store.postgres.session import check_written, joining
from interlock.store.run import follow
from interlock.store.run_async import follow_async
from interlock.store.statements import Query

_HEX = "pg_catalog.encode(pg_catalog.convert_to({}, 'UTF8'), 'hex')"
# `enable_seqscan` as in sessions of ours: plans within triggers are kept, however the tables grow.
# With `row_security` off every statement on a table with policies is an error.
# While a hook is called `interlock.calling` is on; see `session`.
_SETTINGS = (
    "client_encoding",
    "search_path",
    "enable_seqscan",
    "row_security",
    "interlock.tenant",
    "interlock.calling",
)
_GET = "SELECT pg_catalog.current_setting('session_replication_role'), " + ", ".join(
    _HEX.format(f"coalesce(pg_catalog.current_setting('{name}', true), '')") for name in _SETTINGS
)
_ON = b"on".hex()
_UNDO = "ROLLBACK TO SAVEPOINT interlock; RELEASE SAVEPOINT interlock"

AnyConnection: TypeAlias = "Connection[Any] | AsyncConnection[Any]"


class Step(NamedTuple):
    """What a runner is to execute: statements without parameters, or one with them, or a call."""

    sql: str
    parameters: Sequence[Any] | None = None
    query: Query | None = None
    call: Call | None = None

    def check(self, rows: int) -> None:
        """See that it wrote what it was to write."""
        if self.query is not None and self.query.changes:
            check_written(self.query, self.parameters or (), rows)

    @property
    def prepare(self) -> bool | None:
        """Whether psycopg may prepare it, if it ever does: several at once cannot be."""
        return False if self.parameters is None else None


#: A step that is the database's own: to say to which store its connections lead.
IDENTIFY = Step("")

Steps: TypeAlias = Generator[Step, Any, Any]


class Own(Protocol):
    """What is needed of the store's own database.

    Attributes:
        identity: what its connections were last told by `identify`; another after a restart.
    """

    where: str
    identity: Row | None

    @property
    def statements(self) -> Mapping[str, Query]: ...

    @property
    def tenant(self) -> str: ...

    def check_writable(self, *, joins: bool = False) -> None: ...


class Joined:
    """A connection of the caller's, found fit to take part in.

    Args:
        identify: asks a connection of the store's own to which store it leads.

    Raises:
        InvalidRequest: it is closed, in autocommit mode, aborted or in use.
    """

    def __init__(self, connection: Any, own: Own, identify: Callable[[], Row]) -> None:
        if not isinstance(connection, Connection):
            raise unusable(connection, "a synchronous one of psycopg")
        _check(connection)
        self._connection = connection
        self._own = own
        self._identify = identify

    def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction.

        Raises:
            InvalidRequest: the connection leads elsewhere.
            VersionConflict: another transaction was faster.
            StorageFailure: nothing of the plan was written.
        """
        steps = _take_part(self._own, self._connection, transaction)
        return follow(steps, self._execute, BaseException)

    def _execute(self, step: Step) -> Any:
        if step is IDENTIFY:
            return [self._identify()]
        if step.call is not None:
            return call_with(self._connection, step.call, self._own)
        with _Cursor(self._connection, row_factory=tuple_row) as cursor:
            cursor.execute(step.sql, step.parameters, prepare=step.prepare)
            step.check(cursor.rowcount)
            rows = cursor.fetchall() if cursor.description else []
            while cursor.nextset():
                rows += cursor.fetchall() if cursor.description else []
            return rows


class AsyncJoined:
    """The same for an asynchronous connection."""

    def __init__(self, connection: Any, own: Own, identify: Callable[[], Awaitable[Row]]) -> None:
        if not isinstance(connection, AsyncConnection):
            raise unusable(connection, "an asynchronous one of psycopg")
        _check(connection)
        self._connection = connection
        self._own = own
        self._identify = identify

    async def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction."""
        steps = _take_part(self._own, self._connection, transaction)
        return await follow_async(steps, self._execute, BaseException)

    async def _execute(self, step: Step) -> list[Row]:
        if step is IDENTIFY:
            return [await self._identify()]
        if step.call is not None:  # an engine is synchronous
            raise TypeError("a hook is called by a synchronous store")
        async with _AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(step.sql, step.parameters, prepare=step.prepare)
            step.check(cursor.rowcount)
            rows = await cursor.fetchall() if cursor.description else []
            while cursor.nextset():
                rows += await cursor.fetchall() if cursor.description else []
            return rows


def _take_part(own: Own, connection: AnyConnection, transaction: Transaction) -> Steps:
    """Drive a plan as a savepoint of a transaction, which is begun if there is none.

    Then it is also ended again, unless the plan comes to its end.
    """
    if transaction.writes:
        own.check_writable(joins=True)
    open_before = connection.info.transaction_status != TransactionStatus.IDLE
    try:
        kept = yield from _enter(own, connection)
        answer = yield from _drive(own, transaction, kept)
        yield Step(f"SELECT {_set(kept)}; RELEASE SAVEPOINT interlock")
    except BaseException as error:
        # A hook may have ended it.
        if connection.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                yield Step(_UNDO if open_before else "ROLLBACK")
        if isinstance(error, psycopg.Error):
            raise _refusal(error, own) from error
        raise
    return answer


def _enter(own: Own, connection: AnyConnection) -> Generator[Step, list[Row], Sequence[str]]:
    """Make the savepoint, see where it leads, and give the settings to go back to, in hexadecimal.

    Raises:
        InvalidRequest: the connection leads elsewhere, or has its triggers switched off.
    """
    identify = own.statements["identify"].sql
    entering = f"SAVEPOINT interlock; {_GET}; SELECT {_set(_wanted(own))}; {identify}"
    (role, *kept), _, found = yield Step(entering)
    if is_in_hand(own, connection):
        own.identity = found
    if found != own.identity or found[-1] is None:
        (own.identity,) = yield IDENTIFY
        if found != own.identity or found[-1] is None:
            raise refused(f"leads to another database than the store, {own.where}")
    if role != "origin":
        raise refused(f"has `session_replication_role` set to {role}, which keeps triggers off")
    return kept


def _drive(own: Own, transaction: Transaction, kept: Sequence[str]) -> Steps:
    """Drive the plan: each statement is sent as it comes."""
    session = joining(own.statements, transaction.make())
    try:
        sent = next(session)
        while True:
            if isinstance(sent, Call):
                sent = session.send((yield from _called(sent, own, kept)))
                continue
            ((query, parameters),) = sent.statements
            sent = session.send((yield Step(query.sql, parameters, query)))
    except StopIteration as end:
        return end.value


def _called(call: Call, own: Own, kept: Sequence[str]) -> Steps:
    """Call a function with the caller's own settings."""
    yield Step(f"SELECT {_set([*kept[:-1], _ON])}; SAVEPOINT interlock_call")
    answer = yield Step("", call=call)
    yield Step(f"RELEASE SAVEPOINT interlock_call; SELECT {_set(_wanted(own))}")
    return answer


def call_with(connection: Connection[Any], call: Call, own: Own) -> Any:
    """Call a function with a connection, and see that it does not end the transaction.

    Args:
        own: the database of the store.

    Raises:
        StorageFailure: it did, or tried to, and nothing is left of the transaction.
    """
    try:
        with calling(own, connection):
            answer = call.function(connection)
    except Exception as error:
        if connection.info.transaction_status == TransactionStatus.IDLE:
            raise ended(own.where) from error
        raise
    if connection.info.transaction_status == TransactionStatus.IDLE:
        raise ended(own.where)
    return answer


def _wanted(own: Own) -> list[str]:
    values = ("UTF8", "pg_catalog, pg_temp", "off", "on", own.tenant, "off")
    return [text.encode().hex() for text in values]


def _set(values: Sequence[str]) -> str:
    """Write expressions that give settings their values, for this transaction, and tell nothing."""
    return ", ".join(
        f"pg_catalog.set_config('{name}', "
        f"pg_catalog.convert_from(pg_catalog.decode('{value}', 'hex'), 'UTF8'), true) IS NULL"
        for name, value in zip(_SETTINGS, values, strict=True)
    )


def _refusal(error: psycopg.Error, own: Own) -> Rejected:
    """Say what an error means. A row that is in the way was not there when the plan looked."""
    failure = translate(error, own.where)
    if is_conflict(error) or isinstance(error, psycopg.errors.UniqueViolation):
        return conflicting(failure)
    if is_lost(error):
        failure.retryable = False  # not on this connection
    return failure


def _check(connection: AnyConnection) -> None:
    status, closed = connection.info.transaction_status, connection.closed
    if closed or status == TransactionStatus.UNKNOWN:
        raise refused("is closed")
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise refused("is in pipeline mode")
    if status == TransactionStatus.INERROR:
        raise refused("is in a transaction that was aborted and can only be rolled back")
    if status == TransactionStatus.ACTIVE:
        raise refused("is executing a statement")
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise refused("is in autocommit mode and has no transaction open; begin one")


class _Adapters:
    """Psycopg's own types, whichever the caller registered, and every whole number a bigint."""

    connection = None
    adapters = AdaptersMap(types=types)


register_default_adapters(_Adapters())
_Adapters.adapters.register_dumper(int, Int8Dumper)


class _Cursor(RawCursor[TupleRow]):
    adapters = _Adapters.adapters


class _AsyncCursor(AsyncRawCursor[TupleRow]):
    adapters = _Adapters.adapters
