"""XML as a plain tree in which every element knows its place. Only elements and text are read.

A document type is refused, and with it every entity that a file could define: no text grows while
it is read, and nothing is fetched. Size, depth and number of elements are bounded by the budgets
that hold for our own files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from interlock.language.convert.result import ConvertError
from interlock.language.node import Budgets
from interlock.language.source import Mark, Source


@dataclass(slots=True)
class Element:
    """An element; `space` is its namespace, empty when it has none.

    Attributes:
        attributes: by name; those of another namespace by it, a blank, and the name.
    """

    tag: str
    space: str
    attributes: dict[str, str]
    mark: Mark
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What stands in it beside its children, without blanks around."""
        return "".join(self.texts).strip()

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)

    def named(self, tag: str) -> Iterator["Element"]:
        return (child for child in self.children if child.tag == tag and child.space == self.space)


def read_xml(source: Source, budgets: Budgets) -> Element:
    """Read a document.

    Raises:
        ConvertError: it is not well-formed, has a document type, or is over a budget.
    """
    return _Reader(source, budgets).read()


class _Reader:
    def __init__(self, source: Source, budgets: Budgets) -> None:
        self._source = source
        self._budgets = budgets
        # The text was decoded already, so what it says of its own encoding no longer holds.
        self._parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self._top = Element("", "", {}, Mark(1, 1))
        self._opened = [self._top]
        self._count = 0

    def read(self) -> Element:
        parser = self._parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._doctype
        parser.buffer_text = True
        try:
            parser.Parse(self._source.text.encode(), True)
        except expat.ExpatError as fault:
            message = f"not well-formed: {expat.ErrorString(fault.code)}"
            raise self._refused("xml-syntax", message, fault.lineno, fault.offset) from None
        return self._top.children[0]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1 + len(attributes)
        if self._count > self._budgets.nodes:
            excess = f"more than {self._budgets.nodes} elements and attributes (budget `nodes`)"
            raise self._refused("budget-exceeded", excess)
        if len(self._opened) > self._budgets.depth:
            excess = f"nested deeper than {self._budgets.depth} levels (budget `depth`)"
            raise self._refused("budget-exceeded", excess)
        space, _, tag = name.rpartition(" ")
        element = Element(tag, space, dict(attributes), self._mark())
        self._opened[-1].children.append(element)
        self._opened.append(element)

    def _end(self, _name: str) -> None:
        self._opened.pop()

    def _text(self, data: str) -> None:
        self._opened[-1].texts.append(data)

    def _doctype(self, *_: object) -> None:
        raise self._refused("xml-doctype", "a document type is not read")

    def _mark(self) -> Mark:
        return Mark(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)

    def _refused(
        self, code: str, message: str, line: int | None = None, offset: int = 0
    ) -> ConvertError:
        mark = self._mark() if line is None else Mark(line, offset + 1)
        return ConvertError([self._source.diagnostic(code, message, mark)])
