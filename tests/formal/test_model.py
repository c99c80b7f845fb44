"""The model itself: its properties can fail, and its enumerators leave nothing out."""

from collections import Counter
from itertools import compress, product

import pytest

from tests.formal.model import (
    TEN,
    Config,
    History,
    Line,
    OfHistory,
    OfLine,
    Trans,
    at_most_one_successor,
    broken,
    lawful,
    no_branching,
)
from tests.formal.scope import candidates, configs, declared, histories, renamings, walks


@pytest.mark.parametrize(
    ("states", "actions", "labelled"),
    [
        (1, 2, 3**2),
        (2, 1, 5**2 + 5),
        (2, 2, 5**4 + 5**2),
        (3, 1, 7**3 + 2 * 7**2 + 7),
        pytest.param(3, 2, 7**6 + 2 * 7**4 + 7**2, marks=pytest.mark.slow),
    ],
)
def test_the_enumeration_leaves_out_renamings_and_nothing_else(states, actions, labelled):
    """A state and an action lead nowhere or to any state, guarded or not; from a terminal, nowhere.

    So many declarations there are with names, and each is a renaming of exactly one that is listed.
    """
    forms = [renamings(config, actions) for config in configs(states, actions)]
    assert sum(map(len, forms)) == len(set().union(*forms)) == labelled


def test_walks_are_exactly_the_histories_that_keep_the_properties():
    entries = candidates(2, 1, range(4), (None, 0, 1))
    for config in declared(2, 1):
        kept = {history for history in histories(entries, 2) if lawful(config, history)}
        assert kept == {*walks(config, 2)}, str(config)


def test_each_property_can_fail_and_all_but_two_can_fail_alone():
    """Over every relation of the genesis and two entries, not only those that numbers make.

    The two follow from the others, as they do in the reference model.
    """
    step, loop, other = Trans("s0", "a", "s1"), Trans("s1", "a", "s1"), Trans("s0", "a", "s0")
    declarations = [
        Config(states=("s0", "s1"), transitions=transitions, terminal=terminal)
        for transitions in [(step, loop), (step, loop, other)]
        for terminal in [frozenset[str](), frozenset({"s1"})]
    ]
    pairs = [(x, y) for x in range(3) for y in range(3)]
    lines = [
        Line(range(3), frozenset(compress(pairs, chosen)))
        for chosen in product([False, True], repeat=len(pairs))
    ]
    entries = product(candidates(2, 1, [1], [None]), repeat=2)
    views = [History(*view) for view in product(entries, lines)]
    failed: Counter[OfLine | OfHistory] = Counter()
    alone: Counter[OfLine | OfHistory] = Counter()
    for config, history in product(declarations, views):
        faults = broken(config, history)
        failed.update(faults)
        alone.update(faults if len(faults) == 1 else [])
    assert {*failed} == {*TEN}
    assert {*TEN} - {*alone} == {at_most_one_successor, no_branching}
