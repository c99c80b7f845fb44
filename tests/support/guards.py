"""What tests of the schema's guards try on every database: stray values, odd entries, forgeries."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import interlock
from interlock.store.store import Store
from tests.support import orders
from tests.support.machines import BATCH, TOGGLE, arrow, declare

# What a column may be changed to. A few other rows of the same table lend theirs, too.
STRAY_VALUES: list[Any] = [None, "", "x", "released", 0, 2, 2**63 - 1, 1.5, b"x" * 32]
LENT_MAX = 4

LAWFUL = [("sampled", BATCH), ("testing", BATCH), ("on", TOGGLE)]


def fill(store: Store) -> None:
    """Write rows into every table: instances new, under way and ended, two declarations.

    Two of them are an engine's, with data that changed and a timer that runs.
    """
    ended = store.instantiate(BATCH, "ann", "batch-1", {"line": 4}, idempotency_key="birth-1")
    store.fire(ended, "begin-testing", "bob", reason="arrived", idempotency_key="k-1")
    store.fire(ended, "release", "qp", guard_satisfied=True, idempotency_key="k-2")
    under_way = store.instantiate(BATCH, idempotency_key="birth-2")
    store.fire(under_way, "begin-testing", correlation_id="c", causation_id="d", worker_id="w")
    store.instantiate(BATCH, subject_ref="batch-3")
    toggle = store.instantiate(TOGGLE, instance_metadata=["x"])
    store.fire_many([interlock.Fire(toggle, "go", reason=f"round {n}") for n in range(3)])
    engine = orders.engine_of(store)
    engine.tick()
    orders.begin(engine)
    orders.begin(engine, 2).send("submit", {"qty": 3})


def strays(rows: list[dict[str, Any]], column: str) -> list[Any]:
    """List the values to try in a column: stray ones, and those of other rows."""
    return [*STRAY_VALUES, *list({row[column]: None for row in rows})[-LENT_MAX:]]


def lawful_entry(
    columns: Iterable[str], instance: dict[str, Any], declared: dict[str, Any]
) -> dict[str, Any]:
    """Write the entry that takes an instance along a declared transition from where it stands."""
    entry: dict[str, Any] = dict.fromkeys(columns)
    entry.update(
        tenant="",
        root=instance["root"],
        instance_id=instance["id"],
        sequence_number=instance["next_sequence_number"],
        transition_id="t-new",
        from_state=declared["from_state"],
        action=declared["action"],
        to_state=declared["to_state"],
        fired_at=instance["instantiated_at"] + 1,
        guard_satisfied=None if declared["guard"] is None else 1,
        entry_digest=b"d" * 32,
    )
    return entry


def odd_entries(entry: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Change every column of an entry, then every two of those that say how it moves."""
    odd: dict[str, list[Any]] = {column: strays(rows, column) for column in entry}
    odd["guard_satisfied"] += [0, 2, True, "1"]
    odd["sequence_number"] += [entry["sequence_number"] + 1, entry["sequence_number"] - 1]
    for column, values in odd.items():
        for value in values:
            yield {**entry, column: value}
    moving = ["instance_id", "sequence_number", "from_state", "action", "to_state"]
    for place, one in enumerate(moving):
        for two in moving[place + 1 :]:
            for first in {row[one] for row in rows}:
                for second in {row[two] for row in rows}:
                    yield {**entry, one: first, two: second}


def runs_from(one: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Put entries of an instance that goes on and off after one another, rightly and wrongly."""
    number = one["sequence_number"]
    two = {**one, "sequence_number": number + 1, "from_state": "off", "to_state": "on"}
    three = {**one, "sequence_number": number + 2}
    return [[one, two, three], [two, one], [one, one], [one, three], [one, two, two, three]]


class Forgery(NamedTuple):
    text: str
    digest: str = "forged"


def forged(declaration: object) -> Forgery:
    return Forgery(json.dumps(declaration))


A_TO_B = arrow("a", "go", "b")

FORGERIES = {
    "no states": forged(declare([], [], "a")),
    "states that are no list": forged({**declare(["a"], []), "states": {"a": 1}}),
    "a blank state": forged(declare([" "], [arrow(" ", "go", " ")])),
    "an empty state": forged(declare([""], [arrow("", "go", "")])),
    "a state twice": forged(declare(["a", "b", "a"], [A_TO_B])),
    "a state that is no text": forged(declare(["a", 1], [A_TO_B])),  # type: ignore[list-item]
    "an initial state that is not declared": forged(declare(["a"], [arrow("z", "go", "a")], "z")),
    "an initial state that is terminal": forged(declare(["a", "b"], [A_TO_B], "a", ["a", "b"])),
    "an initial state that is a number": forged(
        {**declare(["1"], [arrow("1", "go", "1")]), "initial_state": 1}
    ),
    "a way in from an unknown state": forged(declare(["a"], [arrow("z", "go", "a")])),
    "a way to an unknown state": forged(declare(["a"], [arrow("a", "go", "z")])),
    "a way out of a terminal state": forged(
        declare(["a", "b"], [A_TO_B, arrow("b", "go", "a")], terminal_states=["b"])
    ),
    "a terminal state that is not declared": forged(
        declare(["a", "b"], [A_TO_B], terminal_states=["b", "z"])
    ),
    "terminal states that are no list": forged(
        {**declare(["a", "b"], [A_TO_B, arrow("b", "go", "a")]), "terminal_states": "b"}
    ),
    "a trigger twice": forged(declare(["a", "b"], [A_TO_B, arrow("a", "go", "a")])),
    "a blank action": forged(declare(["a", "b"], [arrow("a", " ", "b")])),
    "an action that is a number": forged(
        declare(["a", "b"], [{"from_state": "a", "action": 1, "to_state": "b"}])
    ),
    "a blank guard": forged(declare(["a", "b"], [arrow("a", "go", "b", "")])),
    "a guard that is a number": forged(declare(["a", "b"], [{**A_TO_B, "guard": 7}])),
    "no target": forged(declare(["a", "b"], [{"from_state": "a", "action": "go"}])),
    "no source": forged(declare(["a", "b"], [{"action": "go", "to_state": "b"}])),
    "no action": forged(declare(["a", "b"], [{"from_state": "a", "to_state": "b"}])),
    "a target that is null": forged(declare(["a", "b"], [{**A_TO_B, "to_state": None}])),
    "transitions that are a mapping": forged(
        {**declare(["a", "b"], []), "transitions": {"0": A_TO_B}}
    ),
    "no transitions": forged({"states": ["a"], "initial_state": "a", "terminal_states": []}),
    "no terminal states": forged({"states": ["a"], "initial_state": "a", "transitions": []}),
    "an unknown key": forged({**declare(["a", "b"], [A_TO_B]), "note": 1}),
    "an unknown key of a transition": forged(declare(["a", "b"], [{**A_TO_B, "when": "x"}])),
    "a key twice": Forgery(
        '{"states":["a","b"],"transitions":[],"initial_state":"a","terminal_states":[],'
        '"initial_state":"b"}'
    ),
    "a key of a transition twice": Forgery(
        '{"states":["a","b"],"transitions":[{"from_state":"a","action":"go","to_state":"b",'
        '"to_state":"a"}],"initial_state":"a","terminal_states":[]}'
    ),
    "two keys in one": Forgery(
        '{"states":["a","b"],"initial_state,states":[],"transitions":[],"initial_state":"a",'
        '"terminal_states":[]}'
    ),
    "an escaped key beside its like": Forgery(
        '{"states":["a","b"],"transitions":[],"initial_state":"a","terminal_states":[],'
        '"initi\\u0061l_state":"b"}'
    ),
    "an escaped key of a transition beside its like": Forgery(
        '{"states":["a","b"],"transitions":[{"from_state":"a","action":"go","to_state":"b",'
        '"to_st\\u0061te":"a"}],"initial_state":"a","terminal_states":[]}'
    ),
    "JSON of another kind": Forgery(
        "{states:['a','b'],transitions:[],initial_state:'b',terminal_states:[],}"
    ),
    "a comment": Forgery(json.dumps(declare(["a", "b"], [A_TO_B])) + "/* and so on */"),
    "two of them": Forgery(json.dumps(declare(["a"], [])) * 2),
    "a blank state that is not of ASCII": forged(
        declare(["\u2003"], [arrow("\u2003", "go", "\u2003")])
    ),
    "no mapping": forged(["a"]),
    "no JSON": Forgery("{"),
    "nothing": Forgery(""),
}
