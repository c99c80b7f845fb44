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
    _check(value, "", 0)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decode_payload(content: bytes) -> Any:
    """Read back what `encode_payload` wrote."""
    return json.loads(content)


def canonical(value: object) -> bytes:
    """Write a JSON-like value so that equal ones have equal bytes, whatever their keys' order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _check(value: object, path: str, depth: int) -> None:
    where = f" at `{path}`" if path else ""
    if depth > _DEPTH_MAX:
        raise ValueError(f"is nested deeper than {_DEPTH_MAX}")
    match value:
        case None | bool() | int():
            pass
        case str():
            _check_text(value, where)
        case float():
            if value - value != 0:
                raise ValueError(f"holds the number {value}, which JSON cannot say{where}")
        case list():
            for position, item in enumerate(value):
                _check(item, f"{path}[{position}]", depth + 1)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"has a key that is not text but {type(key).__name__}{where}")
                _check_text(key, where)
                _check(item, f"{path}.{key}".removeprefix("."), depth + 1)
        case _:
            raise ValueError(f"holds a {type(value).__name__}, which JSON cannot say{where}")


def _check_text(text: str, where: str) -> None:
    if "\0" in text:
        raise ValueError(f"holds a NUL character{where}")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"holds a lone surrogate, which has no UTF-8 form{where}")
