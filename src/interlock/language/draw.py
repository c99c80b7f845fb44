r"""Drawings of a declaration, for Mermaid and Graphviz.

Names are any text, so none is ever written where the tool reads syntax: states get the ids s0, s1
and on, and names stand in labels in which everything that could end or style a label is encoded.
What would not show is escaped, a line break as `\n`. The declaration is well-formed.

    mermaid(declaration)   -> stateDiagram-v2
                                  state "sampled" as s0
                                  [*] --> s0
                                  s0 --> s1 : release [QP-sign-off]
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interlock.language.diagnostic import visible

MERMAID_UNSAFE = re.compile(
    r"(?! (?<=[^\W_]) (?<!direction) [ -] (?=[^\W_]) ) [\W_]", re.VERBOSE | re.IGNORECASE
)


def mermaid(declaration: Mapping[str, Any]) -> str:
    """Draw a declaration as a Mermaid state diagram."""
    ids = _ids(declaration)
    lines = [f'state "{_entities(name)}" as {id_}' for name, id_ in ids.items()]
    lines.append(f"[*] --> {ids[declaration['initial_state']]}")
    lines += [
        f"{one} --> {other} : {label}" for one, other, label in _arrows(declaration, _entities)
    ]
    lines += [f"{ids[name]} --> [*]" for name in declaration["terminal_states"]]
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in lines), ""])


def dot(declaration: Mapping[str, Any]) -> str:
    """Draw a declaration as a Graphviz graph; a terminal state has a double border."""
    ids, terminal = _ids(declaration), set(declaration["terminal_states"])
    lines = ["rankdir=LR", "node [shape=box, style=rounded]", 'initial [shape=point, label=""]']
    for name, id_ in ids.items():
        border = ", peripheries=2" if name in terminal else ""
        lines.append(f'{id_} [label="{_quoted(name)}"{border}]')
    lines.append(f"initial -> {ids[declaration['initial_state']]}")
    for one, other, label in _arrows(declaration, _quoted):
        lines.append(f'{one} -> {other} [label="{label}"]')
    return "\n".join(["digraph {", *(f"    {line}" for line in lines), "}", ""])


def _ids(declaration: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"s{number}" for number, name in enumerate(declaration["states"])}


def _arrows(
    declaration: Mapping[str, Any], encode: Callable[[str], str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the ids of both ends of each transition, and its label."""
    ids = _ids(declaration)
    for transition in declaration["transitions"]:
        guard = transition.get("guard")
        label = encode(transition["action"]) + (f" [{encode(guard)}]" if guard else "")
        yield ids[transition["from_state"]], ids[transition["to_state"]], label


def _entities(text: str) -> str:
    """Encode for Mermaid, whose labels are syntax, Markdown and HTML at once.

    Letters and digits stay, and a blank or hyphen between two of them; but a line in which
    `direction LR` occurs is a command to Mermaid, wherever it occurs.
    """
    return MERMAID_UNSAFE.sub(lambda char: f"#{ord(char[0])};", visible(text))


def _quoted(text: str) -> str:
    r"""Encode for a quoted string of DOT, in which `\N` and `&amp;` mean something."""
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("&", "&amp;")
