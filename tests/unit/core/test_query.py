"""History filters: what is one, what is none, and what it means."""

from collections import UserDict
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

import interlock
from interlock import Entry, InvalidQuery, InvalidRequest, NotKnown
from interlock.core.query import HistoryQuery, parse_query
from interlock.core.text import Limits
from interlock.store.store import Store
from tests.support.machines import TOGGLE

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
TEXT_KEYS = ["transition_id", "from_state", "to_state", "action", "actor_ref"]


def argument_of(query: Any) -> str:
    with pytest.raises(InvalidQuery) as caught:
        parse_query(query)
    assert caught.value.reason == "invalid-query"
    return caught.value.argument


def test_no_query_and_an_empty_one_leave_everything_open() -> None:
    assert parse_query(None) == parse_query({}) == HistoryQuery()


def test_every_axis_in_its_place() -> None:
    later = NOON + TICK
    query = {
        "transition_id": "t",
        "sequence_number": {"start": 2, "end": 5},
        "from_state": "a",
        "to_state": "b",
        "action": "go",
        "actor_ref": "ann",
        "fired_at": {"after": NOON, "before": later},
    }
    wanted = HistoryQuery("t", "a", "b", "go", "ann", 2, 5, NOON, later)
    assert parse_query(query) == wanted
    assert parse_query(dict(reversed(query.items()))) == wanted
    assert parse_query(MappingProxyType(query)) == wanted
    assert parse_query(UserDict(query)) == wanted


@pytest.mark.parametrize("key", TEXT_KEYS)
@pytest.mark.parametrize(
    "value",
    [None, "", " ", "\t\u2003", 0, 1, True, b"x", ["a"], {"is": "a"}, ("a",), "a\0", "\ud800"],
    ids=repr,
)
def test_a_text_that_is_none(key: str, value: Any) -> None:
    assert argument_of({key: value}) == key
    assert argument_of({"action": "go", key: value}) == key


@pytest.mark.parametrize("key", TEXT_KEYS)
def test_a_text_has_a_size(key: str) -> None:
    assert getattr(parse_query({key: "x" * 1024}), key) == "x" * 1024
    assert argument_of({key: "x" * 1025}) == key


@pytest.mark.parametrize(
    "value", [None, 1, "1", [1, 2], (1, 2), range(3), {1, 2}, True, NOON], ids=str
)
@pytest.mark.parametrize("key", ["sequence_number", "fired_at"])
def test_a_range_that_is_none(key: str, value: Any) -> None:
    assert argument_of({key: value}) == key


@pytest.mark.parametrize(
    "range_",
    [
        {"from": 1},
        {"start": 1, "stop": 2},
        {"after": 1},
        {1: 2},
        {None: 1},
        {("start",): 1},
        {"Start": 1},
        {"start ": 1},
    ],
    ids=str,
)
def test_a_range_of_numbers_with_other_keys(range_: Any) -> None:
    assert argument_of({"sequence_number": range_}) == "sequence_number"


@pytest.mark.parametrize("range_", [{"start": NOON}, {"from": NOON}, {"after": NOON, "x": 1}])
def test_a_range_of_times_with_other_keys(range_: Any) -> None:
    assert argument_of({"fired_at": range_}) == "fired_at"


@pytest.mark.parametrize("bound", ["start", "end"])
@pytest.mark.parametrize(
    "value", [None, "1", 1.0, 1.5, True, False, b"1", [1], float("nan"), float("inf")], ids=repr
)
def test_a_bound_that_is_no_whole_number(bound: str, value: Any) -> None:
    assert argument_of({"sequence_number": {bound: value}}) == f"sequence_number.{bound}"


@pytest.mark.parametrize("bound", ["after", "before"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "noon",
        "2026-05-01",
        "2026-05-01T12:00:00",
        NOON.replace(tzinfo=None),
        date(2026, 5, 1),
        0,
        1.5,
        True,
        [NOON],
        b"2026-05-01T12:00:00Z",
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
    ids=repr,
)
def test_a_bound_that_is_no_moment(bound: str, value: Any) -> None:
    assert argument_of({"fired_at": {bound: value}}) == f"fired_at.{bound}"


@pytest.mark.parametrize(
    ("start", "end"),
    [(2, 1), (1, 0), (0, -1), (5, -5), (-5, -10), (2**64, 2**63), (2**70, 1), (-1, -(2**70))],
)
def test_a_range_of_numbers_that_is_reversed(start: int, end: int) -> None:
    assert argument_of({"sequence_number": {"start": start, "end": end}}) == "sequence_number"


def test_a_range_of_times_that_is_reversed() -> None:
    assert argument_of({"fired_at": {"after": NOON, "before": NOON - TICK}}) == "fired_at"
    elsewhere = NOON.astimezone(timezone(timedelta(hours=3)))
    assert parse_query({"fired_at": {"after": elsewhere, "before": NOON}}).after == NOON
    assert (
        argument_of({"fired_at": {"after": "2026-05-01T12:00:00Z", "before": NOON - TICK}})
        == "fired_at"
    )


@pytest.mark.parametrize(("start", "end"), [(1, 1), (0, 0), (-3, -3), (-1, 10**30), (2**63, 2**64)])
def test_a_range_that_is_not_reversed(start: int, end: int) -> None:
    parse_query({"sequence_number": {"start": start, "end": end}})


def test_a_range_may_be_open_at_either_end_or_both() -> None:
    assert parse_query({"sequence_number": {}, "fired_at": {}}) == HistoryQuery()
    assert parse_query({"sequence_number": {"start": 3}}).start == 3
    assert parse_query({"sequence_number": {"end": 3}}).end == 3
    assert parse_query({"fired_at": {"after": "2026-05-01T14:00:00+02:00"}}).after == NOON


UNKNOWN: list[Any] = [
    "state",
    "reason",
    "Action",
    "action ",
    "fired_at.after",
    "sequence_number.start",
    "correlation_id",
    "guard_satisfied",
    "limit",
    "",
    None,
    0,
    1.5,
    ("action",),
    b"action",
    "x" * 100_000,
    "\ud800",
]


@pytest.mark.parametrize("key", UNKNOWN, ids=lambda key: repr(key)[:20])
def test_a_key_that_is_no_filter(key: Any) -> None:
    argument_of({key: "x"})
    argument_of({"action": "go", key: "x"})


def test_a_key_that_is_no_filter_comes_with_a_hint() -> None:
    with pytest.raises(InvalidQuery, match="did you mean `from_state`"):
        parse_query({"form_state": "a"})
    with pytest.raises(InvalidQuery, match=r"known keys: .*actor_ref"):
        parse_query({"zzz": "a"})


@pytest.mark.parametrize(
    "query",
    [{10**5000: "x"}, {"sequence_number": {10**5000: 1}}, {"fired_at": {10**5000: NOON}}],
    ids=["key", "number", "time"],
)
def test_a_key_too_long_to_print(query: Any) -> None:
    with pytest.raises(InvalidQuery):
        parse_query(query)


@pytest.mark.parametrize("query", [[], (), "action", 1, True, {("action", "go")}, NOON, object])
def test_a_query_that_is_no_mapping(query: Any) -> None:
    assert argument_of(query) == "query"


def test_a_text_of_another_class_is_its_text(store: Store) -> None:
    class Word(StrEnum):
        GO = "go"

    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    assert len(store.history(id, {"action": Word.GO})) == 1


def test_a_query_is_not_changed_and_changes_nothing(store: Store) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    query = {"sequence_number": {"start": 1}, "action": "go"}
    before = repr(query)
    assert store.history(id, query) == store.history(id)
    assert repr(query) == before
    assert store.snapshot(id).version == 2


def test_what_matches_nothing_is_no_refusal(store: Store) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    for query in (
        {"action": "nope"},
        {"sequence_number": {"start": 2}},
        {"sequence_number": {"end": 0}},
        {"sequence_number": {"start": 2**80}},
        {"fired_at": {"before": "1999-01-01T00:00:00Z"}},
        {"from_state": "off", "to_state": "off"},
    ):
        assert store.history(id, query) == []


def test_the_order_of_refusals(store: Store) -> None:
    """invalid-request, then not-known, then invalid-query (DESIGN, section 4.5)."""
    id = store.instantiate(TOGGLE)
    for bad in (" ", "", None, 7, "x" * 2000):
        with pytest.raises(InvalidRequest):
            store.history(bad, {"nope": 1})  # type: ignore[arg-type]
    with pytest.raises(NotKnown):
        store.history("unknown", {"nope": 1})
    with pytest.raises(NotKnown):
        store.history("unknown")
    with pytest.raises(InvalidQuery):
        store.history(id, {"nope": 1})


def test_the_stores_own_limits_hold_for_its_filters() -> None:
    """An actor that the store accepted can be asked for."""
    with interlock.open("sqlite://", limits=Limits(reference_bytes=5000)) as store:
        id, actor = store.instantiate(TOGGLE), "x" * 4000
        store.fire(id, "go", actor)
        assert len(store.history(id, {"actor_ref": actor})) == 1


ENTRY = Entry("t", 3, "a", "b", "go", None, NOON, None)


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ({}, True),
        ({"transition_id": "t"}, True),
        ({"transition_id": "T"}, False),
        ({"from_state": "a", "to_state": "b", "action": "go"}, True),
        ({"from_state": "a", "to_state": "a"}, False),
        ({"actor_ref": "ann"}, False),
        ({"sequence_number": {"start": 3, "end": 3}}, True),
        ({"sequence_number": {"start": 4}}, False),
        ({"sequence_number": {"end": 2}}, False),
        ({"fired_at": {"after": NOON, "before": NOON}}, True),
        ({"fired_at": {"after": NOON + TICK}}, False),
        ({"fired_at": {"before": NOON - TICK}}, False),
        ({"fired_at": {"after": NOON - TICK, "before": NOON + TICK}}, True),
        ({"action": "go", "fired_at": {"before": NOON - TICK}}, False),
    ],
)
def test_both_bounds_are_inclusive(query: dict[str, Any], matches: bool) -> None:
    assert parse_query(query).matches(ENTRY) is matches
