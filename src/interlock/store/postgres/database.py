"""A PostgreSQL database: its pool of connections, and the runner that drives plans on it.

All handles of one process that differ in their tenant alone share one pool. A connection remembers
the tenant it was last set to, and is set anew only for another.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from interlock.core.rejection import StorageFailure
from interlock.store.connection import beneath
from interlock.store.plan import CommitUncertain, Plan, Row, T, Transaction
from interlock.store.postgres.connecting import SET, Bounded, Channel, options, raw_cursor
from interlock.store.postgres.errors import is_lost, translate
from interlock.store.postgres.joined import Joined
from interlock.store.postgres.migrate import prepare, quote_identifier, schema_faults
from interlock.store.postgres.session import Sent, Session, reading, writing
from interlock.store.postgres.settings import Settings
from interlock.store.statements import Query, load_statements

Pool = TypeVar("Pool")

_FILE = Path(__file__).parent / "statements.sql"


@cache
def queries(schema: str) -> dict[str, Query]:
    """Give the statements of the store in a schema."""
    place = f"{quote_identifier(schema)}."
    return {
        name: query._replace(sql=query.sql.replace("$schema.", place))
        for name, query in load_statements(_FILE, "$").items()
    }


class Pools(Generic[Pool]):
    """The pools of this process, each shared by those that asked for one like it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[object, tuple[Pool, int]] = {}

    def take(self, key: object, make: Callable[[], Pool]) -> Pool:
        """Give the pool of a key, made when it is first asked for."""
        with self._lock:
            pool, users = self._pools.get(key) or (make(), 0)
            self._pools[key] = (pool, users + 1)
            return pool

    def give_back(self, key: object) -> Pool | None:
        """Give the pool if nobody else uses it, for closing."""
        with self._lock:
            pool, users = self._pools.pop(key)
            if users == 1:
                return pool
            self._pools[key] = (pool, users - 1)
            return None


class Base:
    """What the synchronous and the asynchronous database share."""

    shared = True
    lanes = int(__import__("os").environ.get("LANES", "1"))
    least, beyond = "\x01", "\U0010ffff" * 300  # of the characters, which NUL is none of

    def __init__(self, settings: Settings, tenant: str) -> None:
        self.settings = settings
        self.where = settings.where
        self.together = settings.together
        self.patience = settings.away_ms / 1000
        self.tenant = tenant
        self.statements = queries(settings.schema)
        self._closed = False
        self._process = os.getpid()
        self._altered = ""
        self.identity: Row | None = None

    def check_writable(self) -> None:
        """Refuse to write where that cannot be.

        Raises:
            StorageFailure: it was closed, opened to read only or before a fork, or its schema was
                altered.
        """
        self._check_usable()
        if self.settings.read_only:
            what = "was opened read-only (mode=ro)"
            raise StorageFailure(f"{self.where} {what}", kind="read-only")
        if self._altered:
            what = f"the schema was altered: {self._altered}; nothing is written; run `verify`"
            raise StorageFailure(f"{self.where}: {what}", kind="damaged")

    def _check_usable(self) -> None:
        if self._closed:
            raise StorageFailure(f"{self.where} is closed", kind="closed")
        if self._process != os.getpid():
            what = "was opened before a fork; open it in the process that uses it"
            raise StorageFailure(f"{self.where} {what}", kind="closed")

    def _session(self, transaction: Transaction) -> Session[Any]:
        if transaction.writes:
            return writing(self.statements, transaction.make(), holds=transaction.holds)
        return reading(self.statements, transaction.make())

    def _failed(self, error: psycopg.Error, sent: Sent | None) -> Exception:
        """Say what an error means for what was being sent."""
        failure = translate(error, self.where)
        if sent is not None and sent.commits and is_lost(error):
            return CommitUncertain(failure, None, lost=True)
        return failure

    def _no_connection(self, error: Exception, pool: Any) -> StorageFailure:
        """Say why the pool gave none."""
        if pool.get_stats().get("pool_size", 0) and not self._closed:
            what = f"all {self.settings.pool_max} connections were in use"
            return StorageFailure(f"{self.where}: {what}", kind="busy", retryable=True)
        what = f"the server cannot be reached ({error})"
        return StorageFailure(f"{self.where}: {what}", kind="unreachable", retryable=True)


_pools: Pools[ConnectionPool[Bounded]] = Pools()


class Database(Base):
    """An open database. Safe to share between threads; not across a fork, which is refused."""

    def __init__(self, settings: Settings, tenant: str = "") -> None:
        """Connect, and make or migrate the store.

        Raises:
            StorageFailure: there is no store, it is newer, or cannot be reached or made.
        """
        super().__init__(settings, tenant)
        self._prepare()
        self._key = (self._process, settings)
        self._pool = _pools.take(self._key, self._make_pool)
        self._pool.open()  # which does nothing when it is open

    def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction.

        Raises:
            StorageFailure: nothing was written.
            CommitUncertain: what was sent last may have been committed, or may yet be.
        """
        with self._connection() as connection:
            connection.answer_within = self._bound
            return self._drive(connection, self._session(transaction))

    def read(self, plan: Plan[T], *, lenient: bool = False) -> T:  # noqa: ARG002 - text is text
        """Drive a reading plan on one snapshot of the database, however long it takes."""
        with self._connection() as connection:
            connection.answer_within = None
            return self._drive(connection, reading(self.statements, plan))

    def schema_faults(self) -> list[str]:
        """Say where the schema is not the one that the migrations make."""
        with self._connection() as connection:
            return _follow(connection, schema_faults(self.settings.schema))

    def damage(self) -> list[str]:
        """Say where the database contradicts itself: PostgreSQL has tools of its own for that."""
        return []

    @contextmanager
    def join(self, connection: Any) -> Iterator[Joined]:
        """Give the runner of a transaction of the caller's, for one call.

        Raises:
            InvalidRequest: the connection is not to this database, or cannot be joined.
        """
        self._check_usable()
        with beneath(connection) as driver:
            yield Joined(driver, self, self._identify)

    def close(self) -> None:
        """Close what no other handle uses; what was committed stays. Closing twice is fine."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        pool = _pools.give_back(self._key)
        if pool is not None:
            pool.close()

    @property
    def _bound(self) -> float:
        return (self.settings.busy_ms + self.settings.away_ms) / 1000

    def _prepare(self) -> None:
        """Find the store or make it, on a connection of its own: its failure is told at once."""
        settings = self.settings
        create = settings.create and not settings.read_only
        try:
            with Bounded.connect(settings.conninfo, **options(settings)) as connection:
                _configure(connection, settings)
                _follow(connection, prepare(settings.schema, create=create))
                self._altered = next(iter(_follow(connection, schema_faults(settings.schema))), "")
        except psycopg.Error as error:
            raise translate(error, self.where) from error

    def _make_pool(self) -> ConnectionPool[Bounded]:
        settings = self.settings
        return ConnectionPool(
            settings.conninfo,
            connection_class=Bounded,
            kwargs=options(settings),
            min_size=1,
            max_size=settings.pool_max,
            timeout=self.patience,
            configure=lambda connection: _configure(connection, settings),
            open=False,
            name="interlock",
        )

    def _identify(self) -> Row:
        with self._connection() as connection:
            cursor = raw_cursor(connection).execute(self.statements["identify"].sql)
            found: Row = cursor.fetchone()
            return found

    @contextmanager
    def _connection(self) -> Iterator[Bounded]:
        """Give a connection, set to the tenant."""
        self._check_usable()
        try:
            connection = self._pool.getconn()
        except PoolTimeout as error:
            raise self._no_connection(error, self._pool) from error
        except psycopg.Error as error:  # closed meanwhile
            raise translate(error, self.where) from error
        try:
            if connection.tenant != self.tenant:
                self._set_tenant(connection)
            yield connection
        finally:
            if connection.info.transaction_status not in (IDLE, GONE):
                with suppress(psycopg.Error):
                    connection.roll_back()
            self._pool.putconn(connection)

    def _set_tenant(self, connection: Bounded) -> None:
        try:
            raw_cursor(connection).execute(SET, ("interlock.tenant", self.tenant))
        except psycopg.Error as error:
            raise translate(error, self.where) from error
        connection.tenant = self.tenant

    def _drive(self, connection: Bounded, session: Session[T]) -> T:
        sent = None
        try:
            sent = next(session)
            while True:
                sent = session.send(_send(connection, sent))
        except StopIteration as end:
            answer: T = end.value
            return answer
        except psycopg.Error as error:
            raise self._failed(error, sent) from error


IDLE, GONE = TransactionStatus.IDLE, TransactionStatus.UNKNOWN


def _send(connection: Bounded, sent: Sent) -> list[Row]:
    """Send one piece, and give its rows."""
    if len(sent.statements) == 1:
        return connection.send(*sent.statements[0])
    with connection.pipeline():
        cursors = [raw_cursor(connection).execute(query.sql, it) for query, it in sent.statements]
    cursor = cursors[sent.answering]
    rows: list[Row] = cursor.fetchall() if cursor.description else []
    return rows


def _configure(connection: Bounded, settings: Settings) -> None:
    connection.channel = Channel(connection)
    cursor = raw_cursor(connection)
    for name, value in settings.session.items():
        cursor.execute(SET, (name, value))


def _follow(connection: Connection[Any], steps: Generator[Any, list[Row], T]) -> T:
    """Execute statements that depend on one another, each a pair of SQL and parameters."""
    cursor = raw_cursor(connection)
    try:
        sql, parameters = next(steps)
        while True:
            try:
                cursor.execute(sql, parameters)
                rows = cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                sql, parameters = steps.throw(error)
            else:
                sql, parameters = steps.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer
