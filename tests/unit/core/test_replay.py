"""Replay: the history alone leads to the state, or says where it does not."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Entry
from interlock.core.machine import Request, Snapshot, compile_machine, decide, replay
from tests.support.machines import BATCH, MACHINES, Declaration
from tests.support.strategies import examples, machines

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MACHINE = compile_machine(BATCH)


def entry(number: int, from_state: str, action: str, to_state: str) -> Entry:
    return Entry(f"t{number}", number, from_state, to_state, action, None, NOW, None)


BEGIN = entry(1, "sampled", "begin-testing", "testing")
RELEASE = entry(2, "testing", "release", "released")


def test_no_history_leads_to_the_initial_state() -> None:
    for declaration in MACHINES.values():
        assert replay(compile_machine(declaration), []) == declaration["initial_state"]


def test_each_prefix_of_a_history_leads_to_its_last_target() -> None:
    assert replay(MACHINE, [BEGIN]) == "testing"
    assert replay(MACHINE, [BEGIN, RELEASE]) == "released"
    assert replay(MACHINE, iter([BEGIN, RELEASE])) == "released"


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([RELEASE], "entry 1 is missing, found 2"),
        ([BEGIN, BEGIN], "entry 2 is missing, found 1"),
        ([BEGIN, RELEASE._replace(sequence_number=3)], "entry 2 is missing, found 3"),
        ([BEGIN._replace(sequence_number=0)], "entry 1 is missing, found 0"),
        ([BEGIN, entry(2, "sampled", "begin-testing", "testing")], "the state was `testing`"),
        ([entry(1, "testing", "release", "released")], "the state was `sampled`"),
        ([BEGIN, entry(2, "testing", "release", "rejected")], "entry 2 is not declared"),
        ([BEGIN, entry(2, "testing", "begin-testing", "testing")], "entry 2 is not declared"),
        ([entry(1, "sampled", "skip", "released")], "entry 1 is not declared"),
        ([BEGIN, RELEASE, entry(3, "released", "reopen", "testing")], "entry 3 is not declared"),
        ([BEGIN, RELEASE, entry(3, "testing", "release", "released")], "the state was `released`"),
        ([BEGIN._replace(to_state="Testing")], "entry 1 is not declared"),
    ],
)
def test_a_history_that_cannot_be(entries: list[Entry], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        replay(MACHINE, entries)


@given(machines(), st.data())
@examples(100)
def test_what_was_decided_is_replayed(declaration: Declaration, data: st.DataObject) -> None:
    """And any entry left out, doubled or moved is found, unless it changes nothing."""
    machine = compile_machine(declaration)
    snapshot, entries = Snapshot("i", machine.initial_state, 1, NOW), []
    for number in range(data.draw(st.integers(0, 8))):
        actions = machine.actions(snapshot.state)
        if not actions:
            break
        request = Request(data.draw(st.sampled_from(actions)), guard_satisfied=True)
        made, snapshot = decide(machine, snapshot, request, now=NOW, new_id=f"t{number}")
        entries.append(made)
        assert replay(machine, entries) == snapshot.state
    assert all(one.to_state == two.from_state for one, two in pairwise(entries))
    if entries:
        place = data.draw(st.integers(0, len(entries) - 1))
        if place < len(entries) - 1:
            with pytest.raises(ValueError, match="missing"):
                replay(machine, entries[:place] + entries[place + 1 :])
        with pytest.raises(ValueError, match="missing"):
            replay(machine, [*entries[: place + 1], entries[place], *entries[place + 1 :]])
