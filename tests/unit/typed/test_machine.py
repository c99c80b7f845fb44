"""A module of typed states on a real store."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import interlock
from interlock.language import define, loads
from tests.support.typed import ORDER, module_of

DUE = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def order() -> ModuleType:
    return module_of(ORDER)


@pytest.fixture
def engine(store: interlock.Store) -> interlock.Engine:
    return interlock.Engine(store)


@pytest.fixture
def draft(order: ModuleType, engine: interlock.Engine) -> Any:
    return order.Order.start(engine, ORDER, qty=3, subject_ref="s", actor_ref="ann")


def test_an_instance_is_the_class_of_its_state_with_its_data_in_pythons_types(
    order: ModuleType, engine: interlock.Engine
) -> None:
    draft = order.Order.start(
        engine,
        ORDER,
        qty=3,
        rate=2,
        class_="A",
        address={"city": "Ghent"},
        days=[DUE],
        actor_ref="ann",
    )
    assert type(draft) is order.Draft
    assert draft.state == "draft"
    assert draft.version == 1
    assert draft.data == order.OrderData(
        qty=3,
        note=None,
        total=Decimal(0),
        due_at=None,
        region="EU",
        class_="A",
        rate=2.0,
        address={"city": "Ghent", "paid": Decimal("1.5")},
        days=[DUE],
    )
    assert type(draft.data.rate) is float
    assert engine.store.snapshot(draft.id).actor_ref == "ann"


def test_an_event_gives_the_state_that_it_leads_to(order: ModuleType, draft: Any) -> None:
    new = draft.submit(qty=7, due_at=DUE, reason_="why", reason="told", actor_ref="bob")
    assert type(new) is order.OpenNew
    assert (new.data.qty, new.data.due_at) == (7, DUE)
    (entry,) = new.handle.history()
    assert (entry.actor_ref, entry.reason) == ("bob", "told")
    paid = new.pay(amount=Decimal("12.50"))
    assert type(paid) is order.OpenPaid
    assert paid.data.total == Decimal("12.50")
    done = paid.release(asserting=["QP"])
    assert type(done) is order.Done


def test_an_event_whose_branches_need_labels_passes_them_on(order: ModuleType, draft: Any) -> None:
    paid = draft.submit(qty=7, due_at=DUE).pay(amount=1)
    with pytest.raises(interlock.GuardNotSatisfied):
        paid.settle()
    assert type(paid.settle(asserting=["big"])) is order.Done


def test_a_state_that_is_out_of_date_sends_nothing(order: ModuleType, draft: Any) -> None:
    first = draft.note(text="one")
    with pytest.raises(interlock.VersionConflict):
        draft.note(text="two")
    assert first.data.note == "one"
    assert order.Order.of(draft) == first
    assert type(order.Order.of(draft).submit(qty=1, due_at=DUE)) is order.OpenNew


def test_the_same_key_gives_the_same_answer_again(order: ModuleType, draft: Any) -> None:
    for _ in range(2):  # though the instance has moved on by then
        assert type(draft.submit(qty=1, due_at=DUE, idempotency_key="k")) is order.OpenNew
    assert len(draft.handle.history()) == 1


def test_instances_are_found_by_subject_and_state(
    order: ModuleType, engine: interlock.Engine, draft: Any
) -> None:
    other = order.Order.start(engine, ORDER, qty=1).submit(qty=1, due_at=DUE)
    assert order.Order.find(engine) == [draft, other]
    assert order.Order.find(engine, subject_ref="s") == [draft]
    assert order.Order.find(engine, state="open.new") == [other]
    assert order.Order.find(engine, limit=1, after=draft.id) == [other]
    assert order.Order.get(engine, draft.id) == draft


def test_a_case_that_began_elsewhere_enters_in_its_state(
    order: ModuleType, engine: interlock.Engine
) -> None:
    paid = order.Order.adopt(engine, ORDER, "open.paid", qty=1, due_at=DUE, reason="moved")
    assert type(paid) is order.OpenPaid
    assert type(paid.cancel()) is order.Cancelled


def test_a_value_is_frozen_and_shows_what_it_is(order: ModuleType, draft: Any) -> None:
    with pytest.raises(AttributeError):
        draft.data.qty = 4
    assert repr(draft).startswith("Draft(version=1, data=OrderData(qty=3, address=None")


def changed(**keys: Any) -> interlock.Definition:
    return define({"machine": "order", "initial": "a", "states": {"a": {"on": {"x": "a"}}}} | keys)


@pytest.mark.parametrize(
    ("make", "refusal", "told"),
    [
        (lambda: changed(version=2), interlock.DefinitionChanged, "this is version `2` (digest"),
        (lambda: changed(machine="claim"), interlock.InvalidRequest, "`order`, not of `claim`"),
    ],
)
def test_another_definition_is_refused_and_nothing_begins(
    order: ModuleType,
    engine: interlock.Engine,
    make: Callable[[], interlock.Definition],
    refusal: type[interlock.Rejected],
    told: str,
) -> None:
    definition = make()
    for begin in (
        lambda: order.Order.start(engine, definition, qty=1),
        lambda: order.Order.adopt(engine, definition, "draft", qty=1),
        lambda: order.Order.get(engine, engine.start(definition).id),
        lambda: order.Order.of(engine.start(definition)),
    ):
        with pytest.raises(refusal) as caught:
            begin()
        assert told in str(caught.value)
    assert len(engine.store.instances()) == 2  # those that were begun without types
    assert order.Order.find(engine) == []


def test_a_definition_that_was_loaded_again_is_the_same(
    order: ModuleType, engine: interlock.Engine
) -> None:
    again = loads(ORDER.document)
    assert type(order.Order.start(engine, again, qty=1)) is order.Draft


def test_what_joins_a_transaction_is_read_in_it(order: ModuleType, path: Path) -> None:
    with interlock.open(f"sqlite:///{path}") as store:
        engine = interlock.Engine(store)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        draft = order.Order.start(engine, ORDER, qty=1, connection=connection)
        new = draft.submit(qty=2, due_at=DUE, connection=connection)
        assert type(new) is order.OpenNew
        assert order.Order.get(engine, new.id, connection) == new
        connection.execute("ROLLBACK")
        connection.close()
        with pytest.raises(interlock.NotKnown):
            order.Order.get(engine, new.id)
