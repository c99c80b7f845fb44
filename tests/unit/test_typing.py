"""What the public names give, as a type checker sees it: `make check` runs mypy on this file."""

from pathlib import Path
from typing import Any, assert_type

import pytest

import interlock
from interlock import (
    Counts,
    Entry,
    Finding,
    Fire,
    Instance,
    Machine,
    Page,
    Rejected,
    Report,
    Restored,
    Store,
)
from interlock.language.builder import Node, State
from tests.support.machines import TOGGLE


def test_each_verb_gives_what_it_says(path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        assert_type(store, Store)
        id = assert_type(store.instantiate(TOGGLE, "ann"), str)
        assert_type(store.fire(id, "go", guard_satisfied=True, reason="why"), str)
        assert_type(store.current(id), str)
        assert_type(store.history(id, {"action": "go"}), list[Entry])
        assert_type(store.read_declaration(id), dict[str, Any])
        assert_type(store.fire_many([Fire(id, "go")]), list[str])
        assert_type(store.fire_each([Fire(id, "go")]), list[str | Rejected | None])
        assert_type(store.instantiate_each(TOGGLE, [interlock.Birth()]), list[str | Rejected])
        assert_type(store.instances(state="off"), list[Instance])
        assert_type(store.snapshot(id, at_sequence=1), Instance)
        assert_type(store.verify(), Report)
        assert_type(store.dump(path.with_name("dump.jsonl"), [id]), Counts)
        assert_type(store.restore(path.with_name("dump.jsonl")), Restored)


def told_page(page: Page) -> None: ...


def told_finding(finding: Finding) -> None: ...


def test_listeners_are_annotated_with_public_names(path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify(on_finding=told_finding)
        store.dump(path.with_name("dump.jsonl"), on_page=told_page)
        store.restore(path.with_name("dump.jsonl"), on_page=told_page)


def test_what_is_not_public_is_refused_by_the_checker(path: Path) -> None:
    """Each ignore is needed: mypy warns of one that is not."""
    with interlock.open(f"sqlite:///{path}") as store:
        id = store.instantiate(TOGGLE)
        for call in (
            lambda: store.fire(id),  # type: ignore[call-arg]
            lambda: store.fire(id, "go", note="x"),  # type: ignore[call-arg]
            lambda: store.instantiate([]),  # type: ignore[arg-type]
        ):
            try:
                call()
            except (TypeError, interlock.InvalidDeclaration):
                continue
            raise AssertionError("it was taken")


def test_calls_of_a_machine_can_be_strung_together() -> None:
    machine = Machine("m", initial="a")
    a = assert_type(machine.state("a"), State)
    z = assert_type(machine.final("z"), Node)
    assert_type(a.on("go", z, guard="sign").after("P1D", [z]), State)
    assert_type(machine.never(reach=z, without={"guard": "sign"}), Machine)
    assert_type(machine.document(), dict[str, Any])
    with pytest.raises(TypeError):
        a.on("stop", z, whn="data.x")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        z.on("go", a)  # type: ignore[attr-defined]
