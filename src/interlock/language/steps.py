"""How a machine with nested and parallel states moves: from one configuration to the next.

A configuration is the active states without inner ones, in their order. What is left and what is
entered by a set of transitions follows the algorithm of SCXML (W3C recommendation, appendix D),
which statecharts have in common; a history state gives what `recall` says.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from interlock.language.chart import Hook, State, Transition, first_place

Configuration: TypeAlias = tuple[State, ...]
#: What a history state remembers: the states that were active where it looks; None before that.
Place: TypeAlias = "tuple[State, ...] | None"
Recall: TypeAlias = Callable[[State], Place]


@dataclass(slots=True)
class Step:
    """What one set of transitions comes to.

    Attributes:
        left, entered: states, in the order in which their hooks are called.
        remembered: what each history state remembers from now on.
    """

    after: Configuration
    left: tuple[State, ...]
    entered: tuple[State, ...]
    remembered: dict[State, tuple[State, ...]]

    @property
    def leaving(self) -> tuple[Hook, ...]:
        """Give what is called when states are left, in order."""
        return tuple(hook for state in self.left for hook in state.on_exit)

    @property
    def entering(self) -> tuple[Hook, ...]:
        """Give what is called when states are entered, in order."""
        return tuple(hook for state in self.entered for hook in state.on_enter)


def active(configuration: Configuration) -> set[State]:
    """Give every active state, those around others included."""
    found = set(configuration)
    for state in configuration:
        found.update(state.around())
    return found


def start(root: State) -> Step:
    """Enter a machine for the first time."""
    entering = _Entering(lambda _: None)
    entering.add(root)
    return _entered(entering, frozenset(), (), {})


def step(configuration: Configuration, taken: Sequence[Transition], recall: Recall) -> Step:
    """Take transitions that do not conflict."""
    now = active(configuration)
    leaving = set[State]()
    for transition in taken:
        leaving |= left_by(transition, configuration)
    left = sorted(leaving, key=lambda state: -state.order)
    remembered = {
        history: _to_remember(history, configuration, now)
        for state in left
        for history in state.children
        if history.kind == "history"
    }

    def recalled(history: State) -> Place:
        return remembered.get(history) or recall(history)

    entering = _Entering(recalled)
    for transition in taken:
        if not transition.targets:
            continue
        for target in transition.targets:
            entering.add(target)
        domain = _domain(transition)
        for target in entering.meant(transition.targets):
            entering.add_around(target, domain)
    stays = now - leaving
    return _entered(entering, stays, tuple(left), remembered)


def left_by(transition: Transition, configuration: Configuration) -> set[State]:
    """Give the states that a transition leaves."""
    if not transition.targets:
        return set()
    domain = _domain(transition)
    return {state for state in active(configuration) if state.is_in(domain)}


def _domain(transition: Transition) -> State:
    """Give the innermost compound state that a transition neither leaves nor enters."""
    source, targets = transition.source, transition.targets
    inner = all(target.is_in(source) for target in targets)
    if transition.internal and inner and source.kind == "compound":
        return source
    for state in source.around():
        if state.kind == "compound" and all(target.is_in(state) for target in targets):
            return state
    return source  # the root's own


def _to_remember(
    history: State, configuration: Configuration, now: Iterable[State]
) -> tuple[State, ...]:
    parent = history.parent
    if history.deep:
        return tuple(state for state in configuration if parent and state.is_in(parent))
    return in_order(state for state in now if state.parent is parent)


def _entered(
    entering: "_Entering",
    stays: Iterable[State],
    left: tuple[State, ...],
    remembered: dict[State, tuple[State, ...]],
) -> Step:
    now = {*stays, *entering.states}
    around = {state.parent for state in now}
    leaves = [state for state in now if state not in around]
    new = [state for state in entering.states.difference(stays) if state.path]
    return Step(in_order(leaves), left, in_order(new), remembered)


def in_order(states: Iterable[State]) -> tuple[State, ...]:
    return tuple(sorted(states, key=lambda state: state.order))


class _Entering:
    """Gathers the states to enter."""

    def __init__(self, recall: Recall) -> None:
        self.states: set[State] = set()
        self._recall = recall

    def add(self, state: State) -> None:
        """Add a state and what is entered within it."""
        if state.kind == "history":
            targets = self.meant([state])
            for target in targets:
                self.add(target)
            for target in targets:  # only now: a region that one of them is in needs no other
                self.add_around(target, state.parent or target)
            return
        if state in self.states and state.kind != "compound":
            return
        self.states.add(state)
        if state.kind == "compound":
            self._add_initial(state)
        elif state.kind == "parallel":
            for region in state.children:
                if region.kind != "history" and not self._has_within(region):
                    self.add(region)

    def add_around(self, state: State, domain: State) -> None:
        """Add the states around one, up to a domain, and the other regions of those."""
        for outer in state.around():
            if outer is domain:
                return
            self.states.add(outer)
            if outer.kind == "parallel":
                for region in outer.children:
                    if region.kind != "history" and not self._has_within(region):
                        self.add(region)

    def meant(self, targets: Sequence[State]) -> list[State]:
        """Give the states that targets stand for, which a history state is not."""
        found: list[State] = []
        for target in targets:
            if target.kind != "history":
                found.append(target)
                continue
            place = self._recall(target)
            found += place if place is not None else self.meant(first_place(target))
        return found

    def _add_initial(self, state: State) -> None:
        if self._has_within(state, itself=False):
            return
        for target in state.initial:
            self.add(target)
        for target in self.meant(state.initial):
            self.add_around(target, state)

    def _has_within(self, region: State, *, itself: bool = True) -> bool:
        return (itself and region in self.states) or any(s.is_in(region) for s in self.states)
