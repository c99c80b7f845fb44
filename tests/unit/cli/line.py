"""`interlock` run in this process, for tests, with a store on SQLite or on PostgreSQL."""

import json
import sqlite3
import uuid
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

import interlock
from interlock.cli import program
from tests.support.postgres import at, server, with_settings
from tests.support.tampering import triggers_dropped

MACHINE = "batch.machine.json"

#: For what is of files, or is the same whatever the store.
on_sqlite = pytest.mark.parametrize("run", ["sqlite"], indirect=True)


class CommandLine(ABC):
    """Runs `interlock` in this process.

    Attributes:
        url: the store that `INTERLOCK_STORE` names; nothing is there at first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = self.url_of("store")

    @abstractmethod
    def url_of(self, name: str) -> str:
        """Give the URL of a store, which is not there yet."""

    @abstractmethod
    def is_made(self, name: str = "store") -> bool:
        """Whether there is anything where a store would be."""

    @abstractmethod
    def forge(self, statement: str) -> None:
        """Change the store by hand, as if it had no triggers."""

    def __call__(self, *arguments: object, **options: Any) -> Result:
        options = {"env": {"INTERLOCK_STORE": self.url}, "prog_name": "interlock", **options}
        return CliRunner().invoke(program, [*map(str, arguments)], **options)

    def ok(self, *arguments: object, **options: Any) -> str:
        """Run a command that must succeed, and give what it printed."""
        result = self(*arguments, **options)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def json(self, *arguments: object, **options: Any) -> Any:
        return json.loads(self.ok("--json", *arguments, **options))

    def refused(self, reason: str, *arguments: object, code: int = 1, **options: Any) -> str:
        """Run a command that must be refused, in words and in JSON; give the words."""
        result = self(*arguments, **options)
        assert result.exit_code == code, result.output
        assert f"interlock: {reason}: " in result.stderr
        told = self("--json", *arguments, **options)
        assert told.exit_code == code
        assert json.loads(told.stderr.splitlines()[-1])["reason"] == reason
        return result.stderr

    def misused(self, *arguments: object, **options: Any) -> str:
        """Run a command that is wrong usage; give what it said."""
        result = self(*arguments, **options)
        assert result.exit_code == 2, result.output
        assert "interlock: wrong usage: " in result.stderr
        assert result.stdout == ""
        return result.stderr

    def open(self) -> interlock.Store:
        return interlock.open(self.url)

    def declare(self, declaration: object, name: str = "odd.machine.json") -> str:
        (self.folder / name).write_text(json.dumps(declaration), encoding="utf-8")
        return name


class OnSQLite(CommandLine):
    """With a store in a file."""

    def url_of(self, name: str) -> str:
        return f"sqlite:///{name}.db"

    def is_made(self, name: str = "store") -> bool:
        return (self.folder / f"{name}.db").exists()

    def forge(self, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / "store.db")) as database:
            with triggers_dropped(database):
                database.execute(statement)
            database.commit()


class OnPostgres(CommandLine):
    """With a store in a schema of a database that others use as well."""

    def __init__(self, folder: Path, database: str) -> None:
        self._database, self._own = database, uuid.uuid4().hex[:12]
        super().__init__(folder)

    def url_of(self, name: str) -> str:
        return with_settings(self._database, schema=self._schema(name))

    def is_made(self, name: str = "store") -> bool:
        query = "SELECT FROM pg_namespace WHERE nspname = %s"
        with psycopg.connect(self._database) as connection:
            return bool(connection.execute(query, [self._schema(name)]).fetchall())

    def forge(self, statement: str) -> None:
        name = psycopg.conninfo.conninfo_to_dict(self._database)["dbname"]
        with psycopg.connect(at(server(), database=str(name))) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"SET search_path = {self._schema('store')}")
            connection.execute(statement)

    def _schema(self, name: str) -> str:
        return f"{name}_{self._own}"
