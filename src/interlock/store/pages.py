"""Pages of the whole record: instances, their entries, and the changes of data with each.

Both who verifies and who dumps walk over them in the order of the chain. A page is read in one
transaction. Its entries and its changes end at the same place, wherever that is.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from interlock.core.record import ChangeRow
from interlock.core.text import quoted
from interlock.store.plan import Plan, Row, Statement
from interlock.store.walk import ID, ROOT

FIRST, LAST = -(2**63), 2**63 - 1  # of the numbers that a database holds

_ENTRY = 16  # columns of `audit_records` that are an entry's


class Change(NamedTuple):
    """A change of data, and the instance that it is filed under."""

    root: str
    id: str
    row: ChangeRow


class Place(NamedTuple):
    """Where a page begins: the first entry to be read, and the first change."""

    entry: Row
    change: Row


class Page(NamedTuple):
    """What was read.

    Attributes:
        rows: of `audit_records`.
        changes: up to the last of those, and all that came with entries before this page.
        place: where it began.
        next: where the page after it begins; None if there is none.
    """

    rows: list[Row]
    changes: list[Change]
    place: Place
    next: Place | None

    def following(self) -> Place | None:
        """Give where the page after it begins.

        Raises:
            ValueError: that is no later place: a damaged table goes in circles.
        """
        if self.next is not None and self.next <= self.place:
            raise ValueError(f"after the key {quoted(self.place)} comes {quoted(self.next)}")
        return self.next

    def records(self) -> Iterator[Row | Change]:
        """Give both in the order of the chain.

        Before the changes of an instance comes a row of it, if need be one without an entry.
        """
        return _merged(self.rows, self.changes) if self.changes else iter(self.rows)


def beginning(root: str, id: str) -> Place:
    """Give the place of an instance."""
    return Place((root, id, FIRST), (root, id, FIRST, FIRST))


def after(root: str, id: str) -> Place:
    """Give the place after all that is told of an instance."""
    return Place((root, id, LAST), (root, id, LAST, LAST))


def read_page(
    tenant: str, place: Place, last: Sequence[Any], rows_max: int, changes_max: int, least: str
) -> Plan[Page]:
    """Read a page, up to the end of the instance `last` (root, id).

    Args:
        least: the first character that a text may hold.
    """
    rows = yield Statement("audit_records", [(tenant, *place.entry, *last, rows_max)])
    full = len(rows) == rows_max
    bound: Row = _bound(rows[-1]) if full else (*last, LAST)
    asked = (tenant, *place.change, *bound, changes_max)
    found = yield Statement("audit_changes", [asked])
    changes = [Change(row[0], row[1], ChangeRow._make(row[2:])) for row in found]
    if len(found) == changes_max:
        root, id, number, ordinal = found[-1][:4]
        rows = _up_to(rows, root, id, number)
        entry = max(place.entry, _next_entry(root, id, number, least))
        return Page(rows, changes, place, Place(entry, (root, id, number, ordinal + 1)))
    if not full:
        return Page(rows, changes, place, None)
    root, id, number = bound
    changed = (*_next_entry(root, id, number, least), FIRST)
    following = Place(_after(rows[-1], least), changed)
    return Page(rows, changes, place, following)


def _merged(rows: list[Row], changes: list[Change]) -> Iterator[Row | Change]:
    waiting = deque(changes)
    begun: Row = ()
    for row in rows:
        place = (row[ROOT], row[ID])
        while waiting and waiting[0][:2] < place:
            yield waiting.popleft()
        if waiting and place != begun and waiting[0][:2] == place:
            yield _without_entry(row)
        begun, number = place, row[0]
        while (
            waiting
            and number is not None
            and waiting[0][:2] == place
            and waiting[0].row.sequence_number < number
        ):
            yield waiting.popleft()
        yield row
    yield from waiting


def _up_to(rows: list[Row], root: str, id: str, number: int) -> list[Row]:
    """Leave out what comes after an entry, but not that its instance is there."""
    kept = [row for row in rows if _position(row) <= (root, id, number)]
    if len(kept) < len(rows) and (not kept or (kept[-1][ROOT], kept[-1][ID]) != (root, id)):
        following = rows[len(kept)]
        if (following[ROOT], following[ID]) == (root, id):
            kept.append(_without_entry(following))
    return kept


def _without_entry(row: Row) -> Row:
    return (*(None,) * _ENTRY, *row[_ENTRY:])


def _position(row: Row) -> Row:
    """Give where a row stands among changes; one without an entry comes first of its instance."""
    return (row[ROOT], row[ID], FIRST if row[0] is None else row[0])


def _bound(row: Row) -> Row:
    """Give the last entry whose changes belong to a page that ends with this row."""
    return (row[ROOT], row[ID], LAST if row[0] is None else row[0] - 1)


def _after(row: Row, least: str) -> Row:
    """Give the place of what comes next to `row`.

    A row without an entry was read when its instance had no more. What stands twice is not read
    twice.
    """
    return _next_entry(row[ROOT], row[ID], LAST if row[0] is None else row[0], least)


def _next_entry(root: Any, id: Any, number: Any, least: str) -> Row:
    return (root, next_key(id, least), FIRST) if number >= LAST else (root, id, number + 1)


def next_key(key: Any, least: str) -> Any:
    """Give what comes right after a key, in the order of bytes. A damaged one may be bytes."""
    return key + (b"\0" if isinstance(key, bytes) else least)
