"""Engines to test: on SQLite in memory and in a file, on PostgreSQL, with a clock set by hand."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import Clock
from tests.support.postgres import database, with_settings


@pytest.fixture(scope="session")
def server_database() -> Iterator[str]:
    """A database for the stores of all tests, each of which has a schema of its own."""
    with database() as url:
        yield url


@pytest.fixture(params=["memory", "file", "postgres"])
def url(request: pytest.FixtureRequest, path: Path) -> str:
    """The URL of an empty store."""
    if request.param == "postgres":
        own = f"engine_{uuid.uuid4().hex[:12]}"
        return with_settings(request.getfixturevalue("server_database"), schema=own)
    return "sqlite://" if request.param == "memory" else f"sqlite:///{path}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with interlock.open(url, clock=clock) as store:
        yield store


@pytest.fixture
def engine(store: Store) -> interlock.Engine:
    return interlock.Engine(store)
