"""An SQLite that fails at every point in turn: a failure changes nothing, and the next call works.

The first half injects faults through the connection; `test_real_faults.py` has the real ones.
"""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import interlock
from interlock import Birth, Fire, OutcomeUnknown, Rejected, StorageFailure
from interlock.store.store import Store
from tests.support.faulty import CODES, Faults, faulty_store
from tests.support.inside import inside
from tests.support.machines import BATCH, MACHINES, TOGGLE
from tests.support.records import Content, breaches, content, unlawful
from tests.support.together import all_at_once, in_one_batch, outcome_of

BUSY = {"busy", "locked"}


class Bench:
    """A store on faulty connections, with an instance to fire on and one to show that it works."""

    def __init__(self, path: Path | None) -> None:
        self.faults = Faults()
        self.store = faulty_store(path, self.faults)
        self.subject = self.store.instantiate(TOGGLE)
        self.canary = self.store.instantiate(TOGGLE)
        self.round = 0

    def records(self) -> Content:
        return content(inside(self.store)._writer)

    def works(self) -> None:
        """Show that the store takes a call, and that the records hold."""
        self.faults.clear()
        self.round += 1
        state = self.store.fire(self.canary, "go")
        assert self.store.current(self.canary) == state
        assert breaches(inside(self.store)._writer) == []


@pytest.fixture(params=["memory", "file"])
def bench(request: pytest.FixtureRequest, path: Path) -> Iterator[Bench]:
    bench = Bench(None if request.param == "memory" else path)
    yield bench
    bench.faults.clear()
    bench.store.close()


class Verb(NamedTuple):
    """A writing call; `key` names a call of its own, whatever came before."""

    call: Callable[[Store, str, str], Any]
    keyed: bool = False


def _fresh_machine(key: str) -> dict[str, Any]:
    return {**MACHINES["purchase-order"], "states": [*MACHINES["purchase-order"]["states"], key]}


VERBS = {
    "instantiate": Verb(lambda store, id, key: store.instantiate(BATCH)),
    "instantiate with all": Verb(
        lambda store, id, key: store.instantiate(
            _fresh_machine(key), "ann", "batch", {"key": key}, idempotency_key=key
        ),
        keyed=True,
    ),
    "fire": Verb(lambda store, id, key: store.fire(id, "go")),
    "fire with all": Verb(
        lambda store, id, key: store.fire(
            id, "go", "ann", reason="why", worker_id="w", idempotency_key=key
        ),
        keyed=True,
    ),
    "fire_many": Verb(
        lambda store, id, key: store.fire_many(
            [Fire(id, "go", reason=f"{n}", idempotency_key=f"{key}-{n}") for n in range(3)]
        ),
        keyed=True,
    ),
    "fire_each": Verb(
        lambda store, id, key: store.fire_each([Fire(id, "go"), Fire(id, "nope"), Fire(id, "go")])
    ),
    "instantiate_each": Verb(
        lambda store, id, key: store.instantiate_each(
            BATCH, [Birth(instance_metadata=[key], idempotency_key=key), Birth(actor_ref=" ")]
        )
    ),
}

READS: dict[str, Callable[[Store, str], Any]] = {
    "current": lambda store, id: store.current(id),
    "history": lambda store, id: store.history(id, {"action": "go"}),
    "history, refused": lambda store, id: store.history(id, {"nope": 1}),
    "read_declaration": lambda store, id: store.read_declaration(id),
    "instances": lambda store, id: store.instances(),
    "snapshot": lambda store, id: store.snapshot(id),
    "snapshot then": lambda store, id: store.snapshot(id, at_sequence=0),
}


def swept(bench: Bench, arm: Callable[[int], object], call: Callable[[], Any]) -> Iterator[Any]:
    """Make a call again and again, a later statement failing each time; end when none was left."""
    for number in itertools.count(1):
        assert number < 60, "there is no end to the statements"
        raised = bench.faults.raised
        arm(number)
        outcome = outcome_of(call)
        bench.faults.clear()
        if bench.faults.raised == raised:
            assert not isinstance(outcome, BaseException), outcome
            assert number > 3, "no statement was failed"
            return
        yield outcome


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", VERBS)
def test_a_statement_that_fails_changes_nothing(bench: Bench, name: str, code: str) -> None:
    """Whichever statement it is, BEGIN and COMMIT with them."""
    verb, before = VERBS[name], bench.records()
    for outcome in swept(
        bench,
        lambda number: bench.faults.at(number, CODES[code]),
        lambda: verb.call(bench.store, bench.subject, f"key-{bench.round}"),
    ):
        assert isinstance(outcome, StorageFailure), outcome
        assert "injected" in str(outcome)
        if "commit" not in str(outcome):
            assert outcome.retryable is (code in {"full", "io", "io-fsync", *BUSY}), outcome
        assert bench.records() == before
        bench.works()
        before = bench.records()
    bench.works()


@pytest.mark.parametrize("name", VERBS)
def test_a_statement_that_ran_and_then_failed_changes_nothing(bench: Bench, name: str) -> None:
    """All but COMMIT: a lost answer to that is another matter."""
    verb, before = VERBS[name], bench.records()
    for outcome in swept(
        bench,
        lambda number: bench.faults.at(number, sqlite3.SQLITE_IOERR, after=True),
        lambda: verb.call(bench.store, bench.subject, f"key-{bench.round}"),
    ):
        if isinstance(outcome, StorageFailure):
            assert bench.records() == before
        else:  # it was COMMIT
            assert not isinstance(outcome, BaseException), outcome
            assert unlawful(before, bench.records()) == []
            assert bench.records() != before
        bench.works()
        before = bench.records()


@pytest.mark.parametrize("name", VERBS)
def test_an_interrupt_at_any_statement_leaves_all_or_nothing(bench: Bench, name: str) -> None:
    verb, before = VERBS[name], bench.records()
    for after in (False, True):
        for outcome in swept(
            bench,
            partial(bench.faults.arm_at, error=KeyboardInterrupt(), after=after),
            lambda: verb.call(bench.store, bench.subject, f"key-{bench.round}"),
        ):
            assert isinstance(outcome, KeyboardInterrupt)
            assert unlawful(before, bench.records()) == []
            bench.works()
            before = bench.records()
        bench.works()


def both_fail(faults: Faults, number: int) -> None:
    faults.at(number)
    faults.on("ROLLBACK")


@pytest.mark.parametrize("name", VERBS)
def test_a_rollback_that_fails_as_well(bench: Bench, name: str) -> None:
    """The failed transaction must not stay open, in the way of all that follow."""
    verb, before = VERBS[name], bench.records()
    for outcome in swept(
        bench,
        lambda number: both_fail(bench.faults, number),
        lambda: verb.call(bench.store, bench.subject, f"key-{bench.round}"),
    ):
        assert isinstance(outcome, StorageFailure | OutcomeUnknown), outcome
        bench.works()
        after = bench.records()
        assert len(after["history"]) == len(before["history"]) + 1
        assert len(after["instances"]) == len(before["instances"])
        before = after


@pytest.mark.parametrize("code", ["io", "corrupt", "busy"])
@pytest.mark.parametrize("name", READS)
def test_a_read_that_fails_says_so_and_the_next_one_works(
    bench: Bench, name: str, code: str
) -> None:
    read, refused = READS[name], name.endswith("refused")
    bench.store.fire(bench.subject, "go", reason="why")
    for number in range(1, 10):
        for after in (False, True):
            raised = bench.faults.raised
            bench.faults.at(number, CODES[code], after=after)
            outcome = outcome_of(lambda: read(bench.store, bench.subject))
            bench.faults.clear()
            if bench.faults.raised != raised:
                # A ROLLBACK that fails after all was read is nobody's loss.
                assert not isinstance(outcome, BaseException) or isinstance(outcome, Rejected)
            if refused:
                with pytest.raises(interlock.InvalidQuery):
                    read(bench.store, bench.subject)
            else:
                assert read(bench.store, bench.subject) is not None
    bench.works()


@pytest.mark.parametrize("name", READS)
def test_an_interrupted_read_leaves_nothing_behind(bench: Bench, name: str) -> None:
    for number in range(1, 8):
        bench.faults.arm_at(number, KeyboardInterrupt())
        with suppress(KeyboardInterrupt, interlock.InvalidQuery):
            READS[name](bench.store, bench.subject)
        bench.works()


# Commits


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", VERBS)
def test_a_commit_that_failed_did_not_happen(bench: Bench, name: str, code: str) -> None:
    verb, before = VERBS[name], bench.records()
    bench.faults.on("COMMIT", CODES[code])
    outcome = outcome_of(lambda: verb.call(bench.store, bench.subject, "key"))
    assert isinstance(outcome, StorageFailure), outcome
    assert bench.records() == before
    bench.works()
    assert outcome_of(lambda: verb.call(bench.store, bench.subject, "key")) is not None
    bench.works()


@pytest.mark.parametrize("code", sorted(set(CODES) - BUSY))
@pytest.mark.parametrize("name", VERBS)
def test_a_lost_answer_is_looked_up(bench: Bench, name: str, code: str) -> None:
    verb, before = VERBS[name], bench.records()
    twin = Bench(None)
    wanted = verb.call(twin.store, twin.subject, "key")
    twin_records = twin.records()
    twin.store.close()

    bench.faults.on("COMMIT", CODES[code], after=True)
    outcome = outcome_of(lambda: verb.call(bench.store, bench.subject, "key"))
    assert type(outcome) is type(wanted), outcome
    if "instantiate" not in name and isinstance(wanted, str | list):
        assert str(outcome) == str(wanted).replace(twin.subject, bench.subject)
    after = bench.records()
    assert unlawful(before, after) == []
    assert {table: len(rows) for table, rows in after.items()} == {
        table: len(rows) for table, rows in twin_records.items()
    }
    bench.works()
    if verb.keyed:
        again = verb.call(bench.store, bench.subject, "key")
        assert again == outcome


@pytest.mark.parametrize("happened", [False, True])
@pytest.mark.parametrize("name", VERBS)
def test_when_the_look_up_fails_too_the_outcome_is_unknown(
    bench: Bench, name: str, happened: bool
) -> None:
    """And the same key then tells the truth: done once, whatever happened."""
    verb, faults = VERBS[name], bench.faults
    faults.watch("COMMIT", lambda: faults.on("BEGIN"))
    faults.on("COMMIT", after=happened)
    before = bench.records()
    outcome = outcome_of(lambda: verb.call(bench.store, bench.subject, "key"))
    assert isinstance(outcome, OutcomeUnknown), outcome
    assert outcome.reason == "outcome-unknown"
    assert outcome.transition_id
    bench.works()
    after = bench.records()
    if not happened:
        assert len(after["history"]) == len(before["history"]) + 1  # the canary's
        assert len(after["instances"]) == len(before["instances"])
    if "instantiate" in name:
        found = [row for row in after["instances"] if row[2] == outcome.transition_id]
    else:
        found = [row for row in after["history"] if row[4] == outcome.transition_id]
    assert len(found) == happened
    if verb.keyed:
        first = verb.call(bench.store, bench.subject, "key")
        done = bench.records()
        assert len(done["history"]) + len(done["instances"]) > (
            len(before["history"]) + len(before["instances"]) + 1
        )
        assert verb.call(bench.store, bench.subject, "key") == first
        assert bench.records() == done
    bench.works()


@pytest.mark.parametrize("name", VERBS)
def test_when_settling_fails_too_the_outcome_is_unknown(bench: Bench, name: str) -> None:
    """Neither found nor sure never to appear: nobody may be told that it failed."""
    bench.faults.on("COMMIT")
    bench.faults.on("COMMIT")
    outcome = outcome_of(lambda: VERBS[name].call(bench.store, bench.subject, "key"))
    assert isinstance(outcome, OutcomeUnknown), outcome
    bench.works()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commits", [1, 2])
@pytest.mark.parametrize(
    "call",
    [
        lambda store, id: store.fire_many([]),
        lambda store, id: store.fire_each([]),
        lambda store, id: store.instantiate_each(BATCH, []),
        lambda store, id: store.fire(id, "nope"),
        lambda store, id: store.fire_each([Fire(id, "nope"), Fire(" ", "go")]),
        lambda store, id: store.instantiate_each(BATCH, [Birth(actor_ref=" ")]),
    ],
    ids=["many of none", "each of none", "births of none", "refused", "all refused", "unborn"],
)
def test_commits_of_calls_that_write_nothing(
    bench: Bench, call: Callable[[Store, str], Any], commits: int, after: bool
) -> None:
    """Nothing was to be written, so a failing commit is no reason for more than a failure."""
    before = bench.records()
    for _ in range(commits):
        bench.faults.on("COMMIT", after=after)
    outcome = outcome_of(lambda: call(bench.store, bench.subject))
    bench.faults.clear()
    assert not isinstance(outcome, BaseException) or isinstance(outcome, Rejected), repr(outcome)
    assert bench.records() == before
    bench.works()


@pytest.mark.parametrize("after", [False, True])
def test_a_repeated_key_whose_commit_fails_is_not_done_again(bench: Bench, after: bool) -> None:
    first = bench.store.fire(bench.subject, "go", idempotency_key="key")
    before = bench.records()
    bench.faults.on("COMMIT", after=after)
    outcome = outcome_of(lambda: bench.store.fire(bench.subject, "go", idempotency_key="key"))
    assert outcome == first or isinstance(outcome, StorageFailure)
    assert bench.records() == before
    assert bench.store.fire(bench.subject, "go", idempotency_key="key") == first


# Callers who are committed together


def batch_of(bench: Bench, size: int = 8) -> list[str]:
    return [bench.store.instantiate(TOGGLE) for _ in range(size)]


def entries_of(bench: Bench, id: str) -> int:
    return len(bench.store.history(id))


def told_the_truth(bench: Bench, ids: list[str], outcomes: list[Any], before: int) -> None:
    """Each success is recorded once, each failure not at all."""
    for id, outcome in zip(ids, outcomes, strict=True):
        done = entries_of(bench, id) - before
        if isinstance(outcome, OutcomeUnknown):
            assert done in (0, 1)
        elif isinstance(outcome, StorageFailure):
            assert done == 0
        else:
            assert outcome in ("on", "off"), outcome
            assert done == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("code", sorted(set(CODES) - BUSY))
def test_a_fault_in_a_batch_is_nobodys_fault(bench: Bench, code: str, after: bool) -> None:
    """Eight strangers, one failing statement: each call is tried for itself, and none twice."""
    ids = batch_of(bench)
    for number in itertools.count(1):
        raised, before = bench.faults.raised, entries_of(bench, ids[0])
        outcomes = in_one_batch(
            bench.store,
            bench.faults,
            lambda: bench.store.fire(bench.canary, "go"),
            [partial(bench.store.fire, id, "go") for id in ids],
            partial(bench.faults.at, number, CODES[code], after=after),
        )
        bench.faults.clear()
        if bench.faults.raised == raised:
            break
        assert all(outcome in ("on", "off") for outcome in outcomes), (number, outcomes)
        told_the_truth(bench, ids, outcomes, before)
        bench.works()
    assert number > 3


def test_births_are_committed_together_too(bench: Bench) -> None:
    """Each caller gets an instance of its own, the one declaration is stored once."""
    store, machine = bench.store, MACHINES["purchase-order"]
    before = bench.records()
    for number in itertools.count(1):
        raised = bench.faults.raised
        outcomes = in_one_batch(
            store,
            bench.faults,
            lambda: store.instantiate(BATCH),
            [
                partial(
                    store.instantiate,
                    machine,
                    instance_metadata=[n],
                    idempotency_key=f"{number}-{n // 2}",
                )
                for n in range(8)
            ],
            partial(bench.faults.at, number),
            verb="bear",
        )
        bench.faults.clear()
        kinds = [type(outcome) for outcome in outcomes]
        pairs = [{*kinds[place : place + 2]} for place in range(0, 8, 2)]
        assert pairs == [{str, interlock.IdempotencyConflict}] * 4, outcomes  # who goes alone races
        for place, id in enumerate(outcomes):
            if isinstance(id, str):
                assert store.snapshot(id).metadata == [place]
        if bench.faults.raised == raised:
            break
    after = bench.records()
    assert len(after["instances"]) == len(before["instances"]) + 5 * number
    assert len(after["declarations"]) == len(before["declarations"]) + 2
    assert number > 3


@pytest.mark.parametrize("code", sorted(BUSY))
def test_of_a_database_that_others_lock_each_of_a_batch_hears(bench: Bench, code: str) -> None:
    """For each has waited as long as it may; one by one they would wait eight times that."""
    ids = batch_of(bench)
    for start in ("BEGIN", "INSERT", "COMMIT"):
        outcomes = in_one_batch(
            bench.store,
            bench.faults,
            lambda: bench.store.fire(bench.canary, "go"),
            [partial(bench.store.fire, id, "go") for id in ids],
            partial(bench.faults.on, start, CODES[code]),
        )
        assert all(isinstance(outcome, StorageFailure) for outcome in outcomes), outcomes
        assert all(outcome.retryable for outcome in outcomes)
        assert [entries_of(bench, id) for id in ids] == [0] * 8
        bench.works()


@pytest.mark.parametrize("happened", [False, True])
def test_a_batch_of_unknown_outcome_names_each_callers_own_attempt(
    bench: Bench, happened: bool
) -> None:
    ids = batch_of(bench)
    faults = bench.faults

    def prepare() -> None:
        faults.watch("COMMIT", lambda: faults.on("BEGIN"))
        faults.on("COMMIT", after=happened)

    outcomes = in_one_batch(
        bench.store,
        faults,
        lambda: bench.store.fire(bench.canary, "go"),
        [partial(bench.store.fire, id, "go", idempotency_key="k") for id in ids],
        prepare,
    )
    faults.clear()
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in outcomes), outcomes
    assert len({outcome.transition_id for outcome in outcomes}) == len(ids)
    for id, outcome in zip(ids, outcomes, strict=True):
        entries = bench.store.history(id, {"transition_id": outcome.transition_id})
        assert len(entries) == happened
        assert bench.store.fire(id, "go", idempotency_key="k") == "on"
        assert entries_of(bench, id) == 1


def test_refusals_in_a_batch_touch_nobody_else(bench: Bench) -> None:
    ids = batch_of(bench, 4)
    store = bench.store
    outcomes = in_one_batch(
        store,
        bench.faults,
        lambda: store.fire(bench.canary, "go"),
        [
            lambda: store.fire(ids[0], "go"),
            lambda: store.fire(ids[1], "nope"),
            lambda: store.fire("unknown", "go"),
            lambda: store.fire(ids[2], "go", expected_version=7),
            lambda: store.fire(ids[3], "go", actor_ref=" "),
            lambda: store.fire(ids[0], "go"),
            lambda: store.fire(ids[0], "go", expected_version=2),
        ],
    )
    kinds = [
        outcome.reason if isinstance(outcome, Rejected) else type(outcome) for outcome in outcomes
    ]
    assert kinds == [
        str,
        "invalid-transition",
        "not-known",
        "version-conflict",
        "invalid-request",
        str,
        "version-conflict",
    ]
    assert [entries_of(bench, id) for id in ids] == [2, 0, 0, 0]
    bench.works()


class _Broken(tzinfo):
    """A time zone with a bug of its own."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        raise RuntimeError("a bug of the caller")

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None


@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_call_that_raises_something_unforeseen_fails_alone(bench: Bench, place: int) -> None:
    ids = batch_of(bench)
    moment = datetime(2020, 1, 1, tzinfo=_Broken())
    calls: list[Callable[[], Any]] = [partial(bench.store.fire, id, "go") for id in ids]
    calls[place] = lambda: bench.store.fire(ids[place], "go", fired_at=moment)
    outcomes = in_one_batch(
        bench.store, bench.faults, lambda: bench.store.fire(bench.canary, "go"), calls
    )
    strangers = [outcome for number, outcome in enumerate(outcomes) if number != place]
    assert strangers == ["on"] * 7
    assert isinstance(outcomes[place], RuntimeError | interlock.InvalidRequest)
    assert [entries_of(bench, id) for id in ids] == [int(n != place) for n in range(8)]
    bench.works()


def test_an_interrupted_leader_fails_alone(bench: Bench) -> None:
    """Ctrl-C hits the thread that commits for eight; the other seven never notice."""
    ids = batch_of(bench)
    for number in itertools.count(1):
        for after in (False, True):
            raised = bench.faults.raised
            before = [entries_of(bench, id) for id in ids]
            outcomes = in_one_batch(
                bench.store,
                bench.faults,
                lambda: bench.store.fire(bench.canary, "go"),
                [partial(bench.store.fire, id, "go") for id in ids],
                partial(bench.faults.arm_at, number, KeyboardInterrupt(), after=after),
            )
            bench.faults.clear()
            if bench.faults.raised == raised:
                assert number > 3
                return
            assert isinstance(outcomes[0], KeyboardInterrupt)
            assert all(outcome in ("on", "off") for outcome in outcomes[1:]), outcomes
            done = [entries_of(bench, id) - had for id, had in zip(ids, before, strict=True)]
            assert done[1:] == [1] * 7
            assert done[0] in (0, 1)
            bench.works()


@pytest.mark.parametrize("seed", range(12))
def test_faults_at_random_under_eight_threads(bench: Bench, seed: int) -> None:
    """Whatever fails and however often: who was told of success has it once, of failure not."""
    random = Random(seed)
    ids = batch_of(bench)
    codes = [CODES[code] for code in sorted(set(CODES) - BUSY)]

    def work(id: str) -> list[Any]:
        return [outcome_of(lambda: bench.store.fire(id, "go")) for _ in range(10)]

    for at in random.sample(range(1, 250), 25):
        bench.faults.at(at, random.choice(codes), after=random.random() < 0.4)
    results = all_at_once([partial(work, id) for id in ids])
    assert bench.faults.raised
    bench.faults.clear()
    for id, outcomes in zip(ids, results, strict=True):
        done = sum(outcome in ("on", "off") for outcome in outcomes)
        unknown = sum(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
        failed = sum(isinstance(outcome, StorageFailure) for outcome in outcomes)
        assert done + unknown + failed == 10, outcomes
        assert done <= entries_of(bench, id) <= done + unknown
    with suppress(StorageFailure):  # one of the faults may have been a ROLLBACK
        bench.store.fire(bench.canary, "go")
    bench.works()


# The end of a store


def test_a_call_that_waited_while_the_store_was_closed_is_refused(path: Path) -> None:
    bench = Bench(path)
    store = bench.store

    def close_first() -> None:
        inside(store)._unusable = "is closed"
        inside(store)._writer.close()

    bench.faults.watch("BEGIN", close_first)
    with pytest.raises(StorageFailure):
        store.fire(bench.subject, "go")
    with interlock.open(f"sqlite:///{path}") as again:
        assert again.current(bench.subject) == "off"


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_closed_store_refuses_every_verb(where: str, path: Path) -> None:
    bench = Bench(path if where == "file" else None)
    bench.store.close()
    bench.store.close()
    for verb in VERBS.values():
        with pytest.raises(StorageFailure, match="closed"):
            verb.call(bench.store, bench.subject, "key")
    for name, read in READS.items():
        outcome = outcome_of(partial(read, bench.store, bench.subject))
        assert isinstance(outcome, StorageFailure), name
        assert "closed" in str(outcome)


def test_a_clock_that_fails_leaves_nothing(path: Path) -> None:
    """The clock belongs to the caller, and may be broken."""
    ticks = iter([datetime(2026, 1, 1, tzinfo=UTC)] * 6)
    with interlock.open(f"sqlite:///{path}", clock=lambda: next(ticks)) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go")
        for _ in range(3):
            with suppress(StopIteration, RuntimeError):
                store.fire(id, "go")
        assert len(store.history(id)) in (1, 2)
