"""The shape of machine documents: every fault at its place, in words, in one run."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest

from interlock.language.definition import compile_document, loads
from interlock.language.diagnostic import DefinitionError
from interlock.language.document import read_document
from interlock.language.duration import DurationError, parse_duration
from interlock.language.schema import check_schema, machine_schema

WHOLE = """
machine: m
version: 1
description: all that there is
data: {amount: {type: number}, due_at: {type: date-time, optional: true}}
events: {measured: {yield_pct: {type: number}}}
initial: a
conflicts: first-region
gates: {QP: {approver: "role:qp"}}
states:
  a:
    label: first
    on_enter: notify
    on_exit: [close, {raise: closed}]
    on:
      go: b
      stay: {do: [ring], name: here}
      measured: {to: b, set: {amount: event.yield_pct}, guard: QP, description: more}
      pick: [{to: b, when: data.amount < 1.0}, {to: p, when: {not: {check: ok}}}]
      first: {order: first-match, branches: [{to: b, when: {all: [{in: p.x}]}}, {to: c, otherwise: true}]}
      into: {to: [p.x.x1, p.y]}
    always: {to: b, when: {any: [data.amount > 100.0, {check: late}]}}
    after: {P3D: c, soon: {at: data.due_at, to: c}}
  b: {initial: b1, on_done: c, data: [amount], states: {b1: , h: {type: history, history: deep, to: b1}}}
  p: {type: parallel, order: [y, x], states: {x: {initial: x1, states: {x1: {}}}, y: {}}}
  c: {final: true}
never: [{reach: c, without: {guard: QP}}, {reach: c, without: b}, {reach: c, without: {action: go}}]
"""  # noqa: E501 (as it is written)


def codes(document: str) -> list[tuple[str, int | None, int | None]]:
    return [(d.code, d.line, d.column) for d in check_schema(read_document(document))]


def test_a_document_with_every_key_has_no_fault() -> None:
    assert check_schema(read_document(WHOLE)) == []


def test_the_schema_alone_says_the_same_and_is_a_lawful_one() -> None:
    schema = machine_schema()
    assert jsonschema_rs.meta.is_valid(schema)
    assert jsonschema_rs.is_valid(schema, read_document(WHOLE).value)
    assert not jsonschema_rs.is_valid(schema, {"machine": "m", "initial": "a", "states": {"a": 1}})


def test_every_key_of_the_schema_is_described_for_editors() -> None:
    schema = machine_schema()
    parts = {"": schema, **schema["$defs"]}
    undescribed = []
    for name, part in parts.items():
        listed = [part, *part.get("anyOf", ())]
        for key, inner in ((k, i) for one in listed for k, i in one.get("properties", {}).items()):
            if "$ref" in inner:
                inner = schema["$defs"][inner["$ref"].rpartition("/")[2]]
            if not inner.get("description"):
                undescribed.append(f"{name}.{key}")
    assert undescribed == []


HEAD = "machine: m\ninitial: a\nstates:\n"


@pytest.mark.parametrize(
    ("state", "code", "hint"),
    [
        ("{on: {go: {to: a, gaurd: ok}}}", "unknown-key", "`guard`"),  # case A13
        ("{on: {go: {target: a}}}", "unknown-key", "`to`"),
        ("{on: {go: {to: a, cond: x}}}", "unknown-key", "`when`"),
        ("{on: {go: {to: a, if: x}}}", "unknown-key", "`when`"),
        ("{on: {go: {to: a, actions: x}}}", "unknown-key", "`do`"),
        ("{entry: x}", "unknown-key", "`on_enter`"),
        ("{exit: x}", "unknown-key", "`on_exit`"),
        ("{on: {go: [{to: a, wehn: x}]}}", "unknown-key", "`when`"),
        ("{on: {go: {to: a, when: {chek: x}}}}", "unknown-key", "`check`"),
        ("{on: {go: 5}}", "wrong-type", None),
        ("{on: {go: {to: a, when: 5}}}", "wrong-type", None),
        ("{final: yes}", "wrong-type", None),
        ("{on: {go: {to: a, otherwise: true}}}", "wrong-type", None),
        ("{states: {b: {}}}", "initial-missing", "initial: b"),
        ("{type: parallel}", "missing-key", None),
        ("{on: {go: {to: a, guard: data.x < 1}}}", "guard-is-expression", "`when`"),
        ("{after: {P1Y: a}}", "bad-duration", None),
        ("{after: {soon: a}}", "bad-duration", None),
        ("{on: {done: a}}", "bad-name", None),
        ("{on: {a.b: a}}", "bad-name", None),
        ("{on: {'go ': a}}", "bad-name", None),
        ("{on: {caf\u00e9: a, cafe\u0301: a}}", "name-clash", None),  # case A17
    ],
)
def test_each_fault_has_its_code_and_a_hint(state: str, code: str, hint: str | None) -> None:
    (found,) = check_schema(read_document(f"{HEAD}  a: {state}\n"))
    assert found.code == code
    assert found.line == 4
    assert hint is None or hint in (found.hint or ""), found.hint


def test_C01_a_name_with_a_dot_is_refused_and_one_with_an_underline_is_not() -> None:
    assert (
        codes(f"{HEAD}  a: {{initial: b, states: {{b: {{}}}}}}\n  a.b: {{}}\n")[0][0] == "bad-name"
    )
    assert codes(f"{HEAD}  a: {{}}\n  app_draft: {{}}\n") == []


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


@pytest.mark.parametrize("seed", range(200))
def test_no_mutation_of_a_document_gives_anything_but_diagnostics(seed: int) -> None:
    rng = random.Random(seed)
    odd: list[Any] = [None, 5, -1.5, True, "", "x", [], {}, [1], {"a": 1}, "a.b", [[]], {"": None}]

    def mutated(value: Any) -> Any:
        if rng.random() < 0.03:
            return rng.choice(odd)
        if isinstance(value, dict):
            return {
                (key if rng.random() > 0.02 else rng.choice(["x", "on", "to", "states"])): mutated(
                    of
                )
                for key, of in value.items()
            }
        return [mutated(part) for part in value] if isinstance(value, list) else value

    document = read_document(json.dumps(mutated(read_document(WHOLE).value)))
    definition, found = compile_document(document)
    assert definition is not None or found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P3D", 259_200), ("PT30M", 1800), ("P1W", 604_800), ("P1DT1H", 90_000), ("PT0.5S", 0.5),
        ("1m", 60), ("500ms", 0.5), ("1h30m", 5400), ("2h", 7200), ("3d", 259_200),
    ],
)  # fmt: skip
def test_a_duration_has_a_length(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds * 1_000_000


@pytest.mark.parametrize(
    "text",
    ["P1Y", "P1M", "P", "PT", "P1DT", "0s", "PT0S", "", "soon", "5", "-1s", "1.5h", "1h1h",
     "P9999999D", "9" * 5000 + "s", " 1s", "PT1,5M"],
)  # fmt: skip
def test_what_has_no_certain_length_is_no_duration(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


def test_a_document_that_is_no_mapping_is_refused() -> None:
    for written in ("5", "[]", "machine: 5", ""):
        with pytest.raises(DefinitionError) as refusal:
            loads(written)
        assert refusal.value.diagnostics
