"""Expressions as the prover needs them, on the evaluator itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from interlock.language.expressions.cel_ast import Node, decode

cel = import_module("cel_expr_python.cel")  # it has no types of its own
TYPES = cel.Type

NAMES = {
    "data.amount": TYPES.INT,
    "data.region": TYPES.STRING,
    "data.rate": TYPES.DOUBLE,
    "data.urgent": TYPES.BOOL,
    "data.due": TYPES.TIMESTAMP,
    "data.since": TYPES.TIMESTAMP,
    "data.wait": TYPES.DURATION,
    "data.tags": TYPES.List(TYPES.STRING),
    "data.sizes": TYPES.List(TYPES.INT),
    "data.limits": TYPES.Map(TYPES.STRING, TYPES.INT),
    "has_due": TYPES.BOOL,
    "a": TYPES.INT,
    "b": TYPES.INT,
    "u": TYPES.UINT,
    "s": TYPES.STRING,
    "p": TYPES.BOOL,
    "r": TYPES.DOUBLE,
}
ENVIRONMENT = cel.NewEnv(variables=NAMES)


@dataclass(frozen=True)
class Compiled:
    """An expression over `NAMES`."""

    source: str
    program: Any
    tree: Node

    def truth(self, values: Mapping[str, object]) -> bool | None:
        found = self.program.eval(data=dict(values)).value()
        return found if isinstance(found, bool) else None  # a failure comes as its text


def expression(source: str) -> Compiled:
    program = ENVIRONMENT.compile(source)
    return Compiled(source, program, decode(program.serialize()))
