"""A workflow of Symfony's configuration, as a net of places and transitions.

Its parts may be written in several ways (lists or mappings, a name or many); all of them are read,
and what is none of them is refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.core.declaration import Path
from interlock.language.convert.markings import Move
from interlock.language.convert.result import Findings
from interlock.language.document import Document

#: What concerns Symfony alone: where the marking is kept, what is logged.
SILENT = frozenset({
    "marking_store", "supports", "support_strategy", "audit_trail", "events_to_dispatch", "enabled",
    "definition_validators",
})  # fmt: skip
KNOWN = frozenset({"type", "places", "transitions", "initial_marking", "initial_place", "metadata"})


@dataclass(slots=True)
class Net:
    """A workflow.

    Attributes:
        places: by name, its metadata and where it is written.
    """

    name: str
    where: Path
    kind: str = "workflow"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[Mapping[str, Any], Path]] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    initial: tuple[str, ...] = ()


def read_net(document: Document, name: str | None, findings: Findings) -> Net:
    """Find a workflow in a file and read it.

    Args:
        name: which one, where there are several.
    """
    return _Reader(document, findings).read(name)


class _Reader:
    def __init__(self, document: Document, findings: Findings) -> None:
        self._document = document
        self._findings = findings

    def read(self, name: str | None) -> Net:
        where = self._find(name)
        written = self._at(where)
        net = Net(str(where[-1]) if where else name or "workflow", where)
        for key in written:
            place = (*where, key)
            if key in SILENT:
                self._note("annotation-dropped", f"`{key}` concerns Symfony: it is left out", place)
            elif key not in KNOWN:
                self._refuse("unsupported", f"`{key}` of a workflow cannot be carried over", place)
        net.kind = written.get("type", "workflow")
        if net.kind not in ("workflow", "state_machine"):
            message = "the `type` is neither `workflow` nor `state_machine`"
            self._refuse("wrong-type", message, (*where, "type"))
        net.metadata = self._metadata(written, where, "the workflow")
        self._places(net, written.get("places"))
        self._moves(net, written.get("transitions"))
        self._initial(net, written)
        self._findings.check()
        return net

    def _find(self, name: str | None) -> Path:
        where: Path = ()
        for key in ("framework", "workflows", "workflows"):
            inner = self._at(where).get(key)
            if isinstance(inner, dict):
                where = (*where, key)
        found = self._at(where)
        if "transitions" in found:
            return where
        workflows = [key for key, inner in found.items() if isinstance(inner, dict)]
        workflows = [key for key in workflows if "transitions" in found[key]]
        if name in workflows or len(workflows) == 1:
            return (*where, name if name in workflows else workflows[0])
        if not workflows:
            self._refuse("not-symfony", "no workflow: nothing has `transitions`", where)
        else:
            told = ", ".join(f"`{one}`" for one in workflows)
            self._refuse("several-workflows", f"say which one is meant: {told}", where)
        self._findings.check()
        raise AssertionError("refused")

    def _at(self, where: Path) -> Mapping[str, Any]:
        value: Any = self._document.value
        for key in where:
            value = value[key]
        return value if isinstance(value, dict) else {}

    def _metadata(self, written: Mapping[str, Any], where: Path, of: str) -> Mapping[str, Any]:
        metadata = written.get("metadata") or {}
        place = (*where, "metadata")
        if not isinstance(metadata, dict):
            self._refuse("wrong-type", f"the metadata of {of} is no mapping", place)
            return {}
        for key, value in metadata.items():
            if key not in ("title", "description") or not isinstance(value, str):
                message = f"`{key}` in the metadata of {of} is left out"
                self._note("annotation-dropped", message, (*place, key))
        return {key: value for key, value in metadata.items() if isinstance(value, str) and value}

    # Places

    def _places(self, net: Net, written: Any) -> None:
        where = (*net.where, "places")
        for name, inner, place in self._entries(written, where, "places"):
            if name is None or name in net.places:
                self._refuse("wrong-type", "a place has no name of its own", place)
                continue
            for key in inner:
                if key not in ("name", "metadata"):
                    message = f"`{key}` of the place `{name}` cannot be carried over"
                    self._refuse("unsupported", message, (*place, key))
            net.places[name] = (self._metadata(inner, place, f"the place `{name}`"), place)

    def _entries(
        self, written: Any, where: Path, what: str
    ) -> list[tuple[str | None, Mapping[str, Any], Path]]:
        """List what stands in a list or a mapping: name, what is said of it, place."""
        if written is None or isinstance(written, str):
            return [(written, {}, where)] if written else []
        if isinstance(written, dict):
            listed: list[tuple[Any, Any, Path]] = [
                (name, inner, (*where, name)) for name, inner in written.items()
            ]
        elif isinstance(written, list):
            listed = [(None, inner, (*where, n)) for n, inner in enumerate(written)]
        else:
            self._refuse("wrong-type", f"`{what}` is neither a list nor a mapping", where)
            return []
        found: list[tuple[str | None, Mapping[str, Any], Path]] = []
        for name, inner, place in listed:
            if isinstance(inner, str) and name is None:
                name, inner = inner, {}
            if inner is not None and not isinstance(inner, dict):
                self._refuse("wrong-type", f"an entry of `{what}` is no mapping", place)
                continue
            inner = inner or {}
            own = inner.get("name", name)
            found.append((own if isinstance(own, str) and own else None, inner, place))
        return found

    # Transitions

    def _moves(self, net: Net, written: Any) -> None:
        where = (*net.where, "transitions")
        inferred = not net.places
        for name, inner, place in self._entries(written, where, "transitions"):
            if name is None:
                self._refuse("wrong-type", "a transition has no name", place)
                continue
            for key in inner:
                if key not in ("name", "from", "to", "guard", "metadata"):
                    message = f"`{key}` of the transition `{name}` cannot be carried over"
                    self._refuse("unsupported", message, (*place, key))
            ends = [self._ends(inner.get(key), (*place, key), name) for key in ("from", "to")]
            for end in (end for listed in ends for end in listed):
                if inferred:
                    net.places.setdefault(end, ({}, place))
                elif end not in net.places:
                    self._refuse("unknown-state", f"there is no place `{end}`", place)
            guard = inner.get("guard")
            if guard is not None and (not isinstance(guard, str) or not guard):
                self._refuse("wrong-type", f"the guard of `{name}` is no text", (*place, "guard"))
                guard = None
            told = self._metadata(inner, place, f"the transition `{name}`")
            if not all(ends):
                message = f"`{name}` does not say both `from` and `to`"
                self._refuse("missing-key", message, place)
                continue
            title = told.get("description") or told.get("title")
            self._add(net, Move(name, ends[0], ends[1], place, guard, title))

    def _ends(self, written: Any, where: Path, name: str) -> tuple[str, ...]:
        found = []
        for end in written if isinstance(written, list) else [written]:
            if (
                isinstance(end, dict)
                and end.get("weight", 1) == 1
                and set(end) <= {"place", "weight"}
            ):
                end = end.get("place")
            if isinstance(end, str) and end:
                found.append(end)
            elif end is not None:
                message = f"`{name}` moves more than one token, or to what is no place"
                self._refuse("unsupported", message, where)
        return tuple(found)

    def _add(self, net: Net, move: Move) -> None:
        if net.kind != "state_machine":
            net.moves.append(move)
            return
        if len(move.to) > 1:
            message = f"`{move.name}` of a state machine leads to several places"
            self._refuse("wrong-type", message, move.where)
        net.moves += [move._replace(source=(one,)) for one in dict.fromkeys(move.source)]

    def _initial(self, net: Net, written: Mapping[str, Any]) -> None:
        key = "initial_marking" if "initial_marking" in written else "initial_place"
        given = written.get(key)
        names = given if isinstance(given, list) else [] if given is None else [given]
        for name in names:
            if not isinstance(name, str) or name not in net.places:
                message = f"the workflow begins at `{name}`, which is no place"
                self._refuse("unknown-state", message, (*net.where, key))
        net.initial = tuple(name for name in names if isinstance(name, str))
        if not net.initial:
            net.initial = tuple(net.places)[:1]
        if not net.places:
            self._refuse("missing-key", "the workflow has no places", net.where)

    def _refuse(self, code: str, message: str, where: Path) -> None:
        self._findings.refuse(code, message, self._document.mark(where))

    def _note(self, code: str, message: str, where: Path) -> None:
        self._findings.note(code, message, self._document.mark(where))
