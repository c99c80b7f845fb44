"""Small documents and what is said of them: each code at its place, with what was meant."""

import json
from typing import Any

import pytest

from interlock.language.definition import compile_document, define, loads
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import read_document
from interlock.language.shape import MACHINE

HEAD = "machine: m\ninitial: a\nstates:\n  a: "
DATA = "data: {x: {type: date-time}, d: {type: string}}\n"


def findings(document: str) -> list[Diagnostic]:
    try:
        return compile_document(read_document(document))[1]
    except DefinitionError as refusal:
        return [*refusal.diagnostics]


def refused(document: str, code: str, place: str, said: str) -> None:
    """Check that a document has one fault: its code, its place, a part of what is said."""
    (found,) = findings(document)
    assert f"{found.line}:{found.column}" == place
    assert found.code == code
    assert said in str(found)


STATES = [
    # Keys
    ("{on: {go: {to: a, gaurd: ok}}}", "unknown-key", "4:24", "did you mean `guard`?"),  # case A13
    ("{on: {go: {target: a}}}", "unknown-key", "4:17", "did you mean `to`?"),
    ("{on: {go: {to: a, cond: x}}}", "unknown-key", "4:24", "did you mean `when`?"),
    ("{on: {go: {to: a, actions: x}}}", "unknown-key", "4:24", "did you mean `do`?"),
    ("{entry: x}", "unknown-key", "4:7", "did you mean `on_enter`?"),
    ("{on: {go: [{to: a, wehn: x}]}}", "unknown-key", "4:25", "did you mean `when`?"),
    ("{after: {due: {at: data.x, gaurd: x}}}", "unknown-key", "4:33", "did you mean `guard`?"),
    ("{after: {due: {att: data.x}}}", "unknown-key", "4:21", "did you mean `at`?"),
    ("{on: {go: {order: first-match, branchs: [{to: a}]}}}", "unknown-key", "4:37", "`branches`?"),
    ("{on: {go: {to: a, when: {chek: x}}}}", "unknown-key", "4:31", "did you mean `check`?"),
    ("{on: {go: {to: a, when: {a: 1}}}}", "unknown-key", "4:31", "known here: check, in, not,"),
    ("{on: {go: {to: a, when: {'': null}}}}", "unknown-key", "4:31", "unknown key ``"),
    ("{on_enter: {rais: x}}", "unknown-key", "4:18", "did you mean `raise`?"),
    ("{finl: true}", "unknown-key", "4:7", "did you mean `final`?"),
    ("{typ: parallel, states: {b: }}", "unknown-key", "4:7", "did you mean `type`?"),
    ("{when: x}", "unknown-key", "4:7", "it belongs to a branch or a timer"),
    ("{on: {go: {to: a, at: x}}}", "unknown-key", "4:24", "it belongs to a timer"),
    ("{on: {go: {to: a, on_enter: x}}}", "unknown-key", "4:24", "it belongs to a state"),
    # Keys that mean nothing in a state of that type
    ("{on_done: a}", "unknown-key", "4:7", "only a state with states inside is ever done"),
    ("{history: deep}", "unknown-key", "4:7", "add `type: history`"),
    ("{to: a}", "unknown-key", "4:7", "transitions stand under `on`, `always` or `after`"),
    ("{order: [b]}", "unknown-key", "4:7", "only the regions of a parallel state"),
    ("{initial: b, states: {b: }, order: [b]}", "unknown-key", "4:34", "only the regions of a par"),
    ("{type: parallel, initial: b, states: {b: }}", "unknown-key", "4:23", "each says itself"),
    ("{type: parallel, history: deep, states: {b: }}", "unknown-key", "4:23", "all its regions"),
    ("{initial: b}", "missing-key", "4:3", "`states.a` has no `states`"),
    ("{type: parallel}", "missing-key", "4:3", "`states.a` has no `states`"),
    ("{on: {go: {branches: [{to: a}]}}}", "missing-key", "4:12", "has no `order`"),
    # Types
    ("5", "wrong-type", "4:6", "cannot be the number 5 (a state)"),
    ("{on: 1}", "wrong-type", "4:11", "what happens on an event, by event"),
    ("{on: {go: 5}}", "wrong-type", "4:16", "cannot be the number 5"),
    ("{on: {go: [a]}}", "wrong-type", "4:17", "such as {to: a state}"),
    ("{on: {go: {to: a, when: 5}}}", "wrong-type", "4:30", "cannot be the number 5"),
    ("{on: {go: {to: a, when: ' '}}}", "wrong-type", "4:30", "cannot be a blank text"),
    ("{on: {go: {to: a, when: {}}}}", "wrong-type", "4:30", "cannot be an empty mapping"),
    ("{on: {go: {when: {check: x, in: a}}}}", "wrong-type", "4:34", "several stand under `all`"),
    ("{on: {go: {order: fist-match, branches: [{to: a}]}}}", "wrong-type", "4:24", "first-match`?"),
    ("{final: yes}", "wrong-type", "4:14", "write `true`"),
    ("{final: false, on: {go: a}}", "wrong-type", "4:14", "write `true`"),
    ("{type: paralel, states: {b: }}", "wrong-type", "4:13", "did you mean `parallel`?"),
    ("{type: xyz, on: {go: a}}", "wrong-type", "4:13", "write `parallel` or `history`"),
    ("{type: history}", "wrong-type", "4:13", "can remember nothing"),
    ("{on: {go: {to: a, otherwise: true}}}", "wrong-type", "4:24", "the last branch"),
    ("{type: parallel, order: [b, b], states: {b: }}", "wrong-type", "4:34", "stands here twice"),
    ("{on: {go: {to: [a, a]}}}", "wrong-type", "4:21", "one state in each region"),
    # Names
    ("{on: {a.b: a}}", "bad-name", "4:12", "leave out . / { | }"),
    ("{on: {'go ': a}}", "bad-name", "4:12", "begins or ends with a blank"),
    ("{on: {done: a}}", "bad-name", "4:12", "is a reserved action"),
    ("{on_enter: {raise: after}}", "bad-name", "4:25", "is a reserved action"),
    ("{on_enter: [x, {raise: a/b}]}", "bad-name", "4:29", "has a `/`"),
    ("{on: {go: {name: p/q}}}", "bad-name", "4:23", "the branch `p/q` has a `/`"),
    ("{after: {du/e: {at: data.x}}}", "bad-name", "4:15", "the timer `du/e` has a `/`"),
    ("{after: {P3D: {at: data.x}}}", "bad-name", "4:15", "is a duration, and `at` says when"),
    ("{after: {P1Y: {at: data.x}}}", "bad-name", "4:15", "is a duration, and `at` says when"),
    ("{initial: b, states: {b: , b.c: }}", "bad-name", "4:33", "the state `b.c` has a `.`"),
    ("{on: {go: {guard: " + "\u00e9" * 257 + "}}}", "bad-name", "4:24", "514 bytes long"),
    # Guards, durations, beginnings
    ("{on: {go: {guard: data.x < 1}}}", "guard-is-expression", "4:24", "did you mean `when`?"),
    ("{after: {P1Y: a}}", "bad-duration", "4:15", "no length of their own"),
    ("{after: {soon: a}}", "bad-duration", "4:15", "for a moment: `{at: …, to: …}`"),
    ("{after: {1h1h: a}}", "bad-duration", "4:15", "names a unit twice"),
    ("{after: {\u0663d: a}}", "bad-duration", "4:15", "is no duration"),
    ("{states: {b: {}}}", "initial-missing", "4:3", "add `initial: b`"),
    ("{initial: h, states: {h: {type: history}}}", "initial-missing", "4:31", "say with `to`"),
    # States
    ("{on: {go: nowhere}}", "unknown-state", "4:16", "there is no state `nowhere`"),
    ("{on: {go: {when: {in: nowhere}}}}", "unknown-state", "4:23", "there is no state `nowhere`"),
    ("{type: parallel, order: [c], states: {b: }}", "unknown-state", "4:31", "no region `c`"),
    ("{initial: a, states: {b: }}", "unknown-state", "4:16", "`a` is not inside `a`"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "code", "place", "said"), STATES)
def test_a_fault_of_a_state_has_its_code_its_place_and_a_hint(
    state: str, code: str, place: str, said: str
) -> None:
    refused(f"{HEAD}{state}\n{DATA}", code, place, said)


@pytest.mark.parametrize(("word", "meant"), MACHINE.neighbours.items())
def test_the_words_of_other_tools_are_known(word: str, meant: str) -> None:
    places = [
        f"{HEAD}{{{word}: x}}\n",
        f"{HEAD}{{on: {{go: {{to: a, {word}: x}}}}}}\n",
        f"{HEAD}{{}}\n{word}: x\n",
    ]
    hints = [fault.hint for place in places for fault in findings(place)]
    assert f"did you mean `{meant}`?" in hints


TOP = "machine: m\ninitial: a\nstates: {a: {on: {go: {to: a, guard: QP}}}}\n"
TOPS = [
    ("on: 1", "unknown-key", "4:1", "it belongs to a state"),
    ("on_enter: x", "unknown-key", "4:1", "`on_enter` has no meaning in a machine"),
    ("after: {x: 5}", "unknown-key", "4:1", "it belongs to a state"),
    ("order: 1", "unknown-key", "4:1", "it belongs to a parallel state"),
    ("final: true", "unknown-key", "4:1", "it belongs to a final state"),
    ("evnets: {}", "unknown-key", "4:1", "did you mean `events`?"),
    ("never: [{reach: a, without: {gard: x}}]", "unknown-key", "4:30", "did you mean `guard`?"),
    ("never: [{without: a}]", "missing-key", "4:9", "`never[0]` has no `reach`"),
    ("never: [{reach: a, without: {action: x, guard: y}}]", "wrong-type", "4:41", "side by side"),
    ("version: 1.10", "wrong-type", "4:10", 'write it as text, `"1.10"`'),
    ("version: 1.0", "wrong-type", "4:10", 'write it as text, `"1.0"`'),
    ("version: ' '", "wrong-type", "4:10", "cannot be a blank text"),
    ("version: true", "wrong-type", "4:10", "`version` cannot be `true`"),
    ("version: " + "1" * 513, "bad-name", "4:10", "513 bytes long"),
    ("conflicts: last-region", "wrong-type", "4:12", "did you mean `first-region`?"),
    ("gates: {QP: {scope: release}}", "missing-key", "4:9", "`gates.QP` has no `approver`"),
    ("gates: {QP: {approver: qp, scop: x}}", "unknown-key", "4:28", "did you mean `scope`?"),
    ("gates: {QP: {approver: 5}}", "wrong-type", "4:24", "who approves"),
    ("gates: {PQ: {approver: qp}}", "unused-gate", "4:9", "no transition has the guard `PQ`"),
    ("events: {always: {}}", "bad-name", "4:10", "is a reserved action"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "place", "said"), TOPS)
def test_a_fault_of_the_machine_has_its_code_its_place_and_a_hint(
    line: str, code: str, place: str, said: str
) -> None:
    refused(f"{TOP}{line}\n", code, place, said)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("data: {order-id: {type: string}}", "4:8"),
        ("events: {e: {a b: {type: string}}}", "4:14"),
        ("states: {a: {on: {go: {set: {order-id: '1'}}}}}", "4:30"),
        ("states: {a: {data: [x, 1st]}}", "4:24"),
        ("states: {a: {data: {due.at: {type: string}}}}", "4:21"),
    ],
)
def test_a_field_is_called_as_expressions_can_call_it(line: str, place: str) -> None:
    top = "machine: m\ninitial: a\n# what follows\n"
    states = "" if line.startswith("states") else "states: {a: }\n"
    told = {
        f"{fault.line}:{fault.column}"
        for fault in findings(f"{top}{line}\n{states}")
        if fault.code == "bad-name" and "no name for expressions" in fault.message
    }
    assert told == {place}


def test_a_name_that_is_reserved_for_a_state_is_so_at_the_top_only() -> None:
    refused(
        "machine: m\ninitial: a\nstates: {a: {on: {go: superseded}}, superseded: }\n",
        "bad-name", "3:37", "is a reserved state",
    )  # fmt: skip
    nested = "machine: m\ninitial: a\nstates: {a: {initial: superseded, states: {superseded: }}}"
    assert loads(nested).states == ("a.superseded",)


#: Keys that are wrong in states of a type, all of them at once.
MEANINGLESS = {
    "history": "type: history, on: {e: x}, always: x, after: {1s: x}, on_enter: h, on_exit: h, "
    "on_done: x, initial: x, states: {x: }, order: [x], data: [d]",
    "final": "final: true, on: {e: x}, always: x, after: {1s: x}, on_done: x, initial: x, "
    "states: {x: }, order: [x], to: x, history: deep",
    "parallel": "type: parallel, states: {x: }, initial: x, to: x, history: deep, final: true",
}


@pytest.mark.parametrize("kind", MEANINGLESS)
def test_no_key_is_dropped_in_silence(kind: str) -> None:
    written = MEANINGLESS[kind]
    found = findings(
        f"machine: m\ninitial: a\nstates: {{a: {{initial: b, states: {{b: , k: {{{written}}}}}}}}}"
    )
    said = {fault.path.rpartition(".")[2] for fault in found if fault.code == "unknown-key"}
    own = {"history": {"type"}, "final": {"final"}, "parallel": {"type", "states"}}[kind]
    keys = {*read_document(f"{{{written}}}").value}
    assert said == keys - own
    assert all("has no meaning in" in f.message for f in found if f.code == "unknown-key")
    assert all(fault.hint for fault in found)


def test_a_machine_that_has_ended_leaves_nothing() -> None:
    refused(
        "machine: m\ninitial: a\nstates: {a: {on: {e: b}}, b: {final: true, on_exit: x}}",
        "unknown-key", "3:44", "what has ended is never left",
    )  # fmt: skip
    inner = "{initial: b, on: {go: a}, states: {b: {final: true, on_exit: x}}}"
    (branch,) = loads(f"{HEAD}{inner}\n").flat.branches
    assert [hook.name for hook in branch.hooks] == ["x"]


# Names that look alike


LOOK = [
    (
        "  caf\u00e9: {}",
        "  cafe\u0301: {}",
        "6:3",
        r"`cafe\u0301` looks like `caf\u00e9` on line 5",
    ),
    ("  b: {on: {pay: a}}", "  c: {on: {'pay\u200b': a}}", "6:12", r"`pay\u200b` looks like `pay`"),
    ("  b: {on: {a b: a}}", "  c: {on: {'a\u00a0b': a}}", "6:12", r"`a\u00a0b` looks like `a b`"),
    ("  b: {on_exit: {raise: go}}", "  c: {on: {'g\u2060o': a}}", "6:12", r"`g\u2060o` looks like"),
    (
        "  b: {on: {e: {guard: Q}}}",
        "  c: {on: {e: {guard: '\u00adQ'}}}",
        "6:23",
        r"`\u00adQ` looks",
    ),
    ("  b: {on: {e: {name: n}}}", '  c: {on: {e: {name: "n\\ufe0f"}}}', "6:22", r"`n\ufe0f` looks"),
    (
        "  b: {initial: x, states: {x: }}",
        "  c: {initial: 'x\u200d', states: {'x\u200d': }}",
        "6:31",
        r"`x\u200d` looks like `x` on line 5",
    ),
]


@pytest.mark.parametrize(("one", "other", "place", "said"), LOOK)
def test_A17_names_that_look_alike_are_found_wherever_they_stand(
    one: str, other: str, place: str, said: str
) -> None:
    found = [fault for fault in findings(f"{HEAD}\n{one}\n{other}\n") if fault.code == "name-clash"]
    assert [(f"{fault.line}:{fault.column}", fault.hint is not None) for fault in found] == [
        (place, True)
    ]
    assert said in found[0].message


def test_A17_an_outer_blank_is_told_from_the_name_without() -> None:
    found = findings(f"{HEAD}{{on: {{pay: a, 'pay ': a}}}}\n")
    assert {fault.code for fault in found} == {"bad-name", "name-clash"}
    assert all(r"`pay\u0020`" in fault.message for fault in found)


def test_A17_a_target_that_only_looks_like_a_state_is_told_how_it_is_written() -> None:
    states = "{on: {go: 'cafe\u0301'}}\n  caf\u00e9: {on: {back: a}}\n"
    (found, *_) = findings(f"{HEAD}{states}")
    assert (found.code, found.line) == ("unknown-state", 4)
    assert found.hint == (r"they look alike, but it is `caf\u00e9`, and this is `cafe\u0301`")


def test_one_name_in_many_places_is_one_name() -> None:
    document = f"{HEAD}{{on: {{caf\u00e9: b, a b: b}}}}\n  b: {{on: {{caf\u00e9: a, a b: a}}}}\n"
    assert findings(document) == []


# C01: separators, and branches that are called alike


def test_C01_a_name_that_is_also_a_path_is_refused_and_both_are_named() -> None:
    states = "{initial: b, states: {b: {on: {go: c}}}}\n  c: {on: {go: a}}\n  a.b: {on: {go: a}}\n"
    (found,) = findings(f"{HEAD}{states}")
    assert (found.code, found.line, found.column) == ("bad-name", 6, 3)
    assert "`a.b` has a `.`, and is also the path of the state on line 4" in found.message


def test_C01_names_with_underlines_are_not_split() -> None:
    states = "{app_draft: {on: {go: validation_pending}}, validation_pending: }"
    definition = loads(f"machine: m\ninitial: app_draft\nstates: {states}\n")
    assert definition.states == ("app_draft", "validation_pending")


def test_two_branches_that_are_called_alike_are_both_placed() -> None:
    branches = "\n        - {to: b, when: 'true'}\n        - {to: b, when: 'false'}\n"
    states = f"\n    on:\n      go:{branches}"
    found = findings(f"{HEAD}{states}  b: {{on: {{back: a}}}}\n")
    (clash,) = [fault for fault in found if fault.code == "name-clash"]
    assert (clash.line, clash.column) == (8, 11)
    assert "`go/b` of `a` is two branches, the first on line 7" in clash.message


# What is too long for the store


LONG = "\u00e9" * 150  # 300 bytes


def regions(initial: str, states: dict[str, Any]) -> dict[str, Any]:
    """A parallel state with the regions `v` and `w`; `?` in their texts is the region's name."""
    inner = {"initial": initial, "states": states}
    of_each = {name: json.loads(json.dumps(inner).replace("?", name)) for name in ("v", "w")}
    return {"p": {"type": "parallel", "states": of_each}}


@pytest.mark.parametrize(
    ("states", "path"),
    [
        ({"x" * 513: {}}, "states." + "x" * 513),
        ({LONG: {"initial": LONG, "states": {LONG: {}}}}, f"states.{LONG}.states.{LONG}"),
        (regions("?" * 260, {"?" * 260: {}}), "states.p"),
        (
            {
                "a": {"on": {"e" * 300: [{"to": "b", "name": "n" * 300, "when": {"check": "x"}}]}},
                "b": {"on": {"back": "a"}},
            },
            f"states.a.on.{'e' * 300}[0]",
        ),
        (
            regions("i", {"i": {"on": {"go": {"guard": "?" * 260}}}}),
            "states.p.states.v.states.i.on.go",
        ),
    ],
    ids=["name", "path", "product", "action", "guards"],
)
def test_what_the_store_could_not_hold_is_refused_where_it_is_written(
    states: dict[str, Any], path: str
) -> None:
    document = {"machine": "m", "initial": next(iter(states)), "states": states}
    found = findings(json.dumps(document, ensure_ascii=False))
    (long,) = [fault for fault in found if fault.severity == "error"]
    assert (long.code, long.path) == ("bad-name", path)
    assert "bytes long, more than the 512 allowed" in long.message


def test_names_of_the_largest_size_are_held() -> None:
    assert loads(f"machine: {'m' * 512}\ninitial: {'a' * 512}\nstates: {{? {'a' * 512} : }}").states


# All faults in one run


def test_what_is_not_of_its_shape_hides_nothing_else() -> None:
    document = """
machine: m
on: 1
states:
  a: {on: {go: nowhere, stop: 5, x: {gaurd: y, to: b, when: {in: gone}}}, after: {P1M: b}}
  b: {states: {c: {on: {go: {to: d, otherwise: true}}}}, on_enter: [{rais: x}]}
  c: 5
  d: {on: {go: c}, final: perhaps}
"""
    assert [(fault.line, fault.code) for fault in findings(document)] == [
        (2, "initial-missing"),
        (3, "unknown-key"),
        (5, "unknown-state"),
        (5, "wrong-type"),
        (5, "unknown-key"),
        (5, "unknown-state"),
        (5, "bad-duration"),
        (6, "initial-missing"),
        (6, "wrong-type"),
        (6, "unknown-key"),
        (7, "wrong-type"),
        (8, "wrong-type"),
    ]


@pytest.mark.parametrize(
    "states",
    [
        "{initial: b, stats: {b: }, on: {go: a.b}}",
        "{initial: b, states: [b], on: {go: a.b}}",
        "{final: true, states: {b: }}\n  c: {on: {go: a.b}}",
    ],
)
def test_states_that_were_refused_are_not_missed_as_well(states: str) -> None:
    found = findings(f"{HEAD}{states}\n")
    assert found
    assert "unknown-state" not in {fault.code for fault in found}


@pytest.mark.parametrize(
    "states",
    [
        "{after: {P3D: a, 1h30m: {to: a}, due: {at: data.x, to: a}}}",
        "{on: {e: {order: first-match, branches: [{to: a, when: {check: x}}, {otherwise: true}]}}}",
        "{on: {go: {name: done}}}",
        "{on: {go: {guard: A -> B sign-off}}}",
        "{on_exit: {raise: closed}, label: A, description: first}",
        "{initial: b, on: {go: a}, states: {b: {final: true, on_enter: x, data: [d]}}}",
        "{type: parallel, order: [c, b], on_done: a, states: {b: , c: }}",
        "{initial: b, on: {go: a.h}, states: {b: , h: {type: history, history: deep, to: b}}}",
    ],
)
def test_what_is_right_is_accepted(states: str) -> None:
    assert loads(f"{HEAD}{states}\n{DATA}").flat.leaves


def test_a_mapping_that_no_file_could_say_is_refused_as_well() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    odd: list[Any] = [
        deep,
        {1, 2},
        object(),
        float("nan"),
        {(1, 2): {}},
        "\ud800",
        {1: {}, "1": {}},
    ]
    for states in odd:
        with pytest.raises(DefinitionError) as refusal:
            define({"machine": "m", "initial": "a", "states": states})
        assert refusal.value.diagnostics


def test_a_machine_without_a_version_is_dev() -> None:
    assert loads(f"{HEAD}{{}}").version == "dev"
    assert loads(f"{HEAD}{{}}\nversion: '1.10'").version == "1.10"
    assert loads(f"{HEAD}{{}}\nversion: 7").version == "7"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("machne: m\ninitial: a\nstates: {a: {on: {go: a}}}\n", "machine"),
        ("wokflow: w\nsteps: {a: {wait: {timer: 1m}}}\n", "workflow"),
    ],
)
def test_a_document_is_known_by_what_it_is_made_of(text: str, meant: str) -> None:
    """Also where the one word is misspelt that says so."""
    with pytest.raises(DefinitionError) as caught:
        loads(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint, found.line) == ("unknown-key", f"did you mean `{meant}`?", 1)
