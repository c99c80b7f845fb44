"""The named statements of a dialect, read from a `.sql` file.

A file is a list of statements, each under two comment lines: its name and its parameters in the
order in which plans give them. A third may say how many rows it changes at least, those that its
triggers change included. Comments that follow say what it promises. The SQL names its
parameters, so it can be read and reordered without counting question marks.

    -- name: read_declaration
    -- parameters: tenant digest
    -- The exact text of a declaration.
    SELECT text FROM declarations WHERE tenant = :tenant AND digest = :digest;

A statement of a dialect that takes many rows at once has `arrays` for `parameters`: each is then a
column of values, and it is called `NAME/many` beside the statement for one row.
"""

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

_HEAD = re.compile(
    r"^-- name: ([\w/]+)\n-- (?:parameters|arrays):([ \w]*)\n(?:-- changes: (\d+)\n)?", re.MULTILINE
)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")  # `::` is a cast


class Query(NamedTuple):
    """One statement of a dialect: parameters are numbered in the order given.

    Attributes:
        reads: it changes nothing.
        changes: how many rows each row of parameters changes, at least.
        answers: it gives rows.
    """

    name: str
    parameters: tuple[str, ...]
    sql: str
    reads: bool
    changes: int = 0
    answers: bool = True


def load_statements(path: Path, mark: str = "?") -> dict[str, Query]:
    """Read every statement of a file, by name.

    Args:
        mark: what stands before the number of a parameter.

    Raises:
        ValueError: a statement does not use exactly the parameters that its head lists.
    """
    pieces = _HEAD.split(path.read_text())[1:]
    queries = {}
    heads = zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True)
    for name, listed, changes, sql in heads:
        parameters = tuple(listed.split())
        body = re.sub(r"^--.*\n", "", sql, flags=re.MULTILINE).strip().removesuffix(";")
        if set(parameters) != set(_PARAMETER.findall(body)):
            raise ValueError(f"{path.name}: `{name}` does not use exactly its parameters")
        places = {parameter: f"{mark}{place}" for place, parameter in enumerate(parameters, 1)}
        numbered = _PARAMETER.sub(partial(_numbered, places), body)
        reads = body.startswith(("SELECT", "WITH")) and "INSERT INTO" not in body
        answers = reads or "RETURNING" in body
        queries[name] = Query(name, parameters, numbered, reads, int(changes or 0), answers)
    return queries


def _numbered(places: dict[str, str], use: re.Match[str]) -> str:
    return places[use[1]]
