"""Random fires on random machines, against a model that is a dict and a list.

The model below is the State Machine atom written as plainly as can be, with the order of the
refusals of DESIGN, section 4.5. The store must give the same states and the same reason words, and
at the end the same history, on both kinds of database, and through several stores on one file.
"""

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock import Fire, Rejected
from interlock.store.store import Store
from tests.support.machines import Declaration
from tests.support.strategies import blanks, examples, machines, malformed_texts, names

Draw: TypeAlias = Callable[..., Any]

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Clock:
    """A clock that tests set; it may step back."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


# The model


class Refusal(NamedTuple):
    reason: str


def is_text(value: Any, most: int) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    try:
        return len(value.encode()) <= most
    except UnicodeEncodeError:
        return False


def moment_of(value: Any) -> datetime | None:
    """Read a time as given; None when it is none."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return None
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


class Model:
    """Instances as a dict, each with its history as a list."""

    def __init__(self) -> None:
        self.instances: dict[str, dict[str, Any]] = {}

    def begin(self, id: str, declaration: Declaration, now: datetime) -> None:
        self.instances[id] = {
            "declaration": declaration,
            "state": declaration["initial_state"],
            "history": [],
            "begun": now,
            "keys": {},
        }

    def fire(self, fire: Fire, now: datetime) -> str | Refusal:
        if self.malformed(fire):
            return Refusal("invalid-request")
        instance = self.instances.get(fire.id)
        if instance is None:
            return Refusal("not-known")
        if fire.idempotency_key in instance["keys"]:
            request, answer = instance["keys"][fire.idempotency_key]
            known: str = answer
            return known if request == self.asked(fire) else Refusal("idempotency-conflict")
        return self.move(instance, fire, now)

    def malformed(self, fire: Fire) -> bool:
        expected, key = fire.expected_version, fire.idempotency_key
        return not (
            is_text(fire.id, 1024)
            and is_text(fire.action, 1024)
            and (expected is None or (type(expected) is int and expected >= 1))
            and (key is None or is_text(key, 1024))
        )

    def asked(self, fire: Fire) -> list[Any]:
        values = [*fire._replace(guard_satisfied=fire.guard_satisfied is True)]
        if fire.fired_at is not None:
            values[4] = moment_of(fire.fired_at) or repr(fire.fired_at)
        return [(type(value), value) for value in values]

    def move(self, instance: dict[str, Any], fire: Fire, now: datetime) -> str | Refusal:
        declaration, state, history = (
            instance["declaration"],
            instance["state"],
            instance["history"],
        )
        if fire.expected_version not in (None, len(history) + 1):
            return Refusal("version-conflict")
        if state in declaration["terminal_states"]:
            return Refusal("terminal")
        declared = [
            row
            for row in declaration["transitions"]
            if row["from_state"] == state and row["action"] == fire.action
        ]
        if not declared:
            return Refusal("invalid-transition")
        guarded = declared[0].get("guard") is not None
        if guarded and fire.guard_satisfied is not True:
            return Refusal("guard-not-satisfied")
        references = (fire.actor_ref, fire.correlation_id, fire.causation_id, fire.worker_id)
        if not all(value is None or is_text(value, 1024) for value in references):
            return Refusal("invalid-request")
        if fire.reason is not None and not is_text(fire.reason, 65536):
            return Refusal("invalid-request")
        stamp: datetime | None = max(now, instance["begun"])
        if fire.fired_at is not None:
            stamp = moment_of(fire.fired_at)
            if stamp is None or stamp > now or stamp < instance["begun"]:
                return Refusal("invalid-request")
        to_state: str = declared[0]["to_state"]
        history.append(
            {
                "sequence_number": len(history) + 1,
                "from_state": state,
                "to_state": to_state,
                "action": fire.action,
                "actor_ref": fire.actor_ref,
                "fired_at": stamp,
                "guard_satisfied": True if guarded else None,
                "reason": fire.reason,
                "correlation_id": fire.correlation_id,
                "causation_id": fire.causation_id,
                "worker_id": fire.worker_id,
            }
        )
        instance["state"] = to_state
        if fire.idempotency_key is not None:
            instance["keys"][fire.idempotency_key] = (self.asked(fire), to_state)
        return to_state

    def fire_many(self, fires: list[Fire], now: datetime) -> list[str] | tuple[Refusal, int]:
        """All or none; idempotency keys answer for the whole list."""
        kept = copy.deepcopy(self.instances)
        repeated = any(
            fire.id in kept and fire.idempotency_key in kept[fire.id]["keys"] for fire in fires
        )
        states = []
        for index, fire in enumerate(fires):
            known = fire.id in kept and fire.idempotency_key in kept[fire.id]["keys"]
            outcome = self.fire(fire, now)
            if repeated and not known and not self.malformed(fire):
                outcome = Refusal("idempotency-conflict")
            if isinstance(outcome, Refusal):
                self.instances = kept
                return outcome, index
            states.append(outcome)
        return states

    def fire_each(
        self, fires: list[Fire], now: datetime, *, halting: bool
    ) -> list[str | Refusal | None]:
        outcomes: list[str | Refusal | None] = []
        halted = []
        for fire in fires:
            if fire.id in halted:
                outcomes.append(None)
                continue
            outcome = self.fire(fire, now)
            if halting and isinstance(outcome, Refusal):
                halted.append(fire.id)
            outcomes.append(outcome)
        return outcomes


# What is drawn


# Only True asserts a guard; these do not, some are close.
TRUTHY = st.sampled_from(
    [None, False, 1, 0, "true", "True", "yes", "", 1.0, [], [True], {"ok": True}, object()]
)
CHANCES = st.integers(0, 9)
ACTORS = st.none() | st.sampled_from(["ann", "b\u00e9a"]) | names()
NO_TIMES = st.sampled_from(["", "now", "2026-05-01", 0, 1.5, "2026-13-01T00:00Z", b"x", [1]])
STRANGERS = st.just("unknown") | malformed_texts()
STRAY_ACTIONS = names() | malformed_texts() | st.none()


def rarely(draw: Draw) -> bool:
    return draw(CHANCES) == 9


def reference(draw: Draw) -> Any:
    return draw(malformed_texts() if rarely(draw) else ACTORS)


def time(draw: Draw, begun: datetime, now: datetime) -> Any:
    """A time that may do or not: at the edges, in several forms, and what is no time."""
    edges = [begun, now, begun - SECOND / 10**6, now + SECOND / 10**6, begun + (now - begun) / 2]
    ends = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    moment = draw(st.sampled_from([*edges, now + timedelta(days=1), *ends]))
    match draw(st.integers(0, 5)):
        case 0:
            return moment.replace(tzinfo=None)
        case 1:
            return moment.isoformat()
        case 2:
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case 3:
            return draw(NO_TIMES)
        case 4 if moment in edges:
            return moment.astimezone(timezone(timedelta(hours=5, minutes=45)))
    return moment


@st.composite
def fires(draw: st.DrawFn, model: Model, now: datetime) -> Fire:
    """A fire that is mostly sensible, with one thing or another wrong."""
    known = list(model.instances)
    id: Any = draw(STRANGERS) if rarely(draw) else draw(st.sampled_from(known))
    begun, own, version, keys = START, ["go"], 1, ["k"]
    if isinstance(id, str) and id in model.instances:
        instance = model.instances[id]
        begun, version = instance["begun"], len(instance["history"]) + 1
        rows = instance["declaration"]["transitions"]
        here = [row["action"] for row in rows if row["from_state"] == instance["state"]]
        own = here or [row["action"] for row in rows] or ["go"]
        keys = [*instance["keys"], f"k{version}", "k"]
    action: Any = draw(STRAY_ACTIONS) if rarely(draw) else draw(st.sampled_from(own))
    expected: Any = draw(st.sampled_from([None, version]))
    if rarely(draw):
        expected = draw(st.sampled_from([0, -1, True, "1", 1.0, version + 1, 2**70]))
    key = draw(st.sampled_from([None, None, *keys]))
    asserted: Any = draw(TRUTHY) if rarely(draw) else True
    return Fire(
        id,
        action,
        reference(draw),
        asserted,
        time(draw, begun, now) if draw(CHANCES) > 6 else None,
        expected,
        draw(malformed_texts()) if rarely(draw) else key,
        *(reference(draw) if draw(CHANCES) > 6 else None for _ in range(4)),
    )


# The tests


class Bench:
    """One or more stores on one database; each call goes to the next, so that each is behind."""

    def __init__(self, stores: list[Store], clock: Clock) -> None:
        self.clock = clock
        self._turns = itertools.cycle(stores)

    @property
    def store(self) -> Store:
        return next(self._turns)


@pytest.fixture(params=["memory", "file", "three on a file"])
def bench(request: pytest.FixtureRequest, path: Path) -> Iterator[Bench]:
    clock = Clock()
    memory = request.param == "memory"
    url = "sqlite://" if memory else f"sqlite:///{path}?synchronous=normal"
    with ExitStack() as stack:
        number = 3 if request.param.startswith("three") else 1
        stores = [stack.enter_context(interlock.open(url, clock=clock)) for _ in range(number)]
        yield Bench(stores, clock)


def begun(bench: Bench, data: st.DataObject) -> Model:
    bench.clock.now = START
    model = Model()
    for _ in range(data.draw(st.integers(1, 3))):
        declaration = data.draw(machines())
        id = bench.store.instantiate(declaration)
        model.begin(id, declaration, bench.clock.now)
        bench.clock.now += SECOND
    return model


def tick(bench: Bench, data: st.DataObject) -> None:
    """Mostly forwards, sometimes not at all, sometimes back, even to before it all began."""
    bench.clock.now += data.draw(
        st.sampled_from([SECOND, SECOND, 0 * SECOND, -SECOND, -5 * SECOND])
    )


def outcome_of(call: Callable[..., Any], *given: Any, **more: Any) -> Any:
    try:
        return call(*given, **more)
    except Rejected as refusal:
        return refusal


def plain(outcome: Any) -> Any:
    return Refusal(outcome.reason) if isinstance(outcome, Rejected) else outcome


def agree(bench: Bench, model: Model) -> None:
    """The store tells of every instance what the model does."""
    for id, instance in model.instances.items():
        history = [entry._asdict() for entry in bench.store.history(id)]
        ids = [entry.pop("transition_id") for entry in history]
        assert history == instance["history"]
        assert len(set(ids)) == len(ids)
        assert bench.store.current(id) == instance["state"]
        declaration = bench.store.read_declaration(id)
        assert json.dumps(declaration) == json.dumps(instance["declaration"])
        now = bench.store.snapshot(id)
        assert (now.state, now.version) == (instance["state"], len(history) + 1)
        assert now.instantiated_at == instance["begun"]
        for number in range(len(history) + 1):
            then = bench.store.snapshot(id, at_sequence=number)
            states = [instance["declaration"]["initial_state"], *(e["to_state"] for e in history)]
            assert (then.state, then.version) == (states[number], number + 1)


@given(data=st.data())
@examples(80)
def test_each_fire_does_what_the_model_says(bench: Bench, data: st.DataObject) -> None:
    model = begun(bench, data)
    for _ in range(data.draw(st.integers(1, 15))):
        tick(bench, data)
        now = bench.clock.now
        fire = data.draw(fires(model, now))
        more = dict(zip(Fire._fields[5:], fire[5:], strict=True))
        outcome = outcome_of(bench.store.fire, *fire[:5], **more)
        assert plain(outcome) == model.fire(fire, now), fire
    agree(bench, model)


@given(data=st.data())
@examples(50)
def test_fire_many_does_all_or_nothing_as_the_model_says(bench: Bench, data: st.DataObject) -> None:
    model = begun(bench, data)
    for _ in range(data.draw(st.integers(1, 4))):
        tick(bench, data)
        now = bench.clock.now
        trial, listed = copy.deepcopy(model), []
        for _ in range(data.draw(st.integers(0, 6))):
            listed.append(data.draw(fires(trial, now)))
            trial.fire(listed[-1], now)  # so that the next is drawn for where this one leads
        outcome = outcome_of(bench.store.fire_many, listed)
        expected = model.fire_many(listed, now)
        if isinstance(expected, tuple):
            assert isinstance(outcome, Rejected), (outcome, expected)
            assert (Refusal(outcome.reason), outcome.index) == expected, listed
        else:
            assert outcome == expected
    agree(bench, model)


@given(data=st.data(), halting=st.booleans())
@examples(50)
def test_fire_each_does_each_as_the_model_says(
    bench: Bench, data: st.DataObject, halting: bool
) -> None:
    model = begun(bench, data)
    for _ in range(data.draw(st.integers(1, 4))):
        tick(bench, data)
        now = bench.clock.now
        trial, listed = copy.deepcopy(model), []
        for _ in range(data.draw(st.integers(0, 8))):
            listed.append(data.draw(fires(trial, now)))
            trial.fire(listed[-1], now)
        outcomes = bench.store.fire_each(iter(listed), halting=halting)
        assert [plain(outcome) for outcome in outcomes] == model.fire_each(
            listed, now, halting=halting
        ), listed
    agree(bench, model)


@given(data=st.data())
@examples(40)
def test_a_refusal_writes_nothing(bench: Bench, data: st.DataObject) -> None:
    model = begun(bench, data)
    now = bench.clock.now
    for _ in range(5):
        fire = data.draw(fires(model, now))
        before = {id: bench.store.snapshot(id) for id in model.instances}
        outcome = outcome_of(bench.store.fire_many, [fire])
        if isinstance(outcome, Rejected):
            assert {id: bench.store.snapshot(id) for id in model.instances} == before
        model.fire(fire, now)
    agree(bench, model)


ROUNDS = itertools.count()
BLANK: list[Any] = [{}, [], "", " ", {1}]
BLANK_METADATA = st.sampled_from(BLANK)
METADATA = st.sampled_from([None, {"a": 1}, [0], "x", 0, False])


@given(data=st.data())
@examples(40)
def test_births_are_refused_in_order(bench: Bench, data: st.DataObject) -> None:
    """invalid-declaration, then invalid-request, then idempotency-conflict; else an instance."""
    now = bench.clock.now = START
    keys: dict[str, Any] = {}
    declaration = data.draw(machines())
    round_ = next(ROUNDS)  # a key of one example must not be known in the next
    for _ in range(data.draw(st.integers(1, 6))):
        broken = rarely(data.draw)
        supplied = {**declaration, "initial_state": "\0"} if broken else declaration
        actor, subject = reference(data.draw), reference(data.draw)
        metadata = data.draw(BLANK_METADATA if rarely(data.draw) else METADATA)
        time_ = time(data.draw, START - SECOND, now) if data.draw(CHANCES) > 6 else None
        key = data.draw(blanks() if rarely(data.draw) else st.sampled_from([None, "k", "l"]))
        if key is not None and is_text(key, 1024):
            key = f"{key} {round_}"
        asked = [(type(part), part) for part in (actor, subject, metadata, time_)]
        outcome = outcome_of(
            bench.store.instantiate, supplied, actor, subject, metadata, time_, idempotency_key=key
        )
        moment = moment_of(time_)
        bad = (
            not all(value is None or is_text(value, 1024) for value in (actor, subject))
            or metadata in BLANK
            or (time_ is not None and (moment is None or moment > now))
            or (key is not None and not is_text(key, 1024))
        )
        if broken:
            assert plain(outcome) == Refusal("invalid-declaration")
        elif bad:
            assert plain(outcome) == Refusal("invalid-request")
        elif key is not None and key in keys:
            before, first = keys[key]
            if before == asked:
                assert outcome == first
            elif before[:3] != asked[:3]:
                assert plain(outcome) == Refusal("idempotency-conflict")
        else:
            assert isinstance(outcome, str), outcome
            if key is not None:
                keys[key] = (asked, outcome)
            snapshot = bench.store.snapshot(outcome)
            assert (snapshot.state, snapshot.version) == (declaration["initial_state"], 1)
            assert snapshot.actor_ref == actor
            assert snapshot.subject_ref == subject
            assert snapshot.metadata == metadata
            assert type(snapshot.metadata) is type(metadata)
            assert snapshot.instantiated_at == (moment or now)
