"""Drawings of random statecharts: nothing stands on anything else, and everything is there once."""

import html
import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from interlock.language.diagnostic import visible
from interlock.language.drawing import dot_text, mermaid_text, svg_image
from interlock.language.drawing.layout import scene_of
from interlock.language.drawing.picture import Picture, of_declaration, of_document
from tests.support.charts import charts, renamed, shuffled
from tests.support.geometry import check
from tests.support.strategies import declarations, examples

SVG = "{http://www.w3.org/2000/svg}"


@examples(40)
@given(charts())
def test_nothing_stands_on_anything_else(document: dict[str, Any]) -> None:
    check(scene_of(of_document(document)))


@examples(30)
@given(declarations())
def test_nothing_stands_on_anything_else_in_a_flat_machine(declaration: dict[str, Any]) -> None:
    check(scene_of(of_declaration(declaration)))


@examples(15)
@given(charts(), st.data())
def test_every_state_and_every_transition_is_drawn_once(
    document: dict[str, Any], data: st.DataObject
) -> None:
    picture = of_document(data.draw(renamed(document)))
    assert in_svg(picture) == everything(picture, start=False)
    assert in_mermaid(picture) == everything(picture, start=True)
    assert in_dot(picture) == everything(picture, start=True)


@examples(15)
@given(charts(), st.data())
def test_the_order_of_keys_changes_no_drawing(
    document: dict[str, Any], data: st.DataObject
) -> None:
    one, other = of_document(document), of_document(data.draw(shuffled(document)))
    for format in (mermaid_text, dot_text, svg_image):
        assert format.write(one) == format.write(other)


@examples(50)
@given(declarations())
def test_every_state_and_transition_of_a_declaration_is_drawn_once(
    declaration: dict[str, Any],
) -> None:
    picture = of_declaration(declaration)
    assert len(picture.arrows) == len(declaration["transitions"])
    assert [box.path for box in picture.whole.children] == declaration["states"]
    assert in_svg(picture) == everything(picture, start=False)
    assert in_mermaid(picture) == everything(picture, start=True)
    assert in_dot(picture) == everything(picture, start=True)


Found = Counter[tuple[str, ...]]


def everything(picture: Picture, *, start: bool) -> Found:
    """What a drawing has to show; `start`: boxes by their ids and labels, and where they begin."""
    found: Found = Counter()
    for box in picture.whole.inside():
        parent = box.parent.id if box.parent is not None else ""
        found[(parent, box.id, box.label) if start else (box.path,)] += 1
    for arrow in picture.arrows:
        found[
            (arrow.source.id, arrow.target.id, arrow.label)
            if start
            else (arrow.source.path, arrow.target.path, arrow.label)
        ] += 1
    for box in [picture.whole, *picture.whole.inside()]:
        for first in box.starts if start else ():
            found["start", first.id] += 1
    return Counter({tuple(map(visible, key)): number for key, number in found.items()})


def in_svg(picture: Picture) -> Found:
    root = ElementTree.fromstring(svg_image.write(picture))
    found: Found = Counter()
    for group in root.iter(f"{SVG}g"):
        if "data-state" in group.attrib:
            found[group.attrib["data-state"],] += 1
        if "data-from" in group.attrib:
            label = group.findtext(f"{SVG}title") or ""
            found[group.attrib["data-from"], group.attrib["data-to"], label] += 1
    return found


def in_mermaid(picture: Picture) -> Found:
    found: Found = Counter()
    parents = ["whole"]
    for line in mermaid_text.write(picture).splitlines()[1:]:
        line = line.strip(" ")
        if match := re.fullmatch(r'state "([^"]*)" as (s\d+)( \{)?', line):
            found[parents[-1], match[2], decoded(match[1])] += 1
            if match[3]:
                parents.append(match[2])
        elif match := re.fullmatch(r"\[\*\] --> (s\d+)", line):
            found["start", match[1]] += 1
        elif match := re.fullmatch(r"(s\d+) --> (s\d+)(?: : (.*))?", line):
            found[match[1], match[2], decoded(match[3] or "")] += 1
        elif line == "}":
            parents.pop()
        else:
            assert line == "--" or re.fullmatch(r"s\d+ --> \[\*\]", line), line
    assert parents == ["whole"]
    return found


def in_dot(picture: Picture) -> Found:
    found: Found = Counter()
    parents, cluster = ["whole"], False
    for line in dot_text.write(picture).splitlines()[1:-1]:
        line = line.strip(" ")
        if match := re.fullmatch(r"subgraph cluster_(s\d+) \{", line):
            parents.append(match[1])
            cluster = True
        elif line == "}":
            parents.pop()
        elif cluster:
            label = line.removeprefix('label="').removesuffix('"')
            found[parents[-2], parents[-1], undone(label)] += 1
            cluster = False
        elif match := re.fullmatch(r'(s\d+) \[label="(.*)"(, (peripheries|shape)=\w+)?\]', line):
            found[parents[-1], match[1], undone(match[2])] += 1
        elif match := re.fullmatch(r"initial\S* -> (s\d+)( \[lhead=cluster_s\d+\])?", line):
            found["start", match[1]] += 1
        elif match := re.fullmatch(
            r'(s\d+) -> (s\d+) \[label="(.*)"((?:, (?:ltail|lhead|style)=\w+)*)\]', line
        ):
            found[match[1], match[2], undone(match[3])] += 1
        else:
            assert re.match(r"rankdir|compound|node|style|initial|s\d+ \[shape=point", line), line
    assert parents == ["whole"]
    return found


def decoded(text: str) -> str:
    return re.sub("#([0-9]+);", lambda char: chr(int(char[1])), text)


def undone(text: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", text))
