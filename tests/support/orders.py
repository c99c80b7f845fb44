"""A definition that an engine runs, with hooks and a timer, and instances of it at every stage."""

import warnings
from collections.abc import Callable
from typing import Any

import interlock
from interlock.core.identity import root_of
from interlock.core.record import text_digest
from interlock.engine.hooks import Tx
from interlock.store.plan import Plan, Statement, Transaction
from interlock.store.store import Store

ORDER = """
machine: order
version: 1
data:
  qty: {type: integer}
  note: {type: string, optional: true}
  rounds: {type: integer, default: 0}
events:
  submit: {qty: {type: integer}}
initial: draft
states:
  draft:
    on:
      submit: {to: open, set: {qty: "event.qty"}}
  open:
    on_enter: [reserve]
    after: {P3D: expired}
    on:
      again: {to: open, set: {rounds: "data.rounds + 1"}, do: [jot]}
      close: done
  done: {final: true}
  expired: {final: true}
"""
OTHER = ORDER.replace("machine: order", "machine: idle").replace("version: 1", "version: dev")

MAKE_ROWS = "CREATE TABLE IF NOT EXISTS reserved (id TEXT, qty INTEGER)"


def order() -> interlock.Definition:
    return interlock.loads(ORDER, prove=False)


def engine_of(store: Store, **hooks: Callable[[Tx], Any]) -> interlock.Engine:
    """Give an engine that knows all that the definition names, or what is given in its stead."""
    engine = interlock.Engine(store)

    def reserve(tx: Tx) -> None:
        tx.data["note"] = f"reserved {tx.data['qty']}"

    def jot(tx: Tx) -> None:
        tx.data["note"] = f"round {tx.data['rounds']}"

    for name, hook in ({"reserve": reserve, "jot": jot} | hooks).items():
        engine.hook(name)(hook)
    return engine


def begin(engine: interlock.Engine, qty: int = 1, **how: Any) -> interlock.Handle:
    """Start an order; that nobody sweeps is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return engine.start(order(), {"qty": qty}, **how)


def populate(store: Store, *, rounds: int = 70) -> dict[str, str]:
    """Begin orders and bring them to every stage; give the ids by name.

    Args:
        rounds: of the one that goes round, more than lie between two times that all is written.
    """
    engine = engine_of(store)
    engine.tick()  # somebody sweeps
    names = {"draft": begin(engine, subject_ref="s-1").id}
    opened = begin(engine, 2, actor_ref="ann", idempotency_key="order-birth-1")
    opened.send("submit", {"qty": 3}, actor_ref="bob", reason="asked", idempotency_key="k-1")
    names["open"] = opened.id
    round_ = begin(engine, 4)
    round_.send("submit", {"qty": 5})
    for _ in range(rounds):
        round_.send("again")
    names["round"] = round_.id
    closed = begin(engine)
    closed.send("submit", {"qty": 12})
    closed.send("close", actor_ref="zoe")
    names["closed"] = closed.id
    adopted = engine.adopt(order(), "open", {"qty": 7}, reason="from elsewhere")
    names["adopted"] = adopted.id
    return names


def postpone(store: Store, id: str) -> None:
    """Let the timer of an open order have failed twice."""

    def plan() -> Plan[None]:
        key = (store._tenant, root_of(id), id)
        ((state, name, number, due, *_),) = yield Statement("read_timers", [key])
        for delay in (1, 2):
            later = due + delay * 1_000_000
            asked = (*key, state, name, number, later, f"hook-failed: try {delay}")
            yield Statement("postpone_timer", [asked])

    store._database.run(Transaction(plan, writes=True))


def add_idle_definition(store: Store) -> None:
    """Keep a definition that governs nothing."""
    made = interlock.loads(OTHER, prove=False)

    def plan() -> Plan[None]:
        text = made.document
        row = (store._tenant, made.digest, made.name, made.version, text, text_digest(text))
        yield Statement("append_definition", [row])

    store._database.run(Transaction(plan, writes=True))


def data_told(store: Store) -> list[Any]:
    """Give the data of every order after each of its entries, and its timers as they stand."""
    engine = engine_of(store)
    found = []
    for one in store.instances(limit=1000):
        if one.definition_digest is not None:
            handle = engine.get(one.id)
            data = [handle.data_at(number) for number in range(one.version)]
            found.append((one.id, data, handle.timers))
    return found
