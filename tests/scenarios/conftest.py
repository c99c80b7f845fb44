"""Stories are told of every database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.store.store import Store
from tests.support.postgres import database


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[Store]:
    """An empty store: in memory, in a file, on a server."""
    if request.param == "postgres":
        with database() as url, interlock.open(url) as store:
            yield store
        return
    with interlock.open("sqlite://" if request.param == "memory" else f"sqlite:///{path}") as store:
        yield store
