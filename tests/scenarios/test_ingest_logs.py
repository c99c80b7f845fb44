"""Whole logs: the example that is kept here, and real ones where they are to be had."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

import interlock
from examples.make_orders import SKIPPING, write_orders
from interlock import GuardNotSatisfied, Store, Terminal
from interlock.core.declaration import check_declaration
from interlock.eventlog import discover, ingest, read_log
from tests.unit.eventlog.logs import everything, shared

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDERS = EXAMPLES / "orders.csv"


@pytest.fixture
def store() -> Iterator[Store]:
    with interlock.open("sqlite://") as opened:
        yield opened


def machine(name: str) -> dict:
    return json.loads((EXAMPLES / f"{name}.machine.json").read_text())


# the examples


def test_the_machines_of_the_examples_are_well_formed() -> None:
    for path in EXAMPLES.glob("*.machine.json"):
        assert check_declaration(json.loads(path.read_text())) == []
    assert any("guard" in transition for transition in machine("orders")["transitions"])


def test_the_log_of_orders_is_what_its_program_makes() -> None:
    out = io.StringIO()
    write_orders(out)
    assert ORDERS.read_text() == out.getvalue()


def test_the_log_of_orders_shows_what_real_logs_do() -> None:
    events = list(read_log(ORDERS))
    times = defaultdict(list)
    for event in events:
        assert isinstance(event.time, datetime)
        times[event.case].append(event.time)
    steps = [step for case in times.values() for step in pairwise(case)]
    assert len(times) == 60
    assert len(events) > 300
    assert sum(one.case != other.case for one, other in pairwise(events)) > 200, "interleaved"
    assert sum(one == other for one, other in steps) > 10, "equal times"
    assert sum(one > other for one, other in steps) > 5, "backward times"


def test_orders_that_skip_a_step_are_refused(store: Store) -> None:
    report = ingest(store, machine("orders"), ORDERS, assert_guards=True)
    assert (report.cases, report.conforming) == (60, 55)
    assert {refusal.case for refusal in report.refusals} == {f"A-{1000 + n}" for n in SKIPPING}
    assert report.reasons == {"invalid-transition": 5}


def test_orders_without_their_guards_stop_at_the_refund(store: Store) -> None:
    report = ingest(store, machine("orders"), ORDERS)
    assert report.reasons == {"invalid-transition": 5, "guard-not-satisfied": 5}
    guarded = [row for row in report.refusals if row.reason == "guard-not-satisfied"]
    assert {(row.state, row.action) for row in guarded} == {("returning", "refund")}


def test_the_story_of_the_batch(store: Store) -> None:
    batch = store.instantiate(machine("batch-qualification"), actor_ref="system-planner")
    assert store.fire(batch, "begin-testing", "lab-tech-rivera") == "testing"
    with pytest.raises(GuardNotSatisfied, match="QP-sign-off"):
        store.fire(batch, "release", "qp-director-santos")
    assert store.fire(batch, "release", "qp-director-santos", True) == "released"
    with pytest.raises(Terminal):
        store.fire(batch, "reject-batch")


# real logs


@pytest.mark.parametrize(
    ("name", "cases", "events"),
    [
        ("roadtraffic100traces.csv", 100, 390),
        ("running-example.xes", 6, 42),
        pytest.param("receipt.csv", 1434, 8577, marks=pytest.mark.slow),
        pytest.param(ORDERS, 60, 303, id="orders.csv"),
    ],
)
def test_a_log_conforms_to_what_is_discovered_from_it(
    tmp_path: Path, name: str | Path, cases: int, events: int
) -> None:
    log = shared(name) if isinstance(name, str) else name
    found = discover(read_log(log))
    assert check_declaration(found) == []
    with interlock.open(f"sqlite:///{tmp_path}/log.db?synchronous=normal") as store:
        report = ingest(store, found, log)
        assert (report.cases, report.conforming, report.refused) == (cases, cases, 0)
        assert (report.events, report.recorded) == (events, events)
        before = everything(store)
        assert len(before) == cases
        happened = Counter(event.action for event in read_log(log))
        assert Counter(entry.action for entries in before.values() for entry in entries) == happened
        again = ingest(store, found, log)
        assert (again.conforming, again.recorded, again.recognised) == (cases, 0, events)
        assert everything(store) == before


def test_the_permits_against_another_reader() -> None:
    log = shared("receipt.csv")
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = [(event.case, event.action, event.actor) for event in read_log(log)]
    assert read == [
        (row["case:concept:name"], row["concept:name"], row["org:resource"] or None) for row in rows
    ]
    assert len({event.action for event in read_log(log)}) == 27
