"""An engine on a database that fails: what was acknowledged is there once, hooks and all.

As `test_postgres_faults.py` and `test_faulty_sqlite.py` for fires; here for events and births,
which write more than an entry: data, timers, what follows by itself, and rows of hooks.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

import interlock
from interlock import HookFailed, OutcomeUnknown, StorageFailure
from interlock.store.store import Store
from tests.support.faulty import CODES, Faults, faulty_store
from tests.support.postgres import database
from tests.support.proxy import Proxy
from tests.support.together import outcome_of

DEFINITION = interlock.loads("""
machine: turns
version: 1
data: {n: {type: integer, default: 0}, limit: {type: integer, default: 100}}
initial: here
states:
  here:
    on_enter: [note]
    after: {P1D: late}
    on:
      add: {to: calm, set: {n: "data.n + 1"}}
      walk: far
  calm: {after: {P1D: late}, on: {add: {set: {n: "data.n + 1"}}, walk: far, call: {do: [note]}}}
  far: {always: further}
  further: {always: {to: calm, when: "data.n < data.limit"}}
  late: {final: true}
""")

#: Events from `calm`, with the entries that each makes and the rows that its hooks write.
EVENTS = {"add": (1, 0), "walk": (3, 0), "call": (1, 1)}


class Ground:
    """An engine on a faulty database, and a look at it that no fault concerns."""

    def __init__(self, store: Store, mark: str, ask: Callable[[str], int]) -> None:
        self.store = store
        self.engine = interlock.Engine(store)
        self.ask = ask

        @self.engine.hook("note")
        def note(tx: interlock.Tx) -> None:
            tx.connection.execute(f"INSERT INTO notes VALUES ({mark})", (tx.id,))

        self.engine.tick()

    def order(self) -> interlock.Handle:
        order = self.engine.start(DEFINITION)
        order.send("add")
        return order

    def holds(self, order: interlock.Handle, *, entries: int, notes: int, n: int) -> None:
        """See that this is all that there is of an instance, and that it is sound."""
        assert len(order.history()) == entries
        assert self.ask(f"SELECT count(*) FROM notes WHERE id = '{order.id}'") == notes
        assert order.data["n"] == n
        assert [timer.state for timer in order.timers] == [order.state]
        assert self.store.verify(order.id).ok


def after(order: interlock.Handle, event: str, ground: Ground, *, times: int = 1) -> None:
    """See that an event came about so many times after `Ground.order`."""
    entries, notes = EVENTS[event]
    added = times if event == "add" else 0
    ground.holds(order, entries=1 + entries * times, notes=1 + notes * times, n=1 + added)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def on_file(path: Path, faults: Faults) -> Iterator[Ground]:
    store = faulty_store(path, faults)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (id TEXT)")
        yield Ground(store, "?", lambda sql: other.execute(sql).fetchone()[0])
        faults.clear()
        store.close()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("late", [False, True])
def test_each_statement_of_an_event_fails_in_turn(
    on_file: Ground, faults: Faults, event: str, late: bool
) -> None:
    """It fails, or the answer to it is lost; a lost answer to the commit is looked for."""
    for number in count(1):
        order = on_file.order()
        raised = faults.raised
        faults.at(number, CODES["io"], after=late)
        failing = len(faults.log) + number - 1
        answer = outcome_of(partial(order.send, event))
        faults.clear()
        if faults.raised == raised:
            assert number > 3
            assert answer == "calm"
            return
        if late and faults.log[failing].startswith("COMMIT"):
            assert answer == "calm"
            after(order, event, on_file)
            continue
        if isinstance(answer, StorageFailure | HookFailed):
            on_file.holds(order, entries=1, notes=1, n=1)
            assert order.send(event) == "calm"
        else:  # the fault was of what could be done once more
            assert answer == "calm"
        after(order, event, on_file)


@pytest.mark.parametrize("late", [False, True])
def test_each_statement_of_a_birth_fails_in_turn(
    on_file: Ground, faults: Faults, late: bool
) -> None:
    for number in count(1):
        before = on_file.ask("SELECT count(*) FROM instances")
        raised = faults.raised
        faults.at(number, CODES["io"], after=late)
        failing = len(faults.log) + number - 1
        answer = outcome_of(partial(on_file.engine.start, DEFINITION))
        faults.clear()
        if faults.raised == raised:
            assert number > 5
            return
        if isinstance(answer, StorageFailure | HookFailed):
            assert not (late and faults.log[failing].startswith("COMMIT"))
            assert on_file.ask("SELECT count(*) FROM instances") == before
        else:
            on_file.holds(answer, entries=0, notes=1, n=0)
        on_file.engine.start(DEFINITION)


def test_nobody_knows_and_a_key_tells(on_file: Ground, faults: Faults) -> None:
    """The commit happened, and then nobody could look."""
    for event in EVENTS:
        order = on_file.order()
        faults.watch("COMMIT", lambda: faults.on("BEGIN"))
        faults.on("COMMIT", after=True)
        with pytest.raises(OutcomeUnknown):
            order.send(event, idempotency_key="k")
        faults.clear()
        assert order.send(event, idempotency_key="k") == "calm"
        after(order, event, on_file)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        with interlock.open(url), psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE notes (id TEXT)")
        yield url


@pytest.fixture(params=["", "no"], ids=["together", "alone"])
def on_server(request: pytest.FixtureRequest, url: str) -> Iterator[tuple[Ground, Proxy]]:
    how = {"together": request.param} if request.param else {}
    with (
        Proxy(url) as proxy,
        interlock.open(proxy.url(busy_ms=300, away_ms=3000, **how)) as store,
        psycopg.connect(url, autocommit=True) as other,
    ):

        def ask(sql: str) -> int:
            (found,) = other.execute(sql.encode()).fetchone() or (0,)
            return int(found)

        yield Ground(store, "%s", ask), proxy
        proxy.heal()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("fault", ["lose_answer", "cut_before", "cut_after"])
def test_an_answer_that_is_lost_is_looked_for(
    on_server: tuple[Ground, Proxy], event: str, fault: str
) -> None:
    ground, proxy = on_server
    order = ground.order()
    getattr(proxy, fault)(b"the-actor")
    assert order.send(event, actor_ref="the-actor") == "calm"
    after(order, event, ground)
    assert order.send(event) == "calm"
    after(order, event, ground, times=2)


@pytest.mark.parametrize("event", EVENTS)
def test_what_comes_late_is_not_done_twice(on_server: tuple[Ground, Proxy], event: str) -> None:
    ground, proxy = on_server
    order = ground.order()
    fault = proxy.hold(b"the-actor")
    answer: Any = outcome_of(partial(order.send, event, actor_ref="the-actor"))
    fault.deliver()
    if event == "call":  # its instance is held meanwhile, so that nobody can look
        assert isinstance(answer, OutcomeUnknown)
        assert answer.transition_id == order.history()[-1].transition_id
    else:
        assert answer == "calm"
    after(order, event, ground)


@pytest.mark.parametrize("fault", ["lose_answer", "cut_before", "cut_after"])
def test_a_birth_whose_answer_is_lost_is_looked_for(
    on_server: tuple[Ground, Proxy], fault: str
) -> None:
    ground, proxy = on_server
    getattr(proxy, fault)(b"the-actor")
    order = ground.engine.start(DEFINITION, actor_ref="the-actor")
    ground.holds(order, entries=0, notes=1, n=0)
