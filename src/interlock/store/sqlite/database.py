"""A database file: its connections, its settings, and the runner that drives plans on it.

One connection writes, under a lock; as many read as there are readers at once, each on a snapshot
of its own, so readers never wait. A writing transaction begins as a writer (BEGIN IMMEDIATE), so it
can wait for its turn but never find half-way that another was faster. A database in memory has one
connection, which everybody shares.

Checkpoints are ours: SQLite before 3.51.3 can damage a file when one connection checkpoints while
another writes, so automatic ones are off and ours run only while the write lock is held.
"""

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

from interlock.core.payload import decode_payload
from interlock.core.record import payload_digest
from interlock.core.rejection import Rejected, StorageFailure
from interlock.store.connection import beneath, check_not_calling
from interlock.store.plan import CommitUncertain, Plan, Transaction
from interlock.store.sqlite.drive import UNREADABLE, drive, lift_ward, set_ward
from interlock.store.sqlite.errors import is_busy, translate
from interlock.store.sqlite.joined import Joined
from interlock.store.sqlite.migrate import (
    check_place,
    damage,
    is_current,
    is_store,
    migrate,
    schema_faults,
)
from interlock.store.sqlite.place import Place

T = TypeVar("T")

OLDEST_SQLITE = (3, 38, 0)  # STRICT tables, and JSON functions in every build
PAGE_BYTES = 4096  # SQLite's own size of a page
LOG_PAGES = 1500  # in the write-ahead log, about, before it is folded back and written over
CACHE_KIB = 16 * 1024  # of pages, for the writer; readers have SQLite's own 2,000
READERS_KEPT = 8
# As nobody else writes them; see `Ward`.
COMMIT, ROLLBACK = "COMMIT /* of the store */", "ROLLBACK /* of the store */"


class Settings(NamedTuple):
    """How to open a file.

    Attributes:
        path: None is a database in memory.
        synchronous: FULL makes each commit durable before it is acknowledged; NORMAL may lose the
            last commits, whole, when the machine (not the program) dies.
        busy_ms: how long to wait for another process, in milliseconds.
        read_only: for readers of files they may not write; nothing is created or migrated.
        create: whether a file, or the store in it, is made where there is none.
    """

    path: Path | None
    synchronous: str = "FULL"
    busy_ms: int = 30_000
    read_only: bool = False
    create: bool = True


class Database:
    """An open database. Safe to share between threads; not across a fork, which is refused.

    Attributes:
        shared, together, patience, least, beyond: see `store.store.Database`. Nobody holds a
            row of a file locked for long, and a file does not go away.
    """

    shared = False
    together = True
    patience = 0.0
    least, beyond = "\0", b""  # bytes sort after text

    def __init__(
        self, settings: Settings, *, factory: type[sqlite3.Connection] = sqlite3.Connection
    ) -> None:
        """Open the file, and make or migrate the store in it.

        Raises:
            StorageFailure: the file is no store of ours, is newer, cannot be opened or written.
        """
        self.settings = settings
        self.place = place = Place(settings.path)
        self.where = place.where
        self._factory = factory
        self._lock = threading.RLock()
        self._driver = 0  # the thread that drives a plan on the writer
        self._readers: deque[sqlite3.Connection] = deque()
        self._folder: sqlite3.Connection | None = None
        self._log_pages = place.log_bytes() // PAGE_BYTES
        frozen = settings.read_only and place.is_frozen()
        self._reading = "mode=ro&immutable=1" if frozen else "mode=ro"
        self._unusable = ""
        self._altered = ""
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            raise StorageFailure(f"SQLite {sqlite3.sqlite_version} is too old; {oldest} is needed")
        place.check(exists=settings.read_only or not settings.create)
        if any(one.is_one_file_with(place) for one in _forked):
            what = "was open in the process that this one was forked from, and SQLite cannot tell"
            what = f"{what} their locks apart; fork before it is opened, or start afresh (spawn)"
            raise StorageFailure(f"{self.where} {what}", kind="closed")
        with self._translated():
            self._writer = self._connect(writes=not settings.read_only)
            set_ward(self._writer)
        try:
            with self._translated():
                self._prepare(self._writer)
                self._altered = next(iter(schema_faults(self._writer)), "")
            place.settle()
        except BaseException:
            self._close_writer()
            raise
        _databases.add(self)

    def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction; see `read` and `write`."""
        if transaction.writes:
            return self.write(transaction.make())
        return self.read(transaction.make(), lenient=transaction.lenient)

    def read(self, plan: Plan[T], *, lenient: bool = False) -> T:
        """Drive a reading plan on one snapshot of the database.

        Args:
            lenient: read text that is not UTF-8 as well, its odd bytes as surrogates.
        """
        return self._look(partial(_read, plan=plan, database=self, lenient=lenient))

    def write(self, plan: Plan[T]) -> T:
        """Drive a writing plan in one transaction, durable when this returns.

        Raises:
            StorageFailure: nothing was written.
            CommitUncertain: the commit itself failed.
        """
        self.check_writable()
        with self._lock:
            connection = self._writer
            committing, answer = False, None
            try:
                self._driver = threading.get_ident()
                self.place.check_unmoved()
                changes = connection.total_changes
                _begin(connection, "BEGIN IMMEDIATE")
                answer = drive(connection, plan, self)
                committing = True
                connection.execute(COMMIT)
                # A page for the entry and one for its instance; in a batch many rows share theirs.
                self._log_pages += 2 + (connection.total_changes - changes) // 3
                if self._log_pages > LOG_PAGES:
                    self._fold_log()
            except (sqlite3.Error, *UNREADABLE) as error:
                _roll_back(connection)
                failure = translate(error, self.where)
                if committing and isinstance(error, sqlite3.Error) and not is_busy(error):
                    raise CommitUncertain(failure, answer) from error
                raise failure from error
            except BaseException:
                _roll_back(connection)
                raise
            finally:
                self._driver = 0
        return answer

    @contextmanager
    def join(self, connection: Any) -> Iterator[Joined]:
        """Give the runner of a transaction of the caller's, for one call.

        Raises:
            InvalidRequest: the connection is not to this file, or cannot be joined.
        """
        with beneath(connection) as driver:
            yield self.take_part(driver)

    def take_part(self, driver: Any) -> Joined:
        """Give the runner on the driver's own connection."""
        self._check_usable()
        return Joined(driver, self)

    def owns(self, driver: object) -> bool:
        """Whether a connection is the one that writes here, of which a hook may have hold."""
        return driver is self._writer

    def close(self) -> None:
        """Close every connection; what was committed stays. Closing twice is fine."""
        if self._unusable:  # in a forked child the lock may be one that nobody will release
            return
        with self._lock:
            if self._unusable:
                return
            self._unusable = "is closed"
            while self._readers:
                self._readers.pop().close()
            if self._folder:
                self._folder.close()
            self._close_writer()

    def _close_writer(self) -> None:
        lift_ward(self._writer)
        self._writer.close()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or given up."""
        return bool(self._unusable)

    def abandon(self) -> None:
        """Give up the database in the child of a fork.

        Its connections are not closed: that would drop the locks of the process that opened them.
        """
        if not self._unusable:
            self._unusable = "was opened before a fork; open it in a process that is started afresh"
            _abandoned.append((self._writer, self._folder, self._readers))
            _forked.append(self.place)

    def check_writable(self, *, joins: bool = False) -> None:
        """Refuse to write where that cannot be: at once, without waiting for anybody.

        Args:
            joins: in a transaction of the caller's, which may be the one that a hook is called in.

        Raises:
            StorageFailure: it was closed, opened to read only or before a fork, its schema was
                altered, or this very thread is writing.
        """
        if self._unusable or self.settings.read_only or self._altered or self._driver:
            self._check_usable()
            if self.settings.read_only:
                what = "was opened read-only (mode=ro)"
                raise StorageFailure(f"{self.where} {what}", kind="read-only")
            if self._altered:
                what = f"the schema was altered: {self._altered}; nothing is written; run `verify`"
                raise StorageFailure(f"{self.where}: {what}", kind="damaged")
            if not joins:
                self._check_reentry()
        elif not joins:
            check_not_calling(self, self.where)

    def schema_faults(self) -> list[str]:
        """Say where the schema in the file is not the one that the migrations make."""
        return self._look(schema_faults)

    def damage(self) -> list[str]:
        """Say where the file contradicts itself: a damaged page may hide rows from every search.

        Reads the store's tables and their indexes from end to end.
        """
        return self._look(damage)

    def _check_reentry(self) -> None:
        """Refuse a call that this thread makes while it drives a plan: a hook's, or a signal's."""
        check_not_calling(self, self.where)
        if self._driver == threading.get_ident():
            what = "is being used by this very thread, which a signal handler has interrupted"
            raise StorageFailure(f"{self.where} {what}", kind="busy", retryable=True)

    def _check_usable(self) -> None:
        if self._unusable:
            raise StorageFailure(f"{self.where} {self._unusable}", kind="closed")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            raise translate(error, self.where) from error

    def _connect(self, *, writes: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.place.uri("mode=rwc" if writes else self._reading),
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self.settings.busy_ms / 1000,
            factory=self._factory,
        )
        connection.create_function("payload_fault", 3, _payload_fault, deterministic=True)
        if writes:
            connection.execute(f"PRAGMA synchronous = {self.settings.synchronous}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        else:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Find the store in the file, or make it."""
        settings = self.settings
        if is_current(connection, self.where):
            if not settings.read_only:
                self._use_wal(connection)
            return
        if settings.read_only or not (settings.create or is_store(connection)):
            raise StorageFailure(
                f"{self.where} holds no interlock store of this version", kind="foreign"
            )
        connection.execute("BEGIN")  # one snapshot: another process may make the store meanwhile
        try:
            check_place(connection, self.where)
        finally:
            _roll_back(connection)
        self._use_wal(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrate(connection, self.where)
            connection.execute(COMMIT)
        finally:
            _roll_back(connection)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to a write-ahead log, waiting for others who set up the same new file.

        The switch needs the file alone and does not honour the busy timeout.
        """
        deadline = time.monotonic() + self.settings.busy_ms / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _look(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Read with a connection that nobody else uses meanwhile."""
        self._check_usable()
        if self.place.path is None:
            return self._look_into_memory(look)
        self.place.check_unmoved()
        with self._translated():
            connection = self._reader()
            kept = False
            try:
                answer = look(connection)
                kept = True
            except Rejected as refusal:
                kept = not isinstance(refusal, StorageFailure)
                raise
            finally:  # after an error a statement may be left open, and hold on to what it saw
                if kept and not self._unusable and len(self._readers) < READERS_KEPT:
                    self._readers.append(connection)
                else:
                    connection.close()
        return answer

    def _look_into_memory(self, look: Callable[[sqlite3.Connection], T]) -> T:
        self._check_reentry()
        with self._lock, self._translated():
            try:
                self._driver = threading.get_ident()
                return look(self._writer)
            finally:
                self._driver = 0

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return self._connect(writes=False)

    def _fold_log(self) -> None:
        """Fold the write-ahead log back into the file; the lock is held.

        Another connection does it while the writer holds the write lock, so nobody can commit
        meanwhile. Readers may keep part of the log back for the next time. A failure costs nothing
        but a longer log.
        """
        self._log_pages = 0
        if self.place.path is None:
            return
        with suppress(sqlite3.Error):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                if self._folder is None:
                    self._folder = self._connect(writes=True)
                self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            finally:
                _roll_back(self._writer)


_databases: WeakSet[Database] = WeakSet()
_abandoned: list[object] = []
_forked: list[Place] = []  # of files that were open when this process was forked


def is_in_use(path: Path) -> bool:
    """Whether a path leads to a file of a database that this process has opened.

    Such a file is not even to be read by other means: closing it would drop SQLite's locks on it.
    """
    return any(not one.is_closed and one.place.holds(path) for one in [*_databases])


def _abandon_all() -> None:
    for database in _databases:
        database.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def _read(connection: sqlite3.Connection, plan: Plan[T], database: "Database", lenient: bool) -> T:
    """Drive a reading plan on one snapshot."""
    if lenient:
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        _begin(connection, "BEGIN")
        return drive(connection, plan, database)
    finally:
        _roll_back(connection)
        connection.text_factory = str


def _begin(connection: sqlite3.Connection, how: str) -> None:
    """Begin a transaction, ending one that was left open when its rollback failed as well."""
    if connection.in_transaction:
        connection.execute(ROLLBACK)
    connection.execute(how)


def _roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that failed, if SQLite has not ended it already, as it does when full."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute(ROLLBACK)


def _payload_fault(salt: object, content: object, digest: object) -> str | None:
    """Say, within a statement, what keeps a payload from being the one that the record names."""
    if not isinstance(salt, bytes) or not isinstance(content, bytes):
        return "was altered: a part of it is gone"
    if payload_digest(salt, content) != digest:
        return "was altered: its digest differs"
    try:
        decode_payload(content)
    except (ValueError, RecursionError):
        return "is no JSON"
    return None
