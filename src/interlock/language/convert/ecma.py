"""The small part of ECMAScript and JEXL that charts compute with, read as terms.

Literals, names, `In('state')`, `Math.pow` with a small whole power, arithmetic, comparisons, the
logical operators and `?:`; also the words of JEXL (`eq`, `lt`, `and`, `not` …). What else a text
may hold is `Unreadable`, and then it is for the caller to say what becomes of it.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from interlock.language.convert.terms import (
    LEVELS,
    In,
    Lit,
    Name,
    Term,
    Unreadable,
    literal,
    op,
    plain,
)

MAX_TEXT = 4_000  # a longer condition or value is not one that people wrote
MAX_TOKENS = 250  # terms are walked by recursion, and a row of operators is as deep as it is long
MAX_DEPTH = 24
MAX_POWER = 8

TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    | (?P<name>[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)
    | (?P<op>===|!==|==|!=|<=|>=|&&|\|\||[-+*/<>!?:(){}\[\],])
    )""",
    re.VERBOSE,
)
WORDS = {
    "and": "&&", "or": "||", "not": "!", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
SAME = {"===": "==", "!==": "!="}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
CLOSING = {"(": ")", "[": "]", "{": "}"}


class Broken(Unreadable):
    """A text that no ECMAScript processor could read: its brackets or quotes do not close."""


def parse(text: str) -> Term:
    """Read an expression.

    Raises:
        Broken: no processor could read it.
        Unreadable: it is more than is understood here.
    """
    if len(text) > MAX_TEXT:
        raise Unreadable("too long")
    check_closed(text)
    tokens = list(islice(_tokens(text), MAX_TOKENS + 1))
    if len(tokens) > MAX_TOKENS:
        raise Unreadable("too long")
    parser = _Parser(tokens)
    term = parser.ternary(0)
    if parser.peek()[0]:
        raise Unreadable(f"`{parser.peek()[1]}` is not expected")
    return term


def check_closed(text: str) -> None:
    """Raise `Broken` when a bracket or a quote is left open, or closes what is not open."""
    due: list[str] = []
    for quoted in re.finditer(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", text, re.DOTALL):
        char = quoted[0]
        if char in CLOSING:
            due.append(CLOSING[char])
        elif char in ")]}" and (not due or due.pop() != char):
            raise Broken(f"`{char}` closes nothing")
        elif char in "'\"":
            raise Broken("a quote is left open")
    if due:
        raise Broken(f"`{due[-1]}` is missing")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = TOKEN.match(text, at)
        if not found:
            raise Unreadable(f"`{text[at:].strip()[:10]}` is not understood")
        at = found.end()
        kind = found.lastgroup or ""
        token = found[kind]
        if kind == "name" and token in WORDS:
            yield "op", WORDS[token]
        else:
            yield kind, SAME.get(token, token)


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *ops: str) -> str | None:
        kind, text = self.peek()
        if kind == "op" and text in ops:
            self.at += 1
            return text
        return None

    def expect(self, op: str) -> None:
        if not self.accept(op):
            raise Unreadable(f"`{op}` is expected")

    def ternary(self, depth: int) -> Term:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        test = self.binary(1, depth)
        if not self.accept("?"):
            return test
        yes = self.ternary(depth + 1)
        self.expect(":")
        return op("?:", test, yes, self.ternary(depth + 1))

    def binary(self, level: int, depth: int) -> Term:
        if level > len(LEVELS):
            return self.unary(depth)
        left = self.binary(level + 1, depth)
        while found := self.accept(*LEVELS[level - 1]):
            left = op(found, left, self.binary(level + 1, depth))
        return left

    def unary(self, depth: int) -> Term:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        if found := self.accept("!", "-"):
            return op("!" if found == "!" else "neg", self.unary(depth + 1))
        return self.primary(depth)

    def primary(self, depth: int) -> Term:
        kind, text = self.take()
        match kind, text:
            case "number", _:
                return literal(float(text) if re.search("[.eE]", text) else int(text))
            case "string", _:
                return literal(_unquoted(text))
            case "name", "true" | "false":
                return literal(text == "true")
            case "name", "null":
                return literal(None)
            case "name", "In":
                self.expect("(")
                inner = self.ternary(depth + 1)
                self.expect(")")
                if not isinstance(inner, Lit) or inner.kind != "string":
                    raise Unreadable("In() without the name of a state")
                return In(inner.value)
            case "name", "Math.pow":
                return self.power(depth)
            case "name", _:
                if "." in text or "$" in text or self.peek() in (("op", "("), ("op", "[")):
                    raise Unreadable(f"`{text}` is not understood")
                return Name(text)
            case "op", "(":
                inner = self.ternary(depth + 1)
                self.expect(")")
                return inner
            case "op", "{":
                return self.table(depth)
            case "op", "[":
                return self.row(depth)
            case _:
                raise Unreadable(f"`{text}` is not expected" if text else "it ends too early")

    def power(self, depth: int) -> Term:
        self.expect("(")
        base = self.ternary(depth + 1)
        self.expect(",")
        power = self.ternary(depth + 1)
        self.expect(")")
        if (
            not isinstance(power, Lit)
            or power.kind != "integer"
            or not 1 <= power.value <= MAX_POWER
        ):
            raise Unreadable(f"a power that is not a whole number from 1 to {MAX_POWER}")
        term = base
        for _ in range(power.value - 1):
            term = op("*", term, base)
        return term

    def table(self, depth: int) -> Term:
        value: dict[str, Any] = {}
        while not self.accept("}"):
            kind, text = self.take()
            if kind == "string":
                text = _unquoted(text)
            elif kind not in ("name", "number"):
                raise Unreadable(f"`{text}` is no key")
            self.expect(":")
            value[text] = self.value(depth)
            if not self.accept(","):
                self.expect("}")
                break
        return literal(value)

    def row(self, depth: int) -> Term:
        value: list[Any] = []
        while not self.accept("]"):
            value.append(self.value(depth))
            if not self.accept(","):
                self.expect("]")
                break
        return literal(value)

    def value(self, depth: int) -> Any:
        term = self.ternary(depth + 1)
        if not isinstance(term, Lit):
            raise Unreadable("a list or an object that is not constant")
        return plain(term)


def _unquoted(text: str) -> str:
    if re.search(r"\\[0-9xu]", text):
        raise Unreadable("an escape that is not understood")
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text[1:-1])
