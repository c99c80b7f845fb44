"""The program as a whole: its commands, its help, its common options."""

import json

import pytest

import interlock
from interlock.cli.program import COMMANDS
from tests.unit.cli.line import MACHINE, CommandLine


def test_it_has_the_commands_of_the_design(run: CommandLine) -> None:
    wanted = (
        "check draw gen schema instantiate fire current history declaration list replay verify "
        "ingest discover convert dump restore conform demo completion start adopt send can data "
        "tick"
    )
    assert set(COMMANDS) == set(wanted.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_one_example(run: CommandLine, name: str) -> None:
    told = run.ok(name, "--help")
    assert told.startswith(f"Usage: interlock {name} ")
    assert told.count("Example:\n") == 1
    example = told.partition("Example:\n")[2].splitlines()[0].strip()
    assert f"interlock {name}" in example
    assert "--json" in told
    assert run.ok(name, "-h") == told


def test_the_help_lists_every_command_in_whole_sentences(run: CommandLine) -> None:
    told = run.ok("--help")
    listed = [line.split()[0] for line in told.partition("Commands:\n")[2].splitlines() if line]
    assert listed[: len(COMMANDS)] == list(COMMANDS)
    assert "..." not in told.partition("Commands:")[2]
    assert "Exit codes: 0 done" in told


def test_version(run: CommandLine) -> None:
    assert run.ok("--version") == f"interlock {interlock.__version__}\n"


def test_no_command_shows_the_help_and_is_wrong_usage(run: CommandLine) -> None:
    result = run()
    assert result.exit_code == 2
    assert result.stdout == run.ok("--help")


def test_a_misspelt_command(run: CommandLine) -> None:
    assert "`curent` is no command (did you mean `current`?)" in run.misused("curent")
    assert "commands: check, draw" in run.misused("xyzzy")


def test_a_misspelt_option(run: CommandLine) -> None:
    assert "--actr" in run.misused("fire", "ID", "go", "--actr", "x")


def test_a_usage_error_in_json(run: CommandLine) -> None:
    result = run("--json", "fire")
    assert result.exit_code == 2
    assert json.loads(result.stderr) == {
        "reason": "wrong-usage",
        "message": "Missing argument 'ID'.",
    }


def test_common_options_stand_before_or_after_the_command(run: CommandLine, batch: str) -> None:
    for arguments in (
        ("--json", "--store", run.url, "current", batch),
        ("current", batch, "--json", "--store", run.url),
        ("--json", "current", "--store", run.url, batch),
        ("--store", "sqlite:///none.db", "--json", "current", batch, "--store", run.url),
    ):
        told = run.ok(*arguments, env={"INTERLOCK_STORE": "sqlite:///nowhere.db"})
        assert json.loads(told) == {"id": batch, "state": "sampled"}


def test_the_command_line_goes_before_the_environment(run: CommandLine, batch: str) -> None:
    told = run.refused("storage-failure", "current", batch, "--store", "sqlite:///a.db", code=3)
    assert "a.db" in told


def test_a_declaration_may_come_through_stdin(run: CommandLine, batch: str) -> None:
    text = run.ok("declaration", batch)
    assert run.ok("check", "-", input=text).startswith("-: ok, 4 states")
    assert run.ok("draw", "-", input=text) == run.ok("draw", MACHINE)


def test_an_unexpected_error_is_told_apart_from_a_refusal(
    run: CommandLine, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("interlock.store.store.Store.current", broken)
    result = run("current", batch)
    assert result.exit_code == 70
    assert "a fault of Interlock itself" in result.stderr
    assert "Traceback" in result.stderr
