"""The documentation is true: its code runs, its links lead somewhere, its names exist."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import interlock
from tests.docs.pages import PAGES, ROOT, code_blocks

BIN = Path(sys.executable).parent


def test_the_example_of_the_readme_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    assert "run it with `.venv/bin/python batches.py`" in (ROOT / "README.md").read_text()
    (example,) = code_blocks(ROOT / "README.md", "python")
    (tmp_path / "batches.py").write_text(example)
    command = [sys.executable, "batches.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "guard-not-satisfied",
        "1 sampled begin-testing testing lab-tech-rivera",
        "2 testing release released qp-director-santos",
    ]
    with interlock.open(f"sqlite:///{tmp_path}/batches.db?mode=ro") as store:
        assert [batch.subject_ref for batch in store.instances(state="released")] == ["B-0044"]


def test_the_shell_lines_of_the_readme_work(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    lines = re.findall(r"^    (\. \S+|export \S+|interlock .*)$", readme, re.MULTILINE)
    assert lines[0] == ". .venv/bin/activate"
    assert len(lines) == 6
    if not (BIN / "activate").exists():
        pytest.skip(f"no virtual environment in {BIN.parent}")
    machine = ROOT / "examples" / "batch-qualification.machine.json"
    script = "\n".join(lines).replace("examples/batch-qualification.machine.json", str(machine))
    script = script.replace(".venv/bin/activate", f"'{BIN / 'activate'}'")
    script = script.replace("interlock instantiate", "ID=$(interlock instantiate", 1)
    script = re.sub(r"(ID=\$\(interlock instantiate.*)", r"\1)", script)
    script = script.replace("fire ID", "fire $ID").replace("history ID", "history $ID")
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "begin-testing" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    for target, anchor in links:
        text = (page.parent / target if target else page).read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.M)
        known = {re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in headings}
        assert anchor in known, f"{target}#{anchor}"


def test_every_decision_is_numbered_once() -> None:
    numbers = [page.name[:4] for page in (ROOT / "docs" / "adr").glob("[0-9]*.md")]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_the_glossary_is_in_order() -> None:
    words = re.findall(
        r"^\| (?!word|---)([^|]+?) \|", (ROOT / "docs/glossary.md").read_text(), re.M
    )
    assert words == sorted(words, key=str.lower)


def test_the_architecture_page_names_the_modules_there_are() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    for package, heading in (
        ("core", "The core decides"),
        ("language", "Machines are compiled"),
        ("engine", "An engine runs them"),
    ):
        modules = {path.stem for path in (ROOT / "src/interlock" / package).rglob("[a-z]*.py")}
        section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.*?) \|", section, re.M)
        assert {word for row in rows for word in re.findall(r"`(?:\w+/)?(\w+)`", row)} == modules


def test_the_architecture_page_names_the_modules_of_types_and_tests() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition("## Types and tests are written from machines\n")[2]
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.M)
    modules = {
        f"{package}/{path.stem}"
        for package in ("typed", "witness")
        for path in (ROOT / "src/interlock" / package).glob("[a-z]*.py")
    }
    assert {word for row in rows for word in re.findall(r"`(.*?)`", row)} == modules


def test_the_public_names_are_there() -> None:
    assert [name for name in interlock.__all__ if not hasattr(interlock, name)] == []
    assert {*interlock.__all__} <= {*dir(interlock)}


def test_the_public_names_are_on_the_page_about_python() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    missing = [name for name in interlock.__all__ if not re.search(rf"[`.]{name}\b", page)]
    assert missing == []


def test_the_public_names_say_what_they_are() -> None:
    told = {}
    for name in interlock.__all__:
        value = getattr(interlock, name)
        if not isinstance(value, type):
            told[name] = value.__doc__
            continue
        told[name] = vars(value)["__doc__"]  # its own; a tuple that has none gets its signature
        for part, what in vars(value).items():
            if part[0] != "_" and (inspect.isfunction(what) or isinstance(what, property)):
                told[f"{name}.{part}"] = what.__doc__
    assert [name for name, doc in told.items() if not doc or doc.startswith(f"{name}(")] == []


@pytest.mark.parametrize("name", [name for name in vars(interlock.Store) if name[0] != "_"])
def test_a_verb_says_what_it_takes_and_what_it_raises(name: str) -> None:
    verb = getattr(interlock.Store, name)
    doc = inspect.getdoc(verb) or ""
    taken = {*inspect.signature(verb).parameters} - {"self", "id", "fires", "births"}
    assert [one for one in taken if not re.search(rf"\b{one}\b", doc)] == []
    assert "Raises:" in doc or name == "close"


def test_the_setting_for_an_editor_names_the_file_that_the_command_writes() -> None:
    (setting,) = code_blocks(ROOT / "README.md", "json")
    assert json.loads(setting) == {"yaml.schemas": {"./machine.schema.json": "*.machine.yaml"}}
    for page in (ROOT / "README.md", ROOT / "docs" / "definitions.md"):
        text = page.read_text(encoding="utf-8")
        assert "`interlock schema > machine.schema.json`" in text
        assert "# yaml-language-server: $schema=machine.schema.json\n" in text
        assert '{"yaml.schemas": {"./machine.schema.json": "*.machine.yaml"}}' in text


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_targets_of_the_readme_are_in_the_makefile(target: str) -> None:
    assert f"    make {target} " in (ROOT / "README.md").read_text()
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
