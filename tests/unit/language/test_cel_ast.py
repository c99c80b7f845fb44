"""The tree of an expression, read from what the evaluator serialises."""

from importlib import import_module

import pytest

from interlock.language.expressions import cel_ast
from interlock.language.expressions.cel_ast import (
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
    children,
    decode,
    walk,
)

cel = import_module("cel_expr_python.cel")  # it has no types of its own
ext_optional = import_module("cel_expr_python.ext.ext_optional")
TYPES = cel.Type
ENVIRONMENT = cel.NewEnv(
    variables={
        "data.amount": TYPES.INT,
        "b": TYPES.BOOL,
        "n": TYPES.INT,
        "u": TYPES.UINT,
        "d": TYPES.DOUBLE,
        "s": TYPES.STRING,
        "raw": TYPES.BYTES,
        "at": TYPES.TIMESTAMP,
        "span": TYPES.DURATION,
        "nothing": TYPES.NULL,
        "any": TYPES.DYN,
        "tags": TYPES.List(TYPES.STRING),
        "counts": TYPES.Map(TYPES.STRING, TYPES.INT),
        "nested": TYPES.List(TYPES.Map(TYPES.STRING, TYPES.List(TYPES.INT))),
    },
    extensions=[ext_optional.ExtOptional()],
)


def read(text: str) -> Node:
    return decode(ENVIRONMENT.compile(text).serialize())


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("true", "bool", True),
        ("false", "bool", False),
        ("0", "int", 0),
        ("-9223372036854775808", "int", -(2**63)),
        ("9223372036854775807", "int", 2**63 - 1),
        ("18446744073709551615u", "uint", 2**64 - 1),
        ("-1.5", "double", -1.5),
        ("1e308", "double", 1e308),
        ('""', "string", ""),
        ('"é😀\\n"', "string", "é😀\n"),
        ('b"\\xff"', "bytes", b"\xff"),
        ("null", "null", None),
    ],
)
def test_literals(text: str, type_: str, value: object) -> None:
    node = read(text)
    assert isinstance(node, Constant)
    assert (str(node.type), node.value) == (type_, value)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("b", "bool"),
        ("n", "int"),
        ("u", "uint"),
        ("d", "double"),
        ("s", "string"),
        ("raw", "bytes"),
        ("at", "timestamp"),
        ("span", "duration"),
        ("nothing", "null"),
        ("any", "dyn"),
        ("tags", "list(string)"),
        ("counts", "map(string, int)"),
        ("nested", "list(map(string, list(int)))"),
        ("data.amount", "int"),
        ("int", "type(int)"),
    ],
)
def test_variables_and_their_types(name: str, type_: str) -> None:
    node = read(name)
    assert isinstance(node, Identifier)
    assert (node.name, str(node.type), node.position is not None) == (name, type_, True)


def test_operators_are_calls_in_the_order_of_the_text() -> None:
    node = read("data.amount < 100")
    assert isinstance(node, Call)
    assert (node.function, node.target, str(node.type)) == ("_<_", None, "bool")
    left, right = node.arguments
    assert isinstance(left, Identifier)
    assert isinstance(right, Constant)
    assert (left.name, right.value) == ("data.amount", 100)
    assert (node.position, right.position) == (12, 14)
    assert len({part.id for part in walk(node)}) == 3


def test_positions_count_characters_not_bytes() -> None:
    node = read('"é😀" == s')
    assert node.position == 5


def test_a_method_has_a_target() -> None:
    node = read('s.startsWith("a")')
    assert isinstance(node, Call)
    assert node.target is not None
    text, prefix = node.operands
    assert isinstance(text, Identifier)
    assert isinstance(prefix, Constant)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("b ? n : 2", "_?_:_"),
        ("!b", "!_"),
        ("-n", "-_"),
        ("n in [1, 2]", "@in"),
        ("tags[0]", "_[_]"),
        ("b && b", "_&&_"),
        ("size(s)", "size"),
        ("at - span", "_-_"),
    ],
)
def test_names_of_operators(text: str, function: str) -> None:
    node = read(text)
    assert isinstance(node, Call)
    assert node.function == function


def test_fields_and_their_presence() -> None:
    plain, tested = read("counts.x"), read("has(counts.x)")
    assert isinstance(plain, Select)
    assert isinstance(tested, Select)
    assert (plain.field, plain.test_only, str(plain.type)) == ("x", False, "int")
    assert (tested.field, tested.test_only, str(tested.type)) == ("x", True, "bool")


def test_lists() -> None:
    node = read("[1, n, 3]")
    assert isinstance(node, ListOf)
    assert (len(node.elements), str(node.type), node.optional) == (3, "list(int)", frozenset())
    optional = read("[1, ?optional.of(n)]")
    assert isinstance(optional, ListOf)
    assert optional.optional == {1}


def test_maps_and_messages() -> None:
    node = read('{"a": 1, s: n}')
    assert isinstance(node, MapOf)
    first, second = node.entries
    assert isinstance(first.key, Constant)
    assert isinstance(second.key, Identifier)
    assert (first.key.value, first.optional, str(node.type)) == ("a", False, "map(string, int)")
    assert len(children(node)) == 4
    optional = read('{?"a": optional.of(n)}')
    assert isinstance(optional, MapOf)
    assert optional.entries[0].optional
    message = read("google.protobuf.Duration{seconds: n}")
    assert isinstance(message, Struct)
    assert message.message == "google.protobuf.Duration"
    assert [name for name, _ in message.fields] == ["seconds"]
    assert len(children(message)) == 1
    assert read("google.protobuf.Int64Value{value: 1}").type == CelType("wrapper", (cel_ast.INT,))


@pytest.mark.parametrize("macro", ["exists", "all", "exists_one", "filter"])
def test_loops(macro: str) -> None:
    node = read(f'tags.{macro}(x, x == "a")')
    assert isinstance(node, Comprehension)
    assert (node.variable, node.second, node.accumulator) == ("x", "", "@result")
    assert isinstance(node.over, Identifier)
    assert len(children(node)) == 5
    assert str(node.type) == ("list(string)" if macro == "filter" else "bool")


def test_walk_meets_every_node_once_and_outer_ones_first() -> None:
    node = read('has(counts.x) && tags.exists(t, t == s + "!") ? {"k": [n]} : {"k": [1]}')
    ids = [part.id for part in walk(node)]
    assert ids[0] == node.id
    assert len(ids) == len(set(ids))
    names = {part.name for part in walk(node) if isinstance(part, Identifier)}
    assert names == {"counts", "tags", "t", "s", "n", "@result"}


def test_a_wide_condition_is_read() -> None:
    node = read(" && ".join(f"n != {number}" for number in range(2000)))
    assert sum(isinstance(part, Constant) for part in walk(node)) == 2000


def test_what_is_cut_short_or_foreign_is_refused() -> None:
    whole = ENVIRONMENT.compile('s == "EU" && tags.exists(x, x == s)').serialize()
    for end in range(0, len(whole) - 1, 7):
        with pytest.raises(ValueError, match="CEL expression"):
            decode(whole[:end])
    with pytest.raises(ValueError, match="not a checked"):
        decode(b"\x0a\x03abc")
