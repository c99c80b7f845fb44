"""What charts compute with: terms, simplified as they are made.

    op("+", Name("x"), literal(1))     -> Op("+", (Name("x"), Lit("integer", 1)))
    op("+", literal(2), literal(1))    -> Lit("integer", 3)

So what is known when a file is read stays short.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

#: Operators of two parts, those that bind least first.
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/"))
NUMBERS = ("integer", "number")


class Unreadable(Exception):
    """A text is not of the part that is understood."""


@dataclass(frozen=True, slots=True)
class Lit:
    """A value of JSON; lists and objects are kept as their JSON text, so that terms compare."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    text: str


@dataclass(frozen=True, slots=True)
class In:
    state: str


@dataclass(frozen=True, slots=True)
class Op:
    op: str
    args: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Code:
    """An expression that is ours already, as it is written."""

    text: str


Term: TypeAlias = Lit | Name | In | Op | Code
TRUE, FALSE = Lit("boolean", True), Lit("boolean", False)


def literal(value: object) -> Lit:
    match value:
        case bool():
            return Lit("boolean", value)
        case int() | float():
            return _number(value)
        case str():
            return Lit("string", value)
        case None:
            return Lit("null", None)
        case list():
            return Lit("array", json.dumps(value))
        case dict():
            return Lit("object", json.dumps(value))
        case _:
            raise Unreadable(f"a value of type {type(value).__name__}")


def plain(term: Lit) -> Any:
    """Give the JSON value of a literal."""
    return json.loads(term.value) if term.kind in ("array", "object") else term.value


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def op(name: str, *args: Term) -> Term:
    """Make a term, computed where its parts are known."""
    match name, args:
        case "!", (Lit("boolean", value),):
            return literal(not value)
        case "!", (Op("!", (inner,)),):
            return inner
        case "neg", (Lit(kind, value),) if kind in NUMBERS:
            return literal(-value)
        case "neg", (Op("neg", (inner,)),):
            return inner
        case "?:", (Lit("boolean", value), yes, no):
            return yes if value else no
        case "?:", (_, yes, no) if yes == no:
            return yes
        case "&&", (Lit("boolean", value), other) | (other, Lit("boolean", value)):
            return other if value else FALSE
        case "||", (Lit("boolean", value), other) | (other, Lit("boolean", value)):
            return TRUE if value else other
        case "==" | "!=", (Lit(kind, one), Lit(other, two)):
            if kind == other or (kind in NUMBERS and other in NUMBERS):
                return literal((one == two) == (name == "=="))
        case _, (Lit(kind, one), Lit(other, two)) if kind in NUMBERS and other in NUMBERS:
            if name in COMPARISONS:
                return literal(COMPARISONS[name](one, two))
            if name in ARITHMETIC and not (name == "/" and two == 0):
                return _computed(ARITHMETIC[name](one, two))
        case "+", (Lit("string", one), Lit("string", two)):
            return literal(one + two)
        case _:
            pass
    return Op(name, args)


def _number(value: int | float) -> Lit:
    if abs(value) > 2**53 or not math.isfinite(value):
        raise Unreadable("a number too large to be exact")
    return Lit("integer" if isinstance(value, int) else "number", value)


def _computed(value: int | float) -> Lit:
    """Make a number that came of numbers: a whole one is whole, as in ECMAScript."""
    whole = isinstance(value, float) and value.is_integer()
    return _number(int(value) if whole else value)


def substitute(term: Term, values: Mapping[str, Term]) -> Term:
    """Put terms in the place of names."""
    match term:
        case Name(text):
            return values.get(text, term)
        case Op(name, args):
            return op(name, *(substitute(arg, values) for arg in args))
        case _:
            return term


def names(term: Term) -> set[str]:
    match term:
        case Name(text):
            return {text}
        case Op(_, args):
            return set().union(*map(names, args))
        case _:
            return set()


def states(term: Term) -> set[str]:
    """Say which states an expression asks for by `In`."""
    match term:
        case In(state):
            return {state}
        case Op(_, args):
            return set().union(*map(states, args))
        case _:
            return set()


def size(term: Term) -> int:
    return 1 + (sum(map(size, term.args)) if isinstance(term, Op) else 0)
