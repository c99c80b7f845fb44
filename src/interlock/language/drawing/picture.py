"""What a drawing shows: boxes inside each other, and arrows between them.

A machine gives the tree that its author wrote, a workflow its steps, a declaration its flat states.
Every format is written from a picture, so all of them show the same. The reserved `superseded` is
in no tree.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from interlock.language.chart import State, Transition, read_chart
from interlock.language.condition import ALWAYS, text
from interlock.language.definition import Definition
from interlock.language.flows.plan import Plan, Step, Wait

Kind: TypeAlias = Literal["plain", "parallel", "final", "history"]

TRIGGERS = ("event", "always", "done", "after")


@dataclass(slots=True, eq=False)
class Box:
    """A state, or the whole.

    Attributes:
        id: what it is called in a drawing's own syntax.
        path: its name and those of the states around it; of the whole, nothing.
        label: what is shown of it.
        starts: where it begins.
    """

    id: str
    path: str
    label: str
    kind: Kind = "plain"
    parent: "Box | None" = None
    children: "list[Box]" = field(default_factory=list)
    starts: "list[Box]" = field(default_factory=list)

    def around(self) -> "Iterator[Box]":
        """Give the boxes around it, the innermost first."""
        box = self.parent
        while box is not None:
            yield box
            box = box.parent

    def inside(self) -> "Iterator[Box]":
        """Give the boxes inside it, each before those inside of it."""
        for child in self.children:
            yield child
            yield from child.inside()


@dataclass(frozen=True, slots=True, eq=False)
class Arrow:
    """One way from a box to a box.

    Attributes:
        action: what it waits for.
        test: what has to hold, or nothing.
        stays: whether the box is not left.
    """

    source: Box
    target: Box
    action: str
    test: str = ""
    stays: bool = False

    @property
    def label(self) -> str:
        if not self.test:
            return self.action
        return f"{self.action} [{self.test}]" if self.action else f"[{self.test}]"

    @property
    def around(self) -> Box:
        """The innermost box that has both ends inside."""
        outer = {*self.source.around()}
        return next(box for box in self.target.around() if box in outer)


@dataclass(frozen=True, slots=True)
class Picture:
    """A machine as a drawing shows it; the whole is a box without a name."""

    whole: Box
    arrows: tuple[Arrow, ...]


def picture_of(drawn: Definition | Mapping[str, Any]) -> Picture:
    """Make the picture of a definition, or of a well-formed declaration."""
    if isinstance(drawn, Definition):
        if drawn.plan is not None:
            return of_plan(drawn.name, drawn.plan)
        return of_document(json.loads(drawn.document))
    return of_declaration(drawn)


def of_declaration(declaration: Mapping[str, Any]) -> Picture:
    """Make the picture of a flat machine."""
    whole = Box("whole", "", "")
    terminal = set(declaration["terminal_states"])
    boxes = {
        name: Box(f"s{number}", name, name, "final" if name in terminal else "plain", whole)
        for number, name in enumerate(declaration["states"])
    }
    whole.children = [*boxes.values()]
    whole.starts = [boxes[declaration["initial_state"]]]
    arrows = (
        Arrow(
            boxes[one["from_state"]], boxes[one["to_state"]], one["action"], one.get("guard") or ""
        )
        for one in declaration["transitions"]
    )
    return Picture(whole, tuple(arrows))


def of_plan(name: str, plan: Plan) -> Picture:
    """Make the picture of a workflow: its steps, and which of them need which."""
    whole = Box("whole", "", name)
    boxes = {
        step.name: Box(f"s{number}", step.name, _step_label(step), parent=whole)
        for number, step in enumerate(plan.steps.values())
    }
    whole.children = [*boxes.values()]
    whole.starts = [boxes[step.name] for step in plan.steps.values() if not step.needs]
    arrows = (
        Arrow(
            boxes[needed],
            boxes[step.name],
            "any" if step.needs_any and len(step.needs) > 1 else "",
            step.when.source if step.when is not None else "",
        )
        for step in plan.steps.values()
        for needed in step.needs
    )
    return Picture(whole, tuple(arrows))


def _step_label(step: Step) -> str:
    """Name a step, and what it is beside a plain call."""
    told = [step.work.reason] if isinstance(step.work, Wait) else []
    told += ["each"] if step.fan_out else []
    told += ["repeated"] if step.repeat else []
    told += ["undone"] if step.undo else []
    return f"{step.name} ({', '.join(told)})" if told else step.name


def of_document(document: Mapping[str, Any]) -> Picture:
    """Make the picture of a document that is known to be well formed."""
    chart = read_chart(document, lambda *_: None)
    boxes: dict[State, Box] = {chart.root: Box("whole", "", document["machine"])}
    for state in chart.states.values():
        if state.parent is not None:
            parent = boxes[state.parent]
            box = Box(f"s{len(boxes) - 1}", state.path, _label(state, document), parent=parent)
            if state.kind in ("parallel", "final", "history"):
                box.kind = state.kind
            parent.children.append(box)
            boxes[state] = box
    arrows = []
    for state, box in boxes.items():
        if state.kind == "compound":
            box.starts = [boxes[first] for first in state.initial]
        elif state.kind == "history" and state.initial != (state.parent,):
            arrows += [Arrow(box, boxes[first], "") for first in state.initial]
        for transition in sorted(state.transitions, key=_place):
            action, test = _action(transition), _test(transition)
            arrows += [Arrow(box, boxes[target], action, test) for target in transition.targets]
            if not transition.targets:
                arrows.append(Arrow(box, box, action, test, stays=True))
    return Picture(boxes[chart.root], tuple(arrows))


def _place(transition: Transition) -> tuple[int, str, int]:
    """Order transitions by what they wait for: the keys of a file have no order of their own."""
    kind, name = transition.trigger
    return TRIGGERS.index(kind), name, transition.choice[1]


def _label(state: State, document: Mapping[str, Any]) -> str:
    written: Any = document
    for key in state.where:
        written = written[key] or {}
    label = str(written.get("label", state.name))
    if state.kind == "history":
        return f"{label} ({'H*' if state.deep else 'H'})"
    return label


def _action(transition: Transition) -> str:
    trigger = transition.trigger
    match trigger.kind:
        case "event":
            action = trigger.name
        case "after":
            waits = transition.due == trigger.name
            action = f"after {trigger.name}" if waits else f"{trigger.name} at {transition.due}"
        case kind:
            action = kind
    return f"{action} ({transition.choice[1] + 1})" if transition.ordered else action


def _test(transition: Transition) -> str:
    """Say what has to hold: what the caller asserts, then what the engine finds true."""
    tests = [] if transition.guard is None else [transition.guard]
    if transition.when != ALWAYS:
        tests.append(text(transition.when))
    if transition.ordered and not tests:
        return "otherwise"
    return ", ".join(tests)
