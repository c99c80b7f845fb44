"""One level of a drawing: what stands in a box, in rows, with the wires between.

Boxes stand in every second row, and the names of wires in the rows between. A wire that passes a
row has a place of its own in it, so it meets no box and no name: within a row it runs straight
down, and between two rows, where nothing else is, it bends.

         0    ports, where wires come in from above
         1    names of wires
         2    boxes
         3    names of wires
         …
    last      ports, where wires go out below
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from interlock.language.drawing.columns import Chain, columns, spread
from interlock.language.drawing.rows import Link, arrange

Role: TypeAlias = Literal["box", "top", "bottom"]

GAP = 17.0  # between rows
GAP_MAX = 34.0  # more of it, where wires go far to a side
BESIDE = 26.0  # between boxes
APART = 14.0  # between wires
NAMES_MAX = 460.0  # of a row; names that would make it wider stand in another, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """What wires lead between.

    Attributes:
        side: how much of the width, on the right, belongs to what is beside the box.
        tall: how high the box itself is, in the middle.
        rank: of a box; it stands in row 2 * rank + 2.
    """

    width: float = 0.0
    height: float = 0.0
    side: float = 0.0
    tall: float = 0.0
    role: Role = "box"
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A way from a spot to one in a row below.

    Attributes:
        down: whether it is taken downwards; its name stands near where it begins.
        name: width and height of its name.
        out, into: where it meets the spots, from their middle; anywhere, if nothing is said.
    """

    upper: int
    lower: int
    down: bool = True
    name: tuple[float, float] | None = None
    out: float | None = None
    into: float | None = None


class Run(NamedTuple):
    """A straight part of a wire, downwards; a name may stand on it and interrupt it."""

    x: float
    top: float
    bottom: float
    named: bool = False

    def moved(self, x: float, y: float) -> "Run":
        return Run(self.x + x, self.top + y, self.bottom + y, self.named)


@dataclass(frozen=True, slots=True)
class Level:
    """Where everything stands, from the left upper corner.

    Attributes:
        middles: of the spots.
        runs: of each wire, from above.
    """

    width: float
    height: float
    middles: list[tuple[float, float]]
    runs: list[list[Run]]


def lay_out(spots: Sequence[Spot], wires: Sequence[Wire]) -> Level:
    """Lay out a level."""
    return _Laying(spots, wires).level()


class _Laying:
    """Items are the spots, and then a bend for each row that a wire passes."""

    def __init__(self, spots: Sequence[Spot], wires: Sequence[Wire]) -> None:
        self._spots = spots
        self._wires = wires
        self._widths = [spot.width for spot in spots]
        self._heights = [spot.height for spot in spots]
        self._gaps = [BESIDE if spot.role == "box" else APART for spot in spots]
        deepest = max((spot.rank for spot in spots if spot.role == "box"), default=-1)
        self._rows: list[list[int]] = [[] for _ in range(2 * deepest + 5)]
        self._row_of = [self._row(spot) for spot in spots]
        for item, row in enumerate(self._row_of):
            self._rows[row].append(item)
        self._named: dict[int, int] = {}  # by wire, the bend at which its name stands
        self._bends = self._bend_all()

    def _row(self, spot: Spot) -> int:
        if spot.role == "box":
            return 2 * spot.rank + 2
        return 0 if spot.role == "top" else len(self._rows) - 1

    def _bend_all(self) -> list[list[int]]:
        full = [0.0] * len(self._rows)
        bends = []
        for place, wire in enumerate(self._wires):
            passed = range(self._row_of[wire.upper] + 1, self._row_of[wire.lower])
            named = self._row_for(wire, passed, full)
            chain = []
            for row in passed:
                item = len(self._widths)
                here = wire.name if row == named else None
                width, height = here or (0.0, 0.0)
                if here:
                    self._named[place] = item
                    full[row] += width + APART
                self._widths.append(width)
                self._heights.append(height)
                self._gaps.append(APART)
                self._rows[row].append(item)
                chain.append(item)
            bends.append(chain)
        return bends

    def _row_for(self, wire: Wire, passed: range, full: Sequence[float]) -> int | None:
        """Choose the row for a name: near its beginning, unless there are many names already."""
        if wire.name is None:
            return None
        rows = [row for row in passed if row % 2]
        if not wire.down:
            rows.reverse()
        width = wire.name[0]
        free = [row for row in rows if not full[row] or full[row] + width <= NAMES_MAX]
        return free[0] if free else min(rows, key=full.__getitem__)

    def level(self) -> Level:
        links = [*self._links()]
        rows = arrange(self._rows, links)
        at = columns(rows, self._widths, self._gaps, links, self._chains())
        ends = self._ends(at)
        left = min((at[item] - self._widths[item] / 2 for item in range(len(at))), default=0.0)
        right = max((at[item] + self._widths[item] / 2 for item in range(len(at))), default=0.0)
        at = [x - left for x in at]
        ends = [(out - left, into - left) for out, into in ends]
        tops, heights = self._rows_down(rows, at, ends)
        runs = [self._runs(place, at, ends[place], tops, heights) for place in range(len(ends))]
        middles = [
            (at[item], tops[row] + heights[row] / 2) for item, row in enumerate(self._row_of)
        ]
        return Level(right - left, tops[-1] + heights[-1], middles, runs)

    def _links(self) -> list[Link]:
        links = []
        for wire, bends in zip(self._wires, self._bends, strict=True):
            items = [wire.upper, *bends, wire.lower]
            out = self._share(wire.upper, wire.out)
            into = self._share(wire.lower, wire.into)
            last = len(items) - 2
            for place, (upper, lower) in enumerate(pairwise(items)):
                links.append(
                    Link(
                        upper,
                        lower,
                        out if place == 0 else 0.0,
                        into if place == last else 0.0,
                        1.0 if place in (0, last) else 4.0,
                        (place == 0 and wire.out is None, place == last and wire.into is None),
                    )
                )
        return links

    def _chains(self) -> list[Chain]:
        return [
            Chain(bends, self._reach(wire.upper, wire.out), self._reach(wire.lower, wire.into))
            for wire, bends in zip(self._wires, self._bends, strict=True)
        ]

    def _reach(self, item: int, offset: float | None) -> tuple[int, float, float]:
        """Say how far from the middle of a spot a wire may meet it."""
        if offset is not None:
            return item, offset, offset
        spot = self._spots[item]
        inset = min(APART, (spot.width - spot.side) / 2)
        return item, inset - spot.width / 2, spot.width / 2 - spot.side - inset

    def _share(self, item: int, offset: float | None) -> float:
        """Where a wire meets a spot, as a share of the width; without a place, the box's middle."""
        spot = self._spots[item]
        if not spot.width:
            return 0.0
        return (-spot.side / 2 if offset is None else offset) / spot.width

    def _ends(self, at: Sequence[float]) -> list[tuple[float, float]]:
        """Say where each wire meets its spots: those without a place are spread over the side."""
        ends = [[0.0, 0.0] for _ in self._wires]
        free: dict[tuple[int, int], list[tuple[float, int]]] = {}
        for place, (wire, bends) in enumerate(zip(self._wires, self._bends, strict=True)):
            sides = ((wire.upper, wire.out, bends[0]), (wire.lower, wire.into, bends[-1]))
            for end, (item, offset, beside) in enumerate(sides):
                if offset is not None:
                    ends[place][end] = at[item] + offset
                else:
                    free.setdefault((item, end), []).append((at[beside], place))
        for (item, end), wires in free.items():
            wires.sort()
            _, low, high = self._reach(item, None)
            places = spread([x for x, _ in wires], APART, at[item] + low, at[item] + high)
            for x, (_, place) in zip(places, wires, strict=True):
                ends[place][end] = x
        return [(out, into) for out, into in ends]

    def _rows_down(
        self,
        rows: Sequence[Sequence[int]],
        at: Sequence[float],
        ends: Sequence[tuple[float, float]],
    ) -> tuple[list[float], list[float]]:
        """Give the top and the height of each row."""
        aside = [0.0] * len(rows)  # how far wires go to a side above each row
        for wire, bends, (out, into) in zip(self._wires, self._bends, ends, strict=True):
            xs = [out, *(at[item] for item in bends), into]
            first = self._row_of[wire.upper]
            for place, (one, other) in enumerate(pairwise(xs)):
                row = first + place + 1
                aside[row] = max(aside[row], abs(other - one))
        y, tops, heights = 0.0, [], []
        for row, items in enumerate(rows):
            height = max((self._heights[item] for item in items), default=0.0)
            if items and any(rows[:row]):
                y += GAP + min(GAP_MAX, 0.08 * aside[row])
            tops.append(y)
            heights.append(height)
            y += height
        return tops, heights

    def _runs(
        self,
        place: int,
        at: Sequence[float],
        ends: tuple[float, float],
        tops: Sequence[float],
        heights: Sequence[float],
    ) -> list[Run]:
        wire, row = self._wires[place], self._row_of[self._wires[place].upper]
        half = self._spots[wire.upper].tall / 2
        middle = tops[row] + heights[row] / 2
        runs = [Run(ends[0], middle + half, tops[row] + heights[row])]
        for item in self._bends[place]:
            row += 1
            top, bottom = tops[row], tops[row] + heights[row]
            named = item == self._named.get(place)
            if named:
                spare = (heights[row] - self._heights[item]) / 2
                runs.append(Run(at[item], top, top + spare))
                runs.append(Run(at[item], top + spare, bottom - spare, named=True))
                top = bottom - spare
            runs.append(Run(at[item], top, bottom))
        row = self._row_of[wire.lower]
        middle = tops[row] + heights[row] / 2
        runs.append(Run(ends[1], tops[row], middle - self._spots[wire.lower].tall / 2))
        return runs
