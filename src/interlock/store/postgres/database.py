"""A PostgreSQL database: its pool of connections, and the runner that drives plans on it.

All handles of one process that differ in their tenant alone share one pool. A connection remembers
the tenant it was last set to, and is set anew only for another.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from interlock.core.rejection import Rejected, StorageFailure
from interlock.store.connection import beneath, check_not_calling
from interlock.store.plan import Call, CommitUncertain, Plan, Row, T, Transaction
from interlock.store.postgres.connecting import (
    Bounded,
    Channel,
    Lending,
    is_open,
    options,
    raw_cursor,
    set_all,
)
from interlock.store.postgres.errors import is_lost, translate, translate_first
from interlock.store.postgres.joined import Joined, call_with
from interlock.store.postgres.migrate import prepare, quote_identifier, quote_literal, schema_faults
from interlock.store.postgres.session import Sent, Session, reading, writing
from interlock.store.postgres.settings import RECONNECT, Settings
from interlock.store.run import follow
from interlock.store.statements import Query, load_statements

P = TypeVar("P")

_FILE = Path(__file__).parent / "statements.sql"

IDLE, GONE = TransactionStatus.IDLE, TransactionStatus.UNKNOWN
LEAST = 0.1  # seconds for an answer, when the time of a call is over


@cache
def queries(schema: str) -> dict[str, Query]:
    """Give the statements of the store in a schema."""
    names = {"$schema.": f"{quote_identifier(schema)}.", "$literal": quote_literal(schema)}

    def place(query: Query) -> Query:
        sql = re.sub(r"\$schema\.|\$literal", lambda found: names[found[0]], query.sql)
        return query._replace(sql=sql)

    return {name: place(query) for name, query in load_statements(_FILE, "$").items()}


class Pools(Generic[P]):
    """The pools of this process, each shared by those that asked for one like it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[object, tuple[P, int]] = {}

    def take(self, key: object, make: Callable[[], P]) -> P:
        """Give the pool of a key, made when it is first asked for."""
        with self._lock:
            pool, users = self._pools.get(key) or (make(), 0)
            self._pools[key] = (pool, users + 1)
            return pool

    def give_back(self, key: object) -> P | None:
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
    least, beyond = "\x01", "\U0010ffff" * 300  # of the characters, which NUL is none of

    def __init__(self, settings: Settings, tenant: str) -> None:
        self.settings = settings
        self.where = settings.where
        self.together = settings.together
        self.patience = settings.away_ms / 1000
        self.bound = settings.bound
        self.tenant = tenant
        self.statements = queries(settings.schema)
        self._closed = False
        self._process = os.getpid()
        self._altered = ""
        self.identity: Row | None = None

    def check_writable(self, *, joins: bool = False) -> None:
        """Refuse to write where that cannot be.

        Args:
            joins: in a transaction of the caller's, which may be the one that a hook is called in.

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
        if not joins:
            check_not_calling(self, self.where)

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

    def _failed(self, error: psycopg.Error, sent: Sent) -> Exception:
        """Say what an error means for what was being sent."""
        erasing = any(query.name.startswith("destroy_payload") for query, _ in sent.statements)
        failure = translate(error, self.where, erasing=erasing)
        if sent.commits and is_lost(error):
            return CommitUncertain(failure, None, lost=True)
        return failure

    def _ends(self, since: float) -> float:
        """Say until when a call has to be answered."""
        return (since or time.monotonic()) + self.bound

    def _answer_within(self, ends: float) -> float:
        """Say how long to wait for an answer.

        Half of the patience is kept for looking elsewhere whether what was sent was executed.
        """
        longest = self.bound - self.patience / 2
        return max(LEAST, min(longest, ends - time.monotonic()))

    def _pooling(self) -> dict[str, Any]:
        """Give what pools of both kinds are made with."""
        settings = self.settings
        return {
            "conninfo": settings.conninfo,
            "kwargs": options(settings),
            "min_size": 1,
            "max_size": settings.pool_max,
            "reconnect_timeout": RECONNECT,
            "open": False,
            "name": "interlock",
        }

    def _no_connection(self, lent: int) -> StorageFailure:
        """Say why the pool gave none."""
        if lent >= self.settings.pool_max:
            what = f"all {self.settings.pool_max} connections were in use"
            return StorageFailure(f"{self.where}: {what}", kind="busy", retryable=True)
        what = f"the server cannot be reached (no connection came about in {self.patience:g} s)"
        return StorageFailure(f"{self.where}: {what}", kind="unreachable", retryable=True)


class Pool(Lending, ConnectionPool[Bounded]):
    """A pool of connections of ours."""


_pools: Pools[Pool] = Pools()


class Database(Base):
    """An open database. Safe to share between threads; not across a fork, which is refused."""

    def __init__(self, settings: Settings, tenant: str = "") -> None:
        """Connect, and make or migrate the store.

        Raises:
            InvalidRequest: the URL has a setting that cannot be.
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
        ends = self._ends(transaction.since)
        with self._connection(ends) as connection:
            return self._drive(connection, self._session(transaction), ends)

    def read(self, plan: Plan[T], *, lenient: bool = False) -> T:  # noqa: ARG002 - text is text
        """Drive a reading plan on one snapshot of the database, however long it takes."""
        with self._connection() as connection:
            connection.answer_within = None
            return self._drive(connection, reading(self.statements, plan), None)

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
            raise translate_first(error, self.where) from error

    def _make_pool(self) -> Pool:
        configure = partial(_configure, settings=self.settings)
        return Pool(connection_class=Bounded, configure=configure, **self._pooling())

    def _identify(self) -> Row:
        with self._connection() as connection:
            cursor = raw_cursor(connection).execute(self.statements["identify"].sql)
            found: Row = cursor.fetchone()
            return found

    @contextmanager
    def _connection(self, ends: float = 0.0) -> Iterator[Bounded]:
        """Give a connection, set to the tenant.

        Args:
            ends: when the call is over; 0 for the bound from now.
        """
        ends = ends or self._ends(0.0)
        token = object()
        connection = self._take(ends)
        try:
            self._pool.lent.add(token)
            connection.answer_within = self._answer_within(ends)
            if connection.tenant != self.tenant:
                self._set_tenant(connection)
            yield connection
        except (psycopg.Error, Rejected, CommitUncertain):
            raise
        except BaseException:  # at any moment: what it left half done nobody knows
            connection.close()
            raise
        finally:
            if connection.info.transaction_status not in (IDLE, GONE):
                connection.answer_within = RECONNECT
                with suppress(psycopg.Error):
                    connection.roll_back()
            connection.used_at = time.monotonic()
            self._pool.putconn(connection)
            self._pool.lent.discard(token)  # only now: the next may have it already

    def _take(self, ends: float) -> Bounded:
        """Take a connection from the pool; one that the server has ended is put aside."""
        gives_up = min(time.monotonic() + max(self.patience, RECONNECT), ends)
        while True:
            self._check_usable()
            left = gives_up - time.monotonic()
            try:
                connection = self._pool.getconn(max(LEAST, min(RECONNECT, left)))
            except PoolTimeout as error:
                if left > RECONNECT:
                    continue
                raise self._no_connection(len(self._pool.lent)) from error
            except psycopg.Error as error:  # closed meanwhile
                raise translate(error, self.where) from error
            if is_open(connection):
                return connection
            self._pool.putconn(connection)

    def _set_tenant(self, connection: Bounded) -> None:
        try:
            raw_cursor(connection).execute(*set_all({"interlock.tenant": self.tenant}))
        except psycopg.Error as error:
            raise translate(error, self.where) from error
        connection.tenant = self.tenant

    def _drive(self, connection: Bounded, session: Session[T], ends: float | None) -> T:
        def execute(sent: Sent | Call) -> Any:
            if isinstance(sent, Call):
                return call_with(connection, sent, self)
            if ends is not None:
                connection.answer_within = self._answer_within(ends)
            try:
                return _send(connection, sent)
            except psycopg.Error as error:
                raise self._failed(error, sent) from error

        return follow(session, execute)


def _send(connection: Bounded, sent: Sent) -> list[Row]:
    """Send one piece, and give its rows."""
    return connection.send(sent)


def _configure(connection: Bounded, settings: Settings) -> None:
    connection.answer_within = settings.bound
    connection.channel = Channel(connection)
    raw_cursor(connection).execute(*set_all(settings.session))


def _follow(connection: Connection[Any], steps: Generator[Any, list[Row], T]) -> T:
    """Execute statements that depend on one another, each a pair of SQL and parameters."""
    cursor = raw_cursor(connection)

    def execute(step: tuple[str, Any]) -> list[Row]:
        cursor.execute(*step)
        rows: list[Row] = cursor.fetchall() if cursor.description else []
        return rows

    return follow(steps, execute)
