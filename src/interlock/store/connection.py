"""The caller's connection: what `connection=` may be, and the driver's connection beneath it.

SQLAlchemy and Django are recognised when the caller has imported them, and never imported here.
What has no transaction open yet is begun, as its own first statement would begin it; if the call is
then refused, that is ended again, so that a refusal leaves the connection as it was.

    with beneath(session) as driver:
        driver.execute(…)
"""

import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from interlock.core.rejection import InvalidRequest, StorageFailure, VersionConflict

_WANTED = (
    "a connection of sqlite3 or psycopg, a SQLAlchemy session or connection, or Django's connection"
)

_in_use: dict[int, object] = {}  # the drivers' connections that calls are using, by identity


# By thread: the databases whose plans wait for a hook, and the connections that it was given.
_calling = threading.local()


@contextmanager
def calling(database: object, driver: object) -> Iterator[None]:
    """Let calls that a hook makes join the transaction that it is called in, and no other."""
    waiting: list[tuple[object, object]] = _calling.__dict__.setdefault("waiting", [])
    waiting.append((database, driver))
    own = _in_use.pop(id(driver), None)
    try:
        yield
    finally:
        waiting.pop()
        if own is not None:
            _in_use[id(driver)] = own


def is_in_hand(database: object, driver: object) -> bool:
    """Whether a hook of this thread was given a connection by the database."""
    waiting: list[tuple[object, object]] = _calling.__dict__.get("waiting", [])
    return any(one is database and other is driver for one, other in waiting)


def check_not_calling(database: object, where: str) -> None:
    """Refuse a transaction of its own to a hook: it would wait for the one that waits for it.

    Raises:
        StorageFailure: a hook of this thread makes it.
    """
    waiting = _calling.__dict__.get("waiting")
    if waiting and any(one is database for one, _ in waiting):
        what = "a hook or guard is being called in a transaction; use `tx.fire`, or `connection=`"
        raise StorageFailure(f"{where}: {what}", kind="busy")


def ended(where: str) -> StorageFailure:
    """Make the refusal for a hook that would not leave the transaction to whom it belongs."""
    what = "a hook or guard ended the transaction that it was called in, or tried to"
    return StorageFailure(f"{where}: {what}; it must not commit or roll back", kind="failed")


class _Beneath(NamedTuple):
    """What was found beneath a caller's connection.

    Attributes:
        leave: ends what was begun to get there.
    """

    driver: Any
    leave: Callable[[], object]


def refused(what: str) -> InvalidRequest:
    """Make the refusal of a connection."""
    return InvalidRequest(f"`connection` {what}", argument="connection")


def unusable(connection: object, wanted: str) -> InvalidRequest:
    """Make the refusal of a connection of the wrong kind."""
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return refused(f"is {kind.removeprefix('builtins.')}, and the store needs {wanted}")


def conflicting(failure: StorageFailure) -> VersionConflict:
    """Make the refusal for a transaction whose isolation keeps it from seeing what others did."""
    return VersionConflict(
        f"another transaction was faster; roll this one back and begin anew: {failure}",
        action=None,
        expected_version=None,
        version=None,
    )


@contextmanager
def beneath(connection: Any) -> Iterator[Any]:
    """Give the driver's connection beneath a connection of the caller's, for one call.

    Raises:
        InvalidRequest: there is none that could be used, or another call is using it.
    """
    if _is_of(connection, "sqlalchemy.ext.asyncio", *_ASYNCHRONOUS):
        raise refused("is asynchronous, and the store is not; open it with `open_async`")
    found = _find(connection)
    try:
        with _alone(found.driver):
            yield found.driver
    except BaseException:
        found.leave()
        raise


@asynccontextmanager
async def beneath_async(connection: Any) -> AsyncIterator[Any]:
    """Do the same, for a connection that may be asynchronous."""
    if not _is_of(connection, "sqlalchemy.ext.asyncio", *_ASYNCHRONOUS):
        with beneath(connection) as driver:
            yield driver
        return
    if _is_of(connection, "sqlalchemy.ext.asyncio", "async_scoped_session"):
        connection = connection()  # the session of this scope
    with _translated("sqlalchemy.exc", "SQLAlchemyError"):
        found = await connection.run_sync(_find)
    try:
        with _alone(found.driver):
            yield found.driver
    except BaseException:
        await connection.run_sync(lambda _: found.leave())
        raise


_ASYNCHRONOUS = ("AsyncSession", "async_scoped_session", "AsyncConnection")


def _find(connection: Any) -> _Beneath:
    if _is_of(connection, "sqlalchemy.orm", "scoped_session"):
        connection = connection()  # the session of this scope
    if _is_of(connection, "sqlalchemy.orm", "Session"):
        return _beneath_session(connection)
    if _is_of(connection, "sqlalchemy.engine", "Connection"):
        return _beneath_sqlalchemy(connection)
    if _is_of(connection, "django.db.backends.base.base", "BaseDatabaseWrapper") or _is_of(
        connection, "django.utils.connection", "ConnectionProxy"
    ):
        return _beneath_django(connection)
    if isinstance(connection, str | bytes | int):
        raise unusable(connection, _WANTED)
    return _Beneath(_driver(connection), _nothing)


def _beneath_session(session: Any) -> _Beneath:
    open_before = session.in_transaction()

    def leave() -> None:
        begun = session.get_transaction()
        if begun is not None and not open_before:
            begun.close()  # which, unlike `rollback`, expires no objects

    with _translated("sqlalchemy.exc", "SQLAlchemyError"):
        try:
            return _Beneath(_driver(session.connection().connection), leave)
        except BaseException:
            leave()
            raise


def _beneath_sqlalchemy(connection: Any) -> _Beneath:
    if connection.closed:
        raise refused("is closed")
    leave: Callable[[], object] = _nothing
    with _translated("sqlalchemy.exc", "SQLAlchemyError"):
        if not connection.in_transaction():
            leave = connection.begin().close  # begun, or its `commit` would do nothing
        try:
            return _Beneath(_driver(connection.connection), leave)
        except BaseException:
            leave()
            raise


def _beneath_django(connection: Any) -> _Beneath:
    with _translated("django.db.utils", "Error"):
        connection.validate_thread_sharing()
        if connection.needs_rollback:
            raise refused("is in a transaction that can only be rolled back")
        if connection.get_autocommit() and not connection.in_atomic_block:
            raise refused("is in autocommit mode; call within `transaction.atomic()`")
        return _Beneath(connection.connection, _nothing)


def _driver(connection: Any) -> Any:
    """Look behind the wrappers of SQLAlchemy's pool."""
    return getattr(connection, "driver_connection", connection)


@contextmanager
def _alone(driver: object) -> Iterator[None]:
    """Refuse a second call meanwhile: the savepoints of two would not be undone one by one."""
    own = object()
    if _in_use.setdefault(id(driver), own) is not own:
        raise refused("is being used by another call")
    try:
        yield
    finally:
        del _in_use[id(driver)]


@contextmanager
def _translated(module: str, name: str) -> Iterator[None]:
    try:
        yield
    except getattr(sys.modules[module], name) as error:
        raise refused(
            f"cannot be used: {str(error).partition('(Background')[0].strip()}"
        ) from error


def _nothing() -> None:
    """There is nothing to end."""


def _is_of(value: object, module: str, *names: str) -> bool:
    found = sys.modules.get(module)
    kinds = tuple(kind for name in names if isinstance(kind := getattr(found, name, None), type))
    return isinstance(value, kinds)
