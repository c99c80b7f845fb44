"""Machine documents said again in Python: each key by the call that stands for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from interlock import (
    Machine,
    all_,
    any_,
    branch,
    check,
    first_match,
    in_,
    not_,
    otherwise,
    raise_,
)
from interlock.language.builder import Node, Scope, State

#: Gives what stands for the name of a state, seen from another: the name itself, or the state.
Naming = Callable[[Node, str], Node | str]


def built(document: dict[str, Any], *, by_object: bool) -> Machine:
    """Say a valid document in Python, its targets by object or by name."""
    words = {word: said for word, said in document.items() if word not in ("machine", "states")}
    nevers = words.pop("never", [])
    machine = Machine(document["machine"], **words)
    nodes: list[tuple[Node, dict[str, Any]]] = []
    _add_states(machine, document["states"], nodes)
    naming: Naming = _found if by_object else lambda _, name: name
    for node, written in nodes:
        _add_transitions(node, written, naming)
    for never in nevers:
        machine.never(**never)
    return machine


def _add_states(
    scope: Scope, states: dict[str, Any], nodes: list[tuple[Node, dict[str, Any]]]
) -> None:
    for name, written in states.items():
        words = {
            word: said
            for word, said in (written or {}).items()
            if word in ("on_enter", "on_exit", "data", "label", "description", "order", "initial")
        }
        for word in ("on_enter", "on_exit"):
            if isinstance(words.get(word), list):
                words[word] = _hooks(words[word])
        node: Node
        match written or {}:
            case {"type": "history"}:
                node = scope.history(name, deep=written.get("history") == "deep", **words)
                if "to" in written:  # by name: what it leads to may come later
                    node._words["to"] = written["to"]
            case {"type": "parallel"}:
                node = scope.parallel(name, **words)
            case {"final": True}:
                node = scope.final(name, **words)
            case _:
                node = scope.state(name, **words)
        nodes.append((node, written or {}))
        if isinstance(node, State):
            _add_states(node, (written or {}).get("states", {}), nodes)


def _add_transitions(node: Node, written: dict[str, Any], naming: Naming) -> None:
    if not isinstance(node, State):
        return
    for event, choice in written.get("on", {}).items():
        _lead(node, partial(node.on, event), choice, naming)
    for name, choice in written.get("after", {}).items():
        _lead(node, partial(node.after, name), choice, naming)
    if "always" in written:
        _lead(node, node.always, written["always"], naming)
    if "on_done" in written:
        _lead(node, node.on_done, written["on_done"], naming)


def _lead(node: State, verb: Callable[..., State], choice: Any, naming: Naming) -> None:
    """Say a choice: a list of two branches as two arguments, a longer one by as many calls."""
    if isinstance(choice, str):
        verb(naming(node, choice))
    elif isinstance(choice, dict) and "branches" not in choice:
        to, words = _words(node, choice, naming)
        verb(to, **words)
    elif isinstance(choice, dict):
        branches = []
        for one in choice["branches"]:
            to, words = _words(node, one, naming)
            last = words.pop("otherwise", False)
            branches.append(otherwise(to, **words) if last else branch(to, **words))
        verb(first_match(*branches))
    else:
        said = [_words(node, one, naming) for one in choice]
        if len(said) == 2:
            verb(*[branch(to, **words) for to, words in said])
        else:
            for to, words in said:
                verb(to, **words)


def _words(node: State, written: dict[str, Any], naming: Naming) -> tuple[Any, dict[str, Any]]:
    words = dict(written)
    to = words.pop("to", None)
    if isinstance(to, list):
        to = [naming(node, name) for name in to]
    elif to is not None:
        to = naming(node, to)
    if "when" in words:
        words["when"] = _condition(node, words["when"], naming)
    if "do" in words:
        words["do"] = _hooks(words["do"])
    return to, words


def _condition(node: State, written: Any, naming: Naming) -> Any:
    match written:
        case {"check": name}:
            return check(name)
        case {"in": state}:
            return in_(naming(node, state))
        case {"not": of}:
            return not_(_condition(node, of, naming))
        case {"all": parts}:
            return all_(*[_condition(node, part, naming) for part in parts])
        case {"any": parts}:
            return any_(*[_condition(node, part, naming) for part in parts])
        case _:
            return written


def _hooks(written: list[Any]) -> list[Any]:
    return [raise_(hook["raise"]) if isinstance(hook, dict) else hook for hook in written]


def _found(source: Node, name: str) -> Node:
    """Find a state by its name: a sibling of the source, or of what is around it, or inside it."""
    scopes: list[Any] = [one._scope for one in source._outwards()]
    for scope in [*scopes, source]:
        found = scope
        for part in name.split("."):
            found = found._children.get(part) if found is not None else None
        if found is not None:
            return found
    raise AssertionError(f"no state {name}")
