"""A PostgreSQL database for an event loop: no thread waits for the server."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from interlock.store.connection import beneath_async
from interlock.store.plan import Call, Row, T, Transaction
from interlock.store.postgres.connecting import (
    AsyncBounded,
    Channel,
    Lending,
    is_open,
    options,
    raw_cursor_async,
    set_all,
)
from interlock.store.postgres.database import GONE, IDLE, LEAST, Base, Database, Pools
from interlock.store.postgres.errors import translate, translate_first
from interlock.store.postgres.joined import AsyncJoined
from interlock.store.postgres.migrate import prepare, schema_faults
from interlock.store.postgres.session import Sent, Session
from interlock.store.postgres.settings import RECONNECT, Settings
from interlock.store.run_async import follow_async


class AsyncPool(Lending, AsyncConnectionPool[AsyncBounded]):
    """A pool of connections of ours."""


_pools: Pools[AsyncPool] = Pools()


class AsyncDatabase(Base):
    """An open database, for the tasks of one event loop."""

    def __init__(self, settings: Settings, tenant: str = "") -> None:
        super().__init__(settings, tenant)
        self._blocking: Database | None = None
        self._blocking_lock = threading.Lock()

    @property
    def blocking(self) -> Database:
        """The same database for work that takes long, in a thread; connected when first asked."""
        self._check_usable()
        with self._blocking_lock:
            if self._blocking is None:
                self._blocking = Database(self.settings, self.tenant)
            return self._blocking

    async def open(self) -> None:
        """Connect, and make or migrate the store.

        Raises:
            InvalidRequest: the URL has a setting that cannot be.
            StorageFailure: there is no store, it is newer, or cannot be reached or made.
        """
        await self._prepare()
        self._key = (self._process, asyncio.get_running_loop(), self.settings)
        self._pool = _pools.take(self._key, self._make_pool)
        try:
            # Its first connection is waited for: should the loop end while the pool makes one, the
            # pool would take the cancellation for a server that is away, and go on trying.
            if self._pool.closed:
                await self._pool.open(wait=True, timeout=max(self.patience, RECONNECT))
        except PoolTimeout as error:
            await self.close()
            raise self._no_connection(0) from error
        except BaseException:
            await asyncio.shield(self.close())
            raise

    async def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction."""
        ends = self._ends(transaction.since)
        async with self._connection(ends) as connection:
            return await self._drive(connection, self._session(transaction), ends)

    @asynccontextmanager
    async def join(self, connection: Any) -> AsyncIterator[AsyncJoined]:
        """Give the runner of a transaction of the caller's, for one call."""
        self._check_usable()
        async with beneath_async(connection) as driver:
            yield AsyncJoined(driver, self, self._identify)

    async def close(self) -> None:
        """Close what no other handle uses; what was committed stays. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        pool = _pools.give_back(self._key)
        if pool is not None:
            await pool.close()
        if self._blocking is not None:
            await asyncio.to_thread(self._blocking.close)

    async def _prepare(self) -> None:
        settings = self.settings
        create = settings.create and not settings.read_only
        try:
            connection = await AsyncBounded.connect(settings.conninfo, **options(settings))
            async with connection:
                await _configure(connection, settings)
                await _follow(connection, prepare(settings.schema, create=create))
                faults = await _follow(connection, schema_faults(settings.schema))
                self._altered = next(iter(faults), "")
        except psycopg.Error as error:
            raise translate_first(error, self.where) from error

    def _make_pool(self) -> AsyncPool:
        configure = partial(_configure, settings=self.settings)
        return AsyncPool(connection_class=AsyncBounded, configure=configure, **self._pooling())

    async def _identify(self) -> Row:
        async with self._connection() as connection:
            cursor = raw_cursor_async(connection)
            await cursor.execute(self.statements["identify"].sql)
            found: Row = await cursor.fetchone()
            return found

    @asynccontextmanager
    async def _connection(self, ends: float = 0.0) -> AsyncIterator[AsyncBounded]:
        """Give a connection, set to the tenant; see `Database`."""
        ends = ends or self._ends(0.0)
        connection = await self._take(ends)
        token = object()
        self._pool.lent.add(token)
        try:
            connection.answer_within = self._answer_within(ends)
            if connection.tenant != self.tenant:
                await self._set_tenant(connection)
            yield connection
        finally:
            await asyncio.shield(self._give_back(connection, token))

    async def _take(self, ends: float) -> AsyncBounded:
        """Take a connection from the pool; one that the server has ended is put aside."""
        gives_up = min(time.monotonic() + max(self.patience, RECONNECT), ends)
        while True:
            self._check_usable()
            left = gives_up - time.monotonic()
            try:
                connection = await self._pool.getconn(max(LEAST, min(RECONNECT, left)))
            except PoolTimeout as error:
                if left > RECONNECT:
                    continue
                raise self._no_connection(len(self._pool.lent)) from error
            except psycopg.Error as error:  # closed meanwhile
                raise translate(error, self.where) from error
            if is_open(connection):
                return connection
            await self._pool.putconn(connection)

    async def _give_back(self, connection: AsyncBounded, token: object) -> None:
        """Give a connection back to the pool, even if the caller is cancelled a second time."""
        if connection.info.transaction_status not in (IDLE, GONE):
            connection.answer_within = RECONNECT
            with suppress(psycopg.Error):
                await connection.roll_back()
        connection.used_at = time.monotonic()
        await self._pool.putconn(connection)
        self._pool.lent.discard(token)

    async def _set_tenant(self, connection: AsyncBounded) -> None:
        try:
            setting = set_all({"interlock.tenant": self.tenant})
            await raw_cursor_async(connection).execute(*setting)
        except psycopg.Error as error:
            raise translate(error, self.where) from error
        connection.tenant = self.tenant

    async def _drive(self, connection: AsyncBounded, session: Session[T], ends: float) -> T:
        async def execute(sent: Sent | Call) -> Any:
            if isinstance(sent, Call):  # an engine is synchronous
                raise TypeError("a hook is called by a synchronous store")
            connection.answer_within = self._answer_within(ends)
            try:
                return await _send(connection, sent)
            except psycopg.Error as error:
                raise self._failed(error, sent) from error

        return await follow_async(session, execute)


async def _send(connection: AsyncBounded, sent: Sent) -> list[Row]:
    """Send one piece, and give its rows."""
    return await connection.send(sent)


async def _configure(connection: AsyncBounded, settings: Settings) -> None:
    connection.answer_within = settings.bound
    connection.channel = Channel(connection)
    await raw_cursor_async(connection).execute(*set_all(settings.session))


async def _follow(connection: AsyncConnection[Any], steps: Generator[Any, list[Row], T]) -> T:
    """Execute statements that depend on one another, each a pair of SQL and parameters."""
    cursor = raw_cursor_async(connection)

    async def execute(step: tuple[str, Any]) -> list[Row]:
        await cursor.execute(*step)
        rows: list[Row] = await cursor.fetchall() if cursor.description else []
        return rows

    return await follow_async(steps, execute)
