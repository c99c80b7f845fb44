"""The contract of lists of fires: `fire_many` is all or none, in `fire_each` each stands alone."""

from typing import Any

from interlock.core.rejection import (
    GuardNotSatisfied,
    IdempotencyConflict,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    Rejected,
    Terminal,
    VersionConflict,
)
from interlock.store.attempt import Fire
from interlock.testing.base import BATCH, TOGGLE, Part, Verbs, numbers, refusal, untouched


class Lists(Part):
    def test_fire_many_gives_the_new_states_in_order(self, store: Verbs) -> None:
        one, two = store.instantiate(TOGGLE), store.instantiate(BATCH)
        fires = [Fire(two, "begin-testing"), Fire(one, "go"), Fire(two, "reject-batch")]
        assert store.fire_many(fires) == ["testing", "on", "rejected"]
        assert (store.current(one), store.current(two)) == ("on", "rejected")

    def test_fires_of_a_list_on_one_instance_follow_one_another(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        fires = (Fire(id, "go", actor_ref=f"a{n}", expected_version=n) for n in range(1, 8))
        assert store.fire_many(fires) == ["on", "off", "on", "off", "on", "off", "on"]
        history = store.history(id)
        assert numbers(history) == list(range(1, 8))
        assert [entry.actor_ref for entry in history] == [f"a{n}" for n in range(1, 8)]

    def test_every_argument_of_a_fire_in_a_list_is_recorded(self, store: Verbs) -> None:
        id = store.instantiate(BATCH)
        store.fire_many([Fire(id, "begin-testing")])
        born = store.snapshot(id).instantiated_at
        store.fire_many(
            [Fire(id, "release", "ann", True, born, 2, "k", "within limits", "c", "e", "w")]
        )
        entry = store.history(id)[-1]
        assert entry[2:] == (
            *("testing", "released", "release", "ann", born, True),
            *("within limits", "c", "e", "w"),
        )

    def test_a_list_that_holds_a_refusal_writes_nothing_and_says_where(self, store: Verbs) -> None:
        one, two, ended = (store.instantiate(BATCH) for _ in range(3))
        store.fire_many([Fire(ended, "begin-testing"), Fire(ended, "reject-batch")])
        good = [Fire(one, "begin-testing"), Fire(two, "begin-testing")]
        cases: list[tuple[type[Rejected], Any]] = [
            (InvalidTransition, Fire(one, "nope")),
            (GuardNotSatisfied, Fire(two, "release")),
            (Terminal, Fire(ended, "release")),
            (NotKnown, Fire("unknown", "release")),
            (VersionConflict, Fire(one, "reject-batch", expected_version=1)),
            (InvalidRequest, Fire(one, "reject-batch", actor_ref=" ")),
            (InvalidRequest, Fire(one, "reject-batch", fired_at="2020-01-01")),
            (InvalidRequest, Fire(one, " ")),
        ]
        with untouched(store):
            for kind, fire in cases:
                told = refusal(kind, store.fire_many, [*good, fire, Fire("unknown", "later")])
                assert (told.index, told.instance_id) == (2, fire.id)
        assert store.fire_many(good) == ["testing", "testing"]

    def test_the_refusal_of_a_list_is_that_of_its_first_place(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        told = refusal(NotKnown, store.fire_many, [Fire("unknown", "go"), Fire(id, " ")])
        assert told.index == 0
        assert store.history(id) == []

    def test_an_item_that_is_no_fire_is_refused_before_anything_is_written(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for verb in (store.fire_many, store.fire_each):
                for item in ((id, "go"), None, "go"):
                    told = refusal(InvalidRequest, verb, [Fire(id, "go"), item])
                    assert (told.argument, told.index) == ("fires", 1)

    def test_an_empty_list_does_nothing_and_says_so(self, store: Verbs) -> None:
        assert store.fire_many([]) == []
        assert store.fire_each(iter(())) == []

    def test_a_list_whose_keys_are_all_known_gives_the_first_answers(self, store: Verbs) -> None:
        one, two = store.instantiate(TOGGLE), store.instantiate(BATCH)
        fires = [
            Fire(one, "go", idempotency_key="a"),
            Fire(two, "begin-testing", idempotency_key="a"),
            Fire(one, "go", idempotency_key="b"),
        ]
        first = store.fire_many(fires)
        store.fire(two, "reject-batch")
        with untouched(store):
            assert store.fire_many(fires) == first == ["on", "testing", "off"]
            assert store.fire_many(reversed(fires)) == ["off", "testing", "on"]

    def test_a_list_of_which_a_part_was_done_before_is_refused(self, store: Verbs) -> None:
        one, two = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
        done = Fire(one, "go", idempotency_key="a")
        store.fire_many([done])
        with untouched(store):
            for more in (Fire(two, "go", idempotency_key="b"), Fire(two, "go"), Fire(one, "go")):
                told = refusal(IdempotencyConflict, store.fire_many, [done, more])
                assert (told.index, told.instance_id) == (1, more.id)
                assert told.idempotency_key == more.idempotency_key
            told = refusal(IdempotencyConflict, store.fire_many, [done._replace(reason="other")])
            assert (told.index, told.idempotency_key) == (0, "a")

    def test_a_key_that_stands_twice_in_a_list_is_one_fire(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        twice = [Fire(id, "go", idempotency_key="k")] * 2
        assert store.fire_many(twice) == ["on", "on"]
        assert store.fire_many(twice) == ["on", "on"]
        assert len(store.history(id)) == 1

    def test_a_list_that_was_refused_has_used_up_no_key(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        keyed = Fire(id, "go", idempotency_key="k")
        refusal(InvalidTransition, store.fire_many, [keyed, Fire(id, "nope")])
        assert store.fire_many([keyed, Fire(id, "go")]) == ["on", "off"]

    def test_in_fire_each_a_refusal_comes_back_in_its_place_and_the_others_are_done(
        self, store: Verbs
    ) -> None:
        one, two = store.instantiate(BATCH), store.instantiate(TOGGLE)
        wrong: Any = Fire(two, "")
        outcomes = store.fire_each(
            [
                Fire(one, "begin-testing"),
                Fire(one, "release"),
                Fire("unknown", "go"),
                Fire(two, "go"),
                wrong,
                Fire(one, "release", guard_satisfied=True),
                Fire(one, "release", guard_satisfied=True),
            ]
        )
        given = [outcome for outcome in outcomes if isinstance(outcome, str)]
        refused = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        assert given == [outcomes[0], outcomes[3], outcomes[5]] == ["testing", "on", "released"]
        assert [type(one) for one in refused] == [
            GuardNotSatisfied,
            NotKnown,
            InvalidRequest,
            Terminal,
        ]
        assert [one.instance_id for one in refused] == [one, "unknown", two, one]
        assert [entry.action for entry in store.history(one)] == ["begin-testing", "release"]
        assert store.current(two) == "on"

    def test_in_fire_each_each_sees_what_those_before_it_did(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        fires = [Fire(id, "go", expected_version=version) for version in (1, 1, 2, 4, 3)]
        outcomes = store.fire_each(fires)
        assert [getattr(one, "reason", one) for one in outcomes] == [
            "on",
            "version-conflict",
            "off",
            "version-conflict",
            "on",
        ]
        assert [outcomes[1].version, outcomes[3].version] == [2, 3]  # type: ignore[union-attr]

    def test_a_halting_fire_each_tries_nothing_more_on_an_instance_that_was_refused(
        self, store: Verbs
    ) -> None:
        one, two = store.instantiate(BATCH), store.instantiate(BATCH)
        fires = [
            Fire(one, "begin-testing"),
            Fire(one, "release"),
            Fire(one, "reject-batch"),
            Fire(two, "begin-testing"),
            Fire(one, "reject-batch"),
            Fire(two, "reject-batch"),
        ]
        outcomes = store.fire_each(fires, halting=True)
        assert isinstance(outcomes[1], GuardNotSatisfied)
        assert [*outcomes[:1], *outcomes[2:]] == ["testing", None, "testing", None, "rejected"]
        assert store.current(one) == "testing"

    def test_in_fire_each_keys_are_each_for_itself(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        keyed = Fire(id, "go", idempotency_key="k")
        other = keyed._replace(reason="other")
        assert store.fire_each([keyed]) == ["on"]
        again, moved, conflict = store.fire_each([keyed, Fire(id, "go"), other])
        assert (again, moved) == ("on", "off")
        assert isinstance(conflict, IdempotencyConflict)
        assert conflict.idempotency_key == "k"
        assert len(store.history(id)) == 2

    def test_a_long_list_is_written_whole(self, store: Verbs) -> None:
        ids = [store.instantiate(TOGGLE) for _ in range(5)]
        fires = [Fire(ids[place % 5], "go", reason=f"r{place}") for place in range(1000)]
        states = store.fire_many(fires)
        assert states == [["on", "off"][place // 5 % 2] for place in range(1000)]
        for place, id in enumerate(ids):
            history = store.history(id)
            assert numbers(history) == list(range(1, 201))
            assert [entry.reason for entry in history] == [f"r{n}" for n in range(place, 1000, 5)]
