"""The digest of a definition: what it tells apart, and that it is the same for ever."""

from typing import Any

import pytest

from interlock.language.definition import Definition, define, loads, restore
from tests.support.engines import ORDERS

PARALLEL: dict[str, Any] = {
    "machine": "m",
    "version": 2,
    "conflicts": "first-region",
    "initial": "work",
    "states": {
        "work": {
            "type": "parallel",
            "on": {"stop": "paused"},
            "states": {
                "left": {"initial": "a", "states": {"a": {"on": {"go": "b"}}, "b": None}},
                "right": {"initial": "x", "states": {"x": {"after": {"1h": "y"}}, "y": None}},
                "last": {"type": "history", "history": "deep"},
            },
        },
        "paused": {"on": {"resume": "work.last"}},
    },
}


@pytest.mark.parametrize(
    ("definition", "digest"),
    [
        (loads(ORDERS), "771936cebf83e7bd678ee15c7a48bba2104034385aa6ff1b93ab5377a693b019"),
        (define(PARALLEL), "97e00b7c59265e5644e9ade56f6fb202af869c33b3995136ceac46e3ad21bce8"),
    ],
    ids=["orders", "parallel"],
)
def test_instances_in_stores_are_bound_to_it_so_it_never_changes(
    definition: Definition, digest: str
) -> None:
    assert definition.digest == digest
    assert restore(definition.document).digest == digest


def test_a_version_is_its_text() -> None:
    assert define({**PARALLEL, "version": "2"}).digest == define(PARALLEL).digest
    assert define({**PARALLEL, "version": 3}).digest != define(PARALLEL).digest


def test_it_tells_when_a_hook_is_called() -> None:
    def hooked(**where: Any) -> Definition:
        states = {"a": {"on": {"go": {"to": "b", "do": where.get("do", [])}}}, "b": {}}
        states["a"] |= {"on_exit": where["on_exit"]} if "on_exit" in where else {}
        states["b"] |= {"on_enter": where["on_enter"]} if "on_enter" in where else {}
        return define({"machine": "m", "version": 1, "initial": "a", "states": states})

    digests = {hooked(**{place: ["h"]}).digest for place in ("on_exit", "do", "on_enter")}
    assert len(digests) == 3
