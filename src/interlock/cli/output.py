r"""What goes to stdout: lines, aligned columns, JSON.

Names in a store are any text, so nothing of one reaches a terminal raw: `say` escapes in a line all
that would not show, a line break as `\n`, and `json_text` writes it as a JSON escape, which reads
back as the same text. Long answers are written as they are read, so memory stays flat.
"""

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from errno import EBADF
from pathlib import Path
from typing import Self, TextIO

COLUMN_MAX = 48  # a longer cell stands out rather than push every row apart


class OutputLost(Exception):
    """An answer could not be written, though what it is the answer to is done."""

    @classmethod
    def of(cls, error: OSError) -> Self:
        why = (error.strerror or str(error)).lower()
        return cls(f"what was asked for is done, but its answer cannot be written to stdout: {why}")


class _Closed(io.TextIOBase):
    """A stdout that was closed before the program began."""

    def write(self, _text: str, /) -> int:
        raise OutputLost.of(OSError(EBADF, "it is closed"))


def prepare_streams() -> None:
    """Make stdout and stderr UTF-8 whatever the locale; a closed stderr takes anything."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _Closed() if name == "stdout" else _nowhere())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def visible(text: str) -> str:
    """Escape in a text what does not print, and would so forge lines or terminal codes."""
    if text.isprintable():
        return text
    from interlock.language.diagnostic import visible as escaped

    return escaped(text)


def say(text: str = "") -> None:
    """Print one line."""
    sys.stdout.write(f"{visible(text)}\n")


def note(text: str) -> None:
    """Print one line beside the answer, to stderr."""
    print(visible(text), file=sys.stderr)


def counted(number: int, noun: str) -> str:
    """Say how many: `1 entry`, `3 entries`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}"


def moment(at: datetime) -> str:
    """Write a moment in UTC, exactly and as `--at` takes it."""
    return at.isoformat().replace("+00:00", "Z")


def json_text(value: object, *, indent: int | None = None) -> str:
    """Write a value as JSON in which every character prints."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else json.dumps(char)[1:-1]


def say_json(value: object, *, indent: int | None = None) -> None:
    """Print a value as one JSON document."""
    sys.stdout.write(f"{json_text(value, indent=indent)}\n")


class JsonList:
    """A JSON object of which one member is a long list, printed page by page, one item a line.

    Args:
        name: of the list.
        head: the members that come before it.
    """

    def __init__(self, name: str, **head: object) -> None:
        members = "".join(f"{_member(key, value)}, " for key, value in head.items())
        self._opening = f"{{{members}{json_text(name)}: ["
        self.rows = 0

    def page(self, items: Iterable[object]) -> None:
        """Print some more items."""
        for item in items:
            before = ",\n" if self.rows else f"{self._opening}\n"
            sys.stdout.write(f"{before}{json_text(item)}")
            self.rows += 1

    def end(self, **tail: object) -> None:
        """Print the end of the list and the members that come after it."""
        members = "".join(f", {_member(key, value)}" for key, value in tail.items())
        end = "\n]" if self.rows else f"{self._opening}]"
        sys.stdout.write(f"{end}{members}}}\n")


def _member(key: str, value: object) -> str:
    return f"{json_text(key)}: {json_text(value)}"


class Table:
    """Rows in aligned columns under a heading, printed page by page.

    A page is aligned with the widest cells so far; the heading comes with the first row.
    """

    def __init__(self, *headings: str) -> None:
        self._headings = headings
        self._widths = [len(heading) for heading in headings]
        self.rows = 0

    def page(self, rows: Sequence[Sequence[object]]) -> None:
        """Print some more rows; what is None is left blank."""
        cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
        self.widen(cells)
        if cells and not self.rows:
            self._line(self._headings)
        for row in cells:
            self._line(row)
        self.rows += len(cells)

    def widen(self, rows: Iterable[Sequence[str]]) -> None:
        """Make room for rows that will come in a later page."""
        for row in rows:
            for column, cell in enumerate(row):
                if len(cell) > self._widths[column] or not cell.isascii():
                    wide = min(_width(cell), COLUMN_MAX)
                    self._widths[column] = max(self._widths[column], wide)

    def _line(self, cells: Sequence[str]) -> None:
        padded = (
            cell + " " * (width - _width(cell))
            for cell, width in zip(cells, self._widths, strict=True)
        )
        sys.stdout.write(f"{'  '.join(padded).rstrip()}\n")


def _width(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
