"""How much a fire costs: alone, among threads, in lists, and as the store grows."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import interlock
from bench.floor import Floor
from bench.harness import Figure, at_least, at_most, compare, cpu_us, in_turns, rate
from interlock.core.machine import Request, Snapshot, compile_machine, decide

ROUND_TRIP = {
    "states": ["there", "back"],
    "transitions": [
        {"from_state": "there", "action": "go", "to_state": "back"},
        {"from_state": "back", "action": "go", "to_state": "there"},
    ],
    "initial_state": "there",
    "terminal_states": [],
}


def deciding() -> Iterator[Figure]:
    """Measure `decide` alone."""
    machine, now = compile_machine(ROUND_TRIP), datetime.now(UTC)
    before, request = Snapshot("instance", "there", 1, now), Request("go", "actor")

    def run(count: int) -> None:
        for _ in range(count):
            decide(machine, before, request, now=now, new_id="transition")

    rates = [pair[0] for pair in in_turns([lambda: rate(run, 100_000)])]
    yield at_least("decide, with now and new_id given", 250_000, rates, "/s")


def firing(folder: Path) -> Iterator[Figure]:
    """Measure fires beside the floor."""
    floor = Floor(folder / "floor.db", "FULL")
    with interlock.open(f"sqlite:///{folder}/full.db") as store:
        one, threads, many = one_caller(store), callers(store, 32), lists(store, 100)
        one(1500)  # by now both logs have been folded back once and are written over
        floor.run(1500)
        rounds = in_turns(
            [
                lambda: rate(one, 200),
                lambda: rate(floor.run, 200),
                lambda: rate(threads, 1600),
                lambda: rate(many, 2000),
            ],
            rounds=25,  # short ones: a shared disk changes its mood within a second
        )
    floor.close()
    unit = "fires/s"
    yield compare(
        "one caller, a commit each, synchronous=FULL, of the floor",
        0.80,
        [(ours, bare) for ours, bare, _, _ in rounds],
        unit=unit,
    )
    yield compare(
        "32 threads, each acknowledged after its commit, of the floor",
        2.5,
        [(ours, bare) for _, bare, ours, _ in rounds],
        unit=unit,
    )
    yield compare(
        "fire_many of 100, of the one-caller floor",
        8.0,
        [(ours, bare) for _, bare, _, ours in rounds],
        unit=unit,
    )
    floor = Floor(folder / "normal-floor.db", "NORMAL")
    with interlock.open(f"sqlite:///{folder}/normal.db?synchronous=normal") as store:
        one = one_caller(store)
        pairs = in_turns([lambda: cpu_us(one, 2000), lambda: cpu_us(floor.run, 2000)])
    floor.close()
    bare = sorted(pair[1] for pair in pairs)[len(pairs) // 2]
    yield at_most(
        "CPU of a fire, one caller, synchronous=NORMAL",
        130,
        [pair[0] for pair in pairs],
        "us",
        f"floor {bare:.0f} us",
    )


def growing(folder: Path, entries: int, instances: int) -> Iterator[Figure]:
    """Measure a fire on a long history and in a large store, beside a small one."""
    with (
        interlock.open(f"sqlite:///{folder}/short.db") as short,
        interlock.open(f"sqlite:///{folder}/long.db") as long,
    ):
        for store, length in ((short, 1000), (long, entries)):
            id = store.instantiate(ROUND_TRIP)
            for start in range(0, length, 1000):
                store.fire_many([interlock.Fire(id, "go")] * min(1000, length - start))
        runs = [on(store, store.instances()[0].id) for store in (long, short)]
        pairs = in_turns([lambda: 1 / rate(runs[0], 300), lambda: 1 / rate(runs[1], 300)])
    yield at_most(
        f"a fire on a history of {entries:,} entries, of one of 1,000",
        1.2,
        [large / small for large, small in pairs],
        "x",
    )
    with (
        interlock.open(f"sqlite:///{folder}/few.db") as few,
        interlock.open(f"sqlite:///{folder}/many.db") as many,
    ):
        ids = {}
        for store, size in ((few, 1000), (many, instances)):
            ids[store] = [
                id
                for _ in range(0, size, 1000)
                for id in store.instantiate_each(ROUND_TRIP, [interlock.Birth()] * 1000)
                if isinstance(id, str)
            ]
        runs = [scattered(store, ids[store]) for store in (many, few)]
        pairs = in_turns([lambda: 1 / rate(runs[0], 300), lambda: 1 / rate(runs[1], 300)])
    yield at_most(
        f"a fire among {instances:,} instances, of one among 1,000",
        1.5,
        [large / small for large, small in pairs],
        "x",
    )


def one_caller(store: interlock.Store, instances: int = 50) -> Callable[[int], None]:
    ids = [store.instantiate(ROUND_TRIP) for _ in range(instances)]

    def run(count: int) -> None:
        for number in range(count):
            store.fire(ids[number % instances], "go")

    return run


def on(store: interlock.Store, id: str) -> Callable[[int], None]:
    def run(count: int) -> None:
        for _ in range(count):
            store.fire(id, "go")

    return run


def scattered(store: interlock.Store, ids: list[str]) -> Callable[[int], None]:
    """Fire on instances far from each other: a prime stride visits them all."""
    place = 0

    def run(count: int) -> None:
        nonlocal place
        for _ in range(count):
            place = (place + 7919) % len(ids)
            store.fire(ids[place], "go")

    return run


def callers(store: interlock.Store, threads: int) -> Callable[[int], None]:
    ids = [store.instantiate(ROUND_TRIP) for _ in range(threads)]

    def run(count: int) -> None:
        work = [threading.Thread(target=on(store, id), args=(count // threads,)) for id in ids]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()

    return run


def lists(store: interlock.Store, length: int, instances: int = 50) -> Callable[[int], None]:
    ids = [store.instantiate(ROUND_TRIP) for _ in range(instances)]
    fires = [interlock.Fire(ids[number % instances], "go") for number in range(length)]

    def run(count: int) -> None:
        for _ in range(count // length):
            store.fire_many(fires)

    return run
