"""The names of a machine document in SCXML: ids that are global, events without blanks."""

import re
from collections import Counter
from collections.abc import Iterable

from interlock.core.declaration import Path
from interlock.language.chart import Chart, State
from interlock.language.convert.naming import Names
from interlock.language.convert.result import Findings
from interlock.language.document import Document


class Ids:
    """Gives each state an id, and each event a name.

    A state that shares its name with another is called by the state around it as well:
    `review-open`. A dot would not do: `done.state.review` stands for `done.state.review.open` too.
    SCXML parts ids and events by blanks, so these become `_`.

    Attributes:
        of: the id of each state.
    """

    def __init__(self, document: Document, chart: Chart, findings: Findings) -> None:
        self._document = document
        self._findings = findings
        self._events: dict[str, str] = {}
        self._event_names = Names()
        self.of: dict[State, str] = {}
        states = [state for state in chart.states.values() if state.path]
        counts = Counter(state.name for state in states)
        taken: set[str] = set()
        for state in states:
            around = state.parent
            assert around is not None
            shared = counts[state.name] > 1 and around.path
            wanted = f"{self.of[around]}-{state.name}" if shared else state.name
            id = re.sub(r"\s", "_", wanted)
            while id in taken:
                id += "_"
            taken.add(id)
            self.of[state] = id
            if id != wanted:
                self._renamed("state", state.path, id, state.where)

    def joined(self, states: Iterable[State]) -> str:
        return " ".join(self.of[state] for state in states)

    def event(self, name: str, where: Path) -> str:
        if name not in self._events:
            # A `*` at the end of a descriptor stands for any ending.
            self._events[name] = self._event_names.give(re.sub(r"[\s*]", "_", name), "event")
            if self._events[name] != name:
                self._renamed("event", name, self._events[name], where)
        return self._events[name]

    def _renamed(self, what: str, name: str, other: str, where: Path) -> None:
        message = f"the {what} `{name}` is called `{other}` there"
        self._findings.note("renamed", message, self._document.mark(where, key=True))
