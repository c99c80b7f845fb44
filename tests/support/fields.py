"""The data of a machine at work: conditions on it, and changes to it, by the real evaluator."""

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.language.condition import Condition, Expr
from interlock.language.expressions.expression import Scope, compile_expression
from interlock.language.expressions.properties import read_properties


class Fields:
    """Holds what is declared; everything that one branch sets is computed from what was before."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        properties = read_properties(declared)
        self._scope = Scope(properties)
        self._types = properties.types()
        self.values: dict[str, Any] = dict(properties.complete({}))

    def holds(self, condition: Condition) -> bool:
        assert isinstance(condition, Expr), condition
        return compile_expression(condition.text, self._scope).evaluate({"data": self.values})

    def change(self, sets: Sequence[tuple[str, str]]) -> None:
        given = {"data": dict(self.values)}
        for name, text in sets:
            wants = self._types[name]
            self.values[name] = compile_expression(text, self._scope, wants=wants).evaluate(given)
