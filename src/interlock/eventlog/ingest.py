"""Ingest: a log replayed against a declaration, one instance for each case.

Each event is fired with its own time and actor, under an idempotency key made of its position in
its case, on an instance begun under a key made of the source and the case. So a second run goes on
where the first one stopped and doubles nothing, and a log that has grown adds what is new. An event
that is refused stops its case and no other.

    report = ingest(store, declaration, "permits.csv", assert_guards=True)
    report.cases, report.conforming, report.refused

Cases are recorded one after another, a batch of events in two commits: the births, then the fires.
What was recorded before is recognised by comparing the history with the log, which costs a reading
transaction for each case; only a case whose two stories differ is asked for key by key.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple

from interlock.core.entry import Entry
from interlock.core.rejection import IdempotencyConflict, InvalidRequest, Rejected
from interlock.core.text import clipped
from interlock.eventlog.event import ANY, Columns, Event, time_fault
from interlock.eventlog.reader import read_log
from interlock.eventlog.staging import Case, Staging, Step
from interlock.store.attempt import Birth, Fire
from interlock.store.read import Instance
from interlock.store.store import Store

REFUSALS_KEPT = 1000
READING_STEP = 10_000  # events between two reports of progress while the log is read
_SHOWN = 1024  # characters of a case or an action in a refusal: all, of any that could be recorded


class Refusal(NamedTuple):
    """An event that was refused. The later events of its case were not tried.

    Attributes:
        position: of the event in its case, from 1.
        line: of the event in the file; see `Event.line`.
        state: where its instance stands; None for a case that has none.
        reason: the word of the refusal, such as `invalid-transition`.
    """

    case: str
    position: int
    line: int
    state: str | None
    action: str
    reason: str
    message: str


class Progress(NamedTuple):
    """How far a run has come, in events; the total is known once the log has been read."""

    stage: Literal["reading", "recording"]
    done: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What a run found and did.

    Every event is one of `recorded, recognised, refused, untried`.

    Attributes:
        cases: how many the log names; events whose case is blank belong to none.
        conforming: cases of which every event is in the record.
        events: of the log.
        recorded: events that this run recorded.
        recognised: events that were in the record before.
        refused: events refused, of which `reasons` counts each reason word.
        untried: events that come after a refused one in their case.
        undated: events, of all, that have no time: such a one is dated when it is recorded.
        refusals: the first `REFUSALS_KEPT` of them.
    """

    cases: int
    conforming: int
    events: int
    recorded: int
    recognised: int
    refused: int
    untried: int
    undated: int
    reasons: Mapping[str, int]
    refusals: tuple[Refusal, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the report as JSON-like values."""
        refusals = [refusal._asdict() for refusal in self.refusals]
        return {**asdict(self), "refusals": refusals}


def ingest(
    store: Store,
    declaration: Mapping[str, Any],
    log_path: str | os.PathLike[str],
    *,
    columns: Columns = ANY,
    assert_guards: bool = False,
    source: str = "",
    batch: int = 500,
    on_refused: Callable[[Refusal], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    time_zone: str | None = None,
    format: str | None = None,
) -> IngestReport:
    """Record a log, and say which of its cases conform to the declaration.

    Args:
        assert_guards: assert the guard of every transition that has one; the log is then the word
            for it. Without it, a guarded step is refused.
        source: tells apart logs that use the same case ids for different cases.
        batch: most events in one commit.
        on_refused: called with every refused event, after the batch that it is in.
        on_progress: called now and then while the log is read, and after each batch.
        time_zone, format: see `read_log`.

    Raises:
        LogError: the log cannot be read; nothing was recorded.
        InvalidDeclaration, InvalidRequest: an argument is malformed; nothing was recorded.
        StorageFailure, OutcomeUnknown: the run broke off. Run it again: it goes on from there. That
            holds too for whatever a callback raises.
    """
    if type(batch) is not int or batch < 1:
        raise InvalidRequest("`batch` is a whole number from 1", argument="batch")
    store.instantiate_each(declaration, ())  # what is wrong with either is told at once
    events = read_log(log_path, columns, format=format, time_zone=time_zone)
    run = _Run(store, declaration, source, assert_guards, on_refused)
    with Staging(_watched(events, on_progress) if on_progress else events) as staging:
        steps = staging.steps()
        while chunk := list(islice(steps, batch)):
            run.record(chunk)
            if on_progress:
                on_progress(Progress("recording", run.events, staging.count))
    return run.report()


def _watched(events: Iterable[Event], on_progress: Callable[[Progress], None]) -> Iterator[Event]:
    for number, event in enumerate(events, 1):
        if number % READING_STEP == 0:
            on_progress(Progress("reading", number, None))
        yield event


@dataclass(slots=True)
class _Standing:
    """Where a case stands in a run.

    Attributes:
        id: its instance, if it has one.
        halted: an event of it was refused.
        strays: its record and the log tell different stories, so each event is asked for by key.
    """

    case: Case
    id: str | None = None
    halted: bool = False
    strays: bool = False


class _Run:
    """One run over a log: what it counts, and the case that the last batch may have left open."""

    def __init__(
        self,
        store: Store,
        declaration: Mapping[str, Any],
        source: str,
        assert_guards: bool,
        on_refused: Callable[[Refusal], None] | None,
    ) -> None:
        self._store = store
        self._declaration = declaration
        self._source = source
        self._asserted = True if assert_guards else None
        self._on_refused = on_refused
        self._open: _Standing | None = None
        self._untold: list[tuple[int, int, Refusal]] = []  # after the place of each
        self._refusals: list[Refusal] = []
        self._reasons: Counter[str] = Counter()
        self._cases = self._halted = self._recorded = self._recognised = self._undated = 0
        self.events = 0

    def report(self) -> IngestReport:
        refused = self._reasons.total()
        return IngestReport(
            cases=self._cases,
            conforming=self._cases - self._halted,
            events=self.events,
            recorded=self._recorded,
            recognised=self._recognised,
            refused=refused,
            untried=self.events - self._recorded - self._recognised - refused,
            undated=self._undated,
            reasons=dict(self._reasons),
            refusals=tuple(self._refusals),
        )

    def record(self, steps: list[Step]) -> None:
        """Record a batch of steps, which go on where the batch before it ended."""
        self.events += len(steps)
        self._undated += sum(step.event.time is None for step in steps)
        groups = [
            (self._standing(case), list(group))
            for case, group in groupby(steps, attrgetter("case"))
        ]
        self._begin(groups)
        owed = [
            (standing, step)
            for standing, group in groups
            if standing.id is not None and not standing.halted
            for step in self._unrecognised(standing, standing.id, group)
        ]
        if owed:
            self._fire(owed)
        self._open = groups[-1][0]
        self._tell()

    def _standing(self, case: Case) -> _Standing:
        if self._open is not None and self._open.case == case:
            return self._open
        return _Standing(case)

    def _begin(self, groups: list[tuple[_Standing, list[Step]]]) -> None:
        """Begin an instance for each case that is new to this run, or find the one it has."""
        newcomers: list[tuple[_Standing, Step]] = []
        for standing, group in groups:
            case = standing.case
            if not case.name or case.name.isspace():
                for step in group:
                    self._refuse(step, InvalidRequest("the case is blank"))
            elif standing is not self._open:
                self._cases += 1
                if case.earliest is None and case.unread is not None:
                    fault = f"no time of the case can be read: `{clipped(case.unread)}` "
                    self._halt(standing, group[0], InvalidRequest(fault + time_fault(case.unread)))
                else:
                    newcomers.append((standing, group[0]))
        births = [self._birth(standing.case) for standing, _ in newcomers]
        outcomes = self._store.instantiate_each(self._declaration, births) if births else []
        for (standing, first), birth, outcome in zip(newcomers, births, outcomes, strict=True):
            if isinstance(outcome, IdempotencyConflict):
                outcome = self._find(birth)
            if isinstance(outcome, Rejected):
                self._halt(standing, first, outcome)
            else:
                standing.id = outcome

    def _birth(self, case: Case) -> Birth:
        named = json.dumps([self._source, case.name])  # no two pairs have the same text
        key = f"ingest/{hashlib.sha256(named.encode()).hexdigest()}"
        return Birth(subject_ref=case.name, instantiated_at=case.earliest, idempotency_key=key)

    def _find(self, birth: Birth) -> str | Rejected:
        """Find the instance of a case that was begun with another earliest time than it has now.

        The key is asked again with each time that it may have been used with. It is known, so
        asking begins nothing.
        """
        for instance in self._namesakes(birth.subject_ref):
            for moment in (instance.instantiated_at, None):
                asked = birth._replace(instantiated_at=moment)
                if self._store.instantiate_each(self._declaration, [asked]) == [instance.id]:
                    return instance.id
        return IdempotencyConflict(
            "the case was recorded before, by another declaration; "
            "name another source for it (`--source`)",
            idempotency_key=birth.idempotency_key,
        )

    def _namesakes(self, subject_ref: str | None) -> Iterator[Instance]:
        after = None
        while page := self._store.instances(
            subject_ref=subject_ref, definition=self._declaration, after=after
        ):
            yield from page
            after = page[-1].id

    def _unrecognised(self, standing: _Standing, id: str, group: list[Step]) -> list[Step]:
        """Give the steps that are not in the record already, position by position."""
        if standing.strays:
            return group
        places = {"start": group[0].position, "end": group[-1].position}
        entries = self._store.history(id, {"sequence_number": places})
        same = 0
        while same < len(entries) and _tells(entries[same], group[same].event):
            same += 1
        standing.strays = same < len(entries)
        self._recognised += same
        return group[same:]

    def _fire(self, owed: list[tuple[_Standing, Step]]) -> None:
        """Fire steps in one commit. A key that is known answers for its step, once more."""
        strays = dict.fromkeys(standing.id for standing, _ in owed if standing.strays)
        before = self._versions(strays)
        fires = [
            Fire(
                standing.id or "",
                step.event.action,
                step.event.actor,
                self._asserted,
                step.event.time,
                idempotency_key=f"ingest/{step.position}",
            )
            for standing, step in owed
        ]
        outcomes = self._store.fire_each(fires, halting=True)
        answered = 0  # fires of strays that were not refused: recorded now, or known before
        for (standing, step), outcome in zip(owed, outcomes, strict=True):
            if isinstance(outcome, Rejected):
                self._halt(standing, step, outcome)
            elif outcome is not None and standing.strays:
                answered += 1
            elif outcome is not None:
                self._recorded += 1
        recorded = self._versions(strays) - before
        self._recorded += recorded
        self._recognised += answered - recorded

    def _versions(self, ids: Iterable[str | None]) -> int:
        return sum(self._store.snapshot(id).version for id in ids if id is not None)

    def _halt(self, standing: _Standing, step: Step, refusal: Rejected) -> None:
        standing.halted = True
        self._halted += 1
        state = getattr(refusal, "state", None)
        if state is None and standing.id is not None:
            state = self._store.current(standing.id)
        self._refuse(step, refusal, state)

    def _refuse(self, step: Step, refusal: Rejected, state: str | None = None) -> None:
        case, position, event = step
        message = str(refusal)
        if isinstance(event.time, str) and getattr(refusal, "argument", None) == "fired_at":
            message = f"the time `{clipped(event.time)}` {time_fault(event.time)}"
        if isinstance(refusal, IdempotencyConflict) and refusal.instance_id is not None:
            message = "it was recorded before with another action, actor or time"
        refused = Refusal(
            clipped(case.name, _SHOWN),
            position,
            event.line,
            state,
            clipped(event.action, _SHOWN),
            refusal.reason,
            message,
        )
        self._untold.append((case.number, position, refused))

    def _tell(self) -> None:
        """Count and tell the refusals of a batch, in the order of its steps."""
        self._untold.sort(key=itemgetter(0, 1))
        for _, _, refused in self._untold:
            self._reasons[refused.reason] += 1
            if len(self._refusals) < REFUSALS_KEPT:
                self._refusals.append(refused)
            if self._on_refused:
                self._on_refused(refused)
        self._untold.clear()


def _tells(entry: Entry, event: Event) -> bool:
    """Whether an entry is the record of an event; without a time, the engine gave it one."""
    return (
        entry.action == event.action
        and entry.actor_ref == event.actor
        and event.time in (None, entry.fired_at)
    )
