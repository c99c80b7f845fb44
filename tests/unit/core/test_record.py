"""The digests of the record: any single change shows, and no two records look alike."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.record import (
    ChangeRow,
    Genesis,
    HistoryRow,
    change_digest,
    entry_digest,
    genesis_digest,
    payload_digest,
)
from tests.support.strategies import examples

ROW = HistoryRow(
    sequence_number=2,
    transition_id="t-2",
    from_state="testing",
    action="release",
    to_state="released",
    actor_ref="qp",
    fired_at=1_777_636_800_000_000,
    guard_satisfied=1,
    reason_id="t-2",
    reason_digest=b"r" * 32,
    correlation_id="c",
    causation_id="d",
    worker_id="w",
    idempotency_key="k",
    request_digest=b"q" * 32,
    entry_digest=b"e" * 32,
)
GENESIS = Genesis(
    id="wf-1",
    declaration_digest="d" * 64,
    instantiated_at=1_777_636_800_000_000,
    actor_ref="planner",
    subject_ref="batch",
    metadata_id="wf-1",
    metadata_digest=b"m" * 32,
    idempotency_key="k",
    request_digest=b"q" * 32,
    definition_digest="f" * 64,
    genesis_digest=b"g" * 32,
)
BEFORE = b"p" * 32


def other(value: Any) -> list[Any]:
    """Other values that a field may have, the closest ones with them."""
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, bytes):
        return [value[:-1] + b"\0", b"\0" + value[1:], None]
    return [value + " ", value.upper(), "x" + value, "", None]


# Its own digest is what is being made.
LEFT_OUT = {"entry_digest", "genesis_digest"}
OPTIONAL = {
    "actor_ref",
    "subject_ref",
    "guard_satisfied",
    "reason_id",
    "reason_digest",
    "metadata_id",
    "metadata_digest",
    "correlation_id",
    "causation_id",
    "worker_id",
    "idempotency_key",
    "request_digest",
    "definition_digest",
}


@pytest.mark.parametrize("field", HistoryRow._fields)
def test_changing_any_field_of_an_entry_changes_its_digest(field: str) -> None:
    first = entry_digest(BEFORE, "wf-1", ROW)
    for value in other(getattr(ROW, field)):
        if value is None and field not in OPTIONAL:
            continue
        changed = entry_digest(BEFORE, "wf-1", ROW._replace(**{field: value}))
        assert (changed == first) == (field in LEFT_OUT), (field, value)


def test_an_entry_is_bound_to_its_instance_and_to_what_came_before() -> None:
    first = entry_digest(BEFORE, "wf-1", ROW)
    assert first == entry_digest(BEFORE, "wf-1", ROW)
    assert entry_digest(BEFORE, "wf-2", ROW) != first
    assert entry_digest(b"P" + BEFORE[1:], "wf-1", ROW) != first
    assert len(first) == 32


@pytest.mark.parametrize("field", Genesis._fields)
def test_changing_any_field_of_a_genesis_changes_its_digest(field: str) -> None:
    first = genesis_digest(GENESIS)
    for value in other(getattr(GENESIS, field)):
        if value is None and field not in OPTIONAL:
            continue
        changed = genesis_digest(GENESIS._replace(**{field: value}))
        assert (changed == first) == (field in LEFT_OUT), (field, value)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
MAYBE = st.none() | TEXTS
ROWS = st.builds(
    HistoryRow,
    st.integers(1, 300),
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    MAYBE,
    st.integers(-(10**15), 10**15),
    st.sampled_from([None, 1]),
    st.none(),
    st.none() | st.binary(min_size=32, max_size=32),
    MAYBE,
    MAYBE,
    MAYBE,
    MAYBE,
    st.none() | st.binary(min_size=32, max_size=32),
    st.just(b""),
)


@given(ROWS, ROWS)
@examples(150)
def test_two_entries_have_one_digest_only_when_they_are_one(
    one: HistoryRow, two: HistoryRow
) -> None:
    same = one == two
    assert (entry_digest(BEFORE, "i", one) == entry_digest(BEFORE, "i", two)) == same


@given(ROWS, st.data())
@examples(150)
def test_moving_text_from_one_field_to_the_next_changes_the_digest(
    row: HistoryRow, data: st.DataObject
) -> None:
    """Fields are told apart, wherever the characters stand."""
    places = [place for place, value in enumerate(row) if isinstance(value, str) and value]
    place = data.draw(st.sampled_from(places))
    value = row[place]
    assert isinstance(value, str)
    neighbours = [near for near in (place - 1, place + 1) if isinstance(row[near], str | None)]
    for near in neighbours:
        if HistoryRow._fields[near] in {*LEFT_OUT, "guard_satisfied", "reason_digest"}:
            continue
        if HistoryRow._fields[near] == "request_digest":
            continue
        moved: list[Any] = list(row)
        moved[place], moved[near] = value[:-1], (row[near] or "") + value[-1]  # type: ignore[operator]
        changed = HistoryRow(*moved)
        assert entry_digest(BEFORE, "i", changed) != entry_digest(BEFORE, "i", row)


@pytest.mark.parametrize("field", sorted(OPTIONAL - {"guard_satisfied"}))
def test_absent_is_not_empty(field: str) -> None:
    """No store writes an empty text or digest; somebody with the file in hand may."""
    of_entry = field in HistoryRow._fields
    empty: Any = b"" if field.endswith("_digest") else ""
    digests = set()
    value: Any
    for value in (None, empty):
        if of_entry:
            digests.add(entry_digest(BEFORE, "wf-1", ROW._replace(**{field: value})))
        if field in Genesis._fields:
            digests.add(genesis_digest(GENESIS._replace(**{field: value})))
    assert len(digests) == 2 * (of_entry + (field in Genesis._fields))


def test_a_payload_is_vouched_for_with_its_salt() -> None:
    digest = payload_digest(b"s" * 16, b"content")
    assert digest == payload_digest(b"s" * 16, b"content")
    assert len(digest) == 32
    assert payload_digest(b"t" * 16, b"content") != digest
    assert payload_digest(b"s" * 16, b"Content") != digest
    assert payload_digest(b"s" * 15, b"scontent") != digest
    assert payload_digest(b"s" * 16 + b"c", b"ontent") != digest


def test_the_digests_never_change_between_releases() -> None:
    """Stores that exist were written with these; a new form needs a new tag and its own digests."""
    plain = GENESIS._replace(definition_digest=None)  # as it was before there were engines
    assert genesis_digest(plain).hex() == GENESIS_HEX
    assert genesis_digest(GENESIS).hex() == OWNED_HEX


def test_a_change_of_data_follows_what_was_before() -> None:
    row = ChangeRow(2, 1, "patch", "t-2/1", b"r" * 32, b"")
    first = change_digest(BEFORE, "wf-1", row)
    others = [
        change_digest(b"q" * 32, "wf-1", row),
        change_digest(BEFORE, "wf-2", row),
        *(
            change_digest(BEFORE, "wf-1", row._replace(**changed))
            for changed in (
                {"sequence_number": 3},
                {"ordinal": 2},
                {"kind": "event"},
                {"payload_id": "t-2/2"},
                {"payload_digest": b"s" * 32},
                {"sequence_number": 21, "ordinal": 0},
            )
        ),
    ]
    assert len({first, *others}) == 1 + len(others)
    assert change_digest(BEFORE, "wf-1", row._replace(change_digest=b"x")) == first
    assert entry_digest(BEFORE, "wf-1", ROW).hex() == ENTRY_HEX
    assert payload_digest(b"s" * 16, b"content").hex() == PAYLOAD_HEX


OWNED_HEX = "7e677c1ac1ade67a385a6a2662642107b76b79be45e330c6476fb04fa17f5fae"
GENESIS_HEX = "a61cc76bb0c4be3dc5a7fda995e6b1ab039d823073086239d735727dc43416b4"
ENTRY_HEX = "681b3c041e6613f6e69faa93bb0d6629f0cfde150941eb32c3b42ed2a059c8a1"
PAYLOAD_HEX = "fa46366401907c0cfce7cf5c7be8243eba4369116a155188a5d667c47c99584d"
