"""Restoring: a dump is read back into a store, as far as the store lacks it.

Each line is checked before it writes what that says, some hundreds of rows in a transaction; a file
is checked as a whole before anything is written. Every row goes in by the statements of births and
fires, so the schema judges each entry once more. An entry goes in together with the changes of data
that came with it, and the last one with the timers as they stood. What is there already is compared
and left alone, so a restore that broke off is run again and goes on. Memory holds the rows of one
transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO

from interlock.core.identity import root_of
from interlock.core.record import ChangeRow, HistoryRow
from interlock.core.rejection import (
    DefinitionChanged,
    IdempotencyConflict,
    InvalidRequest,
    Rejected,
    StorageFailure,
    VersionConflict,
)
from interlock.core.text import clipped, quoted
from interlock.store.dumpfile import DumpReader
from interlock.store.machines import owed_declarations
from interlock.store.plan import (
    CommitUncertain,
    Pause,
    Plan,
    Procedure,
    Row,
    Statement,
    Transaction,
)
from interlock.store.run import run
from interlock.store.sqlite.database import is_in_use
from interlock.store.story import (
    Begun,
    Changed,
    Declaration,
    Definition,
    Recorded,
    Stored,
    Timer,
)
from interlock.store.transfer import Listener, Page
from interlock.store.writer import PAUSE, Patience, patiently

BATCH_ROWS = 500  # written in one transaction
BATCH_BYTES = 4 * 1024 * 1024  # of payloads and declarations, about, written in one transaction
CHECKED_ROWS = 1000  # checked between two words about it

_PLACEHOLDER = (b"\0", b"null")  # of a payload that was destroyed, until it is once more


class Restored(NamedTuple):
    """What a restore read, and what of it the store lacked.

    Attributes:
        declarations, instances, entries, payloads, definitions, changes, timers: how many the dump
            has.
        added_instances, added_entries: how many of them were written.
    """

    declarations: int
    instances: int
    entries: int
    payloads: int
    added_instances: int
    added_entries: int
    definitions: int = 0
    changes: int = 0
    timers: int = 0


class Writes(Protocol):
    """What a restore needs of a database."""

    @property
    def patience(self) -> float: ...

    def run(self, transaction: Transaction) -> Any: ...


def restore(
    database: Writes, tenant: str, source: Path | str | TextIO, *, on_page: Listener
) -> Restored:
    """Restore a dump, as far as the store lacks it.

    Raises:
        InvalidRequest: the source is no whole dump, or was altered.
        VersionConflict: the store holds another story of an instance; nothing of it was written.
        IdempotencyConflict: another instance was begun under the idempotency key of one.
        DefinitionChanged: a name and version of a definition mean something else in this store.
        StorageFailure: the store cannot be written. In each case what comes before in the dump may
            have been written; run it again to go on.
    """
    with _read_from(source) as (stream, name):
        total = None
        if stream.seekable():
            start = stream.tell()
            total = _checked(stream, name, on_page)
            stream.seek(start)
        reader = DumpReader(stream, name)
        instances = entries = 0
        for batch in _batches(reader):
            transaction = Transaction(partial(_write, tenant, batch), writes=True, holds=True)
            added: _Added = run(database, _written(transaction, database.patience))
            instances += added.instances
            entries += added.entries
            if added.refusal is not None:
                raise added.refusal
            on_page(Page("restoring", reader.counts.entries, total))
    counts = reader.counts
    return Restored(*counts[:4], instances, entries, *counts[4:])


def check_header(source: Path | str) -> None:
    """Look whether a file begins as a dump does.

    Raises:
        InvalidRequest: it does not, or cannot be read.
    """
    with _read_from(source) as (stream, name):
        DumpReader(stream, name).check_header()


@contextmanager
def _read_from(source: Path | str | TextIO) -> Iterator[tuple[TextIO, object]]:
    if not isinstance(source, Path | str):
        _check_stream(source)
        yield source, getattr(source, "name", "the dump")
        return
    named = f"`{clipped(source, 1000)}`"
    try:
        path = Path(source)
        if is_in_use(path):
            what = f"{named} is no dump: it is a file of a store that is open"
            raise InvalidRequest(what, argument="source")
        stream = path.open(encoding="utf-8", errors="surrogateescape")  # told of at its line
    except (OSError, ValueError) as error:  # a name with a NUL
        why = getattr(error, "strerror", None) or error
        raise InvalidRequest(f"{named} cannot be read: {why}", argument="source") from error
    with stream:
        yield stream, source


def _check_stream(source: Any) -> None:
    if not (callable(getattr(source, "readline", None)) and hasattr(source, "seekable")):
        what = f"`source` is a path or a text stream, not {type(source).__name__}"
        raise InvalidRequest(what, argument="source")
    if getattr(source, "closed", False) is True:
        raise InvalidRequest("`source` is a stream that was closed", argument="source")


def _checked(stream: TextIO, name: object, on_page: Listener) -> int:
    """Read a whole dump for nothing but its faults, and give the number of its entries."""
    reader = DumpReader(stream, name)
    for number, _ in enumerate(reader):
        if number % CHECKED_ROWS == 0:
            on_page(Page("checking", reader.counts.entries, None))
    return reader.counts.entries


@dataclass
class _Run:
    """Entries of one instance that follow one another, each with its changes of data.

    Attributes:
        previous: the number and the digest of what comes before the first of them.
        changes: of them, and of the birth if it is told here.
        ends: by the number of an entry, the digest of the last change that came with it, or its
            own; of what comes before, too.
        payloads: each with the number of the entry that names it, 0 for the genesis.
        timers: as they stood at the end of all entries.
    """

    begun: Begun
    previous: tuple[int, bytes]
    entries: list[HistoryRow] = field(default_factory=list)
    changes: list[ChangeRow] = field(default_factory=list)
    ends: dict[int, bytes] = field(default_factory=dict)
    payloads: list[tuple[int, Stored]] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends.setdefault(*self.previous)

    @property
    def last(self) -> tuple[int, bytes]:
        """The number of the last entry, and the digest that what comes next follows."""
        number = self.entries[-1].sequence_number if self.entries else self.previous[0]
        return number, self.ends[number]

    def meets(self, head: "_Head") -> bool:
        """Say whether a record that ends at `head` may be the beginning of what is dumped."""
        if head.genesis_digest != self.begun.genesis.genesis_digest:
            return False
        if head.number in self.ends:
            return head.digest == self.ends[head.number]
        return self.last[0] < head.number <= self.begun.entries  # a later run will tell

    def waves(self, known: int) -> list[tuple[list[HistoryRow], list[ChangeRow]]]:
        """Give what comes after the entry `known` (-1: all of it) in the order of writing.

        Each wave is entries, and the changes that came with the last of them.
        """
        changes: dict[int, list[ChangeRow]] = {}
        for change in self.changes:
            if change.sequence_number > known:
                changes.setdefault(change.sequence_number, []).append(change)
        waves: list[tuple[list[HistoryRow], list[ChangeRow]]] = []
        entries: list[HistoryRow] = []
        if 0 in changes:
            waves.append((entries, changes[0]))
            entries = []
        for entry in self.entries:
            if entry.sequence_number > known:
                entries.append(entry)
                if entry.sequence_number in changes:
                    waves.append((entries, changes[entry.sequence_number]))
                    entries = []
        return [*waves, (entries, [])] if entries else waves


@dataclass
class _Batch:
    """What is written in one transaction."""

    declarations: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    runs: list[_Run] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def declare(self, declaration: Declaration) -> None:
        self.declarations[declaration.digest] = declaration.text
        self._count(declaration.text)

    def define(self, definition: Definition) -> None:
        self.definitions[definition.digest] = definition
        self._count(definition.text)

    def begin(self, begun: Begun) -> None:
        self.runs.append(_Run(begun, (0, begun.genesis.genesis_digest)))
        self._payload(0, begun.metadata)
        self._count()

    def record(self, recorded: Recorded) -> None:
        row = recorded.row
        self.runs[-1].entries.append(row)
        self.runs[-1].ends[row.sequence_number] = row.entry_digest
        self._payload(row.sequence_number, recorded.reason)
        self._count()

    def change(self, changed: Changed) -> None:
        row = changed.row
        self.runs[-1].changes.append(row)
        self.runs[-1].ends[row.sequence_number] = row.change_digest
        self._payload(row.sequence_number, changed.payload)
        self._count()

    def time(self, timer: Timer) -> None:
        self.runs[-1].timers.append(timer)
        self._count()

    @property
    def is_full(self) -> bool:
        return self.rows >= BATCH_ROWS or self.size >= BATCH_BYTES

    def has_room_for(self, entries: int) -> bool:
        """Whether an instance fits in; one that fits in no batch begins one of its own."""
        return not self.rows or self.rows + 1 + entries <= BATCH_ROWS

    def next(self) -> "_Batch":
        """Give the batch that follows; an instance under way goes on there."""
        batch = _Batch()
        if self.runs:
            last = self.runs[-1]
            if last.last[0] < last.begun.entries:
                batch.runs.append(_Run(last.begun, last.last))
        return batch

    def _payload(self, number: int, payload: Stored | None) -> None:
        if payload is not None:
            self.runs[-1].payloads.append((number, payload))
            self._count(payload.content or b"")

    def _count(self, content: str | bytes = b"") -> None:
        self.rows += 1
        self.size += len(content)


def _batches(reader: DumpReader) -> Iterator[_Batch]:
    """Put what is read together for writing; the last when the dump has proved to be whole."""
    batch = _Batch()
    for piece in reader:
        if isinstance(piece, Begun) and not batch.has_room_for(piece.entries):
            yield batch
            batch = _Batch()
        elif batch.is_full and not isinstance(piece, Changed | Timer):  # what came with an entry
            yield batch
            batch = batch.next()
        match piece:
            case Declaration():
                batch.declare(piece)
            case Begun():
                batch.begin(piece)
            case Recorded():
                batch.record(piece)
            case Definition():
                batch.define(piece)
            case Changed():
                batch.change(piece)
            case Timer():
                batch.time(piece)
    yield batch


class _Head(NamedTuple):
    """How an instance in the store began, and how far its record goes."""

    genesis_digest: bytes
    number: int
    digest: bytes


class _Added(NamedTuple):
    """What a transaction wrote, and why it left the rest."""

    instances: int
    entries: int
    refusal: Rejected | None


def _write(tenant: str, batch: _Batch) -> Plan[_Added]:
    """Write what the store lacks of a batch, up to an instance that it has otherwise."""
    heads = yield from _heads(tenant, batch.runs)
    keys = yield from _start_keys(tenant, [one for one in batch.runs if _id(one) not in heads])
    declarations = yield from _declarations(tenant, batch.declarations)
    definitions = yield from _definitions(tenant, batch.definitions)
    payloads: list[Row] = []
    destroyed: list[Row] = []
    instances: list[Row] = []
    waves: list[tuple[list[Row], list[Row]]] = []
    timed: list[Row] = []
    timers: list[Row] = []
    entries = 0
    refusal: Rejected | None = None
    for one in batch.runs:
        genesis = one.begun.genesis
        root, id = root_of(genesis.id), genesis.id
        head = heads.get(id)
        refusal = _refusal(one, head, keys)
        if refusal is not None:
            break
        if head is None:
            begun = (genesis.declaration_digest, one.begun.machine.initial_state)
            instances.append((tenant, root, id, *begun, *genesis[2:]))
        known = -1 if head is None else head.number  # what comes up to here is there
        for number, payload in one.payloads:
            if number > known:
                key = (tenant, root, payload.id)
                gone = payload.salt is None
                payloads.append((*key, *(_PLACEHOLDER if gone else payload[1:])))
                destroyed += [key] if gone else []
        for number, wave in enumerate(one.waves(known)):
            if number == len(waves):
                waves.append(([], []))
            waves[number][0].extend((tenant, root, id, *row) for row in wave[0])
            waves[number][1].extend((tenant, root, id, *row) for row in wave[1])
            entries += len(wave[0])
        if known < one.last[0] == one.begun.entries:  # where it comes to what was dumped
            timed += [(tenant, root, id)] if one.begun.genesis.definition_digest else []
            timers += [(tenant, root, id, *timer) for timer in one.timers]
    for name, rows in (
        ("append_declaration", declarations),
        ("append_definition", definitions),
        ("append_payload", payloads),
        ("destroy_payload", destroyed),
        ("append_instance", instances),
        *(
            named
            for wave in waves
            for named in zip(("append_entry", "append_change"), wave, strict=True)
        ),
        ("clear_all_timers", timed),
        ("restore_timer", timers),
    ):
        if rows:
            yield Statement(name, rows)
    return _Added(len(instances), entries, refusal)


def _heads(tenant: str, runs: list[_Run]) -> Plan[dict[str, _Head]]:
    keys = [(tenant, root_of(_id(one)), _id(one)) for one in runs]
    rows = (yield Statement("lock_head", keys)) if keys else []
    return {id: _Head(genesis, number - 1, digest) for id, genesis, number, digest in rows}


def _start_keys(tenant: str, runs: list[_Run]) -> Plan[dict[str, str]]:
    """Give the instances that the idempotency keys of new ones have begun before."""
    named = [one.begun.genesis.idempotency_key for one in runs]
    keys = [(tenant, key) for key in named if key is not None]
    rows = (yield Statement("read_start_key", keys)) if keys else []
    return {row[0]: row[1] for row in rows}


def _declarations(tenant: str, told: dict[str, str]) -> Plan[list[Row]]:
    """Give the rows of the declarations that the store lacks."""
    keys = [(tenant, digest) for digest in told]
    rows = (yield Statement("read_declaration", keys)) if keys else []
    return owed_declarations(tenant, told, dict(rows))


def _definitions(tenant: str, told: dict[str, Definition]) -> Plan[list[Row]]:
    """Give the rows of the definitions that the store lacks.

    Raises:
        DefinitionChanged: the store has another of the same name and version.
    """
    keys = [(tenant, digest) for digest in told]
    known = {row[0] for row in (yield Statement("read_definition", keys))} if keys else set()
    owed = [definition for digest, definition in told.items() if digest not in known]
    for _, name, version, *_ in owed:
        for (other,) in (yield Statement("read_definition_version", [(tenant, name, version)])):
            what = f"version {quoted(version)} of the definition {quoted(name)} means something"
            raise DefinitionChanged(
                f"{what} else in this store; nothing that it governs was restored",
                name=name,
                version=version,
                digest=other,
            )
    return [(tenant, *definition) for definition in owed]


def _refusal(one: _Run, head: _Head | None, keys: dict[str, str]) -> Rejected | None:
    """Say what keeps a run from being written."""
    genesis, last = one.begun.genesis, one.begun.entries
    id, key = genesis.id, genesis.idempotency_key
    if head is None and one.previous[0]:
        what = f"the instance {quoted(id)} was restored in part, and is gone; run `verify`"
        return StorageFailure(what, kind="damaged", instance_id=id)
    if head is None:
        if key is None or key not in keys:
            return None
        what = f"the instance {quoted(id)} was begun under the idempotency key {quoted(key)}, which"
        return IdempotencyConflict(
            f"{what} began {quoted(keys[key])} in this store", idempotency_key=key, instance_id=id
        )
    if one.meets(head):
        return None
    if head.genesis_digest != genesis.genesis_digest:
        what = "began otherwise"
    elif head.number > last:
        what = f"has come to entry {head.number}, the dump to {last}"
    else:
        what = f"has another history: its entry {head.number} is not that of the dump"
    return VersionConflict(
        f"the instance {quoted(id)} is in this store already, and {what}",
        instance_id=id,
        action=None,
        expected_version=last + 1,
        version=head.number + 1,
    )


def _id(one: _Run) -> str:
    return one.begun.genesis.id


def _written(transaction: Transaction, seconds: float) -> Procedure[_Added]:
    """Drive a writing plan that looks first at what is there, so that it may be driven again.

    Once more it is where somebody else wrote the same rows meanwhile, and where nobody knows
    whether it was committed: of that as long as the database may be away, too.
    """
    patience, settled = Patience(seconds), False
    told: _Added | None = None  # by an attempt of which nobody knows whether it was committed
    while True:
        try:
            added: _Added = yield from patiently(transaction, seconds)
            return added if told is None or added.entries or added.instances else told
        except CommitUncertain as uncertain:
            told = uncertain.answer
            if settled and not patience.allows(uncertain.failure):
                raise uncertain.failure from uncertain
        except StorageFailure as failure:
            if settled or failure.kind != "refused":
                raise
        settled = True
        yield Pause(PAUSE)
