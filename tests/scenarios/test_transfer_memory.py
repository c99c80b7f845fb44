"""Memory stays flat, however large the store is that is dumped and restored."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.postgres import database

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason=f"peak memory is read from {STATUS}")

# As for `ingest`: caches are small, and a small store first loads what is loaded once.
MEASURE = """
import sys
import interlock
from interlock.store import restore, standings, transfer
from interlock.store.sqlite import database
from tests.support.machines import TOGGLE
database.CACHE_KIB = 512
standings.KEPT_MAX = 50
transfer.PAGE_ROWS = 200
folder, server, instances, entries = *sys.argv[1:3], *map(int, sys.argv[3:])

def peak():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024

def fill(store, instances, entries):
    for begun in range(0, instances, 50):
        births = [interlock.Birth(instance_metadata=["x" * 50])] * min(50, instances - begun)
        ids = store.instantiate_each(TOGGLE, births)
        for _ in range(0, entries, 20):
            for id in ids:
                store.fire_each([interlock.Fire(id, "go", reason="y" * 50)] * 20)

def opened(name):
    if server:
        return interlock.open(server, schema=name)
    return interlock.open(f"sqlite:///{folder}/{name}.db?synchronous=normal")

def copy(name, instances, entries):
    with opened(name) as store:
        fill(store, instances, entries)
    before = peak()
    with opened(name) as store:
        store.dump(f"{folder}/{name}.jsonl")
    with opened(f"{name}-copy") as store:
        read = store.restore(f"{folder}/{name}.jsonl")
    return read.added_entries, peak() - before

copy("small", 60, 20)
print(*copy("large", instances, entries))
"""
SLACK = 3 * 1024 * 1024


def growth(kind: str, folder: Path, instances: int, entries: int) -> int:
    """Give by how many bytes the peak grows while a store is dumped and restored."""
    folder.mkdir()
    with database() if kind == "postgres" else nullcontext("") as server:
        run = subprocess.run(
            [sys.executable, "-c", MEASURE, str(folder), server, str(instances), str(entries)],
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
            text=True,
        )
    copied, grown = map(int, run.stdout.split())
    assert copied == instances * entries
    return grown


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "postgres"])
@pytest.mark.parametrize("shape", ["more instances", "longer histories"])
def test_a_store_ten_times_as_large_takes_no_more_memory(
    tmp_path: Path, shape: str, kind: str
) -> None:
    small = growth(kind, tmp_path / "small", 150, 20)
    if shape == "more instances":
        large = growth(kind, tmp_path / "large", 1500, 20)
    else:
        large = growth(kind, tmp_path / "large", 150, 200)
    assert large < small + SLACK
