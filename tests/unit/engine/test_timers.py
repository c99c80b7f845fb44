"""Timers: durable, due at their own moment, however late they are looked for, and once."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import interlock
from interlock.store.plan import Plan, Statement
from interlock.store.store import PlanRunner, Store
from tests.support.engines import BEGINNING, Clock, machine

WAITING = """
data: {due: {type: date-time, optional: true}}
events: {later: {due: {type: date-time}}}
initial: a
states:
  a:
    after: {60s: b}
    on: {stay: {do: []}, again: a, leave: c, later: {to: d, set: {due: "event.due"}}}
  b: {final: true}
  c: {on: {back: a}}
  d: {data: [due], after: {due: {at: "data.due", to: b}}}
"""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def test_a_timer_runs_out_at_its_moment_and_once(engine: interlock.Engine, clock: Clock) -> None:
    order = engine.start(machine(WAITING))
    (timer,) = order.timers
    assert (timer.state, timer.name, timer.due_at) == (
        "a",
        "60s",
        BEGINNING + timedelta(seconds=60),
    )
    clock.advance(seconds=59)
    assert engine.tick() == 0
    clock.advance(seconds=1)
    assert engine.tick() == 1
    assert (order.state, order.timers, engine.tick()) == ("b", [], 0)
    (entry,) = order.history()
    assert (entry.action, entry.actor_ref, entry.fired_at) == ("after/60s", None, clock())


@pytest.mark.parametrize(("restart", "fired"), [(45, False), (90, True)])
def test_E12_a_timer_outlives_its_process(
    engine: interlock.Engine, store: Store, clock: Clock, restart: int, fired: bool
) -> None:
    order = engine.start(machine(WAITING))
    clock.advance(seconds=restart)
    again = interlock.Engine(store)
    assert again.tick() == fired
    assert again.get(order.id).send("stay") if not fired else True  # a save moves nothing
    clock.advance(seconds=60 - restart if restart < 60 else 0)
    assert again.tick() == (not fired)
    assert order.state == "b"


def test_leaving_a_state_ends_its_timers_and_coming_back_begins_them_anew(
    engine: interlock.Engine, clock: Clock
) -> None:
    order = engine.start(machine(WAITING))
    clock.advance(seconds=30)
    order.send("leave")
    assert order.timers == []
    clock.advance(seconds=60)
    assert engine.tick() == 0
    order.send("back")
    clock.advance(seconds=30)
    assert engine.tick() == 0
    order.send("again")  # it is left and entered
    clock.advance(seconds=59)
    assert engine.tick() == 0
    order.send("stay")  # it is not
    clock.advance(seconds=1)
    assert engine.tick() == 1


@pytest.mark.parametrize(
    "due",
    ["2026-03-01T13:00:00Z", "2026-03-01T15:00:00.000+02:00", "2026-03-01T13:00:00.000000+00:00"],
)
def test_E14_and_E15_a_moment_is_a_moment_however_it_is_written(
    engine: interlock.Engine, clock: Clock, due: str
) -> None:
    order = engine.start(machine(WAITING))
    order.send("later", {"due": due})
    (timer,) = order.timers
    assert timer.due_at == BEGINNING + timedelta(hours=1)
    clock.advance(minutes=59)
    assert engine.tick() == 0
    clock.advance(minutes=1)
    assert engine.tick() == 1


@pytest.mark.parametrize("due", ["2026-03-01T13:00:00", "2026-03-01", "soon", 1])
def test_E15_a_naive_moment_is_refused(engine: interlock.Engine, due: Any) -> None:
    order = engine.start(machine(WAITING))
    with pytest.raises(interlock.InvalidRequest):
        order.send("later", {"due": due})
    assert order.state == "a"


def test_a_moment_in_the_past_is_due_at_once(engine: interlock.Engine) -> None:
    order = engine.start(machine(WAITING))
    order.send("later", {"due": "2020-01-01T00:00:00Z"})
    assert engine.tick() == 1
    assert order.state == "b"


def test_a_timer_whose_condition_is_false_is_spent(engine: interlock.Engine, clock: Clock) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a: {after: {1m: {to: b, when: "data.n > 0"}}, on: {add: {set: {n: "data.n + 1"}}}}
  b: {}
""")
    order = engine.start(definition)
    clock.advance(minutes=1)
    assert (engine.tick(), order.timers, order.history()) == (0, [], [])
    order.send("add")
    assert (engine.tick(), order.state) == (0, "a")


def test_a_timer_that_fails_is_kept_and_tried_again(engine: interlock.Engine, clock: Clock) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a: {after: {1m: {to: b, when: "1 / data.n > 0"}}, on: {add: {set: {n: "data.n + 1"}}}}
  b: {}
""")
    order = engine.start(definition)
    clock.advance(minutes=1)
    assert engine.tick() == 0
    (timer,) = order.timers
    assert (timer.failures, timer.due_at) == (1, BEGINNING + timedelta(minutes=1))
    assert "guard-error" in (timer.failure or "")
    assert engine.tick() == 0
    assert order.timers[0].failures == 1  # not before its time
    order.send("add")
    clock.advance(seconds=1)
    assert (engine.tick(), order.state, order.timers) == (1, "b", [])


def test_failures_are_tried_ever_less_often(engine: interlock.Engine, clock: Clock) -> None:
    definition = machine("initial: a\nstates: {a: {after: {1m: {to: b, do: [break]}}}, b: {}}")

    @engine.hook("break")
    def broken(tx: interlock.Tx) -> None:
        raise RuntimeError("no")

    order = engine.start(definition)
    clock.advance(minutes=1)
    tried = 0
    for _ in range(60):
        engine.tick()
        tried = order.timers[0].failures
        clock.advance(seconds=1)
    assert 5 <= tried <= 7  # at 0, 1, 3, 7, 15, 31
    clock.advance(days=1)
    engine.tick()
    assert order.timers[0].failures == tried + 1
    assert order.history() == []


def test_a_process_that_knows_no_hooks_leaves_the_timer_alone(
    engine: interlock.Engine, store: Store, clock: Clock
) -> None:
    definition = machine("initial: a\nstates: {a: {after: {1m: {to: b, do: [tell]}}}, b: {}}")
    engine.hook("tell")(lambda tx: None)
    order = engine.start(definition)
    clock.advance(minutes=1)
    with pytest.warns(RuntimeWarning, match="left alone: no hook is registered as `tell`"):
        assert interlock.Engine(store).tick() == 0
    assert order.timers[0].failures == 0
    assert engine.tick() == 1
    assert order.state == "b"


def test_timers_of_two_regions_run_beside_each_other(
    engine: interlock.Engine, clock: Clock
) -> None:
    definition = machine("""
initial: p
states:
  p:
    type: parallel
    states:
      l: {initial: a, states: {a: {after: {1m: b}}, b: {}}}
      r: {initial: x, states: {x: {after: {1m: y}}, y: {}}}
""")
    order = engine.start(definition)
    assert len(order.timers) == 2
    clock.advance(minutes=1)
    assert engine.tick() == 2
    assert order.state == "p{b|y}"


def test_many_sweeps_at_once_let_a_timer_run_out_once(
    engine: interlock.Engine, store: Store, clock: Clock
) -> None:
    calls: list[str] = []
    definition = machine("initial: a\nstates: {a: {after: {1m: {to: b, do: [tell]}}}, b: {}}")
    engine.hook("tell")(lambda tx: calls.append(tx.id))
    orders = [engine.start(definition) for _ in range(20)]
    clock.advance(minutes=1)
    with ThreadPoolExecutor(4) as pool:
        fired = sum(pool.map(lambda _: engine.tick(), range(4)))
    assert fired == 20
    assert all(len(order.history()) == 1 for order in orders)
    assert store.verify().ok


def test_a_sweep_may_be_bounded(engine: interlock.Engine, clock: Clock) -> None:
    for _ in range(5):
        engine.start(machine(WAITING))
    clock.advance(minutes=2)
    assert [engine.tick(limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_starting_warns_when_nobody_sweeps(engine: interlock.Engine, clock: Clock) -> None:
    definition = machine(WAITING)
    with pytest.warns(RuntimeWarning, match=r"swept never.*engine\.tick"):
        engine.start(definition)
    engine.tick()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.start(definition)
        clock.advance(minutes=6)
        with pytest.raises(RuntimeWarning, match="not since"):
            engine.start(definition)
        engine.start(NO_TIMERS)


NO_TIMERS = interlock.loads("machine: n\nversion: 1\ninitial: a\nstates: {a: {on: {go: b}}, b: {}}")


def test_W01_a_clock_for_tests_skips_and_leaks_no_timers(
    engine: interlock.Engine, clock: Clock
) -> None:
    definition = machine("initial: a\nstates: {a: {after: {30d: b}}, b: {final: true}}")
    for _ in range(3):
        order = engine.start(definition)
        assert engine.tick() == 0
        clock.advance(days=30)
        assert (engine.tick(), order.state) == (1, "b")
    clock.advance(days=365)
    assert engine.tick() == 0


def test_what_another_process_has_to_run_keeps_no_timer_waiting(
    engine: interlock.Engine, store: Store, clock: Clock
) -> None:
    hooked = machine("initial: a\nstates: {a: {after: {1m: {to: b, do: [tell]}}}, b: {}}")
    engine.hook("tell")(lambda tx: None)
    for _ in range(120):
        engine.start(hooked)
    clock.advance(seconds=1)
    plain = interlock.loads(
        "machine: n\nversion: 1\ninitial: a\nstates: {a: {after: {1m: b}}, b: {}}"
    )
    order = engine.start(plain)
    clock.advance(minutes=2)
    assert interlock.Engine(store).tick(limit=1) == 1
    assert order.state == "b"
    assert engine.tick() == 120


def test_an_instance_that_cannot_be_read_keeps_no_timer_waiting(
    engine: interlock.Engine, store: Store, clock: Clock
) -> None:
    definition = machine("""
data: {text: {type: string}}
initial: a
states: {a: {after: {1m: b}}, b: {}}
""")
    broken = engine.start(definition, {"text": "x" * 10_000})  # more than a process keeps
    clock.advance(seconds=1)
    whole = engine.start(definition, {"text": ""})
    destroy_payloads(store, broken.id)
    clock.advance(minutes=2)
    assert interlock.Engine(store).tick() == 1
    assert (whole.state, broken.state) == ("b", "a")
    (timer,) = broken.timers
    assert "storage-failure" in (timer.failure or "")


def destroy_payloads(store: Store, id: str) -> None:
    """Destroy what an instance began with, as whoever may do that would."""
    runs = PlanRunner(store)

    def plan() -> Plan[None]:
        yield Statement("destroy_payload", [("", id, f"{id}/0")])

    runs.write(plan)


def test_a_timer_that_is_set_anew_in_the_past_waits_for_the_next_sweep(
    engine: interlock.Engine, clock: Clock
) -> None:
    definition = machine("""
data: {due: {type: date-time}}
initial: a
states: {a: {after: {due: {at: "data.due", to: a}}}}
""")
    order = engine.start(definition, {"due": "2020-01-01T00:00:00Z"})
    assert [engine.tick(), engine.tick()] == [1, 1]
    assert len(order.history()) == 2


def test_a_clock_that_was_set_back_makes_no_timer_early(
    engine: interlock.Engine, clock: Clock
) -> None:
    definition = machine("""
initial: a
states: {a: {on: {go: c}}, c: {after: {1h: b}}, b: {}}
""")
    order = engine.start(definition)
    clock.advance(days=-2)
    order.send("go")
    clock.now = BEGINNING + timedelta(minutes=59)
    assert engine.tick() == 0
    clock.advance(minutes=1)
    assert engine.tick() == 1
