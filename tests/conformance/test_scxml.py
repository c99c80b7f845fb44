"""SCXML documents that others wrote, imported, compiled and walked: the states after each event.

They belong to SCION (Apache-2.0) and are not kept here; without them the tests are skipped.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

import interlock
from interlock import GuardNotSatisfied, InvalidTransition, Terminal
from interlock.language import define
from interlock.language.convert import Converted, ConvertError, from_scxml
from tests.docs.pages import DOCS, table
from tests.support.fields import Fields
from tests.support.running import Running
from tests.support.scxml_cases import SUITE, TIERS, ScxmlCase, scxml_cases
from tests.support.shared import needed

#: What keeps the other tests from being imported, each by the code of its refusal.
REFUSED = {
    "assign-current-small-step/test0": "unsupported",
    "assign-current-small-step/test3": "set-in-regions",
    "data/data_invalid": "data-value",
    "delayedSend/send1": "delayed-send",
    "delayedSend/send2": "delayed-send",
    "delayedSend/send3": "delayed-send",
    "error/error": "unsupported",
    "foreach/test1": "unsupported",
    "history/history6": "assign-on-the-way",
    "script-src/test0": "unsupported",
    "script-src/test1": "unsupported",
    "script-src/test2": "unsupported",
    "script-src/test3": "unsupported",
    "script/test0": "unsupported",
    "script/test1": "unsupported",
    "script/test2": "unsupported",
    "send-data/send1": "send-with-data",
    "send-idlocation/test0": "delayed-send",
    "send-internal/test0": "send-with-data",
    "targetless-transition/test3": "set-in-regions",
}


@pytest.fixture(autouse=True)
def suite() -> None:
    needed(SUITE)


def walked(case: ScxmlCase, converted: Converted) -> list[frozenset[str]]:
    """Give the active states, by their ids, at the beginning and after each event."""
    definition = define(converted.definition)
    ids = {path: id for id, path in converted.states.items()}
    fields = Fields(converted.definition.get("data", {}))
    running = Running(definition.flat, fields.holds, change=fields.change)
    found = [frozenset(ids[leaf] for leaf in running.leaves)]
    for step in case.steps:
        running.send(converted.events[step.event])
        found.append(frozenset(ids[leaf] for leaf in running.leaves))
    return found


def sent(case: ScxmlCase, converted: Converted) -> list[frozenset[str]]:
    """Give the same, of an instance that an engine runs, a new one after each event."""
    definition = define(converted.definition)
    ids = {path: id for id, path in converted.states.items()}

    def leaves() -> frozenset[str]:
        return frozenset(ids[leaf] for leaf in definition.leaves(order.state))

    with interlock.open("sqlite://") as store:
        order = interlock.Engine(store, steps_max=1000).start(definition)
        found = [leaves()]
        for step in case.steps:
            order = interlock.Engine(store, steps_max=1000).get(order.id)
            with suppress(InvalidTransition, GuardNotSatisfied, Terminal):
                order.send(converted.events[step.event])
            found.append(leaves())
        assert store.verify().ok
    return found


def outcome(case: ScxmlCase) -> str:
    try:
        converted = from_scxml(case.text, events=case.events)
    except ConvertError:
        return "refused"
    wanted = [case.initial, *(step.leaves for step in case.steps)]
    return "passed" if walked(case, converted) == wanted else "failed"


@pytest.mark.parametrize("run", [walked, sent], ids=["flat", "engine"])
@pytest.mark.parametrize(
    "case", [c for c in scxml_cases() if c.name not in REFUSED], ids=lambda case: case.name
)
def test_each_event_leads_to_the_states_that_it_should(
    case: ScxmlCase, run: Callable[[ScxmlCase, Converted], list[frozenset[str]]]
) -> None:
    converted = from_scxml(case.text, events=case.events)
    assert run(case, converted) == [case.initial, *(step.leaves for step in case.steps)]
    assert "opaque-guard" not in [note.code for note in converted.notes]


@pytest.mark.parametrize(
    "case", [c for c in scxml_cases() if c.name in REFUSED], ids=lambda case: case.name
)
def test_what_cannot_be_carried_over_is_refused_by_name(case: ScxmlCase) -> None:
    with pytest.raises(ConvertError) as caught:
        from_scxml(case.text, events=case.events)
    assert REFUSED[case.name] in {fault.code for fault in caught.value.diagnostics}
    assert all(fault.line is not None for fault in caught.value.diagnostics)


def test_the_scores_are_those_that_the_page_states() -> None:
    found = Counter((case.tier, outcome(case)) for case in scxml_cases())
    results = ("passed", "failed", "refused")
    stated = {
        (TIERS[tier], result): int(count)
        for tier, *counts in table(DOCS / "conformance.md", "SCXML", "tests", *results)
        for result, count in zip(results, counts[1:], strict=True)
        if int(count)
    }
    assert stated == dict(found)
