"""In which order the nodes of each row stand, so that few lines cross.

Rows are ordered by where their neighbours stand on average, downwards and upwards in turn, and then
neighbours in a row change places as long as that helps. The best order that was seen is kept.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

ROUNDS = 16
SWAPPED_MAX = 600  # nodes; to try every swap costs more than it gives where there are many
EFFORT = 100_000  # nodes that are looked at, over all rounds; where there are more, less is tried


def rounds(most: int, nodes: int) -> int:
    """Give how often to go over some nodes."""
    return max(2, min(most, EFFORT // max(1, nodes)))


class Link(NamedTuple):
    """A line between nodes of neighbouring rows.

    Attributes:
        out, into: where it meets each of them, from the middle, as a share of the width.
        weight: how much it would rather be straight.
        free: whether it may meet the upper one anywhere, and the lower one.
    """

    upper: int
    lower: int
    out: float = 0.0
    into: float = 0.0
    weight: float = 1.0
    free: tuple[bool, bool] = (False, False)


class _End(NamedTuple):
    """A link as one of its nodes sees it: `here` it meets that, `there` the other."""

    other: int
    there: float
    here: float
    free_there: bool
    free_here: bool


def arrange(rows: list[list[int]], links: Sequence[Link]) -> list[list[int]]:
    """Give the rows, each in a new order."""
    order = _Order(rows, links)
    best, fewest = [[*row] for row in order.rows], order.crossings()
    for number in range(rounds(ROUNDS, sum(map(len, rows)))):
        if not fewest:
            break
        order.sweep(downwards=number % 2 == 0)
        if (found := order.crossings()) < fewest:
            best, fewest = [[*row] for row in order.rows], found
    if fewest and sum(map(len, rows)) <= SWAPPED_MAX:
        order.take(best)
        order.swap()
        best = order.rows
    return best


class _Order:
    def __init__(self, rows: list[list[int]], links: Sequence[Link]) -> None:
        self._above: dict[int, list[_End]] = {}
        self._below: dict[int, list[_End]] = {}
        for upper, lower, out, into, _, (out_free, into_free) in links:
            self._above.setdefault(lower, []).append(_End(upper, out, into, out_free, into_free))
            self._below.setdefault(upper, []).append(_End(lower, into, out, into_free, out_free))
        self.take(rows)

    def take(self, rows: list[list[int]]) -> None:
        self.rows = [[*row] for row in rows]
        self._at = {node: float(at) for row in rows for at, node in enumerate(row)}

    def sweep(self, *, downwards: bool) -> None:
        beside = self._above if downwards else self._below
        for row in self.rows if downwards else reversed(self.rows):
            wanted = {node: self._mean(node, beside.get(node, [])) for node in row}
            row.sort(key=wanted.__getitem__)
            for at, node in enumerate(row):
                self._at[node] = float(at)

    def _mean(self, node: int, ends: list[_End]) -> float:
        if not ends:
            return self._at[node]
        return sum(self._at[end.other] + end.there for end in ends) / len(ends)

    def crossings(self) -> int:
        return sum(
            _inversions(sorted(pair for node in row for pair in self._pairs(node)))
            for row in self.rows
        )

    def _pairs(self, node: int) -> list[tuple[float, float]]:
        """Give where each line downwards from a node begins and ends.

        One that is free begins where it crosses the fewest of those that are not.
        """
        ends = self._below.get(node, [])
        fixed = sorted(
            (end.here, self._at[end.other] + end.there) for end in ends if not end.free_here
        )
        pairs = []
        for end in ends:
            there, here = self._at[end.other] + end.there, end.here
            if end.free_here and fixed:
                before = sum(other < there for _, other in fixed)
                here = fixed[before - 1][0] if before else fixed[0][0] - 1e-6
            pairs.append((self._at[node] + here, there))
        return pairs

    def swap(self) -> None:
        """Let neighbours change places while fewer lines cross then."""
        better = True
        while better:
            better = False
            for row in self.rows:
                for at in range(len(row) - 1):
                    one, other = row[at], row[at + 1]
                    if self._between(other, one) < self._between(one, other):
                        row[at], row[at + 1] = other, one
                        self._at[one], self._at[other] = float(at + 1), float(at)
                        better = True

    def _between(self, left: int, right: int) -> int:
        """Count the crossings between the lines of two neighbours in a row."""
        return sum(
            self._at[one.other] + one.there > self._at[other.other] + other.there
            for beside in (self._above, self._below)
            for one in beside.get(left, ())
            for other in beside.get(right, ())
            if one.other != other.other or not (one.free_there or other.free_there)
        )


def _inversions(pairs: list[tuple[float, float]]) -> int:
    count, seen = 0, list[float]()
    for _, end in pairs:
        count += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return count
