"""Case Q03: the schema moves on under a store that is open.

A newer version migrates the store, or somebody alters it, while a program of this version goes on
with the handle that it has. It keeps working, or it is refused; what it wrote is right, and what it
was not told is written nowhere.
"""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import interlock
from interlock import Fire, StorageFailure
from interlock.store.postgres import migrate as postgres_migrate
from interlock.store.sqlite import migrate as sqlite_migrate
from interlock.testing import Blocking
from tests.support.machines import TOGGLE
from tests.support.postgres import database, with_settings
from tests.support.together import outcome_of

#: What a newer version may add, on each database.
ADDED = """
CREATE TABLE {place}later (id bigint PRIMARY KEY);
ALTER TABLE {place}history ADD COLUMN later_ref text;
CREATE INDEX history_by_later ON {place}history (later_ref);
ALTER TABLE {place}instances ADD COLUMN later_ref text NOT NULL DEFAULT 'none';
"""
#: What no program of this version can write to.
RENAMED = "ALTER TABLE {place}history RENAME COLUMN actor_ref TO by_whom;\n"


class Place:
    """Where a store is, and how its schema moves on."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.is_file = url.startswith("sqlite:")

    def open(self, face: str, **settings: object) -> Any:
        url = with_settings(self.url, **settings) if settings else self.url
        if face == "sync":
            return interlock.open(url)
        return Blocking(lambda: interlock.open_async(url))

    def execute(self, statement: str) -> list[Any]:
        """Execute a statement of the owner's; `{place}` is where the tables are."""
        text = statement.format(place="" if self.is_file else "interlock.")
        if self.is_file:
            with closing(sqlite3.connect(self.folder / "store.db", isolation_level=None)) as file:
                return file.execute(text).fetchall()
        with psycopg.connect(self.url, autocommit=True) as server:
            cursor = server.execute(text)
            return cursor.fetchall() if cursor.description else []

    def rows(self, table: str) -> int:
        (found,) = self.execute(f"SELECT count(*) FROM {{place}}{table}")
        return int(found[0])

    @contextmanager
    def newer(self, script: str) -> Iterator[None]:
        """Be a newer version, which has one migration more."""
        module: Any = sqlite_migrate if self.is_file else postgres_migrate
        file = self.folder / "0099_later.sql"
        file.write_text(script.format(place="" if self.is_file else "$schema."))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "MIGRATIONS", [*module.MIGRATIONS, file])
            module._own_schema.cache_clear()
            yield
        module._own_schema.cache_clear()

    def migrate(self, script: str) -> None:
        with self.newer(script):
            interlock.open(self.url).close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(f"sqlite:///{path}", path.parent)
        return
    with database() as url:
        yield Place(url, path.parent)


both_faces = pytest.mark.parametrize("face", ["sync", "async"])


def is_refused_as_newer(call: Callable[[], Any]) -> bool:
    refusal = outcome_of(call)
    return isinstance(refusal, StorageFailure) and refusal.kind == "newer"


@both_faces
def test_Q03_what_a_newer_version_adds_disturbs_nobody(place: Place, face: str) -> None:
    with place.open(face) as store:
        id = store.instantiate(TOGGLE, "ann", instance_metadata="m", idempotency_key="k")
        store.fire(id, "go", "ann", reason="before")
        assert len(store.history(id)) == 1
        place.migrate(ADDED)
        for number in range(6):  # on each connection of the pool, whatever it has prepared
            assert store.fire(id, "go", "bob", reason=f"after {number}") in ("on", "off")
        assert store.fire_many([Fire(id, "go"), Fire(id, "go")]) == ["off", "on"]
        assert store.instantiate(TOGGLE, "ann", None, "m", idempotency_key="k") == id
        other = store.instantiate(TOGGLE)
        assert [entry.sequence_number for entry in store.history(id)] == [*range(1, 10)]
        assert {one.id for one in store.instances()} == {id, other}
        assert store.snapshot(id).version == 10
        assert is_refused_as_newer(lambda: place.open(face).close())
    assert is_refused_as_newer(lambda: place.open(face).close())
    with place.newer(ADDED), place.open(face) as later:
        assert later.current(id) == "on"
        assert [entry.reason for entry in later.history(id)][:2] == ["before", "after 0"]


@both_faces
def test_Q03_what_cannot_be_written_any_more_is_refused(place: Place, face: str) -> None:
    with place.open(face) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go", "ann", reason="before")
        place.migrate(RENAMED)
        counts = place.rows("history"), place.rows("payloads")
        for _ in range(3):
            for call in (
                lambda: store.fire(id, "go"),
                lambda: store.fire(id, "go", reason="after", idempotency_key="k"),
                lambda: store.fire_many([Fire(id, "go"), Fire(id, "go", reason="after")]),
                lambda: store.fire_each([Fire(id, "go"), Fire(id, "go", reason="after")]),
                lambda: store.history(id),
            ):
                with pytest.raises(StorageFailure) as caught:
                    call()
                assert not caught.value.retryable
        assert (place.rows("history"), place.rows("payloads")) == counts
        assert store.current(id) == "on"
    assert is_refused_as_newer(lambda: place.open(face).close())


@both_faces
def test_Q03_calls_in_hand_while_it_is_migrated(place: Place, face: str) -> None:
    """Eight threads that never stop: each call is answered, and done exactly if it says so."""
    ended, under_way = threading.Event(), threading.Barrier(9)
    with place.open(face) as store:
        ids = [store.instantiate(TOGGLE) for _ in range(4)]

        def go_on(number: int) -> int:
            done = 0
            while not ended.is_set():
                assert store.fire(ids[number % 4], "go", f"w{number}") in ("on", "off")
                done += 1
                if done == 5:
                    under_way.wait(60)
            return done

        with ThreadPoolExecutor(8) as pool:
            callers = [pool.submit(go_on, number) for number in range(8)]
            under_way.wait(60)
            try:
                place.migrate(ADDED)
            finally:
                ended.set()
            done = [caller.result(60) for caller in callers]
        told = Counter(entry.actor_ref for id in ids for entry in store.history(id))
        assert told == {f"w{number}": count for number, count in enumerate(done)}


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@both_faces
def test_Q03_a_store_that_was_made_anew_is_met_anew(place: Place, face: str) -> None:
    """What is kept in mind of the old is nothing to the new. Files replaced: `test_places`."""
    with place.open(face) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        place.execute("DROP SCHEMA interlock CASCADE")
        interlock.open(place.url).close()
        for _ in range(3):
            for call in (lambda: store.fire(id, "go"), lambda: store.history(id)):
                assert isinstance(outcome_of(call), interlock.NotKnown)
        new = store.instantiate(TOGGLE)
        assert store.fire(new, "go") == "on"
        assert [one.id for one in store.instances()] == [new]
        assert store.verify().ok


SWALLOWS = {
    "sqlite": ["CREATE TRIGGER mine BEFORE INSERT ON history BEGIN SELECT RAISE(IGNORE); END"],
    "postgres": [
        "CREATE FUNCTION interlock.swallow() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER a_mine BEFORE INSERT ON interlock.history FOR EACH ROW"
        " EXECUTE FUNCTION interlock.swallow()",
    ],
}


@both_faces
def test_a_write_that_was_taken_away_is_not_acknowledged(place: Place, face: str) -> None:
    """Whoever may alter the schema could have a trigger swallow what is inserted."""
    with place.open(face) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        for statement in SWALLOWS["sqlite" if place.is_file else "postgres"]:
            place.execute(statement)
        for call in (
            lambda: store.fire(id, "go"),
            lambda: store.fire(id, "go", reason="r"),
            lambda: store.fire_many([Fire(id, "go"), Fire(id, "go")]),
        ):
            with pytest.raises(StorageFailure):
                call()
        assert store.current(id) == "on"
        assert len(store.history(id)) == 1


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@both_faces
def test_Q03_a_column_of_another_type_is_read_as_it_is(place: Place, face: str) -> None:
    with place.open(face, pool_max=1) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go", "ann")
        for _ in range(5):
            store.history(id)
        place.execute("ALTER TABLE interlock.history ALTER actor_ref TYPE varchar(300)")
        for _ in range(5):
            assert [entry.actor_ref for entry in store.history(id)] == ["ann"]
