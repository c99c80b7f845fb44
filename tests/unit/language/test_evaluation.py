"""Conditions put together: an error is never false, and decides only if nothing else does."""

from itertools import product

import pytest

from interlock.language.condition import All, AnyOf, Check, Condition, Expr, In, Not
from interlock.language.evaluation import holds


class Broken(Exception):
    pass


def answers(condition: Condition, values: dict[str, bool | None]) -> bool | str:
    """Evaluate; None stands for an error, which is given by its name."""

    def ask(name: str) -> bool:
        value = values[name]
        if value is None:
            raise Broken(name)
        return value

    try:
        return holds(condition, lambda test: ask(test.text), lambda test: ask(test.name))
    except Broken as error:
        return str(error)


A, B, C = Expr("a"), Check("b"), Expr("c")


@pytest.mark.parametrize(
    ("condition", "given", "expected"),
    [
        (All((A, B)), (None, False), False),
        (All((A, B)), (False, None), False),
        (All((A, B)), (None, True), "a"),
        (All((A, B)), (True, None), "b"),
        (All((A, B)), (None, None), "a"),
        (AnyOf((A, B)), (None, True), True),
        (AnyOf((A, B)), (True, None), True),
        (AnyOf((A, B)), (None, False), "a"),
        (AnyOf((A, B)), (None, None), "a"),
        (Not(A), (None, False), "a"),
        (Not(A), (True, False), False),
        (All(()), (None, None), True),
        (AnyOf(()), (None, None), False),
    ],
)
def test_an_error_decides_only_where_nothing_else_does(
    condition: Condition, given: tuple[bool | None, bool | None], expected: bool | str
) -> None:
    assert answers(condition, dict(zip("ab", given, strict=True))) == expected


def test_it_is_the_logic_of_the_proofs() -> None:
    from interlock.language.proof import claim

    def put(condition: Condition) -> claim.Claim:
        match condition:
            case Expr(name) | Check(name):
                return claim.Opaque(name)
            case Not(of):
                return claim.Not(put(of))
            case All(of):
                return claim.All(tuple(map(put, of)))
            case AnyOf(of):
                return claim.Any(tuple(map(put, of)))
            case In():
                raise AssertionError

    conditions: list[Condition] = [
        All((A, AnyOf((B, Not(C))))),
        AnyOf((Not(All((A, B))), C)),
        Not(AnyOf((A, All((B, C)), Not(B)))),
    ]
    for condition in conditions:
        for values in product([False, True, None], repeat=3):
            given = dict(zip("abc", values, strict=True))
            known = {name: value for name, value in given.items() if value is not None}
            wanted = claim.truth(put(condition), {}, known)
            found = answers(condition, given)
            assert (None if isinstance(found, str) else found) is wanted, (condition, given)


def test_no_more_is_asked_than_decides() -> None:
    asked: list[str] = []

    def evaluate(test: Expr) -> bool:
        asked.append(test.text)
        return True

    assert holds(AnyOf((A, C)), evaluate, lambda _: False) is True
    assert asked == ["a"]


def test_which_states_are_active_is_settled_before() -> None:
    with pytest.raises(ValueError, match="settled"):
        holds(In("p.a"), lambda _: True, lambda _: True)


def test_an_interrupt_is_no_error_of_a_test() -> None:
    def interrupted(_: Expr) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        holds(All((A, B)), interrupted, lambda _: False)
