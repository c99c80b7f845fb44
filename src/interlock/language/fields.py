"""The fields of a machine: its data, the payloads of its events, and what states require.

    data: {amount: {type: number}, due_at: {type: date-time, optional: true}}
    events: {measured: {yield_pct: {type: number}}}
    states:
      waiting: {data: [due_at]}            # while it is active, `due_at` is there

A state requires fields of the machine's data by their names, or in a mapping that may repeat their
types. Nothing else can be said of them there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.core.declaration import Path
from interlock.core.text import nearest, quoted
from interlock.language.chart import Chart, State
from interlock.language.expressions.properties import (
    Properties,
    PropertiesError,
    read_properties,
)
from interlock.language.findings import Findings
from interlock.language.flatten import Flat


@dataclass(frozen=True, slots=True)
class Fields:
    """What a document declares.

    Attributes:
        broken: names whose declaration has faults; they are not in the maps.
    """

    data: Properties
    events: Mapping[str, Properties]
    broken: frozenset[str] = frozenset()


def read_fields(written: Mapping[str, Any]) -> Fields:
    """Read the fields of a document that is known to be sound."""
    events = {name: read_properties(map_) for name, map_ in (written.get("events") or {}).items()}
    return Fields(read_properties(written.get("data") or {}), events)


def check_fields(chart: Chart, findings: Findings) -> Fields:
    """Read the fields of a document; whatever is wrong with them is reported."""
    written = findings.document.value
    broken = set[str]()
    data = read_sound(written.get("data") or {}, ("data",), findings, broken)
    events = {
        name: read_sound(map_, ("events", name), findings, broken)
        for name, map_ in (written.get("events") or {}).items()
    }
    for state in chart.states.values():
        if state.path:
            _check_required(state, data, broken, findings)
    return Fields(data, events, frozenset(broken))


def required_in(flat: Flat, chart: Chart) -> dict[str, frozenset[str]]:
    """Give the names that each flat state requires."""
    own = {path: frozenset(state.requires) for path, state in chart.states.items()}
    return {
        name: frozenset[str]().union(*(own[path] for path in paths))
        for name, paths in flat.active.items()
    }


def required_around(state: State) -> frozenset[str]:
    """Give the names that a state and those around it require."""
    return frozenset(name for one in (state, *state.around()) for name in one.requires)


def read_sound(
    map_: Mapping[str, Any], where: Path, findings: Findings, broken: set[str]
) -> Properties:
    """Read what of a map has no faults, and report the rest.

    Args:
        broken: where the names are noted that have faults.
    """
    try:
        return read_properties(map_)
    except PropertiesError as error:
        for defect in error.defects:
            key = defect.code in ("unknown-key", "bad-name")
            path = (*where, *defect.path)
            findings.report(defect.code, defect.message, path, defect.hint, key=key)
        faulty = {defect.path[0] for defect in error.defects if defect.path}
        broken |= {str(name) for name in (faulty or map_)}
        return read_properties({n: map_[n] for n in map_ if faulty and n not in faulty})


def _check_required(state: State, data: Properties, broken: set[str], findings: Findings) -> None:
    required = findings.document.at((*state.where, "data")) or ()
    for place, name in enumerate(required):
        is_map = isinstance(required, Mapping)
        where = (*state.where, "data", name if is_map else place)
        field = data.fields.get(name)
        if field is None:
            if name not in broken:
                meant = nearest(name, data.fields)
                hint = f"did you mean `{meant}`?" if meant else "declare it in `data` at the top"
                what = f"`data` of the machine has no field {quoted(name)}"
                findings.report("unknown-key", what, where, hint, key=is_map)
            continue
        for key, value in required[name].items() if is_map else ():
            if key == "type" and value != field.type.name:
                what = f"`{name}` is of type {field.type.name}, not {quoted(value)}"
                findings.report("wrong-type", what, (*where, key))
            elif key not in ("type", "description"):
                what = f"a state says of `{name}` only that it is there"
                findings.report("unknown-key", what, (*where, key), "say it in `data`", key=True)
