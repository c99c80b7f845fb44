"""The contract of reading: states, histories and their filters, snapshots of the past, pages."""

from datetime import timedelta
from typing import Any

import pytest

from interlock.core.query import TEXT_KEYS
from interlock.core.rejection import InvalidDeclaration, InvalidQuery, InvalidRequest, NotKnown
from interlock.core.text import Limits
from interlock.store.attempt import Birth, Fire
from interlock.testing.base import (
    BATCH,
    MICROSECOND,
    NOON,
    SECOND,
    TOGGLE,
    Clock,
    Opening,
    Part,
    Verbs,
    arrow,
    begin,
    declare,
    everything,
    numbers,
    refusal,
)

# Of each kind of filter some that match much, one entry, and none.
TIMES = [NOON + place * SECOND for place in (0, 3, 1, 1, 4)]
ROUND = declare(
    ["a", "b", "c"],
    [
        arrow("a", "go", "b"),
        arrow("b", "go", "c"),
        arrow("b", "back", "a"),
        arrow("c", "back", "b"),
    ],
)
STEPS = ["go", "go", "back", "back", "go"]

NO_QUERIES: list[tuple[str, Any]] = [
    *((key, {key: value}) for key in TEXT_KEYS
      for value in (None, "", " \t", 7, ["go"], "a\0b", "\ud800")),
    ("query", ["action"]),
    ("query", "action"),
    ("sequence", {"sequence": {"start": 1}}),
    ("Action", {"Action": "go"}),
    ("fired_at.after", {"fired_at.after": NOON}),
    ("reason", {"reason": "why"}),
    ("sequence_number", {"sequence_number": None}),
    ("sequence_number", {"sequence_number": 3}),
    ("sequence_number", {"sequence_number": {"from": 1}}),
    ("sequence_number", {"sequence_number": {"start": 3, "end": 2}}),
    ("sequence_number.start", {"sequence_number": {"start": None}}),
    ("sequence_number.end", {"sequence_number": {"end": "3"}}),
    ("sequence_number.end", {"sequence_number": {"end": True}}),
    ("sequence_number.end", {"sequence_number": {"end": 2.0}}),
    ("fired_at", {"fired_at": NOON}),
    ("fired_at", {"fired_at": {"since": NOON}}),
    ("fired_at", {"fired_at": {"after": NOON, "before": NOON - MICROSECOND}}),
    ("fired_at.after", {"fired_at": {"after": None}}),
    ("fired_at.after", {"fired_at": {"after": NOON.replace(tzinfo=None)}}),
    ("fired_at.before", {"fired_at": {"before": "2026-05-01T12:00:00"}}),
    ("fired_at.before", {"fired_at": {"before": "noon"}}),
]  # fmt: skip


def walked(opening: Opening) -> tuple[Verbs, str]:
    """Give a store, and an instance of it with five entries whose times are out of order."""
    clock = Clock()
    store = opening(clock=clock)
    id: str = store.instantiate(ROUND, "zoe", instantiated_at=NOON)
    clock.now += timedelta(hours=1)
    for place, (action, time) in enumerate(zip(STEPS, TIMES, strict=True)):
        store.fire(id, action, ["ann", None, "bob"][place % 3], fired_at=time)
    return store, id


class Reads(Part):
    def test_a_verb_that_reads_refuses_an_id_that_is_malformed_or_not_known(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        for verb in (
            store.current,
            store.history,
            store.read_declaration,
            store.snapshot,
            store.verify,
        ):
            for value in ("", " \t", 7, b"x", ["x"], "x" * 1025, "a\0b", "\ud800"):
                assert refusal(InvalidRequest, verb, value).argument == "id", value
            for unknown in ("unknown", f"{id}.1", f"{id} ", id[:-1], "%", f"%{id[1:]}"):
                assert refusal(NotKnown, verb, unknown).instance_id == unknown
        for verb in (store.current, store.history, store.read_declaration, store.snapshot):
            assert refusal(InvalidRequest, verb, None).argument == "id"

    def test_a_history_without_a_query_is_whole_and_in_order(self, opening: Opening) -> None:
        store, id = walked(opening)
        history = store.history(id)
        assert numbers(history) == [1, 2, 3, 4, 5]
        assert [entry.action for entry in history] == STEPS
        assert [entry.fired_at for entry in history] == TIMES
        assert store.history(id, {}) == store.history(id, None) == history
        nothings: list[dict[str, Any]] = [{"sequence_number": {}}, {"fired_at": {}}]
        for nothing in nothings:
            assert store.history(id, nothing) == history

    @pytest.mark.parametrize("key", ["transition_id", "from_state", "to_state", "action"])
    def test_a_filter_by_a_text_gives_the_entries_that_have_it(
        self, opening: Opening, key: str
    ) -> None:
        store, id = walked(opening)
        history = store.history(id)
        for value in {getattr(entry, key) for entry in history}:
            due = [entry for entry in history if getattr(entry, key) == value]
            assert store.history(id, {key: value}) == due != []
            for near in (f"{value} ", value.swapcase() + "x", "%", "_", f"{value[:-1]}%"):
                assert store.history(id, {key: near}) == []

    def test_a_filter_by_actor_gives_that_actors_entries_and_no_others(
        self, opening: Opening
    ) -> None:
        store, id = walked(opening)
        assert numbers(store.history(id, {"actor_ref": "ann"})) == [1, 4]
        assert numbers(store.history(id, {"actor_ref": "bob"})) == [3]
        assert store.history(id, {"actor_ref": "zoe"}) == []

    def test_a_range_of_numbers_includes_both_its_ends(self, opening: Opening) -> None:
        store, id = walked(opening)
        for bounds, due in (
            ({"start": 2}, [2, 3, 4, 5]),
            ({"end": 2}, [1, 2]),
            ({"start": 2, "end": 4}, [2, 3, 4]),
            ({"start": 3, "end": 3}, [3]),
            ({"start": 0}, [1, 2, 3, 4, 5]),
            ({"start": -(2**80), "end": 2**80}, [1, 2, 3, 4, 5]),
            ({"start": 6}, []),
            ({"end": 0}, []),
            ({"start": 2**80}, []),
            ({"end": -(2**80)}, []),
        ):
            assert numbers(store.history(id, {"sequence_number": bounds})) == due, bounds

    def test_a_range_of_times_includes_both_its_ends_and_orders_by_number(
        self, opening: Opening
    ) -> None:
        store, id = walked(opening)
        for bounds, due in (
            ({"after": TIMES[2]}, [2, 3, 4, 5]),
            ({"before": TIMES[2]}, [1, 3, 4]),
            ({"after": TIMES[2], "before": TIMES[1]}, [2, 3, 4]),
            ({"after": TIMES[2], "before": TIMES[2]}, [3, 4]),
            ({"after": TIMES[2] + MICROSECOND, "before": TIMES[1] - MICROSECOND}, []),
            ({"after": "2026-05-01T14:00:03+02:00"}, [2, 5]),
            ({"before": "2026-05-01T12:00:00Z"}, [1]),
            ({"after": "9999-12-31T23:59:59.999999Z"}, []),
            ({"before": "0001-01-01T00:00:00Z"}, []),
        ):
            assert numbers(store.history(id, {"fired_at": bounds})) == due, bounds

    def test_filters_that_are_given_together_hold_together(self, opening: Opening) -> None:
        store, id = walked(opening)
        for query, due in (
            ({"action": "go", "from_state": "a"}, [1, 5]),
            ({"action": "go", "from_state": "a", "actor_ref": "ann"}, [1]),
            ({"action": "back", "to_state": "c"}, []),
            ({"to_state": "b", "sequence_number": {"start": 2}}, [3, 5]),
            ({"to_state": "b", "fired_at": {"before": TIMES[2]}, "actor_ref": "bob"}, [3]),
        ):
            assert numbers(store.history(id, query)) == due, query

    def test_a_query_that_is_malformed_is_refused_by_key(self, opening: Opening) -> None:
        store, id = walked(opening)
        for argument, query in NO_QUERIES:
            told = refusal(InvalidQuery, store.history, id, query)
            assert (told.argument, told.instance_id) == (argument, id), query

    def test_a_history_is_refused_for_its_id_then_as_not_known_then_for_its_query(
        self, store: Verbs
    ) -> None:
        id = store.instantiate(TOGGLE)
        refusal(InvalidRequest, store.history, " ", {"nope": 1})
        refusal(NotKnown, store.history, "unknown", {"nope": 1})
        refusal(InvalidQuery, store.history, id, {"nope": 1})

    def test_a_snapshot_at_a_number_is_the_instance_after_that_entry(
        self, opening: Opening
    ) -> None:
        store, id = walked(opening)
        now = store.snapshot(id)
        for number, state in enumerate(["a", "b", "c", "b", "a", "b"]):
            then = store.snapshot(id, at_sequence=number)
            assert then == now._replace(state=state, version=number + 1)
        assert store.snapshot(id, at_sequence=5) == now

    def test_a_snapshot_at_a_moment_is_after_the_last_entry_by_number_not_later(
        self, opening: Opening
    ) -> None:
        store, id = walked(opening)
        for moment, version in (
            (NOON, 2),
            (NOON + SECOND - MICROSECOND, 2),
            (NOON + SECOND, 5),
            (NOON + 3 * SECOND, 5),
            (NOON + 4 * SECOND, 6),
            ("2026-05-01T14:00:00+02:00", 2),
            ("9999-12-31T23:59:59Z", 6),
        ):
            assert store.snapshot(id, at=moment).version == version, moment
        assert store.snapshot(id, at_sequence=1, at=NOON + SECOND).version == 2
        assert store.snapshot(id, at_sequence=4, at=NOON).version == 2

    def test_a_snapshot_at_the_birth_is_the_initial_state(self, opening: Opening) -> None:
        clock = Clock()
        store = opening(clock=clock)
        id = store.instantiate(TOGGLE)
        clock.now += SECOND
        store.fire(id, "go")
        then = store.snapshot(id, at=NOON)
        assert (then.state, then.version) == ("off", 1)

    def test_a_snapshot_of_no_moment_of_the_instance_is_refused_by_argument(
        self, opening: Opening
    ) -> None:
        store, id = walked(opening)
        numbers: list[Any] = [6, 2**62, -1, True, "1", 1.0, 2**63]
        for number in numbers:
            told = refusal(InvalidRequest, store.snapshot, id, at_sequence=number)
            assert told.argument == "at_sequence", number
        moments: list[Any] = [NOON - MICROSECOND, NOON.replace(tzinfo=None), "noon", 0, ""]
        for moment in moments:
            told = refusal(InvalidRequest, store.snapshot, id, at=moment)
            assert told.argument == "at", moment
        refusal(NotKnown, store.snapshot, "unknown", at_sequence=0)
        refusal(NotKnown, store.snapshot, "unknown", at=NOON)

    def test_pages_give_every_instance_once_by_id_though_all_began_at_one_moment(
        self, opening: Opening
    ) -> None:
        store = opening(clock=Clock())
        ids = begin(store, TOGGLE, [Birth()] * 50)
        pages, after = [], None
        while page := store.instances(limit=10, after=after):
            pages.append([row.id for row in page])
            after = page[-1].id
        assert [len(page) for page in pages] == [10] * 5
        assert [id for page in pages for id in page] == sorted(ids)

    def test_a_page_goes_on_after_any_id_known_or_not(self, store: Verbs) -> None:
        ids = sorted(begin(store, TOGGLE, [Birth()] * 5))
        for place, id in enumerate(ids):
            assert [row.id for row in store.instances(after=id)] == ids[place + 1 :]
            assert [row.id for row in store.instances(after=f"{id}!")] == ids[place + 1 :]
            assert [row.id for row in store.instances(after=id[:-1])] == ids[place:]
        assert [row.id for row in store.instances(after=" !")] == ids
        assert [row.id for row in store.instances(after="~")] == []

    def test_a_page_has_a_hundred_rows_unless_another_limit_is_given(self, store: Verbs) -> None:
        begin(store, TOGGLE, [Birth()] * 101)
        assert len(store.instances()) == 100
        assert len(store.instances(limit=101)) == 101
        assert len(store.instances(limit=1)) == 1

    def test_a_limit_that_is_none_or_too_large_is_refused(self, opening: Opening) -> None:
        store = opening(limits=Limits(page_rows=7))
        values: list[Any] = [0, -1, 8, True, "5", 2.0, None, 2**70]
        for value in values:
            assert refusal(InvalidRequest, store.instances, limit=value).argument == "limit"
        assert store.instances(limit=7) == []

    def test_rows_of_a_page_are_the_instances_as_they_are(self, store: Verbs) -> None:
        begin(store, BATCH, [Birth("ann", f"B-{n}", {"n": n}) for n in range(3)])
        for row in store.instances():
            store.fire(row.id, "begin-testing")
        rows = store.instances()
        assert [row.version for row in rows] == [2, 2, 2]
        assert rows == [store.snapshot(row.id) for row in rows]

    def test_filters_of_instances_hold_alone_and_together(self, store: Verbs) -> None:
        births = [Birth(subject_ref=subject) for subject in ("x", "y", "x", None)]
        batches = begin(store, BATCH, births)
        toggles = begin(store, TOGGLE, births)
        store.fire_many([Fire(id, "begin-testing") for id in batches[:2]])
        rows = everything(store)
        assert len(rows) == 8
        digest = store.snapshot(toggles[0]).definition
        filters: list[dict[str, Any]] = [
            {"state": state, "subject_ref": subject, "definition": definition}
            for state in (None, "testing", "sampled", "off", "nowhere")
            for subject in (None, "x", "y", "z", "X", "%", "_")
            for definition in (None, digest, "nothing")
        ]
        for filter_ in filters:
            due = [
                row
                for row in rows
                if all(getattr(row, key) == value for key, value in filter_.items() if value)
            ]
            assert store.instances(**filter_) == due, filter_
        in_testing = store.instances(definition=BATCH, state="testing")
        assert {row.id for row in in_testing} == {*batches[:2]}
        assert store.instances(definition={**TOGGLE, "states": ["on", "off"]}) == []

    def test_a_filter_by_state_follows_the_moves(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        for state in ("off", "on", "off"):
            assert [row.id for row in store.instances(state=state)] == [id]
            assert store.instances(state="on" if state == "off" else "off") == []
            store.fire(id, "go")

    def test_a_filtered_list_goes_on_from_page_to_page(self, store: Verbs) -> None:
        births = [Birth(subject_ref=["x", "y"][n % 2]) for n in range(20)]
        ids = begin(store, TOGGLE, births)
        filters: list[dict[str, Any]] = [
            {"subject_ref": "x"},
            {"definition": TOGGLE},
            {"state": "off"},
        ]
        for how in filters:
            found: list[str] = []
            while page := store.instances(limit=3, after=found[-1] if found else None, **how):
                assert len(page) <= 3
                found += [row.id for row in page]
            assert found == sorted(ids[::2] if "subject_ref" in how else ids)

    def test_a_malformed_filter_of_instances_is_refused_by_name(self, store: Verbs) -> None:
        for argument in ("state", "subject_ref", "definition", "after"):
            for value in ("", " ", 7, b"x", ["x"], "a\0b", "\ud800", "x" * 1025):
                told = refusal(InvalidRequest, store.instances, **{argument: value})
                assert told.argument == argument, value
        refusal(InvalidDeclaration, store.instances, definition={"states": []})
