"""Time that is moved by hand, and timers that run out by it."""

import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

import interlock
from interlock.language import loads
from interlock.testing import ManualClock, elapse, ticking

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

TIMED = loads(
    """
machine: timed
initial: a
data: {n: {type: integer, default: 0}}
states:
  a: {after: {1h: {to: b}}}
  b: {after: {30m: {to: c, set: {n: "data.n + 1"}}, P1D: late}}
  c: {after: {1m: {to: end, when: {check: open}}}, on: {go: a}}
  late: {final: true}
  end: {final: true}
"""
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_it_shows_the_same_until_it_is_moved(clock: ManualClock) -> None:
    assert clock() == clock.now == NOON
    assert clock.advance(timedelta(seconds=1)) == NOON + timedelta(seconds=1)
    assert clock.advance("1h30m") == clock() == NOON + timedelta(hours=1, minutes=30, seconds=1)
    assert clock.move_to(datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == datetime(
        2026, 6, 1, tzinfo=UTC
    )


@pytest.mark.parametrize("by", [timedelta(microseconds=-1), "P1M", "soon"])
def test_it_does_not_go_back_nor_by_what_is_no_length(
    clock: ManualClock, by: timedelta | str
) -> None:
    with pytest.raises(ValueError, match=r"does not go back|P1M|soon"):
        clock.advance(by)
    with pytest.raises(ValueError, match="does not go back"):
        clock.move_to(NOON - timedelta(seconds=1))
    with pytest.raises(ValueError, match="no offset"):
        clock.move_to(datetime(2027, 1, 1))  # noqa: DTZ001
    assert clock() == NOON


def test_threads_that_move_it_at_once_move_it_by_all_they_say(clock: ManualClock) -> None:
    def move() -> None:
        for _ in range(1000):
            clock.advance(timedelta(microseconds=1))

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock() == NOON + timedelta(microseconds=4000)


@pytest.mark.filterwarnings("ignore:.*has timers.*:RuntimeWarning")
def test_each_timer_runs_out_at_its_own_moment(clock: ManualClock) -> None:
    with interlock.open("sqlite://", clock=clock) as store:
        engine = interlock.Engine(store)
        answers = [False, False, True]
        engine.guard("open")(lambda tx: answers.pop(0))
        timed = engine.start(TIMED)
        assert elapse(engine, "59m") == 0
        assert elapse(engine, "3h") == 2  # `a` after an hour, `b` half an hour later, and no P1D
        fired = [entry.fired_at - NOON for entry in timed.history()]
        assert fired == [timedelta(hours=1), timedelta(hours=1, minutes=30)]
        assert clock() == NOON + timedelta(hours=3, minutes=59)
        assert (timed.state, timed.data) == ("c", {"n": 1})
        assert answers == [False, True]  # the one minute of `c` is over, and its guard said no
        timed.send("go")
        elapse(engine, "P1D")
        assert timed.state == "c"
        timed.send("go")
        elapse(engine, "P1D")
        assert timed.state == "end"
        assert clock() == NOON + timedelta(days=2, hours=3, minutes=59)


def test_a_store_without_such_a_clock_is_told_so() -> None:
    with (
        interlock.open("sqlite://") as store,
        pytest.raises(ValueError, match="has no ManualClock"),
    ):
        elapse(interlock.Engine(store), "1h")


@pytest.mark.filterwarnings("ignore:.*has timers.*:RuntimeWarning")
def test_a_thread_sweeps_for_as_long_as_the_block_lasts(clock: ManualClock) -> None:
    with interlock.open("sqlite://", clock=clock) as store:
        engine = interlock.Engine(store)
        engine.guard("open")(lambda tx: True)
        timed = engine.start(TIMED)
        with ticking(engine):
            clock.advance("1h")
            until = time.monotonic() + 30
            while timed.state == "a" and time.monotonic() < until:
                time.sleep(0.001)
        assert timed.state == "b"
        clock.advance("30m")
        assert timed.state == "b"


def test_what_a_sweep_raises_comes_out_of_the_block() -> None:
    class Broken(interlock.Engine):
        swept = threading.Event()

        def tick(self, *, limit: int | None = None) -> int:
            self.swept.set()
            raise ZeroDivisionError

    def sweep(engine: Broken) -> None:
        with ticking(engine):
            assert engine.swept.wait(30)

    with interlock.open("sqlite://") as store, pytest.raises(ZeroDivisionError):
        sweep(Broken(store))
