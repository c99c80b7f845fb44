"""`convert`."""

import json

import pytest

from interlock.language.convert.formats import Format
from tests.support.foreign import SAMPLES, SCXML, SYMFONY_STATES, XSTATE
from tests.unit.cli.line import CommandLine, on_sqlite

pytestmark = on_sqlite

DOOR = """\
machine: door
version: 1
initial: shut
states:
  shut:
    on:
      push: open
  open: {}
"""
DOCTYPE = '<!DOCTYPE scxml [<!ENTITY a "b">]>\n<scxml/>'


def write(run: CommandLine, name: str, text: str) -> str:
    (run.folder / name).write_text(text, encoding="utf-8")
    return name


@pytest.mark.parametrize("format", sorted(SAMPLES))
@pytest.mark.parametrize("to", ["yaml", "json"])
def test_what_comes_of_a_file_is_accepted_by_check(
    run: CommandLine, format: Format, to: str
) -> None:
    file = write(run, "sample", SAMPLES[format])
    for given in ([], ["--from", format]):
        result = run("convert", file, "--to", to, *given)
        assert result.exit_code == 0, result.output
        assert "sample:" in result.stderr
        assert all(": warning[" in line for line in result.stderr.splitlines())
        made = write(run, f"made.{to}", result.stdout)
        assert run("check", made).exit_code == 0


@pytest.mark.parametrize("format", sorted(SAMPLES))
def test_what_went_out_as_scxml_comes_back(run: CommandLine, format: Format) -> None:
    file = write(run, "sample", SAMPLES[format])
    assert run("convert", file, "-o", "once.yaml").exit_code == 0
    assert run("convert", "once.yaml", "--to", "scxml", "-o", "out.scxml").exit_code == 0
    assert run("convert", "out.scxml", "-o", "twice.yaml").exit_code == 0
    once, twice = run.json("check", "once.yaml", "twice.yaml")["definitions"]
    if format != "symfony":  # names with blanks become others in SCXML
        assert once["digest"] == twice["digest"]
    assert (once["states"], once["transitions"]) == (twice["states"], twice["transitions"])


def test_a_file_is_written_whole_and_replaces_nothing(run: CommandLine) -> None:
    file = write(run, "m.yaml", DOOR)
    assert run.ok("convert", file, "--to", "json", "--out", "m.json") == ""
    assert json.loads((run.folder / "m.json").read_text())["machine"] == "door"
    said = run.misused("convert", file, "--out", "m.json")
    assert "`m.json` is there already" in said
    assert run("convert", file, "--out", "no/such/folder").exit_code == 3


def test_the_answer_in_json_has_the_notes_and_the_names(run: CommandLine) -> None:
    file = write(run, "oven.json", XSTATE)
    told = run.json("convert", file)
    assert told["format"] == "yaml"
    assert told["events"]["turn.on"] == "turn_on"
    assert told["states"]["oven.on.fan.slow"] == "on.fan.slow"
    assert {note["file"] for note in told["notes"]} == {"oven.json"}
    made = write(run, "made.yaml", told["text"])
    assert run("check", made).exit_code == 0


def test_stdin_is_read_and_its_format_told(run: CommandLine) -> None:
    result = run("convert", "-", "--name", "stove", input=SCXML)
    assert result.stdout.startswith("machine: stove\n")
    assert "<stdin>:" in result.stderr


def test_of_several_workflows_one_is_named(run: CommandLine) -> None:
    second = SYMFONY_STATES.replace("workflows:\n", "").replace("pull_request", "other")
    file = write(run, "workflows.yaml", SYMFONY_STATES + second)
    assert "`pull_request`, `other`" in run.refused("invalid-declaration", "convert", file)
    result = run("convert", file, "--name", "other")
    assert result.stdout.startswith("machine: other\n")


def test_events_that_a_file_does_not_name_may_be_given(run: CommandLine) -> None:
    text = '<scxml xmlns="http://www.w3.org/2005/07/scxml"><state id="a">'
    text += '<transition event="err.*" target="b"/></state><state id="b"/></scxml>'
    file = write(run, "m.scxml", text)
    result = run("convert", file, "--event", "err.disk", "--event", "errors")
    assert "err_disk: b" in result.stdout
    assert "errors" not in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DOCTYPE, "m:1:17: error[xml-doctype]"),
        ("states: [a", "m:1:11: error[yaml-syntax]"),
        ("- a\n", "m:1:1: error[unknown-format]"),
        ("machine: m\ninitial: b\nstates: {a: {}}\n", "m:2:10: error[unknown-state]"),
        (SCXML.replace("<log", "<script"), "error[unsupported]"),
    ],
)
def test_what_cannot_be_converted_is_refused_at_its_place(
    run: CommandLine, text: str, said: str
) -> None:
    file = write(run, "m", text)
    assert said in run.refused("invalid-declaration", "convert", file)


def test_what_scxml_cannot_say_is_refused(run: CommandLine) -> None:
    timer = '  open: {after: {soon: {at: "data.due", to: shut}}}\n'
    text = DOOR.replace("version: 1\n", "version: 1\ndata: {due: {type: date-time}}\n")
    file = write(run, "m.yaml", text.replace("  open: {}\n", timer))
    assert "error[moment-timer]" in run.refused(
        "invalid-declaration", "convert", file, "--to", "scxml"
    )
