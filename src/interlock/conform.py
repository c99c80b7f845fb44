"""Conformance: the active halves of the specification's six acceptance checks.

Scratch instances of a declaration are driven through every state and transition that can be
reached, and at each stop the store is asked for what it must do and for what it must refuse. So a
store is tried on the very machine that it is to run; `verify` is the half that reads the records.

    for check in conform(declaration):
        print(check.name, check.probes, check.ok, check.faults)

Source: the State Machine atom, "Generation acceptance".
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

from interlock.core.declaration import declaration_text
from interlock.core.entry import Entry
from interlock.core.machine import Machine, replay
from interlock.core.rejection import OutcomeUnknown, Rejected, StorageFailure
from interlock.core.text import LIMITS, clipped
from interlock.store.attempt import prepare_declaration
from interlock.store.store import Store, open

FAULTS_KEPT = 20  # of each check; a store that is wrong once is often wrong everywhere
PROBES_SHOWN = 200  # probes between two reports of progress
ACTOR = "interlock-conform"

T = TypeVar("T")


class Subject(Protocol):
    """What is asked of a store on trial."""

    def instantiate(self, declaration: Mapping[str, Any], actor_ref: str | None = None) -> str: ...

    def fire(
        self,
        id: str,
        action: str,
        actor_ref: str | None = None,
        guard_satisfied: bool | None = None,
    ) -> str: ...

    def current(self, id: str) -> str: ...

    def history(self, id: str) -> Sequence[Entry]: ...

    def read_declaration(self, id: str) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check tried and found.

    Attributes:
        invariants: the numbers of those that it upholds.
        probes: how many expectations were put to the store.
        failures: how many of them it failed; `faults` says what about the first `FAULTS_KEPT`.
        not_covered: what the declaration has but no instance can be brought to.
    """

    name: str
    invariants: tuple[int, ...]
    probes: int
    failures: int
    faults: tuple[str, ...]
    not_covered: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every expectation was met."""
        return self.failures == 0

    def as_dict(self) -> dict[str, Any]:
        """Give the check as JSON-like values."""
        return {"ok": self.ok, **asdict(self)}


def _in_memory() -> Store:
    return open("sqlite://")


def conform(
    declaration: Mapping[str, Any],
    *,
    open_store: Callable[[], AbstractContextManager[Subject]] = _in_memory,
    on_probe: Callable[[int], None] | None = None,
) -> list[Check]:
    """Try a store on scratch instances of a declaration; give the six checks.

    Args:
        open_store: opens the store on trial; one in memory of our own, when left out. The scratch
            instances stay in it.
        on_probe: told now and then how many probes have been made.

    Raises:
        InvalidDeclaration: there is nothing to try.
        StorageFailure, OutcomeUnknown: the store cannot be used.
    """
    machine = prepare_declaration(declaration, LIMITS).machine
    made = 0

    def count() -> None:
        nonlocal made
        made += 1
        if on_probe and made % PROBES_SHOWN == 0:
            on_probe(made)

    checks = []
    with open_store() as store:
        for name, invariants, check in _CHECKS:
            trial = _Trial(store, declaration, machine, count)
            not_covered = _run(check, trial)
            checks.append(
                Check(
                    name=name,
                    invariants=invariants,
                    probes=trial.probes,
                    failures=trial.failures,
                    faults=tuple(trial.faults),
                    not_covered=tuple(not_covered),
                )
            )
    return checks


def _run(check: Callable[["_Trial"], list[str]], trial: "_Trial") -> list[str]:
    try:
        return check(trial)
    except (StorageFailure, OutcomeUnknown):
        raise
    except Rejected as refusal:
        trial.expect(False, f"a call that had to succeed was refused {refusal.reason}: {refusal}")
        return []


class _Step(NamedTuple):
    """A declared transition."""

    from_state: str
    action: str
    to_state: str
    guard: str | None

    def __str__(self) -> str:
        return f"`{clipped(self.action)}` from `{clipped(self.from_state)}`"


class _Answer(NamedTuple):
    """What came of a fire: the new state, or the reason word of the refusal."""

    state: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return f"refused {self.reason}" if self.state is None else f"gave `{clipped(self.state)}`"


class _Stuck(Exception):
    """An instance could not be brought to where a probe was to be made."""


class _Trial:
    """One check at work: its scratch instances, and what it has found.

    Attributes:
        fired: for each instance that was begun, how many fires on it succeeded.
    """

    def __init__(
        self,
        store: Subject,
        declaration: Mapping[str, Any],
        machine: Machine,
        count: Callable[[], None],
    ) -> None:
        self.store = store
        self.declaration = declaration
        self.machine = machine
        self.steps = [
            _Step(state, action, *transition)
            for (state, action), transition in machine.lookup.items()
        ]
        self.ways: dict[str, list[_Step]] = {state: [] for state in machine.states}
        for step in self.steps:
            self.ways[step.from_state].append(step)
        self.reachable = self._reachable()
        own = dict.fromkeys(step.action for step in self.steps)
        self.alphabet = [*own, _foreign(own)]
        self.probes = self.failures = 0
        self.faults: list[str] = []
        self.fired: dict[str, int] = {}
        self._count = count

    def expect(self, holds: bool, fault: str) -> bool:
        """Put down one probe, and what is wrong where it does not hold."""
        self.probes += 1
        self._count()
        if not holds:
            self.failures += 1
            if len(self.faults) < FAULTS_KEPT:
                self.faults.append(fault)
        return holds

    def begin(self) -> str:
        """Begin a scratch instance."""
        id = self.store.instantiate(self.declaration, ACTOR)
        self.fired[id] = 0
        return id

    def answer(self, id: str, action: str, asserted: bool | None = None) -> "_Answer":
        """Fire, and give what came of it."""
        try:
            state = self.store.fire(id, action, ACTOR, asserted)
        except (StorageFailure, OutcomeUnknown):
            raise
        except Rejected as refusal:
            return _Answer(reason=refusal.reason)
        self.fired[id] += 1
        return _Answer(state=state)

    def cross(self, id: str, step: _Step) -> bool:
        """Fire a declared transition from where the instance stands, as it must be possible."""
        return self._answers(str(step), self._fire(id, step), _Answer(state=step.to_state))

    def refuses(
        self, id: str, state: str, action: str, reason: str, asserted: bool | None = None
    ) -> bool:
        """Fire what must be refused and must leave the instance in `state`; say whether it did."""
        tried = f"`{clipped(action)}` from `{clipped(state)}`"
        found = self.answer(id, action, asserted)
        self._answers(tried, found, _Answer(reason=reason))
        after = self.store.current(id)
        moved = f"after {tried}, which {found}, the instance is in `{clipped(after)}`"
        return self.expect(after == state, moved)

    def _answers(self, tried: str, found: "_Answer", wanted: "_Answer") -> bool:
        return self.expect(found == wanted, f"{tried} {found}; it should have been: {wanted}")

    def stops(self, states: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Bring an instance to each of some states; give it and the state."""
        for id, state, _ in self._tour({state: [None] for state in states}):
            yield id, state

    def crossings(self) -> Iterator[tuple[str, _Step]]:
        """Bring an instance to the beginning of each transition; give it and the transition."""
        owed = {state: [*ways] for state, ways in self.ways.items() if ways}
        for id, _, step in self._tour({s: owed[s] for s in owed if s in self.reachable}):
            yield id, step

    def unreachable(self, steps: Sequence[_Step]) -> list[str]:
        """Name those of some transitions that no instance can be brought to."""
        apart = [step for step in steps if step.from_state not in self.reachable]
        return [f"{step}: no way leads there" for step in apart]

    def _fire(self, id: str, step: _Step) -> "_Answer":
        return self.answer(id, step.action, True if step.guard else None)

    def _tour(self, owed: dict[str, list[T]]) -> Iterator[tuple[str, str, T]]:
        """Visit states once for each task owed there, on few instances: the nearest comes next.

        An instance that can reach none of them any more, or on which something went wrong, is left,
        and another begun.
        """
        id = state = ""
        while owed:
            route = self._route(state, owed) if id else None
            if route is None:
                id, state = self.begin(), self.machine.initial_state
                route = self._route(state, owed) or []
            place = route[-1].to_state if route else state
            task = owed[place].pop(0)
            if not owed[place]:
                del owed[place]
            try:
                self._drive(id, route, place)
            except _Stuck as stuck:
                self.expect(False, str(stuck))
                id = ""
                continue
            failures = self.failures
            yield id, place, task
            id, state = (id if self.failures == failures else ""), self.store.current(id)

    def _drive(self, id: str, route: Sequence[_Step], place: str) -> None:
        for step in route:
            found = self._fire(id, step)
            if found != _Answer(state=step.to_state):
                raise _Stuck(f"on the way to `{clipped(place)}`: {step} {found}")
        current = self.store.current(id)
        if current != place:
            where = f"`{clipped(place)}` is in `{clipped(current)}`"
            raise _Stuck(f"an instance that was brought to {where}")

    def _route(self, start: str, goals: Mapping[str, object]) -> list[_Step] | None:
        """Find a shortest way from a state to one of some goals; empty where it is one itself."""
        if start in goals:
            return []
        came: dict[str, _Step] = {}
        waiting = deque([start])
        while waiting:
            for step in self.ways.get(waiting.popleft(), ()):
                if step.to_state in came or step.to_state == start:
                    continue
                came[step.to_state] = step
                if step.to_state in goals:
                    return [*_walk_back(came, start, step.to_state)][::-1]
                waiting.append(step.to_state)
        return None

    def _reachable(self) -> dict[str, None]:
        found = {self.machine.initial_state: None}
        waiting = deque(found)
        while waiting:
            for step in self.ways[waiting.popleft()]:
                if step.to_state not in found:
                    found[step.to_state] = None
                    waiting.append(step.to_state)
        return found


def _walk_back(came: Mapping[str, _Step], start: str, end: str) -> Iterator[_Step]:
    while end != start:
        yield came[end]
        end = came[end].from_state


def _foreign(actions: Mapping[str, object]) -> str:
    """Make up an action that a machine does not have."""
    name = "undeclared"
    while name in actions:
        name += "-action"
    return name


def _declaration_immutable(trial: _Trial) -> list[str]:
    """What was supplied comes back, before and after fires, whatever is done to the copies."""
    store, text = trial.store, declaration_text(trial.declaration)
    supplied: Any = deepcopy(dict(trial.declaration))
    id = store.instantiate(supplied, ACTOR)
    supplied["states"].reverse()
    supplied["transitions"].clear()
    same = declaration_text(store.read_declaration(id)) == text
    trial.expect(same, "a change to the declaration that was supplied changed the instance's")
    crossed = False
    for id, step in trial.crossings():
        before = store.read_declaration(id)
        trial.expect(declaration_text(before) == text, f"before {step} it is not what was supplied")
        before.clear()
        crossed = trial.cross(id, step) or crossed
        after = declaration_text(store.read_declaration(id))
        trial.expect(after == text, f"after {step} the declaration is another")
    return [] if crossed else ["no transition can be fired from the initial state"]


def _only_declared(trial: _Trial) -> list[str]:
    """In every state, undeclared actions are refused, and declared ones lead to their end."""
    terminal = trial.machine.terminal_states
    for id, state in trial.stops([state for state in trial.reachable if state not in terminal]):
        declared = {step.action for step in trial.ways[state]}
        for action in trial.alphabet:
            if action not in declared and not trial.refuses(
                id, state, action, "invalid-transition", True
            ):
                break
    for id, step in trial.crossings():
        trial.cross(id, step)
        after = trial.store.current(id)
        trial.expect(after == step.to_state, f"after {step} the instance is in `{clipped(after)}`")
    return trial.unreachable(trial.steps)


def _terminal_absorbs(trial: _Trial) -> list[str]:
    """In every terminal state every action is refused `terminal`, and nothing is recorded."""
    terminal = [state for state in trial.machine.states if state in trial.machine.terminal_states]
    for id, state in trial.stops([state for state in terminal if state in trial.reachable]):
        before = list(trial.store.history(id))
        for action, asserted in product(trial.alphabet, (None, True)):
            if not trial.refuses(id, state, action, "terminal", asserted):
                break  # it is out
        added = len(trial.store.history(id)) - len(before)
        trial.expect(not added, f"{added} entries were added in `{clipped(state)}`")
    if not terminal:
        return ["the declaration has no terminal state"]
    apart = [state for state in terminal if state not in trial.reachable]
    return [f"terminal state `{clipped(state)}`: no way leads there" for state in apart]


def _history_complete(trial: _Trial) -> list[str]:
    """A fire adds one entry, a refusal none, old ones stay, and replay leads to the state."""
    store, foreign = trial.store, trial.alphabet[-1]
    for id, step in trial.crossings():
        before = list(store.history(id))
        trial.answer(id, foreign, True)
        trial.cross(id, step)
        after = list(store.history(id))
        fires = trial.fired[id]
        trial.expect(len(after) == fires, f"after {step}: {len(after)} entries for {fires} fires")
        kept = after[: len(before)] == before
        trial.expect(kept, f"{step} changed or removed entries that were there before")
        numbers = [entry.sequence_number for entry in after]
        rising = numbers == [*range(1, len(after) + 1)]
        trial.expect(rising, f"after {step} the entries are not numbered 1 to {len(after)}")
        trial.expect(*_replayed(trial.machine, after, store.current(id), step))
    return trial.unreachable(trial.steps)


def _replayed(machine: Machine, entries: list[Entry], state: str, step: _Step) -> tuple[bool, str]:
    try:
        found = replay(machine, entries)
    except ValueError as fault:
        return False, f"after {step} the history cannot be replayed: {fault}"
    what = f"after {step} replay leads to `{clipped(found)}`, but the state is `{clipped(state)}`"
    return found == state, what


def _guards_gate(trial: _Trial) -> list[str]:
    """A guarded transition needs its guard asserted and records it; another needs none."""
    store = trial.store
    for id, step in trial.crossings():
        if step.guard is not None and not _gate_holds(trial, id, step):
            continue  # the instance has gone through it
        if not trial.cross(id, step):
            continue
        entries = store.history(id)
        recorded = entries[-1].guard_satisfied if entries else None
        wanted = True if step.guard else None
        what = f"{step} is recorded with guard_satisfied {recorded}, not {wanted}"
        trial.expect(recorded is wanted, what)
    guarded = [step for step in trial.steps if step.guard is not None]
    if not guarded:
        return ["the declaration has no guarded transition"]
    return trial.unreachable(guarded)


def _gate_holds(trial: _Trial, id: str, step: _Step) -> bool:
    """Try a guarded transition without its guard; say whether the instance stayed where it was."""
    before = len(trial.store.history(id))
    for asserted in (None, False):
        if not trial.refuses(id, step.from_state, step.action, "guard-not-satisfied", asserted):
            return False
    added = len(trial.store.history(id)) - before
    return trial.expect(not added, f"{step} without its guard added {added} entries")


def _entries_declared(trial: _Trial) -> list[str]:
    """Every entry is a transition of the declaration that the instance has."""
    for id, step in trial.crossings():
        trial.cross(id, step)
    for id in trial.fired:
        declaration = trial.store.read_declaration(id)
        declared = {
            (row["from_state"], row["action"], row["to_state"])
            for row in declaration["transitions"]
        }
        for entry in trial.store.history(id):
            move = (entry.from_state, entry.action, entry.to_state)
            what = f"entry {entry.sequence_number} of an instance is not declared: {move}"
            trial.expect(move in declared, what)
    return trial.unreachable(trial.steps)


_CHECKS: tuple[tuple[str, tuple[int, ...], Callable[[_Trial], list[str]]], ...] = (
    ("declaration immutability", (1,), _declaration_immutable),
    ("only declared transitions", (3,), _only_declared),
    ("terminal absorption", (4,), _terminal_absorbs),
    ("history append-only and replay determinism", (5, 6, 7), _history_complete),
    ("guard gating", (8,), _guards_gate),
    ("every entry declared", (3,), _entries_declared),
)
