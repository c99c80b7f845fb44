"""Whether only one of several branches can be taken, and whether each can be at all: by proof.

The pairs that must exclude each other come from the flat machine. Each pair is proved, or refused
with values for which both branches are true; the prover has evaluated both for them. What is
neither is refused as well, since the author can say which comes first. Only where the solver is not
installed does a pair stay open: then it is a warning.

Labels of guards exclude nothing: the caller may assert all of them. What a guard in Python says is
not known before it is asked, so a proof takes it for either.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from interlock.language.chart import Chart, State, Transition, Trigger
from interlock.language.claims import claim_of
from interlock.language.condition import ALWAYS, Condition, Expr, settle, tests
from interlock.language.expressions.syntax import ExpressionFault
from interlock.language.findings import Findings
from interlock.language.flatten import Branch, Flat, Overlap
from interlock.language.proof import prove as proofs
from interlock.language.proof.claim import Claim
from interlock.language.proof.domains import domains
from interlock.language.scopes import Expressions, Key

NO_SOLVER = "no solver"


@dataclass(frozen=True, slots=True)
class Unproved:
    """Two branches of which it was not proved that they exclude each other.

    Attributes:
        state: a flat state in which both may be taken.
        trigger: on what.
        branches: their labels.
        why: what kept it from being proved.
    """

    state: str
    trigger: Trigger
    branches: tuple[str, str]
    why: str


def check_determinism(
    chart: Chart,
    flat: Flat,
    expressions: Expressions,
    findings: Findings,
    *,
    prove: bool,
    require_proof: bool,
) -> list[Unproved]:
    """Report branches that can be taken together, and those that never can; give what is open."""
    judge = _Judge(expressions, findings, prove=prove, require_proof=require_proof)
    for pair in flat.choices:
        judge.part(pair)
    if prove and not findings.has_errors:  # where one has to go, another may come to life
        _warn_of_dead(chart, flat, judge, findings)
    return judge.unproved


class _Judge:
    """Asks the prover about pairs; of one pair, only the first fault is told."""

    def __init__(
        self, expressions: Expressions, findings: Findings, *, prove: bool, require_proof: bool
    ) -> None:
        self._expressions = expressions
        self._findings = findings
        self._prove = prove
        self._require_proof = require_proof
        self._provers: dict[Key, proofs.Prover] = {}
        self._claims: dict[tuple[Key, Condition], Claim] = {}
        self._refused: set[tuple[Transition, Transition]] = set()
        self._open: set[tuple[Transition, Transition]] = set()
        self.unproved: list[Unproved] = []

    def part(self, pair: Overlap) -> None:
        """See that two transitions exclude each other."""
        if (pair.one, pair.other) in self._refused:
            return
        conditions = (*pair.conditions, pair.given)
        if all(condition == ALWAYS for condition in conditions):
            self._refuse(pair, "")
            return
        if not self._prove:
            self._leave(pair, "it was not asked for")
            return
        try:
            verdict = self._verdict(pair, conditions)
        except ExpressionFault:
            return  # reported where it stands
        match verdict:
            case proofs.Disjoint():
                pass
            case proofs.Overlap(guards=guards, text=text):
                if guards:
                    names = "`, `".join(sorted(guards))
                    self._doubt(pair, f"that depends on what `{names}` says, as with {text}")
                else:
                    self._refuse(pair, "" if text == proofs.ALWAYS else f" when {text}")
            case proofs.Undecided(why=why) if why == NO_SOLVER:
                if self._leave(pair, why):
                    tell = self._findings.report if self._require_proof else self._findings.warn
                    hint = f"install `interlock[prove]`, or {_first(pair)}"
                    _tell(pair, tell, "no solver is installed", hint)
            case proofs.Undecided(why=why):
                self._doubt(pair, why)

    def can_be(self, condition: Condition, trigger: Trigger, state: str) -> bool:
        """Whether a condition can be true, as far as is known."""
        if condition == ALWAYS:
            return True
        key, (claim,) = self._claimed((condition,), trigger, state)
        return not isinstance(self._prover(key).satisfiable(claim), proofs.Impossible)

    def _verdict(self, pair: Overlap, conditions: Iterable[Condition]) -> proofs.Verdict:
        asked = [condition for condition in conditions if condition != ALWAYS]
        key, found = self._claimed(asked, pair.trigger, pair.state)
        return self._prover(key).overlap(found)

    def _claimed(
        self, conditions: Iterable[Condition], trigger: Trigger, state: str
    ) -> tuple[Key, list[Claim]]:
        """Give conditions as claims, and what decides how they are read."""
        conditions = [*conditions]
        required = self._expressions.required[state]
        texts = [
            test.text
            for condition in conditions
            for test in tests(condition)
            if isinstance(test, Expr)
        ]
        key = self._expressions.key(texts, trigger, required)
        found = []
        for condition in conditions:
            known = self._claims.get((key, condition))
            if known is None:
                known = self._claims[key, condition] = claim_of(
                    condition, lambda text: self._expressions.condition(text, trigger, required)
                )
            found.append(known)
        return key, found

    def _prover(self, key: Key) -> proofs.Prover:
        found = self._provers.get(key)
        if found is None:
            known, presence = domains(self._expressions.scope(key))
            found = self._provers[key] = proofs.Prover(known, presence=presence)
        return found

    def _refuse(self, pair: Overlap, when: str) -> None:
        self._refused.add((pair.one, pair.other))
        what = f"in `{pair.state}`, {told(pair.trigger)} leads by both ways{when}: {_ways(pair)}"
        hint = f"say when with `when`, or {_first(pair)}"
        self._findings.report("nondeterministic", what, pair.other.where, hint)

    def _doubt(self, pair: Overlap, why: str) -> None:
        self._refused.add((pair.one, pair.other))
        _tell(pair, self._findings.report, why, _first(pair))

    def _leave(self, pair: Overlap, why: str) -> bool:
        """Leave a pair open, and say whether it was not before; it may yet be refused elsewhere."""
        if (pair.one, pair.other) in self._open:
            return False
        self._open.add((pair.one, pair.other))
        labels = (pair.one.label, pair.other.label)
        self.unproved.append(Unproved(pair.state, pair.trigger, labels, why))
        return True


def _tell(pair: Overlap, report: Callable[..., None], why: str, hint: str) -> None:
    what = f"in `{pair.state}`, {told(pair.trigger)} may lead by both ways: {_ways(pair)}"
    report("undecided-overlap", f"{what}; {why}", pair.other.where, hint)


def _first(pair: Overlap) -> str:
    """Say how an author says which of two comes first."""
    if pair.one.source is pair.other.source:
        return "say which comes first: `{order: first-match, branches: […]}`"
    return "let the first region win: `conflicts: first-region`"


def _ways(pair: Overlap) -> str:
    ways = " and ".join(f"`{one.label}` of `{one.source.path}`" for one in (pair.one, pair.other))
    labels = [one.guard for one in (pair.one, pair.other) if one.guard is not None]
    if len(set(labels)) < 2:
        return ways
    return f"{ways}, where `{labels[0]}` and `{labels[1]}` are both asserted"


def told(trigger: Trigger) -> str:
    """Name a trigger in a sentence."""
    if trigger.kind in ("event", "after"):
        return f"`{trigger.name}`"
    return "what is automatic" if trigger.kind == "always" else "what is done when it is over"


def _warn_of_dead(chart: Chart, flat: Flat, judge: _Judge, findings: Findings) -> None:
    """Warn of transitions that nothing takes."""
    alive = set[object]()
    for branch in flat.branches:
        if not alive.issuperset(branch.places) and _can_be_taken(branch, judge):
            alive.update(branch.places)
    reached = frozenset[str]().union(*flat.active.values(), {""})
    for state in chart.states.values():
        for transition in state.transitions if state.path in reached else ():
            if transition.where not in alive:
                what = f"{told(transition.trigger)} never leads to `{transition.label}`"
                findings.warn(
                    "dead-branch",
                    f"{what}: {_why(state, transition, flat, judge)}",
                    transition.where,
                )


def _can_be_taken(branch: Branch, judge: _Judge) -> bool:
    try:
        return judge.can_be(branch.when, branch.trigger, branch.from_state)
    except ExpressionFault:
        return True  # reported where it stands


def _why(state: State, transition: Transition, flat: Flat, judge: _Judge) -> str:
    """Say whether a transition's own condition keeps it from being taken."""
    for name, active in flat.active.items():
        if state.path in active:
            condition = settle(transition.when, active.__contains__)
            if judge.can_be(condition, transition.trigger, name):
                return "something else is taken wherever it could be"
    return "its condition is never true"
