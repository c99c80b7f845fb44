"""A case: how an instance begins, what is sent, and what comes of it.

row("draft: submit -> submit", Begin("draft", {"qty": 1}), Send("submit"), to=Outcome("open", …))
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from interlock.language.definition import Definition
from interlock.language.flatten import Branch
from interlock.witness.model import ACTOR, Outcome, Step
from interlock.witness.sample import NOON


class Begin(NamedTuple):
    """How an instance begins: in the initial state with its hooks, or adopted in a state."""

    state: str | None
    data: Mapping[str, Any]
    at: datetime = NOON
    guards: Mapping[str, bool] = {}
    actor: str = ACTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A way to try a trigger in a state.

    Attributes:
        trigger: as people call it: an event, `after/P3D`, `always`, `start`.
        branch: that is taken; None where it is refused.
        note: what is special about it.
        title: what it is called, where not after all that.
        steps: the last one is the trial; without any it is the birth.
        outcomes: of the birth and of each step; None for one that is not compared.
    """

    state: str
    trigger: str
    begin: Begin
    branch: Branch | None = None
    note: str = ""
    steps: tuple[Step, ...] = ()
    outcomes: tuple[Outcome | None, ...] = ()
    title: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def expected(self) -> Outcome:
        """What the trial comes to."""
        last = self.outcomes[-1]
        assert last is not None
        return last

    @property
    def name(self) -> str:
        """What it is called in a report."""
        if self.title:
            return self.title
        ends = self.expected.refused or (self.branch.action if self.branch else "begun")
        note = f" ({self.note})" if self.note else ""
        return f"{self.state}: {self.trigger} -> {ends}{note}"


def row(title: str, begin: Begin, *steps: Step, to: Outcome) -> Case:
    """Make a case of a row that was written down; only what it ends in is compared.

    Args:
        to: what the last step comes to, or the birth where there is none.
    """
    outcomes = (*(None for _ in steps), to)
    state, _, trigger = title.partition(": ")
    return Case(
        state=state, trigger=trigger, begin=begin, steps=steps, outcomes=outcomes, title=title
    )


@dataclass(frozen=True, slots=True)
class Missed:
    """What no case was found for.

    Attributes:
        action: of the branch; empty where a refusal was looked for.
        impossible: it is proved that nothing takes the branch.
    """

    state: str
    trigger: str
    action: str
    why: str
    impossible: bool = False

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"{self.state}: {self.trigger} -> {self.action or 'refused'}"


@dataclass(frozen=True, slots=True)
class Table:
    """Every case of a definition."""

    definition: Definition
    taken: tuple[Case, ...]
    refused: tuple[Case, ...]
    missed: tuple[Missed, ...]
