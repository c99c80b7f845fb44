"""Values for fields, as JSON has them: those that were found, and plain ones for the rest.

sample(property)                                  -> 0, "", "2026-05-01T12:00:00Z", …
filled(properties, {"amount": 100}, {"due_at"})   -> {"amount": 100, "due_at": "2026-…"}
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import nextafter
from sys import float_info
from typing import Any

from interlock.language.expressions.properties import Properties, Property, written

FLOAT_MAX = float_info.max
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class NoSample(Exception):
    """No value was found that a property allows; it says for which field."""


def filled(
    properties: Properties,
    found: Mapping[str, object],
    present: Collection[str] = (),
    *,
    prefix: str = "",
) -> dict[str, Any]:
    """Give a whole value of a map.

    Args:
        found: values by paths such as `address.city`, as the prover gives them.
        present: names of optional fields that have to be there.
        prefix: of the paths.

    Raises:
        NoSample.
    """
    value: dict[str, Any] = {}
    for name, property_ in properties.fields.items():
        path = f"{prefix}{name}"
        inside = {p for p in found if p.startswith(f"{path}.")}
        if property_.properties is not None and (inside or path not in found):
            if inside or property_.required or name in present:
                value[name] = filled(property_.properties, found, prefix=f"{path}.")
        elif path in found and found[path] is not None:
            value[name] = _in_json(property_, found[path])
        elif property_.required or name in present or path in found:
            value[name] = sample(property_)
    whole = properties.complete(value)
    if not prefix and (faults := properties.check(whole)):
        raise NoSample("; ".join(map(str, faults[:3])))
    return properties.encode(whole)


def sample(property_: Property) -> Any:
    """Give a plain value that a property allows.

    Raises:
        NoSample: none is known.
    """
    if property_.defaulted:
        return property_.default
    if property_.values is not None:
        return written(property_.values[0])
    match property_.type.name:
        case "boolean":
            return False
        case "string":
            return _text(property_)
        case "date-time":
            return written(_within(property_, NOON, timedelta(microseconds=1)))
        case "integer":
            return _within(property_, 0, 1)
        case "number":
            return _number(property_)
        case "decimal":
            scale = property_.type.scale
            return written(_within(property_, Decimal(0), Decimal(1).scaleb(-scale)))
        case "array":
            assert property_.items is not None
            return [sample(property_.items) for _ in range(property_.length[0])]
        case _:
            assert property_.properties is not None
            return filled(property_.properties, {}, prefix=".")


def _within(property_: Property, plain: Any, step: Any) -> Any:
    """Give a value within bounds: a plain one if it lies there."""
    low, high = property_.minimum, property_.maximum
    low_open, high_open = property_.exclusive
    if low is not None and plain <= low:
        plain = low + step if low_open else low
    if high is not None and plain >= high:
        plain = high - step if high_open else high
    return plain


def _number(property_: Property) -> float:
    first, last = number_ends(property_)
    return min(max(0.0, first), last)


def number_ends(property_: Property) -> tuple[float, float]:
    """Give the least and the greatest double that bounds allow."""
    low, high = property_.minimum, property_.maximum
    first, last = -FLOAT_MAX if low is None else low, FLOAT_MAX if high is None else high
    if property_.exclusive[0] and low is not None:
        first = nextafter(low, FLOAT_MAX)
    if property_.exclusive[1] and high is not None:
        last = nextafter(high, -FLOAT_MAX)
    return first, last


def _text(property_: Property) -> str:
    least, most = property_.length
    if property_.pattern is None:
        return "a" * least
    from interlock.language.expressions.evaluator import pattern

    test = pattern(property_.pattern)
    for text in _guesses(property_.pattern, least):
        fits = least <= len(text) and (most is None or len(text) <= most)
        if fits and test.value({"text": text}) is True:
            return text
    raise NoSample(f"no text is known that matches `{property_.pattern}`")


def _guesses(expression: str, least: int) -> list[str]:
    """Give texts that a pattern may match; with Hypothesis, those that it makes for it."""
    plain = [char * max(least, 1) for char in "aA0"] + ["", expression.strip("^$")]
    try:
        from hypothesis import Phase, find, settings, strategies
    except ImportError:
        return plain
    try:
        made = find(
            strategies.from_regex(expression).map(lambda text: text.rstrip("\n")),
            lambda text: len(text) >= least,
            settings=settings(
                max_examples=200, database=None, derandomize=True, phases=[Phase.generate]
            ),
        )
    except Exception:  # what RE2 reads, `re` may not
        return plain
    return [*plain, made]


def _in_json(property_: Property, value: Any) -> Any:
    """Write a value of the prover's."""
    if property_.items is not None and isinstance(value, list):
        return [_in_json(property_.items, item) for item in value]
    if property_.type.name == "decimal" and isinstance(value, int):
        return written(Decimal(value).scaleb(-property_.type.scale))
    return written(value)
