"""The plan of fires: which statements it needs."""

import pytest

from interlock.store.plan import Row, Statement
from interlock.store.store import Store
from tests.support.inside import inside
from tests.support.machines import TOGGLE
from tests.support.plans import through


def test_a_key_is_looked_up_but_a_known_instance_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = store.instantiate(TOGGLE)
    store.fire(id, "go")
    names: list[str] = []
    write = inside(store).write

    def listen(statement: Statement, rows: list[Row]) -> list[Row]:
        names.append(statement.name)
        return rows

    monkeypatch.setattr(store._database, "write", lambda plan: write(through(plan, listen)))
    store.fire(id, "go", idempotency_key="key")
    assert names == ["read_keyed_entry", "append_entry"]
