"""`verify`."""

import json

import pytest

from tests.unit.cli.line import MACHINE, CommandLine


def test_verify(run: CommandLine, released: str) -> None:
    run.ok("instantiate", MACHINE)
    assert run.ok("verify") == "ok: 2 instances, 2 entries, no findings\n"
    assert run.ok("verify", released) == "ok: 1 instance, 2 entries, no findings\n"


def test_verify_an_empty_store(run: CommandLine) -> None:
    run.open().close()
    assert run.ok("verify") == "ok: 0 instances, 0 entries, no findings\n"


def test_verify_json_is_a_report(run: CommandLine, released: str) -> None:
    told = run.json("verify")
    (head,) = told["heads"]
    assert head[:2] == [released, 2]
    del told["heads"]
    wanted = {"ok": True, "instances": 1, "entries": 2, "count": 0, "findings": []}
    assert told == {"interlock_report": 1, "instance": None, **wanted}


def test_findings(run: CommandLine, released: str) -> None:
    run.forge("UPDATE history SET actor_ref = 'nobody' WHERE sequence_number = 1")
    result = run("verify")
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"instance {released} entry 1: invariant 5: it was altered")
    assert result.stderr == "interlock: findings: 1 finding in 1 instance, 2 entries\n"
    told = run("verify", "--json")
    assert told.exit_code == 1
    (finding,) = json.loads(told.stdout)["findings"]
    assert (finding["instance"], finding["entry"], finding["invariant"]) == (released, 1, 5)
    assert json.loads(told.stderr)["reason"] == "findings"


def test_a_finding_cannot_forge_lines(run: CommandLine, released: str) -> None:
    run.forge("UPDATE instances SET current_state = 'x\nok: 9 instances\x1b'")
    told = run("verify").stdout
    assert told.replace("\n", "").isprintable()
    assert all(line.startswith("instance ") for line in told.splitlines())


@pytest.mark.parametrize("how", ["--report", "--json"])
def test_since_finds_what_was_removed(run: CommandLine, released: str, how: str) -> None:
    if how == "--report":
        run.ok("verify", "--report", "earlier.json")
    else:
        (run.folder / "earlier.json").write_text(run.ok("verify", "--json"))
    assert run.ok("verify", "--since", "earlier.json").startswith("ok: ")
    run.forge("DELETE FROM instances")
    run.forge("DELETE FROM history")
    assert run("verify").exit_code == 0
    result = run("verify", "--since", "earlier.json")
    assert result.exit_code == 1
    assert f"instance {released}: invariant 10: the instance is gone" in result.stdout


def test_a_report_in_both_places_is_the_same(run: CommandLine, released: str) -> None:
    told = run.ok("verify", "--json", "--report", "report.json")
    assert (run.folder / "report.json").read_text() == told
    assert sorted(path.name for path in run.folder.glob("report*")) == ["report.json"]


def test_verify_refusals(run: CommandLine, released: str) -> None:
    run.refused("not-known", "verify", "nosuch")
    run.refused("invalid-request", "verify", " ")
    result = run("verify", "nosuch", "--json")
    assert result.stdout == ""
    run.refused("invalid-request", "verify", "--since", MACHINE, code=2)
    assert "nosuch.json" in run.misused("verify", "--since", "nosuch.json")
    told = run.refused("storage-failure", "verify", "--report", "no/such/folder.json", code=3)
    assert "`no/such/folder.json` cannot be written: No such file or directory" in told
    assert "--json" in run.misused("verify", "--report", "-")
