"""Where in a program a part of a document was written: the place of a call, for diagnostics.

Of a call its code and its instruction are kept, no frame, so that nothing which a caller holds is
kept alive. Line and column are worked out when a diagnostic asks for them.
"""

import linecache
import sys
from collections.abc import Mapping
from itertools import islice
from types import CodeType
from typing import NamedTuple

from interlock.core.declaration import Path, path_text
from interlock.language.diagnostic import Diagnostic, Severity
from interlock.language.source import Mark, Source


class Site(NamedTuple):
    """A call in a program.

    Attributes:
        offset: of the instruction in the code, as a frame's `f_lasti` gives it.
    """

    code: CodeType
    offset: int

    def diagnostic(
        self,
        code: str,
        message: str,
        *,
        path: Path = (),
        hint: str | None = None,
        severity: Severity = "error",
    ) -> Diagnostic:
        """Make a diagnostic that points at the call."""
        line, column = self._position()
        text = linecache.getline(self.code.co_filename, line).rstrip("\r\n") or None
        if text is not None and column is not None:
            before = text.encode()[:column]  # Python counts bytes from 0, an editor characters
            column = len(before.decode(errors="ignore")) + 1
        return Diagnostic(
            code=code,
            severity=severity,
            message=message,
            hint=hint,
            file=self.code.co_filename,
            line=line,
            column=column if text is not None else None,
            path=path_text(path),
            source_line=text,
        )

    def _position(self) -> tuple[int, int | None]:
        """Give the line where the call begins, and the column in bytes if Python kept it."""
        positions = islice(self.code.co_positions(), self.offset // 2, None)  # of 2 bytes each
        line, _, column, _ = next(positions, (None, None, None, None))
        return line or self.code.co_firstlineno, column


def site_of_caller(module: str) -> Site:
    """Give the innermost call that was made from outside of a module, which is on the stack."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in (module, __name__):
        frame = frame.f_back
    return Site(frame.f_code, frame.f_lasti)


class CallSource(Source):
    """The text of a document that calls in a program have made; places are those of the calls.

    `sites` holds the calls by the path of what they wrote; that of the whole is there. What is
    inside of a part has the place of the part.
    """

    __slots__ = ("_sites",)

    def __init__(self, text: str, sites: Mapping[Path, Site]) -> None:
        super().__init__(text)
        self._sites = sites

    def diagnostic(
        self,
        code: str,
        message: str,
        mark: Mark,  # noqa: ARG002 (the place in the text means nothing to whoever called)
        *,
        path: Path = (),
        hint: str | None = None,
        severity: Severity = "error",
    ) -> Diagnostic:
        around = path
        while around not in self._sites:
            around = around[:-1]
        site = self._sites[around]
        return site.diagnostic(code, message, path=path, hint=hint, severity=severity)
