"""Faults that no test has to inject: full disks, files without permission, files that are no store.

Right is always a `StorageFailure` with a clear sentence, nothing changed, and a store that works
again once the cause is gone.
"""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

import interlock
from interlock import StorageFailure
from interlock.store.sqlite.database import Database, Settings
from interlock.store.store import Store
from tests.support import processes
from tests.support.faulty import CODES, Faults, connection_class
from tests.support.machines import BATCH, MACHINES, TOGGLE
from tests.support.records import breaches, content_of
from tests.support.together import outcome_of

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def sound(path: Path, entries: dict[str, int]) -> None:
    """The records hold, and each instance has so many entries."""
    with closing(sqlite3.connect(path)) as connection:
        assert breaches(connection) == []
        counted = "SELECT instance_id, count(*) FROM history GROUP BY 1"
        assert dict(connection.execute(counted).fetchall()) == entries
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Full disks


def test_a_file_that_may_not_grow_by_pages(path: Path) -> None:
    database = Database(Settings(path))
    with Store(database) as store:
        id = store.instantiate(TOGGLE)
        writer = database._writer
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 3}")
        outcome, done = outcome_of(partial(store.fire, id, "go", reason="x" * 2000)), 0
        while isinstance(outcome, str):
            outcome, done = outcome_of(partial(store.fire, id, "go", reason="x" * 2000)), done + 1
        assert isinstance(outcome, StorageFailure)
        assert "the disk is full" in str(outcome)
        assert outcome.retryable
        assert len(store.history(id)) == done
        assert store.current(id) == ("on" if done % 2 else "off")
        writer.execute(f"PRAGMA max_page_count = {pages * 100}")
        store.fire(id, "go", reason="x" * 2000)
    sound(path, {id: done + 1})


LIMITED = """
import os, resource, signal, sys
import interlock
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, declaration = sys.argv[1], {TOGGLE!r}
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(20_000)
try:
    interlock.open("sqlite:///" + path)
except interlock.StorageFailure as failure:
    print("new", failure)
limit(resource.RLIM_INFINITY)
with interlock.open("sqlite:///" + path) as store:
    id = store.instantiate(declaration)
    limit(os.path.getsize(path + "-wal") + 50_000)
    done = 0
    try:
        while done < 1000:
            store.fire(id, "go", reason="x" * 1000)
            done += 1
    except interlock.StorageFailure as failure:
        print("fire", failure)
    refused = 0
    for _ in range(3):
        try:
            store.fire_many([interlock.Fire(id, "go", reason="x" * 9000)] * 5)
        except interlock.StorageFailure:
            refused += 1
    assert len(store.history(id)) == done, (len(store.history(id)), done)
    limit(resource.RLIM_INFINITY)
    store.fire(id, "go")
    print("done", id, done, refused)
"""


def test_a_file_size_limit(path: Path) -> None:
    """RLIMIT_FSIZE makes every write beyond it fail, as a full quota does."""
    pytest.importorskip("resource")
    lines = processes.run(LIMITED.replace("{TOGGLE!r}", repr(TOGGLE)), path).splitlines()
    assert [line.split()[0] for line in lines] == ["new", "fire", "done"]
    _, id, done, refused = lines[-1].split()
    assert int(done) > 0
    assert int(refused) == 3
    sound(path, {id: int(done) + 1})


FULL = """
import os, shutil, sys
import interlock
directory, declaration = sys.argv[1], {TOGGLE!r}
path = os.path.join(directory, "store.db")
with interlock.open("sqlite:///" + path) as store:
    id = store.instantiate(declaration)
    done = 0
    try:
        while done < 5000:
            store.fire(id, "go", reason="x" * 4000)
            done += 1
    except interlock.StorageFailure as failure:
        print("full", failure.retryable, failure)
    for _ in range(3):
        try:
            store.instantiate(declaration, instance_metadata=["x" * 100_000])
        except interlock.StorageFailure:
            pass
        else:
            raise AssertionError("there was room")
    assert len(store.history(id)) == done
    os.remove(os.path.join(directory, "ballast"))
    store.fire(id, "go")
    assert len(store.history(id)) == done + 1
shutil.copy(path, sys.argv[2])
print("done", id, done)
"""


@pytest.mark.skipif(not AS_ROOT, reason="mounting a small file system needs root")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real one, of 2 MB, in a mount namespace of the test's own."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    if not shutil.which("unshare"):
        pytest.skip("there is no `unshare` to mount with")
    mount = f"mount -t tmpfs -o size=2m tmpfs '{mounted}'"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this system does not let tests mount a file system")
    code = tmp_path / "full.py"
    code.write_text(FULL.replace("{TOGGLE!r}", repr(TOGGLE)))
    copy = tmp_path / "copy.db"
    script = (
        f"{mount} && head -c 500000 /dev/zero > '{mounted}/ballast'"
        f" && exec \"$PYTHON\" '{code}' '{mounted}' '{copy}'"
    )
    out = processes.run_shell(["unshare", "-m", "sh", "-c", script])
    full, done = out.splitlines()
    assert full.startswith("full True")
    assert "disk is full" in full
    _, id, count = done.split()
    sound(copy, {id: int(count) + 1})


# Permissions


UNPERMITTED = """
import os, sys
import interlock
path, mode = sys.argv[1], sys.argv[2]
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
def said(call):
    try:
        return call()
    except interlock.StorageFailure as failure:
        return f"refused: {failure}"
def all_of_it():
    with interlock.open("sqlite:///" + path + mode) as store:
        print("current", said(lambda: [row.state for row in store.instances()]))
        id = store.instances()[0].id
        print("fire", said(lambda: store.fire(id, "go")))
    return "opened"
print("open", said(all_of_it))
"""


@pytest.fixture
def readable() -> Iterator[Path]:
    """A closed store in a directory that everybody may read, which each test then forbids."""
    with tempfile.TemporaryDirectory() as directory:  # one that other users can reach
        Path(directory).chmod(0o755)
        path = Path(directory, "store.db")
        with interlock.open(url(path)) as store:
            store.instantiate(TOGGLE)
        yield path
        Path(directory).chmod(0o755)


def test_a_file_that_may_not_be_written(readable: Path) -> None:
    readable.chmod(0o444)
    readable.parent.chmod(0o777)
    before = content_of(readable)
    out = processes.run(UNPERMITTED, readable, "")
    assert "read-only" in out, out
    assert "fire on" not in out
    assert content_of(readable) == before


def test_a_directory_that_may_not_be_written(readable: Path) -> None:
    readable.chmod(0o666)
    readable.parent.chmod(0o555)
    before = readable.read_bytes()
    out = processes.run(UNPERMITTED, readable, "")
    assert "open refused" in out or "fire refused" in out, out
    assert "read-only" in out or "permission" in out or "cannot be opened" in out, out
    assert readable.read_bytes() == before
    assert list(readable.parent.iterdir()) == [readable]


def test_a_new_file_where_none_may_be_made(readable: Path) -> None:
    readable.parent.chmod(0o555)
    out = processes.run(UNPERMITTED, readable.with_name("new.db"), "")
    assert "open refused" in out, out
    assert "new.db" in out
    assert list(readable.parent.iterdir()) == [readable]


def test_reading_a_file_that_may_not_be_written(readable: Path) -> None:
    """What `mode=ro` is for."""
    readable.chmod(0o444)
    readable.parent.chmod(0o777)
    out = processes.run(UNPERMITTED, readable, "?mode=ro")
    assert "current ['off']" in out, out
    assert "fire refused" in out
    assert "read-only" in out


# Files that are no store


@pytest.mark.parametrize(
    "found",
    [
        b"these are the minutes of the meeting\n",
        b"SQLite format 3",
        b"SQLite format 3\0",
        b"SQLite format 3\0" + bytes(84),
        b"SQLite format 3\0" + b"\xff" * 2000,
        bytes(4096),
        Random(7).randbytes(8192),
        "states: [a]\n".encode("utf-16"),
    ],
    ids=["text", "magic", "magic+", "header", "junk", "zeros", "noise", "utf-16"],
)
def test_a_file_that_is_something_else_is_refused_and_left_alone(path: Path, found: bytes) -> None:
    path.write_bytes(found)
    for suffix in ("", "?mode=rw", "?mode=ro"):
        with pytest.raises(StorageFailure) as caught:
            interlock.open(url(path) + suffix)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == found
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with interlock.open(url(path)) as store:
        id = store.instantiate(TOGGLE)
        assert store.fire(id, "go") == "on"
    sound(path, {id: 1})


@pytest.mark.parametrize("table", ["history", "History", "INSTANCES", "payloads", "start_keys"])
def test_a_file_of_another_program_is_refused_and_left_alone(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {table} (url TEXT, visited INTEGER)")
        connection.execute(f"INSERT INTO {table} VALUES ('https://example.org', 1)")
    before = path.read_bytes()
    with pytest.raises(StorageFailure) as caught:
        interlock.open(url(path))
    assert table.lower() in str(caught.value).lower()
    assert path.read_bytes() == before, "the file of a stranger was changed"


@pytest.mark.parametrize("kind", ["VIEW", "INDEX", "TRIGGER"])
def test_a_file_of_another_program_with_other_things_of_our_names(path: Path, kind: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE visits (url TEXT)")
        connection.execute(
            {
                "VIEW": "CREATE VIEW instance_records AS SELECT 1",
                "INDEX": "CREATE INDEX instances_by_subject ON visits (url)",
                "TRIGGER": "CREATE TRIGGER history_insert BEFORE INSERT ON visits"
                " BEGIN SELECT 1; END",
            }[kind]
        )
    before = path.read_bytes()
    with pytest.raises(StorageFailure):
        interlock.open(url(path))
    assert path.read_bytes() == before, "the file of a stranger was changed"


def test_a_store_beside_the_tables_of_another_program(path: Path) -> None:
    """Tables called otherwise are in nobody's way, and stay as they are."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE visits (url TEXT)")
        connection.execute("INSERT INTO visits VALUES ('https://example.org')")
    machine = MACHINES["unicode-names"]
    with interlock.open(url(path)) as store:
        id = store.instantiate(machine)
        for state in machine["states"]:
            store.fire(id, state)
        assert [entry.from_state for entry in store.history(id)] == machine["states"]
        assert store.read_declaration(id) == machine
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM visits").fetchall() == [("https://example.org",)]
        assert breaches(connection) == []


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_file_whose_text_is_not_utf_8_is_refused_and_left_alone(
    path: Path, encoding: str
) -> None:
    """SQLite would change some characters on the way; names are kept byte for byte."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE visits (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(StorageFailure, match="UTF-8"):
        interlock.open(url(path))
    assert path.read_bytes() == before


def test_a_ledger_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE interlock_migrations (id TEXT)")
    before = path.read_bytes()
    with pytest.raises(StorageFailure):
        interlock.open(url(path))
    assert path.read_bytes() == before


def test_a_store_that_is_newer_than_the_program(path: Path) -> None:
    with interlock.open(url(path)) as store:
        store.instantiate(TOGGLE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER interlock_migrations_insert")  # as a migration would
        connection.execute("INSERT INTO interlock_migrations VALUES (99, '0099_future', 'now')")
    before = content_of(path)
    for suffix in ("", "?mode=rw", "?mode=ro"):
        with pytest.raises(StorageFailure, match=r"newer than this program.*99.*upgrade interlock"):
            interlock.open(url(path) + suffix)
    assert content_of(path) == before


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match="is a directory"):
        interlock.open(url(tmp_path))


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match="no directory"):
        interlock.open(url(tmp_path / "missing" / "store.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_directory_should_be(path: Path) -> None:
    path.write_text("x")
    with pytest.raises(StorageFailure):
        interlock.open(url(path / "store.db"))


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_file_that_is_missing_is_not_made_when_that_was_not_asked(path: Path, mode: str) -> None:
    with pytest.raises(StorageFailure, match="does not exist"):
        interlock.open(f"{url(path)}?mode={mode}")
    assert not path.exists()


def test_a_database_that_was_cut(path: Path) -> None:
    """At every page and in the middle of some: what was lost is said, never guessed."""
    with interlock.open(url(path)) as store:
        ids = [store.instantiate(BATCH, instance_metadata=["x" * 500]) for _ in range(30)]
        for id in ids:
            store.fire(id, "begin-testing", reason="y" * 500)
        whole = {id: store.history(id) for id in ids}
    content = path.read_bytes()
    cuts = [*range(4096, len(content), 4096), 50, 99, 100, 101, 511, 512, 4095, 6000, 10_000]
    refused: list[str] = []
    for cut in cuts:
        path.write_bytes(content[:cut])
        try:
            with interlock.open(url(path)) as store:
                for id in ids:
                    assert store.history(id) == whole[id]
                    assert store.current(id) == "testing"
                    store.fire(id, "reject-batch")
        except StorageFailure as failure:
            refused.append(str(failure))
        for left in path.parent.iterdir():
            left.unlink()
    assert len(refused) == len(cuts)
    assert all(str(path) in said or "verify" in said for said in refused)


def test_a_schema_whose_text_is_no_text_is_refused(path: Path) -> None:
    with interlock.open(url(path)) as store:
        store.instantiate(BATCH)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE mine (word TEXT)")
        connection.execute("CREATE INDEX own ON mine (word)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = 'own'")
    try:
        with interlock.open(url(path)) as store:
            store.instances()
    except StorageFailure:
        pass


def test_a_database_with_bytes_changed_answers_or_refuses(path: Path) -> None:
    """Flipped bits may change what is read, but never into an error that is not ours."""
    with interlock.open(url(path)) as store:
        id = store.instantiate(BATCH, "ann", "batch", {"a": [1, 2, 3]})
        store.fire(id, "begin-testing", reason="why")
        store.fire(id, "release", guard_satisfied=True)
    content, random = bytearray(path.read_bytes()), Random(20260501)
    used = [place for place, byte in enumerate(content) if byte]
    for _ in range(400):
        place, bit = random.choice(used), 1 << random.randrange(8)
        content[place] ^= bit
        path.write_bytes(content)
        content[place] ^= bit
        try:
            with interlock.open(url(path)) as store:
                for ask in (
                    lambda: store.current(id),
                    lambda: store.history(id),
                    lambda: store.read_declaration(id),
                    lambda: store.snapshot(id),
                    lambda: store.instances(),
                    lambda: store.fire(id, "begin-testing"),
                ):
                    try:
                        ask()
                    except interlock.Rejected:
                        pass
                    except Exception as error:
                        error.add_note(f"byte {place}, bit {bit}")
                        raise
        except StorageFailure:
            pass
        for left in path.parent.iterdir():
            left.unlink()


# Others at it


def test_a_database_that_another_keeps_locked(path: Path) -> None:
    with interlock.open(f"{url(path)}?busy_ms=0") as store:
        id = store.instantiate(TOGGLE)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageFailure, match="locked") as caught:
                store.fire(id, "go")
            assert caught.value.retryable
            with pytest.raises(StorageFailure, match="locked"):
                store.instantiate(TOGGLE)
            assert store.current(id) == "off"
            assert store.history(id) == []
            other.execute("ROLLBACK")
        assert store.fire(id, "go") == "on"
    sound(path, {id: 1})


def test_a_database_removed_while_it_is_open_is_no_crash(path: Path) -> None:
    """Somebody deletes the file under a running program: what happens is the system's to say."""
    with interlock.open(url(path)) as store:
        id = store.instantiate(TOGGLE)
        for file in path.parent.iterdir():
            file.unlink()
        with suppress(interlock.Rejected):
            store.fire(id, "go")


# Migrations that are broken off


@pytest.mark.parametrize("code", ["io", "busy"])
def test_a_migration_that_fails_at_any_statement(tmp_path: Path, code: str) -> None:
    for number in range(1, 200):
        path = tmp_path / f"{number}.db"
        faults = Faults()
        faults.at(number, CODES[code])
        settings = Settings(path, busy_ms=0)
        try:
            database = Database(settings, factory=connection_class(faults))
        except StorageFailure:
            with interlock.open(url(path)) as store:
                id = store.instantiate(TOGGLE)
                store.fire(id, "go")
            sound(path, {id: 1})
        else:
            database.close()
            if not faults.raised:
                assert number > 20
                return
    pytest.fail("there is no end to the statements")


KILLED = """
import os, signal, sys
from pathlib import Path
from interlock.store.sqlite.database import Database, Settings
from tests.support.faulty import Faults, connection_class

class Deadly(Faults):
    def __init__(self, number, after):
        super().__init__()
        self.number, self.after = number, after

    def run(self, sql, execute):
        self.log.append(sql)
        if len(self.log) == self.number:
            if self.after:
                execute()
            os.kill(os.getpid(), signal.SIGKILL)
        return execute()

directory = Path(sys.argv[1])
for number in range(1, 200):
    after = number % 2
    child = os.fork()
    if child == 0:
        faults = Deadly(number, after)
        Database(Settings(directory / f"{number}-{after}.db"), factory=connection_class(faults))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(number, after, "killed" if os.WIFSIGNALED(status) else "done")
    if not os.WIFSIGNALED(status):
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_a_migration_that_is_killed_at_any_statement(tmp_path: Path) -> None:
    lines = processes.run(KILLED, tmp_path).splitlines()
    assert lines[-1].endswith("done")
    assert len(lines) > 20
    for line in lines:
        number, after, _ = line.split()
        path = tmp_path / f"{number}-{after}.db"
        with interlock.open(url(path)) as store:
            id = store.instantiate(TOGGLE)
            store.fire(id, "go")
        sound(path, {id: 1})


def test_a_migration_interrupted_at_any_statement_closes_its_file(tmp_path: Path) -> None:
    for number in range(1, 200):
        path = tmp_path / f"{number}.db"
        faults = Faults()
        faults.arm_at(number, KeyboardInterrupt())
        try:
            Database(Settings(path), factory=connection_class(faults)).close()
        except KeyboardInterrupt:
            with interlock.open(url(path)) as store:
                store.fire(store.instantiate(TOGGLE), "go")
        else:
            assert not faults.raised
            return
