"""Bare declarations from files: the core's defects at their places."""

import json
from pathlib import Path

import pytest

from interlock.core.declaration import declaration_digest, declaration_text
from interlock.language import (
    DefinitionError,
    Diagnostic,
    check_document,
    load_declaration,
    loads_declaration,
    read_document,
)

ORDER = """\
states: [open, paid, shipped]
transitions:
  - {from_state: open, action: pay, to_state: paid, guard: funds}
  - from_state: paid
    action: ship
    to_state: shipped
initial_state: open
terminal_states: [shipped]
"""


def found_in(text: str | bytes, file: str | None = None) -> list[Diagnostic]:
    with pytest.raises(DefinitionError) as caught:
        loads_declaration(text, file=file)
    return list(caught.value.diagnostics)


def digest(data: str | bytes) -> str:
    return declaration_digest(declaration_text(loads_declaration(data)))


def test_a_declaration_is_given_as_written(tmp_path: Path) -> None:
    expected = {
        "states": ["open", "paid", "shipped"],
        "transitions": [
            {"from_state": "open", "action": "pay", "to_state": "paid", "guard": "funds"},
            {"from_state": "paid", "action": "ship", "to_state": "shipped"},
        ],
        "initial_state": "open",
        "terminal_states": ["shipped"],
    }
    assert json.dumps(loads_declaration(ORDER)) == json.dumps(expected)
    (tmp_path / "m.yaml").write_text(ORDER)
    (tmp_path / "m.json").write_text(json.dumps(expected, indent="\t"))
    assert load_declaration(tmp_path / "m.yaml") == expected
    assert load_declaration(str(tmp_path / "m.json")) == expected
    assert check_document(read_document(ORDER)) == []


def test_A13_a_misspelt_guard_is_refused_at_its_key() -> None:
    (found,) = found_in(ORDER.replace("guard: funds", "gaurd: funds"), "m.yaml")
    assert str(found) == (
        "m.yaml:3:53: error[unknown-key]: unknown key `gaurd` (did you mean `guard`?)"
    )
    assert found.path == "transitions[0].gaurd"


def test_A15_one_run_reports_all_with_line_and_path() -> None:
    lines = ["states: [a, b]", "transitions:"]
    lines += [f"  - {{from_state: a, action: x{n}, to_state: b}}" for n in range(3, 401)]
    lines[56] = lines[56].replace("to_state: b", "to_state: bb")
    lines[209] = lines[209].replace("action: x210", "action: 210")
    lines += ["terminal_states: []"]
    found = found_in("\n".join(lines))
    assert [(d.code, d.line, d.column, d.path) for d in found] == [
        ("missing-key", 1, 1, ""),
        ("unknown-state", 57, 44, "transitions[54].to_state"),
        ("wrong-type", 210, 29, "transitions[207].action"),
    ]
    assert "initial_state" in found[0].message


def test_A15_a_missing_key_is_placed_at_its_transition() -> None:
    (found,) = found_in(ORDER.replace("    action: ship\n", ""))
    assert (found.code, found.line, found.column, found.path) == (
        "missing-key",
        4,
        5,
        "transitions[1]",
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"),
    [
        ("initial_state: open", "initial_state: shipped", "initial-final", 7, 16),
        ("initial_state: open", "initial_state: ' '", "bad-name", 7, 16),
        ("[shipped]", "[shiped]", "unknown-state", 8, 19),
        ("[shipped]", "shipped", "wrong-type", 8, 18),
        ("paid, shipped", "paid, shipped, paid", "name-clash", 1, 31),
        ("from_state: paid", "from_state: shipped", "final-with-transitions", 4, 17),
        (
            "from_state: paid\n    action: ship",
            "from_state: open\n    action: pay",
            "nondeterministic",
            4,
            5,
        ),
        ("initial_state", "initial", "unknown-key", 7, 1),
    ],
)
def test_A15_each_defect_has_its_place(
    old: str, new: str, code: str, line: int, column: int
) -> None:
    assert (code, line, column) in [
        (d.code, d.line, d.column) for d in found_in(ORDER.replace(old, new))
    ]


def test_A15_a_message_names_its_subject() -> None:
    (found,) = found_in(ORDER.replace("action: ship", "action: ' '"))
    assert found.message.startswith("`transitions[1].action` is blank")
    (found,) = found_in(ORDER.replace("terminal_states: [shipped]", "terminal_states: 1"))
    assert found.message.startswith("`terminal_states` is ")


@pytest.mark.parametrize("text", ["", "[]", "text", "1", "null"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    (found,) = found_in(text)
    assert (found.code, found.line, found.column) == ("wrong-type", 1, 1)


def test_a_file_with_a_fault_is_not_judged_further() -> None:
    found = found_in(ORDER + "initial_state: nowhere\n")
    assert [d.code for d in found] == ["duplicate-key"]


def test_A16_one_digest_for_every_encoding() -> None:
    windows = ORDER.replace("\n", "\r\n")
    assert digest(ORDER) == digest(windows) == digest(("\ufeff" + windows).encode())
    assert digest(ORDER) == digest(windows.encode("utf-16"))


def test_A17_names_are_kept_byte_for_byte() -> None:
    text = """\
states: ["caf\\u00e9", "cafe\\u0301", " x"]
transitions:
  - {from_state: "caf\\u00e9", action: pay, to_state: "cafe\\u0301"}
  - {from_state: "caf\\u00e9", action: "pay ", to_state: " x"}
initial_state: "caf\\u00e9"
terminal_states: []
"""
    declaration = loads_declaration(text)
    assert declaration["states"] == ["caf\u00e9", "cafe\u0301", " x"]
    assert [t["action"] for t in declaration["transitions"]] == ["pay", "pay "]
