"""An empty directory with a declaration in a file, and a command line that knows a store there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machines import BATCH
from tests.support.postgres import database
from tests.unit.cli.line import MACHINE, CommandLine, OnPostgres, OnSQLite


@pytest.fixture(scope="session")
def server_database() -> Iterator[str]:
    """A database for the stores of all tests, each of which has a schema of its own."""
    with database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    line: CommandLine
    if request.param == "sqlite":
        line = OnSQLite(tmp_path)
    else:
        line = OnPostgres(tmp_path, request.getfixturevalue("server_database"))
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
