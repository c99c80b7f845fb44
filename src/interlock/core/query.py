"""History queries: which entries of one instance a reader asks for.

    parse_query({"action": "release", "sequence_number": {"start": 3}})

Every bound is inclusive. An unknown key is refused, because silently ignoring it would answer
another question than the one asked. Source: the State Machine atom, History; DESIGN, section 2.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from interlock.core.entry import Entry
from interlock.core.instant import parse_instant
from interlock.core.rejection import InvalidQuery
from interlock.core.text import LIMITS, Limits, clipped, nearest, quoted, text_fault

TEXT_KEYS = ("transition_id", "from_state", "to_state", "action", "actor_ref")
RANGES = {"sequence_number": ("start", "end"), "fired_at": ("after", "before")}
KEYS = (*TEXT_KEYS, *RANGES)


class HistoryQuery(NamedTuple):
    """A well-formed filter; None leaves an axis open."""

    transition_id: str | None = None
    from_state: str | None = None
    to_state: str | None = None
    action: str | None = None
    actor_ref: str | None = None
    start: int | None = None
    end: int | None = None
    after: datetime | None = None
    before: datetime | None = None

    def matches(self, entry: Entry) -> bool:
        """Say whether `entry` is asked for: what a store's statement means, said plainly."""
        texts = all(getattr(self, key) in (None, getattr(entry, key)) for key in TEXT_KEYS)
        return (
            texts
            and (self.start is None or entry.sequence_number >= self.start)
            and (self.end is None or entry.sequence_number <= self.end)
            and (self.after is None or entry.fired_at >= self.after)
            and (self.before is None or entry.fired_at <= self.before)
        )


def parse_query(query: Mapping[str, Any] | None, limits: Limits = LIMITS) -> HistoryQuery:
    """Check a filter and give it its form.

    Raises:
        InvalidQuery: an unknown key, a None or blank value, a range that is reversed or no range.
    """
    if query is None:
        return HistoryQuery()
    if not isinstance(query, Mapping):
        _refuse("query", f"is a mapping, not {type(query).__name__}")
    values: dict[str, Any] = {}
    for key, value in query.items():
        if key in RANGES:
            values |= _range(key, value)
        elif key in TEXT_KEYS:
            fault = text_fault(value, limits.reference_bytes)
            if fault:
                _refuse(key, fault)
            values[key] = value
        else:
            meant = nearest(key, KEYS)
            hint = f"did you mean `{meant}`?" if meant else f"known keys: {', '.join(KEYS)}"
            _refuse(clipped(key), f"is not a filter ({hint})")
    return HistoryQuery(**values)


def _range(key: str, value: object) -> dict[str, Any]:
    first, last = RANGES[key]
    if not isinstance(value, Mapping):
        _refuse(key, f"is a range {{{first}, {last}}}, not {type(value).__name__}")
    read = _integer if key == "sequence_number" else _moment
    bounds: dict[str, Any] = {}
    for name, bound in value.items():
        if name not in (first, last):
            _refuse(key, f"has `{first}` and `{last}`, not {quoted(name)}")
        bounds[name] = read(f"{key}.{name}", bound)
    if len(bounds) == 2 and bounds[last] < bounds[first]:
        _refuse(key, f"is reversed: `{last}` lies before `{first}`")
    if key == "sequence_number":  # what lies further out matches alike, and no database holds it
        return {name: max(-1, min(bound, 2**63 - 1)) for name, bound in bounds.items()}
    return bounds


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse(name, f"is a whole number, not {type(value).__name__}")
    return value


def _moment(name: str, value: object) -> datetime:
    try:
        return parse_instant(value)
    except ValueError as fault:
        _refuse(name, str(fault))


def _refuse(argument: str, fault: str) -> NoReturn:
    raise InvalidQuery(f"`{argument}` {fault}", argument=argument)
