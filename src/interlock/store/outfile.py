"""Files that are written for somebody to keep: reports of `verify`, dumps.

One is written where nothing is yet, or in the place of an earlier one of its kind: a slip of the
keyboard shall not cost a store its records. It appears under its name only when it is whole.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from errno import EACCES, ENOENT, ENOSPC, ENOTDIR, EPERM, EROFS
from io import UnsupportedOperation
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, TextIO

from interlock.core.rejection import InvalidRequest, StorageFailure
from interlock.core.text import clipped, quoted
from interlock.store.sqlite.database import is_in_use

_MARK_WITHIN = 200  # characters: a tool may have laid out the file anew
_ANY_WIDTH = 1000  # characters of a path: somebody may want to look it up


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        noun: what it is called.
        whole: the same with whose it is.
        mark: text that stands near the beginning of each, and of nothing else.
        argument: which names it in a call.
    """

    noun: str
    whole: str
    mark: str
    argument: str

    def refuse(self, what: str) -> InvalidRequest:
        return InvalidRequest(what, argument=self.argument)

    @contextmanager
    def writing(self, name: object) -> Iterator[None]:
        """Tell of a failure to write as one of storage."""
        try:
            yield
        except BrokenPipeError:  # the reader of a stream went away; that is its affair
            raise
        except (OSError, RuntimeError) as error:  # links that go in a circle
            what = f"the {self.noun} `{clipped(name, _ANY_WIDTH)}` cannot be written"
            kind = _KINDS.get(getattr(error, "errno", None) or 0, "io")
            why = getattr(error, "strerror", None) or error
            raise StorageFailure(f"{what}: {why}", kind=kind) from error

    def open(self, target: Path | str | TextIO) -> AbstractContextManager[TextIO]:
        """Open a file for writing; what is a stream already stays open afterwards.

        Raises:
            InvalidRequest: the target is neither a path nor a text stream to write to, or holds
                something of another kind.
            StorageFailure: it cannot be written.
        """
        if isinstance(target, Path | str):
            return _opened(self, self._path(target))
        self._check_stream(target)
        return nullcontext(target)

    def _check_stream(self, target: Any) -> None:
        if not (callable(getattr(target, "write", None)) and hasattr(target, "flush")):
            what = f"is a path or a text stream, not {type(target).__name__}"
            raise self.refuse(f"`{self.argument}` {what}")
        if getattr(target, "closed", False) is True:
            raise self.refuse(f"`{self.argument}` is a stream that was closed")
        try:
            target.write("")
        except TypeError as error:
            what = "was opened for bytes, not for text"
            raise self.refuse(f"`{self.argument}` {what}") from error
        except UnsupportedOperation as error:
            raise self.refuse(f"`{self.argument}` was not opened for writing") from error
        except (OSError, RuntimeError):
            return  # it is told of when something is written

    def _path(self, target: Path | str) -> Path:
        path, text = Path(target), str(target)
        if not text or "\0" in text or not path.name:
            raise self.refuse(f"{quoted(text)} is no name of a file")
        return path


# By errno; anything else is `io`.
_KINDS = {
    ENOSPC: "full",
    ENOENT: "missing",
    ENOTDIR: "missing",
    EACCES: "read-only",
    EPERM: "read-only",
    EROFS: "read-only",
}


@contextmanager
def _opened(kind: Kind, named: Path) -> Iterator[TextIO]:
    with kind.writing(named):
        found = named.stat().st_mode if named.exists() else None
        # So that a link stays one; but a pipe may have a name that leads nowhere.
        path = named.resolve() if found is None or stat.S_ISREG(found) else named
        if is_in_use(path):
            what = f"is a file of a store that is open, which a {kind.noun} shall not replace"
            raise kind.refuse(f"`{clipped(named, _ANY_WIDTH)}` {what}")
        if found is not None and stat.S_ISREG(found):
            _check_replaceable(kind, path, named)
    if found is None or stat.S_ISREG(found):
        with _whole_file(kind, path, named, found) as stream:
            yield stream
    else:  # a pipe or a device takes it as it comes
        with kind.writing(named):
            stream = path.open("w", encoding="utf-8")
        try:
            yield stream
        finally:
            with kind.writing(named):
                stream.close()


def _check_replaceable(kind: Kind, path: Path, named: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as stream:
        beginning = stream.read(_MARK_WITHIN)
    if beginning and kind.mark not in beginning:
        what = f"holds something else than {kind.whole}; remove it, or name another file"
        raise kind.refuse(f"`{clipped(named, _ANY_WIDTH)}` {what}")
    if not os.access(path, os.W_OK):
        raise PermissionError(EACCES, "it is read-only")


@contextmanager
def _whole_file(kind: Kind, path: Path, named: Path, mode: int | None) -> Iterator[TextIO]:
    """Write a file beside `path`, and give it that name when it is whole and on disk."""
    partial = path.with_name(f".{token_hex(8)}.partial")
    with kind.writing(named):
        stream = partial.open("x", encoding="utf-8")
    try:
        yield stream
        with kind.writing(named):
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
            if mode is not None:
                partial.chmod(stat.S_IMODE(mode))
            partial.replace(path)
    finally:
        with suppress(OSError):
            stream.close()
        partial.unlink(missing_ok=True)
