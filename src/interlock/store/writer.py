"""The writer: it drives writing plans, and knows what to do when one does not come through.

- Attempts of several callers that wait are committed together.
- A plan decides on the standings kept here. When the schema refuses an entry because an instance
  has moved since, the plan is driven again on what is read; nobody else can move it meanwhile.
- When a batch fails, the failure need not be that of each attempt in it: they are sent singly.
- When a commit fails, the records say whether it happened. If they cannot be read, nobody knows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from interlock.core.rejection import OutcomeUnknown, Rejected, StorageFailure
from interlock.store.attempt import Attempt, BirthAttempt
from interlock.store.context import Context, Outcome, Written
from interlock.store.group import Group
from interlock.store.plan import Plan
from interlock.store.read import find_attempts
from interlock.store.sqlite.database import CommitUncertain, Database
from interlock.store.standings import Standing, Standings
from interlock.store.write import write

Known: TypeAlias = Mapping[str, Standing]


class Writer:
    """Writes to one database. Safe to share between threads."""

    def __init__(self, database: Database, context: Context) -> None:
        self._database = database
        self._context = context
        self._standings = Standings()
        self._group = Group[Attempt, Outcome](self._commit, self._recover)

    def submit(self, attempt: Attempt) -> Outcome:
        """Write one attempt, together with those that wait at the same time."""
        return self._group.submit(attempt)

    def write(
        self, plan: Callable[[Known], Plan[Written]], attempts: Sequence[Attempt | Rejected]
    ) -> Sequence[Outcome | None]:
        """Drive a plan of its own, made for the standings that it may decide on.

        Raises:
            StorageFailure: nothing was written.
            OutcomeUnknown: nobody knows.
        """
        known = self._standings.known(attempts)
        try:
            written = self._database.write(plan(known))
        except StorageFailure as failure:
            if failure.kind != "refused" or not known:
                raise
            self._standings.forget(known)
            return self.write(plan, attempts)
        except CommitUncertain as uncertain:
            written = self._learn(uncertain, attempts)
        if written.standings:
            self._standings.keep(written.standings)
        return written.outcomes

    def _commit(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        """Write attempts that wait together."""
        try:
            return self.write(partial(write, self._context, attempts), attempts)  # type: ignore[return-value]  # each is tried
        except StorageFailure as failure:
            if len(attempts) == 1 or failure.kind == "busy":
                return [failure for _ in attempts]
            return [self._recover(attempt, failure) for attempt in attempts]
        except OutcomeUnknown as unknown:
            return [_outcome_unknown(attempt, unknown) for attempt in attempts]

    def _recover(self, attempt: Attempt, error: BaseException) -> Outcome:
        """Answer for an attempt whose commit was broken off for a cause that may not be its own."""
        try:
            found = self._database.read(find_attempts(self._context.tenant, [attempt]))
        except StorageFailure:
            return _outcome_unknown(attempt, error)
        return found[0] if found else self._commit([attempt])[0]

    def _learn(self, uncertain: CommitUncertain, attempts: Sequence[Attempt | Rejected]) -> Written:
        """Learn from the records whether a commit that failed has happened."""
        tried = [attempt for attempt in attempts if not isinstance(attempt, Rejected)]
        if not tried:  # so there was nothing to commit
            return uncertain.answer
        try:
            if self._database.read(find_attempts(self._context.tenant, tried)):
                return uncertain.answer
            self._database.settle()
        except (StorageFailure, CommitUncertain):
            raise _outcome_unknown(tried[0], uncertain) from uncertain
        raise StorageFailure(f"the commit failed ({uncertain})", kind="io", retryable=True)


def _outcome_unknown(attempt: Attempt, error: BaseException) -> OutcomeUnknown:
    if isinstance(attempt, BirthAttempt):
        what, own_id = "the birth of", attempt.genesis.id
    else:
        what, own_id = "the transition", attempt.transition_id
    return OutcomeUnknown(
        f"the store failed while it committed; whether {what} {own_id} happened is not known",
        transition_id=own_id,
        cause=str(error),
    )
