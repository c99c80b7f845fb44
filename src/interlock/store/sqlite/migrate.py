"""Migrations: numbered SQL files, applied once each, all of those owed in one transaction.

The table `interlock_migrations` says which have been applied, and so whether a file is a store of
ours at all. A file with tables of its own may hold a store beside them, unless they are called like
ours.
"""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

from interlock.core.rejection import StorageFailure

MIGRATIONS = sorted((Path(__file__).parent / "migrations").glob("[0-9]*.sql"))

_LEDGER = "interlock_migrations"
_MAKE_LEDGER = f"""
    CREATE TABLE {_LEDGER} (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
    ) STRICT
"""
_SEAL = f"""
    CREATE TRIGGER {_LEDGER}_insert BEFORE INSERT ON {_LEDGER}
    BEGIN SELECT RAISE(ABORT, 'interlock: migrations are applied when a store is opened'); END
"""
# In a damaged file they may be of any type.
_SCHEMA = """
    SELECT CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(sql AS TEXT)
    FROM sqlite_schema WHERE sql IS NOT NULL AND name IS NOT NULL AND tbl_name IS NOT NULL
"""


class _Object(NamedTuple):
    """A table, view, index or trigger, as a schema lists it. Names are told apart without case."""

    type: str
    name: str
    table: str
    sql: str


def is_store(connection: sqlite3.Connection) -> bool:
    """Whether the file holds a store, of whatever version."""
    return _schema(connection).get(_LEDGER) == _own_schema()[_LEDGER]


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
    own, found = _own_schema(), _schema(connection)
    if found.get(_LEDGER) == own[_LEDGER]:
        return
    taken = sorted(own.keys() & found.keys())
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
        connection.execute(_MAKE_LEDGER)
    (applied,) = connection.execute("SELECT count(*) FROM interlock_migrations").fetchone()
    _apply(connection, applied)


def _apply(connection: sqlite3.Connection, applied: int) -> None:
    connection.execute(f"DROP TRIGGER IF EXISTS {_LEDGER}_insert")
    for number, path in enumerate(MIGRATIONS[applied:], applied + 1):
        for statement in split_statements(path.read_text()):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO interlock_migrations VALUES (?, ?, strftime('%Y-%m-%dT%H:%M:%fZ'))",
            (number, path.stem),
        )
    connection.execute(_SEAL)


def split_statements(script: str) -> list[str]:
    """Cut a script into statements; `executescript` would commit before the first."""
    statements, piece = [], ""
    for line in script.splitlines(keepends=True):
        piece += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(piece):
            statements.append(piece)
            piece = ""
    return statements


def schema_faults(connection: sqlite3.Connection) -> list[str]:
    """Say where the schema of a store is not the one that the migrations make.

    What a caller keeps beside the store is no concern of it, except for triggers and unique indexes
    on its tables.
    """
    own, found, faults = _own_schema(), _schema(connection), []
    for name, made in own.items():
        if name not in found:
            faults.append(f"the {made.type} `{name}` is missing")
        elif found[name] != made:
            faults.append(f"the {made.type} `{name}` is not as it was made")
    for name, added in found.items():
        unique = added.sql.upper().startswith("CREATE UNIQUE")
        if (added.type == "trigger" or unique) and added.table in own and name not in own:
            faults.append(f"the {added.type} `{name}` on `{added.table}` was added")
    return faults


def hiding(cursor: sqlite3.Cursor) -> list[str]:
    """Name what a connection of the caller's has, temporarily, before our tables or upon them."""
    rows = cursor.execute("SELECT name, tbl_name FROM temp.sqlite_schema")
    own = _own_schema()
    return [name for name, table in rows if own.keys() & {_fold(name), _fold(table)}]


def damage(connection: sqlite3.Connection) -> list[str]:
    """Have SQLite check the store's tables against themselves and their indexes."""
    found = _schema(connection)
    tables = [made.name for made in _own_schema().values() if made.type == "table"]
    return [
        message
        for table in tables
        if table in found
        for (message,) in connection.execute(f"PRAGMA integrity_check({table})")
        if message != "ok"
    ]


def _schema(connection: sqlite3.Connection) -> dict[str, _Object]:
    """Read everything in the file by name: tables, views, indexes and triggers share one space."""
    rows = connection.execute(_SCHEMA)
    objects = (_Object(type, _fold(name), _fold(table), sql) for type, name, table, sql in rows)
    return {found.name: found for found in objects}


def _fold(name: str) -> str:
    """Make names alike that SQLite takes for one: it folds the letters of ASCII alone."""
    return "".join(char.lower() if char.isascii() else char for char in name)


@cache
def _own_schema() -> dict[str, _Object]:
    """Make the schema of a store, to see what SQLite lists for it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(_MAKE_LEDGER)
        _apply(connection, 0)
        return _schema(connection)
