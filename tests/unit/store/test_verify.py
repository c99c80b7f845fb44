"""`Store.verify`: its arguments, its report, and what it tells on the way."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import Fire
from interlock.core.rejection import InvalidRequest, NotKnown, StorageFailure
from interlock.store import verify
from interlock.store.plan import Plan, Row, Statement
from interlock.store.store import Store
from interlock.store.verify import Finding, Report
from tests.support.faulty import CODES, Faults, faulty_store
from tests.support.machines import BATCH, MACHINES, TOGGLE, declare, paths_of
from tests.support.plans import through
from tests.support.tampering import File, copy_healthy, found, healthy, tampered


def test_an_empty_store_is_sound(store: Store) -> None:
    assert store.verify() == Report(0, 0, 0, ())
    assert store.verify().ok


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_pages_of_any_size_come_to_an_end(
    rows: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.instantiate(BATCH)
    toggle = store.instantiate(TOGGLE)
    store.fire_many([Fire(toggle, "go")] * 5)
    store.instantiate(BATCH)
    monkeypatch.setattr(verify, "PAGE_ROWS", rows)
    pages = 0

    def count(_: int) -> None:
        nonlocal pages
        pages += 1
        assert pages < 100

    assert store.verify(on_page=count) == Report(3, 5, 0, ())


@pytest.mark.parametrize("id", ["nobody", "018f3406-a5d0-7000-a907-efb36dd5f15a", "a.b", "."])
def test_an_instance_that_is_not_known(id: str, store: Store) -> None:
    known = store.instantiate(BATCH)
    for place in (id, f"{known}.1", known[:-1], known.upper()):
        if place != known:
            with pytest.raises(NotKnown) as refusal:
                store.verify(place)
            assert refusal.value.instance_id == place
    assert store.verify(known).ok


@pytest.mark.parametrize("id", ["", "  ", "a\0b", "\ud800", "x" * 2000, 7, b"x", ["x"]])
def test_an_id_that_is_malformed(id: object, store: Store) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        store.verify(id)  # type: ignore[arg-type]
    assert refusal.value.argument == "id"


@pytest.mark.parametrize("name", MACHINES)
def test_every_example_machine_in_every_state_is_sound(name: str, store: Store) -> None:
    """An instance at every state that there is a way to, so terminal ones too."""
    declaration = MACHINES[name]
    entries = 0
    for path in paths_of(declaration).values():
        id = store.instantiate(declaration, "ann", name, {"machine": name})
        for row in path:
            store.fire(id, row["action"], "bob", True, reason="onwards")
        entries += len(path)
        assert store.verify(id) == Report(1, len(path), 0, ())
    assert store.verify() == Report(len(paths_of(declaration)), entries, 0, ())


def test_names_as_long_as_the_limits_of_the_store_allow_are_sound(path: Path) -> None:
    """The records say nothing of limits, so a store opened with others verifies them as well."""
    long, end = "x" * 3000, "y" * 3000
    wide = interlock.Limits(name_bytes=4096)
    steps = [{"from_state": long, "action": "go", "to_state": end, "guard": "g" * 3000}]
    with interlock.open(f"sqlite:///{path}", limits=wide) as store:
        store.fire(store.instantiate(declare([long, end], steps)), "go", guard_satisfied=True)
        assert store.verify() == Report(1, 1, 0, ())
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify() == Report(1, 1, 0, ())


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, ZeroDivisionError, ValueError, TypeError, AttributeError, OSError]
)
def test_what_a_listener_raises_comes_out(error: type[BaseException], path: Path) -> None:
    """It is no finding, and the store goes on working."""

    def fail(_: object) -> None:
        raise error("the listener's own")

    with tampered(path, lambda file: file.set_entry("long", 12, actor_ref="x")) as store:
        with pytest.raises(error, match="the listener's own"):
            store.verify(on_page=fail)
        with pytest.raises(error, match="the listener's own"):
            store.verify(on_finding=fail)
        assert found(store.verify()) == [("long", 12, 5)]


def test_refused_calls_leave_a_sound_store(store: Store) -> None:
    id = store.instantiate(BATCH)
    for action in ("release", "nothing", "begin-testing", "release", "reject-batch", "release"):
        with suppress(interlock.Rejected):
            store.fire(id, action)
    assert store.current(id) == "rejected"
    assert store.verify() == Report(1, 2, 0, ())


def test_findings_are_told_as_they_are_made(path: Path) -> None:
    def tamper(file: File) -> None:
        file.set_entry("ended", 1, actor_ref="mallory")
        file.set_instance("new", current_state="nowhere")
        file.set_entry("last", 4, fired_at=0)

    told: list[Finding] = []
    with tampered(path, tamper) as store:
        report = store.verify(on_finding=told.append)
    assert tuple(told) == report.findings
    assert [one.instance for one in told] == sorted(str(one.instance) for one in told)


def test_a_finding_reads_as_a_sentence() -> None:
    what = "it was altered"
    assert str(Finding("wf-1", 3, 5, what)) == "instance wf-1 entry 3: invariant 5: it was altered"
    assert str(Finding("wf-1", None, 5, what)) == "instance wf-1: invariant 5: it was altered"
    assert str(Finding(None, None, 1, what)) == "store: invariant 1: it was altered"


def test_a_report_is_json_like(path: Path) -> None:
    with tampered(path, lambda file: file.set_entry("long", 12, actor_ref="x")) as store:
        report = store.verify()
    (finding,) = report.findings
    assert json.loads(json.dumps(report.as_dict())) == {
        "ok": False,
        "instances": len(healthy()[1]),
        "entries": report.entries,
        "count": 1,
        "findings": [
            {
                "instance": healthy()[1]["long"],
                "entry": 12,
                "invariant": 5,
                "what": finding.what,
            }
        ],
    }


def test_the_memory_of_findings_is_bounded_and_their_count_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "FINDINGS_KEPT", 5)
    told: list[Finding] = []
    with tampered(path, lambda file: file.execute("UPDATE history SET worker_id = 'x'")) as store:
        report = store.verify(on_finding=told.append)
    assert len(told) == report.count == report.entries
    assert report.findings == tuple(told[:5])
    assert not report.ok


def test_progress_is_told_in_entries(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_healthy(path)
    monkeypatch.setattr(verify, "PAGE_ROWS", 5)
    told: list[int] = []
    with interlock.open(f"sqlite:///{path}") as store:
        report = store.verify(on_page=told.append)
    assert told == sorted(told)
    assert told[-1] == report.entries
    assert len(told) > report.entries // 5


def test_many_declarations_are_read_page_by_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are kept compiled, and more than one page of them."""
    monkeypatch.setattr(verify, "MACHINES_KEPT", 3)
    monkeypatch.setattr(verify, "PAGE_DECLARATIONS", 2)
    monkeypatch.setattr(verify, "PAGE_ROWS", 7)
    for number in range(25):
        states = [f"off-{number}", "on"]
        declaration = {
            "states": states,
            "transitions": [{"from_state": states[0], "action": "go", "to_state": "on"}],
            "initial_state": states[0],
            "terminal_states": [],
        }
        for _ in range(2):
            store.fire(store.instantiate(declaration), "go")
    assert store.verify() == Report(50, 50, 0, ())


@pytest.mark.parametrize("rows", [2, 3, 2000])
def test_start_keys_are_read_page_by_page(
    rows: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        store.instantiate(BATCH, idempotency_key=f"key-{number}")
    monkeypatch.setattr(verify, "PAGE_ROWS", rows)
    assert store.verify().ok


def test_a_store_opened_for_reading_only_is_verified(path: Path) -> None:
    copy_healthy(path)
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        assert store.verify().ok
        with pytest.raises(StorageFailure):
            store.instantiate(BATCH)


def test_verifying_changes_no_byte(path: Path) -> None:
    copy_healthy(path)
    before = path.read_bytes()
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify()
        for id in healthy()[1].values():
            store.verify(id)
    assert path.read_bytes() == before


def test_a_closed_store_is_not_verified(store: Store) -> None:
    store.close()
    with pytest.raises(StorageFailure):
        store.verify()


def test_a_failure_to_read_is_no_finding_but_a_refusal(path: Path) -> None:
    """And whichever statement it was, the next verification works."""
    copy_healthy(path)
    faults = Faults()
    with faulty_store(path, faults) as store:
        for code in ("io", "busy", "locked", "full", "cantopen"):
            faults.on("SELECT", CODES[code])
            with pytest.raises(StorageFailure):
                store.verify()
            assert store.verify().ok


def test_damage_reported_by_sqlite_is_a_finding(path: Path) -> None:
    copy_healthy(path)
    faults = Faults()
    with faulty_store(path, faults) as store:
        for start in ("SELECT digest", "SELECT\n    h.sequence_number"):
            for _ in range(2):  # the second reading, which passes over odd text, fails as well
                faults.on(start, CODES["corrupt"])
            assert found(store.verify()) == [(None, None, 10)]
            faults.clear()
        assert store.verify().ok


def test_an_odd_reading_leaves_the_connection_as_it_was(path: Path) -> None:
    """What is read after a text that is no UTF-8 is refused again, not passed over."""

    def tamper(file: File) -> None:
        where = "instance_id = ? AND sequence_number = 2"
        id = file.names["last"]
        file.execute(f"UPDATE history SET actor_ref = CAST(x'ff' AS TEXT) WHERE {where}", id)

    with tampered(path, tamper) as store:
        assert found(store.verify()) == [("last", 2, 5)]
        with pytest.raises(StorageFailure) as refusal:
            store.history(healthy()[1]["last"])
        assert refusal.value.kind == "unreadable"


@pytest.mark.parametrize("table", ["audit_declarations", "audit_records", "audit_start_keys"])
def test_a_damaged_table_that_goes_in_circles_is_a_finding(
    table: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows do not stand in the order of their keys, so that a page leads back to its start."""
    for number in range(3):
        store.instantiate(BATCH, idempotency_key=f"key-{number}")
    monkeypatch.setattr(verify, "PAGE_ROWS", 3)
    read = store._database.read
    first_page: list[Row] = []

    def circle(statement: Statement, rows: list[Row]) -> list[Row]:
        nonlocal first_page
        if statement.name != table:
            return rows
        first_page = first_page or rows
        return first_page

    def circling(plan: Plan[Any], *, lenient: bool = False) -> Any:
        return read(through(plan, circle), lenient=lenient)

    monkeypatch.setattr(store._database, "read", circling)
    report = store.verify()
    assert [finding.invariant for finding in report.findings] == [10]
    assert "after the key" in report.findings[0].what
