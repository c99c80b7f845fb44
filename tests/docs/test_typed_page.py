"""The page on typed states: its program runs with the module that it speaks of, and mypy judges."""

from pathlib import Path

import pytest

from interlock.language import loads
from interlock.typed.module import write_module
from tests.docs.pages import DOCS, ROOT, code_blocks, table, words
from tests.docs.test_blocks import run_page
from tests.unit.typed.test_types import judged, refusals

PAGE = DOCS / "typed-states.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the machine of the page, and its module."""
    folder = tmp_path / "page"
    folder.mkdir()
    (machine,) = code_blocks(PAGE, "yaml")
    (folder / "order.machine.yaml").write_text(machine, encoding="utf-8")
    (folder / "order_states.py").write_text(write_module(loads(machine)), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("MYPYPATH", f"{ROOT / 'src'}:{folder}")
    return folder


def test_the_program_of_the_page_runs_and_gives_what_it_says(folder: Path) -> None:
    run_page(PAGE)


def test_the_table_names_what_is_in_the_module(folder: Path) -> None:
    text = (folder / "order_states.py").read_text(encoding="utf-8")
    named = {word for name, _ in table(PAGE, "name", "what it is") for word in words(name)}
    assert len(named) == 7
    for name in named:
        assert f"\nclass {name}:" in text or f"\n{name}: TypeAlias = " in text


@pytest.mark.slow
def test_the_checker_refuses_the_lines_that_the_page_says(folder: Path) -> None:
    program = "".join(code_blocks(PAGE, "python"))
    program = program.replace("from decimal", "from typing import assert_never\nfrom decimal", 1)
    (folder / "program.py").write_text(program, encoding="utf-8")
    assert judged(folder, "program.py") == refusals(program)
