"""Expressions agree with Python wherever both have an answer."""

import operator
from contextlib import suppress
from decimal import Decimal
from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.language.expressions.cel_ast import Call, Constant, Identifier, Node, decode
from interlock.language.expressions.evaluator import compile_text
from interlock.language.expressions.expression import (
    ExpressionError,
    ExpressionFault,
    Scope,
    compile_expression,
)
from interlock.language.expressions.properties import read_properties

SCOPE = Scope(
    read_properties(
        {
            "a": {"type": "decimal", "scale": 2},
            "b": {"type": "decimal", "scale": 4},
            "n": {"type": "integer"},
            "s": {"type": "string"},
        }
    )
)
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
RECKON = {"+": operator.add, "-": operator.sub, "*": operator.mul}
GUARDS = {sign: compile_expression(f"data.a {sign} data.b", SCOPE) for sign in COMPARE}


def money(places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(-100_000, 100_000, places=places) | st.sampled_from(
        [Decimal(0), Decimal("0.1"), Decimal("0.2"), Decimal("0.3")]
    )


@given(money(2), money(4))
def test_decimals_compare_as_pythons_do(a: Decimal, b: Decimal) -> None:
    values = {"data": {"a": f"{a:f}", "b": b}}
    for sign, guard in GUARDS.items():
        assert guard.evaluate(values) is COMPARE[sign](a, b)


@given(money(2), money(4), st.integers(-100, 100), st.sampled_from([*RECKON]))
def test_decimals_reckon_as_pythons_do(a: Decimal, b: Decimal, n: int, sign: str) -> None:
    values = {"data": {"a": a, "b": b, "n": n}}
    reckon = RECKON[sign]
    for text, expected in (
        (f"data.a {sign} data.b", reckon(a, b)),
        (f"data.b {sign} data.n", reckon(b, n)),
        (f"data.a {sign} {b:f}", reckon(a, b)),
        (f"{n} {sign} data.a", reckon(n, a)),
    ):
        assert compile_expression(text, SCOPE, wants=None).evaluate(values) == expected, text


@given(money(2), money(6), st.sampled_from([*COMPARE]))
def test_decimals_compare_with_written_numbers(a: Decimal, b: Decimal, sign: str) -> None:
    guard = compile_expression(f"data.a {sign} {b:f}", SCOPE)
    assert guard.evaluate({"data": {"a": a}}) is COMPARE[sign](a, b)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_text_equals_itself_and_its_literal(text: str) -> None:
    literal = "".join(f"\\U{ord(char):08x}" for char in text)
    guard = compile_expression(f'data.s == "{literal}" && size(data.s) == {len(text)}', SCOPE)
    assert guard.evaluate({"data": {"s": text}}) is True


PIECES = st.sampled_from(
    [
        *("data.a", "data.b", "data.n", "data.s", "now", "actor", "true", "x", "null", "1", "0.5"),
        *("(", ")", "[", "]", "{", "}", "!", "-", "+", "*", "/", "%", "<", "==", "!=", "in", "&&"),
        *("||", "?", ":", ",", ".", "has(", "size(", "exists(", ".all(x,", "//", "\\", "\0"),
        *("'x'", '"y"', "\ud800", "é", "1u", "b''", "r''", "$"),
    ]
)


def refused_with_a_place(text: str) -> bool:
    try:
        guard = compile_expression(text, SCOPE, wants=None)
    except ExpressionFault as fault:
        said = (fault.code, str(fault).encode() != b"", "evaluator" not in fault.message)
        return 0 <= fault.offset <= len(text) and said == (f"expression-{said[0][11:]}", True, True)
    with suppress(ExpressionError):
        guard.evaluate({"data": {"a": "1", "b": "2", "n": 3, "s": "x"}, "actor": "x"})
    return True


@given(st.lists(PIECES, max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_compiled_or_refused_with_a_place(text: str) -> None:
    assert refused_with_a_place(text)


FLAGS = Scope(read_properties({name: {"type": "boolean"} for name in "pqrs"}))


def bracketed(parts: tuple[str, str]) -> str:
    return parts[0].format(parts[1])


def logic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Join with or without brackets, which may stand where none are needed."""
    sides = st.tuples(inner, st.sampled_from(["&&", "||", "==", "!="]), inner)
    choices = st.tuples(inner, inner, inner)
    return st.one_of(
        st.tuples(st.just("({})"), inner).map(bracketed),
        st.tuples(st.just("!({})"), inner).map(bracketed),
        sides.map(lambda three: " ".join(three)),
        choices.map(lambda three: "({} ? {} : {})".format(*three)),
    )


LOGIC = st.recursive(st.sampled_from([f"data.{name}" for name in "pqrs"]), logic, max_leaves=8)


def in_brackets(tree: Node) -> str:
    """Write the logic of a tree in Python, every part in brackets."""
    match tree:
        case Constant():
            return str(tree.value)
        case Identifier():
            return tree.name.removeprefix("data.")
        case Call(function="_?_:_", arguments=(test, yes, no)):
            return f"({in_brackets(yes)} if {in_brackets(test)} else {in_brackets(no)})"
        case Call(function="!_", arguments=(inner,)):
            return f"(not {in_brackets(inner)})"
        case Call(arguments=(one, other)):
            sign = {"_&&_": "and", "_||_": "or", "_==_": "==", "_!=_": "!="}[tree.function]
            return f"({in_brackets(one)} {sign} {in_brackets(other)})"
        case _:
            raise AssertionError(tree)


@given(LOGIC)
def test_brackets_and_precedence_are_those_of_the_evaluator_itself(text: str) -> None:
    """The text as it was written, read by the evaluator alone, comes to the same for all values."""
    try:
        expression = compile_expression(text, FLAGS)
    except ExpressionFault:
        assume(False)
        return
    names = tuple((f"data.{name}", "bool") for name in "pqrs")
    plain = in_brackets(decode(compile_text(text, names).serialised))
    for values in product([False, True], repeat=4):
        data = dict(zip("pqrs", values, strict=True))
        expected = eval(plain, {}, data)  # made here, of four names
        assert expression.evaluate({"data": data}) is expected, plain
