"""The contract of `verify`: what a store wrote is found whole, and what is missing is found out."""

from pathlib import Path
from typing import Any

from interlock.core.rejection import InvalidRequest
from interlock.store.attempt import Birth, Fire
from interlock.testing.base import BATCH, TOGGLE, Opening, Part, Verbs, begin, refusal, untouched


class Records(Part):
    def test_an_empty_store_is_whole(self, store: Verbs) -> None:
        report = store.verify()
        assert (report.ok, report.instances, report.entries) == (True, 0, 0)
        assert (report.count, report.findings) == (0, ())

    def test_what_a_store_wrote_is_found_whole_and_counted(self, store: Verbs) -> None:
        ids = begin(store, BATCH, [Birth("ann", f"B-{n}") for n in range(5)])
        store.fire_many([Fire(id, "begin-testing", reason="why") for id in ids])
        store.fire(ids[0], "release", guard_satisfied=True, idempotency_key="k")
        store.instantiate(TOGGLE, instance_metadata={"a": 1}, idempotency_key="k")
        with untouched(store):
            report = store.verify()
        assert (report.ok, report.instances, report.entries) == (True, 6, 6)
        assert report.as_dict() == {
            "ok": True,
            "instances": 6,
            "entries": 6,
            "count": 0,
            "findings": [],
        }

    def test_one_instance_is_verified_alone(self, store: Verbs) -> None:
        ids = [store.instantiate(TOGGLE) for _ in range(3)]
        store.fire_many([Fire(id, "go") for id in ids] + [Fire(ids[1], "go")])
        report = store.verify(ids[1])
        assert (report.ok, report.instances, report.entries) == (True, 1, 2)

    def test_an_earlier_report_holds_while_the_store_only_grew(
        self, store: Verbs, tmp_path: Path
    ) -> None:
        id, kept = store.instantiate(TOGGLE), tmp_path / "monday.json"
        store.fire(id, "go")
        store.verify(report=kept)
        store.fire(id, "go")
        store.instantiate(TOGGLE)
        report = store.verify(since=kept)
        assert (report.ok, report.instances, report.entries) == (True, 2, 2)
        assert store.verify(id, since=str(kept)).ok

    def test_an_earlier_report_finds_an_instance_that_is_gone(
        self, another: Opening, tmp_path: Path
    ) -> None:
        """Gone for a tenant who never had it: nothing can be removed through a store."""
        one, two, kept = another(tenant="a"), another(tenant="b"), tmp_path / "monday.json"
        id = one.instantiate(TOGGLE)
        one.fire(id, "go")
        one.verify(report=kept)
        found: list[Any] = []
        report = two.verify(since=kept, on_finding=found.append)
        assert (report.ok, report.count, [*report.findings]) == (False, 1, found)
        assert (found[0].instance, found[0].invariant) == (id, 10)
        assert one.verify(since=kept).ok

    def test_what_is_no_report_is_refused(self, store: Verbs, tmp_path: Path) -> None:
        kept = tmp_path / "monday.json"
        kept.write_text("no report\n")
        refusal(InvalidRequest, store.verify, since=kept)
        refusal(InvalidRequest, store.verify, since=tmp_path / "missing.json")

    def test_a_listener_is_told_how_far_the_walk_is(self, store: Verbs) -> None:
        id, heard = store.instantiate(TOGGLE), list[int]()
        store.fire_many([Fire(id, "go")] * 3)
        store.verify(on_page=heard.append)
        assert heard[-1] == 3
        assert heard == sorted(heard)
