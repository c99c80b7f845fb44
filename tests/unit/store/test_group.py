"""Callers that wait share a commit; each gets its own answer, and nobody waits for ever."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlock.store import group as module
from interlock.store.group import GoAlone, Group
from tests.support.together import wait_until_gathered


def never(call: int, error: BaseException | None) -> int:
    raise AssertionError("no commit was broken off") from error


class Gate:
    """A commit that can be held, and remembers what came together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.entered, self.leave = threading.Semaphore(0), threading.Semaphore(0)

    def commit(self, calls: Sequence[int]) -> list[int]:
        self.batches.append([*calls])
        self.entered.release()
        self.leave.acquire()
        return [call * 10 for call in calls]


def test_a_lone_caller_leads_in_its_own_thread() -> None:
    threads = []

    def commit(calls: Sequence[int]) -> list[int]:
        threads.append(threading.current_thread())
        return [*calls]

    group = Group(commit, never)
    assert [group.submit(number) for number in range(3)] == [0, 1, 2]
    assert threads == [threading.current_thread()] * 3


def test_those_who_wait_are_committed_together_in_order() -> None:
    gate = Gate()
    group = Group(gate.commit, never)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(group.submit, 0)
        gate.entered.acquire()
        others = []
        for number in range(1, 6):
            others.append(pool.submit(group.submit, number))
            wait_until_gathered(group, number)
        gate.leave.release(2)
        assert [future.result(5) for future in (first, *others)] == [0, 10, 20, 30, 40, 50]
    assert gate.batches == [[0], [1, 2, 3, 4, 5]]


def test_a_batch_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_MAX", 2)
    gate = Gate()
    group = Group(gate.commit, never)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(group.submit, 0)]
        gate.entered.acquire()
        for number in range(1, 6):
            futures.append(pool.submit(group.submit, number))
            wait_until_gathered(group, 2 - number % 2)
        gate.leave.release(9)
        assert [future.result(5) for future in futures] == [0, 10, 20, 30, 40, 50]
    assert sorted(gate.batches) == [[0], [1, 2], [3, 4], [5]]


def test_a_commit_that_raises_is_raised_by_its_leader_and_recovered_by_the_others() -> None:
    gate = Gate()
    recovered = []

    def commit(calls: Sequence[int]) -> list[int]:
        answers = gate.commit(calls)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return answers

    def recover(call: int, error: BaseException | None) -> int:
        recovered.append((call, type(error), threading.current_thread().name))
        return -call

    group = Group(commit, recover)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(group.submit, 0)]
        gate.entered.acquire()
        for number in range(1, 4):
            futures.append(pool.submit(group.submit, number))
            wait_until_gathered(group, number)
        gate.leave.release(9)
        assert futures[0].result(5) == 0
        with pytest.raises(KeyboardInterrupt):
            futures[1].result(5)
        assert [future.result(5) for future in futures[2:]] == [-2, -3]
    assert sorted((call, kind) for call, kind, _ in recovered) == [
        (2, KeyboardInterrupt),
        (3, KeyboardInterrupt),
    ]
    assert len({name for *_, name in recovered}) == 2, "each recovers in its own thread"
    gate.leave.release()
    assert group.submit(7) == 70


def test_many_threads_lose_and_double_nothing() -> None:
    answered: list[int] = []

    def commit(calls: Sequence[int]) -> list[int]:
        answered.extend(calls)
        time.sleep(0)
        return [call + 1 for call in calls]

    group = Group(commit, never)

    def run(start: int) -> None:
        for number in range(start, start + 200):
            assert group.submit(number) == number + 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(run, range(0, 16 * 200, 200)))
    assert sorted(answered) == list(range(16 * 200))


def test_a_call_that_was_left_out_goes_on_alone_in_its_own_thread() -> None:
    threads: list[str] = []

    def commit(calls: Sequence[int]) -> list[int | GoAlone]:
        return [GoAlone() for _ in calls]

    def alone(call: int, error: BaseException | None) -> int:
        assert error is None
        threads.append(threading.current_thread().name)
        return -call

    assert Group(commit, alone).submit(5) == -5
    assert threads == [threading.current_thread().name]
