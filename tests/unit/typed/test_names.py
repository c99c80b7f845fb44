"""Identifiers for names that are any text."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.typed.names import Names, class_name, field_name, plain_name

TEXTS = st.text() | st.text("ab .{|}_-1ﬁéÅ名→", max_size=6) | st.sampled_from(keyword.kwlist)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("draft", "Draft"),
        ("testing.assay", "TestingAssay"),
        ("p{a|x}", "PAX"),
        ("in-review_now", "InReviewNow"),
        ("gotoWork", "GotoWork"),
        ("3 days", "State3Days"),
        ("→", "State"),
        ("geprüft", "Geprüft"),
        ("審査", "審査"),
        ("ﬁnal", "Final"),  # as Python reads the ligature
    ],
)
def test_a_state_is_named_after_its_path(text: str, name: str) -> None:
    assert class_name(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("begin-testing", "begin_testing"),
        ("beginTesting", "beginTesting"),
        ("_x_", "x"),
        ("2nd", "event2nd"),
        ("!", "event"),
    ],
)
def test_an_event_keeps_its_capitals(text: str, name: str) -> None:
    assert plain_name(text, "event") == name


def test_what_python_would_mangle_is_altered() -> None:
    assert [field_name(name) for name in ("__x", "__doc__", "_x", "x_")] == ["x", "doc", "_x", "x_"]


def test_names_are_told_apart_and_hide_nothing() -> None:
    names = Names({"Order"})
    given = [names.give(name) for name in ("A", "A", "A_2", "A", "Order", "Order", "class")]
    assert given == ["A", "A_2", "A_2_2", "A_3", "Order_", "Order_2", "class_"]


@given(st.lists(TEXTS))
def test_any_texts_get_identifiers_of_their_own(texts: list[str]) -> None:
    reserved = {"State", "A", "event"}
    names = Names(reserved)
    given_ = [names.give(class_name(text)) for text in texts]
    given_ += [names.give(plain_name(text, "event")) for text in texts]
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in given_)
    assert len({*given_} | reserved) == len(given_) + len(reserved)
