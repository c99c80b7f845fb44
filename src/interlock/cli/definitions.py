"""`check` and `draw`: declarations in files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import FILE, read_declaration
from interlock.cli.ending import Unsound
from interlock.cli.output import counted, say, say_json
from interlock.cli.session import Session, json_option, pass_session

if TYPE_CHECKING:
    from interlock.language import Diagnostic


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@json_option
@pass_session
def check(session: Session, files: tuple[str, ...]) -> None:
    """Check declarations in JSON or YAML; - is stdin.

    All faults are shown, each at its place in the file.

    \b
    Example:
      interlock check orders.machine.json
    """
    faults: list[Diagnostic] = []
    definitions = []
    for file in files:
        declaration, found = _checked(file)
        faults += found
        if declaration is not None:
            definitions.append(_summary(file, declaration))
        if not session.json:
            _show(file, declaration, found)
    if session.json:
        diagnostics = [diagnostic.as_dict() for diagnostic in faults]
        say_json({"ok": not faults, "diagnostics": diagnostics, "definitions": definitions})
    if faults:
        where = f"{len(files) - len(definitions)} of {counted(len(files), 'file')}"
        raise Unsound("invalid-declaration", f"{counted(len(faults), 'fault')} in {where}")


def _checked(file: str) -> tuple[dict[str, Any] | None, "list[Diagnostic]"]:
    from interlock.language import DefinitionError

    try:
        return read_declaration(file), []
    except DefinitionError as error:
        return None, list(error.diagnostics)


def _summary(file: str, declaration: dict[str, Any]) -> dict[str, Any]:
    from interlock.core.declaration import declaration_digest, declaration_text

    return {
        "kind": "declaration",
        "name": None if file == "-" else Path(file).name.partition(".")[0],
        "version": None,  # a bare declaration has none, and its name is that of the file
        "digest": declaration_digest(declaration_text(declaration)),
        "states": len(declaration["states"]),
        "transitions": len(declaration["transitions"]),
        "file": file,
    }


def _show(file: str, declaration: dict[str, Any] | None, found: "list[Diagnostic]") -> None:
    for diagnostic in found:
        sys.stdout.write(f"{diagnostic.show()}\n")  # lines of its own, escaped
    if declaration is not None:
        summary = _summary(file, declaration)
        states = counted(summary["states"], "state")
        transitions = counted(summary["transitions"], "transition")
        say(f"{file}: ok, {states}, {transitions}, digest {summary['digest']}")


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--format",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="The tool that will draw it.",
)
@json_option
@pass_session
def draw(session: Session, file: str, format: str) -> None:
    """Draw a declaration for Mermaid or Graphviz.

    \b
    Example:
      interlock draw orders.machine.json --format dot | dot -Tsvg > orders.svg
    """
    from interlock.language import dot, mermaid

    text = {"mermaid": mermaid, "dot": dot}[format](read_declaration(file))
    if session.json:
        say_json({"format": format, "text": text})
    else:
        sys.stdout.write(text)
