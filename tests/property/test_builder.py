"""Random machines said in Python: the same as in a file."""

from typing import Any

from hypothesis import assume, given

from interlock.language import Definition, loads, to_yaml
from interlock.language.condition import text
from tests.property.test_definitions import compiled
from tests.support.building import built
from tests.support.charts import charts
from tests.support.strategies import examples


@examples(30)
@given(charts())
def test_a_machine_said_in_python_is_the_one_in_a_file(document: dict[str, Any]) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    machine = built(document, by_object=False)
    assert machine.define().digest == definition.digest


@examples(30)
@given(charts())
def test_a_state_given_as_an_object_is_found_by_its_shortest_name(
    document: dict[str, Any],
) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    machine = built(document, by_object=True)
    found = machine.define(prove=False)
    assert moves(found) == moves(definition)
    assert loads(to_yaml(machine.document()), prove=False).digest == found.digest


def moves(definition: Definition) -> list[tuple[object, ...]]:
    """What a machine does, whatever its branches are called."""
    return sorted(
        (b.from_state, b.to_state, b.trigger, text(b.when), b.hooks, b.entered, b.left)
        for b in definition.flat.branches
    )
