"""An import-linter contract: these packages import the standard library and themselves, no more.

A `forbidden` contract names what is forbidden, and so cannot say "everything else".
`pyproject.toml` registers this one as `stdlib_only` and applies it to `interlock.core`.
"""

import sys
from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class StdlibOnlyContract(Contract):
    """Kept when no module of `modules`, or below them, imports a stranger."""

    modules: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: Any, verbose: bool) -> ContractCheck:  # noqa: ARG002
        strangers = []
        for package in self.modules:
            for importer in sorted({package, *graph.find_descendants(package)} & graph.modules):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    is_own = f"{imported}.".startswith(f"{package}.")
                    if not is_own and imported.partition(".")[0] not in sys.stdlib_module_names:
                        strangers.append(f"{importer} -> {imported}")
        return ContractCheck(kept=not strangers, metadata={"strangers": strangers})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for stranger in check.metadata["strangers"]:
            output.print_error(stranger)
