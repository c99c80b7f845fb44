"""`start`, `adopt`, `send`, `can`, `data` and `tick`: instances that an engine runs.

Hooks and guards are Python: `--engine MODULE:NAME` names the engine that has them, an
`interlock.Engine` or a function that makes one of an open store. Without it, an engine that knows
none is made.
"""

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import (
    FILE,
    compiled,
    entry_options,
    id_argument,
    parse_json,
    read_file,
)
from interlock.cli.output import Table, counted, note, say, say_json
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.engine.engine import Engine
    from interlock.language import Definition

engine_option = click.option(
    "--engine", metavar="MODULE:NAME", help="The engine that has the hooks and guards."
)
data_option = click.option(
    "--data", metavar="JSON", callback=parse_json, help="The fields that it begins with."
)


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@data_option
@click.option("--actor", metavar="REF", help="Who begins it.")
@click.option("--subject", metavar="REF", help="The entity whose life it governs.")
@click.option("--key", metavar="TEXT", help="Idempotency key: once more gives the same instance.")
@engine_option
@store_option
@json_option
@pass_session
def start(
    session: Session,
    file: str,
    data: Any,
    actor: str | None,
    subject: str | None,
    key: str | None,
    engine: str | None,
) -> None:
    """Begin an instance of a machine and print its id.

    Makes the store where there is none.

    \b
    Example:
      interlock start order.machine.yaml --data '{"qty": 3}' --subject A-1001
    """
    definition = _read_machine(file)
    with _engine(session, engine, makes=True) as runs, _warnings_noted():
        order = runs.start(
            definition, data, subject_ref=subject, actor_ref=actor, idempotency_key=key
        )
        _tell_begun(session, order.id, order.state)


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.argument("state", metavar="STATE")
@data_option
@click.option("--actor", metavar="REF", help="Who takes it over.")
@click.option("--subject", metavar="REF", help="The entity whose life it governs.")
@click.option("--reason", metavar="TEXT", help="Why.")
@click.option("--key", metavar="TEXT", help="Idempotency key: once more gives the same instance.")
@engine_option
@store_option
@json_option
@pass_session
def adopt(
    session: Session,
    file: str,
    state: str,
    data: Any,
    actor: str | None,
    subject: str | None,
    reason: str | None,
    key: str | None,
    engine: str | None,
) -> None:
    """Begin an instance in mid-life and print its id.

    For a case that began elsewhere; its genesis says so.

    \b
    Example:
      interlock adopt order.machine.yaml open --subject A-17 --reason 'from the old system'
    """
    definition = _read_machine(file)
    with _engine(session, engine, makes=True) as runs, _warnings_noted():
        order = runs.adopt(
            definition,
            state,
            data,
            subject_ref=subject,
            actor_ref=actor,
            reason=reason,
            idempotency_key=key,
        )
        _tell_begun(session, order.id, order.state)


@click.command()
@id_argument
@click.argument("event", metavar="EVENT")
@click.option("--payload", metavar="JSON", callback=parse_json, help="The fields of the event.")
@click.option("--actor", metavar="REF", help="Who sends it.")
@click.option(
    "--assert",
    "asserting",
    metavar="LABEL",
    multiple=True,
    help="Assert a guard; may be repeated.",
)
@entry_options
@engine_option
@store_option
@json_option
@pass_session
def send(
    session: Session,
    /,
    id: str,
    event: str,
    payload: Any,
    actor: str | None,
    asserting: tuple[str, ...],
    engine: str | None,
    **entry: Any,
) -> None:
    """Send an instance an event.

    Prints the state in which all that follows by itself has left it.

    \b
    Example:
      interlock send ID release --assert QP-sign-off --actor qp-director-santos
    """
    with _engine(session, engine) as runs:
        order = runs.get(id)
        state = order.send(event, payload, actor_ref=actor, asserting=asserting, **entry)
    if session.json:
        say_json({"id": id, "event": event, "state": state})
    else:
        say(state)


@click.command()
@id_argument
@click.option("--actor", metavar="REF", help="Who would send.")
@click.option("--assert", "asserting", metavar="LABEL", multiple=True, help="Assert a guard.")
@engine_option
@store_option
@json_option
@pass_session
def can(
    session: Session, id: str, actor: str | None, asserting: tuple[str, ...], engine: str | None
) -> None:
    """List what may be sent to an instance now, and why not the rest.

    \b
    Example:
      interlock can ID
    """
    with _engine(session, engine) as runs:
        listed = runs.can(runs.get(id), asserting=asserting, actor_ref=actor)
    if session.json:
        say_json({"id": id, "events": [possible._asdict() for possible in listed]})
        return
    if not listed:
        note("nothing leads anywhere from here")
        return
    rows = [(possible.event, possible.to_state, possible.message) for possible in listed]
    Table("EVENT", "LEADS TO", "WHY NOT").page(rows)


@click.command()
@id_argument
@click.option(
    "--at-sequence",
    metavar="N",
    type=click.IntRange(min=0),
    help="As with this entry; 0: the birth.",
)
@store_option
@json_option
@pass_session
def data(session: Session, id: str, at_sequence: int | None) -> None:
    """Print the data of an instance, rebuilt from the record.

    \b
    Example:
      interlock data ID --at-sequence 3
    """
    with _engine(session, None) as runs:
        found = runs.get(id).data_at(at_sequence)
    say_json(found, indent=None if session.json else 2)


@click.command()
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="Look at no more timers than this."
)
@engine_option
@store_option
@json_option
@pass_session
def tick(session: Session, limit: int | None, engine: str | None) -> None:
    """Let every timer that is due run out.

    Sweeps once, for cron; any number may sweep at once.

    \b
    Example:
      interlock tick --engine shop.machines:engine
    """
    with _engine(session, engine) as runs, _warnings_noted():
        fired = runs.tick(limit=limit)
    if session.json:
        say_json({"fired": fired})
    else:
        say(f"{counted(fired, 'timer')} ran out")


@contextmanager
def _warnings_noted() -> Iterator[None]:
    """Tell of warnings in our own words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            note(str(warning.message))


def _tell_begun(session: Session, id: str, state: str) -> None:
    if session.json:
        say_json({"id": id, "state": state})
    else:
        say(id)


def _read_machine(file: str) -> "Definition":
    """Compile the machine in a file, or show what is wrong with it."""
    from interlock.language import is_definition

    document = read_file(file)
    if not is_definition(document):
        what = "is no machine; `interlock instantiate` begins instances of declarations"
        raise click.UsageError(f"`{file}` {what}")
    return compiled(document)


@contextmanager
def _engine(session: Session, named: str | None, *, makes: bool = False) -> "Iterator[Engine]":
    """Give the engine that is named, or one that knows no hooks.

    An engine that exists has a store of its own, which has to be the one that is named, if any is.
    """
    from interlock.engine.engine import Engine
    from interlock.engine.hooks import Unregistered

    made = _find(named) if named is not None else Engine
    if isinstance(made, Engine):
        if session.url is not None:
            raise click.UsageError(f"`{named}` has a store of its own; leave out --store")
        yield made
        return
    with session.made_store() if makes else session.existing_store() as store:
        if not callable(made):
            raise click.UsageError(f"`{named}` is no engine, and makes none")
        engine = made(store)
        if not isinstance(engine, Engine):
            raise click.UsageError(f"`{named}` gave no engine but {type(engine).__name__}")
        try:
            yield engine
        except Unregistered as refusal:
            if named is None:
                refusal.args = (f"{refusal}; `--engine MODULE:NAME` names the engine that has it",)
            raise


def _find(named: str) -> Any:
    """Import what `MODULE:NAME` names, from the current directory too, as `python -m` would."""
    module, colon, name = named.partition(":")
    if not (module and colon and name):
        raise click.UsageError(f"`{named}` is no engine; write MODULE:NAME, such as shop:engine")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise click.UsageError(f"`{named}` cannot be imported: {error}") from error
    return found
