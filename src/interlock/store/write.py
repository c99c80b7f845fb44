"""The plan of calls that are committed together, whatever they are."""

from collections.abc import Mapping, Sequence

from interlock.store.attempt import Attempt, BirthAttempt, FireAttempt
from interlock.store.birth import bear
from interlock.store.context import Context, Written
from interlock.store.fire import fire
from interlock.store.plan import Plan
from interlock.store.standings import Standing


def write(
    context: Context, attempts: Sequence[Attempt], known: Mapping[str, Standing]
) -> Plan[Written]:
    """Write attempts of both kinds; each outcome stands at its attempt's place."""
    fires = [attempt for attempt in attempts if isinstance(attempt, FireAttempt)]
    if len(fires) == len(attempts):
        return fire(context, fires, known)
    births = [attempt for attempt in attempts if isinstance(attempt, BirthAttempt)]
    if len(births) == len(attempts):
        return bear(context, births)
    return _write_both(context, attempts, births, fires, known)


def _write_both(
    context: Context,
    attempts: Sequence[Attempt],
    births: Sequence[BirthAttempt],
    fires: Sequence[FireAttempt],
    known: Mapping[str, Standing],
) -> Plan[Written]:
    born, _ = yield from bear(context, births)
    fired, standings = yield from fire(context, fires, known)
    each = {BirthAttempt: iter(born), FireAttempt: iter(fired)}
    return Written([next(each[type(attempt)]) for attempt in attempts], standings)
