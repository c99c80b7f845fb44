"""A workflow document, compiled: its plan, and all that it means.

What is left out is settled first (`settled`), so that the plan and the digest are made of the same.
Then expressions are compiled, each against what it may name where it stands.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from interlock.core.declaration import Path
from interlock.core.text import quoted
from interlock.language.expressions.expression import Expression, Rooted, compile_expression
from interlock.language.expressions.properties import (
    ANY,
    BOOLEAN,
    INTEGER,
    Properties,
    Type,
)
from interlock.language.expressions.syntax import ExpressionFault
from interlock.language.fields import read_sound
from interlock.language.findings import Findings
from interlock.language.flows.beside import check_beside
from interlock.language.flows.graph import before, check_needs, dependents, in_order, needs_of
from interlock.language.flows.names import DECISION, MOMENT, Given, Names
from interlock.language.flows.plan import (
    Activity,
    FanOut,
    Plan,
    Repeat,
    Retry,
    Step,
    Timeouts,
    Wait,
)
from interlock.language.flows.settled import settled
from interlock.language.flows.template import Template, TemplateFault, compile_template
from interlock.language.flows.vocabulary import WORKFLOW
from interlock.language.schema import Kind, check_schema

WORKFLOWS = Kind("workflow", "steps", WORKFLOW, check_beside)

_WORD = re.compile(r"\w+")

T = TypeVar("T")


class Flow(NamedTuple):
    """A workflow that was compiled.

    Attributes:
        meaning: all that it means, as JSON: two that mean the same have the same.
    """

    plan: Plan
    meaning: Mapping[str, Any]


def compile_flow(findings: Findings) -> Flow | None:
    """Compile a document; whatever is wrong with it is reported."""
    checked = check_schema(findings.document, WORKFLOWS)
    for fault in checked.found:
        findings.add(fault)
    if checked.sound is None:
        return None
    written = {*findings.document.value["steps"]}
    findings.document = checked.sound
    return _Compiler(findings, written - {*checked.sound.value["steps"]}).flow()


class _Compiler:
    """Compiles one document.

    Args:
        lost: steps that were refused as a whole; what else names them is no fault of its own.
    """

    def __init__(self, findings: Findings, lost: Collection[str]) -> None:
        self._findings = findings
        self._broken = set[str]()  # names of fields whose declaration has faults
        self._written: Mapping[str, Any] = findings.document.value
        self._inputs = self._fields(self._written.get("input") or {}, ("input",))
        self._needs = needs_of(self._written["steps"], lost)
        check_needs(self._needs, findings)
        is_sound = not {"unknown-activity-step", "dependency-cycle"} & findings.codes
        self._order = in_order(self._needs) if is_sound else [*self._needs]
        sure = {name: of.surely() for name, of in self._needs.items()}
        everything = dict.fromkeys(self._order, -1)
        self._returns = {
            name: self._fields(step["returns"], ("steps", name, "returns"))
            for name, step in self._written["steps"].items()
            if "returns" in step
        }
        given = {name: self._given(name, step) for name, step in self._written["steps"].items()}
        self._names = Names(
            self._inputs,
            given,
            self._order,
            before(self._needs, self._order) if is_sound else everything,
            before(sure, self._order) if is_sound else everything,
        )

    def flow(self) -> Flow | None:
        findings, written = self._findings, self._written
        meaning = None if findings.has_errors else settled(written)
        steps = {name: self._step(name, meaning) for name in self._order}
        output = None
        if "output" in written:
            needed = {name for of in self._needs.values() for name in of.steps}
            ends = [name for name in self._order if name not in needed]
            scope = self._names.at_the_end(ends)
            output = self._template(written["output"], scope, ("output",))
        if findings.has_errors or meaning is None:
            return None
        plan = Plan(
            self._inputs,
            {name: step for name, step in steps.items() if step is not None},
            dependents(self._needs),
            output,
            meaning["timeout"],
            frozenset(meaning["compensate_on"]),
        )
        return Flow(plan, meaning)

    def _fields(self, map_: Mapping[str, Any], where: Path) -> Properties:
        return read_sound(map_, where, self._findings, self._broken)

    def _given(self, name: str, step: Mapping[str, Any]) -> Given:
        """Say what a step gives."""
        may_be_skipped = "when" in step or "if_skipped" in step
        if "wait" in step:
            reason = next(iter(step["wait"]), "")
            types = {"approval": DECISION, "timer": MOMENT, "cron": MOMENT}
            return Given(types.get(reason, ANY), may_be_skipped)
        type_ = self._returns[name].type() if name in self._returns else ANY
        return Given(Type("array", of=type_) if "for_each" in step else type_, may_be_skipped)

    # Steps

    def _step(self, name: str, meaning: Mapping[str, Any] | None) -> Step | None:
        step, where = self._written["steps"][name], ("steps", name)
        told = None if meaning is None else meaning["steps"][name]
        scope = self._names.within(name)
        when = None
        if "when" in step:
            when = self._expression(step["when"], scope, (*where, "when"))
        fan_out, each = self._fan_out(step, scope, where, told)
        within = self._names.within(name, **each)
        given = self._template(step.get("with") or {}, within, (*where, "with"))
        repeat = self._repeat(name, step, where, told)
        is_whole = "wait" not in step or self._template(step["wait"], scope, (*where, "wait"))
        undo = self._undo(name, step, where, told)
        if told is None or not is_whole:
            return None
        work: Activity | Wait
        if "wait" in step:
            ((reason, awaited),) = told["wait"].items()
            details = compile_template(awaited, scope)
            work = Wait(reason, details, told["timeout"], told["on_refused"] == "continue")
        else:
            work = _activity(told, given)
        needs = self._needs[name]
        skips = told["if_skipped"] == "skip"
        ordered = tuple(sorted(needs.steps))
        return Step(name, work, ordered, needs.any, when, skips, fan_out, repeat, undo)

    def _fan_out(
        self, step: Mapping[str, Any], scope: Rooted, where: Path, told: Any
    ) -> tuple[FanOut | None, Mapping[str, Type]]:
        """Compile what a step is done for each of; give also what may be named then."""
        if "for_each" not in step:
            return None, {}
        of, at = step["for_each"], (*where, "for_each")
        text, at = (of.get("in"), (*at, "in")) if isinstance(of, dict) else (of, at)
        over = None if text is None else self._template(text, scope, at)
        if over is None:
            return None, {"item": ANY, "index": INTEGER}
        item = over.type if over.type == ANY or over.type is None else over.type.of
        if item is None:
            what = f"`for_each` goes over a list, and this is {over.type or 'a text'}"
            self._findings.report("expression-type", what, at, "such as `${ input.parcels }`")
            return None, {"item": ANY, "index": INTEGER}
        names = {"item": item, "index": INTEGER}
        if told is None:
            return None, names
        return FanOut(over, told["for_each"]["max"], told["for_each"]["at_once"]), names

    def _repeat(self, name: str, step: Mapping[str, Any], where: Path, told: Any) -> Repeat | None:
        if "until" not in step.get("repeat", ()):
            return None
        type_ = self._returns[name].type() if name in self._returns else ANY
        scope = self._names.within(name, output=type_)
        until = self._expression(step["repeat"]["until"], scope, (*where, "repeat", "until"))
        if until is None or told is None:
            return None
        return Repeat(until, told["repeat"]["every"], told["repeat"]["max"])

    def _undo(self, name: str, step: Mapping[str, Any], where: Path, told: Any) -> Activity | None:
        undo = step.get("compensate")
        if undo is None:
            return None
        given = None
        if isinstance(undo, dict) and "with" in undo:
            at = (*where, "compensate", "with")
            given = self._template(undo["with"], self._names.after(name), at)
        return None if told is None else _activity(told["compensate"], given)

    # Expressions

    def _expression(self, text: str, scope: Rooted, where: Path) -> Expression | None:
        return self._tried(lambda: compile_expression(text, scope, wants=BOOLEAN), text, where)

    def _template(self, value: Any, scope: Rooted, where: Path) -> Template | None:
        return self._tried(lambda: compile_template(value, scope), value, where)

    def _tried(self, compile_: Callable[[], T], value: Any, where: Path) -> T | None:
        try:
            return compile_()
        except TemplateFault as error:
            self._report(error.fault, error.text, (*where, *error.where))
        except ExpressionFault as fault:
            self._report(fault, value, where)
        return None

    def _report(self, fault: ExpressionFault, text: str, where: Path) -> None:
        """Report a fault; of a step that is there and not needed, say so."""
        if self._broken & {*_WORD.findall(text)}:
            return  # what is wrong with it may be wrong with the field
        rest = text[fault.offset :]
        name = rest.split(".")[0].split("[")[0].strip(" })")
        if name in self._needs and fault.message.startswith("`steps` has no field"):
            own = quoted(str(where[1])) if where[0] == "steps" else "this"
            what = f"{own} reads what {quoted(name)} gives, and does not need it"
            hint, at = f"add `{name}` to its `needs`", (where, text, fault.offset)
            self._findings.report_at("unknown-activity-step", what, at, hint)
            return
        self._findings.report_within(fault, text, where)


def _activity(told: Mapping[str, Any], given: Template | None) -> Activity:
    retry = told["retry"]
    return Activity(
        told["activity"],
        given,
        told["queue"],
        told["priority"],
        Retry(**{**retry, "excluded": frozenset(retry["excluded"])}),
        Timeouts(**told["timeouts"]),
    )
