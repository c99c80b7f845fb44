"""Lines of Python as the usual formatters leave them, 88 columns wide."""

import unicodedata
from collections.abc import Iterable, Sequence

WIDTH = 88
INDENT = "    "


def bracketed(head: str, parts: Sequence[str], tail: str, indent: str = "") -> list[str]:
    """Write parts between brackets: in one line if they fit, else one a line.

    Args:
        head, tail: what stands before and behind, with the brackets.
    """
    line = f"{indent}{head}{', '.join(parts)}{tail}"
    if not parts or width(line) <= WIDTH:
        return [line]
    inside = [f"{indent}{INDENT}{part}," for part in parts]
    return [f"{indent}{head}", *inside, f"{indent}{tail}"]


def union(head: str, parts: Sequence[str]) -> list[str]:
    """Write `head = A | B | …`."""
    line = f"{head} = {' | '.join(parts)}"
    if width(line) <= WIDTH:
        return [line]
    inside = f"{INDENT}{' | '.join(parts)}"
    if width(inside) <= WIDTH or len(parts) == 1:
        return [f"{head} = (", inside, ")"] if len(parts) > 1 else [line]
    first, *rest = parts
    return [f"{head} = (", f"{INDENT}{first}", *(f"{INDENT}| {part}" for part in rest), ")"]


def text_literal(text: str) -> str:
    """Write a text as a literal, in double quotes unless that takes more escapes."""
    body = "".join(_escaped(char) for char in text)
    quote = "'" if body.count('"') > body.count("'") else '"'
    return quote + body.replace(quote, f"\\{quote}") + quote


def _escaped(char: str) -> str:
    if char == "\\":
        return "\\\\"
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def docstring(lines: Sequence[str], indent: str = "") -> list[str]:
    """Write a docstring; names in it are any text."""
    safe = [_told(line) for line in lines]
    if len(safe) == 1:
        return [f'{indent}"""{safe[0]}"""']
    rest = [f"{indent}{line}" if line else "" for line in safe[1:]]
    return [f'{indent}"""{safe[0]}', *rest, f'{indent}"""']


def _told(line: str) -> str:
    """Let a name end no docstring and begin no escape."""
    printable = "".join(_escaped(char) for char in line)
    return printable.replace('"', "'").rstrip()


def named(names: Iterable[str], most: int = 5) -> str:
    """List names in backticks, the first few of many."""
    listed = [f"`{name}`" for name in names]
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def width(line: str) -> int:
    """Count the columns of a line."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)
