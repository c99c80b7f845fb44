"""`current`, `declaration` and `list`: what a store holds now."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import id_argument, read_declaration
from interlock.cli.output import JsonList, Table, counted, moment, note, say, say_json
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.store.read import Instance
    from interlock.store.store import Store

PAGE_ROWS = 500


@click.command()
@id_argument
@store_option
@json_option
@pass_session
def current(session: Session, id: str) -> None:
    """Print the current state of an instance.

    \b
    Example:
      interlock current ID
    """
    with session.existing_store() as store:
        state = store.current(id)
    if session.json:
        say_json({"id": id, "state": state})
    else:
        say(state)


@click.command()
@id_argument
@store_option
@json_option
@pass_session
def declaration(session: Session, id: str) -> None:
    """Print the declaration of an instance.

    As JSON: the values as supplied, in their order.

    \b
    Example:
      interlock declaration ID | interlock draw -
    """
    with session.existing_store() as store:
        say_json(store.read_declaration(id), indent=None if session.json else 2)


@click.command("list")
@click.option("--state", metavar="NAME", help="Those in this state.")
@click.option("--subject", metavar="REF", help="Those of this subject.")
@click.option("--definition", metavar="DIGEST|FILE", help="Those of this declaration.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, sys.maxsize), help="At most this many."
)
@click.option("--after", metavar="ID", help="Those that come after this id.")
@store_option
@json_option
@pass_session
def list_instances(
    session: Session,
    state: str | None,
    subject: str | None,
    definition: str | None,
    limit: int | None,
    after: str | None,
) -> None:
    """List instances by id: about in the order of their births.

    \b
    Example:
      interlock list --state testing --limit 20
    """
    declared = _declared(definition)
    with session.existing_store() as store:
        filters = {"state": state, "subject_ref": subject, "definition": declared}
        found = _Page(_instances(store, after, filters), limit)
        if session.json:
            listed = JsonList("instances")
            listed.page(instance.as_dict() for instance in found)
            listed.end(next=found.next)
            return
        table = Table("ID", "STATE", "VERSION", "BEGUN", "SUBJECT", "ACTOR")
        rest = iter(found)
        while page := list(islice(rest, PAGE_ROWS)):
            table.page([_row(instance) for instance in page])
    if not table.rows:
        note("no instances")
    elif found.next:
        note(f"{counted(table.rows, 'instance')} shown; go on with --after {found.next}")


def _declared(definition: str | None) -> str | dict[str, Any] | None:
    if definition is None or (len(definition) == 64 and set(definition) <= set("0123456789abcdef")):
        return definition
    if definition != "-" and not Path(definition).is_file():
        raise click.UsageError(
            f"`{definition}` is neither a digest (64 hexadecimal digits) nor a file"
        )
    return read_declaration(definition)


def _instances(store: "Store", after: str | None, filters: dict[str, Any]) -> "Iterator[Instance]":
    while page := store.instances(limit=PAGE_ROWS, after=after, **filters):
        yield from page
        after = page[-1].id


class _Page:
    """The first `limit` of some instances.

    Attributes:
        next: once they were iterated: the id to go on after, if there is more.
    """

    def __init__(self, instances: "Iterator[Instance]", limit: int | None) -> None:
        self._instances = instances
        self._limit = limit
        self.next: str | None = None

    def __iter__(self) -> "Iterator[Instance]":
        last = None
        for last in islice(self._instances, self._limit):
            yield last
        if last is not None and next(self._instances, None) is not None:
            self.next = last.id


def _row(instance: "Instance") -> tuple[object, ...]:
    begun = moment(instance.instantiated_at)
    return (
        instance.id,
        instance.state,
        instance.version,
        begun,
        instance.subject_ref,
        instance.actor_ref,
    )
