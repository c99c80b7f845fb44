"""One instance's records as they are copied: whether they tell a story that its digests vouch for.

Who writes a dump and who reads it follow the same story with the same checks, so that what was
dumped can be restored.
"""

import json
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from interlock.core.audit import Trail
from interlock.core.declaration import check_declaration, declaration_digest
from interlock.core.machine import Machine
from interlock.core.payload import decode_payload
from interlock.core.record import ChangeRow, Genesis, HistoryRow, payload_digest, text_digest
from interlock.core.text import Limits, quoted

WINDOW = 256  # declarations that whoever reads a dump has to remember

_NO_LIMITS = Limits(name_bytes=2**31, declaration_bytes=2**31)  # the store may have had its own


class Stored(NamedTuple):
    """A payload; without salt and content once it was destroyed."""

    id: str
    salt: bytes | None
    content: bytes | None


class Declaration(NamedTuple):
    """A declaration, and the machine it makes."""

    digest: str
    text: str
    machine: Machine


class Definition(NamedTuple):
    """A definition of an engine: a row of `definitions` without its tenant."""

    digest: str
    name: str
    version: str
    text: str
    text_digest: bytes


class Begun(NamedTuple):
    """The beginning of an instance.

    Attributes:
        entries: how many follow.
        head_digest: of the last of them, or of the last change of data; of the genesis where there
            is neither.
    """

    genesis: Genesis
    entries: int
    head_digest: bytes
    machine: Machine
    metadata: Stored | None


class Recorded(NamedTuple):
    """An entry of the instance that was begun last."""

    row: HistoryRow
    reason: Stored | None


class Changed(NamedTuple):
    """A change of data that came with the last entry."""

    row: ChangeRow
    payload: Stored | None


class Timer(NamedTuple):
    """A timer of the instance that was told last: a row of `timers` without its key."""

    state: str
    name: str
    sequence_number: int
    due_at: int
    next_try_at: int
    failures: int
    failure: str | None


#: What a dump tells, one after another.
Piece: TypeAlias = Declaration | Definition | Begun | Recorded | Changed | Timer


class Declared:
    """The declarations met last, as far as they are remembered: a reader's and a writer's agree."""

    def __init__(self) -> None:
        self._machines: OrderedDict[str, Machine] = OrderedDict()
        self._definitions: OrderedDict[str, None] = OrderedDict()

    def meet(self, digest: str) -> Machine | None:
        """Give the machine of a declaration, if it is remembered."""
        machine = self._machines.get(digest)
        if machine is not None:
            self._machines.move_to_end(digest)
        return machine

    def defines(self, digest: str) -> bool:
        """Whether a definition is remembered."""
        known = digest in self._definitions
        if known:
            self._definitions.move_to_end(digest)
        return known

    def define(self, digest: str) -> None:
        self._definitions[digest] = None
        self._definitions.move_to_end(digest)
        if len(self._definitions) > WINDOW:
            self._definitions.popitem(last=False)

    def add(self, machine: Machine) -> None:
        self._machines[machine.digest] = machine
        self._machines.move_to_end(machine.digest)
        if len(self._machines) > WINDOW:
            self._machines.popitem(last=False)


class Story:
    """One instance of a dump, followed line by line, whether it is being written or read.

    Raises:
        ValueError: what was told last is not what its digests vouch for; the sentence says why.
    """

    def __init__(self, begun: Begun) -> None:
        self.begun = begun
        self.trail = Trail(begun.machine, begun.genesis)
        for fault in self.trail.birth():
            raise ValueError(fault.what)
        _check_payload(begun.metadata, begun.genesis.metadata_id, begun.genesis.metadata_digest)
        self._check_head()

    @property
    def id(self) -> str:
        return self.begun.genesis.id

    @property
    def is_told(self) -> bool:
        """Whether every entry was told, and every change of data."""
        return self._has_every_entry and (
            self.begun.genesis.definition_digest is None
            or self.trail.digest == self.begun.head_digest
        )

    @property
    def _has_every_entry(self) -> bool:
        return self.trail.number == self.begun.entries

    def follow(self, entry: Recorded) -> None:
        """Check the next entry."""
        row, reason = entry
        for fault in self.trail.entry(row):
            where = "" if fault.entry is None else f"entry {fault.entry}: "
            raise ValueError(f"{where}{fault.what}")
        _check_payload(reason, row.reason_id, row.reason_digest)
        self._check_head()

    def follow_change(self, change: Changed) -> None:
        """Check the next change of data."""
        row, payload = change
        if self.begun.genesis.definition_digest is None:
            raise ValueError("its data changed, but no engine began it")
        for fault in self.trail.change(row):
            raise ValueError(fault.what)
        _check_payload(payload, row.payload_id, row.payload_digest)

    def check_timer(self, timer: Timer) -> None:
        """Check a timer, as far as the instance is told."""
        if self.begun.genesis.definition_digest is None or not self.is_told:
            raise ValueError("a timer stands before the instance is told, or of no engine's")
        if not 0 <= timer.sequence_number <= self.begun.entries:
            raise ValueError(f"the timer {quoted(timer.name)} was set with no entry of it")

    def check_told(self) -> None:
        if not self._has_every_entry:
            number, entries = self.trail.number, self.begun.entries
            raise ValueError(f"the history ends at entry {number} of {entries}: its tail is cut")
        if not self.is_told:
            raise ValueError("the head digest is not that of the last change of data")

    def _check_head(self) -> None:
        if self.is_told and self.trail.digest != self.begun.head_digest:
            raise ValueError("the head digest is not that of the last entry")


def compiled(digest: str, text: object) -> Machine:
    """Make the machine of a declaration.

    Raises:
        ValueError: the text is not that of the digest, or is no well-formed declaration.
    """
    if not isinstance(text, str) or declaration_digest(text) != digest:
        raise ValueError("its text was altered: its digest differs")
    declaration = json.loads(text)
    for defect in check_declaration(declaration, _NO_LIMITS):
        raise ValueError(f"it is not well formed: {defect}")
    return Machine(declaration, digest)


def check_definition(definition: Definition) -> None:
    """See that the text of a definition is the one that was written.

    Raises:
        ValueError: it is not; the sentence says why.
    """
    named = f"the definition {quoted(definition.digest)}"
    if text_digest(definition.text) != definition.text_digest:
        raise ValueError(f"{named}: its text was altered: its digest differs")
    if not isinstance(json.loads(definition.text), dict):
        raise ValueError(f"{named} is no JSON object")


def _check_payload(payload: Stored | None, named: str | None, digest: bytes | None) -> None:
    if named is not None and (payload is None or payload.id != named):
        raise ValueError(f"the payload {quoted(named)} is not there")
    if payload is None or (payload.salt is None and payload.content is None):
        return
    if named is None:
        raise ValueError(f"nothing names the payload {quoted(payload.id)}")
    id, salt, content = payload
    if salt is None or content is None or payload_digest(salt, content) != digest:
        raise ValueError(f"the payload {quoted(id)} was altered: its digest differs")
    try:
        content.decode()
        decode_payload(content)
    except (ValueError, RecursionError):
        raise ValueError(f"the payload {quoted(id)} is no JSON in UTF-8") from None
