"""An engine against a plain interpreter of the document, on random statecharts.

The truths that conditions ask for are data, which an event of its own sets; every few events
another engine takes over, which knows only what is written.
"""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

import interlock
from interlock.core.rejection import GuardNotSatisfied, InvalidTransition, StepLimit, Terminal
from interlock.language.definition import Definition, compile_document
from interlock.language.document import read_document
from tests.support.charts import EVENTS, TRUTHS, charts, truths
from tests.support.engines import Clock
from tests.support.interpreter import Interpreter
from tests.support.strategies import examples

NAMES = [truth.removeprefix("data.") for truth in TRUTHS]
TURN = "turn"
STEPS_MAX = 100


def turned(document: dict[str, Any]) -> dict[str, Any]:
    """Give a machine an event that sets the truths, wherever it is, and stays there."""
    fields = {name: {"type": "boolean"} for name in NAMES}
    sets = {name: f"event.{name}" for name in NAMES}
    top = document["states"]["top"]
    on = {**top.get("on", {}), TURN: {"set": sets, "name": TURN}}
    states = {**document["states"], "top": {**top, "on": on}}
    return {**document, "version": 1, "events": {TURN: fields}, "states": states}


def compiled(document: dict[str, Any]) -> Definition | None:
    definition, _ = compile_document(read_document(json.dumps(document)), states_max=300)
    return definition


def hooks_of(value: Any) -> set[str]:
    """Find every name under `do`, `on_enter` and `on_exit`."""
    if isinstance(value, list):
        return {name for item in value for name in hooks_of(item)}
    if not isinstance(value, dict):
        return set()
    found = {name for item in value.values() for name in hooks_of(item)}
    for word in ("do", "on_enter", "on_exit"):
        listed = value.get(word, [])
        listed = listed if isinstance(listed, list) else [listed]
        found |= {hook for hook in listed if isinstance(hook, str)}
    return found


class Worker:
    """An engine that notes the hooks it calls."""

    def __init__(self, store: interlock.Store, document: dict[str, Any], called: list[str]) -> None:
        self.engine = interlock.Engine(store)
        for name in hooks_of(document):
            self.engine.hook(name)(lambda tx, name=name: called.append(name))
        for truth in TRUTHS:
            name = truth.removeprefix("data.")
            self.engine.guard(truth)(lambda tx, name=name: tx.data[name])


@examples(40)
@given(charts(), st.data())
def test_an_engine_does_what_the_document_says(
    document: dict[str, Any], data: st.DataObject
) -> None:
    document = turned(document)
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    holds = data.draw(truths())
    called: list[str] = []
    clock = Clock()
    with interlock.open("sqlite://", clock=clock) as store:
        worker = Worker(store, document, called)
        worker.engine.tick()
        try:
            order = worker.engine.start(definition, {n: holds[f"data.{n}"] for n in NAMES})
        except StepLimit:
            return
        plain = Interpreter(document, holds, raised_max=STEPS_MAX)
        for _ in range(data.draw(st.integers(0, 10))):
            assert {*definition.leaves(order.state)} == plain.leaves()
            assert called == plain.called
            if data.draw(st.integers(0, 2)) == 0:
                order = Worker(store, document, called).engine.get(order.id)
            holds.update(data.draw(truths()))
            try:
                taken = sent(order, TURN, {n: holds[f"data.{n}"] for n in NAMES})
                assert plain.send(TURN) == taken
                if not taken:
                    break
                event = data.draw(st.sampled_from(EVENTS))
                taken = sent(order, event)
                assert plain.send(event) == taken
            except StepLimit:  # where the interpreter would go on for ever
                return
        assert {*definition.leaves(order.state)} == plain.leaves()
        assert called == plain.called
        assert store.verify().ok
        assert order.data_at(0).keys() == {*NAMES}


def sent(order: interlock.Handle, event: str, payload: dict[str, Any] | None = None) -> bool:
    """Send an event, and say whether anything waited for it."""
    try:
        order.send(event, payload)
    except (InvalidTransition, GuardNotSatisfied, Terminal):
        return False
    return True
