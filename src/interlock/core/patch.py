"""JSON Merge Patches (RFC 7396): how the data of an instance changes."""

from collections.abc import Mapping
from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """Apply a patch and give the result; neither is altered."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
