"""What counts as taken."""

from collections.abc import Iterator

import pytest

import interlock
from interlock.language import loads
from interlock.testing import coverage

MACHINE = loads(
    """
machine: m
initial: a
states:
  a: {on: {go: b, skip: {to: end, when: {check: open}}}}
  b: {on_enter: [greet], always: c}
  c: {on: {on: end}}
  end: {final: true}
"""
)


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    kept = coverage.rows()
    coverage.listen()
    yield
    coverage.stop()
    coverage.merge(kept)


@pytest.fixture
def engine(store: interlock.Store) -> interlock.Engine:
    engine = interlock.Engine(store)
    engine.guard("open")(lambda tx: True)
    return engine


def test_all_that_one_event_takes_counts_and_twice_is_once(engine: interlock.Engine) -> None:
    engine.hook("greet")(lambda tx: None)
    for _ in range(2):
        engine.start(MACHINE).send("go")
    (covered,) = coverage.found()
    assert covered.taken == {("a", "go"), ("b", "always/c")}
    assert covered.missing == [("a", "skip/end"), ("c", "on")]
    assert covered.percent == 50


def test_what_is_rolled_back_or_only_asked_after_was_not_taken(engine: interlock.Engine) -> None:
    def greet(tx: interlock.Tx) -> None:
        raise ValueError("not today")

    engine.hook("greet")(greet)
    handle = engine.start(MACHINE)
    assert handle.can("skip")
    with pytest.raises(interlock.HookFailed):
        handle.send("go")
    assert coverage.found()[0].taken == set()


def test_what_nothing_takes_does_not_count_unless_it_is_taken() -> None:
    covered = coverage.declare(MACHINE, [("a", "go"), ("c", "on")])
    assert covered.counted == [("a", "skip/end"), ("b", "always/c")]
    covered.taken.add(("c", "on"))
    assert ("c", "on") in covered.counted


def test_what_another_process_counted_is_added(engine: interlock.Engine) -> None:
    engine.hook("greet")(lambda tx: None)
    engine.start(MACHINE).send("go")
    told = coverage.rows()
    coverage.listen()
    engine.start(MACHINE).send("skip")
    coverage.merge(told)
    (covered,) = coverage.found()
    assert covered.missing == [("c", "on")]
