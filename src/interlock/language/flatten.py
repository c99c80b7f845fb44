"""A tree of states as one flat machine: a state for each configuration that can be reached.

An event takes, in each region, the innermost transition that may be taken; a branch of the flat
machine is one set of transitions that an event can take together, under the condition that it does.
So a state of the flat machine has at most one transition for each action.

    testing.assay --reject-batch--> rejected           an outer transition holds within
    p{a|x}        --go-->           p{b|y}             two regions move together
    review        --decide/small--> small              a branch of a choice, under its condition
    closed        --reopen/p.b-->   p.b                a history state: where it remembers p.b
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple, TypeAlias

from interlock.core.declaration import Path
from interlock.language.chart import Chart, Hook, State, Transition, Trigger
from interlock.language.condition import (
    ALWAYS,
    NEVER,
    Condition,
    Literals,
    disjunction,
    join,
    settle,
)
from interlock.language.steps import Configuration, Place, Step, active, left_by, start, step

#: Paths of the states that a history state remembers; None as long as it remembers nothing.
Remembered: TypeAlias = "tuple[str, ...] | None"
#: What several remember, each by its path.
Recalled: TypeAlias = "tuple[tuple[str, Remembered], ...]"


@dataclass(frozen=True, slots=True)
class Branch:
    """A transition of the flat machine.

    Attributes:
        action: what history shows; the trigger's own name if nothing else is possible there.
        when: what the engine finds true.
        guards: labels that the caller asserts.
        recalls: what history states remember for the branch to be taken, in one of these cases;
            each is pairs of a history state's path and what it remembers. Without a case it is
            all the same.
        remembers: by the path of a history state, what it remembers afterwards.
        sets: changes of data, in order, each a name and an expression.
        leaving, moving, entering: hooks, in the order in which they are called.
        entered, left: paths of states, in the order of their hooks.
        places: where in the document its transitions are written.
    """

    from_state: str
    action: str
    to_state: str
    trigger: Trigger
    owner: str
    when: Condition = ALWAYS
    guards: tuple[str, ...] = ()
    recalls: frozenset[Recalled] = frozenset()
    remembers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sets: tuple[tuple[str, str], ...] = ()
    leaving: tuple[Hook, ...] = ()
    moving: tuple[Hook, ...] = ()
    entering: tuple[Hook, ...] = ()
    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()
    due: str | None = None

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Give every hook, in order."""
        return (*self.leaving, *self.moving, *self.entering)


class Overlap(NamedTuple):
    """Two transitions of which only one may be taken, by their conditions where they stand.

    Attributes:
        state: a flat state in which they stand like this.
        given: what else holds where one of them could be taken: no inner state takes another.
    """

    state: str
    trigger: Trigger
    one: Transition
    other: Transition
    conditions: tuple[Condition, Condition]
    given: Condition = ALWAYS


@dataclass(slots=True)
class Flat:
    """The flat machine.

    Attributes:
        leaves: the paths of the active states of each flat state, in order.
        active: those and the states around them.
        entered: paths of the states that a machine enters when it starts, in order.
        choices: pairs of branches that must exclude each other.
    """

    initial: str
    leaves: dict[str, tuple[str, ...]]
    active: dict[str, frozenset[str]]
    final: frozenset[str]
    branches: list[Branch]
    entered: tuple[str, ...]
    hooks: tuple[Hook, ...]
    choices: list[Overlap]
    clashes: list[tuple[Branch, Branch]]


class TooManyStates(Exception):
    """More configurations can be reached than the budget allows."""


def flatten(chart: Chart, *, budget: int) -> Flat:
    """Walk every configuration that can be reached, whatever conditions come to.

    Raises:
        TooManyStates: they are more than the budget.
    """
    places: dict[State, set[Place]] = {}
    while True:
        known = sum(map(len, places.values()))
        walk = _Walk(chart, places, budget)
        flat = walk.run()
        if sum(map(len, places.values())) == known:
            return flat


def flat_name(configuration: Configuration, root: State) -> str:
    """Name a configuration: `testing.assay`, `parent{leaf|leaf}`."""
    now = active(configuration)

    def within(state: State) -> str:
        """Name what is active inside a state, without its own name."""
        inner = [child for child in state.children if child in now]
        if state.kind == "parallel":
            return "{" + "|".join(within(r) or r.name for r in inner) + "}"
        if not inner:
            return ""
        (child,) = inner
        rest = within(child)
        return child.name + (rest if rest.startswith("{") or not rest else f".{rest}")

    return within(root)


class _Option(NamedTuple):
    """What one region may do on a trigger: take a transition, or none, under what is so."""

    literals: Literals
    taken: Transition | None


@dataclass(slots=True)
class _Variant:
    """A set of transitions that may be taken together, and all cases in which it is."""

    taken: tuple[Transition, ...]
    when: Condition
    step: Step
    recalls: set[Recalled]


class _Walk:
    def __init__(self, chart: Chart, places: dict[State, set[Place]], budget: int) -> None:
        self._chart = chart
        self._places = places
        self._budget = budget
        self._names: dict[Configuration, str] = {}
        self._owed: list[Configuration] = []
        self._branches: list[Branch] = []
        self._overlaps: dict[tuple[object, ...], Overlap] = {}
        self._clashes: list[tuple[Branch, Branch]] = []

    def run(self) -> Flat:
        first = start(self._chart.root)
        initial = self._name(first.after)
        final = set()
        while self._owed:
            configuration = self._owed.pop()
            if _is_over(configuration):
                final.add(self._name(configuration))
                continue
            self._expand(configuration)
        leaves = {
            name: tuple(state.path for state in configuration)
            for configuration, name in sorted(self._names.items(), key=lambda item: item[1])
        }
        activity = {
            name: frozenset(state.path for state in active(configuration) if state.path)
            for configuration, name in self._names.items()
        }
        return Flat(
            initial,
            leaves,
            activity,
            frozenset(final),
            sorted(self._branches, key=lambda branch: (branch.from_state, branch.action)),
            tuple(state.path for state in first.entered),
            first.entering,
            [*self._overlaps.values()],
            self._clashes,
        )

    def _name(self, configuration: Configuration) -> str:
        name = self._names.get(configuration)
        if name is None:
            if len(self._names) >= self._budget:
                raise TooManyStates
            name = self._names[configuration] = flat_name(configuration, self._chart.root)
            self._owed.append(configuration)
        return name

    def _expand(self, configuration: Configuration) -> None:
        """Make the branches of one flat state."""
        branches: dict[str, Branch] = {}
        for trigger, owner in _triggers(configuration):
            variants = self._variants(configuration, trigger, owner)
            timers = trigger.kind == "after" and _bears(configuration, trigger, owner)
            base = _base(trigger, owner, named=timers)
            plain = trigger.kind != "always" and len(variants) == 1 and _is_sure(variants[0])
            for variant in variants:
                action = base if plain else f"{base}/{_label(variant)}"
                branch = self._branch(configuration, trigger, owner, action, variant)
                if (other := branches.setdefault(action, branch)) is not branch:
                    self._clashes.append((other, branch))
        self._branches += branches.values()

    def _branch(
        self,
        configuration: Configuration,
        trigger: Trigger,
        owner: State | None,
        action: str,
        variant: _Variant,
    ) -> Branch:
        taken, found = variant.taken, variant.step
        guards = dict.fromkeys(one.guard for one in taken if one.guard is not None)
        return Branch(
            from_state=self._name(configuration),
            action=action,
            to_state=self._name(found.after),
            trigger=trigger,
            owner=owner.path if owner is not None else "",
            when=variant.when,
            guards=tuple(guards),
            recalls=frozenset(variant.recalls),
            remembers={
                history.path: tuple(state.path for state in remembered)
                for history, remembered in found.remembered.items()
            },
            sets=tuple(item for one in taken for item in sorted(one.sets.items())),
            leaving=found.leaving,
            moving=tuple(hook for one in taken for hook in one.do),
            entering=found.entering,
            entered=tuple(state.path for state in found.entered),
            left=tuple(state.path for state in found.left),
            places=tuple(one.where for one in taken),
            due=taken[0].due,
        )

    def _variants(
        self, configuration: Configuration, trigger: Trigger, owner: State | None
    ) -> list[_Variant]:
        """List what a trigger can do in a configuration."""
        cases: dict[tuple[Transition, ...], list[Literals]] = {}
        options = self._options(configuration, trigger, owner)
        for combination in product(*options):
            literals: Literals | None = {}
            for option in combination:
                literals = join(literals, option.literals) if literals is not None else None
            if literals is None:
                continue
            chosen = dict.fromkeys(o.taken for o in combination if o.taken is not None)
            taken = self._without_conflicts(configuration, trigger, list(chosen), literals)
            if taken:
                cases.setdefault(taken, []).append(literals)
        variants: list[_Variant] = []
        for taken, given in cases.items():
            when = disjunction(given)
            variants += _alike(
                _Variant(taken, when, found, {recalled} if recalled else set())
                for found, recalled in self._steps(configuration, taken)
            )
        return variants

    def _options(
        self, configuration: Configuration, trigger: Trigger, owner: State | None
    ) -> list[list[_Option]]:
        now = active(configuration)
        if owner is not None:  # a timer, or an end: no other state has a say in it
            chains = [[owner]]
        else:
            chains = [[leaf, *leaf.around()] for leaf in configuration]
        listed = [[*self._chain(chain, trigger, now, configuration)] for chain in chains]
        return [
            options for options in listed if any(option.taken is not None for option in options)
        ]

    def _chain(
        self,
        chain: Sequence[State],
        trigger: Trigger,
        now: set[State],
        configuration: Configuration,
    ) -> Iterator[_Option]:
        """List what a region may do: the innermost transition that may be taken wins."""
        passed: Literals = {}
        paths = {state.path for state in now}
        for state in chain:
            here = [one for one in state.transitions if one.trigger == trigger]
            conditions = [settle(one.when, paths.__contains__) for one in here]
            denied: Literals | None = passed
            for place, (one, condition) in enumerate(zip(here, conditions, strict=True)):
                before: Literals | None = denied if one.ordered else passed
                if before is None or condition == NEVER:
                    continue
                literals = before if condition == ALWAYS else join(before, {condition: True})
                if literals is not None:
                    yield _Option(literals, one)
                if not one.ordered:
                    for other, its in zip(here[:place], conditions[:place], strict=True):
                        if its != NEVER:
                            whens = (its, condition)
                            self._add_overlap(configuration, trigger, (other, one), whens, passed)
                if denied is not None:
                    denied = None if condition == ALWAYS else join(denied, {condition: False})
            if denied is None:
                return
            passed = denied
        yield _Option(passed, None)

    def _add_overlap(
        self,
        configuration: Configuration,
        trigger: Trigger,
        pair: tuple[Transition, Transition],
        conditions: tuple[Condition, Condition],
        literals: Literals,
    ) -> None:
        """Note two transitions, once for each way in which they meet.

        What is required in a state decides what is known to be there: that is another way.
        """
        required = {name for state in active(configuration) for name in state.requires}
        given = disjunction([literals])
        key = (*map(id, pair), conditions, given, frozenset(required))
        if key not in self._overlaps:
            name = self._names[configuration]
            self._overlaps[key] = Overlap(name, trigger, *pair, conditions, given)

    def _without_conflicts(
        self,
        configuration: Configuration,
        trigger: Trigger,
        taken: list[Transition],
        literals: Literals,
    ) -> tuple[Transition, ...]:
        """Leave out what would leave a state that another transition leaves as well.

        The transition of an inner state wins over one of a state around it. Between regions that
        cannot be said: the first wins, and that is refused unless it is asked for.
        """
        kept: list[Transition] = []
        for one in taken:
            leaves = left_by(one, configuration)
            rivals = [other for other in kept if leaves & left_by(other, configuration)]
            if all(one.source.is_in(other.source) for other in rivals):
                kept = [other for other in kept if other not in rivals]
                kept.append(one)
                continue
            for other in rivals:
                if not (one.source.is_in(other.source) or other.source.is_in(one.source)):
                    if self._chart.first_region:
                        continue
                    now = {state.path for state in active(configuration)}
                    whens = (
                        settle(other.when, now.__contains__),
                        settle(one.when, now.__contains__),
                    )
                    self._add_overlap(configuration, trigger, (other, one), whens, literals)
        return tuple(sorted(kept, key=lambda one: one.source.order))

    def _steps(
        self, configuration: Configuration, taken: tuple[Transition, ...]
    ) -> Iterator[tuple[Step, Recalled]]:
        """Take transitions, once for each place that a history state on the way may remember."""

        class Asked(Exception):
            def __init__(self, history: State) -> None:
                self.history = history

        owed: list[dict[State, Place]] = [{}]
        while owed:
            given = owed.pop()

            def recall(history: State, given: dict[State, Place] = given) -> Place:
                if history not in given:
                    raise Asked(history)
                return given[history]

            try:
                found = step(configuration, taken, recall)
            except Asked as asked:
                places = self._places.setdefault(asked.history, {None})
                owed += [{**given, asked.history: place} for place in places]
                continue
            for history, place in found.remembered.items():
                self._places.setdefault(history, {None}).add(place)
            yield found, tuple(sorted((h.path, _paths(place)) for h, place in given.items()))


def _alike(variants: Iterator[_Variant]) -> list[_Variant]:
    """Put variants together that come to the same, whatever a history state remembers."""
    found: dict[tuple[object, ...], _Variant] = {}
    for variant in variants:
        made = variant.step
        remembered = tuple(sorted((h.path, _paths(place)) for h, place in made.remembered.items()))
        key = (variant.taken, made.after, made.left, made.entered, remembered)
        known = found.setdefault(key, variant)
        if known is not variant:
            known.recalls |= variant.recalls
    alike = [*found.values()]
    if len(alike) == 1:
        alike[0].recalls.clear()  # whatever they remember, it comes to this
    return alike


def _paths(place: Place) -> Remembered:
    return None if place is None else tuple(state.path for state in place)


def _is_sure(variant: _Variant) -> bool:
    return variant.when == ALWAYS and not variant.recalls


def _triggers(configuration: Configuration) -> list[tuple[Trigger, State | None]]:
    """List what may happen in a configuration; timers and completions belong to one state."""
    found: dict[tuple[Trigger, State | None], None] = {}
    now = active(configuration)
    for state in sorted(now, key=lambda state: state.order):
        for one in state.transitions:
            kind = one.trigger.kind
            if kind == "done" and not _is_done(state, now):
                continue
            found[one.trigger, state if kind in ("after", "done") else None] = None
    return [*found]


def _is_done(state: State, now: set[State]) -> bool:
    """Whether a state has come to its end: a compound one in a final child, every region in one."""
    if state.kind == "parallel":
        regions = [child for child in state.children if child.kind != "history"]
        return all(_is_done(region, now) for region in regions)
    return state.kind == "final" or any(
        child.kind == "final" and child in now for child in state.children
    )


def _is_over(configuration: Configuration) -> bool:
    return any(
        leaf.kind == "final" and leaf.parent is not None and leaf.parent.parent is None
        for leaf in configuration
    )


def _bears(configuration: Configuration, trigger: Trigger, owner: State | None) -> bool:
    """Whether another active state has a timer of the same name."""
    return any(
        one.trigger == trigger and state is not owner
        for state in active(configuration)
        for one in state.transitions
    )


def _base(trigger: Trigger, owner: State | None, *, named: bool) -> str:
    if trigger.kind == "event":
        return trigger.name
    if trigger.kind == "always":
        return "always"
    of = owner.path if owner is not None else ""
    if trigger.kind == "done":
        return f"done/{of}"
    return f"after/{of}/{trigger.name}" if named else f"after/{trigger.name}"


def _label(variant: _Variant) -> str:
    """Say what tells a variant from the others: its branches, or where history states lead."""
    if not variant.recalls:
        return "+".join(one.label for one in variant.taken)
    entered = set(variant.step.entered)
    places = "&".join(state.path for state in variant.step.after if state in entered)
    named = "+".join(one.label for one in variant.taken if one.named)
    return f"{named}@{places}" if named else places
