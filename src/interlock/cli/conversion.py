"""`convert`: machines from and to other formats."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from interlock.cli.arguments import FILE
from interlock.cli.output import json_text, note, say_json
from interlock.cli.session import Session, json_option, pass_session

if TYPE_CHECKING:
    from interlock.language import Diagnostic
    from interlock.language.convert import Converted

FROM = ("auto", "machine", "scxml", "xstate", "symfony")


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--from", "format", type=click.Choice(FROM), default="auto", show_default=True,
    help="What the file is.",
)  # fmt: skip
@click.option(
    "--to", type=click.Choice(["yaml", "json", "scxml"]), default="yaml", show_default=True,
    help="What to write.",
)  # fmt: skip
@click.option("-o", "--out", metavar="FILE", help="Where to write it, rather than to stdout.")
@click.option("--name", metavar="TEXT", help="The machine's name; of several workflows, which one.")
@click.option(
    "--event", "events", metavar="NAME", multiple=True,
    help="An event that may be sent though the file does not name it; wildcards match it.",
)  # fmt: skip
@json_option
@pass_session
def convert(
    session: Session,
    file: str,
    format: str,
    to: str,
    out: str | None,
    name: str | None,
    events: tuple[str, ...],
) -> None:
    """Convert a machine from or to another format.

    What is written is accepted by `check`. What is said otherwise than in the file is told on
    stderr; what cannot be said is refused.

    \b
    Example:
      interlock convert door.scxml -o door.machine.yaml
    """
    from interlock.language.convert.formats import Format
    from interlock.language.convert.formats import convert as converted_from

    given = cast("Format | None", None if format == "auto" else format)
    shown = "<stdin>" if file == "-" else file
    converted = converted_from(_read(file), format=given, name=name, events=events, file=shown)
    text, notes = _written(converted, to, shown)
    if out is not None:
        _keep(out, text)
    if session.json:
        say_json(
            {
                "format": to,
                "text": text,
                "notes": [found.as_dict() for found in notes],
                "states": converted.states,
                "events": converted.events,
            }
        )
        return
    for found in notes:
        note(str(found))
    if out is None:
        sys.stdout.write(text)


def _read(file: str) -> bytes:
    """Read a file or stdin, as far as a definition may be long, and one more for a refusal."""
    from interlock.language import BUDGETS

    if file == "-":
        return sys.stdin.buffer.read(BUDGETS.bytes + 1)
    with Path(file).open("rb") as stream:
        return stream.read(BUDGETS.bytes + 1)


def _written(converted: "Converted", to: str, file: str) -> "tuple[str, list[Diagnostic]]":
    from interlock.language.convert import to_yaml
    from interlock.language.convert.formats import export_scxml

    notes = [*converted.notes]
    if to == "scxml":
        exported = export_scxml(converted.definition, file=f"{file}, as YAML")
        return exported.text, [*notes, *exported.notes]
    if to == "yaml":
        return to_yaml(converted.definition), notes
    return f"{json_text(converted.definition, indent=2)}\n", notes


def _keep(out: str, text: str) -> None:
    """Write a file that is not there yet: nothing that somebody keeps is replaced."""
    try:
        with Path(out).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise click.UsageError(f"`{out}` is there already, and is not replaced") from None
