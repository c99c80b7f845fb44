"""The contract of handles: what one wrote another sees, whatever it knew; and how one ends."""

from typing import Any

from interlock.core.rejection import (
    GuardNotSatisfied,
    IdempotencyConflict,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    StorageFailure,
    Terminal,
    VersionConflict,
)
from interlock.store.attempt import Birth, Fire
from interlock.testing.base import BATCH, TOGGLE, Opening, Part, Verbs, numbers, refusal, told


class Handles(Part):
    def test_everything_is_there_for_the_next_handle(self, store: Verbs, another: Opening) -> None:
        id = store.instantiate(BATCH, "ann", "B-1", {"a": [1]}, idempotency_key="b")
        store.fire(id, "begin-testing", reason="why", idempotency_key="f")
        store.instantiate(TOGGLE)
        before = told(store)
        store.close()
        later = another()
        assert told(later) == before
        assert later.fire(id, "begin-testing", reason="why", idempotency_key="f") == "testing"
        again = later.instantiate(BATCH, "ann", "B-1", {"a": [1]}, idempotency_key="b")
        assert again == id
        assert later.fire(id, "reject-batch") == "rejected"
        assert numbers(later.history(id)) == [1, 2]
        assert later.verify().ok

    def test_a_birth_is_seen_by_a_handle_that_did_not_know_it(
        self, store: Verbs, another: Opening
    ) -> None:
        other = another()
        id = store.instantiate(TOGGLE)
        assert other.current(id) == "off"
        assert other.fire(id, "go") == "on"
        assert store.current(id) == "on"

    def test_a_handle_that_is_behind_moves_on_from_where_the_instance_stands(
        self, store: Verbs, another: Opening
    ) -> None:
        behind, id = another(), store.instantiate(TOGGLE)
        assert behind.fire(id, "go") == "on"
        for _ in range(3):
            store.fire(id, "go")
        assert behind.fire(id, "go") == "on"
        assert numbers(store.history(id)) == [1, 2, 3, 4, 5]
        assert behind.fire_many([Fire(id, "go")] * 2) == ["off", "on"]
        assert store.fire_each([Fire(id, "go")]) == ["off"]

    def test_a_handle_that_is_behind_never_refuses_what_has_become_valid(
        self, store: Verbs, another: Opening
    ) -> None:
        behind, id = another(), store.instantiate(BATCH)
        refusal(InvalidTransition, behind.fire, id, "reject-batch")
        store.fire(id, "begin-testing")
        assert behind.fire(id, "reject-batch", expected_version=2) == "rejected"

    def test_a_handle_that_is_behind_tells_the_refusal_that_holds_now(
        self, store: Verbs, another: Opening
    ) -> None:
        behind, id = another(), store.instantiate(BATCH)
        assert behind.current(id) == "sampled"
        assert behind.fire(id, "begin-testing") == "testing"
        refused = refusal(GuardNotSatisfied, behind.fire, id, "release")
        assert refused.state == "testing"
        store.fire(id, "reject-batch")
        for call, given in (
            (behind.fire, (id, "release")),
            (behind.fire, (id, "nope")),
            (behind.fire_many, ([Fire(id, "release")],)),
        ):
            ended = refusal(Terminal, call, *given)
            assert ended.state == "rejected"
        moved = refusal(VersionConflict, behind.fire, id, "release", expected_version=2)
        assert (moved.expected_version, moved.version) == (2, 3)
        (outcome,) = behind.fire_each([Fire(id, "begin-testing")])
        assert isinstance(outcome, Terminal)
        assert numbers(behind.history(id)) == [1, 2]

    def test_a_handle_that_is_behind_expects_the_version_that_it_was_told(
        self, store: Verbs, another: Opening
    ) -> None:
        behind, id = another(), store.instantiate(TOGGLE)
        behind.fire(id, "go")
        store.fire(id, "go")
        refused = refusal(VersionConflict, behind.fire, id, "go", expected_version=2)
        assert refused.version == 3
        assert behind.fire(id, "go", expected_version=3) == "on"

    def test_a_key_is_known_to_every_handle(self, store: Verbs, another: Opening) -> None:
        other, id = another(), store.instantiate(TOGGLE)
        other.fire(id, "go")
        assert store.fire(id, "go", idempotency_key="k") == "off"
        assert other.fire(id, "go", idempotency_key="k") == "off"
        refusal(IdempotencyConflict, other.fire, id, "go", "ann", idempotency_key="k")
        fires = [Fire(id, "go", idempotency_key="k")]
        assert other.fire_many(fires) == other.fire_each(fires) == ["off"]
        assert numbers(other.history(id)) == [1, 2]

    def test_closing_one_handle_leaves_the_others_open(
        self, store: Verbs, another: Opening
    ) -> None:
        other, id = another(), store.instantiate(TOGGLE)
        other.fire(id, "go")
        other.close()
        assert store.fire(id, "go") == "off"
        assert refusal(StorageFailure, other.current, id).kind == "closed"

    def test_closing_twice_is_fine(self, store: Verbs) -> None:
        store.close()
        store.close()

    def test_a_closed_store_refuses_every_verb_as_closed(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        store.close()
        calls: list[tuple[Any, tuple[Any, ...]]] = [
            (store.instantiate, (TOGGLE,)),
            (store.instantiate_each, (TOGGLE, [Birth()])),
            (store.fire, (id, "go")),
            (store.fire, ("unknown", "go")),
            (store.fire_many, ([Fire(id, "go")],)),
            (store.fire_each, ([Fire(id, "go")],)),
            (store.current, (id,)),
            (store.history, (id,)),
            (store.read_declaration, (id,)),
            (store.snapshot, (id,)),
            (store.instances, ()),
            (store.verify, ()),
            (store.verify, (id,)),
        ]
        for call, given in calls:
            told = refusal(StorageFailure, call, *given)
            assert (told.kind, told.retryable) == ("closed", False), given

    def test_a_closed_store_still_refuses_a_malformed_call_for_what_it_is(
        self, store: Verbs
    ) -> None:
        store.close()
        assert refusal(InvalidRequest, store.fire, " ", "go").argument == "id"
        assert refusal(InvalidRequest, store.current, "").argument == "id"

    def test_an_unknown_instance_becomes_known_once_it_is_there(self, store: Verbs) -> None:
        refusal(NotKnown, store.current, "unknown")
        id = store.instantiate(TOGGLE)
        assert store.current(id) == "off"
