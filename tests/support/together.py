"""Calls of several threads, made to be committed together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from interlock.store.store import Store
from tests.support.faulty import Faults


class _Counting(deque):
    """A queue that says when it has become so long."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length
        self.full = threading.Event()

    def append(self, item: Any) -> None:
        super().append(item)
        if len(self) == self.length:
            self.full.set()


def outcome_of(call: Callable[[], Any]) -> Any:
    """Give what a call gives, or what it raises."""
    try:
        return call()
    except BaseException as error:
        return error


def all_at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make calls in a thread each, released at one moment; give what each gave or raised."""
    barrier = threading.Barrier(len(calls))

    def made(call: Callable[[], Any]) -> Any:
        barrier.wait()
        return outcome_of(call)

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(made, call) for call in calls]]


def in_one_batch(
    store: Store,
    faults: Faults,
    first: Callable[[], Any],
    calls: Sequence[Callable[[], Any]],
    prepare: Callable[[], object] = lambda: None,
    *,
    verb: str = "fire",
) -> list[Any]:
    """Hold the commit of `first` until all of `calls` wait; then they are one batch, in order.

    `prepare` runs just before the batch, so that faults can be armed for its statements.
    `verb` says whose queue it is: `fire` or `bear`.
    """
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert go_on.wait(60)

    group: Any = getattr(store._writer, verb).__self__
    faults.watch("COMMIT", hold)
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        leader = pool.submit(outcome_of, first)
        assert held.wait(60)
        futures: list[Future] = []
        for place, call in enumerate(calls, 1):
            waiting = _Counting(place)
            waiting.extend(group._waiting)
            group._waiting = waiting
            futures.append(pool.submit(outcome_of, call))
            assert waiting.full.wait(60)
        prepare()
        go_on.set()
        assert not isinstance(leader.result(60), BaseException), leader.result()
        return [future.result(60) for future in futures]
