"""The formal model of the State Machine atom: a history as a relation, and ten properties of it.

The words are those of the specification's reference model: a `Config` declares `Trans` triples, an
initial state and terminal states; a history is a chain of `Entry` records. A history is seen as its
entries and the relation of which follows which, and a property is a plain predicate over that view.
Nothing here imports the code under test, so that neither can be wrong in the other's favour.

    config = Config(states=("s0", "s1"), transitions=(Trans("s0", "a", "s1"),))
    broken(config, History.of([Entry("s0", "a", "s1", number=1)]))      # []
    broken(config, History.of([Entry("s1", "a", "s0", number=1)]))
    # [head_from_initial, only_declared_transitions]

Source: the State Machine atom, "Formal model" and Invariants 2 to 8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Any, NamedTuple, TypeAlias

INITIAL = "s0"
GENESIS = 0  # the place that every history starts from


class Trans(NamedTuple):
    """A declared transition. Labels are opaque, so it matters only whether there is a guard."""

    from_state: str
    action: str
    to_state: str
    guarded: bool = False

    def __str__(self) -> str:
        return f"{self.from_state} --{self.action}{'!' * self.guarded}--> {self.to_state}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A declaration. `s0` is the initial state of each: another name would change nothing."""

    states: tuple[str, ...]
    transitions: tuple[Trans, ...]
    terminal: frozenset[str] = frozenset()

    def __str__(self) -> str:
        ends = [f"{state} is terminal" for state in sorted(self.terminal)]
        return "; ".join([*map(str, self.transitions), *ends]) or "nothing is declared"

    @property
    def size(self) -> tuple[int, ...]:
        """Say how large it is, for finding the smallest counterexample."""
        guards = sum(trans.guarded for trans in self.transitions)
        return len(self.states), len(self.transitions), guards, len(self.terminal)

    def mapping(self) -> dict[str, Any]:
        """Write it as callers do."""
        return {
            "states": [*self.states],
            "transitions": [
                {"from_state": trans.from_state, "action": trans.action, "to_state": trans.to_state}
                | ({"guard": "g"} if trans.guarded else {})
                for trans in self.transitions
            ],
            "initial_state": INITIAL,
            "terminal_states": sorted(self.terminal),
        }


class Entry(NamedTuple):
    """A history entry, as far as the model looks at one; `asserted` is 1 where a guard was."""

    from_state: str
    action: str
    to_state: str
    number: int
    asserted: int | None = None

    def __str__(self) -> str:
        return f"{self.number}: {self.from_state} --{self.action}--> {self.to_state}"


Entries: TypeAlias = tuple[Entry, ...]
Relation: TypeAlias = frozenset[tuple[int, int]]


class Line(NamedTuple):
    """Places, of which 0 is the genesis and the entries are 1, 2, …; and what follows what."""

    places: range
    successor: Relation

    def after(self, place: int) -> list[int]:
        return [y for x, y in self.successor if x == place]

    def before(self, place: int) -> list[int]:
        return [x for x, y in self.successor if y == place]

    def reached(self, place: int) -> set[int]:
        """Give the places that one or more steps lead to."""
        found: set[int] = set()
        fresh = {place}
        while fresh:
            fresh = {y for x, y in self.successor if x in fresh} - found
            found |= fresh
        return found

    def tails(self) -> list[int]:
        return [place for place in self.places if not self.after(place)]


class History(NamedTuple):
    """The relational view of a history: its entries, and the line that they make."""

    entries: Sequence[Entry]
    line: Line

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "History":
        """See recorded entries as a relation, given in the order in which they were written."""
        return cls(entries, _line(tuple(entry.number for entry in entries)))

    def at(self, place: int) -> Entry:
        return self.entries[place - 1]


@cache
def _line(numbers: tuple[int, ...]) -> Line:
    """One place follows another when its number is one more and it was written later.

    The genesis has the number 0, so the first entry's is 1.
    """
    numbered = [*enumerate((0, *numbers))]
    successor = [(x, y) for (x, one), (y, other) in combinations(numbered, 2) if other == one + 1]
    return Line(range(len(numbered)), frozenset(successor))


# The ten properties. Each is the promise of a check of the reference model, named in its docstring.
# Those of the backbone look at the line alone.

OfLine: TypeAlias = Callable[[Line], bool]
OfHistory: TypeAlias = Callable[[Config, History], bool]


@cache
def at_most_one_successor(line: Line) -> bool:
    """The linear backbone: at most one place follows a place."""
    return all(len(line.after(place)) <= 1 for place in line.places)


@cache
def at_most_one_predecessor(line: Line) -> bool:
    """The linear backbone: a place follows at most one place."""
    return all(len(line.before(place)) <= 1 for place in line.places)


@cache
def no_branching(line: Line) -> bool:
    """The linear backbone: of two places that one leads to, one leads to the other."""
    return all(
        y in line.reached(z) or z in line.reached(y)
        for place in line.places
        for y, z in combinations(line.reached(place), 2)
    )


@cache
def acyclic(line: Line) -> bool:
    """The linear backbone: no place leads back to itself."""
    return all(place not in line.reached(place) for place in line.places)


@cache
def replay_unique_tail(line: Line) -> bool:
    """A_Inv7_ReplayUniqueTail: one place is last, so the current state is determined."""
    return len(line.tails()) == 1


def head_from_initial(_: Config, history: History) -> bool:
    """A_Inv7_HeadFromInitial: what follows the genesis starts at the initial state."""
    return all(history.at(place).from_state == INITIAL for place in history.line.after(GENESIS))


def chain_consistency(_: Config, history: History) -> bool:
    """A_ChainConsistency: an entry starts where the one that it follows ended."""
    return all(
        history.at(x).to_state == history.at(y).from_state
        for x, y in history.line.successor
        if x != GENESIS
    )


def only_declared_transitions(config: Config, history: History) -> bool:
    """A_Inv3_OnlyDeclaredTransitions: every entry corresponds to a declared transition."""
    return all(_declared(config, entry) for entry in history.entries)


def declaration_determinism(config: Config, _: History) -> bool:
    """Declaration determinism: at most one transition for a state and an action."""
    triggers = [trans[:2] for trans in config.transitions]  # from_state, action
    return all(one != other for one, other in combinations(triggers, 2))


def terminal_absorption(config: Config, history: History) -> bool:
    """A_Inv4_TerminalAbsorption: no entry leaves a terminal state."""
    return all(entry.from_state not in config.terminal for entry in history.entries)


BACKBONE: tuple[OfLine, ...] = (
    at_most_one_successor,
    at_most_one_predecessor,
    no_branching,
    acyclic,
    replay_unique_tail,
)
REPLAY: tuple[OfHistory, ...] = (head_from_initial, chain_consistency)
DECLARED: tuple[OfHistory, ...] = (
    only_declared_transitions,
    declaration_determinism,
    terminal_absorption,
)
TEN: tuple[OfLine | OfHistory, ...] = (*BACKBONE, *REPLAY, *DECLARED)


def broken(config: Config, history: History) -> list[OfLine | OfHistory]:
    """List those of the ten that `history` breaks; none when it is lawful."""
    return [
        *(promise for promise in BACKBONE if not promise(history.line)),
        *(promise for promise in (*REPLAY, *DECLARED) if not promise(config, history)),
    ]


# What the reference model leaves out and the code promises all the same.


def guard_recorded(config: Config, history: History) -> bool:
    """Invariant 8: an entry says that a guard was asserted exactly where one is declared."""
    return all(
        entry.asserted == (1 if trans.guarded else None)
        for entry in history.entries
        for trans in config.transitions
        if trans[:3] == entry[:3]
    )


def numbers_rise(history: History) -> bool:
    """Invariant 6: in the order in which entries were written, their sequence numbers rise."""
    numbers = [0, *(entry.number for entry in history.entries)]
    return all(one < other for one, other in pairwise(numbers))


def current_is_tail(history: History, current: str) -> bool:
    """Invariants 2 and 7: the current state is where the tail ended, or the initial state."""
    return all(
        current == (INITIAL if tail == GENESIS else history.at(tail).to_state)
        for tail in history.line.tails()
    )


def next_follows_tail(history: History, next_number: int) -> bool:
    """Invariants 5 and 6: the next sequence number is one more than the tail's."""
    return all(
        next_number == (0 if tail == GENESIS else history.at(tail).number) + 1
        for tail in history.line.tails()
    )


def _declared(config: Config, entry: Entry) -> bool:
    return any(trans[:3] == entry[:3] for trans in config.transitions)  # from, action, to


def lawful(config: Config, entries: Entries) -> bool:
    """Say whether a history keeps the ten properties and records its guards."""
    history = History.of(entries)
    return not broken(config, history) and guard_recorded(config, history)
