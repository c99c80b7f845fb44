"""The tree of a document, composed from parser events without recursion, under budgets.

JSON and YAML arrive as the same events. An alias shares its anchor's node, so what it would expand
to is counted and never built: nine levels of nine aliases each are refused by arithmetic.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from interlock.core.text import clipped
from interlock.language.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The largest document that is read; a refusal names the budget.

    Nodes are keys, values, lists and mappings. Depth is that of lists and mappings within each
    other; the tree is walked by recursion, so it has to stay below some 200.
    """

    bytes: int = 4 * 1024 * 1024  # of the file, and of its text once aliases are expanded
    nodes: int = 100_000  # once aliases are expanded
    depth: int = 64
    digits: int = 1000  # characters of one number


BUDGETS = Budgets()


class Event(NamedTuple):
    """What a parser says next. The children of a mapping are key, value, key, value.

    Attributes:
        at: the index of its first character in the text.
        text: of a scalar; the anchor's name for an alias.
        plain: a scalar without quotes, whose text may mean a number, a boolean or null.
    """

    kind: Literal["scalar", "list", "mapping", "end", "alias"]
    at: int
    text: str = ""
    plain: bool = False
    anchor: str | None = None
    tag: str | None = None


class Node:
    """A scalar, list or mapping, with the size it has once its aliases are expanded."""

    __slots__ = ("children", "event", "height", "nodes", "size")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.children: list[Node] = []
        self.height = 0 if event.kind == "scalar" else 1  # lists and mappings, itself included
        self.nodes = 1
        self.size = len(event.text)  # characters


def compose(events: Iterable[Event], source: Source, budgets: Budgets) -> Node:
    """Build the tree of one document; an empty one is a plain empty scalar."""
    opened = [Node(Event("list", 0))]  # the outermost only holds the root
    anchors: dict[str, Node] = {}
    nodes = size = 0
    for event in events:
        if event.kind == "end":
            node = opened.pop()
            node.nodes, node.size = nodes - node.nodes, size - node.size
        else:
            if event.kind == "alias" and event.text not in anchors:
                message = f"the alias `{clipped(event.text)}` has no complete anchor before it"
                raise source.error("yaml-syntax", message, event.at)
            node = anchors[event.text] if event.kind == "alias" else Node(event)
            opened[-1].children.append(node)
            before = nodes, size
            nodes, size = nodes + node.nodes, size + node.size
            if excess := _excess(budgets, nodes, size, len(opened) - 1 + node.height):
                raise source.error("budget-exceeded", excess, event.at)
            if event.kind in ("list", "mapping"):
                node.nodes, node.size = before  # until its end, when the difference is its own
                opened.append(node)
                continue
        opened[-1].height = max(opened[-1].height, node.height + 1)
        if node.event.anchor is not None:
            anchors[node.event.anchor] = node
    root = opened[0].children
    return root[0] if root else Node(Event("scalar", 0, plain=True))


def _excess(budgets: Budgets, nodes: int, size: int, depth: int) -> str | None:
    if depth > budgets.depth:
        return f"nested deeper than {budgets.depth} levels (budget `depth`)"
    if nodes > budgets.nodes:
        return f"more than {budgets.nodes} nodes once aliases are expanded (budget `nodes`)"
    if size > budgets.bytes:
        return f"more than {budgets.bytes} bytes once aliases are expanded (budget `bytes`)"
    return None
