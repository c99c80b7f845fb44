"""Cases O (databases) on SQLite, with real processes.

Later layers: O04 and O08 as written (PostgreSQL, the caller's own transaction), O10's worker. What
of them holds for the bare machine on SQLite is here.
"""

import json
import sqlite3
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import Fire, Rejected, StorageFailure
from interlock.store.sqlite import migrate
from interlock.store.store import Store
from tests.support import processes
from tests.support.inside import inside
from tests.support.machines import BATCH, TOGGLE
from tests.support.records import breaches

READY = """
import json, sys
import interlock
print("ready", flush=True)
path, rounds, mine = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sys.stdin.readline()
"""

READ_THEN_WRITE = (
    READY
    + """
done = 0
with interlock.open("sqlite:///" + path) as store:
    (id,) = mine
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
    READY
    + """
with interlock.open("sqlite:///" + path) as store:
    for number in range(rounds):
        store.fire(mine[number % len(mine)], "go", reason="r")
print(rounds)
"""
)

OPENS = (
    READY
    + f"""
with interlock.open("sqlite:///" + path) as store:
    id = store.instantiate({TOGGLE!r}, idempotency_key=mine[0])
    shared = store.instantiate({TOGGLE!r}, idempotency_key="shared")
    for number in range(rounds):
        store.fire(id, "go")
    store.fire(shared, "go")
print(json.dumps([id, shared]))
"""
)


def together(code: str, path: Path, rounds: int, shares: list[list[str]]) -> list[str]:
    """Start a process for each share, release them at one moment, and give what they printed."""
    started = [processes.start(code, path, rounds, *share) for share in shares]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    return [processes.finish(process, seconds=250) for process in started]


def sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert breaches(connection) == []
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def readers_turned_writers(path: Path, rounds: int) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
    outputs = together(READ_THEN_WRITE, path, rounds, [[id], [id]])
    assert [int(output) for output in outputs] == [rounds, rounds]
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.snapshot(id).version == 2 * rounds + 1
        assert store.verify().ok
    sound(path)


def test_O01_sqlite_reader_turned_writer_fails_at_once(path: Path) -> None:
    """Two processes read and then write on what they read: nobody hears "database is locked"."""
    readers_turned_writers(path, 60)


@pytest.mark.slow
def test_O01_sqlite_reader_turned_writer_a_thousand_rounds(path: Path) -> None:
    readers_turned_writers(path, 1000)


def two_processes_write(path: Path, rounds: int) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        shares = [[store.instantiate(TOGGLE) for _ in range(3)] for _ in range(2)]
    outputs = together(FIRES, path, rounds, shares)
    assert [int(output) for output in outputs] == [rounds, rounds]
    with interlock.open(f"sqlite:///{path}") as store:
        for share in shares:
            assert sum(len(store.history(id)) for id in share) == rounds
        assert store.verify().ok
        writer = inside(store)._writer
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (waits,) = writer.execute("PRAGMA busy_timeout").fetchone()
        assert waits == 30_000
    sound(path)


def test_O02_sqlite_two_processes_write(path: Path) -> None:
    """An API process and a worker process on instances of their own: every fire succeeds."""
    two_processes_write(path, 80)


@pytest.mark.slow
def test_O02_sqlite_two_processes_write_a_thousand_times(path: Path) -> None:
    two_processes_write(path, 500)


def test_O02_while_others_write_readers_read(path: Path) -> None:
    """A reader sees whole histories, and never waits for the writer of another process."""
    with interlock.open(f"sqlite:///{path}?busy_ms=0") as store:
        ids = [store.instantiate(TOGGLE) for _ in range(2)]
        process = processes.start(FIRES, path, 60, *ids)
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


def test_O03_set_up_races(path: Path) -> None:
    """Ten processes open a brand-new store at one moment: made once, and all ten work."""
    outputs = together(OPENS, path, 3, [[f"own-{number}"] for number in range(10)])
    answers = [json.loads(output) for output in outputs]
    assert len({own for own, _ in answers}) == 10
    assert len({shared for _, shared in answers}) == 1
    with interlock.open(f"sqlite:///{path}") as store:
        assert len(store.instances()) == 11
        for own, _ in answers:
            assert len(store.history(own)) == 3
        assert len(store.history(answers[0][1])) == 10
        assert store.verify().ok
    with closing(sqlite3.connect(path)) as connection:
        (made,) = connection.execute("SELECT count(*) FROM interlock_migrations").fetchone()
        assert (
            made == connection.execute("SELECT max(number) FROM interlock_migrations").fetchone()[0]
        )
    sound(path)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_O03_a_store_made_while_another_looks_is_not_foreign(
    number: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is a store and what else is in the file are seen at one moment."""
    look, looks = migrate._schema, count(1)

    def make_it_first(connection: sqlite3.Connection) -> dict[str, Any]:
        if next(looks) == number:
            with suppress(StorageFailure):  # the look may keep it waiting
                interlock.open(f"sqlite:///{path}?busy_ms=50").close()
        return look(connection)

    monkeypatch.setattr(migrate, "_schema", make_it_first)
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify().ok
    assert next(looks) > number


def test_O08_started_inside_a_transaction_that_rolled_back(store: Store) -> None:
    """The bare machine's own transaction: a list that is refused leaves no trace."""
    id = store.instantiate(BATCH)
    before = store.snapshot(id)
    with pytest.raises(Rejected):
        store.fire_many(
            [Fire(id, "begin-testing", reason="x"), Fire(id, "reject-batch"), Fire(id, "release")]
        )
    assert store.snapshot(id) == before
    assert store.history(id) == []
    writer = inside(store)._writer
    assert writer.execute("SELECT count(*) FROM payloads").fetchone() == (0,)


def test_O08_nobody_sees_it_before_the_commit(path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        with interlock.open(f"sqlite:///{path}") as other:
            writer = inside(store)._writer
            seen: list[object] = []
            writer.set_trace_callback(
                lambda sql: (
                    seen.append((other.current(id), len(other.history(id))))
                    if sql.startswith("COMMIT")
                    else None
                )
            )
            store.fire_many([Fire(id, "go"), Fire(id, "go"), Fire(id, "go")])
            writer.set_trace_callback(None)
            assert seen == [("off", 0)]
            assert (other.current(id), len(other.history(id))) == ("on", 3)


def test_O10_outage_reported_as_never_retry(path: Path) -> None:
    """A database that is away for a while: a failure that says "again", and nothing is recorded."""
    with interlock.open(f"sqlite:///{path}?busy_ms=0") as store:
        id = store.instantiate(TOGGLE)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(3):
                with pytest.raises(StorageFailure) as caught:
                    store.fire(id, "go", idempotency_key="k")
                assert caught.value.retryable
                assert caught.value.reason == "storage-failure"
            other.execute("ROLLBACK")
        assert store.fire(id, "go", idempotency_key="k") == "on"
        assert len(store.history(id)) == 1


def test_O_one_process_is_never_behind_another(path: Path) -> None:
    """What a store keeps in mind of an instance is no excuse: each call meets the newest state."""
    url = f"sqlite:///{path}"
    with interlock.open(url) as one, interlock.open(url) as two:
        id = one.instantiate(BATCH)
        assert one.fire(id, "begin-testing") == "testing"
        with pytest.raises(interlock.InvalidTransition):
            two.fire(id, "begin-testing")
        assert two.fire(id, "reject-batch") == "rejected"
        for action in ("release", "reject-batch", "begin-testing"):
            with pytest.raises(interlock.Terminal):
                one.fire(id, action, guard_satisfied=True)
        toggles = [one.instantiate(TOGGLE) for _ in range(3)]
        for number in range(12):
            store = (one, two)[number % 2]
            version = number // 3 + 1
            toggle = toggles[number % 3]
            with pytest.raises(interlock.VersionConflict) as caught:
                store.fire(toggle, "go", expected_version=version + 1)
            assert caught.value.version == version
            store.fire(toggle, "go", expected_version=version)
        mixed = [Fire(toggle, "go", expected_version=5) for toggle in toggles]
        assert one.fire_many(mixed) == ["on"] * 3
        assert [type(outcome) for outcome in two.fire_each(mixed)] == [
            interlock.VersionConflict
        ] * 3
        assert (
            two.fire_many([Fire(toggle, "go") for toggle in toggles * 2])
            == ["off"] * 3 + ["on"] * 3
        )
        assert one.verify().ok
