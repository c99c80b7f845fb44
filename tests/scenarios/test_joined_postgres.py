"""A caller's own transaction on PostgreSQL, through psycopg alone."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import ClientCursor, Connection, IsolationLevel, RawCursor, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.string import StrDumper, TextLoader

import interlock
from interlock.testing import Blocking
from tests.support.joining import MAKE_NOTES, Caller, Joint, Rules, open_blocking, refusal_of
from tests.support.joining_engines import EngineRules, joint_engine  # noqa: F401 - a fixture
from tests.support.machines import BATCH, TOGGLE
from tests.support.postgres import READER, at, database, server, with_settings
from tests.support.together import all_at_once

IDLE = TransactionStatus.IDLE


class Psycopg(Caller):
    """A connection of psycopg, which begins before the first statement."""

    def __init__(self, url: str, **how: Any) -> None:
        self.connection = psycopg.connect(url, **how)

    def execute(self, sql: str) -> list[Any]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def is_open(self) -> bool:
        return self.connection.info.transaction_status != IDLE

    def close(self) -> None:
        self.connection.close()


class Manual(Psycopg):
    """One that begins nothing by itself."""

    def __init__(self, url: str) -> None:
        super().__init__(url, autocommit=True)

    def begin(self) -> None:
        self.execute("BEGIN")


class Block(Manual):
    """One in autocommit mode whose blocks are psycopg's."""

    def begin(self) -> None:
        self._block = self.connection.transaction()
        self._block.__enter__()

    def commit(self) -> None:
        self._block.__exit__(None, None, None)

    def rollback(self) -> None:
        self._block.__exit__(psycopg.Rollback, psycopg.Rollback(), None)

    @contextmanager
    def nested(self) -> Iterator[None]:
        with self.connection.transaction():
            yield


class Upper(TextLoader):
    def load(self, data: Any) -> str:
        return str(super().load(data)).upper()


class Shout(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj.upper())


class Odd(Psycopg):
    """One whose rows, cursors, types, encoding and names are its own."""

    def __init__(self, url: str) -> None:
        super().__init__(url, row_factory=dict_row, cursor_factory=ClientCursor)
        connection = self.connection
        for command in (
            "SET client_encoding = 'LATIN1'",
            "CREATE SCHEMA IF NOT EXISTS odd",
            "CREATE OR REPLACE FUNCTION odd.split_part(text, text, integer) RETURNS text"
            " LANGUAGE sql IMMUTABLE AS $$ SELECT 'odd' $$",
            "SET search_path = odd, public, pg_catalog",
            "SET bytea_output = 'escape'",
            "SET row_security = off",
            "SET \"interlock.tenant\" = 'somebody'",
        ):
            connection.execute(command)
        connection.commit()
        connection.adapters.register_loader("int8", TextLoader)
        connection.adapters.register_loader("bytea", TextLoader)
        connection.adapters.register_dumper(str, Shout)

    def note(self, text: str) -> None:
        self.connection.execute(sql.SQL(f"INSERT INTO notes VALUES ('{text}')"))


class Asynchronous(Caller):
    """A connection of psycopg for an event loop, that of the store."""

    def __init__(self, url: str, store: Blocking, **how: Any) -> None:
        self._wait = store._wait
        self.connection = self._wait(psycopg.AsyncConnection.connect(url, **how))

    def execute(self, sql: str) -> list[Any]:
        async def execute() -> list[Any]:
            cursor = await self.connection.execute(sql)
            return await cursor.fetchall() if cursor.description else []

        return self._wait(execute())

    def is_open(self) -> bool:
        return self.connection.info.transaction_status != IDLE

    def commit(self) -> None:
        self._wait(self.connection.commit())

    def rollback(self) -> None:
        self._wait(self.connection.rollback())

    def close(self) -> None:
        self._wait(self.connection.close())


def isolated(level: IsolationLevel) -> Callable[[str], Caller]:
    def make(url: str) -> Caller:
        caller = Psycopg(url)
        caller.connection.isolation_level = level
        return caller

    return make


KINDS: dict[str, Callable[[str], Caller]] = {
    "default": Psycopg,
    "manual": Manual,
    "block": Block,
    "repeatable read": isolated(IsolationLevel.REPEATABLE_READ),
    "serializable": isolated(IsolationLevel.SERIALIZABLE),
    "odd": Odd,
    "unprepared": lambda url: Psycopg(url, prepare_threshold=None),
    "prepared": lambda url: Psycopg(url, prepare_threshold=0),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        with psycopg.connect(url) as connection:
            connection.execute(MAKE_NOTES)
        yield url


@pytest.fixture(scope="module")
def shop(url: str) -> Iterator[interlock.Store]:
    with interlock.open(url) as store:
        yield store


@pytest.fixture(scope="module")
def async_shop(url: str) -> Iterator[Blocking]:
    with open_blocking(url) as store:
        yield store


@pytest.fixture(params=[*KINDS, "asynchronous"])
def joint(request: pytest.FixtureRequest, url: str) -> Iterator[Joint]:
    asynchronous = request.param == "asynchronous"
    store = request.getfixturevalue("async_shop" if asynchronous else "shop")
    watcher = Psycopg(url, autocommit=True)
    watcher.execute("TRUNCATE notes")
    caller = Asynchronous(url, store) if asynchronous else KINDS[request.param](url)

    def open_store(**how: Any) -> Any:
        return open_blocking(url, **how) if asynchronous else interlock.open(url, **how)

    yield Joint(store, open_store, caller, watcher)
    caller.close()
    watcher.close()


class TestEveryKind(Rules):
    """Each rule, with each kind of connection."""


class TestEngines(EngineRules):
    """Each rule of engines, with each kind of connection."""


@pytest.fixture
def own(url: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


# What is the caller's stays the caller's

SETTINGS = (
    "search_path",
    "client_encoding",
    "interlock.tenant",
    "transaction_isolation",
    "lock_timeout",
    "bytea_output",
)


@pytest.mark.parametrize("how", ["SET", "SET LOCAL"])
def test_every_setting_is_afterwards_what_it_was(
    shop: interlock.Store, url: str, own: Connection[Any], how: str
) -> None:
    def settings() -> list[Any]:
        ask = [sql.SQL("current_setting({}, true)").format(name) for name in SETTINGS]
        return own.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(ask))).fetchall()

    id = shop.instantiate(BATCH)
    own.execute("SELECT 1")
    for command in (
        f"{how} client_encoding = 'LATIN9'",
        f"{how} search_path = 'wo''rld \"é\"', pg_temp",
        f"{how} \"interlock.tenant\" = 'somebody''s é'",
        f"{how} lock_timeout = 12345",
    ):
        own.execute(command)
    before = settings()
    with interlock.open(url, tenant="Ωmega") as other:
        born = other.instantiate(BATCH, subject_ref="Ωmega", connection=own)
        assert settings() == before
        assert other.snapshot(born, connection=own).subject_ref == "Ωmega"
    shop.fire(id, "begin-testing", reason="Ω", connection=own)
    assert settings() == before
    for call in (
        lambda: shop.fire(id, "begin-testing", connection=own),
        lambda: shop.fire("nobody", "go", connection=own),
    ):
        with pytest.raises(interlock.Rejected):
            call()
        assert settings() == before
    own.commit()
    assert settings()[0][1] == ("LATIN9" if how == "SET" else "UTF8")


# Others are faster

LEVELS = [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_what_the_callers_snapshot_cannot_see_is_a_version_conflict(
    shop: interlock.Store, own: Connection[Any], level: IsolationLevel
) -> None:
    id, key = shop.instantiate(TOGGLE), f"key {level}"
    own.isolation_level = level
    own.execute("INSERT INTO notes VALUES ('mine')")
    shop.fire(id, "go")
    shop.instantiate(TOGGLE, idempotency_key=key)
    assert shop.current(id, connection=own) == "off"  # as the caller sees everything else
    for call in (
        lambda: shop.fire(id, "go", connection=own),
        lambda: shop.fire(id, "stop", connection=own),  # nor a refusal that is out of date
        lambda: shop.fire_many([interlock.Fire(id, "go")], connection=own),
        lambda: shop.instantiate(TOGGLE, idempotency_key=key, connection=own),
    ):
        with pytest.raises(interlock.VersionConflict) as caught:
            call()
        assert caught.value.version is None
        assert own.info.transaction_status == TransactionStatus.INTRANS
    own.rollback()
    assert shop.fire(id, "go", connection=own) == "off"
    own.commit()
    assert shop.fire(id, "go") == "on"


def test_serializable_transactions_that_cannot_both_be_are_told_apart(
    shop: interlock.Store, url: str
) -> None:
    """Each fires one instance because the other stands where it stands: only one may."""
    ids = [shop.instantiate(TOGGLE) for _ in range(2)]
    barrier = threading.Barrier(2)

    def work(own_id: str, other_id: str) -> str:
        with psycopg.connect(url) as own:
            own.isolation_level = IsolationLevel.SERIALIZABLE
            assert shop.current(other_id, connection=own) == "off"
            barrier.wait(60)
            try:
                shop.fire(own_id, "go", connection=own)
                own.commit()
            except (interlock.VersionConflict, psycopg.errors.SerializationFailure):
                own.rollback()
                return "conflict"
            return "done"

    told = all_at_once([lambda: work(*ids), lambda: work(*ids[::-1])])
    assert "done" in told
    assert sorted(shop.current(id) for id in ids) == sorted(
        "on" if outcome == "done" else "off" for outcome in told
    )
    assert told.count("done") == 1


def test_a_read_that_cannot_be_serialized_is_a_conflict_at_once(
    shop: interlock.Store, url: str
) -> None:
    ids = [shop.instantiate(TOGGLE) for _ in range(2)]
    with psycopg.connect(url) as one, psycopg.connect(url) as two, psycopg.connect(url) as three:
        for own in (one, two, three):
            own.isolation_level = IsolationLevel.SERIALIZABLE
        for own in (one, two):
            own.execute("SELECT 1")
            for id in ids:
                shop.current(id, connection=own)
        shop.fire(ids[0], "go", connection=one)
        shop.fire(ids[1], "go", connection=two)
        one.commit()
        begun = time.monotonic()
        with pytest.raises(interlock.VersionConflict):
            shop.current(ids[0], connection=two)
        assert time.monotonic() - begun < 5
        two.rollback()


def test_transactions_that_wait_for_each_other_are_a_conflict(
    shop: interlock.Store, url: str
) -> None:
    ids = [shop.instantiate(TOGGLE) for _ in range(2)]
    barrier = threading.Barrier(2)

    def work(first: str, second: str) -> str:
        with psycopg.connect(url) as own:
            shop.fire(first, "go", connection=own)
            barrier.wait(60)
            try:
                shop.fire(second, "go", connection=own)
            except interlock.VersionConflict as conflict:
                own.rollback()
                return "conflict" if conflict.instance_id == second else "odd"
            own.commit()
            return "done"

    told = all_at_once([lambda: work(*ids), lambda: work(*ids[::-1])])
    assert sorted(told) == ["conflict", "done"]
    assert [shop.current(id) for id in ids] == ["on", "on"]


def test_who_waits_for_another_decides_on_what_that_one_left(
    shop: interlock.Store, url: str, own: Connection[Any]
) -> None:
    id = shop.instantiate(TOGGLE)
    shop.fire(id, "go", connection=own)
    told: list[Any] = []

    def work() -> None:
        with psycopg.connect(url) as other:
            told.append(shop.fire(id, "go", connection=other))
            other.commit()

    thread = threading.Thread(target=work)
    thread.start()
    while not waiting(url):
        time.sleep(0.01)
    own.commit()
    thread.join()
    assert told == ["off"]
    assert [entry.to_state for entry in shop.history(id)] == ["on", "off"]


def waiting(url: str) -> bool:
    """Whether somebody waits for a lock in this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return found.fetchone() is not None


def test_a_key_that_another_used_meanwhile_is_a_conflict_and_then_answered(
    shop: interlock.Store, url: str, own: Connection[Any]
) -> None:
    first = shop.instantiate(TOGGLE, idempotency_key="meanwhile", connection=own)
    told: list[Any] = []

    def work() -> None:
        with psycopg.connect(url) as other:
            for _ in range(2):
                try:
                    told.append(
                        shop.instantiate(TOGGLE, idempotency_key="meanwhile", connection=other)
                    )
                except interlock.VersionConflict as conflict:
                    told.append(conflict.reason)
                    other.rollback()

    thread = threading.Thread(target=work)
    thread.start()
    while not waiting(url):
        time.sleep(0.01)
    own.commit()
    thread.join()
    assert told == ["version-conflict", first]


def test_a_statement_that_is_cut_off_leaves_the_transaction_intact(
    shop: interlock.Store, url: str, own: Connection[Any]
) -> None:
    id = shop.instantiate(TOGGLE)
    with psycopg.connect(url) as other:
        shop.fire(id, "go", connection=other)
        own.execute("SET LOCAL lock_timeout = 50")
        own.execute("INSERT INTO notes VALUES ('mine')")
        with pytest.raises(interlock.StorageFailure) as caught:
            shop.fire(id, "go", connection=own)
        assert (caught.value.kind, caught.value.retryable) == ("busy", True)
        other.rollback()
    assert shop.fire(id, "go", connection=own) == "on"
    own.commit()


def test_a_task_that_is_cancelled_leaves_the_transaction_intact(url: str) -> None:
    async def story() -> None:
        async with interlock.open_async(url) as store:
            id = await store.instantiate(TOGGLE)
            one = await psycopg.AsyncConnection.connect(url)
            two = await psycopg.AsyncConnection.connect(url)
            async with one, two:
                await store.fire(id, "go", connection=one)
                mine = await store.instantiate(TOGGLE, connection=two)
                task = asyncio.create_task(store.fire(id, "go", connection=two))
                while not await asyncio.to_thread(waiting, url):
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert two.info.transaction_status == TransactionStatus.INTRANS
                assert await store.fire(mine, "go", connection=two) == "on"
                await two.commit()
                await one.rollback()
            assert await store.current(mine) == "on"
            assert await store.current(id) == "off"

    asyncio.run(story())


def test_two_tasks_at_once_on_one_connection_do_not_mix_their_savepoints(url: str) -> None:
    async def story() -> None:
        async with interlock.open_async(url) as store:
            ids = [await store.instantiate(TOGGLE) for _ in range(2)]
            async with await psycopg.AsyncConnection.connect(url) as own:
                told = await asyncio.gather(
                    *(store.fire(id, "go", connection=own) for id in ids), return_exceptions=True
                )
                await own.commit()
            assert told[0] == "on"
            assert isinstance(told[1], interlock.InvalidRequest)
            assert "being used by another call" in str(told[1])
            assert [await store.current(id) for id in ids] == ["on", "off"]

    asyncio.run(story())


def test_a_connection_that_is_lost_is_told_of_at_once(shop: interlock.Store, url: str) -> None:
    id = shop.instantiate(TOGGLE)
    for call in (shop.current, lambda id, **how: shop.fire(id, "go", **how)):
        with psycopg.connect(url) as own:
            shop.current(id, connection=own)
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [own.info.backend_pid])
            begun = time.monotonic()
            with pytest.raises(interlock.StorageFailure) as caught:
                call(id, connection=own)
            assert (caught.value.kind, caught.value.retryable) == ("unreachable", False)
            assert time.monotonic() - begun < 5
            refusal_of(partial(call, id, connection=own))
    assert shop.current(id) == "off"


# What is refused


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    with database() as other:
        yield other


@pytest.mark.parametrize("there", ["nothing", "an empty schema", "a namesake", "another store"])
@pytest.mark.parametrize("within", [False, True], ids=["idle", "in a transaction"])
def test_a_connection_to_another_database_is_refused(
    shop: interlock.Store, elsewhere: str, there: str, within: bool
) -> None:
    id = shop.instantiate(TOGGLE)
    with psycopg.connect(elsewhere, autocommit=True) as other:
        other.execute("DROP SCHEMA IF EXISTS interlock CASCADE")
        if there in ("an empty schema", "a namesake"):
            other.execute("CREATE SCHEMA interlock")
        if there == "a namesake":
            other.execute("CREATE TABLE interlock.history (note text)")
    if there == "another store":
        interlock.open(elsewhere).close()
    with psycopg.connect(elsewhere) as own:
        if within:
            own.execute("SELECT 1")
        before = own.info.transaction_status
        for call in (
            lambda: shop.fire(id, "go", connection=own),
            lambda: shop.instantiate(TOGGLE, connection=own),
            lambda: shop.current(id, connection=own),
        ):
            assert "leads to another database than the store" in str(refusal_of(call))
            assert own.info.transaction_status == before
    assert shop.current(id) == "off"


def test_the_schema_of_the_store_is_found_whatever_the_search_path(
    shop: interlock.Store, url: str, own: Connection[Any]
) -> None:
    """Two stores in two schemas of one database join one transaction."""
    id = shop.instantiate(TOGGLE)
    with interlock.open(url, schema='Odd "one"') as other:
        theirs = other.instantiate(TOGGLE)
        own.execute("SET search_path = 'nowhere'")
        assert shop.fire(id, "go", connection=own) == "on"
        assert other.fire(theirs, "go", connection=own) == "on"
        with pytest.raises(interlock.NotKnown):
            other.fire(id, "go", connection=own)
        own.commit()
        assert (shop.current(id), other.current(theirs)) == ("on", "on")


def test_a_schema_that_was_dropped_is_no_store_and_made_anew_is_another(
    url: str, own: Connection[Any]
) -> None:
    with interlock.open(url, schema="passing") as store:
        id = store.instantiate(TOGGLE)
        assert store.current(id, connection=own) == "off"
        own.execute("DROP SCHEMA passing CASCADE")
        own.commit()
        refusal_of(lambda: store.current(id, connection=own))
    with interlock.open(url, schema="passing") as store:
        id = store.instantiate(TOGGLE)
        assert store.fire(id, "go", connection=own) == "on"


def test_a_role_that_may_not_is_told_so_and_keeps_its_transaction(
    shop: interlock.Store, url: str
) -> None:
    id = shop.instantiate(TOGGLE)
    with psycopg.connect(at(url, user=READER)) as own:
        own.execute("SELECT 1")
        with pytest.raises(interlock.StorageFailure) as caught:
            shop.fire(id, "go", connection=own)
        assert "permission denied" in str(caught.value)
        assert own.info.transaction_status == TransactionStatus.INTRANS


def test_a_transaction_that_only_reads_reads(shop: interlock.Store, own: Connection[Any]) -> None:
    id = shop.instantiate(TOGGLE)
    own.read_only = True
    assert shop.current(id, connection=own) == "off"
    with pytest.raises(interlock.StorageFailure) as caught:
        shop.fire(id, "go", connection=own)
    assert caught.value.kind == "read-only"
    own.rollback()


def test_a_store_opened_to_read_reads_in_the_callers_transaction_and_writes_nothing(
    shop: interlock.Store, url: str, own: Connection[Any]
) -> None:
    id = shop.instantiate(TOGGLE)
    with interlock.open(f"{url}&mode=ro" if "?" in url else f"{url}?mode=ro") as reader:
        shop.fire(id, "go", connection=own)
        assert reader.current(id, connection=own) == "on"
        with pytest.raises(interlock.StorageFailure) as caught:
            reader.fire(id, "go", connection=own)
        assert caught.value.kind == "read-only"
        own.commit()
    assert shop.current(id) == "on"


def test_a_connection_in_autocommit_mode_is_refused_unless_it_has_begun(
    shop: interlock.Store, url: str
) -> None:
    id = shop.instantiate(TOGGLE)
    with psycopg.connect(url, autocommit=True) as own:
        for call in (
            lambda: shop.fire(id, "go", connection=own),
            lambda: shop.current(id, connection=own),
        ):
            assert "autocommit" in str(refusal_of(call))
            assert (own.info.transaction_status, own.autocommit) == (IDLE, True)
        with own.transaction(force_rollback=True):
            assert shop.fire(id, "go", connection=own) == "on"
    assert shop.current(id) == "off"


def test_an_aborted_transaction_is_refused_and_can_be_gone_on_with_after_its_savepoint(
    shop: interlock.Store, own: Connection[Any]
) -> None:
    id = shop.instantiate(TOGGLE)
    own.execute("SAVEPOINT mine")
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("SELECT 1 / 0")
    assert "aborted" in str(refusal_of(lambda: shop.fire(id, "go", connection=own)))
    assert own.info.transaction_status == TransactionStatus.INERROR
    own.execute("ROLLBACK TO mine")
    assert shop.fire(id, "go", connection=own) == "on"


def test_a_connection_in_use_is_refused(shop: interlock.Store, own: Connection[Any]) -> None:
    id = shop.instantiate(TOGGLE)
    rows = own.cursor().stream("SELECT generate_series(1, 9)")
    next(rows)
    assert "executing a statement" in str(refusal_of(lambda: shop.fire(id, "go", connection=own)))
    assert len([*rows]) == 8
    with own.cursor().copy("COPY notes FROM STDIN") as copy:
        refusal_of(lambda: shop.fire(id, "go", connection=own))
        copy.write_row(["copied"])
    assert shop.fire(id, "go", connection=own) == "on"


def test_a_connection_in_pipeline_mode_is_refused(
    shop: interlock.Store, own: Connection[Any]
) -> None:
    id = shop.instantiate(TOGGLE)
    with own.pipeline():
        own.execute("INSERT INTO notes VALUES ('mine')")
        assert "pipeline" in str(refusal_of(lambda: shop.current(id, connection=own)))
    own.execute("DELETE FROM notes WHERE text = 'mine'")
    assert shop.current(id, connection=own) == "off"


def test_a_connection_whose_triggers_are_off_is_refused(shop: interlock.Store, url: str) -> None:
    id = shop.instantiate(TOGGLE)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(at(server(), database=str(name))) as own:
        own.execute("SET session_replication_role = 'replica'")
        refusal = refusal_of(lambda: shop.fire(id, "go", connection=own))
        assert "session_replication_role" in str(refusal)


@pytest.mark.parametrize("how", ["session", "local", "database", "url"])
def test_row_security_that_is_off_is_on_for_our_statements(
    how: str, url: str, shop: interlock.Store
) -> None:
    """Off, every statement on a table with policies would be an error."""
    asked = url if how != "url" else with_settings(url, options="-c%20row_security%3Doff")
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    if how == "database":
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"ALTER DATABASE {name} SET row_security = off")
    try:
        with interlock.open(asked) as store, psycopg.connect(asked) as own:
            if how in ("session", "local"):
                own.execute(f"SET {how} row_security = off")
            id = store.instantiate(TOGGLE, connection=own)
            assert store.fire(id, "go", connection=own) == "on"
            assert own.execute("SHOW row_security").fetchone() == ("off",)
            own.commit()
            assert store.fire(id, "go") == "off"
            assert store.verify(id).ok
    finally:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"ALTER DATABASE {name} RESET row_security")
    assert shop.current(id) == "off"


def test_the_other_colour_is_refused(
    shop: interlock.Store, async_shop: Blocking, own: Connection[Any], url: str
) -> None:
    id = shop.instantiate(TOGGLE)
    assert "asynchronous" in str(refusal_of(lambda: async_shop.fire(id, "go", connection=own)))
    assert own.info.transaction_status == IDLE
    with closing(Asynchronous(url, async_shop)) as caller:
        refusal = refusal_of(lambda: shop.fire(id, "go", connection=caller.connection))
        assert str(refusal).endswith("and the store needs a synchronous one of psycopg")
        assert not caller.is_open()


def test_a_cursor_is_no_connection(shop: interlock.Store, own: Connection[Any]) -> None:
    id = shop.instantiate(TOGGLE)
    refusal_of(lambda: shop.fire(id, "go", connection=own.cursor()))
    refusal_of(lambda: shop.fire(id, "go", connection=RawCursor(own)))
    assert own.info.transaction_status == IDLE
