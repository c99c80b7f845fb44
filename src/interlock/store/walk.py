"""The walk of a verification along one instance, and beside it along an earlier report.

A walk is given the rows of `audit_records` one after another, and between them the changes of data,
in pages that may end anywhere, and says what is wrong with each. Both go in one order, by root and
id, so each is read once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from interlock.core.audit import Fault, Trail
from interlock.core.identity import place_of, root_of
from interlock.core.machine import Machine
from interlock.core.patch import merge
from interlock.core.payload import canonical, decode_payload
from interlock.core.record import ChangeRow, Genesis
from interlock.core.text import quoted
from interlock.store.plan import Row

# The columns of `audit_records`: an entry, its digest last; a genesis; where the instance stands.
ENTRY, GENESIS, STANDING = slice(0, 16), slice(16, 27), slice(27, 30)
DIGEST, ID, DECLARATION, ROOT = 15, 16, 17, 30


class Head(NamedTuple):
    """The end of an instance's story as somebody saw it: its last entry, and that entry's digest.

    An instance without entries has the number 0 and the digest of its genesis. Where data changed
    with it, the digest is that of the last change.
    """

    instance: str
    number: int
    digest: bytes


class Walk:
    """The walk along one instance, which may take several pages. `head` is how far it came."""

    def __init__(self, row: Row, machine: Machine | None, expected: Head | None) -> None:
        self.genesis = Genesis._make(row[GENESIS])
        self.id = self.genesis.id
        self.root: str = row[ROOT]
        self.trail = Trail(machine, self.genesis) if machine else None
        self.expected = expected
        self.standing = row[STANDING]
        self.head = Head(self.id, 0, self.genesis.genesis_digest)
        self.data = Data()
        self.changed: tuple[int, int] | None = None  # the change that came last

    def begin(self) -> Iterator[Fault]:
        if self.root != root_of(self.id):
            yield Fault(10, None, f"it is filed under the root {quoted(self.root)}")
        if self.trail is None:
            digest = quoted(self.genesis.declaration_digest)
            yield Fault(1, None, f"its declaration {digest} is missing or not well formed")
        else:
            yield from self.trail.birth()

    def entry(self, row: Row) -> Iterable[Fault]:
        trail = self.trail
        left: Iterable[Fault] = () if self.expected is None else [*self._leave()]
        if trail is None:
            self.head = Head(self.id, row[0], row[DIGEST])
            return left
        faults = trail.entry(row[ENTRY])  # type: ignore[arg-type]
        return [*left, *faults] if left else faults

    def change(self, row: ChangeRow, content: bytes | None) -> Iterator[Fault]:
        """Check a change of data, with what its payload says, if that is there."""
        trail, entry = self.trail, row.sequence_number or None
        if self.genesis.definition_digest is None:
            yield Fault(5, entry, "its data changed, but no engine began it")
            return
        if trail is None:
            self.head = Head(self.id, row.sequence_number, row.change_digest)
        else:
            yield from trail.change(row)
        if row.kind != "event":
            fault = self.data.change(row.kind, content)
            if fault:
                yield Fault(7, entry, fault)

    def _leave(self) -> Iterator[Fault]:
        """Compare the entry that was told to its end with the head of the earlier report."""
        trail, expected = self.trail, self.expected
        if trail is not None:
            self.head = Head(self.id, trail.number, trail.digest)
        head = self.head
        if expected and expected.number == head.number and expected.digest != head.digest:
            what = f"of the earlier report: {_heads(expected, head.digest)}"
            if head.number:
                yield Fault(5, head.number, f"it is not the entry {what}")
            else:
                yield Fault(1, None, f"the genesis is not that {what}")

    def finish(self) -> Iterator[Fault]:
        trail, expected = self.trail, self.expected
        yield from self._leave()
        if trail is not None:
            yield from trail.close(*self.standing)
        head = self.head
        if expected and expected.number > head.number:
            what = (
                f"the history ends at entry {head.number}; its tail, which the earlier report saw "
            )
            heads = _heads(expected, head.digest)
            yield Fault(5, None, f"{what}up to {expected.number}, is cut: {heads}")


class Data:
    """What the changes so far make of an instance's data; not known while a payload is missing."""

    def __init__(self) -> None:
        self._made: Any = {"data": {}}
        self._began = False

    def change(self, kind: str, content: bytes | None) -> str | None:
        """Apply a patch, or compare the whole; say what is wrong."""
        began, self._began = self._began, True
        try:
            value = None if content is None else decode_payload(content)
        except (ValueError, RecursionError):
            value = content = None  # which is told of where payloads are looked at
        if content is None:
            self._made = None
            return None
        if not isinstance(value, Mapping):
            return "what changed of its data is no JSON object"
        made = self._made
        if kind != "whole":
            self._made = made and merge(made, value)
            return None
        self._made = merge({"data": {}}, value)
        if began and made is not None and canonical(made) != canonical(self._made):
            return "its data, written as a whole, are not what the changes before make of them"
        return None


class Earlier:
    """The heads of an earlier report, read beside the walk, which goes in the same order."""

    def __init__(self, heads: Iterable[Head]) -> None:
        self._heads = iter(heads)
        self._next = next(self._heads, None)

    def before(self, id: str | None) -> Iterator[Head]:
        """Take the heads of instances before `id` (None: all that are left), which are gone."""
        while self._next and (id is None or place_of(self._next.instance) < place_of(id)):
            yield self._next
            self._next = next(self._heads, None)

    def take(self, id: str) -> Head | None:
        """Take the head of `id`, should the report have it."""
        if self._next is None or self._next.instance != id:
            return None
        head, self._next = self._next, next(self._heads, None)
        return head


def _heads(expected: Head, found: bytes) -> str:
    return f"expected head {expected.digest.hex()[:16]}…, found {found.hex()[:16]}…"
