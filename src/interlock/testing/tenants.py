"""The contract of tenants: each has a store of its own on the same database."""

import json
from pathlib import Path
from typing import Any

from interlock.core.rejection import IdempotencyConflict, InvalidRequest, NotKnown
from interlock.store.attempt import Birth, Fire
from interlock.testing.base import (
    BATCH,
    TOGGLE,
    Opening,
    Part,
    all_at_once,
    begin,
    everything,
    numbers,
    refusal,
    told,
    untouched,
)

# No two are the same tenant; the first is that of a store that names none.
NAMES = ["", "a", "a:b", "A", "a ", "%", "_", "a%", "a/b", "a.b", "'", "caf\u00e9", "cafe\u0301",
         "\U0001f469\u200d\U0001f52c", "x" * 1024]  # fmt: skip


class Tenants(Part):
    def test_an_instance_of_one_tenant_is_not_known_to_another(self, another: Opening) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        id, own = one.instantiate(BATCH), two.instantiate(BATCH)
        with untouched(one), untouched(two):
            calls: list[tuple[Any, tuple[Any, ...]]] = [
                (two.fire, (id, "begin-testing")),
                (two.fire_many, ([Fire(id, "begin-testing")],)),
                (two.fire_many, ([Fire(own, "begin-testing"), Fire(id, "begin-testing")],)),
                (two.current, (id,)),
                (two.history, (id,)),
                (two.history, (id, {"nope": 1})),
                (two.read_declaration, (id,)),
                (two.snapshot, (id,)),
                (two.verify, (id,)),
            ]
            for call, given in calls:
                foreign = refusal(NotKnown, call, *given)
                assert foreign.instance_id == id
                unknown = str(foreign).replace(id, "unknown")
                assert unknown == str(refusal(NotKnown, two.current, "unknown"))
            (outcome,) = two.fire_each([Fire(id, "begin-testing")])
            assert isinstance(outcome, NotKnown)
        assert one.fire(id, "begin-testing") == "testing"
        refusal(NotKnown, two.fire, id, "reject-batch")

    def test_each_tenant_lists_its_own_instances(self, another: Opening) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        mine = begin(one, TOGGLE, [Birth(subject_ref="x")] * 7)
        theirs = begin(two, TOGGLE, [Birth(subject_ref="x")] * 5)
        filters: list[dict[str, Any]] = [
            {},
            {"state": "off"},
            {"subject_ref": "x"},
            {"definition": TOGGLE},
        ]
        for how in filters:
            assert {row.id for row in one.instances(**how)} == {*mine}
            assert {row.id for row in two.instances(**how)} == {*theirs}
        assert {row.id for row in everything(one, limit=2)} == {*mine}

    def test_the_keys_of_tenants_are_their_own(self, another: Opening) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        mine = one.instantiate(TOGGLE, "ann", idempotency_key="k")
        theirs = two.instantiate(BATCH, "bob", idempotency_key="k")
        assert mine != theirs
        assert one.instantiate(TOGGLE, "ann", idempotency_key="k") == mine
        assert two.instantiate(BATCH, "bob", idempotency_key="k") == theirs
        refusal(IdempotencyConflict, two.instantiate, TOGGLE, "ann", idempotency_key="k")

    def test_tenants_may_use_the_same_declaration(self, another: Opening) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        ids = (one.instantiate(BATCH), two.instantiate(BATCH))
        assert json.dumps(one.read_declaration(ids[0])) == json.dumps(BATCH)
        assert json.dumps(two.read_declaration(ids[1])) == json.dumps(BATCH)
        assert one.snapshot(ids[0]).definition == two.snapshot(ids[1]).definition
        assert two.fire(ids[1], "begin-testing") == "testing"
        assert one.current(ids[0]) == "sampled"

    def test_names_that_glue_together_alike_stay_apart(self, another: Opening) -> None:
        for tenants, keys in (
            (("a:b", "a"), ("c", "b:c")),
            (("a.b", "a"), ("c", "b.c")),
            (("a/b", "a"), ("c", "b/c")),
            (("a", ""), ("k", "ak")),
        ):
            stores = [another(tenant=tenant) for tenant in tenants]
            ids = [
                store.instantiate(TOGGLE, subject_ref=key, idempotency_key=key)
                for store, key in zip(stores, keys, strict=True)
            ]
            assert ids[0] != ids[1]
            for store, key, id in zip(stores, keys, ids, strict=True):
                assert [row.id for row in store.instances(subject_ref=key)] == [id]
                store.fire(id, "go", idempotency_key=key)
            for store, id in zip(stores, reversed(ids), strict=True):
                refusal(NotKnown, store.current, id)
                refusal(NotKnown, store.current, f"{tenants[0]}:{id}")

    def test_the_name_of_a_tenant_is_kept_byte_for_byte(self, another: Opening) -> None:
        stores = {name: another(tenant=name) for name in NAMES}
        ids = {name: store.instantiate(TOGGLE, name or None) for name, store in stores.items()}
        for name, store in stores.items():
            (row,) = everything(store)
            assert (row.id, row.actor_ref) == (ids[name], name or None)
            assert store.fire(row.id, "go") == "on"
            report = store.verify()
            assert (report.ok, report.instances, report.entries) == (True, 1, 1)

    def test_a_store_that_names_no_tenant_sees_none_of_theirs(self, another: Opening) -> None:
        plain, named = another(), another(tenant="a")
        mine, theirs = plain.instantiate(TOGGLE), named.instantiate(TOGGLE)
        refusal(NotKnown, plain.fire, theirs, "go")
        refusal(NotKnown, named.fire, mine, "go")
        assert [row.id for row in everything(plain)] == [mine]
        assert another(tenant="").current(mine) == "off"
        assert plain.verify().ok

    def test_what_is_no_name_of_a_tenant_is_refused(self, another: Opening) -> None:
        for value in (" ", "\t", "a\0b", "\ud800", "x" * 1025, 7, b"a", None):
            assert refusal(InvalidRequest, another, tenant=value).argument == "tenant", value

    def test_verification_is_of_the_tenants_own_records(self, another: Opening) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        ids = begin(one, TOGGLE, [Birth()] * 3)
        one.fire_many([Fire(id, "go") for id in ids])
        two.fire(two.instantiate(TOGGLE), "go")
        mine, theirs = one.verify(), two.verify()
        assert (mine.ok, mine.instances, mine.entries) == (True, 3, 3)
        assert (theirs.ok, theirs.instances, theirs.entries) == (True, 1, 1)

    def test_a_dump_of_another_tenants_instance_is_refused(
        self, another: Opening, tmp_path: Path
    ) -> None:
        one, two = another(tenant="a"), another(tenant="b")
        id, own, file = one.instantiate(BATCH), two.instantiate(BATCH), tmp_path / "dump.jsonl"
        for chosen in ([id], [own, id]):
            foreign = refusal(NotKnown, two.dump, file, chosen)
            assert foreign.instance_id == id
            unknown = str(refusal(NotKnown, two.dump, file, ["unknown"]))
            assert str(foreign).replace(id, "unknown") == unknown
            assert [*tmp_path.glob("dump*")] == []
        assert two.dump(file, [own]).instances == two.dump(file).instances == 1

    def test_tenants_that_write_at_once_do_not_mix(self, another: Opening) -> None:
        stores = {tenant: another(tenant=tenant) for tenant in ("", "a", "b", "c")}
        ids = {tenant: store.instantiate(TOGGLE) for tenant, store in stores.items()}

        def work(tenant: str) -> None:
            for number in range(10):
                stores[tenant].fire(ids[tenant], "go", tenant or None, reason=f"r{number}")
                stores[tenant].instantiate(TOGGLE, tenant or None)

        done = all_at_once([lambda tenant=tenant: work(tenant) for tenant in stores])  # type: ignore[misc]
        assert done == [None] * 4
        for tenant, store in stores.items():
            assert {row.actor_ref for row in everything(store)} <= {tenant or None, None}
            history = store.history(ids[tenant])
            assert numbers(history) == list(range(1, 11))
            assert {entry.actor_ref for entry in history} == {tenant or None}
            assert len(told(store)) == 11
