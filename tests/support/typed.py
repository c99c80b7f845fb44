"""Modules of typed states for tests: written from a machine, and imported."""

import itertools
import sys
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

from interlock.language import Definition, loads
from interlock.typed.module import write_module

ORDER = loads(
    """
machine: order
version: 1
data:
  qty: {type: integer}
  note: {type: string, optional: true}
  total: {type: decimal, scale: 2, default: "0"}
  due_at: {type: date-time, optional: true}
  region: {type: string, enum: [EU, US], default: EU}
  class: {type: string, optional: true}
  rate: {type: number, default: 1}
  address:
    type: object
    optional: true
    properties:
      city: {type: string}
      zip: {type: string, optional: true}
      paid: {type: decimal, default: "1.5"}
  days: {type: array, items: {type: date-time}, default: []}
events:
  submit:
    qty: {type: integer}
    due_at: {type: date-time}
    reason: {type: string, optional: true}
  pay: {amount: {type: decimal, scale: 2}}
  note: {text: {type: string}}
initial: draft
states:
  draft:
    on:
      submit: {to: open, set: {qty: "event.qty", due_at: "event.due_at"}}
      note: {set: {note: "event.text"}}
  open:
    data: [due_at]
    initial: new
    on: {cancel: cancelled}
    states:
      new: {on: {pay: {to: paid, set: {total: "event.amount"}}}}
      paid:
        on:
          release: {to: done, guard: QP}
          settle:
            order: first-match
            branches:
              - {to: done, when: "data.qty > 5", guard: big}
              - {to: done, name: small, otherwise: true}
  done: {final: true}
  cancelled: {final: true}
"""
)

_numbers = itertools.count()


def module_of(definition: Definition) -> ModuleType:
    """Write the module of a definition, and import it."""
    name = f"typed_module_{next(_numbers)}"
    module = module_from_spec(spec_from_loader(name, None))  # type: ignore[arg-type]
    sys.modules[name] = module  # dataclasses look for it there
    try:
        exec(compile(write_module(definition), f"{name}.py", "exec"), vars(module))
    finally:
        del sys.modules[name]
    return module
