"""The decision about one fire: what it gives, and which refusal comes first."""

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from itertools import combinations
from typing import Any

import pytest

import interlock
from interlock import (
    Fire,
    GuardNotSatisfied,
    IdempotencyConflict,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    Rejected,
    StorageFailure,
    Terminal,
    VersionConflict,
)
from interlock.core.machine import Request, Snapshot, compile_machine, decide
from interlock.core.text import Limits
from interlock.store.store import Store
from tests.support.faulty import Faults, faulty_store
from tests.support.machines import BATCH, MACHINES, TOGGLE

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BEGUN = NOW - timedelta(hours=1)
TICK = timedelta(microseconds=1)
MACHINE = compile_machine(BATCH)
SAMPLED = Snapshot("wf-1", "sampled", 1, BEGUN)
TESTING = Snapshot("wf-1", "testing", 2, BEGUN)
RELEASED = Snapshot("wf-1", "released", 3, BEGUN)


def decided(snapshot: Snapshot, action: str, **more: Any) -> Any:
    return decide(MACHINE, snapshot, Request(action, **more), now=NOW, new_id="t-1")


def test_a_decision_is_the_entry_and_where_it_leads() -> None:
    decision = decided(
        SAMPLED,
        "begin-testing",
        actor_ref="ann",
        reason="why",
        correlation_id="c",
        causation_id="d",
        worker_id="w",
    )
    assert decision.entry == interlock.Entry(
        "t-1", 1, "sampled", "testing", "begin-testing", "ann", NOW, None, "why", "c", "d", "w"
    )
    assert decision.entry.version == 2
    assert decision.after == Snapshot("wf-1", "testing", 2, BEGUN)


def test_equal_inputs_give_equal_decisions() -> None:
    assert decided(TESTING, "reject-batch") == decided(TESTING, "reject-batch")


def test_what_was_not_supplied_is_absent() -> None:
    entry = decided(SAMPLED, "begin-testing").entry
    assert entry[5] is None
    assert entry[7:] == (None,) * 5
    assert set(entry.as_dict()) == {
        "transition_id",
        "sequence_number",
        "from_state",
        "to_state",
        "action",
        "fired_at",
    }


# Guards


@pytest.mark.parametrize(
    "asserted",
    [None, False, 1, 1.0, "true", "True", "yes", [True], {"ok": True}, b"1", 0, "", []],
    ids=repr,
)
def test_only_true_asserts_a_guard(asserted: Any) -> None:
    with pytest.raises(GuardNotSatisfied) as caught:
        decided(TESTING, "release", guard_satisfied=asserted)
    assert caught.value.guard == "QP-sign-off"
    assert caught.value.state == "testing"
    assert caught.value.action == "release"
    assert caught.value.instance_id == "wf-1"


def test_an_asserted_guard_is_recorded() -> None:
    assert decided(TESTING, "release", guard_satisfied=True).entry.guard_satisfied is True


@pytest.mark.parametrize("asserted", [None, False, True, 1, "true"], ids=repr)
def test_without_a_guard_the_assertion_is_ignored_and_not_recorded(asserted: Any) -> None:
    decision = decided(TESTING, "reject-batch", guard_satisfied=asserted)
    assert decision.entry.guard_satisfied is None


def test_a_null_guard_is_none() -> None:
    machine = compile_machine(MACHINES["null-guard"])
    snapshot = Snapshot("i", "a", 1, BEGUN)
    entry, _ = decide(machine, snapshot, Request("go"), now=NOW, new_id="t")
    assert entry.guard_satisfied is None


# Times


def test_the_engines_stamp_is_its_clock() -> None:
    assert decided(SAMPLED, "begin-testing").entry.fired_at == NOW


def test_the_engines_stamp_is_never_before_the_birth() -> None:
    """DESIGN 4.6: a clock that steps back."""
    newborn = SAMPLED._replace(instantiated_at=NOW + timedelta(hours=3))
    entry, after = decided(newborn, "begin-testing")
    assert entry.fired_at == NOW + timedelta(hours=3)
    assert after.instantiated_at == NOW + timedelta(hours=3)


@pytest.mark.parametrize("moment", [BEGUN, BEGUN + TICK, NOW - TICK, NOW])
def test_a_given_time_within_bounds_is_recorded(moment: datetime) -> None:
    assert decided(SAMPLED, "begin-testing", fired_at=moment).entry.fired_at == moment
    other = moment.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    for given in (other, other.isoformat(), moment.isoformat()):
        entry = decided(SAMPLED, "begin-testing", fired_at=given).entry
        assert entry.fired_at == moment
        assert entry.fired_at.tzinfo is UTC


@pytest.mark.parametrize(
    "moment",
    [
        BEGUN - TICK,
        NOW + TICK,
        NOW.replace(tzinfo=None),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        "2026-05-01T11:30:00",
        "2026-05-01",
        "soon",
        "",
        0,
        1.0,
        True,
        NOW.date(),
        NOW.timetz(),
        b"2026-05-01T11:30:00Z",
        [NOW],
    ],
    ids=str,
)
def test_a_given_time_that_will_not_do(moment: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decided(SAMPLED, "begin-testing", fired_at=moment)
    assert caught.value.argument == "fired_at"


# References


REFERENCES = ["actor_ref", "reason", "correlation_id", "causation_id", "worker_id"]


@pytest.mark.parametrize("argument", REFERENCES)
@pytest.mark.parametrize("value", ["", " ", "\n\t", "a\0", "\ud800", 0, False, 1, b"x", ["x"], {}])
def test_a_reference_that_is_supplied_is_text(argument: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decided(SAMPLED, "begin-testing", **{argument: value})
    assert caught.value.argument == argument


@pytest.mark.parametrize("argument", REFERENCES)
def test_references_have_a_size(argument: str) -> None:
    most = 65_536 if argument == "reason" else 1024
    for text in ("x" * most, "\u00e9" * (most // 2)):
        entry = decided(SAMPLED, "begin-testing", **{argument: text}).entry
        assert getattr(entry, argument) == text
        with pytest.raises(InvalidRequest, match="bytes"):
            decided(SAMPLED, "begin-testing", **{argument: text + "x"})
    small = Limits(reference_bytes=3, reason_bytes=3)
    request = Request("begin-testing", **{argument: "four"})  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest):
        decide(MACHINE, SAMPLED, request, now=NOW, new_id="t", limits=small)


@pytest.mark.parametrize("argument", REFERENCES)
def test_a_reference_of_another_class_is_recorded_as_its_text(argument: str) -> None:
    class Role(StrEnum):
        QP = "qualified person"

    entry = decided(SAMPLED, "begin-testing", **{argument: Role.QP}).entry
    assert getattr(entry, argument) == "qualified person"
    assert type(getattr(entry, argument)) is str


def test_references_are_kept_byte_for_byte() -> None:
    for text in (" ann ", "cafe\u0301", "a\u00a0", "\U0001f600", "'; --", "\x01"):
        assert decided(SAMPLED, "begin-testing", actor_ref=text).entry.actor_ref == text


# Refusals tell what was tried


def test_an_undeclared_action() -> None:
    with pytest.raises(InvalidTransition) as caught:
        decided(TESTING, "begin-testing")
    refusal = caught.value
    assert (refusal.instance_id, refusal.state, refusal.action) == (
        "wf-1",
        "testing",
        "begin-testing",
    )
    assert refusal.declared == ["release", "reject-batch"]
    assert "`release`" in str(refusal)


def test_a_terminal_state() -> None:
    for action in ("begin-testing", "release", "nope"):
        with pytest.raises(Terminal) as caught:
            decided(RELEASED, action, guard_satisfied=True)
        assert (caught.value.state, caught.value.action) == ("released", action)


def test_a_state_without_a_way_out_that_is_not_terminal() -> None:
    """A dead end is not an end: the refusal is another."""
    machine = compile_machine(MACHINES["still"])
    with pytest.raises(InvalidTransition) as caught:
        decide(machine, Snapshot("i", "here", 1, BEGUN), Request("go"), now=NOW, new_id="t")
    assert caught.value.declared == []


def test_a_version_that_was_not_expected() -> None:
    assert decided(TESTING, "reject-batch", expected_version=2).after.version == 3
    for expected in (1, 3, 2**70):
        with pytest.raises(VersionConflict) as caught:
            decided(TESTING, "reject-batch", expected_version=expected)
        assert caught.value.version == 2
        assert caught.value.expected_version == expected


# The order of refusals (DESIGN, section 4.5): each step with each later one wrong as well.

ORDER: list[tuple[type[Rejected], Snapshot, dict[str, Any]]] = [
    (VersionConflict, TESTING, {"expected_version": 9}),
    (Terminal, RELEASED, {}),
    (InvalidTransition, TESTING, {"action": "nope"}),
    (GuardNotSatisfied, TESTING, {"action": "release"}),
    (InvalidRequest, TESTING, {"actor_ref": " "}),
    (InvalidRequest, TESTING, {"fired_at": NOW + TICK}),
]


@pytest.mark.parametrize(("first", "later"), [*combinations(range(len(ORDER)), 2)])
def test_the_order_of_refusals(first: int, later: int) -> None:
    kind, snapshot, wrong = ORDER[first]
    _, other, more = ORDER[later]
    asked = {"action": "reject-batch", **more, **wrong}
    if kind is Terminal or other.state == "released":
        snapshot = RELEASED
    with pytest.raises(Rejected) as caught:
        decided(snapshot, asked.pop("action"), **asked)
    assert type(caught.value) is kind


def test_everything_wrong_at_once_then_one_thing_less_each_time() -> None:
    wrong = {
        "expected_version": 9,
        "actor_ref": " ",
        "fired_at": "never",
        "guard_satisfied": "yes",
    }
    reasons = []
    for snapshot, action, drop in [
        (RELEASED, "nope", None),
        (RELEASED, "nope", "expected_version"),
        (TESTING, "nope", None),
        (TESTING, "release", None),
        (TESTING, "release", "guard_satisfied"),
        (TESTING, "release", "actor_ref"),
    ]:
        if drop == "guard_satisfied":
            wrong["guard_satisfied"] = True
        elif drop:
            del wrong[drop]
        with pytest.raises(Rejected) as caught:
            decided(snapshot, action, **wrong)
        reasons.append(caught.value.reason)
    assert reasons == [
        "version-conflict",
        "terminal",
        "invalid-transition",
        "guard-not-satisfied",
        "invalid-request",
        "invalid-request",
    ]


# The same order from the outside, where the store adds its own steps.

STEPS: list[tuple[type[Rejected], dict[str, Any]]] = [
    (InvalidRequest, {"id": " "}),
    (InvalidRequest, {"action": ""}),
    (NotKnown, {"id": "unknown"}),
    (IdempotencyConflict, {"idempotency_key": "used"}),
    (VersionConflict, {"expected_version": 9}),
    (Terminal, {"terminal": True}),
    (InvalidTransition, {"action": "nope"}),
    (GuardNotSatisfied, {"action": "release"}),
    (InvalidRequest, {"actor_ref": " "}),
    (StorageFailure, {"broken": True}),
]


class Instances:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.testing = store.instantiate(BATCH)
        self.released = store.instantiate(BATCH)
        for id in (self.testing, self.released):
            store.fire(id, "begin-testing", idempotency_key="used")
        store.fire(self.released, "release", guard_satisfied=True)


@pytest.mark.parametrize(("first", "later"), [*combinations(range(len(STEPS)), 2)])
def test_the_order_of_refusals_of_a_store(first: int, later: int) -> None:
    faults = Faults()
    with faulty_store(None, faults) as store:
        instances = Instances(store)
        kind, wrong = STEPS[first]
        asked = {"action": "reject-batch", **STEPS[later][1], **wrong}
        terminal, broken = asked.pop("terminal", False), asked.pop("broken", False)
        asked.setdefault("id", instances.released if terminal else instances.testing)
        if broken:
            faults.on("INSERT")
        before = [store.snapshot(id) for id in (instances.testing, instances.released)]
        with pytest.raises(Rejected) as caught:
            store.fire(**asked)
        assert type(caught.value) is kind
        faults.clear()
        assert [store.snapshot(id) for id in (instances.testing, instances.released)] == before


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"id": None}, "id"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "\t"}, "id"),
        ({"id": "x" * 1025}, "id"),
        ({"id": ["a"]}, "id"),
        ({"action": None}, "action"),
        ({"action": " "}, "action"),
        ({"action": "a\0"}, "action"),
        ({"action": {"a": 1}}, "action"),
        ({"expected_version": 0}, "expected_version"),
        ({"expected_version": -1}, "expected_version"),
        ({"expected_version": True}, "expected_version"),
        ({"expected_version": "1"}, "expected_version"),
        ({"expected_version": 1.0}, "expected_version"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": " "}, "idempotency_key"),
        ({"idempotency_key": 5}, "idempotency_key"),
        ({"idempotency_key": "\ud800"}, "idempotency_key"),
    ],
)
def test_what_is_malformed_is_said_before_anything_is_looked_up(
    store: Store, wrong: dict[str, Any], argument: str
) -> None:
    asked = {"id": "unknown", "action": "go", **wrong}
    with pytest.raises(InvalidRequest) as caught:
        store.fire(**asked)
    assert caught.value.argument == argument
    known = store.instantiate(TOGGLE)
    with pytest.raises(InvalidRequest) as caught:
        store.fire_many([Fire(known, "go"), Fire(**asked), Fire("unknown", "go")])
    assert (caught.value.argument, caught.value.index) == (argument, 1)
    assert store.current(known) == "off"


@pytest.mark.parametrize("id", [[], {}, ["a"], {"a": 1}, {1}, bytearray()], ids=repr)
@pytest.mark.parametrize("halting", [False, True])
def test_fire_each_refuses_what_cannot_even_be_hashed(store: Store, id: Any, halting: bool) -> None:
    known = store.instantiate(TOGGLE)
    outcomes = store.fire_each(
        [Fire(id, "go"), Fire(known, "go"), Fire(known, id)], halting=halting
    )
    assert [getattr(outcome, "reason", outcome) for outcome in outcomes] == [
        "invalid-request",
        "on",
        "invalid-request",
    ]


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value",
    [{1: 2, "a": 3}, {(1,): 1}, 10**5000, LOOP, {1}, object(), float("nan"), [b"x"], "\ud800"],
    ids=["mixed keys", "tuple key", "huge", "loop", "set", "object", "nan", "bytes", "surrogate"],
)
@pytest.mark.parametrize("argument", [*REFERENCES, "fired_at"])
def test_malformed_arguments_beside_a_key_are_refused_as_ever(
    store: Store, argument: str, value: Any
) -> None:
    """The request's digest is made before the arguments are checked."""
    id = store.instantiate(TOGGLE)
    with pytest.raises(InvalidRequest) as caught:
        store.fire(id, "go", idempotency_key="k", **{argument: value})
    assert caught.value.argument == argument
    assert store.fire(id, "go", idempotency_key="k") == "on"
    with pytest.raises(IdempotencyConflict):
        store.fire(id, "go", idempotency_key="k", **{argument: value})


@pytest.mark.parametrize(
    "asserted",
    [object(), LOOP, {1: 2, "a": 1}, 10**5000],
    ids=["object", "loop", "mixed keys", "huge"],
)
def test_odd_assertions_beside_a_key_assert_nothing(store: Store, asserted: Any) -> None:
    id = store.instantiate(TOGGLE)
    assert store.fire(id, "go", guard_satisfied=asserted, idempotency_key="k") == "on"
    assert store.fire(id, "go", idempotency_key="k") == "on"
    with pytest.raises(IdempotencyConflict):
        store.fire(id, "go", guard_satisfied=True, idempotency_key="k")
