"""The plan of a workflow: its steps, what they need, and what becomes of each.

All lengths are in microseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.language.expressions.expression import Expression
from interlock.language.expressions.properties import Properties
from interlock.language.flows.template import Template


@dataclass(frozen=True, slots=True)
class Retry:
    """What becomes of an attempt that fails.

    Attributes:
        attempts: how often it is tried, the first time counted.
        delay, factor, max_delay: after the first attempt, how much longer each time, at most.
        jitter: how much of a delay is left to chance, from 0 to 1.
        excluded: names of errors after which it is not tried again.
    """

    attempts: int
    delay: int
    factor: float
    max_delay: int
    jitter: float
    excluded: frozenset[str]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long an activity may take.

    Attributes:
        start_to_close: an attempt, from its start to its end.
        heartbeat: how long an attempt may say nothing of itself.
        schedule_to_start: how long it may wait for a worker, if that has an end.
        schedule_to_close: how long all of its attempts may take, if that has an end.
    """

    start_to_close: int
    heartbeat: int
    schedule_to_start: int | None
    schedule_to_close: int | None


@dataclass(frozen=True, slots=True)
class Activity:
    """A call of what is registered under a name.

    Attributes:
        given: a template of what it is called with; None of an undo that is given the step's
            `input` and `output`.
        priority: of what is due, greater numbers are claimed first.
    """

    name: str
    given: Template | None
    queue: str
    priority: int
    retry: Retry
    timeouts: Timeouts


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait.

    Attributes:
        reason: approval, webhook, message, timer, cron, file or workflow (WF-006 section 15).
        details: a template of what it waits for.
        length: how long it waits; None for as long as it takes.
        refusal_continues: a refused approval is a result, and no failure.
    """

    reason: str
    details: Template
    length: int | None
    refusal_continues: bool


@dataclass(frozen=True, slots=True)
class FanOut:
    """A call for each item of a list.

    Attributes:
        over: a template of the list.
        most: how many items there may be.
        at_once: how many are called at the same time; None for all.
    """

    over: Template
    most: int
    at_once: int | None


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call that is made again until its `output` is as wanted."""

    until: Expression
    every: int
    most: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step.

    Attributes:
        needs: the steps that come before, by name.
        needs_any: one of them is enough, and the others are let go.
        when: whether it is taken; a step that is not counts as done, and gives nothing.
        passes_skip: it is skipped where one that it needs was.
        undo: what undoes it.
    """

    name: str
    work: Activity | Wait
    needs: tuple[str, ...]
    needs_any: bool
    when: Expression | None
    passes_skip: bool
    fan_out: FanOut | None
    repeat: Repeat | None
    undo: Activity | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a workflow.

    Attributes:
        inputs: what it is started with.
        steps: by name, each after those that it needs.
        dependents: by the name of a step, those that need it.
        output: a template of what the workflow gives.
        timeout: how long all of it may take, if that has an end.
        compensate_on: outcomes, names of errors, and steps, upon which steps are undone.
    """

    inputs: Properties
    steps: Mapping[str, Step]
    dependents: Mapping[str, tuple[str, ...]] = field(repr=False)
    output: Template | None
    timeout: int | None
    compensate_on: frozenset[str]

    @property
    def compensates(self) -> bool:
        """Whether any step can be undone."""
        return any(step.undo is not None for step in self.steps.values())
