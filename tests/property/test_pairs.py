"""Every (state, action) pair of every example machine, valid and invalid, has been tried.

The cases are written out of the declarations in `tests.support.machines`; a machine added there is
tested here.
"""

from datetime import UTC, datetime

import pytest

import interlock
from interlock import Fire
from interlock.core.machine import Request, Snapshot, compile_machine, decide
from tests.support.machines import (
    MACHINES,
    Declaration,
    Pair,
    actions_of,
    pairs_of,
    paths_of,
)

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(params=MACHINES)
def declaration(request: pytest.FixtureRequest) -> Declaration:
    return MACHINES[request.param]


def expected_of(declaration: Declaration, pair: Pair, *, asserted: bool) -> str:
    """Say what a fire comes to: `-> state`, or the reason word of its refusal."""
    if pair.state in declaration["terminal_states"]:
        return "terminal"
    if pair.declared is None:
        return "invalid-transition"
    if pair.declared.get("guard") is not None and not asserted:
        return "guard-not-satisfied"
    return f"-> {pair.declared['to_state']}"


@pytest.mark.parametrize("asserted", [True, False])
def test_decide(declaration: Declaration, asserted: bool) -> None:
    """Also from the states that there is no way to."""
    machine = compile_machine(declaration)
    for pair in pairs_of(declaration):
        snapshot = Snapshot("i", pair.state, 7, NOW)
        request = Request(pair.action, guard_satisfied=asserted)
        try:
            entry, after = decide(machine, snapshot, request, now=NOW, new_id="t")
        except interlock.Rejected as refusal:
            outcome = refusal.reason
        else:
            outcome = f"-> {after.state}"
            assert (entry.from_state, entry.to_state) == (pair.state, after.state)
            assert (entry.action, entry.sequence_number) == (pair.action, 7)
            assert after.version == 8
            guarded = pair.declared is not None and pair.declared.get("guard") is not None
            assert entry.guard_satisfied is (True if guarded else None)
        assert outcome == expected_of(declaration, pair, asserted=asserted), pair


def test_the_store(declaration: Declaration) -> None:
    """From every state there is a way to, on an instance that was driven there."""
    with interlock.open("sqlite://") as store:
        paths = paths_of(declaration)
        tried = 0
        for state, path in paths.items():
            pairs = [pair for pair in pairs_of(declaration) if pair.state == state]
            valid = [pair for pair in pairs if pair.declared]
            ids = store.instantiate_each(
                declaration, [interlock.Birth() for _ in range(len(valid) + 1)]
            )
            for id in ids:
                assert isinstance(id, str)
                store.fire_many([Fire(id, row["action"], guard_satisfied=True) for row in path])
                assert store.current(id) == state
            still, *movers = map(str, ids)
            for pair in pairs:
                tried += 1
                if not expected_of(declaration, pair, asserted=False).startswith("->"):
                    with pytest.raises(interlock.Rejected) as caught:
                        store.fire(still, pair.action)
                    assert caught.value.reason == expected_of(declaration, pair, asserted=False)
            assert len(store.history(still)) == len(path)
            assert store.current(still) == state
            for mover, pair in zip(movers, valid, strict=True):
                assert pair.declared
                target = pair.declared["to_state"]
                assert store.fire(mover, pair.action, guard_satisfied=True) == target
                assert store.current(mover) == target
                assert store.history(mover)[-1].action == pair.action
        assert tried == len(paths) * len(actions_of(declaration))


def test_the_declaration_comes_back_as_it_was(declaration: Declaration) -> None:
    with interlock.open("sqlite://") as store:
        id = store.instantiate(declaration)
        assert repr(store.read_declaration(id)) == repr(declaration)
        store.read_declaration(id)["states"].clear()
        assert store.read_declaration(id) == declaration


def test_the_examples_are_of_every_kind() -> None:
    sizes = {len(machine["states"]) for machine in MACHINES.values()}
    assert {1, 2, 30} <= sizes
    assert any(not machine["transitions"] for machine in MACHINES.values())
    assert any(not machine["terminal_states"] for machine in MACHINES.values())
    assert any(len(machine["terminal_states"]) > 1 for machine in MACHINES.values())
    names = {name for machine in MACHINES.values() for name in machine["states"]}
    assert {"caf\u00e9", "cafe\u0301"} <= names
    assert max(len(name.encode()) for name in names) == 512
    unreachable = MACHINES["unreachable"]
    assert set(unreachable["states"]) - set(paths_of(unreachable))
