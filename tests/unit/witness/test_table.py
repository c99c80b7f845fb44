"""The cases of a machine: which there are, and which there cannot be."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock.language import Definition, define
from interlock.testing import Trial
from interlock.witness import Case, Send, Table, Tick, tabulate
from interlock.witness.sample import NOON
from interlock.witness.solving import IMPOSSIBLE


def machine(states: dict[str, Any], **keys: Any) -> Definition:
    return define({"machine": "m", "initial": next(iter(states)), "states": states, **keys})


def tried(definition: Definition) -> Table:
    """Make the table, and try every case of it on an engine."""
    table = tabulate(definition)
    trial = Trial(definition)
    for case in (*table.taken, *table.refused):
        trial.run(case)
    return table


def taking(table: Table, action: str) -> Case:
    (case,) = [one for one in table.taken if one.branch and one.branch.action == action]
    return case


def names(table: Table) -> set[str]:
    return {case.name for case in table.refused}


def test_values_are_found_that_a_condition_needs() -> None:
    table = tried(
        machine(
            {
                "a": {
                    "on": {
                        "go": [
                            {"to": "b", "when": "data.n * 3 == event.k + 100 && event.k > 7"},
                            {"to": "c", "when": 'data.tag == "x" && data.n * 3 != event.k + 100'},
                        ]
                    }
                },
                "b": {"final": True},
                "c": {"final": True},
            },
            data={"n": {"type": "integer", "minimum": 10}, "tag": {"type": "string"}},
            events={"go": {"k": {"type": "integer", "maximum": 200}}},
        )
    )
    assert table.missed == ()
    (send,) = taking(table, "go/b").steps
    assert isinstance(send, Send)
    n, k = taking(table, "go/b").begin.data["n"], send.payload["k"]
    assert n * 3 == k + 100
    assert 7 < k <= 200
    assert taking(table, "go/c").begin.data["tag"] == "x"
    assert "a: go -> guard-not-satisfied (no condition is met)" in names(table)


def test_what_is_set_has_to_be_allowed() -> None:
    table = tried(
        machine(
            {"a": {"on": {"go": {"set": {"n": "event.k - 5"}}}}},
            data={"n": {"type": "integer", "minimum": 3, "default": 4}},
            events={"go": {"k": {"type": "integer"}}},
        )
    )
    (send,) = taking(table, "go").steps
    assert isinstance(send, Send)
    assert send.payload["k"] >= 8


def test_timers_wait_for_their_moment_and_for_those_before_them() -> None:
    table = tried(
        machine(
            {
                "a": {
                    "data": ["at"],
                    "after": {
                        "1h": {"do": ["remind"]},
                        "due": {"at": "data.at", "to": "b"},
                        "P9D": {"to": "c", "when": {"check": "late"}},
                    },
                },
                "b": {"final": True},
                "c": {"final": True},
            },
            data={"at": {"type": "date-time"}},
        )
    )
    assert taking(table, "after/1h").steps == (Tick(NOON + timedelta(hours=1)),)
    due = taking(table, "after/due")
    assert due.steps == (Tick(datetime.fromisoformat(due.begin.data["at"])),)
    assert due.steps[0].at < NOON + timedelta(hours=1)
    # After an hour the hint, after nine days the end: the moment has to be later still.
    late = taking(table, "after/P9D/c")
    assert late.steps == (Tick(NOON + timedelta(days=9), {"late": True}),)
    assert datetime.fromisoformat(late.begin.data["at"]) > NOON + timedelta(days=9)
    assert late.expected.actions == ("after/1h", "after/P9D/c")
    assert table.missed == ()


def test_guards_in_python_say_what_a_branch_needs() -> None:
    table = tried(
        machine(
            {
                "a": {
                    "on": {
                        "go": [
                            {"to": "b", "when": {"all": [{"check": "x"}, {"not": {"check": "y"}}]}},
                            {"to": "c", "when": {"all": [{"check": "y"}, "data.n > 1"]}},
                        ]
                    }
                },
                "b": {"final": True},
                "c": {"final": True},
            },
            data={"n": {"type": "integer"}},
        )
    )
    assert taking(table, "go/b").steps[-1].guards == {"x": True, "y": False}
    assert taking(table, "go/c").steps[-1].guards["y"] is True


def test_a_history_state_is_led_to_remember() -> None:
    table = tried(
        machine(
            {
                "work": {
                    "initial": "one",
                    "on": {"pause": "paused"},
                    "states": {
                        "one": {"on": {"next": "two"}},
                        "two": {"on": {"next": "three"}},
                        "three": {},
                        "h": {"type": "history", "history": "deep"},
                    },
                },
                "paused": {"on": {"resume": "work.h"}},
            }
        )
    )
    assert table.missed == ()
    for action in ("resume/work.one", "resume/work.two", "resume/work.three"):
        case = taking(table, action)
        sent = [step.event for step in case.steps if isinstance(step, Send)]
        # Without a memory it leads to where `work` begins.
        assert sent == (["resume"] if action == "resume/work.one" else ["pause", "resume"])


def test_a_final_state_is_reached_before_it_is_tried() -> None:
    table = tried(machine({"a": {"on": {"go": "b"}}, "b": {"final": True}}))
    (case,) = [case for case in table.refused if case.state == "b"]
    assert [step.event for step in case.steps if isinstance(step, Send)] == ["go", "go"]
    assert case.expected.refused == "terminal"


def test_what_nothing_takes_is_proved_and_told() -> None:
    table = tried(
        machine(
            {
                "a": {
                    "always": [
                        {"to": "b", "when": "data.n < 5"},
                        {"to": "c", "when": "data.n >= 5"},
                    ],
                    "on": {"go": "b"},
                    "after": {"1h": "b"},
                },
                "b": {"on": {"back": "a", "no": {"to": "a", "when": "data.n > 9"}}},
                "c": {"final": True},
            },
            data={"n": {"type": "integer", "maximum": 8}},
        )
    )
    assert {(m.state, m.action, m.impossible, m.why) for m in table.missed} == {
        ("a", "go", True, IMPOSSIBLE),
        ("a", "after/1h", True, IMPOSSIBLE),
        ("b", "no/a", True, IMPOSSIBLE),
    }
    assert not any(case.state == "a" for case in table.refused)  # nothing is ever sent there


@pytest.mark.parametrize("when", ["now < timestamp('2030-01-01T00:00:00Z')", {"check": "x"}])
def test_what_may_change_while_an_instance_rests_proves_nothing(when: Any) -> None:
    """It rests because the condition does not hold; by the time of the event it may."""
    table = tabulate(
        machine(
            {
                "a": {"always": {"to": "b", "when": when}, "on": {"go": {"to": "b", "when": when}}},
                "b": {"final": True},
            }
        )
    )
    assert [(m.action, m.impossible) for m in table.missed if m.action] == [("go/b", False)]


def test_a_guard_on_the_instance_itself_proves_nothing() -> None:
    table = tabulate(
        machine(
            {
                "a": {"on": {"go": {"to": "b", "when": "instance.version == 3"}, "stay": {}}},
                "b": {"final": True},
            }
        )
    )
    found = {case.branch.action for case in table.taken if case.branch}
    assert found == {"stay", "go/b"}  # it stays twice, and then its version is 3
    assert table.missed == ()


def test_every_region_is_tried() -> None:
    table = tried(
        machine(
            {
                "p": {
                    "type": "parallel",
                    "states": {
                        "x": {
                            "initial": "a",
                            "states": {"a": {"on": {"go": "b"}}, "b": {"final": True}},
                        },
                        "y": {
                            "initial": "a",
                            "states": {"a": {"after": {"1h": "b"}}, "b": {"final": True}},
                        },
                    },
                    "on_done": "end",
                },
                "end": {"final": True},
            }
        )
    )
    assert table.missed == ()
    assert len(table.taken) == len(table.definition.flat.branches) + 1


def test_equal_machines_have_equal_tables() -> None:
    states = {"a": {"on": {"go": {"to": "b", "when": "data.n > 3"}}}, "b": {"final": True}}
    data = {"n": {"type": "integer"}, "m": {"type": "integer"}}
    one = tabulate(machine(states, data=data))
    other = tabulate(
        machine({name: states[name] for name in ("a", "b")}, data=dict(reversed(data.items())))
    )
    assert [str(case) for case in one.taken] == [str(case) for case in other.taken]
    assert [case.begin.data for case in one.taken] == [case.begin.data for case in other.taken]


def test_without_a_solver_plain_comparisons_are_answered_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(**_: object) -> None:
        raise ImportError("no z3")

    monkeypatch.setattr("interlock.language.proof.prove.Formulas", missing)
    definition = define(
        {
            "machine": "m",
            "data": {"n": {"type": "integer"}, "k": {"type": "integer"}},
            "initial": "a",
            "states": {
                "a": {
                    "on": {
                        "plain": {"to": "b", "when": "data.n > 12"},
                        "hard": {"to": "b", "when": "data.n * data.n == 49 + data.k * 0"},
                    }
                },
                "b": {"final": True},
            },
        },
        prove=False,
    )
    table = tried(definition)
    assert taking(table, "plain/b").begin.data["n"] > 12
    assert [(m.action, m.impossible) for m in table.missed if m.action] == [("hard/b", False)]
    assert "no solver" in next(m.why for m in table.missed if m.action)
