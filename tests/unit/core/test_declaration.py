"""The checks of a declaration: each alone, many at once, and values that mean harm."""

import copy
import json
import sys
from collections import OrderedDict, UserDict, defaultdict
from enum import Enum, IntEnum, StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest

from interlock.core.declaration import (
    Defect,
    check_declaration,
    declaration_digest,
    declaration_text,
    path_text,
)
from interlock.core.machine import compile_machine
from interlock.core.text import Limits
from tests.support.machines import BATCH, MACHINES, arrow, declare


def found(value: Any, limits: Limits | None = None) -> list[tuple[str, str]]:
    """The defects as (code, path)."""
    defects = check_declaration(value, limits) if limits else check_declaration(value)
    return [(defect.code, path_text(defect.path)) for defect in defects]


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in BATCH.items() if name != key}


def with_transition(place: int, **changes: Any) -> dict[str, Any]:
    declaration = copy.deepcopy(BATCH)
    declaration["transitions"][place] |= changes
    return declaration


def lacking(place: int, key: str) -> dict[str, Any]:
    declaration = copy.deepcopy(BATCH)
    del declaration["transitions"][place][key]
    return declaration


@pytest.mark.parametrize("name", MACHINES)
def test_a_well_formed_declaration_has_no_defect(name: str) -> None:
    assert check_declaration(MACHINES[name]) == []


# The ten checks of Instantiate, in the order of the specification, each broken alone.

TEN = {
    "1 states is non-empty": (
        {**declare(["a"], []), "states": []},
        {("no-states", "states"), ("unknown-state", "initial_state")},
    ),
    "2 a state name is blank": (
        {**BATCH, "states": [*BATCH["states"], " \t"]},
        {("bad-name", "states[4]")},
    ),
    "2 a state name is empty": (
        {**BATCH, "states": [*BATCH["states"], ""]},
        {("bad-name", "states[4]")},
    ),
    "3 a state name stands twice": (
        {**BATCH, "states": [*BATCH["states"], "sampled"]},
        {("name-clash", "states[4]")},
    ),
    "4 the initial state is not a state": (
        {**BATCH, "initial_state": "sample"},
        {("unknown-state", "initial_state")},
    ),
    "5 the initial state is terminal": (
        {**declare(["a", "b"], [arrow("b", "go", "a")]), "terminal_states": ["a"]},
        {("initial-final", "initial_state")},
    ),
    "6 a from_state is not a state": (
        with_transition(0, from_state="nowhere"),
        {("unknown-state", "transitions[0].from_state")},
    ),
    "6 a to_state is not a state": (
        with_transition(2, to_state="nowhere"),
        {("unknown-state", "transitions[2].to_state")},
    ),
    "7 a transition leaves a terminal state": (
        with_transition(2, from_state="released"),
        {("final-with-transitions", "transitions[2].from_state")},
    ),
    "8 a (from_state, action) pair stands twice": (
        with_transition(2, action="release"),
        {("nondeterministic", "transitions[2]")},
    ),
    "9 an action is blank": (
        with_transition(0, action="\u2003"),
        {("bad-name", "transitions[0].action")},
    ),
    "9 an action is empty": (
        with_transition(0, action=""),
        {("bad-name", "transitions[0].action")},
    ),
    "10 a guard is blank": (
        with_transition(1, guard=" "),
        {("bad-name", "transitions[1].guard")},
    ),
    "10 a guard is empty": (
        with_transition(1, guard=""),
        {("bad-name", "transitions[1].guard")},
    ),
}

# DESIGN, section 4.4.
FORM = {
    "no mapping": (["a"], {("wrong-type", "")}),
    "null": (None, {("wrong-type", "")}),
    "text": (json.dumps(BATCH), {("wrong-type", "")}),
    "a terminal state that is not a state": (
        {**BATCH, "terminal_states": ["released", "rejected", "relesed"]},
        {("unknown-state", "terminal_states[2]")},
    ),
    "a terminal state twice": (
        {**BATCH, "terminal_states": ["released", "rejected", "released"]},
        {("name-clash", "terminal_states[2]")},
    ),
    "a terminal state that is blank": (
        {**BATCH, "terminal_states": ["released", "rejected", ""]},
        {("bad-name", "terminal_states[2]")},
    ),
    "no states": (without("states"), {("missing-key", "")}),
    "no transitions": (without("transitions"), {("missing-key", "")}),
    "no initial state": (without("initial_state"), {("missing-key", "")}),
    "no terminal states": (
        {**without("terminal_states")},
        {("missing-key", "")},
    ),
    "an unknown key": ({**BATCH, "note": "x"}, {("unknown-key", "note")}),
    "an unknown key of a transition": (
        with_transition(0, note="x"),
        {("unknown-key", "transitions[0].note")},
    ),
    "no from_state": (lacking(0, "from_state"), {("missing-key", "transitions[0]")}),
    "no action": (lacking(0, "action"), {("missing-key", "transitions[0]")}),
    "no to_state": (lacking(0, "to_state"), {("missing-key", "transitions[0]")}),
    "states that are a tuple": (
        {**BATCH, "states": tuple(BATCH["states"])},
        {("wrong-type", "states")},
    ),
    "states that are a mapping": (
        {**BATCH, "states": dict.fromkeys(BATCH["states"])},
        {("wrong-type", "states")},
    ),
    "states that are text": ({**BATCH, "states": "sampled"}, {("wrong-type", "states")}),
    "states that are null": ({**BATCH, "states": None}, {("wrong-type", "states")}),
    "transitions that are null": (
        {**BATCH, "transitions": None},
        {("wrong-type", "transitions")},
    ),
    "transitions that are a mapping": (
        {**BATCH, "transitions": {}},
        {("wrong-type", "transitions")},
    ),
    "terminal states that are text": (
        {**BATCH, "terminal_states": "released"},
        {("wrong-type", "terminal_states")},
    ),
    "a transition that is a list": (
        {**BATCH, "transitions": [*BATCH["transitions"], ["sampled", "go", "testing"]]},
        {("wrong-type", "transitions[3]")},
    ),
    "a state that is a number": (
        {**BATCH, "states": [*BATCH["states"], 1]},
        {("wrong-type", "states[4]")},
    ),
    "a state that is null": (
        {**BATCH, "states": [*BATCH["states"], None]},
        {("wrong-type", "states[4]")},
    ),
    "a state that is a list": (
        {**BATCH, "states": [*BATCH["states"], ["x"]]},
        {("wrong-type", "states[4]")},
    ),
    "an initial state that is null": (
        {**BATCH, "initial_state": None},
        {("wrong-type", "initial_state")},
    ),
    "an initial state that is a list": (
        {**BATCH, "initial_state": ["sampled"]},
        {("wrong-type", "initial_state")},
    ),
    "an initial state that is blank": (
        {**BATCH, "initial_state": " "},
        {("bad-name", "initial_state")},
    ),
    "an action that is a number": (
        with_transition(0, action=0),
        {("wrong-type", "transitions[0].action")},
    ),
    "an action that is null": (
        with_transition(0, action=None),
        {("wrong-type", "transitions[0].action")},
    ),
    "a guard that is false": (
        with_transition(1, guard=False),
        {("wrong-type", "transitions[1].guard")},
    ),
    "a guard that is a list": (
        with_transition(1, guard=["x"]),
        {("wrong-type", "transitions[1].guard")},
    ),
    "a from_state that is a mapping": (
        with_transition(0, from_state={"name": "sampled"}),
        {("wrong-type", "transitions[0].from_state")},
    ),
    "a to_state that is bytes": (
        with_transition(0, to_state=b"testing"),
        {("wrong-type", "transitions[0].to_state")},
    ),
    "a name with NUL": (
        {**BATCH, "states": [*BATCH["states"], "a\0b"]},
        {("bad-name", "states[4]")},
    ),
    "a name with a lone surrogate": (
        {**BATCH, "states": [*BATCH["states"], "a\ud800"]},
        {("bad-name", "states[4]")},
    ),
    "a name of 513 bytes": (
        {**BATCH, "states": [*BATCH["states"], "x" * 513]},
        {("bad-name", "states[4]")},
    ),
    "a name of 512 characters and more bytes": (
        {**BATCH, "states": [*BATCH["states"], "x" * 511 + "\u00e9"]},
        {("bad-name", "states[4]")},
    ),
    "a guard of 513 bytes": (
        with_transition(1, guard="x" * 513),
        {("bad-name", "transitions[1].guard")},
    ),
}


@pytest.mark.parametrize("name", TEN)
def test_each_of_the_ten_checks_alone(name: str) -> None:
    declaration, defects = TEN[name]
    assert set(found(declaration)) == defects


@pytest.mark.parametrize("name", FORM)
def test_each_fault_of_form_alone(name: str) -> None:
    declaration, defects = FORM[name]
    assert set(found(declaration)) == defects


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u00a0", "\u2003\u3000", "\x1c\x1f", "\x85"])
def test_white_space_of_any_kind_is_blank(blank: str) -> None:
    assert found({**BATCH, "initial_state": blank}) == [("bad-name", "initial_state")]


@pytest.mark.parametrize("name", ["\u200b", ".", "\x01", "\ufeff", " a ", "\u2060", "\x7f"])
def test_one_character_that_is_no_white_space_is_a_name(name: str) -> None:
    assert found(declare([name], [arrow(name, name, name, name)])) == []


def test_names_are_compared_byte_for_byte() -> None:
    for one, two in [("a", "A"), ("a", "a "), ("\u00e9", "e\u0301"), ("\u212b", "\u00c5")]:
        assert found(declare([one, two], [arrow(one, "x", two), arrow(one, "x ", two)])) == []
        assert found({**declare([one], []), "initial_state": two}) == [
            ("unknown-state", "initial_state")
        ]


def test_the_same_action_may_leave_each_state_once() -> None:
    states = ["a", "b", "c"]
    rows = [arrow(state, "go", "c") for state in states]
    assert found(declare(states, rows)) == []
    assert found(declare(states, [*rows, arrow("b", "go", "a", "guard")])) == [
        ("nondeterministic", "transitions[3]")
    ]


def test_null_is_no_guard() -> None:
    assert found(with_transition(0, guard=None)) == []


def test_no_transitions_and_no_terminal_states_are_fine() -> None:
    assert found(declare(["a"], [])) == []


def test_every_defect_is_reported_at_once_with_its_path() -> None:
    declaration = {
        "states": ["sampled", "", "testing", "testing", 7, "done", "x" * 513],
        "transitions": [
            {"from_state": "sampled", "action": " ", "to_state": "nowhere", "guard": ""},
            {"from_state": "done", "action": "reopen", "to_state": "testing"},
            {"from_state": "testing", "action": "finish", "to_state": "done"},
            {"from_state": "testing", "action": "finish", "to_state": "sampled"},
            {"from": "testing", "action": "retry", "to_state": "testing"},
            "testing --abort--> done",
            {},
        ],
        "initial_state": "done",
        "terminal_states": ["done", "dune", "done", None],
        "version": 2,
    }
    before = copy.deepcopy(declaration)
    assert found(declaration) == [
        ("unknown-key", "version"),
        ("bad-name", "states[1]"),
        ("name-clash", "states[3]"),
        ("wrong-type", "states[4]"),
        ("bad-name", "states[6]"),
        ("name-clash", "terminal_states[2]"),
        ("wrong-type", "terminal_states[3]"),
        ("unknown-state", "terminal_states[1]"),
        ("initial-final", "initial_state"),
        ("unknown-state", "transitions[0].to_state"),
        ("bad-name", "transitions[0].action"),
        ("bad-name", "transitions[0].guard"),
        ("final-with-transitions", "transitions[1].from_state"),
        ("nondeterministic", "transitions[3]"),
        ("unknown-key", "transitions[4].from"),
        ("missing-key", "transitions[4]"),
        ("wrong-type", "transitions[5]"),
        ("missing-key", "transitions[6]"),
        ("missing-key", "transitions[6]"),
        ("missing-key", "transitions[6]"),
    ]
    assert declaration == before


def test_missing_states_are_one_defect_not_one_for_each_mention() -> None:
    assert found(without("states")) == [("missing-key", "")]
    assert found({**BATCH, "states": 5}) == [("wrong-type", "states")]


def test_an_empty_mapping_lacks_all_four_keys() -> None:
    assert found({}) == [("missing-key", "")] * 4


def test_defects_say_where_what_and_what_was_meant() -> None:
    def said(value: Any) -> str:
        return str(check_declaration(value)[0])

    assert said({**BATCH, "initial_state": "sampeld"}) == (
        "initial_state: unknown state `sampeld` (did you mean `sampled`?)"
    )
    assert said(with_transition(2, action="release")) == (
        "transitions[2]: `release` from `testing` is declared twice (first at transitions[1])"
    )
    assert said({**BATCH, "final": []}) == (
        "final: unknown key `final` (did you mean `terminal_states`?)"
    )
    assert "did you mean `guard`?" in said(with_transition(0, cond="x"))
    assert "did you mean `from_state`?" in said(with_transition(0, form_state="x"))
    assert said(7) == "a declaration is a mapping, not int"


def test_a_defect_is_a_value() -> None:
    defect = Defect("unknown-state", ("transitions", 2, "to_state"), "message", None)
    assert defect.as_dict() == {
        "code": "unknown-state",
        "path": "transitions[2].to_state",
        "message": "message",
        "hint": None,
    }
    assert path_text(()) == ""
    assert path_text((0, "a")) == "[0].a"


def test_the_whole_declaration_has_a_size() -> None:
    size = len(declaration_text(BATCH).encode())
    assert found(BATCH, Limits(declaration_bytes=size)) == []
    assert found(BATCH, Limits(declaration_bytes=size - 1)) == [("budget-exceeded", "")]
    assert "bytes long" in check_declaration(BATCH, Limits(declaration_bytes=9))[0].message


def test_limits_of_names_can_be_set() -> None:
    assert found(declare(["abcde"], []), Limits(name_bytes=4)) == [
        ("bad-name", "states[0]"),
        ("bad-name", "initial_state"),
    ]


# Values that mean harm. `check_declaration` never raises, whatever it is given.


class Hostile:
    """Raises from everything that a check may try on a key or a value."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("touched")

    __str__ = __repr__ = __eq__ = __iter__ = __len__ = __getitem__ = __bool__ = _raise
    __lt__ = __contains__ = __format__ = _raise
    __hash__ = object.__hash__


class Word(str):
    """A text of another class."""

    __slots__ = ()


class State(StrEnum):
    SAMPLED = "sampled"
    TESTING = "testing"
    RELEASED = "released"


class OldState(str, Enum):  # noqa: UP042 - the old way is what is tested
    SAMPLED = "sampled"
    TESTING = "testing"
    RELEASED = "released"


class Number(IntEnum):
    ONE = 1


DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]
LOOP: list[Any] = []
LOOP.append(LOOP)

HOSTILE: dict[str, Any] = {
    "an object": object(),
    "a class": dict,
    "a function": print,
    "a hostile object": Hostile(),
    "a set": {1},
    "bytes": b"x",
    "not a number": float("nan"),
    "a huge number": 10**5000,
    "a nested list": [[[["a"]]]],
    "a very deep list": DEEP,
    "a list in itself": LOOP,
    "a mapping of lists": {"a": []},
    "an enumeration of numbers": Number.ONE,
    "a complex number": 1j,
    "a generator": (character for character in "abc"),
    "NUL": "\0",
    "lone surrogates": "\udcff\ud800",
    "a megabyte": "x" * 1_000_000,
    "many bytes": "\U0001f600" * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_anywhere_is_a_defect(name: str) -> None:
    value = HOSTILE[name]
    assert check_declaration(value)
    for key in BATCH:
        assert check_declaration({**BATCH, key: value}), key
    for key in ("states", "terminal_states", "transitions"):
        assert check_declaration({**BATCH, key: [value, *BATCH[key], value]}), key
    for key in ("from_state", "action", "to_state", "guard"):
        assert check_declaration(with_transition(0, **{key: value})), key
    assert check_declaration({**BATCH, "note": value})


UNHASHABLE = {
    "a nested list",
    "a very deep list",
    "a list in itself",
    "a mapping of lists",
    "a set",
}


@pytest.mark.parametrize("name", sorted(set(HOSTILE) - UNHASHABLE))
def test_a_hostile_key_is_a_defect(name: str) -> None:
    value = HOSTILE[name]
    defects = check_declaration({**BATCH, value: 1})
    assert [defect.code for defect in defects] == ["unknown-key"]
    assert len(str(defects[0])) < 500
    hostile = copy.deepcopy(BATCH)
    hostile["transitions"][0][value] = 1
    assert [defect.code for defect in check_declaration(hostile)] == ["unknown-key"]


@pytest.mark.parametrize("name", sorted(set(HOSTILE) - UNHASHABLE))
def test_what_is_said_of_a_hostile_key_can_be_printed(name: str) -> None:
    """A message that cannot be encoded breaks the log or the terminal that shows it."""
    for defect in check_declaration({**BATCH, HOSTILE[name]: 1}):
        str(defect).encode()
        json.dumps(defect.as_dict())


class Torn(UserDict):
    """A mapping that breaks when it is read."""

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)


class Endless(UserDict):
    def __iter__(self) -> Any:
        raise RuntimeError("no keys for you")


@pytest.mark.parametrize("kind", [Torn, Endless])
def test_a_mapping_that_breaks_when_read_is_a_defect(kind: Any) -> None:
    assert check_declaration(kind(BATCH))
    assert check_declaration({**BATCH, "transitions": [kind(BATCH["transitions"][0])]})


@pytest.mark.parametrize(
    "kind",
    [OrderedDict, UserDict, MappingProxyType, lambda value: defaultdict(list, value)],
    ids=["ordered", "user", "proxy", "default"],
)
def test_mappings_of_other_classes_are_mappings(kind: Any) -> None:
    declaration = kind({**BATCH, "transitions": [kind(row) for row in BATCH["transitions"]]})
    assert check_declaration(declaration) == []
    assert declaration_text(declaration) == declaration_text(BATCH)
    assert compile_machine(declaration).digest == compile_machine(BATCH).digest
    assert check_declaration(kind({})) != []


@pytest.mark.parametrize("text", [Word, State, OldState], ids=["subclass", "StrEnum", "Enum"])
def test_a_text_of_another_class_is_its_text(text: Any) -> None:
    """N06: an enumeration stands for its value, never for its name."""
    declaration = copy.deepcopy(BATCH)
    declaration["states"][0] = text("sampled")
    declaration["initial_state"] = text("sampled")
    declaration["transitions"][0]["from_state"] = text("sampled")
    declaration["transitions"][0]["to_state"] = text("testing")
    declaration["terminal_states"][0] = text("released")
    assert check_declaration(declaration) == []
    assert declaration_text(declaration) == declaration_text(BATCH)


def test_keys_of_another_class_are_their_text() -> None:
    declaration: dict[Any, Any] = {Word(key): value for key, value in BATCH.items()}
    assert check_declaration(declaration) == []
    assert declaration_text(declaration) == declaration_text(BATCH)


def test_the_text_keeps_order_and_says_everything() -> None:
    for machine in MACHINES.values():
        text = declaration_text(machine)
        assert repr(json.loads(text)) == repr(machine)
        assert len(declaration_digest(text)) == 64
    turned = dict(reversed(BATCH.items()))
    assert declaration_text(turned) != declaration_text(BATCH)


def work_of(call: Any) -> int:
    """Count the Python calls that a call makes: a measure that no slow machine disturbs."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_the_work_of_checking_grows_with_the_size_not_with_its_square() -> None:
    """A hint for each of many unknown names, sought among many known ones, would take minutes."""

    def work(number: int) -> int:
        states = [f"state number {place} of the machine" for place in range(number)]
        rows = [
            arrow(f"state number {place} of a machine", "go", f"state nummer {place} of it")
            for place in range(number)
        ]
        assert len(check_declaration(declare(states, rows))) == 2 * number
        return work_of(lambda: check_declaration(declare(states, rows)))

    assert work(60) < 3 * work(30)


def test_a_large_sound_declaration_is_sound() -> None:
    states = [f"s{place}" for place in range(20_000)]
    rows = [arrow(one, "go", two) for one, two in pairwise(states)]
    assert check_declaration(declare(states, rows)) == []
