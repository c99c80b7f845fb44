"""Random stores: dumped and restored they are equal, wherever pages and transactions end."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock.store import restore, story, transfer
from interlock.store.store import Store
from tests.support.copies import destroy, told
from tests.support.postgres import database
from tests.support.strategies import examples, machines, names

REFERENCES = st.none() | names()
VALUES = st.recursive(
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | names(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(names(), inner, min_size=1, max_size=3)
    ),
    max_leaves=5,
)


def act(data: st.DataObject, store: Store, keys: list[str]) -> None:
    """Do something at random: begin an instance, fire, or destroy a payload."""
    known = store.instances()
    key = f"key-{len(keys)}" if data.draw(st.booleans()) else None
    keys.append("")
    if not known or data.draw(st.integers(0, 3)) == 0:
        references = data.draw(st.tuples(REFERENCES, REFERENCES))
        metadata = data.draw(st.none() | VALUES)
        store.instantiate(data.draw(machines()), *references, metadata, idempotency_key=key)
        return
    one = data.draw(st.sampled_from(known))
    if one.metadata is not None and data.draw(st.integers(0, 5)) == 0:
        destroy(store, one.id, one.id)
        return
    rows = store.read_declaration(one.id)["transitions"]
    for row in (row for row in rows if row["from_state"] == one.state):
        correlation, causation, worker = data.draw(st.tuples(REFERENCES, REFERENCES, REFERENCES))
        store.fire(
            one.id,
            row["action"],
            data.draw(REFERENCES),
            True,
            idempotency_key=key,
            reason=data.draw(REFERENCES),
            correlation_id=correlation,
            causation_id=causation,
            worker_id=worker,
        )
        return


def dumped(store: Store) -> str:
    stream = io.StringIO()
    store.dump(stream)
    return stream.getvalue()


def report(store: Store) -> Any:
    stream = io.StringIO()
    assert store.verify(report=stream).ok
    return stream.getvalue()


def check_equal(copy: Store, store: Store) -> None:
    """INVARIANT: histories, reports with all heads, and further dumps are equal."""
    assert told(copy) == told(store)
    assert report(copy) == report(store)
    assert dumped(copy) == dumped(store)


@examples(30)
@given(data=st.data())
def test_a_restored_store_is_equal(data: st.DataObject) -> None:
    keys: list[str] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        interlock.open("sqlite://") as store,
        interlock.open("sqlite://") as copy,
    ):
        patch.setattr(transfer, "PAGE_ROWS", data.draw(st.integers(2, 6)))
        patch.setattr(transfer, "PAYLOADS_AT_ONCE", data.draw(st.integers(1, 3)))
        patch.setattr(restore, "BATCH_ROWS", data.draw(st.integers(1, 9)))
        patch.setattr(story, "WINDOW", data.draw(st.integers(1, 3)))
        for _ in range(data.draw(st.integers(1, 3))):  # each time a little more is there
            for _ in range(data.draw(st.integers(0, 12))):
                act(data, store, keys)
            text = dumped(store)
            copy.restore(io.StringIO(text))
            for one in copy.instances():  # what was destroyed since is no affair of a restore
                if one.metadata != store.snapshot(one.id).metadata:
                    destroy(copy, one.id, one.id)
            check_equal(copy, store)
            assert copy.restore(io.StringIO(text))[4:6] == (0, 0)
        some = data.draw(st.lists(st.sampled_from([one.id for one in store.instances()] or [""])))
        chosen = {id for id in some if id}
        stream = io.StringIO()
        store.dump(stream, chosen)
        with interlock.open("sqlite://") as part:
            part.restore(io.StringIO(stream.getvalue()))
            assert {one.id for one in part.instances()} == chosen
            part.restore(io.StringIO(text))
            check_equal(part, store)


@pytest.mark.slow
@examples(8)
@given(data=st.data())
def test_it_is_equal_on_the_other_database(data: st.DataObject) -> None:
    keys: list[str] = []
    with interlock.open("sqlite://") as store:
        for _ in range(data.draw(st.integers(0, 25))):
            act(data, store, keys)
        with (  # all is drawn: threads of its pool, which use `random`, are in nobody's way now
            database() as url,
            interlock.open(url) as other,
            interlock.open("sqlite://") as back,
        ):
            other.restore(io.StringIO(dumped(store)))
            check_equal(other, store)
            back.restore(io.StringIO(dumped(other)))
            check_equal(back, store)
