"""Machine documents as SCXML: what is written, and what cannot be."""

from typing import Any
from xml.etree import ElementTree

import pytest

from interlock.language import DefinitionError, loads, read_document
from interlock.language.condition import All, AnyOf, Check, Condition, Expr, In, Not
from interlock.language.condition import read_condition as condition_of
from interlock.language.convert import from_scxml, to_scxml, to_yaml
from interlock.language.convert.scxml_conditions import read, write
from interlock.language.convert.terms import Unreadable
from tests.docs.pages import DOCS, code_blocks
from tests.support.converting import refused

SPACE = "{http://www.w3.org/2005/07/scxml}"
HEAD = "machine: m\nversion: 1\ninitial: a\n"
NUMBERS = "data: {a: {type: integer}, b: {type: integer}, c: {type: integer}, n: {type: integer}, "
NUMBERS += "due: {type: date-time}}\n"


def out(text: str) -> Any:
    return to_scxml(read_document(text, file="m.yaml"))


def test_the_machine_of_the_page_goes_out_and_comes_back() -> None:
    text, *_ = code_blocks(DOCS / "definitions.md", "yaml")
    exported = out(text)
    assert exported.notes == ()
    timer = ElementTree.fromstring(exported.text).find(f".//{SPACE}send")
    assert timer is not None
    assert timer.attrib["delay"] == "259200s"
    back = from_scxml(exported.text)
    assert loads(to_yaml(back.definition)) == loads(text)


@pytest.mark.parametrize(
    "states",
    [
        # names that several states have, and that hide each other
        "a: {initial: b, on: {e: c}, states: {b: {on: {f: c}}, c: {on: {g: b}}}}\n  c: {}\n",
        # regions in an order of their own, and a conflict
        "a: {type: parallel, order: [y, x], on: {e: b}, states: {x: {on: {e: b}}, y: {}}}\n"
        "  b: {}\n",
        # memories, with a default and without, of regions too
        "a: {type: parallel, on: {e: b}, states: {x: {}, h: {type: history}}}\n"
        "  b: {on: {e: a.h}}\n",
        "a: {initial: x, on: {e: b}, states: {x: {on: {f: y}}, y: {}, "
        "h: {type: history, history: deep, to: y}}}\n  b: {on: {e: a.h}}\n",
        # branches that exclude each other, branches in order, names of branches
        "a: {on: {e: [{to: b, when: data.x}, {to: b, when: '!data.x', name: other}]}}\n  b: {}\n",
        "a: {on: {e: {order: first-match, branches: [{to: b, when: data.x}, {to: a}]}}}\n  b: {}\n",
        # conditions of every kind, beside a label
        "a: {on: {e: {to: b, guard: QP, when: {all: [data.x, {not: {check: ok}}, "
        "{any: [{in: a}, data.y]}]}}}}\n  b: {}\n",
        "a: {on: {e: {to: b, guard: \"it's\", when: {check: \"a'b\"}}}}\n  b: {}\n",
        # timers of every length
        "a: {after: {PT1.5S: b, 500ms: c, P1W: d}}\n  b: {}\n  c: {}\n  d: {}\n",
        # ends, hooks, raised events, what must be present
        "a: {initial: x, on_done: b, states: {x: {on: {e: y}}, y: {final: true}}}\n"
        "  b: {on_enter: [ring, {raise: e}], on_exit: hush, data: [x], on: {e: {do: [note]}}}\n",
        # data
        "a: {on: {e: {set: {x: data.y, y: 'true'}}}}\n",
        # an internal transition
        "a: {initial: x, states: {x: {}, y: {}}, on: {e: {to: a.y, internal: true}}}\n",
    ],
)  # fmt: skip
def test_what_goes_out_comes_back_with_the_same_digest(states: str) -> None:
    data = "data: {x: {type: boolean, default: true}, y: {type: boolean, default: false}}\n"
    text = f"{HEAD}{data}conflicts: first-region\nstates:\n  {states}"
    back = from_scxml(out(text).text)
    assert loads(to_yaml(back.definition)) == loads(text)


def test_other_processors_see_plain_scxml() -> None:
    states = "states: {a: {on: {e: {to: b, when: data.n < 1}}}, b: {final: true}}\n"
    text = f"{HEAD}{NUMBERS}{states}"
    found = out(text).text
    root = ElementTree.fromstring(found)
    assert (root.tag, root.attrib["version"], root.attrib["initial"]) == (
        f"{SPACE}scxml",
        "1.0",
        "a",
    )
    transition = root.find(f"{SPACE}state/{SPACE}transition")
    assert transition is not None
    assert transition.attrib == {"event": "e", "cond": "data.n < 1", "target": "b"}
    assert [child.attrib["id"] for child in root.findall(f"{SPACE}final")] == ["b"]


def test_names_with_blanks_become_others_and_are_told() -> None:
    exported = out("machine: m\ninitial: a b\nstates: {a b: {on: {go on: a_b}}, a_b: {}}\n")
    assert [note.code for note in exported.notes] == ["renamed"] * 3
    back = from_scxml(exported.text)
    assert {b.action for b in loads(to_yaml(back.definition)).flat.branches} == {"go_on"}


def test_descriptions_are_left_out_and_that_is_told() -> None:
    exported = out(f"{HEAD}description: why\nstates: {{a: {{label: A}}}}\n")
    assert [note.code for note in exported.notes] == ["annotation-dropped"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ("{a: {after: {soon: {at: data.due, to: b}}}, b: {}}", "moment-timer"),
        ("{a: {on: {e: {set: {a: data.b, b: data.a}}}}}", "set-in-turn"),
        ('{a: {on_enter: "a\\x01b"}}', "bad-character"),
        ("{a: {on: {e: zz}}}", "unknown-state"),
    ],
)
def test_what_scxml_cannot_say_is_refused_by_name_and_place(states: str, code: str) -> None:
    assert refused(lambda: out(f"{HEAD}{NUMBERS}states: {states}\n")) == [(code, 5)]


def test_what_is_set_is_written_so_that_nothing_is_read_after_it_was_set() -> None:
    states = "states: {a: {on: {e: {set: {a: data.b, b: data.c, c: '1'}}}}}\n"
    text = out(f"{HEAD}{NUMBERS}{states}").text
    assert text.index('location="a"') < text.index('location="b"') < text.index('location="c"')


# Conditions as one text


X, Y, OK, HERE = Expr("data.x"), Expr("data.n < 1 && data.y"), Check("it's \\"), In("p.a")


@pytest.mark.parametrize(
    ("when", "guard"),
    [
        (X, None), (Y, None), (OK, None), (HERE, None), (Not(Y), None), (Not(Not(OK)), None),
        (All((X, Y)), None), (AnyOf((X, OK)), None), (Not(All((X, HERE))), None),
        (AnyOf((All((X, OK)), Not(AnyOf((Y, HERE))))), None), (All(), "label's"), (X, "l"),
        (All((X, OK)), "l"), (AnyOf((X, OK)), "l"), (AnyOf(), None),
        (Expr("'a && b)' == data.s"), None),
        (All((Expr("data.s == ')'"), OK)), None),
    ],
)  # fmt: skip
def test_a_condition_is_read_back_as_it_was_written(when: Condition, guard: str | None) -> None:
    text = write(when, guard, lambda path: f"#{path}")
    assert text is not None
    found, label = read(text, lambda id: id.removeprefix("#"))
    assert label == guard
    again = All() if found is None else condition_of(found, lambda name: name)
    assert write(again, None, str) == write(when, None, str)


def test_no_condition_is_no_text() -> None:
    assert write(All(), None, str) is None


@pytest.mark.parametrize(
    "text",
    ["In('a') == true", "data.x && In('a')", "!asserted('l')", "asserted('a') && asserted('b')",
     "asserted('a') || (data.x)", "check(data.x)", "(" * 60 + "In('a')" + ")" * 60],
)  # fmt: skip
def test_what_is_not_put_together_of_units_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text, str)


def test_what_others_wrote_into_our_attributes_is_refused_and_not_believed() -> None:
    exported = out(f"{HEAD}data: {{x: {{type: boolean}}}}\nstates: {{a: {{}}}}\n").text
    for old, new in (
        ('il:version="1"', 'il:version="{"'),
        ('il:version="1"', 'il:version="[]"'),
        ("{&quot;type&quot;", "[&quot;type&quot;"),
        ('\'{"type": "boolean"}\'', "'[]'"),
        ('il:version="1"', 'il:never=\'[{"reach": "a"}]\''),
    ):
        if old in exported:
            with pytest.raises(DefinitionError):
                from_scxml(exported.replace(old, new))


def test_data_of_our_own_expressions_is_refused_where_scxml_would_do_it_in_turn() -> None:
    exported = out(
        f"{HEAD}data: {{x: {{type: integer}}}}\nstates: {{a: {{on: {{e: {{set: {{x: '1'}}}}}}}}}}\n"
    )
    assign = '<assign location="x" expr="1"/>'
    assert assign in exported.text
    twice = exported.text.replace(assign, f'{assign}<assign location="x" expr="data.x + 1"/>')
    assert [code for code, _ in refused(lambda: from_scxml(twice))] == ["assign-in-order"]
    moved = exported.text.replace("<transition", f"<onentry>{assign}</onentry><transition", 1)
    assert "assign-on-the-way" in [code for code, _ in refused(lambda: from_scxml(moved))]
