"""Targets, as a document of ours names them: found from where they stand.

Importers name each state by its path from the top. What is written is the name of a sibling, or the
shortest of the paths that lead there: a path is looked for in the states around, from the inside
out, so one from the top may be hidden by an inner state of the same name.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from interlock.language.convert.result import Definition

#: The names of the states inside a state, each with what is inside it.
Names: TypeAlias = dict[str, Any]


class Hidden(Exception):
    """No text names a state from where it is wanted."""


def written(definition: Definition) -> Definition:
    """Give a document in which every target, named by its path, is one that is found.

    Raises:
        Hidden: one cannot be found, whatever it is called.
    """
    made: Definition = json.loads(json.dumps(definition))
    names = names_of(made)
    for path, state in _states(made["states"], ()):

        def found(target: str, path: tuple[str, ...] = path) -> str:
            return text(tuple(target.split(".")), path, names)

        if state.get("type") == "history":
            _write_to(state, found)
        for group in ("on", "after"):
            for trigger, choice in state.get(group, {}).items():
                state[group][trigger] = _choice(choice, found)
        for key in ("always", "on_done"):
            if key in state:
                state[key] = _choice(state[key], found)
    return made


def names_of(state: Definition) -> Names:
    """Give the names of the states inside a document or a state."""
    return {name: names_of(inner or {}) for name, inner in (state.get("states") or {}).items()}


def _states(
    states: Definition, around: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Definition]]:
    for name, state in states.items():
        yield (*around, name), state
        yield from _states(state.get("states") or {}, (*around, name))


def _choice(choice: Any, found: Any) -> Any:
    if isinstance(choice, str):
        return found(choice)
    for branch in choice if isinstance(choice, list) else choice.get("branches", [choice]):
        _write_to(branch, found)
        _write_conditions(branch.get("when"), found)
    return choice


def _write_to(branch: Definition, found: Any) -> None:
    to = branch.get("to")
    if to is not None:
        branch["to"] = [found(one) for one in to] if isinstance(to, list) else found(to)


def _write_conditions(when: Any, found: Any) -> None:
    owed = [when]
    while owed:
        part = owed.pop()
        if isinstance(part, dict):
            if "in" in part:
                part["in"] = found(part["in"])
            owed += part.values()
        elif isinstance(part, list):
            owed += part


def text(target: tuple[str, ...], source: tuple[str, ...], names: Names) -> str:
    """Choose how to name a target: as a sibling, by its path, or from a state around both.

    Raises:
        Hidden: it cannot be found from its source.
    """
    scopes = [source[:depth] for depth in range(len(source) - 1, -1, -1)]
    around = [scope for scope in reversed(scopes) if target[: len(scope)] == scope != target]
    sibling = [scopes[0]] if target[:-1] == scopes[0] else []
    for scope in [*sibling, *around, *([source] if target[: len(source)] == source else [])]:
        rest = target[len(scope) :]
        if rest and _find(rest, [*scopes, source], names) == target:
            return ".".join(rest)
    raise Hidden(".".join(target))


def _find(
    rest: tuple[str, ...], scopes: list[tuple[str, ...]], names: Names
) -> tuple[str, ...] | None:
    """Find a state as the compiler does."""
    for scope in scopes:
        inside: Any = names
        for part in (*scope, *rest):
            inside = inside.get(part) if inside is not None else None
        if inside is not None:
            return (*scope, *rest)
    return None
