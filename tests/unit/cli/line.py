"""`interlock` run in this process, for tests."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import interlock
from interlock.cli import program

MACHINE = "batch.machine.json"


class CommandLine:
    """Runs `interlock` in this process.

    Attributes:
        url: the store that `INTERLOCK_STORE` names; nothing is there at first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = "sqlite:///store.db"

    def __call__(self, *arguments: object, **options: Any) -> Result:
        options = {"env": {"INTERLOCK_STORE": self.url}, "prog_name": "interlock", **options}
        return CliRunner().invoke(program, [*map(str, arguments)], **options)

    def ok(self, *arguments: object, **options: Any) -> str:
        """Run a command that must succeed, and give what it printed."""
        result = self(*arguments, **options)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def json(self, *arguments: object, **options: Any) -> Any:
        return json.loads(self.ok("--json", *arguments, **options))

    def refused(self, reason: str, *arguments: object, code: int = 1, **options: Any) -> str:
        """Run a command that must be refused, in words and in JSON; give the words."""
        result = self(*arguments, **options)
        assert result.exit_code == code, result.output
        assert f"interlock: {reason}: " in result.stderr
        told = self("--json", *arguments, **options)
        assert told.exit_code == code
        assert json.loads(told.stderr.splitlines()[-1])["reason"] == reason
        return result.stderr

    def misused(self, *arguments: object, **options: Any) -> str:
        """Run a command that is wrong usage; give what it said."""
        result = self(*arguments, **options)
        assert result.exit_code == 2, result.output
        assert "interlock: wrong usage: " in result.stderr
        assert result.stdout == ""
        return result.stderr

    def open(self) -> interlock.Store:
        return interlock.open(self.url)

    def declare(self, declaration: object, name: str = "odd.machine.json") -> str:
        (self.folder / name).write_text(json.dumps(declaration), encoding="utf-8")
        return name
