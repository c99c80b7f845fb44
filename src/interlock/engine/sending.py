"""The plan of a fire of an engine: one event, or one timer, from what is known to what is written.

It is decided on what is known of the instance, and written only if that is still so; where hooks
or guards in Python take part, the row is locked first.
"""

from collections.abc import Mapping, Sequence

from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds
from interlock.core.machine import Snapshot
from interlock.core.payload import canonical, decode_payload
from interlock.core.rejection import IdempotencyConflict, InvalidRequest, Rejected
from interlock.core.text import Limits, quoted
from interlock.engine.asked import Asked
from interlock.engine.memory import recall
from interlock.engine.program import Program
from interlock.engine.running import Registry, Run
from interlock.store.attempt import FireAttempt
from interlock.store.context import Context, Written
from interlock.store.plan import Plan, Statement
from interlock.store.read import find_attempts, not_known
from interlock.store.standings import Standing


def send(
    registry: Registry,
    context: Context,
    attempts: Sequence[FireAttempt],
    known: Mapping[str, Standing],
    *,
    held: bool = False,
    again: bool = False,
    **_how: bool,
) -> Plan[Written]:
    """Carry out one event or timer; the outcome of a timer that leads nowhere is empty.

    Args:
        known, held, again: as of `store.fire`.
    """
    (attempt,) = attempts
    id, request, what = attempt.instance_id, attempt.request, attempt.asked
    registry.check_not_moving(id)
    standing = None if held or attempt.idempotency_key is not None else known.get(id)
    fresh = standing is None or standing.memory is None
    if fresh:
        standing = yield from find(context, id, held=held)
    assert standing is not None
    program = yield from registry.program(standing.definition or "")
    if again and (done := (yield from find_attempts(context.tenant, [attempt]))):
        return Written([done[attempt.own_id]], {id: kept(standing)})
    if attempt.idempotency_key is not None:
        answer = yield from _answered(context, attempt, program)
        if answer is not None:
            return Written([answer], {})
    while True:
        state = standing.snapshot.state
        # A timer too: its own row is held after that of its instance, as events hold them.
        calls = program.may_call(state, what.trigger, what.owner)
        if not held and (calls or what.armed_at is not None):
            standing = yield from _lock(context, standing)
            held = fresh = True
        run = Run(registry, context, program, standing, request)
        try:
            if what.armed_at is not None and not (yield from run.is_due(what)):
                return Written([""], {id: kept(standing)})
            branch = yield from run.decide(what)
            break
        except Rejected:
            if fresh:
                raise
        standing = yield from find(context, id, held=True)
        held = fresh = True
    if what.armed_at is not None:
        yield from run.spend(what)
    if branch is None:
        return Written([""], {id: kept(standing)})
    yield from run.take(branch, run.payload, attempt)
    yield from run.settle()
    return Written([run.standing.snapshot.state], {id: kept(run.standing)})


def kept(standing: Standing) -> Standing:
    """Give what a process keeps of a standing: a large memory only while it is in use."""
    return standing if standing.memory.is_small else standing._replace(memory=None)


def find(context: Context, id: str, *, held: bool) -> Plan[Standing]:
    """Read where an instance stands and what its engine knows of it.

    Raises:
        NotKnown: there is none.
        InvalidRequest: no engine began it.
    """
    key = (context.tenant, root_of(id), id)
    rows = yield Statement("lock_snapshot" if held else "read_snapshot", [key])
    if not rows:
        raise not_known(id)
    ((_, digest, state, version, head, begun, definition),) = rows
    if definition is None:
        what = f"{quoted(id)} was begun without an engine; fire its actions with the store"
        raise InvalidRequest(what, argument="id")
    machines = yield from context.machines.fetch([digest])
    changes = yield Statement("read_changes", [(*key, version - 1)])
    memory = recall((kind, content) for _, kind, content in changes)
    snapshot = Snapshot(id, state, version, from_microseconds(begun))
    return Standing(machines[digest], snapshot, head, key[1], definition, memory)


def _lock(context: Context, known: Standing) -> Plan[Standing]:
    """Lock an instance; what is known of it is kept if it has not moved."""
    id = known.snapshot.instance_id
    key = (context.tenant, known.root, id)
    rows = yield Statement("lock_snapshot", [key], calls=True)
    if rows and rows[0][4] == known.head:
        return known
    return (yield from find(context, id, held=True))


def _answered(context: Context, attempt: FireAttempt, program: Program) -> Plan[str | None]:
    """Give the answer that a key has had, if any.

    Raises:
        IdempotencyConflict: it was used for another request.
    """
    id, key = attempt.instance_id, attempt.idempotency_key
    rows = yield Statement("read_keyed_send", [(context.tenant, root_of(id), id, key)])
    if not rows:
        return None
    ((state, digest, reason, content, payload_id),) = rows
    why, what = attempt.request.reason, attempt.asked
    alike = digest == attempt.request_digest
    if why is not None and reason is not None:
        alike = alike and decode_payload(reason) == why
    if payload_id is None or content is not None:  # of one that was destroyed nothing can be said
        brought = decode_payload(content) if content is not None else {}
        alike = alike and _brings(program, what, context.limits, brought)
    if not alike:
        raise IdempotencyConflict(
            f"the idempotency key {quoted(key or '')} was used before, for another request",
            idempotency_key=key,
            instance_id=id,
        )
    answer: str = state
    return answer


def _brings(program: Program, what: Asked, limits: Limits, brought: object) -> bool:
    """Whether an event brings what one brought before."""
    try:
        payload = program.payload(what.trigger, what.payload, limits)
    except InvalidRequest:
        return False
    return canonical(payload) == canonical(brought)
