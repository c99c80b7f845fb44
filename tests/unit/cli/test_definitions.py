"""`check`, `draw` and `schema`."""

import json
import re
import sys

import pytest

from interlock.language import dot, loads, machine_schema, mermaid, svg
from tests.support.machines import BATCH, MACHINES
from tests.unit.cli.line import MACHINE, CommandLine, on_sqlite

pytestmark = on_sqlite


def test_check_accepts(run: CommandLine) -> None:
    told = run.ok("check", MACHINE)
    assert told.startswith(f"{MACHINE}: ok, 4 states, 3 transitions, digest ")


def test_check_json(run: CommandLine, batch: str) -> None:
    told = json.loads(run.ok("check", MACHINE, "--json"))
    assert told["ok"] is True
    assert told["diagnostics"] == []
    (definition,) = told["definitions"]
    assert definition == {
        "kind": "declaration",
        "name": "batch",
        "version": None,
        "digest": definition["digest"],
        "states": 4,
        "transitions": 3,
        "file": MACHINE,
    }
    (instance,) = run.json("list")["instances"]
    assert instance["definition"] == definition["digest"]


def test_check_shows_every_fault_of_every_file_at_its_place(run: CommandLine) -> None:
    (run.folder / "payed.yaml").write_text(
        "states: [open, paid]\n"
        "initial_state: opne\n"
        "terminal_states: []\n"
        "transitions:\n"
        "  - {from_state: open, action: pay, to_state: payed}\n"
    )
    (run.folder / "broken.json").write_text('{"states": [')
    result = run("check", "payed.yaml", MACHINE, "broken.json", "nosuch.json")
    assert result.exit_code == 1
    assert "payed.yaml:2:16: error[unknown-state]: unknown state `opne`" in result.stdout
    assert "did you mean `open`?" in result.stdout
    assert "  - {from_state: open, action: pay, to_state: payed}\n" in result.stdout
    assert f"{MACHINE}: ok" in result.stdout
    assert "broken.json:1:" in result.stdout
    assert "nosuch.json: error[unreadable]" in result.stdout
    assert "interlock: invalid-declaration: 4 faults in 3 of 4 files\n" in result.stderr


def test_check_json_of_faults(run: CommandLine) -> None:
    name = run.declare({**BATCH, "initial_state": "smapled"})
    result = run("check", "--json", name, MACHINE)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ok"] is False
    (diagnostic,) = told["diagnostics"]
    assert (diagnostic["code"], diagnostic["file"]) == ("unknown-state", name)
    assert diagnostic["line"] == 1
    assert diagnostic["path"] == "initial_state"
    assert [definition["file"] for definition in told["definitions"]] == [MACHINE]
    assert json.loads(result.stderr)["reason"] == "invalid-declaration"


def test_check_needs_a_file(run: CommandLine) -> None:
    run.misused("check")


def test_a_file_with_terminal_codes_shows_none(run: CommandLine) -> None:
    name = run.declare({**BATCH, "initial_state": "\x1b[31m\nred"})
    result = run("check", name)
    assert result.exit_code == 1
    assert "\x1b" not in result.output


@pytest.mark.parametrize("name", ["batch", "odd-names", "unicode-names", "unreachable"])
def test_draw(run: CommandLine, name: str) -> None:
    file = run.declare(MACHINES[name])
    mermaid, dot = run.ok("draw", file), run.ok("draw", file, "--format", "dot")
    assert mermaid.startswith("stateDiagram-v2\n")
    assert dot.startswith("digraph {\n")
    assert mermaid.isascii() or mermaid.replace("\n", "").isprintable()
    assert run.json("draw", file) == {"format": "mermaid", "text": mermaid}
    assert run.json("draw", file, "--format", "dot") == {"format": "dot", "text": dot}
    image = run.ok("draw", file, "--format", "svg")
    assert image.startswith("<svg ")
    assert run.json("draw", file, "--format", "svg") == {"format": "svg", "text": image}


def test_draw_refuses_what_is_no_declaration(run: CommandLine) -> None:
    file = run.declare({"states": []})
    told = run.refused("invalid-declaration", "draw", file)
    assert f"{file}:1:" in told
    found = json.loads(run("draw", file, "--json").stderr)
    assert [diagnostic["file"] for diagnostic in found["diagnostics"]] == [file] * 4


def test_draw_needs_a_file_and_a_known_format(run: CommandLine) -> None:
    assert "nosuch.json" in run.misused("draw", "nosuch.json")
    assert "mermaid" in run.misused("draw", MACHINE, "--format", "png")
    run.misused("draw", ".")


MACHINE_FILE = """machine: orders
version: 2
initial: open
states:
  open: {on: {pay: paid, wait: limbo}}
  paid: {final: true}
  limbo: {}
"""


def test_check_compiles_a_machine_and_warns(run: CommandLine) -> None:
    (run.folder / "orders.yaml").write_text(MACHINE_FILE)
    told = run.ok("check", "orders.yaml")
    assert "orders.yaml:7:10: warning[dead-end-state]: no way leads from `limbo`" in told
    assert "orders.yaml: ok, 3 states, 2 transitions, digest " in told
    (definition,) = json.loads(run.ok("check", "orders.yaml", "--json"))["definitions"]
    assert (definition["kind"], definition["name"]) == ("machine", "orders")
    assert definition["version"] == "2"


def test_check_shows_the_faults_of_a_machine(run: CommandLine) -> None:
    (run.folder / "orders.yaml").write_text(MACHINE_FILE.replace("pay: paid", "pay: payed"))
    result = run("check", "orders.yaml")
    assert result.exit_code == 1
    assert "orders.yaml:5:20: error[unknown-state]: there is no state `payed`" in result.stdout
    assert "did you mean `paid`?" in result.stdout


def test_schema_prints_what_editors_read(run: CommandLine) -> None:
    told = run.ok("schema")
    assert json.loads(told) == machine_schema()
    assert told.count("\n") > 100  # for people too
    assert run.json("schema") == machine_schema()


CHOICE = """machine: claims
version: 1
data: {amount: {type: integer}, limit: {type: integer}}
initial: open
states:
  open:
    on:
      decide:
        - {to: small, when: "data.amount > data.limit && data.limit > 5"}
        - {to: large, when: "data.amount < 3 && data.limit != 0"}
  small: {final: true}
  large: {final: true}
"""


def test_check_proves_unless_it_is_told_not_to(run: CommandLine) -> None:
    pytest.importorskip("z3")
    (run.folder / "claims.yaml").write_text(CHOICE)
    proved = run.ok("check", "claims.yaml", "--require-proof")
    assert proved.startswith("claims.yaml: ok, 3 states, 2 transitions, digest ")
    told = run.ok("check", "claims.yaml", "--no-proof")
    assert told == proved.replace("2 transitions", "2 transitions, 1 pair of branches not proved")
    (definition,) = run.json("check", "claims.yaml", "--no-proof")["definitions"]
    assert definition["unproved"] == 1
    (definition,) = run.json("check", "claims.yaml")["definitions"]
    assert definition["unproved"] == 0


def test_check_fails_without_a_solver_only_where_a_proof_is_required(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    (run.folder / "claims.yaml").write_text(CHOICE)
    told = run.ok("check", "claims.yaml")
    assert "claims.yaml:10:11: warning[undecided-overlap]: in `open`, `decide` may lead by" in told
    assert "1 pair of branches not proved" in told
    result = run("check", "claims.yaml", "--require-proof")
    assert result.exit_code == 1
    assert "claims.yaml:10:11: error[undecided-overlap]" in result.stdout
    assert "interlock: invalid-declaration: 1 fault in 1 of 1 file\n" in result.stderr


def test_check_shows_values_for_which_two_branches_are_true(run: CommandLine) -> None:
    (run.folder / "claims.yaml").write_text(CHOICE.replace("data.amount < 3", "data.amount < 30"))
    result = run("check", "claims.yaml")
    assert result.exit_code == 1
    assert "error[nondeterministic]: in `open`, `decide` leads by both ways when data.amount =" in (
        result.stdout
    )


def test_check_proves_or_does_not(run: CommandLine) -> None:
    told = run.misused("check", MACHINE, "--require-proof", "--no-proof")
    assert "--require-proof and --no-proof exclude each other" in told


@pytest.mark.parametrize("format", ["mermaid", "dot", "svg"])
def test_draw_shows_a_machine_as_it_is_written(run: CommandLine, format: str) -> None:
    nested = f"{MACHINE_FILE}  shop: {{initial: till, on: {{pay: paid}}, states: {{till: {{}}}}}}\n"
    nested = nested.replace("wait: limbo", "wait: limbo, enter: shop")
    (run.folder / "orders.yaml").write_text(nested)
    drawn = run.ok("draw", "orders.yaml", "--format", format)
    definition = loads(nested)
    assert drawn == {"mermaid": mermaid, "dot": dot, "svg": svg}[format](definition)
    assert {"shop", "till", "paid"} <= {*re.findall(r"\w+", drawn)}
    assert "superseded" not in drawn


def test_draw_refuses_a_machine_with_faults(run: CommandLine) -> None:
    (run.folder / "orders.yaml").write_text(MACHINE_FILE.replace("pay: paid", "pay: payed"))
    told = run.refused("invalid-declaration", "draw", "orders.yaml")
    assert "orders.yaml:5:20: error[unknown-state]: there is no state `payed`" in told
