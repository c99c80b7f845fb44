"""Expressions: each type, each refusal with its place, and the traps of the evaluator."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from interlock.language.expressions.checker import LOOPS_MAX
from interlock.language.expressions.expression import (
    Expression,
    ExpressionError,
    ExpressionFault,
    Scope,
    compile_expression,
)
from interlock.language.expressions.properties import (
    DATE_TIME,
    NUMBER,
    STRING,
    Type,
    read_properties,
)
from interlock.language.expressions.syntax import DEPTH_MAX, TEXT_MAX
from interlock.language.proof.domains import domains
from interlock.language.proof.prove import Disjoint, Overlap, Prover
from interlock.language.proof.prove import Test as Claim

DATA = read_properties(
    {
        "amount": {"type": "decimal", "scale": 2, "minimum": 0},
        "tax": {"type": "decimal", "scale": 4, "default": "0.2"},
        "count": {"type": "integer"},
        "rate": {"type": "number"},
        "region": {"type": "string", "enum": ["EU", "US"]},
        "reason": {"type": "string"},
        "urgent": {"type": "boolean"},
        "since": {"type": "date-time"},
        "due": {"type": "date-time", "default": "2026-06-01T00:00:00Z"},
        "due_at": {"type": "date-time", "optional": True},
        "sizes": {"type": "array", "items": {"type": "number"}},
        "prices": {"type": "array", "items": {"type": "decimal"}},
        "customer": {
            "type": "object",
            "optional": True,
            "properties": {"name": {"type": "string"}, "vip": {"type": "boolean"}},
        },
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "price": {"type": "decimal", "scale": 2},
                    "at": {"type": "date-time"},
                    "note": {"type": "string", "optional": True},
                },
            },
        },
    }
)
SCOPE = Scope(DATA, read_properties({"ok": {"type": "boolean"}}))
VALUES: dict[str, Any] = {
    "data": {
        "amount": "99.99",
        "tax": "0.2",
        "count": 3,
        "rate": 2,
        "region": "EU",
        "reason": "ok",
        "urgent": True,
        "since": "2026-05-01T12:00:00+02:00",
        "sizes": [1, 2.5],
        "prices": ["0.1", "0.2"],
        "lines": [{"price": "1.50", "at": "2026-05-01T00:00:00Z"}],
    },
    "event": {"ok": True},
    "actor": "rivera",
    "now": datetime(2026, 5, 1, 10, 0, 1, tzinfo=UTC),
    "instance": {"id": "b-1", "state": "testing", "version": 2},
}


def compiled(text: str, wants: Type | None = None) -> Expression:
    return compile_expression(text, SCOPE, wants=wants)


def value(text: str, **data: Any) -> Any:
    return compiled(text).evaluate({**VALUES, "data": VALUES["data"] | data})


def fault(text: str, wants: Type | None = None) -> ExpressionFault:
    with pytest.raises(ExpressionFault) as refused:
        compiled(text, wants)
    return refused.value


@pytest.mark.parametrize(
    "text",
    [
        "data.count > 2",
        "data.count * 2 + 1 == 7",
        "data.count / 2 == 1 && data.count % 2 == 1",
        "data.rate > 1",
        "data.rate > 1 && data.rate < 2.5",
        "data.rate == 1 + 1",
        "data.rate in [1, 2, 3]",
        "data.rate * 2 > -1",
        "double(data.count) > data.rate",
        'data.region == "EU" && data.region in ["EU", "US"]',
        "data.reason.startsWith('o') && data.reason.matches('^o.$') && size(data.reason) == 2",
        "data.urgent && !false",
        "data.urgent ? data.count > 2 : data.count < 0",
        "(data.urgent ? data.rate : 1) == 2",
        "actor == 'rivera' && event.ok && instance.version == 2",
        "now - data.since == duration('1s')",
        "now > data.since",
        'data.since == timestamp("2026-05-01T10:00:00Z")',
        'data.since == timestamp("2026-05-01T05:00:00-05:00")',
        "data.since + duration('1h') > now && now.getFullYear() == 2026",
        "data.sizes.exists(x, x > 2) && data.sizes.all(x, x > 0) && 1 in data.sizes",
        "data.sizes[1] == 2.5 && size(data.sizes) == 2",
        "data.lines.exists(l, l.price == 1.5 && l.at < now)",
        "data.lines[0].price < 1.51",
        "data.lines.all(l, !has(l.note) || l.note != '')",
        "!has(data.due_at) || data.due_at > now",
        "has(data.due_at) ? data.due_at > now : true",
        "!has(data.customer) || data.customer.vip",
        "data.urgent == (1 < 2)",
        "true // what follows is for people",
    ],
)
def test_what_is_true(text: str) -> None:
    assert value(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "data.prices[0] + data.prices[1] == 0.3",
        "data.amount < 100",
        "data.amount == 99.99",
        "data.amount + 0.01 == 100",
        "data.amount * 1.2 == 119.988",
        "data.amount * data.tax == 19.998",
        "data.amount * data.count == 299.97",
        "data.amount - data.count > 96.98",
        "-data.amount < -99",
        "data.amount in [99.99, 1]",
        "0.1 in data.prices",
        "data.prices.exists(p, p in [0.2])",
        "data.amount > data.tax",
        "data.amount > 0.1 + 0.2",
        "data.tax == 0.2 && data.tax != 0.2001",
        "(data.urgent ? data.amount : 0) == 99.99",
    ],
)
def test_decimals_are_exact(text: str) -> None:
    assert value(text) is True


def test_decimals_come_out_as_decimals() -> None:
    assert value("data.amount + 0.01") == Decimal("100.00")
    assert value("[data.amount, 1]") == [Decimal("99.99"), Decimal(1)]
    assert value("data.lines")[0]["price"] == Decimal("1.50")
    assert compiled("1", Type("decimal", scale=2)).evaluate({}) == Decimal(1)
    assert compiled("0.125", Type("decimal", scale=2)).evaluate({}) == Decimal("0.125")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data.amount / 2 > 1", "`/` is not exact, so decimals have none"),
        ("data.amount % 2 > 1", "`%` is not exact, so decimals have none"),
        (
            "data.amount > data.rate",
            "`data.rate` is a number and does not mix with a decimal",
        ),
        ("data.amount > 1.0e-19", "the result has 19 digits after the point, more than 18"),
        ("data.amount > 99999999999999999.0", "99999999999999999.0 is too large for a decimal"),
        (
            "data.tax * data.tax * data.tax * data.tax * data.tax > 0",
            "the product has 20 digits after the point, more than 18",
        ),
        ('data.amount > "1"', '`"1"` is a string and does not mix with a decimal'),
        ("0.1234567 in data.prices", "`in` looks for a decimal, of more digits than any in it"),
    ],
)
def test_what_would_not_be_exact_is_refused(text: str, message: str) -> None:
    found = fault(text)
    assert found.code == "expression-type"
    assert message in found.message


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("data.regoin == 'EU'", 5, "did you mean `region`?"),
        ("dat.region == 'EU'", 0, "did you mean `data`?"),
        ("region == 'EU'", 0, "did you mean `data.region`?"),
        ("True", 0, "did you mean `true`?"),
        ("data.region == 'UE'", 15, "one of EU, US"),
        ("'eU' in ['EU'] || data.region in ['EUR']", 34, "did you mean `EU`?"),
        ("data.count > 1.5", 0, "write `double(data.count)`"),
        ("data.count == data.rate", 0, "write `double(data.count)`"),
        ("data.rate > 7 / 2", 14, "write its numbers with a point, such as `7.0 / 2.0`"),
        ("data.due_at > now", 0, "ask first: `has(data.due_at) && …`"),
        ("data.customer.vip", 0, "ask first: `has(data.customer) && …`"),
        ("data.lines.exists(l, l.note == '')", 21, "ask first: `has(l.note) && …`"),
        ("has(data.due_at) || data.due_at > now", 20, "ask first: `has(data.due_at) && …`"),
        (
            "data.since > '2026-05-01T12:00:00Z'",
            11,
            'write an instant as `timestamp("2026-05-01T12:00:00Z")`',
        ),
        ("data.since > timestamp('yesterday')", 23, "such as `2026-05-01T12:00:00Z`"),
        ("now - duration('87600000h') < now", 15, "at most 292 years, at least a nanosecond"),
        ("duration(data.reason) > duration('1s')", 9, 'such as `duration("36h")`'),
        ("len(data.sizes) > 1", 0, "write `size(…)`"),
        ("data.sizes.map(x, x).size() > 1", 11, None),
        ("data.reason.matches('(')", 20, None),
        ("data.count", 0, "compare it with something"),
        ("data.sizes.foo()", 11, None),
        ("data.reason.getHours()", 12, None),
        ("now.getHours('Europe/Berlin') > 1", 4, "moments are in UTC"),
        ("data.region['x']", 11, None),
        ("data", 0, None),
        ("9223372036854775808 > data.count", 0, None),
        ("data.rate > 9007199254740993", 12, None),
    ],
)
def test_a_fault_of_type_has_its_place_and_says_what_was_meant(
    text: str, offset: int, hint: str | None
) -> None:
    with pytest.raises(ExpressionFault) as refused:
        compile_expression(text, SCOPE)
    assert (refused.value.code, refused.value.offset) == ("expression-type", offset)
    if hint is not None:
        assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("", 0, None),
        ("  ", 0, None),
        ("data.count >", 12, None),
        ("data.count > 1 and true", 15, "write `&&`"),
        ("not data.urgent", 0, "write `!`"),
        ("data.count = 1", 11, "`==` compares"),
        ("data.count & 1", 11, "write `&&`"),
        ("(data.count > 1", 15, None),
        ("data.reason == 'x", 15, None),
        (r"data.reason == 'a\q'", 17, None),
        (r"data.reason == '\u0000'", 15, None),
        ("data.reason == 'a\0'", 15, None),
        ("data.reason == '\ud800'", 15, None),
        (r"data.reason == '\ud800'", 15, None),
        ("b'x' == b'x'", 0, None),
        ("1u > 2u", 0, "unsigned integers are not used here"),
        ("data.reason == null", 15, None),
        ("{'a': 1}.a == 1", 0, None),
        ("data.sizes[] > 1", 10, None),
        ("size(1,)", 7, None),
        ("1e400 > 1.0", 0, None),
        ("99999999999999999999 > 1", 0, None),
        ("data.in", 5, None),
        ("while > 1", 0, None),
    ],
)
def test_a_fault_of_syntax_has_its_place(text: str, offset: int, hint: str | None) -> None:
    found = fault(text)
    assert (found.code, found.offset) == ("expression-syntax", offset)
    assert hint is None or found.hint == hint


@pytest.mark.parametrize(
    "text",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "''.__class__",
        "[1].__class__.__mro__",
        "data.__class__",
        "data.reason.__reduce__()",
        "actor.__init__.__globals__",
        "__import__('os').system('true')",
        "type(1) == int",
        "dyn(data) == dyn(1)",
        "google.protobuf.Any{}",
    ],
)
def test_a_walk_out_of_the_language_is_refused_before_anything_runs(text: str) -> None:
    assert fault(text).code in ("expression-syntax", "expression-type")


@pytest.mark.parametrize("reason", ['ok" || true || "', "ok' || true", "true", '"'])
def test_values_are_never_read_as_expressions(reason: str) -> None:
    assert value('data.reason == "ok"', reason=reason) is False
    assert value('data.reason == "ok"', reason="ok") is True


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        ("1 / data.count > 0", {"count": 0}, "division by zero"),
        ("1 % data.count > 0", {"count": 0}, "division by zero"),
        ("data.count + 1 > 0", {"count": 2**63 - 1}, "the result does not fit into 64 bits"),
        ("-data.count > 0", {"count": -(2**63)}, "the result does not fit into 64 bits"),
        (
            "data.amount * data.amount > 1",
            {"amount": "9999999999999999"},
            "the result does not fit into 64 bits",
        ),
        ("data.sizes[2] > 1", {}, "the index is outside the array"),
        ("timestamp(data.reason) > now", {}, "String to Timestamp conversion failed"),
        ("data.sizes.all(x, data.sizes.all(y, y > 0))", {"sizes": [1.0] * 200}, "too many rounds"),
        ("data.count > 0", {"count": True}, "`data.count`: an integer is expected"),
        ("data.count > 0", {"count": 1.5}, "`data.count`: an integer is expected"),
        ("data.count > 0", {"count": 2**63}, "does not fit into 64 bits"),
        ("data.rate > 0", {"rate": float("nan")}, "nan is no number"),
        ("data.reason == 'EU'", {"reason": "EU\0evil"}, "NUL"),
        ("data.reason == 'EU'", {"reason": "\ud800"}, "lone surrogate"),
        ("data.amount > 0", {"amount": 1.5}, "a decimal is written as a text"),
        ("data.amount > 0", {"amount": "1.001"}, "more than 2 digits after the point"),
        ("data.since < now", {"since": "2026-05-01T12:00:00"}, "no instant"),
        ("data.rate / 0.0", {}, "the result is inf"),
        ("data.since + duration('2000000h') > now", {"since": "9900-01-01T00:00:00Z"}, "overflow"),
        (
            "data.since - data.due < duration('0s')",
            {"since": "9000-01-01T00:00:00Z", "due": "1000-01-01T00:00:00Z"},
            "the result does not fit into 64 bits",
        ),
    ],
)
def test_a_failure_is_an_error_and_never_false(
    text: str, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExpressionError) as failed:
        value(text, **data)
    assert message in str(failed.value)
    assert failed.value.source == text


@pytest.mark.parametrize("values", [{}, {"data": {}}, {"data": None}, {"data": {"count": None}}])
def test_an_absent_field_is_an_error(values: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError):
        compiled("data.count > 100").evaluate(values)


def test_a_failure_does_not_count_where_the_other_side_decides() -> None:
    assert value("1 / data.count > 0 && false", count=0) is False
    assert value("1 / data.count > 0 || true", count=0) is True


def test_a_text_that_looks_like_an_error_is_a_value() -> None:
    assert value("data.reason", reason="INVALID_ARGUMENT: divide by zero") == (
        "INVALID_ARGUMENT: divide by zero"
    )


def test_what_is_optional_can_be_asked_after() -> None:
    text = "has(data.due_at) && data.due_at < now"
    assert value(text) is False
    assert value(text, due_at="2026-01-01T00:00:00Z") is True
    assert value("has(data.customer) && data.customer.name == 'x'", customer={"name": "x"}) is True
    assert value("data.lines.exists(l, has(l.note) && l.note == 'a')") is False
    noted = [{"price": 1, "at": "2026-01-01T00:00:00Z", "note": "a"}]
    assert value("data.lines.exists(l, has(l.note) && l.note == 'a')", lines=noted) is True


def test_a_scope_may_know_that_an_optional_field_is_there() -> None:
    scope = Scope(DATA, present=frozenset({"data.due_at"}))
    guard = compile_expression("data.due_at < now", scope)
    due = {"data": {"due_at": "2026-01-01T00:00:00Z"}, "now": VALUES["now"]}
    assert guard.evaluate(due) is True
    with pytest.raises(ExpressionError, match="absent"):
        guard.evaluate({"data": {}, "now": VALUES["now"]})


def test_an_expression_reads_only_what_it_names() -> None:
    guard = compiled("data.count > 2 && (!has(data.due_at) || data.due_at > now)")
    assert guard.names == {"data.count", "data.due_at", "now"}
    assert guard.evaluate({"data": {"count": 3, "reason": "\0"}, "event": "\0"}) is True


def test_without_an_event_there_is_none() -> None:
    with pytest.raises(ExpressionFault) as refused:
        compile_expression("event.ok", Scope(DATA))
    assert refused.value.hint == "known here: data, actor, now, instance"
    others = Scope(others={"input": read_properties({"qty": {"type": "integer"}})})
    assert compile_expression("input.qty > 10", others).evaluate({"input": {"qty": 11}}) is True


def test_a_place_wants_a_type() -> None:
    assert compiled("5", NUMBER).evaluate({}) == 5.0
    assert isinstance(compiled("5", NUMBER).evaluate({}), float)
    assert compiled("now", DATE_TIME).evaluate(VALUES) == VALUES["now"]
    assert compiled("'a' + data.reason", STRING).evaluate(VALUES) == "aok"
    assert value("now - data.since") == timedelta(seconds=1)
    assert fault("1.5", Type("integer")).message == (
        "an integer is expected here, but the expression is a number"
    )
    assert fault("'UK'", Type("string", enum=("EU", "US"))).hint == "one of EU, US"


def test_an_expression_is_bounded() -> None:
    assert value(" && ".join(["data.count > 1"] * 200)) is True
    assert "characters" in fault("'" + "x" * TEXT_MAX + "'").message
    deep = [
        "(" * 500 + "1" + ")" * 500,
        "!" * 500 + "true",
        "-" * 500 + "1",
        "+".join(["1"] * 500),
        "a" + ".a" * 500,
        "[" * 500 + "]" * 500,
        "true?1:" * 500 + "1",
        "size(" * 500 + "''" + ")" * 500,
        "data.count" + " == 1" * 500,
    ]
    for text in deep:
        assert f"more than {DEPTH_MAX}" in fault(text).message
    assert LOOPS_MAX == 2
    loops = "data.sizes.all(x, data.sizes.all(y, data.sizes.all(z, z > 0)))"
    assert "2 loops" in fault(loops).message
    assert "inside of a loop" in fault("data.sizes.all(x, 'a' + 'b' == 'c')").message


def test_the_greatest_depth_that_is_taken_compiles() -> None:
    for text in (
        "+".join(["data.count"] * (DEPTH_MAX - 1)),
        "(" * (DEPTH_MAX - 2) + "data.count" + " + 1)" * (DEPTH_MAX - 2),
        "1 + (" * (DEPTH_MAX - 2) + "data.count" + ")" * (DEPTH_MAX - 2),
        "data.urgent ? 1 : " * (DEPTH_MAX - 2) + "2",
        "!" * (DEPTH_MAX - 2) + "data.urgent",
        "-" * (DEPTH_MAX - 2) + "data.count",
    ):
        compiled(text)


@pytest.mark.parametrize("char", ["a", '"', "'", "\\", "\n", "\x7f", "é", "\u2028", "😀", "\x01"])
def test_each_character_of_a_text_arrives_as_it_is(char: str) -> None:
    if char not in '"\\\n':
        assert value(f'data.reason == "{char}"', reason=char) is True
    assert value(f'data.reason == r"""{char} """', reason=f"{char} ") is True
    code = f"\\U{ord(char):08x}"
    assert value(f'data.reason == "{code}"', reason=char) is True


def test_the_prover_understands_what_is_made_of_an_expression() -> None:
    def guard(text: str) -> Claim:
        return Claim(compile_expression(text, SCOPE))

    known, presence = domains(SCOPE)
    prover = Prover(known, presence=presence)
    small, large = guard("data.amount < 100"), guard("data.amount >= 100")
    assert prover.overlap([small, large]) == Disjoint()
    both = prover.overlap([guard("data.amount <= 100"), large])
    assert isinstance(both, Overlap)
    assert both.text == "data.amount = 100.00"
    assert prover.overlap([guard("data.rate < 1"), guard("data.rate >= 1")]) == Disjoint()
    late = guard("has(data.due_at) && data.due_at < now")
    assert prover.overlap([late, guard("!has(data.due_at)")]) == Disjoint()
