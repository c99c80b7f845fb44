"""Memory stays flat, however long the log is."""

import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason=f"peak memory is read from {STATUS}")

# Caches are bounded, but a short log would not fill them; so they are small here. The first log
# only loads what is loaded once. (`getrusage` would not do: its peak begins with the parent's.)
MEASURE = """
import sys
import interlock
from interlock.eventlog import ingest, staging
from interlock.store import standings
from interlock.store.sqlite import database
from tests.unit.eventlog.logs import ORDER
database.CACHE_KIB = staging.CACHE_KIB = 512
standings.KEPT_MAX = 50
def peak():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
folder = sys.argv[1]
with interlock.open(f"sqlite:///{folder}/log.db?synchronous=normal") as store:
    ingest(store, ORDER, f"{folder}/small.csv", source="small")
    before = peak()
    report = ingest(store, ORDER, f"{folder}/log.csv")
    print(report.events, peak() - before)
"""
SLACK = 3 * 1024 * 1024


def growth(folder: Path, cases: int, notes: int) -> int:
    """Give by how many bytes the peak grows while `cases` of `2 + notes` events are ingested."""
    folder.mkdir()
    sizes = {"small": (50, 10), "log": (cases, notes)}
    for name, (many, steps) in sizes.items():
        with (folder / f"{name}.csv").open("w") as file:
            file.write("case,action,time\n")
            for step in range(steps + 2):
                for case in range(many):  # every twentieth is refused at once
                    first = "ship" if case % 20 == 0 else "pay"
                    action = first if step == 0 else "note" if step <= steps else "ship"
                    file.write(f"case-{case},{action},2024-05-01T12:{step % 60:02}:00Z\n")
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)],
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    )
    events, grown = map(int, run.stdout.split())
    assert events == cases * (notes + 2)
    return grown


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["more cases", "longer cases"])
def test_a_log_ten_times_as_long_takes_no_more_memory(tmp_path: Path, shape: str) -> None:
    short = growth(tmp_path / "short", 300, 10)
    if shape == "more cases":
        long = growth(tmp_path / "long", 3000, 10)
    else:
        long = growth(tmp_path / "long", 300, 118)
    assert long < short + SLACK
