"""What holds for events, with hooks, in a caller's own transaction, for every kind of caller.

As `joining.Rules`, for the fixture `joint` of a test module.
"""

import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import machine
from tests.support.joining import Joint

DEFINITION = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a:
    on:
      go: {to: b, set: {n: "data.n + 1"}, do: [note]}
      ask: {to: b, when: {check: noted}}
      set: {set: {n: "data.n + 10"}}
      fail: {to: b, do: [note, fail]}
      end: {to: b, do: [note, end]}
  b: {after: {P1D: late}, on: {go: a}}
  late: {final: true}
""")


@pytest.fixture
def joint_engine(joint: Joint) -> interlock.Engine:
    if not isinstance(joint.store, Store):
        pytest.skip("an engine is synchronous")
    engine = interlock.Engine(joint.store)

    @engine.hook("note")
    def note(tx: interlock.Tx) -> None:
        tx.connection.execute("INSERT INTO notes VALUES ('of the hook')")
        tx.data["n"] += 100

    @engine.guard("noted")
    def noted(tx: interlock.Tx) -> bool:
        found = tx.connection.execute("SELECT text FROM notes").fetchall()
        return len(found) > 0

    @engine.hook("fail")
    def fail(tx: interlock.Tx) -> None:
        raise ValueError("out of stock")

    @engine.hook("end")
    def end(tx: interlock.Tx) -> None:
        tx.connection.commit()

    engine.tick()
    return engine


class EngineRules:
    """What holds for every kind of connection."""

    def test_a_hook_writes_in_the_callers_transaction(
        self, joint: Joint, joint_engine: interlock.Engine
    ) -> None:
        caller = joint.caller
        caller.begin()
        caller.note("mine")
        order = joint_engine.start(DEFINITION, connection=caller.connection)
        assert order.send("go", actor_ref="ann", connection=caller.connection) == "b"
        assert order.snapshot(connection=caller.connection).state == "b"
        assert order.data_at(None, connection=caller.connection) == {"n": 101}
        assert len(order.history(connection=caller.connection)) == 1
        assert order.can("go", connection=caller.connection)
        assert [bool(one) for one in joint_engine.can(order, connection=caller.connection)] == [
            True
        ]
        with pytest.raises(interlock.NotKnown):
            order.snapshot()
        assert joint.watcher.notes() == []
        caller.commit()
        assert (order.state, order.data, len(order.timers)) == ("b", {"n": 101}, 1)
        assert joint.watcher.notes() == ["mine", "of the hook"]
        assert order.history()[0].actor_ref == "ann"
        assert joint.store.verify(order.id).ok

    def test_what_a_hook_wrote_is_rolled_back_with_the_callers(
        self, joint: Joint, joint_engine: interlock.Engine
    ) -> None:
        caller = joint.caller
        order = joint_engine.start(DEFINITION)
        order.send("set")
        caller.begin()
        caller.note("mine")
        assert order.send("go", connection=caller.connection) == "b"
        caller.rollback()
        assert (order.state, order.data, order.timers) == ("a", {"n": 10}, [])
        assert joint.watcher.notes() == []
        assert order.send("set") == "a"
        assert order.data == {"n": 20}
        assert joint.store.verify(order.id).ok

    def test_a_hook_that_fails_undoes_the_event_and_nothing_of_the_callers(
        self, joint: Joint, joint_engine: interlock.Engine
    ) -> None:
        caller = joint.caller
        order = joint_engine.start(DEFINITION)
        caller.begin()
        caller.note("mine")
        with pytest.raises(interlock.HookFailed, match="out of stock"):
            order.send("fail", connection=caller.connection)
        assert order.send("set", connection=caller.connection) == "a"
        caller.note("and mine")
        caller.commit()
        assert (order.state, order.data) == ("a", {"n": 10})
        assert joint.watcher.notes() == ["and mine", "mine"]
        assert joint.store.verify(order.id).ok

    def test_a_guard_sees_what_the_caller_has_not_committed(
        self, joint: Joint, joint_engine: interlock.Engine
    ) -> None:
        caller = joint.caller
        order = joint_engine.start(DEFINITION)
        caller.begin()
        with pytest.raises(interlock.GuardNotSatisfied):
            order.send("ask", connection=caller.connection)
        assert not order.can("ask", connection=caller.connection)
        caller.note("mine")
        assert order.can("ask", connection=caller.connection)
        assert not order.can("ask")
        assert order.send("ask", connection=caller.connection) == "b"
        caller.commit()
        assert order.state == "b"

    def test_a_hook_does_not_end_the_callers_transaction(
        self, joint: Joint, joint_engine: interlock.Engine
    ) -> None:
        caller = joint.caller
        order = joint_engine.start(DEFINITION)
        caller.begin()
        caller.note("mine")
        with pytest.raises(interlock.Rejected):
            order.send("end", connection=caller.connection)
        assert (order.state, len(order.history())) == ("a", 0)
        caller.rollback()
        assert joint.store.verify(order.id).ok
