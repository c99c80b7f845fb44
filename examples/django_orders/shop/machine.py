"""The machine of orders, and the store that keeps it."""

import atexit
from functools import cache
from pathlib import Path

from django.conf import settings

import interlock
from interlock.language import load_declaration

ORDER = load_declaration(Path(__file__).parents[2] / "orders.machine.json")


@cache
def store() -> interlock.Store:
    """Open the store when it is first asked for: after a server has forked its workers."""
    opened = interlock.open(settings.INTERLOCK_STORE)
    atexit.register(opened.close)
    return opened
