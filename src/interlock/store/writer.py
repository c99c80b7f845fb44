"""The writer: the procedures of writing, and what to do when a transaction does not come through.

- Attempts of several callers that wait are committed together.
- A plan decides on the standings kept here. When the schema refuses an entry because an instance
  has moved since, the plan is driven again on what is read; nobody else can move it meanwhile.
- When a batch fails, the failure need not be that of each attempt in it: each goes on alone.
- When a commit fails, the records say whether it happened. Where what was sent may still be
  executed, the same attempts are sent again under the lock of their instances: those in the record
  are done, and of two that are the same the record takes one. If the records cannot be read as long
  as the call may wait, nobody knows.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from interlock.core.rejection import OutcomeUnknown, Rejected, StorageFailure, VersionConflict
from interlock.store.attempt import Attempt, BirthAttempt, FireAttempt
from interlock.store.context import Outcome, Written
from interlock.store.group import GoAlone
from interlock.store.plan import (
    CommitUncertain,
    Pause,
    Plan,
    Procedure,
    Statement,
    Transaction,
)
from interlock.store.read import find_attempts
from interlock.store.standings import Standing, Standings

_COMMON = ("busy", "unreachable")  # kinds of failures that each attempt of a batch would meet
PAUSE = 0.05  # seconds before a transaction is sent again


class Planner(Protocol):
    """Makes a plan for attempts and the standings that it may decide on; see `fire`."""

    def __call__(
        self, attempts: Sequence[Any], known: Mapping[str, Standing], /, **how: bool
    ) -> Plan[Written]: ...


#: What a caller in a group is answered; an unforeseen error goes to the caller it concerns.
Answered: TypeAlias = str | Exception


class Patience:
    """How long a call goes on with a database that is away or asks it to give way.

    Args:
        seconds: 0 for a database that neither goes away nor asks.
        since: when the call began; 0 is now.
    """

    def __init__(self, seconds: float, since: float = 0.0) -> None:
        self._ends = (since or time.monotonic()) + seconds if seconds else 0.0

    def allows(self, failure: StorageFailure) -> bool:
        """Whether to try again after a failure."""
        passing = failure.retryable and failure.kind in ("unreachable", "conflict")
        return passing and not self.is_over()

    def is_over(self) -> bool:
        return time.monotonic() > self._ends


def patiently(transaction: Transaction, seconds: float) -> Procedure[Any]:
    """Drive a transaction, again should the database be away or ask for it."""
    if not seconds:
        return (yield transaction)
    transaction = transaction._replace(since=transaction.since or time.monotonic())
    patience = Patience(seconds, transaction.since)
    while True:
        try:
            return (yield transaction)
        except StorageFailure as failure:
            if not patience.allows(failure):
                raise
        except CommitUncertain as uncertain:
            uncertain.since = transaction.since
            raise
        yield Pause(PAUSE)


class Writer:
    """Writes to one database for one tenant. Safe to share between threads.

    Args:
        shared: other processes may hold instances locked: a batch waits for none of them.
        patience: seconds; see `Patience`.
    """

    def __init__(self, tenant: str, *, shared: bool = False, patience: float = 0.0) -> None:
        self._tenant = tenant
        self._shared = shared
        self._patience = patience
        self._standings = Standings()

    def write(
        self, planner: Planner, attempts: Sequence[Attempt | Rejected]
    ) -> Procedure[Sequence[Outcome | None]]:
        """Write attempts in a transaction of their own.

        Raises:
            StorageFailure: nothing was written.
            OutcomeUnknown: nobody knows.
        """
        make = partial(planner, attempts, self._standings.kept)
        return (yield from self._write(planner, attempts, make))

    def perform(self, planner: Planner, attempt: Attempt) -> Procedure[Outcome]:
        """Write one attempt of an engine, whose plan says itself what it locks.

        Raises:
            Rejected: nothing was written.
            OutcomeUnknown: nobody knows.
        """
        make = partial(planner, [attempt], self._standings.kept)
        (outcome,) = yield from self._write(planner, [attempt], make, begins=True)
        return outcome  # type: ignore[return-value]  # it was tried

    def join(
        self, planner: Planner, attempts: Sequence[Attempt | Rejected]
    ) -> Procedure[Sequence[Outcome | None]]:
        """Write attempts in a transaction of their caller, who may yet roll it back.

        So nothing is kept of what it reads and writes, and a conflict is the caller's to settle. A
        refusal undoes what there is of it, locks included.

        Raises:
            VersionConflict: another transaction was faster, and this one cannot see past it.
        """
        make = partial(planner, attempts, {}, held=True)
        self._forget(attempts)
        try:
            written: Written = yield Transaction(lambda: _whole(make()), writes=True, holds=True)
        except VersionConflict as conflict:
            if conflict.version is None:
                _name(conflict, attempts)
            raise
        finally:
            self._forget(attempts)
        return written.outcomes

    def commit(
        self, planner: Planner, attempts: Sequence[Attempt]
    ) -> Procedure[Sequence[Answered | GoAlone]]:
        """Write attempts that wait together; where they had better go alone, say so."""
        try:
            if self._shared:
                return (yield from self._write_free(planner, attempts))
            return _left_out((yield from self.write(planner, attempts)))
        except StorageFailure as failure:
            if failure.kind in _COMMON or (len(attempts) == 1 and not self._shared):
                return [failure for _ in attempts]
        except OutcomeUnknown as unknown:
            return [_outcome_unknown(attempt, unknown) for attempt in attempts]
        except Exception as error:  # unforeseen, as of a clock or a signal handler, at any moment
            return [error if len(attempts) == 1 else GoAlone(error) for _ in attempts]
        return [GoAlone() for _ in attempts]

    def alone(
        self, planner: Planner, attempt: Attempt, error: BaseException | None
    ) -> Procedure[Answered]:
        """Write one attempt that was left out of a batch.

        Args:
            error: why the batch was broken off, perhaps after it was committed.
        """
        try:
            if error is not None and self._patience:
                written = yield from self._send_again(planner, [attempt], error)
                self._standings.keep(written.standings)
                (outcome,) = written.outcomes
            else:
                self._forget([attempt])
                make = partial(planner, [attempt], {}, held=True, again=error is not None)
                (outcome,) = yield from self._write(planner, [attempt], make, holds=True)
        except StorageFailure as failure:
            return failure if error is None else _outcome_unknown(attempt, error)
        except OutcomeUnknown as unknown:
            return _outcome_unknown(attempt, unknown)
        except Exception as unforeseen:
            return unforeseen
        return outcome  # type: ignore[return-value]  # it was tried

    def _write_free(
        self, planner: Planner, attempts: Sequence[Attempt]
    ) -> Procedure[Sequence[Answered | GoAlone]]:
        """Write what needs no waiting for others."""
        make = partial(planner, attempts, self._standings.kept, free=True)
        try:
            written: Written = yield from patiently(Transaction(make, writes=True), self._patience)
        except CommitUncertain as uncertain:
            return (yield from self._part(planner, attempts, uncertain))
        self._standings.keep(written.standings)
        return _left_out(written.outcomes)

    def _part(
        self, planner: Planner, attempts: Sequence[Attempt], uncertain: CommitUncertain
    ) -> Procedure[Sequence[Answered | GoAlone]]:
        """Part a batch that may have been executed, or may still be.

        Fires on one instance were decided one upon the other. Alone, a later one might be refused,
        though the batch may yet come and bring it about; so these are sent again in their order.
        """
        fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
        counts = Counter(fire.instance_id for fire in fires)
        runs = [fire for fire in fires if counts[fire.instance_id] > 1]
        answers: dict[str, Answered] = {}
        if runs:
            try:
                written = yield from self._send_again(planner, runs, uncertain)
            except OutcomeUnknown as unknown:
                answers = {fire.own_id: _outcome_unknown(fire, unknown) for fire in runs}
            else:
                self._standings.keep(written.standings)
                told = zip(runs, written.outcomes, strict=True)
                answers = {fire.own_id: state for fire, state in told if state is not None}
        return [answers.get(attempt.own_id, GoAlone(uncertain)) for attempt in attempts]

    def _write(
        self,
        planner: Planner,
        attempts: Sequence[Attempt | Rejected],
        make: "partial[Plan[Written]]",
        *,
        holds: bool = False,
        begins: bool = False,
    ) -> Procedure[Sequence[Outcome | None]]:
        """Write in a transaction.

        Args:
            holds: the plan locks what it moves before it looks.
            begins: it may lock it at any time.
        """
        written: Written
        since = time.monotonic() if self._patience else 0.0
        transaction = Transaction(make, writes=True, holds=holds or begins, since=since)
        try:
            written = yield from patiently(transaction, self._patience)
        except StorageFailure as failure:
            # Nobody moves what is held; but births hold nothing, and may lose the race for a key.
            if failure.kind != "refused" or (holds and isinstance(attempts[0], FireAttempt)):
                raise
            written = yield from self._write_afresh(planner, attempts, since)
        except CommitUncertain as uncertain:
            written = yield from self._learn(planner, attempts, uncertain)
        if written.standings:
            self._standings.keep(written.standings)
        return written.outcomes

    def _write_afresh(
        self, planner: Planner, attempts: Sequence[Attempt | Rejected], since: float
    ) -> Procedure[Written]:
        """Drive the plan once more, on what it reads: what was kept is out of date."""
        self._forget(attempts)
        make = partial(planner, attempts, {}, held=True)
        again = Transaction(make, writes=True, holds=True, since=since)
        try:
            written: Written = yield from patiently(again, self._patience)
        except CommitUncertain as uncertain:
            written = yield from self._learn(planner, attempts, uncertain)
        return written

    def _learn(
        self, planner: Planner, attempts: Sequence[Attempt | Rejected], uncertain: CommitUncertain
    ) -> Procedure[Written]:
        """Learn whether a commit that failed has happened."""
        tried = [attempt for attempt in attempts if not isinstance(attempt, Rejected)]
        answer: Written = uncertain.answer
        if not tried:  # so there was nothing to commit
            return answer
        if uncertain.lost:
            return (yield from self._send_again(planner, attempts, uncertain))
        try:
            if (yield Transaction(partial(find_attempts, self._tenant, tried))):
                return answer
            yield Transaction(settle, writes=True)
        except (StorageFailure, CommitUncertain):
            raise _outcome_unknown(tried[0], uncertain) from uncertain
        raise uncertain.failure from uncertain

    def _send_again(
        self,
        planner: Planner,
        attempts: Sequence[Attempt | Rejected],
        why: BaseException,
    ) -> Procedure[Written]:
        """Send attempts again that may or may not have been executed, or may still be.

        However long the first sending took, half of the patience is left for it.
        """
        since = why.since if isinstance(why, CommitUncertain) else 0.0
        since = since or time.monotonic()
        patience = Patience(self._patience, max(since, time.monotonic() - self._patience / 2))
        make = partial(planner, attempts, {}, held=True, again=True)
        self._forget(attempts)
        while True:
            yield Pause(PAUSE)
            try:
                written: Written = yield Transaction(make, writes=True, holds=True, since=since)
            except (StorageFailure, CommitUncertain) as failure:
                closed = isinstance(failure, StorageFailure) and failure.kind == "closed"
                if closed or patience.is_over():
                    break
            else:
                return written
        tried = next(attempt for attempt in attempts if not isinstance(attempt, Rejected))
        raise _outcome_unknown(tried, why) from why

    def _forget(self, attempts: Sequence[Attempt | Rejected]) -> None:
        self._standings.forget(one.instance_id for one in attempts if isinstance(one, FireAttempt))


def settle() -> Plan[None]:
    """After a commit that failed and is not in the records, make sure that it never will be.

    SQLite's log may hold it whole, unseen, and a crash before the next commit would then bring it
    back; so the next commit is made here.
    """
    yield Statement("settle", [()])


def _whole(plan: Plan[Written]) -> Plan[Written]:
    """Raise a refusal, where the plan would only give it."""
    written = yield from plan
    for outcome in written.outcomes:
        if isinstance(outcome, Rejected):
            raise outcome
    return written


def _left_out(outcomes: Sequence[Outcome | None]) -> list[Answered | GoAlone]:
    """Have those go alone that were not tried."""
    return [GoAlone() if outcome is None else outcome for outcome in outcomes]


def _name(conflict: VersionConflict, attempts: Sequence[Attempt | Rejected]) -> None:
    """Say which fire a transaction lost its race with, if that can be said."""
    fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
    if len(fires) == 1:
        conflict.instance_id, conflict.action = fires[0].instance_id, fires[0].request.action


def _outcome_unknown(attempt: Attempt, error: BaseException) -> OutcomeUnknown:
    what = "the birth of" if isinstance(attempt, BirthAttempt) else "the transition"
    own_id = attempt.own_id
    return OutcomeUnknown(
        f"the store failed while it committed; whether {what} {own_id} happened is not known",
        transition_id=own_id,
        cause=str(error),
    )
