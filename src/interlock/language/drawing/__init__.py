r"""Drawings of machines and declarations: for Mermaid, for Graphviz, or as SVG.

    mermaid(declaration)   -> stateDiagram-v2
                                  state "sampled" as s0
                                  [*] --> s0
                                  s0 --> s1 : release [QP-sign-off]
    svg(definition)        -> <svg xmlns="http://www.w3.org/2000/svg" …

A definition is drawn as its author wrote it, with nested states and regions; a declaration as the
flat machine that it is. Names are any text, so none is ever written where a tool reads syntax:
states get the ids s0, s1 and on, and names stand in labels in which everything that could end or
style a label is encoded. What would not show is escaped, a line break as `\n`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from interlock.language.definition import Definition
from interlock.language.drawing import dot_text, mermaid_text
from interlock.language.drawing.picture import picture_of

Drawn: TypeAlias = Definition | Mapping[str, Any]


def mermaid(drawn: Drawn) -> str:
    """Draw a definition or a well-formed declaration as a Mermaid state diagram."""
    return mermaid_text.write(picture_of(drawn))


def dot(drawn: Drawn) -> str:
    """Draw a definition or a well-formed declaration as a Graphviz graph."""
    return dot_text.write(picture_of(drawn))


def svg(drawn: Drawn) -> str:
    """Draw a definition or a well-formed declaration as an SVG image, laid out here."""
    from interlock.language.drawing import svg_image  # with the layout, which nothing else needs

    return svg_image.write(picture_of(drawn))
