"""Cases D (core machine and concurrency) and A17, as far as they concern the bare machine.

Later layers: D07 (a follower of a global position: the outbox and its relay), D12's two waits
answered over HTTP (workflows, server), the hooks of D02.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import (
    Fire,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    Rejected,
    Terminal,
    VersionConflict,
)
from interlock.store.store import Store
from tests.support.machines import BATCH, COMPOSED, DECOMPOSED, TOGGLE, arrow, declare
from tests.support.together import all_at_once

FORK = declare(
    ["s", "archived", "active"],
    [arrow("s", "archive", "archived"), arrow("s", "activate", "active")],
)


def words(outcomes: list[Any]) -> Counter[str]:
    return Counter(
        outcome.reason if isinstance(outcome, Rejected) else "done" for outcome in outcomes
    )


def test_A17_names_that_look_alike(store: Store) -> None:
    """The bare machine keeps both byte for byte, and one never stands for the other."""
    machine = declare(
        [COMPOSED, DECOMPOSED, "open"],
        [
            arrow("open", "pay", COMPOSED),
            arrow("open", "pay ", DECOMPOSED),
            arrow(COMPOSED, "pay ", "open"),
            arrow(DECOMPOSED, "pay", "open"),
        ],
        "open",
    )
    one, two = store.instantiate(machine), store.instantiate(machine)
    assert store.fire(one, "pay") == COMPOSED
    assert store.fire(two, "pay ") == DECOMPOSED
    for id, action in ((one, "pay"), (two, "pay "), (one, "pay\u00a0"), (two, " pay")):
        with pytest.raises(InvalidTransition):
            store.fire(id, action)
    assert store.current(one).encode() == COMPOSED.encode()
    assert store.current(two).encode() == DECOMPOSED.encode()
    assert repr(store.read_declaration(one)) == repr(machine)
    assert [row.id for row in store.instances(state=COMPOSED)] == [one]
    assert [row.id for row in store.instances(state=DECOMPOSED)] == [two]
    assert len(store.history(one, {"to_state": COMPOSED})) == 1
    assert store.history(one, {"to_state": DECOMPOSED}) == []
    assert store.history(two, {"action": "pay"}) == []


@pytest.mark.parametrize("expecting", [True, False])
def test_D01_source_state_checked_before_the_lock(path: Path, expecting: bool) -> None:
    """Two clients that both saw `s`: one success, the other is told; one entry, from `s`."""
    url = f"sqlite:///{path}"
    with interlock.open(url) as one, interlock.open(url) as two:
        for _ in range(20):
            id = one.instantiate(FORK)
            assert one.current(id) == two.current(id) == "s"
            expected = 1 if expecting else None
            outcomes = all_at_once(
                [
                    partial(one.fire, id, "archive", expected_version=expected),
                    partial(two.fire, id, "activate", expected_version=expected),
                ]
            )
            told = "version-conflict" if expecting else "invalid-transition"
            assert words(outcomes) == {"done": 1, told: 1}
            (entry,) = two.history(id)
            assert entry.from_state == "s"
            assert entry.to_state in outcomes
            assert one.current(id) == entry.to_state


@pytest.mark.parametrize("stores", [1, 5])
def test_D02_check_and_write_are_two_steps(path: Path, stores: int) -> None:
    """Fifty threads that all expect version 1, on one store and on five on one file."""
    opened = [interlock.open(f"sqlite:///{path}") for _ in range(stores)]
    id = opened[0].instantiate(TOGGLE)
    outcomes = all_at_once(
        [partial(opened[place % stores].fire, id, "go", expected_version=1) for place in range(50)]
    )
    assert words(outcomes) == {"done": 1, "version-conflict": 49}
    assert all(outcome.version == 2 for outcome in outcomes if isinstance(outcome, VersionConflict))
    for store in opened:
        assert len(store.history(id)) == 1
        assert store.snapshot(id).version == 2
        store.close()


def test_D02_without_an_expectation_every_fire_that_is_valid_in_turn_succeeds(
    store: Store,
) -> None:
    id = store.instantiate(TOGGLE)
    outcomes = all_at_once([lambda: store.fire(id, "go") for _ in range(50)])
    assert Counter(outcomes) == {"on": 25, "off": 25}
    history = store.history(id)
    assert [entry.sequence_number for entry in history] == list(range(1, 51))


def test_D05_unknown_action_looks_like_success(store: Store) -> None:
    id, ended = store.instantiate(BATCH), store.instantiate(BATCH)
    store.fire_many([Fire(ended, "begin-testing"), Fire(ended, "reject-batch")])
    for where, action, kind in (
        (id, "nope", InvalidTransition),
        (ended, "nope", Terminal),
        ("unknown", "nope", NotKnown),
        (id, " ", InvalidRequest),
        (ended, "", InvalidRequest),
        ("unknown", " ", InvalidRequest),
    ):
        with pytest.raises(kind):
            store.fire(where, action)
    assert (store.current(id), store.current(ended)) == ("sampled", "rejected")
    assert (len(store.history(id)), len(store.history(ended))) == (0, 2)


def test_D09_order_taken_from_equal_or_backward_times(path: Path) -> None:
    """Three fires in one microsecond, then one two seconds earlier: numbers order them."""
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    times = [now, now, now, now - timedelta(seconds=2)]
    born = now - timedelta(hours=1)
    said = [born]
    with interlock.open(f"sqlite:///{path}", clock=lambda: said[-1]) as store:
        id = store.instantiate(TOGGLE)
        for moment in times:
            said.append(moment)
            store.fire(id, "go")
        said.append(now)
        given = store.instantiate(TOGGLE, instantiated_at=born)
        for time in times:
            store.fire(given, "go", fired_at=time)
    with interlock.open(f"sqlite:///{path}") as store:
        for instance in (id, given):
            history = store.history(instance)
            assert [entry.sequence_number for entry in history] == [1, 2, 3, 4]
            assert [entry.fired_at for entry in history] == times
            assert [entry.to_state for entry in history] == ["on", "off", "on", "off"]
            assert store.current(instance) == "off"
            window = {"after": now, "before": now}
            found = store.history(instance, {"fired_at": window})
            assert [entry.sequence_number for entry in found] == [1, 2, 3]


def test_D11_birth_source_state_and_reason_not_recorded(store: Store) -> None:
    machine = declare(
        ["new", "paid", "waived", "shipped"],
        [
            arrow("new", "pay", "paid"),
            arrow("new", "waive", "waived"),
            arrow("paid", "ship", "shipped"),
            arrow("waived", "ship", "shipped"),
        ],
    )
    before = datetime.now(UTC)
    id = store.instantiate(machine, "clerk", "order-7", {"channel": "web"})
    store.fire(id, "waive", "manager", reason="goodwill", correlation_id="c-1")
    store.fire(id, "ship", reason="\u00fcber Nacht", causation_id="e-9", worker_id="w-1")
    now = store.snapshot(id)
    assert now.actor_ref == "clerk"
    assert now.subject_ref == "order-7"
    assert now.metadata == {"channel": "web"}
    assert before <= now.instantiated_at <= datetime.now(UTC)
    first, second = store.history(id)
    assert (first.from_state, first.to_state, first.reason) == ("new", "waived", "goodwill")
    assert (second.from_state, second.to_state, second.reason) == (
        "waived",
        "shipped",
        "\u00fcber Nacht",
    )
    assert (first.actor_ref, second.actor_ref) == ("manager", None)
    assert (first.correlation_id, second.causation_id, second.worker_id) == ("c-1", "e-9", "w-1")


def test_D12_a_correct_call_fails_because_the_engine_is_busy(path: Path) -> None:
    """Many callers, several stores on one file, few instances: no valid call is turned away."""
    stores = [interlock.open(f"sqlite:///{path}") for _ in range(3)]
    ids = [stores[0].instantiate(TOGGLE) for _ in range(4)]
    outcomes = all_at_once(
        [partial(stores[place % 3].fire, ids[place % 4], "go") for place in range(48)]
    )
    assert words(outcomes) == {"done": 48}
    for store in stores:
        for id in ids:
            assert len(store.history(id)) == 12
        store.close()
