"""SQLite's errors as ours: the one place where they are translated."""

import sqlite3
from typing import NamedTuple

from interlock.core.rejection import StorageFailure


class _Kind(NamedTuple):
    word: str
    sentence: str
    retryable: bool = False


# By SQLite's primary result code (https://sqlite.org/rescode.html).
_KINDS = {
    sqlite3.SQLITE_BUSY: _Kind("busy", "another process kept the database locked", retryable=True),
    sqlite3.SQLITE_LOCKED: _Kind("busy", "another connection kept it locked", retryable=True),
    sqlite3.SQLITE_FULL: _Kind("full", "the disk is full", retryable=True),
    sqlite3.SQLITE_IOERR: _Kind("io", "the disk failed", retryable=True),
    sqlite3.SQLITE_READONLY: _Kind("read-only", "the file or its directory is read-only"),
    sqlite3.SQLITE_PERM: _Kind("read-only", "there is no permission to use the file"),
    sqlite3.SQLITE_CANTOPEN: _Kind("missing", "the file cannot be opened"),
    sqlite3.SQLITE_NOTADB: _Kind("foreign", "the file is not an SQLite database"),
    sqlite3.SQLITE_CORRUPT: _Kind("damaged", "the file is damaged; restore a copy"),
    sqlite3.SQLITE_CONSTRAINT: _Kind("refused", "the schema refused the write; run `verify`"),
}
_UNREADABLE = _Kind("unreadable", "a stored value cannot be read; run `verify`")
_OTHER = _Kind("failed", "the database failed")


def translate(error: Exception, where: str) -> StorageFailure:
    """Make the refusal for an error of SQLite, or for a stored value that Python cannot read.

    Nothing of the transaction is left.

    Args:
        where: the database, as its owner knows it.
    """
    kind = _KINDS.get(_primary_code(error), _OTHER)
    if not isinstance(error, sqlite3.Error) or "Could not decode" in str(error):
        kind = _UNREADABLE
    sentence = f"{where}: {kind.sentence} ({error})"
    return StorageFailure(sentence, kind=kind.word, retryable=kind.retryable)


def is_busy(error: Exception) -> bool:
    """Whether the error says only that somebody else was at it."""
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _primary_code(error: Exception) -> int:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else 0
