"""Terms in CEL: what kind of value each has, and how it is written.

    emit(parse("x === 10 && !done"))   -> "data.x == 10 && !data.done"

Values that do not go together in CEL are refused, whatever ECMAScript would make of them.
"""

import json
from collections.abc import Mapping

from interlock.language.convert.terms import (
    LEVELS,
    NUMBERS,
    Code,
    In,
    Lit,
    Name,
    Op,
    Term,
    Unreadable,
)

LEVEL = {op: level for level, ops in enumerate(LEVELS, 1) for op in ops}
COMPARING = (LEVEL["=="], LEVEL["<"])
SUM = LEVEL["+"]


class Mixed(Exception):
    """A term joins values of kinds that do not go together in CEL."""


def kind_of(term: Term, kinds: Mapping[str, str | None]) -> str | None:
    """Say what kind of value a term has; None when nothing tells.

    Raises:
        Mixed: its parts do not go together in CEL, whatever ECMAScript makes of them.
    """
    match term:
        case Lit(kind, _):
            return kind
        case Name(text):
            return kinds.get(text)
        case In():
            return "boolean"
        case Code():
            return None
        case Op("?:", (test, yes, no)):
            _need(kind_of(test, kinds), "boolean")
            return join(kind_of(yes, kinds), kind_of(no, kinds))
        case Op("neg", (inner,)):
            return _numeric(kind_of(inner, kinds))
        case Op("!" | "&&" | "||", args):
            for arg in args:
                _need(kind_of(arg, kinds), "boolean")
            return "boolean"
        case Op("==" | "!=", (one, two)):
            join(kind_of(one, kinds), kind_of(two, kinds))
            return "boolean"
        case Op("<" | "<=" | ">" | ">=", (one, two)):
            if join(kind_of(one, kinds), kind_of(two, kinds)) not in (*NUMBERS, "string", None):
                raise Mixed("only numbers and texts are ordered")
            return "boolean"
        case Op("/", (one, two)):
            _numeric(join(kind_of(one, kinds), kind_of(two, kinds)))
            return "number"  # of whole numbers too: CEL would cut off what is left
        case Op(name, (one, two)):
            both = join(kind_of(one, kinds), kind_of(two, kinds))
            return both if name == "+" and both == "string" else _numeric(both)
        case _:
            raise Mixed(f"`{term.op}` is not understood")


def join(one: str | None, two: str | None) -> str | None:
    """Give the kind that holds values of both."""
    if one is None or one == two:
        return two
    if two is None:
        return one
    if one in NUMBERS and two in NUMBERS:
        return "number"
    raise Mixed(f"{one} and {two} do not go together")


def _need(kind: str | None, wanted: str) -> None:
    if kind not in (wanted, None):
        raise Mixed(f"{kind} stands where {wanted} is needed")


def _numeric(kind: str | None) -> str | None:
    if kind not in (*NUMBERS, None):
        raise Mixed(f"no arithmetic with {kind}")
    return kind


def emit(
    term: Term, *, rename: Mapping[str, str] | None = None, real: bool = False, level: int = 0
) -> str:
    """Write a term in CEL; `real` writes whole numbers as doubles."""

    def inner(part: Term, level: int) -> str:
        return emit(part, rename=rename, real=real, level=level)

    match term:
        case Lit(kind, value):
            if kind == "integer" and real:
                return f"{value}.0"
            if kind in ("array", "object"):
                return str(value)
            return json.dumps(value, ensure_ascii=False)
        case Name(name):
            return f"data.{(rename or {}).get(name, name)}"
        case Code(text):
            return text
        case In(state):
            raise Unreadable(f"In('{state}') is no part of an expression")
        case Op("?:", (test, yes, no)):
            text = f"{inner(test, 1)} ? {inner(yes, 1)} : {inner(no, 0)}"
            return f"({text})" if level > 0 else text
        case Op("!", (only,)):
            return f"!{inner(only, len(LEVELS) + 1)}"
        case Op("neg", (only,)):
            return f"-{inner(only, len(LEVELS) + 1)}"
        case Op(sign, (one, two)):
            own = LEVEL[sign]
            # All comparisons bind alike in CEL; what is subtracted or divided keeps its brackets.
            left, right = (SUM, SUM) if own in COMPARING else (own, own + 1)
            text = f"{inner(one, left)} {sign} {inner(two, right)}"
            return f"({text})" if own < level else text
        case _:
            raise Unreadable("a term of an odd shape")
