"""An empty directory with a declaration in a file, and a command line that knows a store there."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.machines import BATCH
from tests.support.tampering import triggers_dropped
from tests.unit.cli.line import MACHINE, CommandLine


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    line = CommandLine(tmp_path)
    line.declare(BATCH, MACHINE)
    return line


@pytest.fixture
def batch(run: CommandLine) -> str:
    """An instance that has been sampled; the store is made."""
    return run.ok("instantiate", MACHINE, "--actor", "system-planner", "--subject", "B-44").strip()


@pytest.fixture
def tested(run: CommandLine, batch: str) -> str:
    """An instance with one entry."""
    run.ok("fire", batch, "begin-testing", "--actor", "lab-tech-rivera")
    return batch


@pytest.fixture
def released(run: CommandLine, tested: str) -> str:
    """An instance in a terminal state, with two entries."""
    run.ok("fire", tested, "release", "--guard", "--reason", "all within limits")
    return tested


@pytest.fixture
def forge(run: CommandLine) -> Callable[[str], None]:
    """Change the file of the store by hand, its triggers dropped."""

    def forge(statement: str) -> None:
        with closing(sqlite3.connect(run.folder / "store.db")) as database:
            with triggers_dropped(database):
                database.execute(statement)
            database.commit()

    return forge
