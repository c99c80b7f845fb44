"""A declaration proposed from a log: what really happens, as a machine to start from.

A state is named after the action that last happened, every step that some case took is a
transition, and the states that no case ever left are terminal. Each case of the log conforms to it.

    discover(read_log("permits.csv"))["transitions"][0]
    # {"from_state": "start", "action": "receive", "to_state": "receive"}
"""

from collections.abc import Iterable
from itertools import chain, count
from typing import Any

from interlock.core.text import LIMITS, text_fault
from interlock.eventlog.event import Event
from interlock.eventlog.staging import Staging


def discover(events: Iterable[Event]) -> dict[str, Any]:
    """Propose a declaration; its parts stand in the order of first appearance, case by case.

    An event without a case, or whose action can name no state, is left out. An initial state
    `start` comes before the first action; it is `start-2` and so on where an action has that name.
    """
    moves: dict[tuple[str | None, str], None] = {}  # None is the initial state
    state: str | None = None
    with Staging(events) as staging:
        for case, position, event in staging.steps():
            if position == 1:
                state = None
            if not _is_blank(case.name) and not text_fault(event.action, LIMITS.name_bytes):
                moves[state, event.action] = None
                state = event.action
    actions = dict.fromkeys(action for _, action in moves)
    left = {state for state, _ in moves}
    names = chain(["start"], (f"start-{number}" for number in count(2)))
    start = next(name for name in names if name not in actions)
    return {
        "states": [start, *actions],
        "transitions": [
            {
                "from_state": start if state is None else state,
                "action": action,
                "to_state": action,
            }
            for state, action in moves
        ],
        "initial_state": start,
        "terminal_states": [action for action in actions if action not in left],
    }


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
