"""Many who send the same instance the same event: one of them is first, and its hook is called."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock

import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import machine
from tests.support.postgres import database

CALLERS = 16


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        with interlock.open(f"sqlite:///{tmp_path}/store.db") as store:
            yield store
    else:
        with database() as url, interlock.open(url) as store:
            yield store


def test_D02_of_many_who_expect_the_same_version_one_moves_it_and_calls_the_hook(
    store: Store,
) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: a, do: [count]}}}}")
    calls, lock = Counter[str](), Lock()
    engine = interlock.Engine(store)

    @engine.hook("count")
    def count(tx: interlock.Tx) -> None:
        with lock:
            calls[tx.id] += 1

    order = engine.start(definition)
    barrier = Barrier(CALLERS)

    def send(_: int) -> str:
        barrier.wait()
        try:
            return order.send("go", expected_version=1)
        except interlock.VersionConflict as conflict:
            return conflict.reason

    with ThreadPoolExecutor(CALLERS) as pool:
        answers = Counter(pool.map(send, range(CALLERS)))
    assert answers == {"a": 1, "version-conflict": CALLERS - 1}
    assert (order.version, calls[order.id], len(order.history())) == (2, 1, 1)


def test_D01_of_two_who_leave_a_state_one_does(store: Store) -> None:
    definition = machine("""
initial: s
states: {s: {on: {archive: archived, activate: active}}, archived: {}, active: {}}
""")
    engine = interlock.Engine(store)
    for _ in range(10):
        order = engine.start(definition)
        barrier = Barrier(2)

        def send(event: str, order: interlock.Handle = order, barrier: Barrier = barrier) -> str:
            barrier.wait()
            try:
                return order.send(event)
            except interlock.InvalidTransition as refusal:
                return refusal.reason

        with ThreadPoolExecutor(2) as pool:
            answers = sorted(pool.map(send, ["archive", "activate"]))
        assert answers[1] == "invalid-transition" or answers[0] == "invalid-transition"
        (entry,) = order.history()
        assert entry.from_state == "s"
        assert entry.to_state in answers


def test_no_change_of_data_is_lost(store: Store) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}, m: {type: integer, default: 0}}
initial: a
states: {a: {on: {add: {set: {n: "data.n + 1"}}, count: {do: [count]}}}}
""")
    engines = [interlock.Engine(store) for _ in range(4)]
    for engine in engines:
        engine.hook("count")(lambda tx: tx.data.update(m=tx.data["m"] + 1))
    order = engines[0].start(definition)

    def work(place: int) -> None:
        mine = engines[place % len(engines)].get(order.id)
        for turn in range(10):
            mine.send("add" if turn % 2 else "count")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert order.data == {"n": 40, "m": 40}
    assert len(order.history()) == 80
    assert [order.data_at(0), order.data_at(80)] == [{"n": 0, "m": 0}, {"n": 40, "m": 40}]
    assert store.verify().ok
