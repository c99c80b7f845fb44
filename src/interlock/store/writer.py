"""The writer: it drives writing plans, and knows what to do when one does not come through.

- Attempts of several callers that wait are committed together.
- A plan decides on the standings kept here. When the schema refuses an entry because an instance
  has moved since, the plan is driven again on what is read; nobody else can move it meanwhile.
- When a batch fails, the failure need not be that of each attempt in it: they are sent singly.
- When a commit fails, the records say whether it happened. If they cannot be read, nobody knows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from interlock.core.rejection import OutcomeUnknown, Rejected, StorageFailure
from interlock.store.attempt import Attempt, BirthAttempt, FireAttempt
from interlock.store.birth import bear
from interlock.store.context import Context, Outcome, Written
from interlock.store.fire import fire
from interlock.store.group import Group
from interlock.store.plan import Plan
from interlock.store.read import find_attempts
from interlock.store.sqlite.database import CommitUncertain, Database
from interlock.store.standings import Standing, Standings

#: Makes a plan for attempts and the standings that it may decide on.
Planner: TypeAlias = Callable[[Sequence[Any], Mapping[str, Standing]], Plan[Written]]

#: What a caller in a group is answered; an unforeseen error goes to the caller it concerns.
Answered: TypeAlias = str | Exception


class Writer:
    """Writes to one database. Safe to share between threads."""

    def __init__(self, database: Database, context: Context) -> None:
        self._database = database
        self._tenant = context.tenant
        self._standings = Standings()
        self._fires: Group[Attempt, Answered] = self._grouped(partial(fire, context))
        self._births: Group[Attempt, Answered] = self._grouped(partial(bear, context))

    def fire(self, attempt: FireAttempt) -> Answered:
        """Write a fire, together with those that wait at the same time.

        Raises:
            StorageFailure: this process or this thread may not write at all.
        """
        self._database.check_writable()
        return self._fires.submit(attempt)

    def bear(self, attempt: BirthAttempt) -> Answered:
        """Write a birth, likewise."""
        self._database.check_writable()
        return self._births.submit(attempt)

    def write(
        self, planner: Planner, attempts: Sequence[Attempt | Rejected]
    ) -> Sequence[Outcome | None]:
        """Write attempts in a transaction of their own.

        Raises:
            StorageFailure: nothing was written.
            OutcomeUnknown: nobody knows.
        """
        kept = self._standings.kept
        try:
            written = self._database.write(planner(attempts, kept))
        except StorageFailure as failure:
            if failure.kind != "refused":
                raise
            written = self._write_afresh(planner, attempts)
        except CommitUncertain as uncertain:
            written = self._learn(uncertain, attempts)
        if written.standings:
            self._standings.keep(written.standings)
        return written.outcomes

    def _write_afresh(self, planner: Planner, attempts: Sequence[Attempt | Rejected]) -> Written:
        """Drive the plan once more, on what it reads: what was kept is out of date."""
        fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
        self._standings.forget(fire.instance_id for fire in fires)
        try:
            return self._database.write(planner(attempts, {}))
        except CommitUncertain as uncertain:
            return self._learn(uncertain, attempts)

    def _grouped(self, planner: Planner) -> Group[Attempt, Answered]:
        return Group(partial(self._commit, planner), partial(self._recover, planner))

    def _commit(self, planner: Planner, attempts: Sequence[Attempt]) -> Sequence[Answered]:
        """Write attempts that wait together."""
        try:
            return self.write(planner, attempts)  # type: ignore[return-value]  # all are tried
        except StorageFailure as failure:
            if len(attempts) == 1 or failure.kind == "busy":
                return [failure for _ in attempts]
            return [self._recover(planner, attempt, failure) for attempt in attempts]
        except OutcomeUnknown as unknown:
            return [_outcome_unknown(attempt, unknown) for attempt in attempts]
        except Exception as error:  # unforeseen, and the fault of one of them: the clock, say
            if len(attempts) == 1:
                return [error]
            return [self._recover(planner, attempt, error) for attempt in attempts]

    def _recover(self, planner: Planner, attempt: Attempt, error: BaseException) -> Answered:
        """Answer for an attempt whose commit was broken off for a cause that may not be its own."""
        try:
            found = self._database.read(find_attempts(self._tenant, [attempt]))
        except StorageFailure:
            return _outcome_unknown(attempt, error)
        return found[0] if found else self._commit(planner, [attempt])[0]

    def _learn(self, uncertain: CommitUncertain, attempts: Sequence[Attempt | Rejected]) -> Written:
        """Learn from the records whether a commit that failed has happened."""
        tried = [attempt for attempt in attempts if not isinstance(attempt, Rejected)]
        answer: Written = uncertain.answer
        if not tried:  # so there was nothing to commit
            return answer
        try:
            if self._database.read(find_attempts(self._tenant, tried)):
                return answer
            self._database.settle()
        except (StorageFailure, CommitUncertain):
            raise _outcome_unknown(tried[0], uncertain) from uncertain
        raise uncertain.failure from uncertain


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
