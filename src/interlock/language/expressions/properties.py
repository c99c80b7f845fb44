"""Property maps: what `data`, the payload of an event and the like may hold.

    properties = read_properties({
        "amount": {"type": "decimal", "scale": 2, "minimum": 0},
        "region": {"type": "string", "enum": ["EU", "US"], "default": "EU"},
        "due_at": {"type": "date-time", "optional": True},
    })
    properties.check({"amount": "12.50"})       -> []
    properties.complete({"amount": "12.50"})    -> {"amount": "12.50", "region": "EU"}

A property is required unless it has a `default` or says `optional: true`. Values are JSON-like;
what JSON has no form for is text there: a decimal such as "12.50", an instant such as
"2026-05-01T12:00:00Z". A decimal's Python form (`Decimal`, or a whole `int`) and an instant's (an
aware `datetime`) are taken as well; `encode` writes them as JSON has them.

A decimal is exact. It has at most `scale` digits after the point (6 unless it says otherwise) and
as many before it as leave 18 in all, so that it is always a whole number of its smallest unit
within 64 bits. Nothing is rounded: a decimal with more digits is refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias

from interlock.core.declaration import Defect as Fault
from interlock.core.declaration import Path
from interlock.core.instant import parse_instant
from interlock.core.text import clipped, nearest, quoted
from interlock.language.expressions.syntax import INT_MAX, INT_MIN, LITERALS, RESERVED

DIGITS_MAX = 18  # of a decimal: the most that 64 bits hold of any digits
SCALE = 6
DEPTH_MAX = 8  # of objects and arrays in each other
NAME_MAX = 64
FIELDS_MAX = 500  # of one map

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Type:
    """What kind of value stands somewhere, for the checker of expressions.

    Attributes:
        name: boolean, integer, number, string, decimal, date-time, duration, array, object, or
            any: JSON of which nobody has said what it is, such as what an activity gives.
        of: what an array holds.
        fields: of an object: name -> type, and whether it may be absent.
        scale: of a decimal: digits after the point.
        enum: of a string: all that it can be.
    """

    name: str
    of: "Type | None" = None
    fields: "Mapping[str, tuple[Type, bool]]" = field(default_factory=dict, hash=False)
    scale: int = 0
    enum: tuple[str, ...] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"array of {self.of}" if self.of else self.name


BOOLEAN = Type("boolean")
INTEGER = Type("integer")
NUMBER = Type("number")
STRING = Type("string")
DATE_TIME = Type("date-time")
DURATION = Type("duration")
ANY = Type("any")

# Which keys a property of each type may have, besides those that any may have.
_ANY = ("type", "default", "optional", "description")
_BOUNDS = ("enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_KEYS: dict[str, tuple[str, ...]] = {
    "string": ("enum", "minLength", "maxLength", "pattern"),
    "integer": _BOUNDS,
    "number": _BOUNDS,
    "decimal": (*_BOUNDS, "scale"),
    "date-time": ("minimum", "maximum"),
    "boolean": (),
    "array": ("items", "minItems", "maxItems"),
    "object": ("properties",),
}
_ALL_KEYS = {*_ANY, *(key for keys in _KEYS.values() for key in keys)}
_TYPE_WORDS = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "money": "decimal",
    "Decimal": "decimal",
    "datetime": "date-time",
    "timestamp": "date-time",
    "date": "date-time",
    "list": "array",
    "dict": "object",
    "map": "object",
    "mapping": "object",
}
_KEY_WORDS = {
    "values": "enum",
    "min": "minimum",
    "max": "maximum",
    "regex": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "nullable": "optional",
    "fields": "properties",
    "required": "optional",
    "digits": "scale",
    "item": "items",
    "of": "items",
}


class PropertiesError(ValueError):
    """A property map is refused; `defects` holds every fault, each with its path in the map."""

    def __init__(self, defects: list[Fault]) -> None:
        self.defects = tuple(defects)
        super().__init__(self.defects)

    def __str__(self) -> str:
        return "; ".join(map(str, self.defects))


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One declared value. `values` and bounds are in the Python form: `Decimal`, `datetime`."""

    type: Type
    optional: bool = False
    default: Any = None
    defaulted: bool = False
    values: tuple[Any, ...] | None = None
    minimum: Any = None
    maximum: Any = None
    exclusive: tuple[bool, bool] = (False, False)
    length: tuple[int, int | None] = (0, None)
    pattern: str | None = None
    items: "Property | None" = None
    properties: "Properties | None" = None

    @property
    def required(self) -> bool:
        return not (self.optional or self.defaulted)


@dataclass(frozen=True, slots=True)
class Properties:
    """A property map that was read."""

    fields: Mapping[str, Property] = field(default_factory=dict)

    def check(self, value: object) -> list[Fault]:
        """Find everything in a value that is not as declared; its path is within the value."""
        return list(_object_faults(self, value, ()))

    def complete(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Copy a value and fill in the defaults of what is absent, in objects and arrays too."""
        whole: dict[str, Any] = {}
        for name, property_ in self.fields.items():
            if name in value:
                whole[name] = _completed(property_, value[name])
            elif property_.defaulted:
                whole[name] = _completed(property_, property_.default)
        return whole

    def encode(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Write a value that `check` accepts as JSON has it: decimals and instants as text."""
        return {name: _encoded(self.fields[name], item) for name, item in value.items()}

    def types(self) -> dict[str, Type]:
        """Give the type of each property."""
        return {name: property_.type for name, property_ in self.fields.items()}

    def type(self) -> Type:
        """Give the type of the whole, an object."""
        return Type("object", fields={n: (p.type, p.optional) for n, p in self.fields.items()})


# Reading a map


def read_properties(mapping: object) -> Properties:
    """Read a property map.

    Raises:
        PropertiesError: with every fault: `unknown-key`, `missing-key`, `wrong-type`, `bad-name`.
    """
    faults: list[Fault] = []
    properties = _properties(mapping, (), faults)
    if faults:
        raise PropertiesError(faults)
    return properties


def _properties(mapping: object, path: Path, faults: list[Fault]) -> Properties:
    if not isinstance(mapping, Mapping):
        message = f"a mapping of names to properties is expected, not {_kind(mapping)}"
        faults.append(Fault("wrong-type", path, message))
        return Properties()
    if len(mapping) > FIELDS_MAX:
        message = f"{len(mapping)} properties, more than {FIELDS_MAX}"
        faults.append(Fault("budget-exceeded", path, message))
        return Properties()
    found: dict[str, Property] = {}
    for name, schema in mapping.items():
        if (why := name_fault(name)) is not None:
            faults.append(Fault("bad-name", (*path, name), f"{quoted(name)} {why}"))
        found[name] = _property(schema, (*path, name), faults)
    return Properties(found)


def name_fault(name: object) -> str | None:
    """Say what keeps a name from standing in expressions, or None."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "is no name for expressions: letters, digits and `_`, not a digit first"
    if name in LITERALS or name in RESERVED:
        return "is a word of expressions, not a name"
    return f"is longer than {NAME_MAX} characters" if len(name) > NAME_MAX else None


def _property(schema: object, path: Path, faults: list[Fault]) -> Property:
    unread = Property(type=STRING, optional=True)
    if isinstance(schema, str) and schema in _KEYS:
        hint = f"write `{{type: {schema}}}`"
        faults.append(Fault("wrong-type", path, "a property is a mapping", hint))
        return unread
    if not isinstance(schema, Mapping):
        faults.append(Fault("wrong-type", path, f"a property is a mapping, not {_kind(schema)}"))
        return unread
    if len(path) > 3 * DEPTH_MAX:
        faults.append(Fault("budget-exceeded", path, f"nested deeper than {DEPTH_MAX}"))
        return unread
    name = schema.get("type")
    if name is None:
        known = ", ".join(_KEYS)
        faults.append(Fault("missing-key", path, "the property has no `type`", f"one of {known}"))
        return unread
    if not isinstance(name, str) or name not in _KEYS:
        faults.append(Fault("wrong-type", (*path, "type"), _no_type(name), _type_hint(name)))
        return unread
    before = len(faults)
    for key in schema:
        if key not in _ANY and key not in _KEYS[name]:
            faults.append(Fault("unknown-key", (*path, key), *_no_key(key, name)))
    property_ = _Schema(name, schema, path, faults).read()
    return property_ if len(faults) == before else unread


def _no_type(name: object) -> str:
    return f"{quoted(name)} is no type"


def _type_hint(name: object) -> str:
    meant = _TYPE_WORDS.get(str(name)) or nearest(name, _KEYS)
    return f"did you mean `{meant}`?" if meant else f"one of {', '.join(_KEYS)}"


def _no_key(key: object, name: str) -> tuple[str, str | None]:
    message = f"unknown key {quoted(key)} of a property of type {name}"
    if key in _ALL_KEYS:
        return message, None
    allowed = (*_ANY, *_KEYS[name])
    meant = _KEY_WORDS.get(str(key))
    meant = meant if meant in allowed else nearest(key, allowed)
    if key in ("required", "nullable"):
        return message, "a property is required unless it has a `default` or `optional: true`"
    return message, f"did you mean `{meant}`?" if meant else None


class _Schema:
    """Reads the keys of one property, whose type is known."""

    def __init__(
        self, name: str, schema: Mapping[str, Any], path: Path, faults: list[Fault]
    ) -> None:
        self.name, self.schema, self.path, self.faults = name, schema, path, faults

    def read(self) -> Property:
        scale = self.whole("scale", 0, DIGITS_MAX) if self.name == "decimal" else None
        kind = Type(self.name, scale=SCALE if scale is None else scale)
        items: Property | None = None
        inner: Properties | None = None
        if self.name == "array":
            items = self.items()
            kind = Type("array", of=items.type)
        elif self.name == "object":
            inner = _properties(self.inner("properties"), (*self.path, "properties"), self.faults)
            kind = inner.type()
        elif self.name != "decimal":
            kind = Type(self.name)
        property_ = Property(type=kind, items=items, properties=inner)
        values = self.values(property_)
        if values is not None and self.name == "string":
            kind = Type("string", enum=tuple(values))
        low, low_open = self.bound(property_, "minimum", "exclusiveMinimum", max)
        high, high_open = self.bound(property_, "maximum", "exclusiveMaximum", min)
        property_ = Property(
            type=kind,
            optional=self.optional(),
            values=values,
            minimum=low,
            maximum=high,
            exclusive=(low_open, high_open),
            length=self.length(),
            pattern=self.pattern(),
            items=items,
            properties=inner,
        )
        return self.with_default(property_)

    def wrong(self, key: str, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault("wrong-type", (*self.path, key), message, hint))

    def items(self) -> Property:
        items = _property(self.inner("items"), (*self.path, "items"), self.faults)
        if items.optional or items.defaulted:
            self.wrong("items", "an item is neither optional nor has it a default")
        return items

    def inner(self, key: str) -> object:
        if key not in self.schema:
            message = f"a property of type {self.name} has `{key}`"
            self.faults.append(Fault("missing-key", self.path, message))
            return {"type": "string"} if key == "items" else {}
        return self.schema[key]

    def optional(self) -> bool:
        value = self.schema.get("optional", False)
        if not isinstance(value, bool):
            self.wrong("optional", f"`optional` is true or false, not {_kind(value)}")
        elif value and "default" in self.schema:
            self.wrong("optional", "what has a default is never absent, so it is not optional")
        return value is True

    def whole(self, key: str, least: int, most: int) -> int | None:
        value = self.schema.get(key)
        if key not in self.schema:
            return None
        if type(value) is not int or not least <= value <= most:
            self.wrong(key, f"`{key}` is a whole number from {least} to {most}")
            return None
        return value

    def length(self) -> tuple[int, int | None]:
        what = "Items" if self.name == "array" else "Length"
        if f"min{what}" not in _KEYS[self.name]:
            return (0, None)
        least = self.whole(f"min{what}", 0, 2**31)
        most = self.whole(f"max{what}", 0, 2**31)
        if least is not None and most is not None and least > most:
            self.wrong(f"min{what}", f"`min{what}` is greater than `max{what}`")
        return (least or 0, most)

    def pattern(self) -> str | None:
        value = self.schema.get("pattern")
        if self.name != "string" or value is None:
            return None
        if not isinstance(value, str):
            self.wrong("pattern", f"`pattern` is a regular expression, not {_kind(value)}")
            return None
        from interlock.language.expressions.evaluator import pattern

        try:
            pattern(value)
        except ValueError as error:
            self.wrong("pattern", f"`pattern` is no regular expression: {error}", "RE2 syntax")
            return None
        return value

    def values(self, property_: Property) -> tuple[Any, ...] | None:
        if "enum" not in self.schema or "enum" not in _KEYS[self.name]:
            return None
        listed = self.schema["enum"]
        if not isinstance(listed, list) or not listed:
            self.wrong("enum", "`enum` is a list of at least one value")
            return None
        found = []
        for place, value in enumerate(listed):
            defects = list(_faults(property_, value, (*self.path, "enum", place)))
            self.faults += [defect._replace(code="wrong-type") for defect in defects]
            if not defects:
                found.append(_plain(property_, value))
        return tuple(found)

    def bound(
        self, property_: Property, key: str, open_key: str, tighter: Callable[[Any, Any], Any]
    ) -> tuple[Any, bool]:
        """Read a bound that may be given with or without itself; of two the tighter one counts."""
        given: list[tuple[Any, bool]] = []
        for name, is_open in ((key, False), (open_key, True)):
            if name not in self.schema or name not in _KEYS[self.name]:
                continue
            value = self.schema[name]
            if self.name == "decimal" and type(value) is float:
                value = repr(value)  # as it was written
            defects = list(_faults(property_, value, (*self.path, name)))
            self.faults += [defect._replace(code="wrong-type") for defect in defects]
            if not defects:
                given.append((_plain(property_, value), is_open))
        if len(given) < 2:
            return given[0] if given else (None, False)
        closed, opened = given
        wins = tighter(closed[0], opened[0])
        return opened if opened[0] == wins else closed

    def with_default(self, property_: Property) -> Property:
        if "default" not in self.schema:
            return property_
        value = self.schema["default"]
        if self.name == "decimal" and type(value) is float:
            value = repr(value)
        defects = list(_faults(property_, value, (*self.path, "default")))
        self.faults += [defect._replace(code="wrong-type") for defect in defects]
        if defects:
            return property_
        from dataclasses import replace

        return replace(property_, default=_encoded(property_, value), defaulted=True)


# Checking a value


def _object_faults(properties: Properties, value: object, path: Path) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault("wrong-type", path, f"an object is expected, not {_kind(value)}")
        return
    for name in value:
        if name not in properties.fields:
            meant = nearest(name, properties.fields)
            hint = f"did you mean `{meant}`?" if meant else None
            yield Fault("unknown-key", (*path, name), f"{quoted(name)} is not declared", hint)
    for name, property_ in properties.fields.items():
        if name in value:
            yield from _faults(property_, value[name], (*path, name))
        elif property_.required:
            yield Fault("missing-key", path, f"`{name}` is missing")


def _faults(property_: Property, value: object, path: Path) -> Iterator[Fault]:
    if property_.type.name == "object" and property_.properties is not None:
        yield from _object_faults(property_.properties, value, path)
        return
    try:
        plain = _plain(property_, value)
    except ValueError as error:
        hint = "optional means that it may be left out" if value is None else None
        yield Fault("wrong-type", path, str(error), hint)
        return
    if property_.type.name in ("string", "array"):
        yield from _length_faults(property_, plain, path)
    if property_.type.name == "array":
        for place, item in enumerate(plain):
            if property_.items is not None:
                yield from _faults(property_.items, item, (*path, place))
        return
    if property_.values is not None and plain not in property_.values:
        meant = nearest(value, [v for v in property_.values if isinstance(v, str)])
        listed = clipped(", ".join(str(v) for v in property_.values))
        hint = f"did you mean `{meant}`?" if meant else f"one of {listed}"
        yield Fault("not-allowed", path, f"{quoted(value)} is not one of its values", hint)
    yield from _bound_faults(property_, plain, path)


def _bound_faults(property_: Property, value: Any, path: Path) -> Iterator[Fault]:
    low, high = property_.minimum, property_.maximum
    low_open, high_open = property_.exclusive
    if low is not None and (value <= low if low_open else value < low):
        word = "not above" if low_open else "below"
        yield Fault("not-allowed", path, f"{_shown(value)} is {word} {_shown(low)}")
    if high is not None and (value >= high if high_open else value > high):
        word = "not below" if high_open else "above"
        yield Fault("not-allowed", path, f"{_shown(value)} is {word} {_shown(high)}")


def _length_faults(property_: Property, value: Any, path: Path) -> Iterator[Fault]:
    least, most = property_.length
    what = "items" if property_.type.name == "array" else "characters"
    if len(value) < least:
        yield Fault("not-allowed", path, f"{len(value)} {what}, fewer than {least}")
    if most is not None and len(value) > most:
        yield Fault("not-allowed", path, f"{len(value)} {what}, more than {most}")
        return  # a longer text is not searched
    if property_.pattern is not None:
        from interlock.language.expressions.evaluator import pattern

        if pattern(property_.pattern).value({"text": value}) is not True:
            message = f"{quoted(value)} does not match `{clipped(property_.pattern)}`"
            yield Fault("not-allowed", path, message)


def _shown(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else clipped(value)


def _kind(value: object) -> str:
    """Name what a value is, in the words of JSON as far as it has them."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float() | Decimal():
            return "a number"
        case str():
            return "a text"
        case list():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


# Values of each type in their Python form


def plain_boolean(value: object) -> bool:
    if value is True or value is False:
        return value
    raise ValueError(f"a boolean is expected, not {_kind(value)}")


def plain_integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"an integer is expected, not {_kind(value)}")
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"{clipped(value)} does not fit into 64 bits")
    return value


def plain_number(value: object) -> float:
    """Give a finite double. A whole number must be one exactly: 2**53 + 1 is refused."""
    if type(value) is float:
        if isfinite(value):
            return value
        raise ValueError(f"{value} is no number that JSON can say")
    if type(value) is not int:
        raise ValueError(f"a number is expected, not {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = 0.0
    if number != value:
        raise ValueError(f"{clipped(value)} is too large to be an exact number")
    return number


def plain_string(value: object) -> str:
    if type(value) is not str:
        raise ValueError(f"a text is expected, not {_kind(value)}")
    if "\0" in value:
        raise ValueError("the text holds a NUL character")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("the text holds a lone surrogate, which has no UTF-8 form") from None
    return value


def plain_decimal(value: object) -> Decimal:
    """Give an exact decimal; how many digits it may have is for `units` to say."""
    if type(value) is str:
        if len(value) > 2 * DIGITS_MAX or not _DECIMAL.fullmatch(value):
            raise ValueError(f'{quoted(value)} is no decimal such as "12.50"')
        return Decimal(value)
    if type(value) is int:
        return Decimal(value)
    if type(value) is Decimal:
        return value
    if type(value) is float:
        raise ValueError(f'a decimal is written as a text such as "{clipped(value)}"')
    raise ValueError(f"a decimal is expected, not {_kind(value)}")


_EXACT = Context(prec=DIGITS_MAX, traps=[InvalidOperation])


def units(value: object, scale: int) -> int:
    """Give a decimal as the whole number of its smallest units, 10**-scale.

    Raises:
        ValueError: it is no decimal, or has too many digits.
    """
    return _units_of(value, scale) if type(value) is str else _units(value, scale)


def _units(value: object, scale: int) -> int:
    number = plain_decimal(value)
    if not number.is_finite():
        raise ValueError(f"{number} is no decimal")
    whole = DIGITS_MAX - scale
    if number and number.adjusted() >= whole:
        raise ValueError(f"{clipped(number)} has more than {whole} digits before the point")
    try:
        counted = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT).scaleb(scale)
    except InvalidOperation:
        raise ValueError(f"{clipped(number)} has too many digits") from None
    if counted.scaleb(-scale) != number:
        raise ValueError(f"{clipped(number)} has more than {scale} digits after the point")
    return int(counted)


#: The texts met last: the data of one instance is looked at again with each of its events.
_units_of = lru_cache(1024)(_units)


#: What the evaluator takes for the beginning and the end of time, and so for no moment.
_BEGINNING, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _within_time(moment: datetime) -> datetime:
    if moment in (_BEGINNING, _END):
        raise ValueError(
            f"{moment.isoformat()} is the first or last moment, which none is equal to"
        )
    return moment


def plain_instant(value: object) -> datetime:
    if type(value) is str:
        if not _INSTANT.fullmatch(value):
            raise ValueError(f"{quoted(value)} is no instant such as `2026-05-01T12:00:00Z`")
        try:
            return _within_time(datetime.fromisoformat(value).astimezone(UTC))
        except (ValueError, OverflowError):
            raise ValueError(f"{quoted(value)} is no instant of the calendar") from None
    if isinstance(value, datetime):
        return _within_time(parse_instant(value))
    raise ValueError(f"an instant such as `2026-05-01T12:00:00Z` is expected, not {_kind(value)}")


_Reader: TypeAlias = Callable[[object], Any]
PLAIN: dict[str, _Reader] = {
    "boolean": plain_boolean,
    "integer": plain_integer,
    "number": plain_number,
    "string": plain_string,
    "date-time": plain_instant,
}


def _plain(property_: Property, value: object) -> Any:
    """Give a value in its Python form; an array and an object stay as they are."""
    name = property_.type.name
    if name == "decimal":
        scale = property_.type.scale
        return Decimal(units(value, scale)).scaleb(-scale)
    if name == "array":
        if type(value) is not list:
            raise ValueError(f"an array is expected, not {_kind(value)}")
        return value
    if name == "object":
        return value
    return PLAIN[name](value)


def _completed(property_: Property, value: Any) -> Any:
    if property_.properties is not None and isinstance(value, Mapping):
        return property_.properties.complete(value)
    if property_.items is not None and isinstance(value, list):
        return [_completed(property_.items, item) for item in value]
    return value


def _encoded(property_: Property, value: Any) -> Any:
    if property_.properties is not None:
        return property_.properties.encode(value)
    if property_.items is not None:
        return [_encoded(property_.items, item) for item in value]
    return written(value)


def written(value: Any) -> Any:
    """Write a scalar as JSON has it: a `Decimal` in plain digits, an instant in UTC."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
