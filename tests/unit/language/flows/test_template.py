"""Templates: expressions within JSON, what becomes of them, and where their faults are."""

from collections.abc import Mapping
from typing import Any

import pytest

from interlock.language.expressions.expression import ExpressionError
from interlock.language.expressions.properties import ANY, Type, read_properties
from interlock.language.flows.template import TemplateFault, compile_template

INPUT = read_properties(
    {
        "sku": {"type": "string"},
        "qty": {"type": "integer"},
        "price": {"type": "decimal", "scale": 2},
        "due": {"type": "date-time"},
        "rate": {"type": "number"},
        "rush": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "to": {"type": "object", "properties": {"city": {"type": "string"}}},
        "note": {"type": "string", "optional": True},
    }
)


class Scope:
    roots: Mapping[str, Type] = {
        "input": INPUT.type(),
        "steps": Type(
            "object", fields={"a": (Type("object", fields={"output": (ANY, False)}), False)}
        ),
    }
    present: frozenset[str] = frozenset()


VALUES: dict[str, Any] = {
    "input": {
        "sku": "A-1",
        "qty": 3,
        "price": "2.50",
        "due": "2026-03-01T12:00:00Z",
        "rate": 1.5,
        "rush": True,
        "tags": ["x", "y"],
        "to": {"city": "Bern"},
    },
    "steps": {"a": {"output": {"id": 7, "parts": [{"n": 1}], "none": None}}},
}


def rendered(value: Any) -> Any:
    return compile_template(value, Scope()).render(VALUES)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        (3, 3),
        (None, None),
        ("${ input.sku }", "A-1"),
        ("${input.qty}", 3),
        ("${ input.qty * 2 }", 6),
        ("${ input.price }", "2.50"),
        ("${ input.price * 2 }", "5.00"),
        ("${ input.due }", "2026-03-01T12:00:00Z"),
        ("${ input.rate }", 1.5),
        ("${ input.rush && input.qty > 2 }", True),
        ("${ input.tags }", ["x", "y"]),
        ("${ input.to }", {"city": "Bern"}),
        ("${ input }", VALUES["input"]),
        ("${ steps.a.output }", VALUES["steps"]["a"]["output"]),
        ("${ steps.a.output.parts }", [{"n": 1}]),
        ("${ steps.a.output.none }", None),
        ("${ steps.a.output.parts[0].n }", 1),
        ("${ steps }", VALUES["steps"]),
        ("for ${ input.sku }, ${ input.qty } of it", "for A-1, 3 of it"),
        ("${ input.rush }!", "true!"),
        ("at ${ input.due } for ${ input.price }", "at 2026-03-01T12:00:00Z for 2.50"),
        ("all ${ input.tags }", 'all ["x","y"]'),
        ("$${ input.sku }", "${ input.sku }"),
        ("$${${ input.sku }}", "${A-1}"),
        ("$ { input.sku }", "$ { input.sku }"),
        ('${ input.sku + "}" }', "A-1}"),
        ("${ input.sku + '\\'}' }", "A-1'}"),
        ({"a": ["${ input.qty }", {"b": "x${ input.qty }"}]}, {"a": [3, {"b": "x3"}]}),
    ],
)
def test_what_becomes_of_a_template(template: Any, value: Any) -> None:
    found = rendered(template)
    assert found == value
    assert type(found) is type(value)


def test_it_says_what_it_reads() -> None:
    template = {"a": "${ input.sku }", "b": ["${ steps.a.output.id } and ${ input.qty + 1 }"]}
    names = compile_template(template, Scope()).names
    assert names == {"input.sku", "steps.a.output.id", "input.qty"}


@pytest.mark.parametrize(
    ("template", "where", "offset", "said"),
    [
        ("${ input.skuu }", (), 9, "no field"),
        ("x ${ input.sku", (), 2, "no `}`"),
        ({"a": ["ok", "${ input.sku } ${ 1 + }"]}, ("a", 1), 21, "a value is expected"),
        ("${ steps.b.output }", (), 9, "no field `b`"),
        ("${ input.note }", (), 3, "may be absent"),
        ("${ steps.a.output.id + 1 }", (), 21, "needs to be told"),
        ("${}", (), 2, "is empty"),
    ],
)
def test_a_fault_is_told_at_its_place(template: Any, where: Any, offset: int, said: str) -> None:
    with pytest.raises(TemplateFault, match=said) as caught:
        compile_template(template, Scope())
    assert caught.value.where == where
    assert caught.value.fault.offset == offset


@pytest.mark.parametrize("template", ["${ steps.a.output.nope }", "${ steps.a.output.id.x }"])
def test_what_is_not_there_is_an_error(template: str) -> None:
    with pytest.raises(ExpressionError):
        rendered(template)
