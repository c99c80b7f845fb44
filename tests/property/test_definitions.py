"""Compiled machines against a plain interpreter of their documents, on random statecharts."""

import json
from itertools import product
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from interlock.core.declaration import check_declaration
from interlock.language.condition import Check, Condition, Expr
from interlock.language.condition import tests as in_all
from interlock.language.definition import Definition, compile_document, restore
from interlock.language.document import read_document
from interlock.language.evaluation import holds
from interlock.language.flatten import Branch
from tests.support.charts import EVENTS, charts, shuffled, truths
from tests.support.interpreter import RAISED_MAX, Interpreter
from tests.support.running import Running
from tests.support.strategies import examples

#: What a random chart may be refused for, however careful its strategy is.
REFUSED = {"automatic-cycle", "unreachable-state", "budget-exceeded", "nondeterministic"}


def compiled(document: dict[str, Any]) -> Definition | None:
    definition, found = compile_document(read_document(json.dumps(document)), states_max=300)
    codes = {fault.code for fault in found if fault.severity == "error"}
    event(f"refused: {', '.join(sorted(codes)) or 'no'}")
    assert (definition is None) == bool(codes)
    assert codes <= REFUSED, [str(fault) for fault in found]
    return definition


@examples(60)
@given(charts(), st.data())
def test_a_compiled_machine_does_what_its_document_says(
    document: dict[str, Any], data: st.DataObject
) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    holds = dict(data.draw(truths()))
    plain = Interpreter(document, holds)
    flat = Running(definition.flat, lambda test: holds[named(test)], raised_max=RAISED_MAX)
    jumps = [name for name in document["states"]["top"]["on"] if name.startswith("j")]
    for _ in range(data.draw(st.integers(0, 12))):
        assert {*flat.leaves} == plain.leaves(), flat.taken
        assert flat.called == plain.called, flat.taken
        timers = plain.timers()
        holds.update(data.draw(truths()))
        if timers and data.draw(st.integers(0, 3)) == 0:
            timer = data.draw(st.sampled_from(timers))
            assert flat.expire(*timer) == plain.expire(*timer), flat.taken
        else:
            name = data.draw(st.sampled_from([*EVENTS, *EVENTS, *jumps]))
            assert flat.send(name) == plain.send(name), flat.taken
    assert {*flat.leaves} == plain.leaves(), flat.taken
    assert flat.called == plain.called, flat.taken


def named(test: Condition) -> str:
    assert isinstance(test, Expr | Check)
    return test.text if isinstance(test, Expr) else test.name


@examples(25)
@given(charts(), st.data())
def test_the_order_of_keys_changes_nothing(document: dict[str, Any], data: st.DataObject) -> None:
    one, other = compiled(document), compiled(data.draw(shuffled(document)))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.digest == other.digest
        assert one.declaration == other.declaration


@examples(40)
@given(charts())
def test_the_flat_declaration_is_one_that_the_core_accepts(document: dict[str, Any]) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    declaration = definition.declaration
    assert check_declaration(declaration) == []
    actions = [(t["from_state"], t["action"]) for t in declaration["transitions"]]
    assert len(actions) == len(set(actions))


@examples(40)
@given(charts())
def test_a_definition_is_restored_from_its_document(document: dict[str, Any]) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    again = restore(definition.document)
    assert again == definition
    assert again.document == definition.document
    assert again.declaration == definition.declaration
    assert (again.data, again.events) == (definition.data, definition.events)
    for branch in definition.flat.branches:
        for test in in_all(branch.when):
            if isinstance(test, Expr):
                found = again.expression(test.text, branch)
                assert found == definition.expression(test.text, branch)


@examples(25)
@given(charts())
def test_of_what_compiles_no_event_ever_takes_two_ways(document: dict[str, Any]) -> None:
    """Regions may leave each other here; whatever the tests say, one branch at most is true."""
    del document["conflicts"]
    definition, found = compile_document(read_document(json.dumps(document)), states_max=300)
    event(f"refused: {', '.join(sorted({f.code for f in found if f.severity == 'error'})) or 'no'}")
    assume(definition is not None)
    assert definition is not None
    ways: dict[tuple[object, ...], list[Branch]] = {}
    for branch in definition.flat.branches:
        ways.setdefault((branch.from_state, branch.trigger, branch.owner), []).append(branch)
    for branches in (several for several in ways.values() if len(several) > 1):
        names = sorted({named(test) for branch in branches for test in in_all(branch.when)})
        for values in product([False, True], repeat=len(names)):
            true = taken(branches, dict(zip(names, values, strict=True)))
            assert len({branch.places for branch in true}) <= 1, true


def taken(branches: list[Branch], says: dict[str, bool]) -> list[Branch]:
    def ask(test: Expr | Check) -> bool:
        return says[named(test)]

    return [branch for branch in branches if holds(branch.when, ask, ask)]
