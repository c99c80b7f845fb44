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
from interlock.store.pages import Change, Place, after, beginning, read_page
from interlock.store.pages import Page as Records
from interlock.store.plan import Plan, Row, Statement, Transaction
from interlock.store.read import not_known
from interlock.store.run import run
from interlock.store.story import (
    Begun,
    Changed,
    Declaration,
    Declared,
    Definition,
    Piece,
    Recorded,
    Stored,
    Story,
    Timer,
    check_definition,
    compiled,
)
from interlock.store.walk import ENTRY, GENESIS, ID, ROOT, STANDING
from interlock.store.writer import patiently

PAGE_ROWS = 1000  # entries read in one transaction, or changes of data
PAYLOADS_AT_ONCE = 20  # read in one transaction: each may be as large as the limits of the store
DECLARATIONS_AT_ONCE = 20

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
_Timers = dict[tuple[str, str], list[Timer]]  # by root and id


class Reads(Protocol):
    """What a dump needs of a database; see `store.verify.Reader`."""

    @property
    def least(self) -> str: ...

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
            dumping.idle_definitions()
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
        self.timers: list[Timer] = []  # of it, at the same moment
        self.entries = 0

    def records(self, first: tuple[str, str], last: tuple[str | bytes, str | bytes]) -> None:
        """Dump the instances within bounds."""
        place: Place | None = beginning(*first)
        while place is not None:
            page, timers = self._page(place, last)
            for some, payloads in self._with_payloads(page):
                for row in some:
                    for piece in self._told(row, payloads, timers):
                        self.writer.write(piece)
            try:
                place = page.following()
            except (ValueError, TypeError) as error:
                told = self.story and self.story.id
                raise _damaged(told, "the instance stands twice") from error
            if place is not None and self.story is not None and self.story.is_told:
                place = max(place, after(*place_of(self.story.id)))  # past what came since
            self.on_page(Page("dumping", self.entries, None))
        self._finish()

    def _page(self, place: Place, last: tuple[str | bytes, str | bytes]) -> tuple[Records, _Timers]:
        """Read a page, and the timers that its instances have at this moment."""

        def plan() -> Plan[tuple[Records, list[Row]]]:
            least = self.database.least
            page = yield from read_page(self.tenant, place, last, PAGE_ROWS, PAGE_ROWS, least)
            if not page.rows:
                return page, []
            bounds = (page.rows[0], page.rows[-1])
            asked = (self.tenant, *(row[column] for row in bounds for column in (ROOT, ID)))
            return page, (yield Statement("dump_timers", [asked]))

        page, rows = run(self.database, patiently(Transaction(plan), self.database.patience))
        timers: _Timers = {}
        for root, id, *timer in rows:
            timers.setdefault((root, id), []).append(Timer(*timer))
        return page, timers

    def idle_declarations(self) -> None:
        """Dump the declarations that govern nothing."""
        page = (self.tenant, "", DECLARATIONS_AT_ONCE)
        while rows := _look(self.database, "dump_idle_declarations", [page]):
            for digest, text in rows:
                self.writer.write(self._declaration(digest, text))
            page = (self.tenant, rows[-1][0], DECLARATIONS_AT_ONCE)

    def idle_definitions(self) -> None:
        """Dump the definitions that govern nothing."""
        page = (self.tenant, "", DECLARATIONS_AT_ONCE)
        while rows := _look(self.database, "dump_idle_definitions", [page]):
            for row in rows:
                self.writer.write(self._definition(row))
            page = (self.tenant, rows[-1][0], DECLARATIONS_AT_ONCE)

    def _with_payloads(self, page: Records) -> Iterator[tuple[list[Row | Change], _Payloads]]:
        """Give records with the payloads that they name, a few at a time."""
        some: list[Row | Change] = []
        keys: list[Row] = []
        last = self.story and self.story.id
        for row in page.records():
            some.append(row)
            if isinstance(row, Change):
                keys.append((self.tenant, row.root, row.row.payload_id))
            else:
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

    def _told(self, row: Row | Change, payloads: _Payloads, timers: _Timers) -> Iterator[Piece]:
        """Give what a row adds to the dump, checked."""
        if isinstance(row, Change):
            yield from self._changed(row, payloads)
            return
        story = self.story
        try:
            if story is None or row[ID] != story.id:
                self._finish()
                begun = yield from self._begun(row, payloads)
                story = Story(begun)
                self.story, self.standing = story, row[STANDING]
                self.timers = timers.get((row[ROOT], row[ID]), [])
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

    def _changed(self, change: Change, payloads: _Payloads) -> Iterator[Piece]:
        """Give a change of data, checked; of an instance that is gone there is no story."""
        root, id, row = change
        story = self.story
        if story is None or id != story.id or story.is_told:
            return
        changed = Changed(row, payloads.get((root, row.payload_id)))
        try:
            story.follow_change(changed)
        except (ValueError, TypeError, AttributeError) as error:
            raise _damaged(id, error) from error
        yield changed

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
        defined = genesis.definition_digest
        if defined is not None and not self.declared.defines(defined):
            found = _look(self.database, "read_definition", [(self.tenant, defined)])
            if not found:
                raise ValueError(f"its definition {quoted(defined)} is missing")
            yield self._definition(found[0])
        metadata = payloads.get((row[ROOT], genesis.metadata_id))
        return Begun(genesis, number - 1, head, machine, metadata)

    def _finish(self) -> None:
        """Check that the instance was told to the end."""
        story, self.story = self.story, None
        if story is None:
            return
        try:
            story.check_told()
            for fault in story.trail.close(*self.standing):
                raise ValueError(fault.what)
            for timer in self.timers:
                story.check_timer(timer)
                self.writer.write(timer)
        except (ValueError, TypeError) as error:
            raise _damaged(story.id, error) from error

    def _declaration(self, digest: str, text: str) -> Declaration:
        try:
            declaration = Declaration(digest, text, compiled(digest, text))
        except (ValueError, RecursionError) as error:
            what = f"the declaration {clipped(digest)}: {error}; run `verify`"
            raise StorageFailure(what, kind="damaged") from error
        self.declared.add(declaration.machine)
        return declaration

    def _definition(self, row: Row) -> Definition:
        definition = Definition._make(row)
        try:
            check_definition(definition)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageFailure(f"{error}; run `verify`", kind="damaged") from error
        self.declared.define(definition.digest)
        return definition


def _damaged(id: object, what: object) -> StorageFailure:
    told = f"the instance {quoted(id)} cannot be dumped: {what}; run `verify`"
    return StorageFailure(told, kind="damaged", instance_id=id)


def _look(database: Reads, name: str, rows: list[Row]) -> list[Row]:
    """Read by one statement, going on with a database that is away for a while."""

    def plan() -> Plan[list[Row]]:
        found: list[Row] = yield Statement(name, rows, last=True)
        return found

    return run(database, patiently(Transaction(plan), database.patience))
