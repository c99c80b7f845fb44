"""CEL's own conformance tests, on the language of expressions.

They belong to others (google/cel-spec, Apache-2.0) and are not kept here; without them the tests
are skipped. The score is exactly the one that `docs/conformance.md` states: what passes today must
pass tomorrow, and what starts to pass is to be counted.
"""

import json
import math
from collections import Counter
from functools import cached_property
from typing import Any

import pytest

from interlock.language.expressions.expression import (
    ExpressionError,
    ExpressionFault,
    Scope,
    compile_expression,
)
from interlock.language.expressions.properties import BOOLEAN, INTEGER, NUMBER, STRING, Type
from tests.docs.pages import DOCS, table
from tests.support.shared import needed

PLAIN = {"int": INTEGER, "double": NUMBER, "string": STRING, "bool": BOOLEAN}

# An infinite result is none here: neither JSON nor a store could keep it.
INFINITE = {f"fp_math/fp_math/{x}" for x in ("divide_zero", "fp_overflow_positive")} | {
    "fp_math/fp_math/fp_overflow_negative"
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    file = needed("cel/simple-no-proto.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


class Names(Scope):
    """The names of one test, in place of ours."""

    def __init__(self, types: dict[str, Type]) -> None:
        super().__init__()
        self.__dict__["given"] = types

    @cached_property
    def roots(self) -> dict[str, Type]:
        return self.__dict__["given"]


def type_of(value: dict[str, Any]) -> Type | None:
    ((kind, content),) = value.items()
    if kind == "list":
        inner = {type_of(item) for item in content}
        (only,) = inner if len(inner) == 1 else (None,)
        return None if only is None else Type("array", of=only)
    return PLAIN.get(kind)


def python(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "list":
        return [python(item) for item in content]
    if kind == "map":
        return {python(key): python(item) for key, item in content}
    if kind == "double":
        return float(content)
    return bytes.fromhex(content) if kind == "bytes" else content


def same(found: Any, expected: dict[str, Any]) -> bool:
    ((kind, content),) = expected.items()
    match kind:
        case "list":
            return (
                isinstance(found, list)
                and len(found) == len(content)
                and all(map(same, found, content))
            )
        case "map":
            return isinstance(found, dict) and found == python(expected)
        case "double":
            number = float(content)
            if math.isnan(number):
                return isinstance(found, float) and math.isnan(found)
            return isinstance(found, float) and found == number
        case _:
            wanted = python(expected)
            return type(found) is type(wanted) and found == wanted


def run(row: dict[str, Any]) -> str:
    """Say how a test comes out: passed, failed or outside."""
    types = {name: type_of(value) for name, value in row.get("bindings", {}).items()}
    if (
        row.get("check_only")
        or row.get("container")
        or any(found is None for found in types.values())
    ):
        return "outside"
    scope = Names({name: found for name, found in types.items() if found is not None})
    try:
        expression = compile_expression(row["expr"], scope, wants=None)
    except ExpressionFault:
        return "outside"
    try:
        value = expression.evaluate(
            {name: python(value) for name, value in row.get("bindings", {}).items()}
        )
    except ExpressionError:
        return "passed" if "error" in row["expect"] else "failed"
    expected = row["expect"]
    return "passed" if "value" in expected and same(value, expected["value"]) else "failed"


def test_the_language_agrees_with_cel_wherever_it_takes_a_test(rows: list[dict[str, Any]]) -> None:
    results = [(row["file"], run(row)) for row in rows]
    failed = {
        f"{row['file']}/{row['section']}/{row['name']}"
        for row, (_, result) in zip(rows, results, strict=True)
        if result == "failed"
    }
    assert failed == INFINITE
    found = Counter(results) + Counter(("all", result) for _, result in results)
    results_of = ("passed", "failed", "outside")
    stated = {
        (file, result): int(count)
        for file, *counts in table(DOCS / "conformance.md", "tests", *results_of)
        for result, count in zip(results_of, counts, strict=True)
        if int(count)
    }
    assert stated == dict(found)
