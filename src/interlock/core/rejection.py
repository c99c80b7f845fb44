"""The refusals: why a call did nothing.

One root, one leaf for each word that goes over the wire. Each carries the fields that say what was
tried, so that programs need not read the sentence; unless a docstring says otherwise, the store is
exactly as it was. Source: the State Machine atom, its five actions; DESIGN, sections 2 and 4.5.

    try:
        store.fire(batch, "release")
    except interlock.Rejected as refusal:
        refusal.reason      # "guard-not-satisfied"
        refusal.guard       # "QP-sign-off"
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from interlock.core.declaration import Defect


class Rejected(Exception):
    """A call was refused and changed nothing.

    Attributes:
        reason: the word on the wire, such as `invalid-transition`.
        index: where in a list of fires the refused one stands, for calls that take a list.
        instance_id: the instance it is about, where it is about one.
    """

    reason: ClassVar[str] = "rejected"
    index: int | None = None
    instance_id: str | None = None

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.__dict__.update(fields)

    def as_dict(self) -> dict[str, object]:
        """Give the refusal as JSON-like values: the reason word, the sentence and the fields."""
        fields = {name: value for name, value in vars(self).items() if name != "defects"}
        return {"reason": self.reason, "message": str(self), **fields}


class InvalidDeclaration(Rejected):
    """The declaration is not well formed; `defects` lists every fault with its path."""

    reason = "invalid-declaration"
    defects: "list[Defect]"

    def as_dict(self) -> dict[str, object]:
        return {**super().as_dict(), "defects": [defect.as_dict() for defect in self.defects]}


class InvalidRequest(Rejected):
    """An argument is malformed; `argument` names it. Of a fire, `action` says which."""

    reason = "invalid-request"
    argument: str
    action: str | None = None


class NotKnown(Rejected):
    """No instance has this identity."""

    reason = "not-known"


class Terminal(Rejected):
    """The instance is in a terminal state, which nothing leaves (Invariant 4)."""

    reason = "terminal"
    state: str
    action: str


class InvalidTransition(Rejected):
    """No transition is declared for this action from this state (Invariant 3)."""

    reason = "invalid-transition"
    state: str
    action: str
    declared: list[str]


class GuardNotSatisfied(Rejected):
    """The transition carries a guard that the caller did not assert (Invariant 8)."""

    reason = "guard-not-satisfied"
    state: str
    action: str
    guard: str


class InvalidQuery(Rejected):
    """A history filter is malformed; `argument` names the key."""

    reason = "invalid-query"
    argument: str


class VersionConflict(Rejected):
    """The instance is not at the version that the caller expected.

    In a caller's own transaction also: another was faster, and this one's isolation keeps it from
    seeing where the instance stands; the versions are then None.
    """

    reason = "version-conflict"
    action: str | None
    expected_version: int | None
    version: int | None


class IdempotencyConflict(Rejected):
    """The idempotency key was used before, for another request."""

    reason = "idempotency-conflict"
    idempotency_key: str | None


class StorageFailure(Rejected):
    """The store could not do it, and nothing was written.

    Attributes:
        kind: `busy` (others kept the database locked as long as the call could wait), `full`, `io`,
            `read-only`, `missing`, `foreign` (no store of ours), `newer`, `damaged`,
            `unreadable` (a stored value), `refused` (by the schema), `unreachable` (the server was
            away as long as the call could wait), `conflict` (others were faster each time),
            `closed` or `failed`.
        retryable: whether the same call may succeed later.
    """

    reason = "storage-failure"
    kind: str = "failed"
    retryable: bool = False

    def as_dict(self) -> dict[str, object]:
        return {**super().as_dict(), "kind": self.kind, "retryable": self.retryable}


class OutcomeUnknown(Rejected):
    """The store went away while it committed: the call may have happened or not.

    The one refusal after which the store may have changed. Look for `transition_id` in the history
    (for a birth, for the instance `transition_id` names), or repeat the call with its idempotency
    key, which then tells the truth. `cause` is what the database said.
    """

    reason = "outcome-unknown"
    transition_id: str
    cause: str
