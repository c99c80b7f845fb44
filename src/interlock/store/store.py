"""The store: the verbs, synchronously.

Every verb checks its arguments, drives a plan, and gives a value or raises a refusal under
`interlock.Rejected`. A state changes only through `fire` and its kin.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self, TextIO

from interlock.core.entry import Entry
from interlock.core.identity import uuid7
from interlock.core.machine import check_moment, check_text
from interlock.core.query import parse_query
from interlock.core.rejection import (
    InvalidQuery,
    InvalidRequest,
    Rejected,
)
from interlock.core.text import LIMITS, Limits
from interlock.store import read
from interlock.store.attempt import (
    Birth,
    BirthAttempt,
    Declared,
    Fire,
    FireAttempt,
    prepare_birth,
    prepare_declaration,
    prepare_fire,
)
from interlock.store.birth import bear
from interlock.store.context import Context
from interlock.store.fire import fire
from interlock.store.machines import Machines
from interlock.store.read import Instance
from interlock.store.report import open_report, read_heads
from interlock.store.sqlite.database import Database
from interlock.store.url import parse_url
from interlock.store.verify import Finding, Report, verify
from interlock.store.writer import Answered, Writer

#: The machine's clock, aware UTC.
utc_now: Callable[[], datetime] = partial(datetime.now, UTC)


def open(url: str, *, limits: Limits = LIMITS, clock: Callable[[], datetime] = utc_now) -> "Store":
    """Open a store, making or migrating it as needed.

    Args:
        url: `sqlite:///FILE`, or `sqlite://` in memory; settings in its query (see `store.url`).
        limits: the largest sizes accepted.
        clock: gives the time, aware UTC; for tests that move it by hand.

    Raises:
        InvalidRequest: the URL is not that of a store.
        StorageFailure: the file is no store, is newer than this program, or cannot be written.
    """
    return Store(Database(parse_url(url)), limits=limits, clock=clock)


class Store:
    """An open store. Safe to share between threads; use it as a context manager, or `close` it.

    Calls of several threads that wait at the same time are committed together; each returns after
    its own commit is durable.
    """

    def __init__(
        self,
        database: Database,
        *,
        limits: Limits = LIMITS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._tenant = ""
        self._random = Random(os.urandom(16))  # noqa: S311 - identities are unique, not secret
        self._context = Context(self._tenant, limits, Machines(self._tenant), clock, _salt)
        self._writer = Writer(database, self._context)

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
        """Close the store; what was committed stays."""
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
    ) -> str:
        """Begin an instance in its declaration's initial state and give its id.

        Args:
            actor_ref: who begins it.
            subject_ref: the entity whose life it governs.
            instance_metadata: JSON-like, not empty; kept, never interpreted.
            instantiated_at: not in the future; now, when left out. No entry may be earlier.
            idempotency_key: the same key with the same request gives the same instance again.

        Raises:
            InvalidDeclaration, InvalidRequest, IdempotencyConflict, StorageFailure, OutcomeUnknown:
                in this order; no instance was begun (with the last: perhaps).
        """
        declared = prepare_declaration(declaration, self._limits)
        birth = Birth(actor_ref, subject_ref, instance_metadata, instantiated_at, idempotency_key)
        return _answer(self._writer.bear(self._prepare_birth(declared, birth)))

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
    ) -> str:
        """Move an instance along the transition declared for `action`, and give the new state.

        Args:
            guard_satisfied: True asserts the transition's guard; anything else does not.
            fired_at: not in the future nor before the instance began; now, when left out.
            expected_version: refuse unless the instance is at this version.
            idempotency_key: the same key with the same request gives the first answer again.
            reason: why; its bytes are kept apart, where they can be destroyed.

        Raises:
            InvalidRequest, NotKnown, IdempotencyConflict, VersionConflict, Terminal,
            InvalidTransition, GuardNotSatisfied, InvalidRequest, StorageFailure, OutcomeUnknown:
                in this order; nothing was written (with the last: perhaps). A store that cannot be
                written to at all (closed, read-only, altered) says so after the first of them.
        """
        try:
            attempt = prepare_fire(
                self._new_id(),
                self._limits,
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
        except InvalidRequest as refusal:
            raise _of_fire(refusal, id, action) from None
        return _answer(self._writer.fire(attempt))

    def current(self, id: str) -> str:
        """Give the current state of an instance.

        Raises:
            InvalidRequest, NotKnown.
        """
        return self._database.read(read.read_current(self._tenant, self._id(id)))

    def history(self, id: str, query: Mapping[str, Any] | None = None) -> list[Entry]:
        """Give the entries of an instance by sequence number, those that `query` asks for.

        Args:
            query: `transition_id, from_state, to_state, action, actor_ref`, and the inclusive
                ranges `sequence_number: {start, end}` and `fired_at: {after, before}`.

        Raises:
            InvalidRequest, NotKnown, InvalidQuery: in this order.
        """
        id = self._id(id)
        try:
            asked = parse_query(query, self._limits)
        except InvalidQuery as refusal:
            self.current(id)  # an instance that is not known is the first thing to say
            refusal.instance_id = id
            raise
        return self._database.read(read.read_history(self._tenant, id, asked))

    def read_declaration(self, id: str) -> dict[str, Any]:
        """Give an instance's declaration exactly as supplied, key order included: a fresh copy.

        Raises:
            InvalidRequest, NotKnown.
        """
        return self._database.read(read.read_declaration(self._tenant, self._id(id)))

    def fire_many(self, fires: Iterable[Fire]) -> list[str]:
        """Fire all of a list in one commit, or none; give the new states.

        Fires on one instance follow one another. Idempotency keys answer for the whole list.

        Raises:
            Rejected: the first refusal, with its place in the list as `index`; nothing was written.
            InvalidRequest: an item is no `Fire`, likewise.
        """
        attempts = self._try_fires(fires)
        plan = partial(fire, self._context, whole=True)
        return [state for state in self._writer.write(plan, attempts) if isinstance(state, str)]

    def fire_each(
        self, fires: Iterable[Fire], *, halting: bool = False
    ) -> list[str | Rejected | None]:
        """Fire each of a list for itself, all in one commit; give new states and refusals.

        Args:
            halting: a refusal stops the later fires on its instance; they come back as None.

        Raises:
            StorageFailure, OutcomeUnknown: of the whole list.
        """
        attempts = self._try_fires(fires)
        plan = partial(fire, self._context, halting=halting)
        return [*self._writer.write(plan, attempts)]

    def instantiate_each(
        self, declaration: Mapping[str, Any], births: Iterable[Birth]
    ) -> list[str | Rejected]:
        """Begin many instances of one declaration, all in one commit; give ids and refusals.

        Raises:
            InvalidDeclaration, StorageFailure, OutcomeUnknown: of the whole list.
        """
        declared = prepare_declaration(declaration, self._limits)
        attempts = [self._try_birth(declared, place, birth) for place, birth in enumerate(births)]
        outcomes = self._writer.write(partial(bear, self._context), attempts)
        return [outcome for outcome in outcomes if outcome is not None]

    def instances(
        self,
        *,
        state: str | None = None,
        subject_ref: str | None = None,
        definition: str | Mapping[str, Any] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Instance]:
        """Give a page of instances by id.

        Args:
            definition: a declaration, or its digest.
            limit: rows of the page, at most `limits.page_rows`.
            after: the id of the last row of the page before; None for the first page.

        Raises:
            InvalidRequest: an argument is malformed.
        """
        if type(limit) is not int or not 1 <= limit <= self._limits.page_rows:
            raise InvalidRequest(f"`limit` is from 1 to {self._limits.page_rows}", argument="limit")
        if isinstance(definition, Mapping):
            definition = prepare_declaration(definition, self._limits).machine.digest
        given = (
            ("state", state),
            ("subject_ref", subject_ref),
            ("definition", definition),
            ("after", after),
        )
        for name, value in given:
            if value is not None:
                check_text(name, value, self._limits.reference_bytes)
        page = read.list_instances(self._tenant, state, subject_ref, definition, limit, after or "")
        return self._database.read(page)

    def snapshot(
        self, id: str, *, at_sequence: int | None = None, at: datetime | str | None = None
    ) -> Instance:
        """Give an instance as it is, or as it was.

        Args:
            at_sequence: after the entry of this number; 0 is the genesis.
            at: after the last entry, by number, that is not later than this moment.

        Raises:
            InvalidRequest, NotKnown.
        """
        id = self._id(id)
        if at_sequence is not None and not (type(at_sequence) is int and 0 <= at_sequence < 2**63):
            what = "`at_sequence` is a whole number from 0, below 2 to the 63rd"
            raise InvalidRequest(what, argument="at_sequence")
        if at_sequence is None and at is None:
            return self._database.read(read.read_instance(self._tenant, id))
        moment = None if at is None else check_moment("at", at, now=None)
        return self._database.read(read.read_instance_at(self._tenant, id, at_sequence, moment))

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
            InvalidRequest, NotKnown, StorageFailure.
        """
        if id is not None:
            id = self._id(id)
        heads = read_heads(Path(since), instance=id) if since is not None else ()
        with open_report(report, instance=id) as writer:
            found = verify(
                self._database,
                self._tenant,
                id=id,
                since=heads,
                on_head=writer.head,
                on_finding=on_finding or _ignore,
                on_page=on_page or _ignore,
            )
            writer.close(found)
        return found

    def _id(self, id: object) -> str:
        return check_text("id", id, self._limits.reference_bytes)

    def _new_id(self) -> str:
        return uuid7(self._clock(), self._random.getrandbits(62))

    def _prepare_birth(self, declared: Declared, birth: Birth) -> BirthAttempt:
        now, new_id = self._clock(), self._new_id()
        return prepare_birth(
            declared, birth, now=now, new_id=new_id, salt=_salt(), limits=self._limits
        )

    def _try_fires(self, fires: Iterable[Fire]) -> list[FireAttempt | Rejected]:
        attempts: list[FireAttempt | Rejected] = []
        now, limits, random = self._clock(), self._limits, self._random
        for place, asked in enumerate(fires):
            if not isinstance(asked, Fire):
                what = f"item {place} is no `interlock.Fire` but {type(asked).__name__}"
                raise InvalidRequest(what, argument="fires", index=place)
            new_id = uuid7(now, random.getrandbits(62))
            try:
                attempts.append(prepare_fire(new_id, limits, *asked))
            except InvalidRequest as refusal:
                attempts.append(_of_fire(refusal, *asked[:2]).with_traceback(None))
        return attempts

    def _try_birth(self, declared: Declared, place: int, birth: Birth) -> BirthAttempt | Rejected:
        if not isinstance(birth, Birth):
            what = f"item {place} is no `interlock.Birth` but {type(birth).__name__}"
            raise InvalidRequest(what, argument="births", index=place)
        try:
            return self._prepare_birth(declared, birth)
        except InvalidRequest as refusal:
            return refusal.with_traceback(None)


def _of_fire(refusal: InvalidRequest, id: object, action: object) -> InvalidRequest:
    """Say which fire was refused, as far as that can be said."""
    refusal.instance_id = id if isinstance(id, str) else None
    refusal.action = action if isinstance(action, str) else None
    return refusal


def _ignore(told: object) -> None:
    """Take what nobody asked to be told."""


def _salt() -> bytes:
    return os.urandom(16)


def _answer(outcome: Answered) -> str:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
