"""Values for fields that no condition is about."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.language.expressions.properties import read_properties
from interlock.testing.stateful import fields
from interlock.witness.sample import NoSample, filled

PROPERTIES: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "integer", "minimum": 7},
    {"type": "integer", "exclusiveMinimum": 7, "maximum": 8},
    {"type": "integer", "exclusiveMaximum": -7},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
    {"type": "number", "exclusiveMinimum": 1e300},
    {"type": "decimal", "exclusiveMinimum": "0.5", "scale": 2},
    {"type": "decimal", "enum": ["1.50", "2"], "scale": 2},
    {"type": "string"},
    {"type": "string", "minLength": 3, "maxLength": 4},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
    {"type": "date-time"},
    {"type": "date-time", "minimum": "2030-01-01T00:00:00Z"},
    {"type": "array", "items": {"type": "integer", "minimum": 2}, "minItems": 2},
    {
        "type": "object",
        "properties": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}}},
    },
]


@pytest.mark.parametrize("schema", PROPERTIES, ids=str)
def test_a_sample_is_as_its_property_declares(schema: dict[str, Any]) -> None:
    properties = read_properties({"x": schema})
    assert properties.check(filled(properties, {})) == []
    assert filled(properties, {}) == filled(properties, {})


def test_optional_fields_are_there_only_where_they_have_to_be() -> None:
    properties = read_properties(
        {"x": {"type": "integer", "optional": True}, "y": {"type": "integer", "default": 3}}
    )
    assert filled(properties, {}) == {"y": 3}
    assert filled(properties, {}, {"x"}) == {"x": 0, "y": 3}
    assert filled(properties, {"x": 5, "y": 4}) == {"x": 5, "y": 4}


def test_values_that_were_found_are_put_where_they_belong() -> None:
    inner = {"price": {"type": "decimal", "scale": 2}, "city": {"type": "string"}}
    properties = read_properties({"at": {"type": "object", "properties": inner, "optional": True}})
    assert filled(properties, {"at.price": 1250}) == {"at": {"price": "12.50", "city": ""}}


def test_a_value_that_is_not_allowed_is_no_sample() -> None:
    properties = read_properties({"x": {"type": "string", "pattern": "^[ab]+$"}})
    with pytest.raises(NoSample, match="does not match"):
        filled(properties, {"x": "c"})


@given(st.data())
def test_what_is_drawn_is_as_declared(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(PROPERTIES))
    properties = read_properties({"x": schema, "o": {**schema, "optional": True}})
    assert properties.check(data.draw(fields(properties))) == []
