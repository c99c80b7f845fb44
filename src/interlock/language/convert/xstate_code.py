"""The guards and actions of an XState machine: names of code that is not in the file.

A named action is a hook, a named guard a `check`: both must be registered. A guard that stood in
line has no name that anybody gave, so it is data of its own, true or false.
"""

from collections.abc import Callable, Mapping
from typing import Any

from interlock.core.declaration import Path
from interlock.language.convert.declared import Untyped, declared
from interlock.language.convert.naming import Names, identifier
from interlock.language.convert.opaque import Opaque
from interlock.language.convert.result import Definition
from interlock.language.convert.xstate_tree import Tree
from interlock.language.source import Mark

LOGICAL = {"and": "all", "xstate.and": "all", "or": "any", "xstate.or": "any"}
NOT = ("not", "xstate.not")
INLINE = "inline:"  # what an exporter puts before the name that it makes


class Code:
    """Gives guards and actions as our language says them."""

    def __init__(self, tree: Tree, opaque: Opaque, fields: Names) -> None:
        self._tree = tree
        self._opaque = opaque
        self._fields = fields

    def guard(self, guard: object, where: Path, mark: Mark) -> Any:
        match guard:
            case str() if guard.startswith(INLINE):
                return self._data(guard, "the code is not in the file", mark)
            case str() if guard:
                return {"check": guard}
            case {"type": str(kind), **rest} if kind in LOGICAL or kind in NOT:
                return self._logical(kind, rest.get("guards"), where, mark)
            case {"type": str(kind), **rest} if kind and not kind.startswith("xstate."):
                if any(rest[key] for key in rest if key not in ("name", "predicate")):
                    message = f"the guard `{kind}` takes parameters"
                    self._tree.refuse("guard-params", message, where)
                return self.guard(kind, where, mark)
            case _:
                self._tree.refuse("guard", "a guard that has no name", where)
                return {"all": []}

    def _logical(self, kind: str, guards: object, where: Path, mark: Mark) -> Any:
        listed = guards if isinstance(guards, list) else []
        parts = [self.guard(part, where, mark) for part in listed]
        if not parts or (kind in NOT and len(parts) > 1):
            self._tree.refuse("guard", f"a guard `{kind}` without its parts", where)
            return {"all": []}
        return {"not": parts[0]} if kind in NOT else {LOGICAL[kind]: parts}

    def _data(self, guard: str, why: str, mark: Mark) -> str:
        return f"data.{self._opaque.field(guard, why, mark, self._fields)}"

    def actions(self, given: object, where: Path, event: Callable[[str, Path], str]) -> list[Any]:
        """Give the hooks of actions.

        Args:
            event: gives the name of an event that is raised.
        """
        hooks: list[Any] = []
        for action in given if isinstance(given, list) else [] if given is None else [given]:
            match action:
                case str() if action and not action.startswith("xstate."):
                    hooks.append(self._hook(action, where))
                case {"type": "xstate.log"} | "xstate.log":
                    message = "what is written to a log is left out"
                    self._tree.note("log-dropped", message, where)
                case {"type": "xstate.raise", **rest}:
                    if (raised := self._raised(rest, where)) is not None:
                        hooks.append({"raise": event(raised, where)})
                case {"type": str(kind), **rest} if kind and not kind.startswith("xstate."):
                    if any(rest.values()):
                        message = f"the action `{kind}` takes parameters"
                        self._tree.refuse("action-params", message, where)
                    hooks.append(self._hook(kind, where))
                case {"type": str(kind)} | str(kind):
                    message = f"the action `{kind}` of XState cannot be carried over"
                    self._tree.refuse("unsupported", message, where)
                case _:
                    self._tree.refuse("wrong-type", "an action that has no name", where)
        return hooks

    def _hook(self, name: str, where: Path) -> str:
        if name.startswith(INLINE):
            message = f"the code of `{name}` is not in the file: register it under this name"
            self._tree.note("inline-code", message, where)
        return name

    def _raised(self, action: Mapping[Any, Any], where: Path) -> str | None:
        params = action.get("params")
        inner = params.get("event") if isinstance(params, dict) else None
        event = action.get("event", inner)
        kind = event.get("type") if isinstance(event, dict) else event
        if not isinstance(kind, str) or not kind or action.get("delay") or action.get("id"):
            message = "`raise` with more than the name of an event"
            self._tree.refuse("raise", message, where)
        elif isinstance(event, dict) and len(event) > 1:
            self._tree.refuse("raise", "`raise` with data", where)
        else:
            return kind
        return None


def context(tree: Tree, fields: Names) -> Definition:
    """Declare the data of a machine, each field with the value that it begins with."""
    given = tree.root.config.get("context")
    if given is None:
        return {}
    if not isinstance(given, dict):  # a name that the exporter gave to code
        message = "the context is computed by code that is not in the file: it is left out"
        tree.note("inline-code", message, ("context",))
        return {}
    made: Definition = {}
    for key, value in given.items():
        where = ("context", key)
        try:
            field = declared(value)
        except Untyped as fault:
            message = f"`{key}` of the context is left out: {fault}"
            tree.note("data-untyped", message, where)
            continue
        if field["type"] == "integer":  # every number of JavaScript is a double
            field["type"] = "number"
        name = fields.give(identifier(key), "x")
        made[name] = field
        if name != key:
            message = f"`{key}` of the context is called `{name}` here"
            tree.note("renamed", message, where)
    return made
