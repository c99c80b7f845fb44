"""The tables of the documentation name what the code has: all of it, and nothing else."""

import ast
import inspect
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import interlock
from interlock.conform import conform
from interlock.core import declaration, rejection
from interlock.core.audit import INVARIANTS
from interlock.core.rejection import Rejected
from interlock.language import builder, machine_schema
from interlock.language.expressions import syntax
from interlock.language.names import RESERVED, SUPERSEDED
from interlock.store.url import POSTGRES_SETTINGS, parse_postgres
from tests.docs.pages import DOCS, ROOT, code_blocks, table, words
from tests.support.machines import BATCH

SOURCES = ROOT / "src" / "interlock"
PYTHON, DECLARATIONS, DEFINITIONS, VERIFICATION = (
    DOCS / f"{name}.md" for name in ("python", "declarations", "definitions", "verification")
)
LEAVES = [
    kind
    for kind in vars(rejection).values()
    if isinstance(kind, type) and issubclass(kind, Rejected) and kind is not Rejected
]
TYPES = [
    keys
    for _, keys in table(DEFINITIONS, "type of state", "keys, beside `label` and `description`")
]
REASONS = table(PYTHON, "reason", "exception", "meaning", "fields")


# From Python


def test_the_wheel_has_the_version_of_the_code() -> None:
    assert f"interlock-{interlock.__version__}-py3" in PYTHON.read_text(encoding="utf-8")


def test_the_table_of_reasons_has_every_refusal_once() -> None:
    named = [(*words(reason), *words(kind)) for reason, kind, *_ in REASONS]
    assert sorted(named) == sorted((kind.reason, kind.__name__) for kind in LEAVES)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.reason)
def test_the_table_of_reasons_has_the_fields_of_each(kind: type[Rejected]) -> None:
    (row,) = [row for row in REASONS if words(row[0]) == [kind.reason]]
    assert set(kind.__annotations__) - {"reason"} <= {*words(row[3])}


def test_refusals_take_precedence_as_the_docstring_of_fire_says() -> None:
    raises = (interlock.Store.fire.__doc__ or "").partition("Raises:")[2].partition("in this order")
    ordered = [getattr(interlock, name).reason for name in re.findall(r"[A-Z]\w+", raises[0])]
    page = PYTHON.read_text(encoding="utf-8")
    assert re.findall(r"^\d+\. `([\w-]+)`", page, re.MULTILINE) == ordered


def test_every_kind_of_storage_failure_is_on_the_page() -> None:
    doc = (interlock.StorageFailure.__doc__ or "").partition("kind:")[2].partition("retryable:")[0]
    (told,) = re.findall(r"^The `kind` of .*$", PYTHON.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*words(told)} - {"kind", "storage-failure"} == {*words(doc)}


def test_every_verb_is_called_on_the_page() -> None:
    blocks = "\n".join(code_blocks(PYTHON, "python"))
    verbs = [name for name in vars(interlock.Store) if not name.startswith("_")]
    assert [name for name in verbs if f"store.{name}(" not in blocks] == []


def test_the_table_of_limits_is_the_limits() -> None:
    told = {words(name)[0]: int(size) for name, size, _ in table(PYTHON, "limit", "size", "of")}
    limits = interlock.Limits()
    assert told == {field.name: getattr(limits, field.name) for field in fields(limits)}


def test_the_table_of_settings_is_the_settings() -> None:
    with pytest.raises(interlock.InvalidRequest) as caught:
        interlock.open("sqlite://?no-such-setting=1")
    known = str(caught.value).partition("known: ")[2].split(", ")
    rows = table(PYTHON, "setting", "values", "meaning")
    assert sorted(words(name)[0] for name, *_ in rows) == sorted(known)


def test_the_table_of_settings_of_postgresql_is_the_settings() -> None:
    rows = table(DOCS / "postgresql.md", "setting", "values", "meaning")
    assert [words(name)[0] for name, *_ in rows] == [*POSTGRES_SETTINGS]
    defaults = {words(name)[0]: words(values)[0] for name, values, _ in rows}
    settings = parse_postgres("postgresql://", None)
    for name in ("schema", "busy_ms", "away_ms", "pool_max"):
        assert defaults[name] == str(getattr(settings, name))


# Declarations


#: What makes a fault, by a code that comes first or is called so.
MAKERS = ("fault", "error", "diagnostic", "Diagnostic", "Defect", "report", "_report", "warn")


def codes_of(*files: Path) -> set[str]:
    """Find the codes in sources: constants where a fault, an error or a diagnostic is made."""
    return called_with(files, MAKERS)


def called_with(files: Iterable[Path], makers: Collection[str]) -> set[str]:
    """Find the codes that some functions are called with."""
    texts = (path.read_text(encoding="utf-8") for path in files)
    return {code for text in texts for code in _codes(ast.parse(text), makers)}


def _codes(tree: ast.AST, makers: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        if called in makers:
            given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "code")]
            for part in (part for value in given for part in ast.walk(value)):
                code = getattr(part, "value", None)
                if isinstance(code, str) and re.fullmatch("[a-z-]+", code):
                    yield code


def test_the_tables_of_codes_are_the_codes_of_the_checks() -> None:
    rules = {words(code)[0] for code, _ in table(DECLARATIONS, "code", "rule that is broken")}
    assert rules == codes_of(SOURCES / "core" / "declaration.py")
    assert "nondeterministic" in rules
    of_files = {words(code)[0] for code, _ in table(DECLARATIONS, "code", "what is wrong")}
    machines = table(DEFINITIONS, "code", "what is wrong with a machine")
    of_machines = {words(code)[0] for code, _ in machines}
    of_expressions = {*get_args(syntax.Code)}
    assert of_files | of_machines == of_expressions | codes_of(*(SOURCES / "language").glob("*.py"))
    assert "duplicate-key" in of_files
    assert "automatic-cycle" in of_machines


def test_the_tables_of_keys_of_a_machine_are_those_of_its_schema() -> None:
    named = {word for key, _ in table(DEFINITIONS, "key", "meaning") for word in words(key)}
    schema = machine_schema()
    kinds = ("atomic", "compound", "parallel", "final", "history")
    parts = [schema, *(schema["$defs"][name] for name in (*kinds, "branch"))]
    known = {key for part in parts for key in part["properties"]}
    assert named == known - {"label", "description"}


def test_the_table_of_types_of_states_is_the_schema() -> None:
    parts = machine_schema()["$defs"]
    kinds = dict(zip(("atomic", "compound", "parallel", "final", "history"), TYPES, strict=True))
    same = {*words(kinds["atomic"])}
    for kind, cell in kinds.items():
        told = {*words(cell.partition(";")[0])}
        if "the same" in cell:
            told |= same
        assert told == {*parts[kind]["properties"]} - {"label", "description"}, kind


def test_the_table_of_reserved_words_is_what_is_reserved() -> None:
    rows = table(DEFINITIONS, "word", "not the name of")
    assert words(rows[0][0]) == [*RESERVED]
    assert words(rows[1][0]) == [SUPERSEDED]


def test_the_tables_of_keys_are_the_keys() -> None:
    named = [word for key, _ in table(DECLARATIONS, "key", "value") for word in words(key)]
    assert sorted(named) == sorted([*declaration.KEYS, *declaration.TRANSITION_KEYS])


# Machines in Python


def test_the_table_of_machines_in_python_has_every_call_and_every_key() -> None:
    page = DOCS / "machines-in-python.md"
    rows = table(page, "in a file", "in Python")
    called = {name for _, how in rows for name in re.findall(r"(\.?\w+)\(", how)}
    functions = {
        name
        for name, value in vars(builder).items()
        if inspect.isfunction(value) and value.__module__ == builder.__name__ and name[0] != "_"
    }
    methods = {
        f".{name}"
        for kind in (builder.Machine, builder.Scope, builder.State)
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and name[0] != "_"
    }
    assert called | {".document", ".define"} == functions | methods | {"Machine"}
    said = {word for key, _ in rows for word in re.findall(r"\w+", key)}
    schema = machine_schema()
    kinds = ("atomic", "compound", "parallel", "final", "history")
    parts = [schema, *(schema["$defs"][name] for name in (*kinds, "branch"))]
    assert {key for part in parts for key in part["properties"]} - {"states"} <= said


# Verification


def test_the_table_of_invariants_has_all_ten() -> None:
    heads = ("", "invariant", "what is promised", "what is a finding")
    told = {int(number): name for number, name, *_ in table(VERIFICATION, *heads)}
    assert told == INVARIANTS
    assert list(told) == [*range(1, 11)]


def test_the_table_of_acceptance_checks_is_what_conform_does() -> None:
    heads = ("check", "what `verify` reads", "what `conform` tries")
    named = [name for name, *_ in table(VERIFICATION, *heads)]
    assert named == [check.name for check in conform(BATCH)]
