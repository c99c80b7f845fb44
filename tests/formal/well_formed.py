"""When a declaration is well formed, and declarations that are and are not.

The predicates are the ten checks of Instantiate, and two more because "The declaration" calls the
terminal states a subset of the states, and a set. They take declarations of the right shape; what
has another shape is for the unit tests.

Source: the State Machine atom, "The declaration" and Instantiate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

Declaration: TypeAlias = Mapping[str, Any]


def states_not_empty(value: Declaration) -> bool:
    return len(value["states"]) > 0


def state_names_not_blank(value: Declaration) -> bool:
    return all(name.strip() for name in value["states"])


def state_names_unique(value: Declaration) -> bool:
    return len(set(value["states"])) == len(value["states"])


def initial_is_a_state(value: Declaration) -> bool:
    return value["initial_state"] in value["states"]


def initial_not_terminal(value: Declaration) -> bool:
    return value["initial_state"] not in value["terminal_states"]


def ends_are_states(value: Declaration) -> bool:
    return all(
        trans[end] in value["states"]
        for trans in value["transitions"]
        for end in ("from_state", "to_state")
    )


def terminal_no_outgoing(value: Declaration) -> bool:
    return all(
        trans["from_state"] not in value["terminal_states"] for trans in value["transitions"]
    )


def triggers_unique(value: Declaration) -> bool:
    triggers = [(trans["from_state"], trans["action"]) for trans in value["transitions"]]
    return len(set(triggers)) == len(triggers)


def actions_not_blank(value: Declaration) -> bool:
    return all(trans["action"].strip() for trans in value["transitions"])


def guards_not_blank(value: Declaration) -> bool:
    labels = [trans.get("guard") for trans in value["transitions"]]
    return all(label.strip() for label in labels if label is not None)


def terminal_are_states(value: Declaration) -> bool:
    return all(name in value["states"] for name in value["terminal_states"])


def terminal_names_unique(value: Declaration) -> bool:
    return len(set(value["terminal_states"])) == len(value["terminal_states"])


WELL_FORMED: tuple[Callable[[Declaration], bool], ...] = (
    states_not_empty,
    state_names_not_blank,
    state_names_unique,
    initial_is_a_state,
    initial_not_terminal,
    ends_are_states,
    terminal_no_outgoing,
    triggers_unique,
    actions_not_blank,
    guards_not_blank,
    terminal_are_states,
    terminal_names_unique,
)


def raw_declarations(
    states: int, terminal: int, transitions: Sequence[Sequence[Declaration]]
) -> Iterator[dict[str, Any]]:
    """List declarations of the right shape, well formed or not.

    Args:
        states: the longest list of states; their names are `s0`, `s1` and a blank, repeated or not.
        terminal: the longest list of terminal states, of the same names.
        transitions: the lists of transitions to try with each.
    """
    names = ("s0", "s1", " ")
    for listed, initial, ends, moves in product(
        _lists(names, states), names, _lists(names, terminal), transitions
    ):
        yield {
            "states": [*listed],
            "transitions": [*moves],
            "initial_state": initial,
            "terminal_states": [*ends],
        }


def raw_transitions(
    ends: Sequence[str], actions: Sequence[str], guards: Sequence[str | None]
) -> list[dict[str, Any]]:
    """List transitions, sound or not; the guard is also left out."""
    return [
        {"from_state": one, "action": action, "to_state": other, **guard}
        for one, action, other in product(ends, actions, ends)
        for guard in ({}, *({"guard": label} for label in guards))
    ]


def _lists(names: Sequence[str], longest: int) -> list[tuple[str, ...]]:
    return [found for size in range(longest + 1) for found in product(names, repeat=size)]
