"""What the writing plans need beside their calls, and what they answer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from interlock.core.payload import canonical, decode_payload
from interlock.core.rejection import IdempotencyConflict, Rejected
from interlock.core.text import Limits, quoted
from interlock.store.machines import Machines
from interlock.store.standings import Standing

#: The answer to one call: a new state, the id of a new instance, or why not.
Outcome: TypeAlias = str | Rejected


class Written(NamedTuple):
    """What a writing plan gives.

    Attributes:
        outcomes: one for each call, at its place; None for a fire that was not tried.
        standings: where instances stand once the plan is committed.
    """

    outcomes: Sequence[Outcome | None]
    standings: Mapping[str, Standing]


class Context(NamedTuple):
    """The surroundings of a plan; the clock and the salt are the shell's."""

    tenant: str
    limits: Limits
    machines: Machines
    clock: Callable[[], datetime]
    salt: Callable[[], bytes]


class Answer(NamedTuple):
    """What an idempotency key was answered, and what was asked.

    The first answer is given again to the same request; another request is refused.

    Attributes:
        request_digest: of the request but for its payload: whoever guesses a payload that was
            destroyed shall find nothing to try the guess on.
        payload: what came with it; None where there was none, or where it was destroyed and any is
            as good as the first.
    """

    outcome: str
    request_digest: bytes
    payload: bytes | None

    def repeat(
        self, request: bytes | None, payload: bytes | None, key: str, instance_id: str | None
    ) -> Outcome:
        if self.request_digest == request and self._came_with(payload):
            return self.outcome
        return IdempotencyConflict(
            f"the idempotency key {quoted(key)} was used before, for another request",
            idempotency_key=key,
            instance_id=instance_id,
        )

    def _came_with(self, payload: bytes | None) -> bool:
        if payload is None or self.payload in (None, payload):
            return True
        first, second = decode_payload(self.payload), decode_payload(payload)
        return canonical(first) == canonical(second)  # the order of keys says nothing
