"""A flat machine at work: a state, what history states remember, and events that were raised."""

from collections import defaultdict, deque
from collections.abc import Callable

from interlock.language.chart import TriggerKind
from interlock.language.condition import All, AnyOf, Condition, Not
from interlock.language.flatten import Branch, Flat

STEPS_MAX = 1000


class Running:
    """Takes the one branch that is open, then what is automatic, then what was raised.

    Args:
        holds: whether an expression or a guard is true; asked for nothing else.
    """

    def __init__(self, flat: Flat, holds: Callable[[Condition], bool]) -> None:
        self._flat = flat
        self._holds = holds
        self._branches: dict[str, list[Branch]] = defaultdict(list)
        for branch in flat.branches:
            self._branches[branch.from_state].append(branch)
        self._remembered: dict[str, tuple[str, ...]] = {}
        self._raised = deque(hook.name for hook in flat.hooks if hook.raises)
        self.state = flat.initial
        self._settle()

    @property
    def leaves(self) -> tuple[str, ...]:
        return self._flat.leaves[self.state]

    def send(self, event: str) -> None:
        self._take("event", event)
        self._settle()

    def _settle(self) -> None:
        for _ in range(STEPS_MAX):
            if self._take("always") or self._take("done"):
                continue
            if not self._raised:
                return
            self._take("event", self._raised.popleft())
        raise AssertionError(f"no end after {STEPS_MAX} steps")

    def _take(self, kind: TriggerKind, name: str = "") -> bool:
        trigger = (kind, name)
        open_ = [b for b in self._branches[self.state] if b.trigger == trigger and self._is_open(b)]
        assert len(open_) <= 1 or kind == "done", open_
        for branch in open_[:1]:
            self._remembered.update(branch.remembers)
            self._raised.extend(hook.name for hook in branch.hooks if hook.raises)
            self.state = branch.to_state
        return bool(open_)

    def _is_open(self, branch: Branch) -> bool:
        remembered = self._remembered.get
        cases = branch.recalls or {()}
        recalled = any(all(remembered(h) == place for h, place in case) for case in cases)
        return recalled and self._is_true(branch.when)

    def _is_true(self, condition: Condition) -> bool:
        match condition:
            case All(of):
                return all(map(self._is_true, of))
            case AnyOf(of):
                return any(map(self._is_true, of))
            case Not(of):
                return not self._is_true(of)
            case _:
                return self._holds(condition)
