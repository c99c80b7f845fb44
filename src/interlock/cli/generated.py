"""`gen`: Python that is written from a machine: typed states, and tests."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.cli.arguments import FILE, compiled, read_file
from interlock.cli.ending import Unsound
from interlock.cli.output import counted, note, say, say_json
from interlock.cli.session import Session, json_option, pass_session
from interlock.core.rejection import StorageFailure

if TYPE_CHECKING:
    from interlock.language import Definition

F = TypeVar("F", bound=Callable[..., Any])


@click.group(subcommand_metavar="types|tests FILE [OPTIONS]")
@json_option
def gen() -> None:
    """Write typed states, or tests, of a machine in Python.

    \b
    Example:
      interlock gen types order.machine.yaml -o order_states.py
    """


def _out_options(command: F) -> F:
    """Give a command `--out` and `--check`."""
    out = click.option(
        "-o", "--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write it there."
    )
    check = click.option(
        "--check", is_flag=True, help="Write nothing; fail if --out is not what would be written."
    )
    return out(check(command))


@gen.command("types")
@click.argument("file", metavar="FILE", type=FILE)
@_out_options
@json_option
@pass_session
def types(session: Session, file: str, out: str | None, check: bool) -> None:
    """Write a module with a class for each state, which a type checker reads.

    \b
    Example:
      interlock gen types order.machine.yaml -o order_states.py
    """
    from interlock.typed.module import write_module

    definition = _compiled(file)
    _finish(session, definition, write_module(definition), out, check, {})


@gen.command("tests")
@click.argument("file", metavar="FILE", type=FILE)
@_out_options
@json_option
@pass_session
def tests(session: Session, file: str, out: str | None, check: bool) -> None:
    """Write a module that tests every state with every trigger.

    What no way was found to is named in it, and on stderr.

    \b
    Example:
      interlock gen tests order.machine.yaml -o test_order_machine.py
    """
    from interlock.witness import tabulate, write_tests

    if file == "-":
        raise click.UsageError("the tests read the machine from its file, which stdin is not")
    definition = _compiled(file)
    table = tabulate(definition)
    folder = Path(out).parent if out is not None else Path()
    path = Path(os.path.relpath(file, folder)).as_posix()
    counts = {
        "taken": len(table.taken),
        "refused": len(table.refused),
        "missed": [{"name": missed.name, "why": missed.why} for missed in table.missed],
    }
    if not session.json:
        for missed in table.missed:
            note(f"no way was found: {missed.name}: {missed.why}")
    _finish(session, definition, write_tests(table, path), out, check, counts)


def _compiled(file: str) -> "Definition":
    """Compile a machine.

    Raises:
        DefinitionError: it has faults, or the file is of something else.
    """
    from interlock.language import DefinitionError, Diagnostic, is_machine

    document = read_file(file)
    if not is_machine(document):
        what = "it is no machine: a bare declaration has neither data nor events"
        raise DefinitionError([Diagnostic(code="missing-key", message=what, file=file)])
    return compiled(document)


def _finish(
    session: Session,
    definition: "Definition",
    text: str,
    out: str | None,
    check: bool,
    counts: dict[str, Any],
) -> None:
    """Print what was written, put it into its file, or compare it with that."""
    told = {"machine": definition.name, "version": definition.version, "digest": definition.digest}
    if check:
        if out is None:
            raise click.UsageError("--check compares with the file that --out names")
        if _read(out) != text:
            raise Unsound("stale", f"`{out}` is not what would be written now; run it anew")
    elif out is not None:
        _write(out, text)
    if session.json:
        say_json({**told, **counts, **({"text": text} if out is None else {"file": out})})
    elif out is None:
        sys.stdout.write(text)
    else:
        lines = counted(text.count("\n"), "line")
        say(f"{out}: {'up to date' if check else f'{lines} written'}")


def _read(out: str) -> str | None:
    try:
        return Path(out).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _write(out: str, text: str) -> None:
    """Replace a file at once.

    Raises:
        StorageFailure: it cannot be written.
    """
    path = Path(out)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"`{out}` cannot be written: {(error.strerror or str(error)).lower()}"
        raise StorageFailure(what, kind="unwritable") from error
