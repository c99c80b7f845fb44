"""Bare declarations from files: what the core finds wrong, at the place where it is written.

    load_declaration("orders.yaml")   -> {"states": […], "transitions": […], …}, keys in file order

The core says what a declaration is; this module only reads one and finds the places. A file that is
not read without faults is not checked further, for what it means is not certain.
"""

import os
from typing import Any

from interlock.core.declaration import Defect, check_declaration, path_text
from interlock.language.diagnostic import DefinitionError, Diagnostic, in_order
from interlock.language.document import Document, load_document, read_document
from interlock.language.node import BUDGETS, Budgets


def load_declaration(path: str | os.PathLike[str], *, budgets: Budgets = BUDGETS) -> dict[str, Any]:
    """Read a declaration from a JSON or YAML file.

    Raises:
        DefinitionError: the file cannot be read, or holds no well-formed declaration; every defect
            is among the diagnostics.
    """
    return declaration_of(load_document(path, budgets=budgets))


def loads_declaration(
    data: str | bytes, *, file: str | None = None, budgets: Budgets = BUDGETS
) -> dict[str, Any]:
    """Read a declaration from a text, as `load_declaration` does from a file."""
    return declaration_of(read_document(data, file=file, budgets=budgets))


def check_document(document: Document) -> list[Diagnostic]:
    """List what keeps a document from being a declaration, in order of place."""
    return in_order(_located(defect, document) for defect in check_declaration(document.value))


def declaration_of(document: Document) -> dict[str, Any]:
    """Give the declaration that a document holds.

    Raises:
        DefinitionError: it is not well formed.
    """
    if diagnostics := check_document(document):
        raise DefinitionError(diagnostics)
    declaration: dict[str, Any] = document.value
    return declaration


def _located(defect: Defect, document: Document) -> Diagnostic:
    """Place a defect: an unknown key at the key, a missing one where its mapping begins."""
    message = defect.message
    if message.startswith(("is ", "holds ")):  # the core leaves the subject to the path
        message = f"`{path_text(defect.path)}` {message}"
    unknown = defect.code == "unknown-key"
    return document.diagnostic(defect.code, message, defect.path, hint=defect.hint, key=unknown)
