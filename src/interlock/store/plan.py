"""Plans: what a store operation does, written once and driven by any runner.

A plan is a generator. It yields the statements that it wants executed, each a name and rows of
parameters; it is sent the rows that came back, and what it returns is the answer. A plan is one
transaction: the runner begins before the first statement and commits after the last, and when the
plan raises, nothing was written. The SQL behind a name belongs to the database's dialect, so a
synchronous and an asynchronous runner, on SQLite or elsewhere, drive the same plan.

    def current(key):
        rows = yield Statement("read_snapshot", [key])
        return rows[0][2]
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]


class Statement(NamedTuple):
    """A named statement, executed once for each row of parameters; its results are joined."""

    name: str
    rows: Sequence[Row]


Plan: TypeAlias = Generator[Statement, list[Row], T]
