"""Committing together: callers that wait share one commit.

The first caller to come takes the lead: it commits for itself at once, so a lone caller pays
nothing. Those who come while that commit is under way wait, and the first of them leads the next
one for all of them. There is no thread but the callers' own.

    group = Group(commit)          # commit: a list of calls -> a list of answers
    group.submit(call)             # -> the answer to this call
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Call = TypeVar("Call")
Answer = TypeVar("Answer")

BATCH_MAX = 128  # calls in one commit: bounds how long the first of them waits for the last


class _Waiter(Generic[Call, Answer]):
    """A caller who waits: woken with an answer, with an error, or with neither: to lead."""

    __slots__ = ("answer", "answered", "call", "error", "woken")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.answer: Answer
        self.answered = False
        self.error: BaseException | None = None
        self.woken = threading.Lock()
        self.woken.acquire()


class Group(Generic[Call, Answer]):
    """Gathers calls into commits.

    Args:
        commit: answers a list of calls, in their order.
        recover: answers one call whose commit raised, perhaps after it had happened: called by the
            waiting caller itself with the call and what was raised.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Call]], Sequence[Answer]],
        recover: Callable[[Call, BaseException], Answer],
    ) -> None:
        self._commit = commit
        self._recover = recover
        self._mutex = threading.Lock()
        self._waiting: deque[_Waiter[Call, Answer]] = deque()
        self._led = False

    def submit(self, call: Call) -> Answer:
        """Have `call` committed and give its answer, leading or waiting as it falls."""
        with self._mutex:
            leads, self._led = not self._led, True
            if not leads:
                waiter: _Waiter[Call, Answer] = _Waiter(call)
                self._waiting.append(waiter)
        if leads:
            return self._lead(call)
        self._wait(waiter)
        if waiter.answered:
            return waiter.answer
        if waiter.error is not None:
            return self._recover(call, waiter.error)
        return self._lead(call)

    def _wait(self, waiter: _Waiter[Call, Answer]) -> None:
        try:
            waiter.woken.acquire()
        except BaseException:  # an interrupt: withdraw while that is possible, else see it through
            with self._mutex:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                    raise
            waiter.woken.acquire()
            if not waiter.answered and waiter.error is None:
                self._pass_on()
            raise

    def _lead(self, call: Call) -> Answer:
        followers: list[_Waiter[Call, Answer]] = []
        try:
            if self._waiting:
                with self._mutex:
                    while self._waiting and len(followers) < BATCH_MAX - 1:
                        followers.append(self._waiting.popleft())
            answers = self._commit([call, *(waiter.call for waiter in followers)])
            for waiter, answer in zip(followers, answers[1:], strict=True):
                waiter.answer, waiter.answered = answer, True
            return answers[0]
        except BaseException as error:
            for waiter in followers:
                waiter.error = error
            raise
        finally:
            for waiter in followers:
                waiter.woken.release()
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the lead to the caller who has waited longest, if any waits."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().woken.release()
            else:
                self._led = False
