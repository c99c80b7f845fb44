"""CSV: a header line with the names of the columns, then one line for each event.

Fields are divided by comma, semicolon or tab, whichever divides the header into most of the columns
that are looked for, or else into most; a field that holds the divider, a quote or a line break
stands in quotes, with quotes doubled.
"""

import csv
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

from interlock.core.text import clipped
from interlock.eventlog.attributes import missing
from interlock.eventlog.event import Columns, Row, customary_place
from interlock.eventlog.logfile import LogFile

_DIVIDERS = ",;\t"


def csv_rows(file: LogFile, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a CSV log.

    Raises:
        LogError: a column is missing, or a row is not like the header.
    """
    lines = file.lines()
    first = next(lines, None)
    if first is None:
        raise file.fault("is empty", "a CSV begins with a line of column names")
    try:
        divider = max(_DIVIDERS, key=lambda char: _columns_told(first, char, columns))
        reader = csv.reader(chain([first], lines), delimiter=divider, strict=True)
        header = next(reader)
        case, action, time, actor = (
            _place(file, header, part, named) for part, named in asdict(columns).items()
        )
        begin = reader.line_num
        for row in reader:
            line, begin = begin + 1, reader.line_num
            if len(row) == len(header):
                row.append("")  # which the place of an absent column, -1, finds
                yield row[case], row[action], row[time], row[actor], line
            elif row:  # an empty line is no row
                raise file.fault(
                    f"a row of {len(row)} fields under a header of {len(header)}",
                    f"fields are divided by `{_shown(divider)}`; one that holds it needs quotes",
                    line=line,
                )
    except csv.Error as error:
        raise file.fault(f"is no CSV here: {error}", "check its quotes and line breaks") from None


def _columns_told(line: str, divider: str, columns: Columns) -> tuple[int, int]:
    """Count the columns in a header that are looked for, and all of them."""
    header = next(csv.reader([line], delimiter=divider))
    told = [_places(header, part, named) for part, named in asdict(columns).items()]
    return sum(map(bool, told)), len(header)


def _place(file: LogFile, header: list[str], part: str, named: str | None) -> int:
    places = _places(header, part, named)
    if not places:
        if named is None and part in ("time", "actor"):
            return -1
        raise missing(file, part, named, header, line=1)
    if len(places) > 1:
        what = f"two columns are called `{clipped(header[places[1]])}`, which holds the {part}"
        raise file.fault(what, "rename one of them")
    return places[0]


def _places(header: list[str], part: str, named: str | None) -> list[int]:
    """Find the columns that a part could be in: those of one name."""
    if named is not None:
        return [place for place, name in enumerate(header) if name == named]
    ranks = [customary_place(part, name) for name in header]
    best = min((rank for rank in ranks if rank is not None), default=None)
    return [place for place, rank in enumerate(ranks) if best is not None and rank == best]


def _shown(divider: str) -> str:
    return "\\t" if divider == "\t" else divider
