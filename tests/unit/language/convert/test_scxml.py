"""SCXML documents as machine documents: what each construct becomes, and what is refused."""

from contextlib import suppress
from itertools import product
from time import monotonic
from typing import Any

import pytest

from interlock.language import DefinitionError, define
from interlock.language.convert import Converted, ConvertError, from_scxml
from tests.support.converting import moves, notes, refused
from tests.support.fields import Fields
from tests.support.foreign import SCXML
from tests.support.running import Running

HEAD = '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0">'


def read(inside: str, **options: Any) -> Converted:
    return from_scxml(f"{HEAD}\n{inside}\n</scxml>", file="m.scxml", **options)


def run(converted: Converted, *events: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Send events; give the active states and the data."""
    fields = Fields(converted.definition.get("data", {}))
    running = Running(define(converted.definition).flat, fields.holds, change=fields.change)
    for event in events:
        running.send(converted.events[event])
    return running.leaves, fields.values


def test_every_construct_of_the_sample_is_carried_over() -> None:
    converted = from_scxml(SCXML)
    assert converted.definition["machine"] == "oven"
    assert converted.states["speed"] == "on.fan.speed"
    assert notes(converted) == {
        "descriptor-expanded", "document-order", "end-first", "log-dropped", "never-taken",
        "opaque-guard",
        "renamed",
    }  # fmt: skip
    assert run(converted, "turn.on") == (
        ("on.fan.slow", "on.lamp.lit"),
        {"heat": 2, "door": "shut", "rates": [1, 2.5], "guard_1": False},
    )
    assert run(converted, "turn.on", "turn.off", "turn.on")[1]["heat"] == 1
    assert run(converted, "turn.on", "turn", "turn.off")[0] == ("off",)


# Order


def test_of_two_transitions_the_first_in_the_document_wins() -> None:
    converted = read(
        '<datamodel><data id="n" expr="5"/></datamodel>'
        '<state id="a"><transition event="e" cond="n &gt; 3" target="b"/>'
        '<transition event="e" cond="n &gt; 1" target="c"/>'
        '<transition event="e" target="d"/></state>'
        '<state id="b"/><state id="c"/><state id="d"/>'
    )
    assert moves(converted) == {("a", "e/b", "b"), ("a", "e/c", "c"), ("a", "e/d", "d")}
    whens = {b.to_state: b.when for b in define(converted.definition).flat.branches}
    assert len(set(map(str, whens.values()))) == 3
    assert run(converted, "e")[0] == ("b",)
    assert "document-order" in notes(converted)


def test_a_transition_that_an_earlier_one_always_precedes_is_left_out_and_told() -> None:
    converted = read(
        '<state id="a"><transition event="e" target="b"/>\n<transition event="e" target="c"/>'
        '<transition event="f" target="c"/></state><state id="b"/><state id="c"/>'
    )
    assert moves(converted) == {("a", "e", "b"), ("a", "f", "c")}
    assert "never-taken" in notes(converted)


def test_the_same_condition_twice_is_a_dead_branch() -> None:
    converted = read(
        '<datamodel><data id="n" expr="5"/></datamodel><state id="a">'
        '<transition event="e" cond="n &gt; 3" target="b"/>'
        '<transition event="e" cond="n&gt;3" target="a"/></state><state id="b"/>'
    )
    assert moves(converted) == {("a", "e/b", "b")}
    assert "never-taken" in notes(converted)


def test_what_nothing_reaches_is_left_out_with_all_that_speaks_of_it() -> None:
    converted = read(
        '<parallel id="p"><state id="r"><state id="r1">'
        '<transition event="e" cond="In(\'lost\') || In(\'s1\')" target="r2"/></state>'
        '<state id="r2"/><state id="lost"><transition event="e" target="r1"/></state>'
        '<history id="h"><transition target="lost"/></history></state><state id="s1"/></parallel>'
    )
    assert moves(converted) == {("p{r1|s1}", "e", "p{r2|s1}")}
    assert "unreachable-state" in notes(converted)
    assert "lost" not in str(converted.definition)


def test_two_branches_to_one_state_get_names() -> None:
    converted = read(
        '<datamodel><data id="x" expr="true"/><data id="y" expr="true"/></datamodel>'
        '<state id="o"><transition event="e" cond="y" target="b"/>'
        '<state id="a"><transition event="e" cond="x" target="b"/></state></state><state id="b"/>'
    )
    assert {action for _, action, _ in moves(converted)} == {"e/b", "e/b-2"}


# Names


def test_names_become_ours_and_stay_distinct() -> None:
    converted = read(
        '<state id="a.b"><transition event="x.y" target="a_b"/>'
        '<transition event="x_y" target="a/b"/></state>'
        '<state id="a_b"><transition event="done" target="a.b"/></state><state id="a/b"/>'
    )
    assert converted.states == {"a.b": "a_b", "a_b": "a_b_2", "a/b": "a_b_3"}
    assert converted.events == {"x.y": "x_y", "x_y": "x_y_2", "done": "done_2"}
    assert "renamed" in notes(converted)


def test_an_id_within_the_id_around_it_is_read_as_a_path() -> None:
    converted = read(
        '<state id="work"><transition event="e" target="work.two"/><state id="work.one"/>'
        '<state id="work.two"/></state>'
    )
    assert converted.states["work.two"] == "work.two"


@pytest.mark.parametrize(("inner", "path"), [("b.a", "b.a_2"), ("b.d", "b.d")])
def test_an_inner_state_that_hides_one_at_the_top_is_given_a_number(inner: str, path: str) -> None:
    converted = read(
        f'<state id="b" initial="b.c"><state id="{inner}"/><state id="b.c">'
        f'<state id="x"><transition event="e" target="a"/>'
        f'<transition event="f" target="{inner}"/></state></state></state><state id="a"/>'
    )
    assert converted.states[inner] == path
    assert moves(converted) == {("b.c.x", "e", "a"), ("b.c.x", "f", path)}


def test_a_prefix_and_a_wildcard_stand_for_what_is_known() -> None:
    text = (
        '<state id="a"><transition event="err" target="b"/><transition event="ok.*" target="c"/>'
        '<transition event="*" target="d"/></state><state id="b"/><state id="c"/><state id="d"/>'
    )
    converted = read(text, events=["err.disk", "errors", "ok.now"])
    assert moves(converted) == {
        ("a", "err", "b"), ("a", "err_disk", "b"), ("a", "errors", "d"), ("a", "ok", "c"),
        ("a", "ok_now", "c"),
    }  # fmt: skip


# Ends and timers


def test_the_end_of_a_state_is_told_to_itself_or_to_others() -> None:
    own = read(
        '<state id="a"><transition event="done.state.a" target="b"/><state id="x">'
        '<transition event="e" target="y"/></state><final id="y"/></state><state id="b"/>'
    )
    assert "on_done" in own.definition["states"]["a"]
    other = read(
        '<parallel id="p"><state id="a"><state id="x"><transition event="e" target="y"/></state>'
        '<final id="y"/></state>'
        '<state id="b"><state id="b1"><transition event="done.state.a" target="b2"/></state>'
        '<state id="b2"/></state></parallel>'
    )
    assert run(own, "e")[0] == ("b",)
    assert run(other, "e")[0] == ("p.a.y", "p.b.b2")


def test_the_end_of_a_state_is_told_after_what_was_raised_before() -> None:
    converted = read(
        '<state id="a"><transition event="done.state.a" target="b"/>'
        '<transition event="first" target="c"/>'
        '<state id="x"><transition event="e" target="y"><raise event="first"/></transition></state>'
        '<final id="y"/></state><state id="b"/><state id="c"/>'
    )
    assert run(converted, "e")[0] == ("c",)
    regions = read(
        '<parallel id="p"><transition event="done.state.p" target="b"/>'
        '<state id="a"><state id="x"><transition event="e" target="y"><raise event="f"/>'
        '</transition></state><final id="y"/></state></parallel><state id="b"/>'
    )
    assert "end-first" in notes(regions)


def test_the_end_of_a_state_that_has_none_never_comes() -> None:
    converted = read(
        '<state id="a"><transition event="done.state.a" target="b"/>'
        '<transition event="e" target="b"/></state><state id="b"/>'
    )
    assert moves(converted) == {("a", "e", "b")}
    assert "never-taken" in notes(converted)


def test_a_delayed_event_that_is_cancelled_on_the_way_out_is_a_timer() -> None:
    converted = read(
        '<state id="a"><onentry><send event="late" delay="1.5s" id="t"/></onentry>'
        '<onexit><cancel sendid="t"/></onexit><transition event="late" target="b"/></state>'
        '<state id="b"/>'
    )
    assert converted.definition["states"]["a"] == {"after": {"1500ms": "b"}}


TIMER = '<state id="a"><onentry><send event="late" delay="{}" id="t"/></onentry>{}{}</state>{}'
CANCEL = '<onexit><cancel sendid="t"/></onexit>'
HEARD = '<transition event="late" target="b"/>'


@pytest.mark.parametrize(
    ("delay", "cancel", "heard", "rest"),
    [
        ("3s", "", HEARD, '<state id="b"/>'),
        ("3s", CANCEL, HEARD, '<state id="b"><transition event="late" target="a"/></state>'),
        ("3s", CANCEL, '<transition event="e" target="b"/>', '<state id="b"/>'),
        ("soon", CANCEL, HEARD, '<state id="b"/>'),
        ("3s", CANCEL, HEARD + '<transition event="e"><raise event="late"/></transition>',
         '<state id="b"/>'),
    ],
)  # fmt: skip
def test_any_other_delayed_event_is_refused(delay: str, cancel: str, heard: str, rest: str) -> None:
    found = refused(lambda: read(TIMER.format(delay, cancel, heard, rest)))
    assert ("delayed-send", 2) in found


# Data


def test_what_is_assigned_on_the_way_is_one_set() -> None:
    converted = read(
        '<datamodel><data id="x" expr="2"/></datamodel>'
        '<state id="a"><onexit><assign location="x" expr="x + 1"/></onexit>'
        '<transition event="e" target="b"><assign location="x" expr="x * 10"/></transition></state>'
        '<state id="b"><onentry><assign location="x" expr="x - 4"/></onentry></state>'
    )
    assert run(converted, "e") == (("b",), {"x": 26})


def test_what_depends_on_the_states_left_is_a_branch_for_each() -> None:
    converted = read(
        '<datamodel><data id="x" expr="0"/></datamodel>'
        '<state id="o"><transition event="e" target="z"/>'
        '<state id="a"><onexit><assign location="x" expr="1"/></onexit>'
        '<transition event="f" target="b"/></state>'
        '<state id="b"><onexit><assign location="x" expr="2"/></onexit></state></state>'
        '<state id="z"/>'
    )
    assert run(converted, "e")[1] == {"x": 1}
    assert run(converted, "f", "e")[1] == {"x": 2}


def test_numbers_beside_each_other_are_of_one_type() -> None:
    converted = read(
        '<datamodel><data id="n" expr="1"/><data id="r" expr="0.5"/></datamodel>'
        '<state id="a"><transition event="e" cond="n / 2 === r" target="b">'
        '<assign location="n" expr="n + 1"/></transition></state><state id="b"/>'
    )
    assert converted.definition["data"]["n"] == {"type": "number", "default": 1}
    assert run(converted, "e") == (("b",), {"n": 2.0, "r": 0.5})


def test_a_condition_that_cannot_be_read_is_data_to_be_supplied() -> None:
    converted = read(
        '<state id="a"><transition event="e" cond="_event.data.ok" target="b"/>'
        '<transition event="f" cond="_event.data.ok" target="b"/>'
        '<transition event="g" cond="ready()" target="b"/></state><state id="b"/>'
    )
    assert converted.definition["data"] == {
        "guard_1": {"type": "boolean", "default": False, "description": "_event.data.ok"},
        "guard_2": {"type": "boolean", "default": False, "description": "ready()"},
    }
    assert notes(converted) == {"opaque-guard"}


def test_names_that_expressions_cannot_have_are_changed() -> None:
    converted = read(
        '<datamodel><data id="n$" expr="1"/><data id="in" expr="1"/><data id="n_" expr="1"/>'
        "</datamodel>"
        '<state id="a"><transition event="e" target="a"><assign location="n_" expr="n_ + 1"/>'
        "</transition></state>"
    )
    assert [*converted.definition["data"]] == ["n_", "x_in", "n__2"]
    assert run(converted, "e")[1] == {"n_": 1, "x_in": 1, "n__2": 2}
    assert "renamed" in notes(converted)


def test_data_that_nothing_tells_the_type_of_is_left_out() -> None:
    converted = read(
        '<datamodel><data id="x"/><data id="y" expr="null"/></datamodel><state id="a"/>'
    )
    assert "data" not in converted.definition
    assert notes(converted) == {"data-untyped"}


def test_automatic_transitions_that_go_round_are_bounded_as_what_is_raised_is() -> None:
    converted = read(
        '<datamodel><data id="i" expr="0"/></datamodel><state id="a">'
        '<transition cond="i &lt; 9" target="a"><assign location="i" expr="i + 1"/></transition>'
        '<transition cond="i === 9" target="b"/></state><state id="b"/>'
    )
    assert run(converted)[0] == ("b",)
    assert "automatic-loop" in notes(converted)


def test_automatic_transitions_that_go_round_beside_what_is_raised_are_refused() -> None:
    text = (
        '<state id="a"><onentry><raise event="e"/></onentry><transition target="b"/></state>'
        '<state id="b"><transition target="a"/></state>'
    )
    assert refused(lambda: read(text)) == [("automatic-cycle", 2)]


# Refusals


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ('<state id="a" src="b.xml"/>', "src"),
        ('<state id="a"/><state id="a"/>', "duplicate-id"),
        ('<state id="a"><transition event="e" target="zz"/></state>', "unknown-state"),
        ('<state id="a" initial="b"><state id="c"/></state><state id="b"/>', "initial-outside"),
        ('<state id="a"><transition event="e" target="b c"/></state><state id="b"/><state id="c"/>',
         "targets-apart"),
        ('<state id="a"><invoke src="x"/></state>', "unsupported"),
        ('<script>x = 1</script><state id="a"/>', "unsupported"),
        ('<state id="a"><onentry><x:y xmlns:x="urn:x"/></onentry></state>', "unsupported"),
        ('<state id="a"><onentry><send event="e" target="#_parent"/></onentry></state>',
         "send-elsewhere"),
        ('<state id="a"><onentry><send event="e" namelist="x"/></onentry></state>',
         "send-with-data"),
        ('<state id="a"><onentry><send eventexpr="x"/></onentry></state>', "send-computed"),
        ('<state id="a"><onentry><raise/></onentry></state>', "no-event"),
        ('<state id="a"><onexit><cancel sendid="t"/></onexit></state>', "cancel"),
        ('<state id="a"><onentry><assign location="q" expr="1"/></onentry></state>',
         "assign-location"),
        ('<datamodel><data id="x" src="x.json"/></datamodel><state id="a"/>', "src"),
        ('<datamodel><data id="x"><y/></data></datamodel><state id="a"/>', "data-content"),
        ('<datamodel><data id="x">{</data></datamodel><state id="a"/>', "data-value"),
        ('<datamodel><data id="x" expr="f()"/></datamodel><state id="a"/>', "data-value"),
        ('<datamodel><data id="x"/><data id="x"/></datamodel><state id="a"/>', "data-id"),
        ('<datamodel><data id="x">1e999</data></datamodel><state id="a"/>', "data-value"),
        ('<datamodel><data id="x">[1, "a"]</data></datamodel><state id="a"/>', "data-value"),
        ('<datamodel><data id="x" expr="1"/></datamodel><state id="a"><transition event="e">'
         '<assign location="x" expr="\'a\'"/></transition></state>', "data-kind"),
        ('<datamodel><data id="x" expr="1"/></datamodel><state id="a"><transition event="e">'
         '<assign location="x"/></transition></state>', "assign-content"),
        ('<datamodel><data id="x" expr="1"/></datamodel><state id="a"><transition event="e">'
         '<assign location="x" expr="f(1)"/></transition></state>', "expression"),
        ('<datamodel><data id="x" expr="1"/></datamodel><state id="a"><transition event="e">'
         '<if cond="x == 1"><raise event="f"/></if></transition></state>', "conditional-raise"),
        ('<state id="a"><initial><transition target="b"><raise event="e"/></transition></initial>'
         '<state id="b"/></state>', "initial-with-actions"),
        ('<state id="a"><state id="b"/><history id="h"><transition cond="x" target="b"/></history>'
         '</state>', "history-condition"),
        ('<state id="a"><transition event="e" target="f"/></state><state id="o"><state id="x"/>'
         '<final id="f"><transition event="e" target="a"/></final></state>',
         "final-with-transitions"),
        ('<final id="a"/>', "initial-final"),
        ("", "no-states"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_over_is_refused_by_name_and_place(inside: str, code: str) -> None:
    found = refused(lambda: read(inside))
    assert code in [name for name, _ in found]
    assert all(line in (1, 2) for _, line in found)


def test_every_construct_that_stands_in_the_way_is_named_at_once() -> None:
    text = '<state id="a" src="x"/>\n<state id="b">\n<invoke/>\n<datamodel><x/></datamodel></state>'
    assert refused(lambda: read(text)) == [("src", 2), ("unsupported", 4), ("unsupported", 5)]
    with pytest.raises(ConvertError, match="`a` is read from another file") as caught:
        read(text)
    assert caught.value.diagnostics[0].show().splitlines()[1:] == [
        '    2 | <state id="a" src="x"/>',
        "      | ^",
    ]


def test_another_root_is_no_scxml() -> None:
    assert refused(lambda: from_scxml("<html/>")) == [("not-scxml", 1)]


def test_regions_that_set_the_same_field_in_one_move_are_refused() -> None:
    text = (
        '<datamodel><data id="x" expr="1"/></datamodel><parallel id="p">'
        '<state id="a"><transition event="e"><assign location="x" expr="2"/></transition></state>'
        '<state id="b"><transition event="e"><assign location="x" expr="3"/></transition></state>'
        "</parallel>"
    )
    assert refused(lambda: read(text)) == [("set-in-regions", 2)]


def test_wildcards_cannot_make_a_document_without_end() -> None:
    states = "".join(
        f'<state id="s{n}"><transition event="e{n}" target="s{n}"/>'
        '<transition event="*" target="s0"/></state>'
        for n in range(400)
    )
    assert ("budget-exceeded", 2) in refused(lambda: read(states))


@pytest.mark.parametrize(
    "inside",
    [
        f'<state id="a"><transition event="{".".join("x" * 200_000)}" target="a"/></state>',
        f'<state id="a"><transition event="{"x " * 200_000}*" target="a"/></state>',
        f'<state id="a"><transition target="{" ".join(map(str, range(50_000)))}"/></state>',
        "".join(f'<state id="a{"".join(odd)}"/>' for odd in product("./{|}", repeat=5)),
    ],
)
def test_long_names_and_lists_take_no_time(inside: str) -> None:
    begun = monotonic()
    with suppress(DefinitionError):
        read(inside)
    assert monotonic() - begun < 20


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", "<scxml", "\x00", b"\xe9", "<scxml>" * 100])
def test_what_is_no_text_or_no_xml_is_refused(text: str | bytes) -> None:
    with pytest.raises(DefinitionError) as caught:
        from_scxml(text, file="m.scxml")
    assert caught.value.diagnostics[0].file == "m.scxml"
