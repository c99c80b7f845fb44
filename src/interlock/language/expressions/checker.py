"""The types of an expression, and the same expression in the evaluator's own terms.

What is checked here is checked before the evaluator sees the text: names and their types, that a
field which may be absent is read only where `has` was asked, that no number is mixed with another
kind. Then three things that CEL has not are put into its terms:

- A whole number written beside a `number` becomes a double: `data.rate > 1` is `data.rate > 1.0`.
- A decimal is a whole number of its smallest unit, and its scale (digits after the point) is known
  here. `data.price * 1.21 > 100` with a scale of 2 is `data.price * 121 > 1000000`: the product has
  a scale of 4. So sums, products and comparisons are exact, and what does not fit into 64 bits is
  an error at run time, never a rounded value. Quotients are refused.
- `has(data.due_at)` is a variable of its own, `present.data.due_at`.

What is of any type is JSON that nobody declared. It may be looked into, asked whether it is true,
or whether it equals something; to reckon with it, or to order it, an expression says what it is:
`int(x)`. If it then is not, that is an error at run time.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, Inexact
from typing import NoReturn

from interlock.core.text import clipped, nearest
from interlock.language.expressions.evaluator import literal
from interlock.language.expressions.literals import span
from interlock.language.expressions.properties import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    DIGITS_MAX,
    DURATION,
    INTEGER,
    NUMBER,
    STRING,
    Type,
)
from interlock.language.expressions.syntax import (
    INT_MAX,
    INT_MIN,
    RESERVED,
    Binary,
    Call,
    Chain,
    Choice,
    ExpressionFault,
    Index,
    Listing,
    Member,
    Name,
    Node,
    Number,
    Text,
    Truth,
    Unary,
    place,
)

LOOPS_MAX = 2  # in each other; the evaluator stops at 10,000 rounds in all

# How tight an operator binds: an operand that binds looser is put into brackets.
CHOICE, OR, AND, COMPARE, SUM, PRODUCT, UNARY, TIGHT = range(8)
LEVELS = {"||": OR, "&&": AND, "in": COMPARE, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}
LEVELS |= dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARE) | {"%": PRODUCT}

Facts = frozenset[str]  # what is known to be present
NOTHING: Facts = frozenset()
EXACT = Context(prec=200, traps=[Inexact])

_ORDERED = ("integer", "number", "decimal", "string", "date-time", "duration", "boolean")
_CALENDAR = (
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
)
_CLOCK = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
_TEXT = ("startsWith", "endsWith", "contains", "matches")
_LOOPS = ("exists", "all", "exists_one")
_METHODS = (*_TEXT, *_CALENDAR, *_CLOCK, *_LOOPS, "size")
# What each conversion takes.
_CONVERSIONS: dict[str, tuple[Type, tuple[str, ...]]] = {
    "int": (INTEGER, ("integer", "number", "string", "date-time", "any")),
    "double": (NUMBER, ("integer", "number", "string", "any")),
    "string": (STRING, ("integer", "number", "string", "boolean", "date-time", "duration", "any")),
    "timestamp": (DATE_TIME, ("string", "integer", "date-time", "any")),
    "duration": (DURATION, ("string",)),
}
_FUNCTIONS = (*_CONVERSIONS, "size", "has")
_HINTS = {
    "len": "write `size(…)`",
    "length": "write `size(…)`",
    "float": "write `double(…)`",
    "str": "write `string(…)`",
    "now": "`now` is a value: write it without brackets",
    "date": "write `timestamp(…)`",
    "datetime": "write `timestamp(…)`",
    "any": "write `list.exists(x, …)`",
    "map": "lists are not built in expressions; ask with `exists` or `all`",
    "filter": "lists are not built in expressions; ask with `exists` or `all`",
    "lower": "letter case is part of a text here",
    "upper": "letter case is part of a text here",
    "startswith": "write `startsWith`",
    "endswith": "write `endsWith`",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A part that was checked.

    Attributes:
        node: what it was read from.
        text: the same for the evaluator.
        level: how tight the text binds.
        exact: the value, if it is written of numbers alone.
        whole: the value is written of whole numbers alone and without a division, so that it may
            stand for a double too.
        yes: what is present wherever this is true.
        no: what is present wherever this is false.
    """

    node: Node
    text: str
    level: int
    type: Type
    exact: Decimal | None = None
    whole: bool = False
    yes: Facts = NOTHING
    no: Facts = NOTHING

    def within(self, level: int) -> str:
        """Give the text as an operand of what binds so tight."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A variable of the evaluator's, and where its value comes from."""

    name: str
    path: tuple[str, ...]
    type: Type
    presence: bool = False


@dataclass(slots=True)
class Checker:
    """Checks one expression.

    Attributes:
        roots: the names that stand first in an expression, and their types.
        failing: says why a text without variables fails in the evaluator, or None.
        references: what was found that the expression reads, by the evaluator's name.
    """

    roots: Mapping[str, Type]
    failing: Callable[[str], str | None]
    references: dict[str, Reference] = field(default_factory=dict)
    loops: dict[str, Type] = field(default_factory=dict)

    # Names

    def name(self, node: Name) -> Typed:
        if (element := self.loops.get(node.name)) is not None:
            return Typed(node, node.name, TIGHT, element)
        return self.variable(node, (node.name,), self.root(node))

    def root(self, node: Name) -> Type:
        if (found := self.roots.get(node.name)) is not None:
            return found
        word = {"True": "true", "False": "false", "None": "has(…)", "NULL": "has(…)"}.get(node.name)
        meant = word or nearest(node.name, (*self.roots, *self.loops))
        if meant is None:
            fields = [
                f"{root}.{name}" for root, type_ in self.roots.items() for name in type_.fields
            ]
            bare = {name.partition(".")[2]: name for name in reversed(fields)}
            meant = bare.get(nearest(node.name, bare) or "")
        hint = f"did you mean `{meant}`?" if meant else f"known here: {_listed(self.roots)}"
        _type_fault(node, f"unknown name `{clipped(node.name)}`", hint)

    def chain(self, node: Node) -> tuple[tuple[str, ...], Type, Facts] | None:
        """Read `a.b.c` from a root: its path, its type, and which prefixes may be absent."""
        if isinstance(node, Name) and node.name not in self.loops:
            return (node.name,), self.root(node), NOTHING
        if not isinstance(node, Member) or (before := self.chain(node.operand)) is None:
            return None
        path, owner, absent = before
        if owner == ANY:
            return None  # the evaluator looks into it
        type_, optional = _field(node, owner, ".".join(path))
        path = (*path, node.field)
        return path, type_, absent | {".".join(path)} if optional else absent

    def variable(self, node: Node, path: tuple[str, ...], type_: Type) -> Typed:
        name = ".".join(path)
        if type_.name != "object":  # of an object only its fields are handed over
            self.references[name] = Reference(name=name, path=path, type=type_)
        return Typed(node, name, TIGHT, type_)

    def member(self, node: Member, facts: Facts) -> Typed:
        if (found := self.chain(node)) is not None:
            path, type_, absent = found
            for name in sorted(absent - facts, key=len):
                _absent(node, name)
            return self.variable(node, path, type_)
        owner = self.check(node.operand, facts)
        type_, optional = _field(node, owner.type, _source(node.operand))
        text = f"{owner.within(TIGHT)}.{node.field}"
        if optional and text not in facts:
            _absent(node, text)
        if type_ == DATE_TIME:
            # The evaluator takes no instant inside of an object, so it is given as a text there.
            return Typed(node, f"timestamp({text})", TIGHT, type_)
        return Typed(node, text, TIGHT, type_)

    def has(self, node: Call, facts: Facts) -> Typed:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Member):
            _type_fault(node, "`has` takes one field", "such as `has(data.due_at)`")
        member = node.arguments[0]
        if (found := self.chain(member)) is not None:
            path, type_, absent = found
            name = ".".join(path)
            text = f"present.{name}"
            self.references[text] = Reference(name=text, path=path, type=type_, presence=True)
            return Typed(node, text, TIGHT, BOOLEAN, yes=absent | {name})
        owner = self.check(member.operand, facts)
        _field(member, owner.type, _source(member.operand))
        text = f"{owner.within(TIGHT)}.{member.field}"
        return Typed(node, f"has({text})", TIGHT, BOOLEAN, yes=frozenset({text}))

    # Everything

    def check(self, node: Node, facts: Facts = NOTHING) -> Typed:
        """Check a node that is read where `facts` are known to be present."""
        match node:
            case Number():
                return _number(node)
            case Text(value=value):
                return Typed(node, literal(value), TIGHT, STRING)
            case Truth(value=value):
                return Typed(node, str(value).lower(), TIGHT, BOOLEAN)
            case Name():
                return self.name(node)
            case Member():
                return self.member(node, facts)
            case Index():
                return self.index(node, facts)
            case Call():
                return self.call(node, facts)
            case Unary():
                return self.unary(node, facts)
            case Chain():
                return self.row(node, facts)
            case Choice():
                return self.choice(node, facts)
            case Listing():
                elements = self.same(node, [self.value(one, facts) for one in node.elements])
                return _listing(node, elements)
            case Binary(operator="in"):
                return self.inside(node, facts)
            case Binary(operator=operator):
                left, right = self.value(node.left, facts), self.value(node.right, facts)
                if LEVELS[operator] == COMPARE:
                    return self.compared(node, left, right)
                return self.reckoned(node, left, right)

    def value(self, node: Node, facts: Facts) -> Typed:
        """Check what must be a value, so no object."""
        found = self.check(node, facts)
        if found.type.name == "object":
            fields = _listed(found.type.fields)
            _type_fault(node, f"{_shown(found)} is an object, not a value", f"it has {fields}")
        return found

    def truth(self, node: Node, facts: Facts, what: str) -> Typed:
        found = self.value(node, facts)
        if found.type not in (BOOLEAN, ANY):
            _type_fault(node, f"{what} is true or false, but {_shown(found)} is {_a(found.type)}")
        return found

    def unary(self, node: Unary, facts: Facts) -> Typed:
        if node.operator == "!":
            inner = self.truth(node.operand, facts, "what `!` negates")
            text = f"!{inner.within(UNARY)}"
            return Typed(node, text, UNARY, BOOLEAN, yes=inner.no, no=inner.yes)
        inner = self.value(node.operand, facts)
        if inner.type.name not in ("integer", "number", "decimal", "duration"):
            _type_fault(node, f"`-` takes a number, but {_shown(inner)} is {_a(inner.type)}")
        if inner.type == DURATION:
            return Typed(node, f'duration("0s") - {inner.within(PRODUCT)}', SUM, DURATION)
        exact = None if inner.exact is None else -inner.exact
        text = f"-({inner.text})" if inner.level < TIGHT else f"-{inner.text}"
        return Typed(node, text, UNARY, inner.type, exact, inner.whole)

    def row(self, node: Chain, facts: Facts) -> Typed:
        """Check `a && b && c`: what `a` says is known while `b` is read."""
        conjunction = node.operator == "&&"
        level = LEVELS[node.operator]
        texts: list[str] = []
        known = facts
        gained: Facts = NOTHING  # if every part is true (of ||: false)
        either: Facts | None = None  # if at least one part is false (of ||: true)
        for part in node.parts:
            found = self.truth(part, known, f"each side of `{node.operator}`")
            texts.append(found.within(level + 1))
            good, bad = (found.yes, found.no) if conjunction else (found.no, found.yes)
            # Where a later part decides, the earlier ones need not have: they may have failed.
            either = bad if either is None else either & bad
            gained |= good
            known |= good
        text = f" {node.operator} ".join(texts)
        yes, no = (gained, either or NOTHING) if conjunction else (either or NOTHING, gained)
        return Typed(node, text, level, BOOLEAN, yes=yes, no=no)

    def choice(self, node: Choice, facts: Facts) -> Typed:
        test = self.truth(node.test, facts, "what stands before `?`")
        yes = self.value(node.yes, facts | test.yes)
        no = self.value(node.no, facts | test.no)
        yes, no = self.same(node, [yes, no])
        text = f"{test.within(OR)} ? {yes.within(OR)} : {no.within(CHOICE)}"
        both = (test.yes | yes.yes) & (test.no | no.yes)
        return Typed(node, text, CHOICE, _plain(yes.type), yes=both)

    def index(self, node: Index, facts: Facts) -> Typed:
        owner, index = self.check(node.operand, facts), self.value(node.index, facts)
        if owner.type == ANY and index.type in (INTEGER, STRING, ANY):
            return Typed(node, f"{owner.within(TIGHT)}[{index.text}]", TIGHT, ANY)
        if owner.type.of is None:
            hint = "fields are named with a point" if owner.type.name == "object" else None
            _type_fault(node, f"{_shown(owner)} is {_a(owner.type)}, which has no index", hint)
        if index.type != INTEGER:
            _type_fault(node.index, f"an index is an integer, not {_a(index.type)}")
        return Typed(node, f"{owner.within(TIGHT)}[{index.text}]", TIGHT, owner.type.of)

    # Operators

    def same(self, node: Node, parts: list[Typed]) -> list[Typed]:
        """Bring values to one type: literals to that of what they stand with, decimals to a scale.

        Raises:
            ExpressionFault: they have none in common.
        """
        if not parts:
            return parts
        names = {part.type.name for part in parts}
        if names == {"array"}:
            if len({part.type for part in parts}) > 1:
                _type_fault(node, f"`{_sign(node)}` takes arrays of one type")
            return parts
        if "decimal" in names:
            scale = max(_scale(part) for part in parts)
            return [self.as_decimal(part, scale) for part in parts]
        if names == {"integer", "number"}:
            return [self.as_number(part) for part in parts]
        for part in parts[1:]:
            if part.type.name != parts[0].type.name:
                _mixed(node, parts[0], part)
        if names == {"any"} and not isinstance(node, Choice):
            _unsaid(node, parts[0])
        return parts

    def as_number(self, part: Typed) -> Typed:
        if part.type == NUMBER:
            return part
        if part.exact is not None and part.whole:
            number = float(part.exact)
            if Decimal(number) != part.exact:
                _type_fault(part.node, f"{part.exact} is too large to be an exact number")
            level = UNARY if number < 0 else TIGHT
            return Typed(part.node, repr(number), level, NUMBER, part.exact)
        if part.type != INTEGER:
            _type_fault(part.node, f"a number is expected, but {_shown(part)} is {_a(part.type)}")
        if _written(part.node):
            hint = "write its numbers with a point, such as `7.0 / 2.0`"
            _type_fault(part.node, "a quotient of integers does not stand for a number", hint)
        hint = f"write `double({_source(part.node)})`"
        _type_fault(part.node, f"{_shown(part)} is an integer and does not mix with a number", hint)

    def as_decimal(self, part: Typed, scale: int) -> Typed:
        """Write a decimal, an integer or a literal as a count of units of `scale`."""
        if scale > DIGITS_MAX:
            message = f"the result has {scale} digits after the point, more than {DIGITS_MAX}"
            _type_fault(part.node, message, "declare a smaller `scale`")
        type_ = Type("decimal", scale=scale)
        if part.exact is not None and part.type.name != "decimal":
            counted = part.exact.scaleb(scale, context=EXACT)
            if not INT_MIN <= counted <= INT_MAX:
                _type_fault(part.node, f"{clipped(part.exact)} is too large for a decimal")
            text = str(int(counted))
            level = UNARY if counted < 0 else TIGHT
            return Typed(part.node, text, level, type_, part.exact, part.whole)
        if part.type.name not in ("decimal", "integer"):
            message = f"{_shown(part)} is {_a(part.type)} and does not mix with a decimal"
            hint = "numbers are inexact; declare it a decimal" if part.type == NUMBER else None
            _type_fault(part.node, message, hint)
        if (up := scale - part.type.scale) == 0:
            return replace(part, type=type_)
        text = f"{part.within(PRODUCT)} * {10**up}"
        return Typed(part.node, text, PRODUCT, type_)

    def compared(self, node: Binary, left: Typed, right: Typed) -> Typed:
        for one, other in ((left, right), (right, left)):
            _within_enum(one.type, other)
        equality = node.operator in ("==", "!=")
        one, other = self.pair(node, left, right) if equality else self.same(node, [left, right])
        if one.type.name not in _ORDERED and not equality:
            _type_fault(node, f"`{node.operator}` does not compare {_many(one.type)}")
        if one.type.of is not None and one.type.of.name in ("object", "array"):
            _type_fault(node, f"`{node.operator}` does not compare {_many(one.type)}")
        text = f"{one.within(COMPARE)} {node.operator} {other.within(SUM)}"
        return Typed(node, text, COMPARE, BOOLEAN)

    def pair(self, node: Binary, left: Typed, right: Typed) -> list[Typed]:
        """Bring two values to one type, to ask whether they are equal."""
        kinds = {left.type.name, right.type.name}
        if "any" in kinds and kinds <= {"any", "boolean", "integer", "number", "string"}:
            return [left, right]
        return self.same(node, [left, right])

    def inside(self, node: Binary, facts: Facts) -> Typed:
        left = self.value(node.left, facts)
        if isinstance(node.right, Listing):
            elements = [self.value(one, facts) for one in node.right.elements]
            for element in elements:
                _within_enum(left.type, element)
            left, *elements = self.same(node, [left, *elements])
            right = f"[{', '.join(element.text for element in elements)}]"
        else:
            many = self.value(node.right, facts)
            if many.type == ANY and left.type in (ANY, INTEGER, STRING, BOOLEAN):
                text = f"{left.within(COMPARE)} in {many.within(SUM)}"
                return Typed(node, text, COMPARE, BOOLEAN)
            if (of := many.type.of) is None:
                what = f"{_shown(many)} is {_a(many.type)}"
                hint = "write `text.contains(part)`" if many.type == STRING else None
                _type_fault(node, f"`in` looks into an array, but {what}", hint)
            _within_enum(of, left)
            if of.name == "decimal":
                left = self.as_decimal(left, max(of.scale, _scale(left)))
            elif of == NUMBER and left.type == INTEGER:
                left = self.as_number(left)
            if left.type != of:
                digits = left.type.name == "decimal" and of.name == "decimal"
                why = "of more digits than any in it" if digits else f"and it holds {_many(of)}"
                _type_fault(node, f"`in` looks for {_a(left.type)}, {why}")
            if of.name in ("object", "array"):
                _type_fault(node, f"`in` does not compare {_many(of)}")
            right = many.within(SUM)
        text = f"{left.within(COMPARE)} in {right}"
        return Typed(node, text, COMPARE, BOOLEAN)

    def reckoned(self, node: Binary, left: Typed, right: Typed) -> Typed:
        operator, level = node.operator, LEVELS[node.operator]
        names = (left.type.name, right.type.name)
        if "decimal" in names:
            return self.decimal(node, left, right)
        type_ = _TIMES.get((operator, *names))
        if type_ is not None:
            return _joined(node, left, right, type_)
        if names[0] != names[1] and set(names) == {"integer", "number"}:
            left, right = self.as_number(left), self.as_number(right)
        elif names[0] != names[1]:
            _mixed(node, left, right)
        kind = left.type.name
        if kind == "any":
            _unsaid(node, left)
        if operator == "+" and kind == "string":
            if self.loops:
                _type_fault(node, "texts are not joined inside of a loop")
            return _joined(node, left, right, STRING)
        if kind not in ("integer", "number") or (operator == "%" and kind == "number"):
            _type_fault(node, f"`{operator}` does not work on {_many(left.type)}")
        found = Typed(node, _operation(operator, left, right), level, _plain(left.type))
        exact = _exactly(operator, left.exact, right.exact)
        whole = left.whole and right.whole and operator not in ("/", "%")
        return replace(found, exact=exact, whole=whole)

    def decimal(self, node: Binary, left: Typed, right: Typed) -> Typed:
        operator, level = node.operator, LEVELS[node.operator]
        if ANY in (left.type, right.type):
            _mixed(node, left, right)
        if operator in ("/", "%"):
            hint = "multiply the other side instead: `a > b * 2` for `a / 2 > b`"
            _type_fault(node, f"`{operator}` is not exact, so decimals have none", hint)
        if operator == "*":
            parts = [self.as_decimal(part, _scale(part)) for part in (left, right)]
            scale = parts[0].type.scale + parts[1].type.scale
            if scale > DIGITS_MAX:
                message = f"the product has {scale} digits after the point, more than {DIGITS_MAX}"
                _type_fault(node, message, "declare a smaller `scale`")
        else:
            scale = max(_scale(left), _scale(right))
            parts = [self.as_decimal(part, scale) for part in (left, right)]
        text = _operation(operator, *parts)
        return Typed(node, text, level, Type("decimal", scale=scale))

    # Functions

    def call(self, node: Call, facts: Facts) -> Typed:
        function, target, arguments = node.function, node.target, node.arguments
        if target is None:
            if function == "has":
                return self.has(node, facts)
            if function == "size" and len(arguments) == 1:
                return self.size(node, self.check(arguments[0], facts))
            if function in _CONVERSIONS:
                return self.converted(node, facts)
            self.unknown(node, _FUNCTIONS)
        if function in _LOOPS:
            return self.loop(node, target, facts)
        if function not in _METHODS:
            self.check(target, facts)  # a fault on the left comes first
            self.unknown(node, _METHODS)
        owner = self.check(target, facts)
        if function == "size":
            _arguments(node, 0)
            return self.size(node, owner)
        if function in _TEXT:
            return self.searched(node, owner, facts)
        _arguments(node, 0, "moments are in UTC" if arguments else None)
        allowed = ("date-time",) if function in _CALENDAR else ("date-time", "duration")
        if owner.type.name not in allowed:
            known = " or ".join(allowed)
            _type_fault(
                node, f"`{function}` is of a {known}, but {_shown(owner)} is {_a(owner.type)}"
            )
        return Typed(node, f"{owner.within(TIGHT)}.{function}()", TIGHT, INTEGER)

    def unknown(self, node: Call, known: Iterable[str]) -> NoReturn:
        function = node.function
        hint = _HINTS.get(function)
        if hint is None and function in (_METHODS if node.target is None else _FUNCTIONS):
            method = node.target is None
            hint = f"write `x.{function}(…)`" if method else f"write `{function}(x)`"
        if hint is None:
            meant = nearest(function, list(known))
            hint = f"did you mean `{meant}`?" if meant else f"known here: {', '.join(known)}"
        _type_fault(node, f"unknown function `{clipped(function)}`", hint)

    def size(self, node: Call, of: Typed) -> Typed:
        if of.type.name not in ("string", "array", "any"):
            message = f"`size` is of a text or an array, but {_shown(of)} is {_a(of.type)}"
            _type_fault(node, message)
        return Typed(node, f"size({of.text})", TIGHT, INTEGER)

    def searched(self, node: Call, owner: Typed, facts: Facts) -> Typed:
        _arguments(node, 1)
        (given,) = node.arguments
        argument = self.value(given, facts)
        for part in (owner, argument):
            if part.type.name != "string":
                what = f"`{node.function}` works on texts"
                _type_fault(part.node, f"{what}, but {_shown(part)} is {_a(part.type)}")
        text = f"{owner.within(TIGHT)}.{node.function}({argument.text})"
        if node.function == "matches":
            if not isinstance(given, Text):
                _type_fault(given, "the pattern of `matches` is written out, not computed")
            self.constant(given, f'"".matches({argument.text})', "no regular expression")
        return Typed(node, text, TIGHT, BOOLEAN)

    def converted(self, node: Call, facts: Facts) -> Typed:
        type_, takes = _CONVERSIONS[node.function]
        _arguments(node, 1)
        (given,) = node.arguments
        argument = self.value(given, facts)
        if argument.type.name not in takes:
            what = f"`{node.function}` does not take {_many(argument.type)}"
            _type_fault(node, what, f"it takes {', '.join(takes)}")
        if node.function == "string" and self.loops:
            _type_fault(node, "texts are not made inside of a loop")
        text = f"{node.function}({argument.text})"
        if node.function == "duration" and not isinstance(given, Text):
            _type_fault(
                given, "a duration is written out, not computed", 'such as `duration("36h")`'
            )
        if isinstance(given, Text):
            self.constant(given, text, f"no {type_}")
            # Of durations longer than 64 bits of nanoseconds (292 years) the evaluator takes some,
            # and then reckons wrongly with them.
            if type_ == DURATION and span(given.value) is None:
                message = f"`{clipped(given.value)}` is too long or too fine for a duration"
                _type_fault(given, message, "at most 292 years, at least a nanosecond")
        return Typed(node, text, TIGHT, type_)

    def constant(self, given: Text, text: str, what: str) -> None:
        """Refuse a written value that would fail each time."""
        if self.failing(text) is not None:
            hint = {
                "no date-time": "such as `2026-05-01T12:00:00Z`",
                "no duration": "such as `36h`, `90s`",
            }.get(what)
            _type_fault(given, f"`{clipped(given.value)}` is {what}", hint)

    def loop(self, node: Call, target: Node, facts: Facts) -> Typed:
        many = self.check(target, facts)
        of = ANY if many.type == ANY else many.type.of
        if of is None:
            message = f"`{node.function}` goes through an array, but {_shown(many)} is"
            _type_fault(node, f"{message} {_a(many.type)}")
        if len(node.arguments) != 2 or not isinstance(node.arguments[0], Name):
            hint = f"such as `{_source(many.node)}.{node.function}(x, x > 0)`"
            _type_fault(node, f"`{node.function}` takes a name and a condition", hint)
        name, body = node.arguments
        assert isinstance(name, Name)
        if name.name in self.roots or name.name in self.loops or name.name in RESERVED:
            _type_fault(name, f"`{name.name}` has a meaning already; choose another name")
        if name.name in ("present", "has") or name.name.startswith("__"):
            _type_fault(name, f"`{clipped(name.name)}` cannot be chosen as a name")
        if len(self.loops) == LOOPS_MAX:
            _type_fault(node, f"no more than {LOOPS_MAX} loops stand in each other")
        self.loops[name.name] = of
        # What is known of an element is not known outside, and the name may come again.
        condition = self.truth(body, facts, f"the condition of `{node.function}`")
        del self.loops[name.name]
        text = f"{many.within(TIGHT)}.{node.function}({name.name}, {condition.text})"
        return Typed(node, text, TIGHT, BOOLEAN)


_TIMES: dict[tuple[str, str, str], Type] = {
    ("+", "date-time", "duration"): DATE_TIME,
    ("+", "duration", "date-time"): DATE_TIME,
    ("-", "date-time", "duration"): DATE_TIME,
    ("-", "date-time", "date-time"): DURATION,
    ("+", "duration", "duration"): DURATION,
    ("-", "duration", "duration"): DURATION,
}


def fitted(checker: Checker, found: Typed, wants: Type) -> Typed:
    """Bring a whole expression to the type that its place wants.

    Raises:
        ExpressionFault: it has another.
    """
    if wants == NUMBER and found.type == INTEGER:
        return checker.as_number(found)
    if wants.name == "decimal" and (found.type == INTEGER or found.exact is not None):
        return checker.as_decimal(found, max(_scale(found), wants.scale))
    if wants.name == "string" and wants.enum is not None:
        _within_enum(wants, found)
    if found.type == ANY:
        return found
    fits = found.type.name == wants.name and (
        wants.of is None or found.type.of is None or found.type.of.name == wants.of.name
    )
    if not fits:
        what = "true or false" if wants == BOOLEAN else _a(wants)
        hint = None
        if wants == BOOLEAN and found.type.name != "object":
            hint = "compare it with something"
        message = f"{what} is expected here, but the expression is {_a(found.type)}"
        _type_fault(found.node, message, hint)
    return found


def _type_fault(node: Node, message: str, hint: str | None = None) -> NoReturn:
    sign = isinstance(node, Binary | Chain | Choice | Call | Index)
    at = node.at if sign else place(node)
    raise ExpressionFault("expression-type", message, at, hint)


def _absent(node: Node, name: str) -> NoReturn:
    hint = f"ask first: `has({name}) && …`"
    raise ExpressionFault("expression-type", f"`{name}` may be absent", place(node), hint)


def _field(node: Member, owner: Type, what: str) -> tuple[Type, bool]:
    """Give the type of a field, and whether it may be absent."""
    if owner == ANY:
        return ANY, False
    if (found := owner.fields.get(node.field)) is not None:
        return found
    name = clipped(node.field)
    if owner.name != "object":
        message, hint = f"{_a(owner)} has no fields, so no `{name}`", None
    else:
        meant = nearest(node.field, owner.fields)
        message = f"`{what}` has no field `{name}`"
        hint = f"did you mean `{meant}`?" if meant else f"it has {_listed(owner.fields)}"
    raise ExpressionFault("expression-type", message, node.at, hint)


def _number(node: Number) -> Typed:
    value, level = node.value, UNARY if node.value < 0 else TIGHT
    if not node.whole:
        number = float(value)
        return Typed(node, repr(number), level, NUMBER, value)
    if not INT_MIN <= value <= INT_MAX:
        _type_fault(node, f"{value} does not fit into 64 bits")
    return Typed(node, str(int(value)), level, INTEGER, value, whole=True)


def _listing(node: Listing, elements: list[Typed]) -> Typed:
    if not elements:
        _type_fault(node, "an empty list is of no type", "ask `size(x) == 0`")
    if elements[0].type.name in ("object", "array"):
        _type_fault(node, f"a list is not made of {_many(elements[0].type)}")
    text = f"[{', '.join(element.text for element in elements)}]"
    return Typed(node, text, TIGHT, Type("array", of=_plain(elements[0].type)))


def _operation(operator: str, left: Typed, right: Typed) -> str:
    level = LEVELS[operator]
    return f"{left.within(level)} {operator} {right.within(level + 1)}"


def _joined(node: Binary, left: Typed, right: Typed, type_: Type) -> Typed:
    return Typed(node, _operation(node.operator, left, right), LEVELS[node.operator], type_)


def _exactly(operator: str, left: Decimal | None, right: Decimal | None) -> Decimal | None:
    """Reckon with written numbers; None if it cannot be done exactly."""
    if left is None or right is None:
        return None
    try:
        match operator:
            case "+":
                return EXACT.add(left, right)
            case "-":
                return EXACT.subtract(left, right)
            case "*":
                return EXACT.multiply(left, right)
            case _:
                return None
    except Inexact:
        return None


def _scale(part: Typed) -> int:
    """Say how many digits after the point a value needs as a decimal."""
    if part.type.name == "decimal" or part.exact is None:
        return part.type.scale
    exponent = part.exact.normalize(EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _plain(type_: Type) -> Type:
    """Give the type of a result: that of its parts, without what they alone can be."""
    return STRING if type_.name == "string" else type_


def _within_enum(type_: Type, value: Typed) -> None:
    """Refuse a written text that a field can never be."""
    if type_.enum is None or not isinstance(value.node, Text):
        return
    text = value.node.value
    if text not in type_.enum:
        meant = nearest(text, type_.enum)
        hint = f"did you mean `{meant}`?" if meant else f"one of {_listed(type_.enum)}"
        _type_fault(value.node, f"`{clipped(text)}` is not one of the values it can have", hint)


def _unsaid(node: Node, part: Typed) -> NoReturn:
    hint = f"such as `int({_source(part.node)})` or `string({_source(part.node)})`"
    _type_fault(node, f"`{_sign(node)}` needs to be told what {_shown(part)} is", hint)


def _mixed(node: Node, one: Typed, other: Typed) -> NoReturn:
    for part in (one, other):
        if part.type == ANY:
            _unsaid(node, part)
    kinds = f"{_a(one.type)} and {_a(other.type)}"
    hint = None
    if {one.type, other.type} == {DATE_TIME, STRING}:
        hint = 'write an instant as `timestamp("2026-05-01T12:00:00Z")`'
    elif {one.type, other.type} == {DURATION, STRING}:
        hint = 'write a duration as `duration("36h")`'
    elif STRING in (one.type, other.type) and {"integer", "number"} & {
        one.type.name,
        other.type.name,
    }:
        hint = "a number is written without quotes"
    _type_fault(node, f"`{_sign(node)}` does not go with {kinds}", hint)


def _sign(node: Node) -> str:
    match node:
        case Binary(operator=operator):
            return operator
        case Choice():
            return "? :"
        case _:
            return "[ ]"


def _arguments(node: Call, count: int, hint: str | None = None) -> None:
    if len(node.arguments) != count:
        wanted = "no argument" if count == 0 else "one argument"
        _type_fault(node, f"`{node.function}` takes {wanted}", hint)


def _shown(part: Typed) -> str:
    """Name a part in a message."""
    match part.node:
        case Number(value=value):
            return f"`{clipped(value)}`"
        case Text(value=value):
            return f'`"{clipped(value, 40)}"`'
        case Truth(value=value):
            return f"`{str(value).lower()}`"
        case Name() | Member():
            return f"`{clipped(_source(part.node))}`"
        case _:
            return "this"


def _source(node: Node) -> str:
    """Write a node as its author did, if it is a name or a field."""
    match node:
        case Name(name=name):
            return name
        case Member(operand=operand, field=name):
            return f"{_source(operand)}.{name}"
        case _:
            return "…"


def _written(node: Node) -> bool:
    """Say whether a node is made of written numbers alone."""
    match node:
        case Number():
            return True
        case Unary(operand=operand):
            return _written(operand)
        case Binary(left=left, right=right):
            return _written(left) and _written(right)
        case _:
            return False


def _a(type_: Type) -> str:
    if type_ == ANY:
        return "of no declared type"
    article = "an" if type_.name[0] in "aeiou" else "a"
    return f"{article} {type_}"


def _many(type_: Type) -> str:
    return f"{type_.name}s" if type_.name != "array" else "arrays"


def _listed(names: Iterable[str]) -> str:
    return clipped(", ".join(names) or "nothing")
