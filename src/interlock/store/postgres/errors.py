"""PostgreSQL's errors as ours: the one place where they are translated."""

import re
from typing import NamedTuple

import psycopg

from interlock.core.rejection import InvalidRequest, Rejected, StorageFailure


class _Kind(NamedTuple):
    word: str
    sentence: str
    retryable: bool = False


_AWAY = _Kind("unreachable", "the server cannot be reached", retryable=True)
_BUSY = _Kind("busy", "others kept the database locked", retryable=True)
_CROWDED = _Kind("busy", "the server has no connection left", retryable=True)
_CONFLICT = _Kind("conflict", "another transaction was faster", retryable=True)
_DAMAGED = _Kind("damaged", "the database is damaged; restore a copy")
_MISSING = _Kind("missing", "there is no such database, schema or table")
_READ_ONLY = _Kind("read-only", "the database is read-only")
_REFUSED = _Kind("refused", "the schema refused the write; run `verify`")
_ENDED = _Kind(
    "failed", "a hook or guard ended the transaction that it was called in; it must not do that"
)
_OTHER = _Kind("failed", "the database failed")

_DENIED = "42501"

# By SQLSTATE, or its first two characters (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_KINDS = {
    "08": _AWAY,
    "0A000": _Kind("conflict", "the schema was changed meanwhile", retryable=True),
    "23": _REFUSED,
    "26000": _Kind("conflict", "prepared statements were let go meanwhile", retryable=True),
    "25006": _READ_ONLY,
    "25P01": _ENDED,
    "25P02": _Kind("failed", "a statement failed before, and its error was passed over"),
    "25P03": _AWAY,  # the server ends sessions that idle in a transaction,
    "25P04": _AWAY,  # or whose transaction takes too long,
    "3D000": _MISSING,
    "3F000": _MISSING,
    "3B001": _ENDED,
    "40001": _CONFLICT,
    "40P01": _CONFLICT,
    _DENIED: _Kind("read-only", "the role is not permitted to do this"),
    "42P01": _MISSING,
    "53100": _Kind("full", "the disk is full", retryable=True),
    "53300": _CROWDED,
    "54000": _Kind("failed", "a text is longer than PostgreSQL can hold in an index"),
    "55P03": _BUSY,
    "57014": _Kind("busy", "the server cut the statement off", retryable=True),
    "57P01": _AWAY,
    "57P02": _AWAY,
    "57P03": _AWAY,
    "57P05": _AWAY,  # or that idle
    "58030": _Kind("io", "the disk failed", retryable=True),
    "P0001": _REFUSED,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}
# A server that turns a connection away is quoted without its SQLSTATE.
_TURNED_AWAY = {
    r'database ".*" does not exist': _MISSING,
    r'role ".*" does not exist|authentication failed|no pg_hba\.conf entry|no password supplied': (
        _Kind("failed", "the server does not let this role in")
    ),
    r"permission denied for database": _Kind("failed", "the server does not let this role in"),
    r"too many connections for |too many clients already|connection slots are reserved": _CROWDED,
    r"not support SSL|certificate (file|verify|for)|channel binding|requirepeer spec|requirement": (
        _Kind("failed", "the connection cannot be what its settings ask for")
    ),
}
# What the client library, or the server of `options`, says of a setting that cannot be; the libpq
# of psycopg's wheels is not translated.
_MALFORMED = re.compile(
    r'invalid "?\w+"? value: .*|invalid (integer value|port number|SSL protocol version range).*'
    r"|could not match \d+ .*|could not parse network address .*|definition of service .*"
    r'|.*service file ".*|weak sslmode .*|.* invalid when .* not compiled in'
    r"|unrecognized configuration parameter .*|invalid value for parameter .*"
    r"|invalid command-line argument.*|--\S+ requires a value"
)


_ERASING = "payloads are destroyed by a role that may do what `roles.sql` grants to `$eraser`"


def translate(error: psycopg.Error, where: str, *, erasing: bool = False) -> StorageFailure:
    """Make the refusal for an error of PostgreSQL or of the connection to it.

    Nothing of the transaction is left, unless the error `is_lost` and came of the commit.

    Args:
        where: the database, as its owner knows it.
        erasing: payloads were to be destroyed, which not every role may do.
    """
    kind = _kind(error)
    sentence = f"{where}: {kind.sentence}{_said(error)}"
    if erasing and error.sqlstate == _DENIED:
        sentence += f"; {_ERASING}"
    return StorageFailure(sentence, kind=kind.word, retryable=kind.retryable)


def translate_first(error: psycopg.Error, where: str) -> Rejected:
    """Make the refusal for an error of a first connection: its settings may be at fault."""
    found = None if error.sqlstate else _MALFORMED.search(str(error))
    if found is None:
        return translate(error, where)
    what = "the store's URL, or the environment that completes it, has a setting that cannot be"
    return InvalidRequest(f"{what}: {_without_password(found[0])}", argument="url")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that nobody knows whether the statement was executed."""
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return _kind(error) is _AWAY or error.diag.severity_nonlocalized in ("FATAL", "PANIC")


def is_conflict(error: psycopg.Error) -> bool:
    """Whether it is of a serialization failure or a deadlock: the same may succeed at once."""
    return error.sqlstate in ("40001", "40P01")


def _kind(error: psycopg.Error) -> _Kind:
    code = error.sqlstate
    if code is not None:
        return _KINDS.get(code) or _KINDS.get(code[:2]) or _OTHER
    if not isinstance(error, psycopg.OperationalError):
        return _OTHER
    for pattern, kind in _TURNED_AWAY.items():
        if re.search(pattern, str(error)):
            return kind
    return _AWAY


def _said(error: psycopg.Error) -> str:
    """Quote the error: no row, and nothing of a connection string, which may hold a password."""
    if error.sqlstate is None and isinstance(error, psycopg.ProgrammingError):
        return ""
    said = _without_password(error.diag.message_primary or str(error).partition("\n")[0])
    return f" ({said})" if said else ""


def _without_password(said: str) -> str:
    return re.sub(r"(password\s*=\s*)('[^']*'|\S+)|(?<=://)[^\s@/]*@", r"\1", said)
