"""The JSON of an XState machine as a tree of states, and what its targets name.

Whatever is not of the shape that XState gives it is refused by name, and read as if it were absent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from interlock.core.declaration import Path
from interlock.language.convert.result import Findings
from interlock.language.document import Document

STATE_KEYS = frozenset({
    "id", "key", "initial", "states", "type", "on", "always", "after", "entry", "exit", "onEntry",
    "onExit", "invoke", "onDone", "history", "target", "description", "tags", "meta", "context",
    "version", "order", "$schema",
})  # fmt: skip
# What only tells tools how to check types or to draw.
SILENT_KEYS = frozenset({
    "schema", "schemas", "types", "tsTypes", "predictableActionArguments", "preserveActionOrder",
    "strict", "delimiter",
})  # fmt: skip
TRANSITION_KEYS = frozenset({
    "target", "actions", "guard", "cond", "internal", "reenter", "description", "meta", "event",
})  # fmt: skip
INVOKE_KEYS = frozenset({
    "id", "src", "input", "data", "onDone", "onError", "type", "description", "meta",
})  # fmt: skip
PARTS_MAX = 100  # of a path of keys, each of which may hold dots itself
TOLD_BY_XSTATE = ("xstate.", "done.state.")


class Trigger(NamedTuple):
    """What transitions wait for: `on`, `always`, `after`, `done` or `invoke`, and its name."""

    kind: str
    name: str = ""


@dataclass(slots=True, eq=False)
class Node:
    """A state, or the machine itself."""

    key: str
    parent: "Node | None"
    config: Mapping[str, Any]
    where: Path
    children: "dict[str, Node]" = field(default_factory=dict)
    triggers: "dict[Trigger, list[Raw]]" = field(default_factory=dict)
    invokes: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        given = self.config.get("type")
        if given in ("parallel", "final", "history"):
            return str(given)
        return "history" if self.config.get("history") else "state"

    @property
    def regions(self) -> "list[Node]":
        return [child for child in self.children.values() if child.kind != "history"]

    def around(self) -> "Iterator[Node]":
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def is_in(self, other: "Node") -> bool:
        return any(above is other for above in self.around())

    def all(self) -> "Iterator[Node]":
        yield self
        for child in self.children.values():
            yield from child.all()

    @property
    def keys(self) -> list[str]:
        return [*(self.parent.keys if self.parent else []), self.key]

    def down(self, text: str) -> "Node | None":
        """Follow a path of keys; a key may hold dots, so the longest one that is there counts."""
        parts = text.split(".", maxsplit=PARTS_MAX)
        for cut in range(len(parts), 0, -1):
            child = self.children.get(".".join(parts[:cut]))
            if child is not None:
                rest = ".".join(parts[cut:])
                if (found := child.down(rest) if rest else child) is not None:
                    return found
        return None


class Raw(NamedTuple):
    """A transition as it is written, and where."""

    config: Mapping[str, Any]
    where: Path
    source: Node


class Tree:
    """The states of a machine.

    Attributes:
        nodes: the machine itself, then all states, parents first.
    """

    def __init__(self, document: Document, name: str | None, findings: Findings) -> None:
        self._document = document
        self._findings = findings
        value = document.value
        if not isinstance(value, dict) or not isinstance(value.get("states"), dict):
            findings.refuse("not-xstate", "no object with `states`", document.mark(()))
            findings.check()
        self.root = self._node(str(value.get("id") or name or "machine"), None, value, ())
        self.nodes = list(self.root.all())
        self._ids = {".".join(node.keys): node for node in self.nodes}
        for node in self.nodes:
            if isinstance(given := node.config.get("id"), str):
                self._ids[given] = node

    def refuse(self, code: str, message: str, where: Path) -> None:
        self._findings.refuse(code, message, self._document.mark(where))

    def note(self, code: str, message: str, where: Path) -> None:
        self._findings.note(code, message, self._document.mark(where))

    # Reading

    def _node(self, key: str, parent: Node | None, config: object, where: Path) -> Node:
        made = Node(key, parent, self._object(config, f"the state `{key}`", where), where)
        self.known(made.config, STATE_KEYS | SILENT_KEYS, f"the state `{key}`", where)
        inside = (*where, "states")
        states = self._object(made.config.get("states"), f"`states` of `{key}`", inside)
        for child, inner in states.items():
            made.children[child] = self._node(child, made, inner, (*inside, child))
        if made.kind == "final" and made.children:
            self.refuse("final-with-states", f"the final state `{key}` holds states", where)
        self._add_triggers(made)
        return made

    def _object(self, value: object, subject: str, where: Path) -> Mapping[str, Any]:
        if value is not None and not isinstance(value, dict):
            self.refuse("wrong-type", f"{subject} is no object", where)
        return value if isinstance(value, dict) else {}

    def known(
        self, config: Mapping[str, Any], keys: frozenset[str], subject: str, where: Path
    ) -> None:
        """Refuse keys that have no meaning here, and note those that are left out."""
        for key in config:
            if key not in keys:
                message = f"`{key}` of {subject} cannot be carried over"
                self.refuse("unsupported", message, (*where, key))
        for key in ("meta", "tags"):
            if config.get(key):
                self.note("annotation-dropped", f"`{key}` of {subject} is left out", (*where, key))

    def _add_triggers(self, node: Node) -> None:
        config, where = node.config, node.where
        on = config.get("on")
        if isinstance(on, list):  # version 4 takes a list of transitions with their events
            for place, entry in enumerate(on):
                event = entry.get("event") if isinstance(entry, dict) else None
                if isinstance(event, str):
                    self._add(node, Trigger("on", event), entry, (*where, "on", place))
                else:
                    message = "a transition in a list names no event"
                    self.refuse("wrong-type", message, (*where, "on", place))
        else:
            for event, given in self._object(on, f"`on` of `{node.key}`", (*where, "on")).items():
                trigger = Trigger("on", event) if event else Trigger("always")
                self._add(node, trigger, given, (*where, "on", event))
        after = self._object(config.get("after"), f"`after` of `{node.key}`", (*where, "after"))
        for delay, given in after.items():
            self._add(node, Trigger("after", delay), given, (*where, "after", delay))
        for key, kind in (("always", "always"), ("onDone", "done")):
            if key in config:
                self._add(node, Trigger(kind), config[key], (*where, key))
        self._add_invokes(node)

    def _add_invokes(self, node: Node) -> None:
        given = node.config.get("invoke")
        place = (*node.where, "invoke")
        for index, entry in enumerate(_listed(given)):
            invoke = self._object(entry, "what is invoked", place)
            node.invokes.append(invoke)
            for key, prefix in (("onDone", "done.invoke."), ("onError", "error.platform.")):
                if key in invoke:
                    trigger = Trigger("invoke", prefix + invoke_id(node, index))
                    self._add(node, trigger, invoke[key], place)

    def _add(self, node: Node, trigger: Trigger, given: object, where: Path) -> None:
        if trigger.kind == "on" and trigger.name.startswith(TOLD_BY_XSTATE):
            message = f"`{trigger.name}` is told by XState itself: write `onDone` or `after`"
            self.refuse("platform-event", message, where)
        found = node.triggers.setdefault(trigger, [])
        for place, entry in enumerate(_listed(given)):
            at = (*where, place) if isinstance(given, list) else where
            if isinstance(entry, str):
                entry = {"target": entry}
            config = self._object(entry, "a transition", at)
            self.known(config, TRANSITION_KEYS, "a transition", at)
            found.append(Raw(config, at, node))
        if given is None:
            found.append(Raw({}, where, node))

    # Targets

    def targets(self, raw: Raw) -> list[Node]:
        """List the states that a transition names; one that is not there is refused."""
        texts = _listed(raw.config.get("target"))
        found = [self.target(text, raw.source, raw.where) for text in texts]
        return [node for node in found if node is not None]

    def target(self, text: object, source: Node, where: Path) -> Node | None:
        if not isinstance(text, str):
            self.refuse("wrong-type", "a target is no text", where)
            return None
        if text.startswith("#"):
            found = self.by_id(text[1:])
        elif text.startswith("."):
            found = source.down(text[1:])
        else:
            found = (source.parent or source).down(text)
        if found is None:
            self.refuse("unknown-state", f"there is no state `{text}`", where)
        return found

    def by_id(self, text: str) -> Node | None:
        """Find `id.child.grandchild`, where an id may hold dots too: the longest one counts."""
        parts = text.split(".", maxsplit=PARTS_MAX)
        for cut in range(len(parts), 0, -1):
            if node := self._ids.get(".".join(parts[:cut])):
                return node.down(".".join(parts[cut:])) if cut < len(parts) else node
        return None

    def counts(self) -> dict[str, int]:
        """Count the transitions and the events."""
        by_trigger = [
            (trigger, node, raws) for node in self.nodes for trigger, raws in node.triggers.items()
        ]
        raws = [raw for _, _, found in by_trigger for raw in found]
        events = {
            trigger.name if trigger.kind == "on" else (trigger, node)
            for trigger, node, _ in by_trigger
            if trigger.kind != "always"
        }
        automatic = [found for trigger, _, found in by_trigger if trigger.kind == "always"]
        return {
            "transitions": len(raws),
            "guarded": sum("guard" in raw.config or "cond" in raw.config for raw in raws),
            "eventless": sum(map(len, automatic)),
            "events": len(events),
        }

    def version(self) -> int:
        """Tell the version of XState by words that only one of them has."""
        words: set[str] = set()
        for node in self.nodes:
            words.update(node.config)
            for raws in node.triggers.values():
                words.update(key for raw in raws for key in raw.config)
        return 4 if words & {"cond", "internal", "onEntry", "onExit"} else 5


def invoke_id(node: Node, index: int) -> str:
    """Give the id of what a state invokes: its own, or the one that XState makes."""
    given = node.invokes[index].get("id")
    if isinstance(given, str) and given:
        return given
    return ".".join(node.keys) + (f"_{index + 1}" if index else "")


def _listed(given: object) -> list[Any]:
    return given if isinstance(given, list) else [] if given is None else [given]
