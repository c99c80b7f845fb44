"""The page of cases names tests that exist, and every test that is named after a case."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, table, words

PAGE = DOCS / "cases.md"
CASES = {row[0]: row for row in table(PAGE, "case", "what must not happen", "tests")}
NAMED_AFTER = re.compile(r"(?<=[a-z]_)[A-W]\d\d(?=_)")


def listed_in(file: Path) -> Iterator[str]:
    """List the tests of a file: `test_x`, or `Class::test_x`."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        places = node.body if isinstance(node, ast.ClassDef) else [node]
        for one in places:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
                if one.name.startswith("test_"):
                    yield inside + one.name


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_a_case_exist(case: str) -> None:
    named = [word for word in words(CASES[case][2]) if "::" in word]
    assert named or "later" in CASES[case][2]
    for name in named:
        file, _, wanted = name.partition("::")
        assert any(fnmatchcase(found, wanted) for found in listed_in(ROOT / file)), name


def test_every_test_that_is_named_after_a_case_is_on_the_page() -> None:
    missing = []
    for file in sorted(ROOT.glob("tests/**/test_*.py")):
        place = str(file.relative_to(ROOT))
        for found in listed_in(file):
            for case in NAMED_AFTER.findall(found):
                named = words(CASES[case][2]) if case in CASES else []
                if not any(fnmatchcase(f"{place}::{found}", name) for name in named):
                    missing.append((case, f"{place}::{found}"))
    assert missing == []


def test_each_case_stands_once_in_the_order_of_ids() -> None:
    listed = re.findall(r"^\| ([A-W]\d\d) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == sorted({*listed})
    assert listed == [*CASES]
