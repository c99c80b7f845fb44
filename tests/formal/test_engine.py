"""The engine makes every lawful history and no other; twins that drop a promise are caught.

The counts are asserted so that no scope shrinks unseen; `docs/model-check.md` quotes them.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.formal import bridge, twins
from tests.formal.bridge import Call
from tests.formal.model import (
    Config,
    Entries,
    Entry,
    History,
    broken,
    chain_consistency,
    lawful,
    only_declared_transitions,
    terminal_absorption,
)
from tests.formal.scope import declared, walks


class Driven(NamedTuple):
    """How much was tried."""

    declarations: int
    calls: int
    histories: int


class Runs(NamedTuple):
    """The reference model's four non-vacuity runs: how many histories of each kind were made."""

    empty: int  # the current state is the initial one
    single: int
    two_step: int
    terminal: int


@pytest.mark.parametrize(
    ("states", "actions", "guards", "length", "driven", "runs"),
    [
        pytest.param(
            *(2, 2, True, 5, Driven(346, 78912, 12486), Runs(346, 552, 922, 28)),
            id="2 states, 2 actions",
        ),
        pytest.param(
            *(3, 1, True, 5, Driven(269, 12588, 1231), Runs(269, 226, 190, 22)),
            id="3 states, 1 action",
        ),
        pytest.param(
            *(3, 2, False, 4, Driven(1269, 129600, 19182), Runs(1269, 1885, 2868, 220)),
            id="3 states, 2 actions, no guards",
        ),
        pytest.param(
            *(3, 2, True, 4, Driven(31283, 4153860, 658599), Runs(31283, 53544, 93060, 2510)),
            id="3 states, 2 actions",
            marks=(pytest.mark.slow, pytest.mark.timeout(900)),
        ),
    ],
)
def test_the_engine_makes_every_lawful_history_and_no_other(
    states, actions, guards, length, driven, runs
):
    tried: Counter[str] = Counter()
    for config in declared(states, actions, guards=guards):
        assert bridge.admits(config), str(config)
        made: set[Entries] = {()}
        for call in bridge.calls(config, length):
            assert as_declared(config, call), (str(config), call)
            if not isinstance(call.outcome, str):
                made.add(call.outcome[0])
            tried["calls"] += 1
        for entries in made:
            assert lawful(config, entries), (str(config), entries)
            tried.update(kinds(config, entries))
        assert made == {*walks(config, length)}, str(config)
        tried.update(declarations=1, histories=len(made))
    assert Driven(*(tried[name] for name in Driven._fields)) == driven
    assert Runs(*(tried[name] for name in Runs._fields)) == runs


def as_declared(config: Config, call: Call) -> bool:
    """Say whether a call was answered as the declaration demands and left the instance in order."""
    answer = demanded(config, call)
    if isinstance(answer, str) or isinstance(call.outcome, str):
        return call.outcome == answer
    entries, after = call.outcome
    stands = (after.state, after.version)
    return entries == (*call.before, answer) and stands == (answer.to_state, answer.number + 1)


def demanded(config: Config, call: Call) -> Entry | str:
    """Give the entry that is owed to the history, or the word of the refusal."""
    if call.state in config.terminal:
        return "terminal"
    for trans in config.transitions:
        if (trans.from_state, trans.action) == (call.state, call.request.action):
            if trans.guarded and call.request.guard_satisfied is not True:
                return "guard-not-satisfied"
            return Entry(*trans[:3], len(call.before) + 1, 1 if trans.guarded else None)
    return "invalid-transition"


def kinds(config: Config, entries: Entries) -> Iterator[str]:
    """Say which of the four runs a history belongs to."""
    if len(entries) < 3:
        yield ("empty", "single", "two_step")[len(entries)]
    if entries and entries[-1].to_state in config.terminal:
        yield "terminal"


@pytest.mark.parametrize(
    ("dropped", "engine", "promise", "counterexample"),
    [
        (
            "EveryEntryDeclared",
            twins.fires_the_undeclared,
            only_declared_transitions,
            "nothing is declared | 1: s0 --a--> s0",
        ),
        (
            "TerminalNoOutgoingDecl",
            twins.leaves_a_terminal_state,
            terminal_absorption,
            "s0 --a--> s1; s1 --a--> s0; s1 is terminal | 1: s0 --a--> s1, 2: s1 --a--> s0",
        ),
        (
            "ChainConsistency",
            twins.stands_still,
            chain_consistency,
            "s0 --a--> s1 | 1: s0 --a--> s1, 2: s0 --a--> s1",
        ),
    ],
)
def test_a_twin_breaks_the_property_whose_promise_it_drops(
    dropped, engine, promise, counterexample
):
    """Of the smallest declaration that shows it the shortest history, which breaks nothing else."""
    open_door = dropped == "TerminalNoOutgoingDecl"
    config, entries = next(
        (config, entries)
        for config in declared(2, 2, absorbing=not open_door)
        for entries in bridge.produced(config, 3, engine)
        if not promise(config, History.of(entries))
    )
    story = f"{config} | {', '.join(map(str, entries))}"
    print(f"without {dropped}: {story}")
    assert story == counterexample
    assert broken(config, History.of(entries)) == [promise]
    assert bridge.admits(config) is not open_door


def test_the_engine_follows_no_way_out_of_a_terminal_state():
    """Not even one that a declaration has, which was never admitted."""
    made = [
        (config, entries)
        for config in declared(2, 2, absorbing=False)
        for entries in bridge.produced(config, 3)
    ]
    assert not all(bridge.admits(config) for config, _ in made)
    assert all(terminal_absorption(config, History.of(entries)) for config, entries in made)


@pytest.mark.parametrize(
    "engine", [twins.fires_the_undeclared, twins.stands_still, twins.asserts_for_the_caller]
)
def test_a_twin_engine_gives_an_answer_that_is_not_as_declared(engine):
    assert not all(
        as_declared(config, call)
        for config in declared(2, 1)
        for call in bridge.calls(config, 2, engine)
    )
