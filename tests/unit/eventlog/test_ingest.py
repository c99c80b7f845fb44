"""Ingest: what is recorded, what is refused, and that running again doubles nothing."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

import interlock
from interlock import InvalidDeclaration, InvalidRequest, StorageFailure, Store
from interlock.eventlog import Columns, IngestReport, LogError, Progress, Refusal, ingest
from interlock.eventlog.ingest import READING_STEP, REFUSALS_KEPT
from tests.unit.eventlog.logs import ORDER, T0, at, everything, instance_of, told, write_log

LOG = [
    ("A", "pay", 0, "web"),
    ("B", "pay", 5, "web"),
    ("A", "ship", 9, "lind"),
    ("C", "ship", 1, "abe"),
    ("B", "note", 5),
    ("B", "ship", 3, "abe"),
    ("C", "pay", 2, "web"),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.csv", LOG)


def counts(report: IngestReport) -> tuple[int, ...]:
    """Give the counts of a report: cases, conforming, recorded, recognised, refused, untried."""
    assert report.events == (
        report.recorded + report.recognised + report.refused + report.untried
    ), "every event is one of the four"
    assert sum(report.reasons.values()) == report.refused
    return (
        report.cases,
        report.conforming,
        report.recorded,
        report.recognised,
        report.refused,
        report.untried,
    )


def refused(report: IngestReport) -> Refusal:
    (refusal,) = report.refusals
    return refusal


# what is recorded


def test_a_case_becomes_an_instance_and_an_event_an_entry(store: Store, log: Path) -> None:
    report = ingest(store, ORDER, log)
    assert counts(report) == (3, 2, 5, 0, 1, 1)
    assert told(store, "A") == [("pay", 0, "web"), ("ship", 9, "lind")]
    assert told(store, "B") == [("pay", 5, "web"), ("note", 5, None), ("ship", 3, "abe")]
    assert told(store, "C") == []
    (b,) = store.instances(subject_ref="B")
    assert (b.state, b.version, b.instantiated_at) == ("shipped", 4, at(3))
    assert store.read_declaration(b.id) == ORDER


def test_a_refused_event_stops_its_case_and_no_other(store: Store, log: Path) -> None:
    seen: list[Refusal] = []
    report = ingest(store, ORDER, log, on_refused=seen.append)
    assert seen == [
        Refusal(
            case="C",
            position=1,
            line=5,
            state="placed",
            action="ship",
            reason="invalid-transition",
            message="`ship` is not declared from `placed` (declared: `pay`)",
        )
    ]
    assert report.refusals == tuple(seen)
    assert report.reasons == {"invalid-transition": 1}
    assert json.loads(json.dumps(report.as_dict()))["refusals"][0]["case"] == "C"


def test_a_terminal_state_is_left_by_nothing(store: Store, tmp_path: Path) -> None:
    rows = [("A", "pay", 0), ("A", "ship", 1), ("A", "note", 2), ("A", "note", 3)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (1, 0, 2, 0, 1, 1)
    assert refused(report)[1:6] == (3, 4, "shipped", "note", "terminal")


@pytest.mark.parametrize("batch", [1, 2, 3, 1000])
def test_the_size_of_a_batch_changes_nothing(tmp_path: Path, log: Path, batch: int) -> None:
    with interlock.open("sqlite://") as one, interlock.open("sqlite://") as other:
        assert ingest(one, ORDER, log) == ingest(other, ORDER, log, batch=batch)
        for case in "ABC":
            assert told(one, case) == told(other, case)


def test_commits_are_batched(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    for verb in ("instantiate_each", "fire_each"):
        write = getattr(store, verb)

        def spied(*args, write=write, **options):
            sizes.append(len(args[-1]))
            return write(*args, **options)

        monkeypatch.setattr(store, verb, spied)
    for verb in ("instantiate", "fire", "fire_many"):
        monkeypatch.setattr(store, verb, None)
    rows = [(f"case-{number % 50}", "pay" if number < 50 else "note", 0) for number in range(200)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), batch=20)
    assert report.recorded == 200
    assert max(sizes) == 20
    assert len(sizes) <= 1 + 2 * 200 // 20  # the first only checks the declaration


# guards


def test_guards_are_asserted_only_when_told(store: Store, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [("A", "pay", 0), ("A", "refund", 1), ("A", "pay", 2)])
    report = ingest(store, ORDER, log)
    assert counts(report) == (1, 0, 1, 0, 1, 1)
    assert refused(report)[1:6] == (2, 3, "paid", "refund", "guard-not-satisfied")
    report = ingest(store, ORDER, log, assert_guards=True)
    assert counts(report) == (1, 0, 1, 1, 1, 0)
    assert refused(report).reason == "terminal"
    pay, refund = store.history(instance_of(store, "A"))
    assert (pay.guard_satisfied, refund.guard_satisfied) == (None, True)


# again


@pytest.mark.parametrize("batch", [1, 2, 500])
def test_running_again_doubles_nothing(store: Store, log: Path, batch: int) -> None:
    first = ingest(store, ORDER, log, batch=batch)
    before = everything(store)
    again = ingest(store, ORDER, log, batch=batch)
    assert counts(again) == (3, 2, 0, 5, 1, 1)
    assert again.refusals == first.refusals
    assert everything(store) == before


@pytest.mark.parametrize("batch", [1, 3, 500])
def test_a_longer_log_adds_what_is_new(store: Store, tmp_path: Path, batch: int) -> None:
    rows = [
        ("A", "pay", 1),
        ("B", "pay", 1),
        ("A", "note", 2),
        ("B", "ship", 2),
        ("A", "note", 2),
        ("C", "pay", 9),
    ]
    ingest(store, ORDER, write_log(tmp_path / "short.csv", rows[:3]))
    report = ingest(store, ORDER, write_log(tmp_path / "long.csv", rows), batch=batch)
    assert counts(report) == (3, 3, 3, 3, 0, 0)
    assert told(store, "A") == [("pay", 1, None), ("note", 2, None), ("note", 2, None)]
    assert told(store, "C") == [("pay", 9, None)]


@pytest.mark.parametrize("batch", [1, 500])
@pytest.mark.parametrize(
    "changed", [("A", "ship", 2), ("A", "note", 3), ("A", "note", 2, "eve"), ("A", "note", None)]
)
def test_a_changed_log_is_a_conflict_of_that_case(
    store: Store, tmp_path: Path, changed: tuple, batch: int
) -> None:
    rows = [("A", "pay", 1), ("A", "note", 2), ("A", "note", 2), ("B", "pay", 1)]
    ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    before = everything(store)
    rows[1] = changed
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), batch=batch)
    if changed[2] is None:  # an event that gives no time contradicts none
        assert counts(report) == (2, 2, 0, 4, 0, 0)
    else:
        assert counts(report) == (2, 1, 0, 2, 1, 1)
        assert refused(report)[:3] == ("A", 2, 3)
        assert refused(report)[3:6] == ("paid", changed[1], "idempotency-conflict")
    assert everything(store) == before


def test_the_source_tells_logs_with_the_same_case_ids_apart(store: Store, log: Path) -> None:
    ingest(store, ORDER, log, source="north")
    report = ingest(store, ORDER, log, source="south")
    assert counts(report) == (3, 2, 5, 0, 1, 1)
    assert len(store.instances(subject_ref="A")) == 2
    assert counts(ingest(store, ORDER, log, source="north")) == (3, 2, 0, 5, 1, 1)


def test_no_two_pairs_of_source_and_case_share_a_key(store: Store, tmp_path: Path) -> None:
    for source, case in (("a", "b/c"), ("a/b", "c"), ("", "a/b/c"), ("a", '"b'), ('a"', "b")):
        path = write_log(tmp_path / "log.csv", [(case, "pay", 0)])
        assert ingest(store, ORDER, path, source=source).recorded == 1


def test_another_declaration_for_the_same_source_is_a_conflict(store: Store, log: Path) -> None:
    ingest(store, ORDER, log)
    before = everything(store)
    other = {**ORDER, "states": [*ORDER["states"], "lost"]}
    report = ingest(store, other, log)
    assert counts(report) == (3, 0, 0, 0, 3, 4)
    assert report.reasons == {"idempotency-conflict": 3}
    assert report.refusals[0].state is None
    assert "`--source`" in report.refusals[0].message
    assert everything(store) == before
    assert ingest(store, other, log, source="again").recorded == 5


@pytest.mark.parametrize("first", [("A", "pay", 5), ("A", "pay", None)])
def test_an_event_before_the_birth_is_refused_and_the_rest_is_recognised(
    store: Store, tmp_path: Path, first: tuple
) -> None:
    rows = [first, ("A", "note", first[2])]
    ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), source="a namesake")
    rows += [("A", "ship", 1)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (1, 0, 0, 2, 1, 0)
    assert refused(report)[1:6] == (3, 4, "paid", "ship", "invalid-request")
    assert "before the instance began" in refused(report).message


def test_a_case_is_found_among_any_number_of_namesakes(store: Store, tmp_path: Path) -> None:
    late = write_log(tmp_path / "late.csv", [("A", "pay", 5)])
    for number in range(102):  # more than a page of instances
        ingest(store, ORDER, late, source=f"{number}")
    both = write_log(tmp_path / "both.csv", [("A", "pay", 5), ("A", "ship", 1)])
    for source in ("0", "101"):
        assert counts(ingest(store, ORDER, both, source=source)) == (1, 0, 0, 1, 1, 0)


def test_a_correction_of_the_refused_event_goes_on(store: Store, tmp_path: Path) -> None:
    rows = [("A", "pay", 0), ("A", "sihp", 1), ("A", "note", 2)]
    assert ingest(store, ORDER, write_log(tmp_path / "log.csv", rows)).recorded == 1
    rows[1] = ("A", "note", 1)
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (1, 1, 2, 1, 0, 0)


@pytest.mark.parametrize("batch", [1, 2, 500])
def test_what_others_fired_in_between_hides_no_event(
    store: Store, tmp_path: Path, batch: int
) -> None:
    rows = [("A", "pay", 0), ("A", "note", 2), ("A", "note", 2)]
    ingest(store, ORDER, write_log(tmp_path / "log.csv", rows[:1]))
    store.fire(instance_of(store, "A"), "note", actor_ref="a person")
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows[:2]), batch=batch)
    assert counts(report) == (1, 1, 1, 1, 0, 0)
    # Entry 3 is event 2, and looks just like event 3.
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), batch=batch)
    assert counts(report) == (1, 1, 1, 2, 0, 0)
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), batch=batch)
    assert counts(report) == (1, 1, 0, 3, 0, 0)
    assert [row[2] for row in told(store, "A")] == [None, "a person", None, None]


@pytest.mark.parametrize("stop", range(1, 7))
def test_a_run_that_breaks_off_is_gone_on_with(store: Store, log: Path, stop: int) -> None:
    def break_off(progress: Progress) -> None:
        if progress.done >= stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(store, ORDER, log, batch=1, on_progress=break_off)
    done = sum(map(len, everything(store).values()))
    report = ingest(store, ORDER, log)
    assert counts(report) == (3, 2, 5 - done, done, 1, 1)
    assert told(store, "B") == [("pay", 5, "web"), ("note", 5, None), ("ship", 3, "abe")]


@pytest.mark.parametrize("verb", ["instantiate_each", "fire_each", "history"])
def test_a_failing_store_stops_the_run(
    store: Store, log: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    works = getattr(store, verb)
    calls = iter(range(100))

    def fails(*args, **options):
        if next(calls) == 2:
            raise StorageFailure("the disk is full")
        return works(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store, verb, fails)
        with pytest.raises(StorageFailure, match="the disk is full"):
            ingest(store, ORDER, log, batch=2)
    report = ingest(store, ORDER, log)
    assert report.recorded + report.recognised == 5
    assert sum(map(len, everything(store).values())) == 5


# what cannot be recorded


def test_a_blank_case_is_refused_without_an_instance(store: Store, tmp_path: Path) -> None:
    rows = [("", "pay", 0), ("A", "pay", 0), ("", "pay", 1), ("\t ", "pay", 1), ("A", "ship", 1)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), batch=2)
    assert counts(report) == (1, 1, 2, 0, 3, 0)
    assert [refusal[:6] for refusal in report.refusals] == [
        ("", 1, 2, None, "pay", "invalid-request"),
        ("", 2, 4, None, "pay", "invalid-request"),
        ("\t ", 1, 5, None, "pay", "invalid-request"),
    ]
    assert len(everything(store)) == 1


def test_cases_are_told_apart_by_every_character(store: Store, tmp_path: Path) -> None:
    cases = ["A", " A", "A ", "a", "\u00e9", "e\u0301"]
    log = write_log(tmp_path / "log.csv", [(case, "pay", 0) for case in cases])
    assert counts(ingest(store, ORDER, log)) == (6, 6, 6, 0, 0, 0)
    assert [instance.subject_ref for instance in store.instances()] == cases


def test_a_case_too_long_is_refused_without_an_instance(store: Store, tmp_path: Path) -> None:
    fits, long = "é" * 512, "é" * 512 + "x"
    rows = [(long, "pay", 0), (fits, "pay", 0), (long, "ship", 1), ("x" * 100_000, "pay", 0)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows), source="s" * 5000)
    assert counts(report) == (3, 1, 1, 0, 2, 1)
    assert [refusal.reason for refusal in report.refusals] == ["invalid-request"] * 2
    assert "1025 bytes long" in report.refusals[0].message
    assert len(report.refusals[1].case) == 1024
    assert told(store, fits) == [("pay", 0, None)]


@pytest.mark.parametrize("action", ["", "  ", "x" * 2000])
def test_an_action_that_is_none_is_refused(store: Store, tmp_path: Path, action: str) -> None:
    rows = [("A", "pay", 0), ("A", action, 1), ("A", "ship", 2), ("B", action, 1), ("C", "pay", 0)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (3, 1, 2, 0, 2, 1)
    first, second = report.refusals
    assert (first.position, first.state, first.reason) == (2, "paid", "invalid-request")
    assert (second.position, second.state, second.reason) == (1, "placed", "invalid-request")
    assert len(first.action) == min(len(action), 1024)


def test_an_actor_that_is_none_is_refused(store: Store, tmp_path: Path) -> None:
    rows = [("A", "pay", 0, " "), ("B", "pay", 0, "x" * 1025), ("C", "pay", 0, "")]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (3, 1, 1, 0, 2, 0)
    assert report.reasons == {"invalid-request": 2}


# times


def test_events_of_the_future_wait(tmp_path: Path) -> None:
    now = T0
    rows = [("A", "pay", -1), ("A", "note", 1), ("B", "pay", 1), ("C", "pay", 0)]
    log = write_log(tmp_path / "log.csv", rows)
    with interlock.open("sqlite://", clock=lambda: now) as store:
        report = ingest(store, ORDER, log)
        assert counts(report) == (3, 1, 2, 0, 2, 0)
        assert [refusal[:6] for refusal in report.refusals] == [
            ("A", 2, 3, "paid", "note", "invalid-request"),
            ("B", 1, 4, None, "pay", "invalid-request"),
        ]
        assert all("lies in the future" in refusal.message for refusal in report.refusals)
        now += timedelta(hours=1)
        assert counts(ingest(store, ORDER, log)) == (3, 3, 2, 2, 0, 0)


def test_times_without_an_offset_need_a_time_zone(store: Store, tmp_path: Path) -> None:
    rows = [("A", "pay", "2024-05-01 14:00"), ("A", "ship", "2024-05-01 14:30")]
    log = write_log(tmp_path / "log.csv", rows)
    report = ingest(store, ORDER, log)
    assert counts(report) == (1, 0, 0, 0, 1, 1)
    assert refused(report)[:6] == ("A", 1, 2, None, "pay", "invalid-request")
    assert refused(report).message == (
        "no time of the case can be read: `2024-05-01 14:00` has no offset from UTC;"
        " name the log's time zone (`--time-zone`)"
    )
    assert everything(store) == {}  # so that the next run can date the birth
    report = ingest(store, ORDER, log, time_zone="Europe/Berlin")
    assert counts(report) == (1, 1, 2, 0, 0, 0)
    assert told(store, "A") == [("pay", 0, None), ("ship", 30, None)]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("2024-05-01 14:30", "has no offset from UTC; name the log's time zone"),
        ("01.05.2024", "is not an ISO 8601 time such as"),
        ("1712121210000", "is not an ISO 8601 time such as"),
    ],
)
def test_a_time_that_cannot_be_read_is_refused_at_its_event(
    store: Store, tmp_path: Path, time: str, message: str
) -> None:
    rows = [("A", "pay", 0), ("A", "ship", time), ("B", "ship", time), ("B", "pay", 0)]
    report = ingest(store, ORDER, write_log(tmp_path / "log.csv", rows))
    assert counts(report) == (2, 0, 1, 0, 2, 1)
    first, second = report.refusals
    assert first.message.startswith(f"the time `{time}` {message}")
    assert (first.state, first.reason) == ("paid", "invalid-request")
    assert second.reason == "invalid-transition"  # which comes before the time


def test_a_count_of_seconds_is_no_time_in_any_zone(store: Store, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [("A", "pay", "1712121210000")])
    report = ingest(store, ORDER, log, time_zone="Europe/Berlin")
    assert "`1712121210000` is not an ISO 8601 time" in refused(report).message


def test_events_without_times_are_stamped_by_the_engine(tmp_path: Path) -> None:
    now = T0
    (tmp_path / "log.csv").write_text("case,action\nA,pay\nA,note\n")
    with interlock.open("sqlite://", clock=lambda: now) as store:
        assert counts(ingest(store, ORDER, tmp_path / "log.csv")) == (1, 1, 2, 0, 0, 0)
        now += timedelta(hours=1)
        with (tmp_path / "log.csv").open("a") as file:
            file.write("A,ship\n")
        assert counts(ingest(store, ORDER, tmp_path / "log.csv")) == (1, 1, 1, 2, 0, 0)
        assert told(store, "A") == [("pay", 0, None), ("note", 0, None), ("ship", 60, None)]


# the run


@pytest.mark.parametrize("text", ["case,action,time,actor\n", "case,action\n\n"])
def test_a_log_without_events(store: Store, tmp_path: Path, text: str) -> None:
    (tmp_path / "log.csv").write_text(text)
    assert counts(ingest(store, ORDER, tmp_path / "log.csv")) == (0, 0, 0, 0, 0, 0)


def test_a_log_that_is_bad_at_its_end_records_nothing(store: Store, log: Path) -> None:
    with log.open("a") as file:
        file.write("ragged\n")
    with pytest.raises(LogError, match=r"log\.csv:9: a row of 1 fields"):
        ingest(store, ORDER, log, batch=1)
    assert everything(store) == {}


def test_arguments_are_checked_before_the_log_is_read(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InvalidDeclaration):
        ingest(store, {**ORDER, "initial_state": "shipped"}, tmp_path / "none.csv")
    for batch in (0, -1, True, 1.5):
        with pytest.raises(InvalidRequest, match="`batch`"):
            ingest(store, ORDER, tmp_path / "none.csv", batch=batch)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="no time zone"):
        ingest(store, ORDER, tmp_path / "none.csv", time_zone="Berlin")
    with pytest.raises(LogError, match="cannot be read"):
        ingest(store, ORDER, tmp_path / "none.csv")


def test_columns_and_format_are_handed_on(store: Store, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("id;what;when;who\nA;pay;2024-05-01T12:00Z;web\n")
    columns = Columns(case="id", action="what", time="when", actor="who")
    ingest(store, ORDER, str(tmp_path / "log"), columns=columns, format="csv")
    assert told(store, "A") == [("pay", 0, "web")]


def test_a_report_keeps_the_first_refusals_and_counts_all(store: Store, tmp_path: Path) -> None:
    many = REFUSALS_KEPT + 5
    seen: list[Refusal] = []
    log = write_log(tmp_path / "log.csv", ((f"{number}", "ship", 0) for number in range(many)))
    report = ingest(store, ORDER, log, on_refused=seen.append)
    assert counts(report) == (many, 0, 0, 0, many, 0)
    assert [refusal.case for refusal in seen] == [str(number) for number in range(many)]
    assert report.refusals == tuple(seen[:REFUSALS_KEPT])


def test_progress(store: Store, tmp_path: Path) -> None:
    rows = [("A", "pay", 0), *[("A", "ship", 1)] * (2 * READING_STEP)]
    seen: list[Progress] = []
    log = write_log(tmp_path / "log.csv", rows)
    ingest(store, ORDER, log, batch=READING_STEP, on_progress=seen.append)
    total = len(rows)
    assert seen == [
        Progress("reading", READING_STEP, None),
        Progress("reading", 2 * READING_STEP, None),
        Progress("recording", READING_STEP, total),
        Progress("recording", 2 * READING_STEP, total),
        Progress("recording", total, total),
    ]
