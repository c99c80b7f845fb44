"""`check`, `draw` and `schema`: machines, workflows and bare declarations in files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import FILE, compiled, read_file
from interlock.cli.ending import Unsound
from interlock.cli.output import counted, say, say_json
from interlock.cli.session import Session, json_option, pass_session

if TYPE_CHECKING:
    from interlock.language import Definition, Diagnostic


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--require-proof",
    is_flag=True,
    help="Fail where branches are not proved to exclude each other because no solver is installed.",
)
@click.option("--no-proof", is_flag=True, help="Prove nothing.")
@json_option
@pass_session
def check(session: Session, files: tuple[str, ...], require_proof: bool, no_proof: bool) -> None:
    """Check machines, workflows and declarations; - is stdin.

    All faults are shown, each at its place in the file. Branches of a choice are proved to exclude
    each other, which may need the solver of interlock[prove].

    \b
    Example:
      interlock check orders.machine.json
    """
    if require_proof and no_proof:
        raise click.UsageError("--require-proof and --no-proof exclude each other")
    found: list[Diagnostic] = []
    definitions = []
    for file in files:
        summary, here = _checked(file, prove=not no_proof, require_proof=require_proof)
        found += here
        if summary is not None:
            definitions.append(summary)
        if not session.json:
            _show(file, summary, here)
    ok = len(definitions) == len(files)
    if session.json:
        diagnostics = [diagnostic.as_dict() for diagnostic in found]
        say_json({"ok": ok, "diagnostics": diagnostics, "definitions": definitions})
    if not ok:
        faults = sum(diagnostic.severity == "error" for diagnostic in found)
        where = f"{len(files) - len(definitions)} of {counted(len(files), 'file')}"
        raise Unsound("invalid-declaration", f"{counted(faults, 'fault')} in {where}")


def _checked(
    file: str, *, prove: bool, require_proof: bool
) -> "tuple[dict[str, Any] | None, list[Diagnostic]]":
    """Say what a file defines, unless it has faults, and what was found in it."""
    from interlock.core.declaration import declaration_digest, declaration_text
    from interlock.language import DefinitionError, compile_document, declaration_of, is_definition

    try:
        document = read_file(file)
        if is_definition(document):
            definition, found = compile_document(document, prove=prove, require_proof=require_proof)
            if definition is None:
                return None, found
            if definition.plan is None:
                transitions = len(definition.flat.branches)
                more = {"unproved": len(definition.unproved)}
            else:
                transitions = len(definition.declaration["transitions"])
                more = {"steps": len(definition.plan.steps)}
            named = (definition.kind, definition.name, definition.version, definition.digest)
            counts = len(definition.states), transitions
            return {**_summary(file, *named, *counts), **more}, found
        declaration = declaration_of(document)
    except DefinitionError as error:
        return None, [*error.diagnostics]
    # A bare declaration has no version, and its name is that of the file.
    name = None if file == "-" else Path(file).name.partition(".")[0]
    digest = declaration_digest(declaration_text(declaration))
    counts = len(declaration["states"]), len(declaration["transitions"])
    return _summary(file, "declaration", name, None, digest, *counts), []


def _summary(
    file: str,
    kind: str,
    name: str | None,
    version: str | None,
    digest: str,
    states: int,
    transitions: int,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "version": version,
        "digest": digest,
        "states": states,
        "transitions": transitions,
        "file": file,
    }


def _show(file: str, summary: dict[str, Any] | None, found: "list[Diagnostic]") -> None:
    for diagnostic in found:
        sys.stdout.write(f"{diagnostic.show()}\n")  # lines of its own, escaped
    if summary is not None:
        states = counted(summary["states"], "state")
        transitions = counted(summary["transitions"], "transition")
        if unproved := summary.get("unproved"):
            transitions += f", {counted(unproved, 'pair')} of branches not proved"
        made = f"{states}, {transitions}"
        if (steps := summary.get("steps")) is not None:
            made = counted(steps, "step")
        say(f"{file}: ok, {made}, digest {summary['digest']}")


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--format",
    type=click.Choice(["mermaid", "dot", "svg"]),
    default="mermaid",
    show_default=True,
    help="The tool that will draw it, or svg for an image.",
)
@json_option
@pass_session
def draw(session: Session, file: str, format: str) -> None:
    """Draw a machine, a workflow or a declaration.

    \b
    Example:
      interlock draw orders.machine.json --format svg > orders.svg
    """
    from interlock.language import dot, mermaid, svg

    write = {"mermaid": mermaid, "dot": dot, "svg": svg}[format]
    text = write(_drawn(file))
    if session.json:
        say_json({"format": format, "text": text})
    else:
        sys.stdout.write(text)


@click.command()
@click.argument("kind", type=click.Choice(["machine", "workflow"]), default="machine")
@json_option
@pass_session
def schema(session: Session, kind: str) -> None:
    """Print the JSON Schema of documents, for editors.

    \b
    Example:
      interlock schema workflow > workflow.schema.json
    """
    from interlock.language.schema import machine_schema, schema_text, workflow_schema

    if session.json:
        say_json(machine_schema() if kind == "machine" else workflow_schema())
    else:
        sys.stdout.write(schema_text(kind))


def _drawn(file: str) -> "Definition | dict[str, Any]":
    """Read what a file defines.

    Raises:
        DefinitionError: it cannot be read, or has faults.
    """
    from interlock.language import declaration_of, is_definition

    document = read_file(file)
    return compiled(document, prove=False) if is_definition(document) else declaration_of(document)
