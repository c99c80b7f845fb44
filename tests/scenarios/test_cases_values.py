"""Cases N (payloads and serialization) and P (clocks), as far as they concern the bare machine.

Here values are metadata, reasons and references. Later layers: the arguments, results and errors
of activities (N01's retries, N08's and N12's errors of activities, N10's instance that recovers),
typed values (N05's date and timedelta, N06's type hints), timers, cron and heartbeats (P01's timer,
P02, P03, P05).
"""

import pickle
import sqlite3
import time
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import InvalidRequest, Limits, Rejected, StorageFailure
from interlock.store.store import Store
from tests.support.inside import inside
from tests.support.machines import BATCH, TOGGLE


def test_N01_too_big_for_ever(store: Store) -> None:
    """One final refusal that names the argument, its size and the limit; nothing is written."""
    huge = "x" * 5_000_000
    id = store.instantiate(TOGGLE)
    for argument, limit, call in (
        (
            "instance_metadata",
            "1048576",
            lambda: store.instantiate(TOGGLE, instance_metadata=[huge]),
        ),
        ("reason", "65536", lambda: store.fire(id, "go", reason=huge)),
        ("actor_ref", "1024", lambda: store.fire(id, "go", huge)),
        ("idempotency_key", "1024", lambda: store.fire(id, "go", idempotency_key=huge)),
        ("subject_ref", "1024", lambda: store.instantiate(TOGGLE, subject_ref=huge)),
        ("id", "1024", lambda: store.fire(huge, "go")),
        ("action", "1024", lambda: store.fire(id, huge)),
    ):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.argument == argument
        assert "5000" in str(caught.value)
        assert limit in str(caught.value)
        assert len(str(caught.value)) < 300
    with pytest.raises(interlock.InvalidDeclaration, match="more than the 4194304 allowed"):
        store.instantiate({**TOGGLE, "states": ["off", "on", *(f"{n:0500}" for n in range(9000))]})
    assert len(store.instances()) == 1
    assert store.history(id) == []


def test_N01_limits_are_settings() -> None:
    with interlock.open("sqlite://", limits=Limits(reason_bytes=10_000_000)) as store:
        id = store.instantiate(TOGGLE)
        store.fire(id, "go", reason="x" * 5_000_000)
        (entry,) = store.history(id)
        assert entry.reason == "x" * 5_000_000


NUL_PLACES: list[tuple[str, Any]] = [
    ("actor_ref", "a\0b"),
    ("subject_ref", "a\0b"),
    ("instance_metadata", "a\0b"),
    ("instance_metadata", {"k": ["a\0b"]}),
    ("instance_metadata", {"a\0b": 1}),
    ("instance_metadata", {"k": "\ud800"}),
    ("idempotency_key", "a\0b"),
]


@pytest.mark.parametrize(("argument", "value"), NUL_PLACES)
def test_N02_nul_in_text(store: Store, argument: str, value: Any) -> None:
    """One clear refusal before anything is written."""
    with pytest.raises(InvalidRequest, match=r"NUL|surrogate") as caught:
        store.instantiate(TOGGLE, **{argument: value})
    assert caught.value.argument == argument
    assert store.instances() == []


@pytest.mark.parametrize("argument", ["actor_ref", "reason", "correlation_id", "worker_id"])
@pytest.mark.parametrize("value", ["a\0b", "\0", "a\ud800", "\udfff"])
def test_N02_nul_in_a_fire(store: Store, argument: str, value: str) -> None:
    id = store.instantiate(TOGGLE)
    with pytest.raises(InvalidRequest, match=r"NUL|surrogate") as caught:
        store.fire(id, "go", **{argument: value})  # type: ignore[arg-type]
    assert caught.value.argument == argument
    assert store.history(id) == []


VALUES: list[Any] = [
    "x",
    " outer blanks ",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f469\u200d\U0001f52c",
    "\x01\x1f\x7f\x85\u2028\ufeff\ufffe\uffff",
    0,
    False,
    True,
    1,
    -(2**63),
    2**200,
    1.5,
    -0.0,
    1e308,
    5e-324,
    0.1 + 0.2,
    [None],
    [[]],
    {"": ""},
    {"b": 1, "a": {"d": [1, 2.0, "3", None, True], "c": {}}},
    ["x" * 100_000],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_N02_what_is_accepted_comes_back_the_same(path: Path, value: Any) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE, instance_metadata=value)
    with interlock.open(f"sqlite:///{path}") as store:
        back = store.snapshot(id).metadata
        assert repr(back) == repr(value)
        assert type(back) is type(value)
        assert [row.metadata for row in store.instances()] == [value]


def test_N05_date_kinds_mixed_up(store: Store) -> None:
    """Metadata is JSON: dates are refused by name and place. Times of entries are times."""
    for value in (date(2026, 5, 1), datetime(2026, 5, 1, tzinfo=UTC), timedelta(1, 2, 3)):
        with pytest.raises(InvalidRequest, match=rf"holds a {type(value).__name__}.*`due`"):
            store.instantiate(TOGGLE, instance_metadata={"due": value})
    moment = datetime(2020, 5, 1, 2, 3, 4, 5, tzinfo=UTC)
    id = store.instantiate(TOGGLE, instantiated_at=moment)
    store.fire(id, "go", fired_at=moment + timedelta(days=1, seconds=2, microseconds=3))
    (entry,) = store.history(id)
    assert entry.fired_at - store.snapshot(id).instantiated_at == timedelta(1, 2, 3)


class Colour(str, Enum):  # noqa: UP042 - the old way is what is tested
    RED = "red"


class Shape(StrEnum):
    ROUND = "round"


class Level(IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()


def test_N06_enum_becomes_letters(store: Store) -> None:
    """A text of another class is its text everywhere; never its name, never its letters."""
    given = {"a": Colour.RED, "b": Shape.ROUND, "c": Level.HIGH, "d": Word("one"), Colour.RED: 1}
    plain = {"a": "red", "b": "round", "c": 3, "d": "one", "red": 1}
    id = store.instantiate(TOGGLE, Colour.RED, Word("subject"), given)
    snapshot = store.snapshot(id)
    assert snapshot.metadata == plain
    assert {type(value) for value in snapshot.metadata.values()} == {str, int}
    assert (snapshot.actor_ref, snapshot.subject_ref) == ("red", "subject")

    class Action(str, Enum):  # noqa: UP042
        GO = "go"

    assert store.fire(Word(id), Action.GO, Shape.ROUND, reason=Colour.RED) == "on"
    (entry,) = store.history(id, {"action": Action.GO})
    assert (entry.action, entry.actor_ref, entry.reason) == ("go", "round", "red")
    assert store.fire(id, Action.GO, idempotency_key=Colour.RED) == "off"
    assert store.fire(id, "go", idempotency_key="red") == "off"
    assert [row.id for row in store.instances(subject_ref=Word("subject"))] == [id]
    assert [row.id for row in store.instances(state=Word("off"))] == [id]


@pytest.mark.parametrize("kind", [Colour, Shape])
def test_N06_a_machine_written_with_enumerations(store: Store, kind: Any) -> None:
    """States, actions and all as members of an enumeration: the machine of their texts."""
    words = {"OFF": "off", "ON": "on"}
    states: Any = StrEnum("States", words) if kind is Shape else Enum("States", words, type=str)
    machine = {
        "states": list(states),
        "transitions": [
            {"from_state": states.OFF, "action": Word("go"), "to_state": states.ON},
            {"from_state": states.ON, "action": Word("go"), "to_state": states.OFF},
        ],
        "initial_state": states.OFF,
        "terminal_states": [],
    }
    id = store.instantiate(machine)
    assert store.read_declaration(id) == TOGGLE
    assert store.fire(id, "go") == "on"


class Unfriendly(Exception):
    """An error whose constructor needs two named arguments."""

    def __init__(self, *, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def test_N08_exception_cannot_be_rebuilt(store: Store) -> None:
    """Our own can: across processes a refusal keeps its word, its sentence and its fields."""
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(Unfriendly(code=1, text="x")))
    id = store.instantiate(BATCH)
    with pytest.raises(Rejected) as caught:
        store.fire(id, "nope")
    back = pickle.loads(pickle.dumps(caught.value))
    assert (back.reason, str(back), vars(back)) == (
        "invalid-transition",
        str(caught.value),
        vars(caught.value),
    )


UNSTORABLE: list[tuple[Any, str]] = [
    ({"a": {"b": [0, open]}}, "a.b[1]"),  # a function, as a lambda is
    ({"a": [{"b": lambda: 1}]}, "a[0].b"),
    ({"tags": {"x", "y"}}, "tags"),
    ({"pair": (1, 2)}, "pair"),
    ({"raw": b"x"}, "raw"),
    ({"share": float("nan")}, "share"),
    ({"share": float("inf")}, "share"),
    ([object()], "[0]"),
    ({1: "x"}, "int"),
    ({"a": {None: 1}}, "a"),
    ({"when": date(2026, 5, 1)}, "when"),
]


@pytest.mark.parametrize(("value", "place"), UNSTORABLE, ids=[place for _, place in UNSTORABLE])
def test_N10_cannot_be_stored_noticed_too_late(store: Store, value: Any, place: str) -> None:
    """Refused now, with the path; nothing is written, the store goes on."""
    with pytest.raises(InvalidRequest) as caught:
        store.instantiate(TOGGLE, instance_metadata=value)
    assert place in str(caught.value)
    assert caught.value.argument == "instance_metadata"
    assert store.instances() == []
    store.instantiate(TOGGLE)


def test_N10_too_deep_and_endless(store: Store) -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)
    for value in (deep, loop, {"a": loop}):
        with pytest.raises(InvalidRequest, match="nested"):
            store.instantiate(TOGGLE, instance_metadata=value)
        with pytest.raises(InvalidRequest):
            store.instantiate(TOGGLE, instance_metadata=value, idempotency_key="k")


def test_N12_huge_error_text(store: Store) -> None:
    """A refusal that quotes what it was given stays short, and can be printed."""
    id = store.instantiate(TOGGLE)
    text = "\x00\x1b[31m\ud800" * 300_000
    for call in (
        lambda: store.fire(id, text),
        lambda: store.fire(id, "go", reason=text),
        lambda: store.instantiate(TOGGLE, instance_metadata={text: 1}),
        lambda: store.instantiate(TOGGLE, instance_metadata={"k": text}),
        lambda: store.instantiate({**TOGGLE, text: 1}),
        lambda: store.instantiate({**TOGGLE, "initial_state": text}),
        lambda: store.history(id, {text: 1}),
        lambda: store.history(id, {"action": text}),
        lambda: store.history(id, {"fired_at": {text: 1}}),
        lambda: store.instances(state=text),
        lambda: interlock.open(text),
    ):
        with pytest.raises(Rejected) as caught:
            call()
        said = str(caught.value)
        assert len(said) < 1500
        said.encode()
    assert store.history(id) == []


# Clocks


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, 0, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_P01_clock_steps_back(path: Path) -> None:
    """The engine's own stamp is held at the birth; nothing is refused, nothing out of order."""
    clock = Clock()
    with interlock.open(f"sqlite:///{path}", clock=clock) as store:
        id = store.instantiate(TOGGLE)
        born = clock.now
        clock.now -= timedelta(seconds=31)
        assert store.fire(id, "go") == "on"
        late = store.instantiate(TOGGLE)
        clock.now += timedelta(hours=1)
        assert store.fire(id, "go") == "off"
        assert [entry.fired_at for entry in store.history(id)] == [born, clock.now]
        clock.now = datetime(1969, 12, 31, tzinfo=UTC)
        assert store.fire(id, "go") == "on"
        before_the_epoch = store.instantiate(TOGGLE)
        assert store.fire(before_the_epoch, "go") == "on"
        assert len({id, late, before_the_epoch}) == 3
        assert store.verify().ok


def test_P01_given_times_are_held_against_the_clock_of_the_moment(path: Path) -> None:
    clock = Clock()
    with interlock.open(f"sqlite:///{path}", clock=clock) as store:
        id = store.instantiate(TOGGLE)
        for time_ in (clock.now + timedelta(microseconds=1), clock.now - timedelta(microseconds=1)):
            with pytest.raises(InvalidRequest):
                store.fire(id, "go", fired_at=time_)
        with pytest.raises(InvalidRequest):
            store.instantiate(TOGGLE, instantiated_at=clock.now + timedelta(microseconds=1))
        clock.now += timedelta(microseconds=1)
        store.fire(id, "go", fired_at=clock.now)


def test_P03_wall_difference_used_as_a_sleep(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a call waits for another program does not hang on the wall clock."""

    def broken() -> float:
        raise AssertionError("the wall clock was asked how long to wait")

    with interlock.open(f"sqlite:///{path}?busy_ms=1", clock=Clock()) as store:
        id = store.instantiate(TOGGLE)
        monkeypatch.setattr(time, "time", broken)
        with interlock.open(f"sqlite:///{path}?busy_ms=1") as other:
            inside(other)._writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageFailure, match="locked"):
                store.fire(id, "go")
            inside(other)._writer.execute("ROLLBACK")
        assert store.fire(id, "go") == "on"
    waits: list[float] = []
    sleep = time.sleep

    def note_and_sleep(seconds: float) -> None:
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", note_and_sleep)
    fresh = path.with_name("fresh.db")
    with closing(sqlite3.connect(fresh, isolation_level=None)) as setting_up:
        setting_up.execute("BEGIN IMMEDIATE")  # the one wait of Python's own is for such a one
        with pytest.raises(StorageFailure, match="locked"):
            interlock.open(f"sqlite:///{fresh}?busy_ms=50")
    assert waits
    interlock.open(f"sqlite:///{fresh}").close()
