"""The named statements of a dialect, read from a `.sql` file.

A file is a list of statements, each under two comment lines: its name and its parameters in the
order in which plans give them. A third may say how many rows it changes at least, for each row of
parameters and as the database counts them. Comments that follow say what it promises. The SQL names
its parameters, so it can be read and reordered without counting question marks.

    -- name: read_declaration
    -- parameters: tenant digest
    -- The exact text of a declaration.
    SELECT text FROM declarations WHERE tenant = :tenant AND digest = :digest;

Columns that several statements give or take are said once, before them, and stand for themselves by
name:

    -- columns: instance
    -- What a list tells of an instance.
    i.id, i.current_state;

    -- name: read_instance
    -- parameters: tenant root id
    SELECT $instance FROM instances AS i WHERE …;

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
_COLUMNS = re.compile(r"^-- columns: (\w+)\n((?:.+\n)+)\n", re.MULTILINE)
_NAMED = re.compile(r"\$(\w+)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
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
    text = path.read_text()
    columns = {name: _body(listed) for name, listed in _COLUMNS.findall(text)}
    text = _NAMED.sub(lambda use: columns.get(use[1], use[0]), _COLUMNS.sub("", text))
    pieces = _HEAD.split(text)[1:]
    queries = {}
    heads = zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True)
    for name, listed, changes, sql in heads:
        parameters = tuple(listed.split())
        body = _body(sql)
        if set(parameters) != set(_PARAMETER.findall(body)):
            raise ValueError(f"{path.name}: `{name}` does not use exactly its parameters")
        places = {parameter: f"{mark}{place}" for place, parameter in enumerate(parameters, 1)}
        numbered = _PARAMETER.sub(partial(_numbered, places), body)
        reads = body.startswith(("SELECT", "WITH")) and "INSERT INTO" not in body
        answers = reads or "RETURNING" in body
        queries[name] = Query(name, parameters, numbered, reads, int(changes or 0), answers)
    return queries


def _body(sql: str) -> str:
    return _COMMENT.sub("", sql).strip().removesuffix(";")


def _numbered(places: dict[str, str], use: re.Match[str]) -> str:
    return places[use[1]]
