"""What is inside a store on SQLite, for tests that reach in."""

from interlock.store.sqlite.database import Database
from interlock.store.store import Store


def inside(store: Store) -> Database:
    """Give the database of a store on SQLite."""
    database = store._database
    assert isinstance(database, Database)
    return database
