"""Where in its row each node stands, so that lines are as straight as can be.

Each row in turn is moved to where its neighbours pull it, in the least squares, while the order and
the distances in the row are kept: that is isotonic regression, by pooling adjacent violators.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from interlock.language.drawing.rows import Link, rounds

ROUNDS = 12


class Chain(NamedTuple):
    """Nodes below each other that should stand in one line.

    Attributes:
        upper, lower: the nodes that it leads between, each with how far to the left and to the
            right of its middle the line may meet it.
    """

    nodes: Sequence[int]
    upper: tuple[int, float, float]
    lower: tuple[int, float, float]


def columns(
    rows: Sequence[Sequence[int]],
    widths: Sequence[float],
    gaps: Sequence[float],
    links: Sequence[Link],
    chains: Sequence[Chain],
) -> list[float]:
    """Give the middle of each node.

    Args:
        gaps: how much of a gap each node wants beside it; between two the larger one is left.
    """
    places = _Places(rows, widths, gaps, links)
    often = rounds(ROUNDS, len(widths))
    for _ in range(often):
        places.pull(up=True, down=False)
        places.pull(up=False, down=True)
    for _ in range(often // 2):
        places.pull(up=True, down=True)
    places.close_up()
    for chain in [*chains, *chains]:
        places.straighten(chain)
    return places.at


class _Places:
    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        widths: Sequence[float],
        gaps: Sequence[float],
        links: Sequence[Link],
    ) -> None:
        self._rows = rows
        self._half = [width / 2 for width in widths]
        self._gaps = gaps
        self.at = [0.0] * len(widths)
        self._above: list[list[tuple[int, float, float]]] = [[] for _ in widths]
        self._below: list[list[tuple[int, float, float]]] = [[] for _ in widths]
        for link in links:
            # how far apart the middles are when the line is straight
            apart = link.out * widths[link.upper] - link.into * widths[link.lower]
            self._above[link.lower].append((link.upper, apart, link.weight))
            self._below[link.upper].append((link.lower, -apart, link.weight))
        self._beside: dict[int, tuple[int | None, int | None]] = {}
        for row in rows:
            for place, node in enumerate(row):
                left = row[place - 1] if place else None
                right = row[place + 1] if place + 1 < len(row) else None
                self._beside[node] = (left, right)
                if left is not None:
                    self.at[node] = self.at[left] + self._apart(left, node)
            if row:
                middle = (self.at[row[0]] + self.at[row[-1]]) / 2
                for node in row:
                    self.at[node] -= middle

    def _apart(self, left: int, right: int) -> float:
        gap = max(self._gaps[left], self._gaps[right])
        return self._half[left] + gap + self._half[right]

    def pull(self, *, up: bool, down: bool) -> None:
        for row in self._rows if up else reversed(self._rows):
            wanted, weights = [], []
            for node in row:
                beside = (self._above[node] if up else []) + (self._below[node] if down else [])
                weight = sum(weight for *_, weight in beside)
                pulled = sum((self.at[other] + apart) * weight for other, apart, weight in beside)
                wanted.append(pulled / weight if weight else self.at[node])
                weights.append(weight or 0.01)
            self._move(row, wanted, weights)

    def _move(self, row: Sequence[int], wanted: Sequence[float], weights: Sequence[float]) -> None:
        shift, shifts = 0.0, [0.0]
        for left, right in pairwise(row):
            shift += self._apart(left, right)
            shifts.append(shift)
        pooled = monotone([one - by for one, by in zip(wanted, shifts, strict=False)], weights)
        for node, place, by in zip(row, pooled, shifts, strict=False):
            self.at[node] = place + by

    def close_up(self) -> None:
        """Move what no line binds to the rest up to it: nothing has pulled that to a place."""
        for part in self._parts():
            left = right = float("inf")
            for node in part:
                before, after = self._beside[node]
                if before is not None and before not in part:
                    left = min(left, self.at[node] - self.at[before] - self._apart(before, node))
                if after is not None and after not in part:
                    right = min(right, self.at[after] - self.at[node] - self._apart(node, after))
            shift = -left if left < float("inf") else right if right < float("inf") else 0.0
            for node in part:
                self.at[node] += shift

    def _parts(self) -> list[set[int]]:
        """Give the sets of nodes that lines bind together, the leftmost first; not the largest."""
        parts: list[set[int]] = []
        seen: set[int] = set()
        for row in self._rows:
            for first in row:
                if first in seen:
                    continue
                part, found = {first}, [first]
                for node in found:
                    for other, *_ in (*self._above[node], *self._below[node]):
                        if other not in part:
                            part.add(other)
                            found.append(other)
                parts.append(part)
                seen |= part
        parts.sort(key=lambda part: (min(self.at[node] for node in part), min(part)))
        largest = max(parts, key=len, default=set())
        return [part for part in parts if part is not largest]

    def straighten(self, chain: Chain) -> None:
        """Put a chain in one line, or in as few as its neighbours leave room for."""
        nodes = [*chain.nodes]
        while nodes:
            run, low, high = self._run(nodes)
            aims = []
            if run[0] == chain.nodes[0]:
                aims.append(chain.upper)
            if run[-1] == chain.nodes[-1]:
                aims.append(chain.lower)
            for node, left, right in aims:  # so that it meets its ends straight, if it can
                lowest = max(low, self.at[node] + left)
                highest = min(high, self.at[node] + right)
                if lowest <= highest:
                    low, high = lowest, highest
            middle = sum(self.at[node] for node in run) / len(run)
            for node in run:
                self.at[node] = min(max(middle, low), high)
            nodes = nodes[len(run) :]

    def _run(self, nodes: Sequence[int]) -> tuple[list[int], float, float]:
        """Give the nodes, from the first, that have room for one line, and where they have it."""
        run: list[int] = []
        low, high = float("-inf"), float("inf")
        for node in nodes:
            left, right = self._beside[node]
            lowest, highest = low, high
            if left is not None:
                lowest = max(low, self.at[left] + self._apart(left, node))
            if right is not None:
                highest = min(high, self.at[right] - self._apart(node, right))
            if run and lowest > highest:
                break
            run.append(node)
            low, high = lowest, max(lowest, highest)
        return run, low, high


def monotone(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Give what is nearest to the values wanted, in the least squares, and never falls."""
    pools: list[tuple[float, float, int]] = []  # value, weight, how many
    for value, weight in zip(wanted, weights, strict=True):
        count = 1
        while pools and pools[-1][0] > value:
            other, its, many = pools.pop()
            value = (value * weight + other * its) / (weight + its)
            weight, count = weight + its, count + many
        pools.append((value, weight, count))
    return [value for value, _, count in pools for _ in range(count)]


def spread(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Place values in order between two bounds, some distance apart, near to what is wanted."""
    if not wanted:
        return []
    apart = min(apart, (high - low) / max(1, len(wanted) - 1))
    clipped = [min(max(value, low), high) for value in wanted]
    shifted = monotone(
        [value - place * apart for place, value in enumerate(clipped)], [1.0] * len(clipped)
    )
    room = high - low - apart * (len(wanted) - 1)
    return [min(max(value, low), low + room) + n * apart for n, value in enumerate(shifted)]
