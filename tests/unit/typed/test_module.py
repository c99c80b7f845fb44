"""The module that is written: its names, its lines, that it is the same for the same machine."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from interlock.language import define, loads
from interlock.typed.module import write_module
from tests.docs.pages import DOCS, code_blocks
from tests.support.typed import ORDER, module_of


def nasty() -> dict[str, Any]:
    """A machine whose every name means something to Python, or to the module itself."""
    return {
        "machine": "order",
        "version": 'it\'s "1"',
        "data": {
            "int": {"type": "integer"},
            "str": {"type": "string", "optional": True},
            "__class__": {"type": "string", "default": ""},
            "__x": {"type": "object", "properties": {"class_": {"type": "decimal"}}},
            "self": {"type": "array", "items": {"type": "object", "properties": {}}},
            "Orderself": {"type": "boolean", "default": True},
            "how": {"type": "object", "properties": {"__y": {"type": "string"}}},
            "actor_ref": {"type": "string", "optional": True},
        },
        "events": {
            "int": {"self": {"type": "string"}, "how": {"type": "integer"}},
            "_MACHINE": {"_MACHINE": {"type": "string"}},
            "handle": {"asserting": {"type": "boolean"}},
            'quo"""te\\': {"x": {"type": "string", "enum": ['"', "'", "\n"]}},
        },
        "initial": "order",
        "states": {
            "order": {
                "on": {
                    "int": {"to": "OrderState", "set": {"str": "event.self"}},
                    "str": "State",
                    "match": "a-b",
                    "class": "a_b",
                    "handle": "→",
                    "data": "⇒",
                    "_MACHINE": "審査",
                    "Order": {"to": "None", "guard": 'QP "x" \\'},
                    'quo"""te\\': {"to": "machine", "when": "data.int > 1"},
                    "Orderself": {},
                    "a b": {},
                    "a-b": {},
                }
            },
            "OrderState": {"data": ["str"], "on": {"back": "order"}},
            **{name: {"on": {"back": "order"}} for name in ("State", "a-b", "a_b", "→", "⇒")},
            **{name: {"on": {"back": "order"}} for name in ("審査", "None")},
            "machine": {"final": True},
        },
    }


@pytest.fixture(scope="module")
def order() -> ModuleType:
    return module_of(ORDER)


def test_each_state_has_a_class_and_they_are_one_union(order: ModuleType) -> None:
    classes = [order.Cancelled, order.Done, order.Draft, order.OpenNew, order.OpenPaid]
    assert [*get_args(order.OrderState)] == classes
    assert get_args(order.OrderStateName) == ORDER.states
    assert get_args(order.OrderEvent) == ("cancel", "note", "pay", "release", "settle", "submit")
    assert get_args(order.OrderLabel) == ("QP", "big")
    assert "settle/small" in get_args(order.OrderAction)


def test_a_state_has_the_events_that_it_knows_and_no_others(order: ModuleType) -> None:
    events = {
        state.__name__: {
            name for name in vars(state) if not name.startswith("_") and callable(vars(state)[name])
        }
        for state in get_args(order.OrderState)
    }
    assert events == {
        "Draft": {"submit", "note"},
        "OpenNew": {"pay", "cancel"},
        "OpenPaid": {"release", "settle", "cancel"},
        "Done": set(),
        "Cancelled": set(),
    }


def test_names_that_python_has_other_uses_for_are_altered() -> None:
    definition = define(nasty())
    module = module_of(definition)
    names = [state.__name__ for state in get_args(module.OrderState)]
    assert len(names) == len({*names}) == len(definition.states)
    assert {"Order_2", "OrderState_2", "None_", "審査", "State", "State_2", "AB", "AB_2"} < {*names}
    assert {"int_", "str_", "class_", "handle_", "data_", "a_b", "a_b_2", "match"} <= {
        *vars(module.Order_2)
    }
    fields = module.OrderData.__dataclass_fields__
    assert {*fields} == {"int_", "str_", "class_", "x", "self", "Orderself", "how", "actor_ref"}


def test_equal_machines_get_equal_modules() -> None:
    document = nasty()
    turned = {key: document[key] for key in reversed(document)}
    turned["data"] = {name: document["data"][name] for name in reversed(document["data"])}
    turned["states"] = {name: document["states"][name] for name in reversed(document["states"])}
    assert write_module(define(turned)) == write_module(define(document))


def test_the_module_passes_the_linter_and_is_formatted(tmp_path: Path) -> None:
    (machine,) = code_blocks(DOCS / "definitions.md", "yaml")[:1]
    for name, definition in (("order", ORDER), ("nasty", define(nasty())), ("q", loads(machine))):
        text = write_module(definition)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        assert ORDER is not definition or max(map(len, text.splitlines())) <= 88
    for command in (("check",), ("format", "--check")):
        run = [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", "."]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
