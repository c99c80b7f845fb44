"""The SCXML tests of SCION: a document, the leaves it begins in, and those after each event.

Eight tests carry a second expectation, `legacySemantics`. Where the two differ the main one is
taken, but in two tests it is SCION's own and the second is what the recommendation gives.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.shared import conformance

SUITE = "scxml/scion"
#: What the page about conformance calls each tier -> what the suite does.
TIERS = {
    "structure": "1-structure",
    "parallel regions": "2-parallel",
    "history": "3-history",
    "data": "4-data",
    "delayed events": "5-delayed-send",
    "scripts, payloads": "6-ecma/invoke/script",
}
BY_RECOMMENDATION = frozenset({"more-parallel/test10", "more-parallel/test10b"})


class Step(NamedTuple):
    """An event, the leaves after it, and how long to wait before it is sent, in milliseconds."""

    event: str
    leaves: frozenset[str]
    after_ms: int = 0


class ScxmlCase(NamedTuple):
    """One test; `tier` is such as `2-parallel`, and states are named as the document does."""

    name: str
    tier: str
    text: str
    initial: frozenset[str]
    steps: list[Step]

    @property
    def events(self) -> list[str]:
        return list(dict.fromkeys(step.event for step in self.steps))


def scxml_cases(*tiers: int) -> Iterator[ScxmlCase]:
    """Yield the tests of these tiers (1 to 6), or of all; none where the suite is missing."""
    folder = conformance(SUITE)
    if folder is None:
        return
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for name, entry in sorted(index.items()):
        if not tiers or int(entry["tier"][0]) in tiers:
            yield _case(folder, name, entry["tier"])


def _case(folder: Path, name: str, tier: str) -> ScxmlCase:
    script: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    if name in BY_RECOMMENDATION:
        script = script["legacySemantics"]
    return ScxmlCase(
        name=name,
        tier=tier,
        text=(folder / f"{name}.scxml").read_text(encoding="utf-8"),
        initial=frozenset(script["initialConfiguration"]),
        steps=[
            Step(row["event"]["name"], frozenset(row["nextConfiguration"]), row.get("after", 0))
            for row in script["events"]
        ],
    )
