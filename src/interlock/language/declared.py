"""What a flat machine comes to: the declaration of the core, and the digest of all it means."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from interlock.language.condition import ALWAYS, text
from interlock.language.flatten import Branch, Flat
from interlock.language.names import SUPERSEDED

LABEL_BYTES = 480  # of a condition that stands as a guard in the declaration


def declaration_of(flat: Flat) -> dict[str, Any]:
    """Write the flat machine as a declaration of the core."""
    transitions = []
    for branch in flat.branches:
        transition = {
            "from_state": branch.from_state,
            "action": branch.action,
            "to_state": branch.to_state,
        }
        label = _label(branch)
        transitions.append(transition if label is None else {**transition, "guard": label})
    transitions += [
        {"from_state": state, "action": SUPERSEDED, "to_state": SUPERSEDED}
        for state in flat.leaves
        if state not in flat.final
    ]
    return {
        "states": [*flat.leaves, SUPERSEDED],
        "transitions": transitions,
        "initial_state": flat.initial,
        "terminal_states": [*sorted(flat.final), SUPERSEDED],
    }


def digest_of(
    written: Mapping[str, Any],
    flat: Flat,
    required: Mapping[str, frozenset[str]],
    declaration: Mapping[str, Any],
) -> str:
    """Name all that a definition means: two that mean the same have the same digest.

    Instances in stores are bound to it, so what it is made of, and how, never changes.
    """
    meaning = {
        "machine": written["machine"],
        "version": str(written.get("version", "dev")),
        "data": written.get("data") or {},
        "events": written.get("events") or {},
        "gates": written.get("gates") or {},
        "declaration": declaration,
        "entered": [flat.entered, flat.hooks],
        "required": {state: sorted(names) for state, names in required.items() if names},
        "branches": [
            [
                branch.from_state,
                branch.action,
                branch.trigger,
                branch.owner,
                text(branch.when),
                branch.guards,
                sorted(branch.recalls, key=canonical),
                sorted(branch.remembers.items()),
                branch.sets,
                [branch.leaving, branch.moving, branch.entering],
                branch.due,
            ]
            for branch in flat.branches
        ],
    }
    return hashlib.sha256(canonical(meaning).encode()).hexdigest()


def canonical(value: object) -> str:
    """Write a value as JSON in the one way in which it is kept and hashed."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _label(branch: Branch) -> str | None:
    """Give the guard of a branch: what the caller asserts, or else what the engine finds true."""
    if branch.guards:
        return " && ".join(branch.guards)
    if branch.when == ALWAYS:
        return None
    label = text(branch.when)
    if len(label.encode()) <= LABEL_BYTES:
        return label
    digest = hashlib.sha256(label.encode()).hexdigest()[:16]
    cut = label.encode()[: LABEL_BYTES - 32].decode(errors="ignore")
    return f"{cut}… sha256:{digest}"
