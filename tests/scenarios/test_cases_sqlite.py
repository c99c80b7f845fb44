"""Cases O (databases) on SQLite; those with real processes are in `test_cases_processes`.

O08 as written, in the caller's own transaction, is in `test_joined`. Later layers: O04's and O10's
workers.
"""

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
from tests.support.inside import inside
from tests.support.machines import BATCH, TOGGLE


def test_O02_a_file_is_set_to_be_written_by_several(path: Path) -> None:
    """A write-ahead log, and a writer that waits for others; what two processes do is elsewhere."""
    with interlock.open(f"sqlite:///{path}") as store:
        writer = inside(store)._writer
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (waits,) = writer.execute("PRAGMA busy_timeout").fetchone()
        assert waits == 30_000


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


@pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
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
