"""Arguments that several commands take, and what they may look like."""

import sys
from collections.abc import Callable
from json import loads
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.core.instant import parse_instant
from interlock.core.text import clipped

if TYPE_CHECKING:
    from interlock.language import Definition, Document

F = TypeVar("F", bound=Callable[..., Any])


def moment_option(name: str, *, help: str) -> Callable[[F], F]:
    """Give a command an option that is a moment: ISO 8601 with an offset, passed on as it is."""
    return click.option(name, metavar="TIME", callback=_check_moment, help=help)


def _check_moment(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            parse_instant(value)
        except ValueError as fault:
            raise click.BadParameter(f"`{value}` {fault}") from None
    return value


def parse_range(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, int] | None:
    """Read sequence numbers: `3..7`, both ends included, `3..`, `..7`, or `5` alone."""
    if value is None:
        return None
    first, dots, last = value.partition("..")
    ends = {"start": first, "end": last if dots else first}
    given = {name: end for name, end in ends.items() if end}
    if not given or not all(_is_number(end) for end in given.values()):
        raise click.BadParameter(f"`{value}` is no range such as `3..7`, `3..`, `..7` or `5`")
    return {name: int(end) for name, end in given.items()}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def parse_json(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    """Read a JSON value; a key that stands twice in one object is refused, not dropped."""
    try:
        return None if value is None else loads(value, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as fault:
        raise click.BadParameter(f"it is not JSON: {fault}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{clipped(twice)}` stands twice in one object")
    return found


#: A file to be read; `-` is stdin.
FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)

machine_option = click.option(
    "--machine", "machine", metavar="FILE", type=FILE, required=True, help="The declaration."
)


def id_argument(command: F) -> F:
    """Give a command the argument ID."""
    return click.argument("id", metavar="ID")(command)


def entry_options(command: F) -> F:
    """Give a command the options of an entry, named as `Store.fire` and `Handle.send` name them."""
    options = (
        click.option(
            "--expected-version",
            metavar="N",
            type=click.IntRange(min=1),
            help="Refuse unless the instance is at this version.",
        ),
        click.option(
            "--key",
            "idempotency_key",
            metavar="TEXT",
            help="Idempotency key: once more gives the first answer.",
        ),
        click.option("--reason", metavar="TEXT", help="Why."),
        click.option("--correlation-id", metavar="ID", help="What it belongs to."),
        click.option("--causation-id", metavar="ID", help="What brought it about."),
        click.option("--worker-id", metavar="ID", help="The worker that did it."),
    )
    for option in reversed(options):  # the last to be given stands first in the help
        command = option(command)
    return command


def read_declaration(file: str) -> dict[str, Any]:
    """Read a declaration from a file in JSON or YAML, or from stdin; of a machine, its flat one.

    Raises:
        DefinitionError: it cannot be read or is not well formed.
    """
    from interlock.language import declaration_of, is_machine

    document = read_file(file)
    return compiled(document).declaration if is_machine(document) else declaration_of(document)


def compiled(document: "Document", *, prove: bool = True) -> "Definition":
    """Compile a machine.

    Raises:
        DefinitionError: something is wrong with it.
    """
    from interlock.language import DefinitionError, compile_document

    definition, found = compile_document(document, prove=prove)
    if definition is None:
        raise DefinitionError(found)
    return definition


def read_file(file: str) -> "Document":
    """Read a definition file in JSON or YAML, or stdin.

    Raises:
        DefinitionError: it cannot be read.
    """
    from interlock.language import BUDGETS, load_document, read_document

    if file == "-":
        return read_document(sys.stdin.buffer.read(BUDGETS.bytes + 1), file="<stdin>")
    return load_document(file)
