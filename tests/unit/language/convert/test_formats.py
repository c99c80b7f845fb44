"""A file is told by what it looks like; values tell what fields hold; names stay apart."""

from typing import Any

import pytest

from interlock.language.convert.declared import Untyped, declared, json_value
from interlock.language.convert.formats import convert, detect
from interlock.language.convert.naming import Names, identifier
from interlock.language.expressions.properties import name_fault, read_properties
from tests.support.converting import refused
from tests.support.foreign import SAMPLES, SYMFONY_STATES

MACHINE = "machine: m\nversion: 1\ninitial: a\nstates: {a: {}}\n"


@pytest.mark.parametrize("format", SAMPLES)
def test_a_format_is_told_by_what_it_looks_like(format: str) -> None:
    samples = {**SAMPLES, "machine": MACHINE}
    assert {name: detect(text) for name, text in samples.items()} == {n: n for n in samples}
    assert detect(SYMFONY_STATES) == "symfony"
    assert detect("\ufeff\n <scxml/>") == "scxml"


@pytest.mark.parametrize("text", ["", "a: 1\n", "- states\n", "7"])
def test_what_looks_like_none_is_refused(text: str) -> None:
    assert [code for code, _ in refused(lambda: convert(text))] == ["unknown-format"]


def test_a_machine_of_ours_stays_what_it_is_but_for_its_name() -> None:
    assert convert(MACHINE).definition == {
        "machine": "m", "version": 1, "initial": "a", "states": {"a": {}},
    }  # fmt: skip
    assert convert(MACHINE, name="n").definition["machine"] == "n"
    assert refused(lambda: convert(MACHINE.replace("a: {}", "b: {}"))) == [("unknown-state", 3)]


@pytest.mark.parametrize(
    "value",
    [True, 7, -2.5, "x", [1, 2], [1, 2.5], [[True], [False]], {"a": {"b": [""]}}, [{"a": 1}]],
)  # fmt: skip
def test_a_value_declares_a_field_that_begins_with_it(value: Any) -> None:
    properties = read_properties({"x": declared(value)})
    assert properties.complete({}) == {"x": value}


@pytest.mark.parametrize("value", [None, [], [1, "a"], {"a b": 1}, {"in": 1}, [{"a": 1}, {"b": 1}]])
def test_a_value_that_does_not_tell_its_type_declares_nothing(value: Any) -> None:
    with pytest.raises(Untyped):
        declared(value)


def test_a_value_that_is_nested_too_deeply_declares_nothing() -> None:
    value: Any = 1
    for _ in range(12):
        value = [value]
    with pytest.raises(Untyped):
        declared(value)


@pytest.mark.parametrize("text", ["{", "NaN", "-Infinity", '"\\u0000"', '"\\ud800"', "[" * 9000])
def test_a_text_that_no_store_could_hold_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_value(text)


def test_names_stay_legal_and_apart() -> None:
    names = Names({"taken"})
    given = [
        names.give(name, "x") for name in ("a.b", "a/b", "", " ", "taken", "e\u0301", "\u00e9")
    ]
    assert given == ["a_b", "a_b_2", "x", "x_2", "taken_2", "\u00e9", "\u00e9_2"]
    assert [identifier(name) for name in ("a-b", "1", "", "in", "_ok", "x" * 99)] == [
        "a_b", "x_1", "x_", "x_in", "_ok", "x" * 64,
    ]  # fmt: skip
    assert name_fault(identifier("\u00e9 " * 80)) is None
