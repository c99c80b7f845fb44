"""`dump` and `restore`."""

import json

import pytest

from tests.unit.cli.line import MACHINE, CommandLine, on_sqlite


@pytest.fixture
def copy(run: CommandLine) -> str:
    """The URL of another store, which is not there yet."""
    return run.url_of("copy")


def test_there_and_back(run: CommandLine, released: str, copy: str) -> None:
    run.ok("instantiate", MACHINE)
    told = run.ok("dump", "--out", "monday.jsonl")
    assert told == "2 instances, 2 entries dumped to `monday.jsonl`\n"
    told = run.ok("restore", "monday.jsonl", "--store", copy)
    assert told == "2 instances, 2 entries in the dump, all restored\n"
    assert run.ok("dump", "--store", copy) == (run.folder / "monday.jsonl").read_text()
    assert run.ok("history", released, "--store", copy) == run.ok("history", released)
    assert run.json("verify", "--store", copy) == run.json("verify")


def test_again_and_on(run: CommandLine, tested: str, copy: str) -> None:
    run.ok("dump", "--out", "monday.jsonl")
    run.ok("restore", "monday.jsonl", "--store", copy)
    run.ok("fire", tested, "release", "--guard")
    run.ok("instantiate", MACHINE)
    run.ok("dump", "--out", "monday.jsonl")
    assert run.ok("restore", "monday.jsonl", "--store", copy) == (
        "2 instances, 2 entries in the dump: 1 instance, 1 entry restored, "
        "the rest was there before\n"
    )
    assert run.json("restore", "monday.jsonl", "--store", copy) == {
        "declarations": 1,
        "instances": 2,
        "entries": 2,
        "payloads": 0,
        "definitions": 0,
        "changes": 0,
        "timers": 0,
        "added_instances": 0,
        "added_entries": 0,
    }


def test_from_stdout_to_stdin(run: CommandLine, released: str) -> None:
    dump = run.ok("dump")
    assert run.ok("dump", "--json") == dump
    assert run.ok("dump", "--out", "-") == dump
    for file in ([], ["-"]):
        url = run.url_of(f"copy_{len(file)}")
        told = run.ok("restore", *file, "--store", url, input=dump)
        assert told == "1 instance, 2 entries in the dump, all restored\n"
        assert run.ok("dump", "--store", url) == dump


def test_some_instances(run: CommandLine, released: str) -> None:
    other = run.ok("instantiate", MACHINE).strip()
    told = run.json("dump", released, "--out", "one.jsonl")
    assert told == {
        "declarations": 1,
        "instances": 1,
        "entries": 2,
        "payloads": 1,
        "definitions": 0,
        "changes": 0,
        "timers": 0,
        "file": "one.jsonl",
    }
    assert len(run.ok("dump", released, other).splitlines()) == 8
    told = run.refused("not-known", "dump", released, "nosuch", "--out", "none.jsonl")
    assert "`nosuch`" in told
    assert not (run.folder / "none.jsonl").exists()


def test_of_one_tenant(run: CommandLine, released: str) -> None:
    run.ok("dump", "--out", "all.jsonl")
    run.ok("restore", "all.jsonl", "--tenant", "acme")
    assert run.ok("dump", "--tenant", "acme") == (run.folder / "all.jsonl").read_text()
    assert len(run.ok("dump", "--tenant", "bolt").splitlines()) == 2
    run.refused("not-known", "dump", released, "--tenant", "bolt", "--out", "bolt.jsonl")
    assert not (run.folder / "bolt.jsonl").exists()


def test_refusals_of_dump(run: CommandLine, released: str) -> None:
    told = run.refused("invalid-request", "dump", "--out", MACHINE, code=2)
    assert "holds something else than a dump" in told
    run.refused("invalid-request", "dump", " ")
    run.refused("storage-failure", "dump", "--out", "no/such/folder.jsonl", code=3)
    run.refused("storage-failure", "dump", "--store", "sqlite:///none.db", code=3)
    assert not (run.folder / "none.db").exists()
    run.misused("dump", "--out", ".")


def test_from_any_database_to_a_file(run: CommandLine, released: str) -> None:
    run.ok("dump", "--out", "monday.jsonl")
    told = run.ok("restore", "monday.jsonl", "--store", "sqlite:///file.db")
    assert told == "1 instance, 2 entries in the dump, all restored\n"
    assert run.ok("dump", "--store", "sqlite:///file.db") == run.ok("dump")


@on_sqlite
def test_a_dump_does_not_replace_the_store(run: CommandLine, released: str) -> None:
    run.refused("invalid-request", "dump", "--out", "store.db", code=2)
    assert run.ok("verify").startswith("ok: ")


def test_refusals_of_restore(run: CommandLine, released: str, copy: str) -> None:
    run.ok("dump", "--out", "dump.jsonl")
    told = run.refused("invalid-request", "restore", MACHINE, "--store", copy)
    assert f"`{MACHINE}` is no dump: line 1:" in told
    assert not run.is_made("copy")
    run.misused("restore", "nosuch.jsonl")
    run.misused("restore", "dump.jsonl", "--store", "sqlite://")
    lines = (run.folder / "dump.jsonl").read_text().splitlines(keepends=True)
    (run.folder / "cut.jsonl").write_text("".join(lines[:-1]))
    told = run.refused("invalid-request", "restore", "cut.jsonl", "--store", copy)
    assert f"line {len(lines)}: it is cut short here" in told
    refused = run("restore", "cut.jsonl", "--json", "--store", copy)
    assert json.loads(refused.stderr)["line"] == len(lines)
    assert json.loads(refused.stderr)["argument"] == "source"


def test_a_conflict_names_the_instance(run: CommandLine, tested: str) -> None:
    run.ok("dump", "--out", "dump.jsonl")
    run.ok("fire", tested, "reject-batch")
    told = run.refused("version-conflict", "restore", "dump.jsonl")
    assert f"`{tested}` is in this store already, and has come to entry 2, the dump to 1" in told


def test_the_store_that_is_missing_tells_of_restore(run: CommandLine) -> None:
    assert "`restore` make one" in run.refused("storage-failure", "list", code=3)
