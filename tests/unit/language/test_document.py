"""Rules of the reader, each on libyaml's parser and on the slow one."""

import codecs
import json
import re
import time
import tracemalloc
from importlib import reload
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.language import (
    Budgets,
    DefinitionError,
    Diagnostic,
    load_document,
    read_document,
    yaml_events,
)

PARSERS = [yaml.CSafeLoader, yaml.SafeLoader]


@pytest.fixture(params=PARSERS, ids=["libyaml", "pure"], autouse=True)
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_events, "PARSER", request.param)


def faults(data: str | bytes, **options) -> list[Diagnostic]:
    with pytest.raises(DefinitionError) as caught:
        read_document(data, **options)
    return list(caught.value.diagnostics)


def fault(data: str | bytes, **options) -> Diagnostic:
    (found,) = faults(data, **options)
    return found


def place(found: Diagnostic) -> tuple[str, int | None, int | None]:
    return found.code, found.line, found.column


def bomb(levels: int = 9) -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for one, other in zip("abcdefghi", "bcdefghij"[: levels - 1], strict=False):
        lines.append(f"{other}: &{other} [{','.join([f'*{one}'] * 9)}]")
    return "\n".join(lines)


# --- what plain text means -------------------------------------------------------------------


@pytest.mark.parametrize("key", ["on", '"on"', "'on'"])
def test_A01_a_bare_on_is_text(key: str) -> None:
    value = read_document(f"idle:\n  {key}:\n    start: running\n").value
    assert value == {"idle": {"on": {"start": "running"}}}


@pytest.mark.parametrize(
    "text",
    [
        *("on", "On", "ON", "off", "yes", "Yes", "no", "y", "n", "tRUE", "TrUe", "nULL", "="),
        *(
            "2026-01-01",
            "12:30",
            "12:30:45",
            "1_000",
            "1,000",
            "0b11",
            "0o8",
            "0xg",
            "-0x1",
            "+0o7",
        ),
        *("1e", "1e+", ".", ".e1", "+", "1.2.3", ".Nan", ".iNF", "inf", "nan", "<<x", "-1-"),
    ],
)
def test_A01_what_only_yaml_1_1_takes_for_more_is_text(text: str) -> None:
    assert read_document(f"a: {text}").value == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        *[(word, None) for word in ("null", "Null", "NULL", "~", "")],
        *[("0", 0), ("-0", 0), ("+12", 12), ("-12", -12), ("012", 12), ("08", 8)],
        *[("0o17", 15), ("0x1F", 31), ("0xff", 255)],
        *[("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("+1.5", 1.5), ("09.5", 9.5)],
        *[("1e3", 1000.0), ("1E-3", 0.001), ("1.5e+3", 1500.0), (".5e1", 5.0)],
    ],
)
def test_plain_text_means_what_the_core_schema_says(text: str, value: object) -> None:
    found = read_document(f"a: {text}").value["a"]
    assert found == value
    assert type(found) is type(value)
    assert read_document(f"- '{text}'").value == [text]


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN", "1e400", "-1e400"])
def test_a_number_is_finite(text: str) -> None:
    assert place(fault(f"a:\n  b: {text}")) == ("wrong-type", 2, 6)


def test_keys_are_kept_as_written() -> None:
    text = "1: a\n0x1F: b\n1.0: c\nnull: d\ntrue: e\n~: f\n2026-01-01: g\non: h\n"
    keys = ["1", "0x1F", "1.0", "null", "true", "~", "2026-01-01", "on"]
    assert list(read_document(text).value) == keys
    assert list(read_document("? \n: a").value) == [""]


def test_keys_keep_their_order() -> None:
    assert list(read_document("b: 1\na: 2\nc: 3").value) == ["b", "a", "c"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "---\n...\n", "\ufeff", " \n"])
def test_an_empty_document_is_null(text: str) -> None:
    document = read_document(text)
    assert document.value is None
    assert document.mark(("a", 0)).line >= 1


# --- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "states:\n  paid: {guard: x}\n  open:\n  paid: {}\n",
        'states:\n  paid: {guard: x}\n  open:\n  "paid": {}\n',
        '{"states":{\n  "paid": {"guard": "x"},\n  "open": null,\n  "paid": {}}}\n',
    ],
)
@pytest.mark.parametrize("file", [None, "m.yaml"])
def test_A03_a_duplicate_key_is_refused_with_both_lines(text: str, file: str | None) -> None:
    found = fault(text, file=file)
    assert place(found) == ("duplicate-key", 4, 3)
    assert found.message == "duplicate key `paid`, first on line 2"
    assert found.path == "states.paid"


def test_A03_every_duplicate_is_named() -> None:
    found = faults("a: 1\nb: {c: 1, c: 2}\na: 2\na: 3\nd: [{e: 1, e: 1}]\n")
    assert [(d.line, d.path) for d in found] == [(2, "b.c"), (3, "a"), (4, "a"), (5, "d[0].e")]
    assert {d.code for d in found} == {"duplicate-key"}
    nested = faults("a: 1\na:\n  b: 1\n  b: 2\n? [k]\n: {c: 1, c: 2}\n")
    assert [d.line for d in nested] == [2, 4, 5, 6]


def test_A03_the_line_named_is_that_of_the_key() -> None:
    assert fault("a:\n\n  1\na: 2").message == "duplicate key `a`, first on line 1"


def test_A03_an_aliased_key_is_a_key() -> None:
    assert read_document("a: &k x\n*k : 1").value == {"a": "x", "x": 1}
    assert fault("- &k x\n- {*k : 1, *k : 2}").code == "duplicate-key"


def test_A03_keys_differ_byte_for_byte() -> None:
    assert len(read_document("pay: 1\n'pay ': 2\nPay: 3\ncaf\u00e9: 4\ncafe\u0301: 5").value) == 5


MERGED = """\
defaults: &defaults
  timeout: 1m
  retry: 3
charge:
  <<: *defaults
  timeout: 2m
ship:
  timeout: 3m
  <<: *defaults
"""


def test_A04_a_merged_key_may_be_overridden() -> None:
    value = read_document(MERGED).value
    assert value["charge"] == {"timeout": "2m", "retry": 3}
    assert value["ship"] == {"timeout": "3m", "retry": 3}


def test_A04_a_key_written_twice_beside_a_merge_is_refused() -> None:
    third = "third:\n  <<: *defaults\n  timeout: 1m\n  timeout: 2m\n"
    assert place(fault(MERGED + third)) == ("duplicate-key", 13, 3)


def test_A04_merging_follows_the_list_and_nests() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2, z: 2}\nc: {<<: [*b, *a, {w: 4}], z: 3}"
    assert read_document(text).value["c"] == {"x": 1, "y": 2, "z": 3, "w": 4}


def test_A04_a_merged_mapping_writes_no_key_twice_either() -> None:
    assert place(fault("a: {<<: {b: 1, b: 2}}")) == ("duplicate-key", 1, 16)
    assert fault("x: &x {b: 1, b: 2}\ny: {<<: *x}\nz: {<<: *x}").line == 1
    assert fault("x: &x {b: 1}\ny: {<<: *x, <<: *x}").message.startswith("duplicate key `<<`")


@pytest.mark.parametrize("wrong", ["1", "text", "[1]", "[[{a: 1}]]", "", "[{a: 1}, x]"])
def test_A04_only_mappings_can_be_merged(wrong: str) -> None:
    assert fault(f"<<: {wrong}").code == "wrong-type"


def test_A04_a_quoted_merge_key_is_text() -> None:
    assert read_document('"<<": 1').value == {"<<": 1}
    assert read_document('{"<<": {"a": 1}, "a": 2}').value == {"<<": {"a": 1}, "a": 2}


def test_A04_values_of_an_alias_are_not_shared() -> None:
    value = read_document("a: &a {x: []}\nb: *a\nc: {<<: *a}").value
    value["a"]["x"].append(1)
    assert value == {"a": {"x": [1]}, "b": {"x": []}, "c": {"x": []}}


@pytest.mark.parametrize("text", ["? [a]\n: 1", "{[a]: 1}", "{{a: b}: 1}", "? {a: b}\n: 1"])
def test_complex_keys_are_refused(text: str) -> None:
    assert fault(text).code == "wrong-type"


# --- budgets -----------------------------------------------------------------------------------


def test_A05_an_alias_bomb_is_refused_fast_and_small() -> None:
    text = bomb()
    assert len(text) < 400
    tracemalloc.start()
    began = time.perf_counter()
    found = fault(text)
    assert time.perf_counter() - began < 1
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert found.code == "budget-exceeded"
    assert "100000 nodes" in found.message
    assert "`nodes`" in found.message
    assert found.line is not None


def test_A05_a_bomb_of_merges_or_of_long_text_is_refused_too() -> None:
    merges = re.sub(r"\[(.*)\]", r"{<<: [\1]}", bomb()).replace("x", "{k: 1}")
    assert fault(merges).code == "budget-exceeded"
    text = f"a: &a {'x' * 1000}\nb: [{'*a, ' * 5000}]"
    assert "`bytes`" in fault(text).message
    long = f"a: &a {'x' * 20}\nb: [{', '.join(['*a'] * 8)}]"  # 2 + 9 * 20 characters
    read_document(long, budgets=Budgets(bytes=182))
    assert "once aliases are expanded" in fault(long, budgets=Budgets(bytes=181)).message


def test_A05_nodes_are_counted_exactly() -> None:
    text = "a: &a [x, y]\nb: *a"  # the mapping, two keys, two lists of two
    assert read_document(text, budgets=Budgets(nodes=9)).value == {"a": ["x", "y"], "b": ["x", "y"]}
    assert fault(text, budgets=Budgets(nodes=8)).code == "budget-exceeded"


def test_A05_an_anchor_that_holds_itself_is_refused() -> None:
    assert place(fault("a: &a\n  - *a")) == ("yaml-syntax", 2, 5)
    assert place(fault("a: *b")) == ("yaml-syntax", 1, 4)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1100 + "]" * 1100,
        "[" * 1100,
        "- " * 1100 + "x",
        "[x, " * 1100,
        "{a: " * 1100,
        '{"a":' * 1100,
        "? " * 1100,
        "".join(" " * n + "states:\n" for n in range(300)),
        "".join(" " * (2 * n) + f"s{n}:\n" + " " * (2 * n + 1) + "states:\n" for n in range(300)),
        "l0: &l0 [x]\n" + "".join(f"l{n}: &l{n} [*l{n - 1}]\n" for n in range(1, 300)),
        "l0: &l0 {x: 1}\n" + "".join(f"l{n}: &l{n} {{<<: *l{n - 1}}}\n" for n in range(1, 300)),
    ],
)
def test_A07_deep_nesting_is_an_ordinary_error(text: str) -> None:
    found = fault(text)
    assert found.code == "budget-exceeded"
    assert found.message == "nested deeper than 64 levels (budget `depth`)"
    assert found.line is not None


def test_A07_depth_is_counted_exactly() -> None:
    for text in ("[[[x]]]", "a:\n- - x", "x: &x [1]\ny: [*x]"):
        read_document(text, budgets=Budgets(depth=3))
    assert fault("[[[[]]]]", budgets=Budgets(depth=3)).code == "budget-exceeded"
    assert fault("x: &x [1]\ny: [[*x]]", budgets=Budgets(depth=3)).code == "budget-exceeded"


@pytest.mark.parametrize("data", ["é" * 51, ("é" * 51).encode(), ("é" * 51).encode("utf-16")])
def test_the_budget_of_bytes(data: str | bytes, tmp_path: Path) -> None:
    assert "`bytes`" in fault(data, budgets=Budgets(bytes=101)).message
    assert read_document(data, budgets=Budgets(bytes=104)).value == "é" * 51


def test_a_file_is_not_read_past_its_budget(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"a: 1\n" * 100)
    with pytest.raises(DefinitionError, match="larger than the 100 bytes"):
        load_document(tmp_path / "big.yaml", budgets=Budgets(bytes=100))


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000, "1." + "0" * 5000])
def test_the_budget_of_digits(number: str) -> None:
    assert place(fault(f"a: {number}")) == ("budget-exceeded", 1, 4)
    assert read_document(f'["{number}", {number[:1000]}]').value[0] == number
    assert read_document(f"a: {number} items").value == {"a": f"{number} items"}


# --- places ------------------------------------------------------------------------------------


def test_A15_every_value_and_key_has_its_place() -> None:
    document = read_document('é: [1, 😀,\n  {b: "c"}]\r\nd:\r  - e\n')
    assert document.value == {"é": [1, "😀", {"b": "c"}], "d": ["e"]}
    assert document.marks == {
        (): (1, 1),
        ("é",): (1, 4),
        ("é", 0): (1, 5),
        ("é", 1): (1, 8),
        ("é", 2): (2, 3),
        ("é", 2, "b"): (2, 7),
        ("d",): (4, 3),
        ("d", 0): (4, 5),
    }
    assert document.key_marks == {("é",): (1, 1), ("é", 2, "b"): (2, 4), ("d",): (3, 1)}


def test_A15_a_later_check_points_into_the_document() -> None:
    document = read_document("a: 1\nb:\n  c: 2\nd: 3\n", file="m.yaml")
    found = document.diagnostic("odd", "is odd", ("b", "c"), hint="even", severity="warning")
    assert found.show() == (
        "m.yaml:3:6: warning[odd]: is odd (even)\n    3 |   c: 2\n      |      ^ b.c"
    )
    found = document.diagnostic("odd", "is odd", ("b", "c"), key=True)
    assert (found.severity, found.column) == ("error", 3)


def test_A15_what_is_not_there_is_placed_at_its_parent() -> None:
    document = read_document("a:\n  - b: 1\n")
    assert document.mark(("a", 0, "b"), key=True) == (2, 5)
    assert document.mark(("a", 0, "missing")) == (2, 5)
    assert document.mark(("a", 0, "missing", 3)) == (2, 5)
    assert document.mark(("nothing",), key=True) == (1, 1)


def test_A15_aliases_and_merges_are_placed_where_they_are_written() -> None:
    document = read_document("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}")
    assert document.marks["b", "x"] == document.marks["c", "x"] == (1, 11)
    assert document.key_marks["c", "x"] == (1, 8)
    assert document.marks["c", "y"] == (3, 16)


def test_A15_all_faults_in_one_run() -> None:
    text = 'a: 1\na: 2\nb: !x 1\nc: .nan\n? [d]\n: 1\ne: "\\0"\n<<: 3\n' + f"f: {'9' * 1001}\n"
    assert [(d.code, d.line) for d in faults(text)] == [
        ("duplicate-key", 2),
        ("yaml-syntax", 3),
        ("wrong-type", 4),
        ("wrong-type", 5),
        ("yaml-syntax", 7),
        ("wrong-type", 8),
        ("budget-exceeded", 9),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: [1,\n", 2, 1),
        ("a: 'b\n", 2, 1),
        ("a: b: c", 1, 5),
        ("- a\nb: 1", 2, 1),
        ("a: `b", 1, 4),
        ("a: 1\n---\nb: 2", 2, 1),
        ("a: 1\n...\n---\n", 3, 1),
    ],
)
def test_A15_a_syntax_error_has_its_place(text: str, line: int, column: int) -> None:
    found = fault(text, file="m.yaml")
    assert place(found) == ("yaml-syntax", line, column)
    assert found.file == "m.yaml"
    assert "\n" not in found.message
    assert "yaml." not in found.message


# --- bytes and characters ----------------------------------------------------------------------

PLAIN = "states: [café, 😀]\ninitial_state: café\n"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        ("\ufeff" + PLAIN.replace("\n", "\r\n")).encode(),
        codecs.BOM_UTF16_LE + PLAIN.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + PLAIN.replace("\n", "\r\n").encode("utf-16-be"),
    ],
)
def test_A16_encodings_and_line_ends_change_nothing(data: str | bytes) -> None:
    plain = read_document(PLAIN)
    document = read_document(data)
    assert document.value == plain.value
    assert document.marks == plain.marks
    assert document.key_marks == plain.key_marks


@pytest.mark.parametrize(
    "text", ["a:\n\tb: 1", "a:\n  b: 1\n\tc: 2", "a:\n \tb: 1", "a:\n- b:\n\t- c"]
)
def test_A16_a_tab_indent_is_an_error_with_a_line(text: str) -> None:
    found = fault(text)
    assert found.code == "yaml-syntax"
    assert found.line == text.count("\n") + 1
    assert found.hint == "indent with spaces"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_A16_unmarked_or_wider_encodings_are_refused(encoding: str) -> None:
    found = fault("ab: 1".encode(encoding))
    assert "U+0000" in found.message
    assert found.hint == "save the file as UTF-8"


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        (b"ab: \xc3\xa9\nx\xc3\xa9: \xff", 2, 5, "byte 0xff is not valid utf-8"),
        (b"\xef\xbb\xbfa: \xc3", 1, 4, "byte 0xc3 is not valid utf-8"),
        (b"a: \xed\xa0\x80", 1, 4, "byte 0xed is not valid utf-8"),
        (codecs.BOM_UTF16_LE + b"a\0\n\0b\0\0\xd8", 2, 2, "byte 0x00 is not valid utf-16-le"),
        (codecs.BOM_UTF16_BE + b"\0a\0", 1, 2, "byte 0x00 is not valid utf-16-be"),
    ],
)
def test_A16_bytes_that_are_no_text_are_refused(
    data: bytes, line: int, column: int, message: str
) -> None:
    found = fault(data)
    assert place(found) == ("yaml-syntax", line, column)
    assert found.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: \0", "the text holds the character U+0000"),
        ("a: 1\nb: \ud800", "the text holds a lone surrogate U+D800"),
        ('a: 1\nb: "\\0"', "the text holds the character U+0000"),
        ('a: 1\nb: "x\\x00"', "the text holds the character U+0000"),
        ('[1,\n   "x\\u0000"]', "the text holds the character U+0000"),
        ('{"a": 1,\n"":"\\ud83d"}', "the text holds a lone surrogate U+D83D"),
        ('[1,\n   "\\ude00\\ud83d"]', "the text holds a lone surrogate U+DE00"),
    ],
)
def test_nul_and_lone_surrogates_are_refused(text: str, message: str) -> None:
    found = fault(text)
    assert place(found) == ("yaml-syntax", 2, 4)
    assert found.message == message


def test_a_key_is_text_that_can_be_stored() -> None:
    assert fault('"a\\0": 1').code == "yaml-syntax"
    assert fault('{"\\ud800": 1}').code == "yaml-syntax"


@pytest.mark.parametrize("char", [*"\x07\x7f\x85\x9f\u2028\u2029\ufeff\ufffe"])
def test_yaml_takes_some_characters_only_escaped(char: str) -> None:
    found = fault(f"a: 1\nb: x{char}y")
    assert place(found) == ("yaml-syntax", 2, 5)
    assert f"U+{ord(char):04X}" in found.message
    escaped = f'a: 1\nb: "x\\u{ord(char):04x}y"'
    assert read_document(escaped).value == {"a": 1, "b": f"x{char}y"}
    if char != "\x07":
        assert read_document(f'["x{char}y"]').value == [f"x{char}y"]  # JSON takes it


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '- "\\UFFFFFFFF"', '- "\\U00110000"', "%YAML 1." + "9" * 5000]
)
def test_escapes_of_no_character_are_refused(text: str) -> None:
    assert fault(text).code == "yaml-syntax"


@pytest.mark.parametrize(
    "text",
    [
        "a: !x 1",
        "a: !!python/object/apply:os.system [id]",
        "a: !!str 1",
        "a: !!int '1'",
        "a: ! b",
        "a: !<tag:x> {}",
        "!x a: 1",
        "%TAG !e! tag:x,2026:\n---\na: !e!y 1",
    ],
)
def test_tags_are_refused(text: str) -> None:
    assert fault(text).code == "yaml-syntax"
    assert "tag" in fault(text).message


# --- JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{\n\t"a":\t1\n}', {"a": 1}),
        ('["a\\/b"]', ["a/b"]),
        ('["\\ud83d\\ude00"]', ["😀"]),
        ('"\\ud83d\\ude00"', "😀"),
        ('{"a"\n:1}', {"a": 1}),
        (f'{{"{"k" * 5000}":1}}', {"k" * 5000: 1}),
        ('["\x7f\x85\u2028\ufeff\ufffe"]', ["\x7f\x85\u2028\ufeff\ufffe"]),
        ("\ufeff \r\n[ ]\r\n", []),
        (
            '{"a":[{},[],"",null,true,false,-0,-0.0,1E+2]}',
            {"a": [{}, [], "", None, True, False, 0, -0.0, 100.0]},
        ),
        ('{"":{"":1}}', {"": {"": 1}}),
        (
            '["on","1","null","<<","# x","*a","&a","!a","- x","a: b","%"]',
            ["on", "1", "null", "<<", "# x", "*a", "&a", "!a", "- x", "a: b", "%"],
        ),
        ('"\\"\\\\\\b\\f\\n\\r\\t\\u00e9"', '"\\\b\f\n\r\té'),
    ],
)
def test_legal_json_is_read_right(text: str, value: object) -> None:
    for file in (None, "m.yaml", "m.json", "M.JSON"):
        assert json.dumps(read_document(text, file=file).value) == json.dumps(value)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "JSON takes a value here, not the end"),
        ("[1,\n]", 2, 1, "JSON takes a value here, not `]`"),
        ('{"a":1,}', 1, 8, "JSON takes quoted text here, not `}`"),
        ("[1 2]", 1, 4, "JSON takes `,` or `]` here, not `2`"),
        ('{"a" 1}', 1, 6, "JSON takes `:` here, not `1`"),
        ("{a: 1}", 1, 2, "JSON takes `}` or quoted text here, not `a`"),
        ("[01]", 1, 3, "JSON takes `,` or `]` here, not `1`"),
        ("[1.]", 1, 3, "JSON takes `,` or `]` here, not `.`"),
        ("[+1]", 1, 2, "JSON takes `]` or a value here, not `+`"),
        ("[NaN]", 1, 2, "JSON takes `]` or a value here, not `NaN`"),
        ("[True]", 1, 2, "JSON takes `]` or a value here, not `True`"),
        ("1 2", 1, 3, "JSON takes nothing more here, not `2`"),
        ("[1]]", 1, 4, "JSON takes nothing more here, not `]`"),
        ('{"a":1]', 1, 7, "JSON takes `,` or `}` here, not `]`"),
        ("[1", 1, 3, "JSON takes `,` or `]` here, not the end"),
        ("// x\n1", 1, 1, "JSON takes a value here, not `/`"),
        ("a: 1", 1, 1, "JSON takes a value here, not `a`"),
        ("[,]", 1, 2, "JSON takes `]` or a value here, not `,`"),
        ('["a\tb"]', 1, 2, "a text has no end here, or"),
        ('["\\x41"]', 1, 2, "a text has no end here, or"),
        ('["\\u12"]', 1, 2, "a text has no end here, or"),
        ('["a', 1, 2, "a text has no end here, or"),
        ("[1,\xa02]", 1, 4, "JSON takes a value here, not"),
    ],
)
def test_a_json_file_holds_json(text: str, line: int, column: int, message: str) -> None:
    found = fault(text, file="m.json")
    assert place(found) == ("yaml-syntax", line, column)
    assert found.message.startswith(message)
    with pytest.raises(ValueError):  # noqa: PT011
        json.loads(text, parse_constant=lambda word: json.loads(f"no {word}"))


def test_yaml_may_begin_like_json() -> None:
    assert read_document("{a: 1, b: [x,],}").value == {"a": 1, "b": ["x"]}
    assert read_document('"a": 1\nb: 2').value == {"a": 1, "b": 2}
    assert read_document("[a]: 1".replace("[a]", '"[a]"')).value == {"[a]": 1}


# --- properties --------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)
TEXTS = st.recursive(
    TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)
NOISE = st.text(st.sampled_from("[]{}:,-?!&*#|>'\"%@`~<\\ \t\n\r\ufeff\x85ab01.eutn\0é\ud800"))


@given(JSON, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_json_reads_back_equal(value: object, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    for data in (text, text.encode(), text.replace("\n", "\r\n")):
        document = read_document(data)
        assert document.value == value
        assert json.dumps(document.value) == json.dumps(value)  # 1, 1.0 and true differ


@given(TEXTS, st.booleans())
def test_quoted_yaml_reads_back_equal(value: object, flow: bool) -> None:
    text = yaml.safe_dump(value, default_style='"', default_flow_style=flow, sort_keys=False)
    assert read_document(text).value == value


@given(JSON, st.sampled_from([None, 1]))
def test_every_mark_is_where_its_text_is(value: object, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    lines = text.split("\n")
    document = read_document(text)

    def at(mark: tuple[int, int]) -> str:
        return "\n".join([lines[mark[0] - 1][mark[1] - 1 :], *lines[mark[0] :]])

    def walk(value: object, path: tuple[str | int, ...]) -> int:
        here = at(document.marks[path])
        match value:
            case dict():
                for key in value:
                    assert at(document.key_marks[*path, key]).startswith(
                        json.dumps(key, ensure_ascii=False)
                    )
                return here.startswith("{") + sum(walk(value[key], (*path, key)) for key in value)
            case list():
                return here.startswith("[") + sum(walk(v, (*path, n)) for n, v in enumerate(value))
            case _:
                return here.startswith(json.dumps(value, ensure_ascii=False))

    assert walk(value, ()) == len(document.marks)


@settings(max_examples=400)
@given(NOISE | st.text() | st.binary(), st.sampled_from([None, "x.json"]), st.sampled_from(PARSERS))
@example("%", None, yaml.SafeLoader)
@example("&a [*a]", None, yaml.CSafeLoader)
def test_anything_is_read_or_refused(data: str | bytes, file: str | None, parser: type) -> None:
    yaml_events.PARSER = parser  # the fixture puts the old one back
    try:
        read_document(data, file=file)
    except DefinitionError as error:
        refused = error.diagnostics
    else:
        return
    assert refused
    for found in refused:
        assert found.line is not None
        assert "\n" not in str(found)
        assert found.show().count("\n") == 2
        json.dumps(found.as_dict())


# --- files -------------------------------------------------------------------------------------


def test_a_file_is_named_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("a: 1\na: 2\n")
    for name in (path, str(path)):
        with pytest.raises(DefinitionError, match=r"m\.yaml:2:1: error\[duplicate-key\]"):
            load_document(name)
    path.write_bytes("é: 1".encode("utf-16"))
    assert load_document(path).value == {"é": 1}


@pytest.mark.parametrize("name", ["missing.yaml", "", "nul\0.yaml", "missing/deep.json"])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as caught:
        load_document(f"{tmp_path}/{name}")
    (found,) = caught.value.diagnostics
    assert found.code == "unreadable"
    assert found.file == f"{tmp_path}/{name}"
    assert found.line is None
    assert "\0" not in str(found)


def test_the_slow_parser_is_used_only_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reload(yaml_events).PARSER is yaml.CSafeLoader
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert reload(yaml_events).PARSER is yaml.SafeLoader
