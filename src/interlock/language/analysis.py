"""What the flat machine shows: what nothing reaches, dead ends, automatic cycles, properties.

All of it is about the graph, whatever conditions come to: a path that is found may be closed by
conditions that can never be true, but what is not found does not exist.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from interlock.core.declaration import Path
from interlock.language.chart import Chart, Report, State
from interlock.language.flatten import Branch, Flat

Edges = Mapping[str, Sequence[Branch]]

PATH_MAX = 12  # steps of a path that are shown


def check_reachable(chart: Chart, flat: Flat, report: Report) -> None:
    """Report states that are never active."""
    reached = frozenset().union(*flat.active.values())
    for path, state in chart.states.items():
        if path and state.kind != "history" and path not in reached:
            if state.parent is not None and state.parent.path and state.parent.path not in reached:
                continue  # it is said of the state around it
            what = f"no transition leads to `{path}`"
            report("unreachable-state", what, state.where, None)


def dead_ends(chart: Chart, flat: Flat) -> Iterator[State]:
    """Give the states from which the machine can never come to its end, if it has one."""
    if not flat.final:
        return
    back: dict[str, list[str]] = {}
    for branch in flat.branches:
        back.setdefault(branch.to_state, []).append(branch.from_state)
    alive, owed = set(flat.final), [*flat.final]
    while owed:
        for before in back.get(owed.pop(), ()):
            if before not in alive:
                alive.add(before)
                owed.append(before)
    ends = {path for name in alive for path in flat.leaves[name]}
    for path in sorted({path for leaves in flat.leaves.values() for path in leaves} - ends):
        yield chart.states[path]


def check_automatic(flat: Flat, report: Report) -> None:
    """Report every cycle of automatic transitions, guarded or not."""
    automatic: dict[str, list[Branch]] = {}
    for branch in flat.branches:
        if branch.trigger.kind in ("always", "done"):
            automatic.setdefault(branch.from_state, []).append(branch)
    for component in components({s: [b.to_state for b in bs] for s, bs in automatic.items()}):
        members = set(component)
        within = [
            branch
            for s in component
            for branch in automatic.get(s, ())
            if branch.to_state in members
        ]
        if within:
            names = ", ".join(f"`{name}`" for name in sorted(component)[:PATH_MAX])
            what = f"automatic transitions go round for ever: {names}"
            hint = "let an event or a timer stand on one of them"
            report("automatic-cycle", what, within[0].places[0], hint)


def warn_of_labels(chart: Chart, warn: Report) -> None:
    """Warn of labels on what happens by itself: nobody is there to assert them."""
    for state in chart.states.values():
        for one in state.transitions:
            if one.guard is None or one.trigger.kind == "event":
                continue
            when = "a timer runs out" if one.trigger.kind == "after" else "it happens by itself"
            what = f"nobody asserts `{one.guard}` when {when}, so `{one.label}` is never taken"
            hint = "let an event lead there, or ask with `when`"
            warn("dead-branch", what, (*one.where, "guard"), hint)


def components(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Give the strongly connected components of a graph (R. Tarjan, 1972), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: dict[str, None] = {}
    found: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        open_[root] = None
        walk = [(root, iter(graph.get(root, ())))]
        while walk:
            node, rest = walk[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    open_[after] = None
                    walk.append((after, iter(graph.get(after, ()))))
                    break
                if after in open_:
                    low[node] = min(low[node], index[after])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member, _ = open_.popitem()
                        component.append(member)
                        if member == node:
                            break
                    found.append(component)
    return found


def check_never(
    properties: Sequence[Mapping[str, Any]], chart: Chart, flat: Flat, report: Report
) -> None:
    """Report each property that some path breaks, with a shortest one."""
    edges: dict[str, list[Branch]] = {}
    for branch in flat.branches:
        edges.setdefault(branch.from_state, []).append(branch)
    for place, listed in enumerate(properties):
        where: Path = ("never", place)
        goal = _state(listed["reach"], chart, (*where, "reach"), report)
        allowed = _without(listed.get("without"), chart, flat, (*where, "without"), report)
        if goal is None or allowed is None:
            continue
        path = shortest(flat, edges, lambda s, goal=goal: goal in flat.active[s], *allowed)  # type: ignore[misc]
        if path is not None:
            steps = "".join(f" --{branch.action}--> {branch.to_state}" for branch in path)
            what = f"`{listed['reach']}` can be reached"
            if listed.get("without") is not None:
                what += f" without {_told(listed['without'])}"
            report("property-violated", f"{what}: {flat.initial}{steps}", where, None)


def shortest(
    flat: Flat,
    edges: Edges,
    is_goal: Callable[[str], bool],
    may_enter: Callable[[str], bool],
    may_take: Callable[[Branch], bool],
) -> list[Branch] | None:
    """Find a shortest path from the initial state to a goal, or None."""
    if not may_enter(flat.initial):
        return None
    came: dict[str, Branch | None] = {flat.initial: None}
    owed = deque([flat.initial])
    while owed:
        state = owed.popleft()
        if is_goal(state):
            path = []
            while (branch := came[state]) is not None:
                path.append(branch)
                state = branch.from_state
            return path[::-1]
        for branch in edges.get(state, ()):
            after = branch.to_state
            if after not in came and may_take(branch) and (may_enter(after) or is_goal(after)):
                came[after] = branch
                owed.append(after)
    return None


def _without(
    avoided: Any, chart: Chart, flat: Flat, where: Path, report: Report
) -> tuple[Callable[[str], bool], Callable[[Branch], bool]] | None:
    """Give which states may be entered and which branches taken."""
    if avoided is None:
        return (lambda _: True), (lambda _: True)
    if isinstance(avoided, str):
        path = _state(avoided, chart, where, report)
        if path is None:
            return None
        return (lambda state: path not in flat.active[state]), (lambda _: True)
    if "action" in avoided:
        action = avoided["action"]
        known = {name for b in flat.branches for name in (b.action, b.trigger.name)}
        if action not in known:
            report("unknown-state", f"there is no action `{action}`", (*where, "action"), None)
            return None
        return (lambda _: True), (lambda b: action not in (b.action, b.trigger.name))
    guard = avoided["guard"]
    if not any(guard in branch.guards for branch in flat.branches):
        report("unknown-state", f"no transition has the guard `{guard}`", (*where, "guard"), None)
        return None
    return (lambda _: True), (lambda branch: guard not in branch.guards)


def _state(name: str, chart: Chart, where: Path, report: Report) -> str | None:
    """Find a state by its path, or by its name if only one has it."""
    if name in chart.states and chart.states[name].kind != "history":
        return name
    found = [
        path
        for path, state in chart.states.items()
        if state.name == name and state.kind != "history"
    ]
    if len(found) == 1:
        return found[0]
    what = f"there is no state `{name}`" if not found else f"several states are called `{name}`"
    if name in chart.states:
        what = f"`{name}` is a history state, which is never active itself"
    hint = f"write its path, such as `{found[0]}`" if found else None
    report("unknown-state", what, where, hint)
    return None


def _told(avoided: Any) -> str:
    if isinstance(avoided, str):
        return f"the state `{avoided}`"
    ((word, name),) = avoided.items()
    return f"the {word} `{name}`"
