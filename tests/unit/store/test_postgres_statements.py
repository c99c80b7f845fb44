"""The statements on PostgreSQL: what SQLite's are named, and what only these promise."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import RawCursor
from psycopg.types.numeric import Int8Dumper

from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.record import text_digest
from interlock.store.postgres.database import queries
from interlock.store.sqlite.drive import STATEMENTS as SQLITE
from tests.support.machines import BATCH, TOGGLE
from tests.support.postgres import database, make_store

STATEMENTS = queries("interlock")
TEXT = declaration_text(TOGGLE)
DEFINITION = ("", "d" * 64, "m", "1", "{}", text_digest("{}"))
DIGEST = declaration_digest(TEXT)


class Client:
    """A session that executes statements by name."""

    def __init__(self, uri: str) -> None:
        self.connection = psycopg.connect(uri, autocommit=True)
        self.cursor = RawCursor(self.connection)
        self.cursor.adapters.register_dumper(int, Int8Dumper)

    def run(self, name: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self.cursor.execute(STATEMENTS[name].sql, parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    def many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return self.run(f"{name}/many", *(list(column) for column in zip(*rows, strict=True)))


@pytest.fixture(scope="module")
def whole() -> Iterator[str]:
    """A store in which the instances `i0` to `i9` stand off, at version 1."""
    with database() as uri:
        make_store(uri)
        client = Client(uri)
        client.run("append_declaration", "", DIGEST, TEXT)
        client.many("append_instance", [birth(f"i{number}") for number in range(10)])
        client.connection.close()
        yield uri


@pytest.fixture
def uri(whole: str) -> Iterator[str]:
    with database(template=whole) as uri:
        yield uri


@pytest.fixture
def client(uri: str) -> Iterator[Client]:
    client = Client(uri)
    yield client
    client.connection.close()


@pytest.fixture
def other(uri: str) -> Iterator[Client]:
    client = Client(uri)
    yield client
    client.connection.close()


def birth(id: str, key: str | None = None) -> tuple[Any, ...]:
    named = (None, None, None, None, key, key and b"r" * 32, None)
    return ("", id, id, DIGEST, "off", 1000, *named, b"g" * 32)


def entry(id: str, number: int, key: str | None = None) -> tuple[Any, ...]:
    origin, target = ("off", "on") if number % 2 else ("on", "off")
    said = (None, None, None, None, None, key, key and b"r" * 32)
    move = (f"{id}-{number}", origin, "go", target, None, 2000, None)
    return ("", id, id, number, *move, *said, b"d" * 32)


def version(client: Client, id: str) -> int:
    return int(client.run("read_snapshot", "", id, id)[0][3])


# The same statements as SQLite's.


@pytest.mark.parametrize("name", SQLITE)
def test_both_dialects_have_each_statement_with_the_same_parameters(name: str) -> None:
    assert STATEMENTS[name].parameters == SQLITE[name].parameters


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.endswith("/many")])
def test_many_rows_have_the_parameters_of_one(name: str) -> None:
    one, many = STATEMENTS[name.removesuffix("/many")], STATEMENTS[name]
    assert many.parameters[: len(one.parameters)] == one.parameters
    assert (many.reads, many.answers) == (one.reads, one.answers)


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_compiles_with_all_types_known(client: Client, name: str) -> None:
    query = STATEMENTS[name]
    client.connection.execute(f"PREPARE one AS {query.sql}")
    ((types,),) = client.connection.execute(
        "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'one'"
    ).fetchall()
    assert len(types) == len(query.parameters)
    assert all(("[]" in type) == name.endswith("/many") for type in types)


# Which walk a whole tenant, or all of them; or may do so until the server has looked at the table.
WHOLE = {
    "audit_orphans",
    "audit_strangers",
    "dump_idle_declarations",
    "dump_idle_definitions",
}


#: Of every instance.
GROWING = ["instances", "history", "payloads", "data_changes", "timers"]


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name not in WHOLE])
def test_a_plan_made_in_an_empty_store_reads_no_whole_table(client: Client, name: str) -> None:
    """The plan is kept, so what was good for five rows must be good for millions."""
    for table in (*GROWING, "declarations", "declared_transitions", "definitions"):
        client.connection.execute(f"ANALYZE interlock.{table}")
    for setting in ("enable_seqscan = off", "plan_cache_mode = force_generic_plan"):
        client.connection.execute(f"SET {setting}")
    client.connection.execute(f"PREPARE one AS {STATEMENTS[name].sql}")
    given = ", ".join("NULL" for _ in STATEMENTS[name].parameters)
    execute = f"EXECUTE one({given})" if given else "EXECUTE one"
    plan = "\n".join(line for (line,) in client.connection.execute(f"EXPLAIN {execute}"))
    assert "Seq Scan" not in plan, plan
    for scanned, condition in re.findall(r"(?:using|on) (\w+_pkey|\w+_by_\w+).*\n\s+(.*)", plan):
        assert "Index Cond" in condition, plan
        if scanned in (f"{table}_pkey" for table in GROWING):  # more than a tenant
            assert re.search(r"\(root = |ROW\(", condition), plan


@pytest.mark.parametrize("name", ["read_snapshot", "lock_snapshot", "append_free_entry"])
def test_an_instance_is_found_by_its_key_though_the_table_is_tiny(
    client: Client, name: str
) -> None:
    """All indexes cost the same then, and the plan is kept."""
    client.connection.execute("ANALYZE interlock.instances")
    for setting in ("enable_seqscan = off", "plan_cache_mode = force_generic_plan"):
        client.connection.execute(f"SET {setting}")
    client.connection.execute(f"PREPARE one AS {STATEMENTS[name].sql}")
    given = ", ".join("NULL" for _ in STATEMENTS[name].parameters)
    rows = client.connection.execute(f"EXPLAIN EXECUTE one({given})").fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "instances_pkey" in plan, plan
    assert "instances_by_" not in plan, plan


def test_many_rows_read_what_one_reads(client: Client) -> None:
    client.run("append_entry", *entry("i1", 1, "k"))
    client.run("append_instance", *birth("keyed", "birth"))
    asked: dict[str, list[tuple[Any, ...]]] = {
        "read_snapshot": [("", "i1", "i1"), ("", "i2", "i2"), ("", "no", "no")],
        "lock_snapshot": [("", "i1", "i1"), ("", "i2", "i2"), ("", "no", "no")],
        "read_declaration": [("", DIGEST), ("", "no")],
        "read_keyed_entry": [("", "i1", "i1", "k"), ("", "i2", "i2", "k")],
        "read_start_key": [("", "birth"), ("", "no")],
        "read_definition": [("", DEFINITION[1]), ("", "no")],
        "read_definition_version": [("", "m", "1"), ("", "m", "2")],
    }
    client.many("append_definition", [DEFINITION, DEFINITION])  # which finds it
    for name, keys in asked.items():
        singly = [row for key in keys for row in client.run(name, *key)]
        assert singly, name
        assert sorted(client.many(name, keys)) == sorted(singly)


def test_a_declaration_may_be_appended_by_two_at_once(client: Client, other: Client) -> None:
    text = declaration_text(BATCH)
    row = ("", declaration_digest(text), text)
    client.connection.execute("BEGIN")
    client.run("append_declaration", *row)
    waiting = threading.Thread(target=other.many, args=("append_declaration", [row, row]))
    waiting.start()
    time.sleep(0.1)
    assert waiting.is_alive()
    client.connection.execute("COMMIT")
    waiting.join()
    assert other.run("read_declaration", *row[:2]) == [(row[1], text)]


def test_changes_and_timers_of_many_are_written_as_those_of_one(client: Client) -> None:
    client.run("append_definition", *DEFINITION)
    for id in ("e1", "e2"):
        (*begun, _, genesis) = birth(id)
        client.run("append_instance", *begun, DEFINITION[1], genesis)
        client.run("append_payload", "", id, "p", b"s", b"{}")
    rows = [
        ("", id, id, 0, ordinal, kind, "p", b"p" * 32, bytes([ordinal]) * 32)
        for id in ("e2", "e1")
        for ordinal, kind in ((1, "patch"), (0, "whole"))  # in whatever order they come
    ]
    client.many("append_change", rows)
    assert [client.run("read_snapshot", "", id, id)[0][4] for id in ("e1", "e2")] == [
        b"\x01" * 32
    ] * 2
    timers = [("", id, id, "on", name, 0, 5, 7, 1, "why") for id in ("e1", "e2") for name in "ab"]
    client.many("restore_timer", timers)
    assert [row[0:2] for row in client.run("read_timers", "", "e1", "e1")] == [
        ("on", "a"),
        ("on", "b"),
    ]
    assert client.run("dump_timers", "", "", "", "z", "z") == [row[1:] for row in timers]
    client.many("clear_all_timers", [("", "e1", "e1"), ("", "e2", "e2")])
    assert client.run("dump_timers", "", "", "", "z", "z") == []


# Entries of those that are free.


def test_a_free_entry_is_written_where_the_instance_stands_and_is_free(
    client: Client, other: Client
) -> None:
    assert client.run("append_free_entry", *entry("i0", 1), 1) == [("i0", 1)]
    assert client.run("append_free_entry", *entry("i0", 1), 1) == []  # it has moved on
    assert client.run("append_free_entry", *entry("i0", 3), 3) == []
    assert client.run("append_free_entry", *entry("nobody", 1), 1) == []
    other.connection.execute("BEGIN")
    other.run("lock_snapshot", "", "i1", "i1")
    assert client.run("append_free_entry", *entry("i1", 1), 1) == []
    other.connection.execute("COMMIT")
    assert client.run("append_free_entry", *entry("i1", 1), 1) == [("i1", 1)]


def test_runs_are_written_whole_beside_others_and_those_not_free_left_out(
    client: Client, other: Client
) -> None:
    client.run("append_entry", *entry("i4", 1))
    other.connection.execute("BEGIN")
    other.run("lock_snapshot", "", "i3", "i3")
    rows = [
        *((*entry("i1", number), 1) for number in (3, 1, 2)),  # in whatever order they come
        (*entry("i2", 1), 1),
        *((*entry("i3", number), 1) for number in (1, 2)),  # held by another
        (*entry("i4", 1), 1),  # stale
        *((*entry("i4", number), 3) for number in (3, 4)),  # ahead
        (*entry("nobody", 1), 1),
        (*entry("i0", 1), 1),
    ]
    written = client.many("append_free_entry", rows)
    assert written == [("i0", 1), ("i1", 1), ("i1", 2), ("i1", 3), ("i2", 1)]
    assert [version(client, f"i{number}") for number in range(5)] == [2, 4, 2, 1, 2]
    other.connection.execute("COMMIT")
    rows = [(*entry("i3", number), 1) for number in (1, 2)]
    assert client.many("append_free_entry", rows) == [("i3", 1), ("i3", 2)]


def test_a_free_entry_that_is_wrong_refuses_them_all(client: Client) -> None:
    wrong = list(entry("i2", 1))
    wrong[6] = "fly"
    with pytest.raises(psycopg.errors.CheckViolation, match="a declared transition"):
        client.many("append_free_entry", [(*entry("i1", 1), 1), (*wrong, 1)])
    assert version(client, "i1") == 1


# Locks.


def test_who_waited_for_a_lock_reads_where_the_instance_stands_then(
    client: Client, other: Client
) -> None:
    found: list[tuple[Any, ...]] = []
    for name in ("one", "many"):
        before = version(client, "i1")
        client.connection.execute("BEGIN")
        client.run("append_entry", *entry("i1", before))

        def lock(many: bool = name == "many") -> None:
            key = ("", "i1", "i1")
            rows = other.many("lock_snapshot", [key]) if many else other.run("lock_snapshot", *key)
            found[:] = rows

        waiting = threading.Thread(target=lock)
        waiting.start()
        time.sleep(0.1)
        assert waiting.is_alive()
        client.connection.execute("COMMIT")
        waiting.join()
        assert found[0][3] == before + 1


def test_locks_are_taken_in_the_order_of_keys(client: Client, other: Client) -> None:
    """Two who want the same instances, named in opposite orders, never wait for each other."""
    keys = [("", f"i{number}", f"i{number}") for number in range(10)]
    errors: list[Exception] = []

    def lock(session: Client, rows: list[tuple[Any, ...]], rounds: int = 100) -> None:
        try:
            for _ in range(rounds):
                with session.connection.transaction():
                    assert len(session.many("lock_snapshot", rows)) == len(rows)
        except Exception as error:
            errors.append(error)

    threads = [
        threading.Thread(target=lock, args=(client, keys)),
        threading.Thread(target=lock, args=(other, keys[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_entries_of_many_lock_in_the_order_of_keys(client: Client, other: Client) -> None:
    """Entries of i2 and i1, given in that order: held up at i1, it does not hold i2."""
    other.connection.execute("BEGIN")
    other.run("lock_snapshot", "", "i1", "i1")
    waiting = threading.Thread(
        target=client.many, args=("append_entry", [entry("i2", 1), entry("i1", 1)])
    )
    waiting.start()
    time.sleep(0.2)
    assert waiting.is_alive()
    other.connection.execute("SET LOCAL lock_timeout = '1s'")
    assert other.run("lock_snapshot", "", "i2", "i2")
    other.connection.execute("COMMIT")
    waiting.join()
    assert (version(client, "i1"), version(client, "i2")) == (2, 2)


def test_of_two_who_fire_at_once_one_is_refused(client: Client, other: Client) -> None:
    client.connection.execute("BEGIN")
    client.run("append_entry", *entry("i1", 1))
    refused: list[psycopg.Error] = []

    def fire() -> None:
        try:
            other.run("append_entry", *entry("i1", 1))
        except psycopg.Error as error:
            refused.append(error)

    waiting = threading.Thread(target=fire)
    waiting.start()
    time.sleep(0.1)
    client.connection.execute("COMMIT")
    waiting.join()
    assert [error.sqlstate for error in refused] == ["23514"]


# Pages.


def test_pages_follow_one_another_in_the_order_of_bytes(client: Client) -> None:
    client.many("append_instance", [birth(id) for id in ("Z", "a", "\u00e9", "z")])
    seen = [""]
    while page := client.run("list_instances", "", seen[-1], seen[-1], 3, None):
        seen += [row[0] for row in page]
    ids = ["Z", "a", *(f"i{number}" for number in range(10)), "z", "\u00e9"]
    assert seen[1:] == ids
    page = client.run("list_instances_by_declaration", "", "i8", "i8", 9, "off", DIGEST)
    assert [row[0] for row in page] == ["i9", "z", "\u00e9"]
