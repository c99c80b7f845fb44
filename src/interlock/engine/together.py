"""Events that share a commit: those of callers that wait at the same time, and that call nothing.

Each is carried out as if it were alone, but what it writes is kept back, so that a refusal half-way
leaves nothing behind; then all of it is written, rows of one kind at once. Where an event turns out
to need a hook, a guard in Python, or an instance held, it is left out, and goes alone.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from interlock.core.rejection import Rejected, StorageFailure
from interlock.engine.running import Registry
from interlock.engine.sending import send
from interlock.store.attempt import FireAttempt
from interlock.store.context import Context, Outcome, Written
from interlock.store.plan import Call, Plan, Statement
from interlock.store.standings import Standing

_READING = ("read_", "lock_")  # what names of statements begin with that only read


def send_each(
    registry: Registry,
    context: Context,
    attempts: Sequence[FireAttempt],
    known: Mapping[str, Standing],
    *,
    free: bool = False,
    held: bool = False,
    again: bool = False,
) -> Plan[Written]:
    """Carry out events, each for itself; the outcome of one that is left out is None.

    Args:
        known, free, held, again: as of `store.fire`; an entry that is not free has all refused.
    """
    if len(attempts) == 1 and (held or again):
        return (yield from send(registry, context, attempts, known, held=held, again=again))
    moved: dict[str, Standing] = {}
    outcomes: list[Outcome | None] = []
    owed: dict[str, deque[Statement]] = {}  # by instance
    for attempt in attempts:
        id = attempt.instance_id
        standing = moved.get(id) or known.get(id)
        seen = {} if standing is None else {id: standing}
        keeps = held and id not in moved
        plan = send(registry, context, [attempt], seen, held=keeps, again=again)
        writes: list[Statement] = []
        outcome: Outcome | None = None
        try:
            step = next(plan)
            while not _holds(step, held):
                assert isinstance(step, Statement)
                if not step.name.startswith(_READING):
                    writes.append(step)
                    step = plan.send([])
                    continue
                if id in owed:  # before it is read
                    yield from _write(owed, free=free)
                step = plan.send((yield step))
            plan.close()
        except StopIteration as end:
            written: Written = end.value
            (outcome,) = written.outcomes
            moved |= written.standings
            owed.setdefault(id, deque()).extend(writes)
        except StorageFailure:
            raise
        except Rejected as refusal:
            outcome = refusal.with_traceback(None)
        outcomes.append(outcome)
    yield from _write(owed, free=free)
    return Written(outcomes, moved)


def _holds(step: Statement | Call, held: bool) -> bool:
    """Whether a step needs to hold an instance that nobody holds yet, or calls something."""
    return isinstance(step, Call) or (step.name == "lock_snapshot" and not held)


def _write(owed: dict[str, deque[Statement]], *, free: bool) -> Plan[None]:
    """Write what is owed, that of each instance in its order, and owe nothing any more."""
    queues = [*owed.values()]
    owed.clear()
    while queues := [queue for queue in queues if queue]:
        name = queues[0][0].name
        rows = [row for queue in queues if queue[0].name == name for row in queue.popleft().rows]
        yield Statement("append_unheld_entry" if free and name == "append_entry" else name, rows)
