"""A caller's own transaction of SQLAlchemy or Django, on SQLite and on PostgreSQL."""

import asyncio
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import django
import psycopg
import pytest
import sqlalchemy as sa
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from sqlalchemy.orm import scoped_session as scoped

import interlock
from interlock.testing import Blocking
from tests.support.joining import (
    MAKE_NOTES,
    Caller,
    Joint,
    Rules,
    Undo,
    open_blocking,
    refusal_of,
)
from tests.support.joining_engines import EngineRules, joint_engine  # noqa: F401 - a fixture
from tests.support.machines import TOGGLE
from tests.support.postgres import database


class OfSession(Caller):
    """A session, plain or scoped."""

    def __init__(self, url: str, *, scope: bool = False, **how: Any) -> None:
        self.engine = sa.create_engine(url, **how)
        make = sessionmaker(self.engine, close_resets_only=False)
        self.connection: Any = scoped(make) if scope else make()

    def execute(self, sql: str) -> list[Any]:
        found = self.connection.execute(sa.text(sql))
        return [*found] if found.returns_rows else []

    def is_open(self) -> bool:
        own = self.connection() if isinstance(self.connection, scoped) else self.connection
        return bool(own.in_transaction())

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()

    @contextmanager
    def nested(self) -> Iterator[None]:
        with self.connection.begin_nested():
            yield


class OfConnection(OfSession):
    """A connection, which begins with its first statement."""

    def __init__(self, url: str, **how: Any) -> None:
        self.engine = sa.create_engine(url, **how)
        self.connection = self.engine.connect()


class OfBlock(OfConnection):
    """One whose transaction was begun in so many words."""

    def begin(self) -> None:
        self._block = self.connection.begin()

    def commit(self) -> None:
        self._block.commit()

    def rollback(self) -> None:
        self._block.rollback()


class OfRecipe(OfSession):
    """A session on SQLite that begins by SQLAlchemy's recipe for the driver."""

    def __init__(self, url: str) -> None:
        super().__init__(url, connect_args={"isolation_level": None})
        sa.event.listen(self.engine, "begin", lambda own: own.exec_driver_sql("BEGIN"))


class OfPool(OfConnection):
    """A connection as the pool of SQLAlchemy gives it, without the rest."""

    def __init__(self, url: str) -> None:
        self.engine = sa.create_engine(url)
        self.connection = self.engine.raw_connection()

    def execute(self, sql: str) -> list[Any]:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return [*cursor.fetchall()] if cursor.description else []

    def is_open(self) -> bool:
        driver = self.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            return driver.in_transaction
        return bool(driver.info.transaction_status)

    nested = Caller.nested


class OfDjango(Caller):
    """Django's connection, in `transaction.atomic()`."""

    def __init__(self, url: str) -> None:
        self.alias = f"test{uuid.uuid4().hex}"
        connections.settings[self.alias] = django_settings(url)
        self.connection = connections[self.alias]
        self._blocks: list[Any] = []

    def execute(self, sql: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return [*cursor.fetchall()] if cursor.description else []

    def is_open(self) -> bool:
        return bool(self.connection.in_atomic_block)

    def begin(self) -> None:
        self._blocks.append(transaction.atomic(using=self.alias))
        self._blocks[-1].__enter__()

    def commit(self) -> None:
        self._blocks.pop().__exit__(None, None, None)

    def rollback(self) -> None:
        transaction.set_rollback(True, using=self.alias)
        self.commit()

    def close(self) -> None:
        if self.connection.in_atomic_block:
            self.rollback()
        self.connection.close()
        connections.settings.pop(self.alias, None)
        with suppress(AttributeError):
            del connections[self.alias]

    @contextmanager
    def nested(self) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            yield


class Asynchronous(Caller):
    """An asynchronous session or connection, on the event loop of the store."""

    def __init__(self, url: str, store: Blocking, kind: str) -> None:
        self._wait = store._wait
        self.engine = create_async_engine(url)
        self.connection: Any
        if kind == "async connection":
            self.connection = self._wait(_connected(self.engine))
        else:
            make = async_sessionmaker(self.engine, close_resets_only=False)
            is_scoped = kind == "async scoped"
            self.connection = async_scoped_session(make, lambda: 1) if is_scoped else make()

    def execute(self, sql: str) -> list[Any]:
        found = self._wait(self.connection.execute(sa.text(sql)))
        return [*found] if found.returns_rows else []

    def is_open(self) -> bool:
        is_scoped = isinstance(self.connection, async_scoped_session)
        own = self.connection() if is_scoped else self.connection
        return bool(own.in_transaction())

    def commit(self) -> None:
        self._wait(self.connection.commit())

    def rollback(self) -> None:
        self._wait(self.connection.rollback())

    def close(self) -> None:
        self._wait(self.connection.close())
        self._wait(self.engine.dispose())

    @contextmanager
    def nested(self) -> Iterator[None]:
        block = self.connection.begin_nested()
        self._wait(block.start())
        try:
            yield
        except BaseException:
            self._wait(block.rollback())
            raise
        self._wait(block.commit())


async def _connected(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


def django_settings(url: str) -> dict[str, Any]:
    """Give the entry in DATABASES for a URL, as SQLAlchemy writes it."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    if url.startswith("sqlite"):
        given: dict[str, Any] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.removeprefix("sqlite:///"),
        }
    else:
        told = conninfo_to_dict(url.replace("+psycopg", ""))
        given = {"ENGINE": "django.db.backends.postgresql", "NAME": told["dbname"]}
        keys = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
        given |= {name: told.get(key, "") for name, key in keys.items()}
    entry = connections.configure_settings({"default": {}, "given": given})["given"]
    return dict(entry)


KINDS: dict[str, Callable[[str], Caller]] = {
    "session": OfSession,
    "scoped session": lambda url: OfSession(url, scope=True),
    "connection": OfConnection,
    "block": OfBlock,
    "pool": OfPool,
    "django": OfDjango,
}
PARAMS = [
    *((base, kind) for base in ("sqlite", "postgresql") for kind in KINDS),
    ("sqlite", "recipe"),
    ("postgresql", "serializable"),
    *(("postgresql", kind) for kind in ("async session", "async scoped", "async connection")),
]
MORE: dict[str, Callable[[str], Caller]] = {
    "recipe": OfRecipe,
    "serializable": lambda url: OfSession(url, isolation_level="SERIALIZABLE"),
}


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A database of each kind, by the URL of a store."""
    path = tmp_path_factory.mktemp("joined") / "store.db"
    with database() as postgres:
        with psycopg.connect(postgres) as connection:
            connection.execute(MAKE_NOTES)
        with closing(sqlite3.connect(path)) as own:
            own.execute(MAKE_NOTES)
        yield {"sqlite": f"sqlite:///{path}", "postgresql": postgres}


@pytest.fixture(scope="module")
def shops(urls: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A store on each, and an asynchronous one."""
    with (
        interlock.open(f"{urls['sqlite']}?synchronous=normal&busy_ms=2000") as sqlite,
        interlock.open(urls["postgresql"]) as postgres,
        open_blocking(urls["postgresql"]) as asynchronous,
    ):
        yield {"sqlite": sqlite, "postgresql": postgres, "asynchronous": asynchronous}


def sqlalchemy_url(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:")


@pytest.fixture(params=PARAMS, ids="-".join)
def joint(
    request: pytest.FixtureRequest, urls: dict[str, str], shops: dict[str, Any]
) -> Iterator[Joint]:
    base, kind = request.param
    url, asynchronous = urls[base], kind.startswith("async")
    store = shops["asynchronous" if asynchronous else base]
    watcher = OfConnection(sqlalchemy_url(url), isolation_level="AUTOCOMMIT")
    watcher.execute("DELETE FROM notes")
    watcher.rollback()
    caller: Caller
    if asynchronous:
        caller = Asynchronous(sqlalchemy_url(url), store, kind)
    else:
        caller = {**KINDS, **MORE}[kind](sqlalchemy_url(url))

    def open_store(**how: Any) -> Any:
        return open_blocking(url, **how) if asynchronous else interlock.open(url, **how)

    yield Joint(store, open_store, caller, watcher)
    caller.close()
    watcher.close()


class TestEveryKind(Rules):
    """Each rule, with each kind of connection."""


class TestEngines(EngineRules):
    """Each rule of engines, with each kind of connection."""


@pytest.fixture(params=["sqlite", "postgresql"])
def base(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(shops: dict[str, Any], base: str) -> interlock.Store:
    store: interlock.Store = shops[base]
    return store


@pytest.fixture
def engine(urls: dict[str, str], base: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(sqlalchemy_url(urls[base]))
    yield engine
    engine.dispose()


# SQLAlchemy


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    machine: Mapped[str]


@pytest.fixture
def orders(engine: sa.Engine) -> Iterator[None]:
    Base.metadata.create_all(engine)
    yield
    Base.metadata.drop_all(engine)


def test_a_connection_that_was_not_begun_commits_ours(
    shop: interlock.Store, engine: sa.Engine
) -> None:
    id = shop.instantiate(TOGGLE)
    with engine.connect() as own:
        shop.fire(id, "go", connection=own)
        assert own.in_transaction()
        own.commit()
        assert shop.current(id) == "on"
        shop.fire(id, "go", connection=own)
    assert shop.current(id) == "on"  # closed without a commit
    with engine.begin() as own:
        shop.fire(id, "go", connection=own)
    assert shop.current(id) == "off"


def test_objects_of_a_session_and_their_machines_are_one(
    shop: interlock.Store, engine: sa.Engine, orders: None
) -> None:
    with Session(engine, expire_on_commit=False) as session:
        with session.begin():
            order = Order(machine=shop.instantiate(TOGGLE, connection=session))
            session.add(order)
        with suppress(Undo), session.begin():
            session.add(Order(machine=shop.instantiate(TOGGLE, connection=session)))
            session.flush()
            shop.fire(order.machine, "go", connection=session)
            raise Undo
        assert [one.machine for one in session.scalars(sa.select(Order))] == [order.machine]
        session.rollback()
        with session.begin():
            shop.fire(order.machine, "go", connection=session)
        with pytest.raises(interlock.NotKnown):
            shop.fire("nobody", "go", connection=session)
        assert not session.in_transaction()
        assert sa.inspect(order).expired_attributes == set()
    assert shop.current(order.machine) == "on"
    assert shop.verify(order.machine).ok


def test_a_session_whose_flush_failed_is_refused(
    shop: interlock.Store, engine: sa.Engine, orders: None
) -> None:
    id = shop.instantiate(TOGGLE)
    with Session(engine) as session:
        session.add_all([Order(id=1, machine=id), Order(id=1, machine=id)])
        with pytest.raises(SQLAlchemyError):
            session.flush()
        refusal = refusal_of(lambda: shop.fire(id, "go", connection=session))
        assert "rolled back" in str(refusal)
        session.rollback()
        shop.fire(id, "go", connection=session)
        session.commit()
    assert shop.current(id) == "on"


def test_a_block_that_has_ended_is_refused(shop: interlock.Store, engine: sa.Engine) -> None:
    id = shop.instantiate(TOGGLE)
    with Session(engine) as session, session.begin():
        session.rollback()
        refusal_of(lambda: shop.fire(id, "go", connection=session))
    with engine.connect() as own, own.begin() as block:
        block.rollback()
        refusal_of(lambda: shop.fire(id, "go", connection=own))
    assert shop.current(id) == "off"


def test_autocommit_of_sqlalchemy_is_refused_and_left_as_it_is(
    shop: interlock.Store, engine: sa.Engine
) -> None:
    id = shop.instantiate(TOGGLE)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as own:
        assert "autocommit" in str(refusal_of(lambda: shop.fire(id, "go", connection=own)))
        assert not own.in_transaction()
    with Session(engine.execution_options(isolation_level="AUTOCOMMIT")) as session:
        assert "autocommit" in str(refusal_of(lambda: shop.current(id, connection=session)))
        assert not session.in_transaction()
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_an_engine_and_a_session_without_one_are_refused(
    shop: interlock.Store, engine: sa.Engine
) -> None:
    id = shop.instantiate(TOGGLE)
    refusal = refusal_of(lambda: shop.fire(id, "go", connection=engine))
    assert "is sqlalchemy.engine.base.Engine, and the store needs" in str(refusal)
    session = Session()
    assert "cannot be used" in str(refusal_of(lambda: shop.fire(id, "go", connection=session)))
    assert not session.in_transaction()


def test_a_database_that_is_away_is_refused(shop: interlock.Store, tmp_path: Path) -> None:
    id = shop.instantiate(TOGGLE)
    for url in (
        f"sqlite:///{tmp_path}/no/such.db",
        f"postgresql+psycopg://x@/x?host={tmp_path}",
    ):
        engine = sa.create_engine(url)
        session = Session(engine)
        assert "cannot be used" in str(refusal_of(partial(shop.fire, id, "go", connection=session)))
        assert not session.in_transaction()
        engine.dispose()


def test_another_database_is_refused_and_nothing_stays_open(
    shops: dict[str, Any], urls: dict[str, str], base: str, tmp_path: Path
) -> None:
    """Neither the other kind of database nor another one of the same kind."""
    other = urls["postgresql" if base == "sqlite" else "sqlite"]
    store: interlock.Store = shops[base]
    id = store.instantiate(TOGGLE)
    for url in (sqlalchemy_url(other), f"sqlite:///{tmp_path}/other.db", "sqlite://"):
        engine = sa.create_engine(url)
        with Session(engine) as session, engine.connect() as own:
            for given in (session, own):
                refusal_of(partial(store.fire, id, "go", connection=given))
                assert not given.in_transaction()
            session.execute(sa.text("SELECT 1"))
            refusal_of(partial(store.fire, id, "go", connection=session))
            assert session.in_transaction()
        engine.dispose()
    assert store.current(id) == "off"


def test_the_other_colour_is_refused_and_nothing_stays_open(
    shops: dict[str, Any], urls: dict[str, str], tmp_path: Path
) -> None:
    url = sqlalchemy_url(urls["postgresql"])

    async def story(id: str) -> None:
        engine = create_async_engine(url)
        async with AsyncSession(engine) as session, engine.connect() as own:
            makers = async_scoped_session(async_sessionmaker(engine), lambda: 1)
            for store in (shops["postgresql"], shops["sqlite"]):
                for given in (session, own, makers):
                    refusal = refusal_of(partial(store.fire, id, "go", connection=given))
                    assert "open it with `open_async`" in str(refusal)
                assert not session.in_transaction()
                assert not own.in_transaction()
                assert not makers().in_transaction()
            # Nor does the store reach through `run_sync`.
            refusal = await session.run_sync(
                lambda inner: refusal_of(
                    lambda: shops["postgresql"].fire(id, "go", connection=inner)
                )
            )
            assert "and the store needs a synchronous one of psycopg" in str(refusal)
            assert not session.in_transaction()
        await engine.dispose()
        async with interlock.open_async(urls["postgresql"]) as store:
            sync = sa.create_engine(url)
            with Session(sync) as plain:
                with pytest.raises(interlock.InvalidRequest, match="an asynchronous one"):
                    await store.fire(id, "go", connection=plain)
                assert not plain.in_transaction()
            sync.dispose()
            unstarted = create_async_engine(url).connect()
            with pytest.raises(interlock.InvalidRequest, match="cannot be used"):
                await store.fire(id, "go", connection=unstarted)
        lite = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/other.db")
        async with interlock.open_async(urls["sqlite"]) as store, AsyncSession(lite) as session:
            with pytest.raises(interlock.InvalidRequest, match="needs one of sqlite3"):
                await store.fire(id, "go", connection=session)
            assert not session.in_transaction()
        await lite.dispose()

    id = shops["postgresql"].instantiate(TOGGLE)
    asyncio.run(story(id))
    assert shops["postgresql"].current(id) == "off"


def test_an_async_block_commits_both(urls: dict[str, str]) -> None:
    async def story() -> None:
        engine = create_async_engine(sqlalchemy_url(urls["postgresql"]))
        async with interlock.open_async(urls["postgresql"]) as store:
            async with AsyncSession(engine) as session, session.begin():
                id = await store.instantiate(TOGGLE, connection=session)
                await session.execute(sa.text("INSERT INTO notes VALUES ('async')"))
            with suppress(Undo):
                async with engine.begin() as own:
                    await store.fire(id, "go", connection=own)
                    raise Undo
            assert await store.current(id) == "off"
        await engine.dispose()

    asyncio.run(story())


# Django


@pytest.fixture
def other(urls: dict[str, str], base: str) -> Iterator[OfDjango]:
    caller = OfDjango(sqlalchemy_url(urls[base]))
    yield caller
    caller.close()


def test_outside_of_atomic_django_is_refused(shop: interlock.Store, other: OfDjango) -> None:
    id = shop.instantiate(TOGGLE)
    for call in (
        lambda: shop.fire(id, "go", connection=other.connection),
        lambda: shop.current(id, connection=other.connection),
    ):
        assert "transaction.atomic()" in str(refusal_of(call))
    assert other.connection.get_autocommit()
    assert shop.current(id) == "off"


def test_without_autocommit_django_is_joined_at_once(
    shop: interlock.Store, other: OfDjango
) -> None:
    id = shop.instantiate(TOGGLE)
    other.connection.set_autocommit(False)
    shop.fire(id, "go", connection=other.connection)
    other.connection.rollback()
    assert shop.current(id) == "off"
    shop.fire(id, "go", connection=other.connection)
    other.connection.commit()
    assert shop.current(id) == "on"
    other.connection.set_autocommit(True)


def test_a_refusal_within_atomic_does_not_break_the_block(
    shop: interlock.Store, other: OfDjango
) -> None:
    id = shop.instantiate(TOGGLE)
    told: list[str] = []
    with transaction.atomic(using=other.alias):
        other.note("django")
        transaction.on_commit(lambda: told.append(shop.current(id)), using=other.alias)
        with pytest.raises(interlock.InvalidTransition):
            shop.fire(id, "stop", connection=other.connection)
        shop.fire(id, "go", connection=other.connection)
    assert told == ["on"]


def test_a_block_that_can_only_be_rolled_back_is_refused(
    shop: interlock.Store, other: OfDjango
) -> None:
    id = shop.instantiate(TOGGLE)
    with transaction.atomic(using=other.alias):
        with suppress(Undo), transaction.atomic(using=other.alias, savepoint=False):
            raise Undo
        refusal = refusal_of(lambda: shop.fire(id, "go", connection=other.connection))
        assert "can only be rolled back" in str(refusal)
    with suppress(Exception), transaction.atomic(using=other.alias):
        other.connection.close()
        refusal_of(lambda: shop.fire(id, "go", connection=other.connection))
        raise Undo
    assert shop.current(id) == "off"


def test_the_connection_of_another_thread_is_refused(
    shop: interlock.Store, other: OfDjango
) -> None:
    id = shop.instantiate(TOGGLE)
    refusals: list[interlock.InvalidRequest] = []
    with transaction.atomic(using=other.alias):
        other.execute("SELECT 1")
        thread = threading.Thread(
            target=lambda: refusals.append(
                refusal_of(lambda: shop.fire(id, "go", connection=other.connection))
            )
        )
        thread.start()
        thread.join()
    assert "thread" in str(refusals[0])


def test_the_connection_that_django_gives_by_default_is_its_own(
    shop: interlock.Store, other: OfDjango, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`django.db.connection` is a proxy for the one named `default`."""
    from django.db import connection

    id = shop.instantiate(TOGGLE)
    monkeypatch.setitem(connections.settings, "default", connections.settings[other.alias])
    with suppress(AttributeError):
        del connections["default"]
    with transaction.atomic():
        shop.fire(id, "go", connection=connection)
    connection.close()
    del connections["default"]
    assert shop.current(id) == "on"
