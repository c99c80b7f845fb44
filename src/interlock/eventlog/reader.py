"""Reading a log as a stream of events, whatever its format.

    for event in read_log("permits.csv.gz", Columns(case="permit")):
        print(event.case, event.action, event.time)

The format is told by the suffix, or by the caller; each is a module that yields rows.
"""

import os
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import TypeAlias
from zoneinfo import ZoneInfo

from interlock.core.rejection import InvalidRequest
from interlock.core.text import clipped
from interlock.eventlog.csv_log import csv_rows
from interlock.eventlog.event import ANY, Columns, Event, LogError, Row, read_time
from interlock.eventlog.json_log import json_rows
from interlock.eventlog.logfile import LogFile, open_log
from interlock.eventlog.xes_log import xes_rows

Rows: TypeAlias = Callable[[LogFile, Columns], Iterator[Row]]

FORMATS: dict[str, Rows] = {"csv": csv_rows, "jsonl": json_rows, "xes": xes_rows}
_SUFFIXES = {
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
    ".xes": xes_rows,
}


def read_log(
    path: str | os.PathLike[str],
    columns: Columns = ANY,
    *,
    format: str | None = None,
    time_zone: str | None = None,
) -> Iterator[Event]:
    """Give the events of a log in its order, as they are read; gzipped or not.

    Args:
        format: `csv`, `jsonl` or `xes`; None goes by the suffix.
        time_zone: of times without an offset, such as `Europe/Berlin`. Without it, they cannot be
            read as moments.

    Raises:
        InvalidRequest: `format` or `time_zone` is not known.
        LogError: at once when the suffix is not known; while reading, whatever is wrong with the
            file.
    """
    path = Path(path)
    return _events(path, columns, _rows(path, format), _zone(time_zone))


def _events(path: Path, columns: Columns, rows: Rows, zone: tzinfo | None) -> Iterator[Event]:
    with open_log(path) as file:
        for case, action, time, actor, line in rows(file, columns):
            yield Event(case, action, read_time(time, zone), actor or None, line)


def _rows(path: Path, format: str | None) -> Rows:
    known = ", ".join(f"`{name}`" for name in FORMATS)
    if format is not None:
        if format not in FORMATS:
            raise InvalidRequest(
                f"`{clipped(format)}` is no format of logs; known: {known}", argument="format"
            )
        return FORMATS[format]
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _SUFFIXES:
        raise LogError(
            str(path),
            None,
            f"the suffix `{suffix}` tells no format" if suffix else "no suffix tells the format",
            f"rename it or name the format (`--format`): {known}",
        )
    return _SUFFIXES[suffix]


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        raise InvalidRequest(
            f"`{clipped(name)}` is no time zone known here; use a name such as `Europe/Berlin`",
            argument="time_zone",
        ) from None
