"""Moments: aware inside, whole microseconds in the record, nothing guessed."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.instant import from_microseconds, parse_instant, to_microseconds
from interlock.store.store import Store
from tests.support.machines import TOGGLE
from tests.support.strategies import examples

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
COUNTS = st.integers(to_microseconds(NOON) - 60 * 10**15, 250_000_000 * 10**9)
ANY = st.builds(
    lambda count, zone: from_microseconds(count).astimezone(zone), COUNTS, st.just(UTC) | OFFSETS
)


@given(ANY)
@examples(300)
def test_a_moment_is_the_same_moment_in_every_spelling(moment: datetime) -> None:
    for spelling in (moment, moment.isoformat(), moment.astimezone(UTC).isoformat()):
        read = parse_instant(spelling)
        assert read == moment
        assert read.tzinfo is UTC
        assert from_microseconds(to_microseconds(read)) == moment


@given(st.integers(to_microseconds(datetime.min.replace(tzinfo=UTC)), 253_402_300_799_999_999))
@examples(300)
def test_microseconds_are_exact(count: int) -> None:
    assert to_microseconds(from_microseconds(count)) == count


def test_the_epoch_and_before() -> None:
    assert to_microseconds(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert to_microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert from_microseconds(-1).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-01T12:00:00Z",
        "2026-05-01T12:00:00+00:00",
        "2026-05-01 14:00:00+02:00",
        "2026-05-01T06:30:00-05:30",
        "2026-05-01T12:00Z",
        "20260501T120000Z",
        "2026-05-01T12:00:00.000000Z",
        "2026-05-01T12:00:00,000Z",
    ],
)
def test_texts_that_are_this_noon(text: str) -> None:
    assert parse_instant(text) == NOON


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "noon",
        "now",
        "2026-05-01T12:00:00",
        "2026-05-01",
        "2026-02-30T12:00:00Z",
        "2026-05-01T25:00:00Z",
        "2026-05-01T12:00:00+25:00",
        "1777636800",
        "\ud800",
        "2026-05-01T12:00:00\ud800",
        NOON.replace(tzinfo=None),
        date(2026, 5, 1),
        NOON.timetz(),
        timedelta(1),
        1777636800,
        0.5,
        True,
        None,
        b"2026-05-01T12:00:00Z",
        ["2026-05-01T12:00:00Z"],
        {},
        object,
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=repr,
)
def test_what_is_no_moment(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^(is not|has no offset|lies outside)"):
        parse_instant(value)


class NoOffset(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None


def test_a_time_zone_without_an_offset_is_none() -> None:
    with pytest.raises(ValueError, match="has no offset"):
        parse_instant(NOON.replace(tzinfo=NoOffset()))


def test_the_hour_that_is_there_twice() -> None:
    try:
        zone = ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        pytest.skip("this system has no time zones")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=zone)
    second = first.replace(fold=1)
    assert parse_instant(second) - parse_instant(first) == timedelta(hours=1)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 7, 20, 20, 17, 40, 123_456, tzinfo=UTC),
        datetime(2026, 5, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_a_store_gives_back_the_same_moment(store: Store, moment: datetime) -> None:
    """N05: same value, same type, to the microsecond."""
    id = store.instantiate(TOGGLE, instantiated_at=moment)
    store.fire(id, "go", fired_at=moment)
    assert store.snapshot(id).instantiated_at == moment
    (entry,) = store.history(id)
    assert entry.fired_at == moment
    assert type(entry.fired_at) is datetime
    assert entry.fired_at.tzinfo is UTC
