"""What the model of a machine says, and the cases that are made with it, against the engine."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from interlock.language.definition import Definition, compile_document
from interlock.language.document import read_document
from interlock.testing import Trial
from interlock.testing.stateful import machine_of
from interlock.witness import tabulate
from interlock.witness.case import Case
from tests.support.charts import charts
from tests.support.strategies import examples
from tests.support.typed import ORDER

KEPT = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)
BRANCHES_MAX = 120  # of a random chart: what is larger takes long to look through


def compiled(document: dict[str, Any]) -> Definition | None:
    read = read_document(json.dumps(document))
    definition, _ = compile_document(read, prove=False, states_max=40)
    return definition if definition and len(definition.flat.branches) <= BRANCHES_MAX else None


@examples(25)
@given(charts(), st.randoms(use_true_random=False))
def test_the_engine_does_in_each_case_what_the_model_says(
    document: dict[str, Any], random: Any
) -> None:
    definition = compiled(document)
    assume(definition is not None)
    assert definition is not None
    table = tabulate(definition)
    named = {(c.state, c.branch.action) for c in table.taken if c.branch}
    named |= {(m.state, m.action) for m in table.missed if m.action}
    assert named == {(b.from_state, b.action) for b in definition.flat.branches}
    trial = Trial(definition)
    cases: list[Case] = [*table.taken, *table.refused]
    for case in random.sample(cases, min(len(cases), 12)):
        trial.run(case)


def some_machines(number: int) -> list[Definition]:
    """Draw machines, outside of a test of Hypothesis: one does not run within another."""
    found: list[Definition] = []

    @settings(KEPT, max_examples=number * 4)
    @given(charts())
    def draw(document: dict[str, Any]) -> None:
        definition = compiled(document)
        if definition is not None and len(definition.states) > 2:
            found.append(definition)

    draw()
    return found[-number:]


@pytest.mark.slow
def test_the_engine_goes_where_the_model_goes_whatever_is_sent() -> None:
    machines = some_machines(8)
    assert len(machines) == 8
    for definition in [*machines, ORDER]:
        kept = settings(KEPT, max_examples=8, stateful_step_count=12)
        run_state_machine_as_test(machine_of(definition), settings=kept)
