"""`dump` and `restore`: a store as a file that any store reads back."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlock.cli.output import counted, note, say, say_json
from interlock.cli.progress import Progress
from interlock.cli.session import Session, json_option, pass_session, store_option

if TYPE_CHECKING:
    from interlock.store.transfer import Page


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    default="-",
    help="Write the dump there; stdout when left out.",
)
@store_option
@json_option
@pass_session
def dump(session: Session, ids: tuple[str, ...], out: str) -> None:
    """Write a store, or some of its instances, as JSON lines.

    `restore` reads them back into any store, on SQLite or on PostgreSQL. On stdout the dump is all
    that is printed.

    \b
    Example:
      interlock dump --out monday.jsonl
    """
    to_stdout = out == "-"
    with session.existing_store() as store, Progress() as progress:
        quiet = to_stdout and sys.stdout.isatty()  # where the progress would be drawn over it
        made = store.dump(
            sys.stdout if to_stdout else out,
            ids or None,
            on_page=None if quiet else lambda at: _show(progress, at),
        )
    if to_stdout:
        return
    if session.json:
        say_json({**made._asdict(), "file": out})
    else:
        say(f"{_dumped(made.instances, made.entries)} dumped to `{out}`")


@click.command()
@click.argument(
    "file",
    metavar="[FILE]",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    default="-",
)
@store_option
@json_option
@pass_session
def restore(session: Session, file: str) -> None:
    """Read a dump into a store, from a file or stdin.

    Makes the store where there is none. What the store has already is compared and left as it is;
    an instance that it has otherwise is refused. Run it again and it goes on where it stopped.

    \b
    Example:
      interlock restore monday.jsonl --store sqlite:///copy.db
    """
    from interlock.store.restore import check_header

    from_stdin = file == "-"
    if not from_stdin and Path(file).is_file():  # a pipe can be read once only
        check_header(file)  # a fault makes no store
    with session.made_store() as store, Progress() as progress, _resumable():
        source = sys.stdin if from_stdin else file
        read = store.restore(source, on_page=lambda at: _show(progress, at))
    if session.json:
        say_json(read._asdict())
        return
    told = f"{_dumped(read.instances, read.entries)} in the dump"
    if (read.added_instances, read.added_entries) == (read.instances, read.entries):
        say(f"{told}, all restored")
    else:
        added = _dumped(read.added_instances, read.added_entries)
        say(f"{told}: {added} restored, the rest was there before")


def _show(progress: Progress, at: "Page") -> None:
    progress.show(f"{at.stage} entries:" if at.total is None else at.stage, at.done, at.total)


def _dumped(instances: int, entries: int) -> str:
    return f"{counted(instances, 'instance')}, {counted(entries, 'entry')}"


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note("what was restored is kept; the same command again goes on from there")
        raise
