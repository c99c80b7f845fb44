"""The caller's connection: what `connection=` may be, and the DB-API connection beneath it.

SQLAlchemy and Django are recognised when the caller has imported them, and never imported here.
"""

import sys
from typing import Any

from interlock.core.rejection import InvalidRequest

_WANTED = (
    "a connection of sqlite3 or psycopg, a SQLAlchemy session or connection, or Django's connection"
)


def refused(what: str) -> InvalidRequest:
    """Make the refusal of a connection."""
    return InvalidRequest(f"`connection` {what}", argument="connection")


def unusable(connection: object, wanted: str) -> InvalidRequest:
    """Make the refusal of a connection of the wrong kind."""
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return refused(f"is {kind}, and the store needs {wanted}")


def unwrap(connection: Any) -> Any:
    """Give the DB-API connection beneath a session, a connection or a wrapper, in its transaction.

    Raises:
        InvalidRequest: it is none of these, or has no transaction open that could be joined.
    """
    if isinstance(connection, str | bytes | int) or connection is True:
        raise unusable(connection, _WANTED)
    if _is_of(connection, "sqlalchemy.ext.asyncio", "AsyncSession", "AsyncConnection"):
        raise refused("is asynchronous: call within its `run_sync`, with what that gives you")
    if _is_of(connection, "sqlalchemy.orm", "Session", "scoped_session"):
        connection = connection.connection()
    if _is_of(connection, "sqlalchemy.engine", "Connection"):
        return _beneath_sqlalchemy(connection)
    if hasattr(connection, "in_atomic_block") and hasattr(connection, "ensure_connection"):
        return _beneath_django(connection)
    return connection


def _beneath_sqlalchemy(connection: Any) -> Any:
    if connection.closed:
        raise refused("is closed")
    if not connection.in_transaction():
        connection.begin()  # or its `commit` would do nothing
    return connection.connection.dbapi_connection


def _beneath_django(connection: Any) -> Any:
    if connection.get_autocommit() and not connection.in_atomic_block:
        raise refused("is in autocommit mode; call within `transaction.atomic()`")
    if connection.needs_rollback:
        raise refused("is in a transaction that can only be rolled back")
    connection.ensure_connection()
    return connection.connection


def _is_of(value: object, module: str, *names: str) -> bool:
    found = sys.modules.get(module)
    kinds = tuple(kind for name in names if isinstance(kind := getattr(found, name, None), type))
    return isinstance(value, kinds)
