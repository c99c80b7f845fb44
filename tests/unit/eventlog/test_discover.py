"""Discovery: the declaration proposed from a log, and that the log conforms to it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock.core.declaration import check_declaration
from interlock.eventlog import Event, discover, ingest
from tests.unit.eventlog.logs import write_log

NAMES = st.sampled_from(["start", "start-2", "pay", "Pay", " pay", "ship", "é", "a\nb"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def events(*rows: str) -> list[Event]:
    return [Event(row[0], row[1:], None, None, line) for line, row in enumerate(rows, 2)]


def test_states_are_named_after_the_last_action() -> None:
    log = events("1receive", "2receive", "1check", "2reject", "1check", "1accept", "3check")
    assert discover(log) == {
        "states": ["start", "receive", "check", "accept", "reject"],
        "transitions": [
            {"from_state": "start", "action": "receive", "to_state": "receive"},
            {"from_state": "receive", "action": "check", "to_state": "check"},
            {"from_state": "check", "action": "check", "to_state": "check"},
            {"from_state": "check", "action": "accept", "to_state": "accept"},
            {"from_state": "receive", "action": "reject", "to_state": "reject"},
            {"from_state": "start", "action": "check", "to_state": "check"},
        ],
        "initial_state": "start",
        "terminal_states": ["accept", "reject"],
    }


def test_an_end_of_one_case_that_another_left_is_not_terminal() -> None:
    assert discover(events("1a", "2a", "2b"))["terminal_states"] == ["b"]
    assert discover(events("1a", "1a"))["terminal_states"] == []


def test_the_initial_state_gives_way_to_an_action_of_its_name() -> None:
    found = discover(events("1start", "1start-2", "1start"))
    assert found["initial_state"] == "start-3"
    assert found["states"] == ["start-3", "start", "start-2"]
    assert not check_declaration(found)


def test_what_cannot_be_a_step_is_left_out() -> None:
    assert discover(events(" lost", "1a", "1", "1 ", f"1{'x' * 513}", "1b")) == discover(
        events("1a", "1b")
    )


def test_a_log_without_events_gives_a_machine_at_rest() -> None:
    found = discover([])
    assert found["states"] == ["start"]
    assert not check_declaration(found)


@given(log=st.lists(st.tuples(st.sampled_from("ABC"), NAMES, st.integers(0, 3)), max_size=30))
def test_every_case_conforms_to_what_was_discovered(folder: Path, log: list) -> None:
    path = write_log(folder / "log.csv", log)
    found = discover(Event(case, action, None, None, 0) for case, action, _ in log)
    with interlock.open("sqlite://") as store:
        report = ingest(store, found, path, batch=4)
    cases = len({case for case, *_ in log})
    assert (report.cases, report.conforming, report.recorded) == (cases, cases, len(log))
    left = {case: action for case, action, _ in log}  # where each case ended
    terminal = set(found["terminal_states"])
    assert terminal <= set(left.values())
