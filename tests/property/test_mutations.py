"""Spoilt documents: whatever is done to one, it compiles, or is refused with places.

`make fuzz` does this for a minute and tries new ones each time.
"""

import copy
import json
import os
import secrets
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, event, given, seed, settings

from interlock.core.declaration import check_declaration
from interlock.language.definition import loads
from interlock.language.diagnostic import DefinitionError
from interlock.language.document import read_document
from interlock.language.flows.flow import WORKFLOWS
from interlock.language.schema import MACHINES, Kind, check_schema, machine_schema, workflow_schema
from interlock.language.shape import fit
from tests.support.documents import DOCUMENTS, spoilt_texts, spoilt_values
from tests.support.strategies import examples

SECONDS = float(os.environ.get("INTERLOCK_FUZZ_SECONDS", "0"))


def judge(text: bytes) -> None:
    """Compile a text; nothing but a definition or placed diagnostics may come of it."""
    lines = text.decode("utf-8", "replace").count("\n") + text.count(b"\r") + 1
    try:
        definition = loads(text, file="spoilt.yaml", states_max=200)
    except DefinitionError as error:
        refusal = error
    else:
        event("compiles")
        assert check_declaration(definition.declaration) == []
        return
    event("refused")
    assert any(found.severity == "error" for found in refusal.diagnostics)
    for found in refusal.diagnostics:
        assert found.message
        assert found.code
        assert 1 <= (found.line or 0) <= lines, str(found)
        assert (found.column or 0) >= 1
        assert found.show().startswith("spoilt.yaml:")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_are_valid_before_they_are_spoilt(name: str) -> None:
    definition = loads(DOCUMENTS[name])
    assert definition.flat.branches or definition.plan is not None


@examples(1500)
@given(spoilt_texts())
def test_a_spoilt_document_compiles_or_is_refused_with_places(text: bytes) -> None:
    judge(text)


@pytest.mark.skipif(not SECONDS, reason="INTERLOCK_FUZZ_SECONDS says for how long; see make fuzz")
@pytest.mark.timeout(SECONDS + 300)
def test_spoilt_documents_for_as_long_as_is_asked() -> None:
    ends = time.monotonic() + SECONDS
    tried = settings(
        max_examples=300,
        derandomize=False,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    while time.monotonic() < ends:
        seed(secrets.randbits(64))(tried(given(spoilt_texts())(judge)))()


def without(part: Any, *words: str) -> Any:
    """The same schema without some of its keywords, and without the patterns of names."""
    if isinstance(part, list):
        return [without(one, *words) for one in part]
    if not isinstance(part, dict):
        return part
    dropped = {*words, "propertyNames"}
    if part.get("pattern", "").startswith("^"):
        dropped.add("pattern")
    dropped.add("properties")
    kept = {key: without(of, *words) for key, of in part.items() if key not in dropped}
    if "properties" in part:  # its keys are no keywords
        kept["properties"] = {key: without(of, *words) for key, of in part["properties"].items()}
    return kept


class Schema:
    """The schema of one kind of document, and what is left of it without some of its demands."""

    def __init__(self, kind: Kind, schema: dict[str, Any]) -> None:
        self.kind = kind
        self.whole = schema
        self.validator = jsonschema_rs.validator_for(schema)
        self.lenient = jsonschema_rs.validator_for(without(schema, "required"))
        self.nameless = jsonschema_rs.validator_for(without(schema))


SCHEMAS = [Schema(MACHINES, machine_schema()), Schema(WORKFLOWS, workflow_schema())]


@examples(1000)
@given(spoilt_values())
def test_what_does_not_fit_is_what_a_validator_refuses(value: Any) -> None:
    document = read_document(json.dumps(value))
    before = copy.deepcopy(document.value)
    for schema in SCHEMAS:
        shape = fit(document, schema.whole, schema.kind.vocabulary)
        assert (shape.found == []) == schema.nameless.is_valid(value)
        if not shape.found:
            assert shape.sound == value
        if shape.sound is not None:
            assert schema.lenient.is_valid(shape.sound)
        checked = check_schema(document, schema.kind)
        assert bool(checked.found) or schema.validator.is_valid(value)
        said = f"the document is no {schema.kind.name}"
        assert not any(found.message == said for found in checked.found)
    assert document.value == before
