"""A SQLite that fails on purpose.

faults = Faults()
store = faulty_store(path, faults)
faults.at(3, sqlite3.SQLITE_FULL)      # the third statement from now fails, before it runs
faults.on("COMMIT", after=True)        # the next COMMIT happens, and its answer is lost
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.store.sqlite.database import Database, Settings
from interlock.store.store import Store

CODES = {
    "full": sqlite3.SQLITE_FULL,
    "io": sqlite3.SQLITE_IOERR,
    "io-fsync": sqlite3.SQLITE_IOERR_FSYNC,
    "busy": sqlite3.SQLITE_BUSY,
    "locked": sqlite3.SQLITE_LOCKED,
    "corrupt": sqlite3.SQLITE_CORRUPT,
    "readonly": sqlite3.SQLITE_READONLY,
    "cantopen": sqlite3.SQLITE_CANTOPEN,
    "notadb": sqlite3.SQLITE_NOTADB,
}


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(f"injected fault {code}")
    error.sqlite_errorcode = code
    return error


class Faults:
    """Which statements fail, and a log of all that ran. Shared by every connection of a store."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.raised = 0
        self._mutex = threading.Lock()
        self._armed: list[tuple[Callable[[int, str], bool], bool, BaseException]] = []
        self._watched: list[tuple[str, Callable[[], object]]] = []

    def at(self, number: int, code: int = sqlite3.SQLITE_IOERR, *, after: bool = False) -> None:
        """Fail the `number`th statement from now (1 is the next), once."""
        self.arm_at(number, sqlite_error(code), after=after)

    def arm_at(self, number: int, error: BaseException, *, after: bool = False) -> None:
        due = len(self.log) + number
        self._armed.append((lambda place, _: place == due, after, error))

    def on(self, start: str, code: int = sqlite3.SQLITE_IOERR, *, after: bool = False) -> None:
        """Fail the next statement that begins so, once; two of these fail two in turn."""
        self._armed.append((lambda _, sql: sql.startswith(start), after, sqlite_error(code)))

    def watch(self, start: str, call: Callable[[], object]) -> None:
        """Call before the next statement that begins so runs, once."""
        self._watched.append((start, call))

    def clear(self) -> None:
        self._armed.clear()
        self._watched.clear()

    def run(self, sql: str, execute: Callable[[], Any]) -> Any:
        with self._mutex:
            self.log.append(sql)
            place = len(self.log)
            watched = self._take(self._watched, lambda item: sql.startswith(item[0]))
            armed = self._take(self._armed, lambda item: item[0](place, sql))
        if watched:
            watched[1]()
        if armed and not armed[1]:
            self.raised += 1
            raise armed[2]
        result = execute()
        if armed:
            self.raised += 1
            raise armed[2]
        return result

    @staticmethod
    def _take(items: list, holds: Callable[[Any], bool]) -> Any:
        for place, item in enumerate(items):
            if holds(item):
                return items.pop(place)
        return None


def connection_class(faults: Faults) -> type[sqlite3.Connection]:
    """Make a connection class whose statements pass through `faults`."""

    class FaultyConnection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            run = super().execute
            cursor: sqlite3.Cursor = faults.run(sql, lambda: run(sql, *parameters))
            return cursor

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            run = super().executemany
            cursor: sqlite3.Cursor = faults.run(sql, lambda: run(sql, rows))
            return cursor

    return FaultyConnection


def faulty_store(path: Path | None, faults: Faults, **settings: Any) -> Store:
    return Store(Database(Settings(path, **settings), factory=connection_class(faults)))
