"""How much an event costs: one that a typed guard decides and whose hook writes a row, and many."""

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

import interlock
from bench.harness import Figure, compare, in_turns, rate

INSTANCES = 50
UNIT = "events/s"
MACHINE = """
machine: round-trip
version: 1
data: {amount: {type: decimal, scale: 2}, limit: {type: decimal, scale: 2}}
initial: there
states:
  there: {on: {go: {to: back, when: "data.amount < data.limit", do: [note]}}}
  back: {on: {go: {to: there, when: "data.amount < data.limit", do: [note]}}}
"""
QUIET = MACHINE.replace(", do: [note]", "").replace("round-trip", "quiet")
CALLERS = 32
LOOK = "SELECT state, version FROM floor_instances WHERE id = {0}"
MOVE = "UPDATE floor_instances SET state = {0}, version = {0} WHERE id = {0} AND version = {0}"
ENTRY = "INSERT INTO floor_history VALUES ({0}, {0}, {0}, 'go', {0}, {0})"
NOTE = "INSERT INTO {1} VALUES ({0}, {0})"
TABLES = (
    "CREATE TABLE floor_instances (id TEXT PRIMARY KEY, state TEXT, version BIGINT)",
    "CREATE TABLE floor_history (id TEXT, version BIGINT, from_state TEXT, action TEXT, "
    "to_state TEXT, at BIGINT, PRIMARY KEY (id, version))",
    "CREATE TABLE floor_notes (id TEXT, version TEXT)",
)


def on_sqlite(folder: Path) -> Iterator[Figure]:
    connection = sqlite3.connect(folder / "engine-floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    bare = _floor(connection.execute, "BEGIN IMMEDIATE", LOOK, "?")
    with interlock.open(f"sqlite:///{folder}/engine.db") as store:
        with sqlite3.connect(folder / "engine.db") as own:
            own.execute("CREATE TABLE notes (id TEXT, version TEXT)")
        own.close()
        yield _compared("SQLite", store, bare, "?")
        yield _together("SQLite", store)
    connection.close()


def on_postgres(uri: str) -> Iterator[Figure]:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE TABLE notes (id TEXT, version TEXT)")
        bare = _floor(connection.execute, "BEGIN", f"{LOOK} FOR NO KEY UPDATE", "%s")
        with interlock.open(uri) as store:
            yield _compared("PostgreSQL", store, bare, "%s")
            yield _together("PostgreSQL", store)


def _compared(name: str, store: interlock.Store, bare: Callable[[int], None], mark: str) -> Figure:
    ours = _engine(store, NOTE.format(mark, "notes"))
    ours(1500)
    bare(1500)
    rounds = in_turns([lambda: rate(ours, 200), lambda: rate(bare, 200)], rounds=25)
    what = f"an event with a guard and a hook, on {name}, of the floor"
    return compare(what, 0.6, rounds, unit=UNIT)


def _together(name: str, store: interlock.Store) -> Figure:
    """Compare callers whose events call nothing, and so share commits, with one of them."""
    engine = interlock.Engine(store)
    definition = interlock.loads(QUIET)
    data = {"amount": "10.00", "limit": "100.00"}
    orders = [engine.start(definition, data) for _ in range(CALLERS)]

    def send(order: interlock.Handle, count: int) -> None:
        for _ in range(count):
            order.send("go", actor_ref="ann")

    def all_of_them(count: int) -> None:
        share = [(order, count // CALLERS) for order in orders]
        threads = [threading.Thread(target=send, args=args) for args in share]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    one = partial(send, orders[0])
    rounds = in_turns([lambda: rate(all_of_them, 1600), lambda: rate(one, 300)], rounds=9)
    return compare(f"events of {CALLERS} threads, on {name}, of one's", 1.5, rounds, unit=UNIT)


def _engine(store: interlock.Store, note: str) -> Callable[[int], None]:
    engine = interlock.Engine(store)

    @engine.hook("note")
    def write(tx: interlock.Tx) -> None:
        tx.connection.execute(note, (tx.id, tx.to_state))

    definition = interlock.loads(MACHINE)
    data = {"amount": "10.00", "limit": "100.00"}
    orders = [engine.start(definition, data) for _ in range(INSTANCES)]

    def run(count: int) -> None:
        for place in range(count):
            orders[place % INSTANCES].send("go", actor_ref="ann")

    return run


def _floor(execute: Callable[..., Any], begin: str, look: str, mark: str) -> Callable[[int], None]:
    """Make a program that does no more than these statements, in one transaction each time.

    What a hook is called on is read first, and held.
    """
    for table in TABLES:
        execute(table)
    read, move, entry, note = (sql.format(mark, "floor_notes") for sql in (look, MOVE, ENTRY, NOTE))
    versions = {str(uuid.uuid4()): 1 for _ in range(INSTANCES)}
    for id in versions:
        execute(f"INSERT INTO floor_instances VALUES ({mark}, 'there', 1)", (id,))

    def run(count: int) -> None:
        ids = [*versions]
        for place in range(count):
            id = ids[place % INSTANCES]
            version = versions[id]
            origin, target = ("there", "back") if version % 2 else ("back", "there")
            execute(begin)
            execute(read, (id,)).fetchone()
            execute(move, (target, version + 1, id, version))
            execute(entry, (id, version, origin, target, time.time_ns() // 1000))
            execute(note, (id, target))
            execute("COMMIT")
            versions[id] = version + 1

    return run
