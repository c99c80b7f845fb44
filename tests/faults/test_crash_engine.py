"""Processes killed while an engine sends events with hooks: all of it is there, or none.

A child sends events to a few orders and says what it was told. Its hooks write rows of their own,
before the entry and after it. The parent kills it at random moments and reads the records: entries,
data, timers and the hooks' rows agree, and `verify` finds nothing.
"""

import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import psycopg
import pytest

import interlock
from tests.support import orders, processes
from tests.support.postgres import database

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")

KILLS = 5

CHILD = """
import os, sys, time
import interlock
from tests.support import orders

url, mark, *ids = sys.argv[1:]
store = interlock.open(url)

def noting(name):
    def note(tx):
        insert = f"INSERT INTO noted VALUES ({mark}, {mark}, {mark})"
        tx.connection.execute(insert, (tx.id, tx.data["rounds"], name))
        tx.data["note"] = f"{name} {tx.data['rounds']}"
    return note

engine = orders.engine_of(store, reserve=noting("reserve"), jot=noting("jot"))
while True:
    for id in ids:
        order = engine.get(id)
        order.send("again")
        os.write(1, f"{id} {order.data['rounds']}\\n".encode())
"""


class Place(NamedTuple):
    url: str
    mark: str
    ask: Callable[[str], list[Any]]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> Iterator[Place]:
    if request.param == "sqlite":

        def read(statement: str) -> list[Any]:
            with closing(sqlite3.connect(path, isolation_level=None)) as client:
                return client.execute(statement).fetchall()

        yield Place(f"sqlite:///{path}", "?", read)
        return
    with database() as url:

        def ask(statement: str) -> list[Any]:
            with psycopg.connect(url, autocommit=True) as client:
                cursor = client.execute(statement)
                return cursor.fetchall() if cursor.description else []

        yield Place(url, "%s", ask)


def test_what_hooks_wrote_agrees_with_history_whenever_it_is_killed(place: Place) -> None:
    random = Random(7)
    with interlock.open(place.url) as store:
        engine = orders.engine_of(store)
        ids = []
        for _ in range(3):
            order = orders.begin(engine)
            order.send("submit", {"qty": 3})
            ids.append(order.id)
    place.ask("CREATE TABLE noted (id TEXT, round INTEGER, hook TEXT)")
    for _ in range(KILLS):
        process = processes.start(CHILD, place.url, place.mark, *ids)
        assert process.stdout
        told: dict[str, int] = {}
        for _ in range(random.randrange(4, 30)):
            id, last = process.stdout.readline().split()
            told[id] = int(last)
        for _ in range(random.randrange(20_000)):
            pass  # some way into what comes next
        process.kill()
        for line in process.stdout:
            id, last = line.split()
            told[id] = int(last)
        process.communicate(timeout=60)
        with interlock.open(place.url) as store:
            report = store.verify()
            assert report.ok, report.findings[:3]
            engine = orders.engine_of(store)
            for id in ids:
                order = engine.get(id)
                rounds = len(order.history()) - 1
                assert rounds >= told.get(id, 0), "what was acknowledged is lost"
                assert order.data["rounds"] == rounds
                assert [timer.name for timer in order.timers] == ["P3D"]
                rows = place.ask(f"SELECT round, hook FROM noted WHERE id = '{id}'")
                wanted = [(n, hook) for n in range(1, rounds + 1) for hook in ("jot", "reserve")]
                assert sorted(rows) == wanted
                if rounds:
                    assert order.data["note"] == f"reserve {rounds}"
    assert sum(told.values()) > KILLS
