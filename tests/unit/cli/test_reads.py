"""`current`, `declaration` and `list`."""

import json

import pytest

import interlock
from interlock.cli import reads
from tests.support.machines import BATCH, MACHINES, TOGGLE
from tests.unit.cli.line import MACHINE, CommandLine


def test_current(run: CommandLine, tested: str) -> None:
    assert run.ok("current", tested) == "testing\n"
    assert run.json("current", tested) == {"id": tested, "state": "testing"}
    run.refused("not-known", "current", "nosuch")
    run.refused("invalid-request", "current", " ")
    run.misused("current")


@pytest.mark.parametrize("name", MACHINES)
def test_declaration_is_exact(run: CommandLine, name: str) -> None:
    declaration = MACHINES[name]
    id = run.ok("instantiate", run.declare(declaration)).strip()
    for told in (run.ok("declaration", id), run.ok("declaration", id, "--json")):
        assert json.loads(told) == declaration
        assert list(json.loads(told)) == list(declaration)
        assert told.replace("\n", "").isprintable()
    (run.folder / "back.json").write_text(run.ok("declaration", id), encoding="utf-8")
    run.ok("check", "back.json")


def test_declaration_refusals(run: CommandLine, batch: str) -> None:
    run.refused("not-known", "declaration", "nosuch")
    run.refused("invalid-request", "declaration", "")


def test_list(run: CommandLine, released: str) -> None:
    other = run.ok("instantiate", MACHINE).strip()
    head, first, second = run.ok("list").splitlines()
    assert head.split() == ["ID", "STATE", "VERSION", "BEGUN", "SUBJECT", "ACTOR"]
    assert first.split()[:3] == [released, "released", "3"]
    assert first.split()[4:] == ["B-44", "system-planner"]
    assert second.split()[:3] == [other, "sampled", "1"]
    for heading, cell in (("STATE", "released"), ("VERSION", "3"), ("SUBJECT", "B-44")):
        assert head.index(heading) == first.index(f" {cell} ") + 1
    assert all(line == line.rstrip() for line in (head, first, second))


def test_list_filters(run: CommandLine, released: str) -> None:
    toggle = run.declare(TOGGLE)
    other = run.ok("instantiate", toggle, "--subject", "T-1").strip()
    digest = run.json("check", toggle)["definitions"][0]["digest"]

    def ids(*arguments: object) -> list[str]:
        return [row["id"] for row in run.json("list", *arguments)["instances"]]

    assert ids() == [released, other]
    assert ids("--state", "released") == [released]
    assert ids("--subject", "T-1") == [other]
    assert ids("--definition", toggle) == ids("--definition", digest) == [other]
    assert ids("--definition", MACHINE, "--state", "sampled") == []
    assert ids("--after", released) == [other]
    assert ids("--limit", 1) == [released]


def test_list_of_nothing(run: CommandLine, batch: str) -> None:
    result = run("list", "--state", "nowhere")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no instances\n")
    assert run.json("list", "--state", "nowhere") == {"instances": [], "next": None}


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_list_goes_page_by_page(
    run: CommandLine, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "PAGE_ROWS", page)
    with run.open() as store:
        births = [interlock.Birth(subject_ref=f"S{number}") for number in range(7)]
        ids = store.instantiate_each(BATCH, births)
    assert [row["id"] for row in run.json("list")["instances"]] == ids
    assert run.ok("list").count("ID") == 1
    assert [line.split()[0] for line in run.ok("list").splitlines()[1:]] == ids
    first = run.json("list", "--limit", 3)
    assert [row["id"] for row in first["instances"]] == ids[:3]
    assert first["next"] == ids[2]
    rest = run.json("list", "--after", first["next"], "--limit", 4)
    assert [row["id"] for row in rest["instances"]] == ids[3:]
    assert rest["next"] is None
    assert f"3 instances shown; go on with --after {ids[2]}" in run("list", "--limit", 3).stderr


def test_list_usage(run: CommandLine, batch: str) -> None:
    run.misused("list", "--limit", 0)
    run.refused("invalid-request", "list", "--state", " ")
    assert "nosuch.json" in run.misused("list", "--definition", "nosuch.json")
    run.refused("invalid-declaration", "list", "--definition", run.declare({}))


def test_names_cannot_forge_lines(run: CommandLine) -> None:
    evil = "paid\n01a2355f-0000-7000-8000-000000000000  released\x1b[2K\x9b31m\u202e"
    declaration = {**TOGGLE, "states": [evil, "b"], "initial_state": evil, "transitions": []}
    id = run.ok("instantiate", run.declare(declaration), "--subject", evil).strip()
    for told in (run.ok("list"), run.ok("current", id), run.ok("replay", id)):
        assert told.replace("\n", "").isprintable()
        assert "paid\\n01a2355f" in told
    assert len(run.ok("list").splitlines()) == 2
    assert run.ok("current", id).count("\n") == 1
    for command in (("list",), ("current", id), ("declaration", id), ("replay", id)):
        told = run.ok(*command, "--json")
        assert told.replace("\n", "").isprintable()
        assert evil in _texts(json.loads(told))


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []
