"""Documents as YAML: what is written reads well, and is read as what was meant."""

import json
import re
from typing import Any

import pytest

from interlock.language import (
    DefinitionError,
    define,
    loads,
    machine_schema,
    read_document,
    to_yaml,
)
from interlock.language.write import BRANCH_KEYS, KEY_MAX, MACHINE_KEYS, STATE_KEYS, WIDTH
from tests.docs.pages import DOCS, code_blocks

TEXTS = [
    "", " ", "  a", "a ", "a  b", "a: b", "a:b", ":a", "a:", "a #b", "#a", "it's", '"a"',
    "say \"x\"", "a\nb", "a\nb\n", "a\nb\n\n", "\na\nb", "a\n\nb", " a\nb", "a\n b", "a\r\nb",
    "a\tb", "\ta", "\n", "back\\slash", "\\n", "\\", "on", "off", "yes", "no", "y", "n",
    "null", "Null", "~", "true", "True", "FALSE", "1", "-1", "+1", "0", "007", "1e3", "1E+3",
    ".5", "5.", "0x1F", "0o17", "0b1", "1_000", "12:30", "2026-01-01", ".inf", "-.INF", ".nan",
    "P1D", "3d", "-", "- a", "-a", "--", "---", "...", "?", "? a", "?a", ":", "@a", "`a`",
    "&a", "*a", "!a", "!!str a", "%a", "|", "|-", ">", "> a", "{a}", "[a]", "a, b", "a]", "a}",
    "<<", "=", "é", "cafe\u0301", "日本語", "😀", "\u00a0", "\u2028", "\u0085", "\ufeff",
    "\u202eabc", "\x1b[0m", "\x7f", "a" * 300, "a b " * 60 + "c", "data.amount < 100",
]  # fmt: skip


def read(text: str) -> Any:
    return read_document(text).value


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_every_text_is_read_back_wherever_it_stands(text: str) -> None:
    document = {
        "machine": text,
        "description": text,
        text or "_": {text: text, "list": [text, [text], {text: text}], "one": [{text: text}]},
        "states": {text: {"on": {text: text}, "on_enter": [text, text]}},
    }
    assert read(to_yaml(document)) == document


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 10**30, 1.5, -0.25, 1e300, 5e-324, [], {}, [[]], [{}], {"a": {}},
     [None, None], {"a": None}, [[1, [2, [3, [4, [5]]]]]], {"a": {"b": {"c": {"d": {"e": 1}}}}}],
    ids=str,
)  # fmt: skip
def test_every_value_is_read_back(value: Any) -> None:
    for document in ({"a": value}, {"a": [value, value]}, {"machine": "m", "states": value}):
        found = read(to_yaml(document))
        assert found == document
        assert json.dumps(found, sort_keys=True) == json.dumps(document, sort_keys=True)


def test_an_empty_document_is_read_back() -> None:
    assert read(to_yaml({})) == {}


def test_a_key_that_yaml_takes_for_no_simple_one_is_read_back() -> None:
    for size in (KEY_MAX - 2, KEY_MAX, KEY_MAX + 1, 5000):
        document = {"k" * size: {"k" * size: 1}, '"' * size: ["a"], "\n" * size: None}
        assert read(to_yaml(document)) == document


def test_the_machine_of_the_page_is_written_as_it_stands_there() -> None:
    (first, *_) = code_blocks(DOCS / "definitions.md", "yaml")
    assert to_yaml(read(first)) == first
    assert loads(to_yaml(loads(first))).digest == loads(first).digest


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_document_of_the_pages_is_read_back(page: Any) -> None:
    for block in code_blocks(page, "yaml"):
        assert read(to_yaml({"": read(block)})) == {"": read(block)}
        if re.search("^machine:", block, re.M):
            assert read(to_yaml(read(block))) == read(block)


def test_keys_are_written_in_one_order_and_names_as_they_come() -> None:
    states = {
        "b": {
            "states": {"c": None},
            "on": {"z": "a", "a": {"guard": "g", "to": "a"}},
            "initial": "c",
        },
        "a": {"final": True},
    }
    document = {"states": states, "initial": "b", "version": 1, "machine": "m"}
    assert to_yaml(document) == (
        "machine: m\n"
        "version: 1\n"
        "initial: b\n"
        "states:\n"
        "  b:\n"
        "    initial: c\n"
        "    on: {z: a, a: {to: a, guard: g}}\n"
        "    states:\n"
        "      c:\n"
        "  a: {final: true}\n"
    )


def test_the_order_knows_every_key_of_the_schema() -> None:
    schema = machine_schema()
    parts = schema["$defs"]
    assert sorted(MACHINE_KEYS) == sorted(schema["properties"])
    kinds = ("atomic", "compound", "parallel", "final", "history")
    assert {*STATE_KEYS} == {key for kind in kinds for key in parts[kind]["properties"]}
    assert sorted(BRANCH_KEYS) == sorted(parts["moment"]["properties"])
    assert {*parts["branch"]["properties"]} < {*BRANCH_KEYS}


def test_a_text_of_several_lines_stands_as_it_is() -> None:
    text = to_yaml({"machine": "m", "description": 'Two: lines,\n  and a "margin".\n'})
    assert text == 'machine: m\ndescription: |\n  Two: lines,\n    and a "margin".\n'


def test_lines_are_broken_where_they_would_be_long() -> None:
    branches = [{"to": f"state-{n}", "when": f"data.amount == {n}"} for n in range(5)]
    many = {f"field_{n}": {"type": "string", "enum": ["one", "two", "three"]} for n in range(9)}
    text = to_yaml({"machine": "m", "data": many, "states": {"a": {"on": {"go": branches}}}})
    assert max(map(len, text.splitlines())) <= WIDTH
    assert '        - {to: state-0, when: "data.amount == 0"}\n' in text
    assert "  field_0: {type: string, enum: [one, two, three]}\n" in text


def test_a_document_in_the_order_of_its_author_means_the_same() -> None:
    document = {
        "states": {"shut": {"on": {"open": "wide"}}, "wide": {"on": {"close": "shut"}}},
        "initial": "shut",
        "machine": "toggle",
    }
    definition = define(document)
    assert read(to_yaml(definition)) == document
    assert loads(to_yaml(document)).digest == definition.digest


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object, b"x"], ids=repr)
def test_what_json_has_not_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match="not made of JSON's values"):
        to_yaml({"machine": value})
