"""Writes the module of typed states of a machine.

    text = write_module(interlock.load("order.machine.yaml"))

It has a frozen class for each flat state, their union, and one class, named after the machine, that
begins and reads instances. Each state has a method for each event that leads anywhere from it.
Fields that a state requires are never None in it. Equal definitions give equal modules.
"""

from collections.abc import Mapping, Sequence

from interlock.language.definition import Definition
from interlock.language.expressions.properties import Properties, Property
from interlock.language.flatten import Branch
from interlock.typed.layout import INDENT, bracketed, docstring, named, text_literal, union
from interlock.typed.machine import Adopting, Sending, Starting, TypedState
from interlock.typed.names import Names, class_name, field_name, plain_name

BUILTIN = frozenset(
    ("bool", "dict", "float", "int", "isinstance", "list", "property", "staticmethod", "str")
)
IMPORTS = {
    "Sequence": "collections.abc",
    "dataclass": "dataclasses",
    "datetime": "datetime",
    "Decimal": "decimal",
    "Any": "typing",
    "Final": "typing",
    "Literal": "typing",
    "NotRequired": "typing",
    "TypeAlias": "typing",
    "TypedDict": "typing",
    "Unpack": "typing",
    "Definition": "interlock",
    "Engine": "interlock",
    "Handle": "interlock",
    "Adopting": "interlock.typed",
    "TypedMachine": "interlock.typed",
    "Sending": "interlock.typed",
    "Starting": "interlock.typed",
    "TypedState": "interlock.typed",
}
MACHINE = "_MACHINE"
RESERVED = BUILTIN | IMPORTS.keys() | {MACHINE}

SCALARS = {"boolean": "bool", "integer": "int", "number": "float", "string": "str"}
NOTHING = Properties()


def write_module(definition: Definition) -> str:
    """Write the module of a definition."""
    return _Writer(definition).write()


class _Writer:
    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._used: set[str] = set()
        self._names = Names(RESERVED)
        self._dicts: list[list[str]] = []
        self._dict_names: dict[str, str] = {}
        wanted = class_name(definition.name, "Machine")
        self._machine = self._names.give(wanted)
        self._union = self._names.give(f"{wanted}State")
        self._data = self._names.give(f"{wanted}Data")
        self._state_name = self._names.give(f"{wanted}StateName")
        self._event = self._names.give(f"{wanted}Event")
        self._action = self._names.give(f"{wanted}Action")
        self._label = self._names.give(f"{wanted}Label")
        self._classes = {name: self._names.give(class_name(name)) for name in definition.states}
        self._data_classes = self._name_data()

    def write(self) -> str:
        definition = self._definition
        self._name_dicts()
        attributes = Names(RESERVED | self._names.taken)
        self._attributes = {
            name: attributes.give(field_name(name)) for name, _ in _ordered(definition.data)
        }
        parts = [
            *self._write_data(),
            *(self._state(name) for name in definition.states),
            union(f"{self._union}: {self._use('TypeAlias')}", [*self._classes.values()]),
            self._front(),
            self._table(),
        ]
        aliases = self._aliases()
        texts = ["\n".join(part) for part in [*self._dicts, *parts]]
        told = [
            f"Typed states of the machine `{definition.name}`, version `{definition.version}`.",
            "",
            "Written by `interlock gen types`: write it anew when the machine changes.",
        ]
        head = [*docstring(told), "", *self._imports(), "", *aliases]
        return _spaced(["\n".join(head), *texts])

    def _use(self, name: str) -> str:
        self._used.add(name)
        return name

    def _imports(self) -> list[str]:
        lines = ["from __future__ import annotations", ""]
        modules: dict[str, list[str]] = {}
        for name in sorted(self._used, key=_import_order):
            modules.setdefault(IMPORTS[name], []).append(name)
        ours = [module for module in modules if module.startswith("interlock")]
        for module in sorted(modules.keys() - set(ours)):
            lines += _import(module, modules[module])
        lines.append("")
        for module in sorted(ours):
            lines += _import(module, modules[module])
        return lines

    # Names

    def _name_data(self) -> dict[frozenset[str], str]:
        """Name a class for each set of optional fields that a state requires."""
        found = {frozenset[str](): self._data}
        for state in self._definition.states:
            required = self._owed(state)
            if required not in found:
                wanted = self._classes[state].rstrip("_")
                found[required] = self._names.give(f"{wanted}Data")
        return found

    def _name_dicts(self) -> None:
        """Name the class of every object, so that nothing else is called so."""
        self._field_types = {
            name: self._type(property_, self._object(self._machine, name), given=False)
            for name, property_ in _ordered(self._definition.data)
        }
        for event, properties in self._definition.events.items():
            self._parameters(properties, set(), class_name(event, "Event"))
        self._parameters(self._definition.data, set(), self._machine)

    @staticmethod
    def _object(wanted: str, name: str) -> str:
        return f"{wanted}{class_name(name, 'Object')}"

    def _owed(self, state: str) -> frozenset[str]:
        fields = self._definition.data.fields
        return frozenset(n for n in self._definition.required(state) if fields[n].optional)

    def _aliases(self) -> list[str]:
        flat = self._definition.flat
        events = {b.trigger.name for b in flat.branches if b.trigger.kind == "event"}
        labels = {label for branch in flat.branches for label in branch.guards}
        lines = self._alias(self._state_name, self._definition.states)
        for alias, names in (
            (self._event, events),
            (self._action, {branch.action for branch in flat.branches}),
            (self._label, labels),
        ):
            if names:
                lines += self._alias(alias, sorted(names))
        return lines

    def _alias(self, name: str, texts: Sequence[str]) -> list[str]:
        self._use("Literal")
        head = f"{name}: {self._use('TypeAlias')} = Literal["
        return bracketed(head, [text_literal(text) for text in texts], "]")

    # Types of fields

    def _type(self, property_: Property, wanted: str, *, given: bool) -> str:
        """Write the type of a field.

        Args:
            wanted: the name of a class for an object.
            given: whether it is asked for rather than read: then what has a default may be left
                out.
        """
        kind = property_.type.name
        if property_.properties is not None:
            return self._dict(property_.properties, wanted, given=given)
        if property_.items is not None:
            return f"list[{self._type(property_.items, wanted, given=given)}]"
        if kind in ("string", "integer") and property_.values is not None:
            values = dict.fromkeys(property_.values)
            texts = [text_literal(v) if isinstance(v, str) else str(v) for v in values]
            return f"{self._use('Literal')}[{', '.join(texts)}]"
        if kind == "decimal":
            return self._use("Decimal")
        return self._use("datetime") if kind == "date-time" else SCALARS[kind]

    def _dict(self, properties: Properties, wanted: str, *, given: bool) -> str:
        fields: dict[str, str] = {}
        for name, property_ in _ordered(properties):
            type_ = self._type(property_, self._object(wanted, name), given=given)
            if property_.optional or (given and property_.defaulted):
                type_ = f"{self._use('NotRequired')}[{type_}]"
            fields[name] = type_
        shape = f"{wanted} {fields}"
        known = self._dict_names.get(shape)
        if known is None:
            asked = given and wanted in self._names.taken  # read, it has another shape
            name = self._names.give(f"{wanted}Given" if asked else wanted)
            known = self._dict_names[shape] = name
            self._dicts.append(self._dict_lines(name, fields))
        return known

    def _dict_lines(self, name: str, fields: Mapping[str, str]) -> list[str]:
        self._use("TypedDict")
        plain = Names(RESERVED | self._names.taken)
        if fields and all(plain.give(field_name(field)) == field for field in fields):
            lines = [f"{INDENT}{field}: {type_}" for field, type_ in fields.items()]
            return [f"class {name}(TypedDict):", *lines]
        items = [f"{text_literal(field)}: {type_}" for field, type_ in fields.items()]
        if not items:
            return [f"class {name}(TypedDict):", f'{INDENT}"""Nothing."""']
        inside = [f"{INDENT * 2}{item}," for item in items]
        head = f"{name} = TypedDict("
        return [head, f'{INDENT}"{name}",', f"{INDENT}{{", *inside, f"{INDENT}}},", ")"]

    # Data

    def _write_data(self) -> list[list[str]]:
        properties, parts = self._definition.data, []
        for required, name in self._data_classes.items():
            base = name == self._data
            told = f"The data of `{self._definition.name}`" + (
                "." if base else f", with {named(sorted(required))}."
            )
            lines = [
                self._frozen(),
                f"class {name}:" if base else f"class {name}({self._data}):",
                *docstring([told], INDENT),
            ]
            asked = [n for n, _ in _ordered(properties) if base or n in required]
            lines += [""] if asked else []
            for field in asked:
                absent = properties.fields[field].optional and field not in required
                type_ = self._field_types[field] + (" | None" if absent else "")
                lines.append(f"{INDENT}{self._attributes[field]}: {type_}")
            parts.append(lines)
        return parts

    def _frozen(self) -> str:
        return f"@{self._use('dataclass')}(frozen=True, slots=True, kw_only=True)"

    # States

    def _state(self, state: str) -> list[str]:
        definition = self._definition
        class_, literal = self._classes[state], text_literal(state)
        data = self._data_classes[self._owed(state)]
        what = f"In `{state}`" + (", which is final." if state in definition.flat.final else ".")
        lines = [
            self._frozen(),
            f"class {class_}({self._use('TypedState')}):",
            *docstring([what], INDENT),
            "",
            f"{INDENT}data: {data}",
            f"{INDENT}state: {self._use('Literal')}[{literal}] = {literal}",
        ]
        methods = Names(RESERVED | self._names.taken | {*dir(TypedState), "data", "state"})
        for event, branches in self._events(state).items():
            name = methods.give(plain_name(event, "event"))
            lines += ["", *self._method(name, event, branches)]
        return lines

    def _events(self, state: str) -> dict[str, list[Branch]]:
        """Give the events that lead anywhere from a state, each with its branches."""
        found: dict[str, list[Branch]] = {}
        for branch in self._definition.flat.branches:
            if branch.from_state == state and branch.trigger.kind == "event":
                found.setdefault(branch.trigger.name, []).append(branch)
        return dict(sorted(found.items()))

    def _method(self, name: str, event: str, branches: Sequence[Branch]) -> list[str]:
        properties = self._definition.events.get(event, NOTHING)
        labels = sorted({label for branch in branches for label in branch.guards})
        how = self._use("Sending")
        taken = {"self", "how", "asserting", *Sending.__annotations__}
        parameters, payload = self._parameters(properties, taken, class_name(event, "Event"))
        if labels:
            self._use("Literal")
            listed = ", ".join(map(text_literal, labels))
            optional = "" if all(branch.guards for branch in branches) else " = ()"
            label = f"{self._use('Sequence')}[Literal[{listed}]]{optional}"
            parameters.append(f"asserting: {label}")
        star = ["*"] if parameters else []
        parts = ["self", *star, *parameters, f"**how: {self._use('Unpack')}[{how}]"]
        leads = dict.fromkeys(branch.to_state for branch in branches)
        told = f"Send `{event}`, which leads to {named(leads)}."
        after = ["how", "asserting"] if labels else ["how"]
        call = self._call("send", ["self", text_literal(event)], payload, after)
        return [
            *bracketed(f"def {name}(", parts, f") -> {self._union}:", INDENT),
            *docstring([told], INDENT * 2),
            *call,
        ]

    def _parameters(
        self, properties: Properties, taken: set[str], wanted: str
    ) -> tuple[list[str], list[str]]:
        """Write the parameters for fields, and the items of the payload made of them."""
        names = Names(taken | {MACHINE})
        parameters, items = [], []
        for name, property_ in _ordered(properties):
            parameter = names.give(field_name(name))
            type_ = self._type(property_, self._object(wanted, name), given=True)
            if property_.type.name == "decimal":
                type_ += " | int"
            absent = "" if property_.required else " | None = None"
            parameters.append(f"{parameter}: {type_}{absent}")
            items.append(f"{text_literal(name)}: {parameter}")
        return parameters, items

    @staticmethod
    def _call(
        verb: str, before: Sequence[str], items: Sequence[str], after: Sequence[str]
    ) -> list[str]:
        """Write the call of a verb of the machine, which is given a mapping."""
        head, whole = f"return {MACHINE}.{verb}(", f"{{{', '.join(items)}}}"
        lines = bracketed(head, [*before, whole, *after], ")", INDENT * 2)
        if len(lines) == 1:
            return lines
        place = len(before) + 1
        return lines[:place] + bracketed("{", items, "},", INDENT * 3) + lines[place + 1 :]

    # The machine

    def _front(self) -> list[str]:
        definition, machine = self._definition, self._machine
        engine, unpack = f"engine: {self._use('Engine')}", self._use("Unpack")
        compiled = f"definition: {self._use('Definition')}"
        taken = {"engine", "definition", "state", "how", *Adopting.__annotations__}
        fields, data = self._parameters(
            definition.data, taken | Starting.__annotations__.keys(), machine
        )
        star = ["*"] if fields else []
        start = [engine, compiled, *star, *fields, f"**how: {unpack}[{self._use('Starting')}]"]
        adopt = [engine, compiled, f"state: {self._state_name}", *star, *fields]
        adopt.append(f"**how: {unpack}[{self._use('Adopting')}]")
        find = [engine, "*", "subject_ref: str | None = None"]
        find += [f"state: {self._state_name} | None = None", "limit: int = 100"]
        find += ["after: str | None = None"]
        given = ["engine", "state=state", "subject_ref=subject_ref", "limit=limit", "after=after"]
        lines = [f"class {machine}:", *docstring([f"Instances of `{definition.name}`."], INDENT)]
        self._add(lines, "start", start, self._union, "Begin an instance.")
        lines += self._call("start", ["engine", "definition"], data, ["how"])
        self._add(lines, "adopt", adopt, self._union, "Begin an instance in mid-life.")
        lines += self._call("adopt", ["engine", "definition", "state"], data, ["how"])
        connection = f"connection: {self._use('Any')} = None"
        get = [engine, "id: str", connection]
        self._add(lines, "get", get, self._union, "Read an instance.")
        lines.append(f"{INDENT * 2}return {MACHINE}.get(engine, id, connection)")
        self._add(lines, "find", find, f"list[{self._union}]", "Read instances, by id.")
        lines += bracketed(f"return {MACHINE}.find(", given, ")", INDENT * 2)
        of = [f"handle: {self._use('Handle')} | {self._use('TypedState')}", connection]
        told = "Read the instance of a handle, or of a state that may be out of date."
        self._add(lines, "of", of, self._union, told)
        lines.append(
            f"{INDENT * 2}handle = handle.handle if isinstance(handle, TypedState) else handle"
        )
        lines.append(f"{INDENT * 2}return {MACHINE}.read(handle, connection)")
        return lines

    def _add(
        self, lines: list[str], name: str, parameters: list[str], gives: str, told: str
    ) -> None:
        head = bracketed(f"def {name}(", parameters, f") -> {gives}:", INDENT)
        lines += ["", f"{INDENT}@staticmethod", *head, *docstring([told], INDENT * 2)]

    def _table(self) -> list[str]:
        definition = self._definition
        states = [f"{text_literal(s)}: {class_}" for s, class_ in self._classes.items()]
        data = [
            f"{text_literal(s)}: {self._data_classes[self._owed(s)]}" for s in definition.states
        ]
        renamed = [
            f"{text_literal(name)}: {text_literal(attribute)}"
            for name, attribute in self._attributes.items()
            if name != attribute
        ]
        kind = f"{self._use('Final')}[{self._use('TypedMachine')}[{self._union}]]"
        lines = [
            f"{MACHINE}: {kind} = TypedMachine(",
            f"{INDENT}name={text_literal(definition.name)},",
            f"{INDENT}version={text_literal(definition.version)},",
            f"{INDENT}digest={text_literal(definition.digest)},",
            *_table_of("states", states),
            *_table_of("data", data),
        ]
        return [*lines, *(_table_of("renamed", renamed) if renamed else ()), ")"]


def _ordered(properties: Properties) -> list[tuple[str, Property]]:
    """Give fields in an order that is the same however they were written: required ones first."""
    return sorted(properties.fields.items(), key=lambda item: (not item[1].required, item[0]))


def _table_of(name: str, items: Sequence[str]) -> list[str]:
    return bracketed(f"{name}={{", items, "},", INDENT)


def _import_order(name: str) -> tuple[bool, str]:
    return (not name[0].isupper(), name)


def _import(module: str, names: Sequence[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 88:
        return [line]
    return [f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"]


def _spaced(parts: Sequence[str]) -> str:
    """Put two blank lines between the parts of a module."""
    return "\n\n\n".join(part for part in parts if part) + "\n"
