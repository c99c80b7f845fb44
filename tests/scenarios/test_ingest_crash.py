"""A process that ingests is killed at any moment; the next run ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import interlock
from interlock.eventlog import ingest
from tests.unit.eventlog.logs import ORDER, told, write_log

CASES = 60
NOTES = 15
INGEST = """
import json, sys
import interlock
from interlock.eventlog import ingest
url, log, declaration = sys.argv[1:]
with interlock.open(url) as store:
    ingest(
        store, json.loads(declaration), log, batch=16,
        on_progress=lambda progress: print(progress.done, flush=True),
    )
"""


def event_rows() -> list[tuple]:
    """Sixty orders, interleaved; every tenth ships before it is paid."""
    rows: list[tuple] = [
        (f"A-{case}", "ship" if case % 10 == 0 else "pay", case) for case in range(CASES)
    ]
    for step in range(NOTES):
        rows += [(f"A-{case}", "note", case + step) for case in range(CASES)]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_killed_run_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    rng, rows = random.Random(seed), event_rows()
    log = write_log(tmp_path / "log.csv", rows)
    url = f"sqlite:///{tmp_path}/orders.db"
    command = [sys.executable, "-c", INGEST, url, str(log), json.dumps(ORDER)]
    acknowledged = 0
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(rng.randrange(1, 20)):
                acknowledged = max(acknowledged, int(child.stdout.readline() or len(rows)))
            time.sleep(rng.uniform(0, 0.01))
            child.kill()
        assert child.returncode in (-signal.SIGKILL, 0)
        with interlock.open(url) as store:
            halted = CASES // 10 * (NOTES + 1)  # events that no run records
            recorded = sum(row.version - 1 for row in store.instances(limit=1000))
            assert recorded >= acknowledged - halted, "what was acknowledged is there"
    with interlock.open(url) as store:
        before = sum(row.version - 1 for row in store.instances(limit=1000))
        report = ingest(store, ORDER, log)
        assert (report.cases, report.conforming) == (CASES, CASES - CASES // 10)
        assert (report.recognised, report.refused) == (before, CASES // 10)
        assert report.recorded + before == (CASES - CASES // 10) * (NOTES + 1)
        assert len(store.instances(limit=1000)) == CASES
        for case in range(CASES):
            expected = [(action, time, None) for name, action, time in rows if name == f"A-{case}"]
            assert told(store, f"A-{case}") == ([] if case % 10 == 0 else expected)
