"""Cases D02 and O01 to O03 with real processes, on a SQLite file and on PostgreSQL."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import interlock
from interlock.store.postgres import migrate as postgres_migrate
from interlock.store.sqlite import migrate as sqlite_migrate
from interlock.store.store import Store
from tests.support import processes
from tests.support.machines import TOGGLE
from tests.support.postgres import database, with_settings
from tests.support.records import breaches

BEGIN = """
import json, sys
import interlock
from interlock.testing import Blocking

url, *given = sys.argv[1:]

def all_are_ready():
    print("ready", flush=True)
    sys.stdin.readline()

def opened(face):
    if face == "sync":
        return interlock.open(url)
    return Blocking(lambda: interlock.open_async(url))
"""

EXPECTS = (
    BEGIN
    + """
face, name, *ids = given
won, versions = [], set()
with opened(face) as store:
    all_are_ready()
    for id in ids:
        try:
            store.fire(id, "go", name, expected_version=1)
            won.append(id)
        except interlock.VersionConflict as conflict:
            versions.add(conflict.version)
print(json.dumps([won, sorted(versions)]))
"""
)

READS_THEN_WRITES = (
    BEGIN
    + """
rounds, id = int(given[0]), given[1]
done = 0
with interlock.open(url) as store:
    all_are_ready()
    while done < rounds:
        version = store.snapshot(id).version
        try:
            store.fire(id, "go", expected_version=version)
            done += 1
        except interlock.VersionConflict:
            pass
print(done)
"""
)

FIRES = (
    BEGIN
    + """
rounds, ids = int(given[0]), given[1:]
with interlock.open(url) as store:
    all_are_ready()
    for number in range(rounds):
        store.fire(ids[number % len(ids)], "go", reason="r")
print(rounds)
"""
)

OPENS = (
    BEGIN
    + f"""
face, key = given
all_are_ready()
with opened(face) as store:
    id = store.instantiate({TOGGLE!r}, idempotency_key=key)
    shared = store.instantiate({TOGGLE!r}, idempotency_key="shared")
    for number in range(3):
        store.fire(id, "go")
    store.fire(shared, "go")
print(json.dumps([id, shared]))
"""
)

FACES = ["sync", "async"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """The URL of a store that is not there yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{path}"
        return
    with database() as url:
        yield url


def together(code: str, url: str, shares: list[list[str]]) -> list[str]:
    """Start a process for each share, release them at one moment, and give what they printed."""
    started = [processes.start(code, url, *share) for share in shares]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    return [processes.finish(process, seconds=250) for process in started]


def check_sound(url: str, store: Store) -> None:
    assert store.verify().ok
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            assert breaches(connection) == []
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def check_made_once(url: str) -> None:
    """Check that each migration was applied, and once."""
    if url.startswith("sqlite:"):
        wanted = sqlite_migrate.MIGRATIONS
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            found = connection.execute("SELECT number FROM interlock_migrations").fetchall()
    else:
        wanted = postgres_migrate.MIGRATIONS
        with psycopg.connect(url) as server:
            found = server.execute("SELECT number FROM interlock.interlock_migrations").fetchall()
    assert sorted(found) == [(number,) for number, _ in enumerate(wanted, 1)]


def test_D02_check_and_write_are_two_steps(url: str) -> None:
    """Eight processes expect version 1 of the same instances: one of them has it, of each."""
    with interlock.open(url) as store:
        ids = [store.instantiate(TOGGLE) for _ in range(20)]
        names = [f"process {number}" for number in range(8)]
        shares = [[FACES[place % 2], name, *ids] for place, name in enumerate(names)]
        answers = [json.loads(output) for output in together(EXPECTS, url, shares)]
        assert Counter(id for won, _ in answers for id in won) == Counter(ids)
        assert all(versions in ([], [2]) for _, versions in answers)
        for id in ids:
            (winner,) = (name for name, (won, _) in zip(names, answers, strict=True) if id in won)
            assert store.snapshot(id).version == 2
            assert [entry.actor_ref for entry in store.history(id)] == [winner]
        check_sound(url, store)


def readers_turned_writers(url: str, rounds: int) -> None:
    with interlock.open(url) as store:
        id = store.instantiate(TOGGLE)
        outputs = together(READS_THEN_WRITES, url, [[str(rounds), id]] * 2)
        assert [int(output) for output in outputs] == [rounds, rounds]
        assert store.snapshot(id).version == 2 * rounds + 1
        check_sound(url, store)


def test_O01_reader_turned_writer_fails_at_once(url: str) -> None:
    """Two processes read and then write on what they read: nobody hears "database is locked"."""
    readers_turned_writers(url, 60)


@pytest.mark.slow
def test_O01_reader_turned_writer_a_thousand_rounds(url: str) -> None:
    readers_turned_writers(url, 1000)


def two_processes_write(url: str, rounds: int) -> None:
    with interlock.open(url) as store:
        shares = [[store.instantiate(TOGGLE) for _ in range(3)] for _ in range(2)]
        outputs = together(FIRES, url, [[str(rounds), *share] for share in shares])
        assert [int(output) for output in outputs] == [rounds, rounds]
        for share in shares:
            assert sum(len(store.history(id)) for id in share) == rounds
        check_sound(url, store)


def test_O02_two_processes_write(url: str) -> None:
    """An API process and a worker process on instances of their own: every fire succeeds."""
    two_processes_write(url, 80)


@pytest.mark.slow
def test_O02_two_processes_write_a_thousand_times(url: str) -> None:
    two_processes_write(url, 500)


def test_O02_while_others_write_readers_read(url: str) -> None:
    """A reader sees whole histories, and never waits for the writer of another process."""
    with interlock.open(with_settings(url, busy_ms=0)) as store:
        ids = [store.instantiate(TOGGLE) for _ in range(2)]
        process = processes.start(FIRES, url, 60, *ids)
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
        while process.poll() is None:
            for id in ids:
                history = store.history(id)
                assert [entry.sequence_number for entry in history] == [*range(1, len(history) + 1)]
                assert all(entry.reason == "r" for entry in history)
        processes.finish(process)
        assert sum(len(store.history(id)) for id in ids) == 60


def test_O03_set_up_races(url: str) -> None:
    """Ten processes open a brand-new store at one moment: made once, and all ten work."""
    shares = [[FACES[number % 2], f"own-{number}"] for number in range(10)]
    answers = [json.loads(output) for output in together(OPENS, url, shares)]
    assert len({own for own, _ in answers}) == 10
    assert len({shared for _, shared in answers}) == 1
    with interlock.open(url) as store:
        assert len(store.instances()) == 11
        for own, _ in answers:
            assert len(store.history(own)) == 3
        assert len(store.history(answers[0][1])) == 10
        check_sound(url, store)
    check_made_once(url)
