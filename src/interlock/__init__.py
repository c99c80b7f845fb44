"""Interlock: a durable, auditable state-machine and workflow engine.

with interlock.open("sqlite:///batches.db") as store:
    batch = store.instantiate(declaration, actor_ref="system-planner")
    store.fire(batch, "begin-testing", actor_ref="lab-tech-rivera")
"""

from typing import TYPE_CHECKING

from interlock.core.entry import PURGED, Entry
from interlock.core.rejection import (
    DefinitionChanged,
    EngineOwned,
    GuardError,
    GuardNotSatisfied,
    HookFailed,
    IdempotencyConflict,
    InvalidDeclaration,
    InvalidQuery,
    InvalidRequest,
    InvalidTransition,
    Nondeterministic,
    NotKnown,
    OutcomeUnknown,
    Rejected,
    StepLimit,
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
    from interlock.engine.engine import Engine
    from interlock.engine.handle import Handle, Possible
    from interlock.engine.hooks import Tx
    from interlock.language import Definition, DefinitionError, define, load, loads
    from interlock.language.builder import (
        Machine,
        all_,
        any_,
        branch,
        check,
        first_match,
        in_,
        not_,
        otherwise,
        raise_,
    )
    from interlock.store.async_store import AsyncStore, open_async

__version__ = "0.1.0"

__all__ = [
    "PURGED",
    "AsyncStore",
    "Birth",
    "Counts",
    "Definition",
    "DefinitionChanged",
    "DefinitionError",
    "Engine",
    "EngineOwned",
    "Entry",
    "Finding",
    "Fire",
    "GuardError",
    "GuardNotSatisfied",
    "Handle",
    "HookFailed",
    "IdempotencyConflict",
    "Instance",
    "InvalidDeclaration",
    "InvalidQuery",
    "InvalidRequest",
    "InvalidTransition",
    "Limits",
    "Machine",
    "Nondeterministic",
    "NotKnown",
    "OutcomeUnknown",
    "Page",
    "Possible",
    "Rejected",
    "Report",
    "Restored",
    "StepLimit",
    "StorageFailure",
    "Store",
    "Terminal",
    "Tx",
    "VersionConflict",
    "all_",
    "any_",
    "branch",
    "check",
    "define",
    "first_match",
    "in_",
    "load",
    "loads",
    "not_",
    "open",
    "open_async",
    "otherwise",
    "raise_",
]


_LATER = {
    "AsyncStore": "interlock.store.async_store",
    "Engine": "interlock.engine.engine",
    "Handle": "interlock.engine.handle",
    "Possible": "interlock.engine.handle",
    "Tx": "interlock.engine.hooks",
    "open_async": "interlock.store.async_store",
    **dict.fromkeys(
        ("Definition", "DefinitionError", "define", "load", "loads"), "interlock.language"
    ),
    **dict.fromkeys(
        (
            *("Machine", "branch", "first_match", "otherwise", "raise_"),
            *("all_", "any_", "check", "in_", "not_"),
        ),
        "interlock.language.builder",
    ),
}


def __getattr__(name: str) -> object:
    """Give what is imported when it is first asked for, with asyncio or the reader of YAML."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """Name what is imported later too."""
    return sorted({*globals(), *__all__})
