"""Make `orders.csv`: a made-up log of a mail-order shop, the same on every run.

    python examples/make_orders.py > examples/orders.csv

Sixty orders go their ways beside one another. Five of them skip a step, which `orders.machine.json`
does not allow. A scanner of the warehouse has a slow clock, so some parcels were shipped, by their
times, before they were picked; and the shop's clock shows whole minutes, so some times are equal.
"""

import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple, TextIO

ORDERS = 60
HEADER = ("case", "action", "time", "actor")
BEGIN = datetime(2025, 3, 3, 8, 0, tzinfo=UTC)
SLOW_CLOCK = timedelta(hours=3)

PATHS = (
    ("pay", "pick", "ship", "deliver", "close"),
    ("pay", "pick", "ship", "deliver", "close"),
    ("pay", "pick", "put-back", "pick", "ship", "deliver", "close"),
    ("pay", "pick", "ship", "deliver", "ask-return", "refund"),
    ("pay", "pick", "ship", "deliver", "close"),
    ("cancel",),
)
SKIPPING = {
    7: ("pay", "ship", "deliver", "close"),  # never picked
    19: ("pick", "ship", "deliver", "close"),  # never paid
    28: ("pay", "pick", "deliver", "close"),  # never shipped
    41: ("pay", "pick", "ship", "deliver", "refund"),  # never asked to return
    53: ("pay", "pick", "ship", "close"),  # never delivered
}
STAFF = {
    "pay": ("web-shop",),
    "cancel": ("web-shop", "service-okafor"),
    "pick": ("picker-lind", "picker-abe"),
    "put-back": ("picker-abe",),
    "ship": ("scanner-1", "scanner-2"),
    "deliver": ("courier-north", "courier-south"),
    "close": ("web-shop",),
    "ask-return": ("web-shop", "service-okafor"),
    "refund": ("service-moreau",),
}


class Line(NamedTuple):
    """One event; the log has it at `logged_at`, whatever time it bears."""

    logged_at: datetime
    order: str
    action: str
    time: datetime
    actor: str


def order_lines(number: int, random: Random) -> Iterator[Line]:
    path = SKIPPING.get(number) or random.choice(PATHS)
    logged_at = BEGIN + timedelta(minutes=random.randrange(0, 5 * 24 * 60))
    for action in path:
        actor = random.choice(STAFF[action])
        time = logged_at - SLOW_CLOCK if actor == "scanner-2" else logged_at
        yield Line(logged_at, f"A-{1000 + number}", action, time, actor)
        logged_at += timedelta(minutes=random.choice((0, 15, 90, 600, 1500)))


def write_orders(out: TextIO) -> None:
    random = Random(20260302)  # noqa: S311  the numbers are for show, and the same on every run
    lines = [line for number in range(1, ORDERS + 1) for line in order_lines(number, random)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for _, order, action, time, actor in sorted(lines, key=lambda line: line.logged_at):
        writer.writerow((order, action, f"{time:%Y-%m-%dT%H:%MZ}", actor))


if __name__ == "__main__":
    write_orders(sys.stdout)
