"""The contract of idempotency keys: one request, one effect, one answer."""

from typing import Any

from interlock.core.rejection import GuardNotSatisfied, IdempotencyConflict, InvalidRequest
from interlock.store.attempt import Birth
from interlock.testing.base import (
    BATCH,
    NOON,
    TOGGLE,
    Clock,
    Opening,
    Part,
    Verbs,
    refusal,
    untouched,
)

LOOK_ALIKES = [
    "k",
    "K",
    "k ",
    "%",
    "_",
    "k%",
    "caf\u00e9",
    "cafe\u0301",
    "'",
    "a/b",
    "\u00e9" * 512,
]


class Keys(Part):
    def test_the_same_key_with_the_same_request_gives_the_first_answer_and_writes_nothing(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        how: dict[str, Any] = {"actor_ref": "ann", "reason": "why", "idempotency_key": "k"}
        assert store.fire(id, "go", **how) == "on"
        for _ in range(4):
            store.fire(id, "go")
        with untouched(store):
            assert store.fire(id, "go", **how) == "on"
        assert len(store.history(id)) == 5

    def test_the_same_key_with_a_request_that_differs_anywhere_is_refused(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        asked: dict[str, Any] = {"action": "go", "actor_ref": "ann", "reason": "why"}
        others: list[dict[str, Any]] = [
            {"action": "nope"},
            {"actor_ref": "bob"},
            {"actor_ref": None},
            {"guard_satisfied": True},
            {"reason": "why not"},
            {"reason": None},
            {"correlation_id": "c"},
            {"causation_id": "c"},
            {"worker_id": "c"},
            {"expected_version": 1},
            {"expected_version": 2},
            {"fired_at": "2020-01-01T00:00:00Z"},
            {"actor_ref": ["ann"]},
        ]
        store.fire(id, **asked, idempotency_key="k")
        with untouched(store):
            for other in others:
                told = refusal(
                    IdempotencyConflict, store.fire, id, **{**asked, **other}, idempotency_key="k"
                )
                assert (told.idempotency_key, told.instance_id) == ("k", id), other

    def test_what_asserts_no_guard_is_one_request_however_it_is_said(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        for value in (None, False, 1, "yes"):
            how: Any = {"guard_satisfied": value, "idempotency_key": "k"}
            assert store.fire(id, "go", **how) == "on"
        assert len(store.history(id)) == 1

    def test_two_spellings_of_one_moment_are_one_request(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        id = store.instantiate(TOGGLE, instantiated_at="2020-01-01T00:00:00Z")
        for time in ("2026-05-01T12:00:00Z", "2026-05-01T14:00+02:00", NOON):
            assert store.fire(id, "go", fired_at=time, idempotency_key="k") == "on"
        assert len(store.history(id)) == 1

    def test_a_request_that_was_refused_has_used_up_no_key(self, store: Verbs) -> None:
        id = store.instantiate(BATCH)
        store.fire(id, "begin-testing")
        refusal(GuardNotSatisfied, store.fire, id, "release", idempotency_key="k")
        refusal(InvalidRequest, store.fire, id, "reject-batch", " ", idempotency_key="k")
        assert store.fire(id, "reject-batch", idempotency_key="k") == "rejected"
        refusal(InvalidRequest, store.instantiate, TOGGLE, " ", idempotency_key="b")
        assert store.current(store.instantiate(TOGGLE, idempotency_key="b")) == "off"

    def test_the_key_of_a_fire_belongs_to_its_instance_and_that_of_a_birth_to_the_store(
        self, store: Verbs
    ) -> None:
        one, two = store.instantiate(TOGGLE), store.instantiate(TOGGLE, idempotency_key="k")
        assert store.fire(one, "go", idempotency_key="k") == "on"
        assert store.fire(two, "go", "ann", idempotency_key="k") == "on"
        assert store.instantiate(TOGGLE, idempotency_key="k") == two

    def test_keys_are_compared_byte_for_byte(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        born = [store.instantiate(TOGGLE, idempotency_key=key) for key in LOOK_ALIKES]
        assert len({*born}) == len(LOOK_ALIKES)
        fired = [store.fire(id, "go", idempotency_key=key) for key in LOOK_ALIKES]
        assert fired == [["on", "off"][place % 2] for place in range(len(LOOK_ALIKES))]
        with untouched(store):
            assert [store.fire(id, "go", idempotency_key=key) for key in LOOK_ALIKES] == fired
            assert [store.instantiate(TOGGLE, idempotency_key=key) for key in LOOK_ALIKES] == born

    def test_a_birth_with_the_same_key_and_request_gives_the_same_instance(
        self, store: Verbs
    ) -> None:
        metadata = {"id": 1, "extra": "x"}
        asked: list[Any] = ["ann", "B-1", metadata]
        id = store.instantiate(TOGGLE, *asked, idempotency_key="k")
        store.fire(id, "go")
        turned = dict(reversed(TOGGLE.items()))
        asked[2] = dict(reversed(metadata.items()))
        with untouched(store):
            assert store.instantiate(turned, *asked, idempotency_key="k") == id
        assert store.read_declaration(id) == TOGGLE

    def test_a_birth_with_the_same_key_and_another_request_is_refused(self, store: Verbs) -> None:
        asked: dict[str, Any] = {
            "declaration": TOGGLE,
            "actor_ref": "ann",
            "instance_metadata": {"id": 1, "extra": "x"},
        }
        others: list[dict[str, Any]] = [
            {"declaration": BATCH},
            {"declaration": {**TOGGLE, "states": ["on", "off"]}},
            {"actor_ref": None},
            {"subject_ref": "B-1"},
            {"instance_metadata": {"id": 1}},
            {"instance_metadata": {"id": 1, "extra": "x", "more": 0}},
            {"instance_metadata": None},
            {"instantiated_at": "2020-01-01T00:00:00Z"},
        ]
        store.instantiate(**asked, idempotency_key="k")
        with untouched(store):
            for other in others:
                told = refusal(
                    IdempotencyConflict,
                    store.instantiate,
                    **{**asked, **other},
                    idempotency_key="k",
                )
                assert told.idempotency_key == "k", other

    def test_births_in_lists_keep_their_keys_each_for_itself(self, store: Verbs) -> None:
        births = [Birth(idempotency_key="a"), Birth(idempotency_key="b"), Birth()]
        first, second, third = store.instantiate_each(TOGGLE, [*births[:2], births[0]])
        assert first == third != second
        again = store.instantiate_each(TOGGLE, births)
        assert again[:2] == [first, second]
        outcomes = store.instantiate_each(BATCH, births)
        assert [type(one) for one in outcomes[:2]] == [IdempotencyConflict] * 2
        assert store.current(outcomes[2]) == "sampled"  # type: ignore[arg-type]
        assert len(store.instances()) == 4
