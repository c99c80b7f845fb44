"""Engines in tests: a clock that is set by hand, and machines that several tests use."""

from datetime import UTC, datetime, timedelta

import interlock

BEGINNING = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


def machine(text: str) -> interlock.Definition:
    """Compile a machine of which only what matters is written: its states, and what it declares."""
    return interlock.loads(f"machine: m\nversion: 1\n{text}")


#: Every kind of thing that an engine does, once.
ORDERS = """
machine: order
version: 1
data:
  qty: {type: integer, minimum: 0, default: 0}
  total: {type: decimal, scale: 2, default: "0.00"}
  note: {type: string, optional: true}
events:
  submit: {qty: {type: integer}, price: {type: decimal, scale: 2}}
initial: draft
states:
  draft:
    on:
      submit: {to: open, set: {qty: "event.qty", total: "event.price * 2"}}
  open:
    initial: counting
    on_exit: [close_bench]
    on: {cancel: cancelled}
    after: {P3D: expired}
    states:
      counting:
        on:
          decide:
            - {to: small, when: "data.qty < 10"}
            - {to: large, when: "data.qty >= 10"}
      small: {on: {ship: shipped}}
      large: {on: {ship: {to: shipped, guard: QP-sign-off}}}
  shipped: {final: true, on_enter: [tell]}
  cancelled: {final: true}
  expired: {final: true}
"""
