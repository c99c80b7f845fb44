"""Symfony's workflows as machine documents: nets as their markings, and what is refused."""

import pytest

from interlock.language import define
from interlock.language.convert import from_symfony
from interlock.language.convert.markings import Move, Rivals, TooManyMarkings, Unsafe, walk
from tests.support.converting import moves, notes, refused
from tests.support.foreign import SYMFONY, SYMFONY_STATES


def net(inside: str, kind: str = "workflow") -> str:
    return f"workflows:\n  w:\n    type: {kind}\n{inside}"


def test_a_state_machine_has_its_places_as_states() -> None:
    converted = from_symfony(SYMFONY_STATES)
    assert moves(converted) == {
        ("start", "submit", "test"), ("coding", "update", "test"), ("test", "update", "test"),
        ("review", "update", "test"), ("test", "wait_for_review/review", "review"),
        ("review", "request_change", "coding"), ("review", "accept/merged", "merged"),
        ("review", "reject", "closed"), ("closed", "reopen", "review"),
    }  # fmt: skip
    assert converted.definition["states"]["merged"] == {"final": True}
    assert [*converted.definition["data"]] == ["guard_1"]  # the same text is the same guard
    assert notes(converted) == {"final-place", "opaque-guard"}


def test_a_workflow_has_its_markings_as_states() -> None:
    converted = from_symfony(SYMFONY)
    definition = define(converted.definition)
    assert "published" in definition.states
    assert "read + proofed" in definition.states
    assert converted.counts["states"] == len(definition.states) == 6
    assert converted.definition["states"]["draft"]["label"] == "Draft"
    assert "Correct the text" in str(converted.definition)
    assert "annotation-dropped" in notes(converted)


def test_a_net_moves_as_its_tokens_do() -> None:
    split = Move("split", ("a",), ("b", "c"), ())
    join = Move("join", ("b", "c"), ("d",), ())
    step = Move("step", ("b",), ("e",), ())
    found = walk(frozenset("a"), [split, join, step])
    assert found == {
        frozenset("a"): [(split, frozenset("bc"))],
        frozenset("bc"): [(join, frozenset("d")), (step, frozenset("ce"))],
        frozenset("d"): [],
        frozenset("ce"): [],
    }


def test_a_net_that_is_no_set_of_states_is_told() -> None:
    split = Move("split", ("a",), ("b", "c"), ())
    again = Move("again", ("b",), ("c",), ())
    with pytest.raises(Unsafe, match="`again` can put a second token into `c`"):
        walk(frozenset("a"), [split, again])
    with pytest.raises(Unsafe):
        walk(frozenset("a"), [Move("twice", ("a",), ("b", "b"), ())])
    with pytest.raises(Rivals, match="two transitions `t` lead out of `a`"):
        walk(frozenset("a"), [Move("t", ("a",), ("b",), ()), Move("t", ("a",), ("c",), ())])
    many = [Move(f"t{n}", (f"p{n}",), (f"q{n}",), ()) for n in range(12)]
    with pytest.raises(TooManyMarkings):
        walk(frozenset(f"p{n}" for n in range(12)), many)


def test_parts_may_be_written_in_several_ways() -> None:
    listed = net(
        "    initial_marking: [a]\n    places: [{name: a}, b]\n"
        "    transitions: [{name: go, from: [{place: a, weight: 1}], to: b}]\n"
    )
    mapped = net("    transitions: {go: {from: a, to: [b]}}\n")
    bare = "type: workflow\nplaces: {a: , b: {}}\ntransitions: {go: {from: [a], to: b}}\n"
    nested = "framework:\n  workflows:\n    enabled: true\n    workflows:\n"
    nested += "      w:\n        transitions: {go: {from: a, to: b}}\n"
    for text in (listed, mapped, bare, nested):
        assert moves(from_symfony(text, name="w")) == {("a", "go", "b")}


def test_what_cannot_be_reached_is_left_out_and_told() -> None:
    converted = from_symfony(
        net("    places: [a, b, lost]\n    transitions:\n      go: {from: a, to: b}\n"
            "      never: {from: [a, b], to: lost}\n")
    )  # fmt: skip
    assert notes(converted) == {"final-place", "never-taken", "unreachable-state"}
    assert moves(converted) == {("a", "go", "b")}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: 1\n", "not-symfony"),
        ("- a\n", "not-symfony"),
        ("workflows: {a: {transitions: {}}, b: {transitions: {}}}\n", "several-workflows"),
        (net("    transitions: {}\n"), "missing-key"),
        (net("    transitions: {go: {from: a}}\n"), "missing-key"),
        (net("    transitions: {go: {from: a, to: b}}\n", "petri"), "wrong-type"),
        (net("    places: [a, a]\n    transitions: {go: {from: a, to: a}}\n"), "wrong-type"),
        (net("    places: [a]\n    transitions: {go: {from: a, to: b}}\n"), "unknown-state"),
        (net("    initial_marking: z\n    transitions: {go: {from: a, to: b}}\n"), "unknown-state"),
        (net("    transitions: {go: {from: a, to: [b, c]}}\n", "state_machine"), "wrong-type"),
        (net("    transitions: {go: {from: a, to: b, on: x}}\n"), "unsupported"),
        (net("    extra: 1\n    transitions: {go: {from: a, to: b}}\n"), "unsupported"),
        (net("    transitions: {go: {from: {place: a, weight: 2}, to: b}}\n"), "unsupported"),
        (net("    transitions: {go: {from: a, to: b, guard: [x]}}\n"), "wrong-type"),
        (net("    transitions: [{from: a, to: b}]\n"), "wrong-type"),
        (net("    transitions: [7]\n"), "wrong-type"),
        (net("    transitions: 7\n"), "wrong-type"),
        (net("    metadata: [x]\n    transitions: {go: {from: a, to: b}}\n"), "wrong-type"),
        (net("    transitions: [{name: t, from: a, to: b}, {name: t, from: a, to: c}]\n"),
         "same-transition"),
        (net("    transitions: {s: {from: a, to: [b, c]}, t: {from: b, to: c}}\n"), "second-token"),
        (net("    places: !php/const X\n    transitions: {go: {from: a, to: b}}\n"), "yaml-syntax"),
        (net("    transitions: {go: {from: '', to: b}}\n"), "missing-key"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_over_is_refused_by_name(text: str, code: str) -> None:
    found = refused(lambda: from_symfony(text, file="w.yaml"))
    assert code in [name for name, _ in found]
    assert all(line is not None for _, line in found)


def test_a_net_of_too_many_markings_is_refused() -> None:
    places = ", ".join(f"p{n}" for n in range(12))
    steps = "".join(f"      t{n}: {{from: p{n}, to: q{n}}}\n" for n in range(12))
    text = net(f"    transitions:\n      s: {{from: a, to: [{places}]}}\n{steps}")
    assert [code for code, _ in refused(lambda: from_symfony(text))] == ["budget-exceeded"]
