"""Branches that exclude each other, that do not, and of which it is not known."""

import sys
from typing import Any

import pytest

from interlock.language.chart import Trigger
from interlock.language.definition import Definition, compile_document, define, load, loads
from interlock.language.determinism import Unproved
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import read_document
from tests.support.choices import machine, named, unordered

DATA: dict[str, Any] = {
    "amount": {"type": "decimal", "scale": 2, "minimum": 0},
    "limit": {"type": "integer"},
    "floor": {"type": "integer"},
    "region": {"type": "string", "enum": ["EU", "US"]},
    "due_at": {"type": "date-time", "optional": True},
}
#: Apart, but not by the bounds of single values.
BY_SOLVER = ["data.limit > data.floor && data.floor > 5", "data.limit < 3 && data.floor != 0"]


def choice(*whens: Any) -> Definition:
    return define(machine(named(whens), DATA))


def fault(document: dict[str, Any], **how: Any) -> Diagnostic:
    with pytest.raises(DefinitionError) as refusal:
        define(document, **how)
    (found,) = refusal.value.diagnostics
    return found


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    "whens",
    [
        ["data.amount < 100", "data.amount >= 100"],
        ["data.amount < 99.99", "data.amount == 99.99", "data.amount > 99.99"],
        ['data.region == "EU"', 'data.region == "US"'],
        ["data.limit > data.floor", "data.limit <= data.floor"],
        ["has(data.due_at) && data.due_at < now", "has(data.due_at) && data.due_at >= now"],
        ["has(data.due_at) && data.due_at < now", "!has(data.due_at)"],
        [{"check": "is_open"}, {"not": {"check": "is_open"}}],
        [{"all": [{"check": "is_open"}, "data.limit > 1"]}, "data.limit <= 1"],
        ["data.amount < 0", "data.limit == 1"],
    ],
)
def test_what_bounds_tell_apart_needs_no_solver(whens: list[Any]) -> None:
    definition = choice(*whens)
    assert definition.unproved == ()
    assert {warning.code for warning in definition.warnings} <= {"dead-branch"}


def test_what_overlaps_is_refused_with_values() -> None:
    found = fault(machine(named(["data.amount <= 100", "data.amount >= 99.99"]), DATA))
    assert found.code == "nondeterministic"
    assert " when data.amount = 99.99: `w0` of `asked` and `w1` of `asked`" in found.message
    assert found.path == "states.asked.on.go[1]"
    assert found.hint is not None
    assert "first-match" in found.hint


def test_where_no_value_matters_none_is_shown() -> None:
    found = fault(machine(named(["true", "1 < 2"]), DATA))
    assert "leads by both ways: `w0` of `asked`" in found.message


def test_a_minimum_that_is_declared_counts() -> None:
    whens = ["data.amount < 10", "data.amount < 0 || data.amount >= 10"]
    assert choice(*whens).unproved == ()
    data = {**DATA, "amount": {"type": "decimal", "scale": 2}}
    assert fault(machine(named(whens), data)).code == "nondeterministic"


def test_an_error_of_one_branch_keeps_it_from_being_taken() -> None:
    """Where `10 / limit` fails, the first branch is not true, and the other may be."""
    assert choice("10 / data.limit > 100", "data.limit == 0").unproved == ()


def test_the_solver_proves_what_bounds_do_not() -> None:
    pytest.importorskip("z3")
    assert choice(*BY_SOLVER).unproved == ()
    assert choice(*BY_SOLVER).warnings == ()


@pytest.mark.usefixtures("no_solver")
def test_without_the_solver_the_branches_are_marked_and_the_rest_is_the_same() -> None:
    document = machine(named(BY_SOLVER), DATA)
    definition = define(document)
    (warning,) = definition.warnings
    assert (warning.code, warning.severity) == ("undecided-overlap", "warning")
    assert "no solver is installed" in warning.message
    assert "interlock[prove]" in (warning.hint or "")
    unproved = Unproved("asked", Trigger("event", "go"), ("w0", "w1"), "no solver")
    assert definition.unproved == (unproved,)
    assert define(document, prove=False).digest == definition.digest


@pytest.mark.usefixtures("no_solver")
def test_a_proof_may_be_required() -> None:
    import json

    document = read_document(json.dumps(machine(named(BY_SOLVER), DATA)))
    definition, (found,) = compile_document(document, require_proof=True)
    assert definition is None
    assert (found.code, found.severity) == ("undecided-overlap", "error")


def test_nothing_is_proved_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("interlock.language.proof.prove.Prover._decide", forbidden)
    definition = define(unordered(["data.a < 2", "data.a < 3"]), prove=False)
    (open_,) = definition.unproved
    assert open_.branches == ("w0", "w1")
    assert definition.warnings == ()
    assert fault(unordered([{"all": []}, {"all": []}]), prove=False).code == "nondeterministic"


def test_each_door_takes_whether_to_prove(tmp_path: Any) -> None:
    text = (
        "machine: m\ninitial: a\ndata: {x: {type: integer}}\n"
        "states: {a: {on: {go: [{to: b, when: data.x < 2}, {name: c, when: data.x < 3}]}},"
        " b: {final: true}}"
    )
    file = tmp_path / "m.yaml"
    file.write_text(text)
    assert len(loads(text, prove=False).unproved) == len(load(file, prove=False).unproved) == 1
    for attempt in (lambda: loads(text), lambda: load(file)):
        with pytest.raises(DefinitionError, match="nondeterministic"):
            attempt()


def test_what_a_guard_in_python_says_is_not_known() -> None:
    for whens in ([{"check": "x"}, {"check": "y"}], [{"check": "x"}, "data.limit > 1"]):
        found = fault(machine(named(whens), DATA))
        assert found.code == "undecided-overlap"
        assert "that depends on what `x" in found.message
        assert "first-match" in (found.hint or "")


@pytest.mark.parametrize("prove", [True, False])
def test_labels_exclude_nothing(prove: bool) -> None:
    branches = [{"to": "over", "name": n, "guard": n} for n in ("QP", "QA")]
    found = fault(machine(branches, DATA), prove=prove)
    assert found.code == "nondeterministic"
    assert found.message.endswith("where `QP` and `QA` are both asserted")
    branches[0]["when"], branches[1]["when"] = "data.limit < 1", "data.limit >= 1"
    assert {warning.code for warning in define(machine(branches, DATA)).warnings} == set()


def test_branches_in_order_need_no_proof() -> None:
    ordered = {"order": "first-match", "branches": named(["data.limit > 1", "data.floor > 1"])}
    definition = define(machine(ordered, DATA))
    assert (definition.unproved, definition.warnings) == ((), ())


def beside(*whens: Any) -> dict[str, Any]:
    """A machine that asks in one region, while another one is idle or busy."""
    asks = [{"to": "asked", "name": f"w{n}", "when": when} for n, when in enumerate(whens)]
    regions = {
        "asks": {"initial": "asked", "states": {"asked": {"on": {"go": asks}}}},
        "works": {"initial": "idle", "states": {"idle": {"on": {"work": "busy"}}, "busy": {}}},
    }
    states = {"both": {"type": "parallel", "states": regions}}
    return {"machine": "m", "initial": "both", "data": DATA, "states": states}


def unless_busy(when: str) -> dict[str, Any]:
    return {"any": [{"in": "works.busy"}, when]}


def test_a_pair_is_judged_in_every_way_in_which_it_stands() -> None:
    """Beside `idle` the branches exclude each other; beside `busy` they do not."""
    found = fault(beside(unless_busy("data.limit < 1"), "data.limit >= 1"))
    assert found.code == "nondeterministic"
    assert "in `both{asked|busy}`" in found.message


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("prove", [True, False])
def test_what_is_open_in_one_way_may_be_refused_in_another(prove: bool) -> None:
    with pytest.raises(DefinitionError) as refusal:
        define(beside(*map(unless_busy, BY_SOLVER)), prove=prove)
    (found,) = [found for found in refusal.value.diagnostics if found.severity == "error"]
    assert found.code == "nondeterministic"
    assert "in `both{asked|busy}`" in found.message


def test_what_a_state_requires_is_there_in_the_proof() -> None:
    """`due_at` may be absent outside, where both branches can be true."""
    asks = named(["!has(data.due_at)", "!has(data.due_at) && data.limit > 1"])
    for branch in asks:
        del branch["to"]
    inner = {"one": {"data": ["due_at"], "on": {"next": "two"}}, "two": {}}
    states = {
        "new": {"on": {"begin": {"to": "p", "set": {"due_at": "now"}}}},
        "p": {"initial": "one", "on": {"go": asks}, "states": inner},
    }
    found = fault({"machine": "m", "initial": "new", "data": DATA, "states": states})
    assert (found.code, found.path) == ("nondeterministic", "states.p.on.go[1]")
    assert found.message.startswith("in `p.two`, ")


def test_an_outer_choice_is_made_only_where_no_inner_one_is() -> None:
    """The inner branch takes the cases in which both outer ones would be true."""
    outer = named(["data.limit > 0", "data.limit < 10"])
    for branch in outer:
        branch["to"] = "p"
    within = {"to": "one", "when": "data.limit > 0 && data.limit < 10"}
    inner = {"initial": "one", "on": {"go": outer}, "states": {"one": {"on": {"go": within}}}}
    document = {"machine": "m", "initial": "p", "data": DATA, "states": {"p": inner}}
    assert define(document).unproved == ()
    within["when"] = "data.limit > 1 && data.limit < 10"
    found = fault(document)
    assert (found.code, " when data.limit = 1:" in found.message) == ("nondeterministic", True)


def regions(left: str, right: str, **more: Any) -> dict[str, Any]:
    def leaves(when: str, to: str) -> dict[str, Any]:
        return {"initial": "x", "states": {"x": {"on": {"go": {"to": to, "when": when}}}}}

    p = {"type": "parallel", "states": {"q": leaves(left, "over"), "r": leaves(right, "out")}}
    states = {"p": p, "over": {"final": True}, "out": {"final": True}}
    return {"machine": "m", "initial": "p", "data": DATA, "states": states, **more}


def test_regions_that_leave_each_other_do_so_in_different_cases() -> None:
    assert define(regions("data.limit < 1", "data.limit >= 1")).unproved == ()
    found = fault(regions("data.limit < 2", "data.limit >= 1"))
    assert (found.code, " when data.limit = 1:" in found.message) == ("nondeterministic", True)
    assert "conflicts: first-region" in (found.hint or "")
    both = regions("data.limit < 2", "data.limit >= 1", conflicts="first-region")
    assert define(both).unproved == ()


def test_an_event_that_moves_two_regions_is_no_conflict() -> None:
    def moves(when: str) -> dict[str, Any]:
        return {"initial": "x", "states": {"x": {"on": {"go": {"to": "y", "when": when}}}, "y": {}}}

    states = {"p": {"type": "parallel", "states": {n: moves("data.limit > 0") for n in "qr"}}}
    definition = define({"machine": "m", "initial": "p", "data": DATA, "states": states})
    assert (definition.unproved, definition.warnings) == ((), ())


def test_of_one_pair_one_fault_is_told() -> None:
    inner = {n: {"on": {"next": m}} for n, m in (("one", "two"), ("two", "one"))}
    choice = named(["data.limit < 2", "data.limit < 3"])
    for branch in choice:
        branch["to"] = "one"
    outer = {"initial": "one", "states": inner, "on": {"go": choice}}
    document = {"machine": "m", "initial": "p", "data": DATA, "states": {"p": outer}}
    assert fault(document).code == "nondeterministic"


# Branches that nothing takes


def dead(branches: Any) -> list[tuple[str, str]]:
    warnings = define(machine(branches, DATA)).warnings
    assert {warning.code for warning in warnings} <= {"dead-branch"}
    return [(warning.path, warning.message.rpartition(": ")[2]) for warning in warnings]


def test_a_branch_whose_condition_is_never_true_is_dead() -> None:
    never = "its condition is never true"
    assert dead(named(["data.amount < 0", "data.amount >= 1"])) == [
        ("states.asked.on.go[0]", never)
    ]
    assert dead(named(["data.limit == 1 && data.limit == 2"])) == [("states.asked.on.go[0]", never)]
    assert dead(named(["1 / 0 > data.limit"])) == [("states.asked.on.go[0]", never)]
    assert dead(named([{"in": "over"}, "data.limit > 0"])) == [("states.asked.on.go[0]", never)]
    assert dead(named([{"check": "open"}, {"not": {"check": "open"}}])) == []


def test_a_branch_that_the_earlier_ones_swallow_is_dead() -> None:
    swallowed = "something else is taken wherever it could be"
    branches = named(["data.limit < 10", "data.limit < 5", "data.limit >= 10"])
    last = {"to": "over", "name": "last", "otherwise": True}
    found = dead({"order": "first-match", "branches": [*branches, last]})
    assert found == [
        ("states.asked.on.go.branches[1]", swallowed),
        ("states.asked.on.go.branches[3]", swallowed),
    ]


def test_a_branch_that_every_inner_state_takes_from_it_is_dead() -> None:
    inner = {"one": {"on": {"go": "two"}}, "two": {"on": {"go": "one"}}}
    outer = {"initial": "one", "states": inner, "on": {"go": "one"}}
    (warning,) = define({"machine": "m", "initial": "p", "states": {"p": outer}}).warnings
    assert (warning.code, warning.path) == ("dead-branch", "states.p.on.go")
    del inner["two"]["on"]
    assert define({"machine": "m", "initial": "p", "states": {"p": outer}}).warnings == ()


def test_the_declaration_keeps_what_is_dead() -> None:
    definition = define(machine(named(["data.amount < 0", "data.amount >= 0"]), DATA))
    assert [t["action"] for t in definition.declaration["transitions"][:2]] == ["go/w0", "go/w1"]
