"""Which texts under `guard` are expressions, and which are labels."""

import pytest

from interlock.language.labels import looks_like_expression


@pytest.mark.parametrize(
    "text",
    [
        "data.amount < 100", "amount>=5", "-1 < x", "x == y", "event.x == 1", "'a' == x",
        "now > data.due_at", "data.a + 1 > data.b", "data.items[0] == 1", "actor.role != 'qp'",
        "has(data.x)", "size(data.a) > 2", "data.name.startsWith('x')", "data.a.all(x, x > 1)",
        "a && b", "a || b", "!x", "!!x", "!(a)", "!has(data.x)",
        "x in ['a']", "data.x in data.y", "data.ok", "event.approved",
        "data.amount <", "data.a && ",
    ],
)  # fmt: skip
def test_what_compares_calls_negates_or_combines_is_an_expression(text: str) -> None:
    assert looks_like_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "QP-sign-off", "A -> B sign-off", "release > QP", "A <-> B", "a => b", "\u2192 QP", "x < y",
        "Step 1 > Step 2", "Phase 2 -> Phase 3", "4 eyes", "level 2+", "GDPR art. 6", "50% done",
        "R&D", "a/b", "C++", "QP, QA", "sign-off (QP)", "release(QP)", "approved!", "!!! urgent",
        "data protection", "data.protection officer", "data", "now", "event-day", "in",
        "true story", "signed in Berlin", "Dr. in charge", "Why? because", "is it true",
        "\u627f\u8a8d",
        "it's ok", "", " ", "(", "''",
    ],
)  # fmt: skip
def test_an_arrow_a_name_or_a_sentence_is_a_label(text: str) -> None:
    assert not looks_like_expression(text)
