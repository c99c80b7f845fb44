"""The runner of procedures that waits; `run_async` has its twin."""

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from interlock.store.plan import Pause, Procedure, Transaction

S = TypeVar("S")
T = TypeVar("T")


class Runs(Protocol):
    """A database, or a caller's transaction in one, that drives plans."""

    def run(self, transaction: Transaction) -> Any: ...


def run(database: Runs, procedure: Procedure[T]) -> T:
    """Drive a procedure to its end."""
    return follow(procedure, partial(_take, database))


def follow(
    steps: Generator[S, Any, T],
    execute: Callable[[S], Any],
    catching: type[BaseException] = Exception,
) -> T:
    """Execute steps to the last, sending each answer back, and give what they return.

    Args:
        catching: errors of `execute` that are thrown into the steps; others end them.
    """
    try:
        step = next(steps)
        while True:
            try:
                answer = execute(step)
            except catching as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def _take(database: Runs, step: Transaction | Pause) -> Any:
    if isinstance(step, Transaction):
        return database.run(step)
    time.sleep(step.seconds)
    return None
