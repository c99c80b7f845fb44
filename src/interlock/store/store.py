"""The store: the verbs, synchronously.

Every verb checks its arguments, drives a procedure, and gives a value or raises a refusal under
`interlock.Rejected`. A state changes only through `fire` and its kin.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from interlock.core.entry import Entry
from interlock.core.rejection import Rejected
from interlock.core.text import LIMITS, Limits
from interlock.store.attempt import Attempt, Birth, Fire
from interlock.store.dumpfile import Counts
from interlock.store.face import Face, answer, listener, utc_now
from interlock.store.group import GoAlone, Group
from interlock.store.plan import Plan, Procedure, T, Transaction
from interlock.store.read import Instance
from interlock.store.report import open_report, read_heads
from interlock.store.restore import Restored, restore
from interlock.store.run import Runs, run
from interlock.store.standings import Standing
from interlock.store.transfer import Page, dump
from interlock.store.url import open_database
from interlock.store.verify import Finding, Report, verify
from interlock.store.writer import Answered, Planner, patiently


class Database(Protocol):
    """What a store needs of a database; see `store.sqlite.database`.

    Attributes:
        where: where it is, for people.
        shared: other processes may keep instances locked for long.
        together: calls that wait are committed together.
        patience: seconds that a call goes on with a database that is away.
        least, beyond: see `store.verify.Reader`.
    """

    @property
    def where(self) -> str: ...

    @property
    def shared(self) -> bool: ...

    @property
    def together(self) -> bool: ...

    @property
    def patience(self) -> float: ...

    @property
    def least(self) -> str: ...

    @property
    def beyond(self) -> str | bytes: ...

    def run(self, transaction: Any) -> Any: ...

    def read(self, plan: Plan[T], *, lenient: bool = False) -> T: ...

    def schema_faults(self) -> list[str]: ...

    def damage(self) -> list[str]: ...

    def check_writable(self) -> None: ...

    def join(self, connection: Any) -> AbstractContextManager[Runs]: ...

    def close(self) -> None: ...


def open(
    url: str,
    *,
    tenant: str = "",
    schema: str | None = None,
    limits: Limits = LIMITS,
    clock: Callable[[], datetime] = utc_now,
) -> "Store":
    """Open a store, making or migrating it as needed.

    Args:
        url: `sqlite:///FILE`, `sqlite://` in memory, or `postgresql://…`; settings in its query,
            which docs/python.md and docs/postgresql.md list.
        tenant: whose store: all that is written and read is its own, and another's is not known.
        schema: of PostgreSQL, where the tables are; `interlock` when left out.
        limits: the largest sizes accepted.
        clock: gives the time, aware UTC; for tests that move it by hand.

    Raises:
        InvalidRequest: the URL is not that of a store, the tenant or schema is no name, or the
            limits are more than the database can hold.
        StorageFailure: there is no store, it is newer than this program, or cannot be written.
    """
    database = open_database(url, tenant, schema, limits)
    return Store(database, tenant=tenant, limits=limits, clock=clock)


class Store(Face):
    """An open store. Safe to share between threads; use it as a context manager, or `close` it.

    Calls of several threads that wait at the same time are committed together; each returns after
    its own commit is durable.

    `connection=` has a verb take part in a transaction of the caller, on a connection to the same
    database: a DB-API connection of `sqlite3` or `psycopg`, a SQLAlchemy session or connection, or
    Django's. What it does is committed, or rolled back, with the caller's own rows. It waits for
    nobody to commit together with, caches nothing, and leaves a conflict to the caller. What
    cannot be joined is refused as an `InvalidRequest`.
    """

    def __init__(
        self,
        database: Database,
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
        self._fires = self._grouped(self._fire_planner)
        self._births = self._grouped(self._birth_planner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; what was committed stays. Closing twice is fine."""
        self._database.close()

    def instantiate(
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
        """Begin an instance in its declaration's initial state and give its id.

        Args:
            declaration: states, transitions, initial and terminal states (docs/declarations.md).
            actor_ref: who begins it.
            subject_ref: the entity whose life it governs.
            instance_metadata: JSON-like, not empty; kept, never interpreted.
            instantiated_at: not in the future; now, when left out. No entry may be earlier.
            idempotency_key: the same key with the same request gives the same instance again.
            connection: whose transaction to join; see the class.

        Raises:
            InvalidDeclaration, InvalidRequest, IdempotencyConflict, StorageFailure, OutcomeUnknown:
                in this order; no instance was begun (with the last: perhaps).
        """
        declared = self._declare(declaration)
        birth = Birth(actor_ref, subject_ref, instance_metadata, instantiated_at, idempotency_key)
        return self._submit(self._births, self._prepare_birth(declared, birth), connection)

    def fire(
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
        """Move an instance along the transition declared for `action`, and give the new state.

        Args:
            id: the instance.
            action: the name of the transition, among those declared from its state.
            actor_ref: who does it.
            guard_satisfied: True asserts the transition's guard; anything else does not.
            fired_at: not in the future nor before the instance began; now, when left out.
            expected_version: refuse unless the instance is at this version.
            idempotency_key: the same key with the same request gives the first answer again.
            reason: why; its bytes are kept apart, where they can be destroyed.
            correlation_id, causation_id, worker_id: recorded with the entry, never interpreted.
            connection: whose transaction to join; see the class.

        Raises:
            InvalidRequest, NotKnown, IdempotencyConflict, EngineOwned, VersionConflict, Terminal,
            InvalidTransition, GuardNotSatisfied, InvalidRequest, StorageFailure, OutcomeUnknown:
                in this order; nothing was written (with the last: perhaps). A store that cannot be
                written to at all (closed, read-only, altered) says so after the first of them.
        """
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
        return self._submit(self._fires, attempt, connection)

    def current(self, id: str, *, connection: Any = None) -> str:
        """Give the current state of an instance.

        Args:
            connection: whose transaction to look from; see the class.

        Raises:
            InvalidRequest, NotKnown, StorageFailure.
        """
        return self._run(self._current(id), connection)

    def history(
        self, id: str, query: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> list[Entry]:
        """Give the entries of an instance by sequence number, those that `query` asks for.

        Args:
            query: `transition_id, from_state, to_state, action, actor_ref`, and the inclusive
                ranges `sequence_number: {start, end}` and `fired_at: {after, before}`.
            connection: whose transaction to look from; see the class.

        Raises:
            InvalidRequest, NotKnown, InvalidQuery: in this order.
            StorageFailure: the store could not be read.
        """
        return self._run(self._history(id, query), connection)

    def read_declaration(self, id: str, *, connection: Any = None) -> dict[str, Any]:
        """Give an instance's declaration exactly as supplied, key order included: a fresh copy.

        Args:
            connection: whose transaction to look from; see the class.

        Raises:
            InvalidRequest, NotKnown, StorageFailure.
        """
        return self._run(self._read_declaration(id), connection)

    def fire_many(self, fires: Iterable[Fire], *, connection: Any = None) -> list[str]:
        """Fire all of a list in one commit, or none; give the new states.

        Fires on one instance follow one another. Idempotency keys answer for the whole list.

        Args:
            connection: whose transaction to join; see the class.

        Raises:
            Rejected: the first refusal, with its place in the list as `index`; nothing was written.
            InvalidRequest: an item is no `Fire`, likewise.
            StorageFailure, OutcomeUnknown: of the whole list.
        """
        return self._write(self._fire_many(fires, joins=connection is not None), connection)

    def fire_each(
        self, fires: Iterable[Fire], *, halting: bool = False
    ) -> list[str | Rejected | None]:
        """Fire each of a list for itself, all in one commit; give new states and refusals.

        Args:
            halting: a refusal stops the later fires on its instance; they come back as None.

        Raises:
            InvalidRequest: an item is no `Fire`; its place is `index`, and nothing was written.
            StorageFailure, OutcomeUnknown: of the whole list.
        """
        return self._write(self._fire_each(fires, halting))

    def instantiate_each(
        self, declaration: Mapping[str, Any], births: Iterable[Birth]
    ) -> list[str | Rejected]:
        """Begin many instances of one declaration, all in one commit; give ids and refusals.

        Raises:
            InvalidRequest: an item is no `Birth`; its place is `index`, and nothing was written.
            InvalidDeclaration, StorageFailure, OutcomeUnknown: of the whole list.
        """
        return self._write(self._instantiate_each(declaration, births))

    def instances(
        self,
        *,
        state: str | None = None,
        subject_ref: str | None = None,
        definition: str | Mapping[str, Any] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Instance]:
        """Give a page of instances by id, which is by the clocks of those who began them.

        Those of one moment come in any order, and an id may be recorded after a greater one.

        Args:
            state: those that are in this state.
            subject_ref: those that govern this subject.
            definition: those under this declaration; it, or its digest.
            limit: rows of the page, at most `limits.page_rows`.
            after: the id of the last row of the page before; None for the first page.

        Raises:
            InvalidRequest: an argument is malformed.
            InvalidDeclaration: `definition` is no declaration.
            StorageFailure: the store could not be read.
        """
        return self._run(self._instances(state, subject_ref, definition, limit, after))

    def snapshot(
        self,
        id: str,
        *,
        at_sequence: int | None = None,
        at: datetime | str | None = None,
        connection: Any = None,
    ) -> Instance:
        """Give an instance as it is, or as it was.

        Args:
            at_sequence: after the entry of this number; 0 is the genesis.
            at: after the last entry, by number, that is not later than this moment.
            connection: whose transaction to look from; see the class.

        Raises:
            InvalidRequest: an argument is malformed, or there was nothing of it then.
            NotKnown: no instance has this id.
            StorageFailure: the store could not be read.
        """
        return self._run(self._snapshot(id, at_sequence, at), connection)

    def verify(
        self,
        id: str | None = None,
        *,
        since: Path | str | None = None,
        report: Path | str | TextIO | None = None,
        on_finding: Callable[[Finding], None] | None = None,
        on_page: Callable[[int], None] | None = None,
    ) -> Report:
        """Check from the records alone that every instance's story is one its declaration allows.

        Args:
            id: verify this instance only.
            since: an earlier report, to find instances that are gone and tails that were cut.
            report: where to write the report, for a later `since`; it replaces an earlier one, and
                nothing else.
            on_finding: told each finding as it is made; the report keeps the first 10,000.
            on_page: told the number of entries read so far, now and then.

        Raises:
            InvalidRequest: an argument is malformed, or `since` names no report that can be used.
            NotKnown: no instance has this id.
            StorageFailure: the store could not be read, or the report not be written.
        """
        if id is not None:
            id = self._id(id)
        on_finding = listener("on_finding", on_finding)
        on_page = listener("on_page", on_page)
        heads = read_heads(since, instance=id) if since is not None else ()
        with open_report(report, instance=id) as writer:
            found = verify(
                self._database,
                self._tenant,
                id=id,
                since=heads,
                on_head=writer.head,
                on_finding=on_finding,
                on_page=on_page,
            )
            writer.close(found)
        return found

    def dump(
        self,
        target: Path | str | TextIO,
        ids: Iterable[str] | None = None,
        *,
        on_page: Callable[[Page], object] | None = None,
    ) -> Counts:
        """Write the store, or some of its instances, as JSON lines that any store restores.

        Each instance is dumped as it stands when the dump comes to it, beside writers.

        Args:
            target: a stream of text, or the name of a file; an earlier dump there is replaced, and
                no other file is.
            ids: dump these instances only.
            on_page: told now and then how far it has come.

        Raises:
            InvalidRequest, NotKnown, StorageFailure: the dump is not whole. Kind `damaged`: the
                record of an instance is not sound, so it could not be restored.
        """
        chosen = None if ids is None else self._ids(ids)
        told = listener("on_page", on_page)
        return dump(self._database, self._tenant, target, ids=chosen, on_page=told)

    def restore(
        self,
        source: Path | str | TextIO,
        *,
        on_page: Callable[[Page], object] | None = None,
    ) -> Restored:
        """Write what a dump has and the store lacks; run again it goes on where it stopped.

        A file is checked as a whole before anything is written, a stream as it comes. What the
        store has of a dumped instance is left as it is, and its history is continued.

        Args:
            source: a stream of text, or the name of a file.
            on_page: told now and then how far it has come.

        Raises:
            InvalidRequest: `source` is no whole dump, or was altered.
            VersionConflict: the store has another story of an instance than the dump, or a longer
                one; nothing of it was written. `version` is the store's, `expected_version` the
                dump's.
            IdempotencyConflict: another instance was begun under the idempotency key of one.
            StorageFailure: the store cannot be written. After each of these, what comes before it
                in the dump may have been written.
        """
        told = listener("on_page", on_page)
        self._database.check_writable()
        return restore(self._database, self._tenant, source, on_page=told)

    def _write(self, procedure: Procedure[T], connection: Any = None) -> T:
        """Drive a procedure that writes."""
        if connection is None:
            self._database.check_writable()
        return self._run(procedure, connection)

    def _run(self, procedure: Procedure[T], connection: Any = None) -> T:
        """Drive a procedure, in the transaction of `connection` if there is one."""
        if connection is None:
            return run(self._database, procedure)
        with self._database.join(connection) as joined:
            return run(joined, procedure)

    def _grouped(self, planner: Planner) -> Group[Attempt, Answered]:
        def commit(attempts: Sequence[Attempt]) -> Sequence[Answered | GoAlone]:
            return run(self._database, self._writer.commit(planner, attempts))

        def alone(attempt: Attempt, error: BaseException | None) -> Answered:
            return run(self._database, self._writer.alone(planner, attempt, error))

        return Group(commit, alone)

    def _submit(self, group: Group[Attempt, Answered], attempt: Attempt, connection: Any) -> str:
        if connection is not None:
            return self._run(self._joined(attempt), connection)
        self._database.check_writable()
        if self._database.together:
            return answer(group.submit(attempt))
        return self._run(self._single(attempt))


class PlanRunner:
    """Runs the plans of a layer above on a store, in transactions of its own or a caller's.

    Attributes:
        context: what the plans of the store need; those of that layer too.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.context = store._context

    def new_id(self) -> str:
        """Make an identity for an instance or an entry."""
        return self._store._new_id()

    @property
    def where(self) -> str:
        """Where the database is, for people; the same for all handles to it."""
        return self._store._database.where

    @property
    def together(self) -> bool:
        """Whether calls that wait are committed together."""
        return self._store._database.together

    def known(self, id: str) -> Standing | None:
        """Give where an instance was last seen, if that was kept."""
        return self._store._writer._standings.kept.get(id)

    def group(self, planner: Planner) -> Group[Attempt, Answered]:
        """Make a group of those whose attempts are to be committed together; see `submit`."""
        return self._store._grouped(planner)

    def submit(self, group: Group[Attempt, Answered], attempt: Attempt) -> str:
        """Write one attempt together with others that wait, and give its outcome.

        Raises:
            Rejected: nothing of it was written.
            OutcomeUnknown: nobody knows.
        """
        self._store._database.check_writable()
        return answer(group.submit(attempt))

    def perform(self, planner: Planner, attempt: Attempt, connection: Any = None) -> str:
        """Write one attempt in a transaction of its own or its caller's, and give its outcome.

        Raises:
            Rejected: nothing was written.
            OutcomeUnknown: nobody knows.
        """
        store = self._store
        if connection is not None:
            (outcome,) = store._run(store._writer.join(planner, [attempt]), connection)
            return answer(outcome)  # type: ignore[arg-type]  # it was tried
        store._database.check_writable()
        return answer(store._run(store._writer.perform(planner, attempt)))

    def look(self, make: Callable[[], Plan[T]], connection: Any = None) -> T:
        """Read."""
        reading = patiently(Transaction(make), self._store._patience)
        found: T = self._store._run(reading, connection)
        return found

    def write(self, make: Callable[[], Plan[T]]) -> T:
        """Write what is no part of the record."""
        writing = patiently(Transaction(make, writes=True), self._store._patience)
        answered: T = self._store._write(writing)
        return answered
