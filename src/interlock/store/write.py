"""The plan of calls that are committed together, whatever they are."""

from collections.abc import Sequence

from interlock.store.attempt import Attempt, BirthAttempt, FireAttempt
from interlock.store.birth import bear
from interlock.store.context import Context, Outcome
from interlock.store.fire import fire_each
from interlock.store.plan import Plan


def write(context: Context, attempts: Sequence[Attempt]) -> Plan[list[Outcome]]:
    """Write attempts of both kinds; each outcome stands at its attempt's place."""
    fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
    if len(fires) == len(attempts):
        return (yield from fire_each(context, fires))
    births = [attempt for attempt in attempts if isinstance(attempt, BirthAttempt)]
    born = iter((yield from bear(context, births)))
    fired = iter((yield from fire_each(context, fires)) if fires else ())
    return [next(born if isinstance(attempt, BirthAttempt) else fired) for attempt in attempts]
