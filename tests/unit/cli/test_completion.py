"""`completion`, and what a shell is offered."""

import pytest

from tests.support.machines import arrow, declare
from tests.unit.cli.line import CommandLine


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(run: CommandLine, shell: str) -> None:
    script = run.ok("completion", shell)
    assert "_INTERLOCK_COMPLETE" in script
    assert run.json("completion", shell) == {"shell": shell, "script": script[:-1]}


def test_the_shells_that_are_known(run: CommandLine) -> None:
    assert "'bash', 'zsh', 'fish'" in run.misused("completion", "tcsh")
    run.misused("completion")


def offered(run: CommandLine, *words: str) -> list[str]:
    """Ask as bash does; give what is offered for the last word."""
    env = {
        "_INTERLOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(["interlock", *words]),
        "COMP_CWORD": str(len(words)),
        "INTERLOCK_STORE": run.url,
    }
    result = run(env=env)
    assert result.exit_code == 0
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


def test_commands_and_options(run: CommandLine) -> None:
    assert offered(run, "hi") == ["history"]
    assert "--at-sequence" in offered(run, "replay", "ID", "--at")


def test_the_actions_from_where_an_instance_stands(run: CommandLine, batch: str) -> None:
    assert offered(run, "fire", batch, "") == ["begin-testing"]
    run.ok("fire", batch, "begin-testing")
    assert offered(run, "fire", batch, "") == ["release", "reject-batch"]
    assert offered(run, "fire", batch, "rel") == ["release"]
    run.ok("fire", batch, "release", "--guard")
    assert offered(run, "fire", batch, "") == []


def test_nothing_is_offered_where_something_is_wrong(run: CommandLine, batch: str) -> None:
    assert offered(run, "fire", "nosuch", "") == []
    assert offered(run, "--store", "sqlite:///nosuch.db", "fire", batch, "") == []
    assert offered(run, "--store", "rubbish", "fire", batch, "") == []
    assert offered(run, "fire", "--at", "noon", batch, "") == ["begin-testing"]
    assert not (run.folder / "nosuch.db").exists()


def test_what_does_not_print_is_not_offered(run: CommandLine) -> None:
    actions = ["go\nrm", "go\x1b", "go on"]
    rows = [arrow("a", action, "a") for action in actions]
    id = run.ok("instantiate", run.declare(declare(["a"], rows))).strip()
    assert offered(run, "fire", id, "") == ["go on"]
