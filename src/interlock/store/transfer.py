"""Backup and move: a store as a file that any store reads back, on SQLite or on PostgreSQL.

A dump reads in pages, each a short transaction of its own, beside writers. An instance is dumped as
far as it stood when its first page was read; of two instances one may so be seen later than the
other. What is read is checked as `verify` would, since a copy that cannot be restored is none.
Memory holds a page, however large the store is. `restore` has the way back.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TextIO

from interlock.core.identity import place_of, root_of
from interlock.core.record import Genesis, HistoryRow
from interlock.core.rejection import StorageFailure
from interlock.core.text import clipped, quoted
from interlock.store.dumpfile import DUMP, Counts, DumpWriter
from interlock.store.plan import Plan, Row, Statement, Transaction
from interlock.store.read import not_known
from interlock.store.run import run
from interlock.store.story import (
    Begun,
    Declaration,
    Declared,
    Piece,
    Recorded,
    Stored,
    Story,
    compiled,
)
from interlock.store.walk import ENTRY, GENESIS, ID, ROOT, STANDING
from interlock.store.writer import patiently

PAGE_ROWS = 1000  # entries read in one transaction
PAYLOADS_AT_ONCE = 20  # read in one transaction: each may be as large as the limits of the store
DECLARATIONS_AT_ONCE = 20

_FIRST, _LAST = -(2**63), 2**63 - 1  # of the numbers that a database holds
_REASON = HistoryRow._fields.index("reason_id")
_METADATA = GENESIS.start + Genesis._fields.index("metadata_id")


class Page(NamedTuple):
    """How far a dump or a restore has come, in entries; a file that is restored is checked first.

    Attributes:
        stage: what it is at.
        done: how many entries are behind it, of this stage.
        total: how many there are; None while nobody knows.
    """

    stage: Literal["dumping", "checking", "restoring"]
    done: int
    total: int | None


Listener = Callable[[Page], object]
_Payloads = dict[tuple[str, str | None], Stored]  # by root and id


class Reads(Protocol):
    """What a dump needs of a database; see `store.verify.Reader`."""

    @property
    def beyond(self) -> str | bytes: ...

    @property
    def patience(self) -> float: ...

    def run(self, transaction: Transaction) -> Any: ...


def dump(
    database: Reads,
    tenant: str,
    target: Path | str | TextIO,
    *,
    ids: Iterable[str] | None,
    on_page: Listener,
) -> Counts:
    """Dump a store, or the instances `ids`.

    Raises:
        NotKnown: there is no instance of one of the ids.
        InvalidRequest: the target is no name of a file and no text stream, or holds something
            other than a dump.
        StorageFailure: the store cannot be read, or its record is unsound; or the file cannot be
            written.
    """
    chosen = None if ids is None else sorted({*ids}, key=place_of)
    _check_known(database, tenant, chosen or ())
    with DUMP.open(target) as stream:
        writer = DumpWriter(stream, whole=chosen is None)
        dumping = _Dump(database, tenant, writer, on_page)
        if chosen is None:
            dumping.records(("", ""), (database.beyond, database.beyond))
            dumping.idle_declarations()
        else:
            for id in chosen:
                dumping.records(place_of(id), place_of(id))
        return writer.end()


def _check_known(database: Reads, tenant: str, ids: Iterable[str]) -> None:
    """Refuse an instance that is not known, before anything is written."""
    waiting = iter(ids)
    while some := [*islice(waiting, PAGE_ROWS)]:
        keys = [(tenant, *place_of(id)) for id in some]
        known = {row[0] for row in _look(database, "read_snapshot", keys)}
        for id in some:
            if id not in known:
                raise not_known(id)


class _Dump:
    """One dump on its way: the instance it has come to, and the declarations it told last."""

    def __init__(self, database: Reads, tenant: str, writer: DumpWriter, on_page: Listener) -> None:
        self.database = database
        self.tenant = tenant
        self.writer = writer
        self.on_page = on_page
        self.declared = Declared()
        self.story: Story | None = None
        self.standing: Row = ()  # of the story, when it was begun
        self.entries = 0

    def records(self, first: tuple[str, str], last: tuple[str | bytes, str | bytes]) -> None:
        """Dump the instances within bounds."""
        place: Row = (*first, _FIRST)
        more = True
        while more:
            page = (self.tenant, *place, *last, PAGE_ROWS)
            rows = _look(self.database, "audit_records", [page])
            more = len(rows) == PAGE_ROWS
            for some, payloads in self._with_payloads(rows):
                for row in some:
                    for piece in self._told(row, payloads):
                        self.writer.write(piece)
            if more and self.story is not None:
                number = _LAST if self.story.is_told else self.story.trail.number + 1
                after = (*place_of(self.story.id), number)
                if after <= place:
                    raise _damaged(self.story.id, "the instance stands twice")
                place = after
            self.on_page(Page("dumping", self.entries, None))
        self._finish()

    def idle_declarations(self) -> None:
        """Dump the declarations that govern nothing."""
        page = (self.tenant, "", DECLARATIONS_AT_ONCE)
        while rows := _look(self.database, "dump_idle_declarations", [page]):
            for digest, text in rows:
                self.writer.write(self._declaration(digest, text))
            page = (self.tenant, rows[-1][0], DECLARATIONS_AT_ONCE)

    def _with_payloads(self, rows: list[Row]) -> Iterator[tuple[list[Row], _Payloads]]:
        """Give rows with the payloads that they name, a few at a time."""
        some: list[Row] = []
        keys: list[Row] = []
        last = self.story and self.story.id
        for row in rows:
            some.append(row)
            named = [row[_REASON]]
            if row[ID] != last:
                named.append(row[_METADATA])
                last = row[ID]
            keys += [(self.tenant, row[ROOT], id) for id in named if id is not None]
            if len(keys) >= PAYLOADS_AT_ONCE:
                yield some, self._payloads(keys)
                some, keys = [], []
        yield some, self._payloads(keys)

    def _payloads(self, keys: list[Row]) -> _Payloads:
        rows = _look(self.database, "dump_payloads", keys) if keys else []
        return {(root, id): Stored(id, salt, content) for root, id, salt, content in rows}

    def _told(self, row: Row, payloads: _Payloads) -> Iterator[Piece]:
        """Give what a row adds to the dump, checked."""
        story = self.story
        try:
            if story is None or row[ID] != story.id:
                self._finish()
                begun = yield from self._begun(row, payloads)
                story = Story(begun)
                self.story, self.standing = story, row[STANDING]
                yield begun
            if row[0] is None or story.is_told:  # it has moved on since
                return
            entry = HistoryRow._make(row[ENTRY])
            recorded = Recorded(entry, payloads.get((row[ROOT], entry.reason_id)))
            story.follow(recorded)
        except (ValueError, TypeError, AttributeError) as error:
            raise _damaged(row[ID], error) from error
        self.entries += 1
        yield recorded

    def _begun(self, row: Row, payloads: _Payloads) -> Generator[Piece, None, Begun]:
        """Give the beginning of an instance, and before it the declaration, if it is to be told."""
        genesis, (_, number, head) = Genesis._make(row[GENESIS]), row[STANDING]
        digest = genesis.declaration_digest
        if row[ROOT] != root_of(genesis.id):
            raise ValueError(f"it is filed under the root {quoted(row[ROOT])}")
        machine = self.declared.meet(digest)
        if machine is None:
            found = _look(self.database, "read_declaration", [(self.tenant, digest)])
            if not found:
                raise ValueError(f"its declaration {quoted(digest)} is missing")
            declaration = self._declaration(*found[0])
            yield declaration
            machine = declaration.machine
        metadata = payloads.get((row[ROOT], genesis.metadata_id))
        return Begun(genesis, number - 1, head, machine, metadata)

    def _finish(self) -> None:
        """Check that the instance was told to the end."""
        story, self.story = self.story, None
        if story is None:
            return
        try:
            story.check_told()
        except ValueError as error:
            raise _damaged(story.id, error) from error
        for fault in story.trail.close(*self.standing):
            raise _damaged(story.id, fault.what)

    def _declaration(self, digest: str, text: str) -> Declaration:
        try:
            declaration = Declaration(digest, text, compiled(digest, text))
        except (ValueError, RecursionError) as error:
            what = f"the declaration {clipped(digest)}: {error}; run `verify`"
            raise StorageFailure(what, kind="damaged") from error
        self.declared.add(declaration.machine)
        return declaration


def _damaged(id: object, what: object) -> StorageFailure:
    told = f"the instance {quoted(id)} cannot be dumped: {what}; run `verify`"
    return StorageFailure(told, kind="damaged", instance_id=id)


def _look(database: Reads, name: str, rows: list[Row]) -> list[Row]:
    """Read by one statement, going on with a database that is away for a while."""

    def plan() -> Plan[list[Row]]:
        found: list[Row] = yield Statement(name, rows, last=True)
        return found

    return run(database, patiently(Transaction(plan), database.patience))
