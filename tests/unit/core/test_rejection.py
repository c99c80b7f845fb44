"""Refusals: one root, a word each, and fields that survive a journey."""

import copy
import json
import pickle
from typing import Any

import pytest

import interlock
from interlock import (
    DefinitionChanged,
    EngineOwned,
    Fire,
    GuardError,
    GuardNotSatisfied,
    HookFailed,
    IdempotencyConflict,
    InvalidDeclaration,
    InvalidQuery,
    InvalidRequest,
    InvalidTransition,
    Nondeterministic,
    NotKnown,
    OutcomeUnknown,
    Rejected,
    StepLimit,
    StorageFailure,
    Terminal,
    VersionConflict,
)
from interlock.core.declaration import Defect
from interlock.store.store import Store
from tests.support.faulty import Faults, faulty_store
from tests.support.machines import BATCH, TOGGLE

WORDS = {
    InvalidDeclaration: "invalid-declaration",
    InvalidRequest: "invalid-request",
    NotKnown: "not-known",
    Terminal: "terminal",
    InvalidTransition: "invalid-transition",
    GuardNotSatisfied: "guard-not-satisfied",
    InvalidQuery: "invalid-query",
    VersionConflict: "version-conflict",
    IdempotencyConflict: "idempotency-conflict",
    EngineOwned: "engine-owned",
    GuardError: "guard-error",
    HookFailed: "hook-failed",
    Nondeterministic: "nondeterministic",
    StepLimit: "step-limit",
    DefinitionChanged: "definition-changed",
    StorageFailure: "storage-failure",
    OutcomeUnknown: "outcome-unknown",
}


@pytest.mark.parametrize("kind", WORDS)
def test_each_refusal_has_its_word(kind: type[Rejected]) -> None:
    assert kind.reason == WORDS[kind]
    assert kind("said").reason == WORDS[kind]
    assert issubclass(kind, Rejected)
    assert kind.__name__ in interlock.__all__


def test_no_leaf_was_forgotten() -> None:
    def leaves(kind: type[Rejected]) -> set[type[Rejected]]:
        below: set[type[Rejected]] = set()
        for one in kind.__subclasses__():
            if one.__module__ == "interlock.core.rejection":
                below |= leaves(one)
        return below or {kind}

    assert leaves(Rejected) == set(WORDS)


@pytest.mark.parametrize("kind", WORDS)
def test_a_refusal_survives_pickle_and_copy_with_its_fields(kind: type[Rejected]) -> None:
    refusal = kind(
        "said",
        instance_id="wf-1",
        index=3,
        argument="action",
        declared=["a"],
        defects=[Defect("unknown-state", ("states", 0), "m", None)],
        retryable=True,
    )
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        travelled = pickle.loads(pickle.dumps(refusal, protocol))
        assert type(travelled) is kind
        assert str(travelled) == "said"
        assert vars(travelled) == vars(refusal)
        assert travelled.reason == refusal.reason
    for copied in (copy.copy(refusal), copy.deepcopy(refusal)):
        assert type(copied) is kind
        assert vars(copied) == vars(refusal)


def provoked(store: Store) -> dict[type[Rejected], Rejected]:
    """Each refusal as a store really raises it."""
    id, ended = store.instantiate(BATCH), store.instantiate(BATCH)
    store.fire_many([Fire(ended, "begin-testing"), Fire(ended, "reject-batch")])
    store.fire(id, "begin-testing", idempotency_key="k")
    calls: list[Any] = [
        lambda: store.instantiate({**BATCH, "states": []}),
        lambda: store.fire(" ", "go"),
        lambda: store.fire("unknown", "go"),
        lambda: store.fire(ended, "go"),
        lambda: store.fire(id, "go"),
        lambda: store.fire(id, "release"),
        lambda: store.history(id, {"nope": 1}),
        lambda: store.fire(id, "reject-batch", expected_version=9),
        lambda: store.fire(id, "reject-batch", idempotency_key="k"),
        *provoking_an_engine(store),
    ]
    found = {}
    for call in calls:
        with pytest.raises(Rejected) as caught:
            call()
        found[type(caught.value)] = caught.value
    return found


ODD = """
machine: odd
version: 1
data: {qty: {type: integer, default: 1}, by: {type: integer, default: 0}}
initial: here
states:
  here:
    on:
      fail: {to: there, do: [fail]}
      divide: {to: there, when: "data.qty / data.by > 1"}
      go: {to: round}
      part:
        - {to: there, when: "data.qty > 0", name: one}
        - {to: end, when: "data.qty < 5", name: two}
  there: {on: {back: here}}
  round: {on: {again: round, stop: end}, on_enter: [again]}
  end: {final: true}
"""


def provoking_an_engine(store: Store) -> list[Any]:
    """Calls that an engine refuses, each in another way."""
    engine = interlock.Engine(store)

    @engine.hook("fail")
    def fail(tx: Any) -> None:
        raise RuntimeError("no")

    @engine.hook("again")
    def again(tx: Any) -> None:
        tx.fire("again")

    definition = interlock.loads(ODD, prove=False)
    order = engine.start(definition)
    changed = interlock.loads(ODD.replace("default: 1", "default: 2"), prove=False)
    return [
        lambda: store.fire(order.id, "fail"),
        lambda: order.send("fail"),
        lambda: order.send("divide"),
        lambda: order.send("go"),
        lambda: order.send("part"),
        lambda: engine.start(changed),
    ]


def test_real_refusals_survive_pickle_and_can_be_said_in_json(store: Store) -> None:
    refusals = provoked(store)
    assert set(refusals) == set(WORDS) - {StorageFailure, OutcomeUnknown}
    for kind, refusal in refusals.items():
        travelled = pickle.loads(pickle.dumps(refusal))
        assert str(travelled) == str(refusal)
        assert vars(travelled) == vars(refusal)
        said = json.loads(json.dumps(refusal.as_dict()))
        assert said["reason"] == WORDS[kind]
        assert said["message"] == str(refusal)
        assert travelled.as_dict() == refusal.as_dict()


def test_real_failures_of_storage_survive_pickle(store: Store) -> None:
    faults = Faults()
    with faulty_store(None, faults) as faulty:
        id = faulty.instantiate(TOGGLE)
        faults.on("INSERT")
        with pytest.raises(StorageFailure) as failed:
            faulty.fire(id, "go")
        faults.watch("COMMIT", lambda: faults.on("BEGIN"))
        faults.on("COMMIT")
        with pytest.raises(OutcomeUnknown) as unknown:
            faulty.fire(id, "go")
        faults.clear()
    for refusal in (failed.value, unknown.value):
        travelled = pickle.loads(pickle.dumps(refusal))
        assert travelled.as_dict() == refusal.as_dict()
        json.dumps(refusal.as_dict())
    assert pickle.loads(pickle.dumps(unknown.value)).transition_id
    assert pickle.loads(pickle.dumps(failed.value)).retryable is True


def test_messages_are_sentences_for_people(store: Store) -> None:
    """Lower case, no full stop, user text in backticks, and short whatever was given."""
    for refusal in provoked(store).values():
        said = str(refusal)
        assert said[0] == said[0].lower()
        assert not said.endswith(".")
        assert type(refusal).__name__ not in said
    id = store.instantiate(TOGGLE)
    huge = "x" * 1000
    for call in (
        lambda: store.fire(id, huge),
        lambda: store.fire(huge, "go"),
        lambda: store.history(id, {huge * 100: 1}),
        lambda: store.fire(id, "go", fired_at=huge * 100),
        lambda: store.instantiate({**TOGGLE, huge * 100: 1}),
        lambda: interlock.open(huge * 100),
    ):
        with pytest.raises(Rejected) as caught:
            call()
        assert len(str(caught.value)) < 1500, str(caught.value)[:200]


def test_a_place_in_a_list_is_told(store: Store) -> None:
    id = store.instantiate(TOGGLE)
    with pytest.raises(InvalidTransition) as caught:
        store.fire_many([Fire(id, "go"), Fire(id, "go"), Fire(id, "nope")])
    assert caught.value.index == 2
    assert caught.value.as_dict()["index"] == 2
    assert Rejected("x").index is None


def test_every_defect_of_a_declaration_travels(store: Store) -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        store.instantiate({"states": ["", "a", "a"], "transitions": [{}], "initial_state": 1})
    refusal = pickle.loads(pickle.dumps(caught.value))
    assert len(refusal.defects) == 7
    assert [defect["path"] for defect in refusal.as_dict()["defects"]] == [
        "",
        "states[0]",
        "states[2]",
        "initial_state",
        "transitions[0]",
        "transitions[0]",
        "transitions[0]",
    ]
    assert "7 defects" in str(refusal)
