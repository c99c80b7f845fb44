"""Which steps need which: unknown ones, circles, and an order in which each comes after its needs.

needs = needs_of(document["steps"])         -> {"charge": Needs(("reserve",), any=False, …)}
check_needs(needs, findings)
in_order(needs)                             -> ["reserve", "charge"]
"""

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from interlock.core.declaration import Path
from interlock.core.text import quoted
from interlock.language.findings import Findings
from interlock.language.names import nearest_hint


class Needs(NamedTuple):
    """What one step needs.

    Attributes:
        any: one of them is enough.
        places: where each of them stands in the document.
    """

    steps: tuple[str, ...]
    any: bool
    places: tuple[Path, ...]

    def surely(self) -> "Needs":
        """Give what is done whenever all that is needed is: of any one of some, nothing is sure."""
        return self._replace(steps=()) if self.any else self


def needs_of(steps: Mapping[str, Any], lost: Collection[str] = ()) -> dict[str, Needs]:
    """Read what each step needs.

    Args:
        lost: steps that are left out.
    """
    found = {}
    for name, step in steps.items():
        needs = _needs(step.get("needs"), ("steps", name, "needs"))
        kept = [pair for pair in zip(needs.steps, needs.places, strict=True) if pair[0] not in lost]
        found[name] = Needs(tuple(one for one, _ in kept), needs.any, tuple(at for _, at in kept))
    return found


def _needs(written: Any, where: Path) -> Needs:
    if written is None:
        return Needs((), False, ())
    if isinstance(written, str):
        return Needs((written,), False, (where,))
    is_any = isinstance(written, dict)
    listed: list[str] = written.get("any", []) if is_any else written
    where = (*where, "any") if is_any else where
    return Needs(tuple(listed), is_any, tuple((*where, n) for n in range(len(listed))))


def check_needs(needs: Mapping[str, Needs], findings: Findings) -> None:
    """Report steps that are not there, and steps that wait for themselves."""
    for name, (steps, _, places) in needs.items():
        for step, place in zip(steps, places, strict=True):
            if step not in needs:
                what = f"{quoted(name)} needs {quoted(step)}, and there is no such step"
                hint = nearest_hint(step, needs) or "it has to be among `steps`"
                findings.report("unknown-activity-step", what, place, hint)
    known = {name: [step for step in of.steps if step in needs] for name, of in needs.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        told = " needs ".join(map(quoted, reversed(circle)))
        first = circle[-1]
        place = needs[first].places[needs[first].steps.index(circle[-2])]
        findings.report("dependency-cycle", f"{told}: none of them could begin", place)


def in_order(needs: Mapping[str, Needs]) -> list[str]:
    """Order steps so that each comes after those that it needs, and else by their names."""
    missing = {name: len(of.steps) for name, of in needs.items()}
    after = dependents(needs)
    ready = [name for name, count in missing.items() if not count]
    heapify(ready)
    found = []
    while ready:
        name = heappop(ready)
        found.append(name)
        for one in after[name]:
            missing[one] -= 1
            if not missing[one]:
                heappush(ready, one)
    return found


def dependents(needs: Mapping[str, Needs]) -> dict[str, tuple[str, ...]]:
    """Give the steps that need each, by name."""
    found: dict[str, list[str]] = {name: [] for name in needs}
    for name in sorted(needs):
        for step in needs[name].steps:
            found[step].append(name)
    return {name: tuple(of) for name, of in found.items()}


def before(needs: Mapping[str, Needs], order: Sequence[str]) -> dict[str, int]:
    """Give all the steps that come before each: a bit for each place in the order."""
    places = {name: 1 << place for place, name in enumerate(order)}
    found: dict[str, int] = {}
    for name in order:
        mask = 0
        for step in needs[name].steps:
            mask |= found[step] | places[step]
        found[name] = mask
    return found
