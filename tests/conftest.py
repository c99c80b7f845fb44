"""What holds for every test.

Hypothesis is deterministic here: each run tries the same examples. To search on, choose
`HYPOTHESIS_PROFILE=search`, which draws new ones and prints how to repeat a failure.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import interlock
from interlock.store.store import Store

_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("repeat", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "search", max_examples=1000, print_blob=True, deadline=None, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# A shell starts what it puts in the background with interrupts ignored, and processes started by
# tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    """Let go of the PostgreSQL server, if a test asked for it."""
    if postgres := sys.modules.get("tests.support.postgres"):
        postgres.let_go()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[Store]:
    """An empty store, in memory and in a file."""
    with interlock.open("sqlite://" if request.param == "memory" else f"sqlite:///{path}") as store:
        yield store


@pytest.fixture(params=["memory", "file"], scope="module")
def lasting_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """One store for all tests of a module: for those that draw many examples."""
    path = tmp_path_factory.mktemp("lasting") / "store.db"
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{path}?synchronous=normal"
    with interlock.open(url) as store:
        yield store
