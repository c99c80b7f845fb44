"""`history` and `replay`."""

import json

import pytest

import interlock
from interlock.cli import histories
from tests.support.machines import TOGGLE
from tests.unit.cli.line import CommandLine


@pytest.fixture
def toggled(run: CommandLine) -> str:
    """An instance with ten entries: `go` from `off` to `on` and back, by an actor in turn."""
    with run.open() as store:
        id = store.instantiate(TOGGLE)
        store.fire_many([interlock.Fire(id, "go", f"a{number % 3}") for number in range(10)])
    return id


def numbers(run: CommandLine, id: str, *arguments: object) -> list[int]:
    entries = run.json("history", id, *arguments)["entries"]
    return [entry["sequence_number"] for entry in entries]


def test_history(run: CommandLine, released: str) -> None:
    head, first, second = run.ok("history", released).splitlines()
    assert head.split() == ["#", "TIME", "ACTION", "FROM", "TO", "ACTOR", "NOTES"]
    number, time, *rest = first.split()
    assert number == "1"
    assert time.endswith("Z")
    assert rest == ["begin-testing", "sampled", "testing", "lab-tech-rivera"]
    assert second.endswith("guard asserted; reason: all within limits")


def test_history_json_is_what_the_store_says(run: CommandLine, released: str) -> None:
    told = run.json("history", released)
    with run.open() as store:
        assert told == {
            "id": released,
            "entries": [entry.as_dict() for entry in store.history(released)],
        }


def test_a_printed_time_finds_its_entry(run: CommandLine, released: str) -> None:
    time = run.ok("history", released).splitlines()[1].split()[1]
    assert numbers(run, released, "--after", time, "--before", time) == [1]


@pytest.mark.parametrize("page", [1, 2, 3, 9, 10, 11, 500])
def test_filters_hold_on_every_page(
    run: CommandLine, toggled: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "PAGE_ENTRIES", page)
    assert numbers(run, toggled) == [*range(1, 11)]
    assert numbers(run, toggled, "--sequence", "3..7") == [3, 4, 5, 6, 7]
    assert numbers(run, toggled, "--sequence", "8..") == [8, 9, 10]
    assert numbers(run, toggled, "--sequence", "..2") == [1, 2]
    assert numbers(run, toggled, "--sequence", "5") == [5]
    assert numbers(run, toggled, "--sequence", "0..99") == [*range(1, 11)]
    assert numbers(run, toggled, "--sequence", "11..") == []
    assert numbers(run, toggled, "--sequence", "999999999999999999") == []
    assert numbers(run, toggled, "--actor", "a1") == [2, 5, 8]
    assert numbers(run, toggled, "--from", "on") == [2, 4, 6, 8, 10]
    assert numbers(run, toggled, "--to", "on", "--sequence", "2..8") == [3, 5, 7]
    assert numbers(run, toggled, "--action", "stop") == []
    assert numbers(run, toggled, "--after", "2001-01-01T00:00:00Z") == [*range(1, 11)]
    assert numbers(run, toggled, "--before", "2001-01-01T00:00:00Z") == []
    entry = run.json("history", toggled, "--sequence", "4")["entries"][0]
    assert numbers(run, toggled, "--transition-id", entry["transition_id"]) == [4]
    assert run.ok("history", toggled).count("ACTION") == 1


def test_no_entries(run: CommandLine, batch: str) -> None:
    result = run("history", batch)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no entries\n")
    assert run.json("history", batch) == {"id": batch, "entries": []}


def test_history_refusals(run: CommandLine, tested: str) -> None:
    run.refused("not-known", "history", "nosuch", "--actor", " ")
    run.refused("invalid-request", "history", " ")
    for filter in ("--actor", "--action", "--from", "--to", "--transition-id"):
        run.refused("invalid-query", "history", tested, filter, " ")
    run.refused("invalid-query", "history", tested, "--sequence", "7..3")
    times = ("--after", "2026-02-01T00:00:00Z", "--before", "2026-01-01T00:00:00Z")
    assert "is reversed" in run.refused("invalid-query", "history", tested, *times)
    result = run("history", tested, "--sequence", "7..3", "--json")
    assert result.stdout == ""


@pytest.mark.parametrize(
    "range", ["", "x", "1...3", "1-3", "-1..2", "..", "1..2..3", "٣", "9" * 5000]
)
def test_a_range_that_is_none(run: CommandLine, tested: str, range: str) -> None:
    run.misused("history", tested, f"--sequence={range}")


def test_history_usage(run: CommandLine, tested: str) -> None:
    run.misused("history")
    run.misused("history", tested, "--after", "yesterday")


def test_a_destroyed_reason_is_told(run: CommandLine, released: str) -> None:
    run.forge("UPDATE payloads SET salt = NULL, content = NULL")
    assert "reason: (destroyed)" in run.ok("history", released)
    assert run.json("history", released)["entries"][1]["reason"] == {"purged": True}


@pytest.mark.parametrize("page", [1, 2, 500])
def test_replay(
    run: CommandLine, released: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "PAGE_ENTRIES", page)
    lines = [line.split() for line in run.ok("replay", released).splitlines()]
    assert lines[:4] == [
        ["#", "ACTION", "STATE"],
        ["0", "sampled"],
        ["1", "begin-testing", "testing"],
        ["2", "release", "released"],
    ]
    assert " ".join(lines[4]) == "arrives at `released`, as recorded, after 2 entries"
    assert run.json("replay", released) == {
        "id": released,
        "initial_state": "sampled",
        "steps": [
            {"sequence_number": 1, "action": "begin-testing", "state": "testing"},
            {"sequence_number": 2, "action": "release", "state": "released"},
        ],
        "ok": True,
        "state": "released",
        "stored_state": "released",
        "fault": None,
    }


def test_replay_to_a_point(run: CommandLine, released: str) -> None:
    for number, state in enumerate(("sampled", "testing", "released")):
        told = run.json("replay", released, "--at-sequence", number)
        assert (told["state"], len(told["steps"])) == (state, number)
    run.refused("invalid-request", "replay", released, "--at-sequence", 3)
    run.misused("replay", released, "--at-sequence", -1)


def test_replay_refusals(run: CommandLine, released: str) -> None:
    run.refused("not-known", "replay", "nosuch")
    run.refused("invalid-request", "replay", "")


@pytest.mark.parametrize(
    ("forgery", "fault", "steps"),
    [
        (
            "UPDATE instances SET current_state = 'testing'",
            "it leads to `released`, but the store has `testing`",
            2,
        ),
        (
            "DELETE FROM history WHERE sequence_number = 1",
            "entry 1 is missing, found 2",
            0,
        ),
        (
            "DELETE FROM history WHERE sequence_number = 2",
            "the history ends at entry 1, but 2 were recorded",
            1,
        ),
        (
            "UPDATE history SET to_state = 'rejected' WHERE sequence_number = 2",
            "entry 2 is not declared: `testing` --release--> `rejected`",
            1,
        ),
    ],
)
def test_a_replay_that_does_not_arrive(
    run: CommandLine,
    released: str,
    forgery: str,
    fault: str,
    steps: int,
) -> None:
    run.forge(forgery)
    told = run.refused("replay-mismatch", "replay", released)
    assert fault in told
    assert f"does not arrive: {fault}\n" in run("replay", released).stdout
    answer = json.loads(run("replay", released, "--json").stdout)
    assert (answer["ok"], answer["fault"], len(answer["steps"])) == (False, fault, steps)
