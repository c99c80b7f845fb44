"""How findings are shown and sorted."""

import json
import pickle
from dataclasses import replace

from interlock.language import DefinitionError, Diagnostic, in_order

FOUND = Diagnostic(
    code="unknown-state",
    message="unknown state `payed`",
    hint="did you mean `paid`?",
    file="orders.yaml",
    line=12,
    column=9,
    path="transitions[2].to_state",
    source_line="    to: payed",
)
LINE = "orders.yaml:12:9: error[unknown-state]: unknown state `payed` (did you mean `paid`?)"


def test_one_line() -> None:
    assert str(FOUND) == LINE
    assert str(replace(FOUND, hint=None, severity="warning")) == (
        "orders.yaml:12:9: warning[unknown-state]: unknown state `payed`"
    )
    assert str(replace(FOUND, file=None, hint=None)).startswith("12:9: error[")
    assert str(replace(FOUND, line=None, column=None)).startswith("orders.yaml: error[")
    assert str(Diagnostic(code="c", message="m")) == "error[c]: m"


def test_the_source_line_with_a_caret() -> None:
    assert FOUND.show() == (
        f"{LINE}\n   12 |     to: payed\n      |         ^ transitions[2].to_state"
    )
    assert replace(FOUND, source_line=None).show() == LINE
    assert replace(FOUND, path="").show().endswith("|         ^")


def test_the_source_line_is_only_for_showing() -> None:
    assert replace(FOUND, source_line=None) == FOUND
    assert "source_line" not in repr(FOUND)


def test_the_caret_stands_under_its_character() -> None:
    shown = replace(FOUND, source_line="日本\té: x", column=4).show().splitlines()
    assert shown[1] == "   12 | 日本\\té: x"
    assert shown[2] == "      | " + " " * 6 + "^ transitions[2].to_state"


def test_a_long_line_is_shown_in_part() -> None:
    shown = replace(FOUND, source_line="a" * 500 + "X" + "b" * 500, column=501).show().splitlines()
    assert len(shown[1]) == len("  501 | ") + 2 * 60
    assert shown[1][shown[2].index("^")] == "X"


def test_nothing_a_file_holds_breaks_the_line_or_drives_the_terminal() -> None:
    hostile = "a\nb\r\x1b[31m\u202e\u2028\ud800\x85"
    found = Diagnostic(
        code="c",
        message=hostile,
        hint=hostile,
        file=hostile,
        line=1,
        column=1,
        path=hostile,
        source_line=hostile,
    )
    assert str(found).isprintable()
    assert [line.isprintable() for line in found.show().split("\n")] == [True] * 3
    found.show().encode()


def test_as_dict() -> None:
    assert json.loads(json.dumps(FOUND.as_dict())) == {
        "code": "unknown-state",
        "severity": "error",
        "message": "unknown state `payed`",
        "hint": "did you mean `paid`?",
        "file": "orders.yaml",
        "line": 12,
        "column": 9,
        "path": "transitions[2].to_state",
    }


def test_order_is_that_of_places() -> None:
    places = [(None, None), (1, 2), (1, 10), (2, 1), (10, 1)]
    ordered = [replace(FOUND, line=line, column=column) for line, column in places]
    assert in_order(reversed(ordered)) == ordered
    other = replace(FOUND, file="a.yaml", line=99)
    assert in_order([*ordered, other])[0] == other


def test_the_error_holds_all_in_order() -> None:
    error = DefinitionError([FOUND, replace(FOUND, line=3, hint=None)])
    assert [found.line for found in error.diagnostics] == [3, 12]
    assert str(error) == f"orders.yaml:3:9: error[unknown-state]: unknown state `payed`\n{LINE}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
