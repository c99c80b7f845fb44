"""Conditions of ours as one text, for SCXML's `cond`, and back.

    write(All((Expr("data.n < 1"), In("p.a"), Not(Check("paid")))), "QP", {"p.a": "a"}.get)
        -> "asserted('QP') && (data.n < 1) && In('a') && !check('paid')"

An expression alone stands as it is. Where conditions are put together each of them is a unit: in
brackets, or `In('…')`, `check('…')` or, of a label that the caller asserts, `asserted('…')`. So a
text that is not made of units is one expression, and what was written is read back as it was.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from interlock.language.condition import ALWAYS, All, AnyOf, Check, Condition, Expr, In, Not
from interlock.language.convert.terms import Unreadable

MAX_DEPTH = 40
CALL = re.compile(r"(In|check|asserted)\('((?:[^'\\]|\\.)*)'\)")
CALLED = re.compile(r"\b(?:In|check|asserted)\s*\(")
TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
LITERAL: dict[str, Any] = {"true": {"all": []}, "false": {"any": []}}

#: A condition as a document says it, or the label of a guard.
When: TypeAlias = Any


def write(when: Condition, guard: str | None, id: Callable[[str], str]) -> str | None:
    """Write a condition and the label that is asserted; None where there is neither.

    Args:
        id: gives the SCXML id of a state by its path.
    """
    if guard is None:
        if when == ALWAYS:
            return None
        return when.text if isinstance(when, Expr) else _joined(when, id)
    asserted = _call("asserted", guard)
    if when == ALWAYS:
        return asserted
    parts = when.of if isinstance(when, All) else (when,)
    return " && ".join([asserted, *(_unit(part, id) for part in parts)])


def _joined(when: Condition, id: Callable[[str], str]) -> str:
    match when:
        case All(of) if of:
            return " && ".join(_unit(part, id) for part in of)
        case AnyOf(of) if of:
            return " || ".join(_unit(part, id) for part in of)
        case All():
            return "true"
        case AnyOf():
            return "false"
        case _:
            return _unit(when, id)


def _unit(when: Condition, id: Callable[[str], str]) -> str:
    match when:
        case Expr(text):
            return f"({text})"
        case Check(name):
            return _call("check", name)
        case In(path):
            return _call("In", id(path))
        case Not(of):
            return f"!{_unit(of, id)}"
        case _:
            return f"({_joined(when, id)})"


def _call(word: str, name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{word}('{escaped}')"


def read(text: str, path: Callable[[str], str]) -> tuple[When | None, str | None]:
    """Read what `write` wrote: the condition, if there is one, and the label, if there is one.

    Args:
        path: gives the path of a state by its SCXML id.

    Raises:
        Unreadable: it asks for what only stands in a condition put together of units.
    """
    when = _Reader(text.strip(), path, 0).read()
    parts = when["all"] if isinstance(when, dict) and "all" in when else [when]
    labels = [part["asserted"] for part in parts if isinstance(part, dict) and "asserted" in part]
    rest = [part for part in parts if not (isinstance(part, dict) and "asserted" in part)]
    if len(labels) > 1 or _asserts(rest):
        raise Unreadable("a label is asserted once, beside all other conditions")
    if not labels:
        return when, None
    return (rest[0] if len(rest) == 1 else {"all": rest}) if rest else None, labels[0]


def _asserts(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_asserts, value))
    return isinstance(value, dict) and ("asserted" in value or any(map(_asserts, value.values())))


class _NotUnits(Exception):
    """A text is not put together of units, so it is an expression."""


class _Reader:
    def __init__(self, text: str, path: Callable[[str], str], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        self._text = text
        self._path = path
        self._depth = depth
        self._at = 0

    def read(self) -> When:
        if self._text in LITERAL:
            return LITERAL[self._text]
        try:
            found = self._any()
            if self._at < len(self._text):
                raise _NotUnits
        except _NotUnits:
            if CALLED.search(TEXT.sub("''", self._text)):
                raise Unreadable("In() or check() within an expression") from None
            return self._text
        return found

    def _any(self) -> When:
        return self._row("||", "any", self._all)

    def _all(self) -> When:
        return self._row("&&", "all", self._unit)

    def _row(self, sign: str, word: str, part: Callable[[], When]) -> When:
        parts = [part()]
        while self._accept(sign):
            parts.append(part())
        return parts[0] if len(parts) == 1 else {word: parts}

    def _accept(self, sign: str) -> bool:
        found = re.compile(rf"\s*{re.escape(sign)}\s*").match(self._text, self._at)
        if found:
            self._at = found.end()
        return found is not None

    def _unit(self) -> When:
        negations = 0
        while self._accept("!"):
            negations += 1
        found = self._call() if self._text[self._at : self._at + 1] != "(" else self._brackets()
        for _ in range(negations):
            found = {"not": found}
        return found

    def _call(self) -> When:
        found = CALL.match(self._text, self._at)
        if not found:
            raise _NotUnits
        self._at = found.end()
        word, name = found[1], re.sub(r"\\(.)", r"\1", found[2])
        return {"in": self._path(name)} if word == "In" else {word: name}

    def _brackets(self) -> When:
        start, due = self._at, 0
        for token in re.compile(rf"{TEXT.pattern}|.", re.DOTALL).finditer(self._text, start):
            due += {"(": 1, ")": -1}.get(token[0], 0)
            if due == 0:
                self._at = token.end()
                inside = self._text[start + 1 : token.start()]
                return _Reader(inside, self._path, self._depth + 1).read()
        raise _NotUnits
