"""Identifiers of Python for names that are any text, all of them distinct.

    names = Names({"Order"})
    names.give(class_name("testing.assay"))   -> "TestingAssay"
    names.give(class_name("order"))           -> "Order_"
    names.give(class_name("p{a|x}"))          -> "PAX"
    names.give(class_name("p.a.x"))           -> "PAX_2"

Equal texts in equal order get equal identifiers.
"""

import keyword
import unicodedata
from collections.abc import Iterable
from itertools import count


class Names:
    """Gives identifiers that are not taken yet.

    Args:
        reserved: what a name would hide that is needed itself.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._taken = set[str]()

    @property
    def taken(self) -> frozenset[str]:
        """What was given, or is not to be given."""
        return self._reserved | self._taken

    def give(self, wanted: str) -> str:
        """Give an identifier, with something behind it where it is not free."""
        found = wanted
        if keyword.iskeyword(wanted) or wanted in self._reserved:
            found = f"{wanted}_"
        for number in count(2):
            if found not in self._taken and found not in self._reserved:
                break
            found = f"{wanted}_{number}"
        self._taken.add(found)
        return found


def class_name(text: str, otherwise: str = "State") -> str:
    """Write a text as the name of a class.

    Args:
        otherwise: what it is called where a text holds no letters, or begins with a digit.
    """
    parts = _parts(text.replace("_", " "))
    return _identifier("".join(part[:1].upper() + part[1:] for part in parts), otherwise)


def plain_name(text: str, otherwise: str) -> str:
    """Write a text as the name of a method or a field; it keeps its capitals."""
    return _identifier("_".join(_parts(text)).strip("_"), otherwise)


def field_name(text: str) -> str:
    """Give the name of a field, which is an identifier; what Python would mangle is altered."""
    return plain_name(text, "field") if text.startswith("__") else text


def _parts(text: str) -> list[str]:
    """Part a text where a character cannot stand in an identifier."""
    normal = unicodedata.normalize("NFKC", text)  # as Python itself reads identifiers
    return "".join(c if f"a{c}".isidentifier() else " " for c in normal).split()


def _identifier(text: str, otherwise: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    if text.isidentifier():
        return text
    return f"{otherwise}{text}" if f"a{text}".isidentifier() and text else otherwise
