"""Plans listened in on: what they ask for, and what they are told."""

from collections.abc import Callable
from typing import TypeVar

from interlock.store.plan import Plan, Row, Statement

T = TypeVar("T")


def through(plan: Plan[T], rows_for: Callable[[Statement, list[Row]], list[Row]]) -> Plan[T]:
    """Give a plan that asks what `plan` asks, and tells it what `rows_for` makes of the rows."""
    try:
        statement = next(plan)
        while True:
            rows = yield statement
            assert isinstance(statement, Statement)  # a store calls nothing
            statement = plan.send(rows_for(statement, rows))
    except StopIteration as end:
        answer: T = end.value
        return answer
