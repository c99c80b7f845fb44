"""What the parts of the contract share: fixtures, example machines, and ways to say what is due."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import pytest

from interlock.core.rejection import Rejected
from interlock.store.attempt import Birth
from interlock.store.store import Store
from interlock.testing.blocking import Blocking

R = TypeVar("R", bound=Rejected)

#: A store with the verbs of `interlock.Store`, each giving its answer when it returns.
Verbs: TypeAlias = Store | Blocking
Opening: TypeAlias = Callable[..., Verbs]

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)


class Part:
    """A part of the contract: tests about one subject, on stores that `open_store` opens.

    Attributes:
        handles: what `open_store` gives when it is called again in one test. `shared`: another
            handle on the same database. `own`: a store of its own, as in memory; then tests that
            need two handles on one database are skipped.
    """

    handles: ClassVar[Literal["shared", "own"]] = "shared"

    def open_store(self, **how: Any) -> Verbs:
        """Open a store on the test's own database, which is empty when the test begins.

        Args:
            how: `tenant`, `limits` and `clock`, for `interlock.open`.
        """
        raise NotImplementedError("a store contract needs `open_store(self, **how)`")

    @pytest.fixture
    def opening(self) -> Iterator[Opening]:
        """Open stores that are closed after the test."""
        with ExitStack() as stack:

            def opened(**how: Any) -> Verbs:
                store = self.open_store(**how)
                stack.callback(store.__exit__, None, None, None)
                return store

            yield opened

    @pytest.fixture
    def store(self, opening: Opening) -> Verbs:
        return opening()

    @pytest.fixture
    def another(self, opening: Opening) -> Opening:
        """Open further handles on the database of `store`."""
        if self.handles == "own":
            pytest.skip(
                "needs two handles on one database, and here each has a database of its own"
            )
        return opening


class Clock:
    """A clock that is moved by hand."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


# Machines


def arrow(from_state: str, action: str, to_state: str, guard: str | None = None) -> dict[str, Any]:
    row = {"from_state": from_state, "action": action, "to_state": to_state}
    return row if guard is None else {**row, "guard": guard}


def declare(
    states: list[str], transitions: list[dict[str, Any]], terminal_states: Sequence[str] = ()
) -> dict[str, Any]:
    """Write a declaration whose first state is the initial one."""
    return {
        "states": states,
        "transitions": transitions,
        "initial_state": states[0],
        "terminal_states": [*terminal_states],
    }


# The example of the State Machine atom, "Flow", as corrected there.
BATCH = declare(
    ["sampled", "testing", "released", "rejected"],
    [
        arrow("sampled", "begin-testing", "testing"),
        arrow("testing", "release", "released", "QP-sign-off"),
        arrow("testing", "reject-batch", "rejected"),
    ],
    ["released", "rejected"],
)

# Goes on for ever, so a test can fire as often as it likes.
TOGGLE = declare(["off", "on"], [arrow("off", "go", "on"), arrow("on", "go", "off")])

# Two ways out of one state.
FORK = declare(
    ["s", "archived", "active"],
    [arrow("s", "archive", "archived"), arrow("s", "activate", "active")],
)


# What is due


class Call(Protocol):
    def __call__(self, *given: Any, **more: Any) -> Any: ...


def refusal(kind: type[R], call: Call, *given: Any, **more: Any) -> R:
    """Make a call that is to be refused so, and give the refusal."""
    with pytest.raises(Rejected) as caught:
        call(*given, **more)
    assert type(caught.value) is kind, f"{caught.value.reason}: {caught.value}"
    assert str(caught.value)
    return caught.value


@contextmanager
def untouched(store: Verbs) -> Iterator[None]:
    """Hold that the block leaves everything in the store as it was."""
    before = told(store)
    yield
    assert told(store) == before


def told(store: Verbs) -> dict[str, Any]:
    """Give everything that a store tells of its instances."""
    found: dict[str, Any] = {}
    for row in everything(store):
        declaration = json.dumps(store.read_declaration(row.id))
        found[row.id] = (row, store.current(row.id), declaration, store.history(row.id))
    return found


def everything(store: Verbs, limit: int = 100) -> list[Any]:
    """Give the rows of all pages."""
    rows = page = store.instances(limit=limit)
    while len(page) == limit:
        page = store.instances(limit=limit, after=page[-1].id)
        rows = [*rows, *page]
    return rows


def begin(store: Verbs, declaration: dict[str, Any], births: Sequence[Birth]) -> list[str]:
    """Begin instances that are all to be accepted."""
    ids = [id for id in store.instantiate_each(declaration, births) if isinstance(id, str)]
    assert len(ids) == len(births)
    return ids


def numbers(entries: Sequence[Any]) -> list[int]:
    return [entry.sequence_number for entry in entries]


def outcome_of(call: Callable[[], Any]) -> Any:
    """Give what a call gives, or the refusal that it raises."""
    try:
        return call()
    except Rejected as refused:
        return refused


def all_at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make calls in a thread each, released at one moment; give what each gave or raised."""
    barrier = threading.Barrier(len(calls))

    def made(call: Callable[[], Any]) -> Any:
        barrier.wait(60)
        return outcome_of(call)

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(made, call) for call in calls]]


def words(outcomes: Sequence[Any]) -> list[str]:
    """Name outcomes, sorted: a refusal by its word, everything else as `done`."""
    return sorted(one.reason if isinstance(one, Rejected) else "done" for one in outcomes)
