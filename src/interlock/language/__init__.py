"""Definition files: read with positions, checked, drawn.

A file is JSON or YAML 1.2. `read_document` gives its value and the place of every part of it;
`load_declaration` gives a bare declaration that the core accepts; `mermaid` and `dot` draw one.
Whatever is wrong with a file comes as `DefinitionError`, whose diagnostics say where.

    declaration = load_declaration("orders.yaml")
    print(mermaid(declaration))
"""

from interlock.language.declaration import (
    check_document,
    load_declaration,
    loads_declaration,
)
from interlock.language.diagnostic import DefinitionError, Diagnostic, in_order
from interlock.language.document import Document, load_document, read_document
from interlock.language.draw import dot, mermaid
from interlock.language.node import BUDGETS, Budgets

__all__ = [
    "BUDGETS",
    "Budgets",
    "DefinitionError",
    "Diagnostic",
    "Document",
    "check_document",
    "dot",
    "in_order",
    "load_declaration",
    "load_document",
    "loads_declaration",
    "mermaid",
    "read_document",
]
