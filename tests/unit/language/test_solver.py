"""Each operator's formula, at every pair of telling values, is what the evaluator says."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from interlock.language.expressions.cel_ast import Identifier, walk
from interlock.language.expressions.literals import EPOCH, SPAN_MAX
from interlock.language.proof.bounds import box
from interlock.language.proof.solver import Formulas, Pair
from tests.property.test_prove import VALUES
from tests.support.expressions import Compiled, expression

pytest.importorskip("z3")

ARITHMETIC = [
    *(f"a {sign} b" for sign in "+-*/%"),
    *(f"u {sign} 2u" for sign in "+-*/%"),
    *(f"r {sign} {other}" for sign in "+-*/" for other in ("r", "0.1", "0.0", "-2.0")),
    "-a",
    "-r",
    "int(u)",
    "uint(a)",
    "p ? a : b / a",
    "size(s)",
    's + "é"',
    "data.due - data.since",
    'data.due + duration("1h")',
    'data.due - duration("1h")',
    'data.wait + duration("-1h")',
]
TRUTHS = [
    *(f"a {sign} b" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"r {sign} r / r" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"r {sign} 0.0" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f's {sign} "EU"' for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"data.due {sign} data.since" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    "a / b > 1 && b > 0",
    "a / b > 1 || b > 0",
    "!(a / b > 1)",
    "a / b > 1 ? p : b == 1",
    "b > 0 ? a / b > 1 : p",
    "(a / b > 1) == p",
    "a in [1, 2 / b, b]",
    "[1, 6 / b].exists(x, x == a)",
    "[1, 6 / b].all(x, x == a)",
    "[1, b].exists_one(x, 6 / x == a)",
    "[0, b].all(x, 6 / x > a)",
    's.startsWith("E")',
    's.endsWith("U")',
    's.contains("é")',
    's == "\\\\u{45}"',
]


def samples(guard: Compiled) -> Iterator[dict[str, Any]]:
    names = sorted({n.name for n in walk(guard.tree) if isinstance(n, Identifier)} & VALUES.keys())
    for chosen in product(*(VALUES[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def as_scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        value -= EPOCH
    return value // timedelta(microseconds=1) * 1000 if isinstance(value, timedelta) else value


def at(formulas: Formulas, term: Any, sample: dict[str, Any]) -> Any:
    known = []
    for name, value in sample.items():
        if (leaf := formulas.leaves.get(name)) is not None:
            known.append((leaf.formula[0], formulas.constant(as_scalar(value), leaf.type)))
    # Once leaves `"" == "EU"` as it is.
    return formulas.z3.simplify(formulas.z3.simplify(formulas.z3.substitute(term, *known)))


def made() -> Formulas:
    return Formulas(optional=lambda _: False, presence={}, known=lambda *_: [], precise=True)


@pytest.mark.parametrize("source", ARITHMETIC)
def test_arithmetic(source: str) -> None:
    guard, formulas = expression(source), made()
    found = formulas.value(guard.tree, {})
    for sample in samples(guard):
        if abs(as_scalar(sample.get("data.wait", 0))) > SPAN_MAX:
            continue  # the formula leaves open what comes of these
        expected = guard.program.eval(data=sample).value()
        failed = isinstance(expected, str) and not isinstance(sample.get("s"), str)
        ok = at(formulas, found.ok, sample)
        assert formulas.z3.is_true(ok) or formulas.z3.is_false(ok)
        assert formulas.z3.is_false(ok) == failed, (sample, expected)
        if failed:
            continue
        term = at(formulas, found.term, sample)
        if isinstance(expected, float) and math.isnan(expected):
            assert term.isNaN(), sample
            continue
        constant = formulas.constant(as_scalar(expected), guard.tree.type)
        assert formulas.z3.is_true(formulas.z3.simplify(term == constant)), (sample, expected, term)


@pytest.mark.parametrize("source", TRUTHS)
def test_truths(source: str) -> None:
    guard, formulas = expression(source), made()
    pair = formulas.truth(guard.tree, {})
    for sample in samples(guard):
        expected = guard.truth(sample)
        found = Pair(*(at(formulas, term, sample) for term in pair))
        assert formulas.z3.is_true(found.yes) == (expected is True), (sample, expected)
        assert formulas.z3.is_true(found.no) == (expected is False), (sample, expected)


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("shape", ["a {} 2", "2 {} a", "!(a {} 2)", "!(2 {} a) && a != 7"])
def test_bounds_of_one_variable_are_exact(shape: str, sign: str) -> None:
    guard = expression(shape.format(sign))
    for wanted in (True, False):
        bounds = box(guard.tree, wanted)
        assert bounds is not None
        for value in (-5, 0, 1, 2, 3, 4):
            holds = guard.truth({"a": value}) is wanted
            if "&&" not in shape or wanted:
                assert (value in bounds["a"]) == holds, value
            else:
                assert not holds or "a" not in bounds or value in bounds["a"], value


@pytest.mark.parametrize("source", ["data.due - data.wait", "data.wait + data.wait"])
def test_of_spans_too_long_to_count_nothing_is_said(source: str) -> None:
    guard, formulas = expression(source), made()
    found = formulas.value(guard.tree, {})
    sample = {"data.due": VALUES["data.due"][0], "data.wait": timedelta(days=-365 * 400)}
    for term in found:
        left = at(formulas, term, sample)
        assert not formulas.z3.is_false(left)
        assert not formulas.z3.is_int_value(left)
