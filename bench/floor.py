"""The floor: the fewest statements that could record a transition, through the same sqlite3.

One UPDATE guarded by the version and one INSERT in each transaction, with the same settings (WAL,
the same `synchronous`). No declaration, no check, no identity, no digest: nobody should want to run
this, and nothing that also records can be faster.
"""

import sqlite3
import time
from pathlib import Path


class Floor:
    """Instances that go round between two states."""

    def __init__(self, path: Path, synchronous: str, instances: int = 50) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        execute = self.connection.execute
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {synchronous}")
        execute(
            "CREATE TABLE instances "
            "(id TEXT PRIMARY KEY, state TEXT, version INTEGER) WITHOUT ROWID"
        )
        execute(
            "CREATE TABLE history (id TEXT, version INTEGER, from_state TEXT, action TEXT, "
            "to_state TEXT, at INTEGER, PRIMARY KEY (id, version)) WITHOUT ROWID"
        )
        self.versions = {f"instance-{number:030}": 1 for number in range(instances)}
        for id in self.versions:
            execute("INSERT INTO instances VALUES (?, 'there', 1)", (id,))

    def run(self, count: int) -> None:
        execute, versions = self.connection.execute, self.versions
        ids = [*versions]
        for number in range(count):
            id = ids[number % len(ids)]
            version = versions[id]
            from_state, to_state = ("there", "back") if version % 2 else ("back", "there")
            execute("BEGIN IMMEDIATE")
            execute(
                "UPDATE instances SET state = ?, version = ? WHERE id = ? AND version = ?",
                (to_state, version + 1, id, version),
            )
            execute(
                "INSERT INTO history VALUES (?, ?, ?, 'go', ?, ?)",
                (id, version, from_state, to_state, time.time_ns() // 1000),
            )
            execute("COMMIT")
            versions[id] = version + 1

    def close(self) -> None:
        self.connection.close()
