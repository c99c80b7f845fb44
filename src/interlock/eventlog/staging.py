"""Events put in order of their cases, on disk.

Cases of a log interleave, and an instance must begin at the earliest time of its case, which may
come last. So the whole log is read before anything is recorded, into a temporary database that is
gone when it is closed: memory stays flat however long the log is, and a log that cannot be read to
its end is told before anything is recorded.

    with Staging(read_log("permits.csv")) as staging:
        for case, position, event in staging.steps():
            ...
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

from interlock.core.instant import from_microseconds, to_microseconds
from interlock.eventlog.event import Event
from interlock.store.sqlite.errors import translate

CACHE_KIB = 4 * 1024  # of pages in memory; the rest spills to a temporary file

# A column without a type keeps what it is given: microseconds, or a text that is no time.
_TABLE = "CREATE TABLE events (name TEXT, action TEXT, time, actor TEXT, line INTEGER)"
_CASES = """
CREATE TABLE cases (name TEXT PRIMARY KEY, first INTEGER, earliest INTEGER, unread TEXT)
WITHOUT ROWID
"""
_GATHER = """
INSERT INTO cases
SELECT
    name,
    min(rowid),
    min(time) FILTER (WHERE typeof(time) = 'integer'),
    min(substr(time, 1, 200)) FILTER (WHERE typeof(time) = 'text')
FROM events GROUP BY name
"""
_STEPS = """
SELECT c.first, name, c.earliest, c.unread, e.action, e.time, e.actor, e.line
FROM events AS e JOIN cases AS c USING (name)
ORDER BY c.first, e.rowid
"""


class Case(NamedTuple):
    """One case of a log.

    Attributes:
        number: of its first event in the log, from 1.
        earliest: the earliest time that could be read, of all its events.
        unread: one of the texts from which no time could be read, if there are any; its beginning.
    """

    number: int
    name: str
    earliest: datetime | None
    unread: str | None


class Step(NamedTuple):
    """An event at its place in its case; positions count from 1, in the order of the log."""

    case: Case
    position: int
    event: Event


class Staging:
    """A log, read to its end and put in order. Use it as a context manager.

    Attributes:
        count: how many events there are.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        """Read all events.

        Raises:
            StorageFailure: the disk that holds temporary files is full or failed.
        """
        with _translated():
            self._database = sqlite3.connect("", isolation_level=None)
        try:
            with _translated():
                self._fill(events)
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._database.close()

    def steps(self) -> Iterator[Step]:
        """Give every event: case by case, in the order in which the log first names them."""
        position = 0
        case = Case(0, "", None, None)
        with _translated():
            rows = self._database.execute(_STEPS)
            for first, name, earliest, unread, action, time, actor, line in rows:
                if first != case.number:
                    position = 0
                    begun = None if earliest is None else from_microseconds(earliest)
                    case = Case(first, name, begun, unread)
                position += 1
                yield Step(case, position, Event(name, action, _time(time), actor, line))

    def _fill(self, events: Iterable[Event]) -> None:
        execute = self._database.execute
        for pragma in (
            f"cache_size = -{CACHE_KIB}",
            "journal_mode = OFF",  # nobody needs it after a crash
            "synchronous = OFF",
            "temp_store = FILE",
        ):
            execute(f"PRAGMA {pragma}")
        execute("BEGIN")
        execute(_TABLE)
        self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", map(_row, events))
        execute(_CASES)
        execute(_GATHER)
        execute("COMMIT")
        self.count: int = execute("SELECT count(*) FROM events").fetchone()[0]


def _row(event: Event) -> tuple[object, ...]:
    case, action, time, actor, line = event
    stored = to_microseconds(time) if isinstance(time, datetime) else time
    return case, action, stored, actor, line


def _time(stored: int | str | None) -> datetime | str | None:
    return from_microseconds(stored) if isinstance(stored, int) else stored


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, "the temporary file that sorts the log") from error
