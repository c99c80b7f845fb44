"""Lines of Python."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.typed.layout import bracketed, docstring, named, text_literal, union

TEXTS = st.text() | st.text("\"'\\\n\t{}x ", max_size=8)


@given(TEXTS)
def test_a_literal_reads_back_as_its_text(text: str) -> None:
    written = text_literal(text)
    assert ast.literal_eval(written) == text
    assert written.isprintable()


@pytest.mark.parametrize(
    ("text", "written"), [("a", '"a"'), ('"', "'\"'"), ("it's", '"it\'s"'), ("\n", '"\\n"')]
)
def test_a_literal_takes_the_quotes_that_need_fewer_escapes(text: str, written: str) -> None:
    assert text_literal(text) == written


@given(st.lists(TEXTS, min_size=1))
def test_a_docstring_ends_where_it_should(lines: list[str]) -> None:
    source = "\n".join(docstring(lines))
    (statement,) = ast.parse(source).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)


def test_what_is_too_long_for_a_line_stands_one_a_line() -> None:
    assert bracketed("f(", ["a", "b"], ")") == ["f(a, b)"]
    assert bracketed("f(", ["a" * 40, "b" * 60], ")") == [
        "f(",
        f"    {'a' * 40},",
        f"    {'b' * 60},",
        ")",
    ]
    assert union("X", ["A", "B"]) == ["X = A | B"]
    assert union("X" * 20, ["A" * 40, "B" * 30]) == [
        f"{'X' * 20} = (",
        f"    {'A' * 40} | {'B' * 30}",
        ")",
    ]
    assert union("X", ["A" * 50, "B" * 60]) == [
        "X = (",
        f"    {'A' * 50}",
        f"    | {'B' * 60}",
        ")",
    ]


def test_a_long_list_of_names_is_cut() -> None:
    assert named("abc") == "`a`, `b`, `c`"
    assert named("abcdefg") == "`a`, `b`, `c`, `d`, `e`, …"
