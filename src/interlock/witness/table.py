"""The table of a machine: for every state and trigger, a case to be tried or why there is none.

    table = tabulate(definition)
    table.taken       # each branch, with a way into it
    table.refused     # each event that a state does not know, or whose conditions are not met
    table.missed      # what no case was found for

A case begins an instance in the state (as `Engine.adopt` does), with data for which the branch is
taken. Where that is not possible, since a history state has to remember something or the state is
final, it goes there by the fewest steps that were found. What a case comes to is what the model
says; nothing is in the table that the model does not reach.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from interlock.language.chart import Trigger
from interlock.language.condition import ALWAYS, Check, Condition, Expr, tests
from interlock.language.definition import Definition
from interlock.language.duration import parse_duration
from interlock.language.expressions.properties import Properties, written
from interlock.language.flatten import Branch
from interlock.witness.case import Begin, Case, Missed, Table
from interlock.witness.model import (
    ACTOR,
    Model,
    Outcome,
    Send,
    Step,
    Tick,
    automatic,
    choices_of,
    is_recalled,
)
from interlock.witness.sample import NOON, NoSample, filled
from interlock.witness.solving import IMPOSSIBLE, Found, Question, Solver, set_claims

NOTHING = Properties()
NODES_MAX = 200  # standings that are looked at on the way to what cannot be begun in
UNKNOWN = "no_such_field"


def tabulate(definition: Definition) -> Table:
    """Find the cases of a definition."""
    return _Tabulator(definition).table()


def told(branch: Branch) -> str:
    """Name what a branch waits for."""
    kind, name = branch.trigger
    if kind == "event":
        return name
    return f"{kind}/{name or branch.owner}" if name or branch.owner else kind


class _Way(NamedTuple):
    """A way into a standing."""

    begin: Begin
    steps: tuple[Step, ...]
    outcomes: tuple[Outcome, ...]
    model: Model

    def then(self, step: Step) -> "_Way | None":
        """Go on by a step; None if it is refused."""
        model = self.model.copy()
        outcome = model.step(step)
        if outcome.refused:
            return None
        return _Way(self.begin, (*self.steps, step), (*self.outcomes, outcome), model)


class _Tabulator:
    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._choices = choices_of(definition)
        self._solver = Solver(definition)
        self._start = Model(definition)
        self._counts = any(_mentions(b.when, "instance") for b in definition.flat.branches)
        self._ways: dict[str, _Way | None] = {}
        self._why: dict[int, str] = {}

    def table(self) -> Table:
        definition = self._definition
        branches = definition.flat.branches
        found: dict[int, Case] = {}
        for branch in branches:
            way = self._direct(branch)
            if way is not None:
                found[id(branch)] = self._case(branch, way)
        self._search(found)
        taken = [*self._birth(), *(found[id(b)] for b in branches if id(b) in found)]
        missed = [
            Missed(
                b.from_state,
                told(b),
                b.action,
                self._why.get(id(b), "no way was found"),
                self._why.get(id(b)) == IMPOSSIBLE and self._is_certain(b),
            )
            for b in branches
            if id(b) not in found
        ]
        refused: list[Case] = []
        for state in definition.states:
            here, not_here = self._refusals(state, taken)
            refused += here
            missed += not_here
        names = {case.name: case for case in reversed(refused)}  # two branches may need one payload
        refused = [case for case in refused if names[case.name] is case]
        return Table(definition, tuple(taken), tuple(refused), tuple(missed))

    # Births

    def _begun(self, begin: Begin) -> _Way | None:
        model = self._start.copy()
        outcome = model.begin(
            begin.state, begin.data, at=begin.at, guards=begin.guards, actor=begin.actor
        )
        return None if outcome.refused else _Way(begin, (), (outcome,), model)

    def _birth(self) -> Iterator[Case]:
        """Begin in the initial state, hooks and all."""
        initial = self._definition.flat.initial
        for data in self._plain_data(initial):
            way = self._begun(Begin(None, data))
            if way is not None:
                case = Case(state=initial, trigger="start", begin=way.begin, outcomes=way.outcomes)
                yield case
                return

    def _plain_data(self, state: str) -> Iterator[Mapping[str, Any]]:
        """Give data for which nothing is automatic in a state, if there is any; or any data."""
        here = _recalled(self._automatic(state), {})
        question = Question(state=state, trigger=Trigger("always"), no=_conditions(here))
        found = self._solver.find(question)
        if isinstance(found, Found):
            yield found.data
        try:
            yield filled(self._definition.data, {}, self._definition.required(state))
        except NoSample:
            return

    def _resting(self, state: str, taken: Sequence[Case] = ()) -> _Way | None:
        """Find a way in which an instance comes to rest in a state."""
        if state not in self._ways:
            self._ways[state] = next(self._resting_ways(state), None)
        if self._ways[state] is None:
            for case in sorted(taken, key=lambda case: len(case.steps)):
                if case.expected.state == state:
                    way = self._begun(case.begin)
                    for step in case.steps:
                        way = way and way.then(step)
                    self._ways[state] = way
                    break
        return self._ways[state]

    def _resting_ways(self, state: str) -> Iterator[_Way]:
        if state in self._definition.flat.final:
            return
        for data in self._plain_data(state):
            way = self._begun(Begin(state, data))
            if way is not None and way.model.standing.state == state and not way.model.taken:
                yield way

    # Branches

    def _direct(self, branch: Branch) -> _Way | None:
        """Take a branch right after an instance was begun in its state."""
        if not is_recalled(branch, {}):
            self._why[id(branch)] = "a history state has to remember where it leads"
            return None
        for found in self._proposals(branch, None, {}):
            begin = Begin(
                branch.from_state,
                found.data,
                found.begun or found.now or NOON,
                found.guards,
                found.actor or ACTOR,
            )
            for begun in self._earlier(begin, branch, found):
                way = self._begun(begun)
                if way is None:
                    continue
                if branch in way.model.taken:
                    return way
                way = self._taking(way, branch, found)
                if way is not None:
                    return way
        self._why.setdefault(id(branch), "its values do not lead there")
        return None

    def _earlier(self, begin: Begin, branch: Branch, found: Found) -> Iterator[Begin]:
        """Begin early enough for a timer to be due at the moment that was found."""
        yield begin
        if branch.trigger.kind == "after" and found.now is not None and found.begun is None:
            way = self._begun(begin)
            for timer in way.model.standing.timers.values() if way else ():
                yield begin._replace(at=begin.at - max(timer.due - begin.at, timedelta(0)))

    def _taking(self, way: _Way, branch: Branch, found: Found) -> _Way | None:
        """Go on by the step that takes a branch."""
        standing = way.model.standing
        if standing.state != branch.from_state:
            return None
        step: Step
        if branch.trigger.kind == "event":
            step = Send(
                branch.trigger.name,
                found.payload,
                branch.guards,
                found.actor or ACTOR,
                found.guards,
                found.now if found.now and found.now >= way.model.now else None,
            )
        elif branch.trigger.kind == "after":
            timer = standing.timers.get((branch.owner, branch.trigger.name))
            if timer is None:
                return None
            step = Tick(max(timer.due, way.model.now, found.now or timer.due), found.guards)
        else:
            return None
        after = way.then(step)
        return after if after is not None and branch in after.model.taken else None

    def _proposals(
        self,
        branch: Branch,
        data: Mapping[str, Any] | None,
        remembered: Mapping[str, tuple[str, ...]],
        version: int = 1,
    ) -> Iterator[Found]:
        """Propose values for which a branch is taken."""
        state, trigger = branch.from_state, branch.trigger
        rivals, earlier = self._others(branch)
        others = _conditions(_recalled([*rivals, *earlier], remembered))
        question = Question(
            state=state,
            trigger=trigger,
            yes=[] if branch.when == ALWAYS else [branch.when],
            no=others,
            texts=[*set_claims(self._definition, branch), *self._moments(branch)],
            data=data,
            version=version,
        )
        for asked in (question, replace(question, texts=())):
            found = self._solver.find(asked)
            if isinstance(found, Found):
                yield found
            else:
                self._why[id(branch)] = found
            if not question.texts:
                break
        try:
            fields = self._definition.data
            whole = data or filled(fields, {}, self._definition.required(state))
            payload = filled(self._definition.events.get(trigger.name, NOTHING), {})
        except NoSample:
            return
        if branch.when == ALWAYS or isinstance(self._solver.find(question), str):
            yield Found(whole, payload)

    def _others(self, branch: Branch) -> tuple[list[Branch], list[Branch]]:
        """Give the other branches of a choice, and what is automatic and comes before it."""
        trigger = branch.trigger
        choice = self._choices[branch.from_state][trigger.kind, trigger.name, branch.owner]
        rivals = [one for one in choice if one is not branch]
        earlier: list[Branch] = []
        for listed in automatic(self._choices, self._definition, branch.from_state):
            if branch in listed:
                break
            earlier += listed
        return rivals, earlier

    def _is_certain(self, branch: Branch) -> bool:
        """Whether it is a proof that no values were found for a branch.

        What is automatic is asked when an instance comes to rest, and what is sent is asked later:
        so nothing is proved of a moment, or of a guard in Python, that both depend on. Nor is it of
        what an instance remembers or counts, which was taken to be as at its birth.
        """
        rivals, earlier = self._others(branch)
        everyone = [branch, *rivals, *earlier]
        if any(one.recalls for one in everyone):
            return False
        if any(_mentions(one.when, "instance") for one in everyone):
            return False
        return _is_steady(earlier) or branch in self._automatic(branch.from_state)

    def _automatic(self, state: str) -> list[Branch]:
        return [
            branch
            for listed in automatic(self._choices, self._definition, state)
            for branch in listed
        ]

    def _moments(self, branch: Branch) -> list[str]:
        """Say of a timer that it is due, and before the other ones, if it begins to run at noon."""
        if branch.trigger.kind != "after" or branch.due is None:
            return []
        mine = self._due_text(branch)
        texts = []
        if self._definition.moment(branch) is not None and _mentions(branch.when, "now"):
            texts.append(f"now >= {mine}")
        for (kind, name, owner), others in self._choices[branch.from_state].items():
            if kind == "after" and (name, owner) != (branch.trigger.name, branch.owner):
                other = others[0]
                moments = map(self._definition.moment, (branch, other))
                if any(moment is not None for moment in moments):
                    texts.append(f"{self._due_text(other)} > {mine}")
        return texts

    def _due_text(self, branch: Branch) -> str:
        """Write as an expression when a timer is due that begins to run at noon."""
        if self._definition.moment(branch) is not None:
            return f"({branch.due}\n)"
        due = NOON + timedelta(microseconds=parse_duration(branch.trigger.name))
        return f"timestamp('{written(due)}')"

    def _case(self, branch: Branch, way: _Way) -> Case:
        return Case(
            state=branch.from_state,
            trigger=told(branch),
            branch=branch,
            begin=way.begin,
            steps=way.steps,
            outcomes=way.outcomes,
        )

    # Further ways

    def _search(self, found: dict[int, Case]) -> None:
        """Look for ways to the branches that are missing, by the fewest steps."""
        missing = {id(b): b for b in self._definition.flat.branches if id(b) not in found}
        for case in [*found.values()]:
            self._note(missing, found, self._again(case))
        if not missing:
            return
        frontier = [way for state in self._definition.states if (way := self._resting(state))]
        frontier += self._starts(missing.values())
        seen: set[str] = set()
        looked = 0
        while frontier and missing and looked < NODES_MAX:
            after: list[_Way] = []
            for way in frontier:
                self._note(missing, found, way)
                key = self._key(way)
                if key in seen or looked >= NODES_MAX or not missing:
                    continue
                seen.add(key)
                looked += 1
                after += self._onwards(way, missing)
            frontier = after

    def _starts(self, branches: Iterable[Branch]) -> Iterator[_Way]:
        """Begin everywhere with the data that branches ask for, each only once."""
        tried: set[str] = set()
        for branch in branches:
            for proposal in self._proposals(branch, None, {}):
                for state in self._definition.states:
                    begin = Begin(state, proposal.data, guards=proposal.guards)
                    if state in self._definition.flat.final or repr(begin) in tried:
                        continue
                    tried.add(repr(begin))
                    if len(tried) > NODES_MAX:
                        return
                    if (way := self._begun(begin)) is not None:
                        yield way

    def _again(self, case: Case) -> _Way:
        way = self._begun(case.begin)
        for step in case.steps:
            assert way is not None
            way = way.then(step)
        assert way is not None  # it was found by these steps
        return way

    def _note(self, missing: dict[int, Branch], found: dict[int, Case], way: _Way) -> None:
        for branch in way.model.taken:
            if id(branch) in missing:
                found[id(branch)] = self._case(missing.pop(id(branch)), way)

    def _key(self, way: _Way) -> str:
        """Tell standings apart as far as that matters."""
        standing = way.model.standing
        version = standing.version if self._counts else 0
        return repr((standing.state, sorted(standing.remembered.items()), standing.data, version))

    def _onwards(self, way: _Way, missing: Mapping[int, Branch]) -> Iterator[_Way]:
        standing = way.model.standing
        branches = [
            branch
            for branches in self._choices[standing.state].values()
            for branch in branches
            if is_recalled(branch, standing.remembered)
        ]
        branches.sort(key=lambda branch: id(branch) not in missing)
        for branch in branches:
            for found in self._proposals(
                branch, standing.data, standing.remembered, standing.version
            ):
                after = self._taking(way, branch, found)
                if after is not None:
                    yield after
                    break

    # Refusals

    def _refusals(self, state: str, taken: Sequence[Case]) -> tuple[list[Case], list[Missed]]:
        """Try in a state what it does not know, and what it knows under what it is not met."""
        definition = self._definition
        found: list[Case] = []
        way = self._resting(state, taken)
        here = [branch for branch in definition.flat.branches if branch.from_state == state]
        known = {branch.trigger.name for branch in here if branch.trigger.kind == "event"}
        events = {b.trigger.name for b in definition.flat.branches if b.trigger.kind == "event"}
        actions = {branch.action for branch in here} - known
        unknown = sorted(({*events, *definition.events} - known) | actions)
        if way is None and self._is_passed_through(state):
            return [], []
        if way is None:
            why = "no instance was found that comes to rest there"
            return [], [Missed(state, event, "", why) for event in unknown]
        missed: list[Missed] = []
        for event in unknown:
            try:
                payload = filled(definition.events.get(event, NOTHING), {})
            except NoSample as fault:
                missed.append(Missed(state, event, "", str(fault)))
                continue
            found += self._refusal(state, event, way, Send(event, payload))
        for (kind, name, _), branches in self._choices[state].items():
            if kind == "event" and all(branch.when != ALWAYS for branch in branches):
                case = self._unmet(state, name, branches)
                if isinstance(case, Case):
                    found.append(case)
                elif case != IMPOSSIBLE:
                    missed.append(Missed(state, name, "", case))
        for case in taken:
            if case.state == state and case.branch is not None:
                found += self._variants(case)
        return found, missed

    def _is_passed_through(self, state: str) -> bool:
        """Whether something automatic is always taken in a state, so that nothing is sent there."""
        here = self._automatic(state)
        if any(branch.when == ALWAYS and not branch.recalls for branch in here):
            return True
        if any(branch.recalls or _mentions(branch.when, "instance") for branch in here):
            return False
        question = Question(state=state, trigger=Trigger("always"), no=_conditions(here))
        return self._solver.find(question) == IMPOSSIBLE

    def _refusal(
        self, state: str, trigger: str, way: _Way, step: Send, note: str = ""
    ) -> Iterator[Case]:
        """Make a case of a step, if it is refused."""
        outcome = way.model.copy().step(step)
        if outcome.refused:
            yield Case(
                state=state,
                trigger=trigger,
                note=note,
                begin=way.begin,
                steps=(*way.steps, step),
                outcomes=(*way.outcomes, outcome),
            )

    def _unmet(self, state: str, event: str, branches: Sequence[Branch]) -> Case | str:
        """Send an event of which no branch is open."""
        others = _conditions(_recalled([*branches, *self._automatic(state)], {}))
        question = Question(state=state, trigger=branches[0].trigger, no=others)
        found = self._solver.find(question)
        if isinstance(found, str):
            return found
        labels = tuple(sorted({label for branch in branches for label in branch.guards}))
        actor, at = found.actor or ACTOR, found.begun or found.now or NOON
        way = self._begun(Begin(state, found.data, at, found.guards, actor))
        if way is None or way.model.standing.state != state:
            return "no instance was found that comes to rest there"
        later = found.now if found.now and found.now >= at else None
        step = Send(event, found.payload, labels, actor, found.guards, later)
        for case in self._refusal(state, event, way, step, "no condition is met"):
            return case
        return "its values do not lead there"

    def _variants(self, case: Case) -> Iterator[Case]:
        """Leave out a label, or send a payload that is not as declared."""
        if not case.steps or case.branch is None:
            return
        *before, step = case.steps
        if not isinstance(step, Send):
            return
        way = self._again(replace(case, steps=tuple(before)))
        for label in step.asserting:
            rest = tuple(other for other in step.asserting if other != label)
            changed = step._replace(asserting=rest)
            yield from self._refusal(case.state, case.trigger, way, changed, f"without {label}")
        payload = {**step.payload, UNKNOWN: 1}
        note = "an undeclared field"
        yield from self._refusal(
            case.state, case.trigger, way, step._replace(payload=payload), note
        )
        properties = self._definition.events.get(step.event)
        for name, property_ in properties.fields.items() if properties else ():
            if property_.required:
                payload = {n: v for n, v in step.payload.items() if n != name}
                changed = step._replace(payload=payload)
                yield from self._refusal(case.state, case.trigger, way, changed, f"no {name}")


def _recalled(
    branches: Sequence[Branch], remembered: Mapping[str, tuple[str, ...]]
) -> list[Branch]:
    return [branch for branch in branches if is_recalled(branch, remembered)]


def _conditions(branches: Sequence[Branch]) -> list[Condition]:
    return [branch.when for branch in branches]


def _is_steady(branches: Sequence[Branch]) -> bool:
    """Whether conditions come to the same now and later, as long as the data is the same."""
    return not any(
        isinstance(test, Check) or "now" in test.text
        for branch in branches
        for test in tests(branch.when)
    )


def _mentions(condition: Condition, word: str) -> bool:
    return any(isinstance(test, Expr) and word in test.text for test in tests(condition))
