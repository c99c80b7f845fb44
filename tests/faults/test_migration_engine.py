"""A store that was made before there were engines, and has records, becomes one that knows them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import interlock
from interlock.store.postgres import migrate as postgres_migrate
from interlock.store.sqlite import migrate as sqlite_migrate
from interlock.store.store import Store
from tests.support import orders, processes
from tests.support.copies import populate, report, told
from tests.support.machines import TOGGLE
from tests.support.postgres import database, follow, with_settings
from tests.support.records import Content, content_of


class Before(NamedTuple):
    """Records as a program wrote them that knew no engines."""

    rows: Content
    told: list[Any]
    report: bytes


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    folder = tmp_path_factory.mktemp("before")
    with interlock.open(f"sqlite:///{folder}/store.db") as store:
        populate(store)
        return Before(content_of(folder / "store.db"), told(store), report(store, folder))


@contextmanager
def migrations(module: Any, paths: list[Path]) -> Iterator[None]:
    """Be a program that knows these migrations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", paths)
        module._own_schema.cache_clear()
        yield
    module._own_schema.cache_clear()


def write(rows: Content, execute: Callable[[str, tuple[Any, ...]], object]) -> None:
    """Write records one by one, as they came."""
    initial = {row[1]: row[2] for row in rows["declarations"]}
    for row in rows["declarations"]:
        execute("declarations", row)
    for row in rows["payloads"]:  # a destroyed one was there once
        execute("payloads", row if row[3] else (*row[:3], b"\0", b"null"))
    for row in rows["instances"]:
        assert row[15] is None
        execute("instances", (*row[:4], initial[row[3]], 1, row[14], *row[7:15]))
    for row in sorted(rows["history"], key=lambda row: row[3]):
        execute("history", row)


DESTROY = "UPDATE {}payloads SET salt = NULL, content = NULL WHERE content = {}"


class Old(NamedTuple):
    """A store of the old schema.

    Attributes:
        module: which migrates it.
        execute: a statement, by a client of its own.
    """

    url: str
    module: Any
    execute: Callable[[str], list[Any]]

    def applied(self) -> int:
        place = "" if self.url.startswith("sqlite:") else "interlock."
        return int(self.execute(f"SELECT max(number) FROM {place}interlock_migrations")[0][0])


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, before: Before, tmp_path: Path) -> Iterator[Old]:
    if request.param == "sqlite":
        path = tmp_path / "old.db"
        with (
            migrations(sqlite_migrate, sqlite_migrate.MIGRATIONS[:1]),
            closing(sqlite3.connect(path, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN")
            sqlite_migrate.migrate(connection, "here")

            def insert(table: str, row: tuple[Any, ...]) -> None:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

            write(before.rows, insert)
            connection.execute(DESTROY.format("", "x'6e756c6c'"))
            connection.execute("COMMIT")

        def execute(statement: str) -> list[Any]:
            with closing(sqlite3.connect(path, isolation_level=None)) as client:
                return client.execute(statement).fetchall()

        yield Old(f"sqlite:///{path}", sqlite_migrate, execute)
        return
    with database() as url:
        with psycopg.connect(url, autocommit=True) as server:
            with migrations(postgres_migrate, postgres_migrate.MIGRATIONS[:1]):
                follow(server, postgres_migrate.prepare("interlock"))

            def put(table: str, row: tuple[Any, ...]) -> None:
                places = ", ".join(["%s"] * len(row))
                server.execute(f"INSERT INTO interlock.{table} VALUES ({places})", row)

            write(before.rows, put)
            server.execute(DESTROY.format("interlock.", "'null'"))

        def ask(statement: str) -> list[Any]:
            with psycopg.connect(url, autocommit=True) as client:
                cursor = client.execute(statement)
                return cursor.fetchall() if cursor.description else []

        yield Old(url, postgres_migrate, ask)


def check(store: Store, before: Before, folder: Path) -> None:
    """See that nothing was lost, and that an engine can begin."""
    assert told(store) == before.told
    assert report(store, folder) == before.report
    order = orders.begin(orders.engine_of(store))
    assert order.send("submit", {"qty": 3}) == "open"
    assert store.verify().ok


def test_records_are_what_they_were_and_engines_can_begin(
    old: Old, before: Before, tmp_path: Path
) -> None:
    assert old.applied() == 1
    with interlock.open(old.url) as store:
        check(store, before, tmp_path)
    assert old.applied() == len(old.module.MIGRATIONS)


def test_many_processes_open_it_at_once(old: Old, before: Before, tmp_path: Path) -> None:
    code = "import sys, interlock\nwith interlock.open(sys.argv[1]) as s: print(len(s.instances()))"
    running = [processes.start(code, old.url) for _ in range(5)]
    count = len(before.told)
    assert [processes.finish(one).strip() for one in running] == [str(count)] * 5
    with interlock.open(old.url) as store:
        check(store, before, tmp_path)


def test_one_that_was_interrupted_left_nothing(old: Old, before: Before, tmp_path: Path) -> None:
    first, second = old.module.MIGRATIONS[:2]
    broken = tmp_path / second.name
    broken.write_text(second.read_text() + "\nINSERT INTO nowhere_at_all VALUES (1);\n")
    with migrations(old.module, [first, broken]), pytest.raises(interlock.StorageFailure):
        interlock.open(old.url)
    assert old.applied() == 1
    with interlock.open(old.url) as store:
        check(store, before, tmp_path)


def test_who_may_only_read_is_told_that_it_is_old(old: Old, before: Before, tmp_path: Path) -> None:
    with pytest.raises(interlock.StorageFailure, match="no interlock store of this version"):
        interlock.open(with_settings(old.url, mode="ro"))
    assert old.applied() == 1
    interlock.open(old.url).close()
    with interlock.open(with_settings(old.url, mode="ro")) as store:
        assert told(store) == before.told


def test_an_old_program_meets_a_newer_store(old: Old) -> None:
    """It is refused when it opens it; a handle that it has goes on with what it knows of."""
    interlock.open(old.url).close()
    with (
        migrations(old.module, old.module.MIGRATIONS[:1]),
        pytest.raises(interlock.StorageFailure, match="newer than this program") as refusal,
    ):
        interlock.open(old.url)
    assert refusal.value.kind == "newer"
    with interlock.open(old.url) as store:
        id = store.instantiate(TOGGLE)
        place = "" if old.url.startswith("sqlite:") else "interlock."
        digest = "zeroblob(32)" if not place else "decode(repeat('00', 32), 'hex')"
        old.execute(  # as its statement was
            f"INSERT INTO {place}history (tenant, root, instance_id, sequence_number,"
            " transition_id, from_state, action, to_state, fired_at, entry_digest)"
            f" SELECT '', root, id, 1, 't', 'off', 'go', 'on', instantiated_at, {digest}"
            f" FROM {place}instances WHERE id = '{id}'"
        )
        assert store.current(id) == "on"
