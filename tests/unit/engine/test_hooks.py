"""Hooks and guards in Python: their order, what they are given, and that all stands or falls."""

import sqlite3
import threading
from collections import Counter
from typing import Any

import psycopg
import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import Clock, machine

DEFINITION = machine("""
data: {n: {type: integer, default: 0}, note: {type: string, optional: true}}
events: {go: {by: {type: integer, default: 1}}}
initial: a
states:
  a:
    on_enter: [enter_a]
    on_exit: [exit_a]
    on: {go: {to: b.inner, set: {n: "data.n + event.by"}, do: [move], when: {check: ready}}}
  b:
    initial: inner
    on_enter: [enter_b]
    on_exit: [exit_b]
    states: {inner: {on_enter: [enter_inner], on_exit: [exit_inner], on: {back: a}}}
""")
NAMES = ["enter_a", "exit_a", "move", "enter_b", "exit_b", "enter_inner", "exit_inner"]


class Calls:
    """Hooks that note what they are given, and a guard that says yes."""

    def __init__(self, engine: interlock.Engine) -> None:
        self.seen: list[tuple[str, interlock.Tx]] = []
        for name in NAMES:
            engine.hook(name)(lambda tx, name=name: self.seen.append((name, tx)))
        engine.guard("ready")(self._ready)

    def _ready(self, tx: interlock.Tx) -> bool:
        self.seen.append(("ready", tx))
        return True

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.seen]


def test_hooks_are_called_in_the_order_of_the_move(engine: interlock.Engine) -> None:
    calls = Calls(engine)
    order = engine.start(DEFINITION)
    assert calls.names == ["enter_a"]
    calls.seen.clear()
    order.send("go")
    assert calls.names == ["ready", "exit_a", "move", "enter_b", "enter_inner"]
    calls.seen.clear()
    order.send("back")
    assert calls.names == ["exit_inner", "exit_b", "enter_a"]


def test_a_hook_is_given_the_move(engine: interlock.Engine, clock: Clock) -> None:
    calls = Calls(engine)
    order = engine.start(DEFINITION)
    order.send("go", {"by": 2}, actor_ref="ann")
    seen = dict(calls.seen)
    for name, n in (("exit_a", 0), ("move", 2), ("enter_b", 2)):
        tx = seen[name]
        assert (tx.id, tx.actor, tx.now, tx.event) == (order.id, "ann", clock(), {"by": 2})
        assert (tx.from_state, tx.action, tx.to_state) == ("a", "go/b.inner", "b.inner")
        assert tx.data["n"] == n
    begun = seen["enter_a"]
    assert (begun.from_state, begun.action, begun.to_state) == (None, None, "a")


def test_what_hooks_change_is_recorded_with_the_entry(engine: interlock.Engine) -> None:
    calls = Calls(engine)
    order = engine.start(DEFINITION)
    other = interlock.Engine(engine.store)
    for name in NAMES:
        other.hook(name)(lambda tx, name=name: tx.data.__setitem__("note", name))
    other.guard("ready")(lambda tx: True)
    twin = other.get(order.id)
    twin.send("go", {"by": 5})
    assert twin.data == {"n": 5, "note": "enter_inner"}
    twin.send("back")
    assert [twin.data_at(number) for number in range(3)] == [
        {"n": 0},
        {"n": 5, "note": "enter_inner"},
        {"n": 5, "note": "enter_a"},
    ]
    assert calls.names == ["enter_a"]


@pytest.mark.parametrize("name", [*NAMES[1:4], "enter_inner"])
def test_a_hook_that_raises_undoes_everything(
    engine: interlock.Engine, store: Store, name: str
) -> None:
    Calls(engine)
    order = engine.start(DEFINITION)
    other = interlock.Engine(store)
    for each in NAMES:
        other.hook(each)(_broken if each == name else lambda tx: tx.data.update(n=9))
    other.guard("ready")(lambda tx: True)
    with pytest.raises(interlock.HookFailed, match="no more ink") as caught:
        other.get(order.id).send("go")
    assert (caught.value.reason, caught.value.hook) == ("hook-failed", name)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (order.state, order.data, order.history()) == ("a", {"n": 0}, [])
    order.send("go")
    assert store.verify().ok


def _broken(tx: interlock.Tx) -> None:
    raise RuntimeError("no more ink")


def test_a_start_whose_hook_raises_begins_nothing(engine: interlock.Engine, store: Store) -> None:
    for name in NAMES:
        engine.hook(name)(_broken)
    engine.guard("ready")(lambda tx: True)
    with pytest.raises(interlock.HookFailed):
        engine.start(DEFINITION)
    assert store.instances() == []


@pytest.mark.parametrize("value", [{"n": "1"}, {"n": 1.5}, {}, {"n": 1, "other": 2}, {"n": 2**63}])
def test_what_a_hook_leaves_has_to_be_as_declared(
    engine: interlock.Engine, value: dict[str, Any]
) -> None:
    definition = machine("""
data: {n: {type: integer}}
initial: a
states: {a: {on: {go: {do: [alter]}}}}
""")

    @engine.hook("alter")
    def alter(tx: interlock.Tx) -> None:
        tx.data = value

    order = engine.start(definition, {"n": 1})
    with pytest.raises(interlock.HookFailed, match="not as declared"):
        order.send("go")
    assert (order.data, order.history()) == ({"n": 1}, [])


def test_what_a_hook_writes_is_committed_with_the_move(
    engine: interlock.Engine, store: Store
) -> None:
    definition = machine("""
initial: a
states: {a: {on: {go: {do: [write]}, fail: {do: [write, fail]}}}}
""")

    @engine.hook("write")
    def write(tx: interlock.Tx) -> None:
        tx.connection.execute("INSERT INTO shipments VALUES ('x')")

    engine.hook("fail")(_broken)
    order = engine.start(definition)
    plain = interlock.Engine(store)
    plain.hook("write")(lambda tx: tx.connection.execute("CREATE TABLE shipments (name TEXT)"))
    plain.get(order.id).send("go")
    order.send("go")
    with pytest.raises(interlock.HookFailed):
        order.send("fail")
    counted: list[int] = []
    looks = interlock.Engine(store)
    looks.hook("write")(
        lambda tx: counted.extend(
            tx.connection.execute("SELECT count(*) FROM shipments").fetchone()
        )
    )
    looks.get(order.id).send("go")
    assert counted == [1]


def test_a_hook_sees_the_state_that_was_entered(engine: interlock.Engine, url: str) -> None:
    definition = machine("""
initial: a
states: {a: {on_exit: [look], on: {go: b}}, b: {on_enter: [look]}}
""")
    seen = []
    table = f"{url.partition('schema=')[2] or 'main'}.instances"

    @engine.hook("look")
    def look(tx: interlock.Tx) -> None:
        seen.extend(tx.connection.execute(f"SELECT current_state FROM {table}").fetchone())

    engine.start(definition).send("go")
    assert seen == ["a", "b"]


@pytest.mark.parametrize("how", ["commit", "rollback", "COMMIT", "ROLLBACK"])
def test_a_hook_must_not_end_the_transaction(
    engine: interlock.Engine, store: Store, how: str
) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, do: [end]}}}, b: {}}")

    @engine.hook("end")
    def end(tx: interlock.Tx) -> None:
        getattr(tx.connection, how, lambda: tx.connection.execute(how))()

    order = engine.start(definition)
    with pytest.raises(interlock.Rejected, match="must not"):
        order.send("go")
    assert (order.state, order.history()) == ("a", [])
    assert store.verify().ok


def test_a_plain_fire_in_a_hook_is_refused_at_once(engine: interlock.Engine, store: Store) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, do: [fire]}}}, b: {}}")
    toggle = {
        "states": ["off", "on"],
        "transitions": [{"from_state": "off", "action": "go", "to_state": "on"}],
        "initial_state": "off",
        "terminal_states": [],
    }
    other = store.instantiate(toggle)
    engine.hook("fire")(lambda tx: store.fire(other, "go"))
    order = engine.start(definition)
    with pytest.raises(interlock.HookFailed, match=r"tx\.fire"):
        order.send("go")
    assert (order.state, store.current(other)) == ("a", "off")


@pytest.mark.parametrize("fails", [False, True])
def test_a_hook_fires_another_instance_within_its_transaction(
    engine: interlock.Engine, store: Store, fails: bool
) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, do: [fire]}}}, b: {}}")
    toggle = {
        "states": ["off", "on"],
        "transitions": [{"from_state": "off", "action": "go", "to_state": "on"}],
        "initial_state": "off",
        "terminal_states": [],
    }
    other = store.instantiate(toggle)

    @engine.hook("fire")
    def fire(tx: interlock.Tx) -> None:
        assert tx.fire(other, "go", actor_ref="ann") == "on"
        if fails:
            raise RuntimeError("after all, no")

    order = engine.start(definition)
    if fails:
        with pytest.raises(interlock.HookFailed):
            order.send("go")
    else:
        order.send("go")
    assert (order.state, store.current(other)) == (("a", "off") if fails else ("b", "on"))
    assert store.verify().ok


def test_a_hook_sends_another_machine_an_event(engine: interlock.Engine) -> None:
    definition = machine("""
initial: a
states: {a: {on: {go: {to: b, do: [pass_on]}, quiet: b}}, b: {}}
""")

    @engine.hook("pass_on")
    def pass_on(tx: interlock.Tx) -> None:
        engine.get(second.id, connection=tx.connection).send("quiet", connection=tx.connection)

    order, second = engine.start(definition), engine.start(definition)
    assert order.send("go") == "b"
    assert second.state == "b"


def test_C05_events_that_hooks_ask_for_follow_one_another(engine: interlock.Engine) -> None:
    definition = machine("""
initial: first
states:
  first: {on: {go: second}}
  second: {on_enter: [more], on: {go: third}}
  third: {on_enter: [more], on: {go: fourth}}
  fourth: {final: true}
""")
    depth = []

    @engine.hook("more")
    def more(tx: interlock.Tx) -> None:
        depth.append(len(threading.current_thread().name))
        tx.fire("go")

    order = engine.start(definition)
    assert order.send("go", actor_ref="ann") == "fourth"
    entries = order.history()
    assert [entry.to_state for entry in entries] == ["second", "third", "fourth"]
    assert [entry.actor_ref for entry in entries] == ["ann"] * 3
    assert {entry.causation_id for entry in entries[1:]} == {entries[0].transition_id}


def test_C05_a_hook_that_asks_for_ever_stops_at_the_cap(store: Store) -> None:
    engine = interlock.Engine(store, steps_max=10)
    definition = machine("initial: a\nstates: {a: {on: {go: {to: a, do: [more]}}}}")
    calls = Counter[str]()

    @engine.hook("more")
    def more(tx: interlock.Tx) -> None:
        calls["more"] += 1
        tx.fire("go")

    order = engine.start(definition)
    with pytest.raises(interlock.StepLimit) as caught:
        order.send("go")
    assert (caught.value.reason, caught.value.steps, calls["more"]) == ("step-limit", 10, 10)
    assert (order.state, order.history()) == ("a", [])


def test_an_event_that_a_hook_asks_for_has_to_be_taken(engine: interlock.Engine) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, do: [more]}}}, b: {}}")
    engine.hook("more")(lambda tx: tx.fire("nope"))
    order = engine.start(definition)
    with pytest.raises(interlock.InvalidTransition):
        order.send("go")
    assert order.state == "a"


def test_an_event_that_is_raised_is_passed_over_where_nothing_waits(
    engine: interlock.Engine,
) -> None:
    definition = machine("""
initial: a
states:
  a: {on: {go: {to: b, do: [{raise: more}, {raise: again}]}}}
  b: {on: {again: c}}
  c: {on: {more: a}}
""")
    order = engine.start(definition)
    assert order.send("go") == "c"
    assert [entry.action for entry in order.history()] == ["go", "again"]


def test_a_hook_sends_a_payload_on(engine: interlock.Engine) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}}
events: {add: {by: {type: integer}}}
initial: a
states: {a: {on: {go: {to: b, do: [more]}}}, b: {on: {add: {set: {n: "data.n + event.by"}}}}}
""")
    engine.hook("more")(lambda tx: tx.fire("add", {"by": 7}))
    order = engine.start(definition)
    assert order.send("go") == "b"
    assert order.data == {"n": 7}


def test_B05_a_guard_is_asked_once_for_each_candidate(engine: interlock.Engine) -> None:
    definition = machine("""
initial: a
states:
  a:
    on:
      go:
        order: first-match
        branches:
          - {to: b, when: {check: one}}
          - {to: c, when: {check: two}}
          - {to: d, when: {check: three}}
  b: {}
  c: {}
  d: {}
""")
    calls = Counter[str]()

    def guard(name: str, answer: bool) -> None:
        @engine.guard(name)
        def asked(tx: interlock.Tx) -> bool:
            calls[name] += 1
            return answer

    guard("one", False)
    guard("two", True)
    guard("three", True)
    order = engine.start(definition)
    assert order.send("go") == "c"
    assert calls["two"] == 1
    assert max(calls.values()) == 1
    calls.clear()
    order.history()
    assert order.data == {}
    assert not calls  # nor on replay


@pytest.mark.parametrize("answer", [None, 1, "yes", "", 0, object()])
def test_B01_a_guard_says_true_or_false_and_nothing_else(
    engine: interlock.Engine, answer: Any
) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, when: {check: odd}}}}, b: {}}")
    engine.guard("odd")(lambda tx: answer)
    order = engine.start(definition)
    with pytest.raises(interlock.GuardError) as caught:
        order.send("go")
    assert (caught.value.reason, caught.value.guard) == ("guard-error", "odd")
    assert order.history() == []


def test_B01_a_guard_that_raises_is_an_error(engine: interlock.Engine) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, when: {check: odd}}}}, b: {}}")
    engine.guard("odd")(_broken)
    order = engine.start(definition)
    with pytest.raises(interlock.GuardError, match="no more ink") as caught:
        order.send("go")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert order.state == "a"


def test_C08_a_name_has_one_function(engine: interlock.Engine) -> None:
    Calls(engine)
    with pytest.raises(interlock.InvalidRequest, match="another hook"):
        engine.hook("move")(lambda tx: None)
    with pytest.raises(interlock.InvalidRequest):
        engine.hook("")(lambda tx: None)
    with pytest.raises(interlock.InvalidRequest):
        engine.guard("x")("no function")  # type: ignore[type-var]


def test_a_definition_whose_names_are_not_registered_is_refused_at_start(
    engine: interlock.Engine, store: Store
) -> None:
    engine.hook("enter_aa")(lambda tx: None)
    with pytest.raises(interlock.InvalidRequest) as caught:
        engine.start(DEFINITION)
    for name in [*NAMES, "ready"]:
        assert f"`{name}`" in str(caught.value)
    assert "did you mean `enter_aa`?" in str(caught.value)
    assert store.instances() == []


def test_a_hook_does_not_move_its_own_instance_under_its_feet(engine: interlock.Engine) -> None:
    definition = machine("""
initial: a
states: {a: {on: {go: {to: b, do: [again]}, other: c}}, b: {on: {other: c}}, c: {}}
""")

    @engine.hook("again")
    def again(tx: interlock.Tx) -> None:
        engine.get(tx.id, connection=tx.connection).send("other", connection=tx.connection)

    order = engine.start(definition)
    with pytest.raises(interlock.HookFailed, match=r"tx\.fire"):
        order.send("go")
    assert (order.state, order.history()) == ("a", [])


def test_nobody_asserts_a_label_for_what_is_raised_or_automatic(engine: interlock.Engine) -> None:
    definition = machine("""
initial: a
states:
  a: {on: {go: {to: b, do: [{raise: more}]}}}
  b: {on: {more: {to: c, guard: QP}}, always: {to: c, guard: QP}}
  c: {}
""")
    order = engine.start(definition)
    assert order.send("go", asserting=["QP"]) == "b"
    assert [entry.action for entry in order.history()] == ["go"]
    assert order.send("more", asserting=["QP"]) == "c"


def test_what_is_awaited_is_no_hook(engine: interlock.Engine) -> None:
    async def later(tx: interlock.Tx) -> None:
        raise AssertionError("never called")

    with pytest.raises(interlock.InvalidRequest, match="not async"):
        engine.hook("later")(later)
    with pytest.raises(interlock.InvalidRequest, match="not async"):
        engine.guard("later")(later)
    definition = machine("initial: a\nstates: {a: {on: {go: {to: b, do: [later]}}}, b: {}}")
    engine.hook("later")(lambda tx: later(tx))
    order = engine.start(definition)
    with pytest.raises(interlock.HookFailed, match="asynchronous"):
        order.send("go")
    assert order.state == "a"


def test_a_hook_may_undo_a_part_of_what_it_does_again_and_again(
    engine: interlock.Engine, store: Store
) -> None:
    """Psycopg lets prepared statements go when something was rolled back, and ours with them."""
    definition = machine("""
initial: a
states: {a: {on: {make: {do: [make]}, go: {do: [insert]}}}}
""")
    engine.hook("make")(lambda tx: tx.connection.execute("CREATE TABLE once (id TEXT UNIQUE)"))

    @engine.hook("insert")
    def insert(tx: interlock.Tx) -> None:
        for _ in range(4):
            tx.connection.execute("SAVEPOINT mine")
            try:
                tx.connection.execute("INSERT INTO once VALUES ('k')")
            except (sqlite3.IntegrityError, psycopg.errors.UniqueViolation):
                tx.connection.execute("ROLLBACK TO SAVEPOINT mine")
            tx.connection.execute("RELEASE SAVEPOINT mine")
            tx.connection.execute("CREATE TABLE other (id TEXT)")
            tx.connection.execute("DROP TABLE other")

    order = engine.start(definition)
    order.send("make")
    for _ in range(6):
        assert order.send("go") == "a"
    assert len(order.history()) == 7
    assert store.verify().ok


@pytest.mark.parametrize("data", [[], None, "x", 3])
def test_a_hook_leaves_a_dict(engine: interlock.Engine, data: Any) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: {do: [spoil]}}}}")

    @engine.hook("spoil")
    def spoil(tx: interlock.Tx) -> None:
        tx.data = data

    order = engine.start(definition)
    if data is None:
        order.send("go")  # nothing was said
    else:
        with pytest.raises(interlock.HookFailed, match="not as a dict"):
            order.send("go")
        assert order.history() == []


def test_a_guard_does_not_move_its_own_instance(engine: interlock.Engine) -> None:
    definition = machine("""
initial: a
states: {a: {on: {go: {to: b, when: {check: move}}, other: b}}, b: {}}
""")

    @engine.guard("move")
    def move(tx: interlock.Tx) -> bool:
        engine.get(tx.id, connection=tx.connection).send("other", connection=tx.connection)
        return True

    order = engine.start(definition)
    with pytest.raises(interlock.GuardError, match="is being moved"):
        order.send("go")
    assert order.history() == []


def test_no_engine_moves_an_instance_from_within_a_hook_of_its_move(
    engine: interlock.Engine, store: Store
) -> None:
    """Nor does another engine of the same database: the move would go on from where it was."""
    definition = machine(
        "initial: a\nstates: {a: {on: {go: {to: b, do: [move]}, other: b}}, b: {}}"
    )
    other = interlock.Engine(store)
    refusals = []

    def move(tx: interlock.Tx) -> None:
        with pytest.raises(interlock.InvalidRequest, match="is being moved") as caught:
            other.get(tx.id, connection=tx.connection).send("other", connection=tx.connection)
        refusals.append(caught.value)

    for each in (engine, other):
        each.hook("move")(move)
    order = engine.start(definition)
    assert order.send("go") == "b"
    assert len(refusals) == 1
    assert [entry.action for entry in order.history()] == ["go"]


def test_a_hook_is_registered_under_a_name(engine: interlock.Engine) -> None:
    for register in (engine.hook, engine.guard):
        with pytest.raises(interlock.InvalidRequest, match="registered under a name") as caught:
            register(lambda tx: None)  # type: ignore[arg-type]
        assert caught.value.argument == "name"


def test_data_that_a_hook_leaves_wrong_is_told_with_the_action(engine: interlock.Engine) -> None:
    definition = machine(
        "data: {n: {type: integer, default: 0}}\ninitial: a\n"
        "states: {a: {on: {go: {to: b, do: [spoil]}}}, b: {}}"
    )
    engine.hook("spoil")(lambda tx: tx.data.update(n="many"))
    order = engine.start(definition)
    with pytest.raises(interlock.HookFailed, match="nothing was written") as caught:
        order.send("go")
    assert (caught.value.action, caught.value.hook) == ("go", "spoil")


def test_what_a_hook_sets_on_the_connection_does_not_outlive_it(
    engine: interlock.Engine, store: Store, url: str
) -> None:
    if url.startswith("postgresql"):
        pytest.skip("a connection of psycopg has these of its own cursors")
    definition = machine("initial: a\nstates: {a: {on: {go: {do: [alter]}, plain: a}}}")

    @engine.hook("alter")
    def alter(tx: interlock.Tx) -> None:
        tx.connection.row_factory = lambda cursor, row: dict(enumerate(row))
        tx.connection.text_factory = bytes

    order = engine.start(definition)
    for _ in range(3):
        assert order.send("go") == "a"
        assert order.send("plain") == "a"
    assert len(order.history()) == 6
    assert store.verify().ok


def test_a_hook_that_sends_through_another_store_may_still_not_commit(
    engine: interlock.Engine, store: Store, url: str
) -> None:
    """Each store guards the connection that is in hand, whosever it is."""
    if url == "sqlite://":
        pytest.skip("nobody else connects to a store in memory")
    definition = machine(
        "initial: a\nstates: {a: {on: {go: {to: b, do: [send]}, note: {do: [nothing]}}}, b: {}}"
    )
    with interlock.open(url) as other_store:
        other = interlock.Engine(other_store)
        for each in (engine, other):
            each.hook("nothing")(lambda tx: None)

        def send(tx: interlock.Tx) -> None:
            other.get(second.id, connection=tx.connection).send("note", connection=tx.connection)
            tx.connection.commit()

        for each in (engine, other):
            each.hook("send")(send)
        first, second = engine.start(definition), engine.start(definition)
        with pytest.raises(interlock.Rejected):
            first.send("go")
        assert (first.state, first.history(), second.history()) == ("a", [], [])
        assert store.verify().ok
