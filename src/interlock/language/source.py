"""The text of a definition file: decoded once, with the place of every character.

UTF-8, or UTF-16 with its byte order mark; the mark is no part of the text. Places are counted the
way editors count them, from the index of a character, so that every reader agrees on them.

    Source("a: 1\r\nb: 2").mark(6)   -> (2, 1)
"""

import codecs
import re
from bisect import bisect_right
from typing import NamedTuple

from interlock.core.declaration import Path, path_text
from interlock.language.diagnostic import DefinitionError, Diagnostic, Severity

ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
LINE_END = re.compile(r"\r\n|\n|\r")
UNFIT = re.compile("[\0\ud800-\udfff]")  # what no store can hold, raw or escaped


class Mark(NamedTuple):
    """A place in a text: line and column from 1, the column in characters."""

    line: int
    column: int


class Source:
    """A text and its name; makes the diagnostics that point into it."""

    __slots__ = ("_lines", "_starts", "file", "text")

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file
        self._lines = LINE_END.split(text)
        self._starts = [0, *(end.end() for end in LINE_END.finditer(text))]

    def mark(self, index: int) -> Mark:
        line = bisect_right(self._starts, index)
        return Mark(line, index - self._starts[line - 1] + 1)

    def rest_of_line(self, mark: Mark) -> str:
        """Give a line from a place on."""
        return self._lines[mark.line - 1][mark.column - 1 :]

    def diagnostic(
        self,
        code: str,
        message: str,
        mark: Mark,
        *,
        path: Path = (),
        hint: str | None = None,
        severity: Severity = "error",
    ) -> Diagnostic:
        return Diagnostic(
            code=code,
            message=message,
            severity=severity,
            hint=hint,
            file=self.file,
            line=mark.line,
            column=mark.column,
            path=path_text(path),
            source_line=self._lines[mark.line - 1],
        )

    def error(
        self, code: str, message: str, index: int, *, hint: str | None = None
    ) -> DefinitionError:
        """Make the error of a text that cannot be read past `index`."""
        return DefinitionError([self.diagnostic(code, message, self.mark(index), hint=hint)])


def decode(data: str | bytes, file: str | None, *, max_bytes: int) -> Source:
    """Turn what a file holds into text, or refuse it: nothing is replaced, nothing dropped."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > max_bytes:
        message = f"the file is larger than the {max_bytes} bytes allowed (budget `bytes`)"
        raise DefinitionError([Diagnostic(code="budget-exceeded", message=message, file=file)])
    if isinstance(data, str):
        text = data.removeprefix("\ufeff")
    else:
        bom = next((bom for bom in ENCODINGS if raw.startswith(bom)), b"")
        raw, encoding = raw.removeprefix(bom), ENCODINGS.get(bom, "utf-8")
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as fault:
            source = Source(raw.decode(encoding, "replace"), file)
            message = f"byte 0x{raw[fault.start]:02x} is not valid {encoding}"
            index = len(raw[: fault.start].decode(encoding))
            hint = "save the file as UTF-8"
            raise source.error("yaml-syntax", message, index, hint=hint) from None
    source = Source(text, file)
    if unfit := UNFIT.search(text):
        message = f"the text holds {character(unfit[0])}"
        raise source.error("yaml-syntax", message, unfit.start(), hint="save the file as UTF-8")
    return source


def character(char: str) -> str:
    """Name a character that is refused."""
    kind = "a lone surrogate" if "\ud800" <= char <= "\udfff" else "the character"
    return f"{kind} U+{ord(char):04X}"
