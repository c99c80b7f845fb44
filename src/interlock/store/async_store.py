"""The store: the verbs, asynchronously. They are those of `Store`, each awaited.

async with interlock.open_async("postgresql://db.example/orders") as store:
    order = await store.instantiate(declaration)
    await store.fire(order, "submit")
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from interlock.core.entry import Entry
from interlock.core.rejection import Rejected, StorageFailure
from interlock.core.text import LIMITS, Limits
from interlock.store.attempt import Attempt, Birth, Fire
from interlock.store.dumpfile import Counts
from interlock.store.face import Face, answer, utc_now
from interlock.store.group import GoAlone
from interlock.store.group_async import AsyncGroup, handed_over
from interlock.store.plan import Procedure, T
from interlock.store.read import Instance
from interlock.store.restore import Restored
from interlock.store.run_async import RunsAsync, run_async
from interlock.store.store import Database, Store
from interlock.store.transfer import Page
from interlock.store.url import open_async_database
from interlock.store.verify import Finding, Report
from interlock.store.writer import Answered, Planner


class AsyncDatabase(Protocol):
    """What an asynchronous store needs of a database; see `store.store.Database`.

    Attributes:
        bound: seconds after which a call that was handed over is answered at the latest.
        blocking: the same database, for work in a thread.
    """

    bound: float

    @property
    def shared(self) -> bool: ...

    @property
    def together(self) -> bool: ...

    @property
    def patience(self) -> float: ...

    @property
    def blocking(self) -> Database: ...

    async def open(self) -> None: ...

    async def run(self, transaction: Any) -> Any: ...

    def check_writable(self) -> None: ...

    def join(self, connection: Any) -> AbstractAsyncContextManager[RunsAsync]: ...

    async def close(self) -> None: ...


def open_async(
    url: str,
    *,
    tenant: str = "",
    schema: str | None = None,
    limits: Limits = LIMITS,
    clock: Callable[[], datetime] = utc_now,
) -> "AsyncStore":
    """Open a store for the tasks of an event loop: `async with`, or await it and `close` it.

    Args:
        url, tenant, schema, limits, clock: those of `interlock.open`.

    Raises:
        InvalidRequest: the URL is not that of a store, or the tenant or schema is no name.
        StorageFailure: once it is entered or awaited, as `interlock.open` would.
    """
    database = open_async_database(url, tenant, schema, limits)
    return AsyncStore(database, tenant=tenant, limits=limits, clock=clock)


class AsyncStore(Face):
    """An open store, for the tasks of one event loop. Every verb is that of `Store`, awaited.

    Calls of several tasks that wait at the same time are committed together. A task that is
    cancelled while its call waits for its turn withdraws it, and it never happens. Once the call
    was handed over it stands: the cancelled task waits for the outcome, which a note on its
    `CancelledError` tells. What was not entered or awaited refuses every call, kind `closed`.
    """

    def __init__(
        self,
        database: AsyncDatabase,
        *,
        tenant: str = "",
        limits: Limits = LIMITS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        shared, patience = database.shared, database.patience
        super().__init__(
            tenant=tenant, limits=limits, clock=clock, shared=shared, patience=patience
        )
        self._database = database
        self._loop: asyncio.AbstractEventLoop | None = None  # while it is open
        self._closed = False
        self._turn = asyncio.Lock()  # to open or close
        self._fires = self._grouped(self._fire_planner)
        self._births = self._grouped(self._birth_planner)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open(self) -> Self:
        async with self._turn:
            if self._closed:
                raise StorageFailure("the store was closed; open another", kind="closed")
            if self._loop is None:
                await self._database.open()
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Close the store; what was committed stays. Closing twice is fine."""
        async with self._turn:
            self._closed = True
            if self._loop is not None:
                await self._database.close()

    async def instantiate(
        self,
        declaration: Mapping[str, Any],
        actor_ref: str | None = None,
        subject_ref: str | None = None,
        instance_metadata: Any = None,
        instantiated_at: datetime | str | None = None,
        *,
        idempotency_key: str | None = None,
        connection: Any = None,
    ) -> str:
        """See `Store.instantiate`."""
        declared = self._declare(declaration)
        birth = Birth(actor_ref, subject_ref, instance_metadata, instantiated_at, idempotency_key)
        return await self._submit(self._births, self._prepare_birth(declared, birth), connection)

    async def fire(
        self,
        id: str,
        action: str,
        actor_ref: str | None = None,
        guard_satisfied: bool | None = None,
        fired_at: datetime | str | None = None,
        *,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        reason: str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
        worker_id: str | None = None,
        connection: Any = None,
    ) -> str:
        """See `Store.fire`."""
        attempt = self._prepare_fire(
            id,
            action,
            actor_ref,
            guard_satisfied,
            fired_at,
            expected_version,
            idempotency_key,
            reason,
            correlation_id,
            causation_id,
            worker_id,
        )
        return await self._submit(self._fires, attempt, connection)

    async def current(self, id: str, *, connection: Any = None) -> str:
        """See `Store.current`."""
        return await self._run(self._current(id), connection)

    async def history(
        self, id: str, query: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> list[Entry]:
        """See `Store.history`."""
        return await self._run(self._history(id, query), connection)

    async def read_declaration(self, id: str, *, connection: Any = None) -> dict[str, Any]:
        """See `Store.read_declaration`."""
        return await self._run(self._read_declaration(id), connection)

    async def fire_many(self, fires: Iterable[Fire], *, connection: Any = None) -> list[str]:
        """See `Store.fire_many`."""
        return await self._write(self._fire_many(fires, joins=connection is not None), connection)

    async def fire_each(
        self, fires: Iterable[Fire], *, halting: bool = False
    ) -> list[str | Rejected | None]:
        """See `Store.fire_each`."""
        return await self._write(self._fire_each(fires, halting))

    async def instantiate_each(
        self, declaration: Mapping[str, Any], births: Iterable[Birth]
    ) -> list[str | Rejected]:
        """See `Store.instantiate_each`."""
        return await self._write(self._instantiate_each(declaration, births))

    async def instances(
        self,
        *,
        state: str | None = None,
        subject_ref: str | None = None,
        definition: str | Mapping[str, Any] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Instance]:
        """See `Store.instances`."""
        return await self._run(self._instances(state, subject_ref, definition, limit, after))

    async def snapshot(
        self,
        id: str,
        *,
        at_sequence: int | None = None,
        at: datetime | str | None = None,
        connection: Any = None,
    ) -> Instance:
        """See `Store.snapshot`."""
        return await self._run(self._snapshot(id, at_sequence, at), connection)

    async def verify(
        self,
        id: str | None = None,
        *,
        since: Path | str | None = None,
        report: Path | str | TextIO | None = None,
        on_finding: Callable[[Finding], None] | None = None,
        on_page: Callable[[int], None] | None = None,
    ) -> Report:
        """See `Store.verify`. It runs in a thread, and tells its listeners there."""
        return await self._in_thread(
            lambda store: store.verify(
                id, since=since, report=report, on_finding=on_finding, on_page=on_page
            )
        )

    async def dump(
        self,
        target: Path | str | TextIO,
        ids: Iterable[str] | None = None,
        *,
        on_page: Callable[[Page], object] | None = None,
    ) -> Counts:
        """See `Store.dump`. It runs in a thread, and tells its listener there."""
        return await self._in_thread(lambda store: store.dump(target, ids, on_page=on_page))

    async def restore(
        self,
        source: Path | str | TextIO,
        *,
        on_page: Callable[[Page], object] | None = None,
    ) -> Restored:
        """See `Store.restore`. It runs in a thread, and tells its listener there."""
        return await self._in_thread(lambda store: store.restore(source, on_page=on_page))

    async def _in_thread(self, work: Callable[[Store], T]) -> T:
        """Do what takes long with a synchronous store on the same database."""
        self._check_opened()
        tenant, limits, clock = self._tenant, self._limits, self._clock

        def do() -> T:
            return work(Store(self._database.blocking, tenant=tenant, limits=limits, clock=clock))

        return await asyncio.to_thread(do)

    def _check_opened(self) -> None:
        if self._loop is None:
            what = "the store is not open yet: `async with interlock.open_async(…)`, or await it"
            raise StorageFailure(what, kind="closed")
        if asyncio.get_running_loop() is not self._loop:
            what = "the store was opened in another event loop; open one in each"
            raise StorageFailure(what, kind="closed")

    async def _run(self, procedure: Procedure[T], connection: Any = None) -> T:
        """Drive a procedure, in the transaction of `connection` if there is one."""
        self._check_opened()
        if connection is None:
            return await run_async(self._database, procedure)
        async with self._database.join(connection) as joined:
            return await run_async(joined, procedure)

    async def _write(self, procedure: Procedure[T], connection: Any = None) -> T:
        """Drive a procedure that writes: once it has begun it goes on to its end."""
        if connection is not None:
            return await self._run(procedure, connection)
        self._check_opened()
        self._database.check_writable()
        return await handed_over(run_async(self._database, procedure), self._database.bound)

    def _grouped(self, planner: Planner) -> AsyncGroup[Attempt, Answered]:
        async def commit(attempts: Sequence[Attempt]) -> Sequence[Answered | GoAlone]:
            return await run_async(self._database, self._writer.commit(planner, attempts))

        async def alone(attempt: Attempt, error: BaseException | None) -> Answered:
            return await run_async(self._database, self._writer.alone(planner, attempt, error))

        return AsyncGroup(commit, alone, self._database.bound)

    async def _submit(
        self, group: AsyncGroup[Attempt, Answered], attempt: Attempt, connection: Any
    ) -> str:
        if connection is not None:
            return await self._run(self._joined(attempt), connection)
        self._check_opened()
        self._database.check_writable()
        if self._database.together:
            return answer(await group.submit(attempt))
        return await self._write(self._single(attempt))
