"""Typed states: what a module that `interlock gen types` wrote stands on.

Such a module has one frozen class for each state of a machine, with its data in Python's types and
a method for each event that it knows, so a type checker refuses the others. `module` writes it,
`names` finds its identifiers, `layout` its lines; `machine` and `values` are what it calls.
"""

from interlock.typed.machine import Adopting, Sending, Starting, TypedMachine, TypedState

__all__ = ["Adopting", "Sending", "Starting", "TypedMachine", "TypedState"]
