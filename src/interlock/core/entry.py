"""One history entry: the record of one move, frozen.

Order is the sequence number, never the time: a later entry may carry an earlier `fired_at`.
Source: the State Machine atom, History and Invariants 5, 6 and 9; WF-006, sections 12 and 13.
"""

from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypeAlias


class _Purged(Enum):
    """What stands where a payload was lawfully destroyed."""

    PURGED = "purged"


#: Stands where a payload was lawfully destroyed. The row that named it is whole and verifiable.
PURGED: Final = _Purged.PURGED
Purged: TypeAlias = Literal[_Purged.PURGED]


class Entry(NamedTuple):
    """One history entry.

    Attributes:
        transition_id: identity of the entry, unique within its instance.
        sequence_number: 1 for the first, then one more for each, without gaps.
        actor_ref: who did it, as the caller said; so are the other ids and references.
        fired_at: aware UTC, best effort; not necessarily later than the entry before.
        guard_satisfied: True where the transition carries a guard, else None.
        reason: why, as the caller said; `PURGED` once its bytes were destroyed.
    """

    transition_id: str
    sequence_number: int
    from_state: str
    to_state: str
    action: str
    actor_ref: str | None
    fired_at: datetime
    guard_satisfied: bool | None
    reason: str | Purged | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    worker_id: str | None = None

    @property
    def version(self) -> int:
        """The instance's version once this entry is recorded; the genesis is version 1."""
        return self.sequence_number + 1

    def as_dict(self) -> dict[str, Any]:
        """Give the entry as JSON-like values, leaving out what is absent."""
        values = {**self._asdict(), "fired_at": self.fired_at.isoformat()}
        if self.reason is PURGED:
            values["reason"] = {"purged": True}
        return {name: value for name, value in values.items() if value is not None}
