"""The two lifecycles of WF-006, as declarations: that of a workflow and that of an activity.

They are data. Whatever moves a workflow or an activity fires one of these transitions, and nothing
else writes a state.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

#: The one label of every transition: that the eight guards of WF-006 section 10 have held.
RUNTIME_GUARDS = "runtime-guards"
#: That a failed activity has an attempt left, or that an operator allows one more.
RETRY_ALLOWED = "retry-allowed"


class Passage(NamedTuple):
    """One transition that a matrix of WF-006 allows.

    Attributes:
        event: what WF-006 section 11 calls the event that it is published as.
        guard: the label that the runtime asserts.
    """

    origin: str
    action: str
    target: str
    event: str
    guard: str = RUNTIME_GUARDS


class Lifecycle(NamedTuple):
    """A lifecycle: its states in the order of WF-006, and what leads from one to another.

    Attributes:
        birth: the event of its beginning, in the first of its states.
    """

    states: Sequence[str]
    terminal: Sequence[str]
    passages: Sequence[Passage]
    birth: str

    def declaration(self) -> dict[str, Any]:
        """Write it as a declaration, a fresh copy."""
        return {
            "states": [*self.states],
            "transitions": [
                {"from_state": one.origin, "action": one.action, "to_state": one.target}
                | {"guard": one.guard}
                for one in self.passages
            ],
            "initial_state": self.states[0],
            "terminal_states": [*self.terminal],
        }

    @property
    def events(self) -> Mapping[tuple[str, str], str]:
        """The event of each transition, by the state that it leaves and its action."""
        return _events(self.passages)


# WF-006 section 5.
CREATED, VALIDATED, SCHEDULED, RUNNING = "Created", "Validated", "Scheduled", "Running"
WAITING, RESUMED, COMPENSATING = "Waiting", "Resumed", "Compensating"
COMPLETED, FAILED, CANCELLED = "Completed", "Failed", "Cancelled"
# WF-006 section 7, beside those of the same name.
READY, RETRYING = "Ready", "Retrying"

# WF-006 section 8. Not allowed are its three last lines, and whatever it does not name.
_WORKFLOW = (
    Passage(CREATED, "validate", VALIDATED, "WorkflowValidated"),
    Passage(VALIDATED, "schedule", SCHEDULED, "WorkflowScheduled"),
    Passage(SCHEDULED, "start", RUNNING, "WorkflowStarted"),
    Passage(RUNNING, "wait", WAITING, "WorkflowPaused"),
    Passage(WAITING, "resume", RESUMED, "WorkflowResumed"),
    Passage(RESUMED, "continue", RUNNING, "WorkflowContinued"),
    Passage(RUNNING, "complete", COMPLETED, "WorkflowCompleted"),
    Passage(RUNNING, "fail", FAILED, "WorkflowFailed"),
    Passage(RUNNING, "cancel", CANCELLED, "WorkflowCancelled"),
)
_COMPENSATION = (
    Passage(FAILED, "compensate", COMPENSATING, "WorkflowCompensating"),
    Passage(COMPENSATING, "complete", COMPLETED, "WorkflowCompensated"),
)
_WORKFLOW_STATES = (
    CREATED,
    VALIDATED,
    SCHEDULED,
    RUNNING,
    WAITING,
    RESUMED,
    COMPENSATING,
    COMPLETED,
    FAILED,
    CANCELLED,
)

#: Of a workflow without compensation: Failed is the end (WF-006 section 5).
WORKFLOW = Lifecycle(
    tuple(state for state in _WORKFLOW_STATES if state != COMPENSATING),
    (COMPLETED, FAILED, CANCELLED),
    _WORKFLOW,
    "WorkflowCreated",
)
#: Of one with compensation: from Failed it goes on by compensating (WF-006 section 8).
COMPENSATED_WORKFLOW = Lifecycle(
    _WORKFLOW_STATES, (COMPLETED, CANCELLED), (*_WORKFLOW, *_COMPENSATION), "WorkflowCreated"
)
#: Of an activity (WF-006 sections 7 and 9): from Failed an attempt more is the one way out.
ACTIVITY = Lifecycle(
    (CREATED, READY, SCHEDULED, RUNNING, COMPLETED, FAILED, RETRYING),
    (COMPLETED,),
    (
        Passage(CREATED, "make-ready", READY, "ActivityReady"),
        Passage(READY, "schedule", SCHEDULED, "ActivityScheduled"),
        Passage(SCHEDULED, "start", RUNNING, "ActivityStarted"),
        Passage(RUNNING, "complete", COMPLETED, "ActivityCompleted"),
        Passage(RUNNING, "fail", FAILED, "ActivityFailed"),
        Passage(FAILED, "retry", RETRYING, "ActivityRetried", RETRY_ALLOWED),
        Passage(RETRYING, "schedule", SCHEDULED, "ActivityScheduled"),
    ),
    "ActivityCreated",
)


@cache
def _events(passages: Sequence[Passage]) -> Mapping[tuple[str, str], str]:
    return {(one.origin, one.action): one.event for one in passages}
