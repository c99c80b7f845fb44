r"""JSON text as events, by the letter of RFC 8259.

JSON has a scanner of its own because YAML parsers misread some of it: libyaml refuses the escape
pair `\ud83d\ude00`, a colon on the next line, keys over 1024 characters and DEL, and folds U+0085.
"""

import json
import re
from collections.abc import Iterator

from interlock.core.text import clipped
from interlock.language.node import Event

TOKEN = re.compile(
    r"""
    [ \t\n\r]*+ (?:
        (?P<mark> [][{}:,] )
      | (?P<text> "[^"\\\x00-\x1f]*+ (?: \\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}) [^"\\\x00-\x1f]*+ )*+" )
      | (?P<word> -?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)? | true | false | null )
      | (?P<end> \Z )
      | (?P<other> \w+ | . )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
VALUE = frozenset({"[", "{", "text", "word"})
KEY = frozenset({"text"})


class JsonSyntaxError(Exception):
    """The text is no JSON from `index` on; `message` says what JSON takes there."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message, index)
        self.message = message
        self.index = index


def json_events(text: str) -> Iterator[Event]:
    """Yield the events of one JSON text.

    Raises:
        JsonSyntaxError: at the first token that JSON does not take there.
    """
    closers: list[str] = []  # of the open lists and mappings, innermost last
    wanted = VALUE  # the kinds of token that may come next; a mark is a kind of its own
    for match in TOKEN.finditer(text):
        group = match.lastgroup or ""
        token, at = match[group], match.start(group)
        kind = token if group == "mark" else group
        if kind not in wanted:
            raise JsonSyntaxError(_complaint(wanted, token), at)
        if kind == "end":
            return
        if kind in "[{":
            yield Event("list" if kind == "[" else "mapping", at)
            closers.append("]" if kind == "[" else "}")
            wanted = VALUE | {"]"} if kind == "[" else KEY | {"}"}
        elif kind == ",":
            wanted = VALUE if closers[-1] == "]" else KEY
        elif kind == ":":
            wanted = VALUE
        else:
            if kind in "]}":
                yield Event("end", at)
                closers.pop()
            elif kind == "word":
                yield Event("scalar", at, token, plain=True)
            else:
                yield Event("scalar", at, json.loads(token) if "\\" in token else token[1:-1])
            is_key = kind == "text" and "word" not in wanted
            wanted = frozenset({":"} if is_key else {",", closers[-1]} if closers else {"end"})


def _complaint(wanted: frozenset[str], found: str) -> str:
    if found == '"':
        return "a text has no end here, or a control character or escape that JSON does not take"
    names = {f"`{kind}`" for kind in wanted if len(kind) == 1 and kind not in VALUE}
    names |= {"a value"} if wanted >= VALUE else {"quoted text"} if wanted >= KEY else set()
    seen = f"`{clipped(found, 20)}`" if found else "the end"
    return f"JSON takes {' or '.join(sorted(names)) or 'nothing more'} here, not {seen}"
