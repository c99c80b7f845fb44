"""The expressions of a machine in use: what each may read, and each compiled once.

    expressions = Expressions(data, events, required)
    small = expressions.test("data.amount < 100", branch)
    small.evaluate({"data": {"amount": 99.5}})     -> True

An expression of a branch may read the data, the payload of the event that takes the branch, and
`actor`, `now` and `instance`. A field that the states around it require is there, though it is
optional. An event that is not declared has no fields.

Two branches share an expression if nothing that it mentions differs between them. What was asked
for once is found by one look into a dict.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from interlock.language.chart import Trigger
from interlock.language.duration import DurationError, parse_duration
from interlock.language.expressions.expression import Expression, Scope, compile_expression
from interlock.language.expressions.properties import BOOLEAN, DATE_TIME, Properties, Type
from interlock.language.expressions.syntax import ExpressionFault

#: What stands under `set` to take a field away, which no expression can.
ABSENT = "absent"

#: What decides how an expression is read: the event, and which optional fields are there.
Key = tuple[str | None, frozenset[str]]

NOTHING = Properties()


class Placed(Protocol):
    """Where an expression is evaluated: a flat branch."""

    @property
    def from_state(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def trigger(self) -> Trigger: ...


class Timed(Placed, Protocol):
    @property
    def due(self) -> str | None: ...


class Expressions:
    """Compiles expressions as they are asked for, and keeps them.

    Args:
        required: by flat state, the fields that are there whatever happens.
    """

    def __init__(
        self,
        data: Properties,
        events: Mapping[str, Properties],
        required: Mapping[str, frozenset[str]],
    ) -> None:
        self.data = data
        self.events = events
        self.required = required
        self.optional = frozenset(n for n, field in data.fields.items() if field.optional)
        self._scopes: dict[Key, Scope] = {}
        self._compiled: dict[tuple[str, str, Key], Expression] = {}
        self._tests: dict[tuple[str, str, str], Expression] = {}
        self._setters: dict[tuple[str, str, str], Expression | None] = {}
        self._moments: dict[tuple[str, str], Expression | None] = {}

    # While a machine runs

    def test(self, text: str, branch: Placed) -> Expression:
        """Give an expression that stands under `when`."""
        asked = (text, branch.from_state, branch.action)
        found = self._tests.get(asked)
        if found is None:
            required = self.required[branch.from_state]
            found = self._tests[asked] = self.condition(text, branch.trigger, required)
        return found

    def setter(self, name: str, text: str, branch: Placed) -> Expression | None:
        """Give the expression of a field's new value; None takes the field away."""
        asked = (name, branch.from_state, branch.action)
        if asked not in self._setters:
            required = self.required[branch.from_state]
            self._setters[asked] = self.value(name, text, branch.trigger, required)
        return self._setters[asked]

    def moment(self, branch: Timed) -> Expression | None:
        """Give the expression of the moment that a timer waits for; None of a duration."""
        asked = (branch.from_state, branch.action)
        if asked not in self._moments:
            due, required = branch.due, self.required[branch.from_state]
            if due is None or is_duration(due):
                self._moments[asked] = None
            else:
                self._moments[asked] = self.due(due, branch.trigger, required)
        return self._moments[asked]

    # By what it may read

    def condition(self, text: str, trigger: Trigger, required: Iterable[str]) -> Expression:
        return self._compile(text, "when", BOOLEAN, trigger, required)

    def value(
        self, name: str, text: str, trigger: Trigger, required: Iterable[str]
    ) -> Expression | None:
        """Compile what a field is set to.

        Raises:
            KeyError: there is no such field.
        """
        field = self.data.fields[name]
        if text.strip() == ABSENT:
            if field.optional:
                return None
            hint = "only a field with `optional: true` can be"
            raise ExpressionFault("expression-type", f"`{name}` is never absent", 0, hint)
        return self._compile(text, f"set {name}", field.type, trigger, required)

    def due(self, text: str, trigger: Trigger, required: Iterable[str]) -> Expression:
        return self._compile(text, "at", DATE_TIME, trigger, required)

    def key(self, texts: Iterable[str], trigger: Trigger, required: Iterable[str]) -> Key:
        """Say what of a place makes a difference to texts."""
        texts = [*texts]
        is_event = trigger.kind == "event" and any("event" in text for text in texts)
        present = self.optional.intersection(required)
        named = {name for name in present if any(name in text for text in texts)}
        return (trigger.name if is_event else None, frozenset(named))

    def scope(self, key: Key) -> Scope:
        """Give what may be read there."""
        found = self._scopes.get(key)
        if found is None:
            event, present = key
            payload = None if event is None else self.events.get(event, NOTHING)
            found = Scope(self.data, payload, present=frozenset(f"data.{name}" for name in present))
            self._scopes[key] = found
        return found

    def _compile(
        self, text: str, use: str, wants: Type, trigger: Trigger, required: Iterable[str]
    ) -> Expression:
        # The use stands for the type that it wants: types of texts with other choices are equal.
        key = self.key((text,), trigger, required)
        found = self._compiled.get((text, use, key))
        if found is None:
            found = compile_expression(text, self.scope(key), wants=wants)
            self._compiled[text, use, key] = found
        return found


def is_duration(due: str) -> bool:
    """Whether a timer waits for a while; no text is both a duration and an expression."""
    try:
        parse_duration(due)
    except DurationError:
        return False
    return True
