"""Generated tests of a machine: every state with every trigger, valid and not.

    from interlock.testing import machine_tests

    TestOrder = machine_tests("order.machine.yaml")

`docs/testing.md` says what is tested, and how hooks of one's own take part.
"""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock.engine.hooks import Hook
from interlock.language import load
from interlock.language.definition import Definition
from interlock.testing import coverage
from interlock.testing.trial import Opening, Trial
from interlock.witness.case import Case, Missed, Table
from interlock.witness.table import tabulate

STEPS = 20  # random events of one run


def machine_tests(
    source: str | os.PathLike[str] | Definition,
    *,
    hooks: Mapping[str, Hook] | None = None,
    open_store: Opening | None = None,
    random: bool = True,
    steps: int = STEPS,
) -> type:
    """Make a class of tests of a machine, for pytest to collect under any name `Test…`.

    Args:
        source: a file, found beside the module that asks if its path is relative; or a definition.
        hooks: functions that are called as the hooks of these names; without, hooks are played.
        open_store: opens an empty store, and takes `clock`; without, each test has one in memory.
        random: whether random events are sent as well, where Hypothesis is installed.
        steps: how many random events a run has at most.

    Raises:
        DefinitionError: the machine does not compile.
    """
    if isinstance(source, Definition):
        definition = source
    else:
        caller = inspect.stack(0)[1].filename
        definition = load(Path(caller).parent / source)
    table = tabulate(definition)
    trial = Trial(definition, hooks, open_store)
    coverage.declare(definition, [(m.state, m.action) for m in table.missed if m.impossible])
    members: dict[str, Any] = {
        "__doc__": f"Generated tests of `{definition.name}`.",
        "test_a_branch_is_taken": _cases(table.taken, trial),
        "test_a_trigger_is_refused": _cases(table.refused, trial),
    }
    if table.missed:
        members["test_no_way_was_found"] = _missed(table)
    if random and _has_hypothesis():
        from interlock.testing.stateful import random_test

        members["test_random_events"] = random_test(definition, trial, hooks, steps)
    return type(f"Test_{definition.name}", (), members)


def _cases(cases: tuple[Case, ...], trial: Trial) -> Any:
    def test(self: object, case: Case) -> None:  # noqa: ARG001
        trial.run(case)

    return pytest.mark.parametrize("case", [pytest.param(c, id=_id(c)) for c in cases])(test)


def _missed(table: Table) -> Any:
    def test(self: object, missed: Missed) -> None:  # noqa: ARG001
        pytest.skip(f"{missed.name}: {missed.why}")

    listed = [pytest.param(missed, id=_id(missed)) for missed in table.missed]
    return pytest.mark.parametrize("missed", listed)(test)


def _id(case: Case | Missed) -> str:
    """Name a test so that `pytest -k` and a shell take it."""
    return case.name.replace(": ", "-").replace(" -> ", "-").replace(" ", "_")


def _has_hypothesis() -> bool:
    from importlib.util import find_spec

    return find_spec("hypothesis") is not None
