"""The contract that ships, `interlock.testing.StoreContract`, on every store and both faces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import interlock
from interlock.testing import Blocking, StoreContract
from tests.support.postgres import APP, at, database, make_store, with_settings


class OnAFile:
    @pytest.fixture(autouse=True)
    def _place(self, path: Path) -> None:
        self.url = f"sqlite:///{path}?synchronous=normal"


class TestFile(OnAFile, StoreContract):
    def open_store(self, **how: Any) -> interlock.Store:
        return interlock.open(self.url, **how)


class TestFileAsync(OnAFile, StoreContract):
    def open_store(self, **how: Any) -> Blocking:
        return Blocking(lambda: interlock.open_async(self.url, **how))


class TestMemory(StoreContract):
    handles = "own"

    def open_store(self, **how: Any) -> interlock.Store:
        return interlock.open("sqlite://", **how)


class TestMemoryAsync(StoreContract):
    handles = "own"

    def open_store(self, **how: Any) -> Blocking:
        return Blocking(lambda: interlock.open_async("sqlite://", **how))


class OnPostgres:
    """One database for a class, and in it a fresh schema for each test; all go with it."""

    url: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _database(cls) -> Iterator[None]:
        with database() as cls.url:
            yield

    @pytest.fixture(autouse=True)
    def _schema(self, _database: None) -> None:
        self.schema = f"s{uuid4().hex}"


class TestPostgres(OnPostgres, StoreContract):
    def open_store(self, **how: Any) -> interlock.Store:
        return interlock.open(self.url, schema=self.schema, **how)


class TestPostgresAsync(OnPostgres, StoreContract):
    def open_store(self, **how: Any) -> Blocking:
        return Blocking(lambda: interlock.open_async(self.url, schema=self.schema, **how))


class TestPostgresAsTheApplication(OnPostgres, StoreContract):
    """By the role that may append and no more, on a store that its owner made."""

    @pytest.fixture(autouse=True)
    def _made(self, _schema: None) -> None:
        make_store(self.url, self.schema)
        self.place = with_settings(at(self.url, user=APP), mode="rw")

    def open_store(self, **how: Any) -> interlock.Store:
        return interlock.open(self.place, schema=self.schema, **how)
