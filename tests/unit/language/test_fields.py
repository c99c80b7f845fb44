"""Fields of machines: property maps, what states require, and who supplies it."""

from typing import Any

import pytest

from interlock.language.definition import Definition, define, loads
from interlock.language.diagnostic import DefinitionError, Diagnostic

DATA: dict[str, Any] = {
    "amount": {"type": "number", "minimum": 0},
    "due_at": {"type": "date-time", "optional": True},
    "note": {"type": "string", "optional": True},
    "region": {"type": "string", "enum": ["EU", "US"], "default": "EU"},
}


def refused(document: dict[str, Any] | str) -> list[Diagnostic]:
    with pytest.raises(DefinitionError) as refusal:
        loads(document) if isinstance(document, str) else define(document)
    return [*refusal.value.diagnostics]


def machine(states: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {"machine": "m", "initial": "new", "data": DATA, "states": states}
    return {**named, **more}


def waits(branch: Any, waiting: Any = ("due_at",), new: Any = None) -> Definition:
    """A machine that goes by one branch to a state which requires something."""
    waiting = [*waiting] if isinstance(waiting, tuple) else waiting
    return define(
        machine(
            {
                "new": {**(new or {}), "on": {"wait": branch}},
                "waiting": {"data": waiting, "on": {"end": "over"}},
                "over": {"final": True},
            }
        )
    )


# Property maps


def test_a_definition_has_its_fields() -> None:
    definition = define(
        machine(
            {"new": {"on": {"go": "over"}}, "over": {"final": True}},
            events={"go": {"qty": {"type": "integer"}}},
        )
    )
    assert {*definition.data.fields} == {*DATA}
    assert [fault.code for fault in definition.data.check({"amount": -1})] == ["not-allowed"]
    assert [fault.code for fault in definition.events["go"].check({})] == ["missing-key"]


def test_every_fault_of_a_property_map_has_its_place() -> None:
    found = refused(
        """machine: m
initial: new
data:
  amount: {type: numbr}
  for: {type: string}
  region: {type: string, enum: [EU], default: US}
  size: {type: integer, minimun: 2}
events:
  go: {qty: {optional: true}}
states:
  new: {on: {go: {to: over, when: "data.amont < 1"}}}
  over: {final: true}
"""
    )
    assert [(f.code, f.line, f.column) for f in found] == [
        ("wrong-type", 4, 18),
        ("bad-name", 5, 3),
        ("wrong-type", 6, 47),
        ("unknown-key", 7, 25),
        ("missing-key", 9, 13),
        ("expression-type", 11, 41),
    ]
    assert found[0].hint == "did you mean `number`?"
    assert found[3].hint == "did you mean `minimum`?"
    assert found[3].path == "data.size.minimun"


def test_what_hangs_on_a_faulty_field_is_not_told_as_well() -> None:
    (found,) = refused(
        """machine: m
initial: new
data: {amount: {type: numbr}}
states:
  new: {on: {go: {to: held, when: "data.amount < 1", set: {amount: "2.0"}}}}
  held: {data: [amount], on: {go: over}}
  over: {final: true}
"""
    )
    assert (found.code, found.line) == ("wrong-type", 3)


# What a state requires


def test_a_state_requires_fields_of_the_data() -> None:
    (unknown,) = refused(machine({"new": {"data": ["du_at"]}}))
    assert (unknown.code, unknown.path) == ("unknown-key", "states.new.data[0]")
    assert unknown.hint == "did you mean `due_at`?"
    (unknown,) = refused(machine({"new": {"data": {"xyz": {}}}}))
    assert (unknown.code, unknown.hint) == ("unknown-key", "declare it in `data` at the top")


@pytest.mark.parametrize(
    ("said", "code", "path"),
    [
        ({"type": "number"}, "wrong-type", "states.waiting.data.due_at.type"),
        ({"minimum": "2026-01-01T00:00:00Z"}, "unknown-key", "states.waiting.data.due_at.minimum"),
        ({"optional": True}, "unknown-key", "states.waiting.data.due_at.optional"),
    ],
)
def test_a_state_says_of_a_field_only_that_it_is_there(
    said: dict[str, Any], code: str, path: str
) -> None:
    with pytest.raises(DefinitionError) as refusal:
        waits({"to": "waiting", "set": {"due_at": "now"}}, {"due_at": said})
    (found,) = refusal.value.diagnostics
    assert (found.code, found.path) == (code, path)


def test_a_state_may_repeat_the_type() -> None:
    said = {"due_at": {"type": "date-time", "description": "the last day"}}
    definition = waits({"to": "waiting", "set": {"due_at": "now"}}, said)
    assert definition.required("waiting") == {"due_at"}
    assert definition.required("new") == frozenset()


def test_inside_of_a_state_what_it_requires_holds_too_and_in_every_region() -> None:
    inner = {"initial": "x", "data": ["due_at"], "states": {"x": {"data": ["note"]}}}
    parallel = {"type": "parallel", "states": {"p": inner, "q": {"data": ["amount"]}}}
    enter = {"to": "both", "set": {"due_at": "now", "note": "'n'"}}
    definition = define(
        machine(
            {
                "new": {"on": {"go": enter}},
                "both": {**parallel, "on": {"end": "over"}},
                "over": {"final": True},
            }
        )
    )
    assert definition.required("both{x|q}") == {"due_at", "note", "amount"}


# Who supplies it


@pytest.mark.parametrize(
    "branch",
    [
        {"to": "waiting", "set": {"due_at": "now"}},
        {"to": "waiting", "when": "has(data.due_at)"},
        {"to": "waiting", "when": "has(data.due_at) && data.due_at > now"},
        {"to": "waiting", "when": {"all": [{"check": "is_open"}, "has(data.due_at)"]}},
        {"to": "waiting", "when": {"not": "!has(data.due_at) || data.amount > 1"}},
    ],
)
def test_a_branch_supplies_what_it_sets_or_asks_for(branch: dict[str, Any]) -> None:
    assert waits(branch).warnings == ()


@pytest.mark.parametrize(
    "branch",
    [
        "waiting",
        {"to": "waiting", "set": {"note": "'n'"}},
        {"to": "waiting", "when": "data.amount > 1"},
        {"to": "waiting", "when": "!has(data.due_at)"},
        {"to": "waiting", "when": "has(data.due_at) || data.amount > 1"},
        {"to": "waiting", "when": {"any": ["has(data.due_at)", {"check": "is_open"}]}},
        {"to": "waiting", "when": "has(data.due_at)", "set": {"due_at": "absent"}},
        {"to": "waiting", "do": {"raise": "end"}},
    ],
)
def test_a_way_into_a_state_that_may_leave_out_what_it_requires_is_refused(branch: Any) -> None:
    with pytest.raises(DefinitionError) as refusal:
        waits(branch)
    (found,) = refusal.value.diagnostics
    assert found.code == "missing-data"
    assert "leads to `waiting`, which requires `due_at`, and it may be absent" in found.message
    assert found.path.startswith("states.new.on.wait")


def test_an_earlier_branch_may_have_taken_the_cases_in_which_it_is_absent() -> None:
    branches = [{"to": "over", "when": "!has(data.due_at)"}, {"to": "waiting", "otherwise": True}]
    assert waits({"order": "first-match", "branches": branches}).warnings == ()


def test_hooks_may_supply_it_which_is_not_known() -> None:
    (warning,) = waits({"to": "waiting", "do": "plan"}).warnings
    assert (warning.code, warning.severity) == ("missing-data", "warning")
    assert warning.message.endswith("`plan` would have to supply it")


def test_a_state_that_requires_it_as_well_supplies_it() -> None:
    states: dict[str, Any] = {
        "new": {"on": {"go": {"to": "one", "set": {"due_at": "now"}}}},
        "one": {"data": ["due_at"], "on": {"go": "two", "stay": {"set": {"note": "'n'"}}}},
        "two": {"data": ["due_at"], "on": {"end": "over", "back": {"to": "one"}}},
        "over": {"final": True},
    }
    assert define(machine(states)).warnings == ()
    states["one"]["on"]["drop"] = {"set": {"due_at": "absent"}}
    (found,) = refused(machine(states))
    assert (found.code, found.path) == ("missing-data", "states.one.on.drop")


def test_the_state_that_a_machine_begins_in_requires_what_is_always_there() -> None:
    states: dict[str, Any] = {"new": {"data": ["amount", "region"]}}
    assert define(machine(states)).required("new") == {"amount", "region"}
    states = {"new": {"data": ["due_at"]}}
    (found,) = refused(machine(states))
    assert (found.code, found.path) == ("missing-data", "initial")
    states = {"new": {"data": ["due_at"], "on_enter": ["plan"]}}
    (warning,) = define(machine(states)).warnings
    assert warning.code == "missing-data"


def test_what_a_state_requires_is_part_of_what_a_machine_means() -> None:
    ways = {"to": "waiting", "set": {"due_at": "now", "note": "'n'"}}
    assert waits(ways, ("due_at",)).digest != waits(ways, ("note",)).digest


def test_an_event_that_a_hook_raises_needs_no_field() -> None:
    states = {
        "new": {"on": {"go": {"to": "new", "do": [{"raise": "paid"}]}, "paid": "over"}},
        "over": {"final": True},
    }
    paid = {"qty": {"type": "integer"}}
    (found,) = refused(machine(states, events={"paid": paid}))
    assert (found.code, found.path) == ("missing-data", "states.new.on.go.do")
    assert "`paid` is raised without its field `qty`" in found.message
    define(machine(states, events={"paid": {"qty": {"type": "integer", "default": 1}}}))
