"""Data as JSON has it, in the types of Python: `Decimal`, `datetime`, `float`, lists and dicts."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from interlock.language.expressions.properties import PLAIN, Properties, Property, units


def in_python(properties: Properties, data: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields that are there, each in the type of Python that its property has."""
    return {name: _value(properties.fields[name], value) for name, value in data.items()}


def _value(property_: Property, value: Any) -> Any:
    if property_.properties is not None:
        return in_python(property_.properties, value)
    if property_.items is not None:
        return [_value(property_.items, item) for item in value]
    if property_.type.name == "decimal":
        scale = property_.type.scale
        return Decimal(units(value, scale)).scaleb(-scale)
    return PLAIN[property_.type.name](value)
