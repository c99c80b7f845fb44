"""What is written of the changes that came with an entry: payloads, and rows that name them."""

from typing import Any, TypeAlias

from interlock.core.payload import encode_payload
from interlock.core.record import ChangeRow, change_digest, payload_digest
from interlock.store.context import Context
from interlock.store.plan import Plan, Statement
from interlock.store.standings import Standing

#: A kind (`event`, `patch`, `whole`), and what is written under it.
Change: TypeAlias = tuple[str, Any]


class Ledger:
    """The changes of one entry, or of a birth, in their order; each follows the one before.

    Args:
        standing: where the instance is with that entry.
        entry_id: of the entry, or of the instance itself.
    """

    def __init__(self, context: Context, standing: Standing, entry_id: str) -> None:
        self._context = context
        self._key = (context.tenant, standing.root, standing.snapshot.instance_id)
        self._number = standing.snapshot.version - 1
        self._entry_id = entry_id
        self._ordinal = 0
        self._last = standing.head

    def write(self, kind: str, value: Any) -> Plan[bytes]:
        """Write a change, and give its digest, which is the head of the instance then."""
        tenant, root, id = self._key
        content, salt = encode_payload(value), self._context.salt()
        name = f"{self._entry_id}/{self._ordinal}"
        yield Statement("append_payload", [(tenant, root, name, salt, content)])
        digest = payload_digest(salt, content)
        row = ChangeRow(self._number, self._ordinal, kind, name, digest, b"")
        self._last = change_digest(self._last, id, row)
        yield Statement("append_change", [(*self._key, *row[:-1], self._last)])
        self._ordinal += 1
        return self._last
