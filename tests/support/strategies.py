"""Hypothesis strategies: names, declarations, and values that are almost right."""

import os
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tests.support.machines import (
    LONG_NAMES,
    MACHINES,
    NUMERIC_NAMES,
    ODD_NAMES,
    SPACED_NAMES,
    UNICODE_NAMES,
    Declaration,
)

_POOL = [*ODD_NAMES, *NUMERIC_NAMES, *SPACED_NAMES, *UNICODE_NAMES, *LONG_NAMES, "a", "b", "go"]


def _acceptable(text: str) -> bool:
    return bool(text.strip()) and len(text.encode()) <= 512


def examples(number: int) -> settings:
    """Try so many examples, or many more where a search was asked for."""
    searching = os.environ.get("HYPOTHESIS_PROFILE") == "search"
    return settings(max_examples=number * (20 if searching else 1))


# Made once: to build a strategy costs more than to draw from it.


@cache
def names() -> st.SearchStrategy[str]:
    """Acceptable names, mostly odd ones."""
    free = st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
    ).filter(_acceptable)
    return st.sampled_from(_POOL) | free


@cache
def blanks() -> st.SearchStrategy[str]:
    return st.text(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u3000", max_size=4)


@cache
def malformed_texts() -> st.SearchStrategy[Any]:
    """What is no acceptable text anywhere (None is left out: that is "not supplied")."""
    return (
        blanks()
        | st.sampled_from(["a\0b", "\0", "\ud800", "x\udfff", "x" * 70_000, "\u00e9" * 40_000])
        | st.sampled_from([0, 1, True, False, 1.5, b"text", ("a",), frozenset(), object])
    )


_SOME_NAMES = st.lists(names(), min_size=1, max_size=5, unique=True)
_SOME_STATES = st.lists(names(), min_size=1, max_size=8, unique=True)
_GUARDS = st.none() | names()


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    """Well-formed machines of any shape."""
    states = draw(_SOME_STATES)
    initial = draw(st.sampled_from(states))
    others = [state for state in states if state != initial]
    terminal = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    sources = [state for state in states if state not in terminal]
    actions = draw(_SOME_NAMES)
    triggers = draw(
        st.lists(
            st.tuples(st.sampled_from(sources), st.sampled_from(actions)), unique=True, max_size=20
        )
    )
    transitions: list[dict[str, Any]] = []
    for from_state, action in triggers:
        row: dict[str, Any] = {
            "from_state": from_state,
            "action": action,
            "to_state": draw(st.sampled_from(states)),
        }
        guard = draw(_GUARDS)
        if guard is not None or draw(st.booleans()):
            row["guard"] = guard
        transitions.append(turned(draw, row))
    whole: Declaration = {
        "states": states,
        "transitions": transitions,
        "initial_state": initial,
        "terminal_states": terminal,
    }
    return turned(draw, whole)


def turned(draw: st.DrawFn, mapping: dict[str, Any]) -> dict[str, Any]:
    """Give a mapping its keys in another order."""
    items, start = list(mapping.items()), draw(st.integers(0, len(mapping) - 1))
    return dict(items[start:] + items[:start])


@cache
def machines() -> st.SearchStrategy[Declaration]:
    """The examples, and machines drawn at random."""
    return st.sampled_from(list(MACHINES.values())) | declarations()
