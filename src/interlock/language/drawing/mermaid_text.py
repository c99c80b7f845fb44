"""Pictures for Mermaid, as a state diagram."""

import re
from collections.abc import Iterator

from interlock.language.diagnostic import visible
from interlock.language.drawing.picture import Arrow, Box, Picture

UNSAFE = re.compile(
    r"(?! (?<=[^\W_]) (?<!direction) [ -] (?=[^\W_]) ) [\W_]", re.VERBOSE | re.IGNORECASE
)


def write(picture: Picture) -> str:
    """Write a picture. An arrow stands in the innermost state that has both its ends inside."""
    arrows: dict[Box, list[Arrow]] = {}
    for arrow in picture.arrows:
        around = arrow.around
        while around.kind == "parallel" and around.parent is not None:
            around = around.parent  # what stands among regions belongs to one of them
        arrows.setdefault(around, []).append(arrow)
    lines = _inside(picture.whole, arrows)
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in lines), ""])


def _inside(box: Box, arrows: dict[Box, list[Arrow]]) -> Iterator[str]:
    for place, child in enumerate(box.children):
        if box.kind == "parallel" and place:
            yield "--"
        if child.children:
            yield f'state "{entities(child.label)}" as {child.id} {{'
            yield from (f"    {line}" for line in _inside(child, arrows))
            yield "}"
        else:
            yield f'state "{entities(child.label)}" as {child.id}'
    yield from (f"[*] --> {first.id}" for first in box.starts)
    for arrow in arrows.get(box, ()):
        test = f"[{entities(arrow.test)}]" if arrow.test else ""
        label = " ".join(filter(None, (entities(arrow.action), test)))
        colon = f" : {label}" if label else ""
        yield f"{arrow.source.id} --> {arrow.target.id}{colon}"
    yield from (f"{child.id} --> [*]" for child in box.children if child.kind == "final")


def entities(text: str) -> str:
    """Encode for Mermaid, whose labels are syntax, Markdown and HTML at once.

    Letters and digits stay, and a blank or hyphen between two of them; but a line in which
    `direction LR` occurs is a command to Mermaid, wherever it occurs.
    """
    return UNSAFE.sub(lambda char: f"#{ord(char[0])};", visible(text))
