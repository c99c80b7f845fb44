"""A caller's own transaction on an SQLite file, and the runner that drives plans within it.

Each plan is a savepoint: a refusal undoes what the plan wrote and nothing of the caller's. Whether
the caller commits is the caller's affair.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from interlock.store.connection import refused, unusable
from interlock.store.plan import Transaction
from interlock.store.sqlite.drive import UNREADABLE, drive
from interlock.store.sqlite.errors import translate
from interlock.store.sqlite.place import Place


class Joined:
    """A connection of the caller's, found fit to take part in.

    Raises:
        InvalidRequest: it leads elsewhere, is closed, or has no transaction that could be joined.
    """

    def __init__(self, connection: Any, place: Place) -> None:
        driver = getattr(connection, "driver_connection", connection)
        if not isinstance(driver, sqlite3.Connection):
            raise unusable(connection, "one of sqlite3")
        self._connection = driver
        self._where = place.where
        try:
            self._check_place(place)
        except sqlite3.ProgrammingError as error:  # closed, or of another thread
            raise refused(f"cannot be used: {error}") from error

    def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction.

        Raises:
            InvalidRequest: there is no transaction to write in.
            StorageFailure: nothing of the plan was written.
        """
        connection = self._connection
        with self._translated(), _plain(connection) as cursor:
            if not transaction.writes:
                return drive(cursor, transaction.make())
            self._begin(cursor)
            cursor.execute("SAVEPOINT interlock")
            try:
                answer = drive(cursor, transaction.make())
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled all of it back
                    cursor.execute("ROLLBACK TO interlock")
                    cursor.execute("RELEASE interlock")
                raise
            cursor.execute("RELEASE interlock")
        return answer

    def _begin(self, cursor: sqlite3.Cursor) -> None:
        """Make sure that a transaction is open: without one, a released savepoint is a commit."""
        connection = self._connection
        if connection.in_transaction:
            return
        by_itself = getattr(connection, "autocommit", -1)  # from Python 3.12
        if connection.isolation_level is None or by_itself is True:
            raise refused("is in autocommit mode and has no transaction open; BEGIN one")
        cursor.execute("BEGIN IMMEDIATE")  # as sqlite3 itself would before the caller's first write

    def _check_place(self, place: Place) -> None:
        with _plain(self._connection) as cursor:
            files = {name: file for _, name, file in cursor.execute("PRAGMA database_list")}
        if not place.is_file(files["main"]):
            raise refused(f"is to `{files['main'] or 'memory'}`, and the store is {place.where}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            raise translate(error, self._where) from error


@contextmanager
def _plain(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """Give a cursor of plain rows and texts, however the caller wants to have theirs."""
    cursor = connection.cursor(sqlite3.Cursor)
    cursor.row_factory = None
    texts, connection.text_factory = connection.text_factory, str
    try:
        yield cursor
    finally:
        connection.text_factory = texts
        cursor.close()
