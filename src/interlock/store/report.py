"""Verification reports as files: one JSON document, written and read in a stream.

    {"interlock_report": 1, "heads": [
    ["01a2355f-…", 12, "9f86d081…"],
    ["01a2355f-…", 3, "60303ae2…"]
    ], "instances": 2, "entries": 15, "ok": true, "count": 0, "findings": []}

Each head (an instance, its last entry's number, that entry's digest) has a line of its own, so a
million of them are read one at a time; a report that a tool laid out anew is read whole.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from interlock.core.rejection import InvalidRequest
from interlock.store.verify import Head, Report

_OPENING = '{"interlock_report": 1, "heads": ['


class ReportWriter:
    """Writes a report as the verification goes: `head` for each instance, then `close`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._separator = "\n"
        stream.write(_OPENING)

    def head(self, head: Head) -> None:
        line = json.dumps([head.instance, head.number, head.digest.hex()])
        self._stream.write(f"{self._separator}{line}")
        self._separator = ",\n"

    def close(self, report: Report) -> None:
        self._stream.write(f"\n], {json.dumps(report.as_dict())[1:]}\n")


class _NoWriter:
    """Stands in where no report is kept."""

    def head(self, head: Head) -> None: ...

    def close(self, report: Report) -> None: ...


@contextmanager
def open_report(target: Path | str | TextIO | None) -> Iterator[ReportWriter | _NoWriter]:
    """Open a report for writing; a file appears under its name only when it is whole."""
    if target is None:
        yield _NoWriter()
    elif isinstance(target, Path | str):
        path = Path(target)
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("w", encoding="utf-8") as stream:
            yield ReportWriter(stream)
        partial.replace(path)
    else:
        yield ReportWriter(target)


def read_heads(path: Path) -> Iterator[Head]:
    """Read the heads of a report, in its order.

    Raises:
        InvalidRequest: the file is no report.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            if next(lines, "").rstrip("\n") == _OPENING:
                for line in lines:
                    if line.startswith("]"):
                        return
                    yield _head(json.loads(line.rstrip("\n,")))
                raise ValueError("it breaks off in the middle")
            lines.seek(0)
            yield from map(_head, json.load(lines)["heads"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(
            f"`{path}` is no report of `verify`: {error}", argument="since"
        ) from error


def _head(row: Any) -> Head:
    instance, number, digest = row
    return Head(str(instance), int(number), bytes.fromhex(digest))
