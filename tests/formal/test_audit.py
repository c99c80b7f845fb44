"""The audit and the replay find a fault exactly where a property fails.

Every history of a scope is read, lawful or not. The counts are asserted so that no scope shrinks
unseen; `docs/model-check.md` quotes them.
"""

from itertools import product
from typing import NamedTuple

import pytest

from interlock.core.audit import Trail
from interlock.core.machine import replay
from tests.formal import bridge, twins
from tests.formal.bridge import Reading, Replay
from tests.formal.model import (
    BACKBONE,
    INITIAL,
    REPLAY,
    Config,
    History,
    broken,
    current_is_tail,
    guard_recorded,
    next_follows_tail,
    numbers_rise,
    only_declared_transitions,
    terminal_absorption,
)
from tests.formal.scope import STATES, candidates, declared, walks


class Read(NamedTuple):
    """How much was read, and how much of it was lawful."""

    declarations: int
    histories: int
    lawful: int


SLOW = (pytest.mark.slow, pytest.mark.timeout(900))  # a busy machine is no failure
SMALLEST = candidates(2, 1, range(4), (None, 0, 1))


@pytest.mark.parametrize(
    ("declarations", "entries", "length", "past_faults", "read"),
    [
        pytest.param(
            *(declared(2, 1), SMALLEST, 2, True, Read(33, 77649, 81)),
            id="2 states, 1 action, all of length 2",
        ),
        pytest.param(
            *(declared(2, 2), candidates(2, 2, range(1, 4)), 2, False, Read(346, 43450, 1820)),
            id="2 states, 2 actions, up to a fault",
        ),
        pytest.param(
            *(declared(2, 1), candidates(2, 1, range(1, 4)), 3, True, Read(33, 476025, 103)),
            id="2 states, 1 action, all of length 3",
            marks=SLOW,
        ),
        pytest.param(
            *(declared(2, 2), candidates(2, 2, range(1, 4)), 2, True, Read(346, 814138, 1820)),
            id="2 states, 2 actions, all of length 2",
            marks=SLOW,
        ),
        pytest.param(
            *(declared(3, 1), candidates(3, 1, (1, 2)), 2, True, Read(269, 358577, 685)),
            id="3 states, 1 action, all of length 2",
            marks=SLOW,
        ),
        pytest.param(
            *(declared(3, 2, guards=False), candidates(3, 2, range(1, 5), [None]), 3, False),
            Read(1269, 434853, 10800),
            id="3 states, 2 actions, no guards, up to a fault",
            marks=SLOW,
        ),
    ],
)
def test_audit_and_replay_find_a_fault_exactly_where_a_property_fails(
    declarations, entries, length, past_faults, read
):
    histories = lawful = 0
    for config in declarations:
        for reading in bridge.readings(config, entries, length, past_faults=past_faults):
            assert not disagreement(config, reading), (str(config), reading)
            histories += 1
            lawful += not reading.found
    assert Read(len(declarations), histories, lawful) == read


def disagreement(config: Config, reading: Reading) -> list[str]:
    """List where the audit and the replay do not say of a history what the model says.

    Where a number is out of line, entries are missing (Invariant 5) or it does not rise (6). It is
    then lost what follows what, so the audit may report Invariant 7 as well or not.
    """
    history, found = History.of(reading.entries), reading.found
    faults = broken(config, history)
    in_line = not any(promise in faults for promise in BACKBONE)
    current = reading.entries[-1].to_state if reading.entries else INITIAL
    kept = {  # by the word of the model, and of the code
        "Invariant 2": (current in config.states, 2 not in found),
        "Invariant 3": (only_declared_transitions not in faults, 3 not in found),
        "Invariant 4": (terminal_absorption not in faults, 4 not in found),
        "Invariants 5 and 6": (in_line, not found & {5, 6}),
        "Invariant 6": (numbers_rise(history), 6 not in found),
        "Invariant 8": (guard_recorded(config, history), 8 not in found),
        "others": (True, found <= {2, 3, 4, 5, 6, 7, 8}),
        "replay": (not faults, reading.led_to is not None),
    }
    if in_line:
        kept["Invariant 7"] = (not any(promise in faults for promise in REPLAY), 7 not in found)
    if reading.led_to is not None:
        kept["replayed state"] = (True, current_is_tail(history, reading.led_to))
    return [what for what, (model, code) in kept.items() if model != code]


def test_the_audit_finds_what_an_instance_claims_wrongly_of_itself():
    """Beside each lawful history, every current state and next number that its row may claim."""
    claims = wrong = 0
    for config in declared(2, 2):
        for entries in walks(config, 3):
            history, trail = History.of(entries), bridge.walked(config, entries)
            for current, next_number in product(STATES, range(7)):
                faults = trail.close(current, next_number, trail.digest)
                found = {fault.invariant for fault in faults}
                claim = (str(config), entries, current, next_number)
                assert (2 not in found) == (current in config.states), claim
                assert (7 not in found) == current_is_tail(history, current), claim
                assert (not found & {5, 6}) == next_follows_tail(history, next_number), claim
                assert found <= {2, 5, 6, 7}, claim
                claims += 1
                wrong += bool(found)
    assert (claims, wrong) == (73122, 69640)


@pytest.mark.parametrize(
    ("invariant", "caught"),
    [
        (3, ["Invariant 3"]),
        (4, ["Invariant 4"]),
        (5, ["Invariants 5 and 6"]),
        (6, ["Invariants 5 and 6", "Invariant 6"]),
        (7, ["Invariant 7"]),
        (8, ["Invariant 8"]),
    ],
)
def test_an_auditor_blind_to_an_invariant_is_caught(invariant, caught):
    assert first_disagreement(trail=twins.blind_to(invariant)) == caught


@pytest.mark.parametrize(
    "replay", [twins.replays_any_number, twins.replays_any_start, twins.replays_any_move]
)
def test_a_replay_that_overlooks_a_fault_is_caught(replay):
    assert "replay" in first_disagreement(replay=replay)


def first_disagreement(trail: type[Trail] = Trail, replay: Replay = replay) -> list[str]:
    return next(
        wrong
        for config in declared(2, 1)
        for reading in bridge.readings(config, SMALLEST, 2, trail=trail, replay=replay)
        if (wrong := disagreement(config, reading))
    )
