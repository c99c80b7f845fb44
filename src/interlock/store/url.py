"""Where a store is: its URL.

    sqlite:///batches.db                      a file, relative to the working directory
    sqlite:////var/lib/batches.db             a file, absolute
    sqlite://                                 in memory, gone when it is closed
    sqlite:///batches.db?synchronous=normal   with settings
    postgresql://app@db.example/orders        a database on a PostgreSQL server
    postgresql:///orders?schema=process       over a local socket, in a schema of that name

Settings of both: `busy_ms` (how long to wait for others who keep the database, or an instance,
locked), `mode` (`rw`; `ro` reads without writing; `rwc`, the rule, makes the store where there is
none). Of SQLite: `synchronous` (full, normal). Of PostgreSQL: `schema`, `away_ms` (how long a call
goes on with a server that is away), `pool_max` (connections), `together` (yes, no: whether calls
that wait are committed together); what else a PostgreSQL URL says is for the server's client
library, such as `sslmode`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from interlock.core.machine import check_text
from interlock.core.rejection import InvalidRequest
from interlock.core.text import LIMITS, Limits, clipped, nearest, quoted
from interlock.store.sqlite.database import Database, Settings

if TYPE_CHECKING:
    from interlock.store.postgres.settings import Settings as PostgresSettings

_CHOICES = {"synchronous": ("full", "normal"), "mode": ("rwc", "rw", "ro")}
_POSTGRES_CHOICES = {"mode": ("rwc", "rw", "ro"), "together": ("yes", "no")}
_ESCAPES = "write special characters, such as those of a password, as %40 for @ or %2F for /"
POSTGRES_SETTINGS = ("schema", "busy_ms", "away_ms", "pool_max", "together", "mode")
_INDEX_ROW_BYTES = 2704  # BTMaxItemSize, of pages of 8 KB
_BESIDE_BYTES = 200  # of an index row: a digest, or an id and its root, and what each column takes
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_NO_URL = f"is no URL of PostgreSQL; {_ESCAPES}"
_EXAMPLES = "`sqlite:///FILE` or `postgresql://HOST/DATABASE`"


def open_database(url: object, tenant: str, schema: str | None, limits: Limits) -> Any:
    """Open the database of a URL for a tenant.

    Raises:
        InvalidRequest: it is no URL of a store; the tenant or the schema is no name; the limits are
            more than the database can hold.
        StorageFailure: there is no store, or it cannot be opened.
    """
    settings = _settings(url, tenant, schema, limits)
    if isinstance(settings, Settings):
        return Database(settings)
    from interlock.store.postgres.database import Database as Postgres

    return Postgres(settings, tenant)


def open_async_database(url: object, tenant: str, schema: str | None, limits: Limits) -> Any:
    """Give the asynchronous database of a URL, which is yet to be opened.

    Raises:
        InvalidRequest: as `open_database`.
    """
    settings = _settings(url, tenant, schema, limits)
    if isinstance(settings, Settings):
        from interlock.store.sqlite.async_database import AsyncDatabase

        return AsyncDatabase(settings)
    from interlock.store.postgres.async_database import AsyncDatabase as Postgres

    return Postgres(settings, tenant)


def _settings(
    url: object, tenant: str, schema: str | None, limits: Limits
) -> "Settings | PostgresSettings":
    if tenant != "":  # which is none
        check_text("tenant", tenant, LIMITS.reference_bytes)
    if not isinstance(limits, Limits):
        what = f"`limits` is an `interlock.Limits`, not {type(limits).__name__}"
        raise InvalidRequest(what, argument="limits")
    if is_postgres(url):
        settings = parse_postgres(url, schema)
        _check_limits(limits, tenant)
        return settings
    if schema is not None:
        raise InvalidRequest("`schema` is for PostgreSQL; SQLite has none", argument="schema")
    return parse_url(url)


def _check_limits(limits: Limits, tenant: str) -> None:
    """Refuse limits of texts that an index on PostgreSQL could not hold beside the tenant.

    Names stand there in twos, as the state and the action of a transition.
    """
    left = _INDEX_ROW_BYTES - _BESIDE_BYTES - len(tenant.encode())
    for name, most in (("name_bytes", left // 2), ("reference_bytes", left)):
        given = getattr(limits, name)
        if given > most:
            what = f"`limits` has a `{name}` of {given}, and on PostgreSQL, whose index rows end at"
            raise InvalidRequest(
                f"{what} {_INDEX_ROW_BYTES} bytes, it is at most {most} for this tenant",
                argument="limits",
            )


def is_postgres(url: object) -> bool:
    return isinstance(url, str) and url.partition("://")[0] in _POSTGRES_SCHEMES


def parse_postgres(url: Any, schema: str | None) -> "PostgresSettings":
    """Read the URL of a store on PostgreSQL.

    Raises:
        InvalidRequest: a setting is unknown, or psycopg is not installed.
    """
    try:
        import psycopg
        import psycopg_pool  # noqa: F401 - is it there?
    except ImportError as error:
        raise _refusal(f"needs psycopg; `pip install 'interlock[postgres]'` ({error})") from None
    from interlock.store.postgres.migrate import quote_identifier
    from interlock.store.postgres.settings import Settings as PostgresSettings

    place, _, query = url.partition("?")
    given = _given(query)
    others = [(name, given.pop(name)) for name in [*given] if name not in POSTGRES_SETTINGS]
    conninfo = place + (f"?{urlencode(others, quote_via=quote)}" if others else "")
    try:
        told = psycopg.conninfo.conninfo_to_dict(conninfo)
    except (psycopg.ProgrammingError, UnicodeError):  # whose text may have the password
        raise _refusal(_misspelt([name for name, _ in others]) or _NO_URL) from None
    if any("@" in str(told.get(part, "")) for part in ("host", "dbname")):
        raise _refusal(f"has an @ in its host or database; {_ESCAPES}")
    for port in str(told.get("port") or "").split(","):
        if port and not _is_port(port):  # it is not quoted: it may be a password without an @
            raise _refusal("has a port that is no number from 1 to 65535")
    if schema is not None and given.get("schema", schema) != schema:
        raise _refusal(f"says schema {quoted(given['schema'])}, and `schema` {quoted(schema)}")
    settings = PostgresSettings(conninfo)
    for name, value in given.items():
        choice = _chosen(_POSTGRES_CHOICES, name, value)
        if name == "mode":
            settings = settings._replace(read_only=choice == "ro", create=choice == "rwc")
        elif name == "together":
            settings = settings._replace(together=choice == "yes")
        elif name != "schema":
            numbers: dict[str, Any] = {name: _whole_number(name, value)}
            settings = settings._replace(**numbers)
    if not settings.pool_max:
        raise _refusal("setting `pool_max` is at least 1")
    name = given.get("schema", settings.schema) if schema is None else schema
    check_text("schema", name, LIMITS.name_bytes)
    try:
        quote_identifier(name)
    except ValueError as error:
        raise InvalidRequest(f"`schema`: {error}", argument="schema") from None
    return settings._replace(schema=name)


def _is_port(text: str) -> bool:
    digits = text.lstrip("0")
    return text.isascii() and text.isdecimal() and len(digits) < 6 and 0 < int(digits or 0) < 2**16


def _misspelt(names: list[str]) -> str | None:
    """Say which setting is misspelt, ours or the client library's.

    What resembles none, or has an @, is not quoted: it may be of a password.
    """
    from psycopg.pq import Conninfo

    of_libpq = [option.keyword.decode() for option in Conninfo.get_defaults()]
    known = [*POSTGRES_SETTINGS, *of_libpq, "ssl"]  # `ssl=true`, which URLs alone may say
    odd = [name for name in names if name not in known]
    if not odd or any("@" in name for name in odd):
        return None
    for name in odd:
        if meant := nearest(name.lower(), known):
            return f"has no setting {quoted(name)}; did you mean `{meant}`?"
    ours = ", ".join(POSTGRES_SETTINGS)
    return f"has a setting that is neither ours ({ours}) nor of PostgreSQL's client library"


def parse_url(url: object) -> Settings:
    """Read the URL of a store on SQLite.

    Raises:
        InvalidRequest: it is no URL of a store, or a setting is unknown.
    """
    if not isinstance(url, str):
        raise _refusal(f"is text such as `sqlite:///batches.db`, not {type(url).__name__}")
    scheme, separator, rest = url.partition("://")
    if not separator:
        meant = f"sqlite:///{clipped(url)}" if _shown(url) == quoted(url) else "postgresql://…"
        raise _refusal(f"{_shown(url)} is no store; did you mean `{meant}`?")
    if scheme != "sqlite":
        raise _refusal(f"{_shown(url)} is no store: {quoted(scheme)} is not known; use {_EXAMPLES}")
    place, _, query = rest.partition("?")
    if place and not place.startswith("/"):
        raise _refusal(f"{_shown(url)} names a host; a file has three slashes: `sqlite:///FILE`")
    settings = Settings(_path(place.removeprefix("/")) if place else None)
    for name, value in _given(query).items():
        settings = _with_setting(settings, name, value)
    if settings.path is None and not settings.create:
        raise _refusal("is in memory, where every store is new; leave out `mode`")
    return settings


def _given(query: str) -> dict[str, str]:
    """Read the settings of a URL, each of which stands there once."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in given:
            raise _refusal(f"has the setting {quoted(name)} twice")
        given[name] = value
    return given


def _path(place: str) -> Path | None:
    try:
        name = unquote(place, errors="strict")
        name.encode()
    except UnicodeError:
        raise _refusal("is of a file whose name is not UTF-8") from None
    if "\0" in name:
        raise _refusal("holds a NUL character")
    if not name:
        raise _refusal("names no file; a store in memory is `sqlite://`")
    return None if name == ":memory:" else Path(name)


def _with_setting(settings: Settings, name: str, value: str) -> Settings:
    choice = _chosen(_CHOICES, name, value)
    if name == "synchronous":
        return settings._replace(synchronous=choice.upper())
    if name == "mode":
        return settings._replace(read_only=choice == "ro", create=choice == "rwc")
    if name == "busy_ms":
        return settings._replace(busy_ms=_whole_number(name, value))
    meant = nearest(name, [*_CHOICES, "busy_ms"])
    hint = (
        f"; did you mean `{meant}`?" if meant else f"; known: {', '.join([*_CHOICES, 'busy_ms'])}"
    )
    raise _refusal(f"has no setting {quoted(name)}{hint}")


def _chosen(choices: dict[str, tuple[str, ...]], name: str, value: str) -> str:
    choice, known = value.lower(), choices.get(name)
    if known and choice not in known:
        raise _refusal(f"setting `{name}` is one of {', '.join(known)}, not {quoted(value)}")
    return choice


def _whole_number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal()):
        what = "a whole number of milliseconds" if name.endswith("_ms") else "a whole number"
        raise _refusal(f"setting `{name}` is {what}, not {quoted(value)}")
    digits, longest = value.lstrip("0") or "0", 2**31 - 1
    return min(int(digits), longest) if len(digits) < 11 else longest


def _shown(url: str) -> str:
    """Quote a URL, but for what may be a password."""
    if "@" not in url and "password" not in url:
        return quoted(url)
    return quoted(f"{url.partition(':')[0]}:…")


def _refusal(fault: str) -> InvalidRequest:
    return InvalidRequest(f"the store's URL {fault}", argument="url")
