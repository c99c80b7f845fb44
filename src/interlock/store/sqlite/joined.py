"""A caller's own transaction on an SQLite file, and the runner that drives plans within it.

Each plan that writes is a savepoint: a refusal undoes what the plan wrote and nothing of the
caller's. Whether the caller commits is the caller's affair.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from interlock.core.rejection import StorageFailure
from interlock.store.connection import conflicting, refused, unusable
from interlock.store.plan import Plan, Transaction
from interlock.store.sqlite.drive import UNREADABLE, drive
from interlock.store.sqlite.errors import translate
from interlock.store.sqlite.migrate import hiding
from interlock.store.sqlite.place import Place

# Changes nothing, and takes the write lock, if the transaction can still have it.
_LOCK = "DELETE FROM main.instances WHERE false"
_UNDO = ("ROLLBACK TO interlock", "RELEASE interlock")


class Own(Protocol):
    """What is needed of the store's own database."""

    @property
    def place(self) -> Place: ...

    @property
    def where(self) -> str: ...

    def owns(self, driver: object) -> bool: ...

    def check_writable(self, *, joins: bool = False) -> None: ...


class Joined:
    """A connection of the caller's, found fit to take part in.

    Raises:
        InvalidRequest: it leads elsewhere, is closed, or has no transaction that could be joined.
        StorageFailure: the file was replaced since the store was opened.
    """

    def __init__(self, connection: Any, own: Own) -> None:
        if not issubclass(type(connection), sqlite3.Connection):  # whatever it says that it is
            raise unusable(connection, "one of sqlite3")
        self._connection = connection
        self._own = own
        try:
            with _plain(connection, os.fsdecode) as cursor:  # the name of a file may be odd
                self._check_place(cursor)
            if not connection.in_transaction and _is_autocommit(connection):
                raise refused("is in autocommit mode and has no transaction open; BEGIN one")
        except sqlite3.ProgrammingError as error:  # closed, or of another thread
            raise refused(f"cannot be used: {error}") from error
        except sqlite3.Error as error:
            raise translate(error, own.place.where) from error

    def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction.

        Raises:
            VersionConflict: others wrote since the caller's transaction began to read.
            StorageFailure: nothing of the plan was written.
        """
        open_before = self._connection.in_transaction
        with self._translated(open_before), _plain(self._connection) as cursor:
            if transaction.writes:
                self._own.check_writable(joins=True)
                return self._write(cursor, transaction.make(), open_before)
            return self._read(cursor, transaction.make(), open_before)

    def _write(self, cursor: sqlite3.Cursor, plan: Plan[Any], open_before: bool) -> Any:
        # What was decided on is to stand when it is written, so the write lock comes first.
        # A savepoint alone, released, would be a commit; so a transaction is begun, as sqlite3
        # itself would before the caller's first write.
        cursor.execute(_LOCK if open_before else "BEGIN IMMEDIATE")
        try:
            cursor.execute("SAVEPOINT interlock")
            answer = drive(cursor, plan, self._own)
            cursor.execute("RELEASE interlock")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have rolled all of it back
                for undo in _UNDO if open_before else ["ROLLBACK"]:
                    cursor.execute(undo)
            raise
        return answer

    def _read(self, cursor: sqlite3.Cursor, plan: Plan[Any], open_before: bool) -> Any:
        """Read on one snapshot. A transaction is left open no more than by sqlite3's own SELECT."""
        if open_before:
            return drive(cursor, plan, self._own)
        cursor.execute("BEGIN")
        try:
            return drive(cursor, plan, self._own)
        finally:
            cursor.execute("ROLLBACK")

    def _check_place(self, cursor: sqlite3.Cursor) -> None:
        if self._own.owns(self._connection):  # a hook that was given it
            return
        place = self._own.place
        place.check_unmoved()
        files = {name: file for _, name, file in cursor.execute("PRAGMA database_list")}
        file = files["main"]
        # By another name, a hard link, the file would have another log.
        if not place.is_file(file) or not place.holds(Path(f"{file}-wal")):
            leads = f"to `{file}`" if file else "to a database in memory"
            raise refused(f"leads {leads}, and not to {place.where}")
        if "temp" in files and (found := hiding(cursor)):
            raise refused(f"has a temporary `{found[0]}` in the way of the store's tables")

    @contextmanager
    def _translated(self, open_before: bool) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            failure = translate(error, self._own.place.where)
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT:
                raise conflicting(failure) from error
            if open_before and not self._connection.in_transaction:
                what = f"{failure}; SQLite rolled the caller's whole transaction back"
                failure = StorageFailure(what, kind=failure.kind, retryable=failure.retryable)
            raise failure from error


def _is_autocommit(connection: sqlite3.Connection) -> bool:
    """Whether the driver begins no transaction by itself. `autocommit` is of Python 3.12."""
    begins_none: bool | int = getattr(connection, "autocommit", -1)  # -1: by `isolation_level`
    return begins_none is True or (begins_none == -1 and connection.isolation_level is None)


@contextmanager
def _plain(
    connection: sqlite3.Connection, text: Callable[[bytes], str] = str
) -> Iterator[sqlite3.Cursor]:
    """Give a cursor of plain rows and texts, however the caller wants to have theirs."""
    cursor = sqlite3.Cursor(connection)
    texts, connection.text_factory = connection.text_factory, text
    try:
        yield cursor
    finally:
        connection.text_factory = texts
        cursor.close()
