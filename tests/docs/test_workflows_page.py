"""The page about workflows: its document compiles, and its codes are told."""

import interlock
from tests.docs.pages import DOCS, code_blocks, table, words
from tests.unit.language.flows.test_flow import FAULTS

PAGE = DOCS / "workflows.md"


def test_the_document_compiles_to_what_the_page_says() -> None:
    (text,) = code_blocks(PAGE, "yaml")
    definition = interlock.loads(text)
    assert definition.kind == "workflow"
    assert definition.plan is not None
    assert list(definition.plan.steps) == ["reserve", "approve", "charge", "ship", "settled"]


def test_each_code_of_the_page_is_one_that_is_told() -> None:
    codes = {words(row[0])[0] for row in table(PAGE, "code", "what is wrong with a workflow")}
    assert codes == {code for _, code, _ in FAULTS} & codes
    assert len(codes) == 4
