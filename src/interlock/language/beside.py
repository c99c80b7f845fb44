"""What the schema of machine documents cannot say.

Names are names, and no two look alike anywhere in the document; durations have a length; a guard is
a label; `otherwise` comes last; a gate has a guard. Whatever is read here is of its type already.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.core.declaration import Path
from interlock.core.text import LIMITS, quoted, text_fault
from interlock.language.diagnostic import Diagnostic, Severity
from interlock.language.document import Document
from interlock.language.duration import DurationError, is_like_duration, parse_duration
from interlock.language.labels import looks_like_expression
from interlock.language.names import (
    NameFault,
    event_fault,
    field_fault,
    label_fault,
    looks,
    name_fault,
    nearest_hint,
    spelled,
    state_fault,
)
from interlock.language.shape import as_written

_HELD = LIMITS.name_bytes


def check_beside(document: Document, sound: Mapping[str, Any]) -> list[Diagnostic]:
    """Check what is sound of a document for what its schema cannot say."""
    checks = _Checks(document, sound)
    checks.machine(sound)
    return checks.found


class Checks:
    """Gathers what a schema cannot say of a document; names that look alike are told of once."""

    def __init__(self, document: Document) -> None:
        self.found: list[Diagnostic] = []
        self._document = document
        self._seen: dict[tuple[str, str], dict[str, Path]] = {}

    def _identity(self, kind: str) -> None:
        """Check the name of what the document is, and its version, as they are written."""
        written = self._document.value
        for key in (kind, "version"):
            told = written.get(key)
            if isinstance(told, int) and key == "version":
                told = str(told)
            if isinstance(told, str) and told.strip() and (why := text_fault(told, _HELD)):
                self._report("bad-name", f"`{key}` {why}", (key,), None)
        version = written.get("version")
        if isinstance(version, float) and version.is_integer():  # to a schema, a whole number
            number = as_written(self._document, ("version",))
            what = f"`version` cannot be the number {number}"
            self._report("wrong-type", what, ("version",), f'write it as text, `"{number}"`')

    def _fields(self, names: Any, where: Path) -> None:
        """Check names that expressions use, in a list or as keys."""
        is_map = isinstance(names, dict)
        for place, name in enumerate(names):
            if fault := field_fault(name):
                at = (*where, name if is_map else place)
                what = f"{quoted(name)} {fault.what}"
                self._report("bad-name", what, at, fault.hint, is_key=is_map)

    def _named(
        self, kind: str, name: str, where: Path, fault: NameFault | None, *, is_key: bool = False
    ) -> None:
        """Note a name: report what is wrong with it, and that it looks like another."""
        if fault is not None:
            told = quoted(name) if name == name.strip() else _spelled(name)
            what = f"the {kind} {told} {fault.what}"
            self._report("bad-name", what, where, fault.hint, is_key=is_key)
        spellings = self._seen.setdefault((kind, looks(name)), {})
        if name in spellings:
            return
        if spellings:
            other, at = next(iter(spellings.items()))
            line = self._document.mark(at, key=True).line
            what = f"the {kind} {_spelled(name)} looks like {_spelled(other)} on line {line}"
            hint = "write both alike, or call one otherwise"
            self._report("name-clash", what, where, hint, is_key=is_key)
        spellings[name] = where

    def _report(
        self,
        code: str,
        message: str,
        path: Path,
        hint: str | None,
        *,
        is_key: bool = False,
        severity: Severity = "error",
    ) -> None:
        found = self._document.diagnostic(
            code, message, path, hint=hint, key=is_key, severity=severity
        )
        self.found.append(found)


class _Checks(Checks):
    def __init__(self, document: Document, sound: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._paths = dict(_paths(sound.get("states") or {}, "", ()))
        self._labels: set[str] = set()

    def machine(self, sound: Mapping[str, Any]) -> None:
        self._identity("machine")
        self._fields(sound.get("data") or {}, ("data",))
        for event, payload in (sound.get("events") or {}).items():
            self._event(event, ("events", event))
            self._fields(payload, ("events", event))
        self._states(sound.get("states") or {}, ())
        for label in sound.get("gates") or {}:
            where = ("gates", label)
            self._named("guard", label, where, label_fault(label), is_key=True)
            if label not in self._labels:
                what = f"no transition has the guard {quoted(label)}"
                hint = nearest_hint(label, self._labels) or "a gate stands for a guard's label"
                self._report("unused-gate", what, where, hint, is_key=True, severity="warning")

    def _states(self, states: Mapping[str, Any], where: Path) -> None:
        for name, state in states.items():
            at = (*where, "states", name)
            path = _dotted(at)
            fault = state_fault(name, at_top=not where) or self._too_long(path, _dotted(where))
            other = self._paths.get(name)
            if "." in name and other is not None and other != at:
                line = self._document.mark(other, key=True).line
                told = f"is also the path of the state on line {line}"
                fault = NameFault(f"has a `.`, and {told}", "call it otherwise")
            self._named("state", name, at, fault, is_key=True)
            if state:
                self._state(state, at)

    def _too_long(self, path: str, around: str) -> NameFault | None:
        """Say that a state's whole path is too long, unless that of the state around it is."""
        why = text_fault(path, _HELD)
        if why is None or text_fault(around or "x", _HELD):
            return None
        return NameFault(f"cannot be held: its path {why}")

    def _state(self, state: Mapping[str, Any], where: Path) -> None:
        kind = state.get("type")
        if kind == "history" and len(where) == 2:
            what = f"{quoted(where[-1])} can remember nothing: the machine itself is never left"
            hint = "put it into the state that is left and comes back"
            self._report("wrong-type", what, (*where, "type"), hint)
        if kind == "parallel":
            self._order(state, where)
        if len(where) == 2 and state.get("final") and "on_exit" in state:
            what = f"`on_exit` has no meaning in {quoted(where[-1])}: what has ended is never left"
            self._report("unknown-key", what, (*where, "on_exit"), None, is_key=True)
        self._fields(state.get("data") or (), (*where, "data"))
        for event, choice in (state.get("on") or {}).items():
            self._event(event, (*where, "on", event))
            self._choice(choice, (*where, "on", event))
        for name, choice in (state.get("after") or {}).items():
            self._timer(name, choice, (*where, "after", name))
            self._choice(choice, (*where, "after", name))
        for key in ("always", "on_done"):
            if key in state:
                self._choice(state[key], (*where, key))
        for key in ("on_enter", "on_exit"):
            self._hooks(state.get(key), (*where, key))
        self._states(state.get("states") or {}, where)

    def _order(self, state: Mapping[str, Any], where: Path) -> None:
        regions = state.get("states") or {}
        for place, name in enumerate(state.get("order") or ()):
            if name not in regions:
                hint = nearest_hint(name, regions)
                what = f"there is no region {quoted(name)}"
                self._report("unknown-state", what, (*where, "order", place), hint)

    def _timer(self, name: str, choice: Any, where: Path) -> None:
        if isinstance(choice, dict) and "at" in choice:
            fault = name_fault(name)
            if is_like_duration(name):
                fault = NameFault("is a duration, and `at` says when", "call it otherwise: `due`")
            self._named("timer", name, where, fault, is_key=True)
            return
        if not is_like_duration(name) and choice != self._written(where):
            return  # `at` may be what was refused
        try:
            parse_duration(name)
        except DurationError as fault:
            hint = None if is_like_duration(name) else "for a moment: `{at: …, to: …}`"
            what = f"{quoted(name)} {fault}"
            self._report("bad-duration", what, where, hint, is_key=True)

    def _written(self, where: Path) -> Any:
        """Give what the document has at a place, sound or not."""
        value = self._document.value
        for key in where:
            value = value[key]
        return value

    def _choice(self, choice: Any, where: Path) -> None:
        ordered = isinstance(choice, dict) and "branches" in choice
        if ordered:
            choice, where = choice["branches"], (*where, "branches")
        listed = choice if isinstance(choice, list) else [choice]
        for place, branch in enumerate(listed):
            if isinstance(branch, dict):
                at = (*where, place) if isinstance(choice, list) else where
                self._branch(branch, at, may_be_otherwise=ordered and place == len(listed) - 1)

    def _branch(self, branch: Mapping[str, Any], where: Path, *, may_be_otherwise: bool) -> None:
        if "name" in branch:
            self._named("branch", branch["name"], (*where, "name"), name_fault(branch["name"]))
        if "guard" in branch:
            self._guard(branch["guard"], (*where, "guard"))
        self._hooks(branch.get("do"), (*where, "do"))
        self._fields(branch.get("set") or {}, (*where, "set"))
        if "otherwise" not in branch:
            return
        if not may_be_otherwise:
            what = "`otherwise` is for the last branch of `order: first-match`"
            self._report("wrong-type", what, (*where, "otherwise"), None, is_key=True)
        if "when" in branch:
            what = "a branch is taken `otherwise` or `when` something is true, not both"
            self._report("wrong-type", what, (*where, "otherwise"), None, is_key=True)

    def _guard(self, label: str, where: Path) -> None:
        self._labels.add(label)
        self._named("guard", label, where, label_fault(label))
        if looks_like_expression(label):
            what = f"the guard {quoted(label)} is an expression; a guard is a label"
            self._report("guard-is-expression", what, where, "did you mean `when`?")

    def _hooks(self, hooks: Any, where: Path) -> None:
        for place, hook in enumerate(hooks if isinstance(hooks, list) else [hooks]):
            if isinstance(hook, dict) and "raise" in hook:
                at = (*where, place) if isinstance(hooks, list) else where
                event = hook["raise"]
                self._named("event", event, (*at, "raise"), event_fault(event))

    def _event(self, name: str, where: Path) -> None:
        self._named("event", name, where, event_fault(name), is_key=True)


def _spelled(name: str) -> str:
    return f"`{spelled(name)}`"


def _dotted(where: Path) -> str:
    """Give the path of a state by its place in the document."""
    return ".".join(str(name) for name in where[1::2])


def _paths(states: Mapping[str, Any], around: str, where: Path) -> Iterator[tuple[str, Path]]:
    """Give the path and the place of each state."""
    for name, state in states.items():
        path, at = f"{around}{name}", (*where, "states", name)
        if "." not in name:
            yield path, at
        if state:
            yield from _paths(state.get("states") or {}, f"{path}.", at)
