"""Where a store is: its URL.

    sqlite:///batches.db                      a file, relative to the working directory
    sqlite:////var/lib/batches.db             a file, absolute
    sqlite://                                 in memory, gone when it is closed
    sqlite:///batches.db?synchronous=normal   with settings

Settings: `synchronous` (full, normal), `busy_ms` (how long to wait for another process), `mode`
(`rw`; `ro` reads without writing; `rwc`, the rule, makes the file where there is none).
"""

from pathlib import Path
from urllib.parse import parse_qsl, unquote

from interlock.core.rejection import InvalidRequest
from interlock.core.text import clipped, nearest, quoted
from interlock.store.sqlite.database import Database, Settings

_CHOICES = {"synchronous": ("full", "normal"), "mode": ("rwc", "rw", "ro")}


def open_database(url: object, tenant: str, schema: str | None) -> Database:
    return Database(parse_url(url))


def parse_url(url: object) -> Settings:
    """Read a store's URL.

    Raises:
        InvalidRequest: it is no URL of a store, or a setting is unknown.
    """
    if not isinstance(url, str):
        raise _refusal(f"is text such as `sqlite:///batches.db`, not {type(url).__name__}")
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise _refusal(f"{quoted(url)} is no store; did you mean `sqlite:///{clipped(url)}`?")
    if scheme != "sqlite":
        raise _refusal(
            f"{quoted(url)} is no store: {quoted(scheme)} is not known; use `sqlite:///FILE`"
        )
    place, _, query = rest.partition("?")
    if place and not place.startswith("/"):
        raise _refusal(f"{quoted(url)} names a host; a file has three slashes: `sqlite:///{place}`")
    settings = Settings(_path(place.removeprefix("/")) if place else None)
    given: set[str] = set()
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in given:
            raise _refusal(f"has the setting {quoted(name)} twice")
        given.add(name)
        settings = _with_setting(settings, name, value)
    if settings.path is None and not settings.create:
        raise _refusal("is in memory, where every store is new; leave out `mode`")
    return settings


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
    choice, choices = value.lower(), _CHOICES.get(name)
    if choices and choice not in choices:
        raise _refusal(f"setting `{name}` is one of {', '.join(choices)}, not {quoted(value)}")
    if name == "synchronous":
        return settings._replace(synchronous=choice.upper())
    if name == "mode":
        return settings._replace(read_only=choice == "ro", create=choice == "rwc")
    if name == "busy_ms":
        if not (value.isascii() and value.isdecimal()):
            raise _refusal(
                f"setting `busy_ms` is a whole number of milliseconds, not {quoted(value)}"
            )
        digits, longest = value.lstrip("0") or "0", 2**31 - 1
        return settings._replace(busy_ms=min(int(digits), longest) if len(digits) < 11 else longest)
    meant = nearest(name, [*_CHOICES, "busy_ms"])
    hint = (
        f"; did you mean `{meant}`?" if meant else f"; known: {', '.join([*_CHOICES, 'busy_ms'])}"
    )
    raise _refusal(f"has no setting {quoted(name)}{hint}")


def _refusal(fault: str) -> InvalidRequest:
    return InvalidRequest(f"the store's URL {fault}", argument="url")
