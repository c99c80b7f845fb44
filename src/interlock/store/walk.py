"""The walk of a verification along one instance, and beside it along an earlier report.

A walk is given the rows of `audit_records` one after another, in pages that may end anywhere, and
says what is wrong with each. Both go in one order, by root and id, so each is read once.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interlock.core.audit import Fault, Trail
from interlock.core.identity import place_of, root_of
from interlock.core.machine import Machine
from interlock.core.record import Genesis
from interlock.core.text import quoted
from interlock.store.plan import Row

# The columns of `audit_records`: an entry, its digest last; a genesis; where the instance stands.
ENTRY, GENESIS, STANDING = slice(0, 16), slice(16, 27), slice(27, 30)
DIGEST, ID, DECLARATION, ROOT = 15, 16, 17, 30


class Head(NamedTuple):
    """The end of an instance's story as somebody saw it: its last entry, and that entry's digest.

    An instance without entries has the number 0 and the digest of its genesis.
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

    def begin(self) -> Iterator[Fault]:
        if self.root != root_of(self.id):
            yield Fault(10, None, f"it is filed under the root {quoted(self.root)}")
        if self.trail is None:
            digest = quoted(self.genesis.declaration_digest)
            yield Fault(1, None, f"its declaration {digest} is missing or not well formed")
        else:
            yield from self.trail.birth()

    def entry(self, row: Row) -> Iterable[Fault]:
        trail, expected = self.trail, self.expected
        if trail is None:
            self.head = Head(self.id, row[0], row[DIGEST])
            faults: Iterable[Fault] = ()
        else:
            faults = trail.entry(row[ENTRY])  # type: ignore[arg-type]
        if expected is not None and row[0] == expected.number and row[DIGEST] != expected.digest:
            what = f"it is not the entry of the earlier report: {_heads(expected, row[DIGEST])}"
            return [*faults, Fault(5, row[0], what)]
        return faults

    def finish(self) -> Iterator[Fault]:
        trail, expected = self.trail, self.expected
        if trail is not None:
            self.head = Head(self.id, trail.number, trail.digest)
            yield from trail.close(*self.standing)
        head = self.head
        if expected and expected.number > head.number:
            what = (
                f"the history ends at entry {head.number}; its tail, which the earlier report saw "
            )
            heads = _heads(expected, head.digest)
            yield Fault(5, None, f"{what}up to {expected.number}, is cut: {heads}")
        elif expected and not expected.number and expected.digest != self.genesis.genesis_digest:
            what = _heads(expected, self.genesis.genesis_digest)
            yield Fault(1, None, f"the genesis is not that of the earlier report: {what}")


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
