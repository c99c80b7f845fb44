"""`conform` and `demo`, as far as they are commands."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import demo
from interlock.store.store import Store
from tests.support.machines import MACHINES
from tests.unit.cli.line import MACHINE, CommandLine


def test_conform(run: CommandLine) -> None:
    told = run.ok("conform", "--machine", MACHINE)
    assert told.splitlines()[0].split() == ["CHECK", "INVARIANT", "PROBES", "RESULT"]
    assert sum(line.endswith(" ok") for line in told.splitlines()) == 6
    assert not run.is_made()


def test_conform_json(run: CommandLine) -> None:
    told = run.json("conform", "--machine", MACHINE)
    assert told["ok"] is True
    assert len(told["checks"]) == 6
    assert set(told["checks"][0]) == {
        *("ok", "name", "invariants", "probes", "failures", "faults", "not_covered")
    }


def test_conform_names_what_it_cannot_cover(run: CommandLine) -> None:
    file = run.declare(MACHINES["still-with-end"])
    told = run.ok("conform", "--machine", file)
    assert "not covered by terminal absorption: terminal state `gone`: no way leads there" in told


def test_conform_leaves_its_instances_in_a_store_that_is_named(run: CommandLine) -> None:
    scratch = run.url_of("scratch")
    run.ok("conform", "--machine", MACHINE, "--store", scratch)
    rows = run.json("list", "--store", scratch)["instances"]
    assert {row["actor_ref"] for row in rows} == {"interlock-conform"}
    assert run.ok("verify", "--store", scratch).startswith("ok: ")


def test_conform_that_fails(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    fire = Store.fire
    monkeypatch.setattr(
        Store, "fire", lambda self, id, action, actor, _: fire(self, id, action, actor, True)
    )
    result = run("conform", "--machine", MACHINE)
    assert result.exit_code == 1
    assert "FAILED guard gating: `release` from `testing` gave `released`" in result.stdout
    assert result.stderr == "interlock: nonconforming: 1 check failed: guard gating\n"
    result = run("conform", "--machine", MACHINE, "--json")
    assert json.loads(result.stdout)["ok"] is False
    assert json.loads(result.stderr)["reason"] == "nonconforming"


def test_conform_usage(run: CommandLine) -> None:
    run.misused("conform")
    run.misused("conform", "--machine", "nosuch.json")
    run.refused("invalid-declaration", "conform", "--machine", run.declare({}))
    run.refused("invalid-request", "conform", "--machine", MACHINE, "--store", "x.db", code=2)
    run.refused(
        "storage-failure", "conform", "--machine", MACHINE, "--store", "sqlite:///.", code=3
    )


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A demo that only says one line; what is put into the list are its failures."""
    failures: list[str] = []

    def run_demo(directory: Path | None, tell: Callable[[str], None] | None) -> demo.Told:
        if tell:
            tell("once upon a time")
        database = f"{directory}/demo.db"
        return demo.Told(database=database, failures=failures, commands=["a", "b", "c"])

    monkeypatch.setattr(demo, "run_demo", run_demo)
    return failures


def test_demo(run: CommandLine, played: list[str]) -> None:
    assert run.ok("demo", "--dir", "here") == "once upon a time\n"


def test_demo_json(run: CommandLine, played: list[str]) -> None:
    told = run.json("demo", "--dir", "here")
    assert (told["ok"], told["database"]) == (True, "here/demo.db")
    assert told["commands"] == ["a", "b", "c"]


def test_a_demo_that_fails(run: CommandLine, played: list[str]) -> None:
    played.append("it broke")
    assert "it broke" in run.refused("demo-failed", "demo")


def test_a_demo_where_there_is_one(run: CommandLine) -> None:
    (run.folder / "demo.db").touch()
    told = run.refused("invalid-request", "demo", "--dir", run.folder, code=2)
    assert "there is a demo in" in told
