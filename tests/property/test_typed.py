"""The module of typed states of any machine can be imported, and has the machine in it."""

import json
from typing import Any, get_args

from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.language.definition import compile_document
from interlock.language.document import read_document
from interlock.typed.module import write_module
from tests.support.charts import charts, shuffled
from tests.support.strategies import examples
from tests.support.typed import module_of

TYPES = st.sampled_from(
    [
        {"type": "integer", "enum": [1, 2]},
        {"type": "decimal", "optional": True},
        {"type": "string", "enum": ["a", '"']},
        {"type": "array", "items": {"type": "object", "properties": {"if": {"type": "number"}}}},
        {"type": "object", "properties": {"int": {"type": "date-time", "optional": True}}},
    ]
)
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True) | st.sampled_from(
    ["int", "self", "how", "M", "MData", "TypedDict", "Literal", "data", "state", "__init__"]
)


@examples(40)
@given(charts(), st.dictionaries(IDENTIFIERS, TYPES, max_size=4), st.data())
def test_the_module_of_any_machine_is_imported_and_knows_its_states(
    document: dict[str, Any], fields: dict[str, Any], data: st.DataObject
) -> None:
    document["data"] |= fields
    document["events"] = {"e0": fields}
    definition, found = compile_document(
        read_document(json.dumps(document)), prove=False, states_max=60
    )
    assume(definition is not None)
    assert definition is not None, found
    module = module_of(definition)
    union = module.MState
    classes = get_args(union) or (union,)
    assert {state.__dataclass_fields__["state"].default for state in classes} == {
        *definition.states
    }
    again = data.draw(shuffled(document))
    other, _ = compile_document(read_document(json.dumps(again)), prove=False, states_max=60)
    assert other is not None
    assert write_module(other) == write_module(definition)
