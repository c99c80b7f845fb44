"""What may be sent now, and why not: looked at without writing anything."""

import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import machine

DEFINITION = machine("""
data: {n: {type: integer}}
events: {pay: {amount: {type: integer}}, note: {text: {type: string, optional: true}}}
initial: a
states:
  a:
    on:
      small: {to: b, when: "data.n < 10"}
      pay: {to: b, when: "event.amount > data.n"}
      sign: {to: b, guard: QP}
      note: {to: a}
      check: {to: b, when: {check: stocked}}
      fail: {to: b, when: "1 / data.n > 0"}
  b: {final: true}
""")


@pytest.fixture
def order(store: Store) -> interlock.Handle:
    engine = interlock.Engine(store)
    engine.guard("stocked")(lambda tx: tx.data["n"] == 0)
    return engine.start(DEFINITION, {"n": 0})


def test_every_event_of_a_state_is_listed_with_why_not(order: interlock.Handle) -> None:
    listed = {possible.event: possible for possible in order.possible()}
    assert {event: possible.reason for event, possible in listed.items()} == {
        "small": None,
        "pay": "needs-payload",
        "sign": "guard-not-satisfied",
        "note": None,
        "check": None,
        "fail": "guard-error",
    }
    assert (listed["small"].action, listed["small"].to_state) == ("small/b", "b")
    assert listed["sign"].guards == ("QP",)
    assert "amount" in (listed["pay"].message or "")
    assert order.history() == []


def test_the_engine_lists_the_same(order: interlock.Handle, store: Store) -> None:
    engine = interlock.Engine(store)
    engine.guard("stocked")(lambda tx: tx.data["n"] == 0)
    assert engine.can(order) == order.possible()
    assert [bool(p) for p in engine.can(order, asserting=["QP"]) if p.event == "sign"] == [True]


def test_can_is_what_send_would_do(order: interlock.Handle) -> None:
    assert order.can("pay", {"amount": 1})
    assert order.can("pay", {"amount": 0}).reason == "guard-not-satisfied"
    assert order.can("pay", {"amount": "1"}).reason == "invalid-request"
    assert order.can("pay").reason == "needs-payload"
    assert order.can("nope").reason == "invalid-transition"
    assert not order.can("sign")
    assert order.can("sign", asserting=["QP"])
    assert order.send("sign", asserting=["QP"]) == "b"
    assert order.can("small").reason == "terminal"
    assert order.possible() == []


def test_a_guard_only_looks(store: Store) -> None:
    engine = interlock.Engine(store)

    @engine.guard("stocked")
    def stocked(tx: interlock.Tx) -> bool:
        tx.fire("small")
        return True

    order = engine.start(DEFINITION, {"n": 0})
    assert order.can("check").reason == "guard-error"
