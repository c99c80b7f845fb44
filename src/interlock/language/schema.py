"""Schemas: the one source of what documents of each kind may hold.

Editors read `machine.schema.json` and `workflow.schema.json`, and documents are checked against
them. `shape` says in words what does not fit, `beside` checks what a schema cannot say; both in one
run.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from interlock.language.beside import check_beside
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import Document
from interlock.language.shape import MACHINE, Shape, Vocabulary, fit


class Checked(NamedTuple):
    """A document after its schema.

    Attributes:
        found: what keeps it from being one of its kind, and warnings.
        sound: the document without what was refused: whatever it holds is of its type, only keys
            that have to be there may be missing. None where parts were refused that others name:
            they would be missed by whoever reads on.
    """

    found: list[Diagnostic]
    sound: Document | None


class Kind(NamedTuple):
    """A kind of document.

    Attributes:
        name: of the kind, and the key by which a document is known to be of it.
        parts: the key of what it is made of, which have names.
        check_beside: what its schema cannot say.
    """

    name: str
    parts: str
    vocabulary: Vocabulary
    check_beside: Callable[[Document, Mapping[str, Any]], list[Diagnostic]]


MACHINES = Kind("machine", "states", MACHINE, check_beside)


def schema_text(kind: str) -> str:
    """Give the JSON Schema (2020-12) of the documents of a kind, as it is published."""
    return (FilePath(__file__).parent / f"{kind}.schema.json").read_text(encoding="utf-8")


def machine_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a machine document, as a fresh copy."""
    return _fresh("machine")


def workflow_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a workflow document, as a fresh copy."""
    return _fresh("workflow")


def _fresh(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schema_text(kind))
    return schema


@cache
def _parsed(kind: str) -> dict[str, Any]:
    return _fresh(kind)


@cache
def _validator(kind: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(_parsed(kind))


def check_schema(document: Document, kind: Kind = MACHINES) -> Checked:
    """Check a document by itself, without what only its parts together show."""
    is_legal = _validator(kind.name).is_valid(document.value)
    if is_legal:
        shape = Shape([], document.value, ())
    else:
        shape = fit(document, _parsed(kind.name), kind.vocabulary)
    found = [*shape.found]
    if isinstance(shape.sound, dict):
        found += kind.check_beside(document, shape.sound)
    if not (is_legal or found):  # refused all the same, should the words ever be wanting
        found.append(document.diagnostic("wrong-type", f"the document is no {kind.name}", ()))
    readable = isinstance(shape.sound, dict) and bool(shape.sound.get(kind.parts))
    is_whole = readable and kind.parts not in shape.lost
    sound = replace(document, value=shape.sound) if is_whole else None
    return Checked([*dict.fromkeys(found)], sound)
