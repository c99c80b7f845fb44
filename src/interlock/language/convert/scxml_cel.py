"""The data of an SCXML document whose expressions are ours: what `to_scxml` writes.

Its data model is called `cel`. A `<data>` element has the schema of its field beside the value that
it begins with; expressions are taken as they stand.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from interlock.language.convert.declared import Untyped, declared, json_value
from interlock.language.convert.result import Definition, Findings
from interlock.language.convert.scxml_actions import Assign, Contents
from interlock.language.convert.scxml_conditions import read
from interlock.language.convert.scxml_tree import OURS, Transition, Tree
from interlock.language.convert.terms import Code, Term, Unreadable
from interlock.language.convert.xml_tree import Element

OUR_DATA = "cel"


class CelData:
    """Data of the data model `cel`.

    Attributes:
        first: the names of the data.
    """

    def __init__(self, tree: Tree, findings: Findings) -> None:
        self._tree = tree
        self._findings = findings
        self._fields: Definition = {}
        for element in tree.data:
            id = element.get("id") or ""
            if not id or id in self._fields:
                message = f"data `{id}` has no id of its own"
                findings.refuse("data-id", message, element.mark)
            else:
                self._fields[id] = self._field(id, element)
        self.first: dict[str, Term | None] = dict.fromkeys(self._fields)

    def _field(self, id: str, element: Element) -> Definition:
        if odd := sorted({"src"} & set(element.attributes)):
            message = f"data `{id}` is read from a file (`{odd[0]}`)"
            self._findings.refuse("src", message, element.mark)
        text = element.get("expr")
        try:
            schema = json_value(element.get(f"{OURS} schema") or "{}")
            value = None if text is None else json_value(text)
            if not isinstance(schema, dict):
                raise Untyped("its schema is no object")
            if text is None:
                return schema
            return {**schema, "default": value} if schema else declared(value)
        except (Untyped, ValueError) as fault:
            message = f"the first value of `{id}` cannot be carried over: {fault}"
            self._findings.refuse("data-value", message, element.mark)
            return {}

    def parse(self, text: str) -> Term:
        return Code(text)

    def infer(self, contents: Contents) -> None:
        """Refuse what is assigned elsewhere than on transitions, or step by step."""
        for blocks in (contents.entry, contents.exit):
            for state, block in blocks.items():
                if block.statements:
                    message = f"`{state.id}` assigns as it is entered or left"
                    self._findings.refuse("assign-on-the-way", message, state.mark)
        for transition, block in contents.moves.items():
            changed: set[str] = set()
            for one in block.statements:
                reads = isinstance(one, Assign) and isinstance(one.term, Code) and one.term.text
                if not reads or any(re.search(rf"\bdata\.{n}\b", reads) for n in changed):
                    message = "what is assigned depends on what was assigned just before"
                    self._findings.refuse("assign-in-order", message, transition.mark)
                elif isinstance(one, Assign):
                    changed.add(one.name)

    def declared(self, _: Mapping[str, Term]) -> Definition:
        return self._fields

    def condition(self, transition: Transition) -> Term | None:
        return None if transition.cond is None else Code(transition.cond)

    def when(self, term: Term, path: Callable[[str], str]) -> tuple[Any, str | None]:
        assert isinstance(term, Code)
        return read(term.text, path)

    def expression(self, term: Term) -> str:
        if not isinstance(term, Code):
            raise Unreadable("no expression of ours")
        return term.text

    def field(self, name: str) -> str:
        return name
