"""A store used by roles that do not own it: the application's, which appends, and a reader's.

What each may do with statements of its own is in `faults/test_postgres_guards`, and the contract of
a store, by the application's role, in `conformance/test_store_contract`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import interlock
from interlock import Birth, Fire, StorageFailure
from interlock.testing import Blocking
from tests.support.copies import dumped, populate, told
from tests.support.machines import BATCH, TOGGLE
from tests.support.postgres import (
    APP,
    ERASER,
    READER,
    STRANGER,
    at,
    database,
    make_store,
    with_settings,
)

TABLES = ["declarations", "declared_transitions", "history", "instances", "payloads", "start_keys"]


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a store, as its owner."""
    with database() as url:
        make_store(url)
        yield url


@pytest.fixture(params=["sync", "async"])
def opened(request: pytest.FixtureRequest, url: str) -> Callable[..., Any]:
    """Open the store as a role, with one of its faces."""

    def opened(role: str, mode: str) -> Any:
        place = with_settings(at(url, user=role), mode=mode)
        if request.param == "sync":
            return interlock.open(place)
        return Blocking(lambda: interlock.open_async(place))

    return opened


@contextmanager
def refused(kind: str) -> Iterator[None]:
    with pytest.raises(StorageFailure) as caught:
        yield
    assert (caught.value.kind, caught.value.retryable) == (kind, False), caught.value


def test_the_application_does_all_that_is_ordinary(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    with opened(APP, "rw") as store:
        batch = store.instantiate(BATCH, "ann", "B-1", {"line": 1}, idempotency_key="k")
        assert store.instantiate(BATCH, "ann", "B-1", {"line": 1}, idempotency_key="k") == batch
        assert store.fire(batch, "begin-testing", "bob", reason="arrived") == "testing"
        lamps = store.instantiate_each(TOGGLE, [Birth(), Birth(instance_metadata="x")])
        assert store.fire_many([Fire(id, "go") for id in lamps * 2]) == ["on"] * 2 + ["off"] * 2
        (state, failed) = store.fire_each([Fire(lamps[0], "go", reason="r"), Fire(batch, "no")])
        assert (state, type(failed)) == ("on", interlock.InvalidTransition)
        assert store.current(batch) == "testing"
        assert [entry.reason for entry in store.history(batch)] == ["arrived"]
        assert store.snapshot(lamps[0], at_sequence=2).state == "off"
        assert store.read_declaration(batch) == BATCH
        assert {one.id for one in store.instances()} == {batch, *lamps}
        store.dump(tmp_path / "dump.jsonl")
        assert store.restore(tmp_path / "dump.jsonl").added_instances == 0
        with interlock.open("sqlite://") as other:
            other.fire(other.instantiate(TOGGLE, instance_metadata="y"), "go", reason="r")
            other.dump(tmp_path / "other.jsonl")
        assert store.restore(tmp_path / "other.jsonl").added_entries == 1
        assert store.verify(report=tmp_path / "report.json").ok
        assert store.verify(since=tmp_path / "report.json").ok


def test_what_was_destroyed_is_restored_by_the_eraser(url: str, tmp_path: Path) -> None:
    """It is destroyed there as well, which the application may not do; so it is told."""
    with interlock.open("sqlite://") as origin:
        populate(origin)
        origin.dump(tmp_path / "dump.jsonl")
        with (
            interlock.open(with_settings(at(url, user=APP), mode="rw")) as copy,
            refused("read-only"),
        ):
            copy.restore(tmp_path / "dump.jsonl")
        with interlock.open(with_settings(at(url, user=ERASER), mode="rw")) as copy:
            copy.restore(tmp_path / "dump.jsonl")
            assert told(copy) == told(origin)
            assert dumped(copy, tmp_path) == dumped(origin, tmp_path)


def test_the_application_fires_in_a_transaction_of_its_own(url: str) -> None:
    place = at(url, user=APP)
    with interlock.open(with_settings(place, mode="rw")) as store:
        with psycopg.connect(place) as connection:
            id = store.instantiate(TOGGLE, connection=connection)
            assert store.fire(id, "go", reason="r", connection=connection) == "on"
        assert store.current(id) == "on"


def test_the_reader_reads_all_and_writes_nothing(
    url: str, opened: Callable[..., Any], tmp_path: Path
) -> None:
    with interlock.open(url) as owner:
        names = populate(owner)
        wanted = told(owner), dumped(owner, tmp_path)
    with opened(READER, "ro") as store:
        assert (told_by(store), dumped(store, tmp_path)) == wanted
        assert store.verify().ok
        assert store.verify(names["long"]).ok
        for call in (
            lambda: store.fire(names["long"], "go"),
            lambda: store.fire_many([Fire(names["long"], "go")]),
            lambda: store.instantiate(TOGGLE),
            lambda: store.restore(tmp_path / "again.jsonl"),
        ):
            with refused("read-only"):
                call()
    with opened(READER, "rw") as store, refused("read-only"):  # nobody said so, but the server does
        store.fire(names["long"], "go")


def told_by(store: Any) -> list[Any]:
    """The same as `told`, of either face."""
    found = store.instances(limit=1000)
    return [
        (one, store.history(one.id), list(store.read_declaration(one.id).items())) for one in found
    ]


@pytest.mark.parametrize("role", [APP, READER])
def test_V11_by_statements_of_its_own_it_changes_and_removes_nothing(url: str, role: str) -> None:
    """Not in a tenant that rows are of either."""
    with interlock.open(with_settings(at(url, user=ERASER), mode="rw"), tenant="acme") as store:
        names = populate(store)
        wanted = told(store)
        with psycopg.connect(at(url, user=role), autocommit=True) as connection:
            connection.execute("SET interlock.tenant = 'acme'")
            for table in TABLES:
                rows = connection.execute(f"SELECT * FROM interlock.{table}").fetchall()
                assert rows
                for statement in (
                    f"UPDATE interlock.{table} SET tenant = tenant",
                    f"DELETE FROM interlock.{table}",
                    f"TRUNCATE interlock.{table}",
                    f"TRUNCATE interlock.{table} CASCADE",
                ):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement)
        assert told(store) == wanted
        assert store.fire(names["long"], "go")
        assert store.verify().ok


@pytest.mark.parametrize("mode", ["rwc", "rw", "ro"])
def test_a_role_that_was_granted_nothing_is_let_in_nowhere(
    mode: str, opened: Callable[..., Any]
) -> None:
    with pytest.raises(StorageFailure) as caught, opened(STRANGER, mode) as store:
        store.instances()
    assert "not permitted" in str(caught.value) or "no interlock store" in str(caught.value)


@pytest.mark.parametrize("role", [APP, READER])
def test_who_may_not_make_a_store_is_told_so(role: str) -> None:
    with database() as url:
        for mode, kind in (("rwc", "read-only"), ("rw", "missing"), ("ro", "missing")):
            place = with_settings(at(url, user=role), mode=mode)
            with refused(kind):
                interlock.open(place)
            with refused(kind):
                asyncio.run(opened_async(place))


async def opened_async(place: str) -> None:
    async with interlock.open_async(place):
        pass
