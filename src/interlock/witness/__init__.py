"""Ways into every branch of a machine, with values that a solver finds: what its tests are made of.

`solving` finds values for which conditions are true or false, `sample` values for fields that no
condition is about. `model` says what a machine does, from its definition alone and without a store.
`table` puts them together: for every state and trigger a case that can be tried on an engine, or
the reason why there is none. `module` writes the cases as a test module.
"""

from interlock.witness.case import Begin, Case, Missed, Table
from interlock.witness.model import Model, Outcome, Send, Step, Tick
from interlock.witness.module import write_tests
from interlock.witness.table import tabulate

__all__ = [
    "Begin",
    "Case",
    "Missed",
    "Model",
    "Outcome",
    "Send",
    "Step",
    "Table",
    "Tick",
    "tabulate",
    "write_tests",
]
