"""Lines, columns, JSON and progress."""

import io
import json
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.cli import output
from interlock.cli.output import JsonList, Table, counted, json_text, moment, visible
from interlock.cli.progress import Progress, progress_line

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_json_text_prints_and_reads_back(value: object) -> None:
    for indent in (None, 2):
        text = json_text(value, indent=indent)
        assert text.replace("\n", "").isprintable()
        assert json.loads(text) == value
    assert "\n" not in json_text(value)


def test_json_text_leaves_what_prints_alone() -> None:
    assert json_text({"café": "中文"}) == '{"café": "中文"}'
    assert json_text("\x7f\x9b\u202e\U000e0001") == '"\\u007f\\u009b\\u202e\\udb40\\udc01"'


@given(st.text())
def test_visible_is_one_line_that_prints(text: str) -> None:
    assert visible(text).isprintable()
    if text.isprintable():
        assert visible(text) == text


def test_counted() -> None:
    assert counted(0, "entry") == "0 entries"
    assert counted(1, "entry") == "1 entry"
    assert counted(12345, "case") == "12,345 cases"


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_reads_back_exactly(at: datetime) -> None:
    assert datetime.fromisoformat(moment(at)) == at
    assert moment(at).endswith("Z")


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("ID", "NAME", "N")
    table.page([])
    table.page([("1", "中文", 5), ("2", None, 6)])
    table.page([("3", "longer than before", 7)])
    assert capsys.readouterr().out == (
        "ID  NAME  N\n1   中文  5\n2         6\n3   longer than before  7\n"
    )
    assert table.rows == 3


def test_a_long_cell_does_not_push_the_others_apart(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("A", "B")
    table.page([("x" * 200, "1"), ("y", "2")])
    assert capsys.readouterr().out.splitlines()[2] == f"y{' ' * (output.COLUMN_MAX + 1)}2"


def test_an_empty_table_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Table("A", "B").page([])
    assert capsys.readouterr().out == ""


@settings(max_examples=40)
@given(st.lists(st.lists(values, max_size=3), max_size=3), values, values)
def test_a_json_list_is_one_document(pages: list[list[object]], head: object, tail: object) -> None:
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        listed = JsonList("items", head=head)
        for page in pages:
            listed.page(page)
        listed.end(tail=tail)
        text = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    items = [item for page in pages for item in page]
    assert json.loads(text) == {"head": head, "items": items, "tail": tail}
    assert text.count("\n") == (len(items) + 2 if items else 1)


def test_progress_line() -> None:
    assert progress_line("reading", 1234, None) == "reading 1,234"
    bar = progress_line("recording events", 1000, 2000)
    assert bar == f"recording events [{'#' * 15}{'-' * 15}]  50%  1,000 of 2,000"
    assert "[##############################] 100%" in progress_line("x", 7, 7)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with Progress() as shown:
        shown.show("at", 1)
        shown.show("at", 2)  # too soon to be drawn
        now += 1
        shown.show("at", 3, 4)
        drawn = stream.getvalue()
    assert drawn.startswith("\r\x1b[Kat 1\r\x1b[Kat [")
    assert "at 2" not in drawn
    assert stream.getvalue() == f"{drawn}\r\x1b[K"


def test_no_progress_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with Progress() as shown:
        shown.show("at", 1)
        shown.wipe()
    assert stream.getvalue() == ""


def test_a_stdout_that_is_closed_is_told_and_a_stderr_takes_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    output.prepare_streams()
    with pytest.raises(output.OutputLost, match="closed"):
        output.say("x")
    output.note("y")
    sys.stdout.close()
    sys.stderr.close()


def test_any_character_can_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.prepare_streams()
    output.say("café \udc80")
    sys.stdout.flush()
    assert raw.getvalue() == "café \\udc80\n".encode()


def test_moments_keep_their_microseconds() -> None:
    at = datetime(2026, 5, 1, 12, 0, 0, 1, tzinfo=UTC)
    assert moment(at) == "2026-05-01T12:00:00.000001Z"
    assert moment(at - timedelta(microseconds=1)) == "2026-05-01T12:00:00Z"
