"""Property maps: what is refused in one, and what a value may be."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.declaration import path_text
from interlock.language.expressions.properties import (
    INTEGER,
    NUMBER,
    PropertiesError,
    Property,
    read_properties,
    units,
)


def faults_of(mapping: object) -> list[tuple[str, str]]:
    with pytest.raises(PropertiesError) as refused:
        read_properties(mapping)
    return [(defect.code, path_text(defect.path)) for defect in refused.value.defects]


def faults(schema: dict[str, Any], value: object) -> list[str]:
    return [defect.code for defect in read_properties({"x": schema}).check({"x": value})]


def test_a_map_is_read() -> None:
    properties = read_properties(
        {
            "amount": {"type": "decimal", "scale": 2, "minimum": 0},
            "region": {"type": "string", "enum": ["EU", "US"], "default": "EU"},
            "due_at": {"type": "date-time", "optional": True, "description": "when"},
        }
    )
    assert properties.check({"amount": "12.50"}) == []
    assert properties.complete({"amount": "12.50"}) == {"amount": "12.50", "region": "EU"}
    assert {name: str(type_) for name, type_ in properties.types().items()} == {
        "amount": "decimal",
        "region": "string",
        "due_at": "date-time",
    }


@pytest.mark.parametrize(
    ("mapping", "found"),
    [
        ([], [("wrong-type", "")]),
        ({"x": 1}, [("wrong-type", "x")]),
        ({"x": "string"}, [("wrong-type", "x")]),
        ({"x": {}}, [("missing-key", "x")]),
        ({"x": {"type": "strin"}}, [("wrong-type", "x.type")]),
        ({"x": {"type": ["string"]}}, [("wrong-type", "x.type")]),
        ({"1x": {"type": "string"}}, [("bad-name", "1x")]),
        ({"in": {"type": "string"}}, [("bad-name", "in")]),
        ({"for": {"type": "string"}}, [("bad-name", "for")]),
        ({"a.b": {"type": "string"}}, [("bad-name", "a.b")]),
        ({"a" * 65: {"type": "string"}}, [("bad-name", "a" * 65)]),
        ({"x": {"type": "string", "minimum": 1}}, [("unknown-key", "x.minimum")]),
        ({"x": {"type": "integer", "default": "1"}}, [("wrong-type", "x.default")]),
        ({"x": {"type": "integer", "default": True}}, [("wrong-type", "x.default")]),
        ({"x": {"type": "integer", "minimum": 1.5}}, [("wrong-type", "x.minimum")]),
        ({"x": {"type": "string", "pattern": "("}}, [("wrong-type", "x.pattern")]),
        ({"x": {"type": "string", "enum": []}}, [("wrong-type", "x.enum")]),
        ({"x": {"type": "string", "enum": ["a", 1]}}, [("wrong-type", "x.enum[1]")]),
        (
            {"x": {"type": "string", "minLength": 3, "maxLength": 2}},
            [("wrong-type", "x.minLength")],
        ),
        ({"x": {"type": "array"}}, [("missing-key", "x")]),
        (
            {"x": {"type": "array", "items": {"type": "string", "optional": True}}},
            [("wrong-type", "x.items")],
        ),
        ({"x": {"type": "object"}}, [("missing-key", "x")]),
        (
            {"x": {"type": "object", "properties": {"y": {"type": "int"}}}},
            [("wrong-type", "x.properties.y.type")],
        ),
        (
            {"x": {"type": "string", "default": "a", "optional": True}},
            [("wrong-type", "x.optional")],
        ),
        ({"x": {"type": "string", "optional": "yes"}}, [("wrong-type", "x.optional")]),
        ({"x": {"type": "decimal", "scale": 19}}, [("wrong-type", "x.scale")]),
        (
            {"a": {"type": "strin"}, "b": {"type": "string", "regex": "a"}},
            [("wrong-type", "a.type"), ("unknown-key", "b.regex")],
        ),
    ],
)
def test_a_fault_in_a_map_has_its_place(mapping: object, found: list[tuple[str, str]]) -> None:
    assert faults_of(mapping) == found


@pytest.mark.parametrize(
    ("mapping", "hint"),
    [
        ({"x": {"type": "strin"}}, "did you mean `string`?"),
        ({"x": {"type": "int"}}, "did you mean `integer`?"),
        ({"x": {"type": "timestamp"}}, "did you mean `date-time`?"),
        ({"x": {"type": "integer", "min": 1}}, "did you mean `minimum`?"),
        ({"x": {"type": "string", "regex": "a"}}, "did you mean `pattern`?"),
        (
            {"x": {"type": "string", "required": True}},
            "a property is required unless it has a `default` or `optional: true`",
        ),
        ({"x": "string"}, "write `{type: string}`"),
    ],
)
def test_a_hint_says_what_was_meant(mapping: object, hint: str) -> None:
    with pytest.raises(PropertiesError) as refused:
        read_properties(mapping)
    assert refused.value.defects[0].hint == hint


def test_maps_have_bounds() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        nested = {"type": "array", "items": nested}
    assert ("budget-exceeded") in {code for code, _ in faults_of({"x": nested})}
    many = {f"x{n}": {"type": "string"} for n in range(501)}
    assert faults_of(many) == [("budget-exceeded", "")]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "boolean"}, [True, False], [1, 0, "true", None]),
        ({"type": "integer"}, [0, -(2**63), 2**63 - 1], [True, 1.0, "1", 2**63, None]),
        ({"type": "number"}, [0, 1.5, -2], [True, "1", float("nan"), float("inf"), 2**53 + 1]),
        ({"type": "number"}, [2**60], [10**400]),
        ({"type": "string"}, ["", "é"], [1, "a\0b", "\ud800", None, b"x"]),
        (
            {"type": "decimal", "scale": 2},
            ["0.10", "-5", 7, Decimal("1.5"), "9999999999999999.99"],
            [1.5, "1.234", "1e2", "", "+1", "01", ".5", "10000000000000000", Decimal("NaN"), True],
        ),
        (
            {"type": "date-time"},
            ["2026-05-01T12:00:00Z", "2026-05-01T12:00:00.5+02:00", datetime.now(UTC)],
            ["2026-05-01T12:00:00", "2026-05-01", "2026-02-30T00:00:00Z", 0, datetime(2026, 1, 1)],  # noqa: DTZ001
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            [[], [1, 2]],
            [(1,), "1", [1, "2"], {"0": 1}],
        ),
        (
            {"type": "object", "properties": {"y": {"type": "integer"}}},
            [{"y": 1}],
            [{}, {"y": "1"}, {"y": 1, "z": 2}, []],
        ),
    ],
)
def test_values_of_each_type(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert [faults(schema, value) for value in good] == [[]] * len(good)
    assert [bool(faults(schema, value)) for value in bad] == [True] * len(bad)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 3}, [1, 2], [0, 3]),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": 1}, [2], [1]),
        ({"type": "number", "enum": [1, 2.5]}, [1.0, 2.5], [2]),
        ({"type": "decimal", "minimum": 0.1, "maximum": "0.3"}, ["0.10", "0.3"], ["0.09", "0.31"]),
        ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "éé"], ["", "abc"]),
        ({"type": "string", "pattern": "^[A-Z]+$"}, ["AB"], ["aB", ""]),
        ({"type": "string", "enum": ["EU", "US"]}, ["EU"], ["eu", ""]),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, [["a"]], [["a", "b"]]),
        (
            {"type": "date-time", "minimum": "2026-01-01T00:00:00Z"},
            ["2026-01-01T01:00:00+01:00"],
            ["2026-01-01T00:30:00+01:00"],
        ),
    ],
)
def test_bounds(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert [faults(schema, value) for value in good] == [[]] * len(good)
    assert [faults(schema, value) for value in bad] == [["not-allowed"]] * len(bad)


def test_every_fault_of_a_value_is_found_with_its_path() -> None:
    properties = read_properties(
        {
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"price": {"type": "decimal"}}},
            },
            "region": {"type": "string"},
        }
    )
    found = properties.check({"lines": [{"price": "1"}, {"price": 1.5}, {}], "regoin": "EU"})
    assert [(defect.code, path_text(defect.path), defect.hint) for defect in found] == [
        ("unknown-key", "regoin", "did you mean `region`?"),
        ("wrong-type", "lines[1].price", None),
        ("missing-key", "lines[2]", None),
        ("missing-key", "", None),
    ]


def test_a_pattern_that_runs_long_elsewhere_does_not() -> None:
    assert faults({"type": "string", "pattern": "^(a+)+$"}, "a" * 50_000 + "!") == ["not-allowed"]


def test_defaults_go_into_objects_and_arrays() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    properties = read_properties({"one": inner, "many": {"type": "array", "items": inner}})
    given = {"one": {}, "many": [{}, {"n": 2}]}
    assert properties.complete(given) == {"one": {"n": 1}, "many": [{"n": 1}, {"n": 2}]}
    assert given == {"one": {}, "many": [{}, {"n": 2}]}


def test_a_default_is_not_shared() -> None:
    properties = read_properties({"x": {"type": "array", "items": INT, "default": [1]}})
    properties.complete({})["x"].append(2)
    assert properties.complete({}) == {"x": [1]}


INT = {"type": "integer"}


def test_values_are_written_as_json_has_them() -> None:
    properties = read_properties(
        {
            "d": {"type": "decimal", "scale": 8},
            "t": {"type": "date-time"},
            "l": {"type": "array", "items": {"type": "decimal"}},
        }
    )
    moment = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    value = {"d": Decimal("1E-8"), "t": moment, "l": [Decimal("1E+2")]}
    assert properties.check(value) == []
    written = properties.encode(value)
    assert written == {"d": "0.00000001", "t": "2026-05-01T12:00:00Z", "l": ["100"]}
    assert properties.check(written) == []


def test_types_for_expressions() -> None:
    properties = read_properties(
        {"xs": {"type": "array", "items": {"type": "number"}}, "n": {"type": "integer"}}
    )
    types = properties.types()
    assert (types["xs"].of, types["n"]) == (NUMBER, INTEGER)
    assert Property(type=INTEGER).required


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1e8, max_value=1e8))
def test_units_are_exact(number: Decimal) -> None:
    assert Decimal(units(number, 6)).scaleb(-6) == number
    assert units(f"{number:f}", 6) == units(number, 6)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_the_first_and_the_last_moment_are_none(moment: str) -> None:
    """The evaluator takes them for the beginning and the end of time, and fails."""
    properties = read_properties({"at": {"type": "date-time"}})
    (fault,) = properties.check({"at": moment})
    assert fault.code == "wrong-type"
