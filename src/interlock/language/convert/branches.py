"""Branches in the order of a document, and what stands in a document that was made."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.language.convert.result import Definition, Findings
from interlock.language.source import Mark

BRANCHES_MAX = 100_000  # wildcards are written out, so a short text could make a very long one


class Choices:
    """Writes choices in the order of a document, and notes what that order comes to."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._count = 0

    def write(self, branches: list[Definition], trigger: str, mark: Mark) -> Any:
        """Write what a state does on a trigger.

        Raises:
            ConvertError: there are too many branches by now.
        """
        self._count += len(branches)
        if self._count > BRANCHES_MAX:
            message = f"more than {BRANCHES_MAX} branches once wildcards are written out"
            self._findings.refuse("budget-exceeded", message, mark)
            self._findings.check()
        kept = live(branches)
        if cut := len(branches) - len(kept):
            message = f"{cut} of the transitions on {trigger} can never be taken: left out"
            self._findings.note("never-taken", message, mark)
        if len(kept) > 1:
            message = f"of the transitions on {trigger} the first that may be taken is"
            self._findings.note("document-order", message, mark)
        return choice(kept)


def choice(branches: list[Definition]) -> Any:
    """Write branches in the shortest way; of several, the first that may be taken is.

    The last one, if it has no condition, is the `otherwise`.
    """
    plain = [{key: value for key, value in one.items() if key != "otherwise"} for one in branches]
    if len(plain) == 1:
        (only,) = plain
        return only["to"] if set(only) == {"to"} and isinstance(only["to"], str) else only
    if not _conditional(plain[-1]):
        plain[-1] = {**plain[-1], "otherwise": True}
    return {"order": "first-match", "branches": plain}


def live(branches: list[Definition]) -> list[Definition]:
    """Cut what can never be taken: what an earlier branch always or just as often is."""
    kept: list[Definition] = []
    seen: set[str] = set()
    for branch in branches:
        terms = json.dumps([branch.get("when"), branch.get("guard")])
        if terms in seen:
            continue
        seen.add(terms)
        kept.append(branch)
        if not _conditional(branch):
            break
    return kept


def _conditional(branch: Definition) -> bool:
    return "when" in branch or "guard" in branch


def walk(states: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every state of a document with its path, parents first."""
    for name, state in states.items():
        here = (*path, name)
        yield ".".join(here), state or {}
        yield from walk((state or {}).get("states") or {}, here)


def count_states(definition: Definition) -> dict[str, int]:
    """Count the states of a document by kind, and the levels of nesting."""
    counts = dict.fromkeys(
        ("states", "atomic", "compound", "parallel", "final", "history", "depth"), 0
    )
    for path, state in walk(definition["states"]):
        kind = state.get("type")
        if kind == "history":
            counts["history"] += 1
            continue
        counts["states"] += 1
        counts["depth"] = max(counts["depth"], path.count(".") + 1)
        if kind == "parallel":
            counts["parallel"] += 1
        elif state.get("final"):
            counts["final"] += 1
        elif state.get("states"):
            counts["compound"] += 1
        else:
            counts["atomic"] += 1
    return counts
