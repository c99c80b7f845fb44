"""What the prover says of pairs of conditions, with and without its solver."""

import sys
from datetime import UTC, datetime

import pytest

from interlock.language.expressions.literals import instant, span
from interlock.language.proof import prove
from interlock.language.proof.claim import truth
from interlock.language.proof.prove import (
    All,
    Any,
    Claim,
    Disjoint,
    Domain,
    Impossible,
    Not,
    Opaque,
    Overlap,
    Possible,
    Prover,
    Undecided,
    overlap,
    satisfiable,
)
from interlock.language.proof.solver import escaped, unescaped
from tests.support.expressions import expression

SCOPE = {
    "data.amount": Domain(minimum=0, maximum=1000),
    "data.region": Domain(enum=("EU", "US", "UK")),
    "data.rate": Domain(minimum=0.0, exclusive=(True, False)),
    "data.due": Domain(optional=True),
    "s": Domain(max_length=8),
}
PRESENCE = {"has_due": "data.due"}


def when(source: str) -> Claim:
    return prove.Test(expression(source))


def ask(*sources: str) -> object:
    return overlap([when(source) for source in sources], SCOPE, presence=PRESENCE)


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)


@pytest.mark.usefixtures("no_solver")
def test_the_examples_of_the_guide_need_no_solver() -> None:
    assert ask("data.amount < 100", "data.amount >= 100") == Disjoint()
    both = ask("data.amount <= 100", "data.amount >= 100")
    assert isinstance(both, Overlap)
    assert (both.witness, both.text) == ({"data.amount": 100}, "data.amount = 100")


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("data.region in ['EU', 'UK']", "data.region == 'US'"),
        ("data.region == 'EU' || data.region == 'UK'", "data.region == 'US' && p"),
        ("data.amount > 5 && p", "5 >= data.amount"),
        ("data.amount > 5", "data.amount < 6"),  # no whole number lies between
        ("data.rate > 0.5", "data.rate <= 0.5"),
        ("p == true", "p != true"),
        ("p ? a > 3 : a > 4", "a <= 3"),
        ("data.amount > a", "a >= data.amount"),
        ("s.matches('^E')", "!s.matches('^E')"),
        ("r * 1.2 > 100.0", "r * 1.2 < 99.0"),
        (
            "data.due > timestamp('2026-01-01T00:00:00Z')",
            "data.due < timestamp('2025-01-01T00:00:00Z')",
        ),
        ("has_due", "!has_due"),
        ("data.amount > 1000", "p"),
        ("data.rate <= 0.0", "true"),
        ("data.region == 'FR'", "true"),
        ("!(data.region in ['EU', 'US', 'UK'])", "true"),
    ],
)
def test_bounds_settle_what_is_plain(one: str, other: str) -> None:
    assert ask(one, other) == Disjoint()


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (
            "data.amount > 100 && data.region == 'EU'",
            "data.amount >= 50 && data.amount <= 200",
            'data.amount = 101, data.region = "EU"',
        ),
        ("!has_due", "data.amount > 3", "data.amount = 4, data.due is absent"),
        ("data.rate > 0.25", "data.rate < 0.75", "data.rate = 0.5"),
        ("p", "a < -3", "a = -4, p = true"),
        (
            "data.due >= timestamp('2026-01-01T00:00:00Z')",
            "has_due",
            "data.due = 2026-01-01T00:00:00Z",
        ),
        ("data.wait > duration('1h')", "true", "data.wait = 3600.000001s"),
        ("size(data.limits) == 0", "true", "data.limits = {}"),
    ],
)
def test_plain_values_are_tried_first(one: str, other: str, text: str) -> None:
    both = ask(one, other)
    assert isinstance(both, Overlap)
    assert both.text == text


def test_values_of_an_example_are_pythons_own() -> None:
    both = ask("data.due == timestamp('2026-01-01T00:00:00Z')", "data.rate == 1.0")
    assert isinstance(both, Overlap)
    assert both.witness == {"data.due": datetime(2026, 1, 1, tzinfo=UTC), "data.rate": 1.0}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a / b > 3", "b == 0"),
        ("a % b == 1", "b == -1"),
        ("a + 1 > a", "a == 9223372036854775807"),
        ("u - 1u < u", "u == 0u"),
        ("-a > 0", "a == -9223372036854775807 - 1"),
        ("s.startsWith('qp')", "s == 'qa'"),
        ("s.startsWith('qp_')", "size(s) < 3"),
        ("s.contains('x')", "size(s) == 0"),
        ("size(s) > 8", "true"),
        ("s + 'x' == s", "true"),
        ("[1, a].exists(x, x == 3)", "a == 4"),
        ("['EU', 'UK'].all(x, x != s)", "s == 'EU'"),
        ("[1, a].exists_one(x, x == 1)", "a == 1"),
        ("'x' in data.tags", "size(data.tags) == 0"),
        ("data.tags.exists(t, t == 'x')", "!('x' in data.tags)"),
        ("'x' in data.tags && 'y' in data.tags", "size(data.tags) < 2"),
        ("data.due > data.since + duration('2h')", "data.due - duration('90m') < data.since"),
        ("data.due == data.due", "!has_due"),
        ("data.rate > 0.1", "data.rate < 0.10000000000000002"),  # neighbours among doubles
        ("r + 0.1 > 100.0", "r < 50.0"),
        ("double(a) > 1.5", "a < 2"),
        ("(p ? a : b) > 3", "a < 2 && b < 2"),
        ("s.matches('^E') ? a > 1 : a > 2", "a == 1"),
        ("a == b && b == 3", "a == 4"),
    ],
)
def test_the_solver_proves_the_rest(one: str, other: str) -> None:
    pytest.importorskip("z3")
    assert ask(one, other) == Disjoint()
    assert ask(other, one) == Disjoint()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a % 2 == 1", "a > 10 && a % 3 == 2"),
        ("s.startsWith('qp_')", "s.endsWith('_x') && size(s) < 6"),
        ("'x' in data.tags", "'y' in data.tags && size(data.tags) == 5"),
        ("size(data.tags) == 2", "!('' in data.tags)"),
        ("data.due > data.since + duration('2h')", "data.due - duration('150m') < data.since"),
        ("data.due - data.since > duration('24h')", "data.due < data.since + duration('25h')"),
        ("r + 0.1 > 100.0", "r < 100.0"),
        ("double(a) > 1.5", "double(a) < 2.5"),
        ("(p ? a : b) > 3", "a < 2"),
        ("s.contains('\\\\u{41}')", "true"),
        ("s > 'é'", "s < 'ê' && size(s) > 2"),
        ("data.region.matches('^U')", "data.region != 'US'"),  # found by trying
        ("!(r / r > 1.0)", "!(r / r <= 1.0)"),  # NaN is neither
        ("!(r / r > r)", "!(r / r <= r)"),
        ("!(r / r == 1.0)", "!(r / r != 1.0) || r == 0.0"),
    ],
)
def test_the_solver_finds_examples_that_hold(one: str, other: str) -> None:
    pytest.importorskip("z3")
    claims = [when(one), when(other)]
    both = overlap(claims, SCOPE, presence=PRESENCE)
    assert isinstance(both, Overlap), both
    assert all(truth(claim, both.witness, {}) is True for claim in claims)
    assert both == overlap(claims, SCOPE, presence=PRESENCE)


def test_a_pattern_over_few_values_is_settled_by_trying_them() -> None:
    pytest.importorskip("z3")
    assert ask("data.region.matches('^U')", "data.region == 'EU' || data.region == 'UA'") == (
        Disjoint()
    )


def test_no_example_has_a_text_that_input_cannot_have() -> None:
    pytest.importorskip("z3")
    # Below U+0001 there is only NUL.
    assert satisfiable(when("size(s) == 1 && s < '\\u0001'")) == Impossible()
    between = satisfiable(when("size(s) == 1 && s > '\\ud7ff' && s < '\\ue000'"))
    assert not isinstance(between, Possible)


def test_what_is_beyond_the_prover_is_said() -> None:
    pytest.importorskip("z3")
    found = ask("data.sizes.exists(x, x > 5)", "data.sizes.all(x, x <= 5)")
    assert found == Undecided("the prover does not know a loop over a list that is not written out")
    found = ask("s.matches('^E..$')", "size(s) == 2")
    assert found == Undecided("the prover does not know `matches`")
    hard = overlap([when("a * b * b == 1000003 && b > 1"), when("a > 1")], timeout_ms=50)
    assert hard == Undecided("the solver gave up")


@pytest.mark.usefixtures("no_solver")
def test_without_the_solver_the_rest_is_undecided() -> None:
    assert ask("a % 2 == 1", "a % 4 == 2") == Undecided("no solver")
    assert satisfiable(when("s.startsWith('a') && s == 'b'")) == Undecided("no solver")


def test_claims_are_three_valued() -> None:
    pytest.importorskip("z3")
    fails = when("1 / a > 0")  # fails where a is 0
    assert overlap([Not(fails), when("a == 0")]) == Disjoint()
    assert overlap([fails, when("a == 0")]) == Disjoint()
    assert isinstance(overlap([Any((fails, when("a == 0"))), when("a == 0")]), Overlap)
    assert isinstance(overlap([Not(All((fails, when("a != 0")))), when("a == 0")]), Overlap)


@pytest.mark.usefixtures("no_solver")
def test_registered_guards_are_the_same_by_name() -> None:
    one, other = Opaque("signed"), Opaque("paid")
    assert overlap([one, Not(one)]) == Disjoint()
    both = overlap([one, Not(other), when("a > 1")])
    assert isinstance(both, Overlap)
    assert both.guards == {"paid": False, "signed": True}
    assert both.text == "a = 2, paid is false, signed is true"


@pytest.mark.usefixtures("no_solver")
def test_branches_in_order_are_apart_by_their_form() -> None:
    first = All((when("a % 3 == b"), Opaque("signed")))
    second = when("s.matches('x') || a / b == 2")
    branches = [first, All((second, Not(first))), All((Not(first), Not(second)))]
    assert list(Prover().pairs(branches)) == []


def test_all_of_nothing_is_true_and_any_of_nothing_is_not() -> None:
    assert satisfiable(All(())) == Possible({}, text="always")
    assert satisfiable(Any(())) == Impossible()
    assert isinstance(satisfiable(Not(Any(()))), Possible)


def test_satisfiable() -> None:
    pytest.importorskip("z3")
    scope = {"data.amount": Domain(minimum=0)}
    assert satisfiable(when("data.amount < 0"), scope) == Impossible()
    found = satisfiable(when("data.amount % 7 == 3"), scope)
    assert isinstance(found, Possible)
    assert found.witness["data.amount"] in range(3, 10**19, 7)
    assert satisfiable(when("s == 'a' && s == 'b'")) == Impossible()


def test_an_optional_variable_may_be_absent_and_then_reading_it_fails() -> None:
    pytest.importorskip("z3")
    assert ask("data.due == data.since", "!has_due") == Disjoint()
    without = satisfiable(when("!has_due || data.due == data.since"), SCOPE, presence=PRESENCE)
    assert isinstance(without, Possible)
    required = {"data.due": Domain()}
    assert satisfiable(when("!has_due"), required, presence=PRESENCE) == Impossible()


def test_a_decimal_is_shown_with_its_point() -> None:
    found = satisfiable(when("data.amount == 12345"), {"data.amount": Domain(scale=2)})
    assert isinstance(found, Possible)
    assert (found.text, found.witness) == ("data.amount = 123.45", {"data.amount": 12345})


def test_many_branches_of_one_state() -> None:
    pytest.importorskip("z3")
    branches = [when(f"a % 20 == {rest} && a > 0") for rest in range(20)]
    prover = Prover()
    assert list(prover.pairs(branches)) == []
    branches[7] = when("a % 10 == 3 && a > 0")
    found = list(prover.pairs(branches))
    assert [(one, other) for one, other, _ in found] == [(3, 7), (7, 13)]
    assert all(isinstance(verdict, Overlap) for _, _, verdict in found)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1969-12-31T23:59:59.5Z", -(10**9) // 2),
        ("2026-02-30T00:00:00Z", None),
        ("2026-01-01T00:00:00", None),
        ("2026-01-01", None),
        ("0000-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-01:00", None),
    ],
)
def test_instants(text: str, nanoseconds: int | None) -> None:
    assert instant(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h30m", 5400 * 10**9),
        ("-1.5s", -15 * 10**8),
        ("2ms3us4ns", 2_003_004),
        ("1.s", 10**9),
        ("1d", None),
        ("0.1ns", None),
        ("10000000000s", None),
        ("", None),
    ],
)
def test_spans(text: str, nanoseconds: int | None) -> None:
    assert span(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "plain", "\\u{41}", 'é😀"\n\\', "\uffff"])
def test_texts_go_to_the_solver_and_back(text: str) -> None:
    assert unescaped(escaped(text)) == text


def test_of_what_is_only_asked_after_no_value_is_shown() -> None:
    there = overlap([when("has_due")], SCOPE, presence=PRESENCE)
    assert isinstance(there, Overlap)
    assert there.text == "data.due is there"
    missing = overlap([when("!has_due")], SCOPE, presence=PRESENCE)
    assert isinstance(missing, Overlap)
    assert missing.text == "data.due is absent"


@pytest.mark.usefixtures("no_solver")
def test_cases_of_a_disjunction_are_told_apart_without_the_solver() -> None:
    one = "data.amount < 10 || data.amount > 20 && s == 'x'"
    other = "data.amount >= 10 && data.amount <= 20 || data.amount > 20 && s != 'x'"
    assert ask(one, other) == Disjoint()
    both = ask(one, "data.amount > 15")
    assert isinstance(both, Overlap)
    assert both.witness["s"] == "x"
    split: list[Claim] = [
        Not(when(one)),
        Any((when("data.amount < 5"), when("data.amount > 30 && s == 'x'"))),
    ]
    assert overlap(split, SCOPE, presence=PRESENCE) == Disjoint()


@pytest.mark.usefixtures("no_solver")
def test_of_many_cases_only_what_all_have_in_common_counts() -> None:
    few, many = (" && ".join(f"(a < {n} || b > {n})" for n in range(top)) for top in (5, 9))
    assert ask(few, "a > 50 && b < 0") == Disjoint()
    assert isinstance(ask(many, "a > 50 && b < 0"), Undecided)
    assert ask(f"({many}) && a < 5", "a > 5") == Disjoint()


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("data.since < data.due", "has_due"),
        ("data.due < data.since", "has_due"),
        ("data.amount > a", "a > 5"),
        ("data.amount >= a", "data.amount <= a"),
        ("a != b", "b == 0"),
        ("a < b", "b <= 1 && a > -1"),
    ],
)
def test_values_in_an_order_are_found_without_the_solver(one: str, other: str) -> None:
    assert isinstance(ask(one, other), Overlap)
