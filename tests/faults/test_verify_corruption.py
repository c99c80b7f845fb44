"""What somebody with the file in hand can do to the records, and what `verify` says of it.

Each corruption is a function whose name says what is done. It is done to a healthy file with the
triggers dropped; then the whole store is verified, and the instance by itself, with pages so small
that they end everywhere. What is found is named exactly: instance, entry, invariant; nothing is
said of any other instance.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import interlock
from interlock import Fire
from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.record import Genesis, payload_digest
from interlock.core.record import genesis_digest as digest_of_genesis
from interlock.core.rejection import NotKnown
from interlock.store import verify
from interlock.store.verify import Report
from tests.support.machines import BATCH
from tests.support.tampering import (
    LONG,
    TABLES,
    TWIN,
    File,
    Found,
    bounded,
    copy_healthy,
    found,
    healthy,
    tampered,
    tampering,
)

PAGES = [2, 3, 4, 5, 7, 2000]

FIELDS = {
    "transition_id": "forged",
    "actor_ref": "mallory",
    "fired_at": 1_800_000_000_000_000,
    "correlation_id": "other",
    "causation_id": "other",
    "worker_id": "other",
    "idempotency_key": "other",
    "request_digest": b"x" * 32,
}


class Case(NamedTuple):
    """A corruption and what is to be found; `alone`: whether by the instance alone as well."""

    tamper: Callable[[File], None]
    found: tuple[Found, ...]
    alone: bool


CASES: dict[str, Case] = {}


def finds(
    *found: Found, alone: bool = True
) -> Callable[[Callable[[File], None]], Callable[[File], None]]:
    def register(tamper: Callable[[File], None]) -> Callable[[File], None]:
        name = tamper.__name__.replace("_", " ")
        assert name not in CASES
        CASES[name] = Case(tamper, found, alone)
        return tamper

    return register


# Where the instance says it stands


@finds(("long", None, 7))
def current_state_to_another_declared_state(file: File) -> None:
    file.set_instance("long", current_state="off")


@finds(("long", None, 2), ("long", None, 7))
def current_state_to_an_undeclared_state(file: File) -> None:
    file.set_instance("long", current_state="melted")


@finds(("new", None, 7))
def current_state_of_an_instance_without_entries(file: File) -> None:
    file.set_instance("new", current_state="testing")


@finds(("long", None, 5))
def next_number_raised(file: File) -> None:
    file.set_instance("long", next_sequence_number=LONG + 2)


@finds(("long", None, 6))
def next_number_lowered(file: File) -> None:
    file.set_instance("long", next_sequence_number=LONG)


@finds(("new", None, 5))
def next_number_of_an_instance_without_entries(file: File) -> None:
    file.set_instance("new", next_sequence_number=5)


@finds(("new", None, 6))
def next_number_nought(file: File) -> None:
    file.set_instance("new", next_sequence_number=0)


@finds(("long", LONG, 5))
def head_digest(file: File) -> None:
    file.set_instance("long", head_digest=b"x" * 32)


@finds(("blank-2", None, 5))
def head_digest_of_an_instance_without_entries(file: File) -> None:
    file.set_instance("blank-2", head_digest=b"")


@finds(("last", 4, 5), ("keyed", None, 5))
def head_digests_exchanged(file: File) -> None:
    one, other = file.instance("last")["head_digest"], file.instance("keyed")["head_digest"]
    file.set_instance("last", head_digest=other)
    file.set_instance("keyed", head_digest=one)


# Entries that are gone, or too many


@finds(("long", 13, 5))
def an_entry_deleted_in_the_middle(file: File) -> None:
    file.remove_entries("long", 12, 12)


@finds(("long", 13, 5))
def several_entries_deleted_in_the_middle(file: File) -> None:
    file.remove_entries("long", 6, 12)


@finds(("long", 2, 5))
def the_first_entry_deleted(file: File) -> None:
    file.remove_entries("long", 1, 1)


@finds(("long", 2, 5), ("long", 5, 5), ("long", 10, 5))
def entries_deleted_here_and_there(file: File) -> None:
    for number in (1, 4, 8, 9):
        file.remove_entries("long", number, number)


@finds(("long", None, 5), ("long", None, 7))
def tail_cut_and_the_row_left(file: File) -> None:
    file.remove_entries("long", 21)


@finds(("last", None, 5))
def every_entry_deleted_and_the_row_left(file: File) -> None:
    file.remove_entries("last", 1)


@finds(("long", 30, 5), ("long", None, 6))
def last_entry_moved_up(file: File) -> None:
    file.set_entry("long", LONG, sequence_number=30)


@finds(("last", 0, 6), ("last", 1, 5), ("last", 1, 7))
def an_entry_before_the_first(file: File) -> None:
    file.insert("history", {**file.entry("last", 1), "sequence_number": 0, "transition_id": "x"})


@finds(("long", 6, 6))
def a_number_twice(file: File) -> None:
    file.loosen("history")
    file.insert("history", {**file.entry("long", 6), "transition_id": "x"})


@finds(("long", 6, 6), ("long", 6, 9))
def an_entry_twice(file: File) -> None:
    file.loosen("history")
    file.insert("history", file.entry("long", 6))


@finds(*(("last", number, 6) for number in (1, 2, 3, 4)))
def every_entry_twice_under_other_ids(file: File) -> None:
    file.loosen("history")
    for entry in file.entries("last"):
        file.insert("history", {**entry, "transition_id": f"x-{entry['sequence_number']}"})


@finds(("keyed", 1, 5), ("keyed", None, 6), ("keyed", None, 7))
def an_entry_copied_to_another_instance(file: File) -> None:
    file.insert(
        "history",
        {**file.entry("last", 1), "instance_id": file.names["keyed"], "root": file.names["keyed"]},
    )


@finds(("long", 12, 5), ("long", 13, 5), ("long", None, 10), alone=False)
def an_entry_filed_under_another_root(file: File) -> None:
    file.set_entry("long", 12, root="elsewhere")


@finds(("long", 13, 5), (None, None, 10))
def an_entry_given_to_another_tenant(file: File) -> None:
    file.set_entry("long", 12, tenant="other")


# Entries that were altered


@finds(("twin", 2, 3), ("twin", 2, 5), ("twin", 2, 7))
def from_state(file: File) -> None:
    file.set_entry("twin", 2, from_state="sampled")


@finds(("ended", 1, 3), ("ended", 1, 5), ("ended", 2, 7))
def to_state(file: File) -> None:
    file.set_entry("ended", 1, to_state="rejected")


@finds(("last", 4, 3), ("last", 4, 5), ("last", None, 7))
def to_state_of_the_last_entry(file: File) -> None:
    file.set_entry("last", 4, to_state="on")


@finds(("under-way", 1, 3), ("under-way", 1, 5))
def action(file: File) -> None:
    file.set_entry("under-way", 1, action="release")


@finds(("long", 13, 5))
def actor_removed(file: File) -> None:
    file.set_entry("long", 13, actor_ref=None)


@finds(("long", 12, 5))
def actor_added(file: File) -> None:
    file.set_entry("long", 12, actor_ref="mallory")


@finds(("long", 13, 5), ("long", 13, 9))
def actor_blank(file: File) -> None:
    file.set_entry("long", 13, actor_ref=" \t")


@finds(("long", 12, 5), ("long", 12, 9))
def actor_empty_where_there_was_none(file: File) -> None:
    file.set_entry("long", 12, actor_ref="")


@finds(("last", 1, 5), ("last", 1, 9))
def dated_before_the_birth(file: File) -> None:
    file.set_entry("last", 1, fired_at=file.instance("last")["instantiated_at"] - 1)


@finds(("last", 1, 5))
def dated_at_the_birth(file: File) -> None:
    file.set_entry("last", 1, fired_at=file.instance("last")["instantiated_at"])


@finds(("ended", 2, 5), ("ended", 2, 8))
def guard_removed(file: File) -> None:
    file.set_entry("ended", 2, guard_satisfied=None)


@finds(("ended", 2, 5), ("ended", 2, 8))
def guard_denied(file: File) -> None:
    file.set_entry("ended", 2, guard_satisfied=0)


@finds(("long", 3, 5), ("long", 3, 8))
def guard_recorded_where_none_is_declared(file: File) -> None:
    file.set_entry("long", 3, guard_satisfied=1)


@finds(("long", 4, 5), ("long", 4, 8))
def guard_denied_where_none_is_declared(file: File) -> None:
    file.set_entry("long", 4, guard_satisfied=0)


@finds(("long", 5, 5), ("long", 5, 9))
def transition_id_blank(file: File) -> None:
    file.set_entry("long", 5, transition_id="")


@finds(("long", 9, 5), ("long", 9, 9))
def transition_id_of_an_earlier_entry(file: File) -> None:
    file.set_entry("long", 9, transition_id=file.entry("long", 2)["transition_id"])


@finds(("long", 5, 5), ("long", 6, 5))
def entry_digest(file: File) -> None:
    file.set_entry("long", 5, entry_digest=b"x" * 32)


@finds(("last", 4, 5), ("last", 4, 5))
def entry_digest_of_the_last_entry(file: File) -> None:
    file.set_entry("last", 4, entry_digest=b"x" * 32)


@finds(("long", 5, 5), ("long", 5, 7), ("long", 6, 5), ("long", 7, 5), ("long", 7, 7))
def neighbours_exchanged(file: File) -> None:
    file.set_entry("long", 5, sequence_number=1000)
    file.set_entry("long", 6, sequence_number=5)
    file.set_entry("long", 1000, sequence_number=6)


@finds(("long", 5, 5), ("long", 6, 5), ("long", 17, 5), ("long", 18, 5))
def entries_of_one_move_exchanged(file: File) -> None:
    file.set_entry("long", 5, sequence_number=1000)
    file.set_entry("long", 17, sequence_number=5)
    file.set_entry("long", 1000, sequence_number=17)


# Entries made by a clever forger, who makes every digest anew


@finds(("under-way", 2, 3))
def undeclared_entry_appended(file: File) -> None:
    file.append("under-way", "escape", "released")


@finds(("under-way", 2, 8))
def guarded_entry_appended_without_its_guard(file: File) -> None:
    file.append("under-way", "release", "released")


@finds(("ended", 3, 3), ("ended", 3, 4))
def entry_appended_after_a_terminal_state(file: File) -> None:
    file.append("ended", "reopen", "testing")


@finds(("twin-ended", 3, 3), ("twin-ended", 3, 4), ("twin-ended", None, 2))
def entry_appended_to_an_unknown_state(file: File) -> None:
    file.append("twin-ended", "vanish", "nowhere")


@finds(("last", 5, 7))
def entry_appended_that_starts_elsewhere(file: File) -> None:
    file.append("last", "go", "off", from_state="on")


@finds(("last", 5, 9))
def entry_appended_with_the_id_of_another(file: File) -> None:
    file.append("last", "go", "on", transition_id=file.entry("last", 2)["transition_id"])


@finds(("last", 5, 9))
def entry_appended_with_a_blank_actor(file: File) -> None:
    file.append("last", "go", "on", actor_ref="\u3000")


@finds(("last", 5, 9))
def entry_appended_with_a_date_before_the_birth(file: File) -> None:
    file.append("last", "go", "on", fired_at=0)


@finds(("last", 7, 5))
def entry_appended_with_a_number_left_out(file: File) -> None:
    file.append("last", "go", "on", sequence_number=7)


@finds(("long", 12, 8))
def guard_recorded_in_the_middle(file: File) -> None:
    file.set_entry("long", 12, guard_satisfied=1)
    file.forge("long")


@finds(("long", 12, 3), ("long", 13, 7))
def detour_in_the_middle(file: File) -> None:
    file.set_entry("long", 12, to_state="melted")
    file.forge("long")


@finds(("ended", 2, 8))
def moved_to_the_declaration_without_the_guard(file: File) -> None:
    file.set_instance("ended", declaration_digest=file.declaration("twin")["digest"])
    file.forge("ended")


# Instances


@finds(("long", None, 10))
def instance_removed_and_its_history_left(file: File) -> None:
    file.remove_instance("long")


@finds(("ended", None, 10), ("ended", None, 10))
def instance_removed_and_its_history_and_start_key_left(file: File) -> None:
    file.remove_instance("ended")


@finds(("keyed", None, 10), alone=False)
def instance_removed_and_its_start_key_left(file: File) -> None:
    file.remove_instance("keyed")


@finds(
    *((name, None, 10) for name in ("last", "under-way", "long", "purged", "twin", "ended")),
    *((name, None, 10) for name in ("twin-ended", "keyed", "ended")),
)
def every_instance_removed(file: File) -> None:
    file.execute("DELETE FROM instances")


@finds(("purged", None, 10), (None, None, 10))
def an_instance_given_to_another_tenant(file: File) -> None:
    file.set_instance("purged", tenant="other")


@finds(("new", None, 10), alone=False)
def an_instance_filed_under_another_root(file: File) -> None:
    file.set_instance("new", root="elsewhere")


@finds(("last", None, 5), ("last", None, 10), ("last", None, 10), alone=False)
def an_instance_filed_under_another_root_than_its_history(file: File) -> None:
    file.set_instance("last", root="0")


@finds(("long", None, 2))
def an_instance_twice(file: File) -> None:
    file.loosen("instances")
    file.insert("instances", file.instance("long"))


@finds(("new", None, 2))
def an_instance_without_entries_twice(file: File) -> None:
    file.loosen("instances")
    file.insert("instances", file.instance("new"))


@finds(("lost", None, 10), alone=False)
def a_start_key_that_is_empty_for_an_instance_that_never_was(file: File) -> None:
    (row, *_) = file.rows("start_keys")
    file.insert("start_keys", {**row, "idempotency_key": "", "instance_id": "lost"})


@finds(("", None, 10), alone=False)
def an_entry_of_an_instance_with_an_empty_id(file: File) -> None:
    file.insert("history", {**file.entry("last", 1), "root": "", "instance_id": ""})


@finds(("under-way", None, 1))
def another_declaration(file: File) -> None:
    file.set_instance("under-way", declaration_digest=file.declaration("twin")["digest"])


@finds(("ended", None, 1), ("ended", 2, 8))
def another_declaration_without_the_guard(file: File) -> None:
    file.set_instance("ended", declaration_digest=file.declaration("twin")["digest"])


@finds(("twin", None, 1))
def a_declaration_that_is_not_there(file: File) -> None:
    file.set_instance("twin", declaration_digest="0" * 64)


@finds(("new", None, 1))
def time_of_birth(file: File) -> None:
    file.set_instance("new", instantiated_at=0)


@finds(("last", None, 1), ("last", 1, 9), ("last", 2, 9))
def time_of_birth_after_entries(file: File) -> None:
    birth = file.instance("last")["instantiated_at"]
    for number, fired_at in enumerate((birth, birth + 1, birth + 2, birth + 3), 1):
        file.set_entry("last", number, fired_at=fired_at)
    file.forge("last")
    file.set_instance("last", instantiated_at=birth + 2)


@finds(("long", None, 1))
def actor_of_the_birth(file: File) -> None:
    file.set_instance("long", actor_ref="mallory")


@finds(("long", None, 1), ("long", None, 9))
def actor_of_the_birth_blank(file: File) -> None:
    file.set_instance("long", actor_ref=" ")


@finds(("ended", None, 1))
def subject_removed(file: File) -> None:
    file.set_instance("ended", subject_ref=None)


@finds(("new", None, 1), ("new", None, 9))
def subject_empty_where_there_was_none(file: File) -> None:
    file.set_instance("new", subject_ref="")


@finds(("new", None, 1), ("new", None, 5))
def genesis_digest(file: File) -> None:
    file.set_instance("new", genesis_digest=b"x" * 32)


@finds(("last", None, 1), ("last", 1, 5))
def genesis_digest_before_entries(file: File) -> None:
    file.set_instance("last", genesis_digest=b"x" * 32)


@finds(("lost", None, 10), alone=False)
def a_start_key_for_an_instance_that_never_was(file: File) -> None:
    (row, *_) = file.rows("start_keys")
    file.insert("start_keys", {**row, "idempotency_key": "x", "instance_id": "lost"})


@finds(("lost", None, 10), ("keyed", None, 10), ("ended", None, 10), alone=False)
def start_keys_of_instances_that_are_gone(file: File) -> None:
    file.remove_instance("keyed")
    file.change("start_keys", {"instance_id": "lost"}, "idempotency_key = 'birth-1'")


# Times that no calendar has, with every digest right


@finds(("long", 12, 9))
def time_of_an_entry_after_the_year_9999(file: File) -> None:
    file.set_entry("long", 12, fired_at=2**62)
    file.forge("long")


@finds(("new", None, 9))
def time_of_birth_before_the_year_1(file: File) -> None:
    file.set_instance("new", instantiated_at=-(2**62))
    file.forge("new")


# Payloads


@finds(("long", 3, 5))
def reason_that_is_no_json(file: File) -> None:
    payload = file.payload("long", 3)
    file.set_payload("long", 3, content=b"{")
    file.set_entry("long", 3, reason_digest=payload_digest(payload["salt"], b"{"))
    file.forge("long")


@finds(("long", None, 1))
def metadata_that_are_no_json(file: File) -> None:
    payload = file.payload("long")
    file.set_payload("long", content=b"\xff")
    file.set_instance("long", metadata_digest=payload_digest(payload["salt"], b"\xff"))
    file.forge("long")


@finds(("long", 3, 5))
def reason_altered(file: File) -> None:
    file.set_payload("long", 3, content=b'"round 4"')


@finds(("long", 3, 5))
def salt_of_a_reason_altered(file: File) -> None:
    file.set_payload("long", 3, salt=b"x" * 16)


@finds(("long", 3, 5))
def content_of_a_reason_destroyed_and_its_salt_left(file: File) -> None:
    file.set_payload("long", 3, content=None)


@finds(("long", 3, 5))
def salt_of_a_reason_destroyed_and_its_content_left(file: File) -> None:
    file.set_payload("long", 3, salt=None)


@finds(("purged", 1, 5))
def another_reason_in_the_place_of_a_destroyed_one(file: File) -> None:
    file.set_payload("purged", 1, salt=b"x" * 16, content=b'"I was framed"')


@finds(("long", 3, 5))
def row_of_a_reason_removed(file: File) -> None:
    file.execute("DELETE FROM payloads WHERE id = ?", file.payload("long", 3)["id"])


@finds(("purged", 1, 5))
def row_of_a_destroyed_reason_removed(file: File) -> None:
    file.execute("DELETE FROM payloads WHERE id = ?", file.payload("purged", 1)["id"])


@finds(("long", 3, 5), ("long", 3, 5))
def digest_of_a_reason(file: File) -> None:
    file.set_entry("long", 3, reason_digest=b"x" * 32)


@finds(("long", 3, 5))
def reason_altered_with_its_digest_and_the_chain_left(file: File) -> None:
    row = file.payload("long", 6)
    file.set_payload("long", 3, content=row["content"], salt=row["salt"])
    file.set_entry("long", 3, reason_digest=file.entry("long", 6)["reason_digest"])


@finds(("long", 3, 5), ("long", 6, 5))
def reasons_exchanged(file: File) -> None:
    one, other = file.payload("long", 3)["id"], file.payload("long", 6)["id"]
    file.set_entry("long", 3, reason_id=other)
    file.set_entry("long", 6, reason_id=one)


@finds(("long", 3, 5))
def reason_taken_away(file: File) -> None:
    file.set_entry("long", 3, reason_id=None)


@finds(("long", 4, 5))
def reason_lent_to_an_entry_without_one(file: File) -> None:
    file.set_entry("long", 4, reason_id=file.payload("long", 3)["id"])


@finds(("long", 3, 5))
def reason_exchanged_for_a_destroyed_one(file: File) -> None:
    row = file.payload("purged", 1)
    file.change("payloads", {"root": file.names["long"]}, "id = ?", row["id"])
    file.insert("payloads", row)
    file.set_entry("long", 3, reason_id=row["id"])


@finds(("blank", None, 1))
def metadata_altered(file: File) -> None:
    file.set_payload("blank", content=b"[1,2,4]")


@finds(("counted", None, 1))
def metadata_altered_by_moving_bytes_to_the_salt(file: File) -> None:
    row = file.payload("counted")
    assert row["content"] == b"123"
    file.set_payload("counted", salt=row["salt"] + b"1", content=b"23")


@finds(("blank", None, 1))
def row_of_metadata_removed(file: File) -> None:
    file.execute("DELETE FROM payloads WHERE id = ?", file.names["blank"])


@finds(("blank", None, 1), ("blank", None, 1))
def digest_of_metadata(file: File) -> None:
    file.set_instance("blank", metadata_digest=b"x" * 32)


@finds(("blank", None, 1))
def metadata_taken_away(file: File) -> None:
    file.set_instance("blank", metadata_id=None)


@finds(("new", None, 1))
def metadata_lent_to_an_instance_without(file: File) -> None:
    row = file.payload("blank")
    file.insert("payloads", {**row, "root": file.names["new"], "id": file.names["new"]})
    file.set_instance("new", metadata_id=file.names["new"])


@finds()
def metadata_and_reason_lawfully_destroyed(file: File) -> None:
    file.set_payload("long", salt=None, content=None)
    file.set_payload("long", 3, salt=None, content=None)


@finds()
def payload_that_nothing_names(file: File) -> None:
    file.insert("payloads", {**file.payload("blank"), "id": "unnamed"})


# What the records alone cannot tell; an earlier report can (`test_verify_since.py`)


@finds()
def tail_cut_and_the_row_made_to_match(file: File) -> None:
    file.remove_entries("long", 17)
    file.forge("long")


@finds()
def instance_wholly_removed(file: File) -> None:
    file.remove_instance("ended", wholly=True)


@finds()
def birth_forged(file: File) -> None:
    file.set_instance("last", actor_ref="mallory", instantiated_at=0)
    file.forge("last")


for _field, _value in FIELDS.items():

    def _altered(file: File, field: str = _field, value: object = _value) -> None:
        file.set_entry("long", 20, **{field: value})

    _altered.__name__ = f"{_field} of an entry"
    finds(("long", 20, 5))(_altered)


# The tests


@pytest.mark.parametrize("case", CASES)
def test_a_corruption_is_found_where_it_is_and_nowhere_else(
    case: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper, expected, _ = CASES[case]
    with tampered(path, tamper) as store:
        for rows in PAGES:
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            assert (rows, {*found(store.verify(on_page=bounded()))}) == (rows, {*expected})


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case.alone])
def test_a_corruption_is_found_in_the_instance_alone(
    case: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each instance by itself gives its own part of what the whole store gives."""
    tamper, expected, _ = CASES[case]
    with tampered(path, tamper) as store, tampering(path) as file:
        start_keys = {row["instance_id"] for row in file.rows("start_keys")}
        kept = {row["id"] for row in file.rows("instances", "tenant = ''")}
        for rows in PAGES:
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            for name, id in file.names.items():
                own = [entry for entry in expected if entry[0] == name]
                if id not in kept and id in start_keys:
                    own = own[1:]  # the start key is no record of the instance's own
                if id in kept or own:
                    seen = {*found(store.verify(id, on_page=bounded()))}
                    assert (rows, name, seen) == (rows, name, {*own})
                else:
                    with pytest.raises(NotKnown):
                        store.verify(id, on_page=bounded())


# Declarations


@pytest.fixture(scope="module")
def twin_digest() -> str:
    return declaration_digest(declaration_text(TWIN))


def altered_guard(file: File) -> None:
    file.edit_declaration("twin", '"to_state":"released"}', '"to_state":"released","guard":"g"}')


def altered_action(file: File) -> None:
    file.edit_declaration("twin", "send-back", "send-away")


def added_transition(file: File) -> None:
    extra = ',{"from_state":"sampled","action":"skip","to_state":"released"}]'
    file.edit_declaration("twin", "}]", "}" + extra)


def altered_layout(file: File) -> None:
    file.edit_declaration("twin", ":", ": ")


def malformed(file: File) -> None:
    file.edit_declaration("twin", '"to_state":"released"', '"to_state":"nowhere"')


def no_json(file: File) -> None:
    file.loosen("declarations")
    file.edit_declaration("twin", '{"states"', "states")


def no_mapping(file: File) -> None:
    file.loosen("declarations")
    file.change("declarations", {"text": "[]"}, "digest = ?", file.declaration("twin")["digest"])


def other_text(file: File) -> None:
    """Give the row of one declaration the text of another, well-formed one."""
    text = file.declaration("last")["text"]
    file.change("declarations", {"text": text}, "digest = ?", file.declaration("twin")["digest"])


def row_removed(file: File) -> None:
    file.execute("DELETE FROM declarations WHERE digest = ?", file.declaration("twin")["digest"])


def row_of_another_tenant(file: File) -> None:
    file.change(
        "declarations", {"tenant": "other"}, "digest = ?", file.declaration("twin")["digest"]
    )


ALTERED = [
    altered_guard,
    altered_action,
    added_transition,
    altered_layout,
    malformed,
    no_json,
    no_mapping,
    other_text,
    row_removed,
    row_of_another_tenant,
]


@pytest.mark.parametrize("tamper", ALTERED, ids=lambda tamper: tamper.__name__.replace("_", " "))
@pytest.mark.parametrize("rows", PAGES)
def test_a_declaration_that_was_altered_is_found(
    tamper: Callable[[File], None],
    rows: int,
    path: Path,
    twin_digest: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its instances may be named as well: their story is not told by that declaration."""
    monkeypatch.setattr(verify, "PAGE_ROWS", rows)
    with tampered(path, tamper) as store:
        report = store.verify()
    assert {name for name, *_ in found(report)} <= {None, "twin", "twin-ended"}
    about = [finding for finding in report.findings if twin_digest in finding.what]
    assert about
    assert {finding.invariant for finding in about} == {1}


@pytest.mark.parametrize("tamper", ALTERED, ids=lambda tamper: tamper.__name__.replace("_", " "))
def test_an_instance_alone_whose_declaration_was_altered_is_not_sound(
    tamper: Callable[[File], None], path: Path
) -> None:
    with tampered(path, tamper) as store:
        for name, id in healthy()[1].items():
            report = store.verify(id)
            concerned = name in ("twin", "twin-ended")
            assert (name, report.ok) == (name, not concerned)
            if concerned:
                assert 1 in {finding.invariant for finding in report.findings}


def guard_of_a_row(file: File) -> None:
    file.change("declared_transitions", {"guard": None}, "guard IS NOT NULL")


def target_of_a_row(file: File) -> None:
    file.change("declared_transitions", {"to_state": "released"}, "action = 'reject-batch'")


def row_of_a_transition_removed(file: File) -> None:
    file.execute("DELETE FROM declared_transitions WHERE action = 'reject-batch'")


def row_of_a_transition_added(file: File) -> None:
    (row,) = file.rows("declared_transitions", "action = 'reject-batch'")
    file.insert("declared_transitions", {**row, "action": "escape", "ordinal": 3})


def rows_of_transitions_exchanged(file: File) -> None:
    batch = file.declaration("new")["digest"]
    for old, new in ((0, 9), (1, 0), (9, 1)):
        where = "digest = ? AND ordinal = ?"
        file.change("declared_transitions", {"ordinal": new}, where, batch, old)


def ordinal_moved_up(file: File) -> None:
    """The place that comes free would take a transition that nobody declared."""
    batch = file.declaration("new")["digest"]
    file.change("declared_transitions", {"ordinal": 9}, "digest = ? AND ordinal = 2", batch)


def initial_state_as_the_triggers_see_it(file: File) -> None:
    file.loosen("declarations")
    batch = file.declaration("new")["digest"]
    file.change("declarations", {"initial_state": "released"}, "digest = ?", batch)


def count_of_transitions_as_the_triggers_see_it(file: File) -> None:
    file.loosen("declarations")
    batch = file.declaration("new")["digest"]
    file.change("declarations", {"transition_count": 9}, "digest = ?", batch)


@pytest.mark.parametrize(
    "tamper",
    [
        guard_of_a_row,
        target_of_a_row,
        row_of_a_transition_removed,
        row_of_a_transition_added,
        rows_of_transitions_exchanged,
        ordinal_moved_up,
        initial_state_as_the_triggers_see_it,
        count_of_transitions_as_the_triggers_see_it,
    ],
    ids=lambda tamper: tamper.__name__.replace("_", " "),
)
def test_what_the_triggers_read_of_a_declaration_is_compared_with_its_text(
    tamper: Callable[[File], None], path: Path
) -> None:
    with tampered(path, tamper) as store:
        report = store.verify()
    assert found(report) == [(None, None, 1)]
    assert declaration_digest(declaration_text(BATCH)) in report.findings[-1].what


@pytest.mark.parametrize("digest", ["", " ", "0", "\U0010ffff" * 9])
def test_a_declaration_of_the_forgers_own_is_found_whatever_its_name(
    digest: str, path: Path
) -> None:
    """Every other digest is right: the instance names it, and its history obeys it."""

    def tamper(file: File) -> None:
        row = file.declaration("under-way")
        text = row["text"].replace(',"guard":"QP-sign-off"', "")
        file.loosen("declarations")
        file.insert("declarations", {**row, "digest": digest, "text": text})
        for transition in file.rows("declared_transitions", "digest = ?", row["digest"]):
            file.insert("declared_transitions", {**transition, "digest": digest, "guard": None})
        file.set_instance("under-way", declaration_digest=digest)
        file.append("under-way", "release", "released")

    with tampered(path, tamper) as store:
        seen = {*found(store.verify())}
        assert seen
        assert seen <= {(None, None, 1), ("under-way", None, 1)}
        assert {*found(store.verify(healthy()[1]["under-way"]))} == {("under-way", None, 1)}


# The healthy file


def test_a_healthy_file_has_no_findings_wherever_its_pages_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, entries = copy_healthy(path), Counter[str]()
    with tampering(path) as file:
        assert all(file.rows(table) for table in TABLES)
        entries.update(row["instance_id"] for row in file.rows("history"))
    assert list(names.values()) == sorted(names.values())
    with interlock.open(f"sqlite:///{path}") as store:
        for rows in range(2, 50):
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            assert store.verify() == Report(len(names), entries.total(), 0, ())
            for id in names.values():
                assert store.verify(id) == Report(1, entries[id], 0, ())


def test_a_family_is_verified_as_others_are(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The children of an instance stand under its root, and are lost and altered one by one."""
    names, since = copy_healthy(path), tmp_path / "since.json"
    suffixes = ("1", "1.1", "10", "2", "a b", "\u00e9")
    children = [f"{names['blank-2']}.{suffix}" for suffix in suffixes]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        file = File(connection)  # its triggers are in place: to be born so is lawful
        for child in children:
            row = {**file.instance("blank-2"), "id": child}
            digest = digest_of_genesis(Genesis._make(row[field] for field in Genesis._fields))
            file.insert("instances", {**row, "genesis_digest": digest, "head_digest": digest})
    with interlock.open(f"sqlite:///{path}") as store:
        for child in children[:3]:
            store.fire_many([Fire(child, "go", reason="why")] * 3)
        for rows in PAGES:
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            assert store.verify(report=since).ok
            assert store.verify(since=since).instances == len(names) + len(children)
            assert [store.verify(child).entries for child in children] == [3, 3, 3, 0, 0, 0]
        with tampering(path) as file:
            for child in (children[1], children[3]):
                file.execute("DELETE FROM instances WHERE id = ?", child)
            file.execute("UPDATE history SET actor_ref = 'x' WHERE instance_id = ?", children[2])
        expected = {(children[1], None, 10), *((children[2], number, 5) for number in (1, 2, 3))}
        for rows in PAGES:
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            assert {*found(store.verify())} == expected
            assert {*found(store.verify(since=since))} == {*expected, (children[3], None, 10)}
            assert {*found(store.verify(children[1]))} == {(children[1], None, 10)}
            assert store.verify(names["blank-2"]).ok


def test_making_the_digests_of_healthy_instances_anew_changes_nothing(path: Path) -> None:
    copy_healthy(path)
    with tampering(path) as file:
        before = {table: file.rows(table) for table in TABLES}
        for name in file.names:
            file.forge(name)
        assert {table: file.rows(table) for table in TABLES} == before


def test_tables_without_keys_and_types_are_verified_alike(path: Path) -> None:
    with tampered(path, *(partial(File.loosen, table=table) for table in TABLES)) as store:
        assert not found(store.verify())
