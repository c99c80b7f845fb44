"""A definition file as a value in which every part still knows its place.

The value is made of dict, list, str, int, float, bool and None. YAML is read by the 1.2 core
schema; a key is the text that was written, so `on`, `1` and `null` are text too. Legal JSON is read
as JSON, whatever the file is called, and a file called `.json` holds nothing else.

    document = read_document("on: {start: running}", file="m.yaml")
    document.value                        -> {"on": {"start": "running"}}
    document.marks["on", "start"]         -> (1, 13)
    document.key_marks["on", "start"]     -> (1, 6)

Rules: no key twice in one mapping; `<<` merges mappings, and what a mapping writes itself wins over
what it merges, the first merged over the later ones; no tags, no keys but scalars, one document.
A broken rule does not end the reading: all of them are reported at once. A syntax error, a budget
or undecodable bytes do end it.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeAlias

from interlock.core.declaration import Path
from interlock.core.text import clipped
from interlock.language.core_schema import is_number, meaning
from interlock.language.diagnostic import DefinitionError, Diagnostic, Severity
from interlock.language.json_events import JsonSyntaxError, json_events
from interlock.language.node import BUDGETS, Budgets, Node, compose
from interlock.language.scalar import columns_before
from interlock.language.source import UNFIT, Mark, Source, character, decode
from interlock.language.yaml_events import yaml_events

Entries: TypeAlias = dict[str, tuple[Node, Node]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file holds, and where each part of it stands.

    Attributes:
        marks: the place of each value, by its path. What an alias or a merge brings in has the
            place where it was written.
        key_marks: the place of each key, by the path of its value.
    """

    value: Any
    marks: Mapping[Path, Mark]
    key_marks: Mapping[Path, Mark]
    source: Source

    def at(self, path: Path) -> Any:
        """Give the value at a path; of what is not there, None."""
        value = self.value
        for key in path:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def mark(self, path: Path, *, key: bool = False) -> Mark:
        """Find the place of a value or its key; of what is not there, the place of its parent."""
        if key and path in self.key_marks:
            return self.key_marks[path]
        while path not in self.marks:
            path = path[:-1]
        return self.marks[path]

    def mark_within(self, path: Path, text: str, offset: int) -> Mark:
        """Find the place of a character of a text, or its start where that is not certain.

        It is certain where the text is written on one line, in quotes or not.
        """
        mark = self.mark(path)
        before = columns_before(self.source.rest_of_line(mark), text, offset)
        return mark if before is None else Mark(mark.line, mark.column + before)

    def diagnostic(
        self,
        code: str,
        message: str,
        path: Path,
        *,
        hint: str | None = None,
        severity: Severity = "error",
        key: bool = False,
    ) -> Diagnostic:
        """Make a diagnostic that points at the value at `path`, or at its key."""
        mark = self.mark(path, key=key)
        return self.source.diagnostic(code, message, mark, path=path, hint=hint, severity=severity)


def load_document(path: str | os.PathLike[str], *, budgets: Budgets = BUDGETS) -> Document:
    """Read a file.

    Raises:
        DefinitionError: as `read_document`; `unreadable` when the file cannot be opened or read.
    """
    file = os.fspath(path)
    try:
        with FilePath(file).open("rb") as stream:
            data = stream.read(budgets.bytes + 1)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        message = f"the file cannot be read: {reason.lower()}"
        raise DefinitionError(
            [Diagnostic(code="unreadable", message=message, file=file)]
        ) from fault
    return read_document(data, file=file, budgets=budgets)


def read_document(
    data: str | bytes, *, file: str | None = None, budgets: Budgets = BUDGETS
) -> Document:
    """Read a text, or the bytes of a file; `file` is its name in diagnostics.

    Raises:
        DefinitionError: it is not one document of legal YAML or JSON within the budgets.
    """
    source = decode(data, file, max_bytes=budgets.bytes)
    reader = _Reader(source, budgets)
    value = reader.value(_root(source, budgets), ())
    if reader.faults:
        raise DefinitionError(reader.faults.values())
    return Document(value=value, marks=reader.marks, key_marks=reader.key_marks, source=source)


def plain_document(text: str) -> Document:
    """Read JSON that was read and written before: quickly, for nothing in it has a place.

    Raises:
        DefinitionError: it is not a mapping in JSON.
    """
    source = Source(text)
    try:
        value = json.loads(text)
    except ValueError as fault:
        raise source.error("yaml-syntax", f"the text is no JSON: {fault}", 0) from None
    if not isinstance(value, dict):
        raise source.error("wrong-type", "the text holds no mapping", 0)
    return Document(value=value, marks={(): Mark(1, 1)}, key_marks={}, source=source)


def _root(source: Source, budgets: Budgets) -> Node:
    """Compose the text as JSON if it is JSON, else as YAML."""
    named_json = (source.file or "").lower().endswith(".json")
    if named_json or source.text.lstrip()[:1] in ("{", "[", '"'):
        try:
            return compose(json_events(source.text), source, budgets)
        except JsonSyntaxError as fault:
            if named_json:
                raise source.error("yaml-syntax", fault.message, fault.index) from None
    return compose(yaml_events(source), source, budgets)


class _Reader:
    """Turns nodes into values, noting places; gathers faults, one for each place in the file."""

    def __init__(self, source: Source, budgets: Budgets) -> None:
        self.source = source
        self.budgets = budgets
        self.marks: dict[Path, Mark] = {}
        self.key_marks: dict[Path, Mark] = {}
        self.faults: dict[tuple[str, int], Diagnostic] = {}

    def fault(
        self, code: str, message: str, node: Node, path: Path, hint: str | None = None
    ) -> None:
        index = node.event.at
        found = self.source.diagnostic(code, message, self.source.mark(index), path=path, hint=hint)
        self.faults.setdefault((code, index), found)

    def value(self, node: Node, path: Path) -> object:
        self.marks[path] = self.source.mark(node.event.at)
        if node.event.kind == "scalar":
            return self.scalar(node, path)
        self.untagged(node, path)
        if node.event.kind == "list":
            return [self.value(child, (*path, n)) for n, child in enumerate(node.children)]
        value: dict[str, object] = {}
        for name, (key, child) in self.entries(node, path).items():
            self.key_marks[*path, name] = self.source.mark(key.event.at)
            value[name] = self.value(child, (*path, name))
        return value

    def scalar(self, node: Node, path: Path) -> str | int | float | bool | None:
        text = self.text(node, path)
        if not node.event.plain:
            return text
        if len(text) > self.budgets.digits and is_number(text):
            message = f"a number longer than {self.budgets.digits} characters (budget `digits`)"
            self.fault("budget-exceeded", message, node, path)
            return text
        value = meaning(text)
        if isinstance(value, float) and not math.isfinite(value):
            self.fault("wrong-type", f"`{clipped(text)}` is not a finite number", node, path)
        return value

    def text(self, node: Node, path: Path) -> str:
        self.untagged(node, path)
        text = node.event.text
        if unfit := UNFIT.search(text):
            self.fault("yaml-syntax", f"the text holds {character(unfit[0])}", node, path)
        return text

    def untagged(self, node: Node, path: Path) -> None:
        if node.event.tag is not None:
            hint = "quote a value to make it text"
            message = f"the tag `{clipped(node.event.tag)}` is not read"
            self.fault("yaml-syntax", message, node, path, hint)

    def entries(self, node: Node, path: Path) -> Entries:
        """List what a mapping holds by key, after merging; report keys that it writes twice."""
        written: dict[tuple[str, bool], tuple[Node, Node]] = {}
        for key, child in zip(node.children[::2], node.children[1::2], strict=True):
            if key.event.kind != "scalar":
                self.fault("wrong-type", "a key is text, not a list or mapping", key, path)
                self.value(child, path)  # for its faults
                continue
            name = self.text(key, path)
            merges = name == "<<" and key.event.plain
            entry = (key, child)
            first = written.setdefault((name, merges), entry)
            if first is not entry:
                line = self.source.mark(first[0].event.at).line
                message = f"duplicate key `{clipped(name)}`, first on line {line}"
                self.fault("duplicate-key", message, key, (*path, name))
                self.value(child, (*path, name))  # for its faults
        merged = written.pop(("<<", True), None)
        entries = self.merged(merged[1], path) if merged else {}
        return entries | {name: entry for (name, _), entry in written.items()}

    def merged(self, node: Node, path: Path) -> Entries:
        """List what `<<` brings in: a mapping, or a list of mappings of which the first wins."""
        entries: Entries = {}
        for source in node.children if node.event.kind == "list" else [node]:
            if source.event.kind != "mapping":
                self.fault("wrong-type", "`<<` takes a mapping or a list of mappings", source, path)
                continue
            for name, entry in self.entries(source, path).items():
                entries.setdefault(name, entry)
        return entries
