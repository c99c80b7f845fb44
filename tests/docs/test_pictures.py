"""Pictures in the documentation are what `draw` makes; `REWRITE=1` makes them anew."""

import os
from pathlib import Path

import pytest

from interlock.language import loads, svg
from tests.docs.pages import DOCS, code_blocks


def block(page: str, name: str) -> str:
    (found,) = [
        text for text in code_blocks(DOCS / page, "yaml") if text.startswith(f"machine: {name}\n")
    ]
    return found


@pytest.mark.parametrize(
    ("page", "name"), [("definitions.md", "batch-qualification"), ("definitions.md", "order")]
)
def test_a_picture_is_that_of_the_machine_on_its_page(page: str, name: str) -> None:
    path: Path = DOCS / f"{name}.svg"
    drawn = svg(loads(block(page, name)))
    if os.environ.get("REWRITE"):
        path.write_text(drawn, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == drawn
    assert f"]({name}.svg)" in (DOCS / page).read_text(encoding="utf-8")
