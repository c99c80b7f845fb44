"""The record: what stands written, and the digests that bind it.

Each entry carries a digest of its own fields and of the digest before it; the first follows the
digest of the genesis, which names the declaration. So one head per instance vouches for its whole
story: a field changed, an entry removed or another declaration put in its place shows when the
digests are made again. It is no seal: who can write the file can make the digests anew, which is
why heads are worth keeping elsewhere.

A digest covers what is stored, never a value that a store might round: times as whole microseconds,
payloads by their salted digest, so that destroying a payload leaves the chain whole. Fields are
joined by NUL, which no text holds, and which of them are absent is said first: so no two records
have the same bytes.
"""

import hashlib
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
    genesis_digest: bytes


def genesis_digest(row: Genesis) -> bytes:
    """Make the digest that the chain of an instance starts from; `row`'s own is not read."""
    id, declaration, begun, actor, subject, payload, metadata, _ = row
    absent = (
        (actor is None) + 2 * (subject is None) + 4 * (payload is None) + 8 * (metadata is None)
    )
    content = (
        f"interlock/genesis/1\0{absent}\0{id}\0{declaration}\0{begun}\0{actor or ''}\0"
        f"{subject or ''}\0{payload or ''}\0{metadata.hex() if metadata else ''}"
    )
    return _sha256(content.encode()).digest()


def entry_digest(previous: bytes, instance_id: str, row: HistoryRow) -> bytes:
    """Make the digest of an entry that follows the digest `previous`; `row`'s own is not read.

    The fields stand in the order of the row, after the tag of this form, which are absent, and the
    instance.
    """
    number, entry_id, origin, action, target, actor, at, guard, payload, reason, *refs, asked, _ = (
        row
    )
    correlation, causation, worker, key = refs
    absent = (
        (actor is None)
        + 2 * (guard is None)
        + 4 * (payload is None)
        + 8 * (reason is None)
        + 16 * (correlation is None)
        + 32 * (causation is None)
        + 64 * (worker is None)
        + 128 * (key is None)
        + 256 * (asked is None)
    )
    content = (
        f"interlock/entry/1\0{absent}\0{instance_id}\0{number}\0{entry_id}\0{origin}\0"
        f"{action}\0{target}\0{actor or ''}\0{at}\0{guard or ''}\0{payload or ''}\0"
        f"{reason.hex() if reason else ''}\0{correlation or ''}\0{causation or ''}\0"
        f"{worker or ''}\0{key or ''}\0{asked.hex() if asked else ''}"
    )
    return _sha256(previous + content.encode()).digest()


def payload_digest(salt: bytes, content: bytes) -> bytes:
    """Make the digest that vouches for a payload and tells nothing once the salt is destroyed."""
    return _sha256(b"%d\0%b%b" % (len(salt), salt, content)).digest()
