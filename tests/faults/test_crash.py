"""Processes killed while they fire: what was acknowledged is there, nothing is there by half.

A child fires on a few instances and, after each call has returned, writes what it was told to a
pipe. The parent kills it at random moments, several times for each store, and then reads the
records. The seed of the moments is printed.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

import interlock
from tests.support import processes
from tests.support.inside import inside
from tests.support.machines import TOGGLE
from tests.support.records import breaches

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")

KILLS_PER_STORE = 5
STYLES = ["single", "many", "each", "threads"]

CHILD = """
import os, sys, threading
import interlock
from interlock import Fire

path, style, *ids = sys.argv[1:]
store = interlock.open("sqlite:///" + path)

def told(*lines):
    os.write(1, "".join(f"{id} {number}\\n" for id, number in lines).encode())

versions = {id: store.snapshot(id).version for id in ids}
told(*((id, version - 1) for id, version in versions.items() if version > 1))

def fire(id):
    store.fire(id, "go", reason="round " + str(versions[id]), expected_version=versions[id])
    told((id, versions[id]))
    versions[id] += 1

def together(verb):
    while True:
        fires = [Fire(id, "go", reason="r", expected_version=versions[id] + n)
                 for n in range(3) for id in ids]
        verb(fires)
        told(*((id, versions[id] + n) for n in range(3) for id in ids))
        for id in ids:
            versions[id] += 3

def forever(id):
    while True:
        fire(id)

if style == "single":
    while True:
        for id in ids:
            fire(id)
elif style == "many":
    together(store.fire_many)
elif style == "each":
    together(store.fire_each)
else:
    threads = [threading.Thread(target=forever, args=(id,)) for id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def kill_while_firing(path: Path, style: str, ids: list[str], random: Random) -> dict[str, int]:
    """Let a child fire until so many acknowledgements came, kill it, and give the last of each."""
    process = processes.start(CHILD, path, style, *ids)
    assert process.stdout
    told: dict[str, int] = {}
    wanted = len(ids) + random.randrange(1, 80)
    for _ in range(wanted):
        line = process.stdout.readline()
        if not line:
            break
        id, number = line.split()
        told[id] = int(number)
    for _ in range(random.randrange(2000)):
        pass  # some way into what comes next
    process.kill()
    for line in process.stdout:
        id, number = line.split()
        told[id] = int(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    return told


def crash(path: Path, style: str, seed: int, kills: int) -> int:
    """Kill several children on one store, one after another; give how much was acknowledged."""
    random = Random(f"{style}-{seed}")
    print(f"seed {style}-{seed}")
    acknowledged = 0
    with interlock.open(f"sqlite:///{path}") as store:
        ids = [store.instantiate(TOGGLE) for _ in range(4)]
    for _ in range(kills):
        told = kill_while_firing(path, style, ids, random)
        acknowledged = sum(told.values())
        with interlock.open(f"sqlite:///{path}") as store:
            for id in ids:
                history = store.history(id)
                numbers = [entry.sequence_number for entry in history]
                assert numbers == list(range(1, len(history) + 1))
                assert len(history) >= told.get(id, 0), "an acknowledged fire is lost"
                assert all(entry.reason for entry in history), "a payload is lost"
                assert store.snapshot(id).version == len(history) + 1
                assert store.current(id) == (history[-1].to_state if history else "off")
            if style in ("many", "each"):
                counts = [len(store.history(id)) for id in ids]
                assert len(set(counts)) == 1, f"half of a list was written: {counts}"
                assert counts[0] % 3 == 0, f"half of a list was written: {counts}"
            verify = getattr(store, "verify", None)
            if verify is not None:
                assert verify().ok
        with closing(sqlite3.connect(path)) as connection:
            assert breaches(connection) == []
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return acknowledged


@pytest.mark.parametrize("style", STYLES)
def test_kills_while_firing(path: Path, style: str) -> None:
    assert crash(path, style, seed=0, kills=KILLS_PER_STORE) > KILLS_PER_STORE


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize("style", STYLES)
def test_many_kills_while_firing(path: Path, style: str, seed: int) -> None:
    """With the twenty above, 200 kills in all."""
    assert crash(path, style, seed=seed, kills=KILLS_PER_STORE) > KILLS_PER_STORE


def test_a_killed_child_in_the_middle_of_births(path: Path) -> None:
    """Instances are born whole, with their payload and key, or not at all."""
    child = """
import os, sys
import interlock
store = interlock.open("sqlite:///" + sys.argv[1])
number = len(store.instances(limit=1000))
while True:
    key = f"key {number}"
    id = store.instantiate({TOGGLE!r}, instance_metadata={"key": key}, idempotency_key=key)
    os.write(1, f"{id} {key}\\n".encode())
    number += 1
""".replace("{TOGGLE!r}", repr(TOGGLE))
    random, told = Random(3), {}
    for _ in range(3):
        process = processes.start(child, path)
        assert process.stdout
        for _ in range(random.randrange(5, 40)):
            id, _, key = process.stdout.readline().rstrip("\n").partition(" ")
            told[key] = id
        process.kill()
        process.communicate(timeout=60)
        with interlock.open(f"sqlite:///{path}") as store:
            found = {}
            for row in store.instances(limit=1000):
                assert isinstance(row.metadata, dict)
                found[row.metadata["key"]] = row.id
            assert told.items() <= found.items()
            assert sorted(found) == sorted(f"key {number}" for number in range(len(found)))
            for key, id in found.items():
                again = store.instantiate(
                    TOGGLE, instance_metadata={"key": key}, idempotency_key=key
                )
                assert again == id


def test_two_writers_one_of_them_killed(path: Path) -> None:
    """The survivor goes on, over the lock and the log that the dead one left."""
    with interlock.open(f"sqlite:///{path}") as store:
        mine, theirs = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
        for round_ in range(3):
            process = processes.start(CHILD, path, "single", theirs)
            assert process.stdout
            done = 0
            while not process.stdout.readline():
                pass
            while done < 10:
                store.fire(mine, "go", idempotency_key=f"{round_}-{done}")
                done += 1
            process.kill()
            process.communicate(timeout=60)
            store.fire(theirs, "go")
        assert len(store.history(mine)) == 30
    with closing(sqlite3.connect(path)) as connection:
        assert breaches(connection) == []


# The power fails


def cut_log(source: Path, target: Path, length: int) -> None:
    shutil.copy(source, target)
    log = source.with_name(source.name + "-wal").read_bytes()
    target.with_name(target.name + "-wal").write_bytes(log[:length])


def test_a_log_cut_anywhere_holds_a_prefix_of_the_commits(path: Path, tmp_path: Path) -> None:
    """What a power failure may leave of the last writes: whole commits, the first n of them."""
    child = """
import os, sys
import interlock
store = interlock.open("sqlite:///" + sys.argv[1])
ids = [store.instantiate({TOGGLE!r}) for _ in range(3)]
for number in range(20):
    store.fire(ids[number % 3], "go", reason="why")
    if number % 5 == 0:
        store.fire_many([interlock.Fire(id, "go") for id in ids * 3])
os.write(1, b"done")
sys.stdin.read()
""".replace("{TOGGLE!r}", repr(TOGGLE))
    process = processes.start(child, path)
    assert process.stdout
    assert process.stdout.read(4) == "done"
    process.kill()
    process.communicate(timeout=60)
    length = path.with_name(path.name + "-wal").stat().st_size
    frames = range(32, length + 1, 4096 + 24)
    random, lengths = Random(11), []
    cuts = sorted(
        {*frames[:: max(1, len(frames) // 60)], *(random.randrange(length) for _ in range(40))}
    )
    for number, cut in enumerate([*cuts, length]):
        target = tmp_path / f"cut-{number}.db"
        cut_log(path, target, cut)
        with interlock.open(f"sqlite:///{target}") as store:
            total = 0
            for row in store.instances():
                history = store.history(row.id)
                assert [entry.sequence_number for entry in history] == [*range(1, len(history) + 1)]
                assert row.version == len(history) + 1
                total += len(history)
                store.fire(row.id, "go")
        with closing(sqlite3.connect(target)) as connection:
            assert breaches(connection) == []
        lengths.append(total)
        for left in tmp_path.glob(f"cut-{number}.db*"):
            left.unlink()
    assert lengths == sorted(lengths), "a longer log tells less"
    assert lengths[-1] == 20 + 4 * 9
    assert len(set(lengths)) > 10


def test_an_acknowledged_commit_is_asked_to_be_durable(path: Path) -> None:
    """WAL and synchronous=FULL on the connection that writes, unless the URL asks for less."""
    for suffix, level in (("", 2), ("?synchronous=full", 2), ("?synchronous=normal", 1)):
        with interlock.open(f"sqlite:///{path}{suffix}") as store:
            writer = inside(store)._writer
            assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert writer.execute("PRAGMA synchronous").fetchone() == (level,)
            assert writer.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)


@pytest.mark.skipif(not shutil.which("strace"), reason="there is no `strace` to count with")
def test_each_acknowledged_commit_was_synced(path: Path, tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import interlock, sys\n"
        "store = interlock.open('sqlite:///' + sys.argv[1])\n"
        f"id = store.instantiate({TOGGLE!r})\n"
        "for number in range(25):\n"
        "    store.fire(id, 'go')\n"
    )
    log = tmp_path / "strace.log"
    traced = f"strace -f -c -e trace=fdatasync,fsync -o '{log}' \"$PYTHON\" '{child}' '{path}'"
    try:
        processes.run_shell(["sh", "-c", traced])
    except (AssertionError, subprocess.SubprocessError):
        pytest.skip("`strace` may not trace here")
    calls: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        words = line.split()
        if words and words[-1] in ("fdatasync", "fsync"):
            calls[words[-1]] += int(words[3])
    assert sum(calls.values()) >= 26


def test_the_fork_of_a_process_cannot_use_its_store(path: Path) -> None:
    """It would share locks it does not hold; SQLite forbids it, so the store says it."""
    code = """
import json, os, sys
import interlock
store = interlock.open("sqlite:///" + sys.argv[1])
id = store.instantiate({TOGGLE!r})
child = os.fork()
if child == 0:
    said = []
    for verb, *given in ((store.fire, id, "go"), (store.current, id), (store.history, id)):
        try:
            said.append(verb(*given))
        except interlock.StorageFailure as failure:
            said.append(str(failure))
    store.close()
    print(json.dumps(said), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([store.fire(id, "go"), len(store.history(id))]))
""".replace("{TOGGLE!r}", repr(TOGGLE))
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    child, parent = map(json.loads, processes.run(code, path).splitlines())
    refusals: list[Any] = child[:3]
    assert all("fork" in said for said in refusals), child
    assert len(child) == 3
    assert parent == ["on", 1]
