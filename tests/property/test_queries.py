"""What a history query gives, against its plain twin `HistoryQuery.matches`."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock import Fire
from interlock.core.query import parse_query
from interlock.store.store import Store
from tests.support.machines import COMPOSED, DECOMPOSED, arrow, declare
from tests.support.strategies import examples

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
ACTIONS = ["go", "go ", COMPOSED, DECOMPOSED, "%", "_", "Go"]
STATES = ["a", "b", "A", "%"]
ACTORS = [None, "ann", "Ann", "ann ", "%", "_nn", "a\u0308"]
MACHINE = declare(
    STATES,
    [
        arrow(one, action, STATES[(place + turn) % 4])
        for place, one in enumerate(STATES)
        for turn, action in enumerate(ACTIONS)
    ],
)


@pytest.fixture(scope="module")
def store(lasting_store: Store) -> Store:
    return lasting_store


OFFSETS = st.integers(0, 6)
HISTORIES = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(ACTORS), OFFSETS), max_size=12
)


@st.composite
def bounds(draw: st.DrawFn, names: tuple[str, str], values: st.SearchStrategy[Any]) -> Any:
    low, high = sorted((draw(values), draw(values)))
    range_ = {names[0]: low, names[1]: high}
    for name in names:
        if draw(st.booleans()):
            del range_[name]
    return range_


def moment(offset: int, form: int) -> Any:
    time = BEGUN + offset * TICK
    if form == 0:
        return time.isoformat()
    return time.astimezone(timezone(timedelta(hours=-7))) if form == 1 else time


NUMBERS = st.integers(-2, 15) | st.sampled_from([-(2**70), 2**63 - 1, 2**63, 2**70])
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "from_state": st.sampled_from([*STATES, "c"]),
        "to_state": st.sampled_from([*STATES, "c"]),
        "action": st.sampled_from([*ACTIONS, "nope"]),
        "actor_ref": st.sampled_from([*ACTORS[1:], "nobody"]),
        "sequence_number": bounds(("start", "end"), NUMBERS),
        "fired_at": bounds(("after", "before"), OFFSETS),
    },
)


@given(history=HISTORIES, query=QUERIES, form=st.integers(0, 2), which=st.integers(-1, 12))
@examples(250)
def test_the_statement_means_what_the_plain_twin_says(
    store: Store, history: list[Any], query: dict[str, Any], form: int, which: int
) -> None:
    id = store.instantiate(MACHINE, instantiated_at=BEGUN)
    store.fire_many(
        [
            Fire(id, action, actor, fired_at=BEGUN + offset * TICK)
            for action, actor, offset in history
        ]
    )
    entries = store.history(id)
    assert len(entries) == len(history)
    if "fired_at" in query:
        query["fired_at"] = {name: moment(at, form) for name, at in query["fired_at"].items()}
    if 0 <= which < len(entries):
        query["transition_id"] = entries[which].transition_id
    asked = parse_query(query)
    found = store.history(id, query)
    assert found == [entry for entry in entries if asked.matches(entry)]
    assert found == [entry for entry in entries if plainly(query, entry)]


def plainly(query: dict[str, Any], entry: interlock.Entry) -> bool:
    """The meaning once more, from the words of the specification."""
    for key, wanted in query.items():
        value: Any = getattr(entry, key)
        if key == "sequence_number":
            if not wanted.get("start", value) <= value <= wanted.get("end", value):
                return False
        elif key == "fired_at":
            read = {name: as_time(bound) for name, bound in wanted.items()}
            if not read.get("after", value) <= value <= read.get("before", value):
                return False
        elif value != wanted:
            return False
    return True


def as_time(value: Any) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
