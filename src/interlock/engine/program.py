"""A definition made ready to run: its branches by what they wait for, its timers and its names."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.machine import Machine
from interlock.core.text import Limits
from interlock.engine.asked import NOTHING, complete
from interlock.language.chart import Hook, Trigger
from interlock.language.condition import Check, tests
from interlock.language.definition import Definition
from interlock.language.duration import parse_duration
from interlock.language.flatten import Branch
from interlock.store.attempt import Declared


class Timer(NamedTuple):
    """What a state waits for as long as it is active.

    Attributes:
        state: the path of that state.
        length: in microseconds; None where it is due at a moment.
    """

    state: str
    name: str
    length: int | None


class Program:
    """A definition, with what is looked up when it runs."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        declaration = definition.declaration
        text = declaration_text(declaration)
        self.declared = Declared(Machine(declaration, declaration_digest(text)), text)
        self._branches: dict[tuple[str, Trigger, str], list[Branch]] = {}
        self._events: dict[str, list[str]] = {}
        self._done: dict[str, list[str]] = {}
        self._timers: dict[str, dict[str, Timer]] = {}
        for branch in definition.flat.branches:
            trigger, owner = branch.trigger, branch.owner
            self._branches.setdefault((branch.from_state, trigger, owner), []).append(branch)
            if trigger.kind == "event":
                _note(self._events, branch.from_state, trigger.name)
            elif trigger.kind == "done":
                _note(self._done, branch.from_state, owner)
            elif trigger.kind == "after":
                timers = self._timers.setdefault(owner, {})
                timers[trigger.name] = Timer(owner, trigger.name, _length(branch))
        for state, owners in self._done.items():
            leaves = definition.flat.leaves[state]
            owners.sort(key=lambda owner, leaves=leaves: _place(owner, leaves))  # type: ignore[misc]
        self._calling = self._find_calling()
        self._may_call: dict[tuple[str, Trigger, str], bool] = {}

    def branches(self, state: str, trigger: Trigger, owner: str = "") -> list[Branch]:
        """Give the branches of which a trigger takes one; a timer or an end is that of a state."""
        return self._branches.get((state, trigger, owner), [])

    def events(self, state: str) -> list[str]:
        """Name the events that lead anywhere from a state."""
        return self._events.get(state, [])

    def automatic(self, state: str) -> Iterator[list[Branch]]:
        """Give what may happen by itself in a state: each a choice, in the order they are tried.

        Of several states that are at their end, the innermost goes first, then the first region.
        """
        if branches := self.branches(state, Trigger("always")):
            yield branches
        for owner in self._done.get(state, ()):
            yield self.branches(state, Trigger("done"), owner)

    def may_call(self, state: str, trigger: Trigger, owner: str = "") -> bool:
        """Whether hooks or guards in Python may be called when something happens in a state."""
        asked = (state, trigger, owner)
        known = self._may_call.get(asked)
        if known is None:
            branches = self.branches(state, trigger, owner)
            known = any(_calls(one) or one.to_state in self._calling for one in branches)
            if branches:
                self._may_call[asked] = known
        return known

    def _find_calling(self) -> set[str]:
        """Find the states in which what is automatic may call something, now or further on."""
        automatic = [
            branch
            for branch in self.definition.flat.branches
            if branch.trigger.kind in ("always", "done")
        ]
        found = {branch.from_state for branch in automatic if _calls(branch)}
        while True:
            more = {b.from_state for b in automatic if b.to_state in found} - found
            if not more:
                return found
            found |= more

    def entered(self, state: str) -> list[str]:
        """Give the paths of the states that are active in a flat state."""
        return sorted(self.definition.flat.active[state])

    def payload(self, trigger: Trigger, given: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
        """Hold what came with an event to what that declares; nothing comes with anything else.

        Raises:
            InvalidRequest: it is not as declared.
        """
        if trigger.kind != "event":
            return {}
        properties = self.definition.events.get(trigger.name, NOTHING)
        return complete("payload", properties, given, limits)

    def timers(self, path: str) -> dict[str, Timer]:
        """Give the timers of a state by its path."""
        return self._timers.get(path, {})

    def is_final(self, state: str) -> bool:
        return state in self.declared.machine.terminal_states

    @property
    def has_timers(self) -> bool:
        return bool(self._timers)

    def hooks(self) -> set[str]:
        """Name every hook that it may call."""
        flat = self.definition.flat
        hooks: list[Hook] = [*flat.hooks]
        for branch in flat.branches:
            hooks += branch.hooks
        return {hook.name for hook in hooks if not hook.raises}

    def guards(self) -> set[str]:
        """Name every guard in Python that it may ask."""
        return {
            test.name
            for branch in self.definition.flat.branches
            for test in tests(branch.when)
            if isinstance(test, Check)
        }


def _note(lists: dict[str, list[str]], state: str, name: str) -> None:
    listed = lists.setdefault(state, [])
    if name not in listed:
        listed.append(name)


def _calls(branch: Branch) -> bool:
    """Whether taking a branch, or asking whether it is open, calls what is registered.

    What is raised may be anything.
    """
    return bool(branch.hooks) or any(isinstance(test, Check) for test in tests(branch.when))


def _length(branch: Branch) -> int | None:
    return parse_duration(branch.trigger.name) if branch.due == branch.trigger.name else None


def _place(owner: str, leaves: tuple[str, ...]) -> tuple[int, int]:
    inside = [leaf.startswith(f"{owner}.") for leaf in leaves]
    return -owner.count("."), inside.index(True)
