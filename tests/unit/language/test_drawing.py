"""Drawings of machines: what each of the formats shows, and that no text breaks out."""

import os
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from interlock.language import Definition, define, dot, loads, mermaid, svg
from interlock.language.diagnostic import visible
from interlock.language.drawing.columns import Chain, columns, monotone, spread
from interlock.language.drawing.layout import scene_of
from interlock.language.drawing.picture import picture_of
from interlock.language.drawing.ranks import ranks
from interlock.language.drawing.rows import Link, arrange
from interlock.language.drawing.words import broken, width
from tests.support.geometry import check
from tests.unit.language.test_draw import NAMES, machine

SVG = "{http://www.w3.org/2000/svg}"
ORDER = """
machine: order
version: 1
data: {weight: {type: number}, due: {type: date-time}}
initial: draft
states:
  draft: {on: {submit: handling, edit: {do: log}}, after: {late: {at: "data.due", to: dropped}}}
  handling:
    type: parallel
    order: [payment, parcel]
    on: {cancel: dropped, hold: paused}
    on_done: done
    after: {30d: dropped}
    states:
      payment:
        initial: due
        states:
          due: {on: {pay: paid, decline: {to: due, guard: bank}}}
          paid: {final: true, label: "all paid"}
      parcel:
        initial: packing
        states:
          packing:
            on:
              send:
                order: first-match
                branches:
                  - {to: sent, name: light, when: "data.weight < 2.0", guard: seal}
                  - {to: packing, name: later, otherwise: true}
          sent: {final: true}
      memory: {type: history, history: deep}
  paused:
    on: {resume: handling.memory, split: {to: [handling.payment.paid, handling.parcel.sent]}}
  done: {final: true}
  dropped: {final: true}
"""


@pytest.fixture(scope="module")
def order() -> Definition:
    return loads(ORDER)


def transitions(image: str) -> list[tuple[str, str, str]]:
    root = ElementTree.fromstring(image)
    return sorted(
        (group.attrib["data-from"], group.attrib["data-to"], group.findtext(f"{SVG}title") or "")
        for group in root.iter(f"{SVG}g")
        if "data-from" in group.attrib
    )


def test_an_image_shows_where_each_transition_leads_and_when(order: Definition) -> None:
    assert transitions(svg(order)) == [
        ("draft", "draft", "edit"),
        ("draft", "dropped", "late at data.due"),
        ("draft", "handling", "submit"),
        ("handling", "done", "done"),
        ("handling", "dropped", "after 30d"),
        ("handling", "dropped", "cancel"),
        ("handling", "paused", "hold"),
        ("handling.parcel.packing", "handling.parcel.packing", "send (2) [otherwise]"),
        ("handling.parcel.packing", "handling.parcel.sent", "send (1) [seal, data.weight < 2.0]"),
        ("handling.payment.due", "handling.payment.due", "decline [bank]"),
        ("handling.payment.due", "handling.payment.paid", "pay"),
        ("paused", "handling.memory", "resume"),
        ("paused", "handling.parcel.sent", "split"),
        ("paused", "handling.payment.paid", "split"),
    ]


def test_an_image_tells_kinds_of_states_apart(order: Definition) -> None:
    root = ElementTree.fromstring(svg(order))
    kinds = {
        group.attrib["data-state"]: group.attrib["class"].split()[1:]
        for group in root.iter(f"{SVG}g")
        if "data-state" in group.attrib
    }
    assert kinds == {
        "draft": [],
        "handling": ["parallel", "outer"],
        "handling.payment": ["outer", "region"],
        "handling.payment.due": [],
        "handling.payment.paid": ["final"],
        "handling.parcel": ["outer", "region"],
        "handling.parcel.packing": [],
        "handling.parcel.sent": ["final"],
        "handling.memory": ["history", "region"],
        "paused": [],
        "done": ["final"],
        "dropped": ["final"],
    }
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"all paid", "memory (H*)", "decline [bank]", "after 30d"} <= {*texts}
    assert len([*root.iter(f"{SVG}circle")]) == 3  # where the machine and two regions begin


def test_an_image_can_be_read_out_and_followed_without_colours(order: Definition) -> None:
    root = ElementTree.fromstring(svg(order))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.findtext(f"{SVG}title") == "order"
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")
    dashed = [g for g in root.iter(f"{SVG}g") if g.attrib.get("class") == "wire stays"]
    assert len(dashed) == 1
    assert not [*root.iter(f"{SVG}script")]
    assert "href" not in svg(order)


def test_the_reserved_state_is_in_no_drawing(order: Definition) -> None:
    assert "superseded" in order.declaration["states"]
    for drawing in (mermaid(order), dot(order), svg(order)):
        assert "superseded" not in drawing


def test_states_stand_inside_each_other_for_mermaid(order: Definition) -> None:
    assert (
        mermaid(order)
        == """\
stateDiagram-v2
    state "done" as s0
    state "draft" as s1
    state "dropped" as s2
    state "handling" as s3 {
        state "payment" as s4 {
            state "due" as s5
            state "all paid" as s6
            [*] --> s5
            s5 --> s5 : decline [bank]
            s5 --> s6 : pay
            s6 --> [*]
        }
        --
        state "parcel" as s7 {
            state "packing" as s8
            state "sent" as s9
            [*] --> s8
            s8 --> s9 : send#32;#40;1#41; [seal#44;#32;data#46;weight#32;#60;#32;2#46;0]
            s8 --> s8 : send#32;#40;2#41; [otherwise]
            s9 --> [*]
        }
        --
        state "memory#32;#40;H#42;#41;" as s10
    }
    state "paused" as s11
    [*] --> s1
    s1 --> s1 : edit
    s1 --> s3 : submit
    s1 --> s2 : late at data#46;due
    s3 --> s2 : cancel
    s3 --> s11 : hold
    s3 --> s0 : done
    s3 --> s2 : after 30d
    s11 --> s10 : resume
    s11 --> s6 : split
    s11 --> s9 : split
    s0 --> [*]
    s2 --> [*]
"""
    )


def test_arrows_to_and_from_clusters_end_at_their_borders_for_graphviz() -> None:
    drawing = dot(
        loads("""
machine: m
initial: a
states:
  a: {on: {in: b, self: a}}
  b:
    initial: c
    on: {out: a, down: {to: c, internal: true}, stay: {do: log}}
    states: {c: {on: {up: b, away: d}}}
  d: {on: {back: b.c}}
""")
    )
    edges = re.findall(r"^    (s\d+ -> .*)$", drawing, re.M)
    assert edges == [
        's0 -> s1 [label="in", lhead=cluster_s1]',
        's0 -> s0 [label="self"]',
        's1 -> s2 [label="down"]',
        's1 -> s0 [label="out", ltail=cluster_s1]',
        's1 -> s1 [label="stay", style=dashed]',
        's2 -> s3 [label="away"]',
        's2 -> s1 [label="up"]',
        's3 -> s2 [label="back"]',
    ]
    assert "    compound=true\n" in drawing
    assert re.search(r"initial_s1 -> s2\n", drawing)


def test_no_name_breaks_out_of_an_image() -> None:
    declaration = machine(NAMES)
    root = ElementTree.fromstring(svg(declaration))
    shown = [
        group.attrib["data-state"] for group in root.iter(f"{SVG}g") if "data-state" in group.attrib
    ]
    assert shown == [visible(name) for name in NAMES]
    parts = {"svg", "title", "style", "g", "rect", "text", "path", "polygon", "circle"}
    assert {part.tag.removeprefix(SVG) for part in root.iter()} == parts
    check(scene_of(picture_of(declaration)))


@pytest.mark.parametrize("name", ["x" * 400, "many words " * 40, "日本語" * 90, "a_b-c." * 60])
def test_a_long_name_is_broken_and_cut_and_told_in_full(name: str) -> None:
    declaration = machine([name, "b"])
    root = ElementTree.fromstring(svg(declaration))
    assert root.findall(f".//{SVG}g[@data-state]/{SVG}title")[0].text == visible(name)
    assert float(root.attrib["width"]) < 700
    assert [text.text for text in root.iter(f"{SVG}text") if (text.text or "").endswith("…")]
    check(scene_of(picture_of(declaration)))


@pytest.mark.parametrize("states", [[], ["only"]])
def test_the_smallest_declarations_are_drawn(states: list[str]) -> None:
    names = states or ["a"]
    declaration = {
        "states": names,
        "transitions": [],
        "initial_state": names[0],
        "terminal_states": states,
    }
    assert ElementTree.fromstring(svg(declaration)).findtext(f"{SVG}title") == "declaration"
    check(scene_of(picture_of(declaration)))


def ladder(steps: int) -> dict[str, Any]:
    """A machine of some steps, with ways onwards, back, and out of a state around every ten."""
    states: dict[str, Any] = {"end": {"final": True}}
    for number in range(steps):
        on: dict[str, Any] = {f"next {number}": f"step {number + 1}"}
        if number % 3 == 0:
            on[f"skip {number}"] = f"step {min(steps - 1, number + 4)}"
        if number % 7 == 6:
            on[f"back {number}"] = f"step {number - 5}"
        if number == steps - 1:
            on = {"finish": "end"}
        states[f"step {number}"] = {"on": on}
    return {"machine": "ladder", "initial": "step 0", "states": states}


@pytest.mark.parametrize("steps", [1, 2, 40, 150])
def test_a_machine_of_many_states_keeps_its_places_apart(steps: int) -> None:
    scene = scene_of(picture_of(define(ladder(steps))))
    check(scene)
    assert len(scene.frames) == steps + 1


def test_deeply_nested_states_are_drawn() -> None:
    document: dict[str, Any] = {"machine": "m", "initial": "a", "states": {}}
    inner = document
    for _ in range(25):
        inner["states"] = {"a": {"initial": "a", "on": {"up": "a"}}}
        inner = inner["states"]["a"]
    del inner["initial"]
    scene = scene_of(picture_of(define(document)))
    check(scene)
    assert len(scene.frames) == 25


def test_the_same_machine_gives_the_same_image_everywhere() -> None:
    program = (
        "import sys; from interlock.language import loads, svg; print(svg(loads(sys.stdin.read())))"
    )
    images = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=ORDER,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert images == {f"{svg(loads(ORDER))}\n"}


def test_edges_lead_downwards_but_for_those_that_close_a_cycle() -> None:
    assert ranks(3, [(0, 1), (1, 2), (2, 0)]) == ([0, 1, 2], {2})
    assert ranks(3, [(2, 0), (0, 1), (1, 2)]) == ([0, 1, 2], {0})
    assert ranks(4, [(0, 1), (0, 2), (2, 3), (1, 3)]) == ([0, 1, 1, 2], set())
    assert ranks(4, [(0, 1), (1, 2), (3, 2)]) == ([0, 1, 2, 1], set())
    assert ranks(2, []) == ([0, 0], set())
    long = [(n, n + 1) for n in range(5000)]
    assert ranks(5001, long) == ([*range(5001)], set())


def test_rows_are_ordered_so_that_lines_do_not_cross() -> None:
    crossed = [Link(0, 5), Link(1, 4), Link(2, 3)]
    first, second = arrange([[0, 1, 2], [3, 4, 5]], crossed)
    assert [5 - node for node in first] == second
    fixed = [Link(0, 1, out=0.4), Link(0, 2, out=-0.4)]
    assert arrange([[0], [1, 2]], fixed)[1] == [2, 1]
    free = [Link(0, 1, out=0.4), Link(0, 2, free=(True, False)), Link(1, 3), Link(2, 4)]
    assert arrange([[0], [1, 2], [3, 4]], free) == [[0], [1, 2], [3, 4]]


def test_places_are_as_near_as_they_can_be_to_what_is_wanted() -> None:
    assert monotone([1.0, 3.0, 2.0, 4.0], [1.0] * 4) == [1.0, 2.5, 2.5, 4.0]
    assert monotone([3.0, 0.0], [1.0, 2.0]) == [1.0, 1.0]
    assert monotone([], []) == []
    assert spread([], 10.0, 0.0, 5.0) == []
    assert spread([50.0], 10.0, 0.0, 20.0) == [20.0]
    assert spread([5.0, 5.0], 10.0, 0.0, 100.0) == [0.0, 10.0]
    assert spread([50.0, 50.0], 10.0, 0.0, 100.0) == [45.0, 55.0]
    assert spread([0.0, 0.0, 0.0], 10.0, 0.0, 10.0) == [0.0, 5.0, 10.0]


def test_lines_are_straight_where_that_is_possible() -> None:
    straight = columns([[0], [1], [2]], [10.0, 0.0, 40.0], [5.0] * 3, [Link(0, 1), Link(1, 2)], [])
    assert straight == [0.0, 0.0, 0.0]
    aside = columns([[0], [1]], [40.0, 10.0], [5.0] * 2, [Link(0, 1, out=0.5)], [])
    assert aside[1] - aside[0] == pytest.approx(20.0)
    bend = Chain([1], (0, -20.0, 20.0), (2, 0.0, 0.0))
    places = columns([[0], [1], [2]], [40.0, 0.0, 0.0], [5.0] * 3, [Link(0, 1), Link(1, 2)], [bend])
    assert places[1] == places[2]


def test_what_no_line_binds_to_the_rest_stands_beside_it() -> None:
    rows, links = [[0, 1], [2, 3, 4]], [Link(0, 2), Link(0, 3), Link(1, 4)]
    at = columns(rows, [10.0] * 5, [5.0] * 5, links, [])
    assert at[4] - at[3] == pytest.approx(15.0)
    assert at[1] == at[4]
    at = columns([[1, 0], [4, 2, 3]], [10.0] * 5, [5.0] * 5, links, [])
    assert at[2] - at[4] == pytest.approx(15.0)
    assert at[1] == at[4]


def test_texts_are_broken_between_words_if_that_is_possible() -> None:
    assert broken("decide [data.amount >= 100]", 12.0, 120.0, 3) == [
        "decide",
        "[data.amount",
        ">= 100]",
    ]
    assert broken("short", 12.0, 100.0, 3) == ["short"]
    assert broken("x" * 30, 12.0, 100.0, 2)[-1].endswith("…")
    assert broken("one-two-three-four", 12.0, 70.0, 3) == ["one-two-", "three-four"]
    assert all(width(line, 12.0) <= 100.0 for line in broken("w" * 40, 12.0, 100.0, 9))
    assert broken("", 12.0, 100.0, 3) == [""]


def test_a_page_can_hold_several_images(order: Definition) -> None:
    image = svg(order)
    assert " id=" not in image
    for rule in re.findall(r"^([^@{}\n][^{}\n]*)\{", image.partition("</style>")[0], re.M):
        assert all(part.startswith(".interlock") for part in rule.split(",")), rule
