"""Dumps as files: JSON lines in ASCII, written and read in a stream, each line checked.

    {"interlock_dump": 2, "whole": true}
    {"declaration": {"digest": "7a69…", "text": "{\\"states\\":…}"}}
    {"payload": {"id": "01a2…", "salt": "9f86…", "content": "{\\"site\\":\\"Leuven\\"}"}}
    {"instance": {"id": "01a2…", …, "genesis_digest": "60f1…", "entries": 2, "head_digest": "03…"}}
    {"entry": {"sequence_number": 1, "transition_id": "01a2…", …, "entry_digest": "c0de…"}}
    {"payload": {"id": "01a2…", "destroyed": true}}
    {"entry": {"sequence_number": 2, …, "reason_id": "01a2…", "entry_digest": "03ae…"}}
    {"end": {"declarations": 1, "instances": 1, "entries": 2, "payloads": 2, …, "sha256": "0b5e…"}}

Of an instance that an engine began there is more, in these places:

    {"definition": {"digest": "5a0b…", "name": "order", "version": "1", "text": "{…}", …}}
    {"payload": {"id": "01a2…/0", "salt": "77aa…", "content": "{\"data\":{\"qty\":3}}"}}
    {"change": {"sequence_number": 0, "ordinal": 0, "kind": "whole", …, "change_digest": "be1f…"}}
    {"timer": {"state": "open", "name": "P3D", "sequence_number": 1, "due_at": 1767398400000000, …}}

Fields are those of the record (`core.record`), those that are absent left out; times are UTC
microseconds, digests and salts hexadecimal. Whoever reads needs nothing from further on:

- A declaration stands before the first instance that it governs, and again where `WINDOW` others
  were met since; so does a definition. Those that govern nothing stand at the end.
- A payload stands right before the line that names it.
- Instances stand in the order of their roots and ids. Each tells how many entries follow, and the
  digest of the last; so one that lost its tail is noticed where it ends.
- A change of data stands after the entry that it came with, the first ones after the instance. The
  digest of the last is that of the whole instance. Then come its timers, as they stood.
- The end counts the lines of each kind, and has the SHA-256 of all lines before it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO, TypeAlias, get_args, get_type_hints

from interlock.core.identity import place_of
from interlock.core.record import ChangeRow, Genesis, HistoryRow
from interlock.core.rejection import InvalidRequest
from interlock.core.text import clipped, quoted
from interlock.store.outfile import Kind
from interlock.store.plan import Row
from interlock.store.story import (
    Begun,
    Changed,
    Declaration,
    Declared,
    Definition,
    Piece,
    Recorded,
    Stored,
    Story,
    Timer,
    check_definition,
    compiled,
)

FORM = 2  # of the file; a form that a reader of this one cannot read has another number
LINE_MAX = 256 * 1024 * 1024  # characters, some ten times what the largest declaration takes
HEADER_MAX = 1024  # characters of the first line
DUMP = Kind("dump", "a dump", '"interlock_dump"', "target")

_NUMBER_MAX = 2**63 - 1


class Counts(NamedTuple):
    """How much a dump has of each kind."""

    declarations: int = 0
    instances: int = 0
    entries: int = 0
    payloads: int = 0
    definitions: int = 0
    changes: int = 0
    timers: int = 0


#: What the end of form 1 counts: there were no engines.
_FORM_1 = ("declarations", "instances", "entries", "payloads")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"`{name}` is no text")
    value.encode()
    return value


def _number(name: str, value: object) -> int:
    if type(value) is not int or not -_NUMBER_MAX <= value <= _NUMBER_MAX:
        raise ValueError(f"`{name}` is no number that a record may hold")
    return value


def _bytes(name: str, value: object) -> bytes:
    try:
        content = bytes.fromhex(_text(name, value))
    except ValueError:
        content = b""
    if content.hex() != value:
        raise ValueError(f"`{name}` is not hexadecimal")
    return content


_Row: TypeAlias = Genesis | HistoryRow | ChangeRow | Definition | Timer


class _Form:
    """The form of a kind of row: its fields, each text, a number or bytes, some optional."""

    def __init__(self, made: type["_Row"], *, beside: tuple[str, ...] = ()):
        readers = {str: _text, int: _number, bytes: _bytes}
        self._fields = made._fields
        self._beside = beside
        self._readers: dict[str, Callable[[str, object], object]] = {}
        self._required: list[str] = []
        for name, hint in get_type_hints(made).items():
            kinds = get_args(hint) or (hint,)
            self._readers[name] = readers[kinds[0]]
            if type(None) not in kinds:
                self._required.append(name)

    def write(self, row: Row) -> dict[str, Any]:
        """Write a row as JSON-like values, leaving out what is absent."""
        return {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in zip(self._fields, row, strict=True)
            if value is not None
        }

    def read(self, values: dict[str, Any]) -> Row:
        found: dict[str, object] = dict.fromkeys(self._fields)
        for name, value in values.items():
            if name in found:
                found[name] = self._readers[name](name, value)
            elif name not in self._beside:
                raise ValueError(f"the field {quoted(name)} is not known")
        for name in self._required:
            if found[name] is None:
                raise ValueError(f"the field `{name}` is missing")
        return tuple(found.values())


_GENESIS = _Form(Genesis, beside=("entries", "head_digest"))
_ENTRY = _Form(HistoryRow)
_CHANGE = _Form(ChangeRow)
_DEFINITION = _Form(Definition)
_TIMER = _Form(Timer)

_COUNTED = {
    "declaration": "declarations",
    "instance": "instances",
    "entry": "entries",
    "payload": "payloads",
    "definition": "definitions",
    "change": "changes",
    "timer": "timers",
}


class DumpWriter:
    """Writes a dump as it is read from a store; `end` makes it whole.

    Args:
        whole: it is of a whole store, not of some of its instances.
    """

    def __init__(self, stream: TextIO, *, whole: bool) -> None:
        self._stream = stream
        self._name = getattr(stream, "name", "the dump")
        self._hash = hashlib.sha256()
        self._counts = dict.fromkeys(Counts._fields, 0)
        self._line({"interlock_dump": FORM, "whole": whole})

    def write(self, piece: Piece) -> None:
        match piece:
            case Declaration(digest, text):
                self._told("declaration", {"digest": digest, "text": text})
            case Begun(genesis, entries, head_digest, _, metadata):
                self._payload(metadata)
                head = {"entries": entries, "head_digest": head_digest.hex()}
                self._told("instance", {**_GENESIS.write(genesis), **head})
            case Recorded(row, reason):
                self._payload(reason)
                self._told("entry", _ENTRY.write(row))
            case Definition():
                self._told("definition", _DEFINITION.write(piece))
            case Changed(row, payload):
                self._payload(payload)
                self._told("change", _CHANGE.write(row))
            case Timer():
                self._told("timer", _TIMER.write(piece))

    def end(self) -> Counts:
        counts = Counts(**self._counts)
        self._line({"end": {**counts._asdict(), "sha256": self._hash.hexdigest()}})
        with DUMP.writing(self._name):
            self._stream.flush()
        return counts

    def _payload(self, payload: Stored | None) -> None:
        match payload:
            case Stored(id, bytes(salt), bytes(content)):
                told = {"id": id, "salt": salt.hex(), "content": content.decode()}
                self._told("payload", told)
            case Stored(id):
                self._told("payload", {"id": id, "destroyed": True})
            case None:
                pass

    def _told(self, kind: str, values: dict[str, Any]) -> None:
        self._counts[_COUNTED[kind]] += 1
        self._line({kind: values})

    def _line(self, value: object) -> None:
        line = f"{json.dumps(value)}\n"
        self._hash.update(line.encode())
        with DUMP.writing(self._name):
            self._stream.write(line)


class DumpReader:
    """Reads a dump, and checks each line before it gives what that says.

    Iterate over it once. `counts` says how much was read.

    Raises:
        InvalidRequest: the file is no dump, is of a newer form, was cut short or altered; the
            sentence names the line.
    """

    def __init__(self, stream: TextIO, name: object) -> None:
        self._stream = stream
        self._name = name
        self._number = 0  # of the line read last
        self._hash = hashlib.sha256()
        self._declared = Declared()
        self._story: Story | None = None
        self._payload: Stored | None = None
        self._place = ("", "")
        self._counted = dict.fromkeys(Counts._fields, 0)
        self._form = FORM
        self._timed: tuple[str, str] | None = None  # the timer of the story that came last
        self._ended = False

    @property
    def counts(self) -> Counts:
        return Counts(**self._counted)

    def check_header(self) -> None:
        """Read the first line: is it a dump, of a form that is known?"""
        with self._refusing("is no dump"):
            match json.loads(self._line(HEADER_MAX)):
                case {"interlock_dump": int(form), **others} if form >= 1 and form is not True:
                    if form > FORM:
                        what = f"it is of form {form}, which is newer than this program knows"
                        raise ValueError(what)
                    self._form = form
                    if not isinstance(others.pop("whole", None), bool) or others:
                        raise ValueError("it does not begin as a dump does")
                case _:
                    raise ValueError("it does not begin as a dump does")

    def __iter__(self) -> Iterator[Piece]:
        self.check_header()
        while not self._ended:
            piece = self._next()
            if piece is not None:
                yield piece

    def _next(self) -> Piece | None:
        with self._refusing("cannot be restored"):
            seen = self._hash.hexdigest()
            line = self._line(LINE_MAX)
            try:
                told = json.loads(line)
            except ValueError:
                cut = not line.endswith("\n")
                raise ValueError("it is cut short here" if cut else "it is no JSON") from None
            match told:
                case {"end": dict(values), **others} if not others:
                    self._end(values, seen)
                    return None
                case dict() if len(told) == 1:
                    ((kind, values),) = told.items()
                    if kind in self._KINDS and isinstance(values, dict):
                        piece: Piece | None = self._KINDS[kind](self, values)
                        self._counted[_COUNTED[kind]] += 1
                        return piece
            raise ValueError("it is no line of a dump")

    def _read_declaration(self, values: dict[str, Any]) -> Declaration:
        self._check_between("a declaration")
        _check_fields(values, {"digest", "text"})
        digest, text = _text("digest", values["digest"]), _text("text", values["text"])
        try:
            machine = compiled(digest, text)
        except ValueError as error:
            raise ValueError(f"the declaration {quoted(digest)}: {error}") from None
        self._declared.add(machine)
        return Declaration(digest, text, machine)

    def _read_definition(self, values: dict[str, Any]) -> Definition:
        self._check_between("a definition")
        definition = Definition._make(_DEFINITION.read(values))
        check_definition(definition)
        self._declared.define(definition.digest)
        return definition

    def _read_payload(self, values: dict[str, Any]) -> None:
        if self._payload is not None:
            raise ValueError(f"nothing names the payload {quoted(self._payload.id)} before it")
        if "destroyed" in values:
            _check_fields(values, {"id", "destroyed"})
            if values["destroyed"] is not True:
                raise ValueError("`destroyed` is true or not there")
            salt = content = None
        else:
            _check_fields(values, {"id", "salt", "content"})
            salt = _bytes("salt", values["salt"])
            content = _text("content", values["content"]).encode()
        self._payload = Stored(_text("id", values["id"]), salt, content)

    def _read_instance(self, values: dict[str, Any]) -> Begun:
        self._check_told()
        genesis = Genesis._make(_GENESIS.read(values))
        named = f"the instance {quoted(genesis.id)}"
        place = place_of(genesis.id)
        if place <= self._place:
            raise ValueError(f"{named} does not stand in the order of instances")
        entries = _number("entries", values.get("entries"))
        if entries < 0:
            raise ValueError("`entries` is below nought")
        machine = self._declared.meet(genesis.declaration_digest)
        if machine is None:
            what = "has its declaration nowhere before it"
            raise ValueError(f"{named} {what}")
        defined = genesis.definition_digest
        if defined is not None and not self._declared.defines(defined):
            raise ValueError(f"{named} has its definition nowhere before it")
        metadata, self._payload = self._payload, None
        head = _bytes("head_digest", values.get("head_digest"))
        begun = Begun(genesis, entries, head, machine, metadata)
        try:
            self._story = Story(begun)
        except ValueError as error:
            raise ValueError(f"{named}: {error}") from None
        self._place, self._timed = place, None
        return begun

    def _read_entry(self, values: dict[str, Any]) -> Recorded:
        row, story = HistoryRow._make(_ENTRY.read(values)), self._story
        if story is None or story.is_told:
            raise ValueError("it is an entry of no instance")
        reason, self._payload = self._payload, None
        entry = Recorded(row, reason)
        try:
            story.follow(entry)
        except ValueError as error:
            raise ValueError(f"the instance {quoted(story.id)}: {error}") from None
        return entry

    def _read_change(self, values: dict[str, Any]) -> Changed:
        row, story = ChangeRow._make(_CHANGE.read(values)), self._story
        if story is None or story.is_told:
            raise ValueError("it is a change of no instance")
        payload, self._payload = self._payload, None
        change = Changed(row, payload)
        try:
            story.follow_change(change)
        except ValueError as error:
            raise ValueError(f"the instance {quoted(story.id)}: {error}") from None
        return change

    def _read_timer(self, values: dict[str, Any]) -> Timer:
        self._check_between("a timer")
        timer, story = Timer._make(_TIMER.read(values)), self._story
        if story is None:
            raise ValueError("it is a timer of no instance")
        story.check_timer(timer)
        place = (timer.state, timer.name)
        if self._timed is not None and place <= self._timed:
            raise ValueError("it does not stand in the order of timers")
        self._timed = place
        return timer

    _KINDS: dict[str, Callable[["DumpReader", dict[str, Any]], Any]] = {  # noqa: RUF012
        "declaration": _read_declaration,
        "payload": _read_payload,
        "instance": _read_instance,
        "entry": _read_entry,
        "definition": _read_definition,
        "change": _read_change,
        "timer": _read_timer,
    }

    def _end(self, values: dict[str, Any], seen: str) -> None:
        self._check_between("the end")
        counted = _FORM_1 if self._form == 1 else Counts._fields
        _check_fields(values, {*counted, "sha256"})
        for name, count in self._counted.items():
            told = values.get(name, 0)
            if type(told) is not int or told != count:
                raise ValueError(f"it should have {clipped(told)} {name}, and has {count}")
        if values["sha256"] != seen:
            raise ValueError("some line before was altered: the digest of them all differs")
        if self._stream.readline(1):
            self._number += 1
            raise ValueError("the dump goes on after its end")
        self._ended = True

    def _check_between(self, what: str) -> None:
        self._check_told()
        if self._payload is not None:
            raise ValueError(f"{what} does not name the payload {quoted(self._payload.id)}")

    def _check_told(self) -> None:
        if self._story is not None:
            try:
                self._story.check_told()
            except ValueError as error:
                raise ValueError(f"the instance {quoted(self._story.id)}: {error}") from None

    def _line(self, most: int) -> str:
        self._number += 1
        line: object = self._stream.readline(most)
        if not isinstance(line, str):
            raise ValueError("it was opened for bytes, not for text")
        if not line:
            raise ValueError("it is empty" if self._number == 1 else "it is cut short here")
        if len(line) >= most:
            raise ValueError("the line is too long for a dump")
        self._hash.update(line.encode())
        return line

    def _refusing(self, what: str) -> "_Refusing":
        return _Refusing(self, what)

    def refusal(self, what: str, why: object) -> InvalidRequest:
        line = f" line {self._number}" if self._number else ""
        told = f"`{clipped(self._name, 1000)}` {what}:{line}: {why}"
        return InvalidRequest(told, argument="source", line=self._number)


class _Refusing:
    """Names the line of whatever is found wrong with it.

    A class and no generator: it is entered for every line.
    """

    __slots__ = ("_reader", "_what")

    def __init__(self, reader: DumpReader, what: str) -> None:
        self._reader = reader
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, OSError):
            why: object = error.strerror or error
            raise self._reader.refusal("cannot be read", why) from error
        if isinstance(error, UnicodeError):
            raise self._reader.refusal(self._what, "it is no text in UTF-8") from error
        if isinstance(error, ValueError | TypeError | RecursionError):
            raise self._reader.refusal(self._what, error) from error


def _check_fields(values: dict[str, Any], wanted: set[str]) -> None:
    if values.keys() != wanted:
        odd = sorted(values.keys() ^ wanted)[0]
        fault = "is missing" if odd in wanted else "is not known"
        raise ValueError(f"the field {quoted(odd)} {fault}")
