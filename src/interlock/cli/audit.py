"""`verify`: do the records tell a story that their declarations allow?"""

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from interlock.cli.ending import Unsound
from interlock.cli.output import counted, say
from interlock.cli.progress import Progress
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.store.verify import Finding


@click.command()
@click.argument("id", metavar="[ID]", required=False)
@click.option(
    "--since",
    metavar="REPORT",
    type=click.Path(exists=True, dir_okay=False),
    help="An earlier report: finds instances that are gone and histories that were cut.",
)
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the report there, for a later --since.",
)
@store_option
@json_option
@pass_session
def verify(session: Session, id: str | None, since: str | None, report: str | None) -> None:
    """Verify a store, or one instance, from its records alone.

    Findings are printed one a line. With --json the whole report is, as --since takes it.

    \b
    Example:
      interlock verify --report today.json --since yesterday.json
    """
    if report == "-":
        raise click.UsageError("--report names a file; --json prints the report")
    with ExitStack() as stack:
        store = stack.enter_context(session.existing_store())
        progress = stack.enter_context(Progress())
        if session.json and report is None:
            report = f"{stack.enter_context(TemporaryDirectory(prefix='interlock-'))}/report.json"

        def tell(finding: "Finding") -> None:
            progress.wipe()
            say(str(finding))

        found = store.verify(
            id,
            since=since,
            report=report,
            on_finding=None if session.json else tell,
            on_page=lambda entries: progress.show("entries verified:", entries),
        )
        if session.json and report is not None:
            with Path(report).open(encoding="utf-8") as text:
                shutil.copyfileobj(text, sys.stdout)
    over = f"{counted(found.instances, 'instance')}, {counted(found.entries, 'entry')}"
    if not found.ok:
        raise Unsound("findings", f"{counted(found.count, 'finding')} in {over}")
    if not session.json:
        say(f"ok: {over}, no findings")
