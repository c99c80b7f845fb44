"""Verdicts on random choices, against all values that the fields can have."""

import json
import re
import sys
from itertools import combinations
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from interlock.language.definition import compile_document
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import read_document
from tests.support.choices import (
    all_values,
    apart,
    is_true,
    machine,
    named,
    truths,
    unordered,
)
from tests.support.strategies import examples

pytest.importorskip("z3")

WHOLE = ["data.a", "data.c", "data.a + data.c", "data.a * data.a", "data.a - 1", "6 / data.a"]
ASKED = "has(data.o) && data.o {} {}"
COMPARE = ["==", "!=", "<", "<=", ">", ">="]


@st.composite
def texts(draw: st.DrawFn) -> str:
    sign, number = draw(st.sampled_from(COMPARE)), draw(st.integers(-2, 4))
    return draw(
        st.sampled_from(
            [
                *(f"{left} {sign} {number}" for left in WHOLE),
                f"data.a {sign} data.c",
                f"data.c % data.a {sign} {number}",
                ASKED.format(sign, number),
                "!has(data.o)",
                "data.b",
                'data.r == "EU"',
                'data.r in ["US"]',
                "[1, 2].exists(x, x == data.a)",
            ]
        )
    )


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from(["&&", "||"]), inner)
    return st.one_of(
        pair.map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
        inner.map(lambda part: f"!({part})"),
    )


def conditions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda part: {"not": part}),
        parts.map(lambda many: {"all": many}),
        parts.map(lambda many: {"any": many}),
    )


GUARDS = st.recursive(st.recursive(texts(), joined, max_leaves=3), conditions, max_leaves=3)


def judged(document: dict[str, Any], **how: Any) -> tuple[bool, list[Diagnostic]]:
    definition, found = compile_document(read_document(json.dumps(document)), **how)
    return definition is not None, found


def pairs_of(found: list[Diagnostic]) -> set[tuple[str, ...]]:
    ways = (re.findall(r"`(w\d)` of", fault.message) for fault in found)
    return {tuple(sorted(pair)) for pair in ways if pair}


@examples(150)
@given(st.lists(GUARDS, min_size=2, max_size=3, unique_by=str))
def test_a_verdict_is_what_trying_all_values_gives(whens: list[Any]) -> None:
    table = truths(whens)
    together = {
        (f"w{one}", f"w{other}")
        for one, other in combinations(range(len(whens)), 2)
        if any(row[one] and row[other] for row in table)
    }
    accepted, found = judged(unordered(whens))
    event(f"accepted: {accepted}")
    assert {fault.code for fault in found} <= {"nondeterministic", "dead-branch"}
    assert pairs_of(found) == together
    assert accepted == (not together)
    if accepted:
        dead = {f"w{n}" for n in range(len(whens)) if not any(row[n] for row in table)}
        assert {re.findall(r"`(w\d)`", fault.message)[0] for fault in found} == dead


@examples(60)
@given(st.lists(GUARDS, min_size=2, max_size=3, unique_by=str))
def test_the_values_that_are_shown_make_both_branches_true(whens: list[Any]) -> None:
    definition = apart(whens)
    by_event = {branch.trigger.name: branch for branch in definition.flat.branches}
    for fault in judged(unordered(whens))[1]:
        if fault.code == "nondeterministic":
            shown = re.search(r" by both ways when (.*?): `", fault.message)
            assert shown is not None, fault.message
            values = re.findall(r"data\.(\w+) = (\"\w+\"|[-\w]+)", shown[1])
            data = {name: json.loads(value) for name, value in values}
            meant = [values for values in all_values() if values.items() >= data.items()]
            for word, wanted in (("absent", False), ("there", True)):
                if f"data.o is {word}" in shown[1]:
                    meant = [values for values in meant if ("o" in values) is wanted]
            assert meant, fault.message
            for way in re.findall(r"`w(\d)` of", fault.message):
                assert all(is_true(definition, by_event[f"e{way}"], values) for values in meant)


@examples(60)
@given(st.lists(GUARDS, min_size=2, max_size=4, unique_by=str))
def test_of_branches_in_order_those_are_dead_that_the_earlier_ones_swallow(
    whens: list[Any],
) -> None:
    accepted, found = judged(machine({"order": "first-match", "branches": named(whens)}))
    assert accepted
    # An earlier branch without a value stops the later ones: an error is never false.
    taken = set[int]()
    earlier = [{"all": [{"not": w} for w in whens[:n]] + [when]} for n, when in enumerate(whens)]
    for row in truths(earlier):
        taken |= {n for n, holds in enumerate(row) if holds}
    dead = {int(re.findall(r"`w(\d)`", fault.message)[0]) for fault in found}
    assert dead == {*range(len(whens))} - taken


@examples(40)
@given(st.lists(GUARDS, min_size=2, max_size=3, unique_by=str))
def test_without_the_solver_nothing_else_comes_out(whens: list[Any]) -> None:
    document = read_document(json.dumps(unordered(whens)))
    with_it, found = compile_document(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "z3", None)
        without, rest = compile_document(document)
        required, all_of = compile_document(document, require_proof=True)
    refused = {fault.path for fault in found if fault.severity == "error"}
    told = {fault.path for fault in rest if fault.severity == "error"}
    assert told <= refused  # what is shown to overlap does
    open_ = pairs_of([fault for fault in rest if fault.code == "undecided-overlap"])
    if without is not None:
        assert {tuple(sorted(pair.branches)) for pair in without.unproved} == open_
        assert (required is None) == bool(open_)
        assert pairs_of([f for f in all_of if f.severity == "error"]) == open_
        if with_it is not None:
            assert with_it.digest == without.digest
            assert with_it.declaration == without.declaration
            assert with_it.unproved == ()
