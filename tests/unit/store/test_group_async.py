"""Tasks that wait share a commit; each gets its own answer, and nobody waits for ever."""

import asyncio
from collections.abc import Sequence

import pytest

from interlock.store import group_async as module
from interlock.store.group import GoAlone
from interlock.store.group_async import AsyncGroup

BOUND = 5.0


async def never(call: int, error: BaseException | None) -> int:
    raise AssertionError("no call was left out") from error


class Gate:
    """A commit that can be held, and remembers what came together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.leave = asyncio.Semaphore(0)

    async def commit(self, calls: Sequence[int]) -> list[int | GoAlone]:
        self.batches.append([*calls])
        await self.leave.acquire()
        return [call * 10 for call in calls]


async def started(group: AsyncGroup[int, int], *calls: int) -> list[asyncio.Task[int]]:
    """Start calls, and let them come as far as they come by themselves."""
    tasks = [asyncio.create_task(group.submit(call)) for call in calls]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


def test_those_who_wait_are_committed_together_in_order() -> None:
    async def main() -> None:
        gate = Gate()
        group = AsyncGroup(gate.commit, never, BOUND)
        first = await started(group, 0)
        others = await started(group, 1, 2, 3)
        gate.leave.release()
        gate.leave.release()
        assert await asyncio.gather(*first, *others) == [0, 10, 20, 30]
        assert gate.batches == [[0], [1, 2, 3]]

    asyncio.run(main())


def test_a_batch_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_MAX", 2)

    async def main() -> None:
        gate = Gate()
        group = AsyncGroup(gate.commit, never, BOUND)
        tasks = await started(group, *range(5))
        for _ in range(3):
            gate.leave.release()
        assert await asyncio.gather(*tasks) == [0, 10, 20, 30, 40]
        assert gate.batches == [[0, 1], [2, 3], [4]]

    asyncio.run(main())


def test_a_call_that_comes_as_the_last_commit_ends_is_committed() -> None:
    """Whoever sees that commits are under way must be seen by the one that is."""

    async def commit(calls: Sequence[int]) -> list[int | GoAlone]:
        return [*calls]

    async def main() -> None:
        group = AsyncGroup(commit, never, BOUND)

        async def follow(number: int) -> None:
            for place in range(200):
                assert await group.submit(number * 1000 + place) == number * 1000 + place

        async with asyncio.timeout(30):
            await asyncio.gather(*(follow(number) for number in range(7)))

    asyncio.run(main())


def test_a_call_that_was_left_out_goes_on_alone() -> None:
    why = ConnectionError("lost")
    alone: list[tuple[int, BaseException | None]] = []

    async def commit(calls: Sequence[int]) -> list[int | GoAlone]:
        return [GoAlone(why) if call == 1 else GoAlone() if call == 2 else call for call in calls]

    async def go_on(call: int, error: BaseException | None) -> int:
        alone.append((call, error))
        return -call

    async def main() -> None:
        group = AsyncGroup(commit, go_on, BOUND)
        assert await asyncio.gather(*(group.submit(call) for call in range(4))) == [0, -1, -2, 3]
        assert sorted(alone, key=lambda one: one[0]) == [(1, why), (2, None)]

    asyncio.run(main())


def test_a_commit_that_raises_leaves_all_its_calls_to_go_alone() -> None:
    async def commit(calls: Sequence[int]) -> list[int | GoAlone]:
        raise ArithmeticError("unforeseen")

    async def go_on(call: int, error: BaseException | None) -> int:
        assert isinstance(error, ArithmeticError)
        return call

    async def main() -> None:
        group = AsyncGroup(commit, go_on, BOUND)
        assert await asyncio.gather(*(group.submit(call) for call in range(3))) == [0, 1, 2]

    asyncio.run(main())


def test_a_cancelled_call_that_waits_for_its_turn_is_withdrawn() -> None:
    async def main() -> None:
        gate = Gate()
        group = AsyncGroup(gate.commit, never, BOUND)
        first = await started(group, 0)
        second, third = await started(group, 1, 2)
        second.cancel()
        gate.leave.release()
        gate.leave.release()
        with pytest.raises(asyncio.CancelledError) as caught:
            await second
        assert not hasattr(caught.value, "__notes__")
        assert await asyncio.gather(*first, third) == [0, 20]
        assert gate.batches == [[0], [2]]

    asyncio.run(main())


def test_a_cancelled_call_that_was_handed_over_waits_for_its_outcome_and_notes_it() -> None:
    async def main() -> None:
        gate = Gate()
        group = AsyncGroup(gate.commit, never, BOUND)
        (task,) = await started(group, 7)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        gate.leave.release()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.__notes__ == ["the call was handed over, and stands: 70"]

    asyncio.run(main())


def test_a_cancelled_call_waits_no_longer_than_its_bound() -> None:
    async def main() -> None:
        gate = Gate()
        group = AsyncGroup(gate.commit, never, 0.01)
        (task,) = await started(group, 7)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert "not known after 0.01 s" in caught.value.__notes__[0]
        gate.leave.release()

    asyncio.run(main())
