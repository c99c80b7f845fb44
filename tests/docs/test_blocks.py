"""The Python blocks of a page are one program, and it gives what the page says.

`EXPRESSION  # -> VALUE` in a block is compared, and has to be reached: a refusal that does not come
leaves its `except` unread.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.core.declaration import check_declaration
from interlock.language import DefinitionError, loads, loads_declaration
from tests.docs.pages import DOCS, PAGES, ROOT, code_blocks, placed_blocks
from tests.support.postgres import database

SAYS = re.compile(r"^( *)(\S.*?)  # -> (.+)$", re.MULTILINE)


def run_page(page: Path) -> None:
    """Run the blocks of a page in the working directory."""
    reached: set[str] = set()
    wanted: set[str] = set()

    def says(place: str, found: object, said: object) -> None:
        reached.add(place)
        assert found == said, f"{place}: gives {found!r}, not {said!r}"

    names: dict[str, Any] = {"__name__": "page", "_says": says}
    for before, block in placed_blocks(page, "python"):
        lines = block.splitlines()
        for number, line in enumerate(lines):
            place = f"{page.name}:{before + number + 1}"
            if match := SAYS.match(line):
                wanted.add(place)
                lines[number] = f"{match[1]}_says({place!r}, ({match[2]}), ({match[3]}))"
            assert match or "# ->" not in line, f"{place}: cannot be compared"
        program = "\n" * before + "\n".join(lines)  # so that a traceback has the lines of the page
        exec(compile(program, page, "exec"), names)
    assert wanted
    assert reached == wanted, f"not reached: {sorted(wanted - reached)}"


@pytest.mark.parametrize(
    "name",
    ["python.md", "declarations.md", "engine.md", "verification.md", "machines-in-python.md"],
)
def test_the_blocks_of_the_page_run_and_give_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / name)


def test_the_blocks_about_postgresql_run_on_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with database() as url:
        monkeypatch.setenv("DATABASE_URL", url)
        run_page(DOCS / "postgresql.md")


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("1 + 1  # -> 3", "page.md:2: gives 2, not 3"),
        ("try:\n    1\nexcept ValueError:\n    2  # -> 2", "not reached.*page.md:5"),
        ("1 + 1 # -> 2", "page.md:2: cannot be compared"),
    ],
)
def test_a_page_that_fell_behind_is_found(block: str, fault: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{block}\n```\n\n```python\n0  # -> 0\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=fault):
        run_page(page)


def test_both_forms_of_the_declaration_say_the_same() -> None:
    (json_text,) = code_blocks(DOCS / "declarations.md", "json")
    (yaml_text,) = code_blocks(DOCS / "declarations.md", "yaml")
    declaration = loads_declaration(json_text, file="page.json")
    assert check_declaration(declaration) == []
    assert loads_declaration(yaml_text, file="page.yaml") == declaration


#: A machine, and what it is refused with if a block says so.
MACHINE = re.compile(
    r"^```yaml\n(?P<machine>(?:(?!```).*\n)*?machine: (?:(?!```).*\n)+)```\n"
    r"(?:\n```text\n(?P<refusal>error.*)\n)?",
    re.MULTILINE,
)


@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page, "yaml")])
def test_every_machine_on_a_page_compiles_or_is_refused_as_it_says(page: Path) -> None:
    machines = [*MACHINE.finditer(page.read_text(encoding="utf-8"))]
    written = [block for block in code_blocks(page, "yaml") if re.search("^machine:", block, re.M)]
    assert [found["machine"] for found in machines] == written
    for found in machines:
        if found["refusal"] is None:
            loads(found["machine"])
            continue
        with pytest.raises(DefinitionError) as refusal:
            loads(found["machine"])
        assert found["refusal"] in str(refusal.value)
    assert machines or page.name != "definitions.md"
