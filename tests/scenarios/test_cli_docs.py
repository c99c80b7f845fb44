"""`docs/cli.md` is a session: its commands are run, and print what the page says.

Ids and times differ from run to run; all else must be equal. `REWRITE=1` writes the page anew with
what the commands print, to be reviewed as a diff.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.program import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cli.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
END = "\x1e"

VARYING = [
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|\+00:00)"), "<time>"),
]


def steps_of(page: str) -> list[tuple[str, str]]:
    """List the commands of a page, each with what it prints."""
    steps: list[tuple[str, str]] = []
    for line in "".join(BLOCK.findall(page)).splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append((line[2:].rstrip("\n"), ""))
        else:
            command, printed = steps[-1]
            steps[-1] = (command, printed + line)
    return steps


def play(commands: list[str], folder: Path) -> list[str]:
    """Run commands in one shell; give what each prints."""
    program = f"interlock() {{ '{sys.executable}' -m interlock \"$@\"; }}\n"
    script = program + "".join(f"{{ {command}\n}} 2>&1; printf '{END}'\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "INTERLOCK_STORE"},
    )
    return done.stdout.split(END)[:-1]


def plain(text: str) -> str:
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the page is written for bash")
def test_the_page_is_what_happens(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    page = PAGE.read_text(encoding="utf-8")
    steps = steps_of(page)
    printed = play([command for command, _ in steps], tmp_path)
    if os.environ.get("REWRITE"):
        for (command, said), says in zip(steps, printed, strict=True):
            if plain(said) != plain(says):
                page = page.replace(f"$ {command}\n{said}", f"$ {command}\n{says}")
        PAGE.write_text(page, encoding="utf-8")
    for (command, said), says in zip(steps_of(page), printed, strict=True):
        assert plain(says) == plain(said), command


def test_the_page_has_every_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert re.search(rf"`{name}[ `]", page), name


def test_the_page_has_every_option() -> None:
    from interlock.cli import program

    page = PAGE.read_text(encoding="utf-8")
    for name in COMMANDS:
        command = program.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert option in page, f"{name} {option}"
