"""The contract of births: what `instantiate` and `instantiate_each` accept, keep and refuse."""

import copy
import json
from typing import Any

import pytest

from interlock.core.rejection import (
    IdempotencyConflict,
    InvalidDeclaration,
    InvalidRequest,
    InvalidTransition,
)
from interlock.store.attempt import Birth
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
    everything,
    refusal,
    untouched,
)

# Each of the ten checks of Instantiate, and what else a declaration may be: the code and the path
# of the defect, and a declaration that has it.
DEFECTS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("no-states", ("states",), {**TOGGLE, "states": [], "transitions": []}),
    ("bad-name", ("states", 2), {**TOGGLE, "states": ["off", "on", " "]}),
    ("name-clash", ("states", 2), {**TOGGLE, "states": ["off", "on", "off"]}),
    ("unknown-state", ("initial_state",), {**TOGGLE, "initial_state": "of"}),
    ("initial-final", ("initial_state",), {**BATCH, "initial_state": "released"}),
    ("unknown-state", ("transitions", 0, "to_state"), declare(["a"], [arrow("a", "x", "b")])),
    ("unknown-state", ("transitions", 0, "from_state"), declare(["a"], [arrow("b", "x", "a")])),
    (
        "final-with-transitions",
        ("transitions", 0, "from_state"),
        declare(["a", "b"], [arrow("b", "x", "a")], ["b"]),
    ),
    (
        "nondeterministic",
        ("transitions", 1),
        declare(["a", "b"], [arrow("a", "x", "b"), arrow("a", "x", "a", "guard")]),
    ),
    ("bad-name", ("transitions", 0, "action"), declare(["a"], [arrow("a", "\t", "a")])),
    ("bad-name", ("transitions", 0, "guard"), declare(["a"], [arrow("a", "x", "a", "")])),
    ("unknown-state", ("terminal_states", 0), {**TOGGLE, "terminal_states": ["gone"]}),
    ("name-clash", ("terminal_states", 1), {**BATCH, "terminal_states": ["released"] * 2}),
    ("unknown-key", ("initial",), {**TOGGLE, "initial": "off"}),
    (
        "unknown-key",
        ("transitions", 0, "gaurd"),
        declare(["a"], [{**arrow("a", "x", "a"), "gaurd": "manager-ok"}]),
    ),
    ("missing-key", (), {key: TOGGLE[key] for key in TOGGLE if key != "terminal_states"}),
    ("wrong-type", ("states",), {**TOGGLE, "states": ("off", "on")}),
    ("wrong-type", ("terminal_states",), {**TOGGLE, "terminal_states": None}),
    ("wrong-type", (), [TOGGLE]),
    ("wrong-type", (), None),
]

METADATA: list[Any] = [
    "x",
    " outer blanks ",
    0,
    False,
    -(2**63),
    2**200,
    1.5,
    -0.0,
    5e-324,
    0.1 + 0.2,
    [None],
    [[]],
    {"": ""},
    {"b": 1, "a": {"d": [1, 2.0, "3", None, True], "c": {}}},
    ["x" * 100_000],
]

NO_METADATA: list[tuple[Any, str]] = [
    ({}, "empty"),
    ([], "empty"),
    ("", "empty"),
    (" \n", "blank"),
    ({"tags": {"x", "y"}}, "tags"),
    ({"pair": [0, (1, 2)]}, "pair[1]"),
    ({"raw": b"x"}, "raw"),
    ({"share": float("nan")}, "share"),
    ({"share": float("-inf")}, "share"),
    ({1: "x"}, "int"),
    ({"when": NOON}, "when"),
]


class Births(Part):
    def test_every_birth_gives_an_id_of_its_own(self, store: Verbs) -> None:
        ids = [store.instantiate(TOGGLE) for _ in range(20)]
        assert len(set(ids)) == 20
        assert all(isinstance(id, str) and id.strip() for id in ids)
        assert [row.id for row in everything(store)] == sorted(ids)

    def test_an_instance_begins_in_the_initial_state_at_version_1_without_history(
        self, store: Verbs
    ) -> None:
        id = store.instantiate({**BATCH, "initial_state": "testing"})
        assert store.current(id) == "testing"
        assert store.history(id) == []
        now = store.snapshot(id)
        assert (now.id, now.state, now.version, now.outcome) == (id, "testing", 1, None)

    def test_the_birth_is_kept_as_it_was_told(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        metadata = {"site": "Leuven", "lines": [1, None]}
        id = store.instantiate(BATCH, "planner", "B-0044", metadata, NOON - SECOND)
        store.fire(id, "begin-testing", "somebody-else")
        for told in (store.snapshot(id), *store.instances(), store.snapshot(id, at_sequence=0)):
            assert (told.id, told.actor_ref, told.subject_ref) == (id, "planner", "B-0044")
            assert (told.metadata, told.instantiated_at) == (metadata, NOON - SECOND)

    def test_what_a_birth_is_not_told_is_none_and_its_time_is_now(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        now = store.snapshot(store.instantiate(BATCH))
        assert (now.actor_ref, now.subject_ref, now.metadata) == (None, None, None)
        assert now.instantiated_at == NOON

    def test_a_declaration_comes_back_as_supplied_in_every_key_and_their_order(
        self, store: Verbs
    ) -> None:
        row = arrow("a", "x", "b", "g")
        supplied = [
            declare(["a", "b"], [row]),
            dict(reversed(declare(["a", "b"], [row]).items())),
            declare(["a", "b"], [dict(reversed(row.items()))]),
            declare(["b", "a"], [row]),
            declare(["a", "b"], [{**arrow("a", "x", "b"), "guard": None}]),
            declare(["a", "b"], [arrow("a", "x", "b")]),
        ]
        ids = [store.instantiate(declaration) for declaration in supplied]
        assert len({store.snapshot(id).definition for id in ids}) == len(ids)
        for id, declaration in zip(ids, supplied, strict=True):
            assert json.dumps(store.read_declaration(id)) == json.dumps(declaration)

    def test_a_declaration_never_changes_whatever_happens_to_the_instance(
        self, store: Verbs
    ) -> None:
        text, id = json.dumps(BATCH), store.instantiate(BATCH)
        store.fire(id, "begin-testing")
        assert json.dumps(store.read_declaration(id)) == text
        refusal(InvalidTransition, store.fire, id, "begin-testing")
        store.fire(id, "reject-batch")
        assert json.dumps(store.read_declaration(id)) == text

    def test_a_declaration_is_out_of_reach_of_those_who_supplied_or_read_it(
        self, store: Verbs
    ) -> None:
        supplied = copy.deepcopy(TOGGLE)
        id = store.instantiate(supplied)
        for copied in (supplied, store.read_declaration(id)):
            copied["states"].append("elsewhere")
            copied["transitions"][0]["to_state"] = "elsewhere"
            copied["terminal_states"].append("on")
        assert store.read_declaration(id) == TOGGLE
        assert store.fire(id, "go") == "on"
        assert store.fire(id, "go") == "off"
        assert store.current(store.instantiate(TOGGLE)) == "off"

    @pytest.mark.parametrize("value", METADATA, ids=lambda value: repr(value)[:30])
    def test_metadata_comes_back_the_same_in_type_and_value(self, store: Verbs, value: Any) -> None:
        id = store.instantiate(TOGGLE, instance_metadata=value)
        for back in (store.snapshot(id).metadata, store.instances()[0].metadata):
            assert repr(back) == repr(value)

    def test_metadata_that_is_empty_or_not_json_is_refused_with_its_place(
        self, store: Verbs
    ) -> None:
        deep: Any = []
        for _ in range(50_000):
            deep = [deep]
        with untouched(store):
            for value, place in [*NO_METADATA, (deep, "nested")]:
                told = refusal(InvalidRequest, store.instantiate, TOGGLE, instance_metadata=value)
                assert told.argument == "instance_metadata"
                assert place in str(told)

    def test_a_declaration_that_is_not_well_formed_is_refused(self, store: Verbs) -> None:
        for code, path, declaration in DEFECTS:
            told = refusal(InvalidDeclaration, store.instantiate, declaration)
            assert (code, path) in [(one.code, one.path) for one in told.defects]
        assert store.instances() == []

    def test_every_defect_of_a_declaration_is_listed(self, store: Verbs) -> None:
        declaration = declare(["a", "a", ""], [arrow("a", "x", "b"), arrow("a", " ", "a")], ["a"])
        told = refusal(InvalidDeclaration, store.instantiate, {**declaration, "more": 1})
        assert {one.code for one in told.defects} == {
            "name-clash",
            "bad-name",
            "unknown-state",
            "initial-final",
            "final-with-transitions",
            "unknown-key",
        }
        assert len(told.as_dict()["defects"]) == len(told.defects)  # type: ignore[arg-type]

    def test_a_malformed_argument_is_refused_by_name(self, store: Verbs) -> None:
        for argument in ("actor_ref", "subject_ref", "idempotency_key"):
            for value in ("", " \t\u2003", 7, b"ann", ["ann"], False):
                told = refusal(InvalidRequest, store.instantiate, TOGGLE, **{argument: value})
                assert told.argument == argument, value
        assert store.instances() == []

    def test_the_first_refusal_of_a_birth_is_of_its_declaration_then_of_its_arguments(
        self, store: Verbs
    ) -> None:
        store.instantiate(TOGGLE, idempotency_key="k")
        broken: Any = {**TOGGLE, "initial_state": ""}
        bad: dict[str, Any] = {"actor_ref": " ", "idempotency_key": "k"}
        with untouched(store):
            refusal(InvalidDeclaration, store.instantiate, broken, **bad)
            told = refusal(InvalidRequest, store.instantiate, BATCH, **bad)
            assert told.argument == "actor_ref"
            refusal(IdempotencyConflict, store.instantiate, BATCH, idempotency_key="k")

    def test_births_in_a_list_are_one_instance_each_in_their_order(self, opening: Opening) -> None:
        store = opening(clock=Clock())
        births = [Birth(subject_ref=f"B-{number}", actor_ref="ann") for number in range(30)]
        births.append(Birth("bob", "B-x", {"a": 1}, NOON - SECOND))
        ids = store.instantiate_each(BATCH, iter(births))
        assert len(set(ids)) == 31
        for id, birth in zip(ids, births, strict=True):
            now = store.snapshot(id)
            assert (now.actor_ref, now.subject_ref, now.metadata) == birth[:3]
            assert now.instantiated_at == (birth.instantiated_at or NOON)
            assert (now.state, now.version) == ("sampled", 1)
            assert store.read_declaration(id) == BATCH
        assert len(everything(store)) == 31

    def test_a_birth_that_is_refused_in_a_list_leaves_the_others(self, store: Verbs) -> None:
        wrong: Any = " "
        births = [Birth("ann"), Birth(wrong), Birth("bob"), Birth(instance_metadata={})]
        first, refused, second, empty = store.instantiate_each(TOGGLE, births)
        assert type(refused) is type(empty) is InvalidRequest
        assert (refused.argument, empty.argument) == ("actor_ref", "instance_metadata")
        assert {row.id: row.actor_ref for row in store.instances()} == {first: "ann", second: "bob"}

    def test_a_list_of_births_is_refused_whole_for_its_declaration_or_an_item_that_is_none(
        self, store: Verbs
    ) -> None:
        refusal(InvalidDeclaration, store.instantiate_each, {**TOGGLE, "states": []}, [Birth()])
        told = refusal(InvalidRequest, store.instantiate_each, TOGGLE, [Birth(), ("ann",)])
        assert (told.argument, told.index) == ("births", 1)
        assert store.instances() == []
        assert store.instantiate_each(TOGGLE, []) == []
