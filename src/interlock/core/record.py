"""The record: what stands written, and the digests that bind it.

Each entry carries a digest of its own fields and of the digest before it; the first follows the
digest of the genesis, which names the declaration. So one head per instance vouches for its whole
story: a field changed, an entry removed or another declaration put in its place shows when the
digests are made again. It is no seal: who can write the file can make the digests anew, which is
why heads are worth keeping elsewhere.

A digest covers what is stored, never a value that a store might round: times as whole microseconds,
payloads by their salted digest, so that destroying a payload leaves the chain whole. Fields are
joined by NUL, which no text holds, and a field that may be absent is marked: so no two records have
the same bytes.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

_sha256 = hashlib.sha256


class HistoryRow(NamedTuple):
    """One row of `history` as stored, without the key of its instance (tenant, root, id)."""

    sequence_number: int
    transition_id: str
    from_state: str
    action: str
    to_state: str
    actor_ref: str | None
    fired_at: int  # UTC microseconds
    guard_satisfied: int | None  # 1 where the transition carries a guard
    reason_id: str | None
    reason_digest: bytes | None
    correlation_id: str | None
    causation_id: str | None
    worker_id: str | None
    idempotency_key: str | None
    request_digest: bytes | None
    entry_digest: bytes


class Genesis(NamedTuple):
    """How an instance began, as stored in `instances`: the part that never changes."""

    id: str
    declaration_digest: str
    instantiated_at: int  # UTC microseconds
    actor_ref: str | None
    subject_ref: str | None
    metadata_id: str | None
    metadata_digest: bytes | None
    idempotency_key: str | None
    request_digest: bytes | None
    definition_digest: str | None  # of an instance that an engine began
    genesis_digest: bytes


def genesis_digest(row: Genesis) -> bytes:
    """Make the digest that the chain of an instance starts from; `row`'s own is not read."""
    id, declaration, begun, *said, definition, _ = row
    content = f"{id}\0{declaration}\0{begun}\0{_told(said)}"
    if definition is None:
        content = f"interlock/genesis/1\0{content}"
    else:
        content = f"interlock/genesis/2\0{content}\0{definition}"
    return _sha256(content.encode()).digest()


def text_digest(text: str) -> bytes:
    """Make the digest of the text of a definition.

    Raises:
        UnicodeEncodeError: it is no text that could have been written.
    """
    return _sha256(text.encode()).digest()


def entry_digest(previous: bytes, instance_id: str, row: HistoryRow) -> bytes:
    """Make the digest of an entry that follows the digest `previous`; `row`'s own is not read.

    The fields stand in the order of the row, after the tag of this form and the instance.
    """
    number, entry_id, origin, action, target, actor, at, guard = row[:8]
    said = row[8:15]
    content = (
        f"interlock/entry/1\0{instance_id}\0{number}\0{entry_id}\0{origin}\0{action}\0{target}\0"
        f"{'-' if actor is None else f'+{actor}'}\0{at}\0{guard}\0"
        f"{_NOTHING_TOLD if said == _NOTHING_SAID else _told(said)}"
    )
    return _sha256(previous + content.encode()).digest()


def _told(values: Iterable[str | bytes | None]) -> str:
    """Write optional fields so that an absent one is like no other."""
    return "\0".join(
        "-" if value is None else f"+{value.hex() if isinstance(value, bytes) else value}"
        for value in values
    )


class ChangeRow(NamedTuple):
    """One row of `data_changes` as stored, without the key of its instance (tenant, root, id).

    Attributes:
        sequence_number: of the entry that it came with; 0 is the birth.
        ordinal: from 0, among those that came with the same entry.
        kind: `event`, what an event brought; `patch`, a JSON Merge Patch (RFC 7396) of the data;
            `whole`, all of it.
    """

    sequence_number: int
    ordinal: int
    kind: str
    payload_id: str
    payload_digest: bytes
    change_digest: bytes


def change_digest(previous: bytes, instance_id: str, row: ChangeRow) -> bytes:
    """Make the digest of a change of data; `row`'s own is not read.

    Args:
        previous: the digest of the change before it with the same entry; of the first, the entry's
            own, or that of the genesis. The next entry follows the last change.
    """
    number, ordinal, kind, payload_id, digest, _ = row
    content = f"interlock/change/1\0{instance_id}\0{number}\0{ordinal}\0{kind}\0{payload_id}\0"
    return _sha256(previous + content.encode() + digest).digest()


# Most entries say nothing beyond the move: no payload, references or keys.
_NOTHING_SAID = (None,) * 7
_NOTHING_TOLD = _told(_NOTHING_SAID)


def payload_digest(salt: bytes, content: bytes) -> bytes:
    """Make the digest that vouches for a payload and tells nothing once the salt is destroyed."""
    return _sha256(b"%d\0%b%b" % (len(salt), salt, content)).digest()
