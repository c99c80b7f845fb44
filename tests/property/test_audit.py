"""The audit of records against random stories: a true one has no fault.

That a changed one has is tried change by change in `tests/faults`.
"""

from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock import Birth, Fire
from tests.support.machines import Declaration
from tests.support.strategies import examples, machines


@given(machines(), st.data())
@examples(60)
def test_a_true_story_has_no_fault(declaration: Declaration, data: st.DataObject) -> None:
    with interlock.open("sqlite://") as store:
        ids = store.instantiate_each(
            declaration, [Birth("ann", instance_metadata=[n]) for n in range(3)]
        )
        actions = [row["action"] for row in declaration["transitions"]] or ["go"]
        fires = [
            Fire(
                str(data.draw(st.sampled_from(ids))),
                data.draw(st.sampled_from(actions)),
                data.draw(st.sampled_from([None, "bob"])),
                data.draw(st.booleans()),
                reason=data.draw(st.sampled_from([None, "why"])),
            )
            for _ in range(data.draw(st.integers(0, 15)))
        ]
        done = sum(isinstance(outcome, str) for outcome in store.fire_each(fires))
        report = store.verify()
        assert report.ok, report.findings
        assert (report.instances, report.entries) == (3, done)
        for id in ids:
            assert store.verify(str(id)).ok
