"""Committing together on an event loop: tasks that wait share one commit.

A task that finds no commit under way starts one with its call; those that come meanwhile share the
next. Commits run in a task of their own, so that no caller's cancellation breaks off the call of
another, or leaves a connection half used.

A cancelled caller that still waits for its commit withdraws its call, which then never happens.
One whose call was handed over waits for the outcome, as long as `bound` allows, and says it in a
note on the `CancelledError`: the call stands.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from interlock.store.group import BATCH_MAX, Answer, Call, GoAlone

T = TypeVar("T")


class AsyncGroup(Generic[Call, Answer]):
    """Gathers the calls of tasks into commits, all on one event loop.

    Args:
        commit, alone: as for `Group`.
        bound: seconds that a cancelled caller waits for an outcome.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Call]], Awaitable[Sequence[Answer | GoAlone]]],
        alone: Callable[[Call, BaseException | None], Coroutine[Any, Any, Answer]],
        bound: float,
    ) -> None:
        self._commit = commit
        self._alone = alone
        self._bound = bound
        self._gathering: list[tuple[Call, asyncio.Future[Answer | GoAlone]]] = []
        self._committing: asyncio.Task[None] | None = None

    async def submit(self, call: Call) -> Answer:
        """Have `call` committed and give its answer."""
        future: asyncio.Future[Answer | GoAlone] = asyncio.get_running_loop().create_future()
        ticket = (call, future)
        self._gathering.append(ticket)
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())
        try:
            answer = await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if ticket in self._gathering:
                self._gathering.remove(ticket)
            elif not future.cancelled():
                await note_outcome(error, self._settle(call, future), self._bound)
            raise
        if isinstance(answer, GoAlone):
            return await handed_over(self._alone(call, answer.error), self._bound)
        return answer

    async def _settle(self, call: Call, future: "asyncio.Future[Answer | GoAlone]") -> Answer:
        """Wait for the answer of a call whose caller was cancelled, and finish it if need be."""
        answer = await future
        return await self._alone(call, answer.error) if isinstance(answer, GoAlone) else answer

    async def _commit_all(self) -> None:
        """Commit what is gathered, and what gathers meanwhile, until nothing is left."""
        try:
            while self._gathering:
                batch, self._gathering = self._gathering[:BATCH_MAX], self._gathering[BATCH_MAX:]
                await self._commit_one(batch)
        finally:  # at once: who comes next has to see that nobody commits for them
            self._committing = None

    async def _commit_one(
        self, batch: "list[tuple[Call, asyncio.Future[Answer | GoAlone]]]"
    ) -> None:
        try:
            answers = await self._commit([call for call, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_result(GoAlone(error))
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)


async def handed_over(call: Coroutine[Any, Any, T], bound: float) -> T:
    """Run a call to its end even if its caller is cancelled, who waits for it and notes it."""
    task = asyncio.create_task(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as error:
        if not task.cancelled():
            await note_outcome(error, task, bound)
        raise


async def note_outcome(
    error: asyncio.CancelledError,
    outcome: "Coroutine[Any, Any, Any] | asyncio.Task[Any]",
    bound: float,
) -> None:
    """Wait for the outcome of a call whose caller was cancelled, and note it on the error."""
    task = outcome if isinstance(outcome, asyncio.Task) else asyncio.create_task(outcome)
    try:
        async with asyncio.timeout(bound):
            answer = await asyncio.shield(task)
    except TimeoutError:
        error.add_note(f"the call was handed over; its outcome is not known after {bound:g} s")
        return
    except asyncio.CancelledError:
        error.add_note("the call was handed over; its outcome was not waited for")
        return
    except Exception as failure:
        answer = failure
    finally:
        task.add_done_callback(_retrieved)
    if isinstance(answer, Exception):
        error.add_note(f"the call was handed over, and failed: {answer}")
    else:
        error.add_note(f"the call was handed over, and stands: {answer}")


def _retrieved(task: "asyncio.Task[Any]") -> None:
    """Look at an outcome that nobody waits for, or asyncio would complain that nobody did."""
    if not task.cancelled():
        task.exception()
