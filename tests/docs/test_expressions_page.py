"""The page about expressions runs, and names every function there is."""

import re
from pathlib import Path

from interlock.language.expressions import checker, properties
from tests.docs.pages import DOCS, table, words
from tests.docs.test_blocks import run_page

PAGE = DOCS / "expressions.md"


def test_the_blocks_of_the_page_run_and_give_what_it_says() -> None:
    run_page(PAGE)


def test_the_page_lists_each_type_with_its_keys() -> None:
    rows = table(PAGE, "type", "keys", "JSON", "in Python")
    listed = {word for row in rows for word in words(row[0])}
    assert listed == set(properties._KEYS)
    keys = {word for row in rows for word in words(row[1])}
    assert keys == {key for keys in properties._KEYS.values() for key in keys}


def test_the_page_lists_each_code_of_a_property_map() -> None:
    listed = {words(code)[0] for code, _ in table(PAGE, "code", "in a map, or in a value")}
    source = Path(properties.__file__).read_text()
    assert listed == set(re.findall(r'Fault\(\s*"([a-z-]+)"', source))


def test_the_page_lists_each_function() -> None:
    cells = " ".join(how for _, how in table(PAGE, "what", "how"))
    named = set(re.findall(r"([A-Za-z_]+)\(", cells)) | set(re.findall(r"`\.([A-Za-z]+)`", cells))
    assert named == {*checker._METHODS, *checker._FUNCTIONS}
