"""What an engine knows of an instance beside its state: its data, and what its history states say.

It is written down as JSON Merge Patches (RFC 7396), each with the entry that it came with, and can
be rebuilt as it was after any of them. Now and then it is written as a whole, so that not every
patch has to be read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from interlock.core.patch import merge
from interlock.core.payload import decode_payload, encode_payload
from interlock.core.rejection import StorageFailure

WHOLE_EVERY = 64  # patches, after which it is written as a whole
KEPT_BYTES = 8192  # of a memory that a process keeps: it may keep those of 10,000 instances

Patch = dict[str, Any]


@dataclass(frozen=True)
class Memory:
    """Never altered: a change makes another.

    Attributes:
        data: the fields as JSON has them.
        remembered: by the path of a history state, the active states that it leads back to.
        patches: how many have come since it was written as a whole.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    remembered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    patches: int = 0

    def patched(self, patch: Mapping[str, Any]) -> "Memory":
        """Apply a patch of the whole."""
        return _memory(merge(self.whole(), patch), self.patches + 1)

    @cached_property
    def is_small(self) -> bool:
        """Whether it is worth keeping; what is large is read again."""
        return len(encode_payload(self.whole())) <= KEPT_BYTES

    def whole(self) -> dict[str, Any]:
        """Give all of it as a JSON object."""
        whole: dict[str, Any] = {"data": self.data}
        if self.remembered:
            whole["remembered"] = {path: [*states] for path, states in self.remembered.items()}
        return whole


def recall(changes: Iterable[tuple[str, bytes | None]]) -> Memory:
    """Rebuild a memory from what was written, each a kind and its payload.

    Raises:
        StorageFailure: a payload was destroyed, and with it what it changed.
    """
    whole: dict[str, Any] = {}
    patches = 0
    for kind, content in changes:
        if content is None:
            what = "a payload was destroyed that the data of this instance is made of"
            raise StorageFailure(what, kind="unreadable")
        value = decode_payload(content)
        whole, patches = (value, 1) if kind == "whole" else (merge(whole, value), patches + 1)
    return _memory(whole, patches)


def _memory(whole: Mapping[str, Any], patches: int) -> Memory:
    remembered = whole.get("remembered", {})
    places = {path: tuple(states) for path, states in remembered.items()}
    return Memory(whole.get("data", {}), places, patches)


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Patch:
    """Give the patch that makes one object of another; an object holds no null."""
    patch: Patch = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            patch[name] = value
            continue
        old = before[name]
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := difference(old, value):
                patch[name] = inner
        elif not _same(old, value):
            patch[name] = value
    return patch


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: `1`, `1.0` and `true` are three."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other)
