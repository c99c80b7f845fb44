"""Both matrices of WF-006, written down once more, and every pair of states tried on a store."""

from itertools import product

import pytest

import interlock
from interlock.core.declaration import check_declaration
from interlock.core.text import LIMITS
from interlock.language.flows.lifecycles import ACTIVITY, COMPENSATED_WORKFLOW, WORKFLOW, Lifecycle
from interlock.store.store import Store

# WF-006 section 8: every line of the matrix, what it allows and what it does not.
WORKFLOW_MATRIX = """
Created Validated yes
Validated Scheduled yes
Scheduled Running yes
Running Waiting yes
Waiting Resumed yes
Resumed Running yes
Running Completed yes
Running Failed yes
Running Cancelled yes
Completed Running no
Failed Running no
Cancelled Running no
"""
COMPENSATION_MATRIX = """
Failed Compensating yes
Compensating Completed yes
"""
# WF-006 section 9.
ACTIVITY_MATRIX = """
Created Ready yes
Ready Scheduled yes
Scheduled Running yes
Running Completed yes
Running Failed yes
Failed Retrying yes
Retrying Scheduled yes
Completed Running no
"""
LIFECYCLES = {
    "workflow": (WORKFLOW, WORKFLOW_MATRIX),
    "compensated workflow": (COMPENSATED_WORKFLOW, WORKFLOW_MATRIX + COMPENSATION_MATRIX),
    "activity": (ACTIVITY, ACTIVITY_MATRIX),
}
PAIRS = [
    (name, origin, target)
    for name, (lifecycle, _) in LIFECYCLES.items()
    for origin, target in product(lifecycle.states, repeat=2)
]
# WF-006 section 11 names some of the events; the others are named alike.
NAMED = {
    "WorkflowCreated",
    "WorkflowValidated",
    "WorkflowScheduled",
    "WorkflowStarted",
    "WorkflowPaused",
    "WorkflowResumed",
    "WorkflowCompleted",
    "WorkflowFailed",
    "WorkflowCancelled",
    "ActivityReady",
    "ActivityScheduled",
    "ActivityStarted",
    "ActivityCompleted",
    "ActivityFailed",
    "ActivityRetried",
}


def allowed(matrix: str) -> set[tuple[str, str]]:
    lines = [line.split() for line in matrix.split("\n") if line]
    return {(origin, target) for origin, target, is_allowed in lines if is_allowed == "yes"}


def way_to(lifecycle: Lifecycle, state: str) -> list[str]:
    """Find actions that lead from the first state to one."""
    ways: dict[str, list[str]] = {lifecycle.states[0]: []}
    while state not in ways:
        for origin, action, target, *_ in lifecycle.passages:
            if origin in ways:
                ways.setdefault(target, [*ways[origin], action])
    return ways[state]


@pytest.fixture(scope="module")
def store() -> Store:
    return interlock.open("sqlite://")


@pytest.mark.parametrize(("name", "origin", "target"), PAIRS)
def test_every_pair_of_states(store: Store, name: str, origin: str, target: str) -> None:
    lifecycle, matrix = LIFECYCLES[name]
    declaration = lifecycle.declaration()
    id = store.instantiate(declaration)
    for action in way_to(lifecycle, origin):
        store.fire(id, action, guard_satisfied=True)
    assert store.current(id) == origin
    leads = [
        one.action for one in lifecycle.passages if (one.origin, one.target) == (origin, target)
    ]
    assert len(leads) == ((origin, target) in allowed(matrix))
    onwards = {one.action for one in lifecycle.passages if one.origin == origin}
    for action in {one.action for one in lifecycle.passages} - onwards:
        with pytest.raises((interlock.InvalidTransition, interlock.Terminal)):
            store.fire(id, action, guard_satisfied=True)
    for action in leads:
        with pytest.raises(interlock.GuardNotSatisfied):
            store.fire(id, action)
        assert store.fire(id, action, guard_satisfied=True) == target
        assert store.history(id)[-1].guard_satisfied is True


@pytest.mark.parametrize("name", LIFECYCLES)
def test_a_lifecycle_is_well_formed_and_ends_where_nothing_leads_on(name: str) -> None:
    lifecycle, matrix = LIFECYCLES[name]
    assert check_declaration(lifecycle.declaration(), LIMITS) == []
    leaving = {origin for origin, _ in allowed(matrix)}
    assert {*lifecycle.terminal} == {*lifecycle.states} - leaving
    assert len(lifecycle.passages) == len(allowed(matrix))


def test_every_transition_has_an_event_and_those_of_the_specification_are_there() -> None:
    found = {
        event
        for lifecycle in (COMPENSATED_WORKFLOW, ACTIVITY)
        for event in [lifecycle.birth, *lifecycle.events.values()]
    }
    assert found >= NAMED
    assert {*WORKFLOW.events.items()} < {*COMPENSATED_WORKFLOW.events.items()}
    with_guard = {one.guard for one in (*COMPENSATED_WORKFLOW.passages, *ACTIVITY.passages)}
    assert with_guard == {"runtime-guards", "retry-allowed"}
