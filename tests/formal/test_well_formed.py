"""The door refuses a declaration exactly when it is not well formed."""

from collections import Counter
from itertools import product
from typing import Any

from interlock.core.declaration import check_declaration
from tests.formal.well_formed import (
    WELL_FORMED,
    raw_declarations,
    raw_transitions,
    states_not_empty,
)


def test_the_door_refuses_exactly_the_declarations_that_are_not_well_formed():
    """Each check refuses something alone but the first: without states, none is initial either."""
    single = raw_transitions(("s0", "s1", " "), ("a", ""), (None, "g", "", "\t"))
    double = raw_transitions(("s0", "s1"), ("a", "b"), ())
    tried, alone = Counter[str](), Counter[Any]()
    for value in (
        *raw_declarations(2, 2, [(), *((move,) for move in single)]),
        *raw_declarations(2, 1, [*product(double, repeat=2)]),
    ):
        faults = [check for check in WELL_FORMED if not check(value)]
        defects = check_declaration(value)
        assert bool(defects) == bool(faults), (value, defects, faults)
        tried.update(all=1, admitted=not faults)
        alone.update(faults if len(faults) == 1 else [])
    assert {*WELL_FORMED} - {*alone} == {states_not_empty}
    assert tried == {"all": 56121, "admitted": 316}
