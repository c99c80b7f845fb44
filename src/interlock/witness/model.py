"""What a machine does, from its definition alone: no store, no transaction, no engine.

    model = Model(definition)
    model.begin(None, {"qty": 3}, at=noon)
    model.step(Send("submit", {"qty": 7}))     # Outcome(state="open", actions=("submit",), …)

It is written to be compared with the engine, so it says the same in as few words as it can.

Hooks and guards in Python are played: a guard says what the step says, and a hook supplies what the
state that is entered requires and the data does not have. A refusal leaves everything as it was.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from interlock.core.instant import parse_instant
from interlock.language.chart import Hook
from interlock.language.condition import Check, Expr
from interlock.language.definition import Definition
from interlock.language.duration import parse_duration
from interlock.language.evaluation import holds
from interlock.language.expressions.expression import ExpressionError
from interlock.language.expressions.properties import Properties
from interlock.language.flatten import Branch
from interlock.witness.sample import NOON, sample

STEPS_MAX = 100
ACTOR = "tester"
NOTHING = Properties()


class Send(NamedTuple):
    """An event to be sent.

    Attributes:
        guards: what guards in Python say; one that is not named says no.
        at: when; None for as soon as the step before.
    """

    event: str
    payload: Mapping[str, Any] = {}
    asserting: tuple[str, ...] = ()
    actor: str = ACTOR
    guards: Mapping[str, bool] = {}
    at: datetime | None = None


class Tick(NamedTuple):
    """Timers are looked for at a moment."""

    at: datetime
    guards: Mapping[str, bool] = {}


Step: TypeAlias = Send | Tick


class Outcome(NamedTuple):
    """What a step comes to.

    Attributes:
        state, data: as they are after it.
        actions: of the entries, in order.
        hooks: that were called, in order.
        refused: the word of the refusal; then nothing has changed.
    """

    state: str
    data: Mapping[str, Any]
    actions: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    refused: str | None = None


class Timer(NamedTuple):
    """A timer that runs.

    Attributes:
        due: when it runs out.
        next_try: when it is looked at; later than that once it has failed.
        armed: the version of the instance that it was set with.
    """

    due: datetime
    next_try: datetime
    armed: int
    failures: int = 0


class Refusal(Exception):
    """The step is refused; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an instance is.

    Attributes:
        timers: by the path of the state and the name of each.
    """

    state: str
    data: Mapping[str, Any]
    version: int = 1
    begun: datetime = NOON
    remembered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    timers: Mapping[tuple[str, str], Timer] = field(default_factory=dict)


@dataclass(slots=True)
class _Act:
    """What one step has done so far."""

    now: datetime
    guards: Mapping[str, bool]
    actor: str | None
    raised: deque[str] = field(default_factory=deque)
    taken: list[Branch] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)


class Model:
    """One instance of a machine.

    Args:
        steps_max: entries of one step.

    Attributes:
        standing: where it is.
        taken: the branches of the last step.
    """

    def __init__(self, definition: Definition, *, steps_max: int = STEPS_MAX) -> None:
        self.definition = definition
        self.standing = Standing(definition.flat.initial, {})
        self.taken: tuple[Branch, ...] = ()
        self.now = NOON
        self._steps_max = steps_max
        self._choices = choices_of(definition)

    def copy(self) -> "Model":
        """Give another that goes its own way from here."""
        other = Model.__new__(Model)
        for name in ("definition", "standing", "taken", "now", "_steps_max", "_choices"):
            setattr(other, name, getattr(self, name))
        return other

    def begin(
        self,
        state: str | None,
        data: Mapping[str, Any],
        *,
        at: datetime,
        guards: Mapping[str, bool] | None = None,
        actor: str = ACTOR,
    ) -> Outcome:
        """Begin in the initial state, or without hooks in the state that is named."""
        flat = self.definition.flat
        self.now = at
        whole = self.definition.data.encode(self.definition.data.complete(data))
        self.standing = Standing(state or flat.initial, whole, begun=at)

        def work(act: _Act) -> None:
            self._call(flat.hooks if state is None else (), act, self.standing.state)
            self._check_required()
            self._arm(sorted(flat.active[self.standing.state]), act)
            self._settle(act)

        return self._do(work, at, guards or {}, actor)

    def step(self, step: Step) -> Outcome:
        """Do what a step asks for."""
        self.now = step.at or self.now
        if isinstance(step, Send):
            return self._do(lambda act: self._send(step, act), self.now, step.guards, step.actor)
        return self._tick(step)

    def known(self, state: str) -> list[str]:
        """Name the events that lead anywhere from a state."""
        return sorted({name for kind, name, _ in self._choices[state] if kind == "event"})

    def due(self, by: datetime | None = None) -> list[tuple[Timer, str, str]]:
        """List the timers that run, or that are looked at by a moment, in their order."""
        timers = [(timer, *key) for key, timer in self.standing.timers.items()]
        timers = [one for one in timers if by is None or one[0].next_try <= by]
        return sorted(timers, key=lambda one: (one[0].next_try, one[1:]))

    # Steps

    def _do(
        self,
        work: Callable[[_Act], None],
        now: datetime,
        guards: Mapping[str, bool],
        actor: str | None,
    ) -> Outcome:
        before, act = self.standing, _Act(now, guards, actor)
        self.taken = ()
        try:
            work(act)
        except Refusal as refusal:
            self.standing = before
            return Outcome(before.state, before.data, refused=str(refusal))
        self.taken = tuple(act.taken)
        actions = tuple(branch.action for branch in act.taken)
        return Outcome(self.standing.state, self.standing.data, actions, tuple(act.hooks))

    def _send(self, step: Send, act: _Act) -> None:
        state = self.standing.state
        properties = self.definition.events.get(step.event, NOTHING)
        branches = self._choices[state].get(("event", step.event, ""))
        if branches is None:
            final = state in self.definition.flat.final
            raise Refusal("terminal" if final else "invalid-transition")
        if properties.check(step.payload):
            raise Refusal("invalid-request")
        payload = properties.encode(properties.complete(step.payload))
        self._take(self._choose(branches, payload, act, step.asserting), payload, act)
        self._settle(act)

    def _tick(self, step: Tick) -> Outcome:
        """Let the timers that are due run out, the earliest first."""
        outcomes, taken, before = list[Outcome](), list[Branch](), self.standing
        seen = set[tuple[str, str, int]]()
        while len(outcomes) < self._steps_max:
            due = [one for one in self.due(step.at) if (*one[1:], one[0].armed) not in seen]
            if not due:
                break
            for timer, path, name in due:
                seen.add((path, name, timer.armed))
                now = self.standing.timers.get((path, name))
                if now is not None and now.armed == timer.armed:
                    outcomes.append(self._run_out(path, name, step))
                    taken += self.taken
        else:
            self.standing = before
            return Outcome(before.state, before.data, refused="endless")
        self.taken = tuple(taken)
        return Outcome(
            self.standing.state,
            self.standing.data,
            tuple(action for outcome in outcomes for action in outcome.actions),
            tuple(hook for outcome in outcomes for hook in outcome.hooks),
        )

    def _run_out(self, path: str, name: str, step: Tick) -> Outcome:
        """Let one timer run out; one that fails is tried again later."""
        outcome = self._do(lambda act: self._expire(path, name, act), step.at, step.guards, None)
        if outcome.refused:
            timer = self.standing.timers[path, name]
            delay = min(timedelta(seconds=2 ** min(timer.failures, 20)), timedelta(hours=1))
            later = timer._replace(next_try=step.at + delay, failures=timer.failures + 1)
            timers = {**self.standing.timers, (path, name): later}
            self.standing = replace(self.standing, timers=timers)
        return outcome

    def _expire(self, path: str, name: str, act: _Act) -> None:
        branches = self._choices[self.standing.state][("after", name, path)]
        found = self._choose(branches, {}, act, ()) if self._open(branches, {}, act) else None
        timers = {key: timer for key, timer in self.standing.timers.items() if key != (path, name)}
        self.standing = replace(self.standing, timers=timers)
        if found is not None:
            self._take(found, {}, act)
            self._settle(act)

    def _settle(self, act: _Act) -> None:
        while True:
            if self._take_automatic(act):
                continue
            if not act.raised:
                return
            self._take_raised(act.raised.popleft(), act)

    def _take_automatic(self, act: _Act) -> bool:
        alone = replace_actor(act)
        for branches in automatic(self._choices, self.definition, self.standing.state):
            open_ = self._open(branches, {}, alone)
            if open_:
                found = open_[0] if len(open_) == 1 else self._choose(branches, {}, alone, ())
                self._take(found, {}, act, by_itself=True)
                return True
        return False

    def _take_raised(self, event: str, act: _Act) -> None:
        branches = self._choices[self.standing.state].get(("event", event, ""))
        if branches is None:
            return
        properties = self.definition.events.get(event, NOTHING)
        payload = properties.encode(properties.complete({}))
        if self._open(branches, payload, act):
            self._take(self._choose(branches, payload, act, ()), payload, act)

    # Choices

    def _choose(
        self,
        branches: Sequence[Branch],
        payload: Mapping[str, Any],
        act: _Act,
        asserting: Sequence[str],
    ) -> Branch:
        open_ = self._open(branches, payload, act)
        found = [branch for branch in open_ if {*branch.guards} <= {*asserting}]
        if len(found) == 1:
            return found[0]
        raise Refusal("nondeterministic" if found else "guard-not-satisfied")

    def _open(
        self, branches: Sequence[Branch], payload: Mapping[str, Any], act: _Act
    ) -> list[Branch]:
        values = self._values(payload, act)

        def evaluate(test: Expr, branch: Branch) -> bool:
            try:
                return self.definition.expression(test.text, branch).evaluate(values) is True
            except ExpressionError as error:
                raise Refusal("guard-error") from error

        def check(test: Check) -> bool:
            return act.guards.get(test.name, False)

        return [
            branch
            for branch in branches
            if is_recalled(branch, self.standing.remembered)
            and holds(branch.when, lambda test, branch=branch: evaluate(test, branch), check)  # type: ignore[misc]
        ]

    def _values(self, payload: Mapping[str, Any], act: _Act) -> dict[str, Any]:
        standing = self.standing
        instance = {
            "state": standing.state,
            "version": standing.version,
            "instantiated_at": standing.begun,
        }
        values = {"data": standing.data, "event": payload, "now": act.now, "instance": instance}
        return values if act.actor is None else {**values, "actor": act.actor}

    # Moves

    def _take(
        self, branch: Branch, payload: Mapping[str, Any], act: _Act, *, by_itself: bool = False
    ) -> None:
        if len(act.taken) >= self._steps_max:
            raise Refusal("step-limit")
        sets = self._sets(branch, self._values(payload, replace_actor(act) if by_itself else act))
        self._call(branch.leaving, act, branch.to_state)
        data = {name: value for name, value in self.standing.data.items() if name not in sets}
        self._hold(data | {name: value for name, value in sets.items() if value is not None})
        self._call(branch.moving, act, branch.to_state)
        act.taken.append(branch)
        standing = self.standing
        timers = {key: at for key, at in standing.timers.items() if key[0] not in branch.left}
        self.standing = replace(
            standing,
            state=branch.to_state,
            version=standing.version + 1,
            remembered={**standing.remembered, **branch.remembers},
            timers=timers,
        )
        self._call(branch.entering, act, branch.to_state)
        self._check_required()
        self._arm(branch.entered, act)

    def _sets(self, branch: Branch, values: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, text in branch.sets:
            expression = self.definition.setter(name, text, branch)
            try:
                found[name] = None if expression is None else expression.evaluate(values)
            except ExpressionError as error:
                raise Refusal("guard-error") from error
        return found

    def _hold(self, data: Mapping[str, Any]) -> None:
        properties = self.definition.data
        if properties.check(data):
            raise Refusal("guard-error")
        whole = properties.encode(properties.complete(data))
        self.standing = replace(self.standing, data=whole)

    def _call(self, hooks: Sequence[Hook], act: _Act, target: str) -> None:
        for hook in hooks:
            if hook.raises:
                act.raised.append(hook.name)
                continue
            act.hooks.append(hook.name)
            self.standing = replace(
                self.standing, data=supplied(self.definition, target, self.standing.data)
            )

    def _check_required(self) -> None:
        if self.definition.required(self.standing.state) - self.standing.data.keys():
            raise Refusal("hook-failed")

    def _arm(self, paths: Sequence[str], act: _Act) -> None:
        timers = dict(self.standing.timers)
        for (kind, name, path), branches in self._choices[self.standing.state].items():
            if kind == "after" and path in paths:
                due = self.due_at(branches[0], act.now)
                timers[path, name] = Timer(due, due, self.standing.version)
        self.standing = replace(self.standing, timers=timers)

    def due_at(self, branch: Branch, now: datetime) -> datetime:
        """Say when a timer is due that begins to run now."""
        expression = self.definition.moment(branch)
        if expression is None:
            return now + timedelta(microseconds=parse_duration(branch.trigger.name))
        act = _Act(now, {}, None)
        try:
            return parse_instant(expression.evaluate(self._values({}, act)))
        except ExpressionError as error:
            raise Refusal("guard-error") from error


#: The branches of each state by what they wait for: its kind, its name, the path of whose it is.
Choices: TypeAlias = Mapping[str, Mapping[tuple[str, str, str], list[Branch]]]


def choices_of(definition: Definition) -> Choices:
    """Sort the branches of a machine by state and trigger."""
    found: dict[str, dict[tuple[str, str, str], list[Branch]]]
    found = {state: {} for state in definition.states}
    for branch in definition.flat.branches:
        key = (branch.trigger.kind, branch.trigger.name, branch.owner)
        found[branch.from_state].setdefault(key, []).append(branch)
    return found


def automatic(choices: Choices, definition: Definition, state: str) -> list[list[Branch]]:
    """Give the choices that a state takes by itself, in the order in which they are tried.

    Of several states that are at their end the innermost goes first, then the first region.
    """
    leaves = definition.leaves(state)

    def order(key: tuple[str, str, str]) -> tuple[int, int]:
        inside = [leaf.startswith(f"{key[2]}.") for leaf in leaves]
        return -key[2].count("."), inside.index(True)

    here = choices[state]
    always = [branches for (kind, *_), branches in here.items() if kind == "always"]
    done = sorted((key for key in here if key[0] == "done"), key=order)
    return always + [here[key] for key in done]


def is_recalled(branch: Branch, remembered: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether history states remember one of the cases that a branch is for."""
    cases = branch.recalls or {()}
    return any(all(remembered.get(path) == of for path, of in case) for case in cases)


def supplied(definition: Definition, state: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Give data with what a state requires, as a hook would supply it."""
    fields = definition.data.fields
    missing = sorted(definition.required(state) - data.keys())
    more = {name: sample(fields[name]) for name in missing}
    return {**deepcopy(dict(data)), **more} if more else dict(data)


def replace_actor(act: _Act) -> _Act:
    """Give the same act as of nobody: what is automatic knows no actor."""
    return _Act(act.now, act.guards, None, act.raised, act.taken, act.hooks)
