"""Conditions that cannot be read, as declared data: true or false, for others to supply."""

from interlock.language.convert.naming import Names
from interlock.language.convert.result import Definition, Findings
from interlock.language.source import Mark


class Opaque:
    """Gives each text that is a condition in another language a field of its own.

    A text that stands twice is the same condition, so it has the same field.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._fields: dict[str, str] = {}

    def field(self, text: str, why: str, mark: Mark | None, taken: Names) -> str:
        """Give the field's name, one that is not yet taken."""
        if text not in self._fields:
            self._fields[text] = taken.give(f"guard_{len(self._fields) + 1}", "guard")
        name = self._fields[text]
        message = f"the condition `{text}` is data `{name}` here, to be supplied: {why}"
        self._findings.note("opaque-guard", message, mark)
        return name

    def declared(self) -> Definition:
        """Declare the fields: false until something sets them."""
        return {
            name: {"type": "boolean", "default": False, "description": text}
            for text, name in self._fields.items()
        }
