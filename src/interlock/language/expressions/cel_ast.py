"""The checked syntax tree of a CEL expression, as frozen values.

The evaluator gives its tree only as bytes: a `google.protobuf.Any` around a
`cel.expr.CheckedExpr`. `decode` reads them without a protobuf library. Every node carries the type
that the checker found and the place in the text. Macros are already expanded: `l.exists(x, p)` is
a `Comprehension`, `has(m.f)` a `Select` with `test_only`.

    decode(environment.compile("data.amount < 100").serialize())
    # Call(function="_<_", arguments=(Identifier(name="data.amount"), Constant(value=100)), …)

The bytes come from the evaluator in the same process, never from a file or a caller. The evaluator
bounds how deep an expression nests, so reading may recurse.

Field numbers: google/cel-spec, proto/cel/expr/syntax.proto and checked.proto.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypedDict


@dataclass(frozen=True, slots=True)
class CelType:
    """A type: a plain word, or `list`, `map` and the like with what they hold.

    Words: bool, int, uint, double, string, bytes, timestamp, duration, null, dyn, any, type, error,
    and for a message its full name. A wrapper such as Int64Value is `wrapper` of its plain type.
    """

    name: str
    of: tuple["CelType", ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.of))
        return f"{self.name}({inner})" if inner else self.name


DYN = CelType("dyn")
BOOL = CelType("bool")
INT = CelType("int")
UINT = CelType("uint")
DOUBLE = CelType("double")
STRING = CelType("string")
BYTES = CelType("bytes")
TIMESTAMP = CelType("timestamp")
DURATION = CelType("duration")
NULL = CelType("null")

PRIMITIVES = {1: BOOL, 2: INT, 3: UINT, 4: DOUBLE, 5: STRING, 6: BYTES}
WELL_KNOWN = {1: CelType("any"), 2: TIMESTAMP, 3: DURATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """What all nodes have.

    Attributes:
        id: unique within one tree; from 1, for all nodes the evaluator has numbered.
        type: as checked; `dyn` if the checker left it open.
        position: characters before the node's own sign (an operator, a name, a bracket).
    """

    id: int
    type: CelType = DYN
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(_Placed):
    """A literal. An `int` value is an int or a uint: the type says which."""

    value: bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(_Placed):
    """A variable. A declared dotted name, such as `data.amount`, is one identifier."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(_Placed):
    """A field of a map or message; with `test_only`, whether it is there (`has`)."""

    operand: "Node"
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(_Placed):
    """A function or operator (`_<_`, `!_`, `_?_:_`, `_[_]`, `@in`); a method has a target."""

    function: str
    target: "Node | None" = None
    arguments: tuple["Node", ...] = ()

    @property
    def operands(self) -> tuple["Node", ...]:
        """The target, if any, and the arguments: what the function works on."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(_Placed):
    """A list written out. `optional` are the indices of elements that may be left out (`?x`)."""

    elements: tuple["Node", ...] = ()
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry:
    """One pair of a map written out; an optional one (`?k: v`) may be left out."""

    key: "Node"
    value: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(_Placed):
    """A map written out, in the order of the text."""

    entries: tuple[MapEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct(_Placed):
    """A message written out: its full name and its fields, in the order of the text."""

    message: str
    fields: tuple[tuple[str, "Node"], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comprehension(_Placed):
    """A loop: each round gives `accumulator` the value of `step`, while `condition` is true.

    `variable` is an element of a list or a key of a map; `second`, if not empty, the element of a
    list (then `variable` is its index) or the value of a map.
    """

    variable: str
    second: str
    over: "Node"
    accumulator: str
    initial: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node: TypeAlias = Constant | Identifier | Select | Call | ListOf | MapOf | Struct | Comprehension


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes right below, in the order of the text as far as there is one."""
    match node:
        case Constant() | Identifier():
            return ()
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListOf():
            return node.elements
        case MapOf():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case Struct():
            return tuple(value for _, value in node.fields)
        case Comprehension():
            return (node.over, node.initial, node.condition, node.step, node.result)


def walk(node: Node) -> Iterator[Node]:
    """Give the node and all below it, each before what it holds."""
    yield node
    for child in children(node):
        yield from walk(child)


def decode(serialised: bytes) -> Node:
    """Read what the evaluator's `serialize()` gave.

    Raises:
        ValueError: these are not the bytes of a checked expression.
    """
    try:
        wrapper = _Message(serialised)
        if not wrapper.text(1).endswith("/cel.expr.CheckedExpr"):
            raise ValueError("not a checked CEL expression")
        checked = wrapper.message(2)
        return _Reader(checked).node(checked.message(4))
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ValueError("not a whole checked CEL expression") from error


class _Message:
    """The fields of one protobuf message: number -> what was on the wire, in order."""

    def __init__(self, data: bytes) -> None:
        self.fields: dict[int, list[int | bytes]] = {}
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            value: int | bytes
            match tag & 7:
                case 0:
                    value, at = _varint(data, at)
                case 1:
                    value, at = _slice(data, at, 8)
                case 2:
                    length, at = _varint(data, at)
                    value, at = _slice(data, at, length)
                case 5:
                    value, at = _slice(data, at, 4)
                case wire:
                    raise ValueError(f"wire type {wire} is not in a CEL expression")
            self.fields.setdefault(tag >> 3, []).append(value)

    def number(self, field: int) -> int:
        """Read a whole number; an absent one is 0. The last one counts, as protobuf has it."""
        value = self.fields.get(field, [0])[-1]
        if not isinstance(value, int):
            raise ValueError(f"field {field} is not a number")
        return value

    def numbers(self, field: int) -> list[int]:
        """Read repeated numbers, packed or not."""
        found: list[int] = []
        for value in self.fields.get(field, []):
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                found.append(number)
        return found

    def content(self, field: int) -> bytes:
        """Read bytes; absent ones are empty."""
        value = self.fields.get(field, [b""])[-1]
        if not isinstance(value, bytes):
            raise ValueError(f"field {field} is a number")
        return value

    def text(self, field: int) -> str:
        return self.content(field).decode()

    def message(self, field: int) -> "_Message":
        return _Message(self.content(field))

    def messages(self, field: int) -> "list[_Message]":
        found: list[_Message] = []
        for value in self.fields.get(field, []):
            if not isinstance(value, bytes):
                raise ValueError(f"field {field} is a number")
            found.append(_Message(value))
        return found

    def kind(self, first: int, last: int) -> int:
        """Say which field of a `oneof` is there; 0 for none."""
        return next((field for field in self.fields if first <= field <= last), 0)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, lowest first, and say where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at


def _slice(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise IndexError(at)  # a slice would be cut short without a word
    return data[at : at + length], at + length


def _signed(number: int) -> int:
    """Read 64 bits as two's complement: a negative int is on the wire as its unsigned twin."""
    return (number ^ 1 << 63) - (1 << 63)


class _Place(TypedDict):
    id: int
    type: CelType
    position: int | None


class _Reader:
    """Reads one checked expression; it knows types and places by the nodes' ids."""

    def __init__(self, checked: _Message) -> None:
        # A map is on the wire as messages {1: key, 2: value}.
        self.types = {pair.number(1): _type(pair.message(2)) for pair in checked.messages(3)}
        self.positions = {pair.number(1): pair.number(2) for pair in checked.message(5).messages(4)}

    def node(self, data: _Message) -> Node:
        number = data.number(2)
        place = _Place(
            id=number, type=self.types.get(number, DYN), position=self.positions.get(number)
        )
        kind = data.kind(3, 9)
        body = data.message(kind)
        match kind:
            case 3:
                return Constant(value=_literal(body), **place)
            case 4:
                return Identifier(name=body.text(1), **place)
            case 5:
                return Select(
                    operand=self.node(body.message(1)),
                    field=body.text(2),
                    test_only=bool(body.number(3)),
                    **place,
                )
            case 6:
                return Call(
                    function=body.text(2),
                    target=self.node(body.message(1)) if 1 in body.fields else None,
                    arguments=self.nodes(body, 3),
                    **place,
                )
            case 7:
                optional = frozenset(body.numbers(2))
                return ListOf(elements=self.nodes(body, 1), optional=optional, **place)
            case 8 if name := body.text(1):
                pairs = ((field.text(2), field.message(4)) for field in body.messages(2))
                fields = tuple((field, self.node(value)) for field, value in pairs)
                return Struct(message=name, fields=fields, **place)
            case 8:
                entries = tuple(
                    MapEntry(
                        key=self.node(entry.message(3)),
                        value=self.node(entry.message(4)),
                        optional=bool(entry.number(5)),
                    )
                    for entry in body.messages(2)
                )
                return MapOf(entries=entries, **place)
            case 9:
                return Comprehension(
                    variable=body.text(1),
                    second=body.text(8),
                    over=self.node(body.message(2)),
                    accumulator=body.text(3),
                    initial=self.node(body.message(4)),
                    condition=self.node(body.message(5)),
                    step=self.node(body.message(6)),
                    result=self.node(body.message(7)),
                    **place,
                )
            case _:
                raise ValueError(f"node {number} is no CEL expression")

    def nodes(self, body: _Message, field: int) -> tuple[Node, ...]:
        return tuple(map(self.node, body.messages(field)))


def _literal(body: _Message) -> bool | int | float | str | bytes | None:
    kind = body.kind(1, 7)
    match kind:
        case 1:
            return None
        case 2:
            return bool(body.number(2))
        case 3:
            return _signed(body.number(3))
        case 4:
            return body.number(4)
        case 5:
            (number,) = struct.unpack("<d", body.content(5))
            return float(number)
        case 6:
            return body.text(6)
        case 7:
            return body.content(7)
        case _:
            raise ValueError("a literal without a value")


def _type(data: _Message) -> CelType:
    kind = data.kind(1, 14)
    match kind:
        case 2:
            return NULL
        case 3:
            return PRIMITIVES[data.number(3)]
        case 4:
            return CelType("wrapper", (PRIMITIVES[data.number(4)],))
        case 5:
            return WELL_KNOWN[data.number(5)]
        case 6:
            return CelType("list", (_type(data.message(6).message(1)),))
        case 7:
            pair = data.message(7)
            return CelType("map", (_type(pair.message(1)), _type(pair.message(2))))
        case 9:
            return CelType(data.text(9))
        case 11:
            return CelType("type", (_type(data.message(11)),))
        case 12:
            return CelType("error")
        case 14:
            body = data.message(14)
            return CelType(body.text(1), tuple(map(_type, body.messages(2))))
        case _:
            # 1 is dyn. A type parameter (10) that the checker left open holds any value; functions
            # (8) are not values.
            return DYN
