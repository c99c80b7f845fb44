"""The last pass of every importer: the document is compiled, and made one that compiles.

Branches that history could not tell apart get names. What the graph shows to be dead is left out
and noted: transitions that others always come before, states that nothing reaches. What is still
wrong refuses the file, at the place of the state that it is about.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from interlock.core.declaration import Path
from interlock.language.chart import Chart, read_chart
from interlock.language.convert.naming import UNFIT
from interlock.language.convert.paths import written
from interlock.language.convert.prune import (
    branch_at,
    dead_transitions,
    is_inside,
    lost_states,
    pruned,
)
from interlock.language.convert.result import Definition, Findings
from interlock.language.definition import STATES_MAX, compile_document
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import Document, read_document
from interlock.language.flatten import Flat, TooManyStates, flatten
from interlock.language.schema import check_schema
from interlock.language.source import Mark

#: The keys of a document in the order in which it is read best.
KEYS = (
    "machine", "version", "description", "data", "events", "gates", "conflicts", "initial",
    "states", "never",
)  # fmt: skip
#: Where each state was written, by its path in the document; the whole by an empty one.
Places: TypeAlias = Mapping[str, Mark]


def settle(
    definition: Definition, findings: Findings, places: Places, *, states_max: int = STATES_MAX
) -> Definition:
    """Make a document one that compiles.

    Args:
        definition: every target in it is a path from the top.

    Raises:
        ConvertError: it cannot be; the diagnostics are those of the compiler.
        Hidden: a target has no name that is found from where it stands.
    """
    settled: Definition = json.loads(json.dumps(definition))
    _check(settled, lambda document: check_schema(document).found, findings, places)
    try:
        chart, flat = _flat(settled, states_max)
        while _name_clashes(settled, chart, flat):
            chart, flat = _flat(settled, states_max)
    except TooManyStates:
        message = f"parallel regions make more than {states_max} states"
        findings.refuse("budget-exceeded", message, places.get(""))
        findings.check()
    _check_sets(chart, flat, findings, places)
    settled = _without_dead(settled, chart, flat, findings, places, states_max)
    compiled = partial(compile_document, states_max=states_max)
    _check(settled, lambda document: compiled(document)[1], findings, places)
    made = written(settled)
    return {key: made[key] for key in KEYS if key in made}


def _flat(definition: Definition, states_max: int) -> tuple[Chart, Flat]:
    chart = read_chart(written(definition), lambda *_: None)
    return chart, flatten(chart, budget=states_max)


def _check(
    definition: Definition,
    judge: Callable[[Document], list[Diagnostic]],
    findings: Findings,
    places: Places,
) -> None:
    """Refuse what is wrong with a document, where the state that it is about was written."""
    try:
        document = read_document(json.dumps(written(definition), indent=1))
    except DefinitionError as error:
        for fault in error.diagnostics:
            findings.refuse(fault.code, fault.message, places.get(""))
        findings.check()
        raise
    where = {mark: path for path, mark in [*document.marks.items(), *document.key_marks.items()]}
    for fault in judge(document):
        if fault.severity == "error":
            path = where.get(Mark(fault.line or 0, fault.column or 0), ())
            findings.refuse(fault.code, fault.message, _place(path, places), hint=fault.hint)
    findings.check()


def _without_dead(
    definition: Definition,
    chart: Chart,
    flat: Flat,
    findings: Findings,
    places: Places,
    states_max: int,
) -> Definition:
    """Leave out what the graph shows to be dead, as far as the machine stays the same.

    A transition that is never taken may still matter: while it is found in its region, and gives
    way to that of another, nothing further out is looked for.
    """
    lost, dead = lost_states(chart, flat), dead_transitions(chart, flat)
    for state in sorted(lost, key=lambda state: state.order):
        message = f"nothing leads to the state `{state.path}`: it is left out"
        findings.note("unreachable-state", message, places.get(state.path))
    for one in dead:
        if not is_inside(one.source, lost):
            of = one.trigger.name or one.trigger.kind
            message = f"a transition of `{one.source.path}` on `{of}` can never be taken"
            findings.note("never-taken", message, places.get(one.source.path))
    if not lost and not dead:
        return definition
    there = [one for one in dead if any(is_inside(target, lost) for target in one.targets)]
    for without in (dead, there):
        made = pruned(definition, chart, lost, without)
        if _moves(_flat(made, states_max)[1]) == _moves(flat):
            return made
    for state in sorted(lost, key=lambda state: state.order):
        message = f"nothing leads to `{state.path}`, but without it the machine would be another"
        findings.refuse("unreachable-state", message, places.get(state.path))
    findings.check()
    return definition


def _moves(flat: Flat) -> list[tuple[object, ...]]:
    """Say all that a flat machine does, whatever its actions are called."""
    return sorted(
        (
            (
                *(b.from_state, b.to_state, b.trigger, b.owner, b.when, b.guards, b.sets, b.hooks),
                *(b.due, sorted(map(str, b.recalls)), sorted(b.remembers.items())),
            )
            for b in flat.branches
        ),
        key=str,
    )


def _check_sets(chart: Chart, flat: Flat, findings: Findings, places: Places) -> None:
    """Refuse data that regions pass on within one move: here all that is set is set at once."""
    moves = {one.where: one for state in chart.states.values() for one in state.transitions}
    for branch in flat.branches:
        changed: set[str] = set()
        for one in (moves[place] for place in branch.places):
            read = {name for name in changed for text in one.sets.values() if _reads(text, name)}
            for name in sorted(read | changed.intersection(one.sets)):
                message = f"`{name}` is set by two regions at once, or by one for another to read"
                findings.refuse("set-in-regions", message, places.get(one.source.path))
            changed.update(one.sets)
    findings.check()


def _reads(text: str, name: str) -> bool:
    return re.search(rf"\bdata\.{re.escape(name)}\b", text) is not None


def _place(path: Path, places: Places) -> Mark | None:
    """Find where the innermost state on a path of the document was written."""
    names = [str(path[n + 1]) for n in range(0, len(path) - 1, 2) if path[n] == "states"]
    while names and ".".join(names) not in places:
        names.pop()
    return places.get(".".join(names))


def _name_clashes(definition: Definition, chart: Chart, flat: Flat) -> bool:
    """Give names to branches that are called alike; say whether there were any."""
    named: set[Path] = set()
    for one, other in flat.clashes:
        apart = [place for place in other.places if place not in one.places]
        apart = apart or [place for place in one.places if place not in other.places]
        named.update(apart[-1:])
    labels = {one.where: one.label for state in chart.states.values() for one in state.transitions}
    used: set[str] = set(labels.values())
    counts: dict[str, int] = {}
    for place in sorted(named, key=str):
        name = label = UNFIT.sub("_", labels[place])
        while name in used:
            counts[label] = counts.get(label, 1) + 1
            name = f"{label}-{counts[label]}"
        used.add(name)
        _replace(definition, place, {**branch_at(definition, place), "name": name})
    return bool(named)


def _replace(definition: Definition, place: Path, branch: Definition) -> None:
    around: Any = definition
    for key in place[:-1]:
        around = around[key]
    around[place[-1]] = branch
