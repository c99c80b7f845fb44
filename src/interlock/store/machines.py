"""Compiled machines, one per declaration digest, kept for as long as they are in use."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from json import loads

from interlock.core.declaration import declaration_digest
from interlock.core.machine import Machine
from interlock.core.rejection import StorageFailure
from interlock.store.plan import Plan, Row, Statement

KEPT_MAX = 256


@lru_cache(KEPT_MAX)
def compiled(digest: str, text: str) -> Machine:
    """Give the look-up of a declaration, compiled when it is first asked for."""
    return Machine(loads(text), digest)


def owed_declarations(tenant: str, told: Mapping[str, str], known: Mapping[str, str]) -> list[Row]:
    """Give the rows of the declarations, texts by digest, that a store lacks.

    Raises:
        StorageFailure: it holds another text as one of them; somebody altered it.
    """
    for digest, text in told.items():
        if known.get(digest, text) != text:
            what = f"the store holds another declaration as {digest}; run `verify`"
            raise StorageFailure(what, kind="damaged")
    return [(tenant, digest, text) for digest, text in told.items() if digest not in known]


class Machines:
    """The machines that a store has met. A digest names a text for ever, so nothing goes stale.

    Beyond `KEPT_MAX` the one that was met first goes; meeting it again compiles it again.
    """

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._kept: dict[str, Machine] = {}

    def keep(self, machine: Machine) -> None:
        kept = self._kept
        if machine.digest not in kept and len(kept) >= KEPT_MAX:
            kept.pop(next(iter(kept)), None)
        kept[machine.digest] = machine

    def fetch(self, digests: Iterable[str]) -> Plan[dict[str, Machine]]:
        """Give the machine of each digest, reading and compiling those not met before.

        Raises:
            StorageFailure: the store holds no such declaration; somebody removed or altered it.
        """
        kept = self._kept
        found = {digest: kept[digest] for digest in digests if digest in kept}
        missing = [digest for digest in digests if digest not in found]
        if missing:
            keys = [(self._tenant, digest) for digest in missing]
            for digest, text in (yield Statement("read_declaration", keys)):
                if declaration_digest(text) != digest:
                    what = f"the declaration {digest} was altered; run `verify`"
                    raise StorageFailure(what, kind="damaged")
                try:
                    found[digest] = compiled(digest, text)
                except (LookupError, TypeError) as error:
                    raise ValueError(f"declaration {digest}: {error!r}") from error
                self.keep(found[digest])
            if any(digest not in found for digest in missing):
                raise StorageFailure(
                    f"the store has lost the declaration {missing[0]}; run `verify`"
                )
        return found
