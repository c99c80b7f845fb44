"""`conform` and `demo`: the engine tried on scratch instances, and shown at work."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlock.cli.arguments import machine_option, read_declaration
from interlock.cli.ending import Unsound
from interlock.cli.output import Table, counted, say, say_json
from interlock.cli.progress import Progress
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.conform import Check


@click.command()
@machine_option
@store_option
@json_option
@pass_session
def conform(session: Session, machine: str) -> None:
    """Try the guarantees on scratch instances of a declaration.

    Runs the active halves of the specification's six acceptance checks, in memory. With --store
    (INTERLOCK_STORE is not looked at) the scratch instances are made in that store, and stay.

    \b
    Example:
      interlock conform --machine orders.machine.json
    """
    from interlock.conform import conform
    from interlock.store.store import open

    declaration = read_declaration(machine)
    open_store = partial(open, session.url or "sqlite://")
    with Progress() as progress:
        checks = conform(
            declaration,
            open_store=open_store,
            on_probe=lambda probes: progress.show("probes:", probes),
        )
    failed = [check.name for check in checks if not check.ok]
    if session.json:
        say_json({"ok": not failed, "checks": [check.as_dict() for check in checks]})
    else:
        table = Table("CHECK", "INVARIANT", "PROBES", "RESULT")
        table.page([_row(check) for check in checks])
        for check in checks:
            for fault in check.faults:
                say(f"FAILED {check.name}: {fault}")
            for gap in check.not_covered:
                say(f"not covered by {check.name}: {gap}")
    if failed:
        names = ", ".join(failed)
        raise Unsound("nonconforming", f"{counted(len(failed), 'check')} failed: {names}")


def _row(check: "Check") -> tuple[object, ...]:
    result = "FAILED" if not check.ok else "ok" if check.probes else "nothing to try"
    return check.name, ", ".join(map(str, check.invariants)), check.probes, result


@click.command()
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put its files; a fresh temporary directory, when left out.",
)
@json_option
@pass_session
def demo(session: Session, directory: Path | None) -> None:
    """See cases move, be refused, survive a crash, and be verified.

    Leaves a database behind to look at, and says where.

    \b
    Example:
      interlock demo
    """
    from interlock.demo import run_demo

    told = run_demo(directory, tell=None if session.json else _say_now)
    if session.json:
        say_json(told.as_dict())
    if not told.ok:
        raise Unsound("demo-failed", "; ".join(told.failures))


def _say_now(line: str) -> None:
    say(line)
    sys.stdout.flush()  # it takes seconds, and is a story
