"""The demo: a batch that cannot be released unsigned, a log that skips steps, a crash survived.

    told = run_demo(tell=print)
    told.ok, told.database, told.commands

Every call and command is shown with what came back, and what must hold is compared as it goes: the
demo fails where it does not. The first log is that of the project's `examples`, where they are; an
installed package has none and makes one of the same kind, as it makes the second, larger one.
"""

import csv
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from shutil import copyfile, which
from tempfile import mkdtemp
from typing import Any, NamedTuple
from urllib.parse import quote

from interlock.core.entry import Entry
from interlock.core.rejection import InvalidDeclaration, InvalidRequest, Rejected
from interlock.eventlog import ingest
from interlock.store.read import Instance
from interlock.store.store import Store, open

EXAMPLES = Path(__file__).parents[2] / "examples"  # of a checkout
LOG, MACHINE, LARGE_LOG = "orders.csv", "orders.machine.json", "many-orders.csv"

FEW, MANY = 60, 1500  # orders
SMALL_BATCH = 25  # events in a commit of the run that is killed: it shall not be over too soon
KILL_AFTER = 1 / 3  # of its events
PATIENCE_SECONDS = 5  # with a slow disk; then it is killed as soon as anything is recorded
POLL_SECONDS = 0.05


def _arrows(text: str) -> list[dict[str, str]]:
    keys = ("from_state", "action", "to_state", "guard")
    return [dict(zip(keys, line.split(), strict=False)) for line in text.strip().splitlines()]


BATCH: dict[str, Any] = {
    "states": ["sampled", "testing", "released", "rejected"],
    "transitions": _arrows(
        """
        sampled  begin-testing  testing
        testing  release        released  QP-sign-off
        testing  reject-batch   rejected
        """
    ),
    "initial_state": "sampled",
    "terminal_states": ["released", "rejected"],
}
DRAFT = {**BATCH, "states": ["sampled", "testing", "released"]}

ORDERS: dict[str, Any] = {
    "states": [
        *("placed", "paid", "picked", "shipped", "delivered", "returning"),
        *("closed", "refunded", "cancelled"),
    ],
    "transitions": _arrows(
        """
        placed     pay         paid
        placed     cancel      cancelled
        paid       pick        picked
        picked     put-back    paid
        picked     ship        shipped
        shipped    deliver     delivered
        delivered  close       closed
        delivered  ask-return  returning
        returning  refund      refunded   goods-inspected
        """
    ),
    "initial_state": "placed",
    "terminal_states": ["closed", "refunded", "cancelled"],
}
PATHS = (
    "pay pick ship deliver close",
    "pay pick put-back pick ship deliver close",
    "pay pick ship deliver ask-return refund",
    "cancel",
)
SKIPPING = (
    "pay ship deliver close",
    "pick ship deliver close",
    "pay pick deliver close",
    "pay pick ship deliver refund",
    "pay pick ship close",
)
BEGIN = datetime(2025, 3, 3, 8, 0, tzinfo=UTC)
STAFF = ("web-shop", "picker-lind", "picker-abe", "courier-north", "service-okafor")


@dataclass(slots=True, kw_only=True)
class Told:
    """What the demo did.

    Attributes:
        shown: the calls and commands, each with the lines that came back.
        failures: what should have held and did not.
        commands: three to try next.
    """

    database: str
    shown: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Give it as JSON-like values."""
        return {"ok": self.ok, **asdict(self)}


def run_demo(directory: Path | None = None, *, tell: Callable[[str], None] | None = None) -> Told:
    """Run the demo.

    Args:
        directory: for the database and the logs; a fresh temporary one, when left out.
        tell: takes each line of the story.

    Raises:
        InvalidRequest: there is a demo in the directory already.
    """
    folder = Path(mkdtemp(prefix="interlock-demo-")) if directory is None else directory.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "demo.db").exists():
        raise InvalidRequest(f"there is a demo in `{folder}` already", argument="dir")
    story = _Story(folder, tell or (lambda _: None))
    _release_a_batch(story)
    order = _ingest_orders(story)
    _survive_a_crash(story)
    _say_goodbye(story, order)
    return story.told


class _Story:
    """Does things, and tells what was done and what came back."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.tell = tell
        self.told = Told(database=str(folder / "demo.db"))
        self.url = f"sqlite:///{quote(self.told.database)}"
        self._names: list[tuple[object, str]] = []
        self._environment = {**os.environ, "INTERLOCK_STORE": self.url}
        if "PYTHONPATH" in os.environ:  # commands run in another directory
            places = os.environ["PYTHONPATH"].split(os.pathsep)
            self._environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, places))

    def head(self, title: str) -> None:
        for line in ("", title, "-" * len(title)):
            self.tell(line)

    def name(self, name: str, value: object) -> None:
        """Show a value by a name from here on."""
        self._names.append((value, name))

    def ask(self, store: Store, verb: str, *arguments: object, **more: object) -> Any:
        """Call a verb of a store; give the answer, or the refusal."""
        given = [*map(self._written, arguments)]
        given += [f"{name}={self._written(value)}" for name, value in more.items()]
        try:
            answer = getattr(store, verb)(*arguments, **more)
        except Rejected as refusal:
            answer = refusal
        self.show(f"store.{verb}({', '.join(given)})", _answer_lines(answer))
        return answer

    def run(self, *arguments: str) -> int:
        """Run a command to its end; give its exit code."""
        with self.start(*arguments) as process:
            out, err = process.communicate()
        self.show(f"$ interlock {shlex.join(arguments)}", [*out.splitlines(), *err.splitlines()])
        return process.returncode

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-m", "interlock", *arguments],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def show(self, call: str, answer: Sequence[str]) -> None:
        """Tell what was called and what came back."""
        self.told.shown.append({"call": call, "answer": [*answer]})
        self.tell(call)
        for line in answer:
            self.tell(f"    {line}".rstrip())

    def expect(self, holds: bool, what: str) -> None:
        """Tell what must hold, and whether it does."""
        self.tell(f"{'ok' if holds else 'FAILED'}: {what}")
        if not holds:
            self.told.failures.append(what)

    def expect_answer(self, answer: object, wanted: object) -> None:
        """Compare what came back, a refusal by its word; speak only when it is something else."""
        found = answer.reason if isinstance(answer, Rejected) else answer
        if found != wanted:
            self.expect(False, f"the answer had to be {wanted!r}, not {found!r}")

    def _written(self, value: object) -> str:
        for known, name in self._names:
            if known == value:
                return name
        return json.dumps(value) if isinstance(value, str) else repr(value)


def _answer_lines(answer: object) -> list[str]:
    if isinstance(answer, InvalidDeclaration):
        return [f"refused {answer.reason}:", *(f"  {defect}" for defect in answer.defects)]
    if isinstance(answer, Rejected):
        return [f"refused {answer.reason}: {answer}"]
    if isinstance(answer, list):
        return [_entry_line(entry) for entry in answer]
    return [json.dumps(answer)]


def _entry_line(entry: Entry) -> str:
    guard = ", guard asserted" if entry.guard_satisfied else ""
    move = f"{entry.action}: {entry.from_state} -> {entry.to_state}"
    return f"{entry.sequence_number}  {move}, by {entry.actor_ref}{guard}"


def _release_a_batch(story: _Story) -> None:
    story.head("1  A batch cannot be released unsigned")
    story.tell("draft =")
    for line in _declaration_lines(DRAFT):
        story.tell(f"    {line}")
    story.tell(f'store = interlock.open("{story.url}")')
    story.name("draft", DRAFT)
    story.name("corrected", BATCH)
    director = "qp-director-santos"
    fires: tuple[tuple[str, dict[str, object], str], ...] = (
        ("release", {"actor_ref": director}, "invalid-transition"),
        ("begin-testing", {"actor_ref": "lab-tech-rivera"}, "testing"),
        ("release", {"actor_ref": director}, "guard-not-satisfied"),
        ("release", {"actor_ref": director, "guard_satisfied": True}, "released"),
        ("begin-testing", {}, "terminal"),
    )
    with open(story.url) as store:
        answer = story.ask(store, "instantiate", DRAFT, actor_ref="system-planner")
        story.expect_answer(answer, "invalid-declaration")
        story.tell('corrected = the same, with "rejected" among the states')
        batch = story.ask(store, "instantiate", BATCH, actor_ref="system-planner")
        story.name("batch", batch)
        for action, options, wanted in fires:
            story.expect_answer(story.ask(store, "fire", batch, action, **options), wanted)
        entries = story.ask(store, "history", batch)
    story.expect(len(entries) == 2, "two fires left two entries, three refusals none")
    forgery = "UPDATE instances SET current_state = 'sampled'"
    with closing(sqlite3.connect(story.told.database)) as database:
        try:
            answer = f"changed {database.execute(forgery).rowcount} rows"
        except sqlite3.Error as error:
            answer = f"refused: {error}"
    story.show(f'sqlite3.connect("demo.db").execute("{forgery}")', [answer])
    story.expect(answer.startswith("refused"), "nor does SQL move an instance past its declaration")


def _declaration_lines(declaration: dict[str, Any]) -> list[str]:
    """Write a declaration with a transition on each line."""
    parts = []
    for key, value in declaration.items():
        rows = ",\n    ".join(json.dumps(row) for row in value)
        text = f"[\n    {rows}]" if key == "transitions" else json.dumps(value)
        parts.append(f'"{key}": {text}')
    return ("{" + ",\n ".join(parts) + "}").splitlines()


def _ingest_orders(story: _Story) -> str | None:
    """Ingest the first log, twice; give an order that can still move on."""
    story.head("2  Which orders skipped a step?")
    log, machine = story.folder / LOG, story.folder / MACHINE
    if (EXAMPLES / LOG).is_file():
        copyfile(EXAMPLES / LOG, log)
        copyfile(EXAMPLES / MACHINE, machine)
    else:
        write_log(log, FEW, "A")
        machine.write_text("\n".join(_declaration_lines(ORDERS)), encoding="utf-8")
    story.tell(f"$ cd {shlex.quote(str(story.folder))}")
    story.tell(f"$ export INTERLOCK_STORE={shlex.quote(story.url)}")
    command = ("ingest", LOG, "--machine", MACHINE)
    story.expect_answer(story.run(*command), 0)
    story.expect(
        _alike(_cases(story.url), _uninterrupted([log], assert_guards=False)),
        "each order is where its events took it, or where the first of them was refused",
    )
    story.tell(
        "A refund needs its guard. Taking the log's word for it, the same goes on from there:"
    )
    story.expect_answer(story.run(*command, "--assert-guards"), 0)
    story.expect(
        _alike(_cases(story.url), _uninterrupted([log], assert_guards=True)),
        "nothing is recorded twice, and only orders that skipped a step are held back",
    )
    with open(story.url) as store:
        stuck = store.instances(state="paid", definition=ORDERS, limit=1)
    story.expect(bool(stuck), "an order that was shipped without being picked is still `paid`")
    return stuck[0].id if stuck else None


def _survive_a_crash(story: _Story) -> None:
    story.head("3  kill -9 in the middle")
    log = story.folder / LARGE_LOG
    events = write_log(log, MANY, "B")
    before = _recorded(story.url)
    story.tell(f"{LARGE_LOG} holds {events:,} events of {MANY:,} orders.")
    command = ("ingest", LARGE_LOG, "--machine", MACHINE, "--assert-guards")
    hasty = (*command, "--batch", str(SMALL_BATCH))
    with story.start(*hasty) as child:
        try:
            _await_progress(child, story.url, before, before + int(events * KILL_AFTER))
        finally:
            child.kill()
        _, err = child.communicate()
    died = f"killed by signal {-child.returncode}" if child.returncode < 0 else "not killed"
    story.show(f"$ interlock {shlex.join(hasty)}", [*err.splitlines(), died])
    halfway = _cases(story.url)
    at_kill = _recorded(story.url) - before
    killed = child.returncode < 0 and 0 < at_kill < events
    story.expect(killed, f"it was killed when {at_kill:,} events were recorded")
    story.expect_answer(story.run("verify"), 0)
    story.tell("Once more the same, which goes on where it was killed:")
    story.expect_answer(story.run(*command), 0)
    final = _cases(story.url)
    kept = {case.id: case.entries for case in final}
    story.expect(
        all(kept[case.id][: len(case.entries)] == case.entries for case in halfway),
        "what was recorded before the crash is there, entry for entry",
    )
    story.expect(
        _alike(final, _uninterrupted([story.folder / LOG, log], assert_guards=True)),
        "the whole equals a run that nothing interrupted: nothing is lost, nothing doubled",
    )
    story.expect_answer(story.run("verify"), 0)


def _say_goodbye(story: _Story, order: str | None) -> None:
    told = story.told
    arguments = (
        ("list", "--state", "paid"),
        ("fire", order or "ID", "pick", "--actor", "you", "--key", "first-try"),
        ("history", order or "ID"),
    )
    told.commands = [
        f"{_program()} {shlex.join([*words, '--store', story.url])}" for words in arguments
    ]
    story.head("Yours to look at")
    for line in (f"database: {told.database}", "try next:"):
        story.tell(line)
    for command in told.commands:
        story.tell(f"    {command}")
    if told.failures:
        story.tell(f"{len(told.failures)} of the demo's expectations failed")


class _Case(NamedTuple):
    """An order as it stands, with its history."""

    subject: str | None
    state: str
    id: str
    entries: list[Entry]


def _orders(store: Store) -> Iterator[Instance]:
    after = None
    while page := store.instances(definition=ORDERS, limit=1000, after=after):
        yield from page
        after = page[-1].id


def _cases_of(store: Store) -> list[_Case]:
    orders = _orders(store)
    return [_Case(o.subject_ref, o.state, o.id, store.history(o.id)) for o in orders]


def _cases(url: str) -> list[_Case]:
    with open(url) as store:
        return _cases_of(store)


def _uninterrupted(logs: Sequence[Path], *, assert_guards: bool) -> list[_Case]:
    """Ingest logs in memory, for comparison."""
    with open("sqlite://") as store:
        for log in logs:
            ingest(store, ORDERS, log, assert_guards=assert_guards)
        return _cases_of(store)


def _alike(some: Sequence[_Case], others: Sequence[_Case]) -> bool:
    """Whether two stores tell the same stories; only ids may differ."""

    def stories(cases: Sequence[_Case]) -> list[tuple[str, str, list[tuple[object, ...]]]]:
        return sorted(
            (case.subject or "", case.state, [entry[1:] for entry in case.entries])
            for case in cases
        )

    return stories(some) == stories(others)


def _recorded(url: str) -> int:
    """Count the events in the record."""
    with open(url) as store:
        return sum(order.version - 1 for order in _orders(store))


def _await_progress(child: subprocess.Popen[str], url: str, least: int, enough: int) -> None:
    """Wait until a run has recorded enough, or, where that takes long, anything."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while child.poll() is None:
        recorded = _recorded(url)
        if recorded >= enough or (recorded > least and time.monotonic() > deadline):
            return
        time.sleep(POLL_SECONDS)


def _program() -> str:
    """Write the command that runs this very program, as a shell would find it from here."""
    script = Path(sys.executable).with_name("interlock")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m interlock"
    if which("interlock") == str(script):
        return "interlock"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


def write_log(path: Path, orders: int, prefix: str) -> int:
    """Write the log of a mail-order shop, the same on every run; give the number of events.

    Orders go their ways beside one another. Every twelfth of the first sixty skips a step.
    """
    random = Random(orders)  # noqa: S311
    rows = [row for number in range(1, orders + 1) for row in _events(number, prefix, random)]
    rows.sort(key=lambda row: row[2])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "action", "time", "actor"))
        for case, action, at, actor in rows:
            writer.writerow((case, action, f"{at:%Y-%m-%dT%H:%MZ}", actor))
    return len(rows)


def _events(number: int, prefix: str, random: Random) -> Iterator[tuple[str, str, datetime, str]]:
    skips = number % 12 == 0 and number <= 60
    path = SKIPPING[number // 12 - 1] if skips else random.choice(PATHS)
    at = BEGIN + timedelta(minutes=random.randrange(5 * 24 * 60))
    for action in path.split():
        yield f"{prefix}-{1000 + number}", action, at, random.choice(STAFF)
        at += timedelta(minutes=random.choice((15, 90, 600, 1500)))
