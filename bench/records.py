"""How fast records are verified, and how much memory reading and ingesting takes."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import interlock
from bench.fires import ROUND_TRIP
from bench.harness import Figure, at_least, at_most, in_turns, rate

# Run in a process of its own, so that its peak is its own.
# VmHWM, because what getrusage says of a child begins with the peak of its parent.
_PEAK = """
import json, re, sys
import interlock
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
{work}
print(peak() - before)
"""
_VERIFY = "interlock.open(sys.argv[1]).verify(report=sys.argv[2])"
_INGEST = """
from interlock.eventlog import ingest
ingest(interlock.open(sys.argv[1]), json.loads(sys.argv[3]), sys.argv[2])
"""


def verifying(folder: Path, entries: int) -> Iterator[Figure]:
    """Measure `verify` over one long history and over many short ones."""
    for name, instances in (("one instance", 1), (f"{entries // 10:,} instances", entries // 10)):
        path = folder / f"verify-{instances}.db"
        with interlock.open(f"sqlite:///{path}?synchronous=normal") as store:
            fill(store, instances, entries)
            turns = in_turns([partial(rate, partial(verify_all, store), entries)])
        rates = [turn[0] for turn in turns]
        yield at_least(f"verify {entries:,} entries of {name}", 100_000, rates, "/s")


def remembering(folder: Path, entries: int) -> Iterator[Figure]:
    """Measure peak memory beyond the imports, for a size and for ten times as much."""
    peaks = []
    for scale in (1, 10):
        url = f"sqlite:///{folder}/memory-{scale}.db?synchronous=normal"
        with interlock.open(url) as store:
            fill(store, scale * entries // 100, scale * entries // 10)
        peaks.append(_peak(_VERIFY, url, str(folder / "report.json")))
    yield _flat(f"memory of verify, {entries:,} entries beside a tenth", peaks)
    peaks = []
    for scale in (1, 10):
        log = folder / f"log-{scale}.csv"
        write_log(log, scale * entries // 100)
        url = f"sqlite:///{folder}/ingest-{scale}.db?synchronous=normal"
        peaks.append(_peak(_INGEST, url, str(log), json.dumps(ROUND_TRIP)))
    yield _flat(f"memory of ingest, {entries:,} events beside a tenth", peaks)


def verify_all(store: interlock.Store, _: int) -> None:
    store.verify()


def fill(store: interlock.Store, instances: int, entries: int) -> None:
    """Give each of `instances` an equal share of `entries`."""
    ids: list[str] = []
    for start in range(0, instances, 1000):
        births = [interlock.Birth()] * min(1000, instances - start)
        ids += [id for id in store.instantiate_each(ROUND_TRIP, births) if isinstance(id, str)]
    for start in range(0, entries, 1000):
        fires = range(start, min(start + 1000, entries))
        store.fire_many([interlock.Fire(ids[number % instances], "go") for number in fires])


def write_log(path: Path, cases: int, events: int = 10) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["case", "action", "time"])
        for number in range(cases * events):
            rows.writerow([f"case-{number % cases}", "go", "2024-05-01T12:00:00Z"])


def _peak(work: str, *arguments: str) -> float:
    """Run `work` in a process of its own and give the growth of its peak memory, in MB."""
    command = [sys.executable, "-c", _PEAK.format(work=work), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def _flat(name: str, peaks: list[float]) -> Figure:
    small, large = peaks
    detail = f"{large:.1f} MB beside {small:.1f} MB above the imports"
    return at_most(name, 1.5, [large / max(small, 1)], "x", detail)
