"""The runner of procedures that waits; `run_async` has its twin."""

import time
from typing import Any, Protocol, TypeVar

from interlock.store.plan import Procedure, Transaction

T = TypeVar("T")


class Runs(Protocol):
    """A database, or a caller's transaction in one, that drives plans."""

    def run(self, transaction: Transaction) -> Any: ...


def run(database: Runs, procedure: Procedure[T]) -> T:
    """Drive a procedure to its end."""
    try:
        step = next(procedure)
        while True:
            try:
                answer = None
                if isinstance(step, Transaction):
                    answer = database.run(step)
                else:
                    time.sleep(step.seconds)
            except Exception as error:
                step = procedure.throw(error)
            else:
                step = procedure.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value
