"""The contract of a store, whole: what every store of Interlock does.

A subclass says how its store is opened, and pytest runs the tests on it:

    class TestFiles(StoreContract):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"sqlite:///{tmp_path}/store.db"

        def open_store(self, **how):
            return interlock.open(self.url, **how)

Each test begins on an empty database, and moves time by hand. Source: the State Machine atom;
DESIGN, sections 2, 4 and 5.
"""

from interlock.testing.births import Births
from interlock.testing.fires import Fires
from interlock.testing.handles import Handles
from interlock.testing.keys import Keys
from interlock.testing.lists import Lists
from interlock.testing.reads import Reads
from interlock.testing.records import Records
from interlock.testing.tenants import Tenants
from interlock.testing.texts import Texts
from interlock.testing.times import Times
from interlock.testing.together import Together


class StoreContract(
    Births, Fires, Lists, Keys, Reads, Times, Texts, Together, Handles, Tenants, Records
):
    """All parts of the contract; see `Part` for what a subclass gives and may say."""
