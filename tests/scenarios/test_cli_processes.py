"""The command line as a process: pipes closed early, interrupts, terminals, locales, full disks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import interlock
from tests.support.machines import BATCH, TOGGLE

PIPE = subprocess.PIPE
STORE = {"INTERLOCK_STORE": "sqlite:///store.db"}
PROGRAM = [sys.executable, "-m", "interlock"]
LOST = (
    "interlock: output-lost: what was asked for is done, "
    "but its answer cannot be written to stdout: no space left on device\n"
)
FULL = Path("/dev/full")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "batch.json").write_text(json.dumps(BATCH))
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a command beside the test, its output in pipes unless otherwise said."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        *arguments: str, env: dict[str, str] | None = None, stdout: Any = PIPE, stderr: Any = PIPE
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=folder,
            env={**os.environ, **STORE, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def finish(start: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., tuple[int, str, str]]:
    def finish(*arguments: str, **options: object) -> tuple[int, str, str]:
        process = start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    return finish


@pytest.fixture
def many(folder: Path) -> str:
    """A store with three thousand instances, the first of which has three thousand entries."""
    with interlock.open(f"sqlite:///{folder}/store.db?synchronous=normal") as store:
        ids = store.instantiate_each(TOGGLE, [interlock.Birth(subject_ref="S")] * 3000)
        first = str(ids[0])
        store.fire_many([interlock.Fire(first, "go")] * 3000)
    return first


@pytest.mark.parametrize("command", ["list", "history", "replay"])
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_pipe_that_is_closed_early(
    start: Callable[..., subprocess.Popen[bytes]], many: str, command: str, how: list[str]
) -> None:
    process = start(command, *([] if command == "list" else [many]), *how)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141


def test_help_into_a_closed_pipe(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = start("--help", stdout=writer)
        assert process.wait(timeout=60) == 141
    finally:
        os.close(writer)


def test_a_refusal_into_a_closed_pipe_is_a_refusal_still(
    start: Callable[..., subprocess.Popen[bytes]], many: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = start("fire", many, "nosuch", stderr=writer)
        assert process.wait(timeout=60) == 1
    finally:
        os.close(writer)


def test_streams_that_are_closed(
    finish: Callable[..., tuple[int, str, str]], folder: Path, many: str
) -> None:
    script = '"$@" >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, "current", many],
        cwd=folder,
        env={**os.environ, **STORE},
        check=False,
    )
    assert done.returncode == 74
    done = subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, "current", "nosuch"],
        cwd=folder,
        env={**os.environ, **STORE},
        check=False,
    )
    assert done.returncode == 1


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_output_that_cannot_be_written(
    finish: Callable[..., tuple[int, str, str]], many: str
) -> None:
    with FULL.open("wb") as full:
        for command in (("current", many), ("list",), ("verify",), ("--help",)):
            code, _, err = finish(*command, stdout=full)
            assert (code, err) == (74, LOST)
        code, _, _ = finish("fire", many, "nosuch", stderr=full)
        assert code == 1


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_fire_whose_answer_cannot_be_written_is_no_storage_failure(
    finish: Callable[..., tuple[int, str, str]], many: str
) -> None:
    """It is done: whoever takes it for refused would fire again."""
    before = finish("current", many)[1]
    with FULL.open("wb") as full:
        assert finish("fire", many, "go", stdout=full)[::2] == (74, LOST)
    assert finish("current", many)[1] != before


@pytest.mark.slow
def test_an_interrupt(
    start: Callable[..., subprocess.Popen[bytes]],
    finish: Callable[..., tuple[int, str, str]],
    folder: Path,
) -> None:
    rows = "".join(f"C-{number},begin-testing\n" for number in range(5000))
    (folder / "log.csv").write_text(f"case,action\n{rows}")
    command = ("ingest", "log.csv", "--machine", "batch.json")
    process = start(*command, "--batch", "1")
    url = f"sqlite:///{folder}/store.db?mode=rw"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        try:
            with interlock.open(url) as store:
                if len(store.instances(limit=10)) == 10:
                    break
        except interlock.StorageFailure:
            continue  # it is not there yet
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert b"the same command again goes on from there" in err
    assert err.endswith(b"interlock: interrupted\n")
    assert b"Traceback" not in err
    code, told, _ = finish(*command, "--json")
    assert code == 0
    report = json.loads(told)
    assert report["recognised"] > 0
    assert report["recognised"] + report["recorded"] == 5000
    assert finish("verify")[:2] == (0, "ok: 5,000 instances, 5,000 entries, no findings\n")


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_output_is_utf8_in_every_locale(
    finish: Callable[..., tuple[int, str, str]], folder: Path, env: dict[str, str]
) -> None:
    (folder / "m.json").write_text(
        json.dumps({**TOGGLE, "states": ["zu", "on", "off", "état 中"], "initial_state": "état 中"})
    )
    code, id, err = finish("instantiate", "m.json", "--subject", "naïve ✓", env=env)
    assert (code, err) == (0, "")
    assert finish("current", id.strip(), env=env) == (0, "état 中\n", "")
    code, told, _ = finish("list", "--json", env=env)
    assert json.loads(told)["instances"][0]["subject_ref"] == "naïve ✓"
    code, _, err = finish("fire", id.strip(), "go ✓", env=env)
    assert (code, "`go ✓` is not declared from `état 中`" in err) == (1, True)


@pytest.fixture
def on_a_terminal(
    start: Callable[..., subprocess.Popen[bytes]],
) -> Callable[..., tuple[bytes, bytes]]:
    """Run a command whose stderr is a terminal; give what came on stdout, and what was shown.

    Without a `stdout` that is the same terminal.
    """

    def on_a_terminal(*arguments: str, stdout: Any = PIPE) -> tuple[bytes, bytes]:
        leader, follower = os.openpty()
        shown = follower if stdout is None else stdout
        process = start(*arguments, stdout=shown, stderr=follower)
        os.close(follower)
        drawn = b""
        try:
            while piece := os.read(leader, 4096):
                drawn += piece
        except OSError:
            pass  # Linux's word for the end
        finally:
            os.close(leader)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, drawn
        return out or b"", drawn

    if os.name != "posix":
        pytest.skip("pseudo-terminals are POSIX's")
    return on_a_terminal


def test_progress_is_drawn_on_a_terminal(
    on_a_terminal: Callable[..., tuple[bytes, bytes]], folder: Path
) -> None:
    rows = "".join(f"C-{number},begin-testing\n" for number in range(4000))
    (folder / "log.csv").write_text(f"case,action\n{rows}")
    out, drawn = on_a_terminal("ingest", "log.csv", "--machine", "batch.json", "--batch", "50")
    assert b"\r\x1b[Krecording events [" in drawn
    assert b" of 4,000" in drawn
    assert is_wiped(drawn)
    assert b"\x1b" not in out


def test_the_progress_of_a_copy_is_drawn_on_a_terminal(
    on_a_terminal: Callable[..., tuple[bytes, bytes]],
    finish: Callable[..., tuple[int, str, str]],
    many: str,
    folder: Path,
) -> None:
    dump, copy = ("dump", "--out", "all.jsonl"), ("restore", "all.jsonl", "--store")
    told, drawn = on_a_terminal(*dump)
    assert told == b"3,000 instances, 3,000 entries dumped to `all.jsonl`\n"
    assert b"\r\x1b[Kdumping entries: " in drawn
    assert is_wiped(drawn)
    told, drawn = on_a_terminal(*copy, "sqlite:///one.db")
    assert told == b"3,000 instances, 3,000 entries in the dump, all restored\n"
    assert b"\r\x1b[Kchecking entries: " in drawn
    assert b"\r\x1b[Krestoring [" in drawn
    assert b" of 3,000" in drawn
    assert is_wiped(drawn)
    for command in (dump, (*copy, "sqlite:///two.db")):
        code, _, drawn_elsewhere = finish(*command)
        assert (code, drawn_elsewhere) == (0, "")


def test_no_progress_is_drawn_over_a_dump(
    on_a_terminal: Callable[..., tuple[bytes, bytes]], many: str, folder: Path
) -> None:
    _, shown = on_a_terminal("dump", stdout=None)
    with (folder / "dump.jsonl").open("wb") as stdout:
        _, drawn = on_a_terminal("dump", stdout=stdout)
    assert b"\r\x1b[Kdumping entries: " in drawn
    assert is_wiped(drawn)
    dump = (folder / "dump.jsonl").read_bytes()
    assert shown.splitlines() == dump.splitlines()
    assert b"\x1b" not in dump


def is_wiped(drawn: bytes) -> bool:
    """Whether nothing is left of what was drawn."""
    return b"\x1b" not in drawn.rpartition(b"\r\x1b[K")[2]


def test_help_and_version_load_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys\n"
        "from interlock.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    for arguments in (["--help"], ["fire", "--help"], ["--version"], ["ingest", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        loaded = set(done.stderr.split())
        heavy = {"yaml", "interlock.language", "interlock.eventlog", "interlock.conform"}
        assert not heavy & loaded
        assert "interlock.demo" not in loaded


def test_as_a_module_and_as_a_script(
    finish: Callable[..., tuple[int, str, str]], folder: Path
) -> None:
    version = f"interlock {interlock.__version__}\n"
    assert finish("--version") == (0, version, "")
    script = Path(sys.executable).with_name("interlock")
    if script.exists():
        done = subprocess.run([script, "--version"], check=True, capture_output=True, text=True)
        assert done.stdout == version


def test_commands_of_a_pipeline(folder: Path, many: str) -> None:
    interlock_ = " ".join(PROGRAM)
    done = subprocess.run(
        ["sh", "-c", f"{interlock_} declaration {many} | {interlock_} draw - --format dot"],
        cwd=folder,
        env={**os.environ, **STORE},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("digraph {\n")
