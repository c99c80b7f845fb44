"""Verification beside writers: what is written meanwhile is never a finding. And in flat memory."""

import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, cycle, islice
from pathlib import Path
from random import Random

import pytest

import interlock
from interlock import Fire
from interlock.store import verify
from interlock.store.attempt import Birth
from interlock.store.store import Store
from tests.support import processes
from tests.support.machines import BATCH, TOGGLE, arrow, declare

PAGES = [2, 3, 5, 50]

# A writer in another process, until it is told to stop; it prints how many calls it made.
WRITER = """
import sys, threading
from tests.faults.test_verify_writers import keep_writing
import interlock
path, seed, shared = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
    print(keep_writing(store, stop.is_set, seed, shared))
"""


def keep_writing(
    store: Store, stopped: Callable[[], bool], seed: int, shared: list[str], pause: float = 0
) -> int:
    """Begin and move instances, some of them everybody's, until told to stop; count the calls."""
    random, own, calls = Random(seed), [store.instantiate(TOGGLE, f"writer-{seed}")], 0
    while not stopped():
        calls += 1
        draw = random.random()
        if draw < 0.1:
            metadata = {"seed": seed, "call": calls}
            own.append(store.instantiate(TOGGLE, "ann", None, metadata))
        elif draw < 0.15:
            own.append(store.instantiate(TOGGLE, idempotency_key=f"birth-{seed}-{calls}"))
        elif draw < 0.2:
            name = f"off-{seed}-{calls}"
            steps = [arrow(name, "go", "on", "g"), arrow("on", "go", name)]
            own.append(store.instantiate(declare([name, "on"], steps)))
        elif draw < 0.3:
            store.fire_many([Fire(random.choice(own), "go", "bob", True) for _ in range(5)])
        elif draw < 0.35:
            batch = store.instantiate(BATCH)
            store.fire(batch, "begin-testing")
            store.fire(batch, "release", guard_satisfied=True)
        else:
            id = random.choice(shared if draw < 0.7 else own)
            store.fire(id, "go", guard_satisfied=True, reason=f"call {calls} of {seed}")
        time.sleep(pause)
    return calls


def verify_beside(
    store: Store, seconds: float, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Verify again and again, each time against the report before; give how often.

    Each verification is of the whole store, and every other one of one instance, too.
    """
    deadline, since, rounds = time.monotonic() + seconds, None, 0
    grown = []
    for number, rows in enumerate(cycle(PAGES)):
        monkeypatch.setattr(verify, "PAGE_ROWS", rows)
        before = store.instances(limit=1)[0]
        report_at = directory / f"report-{number}.json"
        report = store.verify(since=since, report=report_at)
        assert report.ok, [str(finding) for finding in report.findings[:5]]
        assert store.verify(before.id).ok
        grown.append(store.snapshot(before.id).version > before.version)
        since, rounds = report_at, rounds + 1
        if time.monotonic() > deadline and rounds >= len(PAGES):
            break
    assert any(grown), "nobody wrote while it was verified"
    return rounds


@contextmanager
def written_by_threads(store: Store, writers: int, pause: float) -> Iterator[None]:
    shared = [store.instantiate(TOGGLE) for _ in range(3)]
    stop = threading.Event()
    with ThreadPoolExecutor(writers) as pool:
        futures = [
            pool.submit(keep_writing, store, stop.is_set, seed, shared, pause)
            for seed in range(writers)
        ]
        try:
            yield
        finally:
            stop.set()
        assert all(future.result() > 0 for future in futures)


@contextmanager
def written_by_processes(path: Path, writers: int) -> Iterator[None]:
    with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
        shared = [store.instantiate(TOGGLE) for _ in range(3)]
        running = [processes.start(WRITER, path, seed, *shared) for seed in range(writers)]
        try:
            while store.snapshot(shared[0]).version < 3:
                time.sleep(0.01)
                assert all(process.poll() is None for process in running)
            yield
        finally:
            printed = [processes.finish(process) for process in running]
        assert all(int(calls) > 0 for calls in printed)


LONGER = pytest.param(30, marks=pytest.mark.slow)


@pytest.mark.parametrize("seconds", [1, LONGER])
def test_threads_that_write_cause_no_finding(
    seconds: float, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with written_by_threads(store, 4, 0.002):
        verify_beside(store, seconds, tmp_path, monkeypatch)
    assert store.verify().ok


@pytest.mark.parametrize("seconds", [1.5, LONGER])
def test_processes_that_write_cause_no_finding(
    seconds: float, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        written_by_processes(path, 2),
        interlock.open(f"sqlite:///{path}?mode=ro") as store,
    ):
        verify_beside(store, seconds, tmp_path, monkeypatch)
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify().ok


def test_verifications_side_by_side_do_not_disturb_one_another(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them pass over odd text meanwhile; that is no business of the others."""
    monkeypatch.setattr(verify, "PAGE_ROWS", 3)
    toggles = [store.instantiate(TOGGLE) for _ in range(5)]
    store.fire_many([Fire(id, "go") for id in toggles * 10])
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: store.verify(), range(12)))
    assert reports == [verify.Report(5, 50, 0, ())] * 12


@pytest.mark.parametrize("at", range(1, 4))
def test_an_entry_written_between_any_two_pages_is_no_finding(
    at: int, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of write, between each two pages, on each side of the place reached."""
    monkeypatch.setattr(verify, "PAGE_ROWS", 3)
    with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
        ids = [store.instantiate(TOGGLE) for _ in range(6)]
        store.fire_many([Fire(id, "go") for id in (ids[1], *ids[3:5] * 2)])
        earlier = tmp_path / "earlier.json"
        store.verify(report=earlier)
        pages = count(1)

        def write(_: int) -> None:
            if next(pages) == at:
                store.fire_many([Fire(id, "go", reason="between") for id in ids])
                store.fire_many([Fire(id, "go") for id in ids[::2]])
                store.instantiate(BATCH, instance_metadata=[at], idempotency_key="between")

        later = tmp_path / "later.json"
        assert store.verify(on_page=write, since=earlier, report=later).ok
        assert next(pages) > at
        assert store.verify(since=later).ok
        for id in ids:
            pages = count(at)
            assert store.verify(id, on_page=write).ok


# Memory


def fill(store: Store, instances: int, entries: int) -> None:
    """Begin instances and give each so many entries, some with a reason."""
    ids = [
        id for id in store.instantiate_each(TOGGLE, [Birth()] * instances) if isinstance(id, str)
    ]
    fires = (
        Fire(id, "go", "somebody", reason="why" if number % 10 == 0 else None)
        for id in ids
        for number in range(entries)
    )
    while batch := list(islice(fires, 2000)):
        store.fire_many(batch)


def peak_of(path: Path, report: Path) -> int:
    """Give the most memory that Python held while it verified, in bytes."""
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        store.verify(report=report)  # what is made once, is made
        tracemalloc.start()
        try:
            assert store.verify(since=report, report=report.with_suffix(".again")).ok
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


SHAPES = {
    "many instances": (lambda size: (50 * size, 2)),
    "instances without entries": (lambda size: (150 * size, 0)),
    "one long history": (lambda size: (1, 150 * size)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_memory_of_a_verification_does_not_grow_with_the_store(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor with the report that is written, nor with the one it is compared with."""
    monkeypatch.setattr(verify, "PAGE_ROWS", 20)
    peaks = []
    for size in (1, 10):
        path = tmp_path / f"store-{size}.db"
        with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
            fill(store, *SHAPES[shape](size))
        peaks.append(peak_of(path, tmp_path / f"report-{size}.json"))
    assert peaks[1] < peaks[0] * 1.2 + 100_000  # the ids alone would be four times that


MEASURE = """
import re, sys
import interlock
with interlock.open(f"sqlite:///{sys.argv[1]}?mode=ro") as store:
    report = store.verify(report=sys.argv[2])
assert report.ok
# Not what getrusage says: that begins with the peak of the process that started this one.
print(report.entries, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_the_resident_memory_of_a_process_that_verifies_is_flat(tmp_path: Path) -> None:
    """Both stores are larger than SQLite's page cache, which the process may fill."""
    peaks_kib = []
    for size in (1, 10):
        path = tmp_path / f"store-{size}.db"
        with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
            fill(store, 8_000 * size, 5)
            fill(store, 1, 40_000 * size)
        assert path.stat().st_size > 16 * 2**20
        entries, peak_kib = map(int, processes.run(MEASURE, path, tmp_path / "r.json").split())
        assert entries == 80_000 * size
        peaks_kib.append(peak_kib)
    assert peaks_kib[1] < peaks_kib[0] * 1.1
