"""The data of an SCXML document, and its conditions, read as the small part of ECMAScript.

What kind of value each name holds is found from everything that is assigned to it. A condition that
cannot be read becomes data of its own, true or false, which others must supply.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlock.language.convert.cel import Mixed, emit, join, kind_of
from interlock.language.convert.declared import Untyped, declared, json_value
from interlock.language.convert.ecma import parse
from interlock.language.convert.naming import Names, identifier
from interlock.language.convert.opaque import Opaque
from interlock.language.convert.result import Definition, Findings
from interlock.language.convert.scxml_actions import Assign, Contents, If, Statement
from interlock.language.convert.scxml_tree import Transition, Tree
from interlock.language.convert.terms import (
    TRUE,
    Code,
    In,
    Lit,
    Op,
    Term,
    Unreadable,
    literal,
    names,
    plain,
    states,
    substitute,
)
from interlock.language.convert.xml_tree import Element
from interlock.language.source import Mark

ZERO: dict[str | None, Any] = {"integer": 0, "number": 0.0, "boolean": False, "string": ""}


class EcmaData:
    """Data of the data models `ecmascript`, `jexl` and the like.

    Attributes:
        first: by name, the value that each begins with, where it has one.
    """

    def __init__(self, tree: Tree, findings: Findings) -> None:
        self._findings = findings
        self._opaque = Opaque(findings)
        self._names = Names()
        self._marks: dict[str, Mark] = {}
        self._kinds: dict[str, str | None] = {}
        self._fields: dict[str, str] = {}
        self._reals = False
        self.first: dict[str, Term | None] = {}
        for element in tree.data:
            self._declare(element)

    def parse(self, text: str) -> Term:
        return parse(text)

    def _declare(self, element: Element) -> None:
        id = element.get("id") or ""
        if not id or id in self.first:
            message = f"data `{id}` has no id of its own"
            self._findings.refuse("data-id", message, element.mark)
            return
        self._marks[id] = element.mark
        self._fields[id] = self._names.give(identifier(id), "x")
        self.first[id] = self._first_value(id, element)
        if self._fields[id] != id:
            message = f"data `{id}` is called `{self._fields[id]}` here"
            self._findings.note("renamed", message, element.mark)

    def _first_value(self, id: str, element: Element) -> Term | None:
        text = element.get("expr")
        if element.get("src") is not None:
            message = f"data `{id}` is read from a file (`src`)"
            self._findings.refuse("src", message, element.mark)
        elif element.children:
            self._findings.refuse("data-content", f"data `{id}` is XML", element.mark)
        elif text is not None or element.text:
            try:
                return self._constant(text, element.text)
            except Unreadable as fault:
                message = f"the first value of `{id}` cannot be carried over: {fault}"
                self._findings.refuse("data-value", message, element.mark)
        return None

    def _constant(self, text: str | None, inside: str) -> Term:
        if text is None:
            try:
                return literal(json_value(inside))
            except ValueError:
                raise Unreadable("it is no JSON") from None
        before = {name: term for name, term in self.first.items() if term is not None}
        term = substitute(parse(text), before)
        if not isinstance(term, Lit):
            raise Unreadable("it is not constant")
        return term

    # Kinds

    def infer(self, contents: Contents) -> None:
        """Find what kind of value each name holds, from everything that is assigned to it."""
        assigns = [(name, term) for name, term in self.first.items() if term is not None]
        for block in contents.blocks():
            assigns += _assigned(block.statements)
        before: dict[str, str | None] | None = None
        while before != self._kinds:  # a kind is found once, and at most becomes `number`
            before = dict(self._kinds)
            for name, term in assigns:
                try:
                    self._kinds[name] = join(self._kinds.get(name), kind_of(term, self._kinds))
                except Mixed as fault:
                    message = f"the values of `{name}` cannot be carried over: {fault}"
                    self._findings.refuse("data-kind", message, self._marks.get(name))
        self._reals = "number" in self._kinds.values()

    def _typed(self, name: str) -> bool:
        return self._kinds.get(name) not in (None, "null")

    def declared(self, start: Mapping[str, Term]) -> Definition:
        """Declare the data: a number beside other numbers makes all of them numbers.

        Args:
            start: what names hold once the first states are entered.
        """
        made: Definition = {}
        for name, field in self._fields.items():
            if not self._typed(name):
                message = f"nothing tells what data `{name}` holds: it is left out"
                self._findings.note("data-untyped", message, self._marks[name])
                continue
            kind = "number" if self._kinds[name] == "integer" and self._reals else self._kinds[name]
            value = start.get(name)
            if isinstance(value, Lit):
                made[field] = self._beginning(name, kind, plain(value))
            elif kind in ZERO:
                made[field] = {"type": kind, "default": ZERO[kind]}
                message = f"data `{name}` has no first value: it begins as {ZERO[kind]!r}"
                self._findings.note("no-first-value", message, self._marks[name])
        return made | self._opaque.declared()

    def _beginning(self, name: str, kind: str | None, value: Any) -> Definition:
        try:
            entry = declared(value)
        except Untyped as fault:
            message = f"the first value of `{name}` cannot be carried over: {fault}"
            self._findings.refuse("data-value", message, self._marks[name])
            return {}
        return {**entry, "type": kind}

    # Conditions

    def condition(self, transition: Transition) -> Term | None:
        """Read a condition; one that cannot be read becomes a name of its own."""
        text = transition.cond
        if text is None:
            return None
        try:
            term = parse(text)
            known = {name for name in self.first if self._typed(name)}
            if unknown := sorted(names(term) - known):
                raise Unreadable(f"`{unknown[0]}` is not declared")
            if kind_of(term, self._kinds) != "boolean":
                raise Unreadable("it is not true or false")
        except (Unreadable, Mixed) as fault:
            field = self._opaque.field(text, str(fault), transition.mark, self._names)
            return Code(f"data.{field}")
        return None if term == TRUE else term

    def when(self, term: Term, path: Callable[[str], str]) -> tuple[Any, str | None]:
        """Write a condition: in expressions as far as it asks for no state. No label goes with it.

        Args:
            path: gives the path of a state by its id.
        """
        return self._when(term, path), None

    def _when(self, term: Term, path: Callable[[str], str]) -> Any:
        if not states(term):
            return self.expression(term)
        match term:
            case In(id):
                return {"in": path(id)}
            case Op("!", (inner,)):
                return {"not": self._when(inner, path)}
            case Op("&&" | "||" as sign, _):
                word = "all" if sign == "&&" else "any"
                return {word: [self._when(part, path) for part in _flat(sign, term)]}
            case Op("?:", (test, yes, no)):
                given = self._when(test, path)
                chosen = {"all": [given, self._when(yes, path)]}
                return {"any": [chosen, {"all": [{"not": given}, self._when(no, path)]}]}
            case Op("==" | "!=" as sign, (one, two)):
                sides = [self._when(one, path), self._when(two, path)]
                same = {"any": [{"all": sides}, {"not": {"any": sides}}]}
                return same if sign == "==" else {"not": same}
            case _:
                raise Unreadable("a state in a comparison")

    def expression(self, term: Term) -> str:
        return emit(term, rename=self._fields, real=self._reals)

    def field(self, name: str) -> str:
        return self._fields[name]


def _assigned(statements: Iterable[Statement]) -> list[tuple[str, Term]]:
    found: list[tuple[str, Term]] = []
    for statement in statements:
        match statement:
            case Assign(name, term):
                found.append((name, term))
            case If(cases):
                found += [pair for _, inside in cases for pair in _assigned(inside)]
    return found


def _flat(sign: str, term: Term) -> list[Term]:
    match term:
        case Op(name, (one, two)) if name == sign:
            return [*_flat(sign, one), *_flat(sign, two)]
        case _:
            return [term]
