"""Values for which conditions hold and others do not: asked of the prover, put as data and payload.

    solver = Solver(definition)
    solver.find(Question("review", Trigger("event", "decide"), yes=[branch.when]))
    # Found(data={"amount": 99.0, "region": "EU"}, payload={}, …), or why there is nothing

Whatever is found is a proposal: the model, and then the engine, say what comes of it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from interlock.language.chart import Trigger
from interlock.language.claims import claim_of
from interlock.language.condition import Condition, Expr, negated, tests
from interlock.language.definition import Definition
from interlock.language.expressions.expression import Expression, Scope
from interlock.language.expressions.properties import Properties, Property, written
from interlock.language.expressions.syntax import ExpressionFault
from interlock.language.flatten import Branch
from interlock.language.proof.claim import All, Claim
from interlock.language.proof.domains import domains
from interlock.language.proof.prove import Domain, Impossible, Possible, Prover
from interlock.witness.sample import NoSample, filled

NOTHING = Properties()

#: Why there are no values where there cannot be any; every other reason is of what was not found.
IMPOSSIBLE = "no values make its condition true there"


class _Place(NamedTuple):
    """Where an expression is read, for `Definition.expression`."""

    from_state: str
    action: str
    trigger: Trigger


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is looked for.

    Attributes:
        state, trigger: where the conditions are read.
        yes, no: what has to be true, and what false; an error is neither.
        texts: expressions that have to be true as well, as far as they compile.
        data: what the data is already; None if it may be chosen.
        version: of the instance.
    """

    state: str
    trigger: Trigger
    yes: Sequence[Condition] = ()
    no: Sequence[Condition] = ()
    texts: Sequence[str] = ()
    data: Mapping[str, Any] | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class Found:
    """Values.

    Attributes:
        guards: what guards in Python say.
        actor, now, begun: None where it is all the same.
    """

    data: Mapping[str, Any]
    payload: Mapping[str, Any]
    guards: Mapping[str, bool] = field(default_factory=dict)
    actor: str | None = None
    now: datetime | None = None
    begun: datetime | None = None


class Solver:
    """Answers questions about one definition; equal ones get equal answers."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._known: dict[str, Found | str] = {}

    def find(self, question: Question) -> Found | str:
        """Give values, or say why there are none."""
        key = repr(question)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(question)
        return found

    def _find(self, question: Question) -> Found | str:
        given = [*question.yes, *map(negated, question.no)]
        listed = [test.text for one in given for test in tests(one) if isinstance(test, Expr)]
        extra = [*self._texts(question, listed)]
        try:
            claims = [claim_of(one, lambda text: self._read(text, question)) for one in given]
        except ExpressionFault as fault:
            return f"a condition is not understood: {fault}"
        claims += [claim_of(Expr(text), lambda text: self._read(text, question)) for text in extra]
        claim: Claim = All(tuple(claims))
        known, presence = domains(self._scope(question))
        known["instance.state"] = Domain(enum=(question.state,))
        known["instance.version"] = Domain(enum=(question.version,))
        verdict = Prover(known, presence=presence).satisfiable(claim)
        if isinstance(verdict, Impossible):
            return IMPOSSIBLE
        if not isinstance(verdict, Possible):
            return f"no values were found: {verdict.why}"
        try:
            return self._found(question, verdict)
        except NoSample as why:
            return f"no values were found: {why}"

    def _found(self, question: Question, verdict: Possible) -> Found:
        witness = dict(verdict.witness)
        absent = {*verdict.absent}
        data, event = dict[str, object](), dict[str, object]()
        for name, value in witness.items():
            root, _, path = name.partition(".")
            if name not in absent and root in ("data", "event"):
                (data if root == "data" else event)[path] = value
        required = self._definition.required(question.state)
        payload = filled(self._payload(question.trigger), event)
        if question.data is None:
            whole: Mapping[str, Any] = filled(self._definition.data, data, required)
        else:
            whole = question.data
        actor, now = witness.get("actor"), witness.get("now")
        begun = witness.get("instance.instantiated_at")
        return Found(
            whole,
            payload,
            verdict.guards,
            actor if isinstance(actor, str) else None,
            now if isinstance(now, datetime) else None,
            begun if isinstance(begun, datetime) else None,
        )

    def _texts(self, question: Question, listed: Sequence[str]) -> Iterator[str]:
        """Give what has to be true besides: of what is known, and of what is mentioned."""
        texts = [text for text in question.texts if self._compiles(text, question)]
        names = {name for text in (*listed, *texts) for name in self._read(text, question).names}
        if "actor" in names:
            texts.append('actor != ""')
        if {"now", "instance.instantiated_at"} <= names:
            texts.append("instance.instantiated_at <= now")
        texts += self._sizes(question, names)
        if question.data is not None:
            texts += self._pins(question.data, names)
        return (text for text in texts if self._compiles(text, question))

    def _sizes(self, question: Question, names: Iterable[str]) -> Iterator[str]:
        """Say how many items the arrays have at least that are mentioned."""
        roots = {"data": self._definition.data, "event": self._payload(question.trigger)}
        for name in sorted(names):
            root, _, first = name.partition(".")
            property_ = roots.get(root, NOTHING).fields.get(first)
            if property_ is not None and property_.items is not None and property_.length[0]:
                yield f"size({name}) >= {property_.length[0]}"

    def _pins(self, data: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
        """Say that fields have the values that they have."""
        fields = self._definition.data.fields
        for name in sorted({n.split(".")[1] for n in names if n.startswith("data.")}):
            property_ = fields[name]
            if name not in data:
                yield f"!has(data.{name})"
                continue
            told = literal(property_, data[name])
            if told is not None:
                test = f"data.{name} == {told}"
                yield f"has(data.{name}) && {test}" if property_.optional else test

    def _payload(self, trigger: Trigger) -> Properties:
        if trigger.kind != "event":
            return NOTHING
        return self._definition.events.get(trigger.name, NOTHING)

    def _scope(self, question: Question) -> Scope:
        definition = self._definition
        optional = {name for name, f in definition.data.fields.items() if f.optional}
        present = optional & definition.required(question.state)
        event = self._payload(question.trigger) if question.trigger.kind == "event" else None
        return Scope(definition.data, event, present=frozenset(f"data.{n}" for n in present))

    def _read(self, text: str, question: Question) -> Expression:
        trigger = question.trigger
        place = _Place(question.state, f"witness/{trigger.kind}/{trigger.name}", trigger)
        return self._definition.expression(text, place)  # type: ignore[arg-type]

    def _compiles(self, text: str, question: Question) -> bool:
        try:
            self._read(text, question)
        except ExpressionFault:
            return False
        return True


def set_claims(definition: Definition, branch: Branch) -> list[str]:
    """Say in expressions that what a branch sets has a value, and one that is allowed."""
    found = []
    for name, text in branch.sets:
        property_ = definition.data.fields[name]
        if text.strip() == "absent":
            continue
        value = f"({text}\n)"
        if any(sign in text for sign in "+-*/%["):
            found.append(f"{value} == {value}")
        for bound, signs, is_open in (
            (property_.minimum, (">=", ">"), property_.exclusive[0]),
            (property_.maximum, ("<=", "<"), property_.exclusive[1]),
        ):
            told = None if bound is None else literal(property_, written(bound))
            if told is not None:
                found.append(f"{value} {signs[is_open]} {told}")
        if property_.values is not None:
            listed = [literal(property_, written(one)) for one in property_.values]
            found.append(f"{value} in [{', '.join(map(str, listed))}]")
        least, most = property_.length
        if least:
            found.append(f"size({value}) >= {least}")
        if most is not None:
            found.append(f"size({value}) <= {most}")
    return found


def literal(property_: Property, value: Any) -> str | None:
    """Write a JSON value as it stands in expressions; None if it cannot."""
    match property_.type.name:
        case "boolean":
            return "true" if value else "false"
        case "string":
            return json.dumps(value)
        case "integer":
            return str(value)
        case "number":
            return repr(float(value))
        case "decimal":
            told = f"{Decimal(value):f}"
            return told if "." in told else f"{told}.0"
        case "date-time":
            return f"timestamp({json.dumps(value)})"
        case _:
            return None
