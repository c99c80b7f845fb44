"""Expressions as formulas of the z3 solver.

A boolean is a pair: where it is true and where it is false; elsewhere it fails. Anything else is a
value and where there is one. Whole numbers are exact, with CEL's limits: a result outside them is a
failure. Instants and spans are whole nanoseconds. A list that is a variable is the set of its
members and a size.

Doubles come in two ways. As reals they are fast, but reals lie closer together: a proof that
nothing fits holds for doubles as well, an example may have to be rounded. Expressions that
calculate with doubles need `precise`: then they are IEEE 754 numbers.

INVARIANT: a formula says no less than CEL does: wherever an expression is true (or false), so is
its formula. What has no formula here is an unknown, the same for the same text; so "no values make
these true" is always a proof, while an example must be tried.

z3 is imported when a `Formulas` is made; it has no types, so its terms are `Any` here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any as Term
from typing import NamedTuple, TypeAlias

from interlock.language.expressions.cel_ast import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Call,
    CelType,
    Comprehension,
    Constant,
    Identifier,
    ListOf,
    Node,
    Select,
    walk,
)
from interlock.language.expressions.literals import (
    INSTANT_MAX,
    INSTANT_MIN,
    SPAN_MAX,
    Scalar,
    literal,
)
from interlock.language.proof.bounds import shape
from interlock.language.proof.claim import All, Any, Claim, Not, Opaque, Test

LIMITS = {
    INT: (-(2**63), 2**63 - 1),
    UINT: (0, 2**64 - 1),
    TIMESTAMP: (INSTANT_MIN, INSTANT_MAX),
    DURATION: (-(87660000 * 3600 * 10**9 + 999_999_999), 87660000 * 3600 * 10**9 + 999_999_999),
}
DOUBLE_MAX = Fraction((2**53 - 1) * 2**971)
WHOLE_DOUBLES = 2**53  # up to here every whole number is a double

# z3's characters end at U+2FFFF. A text beyond, or near, is an unknown: so there are always more
# characters above those that a formula names.
CHARACTER_MAX = "\U0002fe00"

LOOP_MAX = 256  # elements of a written list that are unrolled

COMPARE: dict[str, Callable[[Term, Term], Term]] = {
    "_<_": lambda one, other: one < other,
    "_<=_": lambda one, other: one <= other,
    "_>_": lambda one, other: other < one,
    "_>=_": lambda one, other: other <= one,
}


class Pair(NamedTuple):
    """A boolean: where it is true, and where it is false."""

    yes: Term
    no: Term


class Value(NamedTuple):
    """A value, and where there is one."""

    term: Term
    ok: Term


Formula: TypeAlias = Pair | Value
Scope: TypeAlias = Mapping[str, Formula]  # of the variables of loops


class TooCoarse(Exception):
    """The expression calculates with doubles: reals would not do."""


@dataclass(slots=True)
class Leaf:
    """A variable or an unknown, with what is known of it from the start."""

    name: str
    type: CelType
    formula: Formula
    present: Term
    known: list[Term] = field(default_factory=list)
    members: list[Term] = field(default_factory=list)  # of a list: what was looked for in it
    size: Term = None


@dataclass(frozen=True, slots=True)
class Translated:
    """A boolean expression or claim.

    Attributes:
        names: the leaves it depends on.
        unknown: what of it has no formula, in words.
    """

    pair: Pair
    names: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


class Formulas:
    """Translates expressions of one scope, each once; all terms belong to one z3 context.

    Args:
        optional: whether a variable may be absent.
        presence: names of boolean variables that say whether another one is present.
        known: what is assumed of a variable: gives formulas from its term.
    """

    def __init__(
        self,
        *,
        optional: Callable[[str], bool],
        presence: Mapping[str, str],
        known: "Callable[[Formulas, str, CelType, Term], Sequence[Term]]",
        precise: bool,
    ) -> None:
        self.z3: Term = import_module("z3")
        self.context = self.z3.Context()
        self.precise = precise
        self.yes = self.z3.BoolVal(True, self.context)
        self.no = self.z3.BoolVal(False, self.context)
        self.leaves: dict[str, Leaf] = {}
        self._optional = optional
        self._presence = presence
        self._known = known
        self._done: dict[str, Translated] = {}
        self._names: set[str] = set()
        self._unknown: set[str] = set()

    # Claims

    def claim(self, claim: Claim) -> Translated:
        match claim:
            case Test(expression):
                found = self._done.get(expression.source)
                if found is None:
                    found = self._done[expression.source] = self.expression(expression.tree)
                return found
            case Opaque(name):
                term = self.z3.Bool(f"guard {name}", self.context)
                return Translated(Pair(term, self.z3.Not(term)))
            case Not(inner):
                found = self.claim(inner)
                return Translated(Pair(found.pair.no, found.pair.yes), found.names, found.unknown)
            case All(claims) | Any(claims):
                parts = [self.claim(part) for part in claims]
                yes, no = [part.pair.yes for part in parts], [part.pair.no for part in parts]
                pair = (
                    Pair(self.all(*yes), self.any(*no))
                    if isinstance(claim, All)
                    else Pair(self.any(*yes), self.all(*no))
                )
                names = frozenset[str]().union(*(part.names for part in parts))
                unknown = frozenset[str]().union(*(part.unknown for part in parts))
                return Translated(pair, names, unknown)

    def expression(self, node: Node) -> Translated:
        self._names, self._unknown = set(), set()
        pair = self.truth(node, {})
        return Translated(pair, frozenset(self._names), frozenset(self._unknown))

    def given(self, names: Iterator[str] | frozenset[str]) -> list[Term]:
        """Give what is known of leaves, in a fixed order."""
        found: list[Term] = []
        for name in sorted(names):
            leaf = self.leaves[name]
            found += leaf.known
            if leaf.size is not None and leaf.members:
                found.append(self._at_least(leaf) <= leaf.size)
        return found

    def _at_least(self, leaf: Leaf) -> Term:
        """Count the different members of a list among what was looked for."""
        count: Term = self.z3.IntVal(0, self.context)
        for place, member in enumerate(leaf.members):
            new = self.all(
                leaf.formula[0][member], *(member != other for other in leaf.members[:place])
            )
            count = count + self.z3.If(new, 1, 0)
        return count

    # Small formulas, kept small

    def all(self, *terms: Term) -> Term:
        left = [term for term in terms if term is not self.yes]
        if any(term is self.no for term in left):
            return self.no
        if not left:
            return self.yes
        return left[0] if len(left) == 1 else self.z3.And(*left)

    def any(self, *terms: Term) -> Term:
        left = [term for term in terms if term is not self.no]
        if any(term is self.yes for term in left):
            return self.yes
        if not left:
            return self.no
        return left[0] if len(left) == 1 else self.z3.Or(*left)

    def test(self, term: Term, *ok: Term) -> Pair:
        return Pair(self.all(term, *ok), self.all(self.z3.Not(term), *ok))

    # Values

    def sort(self, type_: CelType) -> Term:
        if type_ in LIMITS:
            return self.z3.IntSort(self.context)
        if type_ == BOOL:
            return self.z3.BoolSort(self.context)
        if type_ == DOUBLE:
            return self.z3.Float64(self.context) if self.precise else self.z3.RealSort(self.context)
        if type_ == STRING:
            return self.z3.StringSort(self.context)
        if type_.name == "list" and type_.of[0] in (*LIMITS, STRING, BOOL):
            boolean = self.z3.BoolSort(self.context)
            return self.z3.ArraySort(self.sort(type_.of[0]), boolean)
        return self.z3.DeclareSort("Other", self.context)

    def constant(self, value: Scalar, type_: CelType) -> Term | None:
        """Give a value as a term; None if the solver has no such value."""
        if type_ == BOOL:
            return self.yes if value else self.no
        if isinstance(value, str):
            if any(character > CHARACTER_MAX for character in value):
                return None
            return self.z3.StringVal(escaped(value), self.context)
        if type_ != DOUBLE:
            return self.z3.IntVal(int(value), self.context)
        if self.precise:
            return self.z3.FPVal(float(value), self.z3.Float64(self.context), None, self.context)
        if abs(value) > DOUBLE_MAX or value != value:
            raise TooCoarse
        return self.z3.RealVal(str(Fraction(value)), self.context)

    def equal(self, one: Term, other: Term, type_: CelType) -> Term:
        if type_ == DOUBLE and self.precise:
            return self.z3.fpEQ(one, other, self.context)
        return one == other

    def leaf(self, name: str, type_: CelType, *, variable: bool) -> Formula:
        self._names.add(name)
        found = self.leaves.get(name)
        if found is None:
            found = self.leaves[name] = self._make_leaf(name, type_, variable)
        return found.formula

    def _make_leaf(self, name: str, type_: CelType, variable: bool) -> Leaf:
        if not variable and type_ == BOOL:
            yes = self.z3.Bool(f"true {name}", self.context)
            no = self.z3.Bool(f"false {name}", self.context)
            return Leaf(name, type_, Pair(yes, no), self.yes, [self.z3.Not(self.z3.And(yes, no))])
        present = self.yes
        if not variable or self._optional(name):
            present = self.z3.Bool(f"has {name}", self.context)
        term = self.z3.Const(f"value {name}", self.sort(type_))
        known: list[Term] = []
        if type_ in LIMITS:
            least, most = LIMITS[type_]
            known += [least <= term, term <= most]
        if type_ in (TIMESTAMP, DURATION) and variable:  # Python's own have microseconds
            known.append(term == 1000 * self.z3.Int(f"microseconds {name}", self.context))
        # What is given is JSON, which has no NaN and no infinity; a computed double may be either.
        if type_ == DOUBLE and self.precise and variable:
            strange = (self.z3.fpIsNaN(term, self.context), self.z3.fpIsInf(term, self.context))
            known.append(self.z3.Not(self.any(*strange)))
        elif type_ == DOUBLE and variable:
            most = self.z3.RealVal(str(DOUBLE_MAX), self.context)
            known += [-most <= term, term <= most]
        if variable:
            known += self._known(self, name, type_, term)
        formula = self.test(term, present) if type_ == BOOL else Value(term, present)
        return Leaf(name, type_, formula, present, known)

    def unknown(self, node: Node, scope: Scope) -> Formula:
        """Take a part that has no formula for anything, but always the same."""
        if node.type == DOUBLE and not self.precise:
            raise TooCoarse  # a real is never NaN
        names = {part.name for part in walk(node) if isinstance(part, Identifier)}
        inside = "".join(
            f" {name}={part.sexpr()}"
            for name in sorted(names & scope.keys())
            for part in scope[name]
        )
        self._unknown.add(_words(node))
        return self.leaf(f"?{shape(node)}{inside}", node.type, variable=False)

    # Expressions

    def truth(self, node: Node, scope: Scope) -> Pair:
        found = self.read(node, scope)
        if isinstance(found, Pair):
            return found
        # `dyn`, where a boolean is wanted
        unknown = self.leaf(f"?bool {shape(node)}", BOOL, variable=False)
        assert isinstance(unknown, Pair)
        return unknown

    def value(self, node: Node, scope: Scope) -> Value:
        found = self.read(node, scope)
        if isinstance(found, Value):
            return found
        return Value(found.yes, self.any(found.yes, found.no))

    def read(self, node: Node, scope: Scope) -> Formula:
        constant = literal(node)
        if constant is not None:
            term = self.constant(constant, node.type)
            if term is not None:
                return self.test(term) if node.type == BOOL else Value(term, self.yes)
            return self.unknown(node, scope)
        found: Formula | None = None
        match node:
            case Identifier(name=name) if name in scope:
                return scope[name]
            case Identifier(name=name) if name in self._presence:
                return self.test(self.present(self._presence[name]))
            case Identifier(name=name) if node.type.name != "type":
                return self.leaf(name, node.type, variable=True)
            case Call():
                found = self.call(node, scope)
            case Comprehension():
                found = self.loop(node, scope)
            case _:
                pass
        return self.unknown(node, scope) if found is None else found

    def present(self, name: str) -> Term:
        """Say whether an optional variable is there, before or after its type is seen."""
        return self.z3.Bool(f"has {name}", self.context) if self._optional(name) else self.yes

    def call(self, node: Call, scope: Scope) -> Formula | None:
        operands = node.operands
        types = {operand.type for operand in operands}
        one_type = next(iter(types)) if len(types) == 1 else None
        match node.function, operands:
            case "!_", (inner,):
                yes, no = self.truth(inner, scope)
                return Pair(no, yes)
            case "@not_strictly_false", (inner,):
                no = self.truth(inner, scope).no
                return Pair(self.z3.Not(no), no)
            case "_&&_", (left, right):
                one, other = self.truth(left, scope), self.truth(right, scope)
                return Pair(self.all(one.yes, other.yes), self.any(one.no, other.no))
            case "_||_", (left, right):
                one, other = self.truth(left, scope), self.truth(right, scope)
                return Pair(self.any(one.yes, other.yes), self.all(one.no, other.no))
            case "_?_:_", (test, left, right) if left.type == right.type == node.type:
                return self.choice(
                    self.truth(test, scope), self.read(left, scope), self.read(right, scope)
                )
            case "_==_" | "_!=_", (left, right) if one_type in (BOOL, DOUBLE, STRING, *LIMITS):
                pair = self.equality(left, right, scope)
                return pair if node.function == "_==_" else Pair(pair.no, pair.yes)
            case operator, (left, right) if operator in COMPARE and one_type in (
                DOUBLE,
                STRING,
                *LIMITS,
            ):
                first, second = self.value(left, scope), self.value(right, scope)
                term = COMPARE[operator](first.term, second.term)
                return self.test(term, first.ok, second.ok)
            case "@in", (element, listed):
                return self.within(element, listed, scope)
            case (("_+_" | "_-_" | "_*_" | "_/_" | "_%_"), (left, right)) if (
                node.type == one_type and one_type in (INT, UINT)
            ):
                return self.whole(node, self.value(left, scope), self.value(right, scope))
            case "-_", (inner,) if node.type == INT:
                term, ok = self.value(inner, scope)
                return self.limited(-term, INT, ok)
            case (("_+_" | "_-_" | "_*_" | "_/_"), (left, right)) if one_type == DOUBLE:
                return self.floating(
                    node.function, self.value(left, scope), self.value(right, scope)
                )
            case "-_", (inner,) if node.type == DOUBLE:
                term, ok = self.value(inner, scope)
                negative = self.z3.fpNeg(term, self.context) if self.precise else -term
                return Value(negative, ok)
            case (("_+_" | "_-_"), (left, right)) if types <= {TIMESTAMP, DURATION}:
                return self.moved(node, self.value(left, scope), self.value(right, scope), scope)
            case (("int" | "uint" | "double" | "string" | "timestamp" | "duration"), (inner,)):
                return self.converted(node, inner, scope)
            case _ if types and types <= {STRING}:
                return self.textual(node.function, [self.value(part, scope) for part in operands])
            case "size", (Identifier(name=name),) if (
                name not in scope and name not in self._presence
            ):
                return self.size(operands[0])
            case _:
                return None

    def choice(self, test: Pair, one: Formula, other: Formula) -> Formula:
        if isinstance(one, Pair) and isinstance(other, Pair):
            yes = self.any(self.all(test.yes, one.yes), self.all(test.no, other.yes))
            return Pair(yes, self.any(self.all(test.yes, one.no), self.all(test.no, other.no)))
        ok = self.any(self.all(test.yes, one[1]), self.all(test.no, other[1]))
        return Value(self.z3.If(test.yes, one[0], other[0]), ok)

    def equality(self, left: Node, right: Node, scope: Scope) -> Pair:
        one, other = self.value(left, scope), self.value(right, scope)
        return self.test(self.equal(one.term, other.term, left.type), one.ok, other.ok)

    def within(self, element: Node, listed: Node, scope: Scope) -> Formula | None:
        if isinstance(listed, ListOf):
            types = {element.type, *(part.type for part in listed.elements)}
            if listed.optional or len(types) > 1 or not types <= {BOOL, DOUBLE, STRING, *LIMITS}:
                return None
            parts = [self.value(part, scope) for part in listed.elements]
            term, ok = self.value(element, scope)
            same = [self.equal(term, part.term, element.type) for part in parts]
            return self.test(self.any(*same), ok, *(part.ok for part in parts))
        return self.member(element, listed, scope)

    def member(self, element: Node, listed: Node, scope: Scope) -> Pair | None:
        """Say whether a list that is a variable has an element."""
        if not isinstance(listed, Identifier) or listed.name in scope:
            return None
        if listed.type.name != "list" or listed.type.of != (element.type,):
            return None
        if element.type not in (STRING, BOOL, *LIMITS):
            return None
        array = self.leaf(listed.name, listed.type, variable=True)
        term, ok = self.value(element, scope)
        members = self.leaves[listed.name].members
        if not any(term.eq(other) for other in members):
            members.append(term)
        return self.test(array[0][term], array[1], ok)

    def size(self, node: Node) -> Formula | None:
        assert isinstance(node, Identifier)
        if node.type.name != "list" or node.type.of[0] not in (STRING, BOOL, *LIMITS):
            return None
        ok = self.leaf(node.name, node.type, variable=True)[1]
        leaf = self.leaves[node.name]
        if leaf.size is None:
            leaf.size = self.z3.Int(f"size {node.name}", self.context)
            leaf.known += [leaf.size >= 0, leaf.size <= LIMITS[INT][1]]
        return Value(leaf.size, ok)

    # Arithmetic

    def limited(self, term: Term, type_: CelType, *ok: Term) -> Value:
        least, most = LIMITS[type_]
        return Value(term, self.all(*ok, least <= term, term <= most))

    def whole(self, node: Call, one: Value, other: Value) -> Value:
        left, right = one.term, other.term
        ok = [one.ok, other.ok]
        match node.function:
            case "_+_":
                return self.limited(left + right, node.type, *ok)
            case "_-_":
                return self.limited(left - right, node.type, *ok)
            case "_*_":
                return self.limited(left * right, node.type, *ok)
            case _:
                pass
        # CEL cuts off towards zero; z3 rounds down where the divisor is positive. A remainder fails
        # where its quotient does: the least number by -1.
        zero, choose = self.z3.IntVal(0, self.context), self.z3.If
        up, down = choose(right > zero, right, -right), choose(left >= zero, left, -left)
        size = down / up
        quotient = choose((left >= zero) == (right > zero), size, -size)
        held = self.limited(quotient, node.type, *ok, right != zero)
        if node.function == "_/_":
            return held
        return Value(left - right * quotient, held.ok)

    def floating(self, function: str, one: Value, other: Value) -> Value:
        if not self.precise:
            raise TooCoarse
        left, right = one.term, other.term
        # Like the terms' own operators, but with the rounding of this context.
        near = self.z3.RNE(self.context)
        operation = {
            "_+_": self.z3.fpAdd,
            "_-_": self.z3.fpSub,
            "_*_": self.z3.fpMul,
            "_/_": self.z3.fpDiv,
        }[function]
        return Value(operation(near, left, right, self.context), self.all(one.ok, other.ok))

    def moved(self, node: Call, one: Value, other: Value, scope: Scope) -> Formula | None:
        """Add and subtract instants and spans; what 64 bits of nanoseconds do not hold is unknown.

        A result out of its limits is a failure. But of a span that is given so long, the evaluator
        fails in some cases and takes the nearest it can hold in others.
        """
        if node.type not in (TIMESTAMP, DURATION):
            return None
        term = one.term + other.term if node.function == "_+_" else one.term - other.term
        least, most = (-SPAN_MAX, SPAN_MAX) if node.type == DURATION else LIMITS[TIMESTAMP]
        fits = self.all(term >= least, term <= most)
        short: list[Term] = []
        for operand, part in zip(node.operands, (one.term, other.term), strict=True):
            if operand.type == DURATION:
                short += [part >= -SPAN_MAX, part <= SPAN_MAX]
        if not short:  # the difference of two instants
            return Value(term, self.all(one.ok, other.ok, fits))
        usual = self.all(*short)
        beyond = self.leaf(f"?beyond {self._key(node, scope)}", node.type, variable=False)
        found = self.choice(Pair(usual, self.z3.Not(usual)), Value(term, fits), Value(*beyond))
        return Value(found[0], self.all(one.ok, other.ok, found[1]))

    def _key(self, node: Node, scope: Scope) -> str:
        inside = [part.sexpr() for name in sorted(scope) for part in scope[name]]
        return f"{shape(node)} {' '.join(inside)}"

    def converted(self, node: Call, inner: Node, scope: Scope) -> Formula | None:
        if inner.type == node.type and node.type in (STRING, DOUBLE, *LIMITS):
            return self.value(inner, scope)
        if {inner.type, node.type} == {INT, UINT}:
            term, ok = self.value(inner, scope)
            return self.limited(term, node.type, ok)
        if node.type == DOUBLE and inner.type in (INT, UINT) and not self.precise:
            term, ok = self.value(inner, scope)
            self._names.add(name := f"?double {self._key(inner, scope)}")
            if name not in self.leaves:
                real = self.z3.Real(name, self.context)
                most, least = term > WHOLE_DOUBLES, term < -WHOLE_DOUBLES
                known = [
                    self.z3.Implies(most, real >= WHOLE_DOUBLES),
                    self.z3.Implies(least, real <= -WHOLE_DOUBLES),
                    self.any(most, least, real == self.z3.ToReal(term)),
                ]
                self.leaves[name] = Leaf(name, DOUBLE, Value(real, self.yes), self.yes, known)
            return Value(self.leaves[name].formula[0], ok)
        return None

    def textual(self, function: str, parts: list[Value]) -> Formula | None:
        terms, ok = [part.term for part in parts], [part.ok for part in parts]
        match function, terms:
            case "size", [text]:
                return Value(self.z3.Length(text), self.all(*ok))
            case "_+_", [one, other]:
                return Value(self.z3.Concat(one, other), self.all(*ok))
            case "startsWith", [text, part]:
                return self.test(self.z3.PrefixOf(part, text), *ok)
            case "endsWith", [text, part]:
                return self.test(self.z3.SuffixOf(part, text), *ok)
            case "contains", [text, part]:
                return self.test(self.z3.Contains(text, part), *ok)
            case _:
                return None

    # Loops

    def loop(self, node: Comprehension, scope: Scope) -> Formula | None:
        if node.second or node.type not in (BOOL, INT):
            return None
        if isinstance(node.over, ListOf):
            return self.unrolled(node, node.over, scope)
        return self.searched(node, scope)

    def unrolled(self, node: Comprehension, over: ListOf, scope: Scope) -> Formula | None:
        if over.optional or len(over.elements) > LOOP_MAX:
            return None
        elements = [self.read(part, scope) for part in over.elements]
        total = self.read(node.initial, scope)
        for element in elements:
            inner = {**scope, node.variable: element, node.accumulator: total}
            going = self.truth(node.condition, inner)
            if going.yes is self.no:
                break
            step = self.read(node.step, inner)
            total = step if going.yes is self.yes else self.choice(going, step, total)
        result = self.read(node.result, {**scope, node.accumulator: total})
        # A list fails if one of its elements does, looked at or not.
        ok = [part.ok if isinstance(part, Value) else self.any(*part) for part in elements]
        if isinstance(result, Pair):
            return Pair(self.all(result.yes, *ok), self.all(result.no, *ok))
        return Value(result.term, self.all(result.ok, *ok))

    def searched(self, node: Comprehension, scope: Scope) -> Formula | None:
        """Read `l.exists(x, x == y)` and `l.all(x, x != y)`: whether a list has an element."""
        match node.step:
            case Call(
                function="_||_" | "_&&_" as joined,
                arguments=(Identifier(name=total), Call() as body),
            ) if total == node.accumulator and isinstance(node.result, Identifier):
                some = joined == "_||_"
            case _:
                return None
        if not isinstance(node.initial, Constant) or node.initial.value is some:
            return None
        if body.function != ("_==_" if some else "_!=_") or len(body.arguments) != 2:
            return None
        one, other = body.arguments
        if not (isinstance(one, Identifier) and one.name == node.variable):
            one, other = other, one
        if not (isinstance(one, Identifier) and one.name == node.variable):
            return None
        names = {part.name for part in walk(other) if isinstance(part, Identifier)}
        # Where the element fails and the list is empty, the loop does not fail but `in` would.
        if node.variable in names or self.value(other, scope).ok is not self.yes:
            return None
        found = self.member(other, node.over, scope)
        return found if found is None or some else Pair(found.no, found.yes)


def escaped(text: str) -> str:
    """Write a text as z3 reads it; a backslash of the text itself must not start an escape."""
    return "".join(
        character if " " <= character <= "~" and character != "\\" else f"\\u{{{ord(character):x}}}"
        for character in text
    )


def unescaped(text: str) -> str:
    """Read a text as z3 writes it."""
    return re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda found: chr(int(found[1], 16)), text)


def _words(node: Node) -> str:
    match node:
        case Call(function=function):
            return f"`{function.strip('_@')}`"
        case Comprehension():
            return "a loop over a list that is not written out"
        case Select(field=name):
            return f"the field `{name}` of a map"
        case Constant():
            return "an unusual character"
        case Identifier(name=name):
            return f"`{name}`"
        case _:
            return "a list or map written out"
