r"""Names: what they are made of, which are reserved, how long they are, which look alike.

A name of a state or an event, of a branch or a timer becomes part of a flat state or an action, in
which `.`, `/`, `{`, `|` and `}` stand between names. So one check holds for all of them.

    name_fault("QP-sign-off")           -> None
    name_fault("a.b")                   -> NameFault("has a `.`", …)
    spelled("pay\N{ZERO WIDTH SPACE}")  -> "pay\u200b"

Names are compared byte for byte, always. Two that a reader cannot tell apart are refused, here in
the language alone: the core keeps whatever it is given.
"""

import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

from interlock.core.text import LIMITS, clipped, nearest, text_fault
from interlock.language.expressions import properties

#: What the flat machine calls its own actions; no event is called so.
RESERVED = ("always", "after", "done", "history", "superseded")
#: The state, and the action, by which a successor takes over; no state at the top is called so.
SUPERSEDED = "superseded"

_SEPARATOR = re.compile(r"[./{|}]")
#: What takes no room of its own though it is no format character: joiners, fillers, selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_BLANKS = re.compile(r"\s+")


class NameFault(NamedTuple):
    """What keeps a text from being a name, and what to do about it."""

    what: str
    hint: str | None = None


def name_fault(name: str) -> NameFault | None:
    """Say what keeps a text from being the name of a state, a branch or a timer."""
    if not name.strip():
        return NameFault("is blank")
    if name != name.strip():
        return NameFault("begins or ends with a blank", "leave the blank out")
    if found := _SEPARATOR.search(name):
        return NameFault(f"has a `{found[0]}`", "leave out . / { | }, which stand between names")
    return label_fault(name)


def state_fault(name: str, *, at_top: bool) -> NameFault | None:
    """Say what keeps a text from being the name of a state."""
    if at_top and name == SUPERSEDED:
        return NameFault("is a reserved state", "a successor takes over from there")
    return name_fault(name)


def event_fault(name: str) -> NameFault | None:
    """Say what keeps a text from being the name of an event."""
    if name in RESERVED:
        return NameFault("is a reserved action", f"reserved are {', '.join(RESERVED)}")
    return name_fault(name)


def field_fault(name: str) -> NameFault | None:
    """Say what keeps a text from being the name of a field."""
    why = properties.name_fault(name)
    return NameFault(why) if why else None


def label_fault(label: str) -> NameFault | None:
    """Say what keeps a text from standing in a declaration: the store has to hold it."""
    why = text_fault(label, LIMITS.name_bytes)
    return NameFault(why) if why else None


def looks(name: str) -> str:
    """Give what a reader sees of a name: two that look alike give the same.

    Composed and decomposed characters are the same, all blanks are one space, and what takes no
    room is gone. Letters of other alphabets that resemble each other stay apart.
    """
    composed = unicodedata.normalize("NFC", name)
    seen = "".join(char for char in composed if unicodedata.category(char) != "Cf")
    seen = _BLANKS.sub(" ", _UNSEEN.sub("", seen)).strip()
    return unicodedata.normalize("NFC", seen)


def spelled(name: str) -> str:
    """Write a name so that it differs from all that look like it: what misleads is escaped."""
    inner = name.strip(" ")
    before, _, after = name.partition(inner) if inner else (name, "", "")
    plain = "".join(char if char == " " or _is_plain(char) else _escaped(char) for char in inner)
    return clipped(_escaped(" ") * len(before) + plain + _escaped(" ") * len(after))


def alike_hint(name: str, known: str) -> str | None:
    """Say how a name that is known is written, if `name` only looks like it."""
    if name == known or looks(name) != looks(known):
        return None
    return f"they look alike, but it is `{spelled(known)}`, and this is `{spelled(name)}`"


def nearest_hint(name: str, known: Collection[str]) -> str | None:
    """Say which of the known names was probably meant."""
    alike = next((one for one in known if alike_hint(name, one)), None)
    if alike is not None:
        return alike_hint(name, alike)
    close = nearest(name, known)
    return f"did you mean `{close}`?" if close else None


def _is_plain(char: str) -> bool:
    """Whether a character shows, alone, and in one way only."""
    if not char.isprintable() or unicodedata.category(char)[0] == "M" or _UNSEEN.match(char):
        return False
    return char.isascii() or unicodedata.normalize("NFD", char) == char


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"
