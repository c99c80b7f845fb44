"""Report files: written as one JSON document, read back whatever wrote it, refused where broken."""

import io
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.core.rejection import InvalidRequest, NotKnown, StorageFailure
from interlock.store import verify
from interlock.store.report import open_report, read_heads
from interlock.store.store import Store
from interlock.store.verify import Finding, Report
from interlock.store.walk import Head
from tests.support.faulty import CODES, Faults, faulty_store
from tests.support.machines import BATCH, TOGGLE
from tests.support.tampering import File, copy_healthy, found, tampered

HEADS = [Head("a", 0, b"\x00" * 32), Head("b.1", 12, b"\xff" * 32), Head("\U0001f600", 3, b"x")]
WHOLE = Report(3, 15, 1, (Finding("a", None, 2, "what"),))


def written(path: Path, heads: list[Head], report: Report = WHOLE) -> Path:
    with open_report(path) as writer:
        for head in heads:
            writer.head(head)
        writer.close(report)
    return path


# Writing


def test_a_report_is_one_json_document(path: Path) -> None:
    document = json.loads(written(path, HEADS).read_text(encoding="utf-8"))
    assert document["interlock_report"] == 1
    assert document["heads"] == [[head[0], head[1], head[2].hex()] for head in HEADS]
    assert {name: document[name] for name in WHOLE.as_dict()} == json.loads(
        json.dumps(WHOLE.as_dict())
    )


def test_a_report_of_nothing_is_one_json_document(path: Path) -> None:
    document = json.loads(written(path, [], Report(0, 0, 0, ())).read_text(encoding="utf-8"))
    assert document["heads"] == []
    assert document["ok"] is True
    assert list(read_heads(path)) == []


def test_heads_are_read_back_as_they_were_written(path: Path) -> None:
    assert list(read_heads(written(path, HEADS))) == HEADS


@pytest.mark.parametrize(
    "layout",
    [
        {"indent": 2},
        {"indent": "\t"},
        {"separators": (",", ":")},
        {"ensure_ascii": False},
        {"sort_keys": True},
    ],
    ids=str,
)
def test_a_report_laid_out_anew_is_read_alike(layout: dict[str, Any], path: Path) -> None:
    document = json.loads(written(path, HEADS).read_text(encoding="utf-8"))
    path.write_text(json.dumps(document, **layout), encoding="utf-8")
    assert list(read_heads(path)) == HEADS


def test_a_report_with_other_line_ends_is_read_alike(path: Path) -> None:
    content = written(path, HEADS).read_bytes()
    path.write_bytes(content.replace(b"\n", b"\r\n"))
    assert list(read_heads(path)) == HEADS


def test_a_report_goes_to_a_stream(store: Store) -> None:
    id = store.instantiate(BATCH)
    stream = io.StringIO()
    assert store.verify(report=stream).ok
    document = json.loads(stream.getvalue())
    assert [head[:2] for head in document["heads"]] == [[id, 0]]
    assert not stream.closed


def test_a_report_of_a_store_names_the_head_of_every_instance(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = copy_healthy(path)
    heads = []
    with interlock.open(f"sqlite:///{path}") as store:
        for rows in (2, 3, 7, 2000):
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            store.verify(report=tmp_path / "report.json")
            heads.append(list(read_heads(tmp_path / "report.json")))
        assert heads == [heads[0]] * 4
        assert [head.instance for head in heads[0]] == list(names.values())
        assert {head.instance: head.number for head in heads[0]} == {
            id: len(store.history(id)) for id in names.values()
        }
        assert all(len(head.digest) == 32 for head in heads[0])


def test_a_report_with_findings_is_json_that_tells_them(path: Path, tmp_path: Path) -> None:
    def tamper(file: File) -> None:
        file.set_entry("long", 12, action='odd "\u2028\x01 action')
        file.set_instance("new", current_state="caf\u00e9 \U0001f600")

    with tampered(path, tamper) as store:
        report = store.verify(report=tmp_path / "report.json")
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert document["ok"] is False
    assert [tuple(one.values()) for one in document["findings"]] == list(report.findings)
    assert found(report) == [("long", 12, 3), ("long", 12, 5), ("new", None, 2), ("new", None, 7)]


def test_the_report_of_one_instance_names_that_instance(path: Path, tmp_path: Path) -> None:
    names = copy_healthy(path)
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify(names["long"], report=tmp_path / "report.json")
        (head,) = read_heads(tmp_path / "report.json", instance=names["long"])
        assert (head.instance, head.number) == (names["long"], 23)
        assert store.verify(names["long"], since=tmp_path / "report.json").ok
        for other in (None, names["last"]):
            with pytest.raises(InvalidRequest, match=f"about the instance `{names['long']}` alone"):
                store.verify(other, since=tmp_path / "report.json")


# A verification that fails


@pytest.mark.parametrize(
    "kept", [None, '{"interlock_report": 1, ...'], ids=["no file before", "a file before"]
)
def test_a_failed_verification_leaves_no_half_report(
    kept: str | None, path: Path, tmp_path: Path
) -> None:
    """Whichever statement fails; a failure to end a reading transaction alone is none."""
    reports = tmp_path / "reports"
    reports.mkdir()
    target = reports / "report.json"
    copy_healthy(path)
    faults, failed = Faults(), 0
    with faulty_store(path, faults) as store:
        for number in range(1, 100):
            target.unlink(missing_ok=True)
            if kept:
                target.write_text(kept)
            before = sorted(reports.iterdir())
            raised = faults.raised
            faults.at(number, CODES["io"])
            try:
                report = store.verify(report=target)
            except StorageFailure:
                failed += 1
                assert sorted(reports.iterdir()) == before, number
                assert not kept or target.read_text() == kept
            else:
                assert report.ok
                if faults.raised == raised:
                    break
                faults.clear()
                assert store.verify(since=target).ok
            faults.clear()
    assert failed > 5


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, ZeroDivisionError, ValueError, TypeError, BrokenPipeError]
)
def test_an_interrupted_verification_leaves_no_half_report(
    error: type[BaseException], path: Path, tmp_path: Path
) -> None:
    def interrupt(_: int) -> None:
        raise error

    copy_healthy(path)
    reports = tmp_path / "reports"
    reports.mkdir()
    with interlock.open(f"sqlite:///{path}") as store, pytest.raises(error):
        store.verify(report=reports / "report.json", on_page=interrupt)
    assert list(reports.iterdir()) == []


def test_an_instance_that_is_not_known_leaves_no_report(store: Store, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    with pytest.raises(NotKnown):
        store.verify("nobody", report=reports / "report.json")
    assert list(reports.iterdir()) == []


@pytest.mark.parametrize("place", ["missing/report.json", "directory"])
def test_a_report_that_cannot_be_written_is_refused(
    place: str, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(StorageFailure) as refusal:
        store.verify(report=tmp_path / place)
    assert refusal.value.kind == ("missing" if "/" in place else "io")
    assert place.partition("/")[0] in str(refusal.value)
    assert ".partial" not in str(refusal.value)


@pytest.mark.parametrize("target", ["", "/", ".", "..", "a\0b"])
def test_a_report_has_the_name_of_a_file(target: str, store: Store) -> None:
    with pytest.raises((InvalidRequest, StorageFailure)):
        store.verify(report=target)


# What a report takes the place of


@pytest.fixture
def two_stores(path: Path, tmp_path: Path) -> Iterator[tuple[Store, Path]]:
    """A store that is verified, and the file of another that is open beside it."""
    beside = tmp_path / "beside.db"
    with interlock.open(f"sqlite:///{path}") as store, interlock.open(f"sqlite:///{beside}") as two:
        store.instantiate(TOGGLE)
        two.instantiate(TOGGLE)
        yield store, beside


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_report_never_takes_the_place_of_a_store(
    suffix: str, two_stores: tuple[Store, Path], path: Path, tmp_path: Path
) -> None:
    """By whatever name; nor is the file read, which would drop its locks."""
    store, beside = two_stores
    link = tmp_path / "link"
    for file in (path, beside):
        ours = Path(f"{file}{suffix}")
        link.unlink(missing_ok=True)
        link.symlink_to(ours)
        before = ours.read_bytes() if suffix == "-wal" else None
        for target in (ours, link, ours.parent / "." / ours.name):
            with pytest.raises(InvalidRequest, match="file of a store that is open"):
                store.verify(report=target)
        assert before is None or ours.read_bytes() == before
    assert store.verify().ok
    store.instantiate(TOGGLE)


def test_a_report_never_takes_the_place_of_a_store_that_is_closed(
    store: Store, tmp_path: Path
) -> None:
    with interlock.open(f"sqlite:///{tmp_path}/closed.db") as other:
        other.instantiate(TOGGLE)
    before = (tmp_path / "closed.db").read_bytes()
    with pytest.raises(InvalidRequest, match="something else than a report"):
        store.verify(report=tmp_path / "closed.db")
    assert (tmp_path / "closed.db").read_bytes() == before


def test_a_report_takes_the_place_of_a_report_or_of_nothing(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.touch(mode=0o640)
    for _ in range(2):
        store.verify(report=target)
    assert target.stat().st_mode & 0o777 == 0o640
    document = json.loads(target.read_text())
    target.write_text(json.dumps(document, indent=4))
    store.verify(report=target)
    target.write_text("orders: 3\n")
    with pytest.raises(InvalidRequest, match="something else than a report"):
        store.verify(report=target)
    assert target.read_text() == "orders: 3\n"


def test_a_report_by_a_link_leaves_the_link(store: Store, tmp_path: Path) -> None:
    target, link = tmp_path / "report.json", tmp_path / "latest"
    link.symlink_to(target)
    for _ in range(2):
        store.verify(report=link)
        assert link.is_symlink()
        assert json.loads(target.read_text())["ok"] is True


def test_a_report_goes_through_a_pipe(store: Store, tmp_path: Path) -> None:
    store.instantiate(TOGGLE)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        store.verify(report=pipe)
        assert json.loads(read.result(30))["instances"] == 1
        written = pool.submit(pipe.write_text, read.result())
        assert store.verify(since=pipe).ok
        written.result(30)
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no pipe has a name here")
def test_a_report_goes_through_a_pipe_that_has_only_a_number(store: Store) -> None:
    """As a shell makes it for `--report >(jq .)`: its name leads to no file."""
    reads, writes = os.pipe()
    store.verify(report=f"/proc/self/fd/{writes}")
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as stream:
        assert json.loads(stream.read())["ok"] is True


def test_what_stands_beside_a_report_is_left_alone(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "report.json.partial"
    mine.write_text("mine")
    with ThreadPoolExecutor(8) as pool:
        for report in pool.map(lambda _: store.verify(report=tmp_path / "report.json"), range(40)):
            assert report.ok
    assert mine.read_text() == "mine"
    assert json.loads((tmp_path / "report.json").read_text())["ok"] is True
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_file_of_an_open_store_is_no_earlier_report(
    suffix: str, two_stores: tuple[Store, Path], path: Path
) -> None:
    """To read it, and close it, would drop the locks of this process on it."""
    store, beside = two_stores
    for file in (path, beside):
        with pytest.raises(InvalidRequest, match="file of a store that is open"):
            store.verify(since=f"{file}{suffix}")


def test_a_report_without_all_of_its_heads_is_refused(store: Store, tmp_path: Path) -> None:
    for _ in range(3):
        store.instantiate(TOGGLE)
    target = tmp_path / "report.json"
    store.verify(report=target)
    lines = target.read_text().splitlines(keepends=True)
    for kept in (lines[:1] + lines[4:], lines[:2] + lines[3:]):
        target.write_text("".join(kept))
        with pytest.raises(InvalidRequest, match="some of its heads are gone"):
            store.verify(since=target)


def test_an_endless_report_is_refused(store: Store, tmp_path: Path) -> None:
    """A device that gives zeros for ever, say: what is read of it has an end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def pour() -> None:
        with suppress(BrokenPipeError), pipe.open("wb") as stream:
            while True:
                stream.write(bytes(1 << 16))

    with ThreadPoolExecutor(1) as pool:
        poured = pool.submit(pour)
        with pytest.raises(InvalidRequest, match="is no report"):
            store.verify(since=pipe)
        poured.result(30)


def test_a_report_may_take_the_place_of_the_one_it_is_compared_with(
    path: Path, tmp_path: Path
) -> None:
    copy_healthy(path)
    target = tmp_path / "report.json"
    with interlock.open(f"sqlite:///{path}") as store:
        for _ in range(3):
            store.fire(store.instantiate(TOGGLE), "go")
            since = target if target.exists() else None
            assert store.verify(since=since, report=target).ok
        assert len(list(read_heads(target))) == store.verify().instances


# Files that are no report

GOOD_HEAD = '["a", 1, "00ff"]'

BROKEN: dict[str, str] = {
    "empty": "",
    "blank": "\n\n",
    "no json": "no report at all",
    "a list": "[]",
    "a number": "7",
    "null": "null",
    "a text": '"interlock_report"',
    "another document": '{"ok": true, "findings": []}',
    "another document with heads": '{"heads": []}',
    "of another version": '{"interlock_report": 2, "heads": []}',
    "without heads": '{"interlock_report": 1}',
    "heads that are a mapping": '{"interlock_report": 1, "heads": {}}',
    "heads that are a text": '{"interlock_report": 1, "heads": ""}',
    "heads that are null": '{"interlock_report": 1, "heads": null}',
    "heads that are a number": '{"interlock_report": 1, "heads": 7}',
    "a head that is a text": '{"interlock_report": 1, "heads": ["abc"]}',
    "a head that is null": '{"interlock_report": 1, "heads": [null]}',
    "a head too short": '{"interlock_report": 1, "heads": [["a", 1]]}',
    "a head too long": '{"interlock_report": 1, "heads": [["a", 1, "00", 2]]}',
    "a digest that is no text": '{"interlock_report": 1, "heads": [["a", 1, 7]]}',
    "a digest that is no hexadecimal": '{"interlock_report": 1, "heads": [["a", 1, "xyz"]]}',
    "a digest of half a byte": '{"interlock_report": 1, "heads": [["a", 1, "0"]]}',
    "a number that is none": '{"interlock_report": 1, "heads": [["a", "x", "00"]]}',
    "a number below nought": '{"interlock_report": 1, "heads": [["a", -1, "00"]]}',
    "a number that is null": '{"interlock_report": 1, "heads": [["a", null, "00"]]}',
    "a number without end": '{"interlock_report": 1, "heads": [["a", 1e999, "00"]]}',
    "a number that is not a number": '{"interlock_report": 1, "heads": [["a", NaN, "00"]]}',
    "a number too long to read": f'{{"interlock_report": 1, "heads": [["a", {"9" * 9999}, "00"]]}}',
    "nested without end": "[" * 100_000,
    "heads nested without end": '{"interlock_report": 1, "heads": [\n' + "[" * 100_000,
    "a line that is no head": '{"interlock_report": 1, "heads": [\n{"a": 1}\n], "ok": true}\n',
    "a blank line": f'{{"interlock_report": 1, "heads": [\n\n{GOOD_HEAD}\n], "ok": true}}\n',
    "two documents": f'{{"interlock_report": 1, "heads": [\n{GOOD_HEAD}\n], "ok": true}}\n{{}}\n',
    "two lines in one": f'{{"interlock_report": 1, "heads": [\n{GOOD_HEAD} {GOOD_HEAD}\n]}}\n',
}


def refused(store: Store, since: Path) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refusal:
        store.verify(since=since)
    assert refusal.value.argument == "since"
    assert str(since) in str(refusal.value)
    return refusal.value


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_report_is_refused(kind: str, store: Store, tmp_path: Path) -> None:
    store.instantiate(BATCH)
    since = tmp_path / "report.json"
    since.write_text(BROKEN[kind], encoding="utf-8")
    refused(store, since)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b'{"interlock_report": 1, "heads": [\n["\xff", 1, "00"]\n]}', b"SQLite\0"],
    ids=["bytes", "a head that is no UTF-8", "a database"],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, store: Store, tmp_path: Path) -> None:
    store.instantiate(BATCH)
    since = tmp_path / "report.json"
    since.write_bytes(content)
    refused(store, since)


def test_no_file_and_a_directory_are_refused(store: Store, tmp_path: Path) -> None:
    refused(store, tmp_path / "nothing.json")
    refused(store, tmp_path)


def test_a_report_cut_anywhere_is_refused(path: Path, tmp_path: Path) -> None:
    copy_healthy(path)
    since = tmp_path / "report.json"
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify(report=since)
        content = since.read_bytes()
        accepted = []
        whole = len(content.rstrip())
        for length in (*range(0, whole - 200, 13), *range(whole - 200, whole)):
            since.write_bytes(content[:length])
            try:
                store.verify(since=since)
            except InvalidRequest:
                continue
            accepted.append(length)
        assert accepted == []


@pytest.mark.parametrize(
    "change",
    [
        lambda heads: heads[::-1],
        lambda heads: heads + heads[:1],
        lambda heads: heads[:2] + heads[1:],
    ],
    ids=["turned round", "first once more at the end", "one twice"],
)
def test_a_report_whose_heads_are_not_in_order_is_refused_or_found_sound(
    change: Callable[[list], list], path: Path, tmp_path: Path
) -> None:
    """Never does it say that an instance is gone which is there."""
    copy_healthy(path)
    since = tmp_path / "report.json"
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify(report=since)
        document = json.loads(since.read_text())
        document["heads"] = change(document["heads"])
        since.write_text(json.dumps(document))
        try:
            report = store.verify(since=since)
        except InvalidRequest:
            return
        assert report.ok


def test_a_broken_report_leaves_the_new_one_unwritten(store: Store, tmp_path: Path) -> None:
    store.instantiate(BATCH)
    reports = tmp_path / "reports"
    reports.mkdir()
    since = tmp_path / "since.json"
    since.write_text('{"interlock_report": 1, "heads": [\n["a", 1, "00"],\n')
    with pytest.raises(InvalidRequest):
        store.verify(since=since, report=reports / "report.json")
    assert list(reports.iterdir()) == []
