"""The schema of machine documents: the one source of what a document may hold.

Editors read `machine.schema.json`, and it is what documents are checked against. `shape` says in
words what does not fit, `beside` checks what a schema cannot say; both in one run.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from interlock.language.beside import check_beside
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import Document
from interlock.language.shape import Shape, fit


class Checked(NamedTuple):
    """A document after its schema.

    Attributes:
        found: what keeps it from being one of a machine, and warnings.
        sound: the document without what was refused: whatever it holds is of its type, only keys
            that have to be there may be missing. None where states were refused as well: their
            names would be missed by whoever reads on.
    """

    found: list[Diagnostic]
    sound: Document | None


def schema_text() -> str:
    """Give the JSON Schema (2020-12) of a machine document, as it is published."""
    return (FilePath(__file__).parent / "machine.schema.json").read_text(encoding="utf-8")


def machine_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a machine document, as a fresh copy."""
    schema: dict[str, Any] = json.loads(schema_text())
    return schema


@cache
def _parsed() -> dict[str, Any]:
    return machine_schema()


@cache
def _validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(_parsed())


def check_schema(document: Document) -> Checked:
    """Check a document by itself, without what only its tree of states shows."""
    is_legal = _validator().is_valid(document.value)
    shape = Shape([], document.value, ()) if is_legal else fit(document, _parsed())
    found = [*shape.found]
    if isinstance(shape.sound, dict):
        found += check_beside(document, shape.sound)
    if not (is_legal or found):  # refused all the same, should the words ever be wanting
        found.append(document.diagnostic("wrong-type", "the document is no machine", ()))
    readable = isinstance(shape.sound, dict) and bool(shape.sound.get("states"))
    tree_is_whole = readable and "states" not in shape.lost
    sound = replace(document, value=shape.sound) if tree_is_whole else None
    return Checked([*dict.fromkeys(found)], sound)
