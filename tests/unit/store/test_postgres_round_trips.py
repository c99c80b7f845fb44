"""What a call on PostgreSQL costs: pieces sent to the server, each of which is one round trip."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

import interlock
from interlock.store.postgres import async_database
from interlock.store.postgres import database as module
from interlock.testing import Blocking, ManualClock
from tests.support.engines import machine
from tests.support.machines import TOGGLE
from tests.support.postgres import database, with_settings


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        yield url


class Wire:
    """Notes the names of the statements in each piece that is sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[list[str]] = []
        send, send_async = module._send, async_database._send

        def noted(connection: Any, piece: Any) -> Any:
            self.sent.append([query.name for query, _ in piece.statements])
            return send(connection, piece)

        async def noted_async(connection: Any, piece: Any) -> Any:
            self.sent.append([query.name for query, _ in piece.statements])
            return await send_async(connection, piece)

        monkeypatch.setattr(module, "_send", noted)
        monkeypatch.setattr(async_database, "_send", noted_async)

    def of(self, call: Any, *arguments: Any, **named: Any) -> list[list[str]]:
        """Make a call and give what it sent."""
        self.sent.clear()
        call(*arguments, **named)
        return [*self.sent]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(monkeypatch)


@pytest.fixture(params=["sync", "async", "each alone"])
def store(url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "async":
        with Blocking(lambda: interlock.open_async(url)) as store:
            yield store
    else:
        settings = {"together": "no"} if request.param == "each alone" else {}
        with interlock.open(with_settings(url, **settings)) as store:
            yield store


def test_a_fire_on_an_instance_that_was_met_is_one_round_trip(store: Any, wire: Wire) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    (sent,) = wire.of(store.fire, id, "go", actor_ref="ann")
    assert len(sent) == 1
    assert sent[0] in ("append_free_entry", "append_entry")


def test_a_hundred_fires_in_a_list_are_one_statement(store: Any, wire: Wire) -> None:
    ids = [store.instantiate(TOGGLE) for _ in range(100)]
    fires = [interlock.Fire(id, "go") for id in ids]
    store.fire_many(fires)
    assert wire.of(store.fire_many, fires) == [["append_entry/many"]]
    told = [fire._replace(reason="why") for fire in fires]
    assert wire.of(store.fire_many, told) == [
        ["BEGIN", "append_entry/many", "append_payload/many", "COMMIT"]
    ]


def test_an_entry_reads_by_whole_keys_however_long_the_run_that_it_is_part_of(url: str) -> None:
    """The first entry's plan is kept; and the key finds every version that a run leaves behind."""
    other = {**TOGGLE, "transitions": TOGGLE["transitions"][::-1]}
    with interlock.open(url) as store:
        ids = [store.instantiate(machine) for machine in (TOGGLE, other)]
        before = keys_read(url)
        for id in ids:
            for _ in range(100):
                store.fire(id, "go")
            store.fire_many([interlock.Fire(id, "go")] * 1000)
            store.fire_many([interlock.Fire(id, "go") for id in ids] * 100)
    read = {name: count - before[name] for name, count in keys_read(url).items()}
    fires = 2 * (100 + 1000 + 200)
    assert read.pop("declared_transitions_pkey") <= fires + 10
    # Some 500, or 2,000 while a snapshot elsewhere (say, of a vacuum) keeps every version; and
    # 37,000 or 62,000 where a run does not find its instance without the key.
    assert read.pop("instances_pkey") < 2 * fires
    assert read.pop("declarations_pkey") <= fires + 20  # a foreign key, within a run
    assert not any(read.values()), read


def keys_read(url: str) -> dict[str, int]:
    """Count what was read from each index; sessions tell it when they end."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'interlock'"
        )
        return dict(
            connection.execute(
                "SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes"
                " WHERE schemaname = 'interlock' AND indexrelname <> 'interlock_migrations_pkey'"
            ).fetchall()
        )


def test_an_instance_that_was_not_met_costs_one_more(url: str, store: Any, wire: Wire) -> None:
    with interlock.open(url) as other:
        first, second = other.instantiate(TOGGLE), other.instantiate(TOGGLE)
        other.fire(first, "go")
    store.fire(first, "go")  # by now the declaration is known
    assert [len(sent) for sent in wire.of(store.fire, second, "go")] == [1, 1]


def test_a_birth_is_one_round_trip_after_looking_for_its_declaration(
    store: Any, wire: Wire
) -> None:
    store.instantiate(TOGGLE)
    assert wire.of(store.instantiate, TOGGLE) == [["read_declaration"], ["append_instance"]]


def test_a_current_state_is_one_round_trip(store: Any, wire: Wire) -> None:
    id = store.instantiate(TOGGLE)
    assert wire.of(store.current, id) == [["read_snapshot"]]


def test_a_refusal_is_decided_on_what_is_read(store: Any, wire: Wire) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")

    def refused() -> None:
        with pytest.raises(interlock.InvalidTransition):
            store.fire(id, "no such")

    assert wire.of(refused) == [["read_snapshot"]]


def test_a_lost_race_is_decided_again_under_the_lock(url: str, store: Any, wire: Wire) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    with interlock.open(url) as other:
        other.fire(id, "go")
    (first, *again) = wire.of(store.fire, id, "go")
    assert first[0] in ("append_free_entry", "append_entry")
    assert again == [["BEGIN", "lock_snapshot"], ["append_entry", "COMMIT"]]
    assert store.history(id)[-1].sequence_number == 3


def test_the_handles_of_tenants_share_one_pool_and_set_a_connection_when_it_served_another(
    url: str,
) -> None:
    acme, bolt = interlock.open(url, tenant="acme"), interlock.open(url, tenant="bolt")
    with acme, bolt, psycopg.connect(url, autocommit=True) as watcher:
        pools = {store._database._pool for store in (acme, bolt)}  # type: ignore[attr-defined]
        assert len(pools) == 1
        set_for: dict[int, list[str]] = {}  # by connection: the pool may have made a second one
        original = module.Database._set_tenant

        def noted(self: Any, connection: Any) -> None:
            set_for.setdefault(connection.info.backend_pid, []).append(self.tenant)
            original(self, connection)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.Database, "_set_tenant", noted)
            for store in (acme, acme, bolt, bolt, acme):
                store.instances()
        assert 2 <= sum(map(len, set_for.values())) <= 5
        for tenants in set_for.values():
            assert all(one != other for one, other in pairwise(tenants))
        (count,) = watcher.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'interlock' AND datname = current_database()"
        ).fetchone() or (None,)
        assert count is not None
        assert count <= 2


@pytest.mark.parametrize(
    "verb", ["fire", "fire_many", "fire_each", "instantiate", "instantiate_each"]
)
def test_no_verb_writes_to_a_schema_that_was_altered(verb: str) -> None:
    with database() as url:
        with interlock.open(url) as store:
            id = store.instantiate(TOGGLE)
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("DROP TRIGGER history_update ON interlock.history")
        calls: dict[str, Any] = {
            "fire": (id, "go"),
            "fire_many": ([interlock.Fire(id, "go")],),
            "fire_each": ([interlock.Fire(id, "go")],),
            "instantiate": (TOGGLE,),
            "instantiate_each": (TOGGLE, [interlock.Birth()]),
        }
        for face in (
            interlock.open(url),
            Blocking(lambda: interlock.open_async(url)),
        ):
            with face as altered, pytest.raises(interlock.StorageFailure) as caught:
                getattr(altered, verb)(*calls[verb])
            assert caught.value.kind == "damaged"


def test_a_schema_with_a_quote_in_its_name_is_joined_too() -> None:
    with database() as url, interlock.open(url, schema="o'clock") as store:
        id = store.instantiate(TOGGLE)
        with psycopg.connect(url) as connection:
            store.fire(id, "go", connection=connection)
        assert len(store.history(id)) == 1


def test_a_session_in_another_zone_and_style_is_joined_too(url: str) -> None:
    with interlock.open(url) as store, psycopg.connect(url) as connection:
        connection.execute("SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'")
        id = store.instantiate(TOGGLE, connection=connection)
        assert store.fire(id, "go", connection=connection) == "on"


def test_many_verifications_at_once_share_one_database_for_them(url: str) -> None:
    async def main() -> None:
        async with interlock.open_async(url) as store:
            await asyncio.gather(*(store.verify() for _ in range(6)))

    before = sum(users for _, users in module._pools._pools.values())
    asyncio.run(main())
    assert sum(users for _, users in module._pools._pools.values()) == before


def test_a_connection_that_an_exception_of_others_broke_off_is_not_used_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a signal handler, which may come between two steps of a statement."""
    with interlock.open(with_settings(url, pool_max=1)) as store:
        id = store.instantiate(TOGGLE)
        assert store.current(id) == "off"
        send = module._send

        def broken_off(connection: Any, piece: Any) -> Any:
            broken.append(connection)
            query, parameters = piece.statements[0]
            connection.channel._begin(query, parameters)  # sent, and nobody waits for the answer
            raise ArithmeticError("handler")

        broken: list[Any] = []
        monkeypatch.setattr(module, "_send", broken_off)
        with pytest.raises(ArithmeticError):
            store.current(id)
        monkeypatch.setattr(module, "_send", send)
        assert broken[0].closed
        assert store.current(id) == "off"


@pytest.mark.parametrize("together", ["yes", "no"])
def test_an_event_that_calls_nothing_is_one_round_trip(url: str, wire: Wire, together: str) -> None:
    """Whatever comes with it: data, timers, steps that follow by themselves."""
    definition = machine("""
data: {n: {type: integer, default: 0}}
initial: a
states:
  a: {after: {P1D: late}, on: {go: {to: b, set: {n: "data.n + 1"}}, plain: {to: c}}}
  b: {always: c}
  c: {on: {go: {to: b, set: {n: "data.n + 1"}}, plain: {to: c}, back: a}}
  late: {final: true}
""")
    with interlock.open(with_settings(url, together=together)) as store:
        engine = interlock.Engine(store)
        engine.tick()
        order = engine.start(definition)
        (walked,) = wire.of(order.send, "go")
        assert (walked[0], walked[-1], len(walked)) == ("BEGIN", "COMMIT", 7)
        entry = "append_unheld_entry" if together == "yes" else "append_entry"
        assert wire.of(order.send, "plain") == [[entry]]
        assert order.data == {"n": 1}


def test_an_event_with_hooks_is_two_round_trips_beside_what_they_send(url: str, wire: Wire) -> None:
    definition = interlock.loads("""
machine: hooked
version: 1
initial: a
states: {a: {on_exit: [one], on_enter: [two], on: {go: {to: a, do: [one]}, stay: {do: [one]}}}}
""")
    with interlock.open(url) as store:
        engine = interlock.Engine(store)
        for name in ("one", "two"):
            engine.hook(name)(lambda tx: None)
        order = engine.start(definition)
        order.send("go")
        assert wire.of(order.send, "stay") == [
            ["BEGIN", "lock_snapshot", "calling", "mark"],
            ["unmark", "called", "append_entry", "COMMIT"],
        ]
        assert wire.of(order.send, "go") == [
            ["BEGIN", "lock_snapshot", "calling", "mark"],
            ["unmark", "mark"],
            ["unmark", "called", "append_entry", "calling", "mark"],
            ["unmark", "called", "COMMIT"],
        ]


def test_a_timer_holds_its_instance_before_its_own_row(url: str, wire: Wire) -> None:
    """As events do: in the other order they would wait for each other."""
    clock = ManualClock()
    definition = interlock.loads(
        "machine: timed\nversion: 1\ninitial: a\nstates: {a: {after: {1h: b}}, b: {}}"
    )
    with interlock.open(url, clock=clock) as store:
        engine = interlock.Engine(store)
        engine.tick()
        engine.start(definition)
        clock.advance("2h")
        sent = wire.of(engine.tick)
        (run_out,) = [piece for piece in range(len(sent)) if "clear_timer" in sent[piece]]
        assert any("lock_snapshot" in piece for piece in sent[:run_out])
