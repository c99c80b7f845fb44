"""Opening, closing and forgetting an asynchronous store, on both databases."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.store.postgres import async_database
from tests.support import processes
from tests.support.machines import TOGGLE
from tests.support.postgres import database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{path}"
    else:
        with database() as url:
            yield url


def pools() -> list[Any]:
    """Those that are kept for the running loop."""
    loop = asyncio.get_running_loop()
    return [pool for key, pool in async_database._pools._pools.items() if loop in key]  # type: ignore[operator]


def test_a_store_that_several_tasks_await_at_once_is_opened_once(url: str) -> None:
    async def opened(store: interlock.AsyncStore) -> interlock.AsyncStore:
        return await store

    async def main() -> None:
        store = interlock.open_async(url)
        assert await asyncio.gather(*[opened(store) for _ in range(8)]) == [store] * 8
        await store.instantiate(TOGGLE)
        await store.close()
        assert not pools()

    asyncio.run(main())


def test_a_store_that_was_closed_is_not_entered_again(url: str) -> None:
    async def main() -> None:
        once, never = interlock.open_async(url), interlock.open_async(url)
        async with once:
            await once.instantiate(TOGGLE)
        await never.close()
        for store in (once, never):
            with pytest.raises(interlock.StorageFailure, match="was closed") as refusal:
                await store
            assert refusal.value.kind == "closed"

    asyncio.run(main())


def test_a_store_of_another_loop_is_refused(url: str) -> None:
    """Its pool hangs on the loop that it was opened in, ended or not."""
    store = interlock.open_async(url)

    async def open_and_fire() -> str:
        await store
        return await store.instantiate(TOGGLE)

    id = asyncio.run(open_and_fire())
    calls: list[Any] = [
        lambda: store.fire(id, "go"),
        lambda: store.current(id),
        lambda: store.verify(),
        lambda: store.fire_many([interlock.Fire(id, "go")]),
    ]
    for call in calls:
        with pytest.raises(interlock.StorageFailure, match="another event loop"):
            asyncio.run(call())


def test_an_opening_that_is_cancelled_leaves_no_pool_behind() -> None:
    async def main(url: str) -> None:
        for steps in range(60):
            opening = asyncio.ensure_future(opened(url))
            for _ in range(steps):
                await asyncio.sleep(0.0005)
            opening.cancel()
            done = (await asyncio.gather(opening, return_exceptions=True))[0]
            if isinstance(done, interlock.AsyncStore):
                await done.close()
            assert not pools()

    async def opened(url: str) -> interlock.AsyncStore:
        return await interlock.open_async(url)

    with database() as url:
        asyncio.run(main(url))


FORGOTTEN = """
import asyncio, faulthandler, sys
import interlock
faulthandler.dump_traceback_later(20, exit=True)
async def main():
    store = await interlock.open_async(sys.argv[1])
    if sys.argv[2] == "used":
        await store.fire(await store.instantiate({machine}), "go")
asyncio.run(main())
print("ended")
""".replace("{machine}", repr(TOGGLE))


@pytest.mark.parametrize("use", ["used", "not used"])
def test_a_program_that_forgets_to_close_its_store_ends(url: str, use: str) -> None:
    assert "ended" in processes.run(FORGOTTEN, url, use)
