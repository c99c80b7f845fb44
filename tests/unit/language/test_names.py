"""Names: what is one, what looks like one, and how a message writes it."""

import pytest

from interlock.language.names import (
    RESERVED,
    alike_hint,
    event_fault,
    looks,
    name_fault,
    nearest_hint,
    spelled,
)


@pytest.mark.parametrize(
    "name", ["a", "QP-sign-off", "two words", "承認", "a@b", "a+b", "x\u200dy"]
)
def test_any_text_without_separators_is_a_name(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    ["", " ", "\u00a0", " a", "a\t", "a.b", "a/b", "{a", "a}", "a|b", "x" * 513, "a\0b",
     "\u00e9" * 257],
)  # fmt: skip
def test_what_separates_is_blank_or_too_long_is_no_name(name: str) -> None:
    assert name_fault(name) is not None


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_word_is_the_name_of_no_event(name: str) -> None:
    assert event_fault(name) is not None
    assert event_fault(f"{name}d") is None


@pytest.mark.parametrize(
    ("one", "other", "written"),
    [
        ("caf\u00e9", "cafe\u0301", (r"caf\u00e9", r"cafe\u0301")),
        ("pay", "pay ", ("pay", r"pay\u0020")),
        ("pay", "p\u200bay", ("pay", r"p\u200bay")),
        ("pay", "pay\ufeff", ("pay", r"pay\ufeff")),
        ("pay", "\u202epay", ("pay", r"\u202epay")),
        ("a b", "a\u2003b", ("a b", r"a\u2003b")),
        ("a b", "a  b", ("a b", "a  b")),
        ("a", "a\u3164", ("a", r"a\u3164")),
        ("a", "a\U000e0101", ("a", r"a\U000e0101")),
        ("\u212b", "\u00c5", (r"\u212b", r"\u00c5")),
    ],
)
def test_two_names_that_look_alike_are_written_so_that_they_differ(
    one: str, other: str, written: tuple[str, str]
) -> None:
    assert looks(one) == looks(other)
    assert (spelled(one), spelled(other)) == written
    assert alike_hint(other, one)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("pay", "Pay"), ("a b", "ab"), ("1", "l")])
def test_names_that_a_reader_can_tell_apart_do_not_look_alike(one: str, other: str) -> None:
    assert looks(one) != looks(other)
    assert alike_hint(one, other) is None


def test_of_known_names_the_one_that_looks_alike_comes_before_the_nearest() -> None:
    assert nearest_hint("payd", ["paid", "open"]) == "did you mean `paid`?"
    assert "look alike" in (nearest_hint("open\u200b", ["opem", "open"]) or "")
    assert nearest_hint("xyz", ["open"]) is None


def test_a_plain_name_is_written_as_it_is() -> None:
    assert [spelled(name) for name in ("QP-sign-off", "two words", "жук", "承認")] == [
        "QP-sign-off", "two words", "жук", "承認",
    ]  # fmt: skip
