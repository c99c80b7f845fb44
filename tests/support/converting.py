"""What tests of importers share."""

from collections.abc import Callable

import pytest

from interlock.language import DefinitionError, define
from interlock.language.convert import Converted


def refused(call: Callable[[], object]) -> list[tuple[str, int | None]]:
    """Give the codes and lines of what a call refuses."""
    with pytest.raises(DefinitionError) as caught:
        call()
    return [(fault.code, fault.line) for fault in caught.value.diagnostics]


def moves(converted: Converted) -> set[tuple[str, str, str]]:
    """Compile what was made; give its transitions as from, action, to."""
    definition = define(converted.definition)
    return {(b.from_state, b.action, b.to_state) for b in definition.flat.branches}


def notes(converted: Converted) -> set[str]:
    """Give the codes of what is noted; each has a place and reads as a warning."""
    assert all(note.severity == "warning" and note.line is not None for note in converted.notes)
    return {note.code for note in converted.notes}
