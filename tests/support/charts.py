"""Hypothesis strategies: random statecharts that are valid by construction.

Everything stands inside one state, `top`, whose jumps (`j0`, `j1`, …) reach every other state, so
that none is unreachable. Branches of an unordered choice exclude each other by their guards, and
every branch has a name of its own.
"""

from typing import Any, TypeAlias

from hypothesis import strategies as st

State: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

EVENTS = ("e0", "e1", "e2")
TRUTHS = ("data.x", "data.y", "data.z")
TIMERS = ("P1D", "1m")
NAMES = ("a", "b", "c", "d")


@st.composite
def charts(draw: st.DrawFn, depth: int = 3, automatic: bool = True) -> State:
    """A machine document; with `conflicts: first-region`."""
    top = draw(_states(depth))
    states = {"top": top, "z": {"final": True}}
    _Filler(draw, states, automatic).fill()
    return {
        "machine": "m",
        "initial": "top",
        "conflicts": "first-region",
        "data": {truth.removeprefix("data."): {"type": "boolean"} for truth in TRUTHS},
        "states": states,
    }


@st.composite
def _states(draw: st.DrawFn, depth: int) -> State:
    """The tree of a compound state, without transitions."""
    names = NAMES[: draw(st.integers(1, 3))]
    state: State = {"states": {name: draw(_inner(depth - 1)) for name in names}}
    state["initial"] = draw(st.sampled_from(names))
    if draw(st.integers(0, 3)) == 0:
        state["states"]["f"] = {"final": True}
    _add_history(draw, state)
    return state


@st.composite
def _inner(draw: st.DrawFn, depth: int) -> State:
    kind = draw(st.integers(0, 5)) if depth > 0 else 0
    if kind <= 1:
        return {}
    if kind <= 3:
        return draw(_states(depth))
    names = NAMES[: draw(st.integers(2, 3 if depth > 1 else 2))]
    state: State = {
        "type": "parallel",
        "states": {name: draw(_inner(depth - 1) | _states(depth - 1)) for name in names},
    }
    if draw(st.booleans()):
        state["order"] = draw(st.permutations(names))
    _add_history(draw, state)
    return state


def _add_history(draw: st.DrawFn, state: State) -> None:
    if draw(st.integers(0, 2)) == 0:
        state["states"]["h"] = {
            "type": "history",
            "history": draw(st.sampled_from(["shallow", "deep"])),
        }


class _Filler:
    """Adds transitions and hooks to a tree."""

    def __init__(self, draw: st.DrawFn, states: State, automatic: bool) -> None:
        self._draw = draw
        self._automatic = automatic
        self._all: dict[Path, State] = {}
        self._walk((), states)
        self._named = 0

    def _walk(self, path: Path, states: State) -> None:
        for name, state in states.items():
            self._all[*path, name] = state
            self._walk((*path, name), state.get("states", {}))

    def fill(self) -> None:
        jumps = [path for path in self._all if len(path) > 1]
        for path, state in self._all.items():
            if state.get("type") == "history":
                self._give_default(path, state)
                continue
            name = ".".join(path)
            state["on_enter"] = [f"+{name}"]
            if path != ("z",):
                state["on_exit"] = [f"-{name}"]
            if not state.get("final"):
                self._fill(path, state)
        on = self._all["top",].setdefault("on", {})
        on["quit"] = "z"
        for number, path in enumerate(jumps):
            on[f"j{number}"] = {"to": ".".join(path), "internal": self._draw(st.booleans())}

    def _give_default(self, path: Path, state: State) -> None:
        if self._draw(st.booleans()):
            within = [
                other
                for other, its in self._all.items()
                if other[: len(path) - 1] == path[:-1] and len(other) >= len(path) and its
                if its.get("type") != "history"
            ]
            if within:
                state["to"] = ".".join(self._draw(st.sampled_from(within)))

    def _fill(self, path: Path, state: State) -> None:
        draw = self._draw
        for event in EVENTS:
            if draw(st.integers(0, 2)) == 0:
                state.setdefault("on", {})[event] = self._choice(path)
        if draw(st.integers(0, 7)) == 0:
            state["after"] = {draw(st.sampled_from(TIMERS)): self._choice(path)}
        if self._automatic and "states" not in state and draw(st.integers(0, 7)) == 0:
            state["always"] = self._choice(path, forward=True)
        if self._automatic and "states" in state and draw(st.booleans()):
            state["on_done"] = self._choice(path, forward=True)
        if draw(st.integers(0, 9)) == 0:
            state["on_enter"].append({"raise": draw(st.sampled_from(EVENTS))})

    def _choice(self, path: Path, *, forward: bool = False) -> Any:
        draw = self._draw
        form = draw(st.integers(0, 4))
        if form == 0:
            return self._target(path, forward=forward)
        if form == 1:
            return self._branch(path, None, forward=forward)
        if form == 2:
            return self._branch(path, self._when(path), forward=forward)
        if form == 3:
            whens = draw(st.permutations(_apart(draw)))
            listed = [self._branch(path, when, forward=forward) for when in whens]
            return listed[: draw(st.integers(1, len(listed)))]
        number = draw(st.integers(1, 3))
        branches = [self._branch(path, self._when(path), forward=forward) for _ in range(number)]
        if draw(st.booleans()):
            branches.append({**self._branch(path, None, forward=forward), "otherwise": True})
        return {"order": "first-match", "branches": branches}

    def _branch(self, path: Path, when: Any, *, forward: bool) -> State:
        draw = self._draw
        self._named += 1
        branch: State = {"name": f"n{self._named}", "do": [f"*{self._named}"]}
        if when is not None:
            branch["when"] = when
        kind = draw(st.integers(0, 5))
        if kind > 0 or forward:
            branch["to"] = self._target(path, forward=forward)
        if kind == 1 and not forward:
            branch["to"] = self._several() or branch["to"]
        if draw(st.integers(0, 3)) == 0:
            branch["internal"] = True
        if draw(st.integers(0, 9)) == 0:
            branch["do"].append({"raise": draw(st.sampled_from(EVENTS))})
        return branch

    def _target(self, path: Path, *, forward: bool) -> str:
        """A state by its whole path, or by its name if it is a sibling.

        Args:
            forward: it comes after `path` and is not inside, so that what is automatic has an end.
        """
        found = [*self._all]
        if forward:
            found = [other for other in found if other > path and other[: len(path)] != path]
        target = self._draw(st.sampled_from(found))
        if target[:-1] == path[:-1] and self._draw(st.booleans()):
            return target[-1]
        return ".".join(target)

    def _several(self) -> list[str] | None:
        """A state in each of some regions of a parallel state."""
        parallel = [p for p, state in self._all.items() if state.get("type") == "parallel"]
        if not parallel:
            return None
        path = self._draw(st.sampled_from(parallel))
        regions = [name for name in self._all[path]["states"] if name != "h"]
        targets = []
        for region in regions[: self._draw(st.integers(1, len(regions)))]:
            inside = [p for p in self._all if p[: len(path) + 1] == (*path, region)]
            targets.append(".".join(self._draw(st.sampled_from(inside))))
        return targets

    def _when(self, path: Path) -> Any:
        draw = self._draw
        match draw(st.integers(0, 6)):
            case 0:
                return {"in": ".".join(draw(st.sampled_from([*self._all])))}
            case 1:
                return {"not": draw(st.sampled_from(TRUTHS))}
            case 2:
                return {"all": [self._when(path), draw(st.sampled_from(TRUTHS))]}
            case 3:
                return {"any": [draw(st.sampled_from(TRUTHS)), self._when(path)]}
            case 4:
                return {"check": draw(st.sampled_from(TRUTHS))}
            case _:
                return draw(st.sampled_from(TRUTHS))


def _apart(draw: st.DrawFn) -> list[Any]:
    """Conditions of which at most one is true."""
    one, other = draw(st.permutations(TRUTHS))[:2]
    if draw(st.booleans()):
        return [one, {"not": one}]
    return [one, {"all": [{"not": one}, other]}, {"all": [{"not": one}, {"not": other}]}]


@st.composite
def truths(draw: st.DrawFn) -> dict[str, bool]:
    return {truth: draw(st.booleans()) for truth in TRUTHS}


@st.composite
def shuffled(draw: st.DrawFn, value: Any) -> Any:
    """The same value with the keys of its mappings in another order."""

    def again(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: again(part[key]) for key in draw(st.permutations([*part]))}
        return [again(one) for one in part] if isinstance(part, list) else part

    return again(value)


#: Names that a reader of YAML may take for something else, or that may break out of a line.
ODD_NAMES = (
    "on", "yes", "null", "~", "1e3", "0x1F", "12", "-", "- a", "? b", ": c", "#d", "&e", "*f", "!g",
    "%h", "@i", "`j`", "<<", "a: b", "a #b", "a, b", "[x]", '"q"', "it's", "a\\b", "a\nb", "a\tb",
    "日本", "a\u2028b", "\u202ex", "😀",
)  # fmt: skip


@st.composite
def renamed(draw: st.DrawFn, document: State) -> State:
    """The same machine with odd names in place of `a`, `b`, `c`, `d` and the events."""
    plain = [*NAMES, *EVENTS, "z", "top"]
    names = dict(zip(plain, draw(st.permutations(ODD_NAMES)), strict=False))

    def again(part: Any) -> Any:
        if isinstance(part, dict):
            return {names.get(key, key): again(one) for key, one in part.items()}
        if isinstance(part, list):
            return [again(one) for one in part]
        if isinstance(part, str) and all(one in (*plain, "f", "h") for one in part.split(".")):
            return ".".join(names.get(one, one) for one in part.split("."))
        return part

    machine = draw(st.sampled_from(ODD_NAMES))
    return {**again(document), "machine": machine, "data": document["data"]}
