"""Whether the label of a guard is clearly an expression that was meant for `when`.

A label is any text: a signature, an arrow, a sentence. An expression stands under `guard` only by
mistake, and then the engine would never evaluate it. So a text counts as one if it reads like an
expression from end to end and compares with something, calls, negates, or combines.

    looks_like_expression("data.amount < 100")   -> True
    looks_like_expression("release > QP")        -> False
"""

import re

#: What an expression can read, besides what is written in it.
ROOTS = ("data", "event", "actor", "now", "instance", "state")
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<literal>\d+(\.\d+)?u?(?![\w.]) | "[^"\\]*" | '[^'\\]*' | \b(true|false|null)\b)
  | (?P<infix>&&|\|\||==|!=|<=|>=|[<>+\-*/%?:,]|\bin\b)
  | (?P<call>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\()
  | (?P<name>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)
  | (?P<negation>!(?=[\w(!]))
  | (?P<open>[(\[])
  | (?P<close>[)\]])
    """,
    re.VERBOSE,
)
_CALLED = re.compile(r"(.*\.)?(has|size|matches|startsWith|endsWith|contains|exists|all)\(")
_EQUAL = ("==", "!=", "&&", "||")
_ORDER = ("<", "<=", ">", ">=")


def looks_like_expression(text: str) -> bool:
    """Say whether a text is an expression, beyond doubt, or was to become one."""
    tokens = _tokens(text)
    if tokens is None:
        return False
    if len(tokens) == 1:
        return _is_read(*tokens[0])
    if not _alternates(tokens):
        return False
    return any(_is_clear(tokens, place) for place in range(len(tokens)))


def _tokens(text: str) -> list[tuple[str, str]] | None:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        if token.lastgroup != "blank":
            found.append((str(token.lastgroup), token[0]))
        at = token.end()
    return found


def _alternates(tokens: list[tuple[str, str]]) -> bool:
    """Whether operators stand between operands: where two words stand side by side, it is prose.

    An operand may be wanting at the end.
    """
    wanted = True
    for kind, text in tokens:
        if kind in ("literal", "name"):
            if not wanted:
                return False
            wanted = False
        elif kind == "infix":
            if wanted and text != "-":
                return False
            wanted = True
        elif kind == "close":
            wanted = False
        elif text == "[":
            wanted = True
        elif not wanted:  # a call, a bracket or a negation that begins an operand
            return False
        else:
            wanted = True
    return True


def _is_clear(tokens: list[tuple[str, str]], place: int) -> bool:
    kind, text = tokens[place]
    beside = [tokens[at] for at in (place - 1, place + 1) if 0 <= at < len(tokens)]
    if kind == "infix":
        if text in _EQUAL:
            return True
        if text == "in":
            return any(its == "[" or _is_read(one, its) for one, its in beside)
        told = any(one == "literal" or _is_read(one, its) for one, its in beside)
        return text in _ORDER and told
    return kind == "negation" or (kind == "call" and _CALLED.fullmatch(text) is not None)


def _is_read(kind: str, text: str) -> bool:
    root, dot, _ = text.partition(".")
    return kind == "name" and bool(dot) and root in ROOTS
