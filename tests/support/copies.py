"""Stores to copy from and to, on each database, and what has to be equal in a copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import interlock
from interlock.core.identity import root_of
from interlock.store.plan import Plan, Statement, Transaction
from interlock.store.store import Store
from tests.support.machines import BATCH, TOGGLE
from tests.support.postgres import database

KINDS = ["memory", "file", "postgres"]


@contextmanager
def new_store(kind: str, folder: Path, **how: Any) -> Iterator[Store]:
    """Open an empty store of a kind."""
    if kind == "postgres":
        with database() as url, interlock.open(url, **how) as store:
            yield store
        return
    url = "sqlite://" if kind == "memory" else f"sqlite:///{folder}/copy.db?synchronous=normal"
    with interlock.open(url, **how) as store:
        yield store


def populate(store: Store) -> dict[str, str]:
    """Write something of every kind, by the verbs alone; give the ids by name."""
    names = {"new": store.instantiate(BATCH)}
    names["keyed"] = keyed = store.instantiate(
        BATCH, "ann", "caf\u00e9 \U0001f600", {"line": [1.5, None]}, idempotency_key="birth-1"
    )
    store.fire(keyed, "begin-testing", "bob", reason='a "reason"\n\u2028', idempotency_key="k-1")
    store.fire(keyed, "release", "qp", True, correlation_id="c", causation_id="d", worker_id="w")
    names["long"] = long = store.instantiate(TOGGLE, subject_ref="lamp")
    for number in range(23):
        store.fire(long, "go", reason=f"round {number}" if number % 3 == 0 else None)
    names["purged"] = purged = store.instantiate(TOGGLE, instance_metadata="a secret")
    store.fire(purged, "go", reason="another secret")
    store.fire(purged, "go", reason="no secret")
    destroy(store, purged, purged)
    destroy(store, purged, store.history(purged)[0].transition_id)
    return names


def destroy(store: Store, instance_id: str, payload_id: str) -> None:
    """Destroy a payload of an instance."""

    def plan() -> Plan[None]:
        yield Statement("destroy_payload", [(store._tenant, root_of(instance_id), payload_id)])

    store._database.run(Transaction(plan, writes=True))


def told(store: Store) -> list[Any]:
    """Give all that the verbs tell of a store."""
    found = store.instances(limit=1000)
    return [
        (one, store.history(one.id), list(store.read_declaration(one.id).items())) for one in found
    ]


def report(store: Store, folder: Path) -> bytes:
    """Verify a store, which must be sound, and give its report with all heads."""
    assert store.verify(report=folder / "report.json").ok
    return (folder / "report.json").read_bytes()


def dumped(store: Store, folder: Path, name: str = "again.jsonl") -> bytes:
    store.dump(folder / name)
    return (folder / name).read_bytes()
