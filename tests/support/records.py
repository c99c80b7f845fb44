"""Raw rows of a store, and an oracle that judges them by the specification alone.

Nothing here uses the code under test: rows are read with plain `sqlite3`, declarations with `json`.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

Rows: TypeAlias = list[tuple[Any, ...]]
Content: TypeAlias = dict[str, Rows]

LEDGER = "interlock_migrations"  # which migrations were applied; no record of any instance
WORKING = ("timers", "sweeps")  # what is still to be done, which comes and goes


def tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return sorted(name for (name,) in rows)


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """List the columns that can be written: generated ones cannot."""
    rows = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,))
    return [name for (name,) in rows]


def content(connection: sqlite3.Connection) -> Content:
    """Read every row of every table, exactly."""
    return {
        table: sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr)
        for table in tables(connection)
    }


def content_of(path: Path) -> Content:
    with closing(sqlite3.connect(path)) as connection:
        return content(connection)


def dicts(connection: sqlite3.Connection, query: str, *parameters: object) -> list[dict[str, Any]]:
    cursor = connection.execute(query, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def breaches(connection: sqlite3.Connection) -> list[str]:
    """Say where the records break Invariants 2 to 7, and each declaration the ten checks."""
    return [
        f"{row['id']}: {breach}"
        for row in dicts(connection, "SELECT * FROM instances")
        for breach in _instance_breaches(connection, row)
    ]


def _instance_breaches(connection: sqlite3.Connection, row: dict[str, Any]) -> list[str]:
    texts = connection.execute(
        "SELECT text FROM declarations WHERE tenant = ? AND digest = ?",
        (row["tenant"], row["declaration_digest"]),
    ).fetchall()
    if len(texts) != 1:
        return ["it has no declaration"]
    try:
        declaration = json.loads(texts[0][0], object_pairs_hook=_no_duplicates)
        malformed = _malformed(declaration)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return [f"its declaration cannot be read: {error!r}"]
    found = [f"its declaration is not well formed: {malformed}"] if malformed else []
    table = {(t["from_state"], t["action"]): t for t in declaration["transitions"]}
    state, number = declaration["initial_state"], 0
    entries = dicts(
        connection,
        "SELECT * FROM history WHERE tenant = ? AND root = ? AND instance_id = ?"
        " ORDER BY sequence_number",
        *(row["tenant"], row["root"], row["id"]),
    )
    for entry in entries:
        number += 1
        declared = table.get((entry["from_state"], entry["action"]))
        if entry["sequence_number"] != number:
            found.append(f"entry {number} has number {entry['sequence_number']}")
        if state in declaration["terminal_states"]:
            found.append(f"entry {number} leaves a terminal state")
        if entry["from_state"] != state:
            found.append(f"entry {number} starts elsewhere")
        if declared is None or declared["to_state"] != entry["to_state"]:
            found.append(f"entry {number} is not declared")
        elif entry["guard_satisfied"] != (None if declared.get("guard") is None else 1):
            found.append(f"entry {number} has the wrong guard")
        state = entry["to_state"]
    if row["current_state"] != state:
        found.append(f"it is in {row['current_state']!r}, replay leads to {state!r}")
    if row["current_state"] not in declaration["states"]:
        found.append(f"it is in {row['current_state']!r}, which is not declared")
    if row["next_sequence_number"] != number + 1:
        found.append(f"its next number is {row['next_sequence_number']} after {number}")
    head = entries[-1]["entry_digest"] if entries else row["genesis_digest"]
    changes = dicts(
        connection,
        "SELECT * FROM data_changes WHERE tenant = ? AND root = ? AND instance_id = ?"
        " ORDER BY sequence_number, ordinal",
        *(row["tenant"], row["root"], row["id"]),
    )
    if changes and row["definition_digest"] is None:
        found.append("its data changed, but no engine began it")
    for at in {change["sequence_number"] for change in changes}:
        came = [change for change in changes if change["sequence_number"] == at]
        if not 0 <= at <= number:
            found.append(f"data changed with entry {at}, which it has not")
        if [change["ordinal"] for change in came] != list(range(len(came))):
            found.append(f"the changes with entry {at} are not numbered from 0")
        if at == number:
            head = came[-1]["change_digest"]
    if row["head_digest"] != head:
        found.append("its head is not that of its last entry or change")
    return found + _engine_breaches(connection, row, changes)


def _engine_breaches(
    connection: sqlite3.Connection, row: dict[str, Any], changes: list[dict[str, Any]]
) -> list[str]:
    """Judge what only an engine writes: its definition, what changed, its timers."""
    found = []
    key = (row["tenant"], row["definition_digest"])
    select = "SELECT text FROM definitions WHERE tenant = ? AND digest = ?"
    defined = connection.execute(select, key).fetchall()
    if row["definition_digest"] is not None and len(defined) != 1:
        found.append("it has no definition")
    for change in changes:
        select = "SELECT content FROM payloads WHERE tenant = ? AND root = ? AND id = ?"
        place = (row["tenant"], row["root"], change["payload_id"])
        payloads = connection.execute(select, place).fetchall()
        if len(payloads) != 1:
            found.append("a change of its data has no payload")
        elif payloads[0][0] is not None and not isinstance(json.loads(payloads[0][0]), dict):
            found.append("a change of its data is no object")
        if change["kind"] not in ("event", "patch", "whole"):
            found.append(f"a change of its data is of kind {change['kind']!r}")
    timers = dicts(
        connection,
        "SELECT * FROM timers WHERE tenant = ? AND root = ? AND instance_id = ?",
        *(row["tenant"], row["root"], row["id"]),
    )
    for timer in timers:
        if row["definition_digest"] is None:
            found.append("it has a timer, but no engine began it")
        if not 0 <= timer["sequence_number"] < row["next_sequence_number"]:
            found.append("it has a timer of an entry that it has not")
    return found


def _no_duplicates(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in items}) != len(items):
        raise ValueError("a key stands twice")
    return dict(items)


def _malformed(declaration: dict[str, Any]) -> str | None:
    """Apply the ten checks of Instantiate, plainly."""
    states, terminal = declaration["states"], declaration["terminal_states"]
    arrows, initial = declaration["transitions"], declaration["initial_state"]
    if not isinstance(states, list) or not isinstance(terminal, list):
        return "states or terminal states are no list"
    if not isinstance(arrows, list):
        return "transitions are no list"
    labels = [row["guard"] for row in arrows if row.get("guard") is not None]
    words = [*states, *terminal, *labels, *(row["action"] for row in arrows)]
    triggers = [(row["from_state"], row["action"]) for row in arrows]
    ends = {row[end] for row in arrows for end in ("from_state", "to_state")}
    checks = {
        "no states": bool(states),
        "a blank name": all(isinstance(word, str) and word.strip() for word in words),
        "a state twice": len(set(states)) == len(states),
        "a terminal state that is no state": set(terminal) <= set(states),
        "an initial state that is none": initial in states,
        "an initial state that is terminal": initial not in terminal,
        "an unknown end": ends <= set(states),
        "a way out of a terminal state": not {row["from_state"] for row in arrows} & set(terminal),
        "a trigger twice": len(set(triggers)) == len(triggers),
    }
    return next((fault for fault, holds in checks.items() if not holds), None)


def unlawful(before: Content, after: Content) -> list[str]:
    """Say what a change of the records did that nobody may do, whatever else it did.

    Rows may be added. An instance may move (whether lawfully is for `breaches`), its genesis may
    not change. A payload may lose its bytes, salt and content together.
    """
    found = []
    for table, rows in before.items():
        if table == LEDGER or table == "sweeps":
            continue
        kept = set(after[table])
        if table == "timers":  # one may go; one that stays keeps its moment
            moments = {row[:5]: row[5:7] for row in kept}
            found += [
                f"timers: {row} has another moment"
                for row in rows
                if moments.get(row[:5], row[5:7]) != row[5:7]
            ]
            continue
        for row in rows:
            if row in kept:
                continue
            if table == "instances" and any(_same_genesis(row, other) for other in kept):
                continue
            if table == "payloads" and (*row[:3], None, None) in kept:
                continue
            found.append(f"{table}: {row} is gone or altered")
    return found


_GENESIS = (0, 1, 2, 3, *range(7, 16))  # all of `instances` but state, next number and head


def _same_genesis(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(row[place] == other[place] for place in _GENESIS)
