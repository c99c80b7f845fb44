"""Durations of timers: ISO 8601 as far as a length is certain, or a short form.

    parse_duration("P3D")     -> 259_200_000_000 microseconds
    parse_duration("PT1H30M")
    parse_duration("90m"), parse_duration("1h30m"), parse_duration("500ms")

A day is 24 hours exactly. Years and months have no length of their own, so they are refused.
"""

import re

_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_SHORT = re.compile(r"(?:[0-9]+(?:d|h|ms|m|s))+")
_PART = re.compile(r"([0-9]+)(d|h|ms|m|s)")
_ISO = re.compile(
    r"P(?:(?P<w>[0-9]+)W)?(?:(?P<d>[0-9]+)D)?"
    r"(?P<time>T(?:(?P<h>[0-9]+)H)?(?:(?P<m>[0-9]+)M)?"
    r"(?:(?P<s>[0-9]+)(?:[.,](?P<f>[0-9]{1,6}))?S)?)?"
)
_CALENDAR = re.compile(r"P[^T]*[0-9][YM]")
_DIGITS = 20  # of a count without leading zeros: more are longer than anything that is allowed
_LONGEST = 36_500 * _UNITS["d"]  # a century: what is longer was not meant


class DurationError(ValueError):
    """A text is no duration; it says why."""


def parse_duration(text: str) -> int:
    """Give the length of a duration in microseconds.

    Raises:
        DurationError: it is none, or is zero, or has no certain length.
    """
    if _SHORT.fullmatch(text):
        parts = _PART.findall(text)
        if len({unit for _, unit in parts}) < len(parts):
            raise DurationError("names a unit twice")
        length = sum(_count(count) * _UNITS[unit] for count, unit in parts)
    else:
        length = _iso(text)
    if not length:
        raise DurationError("is no time at all; use `always` for what happens at once")
    if length > _LONGEST:
        raise DurationError("is longer than a century")
    return length


def is_like_duration(text: str) -> bool:
    """Whether a text has the form of a duration, with a certain length or without."""
    if not any("0" <= char <= "9" for char in text):
        return False
    return any(form.fullmatch(text) for form in (_SHORT, _ISO)) or bool(_CALENDAR.match(text))


def _count(digits: str) -> int:
    """Read a count, however long it is."""
    return int(digits.lstrip("0")[:_DIGITS] or "0")


def _iso(text: str) -> int:
    found = _ISO.fullmatch(text)
    if found is None or text[-1] in "PT":
        if _CALENDAR.match(text):
            raise DurationError("counts years or months, which have no length of their own; use D")
        raise DurationError("is no duration; write P3D, PT30M, 30m or 1h30m")
    weeks, days, hours, minutes, seconds = (
        _count(found[part] or "0") for part in ("w", "d", "h", "m", "s")
    )
    fraction = int((found["f"] or "").ljust(6, "0"))
    return (
        (weeks * 7 + days) * _UNITS["d"]
        + hours * _UNITS["h"]
        + minutes * _UNITS["m"]
        + seconds * _UNITS["s"]
        + fraction
    )
