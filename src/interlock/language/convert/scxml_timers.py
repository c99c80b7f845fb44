"""Events that a state sends itself after a time, and cancels when it is left: timers.

    <state id="open">
      <onentry><send event="late" delay="3s" id="t"/></onentry>        after: {3s: closed}
      <onexit><cancel sendid="t"/></onexit>
      <transition event="late" target="closed"/>
    </state>

Only this shape is one: an event that is not cancelled could arrive wherever the machine is by then,
and one that others hear as well, or that is raised elsewhere too, is more than a timer.
"""

from collections.abc import Iterator

from interlock.language.convert.result import Findings
from interlock.language.convert.scxml_actions import Contents, Delayed
from interlock.language.convert.scxml_names import EventNames
from interlock.language.convert.scxml_tree import State, Tree
from interlock.language.duration import DurationError, parse_duration

UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"))


class Timers:
    """Finds the timers of each state; a delayed event that is none is refused."""

    def __init__(
        self, tree: Tree, contents: Contents, events: EventNames, findings: Findings
    ) -> None:
        self._found: dict[State, dict[str, str]] = {}
        heard = _heard(tree, events)
        raised = {hook.name for block in contents.blocks() for hook in block.does}
        for state in tree.every():
            cancelled = {id for id, _ in contents.exit[state].cancelled}
            names = self._found.setdefault(state, {})
            for sent in contents.entry[state].delayed:
                name = _duration(sent, state)
                alone = heard.get(sent.event) == {state} and sent.event not in raised
                if sent.id not in cancelled or not alone or name is None or name in names:
                    _refuse(sent, findings)
                else:
                    names[name] = sent.event
            used = {sent.id for sent in contents.entry[state].delayed}
            for id, mark in contents.exit[state].cancelled:
                if id not in used:
                    message = f"`<cancel>` of `{id}`, which `{state.id}` does not send"
                    findings.refuse("cancel", message, mark)
        elsewhere = [*contents.exit.values(), *contents.moves.values()]
        for block in elsewhere:
            for sent in block.delayed:
                _refuse(sent, findings)
        for block in [*contents.entry.values(), *contents.moves.values()]:
            for id, mark in block.cancelled:
                message = f"`<cancel>` of `{id}` other than when a state is left"
                findings.refuse("cancel", message, mark)

    def of(self, state: State) -> Iterator[tuple[str, str]]:
        """Give the timers of a state, each by its duration, with the event that it sends."""
        yield from self._found[state].items()


def _duration(sent: Delayed, state: State) -> str | None:
    """Write a delay as a duration: as `to_scxml` names it, or in the largest unit that fits.

    Gives None where the language has no such duration.
    """
    told = sent.event.removeprefix(f"after.{state.id}.")
    try:
        if parse_duration(told) == sent.after_us:
            return told
    except DurationError:
        pass
    for size, unit in UNITS:
        if sent.after_us % size == 0:
            return f"{sent.after_us // size}{unit}"
    return f"{sent.after_us // 1000}ms" if sent.after_us % 1000 == 0 else None


def _heard(tree: Tree, events: EventNames) -> dict[str, set[State]]:
    found: dict[str, set[State]] = {}
    for state in tree.every():
        for transition in state.transitions:
            for event in events.heard(transition):
                found.setdefault(event, set()).add(state)
    return found


def _refuse(sent: Delayed, findings: Findings) -> None:
    message = f"the delayed event `{sent.event}` is more than a timer of one state"
    hint = "a timer is sent as its state is entered, cancelled as it is left, and heard there alone"
    findings.refuse("delayed-send", message, sent.mark, hint=hint)
