"""What must hold of single values if a claim is true: the cheap half of the prover.

For `data.amount > 100 && data.region == "EU"` that is `{data.amount: above 100, data.region: only
"EU"}`. Two claims whose bounds leave no value are never true together; the converse does not hold.
What is bounded is any part of an expression, not only a variable: one text has one value. So
`f(x) > 1.0` and `f(x) < 1.0` contradict each other whatever `f` is.

INVARIANT: bounds are never too narrow. What is not understood is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import ceil, floor, isfinite
from typing import TypeAlias

from interlock.language.expressions.cel_ast import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Call,
    CelType,
    Comprehension,
    Constant,
    Identifier,
    ListOf,
    MapOf,
    Node,
    Select,
    Struct,
)
from interlock.language.expressions.literals import Scalar, literal
from interlock.language.proof.claim import All, Any, Claim, Not, Opaque, Test

CASES_MAX = 32

Number: TypeAlias = int | float
Box: TypeAlias = dict[str, "Range"]

WHOLE = {INT, UINT, TIMESTAMP, DURATION}
ORDERED = {*WHOLE, DOUBLE, STRING}
MIRRORED = {
    "_<_": "_>_",
    "_<=_": "_>=_",
    "_>_": "_<_",
    "_>=_": "_<=_",
    "_==_": "_==_",
    "_!=_": "_!=_",
}
OPPOSITE = {
    "_<_": "_>=_",
    "_<=_": "_>_",
    "_>_": "_<=_",
    "_>=_": "_<_",
    "_==_": "_!=_",
    "_!=_": "_==_",
}


@dataclass(frozen=True, slots=True)
class Range:
    """Values of one type, between two bounds: of `only` these, if given, and none of `without`.

    An open bound is itself not in the range. Whole numbers have no open bounds.
    """

    low: Scalar | None = None
    high: Scalar | None = None
    low_open: bool = False
    high_open: bool = False
    only: frozenset[Scalar] | None = None
    without: frozenset[Scalar] = frozenset()

    def __contains__(self, value: Scalar) -> bool:
        return (
            (self.low is None or _less(self.low, value, not self.low_open))
            and (self.high is None or _less(value, self.high, not self.high_open))
            and (self.only is None or value in self.only)
            and value not in self.without
        )

    def meet(self, other: "Range") -> "Range | None":
        """Give what is in both; None if nothing is."""
        low, low_open = _tighter(self.low, self.low_open, other.low, other.low_open, lower=True)
        high, high_open = _tighter(
            self.high, self.high_open, other.high, other.high_open, lower=False
        )
        only = self.only if other.only is None else other.only
        if self.only is not None and other.only is not None:
            only = self.only & other.only
        both = Range(low, high, low_open, high_open, only, self.without | other.without)
        if only is not None:
            left = frozenset(value for value in only if value in both)
            return Range(only=left) if left else None
        if low is not None and high is not None:
            if not _less(low, high, not (low_open or high_open)):
                return None
            if low == high and low in both.without:
                return None
        return both

    def join(self, other: "Range") -> "Range":
        """Give a range that holds both."""
        if self.only is not None and other.only is not None:
            return Range(only=self.only | other.only)
        one, two = self._hull(), other._hull()
        low, low_open = _looser(one.low, one.low_open, two.low, two.low_open, lower=True)
        high, high_open = _looser(one.high, one.high_open, two.high, two.high_open, lower=False)
        without = frozenset(
            value
            for value in self.without | other.without
            if value not in self and value not in other
        )
        return Range(low, high, low_open, high_open, None, without)

    def _hull(self) -> "Range":
        if self.only is None:
            return self
        return Range(low=reduce(_smaller, self.only), high=reduce(_greater, self.only))


def _less(one: Scalar, other: Scalar, equal: bool) -> bool:
    """Compare two values of one type."""
    if isinstance(one, str) or isinstance(other, str):
        return str(one) <= str(other) if equal else str(one) < str(other)
    return one <= other if equal else one < other


def _smaller(one: Scalar, other: Scalar) -> Scalar:
    return one if _less(one, other, True) else other


def _greater(one: Scalar, other: Scalar) -> Scalar:
    return other if _less(one, other, True) else one


def _tighter(
    one: Scalar | None, one_open: bool, other: Scalar | None, other_open: bool, *, lower: bool
) -> tuple[Scalar | None, bool]:
    if one is None or other is None:
        return (other, other_open) if one is None else (one, one_open)
    if one == other:
        return one, one_open or other_open
    return (one, one_open) if _less(other, one, True) == lower else (other, other_open)


def _looser(
    one: Scalar | None, one_open: bool, other: Scalar | None, other_open: bool, *, lower: bool
) -> tuple[Scalar | None, bool]:
    if one is None or other is None:
        return None, False
    if one == other:
        return one, one_open and other_open
    return (one, one_open) if _less(one, other, True) == lower else (other, other_open)


def meet(one: Box | None, other: Box | None) -> Box | None:
    """Join what two claims ask that are both true; None if they contradict each other."""
    if one is None or other is None:
        return None
    both = dict(one)
    for key, range_ in other.items():
        before = both.get(key)
        narrowed = range_ if before is None else before.meet(range_)
        if narrowed is None:
            return None
        both[key] = narrowed
    return both


def join(one: Box | None, other: Box | None) -> Box | None:
    """Give what holds if one of two claims is true."""
    if one is None or other is None:
        return other if one is None else one
    return {key: range_.join(other[key]) for key, range_ in one.items() if key in other}


def claim_box(claim: Claim, wanted: bool = True) -> Box | None:
    """Say what must hold for a claim to come to `wanted`; None if it never can."""
    match claim:
        case Test(expression):
            return box(expression.tree, wanted)
        case Opaque(name):
            return {f"guard {name}": Range(only=frozenset({wanted}))}
        case Not(inner):
            return claim_box(inner, not wanted)
        case All(parts) | Any(parts):
            boxes = [claim_box(part, wanted) for part in parts]
            itself: Box | None = {claim_text(claim): Range(only=frozenset({wanted}))}
            # All is true if every part is, and false if one part is; Any the other way round.
            if isinstance(claim, All) is wanted:
                return reduce(meet, boxes, itself)
            return meet(reduce(join, boxes, None), itself)


def claim_cases(claim: Claim, wanted: bool = True) -> list[Box]:
    """Say what must hold for a claim to come to `wanted`, case by case: one of them is given.

    Bounds of `a || b` on the whole forget which values come together; those of its cases do not.
    """
    match claim:
        case Test(expression):
            return cases(expression.tree, wanted)
        case Not(inner):
            return claim_cases(inner, not wanted)
        case All(parts) | Any(parts):
            listed = [claim_cases(part, wanted) for part in parts]
            return every(listed) if isinstance(claim, All) is wanted else some(listed)
        case _:
            found = claim_box(claim, wanted)
            return [] if found is None else [found]


def cases(node: Node, wanted: bool = True) -> list[Box]:
    """Say what must hold for an expression to come to `wanted`, case by case."""
    if isinstance(node, Call):
        match node.function, node.operands:
            case "!_", (inner,):
                return cases(inner, not wanted)
            case "_&&_" | "_||_" as operator, operands:
                listed = [cases(part, wanted) for part in operands]
                return every(listed) if (operator == "_&&_") is wanted else some(listed)
            case _:
                pass
    found = box(node, wanted)
    return [] if found is None else [found]


def every(listed: Iterable[list[Box]]) -> list[Box]:
    """Join cases of which one of each is given; those that contradict each other are left out."""
    found: list[Box] = [{}]
    for other in listed:
        met = (meet(one, two) for one in found for two in other)
        found = _few([case for case in met if case is not None])
    return found


def some(listed: Iterable[list[Box]]) -> list[Box]:
    """Put cases together of which one of any is given."""
    return _few([case for one in listed for case in one])


def _few(found: list[Box]) -> list[Box]:
    """Take many cases for one: what holds in all of them."""
    if len(found) <= CASES_MAX:
        return found
    joined = reduce(join, found, None)
    return [] if joined is None else [joined]


def claim_text(claim: Claim) -> str:
    """Write a claim so that equal texts have equal meanings."""
    match claim:
        case Test(expression):
            return shape(expression.tree)
        case Opaque(name):
            return f"guard {name!r}"
        case Not(inner):
            return f"claim not({claim_text(inner)})"
        case All(parts):
            return f"claim all({','.join(map(claim_text, parts))})"
        case Any(parts):
            return f"claim any({','.join(map(claim_text, parts))})"


def box(node: Node, wanted: bool = True) -> Box | None:
    """Say what must hold for an expression to come to `wanted`; None if it never can."""
    if isinstance(node, Constant):
        return {} if node.value is wanted else None
    itself: Box = {shape(node): Range(only=frozenset({wanted}))}
    if not isinstance(node, Call):
        return itself
    found: Box | None = {}
    match node.function, node.operands:
        case "!_", (inner,):
            found = box(inner, not wanted)
        case "_&&_" | "_||_" as operator, (one, other):
            every = (operator == "_&&_") is wanted
            found = (meet if every else join)(box(one, wanted), box(other, wanted))
        case "_?_:_", (test, one, other):
            found = join(
                meet(box(test, True), box(one, wanted)), meet(box(test, False), box(other, wanted))
            )
        case "@in", (value, ListOf(elements=elements, optional=optional)) if not optional:
            values = [literal(element) for element in elements]
            if value.type in ORDERED and all(element.type == value.type for element in elements):
                found = _among(value, values, wanted)
        case operator, (left, right) if operator in MIRRORED:
            found = _compared(operator, left, right, wanted)
        case _:
            pass
    return meet(found, itself)


def _among(value: Node, values: Iterable[Scalar | None], wanted: bool) -> Box | None:
    known = frozenset(value for value in values if value is not None and _plain(value))
    if len(known) != len(frozenset(values)):
        return {} if wanted else {shape(value): Range(without=known)}
    if not wanted:
        return {shape(value): Range(without=known)}
    return {shape(value): Range(only=known)} if known else None


def _plain(value: Scalar) -> bool:
    return not isinstance(value, float) or isfinite(value)


def _compared(operator: str, left: Node, right: Node, wanted: bool) -> Box | None:
    if left.type != right.type:
        return {}
    one, other = literal(left), literal(right)
    if one is not None and other is None:
        operator, left, right, one, other = MIRRORED[operator], right, left, other, one
    if left.type == BOOL and operator in ("_==_", "_!=_") and isinstance(other, bool):
        return box(left, other is ((operator == "_==_") is wanted))
    if left.type not in ORDERED or (other is not None and not _plain(other)):
        return {}
    if not wanted:
        # A computed double may be NaN, of which no comparison holds, nor its opposite.
        if left.type == DOUBLE and not isinstance(left, Identifier):
            return {}
        if left.type == DOUBLE and other is None and not isinstance(right, Identifier):
            return {}
        operator = OPPOSITE[operator]
    if other is None:
        return _ordered(operator, shape(left), shape(right), str(left.type))
    return {shape(left): bounded(operator, other, left.type)}


def bounded(operator: str, value: Scalar, type_: CelType) -> Range:
    """Give the values that compare so with the given one."""
    whole = type_ in WHOLE
    match operator:
        case "_<_" if whole and isinstance(value, int):
            return Range(high=value - 1)
        case "_>_" if whole and isinstance(value, int):
            return Range(low=value + 1)
        case "_<_" | "_<=_":
            return Range(high=value, high_open=operator == "_<_")
        case "_>_" | "_>=_":
            return Range(low=value, low_open=operator == "_>_")
        case "_==_":
            return Range(only=frozenset({value}))
        case _:
            return Range(without=frozenset({value}))


SIGNS = {
    "_<_": frozenset({-1}),
    "_<=_": frozenset({-1, 0}),
    "_>_": frozenset({1}),
    "_>=_": frozenset({0, 1}),
    "_==_": frozenset({0}),
    "_!=_": frozenset({-1, 1, 2}),  # 2: neither is the greater, as with NaN
}


def _ordered(operator: str, left: str, right: str, type_: str) -> Box:
    """Bound the order of two values; a pair is always named the same way round."""
    if right < left:
        operator, left, right = MIRRORED[operator], right, left
    return {f"order {type_} {left} {right}": Range(only=frozenset[Scalar](SIGNS[operator]))}


def shape(node: Node) -> str:
    """Write a node without its ids and places: equal texts have equal values in one scope."""
    match node:
        case Constant():
            return f"{node.type}:{node.value!r}"
        case Identifier():
            return node.name
        case Select():
            return f"{'has' if node.test_only else 'get'}({shape(node.operand)},{node.field!r})"
        case Call():
            method = "" if node.target is None else "."
            return f"{method}{node.function}({','.join(map(shape, node.operands))})"
        case ListOf():
            return f"[{','.join(map(shape, node.elements))};{sorted(node.optional)}]"
        case MapOf():
            pairs = (f"{e.optional}{shape(e.key)}={shape(e.value)}" for e in node.entries)
            return f"{{{','.join(pairs)}}}"
        case Struct():
            pairs = (f"{name}={shape(value)}" for name, value in node.fields)
            return f"{node.message}{{{','.join(pairs)}}}"
        case Comprehension():
            names = f"{node.variable},{node.second},{node.accumulator}"
            parts = (node.over, node.initial, node.condition, node.step, node.result)
            return f"loop({names},{','.join(map(shape, parts))})"


def pick(range_: Range, type_: CelType) -> Scalar | None:
    """Choose a plain value of a range, near a bound if there is one; None if none comes to mind."""
    return next((value for value in _candidates(range_, type_) if value in range_), None)


def _candidates(range_: Range, type_: CelType) -> Iterable[Scalar]:
    low, high = range_.low, range_.high
    if range_.only is not None:
        return sorted(range_.only, key=lambda value: str(value) if type_ == STRING else value)
    if type_ == BOOL:
        return (True, False)
    steps = range(len(range_.without) + 2)
    if type_ == STRING:
        base = low if isinstance(low, str) else ""
        return (base, *(base + chr(ord("a") + step % 26) * (1 + step // 26) for step in steps))
    if isinstance(low, str) or isinstance(high, str):
        return ()
    if type_ in (TIMESTAMP, DURATION):  # Python's own have microseconds
        if low is not None:
            return (-(-int(low) // 1000) * 1000 + step * 1000 for step in steps)
        return (((0 if high is None else int(high)) // 1000 - step) * 1000 for step in steps)
    if type_ == DOUBLE:
        if low is not None:
            near: tuple[float, ...] = (
                float(low),
                *(float(floor(low) + 1 + step) for step in steps),
            )
            middle = () if high is None else (float(low) / 2 + float(high) / 2,)
            return (*near, *middle)
        if high is not None:
            return (float(high), *(float(ceil(high) - 1 - step) for step in steps))
        return map(float, steps)
    if low is not None:
        return (int(low) + step for step in steps)
    if high is not None:
        return (int(high) - step for step in steps)
    return iter(steps)
