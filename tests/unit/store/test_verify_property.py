"""Random stores are sound, and a random change by hand makes them unsound."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import interlock
from interlock import Fire
from interlock.store import verify
from interlock.store.store import Store
from interlock.store.verify import Report
from tests.support.strategies import examples, machines, names
from tests.support.tampering import TABLES, tampering

START = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that stands, goes on or steps back."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def metadata() -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names()
    finite = leaves.filter(lambda leaf: leaf not in (float("inf"), float("-inf")))
    whole = st.recursive(
        finite, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names(), inner)
    )
    return whole.filter(lambda value: value not in (None, {}, []))


def fill(store: Store, clock: Clock, data: st.DataObject) -> Report:
    """Begin and move instances at random; give the report that a sound store has."""
    optional = st.none() | names()
    instances: list[tuple[str, dict[str, Any]]] = []
    entries = 0
    for _ in range(data.draw(st.integers(1, 4), label="instances")):
        clock.now = START + timedelta(microseconds=data.draw(st.integers(-5, 5)))
        declaration = data.draw(machines())
        given_at = data.draw(st.sampled_from([None, START - timedelta(days=1)]))
        key = data.draw(optional, label="key")
        id = store.instantiate(
            declaration,
            data.draw(optional),
            data.draw(optional),
            data.draw(st.none() | metadata()),
            given_at,
            idempotency_key=key and f"{key} {len(instances)}",
        )
        instances.append((id, declaration))
    for _ in range(data.draw(st.integers(0, 12), label="fires")):
        clock.now += timedelta(microseconds=data.draw(st.integers(-3, 3)))
        id, declaration = data.draw(st.sampled_from(instances))
        state = store.current(id)
        actions = [
            row["action"] for row in declaration["transitions"] if row["from_state"] == state
        ]
        if not actions:
            continue
        key = data.draw(optional)
        count = data.draw(st.integers(1, 3), label="together") if state in actions else 1
        fire = Fire(
            id,
            data.draw(st.sampled_from(actions)),
            data.draw(optional),
            True,
            None,
            None,
            key and f"{key} {entries}",
            *(data.draw(optional) for _ in range(4)),
        )
        outcomes = store.fire_each([fire] * count)
        entries += 1 if fire.idempotency_key else sum(isinstance(one, str) for one in outcomes)
    return Report(len(instances), entries, 0, ())


@pytest.fixture
def remember(monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of a page, put back afterwards."""
    monkeypatch.setattr(verify, "PAGE_ROWS", verify.PAGE_ROWS)
    return verify.PAGE_ROWS


@given(data=st.data())
@examples(60)
def test_a_random_store_is_sound(data: st.DataObject, remember: int) -> None:
    clock = Clock()
    with interlock.open("sqlite://", clock=clock) as store:
        sound = fill(store, clock, data)
        for rows in (2, 3, data.draw(st.integers(2, 20)), remember):
            verify.PAGE_ROWS = rows
            assert store.verify() == sound
        alone = [store.verify(one.id) for one in store.instances()]
        assert all(report.ok for report in alone)
        assert sum(report.entries for report in alone) == sound.entries


SPARE: list[Any] = [None, "", " ", "x", 0, 1, 2**62, b"", b"x" * 32]


@given(data=st.data())
@examples(25)
def test_a_random_change_of_one_value_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("store")
    path, clock = directory / "store.db", Clock()
    with interlock.open(f"sqlite:///{path}?synchronous=normal", clock=clock) as store:
        fill(store, clock, data)
    changes(path, data)
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        report = store.verify()
    shutil.rmtree(directory)
    assert not report.ok


def changes(path: Path, data: st.DataObject) -> tuple[str, str]:
    """Change one value of one row; give its table and column."""
    with tampering(path) as file:
        table = data.draw(st.sampled_from([table for table in TABLES if file.rows(table)]))
        info = file.connection.execute(f"PRAGMA table_info({table})").fetchall()
        key = [row[1] for row in info if row[5]]
        column: str = data.draw(st.sampled_from([row[1] for row in info]))
        rows = file.rows(table)
        row = data.draw(st.sampled_from(rows))
        assume(column in row)
        value = data.draw(st.sampled_from(SPARE) | st.sampled_from([one[column] for one in rows]))
        where = " AND ".join(f'"{name}" = ?' for name in key)
        try:
            file.change(table, {column: value}, where, *(row[name] for name in key))
        except sqlite3.Error:
            assume(False)
        with closing(sqlite3.connect(path)) as connection:
            stored = connection.execute(f'SELECT "{column}" FROM "{table}"').fetchall()
        before = [one[column] for one in rows]
        assume(sorted(map(repr, before)) != sorted(repr(one) for (one,) in stored))
    return table, column
