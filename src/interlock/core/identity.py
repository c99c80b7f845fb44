"""Identities: UUID version 7 as text (RFC 9562, section 5.7), and the family a name tells.

A child's identity is its root's followed by a dot and a suffix, so the root that groups a family's
rows is read off any identity. Identities sort by the time they were made, which keeps index pages
warm; nothing orders history by them.
"""


def uuid7(microseconds: int, randomness: bytes) -> str:
    """Make an identity for a moment, given 8 random bytes.

    The 48 bits of milliseconds are followed by the microseconds of that millisecond (0 to 999) in
    the 12 bits the standard calls rand_a (its section 6.2, method 3), then 62 random bits.
    """
    milliseconds, rest = divmod(microseconds, 1000)
    tail = int.from_bytes(randomness, "big") & 0x3FFFFFFFFFFFFFFF | 0x8000000000000000
    digits = f"{milliseconds:012x}7{rest:03x}{tail:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def root_of(instance_id: str) -> str:
    """Read the root of the family that `instance_id` belongs to; a root is its own."""
    return instance_id.partition(".")[0]
