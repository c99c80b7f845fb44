"""`interlock.testing.Blocking`, and the end of the asynchronous store that it drives."""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest

import interlock
from interlock import InvalidRequest, StorageFailure
from interlock.testing import Blocking
from tests.support.machines import TOGGLE


def loops() -> int:
    return sum(thread.name == "interlock-blocking" for thread in threading.enumerate())


def test_verbs_give_their_answers_and_the_loop_ends_with_the_block(path: Path) -> None:
    with Blocking(lambda: interlock.open_async(f"sqlite:///{path}")) as store:
        id = store.instantiate(TOGGLE)
        assert store.fire(id, "go", actor_ref="ann") == "on"
        assert loops() == 1
        with pytest.raises(AttributeError):
            store.no_such_verb(id)
    assert loops() == 0
    with interlock.open(f"sqlite:///{path}") as again:
        assert again.current(id) == "on"


def test_what_keeps_a_store_from_opening_is_raised_and_leaves_no_loop(path: Path) -> None:
    for url, refusal in ((f"sqlite:///{path}?mode=rw", StorageFailure), ("?", InvalidRequest)):
        with pytest.raises(refusal):
            Blocking(partial(interlock.open_async, url))
    assert loops() == 0


@pytest.mark.parametrize("url", ["sqlite://", "postgresql:///nowhere"])
def test_a_store_that_was_never_opened_is_closed_already(url: str) -> None:
    asyncio.run(interlock.open_async(url).close())
