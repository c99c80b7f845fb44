"""Machines in Python: they say what a file says, and a fault is shown at the call that made it."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import (
    DefinitionError,
    Machine,
    all_,
    any_,
    branch,
    check,
    first_match,
    in_,
    not_,
    otherwise,
    raise_,
)
from interlock.language import Diagnostic, machine_schema
from interlock.language.builder import State

BOOLEAN = {"x": {"type": "boolean"}}


def faults(machine: Machine, **how: Any) -> list[tuple[str, str]]:
    """Compile what is wrong; give each code with the line of this file that it points at."""
    with pytest.raises(DefinitionError) as refusal:
        machine.define(**how)
    for found in refusal.value.diagnostics:
        assert found.file == __file__
        assert found.column is not None
    return [(found.code, line_of(found)) for found in refusal.value.diagnostics]


def line_of(found: Diagnostic) -> str:
    assert found.line is not None
    line = Path(__file__).read_text().splitlines()[found.line - 1]
    assert found.source_line == line
    return line.strip()


def test_every_key_of_a_document_can_be_said() -> None:
    machine = Machine(
        "m",
        version="2",
        description="All of it.",
        data={"x": {"type": "boolean"}, "due": {"type": "date-time"}},
        events={"go": {"n": {"type": "integer"}}},
        initial="a",
        gates={"sign": {"approver": "role:qp"}},
        conflicts="first-region",
    )
    a = machine.state("a", initial="b", label="A", description="First.", data=["x"])
    b = a.state("b", on_enter="ring", on_exit=["stop", raise_("go")])
    a.history("back", deep=True, to=b, label="H", description="Where it was.")
    p = machine.parallel("p", order=["s", "r"])
    r, s = p.state("r"), p.state("s")
    z = machine.final("z", on_enter=["bell"])
    b.on("go", [r, s], when=check("may"), guard="sign", set={"x": "true"}, do="log", name="n")
    b.on("stay", do=["log", raise_("go")], description="Nothing moves.")
    b.on("in", "back", internal=True)
    b.on("two", branch(z, when="data.x"), branch(a, when=not_("data.x")))
    b.on("one", first_match(branch(z, when=any_("data.x", in_(r))), otherwise(a, do="log")))
    a.always(z, when=all_("data.x", check("may")))
    p.on_done(z).after("P1D", z, guard="late").at("due", "data.due", z, guard="sign")
    machine.never(reach=z, without=a).never(reach=p).never(reach=z, without={"action": "go"})
    document = {
        "machine": "m",
        "version": "2",
        "description": "All of it.",
        "data": {"x": {"type": "boolean"}, "due": {"type": "date-time"}},
        "events": {"go": {"n": {"type": "integer"}}},
        "initial": "a",
        "gates": {"sign": {"approver": "role:qp"}},
        "conflicts": "first-region",
        "states": {
            "a": {
                "initial": "b",
                "label": "A",
                "description": "First.",
                "data": ["x"],
                "always": {"to": "z", "when": {"all": ["data.x", {"check": "may"}]}},
                "states": {
                    "b": {
                        "on_enter": "ring",
                        "on_exit": ["stop", {"raise": "go"}],
                        "on": {
                            "go": {
                                "to": ["p.r", "p.s"],
                                "when": {"check": "may"},
                                "guard": "sign",
                                "set": {"x": "true"},
                                "do": "log",
                                "name": "n",
                            },
                            "stay": {
                                "do": ["log", {"raise": "go"}],
                                "description": "Nothing moves.",
                            },
                            "in": {"to": "back", "internal": True},
                            "two": [
                                {"to": "z", "when": "data.x"},
                                {"to": "a", "when": {"not": "data.x"}},
                            ],
                            "one": {
                                "order": "first-match",
                                "branches": [
                                    {"to": "z", "when": {"any": ["data.x", {"in": "p.r"}]}},
                                    {"to": "a", "do": "log", "otherwise": True},
                                ],
                            },
                        },
                    },
                    "back": {
                        "type": "history",
                        "history": "deep",
                        "to": "b",
                        "label": "H",
                        "description": "Where it was.",
                    },
                },
            },
            "p": {
                "type": "parallel",
                "order": ["s", "r"],
                "on_done": "z",
                "after": {
                    "P1D": {"to": "z", "guard": "late"},
                    "due": {"at": "data.due", "to": "z", "guard": "sign"},
                },
                "states": {"r": {}, "s": {}},
            },
            "z": {"final": True, "on_enter": ["bell"]},
        },
        "never": [
            {"reach": "z", "without": "a"},
            {"reach": "p"},
            {"reach": "z", "without": {"action": "go"}},
        ],
    }
    assert machine.document() == document
    schema = machine_schema()
    parts = schema["$defs"]
    said = keys(document)
    kinds = ("atomic", "compound", "parallel", "final", "history")
    named = [parts[name] for name in (*kinds, "moment", "ordered", "property")]
    for part in (schema, *named):
        assert {*part["properties"]} <= said
    assert {*parts["when"]["anyOf"][1]["properties"]} <= said


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value} | {key for part in value.values() for key in keys(part)}
    return {key for part in value for key in keys(part)} if isinstance(value, list) else set()


def test_a_fault_is_shown_at_the_call_that_made_it() -> None:
    machine = Machine("m", initial="nowhere", data=BOOLEAN)
    a = machine.state("a", initial="b")
    a.state("b").on("go", "c")
    a.on("tick", first_match(branch("z", name="one", when="data.x"),
                             otherwise("y")))  # fmt: skip
    machine.final("z")
    machine.never(reach="x")
    assert faults(machine) == [
        ("unknown-state", 'machine = Machine("m", initial="nowhere", data=BOOLEAN)'),
        ("unknown-state", 'a.state("b").on("go", "c")'),
        ("unknown-state", 'otherwise("y")))  # fmt: skip'),
    ]


def test_what_the_schema_refuses_is_shown_at_its_call() -> None:
    machine = Machine("m", initial="a", version="")
    machine.state("a").on("go", "z", guard="data.x > 1")
    machine.state("c").after("P1Y", "z")
    machine.state("b.c")
    machine.state("d", label="").state("e")
    machine.final("z").path.upper()
    assert faults(machine) == [
        ("wrong-type", 'machine = Machine("m", initial="a", version="")'),
        ("guard-is-expression", 'machine.state("a").on("go", "z", guard="data.x > 1")'),
        ("bad-duration", 'machine.state("c").after("P1Y", "z")'),
        ("bad-name", 'machine.state("b.c")'),
        ("initial-missing", 'machine.state("d", label="").state("e")'),
        ("wrong-type", 'machine.state("d", label="").state("e")'),
    ]  # fmt: skip


def test_what_the_graph_shows_is_shown_at_its_call() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a").on("go", "z")
    a.on("go", "b")
    machine.state("b").on("go", "z")
    machine.state("lost").on("go", "z")
    z = machine.final("z")
    machine.never(reach=z)
    assert faults(machine) == [
        ("nondeterministic", 'a.on("go", "b")'),
        ("unreachable-state", 'machine.state("lost").on("go", "z")'),
        ("property-violated", "machine.never(reach=z)"),
    ]


def test_what_expressions_show_is_shown_at_its_call() -> None:
    machine = Machine("m", initial="a", data={"n": {"type": "integer"}})
    a = machine.state("a")
    a.on("go", "y", when="data.n < 10")
    a.on("go", "z", when="data.n > 5")
    a.on("stop", "z", when="data.m > 5")
    machine.final("y")
    machine.final("z")
    assert faults(machine) == [
        ("nondeterministic", 'a.on("go", "z", when="data.n > 5")'),
        ("expression-type", 'a.on("stop", "z", when="data.m > 5")'),
    ]
    machine = Machine("m", initial="a", data={"n": {"type": "integer"}})
    machine.final("y")
    machine.final("z")
    machine.state("a").on(
        "go",
        branch("y", when="data.n < 10"),
        branch("z", when="data.n > 5"),
    )
    assert faults(machine) == [("nondeterministic", 'branch("z", when="data.n > 5"),')]
    assert len(machine.define(prove=False).unproved) == 1


def test_a_warning_is_shown_at_its_call() -> None:
    machine = Machine("m", initial="a")
    machine.state("a").on("go", "z").on("stop", "b")
    machine.state("b")
    machine.final("z")
    (warning,) = machine.define().warnings
    assert (warning.code, line_of(warning)) == ("dead-end-state", 'machine.state("b")')


def test_what_is_said_twice_is_refused_as_in_a_file() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a")
    machine.final("a")
    a.on("go", first_match(otherwise(a)))
    a.on("go", a)
    a.on("run", a)
    a.on("run", first_match(otherwise(a)))
    a.at("due", "data.x", a)
    a.at("due", "data.y", a)
    a.after("due", a)
    assert faults(machine) == [
        ("duplicate-key", 'machine.final("a")'),
        ("duplicate-key", 'a.on("go", a)'),
        ("duplicate-key", 'a.on("run", first_match(otherwise(a)))'),
        ("duplicate-key", 'a.at("due", "data.y", a)'),
        ("duplicate-key", 'a.after("due", a)'),
    ]


def test_a_transition_that_is_said_again_is_another_branch() -> None:
    machine = Machine("m", initial="a", data=BOOLEAN)
    a = machine.state("a").after("1m", "y", when="data.x")
    a.after("1m", "z", when=not_("data.x"))
    machine.final("y")
    machine.final("z")
    assert machine.document()["states"]["a"] == {
        "after": {"1m": [{"to": "y", "when": "data.x"}, {"to": "z", "when": {"not": "data.x"}}]}
    }


@pytest.mark.parametrize(
    "value",
    [Decimal(1), {1}, object(), b"x", 10**5000, float("nan"), {1: 2}, "a\0b", {"\ud800": 1}],
    ids=["decimal", "set", "object", "bytes", "huge", "nan", "number as key", "text", "key"],
)
def test_what_a_document_cannot_hold_is_refused_at_its_call(value: Any) -> None:
    machine = Machine("m", initial="a", data={"x": {"type": "string", "default": [value]}})
    machine.state("a").on("go", branch("a", when=value))
    (first, at), (second, there) = faults(machine)
    assert {first, second} <= {"wrong-type", "yaml-syntax"}
    assert at.startswith('machine = Machine("m"')
    assert there == 'machine.state("a").on("go", branch("a", when=value))'


def test_names_that_a_document_cannot_hold_are_refused_at_their_calls() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a\0")
    a.on("\ud800", a)
    a.after(5, a)  # type: ignore[arg-type]
    machine.state(3)  # type: ignore[arg-type]
    assert faults(machine) == [
        ("yaml-syntax", 'a = machine.state("a\\0")'),
        ("yaml-syntax", 'a.on("\\ud800", a)'),
        ("wrong-type", "a.after(5, a)  # type: ignore[arg-type]"),
        ("wrong-type", "machine.state(3)  # type: ignore[arg-type]"),
    ]


def test_a_state_of_another_machine_is_refused_at_the_call() -> None:
    other = Machine("other", initial="b")
    b = other.final("b")
    machine = Machine("m", initial="a")
    machine.state("a").on("go", b)
    assert faults(machine) == [("unknown-state", 'machine.state("a").on("go", b)')]


def test_what_is_nested_too_deeply_is_refused() -> None:
    machine = Machine("m", initial="a")
    condition: Any = "data.x"
    for _ in range(5000):
        condition = not_(condition)
    inner = machine.state("a", initial="a").on("go", "a", when=condition)
    for _ in range(5000):
        inner = inner.state("a", initial="a")
    assert {code for code, _ in faults(machine)} == {"budget-exceeded"}


def test_what_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    machine = Machine("m", initial="a", data={"x": schema})
    machine.final("a")
    assert {code for code, _ in faults(machine)} == {"budget-exceeded"}


def test_what_is_larger_than_the_budgets_is_refused() -> None:
    machine = Machine("m", initial="a")
    machine.state("a")
    found = faults(machine, budgets=interlock.language.Budgets(nodes=3))
    assert found == [("budget-exceeded", 'machine = Machine("m", initial="a")')]


def test_regions_can_make_too_many_states() -> None:
    machine = Machine("m", initial="p")
    p = machine.parallel("p")
    for region in "ab":
        inner = p.state(region, initial="0")
        for number in range(3):
            inner.state(str(number)).on(region, str((number + 1) % 3))
    assert len(machine.define().states) == 9
    assert [code for code, _ in faults(machine, states_max=8)] == ["budget-exceeded"]


def test_the_shortest_name_that_finds_a_state_is_written() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a", initial="b")
    b = a.state("b", initial="a")
    inner = b.state("a")
    c = machine.state("c")
    inner.on("up", a)  # in the innermost scope `a` is itself
    inner.on("self", inner)
    inner.on("out", c)
    c.on("in", inner)
    b.on("down", inner)
    b.on("out", a)
    written = machine.document()["states"]
    assert written["a"]["states"]["b"]["states"]["a"]["on"] == {"up": "a", "self": "a", "out": "c"}
    assert written["c"]["on"] == {"in": "a.b.a"}


def test_a_misspelt_word_is_a_type_error() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a")
    words: dict[str, Any] = {"whn": "data.x"}
    calls: list[Callable[..., object]] = [
        *(a.always, a.on_done, branch, otherwise, machine.state, machine.parallel, machine.final),
        *(machine.history, partial(a.on, "go"), partial(a.at, "due", "data.x"), Machine),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="unexpected keyword argument 'whn'"):
            call("a", **words)


def test_branches_and_words_are_not_mixed() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a")
    ordered = first_match(otherwise(a))
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((branch(a),), {"when": "data.x"}),
        ((ordered,), {"guard": "g"}),
        ((ordered, branch(a)), {}),
        ((a, branch(a)), {}),
    ]
    for given, words in calls:
        with pytest.raises(TypeError, match="each branch a `branch"):
            a.on("go", *given, **words)
    assert machine.document()["states"] == {"a": {}}


def test_each_method_of_a_state_gives_the_state_again() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a")
    assert a.on("go").always(a).on_done(a).after("1m", a).at("t", "data.x", a) is a
    assert machine.never(reach=a) is machine
    assert repr(a) == "<state 'a' of 'm'>"
    assert repr(a.state("b")) == "<state 'a.b' of 'm'>"
    assert repr(machine) == "<machine 'm'>"


def test_a_call_in_a_function_of_ones_own_is_the_place() -> None:
    def step(machine: Machine, name: str, to: str) -> State:
        return machine.state(name).on("next", to)

    machine = Machine("m", initial="a")
    step(machine, "a", "b")
    assert faults(machine) == [("unknown-state", 'return machine.state(name).on("next", to)')]
    line = inspect.getsourcelines(step)[1] + 1
    with pytest.raises(DefinitionError, match=f"{__file__}:{line}:16: "):
        machine.define()


def test_a_program_without_a_file_or_columns_has_its_line() -> None:
    program = (
        "from interlock import Machine\n"
        "machine = Machine('m', initial='a')\n"
        "machine.state('a').on('go', 'b')\n"
        "try:\n"
        "    machine.define()\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    for flags in ([], ["-X", "no_debug_ranges"]):
        done = subprocess.run(
            [sys.executable, *flags, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("<string>:3: error[unknown-state]: there is no state `b`")


def test_a_machine_can_be_added_to_after_it_was_compiled() -> None:
    machine = Machine("m", initial="a")
    a = machine.state("a").on("go", "z")
    machine.final("z")
    before = machine.define()
    a.on("stop", "y")
    machine.final("y")
    assert before.states == ("a", "z")
    assert machine.define().states == ("a", "y", "z")
