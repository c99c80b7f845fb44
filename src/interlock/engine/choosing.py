"""Which branch is taken: decided on values alone, but for guards in Python, which are asked.

An expression without a value is an error and never false: what is decided without it stands, and
where nothing decides the error is raised. Of the branches that are open exactly one is taken.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from interlock.core.machine import Snapshot
from interlock.core.rejection import GuardError, GuardNotSatisfied, Nondeterministic
from interlock.core.text import clipped, quoted
from interlock.engine.memory import Memory
from interlock.engine.program import Program
from interlock.language.condition import text
from interlock.language.evaluation import holds
from interlock.language.expressions.expression import ExpressionError
from interlock.language.flatten import Branch
from interlock.store.plan import Call

T = TypeVar("T")

#: What asks guards on the way to a value.
Asking: TypeAlias = Generator[Call, Any, T]


class Occasion(NamedTuple):
    """What a branch is chosen on.

    Attributes:
        what: the event, timer or automatic step, for people.
        values: what expressions may name.
        ask: makes the call of a guard in Python, which gives its answer or why it has none.
        answers: what guards have said: each is asked once, whatever depends on it.
    """

    program: Program
    snapshot: Snapshot
    memory: Memory
    what: str
    values: Mapping[str, Any]
    ask: Callable[[str], Call]
    answers: dict[str, bool | GuardError]


def choose(
    occasion: Occasion, branches: Sequence[Branch], asserting: Sequence[str]
) -> Asking[Branch]:
    """Give the branch that is taken.

    Raises:
        GuardNotSatisfied: none is open, or none whose labels are asserted.
        GuardError: nobody knows.
        Nondeterministic: several are.
    """
    true = yield from open_branches(occasion, branches)
    taken = [one for one in true if not one.guards or set(one.guards) <= set(asserting)]
    if len(taken) == 1:
        return taken[0]
    state, what = occasion.snapshot.state, occasion.what
    tried = {"instance_id": occasion.snapshot.instance_id, "state": state, "action": what}
    if taken:
        names = [branch.action for branch in taken]
        listed = " and ".join(map(quoted, names))
        raise Nondeterministic(
            f"{quoted(what)} in {quoted(state)} leads by {listed} at once", **tried, branches=names
        )
    if true:
        missing = [guard for branch in true for guard in branch.guards if guard not in asserting]
        labels = tuple(dict.fromkeys(missing))
        listed = ", ".join(map(quoted, labels))
        message = f"{quoted(what)} in {quoted(state)} needs {listed} to be asserted"
        raise GuardNotSatisfied(message, **tried, guard=" && ".join(labels), guards=labels)
    wanted = " || ".join(dict.fromkeys(text(branch.when) for branch in branches))
    message = f"{quoted(what)} in {quoted(state)} is open only when {clipped(wanted, 300)}"
    raise GuardNotSatisfied(message, **tried, guard=wanted)


def open_branches(occasion: Occasion, branches: Sequence[Branch]) -> Asking[list[Branch]]:
    """Give the branches whose conditions are true."""
    found = []
    for branch in branches:
        if not is_recalled(branch, occasion.memory.remembered):
            continue
        if (yield from _holds(occasion, branch)):
            found.append(branch)
    return found


def is_recalled(branch: Branch, remembered: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether history states say what a branch depends on."""
    return not branch.recalls or any(
        all(remembered.get(path) == places for path, places in case) for case in branch.recalls
    )


def _holds(occasion: Occasion, branch: Branch) -> Asking[bool]:
    """Say whether the condition of a branch is true, asking guards as they are needed."""
    while True:
        try:
            return holds(
                branch.when,
                lambda expression: _evaluate(occasion, branch, expression.text),
                lambda check: _answer(occasion, check.name),
            )
        except _Unasked as unasked:
            occasion.answers[unasked.name] = yield occasion.ask(unasked.name)


class _Unasked(BaseException):
    """A guard has to be asked first; no error of a part, so that it passes through them."""

    def __init__(self, name: str) -> None:
        self.name = name


def _answer(occasion: Occasion, name: str) -> bool:
    """Give what a guard has said."""
    if name not in occasion.answers:
        raise _Unasked(name)
    answer = occasion.answers[name]
    if isinstance(answer, GuardError):
        raise answer
    return answer


def _evaluate(occasion: Occasion, branch: Branch, source: str) -> bool:
    expression = occasion.program.definition.expression(source, branch)
    try:
        return expression.evaluate(occasion.values) is True
    except ExpressionError as error:
        raise no_value(occasion, source, error) from error


def no_value(occasion: Occasion, source: str, error: ExpressionError) -> GuardError:
    """Make the refusal for an expression without a value."""
    state, what = occasion.snapshot.state, occasion.what
    return GuardError(
        f"{quoted(what)} in {quoted(state)}: {quoted(source)} has no value: {error}",
        instance_id=occasion.snapshot.instance_id,
        state=state,
        action=what,
        guard=source,
    )
