"""Example declarations, and walks over a declaration that know nothing of the code under test.

`MACHINES` holds machines of every shape and with every kind of odd name; tests are generated from
them, so a machine added here is tested everywhere. Each is well formed.
"""

import json
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Declaration: TypeAlias = dict[str, Any]

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def arrow(from_state: str, action: str, to_state: str, guard: str | None = None) -> dict[str, Any]:
    row = {"from_state": from_state, "action": action, "to_state": to_state}
    return row if guard is None else {**row, "guard": guard}


def declare(
    states: list[str],
    transitions: list[dict[str, Any]],
    initial_state: str | None = None,
    terminal_states: list[str] | None = None,
) -> Declaration:
    """Write a declaration; the first state is the initial one unless another is named."""
    return {
        "states": states,
        "transitions": transitions,
        "initial_state": states[0] if initial_state is None else initial_state,
        "terminal_states": terminal_states or [],
    }


def chain(names: list[str], action: str = "next") -> Declaration:
    """One state after the other; the last is terminal."""
    steps = [arrow(one, action, two) for one, two in pairwise(names)]
    return declare(names, steps, terminal_states=names[-1:])


def ring(names: list[str], actions: list[str] | None = None) -> Declaration:
    """Round and round, for ever: a state named by odd text, left by an action of the same text."""
    targets = names[1:] + names[:1]
    acts = actions or names
    steps = [arrow(one, act, two) for one, act, two in zip(names, acts, targets, strict=True)]
    return declare(names, steps)


# The example of the State Machine atom, "Flow", as corrected there.
BATCH = declare(
    ["sampled", "testing", "released", "rejected"],
    [
        arrow("sampled", "begin-testing", "testing"),
        arrow("testing", "release", "released", "QP-sign-off"),
        arrow("testing", "reject-batch", "rejected"),
    ],
    terminal_states=["released", "rejected"],
)

# Goes on for ever, so a test can fire as often as it likes: `go` and `go` again.
TOGGLE = declare(["off", "on"], [arrow("off", "go", "on"), arrow("on", "go", "off")])

# What SQL, JSON, shells and formats give a meaning to; here it is only text.
ODD_NAMES = [
    "'",
    '"',
    "`",
    "it's",
    '"quoted"',
    "''; DROP TABLE history; --",
    "'); DELETE FROM instances; --",
    "?1",
    ":tenant",
    "@x",
    "$.initial_state",
    "%",
    "_",
    "a%b_c",
    "*",
    "back\\slash",
    "\\u0041",
    "\\",
    "/",
    "a.b",
    "null",
    "NULL",
    "true",
    "{}",
    "[]",
    '{"to_state": "x"}',
    '["a", "b"]',
    '"',
    "${HOME}",
    "{0}",
    "%s",
    "<script>",
    "&amp;",
    "-- comment",
    "/* comment */",
]

NUMERIC_NAMES = [
    "1",
    "01",
    "1.0",
    "1e0",
    "0x1",
    "+1",
    "-1",
    "NaN",
    "Infinity",
    "9223372036854775808",
]

SPACED_NAMES = ["pay", "pay ", " pay", "pay\t", "pay\n", "pay\u00a0", "pay\u200b", "PAY", "p ay"]

UNICODE_NAMES = [
    COMPOSED,
    DECOMPOSED,
    "\u212b",  # ANGSTROM SIGN, which normalises to the next one
    "\u00c5",
    "\ufb01ne",  # a ligature
    "fine",
    "\u0130",  # folds to two characters
    "i\u0307",
    "stra\u00dfe",
    "STRASSE",
    "\U0001f469\u200d\U0001f52c",
    "\u202eright-to-left",
    "\ufeffmarked",
    "\ufffd",
    "\ufffe",
    "\U0010ffff",
    "\u2028line",
    "\x01",
    "\x1b[31m",
    "\x7f",
    "\x80",
    "\u4e2d\u6587",
]

LONG_NAMES = ["x" * 512, "x" * 511 + "y", "\u00e9" * 256, "\U0001f600" * 128]


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


_EXAMPLES = Path(__file__).parents[2] / "examples"

MACHINES: dict[str, Declaration] = {
    **{path.name: json.loads(path.read_text()) for path in _EXAMPLES.glob("*.machine.json")},
    "batch": BATCH,
    "toggle": TOGGLE,
    "still": declare(["here", "there"], []),
    "still-with-end": declare(["here", "gone"], [], terminal_states=["gone"]),
    "one-state": declare(["only"], [arrow("only", "again", "only")]),
    "purchase-order": declare(
        ["draft", "submitted", "approved", "fulfilled", "cancelled"],
        [
            arrow("draft", "submit", "submitted"),
            arrow("draft", "cancel", "cancelled"),
            arrow("submitted", "approve", "approved", "budget-holder"),
            arrow("submitted", "return", "draft"),
            arrow("submitted", "cancel", "cancelled"),
            arrow("approved", "fulfil", "fulfilled"),
        ],
        terminal_states=["fulfilled", "cancelled"],
    ),
    "change-request": declare(
        ["open", "in-review", "merged", "deployed", "closed"],
        [
            arrow("open", "review", "in-review"),
            arrow("in-review", "comment", "in-review"),
            arrow("in-review", "merge", "merged", "two-approver-sign-off"),
            arrow("in-review", "close", "closed"),
            arrow("open", "close", "closed"),
            arrow("merged", "deploy", "deployed", "window-open"),
        ],
        terminal_states=["deployed", "closed"],
    ),
    "initial-last": declare(["end", "middle", "start"], [arrow("start", "go", "middle")], "start"),
    "unreachable": declare(
        ["a", "b", "island", "islet"],
        [arrow("a", "go", "b"), arrow("island", "row", "islet"), arrow("islet", "row", "a")],
        terminal_states=["b"],
    ),
    "thirty-states": chain([f"step-{number:02}" for number in range(30)]),
    "ring-of-twelve": ring([f"hour-{number}" for number in range(12)], ["tick"] * 12),
    # Every state knows every action; each leads to another place, some only with their guard.
    "complete": declare(
        [f"s{number}" for number in range(6)],
        [
            arrow(f"s{one}", f"to-{two}", f"s{two}", f"g{two}" if (one + two) % 3 == 0 else None)
            for one in range(6)
            for two in range(6)
        ],
    ),
    # One action with another meaning, and another guard, in each state.
    "same-action": declare(
        ["a", "b", "c", "d"],
        [
            arrow("a", "go", "b"),
            arrow("b", "go", "c", "g"),
            arrow("c", "go", "d", "h"),
        ],
        terminal_states=["d"],
    ),
    "all-guarded": declare(
        ["a", "b", "c"],
        [arrow("a", "x", "b", "one"), arrow("b", "x", "a", "two"), arrow("b", "y", "c", "one")],
        terminal_states=["c"],
    ),
    # `guard: null` says the same as no guard, and comes back as it was said.
    "null-guard": declare(
        ["a", "b"], [{"from_state": "a", "action": "go", "to_state": "b", "guard": None}]
    ),
    # The same words for states, actions and guards.
    "same-words": declare(["a", "b"], [arrow("a", "b", "b", "a"), arrow("b", "a", "a", "b")]),
    "odd-names": ring(_distinct(ODD_NAMES)),
    "numeric-names": ring(NUMERIC_NAMES),
    "spaced-names": ring(SPACED_NAMES),
    "unicode-names": ring(UNICODE_NAMES),
    "long-names": ring(LONG_NAMES),
    "odd-guards": declare(
        ["a"], [arrow("a", f"act {name}", "a", name) for name in _distinct(ODD_NAMES)]
    ),
    # Only the bytes tell these apart.
    "look-alikes": declare(
        [COMPOSED, DECOMPOSED, "open"],
        [
            arrow("open", "pay", COMPOSED),
            arrow("open", "pay ", DECOMPOSED),
            arrow(COMPOSED, "pay", "open", "g"),
            arrow(DECOMPOSED, "pay ", "open", "g "),
        ],
        "open",
    ),
}


class Pair(NamedTuple):
    """A state and an action, and the transition declared for them, if any."""

    state: str
    action: str
    declared: dict[str, Any] | None


def actions_of(declaration: Declaration) -> list[str]:
    """List the actions of a machine, and some that it does not have."""
    own = dict.fromkeys(row["action"] for row in declaration["transitions"])
    near = [f"{action} " for action in own] + [action.swapcase() for action in own]
    strange = ["no such action", declaration["initial_state"], "*", "%"]
    return list(dict.fromkeys([*own, *near, *strange]))


def pairs_of(declaration: Declaration) -> Iterator[Pair]:
    """Give every (state, action) pair, valid and invalid."""
    declared = {(row["from_state"], row["action"]): row for row in declaration["transitions"]}
    for state in declaration["states"]:
        for action in actions_of(declaration):
            yield Pair(state, action, declared.get((state, action)))


def paths_of(declaration: Declaration) -> dict[str, list[dict[str, Any]]]:
    """Give a shortest run of transitions from the initial state to each state there is a way to."""
    paths: dict[str, list[dict[str, Any]]] = {declaration["initial_state"]: []}
    waiting = deque(paths)
    while waiting:
        state = waiting.popleft()
        for row in declaration["transitions"]:
            if row["from_state"] == state and row["to_state"] not in paths:
                paths[row["to_state"]] = [*paths[state], row]
                waiting.append(row["to_state"])
    return paths
