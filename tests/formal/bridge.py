"""The code under test as the model sees it.

`calls` drives an engine through everything that can be asked of it. `readings` has the auditor and
the replay read histories, lawful or not; they are stored with right digests, so that no digest
gives them away. Each takes the code to run as an argument, for the buggy twins of `twins.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from interlock.core import entry as core
from interlock.core.audit import Trail
from interlock.core.declaration import check_declaration
from interlock.core.instant import to_microseconds
from interlock.core.machine import (
    Decision,
    Machine,
    Request,
    Snapshot,
    compile_machine,
    decide,
    replay,
)
from interlock.core.record import Genesis, HistoryRow, entry_digest, genesis_digest
from interlock.core.rejection import Rejected
from tests.formal.model import Config, Entries, Entry
from tests.formal.scope import ACTIONS

NOW = datetime(2026, 5, 1, tzinfo=UTC)
FLAGS: tuple[Any, ...] = (None, False, True, 1)  # 1 counts as true elsewhere, and must not here
REQUESTS = [
    Request(action, guard_satisfied=flag) for action in (*ACTIONS, "undeclared") for flag in FLAGS
]

Engine: TypeAlias = Callable[[Machine, Snapshot, Request], Decision]
Replay: TypeAlias = Callable[[Machine, Iterable[core.Entry]], str]


def machine_of(config: Config) -> Machine:
    return compile_machine(config.mapping())


def admits(config: Config) -> bool:
    """Say whether the door lets a declaration in."""
    return not check_declaration(config.mapping())


def engine(machine: Machine, snapshot: Snapshot, request: Request) -> Decision:
    """Decide: the real one."""
    return decide(machine, snapshot, request, now=NOW, new_id=f"t{snapshot.version}")


class Call(NamedTuple):
    """One fire that was tried: where the instance stood, what was asked, what came of it.

    Attributes:
        before: the history so far, which led to `state`.
        outcome: the history and the snapshot after it, or the word of the refusal.
    """

    before: Entries
    state: str
    request: Request
    outcome: tuple[Entries, Snapshot] | str


def calls(config: Config, length: int, engine: Engine = engine) -> Iterator[Call]:
    """Make every request in every situation that fewer than `length` fires lead to."""
    machine = machine_of(config)
    level: dict[Entries, Snapshot] = {(): Snapshot("i", machine.initial_state, 1, NOW)}
    for _ in range(length):
        reached: dict[Entries, Snapshot] = {}
        for before, snapshot in level.items():
            for request in REQUESTS:
                outcome: tuple[Entries, Snapshot] | str
                try:
                    entry, after = engine(machine, snapshot, request)
                except Rejected as refusal:
                    outcome = refusal.reason
                else:
                    outcome = (*before, _seen(entry)), after
                    reached[outcome[0]] = after
                yield Call(before, snapshot.state, request, outcome)
        level = reached


def produced(config: Config, length: int, engine: Engine = engine) -> Iterator[Entries]:
    """List the histories of at most `length` entries that an engine makes, shortest first."""
    made: dict[Entries, None] = {(): None}
    for call in calls(config, length, engine):
        if not isinstance(call.outcome, str):
            made[call.outcome[0]] = None
    yield from made


def _seen(entry: core.Entry) -> Entry:
    flag = entry.guard_satisfied
    asserted = None if flag is None else int(flag is True)
    return Entry(entry.from_state, entry.action, entry.to_state, entry.sequence_number, asserted)


class Reading(NamedTuple):
    """What came of reading one history.

    Attributes:
        found: the invariants that the audit reports as broken.
        led_to: the state that the replay leads to, or None where it refuses.
    """

    entries: Entries
    found: frozenset[int]
    led_to: str | None


def readings(
    config: Config,
    entries: Sequence[Entry],
    length: int,
    *,
    past_faults: bool = True,
    trail: type[Trail] = Trail,
    replay: Replay = replay,
) -> Iterator[Reading]:
    """Read every history of at most `length` of the `entries`, lawful or not, shortest first.

    The instance claims to stand where its last entry says. A walk that several histories begin with
    is walked once.

    Args:
        past_faults: False does not lengthen a history in which a fault was found.
    """
    machine = machine_of(config)
    genesis = _genesis(machine)
    start = trail(machine, genesis)
    born = frozenset(fault.invariant for fault in start.birth())
    level: list[tuple[Entries, Trail, frozenset[int]]] = [((), start, born)]
    for size in range(length + 1):
        longer = []
        for history, walk, known in level:
            faults = walk.close(walk.state, walk.number + 1, walk.digest)
            found = known.union(fault.invariant for fault in faults)
            yield Reading(history, found, _replayed(machine, history, replay))
            if size < length and (past_faults or not found):
                for entry in entries:
                    further = trail(machine, genesis)
                    further.state, further.number = walk.state, walk.number
                    further.digest = walk.digest
                    more = known.union([fault.invariant for fault in _read(further, entry)])
                    longer.append(((*history, entry), further, more))
        level = longer


def walked(config: Config, entries: Entries) -> Trail:
    """Give the auditor that has read a history."""
    machine = machine_of(config)
    trail = Trail(machine, _genesis(machine))
    for entry in entries:
        _read(trail, entry)
    return trail


def _genesis(machine: Machine) -> Genesis:
    unsigned = Genesis("i", machine.digest, to_microseconds(NOW), *(None,) * 7, b"")
    return unsigned._replace(genesis_digest=genesis_digest(unsigned))


def _read(trail: Trail, entry: Entry) -> Sequence[Any]:
    row = _unsigned(entry)
    return trail.entry(HistoryRow(*row[:-1], entry_digest(trail.digest, trail.genesis.id, row)))


@cache
def _unsigned(entry: Entry) -> HistoryRow:
    from_state, action, to_state, number, asserted = entry
    return HistoryRow(
        sequence_number=number,
        transition_id=f"t{number}",
        from_state=from_state,
        action=action,
        to_state=to_state,
        actor_ref=None,
        fired_at=to_microseconds(NOW),
        guard_satisfied=asserted,
        reason_id=None,
        reason_digest=None,
        correlation_id=None,
        causation_id=None,
        worker_id=None,
        idempotency_key=None,
        request_digest=None,
        entry_digest=b"",
    )


def _replayed(machine: Machine, entries: Entries, replay: Replay) -> str | None:
    try:
        return replay(machine, [_entry(entry) for entry in entries])
    except ValueError:
        return None


@cache
def _entry(entry: Entry) -> core.Entry:
    from_state, action, to_state, number, asserted = entry
    guard = None if asserted is None else bool(asserted)
    return core.Entry(f"t{number}", number, from_state, to_state, action, None, NOW, guard)
