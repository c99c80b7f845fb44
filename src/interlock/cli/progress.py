"""How far long work has come: one line on stderr, drawn over itself, where that is a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

REDRAW_SECONDS = 0.1
BAR_WIDTH = 30


class Progress:
    """Shows how far the work has come; use it as a context manager, which wipes the line."""

    def __init__(self) -> None:
        self._draws = sys.stderr.isatty()
        self._drawn_at = 0.0
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.wipe()

    def show(self, what: str, done: int, total: int | None = None) -> None:
        """Draw `what` and the count, with a bar where the total is known."""
        now = time.monotonic()
        if not self._draws or now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at, self._drawn = now, True
        sys.stderr.write(f"\r\x1b[K{progress_line(what, done, total)}")
        sys.stderr.flush()

    def wipe(self) -> None:
        """Clear the line, so that something else can be printed."""
        if self._drawn:
            self._drawn = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(what: str, done: int, total: int | None) -> str:
    """Write how far it has come: `recording [######------] 50%  1,000 of 2,000`."""
    if not total:
        return f"{what} {done:,}"
    filled = BAR_WIDTH * done // total
    bar = "#" * filled + "-" * (BAR_WIDTH - filled)
    return f"{what} [{bar}] {100 * done // total:3}%  {done:,} of {total:,}"
