"""Machines as people wrote them: each is imported or refused by name, and counted as it should be.

They belong to others (Stately exports, Apache Commons SCXML) and are not kept here; without them
the tests are skipped.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from interlock.language import define, loads
from interlock.language.convert import Converted, ConvertError, from_scxml, from_xstate, to_yaml
from interlock.language.expressions.expression import Scope, compile_expression
from interlock.language.expressions.properties import read_properties
from tests.docs.pages import DOCS, table
from tests.support.shared import conformance, needed

COUNTED = (
    "states", "atomic", "compound", "parallel", "final", "history", "depth", "transitions",
    "guarded", "eventless", "events",
)  # fmt: skip

#: What is refused, by the code that says why. Where a file has several, the first that is met.
REFUSED = {
    "commons-scxml/custom-hello-world-01.xml": "unsupported",
    "commons-scxml/custom-hello-world-02.xml": "unsupported",
    "commons-scxml/custom-hello-world-03.xml": "unsupported",
    "commons-scxml/custom-hello-world-04-jexl.xml": "unsupported",
    "commons-scxml/env__jexl__datamodel-05.xml": "assign-location",
    "commons-scxml/env__jexl__eventdata-03.xml": "send-with-data",
    "commons-scxml/env__jexl__microwave-01.xml": "unsupported",
    "commons-scxml/env__jexl__microwave-04.xml": "unsupported",
    "commons-scxml/env__jexl__microwave-05.xml": "unsupported",
    "commons-scxml/env__jexl__script-01.xml": "unsupported",
    "commons-scxml/env__jexl__static-method.xml": "initial-final",
    "commons-scxml/env__jexl__wizard-02.xml": "send-with-data",
    "commons-scxml/external-hello-world.xml": "src",
    "commons-scxml/invoke__invoker-01.xml": "unsupported",
    "commons-scxml/invoke__invoker-02.xml": "unsupported",
    "commons-scxml/invoke__invoker-03.xml": "unsupported",
    "commons-scxml/invoke__invoker-04.xml": "unsupported",
    "commons-scxml/io__custom-action-body-test-1.xml": "unsupported",
    "commons-scxml/io__data-with-expr.xml": "initial-final",
    "commons-scxml/io__data-with-src-and-expr.xml": "src",
    "commons-scxml/io__data-with-src.xml": "src",
    "commons-scxml/io__scxml-initial-attr.xml": "initial-final",
    "commons-scxml/io__scxml-invalid-transition-targets-test1.xml": "targets-apart",
    "commons-scxml/io__scxml-with-invalid-elems.xml": "unsupported",
    "commons-scxml/io__src-test-1.xml": "src",
    "commons-scxml/io__src-test-2.xml": "src",
    "commons-scxml/io__src-test-5.xml": "src",
    "commons-scxml/issues__issue62-01.xml": "src",
    "commons-scxml/issues__issue62-03.xml": "src",
    "commons-scxml/model__actions-parallel-test.xml": "unsupported",
    "commons-scxml/model__assign-test-01.xml": "assign-location",
    "commons-scxml/model__assign-test-02.xml": "assign-location",
    "commons-scxml/model__send-test-01.xml": "send-with-data",
    "commons-scxml/transitions-02.xml": "unsupported",
    "commons-scxml/transitions-with-cond-01.xml": "expression",
    "stately/debt_v3.json": "final-with-states",
}


def facts() -> dict[str, dict[str, Any]]:
    """Give what is known of each file, by its path in the folder."""
    folder = conformance("wild")
    if folder is None:
        return {}
    listed = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return {name.removeprefix("wild/"): its for name, its in listed.items()}


def imported(file: Path) -> Converted:
    read = from_xstate if file.suffix == ".json" else from_scxml
    return read(file.read_bytes(), file=file.name)


@pytest.fixture
def folder() -> Path:
    return needed("wild")


def test_every_file_is_known(folder: Path) -> None:
    files = {*folder.glob("*/*.json"), *folder.glob("*/*.xml")}
    assert {str(file.relative_to(folder)) for file in files} == {*facts()}


@pytest.mark.parametrize("name", [name for name in facts() if name not in REFUSED])
def test_a_file_is_imported_whole_and_compiles(name: str, folder: Path) -> None:
    converted = imported(folder / name)
    assert {key: converted.counts[key] for key in COUNTED} == {
        key: facts()[name][key] for key in COUNTED
    }
    definition = define(converted.definition)
    assert loads(to_yaml(converted.definition)) == definition
    left_out = [note for note in converted.notes if note.code == "unreachable-state"]
    assert bool(left_out) >= bool(facts()[name]["unreachable"])
    scope = Scope(read_properties(converted.definition.get("data", {})))
    for branch in definition.flat.branches:
        for field, text in branch.sets:
            compile_expression(text, scope, wants=scope.data.types()[field])


@pytest.mark.parametrize("name", [name for name in facts() if name in REFUSED])
def test_a_file_that_says_what_we_cannot_is_refused_by_name(name: str, folder: Path) -> None:
    with pytest.raises(ConvertError) as caught:
        imported(folder / name)
    assert REFUSED[name] in {fault.code for fault in caught.value.diagnostics}
    assert all(fault.line is not None for fault in caught.value.diagnostics)


def test_the_scores_are_those_that_the_page_states(folder: Path) -> None:
    found = Counter(
        (n.partition("/")[0], "refused" if n in REFUSED else "imported") for n in facts()
    )
    stated = {
        (suite.strip("`"), result): int(count)
        for suite, *counts in table(DOCS / "conformance.md", "wild", "files", "imported", "refused")
        for result, count in zip(("imported", "refused"), counts[1:], strict=True)
    }
    assert stated == dict(found)
