"""Whether branches can be taken together: a proof that they cannot, or values for which they are.

    prover = Prover({"data.amount": Domain(minimum=0)})
    prover.overlap([Test(small), Test(large)])      # `data.amount <= 100`, `data.amount >= 100`
    # Overlap(witness={"data.amount": 100}): show() gives `data.amount = 100`

First the bounds of single values are compared (`bounds`): that settles most pairs in microseconds
and needs no solver. What is left goes to z3 (`solver`), which is an extra: `interlock[prove]`.
Without it the answer is `Undecided("no solver")`.

INVARIANT: `Disjoint` and `Impossible` are proofs for all values within the domains. A witness is
given only after the evaluator itself has found every claim true for it. Anything else is
`Undecided`, with the reason.

Equal questions in equal order get equal answers: the solver's seed is fixed, and its effort is
counted in steps; `timeout_ms` cuts off what is slower still.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import combinations
from typing import Any as Term
from typing import TypeAlias

from interlock.language.expressions.cel_ast import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    Comprehension,
    Identifier,
    Node,
    children,
)
from interlock.language.expressions.literals import EPOCH, Scalar, moment
from interlock.language.proof.bounds import (
    Box,
    Range,
    bounded,
    claim_box,
    claim_cases,
    every,
    meet,
    pick,
)
from interlock.language.proof.claim import (
    All,
    Any,
    Claim,
    Guard,
    Not,
    Opaque,
    Test,
    opaques,
    tests,
    truth,
)
from interlock.language.proof.solver import DOUBLE_MAX, Formulas, TooCoarse, Translated, unescaped

__all__ = [
    "All",
    "Any",
    "Claim",
    "Disjoint",
    "Domain",
    "Guard",
    "Impossible",
    "Not",
    "Opaque",
    "Overlap",
    "Possible",
    "Prover",
    "Test",
    "Undecided",
    "overlap",
    "satisfiable",
]

TIMEOUT_MS = 2000
STEPS_PER_MS = 3000  # z3's own count; about what it does in a millisecond on a slow machine
ROUNDS = 12  # examples that are tried before giving up
SIZE_MAX = 1000  # members of a list in an example

ALWAYS = "always"  # an example in words, where no value matters
UNREAD = CelType("dyn")  # the type of a variable that is only asked after

SCALARS = (BOOL, INT, UINT, DOUBLE, STRING, TIMESTAMP, DURATION)
CENTURY = (datetime(2000, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1) * 10**9
PLAIN: dict[CelType, object] = {
    BOOL: False,
    INT: 0,
    UINT: 0,
    DOUBLE: 0.0,
    STRING: "",
    TIMESTAMP: moment(CENTURY),
    DURATION: timedelta(0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What is declared of a variable, in the values that expressions see.

    Attributes:
        optional: it may be absent; an expression that reads it then fails.
        exclusive: the bounds themselves are not allowed: (minimum, maximum).
        scale: the variable is a whole number that stands for a decimal with so many digits after
            the point; only for showing.
    """

    optional: bool = False
    enum: tuple[Scalar, ...] | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive: tuple[bool, bool] = (False, False)
    min_length: int | None = None
    max_length: int | None = None
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Disjoint:
    """No values make all of the claims true."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """No values make the claim true."""


@dataclass(frozen=True, slots=True)
class _Example:
    """Values for which everything is true.

    Attributes:
        witness: by the variables' names; what is absent is left out.
        guards: what the registered guards say.
        absent: optional variables that matter and are not there.
        text: all of it in words: `data.amount = 100, data.region = "EU"`.
    """

    witness: Mapping[str, object]
    guards: Mapping[str, bool] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Overlap(_Example):
    """Values for which all of the claims are true."""


@dataclass(frozen=True, slots=True)
class Possible(_Example):
    """Values for which the claim is true."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither was found."""

    why: str


Verdict: TypeAlias = Disjoint | Overlap | Undecided


def overlap(
    claims: Sequence[Claim],
    scope: Mapping[str, Domain] | None = None,
    *,
    presence: Mapping[str, str] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> Verdict:
    """Say whether claims can be true together. For many of one scope, make one `Prover`."""
    return Prover(scope, presence=presence, timeout_ms=timeout_ms).overlap(claims)


def satisfiable(
    claim: Claim,
    scope: Mapping[str, Domain] | None = None,
    *,
    presence: Mapping[str, str] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> Possible | Impossible | Undecided:
    """Say whether a claim can be true."""
    return Prover(scope, presence=presence, timeout_ms=timeout_ms).satisfiable(claim)


class Prover:
    """Answers about claims over one scope; each expression is translated once.

    It belongs to one thread.

    Args:
        scope: what is declared of variables; of one that is not named, only its type is known.
        presence: boolean variables that say whether another one is present: name -> the other.
        timeout_ms: for one question.
    """

    def __init__(
        self,
        scope: Mapping[str, Domain] | None = None,
        *,
        presence: Mapping[str, str] | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._scope = dict(scope or {})
        self._presence = dict(presence or {})
        self._timeout_ms = timeout_ms
        self._boxes: dict[int, tuple[Claim, Box | None]] = {}
        self._split: dict[int, tuple[Claim, list[Box]]] = {}
        self._variables: dict[str, dict[str, CelType]] = {}
        self._formulas: dict[bool, Formulas | None] = {}

    def overlap(self, claims: Sequence[Claim]) -> Verdict:
        """Say whether claims can all be true together."""
        found = self._decide(tuple(claims))
        if isinstance(found, _Example):
            return Overlap(found.witness, found.guards, found.absent, found.text)
        return Disjoint() if found is None else found

    def satisfiable(self, claim: Claim) -> Possible | Impossible | Undecided:
        """Say whether a claim can be true."""
        found = self._decide((claim,))
        if isinstance(found, _Example):
            return Possible(found.witness, found.guards, found.absent, found.text)
        return Impossible() if found is None else found

    def pairs(self, claims: Sequence[Claim]) -> Iterator[tuple[int, int, Overlap | Undecided]]:
        """Give every two claims, by their places, that are not proved to be disjoint."""
        for (one, first), (other, second) in combinations(enumerate(claims), 2):
            verdict = self.overlap((first, second))
            if not isinstance(verdict, Disjoint):
                yield one, other, verdict

    def _decide(self, claims: tuple[Claim, ...]) -> _Example | Undecided | None:
        """Give an example, or None for a proof that there is none."""
        variables = self._variables_of(claims)
        declared = self._declared(variables)
        box = reduce(meet, map(self._box, claims), declared)
        if box is None or declared is None:
            return None
        example = self._tried(claims, variables, self._guess(claims, variables, box))
        if example is not None:
            return example
        cases = every([[declared], *map(self._cases, claims)])
        if not cases:
            return None
        for case in cases:
            example = self._tried(claims, variables, self._guess(claims, variables, case))
            if example is not None:
                return example
        return self._solve(claims, variables)

    # The cheap half

    def _box(self, claim: Claim) -> Box | None:
        # By identity: to compare long claims costs more than to read them. The claim is kept so
        # that its identity is not given to another.
        known = self._boxes.get(id(claim))
        if known is None:
            known = self._boxes[id(claim)] = (claim, claim_box(claim))
        return known[1]

    def _cases(self, claim: Claim) -> list[Box]:
        known = self._split.get(id(claim))
        if known is None:
            known = self._split[id(claim)] = (claim, claim_cases(claim))
        return known[1]

    def _variables_of(self, claims: Iterable[Claim]) -> dict[str, CelType]:
        """Give the variables that claims read, with their types, by name."""
        found: dict[str, CelType] = {}
        for claim in claims:
            for guard in tests(claim):
                known = self._variables.get(guard.source)
                if known is None:
                    known = self._variables[guard.source] = dict(_free(guard.tree, frozenset()))
                found |= known
        for name, of in self._presence.items():
            if name in found:
                found.setdefault(of, UNREAD)
        return {name: found[name] for name in sorted(found)}

    def _declared(self, variables: Mapping[str, CelType]) -> Box | None:
        box: Box | None = {}
        for name, type_ in variables.items():
            for range_ in _ranges(self._scope.get(name, Domain()), type_):
                box = meet(box, {name: range_})
        return box

    def _guess(
        self, claims: Iterable[Claim], variables: Mapping[str, CelType], box: Box
    ) -> "_Values":
        """Choose values within the bounds: good enough for most claims that can be true."""
        values, scalars = _Values(), dict[str, Scalar]()
        for name, type_ in variables.items():
            if name in self._presence:
                continue
            present = self._wanted_present(name, box)
            if not present:
                values.absent.append(name)
                continue
            values.given[name] = _plain(type_)
            if type_ in SCALARS:
                chosen = pick(box.get(name, Range()), type_)
                if chosen is None or (name not in box and type_ == TIMESTAMP):
                    chosen = CENTURY if type_ == TIMESTAMP else 0 if type_ == DURATION else None
                if chosen is not None:
                    scalars[name] = chosen
                    values.given[name] = _python(chosen, type_)
        for name, chosen in _put_in_order(scalars, variables, box):
            values.given[name] = _python(chosen, variables[name])
        for name in sorted({name for claim in claims for name in opaques(claim)}):
            wanted = box.get(f"guard {name}", Range())
            values.guards[name] = True in wanted
        return values

    def _wanted_present(self, name: str, box: Box) -> bool:
        if not self._scope.get(name, Domain()).optional:
            return True
        flags = [flag for flag, of in self._presence.items() if of == name]
        return all(True in box.get(flag, Range()) for flag in flags)

    def _tried(
        self, claims: Iterable[Claim], variables: Mapping[str, CelType], values: "_Values"
    ) -> _Example | None:
        """Ask the evaluator; give the example if every claim is true for it."""
        given = dict(values.given)
        if not all(map(_proper, given.values())):
            return None
        for flag, name in self._presence.items():
            if flag in variables:
                given[flag] = name in values.given
        if not all(truth(claim, given, values.guards) is True for claim in claims):
            return None
        shown = {name: value for name, value in values.given.items() if name in variables}
        parts = [
            f"{name} is there"  # and whatever it is, nothing reads it
            if variables[name] == UNREAD
            else f"{name} = {self._text(name, value)}"
            for name, value in shown.items()
        ]
        parts += [f"{name} is absent" for name in values.absent]
        parts += [f"{name} is {str(says).lower()}" for name, says in values.guards.items()]
        return _Example(
            shown, dict(values.guards), tuple(values.absent), ", ".join(parts) or ALWAYS
        )

    def _text(self, name: str, value: object) -> str:
        scale = self._scope.get(name, Domain()).scale
        if scale is not None and isinstance(value, int):
            return str(Decimal(value).scaleb(-scale))
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        if isinstance(value, timedelta):
            return f"{value.total_seconds():f}".rstrip("0").rstrip(".") + "s"
        return json.dumps(value, ensure_ascii=False, default=str)

    # The solver

    def _solve(
        self, claims: tuple[Claim, ...], variables: Mapping[str, CelType]
    ) -> _Example | Undecided | None:
        found: _Example | Undecided | None = Undecided("no solver")
        for precise in (False, True):
            formulas = self._translator(precise)
            if formulas is None:
                break
            try:
                found = self._search(claims, variables, formulas)
            except TooCoarse:
                continue
            if not isinstance(found, Undecided):
                break
            if not any(type_ == DOUBLE for type_ in variables.values()):
                break  # the other one would say the same
        return found

    def _translator(self, precise: bool) -> Formulas | None:
        if precise not in self._formulas:
            try:
                self._formulas[precise] = Formulas(
                    optional=lambda name: self._scope.get(name, Domain()).optional,
                    presence=self._presence,
                    known=self._known,
                    precise=precise,
                )
            except ImportError:
                self._formulas[precise] = None
        return self._formulas[precise]

    def _known(self, formulas: Formulas, name: str, type_: CelType, term: Term) -> list[Term]:
        """Say what is declared of a variable. What the solver has no value for is not said."""
        domain = self._scope.get(name)
        if domain is None or type_ not in SCALARS:
            return []
        found: list[Term] = []
        if domain.enum is not None:
            values = [formulas.constant(value, type_) for value in domain.enum]
            if all(value is not None for value in values):
                found.append(formulas.any(*(formulas.equal(term, v, type_) for v in values)))
        if domain.minimum is not None and type_ != STRING:
            least = formulas.constant(domain.minimum, type_)
            found.append(term > least if domain.exclusive[0] else term >= least)
        if domain.maximum is not None and type_ != STRING:
            most = formulas.constant(domain.maximum, type_)
            found.append(term < most if domain.exclusive[1] else term <= most)
        if type_ == STRING and domain.min_length is not None:
            found.append(formulas.z3.Length(term) >= domain.min_length)
        if type_ == STRING and domain.max_length is not None:
            found.append(formulas.z3.Length(term) <= domain.max_length)
        return found

    def _search(
        self, claims: tuple[Claim, ...], variables: Mapping[str, CelType], formulas: Formulas
    ) -> _Example | Undecided | None:
        parts = [formulas.claim(claim) for claim in claims]
        solver = formulas.z3.Solver(ctx=formulas.context)
        solver.set("random_seed", 0)
        solver.set("timeout", self._timeout_ms)
        solver.set("rlimit", self._timeout_ms * STEPS_PER_MS)
        names = frozenset[str]().union(*(part.names for part in parts))
        solver.add(*(part.pair.yes for part in parts), *formulas.given(names))
        for _ in range(ROUNDS):
            answer = solver.check()
            if answer == formulas.z3.unsat:
                return None
            if answer != formulas.z3.sat:
                return Undecided("the solver gave up")
            try:
                values, block = self._read(claims, variables, formulas, solver.model())
            except _NoValueError:
                break
            example = self._tried(claims, variables, values)
            if example is not None:
                return example
            # These very values will not do, so nothing is lost by leaving them out.
            if block is None:
                break
            solver.add(formulas.z3.Not(formulas.all(*block)))
        return Undecided(_reason(parts))

    def _read(
        self,
        claims: Iterable[Claim],
        variables: Mapping[str, CelType],
        formulas: Formulas,
        model: Term,
    ) -> "tuple[_Values, list[Term] | None]":
        """Read an example of the solver, and say in a formula that it is this one.

        None for the formula if it would say too much: if a value was rounded, or does not show all
        that the solver has chosen.
        """
        values, block, whole = _Values(), list[Term](), True
        z3 = formulas.z3
        for name, type_ in variables.items():
            if name in self._presence:
                continue
            present = formulas.present(name)
            if not z3.is_true(model.eval(present, model_completion=True)):
                values.absent.append(name)
                block.append(z3.Not(present))
                continue
            block.append(present)
            leaf = formulas.leaves.get(name)
            if leaf is None:
                # Only read in parts without a formula: a plain value will do, and be left out.
                chosen = pick(_range(self._scope.get(name, Domain()), type_), type_)
                values.given[name] = _plain(type_) if chosen is None else _python(chosen, type_)
                whole = False
                continue
            term = leaf.formula[0]
            if type_ not in SCALARS:
                values.given[name] = _members(formulas, leaf.members, leaf.size, term, type_, model)
                whole = False
                continue
            value = _value(formulas, model.eval(term, model_completion=True), type_)
            values.given[name] = _python(value, type_)
            constant = formulas.constant(value, type_)
            if constant is None:
                whole = False
                continue
            same = formulas.equal(term, constant, type_)
            whole = whole and z3.is_true(model.eval(same, model_completion=True))
            block.append(same)
        for name in sorted({name for claim in claims for name in opaques(claim)}):
            term = z3.Bool(f"guard {name}", formulas.context)
            values.guards[name] = z3.is_true(model.eval(term, model_completion=True))
            block.append(term if values.guards[name] else z3.Not(term))
        return values, block if whole else None


@dataclass(slots=True)
class _Values:
    given: dict[str, object] = field(default_factory=dict)
    guards: dict[str, bool] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)


def _put_in_order(
    scalars: dict[str, Scalar], variables: Mapping[str, CelType], box: Box
) -> Iterator[tuple[str, Scalar]]:
    """Choose other values for variables whose order to another one is bounded."""
    for key, signs in box.items():
        word, *rest = key.split(" ")
        if word != "order" or len(rest) != 3 or signs.only is None:
            continue
        left, right = rest[1:]
        if left not in scalars or right not in scalars:
            continue
        for sign, operator, mirrored in (
            (0, "_==_", "_==_"),
            (-1, "_>_", "_<_"),
            (1, "_<_", "_>_"),
        ):
            if sign in signs.only:
                moved = _moved(right, operator, scalars[left], variables, box)
                moved = moved or _moved(left, mirrored, scalars[right], variables, box)
                if moved is not None:
                    scalars[moved[0]] = moved[1]
                    yield moved
                    break


def _moved(
    name: str, operator: str, beside: Scalar, variables: Mapping[str, CelType], box: Box
) -> tuple[str, Scalar] | None:
    """Choose a value that compares so with another one, within its own bounds."""
    within = box.get(name, Range()).meet(bounded(operator, beside, variables[name]))
    chosen = None if within is None else pick(within, variables[name])
    return None if chosen is None else (name, chosen)


def _free(node: Node, bound: frozenset[str]) -> Iterator[tuple[str, CelType]]:
    """Give the variables of an expression that no loop of it declares."""
    if isinstance(node, Identifier):
        if node.name not in bound and node.type.name != "type":
            yield node.name, node.type
        return
    if isinstance(node, Comprehension):
        yield from _free(node.over, bound)
        yield from _free(node.initial, bound)
        bound |= {node.variable, node.second, node.accumulator}
        for part in (node.condition, node.step, node.result):
            yield from _free(part, bound)
        return
    for part in children(node):
        yield from _free(part, bound)


def _ranges(domain: Domain, type_: CelType) -> Iterator[Range]:
    if domain.enum is not None and type_ in SCALARS:
        yield Range(only=frozenset(domain.enum))
    if type_ in (BOOL, STRING) or type_ not in SCALARS:
        return
    if domain.minimum is not None:
        yield bounded("_>_" if domain.exclusive[0] else "_>=_", domain.minimum, type_)
    if domain.maximum is not None:
        yield bounded("_<_" if domain.exclusive[1] else "_<=_", domain.maximum, type_)


def _range(domain: Domain, type_: CelType) -> Range:
    total = Range()
    for range_ in _ranges(domain, type_):
        total = total.meet(range_) or total
    return total


def _plain(type_: CelType) -> object:
    if type_.name == "list":
        return []
    return {} if type_.name == "map" else PLAIN.get(type_)


def _proper(value: object) -> bool:
    """Say whether a text could be given: no input has NUL or half of a surrogate pair in it."""
    if isinstance(value, list):
        return all(map(_proper, value))
    if not isinstance(value, str):
        return True
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)


def _python(value: Scalar, type_: CelType) -> object:
    """Turn nanoseconds into what the evaluator takes for an instant or a span."""
    if type_ == TIMESTAMP:
        return moment(int(value))
    if type_ == DURATION:
        return timedelta(microseconds=int(value) // 1000)
    return float(value) if type_ == DOUBLE else value


class _NoValueError(Exception):
    """The solver names no value, where an example needs one."""


def _value(formulas: Formulas, term: Term, type_: CelType) -> Scalar:
    """Read a value of an example: a number, a text, nanoseconds.

    Raises:
        TooCoarse, _NoValueError: the solver has left it open, as it may what a conversion comes to.
    """
    z3 = formulas.z3
    if type_ == BOOL:
        return bool(z3.is_true(term))
    if type_ == STRING:
        return unescaped(str(term.as_string()))
    if type_ != DOUBLE:
        if not z3.is_int_value(term):
            raise _NoValueError
        return int(term.as_long())
    if formulas.precise:
        if term.isZero():
            return -0.0 if term.isNegative() else 0.0
        term = z3.simplify(z3.fpToReal(term, formulas.context))
    elif z3.is_algebraic_value(term):
        term = term.approx(20)
    if not z3.is_rational_value(term):
        raise _NoValueError if formulas.precise else TooCoarse
    fraction = term.as_fraction()
    return float(max(-DOUBLE_MAX, min(DOUBLE_MAX, fraction)))


def _members(
    formulas: Formulas,
    sought: Sequence[Term],
    size: Term,
    array: Term,
    type_: CelType,
    model: Term,
) -> list[object]:
    """Make a list with the members that the example has, of its size as far as that is asked."""
    inner = type_.of[0] if type_.of else type_
    if inner not in SCALARS:
        return []
    z3 = formulas.z3
    inside: list[Scalar] = []
    outside: list[Scalar] = []
    for term in sought:
        value = _value(formulas, model.eval(term, model_completion=True), inner)
        has = z3.is_true(model.eval(array[term], model_completion=True))
        (inside if has else outside).append(value)
    members = list(dict.fromkeys(inside))
    wanted = len(members)
    if size is not None:
        wanted = min(model.eval(size, model_completion=True).as_long(), SIZE_MAX)
    if len(members) < wanted:
        filler = pick(Range(without=frozenset(outside)), inner) if not members else members[0]
        if filler is not None:
            members += [filler] * (wanted - len(members))
    return [_python(member, inner) for member in members]


def _reason(parts: Iterable[Translated]) -> str:
    unknown = sorted({what for part in parts for what in part.unknown})
    if unknown:
        return f"the prover does not know {', '.join(unknown)}"
    return "no example was found that holds for the evaluator"
