"""Driving a plan on SQLite: its statements, one after another, in a transaction already open."""

import sqlite3
from pathlib import Path

from interlock.core.rejection import StorageFailure
from interlock.store.connection import calling
from interlock.store.plan import Call, Plan, Row, T
from interlock.store.statements import load_statements

STATEMENTS = load_statements(Path(__file__).parent / "statements.sql")

# What Python raises over a stored value that nobody could have written through the store.
UNREADABLE = (ValueError, OverflowError)


def drive(cursor: sqlite3.Cursor | sqlite3.Connection, plan: Plan[T], database: object) -> T:
    """Execute the statements of a plan, and give its answer.

    Args:
        database: the store's own, for the hooks that the plan calls.
    """
    connection = cursor.connection if isinstance(cursor, sqlite3.Cursor) else cursor
    try:
        step = next(plan)
        while True:
            if isinstance(step, Call):
                step = plan.send(_call(connection, step, database))
                continue
            name, rows, _, _ = step
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
            step = plan.send(found)
    except StopIteration as end:
        answer: T = end.value
        return answer


def _call(connection: sqlite3.Connection, call: Call, database: object) -> object:
    """Call a function with the connection, and see that the transaction outlasted it.

    A savepoint that is still there afterwards was not committed or rolled back meanwhile.
    """
    connection.execute("SAVEPOINT interlock_call")
    with calling(database, connection):
        answer = call.function(connection)
    try:
        connection.execute("RELEASE interlock_call")
    except sqlite3.OperationalError as error:
        if "no such savepoint" not in str(error):
            raise
        what = "a hook or guard ended the transaction that it was called in"
        raise StorageFailure(f"{what}; it must not commit or roll back", kind="failed") from error
    return answer
