"""The names of an SCXML document in ours: paths of states, and the events that there are.

Ids are global and events have dots; ours are paths, and names without dots. An event descriptor
stands for every event that it matches: of those that the document names, and of those that others
are said to send.
"""

import re
from collections.abc import Iterable
from typing import Any

from interlock.language.convert.naming import Names, local_names
from interlock.language.convert.result import Findings
from interlock.language.convert.scxml_actions import Block, Contents
from interlock.language.convert.scxml_tree import State, Transition, Tree
from interlock.language.names import RESERVED
from interlock.language.source import Mark

DONE = "done.state."
NAME_MAX = 512


class StateNames:
    """Gives each state its path.

    An id that begins with that of the state around it, and a dot or a dash, is read as a path.
    """

    def __init__(self, tree: Tree, findings: Findings, *, apart: bool) -> None:
        top = tree.root.children
        self.locals = local_names(top, lambda state: state.children, _own_id, apart=apart)
        self.paths: dict[State, str] = {tree.root: ""}
        for state in tree.every()[1:]:
            local = self.locals[state]
            around = self.paths[state.parent] if state.parent is not None else ""
            self.paths[state] = f"{around}.{local}" if around else local
            if local != _own_id(state):
                message = f"the state `{state.id}` is called `{local}` here"
                findings.note("renamed", message, state.mark)

    def inner(self, state: State, around: State) -> str:
        """Write a path as it is seen from a state around it."""
        return self.paths[state].removeprefix(f"{self.paths[around]}.")


def _own_id(state: State) -> str:
    around = state.parent.id if state.parent is not None else ""
    return re.sub(rf"^{re.escape(around)}[.-](?=.)", "", state.id) if around else state.id


class EventNames:
    """Gives each event a name, and lists the events that a transition hears.

    Attributes:
        all: every event, in order of appearance.
        names: event -> its name here.
    """

    def __init__(
        self, tree: Tree, contents: Contents, given: Iterable[str], findings: Findings
    ) -> None:
        self._findings = findings
        self._told: set[str] = set()
        self.all = list(_alphabet(tree, contents, given))
        self._given = Names(RESERVED)
        self.names = {event: self._given.give(event, "event") for event in self.all}
        self._place = {event: place for place, event in enumerate(self.all)}
        self._matched: dict[str, list[str]] = {
            plain_descriptor(descriptor): []
            for state in tree.every()
            for transition in state.transitions
            for descriptor in transition.events or ()
        }
        for event in self.all:
            if len(event) > NAME_MAX:
                message = f"the name of an event is longer than {NAME_MAX} characters"
                findings.refuse("budget-exceeded", message, tree.root.mark)
                findings.check()
            ends = [found.start() for found in re.finditer(r"\.", event)]
            for end in (*ends, len(event)):
                if event[:end] in self._matched:
                    self._matched[event[:end]].append(event)

    def name(self, event: str, mark: Mark | None = None) -> str:
        """Give the name of an event, and say so where it is another."""
        name = self.names[event]
        if event not in self._told:
            self._told.add(event)
            if name != event:
                message = f"the event `{event}` is called `{name}` here"
                self._findings.note("renamed", message, mark)
            if event.split(".")[0] == "error":
                message = f"`{event}` is raised by no engine here: only who sends it does"
                self._findings.note("platform-event", message, mark)
        return name

    def fresh(self, wanted: str) -> str:
        """Give the name of an event of our own."""
        return self._given.give(wanted, "event")

    def hooks(self, block: Block, mark: Mark, raised: Iterable[str] = ()) -> list[Any]:
        """Write what a block does, and then the events that are raised."""
        hooks = [
            {"raise": self.name(hook.name, mark)} if hook.raises else hook.name
            for hook in block.does
        ]
        return [*hooks, *({"raise": self.name(event, mark)} for event in raised)]

    def heard(self, transition: Transition) -> list[str]:
        """List the events that a transition hears, by whole words: `foo` hears `foo.bar`."""
        found: set[str] = set()
        for descriptor in transition.events or ():
            plain = plain_descriptor(descriptor)
            found.update(self._matched.get(plain, ()) if plain else self.all)
        return sorted(found, key=self._place.__getitem__)

    def by_event(self, transitions: Iterable[Transition]) -> dict[str, list[Transition]]:
        """List by event the transitions that hear it, in their order."""
        found: dict[str, list[Transition]] = {}
        for transition in transitions:
            for event in self.heard(transition):
                found.setdefault(event, []).append(transition)
        return found


def plain_descriptor(descriptor: str) -> str:
    """Give the event that a descriptor names, without the ending that means nothing."""
    return descriptor.removesuffix("*").rstrip(".")


def can_be_done(state: State) -> bool:
    """Say whether a state can be done: a final state inside, or every region that can be."""
    if state.kind == "parallel":
        return all(can_be_done(region) for region in state.regions)
    return any(child.kind == "final" for child in state.children)


def _alphabet(tree: Tree, contents: Contents, given: Iterable[str]) -> dict[str, None]:
    found: dict[str, None] = {}

    def add(block: Block | None) -> None:
        for hook in block.does if block else ():
            if hook.raises:
                found[hook.name] = None

    for state in tree.every():
        add(contents.entry.get(state))
        add(contents.exit.get(state))
        for transition in state.transitions:
            for descriptor in transition.events or ():
                if plain := plain_descriptor(descriptor):
                    found[plain] = None
            add(contents.moves.get(transition))
    found.update(dict.fromkeys(given))
    # The events of states that can be done are there for wildcards, whoever names them.
    found.update(dict.fromkeys(DONE + s.id for s in tree.every()[1:] if can_be_done(s)))
    return found
