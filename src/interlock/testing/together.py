"""The contract of calls at once: each has the effect and the answer of some order of them all."""

from collections import Counter
from functools import partial
from typing import Any

from interlock.core.rejection import IdempotencyConflict, Rejected
from interlock.store.attempt import Fire
from interlock.testing.base import (
    FORK,
    TOGGLE,
    Opening,
    Part,
    Verbs,
    all_at_once,
    everything,
    numbers,
    words,
)


class Together(Part):
    def test_of_fifty_fires_that_expect_one_version_exactly_one_succeeds(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        outcomes = all_at_once([partial(store.fire, id, "go", expected_version=1)] * 50)
        assert words(outcomes) == ["done"] + ["version-conflict"] * 49
        for refused in outcomes:
            if isinstance(refused, Rejected):
                assert (refused.expected_version, refused.version) == (1, 2)  # type: ignore[attr-defined]
        assert numbers(store.history(id)) == [1]
        assert store.snapshot(id).version == 2

    def test_of_two_ways_out_of_one_state_one_is_taken_and_the_other_told(
        self, store: Verbs
    ) -> None:
        for _ in range(10):
            id = store.instantiate(FORK)
            ways = [partial(store.fire, id, action) for action in ("archive", "activate")]
            outcomes = all_at_once(ways)
            assert words(outcomes) == ["done", "invalid-transition"]
            (entry,) = store.history(id)
            assert entry.from_state == "s"
            assert entry.to_state in outcomes
            refused = next(one for one in outcomes if isinstance(one, Rejected))
            assert refused.state == entry.to_state  # type: ignore[attr-defined]

    def test_fires_of_many_threads_on_one_instance_are_each_one_entry(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)

        def go(worker: int) -> list[str]:
            return [store.fire(id, "go", f"w{worker}") for _ in range(12)]

        outcomes = all_at_once([partial(go, worker) for worker in range(8)])
        assert words(outcomes) == ["done"] * 8
        history = store.history(id)
        assert numbers(history) == list(range(1, 97))
        states = [state for outcome in outcomes for state in outcome]
        assert Counter(states) == Counter(entry.to_state for entry in history)
        assert Counter(entry.actor_ref for entry in history) == {f"w{n}": 12 for n in range(8)}
        assert len({entry.transition_id for entry in history}) == 96
        assert store.verify().ok

    def test_a_refusal_of_one_call_is_no_refusal_of_another(self, store: Verbs) -> None:
        ids = [store.instantiate(TOGGLE) for _ in range(8)]
        calls: list[Any] = []
        for id in ids:
            calls += [partial(store.fire, id, "go"), partial(store.fire, id, "nope")]
            calls += [partial(store.fire, id, "go", " "), partial(store.fire, f"{id}x", "go")]
        outcomes = all_at_once(calls)
        kinds = [getattr(one, "reason", one) for one in outcomes]
        assert kinds == ["on", "invalid-transition", "invalid-request", "not-known"] * 8
        assert all(numbers(store.history(id)) == [1] for id in ids)

    def test_births_at_once_are_one_instance_each(self, store: Verbs) -> None:
        machines = [TOGGLE, FORK, {**TOGGLE, "states": ["on", "off"]}]
        ids = all_at_once([partial(store.instantiate, machines[n % 3], f"a{n}") for n in range(24)])
        assert words(ids) == ["done"] * 24
        rows = everything(store)
        assert sorted(ids) == [row.id for row in rows]
        assert {row.actor_ref for row in rows} == {f"a{n}" for n in range(24)}
        for place, id in enumerate(ids):
            assert store.read_declaration(id) == machines[place % 3]

    def test_lists_over_the_same_instances_in_opposite_order_do_not_lock_each_other_out(
        self, store: Verbs
    ) -> None:
        ids = [store.instantiate(TOGGLE) for _ in range(6)]

        def fires(order: list[str]) -> list[list[str]]:
            return [store.fire_many([Fire(id, "go") for id in order]) for _ in range(10)]

        outcomes = all_at_once([partial(fires, ids), partial(fires, ids[::-1])])
        assert words(outcomes) == ["done", "done"]
        for id in ids:
            assert numbers(store.history(id)) == list(range(1, 21))

    def test_a_list_at_once_with_single_fires_is_seen_whole(self, store: Verbs) -> None:
        """One list moves both instances; whoever reads the second moved finds the first moved."""
        for _ in range(5):
            one, two = store.instantiate(TOGGLE), store.instantiate(TOGGLE)

            def look(one: str = one, two: str = two) -> tuple[str, str]:
                return store.current(two), store.current(one)

            pair = [Fire(one, "go"), Fire(two, "go")]
            outcomes = all_at_once([partial(store.fire_many, pair), *[look] * 6])
            assert outcomes[0] == ["on", "on"]
            assert all(seen != ("on", "off") for seen in outcomes[1:])

    def test_one_key_from_twenty_threads_is_one_entry_and_one_answer(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        outcomes = all_at_once([partial(store.fire, id, "go", idempotency_key="k")] * 20)
        assert outcomes == ["on"] * 20
        assert numbers(store.history(id)) == [1]
        born = all_at_once([partial(store.instantiate, TOGGLE, idempotency_key="k")] * 20)
        assert len({*born}) == 1
        assert {row.id for row in everything(store)} == {id, *born}

    def test_one_key_for_two_requests_at_once_serves_one_and_refuses_the_other(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        for number in range(5):
            how = {"idempotency_key": f"k{number}"}
            requests = [partial(store.fire, id, "go", actor, **how) for actor in ("ann", "bob")]  # type: ignore[arg-type]
            outcomes = all_at_once(requests)
            assert words(outcomes) == ["done", "idempotency-conflict"]
            served = next(place for place in (0, 1) if isinstance(outcomes[place], str))
            assert store.history(id)[-1].actor_ref == ("ann", "bob")[served]
            assert len(store.history(id)) == number + 1

    def test_a_list_with_one_key_from_ten_threads_is_done_once(self, store: Verbs) -> None:
        one, two = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
        fires = [Fire(one, "go", idempotency_key="k"), Fire(two, "go", idempotency_key="k")]
        outcomes = all_at_once(
            [partial(store.fire_many, order) for order in (fires, fires[::-1])] * 5
        )
        assert outcomes == [["on", "on"]] * 10
        assert numbers(store.history(one)) == numbers(store.history(two)) == [1]

    def test_two_handles_that_expect_one_version_are_told_apart(
        self, store: Verbs, another: Opening
    ) -> None:
        stores = [store, another(), another()]
        id = store.instantiate(TOGGLE)
        for one in stores:
            assert one.fire(id, "go") in ("on", "off")  # now each knows the instance
        outcomes = all_at_once(
            [partial(stores[n % 3].fire, id, "go", expected_version=4) for n in range(30)]
        )
        assert words(outcomes) == ["done"] + ["version-conflict"] * 29
        for one in stores:
            assert numbers(one.history(id)) == [1, 2, 3, 4]

    def test_two_ways_out_taken_from_two_handles_are_one_entry_and_a_true_refusal(
        self, store: Verbs, another: Opening
    ) -> None:
        other = another()
        for _ in range(10):
            id = store.instantiate(FORK)
            assert store.current(id) == other.current(id) == "s"
            ways = [partial(store.fire, id, "archive"), partial(other.fire, id, "activate")]
            outcomes = all_at_once(ways)
            assert words(outcomes) == ["done", "invalid-transition"]
            (entry,) = other.history(id)
            assert (entry.from_state, entry.to_state in outcomes) == ("s", True)

    def test_no_valid_call_of_several_handles_is_turned_away(
        self, store: Verbs, another: Opening
    ) -> None:
        stores = [store, another(), another()]
        ids = [store.instantiate(TOGGLE) for _ in range(4)]
        calls = [partial(stores[n % 3].fire, ids[n % 4], "go") for n in range(48)]
        assert words(all_at_once(calls)) == ["done"] * 48
        for one in stores:
            for id in ids:
                assert numbers(one.history(id)) == list(range(1, 13))
        assert store.verify().ok

    def test_one_key_from_several_handles_is_one_effect_and_one_answer(
        self, store: Verbs, another: Opening
    ) -> None:
        stores = [store, another()]
        born = all_at_once(
            [partial(stores[n % 2].instantiate, TOGGLE, idempotency_key="k") for n in range(8)]
        )
        assert len({*born}) == 1
        id = born[0]
        fired = all_at_once(
            [partial(stores[n % 2].fire, id, "go", idempotency_key="k") for n in range(8)]
        )
        assert fired == ["on"] * 8
        assert numbers(store.history(id)) == [1]

    def test_lists_of_two_handles_over_the_same_instances_never_deadlock(
        self, store: Verbs, another: Opening
    ) -> None:
        ids, other = [store.instantiate(TOGGLE) for _ in range(6)], another()

        def fires(one: Verbs, order: list[str]) -> list[list[str]]:
            return [one.fire_many([Fire(id, "go") for id in order]) for _ in range(8)]

        outcomes = all_at_once([partial(fires, store, ids), partial(fires, other, ids[::-1])])
        assert words(outcomes) == ["done", "done"]
        for id in ids:
            assert numbers(other.history(id)) == list(range(1, 17))

    def test_births_under_one_key_and_two_requests_at_once_are_one_instance(
        self, store: Verbs
    ) -> None:
        for number in range(5):
            key = f"k{number}"
            births = [
                partial(store.instantiate, TOGGLE, actor, idempotency_key=key)
                for actor in ("ann", "bob")
            ]
            outcomes = all_at_once(births)
            assert words(outcomes) == ["done", "idempotency-conflict"]
            refused = next(one for one in outcomes if isinstance(one, IdempotencyConflict))
            assert refused.idempotency_key == key
        assert len(everything(store)) == 5
