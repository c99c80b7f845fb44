"""`ingest` and `discover`."""

import gzip
import json

import pytest

from interlock.cli import logs
from tests.unit.cli.line import MACHINE, CommandLine

LOG = """\
case,action,time,actor
B-1,begin-testing,2025-01-01T08:00Z,rivera
B-2,release,2025-01-01T08:01Z,santos
B-1,release,2025-01-01T09:00Z,santos
B-3,begin-testing,2025-01-01T10:00Z,rivera
B-3,reject-batch,2025-01-01T11:00Z,
B-2,begin-testing,2025-01-01T12:00Z,rivera
"""


@pytest.fixture
def log(run: CommandLine) -> str:
    (run.folder / "log.csv").write_text(LOG)
    return "log.csv"


def test_ingest(run: CommandLine, log: str) -> None:
    lines = run.ok("ingest", log, "--machine", MACHINE).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["CASE", "POSITION", "LINE", "STATE", "ACTION", "REASON"],
        ["B-1", "2", "4", "testing", "release", "guard-not-satisfied"],
        ["B-2", "1", "3", "sampled", "release", "invalid-transition"],
    ]
    assert lines[3:] == [
        "",
        "3 cases, 1 conforming",
        "6 events: 3 recorded, 0 recorded before, 2 refused (1 guard-not-satisfied, "
        "1 invalid-transition), 1 not tried after a refusal",
    ]
    assert run.ok("verify") == "ok: 3 instances, 3 entries, no findings\n"


def test_ingest_again_goes_on(run: CommandLine, log: str) -> None:
    run.ok("ingest", log, "--machine", MACHINE)
    told = run.json("ingest", log, "--machine", MACHINE, "--assert-guards")
    (refusal,) = told.pop("refusals")
    assert told == {
        "cases": 3,
        "conforming": 2,
        "events": 6,
        "recorded": 1,
        "recognised": 3,
        "refused": 1,
        "untried": 1,
        "undated": 0,
        "reasons": {"invalid-transition": 1},
    }
    assert refusal["message"].startswith("`release` is not declared from `sampled`")
    del refusal["message"]
    assert refusal == {
        "case": "B-2",
        "position": 1,
        "line": 3,
        "state": "sampled",
        "action": "release",
        "reason": "invalid-transition",
    }


def test_a_conforming_log_has_no_table(run: CommandLine, log: str) -> None:
    (run.folder / "ok.csv").write_text("case,action,time\nA,begin-testing,2025-06-01T10:00Z\n")
    told = run.ok("ingest", "ok.csv", "--machine", MACHINE)
    assert told.startswith("1 case, 1 conforming\n1 event: 1 recorded")


def test_other_columns_formats_and_zones(run: CommandLine) -> None:
    rows = [{"nr": "X", "what": "begin-testing", "when": "2025-06-01T10:00", "who": "r"}]
    (run.folder / "log").write_text("\n".join(map(json.dumps, rows)))
    columns = (
        *("--case-column", "nr", "--action-column", "what"),
        *("--time-column", "when", "--actor-column", "who", "--format", "jsonl"),
    )
    run.ok("ingest", "log", "--machine", MACHINE, *columns, "--time-zone", "Europe/Berlin")
    (instance,) = run.json("list", "--subject", "X")["instances"]
    assert instance["instantiated_at"] == "2025-06-01T08:00:00+00:00"
    (entry,) = run.json("history", instance["id"])["entries"]
    assert (entry["actor_ref"], entry["fired_at"]) == ("r", "2025-06-01T08:00:00+00:00")
    assert run.json("discover", "log", *columns)["states"] == ["start", "begin-testing"]


def test_sources_keep_cases_apart(run: CommandLine, log: str) -> None:
    for source in ("north", "south", "north"):
        run.ok("ingest", log, "--machine", MACHINE, "--source", source)
    assert len(run.json("list")["instances"]) == 6


def test_in_memory_nothing_is_kept(run: CommandLine, log: str) -> None:
    told = run.ok("ingest", log, "--machine", MACHINE, "--store", "sqlite://")
    assert "3 cases, 1 conforming" in told
    assert not run.is_made()


def test_every_refusal_is_listed(
    run: CommandLine, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAGE_ROWS", 7)
    cases = [f"C-{number}" for number in range(1200)]  # a report itself keeps a thousand
    rows = "".join(f"{case},release,2025-06-01T10:00Z\n" for case in cases)
    (run.folder / "many.csv").write_text(f"case,action,time\n{rows}")
    told = run.ok("ingest", "many.csv", "--machine", MACHINE).splitlines()
    assert [line.split()[0] for line in told[1:1201]] == cases
    answer = run.json("ingest", "many.csv", "--machine", MACHINE)
    assert [refusal["case"] for refusal in answer["refusals"]] == cases


def test_a_refusal_that_needs_its_sentence_has_it(run: CommandLine) -> None:
    (run.folder / "log.csv").write_text("case,action,time\nA,begin-testing,noon\n")
    told = run.ok("ingest", "log.csv", "--machine", MACHINE)
    assert "invalid-request: " in told
    assert "`noon`" in told


def test_events_without_a_time_are_told_of(run: CommandLine) -> None:
    """They are dated when they are recorded, which a column of another name may have hidden."""
    (run.folder / "log.csv").write_text("case,action,when\nA,begin-testing,2024-05-01T12:00Z\n")
    result = run("ingest", "log.csv", "--machine", MACHINE)
    assert result.exit_code == 0
    assert "1 event without a time: dated when recorded; --time-column" in result.stderr
    assert run.json("ingest", "log.csv", "--machine", MACHINE)["undated"] == 1


def test_a_log_cannot_forge_lines(run: CommandLine) -> None:
    (run.folder / "log.csv").write_text(
        'case,action,time\n"A\n\x1b[2Jok","go\x9b\n",2025-06-01T10:00Z\n'
    )
    told = run.ok("ingest", "log.csv", "--machine", MACHINE)
    assert told.replace("\n", "").isprintable()
    assert "A\\n\\x1b[2Jok" in told


def test_a_log_without_the_columns_makes_no_store(run: CommandLine) -> None:
    (run.folder / "log.csv").write_text("number,what\n1,pay\n")
    before = sorted(run.folder.iterdir())
    run.refused("invalid-log", "ingest", "log.csv", "--machine", MACHINE)
    assert sorted(run.folder.iterdir()) == before


def test_logs_that_cannot_be_read(run: CommandLine, log: str) -> None:
    told = run.refused("invalid-log", "ingest", log, "--machine", MACHINE, "--case-column", "nr")
    assert "log.csv:1: no column `nr`" in told
    assert "no column `nr`" in run.refused("invalid-log", "discover", log, "--case-column", "nr")
    (run.folder / "log.txt").write_text(LOG)
    assert "format" in run.refused("invalid-log", "discover", "log.txt")
    answer = json.loads(run("discover", "log.txt", "--json").stderr)
    assert answer["file"] == "log.txt"
    (run.folder / "log.csv.gz").write_bytes(gzip.compress(LOG.encode())[:-9])
    run.refused("invalid-log", "discover", "log.csv.gz")


def test_ingest_usage(run: CommandLine, log: str) -> None:
    run.misused("ingest", log)
    run.misused("ingest", "nosuch.csv", "--machine", MACHINE)
    run.misused("ingest", log, "--machine", "nosuch.json")
    run.misused("ingest", log, "--machine", MACHINE, "--batch", 0)
    run.misused("ingest", log, "--machine", MACHINE, "--format", "xml")
    told = run.refused(
        "invalid-request", "ingest", log, "--machine", MACHINE, "--time-zone", "Mars/X", code=2
    )
    assert "no time zone" in told
    run.refused("invalid-declaration", "ingest", log, "--machine", run.declare({}))


def test_discover(run: CommandLine, log: str) -> None:
    told = run.ok("discover", log)
    assert json.loads(told) == run.json("discover", log)
    assert json.loads(told)["terminal_states"] == ["reject-batch"]
    (run.folder / "found.json").write_text(told)
    run.ok("check", "found.json")
    assert "3 cases, 3 conforming" in run.ok("ingest", log, "--machine", "found.json")
    run.misused("discover")
