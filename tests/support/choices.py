"""Machines with one choice, and everything that its guards can come to, by trying all values."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from interlock.language.condition import Check, Expr
from interlock.language.definition import Definition, define
from interlock.language.evaluation import holds
from interlock.language.expressions.expression import ExpressionError
from interlock.language.flatten import Branch

#: Fields of few values each: all of them together can be tried.
DATA = {
    "a": {"type": "integer", "minimum": 0, "maximum": 3},
    "c": {"type": "integer", "enum": [-1, 0, 2]},
    "o": {"type": "integer", "minimum": 0, "maximum": 2, "optional": True},
    "b": {"type": "boolean"},
    "r": {"type": "string", "enum": ["EU", "US"]},
}
DOMAIN: Mapping[str, Sequence[Any]] = {
    "a": [0, 1, 2, 3],
    "c": [-1, 0, 2],
    "o": [None, 0, 1, 2],
    "b": [False, True],
    "r": ["EU", "US"],
}


def machine(branches: Any, data: Mapping[str, Any] = DATA) -> dict[str, Any]:
    """A machine that asks once, with these branches; each is named."""
    return {
        "machine": "asks",
        "data": data,
        "initial": "asked",
        "states": {"asked": {"on": {"go": branches}}, "over": {"final": True}},
    }


def unordered(whens: Sequence[Any]) -> dict[str, Any]:
    return machine(named(whens))


def named(whens: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"to": "over", "name": f"w{n}", "when": when} for n, when in enumerate(whens)]


def apart(whens: Sequence[Any]) -> Definition:
    """Compile each guard under an event of its own, where it need not exclude the others."""
    document = machine({"to": "over"})
    on = document["states"]["asked"]["on"]
    on |= {f"e{n}": {"to": "over", "when": when} for n, when in enumerate(whens)}
    return define(document, prove=False)


def all_values() -> Iterator[dict[str, Any]]:
    for values in product(*DOMAIN.values()):
        given = zip(DOMAIN, values, strict=True)
        yield {name: value for name, value in given if value is not None}


def is_true(definition: Definition, branch: Branch, data: Mapping[str, Any]) -> bool:
    """Whether a branch's guard is true; one that has no value is not."""

    def evaluate(test: Expr) -> bool:
        value = definition.expression(test.text, branch).evaluate({"data": data})
        assert isinstance(value, bool)
        return value

    def check(test: Check) -> bool:
        raise AssertionError(test)

    try:
        return holds(branch.when, evaluate, check)
    except ExpressionError:
        return False


def truths(whens: Sequence[Any]) -> list[tuple[bool, ...]]:
    """Say for all values, in order, which of the guards are true."""
    definition = apart(whens)
    by_event = {branch.trigger.name: branch for branch in definition.flat.branches}
    branches = [by_event[f"e{n}"] for n in range(len(whens))]
    return [
        tuple(is_true(definition, branch, data) for branch in branches) for data in all_values()
    ]
