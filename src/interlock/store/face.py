"""What the synchronous and the asynchronous face of a store share: every verb but for its waiting.

A verb checks its arguments and gives a procedure, which the face drives; a fire and a birth give an
attempt, which the face commits together with others.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from interlock.core.entry import Entry
from interlock.core.identity import uuid7
from interlock.core.machine import check_moment, check_text
from interlock.core.query import parse_query
from interlock.core.rejection import InvalidQuery, InvalidRequest, Rejected
from interlock.core.text import Limits, text_fault
from interlock.store import read
from interlock.store.attempt import (
    Attempt,
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
from interlock.store.context import Context, Outcome
from interlock.store.fire import fire
from interlock.store.machines import Machines
from interlock.store.plan import Plan, Procedure, T, Transaction
from interlock.store.read import Instance
from interlock.store.writer import Answered, Planner, Writer, patiently

#: The machine's clock, aware UTC.
utc_now: Callable[[], datetime] = partial(datetime.now, UTC)


class Face:
    """The verbs of one tenant's store.

    Args:
        shared, patience: see `Writer`.
    """

    def __init__(
        self,
        *,
        tenant: str,
        limits: Limits,
        clock: Callable[[], datetime],
        shared: bool,
        patience: float,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._tenant = tenant
        self._patience = patience
        self._random = Random(os.urandom(16))  # noqa: S311 - identities are unique, not secret
        self._context = Context(tenant, limits, Machines(tenant), clock, _salt)
        self._writer = Writer(tenant, shared=shared, patience=patience)
        self._fire_planner: Planner = partial(fire, self._context)
        self._birth_planner: Planner = partial(bear, self._context)

    def _current(self, id: str) -> Procedure[str]:
        return self._look(read.read_current, self._id(id))

    def _history(self, id: str, query: Mapping[str, Any] | None) -> Procedure[list[Entry]]:
        id = self._id(id)
        try:
            asked = parse_query(query, self._limits)
        except InvalidQuery as refusal:
            yield from self._current(id)  # an instance that is not known is the first thing to say
            refusal.instance_id = id
            raise
        return (yield from self._look(read.read_history, id, asked))

    def _read_declaration(self, id: str) -> Procedure[dict[str, Any]]:
        return self._look(read.read_declaration, self._id(id))

    def _instances(
        self,
        state: str | None,
        subject_ref: str | None,
        definition: str | Mapping[str, Any] | None,
        limit: int,
        after: str | None,
    ) -> Procedure[list[Instance]]:
        check_page(self._limits, limit)
        if isinstance(definition, Mapping):
            definition = prepare_declaration(definition, self._limits).machine.digest
        texts = {"subject_ref": subject_ref, "definition": definition, "after": after}
        check_page(self._limits, limit, state=state, **texts)
        filters = (state, subject_ref, definition, limit, after or "")
        return self._look(read.list_instances, *filters)

    def _snapshot(
        self, id: str, at_sequence: int | None, at: datetime | str | None
    ) -> Procedure[Instance]:
        id = self._id(id)
        if at_sequence is not None and not (type(at_sequence) is int and 0 <= at_sequence < 2**63):
            what = "`at_sequence` is a whole number from 0, below 2 to the 63rd"
            raise InvalidRequest(what, argument="at_sequence")
        if at_sequence is None and at is None:
            return self._look(read.read_instance, id)
        moment = None if at is None else check_moment("at", at, now=None)
        return self._look(read.read_instance_at, id, at_sequence, moment)

    def _fire_many(self, fires: Iterable[Fire], *, joins: bool = False) -> Procedure[list[str]]:
        attempts = self._try_fires(fires)
        write = self._writer.join if joins else self._writer.write
        outcomes = yield from write(partial(self._fire_planner, whole=True), attempts)
        return [state for state in outcomes if isinstance(state, str)]

    def _fire_each(
        self, fires: Iterable[Fire], halting: bool
    ) -> Procedure[list[str | Rejected | None]]:
        attempts = self._try_fires(fires)
        planner = partial(self._fire_planner, halting=halting)
        return [*(yield from self._writer.write(planner, attempts))]

    def _instantiate_each(
        self, declaration: Mapping[str, Any], births: Iterable[Birth]
    ) -> Procedure[list[str | Rejected]]:
        declared = prepare_declaration(declaration, self._limits)
        attempts = [self._try_birth(declared, place, birth) for place, birth in enumerate(births)]
        outcomes = yield from self._writer.write(self._birth_planner, attempts)
        return [outcome for outcome in outcomes if outcome is not None]

    def _joined(self, attempt: Attempt) -> Procedure[str]:
        """Write one attempt in a transaction of its caller."""
        return self._one(self._writer.join, attempt)

    def _single(self, attempt: Attempt) -> Procedure[str]:
        """Write one attempt in a transaction of its own, with no other."""
        return self._one(self._writer.write, attempt)

    def _one(
        self,
        write: Callable[[Planner, Sequence[Attempt]], Procedure[Sequence[Outcome | None]]],
        attempt: Attempt,
    ) -> Procedure[str]:
        (outcome,) = yield from write(self._planner(attempt), [attempt])
        return answer(outcome)  # type: ignore[arg-type]  # it was tried

    def _planner(self, attempt: Attempt) -> Planner:
        return self._fire_planner if isinstance(attempt, FireAttempt) else self._birth_planner

    def _look(self, make: Callable[..., Plan[T]], *arguments: object) -> Procedure[T]:
        plan = partial(make, self._tenant, *arguments)
        found: T = yield from patiently(Transaction(plan), self._patience)
        return found

    def _id(self, id: object) -> str:
        return check_text("id", id, self._limits.reference_bytes)

    def _ids(self, ids: object) -> list[str]:
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            given = "one" if isinstance(ids, str) else type(ids).__name__
            raise InvalidRequest(f"`ids` is a list of ids, not {given}", argument="ids")
        chosen = [*ids]
        for place, id in enumerate(chosen):
            if fault := text_fault(id, self._limits.reference_bytes):
                what = f"item {place} of `ids` {fault}"
                raise InvalidRequest(what, argument="ids", index=place)
        return chosen

    def _new_id(self) -> str:
        return uuid7(self._clock(), self._random.getrandbits(62))

    def _prepare_fire(self, id: object, action: object, *how: Any) -> FireAttempt:
        try:
            return prepare_fire(self._new_id(), self._limits, id, action, *how)
        except InvalidRequest as refusal:
            raise _of_fire(refusal, id, action) from None

    def _declare(self, declaration: object) -> Declared:
        return prepare_declaration(declaration, self._limits)

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


def answer(outcome: Answered) -> str:
    """Give a state or an id, or raise what came instead."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def check_page(limits: Limits, limit: object, **filters: object) -> None:
    """Check how many rows of a page are asked for, and which.

    Raises:
        InvalidRequest: the limit is out of bounds, or a filter is there and no text.
    """
    if type(limit) is not int or not 1 <= limit <= limits.page_rows:
        raise InvalidRequest(f"`limit` is from 1 to {limits.page_rows}", argument="limit")
    for name, value in filters.items():
        if value is not None:
            check_text(name, value, limits.reference_bytes)


def listener(name: str, given: Callable[[T], Any] | None) -> Callable[[T], Any]:
    """Give whom to tell: whoever was given, or nobody.

    Raises:
        InvalidRequest: what was given cannot be told anything.
    """
    if given is not None and not callable(given):
        raise InvalidRequest(f"`{name}` is a function, not {type(given).__name__}", argument=name)
    return given or _ignore


def _ignore(told: object) -> None:
    """Take what nobody asked to be told."""


def _of_fire(refusal: InvalidRequest, id: object, action: object) -> InvalidRequest:
    """Say which fire was refused, as far as that can be said."""
    refusal.instance_id = id if isinstance(id, str) else None
    refusal.action = action if isinstance(action, str) else None
    return refusal


def _salt() -> bytes:
    return os.urandom(16)
