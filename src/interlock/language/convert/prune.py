"""What the graph of a machine shows to be dead, and a document without it.

Dead are states that nothing reaches, and transitions that are never taken: another always comes
before them, or the condition on the states that are active cannot be.
"""

import json
from collections.abc import Collection
from typing import Any

from interlock.core.declaration import Path
from interlock.language.chart import Chart, State, Transition
from interlock.language.convert.branches import choice
from interlock.language.convert.result import Definition
from interlock.language.flatten import Flat


def lost_states(chart: Chart, flat: Flat) -> set[State]:
    """Find the outermost states that are never active, and memories that begin in one."""
    reached = frozenset().union(*flat.active.values())
    lost: set[State] = set()
    for path, state in chart.states.items():
        dead = path and state.kind != "history" and path not in reached
        if dead and not is_inside(state, lost):
            lost.add(state)
    memories = {
        state
        for state in chart.states.values()
        if state.kind == "history"
        and any(is_inside(target, lost) for target in state.initial)
        and not is_inside(state, lost)
    }
    return lost | memories


def is_inside(state: State, others: Collection[State]) -> bool:
    """Say whether a state is one of others, or inside one."""
    return state in others or any(around in others for around in state.around())


def dead_transitions(chart: Chart, flat: Flat) -> list[Transition]:
    """List the transitions that no branch of the flat machine takes."""
    taken = {place for branch in flat.branches for place in branch.places}
    every = (one for state in chart.states.values() for one in state.transitions)
    return [one for one in every if one.where not in taken]


def pruned(
    definition: Definition, chart: Chart, lost: Collection[State], dead: list[Transition]
) -> Definition:
    """Give a document without some states and transitions."""
    made: Definition = json.loads(json.dumps(definition))
    places = {one.where for one in dead}
    choices: dict[Path, list[Path]] = {}
    for state in chart.states.values():
        for one in state.transitions if not is_inside(state, lost) else ():
            choices.setdefault(_choice_of(one.where), []).append(one.where)
    for place, branches in choices.items():
        if places.intersection(branches):
            _thin_out(made, place, [branch for branch in branches if branch not in places])
    gone = {state.path for state in chart.states.values() if is_inside(state, lost)}
    _say_never(made, gone)
    for state in lost:
        _remove(made, state, lost)
    return made


def branch_at(definition: Definition, place: Path) -> Definition:
    """Give a branch as a mapping."""
    branch = _at(definition, place)
    return branch if isinstance(branch, dict) else {"to": branch}


def _at(definition: Definition, place: Path) -> Any:
    value: Any = definition
    for key in place:
        value = value[key]
    return value


def _choice_of(place: Path) -> Path:
    """Give the place of the choice that a branch is one of."""
    if not isinstance(place[-1], int):
        return place
    return place[:-2] if place[-2] == "branches" else place[:-1]


def _thin_out(definition: Definition, place: Path, live: list[Path]) -> None:
    """Keep some branches of a choice; without any, the choice itself goes."""
    *around, key = place
    holder = _at(definition, tuple(around))
    kept = [branch_at(definition, branch) for branch in live]
    if kept:
        excluding = isinstance(holder[key], list) and len(kept) > 1
        holder[key] = kept if excluding else choice(kept)
        return
    del holder[key]
    if not holder and around[-1] in ("on", "after"):
        del _at(definition, tuple(around[:-1]))[around[-1]]


def _say_never(definition: Definition, gone: set[str]) -> None:
    """Say of states that are gone that they are never active."""
    owed: list[Any] = [definition]
    while owed:
        part = owed.pop()
        if isinstance(part, dict):
            if set(part) == {"in"} and part["in"] in gone:
                del part["in"]
                part["any"] = []
            owed += part.values()
        elif isinstance(part, list):
            owed += part


def _remove(definition: Definition, state: State, lost: Collection[State]) -> None:
    around = state.parent
    assert around is not None
    holder = _at(definition, around.where)
    del holder["states"][state.name]
    if state.name in holder.get("order", ()):
        holder["order"].remove(state.name)
    if not holder["states"]:  # memories are all that was left
        del holder["states"]
        holder.pop("initial", None)
    elif around.kind == "compound" and any(is_inside(one, lost) for one in around.initial):
        holder["initial"] = next(c.name for c in around.children if not is_inside(c, lost))
