"""Engines to test: on SQLite in memory and in a file, on PostgreSQL, with a clock set by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.store.store import Store
from tests.support.engines import Clock
from tests.support.postgres import database


@pytest.fixture(params=["memory", "file", "postgres"])
def url(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """The URL of an empty store."""
    if request.param == "postgres":
        with database() as url:
            yield url
    else:
        yield "sqlite://" if request.param == "memory" else f"sqlite:///{path}"


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
