"""`ingest` and `discover`: event logs against declarations, and declarations from event logs."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.cli.arguments import machine_option, read_declaration
from interlock.cli.output import JsonList, Table, counted, note, say, say_json
from interlock.cli.progress import Progress
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock import eventlog

F = TypeVar("F", bound=Callable[..., Any])

PAGE_ROWS = 500
PARTS = ("case", "action", "time", "actor")
TELLING = ("invalid-transition", "terminal", "guard-not-satisfied")  # with the state and the action

_log_argument = click.argument("log", metavar="LOG", type=click.Path(exists=True, dir_okay=False))


def _log_options(command: F) -> F:
    """Give a command the options that say how a log is to be read."""
    options = [
        click.option(
            f"--{part}-column",
            metavar="NAME",
            help=f"The column (key, attribute) that holds the {part}.",
        )
        for part in PARTS
    ]
    options += [
        click.option(
            "--time-zone", metavar="ZONE", help="Of times without an offset, as Europe/Berlin."
        ),
        click.option(
            "--format",
            type=click.Choice(["csv", "jsonl", "xes"]),
            help="The format, where the file's suffix does not tell.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _read_as(options: Mapping[str, str | None]) -> dict[str, Any]:
    """Make the arguments of the eventlog functions out of the options of `_log_options`."""
    from interlock.eventlog import Columns

    parts = {part: options[f"{part}_column"] for part in PARTS}
    others = {name: options[name] for name in ("format", "time_zone")}
    return {"columns": Columns(**parts), **others}


@click.command()
@_log_argument
@machine_option
@_log_options
@click.option("--assert-guards", is_flag=True, help="Take the log's word for every guard.")
@click.option(
    "--source",
    metavar="NAME",
    default="",
    help="Tells apart logs that use the same case ids for different cases.",
)
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Most events in one commit.",
)
@store_option
@json_option
@pass_session
def ingest(
    session: Session,
    /,
    log: str,
    machine: str,
    assert_guards: bool,
    source: str,
    batch: int,
    **options: str | None,
) -> None:
    """Replay an event log against a declaration.

    Each case becomes an instance. Prints which events the declaration refuses; a refused event
    stops its case and no other. Run it again and it goes on where it stopped. Makes the store where
    there is none; with --store sqlite:// nothing is kept.

    \b
    Example:
      interlock ingest orders.csv --machine orders.machine.json --store sqlite:///orders.db
    """
    from interlock import eventlog

    declaration = read_declaration(machine)
    if Path(log).is_file():  # a pipe can be read once only
        next(eventlog.read_log(log, **_read_as(options)), None)  # a fault makes no store
    with session.made_store(lasting=False) as store, _Refusals() as refusals:
        with Progress() as progress, _resumable():
            report = eventlog.ingest(
                store,
                declaration,
                log,
                **_read_as(options),
                assert_guards=assert_guards,
                source=source,
                batch=batch,
                on_refused=refusals.add,
                on_progress=lambda at: progress.show(f"{at.stage} events", at.done, at.total),
            )
        if session.json:
            totals = {k: v for k, v in report.as_dict().items() if k != "refusals"}
            listed = JsonList("refusals", **totals)
            listed.page(refusals)
            listed.end()
        else:
            _show(report, refusals)


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note("what was recorded is kept; the same command again goes on from there")
        raise


class _Refusals:
    """Every refusal of a run, kept in a temporary file: there may be as many as events."""

    def __enter__(self) -> "_Refusals":
        self._file = TemporaryFile("w+", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, refusal: "eventlog.Refusal") -> None:
        self._file.write(f"{json.dumps(refusal._asdict())}\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        return map(json.loads, self._file)


def _show(report: "eventlog.IngestReport", refusals: _Refusals) -> None:
    table = Table("CASE", "POSITION", "LINE", "STATE", "ACTION", "REASON")
    listed = iter(refusals)
    while page := list(islice(listed, PAGE_ROWS)):
        table.page([_row(refusal) for refusal in page])
    if table.rows:
        say()
    say(f"{counted(report.cases, 'case')}, {report.conforming:,} conforming")
    reasons = ", ".join(f"{count:,} {word}" for word, count in sorted(report.reasons.items()))
    say(
        f"{counted(report.events, 'event')}: {report.recorded:,} recorded, "
        f"{report.recognised:,} recorded before, {report.refused:,} refused"
        f"{f' ({reasons})' if reasons else ''}, {report.untried:,} not tried after a refusal"
    )
    if report.undated:
        what = f"{counted(report.undated, 'event')} without a time: dated when recorded"
        note(f"{what}; --time-column names the column of the times")


def _row(refusal: dict[str, Any]) -> list[object]:
    *cells, reason = (
        refusal[key] for key in ("case", "position", "line", "state", "action", "reason")
    )
    return [*cells, reason if reason in TELLING else f"{reason}: {refusal['message']}"]


@click.command()
@_log_argument
@_log_options
@json_option
@pass_session
def discover(
    session: Session,
    /,
    log: str,
    **options: str | None,
) -> None:
    """Print a declaration proposed from an event log.

    A place to start from: what really happens. States are named after the last action, and every
    step that some case took is a transition.

    \b
    Example:
      interlock discover orders.csv > discovered.json
    """
    from interlock import eventlog

    with Progress() as progress:

        def watched() -> "Iterator[eventlog.Event]":
            events = eventlog.read_log(log, **_read_as(options))
            for number, event in enumerate(events, 1):
                progress.show("events read:", number)
                yield event

        declaration = eventlog.discover(watched())
    say_json(declaration, indent=None if session.json else 2)
