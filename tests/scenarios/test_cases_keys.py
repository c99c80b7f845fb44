"""Cases L (idempotency and duplicate starts), for births and fires of the bare machine.

Later layers: L04's bad row that is quarantined (workers), L05's crash and recovery of the workflow
under the id, L07's reruns (successor runs); their halves that concern the bare machine are here.
"""

import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import interlock
from interlock import Birth, Fire, IdempotencyConflict, InvalidRequest, Rejected
from interlock.store.store import Store
from tests.support.machines import BATCH, MACHINES, TOGGLE
from tests.support.together import all_at_once


def test_L01_key_ignored(store: Store) -> None:
    """Three times with one key, one after another and from three threads at once."""
    answers = [store.instantiate(TOGGLE, idempotency_key="one") for _ in range(3)]
    answers_at_once = all_at_once(
        [lambda: store.instantiate(TOGGLE, idempotency_key="two") for _ in range(3)]
    )
    assert len(set(answers)) == 1
    assert len(set(answers_at_once)) == 1
    assert {row.id for row in store.instances()} == {answers[0], answers_at_once[0]}

    id = answers[0]
    fired = [store.fire(id, "go", idempotency_key="f") for _ in range(3)]
    at_once = all_at_once([lambda: store.fire(id, "go", idempotency_key="g") for _ in range(3)])
    assert fired == ["on"] * 3
    assert at_once == ["off"] * 3
    assert len(store.history(id)) == 2


def test_L01_key_ignored_by_three_programs(path: Path) -> None:
    stores = [interlock.open(f"sqlite:///{path}") for _ in range(3)]
    answers = all_at_once(
        [partial(store.instantiate, TOGGLE, idempotency_key="k") for store in stores]
    )
    assert len(set(answers)) == 1
    (id,) = set(answers)
    assert (
        all_at_once([partial(store.fire, id, "go", idempotency_key="k") for store in stores])
        == ["on"] * 3
    )
    assert len(stores[0].history(id)) == 1
    for store in stores:
        store.close()


def test_L01_the_first_answer_is_kept_when_much_has_happened_since(store: Store) -> None:
    id = store.instantiate(TOGGLE)
    assert store.fire(id, "go", idempotency_key="k") == "on"
    for _ in range(5):
        store.fire(id, "go")
    assert store.fire(id, "go", idempotency_key="k") == "on"
    assert store.fire(id, "go", idempotency_key="k", expected_version=None) == "on"
    assert store.current(id) == "off"
    assert len(store.history(id)) == 6


def test_L01_only_successes_are_remembered(store: Store) -> None:
    id = store.instantiate(BATCH)
    with pytest.raises(Rejected):
        store.fire(id, "release", guard_satisfied=True, idempotency_key="k")
    assert store.fire(id, "begin-testing", idempotency_key="k") == "testing"


def test_L01_a_key_of_a_fire_is_its_instances_own(store: Store) -> None:
    one, two = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
    assert store.fire(one, "go", idempotency_key="k") == "on"
    assert store.fire(two, "go", idempotency_key="k") == "on"
    assert store.instantiate(TOGGLE, idempotency_key="k") not in (one, two)


def test_L02_subset_counts_as_the_same(store: Store) -> None:
    """What is asked is compared whole; the order of its keys says nothing."""
    large, small = {"id": 1, "extra": "x"}, {"id": 1}
    for first, second, key in ((large, small, "a"), (small, large, "b")):
        store.instantiate(TOGGLE, instance_metadata=first, idempotency_key=key)
        with pytest.raises(IdempotencyConflict):
            store.instantiate(TOGGLE, instance_metadata=second, idempotency_key=key)
    turned = dict(reversed(large.items()))
    again = store.instantiate(TOGGLE, instance_metadata=turned, idempotency_key="a")
    assert store.snapshot(again).metadata == large
    machine = dict(reversed(TOGGLE.items()))
    assert store.instantiate(machine, instance_metadata=large, idempotency_key="a") == again
    assert len(store.instances()) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"action": "nope"},
        {"actor_ref": "bob"},
        {"actor_ref": None},
        {"guard_satisfied": True},
        {"reason": "why"},
        {"correlation_id": "c"},
        {"causation_id": "c"},
        {"worker_id": "w"},
        {"expected_version": 1},
        {"expected_version": 2},
        {"fired_at": "2020-01-01T00:00:00Z"},
    ],
    ids=str,
)
def test_L02_any_difference_of_a_fire_is_another_request(
    store: Store, other: dict[str, object]
) -> None:
    id = store.instantiate(TOGGLE)
    asked = {"action": "go", "actor_ref": "ann"}
    store.fire(id, idempotency_key="k", **asked)  # type: ignore[arg-type]
    with pytest.raises(IdempotencyConflict) as caught:
        store.fire(id, idempotency_key="k", **{**asked, **other})  # type: ignore[arg-type]
    assert caught.value.idempotency_key == "k"
    assert caught.value.instance_id == id
    assert len(store.history(id)) == 1


def test_a_payload_that_was_destroyed_leaves_nothing_to_try_a_guess_on(path: Path) -> None:
    """Not even the digest of its request, which is of everything else; the key still answers."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE, instance_metadata={"name": "Eve"}, idempotency_key="b")
        assert store.fire(id, "go", reason="Eve is ill", idempotency_key="k") == "on"
        with pytest.raises(IdempotencyConflict):
            store.fire(id, "go", reason="Eve is well", idempotency_key="k")
        other = store.instantiate(TOGGLE, instance_metadata={"name": "Bob"}, idempotency_key="c")
        store.fire(other, "go", reason="Bob is ill", idempotency_key="k")
        with closing(sqlite3.connect(path)) as connection, connection:
            for table in ("instances", "history"):
                select = f"SELECT DISTINCT request_digest FROM {table}"
                assert len(connection.execute(select).fetchall()) == 1
            connection.execute("UPDATE payloads SET salt = NULL, content = NULL")
        assert store.fire(id, "go", reason="Eve is well", idempotency_key="k") == "on"
        with pytest.raises(IdempotencyConflict):
            store.fire(id, "go", idempotency_key="k")
        assert (
            store.instantiate(TOGGLE, instance_metadata={"name": "Al"}, idempotency_key="b") == id
        )
        assert store.verify().ok


def test_L02_two_spellings_of_one_request_are_one(store: Store) -> None:
    id = store.instantiate(TOGGLE, instantiated_at="2020-01-01T00:00:00Z")
    for time in ("2020-01-01T12:00:00Z", "2020-01-01T14:00:00+02:00", "2020-01-01T12:00Z"):
        for asserted in (None, False, "yes"):
            store.fire(id, "go", None, asserted, time, idempotency_key="k")  # type: ignore[arg-type]
    assert len(store.history(id)) == 1


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u2003"])
def test_L04_empty_id(store: Store, blank: str) -> None:
    """Refused at the door, wherever an identity or a reference is given."""
    id = store.instantiate(TOGGLE)
    for call in (
        lambda: store.instantiate(TOGGLE, idempotency_key=blank),
        lambda: store.instantiate(TOGGLE, subject_ref=blank),
        lambda: store.instantiate(TOGGLE, actor_ref=blank),
        lambda: store.fire(id, "go", idempotency_key=blank),
        lambda: store.fire(blank, "go"),
        lambda: store.fire_many([Fire(id, "go"), Fire(blank, "go")]),
        lambda: store.current(blank),
        lambda: store.history(blank),
        lambda: store.snapshot(blank),
        lambda: store.read_declaration(blank),
        lambda: store.verify(blank),
        lambda: store.instances(subject_ref=blank),
        lambda: store.instances(after=blank),
    ):
        with pytest.raises(InvalidRequest):
            call()
    (outcome,) = store.instantiate_each(TOGGLE, [Birth(idempotency_key=blank)])
    assert isinstance(outcome, InvalidRequest)
    assert len(store.instances()) == 1
    assert store.history(id) == []


def test_L05_same_id_other_workflow(path: Path) -> None:
    """One key, another declaration: a conflict in clear words; the first lives on."""
    with interlock.open(f"sqlite:///{path}") as store:
        first = store.instantiate(BATCH, idempotency_key="7")
        with pytest.raises(IdempotencyConflict, match="`7` was used before") as caught:
            store.instantiate(TOGGLE, idempotency_key="7")
        assert caught.value.reason == "idempotency-conflict"
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.instantiate(BATCH, idempotency_key="7") == first
        store.fire_many([Fire(first, "begin-testing"), Fire(first, "reject-batch")])
        assert store.current(first) == "rejected"
        assert len(store.instances()) == 1


def test_L07_deliberate_reruns_swallowed(store: Store) -> None:
    """Two keys are two instances, however equal the rest; no key is one each time."""
    keyed = {store.instantiate(BATCH, idempotency_key=f"rerun-{n}") for n in (1, 2)}
    bare = {store.instantiate(BATCH) for _ in range(2)}
    assert len(keyed | bare) == 4


def test_L_keys_of_a_list_answer_for_the_whole(store: Store) -> None:
    """All known: the first answers; some known: a conflict, and nothing is written."""
    id, other = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
    fires = [Fire(id, "go", idempotency_key=f"k{n}") for n in range(3)]
    assert store.fire_many(fires) == ["on", "off", "on"]
    assert store.fire_many(fires) == ["on", "off", "on"]
    assert store.fire_many(fires[1:]) == ["off", "on"]
    assert len(store.history(id)) == 3
    for fresh in (Fire(other, "go", idempotency_key="new"), Fire(other, "go")):
        for mixed in ([*fires, fresh], [fresh, *fires], [fires[0], fresh, fires[1]]):
            with pytest.raises(IdempotencyConflict) as caught:
                store.fire_many(mixed)
            assert caught.value.index == mixed.index(fresh)
    with pytest.raises(IdempotencyConflict):
        store.fire_many([fires[0], fires[1]._replace(actor_ref="bob")])
    assert store.history(other) == []
    assert len(store.history(id)) == 3


def test_L_one_key_twice_in_a_list_is_one_fire(store: Store) -> None:
    id = store.instantiate(TOGGLE)
    assert store.fire_many([Fire(id, "go", idempotency_key="k")] * 3) == ["on"] * 3
    assert len(store.history(id)) == 1
    with pytest.raises(IdempotencyConflict) as caught:
        store.fire_many(
            [Fire(id, "go", idempotency_key="l"), Fire(id, "go", "ann", idempotency_key="l")]
        )
    assert caught.value.index == 1
    assert len(store.history(id)) == 1


def test_L_births_of_a_list_keep_their_keys(store: Store) -> None:
    births = [Birth(idempotency_key="a"), Birth(idempotency_key="b"), Birth(idempotency_key="a")]
    first = store.instantiate_each(TOGGLE, births)
    assert first[0] == first[2] != first[1]
    assert store.instantiate_each(TOGGLE, births) == first
    outcomes = store.instantiate_each(BATCH, births)
    assert all(isinstance(outcome, IdempotencyConflict) for outcome in outcomes)
    assert len(store.instances()) == 2


def test_L_a_key_is_bytes_not_a_pattern(store: Store) -> None:
    id = store.instantiate(MACHINES["toggle"])
    keys = ["k", "K", "k ", "%", "_", "caf\u00e9", "cafe\u0301", "'", "\u00e9" * 512]
    for key in keys:
        store.fire(id, "go", idempotency_key=key)
    assert len(store.history(id)) == len(keys)
    assert Counter(store.fire(id, "go", idempotency_key=key) for key in keys) == {
        "on": 5,
        "off": 4,
    }
    assert len(store.history(id)) == len(keys)
