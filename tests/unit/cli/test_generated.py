"""`gen types` and `gen tests`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.typed.module import write_module
from tests.support.typed import ORDER
from tests.unit.cli.line import MACHINE, CommandLine, on_sqlite

pytestmark = on_sqlite

FILE = "order.machine.json"


@pytest.fixture(autouse=True)
def order(run: CommandLine) -> None:
    Path(FILE).write_text(ORDER.document, encoding="utf-8")


def test_types_are_printed_or_put_into_a_file(run: CommandLine) -> None:
    text = write_module(ORDER)
    assert run.ok("gen", "types", FILE) == text
    assert run.ok("gen", "types", "-", input=ORDER.document) == text
    lines = f"{text.count(chr(10))} lines written"
    assert run.ok("gen", "types", FILE, "-o", "order.py") == f"order.py: {lines}\n"
    assert Path("order.py").read_text(encoding="utf-8") == text
    assert sorted(path.name for path in Path().iterdir()) == [MACHINE, FILE, "order.py"]


def test_tests_read_the_machine_from_where_it_is(run: CommandLine) -> None:
    Path("tests").mkdir()
    run.ok("gen", "tests", FILE, "--out", "tests/test_order.py")
    text = Path("tests/test_order.py").read_text(encoding="utf-8")
    assert 'load(Path(__file__).parent / "../order.machine.json")' in text
    assert run.ok("gen", "tests", FILE) == text.replace("../", "")
    assert "row(" in text
    compile(text, "test_order.py", "exec")


@pytest.mark.slow
def test_the_tests_pass_until_the_machine_changes(run: CommandLine) -> None:
    run.ok("gen", "tests", FILE, "-o", "test_order.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_order.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    changed = ORDER.document.replace('"qty > 5"', '"qty > 6"').replace(
        "data.qty > 5", "data.qty > 6"
    )
    Path(FILE).write_text(changed, encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the machine has changed: run `interlock gen tests` again" in done.stdout


@pytest.mark.parametrize("what", ["types", "tests"])
def test_check_says_whether_a_file_is_up_to_date(run: CommandLine, what: str) -> None:
    assert "`out.py` is not what would be written" in run.refused(
        "stale", "gen", what, FILE, "-o", "out.py", "--check"
    )
    assert not Path("out.py").exists()
    run.ok("gen", what, FILE, "-o", "out.py")
    assert run.ok("gen", what, FILE, "-o", "out.py", "--check") == "out.py: up to date\n"
    with Path("out.py").open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    run.refused("stale", "gen", what, FILE, "-o", "out.py", "--check")
    assert "--check compares" in run.misused("gen", what, FILE, "--check")


def test_json_has_the_text_or_its_file_and_how_many_cases_there_are(run: CommandLine) -> None:
    told = run.json("gen", "types", FILE)
    assert told == {
        "machine": "order",
        "version": "1",
        "digest": ORDER.digest,
        "text": write_module(ORDER),
    }
    told = run.json("gen", "tests", FILE, "-o", "test_order.py")
    assert told["file"] == "test_order.py"
    assert told["taken"] == len(ORDER.flat.branches) + 1
    assert told["refused"] > 30
    assert told["missed"] == []


def test_what_no_way_was_found_to_is_told(run: CommandLine) -> None:
    machine = {
        "machine": "m",
        "data": {"n": {"type": "integer"}},
        "initial": "a",
        "states": {
            "a": {"on": {"go": {"to": "b", "when": 'instance.id == "7"'}, "back": {"to": "b"}}},
            "b": {"final": True},
        },
    }
    Path(FILE).write_text(json.dumps(machine), encoding="utf-8")
    result = run("gen", "tests", FILE)
    assert result.exit_code == 0
    assert "no way was found: a: go -> go/b" in result.stderr
    assert "#   a: go -> go/b: " in result.stdout


def test_what_is_no_machine_is_refused(run: CommandLine) -> None:
    assert "it is no machine" in run.refused("invalid-declaration", "gen", "types", MACHINE)
    Path(FILE).write_text('{"machine": "m", "states": {}}', encoding="utf-8")
    assert FILE in run.refused("invalid-declaration", "gen", "tests", FILE)
    assert "stdin" in run.misused("gen", "tests", "-", input="{}")


def test_a_file_that_cannot_be_written_is_a_fault_of_storage(run: CommandLine) -> None:
    told = run.refused("storage-failure", "gen", "types", FILE, "-o", "no/where.py", code=3)
    assert "`no/where.py` cannot be written: no such file or directory" in told


def test_gen_alone_tells_what_there_is(run: CommandLine) -> None:
    result = run("gen")
    assert result.exit_code == 2
    assert "types" in result.output
    assert run.ok("gen", "types", "-h").count("Example:\n") == 1
    assert "`typse`" in run.misused("gen", "typse") or "typse" in run.misused("gen", "typse")
