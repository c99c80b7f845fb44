"""An open log file: its bytes, plain or gzipped, its lines, and complaints that say where.

Whether a file is gzipped is seen from its first bytes, whatever it is called, so a pipe will do.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from interlock.eventlog.event import LogError
from interlock.store.sqlite.database import is_in_use

LINE_BYTES_MAX = 16 * 1024 * 1024  # so that a file without lines does not fill the memory
_GZIP = b"\x1f\x8b"


class LogFile:
    """A log that is being read.

    Attributes:
        line: number of the line that was read last; 0 before the first, and in what has no lines.
    """

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self.stream = stream
        self.line = 0

    def fault(self, what: str, hint: str | None = None, *, line: int | None = None) -> LogError:
        """Make the error for the line given, else for the one read last."""
        return LogError(self.name, line or self.line or None, what, hint)

    def lines(self) -> Iterator[str]:
        """Yield the lines as text, each with its end, the first without a byte-order mark."""
        while raw := self.stream.readline(LINE_BYTES_MAX):
            self.line += 1
            if len(raw) == LINE_BYTES_MAX:
                raise self.fault(f"a line is longer than {LINE_BYTES_MAX} bytes", _NO_TEXT)
            try:
                text = raw.decode("utf-8-sig" if self.line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise self.fault(f"is not UTF-8 at byte {error.start + 1}", _NO_TEXT) from None
            if "\0" in text:
                raise self.fault("holds a NUL character", _NO_TEXT)
            yield text


_NO_TEXT = "a log is UTF-8 text; convert it, or check that this is one"


@contextmanager
def open_log(path: Path) -> Iterator[LogFile]:
    """Open a log, and translate what goes wrong while it is open."""
    file = None
    if is_in_use(path):
        raise LogError(str(path), None, "is a file of a store that is open, and no log")
    try:
        with path.open("rb") as raw:
            stream: IO[bytes] = raw
            if raw.peek(2)[:2] == _GZIP:
                stream = io.BufferedReader(gzip.GzipFile(fileobj=raw))
            file = LogFile(str(path), stream)
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        what = f"the gzip file is damaged: {error}"
        raise LogError(str(path), file.line if file else None, what, "get it again") from error
    except OSError as error:
        raise LogError(str(path), None, f"cannot be read: {error.strerror or error}") from error
