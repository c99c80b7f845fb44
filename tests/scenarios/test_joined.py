"""A caller's own transaction on an SQLite file, through `sqlite3` alone."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.store.sqlite.joined import _is_autocommit
from tests.support.joining import (
    MAKE_NOTES,
    Caller,
    Joint,
    Rules,
    open_blocking,
    refusal_of,
)
from tests.support.joining_engines import EngineRules, joint_engine  # noqa: F401 - a fixture
from tests.support.machines import BATCH, TOGGLE
from tests.support.together import all_at_once


class Plain(Caller):
    """A connection of sqlite3, which begins before the first write."""

    def __init__(self, path: Path, **how: Any) -> None:
        self.connection = sqlite3.connect(path, check_same_thread=False, timeout=0.2, **how)

    def execute(self, sql: str) -> list[Any]:
        return self.connection.execute(sql).fetchall()

    def is_open(self) -> bool:
        return self.connection.in_transaction

    def close(self) -> None:
        self.connection.close()


class Manual(Plain):
    """One that begins nothing by itself."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, isolation_level=None)

    def begin(self) -> None:
        self.execute("BEGIN")


class Odd(Plain):
    """One whose rows, texts and cursors are its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, factory=OddConnection)
        self.connection.row_factory = lambda _, row: dict(enumerate(row))
        self.connection.text_factory = bytes
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA recursive_triggers = ON")


class OddConnection(sqlite3.Connection):
    def cursor(self) -> sqlite3.Cursor:  # type: ignore[override]
        return super().cursor(OddCursor)


class OddCursor(sqlite3.Cursor):
    def fetchone(self) -> Any:
        raise AssertionError("the caller's cursors are the caller's")


KINDS: dict[str, Any] = {
    "legacy": Plain,
    "immediate": lambda path: Plain(path, isolation_level="IMMEDIATE"),
    "manual": Manual,
    "odd": Odd,
}
if sys.version_info >= (3, 12):
    KINDS["autocommit off"] = lambda path: Plain(path, autocommit=False)


@pytest.fixture(params=[*KINDS, "asynchronous"])
def joint(request: pytest.FixtureRequest, path: Path) -> Iterator[Joint]:
    url = f"sqlite:///{path}?synchronous=normal"
    asynchronous = request.param == "asynchronous"

    def open_store(**how: Any) -> Any:
        return open_blocking(url, **how) if asynchronous else interlock.open(url, **how)

    with open_store() as store, closing(sqlite3.connect(path)) as connection:
        connection.execute(MAKE_NOTES)
        caller = KINDS.get(request.param, Plain)(path)
        watcher = Plain(path)
        yield Joint(store, open_store, caller, watcher)
        caller.close()
        watcher.close()


class TestEveryKind(Rules):
    """Each rule, with each kind of connection."""


class TestEngines(EngineRules):
    """Each rule of engines, with each kind of connection."""


@pytest.fixture
def shop(path: Path) -> Iterator[interlock.Store]:
    with interlock.open(f"sqlite:///{path}?synchronous=normal&busy_ms=200") as store:
        yield store


@pytest.fixture
def own(path: Path, shop: interlock.Store) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=0.2)) as connection:
        connection.execute(MAKE_NOTES)
        yield connection


# What is the caller's stays the caller's


def test_rows_texts_and_open_cursors_of_the_caller_are_undisturbed(
    shop: interlock.Store, own: sqlite3.Connection
) -> None:
    id = shop.instantiate(BATCH)
    own.executemany("INSERT INTO notes VALUES (?)", [(f"n{number}",) for number in range(9)])
    rows, texts = sqlite3.Row, bytes
    own.row_factory, own.text_factory = rows, texts
    reading = own.execute("SELECT text FROM notes ORDER BY text")
    seen = [reading.fetchone()["text"] for _ in range(3)]
    shop.fire(id, "begin-testing", connection=own)
    with pytest.raises(interlock.InvalidTransition):
        shop.fire(id, "begin-testing", connection=own)
    assert (own.row_factory, own.text_factory) == (rows, texts)
    seen += [row["text"] for row in reading]
    assert seen == [f"n{number}".encode() for number in range(9)]
    own.commit()
    assert shop.current(id) == "testing"


def test_a_read_leaves_no_transaction_open_that_would_keep_the_caller_behind(
    shop: interlock.Store, own: sqlite3.Connection
) -> None:
    id = shop.instantiate(TOGGLE)
    assert shop.current(id, connection=own) == "off"
    assert shop.history(id, connection=own) == []
    assert not own.in_transaction
    shop.fire(id, "go")
    assert shop.current(id, connection=own) == "on"


def test_a_fire_that_was_refused_keeps_no_lock(
    shop: interlock.Store, own: sqlite3.Connection
) -> None:
    id = shop.instantiate(TOGGLE)
    with pytest.raises(interlock.InvalidTransition):
        shop.fire(id, "stop", connection=own)
    assert shop.fire(id, "go") == "on"


# Others are faster


def test_what_the_callers_snapshot_cannot_see_is_a_version_conflict(
    shop: interlock.Store, own: sqlite3.Connection
) -> None:
    id = shop.instantiate(TOGGLE)
    own.execute("BEGIN")
    own.execute("SELECT * FROM notes").fetchall()
    shop.fire(id, "go")
    assert shop.current(id, connection=own) == "off"  # as the caller sees everything else
    for call in (
        lambda: shop.fire(id, "go", connection=own),
        lambda: shop.fire(id, "stop", connection=own),  # nor a refusal that is out of date
        lambda: shop.fire("unborn", "go", connection=own),
    ):
        with pytest.raises(interlock.VersionConflict) as caught:
            call()
        assert caught.value.version is None
        assert caught.value.action in ("go", "stop")
    assert own.in_transaction
    own.rollback()
    assert shop.fire(id, "go", connection=own) == "off"
    own.commit()
    assert shop.fire(id, "go") == "on"


def test_a_lock_that_another_keeps_is_a_failure_that_may_pass(
    shop: interlock.Store, own: sqlite3.Connection, path: Path
) -> None:
    id = shop.instantiate(TOGGLE)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(interlock.StorageFailure) as caught:
            shop.fire(id, "go", connection=own)
        assert (caught.value.kind, caught.value.retryable) == ("busy", True)
        assert not own.in_transaction
        own.execute("BEGIN")
        with pytest.raises(interlock.StorageFailure):
            shop.fire(id, "go", connection=own)
        assert own.in_transaction
        other.execute("ROLLBACK")
    assert shop.fire(id, "go", connection=own) == "on"


def test_two_calls_at_once_on_one_connection_do_not_mix_their_savepoints(
    shop: interlock.Store, path: Path
) -> None:
    ids = [shop.instantiate(TOGGLE) for _ in range(16)]
    with closing(sqlite3.connect(path, check_same_thread=False)) as own:
        own.execute("BEGIN IMMEDIATE")
        calls = [
            lambda id=id, act=act: shop.fire(id, act, connection=own)
            for id in ids
            for act in ("stop", "go")
        ]
        outcomes = all_at_once(calls)
        own.commit()
    for id, (_, gone) in zip(ids, zip(outcomes[::2], outcomes[1::2], strict=True), strict=True):
        assert gone == "on" or "being used by another call" in str(gone)
        assert shop.current(id) == ("on" if gone == "on" else "off")


def test_a_transaction_that_sqlite_rolled_back_whole_is_told_of(
    shop: interlock.Store, own: sqlite3.Connection
) -> None:
    id = shop.instantiate(TOGGLE)
    own.execute("PRAGMA max_page_count = 1")  # as full as a disk can be
    own.execute("INSERT INTO notes VALUES ('mine')")

    def fill() -> None:
        for _ in range(9999):
            shop.fire(id, "go", reason="x" * 2000, connection=own)

    with pytest.raises(interlock.StorageFailure) as caught:
        fill()
    assert caught.value.kind == "full"
    if not own.in_transaction:
        assert "rolled the caller's whole transaction back" in str(caught.value)
    own.rollback()
    assert shop.history(id) == []


# What is refused


def other_files(path: Path, kind: str) -> Path | str:
    if kind == "memory":
        return ":memory:"
    other = path.with_name("other.db")
    if kind == "hard link":
        os.link(path, other)
    if kind == "another store":
        interlock.open(f"sqlite:///{other}").close()
    return other


@pytest.mark.parametrize("kind", ["another file", "another store", "memory", "hard link"])
def test_a_connection_to_another_database_is_refused(
    shop: interlock.Store, path: Path, kind: str
) -> None:
    id = shop.instantiate(TOGGLE)
    with closing(sqlite3.connect(other_files(path, kind))) as own:
        for call in (
            lambda: shop.fire(id, "go", connection=own),
            lambda: shop.instantiate(TOGGLE, connection=own),
            lambda: shop.current(id, connection=own),
        ):
            refusal = refusal_of(call)
            assert str(path) in str(refusal)
            assert ("memory" if kind == "memory" else "other.db") in str(refusal)
            assert not own.in_transaction
    assert shop.current(id) == "off"


def test_the_file_by_a_symbolic_link_or_an_odd_name_is_the_same(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd \xff ?#%.db")
    odd.touch()
    store = interlock.Store(_database_of(odd))
    id = store.instantiate(TOGGLE)
    link = tmp_path / "link.db"
    link.symlink_to(odd)
    with store, closing(sqlite3.connect(link)) as own:
        store.fire(id, "go", connection=own)
        own.commit()
        assert store.current(id) == "on"


def _database_of(path: Path) -> Any:
    from interlock.store.sqlite.database import Database, Settings

    return Database(Settings(path))


def test_a_store_that_is_only_attached_is_another_database(
    shop: interlock.Store, path: Path
) -> None:
    id = shop.instantiate(TOGGLE)
    with closing(sqlite3.connect(":memory:")) as own:
        own.execute("ATTACH ? AS shop", (str(path),))
        refusal_of(lambda: shop.fire(id, "go", connection=own))


def test_a_store_in_memory_is_joined_by_nobody() -> None:
    with interlock.open("sqlite://") as store, closing(sqlite3.connect(":memory:")) as own:
        id = store.instantiate(TOGGLE)
        refusal = refusal_of(lambda: store.fire(id, "go", connection=own))
        assert str(refusal).endswith("to a database in memory, and not to the store in memory")


def test_a_file_that_was_replaced_is_written_by_nobody(
    shop: interlock.Store, path: Path, tmp_path: Path
) -> None:
    id = shop.instantiate(TOGGLE)
    path.rename(tmp_path / "away.db")
    with interlock.open(f"sqlite:///{tmp_path}/new.db") as other:
        other.instantiate(TOGGLE)
    (tmp_path / "new.db").rename(path)
    with closing(sqlite3.connect(path)) as own:
        with pytest.raises(interlock.StorageFailure) as caught:
            shop.fire(id, "go", connection=own)
        assert caught.value.kind == "missing"
        assert not own.in_transaction


@pytest.mark.parametrize(
    "hides",
    [
        "CREATE TEMP TABLE History (id)",
        "CREATE TEMP VIEW instances AS SELECT 1 AS id",
        "CREATE TEMP TRIGGER spy AFTER INSERT ON main.history BEGIN SELECT 1; END",
    ],
)
def test_a_temporary_object_in_the_way_is_refused(
    shop: interlock.Store, own: sqlite3.Connection, hides: str
) -> None:
    id = shop.instantiate(TOGGLE)
    own.execute("CREATE TEMP TABLE notes (text TEXT)")  # of no concern
    assert shop.current(id, connection=own) == "off"
    own.execute(hides)
    assert "temporary" in str(refusal_of(lambda: shop.fire(id, "go", connection=own)))
    assert not own.in_transaction


def test_a_connection_in_autocommit_mode_is_refused_unless_it_has_begun(
    shop: interlock.Store, path: Path
) -> None:
    id = shop.instantiate(TOGGLE)
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        for call in (
            lambda: shop.fire(id, "go", connection=own),
            lambda: shop.current(id, connection=own),
        ):
            assert "autocommit" in str(refusal_of(call))
            assert (own.in_transaction, own.isolation_level) == (False, None)
        own.execute("BEGIN")
        assert shop.fire(id, "go", connection=own) == "on"
        own.execute("ROLLBACK")
    assert shop.current(id) == "off"


class OfPython312(sqlite3.Connection):
    """A connection with the attribute that Python 3.12 gave it."""

    autocommit: int = -1


@pytest.mark.parametrize(
    ("autocommit", "isolation_level", "expected"),
    [(True, "", True), (True, None, True), (False, None, False), (-1, "", False), (-1, None, True)],
)
def test_autocommit_is_told_by_either_attribute(
    autocommit: int, isolation_level: Any, expected: bool
) -> None:
    how: Any = {"isolation_level": isolation_level, "factory": OfPython312}
    with closing(sqlite3.connect(":memory:", **how)) as own:
        if sys.version_info < (3, 12):
            own.autocommit = autocommit
            assert _is_autocommit(own) is expected
    if sys.version_info >= (3, 12):
        with closing(
            sqlite3.connect(":memory:", isolation_level=isolation_level, autocommit=autocommit)
        ) as own:
            assert _is_autocommit(own) is expected


def test_a_connection_of_another_thread_is_refused(shop: interlock.Store, path: Path) -> None:
    id = shop.instantiate(TOGGLE)
    made: list[sqlite3.Connection] = []
    done = threading.Event()

    def work() -> None:
        with closing(sqlite3.connect(path)) as own:
            made.append(own)
            done.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    while not made:
        pass
    assert "thread" in str(refusal_of(lambda: shop.fire(id, "go", connection=made[0])))
    done.set()
    thread.join()


@pytest.mark.parametrize("kind", ["cursor", "class"])
def test_what_is_near_a_connection_is_refused(
    shop: interlock.Store, own: sqlite3.Connection, kind: str
) -> None:
    id = shop.instantiate(TOGGLE)
    odd = own.cursor() if kind == "cursor" else sqlite3.Connection
    refusal = refusal_of(lambda: shop.fire(id, "go", connection=odd))
    assert str(refusal).endswith("and the store needs one of sqlite3")


def test_none_is_no_connection(shop: interlock.Store) -> None:
    id = shop.instantiate(TOGGLE, connection=None)
    assert shop.fire(id, "go", connection=None) == "on"
    assert shop.current(id, connection=None) == "on"


def test_a_store_opened_to_read_reads_in_the_callers_transaction_and_writes_nothing(
    shop: interlock.Store, own: sqlite3.Connection, path: Path
) -> None:
    id = shop.instantiate(TOGGLE)
    with interlock.open(f"sqlite:///{path}?mode=ro") as reader:
        shop.fire(id, "go", connection=own)
        assert reader.current(id, connection=own) == "on"
        assert reader.current(id) == "off"
        with pytest.raises(interlock.StorageFailure) as caught:
            reader.fire(id, "go", connection=own)
        assert caught.value.kind == "read-only"
        own.commit()
    assert shop.current(id) == "on"


# The base install


def test_a_joined_fire_imports_no_framework_and_no_other_driver(path: Path) -> None:
    program = f"""
import sqlite3, sys
import interlock
with interlock.open("sqlite:///{path}") as store:
    id = store.instantiate({TOGGLE!r})
    own = sqlite3.connect("{path}")
    store.fire(id, "go", connection=own)
    own.commit()
    assert store.current(id) == "on"
    try:
        store.fire(id, "go", connection="no connection")
    except interlock.InvalidRequest:
        pass
print(sorted({{"sqlalchemy", "django", "psycopg", "psycopg_pool"}} & sys.modules.keys()))
"""
    command = [sys.executable, "-W", "ignore::ResourceWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
