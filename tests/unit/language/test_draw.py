"""Drawings: names cannot break out of their labels, whatever they hold."""

import html
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.language import dot, mermaid
from interlock.language.diagnostic import visible

NAMES = [
    "sampled", "begin-testing", "a b", "a  b", " a", 'say "hi"', "`tick`", "a: b", "a --> b", "a;b",
    "line\nbreak", "\r\n", "café", "cafe\u0301", "日本語", "😀", "<img src=x onerror=alert(1)>",
    "</script>", "back\\slash", "\\", '\\"', '"', "\\N", "end", "end note", "state", "note", "[*]",
    "%%{init: {}}%%", "%% x", "#quot;", "#35;", "&amp;", "{x}", "[[fork]]", "<<choice>>", "s0",
    "1. one", "- a", "__b__", "*a*", "style a:b #x;", "direction LR", "DIRECTION  tb", "direction",
    "--", "---", "\u202eabc", "\x1b[0m", '"] ; x [label="y', "as s1", "$$x$$", ":::c", "//",
]  # fmt: skip
ID = r"s[0-9]+"
MERMAID_TEXT = r"(?:[^\W_]|#[0-9]+;|[ -])+"
MERMAID_LINE = re.compile(
    rf'    (?:state "(?P<name>{MERMAID_TEXT})" as (?P<id>{ID})'
    rf"|\[\*\] --> (?P<initial>{ID})"
    rf"|(?P<terminal>{ID}) --> \[\*\]"
    rf"|(?P<one>{ID}) --> (?P<other>{ID}) : (?P<action>{MERMAID_TEXT}?)"
    rf"(?: \[(?P<guard>{MERMAID_TEXT})\])?)"
)
DOT_TEXT = r'(?:[^"\\\n]|\\\\|\\")*'
DOT_LINE = re.compile(
    rf'    (?:rankdir=LR|node \[shape=box, style=rounded\]|initial \[shape=point, label=""\]'
    rf'|(?P<id>{ID}) \[label="(?P<name>{DOT_TEXT})"(?P<terminal>, peripheries=2)?\]'
    rf"|initial -> (?P<initial>{ID})"
    rf'|(?P<one>{ID}) -> (?P<other>{ID}) \[label="(?P<action>{DOT_TEXT})"\])'
)


def machine(names: list[str]) -> dict:
    """A ring of all names, each an action too, every second one guarded by its own name."""
    transitions = [
        {"from_state": one, "action": one, "to_state": other, "guard": one if n % 2 else None}
        for n, (one, other) in enumerate(zip(names, names[1:] + names[:1], strict=True))
    ]
    terminal = names[1:][-1:]
    transitions = [t for t in transitions if t["from_state"] not in terminal]
    return {
        "states": names,
        "transitions": transitions,
        "initial_state": names[0],
        "terminal_states": terminal,
    }


def decoded(text: str) -> str:
    return re.sub("#([0-9]+);", lambda char: chr(int(char[1])), text)


def unquoted(text: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", text))


def rows(lines: list[str], pattern: re.Pattern) -> list[dict[str, str]]:
    found = []
    for line in lines:
        match = pattern.fullmatch(line)
        assert match, line
        found.append({name: text for name, text in match.groupdict().items() if text is not None})
    return found


def check_mermaid(names: list[str]) -> None:
    first, *lines, last = mermaid(machine(names)).split("\n")
    assert (first, last) == ("stateDiagram-v2", "")
    found = rows(lines, MERMAID_LINE)
    ids = {row["id"]: decoded(row["name"]) for row in found if "id" in row}
    assert [*ids.values()] == [visible(name) for name in names]
    assert [ids[row["initial"]] for row in found if "initial" in row] == [visible(names[0])]
    assert [ids[row["terminal"]] for row in found if "terminal" in row] == [
        *map(visible, names[1:][-1:])
    ]
    arrows = [
        (ids[row["one"]], decoded(row["action"]), ids[row["other"]], decoded(row.get("guard", "")))
        for row in found
        if "one" in row
    ]
    assert arrows == [
        (
            visible(t["from_state"]),
            visible(t["action"]),
            visible(t["to_state"]),
            visible(t["guard"] or ""),
        )
        for t in machine(names)["transitions"]
    ]
    assert not re.search(r"direction\s+(TB|BT|LR|RL)", mermaid(machine(names)), re.IGNORECASE)


def check_dot(names: list[str]) -> None:
    first, *lines, brace, last = dot(machine(names)).split("\n")
    assert (first, brace, last) == ("digraph {", "}", "")
    found = rows(lines, DOT_LINE)
    ids = {row["id"]: unquoted(row["name"]) for row in found if "id" in row}
    assert [*ids.values()] == [visible(name) for name in names]
    assert [ids[row["initial"]] for row in found if "initial" in row] == [visible(names[0])]
    assert [ids[row["id"]] for row in found if "terminal" in row] == [*map(visible, names[1:][-1:])]
    assert [
        (ids[row["one"]], unquoted(row["action"]), ids[row["other"]])
        for row in found
        if "one" in row
    ] == [
        (
            visible(t["from_state"]),
            visible(t["action"] + (f" [{t['guard']}]" if t["guard"] else "")),
            visible(t["to_state"]),
        )
        for t in machine(names)["transitions"]
    ]


def test_a_plain_machine_reads_well() -> None:
    declaration = {
        "states": ["sampled", "in testing", "released"],
        "transitions": [
            {"from_state": "sampled", "action": "begin-testing", "to_state": "in testing"},
            {
                "from_state": "in testing",
                "action": "release",
                "to_state": "released",
                "guard": "QP-sign-off",
            },
        ],
        "initial_state": "sampled",
        "terminal_states": ["released"],
    }
    assert (
        mermaid(declaration)
        == """\
stateDiagram-v2
    state "sampled" as s0
    state "in testing" as s1
    state "released" as s2
    [*] --> s0
    s0 --> s1 : begin-testing
    s1 --> s2 : release [QP-sign-off]
    s2 --> [*]
"""
    )
    assert (
        dot(declaration)
        == """\
digraph {
    rankdir=LR
    node [shape=box, style=rounded]
    initial [shape=point, label=""]
    s0 [label="sampled"]
    s1 [label="in testing"]
    s2 [label="released", peripheries=2]
    initial -> s0
    s0 -> s1 [label="begin-testing"]
    s1 -> s2 [label="release [QP-sign-off]"]
}
"""
    )


def test_no_name_breaks_out() -> None:
    check_mermaid(NAMES)
    check_dot(NAMES)


@given(st.lists(st.text(min_size=1) | st.sampled_from(NAMES), min_size=1, unique=True))
def test_no_text_at_all_breaks_out(names: list[str]) -> None:
    check_mermaid(names)
    check_dot(names)
    mermaid(machine(names)).encode()
    dot(machine(names)).encode()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_every_name() -> None:
    svg = subprocess.run(
        ["dot", "-Tsvg"], input=dot(machine(NAMES)).encode(), capture_output=True, check=True
    ).stdout.decode()
    drawn = {
        html.unescape(text).replace("\xa0", " ") for text in re.findall(r"<text[^>]*>([^<]*)<", svg)
    }
    assert {visible(name) for name in NAMES} <= drawn
