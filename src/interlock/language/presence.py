"""What a state requires is there: every way in is looked at, and what an event raised within needs.

A branch supplies a field that the state which it comes from requires as well, that it sets, or
without which its condition is not true, as `has(data.due_at)` is not. Otherwise the field may be
missing. That is a fault, unless hooks of the branch may supply it: nobody knows what they do, so
then it is a warning, and the engine looks when they have been called.
"""

from collections.abc import Iterable, Iterator

from interlock.core.declaration import Path
from interlock.language.chart import Chart, Hook, State
from interlock.language.claims import claim_of
from interlock.language.condition import Expr, tests
from interlock.language.expressions.syntax import ExpressionFault
from interlock.language.fields import Fields
from interlock.language.findings import Findings
from interlock.language.flatten import Branch, Flat
from interlock.language.proof.bounds import claim_box
from interlock.language.scopes import ABSENT, Expressions


def check_presence(flat: Flat, expressions: Expressions, findings: Findings) -> None:
    """Report each way into a state that may leave out what the state requires."""
    required, optional = expressions.required, expressions.optional
    if not optional:
        return
    for name in sorted(required[flat.initial] & optional):
        what = f"the machine begins in `{flat.initial}`, which requires `{name}`"
        _tell(findings, what, ("initial",), flat.hooks, f"let `{name}` not be optional")
    for branch in flat.branches:
        owed = required[branch.to_state] & optional
        for name in sorted(owed - _supplied(branch, owed, expressions)):
            what = f"`{branch.action}` leads to `{branch.to_state}`, which requires `{name}`"
            hint = f"set it, or take the branch only `when: has(data.{name})`"
            _tell(findings, what, branch.places[-1], branch.hooks, hint)


def _tell(findings: Findings, what: str, where: Path, hooks: Iterable[Hook], hint: str) -> None:
    called = [hook.name for hook in hooks if not hook.raises]
    if called:
        told = f"{what}: `{'`, `'.join(called)}` would have to supply it"
        findings.warn("missing-data", told, where, hint)
    else:
        findings.report("missing-data", f"{what}, and it may be absent", where, hint)


def _supplied(branch: Branch, owed: frozenset[str], expressions: Expressions) -> frozenset[str]:
    """Give those of some fields that are there once a branch was taken."""
    there = set(expressions.required[branch.from_state])
    rest = owed - there
    if rest:
        there |= {name for name in rest if _asks_for(name, branch, expressions)}
    for name, text in branch.sets:
        if text.strip() == ABSENT:
            there.discard(name)
        else:
            there.add(name)
    return frozenset(there)


def _asks_for(name: str, branch: Branch, expressions: Expressions) -> bool:
    """Whether a branch is taken only if a field is there."""
    texts = [test.text for test in tests(branch.when) if isinstance(test, Expr)]
    if not any(name in text for text in texts):
        return False
    required = expressions.required[branch.from_state]
    try:
        claim = claim_of(branch.when, lambda t: expressions.condition(t, branch.trigger, required))
    except ExpressionFault:
        return True  # reported
    box = claim_box(claim)
    flag = f"present.data.{name}"
    return box is None or (flag in box and False not in box[flag])


def check_raised(chart: Chart, fields: Fields, findings: Findings) -> None:
    """Report events that hooks raise although they have fields, which nothing would give."""
    for state in chart.states.values():
        for hook, where in _raised(state):
            payload = fields.events.get(hook.name)
            for name, field in payload.fields.items() if payload is not None else ():
                if field.required:
                    what = f"`{hook.name}` is raised without its field `{name}`"
                    hint = "let the field be optional, or have a default"
                    findings.report("missing-data", what, where, hint)


def _raised(state: State) -> Iterator[tuple[Hook, Path]]:
    for key, hooks in (("on_enter", state.on_enter), ("on_exit", state.on_exit)):
        yield from ((hook, (*state.where, key)) for hook in hooks if hook.raises)
    for transition in state.transitions:
        yield from ((hook, (*transition.where, "do")) for hook in transition.do if hook.raises)
