"""Expressions of a machine against what they may read, and their places in the file."""

import json
from typing import Any

import pytest

from interlock.language.definition import Definition, define, loads, restore
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.expressions.expression import ExpressionError
from interlock.language.flatten import Branch

DATA = """
data:
  amount: {type: number}
  due_at: {type: date-time, optional: true}
  region: {type: string, enum: [EU, US]}
events: {paid: {sum: {type: number}}}
"""


def faults(states: str) -> list[Diagnostic]:
    """Compile states that begin in `new`; their first line is line 1."""
    with pytest.raises(DefinitionError) as refusal:
        loads(f"states:{states}\nmachine: m\ninitial: new{DATA}")
    return [*refusal.value.diagnostics]


def compiled(states: dict[str, Any]) -> Definition:
    head = {"machine": "m", "initial": "new"}
    data = {
        "amount": {"type": "number"},
        "note": {"type": "string", "optional": True},
        "due_at": {"type": "date-time", "optional": True},
        "region": {"type": "string", "enum": ["EU", "US"]},
    }
    events = {"paid": {"sum": {"type": "number"}}}
    return define({**head, "data": data, "events": events, "states": states})


def branch(definition: Definition, action: str) -> Branch:
    (found,) = [one for one in definition.flat.branches if one.action == action]
    return found


@pytest.mark.parametrize(
    "written",
    [
        "data.amont < 1.0",
        '"data.amont < 1.0"',
        "'data.amont < 1.0'",
        r'"\x64ata.amont < 1.0"',
        """'size("''") == 1 && data.amont < 1.0'""",
        """'size('''') == 0 && data.amont < 1.0'""",
        r'"size(\"\u00e9\") == 1 && data.amont < 1.0"',
        r'"size(\"\U0001f600\x41\t\") == 3 && data.amont < 1.0"',
        "\"size('é😀') == 2 && data.amont < 1.0\"",
    ],
)
def test_a_fault_is_shown_where_it_stands_inside_of_the_text(written: str) -> None:
    (found,) = faults(f"\n  new: {{on: {{go: {{to: new, when: {written}}}}}}}")
    at = (found.source_line or "")[(found.column or 0) - 1 :]
    assert (found.code, found.line, found.path) == ("expression-type", 2, "states.new.on.go.when")
    assert at.startswith("amont < 1.0")


@pytest.mark.parametrize("escape", [r"\ud83d\ude00", r"\u00e9", r"\"", r"\/", "é😀"])
def test_so_it_is_in_json(escape: str) -> None:
    head = '{"machine": "m", "initial": "n", "data": {"amount": {"type": "number"}}, "states": '
    when = f"size('{escape}') > 0 && data.amont == 1.0"
    document = f'{head}{{"n": {{"on": {{"go": {{"to": "n", "when": "{when}"}}}}}}}}}}'
    with pytest.raises(DefinitionError) as refusal:
        loads(document, file="m.json")
    (found,) = refusal.value.diagnostics
    assert document[(found.column or 0) - 1 :].startswith("amont == 1.0")


def test_of_a_text_over_several_lines_the_start_is_shown() -> None:
    (found,) = faults("\n  new:\n    on:\n      go:\n        when: >\n          data.amont < 1.0\n")
    assert (found.line, found.column) == (5, 15)
    (found,) = faults("\n  new:\n    on:\n      go:\n        when: &a data.amont < 1.0\n")
    assert (found.line, found.column) == (5, 15)


def test_every_place_of_an_expression_is_checked() -> None:
    found = faults(
        """
  new:
    on:
      go: {to: new, when: {all: [{check: open}, {not: {any: [data.amount, "data.amount <"]}}]}}
      paid: {to: new, set: {amount: event.summ, region: "'UE'", amuont: "1.0", due_at: "1.0"}}
    after:
      due: {at: data.amount, to: over}
    always: {to: over, when: event.sum > 1.0}
  over: {final: true}"""
    )
    assert [(f.code, f.line, f.path) for f in found] == [
        ("expression-type", 4, "states.new.on.go.when.all[1].not.any[0]"),
        ("expression-syntax", 4, "states.new.on.go.when.all[1].not.any[1]"),
        ("expression-type", 5, "states.new.on.paid.set.amount"),
        ("expression-type", 5, "states.new.on.paid.set.region"),
        ("unknown-key", 5, "states.new.on.paid.set.amuont"),
        ("expression-type", 5, "states.new.on.paid.set.due_at"),
        ("expression-type", 7, "states.new.after.due.at"),
        ("expression-type", 8, "states.new.always.when"),
    ]
    hints = [f.hint for f in found]
    assert hints[2] == "did you mean `sum`?"
    assert hints[4] == "did you mean `amount`?"


def test_expressions_are_checked_beside_faults_of_the_tree() -> None:
    found = faults("\n  new: {on: {go: {to: nowhere}, paid: {to: new, when: data.amont > 1.0}}}")
    assert [f.code for f in found] == ["unknown-state", "expression-type"]


def test_an_event_that_is_not_declared_has_no_fields() -> None:
    (found,) = faults("\n  new: {on: {go: {to: new, when: event.sum > 1.0}}}")
    assert "`event` has no field `sum`" in found.message


def test_only_an_event_brings_a_payload() -> None:
    compiled({"new": {"on": {"paid": {"to": "new", "when": "event.sum > 1.0"}}}})
    for key in ("always", "after"):
        choice: Any = {"to": "old", "when": "event.sum > 1.0"}
        choice = {"P1D": choice} if key == "after" else choice
        with pytest.raises(DefinitionError) as refusal:
            compiled({"new": {key: choice}, "old": {}})
        (found,) = refusal.value.diagnostics
        assert found.code == "expression-type"


def test_what_may_be_absent_is_read_where_it_is_known_to_be_there() -> None:
    waiting = {"data": ["due_at"], "on": {"go": {"to": "new", "when": "data.due_at < now"}}}
    states = {"new": {"on": {"wait": {"to": "waiting", "set": {"due_at": "now"}}}}}
    definition = compiled({**states, "waiting": waiting})
    go = branch(definition, "go/new")
    late = {"data": {"due_at": "2026-01-01T00:00:00Z"}, "now": "2026-01-02T00:00:00Z"}
    assert definition.expression("data.due_at < now", go).evaluate(late) is True
    del waiting["data"]
    with pytest.raises(DefinitionError, match=r"`data\.due_at` may be absent"):
        compiled({**states, "waiting": waiting})


def test_a_branch_of_an_outer_state_is_checked_in_every_state_inside() -> None:
    outer: dict[str, Any] = {
        "initial": "one",
        "on": {"late": {"to": "new", "when": "data.due_at < now"}},
        "states": {"one": {"data": ["due_at"], "on": {"next": "two"}}, "two": {"data": ["due_at"]}},
    }
    new = {"on": {"go": {"to": "outer", "set": {"due_at": "now"}}}}
    assert compiled({"new": new, "outer": outer}).states == ("new", "outer.one", "outer.two")
    del outer["states"]["two"]["data"]
    with pytest.raises(DefinitionError) as refusal:
        compiled({"new": new, "outer": outer})
    (found,) = refusal.value.diagnostics
    assert (found.code, found.path) == ("expression-type", "states.outer.on.late.when")


def test_equal_expressions_are_compiled_once() -> None:
    paid = {"to": "new", "when": "data.amount < 1.0"}
    definition = compiled({"new": {"on": {"paid": paid, "go": paid}}})
    first, second = (branch(definition, name) for name in ("go/new", "paid/new"))
    found = definition.expression("data.amount < 1.0", first)
    assert definition.expression("data.amount < 1.0", second) is found
    assert definition.expression("data.amount < 1.0", first) is found


def test_one_text_reads_what_each_event_brings() -> None:
    states = {"new": {"on": {n: {"when": "event.n == 1"} for n in ("int", "text")}}}
    head = {"machine": "m", "initial": "new", "states": states}
    events = {"int": {"n": {"type": "integer"}}, "text": {"n": {"type": "string"}}}
    with pytest.raises(DefinitionError) as refusal:
        define({**head, "events": events})
    (found,) = refusal.value.diagnostics
    assert found.path == "states.new.on.text.when"


# What `set` gives


def test_a_value_fits_its_field() -> None:
    set_ = {"amount": "1", "note": "actor", "region": "'EU'", "due_at": "now"}
    definition = compiled({"new": {"on": {"go": {"set": set_}}}})
    go = branch(definition, "go")
    found = {name: definition.setter(name, text, go) for name, text in go.sets}
    amount = found["amount"]
    assert amount is not None
    value = amount.evaluate({"data": {}})
    assert (value, type(value)) == (1.0, float)  # a whole number that is written is a double there


def test_absent_takes_an_optional_field_away() -> None:
    definition = compiled({"new": {"on": {"go": {"set": {"note": " absent"}}}}})
    go = branch(definition, "go")
    assert definition.setter("note", " absent", go) is None
    with pytest.raises(DefinitionError) as refusal:
        compiled({"new": {"on": {"go": {"set": {"amount": "absent"}}}}})
    (found,) = refusal.value.diagnostics
    assert (found.code, found.message) == ("expression-type", "`amount` is never absent")


def test_a_whole_number_does_not_stand_for_text_of_another_field() -> None:
    """Two fields that differ in their choices alone share no compiled expression."""
    data = {n: {"type": "string", "enum": [n]} for n in ("EU", "US")}
    states = {"new": {"on": {"go": {"set": {"EU": "'EU'", "US": "'EU'"}}}}}
    with pytest.raises(DefinitionError) as refusal:
        define({"machine": "m", "initial": "new", "data": data, "states": states})
    (found,) = refusal.value.diagnostics
    assert found.path == "states.new.on.go.set.US"


def test_two_regions_do_not_set_one_field_at_once() -> None:
    region = {"on": {"go": {"set": {"amount": "data.amount + 1.0"}}}}
    with pytest.raises(DefinitionError) as refusal:
        compiled({"new": {"type": "parallel", "states": {"p": region, "q": region}}})
    (found,) = refusal.value.diagnostics
    assert (found.code, found.path) == ("nondeterministic", "states.new.states.q.on.go")
    assert "sets `amount` in two regions" in found.message


# Timers


def test_a_timer_waits_for_a_while_or_for_a_moment() -> None:
    due = {"at": "data.due_at + duration('1h')", "to": "new"}
    waiting = {"data": ["due_at"], "after": {"P1D": "new", "due": due}}
    new = {"on": {"go": {"to": "waiting", "set": {"due_at": "now"}}}}
    definition = compiled({"new": new, "waiting": waiting})
    moment = definition.moment(branch(definition, "after/due"))
    assert moment is not None
    at = moment.evaluate({"data": {"due_at": "2026-01-01T00:00:00Z"}})
    assert at.isoformat() == "2026-01-01T01:00:00+00:00"
    assert definition.moment(branch(definition, "after/P1D")) is None
    assert definition.moment(branch(definition, "go")) is None


# What is kept


def test_a_definition_is_restored_from_its_document() -> None:
    go = {"to": "new", "when": "data.amount < 1.0", "set": {"note": "actor"}}
    definition = compiled({"new": {"data": ["amount"], "on": {"go": go}}})
    again = restore(definition.document)
    assert again == definition
    assert again.document == definition.document
    assert again.declaration == definition.declaration
    assert again.required("new") == definition.required("new") == {"amount"}
    one = branch(again, "go/new")
    assert again.expression("data.amount < 1.0", one).evaluate({"data": {"amount": 0.5}}) is True
    assert again.data == definition.data


def test_to_restore_proves_and_judges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = compiled({"new": {"on": {"go": {"when": "data.amount < 1.0"}}}})

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("check_schema", "check_determinism", "check_expressions", "check_presence"):
        monkeypatch.setattr(f"interlock.language.definition.{name}", forbidden)
    assert restore(definition.document) == definition


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"m"'])
def test_what_is_no_document_is_not_restored(text: str) -> None:
    with pytest.raises(DefinitionError):
        restore(text)


def test_the_document_does_not_depend_on_how_it_was_written() -> None:
    written = "machine: m\ninitial: new\nversion: 1\nstates: {new: {on: {a: new, b: new}}}"
    other = {
        "states": {"new": {"on": {"b": "new", "a": "new"}}},
        "version": 1,
        "initial": "new",
        "machine": "m",
    }
    assert loads(written).document == define(other).document
    assert json.loads(loads(written).document) == other


# Cases


def test_B01_what_a_guard_reads_has_to_be_declared() -> None:
    """A guard that would read what is not there is refused before there is an instance."""
    (found,) = faults('\n  new: {on: {go: {to: new, when: "order.total > 100"}}}')
    assert found.code == "expression-type"
    definition = compiled({"new": {"on": {"go": {"when": "1.0 / data.amount > 0.5"}}}})
    (go,) = definition.flat.branches
    guard = definition.expression("1.0 / data.amount > 0.5", go)
    with pytest.raises(ExpressionError):
        guard.evaluate({"data": {}})
    with pytest.raises(ExpressionError):
        guard.evaluate({})


@pytest.mark.parametrize(
    "text",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "data.__class__.__name__ == 'x'",
        "data.note.__reduce__()",
        "__import__('os').system('true') == 0",
        "data.region.format(data)",
    ],
)
def test_B02_a_walk_out_of_the_language_is_refused_at_compile(text: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        compiled({"new": {"on": {"go": {"when": text}}}})
    (found,) = refusal.value.diagnostics
    assert found.code in ("expression-syntax", "expression-type")


@pytest.mark.parametrize("note", ['" or True or "', '" || true || "', 'ok" || "" == "', "'"])
def test_B07_a_value_never_becomes_part_of_a_guard(note: str) -> None:
    text = 'has(data.note) && data.note == "ok"'
    definition = compiled({"new": {"on": {"go": {"when": text}}}})
    (go,) = definition.flat.branches
    assert definition.expression(text, go).evaluate({"data": {"note": note}}) is False
    assert definition.expression(text, go).evaluate({"data": {"note": "ok"}}) is True
