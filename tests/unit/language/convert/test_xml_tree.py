"""XML is read within bounds, and what could grow or fetch while it is read is refused."""

import pytest

from interlock.language import BUDGETS, Budgets
from interlock.language.convert import ConvertError
from interlock.language.convert.xml_tree import Element, read_xml
from interlock.language.source import Mark, decode

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION = f'<!DOCTYPE m [<!ENTITY l0 "ha">{LAUGHS}]>\n<m>&l9;</m>'


def read(text: str | bytes, budgets: Budgets = BUDGETS) -> Element:
    return read_xml(decode(text, "m.xml", max_bytes=budgets.bytes), budgets)


def refused(text: str | bytes, budgets: Budgets = BUDGETS) -> tuple[str, int | None, int | None]:
    with pytest.raises(ConvertError) as caught:
        read(text, budgets)
    (fault,) = caught.value.diagnostics
    assert fault.file == "m.xml"
    return fault.code, fault.line, fault.column


def test_elements_know_their_places_and_namespaces() -> None:
    root = read('<a xmlns="urn:a" xmlns:b="urn:b">\n  <b:c d="1" b:e="2"> x <f/> y </b:c>\n</a>')
    (inner,) = root.children
    assert (root.tag, root.space, root.mark) == ("a", "urn:a", Mark(1, 1))
    assert (inner.tag, inner.space, inner.mark) == ("c", "urn:b", Mark(2, 3))
    assert inner.attributes == {"d": "1", "urn:b e": "2"}
    assert inner.text == "x  y"
    assert [child.tag for child in inner.children] == ["f"]


def test_characters_outside_ascii_count_as_one() -> None:
    root = read("<a>\u00e9\U0001f600<b/></a>")
    assert root.children[0].mark == Mark(1, 6)


@pytest.mark.parametrize(
    "text",
    [
        BILLION,
        '<!DOCTYPE m SYSTEM "http://127.0.0.1:9/m.dtd">\n<m/>',
        '<!DOCTYPE m [<!ENTITY f SYSTEM "file:///etc/passwd">]>\n<m>&f;</m>',
        '<!DOCTYPE m [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>\n<m/>',
        "<!DOCTYPE m>\n<m/>",
    ],
)
def test_a_document_type_is_refused_before_it_is_read(text: str) -> None:
    assert refused(text)[:2] == ("xml-doctype", 1)


def test_an_entity_that_nobody_defined_is_refused() -> None:
    assert refused("<m>\n &nbsp;</m>") == ("xml-syntax", 2, 2)


@pytest.mark.parametrize(
    ("text", "budgets"),
    [
        ("<a>" * 65 + "</a>" * 65, BUDGETS),
        ("<a>" + "<b/>" * 10 + "</a>", Budgets(nodes=10)),
        ("<a " + " ".join(f'b{n}="1"' for n in range(10)) + "/>", Budgets(nodes=10)),
    ],
)
def test_a_document_over_a_budget_is_refused(text: str, budgets: Budgets) -> None:
    assert refused(text, budgets)[0] == "budget-exceeded"


def test_a_text_in_many_pieces_is_read_in_no_time() -> None:
    root = read("<a>" + "x<b/>" * 90_000 + "</a>")
    assert root.text == "x" * 90_000


@pytest.mark.parametrize(
    "text", ["", " ", "<a>", "<a></b>", "<a/><b/>", "x", "<a b=1/>", "<a b='1' b='2'/>", "<x:a/>"]
)
def test_what_is_not_well_formed_is_refused_at_its_place(text: str) -> None:
    code, line, column = refused(text)
    assert code == "xml-syntax"
    assert line == 1
    assert column is not None


def test_what_a_text_says_of_its_encoding_no_longer_holds() -> None:
    assert read('<?xml version="1.0" encoding="ISO-8859-1"?><a b="\u00e9"/>').get("b") == "\u00e9"
    assert read('<?xml version="1.0" encoding="x-none"?><a/>'.encode("utf-16")).tag == "a"
