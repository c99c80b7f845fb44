"""A real server behind a network that fails: what a call says is what the record shows.

Every test asks the same: an acknowledged call is there exactly once, a refused one is not there,
and nothing else is said before the bound is over. Loops (`a --go--> a`) are fired, since a second
fire of anything else would be refused and so go unseen.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest

import interlock
from interlock.store.postgres.connecting import FRESH
from interlock.testing import Blocking
from tests.support.machines import arrow, declare
from tests.support.postgres import database, server
from tests.support.proxy import Proxy
from tests.support.together import all_at_once, outcome_of, wait_until_gathered

LOOP = declare(["a"], [arrow("a", "go", "a")])
LINE = declare(["a", "b", "c"], [arrow("a", "go", "b"), arrow("b", "on", "c")])

FACES = ["sync", "sync-alone", "async", "async-alone"]
BUSY, AWAY = 300, 1000  # milliseconds
BOUND = (BUSY + AWAY) / 1000
SLACK = 1.0  # seconds that a loaded machine may add

_marks = count(1)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        with interlock.open(url):
            pass
        yield url
        with interlock.open(url) as store:
            assert store.verify().ok


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url) as proxy:
        yield proxy
        proxy.heal()


@pytest.fixture
def direct(url: str) -> Iterator[interlock.Store]:
    """A store that no fault concerns."""
    with interlock.open(url) as store:
        yield store


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return request.param


def at_face(face: str, url: Callable[..., str], **settings: Any) -> Any:
    """Open a store with one of its faces; URLs are made of settings."""
    kind, _, alone = face.partition("-")
    settings = {"busy_ms": BUSY, "away_ms": AWAY, **settings}
    place = url(**settings, **({"together": "no"} if alone else {}))
    return (
        interlock.open(place) if kind == "sync" else Blocking(lambda: interlock.open_async(place))
    )


def new_mark() -> str:
    """Make an actor that nobody else is."""
    return f"actor-{next(_marks)}-{uuid4().hex[:8]}"


def key_of(mark: str) -> str:
    """Make an idempotency key that is no mark: what looks for it is no write."""
    return mark[::-1]


class Verb(NamedTuple):
    """A way to write with a mark: what it does, and how often the record then shows the mark."""

    call: Callable[[Any, list[str], str], Any]
    written: int
    births: bool = False


def _fire(store: Any, ids: list[str], mark: str, **how: Any) -> Any:
    return store.fire(ids[0], "go", mark, **how)


def _list(ids: list[str], mark: str) -> list[interlock.Fire]:
    return [interlock.Fire(id, "go", mark) for id in (ids[0], ids[1], ids[0])]


VERBS = {
    "fire": Verb(_fire, 1),
    "fire-keyed": Verb(lambda s, ids, mark: _fire(s, ids, mark, idempotency_key=key_of(mark)), 1),
    "fire-reason": Verb(lambda s, ids, mark: _fire(s, ids, mark, reason="because"), 1),
    "fire_many": Verb(lambda s, ids, mark: s.fire_many(_list(ids, mark)), 3),
    "fire_each": Verb(lambda s, ids, mark: s.fire_each(_list(ids, mark)), 3),
    "instantiate": Verb(lambda s, ids, mark: s.instantiate(LOOP, mark), 1, True),
    "instantiate-keyed": Verb(
        lambda s, ids, mark: s.instantiate(LOOP, mark, None, [1], idempotency_key=key_of(mark)),
        1,
        True,
    ),
    "instantiate_each": Verb(
        lambda s, ids, mark: s.instantiate_each(LOOP, [interlock.Birth(mark)] * 3), 3, True
    ),
}


def shown(direct: interlock.Store, url: str, mark: str) -> int:
    """Count what the record shows of a mark."""
    with psycopg.connect(url, autocommit=True) as connection:
        (found,) = connection.execute(
            "SELECT (SELECT count(*) FROM interlock.history WHERE actor_ref = %(mark)s)"
            " + (SELECT count(*) FROM interlock.instances WHERE actor_ref = %(mark)s)",
            {"mark": mark},
        ).fetchone() or (0,)
    return int(found)


@pytest.mark.parametrize(
    ("face", "verb"),
    [
        (face, verb)
        for face in FACES
        for verb in VERBS
        if VERBS[verb].written == 1 or "alone" not in face  # lists go alone on every face
    ],
)
@pytest.mark.parametrize("how", ["lose_answer", "cut_before", "cut_after"])
def test_a_call_whose_answer_was_lost_is_answered_and_done_once(
    how: str, verb: str, face: str, proxy: Proxy, url: str, direct: interlock.Store
) -> None:
    call, written, births = VERBS[verb]
    ids = [direct.instantiate(LOOP) for _ in range(2)]
    with at_face(face, proxy.url) as store:
        warm = new_mark()
        call(store, ids, warm)  # so that statements are prepared, and standings kept
        assert shown(direct, url, warm) == written
        mark = new_mark()
        fault = getattr(proxy, how)(mark.encode())
        answer = call(store, ids, mark)
        assert fault.over.wait(10)
        assert shown(direct, url, mark) == written
        answers = answer if isinstance(answer, list) else [answer]
        if births:
            assert [direct.current(id) for id in answers] == ["a"] * written
        else:
            assert answers == ["a"] * written
            assert [entry.sequence_number for entry in direct.history(ids[0])] == [
                *range(1, len(direct.history(ids[0])) + 1)
            ]
        call(store, ids, new_mark())  # and the store is as good as before


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_cut_at_any_byte_of_a_fire_makes_no_second_one(
    face: str, way: str, proxy: Proxy, direct: interlock.Store
) -> None:
    id = direct.instantiate(LOOP)
    with at_face(face, proxy.url) as store:
        store.fire(id, "go")
        before = proxy.passed[way]
        store.fire(id, "go")
        size = proxy.passed[way] - before
        assert size > 20
        fires = 2
        for place in range(0, size + 1, max(1, size // 24)):
            proxy.cut_at(way, place)
            assert store.fire(id, "go", reason=None if place % 2 else "even") == "a"
            proxy.heal()
            fires += 1
            assert len(direct.history(id)) == fires, f"cut at byte {place} {way}"


@contextmanager
def again_and_again(trouble: Callable[[], object], seconds: float) -> Iterator[threading.Event]:
    """Make trouble every so many seconds, ten times; the event is set when that is over."""
    ended, enough = threading.Event(), threading.Event()

    def make() -> None:
        for _ in range(10):
            if ended.wait(seconds):
                return
            trouble()
        enough.set()

    maker = threading.Thread(target=make)
    maker.start()
    try:
        yield enough
    finally:
        ended.set()
        maker.join()


def kill_one(url: str) -> None:
    """End a session of ours, whatever it is doing."""
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'interlock' AND datname = %s ORDER BY random() LIMIT 1",
            [psycopg.conninfo.conninfo_to_dict(url)["dbname"]],
        )


@pytest.mark.parametrize("trouble", ["cut", "kill"])
def test_a_crowd_whose_connections_are_lost_again_and_again_is_told_the_truth(
    trouble: str, face: str, proxy: Proxy, url: str, direct: interlock.Store
) -> None:
    """32 callers on 4 instances, most of them in batches; each acknowledged fire is one entry."""
    ids = [direct.instantiate(LOOP) for _ in range(4)]
    make = proxy.cut if trouble == "cut" else partial(kill_one, url)
    proxy.slow(up=0.002, down=0.004)
    with (
        at_face(face, proxy.url, away_ms=20_000, busy_ms=20_000) as store,
        again_and_again(make, 0.08) as enough,
    ):

        def go_on(place: int) -> int:
            done = 0
            while not enough.is_set():
                mark = f"w{place}-{done}"
                assert store.fire(ids[place % 4], "go", mark) == "a"
                done += 1
            return done

        done = all_at_once([partial(go_on, place) for place in range(32)])
    assert all(isinstance(one, int) for one in done), [one for one in done if type(one) is not int]
    told = {f"w{place}-{n}" for place, times in enumerate(done) for n in range(times)}
    for place, id in enumerate(ids):
        entries = Counter(entry.actor_ref for entry in direct.history(id))
        assert set(entries.values()) == {1}
        assert entries.keys() == {one for one in told if int(one[1:].split("-")[0]) % 4 == place}
        assert direct.verify(id).ok


def test_a_late_duplicate_writes_nothing_twice(
    face: str, proxy: Proxy, direct: interlock.Store
) -> None:
    """The statement lies in a buffer; the caller is answered by another; then it comes late."""
    id = direct.instantiate(LOOP)
    with at_face(face, proxy.url) as store:
        store.fire(id, "go")
        mark, born = new_mark(), new_mark()
        late = [proxy.hold(mark.encode()), proxy.hold(born.encode())]
        calls = [partial(store.fire, id, "go", mark), partial(store.instantiate, LOOP, born)]
        fired, begun = all_at_once(calls)
        assert fired == "a"
        assert all(fault.met.is_set() for fault in late)
        assert len(direct.history(id)) == 2
        assert direct.snapshot(begun).actor_ref == born
        for fault in late:
            fault.deliver()
        assert [entry.actor_ref for entry in direct.history(id)] == [None, mark]
        assert direct.snapshot(begun).version == 1
        assert store.fire(id, "go") == "a"


def test_a_late_duplicate_of_a_refused_call_is_not_written_either(
    face: str, proxy: Proxy, direct: interlock.Store
) -> None:
    """Another is faster while the statement lies in a buffer; the caller is refused for good."""
    id = direct.instantiate(LINE)
    with at_face(face, proxy.url) as store, ThreadPoolExecutor(1) as pool:
        store.current(id)
        mark = new_mark()
        late = proxy.hold(mark.encode())
        call = pool.submit(outcome_of, lambda: store.fire(id, "go", mark))
        assert late.met.wait(10)
        assert direct.fire(id, "go", "faster") == "b"
        refused = call.result(30)
        assert isinstance(refused, interlock.InvalidTransition), refused
        assert refused.state == "b"
        late.deliver()
        assert [entry.actor_ref for entry in direct.history(id)] == ["faster"]


def test_a_late_batch_makes_no_refusal_of_its_calls_a_lie(
    proxy: Proxy, direct: interlock.Store
) -> None:
    """Of two fires on one instance in a lost batch the second is possible after the first alone.

    So it must not be refused by itself as long as the batch may still come: it would be in it.
    """
    id = direct.instantiate(LINE)
    with at_face("sync", proxy.url) as store, ThreadPoolExecutor(2) as pool:
        store.current(id)
        group = store._fires
        first, second = new_mark(), new_mark()
        alone, second_ended = group._alone, threading.Event()

        def second_first(call: Any, error: Any) -> Any:
            if call.request.actor_ref == first:
                second_ended.wait(5)
            try:
                return alone(call, error)
            finally:
                if call.request.actor_ref == second:
                    late.deliver()
                    second_ended.set()

        group._alone = second_first
        late = proxy.hold(first.encode())
        calls = []
        with group._committing:
            for place, (action, mark) in enumerate([("go", first), ("on", second)], 1):
                fire = partial(store.fire, id, action, mark)
                calls.append(pool.submit(outcome_of, fire))
                wait_until_gathered(group, place)
        outcomes = [call.result(30) for call in calls]
        late.deliver()
        entries = [entry.actor_ref for entry in direct.history(id)]
        for mark, outcome in zip((first, second), outcomes, strict=True):
            assert (mark in entries) == isinstance(outcome, str), (outcomes, entries)
        assert entries == [first, second]
        assert outcomes == ["b", "c"]


def test_a_connection_that_says_nothing_more_is_given_up_within_the_bound(
    face: str, proxy: Proxy, direct: interlock.Store
) -> None:
    """A router has forgotten one connection: the call is looked up on another, and answered."""
    id = direct.instantiate(LOOP)
    with at_face(face, proxy.url) as store:
        store.fire(id, "go")
        mark = new_mark()
        fault = proxy.lose_answer(mark.encode(), silently=True)
        began = time.monotonic()
        assert store.fire(id, "go", mark) == "a"
        assert time.monotonic() - began < BOUND + SLACK
        assert fault.over.is_set()
        assert [entry.actor_ref for entry in direct.history(id)] == [None, mark]


@pytest.mark.parametrize("how", ["lose_answer", "cut_before"])
@pytest.mark.parametrize("verb", ["fire", "instantiate"])
def test_only_past_the_bound_is_the_outcome_unknown_and_the_key_tells_later(
    verb: str, how: str, face: str, proxy: Proxy, url: str, direct: interlock.Store
) -> None:
    id = direct.instantiate(LOOP)
    with at_face(face, proxy.url) as store:
        store.fire(id, "go")
        mark = new_mark()
        fault = getattr(proxy, how)(mark.encode(), then_refuses=True)

        def call() -> str:
            if verb == "fire":
                return store.fire(id, "go", mark, idempotency_key=key_of(mark))
            return store.instantiate(LOOP, mark, idempotency_key=key_of(mark))

        began = time.monotonic()
        with pytest.raises(interlock.OutcomeUnknown) as raised:
            call()
        took = time.monotonic() - began
        assert fault.over.is_set()
        assert AWAY / 1000 <= took < BOUND + SLACK
        executed = how == "lose_answer"
        assert shown(direct, url, mark) == executed
        own_id = raised.value.transition_id
        assert raised.value.cause
        if executed and verb == "fire":
            assert direct.history(id)[-1].transition_id == own_id
        elif executed:
            assert direct.current(own_id) == "a"
        proxy.heal()
        answer = call()
        assert answer == ("a" if verb == "fire" else answer)
        assert call() == answer
        if executed and verb == "instantiate":
            assert answer == own_id
        assert shown(direct, url, mark) == 1


def test_a_server_that_is_away_before_anything_was_sent_is_unreachable(
    face: str, proxy: Proxy, url: str, direct: interlock.Store
) -> None:
    id = direct.instantiate(LOOP)
    mark = new_mark()
    with at_face(face, proxy.url, away_ms=500) as store:
        calls: dict[str, Callable[[], Any]] = {
            "fire": lambda: store.fire(id, "go", mark),
            "current": lambda: store.current(id),
            "fire_many": lambda: store.fire_many([interlock.Fire(id, "go", mark)]),
            "fire_each": lambda: store.fire_each([interlock.Fire(id, "go", mark)]),
            "instantiate": lambda: store.instantiate(LOOP, mark),
            "history": lambda: store.history(id),
        }
        store.fire(id, "go")
        time.sleep(2 * FRESH)
        proxy.refuse()
        for name, refused in zip(calls, all_at_once([*calls.values()]), strict=True):
            assert isinstance(refused, interlock.StorageFailure), (name, refused)
            assert (refused.kind, refused.retryable) == ("unreachable", True), (name, refused)
        assert shown(direct, url, mark) == 0
        proxy.heal()
        assert once_reached(lambda: store.fire(id, "go", mark)) == "a"
        assert len(direct.history(id)) == 2


def once_reached(call: Callable[[], Any], seconds: float = 10) -> Any:
    """Call until the server can be reached again: a pool may take longer than a call waits."""
    ends = time.monotonic() + seconds
    while True:
        answer = outcome_of(call)
        away = isinstance(answer, interlock.StorageFailure) and answer.kind == "unreachable"
        if not away or time.monotonic() > ends:
            return answer


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_server_that_is_away_at_open_is_told_at_once(kind: str, proxy: Proxy) -> None:
    proxy.refuse()
    began = time.monotonic()
    refused = outcome_of(lambda: at_face(kind, proxy.url, away_ms=30_000))
    assert isinstance(refused, interlock.StorageFailure), refused
    assert (refused.kind, refused.retryable) == ("unreachable", True)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("after", [0, 700])
def test_a_black_hole_at_open_is_not_waited_for_without_end(
    after: int, kind: str, proxy: Proxy
) -> None:
    """It swallows the connection at once, or when so many bytes have come back."""
    if after:
        proxy.swallow_at("down", after)
    else:
        proxy.black_hole()
    began = time.monotonic()
    refused = outcome_of(lambda: at_face(kind, proxy.url))
    assert isinstance(refused, interlock.StorageFailure), refused
    assert (refused.kind, refused.retryable) == ("unreachable", True)
    assert time.monotonic() - began < max(BOUND, 2) + SLACK


def test_no_call_waits_for_a_black_hole_longer_than_its_bound(
    face: str, proxy: Proxy, url: str, direct: interlock.Store
) -> None:
    ids = [direct.instantiate(LOOP) for _ in range(8)]
    mark = new_mark()
    with at_face(face, proxy.url) as store:
        all_at_once([partial(store.fire, id, "go") for id in ids])  # some connections, some idle
        calls: dict[str, Callable[[], Any]] = {
            "fire": lambda: store.fire(ids[0], "go", mark),
            "current": lambda: store.current(ids[0]),
            "fire_many": lambda: store.fire_many([interlock.Fire(ids[1], "go", mark)]),
            "fire_each": lambda: store.fire_each([interlock.Fire(ids[2], "go", mark)]),
            "instantiate": lambda: store.instantiate(LOOP, mark),
            "history": lambda: store.history(ids[0]),
        }
        proxy.black_hole()

        def timed(call: Callable[[], Any]) -> tuple[float, Any]:
            began = time.monotonic()
            outcome = outcome_of(call)
            return time.monotonic() - began, outcome

        with ThreadPoolExecutor(len(calls)) as pool:
            told = dict(zip(calls, pool.map(timed, calls.values()), strict=True))
        for name, (took, outcome) in told.items():
            assert took < BOUND + SLACK, (name, took, outcome)
            if isinstance(outcome, interlock.StorageFailure):
                assert (outcome.kind, outcome.retryable) == ("unreachable", True), (name, outcome)
            else:
                assert isinstance(outcome, interlock.OutcomeUnknown), (name, outcome)
        proxy.cut()  # or what was held would come late, and be true
        proxy.heal()
        began = time.monotonic()
        assert store.fire(ids[0], "go") == "a"
        assert time.monotonic() - began < BOUND + SLACK
        assert all_at_once([partial(store.fire, id, "go") for id in ids]) == ["a"] * 8
