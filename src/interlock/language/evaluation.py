"""Whether a condition holds: its tests put together, an error never taken for false.

    holds(branch.when, evaluate, check)      -> True, False, or the error of a test

The logic has three values, as that of the proofs has: where one part decides, an error of another
part does not matter, as in `false && error`; where none does, the first error is raised.
"""

from collections.abc import Callable

from interlock.language.condition import All, AnyOf, Check, Condition, Expr, Not


def holds(
    condition: Condition, evaluate: Callable[[Expr], bool], check: Callable[[Check], bool]
) -> bool:
    """Say whether a condition is true; its tests are asked in order, no more than are needed.

    Args:
        condition: of a flat branch: which states are active is settled there.
        evaluate, check: give what a test comes to, or raise; a test that stands twice is asked
            twice.

    Raises:
        Exception: the first error of a test, unless another part decides.
    """
    match condition:
        case Expr():
            return evaluate(condition)
        case Check():
            return check(condition)
        case Not(of):
            return not holds(of, evaluate, check)
        case All(of) | AnyOf(of):
            decides = isinstance(condition, AnyOf)
            failed: Exception | None = None
            for part in of:
                try:
                    if holds(part, evaluate, check) is decides:
                        return decides
                except Exception as error:
                    failed = failed or error
            if failed is not None:
                raise failed
            return not decides
        case _:
            raise ValueError(f"{condition} is settled only where the active states are known")
