"""Where a store is: names that lead elsewhere, folders that cannot be written, logs that grow."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import interlock
from interlock import Fire, InvalidRequest, StorageFailure
from interlock.store.sqlite.database import LOG_PAGES, PAGE_BYTES
from tests.support import processes
from tests.support.machines import TOGGLE

# Names


def test_a_program_may_change_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative name is that of the directory in which the store was opened."""
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    with interlock.open("sqlite:///store.db") as store:
        id = store.instantiate(TOGGLE)
        monkeypatch.chdir(other)
        with interlock.open("sqlite:///store.db") as another:
            assert another.instances() == []
        assert store.fire(id, "go") == "on"
        assert store.current(id) == "on"
        assert store.verify().entries == 1
        for _ in range(LOG_PAGES):
            store.fire_many([Fire(id, "go")] * 2)
        assert store.verify().ok
    assert sorted(path.name for path in other.iterdir()) == ["store.db"]
    with interlock.open(f"sqlite:///{tmp_path}/store.db") as store:
        assert store.verify().entries == 1 + 2 * LOG_PAGES


def test_a_link_that_is_turned_to_another_file_is_noticed(tmp_path: Path) -> None:
    one, two, link = tmp_path / "one.db", tmp_path / "two.db", tmp_path / "link.db"
    for path in (one, two):
        interlock.open(f"sqlite:///{path}").close()
    link.symlink_to(one)
    with interlock.open(f"sqlite:///{link}") as store:
        id = store.instantiate(TOGGLE)
        link.unlink()
        link.symlink_to(two)
        with pytest.raises(StorageFailure, match="removed or replaced"):
            store.fire(id, "go")


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_nothing_is_acknowledged_into_a_file_that_lost_its_name(
    how: str, path: Path, tmp_path: Path
) -> None:
    """Whoever opens the name next would never see it."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        shutil.copy(path, tmp_path / "copy.db")
        if how == "removed":
            path.unlink()
        elif how == "moved":
            path.rename(tmp_path / "moved.db")
        else:
            (tmp_path / "copy.db").replace(path)
        calls = (
            lambda: store.fire(id, "go"),
            lambda: store.fire_many([Fire(id, "go")]),
            lambda: store.instantiate(TOGGLE),
            lambda: store.current(id),
            lambda: store.verify(),
        )
        for call in calls:
            with pytest.raises(StorageFailure, match="removed or replaced") as refusal:
                call()
            assert refusal.value.kind == "missing"


@pytest.mark.parametrize("name", ["x" * 300, "a/" + "y" * 300])
def test_a_name_that_is_too_long(name: str, tmp_path: Path) -> None:
    with pytest.raises(StorageFailure) as refusal:
        interlock.open(f"sqlite:///{tmp_path}/{name}")
    assert refusal.value.kind == "missing"


def test_links_that_go_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(StorageFailure) as refusal:
        interlock.open(f"sqlite:///{tmp_path}/a.db")
    assert refusal.value.kind == "missing"


def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageFailure, match="device or a pipe"):
        interlock.open(f"sqlite:///{tmp_path}/pipe")


@pytest.mark.parametrize("name", ["x%ff.db", "x%fe.db", "x\udcff.db"])
def test_names_that_are_not_utf8_are_refused_and_never_taken_for_one(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        interlock.open(f"sqlite:///{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


# Reading only


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Path]:
    """A store in a folder that nobody may write; root may, and so reads through a mount or not."""
    folder = tmp_path / "frozen"
    folder.mkdir()
    path = folder / "store.db"
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
    path.chmod(0o444)
    folder.chmod(0o555)
    yield path
    folder.chmod(0o755)


def test_a_store_in_a_folder_that_cannot_be_written_is_read(
    frozen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.access(frozen.parent, os.W_OK):  # root: only the answer can be withheld
        access = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with interlock.open(f"sqlite:///{frozen}?mode=ro") as store:
        assert store.verify().entries == 1
        (instance,) = store.instances()
        with pytest.raises(StorageFailure) as refusal:
            store.fire(instance.id, "go")
        assert refusal.value.kind == "read-only"
    assert [path.name for path in frozen.parent.iterdir()] == ["store.db"]


@pytest.mark.parametrize("mode", ["ro", "RO", "Ro"])
def test_a_mode_is_read_whatever_its_case(mode: str, path: Path) -> None:
    interlock.open(f"sqlite:///{path}?mode={mode.lower().replace('ro', 'RWC')}").close()
    with interlock.open(f"sqlite:///{path}?mode={mode}") as store:
        with pytest.raises(StorageFailure) as refusal:
            store.instantiate(TOGGLE)
        assert refusal.value.kind == "read-only"


# The log


def test_the_log_stays_short_beside_processes_that_write_a_little(path: Path) -> None:
    """Each alone writes too little to fold it; together they would let it grow for ever."""
    code = """
import sys, interlock
for _ in range(40):
    with interlock.open("sqlite:///" + sys.argv[1]) as store:
        store.fire_each([interlock.Fire(sys.argv[2], "go", reason="x" * 4000)] * 40)
"""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        processes.run(code, path, id)
        assert store.verify().entries == 1600
        log = Path(f"{path}-wal").stat().st_size
    assert log < 2 * LOG_PAGES * PAGE_BYTES, log


# The schema


ALTERED = {
    "a trigger dropped": "DROP TRIGGER history_insert",
    "a trigger redefined": """
        DROP TRIGGER history_delete;
        CREATE TRIGGER history_delete BEFORE DELETE ON history WHEN FALSE
        BEGIN SELECT RAISE(ABORT, 'no'); END""",
    "a trigger added": """
        CREATE TRIGGER mine BEFORE INSERT ON history
        BEGIN SELECT RAISE(IGNORE); END""",
    "a unique index added": "CREATE UNIQUE INDEX mine ON instances (subject_ref)",
    "a view redefined": """
        DROP VIEW instance_records;
        CREATE VIEW instance_records AS SELECT *, NULL AS metadata FROM instances""",
    "an index dropped": "DROP INDEX history_by_key",
    "a column added": "ALTER TABLE instances ADD COLUMN mine TEXT",
    "a table dropped": "DROP TABLE payloads",
    "the table of the history dropped": "DROP TABLE history",
    "the declarations dropped": "DROP TABLE declarations",
}


def alter(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_schema_is_found_and_not_written_to(name: str, path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE, idempotency_key="k")
        store.fire(id, "go", reason="x")
    alter(path, ALTERED[name])
    with interlock.open(f"sqlite:///{path}") as store:
        report = store.verify()
        assert any("the schema was altered" in one.what for one in report.findings), report
        for call in (
            lambda: store.fire(id, "go"),
            lambda: store.fire_many([Fire(id, "go")]),
            lambda: store.instantiate(TOGGLE),
        ):
            with pytest.raises(StorageFailure, match="schema was altered") as refusal:
                call()
            assert refusal.value.kind == "damaged"


@pytest.mark.parametrize(
    "script", ["DROP TRIGGER history_inserted", ALTERED["a trigger added"]], ids=["move", "ignore"]
)
def test_a_fire_that_moves_nothing_is_not_acknowledged(script: str, path: Path) -> None:
    """The schema is altered under a store that is open."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        alter(path, script)
        with pytest.raises(StorageFailure) as refusal:
            store.fire(id, "go")
        assert refusal.value.kind == "damaged"
        assert store.current(id) == "on"
        assert len(store.history(id)) == 1


def test_what_a_caller_keeps_beside_the_store_is_no_finding(path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
    alter(
        path,
        """
        CREATE TABLE orders (id TEXT PRIMARY KEY, batch TEXT);
        CREATE TRIGGER orders_insert AFTER INSERT ON orders BEGIN SELECT 1; END;
        CREATE INDEX history_by_time ON history (fired_at);
        """,
    )
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.fire(id, "go") == "on"
        assert store.verify().ok


def test_the_ledger_of_migrations_is_kept(path: Path) -> None:
    interlock.open(f"sqlite:///{path}").close()
    for statement in (
        "DELETE FROM interlock_migrations",
        "UPDATE interlock_migrations SET number = 2",
        "UPDATE interlock_migrations SET name = 'mine'",
        "INSERT INTO interlock_migrations VALUES (7, 'mine', 'now')",
        "INSERT INTO interlock_migrations VALUES (2, 'mine', 'now')",
        "INSERT OR REPLACE INTO interlock_migrations VALUES (1, 'mine', 'now')",
    ):
        with (
            closing(sqlite3.connect(path)) as connection,
            pytest.raises(sqlite3.IntegrityError, match="interlock: "),
        ):
            connection.execute(statement)


def test_a_ledger_of_another_shape_is_another_programs(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE interlock_migrations (number INTEGER PRIMARY KEY, title TEXT)"
        )
    before = path.read_bytes()
    with pytest.raises(StorageFailure, match="another program keeps interlock_migrations"):
        interlock.open(f"sqlite:///{path}")
    assert path.read_bytes() == before
