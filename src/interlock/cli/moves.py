"""`instantiate` and `fire`: the two commands that change a store one call at a time."""

from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import (
    FILE,
    entry_options,
    id_argument,
    moment_option,
    parse_json,
    read_file,
)
from interlock.cli.output import say, say_json
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--actor", metavar="REF", help="Who begins it.")
@click.option("--subject", metavar="REF", help="The entity whose life it governs.")
@click.option(
    "--metadata", metavar="JSON", callback=parse_json, help="Kept with it, never interpreted."
)
@moment_option("--at", help="When it began; now, when left out.")
@click.option("--key", metavar="TEXT", help="Idempotency key: once more gives the same instance.")
@store_option
@json_option
@pass_session
def instantiate(
    session: Session,
    file: str,
    actor: str | None,
    subject: str | None,
    metadata: Any,
    at: str | None,
    key: str | None,
) -> None:
    """Begin an instance of a declaration and print its id.

    Makes the store where there is none.

    \b
    Example:
      interlock instantiate orders.machine.json --subject A-1001 --store sqlite:///orders.db
    """
    from interlock.language import declaration_of, is_definition, is_machine

    document = read_file(file)
    if is_definition(document):
        what = "a machine" if is_machine(document) else "a workflow"
        raise click.UsageError(f"`{file}` is {what}; `interlock start` begins its instances")
    declaration = declaration_of(document)
    with session.made_store() as store:
        id = store.instantiate(declaration, actor, subject, metadata, at, idempotency_key=key)
        if session.json:
            say_json({"id": id, "state": store.current(id)})
        else:
            say(id)


def _complete_action(
    context: click.Context, _: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Offer the actions declared from where the instance stands; nothing, whatever goes wrong."""
    from click.shell_completion import CompletionItem

    from interlock.core.machine import compile_machine

    try:
        id = context.params["id"]
        with context.ensure_object(Session).existing_store() as store:
            actions = compile_machine(store.read_declaration(id)).actions(store.current(id))
    except Exception:  # a shell that completes has no place for an error
        return []
    return [
        CompletionItem(action)
        for action in actions
        if action.startswith(incomplete) and action.isprintable()
    ]


@click.command()
@id_argument
@click.argument("action", metavar="ACTION", shell_complete=_complete_action)
@click.option("--actor", metavar="REF", help="Who fires.")
@click.option("--guard", "--assert-guard", is_flag=True, help="Assert the transition's guard.")
@moment_option("--at", help="When it happened; now, when left out.")
@entry_options
@store_option
@json_option
@pass_session
def fire(
    session: Session,
    /,
    id: str,
    action: str,
    actor: str | None,
    guard: bool,
    at: str | None,
    **entry: Any,
) -> None:
    """Move an instance along a declared transition.

    Prints the new state.

    \b
    Example:
      interlock fire ID release --actor qp-director-santos --guard
    """
    with session.existing_store() as store:
        state = store.fire(id, action, actor, guard or None, at, **entry)
    if session.json:
        say_json({"id": id, "action": action, "state": state})
    else:
        say(state)
