"""What the tests of logs share: small logs, the machine they are about, and what was recorded."""

import csv
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import Entry, Store

T0 = datetime(2024, 5, 1, 12, tzinfo=UTC)

ORDER: dict[str, Any] = {
    "states": ["placed", "paid", "shipped", "refunded"],
    "transitions": [
        {"from_state": "placed", "action": "pay", "to_state": "paid"},
        {"from_state": "paid", "action": "note", "to_state": "paid"},
        {"from_state": "paid", "action": "ship", "to_state": "shipped"},
        {"from_state": "paid", "action": "refund", "to_state": "refunded", "guard": "inspected"},
    ],
    "initial_state": "placed",
    "terminal_states": ["shipped", "refunded"],
}


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def write_log(path: Path, rows: Iterable[tuple]) -> Path:
    """Write rows of case, action, time (minutes after `T0`, text or None) and maybe actor."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "action", "time", "actor"])
        for case, action, time, *actor in rows:
            shown = at(time).isoformat() if isinstance(time, int | float) else time
            writer.writerow([case, action, shown, *(actor or [""])])
    return path


def instance_of(store: Store, case: str) -> str:
    (instance,) = store.instances(subject_ref=case)
    return instance.id


def told(store: Store, case: str) -> list[tuple[str, float, str | None]]:
    """Give what is recorded of a case: action, minutes after `T0`, actor."""
    return [
        (entry.action, (entry.fired_at - T0).total_seconds() / 60, entry.actor_ref)
        for entry in store.history(instance_of(store, case))
    ]


def everything(store: Store) -> dict[str, list[Entry]]:
    """Give the history of every instance, by its id."""
    found: dict[str, list[Entry]] = {}
    after = None
    while page := store.instances(limit=1000, after=after):
        found |= {instance.id: store.history(instance.id) for instance in page}
        after = page[-1].id
    return found


def shared(name: str) -> Path:
    """Find a real log, or skip the test: they belong to others and are not kept here."""
    given = os.environ.get("INTERLOCK_SHARED_DATA")
    folder = Path(given) if given else Path(__file__).parents[4] / "shared" / "data"
    if not (folder / name).is_file():
        pytest.skip(f"no `{name}` in {folder}: set INTERLOCK_SHARED_DATA to where the logs are")
    return folder / name
