"""The transitions of an SCXML document as branches of ours."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from interlock.language.convert.branches import Choices
from interlock.language.convert.result import Definition, Findings
from interlock.language.convert.scxml_actions import Contents, known, run
from interlock.language.convert.scxml_moves import Moves, Way
from interlock.language.convert.scxml_names import EventNames, StateNames
from interlock.language.convert.scxml_tree import OURS, Transition, Tree
from interlock.language.convert.terms import Name, Term, Unreadable


class Data(Protocol):
    """What a data model makes of data, conditions and values.

    Attributes:
        first: by name, the value that each begins with, where it is known.
    """

    first: dict[str, Term | None]

    def parse(self, text: str) -> Term:
        """Read an expression that is assigned."""

    def infer(self, contents: Contents) -> None:
        """Look at everything that is assigned."""

    def declared(self, start: Mapping[str, Term]) -> Definition:
        """Declare the data, by what it holds once the first states are entered."""

    def condition(self, transition: Transition) -> Term | None:
        """Read the condition of a transition, if it has one."""

    def when(self, term: Term, path: Callable[[str], str]) -> tuple[Any, str | None]:
        """Write a condition, and the label of a guard that stands beside it."""

    def expression(self, term: Term) -> str:
        """Write a value."""

    def field(self, name: str) -> str:
        """Give the name of a field."""


class Branches:
    """Writes what states do on a trigger."""

    def __init__(
        self,
        tree: Tree,
        data: Data,
        states: StateNames,
        events: EventNames,
        moves: Moves,
        findings: Findings,
        step: Definition | None,
    ) -> None:
        self._tree = tree
        self._data = data
        self._states = states
        self._events = events
        self._moves = moves
        self._findings = findings
        self._step = step
        self._choices = Choices(findings)

    def write(self, transitions: list[Transition], trigger: str) -> Any:
        """Write transitions of one trigger: the first that may be taken is."""
        branches = [branch for one in transitions for branch in self._written(one)]
        excluding = f"{OURS} exclusive"
        if len(branches) > 1 and all(one.element.get(excluding) for one in transitions):
            return branches
        return self._choices.write(branches, trigger, transitions[0].mark)

    def _written(self, transition: Transition) -> list[Definition]:
        """Write a transition; as several when what is assigned depends on the states it leaves."""
        condition = self._data.condition(transition)
        branch: Definition = {}
        if transition.targets:
            branch["to"] = one_or_all([self._states.paths[one] for one in transition.targets])
        hooks = self._events.hooks(self._moves.block(transition), transition.mark)
        if self._step and not transition.targets:
            hooks.append(self._step)
        if hooks:
            branch["do"] = hooks
        if name := transition.element.get(f"{OURS} name"):
            branch["name"] = name
        source = transition.source
        if (
            transition.internal
            and transition.targets
            and source.kind == "state"
            and all(target.is_in(source) for target in transition.targets)
        ):
            branch["internal"] = True
        return [self._one_way(branch, transition, condition, way) for way in self._ways(transition)]

    def _ways(self, transition: Transition) -> list[Way]:
        try:
            return self._moves.ways(transition)
        except Unreadable as fault:
            self._findings.refuse("assign-on-the-way", str(fault), transition.mark)
            return [Way(None, [])]

    def _one_way(
        self, branch: Definition, transition: Transition, condition: Term | None, way: Way
    ) -> Definition:
        # Another region may set the same name in the same move, before this one does.
        in_region = any(above.kind == "parallel" for above in transition.source.around())
        before = {} if in_region else known(condition)
        try:
            conditions = self._conditions(condition, way, transition)
            after = run(way.statements, before)
            sets = {
                self._data.field(name): self._data.expression(term)
                for name, term in after.items()
                if term != before.get(name, Name(name))
            }
        except Unreadable as fault:
            self._findings.refuse("expression", str(fault), transition.mark)
            return branch
        return {**branch, **conditions, **({"set": sets} if sets else {})}

    def _conditions(self, condition: Term | None, way: Way, transition: Transition) -> Definition:
        when: Any = None
        guard: str | None = None
        if condition is not None:
            when, guard = self._data.when(condition, lambda id: self._path(id, transition))
        parts = [part for part in (when, way.among) if part is not None]
        made: Definition = {}
        if parts:
            made["when"] = parts[0] if len(parts) == 1 else {"all": parts}
        return made if guard is None else {**made, "guard": guard}

    def _path(self, id: str, transition: Transition) -> str:
        state = self._tree.states.get(id)
        if state is not None:
            return self._states.paths[state]
        message = f"a condition asks for the state `{id}`, which there is not"
        self._findings.refuse("unknown-state", message, transition.mark)
        return id


def one_or_all(texts: list[str]) -> Any:
    return texts[0] if len(texts) == 1 else texts
