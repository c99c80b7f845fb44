"""Machine documents as SCXML: the same states, and transitions in the order of the document.

    exported = to_scxml(read_document(text))
    exported.text       -> <scxml xmlns="http://www.w3.org/2005/07/scxml" …>
    exported.notes      -> what is said otherwise there

- Expressions are those of the document, in a data model that is called `cel`.
- A timer is an event that a state sends itself, and cancels when it is left.
- A hook is an element of a namespace of our own, which holds also what SCXML has no word for: the
  names of branches, payloads, gates and what must never be. Other processors may pass over it;
  `from_scxml` reads all of it back.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from interlock.core.declaration import Path
from interlock.language.chart import Chart, Hook, State, Transition, read_chart
from interlock.language.convert.paths import names_of, text
from interlock.language.convert.result import Findings
from interlock.language.convert.scxml_cel import OUR_DATA
from interlock.language.convert.scxml_conditions import write
from interlock.language.convert.scxml_ids import Ids
from interlock.language.convert.scxml_tree import OURS, SCXML
from interlock.language.definition import compile_document
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import Document
from interlock.language.duration import parse_duration
from interlock.language.flatten import Flat

# What XML 1.0 cannot hold, escaped or not.
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
CARRIED = ("version", "events", "gates", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A text in another format, and what is to be known of it, as warnings."""

    text: str
    notes: tuple[Diagnostic, ...] = ()


def to_scxml(document: Document) -> Exported:
    """Write a machine document as SCXML.

    Raises:
        DefinitionError: the document has faults.
        ConvertError: it holds what cannot be said in SCXML; every such construct is named.
    """
    definition, found = compile_document(document)
    if definition is None:
        raise DefinitionError(found)
    findings = Findings(document.source)
    chart = read_chart(document.value, lambda *_: None)
    lines = list(_Writer(document, chart, definition.flat, findings).lines())
    findings.check()
    return Exported(text="\n".join(lines) + "\n", notes=findings.notes)


class _Writer:
    def __init__(self, document: Document, chart: Chart, flat: Flat, findings: Findings) -> None:
        self._document = document
        self._written: dict[str, Any] = document.value
        self._chart = chart
        self._findings = findings
        self._ids = Ids(document, chart, findings)
        self._names = names_of(self._written)
        self._where: Path = ()
        choices: dict[tuple[State, str], int] = {}
        for state in chart.states.values():
            for one in state.transitions:
                choices[state, one.choice[0]] = choices.get((state, one.choice[0]), 0) + 1
        self._choices = choices
        # Where branches stand that history tells apart by what they are called.
        self._shown = {
            place for b in flat.branches if b.action != b.trigger.name for place in b.places
        }

    def lines(self) -> Iterator[str]:
        root, written = self._chart.root, self._written
        carried = {
            key: json.dumps(written[key], ensure_ascii=False) for key in CARRIED if key in written
        }
        carried.setdefault("version", '"dev"')
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield self._open(
            "scxml",
            {
                "xmlns": SCXML,
                "xmlns:il": OURS,
                "version": "1.0",
                "datamodel": OUR_DATA,
                "name": written["machine"],
                "initial": self._ids.joined(root.initial),
                **{f"il:{key}": value for key, value in carried.items()},
            },
        )
        if data := written.get("data"):
            yield "  <datamodel>"
            for name, field in data.items():
                yield f"    {self._field(name, field)}"
            yield "  </datamodel>"
        for child in self._children(root):
            yield from (f"  {line}" for line in self._state(child))
        yield "</scxml>"
        told = {"description", "label"} & _keys(written)
        if told:
            message = "descriptions and labels are left out"
            self._findings.note("annotation-dropped", message, self._document.mark(()))

    def _field(self, name: str, field: dict[str, Any]) -> str:
        self._where = ("data", name)
        schema = {key: value for key, value in field.items() if key != "default"}
        given = {"id": name}
        if "default" in field:
            given["expr"] = json.dumps(field["default"], ensure_ascii=False)
        given["il:schema"] = json.dumps(schema, ensure_ascii=False)
        return self._open("data", given, closed=True)

    # States

    def _state(self, state: State) -> Iterator[str]:
        self._where = state.where
        given = {"id": self._ids.of[state]}
        if state.kind == "history":
            yield from self._history(state, given)
            return
        tag = state.kind if state.kind in ("parallel", "final") else "state"
        if state.kind == "compound":
            given["initial"] = self._ids.joined(state.initial)
        if requires := (self._at(state.where) or {}).get("data"):
            given["il:data"] = json.dumps(requires, ensure_ascii=False)
        inside = list(self._inside(state))
        self._where = state.where
        yield self._open(tag, given, closed=not inside)
        if inside:
            yield from (f"  {line}" for line in inside)
            yield f"</{tag}>"

    def _at(self, where: Path) -> Any:
        value: Any = self._written
        for key in where:
            value = value[key]
        return value

    def _history(self, state: State, given: dict[str, str]) -> Iterator[str]:
        around = state.parent
        assert around is not None
        targets = state.initial
        if targets == (around,):  # it begins as its parent does
            regions = tuple(child for child in around.children if child.kind != "history")
            targets = regions if around.kind == "parallel" else around.initial
        yield self._open("history", {**given, "type": "deep" if state.deep else "shallow"})
        yield f"  {self._open('transition', {'target': self._ids.joined(targets)}, closed=True)}"
        yield "</history>"

    def _inside(self, state: State) -> Iterator[str]:
        timers = dict.fromkeys(one.trigger.name for one in state.transitions if one.due is not None)
        sent = {name: f"after.{self._ids.of[state]}.{name}" for name in timers}
        yield from self._block(
            "onentry", [*map(self._hook, state.on_enter), *self._sent(state, sent)]
        )
        cancelled = [self._open("cancel", {"sendid": id}, closed=True) for id in sent.values()]
        yield from self._block("onexit", [*map(self._hook, state.on_exit), *cancelled])
        for one in state.transitions:
            self._where = one.where
            yield from self._transition(one)
        for child in self._children(state):
            yield from self._state(child)

    def _children(self, state: State) -> list[State]:
        """List the states inside: regions in their order, others as they stand in the file."""
        if state.kind == "parallel" or not state.children:
            return state.children
        places = {name: place for place, name in enumerate(self._at(state.where)["states"])}
        return sorted(state.children, key=lambda child: places[child.name])

    def _block(self, tag: str, inside: list[str]) -> Iterator[str]:
        if inside:
            yield f"<{tag}>"
            yield from (f"  {line}" for line in inside)
            yield f"</{tag}>"

    def _hook(self, hook: Hook) -> str:
        if hook.raises:
            return self._open(
                "raise", {"event": self._ids.event(hook.name, self._where)}, closed=True
            )
        return self._open("il:hook", {"name": hook.name}, closed=True)

    def _sent(self, state: State, sent: dict[str, str]) -> Iterator[str]:
        for one in state.transitions:
            if one.due is not None and one.due != one.trigger.name:
                message = f"the timer `{one.trigger.name}` waits for a moment, not for a duration"
                self._findings.refuse("moment-timer", message, self._document.mark(one.where))
                return
        for name, event in sent.items():
            us = parse_duration(name)
            delay = f"{us // 1_000_000}s" if us % 1_000_000 == 0 else f"{us / 1000:.3f}ms"
            yield self._open("send", {"event": event, "id": event, "delay": delay}, closed=True)

    # Transitions

    def _transition(self, one: Transition) -> Iterator[str]:
        source = one.source
        given: dict[str, str] = {}
        if one.trigger.kind == "event":
            given["event"] = self._ids.event(one.trigger.name, one.where)
        elif one.trigger.kind == "after":
            given["event"] = f"after.{self._ids.of[source]}.{one.trigger.name}"
        elif one.trigger.kind == "done":
            given["event"] = f"done.state.{self._ids.of[source]}"
        condition = write(one.when, one.guard, lambda path: self._ids.of[self._chart.states[path]])
        if condition is not None:
            given["cond"] = condition
        if one.targets:
            given["target"] = self._ids.joined(one.targets)
        if one.internal:
            given["type"] = "internal"
        if one.named:
            given["il:name"] = one.label
        elif one.label != self._label(one) and one.where in self._shown:
            message = (
                f"the branch `{one.label}` is called `{self._label(one)}` once it is read back"
            )
            self._findings.note("renamed", message, self._document.mark(one.where))
        if not one.ordered and self._choices[source, one.choice[0]] > 1:
            given["il:exclusive"] = "true"
        inside = [*self._assigns(one), *map(self._hook, one.do)]
        yield self._open("transition", given, closed=not inside)
        if inside:
            yield from (f"  {line}" for line in inside)
            yield "</transition>"

    def _label(self, one: Transition) -> str:
        """Give the label that a branch has once it is read back."""
        source = tuple(one.source.path.split("."))
        texts = [text(tuple(target.path.split(".")), source, self._names) for target in one.targets]
        return "&".join(texts) or "stay"

    def _assigns(self, one: Transition) -> Iterator[str]:
        """Write what is set, so that nothing is read after it was set: here all is set at once."""
        owed = dict(sorted(one.sets.items()))
        while owed:
            free = [n for n in owed if not any(_reads(owed[m], n) for m in owed if m != n)]
            if not free:
                message = "fields are set from each other, which SCXML can only do one by one"
                self._findings.refuse("set-in-turn", message, self._document.mark(one.where))
                return
            for name in free:
                given = {"location": name, "expr": owed.pop(name)}
                yield self._open("assign", given, closed=True)

    def _open(self, tag: str, attributes: dict[str, str], *, closed: bool = False) -> str:
        for name, value in attributes.items():
            if UNFIT.search(value):
                message = f"`{name}` holds a character that XML cannot"
                self._findings.refuse("bad-character", message, self._document.mark(self._where))
        given = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        return f"<{tag}{given}{'/' if closed else ''}>"


def _reads(expression: str, name: str) -> bool:
    return re.search(rf"\bdata\s*\.\s*{re.escape(name)}\b", expression) is not None


def _keys(written: Any) -> set[str]:
    """Give the keys of a machine and of all its states and branches."""
    found: set[str] = set()
    owed = [written]
    while owed:
        part = owed.pop()
        if isinstance(part, dict):
            found |= set(part)
            owed += part.values()
        elif isinstance(part, list):
            owed += part
    return found
