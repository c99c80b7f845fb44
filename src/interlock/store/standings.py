"""Where instances stood when this process last wrote them.

A standing spares a fire the reading of its instance. It may be out of date, since other processes
write too; so what is decided on it is written only if the instance still stands there, which the
schema sees to, and a refusal is never given on it without reading first.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from interlock.core.machine import Machine, Snapshot

KEPT_MAX = 10_000  # some 5 MB


class Standing(NamedTuple):
    """Where an instance stands, and the digest that its next entry follows.

    Attributes:
        definition: the digest of the definition, of an instance that an engine began: nobody else
            moves it.
        memory: what the engine knows of it beside its state; None where that was not read.
    """

    machine: Machine
    snapshot: Snapshot
    head: bytes
    root: str
    definition: str | None = None
    memory: Any = None


class Standings:
    """The standings kept, at most `KEPT_MAX`: beyond that, the one that was kept first goes.

    Attributes:
        kept: by the id of the instance.
    """

    def __init__(self) -> None:
        self.kept: OrderedDict[str, Standing] = OrderedDict()

    def keep(self, standings: Mapping[str, Standing]) -> None:
        """Keep what was just committed, unless something later is kept already."""
        kept = self.kept
        for id, standing in standings.items():
            earlier = kept.get(id)
            if earlier is None and len(kept) >= KEPT_MAX:
                with suppress(KeyError):  # another thread may have emptied it
                    kept.popitem(last=False)
            if earlier is None or earlier.snapshot.version < standing.snapshot.version:
                kept[id] = standing

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.kept.pop(id, None)
