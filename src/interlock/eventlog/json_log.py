"""JSON lines: one object on each line. Numbers are taken as the text they are written as."""

import json
from collections.abc import Iterator
from typing import NoReturn

from interlock.eventlog.attributes import Attributes
from interlock.eventlog.event import CUSTOMARY, Columns, Row
from interlock.eventlog.logfile import LogFile

_HINT = "each line holds one JSON object"


def json_rows(file: LogFile, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a log in JSON lines.

    Raises:
        LogError: a line is no object, or a part of the event in it no text.
    """
    attributes = Attributes(file, columns)
    decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_number).decode
    for line in file.lines():
        if line.isspace():
            continue
        try:
            record = decode(line)
        except (ValueError, RecursionError) as error:
            raise file.fault(f"is no JSON: {error}", _HINT) from None
        if not isinstance(record, dict):
            raise file.fault("is no JSON object", _HINT)
        case, action, time, actor = (
            _text(file, part, value, escaped="\\u" in line)
            for part, value in zip(CUSTOMARY, attributes.pick(record), strict=True)
        )
        yield case, action, time, actor, file.line
    attributes.finish()


def _text(file: LogFile, part: str, value: object, *, escaped: bool) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise file.fault(f"the {part} is a {kind}, not text", f"name another {part} column")
    if escaped and ("\0" in value or any("\ud800" <= char <= "\udfff" for char in value)):
        raise file.fault(f"the {part} holds NUL or half a character", "remove it")
    return value


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
