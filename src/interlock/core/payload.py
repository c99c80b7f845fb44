"""Payloads: JSON-like values that callers hand over to be kept, as bytes.

Only what JSON can say is accepted, so that what comes back equals what was given: no sets, no
tuples, no numbers that are not finite, no keys that are not text.
"""

import json
from typing import Any

_DEPTH_MAX = 100  # well inside the recursion limit of every JSON reader


def encode_payload(value: object) -> bytes:
    """Write `value` as JSON in UTF-8.

    Raises:
        ValueError: some part is not JSON-like; the sentence gives its path.
    """
    return json.dumps(_plain(value, "", 0), ensure_ascii=False, separators=(",", ":")).encode()


def decode_payload(content: bytes) -> Any:
    """Read back what `encode_payload` wrote."""
    return json.loads(content)


def canonical(value: object) -> bytes:
    """Write a JSON-like value so that equal ones have equal bytes, whatever their keys' order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: object, path: str, depth: int) -> object:
    """Copy a value into the plain types that it is made of, so that what is checked is written.

    A subclass may say something else of itself each time that it is asked; what it holds counts.
    """
    where = f" at `{path}`" if path else ""
    if depth > _DEPTH_MAX:
        raise ValueError(f"is nested deeper than {_DEPTH_MAX}")
    match value:
        case None | bool():
            return value
        case int():
            return int.__int__(value)
        case str():
            return _plain_text(value, where)
        case float():
            number = float.__float__(value)
            if number - number != 0:
                raise ValueError(f"holds the number {number}, which JSON cannot say{where}")
            return number
        case list():
            items = enumerate(list.__iter__(value))
            return [_plain(item, f"{path}[{place}]", depth + 1) for place, item in items]
        case dict():
            copy = {}
            for key, item in dict.items(value):
                if not isinstance(key, str):
                    raise ValueError(f"has a key that is not text but {type(key).__name__}{where}")
                name = _plain_text(key, where)
                copy[name] = _plain(item, f"{path}.{name}".removeprefix("."), depth + 1)
            return copy
        case _:
            raise ValueError(f"holds a {type(value).__name__}, which JSON cannot say{where}")


def _plain_text(value: str, where: str) -> str:
    text = str.__str__(value)
    if "\0" in text:
        raise ValueError(f"holds a NUL character{where}")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"holds a lone surrogate, which has no UTF-8 form{where}")
    return text
