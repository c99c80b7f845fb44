"""The page about diagnostics: each example is compiled, and says what the page says."""

import re

import pytest

from interlock.language import DefinitionError, Diagnostic, compile_document, read_document
from tests.docs.pages import DOCS, table, words

PAGE = DOCS / "diagnostics.md"
SECTIONS = re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"```yml\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def found_in(document: str) -> list[Diagnostic]:
    try:
        return compile_document(read_document(document, file="m.yaml"))[1]
    except DefinitionError as error:
        return [*error.diagnostics]


@pytest.mark.parametrize(("code", "section"), SECTIONS, ids=[code for code, _ in SECTIONS])
def test_each_code_has_an_example_that_says_what_the_page_says(code: str, section: str) -> None:
    examples = EXAMPLE.findall(section)
    assert examples
    assert section.count("```yml") == len(examples)
    for document, said in examples:
        found = found_in(document)
        assert "".join(f"{one}\n" for one in found) == said
        assert code in {one.code for one in found}


def test_every_code_of_a_machine_and_of_any_file_has_a_section() -> None:
    of_machines = table(DOCS / "definitions.md", "code", "what is wrong with a machine")
    of_files = table(DOCS / "declarations.md", "code", "what is wrong")
    codes = {words(row[0])[0] for row in [*of_machines, *of_files]}
    assert {code for code, _ in SECTIONS} == codes - {"unreadable"}  # that one has no text to show
