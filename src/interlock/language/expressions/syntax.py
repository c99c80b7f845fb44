"""The text of an expression as a tree, in which every part knows its place.

The grammar is CEL's (google/cel-spec, doc/langdef.md), less what expressions here have no use for:
bytes, unsigned integers, maps and messages written out, fields by a computed name. We read it
ourselves so that a fault can be told in the words of a definition, and so that types such as
`decimal`, which CEL has not, can be put into its terms before it sees them.

    parse('data.amount < 100 && data.region == "EU"')

Bounds: a text of 4,096 characters, a tree 24 deep. A row of `&&` or of `||` counts as a balanced
tree, since the evaluator takes it so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from interlock.core.text import clipped

TEXT_MAX = 4096
DEPTH_MAX = 24  # the evaluator itself stops at 32, in its own count
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Code: TypeAlias = Literal["expression-syntax", "expression-type"]


class ExpressionFault(ValueError):
    """A text that is no expression, or one that does not fit its place.

    Attributes:
        offset: characters before the fault in the text.
    """

    def __init__(self, code: Code, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.hint = hint

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"column {self.offset + 1}: {self.message}{hint}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: `whole` ones are integers unless they stand beside something else."""

    at: int
    value: Decimal
    whole: bool


@dataclass(frozen=True, slots=True)
class Text:
    at: int
    value: str


@dataclass(frozen=True, slots=True)
class Truth:
    at: int
    value: bool


@dataclass(frozen=True, slots=True)
class Name:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """`operand.field`; `at` is the place of the field."""

    at: int
    operand: "Node"
    field: str


@dataclass(frozen=True, slots=True)
class Index:
    at: int
    operand: "Node"
    index: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """`f(x)`, or with a target `t.f(x)`."""

    at: int
    function: str
    target: "Node | None"
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Unary:
    at: int
    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    at: int
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Chain:
    """A row of two or more, joined by `&&` or by `||`."""

    at: int
    operator: str
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`test ? yes : no`."""

    at: int
    test: "Node"
    yes: "Node"
    no: "Node"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list written out."""

    at: int
    elements: tuple["Node", ...]


Node: TypeAlias = (
    Number | Text | Truth | Name | Member | Index | Call | Unary | Binary | Chain | Choice | Listing
)


def place(node: Node) -> int:
    """Say where the text of a node begins; `at` is where its own sign is."""
    match node:
        case Member(operand=operand) | Index(operand=operand):
            return place(operand)
        case Call(target=target) if target is not None:
            return place(target)
        case Binary(left=left):
            return place(left)
        case Chain(parts=parts):
            return place(parts[0])
        case Choice(test=test):
            return place(test)
        case _:
            return node.at


def parse(text: str) -> Node:
    """Read a text.

    Raises:
        ExpressionFault: it is no expression, or too long or too deep.
    """
    if len(text) > TEXT_MAX:
        message = f"the expression has {len(text)} characters, more than {TEXT_MAX}"
        raise ExpressionFault("expression-syntax", message, TEXT_MAX)
    return _Parser(list(_tokens(text)), len(text)).whole()


# Tokens

_TOKEN = re.compile(
    r"""
    (?P<blank> (?: [\t\n\f\r\ ] | //[^\n]* )+ )
  | (?P<text> (?P<prefix> [bB]?[rR]?|[rR][bB] ) (?P<quote> \"{3} | '{3} | " | ' ) )
  | (?P<float> (?: [0-9]*\.[0-9]+ (?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ ) )
  | (?P<int> 0x[0-9a-fA-F]+ | [0-9]+ )
  | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<sign> && | \|\| | == | != | <= | >= | [-+*/%<>!?:.,()\[\]{}] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

# CEL keeps these for later; as names they would not be portable.
RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
LITERALS = frozenset({"true", "false", "null", "in"})

# What authors used to other languages write, and what is meant.
_WORDS = {
    "and": "write `&&`",
    "AND": "write `&&`",
    "or": "write `||`",
    "OR": "write `||`",
    "not": "write `!`",
    "NOT": "write `!`",
    "is": "write `==`",
    "eq": "write `==`",
    "ne": "write `!=`",
    "lt": "write `<`",
    "gt": "write `>`",
    "between": "write `low <= x && x <= high`",
    "if": "write `test ? yes : no`",
}
_SIGNS = {
    "=": "`==` compares",
    "&": "write `&&`",
    "|": "write `||`",
    "$": "names are written bare, such as `data.amount`",
    "’": "quote with ' or \"",
    "‘": "quote with ' or \"",
    "“": "quote with ' or \"",
    "”": "quote with ' or \"",
    ";": "an expression is one value: it has no statements",
    "^": "there is no power and no exclusive or",
    "@": "names are written bare, such as `data.amount`",
}


class _Token(NamedTuple):
    kind: str  # int, float, text, name, sign, end
    text: str  # of a `text`, what it says
    at: int


def _syntax(message: str, at: int, hint: str | None = None) -> ExpressionFault:
    return ExpressionFault("expression-syntax", message, at, hint)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _syntax(f"`{clipped(text[at])}` is no sign", at, _SIGNS.get(text[at]))
        kind = str(found.lastgroup)
        start, at = at, found.end()
        if kind == "blank":
            continue
        if found["text"] is not None:
            value, at = _text(text, start, found)
            yield _Token("text", value, start)
            continue
        if kind in ("int", "float") and (after := text[at : at + 1]) and _joins(after):
            hint = "unsigned integers are not used here" if after in "uU" else None
            raise _syntax(f"`{clipped(found[0] + after)}` is no number", start, hint)
        yield _Token(kind, found[0], start)


def _joins(char: str) -> bool:
    return char == "_" or char.isalnum()


def _text(text: str, start: int, found: re.Match[str]) -> tuple[str, int]:
    """Read a quoted text; give what it says and where it ends."""
    quote, prefix = found["quote"], found["prefix"].lower()
    if "b" in prefix:
        raise _syntax("bytes are not used in expressions", start)
    at = found.end()
    parts: list[str] = []
    while not text.startswith(quote, at):
        char = text[at : at + 1]
        if not char or (char in "\r\n" and len(quote) == 1):
            raise _syntax("the text has no closing quote", start)
        if char != "\\":
            parts.append(char)
            at += 1
        elif "r" in prefix:
            parts.append(text[at : at + 2])
            at += 2
        else:
            char, at = _escaped(text, at)
            parts.append(char)
    value = "".join(parts)
    if unfit := re.search("[\0\ud800-\udfff]", value):
        what = "NUL character" if unfit[0] == "\0" else "lone surrogate"
        raise _syntax(f"the text holds a {what}", start)
    return value, at + len(quote)


def _escaped(text: str, at: int) -> tuple[str, int]:
    found = _ESCAPE.match(text, at)
    if found is None:
        hint = 'a backslash is written `\\\\`, or the whole text as r"…"'
        raise _syntax(f"`{clipped(text[at : at + 2])}` is no escape", at, hint)
    letter, *codes, octal = found.groups()
    if letter is not None:
        return _ESCAPES.get(letter, letter), found.end()
    number = int(octal, 8) if octal else int(next(code for code in codes if code), 16)
    if number > 0x10FFFF:
        raise _syntax(f"`{found[0]}` is no character", at)
    return chr(number), found.end()


# The grammar

_COMPARE = ("<", "<=", ">", ">=", "==", "!=", "in")


class _Parser:
    """Reads from the loosest operator to the tightest; `depth` bounds its own recursion."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self.tokens = [*tokens, _Token("end", "", end)]
        self.next = 0
        self.depth = 0

    def whole(self) -> Node:
        if len(self.tokens) == 1:
            raise _syntax("the expression is empty", 0)
        node = self.choice()
        token = self.tokens[self.next]
        if token.kind != "end":
            raise self.unexpected("an operator")
        if (depth := _depth(node)) > DEPTH_MAX:
            raise _too_deep(place(node), depth)
        return node

    def peek(self, *signs: str) -> bool:
        token = self.tokens[self.next]
        return token.text in signs and token.kind in ("sign", "name")

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        return token

    def expect(self, sign: str) -> None:
        if not self.peek(sign):
            raise self.unexpected(f"`{sign}`")
        self.next += 1

    def unexpected(self, wanted: str) -> ExpressionFault:
        kind, text, at = self.tokens[self.next]
        hint = _WORDS.get(text) if kind == "name" else None
        if kind == "end":
            return _syntax(f"the expression ends where {wanted} is expected", at)
        shown = "a text" if kind == "text" else f"`{clipped(text)}`"
        return _syntax(f"{shown} stands where {wanted} is expected", at, hint)

    def choice(self) -> Node:
        self.depth += 1
        if self.depth > 2 * DEPTH_MAX:  # brackets that hold only brackets make no deeper tree
            raise _too_deep(self.tokens[self.next].at, self.depth)
        test = self.chain("||")
        if self.peek("?"):
            at = self.take().at
            yes = self.chain("||")
            self.expect(":")
            test = Choice(at, test, yes, self.choice())
        self.depth -= 1
        return test

    def chain(self, operator: str) -> Node:
        parts: list[Node] = []
        at: int | None = None
        while True:
            part = self.chain("&&") if operator == "||" else self.binary(0)
            # `a && (b && c)` is one row, as is `(a && b) && c`: it means the same.
            parts += part.parts if isinstance(part, Chain) and part.operator == operator else [part]
            if not self.peek(operator):
                # Without an operator it is that part as it is, a row in brackets too.
                return part if at is None else Chain(at, operator, tuple(parts))
            sign = self.take().at
            at = sign if at is None else at

    def binary(self, level: int) -> Node:
        operators = (_COMPARE, ("+", "-"), ("*", "/", "%"))
        if level == len(operators):
            return self.unary()
        left = self.binary(level + 1)
        row = 0
        while self.peek(*operators[level]):
            row += 1
            if row > DEPTH_MAX:
                raise _too_deep(self.tokens[self.next].at, row)
            _, operator, at = self.take()
            left = Binary(at, operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        if not self.peek("!", "-"):
            return self.postfix(self.primary())
        self.depth += 1
        if self.depth > 2 * DEPTH_MAX:
            raise _too_deep(self.tokens[self.next].at, self.depth)
        _, operator, at = self.take()
        node = self.unary()
        self.depth -= 1
        if operator == "-" and isinstance(node, Number):
            return Number(at, -node.value, node.whole)
        return Unary(at, operator, node)

    def postfix(self, node: Node) -> Node:
        row = 0
        while True:
            row += 1
            if row > DEPTH_MAX:
                raise _too_deep(self.tokens[self.next].at, row)
            if self.peek("."):
                self.take()
                kind, name, at = self.tokens[self.next]
                if kind != "name" or name in LITERALS:
                    raise self.unexpected("the name of a field")
                self.take()
                if self.peek("("):
                    node = Call(at, name, node, self.listed("(", ")"))
                else:
                    node = Member(at, node, name)
            elif self.peek("["):
                at = self.tokens[self.next].at
                (index, *more) = self.listed("[", "]") or (None,)
                if index is None or more:
                    raise _syntax("one index is expected in the brackets", at)
                node = Index(at, node, index)
            else:
                return node

    def listed(self, opening: str, closing: str) -> tuple[Node, ...]:
        self.expect(opening)
        found: list[Node] = []
        while not self.peek(closing):
            found.append(self.choice())
            if not self.peek(","):
                break
            self.take()
            if opening == "(" and self.peek(closing):
                raise self.unexpected("a value")
        self.expect(closing)
        return tuple(found)

    def primary(self) -> Node:
        kind, text, at = self.tokens[self.next]
        match kind, text:
            case (("int" | "float"), _):
                self.take()
                return Number(at, _number(kind, text, at), kind == "int")
            case "text", _:
                self.take()
                return Text(at, text)
            case "name", "true" | "false":
                self.take()
                return Truth(at, text == "true")
            case "name", "null":
                raise _syntax("`null` is no value", at, "`has(data.x)` says whether x is there")
            case "name", _ if text in RESERVED or text == "in":
                raise self.unexpected("a value")
            case "name", _:
                self.take()
                if self.peek("("):
                    return Call(at, text, None, self.listed("(", ")"))
                if text in ("not", "NOT") and self.tokens[self.next].kind in ("name", "int"):
                    self.next -= 1
                    raise self.unexpected("a value")
                return Name(at, text)
            case "sign", "(":
                self.take()
                node = self.choice()
                self.expect(")")
                return node
            case "sign", "[":
                return Listing(at, self.listed("[", "]"))
            case "sign", "{":
                raise _syntax("maps are not written out in expressions", at)
            case _:
                raise self.unexpected("a value")


def _number(kind: str, text: str, at: int) -> Decimal:
    if kind == "int":
        value = Decimal(int(text, 16 if text.startswith("0x") else 10))
        # 2**63 is there for the least integer, which is written as its negative.
        if value > INT_MAX + 1:
            raise _syntax(f"`{clipped(text)}` is too large for an integer", at)
        return value
    if len(text) > 400 or not isfinite(float(text)):
        raise _syntax(f"`{clipped(text)}` is too large for a number", at)
    value = Decimal(text)
    if value and value.adjusted() <= -400:
        raise _syntax(f"`{clipped(text)}` is too small for a number", at)
    return value


def _too_deep(at: int, depth: int) -> ExpressionFault:
    hint = "split it into several branches or fields"
    return _syntax(f"the expression is nested {depth} deep, more than {DEPTH_MAX}", at, hint)


def _depth(node: Node) -> int:
    match node:
        case Chain(parts=parts):
            return (len(parts) - 1).bit_length() + max(map(_depth, parts))
        case Member(operand=below) | Unary(operand=below):
            return 1 + _depth(below)
        case Index(operand=one, index=other) | Binary(left=one, right=other):
            return 1 + max(_depth(one), _depth(other))
        case Choice(test=test, yes=yes, no=no):
            return 1 + max(_depth(test), _depth(yes), _depth(no))
        case Call(target=target, arguments=arguments):
            below_all = arguments if target is None else (target, *arguments)
            return 1 + max(map(_depth, below_all), default=0)
        case Listing(elements=elements):
            return 1 + max(map(_depth, elements), default=0)
        case _:
            return 1
