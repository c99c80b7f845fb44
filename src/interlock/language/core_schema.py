"""What plain text means, by the core schema of YAML 1.2 (section 10.3.2).

`true`, `null`, `12`, `0x1f` and `1.5e3` have a meaning of their own; `yes`, `on`, `1_000`, `12:30`
and `2026-01-01` are text. Every number and word of JSON means here what it means there.
"""

import re

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def is_number(text: str) -> bool:
    """Say whether plain `text` is a number; to read one costs the square of its length."""
    return bool(INTEGER.fullmatch(text) or FLOAT.fullmatch(text))


def meaning(text: str) -> str | int | float | bool | None:
    """Give the value that plain `text` stands for; a float may be infinite or not a number."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if INTEGER.fullmatch(text):
        return int(text, 0) if text[1:2] in ("o", "x") else int(text)
    if FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if NOT_FINITE.fullmatch(text) else text
