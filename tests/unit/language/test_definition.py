"""Definitions: a document compiled to a flat machine, or refused with every fault."""

import json
import random
from typing import Any

import pytest

import interlock.language.definition as language
from interlock.core.declaration import check_declaration
from interlock.language.condition import text
from interlock.language.definition import Definition, define, loads
from interlock.language.diagnostic import DefinitionError


def moves(definition: Definition) -> dict[tuple[str, str], str]:
    """Give where each action leads from each state."""
    return {(b.from_state, b.action): b.to_state for b in definition.flat.branches}


def faults(document: str) -> list[tuple[str, int | None]]:
    with pytest.raises(DefinitionError) as refusal:
        loads(document)
    return [(found.code, found.line) for found in refusal.value.diagnostics]


BATCH = """
machine: batch
version: 1
initial: sampled
states:
  sampled: {on: {begin-testing: testing}}
  testing:
    initial: assay
    on_enter: [notify_lab]
    on_exit: [close_bench]
    on: {reject-batch: rejected}
    states:
      assay: {on: {measured: review}}
      review:
        on:
          decide:
            - {to: small, when: "data.amount < 100.0"}
            - {to: large, when: "data.amount >= 100.0"}
        after: {P3D: expired}
  small: {on: {release: {to: released, guard: QP-sign-off}}}
  large: {on: {release: {to: released, guard: QP-sign-off}, return: testing}}
  released: {final: true}
  rejected: {final: true}
  expired: {final: true}
data: {amount: {type: number}}
"""


def test_nested_states_have_dotted_names_and_inherit_what_holds_around_them() -> None:
    batch = loads(BATCH)
    assert moves(batch) == {
        ("sampled", "begin-testing"): "testing.assay",
        ("testing.assay", "measured"): "testing.review",
        ("testing.assay", "reject-batch"): "rejected",
        ("testing.review", "reject-batch"): "rejected",
        ("testing.review", "decide/small"): "small",
        ("testing.review", "decide/large"): "large",
        ("testing.review", "after/P3D"): "expired",
        ("small", "release"): "released",
        ("large", "release"): "released",
        ("large", "return"): "testing.assay",
    }
    assert batch.leaves("testing.assay") == ("testing.assay",)


def test_the_declaration_is_one_that_the_core_accepts() -> None:
    declaration = loads(BATCH).declaration
    assert check_declaration(declaration) == []
    assert declaration["terminal_states"] == ["expired", "rejected", "released", "superseded"]
    guards = {(t["from_state"], t["action"]): t.get("guard") for t in declaration["transitions"]}
    assert guards["small", "release"] == "QP-sign-off"
    assert guards["testing.review", "decide/small"] == "data.amount < 100.0"
    assert guards["testing.assay", "measured"] is None
    assert guards["testing.assay", "superseded"] is None


def test_hooks_come_in_the_order_of_leaving_moving_and_entering() -> None:
    document = define(
        {
            "machine": "hooks",
            "initial": "a",
            "states": {
                "a": {
                    "initial": "b",
                    "on_exit": ["leave_a"],
                    "states": {
                        "b": {"on_exit": "leave_b", "on": {"go": {"to": "c.d", "do": ["move"]}}}
                    },
                },
                "c": {
                    "on_enter": ["enter_c"],
                    "initial": "d",
                    "states": {"d": {"on_enter": ["enter_d", {"raise": "on"}]}},
                },
            },
        }
    )
    (branch,) = document.flat.branches
    assert [hook.name for hook in branch.hooks] == [
        "leave_b", "leave_a", "move", "enter_c", "enter_d", "on",
    ]  # fmt: skip
    assert [hook.raises for hook in branch.hooks] == [False] * 5 + [True]


def machine(states: dict[str, Any], **more: Any) -> Definition:
    return define({"machine": "m", "initial": next(iter(states)), "states": states, **more})


PARALLEL: dict[str, Any] = {
    "p": {
        "type": "parallel",
        "on_done": "over",
        "states": {
            "pay": {
                "initial": "due",
                "states": {
                    "due": {"on": {"go": {"to": "paid", "when": "data.x > 1"}}},
                    "paid": {"final": True},
                },
            },
            "ship": {
                "initial": "open",
                "states": {"open": {"on": {"go": "sent"}}, "sent": {"final": True}},
            },
        },
    },
    "over": {"final": True},
}
INTEGER = {"x": {"type": "integer"}}


def test_regions_move_together_and_their_end_is_one_step_more() -> None:
    found = machine(PARALLEL, data=INTEGER)
    assert found.flat.initial == "p{due|open}"
    assert moves(found) == {
        ("p{due|open}", "go/paid+sent"): "p{paid|sent}",
        ("p{due|open}", "go/sent"): "p{due|sent}",
        ("p{due|sent}", "go/paid"): "p{paid|sent}",
        ("p{paid|sent}", "done/p"): "over",
    }
    whens = {(b.from_state, b.action): text(b.when) for b in found.flat.branches}
    assert whens["p{due|open}", "go/sent"] == "!(data.x > 1)"
    assert found.leaves("p{due|sent}") == ("p.pay.due", "p.ship.sent")


def test_regions_stand_in_the_order_that_is_said() -> None:
    said = {**PARALLEL, "p": {**PARALLEL["p"], "order": ["ship", "pay"]}}
    assert machine(said, data=INTEGER).flat.initial == "p{open|due}"


def test_a_history_state_leads_where_it_remembers() -> None:
    found = machine(
        {
            "work": {
                "initial": "one",
                "on": {"pause": "paused", "again": "work.back"},
                "states": {
                    "one": {"on": {"next": "two"}},
                    "two": {"on": {"next": "one"}},
                    "back": {"type": "history"},
                },
            },
            "paused": {"on": {"resume": "work.back"}},
        }
    )
    ways = moves(found)
    assert ways["paused", "resume/work.one"] == "work.one"
    assert ways["paused", "resume/work.two"] == "work.two"
    assert ways["work.two", "again"] == "work.two"  # case C11: it stays where it is
    recalls = {b.action: b.recalls for b in found.flat.branches if b.recalls}
    assert recalls["resume/work.one"] == {
        (("work.back", None),),
        (("work.back", ("work.one",)),),
    }
    assert recalls["resume/work.two"] == {(("work.back", ("work.two",)),)}
    remembers = {b.from_state: b.remembers for b in found.flat.branches if b.action == "pause"}
    assert remembers["work.two"] == {"work.back": ("work.two",)}


def test_a_deep_history_state_remembers_the_innermost_states() -> None:
    inner = {"initial": "x", "states": {"x": {"on": {"step": "y"}}, "y": {}}}
    found = machine(
        {
            "w": {
                "initial": "in",
                "on": {"out": "off"},
                "states": {"in": inner, "h": {"type": "history", "history": "deep"}},
            },
            "off": {"on": {"back": "w.h"}},
        }
    )
    assert moves(found)["off", "back/w.in.y"] == "w.in.y"


def test_first_match_is_each_branch_and_not_the_earlier_ones() -> None:
    found = machine(
        {
            "a": {
                "on": {
                    "go": {
                        "order": "first-match",
                        "branches": [
                            {"to": "b", "when": "data.x > 10"},
                            {"to": "c", "when": "data.x > 1"},
                            {"to": "a", "otherwise": True, "name": "again"},
                        ],
                    }
                }
            },
            "b": {"final": True},
            "c": {"final": True},
        },
        data=INTEGER,
    )
    assert {b.action: text(b.when) for b in found.flat.branches} == {
        "go/b": "data.x > 10",
        "go/c": "!(data.x > 10) && (data.x > 1)",
        "go/again": "!(data.x > 10) && !(data.x > 1)",
    }


def test_what_depends_on_another_region_is_settled_when_it_is_compiled() -> None:
    found = machine(
        {
            "p": {
                "type": "parallel",
                "states": {
                    "a": {"initial": "a1", "states": {"a1": {"on": {"x": "a2"}}, "a2": {}}},
                    "b": {
                        "initial": "b1",
                        "states": {
                            "b1": {"on": {"y": {"to": "b2", "when": {"in": "p.a.a2"}}}},
                            "b2": {},
                        },
                    },
                },
            }
        }
    )
    assert ("p{a1|b1}", "y") not in moves(found)
    assert moves(found)["p{a2|b1}", "y"] == "p{a2|b2}"


def test_regions_that_leave_each_other_conflict_unless_the_first_is_to_win() -> None:
    regions: dict[str, Any] = {
        "p": {
            "type": "parallel",
            "states": {
                "a": {"initial": "a1", "states": {"a1": {"on": {"x": "out"}}}},
                "b": {"initial": "b1", "states": {"b1": {"on": {"x": "b2"}}, "b2": {}}},
            },
            "on": {"to_b2": "p.b.b2"},
        },
        "out": {"final": True},
    }
    with pytest.raises(DefinitionError) as refusal:
        machine(regions)
    assert [found.code for found in refusal.value.diagnostics] == ["nondeterministic"]
    assert moves(machine(regions, conflicts="first-region"))["p{a1|b1}", "x"] == "out"


@pytest.mark.parametrize("seed", range(20))
def test_A08_the_order_of_the_files_keys_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = rng.sample([*value], len(value))
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(part) for part in value] if isinstance(value, list) else value

    document = {"machine": "m", "initial": "p", "states": PARALLEL, "data": INTEGER}
    written = json.dumps(shuffled(document))
    assert loads(written).digest == define(document).digest
    assert loads(written).declaration == define(document).declaration


def test_two_ways_of_writing_the_same_have_one_digest() -> None:
    short = {"a": {"on": {"go": "b"}}, "b": {"final": True}}
    long = {"a": {"on": {"go": [{"to": "b"}]}}, "b": {"final": True, "on_enter": []}}
    assert machine(short) == machine(long)
    assert machine(short) != machine({**short, "a": {"on": {"go": {"to": "b", "do": ["x"]}}}})


def test_a_declaration_is_a_fresh_copy() -> None:
    found = loads(BATCH)
    found.declaration["states"].clear()
    assert found.declaration["states"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ("a: {on: {go: nowhere}}", "unknown-state"),
        ("a: {on: {go: b}}\n  b: {}\n  c: {on: {go: a}}", "unreachable-state"),
        ("a: {always: {to: b}}\n  b: {always: {to: a}}", "automatic-cycle"),
        ("a: {always: {to: a}}", "automatic-cycle"),
        ("a: {on: {go: [{to: b, when: 'true'}, {to: b, when: 'false'}]}}\n  b: {}", "name-clash"),
    ],
)
def test_each_fault_of_the_graph_has_its_code(states: str, code: str) -> None:
    assert code in [found for found, _ in faults(f"machine: m\ninitial: a\nstates:\n  {states}\n")]


def test_A10_a_cycle_that_a_timer_stands_on_is_none() -> None:
    found = machine({"a": {"always": {"to": "b"}}, "b": {"after": {"PT1H": "a"}}})
    assert moves(found) == {("a", "always/b"): "b", ("b", "after/PT1H"): "a"}


def test_a_state_that_leads_to_no_end_is_warned_of() -> None:
    found = machine({"a": {"on": {"go": "b", "end": "c"}}, "b": {}, "c": {"final": True}})
    assert [(w.code, w.severity) for w in found.warnings] == [("dead-end-state", "warning")]
    assert "`b`" in found.warnings[0].message


def test_a_budget_bounds_the_states_that_regions_multiply() -> None:
    region = {"initial": "x", "states": {"x": {"on": {"go": "y"}}, "y": {"on": {"no": "x"}}}}
    states = {"p": {"type": "parallel", "states": {f"r{n}": region for n in range(20)}}}
    states["p"]["states"] = {
        name: {
            "initial": "x",
            "states": {"x": {"on": {f"go{name}": "y"}}, "y": {"on": {f"no{name}": "x"}}},
        }
        for name in states["p"]["states"]
    }
    with pytest.raises(DefinitionError) as refusal:
        language.define({"machine": "m", "initial": "p", "states": states}, states_max=500)
    assert [found.code for found in refusal.value.diagnostics] == ["budget-exceeded"]


NEVER = """
machine: m
initial: a
states:
  a: {on: {check: b, skip: c}}
  b: {on: {sign: {to: c, guard: QP}}}
  c: {final: true}
never:
"""


@pytest.mark.parametrize(
    ("never", "path"),
    [
        ("{reach: c}", "a --skip--> c"),
        ("{reach: c, without: b}", "a --skip--> c"),
        ("{reach: c, without: {action: sign}}", "a --skip--> c"),
        ("{reach: c, without: {guard: QP}}", "a --skip--> c"),
        ("{reach: b, without: {action: check}}", None),
        ("{reach: b, without: a}", None),
    ],
)
def test_a_property_that_is_broken_shows_a_shortest_path(never: str, path: str | None) -> None:
    document = f"{NEVER}  - {never}\n"
    if path is None:
        loads(document)
        return
    with pytest.raises(DefinitionError) as refusal:
        loads(document)
    (found,) = refusal.value.diagnostics
    assert found.code == "property-violated"
    assert path in found.message
    assert found.line == 9


def test_a_timer_and_an_end_count_in_every_region() -> None:
    region = {
        "initial": "x",
        "states": {"x": {"after": {"P1D": "y"}}, "y": {"final": True}},
        "on_done": {"to": "p", "when": "data.again"},
    }
    found = machine(
        {"p": {"type": "parallel", "states": {"a": region, "b": region}}},
        data={"again": {"type": "boolean"}},
    )
    assert moves(found) == {
        ("p{x|x}", "after/p.a.x/P1D"): "p{y|x}",
        ("p{x|x}", "after/p.b.x/P1D"): "p{x|y}",
        ("p{y|x}", "after/P1D"): "p{y|y}",
        ("p{x|y}", "after/P1D"): "p{y|y}",
        ("p{y|x}", "done/p.a/p"): "p{x|x}",
        ("p{x|y}", "done/p.b/p"): "p{x|x}",
        ("p{y|y}", "done/p.a/p"): "p{x|x}",
        ("p{y|y}", "done/p.b/p"): "p{x|x}",
    }


def test_names_tell_branches_apart_that_lead_to_the_same_place_by_history_states() -> None:
    branches = [
        {"to": "w.near", "name": "near", "when": "data.x > 1"},
        {"to": "w.far", "name": "far", "when": "data.x <= 1"},
    ]
    found = machine(
        {
            "w": {
                "initial": "one",
                "on": {"off": "off"},
                "states": {
                    "one": {"on": {"next": "two"}},
                    "two": {},
                    "near": {"type": "history"},
                    "far": {"type": "history", "history": "deep"},
                },
            },
            "off": {"on": {"back": branches}},
        },
        data=INTEGER,
    )
    assert {action for state, action in moves(found) if state == "off"} == {
        "back/near@w.one", "back/near@w.two", "back/far@w.one", "back/far@w.two",
    }  # fmt: skip


def test_a_history_state_is_never_active_and_so_no_property_is_about_it() -> None:
    document = """
machine: m
initial: z
states:
  z: {on: {w: p.h}}
  p: {initial: a, on: {back: z}, states: {a: , h: {type: history}}}
never:
  - {reach: p.h}
"""
    with pytest.raises(DefinitionError, match="is a history state, which is never active itself"):
        loads(document)


def test_what_a_conversion_comes_to_may_be_left_open_by_the_solver() -> None:
    definition = loads("""
machine: m
data: {f: {type: number}, g: {type: number}, i: {type: integer}}
initial: x
states:
  x:
    on:
      e:
        - {to: y, when: "data.i <= int(data.f) && data.f * 2.0 > data.g"}
        - {to: z, when: "data.i > int(data.f)"}
  y:
  z:
""")
    assert definition.unproved == ()
