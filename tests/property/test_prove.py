"""The prover against the evaluator, on generated expressions and values.

What a formula, or the bounds, say of an expression at given values is what the evaluator says of
it. And no values contradict a proof.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from interlock.language.expressions.literals import EPOCH
from interlock.language.proof.bounds import Box, box, cases
from interlock.language.proof.claim import truth
from interlock.language.proof.prove import (
    All,
    Disjoint,
    Domain,
    Impossible,
    Not,
    Overlap,
    Possible,
    Prover,
    Undecided,
)
from interlock.language.proof.prove import Test as When  # pytest would take it for a class of tests
from interlock.language.proof.solver import Formulas, TooCoarse
from tests.support.expressions import Compiled, expression

pytest.importorskip("z3")

INTS = [0, 1, -1, 2, 3, 7, -5, 2**53 + 1, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 0.1, 0.5, 0.30000000000000004, -1.5, 2.0, 7.0, 1e308, 5e-324]
TEXTS = ["", "E", "EU", "EUU", "é😀", "zU", "\\u{45}", "\uffff"]
MOMENTS = [
    datetime(2, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1500, 2, 3, tzinfo=UTC),
    datetime(9000, 2, 3, tzinfo=UTC),
]
SPANS = [
    timedelta(0),
    timedelta(hours=1),
    timedelta(microseconds=-1),
    timedelta(days=365 * 200),
    timedelta(days=-365 * 400),
]
VALUES: dict[str, Any] = {
    "a": INTS,
    "b": INTS,
    "u": [0, 1, 3, 2**64 - 1],
    "s": TEXTS,
    "p": [True, False],
    "r": DOUBLES,
    "data.due": MOMENTS,
    "data.since": MOMENTS,
    "data.wait": SPANS,
    "data.tags": [[], ["EU"], ["E", "zU"], ["EU", "EU", "E"]],
}

values = st.fixed_dictionaries({name: st.sampled_from(found) for name, found in VALUES.items()})


def binary(operators: str, left: st.SearchStrategy[str], right: st.SearchStrategy[str]) -> Any:
    return st.builds(
        lambda one, sign, other: f"({one} {sign} {other})",
        left,
        st.sampled_from(operators.split()),
        right,
    )


def ternary(part: st.SearchStrategy[str]) -> Any:
    return st.builds(lambda one, other: f"(p ? {one} : {other})", part, part)


small_ints = st.sampled_from(["a", "b", "0", "1", "-1", "2", "3", "7", "-5", "size(s)"])
ints = st.one_of(
    small_ints,
    binary("+ - * / %", small_ints, small_ints),
    ternary(small_ints),
    small_ints.map(lambda part: f"(-{part})"),
    st.just("size(data.tags)"),
    st.just("int(u)"),
)
uints = st.sampled_from(["u", "0u", "1u", "3u", "(u + 1u)", "(u - 1u)", "(u / 2u)", "uint(a)"])
small_doubles = st.sampled_from(["r", "0.1", "0.5", "2.0", "-1.5", "0.0"])
doubles = st.one_of(
    small_doubles,
    small_doubles,
    binary("+ - * /", small_doubles, small_doubles),
    st.sampled_from(["double(a)", "(-r)", "(p ? r : 0.5)", "double(2)"]),
)
texts = st.sampled_from(
    ["s", '"EU"', '"E"', '""', '"é😀"', '(s + "U")', '"\\\\u{45}"', "string(s)"]
)
moments = st.sampled_from(
    [
        "data.due",
        "data.since",
        'timestamp("2026-01-01T00:00:00Z")',
        'timestamp("2026-01-01T01:30:00.000001+01:30")',
        '(data.due + duration("1h"))',
        "(data.due - data.wait)",
        "(data.due + data.wait)",
    ]
)
spans = st.sampled_from(
    [
        "data.wait",
        'duration("1h")',
        'duration("-1.5s")',
        "(data.due - data.since)",
        "(data.wait + data.wait)",
        '(data.wait - duration("30m"))',
    ]
)
COMPARE = "< <= > >= == !="
atoms = st.one_of(
    st.sampled_from(["p", "true", "false", "!p"]),
    binary(COMPARE, ints, ints),
    binary(COMPARE, small_ints, small_ints),
    binary(COMPARE, uints, uints),
    binary(COMPARE, doubles, doubles),
    binary(COMPARE, small_doubles, small_doubles),
    binary(COMPARE, texts, texts),
    binary(COMPARE, moments, moments),
    binary(COMPARE, spans, spans),
    st.builds(
        lambda part, method, other: f"{part}.{method}({other})",
        texts,
        st.sampled_from(["startsWith", "endsWith", "contains", "matches"]),
        st.sampled_from(['"E"', '"U"', '""', '"EU"']),
    ),
    st.builds(lambda one, two: f"({one} in [1, {two}, b])", ints, ints),
    st.builds(lambda one, two: f'({one} in ["EU", {two}])', texts, texts),
    st.builds(lambda one: f"({one} in [])", ints),
    st.builds(lambda one: f"({one} in data.tags)", texts),
    st.builds(lambda one: f"data.tags.exists(t, t == {one})", texts),
    st.builds(lambda one: f"data.tags.all(t, {one} != t)", texts),
    st.builds(lambda one: f"data.tags.exists(t, size(t) > {one})", small_ints),
    st.builds(
        lambda one, loop, sign: f"[1, {one}, b].{loop}(x, x {sign} a)",
        ints,
        st.sampled_from(["exists", "all", "exists_one"]),
        st.sampled_from(COMPARE.split()),
    ),
    st.builds(lambda one: f"[a, {one}].exists(x, 6 / x == 2)", ints),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        binary("&& || == !=", inner, inner),
        inner.map(lambda part: f"!({part})"),
        st.builds(lambda one, two, three: f"({one} ? {two} : {three})", inner, inner, inner),
    ),
    max_leaves=4,
)


def compiled(source: str) -> Compiled:
    return expression(source)


def fixed(formulas: Formulas, name: str, value: object) -> list[Any]:
    """Say of a variable that it has a value; of a list, which of the elements sought it has."""
    leaf = formulas.leaves.get(name)
    if leaf is None:
        return []
    term = leaf.formula[0]
    if isinstance(value, list):
        terms = [formulas.constant(text, leaf.type.of[0]) for text in value]
        every = formulas.z3.String("any", formulas.context)
        inside = formulas.any(*(every == one for one in terms))
        sized = [] if leaf.size is None else [leaf.size == len(value)]
        return [term == formulas.z3.Lambda([every], inside), *sized]
    if isinstance(value, datetime):
        value = (value - EPOCH) // timedelta(microseconds=1) * 1000
    elif isinstance(value, timedelta):
        value = value // timedelta(microseconds=1) * 1000
    constant = formulas.constant(value, leaf.type)  # type: ignore[arg-type]
    return [] if constant is None else [term == constant]


@pytest.mark.slow
@given(conditions, st.lists(values, min_size=3, max_size=3), st.booleans())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_formulas_say_what_the_evaluator_says(
    source: str, samples: list[dict[str, object]], precise: bool
) -> None:
    guard = compiled(source)
    formulas = Formulas(
        optional=lambda name: False, presence={}, known=lambda *_: [], precise=precise
    )
    try:
        found = formulas.expression(guard.tree)
    except TooCoarse:
        formulas = Formulas(
            optional=lambda name: False, presence={}, known=lambda *_: [], precise=True
        )
        found = formulas.expression(guard.tree)
    loose = bool(found.unknown) or any(name.startswith("?") for name in found.names)
    for sample in samples:
        solver = formulas.z3.Solver(ctx=formulas.context)
        solver.set("timeout", 5000)
        solver.add(*formulas.given(found.names))
        for name, value in sample.items():
            solver.add(*fixed(formulas, name, value))
        expected = guard.truth(sample)
        note(f"{source} at {sample} is {expected}")
        for wanted, formula in ((True, found.pair.yes), (False, found.pair.no)):
            solver.push()
            solver.add(formula)
            answer = solver.check()
            solver.pop()
            if answer == formulas.z3.unknown:
                continue
            possible = answer == formulas.z3.sat
            if expected is wanted:
                assert possible
            elif not loose:
                assert not possible


@given(conditions, st.lists(values, min_size=8, max_size=8))
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_values_are_within_the_bounds(source: str, samples: list[dict[str, object]]) -> None:
    guard = compiled(source)
    for sample in samples:
        found = guard.truth(sample)
        if found is None:
            continue
        bounds = box(guard.tree, found)
        assert bounds is not None
        assert are_within(sample, bounds)
        assert any(are_within(sample, case) for case in cases(guard.tree, found))


def are_within(sample: dict[str, Any], bounds: Box) -> bool:
    names = ("a", "b", "u", "s", "p", "r")
    return all(sample[name] in bounds[name] for name in names if name in bounds)


@pytest.mark.slow
@given(
    st.lists(conditions, min_size=2, max_size=3),
    st.lists(values, min_size=30, max_size=30),
    st.booleans(),
)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_values_contradict_a_proof_and_a_witness_holds(
    sources: list[str], samples: list[dict[str, object]], ordered: bool
) -> None:
    claims: list[Any] = [When(compiled(source)) for source in sources]
    if ordered:
        claims = [All((claims[-1], *(Not(one) for one in claims[:-1]))), *claims[1:]]
    prover = Prover({"a": Domain(minimum=-5)}, timeout_ms=500)
    verdict = prover.overlap(claims)
    note(f"{sources} {verdict}")
    match verdict:
        case Disjoint():
            for sample in samples:
                within = isinstance(sample["a"], int) and sample["a"] >= -5
                assert not within or not all(truth(one, sample, {}) is True for one in claims)
        case Overlap(witness):
            assert all(truth(one, witness, {}) is True for one in claims)
        case Undecided(why):
            assert why
    match prover.satisfiable(claims[0]):
        case Possible(witness):
            assert truth(claims[0], witness, {}) is True
        case Impossible():
            assert isinstance(verdict, Disjoint | Undecided)
        case Undecided(why):
            assert why


def test_the_values_cover_what_is_special_about_doubles() -> None:
    assert any(math.copysign(1, value) < 0 and value == 0 for value in DOUBLES)
