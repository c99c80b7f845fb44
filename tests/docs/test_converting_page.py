"""The page about other formats says what really comes of them."""

import pytest

from interlock.language import define, loads
from interlock.language.convert import from_scxml, from_symfony, to_yaml
from tests.docs.pages import DOCS, code_blocks, table, words
from tests.docs.test_blocks import run_page
from tests.docs.test_tables import SOURCES, called_with

PAGE = DOCS / "converting.md"
CONVERT = [*(SOURCES / "language" / "convert").glob("*.py")]


def test_the_python_blocks_run_and_give_what_the_page_says() -> None:
    run_page(PAGE)


def test_the_yaml_is_what_comes_of_the_scxml() -> None:
    python, *_ = code_blocks(PAGE, "python")
    scxml = python.partition('"""')[2].partition('"""')[0]
    made, _ = code_blocks(PAGE, "yaml")
    assert to_yaml(from_scxml(scxml).definition) == made
    loads(made)


def test_the_table_of_markings_is_what_comes_of_the_workflow() -> None:
    _, written = code_blocks(PAGE, "yaml")
    definition = define(from_symfony(written).definition)
    stated = {tuple(words(cell)[0] for cell in row) for row in table(PAGE, "from", "by", "to")}
    assert stated == {(b.from_state, b.action, b.to_state) for b in definition.flat.branches}


@pytest.mark.parametrize(
    ("heads", "makers"),
    [
        (("code", "what became of it"), ("note", "_note")),
        (("code", "why"), ("refuse", "_refuse", "_refused", "diagnostic")),
    ],
)
def test_the_tables_of_codes_are_the_codes_of_the_importers(
    heads: tuple[str, ...], makers: tuple[str, ...]
) -> None:
    stated = [word for cell, _ in table(PAGE, *heads) for word in words(cell)]
    assert sorted(stated) == sorted({*called_with(CONVERT, makers)})
