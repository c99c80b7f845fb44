"""The plans of fires, over lists: one call is a list of one.

Fires that happen to be written together share a transaction and nothing else: each has its own
outcome, and one that is refused does not touch the others. What is decided is decided on rows read
in the same transaction, each fire on the result of those before it, and each entry is one row.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from interlock.core.entry import Entry
from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds, to_microseconds
from interlock.core.machine import Machine, Snapshot, decide
from interlock.core.payload import encode_payload
from interlock.core.record import HistoryRow, entry_digest, payload_digest
from interlock.core.rejection import IdempotencyConflict, Rejected
from interlock.store.attempt import FireAttempt
from interlock.store.context import Answer, Context, Outcome
from interlock.store.plan import Plan, Row, Statement
from interlock.store.read import not_known


def fire_each(context: Context, fires: Sequence[FireAttempt]) -> Plan[list[Outcome]]:
    """Decide and write each fire for itself."""
    sheet = yield from _open_sheet(context, fires)
    outcomes = [sheet.repeat(fire) or sheet.fire(fire) for fire in fires]
    yield from sheet.append()
    return outcomes


def fire_runs(
    context: Context, attempts: Sequence[FireAttempt | Rejected], *, halting: bool
) -> Plan[list[Outcome | None]]:
    """Like `fire_each`, with attempts that were refused before they could be made.

    Args:
        halting: a refusal stops the later fires on the same instance; they come back as None.
    """
    fires = [attempt for attempt in attempts if not isinstance(attempt, Rejected)]
    sheet = yield from _open_sheet(context, fires)
    outcomes: list[Outcome | None] = []
    halted: set[str | None] = set()
    for attempt in attempts:
        if attempt.instance_id in halted:
            outcomes.append(None)
            continue
        if isinstance(attempt, Rejected):
            outcome: Outcome = attempt
        else:
            outcome = sheet.repeat(attempt) or sheet.fire(attempt)
        if halting and isinstance(outcome, Rejected):
            halted.add(attempt.instance_id)
        outcomes.append(outcome)
    yield from sheet.append()
    return outcomes


def fire_all(context: Context, fires: Sequence[FireAttempt]) -> Plan[list[str]]:
    """Write all of the fires or, raising the first refusal with its index, none.

    Idempotency keys answer for the whole: all known gives the first answers, some is a conflict.
    """
    sheet = yield from _open_sheet(context, fires)
    repeated = bool(sheet.answers)
    states: list[str] = []
    for index, fire in enumerate(fires):
        outcome = sheet.repeat(fire)
        if outcome is None:
            outcome = _left_out(fire) if repeated else sheet.fire(fire)
        if isinstance(outcome, Rejected):
            outcome.index = index
            raise outcome
        states.append(outcome)
    yield from sheet.append()
    return states


def _left_out(fire: FireAttempt) -> Rejected:
    return IdempotencyConflict(
        f"others of these fires were done before, but this one on `{fire.instance_id}` was not",
        idempotency_key=fire.idempotency_key,
        instance_id=fire.instance_id,
    )


class _Standing(NamedTuple):
    """Where an instance stands in the middle of a plan, and the digest its next entry follows."""

    machine: Machine
    snapshot: Snapshot
    head: bytes


def _open_sheet(context: Context, fires: Sequence[FireAttempt]) -> Plan["_Sheet"]:
    """Read what the fires are decided on: where their instances stand, and answers given before."""
    tenant = context.tenant
    ids = {fire.instance_id: root_of(fire.instance_id) for fire in fires}
    rows = yield Statement("read_snapshot", [(tenant, root, id) for id, root in ids.items()])
    machines = yield from context.machines.fetch({row[1] for row in rows})
    sheet = _Sheet(context)
    for id, digest, state, version, head, begun in rows:
        snapshot = Snapshot(id, state, version, from_microseconds(begun))
        sheet.standings[id] = _Standing(machines[digest], snapshot, head)
    keys = [
        (tenant, ids[fire.instance_id], fire.instance_id, fire.idempotency_key)
        for fire in fires
        if fire.idempotency_key is not None
    ]
    if keys:
        for id, key, request, state in (yield Statement("read_keyed_entry", keys)):
            sheet.answers[id, key] = Answer(state, request)
    return sheet


class _Sheet:
    """The working sheet of one plan.

    It holds where instances stand now, the answers that idempotency keys have, and the rows owed to
    the record.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.now: datetime = context.clock()
        self.standings: dict[str, _Standing] = {}
        self.answers: dict[tuple[str, str], Answer] = {}
        self.entries: list[Row] = []
        self.payloads: list[Row] = []

    def repeat(self, fire: FireAttempt) -> Outcome | None:
        """Give the answer that the fire's key already had, if any."""
        key = fire.idempotency_key
        if key is None:
            return None
        answer = self.answers.get((fire.instance_id, key))
        return answer and answer.repeat(fire.request_digest, key, fire.instance_id)

    def fire(self, fire: FireAttempt) -> Outcome:
        """Decide one fire, and owe its rows."""
        id, request, new_id, key, request_digest = fire
        standing = self.standings.get(id)
        if standing is None:
            return not_known(id)
        machine, snapshot, head = standing
        limits = self.context.limits
        try:
            entry, after = decide(
                machine, snapshot, request, now=self.now, new_id=new_id, limits=limits
            )
        except Rejected as refusal:
            return refusal
        root = root_of(id)
        row = self._row(root, entry, key, request_digest)
        digest = entry_digest(head, id, row)
        self.entries.append((self.context.tenant, root, id, *row[:-1], digest))
        self.standings[id] = _Standing(machine, after, digest)
        if key is not None and request_digest is not None:
            self.answers[id, key] = Answer(after.state, request_digest)
        return after.state

    def _row(
        self, root: str, entry: Entry, key: str | None, request_digest: bytes | None
    ) -> HistoryRow:
        (
            entry_id,
            number,
            origin,
            target,
            action,
            actor,
            at,
            asserted,
            reason,
            correlation,
            causation,
            worker,
        ) = entry
        reason_id = reason_digest = None
        if reason is not None:
            salt, content = self.context.salt(), encode_payload(reason)
            reason_id, reason_digest = entry_id, payload_digest(salt, content)
            self.payloads.append((self.context.tenant, root, reason_id, salt, content))
        return HistoryRow(
            number,
            entry_id,
            origin,
            action,
            target,
            actor,
            to_microseconds(at),
            1 if asserted else None,
            reason_id,
            reason_digest,
            correlation,
            causation,
            worker,
            key,
            request_digest,
            b"",
        )

    def append(self) -> Plan[None]:
        if self.payloads:
            yield Statement("append_payload", self.payloads)
        if self.entries:
            yield Statement("append_entry", self.entries)
