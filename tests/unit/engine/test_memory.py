"""Merge patches: RFC 7396, and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.patch import merge
from interlock.core.rejection import StorageFailure
from interlock.engine.memory import KEPT_BYTES, Memory, difference, recall

_scalars = st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=2)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), _values, max_size=4)


@given(objects, objects)
def test_the_difference_makes_one_of_the_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    made = merge(one, difference(one, other))
    assert _typed(made) == _typed(other)


@given(objects)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert difference(value, dict(value)) == {}


def _typed(value: Any) -> Any:
    """Tell `1` from `1.0` and `true`."""
    if isinstance(value, dict):
        return {name: _typed(item) for name, item in value.items()}
    return [_typed(item) for item in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


def test_a_destroyed_payload_is_told_of() -> None:
    with pytest.raises(StorageFailure) as caught:
        recall([("whole", b'{"data":{}}'), ("patch", None)])
    assert caught.value.kind == "unreadable"


def test_a_memory_comes_back_from_what_was_written() -> None:
    memory = recall(
        [
            ("whole", b'{"data":{"a":1}}'),
            ("patch", b'{"remembered":{"w.h":["w.x","w.y"]}}'),
            ("patch", b'{"data":{"a":null,"b":2}}'),
        ]
    )
    assert memory == Memory({"b": 2}, {"w.h": ("w.x", "w.y")}, 3)


def test_a_process_keeps_what_is_small() -> None:
    assert Memory({"text": "x" * 100}).is_small
    assert not Memory({"text": "x" * KEPT_BYTES}).is_small
