"""XES (IEEE 1849): a log of traces of events, in XML.

A trace is a case. Its attributes come before its events, as the standard's schema has it, and are
taken as `case:…`. What is nested in an attribute, and the log's own attributes, extensions, globals
and classifiers, are passed over. Elements are dropped as soon as they are read.

Entities cannot blow up a file: expat has bounded what they may expand to since its 2.4.1.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, iterparse

from interlock.core.text import clipped
from interlock.eventlog.attributes import Attributes
from interlock.eventlog.event import Columns, Row
from interlock.eventlog.logfile import LogFile


def xes_rows(file: LogFile, columns: Columns) -> Iterator[Row]:
    """Yield the rows of an XES log; the number of an event stands for its line.

    Raises:
        LogError: it is no well-formed XML, or no log; or see `Attributes.pick`.
    """
    attributes = Attributes(file, columns)
    above: list[Element] = []  # the open elements, outermost first
    of_trace: dict[str, str] = {}
    number = 0
    seen = False  # whether the open trace has had an event
    try:
        for happening, element in iterparse(file.stream, ("start", "end")):  # noqa: S314
            if happening == "start":
                if not above and _tag(element) != "log":
                    raise file.fault(f"the root is `{clipped(_tag(element))}`, not `log`", _HINT)
                above.append(element)
                if len(above) > _DEPTH_MAX:
                    raise file.fault(f"is nested deeper than {_DEPTH_MAX} elements", _HINT)
                continue
            above.pop()
            kind = _tag(element)
            place = tuple(map(_tag, above))
            if place not in (_LOG, _TRACE):
                continue
            if kind == "event":
                number += 1
                seen = place == _TRACE  # an event right under the log belongs to no trace
                case, action, time, actor = map(str, attributes.pick(of_trace | _values(element)))
                yield case, action, time, actor, number
            elif place == _TRACE:
                if seen:
                    what = f"an attribute of its trace stands after event {number}"
                    raise file.fault(what, "the attributes of a trace come first")
                of_trace |= {f"case:{key}": value for key, value in _values([element]).items()}
            elif kind == "trace":
                of_trace, seen = {}, False
            above[-1].clear()
    except ParseError as error:
        line = error.position[0]
        raise file.fault(f"is no well-formed XML: {error}", _HINT, line=line) from None
    except (LookupError, ValueError) as error:
        raise file.fault(f"its encoding is not known: {error}", "convert it to UTF-8") from None
    attributes.finish()


_DEPTH_MAX = 100
_LOG = ("log",)
_TRACE = ("log", "trace")
_HINT = "check that this is a whole XES file"


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _values(elements: Element | list[Element]) -> dict[str, str]:
    """Give the values of attributes by key; lists and containers have none."""
    return {
        child.attrib["key"]: child.attrib["value"]
        for child in elements
        if "key" in child.attrib and "value" in child.attrib
    }
