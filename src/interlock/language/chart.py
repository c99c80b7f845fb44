"""A machine document as a tree of states with its transitions, every name resolved.

Whatever is read here is of its type, for its schema has been asked before; keys may be missing.
What only the tree shows is found here: names of states that are not there, an initial child that is
final, targets that can never be active together, history states that lead to themselves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

from interlock.core.declaration import Path
from interlock.core.text import quoted
from interlock.language.condition import ALWAYS, Condition, read_condition
from interlock.language.names import nearest_hint

Kind: TypeAlias = Literal["atomic", "compound", "parallel", "final", "history"]
TriggerKind: TypeAlias = Literal["event", "always", "after", "done"]

#: Says what is wrong: a code, a sentence, where, and a hint.
Report: TypeAlias = Callable[[str, str, Path, str | None], None]


class Hook(NamedTuple):
    """What is done within a fire: call what is registered under a name, or raise an event."""

    name: str
    raises: bool = False


class Trigger(NamedTuple):
    """What a transition waits for.

    Attributes:
        name: of the event or timer; for `done`, nothing.
    """

    kind: TriggerKind
    name: str = ""


@dataclass(slots=True, eq=False)
class State:
    """A state of the tree.

    Attributes:
        path: its name and those of the states around it, with dots between; the root's is empty.
        order: its place when the tree is walked, parents before children, regions in their order.
        initial: where a compound state begins, or what a history state leads to at first.
        requires: names of the data that must be present while it is active.
        where: its place in the document.
    """

    name: str
    path: str
    kind: Kind
    parent: "State | None"
    where: Path
    deep: bool = False
    order: int = 0
    children: "list[State]" = field(default_factory=list)
    initial: "tuple[State, ...]" = ()
    transitions: "list[Transition]" = field(default_factory=list)
    on_enter: tuple[Hook, ...] = ()
    on_exit: tuple[Hook, ...] = ()
    requires: tuple[str, ...] = ()

    def around(self) -> "Iterator[State]":
        """Give the states around it, the innermost first."""
        state = self.parent
        while state is not None:
            yield state
            state = state.parent

    def is_in(self, other: "State") -> bool:
        """Whether it lies somewhere inside another."""
        return any(state is other for state in self.around())


@dataclass(slots=True, eq=False)
class Transition:
    """One branch: where it leads from a state on a trigger, when, and what it does.

    Attributes:
        targets: where it leads; nowhere, when it stays.
        label: what tells it from the other branches of its trigger.
        named: whether the label is a name that the author gave.
        choice: which choice of its state it is a branch of, and at which place in it.
        ordered: whether the first branch of the choice that may be taken is.
        sets: data that it changes, by name, each with an expression.
        due: of a timer, its duration or the expression of a moment.
    """

    source: State
    trigger: Trigger
    targets: tuple[State, ...]
    label: str
    where: Path
    named: bool = False
    choice: tuple[str, int] = ("", 0)
    ordered: bool = False
    internal: bool = False
    when: Condition = ALWAYS
    guard: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    do: tuple[Hook, ...] = ()
    due: str | None = None


@dataclass(slots=True)
class Chart:
    """The tree of a machine.

    Attributes:
        states: by path, in order; the root's path is empty.
        first_region: whether the first of two regions wins where their transitions conflict.
    """

    root: State
    states: dict[str, State]
    first_region: bool


def read_chart(document: Mapping[str, Any], report: Report) -> Chart:
    """Make the tree of a document whose shape is sound; every fault is reported."""
    root = State("", "", "compound", None, ())
    states = {"": root}
    _add_children(root, document, states)
    for order, state in enumerate(states.values()):
        state.order = order
    for state in states.values():
        _Reader(state, document, report).read()
    for state in states.values():
        if state.kind == "history" and state.parent is not root:
            _check_history(state, report)
    return Chart(root, states, document.get("conflicts") == "first-region")


def _add_children(parent: State, written: Mapping[str, Any], states: dict[str, State]) -> None:
    """Add what stands under `states`; regions in the order that is said, else by name.

    The keys of a mapping have no order of their own: a file whose keys were shuffled is the same.
    """
    names = sorted(written.get("states") or {})
    said = written.get("order") or ()
    names.sort(key=lambda name: said.index(name) if name in said else len(said))
    for name in names:
        inner = written["states"][name] or {}
        path = f"{parent.path}.{name}" if parent.path else name
        where = (*parent.where, "states", name)
        state = State(name, path, _kind(inner), parent, where, deep=inner.get("history") == "deep")
        parent.children.append(state)
        states[path] = state
        _add_children(state, inner, states)


def _kind(written: Mapping[str, Any]) -> Kind:
    if written.get("type") in ("parallel", "history"):
        kind: Kind = written["type"]
        return kind
    if written.get("final") is True:
        return "final"
    return "compound" if written.get("states") else "atomic"


class _Reader:
    """Reads what a document says of one state."""

    def __init__(self, state: State, document: Mapping[str, Any], report: Report) -> None:
        self._state = state
        self._report = report
        written: Any = document
        for key in state.where:
            written = written[key] or {}
        self._written: Mapping[str, Any] = written

    def read(self) -> None:
        state, written = self._state, self._written
        state.on_enter = _hooks(written.get("on_enter"))
        state.on_exit = _hooks(written.get("on_exit"))
        state.requires = tuple(sorted(written.get("data") or ())) if state.path else ()
        self._read_initial()
        where = state.where
        for event, choice in (written.get("on") or {}).items():
            self._read_choice(Trigger("event", event), choice, (*where, "on", event))
        if "always" in written:
            self._read_choice(Trigger("always"), written["always"], (*where, "always"))
        if "on_done" in written:
            self._read_choice(Trigger("done"), written["on_done"], (*where, "on_done"))
        for name, choice in (written.get("after") or {}).items():
            self._read_choice(Trigger("after", name), choice, (*where, "after", name))

    def _read_initial(self) -> None:
        state, written = self._state, self._written
        key = "to" if state.kind == "history" else "initial"
        where = (*state.where, key)
        named = written.get(key)
        if named is not None and (state.children or state.kind == "history"):
            names = named if isinstance(named, list) else [named]
            found = [self._find(name, where, inside=state.kind != "history") for name in names]
            state.initial = tuple(target for target in found if target is not None)
            self._check_beginning(where)
        elif state.kind == "history" and state.parent is not None:
            state.initial = (state.parent,)  # that is, the initial child of its parent
        if state.kind == "compound" and not state.path and len(state.initial) == 1:
            (first,) = state.initial
            if first.kind == "final":
                what = f"the machine would end as it begins, in `{first.path}`"
                self._report("initial-final", what, where, None)

    def _check_beginning(self, where: Path) -> None:
        """Check that a state begins inside itself, a history state beside itself."""
        state = self._state
        around = state.parent if state.kind == "history" else state
        for target in state.initial:
            if around is not None and not target.is_in(around):
                of = f"`{around.path}`" if around.path else "the machine"
                what = f"`{target.path}` is not inside {of}, where it would begin"
                self._report("unknown-state", what, where, None)
        self._check_together(state.initial, where)

    def _check_together(self, targets: Sequence[State], where: Path) -> None:
        """Check that targets can be active at the same time."""
        for one, other in combinations(targets, 2):
            if not _are_apart(_extent(one), _extent(other)):
                what = f"`{one.path}` and `{other.path}` cannot both be led to"
                hint = "name one state in each region of a parallel state"
                self._report("wrong-type", what, where, hint)

    def _find(self, name: str, where: Path, *, inside: bool = False) -> State | None:
        """Find a state by a name: a sibling first, then outwards.

        Args:
            inside: its own children come first.
        """
        scopes = [*self._state.around()] or [self._state]
        if inside:
            scopes.insert(0, self._state)
        for scope in [*scopes, self._state]:  # its own children, at last, where not at first
            found: State | None = scope
            for part in name.split("."):
                children = found.children if found is not None else []
                found = next((child for child in children if child.name == part), None)
            if found is not None:
                return found
        known = {state.name for scope in scopes for state in scope.children}
        hint = nearest_hint(name, sorted(known))
        self._report("unknown-state", f"there is no state {quoted(name)}", where, hint)
        return None

    def _path_of(self, name: str, where: Path) -> str:
        found = self._find(name, where)
        return found.path if found is not None else name

    def _read_choice(self, trigger: Trigger, choice: Any, where: Path) -> None:
        ordered = isinstance(choice, dict) and "branches" in choice
        if ordered:
            branches, where = choice["branches"], (*where, "branches")
        else:
            branches = choice
        key = f"{trigger.kind}/{trigger.name}"
        if isinstance(branches, list) and not all(isinstance(one, str) for one in branches):
            for place, branch in enumerate(branches):
                self._read_branch(trigger, branch, (*where, place), (key, place), ordered)
        else:
            self._read_branch(trigger, branches, where, (key, 0), ordered)

    def _read_branch(
        self, trigger: Trigger, branch: Any, where: Path, choice: tuple[str, int], ordered: bool
    ) -> None:
        if not isinstance(branch, dict):
            branch = {"to": branch}
        to = branch.get("to")
        names = [] if to is None else to if isinstance(to, list) else [to]
        at = (*where, "to")
        targets = [self._find(name, at) for name in names]
        known = tuple(target for target in targets if target is not None)
        when = branch.get("when")
        condition: Condition = ALWAYS
        if when is not None:
            condition = read_condition(when, lambda name: self._path_of(name, (*where, "when")))
        if len(known) < len(targets):
            return
        self._check_together(known, at)
        found = Transition(
            source=self._state,
            trigger=trigger,
            targets=known,
            label=branch.get("name") or "&".join(names) or "stay",
            where=where,
            named="name" in branch,
            choice=choice,
            ordered=ordered,
            internal=branch.get("internal") is True,
            when=condition,
            guard=branch.get("guard"),
            sets=dict(branch.get("set") or {}),
            do=_hooks(branch.get("do")),
            due=branch.get("at", trigger.name) if trigger.kind == "after" else None,
        )
        self._state.transitions.append(found)


def _hooks(written: Any) -> tuple[Hook, ...]:
    listed = written if isinstance(written, list) else [] if written is None else [written]
    return tuple(
        Hook(hook["raise"], raises=True) if isinstance(hook, dict) else Hook(hook)
        for hook in listed
    )


def _extent(target: State) -> State:
    """Give the state that a target lies in whatever a history state remembers."""
    return target.parent if target.kind == "history" and target.parent is not None else target


def _are_apart(one: State, other: State) -> bool:
    """Whether two states are in different regions of a parallel state."""
    if one is other or one.is_in(other) or other.is_in(one):
        return False
    return next(state for state in one.around() if other.is_in(state)).kind == "parallel"


def _check_history(history: State, report: Report) -> None:
    """Report a history state that leads to itself before anything is remembered."""
    owed, seen = [history], set[State]()
    while owed:
        state = owed.pop()
        if state in seen:
            what = f"`{history.path}` leads to itself as long as nothing is remembered"
            hint = "say with `to` where it leads the first time"
            report("initial-missing", what, history.where, hint)
            return
        if state.kind == "history":
            seen.add(state)
            owed += first_place(state)


def first_place(history: State) -> Sequence[State]:
    """Give where a history state leads before anything is remembered."""
    parent = history.parent
    if history.initial and history.initial != (parent,):
        return history.initial
    if parent is None or parent.kind == "parallel":
        return [child for child in (parent.children if parent else []) if child.kind != "history"]
    return parent.initial
