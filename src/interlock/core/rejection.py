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
        """Give the refusal as JSON-like values: the reason word, the sentence, the fields set."""
        fields = {name: value for name, value in vars(self).items() if name != "defects"}
        return {"reason": self.reason, "message": str(self), **fields}


class InvalidDeclaration(Rejected):
    """The declaration is not well formed.

    Attributes:
        defects: every fault, each with its `code`, `path`, `message` and `hint`.
    """

    reason = "invalid-declaration"
    defects: "list[Defect]"

    def as_dict(self) -> dict[str, object]:
        """Give the refusal as JSON-like values, the defects too."""
        return {**super().as_dict(), "defects": [defect.as_dict() for defect in self.defects]}


class InvalidRequest(Rejected):
    """An argument is malformed, or a time lies in the future or before the birth.

    Attributes:
        argument: its name.
        action: of a fire, what was asked for.
    """

    reason = "invalid-request"
    argument: str
    action: str | None = None


class NotKnown(Rejected):
    """No instance has this identity."""

    reason = "not-known"


class Terminal(Rejected):
    """The instance is in a terminal state, which nothing leaves (Invariant 4).

    Attributes:
        state: that state.
        action: what was asked for.
    """

    reason = "terminal"
    state: str
    action: str


class InvalidTransition(Rejected):
    """No transition is declared for this action from this state (Invariant 3).

    Attributes:
        state: where the instance is.
        action: what was asked for.
        declared: the actions there are from this state.
    """

    reason = "invalid-transition"
    state: str
    action: str
    declared: list[str]


class GuardNotSatisfied(Rejected):
    """The transition carries a guard that the caller did not assert (Invariant 8).

    Attributes:
        state: where the instance is.
        action: what was asked for.
        guard: the label of the guard, or the condition that an engine found false.
        guards: of an engine, the labels that would have to be asserted.
    """

    reason = "guard-not-satisfied"
    state: str
    action: str
    guard: str
    guards: tuple[str, ...] = ()


class InvalidQuery(Rejected):
    """A filter of `history` is malformed or unknown.

    Attributes:
        argument: its key.
    """

    reason = "invalid-query"
    argument: str


class VersionConflict(Rejected):
    """The instance is not at the version that the caller expected.

    In a caller's own transaction also: another was faster, and this one's isolation keeps it from
    seeing where the instance stands; the versions are then None.

    Attributes:
        action: what was asked for; None of a restore.
        expected_version: that of the caller, or of the dump that is restored.
        version: that of the store.
    """

    reason = "version-conflict"
    action: str | None
    expected_version: int | None
    version: int | None


class IdempotencyConflict(Rejected):
    """The idempotency key was used before: for another request, or for a part of this list.

    Attributes:
        idempotency_key: that key; None of a fire in such a list that has none.
    """

    reason = "idempotency-conflict"
    idempotency_key: str | None


class EngineOwned(Rejected):
    """An engine began the instance, and only an engine moves it, with its guards and hooks.

    Attributes:
        state: where the instance is.
        action: what was asked for.
    """

    reason = "engine-owned"
    state: str
    action: str


class GuardError(Rejected):
    """A guard failed, or an expression has no value: that is an error, and never a no.

    Attributes:
        state: where the instance is.
        action: the event, timer or automatic step that was looked at.
        guard: the expression, or the name of the guard.
    """

    reason = "guard-error"
    state: str
    action: str
    guard: str


class HookFailed(Rejected):
    """A hook raised, and with it everything was undone; its error is the `__cause__`.

    Attributes:
        state: the state that the instance is in, still.
        action: what was being done.
        hook: the name of the hook.
    """

    reason = "hook-failed"
    state: str
    action: str
    hook: str


class Nondeterministic(Rejected):
    """Two branches are open at once, and nothing says which is taken.

    Attributes:
        state: where the instance is.
        action: the event, timer or automatic step that leads by both.
        branches: what they are called.
    """

    reason = "nondeterministic"
    state: str
    action: str
    branches: list[str]


class StepLimit(Rejected):
    """What follows by itself came to no end within the steps that one call may take.

    Attributes:
        state: where the instance is.
        action: what was asked for.
        steps: how many were taken, and undone.
    """

    reason = "step-limit"
    state: str
    action: str
    steps: int


class DefinitionChanged(Rejected):
    """A definition of this name and version was used before, and it meant something else.

    Attributes:
        name, version: of the definition.
        digest: of the one that was used before.
    """

    reason = "definition-changed"
    name: str
    version: str
    digest: str


class StorageFailure(Rejected):
    """The store could not do it, and nothing was written.

    Attributes:
        kind: `busy` (others kept the database locked, or all connections in use, as long as the
            call could wait), `full`, `io`, `read-only`, `missing`, `foreign` (no store of ours),
            `newer`, `damaged`, `unreadable` (a stored value), `refused` (by the schema),
            `unreachable` (the server was away as long as the call could wait), `conflict` (others
            were faster each time), `closed` or `failed`.
        retryable: whether the same call may succeed later.
    """

    reason = "storage-failure"
    kind: str = "failed"
    retryable: bool = False

    def as_dict(self) -> dict[str, object]:
        """Give the refusal as JSON-like values, kind and all."""
        return {**super().as_dict(), "kind": self.kind, "retryable": self.retryable}


class OutcomeUnknown(Rejected):
    """The store went away while it committed: the call may have happened or not.

    The one refusal after which the store may have changed. Repeat the call with its idempotency
    key, which then tells the truth.

    Attributes:
        transition_id: what to look for in the history; of a birth, the id of the instance.
        cause: what the database said.
    """

    reason = "outcome-unknown"
    transition_id: str
    cause: str
