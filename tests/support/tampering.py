"""Store files as somebody with the file in hand could leave them.

`copy_healthy` writes a healthy file, the same records each time. `tampering` opens it with plain
`sqlite3` and drops the triggers, so that any row can be written; `File.loosen` makes a table take
any value in any column, and rows twice; `File.forge` makes the digests of one instance anew.

    names = copy_healthy(path)
    with tampering(path) as file:
        file.set_entry("long", 12, actor_ref="mallory")
        file.forge("long")
    with interlock.open(f"sqlite:///{path}") as store:
        found(store.verify())       # [], if it really is clever
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

import interlock
from interlock import Fire
from interlock.core.record import Genesis, HistoryRow, entry_digest, genesis_digest
from interlock.store.store import Store
from interlock.store.verify import Report
from tests.support.machines import BATCH, TOGGLE, arrow, declare

Names: TypeAlias = dict[str, str]
Row: TypeAlias = dict[str, Any]
Found: TypeAlias = tuple[str | None, int | None, int]  # instance by name, entry, invariant

START = datetime(2024, 5, 1, 12, tzinfo=UTC)
LONG = 23  # entries of `long`: several small pages
TABLES = ["declarations", "declared_transitions", "history", "instances", "payloads", "start_keys"]


# The states of BATCH with other transitions: a release needs no sign-off, and there is a way back.
TWIN = declare(
    BATCH["states"],
    [
        arrow("sampled", "begin-testing", "testing"),
        arrow("testing", "release", "released"),
        arrow("testing", "send-back", "sampled"),
    ],
    terminal_states=BATCH["terminal_states"],
)


class Ticking:
    """A clock that goes on by a second whenever it is read, so that ids sort by birth."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@contextmanager
def repeatable_store(path: Path, start: datetime = START) -> Iterator[Store]:
    """Open a store that makes the same times, identities and salts each time."""
    with (
        patch.object(os, "urandom", Random(0).randbytes),
        interlock.open(f"sqlite:///{path}?synchronous=normal", clock=Ticking(start)) as store,
    ):
        yield store


def build(path: Path) -> Names:
    """Make a healthy store with instances of every kind, and give their ids by name.

    The names stand in the order of the ids, which is the order of a verification.
    """
    with repeatable_store(path) as store:
        names = {"new": store.instantiate(BATCH)}
        names["ended"] = ended = store.instantiate(
            BATCH, "ann", "batch-1", {"line": 4}, idempotency_key="birth-1"
        )
        store.fire(ended, "begin-testing", "bob", reason="arrived", idempotency_key="k-1")
        store.fire(ended, "release", "qp", True, reason="all tests passed", idempotency_key="k-2")
        names["under-way"] = under_way = store.instantiate(BATCH, subject_ref="batch-2")
        store.fire(under_way, "begin-testing", correlation_id="c", causation_id="d", worker_id="w")
        names["blank"] = store.instantiate(BATCH, "ann", instance_metadata=[1, 2, 3])
        names["blank-2"] = store.instantiate(TOGGLE, subject_ref="lamp")
        names["purged"] = purged = store.instantiate(TOGGLE, instance_metadata="a secret")
        store.fire(purged, "go", reason="another secret")
        store.fire(purged, "go", reason="no secret")
        names["long"] = long = store.instantiate(TOGGLE, "ann", instance_metadata={"lamp": "red"})
        for number in range(1, LONG + 1):
            store.fire(
                long,
                "go",
                f"actor-{number}" if number % 2 else None,
                reason=f"round {number}" if number % 3 == 0 else None,
                correlation_id=f"c-{number}" if number % 4 == 0 else None,
                idempotency_key=f"k-{number}" if number % 5 == 0 else None,
            )
        names["twin"] = twin = store.instantiate(TWIN, "ann")
        steps = ["begin-testing", "send-back", "begin-testing"]
        store.fire_many([Fire(twin, step, "bob") for step in steps])
        names["twin-ended"] = twin_ended = store.instantiate(TWIN, subject_ref="batch-1")
        store.fire_many([Fire(twin_ended, step) for step in ("begin-testing", "release")])
        names["keyed"] = store.instantiate(TOGGLE, idempotency_key="birth-2")
        names["counted"] = store.instantiate(TOGGLE, instance_metadata=123)
        names["last"] = last = store.instantiate(TOGGLE, "zoe")
        store.fire_many([Fire(last, "go", "zoe")] * 4)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE payloads SET salt = NULL, content = NULL"
            " WHERE id = ?1 OR id = (SELECT reason_id FROM history"
            "    WHERE instance_id = ?1 AND sequence_number = 1)",
            (names["purged"],),
        )
    return names


@cache
def healthy() -> tuple[bytes, Names]:
    """Give the bytes of a healthy file, and the ids in it by name."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "store.db"
        names = build(path)
        return path.read_bytes(), names


def copy_healthy(path: Path) -> Names:
    content, names = healthy()
    path.write_bytes(content)
    return names


def found(report: Report) -> list[Found]:
    """List what a report found, instances by name, in an order that depends on nothing else.

    That a table is not as it was made is left out: it goes without saying where one was loosened.
    """
    assert report.count == len(report.findings)
    assert report.ok is (not report.findings)
    assert all(one.what and one.what in str(one) for one in report.findings)
    known = {id: name for name, id in healthy()[1].items()}
    places = [
        (known.get(one.instance or "", one.instance), one.entry, one.invariant)
        for one in report.findings
        if not one.what.startswith("the schema was altered")
    ]
    return sorted(places, key=repr)


def bounded(pages_max: int = 500) -> Callable[[int], None]:
    """Make a listener to pages that ends a verification which does not come to an end."""
    pages = count(1)

    def listen(_: int) -> None:
        assert next(pages) <= pages_max, "it goes round and round"

    return listen


class File:
    """A store's file, open to anybody."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.names = healthy()[1]

    def execute(self, sql: str, *parameters: object) -> None:
        self.connection.execute(sql, parameters)

    def rows(self, table: str, where: str = "TRUE", *parameters: object) -> list[Row]:
        cursor = self.connection.execute(
            f'SELECT * FROM "{table}" WHERE {where} ORDER BY 1, 2, 3', parameters
        )
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def instance(self, name: str) -> Row:
        (row,) = self.rows("instances", "id = ?", self.names[name])
        return row

    def entries(self, name: str) -> list[Row]:
        return self.rows("history", "instance_id = ?", self.names[name])

    def entry(self, name: str, number: int) -> Row:
        return self.entries(name)[number - 1]

    def declaration(self, name: str) -> Row:
        digest = self.instance(name)["declaration_digest"]
        (row,) = self.rows("declarations", "digest = ?", digest)
        return row

    def edit_declaration(self, name: str, old: str, new: str) -> None:
        row = self.declaration(name)
        text = row["text"].replace(old, new)
        assert text != row["text"]
        self.change("declarations", {"text": text}, "digest = ?", row["digest"])

    def insert(self, table: str, row: Row) -> None:
        columns = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        self.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', *row.values())

    def change(self, table: str, values: Row, where: str, *parameters: object) -> None:
        columns = ", ".join(f'"{name}" = ?' for name in values)
        sql = f'UPDATE "{table}" SET {columns} WHERE {where}'
        assert self.connection.execute(sql, (*values.values(), *parameters)).rowcount > 0

    def set_instance(self, name: str, **values: object) -> None:
        self.change("instances", values, "id = ?", self.names[name])

    def set_entry(self, name: str, number: int, **values: object) -> None:
        key = (self.names[name], number)
        self.change("history", values, "instance_id = ? AND sequence_number = ?", *key)

    def payload(self, name: str, number: int | None = None) -> Row:
        """Give the metadata of an instance, or the reason of one of its entries."""
        id = self.names[name] if number is None else self.entry(name, number)["reason_id"]
        (row,) = self.rows("payloads", "id = ?", id)
        return row

    def set_payload(self, name: str, number: int | None = None, **values: object) -> None:
        self.change("payloads", values, "id = ?", self.payload(name, number)["id"])

    def append(self, name: str, action: str, to_state: str, **values: object) -> None:
        """Write another entry as a clever forger would: every digest is right."""
        row, last = self.instance(name), self.entries(name)[-1]
        entry = {
            **last,
            "sequence_number": row["next_sequence_number"],
            "transition_id": f"forged-{row['next_sequence_number']}",
            "from_state": row["current_state"],
            "action": action,
            "to_state": to_state,
            "guard_satisfied": None,
            **dict.fromkeys(("reason_id", "reason_digest", "idempotency_key", "request_digest")),
        }
        self.insert("history", {**entry, **values})
        self.forge(name)

    def remove_entries(self, name: str, first: int, last: int = 2**62) -> None:
        where = "instance_id = ? AND sequence_number BETWEEN ? AND ?"
        self.execute(f"DELETE FROM history WHERE {where}", self.names[name], first, last)

    def remove_instance(self, name: str, *, wholly: bool = False) -> None:
        """Remove the row of an instance, or all that the file holds of it."""
        id = self.names[name]
        self.execute("DELETE FROM instances WHERE id = ?", id)
        if wholly:
            for row in self.rows("history", "instance_id = ? AND reason_id IS NOT NULL", id):
                self.execute("DELETE FROM payloads WHERE id = ?", row["reason_id"])
            self.execute("DELETE FROM payloads WHERE id = ?", id)
            self.execute("DELETE FROM history WHERE instance_id = ?", id)
            self.execute("DELETE FROM start_keys WHERE instance_id = ?", id)

    def loosen(self, table: str) -> None:
        """Make a table anew without types, keys, generated columns or anything else to obey."""
        names = [row[1] for row in self.connection.execute(f"PRAGMA table_xinfo({table})")]
        columns = ", ".join(f'"{name}"' for name in names)
        self.execute("PRAGMA legacy_alter_table = ON")
        self.execute(f"CREATE TABLE loose ({columns})")
        self.execute(f'INSERT INTO loose SELECT {columns} FROM "{table}"')
        self.execute(f'DROP TABLE "{table}"')
        self.execute(f'ALTER TABLE loose RENAME TO "{table}"')

    def forge(self, name: str) -> None:
        """Make every digest of an instance anew, and its row say where its history ends."""
        row = self.instance(name)
        digest = genesis_digest(Genesis._make(row.get(field) for field in Genesis._fields))
        self.set_instance(name, genesis_digest=digest)
        standing: Row = {"next_sequence_number": 1}
        for entry in self.entries(name):
            stored = HistoryRow._make(entry[field] for field in HistoryRow._fields)
            digest = entry_digest(digest, row["id"], stored)
            number = entry["sequence_number"]
            self.set_entry(name, number, entry_digest=digest)
            standing = {"next_sequence_number": number + 1, "current_state": entry["to_state"]}
        self.set_instance(name, head_digest=digest, **standing)


@contextmanager
def triggers_dropped(connection: sqlite3.Connection) -> Iterator[None]:
    """Drop the triggers, and put them back as somebody would who wants nothing to be seen."""
    select = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
    triggers = connection.execute(select).fetchall()
    for trigger, _ in triggers:
        connection.execute(f'DROP TRIGGER "{trigger}"')
    yield
    for _, sql in triggers:
        with suppress(sqlite3.OperationalError):  # its table may be gone
            connection.execute(sql)


@contextmanager
def tampering(path: Path) -> Iterator[File]:
    """Open a file with its triggers dropped; what is written is in the file itself at the end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        with triggers_dropped(connection):
            yield File(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def tampered(path: Path, *tampers: Callable[[File], object]) -> Iterator[Store]:
    """Write a healthy file, tamper with it, and open it as a store."""
    copy_healthy(path)
    with tampering(path) as file:
        for tamper in tampers:
            tamper(file)
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        yield store
