"""An SCXML document as a tree of states, every name resolved and nothing translated."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from interlock.language.convert.result import Findings
from interlock.language.convert.xml_tree import Element
from interlock.language.source import Mark

SCXML = "http://www.w3.org/2005/07/scxml"
OURS = "urn:interlock:machine"  # of what SCXML has no word for
TARGETS_MAX = 100
CONTENT = ("state", "parallel", "final", "history")


@dataclass(slots=True, eq=False)
class State:
    """A state, or the whole document (`kind` is `scxml`); `order` is its place in the file."""

    id: str
    kind: str
    parent: "State | None"
    element: Element
    order: int
    initial: "list[State]" = field(default_factory=list)
    children: "list[State]" = field(default_factory=list)
    transitions: "list[Transition]" = field(default_factory=list)
    entry: list[Element] = field(default_factory=list)
    exit: list[Element] = field(default_factory=list)

    @property
    def mark(self) -> Mark:
        return self.element.mark

    def around(self) -> "Iterator[State]":
        """Give the states around it, the innermost first; the document is the last."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def is_in(self, other: "State") -> bool:
        return any(above is other for above in self.around())

    @property
    def regions(self) -> "list[State]":
        return [child for child in self.children if child.kind != "history"]


@dataclass(slots=True, eq=False)
class Transition:
    """A transition; without `events` it is automatic, without `targets` it stays."""

    source: State
    events: tuple[str, ...] | None
    cond: str | None
    targets: list[State]
    internal: bool
    element: Element

    @property
    def mark(self) -> Mark:
        return self.element.mark


@dataclass(slots=True)
class Tree:
    """A document: its states by their ids, the outermost first."""

    root: State
    states: dict[str, State]
    data: list[Element]

    def every(self) -> list[State]:
        """List the document itself and all states, as they stand in the file."""
        return [self.root, *sorted(self.states.values(), key=lambda state: state.order)]


def read_tree(root: Element, findings: Findings) -> Tree:
    """Read the structure; everything that cannot be carried over is refused by name."""
    return _Reader(findings).read(root)


class _Reader:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._states: dict[str, State] = {}
        self._data: list[Element] = []
        self._beginnings: list[tuple[State, str | None, Element | None]] = []
        self._targets: list[tuple[Transition, str]] = []
        self._order = 0

    def read(self, root: Element) -> Tree:
        findings = self._findings
        if root.tag != "scxml" or root.space not in (SCXML, ""):
            findings.refuse("not-scxml", f"the root element is `{root.tag}`", root.mark)
            findings.check()
        if root.get("binding") == "late" and any(root.named("datamodel")):
            findings.refuse("late-binding", "data is bound late", root.mark)
        top = State("", "scxml", None, root, 0)
        self._fill(top)
        if not top.regions:
            findings.refuse("no-states", "the document has no states", root.mark)
        for transition, ids in self._targets:
            transition.targets = self._resolve(ids, transition.mark)
        for state, ids_given, element in self._beginnings:
            self._begin(state, ids_given, element)
        findings.check()
        return Tree(top, self._states, self._data)

    def _fill(self, state: State) -> None:
        element = state.element
        if element.get("src") is not None:
            message = f"`{state.id}` is read from another file (`src`)"
            self._findings.refuse("src", message, element.mark)
        first: Element | None = None
        for child in element.children:
            match child.tag if child.space == element.space else "":
                case tag if tag in CONTENT and state.kind != "final":
                    self._add(state, child)
                case "initial":
                    first = child
                case "transition":
                    state.transitions.append(self._transition(state, child))
                case "onentry":
                    state.entry.append(child)
                case "onexit":
                    state.exit.append(child)
                case "datamodel":
                    self._data += self._only(child, "data")
                case "donedata" if not child.children:
                    pass
                case _:
                    self._refuse(child)
        if state.kind in ("scxml", "state"):
            self._beginnings.append((state, element.get("initial"), first))

    def _add(self, parent: State, element: Element) -> None:
        self._order += 1
        id = element.get("id")
        if not id:
            id = f"{element.tag}_{self._order}"
            while id in self._states:
                id += "_"
            self._findings.note("no-id", f"a state without an id is called `{id}`", element.mark)
        state = State(id, element.tag, parent, element, self._order)
        if id in self._states:
            self._findings.refuse("duplicate-id", f"the id `{id}` is used twice", element.mark)
        self._states.setdefault(id, state)
        parent.children.append(state)
        self._fill(state)
        if state.kind == "parallel" and not state.regions:
            state.kind = "state"  # with no regions it is like any state that holds none

    def _transition(self, state: State, element: Element) -> Transition:
        # An empty attribute is read as one that is not there, as processors do.
        events, targets = element.get("event"), element.get("target")
        made = Transition(
            source=state,
            events=tuple(events.split()) if events and events.strip() else None,
            cond=element.get("cond"),
            targets=[],
            internal=element.get("type") == "internal",
            element=element,
        )
        if targets and targets.strip():
            self._targets.append((made, targets))
        return made

    def _resolve(self, ids: str, mark: Mark) -> list[State]:
        found = []
        listed = dict.fromkeys(ids.split())
        if len(listed) > TARGETS_MAX:
            message = f"a transition has more than {TARGETS_MAX} targets"
            self._findings.refuse("budget-exceeded", message, mark)
            return []
        for id in listed:
            if id in self._states:
                found.append(self._states[id])
            else:
                self._findings.refuse("unknown-state", f"there is no state `{id}`", mark)
        for place, one in enumerate(found):
            for two in found[:place]:
                if not _together(one, two):
                    message = (
                        f"`{two.id}` and `{one.id}` are no targets together: not in two regions"
                    )
                    self._findings.refuse("targets-apart", message, mark)
        return found

    def _begin(self, state: State, ids: str | None, element: Element | None) -> None:
        """Find where a compound state begins: its attribute, its element, or its first child."""
        if not state.regions:
            return
        if element is not None:
            transitions = list(element.named("transition"))
            ids = transitions[0].get("target") if transitions else ids
            if any(child.tag != "log" for one in transitions for child in one.children):
                message = f"the initial transition of `{state.id}` does something"
                self._findings.refuse("initial-with-actions", message, element.mark)
        state.initial = self._resolve(ids, state.mark) if ids else state.regions[:1]
        for target in state.initial:
            if not target.is_in(state):
                message = f"`{state.id}` begins at `{target.id}`, which is not inside it"
                self._findings.refuse("initial-outside", message, state.mark)

    def _only(self, element: Element, tag: str) -> list[Element]:
        for child in element.children:
            if child.tag != tag or child.space != element.space:
                self._refuse(child)
        return list(element.named(tag))

    def _refuse(self, element: Element) -> None:
        kind = "element" if element.space in (SCXML, "") else "foreign element"
        message = f"the {kind} `<{element.tag}>` cannot be carried over"
        self._findings.refuse("unsupported", message, element.mark)


def _together(one: State, two: State) -> bool:
    """Say whether two states are in different regions of a parallel one."""
    if one.is_in(two) or two.is_in(one):
        return False
    above = next(above for above in one.around() if two.is_in(above))
    return above.kind == "parallel"
