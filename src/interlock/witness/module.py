"""Writes the table of a machine as a test module that people can read and keep in the tree.

    text = write_tests(tabulate(definition), "order.machine.yaml")

Each row is one case: how an instance begins, what is sent, and what comes of it. The module runs
the rows as `machine_tests` does, and says when the machine is no longer the one it was made from.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from interlock.typed.layout import INDENT, WIDTH, docstring, text_literal, width
from interlock.witness.case import Begin, Case, Table
from interlock.witness.model import ACTOR, Outcome, Send, Step
from interlock.witness.sample import NOON

MORE = "# No way was found to what follows, so nothing here tries it:"


class _Call(NamedTuple):
    """Something in brackets: what stands before it, its parts, what closes it."""

    head: str
    parts: "Sequence[_Part]"
    tail: str


class _Named(NamedTuple):
    """A part under a name: `name=value` or `"key": value`."""

    name: str
    value: "_Part"


_Part: TypeAlias = str | _Call | _Named


def write_tests(table: Table, path: str) -> str:
    """Write the module of a table.

    Args:
        path: of the definition's file, from the folder of the module.
    """
    definition = table.definition
    used = {"Begin", "Outcome", "Trial", "row"}
    cases = [*table.taken, *table.refused]
    used |= {type(step).__name__ for case in cases for step in case.steps}
    rows = [_assigned(name, _row_list(listed)) for name, listed in _listed(table)]
    moments = any("datetime(" in row for row in rows)
    told = [
        f"Tests of every state of `{definition.name}` with every trigger.",
        "",
        "Written by `interlock gen tests`: write it anew when the machine changes.",
    ]
    head = [
        *docstring(told),
        "",
        *(["from datetime import UTC, datetime"] if moments else []),
        "from pathlib import Path",
        "",
        "import interlock",
        "import pytest",
        f"from interlock.testing import {', '.join(sorted(used, key=_order))}",
        "",
        f"DEFINITION = interlock.load(Path(__file__).parent / {text_literal(path)})",
        f"DIGEST = {text_literal(definition.digest)}",
        "TRIAL = Trial(DEFINITION)",
    ]
    missed = [f"#   {m.name.replace(chr(10), ' ')}: {m.why}" for m in table.missed]
    tests = [
        "def test_the_machine_is_the_one_that_this_was_written_from():",
        f"{INDENT}assert DEFINITION.digest == DIGEST, (",
        f'{INDENT * 2}"the machine has changed: run `interlock gen tests` again"',
        f"{INDENT})",
        "",
        "",
        '@pytest.mark.parametrize("case", TAKEN, ids=str)',
        "def test_a_branch_is_taken(case):",
        f"{INDENT}TRIAL.run(case)",
        "",
        "",
        '@pytest.mark.parametrize("case", REFUSED, ids=str)',
        "def test_a_trigger_is_refused(case):",
        f"{INDENT}TRIAL.run(case)",
    ]
    noted = [MORE, *map(_printable, missed), ""] if missed else []
    return "\n".join([*head, "", *"\n\n".join(rows).split("\n"), "", *noted, "", *tests]) + "\n"


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in line).rstrip()


def _order(name: str) -> tuple[bool, str]:
    return (not name[0].isupper(), name)


def _listed(table: Table) -> list[tuple[str, Sequence[Case]]]:
    return [("TAKEN", table.taken), ("REFUSED", table.refused)]


def _assigned(name: str, part: _Part) -> str:
    return "\n".join(_lines(part, "", f"{name} = ", ""))


def _row_list(cases: Sequence[Case]) -> _Call:
    return _Call("[", [_row(case) for case in cases], "]")


def _row(case: Case) -> _Call:
    parts: list[_Part] = [text_literal(case.name), _begin(case.begin)]
    parts += [_step(step) for step in case.steps]
    return _Call("row(", [*parts, _Named("to=", _outcome(case.expected))], ")")


def _begin(begin: Begin) -> _Call:
    parts: list[_Part] = [_value(begin.state), _value(begin.data)]
    if begin.at != NOON:
        parts.append(_Named("at=", _value(begin.at)))
    if begin.guards:
        parts.append(_Named("guards=", _value(begin.guards)))
    if begin.actor != ACTOR:
        parts.append(_Named("actor=", _value(begin.actor)))
    return _Call("Begin(", parts, ")")


def _step(step: Step) -> _Call:
    if not isinstance(step, Send):
        parts: list[_Part] = [_value(step.at)]
        if step.guards:
            parts.append(_Named("guards=", _value(step.guards)))
        return _Call("Tick(", parts, ")")
    parts = [_value(step.event)]
    if step.payload:
        parts.append(_value(step.payload))
    for name, plain in (("asserting", ()), ("actor", ACTOR), ("guards", {}), ("at", None)):
        value = getattr(step, name)
        if value != plain:
            parts.append(_Named(f"{name}=", _value(value)))
    return _Call("Send(", parts, ")")


def _outcome(outcome: Outcome) -> _Call:
    parts: list[_Part] = [_value(outcome.state), _value(outcome.data)]
    if outcome.actions:
        parts.append(_Named("actions=", _value(outcome.actions)))
    if outcome.hooks:
        parts.append(_Named("hooks=", _value(outcome.hooks)))
    if outcome.refused:
        parts.append(_Named("refused=", _value(outcome.refused)))
    return _Call("Outcome(", parts, ")")


def _value(value: Any) -> _Part:
    """Write a JSON value, a tuple or a moment."""
    match value:
        case str():
            return text_literal(value)
        case Mapping():
            items = [_Named(f"{text_literal(n)}: ", _value(v)) for n, v in value.items()]
            return _Call("{", items, "}")
        case tuple():
            parts = [_value(part) for part in value]
            return _Call("(", parts, ",)" if len(parts) == 1 else ")")
        case list():
            return _Call("[", [_value(part) for part in value], "]")
        case datetime():
            given = [value.year, value.month, value.day, value.hour, value.minute]
            given += [value.second, value.microsecond] if value.second or value.microsecond else []
            return _Call("datetime(", [*map(str, given), "tzinfo=UTC"], ")")
        case _:
            return repr(value)


def _line(part: _Part) -> str:
    """Write a part in one line."""
    match part:
        case str():
            return part
        case _Named(name, value):
            return f"{name}{_line(value)}"
        case _Call(head, parts, tail):
            return f"{head}{', '.join(map(_line, parts))}{tail}"


def _lines(part: _Part, indent: str, before: str, behind: str) -> list[str]:
    """Write a part in one line if it fits, else its own parts one a line."""
    whole = f"{indent}{before}{_line(part)}{behind}"
    if isinstance(part, _Named):
        return _lines(part.value, indent, f"{before}{part.name}", behind)
    if width(whole) <= WIDTH or isinstance(part, str) or not part.parts:
        return [whole]
    inside = [line for one in part.parts for line in _lines(one, indent + INDENT, "", ",")]
    return [f"{indent}{before}{part.head}", *inside, f"{indent}{part.tail.lstrip(',')}{behind}"]
