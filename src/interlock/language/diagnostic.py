"""A finding about a definition file: what is wrong, where, and what was probably meant.

`str` gives one line, `show` adds the source line with a caret, `as_dict` is for programs. A file
can put no line break and no terminal escape into either text: what would not show is escaped.

    orders.yaml:12:15: error[unknown-state]: unknown state `payed` (did you mean `paid`?)
       12 |     to_state: payed
          |               ^ transitions[2].to_state
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias
from unicodedata import east_asian_width

Severity: TypeAlias = Literal["error", "warning"]

EXCERPT = 60  # characters shown on each side of the caret: a very long line is shown in part


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. Equal findings compare equal; the source line is only for showing.

    Attributes:
        code: a stable word, such as `unknown-state`.
        line: from 1, as editors count: LF, CR and CR LF end a line.
        column: from 1, in characters.
        path: where in the value, such as `transitions[2].to_state`; empty for the whole.
    """

    code: str
    severity: Severity = "error"
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    source_line: str | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        places = (self.file, self.line, self.column)
        where = "".join(f"{place}:" for place in places if place is not None)
        hint = f" ({self.hint})" if self.hint else ""
        return visible(f"{where} {self.severity}[{self.code}]: {self.message}{hint}".lstrip())

    def show(self) -> str:
        """Write the finding over its source line, with a caret at the place."""
        if self.line is None or self.column is None or self.source_line is None:
            return str(self)
        at = self.column - 1
        before = visible(self.source_line[max(0, at - EXCERPT) : at])
        after = visible(self.source_line[at : at + EXCERPT])
        margin = " " * sum(2 if east_asian_width(char) in "WF" else 1 for char in before)
        caret = f"{margin}^ {visible(self.path)}".rstrip()
        return f"{self}\n{self.line:>5} | {before}{after}\n{'':5} | {caret}"

    def as_dict(self) -> dict[str, object]:
        """Give the fields as plain JSON values."""
        fields = asdict(self)
        del fields["source_line"]
        return fields


class DefinitionError(Exception):
    """A definition is refused; `diagnostics` holds every finding, in order of place."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(in_order(diagnostics))
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort by place; what has no place comes before what has one."""
    return sorted(
        diagnostics, key=lambda d: (d.file or "", d.line or 0, d.column or 0, d.path, d.code)
    )


def visible(text: str) -> str:
    r"""Escape what does not print: a line break as `\n`, a terminal's escape as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
