"""Generated tests in a project of their own: they pass, and a broken engine fails them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MACHINE = """
machine: order
version: 1
data: {qty: {type: integer, minimum: 0}, note: {type: string, optional: true}}
events: {submit: {qty: {type: integer, maximum: 50}}}
initial: draft
states:
  draft:
    on:
      submit: {to: open, set: {qty: "event.qty * 2"}}
  open:
    on_enter: [reserve]
    on_exit: [let_go]
    after: {P3D: expired}
    on:
      decide:
        - {to: small, when: "data.qty < 10"}
        - {to: large, when: "data.qty >= 10"}
  small: {always: {to: noted, do: [write]}}
  noted: {data: [note], on: {close: {to: done, when: "has(data.note)"}}}
  large:
    on:
      release: {to: done, guard: QP, when: {check: stocked}}
      never: {when: "data.qty < 0"}
  done: {final: true}
  expired: {final: true}
"""

TEST = """
from interlock.testing import machine_tests

TestOrder = machine_tests("order.machine.yaml")
"""

#: What breaks an engine, put in front of the tests, and a test that has to fail.
BROKEN = {
    "a guard in Python is not asked": """
import interlock
interlock.Engine.registered_guard = lambda self, name: lambda tx: True
""",
    "no hook is called": """
import interlock
interlock.Engine.registered_hook = lambda self, name: lambda tx: None
""",
    "labels are not looked at": """
import interlock.engine.choosing as choosing
honest = choosing.choose
def choose(occasion, branches, asserting):
    every = [label for branch in branches for label in branch.guards]
    return (yield from honest(occasion, branches, every))
import interlock.engine.running as running
choosing.choose = running.choose = choose
""",
    "a hook on leaving is not called": """
import interlock.engine.running as running
honest = running.Run.take
def take(self, branch, payload, attempt=None):
    from dataclasses import replace
    return (yield from honest(self, replace(branch, leaving=()), payload, attempt))
running.Run.take = take
""",
    "what is automatic is forgotten": """
import interlock.engine.running as running
def settle(self):
    return
    yield
running.Run.settle = settle
""",
    "data is not set": """
import interlock.engine.running as running
honest = running.Run.take
def take(self, branch, payload, attempt=None):
    from dataclasses import replace
    return (yield from honest(self, replace(branch, sets=()), payload, attempt))
running.Run.take = take
""",
    "an event that a state does not know is taken for another": """
import interlock
honest = interlock.Handle.send
def send(self, event, payload=None, **how):
    if self.state == "large" and event == "decide":
        event, payload = "release", {}
        how["asserting"] = ["QP"]
    return honest(self, event, payload, **how)
interlock.Handle.send = send
""",
    "timers run out a day early": """
import interlock.engine.engine as engine
honest = engine.Engine._due
def due(self, until):
    return honest(self, until + 86_400_000_000)
engine.Engine._due = due
""",
}


def run(folder: Path, test: str, *options: str, machine: str = MACHINE) -> str:
    """Run a test module in a process of its own; give what it prints."""
    (folder / "order.machine.yaml").write_text(machine, encoding="utf-8")
    (folder / "test_order.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_state_is_tried_with_every_trigger(tmp_path: Path) -> None:
    told = run(tmp_path, TEST, "-vv", "-rs")
    assert " failed" not in told
    for taken in ("draft-submit-submit", "open-decide-decide/small", "small-always-always/noted"):
        assert f"test_a_branch_is_taken[{taken}] PASSED" in told
    for refused in (
        "draft-decide-invalid-transition",
        "open-submit-invalid-transition",
        "open-decide/small-invalid-transition",
        "open-after/P3D-invalid-transition",
        "done-submit-terminal",
        "large-release-guard-not-satisfied_(without_QP)",
        "large-release-guard-not-satisfied_(no_condition_is_met)",
        "draft-submit-invalid-request_(an_undeclared_field)",
    ):
        assert f"test_a_trigger_is_refused[{refused}] PASSED" in told
    assert "test_random_events PASSED" in told
    # What no values lead to is told, and not passed over.
    assert "test_no_way_was_found[large-never-never/stay] SKIPPED" in told
    assert "no values make its condition true there" in told


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_engine_fails_them(tmp_path: Path, broken: str) -> None:
    told = run(tmp_path, BROKEN[broken] + TEST, "-k", "branch or trigger")
    assert re.search(r"\d+ failed", told), told
    assert "the definition says" in told or "before it was due" in told


@pytest.mark.slow
def test_random_events_find_a_broken_engine_too(tmp_path: Path) -> None:
    told = run(tmp_path, BROKEN["data is not set"] + TEST, "-k", "random")
    assert "1 failed" in told
    assert "and the definition says" in told


@pytest.mark.slow
def test_hooks_of_ones_own_take_part(tmp_path: Path) -> None:
    hooked = """
from interlock.testing import machine_tests

def reserve(tx):
    tx.data["note"] = BODY

TestOrder = machine_tests("order.machine.yaml", hooks={"reserve": reserve})
"""
    assert " failed" not in run(tmp_path, hooked.replace("BODY", "'kept'"))
    told = run(tmp_path, hooked.replace("BODY", "3"), "-k", "submit-submit")
    assert "1 failed" in told
    assert "hook-failed" in told


def test_a_hook_that_no_definition_calls_is_a_mistake() -> None:
    import interlock
    from interlock.testing.clock import ManualClock
    from interlock.testing.trial import Played

    definition = interlock.loads(MACHINE)
    clock = ManualClock()
    with (
        interlock.open("sqlite://", clock=clock) as store,
        pytest.raises(ValueError, match="`order` calls no hook `resreve`"),
    ):
        Played(definition, store, clock, {"resreve": lambda tx: None})


# The plugin

COVERED = ["-p", "interlock.testing.plugin", "--interlock-coverage"]

FEW = """
import interlock

DEFINITION = interlock.load("order.machine.yaml")


def engine(store):
    engine = interlock.Engine(store)
    for name in ("reserve", "let_go", "write"):
        engine.hook(name)(lambda tx: None)
    engine.guard("stocked")(lambda tx: True)
    return engine


def test_one():
    with interlock.open("sqlite://") as store:
        order = engine(store).start(DEFINITION, {"qty": 1})
        order.send("submit", {"qty": 30})
        order.send("decide")


def test_refused():
    with interlock.open("sqlite://") as store:
        order = engine(store).adopt(DEFINITION, "large", {"qty": 1})
        try:
            order.send("release")
        except interlock.GuardNotSatisfied:
            pass
"""


@pytest.mark.slow
def test_the_report_shows_which_branches_were_taken(tmp_path: Path) -> None:
    told = run(tmp_path, FEW, *COVERED)
    assert "2 passed" in told
    assert "order 1: 25% (2 of 8 branches)" in told
    assert "    not taken: open --decide/small-->" in told
    assert "    not taken: large --release-->" in told or "large --release/done-->" in told
    assert "decide/large" not in told
    assert "order 1: 100% (7 of 7 branches, 1 that nothing takes)" in run(
        tmp_path, TEST, *COVERED, "-k", "taken"
    )


@pytest.mark.slow
def test_a_run_with_less_than_the_least_fails(tmp_path: Path) -> None:
    told = run(tmp_path, FEW, "-p", "interlock.testing.plugin", "--interlock-coverage=90%")
    assert "order 1: 25% (2 of 8 branches), less than 90%" in told
    command = [sys.executable, "-m", "pytest", "-q", *COVERED[:2]]
    for more, code in (
        (["--interlock-coverage=90"], 1),
        (["--interlock-coverage=20"], 0),
        ([], 0),
        (["-o", "interlock_coverage=90"], 1),
        (["--interlock-coverage=lots"], 4),
    ):
        done = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code, (more, done.stdout.decode(), done.stderr.decode())


@pytest.mark.slow
def test_processes_of_a_run_count_together(tmp_path: Path) -> None:
    told = run(tmp_path, FEW + TEST, *COVERED, "-n", "2")
    assert "order 1: 100% (7 of 7 branches, 1 that nothing takes)" in told
