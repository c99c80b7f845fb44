"""Definition documents written as YAML, for people to read.

    to_yaml({"states": {"on": None}, "initial": "on", "machine": "lamp"})

    machine: lamp
    initial: on
    states:
      on:

Keys that a machine gives a meaning stand in one order; names stay in the order of the mapping. What
is short stands in one line. A text is quoted where the reader would take it for something else.
Reading what was written gives an equal value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlock.language.core_schema import WORDS, is_number
from interlock.language.definition import Definition
from interlock.language.diagnostic import DefinitionError, Diagnostic

WIDTH = 100  # of a line, where what stands in it can be broken
DEPTH = 3  # of mappings and lists within each other in one line
KEY_MAX = 1000  # characters of a key without `?` before it; YAML allows 1024

MACHINE_KEYS = (
    "machine", "version", "description", "data", "events", "gates", "conflicts",
    "initial", "states", "never",
)  # fmt: skip
STATE_KEYS = (
    "label", "description", "type", "history", "to", "order", "final", "initial", "data",
    "on_enter", "on_exit", "on", "always", "after", "on_done", "states",
)  # fmt: skip
BRANCH_KEYS = (
    "at", "to", "when", "otherwise", "guard", "set", "do", "internal", "name", "description",
)  # fmt: skip

_PLAIN = re.compile(r"\w(?:[\w./+~-]|(?<=\S) (?=\S))*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# What YAML takes as it is, less what cannot be seen there.
_SEEN = " -~\xa1-\u1fff\u2010-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_ESCAPED = re.compile(rf'["\\]|[^{_SEEN}]')
_PARAGRAPH = re.compile(rf"(?! )[{_SEEN}]+(\n+ *(?! )[{_SEEN}]+)+\n?")  # several lines


def to_yaml(document: Definition | Mapping[str, Any]) -> str:
    """Write a document, or that of a definition, so that reading it gives an equal value.

    Raises:
        DefinitionError: it is not made of JSON's values.
    """
    if isinstance(document, Definition):
        document = json.loads(document.document)
    try:
        plain = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as fault:
        message = f"the mapping is not made of JSON's values: {fault}"
        raise DefinitionError([Diagnostic(code="wrong-type", message=message)]) from None
    arranged = _machine(plain) if "machine" in plain else plain
    return "\n".join([*_block(arranged, 0), ""]) if arranged else "{}\n"


# The order of keys


def _machine(written: dict[str, Any]) -> dict[str, Any]:
    return _states(_in_order(written, MACHINE_KEYS))


def _states(written: dict[str, Any]) -> dict[str, Any]:
    states = written.get("states")
    if not isinstance(states, dict):
        return written
    return {**written, "states": {name: _state(state) for name, state in states.items()}}


def _state(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    state = _states(_in_order(written, STATE_KEYS))
    for word in ("on", "after"):
        if isinstance(state.get(word), dict):
            state[word] = {name: _choice(choice) for name, choice in state[word].items()}
    for word in ("always", "on_done"):
        if word in state:
            state[word] = _choice(state[word])
    return state


def _choice(written: Any) -> Any:
    if isinstance(written, list):
        return [_choice(branch) for branch in written]
    if not isinstance(written, dict):
        return written
    if "branches" in written:
        ordered = _in_order(written, ("order", "branches"))
        return {**ordered, "branches": _choice(ordered["branches"])}
    return _in_order(written, BRANCH_KEYS)


def _in_order(written: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    known = {key: written[key] for key in keys if key in written}
    return known | {key: value for key, value in written.items() if key not in known}


# The text


def _block(value: Any, indent: int) -> Iterator[str]:
    """Write a mapping or list that is not empty, a line or more for each part."""
    margin = " " * indent
    if isinstance(value, list):
        for item in value:
            line = _line(item, indent + 2)
            if line is not None:
                yield f"{margin}- {line}".rstrip(" ")
            else:
                first, *rest = _block(item, indent + 2)
                yield f"{margin}- {first.lstrip(' ')}"
                yield from rest
        return
    for name, item in value.items():
        key = _scalar(name)
        if len(key) > KEY_MAX:
            yield f"{margin}? {key}"
            key = ""
        line = None if _holds_states(value, name) else _line(item, indent + len(key) + 2)
        if _is_paragraph(item):
            ends = "" if item.endswith("\n") else "-"
            yield f"{margin}{key}: |{ends}"
            yield from (f"{margin}  {text}" if text else "" for text in item.splitlines())
        elif line is not None:
            yield f"{margin}{key}: {line}".rstrip(" ")
        else:
            yield f"{margin}{key}:"
            yield from _block(item, indent + 2)


def _line(value: Any, column: int) -> str | None:
    """Write a value in what is left of a line, unless it is better broken."""
    if value is None:
        return ""
    if not isinstance(value, dict | list) or not value:
        return _flow(value)
    if not _is_short(value, DEPTH):
        return None
    line = _flow(value)
    return line if column + len(line) <= WIDTH else None


def _is_short(value: Any, depth: int) -> bool:
    """Whether it may stand in one line: not too deep, no list of branches, no states inside."""
    if not isinstance(value, dict | list) or not value:
        return not _is_paragraph(value)
    if depth == 0 or _holds_states(value, "states"):
        return False
    if isinstance(value, list) and any(isinstance(one, dict) and len(one) > 1 for one in value):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return all(_is_short(part, depth - 1) for part in parts)


def _holds_states(value: Any, key: str) -> bool:
    """Whether a key of a value is that of states, which stand below each other."""
    states = value.get(key) if isinstance(value, dict) and key == "states" else None
    return isinstance(states, dict) and bool(states)


def _is_paragraph(value: Any) -> bool:
    """Whether it is a text of several lines that can stand as they are."""
    return isinstance(value, str) and _PARAGRAPH.fullmatch(value) is not None


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)  # JSON's numbers and words mean the same in YAML 1.2
    if _PLAIN.fullmatch(value) and not is_number(value) and value not in WORDS:
        return value
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(char: re.Match[str]) -> str:
    code = ord(char[0])
    if char[0] in _ESCAPES:
        return _ESCAPES[char[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
