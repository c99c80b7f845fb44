"""Timers that are due, read in pages."""

from typing import NamedTuple

from interlock.store.plan import Plan, Statement

PAGE = 100


class DueTimer(NamedTuple):
    """A timer that is to be looked at.

    Attributes:
        next_try_at: when, in UTC microseconds: its own moment, or later where it has failed.
        state: the path of the state that it is of.
        armed_at: the entry that it was set with.
        failures: how often it has failed.
    """

    next_try_at: int
    root: str
    id: str
    state: str
    name: str
    armed_at: int
    failures: int


#: Before all of them.
FIRST = DueTimer(-(2**63), "", "", "", "", 0, 0)


def read_due(tenant: str, until: int, after: DueTimer) -> Plan[list[DueTimer]]:
    """Read those that are to be looked at by a moment, the earliest first, after one of them."""
    asked = (tenant, until, PAGE, *after[:5])
    rows = yield Statement("read_due_timers", [asked], True)
    return [DueTimer._make(row) for row in rows]
