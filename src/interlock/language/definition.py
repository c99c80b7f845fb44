"""A definition: a machine document, compiled to a flat declaration.

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
structure in Python. Passes: read with positions, schema, tree, flat machine, analysis, declaration.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.core.declaration import Path
from interlock.language.analysis import (
    check_automatic,
    check_never,
    check_reachable,
    dead_ends,
)
from interlock.language.chart import Chart, Trigger, read_chart
from interlock.language.condition import ALWAYS, text
from interlock.language.diagnostic import DefinitionError, Diagnostic, in_order
from interlock.language.document import Document, load_document, read_document
from interlock.language.flatten import Branch, Flat, TooManyStates, flatten
from interlock.language.node import BUDGETS, Budgets
from interlock.language.schema import check_schema

STATES_MAX = 10_000
SUPERSEDED = "superseded"  # the state, and the action, by which a successor takes over
LABEL_BYTES = 480  # of a condition that stands as a guard in the declaration


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A machine that was compiled. Equal digests mean the same machine.

    Attributes:
        name, version: as the document says.
        digest: SHA-256 of all that it means, in hexadecimal.
        states: the flat states, in order, without the reserved ones.
        warnings: findings that do not keep it from being used.
        flat: what the engine runs.
    """

    name: str
    version: str
    digest: str
    states: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]
    flat: Flat = field(repr=False)
    _declaration: str = field(repr=False)

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

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Definition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def load(
    path: str | os.PathLike[str], *, states_max: int = STATES_MAX, budgets: Budgets = BUDGETS
) -> Definition:
    """Compile a file.

    Args:
        states_max: the most flat states, which parallel regions multiply.

    Raises:
        DefinitionError: every fault is among its diagnostics.
    """
    return _compiled(load_document(path, budgets=budgets), states_max)


def loads(
    data: str | bytes,
    *,
    file: str | None = None,
    states_max: int = STATES_MAX,
    budgets: Budgets = BUDGETS,
) -> Definition:
    """Compile a text, as `load` does a file."""
    return _compiled(read_document(data, file=file, budgets=budgets), states_max)


def define(
    machine: Mapping[str, Any], *, states_max: int = STATES_MAX, budgets: Budgets = BUDGETS
) -> Definition:
    """Compile a mapping that says what a file would say.

    Raises:
        DefinitionError: as `load`; places are those of the mapping written as JSON.
    """
    try:
        written = json.dumps(machine, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as fault:
        message = f"the mapping is not made of JSON's values: {fault}"
        raise DefinitionError([Diagnostic(code="wrong-type", message=message)]) from None
    return loads(written, states_max=states_max, budgets=budgets)


def is_machine(document: Document) -> bool:
    """Whether a document means to be a machine, well formed or not."""
    return isinstance(document.value, dict) and "machine" in document.value


def compile_document(
    document: Document, *, states_max: int = STATES_MAX
) -> tuple[Definition | None, list[Diagnostic]]:
    """Compile a document as far as it goes; give also every finding, in order of place."""
    compiler = _Compiler(document, states_max)
    definition = compiler.run()
    return definition, in_order(compiler.found.values())


def _compiled(document: Document, states_max: int) -> Definition:
    definition, found = compile_document(document, states_max=states_max)
    if definition is None:
        raise DefinitionError(found)
    return definition


class _Compiler:
    def __init__(self, document: Document, states_max: int) -> None:
        self._document = document
        self._states_max = states_max
        self.found: dict[tuple[str, Path, str], Diagnostic] = {}

    def run(self) -> Definition | None:
        written = self._document.value
        for fault in check_schema(self._document):
            self.found[fault.code, (fault.path,), fault.message] = fault
        if any(code in ("wrong-type", "missing-key") for code, _, _ in self.found):
            return None  # what is not of its shape is not read
        chart = read_chart(written, self._report)
        if self._has_errors():
            return None
        try:
            flat = flatten(chart, budget=self._states_max)
        except TooManyStates:
            what = f"parallel regions make more than {self._states_max} states"
            self._report("budget-exceeded", what, ("states",), "raise `states_max`, or part them")
            return None
        for one, other in flat.clashes:
            what = f"two branches of `{one.from_state}` are both called `{one.action}`"
            self._report("name-clash", what, other.places[0], "give each a `name`")
        self._check_determinism(flat)
        check_reachable(chart, flat, self._report)
        check_automatic(flat, self._report)
        check_never(written.get("never") or (), chart, flat, self._report)
        self._warn_of_dead_ends(chart, flat)
        if self._has_errors():
            return None
        return self._definition(written, flat)

    def _definition(self, written: Mapping[str, Any], flat: Flat) -> Definition:
        declaration = json.dumps(_declaration(flat), ensure_ascii=False, separators=(",", ":"))
        return Definition(
            str(written["machine"]),
            str(written.get("version", "dev")),
            _digest(written, flat, declaration),
            tuple(flat.leaves),
            tuple(in_order(self.found.values())),
            flat,
            declaration,
        )

    def _check_determinism(self, flat: Flat) -> None:
        """Report transitions that could be taken at the same time, where one has to be."""
        for pair in flat.choices:
            if pair.conditions != (ALWAYS, ALWAYS):
                continue
            what = f"in `{pair.state}`, {_told(pair.trigger)} leads by both ways: " + " and ".join(
                f"`{one.label}` of `{one.source.path}`" for one in (pair.one, pair.other)
            )
            hint = "say when with `when`, or which comes first"
            self._report("nondeterministic", what, pair.other.where, hint)

    def _report(self, code: str, message: str, where: Path, hint: str | None = None) -> None:
        self._add(code, message, where, hint, is_warning=False)

    def _add(
        self, code: str, message: str, where: Path, hint: str | None, *, is_warning: bool
    ) -> None:
        finding = self._document.diagnostic(
            code, message, where, hint=hint, severity="warning" if is_warning else "error"
        )
        self.found.setdefault((code, where, message), finding)

    def _warn_of_dead_ends(self, chart: Chart, flat: Flat) -> None:
        for state in dead_ends(chart, flat):
            what = f"no way leads from `{state.path}` to a final state"
            self._add("dead-end-state", what, state.where, None, is_warning=True)

    def _has_errors(self) -> bool:
        return any(finding.severity == "error" for finding in self.found.values())


def _told(trigger: Trigger) -> str:
    """Name a trigger in a sentence."""
    if trigger.kind in ("event", "after"):
        return f"`{trigger.name}`"
    return "what is automatic" if trigger.kind == "always" else "what is done when it is over"


def _declaration(flat: Flat) -> dict[str, Any]:
    """Write the flat machine as a declaration of the core."""
    transitions = []
    for branch in flat.branches:
        transition = {
            "from_state": branch.from_state,
            "action": branch.action,
            "to_state": branch.to_state,
        }
        label = _label(branch)
        transitions.append(transition if label is None else {**transition, "guard": label})
    transitions += [
        {"from_state": state, "action": SUPERSEDED, "to_state": SUPERSEDED}
        for state in flat.leaves
        if state not in flat.final
    ]
    return {
        "states": [*flat.leaves, SUPERSEDED],
        "transitions": transitions,
        "initial_state": flat.initial,
        "terminal_states": [*sorted(flat.final), SUPERSEDED],
    }


def _label(branch: Branch) -> str | None:
    """Give the guard of a branch: what the caller asserts, or else what the engine finds true."""
    if branch.guards:
        return " && ".join(branch.guards)
    if branch.when == ALWAYS:
        return None
    label = text(branch.when)
    if len(label.encode()) <= LABEL_BYTES:
        return label
    digest = hashlib.sha256(label.encode()).hexdigest()[:16]
    cut = label.encode()[: LABEL_BYTES - 32].decode(errors="ignore")
    return f"{cut}… sha256:{digest}"


def _digest(written: Mapping[str, Any], flat: Flat, declaration: str) -> str:
    """Name all that a definition means: two that mean the same have the same digest."""
    meaning = {
        "machine": written["machine"],
        "version": written.get("version", "dev"),
        "data": written.get("data") or {},
        "events": written.get("events") or {},
        "gates": written.get("gates") or {},
        "declaration": json.loads(declaration),
        "entered": [flat.entered, flat.hooks],
        "branches": [
            [
                branch.from_state,
                branch.action,
                branch.trigger,
                branch.owner,
                text(branch.when),
                branch.guards,
                sorted(map(repr, branch.recalls)),
                sorted(branch.remembers.items()),
                branch.sets,
                branch.hooks,
                branch.due,
            ]
            for branch in flat.branches
        ],
    }
    written_out = json.dumps(meaning, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written_out.encode()).hexdigest()
