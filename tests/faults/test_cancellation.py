"""Tasks that are cancelled: what they were doing happens or not, and says which.

A call that waits for its turn is withdrawn. One that was handed over stands, and the note on the
`CancelledError` says so. No connection is left half used, and nothing is told to the event loop.
"""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.store.async_store import AsyncStore
from tests.support.machines import arrow, declare

LOOP = declare(["a"], [arrow("a", "go", "a")])
KINDS = ["sqlite", "postgres", "postgres-alone"]
STANDS = "the call was handed over, and stands: a"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db?synchronous=normal"
        return
    from tests.support.postgres import database

    with database() as url:
        alone = "&together=no" if request.param == "postgres-alone" else ""
        yield f"{url}{'&' if '?' in url else '?'}pool_max=3{alone}"


def run(url: str, test: Callable[[AsyncStore], Coroutine[Any, Any, None]]) -> None:
    """Run a test on an event loop that must not have anything to complain of."""
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        async with interlock.open_async(url) as store:
            await test(store)
            await nothing_lent(store)
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(main(), debug=False)
    gc.collect()
    assert complaints == []


async def nothing_lent(store: AsyncStore) -> None:
    """See that every connection is back in the pool, and none is in a transaction."""
    pool: Any = getattr(store._database, "_pool", None)
    if pool is None:
        return

    def is_whole() -> bool:
        stats = pool.get_stats()
        whole = 1 <= stats["pool_available"] == stats["pool_size"] <= 3
        return whole and not stats.get("requests_waiting") and not pool.lent

    for _ in range(500):  # what was closed is replaced in the background
        if is_whole():
            break
        await asyncio.sleep(0.01)
    assert is_whole(), (pool.lent, pool.get_stats())


class Gate:
    """Holds the transactions that write back, until it is opened."""

    def __init__(self, store: AsyncStore) -> None:
        self._run = store._database.run
        self._open = asyncio.Event()
        self.come = asyncio.Event()
        store._database.run = self._wait  # type: ignore[method-assign]

    async def _wait(self, transaction: Any) -> Any:
        if transaction.writes:
            self.come.set()
            await self._open.wait()
        return await self._run(transaction)

    def open(self) -> None:
        self._open.set()


async def cancelled(task: "asyncio.Task[Any]") -> list[str]:
    """Wait for a task that was cancelled, and give the notes."""
    try:
        await task
    except asyncio.CancelledError as error:
        return list(getattr(error, "__notes__", []))
    raise AssertionError("it was not cancelled")


async def actors(store: AsyncStore, id: str) -> list[str | None]:
    return [entry.actor_ref for entry in await store.history(id)]


def test_a_call_that_waits_for_its_turn_is_withdrawn(url: str) -> None:
    if "together=no" in url:
        pytest.skip("no call waits for another")

    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        gate = Gate(store)
        first = asyncio.create_task(store.fire(id, "go", "first"))
        await gate.come.wait()
        waiting = [asyncio.create_task(store.fire(id, "go", f"w{n}")) for n in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        assert await cancelled(waiting[1]) == []
        gate.open()
        assert await first == await waiting[0] == await waiting[2] == "a"
        assert await actors(store, id) == ["first", "w0", "w2"]

    run(url, test)


def test_a_call_that_was_handed_over_stands_and_says_so(url: str) -> None:
    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        gate = Gate(store)
        task = asyncio.create_task(store.fire(id, "go", "ann"))
        await gate.come.wait()
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()  # it waits for the outcome
        gate.open()
        assert await cancelled(task) == [STANDS]
        assert await actors(store, id) == ["ann"]

    run(url, test)


@pytest.mark.parametrize("verb", ["fire_many", "fire_each", "instantiate", "instantiate_each"])
def test_every_verb_that_writes_stands_once_it_was_handed_over(verb: str, url: str) -> None:
    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        gate = Gate(store)
        fires = [interlock.Fire(id, "go", "ann")] * 2
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "fire_many": lambda: store.fire_many(fires),
            "fire_each": lambda: store.fire_each(fires),
            "instantiate": lambda: store.instantiate(LOOP, "ann"),
            "instantiate_each": lambda: store.instantiate_each(LOOP, [interlock.Birth("ann")]),
        }
        task = asyncio.create_task(calls[verb]())
        await gate.come.wait()
        task.cancel()
        gate.open()
        (note,) = await cancelled(task)
        assert note.startswith("the call was handed over, and stands: ")
        if verb.startswith("fire"):
            assert await actors(store, id) == ["ann", "ann"]
        else:
            assert [one.actor_ref for one in await store.instances()] == [None, "ann"]

    run(url, test)


def test_a_cancelled_call_that_is_refused_says_that(url: str) -> None:
    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        gate = Gate(store)
        task = asyncio.create_task(store.fire(id, "nope"))
        await gate.come.wait()
        task.cancel()
        gate.open()
        (note,) = await cancelled(task)
        assert note.startswith("the call was handed over, and failed: `nope` is not declared")
        assert await actors(store, id) == []

    run(url, test)


def test_a_call_that_is_cancelled_twice_ends_at_once_and_stands(url: str) -> None:
    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        gate = Gate(store)
        task = asyncio.create_task(store.fire(id, "go", "ann"))
        await gate.come.wait()
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        assert await cancelled(task) == ["the call was handed over; its outcome was not waited for"]
        gate.open()
        assert await store.fire(id, "go", "bob") == "a"
        while "ann" not in await actors(store, id):
            await asyncio.sleep(0.01)
        assert Counter(await actors(store, id)) == {"ann": 1, "bob": 1}

    run(url, test)


def test_reads_that_are_cancelled_leave_every_connection_fit(url: str) -> None:
    """Some of them twice, so that the giving back of the connection is cancelled as well."""
    rng = random.Random(7)

    async def test(store: AsyncStore) -> None:
        id = await store.instantiate(LOOP)
        await store.fire_many([interlock.Fire(id, "go")] * 200)
        done = 0
        for number in range(150):
            verb = (store.history, store.current, store.read_declaration)[number % 3]
            task: asyncio.Task[Any] = asyncio.create_task(verb(id))
            await asyncio.sleep(rng.uniform(0, 0.004))
            done += task.done()
            for _ in range(1 + number % 2):
                task.cancel()
                await asyncio.sleep(0)
            with suppress(asyncio.CancelledError):
                await task
        assert done < 150
        assert len(await store.history(id)) == 200
        assert await asyncio.gather(*[store.current(id) for _ in range(9)]) == ["a"] * 9

    run(url, test)


def test_of_many_random_cancellations_each_says_the_truth(url: str) -> None:
    """Successes and notes together are the entries, one each."""
    rng = random.Random(11)

    async def test(store: AsyncStore) -> None:
        ids = [await store.instantiate(LOOP) for _ in range(4)]
        told: Counter[str] = Counter()
        standing: set[str] = set()
        withdrawn: set[str] = set()

        async def go(mark: str) -> None:
            task = asyncio.create_task(store.fire(rng.choice(ids), "go", mark))
            await asyncio.sleep(rng.choice((0, 0, rng.uniform(0, 0.01))))
            if rng.random() < 0.6:
                task.cancel()
            try:
                assert await task == "a"
            except asyncio.CancelledError as error:
                notes = list(getattr(error, "__notes__", []))
                assert notes in ([], [STANDS]), notes
                told["noted" if notes else "withdrawn"] += 1
                (standing if notes else withdrawn).add(mark)
            else:
                told["done"] += 1
                standing.add(mark)

        marks = iter(range(10_000))
        while told["noted"] + told["withdrawn"] < 200:
            await asyncio.gather(*[go(f"m{next(marks)}") for _ in range(24)])
        found = Counter[str | None]()
        for id in ids:
            found.update(await actors(store, id))
        assert set(found.values()) == {1}
        assert found.keys() == standing
        assert not withdrawn & found.keys()
        assert told["noted"]
        assert told["done"]
        assert await asyncio.gather(*[store.fire(id, "go") for id in ids * 4]) == ["a"] * 16
        assert (await store.verify()).ok

    run(url, test)


def test_a_store_that_is_closed_while_calls_are_under_way_tells_each_the_truth(url: str) -> None:
    """Leaving the `async with` block waits for nobody; who is refused was not written."""

    async def main() -> tuple[str, list[Any]]:
        async with interlock.open_async(url) as store:
            id = await store.instantiate(LOOP)
            tasks = [asyncio.create_task(store.fire(id, "go", f"m{n}")) for n in range(40)]
            await tasks[0]
        return id, await asyncio.gather(*tasks, return_exceptions=True)

    id, outcomes = asyncio.run(main())
    with interlock.open(url) as store:
        found = Counter(entry.actor_ref for entry in store.history(id))
        assert store.verify().ok
    assert set(found.values()) == {1}
    for number, outcome in enumerate(outcomes):
        if outcome == "a":
            assert f"m{number}" in found
        elif isinstance(outcome, interlock.StorageFailure):
            assert outcome.kind == "closed", outcome
            assert f"m{number}" not in found
        else:
            assert isinstance(outcome, interlock.OutcomeUnknown), outcome
    assert outcomes[0] == "a"
