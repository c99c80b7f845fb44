r"""Where in a file a character of a text stands, though quotes and escapes were read away.

columns_before('"a \\" b" # so', 'a " b', 4)      -> 6
"""

import re

# What stands for one character between double quotes, in YAML and in JSON.
ESCAPE = re.compile(
    r"""\\(?: u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}
      | u[0-9a-fA-F]{4} | x[0-9a-fA-F]{2} | U[0-9a-fA-F]{8} | [^uxU] )""",
    re.VERBOSE,
)


def columns_before(line: str, text: str, offset: int) -> int | None:
    """Count the columns before a character of a text.

    Args:
        line: what is written from the text's start to the end of its line.
        offset: characters of the text before it.

    Returns:
        None where the text is not written so: over several lines, or with an anchor before it.
    """
    quote = line[:1] if line[:1] in ('"', "'") else ""
    at = len(quote)
    for char in text[:offset]:
        if quote == '"' and line.startswith("\\", at):
            escape = ESCAPE.match(line, at)
            if escape is None:
                return None
            at = escape.end()
        elif line.startswith("''" if quote == char == "'" else char, at):
            at += 2 if quote == char == "'" else 1
        else:
            return None
    return at
