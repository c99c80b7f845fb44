"""Plans and procedures: what a store operation does, written once and driven by any runner.

A plan is one transaction. It is a generator that yields the statements it wants executed, each a
name and rows of parameters; it is sent the rows that came back, and what it returns is the answer.
When the plan raises, nothing was written. The SQL behind a name belongs to the database's dialect.
A plan of an engine also yields calls: hooks and guards in Python, with the connection in hand.

    def current(key):
        rows = yield Statement("read_snapshot", [key], last=True)
        return rows[0][2]

A procedure is a call: transactions one after another, and what to do when one fails. It yields
transactions and pauses, and is sent their answers or thrown their errors. So a synchronous and an
asynchronous runner, on SQLite or on PostgreSQL, drive the same plans and the same procedures.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from interlock.core.rejection import StorageFailure

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]


class Statement(NamedTuple):
    """A named statement, executed once for each row of parameters; its results are joined.

    Attributes:
        last: no other follows, so a database may execute and commit it in one round trip.
        calls: a call follows, most likely, which may be made ready for in the same round trip.
    """

    name: str
    rows: Sequence[Row]
    last: bool = False
    calls: bool = False


class Call(NamedTuple):
    """A function of the engine's user, called within the transaction with its connection."""

    function: Callable[[Any], Any]


#: Statements are answered with their rows, calls with what they returned.
Plan: TypeAlias = Generator[Statement | Call, Any, T]


class Transaction(NamedTuple):
    """A plan to be driven in a transaction.

    Attributes:
        make: makes the plan; called again should the transaction have to be repeated.
        writes: it does not only read.
        holds: rows that it locks stay locked until it ends.
        since: when the call began, by `time.monotonic()`: a database that may be away answers it
            within its bound from then; 0 is now.
        lenient: text that is not UTF-8 is read as well, its odd bytes as surrogates.
    """

    make: Callable[[], Plan[Any]]
    writes: bool = False
    holds: bool = False
    lenient: bool = False
    since: float = 0.0


class Pause(NamedTuple):
    """A wait before the next attempt."""

    seconds: float


Procedure: TypeAlias = Generator[Transaction | Pause, Any, T]


class CommitUncertain(Exception):
    """A transaction failed when it may have been committed: only the records can say.

    Attributes:
        failure: what to say if it was not.
        answer: what the plan gave, true if it was.
        lost: with the connection, so what was sent may still be executed.
        since: when the call began; see `Transaction`.
    """

    since = 0.0

    def __init__(self, failure: StorageFailure, answer: Any, *, lost: bool = False) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.answer = answer
        self.lost = lost
