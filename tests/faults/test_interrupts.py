"""Signal handlers: they raise, or call the store themselves, between any two steps of a caller."""

from pathlib import Path

import pytest

from tests.support import processes
from tests.support.machines import TOGGLE

INTERRUPTED = """
import random, signal, sys, threading, time
import interlock

url, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
class Interrupt(Exception): pass
armed = False
def interrupt(*_):
    if armed:
        raise Interrupt
signal.signal(signal.SIGALRM, interrupt)
store = interlock.open(url + "?synchronous=normal")
machine = {machine}
ids = [store.instantiate(machine) for _ in range(threads)]
acknowledged = [0] * threads
ended = threading.Event()
def go_on(place):
    while not ended.is_set():
        store.fire(ids[place], "go")
        acknowledged[place] += 1
others = [threading.Thread(target=go_on, args=[place]) for place in range(1, threads)]
for other in others:
    other.start()
interrupts, rng, until = 0, random.Random(1), time.monotonic() + seconds
while time.monotonic() < until:
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.0006), 0.00003)
        while True:
            store.fire(ids[0], "go")
            acknowledged[0] += 1
    except Interrupt:
        try:
            armed = False
        except Interrupt:
            armed = False
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
ended.set()
for other in others:
    other.join(20)
    assert not other.is_alive(), "a caller waits for ever"
print(store.fire(ids[0], "go"))
report = store.verify()
assert report.ok, report.findings
for place, id in enumerate(ids):
    entries = len(store.history(id))
    if place:
        assert entries == acknowledged[place], (place, entries, acknowledged)
    else:
        assert acknowledged[0] < entries <= acknowledged[0] + interrupts + 1
print(interrupts)
store.close()
""".replace("{machine}", repr(TOGGLE))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("place", ["sqlite://", "file"])
def test_a_handler_that_raises_at_any_moment_leaves_the_store_usable(
    place: str, threads: int, path: Path
) -> None:
    """The interrupt reaches its own caller; what is acknowledged is there, and nobody waits."""
    url = place if place != "file" else f"sqlite:///{path}"
    state, interrupts = processes.run(INTERRUPTED, url, threads, 2).split()
    assert state in ("on", "off")
    assert int(interrupts) > 100


CALLING = """
import signal, sys, threading
import interlock

store = interlock.open(sys.argv[1])
machine = {machine}
one, two = store.instantiate(machine), store.instantiate(machine)
said, done = [], []
def call(*_):
    for verb, *given in (
        (store.fire, two, "go"),
        (store.fire_many, [interlock.Fire(two, "go")]),
        (store.instantiate, machine),
        (store.current, one),
    ):
        try:
            verb(*given)
            done.append(verb.__name__)
        except interlock.StorageFailure as failure:
            assert failure.kind == "busy", failure
            said.append(str(failure))
signal.signal(signal.SIGALRM, call)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
for _ in range(3000):
    store.fire(one, "go")
signal.setitimer(signal.ITIMER_REAL, 0)
report = store.verify()
assert report.ok, report.findings
assert len(store.history(one)) == 3000
fired = done.count("fire") + done.count("fire_many")
assert len(store.history(two)) == fired, (len(store.history(two)), fired)
assert all("this very thread" in sentence for sentence in said), said
print(len(said), len(done))
""".replace("{machine}", repr(TOGGLE))


@pytest.mark.parametrize("place", ["sqlite://", "file"])
def test_a_handler_that_calls_the_store_is_answered_or_refused(place: str, path: Path) -> None:
    """It runs inside a call of its own thread: waiting for that would be waiting for ever."""
    url = place if place != "file" else f"sqlite:///{path}"
    refused, done = map(int, processes.run(CALLING, url).split())
    assert refused
    assert done


def test_a_fork_while_another_thread_writes_is_refused_and_never_waits(path: Path) -> None:
    """The locks that the other thread held are held for ever in the child."""
    code = """
import os, sys, threading
import interlock
store = interlock.open("sqlite:///" + sys.argv[1])
ids = [store.instantiate({machine}) for _ in range(3)]
ended = threading.Event()
def go_on(id):
    while not ended.is_set():
        store.fire(id, "go")
threads = [threading.Thread(target=go_on, args=[id]) for id in ids]
for thread in threads:
    thread.start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        refused = 0
        calls = (
            lambda: store.fire(ids[0], "go"),
            lambda: store.instantiate({machine}),
            lambda: store.fire_many([interlock.Fire(ids[0], "go")]),
            lambda: store.current(ids[0]),
            lambda: store.verify(),
        )
        for call in calls:
            try:
                call()
            except interlock.StorageFailure as failure:
                refused += failure.kind == "closed" and "fork" in str(failure)
        store.close()
        os._exit(0 if refused == len(calls) else 1)
    assert os.waitpid(child, 0)[1] == 0
ended.set()
for thread in threads:
    thread.join()
assert store.verify().ok
""".replace("{machine}", repr(TOGGLE))
    processes.run(code, path)
