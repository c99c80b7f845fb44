"""The floor on PostgreSQL: the one statement that could record a transition, through psycopg.

UPDATE guarded by the version and INSERT in one statement, which is its own transaction; durable
(`fsync` and `synchronous_commit` on). No constraint but the keys, no check, no digest.
"""

import threading
import time
import uuid
from typing import Any

import psycopg

_SCHEMA = """
    DROP SCHEMA IF EXISTS floor CASCADE;
    CREATE SCHEMA floor;
    CREATE TABLE floor.instances (id text PRIMARY KEY, state text, version bigint);
    CREATE TABLE floor.history (
        id text, version bigint, entry text, from_state text, action text, to_state text,
        at bigint, PRIMARY KEY (id, version)
    );
"""
_FIRE = """
    WITH moved AS (
        UPDATE floor.instances SET state = %s, version = version + 1
        WHERE id = %s AND version = %s RETURNING id
    )
    INSERT INTO floor.history SELECT id, %s, %s, %s, %s, %s, %s FROM moved
"""


class PostgresFloor:
    """Instances that go round between two states, some for each of the connections."""

    def __init__(self, uri: str, connections: int, instances: int = 50) -> None:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(_SCHEMA)
            ids = [f"instance-{number:027}" for number in range(connections * instances)]
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO floor.instances VALUES (%s, 'there', 1)", [(id,) for id in ids]
                )
        self._connections = [psycopg.connect(uri, autocommit=True) for _ in range(connections)]
        self._versions = [
            dict.fromkeys(ids[number::connections], 1) for number in range(connections)
        ]

    def run(self, count: int, connections: int = 1) -> None:
        """Record so many transitions over so many connections, each in a thread of its own."""
        if connections == 1:
            self._run(0, count)
            return
        work = [
            threading.Thread(target=self._run, args=(number, count // connections))
            for number in range(connections)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()

    def _run(self, number: int, count: int) -> None:
        cursor: psycopg.Cursor[Any] = self._connections[number].cursor()
        versions = self._versions[number]
        ids = [*versions]
        for place in range(count):
            id = ids[place % len(ids)]
            version = versions[id]
            from_state, to_state = ("there", "back") if version % 2 else ("back", "there")
            at = time.time_ns() // 1000
            entry = str(uuid.uuid4())
            cursor.execute(
                _FIRE, (to_state, id, version, version, entry, from_state, "go", to_state, at)
            )
            versions[id] = version + 1

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
