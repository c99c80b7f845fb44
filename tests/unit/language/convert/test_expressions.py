"""ECMAScript's conditions and values as terms, simplified, and in CEL with the same value."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.language.convert.cel import Mixed, emit, kind_of
from interlock.language.convert.ecma import Broken, parse
from interlock.language.convert.terms import (
    Lit,
    Name,
    Op,
    Term,
    Unreadable,
    names,
    op,
    size,
    states,
    substitute,
)
from interlock.language.expressions.expression import Scope, compile_expression
from interlock.language.expressions.properties import read_properties

KINDS: dict[str, str | None] = {"i": "integer", "r": "number", "b": "boolean", "s": "string"}


@pytest.mark.parametrize(
    ("text", "cel"),
    [
        ("i === 10 && !b", "data.i == 10 && !data.b"),
        ("i !== 10 || b", "data.i != 10 || data.b"),
        ("i eq 1 and not b or i ge 2", "data.i == 1 && !data.b || data.i >= 2"),
        ("(i + 1) * 2 - -i", "(data.i + 1) * 2 - -data.i"),
        ("i - (1 - i)", "data.i - (1 - data.i)"),
        ("(i < 1) == b", "(data.i < 1) == data.b"),
        ("b ? i : i + 1", "data.b ? data.i : data.i + 1"),
        ("(b ? i : 2) + 1", "(data.b ? data.i : 2) + 1"),
        ("Math.pow(i, 3)", "data.i * data.i * data.i"),
        ("'it\\'s' + s", '"it\'s" + data.s'),
        ('"a\\n"', '"a\\n"'),
        ("1 + 2 * 3", "7"),
        ("7 / 2", "3.5"),
        ("true && b", "data.b"),
        ("b || true", "true"),
        ("!!b", "data.b"),
        ("- - i", "data.i"),
        ("'a' + 'b' == 'ab'", "true"),
        ("b ? i : i", "data.i"),
    ],
)
def test_a_text_is_read_and_written_in_cel(text: str, cel: str) -> None:
    assert emit(parse(text)) == cel


@pytest.mark.parametrize(
    "text",
    ["f()", "a.b", "a[0]", "x = 1", "a,b", "1 +", "", "?", "In(x)", "Math.pow(i, x)", "`a`",
     "Math.pow(i, 99)", "x ? 1", "'\\x41'", "a ;", "9" * 400, "1e999", "[x]", "{a: x}", "i % 2",
     "+" * 10, "i" + "+i" * 300, "(" * 40 + "1" + ")" * 40, "!" * 60 + "b", "a" * 5000],
)  # fmt: skip
def test_what_is_more_than_the_small_part_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


@pytest.mark.parametrize("text", ["{p1: 'v1'", "(1", "1)", "'a", '"a', "[1}", "f(]"])
def test_what_no_processor_could_read_is_broken(text: str) -> None:
    with pytest.raises(Broken):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["i + b", "i == s", "b < b", "!i", "i && b", "b ? i : s", "-s", "s - s", "s / i", "i == null",
     "[1] < [2]"],
)  # fmt: skip
def test_kinds_that_do_not_go_together_are_told(text: str) -> None:
    with pytest.raises(Mixed):
        kind_of(parse(text), KINDS)


def test_a_row_of_any_length_that_is_read_can_be_walked() -> None:
    term = parse("+".join(["i"] * 125))
    assert size(substitute(term, {"i": parse("i + 1")})) == 125 * 3 + 124
    assert names(term) == {"i"}
    assert emit(term).count("data.i") == 125


def test_states_that_are_asked_for_are_told() -> None:
    assert states(parse("In('a') && !In('b') || b")) == {"a", "b"}


TERMS = st.recursive(
    st.sampled_from([Name("i"), Name("j")]) | st.integers(-9, 9).map(lambda n: Lit("integer", n)),
    lambda inner: (
        st.builds(op, st.sampled_from(["+", "-", "*"]), inner, inner)
        | st.builds(lambda a: op("neg", a), inner)
    ),
    max_leaves=8,
)
TESTS = st.recursive(
    st.builds(op, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), TERMS, TERMS),
    lambda inner: (
        st.builds(op, st.sampled_from(["&&", "||", "==", "!="]), inner, inner)
        | st.builds(lambda a: op("!", a), inner)
        | st.builds(lambda a, b, c: op("?:", a, b, c), inner, inner, inner)
    ),
    max_leaves=6,
)
VALUES = {"i": 3, "j": -2}


def value_of(term: Term) -> int | bool:
    """Reckon by the plainest reading."""
    match term:
        case Lit(_, value):
            return value
        case Name(name):
            return VALUES[name]
        case Op("?:", (test, yes, no)):
            return value_of(yes) if value_of(test) else value_of(no)
        case Op("!", (inner,)):
            return not value_of(inner)
        case Op("neg", (inner,)):
            return -value_of(inner)
        case Op(sign, (one, two)):
            a, b = value_of(one), value_of(two)
            return {
                "+": a + b, "-": a - b, "*": a * b, "==": a == b, "!=": a != b, "<": a < b,
                "<=": a <= b, ">": a > b, ">=": a >= b, "&&": a and b, "||": a or b,
            }[sign]  # fmt: skip
        case _:
            raise AssertionError(term)


@settings(max_examples=200, deadline=None)
@given(TESTS)
def test_what_is_written_in_cel_has_the_same_value(term: Term) -> None:
    scope = Scope(read_properties({"i": {"type": "integer"}, "j": {"type": "integer"}}))
    text = emit(term)
    assert compile_expression(text, scope).evaluate({"data": VALUES}) is bool(value_of(term))
    assert value_of(parse(text.replace("data.", ""))) == value_of(term)
