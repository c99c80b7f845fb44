"""The demo: played once as a process, and its parts made to fail."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

import interlock
from interlock import demo
from interlock.eventlog import ingest, read_log
from interlock.language import load_declaration

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Play(NamedTuple):
    """A demo that was played."""

    out: str
    folder: Path

    @property
    def commands(self) -> list[str]:
        return [line.strip() for line in self.out.partition("try next:\n")[2].splitlines()]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    temporary = tmp_path_factory.mktemp("tmp")
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "demo"],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    (folder,) = temporary.iterdir()
    return Play(done.stdout, folder)


@pytest.mark.slow
def test_it_tells_the_story(play: Play) -> None:
    place = 0
    for piece in (
        "refused invalid-declaration",
        "refused invalid-transition",
        "refused guard-not-satisfied",
        '    "released"',
        "refused terminal",
        "store.history(batch)",
        "only an entry of history moves an instance",
        "$ interlock ingest orders.csv",
        "guard-not-satisfied",
        "--assert-guards",
        "killed by signal 9",
        "$ interlock verify",
        "recorded before",
        "nothing is lost, nothing doubled",
        "$ interlock verify",
        f"database: {play.folder}/demo.db",
    ):
        place = play.out.index(piece, place)
    assert "FAILED" not in play.out
    assert play.out.count("no findings") == 2
    assert max(map(len, play.out.splitlines())) < 200


@pytest.mark.slow
def test_what_it_says_to_try_next_works(play: Play) -> None:
    assert len(play.commands) == 3
    answers = []
    for command in play.commands:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), command
        answers.append(done.stdout)
    listed, fired, told = answers
    assert "paid" in listed
    assert fired == "picked\n"
    assert told.splitlines()[-1].split()[2:6] == ["pick", "paid", "picked", "you"]


@pytest.mark.slow
def test_the_database_is_sound_and_holds_what_was_told(play: Play) -> None:
    with interlock.open(f"sqlite:///{play.folder}/demo.db?mode=rw") as store:
        report = store.verify()
        assert report.ok
        assert report.instances == 1 + demo.FEW + demo.MANY
        logged = [read_log(play.folder / name) for name in (demo.LOG, demo.LARGE_LOG)]
        cases = {event.case for log in logged for event in log}
        rows, after = [], None
        while page := store.instances(limit=1000, after=after):
            rows += page
            after = page[-1].id
        assert sorted(row.subject_ref for row in rows if row.subject_ref) == sorted(cases)


@pytest.mark.slow
def test_an_installed_package_has_no_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "EXAMPLES", tmp_path / "nowhere")
    monkeypatch.setattr(demo, "MANY", 400)
    monkeypatch.setattr(demo, "SMALL_BATCH", 1)
    told = demo.run_demo(tmp_path / "here")
    assert told.failures == []
    assert (tmp_path / "here" / demo.LOG).is_file()
    assert len(told.commands) == 3
    assert json.loads(json.dumps(told.as_dict())) == told.as_dict()


@pytest.mark.slow
def test_a_run_that_is_over_before_it_is_killed_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "MANY", 60)
    monkeypatch.setattr(demo, "KILL_AFTER", 2)
    told = demo.run_demo(tmp_path)
    assert len(told.failures) == 1
    assert told.failures[0].startswith("it was killed when ")
    assert not told.ok


def test_a_place_that_is_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first part, which is quick: the path goes through a URL and a shell."""
    for part in ("_ingest_orders", "_survive_a_crash"):
        monkeypatch.setattr(demo, part, lambda story: None)
    folder = tmp_path / "a b?c#d%41'é"
    told = demo.run_demo(folder)
    assert told.failures == []
    assert (folder / "demo.db").is_file()
    listing = told.commands[0].replace("--state paid", "--state released")
    done = subprocess.run(["sh", "-c", listing], capture_output=True, text=True, check=True)
    assert "released" in done.stdout


def test_a_store_that_lets_everything_through_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("_ingest_orders", "_survive_a_crash"):
        monkeypatch.setattr(demo, part, lambda story: None)
    fire = interlock.Store.fire

    def trusting(self: interlock.Store, id: str, action: str, **options: object) -> str:
        options["guard_satisfied"] = True
        return fire(self, id, action, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(interlock.Store, "fire", trusting)
    told = demo.run_demo(tmp_path)
    assert "the answer had to be 'guard-not-satisfied', not 'released'" in told.failures


def test_it_does_not_touch_another_demo(tmp_path: Path) -> None:
    (tmp_path / "demo.db").touch()
    with pytest.raises(interlock.InvalidRequest):
        demo.run_demo(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.db"]


def test_its_machine_is_that_of_the_examples() -> None:
    assert load_declaration(EXAMPLES / demo.MACHINE) == demo.ORDERS
    assert load_declaration(EXAMPLES / "batch-qualification.machine.json") == demo.BATCH


def test_its_logs_are_the_same_on_every_run_and_of_the_kind_of_the_example(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    assert demo.write_log(one, demo.FEW, "A") == demo.write_log(two, demo.FEW, "A")
    assert one.read_bytes() == two.read_bytes()
    assert one.read_text().splitlines()[0] == (EXAMPLES / demo.LOG).read_text().splitlines()[0]
    with interlock.open("sqlite://") as store:
        made = ingest(store, demo.ORDERS, one, assert_guards=True)
    with interlock.open("sqlite://") as store:
        example = ingest(store, demo.ORDERS, EXAMPLES / demo.LOG, assert_guards=True)
    assert (made.cases, made.refused) == (example.cases, example.refused) == (60, 5)
    assert set(made.reasons) == {"invalid-transition"}


def test_the_temporary_directory_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("_release_a_batch", "_ingest_orders", "_survive_a_crash"):
        monkeypatch.setattr(demo, part, lambda story: None)
    folder = Path(demo.run_demo().database).parent
    try:
        assert folder.parent == Path(tempfile.gettempdir())
        assert folder.name.startswith("interlock-demo-")
    finally:
        shutil.rmtree(folder)
