"""Committing together: callers that wait share one commit.

A caller joins the batch that is gathering and waits for its turn at it. Who has the turn first
leads: once no other batch is being committed, it closes this one and commits it for all who joined.
So a lone caller commits at once, and those who come while a commit is under way share the next one.
There is no thread but the callers' own.

A signal handler may raise between any two steps of a caller. Whatever a caller holds is therefore
held by a `with` on a lock, which nothing can come between, and whoever has the turn next goes on
from what the batch says of itself. A call whose caller was interrupted is not committed later. A
handler that calls within a call of its own thread would wait for itself, and is refused.

A call that the commit leaves out, or that it may have left undone, goes on alone, in the thread of
its caller and beside the next batches: nobody waits for it but its caller.

    group = Group(commit, alone)     # commit: a list of calls -> a list of answers
    group.submit(call)               # -> the answer to this call
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from interlock.core.rejection import StorageFailure

Call = TypeVar("Call")
Answer = TypeVar("Answer")

BATCH_MAX = 128  # calls in one commit: bounds how long the first of them waits for the last


class GoAlone(NamedTuple):
    """In the place of an answer: the call was left out.

    Attributes:
        error: why the commit was broken off, perhaps after it had happened; None if it had not.
    """

    error: BaseException | None = None


class _Ticket(Generic[Call, Answer]):
    """A call in a batch.

    Attributes:
        answer: set once it is known.
        withdrawn: the caller was interrupted, and does not wait for it any more.
    """

    __slots__ = ("answer", "call", "withdrawn")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.answer: Answer | GoAlone
        self.withdrawn = False


class _Batch(Generic[Call, Answer]):
    """Calls that are committed together.

    Attributes:
        turn: held by the caller who leads, then by each of the others for as long as it takes to
            see that the batch is closed.
        closed: nobody may join, and nobody else is to lead.
        error: why tickets have no answer.
    """

    __slots__ = ("closed", "error", "tickets", "turn")

    def __init__(self) -> None:
        self.tickets: list[_Ticket[Call, Answer]] = []
        self.turn = threading.Lock()
        self.closed = False
        self.error: BaseException | None = None


class Group(Generic[Call, Answer]):
    """Gathers calls into commits.

    Args:
        commit: answers a list of calls, in their order, or says that one shall go alone.
        alone: answers one call that was left out, or whose commit was broken off, perhaps after it
            had happened: called by the waiting caller itself with the call and with why it was
            broken off.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Call]], Sequence[Answer | GoAlone]],
        alone: Callable[[Call, BaseException | None], Answer],
    ) -> None:
        self._commit = commit
        self._alone = alone
        self._mutex = threading.Lock()
        self._committing = threading.Lock()
        self._inside: set[int] = set()  # the threads that are in `submit`
        self._gathering: _Batch[Call, Answer] = _Batch()

    def submit(self, call: Call) -> Answer:
        """Have `call` committed and give its answer, leading or waiting as it falls.

        Raises:
            StorageFailure: this thread is in here already.
        """
        thread = threading.get_ident()
        if thread in self._inside:
            what = "this very thread waits for a commit, and was interrupted by a signal handler"
            raise StorageFailure(f"{what}; call from elsewhere", kind="busy", retryable=True)
        ticket: _Ticket[Call, Answer] = _Ticket(call)
        try:
            self._inside.add(thread)
            return self._submit(ticket)
        except BaseException:
            ticket.withdrawn = True  # at once: a second interrupt may come
            raise
        finally:
            self._inside.discard(thread)

    def _submit(self, ticket: _Ticket[Call, Answer]) -> Answer:
        with self._mutex:
            batch = self._gathering
            if len(batch.tickets) >= BATCH_MAX:
                batch = self._gathering = _Batch()
            batch.tickets.append(ticket)
        with batch.turn:
            if not batch.closed:
                self._lead(batch)
        try:
            answer = ticket.answer
        except AttributeError:
            error = batch.error or InterruptedError("the leading caller was interrupted")
            answer = GoAlone(error)
        return self._alone(ticket.call, answer.error) if isinstance(answer, GoAlone) else answer

    def _lead(self, batch: _Batch[Call, Answer]) -> None:
        with self._committing:
            with self._mutex:
                if self._gathering is batch:
                    self._gathering = _Batch()
                batch.closed = True
                tickets = [ticket for ticket in batch.tickets if not ticket.withdrawn]
            try:
                answers = self._commit([ticket.call for ticket in tickets])
                for ticket, answer in zip(tickets, answers, strict=True):
                    ticket.answer = answer
            except BaseException as error:
                batch.error = error
                raise
