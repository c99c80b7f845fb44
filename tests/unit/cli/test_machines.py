"""`start`, `adopt`, `send`, `can`, `data` and `tick`."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.unit.cli.line import MACHINE, CommandLine

ORDER = "order.machine.yaml"
ENGINE = ("--engine", "order_engine:make")
TIMED = """
machine: timed
version: 1
initial: a
states: {a: {after: {1ms: b}, on: {go: c}}, b: {final: true}, c: {final: true}}
"""


@pytest.fixture(autouse=True)
def _examples(run: CommandLine) -> Iterator[None]:
    for name in (ORDER, "order_engine.py"):
        shutil.copy(ROOT / "examples" / name, run.folder)
    (run.folder / "timed.yaml").write_text(TIMED)
    path, modules = [*sys.path], {*sys.modules}
    yield
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        if name.startswith(("order_engine", "odd_")):
            del sys.modules[name]


@pytest.fixture
def order(run: CommandLine) -> str:
    result = run("start", ORDER, "--data", '{"qty": 50}', "--subject", "A-1", *ENGINE)
    assert result.exit_code == 0, result.output
    assert "swept never" in result.stderr
    return result.stdout.strip()


def test_an_order_from_the_shell(run: CommandLine, order: str) -> None:
    send = ("send", order)
    told = run.ok(*send, "submit", "--payload", '{"price": "25.00"}', "--actor", "ann", *ENGINE)
    assert told == "open.large\n"
    listed = run.ok("can", order, *ENGINE)
    assert "cancel  cancelled" in listed
    assert "`ship` in `open.large` needs `manager-approval` to be asserted" in listed
    assert run.json("can", order, "--assert", "manager-approval", *ENGINE)["events"][1]["allowed"]
    run.refused("guard-not-satisfied", *send, "ship", *ENGINE)
    told = run.json(*send, "ship", "--assert", "manager-approval", "--reason", "paid", *ENGINE)
    assert told == {"id": order, "event": "ship", "state": "shipped"}
    assert run.json("data", order) == {"qty": 50, "total": "1250.00"}
    assert run.json("data", order, "--at-sequence", 0) == {"qty": 50, "total": "0.00"}
    run.refused("terminal", *send, "ship", *ENGINE)
    run.refused("engine-owned", "fire", order, "submit")
    assert run.ok("verify").startswith("ok: ")


def test_a_machine_without_hooks_needs_no_engine(run: CommandLine) -> None:
    run.open().close()
    run.ok("tick")
    id = run.json("start", "timed.yaml", "--key", "k")["id"]
    assert run.json("start", "timed.yaml", "--key", "k")["id"] == id
    told = run.json("tick")
    assert told == {"fired": 1}
    assert run.ok("current", id) == "b\n"


def test_adopt_begins_in_mid_life(run: CommandLine) -> None:
    result = run("adopt", ORDER, "open.small", "--data", '{"qty": 1}', "--reason", "old", *ENGINE)
    id = result.stdout.strip()
    assert run.ok("current", id) == "open.small\n"
    (listed,) = run.json("list")["instances"]
    assert listed["metadata"] == {"adopted": {"state": "open.small", "reason": "old"}}
    result = run("adopt", ORDER, "open.smal", "--data", '{"qty": 1}', *ENGINE)
    assert result.exit_code != 0
    assert "did you mean `open.small`?" in result.stderr


def test_a_hook_that_nobody_has_is_refused_by_name(run: CommandLine) -> None:
    told = run.refused("invalid-request", "start", ORDER, "--data", '{"qty": 1}')
    assert "the hook `reserve_stock`, which is not registered" in told
    assert "`--engine MODULE:NAME` names the engine that has it" in told


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("order_engine", "write MODULE:NAME"),
        ("odd_nowhere:make", "cannot be imported"),
        ("order_engine:nothing", "cannot be imported"),
        ("order_engine:STOCK", "is no engine"),
        ("odd_three:make", "gave no engine but int"),
    ],
)
def test_what_is_no_engine_is_wrong_usage(run: CommandLine, engine: str, said: str) -> None:
    (run.folder / "odd_three.py").write_text("def make(store):\n    return 3\n")
    run.open().close()
    assert said in run.misused("tick", "--engine", engine)


def test_an_engine_may_have_a_store_of_its_own(run: CommandLine, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    module = f'import interlock\nengine = interlock.Engine(interlock.open("{url}"))\n'
    (run.folder / "odd_own.py").write_text(module)
    assert run.ok("tick", "--engine", "odd_own:engine") == "0 timers ran out\n"
    assert "has a store of its own" in run.misused(
        "tick", "--engine", "odd_own:engine", "--store", run.url
    )


def test_a_machine_is_started_and_a_declaration_instantiated(run: CommandLine) -> None:
    assert "is no machine" in run.misused("start", MACHINE)
    assert "`interlock start`" in run.misused("instantiate", ORDER)


def test_a_file_with_faults_shows_them(run: CommandLine) -> None:
    (run.folder / "bad.yaml").write_text("machine: m\nversion: 1\ninitial: x\nstates: {a: {}}\n")
    told = run.refused("invalid-declaration", "start", "bad.yaml")
    assert "bad.yaml:3:10: error[unknown-state]" in told


def test_a_machine_stands_where_a_declaration_does(run: CommandLine) -> None:
    run.ok("conform", "--machine", ORDER)
    run.open().close()
    run.ok("tick")
    run.ok("start", "timed.yaml")
    assert len(run.json("list", "--definition", "timed.yaml")["instances"]) == 1
    assert json.loads(run.ok("check", "timed.yaml", "--json"))["ok"]
