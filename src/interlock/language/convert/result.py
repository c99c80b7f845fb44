"""What every importer gives: a machine document, how names were changed, and what to know of it.

    converted = from_scxml(text)
    converted.definition          -> {"machine": …, "initial": …, "states": …}
    converted.states["b1.1"]      -> "p.b.b1.b1_1"
    str(converted.notes[0])       -> "12:5: warning[renamed]: …"

An importer carries a construct over with the same meaning, or says in a note what became of it, or
refuses the file. A refusal is a `ConvertError` with one diagnostic for each construct, by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from interlock.core.text import clipped
from interlock.language.diagnostic import DefinitionError, Diagnostic, Severity, in_order
from interlock.language.source import Mark, Source

MESSAGE_MAX = 400  # characters: names and conditions of a file may be of any length

Definition: TypeAlias = dict[str, Any]


class ConvertError(DefinitionError):
    """A text cannot be carried over; each diagnostic names one construct that stands in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A machine document made from another format.

    Attributes:
        definition: plain dicts and lists, ready to be written.
        notes: what is to be known, as warnings, in order of place.
        states: what the text calls a state -> its path in the document.
        events: what the text calls an event -> its name in the document.
        counts: what was read: states (without history), atomic, compound, parallel, final,
            history, depth, transitions, guarded, eventless, events.
    """

    definition: Definition
    notes: tuple[Diagnostic, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class Findings:
    """Gathers what is noted and what is refused while a text is read, each of them once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._notes: dict[Diagnostic, None] = {}
        self._faults: dict[Diagnostic, None] = {}

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        return tuple(in_order(self._notes))

    def note(self, code: str, message: str, mark: Mark | None = None) -> None:
        self._notes[self._made(code, message, mark, None, "warning")] = None

    def refuse(
        self, code: str, message: str, mark: Mark | None = None, *, hint: str | None = None
    ) -> None:
        self._faults[self._made(code, message, mark, hint, "error")] = None

    def check(self) -> None:
        """Raise what was refused, if anything was.

        Raises:
            ConvertError: with all of it.
        """
        if self._faults:
            raise ConvertError(self._faults)

    def _made(
        self, code: str, message: str, mark: Mark | None, hint: str | None, severity: Severity
    ) -> Diagnostic:
        message = clipped(message, MESSAGE_MAX)
        if mark is None:
            file = self._source.file
            return Diagnostic(code=code, message=message, severity=severity, hint=hint, file=file)
        return self._source.diagnostic(code, message, mark, hint=hint, severity=severity)
