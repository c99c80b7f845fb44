"""The schema of machine documents, and what it says in words.

`machine.schema.json` is the one source of what a document may hold: editors read it, and it is what
documents are checked against. What a schema cannot say (names that look alike, durations, guards
that are expressions) is checked here beside it. Every fault is found in one run.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from interlock.core.declaration import Path, path_text
from interlock.core.text import clipped, nearest
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import Document
from interlock.language.duration import DurationError, parse_duration

#: What authors used to other tools write, and the word that is meant here.
NEIGHBOURS = {
    "target": "to",
    "dest": "to",
    "cond": "when",
    "condition": "when",
    "if": "when",
    "guards": "guard",
    "entry": "on_enter",
    "onentry": "on_enter",
    "enter": "on_enter",
    "exit": "on_exit",
    "onexit": "on_exit",
    "leave": "on_exit",
    "actions": "do",
    "action": "do",
    "assign": "set",
    "onDone": "on_done",
    "else": "otherwise",
    "default": "otherwise",
    "transitions": "on",
    "events": "on",
    "context": "data",
    "id": "machine",
    "name": "machine",
    "terminal": "final",
    "delay": "after",
    "timeout": "after",
}
RESERVED = frozenset({"always", "after", "done", "history", "superseded"})
_EXPRESSION = re.compile(
    r"[<>=!]=|[<>]|&&|\|\||\b(data|event|actor|now|instance)\s*\.|\bhas\(|^!|\bin\s*\["
)


@cache
def _text() -> str:
    return (FilePath(__file__).parent / "machine.schema.json").read_text(encoding="utf-8")


@cache
def _parsed() -> dict[str, Any]:
    return machine_schema()


@cache
def _validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(_parsed())


def machine_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a machine document, as a fresh copy."""
    schema: dict[str, Any] = json.loads(_text())
    return schema


def check_schema(document: Document) -> list[Diagnostic]:
    """List what keeps a document from being one of a machine, as far as its shape goes."""
    found = [
        fault
        for error in _validator().iter_errors(document.value)
        for fault in _faults(document, error)
    ]
    value = document.value
    if isinstance(value, dict):
        found += _walk(document, value, ())
    return [*dict.fromkeys(found)]


def _faults(document: Document, error: Any) -> Iterator[Diagnostic]:
    """Say in words what a fault of the schema is; of alternatives, the one that was meant."""
    kind, path = error.kind, tuple(error.instance_path)
    match type(kind).__name__.rpartition("_")[2]:
        case "AnyOf":
            meant = _meant(kind.context, path)
            if meant is None:
                yield _wrong_type(document, error, path)
                return
            for inner in meant:
                yield from _faults(document, inner)
        case "AdditionalProperties":
            known = _properties_at(error)
            for name in kind.unexpected:
                yield _unknown_key(document, name, known, (*path, name))
        case "Required":
            what = f"`{path_text(path)}` has no `{kind.property}`" if path else None
            what = what or f"the document has no `{kind.property}`"
            code = "initial-missing" if kind.property == "initial" else "missing-key"
            yield document.diagnostic(code, what, path)
        case "PropertyNames":
            name = kind.error.instance
            hint = "use a letter or `_` first, then letters, digits and `_`"
            described = _description(kind.error)
            if "expressions" not in described:
                hint = "leave out . / { | } and blanks at the ends"
            what = f"`{clipped(str(name))}` cannot be a name here"
            yield document.diagnostic("bad-name", what, (*path, name), hint=hint, key=True)
        case "Pattern":
            what = f"`{clipped(str(error.instance))}` cannot be a name here"
            yield document.diagnostic("bad-name", what, path)
        case _:
            yield _wrong_type(document, error, path)


def _meant(alternatives: Any, path: Path) -> Any:
    """Find the alternative that a value was meant to be, if any has its type."""
    best, best_score = None, (0, 0)
    for errors in alternatives:
        own = [error for error in errors if tuple(error.instance_path) == path]
        if any(type(e.kind).__name__.rpartition("_")[2] in ("Type", "Constant") for e in own):
            continue
        score = (-len(own), -len(errors))
        if best is None or score > best_score:
            best, best_score = errors, score
    return best


def _schema_at(error: Any) -> Mapping[str, Any]:
    """Give the part of the schema that an error is about, without its last keyword."""
    part: Any = _parsed()
    for key in list(error.schema_path)[:-1]:
        part = part[key] if isinstance(part, list) else part.get(key, {})
        if isinstance(part, dict) and "$ref" in part:
            part = _parsed()["$defs"][part["$ref"].rpartition("/")[2]]
    return part if isinstance(part, dict) else {}


def _properties_at(error: Any) -> list[str]:
    return [*_schema_at(error).get("properties", {})]


def _description(error: Any) -> str:
    return str(_schema_at(error).get("description", ""))


def _wrong_type(document: Document, error: Any, path: Path) -> Diagnostic:
    name = path_text(path) if path else "the document"
    told = _told(error.instance)
    described = _description(error)
    hint = described[:1].lower() + described[1:].rstrip(".") if described else None
    what = f"`{name}` cannot be {told}" if path else f"{name} cannot be {told}"
    return document.diagnostic("wrong-type", what, path, hint=hint)


def _told(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {clipped(str(value))}"
        case str():
            return f"the text `{clipped(value)}`" if value else "an empty text"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "a mapping" if value else "an empty mapping"


def _unknown_key(document: Document, name: str, known: list[str], path: Path) -> Diagnostic:
    meant = NEIGHBOURS.get(name)
    if meant not in known:
        meant = nearest(name, known)
    hint = f"did you mean `{meant}`?" if meant else None
    return document.diagnostic(
        "unknown-key", f"unknown key `{clipped(name)}`", path, hint=hint, key=True
    )


def _walk(document: Document, value: Mapping[str, Any], path: Path) -> Iterator[Diagnostic]:
    """Check a state, or the machine itself, for what the schema cannot say."""
    states = value.get("states")
    if isinstance(states, dict):
        yield from _names(document, states, (*path, "states"), "states")
        if path and value.get("type") is None and value.get("initial") is None:
            what = f"`{path_text(path)}` has states and does not say in which it begins"
            hint = f"add `initial: {next(iter(states))}`" if states else None
            yield document.diagnostic("initial-missing", what, path, hint=hint, key=True)
        for name, state in states.items():
            if isinstance(state, dict):
                yield from _walk(document, state, (*path, "states", name))
    if value.get("type") == "parallel" and not states:
        what = f"`{path_text(path)}` is parallel and has no regions"
        yield document.diagnostic("missing-key", what, path, key=True)
    for word in ("on", "events"):
        events = value.get(word)
        if isinstance(events, dict) and (word == "on") == bool(path):
            yield from _names(document, events, (*path, word), "events")
            for event in events.keys() & RESERVED:
                what = f"`{event}` is a reserved action"
                yield document.diagnostic("bad-name", what, (*path, word, event), key=True)
    for word in ("on", "after"):
        choices = value.get(word)
        for name, choice in choices.items() if isinstance(choices, dict) and path else ():
            yield from _choice(document, choice, (*path, word, name))
            if word == "after" and not (isinstance(choice, dict) and "at" in choice):
                yield from _duration(document, name, (*path, word, name))
    for word in ("always", "on_done"):
        if word in value and path:
            yield from _choice(document, value[word], (*path, word))


def _duration(document: Document, text: str, path: Path) -> Iterator[Diagnostic]:
    try:
        parse_duration(text)
    except DurationError as fault:
        what = f"`{clipped(text)}` {fault}"
        yield document.diagnostic("bad-duration", what, path, key=True)


def _choice(document: Document, choice: Any, path: Path) -> Iterator[Diagnostic]:
    ordered = isinstance(choice, dict) and "branches" in choice
    if ordered:
        choice, path = choice["branches"], (*path, "branches")
    listed = choice if isinstance(choice, list) else [choice]
    for place, branch in enumerate(listed):
        if not isinstance(branch, dict):
            continue
        where = (*path, place) if isinstance(choice, list) else path
        guard = branch.get("guard")
        if isinstance(guard, str) and _EXPRESSION.search(guard):
            what = f"the guard `{clipped(guard)}` is an expression; a guard is a label"
            hint = "did you mean `when`?"
            yield document.diagnostic("guard-is-expression", what, (*where, "guard"), hint=hint)
        if "otherwise" in branch and not (ordered and place == len(listed) - 1):
            what = "`otherwise` is for the last branch of `order: first-match`"
            yield document.diagnostic("wrong-type", what, (*where, "otherwise"), key=True)
        if "otherwise" in branch and "when" in branch:
            what = "a branch is taken `otherwise` or `when` something is true, not both"
            yield document.diagnostic("wrong-type", what, (*where, "otherwise"), key=True)


def _names(
    document: Document, names: Mapping[str, Any], path: Path, what: str
) -> Iterator[Diagnostic]:
    """Find names with outer blanks, and names that look alike."""
    alike: dict[str, str] = {}
    for name in names:
        if name != name.strip() or not name.strip():
            told = f"`{clipped(name)}` begins or ends with a blank"
            yield document.diagnostic("bad-name", told, (*path, name), key=True)
        shape = unicodedata.normalize("NFC", name).strip()
        other = alike.setdefault(shape, name)
        if other != name:
            told = f"the {what} {other!r} and {name!r} look alike"
            yield document.diagnostic("name-clash", told, (*path, name), key=True)
