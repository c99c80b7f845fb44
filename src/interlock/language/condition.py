"""What a branch depends on: an algebra over expressions, registered guards and active states.

An expression is true, false or an error, and so is what is made of it: an error is never taken for
false. `In` is known wherever the configuration is, so it is gone once a machine is flat.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression that the engine evaluates."""

    text: str


@dataclass(frozen=True, slots=True)
class Check:
    """A guard in Python, by its registered name."""

    name: str


@dataclass(frozen=True, slots=True)
class In:
    """Whether a state, by its path, is active."""

    state: str


@dataclass(frozen=True, slots=True)
class Not:
    of: "Condition"


@dataclass(frozen=True, slots=True)
class All:
    """True when every part is; of none, always."""

    of: "tuple[Condition, ...]" = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True when some part is; of none, never."""

    of: "tuple[Condition, ...]" = ()


Condition: TypeAlias = Expr | Check | In | Not | All | AnyOf

ALWAYS = All()
NEVER = AnyOf()


def read_condition(value: Any, state: Callable[[str], str]) -> Condition:
    """Read what a document says under `when`.

    Args:
        state: gives the path of a state that is named.
    """
    if isinstance(value, str):
        return Expr(value)
    ((word, of),) = value.items()
    if word == "check":
        return Check(of)
    if word == "in":
        return In(state(of))
    if word == "not":
        return Not(read_condition(of, state))
    parts = tuple(read_condition(part, state) for part in of)
    return All(parts) if word == "all" else AnyOf(parts)


def both(*conditions: Condition) -> Condition:
    """Say that all of them hold, as simply as can be."""
    parts: list[Condition] = []
    for condition in conditions:
        for part in condition.of if isinstance(condition, All) else (condition,):
            if part == NEVER:
                return NEVER
            if part not in parts:
                parts.append(part)
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def either(*conditions: Condition) -> Condition:
    """Say that one of them holds, as simply as can be."""
    parts: list[Condition] = []
    for condition in conditions:
        for part in condition.of if isinstance(condition, AnyOf) else (condition,):
            if part == ALWAYS:
                return ALWAYS
            if part not in parts:
                parts.append(part)
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def negated(condition: Condition) -> Condition:
    if isinstance(condition, Not):
        return condition.of
    if condition == ALWAYS:
        return NEVER
    return ALWAYS if condition == NEVER else Not(condition)


def settle(condition: Condition, active: Callable[[str], bool]) -> Condition:
    """Replace what is known of the active states by what it comes to."""
    match condition:
        case In(state):
            return ALWAYS if active(state) else NEVER
        case Not(of):
            return negated(settle(of, active))
        case All(of):
            return both(*[settle(part, active) for part in of])
        case AnyOf(of):
            return either(*[settle(part, active) for part in of])
        case _:
            return condition


def tests(condition: Condition) -> Iterator[Expr | Check]:
    """Give the tests in a condition, each as often as it stands there."""
    match condition:
        case Not(of):
            yield from tests(of)
        case All(of) | AnyOf(of):
            for part in of:
                yield from tests(part)
        case Expr() | Check():
            yield condition
        case In():
            pass


def text(condition: Condition) -> str:
    """Write a condition as one line."""
    match condition:
        case Expr(source):
            return source
        case Check(name):
            return f"check({name})"
        case In(state):
            return f"in({state})"
        case Not(of):
            return f"!({text(of)})"
        case All(of):
            return " && ".join(_part(part, of) for part in of) or "true"
        case AnyOf(of):
            return " || ".join(_part(part, of) for part in of) or "false"


def _part(condition: Condition, among: Sequence[Condition]) -> str:
    plain = isinstance(condition, Check | In | Not) or len(among) == 1
    return text(condition) if plain else f"({text(condition)})"


#: Which of some conditions hold and which do not.
Literals: TypeAlias = Mapping[Condition, bool]
Case: TypeAlias = dict[Condition, bool]


def join(one: Literals, other: Literals) -> Case | None:
    """Put two together, or say that they contradict each other."""
    if any(other.get(condition, holds) != holds for condition, holds in one.items()):
        return None
    return {**one, **other}


def disjunction(cases: Sequence[Literals]) -> Condition:
    """Say that one of the cases is given: what makes no difference between them is left out."""
    rest = [dict(case) for case in cases]
    merged = True
    while merged:
        merged = False
        for place, one in enumerate(rest):
            for other in rest[place + 1 :]:
                if (fewer := _merge(one, other)) is not None:
                    rest = [case for case in rest if case not in (one, other)] + [fewer]
                    merged = True
                    break
            if merged:
                break
    return either(*[both(*map(_literal, case.items())) for case in rest])


def _merge(
    one: dict[Condition, bool], other: dict[Condition, bool]
) -> dict[Condition, bool] | None:
    """Two cases that differ in one condition alone are one without it; one may imply the other."""
    if one.items() <= other.items():
        return one
    if other.items() <= one.items():
        return other
    if one.keys() != other.keys():
        return None
    apart = [condition for condition in one if one[condition] != other[condition]]
    if len(apart) != 1:
        return None
    return {condition: holds for condition, holds in one.items() if condition != apart[0]}


def _literal(item: tuple[Condition, bool]) -> Condition:
    condition, holds = item
    return condition if holds else negated(condition)
