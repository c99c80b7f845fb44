"""What is written as SCXML and read back is the same machine; odd texts are refused, not broken."""

import json
import re
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interlock.language import (
    Definition,
    DefinitionError,
    compile_document,
    loads,
    read_document,
)
from interlock.language.convert import from_scxml, to_scxml, to_yaml
from interlock.language.convert.formats import Format, convert
from tests.support.charts import charts
from tests.support.foreign import SAMPLES


def compiled(chart: dict[str, Any]) -> Definition:
    definition, _ = compile_document(read_document(json.dumps(chart)), states_max=100)
    assume(definition is not None)
    assert definition is not None
    return definition


def flat_moves(definition: Definition) -> set[tuple[object, ...]]:
    """Give what branches do, whatever they are called and whenever they are taken."""
    return {
        (b.from_state, b.to_state, b.trigger, b.owner, b.guards, b.sets, b.hooks, b.due)
        for b in definition.flat.branches
    }


@settings(max_examples=40, deadline=None)
@given(charts())
def test_a_machine_that_went_out_as_scxml_comes_back_equal(chart: dict[str, Any]) -> None:
    definition = compiled(chart)
    exported = to_scxml(read_document(json.dumps(chart)))
    back = from_scxml(exported.text)
    again = loads(to_yaml(back.definition))
    told = {note.code for note in (*exported.notes, *back.notes)}
    if told & {"never-taken", "renamed"}:  # what is never taken stays away
        assert flat_moves(again) == flat_moves(definition)
    else:
        assert again == definition
    twice = from_scxml(to_scxml(read_document(to_yaml(back.definition))).text)
    assert loads(to_yaml(twice.definition)) == again


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Format, str]:
    """A text of some format in which parts were dropped, doubled, moved or replaced."""
    format = draw(st.sampled_from([*SAMPLES]))
    parts = re.findall(r"\w+|\s+|.", SAMPLES[format])
    words = [part for part in parts if not part.isspace()]
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(parts) - 1))
        until = at + draw(st.sampled_from([0, 1, 1, 2, 5, 30]))
        match draw(st.integers(0, 3)):
            case 0:
                del parts[at:until]
            case 1:
                parts[at:at] = parts[at:until]
            case 2:
                parts[at : at + 1] = [draw(st.sampled_from(words))]
            case _:
                parts[at : at + 1] = [draw(st.sampled_from(ODD))]
        parts = parts or [""]
    return format, "".join(parts)


ODD = [
    "", "null", "[]", "{}", "1", "-1e9", "true", '""', "'", '"', "<", "&", "&lt;", "\x00", "\x85",
    "é", "parallel", "final", "history", ".", "#", "*", "done.state.on", "always", "superseded",
    "P1D", "9" * 400, "(" * 60, "a.b.c", " ", "\n", "\t", "$ref", "in", "event", "data",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_what_is_odd_is_imported_or_refused_and_never_a_traceback(
    given: tuple[Format, str],
) -> None:
    format, text = given
    try:
        converted = convert(text, format=format, file="odd")
    except DefinitionError as error:
        refused = error
    else:
        assert loads(to_yaml(converted.definition)).states
        return
    assert {fault.file for fault in refused.diagnostics} == {"odd"}
    assert all(fault.line is not None for fault in refused.diagnostics)
