"""A plain interpreter of machine documents: the twin that compiled machines are compared with.

It walks the document itself, one state at a time, by the algorithm of SCXML (W3C recommendation,
appendix D), and shares nothing with the compiler but the document. A state is the tuple of the
names that lead to it. Three things are our own:

- `on_done` is taken while a state is at its end, the innermost first, rather than on an event;
- what is automatic (`always`, then `on_done`) comes before raised events;
- a history state that is a target counts as itself when it is settled which states are left.

    machine = Interpreter(document, {"data.x": True})
    machine.send("go")       -> True, unless nothing could be taken
    machine.leaves()                         -> {"p.a.a1", "p.b.b2"}
    machine.called                           -> hooks, in order
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Path: TypeAlias = tuple[str, ...]
Written: TypeAlias = Mapping[str, Any]

RAISED_MAX = 5  # events that one event may raise


class Taken(NamedTuple):
    """A branch that may be taken, and the state that it is written in."""

    source: Path
    branch: Written


class Interpreter:
    """A machine that runs: its active states, and what its history states remember.

    Args:
        truths: what each expression and each check comes to; it may be altered between events.
        raised_max: how many events one event may raise; the rest is forgotten.
    """

    def __init__(
        self, document: Written, truths: Mapping[str, bool], *, raised_max: int = RAISED_MAX
    ) -> None:
        self._truths = truths
        self._raised_max = raised_max
        self._states: dict[Path, Written] = {(): document}
        self._list((), document)
        self._place = {path: place for place, path in enumerate(self._states)}
        self.active: set[Path] = set()
        self.remembered: dict[Path, set[Path]] = {}
        self.called: list[str] = []
        self._raised: list[str] = []
        entry: set[Path] = set()
        self._add_down((), entry)
        self._enter(entry)
        self._settle()

    def send(self, event: str) -> bool:
        """Say whether anything was taken."""
        return self._act("on", event)

    def expire(self, state: str, timer: str) -> bool:
        return self._act("after", timer, tuple(state.split(".")))

    def leaves(self) -> set[str]:
        return {".".join(path) for path in self.active if self._is_leaf(path)}

    def timers(self) -> list[tuple[str, str]]:
        """Give the timers that run, each with its state."""
        return [
            (".".join(path), name)
            for path in sorted(self.active)
            for name in self._states[path].get("after", {})
            if path
        ]

    def is_over(self) -> bool:
        return any(len(path) == 1 and self._kind(path) == "final" for path in self.active)

    # The tree.

    def _list(self, path: Path, written: Written) -> None:
        names = sorted(written.get("states", {}))
        first = [name for name in written.get("order", []) if name in names]
        for name in [*first, *(name for name in names if name not in first)]:
            inner = written["states"][name] or {}
            self._states[*path, name] = inner
            self._list((*path, name), inner)

    def _kind(self, path: Path) -> str:
        written = self._states[path]
        if "type" in written:
            return str(written["type"])
        if written.get("final"):
            return "final"
        return "compound" if "states" in written else "atomic"

    def _children(self, path: Path) -> list[Path]:
        return [
            child
            for child in self._states
            if len(child) == len(path) + 1 and child[:-1] == path and self._kind(child) != "history"
        ]

    def _is_leaf(self, path: Path) -> bool:
        return not self._children(path)

    def _sorted(self, paths: set[Path]) -> list[Path]:
        return sorted(paths, key=self._place.__getitem__)

    def _find(self, name: str, source: Path) -> Path:
        """Find a state by a name: siblings first, then outwards, its own children last."""
        parts = tuple(name.split("."))
        scopes = [source[:length] for length in range(len(source) - 1, -1, -1)]
        for scope in [*scopes, source]:
            if scope + parts in self._states:
                return scope + parts
        raise LookupError(name)

    def _targets(self, taken: Taken) -> list[Path]:
        return [self._find(name, taken.source) for name in _listed(taken.branch.get("to"))]

    # Which transitions are taken.

    def _act(self, word: str, name: str | None, of: Path | None = None) -> bool:
        if self.is_over() or not self._step(word, name, of):
            return False
        self._settle()
        return True

    def _settle(self) -> None:
        """Take what is automatic, then what was raised, until nothing is left."""
        raised = 0
        while not self.is_over():
            if self._step("always", None):
                continue
            if any(self._step("on_done", None, path) for path in self._ended()):
                continue
            if not self._raised or raised == self._raised_max:
                break
            raised += 1
            self._step("on", self._raised.pop(0))
        self._raised.clear()

    def _ended(self) -> list[Path]:
        """List the states that are at their end, the innermost first."""
        ended = [path for path in self._sorted(self.active) if path and self._is_ended(path)]
        return sorted(ended, key=lambda path: -len(path))

    def _is_ended(self, path: Path) -> bool:
        if self._kind(path) == "parallel":
            return all(
                self._kind(region) == "final" or self._is_ended(region)
                for region in self._children(path)
            )
        return any(
            self._kind(child) == "final" and child in self.active for child in self._children(path)
        )

    def _step(self, word: str, name: str | None, of: Path | None = None) -> bool:
        enabled: list[Taken] = []
        for leaf in self._sorted(self.active):
            if not self._is_leaf(leaf):
                continue
            chain = [leaf[:length] for length in range(len(leaf), 0, -1)]
            for path in chain if of is None else [of] if of in chain else []:
                branch = self._branch(path, word, name)
                if branch is not None:
                    if Taken(path, branch) not in enabled:
                        enabled.append(Taken(path, branch))
                    break
        kept = self._without_conflicts(enabled)
        if kept:
            self._take(sorted(kept, key=lambda taken: self._place[taken.source]))
        return bool(kept)

    def _branch(self, path: Path, word: str, name: str | None) -> Written | None:
        """Find the branch of a choice that may be taken."""
        choice = self._states[path].get(word)
        if name is not None:
            choice = (choice or {}).get(name)
        if choice is None:
            return None
        ordered = isinstance(choice, dict) and "branches" in choice
        listed = choice["branches"] if ordered else _listed(choice)
        true = [
            branch if isinstance(branch, dict) else {"to": branch}
            for branch in listed
            if not isinstance(branch, dict)
            or "when" not in branch
            or self._holds(branch["when"], path)
        ]
        assert ordered or len(true) < 2, "branches of an unordered choice exclude each other"
        return true[0] if true else None

    def _holds(self, when: Any, path: Path) -> bool:
        if isinstance(when, str):
            return self._truths[when]
        ((word, of),) = when.items()
        match word:
            case "check":
                return self._truths[of]
            case "in":
                return self._find(of, path) in self.active
            case "not":
                return not self._holds(of, path)
            case "all":
                return all(self._holds(part, path) for part in of)
            case _:
                return any(self._holds(part, path) for part in of)

    def _without_conflicts(self, enabled: list[Taken]) -> list[Taken]:
        kept: list[Taken] = []
        for one in enabled:
            rivals = [other for other in kept if self._exits(one) & self._exits(other)]
            if all(_inside(one.source, other.source) for other in rivals):
                kept = [other for other in kept if other not in rivals] + [one]
        return kept

    # What taking them does.

    def _domain(self, taken: Taken) -> Path:
        targets = self._targets(taken)
        source = taken.source
        if (
            taken.branch.get("internal")
            and self._kind(source) == "compound"
            and all(_inside(target, source) for target in targets)
        ):
            return source
        for length in range(len(source) - 1, -1, -1):
            outer = source[:length]
            if self._kind(outer) == "compound" and all(_inside(t, outer) for t in targets):
                return outer
        return ()

    def _exits(self, taken: Taken) -> set[Path]:
        if not self._targets(taken):
            return set()
        domain = self._domain(taken)
        return {path for path in self.active if _inside(path, domain)}

    def _take(self, kept: list[Taken]) -> None:
        leaving = set[Path]().union(*map(self._exits, kept))
        domains = [self._domain(taken) for taken in kept]
        for path in self._states:
            if self._kind(path) == "history" and path[:-1] in leaving:
                self.remembered[path] = {
                    state
                    for state in self.active
                    if (
                        self._is_leaf(state) and _inside(state, path[:-1])
                        if self._states[path].get("history") == "deep"
                        else state[:-1] == path[:-1] and state != ()
                    )
                }
        for path in reversed(self._sorted(leaving)):
            self._call(self._states[path].get("on_exit"))
            self.active.discard(path)
        for taken in kept:
            self._call(taken.branch.get("do"))
        entry: set[Path] = set()
        for taken, domain in zip(kept, domains, strict=True):
            targets = self._targets(taken)
            for target in targets:
                self._add_down(target, entry)
            for target in targets:
                for state in self._effective(target):
                    self._add_up(state, domain, entry)
        self._enter(entry)

    def _enter(self, entry: set[Path]) -> None:
        for path in self._sorted(entry):
            if path not in self.active:
                self._call(self._states[path].get("on_enter"))
                self.active.add(path)

    def _call(self, hooks: Any) -> None:
        for hook in _listed(hooks):
            if isinstance(hook, dict):
                self._raised.append(hook["raise"])
            else:
                self.called.append(hook)

    def _starts(self, path: Path) -> list[Path]:
        """Give where a state begins; for a history state, where it leads."""
        written = self._states[path]
        if self._kind(path) != "history":
            names = _listed(written.get("initial"))
            return [self._start(path, name) for name in names]
        if path in self.remembered:
            return self._sorted(self.remembered[path])
        if "to" in written:
            return [self._find(name, path) for name in _listed(written["to"])]
        parent = path[:-1]
        return self._children(parent) if self._kind(parent) == "parallel" else self._starts(parent)

    def _start(self, path: Path, name: str) -> Path:
        found = path + tuple(name.split("."))
        return found if found in self._states else self._find(name, path)

    def _effective(self, target: Path) -> list[Path]:
        if self._kind(target) != "history":
            return [target]
        return [state for place in self._starts(target) for state in self._effective(place)]

    def _add_down(self, path: Path, entry: set[Path]) -> None:
        kind = self._kind(path)
        if kind == "history":
            places = self._starts(path)
            for place in places:
                self._add_down(place, entry)
            for place in places:
                for state in self._effective(place):
                    self._add_up(state, path[:-1], entry)
            return
        entry.add(path)
        if kind == "compound":
            starts = self._starts(path)
            for start in starts:
                self._add_down(start, entry)
            for start in starts:
                for state in self._effective(start):
                    self._add_up(state, path, entry)
        elif kind == "parallel":
            self._add_regions(path, entry)

    def _add_up(self, path: Path, domain: Path, entry: set[Path]) -> None:
        for length in range(len(path) - 1, len(domain), -1):
            entry.add(path[:length])
            if self._kind(path[:length]) == "parallel":
                self._add_regions(path[:length], entry)

    def _add_regions(self, path: Path, entry: set[Path]) -> None:
        for region in self._children(path):
            if not any(state == region or _inside(state, region) for state in entry):
                self._add_down(region, entry)


def _inside(path: Path, outer: Path) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [] if written is None else [written]
