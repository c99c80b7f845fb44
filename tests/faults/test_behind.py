"""A store that is behind: what it keeps in mind of instances is old, gone, or going.

The store decides on where it last saw an instance. Other programs move instances too, so that may
be wrong at any moment; no caller may ever notice.
"""

import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import Fire, InvalidTransition, Rejected, StorageFailure, Terminal, VersionConflict
from interlock.store import fire as fires
from interlock.store.attempt import prepare_fire
from interlock.store.standings import Standings
from interlock.store.store import Store
from tests.support import processes
from tests.support.faulty import Faults, faulty_store
from tests.support.inside import inside
from tests.support.machines import BATCH, TOGGLE
from tests.support.records import content
from tests.support.together import all_at_once, outcome_of


class Pair:
    """Two stores on one file: one looks, the other moves."""

    def __init__(self, path: Path) -> None:
        self.faults = Faults()
        self.here = faulty_store(path, self.faults)
        self.there = interlock.open(f"sqlite:///{path}")

    def toggle(self, moves: int = 1) -> str:
        """Begin an instance that both have seen, and that has moved on since."""
        id = self.here.instantiate(TOGGLE)
        self.here.fire(id, "go")
        for _ in range(moves):
            self.there.fire(id, "go")
        return id


@pytest.fixture
def pair(path: Path) -> Any:
    pair = Pair(path)
    yield pair
    pair.faults.clear()
    pair.here.close()
    pair.there.close()


def test_a_fire_that_is_valid_now_succeeds(pair: Pair) -> None:
    for moves in (1, 2, 3):
        id = pair.toggle(moves)
        assert pair.here.fire(id, "go") == ("on" if moves % 2 else "off")
        assert len(pair.here.history(id)) == moves + 2


def test_a_fire_that_was_valid_is_refused_for_what_is(pair: Pair) -> None:
    id = pair.here.instantiate(BATCH)
    pair.here.fire(id, "begin-testing")
    pair.there.fire(id, "reject-batch")
    with pytest.raises(Terminal) as caught:
        pair.here.fire(id, "release", guard_satisfied=True)
    assert caught.value.state == "rejected"


def test_a_fire_that_was_invalid_succeeds_if_it_is_valid_now(pair: Pair) -> None:
    id = pair.here.instantiate(BATCH)
    with pytest.raises(InvalidTransition):
        pair.here.fire(id, "reject-batch")
    pair.there.fire(id, "begin-testing")
    assert pair.here.fire(id, "reject-batch") == "rejected"


def test_a_version_that_is_behind_is_told_the_true_one(pair: Pair) -> None:
    id = pair.toggle(3)
    for expected in (1, 2, 3, 4, 6):
        with pytest.raises(VersionConflict) as caught:
            pair.here.fire(id, "go", expected_version=expected)
        assert caught.value.version == 5
    assert pair.here.fire(id, "go", expected_version=5) == "on"


def test_a_list_on_instances_some_of_which_moved(pair: Pair) -> None:
    ids = [pair.toggle(moves) for moves in (0, 1, 0, 2)]
    assert pair.here.fire_many([Fire(id, "go") for id in ids]) == ["off", "on", "off", "off"]
    moved = [pair.toggle(moves) for moves in (1, 0)]
    outcomes = pair.here.fire_each(
        [Fire(id, "go", expected_version=2) for id in moved] + [Fire(moved[1], "nope")]
    )
    assert [getattr(outcome, "reason", outcome) for outcome in outcomes] == [
        "version-conflict",
        "off",
        "invalid-transition",
    ]


def test_a_fault_while_catching_up_changes_nothing(pair: Pair) -> None:
    """Each statement of the second try fails in turn."""
    for number in range(1, 30):
        id = pair.toggle()
        before = content(inside(pair.there)._writer)
        raised, log = pair.faults.raised, pair.faults.log
        pair.faults.at(number)
        failing = len(log) + number - 1
        outcome = outcome_of(partial(pair.here.fire, id, "go", reason="r"))
        pair.faults.clear()
        if pair.faults.raised == raised:
            assert number > 5
            assert outcome == "on"
            return
        if log[failing].startswith("ROLLBACK"):  # of the first try: nobody's loss
            assert outcome == "on"
            continue
        assert isinstance(outcome, StorageFailure)
        assert content(inside(pair.there)._writer) == before
        assert pair.here.fire(id, "go") == "on"


@pytest.mark.parametrize("verb", ["fire", "fire_many", "fire_each"])
def test_a_lost_answer_while_catching_up(pair: Pair, verb: str) -> None:
    id = pair.toggle()
    pair.faults.on("COMMIT", after=True)
    if verb == "fire":
        assert pair.here.fire(id, "go") == "on"
    else:
        assert getattr(pair.here, verb)([Fire(id, "go")]) == ["on"]
    assert len(pair.here.history(id)) == 3
    assert pair.here.fire(id, "go") == "off"


def test_after_an_unknown_outcome_the_next_call_knows(pair: Pair) -> None:
    """The commit happened, nobody could say so: the store must not decide on what was before."""
    id = pair.toggle(0)
    faults = pair.faults
    faults.watch("COMMIT", lambda: faults.on("BEGIN"))
    faults.on("COMMIT", after=True)
    with pytest.raises(interlock.OutcomeUnknown):
        pair.here.fire(id, "go")
    faults.clear()
    assert pair.here.fire(id, "go") == "on"
    assert [entry.to_state for entry in pair.here.history(id)] == ["on", "off", "on"]


def test_what_is_kept_is_bounded_and_forgetting_is_harmless(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.store.standings.KEPT_MAX", 5)
    with interlock.open(f"sqlite:///{path}") as store:
        ids = [store.instantiate(TOGGLE) for _ in range(20)]
        for round_ in range(3):
            for id in ids:
                assert store.fire(id, "go") == ("on", "off")[round_ % 2]
            states = store.fire_many([Fire(id, "go") for id in ids])
            assert set(states) == {("off", "on")[round_ % 2]}
            store.fire_many([Fire(id, "go") for id in ids])
        assert len(store._writer._standings.kept) <= 5
        assert store.verify().ok


def test_keeping_never_goes_back() -> None:
    standings = Standings()
    with interlock.open("sqlite://") as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        old = dict(store._writer._standings.kept)
        store.fire(id, "go")
        new = dict(store._writer._standings.kept)
    standings.keep(new)
    standings.keep(old)
    assert standings.kept == new


class Vanishing(dict):
    """What another thread forgets between two looks."""

    def __init__(self, values: Any, looks: int) -> None:
        super().__init__(values)
        self.looks = looks

    def _look(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            self.clear()

    def __contains__(self, key: object) -> bool:
        self._look()
        return super().__contains__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._look()
        return super().get(key, default)


@pytest.mark.parametrize("looks", range(6))
def test_what_vanishes_while_it_is_used_is_read(store: Store, looks: int) -> None:
    """A standing may be forgotten by another thread at any moment of a plan."""
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    known = Vanishing(store._writer._standings.kept, looks)
    attempt = prepare_fire(store._new_id(), store._limits, id, "go")
    written = inside(store).write(fires.fire(store._context, [attempt], known))
    assert [*written.outcomes] == ["off"]
    assert len(store.history(id)) == 2


def test_two_stores_and_many_threads_on_few_instances(path: Path) -> None:
    """Both are behind all the time; every valid fire succeeds, every entry is in order."""
    stores = [interlock.open(f"sqlite:///{path}") for _ in range(2)]
    ids = [stores[0].instantiate(TOGGLE) for _ in range(3)]

    def work(number: int) -> list[Any]:
        store = stores[number % 2]
        return [outcome_of(partial(store.fire, ids[n % 3], "go")) for n in range(12)]

    results = all_at_once([partial(work, n) for n in range(8)])
    outcomes = Counter(str(outcome) for outcomes in results for outcome in outcomes)
    assert outcomes == {"on": 48, "off": 48}
    for id in ids:
        numbers = [entry.sequence_number for entry in stores[0].history(id)]
        assert numbers == list(range(1, 33))
    assert stores[1].verify().ok
    for store in stores:
        store.close()


def test_two_stores_with_expectations_never_both_win(path: Path) -> None:
    stores = [interlock.open(f"sqlite:///{path}") for _ in range(2)]
    id = stores[0].instantiate(TOGGLE)
    won = Counter[int]()
    lock = threading.Lock()

    def work(number: int) -> None:
        store = stores[number % 2]
        for _ in range(15):
            version = store.snapshot(id).version
            outcome = outcome_of(partial(store.fire, id, "go", expected_version=version))
            if not isinstance(outcome, Rejected):
                with lock:
                    won[version] += 1
            else:
                assert isinstance(outcome, VersionConflict)
                assert outcome.version is not None
                assert outcome.version > version

    all_at_once([partial(work, n) for n in range(6)])
    assert set(won.values()) == {1}
    assert sorted(won) == list(range(1, len(won) + 1))
    for store in stores:
        assert len(store.history(id)) == len(won)
        store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_after_a_store_that_could_not_be_opened(path: Path) -> None:
    """Something half-made is no reason to let a child use what its parent has open."""
    code = f"""
import os, sys
import interlock
stores = [interlock.open("sqlite:///" + sys.argv[1]) for _ in range(8)]
id = stores[0].instantiate({TOGGLE!r})
failures = []
for number in range(40):
    try:
        interlock.open("sqlite:///" + os.path.dirname(sys.argv[1]))
    except interlock.StorageFailure as failure:
        failures.append(failure)
child = os.fork()
if child == 0:
    for store in stores:
        try:
            store.fire(id, "go")
        except interlock.StorageFailure:
            continue
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""
    assert processes.run(code, path) == "0\n"
