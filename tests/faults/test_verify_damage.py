"""A file that is damaged, rather than altered: bad bytes, values of other types, lost pages.

Whatever the bytes are, `verify` answers: damage that it meets is a finding, of the instance where
it can be told and of invariant 10 where it cannot; nothing comes out as a traceback.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import interlock
from interlock.core.rejection import NotKnown, StorageFailure
from interlock.store import verify
from interlock.store.store import Store
from interlock.store.verify import Report
from tests.support.tampering import (
    TABLES,
    File,
    copy_healthy,
    found,
    healthy,
    tampered,
    tampering,
)

BAD = b"\xff"  # nowhere in UTF-8, and after every text in the order of bytes
LOW = b"\x80"  # a byte that may only follow another

PAGE_BYTES = 4096
GARBAGE = {
    "noise": Random(0).randbytes(PAGE_BYTES),
    "nothing": bytes(PAGE_BYTES),
    "ones": b"\xff" * PAGE_BYTES,
}


def bad_bytes(table: str, column: str, where: str, byte: bytes, file: File) -> None:
    """Put a byte that is no UTF-8 in the place of a letter in the middle of a text."""
    old = file.rows(table, where)[0][column]
    middle = len(old) // 2
    place = next((n for n in range(middle, len(old)) if old[n].isalnum()), middle)
    text = old.encode()
    sql = f'UPDATE "{table}" SET "{column}" = CAST(? AS TEXT) WHERE {where}'
    file.execute(sql, text[:place] + byte + text[place + 1 :])


def whole(store: Store, tmp_path: Path) -> Report:
    """Verify a store with everything that goes with it: a report, findings as text."""
    told: list[str] = []
    report = store.verify(report=tmp_path / "r.json", on_finding=lambda one: told.append(str(one)))
    assert told == [str(finding) for finding in report.findings]
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["count"] == report.count
    assert len(written["findings"]) == len(report.findings)
    return report


# Text that is not UTF-8

TEXTS = {
    "instances": [
        "declaration_digest",
        "current_state",
        "actor_ref",
        "subject_ref",
        "metadata_id",
        "id",
        "root",
    ],
    "history": [
        "transition_id",
        "from_state",
        "action",
        "to_state",
        "actor_ref",
        "reason_id",
        "correlation_id",
        "causation_id",
        "worker_id",
        "idempotency_key",
        "instance_id",
        "root",
    ],
    "payloads": ["id", "root"],
    "declared_transitions": ["from_state", "action", "to_state", "guard", "digest"],
    "declarations": ["text", "digest"],
    "start_keys": ["instance_id", "idempotency_key"],
}


def filled_rows(path: Path, table: str, column: str) -> list[str]:
    """Give conditions for the first, a middle and the last row that has a text there."""
    with closing(sqlite3.connect(path)) as connection:
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
        quoted, order = ", ".join(f'quote("{key}")' for key in keys), ", ".join(keys)
        where = f'"{column}" IS NOT NULL ORDER BY {order}'
        rows = connection.execute(f'SELECT {quoted} FROM "{table}" WHERE {where}').fetchall()
    chosen = dict.fromkeys([rows[0], rows[len(rows) // 2], rows[-1]])
    return [" AND ".join(f'"{k}" = {v}' for k, v in zip(keys, row, strict=True)) for row in chosen]


def root_pages(path: Path) -> dict[str, int]:
    copy_healthy(path)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
        return {name: page for name, page in rows if name in TABLES}


@pytest.mark.parametrize("byte", [LOW, BAD], ids=["low", "bad"])
@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in TEXTS for column in TEXTS[table]]
)
def test_text_that_is_not_utf8_is_a_finding(
    table: str,
    column: str,
    byte: bytes,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy_healthy(path)
    for where in filled_rows(path, table, column):
        with tampered(path, partial(bad_bytes, table, column, where, byte)) as store:
            for rows in (2, 3, 2000):
                monkeypatch.setattr(verify, "PAGE_ROWS", rows)
                assert not whole(store, tmp_path).ok
            for id in healthy()[1].values():
                try:
                    store.verify(id)
                except NotKnown:
                    assert column in ("id", "root")


def test_a_text_that_is_not_utf8_is_found_where_it_is(path: Path) -> None:
    names = healthy()[1]
    where = f"instance_id = '{names['long']}' AND sequence_number = 12"
    with tampered(path, partial(bad_bytes, "history", "action", where, BAD)) as store:
        assert found(store.verify()) == [("long", 12, 3), ("long", 12, 5)]
        assert found(store.verify(names["long"])) == [("long", 12, 3), ("long", 12, 5)]
        assert store.verify(names["last"]).ok


def test_a_declaration_that_is_not_utf8_says_nothing_of_instances_of_others(path: Path) -> None:
    """Its page of instances is read once more, with the odd bytes passed over."""

    def tamper(file: File) -> None:
        digest = file.declaration("twin")["digest"]
        bad_bytes("declarations", "text", f"digest = '{digest}'", BAD, file)

    with tampered(path, tamper) as store:
        seen = found(store.verify())
        assert {name for name, *_ in seen} <= {None, "twin", "twin-ended"}
        assert (None, None, 1) in seen
        assert not store.verify(healthy()[1]["twin"]).ok
        assert store.verify(healthy()[1]["last"]).ok


def test_a_genesis_that_is_not_utf8_is_found_where_it_is(path: Path) -> None:
    where = f"id = '{healthy()[1]['long']}'"
    with tampered(path, partial(bad_bytes, "instances", "actor_ref", where, LOW)) as store:
        assert found(store.verify()) == [("long", None, 1)]


# Values of other types: the table was made anew without STRICT

ODD: list[Any] = [None, "", "text", 0, -1, 2**62, 0.5, float("inf"), b"", b"bytes"]

ODD_PLACES = {
    "instances": [
        "id",
        "root",
        "declaration_digest",
        "current_state",
        "next_sequence_number",
        "head_digest",
        "instantiated_at",
        "actor_ref",
        "subject_ref",
        "metadata_id",
        "metadata_digest",
        "genesis_digest",
    ],
    "history": [
        "sequence_number",
        "transition_id",
        "from_state",
        "action",
        "to_state",
        "actor_ref",
        "fired_at",
        "guard_satisfied",
        "reason_id",
        "reason_digest",
        "correlation_id",
        "request_digest",
        "entry_digest",
    ],
    "payloads": ["id", "salt", "content"],
    "declared_transitions": ["from_state", "action", "to_state", "guard", "ordinal"],
    "declarations": ["digest", "text"],
    "start_keys": ["idempotency_key", "instance_id"],
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in ODD_PLACES for column in ODD_PLACES[table]]
)
def test_a_value_of_another_type_is_a_finding_in_every_mode(
    table: str, column: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small pages, with a report, against an earlier one, and for each instance alone."""
    names = copy_healthy(path)
    with interlock.open(f"sqlite:///{path}") as store:
        store.verify(report=tmp_path / "earlier.json")
    with tampering(path) as file:
        file.loosen(table)
        places = dict.fromkeys(
            (1, len(file.rows(table)) // 2, len(file.rows(table)))  # rowids of a fresh table
        )
        with interlock.open(f"sqlite:///{path}?mode=ro") as store:
            for place in places:
                where = f"rowid = {place}"
                (old,) = (row[column] for row in file.rows(table, where))
                for odd in ODD:
                    if old is None and odd in ("", b"", 0):
                        continue  # absent either way: for `test_verify_columns`
                    file.change(table, {column: odd}, where)
                    for rows in (2, 2000):
                        monkeypatch.setattr(verify, "PAGE_ROWS", rows)
                        report = whole(store, tmp_path)
                        if odd != old:
                            assert not report.ok, (place, odd)
                        store.verify(since=tmp_path / "earlier.json")
                    for id in names.values():
                        try:
                            store.verify(id)
                        except NotKnown:
                            assert column in ("id", "root")
                file.change(table, {column: old}, where)


def test_an_entry_below_every_number_is_found(path: Path) -> None:
    def hide(file: File) -> None:
        entry = {**file.entry("last", 1), "sequence_number": -(2**63), "transition_id": "hidden"}
        file.insert("history", entry)

    with tampered(path, hide) as store:
        assert not store.verify().ok
        assert not store.verify(healthy()[1]["last"]).ok


@pytest.mark.parametrize("id", ["\U0010ffff" * 9, "\U0010ffff" * 8, "\U0010ffff", " ", "\x01", ""])
def test_an_instance_at_the_end_of_every_order_is_verified(id: str, path: Path) -> None:
    def hide(file: File) -> None:
        file.insert("instances", {**file.instance("new"), "id": id, "root": id})

    with tampered(path, hide) as store:
        report = store.verify()
        assert [(one.instance, one.invariant) for one in report.findings] == [(id, 1)]


# Pages


@cache
def schema() -> list[tuple[bytes, ...]]:
    with TemporaryDirectory() as directory, closing(sqlite3.connect(":memory:")) as connection:
        path = Path(directory) / "store.db"
        copy_healthy(path)
        connection.execute("ATTACH ? AS healthy", (str(path),))
        connection.text_factory = bytes
        return connection.execute("SELECT * FROM healthy.sqlite_schema").fetchall()


def readable(path: Path) -> dict[str, Any] | None:
    """Read every watched column of every row with plain `sqlite3`.

    None where that fails; nothing where the schema itself is another, which is no record.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.text_factory = bytes
            if connection.execute("SELECT * FROM sqlite_schema").fetchall() != schema():
                return {}
            found = {}
            for table in TABLES:
                info = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
                columns = ", ".join(f'"{row[1].decode()}"' for row in info)
                found[table] = connection.execute(f'SELECT {columns} FROM "{table}"').fetchall()
            return found
    except (sqlite3.Error, UnicodeDecodeError, MemoryError):
        return None


def judged(path: Path, content: bytes) -> str:
    """Say what becomes of a file with such bytes: `refused` at the door, `found`, or `ok`."""
    for leftover in path.parent.glob(f"{path.name}-*"):
        leftover.unlink()
    path.write_bytes(content)
    try:
        store = interlock.open(f"sqlite:///{path}?mode=ro")
    except StorageFailure:
        return "refused"
    with store:
        try:
            report = store.verify()
        except StorageFailure:
            return "refused"
        return "ok" if report.ok else "found"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("intact") / "store.db"
    copy_healthy(path)
    rows = readable(path)
    assert rows is not None
    return rows


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_over_any_page_that_holds_records_is_found(
    garbage: str, path: Path, intact: dict[str, Any]
) -> None:
    content, _ = healthy()
    verdicts = []
    for start in range(0, len(content), PAGE_BYTES):
        damaged = content[:start] + GARBAGE[garbage] + content[start + PAGE_BYTES :]
        verdict = judged(path, damaged)
        verdicts.append(verdict)
        assert verdict != "ok" or readable(path) == intact, f"the page at {start}"
    assert verdicts.count("found") > 5


def test_garbage_over_a_page_of_history_is_a_finding_of_durability(path: Path) -> None:
    content, names = healthy()
    start = (root_pages(path)["history"] - 1) * PAGE_BYTES
    path.write_bytes(content[:start] + GARBAGE["noise"] + content[start + PAGE_BYTES :])
    with interlock.open(f"sqlite:///{path}") as store:
        assert found(store.verify()) == [(None, None, 10)]
        assert found(store.verify(names["long"])) == [("long", None, 10)]
        assert "damaged" in store.verify().findings[0].what


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_page_that_hides_rows_is_a_finding(table: str, path: Path) -> None:
    """A search that meets a broken row may end there, as if no others came after it."""
    content, _ = healthy()
    start = (root_pages(path)[table] - 1) * PAGE_BYTES
    pointers = start + (8 if content[start] in (10, 13) else 12)  # a leaf has the shorter head
    rows = int.from_bytes(content[start + 3 : start + 5])
    assert rows
    for place in range(pointers, pointers + 2 * rows, 2):
        damaged = bytearray(content)
        damaged[place : place + 2] = b"\xfa\xcc"
        assert judged(path, bytes(damaged)) != "ok", place - start


def test_a_file_cut_short_is_found_or_refused(path: Path) -> None:
    content, _ = healthy()
    for pages in range(1, len(content) // PAGE_BYTES):
        assert judged(path, content[: pages * PAGE_BYTES]) != "ok"


@pytest.mark.parametrize(
    "count", [400, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_bytes_flipped_anywhere_are_found_where_they_change_a_record(
    count: int, path: Path, intact: dict[str, Any]
) -> None:
    content, _ = healthy()
    random = Random(count)
    roots = root_pages(path).values()
    pages = [*roots, *range(max(roots) + 1, len(content) // PAGE_BYTES + 1)]
    for _ in range(count):
        damaged = bytearray(content)
        start = (random.choice(pages) - 1) * PAGE_BYTES + random.randrange(PAGE_BYTES)
        for place in range(start, min(start + random.choice([1, 1, 4, 16]), len(content))):
            damaged[place] = random.randrange(256)
        if judged(path, bytes(damaged)) == "ok":
            assert readable(path) in (intact, {}), f"from byte {start} on"


def damaged_schema(word: bytes) -> bytes:
    content, _ = healthy()
    assert word in content
    return content.replace(word, word[:-1] + b"\xff", 1)


@pytest.mark.parametrize(
    "word", [b"CREATE TABLE history", b"CREATE TRIGGER history_insert", b"genesis_digest"]
)
def test_a_damaged_schema_is_refused_or_found(word: bytes, path: Path) -> None:
    assert judged(path, damaged_schema(word)) in ("refused", "found", "ok")


def test_the_rest_of_a_store_is_verified_though_a_declaration_is_no_json(path: Path) -> None:
    def tamper(file: File) -> None:
        file.loosen("declarations")
        file.change("declarations", {"text": "{"}, "digest = ?", file.declaration("twin")["digest"])
        file.set_entry("last", 2, actor_ref="mallory")

    with tampered(path, tamper) as store:
        seen = found(store.verify())
        assert ("last", 2, 5) in seen
        assert {name for name, *_ in seen} <= {None, "twin", "twin-ended", "last"}


NESTED: dict[str, Callable[[], str]] = {
    "deep": lambda: "[" * 100_000,
    "big number": lambda: '{"states": ' + "9" * 10_000 + "}",
    "numbers": lambda: '{"states": [1, 2.5, null, true], "transitions": 7}',
    "lists for names": lambda: (
        '{"states": [["a"]], "transitions": [{"from_state": {}, "action": []}],'
        ' "initial_state": ["a"], "terminal_states": [{}]}'
    ),
    "lone surrogates": lambda: (
        '{"states": ["\\ud800"], "transitions": [], "initial_state": "\\ud800",'
        ' "terminal_states": []}'
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_declaration_of_odd_json_is_a_finding(kind: str, path: Path) -> None:
    def tamper(file: File) -> None:
        file.loosen("declarations")
        text = NESTED[kind]()
        file.change(
            "declarations", {"text": text}, "digest = ?", file.declaration("twin")["digest"]
        )

    with tampered(path, tamper) as store:
        assert {name for name, *_ in found(store.verify())} <= {None, "twin", "twin-ended"}
        assert not store.verify().ok
        assert not store.verify(healthy()[1]["twin"]).ok
