"""The plan of fires, over a list: one call is a list of one.

Fires that are written together share a transaction and, unless they are to stand or fall together,
nothing else: each has its own outcome. Each is decided on the result of those before it, and each
entry is one row. The plan decides on the standings that are known and reads the others.
"""

from collections.abc import Mapping, Sequence, Set

from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds, to_microseconds
from interlock.core.machine import Decision, Snapshot, decide
from interlock.core.payload import encode_payload
from interlock.core.record import HistoryRow, entry_digest, payload_digest
from interlock.core.rejection import EngineOwned, IdempotencyConflict, Rejected
from interlock.core.text import quoted
from interlock.store.attempt import FireAttempt
from interlock.store.context import Answer, Context, Outcome, Written
from interlock.store.plan import Plan, Row, Statement
from interlock.store.read import find_attempts, not_known
from interlock.store.standings import Standing

_new = tuple.__new__  # see core.machine


def fire(
    context: Context,
    attempts: Sequence[FireAttempt | Rejected],
    known: Mapping[str, Standing],
    *,
    whole: bool = False,
    halting: bool = False,
    free: bool = False,
    held: bool = False,
    again: bool = False,
) -> Plan[Written]:
    """Decide fires and write their entries.

    Args:
        attempts: one that was refused before it could be made is its own outcome.
        known: standings that may be out of date. An entry decided on one is refused by the schema
            if it is; a refusal decided on one is decided again on what stands written.
        whole: the first refusal, with its index, is raised. Idempotency keys answer for the whole:
            all of them known gives the first answers, some is a conflict.
        halting: a refusal stops the later fires on the same instance, whose outcome is None.
        free: entries are written only where the instance still stands where it was decided and
            nobody else holds it; the outcome of the other fires is None.
        held: the instances are locked before they are read, and nothing known is used.
        again: the same attempts were sent before; those in the record are done.
    """
    sheet = _Sheet(context, "lock_snapshot" if held else "read_snapshot")
    if held or not sheet.suffices(attempts, known):
        yield from sheet.read(attempts)
    if again:
        yield from sheet.look_up(attempts)
    outcomes = sheet.answer(attempts, whole=whole, halting=halting)
    if sheet.refused and known and not held:
        sheet = _Sheet(context, "read_snapshot")
        yield from sheet.read(attempts)
        outcomes = sheet.answer(attempts, whole=whole, halting=halting)
    if whole and outcomes and isinstance(outcomes[-1], Rejected):
        raise outcomes[-1]
    if sheet.entries:
        rows, alone = sheet.entries, not sheet.payloads
        if free:
            first = sheet.first_numbers()
            rows = [(*row, first[row[2]]) for row in rows]
            written = yield Statement("append_free_entry", rows, alone)
            outcomes = sheet.leave_out({row[0] for row in written}, attempts, outcomes)
        else:
            yield Statement("append_entry", rows, alone)
    if sheet.payloads:
        yield Statement("append_payload", sheet.payloads, True)
    return Written(outcomes, sheet.moved)


class _Sheet:
    """The working sheet of one plan.

    Attributes:
        found: where instances stood before the plan, as known or as read.
        moved: where those stand that it moves.
        answers: what idempotency keys have been answered.
        done: the states that attempts in the record led to, by transition id.
        refused: whether a fire was refused.
        entries, payloads: the rows owed to the record.
    """

    __slots__ = (
        "answers",
        "context",
        "done",
        "entries",
        "found",
        "moved",
        "payloads",
        "reading",
        "refused",
    )

    def __init__(self, context: Context, reading: str) -> None:
        self.context = context
        self.reading = reading
        self.done: Mapping[str, str] = {}
        self.found: dict[str, Standing] = {}
        self.moved: dict[str, Standing] = {}
        self.answers: dict[tuple[str, str], Answer] = {}
        self.refused = False
        self.entries: list[Row] = []
        self.payloads: list[Row] = []

    def suffices(
        self, attempts: Sequence[FireAttempt | Rejected], known: Mapping[str, Standing]
    ) -> bool:
        """Take what is known; say whether all can be decided on it, without looking up a key."""
        enough = True
        for attempt in attempts:
            if isinstance(attempt, FireAttempt):
                standing = known.get(attempt.instance_id)
                if standing is not None:
                    self.found[attempt.instance_id] = standing
                if standing is None or attempt.idempotency_key is not None:
                    enough = False
        return enough

    def read(self, attempts: Sequence[FireAttempt | Rejected]) -> Plan[None]:
        """Read where the instances stand that are not known, and the answers that keys have had."""
        tenant, machines = self.context.tenant, self.context.machines
        fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
        missing = {fire.instance_id for fire in fires} - self.found.keys()
        if missing:
            rows = yield Statement(self.reading, [(tenant, root_of(id), id) for id in missing])
            compiled = yield from machines.fetch({row[1] for row in rows})
            for id, digest, state, version, head, begun, definition in rows:
                snapshot = Snapshot(id, state, version, from_microseconds(begun))
                machine = compiled[digest]
                self.found[id] = Standing(machine, snapshot, head, root_of(id), definition)
        keys = [
            (tenant, root_of(fire.instance_id), fire.instance_id, fire.idempotency_key)
            for fire in fires
            if fire.idempotency_key is not None
        ]
        if keys:
            for id, key, *answer in (yield Statement("read_keyed_entry", keys)):
                self.answers[id, key] = Answer(*answer)

    def look_up(self, attempts: Sequence[FireAttempt | Rejected]) -> Plan[None]:
        """Look in the record for attempts that were sent before."""
        fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
        self.done = yield from find_attempts(self.context.tenant, fires)

    def first_numbers(self) -> dict[str, int]:
        """Give the number of the first entry that is owed to each instance."""
        numbers: dict[str, int] = {}
        for row in self.entries:
            numbers.setdefault(row[2], row[3])
        return numbers

    def leave_out(
        self,
        written: Set[str],
        attempts: Sequence[FireAttempt | Rejected],
        outcomes: list[Outcome | None],
    ) -> list[Outcome | None]:
        """Leave out the instances whose entries were not written; nothing about them is decided."""
        missed = self.moved.keys() - written
        if not missed:
            return outcomes
        for id in missed:
            del self.moved[id]
        missed_payloads = {row[4] for row in self.entries if row[2] in missed}
        self.payloads = [row for row in self.payloads if row[2] not in missed_payloads]
        pairs = zip(attempts, outcomes, strict=True)
        return [None if attempt.instance_id in missed else outcome for attempt, outcome in pairs]

    def answer(
        self, attempts: Sequence[FireAttempt | Rejected], *, whole: bool, halting: bool
    ) -> list[Outcome | None]:
        """Answer the attempts in order; with `whole`, up to the first refusal."""
        half_done = whole and bool(self.answers)
        outcomes: list[Outcome | None] = []
        halted: set[str] = set()
        outcome: Outcome | None
        for index, attempt in enumerate(attempts):
            if halted and attempt.instance_id in halted:
                outcomes.append(None)
                continue
            if isinstance(attempt, Rejected):
                outcome = attempt
            elif attempt.transition_id in self.done:
                outcome = self.done[attempt.transition_id]
            elif attempt.idempotency_key is None:
                outcome = _left_out(attempt) if half_done else self._fire(attempt)
            else:
                outcome = self._repeat(attempt)
                if outcome is None:
                    outcome = _left_out(attempt) if half_done else self._fire(attempt)
            outcomes.append(outcome)
            if isinstance(outcome, Rejected):
                if whole:
                    outcome.index = index
                    break
                if halting and attempt.instance_id is not None:
                    halted.add(attempt.instance_id)
        return outcomes

    def _repeat(self, fire: FireAttempt) -> Outcome | None:
        """Give the answer that the fire's key has had, if any."""
        key = fire.idempotency_key or ""
        answer = self.answers.get((fire.instance_id, key))
        if answer is None:
            return None
        return answer.repeat(fire.request_digest, _told(fire.request.reason), key, fire.instance_id)

    def _fire(self, fire: FireAttempt) -> Outcome:
        """Decide one fire, and owe its rows."""
        id, request, new_id, key, request_digest, _ = fire
        _, limits, _, clock, _ = self.context
        standing = self.moved.get(id) or self.found.get(id)
        if standing is None:
            self.refused = True
            return not_known(id)
        machine, snapshot, _, _, definition, _ = standing
        if definition is not None:
            self.refused = True
            return _engine_owned(snapshot, request.action)
        try:
            decision = decide(machine, snapshot, request, now=clock(), new_id=new_id, limits=limits)
        except Rejected as refusal:
            self.refused = True
            refusal.__dict__ |= {"instance_id": id, "action": request.action}
            return refusal.with_traceback(None)  # its frames hold the whole sheet
        row, payload, moved = entry_rows(self.context, standing, decision, key, request_digest)
        self.entries.append(row)
        if payload is not None:
            self.payloads.append(payload)
        self.moved[id] = moved
        if key is not None and request_digest is not None:
            content = None if payload is None else payload[4]
            self.answers[id, key] = Answer(moved.snapshot.state, request_digest, content)
        return moved.snapshot.state


def entry_rows(
    context: Context,
    standing: Standing,
    decision: Decision,
    key: str | None,
    request_digest: bytes | None,
) -> tuple[Row, Row | None, Standing]:
    """Give the rows of an entry and of its reason's payload, and where the instance stands then."""
    machine, snapshot, head, root, definition, memory = standing
    (entry, after) = decision
    (new_id, number, origin, target, action, actor, at, asserted, reason, *references) = entry
    tenant, id = context.tenant, snapshot.instance_id
    reason_id = reason_digest = payload = None
    if reason is not None:
        content, salt = encode_payload(reason), context.salt()
        payload = (tenant, root, new_id, salt, content)
        reason_id, reason_digest = new_id, payload_digest(salt, content)
    moved = (number, new_id, origin, action, target, actor, to_microseconds(at))
    because = (1 if asserted else None, reason_id, reason_digest, *references)
    row = _new(HistoryRow, (*moved, *because, key, request_digest, b""))
    digest = entry_digest(head, id, row)
    entered = (tenant, root, id, *row[:-1], digest)
    return entered, payload, _new(Standing, (machine, after, digest, root, definition, memory))


def _engine_owned(snapshot: Snapshot, action: str) -> EngineOwned:
    what = f"{quoted(snapshot.instance_id)} was begun by an engine, whose guards and hooks"
    return EngineOwned(
        f"{what} a plain fire would pass by; send it the event through the engine",
        instance_id=snapshot.instance_id,
        state=snapshot.state,
        action=action,
    )


def _told(reason: object) -> bytes | None:
    """Write a reason; what cannot be written is like no reason that was ever recorded."""
    if reason is None:
        return None
    try:
        return encode_payload(reason)
    except ValueError:
        return b"[]"


def _left_out(fire: FireAttempt) -> Rejected:
    return IdempotencyConflict(
        f"others of these fires were done before, but this one on `{fire.instance_id}` was not",
        idempotency_key=fire.idempotency_key,
        instance_id=fire.instance_id,
    )
