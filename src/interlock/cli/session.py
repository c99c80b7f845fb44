"""What every command is told: which store, whose, and whether to answer in JSON.

The options may stand before the command or after it; after it wins. A store that is only read or
fired at is never created, so that a misspelt name is a refusal and no empty file.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.core.rejection import StorageFailure

if TYPE_CHECKING:
    from interlock.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "INTERLOCK_STORE"
TENANT_VARIABLE = "INTERLOCK_TENANT"


@dataclass
class Session:
    """The options common to all commands.

    Attributes:
        url, tenant: the store that the command line names, if it does, and whose it is.
        json: answer with one JSON document.
    """

    url: str | None = None
    tenant: str | None = None
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
            return open(_without_creating(url), tenant=self._tenant())
        except StorageFailure as failure:
            if _could_be_made(url, failure):
                what = "`interlock instantiate`, `start`, `ingest` and `restore` make one"
                hint = f"there is no store; {what}"
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

        url = self._lasting_url() if lasting else self._named_url()
        return open(url, tenant=self._tenant())

    def _tenant(self) -> str:
        return self.tenant if self.tenant is not None else os.environ.get(TENANT_VARIABLE, "")

    def _lasting_url(self) -> str:
        url = self._named_url()
        if not _is_lasting(url):
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


def _is_lasting(url: str) -> bool:
    from interlock.store.url import is_postgres, parse_url

    return is_postgres(url) or parse_url(url).path is not None


def _could_be_made(url: str, failure: StorageFailure) -> bool:
    """Whether there is nothing yet where the store should be, but a place for it."""
    from interlock.store.url import is_postgres, parse_url

    if is_postgres(url):
        # The server's own word, which is the cause, is of a database that is not there either.
        return failure.kind == "missing" and failure.__cause__ is None
    path = parse_url(url).path
    if path is None or not path.exists():
        return path is not None and path.parent.is_dir()
    return path.is_file() and path.stat().st_size == 0


pass_session = click.make_pass_decorator(Session, ensure=True)


def store_option(command: F) -> F:
    """Give a command `--store` and `--tenant`."""
    named = click.option(
        "--store",
        metavar="URL",
        callback=_keep_url,
        expose_value=False,
        help=f"The store, such as sqlite:///batches.db; or set {VARIABLE}.",
    )
    owned = click.option(
        "--tenant",
        metavar="NAME",
        callback=_keep_tenant,
        expose_value=False,
        help=f"Whose store it is, where tenants share one; or set {TENANT_VARIABLE}.",
    )
    return named(owned(command))


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


def _keep_tenant(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Session).tenant = value


def _keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Session).json = True
