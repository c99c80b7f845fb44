"""Callers with a transaction of their own, behind one face, and what holds for every kind of them.

A test module says which kinds there are, and its fixture `joint` gives a store with a caller of
each kind; the class `Rules` is then tested for all of them.
"""

import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

import interlock
from interlock.testing import Blocking
from tests.support.machines import BATCH, TOGGLE, Declaration, arrow, declare

MAKE_NOTES = "CREATE TABLE IF NOT EXISTS notes (text TEXT)"


class Undo(Exception):
    """Raised by a test to leave a block of a caller's."""


class Caller(ABC):
    """A program with rows of its own, in the table `notes`, and one connection.

    Attributes:
        connection: what it gives for `connection=`.
    """

    connection: Any

    @abstractmethod
    def execute(self, sql: str) -> list[Any]:
        """Execute a statement, and give its rows."""

    @abstractmethod
    def is_open(self) -> bool:
        """Whether a transaction is open."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def begin(self) -> None:
        """Open a transaction; most kinds need not be told."""
        return

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A savepoint of the caller's, called as no caller should, undone by an error."""
        self.execute("SAVEPOINT interlock")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK TO SAVEPOINT interlock")
            self.execute("RELEASE SAVEPOINT interlock")
            raise
        self.execute("RELEASE SAVEPOINT interlock")

    def note(self, text: str) -> None:
        self.execute(f"INSERT INTO notes VALUES ('{text}')")

    def notes(self) -> list[str]:
        return [only(row) for row in self.execute("SELECT text FROM notes ORDER BY text")]


def only(row: Any) -> str:
    """Give the one value of a row, whatever a caller has rows and texts made into."""
    value = next(iter(row.values())) if isinstance(row, dict) else row[0]
    return value.decode() if isinstance(value, bytes) else str(value)


class Joint(NamedTuple):
    """A store, and a caller with a connection to the same database.

    Attributes:
        store: synchronous, or `Blocking`.
        open_store: opens another handle to it, of the same kind.
        watcher: another caller, who sees what is committed.
    """

    store: Any
    open_store: Callable[..., Any]
    caller: Caller
    watcher: Caller

    def stands(self, id: str) -> tuple[str, int]:
        """Say where an instance stands for everybody, and how many entries it has."""
        return self.store.current(id), len(self.store.history(id))


def fresh_declaration() -> Declaration:
    """Write a declaration that no store has."""
    return declare(["new", f"old-{uuid.uuid4()}"], [arrow("new", "age", "new")])


def refusal_of(call: Callable[[], object]) -> interlock.InvalidRequest:
    """Give the refusal of a connection."""
    with pytest.raises(interlock.InvalidRequest) as caught:
        call()
    assert caught.value.argument == "connection"
    assert str(caught.value).startswith("`connection` ")
    return caught.value


class Rules:
    """What holds for every kind of connection."""

    # Together

    def test_both_are_committed_together(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.begin()
        caller.note("mine")
        assert store.fire(id, "go", actor_ref="ann", connection=caller.connection) == "on"
        assert joint.stands(id) == ("off", 0)
        assert joint.watcher.notes() == []
        caller.commit()
        assert joint.stands(id) == ("on", 1)
        assert joint.watcher.notes() == ["mine"]
        assert store.history(id)[0].actor_ref == "ann"
        assert store.verify(id).ok

    def test_both_are_rolled_back_together(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.begin()
        caller.note("mine")
        store.fire(id, "go", reason="why not", connection=caller.connection)
        caller.rollback()
        assert joint.stands(id) == ("off", 0)
        assert joint.watcher.notes() == []
        assert store.verify(id).ok

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_a_fire_that_is_the_first_statement_is_the_callers_to_commit(
        self, joint: Joint, end: str
    ) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.begin()
        store.fire(id, "go", connection=caller.connection)
        assert joint.stands(id) == ("off", 0)
        getattr(caller, end)()
        assert joint.stands(id) == (("on", 1) if end == "commit" else ("off", 0))

    def test_several_calls_see_each_other_and_nobody_else_sees_them(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        caller.begin()
        joined = {"connection": caller.connection}
        id = store.instantiate(BATCH, subject_ref="B-1", instance_metadata={"a": 1}, **joined)
        store.fire(id, "begin-testing", **joined)
        fires = [interlock.Fire(id, "release", None, True)]
        assert store.fire_many(fires, **joined) == ["released"]
        assert store.current(id, **joined) == "released"
        assert [entry.action for entry in store.history(id, **joined)] == [
            "begin-testing",
            "release",
        ]
        assert store.snapshot(id, **joined).metadata == {"a": 1}
        assert store.snapshot(id, at_sequence=1, **joined).state == "testing"
        assert store.read_declaration(id, **joined) == BATCH
        with pytest.raises(interlock.NotKnown):
            store.current(id)
        caller.commit()
        assert joint.stands(id) == ("released", 2)
        assert store.verify(id).ok

    # Nothing is left

    def test_after_a_rollback_a_plain_call_goes_on_as_if_nothing_had_been(
        self, joint: Joint
    ) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")  # so that the store knows where it stands
        caller.begin()
        store.fire(id, "go", idempotency_key="k", connection=caller.connection)
        store.fire(id, "go", connection=caller.connection)
        caller.rollback()
        assert store.fire(id, "go", idempotency_key="k") == "off"
        caller.begin()
        assert store.fire(id, "go", connection=caller.connection) == "on"
        caller.commit()
        assert store.fire(id, "go") == "off"
        assert joint.stands(id) == ("off", 4)
        assert store.verify(id).ok

    def test_a_birth_that_was_rolled_back_never_was(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        declaration = fresh_declaration()
        key = str(uuid.uuid4())
        how = {"idempotency_key": key, "instance_metadata": {"kept": False}}
        caller.begin()
        gone = store.instantiate(declaration, **how, connection=caller.connection)
        store.fire(gone, "age", connection=caller.connection)
        caller.rollback()
        for read in (store.current, store.history, store.snapshot, store.read_declaration):
            with pytest.raises(interlock.NotKnown):
                read(gone)
        with pytest.raises(interlock.NotKnown):
            store.fire(gone, "age")
        assert store.instances(definition=declaration) == []
        born = store.instantiate(declaration, **how)
        assert born != gone
        assert store.fire(born, "age") == "new"
        caller.begin()
        assert store.instantiate(declaration, **how, connection=caller.connection) == born
        caller.rollback()

    def test_a_key_is_answered_within_the_transaction_and_after_it(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.begin()
        for _ in range(2):
            state = store.fire(id, "go", idempotency_key="k", connection=caller.connection)
            assert state == "on"
        caller.commit()
        assert store.fire(id, "go", idempotency_key="k") == "on"
        assert joint.stands(id) == ("on", 1)

    # A refusal

    def test_a_refused_call_leaves_the_rest_of_the_transaction_intact(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(BATCH)
        joined = {"connection": caller.connection}
        good = interlock.Fire(id, "reject-batch")
        caller.begin()
        caller.note("before")
        store.fire(id, "begin-testing", **joined)
        for call, refusal in (
            (lambda: store.fire(id, "begin-testing", **joined), interlock.InvalidTransition),
            (lambda: store.fire(id, "release", **joined), interlock.GuardNotSatisfied),
            (lambda: store.fire("nobody", "go", **joined), interlock.NotKnown),
            (
                lambda: store.fire(id, "release", None, True, expected_version=7, **joined),
                interlock.VersionConflict,
            ),
            (lambda: store.fire_many([good, good], **joined), interlock.Terminal),
            (lambda: store.fire_many([good, None], **joined), interlock.InvalidRequest),
            (lambda: store.current("nobody", **joined), interlock.NotKnown),
            (lambda: store.history(id, {"who": "ann"}, **joined), interlock.InvalidQuery),
            (lambda: store.snapshot(id, at_sequence=9, **joined), interlock.InvalidRequest),
        ):
            with pytest.raises(refusal):
                call()
            assert store.current(id, **joined) == "testing"
        caller.note("middle")
        store.fire(id, "reject-batch", **joined)
        caller.commit()
        assert joint.stands(id) == ("rejected", 2)
        assert joint.watcher.notes() == ["before", "middle"]
        assert store.verify(id).ok

    def test_a_refused_call_opens_no_transaction(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        caller.begin()
        open_before = caller.is_open()
        for call in (
            lambda: store.fire("nobody", "go", connection=caller.connection),
            lambda: store.current("nobody", connection=caller.connection),
            lambda: store.fire_many([None], connection=caller.connection),
        ):
            with pytest.raises(interlock.Rejected):
                call()
            assert caller.is_open() == open_before
        caller.note("mine")
        caller.commit()
        assert joint.watcher.notes() == ["mine"]

    # Savepoints

    def test_the_callers_savepoints_hold_our_entries_as_its_own_rows(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.begin()
        caller.note("before")
        store.fire(id, "go", connection=caller.connection)
        with suppress(Undo), caller.nested():
            caller.note("undone")
            store.fire(id, "go", connection=caller.connection)
            lost = store.instantiate(fresh_declaration(), connection=caller.connection)
            with pytest.raises(interlock.InvalidTransition):
                store.fire(id, "stop", connection=caller.connection)
            raise Undo
        with pytest.raises(interlock.NotKnown):
            store.current(lost, connection=caller.connection)
        with caller.nested():
            caller.note("kept")
            assert store.fire(id, "go", connection=caller.connection) == "off"
        assert store.fire(id, "go", connection=caller.connection) == "on"
        caller.commit()
        assert joint.stands(id) == ("on", 3)
        assert joint.watcher.notes() == ["before", "kept"]
        assert store.verify(id).ok

    # Tenants

    def test_stores_of_two_tenants_join_one_transaction(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        with joint.open_store(tenant='acme\'s "Ωmega"') as acme:
            joined = {"connection": caller.connection}
            mine, theirs = store.instantiate(TOGGLE), acme.instantiate(TOGGLE)
            caller.begin()
            caller.note("mine")
            for _ in range(2):
                store.fire(mine, "go", **joined)
                acme.fire(theirs, "go", **joined)
            born = acme.instantiate(TOGGLE, **joined)
            for wrong, id in ((store, theirs), (acme, mine), (store, born)):
                with pytest.raises(interlock.NotKnown):
                    wrong.fire(id, "go", **joined)
                with pytest.raises(interlock.NotKnown):
                    wrong.current(id, **joined)
            caller.commit()
            assert joint.stands(mine) == ("off", 2)
            assert (acme.current(theirs), acme.current(born)) == ("off", "off")
            assert acme.verify(theirs).ok

    # What is refused

    def test_a_connection_that_was_closed_is_refused(self, joint: Joint) -> None:
        store, caller = joint.store, joint.caller
        id = store.instantiate(TOGGLE)
        caller.close()
        for call in (
            lambda: store.fire(id, "go", connection=caller.connection),
            lambda: store.current(id, connection=caller.connection),
        ):
            refusal_of(call)
        assert joint.stands(id) == ("off", 0)

    def test_what_is_no_connection_is_refused(self, joint: Joint) -> None:
        id = joint.store.instantiate(TOGGLE)
        stand_in = MagicMock()  # which has every attribute that it is asked for
        posing = MagicMock(spec=sqlite3.Connection)
        for odd in ("sqlite://", b"", 0, False, object(), [], Caller, stand_in, posing):
            refusal = refusal_of(partial(joint.store.fire, id, "go", connection=odd))
            assert "and the store needs" in str(refusal)
        assert joint.stands(id) == ("off", 0)

    def test_a_closed_store_says_so(self, joint: Joint) -> None:
        with joint.open_store() as other:
            other.close()
            joint.caller.begin()
            open_before = joint.caller.is_open()
            for call in (other.fire, other.history):
                with pytest.raises(interlock.StorageFailure) as caught:
                    call("nobody", "go", connection=joint.caller.connection)
                assert caught.value.kind == "closed"
            assert joint.caller.is_open() == open_before


def open_blocking(url: str, **how: Any) -> Blocking:
    return Blocking(lambda: interlock.open_async(url, **how))
