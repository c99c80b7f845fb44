"""Moments in time: aware datetimes inside, whole UTC microseconds in the record.

A moment without an offset is refused, never guessed. Text in ISO 8601 with an offset is accepted
wherever a datetime is, because callers of the command line and of JSON have nothing else.
"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND  # of the year 1
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND  # of the year 9999


def parse_instant(value: object) -> datetime:
    """Read an aware datetime, or its ISO 8601 text, as a moment in UTC.

    Raises:
        ValueError: it is neither, has no offset from UTC, or lies outside years 1 to 9999; the
            sentence says which.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("is not an ISO 8601 time such as `2026-05-01T12:00:00Z`") from None
    if not isinstance(value, datetime):
        raise ValueError(f"is not a datetime but {type(value).__name__}")
    if value.tzinfo is UTC:
        return value
    try:
        offset = value.utcoffset()
        moment = None if offset is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999") from None
    except Exception as error:  # a time zone of somebody's own making
        raise ValueError(f"has a time zone that fails ({type(error).__name__})") from error
    if moment is None:
        raise ValueError("has no offset from UTC; say `…Z` or `…+02:00`")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Count whole microseconds from the epoch to `moment`, which is aware."""
    return (moment - EPOCH) // MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Turn microseconds since the epoch back into the same moment, in UTC."""
    return EPOCH + timedelta(microseconds=count)
