"""Which branches of which definitions were taken while tests ran.

Definitions count from when `machine_tests` or an engine under test first uses them. What a test
rolls back was not taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from interlock.engine import taken
from interlock.language.definition import Definition
from interlock.language.flatten import Branch


@dataclass(slots=True)
class Covered:
    """The branches of one definition, by state and action, and those of them that were taken.

    Attributes:
        impossible: branches of which it is proved that nothing takes them; they do not count.
    """

    name: str
    version: str
    digest: str
    branches: tuple[tuple[str, str], ...]
    taken: set[tuple[str, str]] = field(default_factory=set)
    impossible: set[tuple[str, str]] = field(default_factory=set)

    @property
    def counted(self) -> list[tuple[str, str]]:
        """Those that count, in their order."""
        out = self.impossible - self.taken
        return [branch for branch in self.branches if branch not in out]

    @property
    def percent(self) -> float:
        """The share that was taken; of a machine without branches, all of it."""
        return 100 * len(self.taken) / len(self.counted) if self.counted else 100.0

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Those that were not taken, in their order."""
        return [branch for branch in self.counted if branch not in self.taken]


_known: dict[str, Covered] = {}


def declare(definition: Definition, impossible: Iterable[tuple[str, str]] = ()) -> Covered:
    """Count a definition, but for branches that nothing takes."""
    found = _known.get(definition.digest)
    if found is None:
        branches = tuple((b.from_state, b.action) for b in definition.flat.branches)
        found = Covered(definition.name, definition.version, definition.digest, branches)
        _known[definition.digest] = found
    found.impossible.update(impossible)
    return found


def listen() -> None:
    """Begin to count what engines take, from nothing."""
    _known.clear()
    if _note not in taken.listeners:
        taken.listeners.append(_note)


def stop() -> None:
    """Count no longer."""
    if _note in taken.listeners:
        taken.listeners.remove(_note)


def found() -> list[Covered]:
    """Give what was counted, by name and version."""
    return sorted(_known.values(), key=lambda one: (one.name, one.version, one.digest))


def merge(rows: Iterable[Sequence[object]]) -> None:
    """Add what another process counted, as `rows` gives it."""
    for name, version, digest, branches, done, impossible in rows:
        known = _known.get(str(digest))
        if known is None:
            pairs = tuple(map(_pair, branches))  # type: ignore[call-overload]
            known = _known[str(digest)] = Covered(str(name), str(version), str(digest), pairs)
        known.taken |= set(map(_pair, done))  # type: ignore[call-overload]
        known.impossible |= set(map(_pair, impossible))  # type: ignore[call-overload]


def rows() -> list[list[object]]:
    """Give what was counted as plain lists."""
    return [
        [
            one.name,
            one.version,
            one.digest,
            *([*map(list, listed)] for listed in (one.branches, one.taken, one.impossible)),
        ]
        for one in found()
    ]


def _pair(value: Sequence[str]) -> tuple[str, str]:
    state, action = value
    return state, action


def _note(definition: Definition, branches: Sequence[Branch]) -> None:
    declare(definition).taken.update((b.from_state, b.action) for b in branches)
