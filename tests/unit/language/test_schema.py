"""The shape of machine documents: every fault at its place, in words, in one run."""

from typing import Any

import jsonschema_rs
import pytest

from interlock.language.definition import compile_document, loads
from interlock.language.diagnostic import DefinitionError
from interlock.language.document import read_document
from interlock.language.duration import DurationError, parse_duration
from interlock.language.names import RESERVED
from interlock.language.schema import check_schema, machine_schema
from tests.support.documents import WHOLE


def test_a_document_with_every_key_has_no_fault() -> None:
    assert check_schema(read_document(WHOLE)).found == []


def test_the_schema_alone_says_the_same_and_is_a_lawful_one() -> None:
    schema = machine_schema()
    assert jsonschema_rs.meta.is_valid(schema)
    assert jsonschema_rs.is_valid(schema, read_document(WHOLE).value)
    assert not jsonschema_rs.is_valid(schema, {"machine": "m", "initial": "a", "states": {"a": 1}})


def test_every_key_of_the_schema_is_described_for_editors() -> None:
    schema = machine_schema()
    undescribed = []

    def described(part: dict[str, Any]) -> str:
        if "description" in part or "$ref" not in part:
            return str(part.get("description", ""))
        return described(schema["$defs"][part["$ref"].rpartition("/")[2]])

    def walk(part: Any, where: str) -> None:
        if isinstance(part, list):
            for number, inner in enumerate(part):
                walk(inner, f"{where}/{number}")
        if not isinstance(part, dict):
            return
        for key, inner in part.get("properties", {}).items():
            if not described(inner).endswith("."):
                undescribed.append(f"{where}/properties/{key}")
        for key, inner in part.items():
            walk(inner, f"{where}/{key}")

    walk(schema, "#")
    assert undescribed == []
    assert all(described(part) for part in schema["$defs"].values())


def test_the_names_that_the_schema_refuses_are_those_that_are_reserved() -> None:
    event = jsonschema_rs.validator_for({"pattern": machine_schema()["$defs"]["event"]["pattern"]})
    assert not any(event.is_valid(name) for name in RESERVED)
    assert all(event.is_valid(f"{name}s") for name in RESERVED)


def test_the_schema_knows_the_keys_of_each_type_of_state() -> None:
    parts = machine_schema()["$defs"]
    assert {*parts["history"]["properties"]} == {"type", "history", "to", "label", "description"}
    assert not {"on", "states", "after", "always"} & {*parts["final"]["properties"]}
    assert "initial" not in parts["parallel"]["properties"]
    assert "on_done" not in parts["atomic"]["properties"]


def test_A15_one_run_tells_of_an_unknown_target_a_bad_duration_and_no_beginning() -> None:
    lines = ["machine: m", "states:"]
    lines += [f"  s{n}: {{on: {{next: s{n + 1}}}}}" for n in range(3, 400)]
    lines[56] = "  s57: {on: {next: s5x}}"
    lines[209] = "  s210: {after: {P1M: s3}}"
    lines.append("  s400: {final: true}")
    _, found = compile_document(read_document("\n".join(lines)))
    assert {("unknown-state", 57), ("bad-duration", 210), ("initial-missing", 1)} <= {
        (fault.code, fault.line) for fault in found
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P3D", 259_200), ("PT30M", 1800), ("P1W", 604_800), ("P1DT1H", 90_000), ("PT0.5S", 0.5),
        ("0" * 30 + "5m", 300), ("P" + "0" * 30 + "1D", 86_400), ("PT1.5S", 1.5),
        ("1m", 60), ("500ms", 0.5), ("1h30m", 5400), ("2h", 7200), ("3d", 259_200),
    ],
)  # fmt: skip
def test_a_duration_has_a_length(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds * 1_000_000


@pytest.mark.parametrize(
    "text",
    ["P1Y", "P1M", "P", "PT", "P1DT", "0s", "PT0S", "", "soon", "5", "-1s", "1.5h", "1h1h",
     "P9999999D", "9" * 5000 + "s", " 1s", "PT1,5M", "\u0663d", "P\u0663D", "PT\uff11S",
     "0" * 30 + "s", "1d1d", "T", "P1H", "3dx"],
)  # fmt: skip
def test_what_has_no_certain_length_is_no_duration(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


def test_a_document_that_is_no_mapping_is_refused() -> None:
    for written in ("5", "[]", "machine: 5", ""):
        with pytest.raises(DefinitionError) as refusal:
            loads(written)
        assert refusal.value.diagnostics
