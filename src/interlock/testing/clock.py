"""Time in tests: a clock that is moved by hand, and what lets timers run out by it.

clock = ManualClock()
store = interlock.open("sqlite://", clock=clock)
engine = interlock.Engine(store)
…
elapse(engine, "P3D")          # three days pass, and each timer runs out at its moment
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from interlock.core.instant import from_microseconds, parse_instant, to_microseconds
from interlock.engine.engine import Engine
from interlock.engine.timers import FIRST, read_due
from interlock.language.duration import DurationError, parse_duration
from interlock.store.plan import Plan

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until it is moved. Safe to share between threads.

    Args:
        now: aware; where it begins.
    """

    def __init__(self, now: datetime = NOON) -> None:
        self._now = parse_instant(now)
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            return self._now

    def __repr__(self) -> str:
        return f"<ManualClock at {self().isoformat()}>"

    @property
    def now(self) -> datetime:
        """The moment that it shows, aware UTC."""
        return self()

    def advance(self, by: timedelta | str) -> datetime:
        """Move it on, and give what it shows then.

        Args:
            by: a length of time, or its text as timers have it: `P3D`, `1h30m`.

        Raises:
            ValueError: it would go back, or the text is no duration.
        """
        length = length_of(by)
        with self._lock:
            self._now += length
            return self._now

    def move_to(self, moment: datetime) -> datetime:
        """Move it to a moment, and give that.

        Raises:
            ValueError: it would go back, or the moment has no offset.
        """
        moment = parse_instant(moment)
        with self._lock:
            if moment < self._now:
                raise ValueError(f"the clock does not go back from {self._now} to {moment}")
            self._now = moment
            return self._now


def length_of(by: timedelta | str) -> timedelta:
    """Read a length of time.

    Raises:
        ValueError: it is negative, or its text is no duration.
    """
    if isinstance(by, str):
        try:
            return timedelta(microseconds=parse_duration(by))
        except DurationError as fault:
            raise ValueError(f"`{by}` {fault}") from None
    if by < timedelta(0):
        raise ValueError(f"the clock does not go back by {-by}")
    return by


def elapse(engine: Engine, by: timedelta | str, *, clock: ManualClock | None = None) -> int:
    """Let time pass, with a sweep at each moment at which a timer is due, and one at the end.

    A timer that failed is tried again at the next of these sweeps that it is due for.

    Args:
        clock: of the engine's store, where it cannot be found there.

    Returns:
        How many timers took a transition.

    Raises:
        ValueError: as `ManualClock.advance`; also if the store has no such clock.
    """
    found = clock or engine.runs.context.clock
    if not isinstance(found, ManualClock):
        raise ValueError("the store has no ManualClock: interlock.open(url, clock=ManualClock())")
    end, fired, swept = found() + length_of(by), 0, set[datetime]()
    while (moment := _next_due(engine, end)) is not None:
        if moment <= found() and moment in swept:
            break  # it waits for something else: another process knows what it calls
        swept.add(moment)
        found.move_to(max(moment, found()))
        fired += engine.tick()
    found.move_to(max(end, found()))
    return fired + engine.tick()


def _next_due(engine: Engine, end: datetime) -> datetime | None:
    """Give the earliest moment up to an end at which a timer is due that has not failed."""
    tenant = engine.runs.context.tenant

    def read() -> Plan[datetime | None]:
        after = FIRST
        while page := (yield from read_due(tenant, to_microseconds(end), after)):
            for timer in page:
                if not timer.failures:
                    return from_microseconds(timer.next_try_at)
            after = page[-1]
        return None

    return engine.runs.look(read)


@contextmanager
def ticking(engine: Engine, *, every: float = 0.01) -> Iterator[None]:
    """Sweep timers in a thread of this process for as long as the block lasts.

    What a sweep raises is raised again at the end of the block.

    Args:
        every: seconds between two sweeps.
    """
    done, failures = threading.Event(), list[BaseException]()

    def sweep() -> None:
        try:
            while not done.wait(every):
                engine.tick()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=sweep, name="interlock-ticking", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]
