"""Payloads, texts and entries: what goes in comes out, or is refused with its place."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock import PURGED, Entry
from interlock.core.payload import canonical, decode_payload, encode_payload
from interlock.core.text import clipped, nearest, text_fault
from tests.support.inside import inside
from tests.support.strategies import blanks, examples

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(JSON)
@examples(200)
def test_a_payload_comes_back_as_it_was(value: Any) -> None:
    content = encode_payload(value)
    back = decode_payload(content)
    assert repr(back) == repr(value)
    assert json.loads(content.decode()) == value


@given(JSON, JSON)
@examples(100)
def test_equal_values_have_one_canonical_form(one: Any, two: Any) -> None:
    assert (canonical(one) == canonical(two)) == same(one, two)


def same(one: Any, two: Any) -> bool:
    """Equal as JSON is: 1, 1.0 and true are three things, the order of keys is none."""
    if type(one) is not type(two):
        return False
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, float):
        return bool(one == two and math.copysign(1, one) == math.copysign(1, two))
    return bool(one == two)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a", None),
        (" a ", None),
        ("\u200b", None),
        ("x" * 512, None),
        ("\u00e9" * 256, None),
        ("\U0001f600" * 128, None),
        ("", "is blank"),
        ("\t", "is blank"),
        ("a\0", "holds a NUL character"),
        ("\ud800", "holds a lone surrogate, which has no UTF-8 form"),
        ("x" * 513, "is 513 bytes long, more than the 512 allowed"),
        ("\u00e9" * 257, "is 514 bytes long, more than the 512 allowed"),
        (None, "is not text but NoneType"),
        (b"a", "is not text but bytes"),
        (1, "is not text but int"),
    ],
)
def test_what_is_text(text: object, fault: str | None) -> None:
    assert text_fault(text, 512) == fault


@given(blanks())
@examples(50)
def test_blank_is_blank(text: str) -> None:
    assert text_fault(text, 512) == "is blank"


def test_long_texts_are_cut_for_messages() -> None:
    assert clipped("x" * 80) == "x" * 80
    assert clipped("x" * 81) == "x" * 79 + "\u2026"
    assert len(clipped("x" * 10**6)) == 80


def test_the_nearest_word() -> None:
    assert nearest("tesing", ["testing", "tested"]) == "testing"
    assert nearest("zzz", ["testing"]) is None
    assert nearest("a", []) is None


ENTRY = Entry(
    "t-1", 4, "a", "b", "go", "ann", datetime(2026, 5, 1, tzinfo=UTC), True, "why", "c", "d", "w"
)


def test_an_entry_is_frozen_and_says_its_version() -> None:
    assert ENTRY.version == 5
    with pytest.raises(AttributeError):
        ENTRY.to_state = "c"  # type: ignore[misc]
    assert ENTRY.as_dict() == {
        "transition_id": "t-1",
        "sequence_number": 4,
        "from_state": "a",
        "to_state": "b",
        "action": "go",
        "actor_ref": "ann",
        "fired_at": "2026-05-01T00:00:00+00:00",
        "guard_satisfied": True,
        "reason": "why",
        "correlation_id": "c",
        "causation_id": "d",
        "worker_id": "w",
    }
    json.dumps(ENTRY.as_dict())


def test_a_destroyed_payload_is_said_to_be_destroyed() -> None:
    """Its bytes are gone; the entry, the instance and the verification stay whole."""
    machine = {
        "states": ["a"],
        "transitions": [{"from_state": "a", "action": "go", "to_state": "a"}],
        "initial_state": "a",
        "terminal_states": [],
    }
    with interlock.open("sqlite://") as store:
        id = store.instantiate(machine, instance_metadata={"name": "Ann"})
        store.fire(id, "go", reason="personal")
        store.fire(id, "go")
        inside(store)._writer.execute("UPDATE payloads SET salt = NULL, content = NULL")
        first, second = store.history(id)
        assert first.reason is PURGED
        assert second.reason is None
        assert first.as_dict()["reason"] == {"purged": True}
        snapshot = store.snapshot(id)
        assert snapshot.metadata is PURGED
        assert snapshot.as_dict()["metadata"] == {"purged": True}
        assert store.instances() == [snapshot]
        assert store.fire(id, "go", reason="again") == "a"
        assert store.verify().ok
