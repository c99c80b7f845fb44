"""Verification reports as files: one JSON document, written and read in a stream.

    {"interlock_report": 1, "heads": [
    ["01a2355f-…", 12, "9f86d081…"],
    ["01a2355f-…", 3, "60303ae2…"]
    ], "ok": true, "instances": 2, "entries": 15, "count": 0, "findings": []}

Each head (an instance, its last entry's number, that entry's digest) has a line of its own, so a
million of them are read one at a time; a report that a tool laid out anew is read whole.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any, TextIO

from interlock.core.identity import root_of
from interlock.core.rejection import InvalidRequest, StorageFailure
from interlock.store.verify import Head, Report

_OPENING = '{"interlock_report": 1, "heads": ['


class ReportWriter:
    """Writes a report as the verification goes: `head` for each instance, then `close`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._separator = "\n"
        self._write(_OPENING)

    def head(self, head: Head) -> None:
        line = json.dumps([head.instance, head.number, head.digest.hex()])
        self._write(f"{self._separator}{line}")
        self._separator = ",\n"

    def close(self, report: Report) -> None:
        self._write(f"\n], {json.dumps(report.as_dict())[1:]}\n")

    def _write(self, text: str) -> None:
        with _writing(getattr(self._stream, "name", "the report")):
            self._stream.write(text)


@contextmanager
def _writing(name: object) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader of a stream went away; that is its affair
        raise
    except OSError as error:
        kind = "full" if error.errno == ENOSPC else "io"
        raise StorageFailure(
            f"the report `{name}` cannot be written: {error}", kind=kind
        ) from error


class _NoWriter:
    """Stands in where no report is kept."""

    def head(self, head: Head) -> None: ...

    def close(self, report: Report) -> None: ...


@contextmanager
def open_report(target: Path | str | TextIO | None) -> Iterator[ReportWriter | _NoWriter]:
    """Open a report for writing; a file appears under its name only when it is whole.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    if target is None:
        yield _NoWriter()
    elif isinstance(target, Path | str):
        with _whole_file(Path(target)) as stream:
            yield ReportWriter(stream)
    else:
        yield ReportWriter(target)


@contextmanager
def _whole_file(path: Path) -> Iterator[TextIO]:
    partial = path.with_name(f"{path.name}.partial")
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a directory")
        stream = partial.open("w", encoding="utf-8")
    except OSError as error:
        what = f"the report `{path}` cannot be written: {error}"
        raise InvalidRequest(what, argument="report") from error
    try:
        yield stream
        with _writing(path):
            stream.close()
            partial.replace(path)
    finally:
        stream.close()
        partial.unlink(missing_ok=True)


def read_heads(path: Path) -> Iterator[Head]:
    """Read the heads of a report, in its order, which is that of the walk.

    Raises:
        InvalidRequest: the file is no report, or no longer the one that was written.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            last = ("", "")
            for head in _heads(lines):
                place = (root_of(head.instance), head.instance)
                if place <= last:
                    raise ValueError("its heads are not in order")
                last = place
                yield head
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = f"`{path}` is no report of `verify`: {error}"
        raise InvalidRequest(what, argument="since") from error


def _heads(lines: TextIO) -> Iterator[Head]:
    if next(lines, "").rstrip("\n") != _OPENING:
        lines.seek(0)
        yield from map(_head, _checked(json.load(lines)))
        return
    for line in lines:
        if line.startswith("]"):
            _checked(json.loads(_OPENING + line + lines.read()))
            return
        yield _head(json.loads(line.rstrip().removesuffix(",")))
    raise ValueError("it breaks off in the middle")


def _checked(document: Any) -> list[Any]:
    """Give the heads of a document that is a report."""
    match document:
        case {"interlock_report": 1, "heads": list(heads)}:
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
