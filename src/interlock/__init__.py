"""Interlock: a durable, auditable state-machine and workflow engine.

with interlock.open("sqlite:///batches.db") as store:
    batch = store.instantiate(declaration, actor_ref="system-planner")
    store.fire(batch, "begin-testing", actor_ref="lab-tech-rivera")
"""

from typing import TYPE_CHECKING

from interlock.core.entry import PURGED, Entry
from interlock.core.rejection import (
    GuardNotSatisfied,
    IdempotencyConflict,
    InvalidDeclaration,
    InvalidQuery,
    InvalidRequest,
    InvalidTransition,
    NotKnown,
    OutcomeUnknown,
    Rejected,
    StorageFailure,
    Terminal,
    VersionConflict,
)
from interlock.core.text import Limits
from interlock.store.attempt import Birth, Fire
from interlock.store.dumpfile import Counts
from interlock.store.read import Instance
from interlock.store.restore import Restored
from interlock.store.store import Store, open
from interlock.store.transfer import Page
from interlock.store.verify import Finding, Report

if TYPE_CHECKING:
    from interlock.store.async_store import AsyncStore, open_async

__version__ = "0.1.0"

__all__ = [
    "PURGED",
    "AsyncStore",
    "Birth",
    "Counts",
    "Entry",
    "Finding",
    "Fire",
    "GuardNotSatisfied",
    "IdempotencyConflict",
    "Instance",
    "InvalidDeclaration",
    "InvalidQuery",
    "InvalidRequest",
    "InvalidTransition",
    "Limits",
    "NotKnown",
    "OutcomeUnknown",
    "Page",
    "Rejected",
    "Report",
    "Restored",
    "StorageFailure",
    "Store",
    "Terminal",
    "VersionConflict",
    "open",
    "open_async",
]


def __getattr__(name: str) -> object:
    """Give the asynchronous face, which is imported when it is first asked for, as asyncio is."""
    if name not in ("AsyncStore", "open_async"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlock.store import async_store

    return getattr(async_store, name)


def __dir__() -> list[str]:
    """Name the asynchronous face too, before it is imported."""
    return sorted({*globals(), *__all__})
