"""Migrations: numbered SQL files, applied once each, all of those owed in one transaction.

The table `interlock_migrations` says which have been applied, and so whether a file is a store of
ours at all. A file with tables of its own may hold a store beside them, unless they are called like
ours.
"""

import re
import sqlite3
from pathlib import Path

from interlock.core.rejection import StorageFailure

MIGRATIONS = sorted((Path(__file__).parent / "migrations").glob("[0-9]*.sql"))

_HAS_LEDGER = """
    SELECT 1 FROM sqlite_schema
    WHERE name = 'interlock_migrations' AND sql LIKE '%number INTEGER PRIMARY KEY%'
"""
_LEDGER = """
    CREATE TABLE interlock_migrations (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
    ) STRICT
"""


def is_store(connection: sqlite3.Connection) -> bool:
    """Whether the file holds a store, of whatever version."""
    return connection.execute(_HAS_LEDGER).fetchone() is not None


def is_current(connection: sqlite3.Connection, where: str) -> bool:
    """Whether the store has every migration that this code knows.

    Raises:
        StorageFailure: it has more than that.
    """
    if not is_store(connection):
        return False
    (applied,) = connection.execute(
        "SELECT coalesce(max(number), 0) FROM interlock_migrations"
    ).fetchone()
    if applied > len(MIGRATIONS):
        raise StorageFailure(
            f"{where}: the store is newer than this program: it is at schema {applied}, "
            f"and this program knows {len(MIGRATIONS)}; upgrade interlock",
            kind="newer",
        )
    return bool(applied == len(MIGRATIONS))


def check_place(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file in which a store cannot be made, before anything in it is touched.

    Raises:
        StorageFailure: another program's tables are called like ours, or its text is UTF-16, which
            sorts otherwise.
    """
    if is_store(connection):
        return
    taken = sorted(_names_of_ours() & _names(connection))
    if taken:
        raise StorageFailure(
            f"{where}: not a store of ours: another program keeps {', '.join(taken)} "
            "in this file; use a file of its own for the store",
            kind="foreign",
        )
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise StorageFailure(
            f"{where}: its text is {encoding}, and a store needs UTF-8", kind="foreign"
        )


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Apply what is owed; the connection is in a transaction of its own.

    Raises:
        StorageFailure: the store is newer, or cannot be made in this file.
    """
    if is_current(connection, where):
        return
    check_place(connection, where)
    if not is_store(connection):
        connection.execute(_LEDGER)
    (applied,) = connection.execute("SELECT count(*) FROM interlock_migrations").fetchone()
    for number, path in enumerate(MIGRATIONS[applied:], applied + 1):
        for statement in split_statements(path.read_text()):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO interlock_migrations VALUES (?, ?, strftime('%Y-%m-%dT%H:%M:%fZ'))",
            (number, path.stem),
        )


def split_statements(script: str) -> list[str]:
    """Cut a script into statements; `executescript` would commit before the first."""
    statements, piece = [], ""
    for line in script.splitlines(keepends=True):
        piece += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(piece):
            statements.append(piece)
            piece = ""
    return statements


def _names(connection: sqlite3.Connection) -> set[str]:
    """Name everything in the file: tables, views, indexes and triggers share one space."""
    return {name.lower() for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def _names_of_ours() -> set[str]:
    made = re.compile(r"^CREATE (?:TABLE|VIEW|INDEX|UNIQUE INDEX|TRIGGER) (\w+)", re.MULTILINE)
    ours = {name for path in MIGRATIONS for name in made.findall(path.read_text())}
    return ours | {"interlock_migrations"}
