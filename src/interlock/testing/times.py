"""The contract of times: which are accepted, how they are kept, and that they order nothing."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from interlock.core.rejection import InvalidRequest
from interlock.testing.base import (
    MICROSECOND,
    NOON,
    SECOND,
    TOGGLE,
    Clock,
    Opening,
    Part,
    numbers,
    refusal,
    untouched,
)

NO_TIMES: list[Any] = [
    NOON.replace(tzinfo=None),
    "2026-05-01T12:00:00",
    "2026-05-01",
    "noon",
    "",
    " ",
    0,
    1777636800.0,
    True,
    b"2026-05-01T12:00:00Z",
    NOON.date(),
    "2026-13-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
]

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


class Times(Part):
    def test_the_store_stamps_what_is_given_no_time_by_its_clock(self, opening: Opening) -> None:
        clock = Clock(NOON + 7 * MICROSECOND)
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE)
        clock.now += 3 * MICROSECOND
        store.fire(id, "go")
        assert store.snapshot(id).instantiated_at == NOON + 7 * MICROSECOND
        (entry,) = store.history(id)
        assert entry.fired_at == NOON + 10 * MICROSECOND
        assert entry.fired_at.tzinfo is UTC

    def test_a_time_in_the_future_is_refused_by_name(self, opening: Opening) -> None:
        clock = Clock()
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE)
        soon = NOON + MICROSECOND
        with untouched(store):
            told = refusal(InvalidRequest, store.fire, id, "go", fired_at=soon)
            assert (told.argument, told.instance_id, told.action) == ("fired_at", id, "go")
            told = refusal(InvalidRequest, store.instantiate, TOGGLE, instantiated_at=soon)
            assert told.argument == "instantiated_at"
        clock.now = soon
        assert store.fire(id, "go", fired_at=soon) == "on"
        store.instantiate(TOGGLE, instantiated_at=soon)

    def test_a_time_before_the_birth_is_refused_and_that_of_the_birth_is_not(
        self, opening: Opening
    ) -> None:
        clock = Clock(NOON + timedelta(days=1))
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE, instantiated_at=NOON)
        with untouched(store):
            told = refusal(InvalidRequest, store.fire, id, "go", fired_at=NOON - MICROSECOND)
            assert (told.argument, told.instance_id) == ("fired_at", id)
        assert store.fire(id, "go", fired_at=NOON) == "on"

    def test_what_is_no_time_or_has_no_offset_is_refused_and_not_guessed(
        self, opening: Opening
    ) -> None:
        store = opening(clock=Clock())
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for value in NO_TIMES:
                told = refusal(InvalidRequest, store.fire, id, "go", fired_at=value)
                assert told.argument == "fired_at", value
                told = refusal(InvalidRequest, store.instantiate, TOGGLE, instantiated_at=value)
                assert told.argument == "instantiated_at", value

    def test_one_moment_is_one_moment_however_it_is_said(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        id = store.instantiate(TOGGLE, instantiated_at="2026-04-30T00:00:00Z")
        spellings: list[Any] = [
            NOON,
            NOON.astimezone(timezone(timedelta(hours=5, minutes=45))),
            "2026-05-01T12:00:00Z",
            "2026-05-01T12:00:00.000000+00:00",
            "2026-05-01T08:30-03:30",
            "20260501T120000Z",
        ]
        for said in spellings:
            store.fire(id, "go", fired_at=said)
        assert [entry.fired_at for entry in store.history(id)] == [NOON] * 6
        assert all(entry.fired_at.tzinfo is UTC for entry in store.history(id))

    def test_a_time_comes_back_to_the_microsecond(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        born = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
        times = [born, born + 999_992 * MICROSECOND, born.replace(microsecond=999_999)]
        times += [datetime(2024, 2, 29, 23, 59, 59, place, tzinfo=UTC) for place in (1, 499_999)]
        id = store.instantiate(TOGGLE, instantiated_at=born)
        for time in times:
            store.fire(id, "go", fired_at=time)
        assert store.snapshot(id).instantiated_at == born
        assert [entry.fired_at for entry in store.history(id)] == times
        for time in times:
            found = store.history(id, {"fired_at": {"after": time, "before": time}})
            assert [entry.fired_at for entry in found] == [time]

    def test_the_years_1_and_9999_are_times(self, opening: Opening) -> None:
        store = opening(clock=Clock(LAST))
        id = store.instantiate(TOGGLE, instantiated_at=FIRST)
        times = [FIRST, LAST, FIRST + MICROSECOND, datetime(1969, 12, 31, 23, tzinfo=UTC)]
        for time in times:
            store.fire(id, "go", fired_at=time)
        store.fire(id, "go")
        assert store.snapshot(id).instantiated_at == FIRST
        assert [entry.fired_at for entry in store.history(id)] == [*times, LAST]
        assert numbers(store.history(id, {"fired_at": {"before": FIRST}})) == [1]
        assert numbers(store.history(id, {"fired_at": {"after": LAST}})) == [2, 5]
        assert store.snapshot(id, at=FIRST).version == 2
        assert store.verify().ok

    def test_order_is_the_number_and_never_the_time(self, opening: Opening) -> None:
        store = opening(clock=Clock(NOON + timedelta(days=1)))
        id = store.instantiate(TOGGLE, instantiated_at=NOON - timedelta(hours=1))
        times = [NOON, NOON, NOON, NOON - 2 * SECOND, NOON + SECOND]
        for time in times:
            store.fire(id, "go", fired_at=time)
        history = store.history(id)
        assert numbers(history) == [1, 2, 3, 4, 5]
        assert [entry.fired_at for entry in history] == times
        assert store.current(id) == "on"

    def test_a_clock_that_steps_back_stops_nothing_and_dates_nothing_before_the_birth(
        self, opening: Opening
    ) -> None:
        clock = Clock()
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE)
        for step in (-SECOND, timedelta(hours=1), -timedelta(minutes=30), -timedelta(days=40_000)):
            clock.now += step
            store.fire(id, "go")
        late = store.instantiate(TOGGLE)
        store.fire(late, "go")
        assert [entry.fired_at for entry in store.history(id)] == [
            NOON,
            NOON + timedelta(hours=1) - SECOND,
            NOON + timedelta(minutes=30) - SECOND,
            NOON,
        ]
        assert numbers(store.history(id)) == [1, 2, 3, 4]
        assert store.snapshot(late).instantiated_at == clock.now
        assert store.verify().ok

    def test_a_given_time_is_held_against_the_clock_of_the_moment(self, opening: Opening) -> None:
        clock = Clock()
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE)
        clock.now = NOON - SECOND
        for time in (NOON, NOON - SECOND):  # in the future; before the birth
            told = refusal(InvalidRequest, store.fire, id, "go", fired_at=time)
            assert told.argument == "fired_at"
        assert store.history(id) == []
