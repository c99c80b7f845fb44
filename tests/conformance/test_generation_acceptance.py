"""The six checks of "Generation acceptance" in the State Machine specification.

Each is made through the public verbs alone, for the batch example, for every example machine and
for machines drawn at random, on both kinds of database. What a check needs to know of a machine it
reads from `read_declaration`, as an outside evaluator would.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import interlock
from interlock import (
    Entry,
    Fire,
    GuardNotSatisfied,
    InvalidTransition,
    Rejected,
    Terminal,
)
from interlock.store.store import Store
from tests.support.machines import BATCH, MACHINES, Declaration, actions_of, paths_of
from tests.support.strategies import declarations, examples


@pytest.fixture(scope="module")
def store(lasting_store: Store) -> Store:
    return lasting_store


# What the checks are made with


def arrived(store: Store, declaration: Declaration, path: list[dict[str, Any]]) -> str:
    """Begin an instance and drive it along a path, asserting the guards on the way."""
    id = store.instantiate(declaration)
    for row in path:
        assert store.fire(id, row["action"], guard_satisfied=True) == row["to_state"]
    return id


def outgoing(declaration: Declaration, state: str) -> list[dict[str, Any]]:
    return [row for row in declaration["transitions"] if row["from_state"] == state]


def long_walk(declaration: Declaration, length: int) -> list[dict[str, Any]]:
    """Walk on and on, taking the ways out of a state in turn."""
    taken: dict[str, int] = {}
    walk: list[dict[str, Any]] = []
    state = declaration["initial_state"]
    while len(walk) < length:
        ways = outgoing(declaration, state)
        if not ways:
            break
        turn = taken.get(state, 0)
        taken[state] = turn + 1
        walk.append(ways[turn % len(ways)])
        state = walk[-1]["to_state"]
    return walk


def refused(
    store: Store, id: str, action: str, kind: type[Rejected], asserted: object = True
) -> None:
    with pytest.raises(Rejected) as caught:
        store.fire(id, action, guard_satisfied=asserted)  # type: ignore[arg-type]
    assert type(caught.value) is kind, caught.value


# The six checks


def declaration_immutability(store: Store, declaration: Declaration) -> None:
    """1. Read Declaration gives the same before and after transitions, and what was supplied."""
    id = store.instantiate(declaration)
    first = store.read_declaration(id)
    assert json.dumps(first) == json.dumps(declaration)
    for row in long_walk(declaration, 5):
        store.fire(id, row["action"], guard_satisfied=True)
        assert json.dumps(store.read_declaration(id)) == json.dumps(first)
    first["states"].append("another")
    first["transitions"].clear()
    first["initial_state"] = "another"
    assert json.dumps(store.read_declaration(id)) == json.dumps(declaration)


def only_declared_transitions(store: Store, declaration: Declaration) -> None:
    """2. An undeclared action is refused, nothing changes; a declared one leads where it says."""
    for state, path in paths_of(declaration).items():
        if state in declaration["terminal_states"]:
            continue
        ways = outgoing(declaration, state)
        declared = {row["action"] for row in ways}
        id = arrived(store, declaration, path)
        before = store.history(id)
        for action in actions_of(declaration):
            if action not in declared:
                refused(store, id, action, InvalidTransition)
                assert store.current(id) == state
        assert store.history(id) == before
        for row in ways:
            id = arrived(store, declaration, path)
            assert store.fire(id, row["action"], guard_satisfied=True) == row["to_state"]
            assert store.current(id) == row["to_state"]


def terminal_absorption(store: Store, declaration: Declaration) -> None:
    """3. In each terminal state there is a way to, every action is refused as terminal."""
    paths = paths_of(declaration)
    for state in declaration["terminal_states"]:
        if state not in paths:
            continue
        id = arrived(store, declaration, paths[state])
        assert store.current(id) in store.read_declaration(id)["terminal_states"]
        before = store.history(id)
        for action in actions_of(declaration):
            for asserted in (None, True):
                refused(store, id, action, Terminal, asserted)
                assert store.current(id) == state
            with pytest.raises(Terminal):
                store.fire_many([Fire(id, action)])
        assert store.history(id) == before


def append_only_and_replay(store: Store, declaration: Declaration) -> None:
    """4. N fires are N entries, 1 to N, none ever changed, and replay leads to the state."""
    id = store.instantiate(declaration)
    seen: list[Entry] = []
    for number, row in enumerate(long_walk(declaration, 12), 1):
        store.fire(id, row["action"], f"actor {number}", guard_satisfied=True)
        refuse_something(store, id, declaration)
        history = store.history(id)
        assert history[:-1] == seen
        assert [entry.sequence_number for entry in history] == list(range(1, number + 1))
        state = store.read_declaration(id)["initial_state"]
        for entry in history:
            assert entry.from_state == state
            state = entry.to_state
        assert state == store.current(id)
        seen = history
    assert len(store.history(id)) == len(long_walk(declaration, 12))


def refuse_something(store: Store, id: str, declaration: Declaration) -> None:
    with pytest.raises(Rejected):
        store.fire(id, "no such action")
    with pytest.raises(Rejected):
        store.fire(id, declaration["initial_state"], fired_at="never", actor_ref=" ")


def guard_gating(store: Store, declaration: Declaration) -> None:
    """5. A guard not asserted is refused; asserted it is recorded; without one nothing is asked."""
    paths = paths_of(declaration)
    for row in declaration["transitions"]:
        if row["from_state"] not in paths:
            continue
        id = arrived(store, declaration, paths[row["from_state"]])
        before = store.history(id)
        if row.get("guard") is None:
            assert store.fire(id, row["action"]) == row["to_state"]
            assert store.history(id)[-1].guard_satisfied is None
            continue
        for asserted in (None, False, 1, "true"):
            refused(store, id, row["action"], GuardNotSatisfied, asserted)
        assert store.history(id) == before
        assert store.current(id) == row["from_state"]
        assert store.fire(id, row["action"], guard_satisfied=True) == row["to_state"]
        history = store.history(id)
        assert history[:-1] == before
        assert history[-1].guard_satisfied is True


def every_entry_is_declared(store: Store, declaration: Declaration) -> None:
    """6. Each entry's triple is in the declaration, guard and all."""
    id = store.instantiate(declaration)
    for row in long_walk(declaration, 20):
        store.fire(id, row["action"], guard_satisfied=True)
        refuse_something(store, id, declaration)
    declared = {
        (row["from_state"], row["action"], row["to_state"]): row.get("guard") is not None
        for row in store.read_declaration(id)["transitions"]
    }
    for entry in store.history(id):
        guarded = declared[entry.from_state, entry.action, entry.to_state]
        assert entry.guard_satisfied is (True if guarded else None)
        assert entry.transition_id
        assert entry.fired_at is not None
    assert len(store.history(id)) == len(long_walk(declaration, 20))


CHECKS = [
    declaration_immutability,
    only_declared_transitions,
    terminal_absorption,
    append_only_and_replay,
    guard_gating,
    every_entry_is_declared,
]
EACH = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@EACH
def test_the_batch_example(store: Store, check: Callable[[Store, Declaration], None]) -> None:
    check(store, BATCH)


@EACH
@pytest.mark.parametrize("name", MACHINES)
def test_every_example(name: str, check: Callable[[Store, Declaration], None]) -> None:
    with interlock.open("sqlite://") as store:
        check(store, MACHINES[name])
        assert not store.instances() or store.verify().ok


@EACH
def test_random_machines(store: Store, check: Callable[[Store, Declaration], None]) -> None:
    @given(declarations())
    @examples(20)
    def tried(declaration: Declaration) -> None:
        check(store, declaration)

    tried()
    assert store.verify().ok


def test_the_flow_of_the_specification(store: Store) -> None:
    """The story of section "Flow", word for word."""
    first = {**BATCH, "states": ["sampled", "testing", "released"]}
    with pytest.raises(interlock.InvalidDeclaration):
        store.instantiate(first)
    id = store.instantiate(BATCH, actor_ref="system-planner")
    assert store.current(id) == "sampled"
    assert store.snapshot(id).actor_ref == "system-planner"
    assert store.fire(id, "begin-testing", actor_ref="lab-tech-rivera") == "testing"
    with pytest.raises(GuardNotSatisfied):
        store.fire(id, "release", actor_ref="qp-director-santos")
    assert store.current(id) == "testing"
    state = store.fire(id, "release", actor_ref="qp-director-santos", guard_satisfied=True)
    assert state == "released"
    with pytest.raises(Terminal):
        store.fire(id, "begin-testing")
    told = [
        (entry.sequence_number, entry.from_state, entry.to_state, entry.action, entry.actor_ref)
        for entry in store.history(id)
    ]
    assert told == [
        (1, "sampled", "testing", "begin-testing", "lab-tech-rivera"),
        (2, "testing", "released", "release", "qp-director-santos"),
    ]
    assert [entry.guard_satisfied for entry in store.history(id)] == [None, True]


def test_a_store_without_instances_is_sound(path: Path) -> None:
    for url in ("sqlite://", f"sqlite:///{path}"):
        with interlock.open(url) as store:
            report = store.verify()
            assert (report.ok, report.instances, report.entries) == (True, 0, 0)


def test_instances_do_not_touch_each_other(store: Store) -> None:
    """ "Multi-instance independence"."""
    one, two = store.instantiate(BATCH), store.instantiate(BATCH)
    store.fire(one, "begin-testing")
    assert (store.current(one), store.current(two)) == ("testing", "sampled")
    assert len(store.history(one)) == 1
    assert store.history(two) == []
    store.fire(two, "begin-testing")
    assert store.history(two)[0].sequence_number == 1


def test_a_window_of_time_for_an_investigation(store: Store) -> None:
    """ "Breach or incident investigation": a range of times, both ends included."""
    id = store.instantiate(MACHINES["toggle"], instantiated_at="2026-04-01T00:00:00Z")
    for day in ("2026-04-30", "2026-05-01", "2026-05-03", "2026-05-04"):
        store.fire(id, "go", fired_at=f"{day}T00:00:00Z")
    window = {"after": "2026-05-01T00:00:00Z", "before": "2026-05-03T23:59:59Z"}
    found = store.history(id, {"fired_at": window})
    assert [entry.sequence_number for entry in found] == [2, 3]
