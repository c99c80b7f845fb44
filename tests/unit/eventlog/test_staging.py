"""Staging: cases in the order of their first appearance, events in the order of the log."""

from datetime import datetime

import pytest

from interlock.eventlog import Event
from interlock.eventlog.staging import Case, Staging, Step
from tests.unit.eventlog.logs import at


def event(case: str, action: str, time: datetime | str | None = None, line: int = 0) -> Event:
    return Event(case, action, time, None, line)


def test_interleaved_cases_are_put_in_order() -> None:
    events = [
        event("b", "1", at(5), 2),
        event("a", "1", at(3), 3),
        event("b", "2", at(1), 4),
        event("a", "2", at(3), 9),
        event("b", "3", at(1), 10),
    ]
    with Staging(events) as staging:
        assert staging.count == 5
        b, a = Case(1, "b", at(1), None), Case(2, "a", at(3), None)
        assert list(staging.steps()) == [
            Step(b, 1, events[0]),
            Step(b, 2, events[2]),
            Step(b, 3, events[4]),
            Step(a, 1, events[1]),
            Step(a, 2, events[3]),
        ]


def test_the_earliest_time_is_of_those_that_can_be_read() -> None:
    events = [
        event("a", "1", "0000"),
        event("a", "2", at(2)),
        event("a", "3", None),
        event("a", "4", at(1)),
        event("b", "1", None),
        event("c", "1", "9" * 1000),
        event("d", "1", at(-(10**8))),
    ]
    with Staging(events) as staging:
        cases = list(dict.fromkeys(step.case for step in staging.steps()))
        assert [step.event for step in staging.steps()] == events
    assert cases == [
        Case(1, "a", at(1), "0000"),
        Case(5, "b", None, None),
        Case(6, "c", None, "9" * 200),
        Case(7, "d", at(-(10**8)), None),
    ]


@pytest.mark.parametrize("text", ["1", " ", "", "é", "e\u0301", "A", "a\n", "a" * 100_000])
def test_texts_come_back_as_they_were_and_are_never_taken_for_another(text: str) -> None:
    others = ["1.0", "  ", "x", "É", "\u00e9 ", "a", "a", "a" * 99_999]
    events = [Event(case, text, text, text, 1) for case in (text, *others, text)]
    with Staging(events) as staging:
        steps = list(staging.steps())
    assert [step.event for step in steps if step.case.name == text] == [events[0], events[-1]]
    assert {step.case.name for step in steps} == {text, *others}


def test_nothing() -> None:
    with Staging([]) as staging:
        assert (staging.count, list(staging.steps())) == (0, [])


def test_what_the_reader_raises_comes_through() -> None:
    def events():
        yield event("a", "1")
        raise RuntimeError("the log is bad")

    with pytest.raises(RuntimeError, match="the log is bad"):
        Staging(events())
