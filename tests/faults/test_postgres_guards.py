"""The schema on PostgreSQL alone holds Invariants 1 to 7 against any client that writes data.

As `test_schema_guards` does for SQLite: every statement that could break a promise is tried raw,
written out of the schema itself, by the owner of the tables, who is no superuser. After each that
was not refused, every row is as it was, or the change is a lawful one by an oracle that knows only
the specification. Then what the other roles may do, and what each sees of another tenant. DDL is
not tried: who drops the triggers is for `verify`.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import RawCursor, sql

import interlock
from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.record import payload_digest
from tests.support import orders
from tests.support.guards import (
    FORGERIES,
    LAWFUL,
    Forgery,
    fill,
    lawful_entry,
    odd_entries,
    runs_from,
    strays,
)
from tests.support.machines import BATCH, MACHINES, TOGGLE, arrow, declare
from tests.support.postgres import APP, ERASER, READER, STRANGER, at, database, make_store
from tests.support.records import LEDGER, WORKING, Content, breaches, content_of, unlawful

Execute: TypeAlias = Callable[..., None]

TABLES = [
    "data_changes",
    "declarations",
    "declared_transitions",
    "definitions",
    "history",
    "instances",
    LEDGER,
    "payloads",
    "start_keys",
    "sweeps",
    "timers",
]
GUARDED = [table for table in TABLES if table != LEDGER]
COLLISIONS = ["", "ON CONFLICT DO NOTHING"]

# What is no refusal, but a mistake in a test.
MISTAKES = ("42601", "42703", "42P01", "42883")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """Rows in every table: instances new, under way and ended, two declarations."""
    path = tmp_path_factory.mktemp("guards") / "store.db"
    with interlock.open(f"sqlite:///{path}") as store:
        fill(store)
    return content_of(path)


@pytest.fixture(scope="module")
def filled(original: Content) -> Iterator[str]:
    """A database with the same rows, written one by one as a client would."""
    with database() as uri:
        make_store(uri)
        with psycopg.connect(uri) as connection:
            client = Client(connection)
            for table in ("declarations", "definitions", "payloads"):
                for row in original[table]:
                    client.insert(table, row)
            for row in original["instances"]:
                initial = next(d[2] for d in original["declarations"] if d[1] == row[3])
                client.insert("instances", (*row[:4], initial, 1, row[14], *row[7:]))
            recorded = [
                *((row[3], -1, "history", row) for row in original["history"]),
                *((row[3], row[4], "data_changes", row) for row in original["data_changes"]),
            ]
            for *_, table, row in sorted(recorded, key=lambda one: one[:2]):
                client.insert(table, row)
            for table in WORKING:
                for row in original[table]:
                    client.insert(table, row)
        yield uri


@pytest.fixture
def uri(filled: str) -> Iterator[str]:
    """A copy of that database."""
    with database(template=filled) as uri:
        yield uri


@pytest.fixture
def client(uri: str) -> Iterator["Client"]:
    """The owner of the tables, with plain SQL."""
    with psycopg.connect(uri) as connection:
        client = Client(connection)
        yield client
        connection.rollback()


class Client:
    """Tries statements, each on the same content, and judges what they did.

    Tables are called by their names alone here; parameters are written `$1`.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.cursor = RawCursor(connection)
        self.cursor.execute("SET search_path = interlock")
        connection.commit()
        self.before = content(connection)
        self.columns = {table: self._columns(table) for table in TABLES}
        self.tried = 0
        self.refused = 0
        self.faults: list[str] = []

    def attempt(self, statement: str, *parameters: object) -> None:
        """Try one statement; note what it broke; take it back."""
        self.tried += 1
        if self._changes(statement, parameters):
            self._look((statement, parameters))
        self.connection.rollback()

    def piece(self, work: Callable[[Execute], None], *named: object) -> None:
        """Try some statements as one piece; one that is refused does not stop the rest."""
        self.tried += 1

        def execute(statement: str, *parameters: object) -> None:
            self.connection.execute("SAVEPOINT one")
            if not self._changes(statement, parameters):
                with suppress(psycopg.Error):
                    self.connection.execute("ROLLBACK TO SAVEPOINT one")

        work(execute)
        self._look(named)
        self.connection.rollback()

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [dict(zip(self.columns[table], row, strict=True)) for row in self.before[table]]

    def insert(self, table: str, row: "tuple[Any, ...]") -> None:
        self.cursor.execute(inserting(table, self.columns[table]), row)

    def judge(self) -> None:
        assert self.tried, "the matrix is empty"
        assert content(self.connection) == self.before
        assert not self.faults, f"{len(self.faults)} faults\n" + "\n".join(self.faults[:20])

    def _changes(self, statement: str, parameters: "tuple[object, ...]") -> bool:
        """Whether a statement was let by and found rows."""
        try:
            self.cursor.execute(statement, parameters)
        except psycopg.Error as error:
            if error.sqlstate in MISTAKES:
                raise
            self.refused += 1
            return False
        return self.cursor.rowcount != 0

    def _look(self, named: object) -> None:
        after = content(self.connection)
        if after != self.before:
            faults = unlawful(self.before, after) + content_breaches(after, self.columns)
            self.faults += [f"{fault} <- {named}" for fault in faults]

    def _columns(self, table: str) -> list[str]:
        listed = self.connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description
        return [column.name for column in listed or ()]


def content(connection: psycopg.Connection[Any]) -> Content:
    """Read every row of every table, exactly."""
    return {
        table: sorted(connection.execute(f"SELECT * FROM interlock.{table}").fetchall(), key=repr)
        for table in TABLES
    }


def content_breaches(rows: Content, columns: dict[str, list[str]]) -> list[str]:
    """Ask the oracle, which reads SQLite, about rows from anywhere."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for table in GUARDED:
            names = columns[table]
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            places = ", ".join("?" * len(names))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows[table])
        return breaches(connection)


def where(key: list[str], first: int = 1) -> str:
    return " AND ".join(f"{name} = ${place}" for place, name in enumerate(key, first))


def greatest(table: str, column: str) -> str:
    return f"(SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1)"


def least(table: str, column: str) -> str:
    return f"(SELECT {column} FROM {table} ORDER BY {column} LIMIT 1)"


def inserting(table: str, names: list[str], collision: str = "", rows: int = 1) -> str:
    places = (f"${place}" for place in range(1, rows * len(names) + 1))
    listed = ", ".join(f"({', '.join(next(places) for _ in names)})" for _ in range(rows))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {listed} {collision}"


KEYS = {
    "declarations": ["tenant", "digest"],
    "declared_transitions": ["tenant", "digest", "from_state", "action"],
    "instances": ["tenant", "root", "id"],
    "history": ["tenant", "root", "instance_id", "sequence_number"],
    "payloads": ["tenant", "root", "id"],
    "start_keys": ["tenant", "idempotency_key"],
    "definitions": ["tenant", "digest"],
    "data_changes": ["tenant", "root", "instance_id", "sequence_number", "ordinal"],
    "timers": ["tenant", "root", "instance_id", "state", "name"],
    "sweeps": ["tenant"],
    LEDGER: ["number"],
}


def test_the_rows_are_those_that_sqlite_holds(client: Client, original: Content) -> None:
    """The control: what one store wrote lawfully, the other takes, and makes the same of it."""
    assert {table: client.before[table] for table in GUARDED} == {
        table: original[table] for table in GUARDED
    }
    assert content_breaches(client.before, client.columns) == []


def test_every_table_has_rows_to_attack_and_triggers_of_every_kind(client: Client) -> None:
    rows = client.connection.execute(
        "SELECT event_object_table, event_manipulation FROM information_schema.triggers"
        " WHERE trigger_schema = 'interlock'"
    ).fetchall()
    truncations = client.connection.execute(
        "SELECT c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
        " WHERE t.tgtype & 32 > 0"
    ).fetchall()
    assert {table for (table,) in truncations} == {*TABLES}
    for table in TABLES:
        assert client.before[table], f"fill `{table}` in the fixture `original`"
        events = {event for name, event in rows if name == table}
        wanted = {"timers": {"INSERT", "UPDATE"}, "sweeps": set()}  # the rest are constraints
        assert events == wanted.get(table, {"INSERT", "UPDATE", "DELETE"}), table


def test_the_owner_is_no_superuser(client: Client) -> None:
    rows = client.connection.execute(
        "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchall()
    assert rows == [(False, False)]
    owners = client.connection.execute(
        "SELECT DISTINCT tableowner = current_user FROM pg_tables WHERE schemaname = 'interlock'"
    ).fetchall()
    assert owners == [(True,)]


@pytest.mark.parametrize("table", [table for table in TABLES if table not in WORKING])
def test_no_row_can_be_deleted(client: Client, table: str) -> None:
    client.attempt(f"DELETE FROM {table}")
    client.attempt(f"DELETE FROM {table} RETURNING *")
    client.attempt(f"WITH gone AS (DELETE FROM {table} RETURNING *) SELECT * FROM gone")
    client.attempt(f"DELETE FROM {table} USING history AS other WHERE true")
    client.attempt(f"TRUNCATE {table}")
    client.attempt(f"TRUNCATE {table} RESTART IDENTITY CASCADE")
    client.attempt(f"TRUNCATE {', '.join(TABLES)}")
    for row in client.rows(table):
        key = KEYS[table]
        client.attempt(f"DELETE FROM {table} WHERE {where(key)}", *(row[name] for name in key))
    assert client.refused == client.tried
    client.judge()


@pytest.mark.parametrize("table", TABLES)
def test_no_column_of_any_row_can_be_updated(client: Client, table: str) -> None:
    key, rows = KEYS[table], client.rows(table)
    for row in rows:
        place = tuple(row[name] for name in key)
        for column in row:
            update = f"UPDATE {table} SET {column} = $1 WHERE {where(key, 2)}"
            for value in strays(rows, column):
                client.attempt(update, value, *place)
    client.judge()


@pytest.mark.parametrize("table", TABLES)
def test_whole_rows_and_whole_tables_cannot_be_updated(client: Client, table: str) -> None:
    key, rows, names = KEYS[table], client.rows(table), client.columns[table]
    assigned = ", ".join(f"{name} = ${place}" for place, name in enumerate(names, 1))
    for row in rows:
        for other in rows:
            client.attempt(
                f"UPDATE {table} SET {assigned} WHERE {where(key, len(names) + 1)}",
                *other.values(),
                *(row[name] for name in key),
            )
    for column in names:
        client.attempt(f"UPDATE {table} SET {column} = DEFAULT")
        client.attempt(
            f"UPDATE {table} SET {column} = other.{column}"
            f" FROM (SELECT * FROM {table} ORDER BY 1 DESC, 2 DESC, 3 DESC) AS other"
        )
        client.attempt(
            f"WITH other AS (UPDATE {table} SET {column} = {greatest(table, column)}"
            " RETURNING *) SELECT * FROM other"
        )
    client.judge()


@pytest.mark.parametrize("collision", COLLISIONS)
@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_inserted_over_another(client: Client, table: str, collision: str) -> None:
    rows, names = client.rows(table), client.columns[table]
    insert = inserting(table, names, collision)
    for row in rows:
        client.attempt(insert, *row.values())
        for column in names:
            for value in strays(rows, column):
                client.attempt(insert, *{**row, column: value}.values())
    client.judge()


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_upserted(client: Client, table: str) -> None:
    rows, names, key = client.rows(table), client.columns[table], KEYS[table]
    for row in rows:
        for column in names:
            upsert = inserting(table, names, f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET")
            for value in strays(rows, column):
                client.attempt(
                    f"{upsert} {column} = ${len(names) + 1}",
                    *(row if table != "instances" else newborn(row)).values(),
                    value,
                )
    client.judge()


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_merged(client: Client, table: str) -> None:
    if client.connection.info.server_version < 150000:
        pytest.skip("MERGE came with PostgreSQL 15")
    names = client.columns[table]
    merge = f"MERGE INTO {table} AS t USING (SELECT * FROM {table}) AS s"
    same = " AND ".join(f"t.{name} = s.{name}" for name in KEYS[table])
    client.attempt(f"{merge} ON {same} WHEN MATCHED THEN DELETE")
    for column in names:
        assigned = f"WHEN MATCHED THEN UPDATE SET {column}"
        client.attempt(f"{merge} ON {same} {assigned} = NULL")
        client.attempt(f"{merge} ON {same} {assigned} = {greatest(table, column)}")
        client.attempt(f"{merge} ON {same} {assigned} = {least(table, column)}")
    listed = ", ".join(names)
    for column in names:
        shifted = ", ".join(least(table, name) if name == column else f"s.{name}" for name in names)
        client.attempt(
            f"{merge} ON false WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({shifted})"
        )
    client.judge()


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_other_shapes(client: Client, table: str) -> None:
    """Rows through CTEs and SELECTs, many at once, default values, COPY, prepared statements."""
    rows, names = client.rows(table), client.columns[table]
    listed = ", ".join(names)
    values = [value for row in rows for value in row.values()]
    for collision in COLLISIONS:
        client.attempt(inserting(table, names, collision, len(rows)), *values)
        client.attempt(f"INSERT INTO {table} DEFAULT VALUES {collision}")
        client.attempt(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {table} {collision}")
        for column in names:
            shifted = ", ".join(greatest(table, name) if name == column else name for name in names)
            client.attempt(
                f"WITH copied AS (SELECT {shifted} FROM {table})"
                f" INSERT INTO {table} ({listed}) SELECT * FROM copied {collision}"
            )
    if table != LEDGER:  # whose triggers refuse it like any other insert
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"):
            client.cursor.execute(f"COPY {table} FROM STDIN")
        client.connection.rollback()
    client.judge()


def test_a_statement_within_a_statement_is_no_trigger(client: Client) -> None:
    """What only a trigger may write is known by the depth of triggers, to which calls add none."""
    client.cursor.execute(
        "CREATE FUNCTION meddle() RETURNS text LANGUAGE plpgsql AS"
        " $$BEGIN UPDATE interlock.instances SET current_state = 'released',"
        " next_sequence_number = next_sequence_number + 1; RETURN 'x'; END$$"
    )
    client.connection.commit()
    entry = entry_for(client, "on", TOGGLE)
    place = [*entry].index("actor_ref") + 1
    insert = inserting("history", [*entry]).replace(
        f"${place},", f"coalesce(${place}::text, meddle()),"
    )
    assert "meddle()" in insert
    for statement, parameters in (("SELECT meddle()", ()), (insert, tuple(entry.values()))):
        with pytest.raises(psycopg.errors.CheckViolation, match="only an entry of history moves"):
            client.cursor.execute(statement, parameters)
        client.connection.rollback()


@pytest.mark.parametrize(
    "setting",
    [
        "row_security = off",
        "session_replication_role = replica",
        "search_path = public, pg_catalog",
        "interlock.moved = 'nowhere'",
    ],
)
def test_no_setting_of_a_session_helps(client: Client, setting: str) -> None:
    """Who may not set it is refused there; what is set does not let anything by."""
    connection = client.connection
    connection.execute(
        "CREATE FUNCTION interlock.always(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    connection.execute(
        "CREATE OPERATOR interlock.= (LEFTARG = text, RIGHTARG = text, FUNCTION = interlock.always)"
    )
    connection.commit()
    entry = {**entry_for(client, "on", TOGGLE), "action": "fly", "to_state": "heaven"}
    for statement, parameters in (
        ("UPDATE interlock.instances SET current_state = 'released'", ()),
        (inserting("interlock.history", [*entry]), tuple(entry.values())),
        ("DELETE FROM interlock.history", ()),
    ):
        with pytest.raises(psycopg.Error) as refusal:  # noqa: PT012 (either may be refused)
            client.cursor.execute(f"SET {setting}")
            client.cursor.execute(statement, parameters)
        assert refusal.value.sqlstate in ("23514", "42501"), refusal.value
        connection.rollback()


# A row that nobody has in their way: what may it say?


def entry_for(client: Client, state: str, declaration: dict[str, Any]) -> dict[str, Any]:
    """Write the entry that an instance of a declaration may lawfully get next from a state."""
    digest = declaration_digest(declaration_text(declaration))
    (instance,) = (
        row
        for row in client.rows("instances")
        if (row["current_state"], row["declaration_digest"]) == (state, digest)
    )
    declared = next(
        row
        for row in client.rows("declared_transitions")
        if (row["from_state"], row["digest"]) == (state, digest)
    )
    return lawful_entry(client.columns["history"], instance, declared)


def newborn(row: dict[str, Any]) -> dict[str, Any]:
    """Write an instance again as it was born."""
    digest = row["declaration_digest"]
    initial = next(
        declared
        for declared in (BATCH, TOGGLE, dict(orders.order().declaration))
        if declaration_digest(declaration_text(declared)) == digest
    )
    return {
        **row,
        "current_state": initial["initial_state"],
        "next_sequence_number": 1,
        "head_digest": row["genesis_digest"],
    }


@pytest.mark.parametrize(("state", "declaration"), LAWFUL, ids=["unguarded", "guarded", "cycle"])
@pytest.mark.parametrize("collision", COLLISIONS)
def test_an_entry_is_lawful_or_refused(
    client: Client, collision: str, state: str, declaration: dict[str, Any]
) -> None:
    """The next lawful entry, then with every column changed, then with every two."""
    entry = entry_for(client, state, declaration)
    rows = [*client.rows("history"), entry]
    insert = inserting("history", list(entry), collision)
    client.attempt(insert, *entry.values())
    assert client.refused == 0, "the lawful entry itself"
    for odd in odd_entries(entry, rows):
        client.attempt(insert, *odd.values())
    client.judge()


@pytest.mark.parametrize("collision", [*COLLISIONS, "ON CONFLICT DO NOTHING RETURNING *"])
def test_entries_of_many_rows_are_lawful_one_by_one_or_refused(
    client: Client, collision: str
) -> None:
    one = entry_for(client, "on", TOGGLE)
    for run in runs_from(one):
        values = [value for row in run for value in row.values()]
        client.attempt(inserting("history", list(one), collision, len(run)), *values)
    client.attempt(
        inserting("history", list(one))
        + " ON CONFLICT (tenant, root, instance_id, sequence_number) DO UPDATE SET to_state = 'on'",
        *one.values(),
    )
    client.judge()


@pytest.mark.parametrize("collision", COLLISIONS)
def test_a_birth_is_lawful_or_refused(client: Client, collision: str) -> None:
    rows = client.rows("instances")
    insert = inserting("instances", list(rows[0]), collision)
    for row in rows:
        another = row["idempotency_key"] and "another"
        born = {**newborn(row), "id": "new", "root": "new", "idempotency_key": another}
        refused = client.refused
        client.attempt(insert, *born.values())
        assert client.refused == refused, "the lawful birth itself"
        for column in row:
            for value in strays(rows, column):
                client.attempt(insert, *{**born, column: value}.values())
        for state in [*BATCH["states"], *TOGGLE["states"], "nowhere"]:
            for number in (0, 1, 2):
                odd = {**born, "current_state": state, "next_sequence_number": number}
                client.attempt(insert, *odd.values())
    client.judge()


@pytest.mark.parametrize("collision", COLLISIONS)
def test_a_declared_transition_is_never_added(client: Client, collision: str) -> None:
    rows = client.rows("declared_transitions")
    insert = inserting("declared_transitions", list(rows[0]), collision)
    for row in rows:
        for ordinal in (-1, 0, 1, 2, 3, 4, 99, None):
            for action in (row["action"], "new"):
                for digest in (row["digest"], "unknown"):
                    new = {**row, "ordinal": ordinal, "action": action, "digest": digest}
                    client.attempt(insert, *new.values())
    assert client.refused == client.tried
    client.judge()


@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_lives_by_a_forged_declaration(client: Client, name: str) -> None:
    """A declaration that is not well formed, rows that it lacks, births by it, their entries."""
    for collision in COLLISIONS:
        for told in ("as its text says", "otherwise"):
            client.piece(partial(live_by, FORGERIES[name], collision, told), name)
    client.judge()


def live_by(forgery: Forgery, collision: str, told: str, execute: Execute) -> None:
    text = forgery.text
    digest = declaration_digest(text)
    said = (
        "$2::json ->> 'initial_state', json_array_length($2::json -> 'transitions')"
        if told == "as its text says"
        else "'a', 1"
    )
    execute(
        "INSERT INTO declarations (tenant, digest, initial_state, transition_count, text)"
        f" VALUES ('', $1, {said}, $2::text) {collision}".replace("$2::json", "$2::text::json"),
        *(digest, text),
    )
    for ordinal in range(2):
        execute(
            "INSERT INTO declared_transitions (tenant, digest, from_state, action, to_state,"
            f" ordinal) VALUES ('', $1, 'a', 'go', 'b', $2) {collision}",
            *(digest, ordinal),
        )
    for state in ("a", "b", "z", " ", "", "1", "\u2003"):
        id = f"born-in-{state}"
        execute(
            "INSERT INTO instances (tenant, root, id, declaration_digest, current_state,"
            " next_sequence_number, instantiated_at, head_digest, genesis_digest)"
            f" VALUES ('', $1, $2, $3, $4, 1, 0, $5, $5) {collision}",
            *(id, id, digest, state, b"g" * 32),
        )
        for _ in range(3):  # whatever the schema takes for declared from where it stands
            execute(
                "INSERT INTO history (tenant, root, instance_id, sequence_number, transition_id,"
                " from_state, action, to_state, guard_satisfied, fired_at, entry_digest)"
                " SELECT '', i.root, i.id, i.next_sequence_number, 't', d.from_state, d.action,"
                " d.to_state, CASE WHEN d.guard IS NOT NULL THEN 1 END, 0, $2"
                " FROM instances AS i JOIN declared_transitions AS d"
                " ON d.digest = i.declaration_digest AND d.from_state = i.current_state"
                f" WHERE i.id = $1 LIMIT 1 {collision}",
                *(id, b"e" * 32),
            )


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_declaration_is_refused_itself(client: Client, name: str) -> None:
    text = FORGERIES[name].text
    insert = "INSERT INTO declarations VALUES ('', $1, 'a', 1, $2)"
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.UniqueViolation)):
        client.cursor.execute(insert, (declaration_digest(text), text))


@pytest.mark.parametrize("name", MACHINES)
def test_a_declaration_that_is_well_formed_is_not_refused(client: Client, name: str) -> None:
    text = declaration_text(MACHINES[name])
    digest = declaration_digest(text)
    insert = (
        "INSERT INTO declarations VALUES ('', $1, $2, $3, $4) ON CONFLICT DO NOTHING",
        (digest, MACHINES[name]["initial_state"], len(MACHINES[name]["transitions"]), text),
    )
    client.cursor.execute(*insert)
    client.cursor.execute(*insert)  # which finds it
    rows = client.cursor.execute(
        "SELECT from_state, action, to_state, guard FROM declared_transitions"
        " WHERE digest = $1 ORDER BY ordinal",
        (digest,),
    ).fetchall()
    assert rows == [
        (row["from_state"], row["action"], row["to_state"], row.get("guard"))
        for row in MACHINES[name]["transitions"]
    ]


@pytest.mark.parametrize("key", ["guard", "action", "from_state", "to_state"])
def test_the_database_reads_the_keys_of_a_declaration_as_everybody_does(
    client: Client, key: str
) -> None:
    """A key may be spelt with an escape: what Python takes for a guard is one for the schema."""
    declaration = declare(["a", "b"], [arrow("a", "go", "b", "g")])
    spelt = f"\\u{ord(key[0]):04x}{key[1:]}"
    text = declaration_text(declaration).replace(f'"{key}"', f'"{spelt}"')
    client.cursor.execute(
        "INSERT INTO declarations VALUES ('', $1, 'a', 1, $2)", (declaration_digest(text), text)
    )
    rows = client.cursor.execute(
        "SELECT from_state, action, to_state, guard FROM declared_transitions WHERE digest = $1",
        (declaration_digest(text),),
    ).fetchall()
    assert rows == [("a", "go", "b", "g")]


def test_no_declaration_can_be_slipped_under_the_digest_of_another(client: Client) -> None:
    mine = MACHINES["purchase-order"]
    digest = declaration_digest(declaration_text(mine))
    shortcut = {**mine, "transitions": [arrow("draft", "fulfil", "fulfilled")]}
    with pytest.raises(psycopg.errors.CheckViolation, match="declarations_digest"):
        client.cursor.execute(
            "INSERT INTO declarations VALUES ('', $1, 'draft', 1, $2)",
            (digest, declaration_text(shortcut)),
        )


def test_destroying_a_payload_is_the_one_lawful_destruction(client: Client) -> None:
    connection = client.connection
    connection.execute("UPDATE payloads SET salt = NULL, content = NULL")
    after = content(connection)
    assert unlawful(client.before, after) == []
    assert content_breaches(after, client.columns) == []
    assert all(row[3:] == (None, None) for row in after["payloads"])
    with pytest.raises(psycopg.errors.CheckViolation, match="only be destroyed"):
        connection.execute("UPDATE payloads SET salt = '\\x00', content = '\\x00'")


@pytest.mark.parametrize("moment", [-(2**62), 2**62, 253402300800000000, -62135596800000001])
def test_a_moment_that_no_calendar_has_is_refused(client: Client, moment: int) -> None:
    (birth, *_) = client.rows("instances")
    born = {**newborn(birth), "id": "new", "root": "new"}
    born.update(idempotency_key=None, request_digest=None)
    for table, row, column, said in (
        ("instances", born, "instantiated_at", "the years 1 to 9999"),
        ("history", entry_for(client, "on", TOGGLE), "fired_at", "dated after the birth"),
    ):
        with pytest.raises(psycopg.errors.CheckViolation, match=said):
            client.cursor.execute(inserting(table, [*row]), tuple({**row, column: moment}.values()))
        client.connection.rollback()


def test_the_guards_are_silent_about_nothing(client: Client) -> None:
    """Each refusal says which rule it is, and with one code."""
    expected = {
        "DELETE FROM history": "history is append-only",
        "TRUNCATE history": "history is append-only",
        "UPDATE history SET actor_ref = 'x'": "history is append-only",
        "DELETE FROM instances": "an instance is never removed",
        "UPDATE instances SET current_state = 'released'": "only an entry of history moves",
        "UPDATE instances SET actor_ref = 'x'": "how an instance began never changes",
        "DELETE FROM declarations": "a declaration is never removed",
        "UPDATE declarations SET text = '{}'": "a declaration never changes",
        "DELETE FROM declared_transitions": "a declaration never changes",
        "DELETE FROM payloads": "the row of a payload stays",
        "DELETE FROM start_keys": "an idempotency key keeps its first answer",
        "INSERT INTO start_keys VALUES ('', 'new', 'nobody')": "names the instance that it began",
        "INSERT INTO payloads VALUES ('', 'r', 'r', '\\x00', '\\x7b')": "a payload is JSON",
        "INSERT INTO payloads VALUES ('', 'r', 'r', NULL, NULL)": "a payload is written once",
        f"DELETE FROM {LEDGER}": "a migration that was applied stays",
        f"UPDATE {LEDGER} SET number = 7": "a migration that was applied stays",
        f"INSERT INTO {LEDGER} VALUES (7, 'x', now())": "applied when a store is opened",
    }
    for statement, message in expected.items():
        with pytest.raises(psycopg.errors.CheckViolation, match=f"interlock: .*{message}"):
            client.connection.execute(statement)
        client.connection.rollback()


#: Of what an engine writes, as an ordinary client might.
OWNED = "SELECT tenant, root, id FROM instances WHERE definition_digest IS NOT NULL LIMIT 1"
FREE = "SELECT tenant, root, id FROM instances WHERE definition_digest IS NULL LIMIT 1"
DIGEST = f"'\\x{'00' * 32}'::bytea"
CHANGES = "INSERT INTO data_changes SELECT i.*,"
TIMERS = "INSERT INTO timers SELECT i.*, 's', 'n',"
DEFINITIONS = "INSERT INTO definitions VALUES ('',"
TEXT_DIGEST = "sha256('{}')"
ENGINES_REFUSALS = {
    "DELETE FROM definitions": "a definition is never removed",
    "TRUNCATE definitions": "a definition is never removed",
    "UPDATE definitions SET text = '{}'": "a definition never changes",
    f"{DEFINITIONS} '{'a' * 64}', 'n', '1', '[]', {DIGEST})": "a definition is a JSON object",
    f"{DEFINITIONS} '{'a' * 64}', 'n', '1', '{{', {DIGEST})": "a definition is a JSON object",
    f"{DEFINITIONS} '{'a' * 64}', ' ', '1', '{{}}', {DIGEST})": "has a name and a version",
    f"{DEFINITIONS} 'a', 'n', '1', '{{}}', {DIGEST})": "a digest has 32 bytes",
    f"{DEFINITIONS} '{'a' * 64}', 'n', '1', '{{}}', {DIGEST})": "definitions_text_digest",
    f"{DEFINITIONS} '{'a' * 64}', 'order', '1', '{{}}', {TEXT_DIGEST})": "definitions_by_version",
    "DELETE FROM data_changes": "changes of data are append-only",
    "TRUNCATE data_changes": "changes of data are append-only",
    "UPDATE data_changes SET kind = 'whole'": "changes of data are append-only",
    f"{CHANGES} 0, 1, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({FREE}) AS i": "of an engine",
    f"{CHANGES} 7, 0, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "the last entry",
    f"{CHANGES} 0, 7, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "numbered from 0",
    f"{CHANGES} 0, 1, 'odd', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "the whole",
    f"{CHANGES} 0, 1, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "has a payload",
    f"{CHANGES} 0, 1, 'patch', id || '/0', '', {DIGEST} FROM ({OWNED}) AS i": "32 bytes",
    f"{TIMERS} 0, 1, 1, 0, NULL FROM ({FREE}) AS i": "of an instance of an engine",
    f"{TIMERS} 9, 1, 1, 0, NULL FROM ({OWNED}) AS i": "with an entry of",
    f"{TIMERS} 0, {2**62}, 1, 0, NULL FROM ({OWNED}) AS i": "timers_due_at",
    f"{TIMERS} 0, 1, 1, 2, NULL FROM ({OWNED}) AS i": "timers_failure",
    "TRUNCATE timers": "taken away one by one",
    "UPDATE timers SET due_at = due_at + 1": "a timer keeps its moment",
    f"UPDATE timers SET next_try_at = {2**62}": "timers_next_try_at",
    "UPDATE timers SET failures = 2": "timers_failure",
    f"UPDATE sweeps SET swept_at = {2**62}": "sweeps_swept_at",
    "TRUNCATE sweeps": "the rows of other tenants stay",
    "UPDATE instances SET definition_digest = 'x'": "how an instance began never changes",
    "UPDATE instances SET head_digest = genesis_digest": "only an entry of history moves",
}


@pytest.mark.parametrize("statement", ENGINES_REFUSALS)
def test_what_an_engine_writes_is_guarded_by_rules_that_say_which(
    client: Client, statement: str
) -> None:
    with pytest.raises(psycopg.IntegrityError, match=ENGINES_REFUSALS[statement]):
        client.connection.execute(statement)


def test_what_an_engine_still_has_to_do_comes_and_goes(client: Client, connect: "Connect") -> None:
    """The control: the program may put off a timer, take it away, set it again, note a sweep."""
    program = connect(APP)
    program.execute("SET search_path = interlock")
    program.execute("UPDATE timers SET next_try_at = 5, failures = 1, failure = 'x'")
    program.execute("DELETE FROM timers")
    program.execute(f"{TIMERS} 0, 1, 1, 0, NULL FROM ({OWNED}) AS i")
    program.execute("UPDATE sweeps SET swept_at = swept_at + 1")
    after = content(client.connection)
    assert unlawful(client.before, after) == content_breaches(after, client.columns) == []


WRONG_ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "of nobody": ({"instance_id": "nobody"}, "an entry belongs to an instance"),
    "ahead": ({"sequence_number": 9}, "an entry takes the next sequence number"),
    "from elsewhere": ({"from_state": "off"}, "an entry starts from the current state"),
    "undeclared": ({"action": "fly"}, "an entry is a declared transition"),
    "to elsewhere": ({"to_state": "on"}, "an entry is a declared transition"),
    "before the birth": ({"fired_at": 0}, "an entry is dated after the birth"),
    "guarded": ({"guard_satisfied": 1}, "a guard is asserted where one is declared"),
}


@pytest.mark.parametrize("name", WRONG_ENTRIES)
def test_the_refusal_of_an_entry_says_which_part_of_it_is_wrong(client: Client, name: str) -> None:
    wrong, said = WRONG_ENTRIES[name]
    entry = {**entry_for(client, "on", TOGGLE), **wrong}
    with pytest.raises(psycopg.errors.CheckViolation, match=said):
        client.cursor.execute(inserting("history", [*entry]), tuple(entry.values()))


def test_an_update_that_changes_nothing_is_let_by(client: Client) -> None:
    cursor = client.connection.execute("UPDATE instances SET id = id")
    assert cursor.rowcount == len(client.before["instances"])
    assert content(client.connection) == client.before


# Other roles.


@pytest.fixture
def connect(uri: str) -> Iterator[Callable[[str], psycopg.Connection[Any]]]:
    opened = []

    def connect(role: str) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(at(uri, user=role), autocommit=True))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


Connect: TypeAlias = Callable[[str], psycopg.Connection[Any]]


def fire(connection: psycopg.Connection[Any], entry: dict[str, Any]) -> None:
    insert = inserting("interlock.history", [*entry])
    RawCursor(connection).execute(insert, tuple(entry.values()))


def test_the_program_appends_by_its_own_role(client: Client, connect: Connect) -> None:
    program = connect(APP)
    entry = entry_for(client, "on", TOGGLE)
    (birth, *_) = client.rows("instances")
    born = {**newborn(birth), "id": "new", "root": "new", "idempotency_key": "new"}
    text = declaration_text(MACHINES["purchase-order"])
    with program.transaction():
        program.execute(
            "SELECT * FROM interlock.instances WHERE id = %s FOR NO KEY UPDATE",
            [entry["instance_id"]],
        )
        fire(program, entry)
    insert = inserting("interlock.instances", [*born])
    RawCursor(program).execute(insert, tuple(born.values()))
    program.execute("INSERT INTO interlock.payloads VALUES ('', 'new', 'new', 'salt', '{}')")
    program.execute(
        "INSERT INTO interlock.declarations VALUES ('', %s, 'draft', 6, %s)",
        [declaration_digest(text), text],
    )
    after = content(client.connection)
    assert unlawful(client.before, after) == content_breaches(after, client.columns) == []
    for table in GUARDED:
        if table not in ("definitions", "data_changes", *WORKING):  # which an engine writes
            assert len(after[table]) > len(client.before[table])


def test_the_program_may_do_nothing_but_append(client: Client, connect: Connect) -> None:
    program = connect(APP)
    refused = [
        *(f"DELETE FROM interlock.{table}" for table in TABLES if table != "timers"),
        *(f"TRUNCATE interlock.{table}" for table in TABLES),
        *(
            f"UPDATE interlock.{table} SET {column} = {column}"
            for table in TABLES
            for column in client.columns[table]
            if (table, column) != ("instances", "id") and table not in WORKING
        ),
        "INSERT INTO interlock.declared_transitions VALUES ('', 'd', 'a', 'b', 'c', NULL, 0)",
        "INSERT INTO interlock.start_keys VALUES ('', 'k', 'i')",
        f"INSERT INTO interlock.{LEDGER} VALUES (7, 'x', now())",
        "UPDATE interlock.payloads SET salt = NULL, content = NULL",
        "CREATE TABLE interlock.another (one int)",
        "DROP TABLE interlock.history",
        "ALTER TABLE interlock.history DISABLE TRIGGER ALL",
        "ALTER TABLE interlock.history DISABLE ROW LEVEL SECURITY",
        "CREATE TRIGGER mine BEFORE INSERT ON interlock.history FOR EACH ROW"
        " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "SET session_replication_role = replica",
    ]
    for statement in refused:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            program.execute(statement)
    with pytest.raises(psycopg.errors.CheckViolation, match="how an instance began"):
        program.execute("UPDATE interlock.instances SET id = 'x' || id")
    assert content(client.connection) == client.before


def test_no_trigger_of_ours_serves_a_table_of_somebody_elses(
    client: Client, connect: Connect
) -> None:
    """On a copy of `history`, the trigger would move instances without an entry."""
    for role in (APP, STRANGER):
        other = connect(role)
        other.execute("CREATE TEMPORARY TABLE fake (id text, idempotency_key text, tenant text)")
        functions = client.connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace"
            " AND prorettype = 'trigger'::regtype"
        ).fetchall()
        assert len(functions) > 5
        for (name,) in functions:
            trigger = sql.SQL(
                "CREATE TRIGGER mine AFTER INSERT ON fake FOR EACH ROW EXECUTE FUNCTION {}()"
            ).format(sql.Identifier("interlock", name))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(trigger)


def test_the_eraser_may_destroy_payloads_and_no_more(client: Client, connect: Connect) -> None:
    eraser = connect(ERASER)
    fire(eraser, entry_for(client, "on", TOGGLE))
    eraser.execute("UPDATE interlock.payloads SET salt = NULL, content = NULL")
    assert all(row[3:] == (None, None) for row in content(client.connection)["payloads"])
    for statement in (
        "UPDATE interlock.payloads SET id = 'x'",
        "DELETE FROM interlock.payloads",
        "UPDATE interlock.history SET reason_id = NULL",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            eraser.execute(statement)
    with pytest.raises(psycopg.errors.CheckViolation, match="only be destroyed"):
        eraser.execute("UPDATE interlock.payloads SET content = '{}'")


def test_the_reader_reads(client: Client, connect: Connect) -> None:
    reader = connect(READER)
    assert content(reader) == client.before
    fault = "SELECT interlock.payload_fault(salt, content, 'x') FROM interlock.payloads"
    assert reader.execute(fault).fetchall()
    for table in TABLES:
        for statement in (
            f"INSERT INTO interlock.{table} SELECT * FROM interlock.{table}",
            f"DELETE FROM interlock.{table}",
            f"SELECT * FROM interlock.{table} FOR UPDATE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement)


def test_a_stranger_sees_nothing(connect: Connect) -> None:
    stranger = connect(STRANGER)
    for statement in (
        *(f"SELECT * FROM interlock.{table}" for table in TABLES),
        "SELECT interlock.is_json('{}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(statement)


# Tenants.


@pytest.mark.parametrize("role", [None, APP])
def test_a_session_sees_and_writes_the_rows_of_its_tenant(
    uri: str, client: Client, role: str | None
) -> None:
    with psycopg.connect(at(uri, user=role) if role else uri, autocommit=True) as connection:
        for tenant in ("other", "", "third"):
            connection.execute("SELECT set_config('interlock.tenant', %s, false)", [tenant])
            seen = content(connection)
            seen.pop(LEDGER)
            if tenant:
                assert not any(seen.values())
            else:
                assert seen == {table: client.before[table] for table in GUARDED}
        entry = entry_for(client, "on", TOGGLE)
        with pytest.raises(psycopg.errors.CheckViolation, match="belongs to an instance"):
            fire(connection, entry)
        with pytest.raises(psycopg.errors.CheckViolation, match="belongs to an instance"):
            fire(connection, {**entry, "tenant": "third"})
        connection.execute("RESET interlock.tenant")
        fire(connection, entry)


def test_tenants_do_not_meet(client: Client) -> None:
    """The same ids, keys and declarations under another tenant, moved on their own."""
    connection = client.connection
    connection.execute("SET interlock.tenant = 'other'")
    for table in ("declarations", "definitions", "instances"):
        for row in client.rows(table):
            mine = {**(newborn(row) if table == "instances" else row), "tenant": "other"}
            client.insert(table, tuple(mine.values()))
    entry = entry_for(client, "sampled", BATCH)
    client.insert("history", tuple({**entry, "tenant": "other"}.values()))
    moved = [row for row in content(connection)["instances"] if row[5] == 2]
    assert [(row[0], row[2]) for row in moved] == [("other", entry["instance_id"])]
    connection.execute("SET interlock.tenant = ''")
    assert content(connection) == client.before


# The function that judges payloads within a statement.


@pytest.mark.parametrize(
    ("salt", "content", "digest", "fault"),
    [
        (b"salt", b'{"a": 1}', None, None),
        (b"", b"[]", None, None),
        (b"s" * 12, b'"\xc3\xa9"', None, None),
        (b"salt", b"{}", b"x" * 32, "was altered: its digest differs"),
        (b"salt", b"{}", b"", "was altered: its digest differs"),
        (None, b"{}", b"x" * 32, "was altered: a part of it is gone"),
        (b"salt", None, b"x" * 32, "was altered: a part of it is gone"),
        (b"salt", b"{", None, "is no JSON"),
        (b"salt", b"\xff", None, "is no JSON"),
        (b"salt", b"\0", None, "is no JSON"),
        (b"salt", b"[" * 1_000_000, None, "is no JSON"),
    ],
)
def test_a_payload_is_judged_as_on_sqlite(
    client: Client, salt: bytes, content: bytes, digest: bytes | None, fault: str | None
) -> None:
    digest = payload_digest(salt, content) if digest is None else digest
    rows = client.cursor.execute("SELECT payload_fault($1, $2, $3)", (salt, content, digest))
    assert rows.fetchall() == [(fault,)]


@pytest.mark.parametrize("place", ["(0,1)", "(999,9)", "nowhere"])
def test_an_entry_finds_its_instance_alone_wherever_a_session_says_it_lies(
    client: Client, place: str
) -> None:
    """The note of where a row went last is anybody's to write: it can lead to nothing else."""
    entry = entry_for(client, "on", TOGGLE)
    insert = inserting("interlock.history", [*entry])
    for change in ({}, {"to_state": "heaven"}):
        note = f"{place} {entry['instance_id']}"
        client.connection.execute("SELECT set_config('interlock.moved', %s, true)", [note])
        if place == "nowhere" or change:
            with pytest.raises(psycopg.Error) as refusal:
                client.cursor.execute(insert, tuple((entry | change).values()))
            assert refusal.value.sqlstate == ("22P02" if place == "nowhere" else "23514")
        else:
            client.cursor.execute(insert, tuple(entry.values()))
            moved = client.connection.execute(
                "SELECT id FROM interlock.instances WHERE head_digest = %s", [entry["entry_digest"]]
            )
            assert moved.fetchall() == [(entry["instance_id"],)]
        client.connection.rollback()


def test_an_entry_left_out_for_its_idempotency_key_moves_nothing(client: Client) -> None:
    """The instance is moved before its entry is there, which ON CONFLICT might then leave out."""
    keyed = {"idempotency_key": "again", "request_digest": bytes(32)}
    entry = {**entry_for(client, "on", TOGGLE), **keyed}
    fire(client.connection, entry)
    client.connection.commit()
    (back,) = (row for row in TOGGLE["transitions"] if row["from_state"] == entry["to_state"])
    following = {
        **entry,
        "sequence_number": entry["sequence_number"] + 1,
        "from_state": back["from_state"],
        "action": back["action"],
        "to_state": back["to_state"],
        "transition_id": "t-newer",
    }
    before = content(client.connection)
    insert = inserting("interlock.history", [*following], "ON CONFLICT DO NOTHING")
    with pytest.raises(psycopg.errors.UniqueViolation, match="never used again"):
        client.cursor.execute(insert, tuple(following.values()))
    client.connection.rollback()
    assert content(client.connection) == before
