"""Calls of several threads, made to be committed together."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from interlock.store.group import Group
from interlock.store.store import Store
from tests.support.faulty import Faults


def wait_until_gathered(group: Group[Any, Any], count: int) -> None:
    """Wait until so many calls are in the batch that is gathering."""
    deadline = time.monotonic() + 60
    while len(group._gathering.tickets) < count:
        assert time.monotonic() < deadline, "the calls do not come together"
        time.sleep(0)


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
    `verb` says whose group it is: `fire` or `bear`.
    """
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert go_on.wait(60)

    group = {"fire": store._fires, "bear": store._births}[verb]
    faults.watch("COMMIT", hold)
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        leader = pool.submit(outcome_of, first)
        assert held.wait(60)
        futures: list[Future] = []
        for place, call in enumerate(calls, 1):
            futures.append(pool.submit(outcome_of, call))
            wait_until_gathered(group, place)
        prepare()
        go_on.set()
        assert not isinstance(leader.result(60), BaseException), leader.result()
        return [future.result(60) for future in futures]
