"""Identities: UUID version 7 as the standard lays it out, and the family a name tells."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.identity import root_of, uuid7
from interlock.store.store import Store
from tests.support.machines import TOGGLE
from tests.support.strategies import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPAN = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - EPOCH) // timedelta(
    microseconds=1
)
MOMENTS = st.integers(0, SPAN).map(lambda count: EPOCH + timedelta(microseconds=count))
NUMBERS = st.integers(0, 2**62 - 1)


@given(MOMENTS, NUMBERS)
@examples(300)
def test_version_variant_and_time_are_where_they_belong(moment: datetime, number: int) -> None:
    text = uuid7(moment, number)
    read = uuid.UUID(text)
    assert str(read) == text
    assert (read.version, read.variant) == (7, uuid.RFC_4122)
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    assert read.int >> 80 == microseconds // 1000
    assert read.int >> 64 & 0xFFF == microseconds % 1000
    assert read.int & (2**62 - 1) == number


@given(MOMENTS, MOMENTS, NUMBERS, NUMBERS)
@examples(300)
def test_identities_sort_by_the_time_they_were_made(
    one: datetime, two: datetime, first: int, second: int
) -> None:
    if one != two:
        texts = uuid7(one, first), uuid7(two, second)
        assert (texts[0] < texts[1]) == (one < two)
        assert (texts[0].encode() < texts[1].encode()) == (one < two)


def test_the_edges() -> None:
    assert uuid7(EPOCH, 0) == "00000000-0000-7000-8000-000000000000"
    assert uuid7(EPOCH, 2**62 - 1) == "00000000-0000-7000-bfff-ffffffffffff"
    assert uuid7(EPOCH + timedelta(microseconds=999), 0) == "00000000-0000-73e7-8000-000000000000"
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert uuid.UUID(uuid7(last, 5)).version == 7


@pytest.mark.parametrize(
    ("id", "root"),
    [("a", "a"), ("a.b", "a"), ("a.b.c", "a"), ("", ""), (".a", ""), ("a.", "a"), ("a..b", "a")],
)
def test_the_root_is_what_stands_before_the_first_dot(id: str, root: str) -> None:
    assert root_of(id) == root


def test_a_store_never_gives_an_identity_twice(store: Store) -> None:
    ids = [store.instantiate(TOGGLE) for _ in range(200)]
    assert len(set(ids)) == 200
    for id in ids[:20]:
        for _ in range(20):
            store.fire(id, "go")
    entries = [entry.transition_id for id in ids for entry in store.history(id)]
    assert len({*entries, *ids}) == 600
    for text in (*entries, *ids):
        assert uuid.UUID(text).version == 7
        assert root_of(text) == text
