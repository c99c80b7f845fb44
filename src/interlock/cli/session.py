"""What every command is told: which store, and whether to answer in JSON.

Both options may stand before the command or after it; after it wins. A store that is only read or
fired at is never created, so that a misspelt name is a refusal and no empty file.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.core.rejection import StorageFailure

if TYPE_CHECKING:
    from pathlib import Path

    from interlock.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "INTERLOCK_STORE"


@dataclass
class Session:
    """The options common to all commands.

    Attributes:
        url: the store that the command line names, if it does.
        json: answer with one JSON document.
    """

    url: str | None = None
    json: bool = False

    def existing_store(self) -> "Store":
        """Open the store, which has to be there.

        Raises:
            UsageError: no store is named, or none that a command could find again.
            InvalidRequest, StorageFailure: as of `interlock.open`.
        """
        from interlock.store.store import open

        url = self._lasting_url()
        try:
            return open(_without_creating(url))
        except StorageFailure as failure:
            if _could_be_made(url):
                hint = "there is no store; `interlock instantiate` and `interlock ingest` make one"
                failure.args = (f"{failure} ({hint})",)
            raise

    def made_store(self, *, lasting: bool = True) -> "Store":
        """Open the store, making it where there is none.

        Args:
            lasting: it shall be there after the command; else it may be in memory.

        Raises:
            UsageError, InvalidRequest, StorageFailure: as of `existing_store`.
        """
        from interlock.store.store import open

        return open(self._lasting_url() if lasting else self._named_url())

    def _lasting_url(self) -> str:
        url = self._named_url()
        if _file_of(url) is None:
            raise click.UsageError(
                f"`{url}` is a store in memory, and gone when the command ends; "
                "name a file: sqlite:///FILE"
            )
        return url

    def _named_url(self) -> str:
        url = self.url if self.url is not None else os.environ.get(VARIABLE)
        if not url:
            raise click.UsageError(
                f"no store is named: give --store URL or set {VARIABLE}, "
                "for example to sqlite:///batches.db"
            )
        return url


def _without_creating(url: str) -> str:
    from urllib.parse import parse_qsl

    _, question, query = url.partition("?")
    if any(name == "mode" for name, _ in parse_qsl(query, keep_blank_values=True)):
        return url
    return f"{url}{'&' if query else '' if question else '?'}mode=rw"


def _file_of(url: str) -> "Path | None":
    from interlock.store.url import parse_url

    return parse_url(url).path


def _could_be_made(url: str) -> bool:
    """Whether there is nothing yet where the store should be, but a place for it."""
    path = _file_of(url)
    if path is None or not path.exists():
        return path is not None and path.parent.is_dir()
    return path.is_file() and path.stat().st_size == 0


pass_session = click.make_pass_decorator(Session, ensure=True)


def store_option(command: F) -> F:
    """Give a command `--store`."""
    return click.option(
        "--store",
        metavar="URL",
        callback=_keep_url,
        expose_value=False,
        help=f"The store, such as sqlite:///batches.db; or set {VARIABLE}.",
    )(command)


def json_option(command: F) -> F:
    """Give a command `--json`."""
    return click.option(
        "--json",
        is_flag=True,
        callback=_keep_json,
        expose_value=False,
        help="Answer with one JSON document; a refusal is one on stderr.",
    )(command)


def _keep_url(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Session).url = value


def _keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Session).json = True
