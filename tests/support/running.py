"""A flat machine at work: a state, what history states remember, and events that were raised."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

from interlock.language.chart import Hook, TriggerKind
from interlock.language.condition import All, AnyOf, Condition, Not
from interlock.language.flatten import Branch, Flat

STEPS_MAX = 1000


class Running:
    """Takes the one branch that is open, then what is automatic, then what was raised.

    Of several states that are at their end, the innermost goes first, then the first region.

    Args:
        holds: whether an expression or a guard is true; asked for nothing else.
        change: takes what a branch sets, each a name and an expression.
        raised_max: how many events one event may raise; the rest is forgotten.

    Attributes:
        called: the hooks so far, in order.
        taken: the actions so far, as history would show them.
    """

    def __init__(
        self,
        flat: Flat,
        holds: Callable[[Condition], bool],
        *,
        change: Callable[[Sequence[tuple[str, str]]], None] = lambda _: None,
        raised_max: int = STEPS_MAX,
    ) -> None:
        self._flat = flat
        self._holds = holds
        self._change = change
        self._branches: dict[str, list[Branch]] = defaultdict(list)
        for branch in flat.branches:
            self._branches[branch.from_state].append(branch)
        self._remembered: dict[str, tuple[str, ...]] = {}
        self._raised: deque[str] = deque()
        self._raised_max = raised_max
        self.called: list[str] = []
        self.taken: list[str] = []
        self.state = flat.initial
        self._call(flat.hooks)
        self._settle()

    @property
    def leaves(self) -> tuple[str, ...]:
        return self._flat.leaves[self.state]

    def send(self, event: str) -> bool:
        """Say whether anything was taken."""
        return self._act("event", event)

    def expire(self, state: str, timer: str) -> bool:
        """Let a timer of a state run out."""
        return self._act("after", timer, state)

    def _act(self, kind: TriggerKind, name: str, owner: str = "") -> bool:
        taken = self._take(kind, name, owner)
        if taken:
            self._settle()
        return taken

    def _settle(self) -> None:
        raised = 0
        for _ in range(STEPS_MAX):
            if self._take("always") or any(self._take("done", "", of) for of in self._ended()):
                continue
            if not self._raised or raised == self._raised_max:
                self._raised.clear()
                return
            raised += 1
            self._take("event", self._raised.popleft())
        raise AssertionError(f"no end after {STEPS_MAX} steps")

    def _ended(self) -> list[str]:
        here = self._branches[self.state]
        owners = {branch.owner for branch in here if branch.trigger.kind == "done"}

        def place(owner: str) -> tuple[int, int]:
            inside = [leaf.startswith(f"{owner}.") for leaf in self.leaves]
            return -owner.count("."), inside.index(True)

        return sorted(owners, key=place)

    def _take(self, kind: TriggerKind, name: str = "", owner: str = "") -> bool:
        which = ((kind, name), owner)
        open_ = [
            branch
            for branch in self._branches[self.state]
            if (branch.trigger, branch.owner) == which and self._is_open(branch)
        ]
        assert len(open_) <= 1, open_
        for branch in open_:
            self.taken.append(branch.action)
            self._remembered.update(branch.remembers)
            self._change(branch.sets)
            self._call(branch.hooks)
            self.state = branch.to_state
        return bool(open_)

    def _call(self, hooks: Iterable[Hook]) -> None:
        for hook in hooks:
            (self._raised if hook.raises else self.called).append(hook.name)

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
