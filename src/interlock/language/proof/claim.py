"""Whether a branch is taken: expressions and registered guards, joined by not, all and any.

A claim is true, false or neither: an expression may fail, by a division by zero or by reading a
field that is absent. A branch is taken only if its claim is true, so a failure is never taken for
a no: `Not` of a failure is a failure. `All` and `Any` are the `&&` and `||` of CEL: one false part
makes `All` false even if another part fails.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from interlock.language.expressions.cel_ast import Node


class Guard(Protocol):
    """What is asked of an expression: its checked tree, and its answer to values.

    Two guards are the same if their sources are: all guards of one proof read the same scope.
    """

    @property
    def source(self) -> str: ...

    @property
    def tree(self) -> Node: ...

    def truth(self, values: Mapping[str, object]) -> bool | None:
        """Evaluate with values by the variables' names; None if it fails or is no boolean."""


@dataclass(frozen=True, slots=True)
class Test:
    """An expression."""

    expression: Guard


@dataclass(frozen=True, slots=True)
class Opaque:
    """A guard registered in Python: true or false, nobody knows when; the same for one name."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """True where the condition is false."""

    claim: "Claim"


@dataclass(frozen=True, slots=True)
class All:
    """True where every one is; of none, always."""

    claims: "tuple[Claim, ...]"


@dataclass(frozen=True, slots=True)
class Any:
    """True where one is; of none, never."""

    claims: "tuple[Claim, ...]"


Claim: TypeAlias = Test | Opaque | Not | All | Any


def truth(claim: Claim, values: Mapping[str, object], guards: Mapping[str, bool]) -> bool | None:
    """Say what a claim comes to; None is a failure. A guard that is not given fails."""
    match claim:
        case Test(expression):
            return expression.truth(values)
        case Opaque(name):
            return guards.get(name)
        case Not(inner):
            found = truth(inner, values, guards)
            return None if found is None else not found
        case All(parts):
            return _joined((truth(part, values, guards) for part in parts), False)
        case Any(parts):
            return _joined((truth(part, values, guards) for part in parts), True)


def _joined(found: Iterator[bool | None], decides: bool) -> bool | None:
    failed = False
    for one in found:
        if one is decides:
            return decides
        failed = failed or one is None
    return None if failed else not decides


def tests(claim: Claim) -> Iterator[Guard]:
    """Give the expressions in a claim, in order."""
    match claim:
        case Test(expression):
            yield expression
        case Opaque():
            return
        case Not(inner):
            yield from tests(inner)
        case All(parts) | Any(parts):
            for part in parts:
                yield from tests(part)


def opaques(claim: Claim) -> Iterator[str]:
    """Give the names of the registered guards in a claim, in order."""
    match claim:
        case Test():
            return
        case Opaque(name):
            yield name
        case Not(inner):
            yield from opaques(inner)
        case All(parts) | Any(parts):
            for part in parts:
                yield from opaques(part)
