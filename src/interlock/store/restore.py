"""Restoring: a dump is read back into a store, as far as the store lacks it.

Each line is checked before it writes what that says, some hundreds of rows in a transaction; a file
is checked as a whole before anything is written. Every row goes in by the statements of births and
fires, so the schema judges each entry once more. What is there already is compared and left alone,
so a restore that broke off is run again and goes on. Memory holds the rows of one transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO

from interlock.core.identity import root_of
from interlock.core.record import HistoryRow
from interlock.core.rejection import (
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
from interlock.store.story import Begun, Declaration, Recorded, Stored
from interlock.store.transfer import Listener, Page
from interlock.store.writer import PAUSE, Patience, patiently

BATCH_ROWS = 500  # written in one transaction
BATCH_BYTES = 4 * 1024 * 1024  # of payloads and declarations, about, written in one transaction
CHECKED_ROWS = 1000  # checked between two words about it

_PLACEHOLDER = (b"\0", b"null")  # of a payload that was destroyed, until it is once more


class Restored(NamedTuple):
    """What a restore read, and what of it the store lacked.

    Attributes:
        declarations, instances, entries, payloads: how many the dump has.
        added_instances, added_entries: how many of them were written.
    """

    declarations: int
    instances: int
    entries: int
    payloads: int
    added_instances: int
    added_entries: int


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
    return Restored(*reader.counts, instances, entries)


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
    """Entries of one instance that follow one another.

    Attributes:
        previous: the number and the digest of the entry before the first of them.
        payloads: each with the number of the entry that names it, 0 for the genesis.
    """

    begun: Begun
    previous: tuple[int, bytes]
    entries: list[HistoryRow] = field(default_factory=list)
    payloads: list[tuple[int, Stored]] = field(default_factory=list)

    def meets(self, head: "_Head") -> bool:
        """Say whether a record that ends at `head` may be the beginning of what is dumped."""
        if head.genesis_digest != self.begun.genesis.genesis_digest:
            return False
        number, digest = self.previous
        if head.number == number:
            return head.digest == digest
        place = head.number - number
        if place <= len(self.entries):
            return place > 0 and head.digest == self.entries[place - 1].entry_digest
        return head.number <= self.begun.entries  # a later run will tell


@dataclass
class _Batch:
    """What is written in one transaction."""

    declarations: dict[str, str] = field(default_factory=dict)
    runs: list[_Run] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def declare(self, declaration: Declaration) -> None:
        self.declarations[declaration.digest] = declaration.text
        self._count(declaration.text)

    def begin(self, begun: Begun) -> None:
        self.runs.append(_Run(begun, (0, begun.genesis.genesis_digest)))
        self._payload(0, begun.metadata)
        self._count()

    def record(self, recorded: Recorded) -> None:
        row = recorded.row
        self.runs[-1].entries.append(row)
        self._payload(row.sequence_number, recorded.reason)
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
            if last.entries:
                previous = (last.entries[-1].sequence_number, last.entries[-1].entry_digest)
            else:
                previous = last.previous
            if previous[0] < last.begun.entries:
                batch.runs.append(_Run(last.begun, previous))
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
        elif batch.is_full:
            yield batch
            batch = batch.next()
        match piece:
            case Declaration():
                batch.declare(piece)
            case Begun():
                batch.begin(piece)
            case Recorded():
                batch.record(piece)
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
    payloads: list[Row] = []
    destroyed: list[Row] = []
    instances: list[Row] = []
    entries: list[Row] = []
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
        entries += [(tenant, root, id, *row) for row in one.entries if row.sequence_number > known]
    for name, rows in (
        ("append_declaration", declarations),
        ("append_payload", payloads),
        ("destroy_payload", destroyed),
        ("append_instance", instances),
        ("append_entry", entries),
    ):
        if rows:
            yield Statement(name, rows)
    return _Added(len(instances), len(entries), refusal)


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
