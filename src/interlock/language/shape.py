"""A document beside its schema: what does not fit, in words, and what is left without that.

A validator says whether a document fits; this says why not, as an author would put it: of the
alternatives at a place, the one that was meant is compared, and a key that has no meaning there is
told from one that is misspelt. It knows as much of JSON Schema as ours use, but for the patterns of
names, of which `names` says more.

    shape = fit(document, schema, MACHINE)
    shape.found     diagnostics, none if it fits
    shape.sound     the document without what was refused: whatever it holds is of its type; only
                    keys that have to be there may be missing

So what is sound can be read further, and its faults are told in the same run.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from interlock.core.declaration import Path, path_text
from interlock.core.text import clipped, nearest, quoted
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import Document

Schema: TypeAlias = Mapping[str, Any]


class Vocabulary(NamedTuple):
    """The words of one kind of document, for those who know other tools.

    Attributes:
        neighbours: what authors write who are used to other tools, and the word that is meant here.
        misplaced: keys that stand in the wrong place, and what they are for.
        places: titles of the parts of the schema whose keys a hint can send an author to, and what
            they are called then.
        word: what the alternatives are called that most of a document is made of.
        alternatives: their titles; to the first two `misplaced` applies.
    """

    neighbours: Mapping[str, str]
    misplaced: Mapping[str, str]
    places: Mapping[str, str]
    word: str
    alternatives: tuple[str, ...]


MACHINE = Vocabulary(
    neighbours={
        "target": "to",
        "dest": "to",
        "cond": "when",
        "condition": "when",
        "if": "when",
        "guards": "guard",
        "entry": "on_enter",
        "onentry": "on_enter",
        "enter": "on_enter",
        "exit": "on_exit",
        "onexit": "on_exit",
        "leave": "on_exit",
        "actions": "do",
        "action": "do",
        "assign": "set",
        "onDone": "on_done",
        "else": "otherwise",
        "default": "otherwise",
        "transitions": "on",
        "events": "on",
        "context": "data",
        "id": "machine",
        "name": "machine",
        "terminal": "final",
        "delay": "after",
        "timeout": "after",
    },
    misplaced={
        "history": "add `type: history`",
        "order": "only the regions of a parallel state, and `branches`, have an order",
        "to": "transitions stand under `on`, `always` or `after`",
        "on_done": "only a state with states inside is ever done",
    },
    places={
        "a machine": "the machine itself",
        "a state without states inside": "a state",
        "a state with states inside": "a state with states inside",
        "a parallel state": "a parallel state",
        "a final state": "a final state",
        "a history state": "a history state",
        "a branch": "a branch",
        "a choice in order": "a choice in order",
        "a timer for a moment": "a timer",
    },
    word="state",
    alternatives=(
        "a state without states inside",
        "a state with states inside",
        "a parallel state",
        "a final state",
        "a history state",
    ),
)
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    # As JSON Schema has it, 1.0 is a whole number.
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}
# How much speaks for an alternative: a word that it has to have, such as `type: parallel`; a key
# that it has to have, or that is near to such a key; one that it knows; one that it lacks.
_SAID, _OWN, _NEAR, _KNOWN, _MISSING = 100.0, 3.0, 2.0, 1.0, -1.0


class Shape(NamedTuple):
    """What a document has that does not fit, and what it is without that.

    Attributes:
        lost: keys whose values were refused as a whole, or that were refused themselves.
    """

    found: list[Diagnostic]
    sound: Any
    lost: Collection[str]


class _Nothing:
    """What is left of a value that was refused as a whole."""


_NOT_BLANK = r"\S"  # the pattern of texts that are no names
_FEW = 6  # keys that a hint can name
NOTHING: Final = _Nothing()


def fit(document: Document, schema: Schema, vocabulary: Vocabulary) -> Shape:
    """Compare a document with a schema."""
    fitting = _Fitting(document, schema, vocabulary)
    sound = fitting.fit(schema, document.value, ())
    return Shape(fitting.found, None if sound is NOTHING else sound, fitting.lost)


def as_written(document: Document, path: Path) -> str:
    """Give a number as its author wrote it: 1.10 is read as 1.1."""
    found = document.diagnostic("wrong-type", "", path)
    rest = (found.source_line or "")[(found.column or 1) - 1 :]
    return re.split(r"[\s,}\]]", rest, maxsplit=1)[0]


class _Fitting:
    def __init__(self, document: Document, schema: Schema, vocabulary: Vocabulary) -> None:
        self.found: list[Diagnostic] = []
        self.lost: set[str] = set()
        self._document = document
        self._schema = schema
        self._vocabulary = vocabulary

    def fit(self, schema: Schema, value: Any, path: Path) -> Any:
        """Report what does not fit, and give the rest; `NOTHING`, where nothing is left."""
        schema = self._resolved(schema)
        kinds = [kind for kind in self._kinds(schema) if _has_type(kind, value)]
        if not kinds:
            self._wrong_type(schema, value, path)
            return self._least(schema)
        if "const" in schema or "enum" in schema:
            return self._word(schema, value, path)
        if isinstance(value, dict):
            settled = self._settled(kinds, value, path)
            found = self._mapping(kinds, settled, path, {*value} - {*settled})
        elif isinstance(value, list):
            found = self._list(kinds[0], value, path)
        else:
            found = self._scalar(kinds[0], schema, value, path)
        return self._least(schema) if found is NOTHING else found

    def _resolved(self, schema: Schema) -> Schema:
        """Follow a reference; what stands beside it wins."""
        if "$ref" not in schema:
            return schema
        meant = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
        beside = {key: of for key, of in schema.items() if key != "$ref"}
        return {**self._resolved(meant), **beside}

    def _kinds(self, schema: Schema) -> list[Schema]:
        """List the alternatives of a schema, those within alternatives too."""
        if "anyOf" not in schema:
            return [schema]
        return [kind for part in schema["anyOf"] for kind in self._kinds(self._resolved(part))]

    def _settled(self, kinds: list[Schema], value: dict[str, Any], path: Path) -> dict[str, Any]:
        """Settle the words that tell alternatives apart, such as `type: parallel`.

        One that is misspelt is reported, and then read as what was meant; any other is left out.
        """
        words: dict[str, list[Any]] = {}
        for kind in kinds:
            for key in kind.get("required", ()):
                part = self._resolved(kind["properties"][key])
                if "const" in part:
                    words.setdefault(key, []).append(part["const"])
        read = dict(value)
        for key, allowed in words.items():
            if key in value and not any(_same(value[key], word) for word in allowed):
                self._wrong_word(allowed, value[key], (*path, key))
                meant = _nearest_word(value[key], allowed)
                read = {k: v for k, v in read.items() if k != key}
                if meant is not None:
                    read[key] = meant
        return read

    def _mapping(
        self, kinds: list[Schema], value: dict[str, Any], path: Path, refused: Collection[str]
    ) -> Any:
        kind = _meant(kinds, value)
        if not value and kind.get("minProperties") and not refused:
            self._wrong_type(kind, value, path)
            return NOTHING
        known, more = kind.get("properties", {}), kind.get("additionalProperties", True)
        missing = [k for k in kind.get("required", ()) if k not in value and k not in refused]
        kept = {}
        for key, of in value.items():
            where = (*path, key)
            if key not in known and more is False:
                meant = self._unknown_key(kind, kinds, key, where)
                missing = [name for name in missing if name != meant]
                self.lost.add(meant or key)
                continue
            part = known.get(key, more)
            found = self.fit(part, of, where) if isinstance(part, Mapping) else of
            if found is NOTHING:
                self.lost.add(key)
            else:
                kept[key] = found
        for key in missing:
            self._missing_key(key, value, path)
        both = [key for key in value if key in known]
        if len(both) > kind.get("maxProperties", len(both)):
            self._several(kind, both, path)
            return NOTHING
        says_nothing = not kept and (value or missing)
        return NOTHING if says_nothing and path else kept

    def _list(self, kind: Schema, value: list[Any], path: Path) -> Any:
        if len(value) < kind.get("minItems", 0):
            self._wrong_type(kind, value, path)
            return NOTHING
        if "items" not in kind:  # anything
            return value
        found = [self.fit(kind["items"], one, (*path, n)) for n, one in enumerate(value)]
        if any(one is NOTHING for one in found):
            return NOTHING
        for place, one in enumerate(found if kind.get("uniqueItems") else ()):
            if one in found[:place]:
                what = f"{quoted(one)} stands here twice"
                self._report("wrong-type", what, (*path, place), None)
                return NOTHING
        return found

    def _scalar(self, kind: Schema, schema: Schema, value: Any, path: Path) -> Any:
        if isinstance(value, str) and kind.get("pattern") == _NOT_BLANK and not value.strip():
            self._wrong_type(schema, value, path)
            return NOTHING
        least, most = kind.get("minimum"), kind.get("maximum")
        if least is not None and most is not None and not least <= value <= most:
            what = f"`{path[-1]}` is from {least} to {most}, and not {value:g}"
            self._report("wrong-type", what, path, None)
            return NOTHING
        return value

    def _word(self, schema: Schema, value: Any, path: Path) -> Any:
        allowed = schema.get("enum", [schema.get("const")])
        if any(_same(value, word) for word in allowed):
            return value
        self._wrong_word(allowed, value, path)
        return NOTHING

    def _least(self, schema: Schema) -> Any:
        """Give what may stand where something was refused, and says nothing.

        So a state keeps its name though all that was said of it was refused.
        """
        kinds = self._kinds(schema)
        if any(kind.get("type") == "null" for kind in kinds):
            return None
        for kind in kinds:
            if kind.get("type") == "object" and not {"required", "minProperties"} & kind.keys():
                return {}
        return NOTHING

    def _unknown_key(self, kind: Schema, kinds: list[Schema], key: str, path: Path) -> str | None:
        """Report a key that has no meaning in a mapping; give the one that was meant."""
        known = [*_keys(kind)]
        any_known = [*known, *(key for one in kinds for key in _keys(one))]
        title, elsewhere = kind.get("title", ""), self._elsewhere(key)
        places = self._vocabulary.places
        meant = self._vocabulary.neighbours.get(key)
        if meant not in any_known:
            meant = None
            if elsewhere and title in places:
                what = f"`{key}` has no meaning in {title}"
                why = self._place_hint(kind, key, elsewhere)
                self._report("unknown-key", what, path, why, is_key=True)
                return None
            meant = _near(key, known) or _near(key, any_known)
        if meant is not None:
            hint: str | None = f"did you mean `{meant}`?"
        elif elsewhere:
            hint = f"it belongs to {_either(elsewhere)}"
        else:
            hint = f"known here: {', '.join(known)}" if len(known) <= _FEW else None
        self._report("unknown-key", f"unknown key {quoted(key)}", path, hint, is_key=True)
        return meant

    def _elsewhere(self, key: str) -> list[str]:
        """List the parts of the schema in which a key has a meaning, as a hint calls them."""
        parts = [self._schema, *self._schema["$defs"].values()]
        places = self._vocabulary.places
        return [
            places[part["title"]]
            for part in parts
            if part.get("title") in places and key in part["properties"]
        ]

    def _place_hint(self, kind: Schema, key: str, elsewhere: list[str]) -> str:
        """Say why a key has no meaning in a part of the schema that has a title."""
        _, misplaced, _, word, alternatives = self._vocabulary
        if kind["title"] in alternatives:
            if kind["title"] in alternatives[:2] and key in misplaced:
                return misplaced[key]
            if any(word in place for place in elsewhere):
                return _sentence(kind["description"])
        elif f"a {word}" in elsewhere:
            return f"it belongs to a {word}"
        return f"it belongs to {_either(elsewhere)}"

    def _missing_key(self, key: str, value: Mapping[str, Any], path: Path) -> None:
        hint = None
        if key == "initial":
            states = value.get("states")
            if isinstance(states, dict) and states:
                hint = f"add `initial: {next(iter(states))}`"
            if path:
                what = f"`{path_text(path)}` has states and does not say in which it begins"
            else:
                what = "the machine does not say in which state it begins: it has no `initial`"
            self._report("initial-missing", what, path, hint, is_key=True)
            return
        what = f"`{path_text(path)}` has no `{key}`" if path else f"the document has no `{key}`"
        self._report("missing-key", what, path, hint, is_key=True)

    def _several(self, kind: Schema, keys: list[str], path: Path) -> None:
        told = " and ".join(f"`{key}`" for key in keys)
        what = f"{told} stand side by side, where one has to be"
        hint = _sentence(kind["description"])
        self._report("wrong-type", what, (*path, keys[1]), hint, is_key=True)

    def _wrong_word(self, allowed: list[Any], value: Any, path: Path) -> None:
        meant = _nearest_word(value, allowed)
        if meant is not None:
            hint = f"did you mean `{meant}`?"
        else:
            hint = f"write {_either([f'`{_written(word)}`' for word in allowed])}"
        self._report("wrong-type", f"`{path_text(path)}` cannot be {_told(value)}", path, hint)

    def _wrong_type(self, schema: Schema, value: Any, path: Path) -> None:
        name = f"`{path_text(path)}`" if path else "the document"
        described = schema.get("description")
        hint = _sentence(described) if described else None
        if isinstance(value, float) and any(
            kind.get("type") == "string" for kind in self._kinds(schema)
        ):
            hint = f'write it as text, `"{as_written(self._document, path)}"`'
        self._report("wrong-type", f"{name} cannot be {_told(value)}", path, hint)

    def _report(
        self, code: str, message: str, path: Path, hint: str | None, *, is_key: bool = False
    ) -> None:
        self.found.append(self._document.diagnostic(code, message, path, hint=hint, key=is_key))


def _keys(kind: Schema) -> Iterable[str]:
    keys: Mapping[str, Any] = kind.get("properties", {})
    return keys


@lru_cache(maxsize=4096)
def _close(word: str, known: tuple[str, ...]) -> str | None:
    return nearest(word, known)


def _near(word: object, known: Iterable[str]) -> str | None:
    """Find what was meant; the same few words are asked for again and again."""
    return _close(word, tuple(known)) if isinstance(word, str) and len(word) <= 100 else None


def _has_type(kind: Schema, value: Any) -> bool:
    return "type" not in kind or _TYPES[kind["type"]](value)


def _same(value: Any, word: Any) -> bool:
    return type(value) is type(word) and bool(value == word)


def _nearest_word(value: Any, allowed: list[Any]) -> Any:
    return nearest(value, [word for word in allowed if isinstance(word, str)])


def _meant(kinds: list[Schema], value: Mapping[str, Any]) -> Schema:
    """Find the alternative that a mapping was meant to be, by its keys."""
    candidates = [kind for kind in kinds if _is_hinted_at(kind, value)] or kinds
    return max(candidates, key=lambda kind: _score(kind, value))  # of equals, the first


def _is_hinted_at(kind: Schema, value: Mapping[str, Any]) -> bool:
    """Whether some key that an alternative has to have is there, or is misspelt."""
    required = kind.get("required", ())
    return not required or any(
        key in value or any(_near(name, [key]) for name in value) for key in required
    )


def _score(kind: Schema, value: Mapping[str, Any]) -> float:
    known, required = kind.get("properties", {}), kind.get("required", ())
    score = 0.0
    owed = [key for key in required if key not in value]
    for key, of in value.items():
        if key in required:
            word = known[key].get("const")
            said = word is not None and _same(of, word)
            score += _SAID if said else _OWN
        elif key in known:
            score += _KNOWN
        elif close := _near(key, owed):
            owed.remove(close)
            score += _NEAR
    return score + _MISSING * len(owed)


def _told(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return f"`{_written(value)}`"
        case int() | float():
            return f"the number {clipped(value)}"
        case str():
            return f"the text {quoted(value)}" if value.strip() else "a blank text"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "a mapping" if value else "an empty mapping"


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _either(words: list[str]) -> str:
    words = [*dict.fromkeys(words)]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _sentence(description: str) -> str:
    return description[:1].lower() + description[1:].rstrip(".")
