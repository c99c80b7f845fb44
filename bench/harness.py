"""Measuring: turns, medians, ratios, and a table of them."""

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

ROUNDS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        target: what the figure is to be, in words, such as `>= 0.80`; kept for the reader.
        met: whether the median is.
    """

    name: str
    value: str
    target: str
    met: bool
    detail: str = ""

    def __str__(self) -> str:
        mark = "met" if self.met else "MISSED"
        return f"{self.name:<58} {self.value:>14}   {self.target:<12} {mark:<7} {self.detail}"


def rate(run: Callable[[int], object], count: int) -> float:
    """Run `count` operations and give operations per second of wall time."""
    start = time.perf_counter()
    run(count)
    return count / (time.perf_counter() - start)


def cpu_us(run: Callable[[int], object], count: int) -> float:
    """Run `count` operations and give microseconds of CPU, user and system, for each."""
    start = _cpu()
    run(count)
    return (_cpu() - start) / count * 1e6


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def in_turns(
    measures: Sequence[Callable[[], float]], rounds: int = ROUNDS
) -> list[tuple[float, ...]]:
    """Take each measure once in every round, after one round that does not count."""
    for measure in measures:
        measure()
    return [tuple(measure() for measure in measures) for _ in range(rounds)]


def compare(name: str, target: float, pairs: Sequence[tuple[float, ...]], *, unit: str) -> Figure:
    """Make the line of a rate beside the floor's: the median of the ratios, turn by turn."""
    ratios = [ours / floor for ours, floor, *_ in pairs]
    ours, floor = (median(column) for column in list(zip(*pairs, strict=True))[:2])
    return Figure(
        name=name,
        value=f"{median(ratios):.2f} x",
        target=f">= {target:.2f}",
        met=median(ratios) >= target,
        detail=f"{ours:,.0f} beside {floor:,.0f} {unit} "
        f"(ratios {min(ratios):.2f} to {max(ratios):.2f})",
    )


def at_most(name: str, most: float, values: Sequence[float], unit: str, detail: str = "") -> Figure:
    """Make the line of a figure that is to be small."""
    middle = median(values)
    spread = f"({min(values):.2f} to {max(values):.2f})"
    return Figure(
        name=name,
        value=f"{middle:.2f} {unit}",
        target=f"<= {most:g}",
        met=middle <= most,
        detail=f"{detail} {spread}".strip(),
    )


def at_least(name: str, least: float, values: Sequence[float], unit: str) -> Figure:
    """Make the line of a figure that is to be large."""
    middle = median(values)
    return Figure(
        name=name,
        value=f"{middle:,.0f} {unit}",
        target=f">= {least:,.0f}",
        met=middle >= least,
        detail=f"({min(values):,.0f} to {max(values):,.0f})",
    )
