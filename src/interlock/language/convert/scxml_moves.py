"""What an SCXML transition assigns on its way: out of states, itself, into states.

Which states those are is what the algorithm of our own machines says of the same tree. Where it
depends on the states that are left, a transition is written as several, each for some of them.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

from interlock.language.chart import State as OurState
from interlock.language.chart import Transition as OurTransition
from interlock.language.chart import Trigger, read_chart
from interlock.language.convert.paths import written
from interlock.language.convert.result import Definition
from interlock.language.convert.scxml_actions import Block, Contents, Statement
from interlock.language.convert.scxml_tree import State, Transition
from interlock.language.convert.terms import Unreadable
from interlock.language.steps import Configuration, Step, start, step

MAX_CONFIGURATIONS = 256
MAX_WAYS = 16  # ways out of a state that assign differently


class Way(NamedTuple):
    """What is assigned on one way, and, if that is not always so, in which states."""

    among: Any
    statements: list[Statement]


class Moves:
    """Follows the transitions of a document through the tree that was made of it.

    Args:
        skeleton: the machine document, with no transitions yet.
        paths: of the states in it.

    Raises:
        Hidden: the document cannot name one of its states.
    """

    def __init__(
        self, skeleton: Definition, paths: Mapping[State, str], contents: Contents
    ) -> None:
        self._chart = read_chart(written(skeleton), lambda *_: None)
        self._paths = paths
        self._contents = contents
        self._from = {path: state for state, path in paths.items()}
        self._exits = any(block.statements for block in contents.exit.values())
        self._entries = any(block.statements for block in contents.entry.values())

    def block(self, transition: Transition) -> Block:
        return self._contents.moves[transition]

    def at_start(self) -> list[Statement]:
        """List what is assigned on the way into the first states."""
        return self._on_entry(start(self._chart.root))

    def ways(self, transition: Transition) -> list[Way]:
        """List what is assigned on the way, with the states that it depends on, if it does.

        Raises:
            Unreadable: it depends on too much, or on what a history state remembers.
        """
        own = self._contents.moves[transition].statements
        if not transition.targets or not (self._exits or self._entries):
            return [Way(None, own)]
        source = self._chart.states[self._paths[transition.source]]
        move = OurTransition(
            source=source,
            trigger=Trigger("always"),
            targets=tuple(self._chart.states[self._paths[one]] for one in transition.targets),
            label="",
            where=(),
            internal=transition.internal,
        )
        ways: list[tuple[list[Statement], list[Configuration]]] = []
        # What is entered does not depend on what was active, so one configuration is enough for it.
        for configuration in self._within(source) if self._exits else [(source,)]:
            statements = self._along(configuration, move, own)
            for known, configurations in ways:
                if known == statements:
                    configurations.append(configuration)
                    break
            else:
                ways.append((statements, [configuration]))
        if len(ways) > MAX_WAYS:
            raise Unreadable("what is assigned depends on too many states")
        if len(ways) == 1:
            return [Way(None, ways[0][0])]
        return [Way(_among(active), statements) for statements, active in ways]

    def _along(
        self, configuration: Configuration, move: OurTransition, own: list[Statement]
    ) -> list[Statement]:
        asked: list[OurState] = []

        def recall(history: OurState) -> None:
            asked.append(history)

        found = step(configuration, (move,), recall)
        if any(self._assigns_inside(history.parent) for history in asked):
            raise Unreadable("what is assigned on entry depends on a history state")
        left = [self._from[state.path] for state in found.left]
        out = [one for state in left for one in self._contents.exit[state].statements]
        return [*out, *own, *self._on_entry(found)]

    def _assigns_inside(self, around: OurState | None) -> bool:
        return around is not None and any(
            self._contents.entry[self._from[path]].statements
            for path, state in self._chart.states.items()
            if state.is_in(around)
        )

    def _on_entry(self, found: Step) -> list[Statement]:
        entered = [self._from[state.path] for state in found.entered]
        return [one for state in entered for one in self._contents.entry[state].statements]

    def _within(self, source: OurState) -> list[Configuration]:
        """List the configurations in which a state is active."""
        inner = _configurations(source)
        around = source
        for outer in source.around():
            if outer.kind == "parallel":
                rest = [r for r in outer.children if r is not around and r.kind != "history"]
                inner = _joined([inner, *map(_configurations, rest)])
            around = outer
        return [tuple(sorted(one, key=lambda state: state.order)) for one in inner]


def _configurations(state: OurState) -> list[Configuration]:
    """List the sets of innermost states that can be active inside a state."""
    regions = [child for child in state.children if child.kind != "history"]
    if not regions:
        return [(state,)]
    parts = [_configurations(region) for region in regions]
    if state.kind == "parallel":
        return _joined(parts)
    return _bounded([one for part in parts for one in part])


def _joined(parts: Iterable[list[Configuration]]) -> list[Configuration]:
    found: list[Configuration] = [()]
    for part in parts:
        found = _bounded([one + two for one, two in product(found, part)])
    return found


def _bounded(found: list[Configuration]) -> list[Configuration]:
    if len(found) > MAX_CONFIGURATIONS:
        raise Unreadable("what is assigned depends on too many states")
    return found


def _among(configurations: list[Configuration]) -> Any:
    """Write that one of these sets of states is active."""
    sets: list[Any] = []
    for configuration in configurations:
        parts = [{"in": state.path} for state in configuration]
        sets.append(parts[0] if len(parts) == 1 else {"all": parts})
    return sets[0] if len(sets) == 1 else {"any": sets}
