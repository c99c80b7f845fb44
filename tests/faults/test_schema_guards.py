"""The schema alone holds Invariants 1 to 7 against any client that writes data.

A store is made, then opened with plain `sqlite3`, and every statement that could break a promise is
tried: written out of the schema itself, so that a new table or column is attacked as well. After
each attempt every row is as it was, or the change is a lawful one by an oracle that knows only the
specification (`tests.support.records`). DDL is not tried: who drops the triggers is for `verify`.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import interlock
from interlock.core.declaration import check_declaration, declaration_digest, declaration_text
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
from tests.support.records import (
    LEDGER,
    WORKING,
    breaches,
    columns,
    content,
    content_of,
    dicts,
    tables,
    unlawful,
)

Execute: TypeAlias = Callable[..., None]

RESOLUTIONS = ["", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK"]  # OR ABORT is the rule
PRAGMAS = {
    "nothing checked": "foreign_keys = OFF, ignore_check_constraints = ON",
    "recursive triggers": "foreign_keys = OFF, recursive_triggers = ON",
    "foreign keys": "foreign_keys = ON, recursive_triggers = OFF, defer_foreign_keys = ON",
    "everything checked": "foreign_keys = ON, recursive_triggers = ON",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with rows in every table: instances new, under way and ended, two declarations."""
    path = tmp_path_factory.mktemp("guards") / "store.db"
    with interlock.open(f"sqlite:///{path}") as store:
        fill(store)
    return path


@pytest.fixture(params=PRAGMAS)
def client(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> Iterator["Client"]:
    """An ordinary client of a copy of the store."""
    path = tmp_path / "copy.db"
    shutil.copy(filled, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in PRAGMAS[request.param].split(", "):
            connection.execute(f"PRAGMA {pragma}")
        yield Client(connection)


class Client:
    """Tries statements, each on the same content, and judges what they did."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.before = content(connection)
        self.tried = 0
        self.refused = 0
        self.faults: list[str] = []

    def attempt(self, sql: str, *parameters: object) -> None:
        """Try one statement; note what it broke; take it back."""
        self.piece(lambda execute: execute(sql, *parameters), sql, parameters)

    def piece(self, work: "Callable[[Execute], None]", *named: object) -> None:
        """Try some statements as one piece; one that is refused does not stop the rest."""
        connection = self.connection
        connection.execute("BEGIN")
        self.tried += 1
        changes = connection.total_changes
        work(self._execute)
        if not connection.in_transaction:  # OR ROLLBACK
            assert content(connection) == self.before, named
            return
        if connection.total_changes != changes:
            after = content(connection)
            if after != self.before:
                faults = unlawful(self.before, after) + breaches(connection)
                self.faults += [f"{fault} <- {named}" for fault in faults]
        connection.execute("ROLLBACK")

    def _execute(self, sql: str, *parameters: object) -> None:
        try:
            self.connection.execute(sql, parameters)
        except sqlite3.IntegrityError:
            self.refused += 1
        except sqlite3.OperationalError as error:
            if "syntax" in str(error):
                raise
            self.refused += 1

    def judge(self) -> None:
        assert self.tried, "the matrix is empty"
        assert content(self.connection) == self.before
        assert not self.faults, f"{len(self.faults)} faults\n" + "\n".join(self.faults[:20])


def rows_of(client: Client, table: str) -> list[dict[str, Any]]:
    names = ", ".join(f'"{name}"' for name in columns(client.connection, table))
    return dicts(client.connection, f'SELECT {names} FROM "{table}"')


def guarded_tables(client: Client) -> list[str]:
    return [table for table in tables(client.connection) if table != LEDGER]


def key_of(client: Client, table: str) -> list[str]:
    query = "SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk"
    return [name for (name,) in client.connection.execute(query, (table,))]


def where(key: list[str]) -> str:
    return " AND ".join(f'"{name}" IS ?' for name in key)


def inserting(resolution: str, table: str, names: list[str], rows: int = 1) -> str:
    places = ", ".join(f"({', '.join('?' * len(names))})" for _ in range(rows))
    listed = ", ".join(f'"{name}"' for name in names)
    return f'INSERT {resolution} INTO "{table}" ({listed}) VALUES {places}'


def test_every_table_has_rows_to_attack_and_triggers_of_the_three_kinds(client: Client) -> None:
    events: dict[str, set[str]] = {}
    for table, sql in client.connection.execute(
        "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'"
    ):
        words = sql.split()
        if words[3] == "BEFORE":
            events.setdefault(table, set()).add(words[4])
    for table in guarded_tables(client):
        assert client.before[table], f"fill `{table}` in the fixture `filled`"
        deletion = set() if table in WORKING else {"DELETE"}
        assert events.get(table) == {"INSERT", "UPDATE"} | deletion, table


def test_no_row_can_be_deleted(client: Client) -> None:
    for table in guarded_tables(client):
        if table in WORKING:
            continue
        key = key_of(client, table)
        client.attempt(f'DELETE FROM "{table}"')
        client.attempt(f'DELETE FROM "{table}" WHERE 1')
        client.attempt(f'DELETE FROM "{table}" RETURNING *')
        client.attempt(f'WITH all_of AS (SELECT 1) DELETE FROM "{table}"')
        for row in rows_of(client, table):
            client.attempt(
                f'DELETE FROM "{table}" WHERE {where(key)}', *(row[name] for name in key)
            )
    assert client.refused == client.tried
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_no_column_of_any_row_can_be_updated(client: Client, resolution: str) -> None:
    for table in guarded_tables(client):
        key, rows = key_of(client, table), rows_of(client, table)
        for row in rows:
            place = tuple(row[name] for name in key)
            for column in row:
                update = f'UPDATE {resolution} "{table}" SET "{column}" = ? WHERE {where(key)}'
                for value in strays(rows, column):
                    client.attempt(update, value, *place)
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_whole_rows_and_whole_tables_cannot_be_updated(client: Client, resolution: str) -> None:
    for table in guarded_tables(client):
        key, rows = key_of(client, table), rows_of(client, table)
        names = list(rows[0])
        assigned = ", ".join(f'"{name}" = ?' for name in names)
        for row in rows:
            for other in rows:
                client.attempt(
                    f'UPDATE {resolution} "{table}" SET {assigned} WHERE {where(key)}',
                    *other.values(),
                    *(row[name] for name in key),
                )
        for column in names:
            client.attempt(f'UPDATE {resolution} "{table}" SET "{column}" = "{column}" || \'x\'')
            client.attempt(f'UPDATE {resolution} "{table}" SET "{column}" = "{column}" + 1')
            client.attempt(
                f'UPDATE {resolution} "{table}" SET "{column}" = other."{column}"'
                f' FROM (SELECT * FROM "{table}" ORDER BY 1 DESC, 2 DESC, 3 DESC) AS other'
            )
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_no_row_can_be_inserted_over_another(client: Client, resolution: str) -> None:
    """The same row again, with any one column changed: REPLACE would delete what is in its way."""
    for table in guarded_tables(client):
        rows = rows_of(client, table)
        names = list(rows[0])
        insert = inserting(resolution, table, names)
        for row in rows:
            client.attempt(insert, *row.values())
            for column in names:
                for value in strays(rows, column):
                    client.attempt(insert, *{**row, column: value}.values())
    client.judge()


def test_no_row_can_be_upserted(client: Client) -> None:
    for table in guarded_tables(client):
        rows = rows_of(client, table)
        names = list(rows[0])
        insert = inserting("", table, names)
        for row in rows:
            client.attempt(f"{insert} ON CONFLICT DO NOTHING", *row.values())
            for column in names:
                for value in strays(rows, column):
                    client.attempt(
                        f'{insert} ON CONFLICT DO UPDATE SET "{column}" = ?', *row.values(), value
                    )
    client.judge()


def test_rows_of_other_shapes(client: Client) -> None:
    """REPLACE by its own name, rows through CTEs and SELECTs, many at once, default values."""
    for table in guarded_tables(client):
        rows = rows_of(client, table)
        names = list(rows[0])
        listed = ", ".join(f'"{name}"' for name in names)
        values = [value for row in rows for value in row.values()]
        many = inserting("", table, names, len(rows)).removeprefix("INSERT ")
        client.attempt(f"INSERT {many}", *values)
        client.attempt(f"REPLACE {many}", *values)
        client.attempt(f'INSERT OR REPLACE INTO "{table}" DEFAULT VALUES')
        for verb in ("INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE"):
            client.attempt(f'{verb} INTO "{table}" ({listed}) SELECT {listed} FROM "{table}"')
            client.attempt(
                f'WITH copied AS (SELECT {listed} FROM "{table}")'
                f' {verb} INTO "{table}" ({listed}) SELECT {listed} FROM copied'
            )
            for column in names:
                shifted = ", ".join(
                    f'"{name}" || 1' if name == column else f'"{name}"' for name in names
                )
                client.attempt(f'{verb} INTO "{table}" ({listed}) SELECT {shifted} FROM "{table}"')
    client.judge()


def test_rowids_lead_nowhere(client: Client) -> None:
    """A rowid would be one more key to collide on."""
    for table in guarded_tables(client):
        for alias in ("rowid", "oid", "_rowid_"):
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                client.connection.execute(f'SELECT "{table}".{alias} FROM "{table}"')
            client.attempt(f'UPDATE OR REPLACE "{table}" SET {alias} = 1')
            client.attempt(f'INSERT OR REPLACE INTO "{table}" ({alias}) VALUES (1)')
            client.attempt(f'DELETE FROM "{table}" WHERE {alias} = 1')
    assert client.refused == client.tried
    client.judge()


def test_views_cannot_be_written(client: Client) -> None:
    views = client.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")
    for (view,) in views.fetchall():
        for column in columns(client.connection, view):
            client.attempt(f'UPDATE "{view}" SET "{column}" = NULL')
            client.attempt(f'INSERT INTO "{view}" ("{column}") VALUES (NULL)')
            client.attempt(f'INSERT OR REPLACE INTO "{view}" ("{column}") VALUES (NULL)')
        client.attempt(f'DELETE FROM "{view}"')
    assert client.refused == client.tried
    client.judge()


def test_generated_columns_cannot_be_written(client: Client) -> None:
    tried = 0
    for table in guarded_tables(client):
        query = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden > 0"
        for (column,) in client.connection.execute(query, (table,)).fetchall():
            client.attempt(f'UPDATE "{table}" SET "{column}" = 1')
            client.attempt(f'INSERT OR IGNORE INTO "{table}" ("{column}") VALUES (1)')
            tried += 2
    assert client.refused == tried


# A row that nobody has in their way: what may it say?


def entry_for(client: Client, state: str, digest_of: dict[str, Any]) -> dict[str, Any]:
    """Write the entry that an instance of a declaration may lawfully get next from a state."""
    (instance,) = dicts(
        client.connection,
        "SELECT * FROM instances WHERE current_state = ? AND declaration_digest = ?",
        state,
        declaration_digest(declaration_text(digest_of)),
    )
    (declared,) = dicts(
        client.connection,
        "SELECT * FROM declared_transitions WHERE digest = ? AND from_state = ? LIMIT 1",
        instance["declaration_digest"],
        state,
    )
    return lawful_entry(columns(client.connection, "history"), instance, declared)


@pytest.mark.parametrize(("state", "declaration"), LAWFUL, ids=["unguarded", "guarded", "cycle"])
@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_an_entry_is_lawful_or_refused(
    client: Client, resolution: str, state: str, declaration: dict[str, Any]
) -> None:
    """The next lawful entry, then with every column changed, then with every two."""
    entry = entry_for(client, state, declaration)
    rows = [*rows_of(client, "history"), entry]
    insert = inserting(resolution, "history", list(entry))
    client.attempt(insert, *entry.values())
    assert client.refused == 0, "the lawful entry itself"
    for odd in odd_entries(entry, rows):
        client.attempt(insert, *odd.values())
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_entries_of_many_rows_are_lawful_one_by_one_or_refused(
    client: Client, resolution: str
) -> None:
    one = entry_for(client, "on", TOGGLE)
    for run in runs_from(one):
        values = [value for row in run for value in row.values()]
        client.attempt(inserting(resolution, "history", list(one), len(run)), *values)
    client.attempt(
        inserting(resolution, "history", list(one)) + " ON CONFLICT DO UPDATE SET to_state = 'on'",
        *one.values(),
    )
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_a_birth_is_lawful_or_refused(client: Client, resolution: str) -> None:
    rows = rows_of(client, "instances")
    insert = inserting(resolution, "instances", list(rows[0]))
    for row in rows:
        digest = row["declaration_digest"]
        initial = next(
            declared
            for declared in (BATCH, TOGGLE, dict(orders.order().declaration))
            if declaration_digest(declaration_text(declared)) == digest
        )
        newborn = {
            **row,
            "id": "new",
            "root": "new",
            "current_state": initial["initial_state"],
            "next_sequence_number": 1,
            "head_digest": row["genesis_digest"],
            "idempotency_key": row["idempotency_key"] and "another",
        }
        refused = client.refused
        client.attempt(insert, *newborn.values())
        assert client.refused == refused, "the lawful birth itself"
        for column in row:
            for value in strays(rows, column):
                client.attempt(insert, *{**newborn, column: value}.values())
        for state in [*BATCH["states"], *TOGGLE["states"], "nowhere"]:
            for number in (0, 1, 2):
                born = {**newborn, "current_state": state, "next_sequence_number": number}
                client.attempt(insert, *born.values())
    client.judge()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_a_declared_transition_is_never_added(client: Client, resolution: str) -> None:
    rows = rows_of(client, "declared_transitions")
    insert = inserting(resolution, "declared_transitions", list(rows[0]))
    for row in rows:
        for ordinal in (-1, 0, 1, 2, 3, 4, 99, None):
            for action in (row["action"], "new"):
                for digest in (row["digest"], "unknown"):
                    new = {**row, "ordinal": ordinal, "action": action, "digest": digest}
                    client.attempt(insert, *new.values())
    assert (
        client.before["declared_transitions"] == content(client.connection)["declared_transitions"]
    )
    client.judge()


# Declarations made by hand. Their rows may exist; nothing may live by one that is not well formed.


def test_the_forgeries_are_forgeries() -> None:
    for name, (text, _) in FORGERIES.items():
        if "key" in name:  # Python reads the last of two, and knows no difference of spelling
            continue
        try:
            declaration = json.loads(text)
        except ValueError:
            continue
        assert check_declaration(declaration), name


@pytest.mark.parametrize("client", ["nothing checked", "everything checked"], indirect=True)
@pytest.mark.parametrize("told", ["as its text says", "as if it were sound"])
@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_lives_by_a_forged_declaration(client: Client, name: str, told: str) -> None:
    """A declaration that is not well formed, rows that it lacks, births by it, their entries."""
    for resolution in ("", "OR FAIL", "OR IGNORE", "OR REPLACE"):
        by = partial(live_by, forgery=FORGERIES[name], resolution=resolution, told=told)
        client.piece(by)
    client.judge()


def live_by(execute: "Execute", forgery: Forgery, resolution: str, told: str) -> None:
    text, digest = forgery
    insert = f"INSERT {resolution} INTO"
    said = (
        "json_extract(?2, '$.initial_state'), json_array_length(?2, '$.transitions')"
        if told == "as its text says"
        else "'a', 1"
    )
    execute(
        f"{insert} declarations (tenant, digest, initial_state, transition_count, text)"
        f" VALUES ('', ?1, {said}, ?2)",
        *(digest, text),
    )
    for ordinal in range(2):
        execute(
            f"{insert} declared_transitions (tenant, digest, from_state, action, to_state, ordinal)"
            " VALUES ('', ?, 'a', 'go', 'b', ?)",
            *(digest, ordinal),
        )
    for state in ("a", "b", "z", " ", "", "1"):
        id = f"born-in-{state}"
        execute(
            f"{insert} instances (tenant, root, id, declaration_digest, current_state,"
            " next_sequence_number, instantiated_at, head_digest, genesis_digest)"
            " VALUES ('', ?, ?, ?, ?, 1, 0, x'00', x'00')",
            *(id, id, digest, state),
        )
        for _ in range(3):  # whatever the schema takes for declared from where it stands
            execute(
                f"{insert} history (tenant, root, instance_id, sequence_number, transition_id,"
                " from_state, action, to_state, guard_satisfied, fired_at, entry_digest)"
                " SELECT '', i.root, i.id, i.next_sequence_number, 't', d.from_state, d.action,"
                " d.to_state, CASE WHEN d.guard IS NOT NULL THEN 1 END, 0, x'01'"
                " FROM instances AS i JOIN declared_transitions AS d"
                " ON d.digest = i.declaration_digest AND d.from_state = i.current_state"
                " WHERE i.id = ? LIMIT 1",
                id,
            )


@pytest.mark.parametrize("key", ["guard", "action", "from_state", "to_state"])
def test_the_database_reads_the_keys_of_a_declaration_as_everybody_does(
    client: Client, key: str
) -> None:
    """A key may be spelt with an escape: what Python takes for a guard is one for the schema."""
    row = json.dumps(arrow("a", "go", "b", "g")).replace(key, f"\\u{ord(key[0]):04x}{key[1:]}")
    text = json.dumps({**declare(["a", "b"], []), "transitions": ["here"]}).replace('"here"', row)
    assert json.loads(text) == declare(["a", "b"], [arrow("a", "go", "b", "g")])
    told = "as its text says"
    client.piece(partial(live_by, forgery=Forgery(text), resolution="", told=told))
    client.judge()


def test_no_declaration_can_be_slipped_under_the_digest_of_another(filled: Path) -> None:
    """A forged text under the digest of a declaration must not govern those born by it later."""
    mine = MACHINES["purchase-order"]
    digest = declaration_digest(declaration_text(mine))
    shortcut = {**mine, "transitions": [arrow("draft", "fulfil", "fulfilled")]}
    path = filled.parent / "poisoned.db"
    shutil.copy(filled, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute(
                "INSERT INTO declarations VALUES ('', ?, 'draft', 1, ?)",
                (digest, declaration_text(shortcut)),
            )
        except sqlite3.DatabaseError:
            return
    with interlock.open(f"sqlite:///{path}") as store:
        try:
            born = store.instantiate(mine)
        except interlock.StorageFailure:
            return
        assert store.read_declaration(born) == mine
        with pytest.raises(interlock.InvalidTransition):
            store.fire(born, "fulfil")


def test_what_the_schema_let_in_can_be_read(filled: Path) -> None:
    """An entry that a client wrote lawfully, with a time that no datetime can say, or no text."""
    path = filled.parent / "far.db"
    shutil.copy(filled, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        client = Client(connection)
        entry = {**entry_for(client, "on", TOGGLE), "fired_at": 2**62}
        try:
            connection.execute(inserting("", "history", list(entry)), tuple(entry.values()))
        except sqlite3.IntegrityError:
            return
    with interlock.open(f"sqlite:///{path}") as store, suppress(interlock.StorageFailure):
        store.history(entry["instance_id"])


def test_an_ordinary_client_can_fire_lawfully_by_hand(filled: Path) -> None:
    """The control: the guards refuse what is wrong, not everything."""
    path = filled.parent / "lawful.db"
    shutil.copy(filled, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        entry = entry_for(Client(connection), "testing", BATCH)
        connection.execute(inserting("", "history", list(entry)), tuple(entry.values()))
        assert breaches(connection) == []
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.current(entry["instance_id"]) == entry["to_state"]


def test_destroying_a_payload_is_the_one_lawful_destruction(client: Client, filled: Path) -> None:
    connection = client.connection
    connection.execute("UPDATE payloads SET salt = NULL, content = NULL")
    assert unlawful(client.before, content(connection)) == []
    assert breaches(connection) == []
    assert all(row[3:] == (None, None) for row in content(connection)["payloads"])
    again = "UPDATE payloads SET salt = x'00', content = x'00'"
    with pytest.raises(sqlite3.IntegrityError, match="only be destroyed"):
        connection.execute(again)


@pytest.mark.parametrize("moment", [-(2**62), 2**62, 253402300800000000, -62135596800000001])
def test_a_moment_that_no_calendar_has_is_refused(client: Client, moment: int) -> None:
    connection = client.connection
    (birth, *_) = rows_of(client, "instances")
    newborn = {
        **birth,
        "id": "new",
        "root": "new",
        "declaration_digest": declaration_digest(declaration_text(TOGGLE)),
        "current_state": TOGGLE["initial_state"],
        "next_sequence_number": 1,
        "head_digest": birth["genesis_digest"],
        "idempotency_key": None,
        "request_digest": None,
    }
    for table, row, column, said in (
        ("instances", newborn, "instantiated_at", "the years 1 to 9999"),
        ("history", entry_for(client, "on", TOGGLE), "fired_at", "dated after the birth"),
    ):
        insert = inserting("", table, [*row])
        with pytest.raises(sqlite3.IntegrityError, match=said):
            connection.execute(insert, [*{**row, column: moment}.values()])


#: Of what an engine writes, as an ordinary client might.
OWNED = "SELECT tenant, root, id FROM instances WHERE definition_digest IS NOT NULL LIMIT 1"
FREE = "SELECT tenant, root, id FROM instances WHERE definition_digest IS NULL LIMIT 1"
DIGEST = "zeroblob(32)"
CHANGES = "INSERT INTO data_changes SELECT i.*,"
TIMERS = "INSERT INTO timers SELECT i.*, 's', 'n',"
DEFINITIONS = "INSERT INTO definitions VALUES ('',"
ENGINES_REFUSALS = {
    "DELETE FROM definitions": "a definition is never removed",
    "UPDATE definitions SET text = '{}'": "a definition never changes",
    f"{DEFINITIONS} '{'a' * 64}', 'n', '1', '[]', {DIGEST})": "a definition is a JSON object",
    f"{DEFINITIONS} '{'a' * 64}', 'n', '1', '{{', {DIGEST})": "a definition is a JSON object",
    f"{DEFINITIONS} '{'a' * 64}', ' ', '1', '{{}}', {DIGEST})": "has a name and a version",
    f"{DEFINITIONS} 'a', 'n', '1', '{{}}', {DIGEST})": "a digest has 32 bytes",
    f"{DEFINITIONS} '{'a' * 64}', 'order', '1', '{{}}', {DIGEST})": "never means something else",
    "DELETE FROM data_changes": "changes of data are append-only",
    "UPDATE data_changes SET kind = 'whole'": "changes of data are append-only",
    f"{CHANGES} 0, 1, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({FREE}) AS i": "of an engine",
    f"{CHANGES} 7, 0, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "the last entry",
    f"{CHANGES} 0, 7, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "numbered from 0",
    f"{CHANGES} 0, 1, 'odd', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "the whole",
    f"{CHANGES} 0, 1, 'patch', 'p', {DIGEST}, {DIGEST} FROM ({OWNED}) AS i": "has a payload",
    f"{CHANGES} 0, 1, 'patch', id || '/0', x'00', {DIGEST} FROM ({OWNED}) AS i": "32 bytes",
    f"{TIMERS} 0, 1, 1, 0, NULL FROM ({FREE}) AS i": "of an instance of an engine",
    f"{TIMERS} 9, 1, 1, 0, NULL FROM ({OWNED}) AS i": "with an entry of",
    f"{TIMERS} 0, {2**62}, 1, 0, NULL FROM ({OWNED}) AS i": "in the years 1 to 9999",
    f"{TIMERS} 0, 1, 1, 2, NULL FROM ({OWNED}) AS i": "says how often and why",
    "INSERT INTO timers SELECT * FROM timers": "a timer is set once",
    "UPDATE timers SET due_at = due_at + 1": "a timer keeps its moment",
    f"UPDATE timers SET next_try_at = {2**62}": "in the years 1 to 9999",
    "UPDATE timers SET failures = 2": "says how often and why",
    f"UPDATE sweeps SET swept_at = {2**62}": "in the years 1 to 9999",
    "UPDATE instances SET definition_digest = 'x'": "how an instance began never changes",
}


def test_what_an_engine_still_has_to_do_comes_and_goes(client: Client) -> None:
    """The control: a timer may be put off, taken away and set again, and a sweep noted."""
    connection = client.connection
    connection.execute("UPDATE timers SET next_try_at = 5, failures = 1, failure = 'x'")
    connection.execute("DELETE FROM timers")
    connection.execute(f"{TIMERS} 0, 1, 1, 0, NULL FROM ({OWNED}) AS i")
    connection.execute("UPDATE sweeps SET swept_at = swept_at + 1")
    assert unlawful(client.before, content(connection)) == []
    assert breaches(connection) == []


def test_the_guards_are_silent_about_nothing(client: Client) -> None:
    """Each refusal says which rule it is."""
    connection = client.connection
    expected = {
        "DELETE FROM history": "history is append-only",
        "UPDATE history SET actor_ref = 'x'": "history is append-only",
        "DELETE FROM instances": "an instance is never removed",
        "UPDATE instances SET current_state = 'released'": "only an entry of history moves",
        "DELETE FROM declarations": "a declaration is never removed",
        "UPDATE declarations SET text = '{}'": "a declaration never changes",
        "DELETE FROM declared_transitions": "a declaration never changes",
        "DELETE FROM payloads": "the row of a payload stays",
        "DELETE FROM start_keys": "an idempotency key keeps its first answer",
        "INSERT INTO start_keys VALUES ('', 'new', 'nobody')": "names the instance that it began",
        "INSERT INTO payloads VALUES ('', 'r', 'r', x'00', x'7b')": "a payload is JSON",
        **ENGINES_REFUSALS,
    }
    for sql, message in expected.items():
        with pytest.raises(sqlite3.IntegrityError, match=f"interlock: .*{message}"):
            connection.execute(sql)


def test_the_copy_of_a_closed_store_is_whole(filled: Path) -> None:
    """What the matrix runs on: every table is filled, and the oracle finds no fault in it."""
    assert all(rows for rows in content_of(filled).values())
    with closing(sqlite3.connect(filled)) as connection:
        assert breaches(connection) == []
