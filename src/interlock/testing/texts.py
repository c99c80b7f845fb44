"""The contract of text: byte for byte, what is no text refused, sizes bounded."""

import json
from enum import StrEnum
from typing import Any

import pytest

from interlock.core.rejection import (
    InvalidDeclaration,
    InvalidQuery,
    InvalidRequest,
    InvalidTransition,
)
from interlock.core.text import Limits
from interlock.testing.base import (
    TOGGLE,
    Opening,
    Part,
    Verbs,
    arrow,
    declare,
    refusal,
    untouched,
)

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"

# Each is only text, whatever SQL, JSON, formats or Unicode make of it; no two are the same.
TEXTS = [
    "x", "X", "x ", " x", "x\t", "x\n", "x\r\n", "x\u00a0", "x\u200b",
    "'", '"', "`", "\\", "\\u0041", "''; DROP TABLE history; --", "?1", ":id", "@x", "$1",
    "%s", "{0}", "%", "_", "a%b_c", "*", "/", "a.b", "a:b", "a/b", "null", "true", "{}",
    '["a"]', "1", "01", "1.0",
    COMPOSED, DECOMPOSED, "\u212b", "\u00c5", "\ufb01ne", "fine", "stra\u00dfe", "STRASSE",
    "\U0001f469\u200d\U0001f52c", "\U0010ffff", "\u4e2d\u6587", "\u202eright-to-left",
    "\ufeffmarked", "\ufffd", "\ufffe", "\uffff", "\u2028x", "\x01", "\x1b[31m", "\x7f", "\x80",
]  # fmt: skip

NO_TEXTS = ["a\0b", "\0", "a\ud800", "\udfff", "\ud83d"]
BLANKS = ["", " ", "\t", "\n", "\u00a0", "\u2003", "\u2028", " \u3000\r\n"]

REFERENCES = ["actor_ref", "correlation_id", "causation_id", "worker_id"]


class Word(StrEnum):
    GO = "go"


class Texts(Part):
    def test_names_of_a_declaration_are_kept_and_told_apart_byte_for_byte(
        self, store: Verbs
    ) -> None:
        """Round and round: each state is left by an action, under a guard, of the same text."""
        states = TEXTS[1:] + TEXTS[:1]
        rows = [arrow(*pair, name) for pair in zip(TEXTS, TEXTS, states, strict=True)
                for name in [pair[0]]]  # fmt: skip
        machine = declare(TEXTS, rows)
        id = store.instantiate(machine)
        assert json.dumps(store.read_declaration(id)) == json.dumps(machine)
        for text, following in zip(TEXTS, states, strict=True):
            refused = refusal(InvalidTransition, store.fire, id, following)
            assert (refused.state, refused.declared) == (text, [text])
            assert store.fire(id, text, text, guard_satisfied=True) == following
            assert [row.id for row in store.instances(state=following)] == [id]
            assert store.instances(state=text) == []
        history = store.history(id)
        assert [entry.from_state for entry in history] == TEXTS
        assert [entry.action for entry in history] == TEXTS
        for entry in history:
            for key in ("from_state", "action", "actor_ref"):
                assert store.history(id, {key: entry.action}) == [entry]
            assert store.history(id, {"to_state": entry.to_state}) == [entry]
        assert store.verify().ok

    def test_combining_forms_are_not_normalised(self, store: Verbs) -> None:
        machine = declare(
            ["open", COMPOSED, DECOMPOSED],
            [arrow("open", "pay", COMPOSED), arrow("open", "pay ", DECOMPOSED)],
        )
        one, two = store.instantiate(machine), store.instantiate(machine)
        assert store.fire(one, "pay").encode() == COMPOSED.encode()
        assert store.fire(two, "pay ").encode() == DECOMPOSED.encode()
        assert store.current(two).encode() == DECOMPOSED.encode()
        assert [row.id for row in store.instances(state=COMPOSED)] == [one]

    def test_what_is_told_of_a_move_is_kept_byte_for_byte(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        for text in TEXTS:
            store.fire(id, "go", reason=text, **dict.fromkeys(REFERENCES, text))  # type: ignore[arg-type]
        for entry, text in zip(store.history(id), TEXTS, strict=True):
            told = (entry.actor_ref, entry.correlation_id, entry.causation_id, entry.worker_id)
            assert (*told, entry.reason) == (text,) * 5
            assert store.history(id, {"actor_ref": text}) == [entry]

    def test_what_is_told_of_a_birth_is_kept_byte_for_byte(self, store: Verbs) -> None:
        for text in TEXTS:
            id = store.instantiate(TOGGLE, text, text, {text: [text]}, idempotency_key=text)
            now = store.snapshot(id)
            assert (now.actor_ref, now.subject_ref, now.metadata) == (text, text, {text: [text]})
            assert store.instances(subject_ref=text) == [now]

    def test_nul_and_lone_surrogates_are_refused_wherever_there_is_text(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for text in NO_TEXTS:
                for machine in (
                    declare(["a", text], []),
                    declare(["a"], [arrow("a", text, "a")]),
                    declare(["a"], [arrow("a", "x", "a", text)]),
                ):
                    (defect,) = refusal(InvalidDeclaration, store.instantiate, machine).defects
                    assert defect.code == "bad-name"
                for argument in ("actor_ref", "subject_ref", "idempotency_key"):
                    told = refusal(InvalidRequest, store.instantiate, TOGGLE, **{argument: text})
                    assert told.argument == argument
                for metadata in (text, [text], {text: 1}, {"a": {"b": [text]}}):
                    told = refusal(
                        InvalidRequest, store.instantiate, TOGGLE, instance_metadata=metadata
                    )
                    assert told.argument == "instance_metadata"
                assert refusal(InvalidRequest, store.fire, text, "go").argument == "id"
                assert refusal(InvalidRequest, store.fire, id, text).argument == "action"
                for argument in (*REFERENCES, "reason", "idempotency_key"):
                    told = refusal(InvalidRequest, store.fire, id, "go", **{argument: text})
                    assert told.argument == argument
                refusal(InvalidQuery, store.history, id, {"actor_ref": text})
                refusal(InvalidRequest, store.instances, state=text)

    def test_text_without_a_mark_on_paper_is_blank_and_refused(self, store: Verbs) -> None:
        id = store.instantiate(TOGGLE)
        with untouched(store):
            for text in BLANKS:
                refusal(InvalidDeclaration, store.instantiate, declare(["a", text], []))
                refusal(InvalidRequest, store.instantiate, TOGGLE, subject_ref=text)
                for argument in (*REFERENCES, "reason"):
                    told = refusal(InvalidRequest, store.fire, id, "go", **{argument: text})
                    assert told.argument == argument

    def test_text_of_a_subclass_is_its_text(self, store: Verbs) -> None:
        given: Any = {Word.GO: Word.GO}
        id = store.instantiate(TOGGLE, Word.GO, Word.GO, given, idempotency_key=Word.GO)
        store.fire(id, Word.GO, Word.GO, reason=Word.GO)
        now, (entry,) = store.snapshot(id), store.history(id, {"action": Word.GO})
        for text in (now.actor_ref, now.subject_ref, entry.action, entry.actor_ref, entry.reason):
            assert repr(text) == "'go'"
        assert repr(now.metadata) == "{'go': 'go'}"
        assert store.instantiate(TOGGLE, "go", "go", {"go": "go"}, idempotency_key="go") == id

    def test_sizes_are_counted_in_bytes_and_the_largest_is_accepted(self, store: Verbs) -> None:
        limits = Limits()
        for unit in ("x", "\u00e9", "\u4e2d", "\U0001f600"):
            width = len(unit.encode())
            name = unit * (limits.name_bytes // width)
            largest = unit * (limits.reference_bytes // width)
            reason = unit * (limits.reason_bytes // width)
            id = store.instantiate(
                declare([name], [arrow(name, name, name, name)]),
                largest,
                largest,
                idempotency_key=largest,
            )
            how: dict[str, Any] = {**dict.fromkeys(REFERENCES, largest), "reason": reason}
            store.fire(id, name, guard_satisfied=True, idempotency_key=largest, **how)
            assert store.current(id) == name
            (entry,) = store.history(id, {"action": name, "from_state": name, "actor_ref": largest})
            assert (entry.reason, entry.worker_id) == (reason, largest)
            assert [row.id for row in store.instances(subject_ref=largest)] == [id]
            with untouched(store):
                refusal(InvalidDeclaration, store.instantiate, declare([name + unit], []))
                for argument in ("actor_ref", "subject_ref", "idempotency_key"):
                    self._too_large(store.instantiate, TOGGLE, **{argument: largest + unit})
                for argument, value in how.items():
                    self._too_large(store.fire, id, name, guard_satisfied=True,
                                    **{argument: value + unit})  # fmt: skip
                refusal(InvalidRequest, store.fire, largest + unit, "go")
                refusal(InvalidRequest, store.fire, id, largest + unit)

    def _too_large(self, call: Any, *given: Any, **more: Any) -> None:
        told = refusal(InvalidRequest, call, *given, **more)
        assert told.argument in more
        given_size = len(more[told.argument].encode())
        assert str(given_size) in str(told)

    def test_metadata_and_declarations_are_bounded_as_json(self, store: Verbs) -> None:
        limits = Limits()
        largest = "x" * (limits.metadata_bytes - 2)
        id = store.instantiate(TOGGLE, instance_metadata=largest)
        assert store.snapshot(id).metadata == largest
        huge = {**TOGGLE, "states": ["off", "on", *(f"{n:0500}" for n in range(9000))]}
        with untouched(store):
            told = refusal(
                InvalidRequest, store.instantiate, TOGGLE, instance_metadata=f"{largest}x"
            )
            assert told.argument == "instance_metadata"
            (defect,) = refusal(InvalidDeclaration, store.instantiate, huge).defects
            assert defect.code == "budget-exceeded"

    def test_limits_are_those_of_the_handle(self, opening: Opening) -> None:
        limits = Limits(
            name_bytes=3,
            reference_bytes=40,
            reason_bytes=9,
            metadata_bytes=20,
            declaration_bytes=200,
        )
        store = opening(limits=limits)
        id = store.instantiate(TOGGLE, instance_metadata="x" * 18)
        with untouched(store):
            refusal(InvalidDeclaration, store.instantiate, declare(["four"], []))
            refusal(InvalidDeclaration, store.instantiate, declare([f"{n}" for n in range(99)], []))
            refusal(InvalidRequest, store.instantiate, TOGGLE, instance_metadata="x" * 19)
            refusal(InvalidRequest, store.instantiate, TOGGLE, "x" * 41)
            refusal(InvalidRequest, store.fire, id, "go", reason="x" * 10)
            refusal(InvalidQuery, store.history, id, {"actor_ref": "x" * 41})
        store.fire(id, "go", "x" * 40, reason="x" * 9)

    def test_what_is_larger_than_the_limits_of_today_is_read_and_goes_on(
        self, store: Verbs, another: Opening
    ) -> None:
        machine = declare(["four", "five5"], [arrow("four", "go-on", "five5")])
        id = store.instantiate(machine, "a" * 100, instance_metadata="m" * 100)
        store.fire(id, "go-on", reason="r" * 100)
        tight = another(limits=Limits(name_bytes=3, reason_bytes=9, metadata_bytes=9))
        assert tight.read_declaration(id) == machine
        assert tight.history(id) == store.history(id)
        assert tight.snapshot(id) == store.snapshot(id)
        assert tight.verify().ok

    @pytest.mark.parametrize("size", [1, 1000, 60_000])
    def test_a_reason_of_any_size_comes_back(self, store: Verbs, size: int) -> None:
        id = store.instantiate(TOGGLE)
        reason = ("\U0001f600 \\ ' \" \n" * size)[:size]
        limits = Limits()
        if len(reason.encode()) > limits.reason_bytes:
            reason = reason.encode()[: limits.reason_bytes].decode(errors="ignore")
        store.fire(id, "go", reason=reason)
        assert store.history(id)[0].reason == reason
