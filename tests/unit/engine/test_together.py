"""Events that wait at the same time share a commit, and nothing else."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

import interlock
from interlock.store.plan import Transaction
from interlock.store.store import Store
from tests.support.engines import Clock, machine
from tests.support.together import outcome_of, wait_until_gathered

COUNTER = machine("""
data: {n: {type: integer, default: 0}, note: {type: string, optional: true}}
events: {add: {by: {type: integer}}}
initial: open
states:
  open:
    on:
      add: {set: {n: "data.n + event.by"}}
      check: [{to: small, when: "data.n < 10"}, {to: large, when: "data.n >= 10"}]
      walk: first
      fall: edge
      close: closing
    after: {P1D: late}
  small: {on: {open: open}}
  large: {final: true}
  first: {always: second}
  second: {always: third}
  third: {on: {close: closing}}
  edge: {always: [{to: small, when: "10 / data.n > 1"}, {to: large, when: "10 / data.n <= 1"}]}
  closing: {on: {end: {to: closed, do: [tell]}}}
  closed: {final: true}
  late: {final: true}
""")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def engine(store: Store, told: list[str]) -> interlock.Engine:
    return engine_of(store, told)


def engine_of(store: Store, told: list[str]) -> interlock.Engine:
    engine = interlock.Engine(store)
    engine.hook("tell")(lambda tx: told.append(tx.id))
    engine.tick()
    return engine


@pytest.fixture
def commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[Transaction]:
    """The transactions that write, as they are driven."""
    driven: list[Transaction] = []
    run = store._database.run

    def noting(transaction: Transaction) -> Any:
        if transaction.writes:
            driven.append(transaction)
        return run(transaction)

    monkeypatch.setattr(store._database, "run", noting)
    return driven


def together(engine: interlock.Engine, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make calls that wait for one another, so that they are one batch, in their order."""
    group = engine._events
    with ThreadPoolExecutor(len(calls)) as pool:
        with group._committing:
            futures = []
            for place, call in enumerate(calls, 1):
                futures.append(pool.submit(outcome_of, call))
                wait_until_gathered(group, place)
        return [future.result(60) for future in futures]


def begun(engine: interlock.Engine, count: int, **data: Any) -> list[interlock.Handle]:
    return [engine.start(COUNTER, data) for _ in range(count)]


def test_events_that_wait_share_a_commit(
    engine: interlock.Engine, store: Store, commits: list[Transaction]
) -> None:
    orders = begun(engine, 5)
    commits.clear()
    calls = [partial(one.send, "add", {"by": n}, reason=f"{n}") for n, one in enumerate(orders)]
    assert together(engine, calls) == ["open"] * 5
    assert len(commits) == 1
    assert [one.data["n"] for one in orders] == [0, 1, 2, 3, 4]
    assert [one.history()[0].reason for one in orders] == ["0", "1", "2", "3", "4"]
    assert [len(one.timers) for one in orders] == [1] * 5
    assert store.verify().ok


def test_a_lone_event_takes_one_transaction(
    engine: interlock.Engine, commits: list[Transaction]
) -> None:
    (order,) = begun(engine, 1)
    commits.clear()
    assert order.send("walk") == "third"
    assert len(commits) == 1
    assert [entry.to_state for entry in order.history()] == ["first", "second", "third"]
    assert order.timers == []


def test_a_refusal_is_of_one_and_leaves_nothing_of_it(
    engine: interlock.Engine, store: Store
) -> None:
    """Also where it comes after what follows by itself has begun."""
    orders = begun(engine, 5)
    calls = [
        partial(orders[0].send, "walk"),
        partial(orders[1].send, "fall"),  # divides by nothing, two steps on
        partial(orders[2].send, "nope"),
        partial(orders[3].send, "add", {"to": 1}),
        partial(orders[4].send, "check"),
    ]
    answers = together(engine, calls)
    assert [getattr(answer, "reason", answer) for answer in answers] == [
        "third",
        "guard-error",
        "invalid-transition",
        "invalid-request",
        "small",
    ]
    assert [len(one.history()) for one in orders] == [3, 0, 0, 0, 1]
    assert [one.state for one in orders[1:4]] == ["open"] * 3
    assert [len(one.timers) for one in orders] == [0, 1, 1, 1, 0]
    assert store.verify().ok


def test_events_of_one_instance_follow_one_another(
    engine: interlock.Engine, store: Store, commits: list[Transaction]
) -> None:
    orders = begun(engine, 2)
    commits.clear()
    calls: list[Callable[[], Any]] = [partial(orders[0].send, "add", {"by": 5}) for _ in range(3)]
    calls += [partial(orders[1].send, "add", {"by": 1}), partial(orders[0].send, "check")]
    assert together(engine, calls) == ["open", "open", "open", "open", "large"]
    assert len(commits) == 1
    assert [one.data["n"] for one in orders] == [15, 1]
    assert [entry.action for entry in orders[0].history()] == [*["add"] * 3, "check/large"]
    assert [orders[0].data_at(number)["n"] for number in range(5)] == [0, 5, 10, 15, 15]
    assert store.verify().ok


def test_a_key_that_is_used_twice_at_once_counts_once(engine: interlock.Engine) -> None:
    (order,) = begun(engine, 1)
    calls = [partial(order.send, "add", {"by": 3}, idempotency_key="k") for _ in range(3)]
    calls.append(partial(order.send, "add", {"by": 4}, idempotency_key="k"))
    answers = together(engine, calls)
    assert answers[:3] == ["open"] * 3
    assert answers[3].reason == "idempotency-conflict"
    assert (order.data["n"], len(order.history())) == (3, 1)


def test_one_that_comes_to_need_a_hook_goes_alone(
    engine: interlock.Engine, told: list[str], store: Store
) -> None:
    orders = begun(engine, 3)
    calls = [
        partial(orders[0].send, "close"),
        partial(orders[0].send, "end"),  # which is known to call nothing where it was seen
        partial(orders[1].send, "add", {"by": 1}),
    ]
    assert together(engine, calls) == ["closing", "closed", "open"]
    assert told == [orders[0].id]
    assert store.verify().ok


def test_an_event_with_a_hook_waits_for_nobody(
    engine: interlock.Engine, told: list[str], commits: list[Transaction]
) -> None:
    (order,) = begun(engine, 1)
    order.send("close")
    commits.clear()
    with engine._events._committing:
        assert order.send("end") == "closed"
    assert told == [order.id]
    assert len(commits) == 1


def test_large_data_is_read_again(engine: interlock.Engine, store: Store) -> None:
    """What is not kept is read, beside what the batch has not written yet."""
    orders = begun(engine, 2, note="x" * 20_000)
    for order in orders:
        order.send("add", {"by": 1})
    calls = [partial(orders[n % 2].send, "add", {"by": 1}) for n in range(4)]
    assert together(engine, calls) == ["open"] * 4
    assert [one.data["n"] for one in orders] == [3, 3]
    assert store.verify().ok


def test_an_instance_that_another_has_moved_is_decided_anew(
    url: str, engine: interlock.Engine, store: Store, clock: Clock
) -> None:
    if url == "sqlite://":
        pytest.skip("nobody else connects to a store in memory")
    orders = begun(engine, 3)
    with interlock.open(url, clock=clock) as other:
        there = engine_of(other, [])
        there.get(orders[0].id).send("add", {"by": 7})
        there.get(orders[1].id).send("close")
    calls = [
        partial(orders[0].send, "add", {"by": 1}),
        partial(orders[1].send, "add", {"by": 1}),
        partial(orders[2].send, "add", {"by": 1}),
    ]
    answers = together(engine, calls)
    assert [getattr(one, "reason", one) for one in answers] == [
        "open",
        "invalid-transition",
        "open",
    ]
    assert [one.data["n"] for one in orders] == [8, 0, 1]
    assert store.verify().ok


def test_an_instance_that_another_holds_keeps_nobody_else_waiting(
    request: pytest.FixtureRequest, url: str, engine: interlock.Engine, store: Store
) -> None:
    if not url.startswith("postgresql"):
        pytest.skip("nobody holds a part of a file")
    server_database = request.getfixturevalue("server_database")
    orders = begun(engine, 3)
    schema = store._database.settings.schema  # type: ignore[attr-defined]
    answered = threading.Event()
    with psycopg.connect(server_database) as stranger:
        stranger.execute(
            f"SELECT 1 FROM {schema}.instances WHERE id = %s FOR UPDATE", [orders[0].id]
        )

        def others() -> Any:
            try:
                return outcome_of(partial(orders[1].send, "add", {"by": 1}))
            finally:
                answered.set()

        def let_go() -> None:
            assert answered.wait(30), "it waited for the stranger"
            stranger.rollback()

        letting = threading.Thread(target=let_go)
        letting.start()
        calls: list[Callable[[], Any]] = [partial(orders[0].send, "add", {"by": 1}), others]
        assert together(engine, calls) == ["open", "open"]
        letting.join()
    assert [one.data["n"] for one in orders] == [1, 1, 0]
    assert store.verify().ok
