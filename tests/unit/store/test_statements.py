"""The named statements: how they are read, and that the hot ones walk an index."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.store.sqlite.drive import STATEMENTS
from interlock.store.sqlite.migrate import migrate
from interlock.store.statements import load_statements


def write(folder: Path, text: str) -> Path:
    path = folder / "statements.sql"
    path.write_text(text)
    return path


def test_parameters_are_numbered_in_the_order_of_the_head(tmp_path: Path) -> None:
    text = "-- name: one\n-- parameters: b a\n-- What it does.\nSELECT :a, :b, :a;\n"
    query = load_statements(write(tmp_path, text))["one"]
    assert (query.sql, query.parameters, query.reads) == ("SELECT ?2, ?1, ?2", ("b", "a"), True)


@pytest.mark.parametrize("used", ["SELECT :a", "SELECT :a, :b, :c"])
def test_a_statement_uses_exactly_the_parameters_it_lists(tmp_path: Path, used: str) -> None:
    with pytest.raises(ValueError, match="`one` does not use exactly its parameters"):
        load_statements(write(tmp_path, f"-- name: one\n-- parameters: a b\n{used};\n"))


def test_columns_are_said_once_for_all_that_give_them(tmp_path: Path) -> None:
    columns = "-- columns: those\n-- Which.\na,\nb;\n\n"
    text = "-- name: {}\n-- parameters:\nSELECT $those FROM $schema.x;\n\n"
    queries = load_statements(write(tmp_path, columns + text.format("one") + text.format("two")))
    assert [query.sql for query in queries.values()] == ["SELECT a,\nb FROM $schema.x"] * 2


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("payload_fault", 3, lambda salt, content, digest: None)
    migrate(connection, "here")
    yield connection
    connection.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_compiles(database: sqlite3.Connection, name: str) -> None:
    query = STATEMENTS[name]
    database.execute(f"EXPLAIN {query.sql}", [None] * len(query.parameters))


# A whole walk of a table is what these are for.
WALKS = {"audit_misfits", "settle"}


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WALKS))
def test_no_statement_walks_a_table(database: sqlite3.Connection, name: str) -> None:
    query = STATEMENTS[name]
    plan = database.execute(f"EXPLAIN QUERY PLAN {query.sql}", [None] * len(query.parameters))
    steps = [detail for *_, detail in plan]
    scans = [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step]
    allowed = {"audit_payloads": ["SCAN named"], "audit_orphans": ["SCAN t"]}.get(name, [])
    assert [step for step in scans if step not in allowed] == []


@pytest.mark.parametrize("name", ["audit_records", "read_history", "audit_numbers"])
def test_what_reads_long_histories_sorts_nothing(database: sqlite3.Connection, name: str) -> None:
    query = STATEMENTS[name]
    plan = database.execute(f"EXPLAIN QUERY PLAN {query.sql}", [None] * len(query.parameters))
    assert [detail for *_, detail in plan if "TEMP B-TREE" in detail] == []
