"""Templates: JSON in whose texts expressions stand, as `${ input.sku }`.

    template = compile_template({"sku": "${ input.sku }", "note": "for ${ input.who }"}, scope)
    template.render({"input": {"sku": "A-1", "who": "Ann"}})
        -> {"sku": "A-1", "note": "for Ann"}

An expression that is all of a text keeps its type; inside of a text it becomes text. `$${` stands
for `${`. What is nothing but a path may lead to an object.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from interlock.core.declaration import Path
from interlock.core.payload import encode_payload
from interlock.language.expressions.expression import (
    Expression,
    ExpressionError,
    Rooted,
    compile_expression,
    path_of,
)
from interlock.language.expressions.properties import Type, written
from interlock.language.expressions.syntax import ExpressionFault

Render = Callable[[Mapping[str, Any]], Any]


class Piece(NamedTuple):
    """A part of a text.

    Attributes:
        at: where the expression begins in the text.
    """

    text: str
    is_expression: bool
    at: int = 0


class TemplateFault(Exception):
    """A template has a fault.

    Attributes:
        where: the path, within the template, of the text that has it; the fault's own offset is
            within that text.
    """

    def __init__(self, where: Path, text: str, fault: ExpressionFault) -> None:
        super().__init__(fault.message)
        self.where = where
        self.text = text
        self.fault = fault


@dataclass(frozen=True)
class Template:
    """A template that was compiled.

    Attributes:
        source: as it was written.
        names: what it reads: `input.sku`, `steps.reserve.output`.
        type: of its value, where an expression is all of it.
    """

    source: Any
    names: frozenset[str]
    type: Type | None
    _render: Render = field(repr=False, compare=False)

    def render(self, values: Mapping[str, Any]) -> Any:
        """Give the value, as JSON has it.

        Raises:
            ExpressionError: an expression has no value.
        """
        return self._render(values)


def compile_template(value: Any, scope: Rooted) -> Template:
    """Compile a template.

    Raises:
        TemplateFault: the first text of it that has a fault.
    """
    compiler = _Compiler(scope)
    render, type_ = compiler.compiled(value, ())
    return Template(value, frozenset(compiler.names), type_, render)


def pieces(text: str) -> Iterator[Piece]:
    """Part a text into what stands for itself and the expressions within.

    Raises:
        ExpressionFault: an expression has no end.
    """
    plain, at = "", 0
    while (begin := text.find("${", at)) >= 0:
        if begin and text[begin - 1] == "$":
            plain += text[at : begin - 1] + "${"
            at = begin + 2
            continue
        if plain := plain + text[at:begin]:
            yield Piece(plain, False)
        end = _end(text, begin + 2)
        yield Piece(text[begin + 2 : end], True, begin + 2)
        plain, at = "", end + 1
    if plain := plain + text[at:]:
        yield Piece(plain, False)


def _end(text: str, at: int) -> int:
    """Find the brace that ends an expression; those within its texts do not."""
    quote, begin = "", at - 2
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "}":
            return at
        at += 1
    message = "`${` has no `}`"
    raise ExpressionFault("expression-syntax", message, begin, "write `$${` for the text itself")


class _Compiler:
    """Compiles the parts of one template.

    Attributes:
        names: what they read.
    """

    def __init__(self, scope: Rooted) -> None:
        self.names = set[str]()
        self._scope = scope

    def compiled(self, value: Any, where: Path) -> tuple[Render, Type | None]:
        if isinstance(value, dict):
            fields = {name: self.compiled(of, (*where, name))[0] for name, of in value.items()}
            return _object(fields), None
        if isinstance(value, list):
            return _array([self.compiled(of, (*where, n))[0] for n, of in enumerate(value)]), None
        if not isinstance(value, str):
            return _always(value), None
        try:
            parts = [self.piece(piece) for piece in pieces(value)]
        except ExpressionFault as fault:
            raise TemplateFault(where, value, fault) from fault
        return parts[0] if len(parts) == 1 else (_joined([render for render, _ in parts]), None)

    def piece(self, piece: Piece) -> tuple[Render, Type | None]:
        if not piece.is_expression:
            return _always(piece.text), None
        blanks = len(piece.text) - len(piece.text.lstrip())
        source = piece.text.strip()
        try:
            if (found := path_of(source, self._scope)) is not None:
                path, type_ = found
                self.names.add(".".join(path))
                return _followed(path, source), type_
            expression = compile_expression(source, self._scope, wants=None)
        except ExpressionFault as fault:
            at = piece.at + blanks + fault.offset
            raise ExpressionFault(fault.code, fault.message, at, fault.hint) from fault
        self.names |= expression.names
        return _evaluated(expression), expression.type


def _always(value: Any) -> Render:
    return lambda _: value


def _object(fields: Mapping[str, Render]) -> Render:
    return lambda values: {name: render(values) for name, render in fields.items()}


def _array(items: Sequence[Render]) -> Render:
    return lambda values: [render(values) for render in items]


def _joined(parts: Sequence[Render]) -> Render:
    return lambda values: "".join(_text(render(values)) for render in parts)


def _followed(path: tuple[str, ...], source: str) -> Render:
    """Follow a path that leads to an object, or to what nobody has said the type of."""

    def follow(values: Mapping[str, Any]) -> Any:
        value: Any = values
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                raise ExpressionError("a field that it reads is absent", source)
            value = value[name]
        return value

    return follow


def _evaluated(expression: Expression) -> Render:
    def evaluate(values: Mapping[str, Any]) -> Any:
        value = expression.evaluate(values)
        return [written(item) for item in value] if isinstance(value, list) else written(value)

    return evaluate


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode_payload(value).decode()
