"""Which store a command opens, and that reading never makes one."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from tests.support.postgres import database, with_settings
from tests.unit.cli.line import MACHINE, CommandLine, on_sqlite

READING = [
    ("current", "ID"),
    ("history", "ID"),
    ("declaration", "ID"),
    ("list",),
    ("replay", "ID"),
    ("verify",),
    ("fire", "ID", "go"),
]


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_commands_that_need_a_store_never_make_one(
    run: CommandLine, command: tuple[str, ...]
) -> None:
    told = run.refused("storage-failure", *command, code=3)
    assert "(there is no store; `interlock instantiate`" in told
    assert not run.is_made()


@on_sqlite
@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_an_empty_file_is_no_store_and_stays_empty(
    run: CommandLine, command: tuple[str, ...]
) -> None:
    (run.folder / "store.db").touch()
    told = run.refused("storage-failure", *command, code=3)
    assert "there is no store" in told
    assert (run.folder / "store.db").read_bytes() == b""


def test_who_makes_a_store_is_said_where_a_server_has_none_and_only_there(run: CommandLine) -> None:
    with database() as url:
        told = run.refused("storage-failure", "list", "--store", url, code=3)
        assert "holds no store" in told
        assert "`interlock instantiate`" in told
        with psycopg.connect(url) as connection:
            connection.execute("CREATE SCHEMA interlock")
            connection.execute("CREATE TABLE interlock.history (mine int)")
        told = run.refused("storage-failure", "list", "--store", url, code=3)
        assert "`interlock instantiate`" not in told
    told = run.refused("storage-failure", "list", "--store", url, code=3)  # without the database
    assert "does not exist" in told
    assert "`interlock instantiate`" not in told


def test_instantiate_makes_one(run: CommandLine) -> None:
    run.ok("instantiate", MACHINE)
    assert run.is_made()


def test_the_mode_of_the_url_is_the_users(run: CommandLine, batch: str) -> None:
    reading = with_settings(run.url, mode="ro")
    assert run.ok("current", batch, "--store", reading) == "sampled\n"
    told = run.refused(
        "storage-failure", "fire", batch, "begin-testing", "--store", reading, code=3
    )
    assert "read-only" in told
    made = with_settings(run.url_of("made"), mode="rwc")
    assert run.json("list", "--store", made)["instances"] == []


@on_sqlite
def test_other_settings_are_kept(run: CommandLine, batch: str) -> None:
    for query in ("?busy_ms=5", "?busy_ms=5&synchronous=normal", "?"):
        assert run.ok("current", batch, "--store", run.url + query) == "sampled\n"


@on_sqlite
def test_no_store_named(run: CommandLine) -> None:
    for env in ({"INTERLOCK_STORE": None}, {"INTERLOCK_STORE": ""}):
        told = run.misused("current", "ID", env=env)
        assert "no store is named: give --store URL or set INTERLOCK_STORE" in told


@on_sqlite
def test_a_bare_path_is_explained(run: CommandLine) -> None:
    told = run.refused("invalid-request", "list", "--store", "batches.db", code=2)
    assert "did you mean `sqlite:///batches.db`?" in told


@on_sqlite
def test_an_unknown_setting_is_wrong_usage(run: CommandLine) -> None:
    told = run.refused("invalid-request", "list", "--store", "sqlite:///x.db?mod=rw", code=2)
    assert "did you mean `mode`?" in told


@on_sqlite
def test_a_store_in_memory_is_gone_with_the_command(run: CommandLine) -> None:
    for command in (("list",), ("instantiate", MACHINE), ("fire", "ID", "go")):
        assert "gone when the command ends" in run.misused(*command, "--store", "sqlite://")


@on_sqlite
def test_files_that_are_no_store(run: CommandLine) -> None:
    (run.folder / "text.db").write_text("no database, but long enough to be asked " * 20)
    (run.folder / "folder.db").mkdir()
    with closing(sqlite3.connect(run.folder / "other.db")) as database:
        database.execute("CREATE TABLE mine (x)")
    for name, fault in (
        ("text.db", "not an SQLite database"),
        ("folder.db", "is a directory"),
        ("other.db", "holds no interlock store"),
        ("no/such/folder.db", "there is no directory `no/such`"),
    ):
        told = run.refused("storage-failure", "list", "--store", f"sqlite:///{name}", code=3)
        assert fault in told
        assert "interlock instantiate" not in told


def test_a_store_that_is_newer(run: CommandLine, batch: str) -> None:
    run.forge("INSERT INTO interlock_migrations VALUES (99, 'later', 'now')")
    assert "is newer than this program" in run.refused("storage-failure", "list", code=3)
