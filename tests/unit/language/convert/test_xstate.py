"""XState charts as machine documents: what each construct becomes, and what is refused."""

import json
from typing import Any

import pytest

from interlock.language import DefinitionError, define
from interlock.language.convert import Converted, from_xstate
from tests.support.converting import moves, notes, refused
from tests.support.foreign import XSTATE


def read(chart: dict[str, Any], **options: Any) -> Converted:
    return from_xstate(json.dumps({"id": "m", **chart}), file="m.json", **options)


def two(**a: Any) -> dict[str, Any]:
    """A chart of two states of which the first says something."""
    return {"initial": "a", "states": {"a": a, "b": {"on": {"back": "a"}}}}


def test_every_construct_of_the_sample_is_carried_over() -> None:
    converted = from_xstate(XSTATE)
    data = converted.definition["data"]
    assert {name: field["type"] for name, field in data.items()} == {
        "heat": "number", "door": "string", "rates": "array", "guard_1": "boolean",
    }  # fmt: skip
    assert notes(converted) == {
        "annotation-dropped", "data-untyped", "descriptor-expanded", "document-order",
        "invoke-as-events", "never-taken", "opaque-guard", "renamed",
    }  # fmt: skip
    mended = {to for state, action, to in moves(converted) if action.startswith("mend/")}
    assert mended == {"on{slow|lit}", "on{fast|lit}", "on{blown|lit}"}


@pytest.mark.parametrize(
    ("version", "written", "internal"),
    [
        (5, {"target": ".x"}, True),
        (5, {"target": ".x", "reenter": True}, False),
        (4, {"target": ".x"}, True),
        (4, {"target": "o.x"}, False),
        (4, {"target": "o.x", "internal": True}, True),
    ],
)
def test_a_transition_leaves_its_state_as_the_version_says(
    version: int, written: dict[str, Any], internal: bool
) -> None:
    inner = {"initial": "x", "states": {"x": {"on": {"go": "y"}}, "y": {}}, "exit": ["left"]}
    chart = {"initial": "o", "states": {"o": {**inner, "on": {"e": written}}}}
    converted = read(chart, version=version)
    branches = define(converted.definition).flat.branches
    called = {hook.name for b in branches if b.action == "e" for hook in b.hooks}
    assert called == (set() if internal else {"left"})


def test_the_words_of_a_file_tell_the_version() -> None:
    state = {"initial": "x", "states": {"x": {}}, "on": {"e": {"target": "o"}}, "onExit": "left"}
    old = read({"initial": "o", "states": {"o": state}})
    (branch,) = define(old.definition).flat.branches
    assert [hook.name for hook in branch.hooks] == ["left"]


def test_a_machine_of_regions_is_one_state_of_ours() -> None:
    region = {"on": {"e": ".q"}, "states": {"q": {}}, "initial": "q"}
    converted = read({"type": "parallel", "states": {"p": region, "r": {}}})
    assert [*converted.definition["states"]] == ["m"]
    assert define(converted.definition).states == ("m{q|r}",)


def test_what_the_machine_itself_answers_holds_in_every_state() -> None:
    converted = read({**two(on={"e": "b"}), "on": {"e": ".a", "reset": ".a"}})
    assert moves(converted) == {
        ("a", "e", "b"), ("a", "reset", "a"), ("b", "e", "a"), ("b", "reset", "a"),
        ("b", "back", "a"),
    }  # fmt: skip
    assert "never-taken" in notes(converted)


@pytest.mark.parametrize(
    ("delay", "written"),
    [("500", "500ms"), ("1000", "1s"), ("90000", "90s"), ("3600000", "1h"), ("86400000", "1d")],
)
def test_a_delay_is_written_in_the_largest_unit(delay: str, written: str) -> None:
    converted = read(two(after={delay: "b"}))
    assert converted.definition["states"]["a"]["after"] == {written: "b"}


def test_an_id_may_hold_dots_and_so_may_a_key() -> None:
    states = {
        "a": {"on": {"e": "#deep.one.x.y", "f": "b.c"}},
        "b.c": {
            "id": "deep.one",
            "initial": "x",
            "states": {"x": {"initial": "y", "states": {"y": {}}}},
        },
    }
    converted = read({"initial": "a", "states": states})
    assert moves(converted) == {("a", "e", "b_c.x.y"), ("a", "f", "b_c.x.y")}


def test_a_key_that_stands_at_several_places_is_found_from_each() -> None:
    inner = {"initial": "a", "states": {"a": {"on": {"e": "#m.a", "f": "#m.c"}}}}
    states = {"a": {"initial": "b", "states": {"b": inner}}, "c": {"on": {"g": "a"}}}
    converted = read({"initial": "a", "states": states})
    assert converted.states["m.a.b.a"] == "a.b.a_2"
    assert moves(converted) == {
        ("a.b.a_2", "e", "a.b.a_2"), ("a.b.a_2", "f", "c"), ("c", "g", "a.b.a_2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chart", "code"),
    [
        ({"states": 1}, "not-xstate"),
        ({"states": {}}, "wrong-type"),
        (two(on={"e": "zz"}), "unknown-state"),
        (two(on={"e": {"target": 1}}), "wrong-type"),
        (two(on={"e": 1}), "wrong-type"),
        (two(on=1), "wrong-type"),
        (two(on=[{"target": "b"}]), "wrong-type"),
        (two(after={"slow": "b"}), "named-delay"),
        (two(after={"0": "b"}), "named-delay"),
        (two(after=["b"]), "wrong-type"),
        (two(on={"e": {"target": "b", "guard": {}}}), "guard"),
        (two(on={"e": {"target": "b", "guard": 5}}), "guard"),
        (two(on={"e": {"target": "b", "guard": {"type": "and", "guards": []}}}), "guard"),
        (two(on={"e": {"guard": {"type": "g", "params": {"n": 1}}}}), "guard-params"),
        (two(entry=[{"type": "x", "params": {"n": 1}}]), "action-params"),
        (two(entry=[{"type": "xstate.assign"}]), "unsupported"),
        (two(entry=[{"type": "xstate.raise", "event": {"type": "e", "n": 1}}]), "raise"),
        (two(entry=[{"type": "xstate.raise", "event": "e", "delay": 9}]), "raise"),
        (two(entry=[7]), "wrong-type"),
        (two(spawn="x"), "unsupported"),
        (two(on={"e": {"target": "b", "in": "#m.b"}}), "unsupported"),
        (two(on={"xstate.done.actor.x": "b"}), "platform-event"),
        (two(type="final", on={"e": "b"}), "final-with-transitions"),
        (two(type="final", initial="x", states={"x": {}}), "final-with-states"),
        (two(states={"x": {}}), "initial-missing"),
        (two(initial="zz", states={"x": {}}), "unknown-state"),
        (two(initial={"target": "x", "actions": ["go"]}, states={"x": {}}),
         "initial-with-actions"),
        ({**two(), "entry": ["go"]}, "machine-level"),
        (two(always={"target": "a", "guard": "g"}), "automatic-cycle"),
        (two(type="parallel", states={"x": {}}, on={"e": {"target": "a"}}), "internal-parallel"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_over_is_refused_by_name(chart: dict[str, Any], code: str) -> None:
    found = refused(lambda: read(chart))
    assert code in [name for name, _ in found]
    assert all(line == 1 for _, line in found)


def test_a_refusal_stands_where_the_construct_does() -> None:
    text = json.dumps({"id": "m", **two(on={"e": "zz"})}, indent=1)
    (found,) = refused(lambda: from_xstate(text))
    assert text.splitlines()[found[1] - 1].strip() == '"e": "zz"'  # type: ignore[operator]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"states": {"a": null}', "\x00"])
def test_what_is_no_json_or_no_chart_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError):
        from_xstate(text, file="m.json")
