"""Reading logs: three formats give the same events, and whatever is wrong says where."""

import gzip
import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

import interlock
from interlock import InvalidRequest
from interlock.eventlog import Columns, Event, LogError, read_log
from interlock.eventlog.logfile import LINE_BYTES_MAX

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EVENTS = [
    Event("A-1", "pay", NOON, "ann", 2),
    Event("B;2", 'say "hi" twice', NOON, None, 3),
    Event("A-1", "two\nlines", None, "bob", 4),
    Event("A-1", " ship", "yesterday", None, 6),
]
CSV = """\
case:concept:name,concept:name,time:timestamp,org:resource
A-1,pay,2024-05-01 14:00:00+02:00,ann
B;2,"say ""hi"" twice",2024-05-01T12:00:00Z,
A-1,"two
lines",,bob
A-1, ship,yesterday,
"""
XES = """\
<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <global scope="trace"><string key="concept:name" value="no case"/></global>
  <global scope="event"><string key="concept:name" value="no action"/></global>
  <classifier name="Activity" keys="concept:name"/>
  <string key="concept:name" value="the log's own name"/>
  <trace>
    <string key="concept:name" value="A-1"><string key="concept:name" value="nested"/></string>
    <list key="tags"><values><string key="concept:name" value="nested"/></values></list>
    <event>
      <string key="concept:name" value="pay"><string key="concept:name" value="nested"/></string>
      <date key="time:timestamp" value="2024-05-01T14:00:00.000+02:00"/>
      <container key="more"><string key="org:resource" value="nested"/></container>
      <string key="org:resource" value="ann"/>
    </event>
    <event><string key="concept:name" value="ship"/></event>
  </trace>
  <trace>
    <string key="concept:name" value="B"/>
    <event><string key="concept:name" value="pay"/></event>
  </trace>
</log>
"""


def read(tmp_path: Path, name: str, data: str | bytes, *args, **options) -> list[Event]:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_log(path, *args, **options))


def fault(tmp_path: Path, name: str, data: str | bytes, *args, **options) -> LogError:
    with pytest.raises(LogError) as caught:
        read(tmp_path, name, data, *args, **options)
    assert str(caught.value).startswith(str(tmp_path / name))
    return caught.value


def jsonl(*objects: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


# CSV


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte-order mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_csv(tmp_path: Path, mark: str, end: str) -> None:
    events = read(tmp_path, "log.csv", mark + CSV.replace("\n", end))
    expected = [event._replace(action=event.action.replace("\n", end)) for event in EVENTS]
    assert events == expected


@pytest.mark.parametrize("divider", [",", ";", "\t"])
def test_the_divider_is_seen_from_the_header(tmp_path: Path, divider: str) -> None:
    text = divider.join(['"a,;\tb"', "case", "action"]) + "\n" + divider.join("x1p") + "\n"
    assert read(tmp_path, "log.csv", text) == [Event("1", "p", None, None, 2)]


@pytest.mark.parametrize("header", ['case;action;"a,b,c,d,e"', 'Case ID;Activity;"x,y,z,u,v,w"'])
def test_the_divider_is_that_of_the_columns_looked_for(tmp_path: Path, header: str) -> None:
    (event,) = read(tmp_path, "log.csv", f"{header}\nA;pay;z\n")
    assert (event.case, event.action) == ("A", "pay")


def test_columns_that_differ_in_case_alone_are_told_apart_by_name(tmp_path: Path) -> None:
    data = "case,Case,action\n1,2,pay\n"
    found = fault(tmp_path, "log.csv", data)
    assert found.what == "two columns are called `Case`, which holds the case"
    (event,) = read(tmp_path, "log.csv", data, Columns(case="Case"))
    assert event.case == "2"


def test_customary_names_of_any_case_in_json(tmp_path: Path) -> None:
    rows = [{"Case_ID": "1", "ACTIVITY": "pay"}, {"case id": "2", "Activity": "ship", "Time": "x"}]
    events = read(tmp_path, "log.jsonl", jsonl(*rows))
    assert [event[:3] for event in events] == [("1", "pay", None), ("2", "ship", "x")]


def test_xes_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    deep = "<log>" + "<list>" * 20_000
    assert "nested deeper than 100" in fault(tmp_path, "log.xes", deep).what


def test_empty_lines_are_no_rows_and_the_last_line_needs_no_end(tmp_path: Path) -> None:
    events = read(tmp_path, "log.csv", "case,action\n\n1,a\n\n\n2,b")
    assert [(event.case, event.line) for event in events] == [("1", 3), ("2", 6)]


def test_a_header_alone_is_a_log_without_events(tmp_path: Path) -> None:
    assert read(tmp_path, "log.csv", "case,action,time\n") == []


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        ("", None, "is empty"),
        ("case,action\n1,a\n1\n", 3, "a row of 1 fields under a header of 2"),
        ('case,action\n1,"a\nb"\n1,a,b\n', 4, "a row of 3 fields under a header of 2"),
        ("case,action\n1,a\n1,b\0\n", 3, "holds a NUL character"),
        ('case,action\n1,"a\n2,b\n', 3, "is no CSV here"),
        ('case,action\n1,"a"b\n', 2, "is no CSV here"),
        (b"case,action\n1,a\n1,\xff\n", 3, "is not UTF-8 at byte 3"),
        ("case,action\n".encode("utf-16"), 1, "is not UTF-8"),
        ("case,action,case\n1,a,2\n", 1, "two columns are called `case`"),
        ("\ncase,action\n", 1, "no column holds the case"),
    ],
)
def test_a_bad_csv_says_where(tmp_path: Path, data: str | bytes, line: int, what: str) -> None:
    found = fault(tmp_path, "log.csv", data)
    assert found.line == line
    assert found.what.startswith(what)
    assert found.hint


def test_the_events_before_a_fault_are_given(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("case,action\n1,a\nragged\n")
    events = read_log(tmp_path / "log.csv")
    assert next(events).action == "a"
    with pytest.raises(LogError, match=r"log\.csv:3: a row of 1 fields"):
        next(events)


# columns


@pytest.mark.parametrize(
    "header",
    [
        "case:concept:name,concept:name,time:timestamp,org:resource",
        "case,action,timestamp,resource",
        "case_id,activity,time,actor",
        "Case ID,Activity,Complete Timestamp,Resource",
        "CASE,ACTION,TIME,USER",
        "case id,event,fired_at,actor_ref",
        "case,action,time,user",
    ],
)
def test_customary_names(tmp_path: Path, header: str) -> None:
    (event,) = read(tmp_path, "log.csv", f"{header}\n1,a,2024-05-01T12:00Z,ann\n")
    assert event == Event("1", "a", NOON, "ann", 2)


def test_the_earlier_customary_name_wins(tmp_path: Path) -> None:
    (event,) = read(tmp_path, "log.csv", "case,activity,concept:name,case:concept:name\n1,a,b,2\n")
    assert (event.case, event.action) == ("2", "b")
    (event,) = read(tmp_path, "log.jsonl", jsonl({"activity": "a", "action": "b", "case": "1"}))
    assert event.action == "b"


def test_names_given(tmp_path: Path) -> None:
    columns = Columns(case="k", action="what", time="when", actor="who")
    expected = Event("1", "a", NOON, "ann", 2)
    text = "case,action,k,what,when,who\nx,y,1,a,2024-05-01T12:00Z,ann\n"
    assert read(tmp_path, "log.csv", text, columns) == [expected]
    keys = {"case": "x", "k": "1", "what": "a", "when": "2024-05-01T12:00Z", "who": "ann"}
    assert read(tmp_path, "log.jsonl", jsonl(keys), columns) == [expected._replace(line=1)]
    other = XES.replace('"concept:name" value="A-1"', '"id" value="A-1"').replace(
        '"concept:name" value="B"', '"id" value="B"'
    )
    events = read(tmp_path, "log.xes", other, Columns(case="case:id"))
    assert [event.case for event in events] == ["A-1", "A-1", "B"]


@pytest.mark.parametrize("part", ["case", "action", "time", "actor"])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.xes"])
def test_a_column_named_but_missing(tmp_path: Path, name: str, part: str) -> None:
    data = {"log.csv": "case,action\n1,a\n", "log.jsonl": jsonl({"case": 1, "action": "a"})}
    found = fault(tmp_path, name, data.get(name, XES), Columns(**{part: "axtion"}))
    assert found.what == f"no column `axtion`, which was to hold the {part}"
    listed = "`case:concept:name`" if name == "log.xes" else "`case`, `action`"
    assert found.hint
    assert f"columns found: {listed}" in found.hint


def test_a_time_or_an_actor_may_first_come_later(tmp_path: Path) -> None:
    text = jsonl({"case": "1", "action": "a"}, {"case": "1", "action": "b", "who": "ann"})
    events = read(tmp_path, "log.jsonl", text, Columns(actor="who"))
    assert [event.actor for event in events] == [None, "ann"]


def test_a_misspelt_column_brings_the_nearest(tmp_path: Path) -> None:
    found = fault(tmp_path, "log.csv", "case,action\n", Columns(action="axtion"))
    assert found.hint == "did you mean `action`? columns found: `case`, `action`"


@pytest.mark.parametrize("part", ["case", "action"])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_no_customary_column(tmp_path: Path, name: str, part: str) -> None:
    kept = "action" if part == "case" else "case"
    data = f"{kept},note\n1,2\n" if name == "log.csv" else jsonl({kept: "1", "note": "2"})
    found = fault(tmp_path, name, data)
    assert found.what == f"no column holds the {part}"
    assert found.hint
    assert "`case id`" in found.hint or "`activity`" in found.hint
    assert f"columns found: `{kept}`, `note`" in found.hint


# JSON lines


def test_json_lines(tmp_path: Path) -> None:
    objects = (
        {"case": "A-1", "action": "pay", "time": "2024-05-01T12:00:00Z", "actor": "ann"},
        {"actor": None, "note": {"deep": [1]}, "action": "é\n", "case": 17},
        {"case": 12345678901234567890.50, "action": None},
        {"action": "b"},
    )
    text = jsonl(objects[0]) + "\n  \n" + jsonl(*objects[1:])
    assert read(tmp_path, "log.jsonl", "\ufeff" + text) == [
        Event("A-1", "pay", NOON, "ann", 1),
        Event("17", "é\n", None, None, 4),
        Event("1.2345678901234567e+19", "", None, None, 5),
        Event("", "b", None, None, 6),
    ]
    assert read(tmp_path, "log.ndjson", "") == []


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("{", "is no JSON: "),
        ('{"case": "1", "action": "a"', "is no JSON: "),
        ('{"case": "1", "action": "a"} {}', "is no JSON: "),
        ('{"case": "1", "action": "a", "n": NaN}', "is no JSON: NaN is no number"),
        ("[" * 100_000, "is no JSON: "),
        ('["case"]', "is no JSON object"),
        ('{"case": ["1"], "action": "a"}', "the case is a list, not text"),
        ('{"case": "1", "action": true}', "the action is a bool, not text"),
        (r'{"case": "\u0000", "action": "a"}', "the case holds NUL or half a character"),
        (r'{"case": "1", "action": "\ud83d"}', "the action holds NUL or half a character"),
    ],
)
def test_a_bad_line_of_json_says_where(tmp_path: Path, bad: str, what: str) -> None:
    found = fault(tmp_path, "log.jsonl", jsonl({"case": "1", "action": "a"}) + "\n" + bad + "\n")
    assert found.line == 3
    assert found.what.startswith(what)
    assert found.hint


def test_a_whole_character_of_two_escapes_is_taken(tmp_path: Path) -> None:
    (event,) = read(tmp_path, "log.jsonl", r'{"case": "\ud83d\ude00", "action": "a"}')
    assert event.case == "😀"


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    found = fault(tmp_path, "log.jsonl", b"x" * (LINE_BYTES_MAX + 1))
    assert found.what == f"a line is longer than {LINE_BYTES_MAX} bytes"


# XES

PAID = Event("A-1", "pay", NOON, "ann", 1)
IN_XES = [PAID, Event("A-1", "ship", None, None, 2), Event("B", "pay", None, None, 3)]


def test_xes(tmp_path: Path) -> None:
    assert read(tmp_path, "log.xes", XES) == IN_XES
    plain = XES.replace(' xmlns="http://www.xes-standard.org/"', "")
    assert read(tmp_path, "log.xes", plain) == IN_XES


def test_xes_of_another_encoding(tmp_path: Path) -> None:
    latin = XES.replace("UTF-8", "ISO-8859-1").replace('"B"', '"é"')
    assert read(tmp_path, "log.xes", latin.encode("latin-1"))[-1].case == "é"


def test_an_event_without_a_case_keeps_its_place(tmp_path: Path) -> None:
    nameless = XES.replace('<string key="concept:name" value="B"/>', "").replace(
        "</log>", '<event><string key="concept:name" value="pay"/></event></log>'
    )
    assert read(tmp_path, "log.xes", nameless) == [
        *IN_XES[:2],
        Event("", "pay", None, None, 3),
        Event("", "pay", None, None, 4),
    ]


def test_an_event_right_under_the_log_has_no_trace_before_it_either(tmp_path: Path) -> None:
    stray = '<event><string key="concept:name" value="x"/></event>'
    moved = XES.replace("</trace>\n  <trace>", f"</trace>{stray}<trace>")
    assert [event.case for event in read(tmp_path, "log.xes", moved)] == ["A-1", "A-1", "", "B"]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("</log>", "", 24, "is no well-formed XML"),
        ("</event>", "</evnt>", 16, "is no well-formed XML"),
        ("</log>", "</log><log/>", 23, "is no well-formed XML"),
        (XES, "", 1, "is no well-formed XML"),
        (XES, "case,action\n", 1, "is no well-formed XML"),
        (XES, "<html/>", None, "the root is `html`, not `log`"),
        (
            "  </trace>\n  <trace>",
            '<string key="late" value="x"/></trace><trace>',
            None,
            "an attribute of its trace stands after event 2",
        ),
        ("UTF-8", "no-such-code", None, "its encoding is not known"),
        ("UTF-8", "shift_jis", None, "its encoding is not known"),
    ],
)
def test_a_bad_xes_says_where(
    tmp_path: Path, old: str, new: str, line: int | None, what: str
) -> None:
    found = fault(tmp_path, "log.xes", XES.replace(old, new))
    assert found.line == line
    assert found.what.startswith(what)
    assert found.hint


def test_entities_cannot_blow_up_a_file(tmp_path: Path) -> None:
    layers = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' if n else '<!ENTITY e0 "haha">' for n in range(12)
    )
    bomb = f'<!DOCTYPE log [{layers}]><log><trace a="&e11;"/></log>'
    assert fault(tmp_path, "log.xes", bomb).what.startswith("is no well-formed XML")


# times


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01 14:00:00.000+02:00", NOON),
        ("2024-05-01T12:00:00", "2024-05-01T12:00:00"),
        ("2024-05-01", "2024-05-01"),
        ("01.05.2024", "01.05.2024"),
        (" ", " "),
        ("0001-01-01T00:00:00+02:00", "0001-01-01T00:00:00+02:00"),
        ("", None),
    ],
)
def test_times(tmp_path: Path, text: str, moment: object) -> None:
    (event,) = read(tmp_path, "log.csv", f"case,action,time\n1,a,{text}\n")
    assert event.time == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T14:00:00", NOON),
        ("2024-05-01 12:00:00+00:00", NOON),
        ("2024-01-01", datetime(2023, 12, 31, 23, tzinfo=UTC)),
        ("20240101", datetime(2023, 12, 31, 23, tzinfo=UTC)),
        ("2024-10-27 02:30", datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),  # twice: the first
        ("2024-03-31 02:30", datetime(2024, 3, 31, 1, 30, tzinfo=UTC)),  # never
        ("1712121210000", "1712121210000"),  # a count of milliseconds is no time of day
        ("0001-01-01", "0001-01-01"),
    ],
)
def test_times_in_a_time_zone(tmp_path: Path, text: str, moment: object) -> None:
    table = f"case,action,time\n1,a,{text}\n"
    (event,) = read(tmp_path, "log.csv", table, time_zone="Europe/Berlin")
    assert event.time == moment


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc", "/etc/localtime", "Europe"])
def test_an_unknown_time_zone(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Europe/Berlin") as caught:
        read_log(tmp_path / "log.csv", time_zone=name)
    assert caught.value.argument == "time_zone"


# files and formats


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.xes"])
@pytest.mark.parametrize("traces", [1, 4000])
def test_a_log_is_never_held_whole(tmp_path: Path, name: str, traces: int) -> None:
    path = tmp_path / name
    with path.open("w") as file:
        file.write({"log.csv": "case,action\n", "log.jsonl": ""}.get(name, "<log>"))
        for number in range(4000):
            if name == "log.xes":
                if number % (4000 // traces) == 0:
                    opening = "</trace><trace>" if number else "<trace>"
                    file.write(f'{opening}<string key="concept:name" value="{number}"/>')
                file.write('<event><string key="concept:name" value="a"/></event>')
            else:
                file.write(
                    f"{number},a\n" if name == "log.csv" else jsonl({"case": 1, "action": 2})
                )
        if name == "log.xes":
            file.write("</trace></log>")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_log(path)) == 4000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000  # kept, the elements of the XES take over 2 MB


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.xes"])
def test_gzip(tmp_path: Path, name: str) -> None:
    data = {"log.csv": CSV, "log.jsonl": jsonl({"case": "1", "action": "a"})}.get(name, XES)
    packed = gzip.compress(data.encode())
    plain = read(tmp_path, name, data)
    assert read(tmp_path, name + ".gz", packed) == plain
    assert read(tmp_path, name, packed) == plain  # its bytes say what it is
    cut, torn = packed[:-12], packed[:40] + bytes(8) + packed[48:]
    for damaged in (cut, torn):
        assert "the gzip file is damaged" in fault(tmp_path, name, damaged).what


def test_the_format_can_be_named(tmp_path: Path) -> None:
    assert read(tmp_path, "LOG.CSV", CSV) == EVENTS
    assert read(tmp_path, "log", CSV, format="csv") == EVENTS
    assert read(tmp_path, "log.csv", XES, format="xes") == IN_XES
    found = fault(tmp_path, "log.txt.gz", CSV)
    assert str(found) == (
        f"{tmp_path}/log.txt.gz: the suffix `.txt` tells no format"
        " (rename it or name the format (`--format`): `csv`, `jsonl`, `xes`)"
    )
    assert fault(tmp_path, "log", CSV).what == "no suffix tells the format"
    with pytest.raises(InvalidRequest, match="`xml` is no format of logs"):
        read_log(tmp_path / "log.csv", format="xml")


def test_a_file_of_an_open_store_is_no_log(tmp_path: Path) -> None:
    """To read it, and close it, would drop the locks of this process on it."""
    path = tmp_path / "store.db"
    with interlock.open(f"sqlite:///{path}"), pytest.raises(LogError, match="store that is open"):
        list(read_log(path, format="csv"))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, what in (("none.csv", "No such file"), ("folder.csv", "directory")):
        with pytest.raises(LogError, match=rf"{name}: cannot be read: .*{what}"):
            list(read_log(str(tmp_path / name)))
