"""Verification reports as files: one JSON document, written and read in a stream.

    {"interlock_report": 1, "instance": null, "heads": [
    ["01a2355f-…", 12, "9f86d081…"],
    ["01a2355f-…", 3, "60303ae2…"]
    ], "ok": true, "instances": 2, "entries": 15, "count": 0, "findings": []}

`instance` names the one instance that the report is about; null is the whole store. Each head (an
instance, its last entry's number, that entry's digest) has a line of its own, so a million of them
are read one at a time; a report that a tool laid out anew is read whole.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from interlock.core.identity import place_of
from interlock.core.rejection import InvalidRequest
from interlock.core.text import quoted
from interlock.store.outfile import Kind
from interlock.store.sqlite.database import is_in_use
from interlock.store.verify import Report
from interlock.store.walk import Head

_REPORT = Kind("report", "a report of `verify`", '"interlock_report"', "report")
_LINE_MAX = 64 * 1024  # characters of a head, whatever its id is made of


def _opening(instance: str | None) -> str:
    return f'{{"interlock_report": 1, "instance": {json.dumps(instance)}, "heads": ['


class ReportWriter:
    """Writes a report as the verification goes: `head` for each instance, then `close`."""

    def __init__(self, stream: TextIO, instance: str | None) -> None:
        self._stream = stream
        self._separator = "\n"
        self._write(_opening(instance))

    def head(self, head: Head) -> None:
        line = json.dumps([head.instance, head.number, head.digest.hex()])
        self._write(f"{self._separator}{line}")
        self._separator = ",\n"

    def close(self, report: Report) -> None:
        self._write(f"\n], {json.dumps(report.as_dict())[1:]}\n")

    def _write(self, text: str) -> None:
        with _REPORT.writing(getattr(self._stream, "name", "the report")):
            self._stream.write(text)


class _NoWriter:
    """Stands in where no report is kept."""

    def head(self, head: Head) -> None: ...

    def close(self, report: Report) -> None: ...


@contextmanager
def open_report(
    target: Path | str | TextIO | None,
    *,
    instance: str | None = None,
) -> Iterator[ReportWriter | _NoWriter]:
    """Open a report for writing; a file appears under its name only when it is whole.

    Args:
        instance: the one that the report is about.

    Raises:
        InvalidRequest: the target is no path and no text stream, or holds something other than a
            report.
        StorageFailure: the file cannot be written.
    """
    if target is None:
        yield _NoWriter()
    else:
        with _REPORT.open(target) as stream:
            yield ReportWriter(stream, instance)


def read_heads(source: Path | str, *, instance: str | None = None) -> Iterator[Head]:
    """Read the heads of a report, in its order, which is that of the walk.

    Args:
        instance: the one that is verified; a report about another says nothing of it.

    Raises:
        InvalidRequest: the file is no report, is no longer the one that was written, or is about
            another instance alone.
    """
    if not isinstance(source, Path | str):
        what = f"`since` is a path, not {type(source).__name__}"
        raise InvalidRequest(what, argument="since")
    path = Path(source)
    try:
        if is_in_use(path):
            raise ValueError("it is a file of a store that is open")
        with path.open(encoding="utf-8") as lines:
            last = ("", "")
            for head in _heads(lines, instance):
                place = place_of(head.instance)
                if place <= last:
                    raise ValueError("its heads are not in order")
                last = place
                yield head
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = f"`{path}` is no report of `verify`: {error}"
        raise InvalidRequest(what, argument="since") from error


def _heads(lines: TextIO, instance: str | None) -> Iterator[Head]:
    first = lines.readline(_LINE_MAX)
    if not _is_opening(first):
        if not stat.S_ISREG(os.fstat(lines.fileno()).st_mode):
            raise ValueError("it does not begin as this program writes it")
        lines.seek(0)
        yield from map(_head, _checked(json.load(lines), instance))
        return
    _checked(json.loads(f"{first}]}}"), instance)
    heads = 0
    while line := lines.readline(_LINE_MAX):
        if line.startswith("]"):
            _checked(json.loads(first + line + lines.read()), instance, heads)
            return
        heads += 1
        yield _head(json.loads(line.rstrip().removesuffix(",")))
    raise ValueError("it breaks off in the middle")


def _is_opening(line: str) -> bool:
    try:
        return line.rstrip() == _opening(json.loads(f"{line}]}}")["instance"])
    except (ValueError, TypeError, LookupError):
        return False


def _checked(document: Any, instance: str | None, read: int = 0) -> list[Any]:
    """Give the heads of a document that is a report, `read` of which were read already."""
    match document:
        case {"interlock_report": 1, "instance": of, "heads": list(heads)}:
            if of is not None and of != instance:
                raise ValueError(f"it is about the instance {quoted(of)} alone")
            if document.get("ok") and document.get("instances") != len(heads) + read:
                raise ValueError("some of its heads are gone")
            return heads
        case _:
            raise ValueError("it has no heads of the form that this program writes")


def _head(row: Any) -> Head:
    match row:
        case [str(instance), int(number), str(digest)] if (
            not isinstance(number, bool) and number >= 0
        ):
            return Head(instance, number, bytes.fromhex(digest))
        case _:
            raise ValueError("a head is an instance, a number and a digest")
