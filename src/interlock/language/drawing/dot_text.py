"""Pictures for Graphviz, as a directed graph with a cluster for each state that has others inside.

Graphviz draws no edge to a cluster, only one to a node that is cut off at the cluster's border: so
every cluster has a point that cannot be seen.
"""

from collections.abc import Iterator

from interlock.language.diagnostic import visible
from interlock.language.drawing.picture import Arrow, Box, Picture

STARTS = 'shape=point, label=""'
UNSEEN = 'shape=point, style=invis, width=0, label=""'


def write(picture: Picture) -> str:
    """Write a picture; a final state has a double border, a region a broken one."""
    whole = picture.whole
    lines = ["rankdir=LR", "node [shape=box, style=rounded]"]
    if any(box.children for box in whole.inside()):
        lines.insert(1, "compound=true")
    lines += [*_inside(whole)]
    for box in (whole, *whole.inside()):
        lines += [f"{_start(box)} -> {first.id}{_ends(box, first)}" for first in box.starts]
    lines += [_edge(arrow) for arrow in picture.arrows]
    return "\n".join(["digraph {", *(f"    {line}" for line in lines), "}", ""])


def _inside(box: Box) -> Iterator[str]:
    if box.starts:
        yield f"{_start(box)} [{STARTS}]"
    for child in box.children:
        label = f'label="{quoted(child.label)}"'
        if child.children:
            yield f"subgraph cluster_{child.id} {{"
            style = "dashed" if box.kind == "parallel" else "rounded"
            yield f"    {label}"
            yield f"    style={style}"
            yield f"    {child.id} [{UNSEEN}]"
            yield from (f"    {line}" for line in _inside(child))
            yield "}"
        else:
            border = {"final": ", peripheries=2", "history": ", shape=oval"}.get(child.kind, "")
            yield f"{child.id} [{label}{border}]"


def _start(box: Box) -> str:
    return "initial" if box.parent is None else f"initial_{box.id}"


def _edge(arrow: Arrow) -> str:
    source, target = arrow.source, arrow.target
    label = f'label="{quoted(arrow.label)}"'
    style = ", style=dashed" if arrow.stays else ""
    ends = _ends(source, target).removeprefix(" [").removesuffix("]")
    return f"{source.id} -> {target.id} [{', '.join(filter(None, (label, ends)))}{style}]"


def _ends(source: Box, target: Box) -> str:
    """Cut an edge off at the clusters that it leads between, unless one is inside the other."""
    ends = []
    if source.children and source.parent and source not in (target, *target.around()):
        ends.append(f"ltail=cluster_{source.id}")
    if target.children and target not in (source, *source.around()):
        ends.append(f"lhead=cluster_{target.id}")
    return f" [{', '.join(ends)}]" if ends else ""


def quoted(text: str) -> str:
    r"""Encode for a quoted string of DOT, in which `\N` and `&amp;` mean something."""
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("&", "&amp;")
