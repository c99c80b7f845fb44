"""What counts as text, and how large things may be.

Every name, reference and identity that enters is compared byte for byte: nothing is trimmed,
folded or normalised. So the rules are few, and the same for every store: text holds at least one
character that is not white space, no NUL (PostgreSQL cannot hold one) and no lone surrogate (it has
no UTF-8 form), and it fits its limit.

    text_fault("release", 512)   -> None
    text_fault("  ", 512)        -> "is blank"
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest sizes accepted, in bytes of UTF-8 (rows of a list in `page_rows`).

    A name or reference stands in index keys, which PostgreSQL bounds at 2,704 bytes a row, so there
    limits are refused that those could not hold; the rest is bounded so that one call cannot fill a
    store or a page of memory.

    Attributes:
        name_bytes: of a state, an action, a guard label.
        reference_bytes: of an actor, a subject, an id, an idempotency key.
        reason_bytes: of a reason.
        metadata_bytes: of an instance's metadata, as JSON.
        payload_bytes: of an event's payload, and of an instance's data, as JSON.
        declaration_bytes: of a declaration, as JSON.
        page_rows: rows in a page of `instances`.
    """

    name_bytes: int = 512
    reference_bytes: int = 1024
    reason_bytes: int = 64 * 1024
    metadata_bytes: int = 1024 * 1024
    payload_bytes: int = 1024 * 1024
    declaration_bytes: int = 4 * 1024 * 1024
    page_rows: int = 1000


LIMITS = Limits()


def text_fault(value: object, max_bytes: int) -> str | None:
    """Say what keeps `value` from being an acceptable text, or None when it is one."""
    if not isinstance(value, str):
        return f"is not text but {type(value).__name__}"
    if not value or value.isspace():
        return "is blank"
    if "\0" in value:
        return "holds a NUL character"
    size = len(value)
    if not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return "holds a lone surrogate, which has no UTF-8 form"
    if size > max_bytes:
        return f"is {size} bytes long, more than the {max_bytes} allowed"
    return None


def clipped(value: object, width: int = 80) -> str:
    """Show what somebody gave within a message: short, and printable whatever it is."""
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:  # a number of too many digits, an object that will not be shown
        text = f"<{type(value).__name__}>"
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    return text.encode("utf-8", "backslashreplace").decode()


def quoted(value: object) -> str:
    """Show what somebody gave in backticks, as messages do."""
    return f"`{clipped(value)}`"


def nearest(word: object, known: Collection[str]) -> str | None:
    """Find what a misspelt `word` probably meant, for a hint; not among too many or too long."""
    from difflib import get_close_matches

    if not isinstance(word, str) or len(word) > 100 or len(known) > 1000:
        return None
    return next(iter(get_close_matches(word, known, n=1)), None)
