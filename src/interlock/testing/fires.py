"""The contract of `fire`: what moves an instance, what is recorded of it, what is refused."""

from typing import Any

import pytest

from interlock.core.rejection import (
    GuardNotSatisfied,
    IdempotencyConflict,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    Terminal,
    VersionConflict,
)
from interlock.testing.base import (
    BATCH,
    NOON,
    SECOND,
    TOGGLE,
    Clock,
    Opening,
    Part,
    Verbs,
    arrow,
    declare,
    numbers,
    refusal,
    told,
    untouched,
)

# Only True asserts a guard; some of these are close.
NO_ASSERTIONS: list[Any] = [
    None, False, 1, 0, 1.0, "true", "True", "yes", "", [True], {"ok": True}, object(),
]  # fmt: skip

MALFORMED: list[Any] = ["", " ", "\t\n\u2003", 7, 1.5, b"x", ["x"], False]

# One action that leads elsewhere from each state, with another guard.
SAME_ACTION = declare(
    ["a", "b", "c", "d"],
    [
        arrow("a", "go", "b"),
        arrow("b", "go", "c", "g"),
        arrow("c", "go", "d", "h"),
        arrow("c", "stay", "c"),
    ],
    ["d"],
)


def released(store: Verbs, **how: Any) -> str:
    """Begin a batch and bring it to its end, at version 3."""
    id: str = store.instantiate(BATCH, **how)
    store.fire(id, "begin-testing")
    store.fire(id, "release", guard_satisfied=True, idempotency_key="end")
    return id


class Fires(Part):
    def test_a_fire_moves_along_the_declared_transition_and_gives_the_new_state(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(BATCH)
        assert store.fire(id, "begin-testing") == "testing"
        assert store.current(id) == "testing"
        assert store.fire(id, "reject-batch") == "rejected"
        assert store.current(id) == "rejected"

    def test_a_fire_appends_one_entry_that_tells_it_whole(self, opening: Opening) -> None:
        clock = Clock()
        store = opening(clock=clock)
        id = store.instantiate(BATCH)
        more: dict[str, Any] = {"correlation_id": "c-1", "causation_id": "e-9", "worker_id": "w-1"}
        store.fire(id, "begin-testing", "rivera", reason="sample of Ms Okafor", **more)
        clock.now += SECOND
        store.fire(id, "release", guard_satisfied=True)
        first, second = store.history(id)
        assert first[1:] == (
            *(1, "sampled", "testing", "begin-testing", "rivera", NOON, None),
            *("sample of Ms Okafor", "c-1", "e-9", "w-1"),
        )
        assert second[1:] == (
            *(2, "testing", "released", "release", None, NOON + SECOND, True),
            *(None, None, None, None),
        )
        assert first.transition_id.strip()
        assert second.transition_id.strip()
        assert first.transition_id != second.transition_id
        assert (first.version, second.version) == (2, 3)

    def test_entries_are_numbered_from_1_without_gaps_and_the_version_is_one_more(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        for number in range(1, 13):
            store.fire(id, "go")
            refusal(InvalidTransition, store.fire, id, "nope")
            assert store.snapshot(id).version == number + 1
        history = store.history(id)
        assert numbers(history) == list(range(1, 13))
        assert len({entry.transition_id for entry in history}) == 12

    def test_replaying_the_history_leads_to_the_current_state(self, store: Verbs) -> None:
        id = store.instantiate(SAME_ACTION)
        for action in ("go", "go", "stay", "stay", "go"):
            store.fire(id, action, guard_satisfied=True)
            state = "a"
            for entry in store.history(id):
                assert entry.from_state == state
                state = entry.to_state
            assert store.current(id) == store.snapshot(id).state == state
        assert state == "d"

    def test_a_repeated_fire_moves_again_for_it_is_not_idempotent(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        assert [store.fire(id, "go", "ann") for _ in range(4)] == ["on", "off", "on", "off"]
        assert len(store.history(id)) == 4

    def test_instances_of_one_declaration_move_apart(self, store: Verbs) -> None:
        one, two = store.instantiate(BATCH), store.instantiate(BATCH)
        store.fire(one, "begin-testing")
        assert (store.current(one), store.current(two)) == ("testing", "sampled")
        assert store.history(two) == []

    def test_only_declared_transitions_fire_from_any_state(self, store: Verbs) -> None:
        actions = [*{row["action"] for row in BATCH["transitions"]}, "nope", "Release", "release "]
        ways: dict[str, list[str]] = {"sampled": [], "testing": ["begin-testing"]}
        for state, way in ways.items():
            rows = [row for row in BATCH["transitions"] if row["from_state"] == state]
            leads = {row["action"]: row["to_state"] for row in rows}
            for action in actions:
                id = store.instantiate(BATCH)
                for step in way:
                    store.fire(id, step)
                if action in leads:
                    assert store.fire(id, action, guard_satisfied=True) == leads[action]
                    continue
                before = told(store)
                refused = refusal(InvalidTransition, store.fire, id, action, guard_satisfied=True)
                assert (refused.instance_id, refused.state) == (id, state)
                assert (refused.action, refused.declared) == (action, list(leads))
                assert told(store) == before

    def test_nothing_leaves_a_terminal_state(self, store: Verbs) -> None:
        id = released(store)
        with untouched(store):
            for action in ("begin-testing", "release", "reject-batch", "nope"):
                refused = refusal(Terminal, store.fire, id, action, guard_satisfied=True)
                assert (refused.instance_id, refused.state) == (id, "released")
                assert refused.action == action
        assert store.current(id) == "released"

    def test_a_state_without_ways_out_is_not_terminal_unless_declared_so(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(declare(["here", "there"], []))
        refused = refusal(InvalidTransition, store.fire, id, "go")
        assert refused.declared == []

    def test_a_guard_is_asserted_by_true_and_by_nothing_else(self, store: Verbs) -> None:
        id = store.instantiate(BATCH)
        store.fire(id, "begin-testing")
        with untouched(store):
            for value in NO_ASSERTIONS:
                refused = refusal(
                    GuardNotSatisfied, store.fire, id, "release", guard_satisfied=value
                )
                assert (refused.instance_id, refused.state) == (id, "testing"), value
                assert (refused.action, refused.guard) == ("release", "QP-sign-off")
            refusal(GuardNotSatisfied, store.fire, id, "release")
        assert store.fire(id, "release", guard_satisfied=True) == "released"
        assert store.history(id)[-1].guard_satisfied is True

    def test_the_same_action_needs_in_each_state_the_guard_of_its_own_transition(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(SAME_ACTION)
        assert store.fire(id, "go") == "b"
        assert refusal(GuardNotSatisfied, store.fire, id, "go").guard == "g"
        store.fire(id, "go", guard_satisfied=True)
        assert refusal(GuardNotSatisfied, store.fire, id, "go").guard == "h"

    def test_an_assertion_on_an_unguarded_transition_is_ignored_and_not_recorded(
        self, store: Verbs
    ) -> None:
        null = declare(["a"], [{**arrow("a", "go", "a"), "guard": None}])
        for id in (store.instantiate(TOGGLE), store.instantiate(null)):
            for value in (True, False, None, "yes"):
                store.fire(id, "go", guard_satisfied=value)  # type: ignore[arg-type]
            assert [entry.guard_satisfied for entry in store.history(id)] == [None] * 4

    def test_a_fire_that_expects_the_version_there_is_moves(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        for version in (1, 2, 3):
            store.fire(id, "go", expected_version=version)
        assert store.snapshot(id).version == 4

    def test_a_fire_that_expects_another_version_is_refused_with_both(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        with untouched(store):
            for expected in (1, 3, 2**31, 2**63, 2**70):
                refused = refusal(VersionConflict, store.fire, id, "go", expected_version=expected)
                assert (refused.expected_version, refused.version) == (expected, 2)
                assert (refused.instance_id, refused.action) == (id, "go")

    def test_a_version_that_is_none_is_refused(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for value in (0, -1, True, "1", 1.0, [1]):
                refused = refusal(InvalidRequest, store.fire, id, "go", expected_version=value)
                assert refused.argument == "expected_version", value

    def test_a_malformed_id_action_or_key_is_refused_by_name(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for value in [*MALFORMED, None]:
                refused = refusal(InvalidRequest, store.fire, value, "go")
                assert (refused.argument, refused.action) == ("id", "go"), value
                refused = refusal(InvalidRequest, store.fire, id, value)
                assert (refused.argument, refused.instance_id) == ("action", id), value
            for value in MALFORMED:
                refused = refusal(InvalidRequest, store.fire, id, "go", idempotency_key=value)
                assert refused.argument == "idempotency_key", value

    @pytest.mark.parametrize(
        "argument", ["actor_ref", "reason", "correlation_id", "causation_id", "worker_id"]
    )
    def test_a_malformed_attribution_is_refused_by_name(self, store: Verbs, argument: str) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for value in MALFORMED:
                refused = refusal(InvalidRequest, store.fire, id, "go", **{argument: value})
                assert refused.argument == argument, value
                assert (refused.instance_id, refused.action) == (id, "go")

    def test_an_unknown_instance_is_not_known(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for unknown in ("unknown", id.upper() + "x", f"{id} ", f"{id}.1", id[:-1], "%", "."):
                assert refusal(NotKnown, store.fire, unknown, "go").instance_id == unknown

    def test_of_several_refusals_the_first_in_their_order_is_given(self, opening: Opening) -> None:
        """Each call has the faults of all that come after it; each next one has one fault less."""
        store = opening(clock=Clock())
        ended, live = released(store), store.instantiate(BATCH)
        store.fire(live, "begin-testing", idempotency_key="begin")
        late: dict[str, Any] = {"fired_at": NOON + SECOND}
        bad: dict[str, Any] = {"actor_ref": " ", "reason": "", **late}
        used: dict[str, Any] = {"expected_version": 9, "idempotency_key": "end", **bad}
        with untouched(store):
            for argument, call in (
                ("id", (" ", "", {**used, "expected_version": 0, "idempotency_key": ""})),
                ("action", ("x", "", {**used, "expected_version": 0, "idempotency_key": ""})),
                ("expected_version", ("x", "y", {**bad, "expected_version": 0})),
                ("idempotency_key", ("x", "y", {**bad, "idempotency_key": ""})),
            ):
                id, action, how = call
                assert refusal(InvalidRequest, store.fire, id, action, **how).argument == argument
            refusal(NotKnown, store.fire, "unknown", "nope", **used)
            refusal(IdempotencyConflict, store.fire, ended, "nope", **used)
            refusal(VersionConflict, store.fire, ended, "nope", expected_version=9, **bad)
            refusal(Terminal, store.fire, ended, "nope", **bad)
            refusal(InvalidTransition, store.fire, live, "nope", **bad)
            refusal(GuardNotSatisfied, store.fire, live, "release", **bad)
            sure = {**bad, "guard_satisfied": True}
            assert refusal(InvalidRequest, store.fire, live, "release", **sure).argument == (
                "actor_ref"
            )
            sure = {**sure, "actor_ref": "ann", "reason": "why"}
            assert refusal(InvalidRequest, store.fire, live, "release", **sure).argument == (
                "fired_at"
            )

    def test_a_known_key_is_answered_whatever_has_become_of_the_instance(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(BATCH)
        how: dict[str, Any] = {"expected_version": 1, "idempotency_key": "begin"}
        store.fire(id, "begin-testing", **how)
        store.fire(id, "reject-batch")
        with untouched(store):
            assert store.fire(id, "begin-testing", **how) == "testing"

    def test_what_a_reader_does_with_a_history_leaves_the_record(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        first = store.history(id)
        with pytest.raises(AttributeError):
            first[0].to_state = "elsewhere"  # type: ignore[misc]
        kept = first[0]
        first.clear()
        assert store.history(id) == [kept]
