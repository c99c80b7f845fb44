"""Texts of a drawing: how wide they are, nearly, and where they are broken.

Nothing here knows the font that a reader has. Widths are those of a wide one, DejaVu Sans, so that
there is rather too much room than too little.
"""

from unicodedata import combining, east_asian_width

from interlock.language.diagnostic import visible

NARROW = frozenset("ijl.,:;'|!I`")
SLIM = frozenset('frt()[]{}/\\"- *')
WIDE = frozenset("mwMW@%")


def width(text: str, size: float) -> float:
    """Give the width of a text in pixels, at a size of its font."""
    return size * sum(map(_share, text))


def _share(char: str) -> float:
    if char in NARROW:
        return 0.36
    if char in SLIM:
        return 0.46
    if char in WIDE:
        return 1.0
    if east_asian_width(char) in "WF":
        return 1.1
    if combining(char):
        return 0.0
    return 0.66 if char.islower() or char.isdigit() or char == "_" else 0.78


def broken(text: str, size: float, width_max: float, lines_max: int) -> list[str]:
    """Break a text into lines of much the same width; what is too much is cut."""
    text = visible(text)
    lines = _filled(text, size, width_max)
    if len(lines) > lines_max:
        return [*lines[: lines_max - 1], f"{lines[lines_max - 1][:-1]}…"]
    narrower = width(text, size) / len(lines)
    while narrower < width_max:
        evenly = _filled(text, size, narrower)
        if len(evenly) == len(lines):
            return evenly
        narrower += size
    return lines


def _filled(text: str, size: float, width_max: float) -> list[str]:
    """Break a text into lines, each as full as it can be: after a blank, or else anywhere."""
    lines = [""]
    for word in _parts(text, " "):
        fits = width(word.rstrip(" "), size) <= width_max
        for part in [word] if fits else _parts(word, "-_/."):
            if lines[-1] and width((lines[-1] + part).rstrip(" "), size) > width_max:
                lines.append("")
            for char in part:
                if lines[-1] and width(lines[-1] + char.strip(" "), size) > width_max:
                    lines.append("")
                lines[-1] += char
    return [line.strip(" ") for line in lines]


def _parts(text: str, after: str) -> list[str]:
    """Part a text after each of some characters."""
    parts = [""]
    for char in text:
        parts[-1] += char
        if char in after:
            parts.append("")
    return [part for part in parts if part]
