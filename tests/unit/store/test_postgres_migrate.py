"""Making a store on PostgreSQL: once, whole or not at all, and seen when it is altered."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from interlock.core.rejection import StorageFailure
from interlock.store.postgres.migrate import (
    MIGRATIONS,
    Steps,
    grants,
    prepare,
    quote_identifier,
    schema_faults,
    split_statements,
)
from tests.support.postgres import OWNER, STRANGER, at, database, follow, make_store, server

SCHEMA = "interlock"


@pytest.fixture
def uri() -> Iterator[str]:
    with database() as uri:
        yield uri


@pytest.fixture
def connection(uri: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def whole() -> Iterator[str]:
    with database() as uri:
        make_store(uri)
        yield uri


@pytest.fixture
def made(whole: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a store, as its owner."""
    with (
        database(template=whole) as uri,
        psycopg.connect(uri, autocommit=True) as connection,
    ):
        yield connection


def ledger(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    query = "SELECT number, name FROM interlock.interlock_migrations ORDER BY number"
    return connection.execute(query).fetchall()


APPLIED = [(number, path.stem) for number, path in enumerate(MIGRATIONS, 1)]


def test_a_store_is_made_and_is_as_it_was_made(connection: psycopg.Connection[Any]) -> None:
    follow(connection, prepare(SCHEMA))
    assert ledger(connection) == APPLIED
    assert follow(connection, schema_faults(SCHEMA)) == []


def test_a_store_that_is_current_costs_two_looks(made: psycopg.Connection[Any]) -> None:
    executed = []
    steps = prepare(SCHEMA, create=False)
    with suppress(StopIteration):
        statement, _ = next(steps)
        while True:
            executed.append(statement.split()[0])
            statement, _ = steps.send(made.execute(statement).fetchall())
    assert executed == ["SELECT", "SELECT"]


@pytest.mark.parametrize(
    "name",
    [
        "Odd \"na'me\\ %s {0}",
        "a.b",
        "new",
        "select",
        "caf\u00e9",
        "$x",
        "a$name",
        "$number",
        "$schema",
        "$schema.refuse",
        "a$1 $literal",
        "x" * 63,
    ],
)
def test_a_schema_may_have_any_name(connection: psycopg.Connection[Any], name: str) -> None:
    follow(connection, prepare(name))
    follow(connection, prepare(name, create=False))
    assert follow(connection, schema_faults(name)) == []
    connection.execute(f"SET search_path = {quote_identifier(name)}")
    assert follow(connection, schema_faults(name)) == []
    assert connection.execute("SELECT count(*) FROM interlock_migrations").fetchone() == (
        len(MIGRATIONS),
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "x" * 64,
        "\u00e9" * 32,
        "a\0b",
        "a$$b",
        "\ud800",
        "a\nb",
        "a\rb",
        "\x1b[1m",
        "a\x85b",
    ],
)
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the name `"):
        quote_identifier(name)


def test_a_control_character_in_a_name_is_shown_and_said_to_be_one() -> None:
    with pytest.raises(ValueError, match="control character") as refusal:
        quote_identifier("a\nb")
    assert str(refusal.value) == (
        r"the name `a\nb` holds a control character, such as a line break; use printable ones"
    )


def test_schemas_hold_stores_side_by_side(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE public.history (mine int)")
    for name in ("one", "two", "public"):
        if name == "public":
            with pytest.raises(StorageFailure, match="another program keeps history"):
                follow(connection, prepare(name))
        else:
            follow(connection, prepare(name))
            assert follow(connection, schema_faults(name)) == []


def test_a_store_is_made_once_by_many_at_once(uri: str) -> None:
    def open_one(_: int) -> list[str]:
        with psycopg.connect(uri, autocommit=True) as connection:
            follow(connection, prepare(SCHEMA))
            return follow(connection, schema_faults(SCHEMA))

    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(open_one, range(10))) == [[]] * 10
    with psycopg.connect(uri) as connection:
        assert ledger(connection) == APPLIED


def test_a_newer_store_is_refused(made: psycopg.Connection[Any]) -> None:
    made.execute("DROP TRIGGER interlock_migrations_insert ON interlock.interlock_migrations")
    made.execute("INSERT INTO interlock.interlock_migrations VALUES (99, '0099_later', now())")
    for create in (True, False):
        with pytest.raises(
            StorageFailure, match="newer than this program: it is at schema 99"
        ) as e:
            follow(made, prepare(SCHEMA, create=create))
        assert e.value.kind == "newer"


def test_nothing_is_made_unless_asked_for(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(StorageFailure, match="holds no store; opened without `mode` it") as refusal:
        follow(connection, prepare(SCHEMA, create=False))
    assert (refusal.value.kind, refusal.value.retryable) == ("missing", False)
    assert not is_schema(connection)


@pytest.mark.parametrize(
    ("stands", "kind"),
    [
        ("CREATE TABLE interlock.orders (mine int)", "missing"),
        ("CREATE TABLE interlock.history (mine int)", "foreign"),
        ("CREATE TABLE interlock.interlock_migrations (mine int)", "foreign"),
    ],
)
def test_a_store_is_missing_where_nothing_is_called_like_its_tables(
    connection: psycopg.Connection[Any], stands: str, kind: str
) -> None:
    connection.execute("CREATE SCHEMA interlock")
    connection.execute(stands)
    with pytest.raises(StorageFailure, match="holds no") as refusal:
        follow(connection, prepare(SCHEMA, create=False))
    assert refusal.value.kind == kind


@pytest.mark.parametrize("table", ["history", "declarations", "interlock_migrations"])
def test_tables_of_others_are_left_alone(connection: psycopg.Connection[Any], table: str) -> None:
    connection.execute("CREATE SCHEMA interlock")
    connection.execute(f"CREATE TABLE interlock.{table} (mine int)")
    with pytest.raises(StorageFailure, match=f"another program keeps {table} in this") as refusal:
        follow(connection, prepare(SCHEMA))
    assert refusal.value.kind == "foreign"
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'interlock'")
    assert tables.fetchall() == [(table,)]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_store_is_made_beside_tables_of_others(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE SCHEMA interlock")
    connection.execute("CREATE TABLE interlock.orders (id int UNIQUE)")
    follow(connection, prepare(SCHEMA))
    assert follow(connection, schema_faults(SCHEMA)) == []


def test_a_database_of_another_encoding_is_refused() -> None:
    with (
        database(encoding="LATIN1") as uri,
        psycopg.connect(uri, autocommit=True) as connection,
    ):
        with pytest.raises(StorageFailure, match="is LATIN1, and a store needs UTF8") as refusal:
            follow(connection, prepare(SCHEMA))
        assert refusal.value.kind == "foreign"
        assert not is_schema(connection)


def test_who_may_not_make_a_schema_is_told_by_the_server(uri: str) -> None:
    with psycopg.connect(at(uri, user=STRANGER), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            follow(connection, prepare(SCHEMA))
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_schema_made_by_another_is_used(uri: str) -> None:
    """Who may create within it need not be permitted to make schemas."""
    with psycopg.connect(uri, autocommit=True) as owner:
        owner.execute(f"CREATE SCHEMA interlock; GRANT ALL ON SCHEMA interlock TO {STRANGER}")
    with psycopg.connect(at(uri, user=STRANGER), autocommit=True) as connection:
        follow(connection, prepare(SCHEMA))
        assert follow(connection, schema_faults(SCHEMA)) == []


def test_killed_at_any_statement_nothing_is_left(uri: str) -> None:
    """The server ends the session before each statement in turn; then the store is made again."""
    with psycopg.connect(at(server(), database=uri.split("/")[3].split("?")[0])) as admin:
        admin.autocommit = True
        statements = run(uri, prepare(SCHEMA))
        assert statements > len(split_statements(MIGRATIONS[0].read_text()))
        for place in range(statements):
            admin.execute("DROP SCHEMA IF EXISTS interlock CASCADE")
            with pytest.raises(psycopg.OperationalError):
                run(uri, prepare(SCHEMA), admin, place)
            assert not is_schema(admin)
            if place % 8 == 0:  # the like of the rest, and takes its time
                run(uri, prepare(SCHEMA))
                with psycopg.connect(uri, autocommit=True) as again:
                    assert follow(again, schema_faults(SCHEMA)) == []


def run(
    uri: str, steps: Steps[None], admin: psycopg.Connection[Any] | None = None, place: int = -1
) -> int:
    """Follow steps and count them; `admin` ends the session before the one at a place."""
    done = 0
    with closing(psycopg.connect(uri, autocommit=True)) as connection, suppress(StopIteration):
        statement, _ = next(steps)
        while True:
            if admin and done == place:
                admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
            cursor = connection.execute(statement)
            done += 1
            statement, _ = steps.send(cursor.fetchall() if cursor.description else [])
    return done


def is_schema(connection: psycopg.Connection[Any]) -> bool:
    return bool(
        connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'interlock'").fetchall()
    )


# Altered by who may: each is named.

ALTERATIONS = {
    "DROP TRIGGER history_update ON interlock.history": "the trigger `history_update` is missing",
    "ALTER TABLE interlock.history DISABLE TRIGGER history_insert": (
        "the trigger `history_insert` is not as it was made"
    ),
    "ALTER TABLE interlock.instances ENABLE REPLICA TRIGGER instances_update": (
        "the trigger `instances_update` is not as it was made"
    ),
    "DROP TRIGGER instances_update ON interlock.instances;"
    " CREATE TRIGGER instances_update BEFORE UPDATE ON interlock.instances FOR EACH ROW"
    " WHEN (false) EXECUTE FUNCTION interlock.refuse('no')": (
        "the trigger `instances_update` is not as it was made"
    ),
    "DROP TRIGGER history_delete ON interlock.history;"
    " CREATE TRIGGER history_delete AFTER DELETE ON interlock.history FOR EACH ROW"
    " EXECUTE FUNCTION interlock.refuse('interlock: history is append-only')": (
        "the trigger `history_delete` is not as it was made"
    ),
    "CREATE TRIGGER mine BEFORE INSERT ON interlock.history FOR EACH ROW"
    " EXECUTE FUNCTION suppress_redundant_updates_trigger()": (
        "the trigger `mine` on `history` was added"
    ),
    "CREATE OR REPLACE FUNCTION interlock.refuse() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RETURN NEW; END'": "the function `refuse()` is not as it was made",
    "ALTER FUNCTION interlock.history_insert() SECURITY INVOKER": (
        "the function `history_insert()` is not as it was made"
    ),
    "ALTER FUNCTION interlock.instances_inserted() RESET search_path": (
        "the function `instances_inserted()` is not as it was made"
    ),
    "DROP FUNCTION interlock.payload_fault(bytea, bytea, bytea)": (
        "the function `payload_fault(salt bytea, content bytea, digest bytea)` is missing"
    ),
    "DROP POLICY own_tenant ON interlock.history": (
        "the policy `own_tenant` on `history` is missing"
    ),
    "ALTER POLICY own_tenant ON interlock.payloads USING (true)": (
        "the policy `own_tenant` on `payloads` is not as it was made"
    ),
    "ALTER POLICY own_tenant ON interlock.payloads TO CURRENT_USER": (
        "the policy `own_tenant` on `payloads` is not as it was made"
    ),
    "CREATE POLICY all_of_it ON interlock.instances USING (true)": (
        "the policy `all_of_it` on `instances` was added"
    ),
    "ALTER TABLE interlock.history DISABLE ROW LEVEL SECURITY": (
        "the row security of `history` is not as it was made"
    ),
    "ALTER TABLE interlock.history NO FORCE ROW LEVEL SECURITY": (
        "the row security of `history` is not as it was made"
    ),
    "ALTER TABLE interlock.history ALTER actor_ref TYPE varchar(9)": (
        "the table `history` is not as it was made"
    ),
    'ALTER TABLE interlock.history ALTER actor_ref TYPE text COLLATE "default"': (
        "the table `history` is not as it was made"
    ),
    "ALTER TABLE interlock.history ADD mine int": "the table `history` is not as it was made",
    "ALTER TABLE interlock.history ALTER fired_at DROP NOT NULL": (
        "the table `history` is not as it was made"
    ),
    "ALTER TABLE interlock.history ALTER actor_ref SET DEFAULT 'me'": (
        "the table `history` is not as it was made"
    ),
    "ALTER TABLE interlock.payloads SET UNLOGGED": "the table `payloads` is not as it was made",
    "DROP TABLE interlock.start_keys": "the table `start_keys` is missing",
    "ALTER TABLE interlock.history DROP CONSTRAINT history_pkey": (
        "the constraint `history_pkey` is missing"
    ),
    "ALTER TABLE interlock.history DROP CONSTRAINT history_entry_digest;"
    " ALTER TABLE interlock.history ADD CONSTRAINT history_entry_digest"
    " CHECK (octet_length(entry_digest) = 32) NOT VALID": (
        "the constraint `history_entry_digest` is not as it was made"
    ),
    "DROP INDEX interlock.history_by_key": "the unique index `history_by_key` is missing",
    "DROP INDEX interlock.instances_by_subject": "the index `instances_by_subject` is missing",
    "CREATE UNIQUE INDEX mine ON interlock.instances (subject_ref)": (
        "the unique index `mine` on `instances` was added"
    ),
    "CREATE RULE mine AS ON INSERT TO interlock.history DO INSTEAD NOTHING": (
        "the rule `mine` on `history` was added"
    ),
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_what_was_altered_is_named(made: psycopg.Connection[Any], alteration: str) -> None:
    made.execute(alteration)
    assert ALTERATIONS[alteration] in follow(made, schema_faults(SCHEMA))


def test_every_trigger_is_missed_and_every_one_that_is_disabled_seen(
    made: psycopg.Connection[Any],
) -> None:
    triggers = made.execute(
        "SELECT tgname::text, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
    ).fetchall()
    assert len(triggers) > 25
    for name, table in triggers:
        made.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        faults = follow(made, schema_faults(SCHEMA))
        assert faults == [f"the trigger `{name}` is not as it was made"]
        made.execute(f"DROP TRIGGER {name} ON {table}")
        assert follow(made, schema_faults(SCHEMA)) == [f"the trigger `{name}` is missing"]
        made.execute("DROP SCHEMA interlock CASCADE")
        follow(made, prepare(SCHEMA))


def test_what_is_kept_beside_a_store_is_no_concern_of_it(made: psycopg.Connection[Any]) -> None:
    made.execute("CREATE TABLE interlock.orders (id int PRIMARY KEY)")
    made.execute("CREATE INDEX mine ON interlock.history (fired_at)")
    made.execute("CREATE VIEW interlock.seen AS SELECT * FROM interlock.instances")
    made.execute("CREATE FUNCTION interlock.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert follow(made, schema_faults(SCHEMA)) == []


def test_the_names_of_roles_are_quoted() -> None:
    granted = grants("a b", role='x"y', eraser="E", reader="r")
    assert 'GRANT USAGE ON SCHEMA "a b" TO "x""y"' in granted
    assert 'GRANT UPDATE (salt, content) ON "a b".payloads TO "E"' in granted
    assert not any("$" in statement for statement in granted)
    assert grants("a b") == []
    assert all(f'TO "{OWNER}"' in statement for statement in grants("s", reader=OWNER))


def test_a_name_may_look_like_the_place_of_another() -> None:
    granted = grants("$role", role="$eraser", eraser="$schema", reader="a$reader")
    assert 'GRANT USAGE ON SCHEMA "$role" TO "$eraser"' in granted
    assert 'GRANT UPDATE (salt, content) ON "$role".payloads TO "$schema"' in granted
    assert 'GRANT USAGE ON SCHEMA "$role" TO "a$reader"' in granted


def test_a_script_is_cut_where_its_statements_end() -> None:
    script = "-- one;\nSELECT 1;\nCREATE FUNCTION f() AS $$\nBEGIN;\nEND;\n$$;\n\nSELECT\n2;\n"
    assert split_statements(script) == [
        "-- one;\nSELECT 1",
        "CREATE FUNCTION f() AS $$\nBEGIN;\nEND;\n$$",
        "SELECT\n2",
    ]
