"""Expressions: the conditions and values that a definition writes as text.

    scope = Scope(data=read_properties({"amount": {"type": "decimal", "scale": 2}}))
    small = compile_expression("data.amount < 100", scope)
    small.evaluate({"data": {"amount": "99.99"}})           -> True

The language is CEL's, less what would make an expression unbounded or unprovable, with two types
more: `decimal` and, under that name, `date-time`. `docs/expressions.md` says what there is.

An expression has a value or fails; a failure is `ExpressionError` and never false. It reads only
what it names: values are handed over as values and never become part of a text that is compiled.
Equal values give equal results: there is no clock, no time zone, no chance in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from math import isfinite
from typing import Any, Protocol, TypeAlias

from interlock.core.text import clipped
from interlock.language.expressions.cel_ast import Node as Tree
from interlock.language.expressions.cel_ast import decode
from interlock.language.expressions.checker import Checker, Reference, fitted
from interlock.language.expressions.evaluator import (
    EvaluationFailed,
    EvaluatorRefused,
    Program,
    Variables,
    compile_text,
    failure,
)
from interlock.language.expressions.properties import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    PLAIN,
    STRING,
    Properties,
    Type,
    units,
    written,
)
from interlock.language.expressions.syntax import (
    INT_MAX,
    INT_MIN,
    ExpressionFault,
    Member,
    Name,
    Node,
    parse,
)

__all__ = ["Expression", "ExpressionError", "ExpressionFault", "Scope", "compile_expression"]

INSTANCE = Type(
    "object",
    fields={
        "id": (STRING, False),
        "state": (STRING, False),
        "version": (INTEGER, False),
        "instantiated_at": (DATE_TIME, False),
    },
)

_SIGNATURES = {
    "boolean": "bool",
    "integer": "int",
    "number": "double",
    "string": "string",
    "decimal": "int",
    "date-time": "timestamp",
    "duration": "duration",
    "object": "map",
    "any": "dyn",
}

_Read: TypeAlias = Callable[[object], object]
_MISSING = object()


class ExpressionError(Exception):
    """An expression has no value for the given values: a division by zero, an absent field.

    Attributes:
        source: the text of the expression.
    """

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


class Rooted(Protocol):
    """What says what an expression may name.

    Attributes:
        roots: each name that may stand first, with its type.
        present: see `Scope`.
    """

    @property
    def roots(self) -> Mapping[str, Type]: ...

    @property
    def present(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Scope:
    """What an expression may name.

    Attributes:
        event: the fields of the event's payload; None where there is no event.
        others: further names, such as a workflow's `input`.
        present: fields known to be there although they are optional, such as `data.due_at` in a
            state that says so.
    """

    data: Properties = field(default_factory=Properties)
    event: Properties | None = None
    others: Mapping[str, Properties] = field(default_factory=dict)
    present: frozenset[str] = frozenset()

    @cached_property
    def roots(self) -> Mapping[str, Type]:
        """Give each name that may stand first, with its type."""
        roots = {"data": self.data.type()}
        if self.event is not None:
            roots["event"] = self.event.type()
        roots |= {"actor": STRING, "now": DATE_TIME, "instance": INSTANCE}
        return roots | {name: properties.type() for name, properties in self.others.items()}


@dataclass(frozen=True)
class Expression:
    """An expression that was compiled.

    Attributes:
        source: its text, as written. To be hashed, if anything: what was made of it may change.
        type: of its value.
        text: what the evaluator was given.
        references: what it reads.
    """

    source: str
    type: Type
    text: str = field(repr=False)
    references: tuple[Reference, ...] = field(repr=False)
    program: Program = field(repr=False, compare=False)

    @cached_property
    def names(self) -> frozenset[str]:
        """Give what it reads or asks after: `data.amount`, `now`."""
        return frozenset(".".join(reference.path) for reference in self.references)

    @cached_property
    def tree(self) -> Tree:
        """Give the evaluator's own tree, in which a decimal is a count of its units."""
        return decode(self.program.serialised)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Give the value.

        Args:
            values: `data`, `event` and so on, each as its properties declare it, with decimals and
                instants as text or in their Python form. What the expression does not name is not
                looked at.

        Raises:
            ExpressionError: there is no value, or what is read is not as declared.
        """
        given: dict[str, object] = {}
        for name, first, rest, read in self._reads:
            value = values.get(first, _MISSING)
            for step in rest:
                value = value.get(step, _MISSING) if isinstance(value, Mapping) else _MISSING
            if read is None:
                given[name] = value is not _MISSING
            elif value is not _MISSING:
                try:
                    given[name] = read(value)
                except ValueError as error:
                    where = f"{first}.{'.'.join(rest)}" if rest else first
                    raise ExpressionError(f"`{where}`: {error}", self.source) from error
        try:
            return self._result(self.program.value(given))
        except EvaluationFailed as error:
            raise ExpressionError(_failure(str(error)), self.source) from error

    def truth(self, values: Mapping[str, object]) -> bool | None:
        """Evaluate with values by the names of the tree's variables; None if it has no boolean."""
        try:
            value = self.program.value(values)
        except EvaluationFailed:
            return None
        return value if isinstance(value, bool) else None

    @cached_property
    def _reads(self) -> tuple[tuple[str, str, tuple[str, ...], _Read | None], ...]:
        return tuple(
            (r.name, r.path[0], r.path[1:], None if r.presence else _reader(r.type))
            for r in self.references
        )

    @cached_property
    def _result(self) -> Callable[[Any], Any]:
        return _writer(self.type)


def path_of(text: str, scope: Rooted) -> tuple[tuple[str, ...], Type] | None:
    """Give the path that a text is nothing but, if it leads to an object or to any JSON.

    Raises:
        ExpressionFault: it is no expression, or what it names is not there.
    """
    checker = Checker(scope.roots, failure)
    node: Node = parse(text)
    within: list[str] = []  # of what may be any JSON
    while isinstance(node, Name | Member):
        if (found := checker.chain(node)) is not None:
            path, type_, absent = found
            leads = type_.name == "any" or (type_.name == "object" and not within)
            return ((*path, *reversed(within)), type_) if leads and not absent else None
        assert isinstance(node, Member)  # a name is always found
        within.append(node.field)
        node = node.operand
    return None


def compile_expression(text: str, scope: Rooted, *, wants: Type | None = BOOLEAN) -> Expression:
    """Compile a text for a place that wants a value of some type; None wants any.

    Raises:
        ExpressionFault: it is no expression, or not of that type.
    """
    checker = Checker(scope.roots, failure)
    found = checker.value(parse(text), scope.present)
    if wants is not None:
        found = fitted(checker, found, wants)
    references = tuple(checker.references.values())
    variables: Variables = tuple(sorted((r.name, _signature(r)) for r in references))
    try:
        program = compile_text(found.text, variables)
    except EvaluatorRefused as error:
        # The checker let through what the evaluator refuses: it nests too deep in its own count.
        message = f"the evaluator refuses it: {clipped(' '.join(str(error).split()), 200)}"
        raise ExpressionFault("expression-type", message, 0) from error
    return Expression(text, found.type, found.text, references, program)


def _signature(reference: Reference) -> str:
    return "bool" if reference.presence else _type_signature(reference.type)


def _type_signature(type_: Type) -> str:
    return f"list {_type_signature(type_.of)}" if type_.of else _SIGNATURES[type_.name]


def _reader(type_: Type, *, nested: bool = False) -> _Read:
    """Make what turns a value as declared into the evaluator's, or raises `ValueError`."""
    if type_.name == "decimal":
        scale = type_.scale
        return lambda value: units(value, scale)
    if type_.name == "array" and type_.of is not None:
        return _array_reader(_reader(type_.of, nested=nested))
    if type_.name == "any":
        return _plain
    if type_.name == "object":
        fields = {name: _reader(inner, nested=True) for name, (inner, _) in type_.fields.items()}
        return _object_reader(fields)
    plain = PLAIN[type_.name]
    if type_.name == "date-time" and nested:
        return lambda value: written(plain(value))
    return plain


def _array_reader(read: _Read) -> _Read:
    def array(value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("an array is expected")
        return [read(item) for item in value]

    return array


def _object_reader(fields: Mapping[str, _Read]) -> _Read:
    def object_(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError("an object is expected")
        return {name: read(value[name]) for name, read in fields.items() if name in value}

    return object_


def _writer(type_: Type) -> Callable[[Any], Any]:
    """Make what turns the evaluator's value into one of Python's."""
    match type_.name:
        case "decimal":
            scale = type_.scale
            return lambda value: Decimal(value).scaleb(-scale)
        case "date-time":
            return _utc
        case "number":
            return _finite
        case "any":
            return _written
        case "array" if type_.of is not None:
            write = _writer(type_.of)
            return lambda value: [write(item) for item in value]
        case "object":
            writers = {name: _writer(inner) for name, (inner, _) in type_.fields.items()}
            return lambda value: {name: writers[name](item) for name, item in value.items()}
        case _:
            return _same


def _plain(value: object) -> object:
    """Hand over JSON as it is: the evaluator's whole numbers have 64 bits."""
    if type(value) is int and not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"{clipped(value)} does not fit into 64 bits")
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _written(value: Any) -> Any:
    """Write down what nobody has said the type of."""
    if isinstance(value, Mapping):
        return {name: _written(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float:
    if not isfinite(value):
        raise EvaluationFailed(f"the result is {value}, which is no number that JSON can say")
    return value


def _same(value: Any) -> Any:
    return value


def _utc(value: datetime | str) -> datetime | str:
    if isinstance(value, str):
        return value  # inside of an object
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_FAILURES = {
    "divide by zero": "division by zero",
    "modulus by zero": "division by zero",
    "integer overflow": "the result does not fit into 64 bits",
    "No value with name": "a field that it reads is absent",
    "Key not found": "a field that it reads is absent",
    "Index error": "the index is outside the array",
    "Iteration budget": "too many rounds of its loops",
}


def _failure(said: str) -> str:
    """Say why there is no value; in the evaluator's words only what is not known here."""
    for sign, meaning in _FAILURES.items():
        if sign in said:
            return meaning
    return clipped(said.partition(": ")[2] or said, 200)
