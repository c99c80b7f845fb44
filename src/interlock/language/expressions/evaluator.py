"""The evaluator of expressions, Google's CEL: all of it that is used here.

It gives most failures as a text where a value would stand, and raises others. It cuts a text short
at NUL, takes `True` for 1, and reckons wrongly with durations of more than 292 years. So what it is
handed was checked before, texts by the checker and values by `expression`, and only what is not an
`ERROR` counts as a value.

The library is loaded at the first call, so that whoever has no expressions does not pay for it.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

# Name and type of each: bool, int, double, string, timestamp, duration, dyn (whatever it is), `map`
# (of anything by a text) or `list ` and one of these.
Variables: TypeAlias = tuple[tuple[str, str], ...]


class EvaluatorRefused(Exception):
    """The evaluator does not compile a text; its own words say why."""


class Program:
    """One compiled text."""

    __slots__ = ("_run", "serialised")

    def __init__(self, program: Any) -> None:
        self._run = program.eval
        self.serialised: bytes = program.serialize()

    def value(self, values: Mapping[str, object]) -> object:
        """Evaluate.

        Raises:
            EvaluationFailed: there is no value.
        """
        try:
            found = self._run(data=values)
            value: object = found.plain_value()
        except (RuntimeError, OverflowError) as error:  # so come too many rounds of a loop
            raise EvaluationFailed(str(error)) from error
        if value is True or value is False:
            return value  # the common case: no failure is a boolean
        if isinstance(value, str) and found.type().name() != "STRING":
            raise EvaluationFailed(value)
        return value


class EvaluationFailed(Exception):
    """An expression has no value; the evaluator's own words say why."""


def compile_text(text: str, variables: Variables) -> Program:
    """Compile a text over variables.

    Raises:
        EvaluatorRefused: it does not compile.
    """
    try:
        return Program(_environment(variables).compile(text))
    except RuntimeError as error:
        raise EvaluatorRefused(str(error)) from error


def failure(text: str) -> str | None:
    """Say in the evaluator's words why a text without variables has no value; None if it has."""
    try:
        compile_text(text, ()).value({})
    except (EvaluatorRefused, EvaluationFailed) as error:
        return str(error)
    return None


@lru_cache(maxsize=64)
def pattern(text: str) -> Program:
    """Compile the search for a regular expression (RE2) in the variable `text`.

    Raises:
        ValueError: it is no regular expression.
    """
    program = compile_text(f"text.matches({literal(text)})", (("text", "string"),))
    try:
        program.value({"text": ""})
    except EvaluationFailed as error:
        raise ValueError(str(error).rpartition("expression: ")[2]) from error
    return program


def literal(text: str) -> str:
    """Write a text as the evaluator reads it: plain ASCII, everything else by its number."""
    parts = []
    for char in text:
        if char in '"\\':
            parts.append("\\" + char)
        elif " " <= char <= "~":
            parts.append(char)
        else:
            number = ord(char)
            parts.append(f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
    return f'"{"".join(parts)}"'


@lru_cache(maxsize=256)
def _environment(variables: Variables) -> Any:
    cel = import_module("cel_expr_python.cel")  # it has no types of its own
    return cel.NewEnv(variables={name: _type(cel.Type, kind) for name, kind in variables})


def _type(types: Any, kind: str) -> Any:
    if kind == "map":
        return types.Map(types.STRING, types.DYN)
    if kind == "dyn":
        return types.DYN
    if kind.startswith("list "):
        return types.List(_type(types, kind.removeprefix("list ")))
    return types(kind)
