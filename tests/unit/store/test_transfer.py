"""Dumps and restores: what comes back is equal, and what is no dump is refused."""

import asyncio
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest

import interlock
from interlock import InvalidRequest, NotKnown, StorageFailure, VersionConflict
from interlock.core.rejection import IdempotencyConflict
from interlock.store import restore, story, transfer
from interlock.store.store import Store
from interlock.store.transfer import Page
from tests.support.copies import KINDS, destroy, dumped, new_store, populate, report, told
from tests.support.machines import BATCH, MACHINES, TOGGLE, arrow, declare
from tests.support.postgres import APP, ERASER, READER, at, database, make_store
from tests.support.records import content_of
from tests.support.tampering import File, copy_healthy, repeatable_store, tampered


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    with new_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def origin(path: Path) -> Iterator[Store]:
    """A store in a file with records of every kind."""
    copy_healthy(path)
    with interlock.open(f"sqlite:///{path}") as store:
        yield store


@pytest.fixture
def dump(origin: Store, tmp_path: Path) -> Path:
    origin.dump(tmp_path / "dump.jsonl")
    return tmp_path / "dump.jsonl"


def lines_of(dump: Path) -> list[str]:
    return dump.read_text(encoding="ascii").splitlines(keepends=True)


# What is no argument


class Unflushed:
    """What can be written to, and is no stream."""

    def write(self, text: str) -> None: ...


def closed(stream: Any) -> Any:
    stream.close()
    return stream


VERBS: dict[str, Callable[[Any, Any], object]] = {
    "target": lambda store, target: store.dump(target),
    "source": lambda store, source: store.restore(source),
    "report": lambda store, report: store.verify(report=report),
    "since": lambda store, since: store.verify(since=since),
}


@pytest.mark.parametrize("argument", VERBS)
def test_what_is_neither_a_path_nor_a_stream_is_refused(origin: Store, argument: str) -> None:
    odd: list[Any] = [5, b"x", True, [], Unflushed(), closed(io.StringIO())]
    if argument in ("target", "source"):
        odd.append(None)
    for value in odd:
        with pytest.raises(InvalidRequest, match=f"^`{argument}` is ") as refusal:
            VERBS[argument](origin, value)
        assert refusal.value.argument == argument


@pytest.mark.parametrize("argument", ["target", "source", "report"])
def test_a_stream_of_the_wrong_kind_is_refused(
    origin: Store, argument: str, tmp_path: Path
) -> None:
    odd = tmp_path / "odd"
    odd.write_text("{}\n")
    reads = argument == "source"
    with odd.open("rb") as of_bytes, odd.open("a" if reads else "r") as other_way:
        for stream in (of_bytes if reads else io.BytesIO(), other_way):
            with pytest.raises(InvalidRequest) as refusal:
                VERBS[argument](origin, stream)
            assert refusal.value.argument == argument


@pytest.mark.parametrize("ids", [5, True, b"x", "x", [5], [None], ["x", b"x"], [[]]])
def test_what_is_no_list_of_ids_is_refused(origin: Store, ids: Any) -> None:
    with pytest.raises(InvalidRequest, match="`ids`") as refusal:
        origin.dump(io.StringIO(), ids)
    assert refusal.value.argument == "ids"
    if isinstance(ids, list):
        assert refusal.value.index == len(ids) - 1


@pytest.mark.parametrize("value", [5, True, "x"])
def test_a_listener_that_cannot_be_told_is_refused(origin: Store, value: Any, dump: Path) -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("on_page", lambda: origin.dump(io.StringIO(), on_page=value)),
        ("on_page", lambda: origin.restore(dump, on_page=value)),
        ("on_page", lambda: origin.verify(on_page=value)),
        ("on_finding", lambda: origin.verify(on_finding=value)),
    ]
    for argument, call in calls:
        with pytest.raises(InvalidRequest, match=f"`{argument}` is a function, not") as refusal:
            call()
        assert refusal.value.argument == argument


def test_the_asynchronous_face_refuses_the_same() -> None:
    async def refused() -> list[str]:
        async with interlock.open_async("sqlite://") as store:
            arguments = []
            for call in (store.dump(5), store.restore(None), store.dump(io.StringIO(), 5)):  # type: ignore[arg-type]
                with pytest.raises(InvalidRequest) as refusal:
                    await call
                arguments.append(refusal.value.argument)
            return arguments

    assert asyncio.run(refused()) == ["target", "source", "ids"]


# There and back


@pytest.mark.parametrize("via", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_a_store_goes_anywhere_and_comes_back_equal(first: str, via: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "via", "back")]
    with ExitStack() as stack:
        stores = []
        for folder, kind in zip(folders, (first, via, first), strict=True):
            folder.mkdir()
            stores.append(stack.enter_context(new_store(kind, folder)))
        names = populate(stores[0])
        counts = stores[0].dump(folders[0] / "dump.jsonl")
        for one, other, folder in zip(stores, stores[1:], folders, strict=False):
            one.dump(folder / "dump.jsonl")
            read = other.restore(folder / "dump.jsonl")
            assert (*read[:4], *read[6:]) == counts
            assert (read.added_instances, read.added_entries) == (counts.instances, counts.entries)
        assert (counts.declarations, counts.instances, counts.entries) == (2, 4, 27)
        told_first, report_first = told(stores[0]), report(stores[0], folders[0])
        for store, folder in zip(stores, folders, strict=True):
            assert told(store) == told_first
            assert report(store, folder) == report_first
            assert dumped(store, folder) == (folders[0] / "dump.jsonl").read_bytes()
            assert store.history(names["purged"])[0].reason is interlock.PURGED
            _check_keys(store, names["keyed"])
            store.fire(names["long"], "go")
            assert store.verify().ok


def _check_keys(store: Store, keyed: str) -> None:
    """The same request under its key gets the first answer again; another one is refused."""
    asked: dict[str, Any] = {
        "actor_ref": "ann",
        "subject_ref": "caf\u00e9 \U0001f600",
        "instance_metadata": {"line": [1.5, None]},
        "idempotency_key": "birth-1",
    }
    assert store.instantiate(BATCH, **asked) == keyed
    with pytest.raises(IdempotencyConflict):
        store.instantiate(BATCH, **{**asked, "actor_ref": "eve"})
    again: dict[str, Any] = {"actor_ref": "bob", "idempotency_key": "k-1"}
    assert store.fire(keyed, "begin-testing", reason='a "reason"\n\u2028', **again) == "testing"
    with pytest.raises(IdempotencyConflict):
        store.fire(keyed, "begin-testing", reason="another", **again)


def test_a_role_that_may_not_destroy_is_told_who_may(tmp_path: Path) -> None:
    """What was destroyed comes back destroyed, and that is for the eraser; who then goes on."""
    with interlock.open("sqlite://") as origin:
        populate(origin)
        origin.dump(tmp_path / "dump.jsonl")
    with database() as url:
        make_store(url)
        with interlock.open(at(url, user=APP)) as store:
            with pytest.raises(StorageFailure, match="grants to `\\$eraser`") as refusal:
                store.restore(tmp_path / "dump.jsonl")
            assert (refusal.value.kind, refusal.value.retryable) == ("read-only", False)
            assert "permission denied for table payloads" in str(refusal.value)
        with interlock.open(at(url, user=ERASER)) as store:
            store.restore(tmp_path / "dump.jsonl")
            assert store.verify().ok
        with interlock.open(at(url, user=APP)) as store:
            assert store.restore(tmp_path / "dump.jsonl").added_entries == 0
        with interlock.open(at(url, user=READER)) as store:
            with pytest.raises(StorageFailure, match="the role is not permitted") as refusal:
                store.instantiate(BATCH)
            assert "eraser" not in str(refusal.value)


def noise(length: int) -> str:
    """Write text that cannot be compressed, or an index would hold more of it."""
    return "".join(Random(length).choices(ascii_letters + digits, k=length))


@pytest.mark.parametrize("tenant", ["", noise(1024)])
def test_the_longest_texts_that_limits_allow_are_held_by_postgresql(tenant: str) -> None:
    left = 2504 - len(tenant)
    limits = interlock.Limits(name_bytes=left // 2, reference_bytes=left)
    first, second, go = (noise(left // 2 - n) for n in range(3))
    declaration = declare([first, second], [arrow(first, go, second)])
    long = noise(left)
    with database() as url, interlock.open(url, tenant=tenant, limits=limits) as store:
        id = store.instantiate(declaration, long, long, idempotency_key=long)
        assert store.fire(id, go, long, idempotency_key=long, reason=long) == second
        assert store.verify().ok
        with pytest.raises(InvalidRequest, match="bytes long, more than the"):
            store.instantiate(declaration, subject_ref=long + "x")


INDEXES = ["declared_transitions_pkey", "start_keys_pkey", "history_by_key"]


@pytest.mark.parametrize("what", INDEXES)
def test_a_text_that_postgresql_cannot_index_is_said_to_be_too_long(
    what: str, tmp_path: Path
) -> None:
    """A store on SQLite with limits of its own may hold it."""
    limits = interlock.Limits(name_bytes=4000, reference_bytes=4000)
    with interlock.open("sqlite://", limits=limits) as origin:
        long = {index: noise(3500) if index == what else "x" for index in INDEXES}
        action = long["declared_transitions_pkey"]
        declaration = declare(["a", "b"], [arrow("a", action, "b")])
        id = origin.instantiate(declaration, idempotency_key=long["start_keys_pkey"])
        origin.fire(id, action, idempotency_key=long["history_by_key"])
        origin.dump(tmp_path / "dump.jsonl")
    with new_store("postgres", tmp_path) as store:
        with pytest.raises(StorageFailure, match="longer than PostgreSQL can hold") as refusal:
            store.restore(tmp_path / "dump.jsonl")
        assert (refusal.value.kind, refusal.value.retryable) == ("failed", False)
        assert what in str(refusal.value)
        assert store.verify().ok


def test_every_row_comes_back(dump: Path, path: Path, tmp_path: Path) -> None:
    """Salts included; when the migrations were applied is no record."""
    with interlock.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        copy.restore(dump)
    before, after = content_of(path), content_of(tmp_path / "copy.db")
    del before["interlock_migrations"], after["interlock_migrations"]
    assert after == before


def test_an_empty_store(target: Store, tmp_path: Path) -> None:
    with interlock.open("sqlite://") as empty:
        assert empty.dump(tmp_path / "empty.jsonl") == (0, 0, 0, 0, 0, 0, 0)
    assert target.restore(tmp_path / "empty.jsonl") == (0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert len(lines_of(tmp_path / "empty.jsonl")) == 2
    assert target.verify().ok


def test_names_of_every_sort(target: Store, tmp_path: Path) -> None:
    with interlock.open("sqlite://") as odd:
        for declaration in MACHINES.values():
            id = odd.instantiate(declaration)
            for row in declaration["transitions"][:3]:
                if row["from_state"] == odd.current(id):
                    odd.fire(id, row["action"], guard_satisfied=True, reason=row["action"])
        odd.dump(tmp_path / "dump.jsonl")
        assert (tmp_path / "dump.jsonl").read_bytes().isascii()
        target.restore(tmp_path / "dump.jsonl")
        assert told(target) == told(odd)
        assert dumped(target, tmp_path) == (tmp_path / "dump.jsonl").read_bytes()


def test_a_declaration_that_governs_nothing_is_dumped(target: Store, tmp_path: Path) -> None:
    with interlock.open(f"sqlite:///{tmp_path}/idle.db") as idle:
        for declaration in MACHINES.values():
            idle.instantiate(declaration)
        idle.dump(tmp_path / "full.jsonl")
    kept = [line for line in lines_of(tmp_path / "full.jsonl") if '{"declaration":' in line]
    with closing(sqlite3.connect(tmp_path / "idle.db")) as connection:
        connection.execute("DROP TRIGGER instances_delete")
        connection.execute("DELETE FROM instances WHERE declaration_digest > 'a'")
        connection.commit()
    with interlock.open(f"sqlite:///{tmp_path}/idle.db?mode=ro") as idle:
        counts = idle.dump(tmp_path / "dump.jsonl")
    assert counts.declarations == len(kept) > counts.instances
    assert sorted(lines_of(tmp_path / "dump.jsonl")[1:-1]) > sorted(kept)
    target.restore(tmp_path / "dump.jsonl")
    assert dumped(target, tmp_path) == (tmp_path / "dump.jsonl").read_bytes()


@pytest.mark.parametrize("rows", [2, 3, 7, 38])
@pytest.mark.parametrize("window", [1, 2])
def test_pages_and_transactions_may_end_anywhere(
    rows: int, window: int, origin: Store, path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    whole = dumped(origin, tmp_path, "whole.jsonl")
    monkeypatch.setattr(transfer, "PAGE_ROWS", rows)
    monkeypatch.setattr(transfer, "PAYLOADS_AT_ONCE", rows - 1)
    monkeypatch.setattr(restore, "BATCH_ROWS", rows - 1)
    assert dumped(origin, tmp_path) == whole
    monkeypatch.setattr(story, "WINDOW", window)
    again = dumped(origin, tmp_path)
    assert (len(again) > len(whole)) is (window < 2)
    with interlock.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        read = copy.restore(tmp_path / "again.jsonl")
        assert (read.added_instances, read.added_entries) == (12, 37)
        assert told(copy) == told(origin)
        assert dumped(copy, tmp_path, "copied.jsonl") == again
        assert copy.restore(tmp_path / "again.jsonl").added_entries == 0


def test_large_payloads_go_in_small_transactions(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(restore, "BATCH_BYTES", 1000)
    with interlock.open("sqlite://") as store, interlock.open("sqlite://") as copy:
        id = store.instantiate(TOGGLE, instance_metadata=["x" * 900])
        for _ in range(9):
            store.fire(id, "go", reason="y" * 400)
        store.dump(tmp_path / "dump.jsonl")
        pages: list[Page] = []
        copy.restore(tmp_path / "dump.jsonl", on_page=pages.append)
        assert told(copy) == told(store)
    assert len([page for page in pages if page.stage == "restoring"]) >= 4


def test_listeners_are_told_how_far_it_has_come(
    origin: Store, target: Store, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(transfer, "PAGE_ROWS", 10)
    monkeypatch.setattr(restore, "BATCH_ROWS", 10)
    pages: list[Page] = []
    origin.dump(tmp_path / "dump.jsonl", on_page=pages.append)
    assert [page.stage for page in pages] == ["dumping"] * len(pages)
    assert [*pages[-1]] == ["dumping", 37, None]
    pages.clear()
    target.restore(tmp_path / "dump.jsonl", on_page=pages.append)
    assert pages[0].stage == "checking"
    assert [*pages[-1]] == ["restoring", 37, 37]
    assert [page.done for page in pages] == sorted(page.done for page in pages)


def test_what_a_listener_raises_passes_through(origin: Store, tmp_path: Path) -> None:
    def interrupt(_: Page) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        origin.dump(tmp_path / "dump.jsonl", on_page=interrupt)
    assert not [*tmp_path.glob("*.jsonl"), *tmp_path.glob(".*")]


def test_the_asynchronous_face_does_the_same(dump: Path, tmp_path: Path) -> None:
    async def there_and_back() -> None:
        async with interlock.open_async(f"sqlite:///{tmp_path}/copy.db") as copy:
            read = await copy.restore(dump)
            assert read.added_entries == 37
            assert await copy.dump(tmp_path / "again.jsonl") == (*read[:4], *read[6:])

    asyncio.run(there_and_back())
    assert (tmp_path / "again.jsonl").read_bytes() == dump.read_bytes()


# Some instances, and tenants


def test_some_instances_are_dumped(target: Store, tmp_path: Path) -> None:
    with interlock.open("sqlite://") as store:
        names = populate(store)
        chosen = [names["purged"], names["long"], names["purged"]]
        assert store.dump(tmp_path / "some.jsonl", chosen) == (1, 2, 25, 11, 0, 0, 0)
        target.restore(tmp_path / "some.jsonl")
        assert [one.id for one in target.instances()] == sorted({*chosen})
        assert target.history(names["long"]) == store.history(names["long"])
        store.dump(tmp_path / "all.jsonl")
        read = target.restore(tmp_path / "all.jsonl")
        assert (read.added_instances, read.added_entries) == (2, 2)
        assert told(target) == told(store)
        assert store.dump(tmp_path / "some.jsonl", []) == (0, 0, 0, 0, 0, 0, 0)


def test_an_instance_that_is_not_known_leaves_nothing(origin: Store, tmp_path: Path) -> None:
    known, stream = origin.instances(limit=1)[0].id, io.StringIO()
    for to in (tmp_path / "dump.jsonl", stream):
        with pytest.raises(NotKnown) as refusal:
            origin.dump(to, [known, "nobody"])
        assert refusal.value.instance_id == "nobody"
    assert not stream.getvalue()
    assert not (tmp_path / "dump.jsonl").exists()
    for ids in ("nobody", [" "], [7]):
        with pytest.raises(InvalidRequest):
            origin.dump(stream, ids)  # type: ignore[arg-type]


def test_a_dump_is_of_one_tenant_and_goes_to_any(target: Store, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    with (
        interlock.open(url, tenant="acme") as acme,
        interlock.open(url, tenant="bolt") as bolt,
        interlock.open(url, tenant="copy") as copy,
    ):
        populate(acme)
        bolt.instantiate(MACHINES["purchase-order"])
        assert acme.dump(tmp_path / "acme.jsonl").instances == 4
        for store in (target, copy):
            store.restore(tmp_path / "acme.jsonl")
            assert told(store) == told(acme)
            assert store.verify().ok
        assert len(bolt.instances()) == 1


# Again, on, and against what is there


def test_what_is_there_is_left_and_what_follows_is_added(target: Store, tmp_path: Path) -> None:
    with interlock.open("sqlite://") as store:
        names = populate(store)
        store.dump(tmp_path / "monday.jsonl")
        target.restore(tmp_path / "monday.jsonl")
        assert target.restore(tmp_path / "monday.jsonl")[4:6] == (0, 0)
        store.fire(names["new"], "begin-testing", reason="late", idempotency_key="k")
        store.fire(names["long"], "go", reason="later")
        store.instantiate(TOGGLE, instance_metadata={"new": 1}, idempotency_key="birth-2")
        store.dump(tmp_path / "tuesday.jsonl")
        assert target.restore(tmp_path / "tuesday.jsonl")[4:6] == (1, 2)
        assert told(target) == told(store)
        with pytest.raises(VersionConflict) as refusal:
            target.restore(tmp_path / "monday.jsonl")
        assert refusal.value.instance_id == names["new"]
        assert (refusal.value.expected_version, refusal.value.version) == (1, 2)
        assert told(target) == told(store)


def test_a_payload_that_was_destroyed_stays_destroyed(target: Store, tmp_path: Path) -> None:
    with interlock.open("sqlite://") as store:
        id = store.instantiate(TOGGLE, instance_metadata="a secret")
        store.dump(tmp_path / "monday.jsonl")
        target.restore(tmp_path / "monday.jsonl")
    destroy(target, id, id)
    target.restore(tmp_path / "monday.jsonl")
    assert target.snapshot(id).metadata is interlock.PURGED


def build(path: Path, actor: str, *actions: str, key: str | None = None) -> str:
    """Make a store whose instance has the same id whoever began it, between two others."""
    with repeatable_store(path) as store:
        store.instantiate(TOGGLE, subject_ref="before")
        id = store.instantiate(BATCH, actor, idempotency_key=key)
        for action in actions:
            store.fire(id, action, "bob", True)
        store.instantiate(TOGGLE, subject_ref="after")
        store.dump(path.with_suffix(".jsonl"))
    return id


@pytest.mark.parametrize(
    ("actor", "actions", "what"),
    [
        ("eve", ["begin-testing"], "began otherwise"),
        ("ann", ["begin-testing", "reject-batch"], "its entry 2 is not that of the dump"),
        ("ann", ["begin-testing", "release", "more"], "has come to entry 3, the dump to 2"),
    ],
)
@pytest.mark.parametrize("rows", [1, 500])
def test_an_instance_that_is_there_otherwise_is_refused(
    actor: str, actions: list[str], what: str, rows: int, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(restore, "BATCH_ROWS", rows)
    monkeypatch.setitem(BATCH, "transitions", [*BATCH["transitions"]])
    if "more" in actions:
        more = {"from_state": "released", "action": "more", "to_state": "released"}
        monkeypatch.setitem(BATCH, "terminal_states", ["rejected"])
        BATCH["transitions"].append(more)
    id = build(tmp_path / "a.db", "ann", "begin-testing", "release")
    assert build(tmp_path / "b.db", actor, *actions) == id
    with interlock.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        copy.restore(tmp_path / "a.jsonl")
        whole = dumped(copy, tmp_path)
    assert whole == (tmp_path / "a.jsonl").read_bytes()
    with interlock.open(f"sqlite:///{tmp_path}/b.db") as other:
        (tmp_path / "one.jsonl").touch()
        other.dump(tmp_path / "one.jsonl", [id])
    with interlock.open(f"sqlite:///{tmp_path}/c.db") as copy:
        copy.restore(tmp_path / "one.jsonl")
        before = copy.history(id)
        with pytest.raises(VersionConflict, match=what) as refusal:
            copy.restore(tmp_path / "a.jsonl")
        assert refusal.value.instance_id == id
        assert copy.history(id) == before
        assert [one.subject_ref for one in copy.instances()] == ["before", None]
        assert copy.verify().ok


def test_a_key_of_another_birth_is_refused(target: Store, tmp_path: Path) -> None:
    id = build(tmp_path / "a.db", "ann", key="birth")
    other = target.instantiate(TOGGLE, idempotency_key="birth")
    with pytest.raises(IdempotencyConflict, match=f"which began `{other}`") as refusal:
        target.restore(tmp_path / "a.jsonl")
    assert refusal.value.instance_id == id
    assert [one.subject_ref for one in target.instances()] == ["before", None]
    assert target.verify().ok


def test_a_store_that_cannot_be_written_is_refused(dump: Path, tmp_path: Path) -> None:
    with interlock.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        copy.restore(dump)
    with interlock.open(f"sqlite:///{tmp_path}/copy.db?mode=ro") as copy:
        with pytest.raises(StorageFailure) as refusal:
            copy.restore(dump)
        assert refusal.value.kind == "read-only"
        assert dumped(copy, tmp_path) == dump.read_bytes()


# Beside writers


@pytest.mark.parametrize("rows", [2, 5])
def test_a_dump_beside_writers_can_be_restored(
    rows: int, target: Store, path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Entries are added wherever the dump has come to; it ends nevertheless, and is whole."""
    monkeypatch.setattr(transfer, "PAGE_ROWS", rows)
    with interlock.open(f"sqlite:///{path}") as store:
        names = populate(store)

        def write(_: Page) -> None:
            for name in ("long", "purged"):
                store.fire_many([interlock.Fire(names[name], "go", reason="beside")] * rows)
            store.instantiate(MACHINES["purchase-order"]) if len(store.instances()) < 20 else None

        store.dump(tmp_path / "dump.jsonl", on_page=write)
        target.restore(tmp_path / "dump.jsonl")
        assert target.verify().ok
        for id in names.values():
            copied = target.history(id)
            assert copied == store.history(id)[: len(copied)]
        store.dump(tmp_path / "dump.jsonl")
        target.restore(tmp_path / "dump.jsonl")
        assert told(target) == told(store)


def test_a_restore_beside_writers_does_no_harm(
    dump: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Somebody fires at an instance that is restored in part."""
    monkeypatch.setattr(restore, "BATCH_ROWS", 5)
    with interlock.open(f"sqlite:///{tmp_path}/copy.db") as copy:

        def write(page: Page) -> None:
            for one in copy.instances():
                if one.definition != copy.instances()[0].definition and one.version < 8:
                    copy.fire(one.id, "go", "mallory")

        with pytest.raises(VersionConflict):
            copy.restore(dump, on_page=write)
        assert copy.verify().ok


# Where a dump goes, and where it comes from


def test_a_dump_takes_the_place_of_a_dump_or_of_nothing(origin: Store, tmp_path: Path) -> None:
    target = tmp_path / "dump.jsonl"
    target.touch(mode=0o640)
    for _ in range(2):
        origin.dump(target)
    assert target.stat().st_mode & 0o777 == 0o640
    origin.verify(report=tmp_path / "report.json")
    (tmp_path / "notes").write_text("orders: 3\n")
    with interlock.open(f"sqlite:///{tmp_path}/closed.db") as other:
        other.instantiate(TOGGLE)
    for name in ("notes", "report.json", "closed.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InvalidRequest, match="something else than a dump") as refusal:
            origin.dump(tmp_path / name)
        assert refusal.value.argument == "target"
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(InvalidRequest, match="something else than a report"):
        origin.verify(report=target)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_file_of_an_open_store_is_neither_target_nor_source(
    suffix: str, origin: Store, path: Path
) -> None:
    origin.instantiate(TOGGLE)
    for call in (origin.dump, origin.restore):
        with pytest.raises(InvalidRequest, match="file of a store that is open"):
            call(f"{path}{suffix}")
    assert origin.verify().ok


@pytest.mark.parametrize("place", ["missing/dump.jsonl", "directory"])
def test_a_dump_that_cannot_be_written_is_refused(
    place: str, origin: Store, tmp_path: Path
) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(StorageFailure, match=r"the dump .* cannot be written"):
        origin.dump(tmp_path / place)


def test_a_stream_that_is_full_is_told_of(origin: Store) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageFailure, match="No space left") as refusal:
        origin.dump(Full())
    assert refusal.value.kind == "full"


def test_a_dump_goes_through_streams_and_pipes(
    origin: Store, target: Store, dump: Path, tmp_path: Path
) -> None:
    stream = io.StringIO()
    origin.dump(stream)
    assert stream.getvalue() == dump.read_text()
    assert target.restore(io.StringIO(stream.getvalue())).added_entries == 37
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool, interlock.open("sqlite://") as copy:
        writing = pool.submit(origin.dump, pipe)
        assert copy.restore(pipe).added_entries == 37
        assert writing.result(30).entries == 37
        assert told(copy) == told(origin)


def test_a_stream_is_read_from_where_it_stands(dump: Path) -> None:
    stream = io.StringIO(f"something before\n{dump.read_text()}")
    stream.readline()
    with interlock.open("sqlite://") as copy:
        assert copy.restore(stream).entries == 37


def test_line_ends_do_not_matter(dump: Path) -> None:
    dump.write_bytes(dump.read_bytes().replace(b"\n", b"\r\n"))
    with interlock.open("sqlite://") as copy:
        assert copy.restore(dump).entries == 37


# What is no dump


@pytest.fixture(scope="module")
def nothing() -> Iterator[Store]:
    """A store that stays empty."""
    with interlock.open("sqlite://") as store:
        yield store
        assert store.instances() == []
        assert store.verify().ok


def refused(source: Any, copy: Store) -> InvalidRequest:
    """Restore what is no dump, and give the refusal."""
    with pytest.raises(InvalidRequest) as refusal:
        copy.restore(source)
    assert refusal.value.argument == "source"
    assert not isinstance(source, Path) or str(source) in str(refusal.value)
    assert copy.instances(limit=1) == []
    return refusal.value


HEADER = '{"interlock_dump": 2, "whole": true}\n'

BROKEN = {
    "empty": "",
    "blank": "\n\n",
    "no json": "no dump at all\n",
    "a list": "[]\n",
    "a number": "7\n",
    "null": "null\n",
    "another document": '{"ok": true}\n',
    "a report": '{"interlock_report": 1, "instance": null, "heads": [\n',
    "no number of a form": '{"interlock_dump": "1", "whole": true}\n',
    "a form that is none": '{"interlock_dump": 0, "whole": true}\n',
    "a form that is true": '{"interlock_dump": true, "whole": true}\n',
    "without what it is of": '{"interlock_dump": 1}\n',
    "with something else": '{"interlock_dump": 1, "whole": true, "more": 1}\n',
    "without an end": HEADER,
    "a line that is no json": f"{HEADER}what\n",
    "a blank line": f"{HEADER}\n",
    "a line that is a list": f"{HEADER}[1]\n",
    "an unknown kind": f'{HEADER}{{"event": {{}}}}\n',
    "two kinds in one": f'{HEADER}{{"entry": {{}}, "payload": {{}}}}\n',
    "a kind that is a list": f'{HEADER}{{"entry": []}}\n',
    "an entry of nothing": f'{HEADER}{{"entry": {{}}}}\n',
    "an instance of nothing": f'{HEADER}{{"instance": {{}}}}\n',
    "an end without counts": f'{HEADER}{{"end": {{}}}}\n',
    "nested without end": f"{HEADER}{'[' * 100_000}\n",
    "a number too long to read": f'{HEADER}{{"entry": {"9" * 9999}}}\n',
    "a declaration that is none": f'{HEADER}{{"declaration": {{"digest": "x", "text": "{{}}"}}}}\n',
    "bytes that are no text": f'{HEADER}{{"declaration": "\udcff"}}\n',
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_dump_is_refused(kind: str, nothing: Store, tmp_path: Path) -> None:
    source = tmp_path / "dump.jsonl"
    source.write_text(BROKEN[kind], encoding="utf-8", errors="surrogateescape")
    told = str(refused(source, nothing))
    assert (" line 2: " if BROKEN[kind].startswith(HEADER) else " line 1: ") in told


def test_a_dump_of_a_newer_form_is_refused(nothing: Store, tmp_path: Path) -> None:
    source = tmp_path / "dump.jsonl"
    source.write_text('{"interlock_dump": 3, "parts": 3}\n')
    assert "form 3, which is newer than this program knows" in str(refused(source, nothing))


def test_no_file_a_directory_and_bytes_are_refused(
    dump: Path, nothing: Store, tmp_path: Path
) -> None:
    assert "No such file" in str(refused(tmp_path / "nothing.jsonl", nothing))
    refused(tmp_path, nothing)
    refused("a\0b", nothing)
    with dump.open("rb") as stream:
        assert "opened for bytes" in str(refused(stream, nothing))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="nothing without end is here")
def test_a_file_without_end_is_refused(nothing: Store) -> None:
    with Path("/dev/zero").open() as stream:
        refused(stream, nothing)


def test_a_line_without_end_is_refused(dump: Path, nothing: Store, monkeypatch: Any) -> None:
    from interlock.store import dumpfile

    monkeypatch.setattr(dumpfile, "LINE_MAX", 400)
    assert "line 2: the line is too long" in str(refused(dump, nothing))


def test_a_dump_that_is_cut_at_any_line_is_refused_there(dump: Path, nothing: Store) -> None:
    lines = lines_of(dump)
    for number in range(1, len(lines)):
        whole = "".join(lines[:number])
        for cut in (whole, whole + lines[number].rstrip()[:-1], whole + lines[number][:3]):
            told = str(refused(io.StringIO(cut), nothing))
            assert f"line {number + 1}: it is cut short here" in told


def altered(value: Any) -> Iterator[Any]:
    """Give a JSON value with each of its parts altered, one at a time."""
    match value:
        case dict():
            for key, part in value.items():
                yield {name: kept for name, kept in value.items() if name != key}
                yield {**value, f"{key}x": part}
                yield {f"{name}x" if name == key else name: kept for name, kept in value.items()}
                yield from ({**value, key: other} for other in altered(part))
        case bool():
            yield not value
            yield 1
        case int():
            yield from (value + 1, -value - 1, str(value), 2**70, float(value), None, True)
        case str():
            yield from (f"{value}x", f"{value}0", value[:-1], value.upper(), f"{value}\0", 7, [])
        case _:
            raise AssertionError(f"a dump holds no {value!r}")


def test_a_line_that_was_altered_is_refused(dump: Path, nothing: Store) -> None:
    """Whatever of it was: it is named, or the line that shows it."""
    lines = lines_of(dump)
    for place, line in enumerate(lines):
        before, after = "".join(lines[:place]), "".join(lines[place + 1 :])
        for change in altered(json.loads(line)):
            text = json.dumps(change)
            if text != line.rstrip():
                refusal = refused(io.StringIO(f"{before}{text}\n{after}"), nothing)
                assert refusal.line > place  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", ["left out", "twice", "swapped", "last of all"])
def test_lines_in_another_order_are_refused(change: str, dump: Path, nothing: Store) -> None:
    lines = lines_of(dump)
    for place in range(len(lines) - 1):
        some = lines[:]
        line = some.pop(place)
        if change == "twice":
            some[place:place] = [line, line]
        elif change == "swapped":
            some.insert(place + 1, line)
        elif change == "last of all":
            some.append(line)
        refused(io.StringIO("".join(some)), nothing)


def test_a_line_of_a_stream_is_checked_before_it_is_written(dump: Path, monkeypatch: Any) -> None:
    """What came before stays, and the dump as it was goes on from there."""
    monkeypatch.setattr(restore, "BATCH_ROWS", 4)

    class Pipe(io.StringIO):
        def seekable(self) -> bool:
            return False

    lines = lines_of(dump)
    for place in range(1, len(lines)):
        line = lines[place].replace('": "', '": "x', 1).replace('": 3', '": 4')
        if line == lines[place]:
            continue
        with interlock.open("sqlite://") as copy:
            with pytest.raises(InvalidRequest):
                copy.restore(Pipe("".join([*lines[:place], line, *lines[place + 1 :]])))
            assert copy.verify().ok
            before = sum(one.version - 1 for one in copy.instances())
            assert copy.restore(dump).added_entries == 37 - before
            stream = io.StringIO()
            copy.dump(stream)
            assert stream.getvalue() == dump.read_text()


# What cannot be dumped


TAMPERS: dict[str, Callable[[File], object]] = {
    "an entry": lambda file: file.set_entry("long", 12, actor_ref="mallory"),
    "an entry gone": lambda file: file.remove_entries("long", 12, 12),
    "a tail gone": lambda file: file.remove_entries("long", 20),
    "a tail and the head": lambda file: file.set_instance("long", next_sequence_number=20),
    "a genesis": lambda file: file.set_instance("long", actor_ref="mallory"),
    "a state": lambda file: file.set_instance("long", current_state="on "),
    "a root": lambda file: file.set_instance("long", root="elsewhere"),
    "a head": lambda file: file.set_instance("long", head_digest=b"x" * 32),
    "a payload": lambda file: file.set_payload("long", 3, content=b'"other"'),
    "half a payload": lambda file: file.set_payload("long", 3, salt=None),
    "a payload gone": lambda file: file.execute(
        "DELETE FROM payloads WHERE id = ?", file.payload("long", 3)["id"]
    ),
    "metadata": lambda file: file.set_payload("long", content=b"null"),
    "a declaration": lambda file: file.edit_declaration("long", "off", "of"),
    "a declaration gone": lambda file: file.execute(
        "DELETE FROM declarations WHERE digest = ?", file.declaration("long")["digest"]
    ),
}


@pytest.mark.parametrize("tamper", TAMPERS)
def test_an_unsound_record_is_not_dumped(tamper: str, path: Path, tmp_path: Path) -> None:
    with tampered(path, TAMPERS[tamper]) as store:
        with pytest.raises(StorageFailure, match="run `verify`") as refusal:
            store.dump(tmp_path / "dump.jsonl")
        assert refusal.value.kind == "damaged"
        assert not (tmp_path / "dump.jsonl").exists()
        sound = [one.id for one in store.instances() if one.subject_ref == "batch-2"]
        assert store.dump(tmp_path / "dump.jsonl", sound).instances == 1
