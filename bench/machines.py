"""Machine documents of any size, in the manner of real ones, for measuring the compiler.

Half of the transitions are branches of choices, two to four of them, over the fields of a claim:
amounts, counts, places, dates that may be absent, payloads of events. The rest are plain events,
a timer here and there, and changes of data.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import yaml

Document = dict[str, Any]

SIZES = (2, 4, 0, 3, 2, 0, 3)  # branches of a state's choice: two on average

DATA = {
    "amount": {"type": "decimal", "scale": 2, "minimum": 0},
    "limit": {"type": "decimal", "scale": 2, "minimum": 0},
    "qty": {"type": "integer", "minimum": 0, "maximum": 10_000},
    "score": {"type": "number", "minimum": 0, "maximum": 1},
    "region": {"type": "string", "enum": ["EU", "US", "APAC"], "default": "EU"},
    "express": {"type": "boolean"},
    "owner": {"type": "string"},
    "due_at": {"type": "date-time", "optional": True},
}
EVENTS = {"review": {"grade": {"type": "integer", "minimum": 1, "maximum": 5}}}


def _by_amount(seed: int, count: int) -> list[str]:
    """Cut amounts into bands."""
    cuts = [100 * (place + 1) + seed for place in range(count - 1)]
    first, last = f"data.amount < {cuts[0]}", f"data.amount >= {cuts[-1]}"
    between = [f"data.amount >= {low} && data.amount < {high}" for low, high in pairwise(cuts)]
    return [first, *between, last]


def _by_region(seed: int, count: int) -> list[str]:
    whens = [
        'data.region == "EU" && data.qty > {0}',
        'data.region == "EU" && data.qty <= {0}',
        'data.region in ["US"] && !data.express',
        'data.region == "APAC" || data.region == "US" && data.express',
    ]
    return [when.format(seed) for when in whens[:count]]


def _by_date(seed: int, count: int) -> list[str]:
    whens = [
        "!has(data.due_at)",
        "has(data.due_at) && data.due_at < now",
        "has(data.due_at) && data.due_at >= now && data.qty < {0}",
        "has(data.due_at) && data.due_at >= now && data.qty >= {0}",
    ]
    return [when.format(seed) for when in whens[:count]]


def _by_grade(seed: int, count: int) -> list[str]:
    whens = [
        "event.grade == 5",
        "event.grade == 4 && data.score >= 0.{0}",
        "event.grade == 4 && data.score < 0.{0}",
        "event.grade <= 3",
    ]
    return [when.format(seed) for when in whens[:count]]


def _by_limit(seed: int, count: int) -> list[str]:
    """Compare fields with each other: bounds of single values do not tell these apart."""
    whens = [
        "data.amount + {0} < data.limit && data.amount >= 0",
        "data.limit <= {0} && data.amount >= data.limit",
        "data.limit > {0} && data.limit <= data.amount",
        "data.limit > data.amount && data.limit <= data.amount + {0} && data.limit > {0}",
    ]
    return [when.format(seed) for when in whens[:count]]


PLAIN: tuple[Callable[[int, int], list[str]], ...] = (_by_amount, _by_region, _by_date, _by_grade)


def document(states: int, *, compared: int = 0) -> Document:
    """Make a machine of so many states, and four times as many transitions.

    Args:
        compared: one choice in so many compares fields with each other, which needs the solver.
    """
    choices = 0
    made: Document = {}
    for number in range(states - 1):
        size = SIZES[number % len(SIZES)]
        on: Document = {}
        if size:
            choices += 1
            is_compared = compared and choices % compared == 0
            whens = _by_limit if is_compared else PLAIN[choices % len(PLAIN)]
            event = "review" if whens is _by_grade else "decide"
            on[event] = [
                {"to": _name(number + 1 + place, states), "when": when, "name": f"way{place}"}
                for place, when in enumerate(whens(number % 90 + 10, size))
            ]
            on[event][0]["set"] = {"qty": "data.qty + 1", "owner": "actor"}
        for place in range(size or 2):
            on[f"go{place}"] = _name(number * 7 + place * 13 + 1, states)
        made[_name(number, states)] = {"on": on}
    made[_name(states - 1, states)] = {"final": True}
    return {
        "machine": "claims",
        "version": 1,
        "data": DATA,
        "events": EVENTS,
        "initial": _name(0, states),
        "states": made,
    }


def _name(number: int, states: int) -> str:
    return f"s{number % states:04}"


def yaml_text(states: int, *, compared: int = 0) -> str:
    """Give it as a file would hold it."""
    return yaml.safe_dump(document(states, compared=compared), sort_keys=False, width=100)
