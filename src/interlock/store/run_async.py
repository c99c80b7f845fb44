"""The runner of procedures that lets other tasks run meanwhile."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from interlock.store.plan import Procedure, Transaction

T = TypeVar("T")


class RunsAsync(Protocol):
    """A database, or a caller's transaction in one, that drives plans without blocking."""

    def run(self, transaction: Transaction) -> Awaitable[Any]: ...


async def run_async(database: RunsAsync, procedure: Procedure[T]) -> T:
    """Drive a procedure to its end, asynchronously."""
    try:
        step = next(procedure)
        while True:
            try:
                answer = None
                if isinstance(step, Transaction):
                    answer = await database.run(step)
                else:
                    await asyncio.sleep(step.seconds)
            except Exception as error:
                step = procedure.throw(error)
            else:
                step = procedure.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value
