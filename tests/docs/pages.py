"""What the tests of the documentation share: the pages, their blocks and their tables."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def code_blocks(page: Path, language: str) -> list[str]:
    return [block for _, block in placed_blocks(page, language)]


def placed_blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """List the blocks in a language, each with how many lines come before its first."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in found]


def table(page: Path, *heads: str) -> list[list[str]]:
    """Give the rows, as cells, of all tables of a page whose columns have these names."""
    rows: list[list[str]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif inside and set("".join(cells)) != {"-"}:
            rows.append(cells)
        elif cells == [*heads]:
            inside = True
    return rows


def words(cell: str) -> list[str]:
    """List what stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)
