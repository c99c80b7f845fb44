"""Where the data of others is: conformance suites that are not kept here."""

import os
from pathlib import Path

import pytest


def conformance(name: str) -> Path | None:
    """Find a folder or file of conformance data, or None: they belong to others."""
    given = os.environ.get("INTERLOCK_SHARED_CONFORMANCE")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "conformance"
    found = folder / name
    return found if found.exists() else None


def needed(name: str) -> Path:
    """Find conformance data, or skip the test and say so."""
    found = conformance(name)
    if found is None:
        pytest.skip(f"no `{name}`: set INTERLOCK_SHARED_CONFORMANCE to where the suites are")
    return found
