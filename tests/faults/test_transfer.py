"""A restore that breaks off anywhere is run again, and then it is whole."""

import io
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import interlock
from interlock import StorageFailure
from interlock.store import restore, transfer
from interlock.store.plan import CommitUncertain, Transaction
from interlock.store.store import Store
from tests.support import processes
from tests.support.copies import dumped, told
from tests.support.faulty import CODES, Faults, faulty_store
from tests.support.postgres import database
from tests.support.records import breaches
from tests.support.tampering import copy_healthy

ENTRIES = 37


@pytest.fixture
def origin(path: Path) -> Iterator[Store]:
    copy_healthy(path)
    with interlock.open(f"sqlite:///{path}") as store:
        yield store


@pytest.fixture
def dump(origin: Store, tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setattr(restore, "BATCH_ROWS", 7)
    origin.dump(tmp_path / "dump.jsonl")
    return tmp_path / "dump.jsonl"


def text_of(store: Store) -> str:
    stream = io.StringIO()
    store.dump(stream)
    return stream.getvalue()


def statements_of(dump: Path) -> int:
    """Count the statements of a restore."""
    faults = Faults()
    with faulty_store(None, faults) as copy:
        before = len(faults.log)
        copy.restore(dump)
        return len(faults.log) - before


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("error", ["io", "full", "interrupt"])
def test_whichever_statement_fails(error: str, after: bool, dump: Path) -> None:
    """Before the statement or after it; a commit whose answer is lost is one of them."""
    failed = 0
    for number in range(1, statements_of(dump) + 1):
        faults = Faults()
        with faulty_store(None, faults) as copy:
            if error == "interrupt":
                faults.arm_at(number, KeyboardInterrupt(), after=after)
            else:
                faults.at(number, CODES[error], after=after)
            try:
                read = copy.restore(dump)
            except (StorageFailure, KeyboardInterrupt):
                failed += 1
                assert breaches(copy._database._writer) == []  # type: ignore[attr-defined]
            else:
                assert (read.added_instances, read.added_entries) == (12, ENTRIES)
            faults.clear()
            read = copy.restore(dump)
            assert read[:4] == (3, 12, ENTRIES, 16)
            assert text_of(copy) == dump.read_text()
            assert copy.verify().ok
    assert failed > 20


def test_two_restore_the_same(dump: Path, origin: Store, path: Path) -> None:
    """Two restores of one dump, each between two transactions of the other."""
    place = path.with_name("copy.db")
    with (
        interlock.open(f"sqlite:///{place}") as copy,
        interlock.open(f"sqlite:///{place}") as other,
    ):
        added = []
        pages = iter(range(100))

        def meanwhile(page: transfer.Page) -> None:
            if page.stage == "restoring" and next(pages) == 1:
                added.append(other.restore(dump).added_entries)

        read = copy.restore(dump, on_page=meanwhile)
        assert read.added_entries + added[0] == ENTRIES
        assert told(copy) == told(origin)
        assert copy.verify().ok


CHILD = """
import os, sys
import interlock
from interlock.store import restore

restore.BATCH_ROWS = 7
path, dump, batches = sys.argv[1:]
left = int(batches)

def tell(page):
    global left
    if page.stage == "restoring":
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)

with interlock.open(f"sqlite:///{path}") as store:
    store.restore(dump, on_page=tell)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_restore_that_is_killed_goes_on(dump: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy.db"
    reached = [0]
    while reached[-1] < ENTRIES:
        child = processes.start(CHILD, place, dump, len(reached))
        child.communicate(timeout=60)
        with interlock.open(f"sqlite:///{place}") as copy:
            assert copy.verify().ok
            reached.append(sum(one.version - 1 for one in copy.instances()))
            assert reached[-1] > reached[-2]
    assert len(reached) > 3
    with interlock.open(f"sqlite:///{place}") as copy:
        assert copy.restore(dump)[4:6] == (0, 0)
        assert dumped(copy, tmp_path) == dump.read_bytes()


@pytest.mark.parametrize("number", range(1, 30))
def test_a_dump_that_fails_leaves_nothing(number: int, path: Path, tmp_path: Path) -> None:
    copy_healthy(path)
    target = tmp_path / "dump.jsonl"
    target.write_text('{"interlock_dump": 1, "whole": true}\n')
    faults = Faults()
    with faulty_store(path, faults) as store:
        faults.at(number, CODES["io"])
        try:
            counts = store.dump(target)
        except StorageFailure:
            assert target.read_text() == '{"interlock_dump": 1, "whole": true}\n'
        else:
            assert counts.entries == ENTRIES
        assert not list(tmp_path.glob(".*"))


# On a server


class Failing:
    """A database whose transactions fail as they are told to, one after another.

    Args:
        faults: `done` is a commit whose answer is lost, `lost` one that did not happen; others are
            the kinds of failures.
        patience: seconds, see `Patience`.
    """

    def __init__(self, store: Store, faults: list[str], patience: float) -> None:
        self.database = store._database
        self.faults = faults
        self.patience = patience

    def run(self, transaction: Transaction) -> Any:
        if not self.faults:
            return self.database.run(transaction)
        fault = self.faults.pop(0)
        away = StorageFailure("the server is away", kind="unreachable", retryable=True)
        if fault == "done":
            raise CommitUncertain(away, self.database.run(transaction), lost=True)
        if fault == "lost":
            raise CommitUncertain(away, restore._Added(1, 1, None), lost=True)
        raise StorageFailure("it fails", kind=fault, retryable=fault == "unreachable")


@pytest.mark.parametrize(
    ("patience", "faults"),
    [
        (9.0, ["done"]),
        (9.0, ["lost"]),
        (9.0, ["lost", "lost", "unreachable", "done", "unreachable"]),
        (9.0, ["unreachable", "refused", "unreachable", "done"]),
        (0.0, ["done"]),
        (0.0, ["lost"]),
        (0.0, ["refused"]),
    ],
)
def test_a_restore_finds_out_what_was_committed(
    patience: float, faults: list[str], dump: Path
) -> None:
    with interlock.open("sqlite://") as copy:
        read = restore.restore(Failing(copy, faults, patience), "", dump, on_page=lambda page: None)
        assert (read.added_instances, read.added_entries) == (12, ENTRIES)
        assert text_of(copy) == dump.read_text()


@pytest.mark.parametrize("faults", [["lost"] * 2, ["refused"] * 2, ["io"], ["lost", "full"]])
def test_a_restore_gives_up(faults: list[str], dump: Path) -> None:
    with interlock.open("sqlite://") as copy:
        failing = Failing(copy, faults, 0.0)
        with pytest.raises(StorageFailure):
            restore.restore(failing, "", dump, on_page=lambda page: None)
        assert (failing.faults, copy.instances()) == ([], [])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    with database() as url:
        yield url


def cut_off(url: str) -> None:
    """End every connection of ours to a database; others are the server's own, such as a vacuum."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'interlock' AND datname = current_database()"
        )


def test_a_restore_outlives_lost_connections(dump: Path, server: str) -> None:
    with interlock.open(server) as copy:
        read = copy.restore(dump, on_page=lambda page: cut_off(server))
        assert (read.added_instances, read.added_entries) == (12, ENTRIES)
        assert text_of(copy) == dump.read_text()


def test_two_restore_the_same_on_a_server(dump: Path, server: str) -> None:
    """Each is in the way of the other: what one writes, the other finds."""
    with interlock.open(server) as copy, ThreadPoolExecutor(4) as pool:
        reads = [*pool.map(copy.restore, [dump] * 4)]
        assert sum(read.added_entries for read in reads) == ENTRIES
        assert sum(read.added_instances for read in reads) == 12
        assert text_of(copy) == dump.read_text()
        assert copy.verify().ok
