"""A Petri net as the markings that it can come to: which places hold a token together.

    walk(frozenset({"draft"}), [split, read, proofread, publish])
        -> {{draft}: [(split, {reading, proofing})], {reading, proofing}: [(read, …), …], …}

A transition takes a token from each place that it leads from and puts one into each that it leads
to. A net in which a place could come to hold two is refused: a marking here is a set.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from interlock.core.declaration import Path

MARKINGS_MAX = 1_000

Marking: TypeAlias = frozenset[str]


class Move(NamedTuple):
    """A transition of a net.

    Attributes:
        where: its place in the file.
    """

    name: str
    source: tuple[str, ...]
    to: tuple[str, ...]
    where: Path
    guard: str | None = None
    description: str | None = None


class Unsafe(Exception):
    """A place would hold two tokens."""

    def __init__(self, place: str, move: Move) -> None:
        super().__init__(f"`{move.name}` can put a second token into `{place}`")
        self.move = move


class Rivals(Exception):
    """Two transitions of one name can be taken in one marking."""

    def __init__(self, move: Move, marking: Marking) -> None:
        where = ", ".join(sorted(marking))
        super().__init__(f"two transitions `{move.name}` lead out of `{where}`")
        self.move = move


class TooManyMarkings(Exception):
    """The net comes to more markings than are written out."""


def walk(
    initial: Marking, moves: Sequence[Move], *, markings_max: int = MARKINGS_MAX
) -> dict[Marking, list[tuple[Move, Marking]]]:
    """List every marking that can be reached, with what leads on from it, the first one first.

    Raises:
        Unsafe, Rivals, TooManyMarkings: it cannot be said as states.
    """
    by_place: dict[str, list[Move]] = {}
    for move in moves:
        by_place.setdefault(move.source[0], []).append(move)
    found: dict[Marking, list[tuple[Move, Marking]]] = {}
    owed = [initial]
    while owed:
        marking = owed.pop(0)
        if marking in found:
            continue
        if len(found) == markings_max:
            raise TooManyMarkings
        found[marking] = steps = []
        names: set[str] = set()
        for move in (move for place in sorted(marking) for move in by_place.get(place, ())):
            if not marking.issuperset(move.source):
                continue
            if move.name in names:
                raise Rivals(move, marking)
            names.add(move.name)
            rest = marking.difference(move.source)
            for place in move.to:
                if place in rest or move.to.count(place) > 1:
                    raise Unsafe(place, move)
            steps.append((move, rest.union(move.to)))
        owed += [after for _, after in steps]
    return found
