"""What a log holds: events, each the one action that something happened by, in a case.

A case and an action are text as the log has it: nothing is trimmed or folded, and an empty one is
for whoever uses the event to refuse. An empty time or actor is an absent one, since a CSV cannot
tell the two apart.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import NamedTuple, TypeAlias

from interlock.core.instant import parse_instant


class Event(NamedTuple):
    """One event of a log.

    Attributes:
        time: aware UTC; the text as it stands when no moment can be read from it; None when absent.
        line: where it begins in the file, from 1; in XES, which has no lines to speak of, the
            number of the event.
    """

    case: str
    action: str
    time: datetime | str | None
    actor: str | None
    line: int


#: An event as a format gives it: case, action, time, actor, line. What is absent is empty.
Row: TypeAlias = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of the columns (keys, attributes) that hold the parts of an event.

    A part left at None is looked for under its customary names, in the order of `CUSTOMARY`. An
    attribute `x` of an XES trace has the name `case:x`.
    """

    case: str | None = None
    action: str | None = None
    time: str | None = None
    actor: str | None = None


#: Columns that have no names of their own: the customary ones.
ANY = Columns()

# Whatever their case, and with `_` for a space. The first of each is its name in XES, as
# process-mining tools write it into a CSV.
CUSTOMARY = {
    "case": ("case:concept:name", "case", "case id"),
    "action": ("concept:name", "action", "activity", "event"),
    "time": ("time:timestamp", "timestamp", "time", "complete timestamp", "fired at"),
    "actor": ("org:resource", "resource", "actor", "actor ref", "user"),
}


def customary_place(part: str, name: str) -> int | None:
    """Give the place of a column's name among the customary ones for a part; None: it is none."""
    plain = name.casefold().replace("_", " ")
    return CUSTOMARY[part].index(plain) if plain in CUSTOMARY[part] else None


class LogError(Exception):
    """A log cannot be read, and nothing of it was recorded.

    Attributes:
        file: the log, as its reader named it.
        line: from 1; None where the fault is the whole file's. In XES, see `Event.line`.
        what: the fault. `hint`: what to do about it.
    """

    def __init__(self, file: str, line: int | None, what: str, hint: str | None = None) -> None:
        super().__init__(file, line, what, hint)
        self.file = file
        self.line = line
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.what}" + (f" ({self.hint})" if self.hint else "")


def read_time(text: str, zone: tzinfo | None) -> datetime | str | None:
    """Read the time of an event as far as it can be read; a text that cannot comes back.

    Args:
        zone: of times without an offset. A time that its clocks showed twice is the first of the
            two; one that they skipped counts on from before the gap.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            if zone is None or _is_count(text):
                return text
            moment = moment.replace(tzinfo=zone)
        return parse_instant(moment)
    except ValueError:
        return text


def time_fault(text: str) -> str:
    """Say what keeps a text that `read_time` gave back from being a time."""
    with suppress(ValueError):
        if datetime.fromisoformat(text).tzinfo is None and not _is_count(text):
            return "has no offset from UTC; name the log's time zone (`--time-zone`)"
    return "is not an ISO 8601 time such as `2026-05-01T12:00:00Z`, of the years 1 to 9999"


def _is_count(text: str) -> bool:
    """Whether a text is digits only and no `YYYYMMDD`: seconds since some epoch, say.

    As ISO 8601 goes, 1712121210000 is midnight of 12 December 1712, with a `1` before the hour.
    """
    return text.isdigit() and len(text) != 8
