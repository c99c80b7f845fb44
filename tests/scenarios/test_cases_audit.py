"""Cases V (audit), and R01, S01, S04 in small.

V09 through the CLI is in tests/unit/cli/test_moves.py. Later layers: V07's tenants and archives,
the console, activities and schedules, R01's warning metric, R03 and what else of R and S concerns
more than the bare machine.
"""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import Birth, Fire
from interlock.store.store import Store
from tests.support import processes
from tests.support.faulty import Faults, faulty_store
from tests.support.inside import inside
from tests.support.machines import BATCH, TOGGLE
from tests.support.records import breaches
from tests.support.tampering import triggers_dropped
from tests.support.together import all_at_once


def test_V01_concurrent_appends_fork_the_chain(path: Path) -> None:
    """Thirty one by one, thirty at once from threads, and thirty from three processes."""
    code = """
import sys, interlock
with interlock.open("sqlite:///" + sys.argv[1]) as store:
    for _ in range(10):
        store.fire(sys.argv[2], "go")
"""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        for _ in range(30):
            store.fire(id, "go")
        assert store.verify().ok
        all_at_once([lambda: store.fire(id, "go") for _ in range(30)])
        assert store.verify().ok
        started = [processes.start(code, path, id) for _ in range(3)]
        for process in started:
            processes.finish(process)
        assert len(store.history(id)) == 90
        report = store.verify()
        assert report.ok
        assert (report.instances, report.entries) == (1, 90)
    with closing(sqlite3.connect(path)) as connection:
        heads = connection.execute("SELECT entry_digest FROM history").fetchall()
        assert len(set(heads)) == 90


def test_V02_hash_over_a_value_the_store_rounds(path: Path) -> None:
    """Finer times than the store keeps: what is stored is what the digests cover."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE, instantiated_at="2026-05-01T12:00:00.123456789Z")
        store.fire(id, "go", fired_at="2026-05-01T12:00:00.123456999Z")
        store.fire(
            id, "go", reason="\u00fc\u0308 \U0001f600", fired_at="2026-05-01T12:00:00.9999999Z"
        )
        first = store.history(id)
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify().ok
        assert store.history(id) == first
        assert first[0].fired_at == datetime(2026, 5, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def tampered(path: Path, *statements: str) -> None:
    """Change records behind the store's back, as somebody with the file in hand can."""
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        triggers_dropped(connection),
    ):
        for statement in statements:
            connection.execute(statement)


def test_V04_cut_tail_looks_fine(path: Path, tmp_path: Path) -> None:
    """The last three records deleted, and the instance made to match: the earlier report tells."""
    seen = tmp_path / "report"
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        for _ in range(10):
            store.fire(id, "go")
        assert store.verify(report=seen).ok
    ((_, number, expected),) = json.loads(seen.read_text())["heads"]
    assert number == 10
    tampered(
        path,
        "DELETE FROM history WHERE sequence_number > 7",
        "UPDATE instances SET next_sequence_number = 8, current_state = 'on', head_digest ="
        " (SELECT entry_digest FROM history WHERE sequence_number = 7)",
    )
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify().ok  # from these records alone nobody could tell
        report = store.verify(since=seen)
        assert not report.ok
        assert [finding.instance for finding in report.findings] == [id]
        said = str(report.findings[0])
        assert "ends at entry 7; its tail, which the earlier report saw up to 10, is cut" in said
        assert expected[:16] in said
        assert store.history(id)[-1].sequence_number == 7


def test_V04_an_instance_that_is_gone(path: Path, tmp_path: Path) -> None:
    seen = tmp_path / "report"
    with interlock.open(f"sqlite:///{path}") as store:
        ids = [store.instantiate(TOGGLE) for _ in range(3)]
        store.fire(ids[1], "go")
        assert store.verify(report=seen).ok
    tampered(
        path,
        f"DELETE FROM history WHERE instance_id = '{ids[1]}'",
        f"DELETE FROM instances WHERE id = '{ids[1]}'",
    )
    with interlock.open(f"sqlite:///{path}") as store:
        report = store.verify(since=seen)
        assert [(finding.instance, finding.invariant) for finding in report.findings] == [
            (ids[1], 10)
        ]


def test_V07_and_V11_update_and_delete_allowed_by_the_database(path: Path) -> None:
    """Refused by the database itself; every other statement: tests/faults/test_schema_guards."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(BATCH)
        store.fire(id, "begin-testing")
        with closing(sqlite3.connect(path, isolation_level=None)) as client:
            for statement in (
                "UPDATE history SET to_state = 'released'",
                "DELETE FROM history",
                "DELETE FROM instances",
                "DELETE FROM instances WHERE tenant = ''",
                "DELETE FROM declarations",
                "UPDATE instances SET current_state = 'released'",
            ):
                with pytest.raises(sqlite3.IntegrityError, match="interlock: "):
                    client.execute(statement)
        assert store.current(id) == "testing"
        assert store.verify().ok


def test_V09_actor_given_but_not_stored(store: Store) -> None:
    id = store.instantiate(BATCH, "planner")
    store.fire(id, "begin-testing", "rivera")
    store.fire_many([Fire(id, "release", "santos", guard_satisfied=True)])
    (other,) = store.instantiate_each(BATCH, [Birth("importer")])
    assert isinstance(other, str)
    store.fire_each([Fire(other, "begin-testing", "importer")])
    assert store.snapshot(id).actor_ref == "planner"
    assert store.snapshot(other).actor_ref == "importer"
    assert [entry.actor_ref for entry in store.history(id)] == ["rivera", "santos"]
    assert [entry.actor_ref for entry in store.history(other)] == ["importer"]
    assert [row.actor_ref for row in store.instances()] == ["planner", "importer"]


# Growth


def cost_of(store: Store, faults: Faults, call: Any) -> tuple[int, int]:
    """Count the statements of a call and the steps that the database takes for it."""
    steps = 0

    def stepped() -> int:
        nonlocal steps
        steps += 1
        return 0

    writer = inside(store)._writer
    before = len(faults.log)
    writer.set_progress_handler(stepped, 1)
    call()
    writer.set_progress_handler(None, 1)
    return len(faults.log) - before, steps


def test_R01_long_lived_instance_killed(path: Path) -> None:
    """The 3,000th fire takes as many statements as the hundredth, and no more work."""
    faults = Faults()
    with faulty_store(path, faults, synchronous="OFF") as store:
        id = store.instantiate(TOGGLE)
        store.fire_many([Fire(id, "go")] * 100)
        early = cost_of(store, faults, lambda: store.fire(id, "go", reason="r"))
        keyed = cost_of(store, faults, lambda: store.fire(id, "go", idempotency_key="k1"))
        for _ in range(29):
            store.fire_many([Fire(id, "go")] * 100)
        late = cost_of(store, faults, lambda: store.fire(id, "go", reason="r"))
        assert late[0] == early[0] <= 4
        assert late[1] <= 1.2 * early[1]
        late_keyed = cost_of(store, faults, lambda: store.fire(id, "go", idempotency_key="k2"))
        assert late_keyed[0] == keyed[0]
        assert late_keyed[1] <= 1.2 * keyed[1]
    with faulty_store(path, faults, synchronous="OFF") as store:
        store.fire(id, "go")
        assert store.snapshot(id).version == 3006
        first = cost_of(store, faults, lambda: store.fire(id, "go", reason="r"))
        assert first[1] <= 1.2 * early[1]


def test_R01_many_instances(path: Path) -> None:
    """A fire beside 3,000 instances takes the work of a fire beside ten."""
    faults = Faults()
    with faulty_store(path, faults, synchronous="OFF") as store:
        ids = store.instantiate_each(TOGGLE, [Birth()] * 10)
        assert isinstance(ids[0], str)
        id = ids[0]
        store.fire(id, "go")
        few = cost_of(store, faults, lambda: store.fire(id, "go"))
        store.instantiate_each(TOGGLE, [Birth(idempotency_key=f"{n}") for n in range(3000)])
        many = cost_of(store, faults, lambda: store.fire(id, "go"))
        assert many[0] == few[0]
        assert many[1] <= 1.2 * few[1]


FILTERS: list[dict[str, Any]] = [
    {},
    {"state": "off"},
    {"definition": TOGGLE},
    {"subject_ref": "subject"},
    {"subject_ref": "subject", "state": "off"},
    {"state": "off", "definition": TOGGLE},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_S01_equal_times_lose_rows(store: Store, filters: dict[str, Any]) -> None:
    """Fifty instances of one transaction and one time, ten a page: five pages, fifty ids."""
    moment = "2026-05-01T12:00:00Z"
    births = [Birth("ann", "subject", instantiated_at=moment) for _ in range(50)]
    ids = store.instantiate_each(TOGGLE, births)
    pages: list[list[str]] = []
    after: str | None = None
    while page := store.instances(limit=10, after=after, **filters):
        pages.append([row.id for row in page])
        after = page[-1].id
    assert [len(page) for page in pages] == [10] * 5
    seen = [id for page in pages for id in page]
    assert sorted(map(str, ids)) == seen


def test_S01_pages_while_instances_begin_and_move(store: Store) -> None:
    """What was there from the start is listed once, whatever happens between two pages."""
    ids = store.instantiate_each(TOGGLE, [Birth() for _ in range(30)])
    seen: list[str] = []
    after: str | None = None
    for _ in range(6):
        page = store.instances(limit=7, after=after)
        seen += [row.id for row in page]
        after = page[-1].id
        store.instantiate(TOGGLE)
        store.fire(str(ids[0]), "go")
        store.fire(str(ids[-1]), "go")
    assert len(seen) == len(set(seen))
    assert set(map(str, ids)) <= set(seen)


def test_S04_list_loads_everything(store: Store) -> None:
    """Without arguments a page, not the table; and a page costs what a page costs."""
    store.instantiate_each(TOGGLE, [Birth() for _ in range(1200)])
    assert len(store.instances()) == 100
    assert len(store.instances(limit=1000)) == 1000
    for limit in (0, -1, 1001, True, "10", 1.0, None):
        with pytest.raises(interlock.InvalidRequest) as caught:
            store.instances(limit=limit)  # type: ignore[arg-type]
        assert caught.value.argument == "limit"


def test_the_oracle_of_these_tests_agrees_with_verify(path: Path) -> None:
    """A control: what one calls broken, the other does."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(BATCH)
        store.fire(id, "begin-testing")
        assert store.verify().ok
    tampered(path, "UPDATE history SET to_state = 'released'")
    with closing(sqlite3.connect(path)) as connection:
        assert breaches(connection)
    with interlock.open(f"sqlite:///{path}") as store:
        assert not store.verify().ok
