"""Driving a plan on SQLite: its statements, one after another, in a transaction already open."""

import sqlite3
from pathlib import Path

from interlock.core.rejection import StorageFailure
from interlock.store.plan import Plan, Row, T
from interlock.store.statements import load_statements

STATEMENTS = load_statements(Path(__file__).parent / "statements.sql")

# What Python raises over a stored value that nobody could have written through the store.
UNREADABLE = (ValueError, OverflowError)


def drive(cursor: sqlite3.Cursor | sqlite3.Connection, plan: Plan[T]) -> T:
    """Execute the statements of a plan, and give its answer."""
    connection = cursor.connection if isinstance(cursor, sqlite3.Cursor) else cursor
    try:
        name, rows, _ = next(plan)
        while True:
            query = STATEMENTS[name]
            if not query.reads:
                before = connection.total_changes
                if len(rows) == 1:
                    cursor.execute(query.sql, rows[0])
                else:
                    cursor.executemany(query.sql, rows)
                if connection.total_changes - before < query.changes * len(rows):
                    what = f"`{name}` had no effect: a trigger is missing, or one was added"
                    raise StorageFailure(f"{what}; run `verify`", kind="damaged")
                found: list[Row] = []
            elif len(rows) == 1:
                found = cursor.execute(query.sql, rows[0]).fetchall()
            else:
                found = [row for key in rows for row in cursor.execute(query.sql, key)]
            name, rows, _ = plan.send(found)
    except StopIteration as end:
        answer: T = end.value
        return answer
