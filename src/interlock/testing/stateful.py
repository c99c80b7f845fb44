"""Random events: an engine and the model of its definition side by side, driven by Hypothesis.

    TestOrderRandomly = machine_of(definition).TestCase

Events come with payloads drawn from the definition's property maps, known to the state or not;
guards in Python say what is drawn; time passes, and timers run out. After each step the engine is
where the model is, and its record is sound, replays, and is as declared.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock.core.rejection import Rejected
from interlock.engine.handle import Handle
from interlock.engine.hooks import Hook
from interlock.engine.program import Program
from interlock.language.definition import Definition
from interlock.language.expressions.properties import Properties, Property, written
from interlock.testing.clock import NOON
from interlock.testing.trial import Played, Trial, check_record
from interlock.witness.case import Begin
from interlock.witness.model import Model, Outcome, Send, Tick
from interlock.witness.sample import NoSample, number_ends, sample

NOTHING = Properties()
WHOLE = 10**6  # numbers are drawn up to here, where nothing else is said


def machine_of(
    definition: Definition,
    *,
    trial: Trial | None = None,
    hooks: Mapping[str, Hook] | None = None,
) -> type[RuleBasedStateMachine]:
    """Make the state machine of a definition.

    Args:
        hooks: real ones, whose effects no model knows: then the record alone is looked at.
    """
    playing = trial or Trial(definition, hooks)
    program = Program(definition)
    branches = definition.flat.branches
    events = {b.trigger.name for b in branches if b.trigger.kind == "event"}
    names = sorted(events | definition.events.keys()) or ["nothing"]
    labels = sorted({label for branch in branches for label in branch.guards})
    saying = st.fixed_dictionaries({name: st.booleans() for name in sorted(program.guards())})

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self._context = playing.played(Begin(None, {}, NOON))
            self.played: Played = self._context.__enter__()
            self.model = Model(definition)
            self.handle: Handle | None = None
            self.done = 0

        def teardown(self) -> None:
            self._context.__exit__(None, None, None)

        @initialize(data=fields(definition.data), guards=saying)
        def start(self, data: dict[str, Any], guards: dict[str, bool]) -> None:
            begin = Begin(None, data, NOON, guards)
            wanted = self.model.begin(None, data, at=NOON, guards=guards)
            refused = None
            try:
                self.handle = self.played.begin(begin)
            except Rejected as refusal:
                refused = refusal.reason
            if self.handle is not None:
                self._compare(None, wanted)
            elif not hooks:
                assert refused == wanted.refused, f"it is refused as {refused}"

        @precondition(lambda self: self.handle is not None)
        @rule(
            drawn=st.data(),
            guards=saying,
            asserting=st.lists(st.sampled_from(labels), unique=True) if labels else st.just([]),
        )
        def send(self, drawn: Any, guards: dict[str, bool], asserting: list[str]) -> None:
            here = self.model.known(self.model.standing.state)
            event = drawn.draw(st.sampled_from([*here, *here, *names]))
            payload = drawn.draw(fields(definition.events.get(event, NOTHING)))
            self._step(Send(event, payload, tuple(asserting), guards=guards))

        @precondition(lambda self: self.handle is not None)
        @rule(by=st.integers(1, 10**7), guards=saying)
        def wait(self, by: int, guards: dict[str, bool]) -> None:
            self._step(Tick(self.played.clock() + timedelta(seconds=by), guards))

        @precondition(lambda self: self.handle is not None and self.handle.timers)
        @rule(guards=saying)
        def wait_for_a_timer(self, guards: dict[str, bool]) -> None:
            assert self.handle is not None
            due = min(timer.due_at for timer in self.handle.timers)
            self._step(Tick(max(due, self.played.clock()), guards))

        @invariant()
        def the_record_is_sound(self) -> None:
            if self.handle is not None:
                check_record(self.played, self.handle, definition.name)

        def _step(self, step: Send | Tick) -> None:
            assert self.handle is not None
            if isinstance(step, Send):
                step = step._replace(at=self.played.clock())
            wanted = self.model.step(step)
            self.played.calls.clear()
            self._compare(self.played.step(self.handle, step), wanted)

        def _compare(self, refused: str | None, wanted: Outcome) -> None:
            assert self.handle is not None
            entries = self.handle.history()
            actions = tuple(entry.action for entry in entries[self.done :])
            self.done = len(entries)
            if hooks:
                return
            called = wanted.hooks if refused else tuple(self.played.calls)
            found = Outcome(self.handle.state, self.handle.data, actions, called, refused)
            assert found == wanted, f"it is {found}, and the definition says {wanted}"
            self.played.calls.clear()

    Machine.__name__ = Machine.__qualname__ = f"{definition.name} at random"
    return Machine


def random_test(
    definition: Definition, trial: Trial, hooks: Mapping[str, Hook] | None, steps: int
) -> Any:
    """Make a test that runs the state machine of a definition."""
    kept = settings(
        stateful_step_count=steps,
        max_examples=min(settings().max_examples, 30),
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )

    def test(self: object) -> None:  # noqa: ARG001
        machine = machine_of(definition, trial=trial, hooks=hooks)
        run_state_machine_as_test(machine, settings=kept)

    return test


# Values


def fields(properties: Properties) -> st.SearchStrategy[dict[str, Any]]:
    """Draw values of a property map, as JSON has them."""
    asked = {n: values(p) for n, p in properties.fields.items() if p.required}
    others = {n: values(p) for n, p in properties.fields.items() if not p.required}
    return st.fixed_dictionaries(asked, optional=others)


def values(property_: Property) -> st.SearchStrategy[Any]:
    """Draw values of a property."""
    low, high = property_.minimum, property_.maximum
    if property_.values is not None:
        return st.sampled_from([written(value) for value in property_.values])
    if property_.properties is not None:
        return fields(property_.properties)
    if property_.items is not None:
        least, most = property_.length
        most = least + 3 if most is None else min(most, least + 3)
        return st.lists(values(property_.items), min_size=least, max_size=most)
    match property_.type.name:
        case "boolean":
            return st.booleans()
        case "integer":
            return _around(property_, 1)
        case "decimal":
            scale = property_.type.scale
            unit = 10**scale
            ends = [None if end is None else int(end * unit) for end in (low, high)]
            drawn = st.integers(*_ends(ends[0], ends[1], 1, property_.exclusive))
            return drawn.map(lambda count: written(Decimal(count).scaleb(-scale)))
        case "number":
            first, last = number_ends(property_)
            near = max(first, -float(WHOLE)), min(last, float(WHOLE))
            return st.floats(
                *(near if near[0] <= near[1] else (first, last)), allow_subnormal=False
            )
        case "date-time":
            first_at, last_at = low or datetime(2020, 1, 1), high or datetime(2040, 1, 1)  # noqa: DTZ001
            drawn_at = st.datetimes(
                first_at.replace(tzinfo=None), last_at.replace(tzinfo=None), timezones=st.just(UTC)
            )
            return drawn_at.map(written)
        case _:
            return _texts(property_)


def _around(property_: Property, step: int) -> st.SearchStrategy[int]:
    first, last = _ends(property_.minimum, property_.maximum, step, property_.exclusive)
    return st.integers(first, last)


def _ends(
    low: int | None, high: int | None, step: int, exclusive: tuple[bool, bool]
) -> tuple[int, int]:
    first = None if low is None else low + step * exclusive[0]
    last = None if high is None else high - step * exclusive[1]
    if first is None:
        first = -WHOLE if last is None else min(-WHOLE, last)
    if last is None:
        last = max(WHOLE, first)
    return first, last


def _texts(property_: Property) -> st.SearchStrategy[str]:
    least, most = property_.length
    if property_.pattern is not None:
        try:
            return st.just(sample(property_))
        except NoSample:
            return st.nothing()
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    return st.text(letters, min_size=least, max_size=least + 12 if most is None else most)
