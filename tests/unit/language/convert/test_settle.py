"""The last pass of every importer: targets that are found, names, and what is dead."""

from typing import Any

import pytest

from interlock.language import define
from interlock.language.chart import Hook
from interlock.language.convert import ConvertError
from interlock.language.convert.branches import choice, live
from interlock.language.convert.paths import Hidden, written
from interlock.language.convert.result import Findings
from interlock.language.convert.settle import settle
from interlock.language.source import Mark, Source

PLACES = {"": Mark(1, 1), "a": Mark(2, 1), "a.b": Mark(3, 1), "c": Mark(4, 1)}


def machine(initial: str, **states: Any) -> dict[str, Any]:
    data = {name: {"type": "boolean", "default": False} for name in ("x", "y")}
    return {"machine": "m", "version": 1, "data": data, "initial": initial, "states": states}


def settled(document: dict[str, Any], **options: Any) -> tuple[dict[str, Any], list[str]]:
    findings = Findings(Source("1\n2\n3\n4\n5\n", "m"))
    made = settle(document, findings, PLACES, **options)
    define(made)
    return made, [f"{note.line}:{note.code}" for note in findings.notes]


def refused(document: dict[str, Any], **options: Any) -> list[tuple[str, int | None]]:
    with pytest.raises(ConvertError) as caught:
        settled(document, **options)
    return [(fault.code, fault.line) for fault in caught.value.diagnostics]


# Targets


def test_a_sibling_is_called_by_its_name_and_others_by_a_path_that_is_found() -> None:
    made = written(
        machine(
            "a",
            a={"initial": "b", "states": {"b": {"on": {"e": "a.x", "f": "c", "g": "a"}},
                                          "x": {"always": {"to": "c", "when": {"in": "a.b"}}}}},
            c={"on": {"e": {"order": "first-match", "branches": [{"to": ["a.b"]}, {"to": "a"}]}}},
        )
    )  # fmt: skip
    inner = made["states"]["a"]["states"]
    assert inner["b"]["on"] == {"e": "x", "f": "c", "g": "a"}
    assert inner["x"]["always"] == {"to": "c", "when": {"in": "b"}}
    assert made["states"]["c"]["on"]["e"]["branches"] == [{"to": ["a.b"]}, {"to": "a"}]


def test_a_path_that_an_inner_state_hides_begins_at_a_state_around_both() -> None:
    """`a.z` would be `a.a.z` from where `y` stands."""
    inner = {"a": {"states": {"z": {}}, "initial": "z"}, "z": {}, "q": {
        "initial": "y", "states": {"y": {"on": {"e": "a.z", "f": "a.a.z"}}}}}  # fmt: skip
    made = written(machine("a", a={"initial": "q", "states": inner}))
    on = made["states"]["a"]["states"]["q"]["states"]["y"]["on"]
    assert on == {"e": "z", "f": "a.a.z"}


def test_a_state_that_no_path_finds_is_hidden() -> None:
    with pytest.raises(Hidden, match=r"^c$"):
        written(machine("a", a={"initial": "c", "states": {"c": {"on": {"e": "c"}}}}, c={}))


# Names


def test_branches_that_history_could_not_tell_apart_get_names() -> None:
    branches = [{"to": "c", "when": "data.x"}, {"to": "c", "when": "data.y"}, {"to": "c"}]
    made, _ = settled(machine("a", a={"on": {"e": choice(branches)}}, c={}))
    names = [branch.get("name") for branch in made["states"]["a"]["on"]["e"]["branches"]]
    assert names == [None, "c-2", "c-3"]


# What is dead


def test_states_that_nothing_reaches_go_with_all_that_is_in_them() -> None:
    made, notes = settled(
        machine("c", a={"initial": "b", "states": {"b": {"on": {"e": "c"}}}}, c={"on": {"e": "c"}})
    )
    assert made["states"] == {"c": {"on": {"e": "c"}}}
    assert notes == ["2:unreachable-state"]


def test_a_compound_state_that_never_begins_at_its_beginning_gets_another() -> None:
    made, notes = settled(
        machine("c", a={"initial": "b", "states": {"b": {}, "x": {}}}, c={"on": {"e": "a.x"}})
    )
    assert made["states"]["a"] == {"initial": "x", "states": {"x": {}}}
    assert notes == ["3:unreachable-state"]


def test_a_transition_that_inner_states_always_come_before_is_left_out() -> None:
    made, notes = settled(
        machine(
            "a", a={"initial": "b", "on": {"e": "c"}, "states": {"b": {"on": {"e": "c"}}}}, c={}
        )
    )
    assert "on" not in made["states"]["a"]
    assert notes == ["2:never-taken"]


def test_a_transition_that_keeps_a_region_from_looking_further_out_stays() -> None:
    """The second region's own transition gives way to the first's; without it the outer one
    would be taken as well.
    """
    document = machine(
        "a",
        a={
            "on": {"e": {"do": ["ring"]}},
            "initial": "q",
            "states": {
                "q": {"on": {"go": "a.p"}},
                "p": {
                    "type": "parallel",
                    "states": {
                        "r": {"initial": "r1", "states": {"r1": {"on": {"e": "c"}}}},
                        "s": {"initial": "s1", "states": {"s1": {"on": {"e": "a.p.s.s1"}}}},
                    },
                },
            },
        },
        c={},
    )
    document["conflicts"] = "first-region"
    made, notes = settled(document)
    assert made["states"]["a"]["states"]["p"]["states"]["s"]["states"]["s1"]["on"] == {"e": "s1"}
    hooks = {b.from_state: b.hooks for b in define(made).flat.branches if b.action == "e"}
    assert hooks == {"a.p{r1|s1}": (), "a.q": (Hook("ring"),)}
    assert [note.partition(":")[2] for note in notes] == ["never-taken"]


def test_a_condition_on_what_is_gone_is_never_true() -> None:
    when = {"any": [{"in": "c"}, "data.x"]}
    made, _ = settled(machine("a", a={"on": {"e": {"to": "a", "when": when}}}, c={}))
    assert made["states"]["a"]["on"]["e"]["when"] == {"any": [{"any": []}, "data.x"]}
    (branch,) = define(made).flat.branches
    assert str(branch.when) == "Expr(text='data.x')"


def test_of_a_choice_the_live_branches_are_kept() -> None:
    always = {"to": "a"}
    assert live([{"to": "b", "when": "x"}, {"to": "c", "when": "x"}, always, always]) == [
        {"to": "b", "when": "x"},
        always,
    ]
    assert choice([always]) == "a"
    assert choice([{"to": "a", "otherwise": True}]) == "a"
    assert choice([{"to": "b", "guard": "g"}, {"to": "a", "guard": "h"}]) == {
        "order": "first-match",
        "branches": [{"to": "b", "guard": "g"}, {"to": "a", "guard": "h"}],
    }


# What refuses a file


def test_what_the_compiler_finds_is_told_at_the_state_that_it_is_about() -> None:
    going = machine("c", c={"always": "a"}, a={"always": {"to": "a", "when": "data.x"}})
    assert refused(going) == [("automatic-cycle", 2)]
    assert refused(machine("c", c={"final": True})) == [("initial-final", 1)]
    assert refused(machine("a", a={"after": {"P1Y": "a"}})) == [("bad-duration", 2)]
    assert refused(machine("a", a={"initial": "b", "states": {"b": {"odd": 1}}})) == [
        ("unknown-key", 3)
    ]


def test_too_many_flat_states_are_refused() -> None:
    regions = {name: {"initial": "x", "states": {
        "x": {"on": {f"e{name}": f"a.{name}.y"}}, "y": {"on": {f"e{name}": f"a.{name}.x"}}}}
        for name in "pqrs"}  # fmt: skip
    document = machine("a", a={"type": "parallel", "states": regions})
    assert refused(document, states_max=15) == [("budget-exceeded", 1)]
    assert len(define(settled(document, states_max=16)[0]).states) == 16


def test_a_number_that_our_reader_does_not_take_refuses_the_file() -> None:
    data = {"x": {"type": "integer", "default": 10**2000}}
    assert ("budget-exceeded", 1) in refused({**machine("a", a={}), "data": data})
