"""A definition: a document of a machine or a workflow, compiled to a flat declaration.

    definition = loads('''
    machine: toggle
    version: 1
    initial: off
    states:
      off: {on: {go: on}}
      on: {on: {go: off}}
    ''')
    definition.declaration    -> {"states": ["off", "on", "superseded"], …}
    definition.leaves("off")  -> ("off",)

The same text gives the same digest, however the keys of its mappings are ordered; so does the same
structure in Python. Passes: read with positions, schema, tree, fields, flat machine, expressions,
analysis, determinism, declaration. A workflow's declaration is its lifecycle, and it has a plan.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.language.analysis import (
    check_automatic,
    check_never,
    check_reachable,
    dead_ends,
    warn_of_labels,
)
from interlock.language.chart import Chart, read_chart
from interlock.language.declared import canonical, declaration_of, digest_of
from interlock.language.determinism import Unproved, check_determinism
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import Document, load_document, plain_document, read_document
from interlock.language.expressions.expression import Expression
from interlock.language.expressions.properties import Properties
from interlock.language.fields import check_fields, read_fields, required_in
from interlock.language.findings import Findings
from interlock.language.flatten import Branch, Flat, TooManyStates, flatten
from interlock.language.flows.flow import compile_flow
from interlock.language.flows.lifecycles import COMPENSATED_WORKFLOW, WORKFLOW
from interlock.language.flows.plan import Plan
from interlock.language.held import check_held
from interlock.language.node import BUDGETS, Budgets
from interlock.language.presence import check_presence, check_raised
from interlock.language.schema import check_schema
from interlock.language.scopes import Expressions
from interlock.language.typecheck import check_expressions, check_sets

STATES_MAX = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A machine or a workflow that was compiled. Equal digests mean the same.

    Attributes:
        name, version: as the document says.
        digest: SHA-256 of all that it means, in hexadecimal.
        states: the flat states, in order, without the reserved ones.
        warnings: findings that do not keep it from being used.
        unproved: branches of which it was not proved that they exclude each other.
        data: the fields that an instance keeps; of a workflow, its input.
        events: the payloads of the events that are declared; any other event has no fields.
        document: what was compiled, as JSON; `restore` reads it.
        flat: what the engine runs.
        plan: the steps of a workflow; None of a machine.
    """

    name: str
    version: str
    digest: str
    states: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]
    unproved: tuple[Unproved, ...]
    data: Properties = field(repr=False)
    events: Mapping[str, Properties] = field(repr=False)
    document: str = field(repr=False)
    flat: Flat = field(repr=False)
    _declaration: str = field(repr=False)
    _expressions: Expressions = field(repr=False)
    plan: Plan | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """`machine` or `workflow`."""
        return "machine" if self.plan is None else "workflow"

    @property
    def declaration(self) -> dict[str, Any]:
        """The flat declaration, as a fresh copy."""
        copy: dict[str, Any] = json.loads(self._declaration)
        return copy

    def leaves(self, state: str) -> tuple[str, ...]:
        """Give the active states without inner ones, by their paths, of a flat state.

        Raises:
            KeyError: there is no such flat state.
        """
        return self.flat.leaves[state]

    def required(self, state: str) -> frozenset[str]:
        """Give the names of the data that has to be there in a flat state.

        Raises:
            KeyError: there is no such flat state.
        """
        return self._expressions.required[state]

    def expression(self, text: str, branch: Branch) -> Expression:
        """Give an expression under a branch's `when`, compiled once."""
        return self._expressions.test(text, branch)

    def setter(self, name: str, text: str, branch: Branch) -> Expression | None:
        """Give the expression of what a branch sets a field to; None takes the field away.

        All of them see the data as it was before the branch was taken.
        """
        return self._expressions.setter(name, text, branch)

    def moment(self, branch: Branch) -> Expression | None:
        """Give the expression of the moment that a timer's branch waits for; None of a duration.

        It is evaluated when the state of the timer is entered.
        """
        return self._expressions.moment(branch)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Definition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def load(
    path: str | os.PathLike[str],
    *,
    prove: bool = True,
    states_max: int = STATES_MAX,
    budgets: Budgets = BUDGETS,
) -> Definition:
    """Compile a file.

    Args:
        prove: whether branches are proved to exclude each other, as far as that can be done
            without z3 where it is not installed; what is compiled is the same either way.
        states_max: the most flat states, which parallel regions multiply.

    Raises:
        DefinitionError: every fault is among its diagnostics.
    """
    return _compiled(load_document(path, budgets=budgets), prove, states_max)


def loads(
    data: str | bytes,
    *,
    file: str | None = None,
    prove: bool = True,
    states_max: int = STATES_MAX,
    budgets: Budgets = BUDGETS,
) -> Definition:
    """Compile a text, as `load` does a file."""
    return _compiled(read_document(data, file=file, budgets=budgets), prove, states_max)


def define(
    machine: Mapping[str, Any],
    *,
    prove: bool = True,
    states_max: int = STATES_MAX,
    budgets: Budgets = BUDGETS,
) -> Definition:
    """Compile a mapping that says what a file would say.

    Raises:
        DefinitionError: as `load`; places are those of the mapping written as JSON.
    """
    try:
        written = json.dumps(machine, ensure_ascii=False, indent=1, allow_nan=False)
    except RecursionError:
        message = f"nested deeper than {budgets.depth} levels (budget `depth`)"
        raise DefinitionError([Diagnostic(code="budget-exceeded", message=message)]) from None
    except (TypeError, ValueError) as fault:
        message = f"the mapping is not made of JSON's values: {fault}"
        raise DefinitionError([Diagnostic(code="wrong-type", message=message)]) from None
    return loads(written, prove=prove, states_max=states_max, budgets=budgets)


def restore(document: str) -> Definition:
    """Compile the `document` of a definition again, to an equal one.

    It was judged when it was compiled, so nothing is judged or proved again, and expressions are
    compiled when they are asked for.

    Raises:
        DefinitionError: it is no such text.
    """
    found = Findings(plain_document(document))
    if is_workflow(found.document):
        definition = _compile_workflow(found)
        if definition is None:
            raise DefinitionError(found.in_order())
        return definition
    chart = read_chart(found.document.value, found.report)
    if found.has_errors:
        raise DefinitionError(found.in_order())
    flat = flatten(chart, budget=sys.maxsize)
    fields = read_fields(found.document.value)
    expressions = Expressions(fields.data, fields.events, required_in(flat, chart))
    return _definition(found, flat, expressions, [])


def is_machine(document: Document) -> bool:
    """Whether a document means to be a machine, well formed or not.

    The states of a bare declaration are a list; those of a machine are known by that too.
    """
    value = document.value
    return isinstance(value, dict) and ("machine" in value or isinstance(value.get("states"), dict))


def is_definition(document: Document) -> bool:
    """Whether a document means to be a machine or a workflow, well formed or not."""
    return is_machine(document) or is_workflow(document)


def is_workflow(document: Document) -> bool:
    """Whether a document means to be a workflow, well formed or not."""
    value = document.value
    is_one = isinstance(value, dict) and (
        "workflow" in value or isinstance(value.get("steps"), dict)
    )
    return is_one and not is_machine(document)


def compile_document(
    document: Document,
    *,
    prove: bool = True,
    require_proof: bool = False,
    states_max: int = STATES_MAX,
) -> tuple[Definition | None, list[Diagnostic]]:
    """Compile a document as far as it goes; give also every finding, in order of place.

    Args:
        require_proof: whether it is a fault where the solver that a proof needs is missing.
    """
    found = Findings(document)
    if is_workflow(document):
        definition = _compile_workflow(found)
    else:
        definition = _compile(found, prove, require_proof, states_max)
    return definition, found.in_order()


def _compiled(document: Document, prove: bool, states_max: int) -> Definition:
    definition, found = compile_document(document, prove=prove, states_max=states_max)
    if definition is None:
        raise DefinitionError(found)
    return definition


def _compile(
    found: Findings, prove: bool, require_proof: bool, states_max: int
) -> Definition | None:
    checked = check_schema(found.document)
    for fault in checked.found:
        found.add(fault)
    if checked.sound is None:
        return None
    found.document = checked.sound  # whoever reads on meets what is of its type alone
    chart = read_chart(found.document.value, found.report)
    fields = check_fields(chart, found)
    flat = None if found.has_errors else _flat(chart, found, states_max)
    required = {} if flat is None else required_in(flat, chart)
    expressions = Expressions(fields.data, fields.events, required)
    check_expressions(chart, flat, fields, expressions, found)
    check_raised(chart, fields, found)
    if flat is None:
        return None
    check_sets(flat, found)
    check_presence(flat, expressions, found)
    check_reachable(chart, flat, found.report)
    check_automatic(flat, found.report)
    warn_of_labels(chart, found.warn)
    check_never(found.document.value.get("never") or (), chart, flat, found.report)
    unproved = check_determinism(
        chart, flat, expressions, found, prove=prove, require_proof=require_proof
    )
    for state in dead_ends(chart, flat):
        what = f"no way leads from `{state.path}` to a final state"
        found.warn("dead-end-state", what, state.where)
    return None if found.has_errors else _definition(found, flat, expressions, unproved)


def _compile_workflow(found: Findings) -> Definition | None:
    flow = compile_flow(found)
    if flow is None:
        return None
    plan, written = flow.plan, found.document.value
    lifecycle = COMPENSATED_WORKFLOW if plan.compensates else WORKFLOW
    declaration, states = lifecycle.declaration(), lifecycle.states
    flat = Flat(
        initial=states[0],
        leaves={state: (state,) for state in states},
        active={state: frozenset({state}) for state in states},
        final=frozenset(lifecycle.terminal),
        branches=[],
        entered=(),
        hooks=(),
        choices=[],
        clashes=[],
    )
    meaning = canonical({"meaning": flow.meaning, "declaration": declaration})
    return Definition(
        name=flow.meaning["workflow"],
        version=flow.meaning["version"],
        digest=hashlib.sha256(meaning.encode()).hexdigest(),
        states=tuple(states),
        warnings=tuple(found.in_order()),
        unproved=(),
        data=plan.inputs,
        events={},
        document=canonical(written),
        flat=flat,
        _declaration=json.dumps(declaration, ensure_ascii=False, separators=(",", ":")),
        _expressions=Expressions(plan.inputs, {}, dict.fromkeys(states, frozenset())),
        plan=plan,
    )


def _flat(chart: Chart, found: Findings, states_max: int) -> Flat | None:
    try:
        flat = flatten(chart, budget=states_max)
    except TooManyStates:
        what = f"parallel regions make more than {states_max} states"
        found.report("budget-exceeded", what, ("states",), "raise `states_max`, or part them")
        return None
    for one, other in flat.clashes:
        line = found.document.mark(one.places[0]).line
        what = f"`{one.action}` of `{one.from_state}` is two branches, the first on line {line}"
        found.report("name-clash", what, other.places[0], "give each a `name`")
    check_held(flat, chart, found.report)
    return flat


def _definition(
    found: Findings, flat: Flat, expressions: Expressions, unproved: list[Unproved]
) -> Definition:
    written = found.document.value
    declaration = declaration_of(flat)
    return Definition(
        name=str(written["machine"]),
        version=str(written.get("version", "dev")),
        digest=digest_of(written, flat, expressions.required, declaration),
        states=tuple(flat.leaves),
        warnings=tuple(found.in_order()),
        unproved=tuple(unproved),
        data=expressions.data,
        events=expressions.events,
        document=canonical(written),
        flat=flat,
        _declaration=json.dumps(declaration, ensure_ascii=False, separators=(",", ":")),
        _expressions=expressions,
    )
