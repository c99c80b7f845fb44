"""Documents written as YAML are read back, and definitions keep their digests."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.language import loads, read_document, to_yaml
from tests.property.test_definitions import compiled
from tests.support.charts import charts, renamed
from tests.support.strategies import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
SCALARS = SCALARS.filter(lambda value: value not in (float("inf"), -float("inf")))


def containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(parts, max_size=4) | st.dictionaries(TEXTS, parts, max_size=4)


@examples(40)
@given(charts(), st.data())
def test_a_definition_written_as_yaml_is_the_same(
    document: dict[str, Any], data: st.DataObject
) -> None:
    definition = compiled(data.draw(renamed(document)))
    assume(definition is not None)
    assert definition is not None
    again = loads(to_yaml(definition), states_max=300)
    assert json.loads(again.document) == json.loads(definition.document)
    assert again.digest == definition.digest


@examples(200)
@given(st.recursive(SCALARS, containers, max_leaves=30))
def test_any_value_written_as_yaml_is_read_back(value: Any) -> None:
    document = value if isinstance(value, dict) else {"value": value}
    assert read_document(to_yaml(document)).value == document
