"""Ingest against a plain twin: a dict and a list, for random machines, logs, batches and breaks."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock.eventlog import ingest
from tests.unit.eventlog.logs import told, write_log

STATES = ["s0", "s1", "s2", "end"]
ACTIONS = ["x", "y"]
CASES = ["A", "B", "C", "D", " "]
NAIVE = "2024-05-01T12:00"

machines = st.dictionaries(
    st.tuples(st.sampled_from(STATES[:3]), st.sampled_from(ACTIONS)),
    st.tuples(st.sampled_from(STATES), st.sampled_from([None, None, "guard"])),
).map(
    lambda rows: {
        "states": STATES,
        "transitions": [
            {"from_state": origin, "action": action, "to_state": target, "guard": guard}
            for (origin, action), (target, guard) in rows.items()
        ],
        "initial_state": "s0",
        "terminal_states": ["end"],
    }
)
actions = st.sampled_from([*ACTIONS * 4, "z", ""])
rows = st.tuples(st.sampled_from(CASES), actions, st.sampled_from([0, 1, 2, 3, NAIVE]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def twin(machine: dict, log: list, assert_guards: bool) -> tuple[dict, set]:
    """Say what is recorded of each case, and which events (case, position, reason) are refused."""
    lookup = {
        (row["from_state"], row["action"]): (row["to_state"], row["guard"])
        for row in machine["transitions"]
    }
    events = defaultdict(list)
    for case, action, time in log:
        events[case].append((action, time))
    recorded: dict[str, list] = {}
    refused = set()
    for case, happened in events.items():
        if case == " ":
            refused |= {(case, place, "invalid-request") for place in range(1, len(happened) + 1)}
            continue
        recorded[case] = []
        state = "s0"
        for place, (action, time) in enumerate(happened, 1):
            target, guard = lookup.get((state, action), (None, None))
            if all(time == NAIVE for _, time in happened) or action == "":
                reason = "invalid-request"
            elif state == "end":
                reason = "terminal"
            elif target is None:
                reason = "invalid-transition"
            elif guard and not assert_guards:
                reason = "guard-not-satisfied"
            elif time == NAIVE:
                reason = "invalid-request"
            else:
                recorded[case].append((action, time, None))
                state = target
                continue
            refused.add((case, place, reason))
            break
    return recorded, refused


@given(
    machine=machines,
    log=st.lists(rows, max_size=25),
    batches=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    cut=st.integers(0, 25),
    assert_guards=st.booleans(),
)
def test_every_log_is_recorded_as_its_plain_twin_says(
    folder: Path,
    machine: dict,
    log: list,
    batches: tuple[int, int],
    cut: int,
    assert_guards: bool,
) -> None:
    # A case that another run began keeps its birth, so here each begins with its earliest time.
    log = [*((case, "x", 0) for case in CASES[:2]), *log]
    whole = write_log(folder / "whole.csv", log)
    part = write_log(folder / "part.csv", log[: cut + 2])
    recorded, refused = twin(machine, log, assert_guards)
    births = {case: _begun(log, case) for case in recorded}
    with interlock.open("sqlite://") as store:
        earlier = None
        if all(_begun(log[: cut + 2], case) in (None, birth) for case, birth in births.items()):
            earlier = ingest(store, machine, part, batch=batches[0], assert_guards=False)
        report = ingest(store, machine, whole, batch=batches[1], assert_guards=assert_guards)
        again = ingest(store, machine, whole, batch=batches[0], assert_guards=assert_guards)
        for case, entries in recorded.items():
            if births[case] is None:
                assert store.instances(subject_ref=case) == []
            else:
                assert told(store, case) == entries
    total = sum(map(len, recorded.values()))
    assert {(case, place, why) for case, place, *_, why, _ in report.refusals} == refused
    assert report.recorded + report.recognised == total
    assert report.recognised == (earlier.recorded if earlier else 0)
    assert report.conforming == len(recorded) - len({case for case, *_ in refused} - {" "})
    assert again == replace(report, recorded=0, recognised=total)


def _begun(log: list, case: str) -> int | None:
    return min((time for name, _, time in log if name == case and time != NAIVE), default=None)


def test_the_twin_knows_its_own_refusals(tmp_path: Path) -> None:
    machine = {
        "transitions": [
            {"from_state": "s0", "action": "x", "to_state": "s1", "guard": "guard"},
            {"from_state": "s1", "action": "x", "to_state": "end", "guard": None},
        ]
    }
    log = [("A", "x", 0), ("A", "x", 1), ("A", "x", 2), ("A", "x", 3), (" ", "x", 0)]
    assert twin(machine, log, True) == (
        {"A": [("x", 0, None), ("x", 1, None)]},
        {("A", 3, "terminal"), (" ", 1, "invalid-request")},
    )
    assert twin(machine, log, False)[1] == {
        ("A", 1, "guard-not-satisfied"),
        (" ", 1, "invalid-request"),
    }
