"""Driving a plan on SQLite: its statements, one after another, in a transaction already open."""

import sqlite3
from pathlib import Path
from typing import Protocol

from interlock.core.rejection import StorageFailure
from interlock.store.connection import calling, ended
from interlock.store.plan import Call, Plan, Row, T
from interlock.store.statements import load_statements

STATEMENTS = load_statements(Path(__file__).parent / "statements.sql")

# What Python raises over a stored value that nobody could have written through the store.
UNREADABLE = (ValueError, OverflowError)


class Placed(Protocol):
    """The database of a store."""

    @property
    def where(self) -> str: ...


def drive(cursor: sqlite3.Cursor | sqlite3.Connection, plan: Plan[T], database: Placed) -> T:
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


class Ward:
    """An authorizer that denies a hook the end of the transaction that it is called in.

    On a connection of ours it is set once: with each setting anew SQLite compiles every statement
    again. It is asked when a statement is compiled, so our own ends are written as nobody else
    would: what is compiled already is not asked about.

    Attributes:
        tried: what the hook that has the connection in hand has tried; None while nobody has.
    """

    def __init__(self) -> None:
        self.tried: list[int] | None = None

    def __call__(self, action: int, *_: object) -> int:
        if action != sqlite3.SQLITE_TRANSACTION or self.tried is None:
            return sqlite3.SQLITE_OK
        self.tried.append(action)
        return sqlite3.SQLITE_DENY


#: On connections of stores, and on those of callers that hooks have in hand, by identity.
_wards: dict[int, Ward] = {}


def set_ward(connection: sqlite3.Connection) -> None:
    """Set a ward on a connection that a store writes with, until `lift_ward`."""
    ward = _wards[id(connection)] = Ward()
    connection.set_authorizer(ward)


def lift_ward(connection: sqlite3.Connection) -> None:
    """Forget the ward of a connection that is being closed."""
    _wards.pop(id(connection), None)


def _call(connection: sqlite3.Connection, call: Call, database: Placed) -> object:
    """Call a function with the connection, and see that it does not end the transaction.

    To commit would leave half of what is being done, so both are denied; a caller's own authorizer
    is set aside meanwhile, and is gone. A savepoint that is still there afterwards says that no way
    around was found, and lets go of those that were made meanwhile.
    """
    lent = id(connection) not in _wards
    if lent:
        set_ward(connection)
    ward = _wards[id(connection)]
    row_factory, text_factory = connection.row_factory, connection.text_factory
    cursor, outer, tried = sqlite3.Cursor(connection), ward.tried, list[int]()
    cursor.execute("SAVEPOINT interlock_call")
    ward.tried = tried
    try:
        with calling(database, connection):
            answer = call.function(connection)
    except Exception as error:
        if tried:
            raise ended(database.where) from error
        raise
    finally:
        ward.tried = outer
        if connection.row_factory is not row_factory:
            connection.row_factory = row_factory
        if connection.text_factory is not text_factory:
            connection.text_factory = text_factory
        if lent:
            lift_ward(connection)
            connection.set_authorizer(None)
    if tried or not connection.in_transaction:
        raise ended(database.where)
    try:
        cursor.execute("RELEASE interlock_call")
    except sqlite3.OperationalError as error:  # as after INSERT OR ROLLBACK, and another begun
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise ended(database.where) from error
    return answer
