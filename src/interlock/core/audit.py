"""The audit of one instance's records: do they tell a story that its declaration allows?

`Trail` reads the stored rows of one instance in order and reports each broken promise under the
number of the invariant it breaks. It believes nothing: a row may hold anything that somebody with
the file in hand could write. Source: the State Machine atom, "Generation acceptance" (the half that
reads records) and Invariants 1 to 10.

    trail = Trail(machine, genesis)
    for row in rows:
        faults += trail.entry(row)      # or `trail.change(row)`, of what came with it
    faults += trail.close(current_state, next_sequence_number, head_digest)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, ParamSpec

from interlock.core.instant import FIRST, LAST
from interlock.core.machine import Machine, Transition
from interlock.core.record import (
    ChangeRow,
    Genesis,
    HistoryRow,
    change_digest,
    entry_digest,
    genesis_digest,
)
from interlock.core.text import clipped, quoted

P = ParamSpec("P")

INVARIANTS = {
    1: "declaration immutability",
    2: "exactly one current state",
    3: "only declared transitions",
    4: "terminal absorption",
    5: "history append-only and complete",
    6: "history total order",
    7: "replay determinism",
    8: "guard-gating",
    9: "transition attribution completeness",
    10: "instance store durability",
}


class Fault(NamedTuple):
    """A broken promise: which invariant, the entry it shows in (None: the instance), and what."""

    invariant: int
    entry: int | None
    what: str


class Trail:
    """One instance's records, walked from the genesis.

    `state`, `number` and `digest` say where the walk stands: the state it led to, the sequence
    number of the last entry read, and the digest of that or of the last change of data that came
    with it; `ordinal` is the number of the change that would be next. A fault is reported where
    it shows, and the walk goes on from what is stored, so that one broken entry is not reported
    with each that follows.
    """

    __slots__ = ("digest", "genesis", "machine", "number", "ordinal", "state")

    def __init__(self, machine: Machine, genesis: Genesis) -> None:
        self.machine = machine
        self.genesis = genesis
        self.state = machine.initial_state
        self.number = 0
        self.ordinal = 0
        self.digest = genesis.genesis_digest

    def birth(self) -> list[Fault]:
        """Check how the instance began."""
        genesis, faults = self.genesis, []
        for name, value in (("actor_ref", genesis.actor_ref), ("subject_ref", genesis.subject_ref)):
            if value is not None and _blank(value):
                faults.append(Fault(9, None, f"the genesis has a blank {name}"))
        begun = genesis.instantiated_at
        if type(begun) is not int or not FIRST <= begun <= LAST:
            faults.append(Fault(9, None, "the genesis is dated outside the years 1 to 9999"))
        if _digest(genesis_digest, genesis) != genesis.genesis_digest:
            faults.append(Fault(1, None, "the genesis was altered: its digest does not match"))
        return faults

    def entry(self, row: HistoryRow) -> Sequence[Fault]:
        """Check the next entry and step over it."""
        number, transition_id, origin, action, target, actor, fired_at, guard, *_, digest = row
        transition = self.machine.lookup.get((origin, action))
        try:
            sound = (
                transition is not None
                and number == self.number + 1
                and origin == self.state
                and target == transition.to_state
                and guard == (None if transition.guard is None else 1)
                and self.genesis.instantiated_at <= fired_at <= LAST
                and not (not transition_id or transition_id.isspace())
                and not (actor is not None and (not actor or actor.isspace()))
                and digest == entry_digest(self.digest, self.genesis.id, row)
            )
        except (TypeError, AttributeError, UnicodeEncodeError):
            sound = False  # a value of another type than the schema allows
        faults = () if sound else [*self._faults(HistoryRow._make(row), transition)]
        self.state, self.number, self.digest = target, number, digest
        self.ordinal = 0
        return faults

    def change(self, row: ChangeRow) -> list[Fault]:
        """Check the next change of data and step over it."""
        number, ordinal, kind, payload_id, _, digest = row
        entry, faults = number or None, []
        if number != self.number:
            what = f"data changed with entry {clipped(number)}, which is not there"
            return [Fault(5, entry, what)]
        gap = ordinal != self.ordinal
        if gap and ordinal > self.ordinal:
            faults.append(Fault(5, entry, f"change {self.ordinal} of its data is missing"))
        elif gap:
            what = f"the number of a change of data does not rise: {ordinal} after "
            faults.append(Fault(6, entry, f"{what}{self.ordinal - 1}"))
        if kind not in ("event", "patch", "whole"):
            faults.append(Fault(5, entry, f"a change of data is of the kind {quoted(kind)}"))
        if _blank(payload_id):
            faults.append(Fault(5, entry, "a change of data has no payload"))
        if not gap and _digest(change_digest, self.digest, self.genesis.id, row) != digest:
            what = f"change {ordinal} of its data was altered, or does not follow what was before"
            faults.append(Fault(5, entry, f"{what}: its digest differs"))
        self.digest, self.ordinal = digest, ordinal + 1
        return faults

    def _faults(self, row: HistoryRow, transition: Transition | None) -> Iterator[Fault]:
        number, move = (
            row.sequence_number,
            f"{quoted(row.from_state)} --{clipped(row.action)}--> {quoted(row.to_state)}",
        )
        if not isinstance(number, int):
            yield Fault(6, None, f"an entry has the number {quoted(number)}")
            return
        gap = number != self.number + 1
        if number <= self.number:
            yield Fault(
                6, number, f"the sequence number does not rise: {number} after {self.number}"
            )
        elif gap:
            first, last = self.number + 1, number - 1
            missing = f"{first} to {last}" if first < last else f"{last}"
            yield Fault(5, number, f"entry {missing} is missing before this one")
        if row.from_state in self.machine.terminal_states:
            yield Fault(4, number, f"it leaves {quoted(row.from_state)}, which is terminal")
        if transition is None or transition.to_state != row.to_state:
            yield Fault(3, number, f"{move} is not a declared transition")
        else:
            guarded = transition.guard is not None
            if guarded and row.guard_satisfied != 1:
                yield Fault(
                    8, number, f"the guard {quoted(transition.guard)} is not recorded as asserted"
                )
            elif not guarded and row.guard_satisfied is not None:
                yield Fault(
                    8, number, "a guard is recorded as asserted, but the transition has none"
                )
        if not gap and row.from_state != self.state:
            yield Fault(
                7,
                number,
                f"it starts from {quoted(row.from_state)}, but the state was {quoted(self.state)}",
            )
        if _blank(row.transition_id):
            yield Fault(9, number, "it has no transition id")
        if row.actor_ref is not None and _blank(row.actor_ref):
            yield Fault(9, number, "its actor_ref is blank")
        if not isinstance(row.fired_at, int):
            yield Fault(9, number, "it has no time")
        elif row.fired_at < self.genesis.instantiated_at:
            yield Fault(9, number, "it is dated before the instance began")
        elif row.fired_at > LAST:
            yield Fault(9, number, "it is dated after the year 9999")
        if not gap and _digest(entry_digest, self.digest, self.genesis.id, row) != row.entry_digest:
            yield Fault(
                5, number, "it was altered, or does not follow the entry before: its digest differs"
            )

    def close(
        self, current_state: str, next_sequence_number: int, head_digest: bytes
    ) -> list[Fault]:
        """Compare where the walk led with what the instance's row says of itself."""
        faults, last = [], next_sequence_number - 1
        if current_state not in self.machine.states:
            faults.append(
                Fault(2, None, f"the current state {quoted(current_state)} is not a declared state")
            )
        if last > self.number:
            what = f"the history ends at entry {self.number}, but {last} were recorded"
            faults.append(Fault(5, None, f"{what}: its tail is cut"))
        elif last < self.number:
            what = f"the next sequence number is {next_sequence_number} after entry {self.number}"
            faults.append(Fault(6, None, what))
        elif head_digest != self.digest:
            what = "the head digest is not that of the last entry"
            if self.genesis.definition_digest is not None:
                what += ", or of the last change of data"
            faults.append(Fault(5, self.number or None, what))
        if current_state != self.state:
            led = f"but the history leads to {quoted(self.state)}"
            faults.append(Fault(7, None, f"the current state is {quoted(current_state)}, {led}"))
        return faults


def _blank(value: object) -> bool:
    return not isinstance(value, str) or not value or value.isspace()


def _digest(make: Callable[P, bytes], *args: P.args, **kwargs: P.kwargs) -> bytes | None:
    """Make a digest of stored values, or None when their types allow none."""
    try:
        return make(*args, **kwargs)
    except (TypeError, AttributeError, UnicodeEncodeError):
        return None
