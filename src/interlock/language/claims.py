"""Conditions in the terms of the prover."""

from collections.abc import Callable

from interlock.language.condition import All, AnyOf, Check, Condition, Expr, Not
from interlock.language.expressions.expression import Expression
from interlock.language.proof import claim as claims


def claim_of(condition: Condition, compile_: Callable[[str], Expression]) -> claims.Claim:
    """Put a condition of a flat branch as a claim.

    Raises:
        ExpressionFault: an expression in it does not compile.
    """
    match condition:
        case Expr(text):
            return claims.Test(compile_(text))
        case Check(name):
            return claims.Opaque(name)
        case Not(of):
            return claims.Not(claim_of(of, compile_))
        case All(of):
            return claims.All(tuple(claim_of(part, compile_) for part in of))
        case AnyOf(of):
            return claims.Any(tuple(claim_of(part, compile_) for part in of))
        case _:
            raise ValueError(f"{condition} is settled only where the active states are known")
