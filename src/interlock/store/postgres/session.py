"""A session with the server, as far as it needs no waiting: what is sent for a plan, and in what.

Each thing sent is one round trip. Where no statement needs the locks of another, none is spent on a
transaction: what is read is read by itself, and the last thing written, or all of it when its rows
are not asked for, goes in one piece that the server commits as it executes it.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from interlock.core.rejection import StorageFailure
from interlock.store.plan import Call, Plan, Statement, T
from interlock.store.statements import Query

Bound: TypeAlias = tuple[Query, Sequence[Any]]


def _plain(name: str, sql: str) -> Bound:
    return Query(name, (), sql, reads=False, answers=False), ()


_READ = _plain("BEGIN READ", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_BEGIN, _COMMIT = _plain("BEGIN", "BEGIN"), _plain("COMMIT", "COMMIT")
# Around a call. Who commits while `interlock.calling` is on has all of it rolled back, by a trigger
# of instances; and a savepoint that is still there afterwards says that nobody did, and lets go of
# those that were made meanwhile: the next call must not go back to them.
_MARK, _UNMARK = (
    _plain("mark", "SAVEPOINT interlock_call"),
    _plain("unmark", "RELEASE SAVEPOINT interlock_call"),
)
_CALLING = _plain("calling", "SELECT set_config('interlock.calling', 'on', true)")
_CALLED = _plain("called", "SELECT set_config('interlock.calling', 'off', true)")


class Sent(NamedTuple):
    """Statements sent in one piece, each with its parameters.

    Attributes:
        commits: once it was sent, only the records can say whether something was written.
    """

    statements: Sequence[Bound]
    commits: bool = False

    @property
    def answering(self) -> int:
        """Which of them gives the rows: the last but for a COMMIT or what a call asks for."""
        last = len(self.statements) - 1
        while last and self.statements[last] in (_COMMIT, _CALLING, _MARK):
            last -= 1
        return last


#: A piece is answered with its rows, a call with what it returned.
Session = Generator[Sent | Call, Any, T]


def reading(queries: Mapping[str, Query], plan: Plan[T]) -> Session[T]:
    """Read on one snapshot; a plan of one statement needs no transaction for that."""
    begun = False
    try:
        statement = next(plan)
        while True:
            if isinstance(statement, Call):
                if not begun:
                    yield Sent([_READ])
                    begun = True
                statement = plan.send((yield statement))
                continue
            if not statement.rows:
                statement = plan.send([])
                continue
            sent = [_bound(queries, statement)]
            if not begun and not statement.last:
                sent.insert(0, _READ)
                begun = True
            statement = plan.send((yield Sent(sent)))
    except StopIteration as end:
        answer: T = end.value
    if begun:
        yield Sent([_COMMIT])
    return answer


def writing(queries: Mapping[str, Query], plan: Plan[T], *, holds: bool) -> Session[T]:
    """Write in one transaction.

    Args:
        holds: it begins with the first statement, so that locks are held.
    """
    begun = calling = False
    owed: list[Bound] = []
    try:
        statement = next(plan)
        while True:
            if isinstance(statement, Call):
                if not calling:
                    yield Sent([*([] if begun else [_BEGIN]), *owed, _CALLING, _MARK])
                elif owed:  # of a call before it
                    yield Sent([*owed, _MARK])
                begun, calling, owed = True, True, [_UNMARK]
                statement = plan.send((yield statement))
                continue
            if not statement.rows:
                statement = plan.send([])
                continue
            query = _query(queries, statement)
            if calling:
                owed.append(_CALLED)
                calling = False
            owed.append((query, _parameters(statement)))
            if query.answers:
                begins = not begun and (
                    holds or len(owed) > 1 or not (query.reads or statement.last)
                )
                if begins:
                    owed.insert(0, _BEGIN)
                    begun = True
                commits = statement.last and not query.reads
                if commits and begun:
                    owed.append(_COMMIT)
                calling = statement.calls and begun
                if calling:
                    owed += [_CALLING, _MARK]
                sent, owed = owed, []
                found = yield Sent(sent, commits)
                begun = begun and not commits
            else:
                found = []
            statement = plan.send(found)
    except StopIteration as end:
        answer: T = end.value
    if calling:
        owed.append(_CALLED)
    if owed and not begun and len(owed) == 1:
        yield Sent(owed, commits=True)
    elif owed or begun:
        yield Sent([*([] if begun else [_BEGIN]), *owed, _COMMIT], commits=bool(owed))
    return answer


def joining(queries: Mapping[str, Query], plan: Plan[T]) -> Session[T]:
    """Take part in a transaction that is open: each statement is sent as it comes."""
    try:
        statement = next(plan)
        while True:
            if isinstance(statement, Call):
                statement = plan.send((yield statement))
                continue
            found = (yield Sent([_bound(queries, statement)])) if statement.rows else []
            statement = plan.send(found)
    except StopIteration as end:
        answer: T = end.value
        return answer


def check_written(query: Query, parameters: Sequence[Any], rows: int | None) -> None:
    """Refuse a write that did not take place, though nothing said so.

    Raises:
        StorageFailure: fewer rows were written than were sent.
    """
    sent = len(parameters[0]) if query.name.endswith("/many") else 1
    if (rows or 0) < sent * query.changes:
        what = f"`{query.name}` had no effect: a trigger or rule was added that takes writes away"
        raise StorageFailure(f"{what}; run `verify`", kind="damaged")


def _bound(queries: Mapping[str, Query], statement: Statement) -> Bound:
    return _query(queries, statement), _parameters(statement)


def _query(queries: Mapping[str, Query], statement: Statement) -> Query:
    return queries[statement.name if len(statement.rows) == 1 else f"{statement.name}/many"]


def _parameters(statement: Statement) -> Sequence[Any]:
    rows = statement.rows
    return rows[0] if len(rows) == 1 else [list(column) for column in zip(*rows, strict=True)]
