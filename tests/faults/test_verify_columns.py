"""Every column of every table, changed by hand one value at a time: `verify` finds it.

The columns are read from the schema, so that a new one is tried as well.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import interlock
from interlock.store.store import Store
from tests.support.tampering import TABLES, copy_healthy, found, tampering

STRAY_VALUES: list[Any] = [None, "", " ", "x", "\u00e9", "a\0b", 0, 1, -(2**63), 2**63 - 1, 1.5]
STRAY_VALUES += [b"", b"x" * 32]


class Cell(NamedTuple):
    """One value of one row, and what it is changed to."""

    table: str
    column: str
    place: int
    old: Any
    new: Any


class Table:
    """A table rewritten cell by cell, and put back after each."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        info = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
        self.columns = [row[1] for row in info]
        self.generated = {row[1] for row in info if row[6]}
        self.key = [row[1] for row in info if row[5]]
        self.rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()

    def cells(self, rows_max: int, lent_max: int) -> Iterator[Cell]:
        """Give changes of each column: to stray values, and to those of other rows.

        They are made in rows spread over the table, some with a value there and some without.
        """
        for position, column in enumerate(self.columns):
            empty = [place for place, row in enumerate(self.rows) if row[position] is None]
            full = [place for place, row in enumerate(self.rows) if row[position] is not None]
            places = [*_spread(empty, rows_max), *_spread(full, rows_max)]
            lent = list(dict.fromkeys(row[position] for row in self.rows))[:lent_max]
            for place in places:
                old = self.rows[place][position]
                for new in [*STRAY_VALUES, *lent]:
                    if (type(new), new) != (type(old), old):
                        yield Cell(self.name, column, place, old, new)

    def write(self, cell: Cell, value: Any) -> bool:
        """Write a value; whether the schema let it through."""
        row = dict(zip(self.columns, self.rows[cell.place], strict=True))
        if self.key:
            written = cell.old if value is cell.new else cell.new
            key = [written if name == cell.column else row[name] for name in self.key]
            where = " AND ".join(f'"{name}" IS ?' for name in self.key)
        else:
            key, where = [cell.place + 1], "rowid = ?"
        sql = f'UPDATE "{self.name}" SET "{cell.column}" = ? WHERE {where}'
        try:
            count = self.connection.execute(sql, (value, *key)).rowcount
        except sqlite3.Error:
            return False
        assert count == 1, cell
        return True


def _spread(places: list[int], most: int) -> list[int]:
    step = max(1, -(-len(places) // most))
    return sorted({*places[::step], *places[-1:]})


def unseen(store: Store, table: Table, rows_max: int, lent_max: int) -> list[Cell]:
    """Change every column and list the changes that `verify` does not find."""
    missed, tried = [], set()
    for cell in table.cells(rows_max, lent_max):
        if not table.write(cell, cell.new):
            continue
        tried.add(cell.column)
        try:
            report = store.verify()
        except Exception as error:
            error.add_note(f"after {cell}")
            raise
        assert all(finding.what for finding in report.findings)
        if not found(report):
            missed.append(cell)
        assert table.write(cell, cell.old)
    assert tried == set(table.columns) - table.generated
    assert not found(store.verify())
    return missed


def unseen_in(path: Path, name: str, *, loose: bool, whole: bool) -> dict[str, Cell]:
    """Name the columns, with some change of each, that are not watched and ought to be."""
    copy_healthy(path)
    with tampering(path) as file:
        if loose:
            file.loosen(name)
        with interlock.open(f"sqlite:///{path}?mode=ro") as store:
            table = Table(file.connection, name)
            missed = unseen(store, table, *((1000, 8) if whole else (3, 2)))
    return {cell.column: cell for cell in missed}


@pytest.mark.parametrize("table", TABLES)
def test_a_change_of_any_column_is_found(table: str, path: Path) -> None:
    assert unseen_in(path, table, loose=False, whole=False) == {}


@pytest.mark.parametrize("table", TABLES)
def test_a_value_of_any_type_in_any_column_is_found(table: str, path: Path) -> None:
    """The table obeys nothing any more: no types, no keys, no generated columns."""
    assert unseen_in(path, table, loose=True, whole=False) == {}


@pytest.mark.slow
@pytest.mark.parametrize("loose", [False, True], ids=["strict", "loose"])
@pytest.mark.parametrize("table", TABLES)
def test_a_change_of_any_value_of_any_row_is_found(table: str, loose: bool, path: Path) -> None:
    assert unseen_in(path, table, loose=loose, whole=True) == {}
