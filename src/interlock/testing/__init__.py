"""For tests: generated tests of a machine, time moved by hand, and the contract of every store.

    TestOrder = machine_tests("order.machine.yaml")

    class TestFiles(StoreContract):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"sqlite:///{tmp_path}/store.db"

        def open_store(self, **how):
            return interlock.open(self.url, **how)

It needs pytest (`pip install 'interlock[testing]'`), which nothing else of Interlock does.
"""

import pytest

# So that a failed comparison shows both its sides here, as in a test module.
_SUBJECTS = ("births", "fires", "lists", "keys", "reads", "times", "texts", "together", "handles")
for _name in (*_SUBJECTS, "tenants", "records", "base", "contract"):
    pytest.register_assert_rewrite(f"interlock.testing.{_name}")

from interlock.testing.blocking import Blocking  # noqa: E402 - after it is said what to rewrite
from interlock.testing.clock import ManualClock, elapse, ticking  # noqa: E402
from interlock.testing.contract import StoreContract  # noqa: E402
from interlock.testing.machines import machine_tests  # noqa: E402
from interlock.testing.trial import Trial  # noqa: E402
from interlock.witness.case import Begin, row  # noqa: E402
from interlock.witness.model import Outcome, Send, Tick  # noqa: E402

__all__ = [
    "Begin",
    "Blocking",
    "ManualClock",
    "Outcome",
    "Send",
    "StoreContract",
    "Tick",
    "Trial",
    "elapse",
    "machine_tests",
    "row",
    "ticking",
]
