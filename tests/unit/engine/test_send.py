"""Events: which branch they take, what they change, and why they are refused."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import ORDERS, Clock, machine

ORDER = interlock.loads(ORDERS)


@pytest.fixture
def engine(store: Store) -> interlock.Engine:
    engine = interlock.Engine(store)
    engine.hook("close_bench")(lambda tx: None)
    engine.hook("tell")(lambda tx: None)
    engine.tick()
    return engine


@pytest.fixture
def order(engine: interlock.Engine) -> interlock.Handle:
    return engine.start(ORDER, subject_ref="o-1", actor_ref="ann")


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> interlock.Rejected:
    with pytest.raises(interlock.Rejected) as caught:
        call(*arguments, **named)
    return caught.value


def test_a_case_from_its_start_to_its_end(order: interlock.Handle) -> None:
    assert (order.state, order.data) == ("draft", {"qty": 0, "total": "0.00"})
    state = order.send("submit", {"qty": 12, "price": "2.50"}, actor_ref="ann")
    assert state == order.state == "open.counting"
    assert order.data == {"qty": 12, "total": "5.00"}
    assert order.send("decide") == "open.large"
    assert order.send("ship", asserting=["QP-sign-off"], actor_ref="bob") == "shipped"
    assert order.is_final
    told = [
        (e.from_state, e.action, e.to_state, e.actor_ref, e.guard_satisfied)
        for e in order.history()
    ]
    assert told == [
        ("draft", "submit", "open.counting", "ann", None),
        ("open.counting", "decide/large", "open.large", None, True),
        ("open.large", "ship", "shipped", "bob", True),
    ]
    assert order.definition.leaves("open.large") == ("open.large",)


def test_the_record_tells_the_story(order: interlock.Handle, store: Store) -> None:
    order.send("submit", {"qty": 1, "price": "2"}, reason="by post", correlation_id="c-1")
    (entry,) = order.history()
    assert (entry.reason, entry.correlation_id) == ("by post", "c-1")
    assert [order.data_at(number) for number in (0, 1)] == [
        {"qty": 0, "total": "0.00"},
        {"qty": 1, "total": "4.00"},
    ]
    assert refused(order.data_at, 2).reason == "invalid-request"
    assert store.verify().ok
    assert store.read_declaration(order.id) == ORDER.declaration


def test_D05_an_unknown_event_never_looks_like_success(
    engine: interlock.Engine, order: interlock.Handle
) -> None:
    assert refused(order.send, "nope").reason == "invalid-transition"
    assert refused(order.send, "").reason == "invalid-request"
    assert refused(order.send, "decide").reason == "invalid-transition"  # of another state
    assert refused(engine.get, "nobody").reason == "not-known"
    order.send("submit", {"qty": 1, "price": "2"})
    order.send("cancel")
    assert refused(order.send, "nope").reason == "terminal"
    assert [entry.action for entry in order.history()] == ["submit", "cancel"]


@pytest.mark.parametrize("event", ["after/P3D", "decide/small", "superseded", "always", "start"])
def test_nobody_sends_what_is_not_an_event(order: interlock.Handle, event: str) -> None:
    order.send("submit", {"qty": 1, "price": "2"})
    assert refused(order.send, event).reason == "invalid-transition"
    assert order.state == "open.counting"


@pytest.mark.parametrize("action", ["submit", "superseded"])
def test_a_plain_fire_is_engine_owned(order: interlock.Handle, store: Store, action: str) -> None:
    refusal = refused(store.fire, order.id, action)
    assert isinstance(refusal, interlock.EngineOwned)
    assert (refusal.reason, refusal.state, refusal.action) == ("engine-owned", "draft", action)
    assert refused(store.fire_many, [interlock.Fire(order.id, action)]).reason == "engine-owned"
    (each,) = store.fire_each([interlock.Fire(order.id, action)])
    assert isinstance(each, interlock.EngineOwned)
    assert (order.state, order.history()) == ("draft", [])


def test_an_instance_that_no_engine_began_is_not_sent_events(
    engine: interlock.Engine, store: Store
) -> None:
    id = store.instantiate(ORDER.declaration)
    assert refused(engine.get, id).reason == "invalid-request"
    assert store.fire(id, "submit") == "open.counting"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"qty": 1},
        {"qty": "1", "price": "2"},
        {"qty": 1.5, "price": "2"},
        {"qty": 1, "price": "2.001"},
        {"qty": 1, "price": "2", "more": 1},
        {"qty": None, "price": "2"},
        {"qty": 1, "price": float("nan")},
        {"qty": 2**63, "price": "2"},
        [1],
        "qty",
    ],
)
def test_a_payload_is_held_to_what_the_event_declares(
    order: interlock.Handle, payload: Any
) -> None:
    refusal = refused(order.send, "submit", payload)
    assert (refusal.reason, refusal.argument) == ("invalid-request", "payload")  # type: ignore[attr-defined]
    assert (order.state, order.history()) == ("draft", [])


def test_an_event_that_is_not_declared_has_no_fields(order: interlock.Handle) -> None:
    order.send("submit", {"qty": 1, "price": "2"})
    assert refused(order.send, "cancel", {"why": "x"}).reason == "invalid-request"


def test_a_label_is_asserted_or_the_event_is_refused(order: interlock.Handle) -> None:
    order.send("submit", {"qty": 12, "price": "2"})
    order.send("decide")
    for asserting in ((), ["QP"], ["qp-sign-off"], ["QP-sign-off "]):
        refusal = refused(order.send, "ship", asserting=asserting)
        assert refusal.reason == "guard-not-satisfied"
        assert refusal.guards == ("QP-sign-off",)  # type: ignore[attr-defined]
    assert refused(order.send, "ship", asserting="QP-sign-off").reason == "invalid-request"
    assert order.send("ship", asserting=["other", "QP-sign-off"]) == "shipped"


def test_what_is_set_has_to_be_as_declared(engine: interlock.Engine) -> None:
    definition = machine("""
data: {n: {type: integer, minimum: 0, maximum: 10, default: 1}}
events: {add: {by: {type: integer}}}
initial: a
states: {a: {on: {add: {set: {n: "data.n + event.by"}}}}}
""")
    order = engine.start(definition)
    assert order.send("add", {"by": 4}) == "a"
    assert order.data == {"n": 5}
    for by in (6, -6, 2**63 - 1):
        refusal = refused(order.send, "add", {"by": by})
        assert refusal.reason == "guard-error"
    assert order.data == {"n": 5}
    assert len(order.history()) == 1


def test_all_that_is_set_sees_the_data_as_it_was_before(engine: interlock.Engine) -> None:
    definition = machine("""
data: {a: {type: integer}, b: {type: integer}}
initial: s
states: {s: {on: {swap: {set: {a: "data.b", b: "data.a"}}}}}
""")
    order = engine.start(definition, {"a": 1, "b": 2})
    order.send("swap")
    assert order.data == {"a": 2, "b": 1}


def test_B01_an_expression_without_a_value_is_an_error_and_never_a_no(
    engine: interlock.Engine,
) -> None:
    definition = machine("""
data: {total: {type: integer}, parts: {type: integer}}
initial: a
states:
  a:
    on:
      go:
        order: first-match
        branches:
          - {to: b, when: "data.total / data.parts > 100"}
          - {to: c, otherwise: true}
  b: {}
  c: {}
""")
    order = engine.start(definition, {"total": 1, "parts": 0})
    refusal = refused(order.send, "go")
    assert isinstance(refusal, interlock.GuardError)
    assert refusal.reason == "guard-error"
    assert "data.total / data.parts > 100" in refusal.guard
    assert (order.state, order.history()) == ("a", [])


@pytest.mark.parametrize("reason", ['ok" || true || "', '" || "" == "', "ok\\", "'ok'", "ok "])
def test_B07_what_is_sent_is_never_parsed(engine: interlock.Engine, reason: str) -> None:
    definition = machine("""
events: {go: {reason: {type: string}}}
initial: a
states: {a: {on: {go: {to: b, when: 'event.reason == "ok"'}}}, b: {}}
""")
    order = engine.start(definition)
    assert refused(order.send, "go", {"reason": reason}).reason == "guard-not-satisfied"
    assert order.send("go", {"reason": "ok"}) == "b"


def test_expressions_see_the_actor_the_moment_and_the_instance(
    engine: interlock.Engine, clock: Clock
) -> None:
    definition = machine("""
data: {by: {type: string, optional: true}, at: {type: date-time, optional: true}}
initial: a
states:
  a:
    on:
      go:
        to: b
        when: 'actor == "ann" && instance.state == "a" && instance.version == 1'
        set: {by: "actor", at: "now"}
  b: {}
""")
    order = engine.start(definition)
    assert refused(order.send, "go", actor_ref="bob").reason == "guard-not-satisfied"
    assert refused(order.send, "go").reason == "guard-error"  # nobody said who
    clock.advance(hours=1)
    order.send("go", actor_ref="ann")
    assert order.data == {"by": "ann", "at": "2026-03-01T13:00:00Z"}


def test_an_expected_version_is_compared_before_anything_is_decided(
    order: interlock.Handle,
) -> None:
    refusal = refused(order.send, "nope", expected_version=2)
    assert (refusal.reason, refusal.version) == ("version-conflict", 1)  # type: ignore[attr-defined]
    assert order.send("submit", {"qty": 1, "price": "1"}, expected_version=1) == "open.counting"
    assert order.version == 2


def test_an_idempotency_key_gives_the_first_answer_again(engine: interlock.Engine) -> None:
    definition = machine("""
events: {go: {n: {type: integer}}}
initial: a
states: {a: {on: {go: b}}, b: {always: c}, c: {on: {go: a}}}
""")
    order = engine.start(definition)
    assert order.send("go", {"n": 1}, idempotency_key="k") == "c"
    assert order.send("go", {"n": 1}, idempotency_key="k") == "c"
    assert order.send("go", {"n": 1}, idempotency_key="other") == "a"
    assert order.send("go", {"n": 1}, idempotency_key="k") == "c"
    assert [entry.action for entry in order.history()] == ["go", "always/c", "go"]
    for other in ({"n": 2}, {"n": 1}):
        actor = "ann" if other == {"n": 1} else None
        refusal = refused(order.send, "go", other, idempotency_key="k", actor_ref=actor)
        assert refusal.reason == "idempotency-conflict"


def test_the_key_of_a_start_gives_the_same_instance(engine: interlock.Engine) -> None:
    definition = machine(
        "data: {n: {type: integer}}\ninitial: a\nstates: {a: {on: {go: b}}, b: {}}"
    )
    one = engine.start(definition, {"n": 1}, idempotency_key="k")
    one.send("go")
    assert engine.start(definition, {"n": 1}, idempotency_key="k") == one
    assert refused(engine.start, definition, {"n": 2}, idempotency_key="k").reason == (
        "idempotency-conflict"
    )
    assert [handle.id for handle in engine.find(definition)] == [one.id]


def test_what_is_automatic_follows_within_the_same_call(engine: interlock.Engine) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a: {on: {go: {to: b, set: {n: "data.n + 1"}}}}
  b: {always: {to: c, when: "data.n > 0", set: {n: "data.n + 1"}}}
  c: {always: d}
  d: {final: true}
""")
    order = engine.start(definition)
    assert order.send("go", actor_ref="ann") == "d"
    first, *rest = order.history()
    assert [(entry.action, entry.actor_ref) for entry in rest] == [
        ("always/c", None),
        ("always/d", None),
    ]
    assert {entry.causation_id for entry in rest} == {first.transition_id}
    assert order.data == {"n": 2}


def test_a_machine_may_move_as_soon_as_it_begins(engine: interlock.Engine) -> None:
    definition = machine("initial: a\nstates: {a: {always: b}, b: {on: {go: a2}}, a2: {}}")
    order = engine.start(definition, actor_ref="ann")
    assert order.state == "b"
    (entry,) = order.history()
    assert (entry.action, entry.causation_id) == ("always/b", order.id)


def test_a_state_changes_nothing_if_what_follows_fails(engine: interlock.Engine) -> None:
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a: {on: {go: {to: b, set: {n: "5"}}}}
  b: {always: {to: c, when: "1 / (data.n - 5) > 0"}}
  c: {}
""")
    order = engine.start(definition)
    assert refused(order.send, "go").reason == "guard-error"
    assert (order.state, order.data, order.history()) == ("a", {"n": 0}, [])


@pytest.mark.parametrize("history", ["shallow", "deep"])
def test_C06_what_is_remembered_survives_a_new_process(
    engine: interlock.Engine, store: Store, history: str
) -> None:
    definition = machine(f"""
initial: work
states:
  work:
    initial: one
    on: {{pause: paused}}
    states:
      one: {{on: {{next: two}}}}
      two: {{on: {{next: one}}}}
      last: {{type: history, history: {history}}}
  paused: {{on: {{resume: work.last}}}}
""")
    order = engine.start(definition)
    order.send("next")
    order.send("pause")
    again = interlock.Engine(store).get(order.id)
    assert again.send("resume") == "work.two"
    fresh = engine.start(definition)
    fresh.send("pause")
    assert fresh.send("resume") == "work.one"
    assert [entry.action for entry in order.history()] == ["next", "pause", "resume/work.two"]


def test_C11_history_as_stay_here_stays(engine: interlock.Engine) -> None:
    definition = machine("""
initial: work
states:
  work:
    initial: one
    on: {again: work.last}
    states: {one: {on: {next: two}}, two: {}, last: {type: history}}
""")
    order = engine.start(definition)
    order.send("next")
    assert [order.send("again") for _ in range(5)] == ["work.two"] * 5
    assert len(order.history()) == 6


def test_C02_it_starts_inside_a_nested_state(engine: interlock.Engine) -> None:
    definition = machine("""
initial: coffee.dithering
states:
  coffee: {initial: brewing, states: {brewing: {}, dithering: {on: {again: coffee}}}}
""")
    order = engine.start(definition)
    assert order.state == "coffee.dithering"
    assert order.send("again") == "coffee.brewing"


def test_C10_an_event_moves_every_region(engine: interlock.Engine) -> None:
    definition = machine("""
initial: p
states:
  p:
    type: parallel
    on_done: over
    states:
      left: {initial: a, states: {a: {on: {go: b, stop: f}}, b: {on: {stop: f}}, f: {final: true}}}
      right: {initial: x, states: {x: {on: {go: y, stop: f}}, y: {on: {stop: f}}, f: {final: true}}}
  over: {final: true}
""")
    order = engine.start(definition)
    assert order.send("go") == "p{b|y}"
    assert definition.leaves("p{b|y}") == ("p.left.b", "p.right.y")
    assert order.send("stop") == "over"
    assert [entry.action for entry in order.history()] == ["go", "stop", "done/p"]


def test_a_used_version_never_means_something_else(engine: interlock.Engine, store: Store) -> None:
    one = machine("initial: a\nstates: {a: {on: {go: b}}, b: {}}")
    other = machine("initial: a\nstates: {a: {on: {go: c}}, c: {}}")
    engine.start(one)
    engine.start(one)
    refusal = refused(engine.start, other)
    assert isinstance(refusal, interlock.DefinitionChanged)
    assert (refusal.reason, refusal.digest) == ("definition-changed", one.digest)
    assert refused(interlock.Engine(store).start, other).reason == "definition-changed"


def test_a_version_in_development_may_change(engine: interlock.Engine) -> None:
    first, second = (
        interlock.loads(
            f"machine: m\nversion: dev\ninitial: a\nstates: {{a: {{on: {{{e}: b}}}}, b: {{}}}}"
        )
        for e in ("go", "went")
    )
    old, new = engine.start(first), engine.start(second)
    assert (old.send("go"), new.send("went")) == ("b", "b")
    assert engine.get(old.id).definition == first


def test_find_gives_the_instances_of_every_version(engine: interlock.Engine) -> None:
    one, two = (
        interlock.loads(
            f"machine: m\nversion: {v}\ninitial: a\nstates: {{a: {{on: {{go: b}}}}, b: {{}}}}"
        )
        for v in (1, 2)
    )
    first = engine.start(one, subject_ref="s")
    second = engine.start(two, subject_ref="s")
    engine.start(two, subject_ref="t").send("go")
    assert engine.find(one, subject_ref="s") == sorted([first, second], key=lambda h: h.id)
    assert len(engine.find("m")) == 3
    assert len(engine.find("m", state="b")) == 1
    assert len(engine.find("m", limit=2)) == 2
    page = engine.find("m", limit=2)
    assert len(engine.find("m", after=page[-1].id)) == 1
    assert engine.find("nothing") == []


def test_a_case_that_began_elsewhere_enters_in_mid_life(
    engine: interlock.Engine, store: Store
) -> None:
    order = engine.adopt(
        ORDER, "open.large", {"qty": 20}, subject_ref="o-9", actor_ref="ann", reason="old system"
    )
    assert (order.state, order.data) == ("open.large", {"qty": 20, "total": "0.00"})
    snapshot = order.snapshot()
    assert snapshot.metadata == {"adopted": {"state": "open.large", "reason": "old system"}}
    assert [timer.name for timer in order.timers] == ["P3D"]
    assert order.send("ship", asserting=["QP-sign-off"]) == "shipped"
    assert store.verify().ok
    for state in ("open", "shipped", "superseded", "nowhere", ""):
        assert refused(engine.adopt, ORDER, state).reason == "invalid-request"


def test_the_events_of_two_engines_meet_on_one_record(
    engine: interlock.Engine, order: interlock.Handle, store: Store
) -> None:
    other = interlock.Engine(store)
    other.hook("close_bench")(lambda tx: None)
    other.hook("tell")(lambda tx: None)
    twin = other.get(order.id)
    order.send("submit", {"qty": 1, "price": "2"})
    assert twin.send("decide") == "open.small"
    assert order.send("ship") == "shipped"


@pytest.mark.parametrize("argument", ["state", "connection"])
def test_a_wrong_definition_is_refused(engine: interlock.Engine, argument: str) -> None:
    assert refused(engine.start, {"machine": argument}).reason == "invalid-request"
    assert refused(engine.start, ORDER, {"qty": -1}).reason == "invalid-request"
    assert refused(engine.start, ORDER, {"quantity": 1}).reason == "invalid-request"
    assert refused(engine.start, ORDER, workflow_id="w").reason == "invalid-request"
    assert refused(engine.start, ORDER, subject_ref=" ").reason == "invalid-request"
    assert refused(interlock.Engine, "sqlite://").reason == "invalid-request"


def test_payloads_and_data_have_a_size(url: str) -> None:
    definition = machine("""
data: {text: {type: string, default: ""}}
events: {say: {text: {type: string}}}
initial: a
states: {a: {on: {say: {set: {text: "data.text + event.text"}}, grow: {do: [grow]}}}}
""")
    with interlock.open(url, limits=interlock.Limits(payload_bytes=40)) as store:
        engine = interlock.Engine(store)
        engine.hook("grow")(lambda tx: tx.data.update(text="x" * 100))
        refusal = refused(engine.start, definition, {"text": "x" * 41})
        assert (refusal.reason, "more than the 40 allowed" in str(refusal)) == (
            "invalid-request",
            True,
        )
        order = engine.start(definition)
        assert refused(order.send, "say", {"text": "x" * 40}).reason == "invalid-request"
        order.send("say", {"text": "x" * 20})
        assert refused(order.send, "say", {"text": "x" * 20}).reason == "guard-error"
        assert refused(order.send, "grow").reason == "hook-failed"
        assert order.data == {"text": "x" * 20}


def test_large_data_is_read_again_with_each_event(engine: interlock.Engine) -> None:
    definition = machine("""
data: {text: {type: string}, n: {type: integer, default: 0}}
initial: a
states: {a: {on: {add: {set: {n: "data.n + size(data.text)"}}, look: {to: a}}}}
""")
    order = engine.start(definition, {"text": "x" * 10_000})
    for event in ("add", "look", "add"):
        order.send(event)
    assert order.data["n"] == 20_000


def test_what_others_say_of_causes_changes_no_first_answer(engine: interlock.Engine) -> None:
    definition = machine("initial: a\nstates: {a: {on: {go: b}}, b: {on: {go: c}}, c: {}}")
    order = engine.start(definition)
    order.send("go", idempotency_key="k")
    (entry,) = order.history()
    order.send("go", causation_id=entry.transition_id)
    assert order.send("go", idempotency_key="k") == "b"


def test_refusals_come_in_their_order(order: interlock.Handle) -> None:
    wrong = {"no such field": 1}
    order.send("submit", {"qty": 12, "price": "1"}, idempotency_key="k")

    def reason(event: str, payload: Any = None, **how: Any) -> str:
        return refused(order.send, event, payload, **how).reason

    assert reason("", wrong, expected_version=9, idempotency_key="k") == "invalid-request"
    assert reason("nope", wrong, expected_version=9, idempotency_key="k") == "idempotency-conflict"
    assert reason("submit", wrong, idempotency_key="k") == "idempotency-conflict"
    assert reason("nope", wrong, expected_version=9) == "version-conflict"
    assert reason("nope", wrong) == "invalid-transition"
    assert reason("decide", wrong) == "invalid-request"
    order.send("decide")
    assert reason("ship", actor_ref=" ") == "guard-not-satisfied"
    assert reason("ship", asserting=["QP-sign-off"], actor_ref=" ") == "invalid-request"
    order.send("cancel")
    assert reason("nope", wrong) == "terminal"


def test_adopting_needs_what_the_state_requires(engine: interlock.Engine) -> None:
    definition = machine("""
data: {due: {type: date-time, optional: true}, n: {type: integer, default: 1}}
initial: a
states: {a: {on: {go: {to: b, when: has(data.due)}}}, b: {data: [due, n], on: {back: a}}}
""")
    refusal = refused(engine.adopt, definition, "b")
    assert (refusal.reason, "lacks `due`" in str(refusal)) == ("invalid-request", True)
    assert engine.adopt(definition, "b", {"due": "2026-01-01T00:00:00Z"}).data["n"] == 1


@pytest.mark.parametrize("limit", [0, -1, "x", 10**6, True])
def test_what_is_asked_of_an_engine_is_checked(engine: interlock.Engine, limit: Any) -> None:
    assert refused(engine.find, ORDER, limit=limit).reason == "invalid-request"
    assert refused(engine.find, ORDER, state="").reason == "invalid-request"
    assert refused(engine.find, 3).reason == "invalid-request"
    assert refused(engine.can, "x").reason == "invalid-request"
    if limit != 10**6:
        assert refused(engine.tick, limit=limit).reason == "invalid-request"


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_an_engine_takes_part_in_its_callers_transaction(url: str, ends: str) -> None:
    if url == "sqlite://":
        pytest.skip("nobody else connects to a store in memory")
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states: {a: {after: {1h: c}, on: {go: {to: b, do: [add]}}}, b: {}, c: {}}
""")
    with interlock.open(url) as store:
        engine = interlock.Engine(store)
        engine.hook("add")(lambda tx: tx.data.update(n=1))
        engine.tick()
        before = engine.start(definition)
        with closing(connect(url)) as own:
            begun = engine.start(definition, connection=own)
            begun.send("go", connection=own)
            before.send("go", connection=own)
            adopted = engine.adopt(definition, "b", connection=own)
            getattr(own, ends)()
        found = {handle.id for handle in engine.find(definition)}
        if ends == "commit":
            assert found == {before.id, begun.id, adopted.id}
            assert [h.state for h in (before, begun, adopted)] == ["b"] * 3
            assert begun.data == {"n": 1}
        else:
            assert found == {before.id}
            assert (before.state, before.data, len(before.timers)) == ("a", {"n": 0}, 1)
            before.send("go")
        assert store.verify().ok


def connect(url: str) -> Any:
    """Connect to the database of a store, as its caller would."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"))
    return psycopg.connect(re.sub("&schema=[^&]*", "", url))
