"""Values of JSON as declared data: each with the type that it has, and itself as the default."""

import json
from collections.abc import Iterator
from typing import Any

from interlock.language.convert.result import Definition
from interlock.language.expressions.properties import DEPTH_MAX, name_fault
from interlock.language.source import UNFIT


class Untyped(Exception):
    """A value does not tell its type, or has one that data here cannot have."""


def json_value(text: str) -> Any:
    """Read a text as JSON.

    Raises:
        ValueError: it is none, or holds what no store can.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if any(UNFIT.search(part) for part in _texts(value)):
        raise ValueError("a character that no store can hold")
    return value


def _texts(value: Any) -> Iterator[str]:
    """Give every text in a value, keys included."""
    owed = [value]
    while owed:
        part = owed.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            owed += part
        elif isinstance(part, dict):
            owed += [*part, *part.values()]


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def declared(value: object) -> Definition:
    """Declare a field by the value that it begins with.

    Raises:
        Untyped: such as null, an empty list, or a list of values of several types.
    """
    return {**_schema(value, 0), "default": value}


def _schema(value: object, depth: int) -> Definition:
    if depth > DEPTH_MAX:
        raise Untyped("it is nested too deeply")
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case dict():
            for name in value:
                if fault := name_fault(name):
                    raise Untyped(f"the key `{name}` {fault}")
            fields = {name: _schema(inner, depth + 1) for name, inner in value.items()}
            return {"type": "object", "properties": fields}
        case list() if value:
            kinds = [_schema(inner, depth + 1) for inner in value]
            return {"type": "array", "items": _shared(kinds)}
        case list():
            raise Untyped("an empty list does not tell what it holds")
        case _:
            raise Untyped("null does not tell what it is instead of")


def _shared(kinds: list[Definition]) -> Any:
    """Give the type that items of all these types have."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(kind["type"] in ("integer", "number") for kind in kinds):
        return {"type": "number"}
    raise Untyped("its items are of several types")
