"""Definition files: read with positions, checked, compiled, drawn.

A file is JSON or YAML 1.2. `read_document` gives its value and the place of every part of it;
`load` compiles a machine or a workflow, `load_declaration` gives a bare declaration that the core
accepts; `mermaid`, `dot` and `svg` draw either, and `to_yaml` writes a machine for people. Whatever
is wrong with a file comes as `DefinitionError`, whose diagnostics say where.

    declaration = load_declaration("orders.yaml")
    print(mermaid(declaration))
"""

from interlock.language.declaration import (
    check_document,
    declaration_of,
    load_declaration,
    loads_declaration,
)
from interlock.language.definition import (
    Definition,
    compile_document,
    define,
    is_definition,
    is_machine,
    is_workflow,
    load,
    loads,
    restore,
)
from interlock.language.determinism import Unproved
from interlock.language.diagnostic import DefinitionError, Diagnostic, in_order
from interlock.language.document import Document, load_document, read_document
from interlock.language.drawing import dot, mermaid, svg
from interlock.language.evaluation import holds
from interlock.language.node import BUDGETS, Budgets
from interlock.language.schema import machine_schema, workflow_schema
from interlock.language.write import to_yaml

__all__ = [
    "BUDGETS",
    "Budgets",
    "Definition",
    "DefinitionError",
    "Diagnostic",
    "Document",
    "Unproved",
    "check_document",
    "compile_document",
    "declaration_of",
    "define",
    "dot",
    "holds",
    "in_order",
    "is_definition",
    "is_machine",
    "is_workflow",
    "load",
    "load_declaration",
    "load_document",
    "loads",
    "loads_declaration",
    "machine_schema",
    "mermaid",
    "read_document",
    "restore",
    "svg",
    "to_yaml",
    "workflow_schema",
]
