"""Hooks within transactions: their own rows, a caller's, and what a hook must not do."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import interlock
from interlock.engine.hooks import Tx
from interlock.store.store import Store
from tests.support import orders
from tests.support.machines import TOGGLE
from tests.support.postgres import database, with_settings

KINDS = ["sqlite", "postgres"]


class Shop(NamedTuple):
    """A store, and how to connect to its database with rows of one's own beside it."""

    store: Store
    connect: Callable[[], Any]
    mark: str

    def rows(self) -> list[Any]:
        with closing(self.connect()) as connection:
            return connection.execute("SELECT id, qty FROM reserved ORDER BY qty").fetchall()

    def reserve(self, tx: Tx) -> None:
        """Write a row of the shop's in the transaction that it is given."""
        insert = f"INSERT INTO reserved VALUES ({self.mark}, {self.mark})"
        tx.connection.execute(insert, (tx.id, tx.data["qty"]))

    def stands(self, id: str) -> tuple[str, int]:
        return self.store.current(id), len(self.store.history(id))


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        path = tmp_path / "shop.db"
        with interlock.open(f"sqlite:///{path}?synchronous=normal&busy_ms=300") as store:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(orders.MAKE_ROWS)
            yield Shop(store, lambda: sqlite3.connect(path, timeout=0.3), "?")
        return
    with database() as url:
        with psycopg.connect(url) as own:
            own.execute(orders.MAKE_ROWS)
        # One connection: whatever a hook does has to go by the one that it is given.
        with interlock.open(with_settings(url, pool_max=1)) as store:
            yield Shop(store, lambda: psycopg.connect(url), "%s")


@pytest.fixture(params=["own", "joined"])
def send(request: pytest.FixtureRequest, shop: Shop) -> Callable[..., str]:
    """Send an event in a transaction of the store's, or of a caller's that is then committed."""

    def send(order: Any, event: str, payload: Any = None, **how: Any) -> str:
        if request.param == "own":
            return str(order.send(event, payload, **how))
        with closing(shop.connect()) as connection:
            state = order.send(event, payload, connection=connection, **how)
            connection.commit()
            return str(state)

    return send


Send = Callable[..., str]


def test_a_hooks_rows_stand_with_the_entry(shop: Shop, send: Send) -> None:
    order = orders.begin(orders.engine_of(shop.store, reserve=shop.reserve))
    assert send(order, "submit", {"qty": 3}) == "open"
    assert shop.rows() == [(order.id, 3)]
    assert shop.stands(order.id) == ("open", 1)
    assert shop.store.verify().ok


def test_a_hook_that_raises_leaves_nothing(shop: Shop, send: Send) -> None:
    def reserve(tx: Tx) -> None:
        shop.reserve(tx)
        raise RuntimeError("no stock")

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    with pytest.raises(interlock.HookFailed, match="no stock"):
        send(order, "submit", {"qty": 3})
    assert shop.rows() == []
    assert shop.stands(order.id) == ("draft", 0)
    assert order.timers == []
    assert shop.store.verify().ok


def test_the_callers_transaction_outlasts_a_hook_that_raises(shop: Shop) -> None:
    fails = [True]

    def reserve(tx: Tx) -> None:
        shop.reserve(tx)
        if fails[0]:
            raise RuntimeError("no stock")

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    with closing(shop.connect()) as connection:
        connection.execute("INSERT INTO reserved VALUES ('mine', 1)")
        with pytest.raises(interlock.HookFailed):
            order.send("submit", {"qty": 3}, connection=connection)
        connection.execute("INSERT INTO reserved VALUES ('mine', 2)")
        fails[0] = False
        assert order.send("submit", {"qty": 4}, connection=connection) == "open"
        connection.commit()
    assert shop.rows() == [("mine", 1), ("mine", 2), (order.id, 4)]
    assert shop.store.verify().ok


def test_the_callers_rollback_leaves_nothing(shop: Shop) -> None:
    engine = orders.engine_of(shop.store, reserve=shop.reserve)
    order = orders.begin(engine)
    with closing(shop.connect()) as connection:
        assert order.send("submit", {"qty": 3}, connection=connection) == "open"
        begun = orders.begin(engine, connection=connection)
        connection.rollback()
    assert shop.rows() == []
    assert shop.stands(order.id) == ("draft", 0)
    assert order.timers == []
    with pytest.raises(interlock.NotKnown):
        shop.store.current(begun.id)
    assert shop.store.verify().ok


ENDINGS: dict[str, Callable[[Any], object]] = {
    "commit()": lambda connection: connection.commit(),
    "rollback()": lambda connection: connection.rollback(),
    "COMMIT": lambda connection: connection.execute("COMMIT"),
    "ROLLBACK": lambda connection: connection.execute("ROLLBACK"),
}


@pytest.mark.parametrize("hook", ["reserve", "jot"])  # after its entry, and before it
@pytest.mark.parametrize("passes_over", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_hook_that_ends_the_transaction_is_refused_and_nothing_is_left(
    shop: Shop, send: Send, ending: str, passes_over: bool, hook: str
) -> None:
    odd = [False]

    def end(tx: Tx) -> None:
        if not odd[0]:
            return
        shop.reserve(tx)
        try:
            ENDINGS[ending](tx.connection)
        except Exception:
            if not passes_over:
                raise

    order = orders.begin(orders.engine_of(shop.store, **{hook: end}))
    order.send("submit", {"qty": 3})
    before = shop.stands(order.id), order.timers, order.data
    odd[0] = True
    with pytest.raises(interlock.StorageFailure, match="must not") as refusal:
        send(order, "again")
    assert (refusal.value.kind, refusal.value.retryable) == ("failed", False)
    if shop.mark == "?" or hook == "reserve" or "rollback" in ending.lower():
        assert shop.rows() == []
    else:  # where nothing of ours is written yet, PostgreSQL lets a hook commit its own
        assert shop.rows() == [(order.id, 3)]
    assert (shop.stands(order.id), order.timers, order.data) == before
    odd[0] = False
    assert send(order, "again") == "open"
    assert shop.store.verify().ok


def test_a_savepoint_is_a_hooks_to_make(shop: Shop, send: Send) -> None:
    def reserve(tx: Tx) -> None:
        tx.connection.execute("SAVEPOINT mine")
        shop.reserve(tx)
        tx.connection.execute("ROLLBACK TO SAVEPOINT mine")
        tx.connection.execute("RELEASE SAVEPOINT mine")

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    assert send(order, "submit", {"qty": 3}) == "open"
    assert shop.rows() == []


@contextmanager
def refused_and_nothing_left(
    shop: Shop, order: Any, odd: list[bool], refusal: type[interlock.Rejected], said: str = ""
) -> Iterator[None]:
    """Have hooks do what is odd for a while: that is refused, and the instance stands as before."""
    before = shop.stands(order.id)
    odd[0] = True
    with pytest.raises(refusal, match=said or None):
        yield
    assert shop.stands(order.id) == before
    odd[0] = False


def test_no_hook_goes_back_to_a_savepoint_of_an_earlier_one(shop: Shop, send: Send) -> None:
    """It would take the entry between them away, and the event would be acknowledged."""
    odd = [False]

    def jot(tx: Tx) -> None:
        if odd[0]:
            tx.connection.execute("SAVEPOINT mine")

    def reserve(tx: Tx) -> None:
        if odd[0]:
            tx.connection.execute("ROLLBACK TO SAVEPOINT mine")

    order = orders.begin(orders.engine_of(shop.store, jot=jot, reserve=reserve))
    send(order, "submit", {"qty": 3})
    with refused_and_nothing_left(shop, order, odd, interlock.HookFailed):
        send(order, "again")
    assert send(order, "again") == "open"
    assert shop.store.verify().ok


@pytest.mark.parametrize("hook", ["jot", "reserve"])
def test_a_rollback_by_a_conflict_is_seen_whatever_is_begun_after_it(
    shop: Shop, send: Send, hook: str
) -> None:
    if shop.mark != "?":
        pytest.skip("PostgreSQL has no ON CONFLICT ROLLBACK")
    odd = [False]

    def end(tx: Tx) -> None:
        if odd[0]:
            with suppress(sqlite3.IntegrityError):
                tx.connection.execute("INSERT OR ROLLBACK INTO once VALUES (1), (1)")
            tx.connection.execute("SAVEPOINT mine")

    with closing(shop.connect()) as connection:
        connection.execute("CREATE TABLE once (n INTEGER PRIMARY KEY)")
    order = orders.begin(orders.engine_of(shop.store, **{hook: end}))
    send(order, "submit", {"qty": 3})
    with refused_and_nothing_left(shop, order, odd, interlock.StorageFailure, "must not"):
        send(order, "again")
    assert send(order, "again") == "open"
    assert shop.store.verify().ok


@pytest.mark.parametrize("change", ["ALTER TABLE kept ADD COLUMN more TEXT", "DEALLOCATE ALL"])
def test_what_a_hook_has_prepared_is_let_go_when_it_fails(shop: Shop, change: str) -> None:
    """One event may fail by it; the next does not."""
    if shop.mark == "?":
        pytest.skip("SQLite compiles again what was altered")
    due: list[str] = []

    def jot(tx: Tx) -> None:
        if due:
            tx.connection.execute(due.pop())
        tx.connection.execute("SELECT * FROM kept").fetchall()

    with closing(shop.connect()) as connection:
        connection.execute("CREATE TABLE kept (id TEXT)")
        connection.commit()
    order = orders.begin(orders.engine_of(shop.store, jot=jot))
    order.send("submit", {"qty": 3})
    for _ in range(3):
        for _ in range(8):
            assert order.send("again") == "open"
        if change == "DEALLOCATE ALL":
            due.append(change)
        else:
            with closing(shop.connect()) as connection:
                connection.execute(change)
                connection.commit()
            change = change.replace("more", "more_")
        with suppress(interlock.HookFailed, interlock.StorageFailure):
            order.send("again")
        assert order.send("again") == "open"
    assert shop.store.verify().ok


def test_a_plain_call_within_a_hook_is_refused_at_once(shop: Shop, send: Send) -> None:
    """It would wait for the transaction that waits for it."""
    other = shop.store.instantiate(TOGGLE)
    refusals: list[Exception] = []

    def reserve(tx: Tx) -> None:
        calls: list[Callable[[], object]] = [
            lambda: shop.store.fire(other, "go"),
            lambda: shop.store.fire_many([interlock.Fire(other, "go")]),
            lambda: shop.store.instantiate(TOGGLE),
            lambda: order.send("close"),
        ]
        for call in calls:
            try:
                call()
            except interlock.StorageFailure as refusal:
                refusals.append(refusal)

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    assert send(order, "submit", {"qty": 3}) == "open"
    assert len(refusals) == 4
    assert all("tx.fire" in str(refusal) for refusal in refusals)
    assert shop.stands(other) == ("off", 0)
    assert shop.store.fire(other, "go") == "on"


def test_a_hook_fires_another_instance_within_its_transaction(shop: Shop, send: Send) -> None:
    other = shop.store.instantiate(TOGGLE)
    fails = [True]

    def reserve(tx: Tx) -> None:
        assert tx.fire(other, "go", actor_ref="hook") == "on"
        if fails[0]:
            raise RuntimeError

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    with pytest.raises(interlock.HookFailed):
        send(order, "submit", {"qty": 3})
    assert shop.stands(other) == ("off", 0)
    fails[0] = False
    assert send(order, "submit", {"qty": 3}) == "open"
    assert shop.stands(other) == ("on", 1)
    assert shop.store.verify().ok


def test_a_database_error_that_a_hook_passes_over_is_never_half_of_it(
    shop: Shop, send: Send
) -> None:
    """On PostgreSQL it has aborted the transaction; on SQLite nothing but the statement is lost."""

    def reserve(tx: Tx) -> None:
        shop.reserve(tx)
        with suppress(Exception):
            tx.connection.execute("INSERT INTO nowhere VALUES (1)")

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    if shop.mark == "?":
        assert send(order, "submit", {"qty": 3}) == "open"
        assert shop.rows() == [(order.id, 3)]
        return
    with pytest.raises(interlock.StorageFailure, match="its error was passed over"):
        send(order, "submit", {"qty": 3})
    assert shop.rows() == []
    assert shop.stands(order.id) == ("draft", 0)
    assert shop.store.verify().ok


@pytest.mark.parametrize("shop", ["postgres"], indirect=True)
def test_a_hook_sees_the_settings_of_the_caller(shop: Shop) -> None:
    seen: list[Any] = []
    show = (
        "SELECT current_setting('search_path'), current_setting('enable_seqscan'),"
        " current_setting('interlock.tenant', true), current_setting('client_encoding')"
    )

    def reserve(tx: Tx) -> None:
        seen.append(tx.connection.execute(show).fetchone())
        tx.connection.execute("SET LOCAL search_path = nowhere")  # is the hook's own affair

    order = orders.begin(orders.engine_of(shop.store, reserve=reserve))
    with closing(shop.connect()) as connection:
        connection.execute("SET search_path = public, pg_temp")
        connection.execute("SET enable_seqscan = on")
        connection.execute("SET interlock.tenant = 'theirs'")
        before = connection.execute(show).fetchone()
        assert order.send("submit", {"qty": 3}, connection=connection) == "open"
        assert order.send("again", connection=connection) == "open"
        assert connection.execute(show).fetchone() == before
        connection.commit()
    assert seen == [before, before]
    assert shop.store.verify().ok


# Frameworks


def test_a_session_of_sqlalchemy(shop: Shop) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    dialect = "sqlite://" if shop.mark == "?" else "postgresql+psycopg://"
    made = sqlalchemy.create_engine(dialect, creator=shop.connect)
    order = orders.begin(orders.engine_of(shop.store, reserve=shop.reserve))
    with orm.Session(made) as session:
        session.execute(sqlalchemy.text("INSERT INTO reserved VALUES ('mine', 1)"))
        assert order.send("submit", {"qty": 3}, connection=session) == "open"
        session.rollback()
        assert shop.rows() == []
        assert shop.stands(order.id) == ("draft", 0)
        session.execute(sqlalchemy.text("INSERT INTO reserved VALUES ('mine', 1)"))
        assert order.send("submit", {"qty": 3}, connection=session) == "open"
        session.commit()
    made.dispose()
    assert shop.rows() == [("mine", 1), (order.id, 3)]
    assert shop.store.verify().ok
