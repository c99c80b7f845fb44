"""Signal handlers: they raise, or call the store themselves, between any two steps of a caller."""

from pathlib import Path
from typing import Any

import pytest

from interlock.store.store import Store
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
inside = False
def call(*_):
    global inside
    if inside:
        return
    inside = True
    try:
        calls()
    finally:
        inside = False
def calls():
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


WAITING = """
import faulthandler, os, signal, sys, threading, time
import interlock
faulthandler.dump_traceback_later(30, exit=True)
store = interlock.open(sys.argv[1])
a, b, c = (store.instantiate({machine}) for _ in range(3))
said = []
def call(*_):
    try:
        store.fire(c, "go")
    except interlock.StorageFailure as failure:
        said.append(failure.kind)
signal.signal(signal.SIGUSR1, call)
held, go_on = threading.Event(), threading.Event()
def hold():
    with store._database._lock:
        held.set()
        go_on.wait(20)
threading.Thread(target=hold).start()
held.wait()
threading.Timer(0.2, lambda: store.fire(b, "go")).start()  # leads the batch that gathers
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
threading.Timer(0.8, go_on.set).start()
store.fire(a, "go")
while store.current(b) != "on":
    time.sleep(0.01)
print(*said, store.current(a), store.current(b), store.current(c))
""".replace("{machine}", repr(TOGGLE))


def test_a_handler_that_calls_while_its_thread_waits_for_others_is_refused(path: Path) -> None:
    """It would wait for a batch whose leader waits for the commit of its own thread."""
    assert processes.run(WAITING, f"sqlite:///{path}").split() == ["busy", "on", "on", "off"]


def test_a_call_that_was_broken_off_does_not_happen_later(store: Store) -> None:
    """The interrupt comes as the call joins the batch; whoever looks, and fires again, is right."""

    class Interrupting(list[Any]):
        def append(self, ticket: Any) -> None:
            super().append(ticket)
            raise KeyboardInterrupt

    broken_off, other = store.instantiate(TOGGLE), store.instantiate(TOGGLE)
    store._fires._gathering.tickets = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        store.fire(broken_off, "go")
    store._fires._gathering.tickets = [*store._fires._gathering.tickets]
    store.fire(other, "go")
    assert [store.current(broken_off), store.current(other)] == ["off", "on"]


def test_a_file_that_was_open_at_a_fork_is_not_opened_in_the_child(path: Path) -> None:
    """SQLite takes the locks of the parent for the child's own, and takes none."""
    code = """
import os, sys
import interlock
url = "sqlite:///" + sys.argv[1]
store = interlock.open(url)
id = store.instantiate({machine})
child = os.fork()
if child == 0:
    for again in (url, url + "?mode=ro"):
        try:
            interlock.open(again)
        except interlock.StorageFailure as failure:
            assert failure.kind == "closed" and "forked" in str(failure), failure
        else:
            os._exit(1)
    with interlock.open(url + ".other") as other:
        other.instantiate({machine})
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.fire(id, "go")
store.close()
child = os.fork()  # what was closed before is nobody's
if child == 0:
    with interlock.open(url) as store:
        os._exit(0 if store.fire(id, "go") == "off" else 1)
assert os.waitpid(child, 0)[1] == 0
""".replace("{machine}", repr(TOGGLE))
    processes.run(code, path)


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
