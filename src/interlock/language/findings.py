"""What the passes of the compiler find, each thing once, at its place in the document.

findings = Findings(document)
findings.report("unknown-state", "there is no state `payed`", ("states", "new", "on", "pay"))
findings.has_errors       -> True
"""

from interlock.core.declaration import Path
from interlock.language.diagnostic import Diagnostic, in_order
from interlock.language.document import Document
from interlock.language.expressions.syntax import ExpressionFault


class Findings:
    """Gathers diagnostics."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._found: dict[tuple[str, str, str], Diagnostic] = {}

    def add(self, finding: Diagnostic) -> None:
        """Add what another part has found."""
        self._found.setdefault((finding.code, finding.path, finding.message), finding)

    def report(
        self, code: str, message: str, where: Path, hint: str | None = None, *, key: bool = False
    ) -> None:
        """Add a fault that keeps the document from being used."""
        found = self.document.diagnostic(code, message, where, hint=hint, key=key)
        self.add(found)

    def warn(self, code: str, message: str, where: Path, hint: str | None = None) -> None:
        """Add what does not keep it from being used."""
        found = self.document.diagnostic(code, message, where, hint=hint, severity="warning")
        self.add(found)

    def report_within(self, fault: ExpressionFault, text: str, where: Path) -> None:
        """Add a fault of an expression, at its place inside of the text."""
        self.report_at(fault.code, fault.message, (where, text, fault.offset), fault.hint)

    def report_at(
        self, code: str, message: str, at: tuple[Path, str, int], hint: str | None = None
    ) -> None:
        """Add a fault at a character of a text that stands at a place."""
        where, text, offset = at
        mark = self.document.mark_within(where, text, offset)
        self.add(self.document.source.diagnostic(code, message, mark, path=where, hint=hint))

    @property
    def has_errors(self) -> bool:
        return any(finding.severity == "error" for finding in self._found.values())

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(finding.code for finding in self._found.values())

    def in_order(self) -> list[Diagnostic]:
        """Give all of them, by place."""
        return in_order(self._found.values())
