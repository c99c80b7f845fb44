"""Identities: UUID version 7 as text (RFC 9562, section 5.7), and the family a name tells.

A child's identity is its root's followed by a dot and a suffix, so the root that groups a family's
rows is read off any identity. Identities sort by the time they were made, which keeps index pages
warm; nothing orders history by them.
"""

from datetime import datetime

from interlock.core.instant import EPOCH, MICROSECOND


def uuid7(moment: datetime, randomness: int) -> str:
    """Make an identity for a moment, aware UTC, given a random number below 2**62.

    The 48 bits of milliseconds are followed by the microseconds of that millisecond (0 to 999) in
    the 12 bits the standard calls rand_a (its section 6.2, method 3), then 62 random bits.
    """
    milliseconds, rest = divmod((moment - EPOCH) // MICROSECOND, 1000)
    high, low = divmod(1 << 63 | randomness, 1 << 48)
    seconds, second = divmod(milliseconds, 1 << 16)
    return f"{seconds:08x}-{second:04x}-7{rest:03x}-{high:04x}-{low:012x}"


def root_of(instance_id: str) -> str:
    """Read the root of the family that `instance_id` belongs to; a root is its own."""
    return instance_id.partition(".")[0]


def place_of(instance_id: str) -> tuple[str, str]:
    """Give where an instance stands in the order of a tenant's: its root, then its id."""
    return root_of(instance_id), instance_id
