"""Against an earlier report: what the records alone cannot tell.

A store is verified and its report kept; then somebody with the file in hand removes or replaces
parts of it so well that each instance left tells a sound story. Cases V04 and V07.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

import interlock
from interlock.store import verify
from interlock.store.report import read_heads
from interlock.store.verify import Report
from tests.support.machines import BATCH, TOGGLE
from tests.support.tampering import (
    LONG,
    START,
    File,
    Found,
    Ticking,
    copy_healthy,
    found,
    healthy,
    tampering,
)

PAGES = [2, 3, 5, 7, 2000]


@pytest.fixture
def since(path: Path, tmp_path: Path) -> Path:
    """A report of the healthy store that stands at `path`."""
    copy_healthy(path)
    report = tmp_path / "since.json"
    with interlock.open(f"sqlite:///{path}") as store:
        assert store.verify(report=report).ok
    return report


def compared(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch, id: str | None = None
) -> Report:
    """Verify against an earlier report; the size of a page makes no difference."""
    reports = []
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        for rows in PAGES:
            monkeypatch.setattr(verify, "PAGE_ROWS", rows)
            reports.append(store.verify(id, since=since))
    assert [found(report) for report in reports] == [found(reports[0])] * len(PAGES)
    return reports[0]


def clever(path: Path, tamper: Callable[[File], object]) -> None:
    """Tamper so that the records alone tell nothing."""
    with tampering(path) as file:
        tamper(file)
    with interlock.open(f"sqlite:///{path}?mode=ro") as store:
        assert store.verify().ok


def cut(file: File, name: str, last: int) -> None:
    file.remove_entries(name, last + 1)
    file.forge(name)
    if not file.entries(name):
        file.set_instance(name, current_state="off")


def test_nothing_is_found_where_nothing_happened(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared(path, since, monkeypatch).ok
    for id in healthy()[1].values():
        assert compared(path, since, monkeypatch, id) == Report(
            1, next(head.number for head in read_heads(since) if head.instance == id), 0, ()
        )


def test_nothing_is_found_where_the_store_grew(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = healthy()[1]
    with interlock.open(f"sqlite:///{path}") as store:
        for name in ("long", "last", "keyed", "blank-2", "purged"):
            store.fire(names[name], "go", reason="after the report")
            store.fire(names[name], "go")
        store.fire(names["under-way"], "release", guard_satisfied=True)
        store.fire(names["new"], "begin-testing")
        store.instantiate(BATCH)
        store.fire(store.instantiate(TOGGLE), "go")
    assert compared(path, since, monkeypatch).ok
    # An instance with an id before all others is lawful too.
    with interlock.open(f"sqlite:///{path}", clock=Ticking(START.replace(year=2000))) as store:
        store.instantiate(TOGGLE)
    assert compared(path, since, monkeypatch).ok


@pytest.mark.parametrize("last", [0, 1, 11, LONG - 1])
def test_a_tail_cut_is_found_with_both_heads(
    last: int, path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clever(path, lambda file: cut(file, "long", last))
    report = compared(path, since, monkeypatch)
    assert found(report) == [("long", None, 5)]
    assert found(compared(path, since, monkeypatch, healthy()[1]["long"])) == [("long", None, 5)]
    heads = {head.instance: head for head in read_heads(since)}
    expected = heads[healthy()[1]["long"]].digest.hex()
    with tampering(path) as file:
        actual = file.instance("long")["head_digest"].hex()
    (finding,) = report.findings
    assert expected[:16] in finding.what
    assert actual[:16] in finding.what
    assert str(LONG) in finding.what
    assert str(last) in finding.what
    assert "cut" in finding.what


def test_the_last_three_records_deleted_are_found(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case V04: directly in the database; the row of the instance betrays it as well."""
    with tampering(path) as file:
        file.remove_entries("long", LONG - 2)
    assert ("long", None, 5) in found(compared(path, since, monkeypatch))
    assert {name for name, *_ in found(compared(path, since, monkeypatch))} == {"long"}


def test_a_tail_cut_and_grown_again_to_the_same_length_is_found(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clever(path, lambda file: cut(file, "long", LONG - 3))
    long = healthy()[1]["long"]
    with interlock.open(f"sqlite:///{path}") as store:
        for _ in range(3):
            store.fire(long, "go", "actor-x")
        assert store.verify().ok
    assert found(compared(path, since, monkeypatch)) == [("long", LONG, 5)]
    with interlock.open(f"sqlite:///{path}") as store:
        store.fire(long, "go")
    report = compared(path, since, monkeypatch)
    assert found(report) == [("long", LONG, 5)]
    assert "expected head" in report.findings[0].what


def test_a_history_rewritten_in_the_middle_is_found_at_its_head(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewrite(file: File) -> None:
        file.set_entry("long", 3, actor_ref="mallory")
        file.forge("long")

    clever(path, rewrite)
    assert found(compared(path, since, monkeypatch)) == [("long", LONG, 5)]
    assert found(compared(path, since, monkeypatch, healthy()[1]["long"])) == [("long", LONG, 5)]


@pytest.mark.parametrize(
    "gone",
    [
        ["new"],
        ["last"],
        ["new", "last"],
        ["long"],
        ["ended", "under-way"],
        ["blank", "blank-2"],
        ["keyed"],
        ["new", "ended", "under-way", "blank"],
    ],
    ids=" and ".join,
)
def test_an_instance_removed_with_all_its_rows_is_found(
    gone: list[str], path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(file: File) -> None:
        for name in gone:
            file.remove_instance(name, wholly=True)

    clever(path, remove)
    expected: list[Found] = [(name, None, 10) for name in gone]
    assert found(compared(path, since, monkeypatch)) == sorted(expected)
    for name, id in healthy()[1].items():
        alone = compared(path, since, monkeypatch, id)
        assert found(alone) == ([(name, None, 10)] if name in gone else [])


def test_every_instance_removed_with_all_its_rows_is_found(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(file: File) -> None:
        for name in file.names:
            file.remove_instance(name, wholly=True)

    clever(path, remove)
    expected = [(name, None, 10) for name in sorted(healthy()[1])]
    assert found(compared(path, since, monkeypatch)) == expected


def test_an_empty_store_in_the_place_of_the_old_one_is_found(
    since: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interlock.open(f"sqlite:///{tmp_path / 'new.db'}"):
        pass
    expected = [(name, None, 10) for name in sorted(healthy()[1])]
    assert found(compared(tmp_path / "new.db", since, monkeypatch)) == expected


@pytest.mark.parametrize(
    ("name", "place"), [("new", None), ("blank", None), ("last", 4), ("ended", 2)]
)
def test_another_birth_in_the_place_of_the_old_one_is_found(
    name: str, place: int | None, path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(file: File) -> None:
        file.set_instance(name, actor_ref="mallory", instantiated_at=1)
        file.forge(name)

    clever(path, replace)
    assert found(compared(path, since, monkeypatch)) == [(name, place, 5 if place else 1)]


def test_another_birth_is_found_though_entries_follow_it(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(file: File) -> None:
        file.set_instance("blank-2", actor_ref="mallory")
        file.forge("blank-2")

    with interlock.open(f"sqlite:///{path}") as store:
        store.fire(healthy()[1]["blank-2"], "go")
        store.fire(healthy()[1]["blank-2"], "go")
    clever(path, replace)
    assert found(compared(path, since, monkeypatch)) == [("blank-2", None, 1)]


def test_another_declaration_with_the_digests_made_anew_is_found(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move(file: File) -> None:
        file.set_instance("under-way", declaration_digest=file.declaration("twin")["digest"])
        file.forge("under-way")

    clever(path, move)
    assert found(compared(path, since, monkeypatch)) == [("under-way", 1, 5)]


@pytest.mark.parametrize("root", ["", "0", "elsewhere", "\U0010ffff"])
def test_an_instance_filed_elsewhere_takes_no_other_for_gone(
    root: str, path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tampering(path) as file:
        file.set_instance("blank-2", root=root)
    report = compared(path, since, monkeypatch)
    assert not report.ok
    assert {name for name, *_ in found(report)} == {"blank-2"}


def test_an_instance_under_another_tenant_is_gone(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tampering(path) as file:
        file.set_instance("blank-2", tenant="other")
    assert found(compared(path, since, monkeypatch)) == [("blank-2", None, 10), (None, None, 10)]


def test_findings_of_the_records_stand_beside_those_of_the_report(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tampering(path) as file:
        file.remove_instance("ended", wholly=True)
        file.set_entry("long", 12, actor_ref="mallory")
        cut(file, "last", 2)
    assert found(compared(path, since, monkeypatch)) == [
        ("ended", None, 10),
        ("last", None, 5),
        ("long", 12, 5),
    ]


def test_a_report_made_with_findings_serves_as_well(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for an instance of which the declaration was lost meanwhile."""
    copy_healthy(path)
    since = tmp_path / "since.json"
    with tampering(path) as file:
        file.execute(
            "DELETE FROM declarations WHERE digest = ?", file.declaration("twin")["digest"]
        )
    with interlock.open(f"sqlite:///{path}") as store:
        before = store.verify(report=since)
    assert found(before) == [("twin", None, 1), ("twin-ended", None, 1), (None, None, 1)]
    assert found(compared(path, since, monkeypatch)) == found(before)
    with tampering(path) as file:
        file.remove_instance("twin", wholly=True)
    assert ("twin", None, 10) in found(compared(path, since, monkeypatch))


def test_a_report_of_another_store_finds_its_instances_gone(
    path: Path, since: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.json"
    with interlock.open("sqlite://") as store:
        id = store.instantiate(BATCH)
        store.verify(report=other)
    report = compared(path, other, monkeypatch)
    assert [(one.instance, one.invariant) for one in report.findings] == [(id, 10)]


def test_a_lawful_destruction_of_payloads_is_no_finding(
    path: Path, since: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clever(path, lambda file: file.execute("UPDATE payloads SET salt = NULL, content = NULL"))
    assert compared(path, since, monkeypatch).ok
