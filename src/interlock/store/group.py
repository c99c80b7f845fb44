"""Committing together: callers that wait share one commit.

A caller joins the batch that is gathering and waits for its turn at it. Who has the turn first
leads: once no other batch is being committed, it closes this one and commits it for all who joined.
So a lone caller commits at once, and those who come while a commit is under way share the next one.
There is no thread but the callers' own.

A signal handler may raise between any two steps of a caller. Whatever a caller holds is therefore
held by a `with` on a lock, which nothing can come between, and whoever has the turn next goes on
from what the batch says of itself. The locks are re-entrant, since a handler may also call.

    group = Group(commit, recover)   # commit: a list of calls -> a list of answers
    group.submit(call)               # -> the answer to this call
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Call = TypeVar("Call")
Answer = TypeVar("Answer")

BATCH_MAX = 128  # calls in one commit: bounds how long the first of them waits for the last


class _Ticket(Generic[Call, Answer]):
    """A call in a batch; `answer` is set once it is known."""

    __slots__ = ("answer", "call")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.answer: Answer


class _Batch(Generic[Call, Answer]):
    """Calls that are committed together.

    Attributes:
        turn: held by the caller who leads, then by each of the others for as long as it takes to
            see that the batch is closed.
        closed: nobody may join or withdraw, and nobody else is to lead.
        error: why tickets have no answer.
    """

    __slots__ = ("closed", "error", "tickets", "turn")

    def __init__(self) -> None:
        self.tickets: list[_Ticket[Call, Answer]] = []
        self.turn = threading.RLock()
        self.closed = False
        self.error: BaseException | None = None


class Group(Generic[Call, Answer]):
    """Gathers calls into commits.

    Args:
        commit: answers a list of calls, in their order.
        recover: answers one call whose commit was broken off, perhaps after it had happened: called
            by the waiting caller itself with the call and with why.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Call]], Sequence[Answer]],
        recover: Callable[[Call, BaseException], Answer],
    ) -> None:
        self._commit = commit
        self._recover = recover
        self._mutex = threading.RLock()
        self._committing = threading.RLock()
        self._gathering: _Batch[Call, Answer] = _Batch()

    def submit(self, call: Call) -> Answer:
        """Have `call` committed and give its answer, leading or waiting as it falls."""
        ticket: _Ticket[Call, Answer] = _Ticket(call)
        with self._mutex:
            batch = self._gathering
            if len(batch.tickets) >= BATCH_MAX:
                batch = self._gathering = _Batch()
            batch.tickets.append(ticket)
        try:
            with batch.turn:
                if not batch.closed:
                    self._lead(batch)
        except BaseException:
            self._withdraw(batch, ticket)
            raise
        try:
            return ticket.answer
        except AttributeError:
            error = batch.error or InterruptedError("the leading caller was interrupted")
            return self._recover(call, error)

    def _lead(self, batch: _Batch[Call, Answer]) -> None:
        with self._committing:
            with self._mutex:
                if self._gathering is batch:  # first, so that nobody joins a batch that is closed
                    self._gathering = _Batch()
                was_closed, batch.closed = batch.closed, True  # a handler may have led meanwhile
            if was_closed:
                return
            try:
                answers = self._commit([ticket.call for ticket in batch.tickets])
                for ticket, answer in zip(batch.tickets, answers, strict=True):
                    ticket.answer = answer
            except BaseException as error:
                batch.error = error
                raise

    def _withdraw(self, batch: _Batch[Call, Answer], ticket: _Ticket[Call, Answer]) -> None:
        """Take back a call whose caller was interrupted, while that is still possible."""
        with self._mutex:
            if not batch.closed:
                batch.tickets.remove(ticket)
