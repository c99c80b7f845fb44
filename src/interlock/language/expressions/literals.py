"""Instants and spans written in expressions, as whole nanoseconds: what CEL itself counts in.

Only the plain forms are read; of any other None is given, never a guess.
"""

import re
from datetime import UTC, datetime, timedelta

from interlock.language.expressions.cel_ast import Call, Constant, Node

Scalar = bool | int | float | str

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NANOSECONDS = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
PART = re.compile(r"(\d+)(?:\.(\d{0,9}))?(h|ms|m|s|us|ns)", re.ASCII)
SPAN = re.compile(rf"([+-]?)((?:{PART.pattern})+)", re.ASCII)

# The evaluator's sums of spans stop here: it counts them in 64 bits.
SPAN_MAX = 2**63 - 1
# Of the years 1 and 9999 it refuses some moments; between them it takes all.
INSTANT_MIN = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) * 1000
INSTANT_MAX = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) * 1000 + 999


def literal(node: Node) -> Scalar | None:
    """Give the value that a node always has: an instant or a span as its nanoseconds."""
    match node:
        case Constant(value=bool() | int() | float() | str() as value):
            return value
        case Call(function="timestamp", arguments=(Constant(value=str() as text),)):
            return instant(text)
        case Call(function="duration", arguments=(Constant(value=str() as text),)):
            return span(text)
        case Call(function="double", arguments=(Constant(value=int() | float() as number),)):
            return float(number)
        case _:
            return None


def instant(text: str) -> int | None:
    """Read an RFC 3339 instant as nanoseconds since 1970."""
    if (found := INSTANT.fullmatch(text)) is None:
        return None
    seconds, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(seconds + zone) - EPOCH
    except ValueError:
        return None
    nanoseconds = moment // timedelta(seconds=1) * 10**9 + int((fraction or "").ljust(9, "0"))
    return nanoseconds if INSTANT_MIN <= nanoseconds <= INSTANT_MAX else None


def span(text: str) -> int | None:
    """Read a span such as `1h30m` as nanoseconds; a part of a nanosecond is no plain form."""
    if (found := SPAN.fullmatch(text)) is None:
        return None
    total = 0
    for whole, fraction, unit in PART.findall(found[2]):
        parts, rest = divmod(int(whole + fraction) * NANOSECONDS[unit], 10 ** len(fraction))
        if rest:
            return None
        total += parts
    if total > SPAN_MAX:
        return None
    return -total if found[1] == "-" else total


def moment(nanoseconds: int) -> datetime:
    """Give the instant, whole microseconds of it."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)
