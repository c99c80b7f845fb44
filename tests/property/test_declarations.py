"""`check_declaration` against the ten checks written plainly, on machines that are almost right."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.declaration import (
    check_declaration,
    declaration_digest,
    declaration_text,
    path_text,
)
from interlock.core.machine import compile_machine
from tests.support.machines import Declaration
from tests.support.strategies import blanks, declarations, examples, machines, malformed_texts

KEYS = {"states", "transitions", "initial_state", "terminal_states"}
NEEDED = {"from_state", "action", "to_state"}


def is_name(value: Any) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    try:
        return len(value.encode()) <= 512
    except UnicodeEncodeError:
        return False


def well_formed(value: Any) -> bool:
    """Apply the ten checks and DESIGN, section 4.4."""
    if not isinstance(value, dict) or set(value) != KEYS:
        return False
    states, terminal, rows = value["states"], value["terminal_states"], value["transitions"]
    if not all(isinstance(part, list) for part in (states, terminal, rows)):
        return False
    if not all(map(is_name, [*states, *terminal])) or not is_name(value["initial_state"]):
        return False
    if not all(isinstance(row, dict) and NEEDED <= set(row) <= NEEDED | {"guard"} for row in rows):
        return False
    if not all(is_name(row[key]) for row in rows for key in NEEDED):
        return False
    guards = [row["guard"] for row in rows if row.get("guard") is not None]
    triggers = [(row["from_state"], row["action"]) for row in rows]
    return (
        bool(states)
        and all(map(is_name, guards))
        and len(set(states)) == len(states)
        and len(set(terminal)) == len(terminal)
        and set(terminal) <= set(states)
        and value["initial_state"] in set(states) - set(terminal)
        and all({row["from_state"], row["to_state"]} <= set(states) for row in rows)
        and not {row["from_state"] for row in rows} & set(terminal)
        and len(set(triggers)) == len(triggers)
    )


STRAY: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    blanks(),
    malformed_texts(),
    st.sampled_from([[], {}, [[]], {"a": 1}, "a", ["a"], [None]]),
)


@st.composite
def almost(draw: st.DrawFn) -> Any:
    """A well-formed machine with up to three changes at random places."""
    declaration: Any = copy.deepcopy(draw(declarations()))
    for _ in range(draw(st.integers(0, 3))):
        spoil(draw, declaration)
    return declaration


def spoil(draw: st.DrawFn, declaration: Declaration) -> None:
    places: list[tuple[Any, Any]] = [(declaration, key) for key in declaration]
    for part in ("states", "terminal_states", "transitions"):
        listed = declaration.get(part)
        if isinstance(listed, list):
            places += [(listed, place) for place in range(len(listed))]
            places += [(row, key) for row in listed if isinstance(row, dict) for key in row]
    if not places:
        return
    holder, place = draw(st.sampled_from(places))
    match draw(st.integers(0, 5)):
        case 0:
            holder[place] = draw(STRAY)
        case 1 if isinstance(holder, dict):
            del holder[place]
        case 1 | 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[place]))
        case 3 if isinstance(holder, dict):
            holder[draw(st.sampled_from(["when", "guard", "state", "", 7]))] = draw(STRAY)
        case _:
            other, elsewhere = draw(st.sampled_from(places))
            holder[place] = copy.deepcopy(other[elsewhere])


@given(almost())
@examples(300)
def test_what_is_well_formed(value: Any) -> None:
    defects = check_declaration(value)
    assert (not defects) == well_formed(value), (value, defects)
    for defect in defects:
        assert defect.code
        assert defect.message
        step: Any = value  # each path but that of an unknown key leads somewhere
        for place in defect.path[:-1]:
            step = step[place]
        assert path_text(defect.path) in str(defect)


@given(machines())
@examples(150)
def test_a_machine_is_its_declaration(declaration: Declaration) -> None:
    assert check_declaration(declaration) == []
    machine = compile_machine(declaration)
    assert list(machine.states) == declaration["states"]
    assert machine.initial_state == declaration["initial_state"]
    assert machine.terminal_states == set(declaration["terminal_states"])
    assert {(*trigger, *transition) for trigger, transition in machine.lookup.items()} == {
        (row["from_state"], row["action"], row["to_state"], row.get("guard"))
        for row in declaration["transitions"]
    }
    text = declaration_text(declaration)
    assert machine.digest == declaration_digest(text)
    assert len(machine.digest) == 64


@given(machines(), machines())
@examples(60)
def test_two_declarations_have_one_digest_only_when_they_are_one(
    one: Declaration, two: Declaration
) -> None:
    same = repr(one) == repr(two)
    digests = {declaration_digest(declaration_text(each)) for each in (one, two)}
    assert (len(digests) == 1) == same


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner)
        ),
        max_leaves=12,
    )
)
@examples(200)
def test_any_value_at_all_is_checked_without_a_crash(value: Any) -> None:
    assert check_declaration(value)
    for key in KEYS:
        assert check_declaration({key: value})
        assert check_declaration({**dict.fromkeys(KEYS, value)})
    shape = {"states": ["a"], "transitions": [value], "initial_state": "a", "terminal_states": []}
    assert check_declaration(shape)
