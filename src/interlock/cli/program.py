"""The program: its commands, found by name and imported one at a time, and the way it ends."""

import sys
from functools import partial
from importlib import import_module
from typing import Any

import click

from interlock import __version__
from interlock.cli.ending import USAGE, exit_code, own_pipes
from interlock.cli.output import prepare_streams
from interlock.cli.session import Session, json_option, store_option
from interlock.core.text import clipped, nearest

# Where each command is, in the order of the help.
COMMANDS = {
    "check": "definitions.check",
    "draw": "definitions.draw",
    "gen": "generated.gen",
    "schema": "definitions.schema",
    "convert": "conversion.convert",
    "instantiate": "moves.instantiate",
    "fire": "moves.fire",
    "start": "machines.start",
    "adopt": "machines.adopt",
    "send": "machines.send",
    "can": "machines.can",
    "data": "machines.data",
    "tick": "machines.tick",
    "current": "reads.current",
    "declaration": "reads.declaration",
    "list": "reads.list_instances",
    "history": "histories.history",
    "replay": "histories.replay",
    "verify": "audit.verify",
    "ingest": "logs.ingest",
    "discover": "logs.discover",
    "dump": "transfers.dump",
    "restore": "transfers.restore",
    "conform": "trials.conform",
    "demo": "trials.demo",
    "completion": "completion.completion",
}


class Program(click.Group):
    """A group that imports a command when it is named, and ends with one of the exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(".")
        command: click.Command = getattr(import_module(f"interlock.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            meant = nearest(args[0], [*COMMANDS])
            hint = f"did you mean `{meant}`?" if meant else f"commands: {', '.join(COMMANDS)}"
            ctx.fail(f"`{clipped(args[0])}` is no command ({hint})")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with own_pipes():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with own_pipes():
            return super().invoke(ctx)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line and exit; never returns."""
        prepare_streams()
        session = Session()
        options |= {"standalone_mode": False, "obj": session}
        sys.exit(exit_code(partial(super().main, *args, **options), session))


@click.command(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 refused, the reason word on stderr; 2 wrong usage; 3 storage.",
)
@store_option
@json_option
@click.version_option(__version__, message="interlock %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Declared state machines that cannot skip a step, with their history in one file.

    \b
    Example:
      interlock demo
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


def main() -> None:
    """Run `interlock` on the arguments of this process."""
    program.main(prog_name="interlock")
