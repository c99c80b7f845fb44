"""Names of ours for foreign ones: legal, distinct, and found from wherever they are used.

What is like another name is given a number: `a.b` and `a/b` become `a_b` and `a_b_2`.
"""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from interlock.language.expressions.properties import NAME_MAX, name_fault
from interlock.language.names import looks

UNFIT = re.compile(r"[./{|}\x00-\x1f]")  # what no name of a state or an event may hold

T = TypeVar("T", bound=Hashable)


class Names:
    """Gives each foreign name one of ours: legal, and not like another."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(map(looks, taken))
        self._counts: dict[str, int] = {}

    def give(self, wanted: str, empty: str) -> str:
        """Give a name; `empty` is taken where nothing is left of what is wanted."""
        base = unicodedata.normalize("NFC", UNFIT.sub("_", wanted)).strip() or empty
        name = base
        while looks(name) in self._taken:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}_{self._counts[base]}"
        self._taken.add(looks(name))
        return name


def local_names(
    top: Iterable[T],
    inner: Callable[[T], Iterable[T]],
    wanted: Callable[[T], str],
    *,
    apart: bool,
) -> dict[T, str]:
    """Give each state a name that no sibling has.

    Args:
        apart: nor one that a state at the top has, so that a path from there is always found.
    """
    outer = Names({"superseded"})
    found = {state: outer.give(wanted(state), "state") for state in top}
    above = frozenset(found.values() if apart else ())
    owed = [*found]
    while owed:
        names = Names(above)
        children = list(inner(owed.pop()))
        found |= {child: names.give(wanted(child), "state") for child in children}
        owed += children
    return found


def identifier(text: str) -> str:
    """Turn a text into a name that an expression may use."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:NAME_MAX]
    return name if name_fault(name) is None else f"x_{name[: NAME_MAX - 2]}"
