"""Workflows of Symfony's configuration, in YAML, as machine documents.

    converted = from_symfony(text)

- A `state_machine` is in one place, so its places are states.
- A `workflow` is a Petri net: tokens in several places. Every marking that it can come to is a
  state, named after the places that hold a token: `reading + proofing`.
- A guard is an expression over Symfony's services: it becomes data of its own, true or false.
- A place from which nothing leads is final.
"""

from typing import Any

from interlock.language.convert.branches import count_states
from interlock.language.convert.markings import (
    MARKINGS_MAX,
    Marking,
    Move,
    Rivals,
    TooManyMarkings,
    Unsafe,
    walk,
)
from interlock.language.convert.naming import Names
from interlock.language.convert.opaque import Opaque
from interlock.language.convert.result import Converted, Definition, Findings
from interlock.language.convert.settle import settle
from interlock.language.convert.symfony_net import Net, read_net
from interlock.language.document import Document, read_document
from interlock.language.names import RESERVED
from interlock.language.node import BUDGETS, Budgets


def from_symfony(
    data: str | bytes,
    *,
    name: str | None = None,
    file: str | None = None,
    budgets: Budgets = BUDGETS,
) -> Converted:
    """Turn a workflow of a Symfony configuration into a machine document.

    Args:
        name: of the workflow, where the file has several; otherwise what to call the machine.
        file: its name in diagnostics.

    Raises:
        ConvertError: it holds what cannot be carried over; every such construct is named.
        DefinitionError: it is no legal YAML, or too large.
    """
    document = read_document(data, file=file, budgets=budgets)
    findings = Findings(document.source)
    net = read_net(document, name, findings)
    return _Importer(document, net, findings).convert(name)


class _Importer:
    def __init__(self, document: Document, net: Net, findings: Findings) -> None:
        self._document = document
        self._net = net
        self._findings = findings
        self._order = {place: n for n, place in enumerate(net.places)}
        self._events: dict[str, str] = {}
        self._event_names = Names(RESERVED)
        self._opaque = Opaque(findings)
        self._fields = Names()

    def convert(self, name: str | None) -> Converted:
        steps = self._walked()
        names = Names({"superseded"})
        states = {marking: names.give(self._written(marking), "state") for marking in steps}
        for marking, state in states.items():
            if state != self._written(marking):
                message = f"the place `{self._written(marking)}` is called `{state}` here"
                self._findings.note("renamed", message, self._mark(marking))
        initial = next(iter(steps))
        definition: Definition = {"machine": name or self._net.name or "machine"}
        definition["version"] = 1
        if description := self._description(self._net.metadata):
            definition["description"] = description
        definition["initial"] = states[initial]
        made = {
            states[marking]: self._state(marking, onward, states, is_first=marking == initial)
            for marking, onward in steps.items()
        }
        if data := self._opaque.declared():
            definition["data"] = data
        definition["states"] = made
        self._note_unreached(steps)
        self._findings.check()
        marks = {states[marking]: self._mark(marking) for marking in steps}
        marks[""] = self._document.mark(self._net.where)
        settled = settle(definition, self._findings, marks)
        onward = [move for leading in steps.values() for move, _ in leading]
        return Converted(
            definition=settled,
            notes=self._findings.notes,
            states={self._written(marking): state for marking, state in states.items()},
            events=dict(self._events),
            counts=count_states(definition)
            | {
                "transitions": len(onward),
                "guarded": sum(move.guard is not None for move in onward),
                "eventless": 0,
                "events": len({move.name for move in onward}),
            },
        )

    def _walked(self) -> dict[Marking, list[tuple[Move, Marking]]]:
        try:
            return walk(frozenset(self._net.initial), self._net.moves)
        except Unsafe as fault:
            mark = self._document.mark(fault.move.where)
            self._findings.refuse("second-token", str(fault), mark)
        except Rivals as fault:
            mark = self._document.mark(fault.move.where)
            hint = "Symfony would take both: give them names of their own"
            self._findings.refuse("same-transition", str(fault), mark, hint=hint)
        except TooManyMarkings:
            message = f"the workflow comes to more than {MARKINGS_MAX} markings"
            mark = self._document.mark(self._net.where)
            self._findings.refuse("budget-exceeded", message, mark)
        self._findings.check()
        raise AssertionError("refused")

    def _written(self, marking: Marking) -> str:
        return " + ".join(sorted(marking, key=self._order.__getitem__))

    def _mark(self, marking: Marking) -> Any:
        first = min(marking, key=self._order.__getitem__)
        return self._document.mark(self._net.places[first][1], key=True)

    def _state(
        self,
        marking: Marking,
        onward: list[tuple[Move, Marking]],
        states: dict[Marking, str],
        *,
        is_first: bool,
    ) -> Definition:
        made: Definition = {}
        if len(marking) == 1:
            (place,) = marking
            metadata = self._net.places[place][0]
            if "title" in metadata:
                made["label"] = metadata["title"]
            if "description" in metadata:
                made["description"] = metadata["description"]
        if not onward and not is_first:
            made["final"] = True
            message = f"nothing leads from `{self._written(marking)}`: it is final"
            self._findings.note("final-place", message, self._mark(marking))
        if onward:
            made["on"] = {
                self._event(move): self._branch(move, states[after]) for move, after in onward
            }
        return made

    def _branch(self, move: Move, to: str) -> Any:
        branch: Definition = {"to": to}
        mark = self._document.mark(move.where)
        if move.guard is not None:
            why = "it is an expression of Symfony"
            branch["when"] = f"data.{self._opaque.field(move.guard, why, mark, self._fields)}"
        if move.description:
            branch["description"] = move.description
        return to if len(branch) == 1 else branch

    def _event(self, move: Move) -> str:
        if move.name not in self._events:
            name = self._events[move.name] = self._event_names.give(move.name, "event")
            if name != move.name:
                message = f"the transition `{move.name}` is called `{name}` here"
                self._findings.note("renamed", message, self._document.mark(move.where))
        return self._events[move.name]

    def _description(self, metadata: Any) -> str | None:
        found: str | None = metadata.get("description") or metadata.get("title")
        return found

    def _note_unreached(self, steps: dict[Marking, list[tuple[Move, Marking]]]) -> None:
        reached = frozenset().union(*steps)
        for place, (_, where) in self._net.places.items():
            if place not in reached:
                message = f"nothing leads to the place `{place}`: it is left out"
                mark = self._document.mark(where, key=True)
                self._findings.note("unreachable-state", message, mark)
        taken = {move.where for onward in steps.values() for move, _ in onward}
        for move in self._net.moves:
            if move.where not in taken:
                taken.add(move.where)
                message = f"the transition `{move.name}` can never be taken: left out"
                self._findings.note("never-taken", message, self._document.mark(move.where))
