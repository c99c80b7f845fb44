"""The structure of SCXML as a machine document, as far as the cases of others need it here."""

import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as Tree

NAMESPACE = "{http://www.w3.org/2005/07/scxml}"
STATES = ("state", "parallel", "final", "history")
DOT = "\u00b7"  # event names have dots; ours have not


def event(name: str) -> str:
    """Give the name of an event in a machine document."""
    return name.replace(".", DOT)


class Document:
    """An SCXML document.

    Args:
        sent: names of the events that will be sent, which patterns are matched against.

    Attributes:
        machine: the machine document.
        ids: the SCXML id of each state, by our path.
    """

    def __init__(self, text: str, sent: Iterable[str]) -> None:
        root = Tree.fromstring(text)
        self._paths: dict[str, str] = {}
        self._name(root, "")
        written = [t.get("event") or "" for t in root.iter(f"{NAMESPACE}transition")]
        raised = [e.get("event") or "" for e in root.iter() if _tag(e) in ("raise", "send")]
        patterns = {_prefix(pattern) for listed in written for pattern in listed.split()}
        self._events = sorted({*sent, *raised, *patterns} - {""})
        self.ids = {path: id for id, path in self._paths.items()}
        self.machine = {"machine": "scxml", "conflicts": "first-region", **self._state(root)}

    def _name(self, element: Tree.Element, around: str) -> None:
        for child in _states(element):
            id = child.get("id") or f"unnamed{len(self._paths)}"
            child.set("id", id)
            name = id.replace(".", "_")
            self._paths[id] = f"{around}.{name}" if around else name
            self._name(child, self._paths[id])

    def _path(self, element: Tree.Element) -> str:
        return self._paths[element.get("id") or ""]

    def _targets(self, element: Tree.Element | None, key: str = "target") -> list[str]:
        named = element.get(key) if element is not None else None
        return [self._paths[id] for id in (named or "").split()]

    def _state(self, element: Tree.Element) -> dict[str, Any]:
        kind, inner = _tag(element), _states(element)
        state: dict[str, Any] = {}
        if inner:
            named = {self._path(child).rpartition(".")[2]: child for child in inner}
            state["states"] = {name: self._state(child) for name, child in named.items()}
        if inner and kind == "parallel":
            state["order"] = [*named]
        if kind in ("parallel", "history"):
            state["type"] = kind
        if kind == "history":
            state["history"] = element.get("type", "shallow")
            targets = self._targets(element.find(f"{NAMESPACE}transition"))
            return {**state, **({"to": targets} if targets else {})}
        if kind == "final":
            state["final"] = True
        if inner and kind != "parallel":
            first = element.find(f"{NAMESPACE}initial/{NAMESPACE}transition")
            begins = self._targets(first) or self._targets(element, "initial")
            state["initial"] = begins or [self._path(inner[0])]
        for child in element:
            if _tag(child) in ("onentry", "onexit"):
                key = "on_enter" if _tag(child) == "onentry" else "on_exit"
                state.setdefault(key, []).extend(_raised(child))
        self._add_transitions(element, state)
        done = f"done.state.{element.get('id')}"
        if done in self._events and kind == "state":
            for child in element.findall(f"{NAMESPACE}final"):
                final = state["states"][self._path(child).rpartition(".")[2]]
                final.setdefault("on_enter", []).append({"raise": event(done)})
        return state

    def _add_transitions(self, element: Tree.Element, state: dict[str, Any]) -> None:
        on: dict[str, list[Any]] = {}
        always = []
        for place, transition in enumerate(element.findall(f"{NAMESPACE}transition")):
            branch = self._branch(transition, place)
            if transition.get("event") is None:
                always.append(branch)
                continue
            prefixes = [_prefix(pattern) for pattern in transition.get("event", "").split()]
            for name in self._events:
                if any(p in ("", name) or name.startswith(f"{p}.") for p in prefixes):
                    on.setdefault(event(name), []).append(branch)
        if on:
            state["on"] = {name: _ordered(branches) for name, branches in on.items()}
        if always:
            state["always"] = _ordered(always)

    def _branch(self, transition: Tree.Element, place: int) -> dict[str, Any]:
        branch: dict[str, Any] = {"name": f"t{place}"}
        if targets := self._targets(transition):
            branch["to"] = targets
        if transition.get("type") == "internal":
            branch["internal"] = True
        if condition := transition.get("cond"):
            branch["when"] = self._when(condition.strip())
        if hooks := _raised(transition):
            branch["do"] = hooks
        return branch

    def _when(self, condition: str) -> Any:
        if "&&" in condition:
            return {"all": [self._when(part.strip()) for part in condition.split("&&")]}
        if condition.startswith("!"):
            return {"not": self._when(condition[1:].strip())}
        found = re.fullmatch(r"In\((['\"])(.*?)\1\)", condition)
        return {"in": self._paths[found[2]]} if found else condition


def _tag(element: Tree.Element) -> str:
    return element.tag.removeprefix(NAMESPACE)


def _states(element: Tree.Element) -> list[Tree.Element]:
    return [child for child in element if _tag(child) in STATES]


def _prefix(pattern: str) -> str:
    return re.sub(r"\.?\*$", "", pattern)


def _raised(element: Tree.Element) -> list[dict[str, str]]:
    sent = [child for child in element if _tag(child) in ("raise", "send")]
    return [{"raise": event(child.get("event") or "")} for child in sent]


def _ordered(branches: list[Any]) -> dict[str, Any]:
    return {"order": "first-match", "branches": branches}
