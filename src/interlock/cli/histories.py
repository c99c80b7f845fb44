"""`history` and `replay`: the story of one instance, read in pages."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.arguments import id_argument, moment_option, parse_range
from interlock.cli.ending import Unsound
from interlock.cli.output import JsonList, Table, counted, moment, note, say
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.core.entry import Entry
    from interlock.store.store import Store

PAGE_ENTRIES = 500


@click.command()
@id_argument
@click.option("--action", metavar="NAME", help="Those of this action.")
@click.option("--from", "from_state", metavar="STATE", help="Those that left this state.")
@click.option("--to", "to_state", metavar="STATE", help="Those that led to this state.")
@click.option("--actor", metavar="REF", help="Those of this actor.")
@click.option("--transition-id", metavar="ID", help="The one with this id.")
@click.option("--sequence", metavar="A..B", callback=parse_range, help="Those with these numbers.")
@moment_option("--after", help="Those at this time or later.")
@moment_option("--before", help="Those at this time or earlier.")
@store_option
@json_option
@pass_session
def history(
    session: Session,
    id: str,
    action: str | None,
    from_state: str | None,
    to_state: str | None,
    actor: str | None,
    transition_id: str | None,
    sequence: dict[str, int] | None,
    after: str | None,
    before: str | None,
) -> None:
    """Print the entries of an instance in their order. Filters hold together.

    \b
    Example:
      interlock history ID --action release --after 2026-05-01T00:00:00Z
    """
    times = {"after": after, "before": before}
    given = {
        "action": action,
        "from_state": from_state,
        "to_state": to_state,
        "actor_ref": actor,
        "transition_id": transition_id,
        "sequence_number": sequence,
        "fired_at": {name: time for name, time in times.items() if time is not None} or None,
    }
    query = {name: value for name, value in given.items() if value is not None}
    with session.existing_store() as store:
        entries = _entries(store, id, query)
        if session.json:
            listed = JsonList("entries", id=id)
            listed.page(entry.as_dict() for entry in entries)
            listed.end()
            return
        table = Table("#", "TIME", "ACTION", "FROM", "TO", "ACTOR", "NOTES")
        while page := list(islice(entries, PAGE_ENTRIES)):
            table.page([_row(entry) for entry in page])
    if not table.rows:
        note("no entries")


def _row(entry: "Entry") -> tuple[object, ...]:
    moves = (entry.action, entry.from_state, entry.to_state)
    return (entry.sequence_number, moment(entry.fired_at), *moves, entry.actor_ref, _notes(entry))


def _notes(entry: "Entry") -> str:
    from interlock.core.entry import PURGED

    reason = "(destroyed)" if entry.reason is PURGED else entry.reason
    parts = {
        "reason": reason,
        "correlation": entry.correlation_id,
        "causation": entry.causation_id,
        "worker": entry.worker_id,
    }
    said = [f"{name}: {value}" for name, value in parts.items() if value is not None]
    return "; ".join(["guard asserted"] * bool(entry.guard_satisfied) + said)


def _entries(store: "Store", id: str, query: Mapping[str, Any]) -> "Iterator[Entry]":
    """Give the entries that a query asks for; whatever is wrong with it is told at once."""
    from interlock.core.query import parse_query

    last = store.snapshot(id).version - 1
    parse_query(query)
    windows = _windows(query.get("sequence_number", {}), last)
    return chain.from_iterable(
        store.history(id, {**query, "sequence_number": window}) for window in windows
    )


def _windows(asked: Mapping[str, int], last: int) -> Iterator[dict[str, int]]:
    """Cut the sequence numbers asked for into pages; what is open at an end stays open there."""
    start, end = asked.get("start", 1), min(asked.get("end", last), last)
    cuts = range(start + PAGE_ENTRIES, end + 1, PAGE_ENTRIES)
    starts = [asked.get("start"), *cuts]
    ends = [*(cut - 1 for cut in cuts), asked.get("end")]
    for first, final in zip(starts, ends, strict=True):
        window = {"start": first, "end": final}
        yield {name: bound for name, bound in window.items() if bound is not None}


@click.command()
@id_argument
@click.option(
    "--at-sequence",
    metavar="N",
    type=click.IntRange(min=0),
    help="Replay as far as this entry; 0 is the beginning.",
)
@store_option
@json_option
@pass_session
def replay(session: Session, id: str, at_sequence: int | None) -> None:
    """Replay the history of an instance, step by step.

    Begins in the initial state, and says whether it arrives at the state that the store has.

    \b
    Example:
      interlock replay ID --at-sequence 3
    """
    from interlock.core import machine

    with session.existing_store() as store:
        stored = store.snapshot(id, at_sequence=at_sequence)
        compiled = machine.compile_machine(store.read_declaration(id))
        last = stored.version - 1
        shown = _Steps(session, id, compiled.initial_state)
        entries = _entries(store, id, {"sequence_number": {"end": last}})
        with closing(_accepted(entries, shown.page)) as accepted:
            fault = None
            try:
                state = machine.replay(compiled, accepted)
            except ValueError as broken:
                fault = str(broken)
    if fault is None and shown.count < last:
        fault = f"the history ends at entry {shown.count}, but {last} were recorded"
    if fault is None and state != stored.state:
        fault = f"it leads to `{state}`, but the store has `{stored.state}`"
    shown.end(stored.state, fault)
    if fault is not None:
        raise Unsound("replay-mismatch", fault)


def _accepted(
    entries: "Iterator[Entry]", follow: "Callable[[list[Entry]], None]"
) -> "Generator[Entry, None, None]":
    """Pass entries on, and tell `follow`, in pages, of those after which another was asked for."""
    page: list[Entry] = []
    try:
        for entry in entries:
            yield entry
            page.append(entry)
            if len(page) == PAGE_ENTRIES:
                follow(page)
                page = []
    finally:
        follow(page)


class _Steps:
    """The steps of a replay, as they are shown."""

    def __init__(self, session: Session, id: str, initial_state: str) -> None:
        self.count = 0
        self.state = initial_state
        self._json = session.json
        self._listed = JsonList("steps", id=id, initial_state=initial_state)
        self._table = Table("#", "ACTION", "STATE")
        self._rows: list[tuple[object, ...]] = [(0, "", initial_state)]  # before the first page

    def page(self, entries: "list[Entry]") -> None:
        self.count += len(entries)
        if entries:
            self.state = entries[-1].to_state
        rows = [(entry.sequence_number, entry.action, entry.to_state) for entry in entries]
        if self._json:
            names = ("sequence_number", "action", "state")
            self._listed.page(dict(zip(names, row, strict=True)) for row in rows)
        else:
            self._table.page([*self._rows, *rows])
            self._rows = []

    def end(self, stored: str, fault: str | None) -> None:
        if self._json:
            ends = {"state": self.state, "stored_state": stored}
            self._listed.end(ok=fault is None, **ends, fault=fault)
        elif fault is None:
            say(f"arrives at `{stored}`, as recorded, after {counted(self.count, 'entry')}")
        else:
            say(f"does not arrive: {fault}")
