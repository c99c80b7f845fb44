"""The runner of procedures that lets other tasks run meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from interlock.store.plan import Pause, Procedure, Transaction

S = TypeVar("S")
T = TypeVar("T")


class RunsAsync(Protocol):
    """A database, or a caller's transaction in one, that drives plans without blocking."""

    def run(self, transaction: Transaction) -> Awaitable[Any]: ...


async def run_async(database: RunsAsync, procedure: Procedure[T]) -> T:
    """Drive a procedure to its end, asynchronously."""
    return await follow_async(procedure, partial(_take, database))


async def follow_async(
    steps: Generator[S, Any, T],
    execute: Callable[[S], Awaitable[Any]],
    catching: type[BaseException] = Exception,
) -> T:
    """Do what `run.follow` does, asynchronously."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await execute(step)
            except catching as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def _take(database: RunsAsync, step: Transaction | Pause) -> Any:
    if isinstance(step, Transaction):
        return await database.run(step)
    await asyncio.sleep(step.seconds)
    return None
