"""Every expression of a document against what it may read, in each state where it may be used."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from interlock.core.declaration import Path
from interlock.core.text import nearest, quoted
from interlock.language.chart import Chart, Transition
from interlock.language.expressions.syntax import ExpressionFault
from interlock.language.fields import Fields, required_around
from interlock.language.findings import Findings
from interlock.language.flatten import Flat
from interlock.language.scopes import Expressions

#: Names that are required, once for each way in which they come together.
Requirements = Iterable[frozenset[str]]


def check_expressions(
    chart: Chart, flat: Flat | None, fields: Fields, expressions: Expressions, findings: Findings
) -> None:
    """Report every expression that is none, or that its place does not take.

    Args:
        flat: None where the tree has faults: then a state requires what it says itself.
    """
    required = _requirements(chart, flat, expressions)
    for state in chart.states.values():
        for transition in state.transitions:
            _Checker(transition, fields, expressions, findings).check(required[state.path])


def _requirements(
    chart: Chart, flat: Flat | None, expressions: Expressions
) -> Mapping[str, Requirements]:
    found: dict[str, set[frozenset[str]]] = {path: set() for path in chart.states}
    for name, paths in flat.active.items() if flat is not None else ():
        for path in (*paths, ""):
            found[path].add(expressions.required[name])
    return {path: found[path] or {required_around(state)} for path, state in chart.states.items()}


class _Checker:
    """Checks what one transition writes."""

    def __init__(
        self,
        transition: Transition,
        fields: Fields,
        expressions: Expressions,
        findings: Findings,
    ) -> None:
        self._transition = transition
        self._fields = fields
        self._expressions = expressions
        self._findings = findings
        self._written = findings.document.at(transition.where)

    def check(self, requirements: Requirements) -> None:
        if not isinstance(self._written, dict):
            return
        trigger, where = self._transition.trigger, self._transition.where
        whens = [*_texts(self._written.get("when"), (*where, "when"))]
        sets = self._known(self._written.get("set") or {}, (*where, "set"))
        due = [self._written["at"]] if trigger.kind == "after" and "at" in self._written else []
        for required in requirements:
            for path, text in whens:
                self._try(self._expressions.condition, (text,), path, required)
            for name, text in sets.items():
                self._try(self._expressions.value, (name, text), (*where, "set", name), required)
            for text in due:
                self._try(self._expressions.due, (text,), (*where, "at"), required)

    def _known(self, sets: Mapping[str, str], where: Path) -> dict[str, str]:
        """Give the changes of fields that are there, and report the others."""
        known = self._fields.data.fields
        for name in sets:
            if name not in known and name not in self._fields.broken:
                meant = nearest(name, known)
                hint = f"did you mean `{meant}`?" if meant else "declare it in `data`"
                what = f"`data` has no field {quoted(name)}"
                self._findings.report("unknown-key", what, (*where, name), hint, key=True)
        return {name: text for name, text in sets.items() if name in known}

    def _try(
        self,
        compile_: Callable[..., object],
        given: tuple[Any, ...],
        where: Path,
        required: frozenset[str],
    ) -> None:
        text = given[-1]
        if not isinstance(text, str):
            return  # reported with the shape of the document
        if any(name in text for name in self._fields.broken):
            return  # what is wrong with it may be wrong with the field
        try:
            compile_(*given, self._transition.trigger, required)
        except ExpressionFault as fault:
            self._findings.report_within(fault, text, where)


def _texts(when: Any, where: Path) -> Iterator[tuple[Path, str]]:
    """Give the expressions in what stands under `when`, each with its place."""
    if isinstance(when, str):
        yield where, when
    elif isinstance(when, dict):
        for word, of in when.items():
            if word == "not":
                yield from _texts(of, (*where, word))
            elif word in ("all", "any"):
                for place, part in enumerate(of):
                    yield from _texts(part, (*where, word, place))


def check_sets(flat: Flat, findings: Findings) -> None:
    """Report fields that two transitions set at once: one of the values would be lost."""
    for branch in flat.branches:
        names = [name for name, _ in branch.sets]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            what = f"in `{branch.from_state}`, `{branch.action}` sets `{name}` in two regions"
            findings.report(
                "nondeterministic", what, (*branch.places[-1],), "let one of them set it"
            )
