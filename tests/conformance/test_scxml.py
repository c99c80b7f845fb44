"""SCXML documents that others wrote: structure, parallel regions, history (tiers 1 to 3)."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from interlock.language.chart import read_chart
from interlock.language.flatten import flatten
from interlock.language.schema import machine_schema
from tests.support.running import Running
from tests.support.scxml import Document, event

FOLDER = Path(__file__).parents[3] / "shared" / "conformance" / "scxml" / "scion"
TIERS = ("1-structure", "2-parallel", "3-history")
#: Where the main expectation is that of one engine, and the other one W3C's algorithm.
W3C = ("more-parallel/test10", "more-parallel/test10b")


def names() -> list[str]:
    index = FOLDER / "index.json"
    if not index.exists():
        return []
    listed = json.loads(index.read_text())
    tests = listed.get("tests", listed)
    return [name for name, facts in tests.items() if facts["tier"] in TIERS]


def test_the_suite_is_there_and_whole() -> None:
    if not FOLDER.exists():
        pytest.skip(f"{FOLDER.name}: the suite of SCXML documents is not beside the project")
    assert len(names()) == 89


@pytest.mark.parametrize("name", names())
def test_each_event_leads_to_the_states_that_it_should(name: str) -> None:
    case: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    if name in W3C:
        case |= case["legacySemantics"]
    sent = [step["event"]["name"] for step in case["events"]]
    document = Document((FOLDER / f"{name}.scxml").read_text(), sent)
    assert jsonschema_rs.is_valid(machine_schema(), document.machine)
    faults: list[Any] = []
    chart = read_chart(document.machine, lambda *fault: faults.append(fault))
    assert faults == []
    running = Running(flatten(chart, budget=10_000), lambda condition: False)
    configurations = [{document.ids[leaf] for leaf in running.leaves}]
    for told in sent:
        running.send(event(told))
        configurations.append({document.ids[leaf] for leaf in running.leaves})
    wanted = [case["initialConfiguration"], *(s["nextConfiguration"] for s in case["events"])]
    assert configurations == [{*states} for states in wanted]
