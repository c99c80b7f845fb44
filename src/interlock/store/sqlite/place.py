"""Where a database is: a file, found once when it is opened, or memory.

The name of a file is looked up once, so that a program that changes its directory reads and writes
one file; and whenever the database is used, the name, be it a link, must still lead to that file.
What is written to a file that was removed or replaced would be lost to everybody who opens it by
its name.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from interlock.core.rejection import StorageFailure
from interlock.core.text import clipped

_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite keeps under the name of a file
_ANY_WIDTH = 1000  # characters of a path: somebody may want to look it up


class Place:
    """The place of one database.

    Args:
        path: None is memory.

    Attributes:
        where: the database, as its owner knows it.
        path: absolute, symbolic links followed.

    Raises:
        StorageFailure: no name of a file.
    """

    def __init__(self, path: Path | None) -> None:
        self.where = "the store in memory" if path is None else f"`{clipped(path, _ANY_WIDTH)}`"
        self._named = path
        self._name = None if path is None else os.path.abspath(path)  # noqa: PTH100 - links stay
        self._identity: tuple[int, int] | None = None
        try:
            self.path = None if path is None else path.resolve()
        except (OSError, RuntimeError) as error:  # a name too long, links that go in a circle
            raise self._unusable(error) from error

    def check(self, *, exists: bool) -> None:
        """Refuse what cannot be a database file.

        Args:
            exists: it has to be there already.

        Raises:
            StorageFailure: it is a directory, or in none, or missing.
        """
        path = self._named
        if path is None:
            return
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = None
        except OSError as error:
            raise self._unusable(error) from error
        if mode is None:
            if not path.parent.is_dir():
                what = f"cannot be made: there is no directory `{path.parent}`"
                raise StorageFailure(f"{self.where} {what}", kind="missing")
            if exists:
                raise StorageFailure(f"{self.where} does not exist", kind="missing")
        elif stat.S_ISDIR(mode):
            what = "is a directory, not a database file"
            raise StorageFailure(f"{self.where} {what}", kind="foreign")
        elif not stat.S_ISREG(mode):
            what = "is a device or a pipe, not a database file"
            raise StorageFailure(f"{self.where} {what}", kind="foreign")

    def uri(self, settings: str) -> str:
        """Give the name by which SQLite opens it, with settings such as `mode=ro`."""
        if self.path is None:
            return ":memory:"
        return f"file:{quote(os.fsencode(self.path))}?{settings}"

    def is_one_file_with(self, other: "Place") -> bool:
        """Whether two places are one file, as far as this one was opened."""
        return self._identity is not None and self._identity == other._find()

    def is_file(self, name: str) -> bool:
        """Whether a file, by its name, is this one; nothing is memory, where each is its own."""
        return bool(name) and self.path is not None and _is_one_file(Path(name), self.path)

    def settle(self) -> None:
        """Keep in mind which file it is that was opened."""
        self._identity = self._find()

    def check_unmoved(self) -> None:
        """Refuse to go on with a file that its name no longer leads to.

        Raises:
            StorageFailure: it was removed or replaced.
        """
        if self._identity != self._find():
            what = "was removed or replaced since it was opened; open it again"
            raise StorageFailure(f"{self.where} {what}", kind="missing")

    def is_frozen(self) -> bool:
        """Whether the folder is read-only and there is no log, so that SQLite needs no locks."""
        path = self.path
        return path is not None and not os.access(path.parent, os.W_OK) and not self.log_bytes()

    def log_bytes(self) -> int:
        """Give the size of the write-ahead log."""
        try:
            return Path(f"{self.path}-wal").stat().st_size
        except OSError:
            return 0

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a file of this database, such as its log."""
        return any(_is_one_file(path, own) for own in self._files())

    def _files(self) -> Iterator[Path]:
        if self.path is not None:
            for suffix in _BESIDE:
                yield self.path.with_name(self.path.name + suffix)

    def _find(self) -> tuple[int, int] | None:
        if self._name is None:
            return None
        try:
            found = os.stat(self._name)  # noqa: PTH116 - each fire pays for it
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _unusable(self, error: Exception) -> StorageFailure:
        return StorageFailure(f"{self.where} cannot be opened: {error}", kind="missing")


def _is_one_file(path: Path, other: Path) -> bool:
    with suppress(OSError, RuntimeError):  # links that go in a circle
        return path.samefile(other) if other.exists() else path.resolve() == other
    return False
