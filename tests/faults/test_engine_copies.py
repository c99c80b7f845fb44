"""Copies of what engines wrote: dumped anywhere, restored anywhere, equal in all that is told."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import interlock
from interlock.store import restore as restoring
from interlock.store import transfer
from interlock.store.store import Store
from tests.support import orders
from tests.support.copies import KINDS, destroy, dumped, new_store, populate, report, told


def fill(store: Store) -> dict[str, str]:
    names = orders.populate(store)
    orders.postpone(store, names["open"])
    orders.add_idle_definition(store)
    destroy(store, names["closed"], f"{store.history(names['closed'])[0].transition_id}/0")
    return names


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[Store]:
    with new_store("memory", tmp_path) as store:
        fill(store)
        yield store


@pytest.mark.parametrize("sizes", [(1000, 500), (3, 5)])
@pytest.mark.parametrize("via", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_a_store_goes_anywhere_and_comes_back_equal(
    first: str, via: str, sizes: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAGE_ROWS", sizes[0])
    monkeypatch.setattr(restoring, "BATCH_ROWS", sizes[1])
    folders = [tmp_path / name for name in ("first", "via", "back")]
    with ExitStack() as stack:
        stores = []
        for folder, kind in zip(folders, (first, via, first), strict=True):
            folder.mkdir()
            stores.append(stack.enter_context(new_store(kind, folder)))
        names = fill(stores[0])
        counts = stores[0].dump(folders[0] / "dump.jsonl")
        assert (counts.definitions, counts.instances, counts.timers) == (2, 5, 3)
        assert counts.changes > 200
        for one, other, folder in zip(stores, stores[1:], folders, strict=False):
            one.dump(folder / "dump.jsonl")
            read = other.restore(folder / "dump.jsonl")
            assert (*read[:4], *read[6:]) == counts
            assert (read.added_instances, read.added_entries) == (counts.instances, counts.entries)
        told_first, data_first = told(stores[0]), orders.data_told(stores[0])
        report_first = report(stores[0], folders[0])
        for store, folder in zip(stores, folders, strict=True):
            assert told(store) == told_first
            assert orders.data_told(store) == data_first
            assert report(store, folder) == report_first
            assert dumped(store, folder) == (folders[0] / "dump.jsonl").read_bytes()
            handle = orders.engine_of(store).get(names["round"])
            assert handle.send("again") == "open"
            assert store.verify().ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_broke_off_goes_on(
    origin: Store, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in between is sound: an entry has its changes, an end its timers."""
    origin.dump(tmp_path / "dump.jsonl")
    monkeypatch.setattr(restoring, "BATCH_ROWS", 4)

    class BrokeOff(Exception):
        pass

    with new_store(kind, tmp_path) as store:
        for breaks_at in (1, 3, 8, 20, 10**9):
            pages = 0

            def listen(page: transfer.Page, most: int = breaks_at) -> None:
                nonlocal pages
                pages += page.stage == "restoring"
                if pages > most:
                    raise BrokeOff

            try:
                store.restore(tmp_path / "dump.jsonl", on_page=listen)
            except BrokeOff:
                assert store.verify().ok
        assert orders.data_told(store) == orders.data_told(origin)
        assert dumped(store, tmp_path) == (tmp_path / "dump.jsonl").read_bytes()


def test_timers_that_came_and_went_since_are_left_alone(origin: Store, tmp_path: Path) -> None:
    """What the store knows already is newer than the dump."""
    origin.dump(tmp_path / "dump.jsonl")
    with new_store("file", tmp_path) as store:
        store.restore(tmp_path / "dump.jsonl")
        before = orders.data_told(store)
        (opened,) = (one for one in before if one[2] and one[2][0].failures)
        orders.postpone(store, opened[0])
        later = orders.data_told(store)
        assert later != before
        store.restore(tmp_path / "dump.jsonl")
        assert orders.data_told(store) == later


def test_a_definition_of_another_meaning_is_refused(origin: Store, tmp_path: Path) -> None:
    origin.dump(tmp_path / "dump.jsonl")
    with new_store("memory", tmp_path) as store:
        other = interlock.loads(
            "{machine: order, version: 1, initial: a, states: {a: {on: {x: b}}, b: {final: true}}}"
        )
        interlock.Engine(store).start(other)
        with pytest.raises(interlock.DefinitionChanged, match="means something else in this store"):
            store.restore(tmp_path / "dump.jsonl")
        assert store.verify().ok
        assert len(store.instances()) == 1


def test_a_dump_of_the_form_before_is_restored(tmp_path: Path) -> None:
    """Form 1 knew no engines; its end counts less."""
    with new_store("memory", tmp_path) as store:
        populate(store)
        lines = dumped(store, tmp_path).decode().splitlines(keepends=True)
        before = told(store)
    lines[0] = lines[0].replace('"interlock_dump": 2', '"interlock_dump": 1')
    end = json.loads(lines[-1])["end"]
    for name in ("definitions", "changes", "timers"):
        assert end.pop(name) == 0
    end["sha256"] = hashlib.sha256("".join(lines[:-1]).encode()).hexdigest()
    lines[-1] = json.dumps({"end": end}) + "\n"
    (tmp_path / "old.jsonl").write_text("".join(lines))
    with interlock.open("sqlite://") as store:
        store.restore(tmp_path / "old.jsonl")
        assert told(store) == before
        assert store.verify().ok


ALTERED = {
    "a definition's text": ('"definition"', '\\"order\\"', '\\"other\\"', "text was altered"),
    "a change left out": ('"kind": "patch"', None, None, "nothing names|missing|cut|not that"),
    "a change altered": ('"kind": "patch"', '"kind": "patch"', '"kind": "event"', "was altered"),
    "a payload altered": ("reserved", "reserved", "stolen", "digest differs"),
    "a timer of no entry": ('"timer"', '"sequence_number": 1', '"sequence_number": 99', "no entry"),
    "the definition left out": ('{"definition"', None, None, "definition nowhere before it"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_what_was_altered_in_a_dump_is_refused(name: str, origin: Store, tmp_path: Path) -> None:
    mark, old, new, said = ALTERED[name]
    origin.dump(tmp_path / "dump.jsonl")
    lines = (tmp_path / "dump.jsonl").read_text().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if mark in line)
    if old is None:
        del lines[place]
    else:
        assert old in lines[place]
        lines[place] = lines[place].replace(old, new or "", 1)
    (tmp_path / "odd.jsonl").write_text("".join(lines))
    with new_store("memory", tmp_path) as store:
        with pytest.raises(interlock.InvalidRequest, match=said):
            store.restore(tmp_path / "odd.jsonl")
        assert store.instances() == []
