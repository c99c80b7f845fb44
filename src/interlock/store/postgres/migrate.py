"""Migrations: numbered SQL files, applied once each, all of those owed in one transaction.

The table `interlock_migrations` says which have been applied, and so whether a schema holds a store
of ours at all. A schema with tables of its own may hold a store beside them, unless they are called
like ours.

Everything here is a generator that yields pairs of SQL and parameters and is sent the rows that
came back, so that a blocking and an asynchronous connection follow the same steps. The connection
commits by itself where no transaction was begun. No step has parameters: what it names is written
into it.
"""

import hashlib
import re
from collections.abc import Generator, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from unicodedata import category

from interlock.core.rejection import StorageFailure
from interlock.core.text import quoted, text_fault

T = TypeVar("T")

Steps: TypeAlias = Generator[tuple[str, tuple[()]], list[tuple[Any, ...]], T]

MIGRATIONS = sorted((Path(__file__).parent / "migrations").glob("[0-9]*.sql"))
ROLES = Path(__file__).parent / "roles.sql"

_NAME_BYTES = 63  # PostgreSQL cuts off the rest
_VERSION = 140000  # the oldest server that it is made for

_LEDGER_COLUMNS = "number name applied_at"
_MAKE_LEDGER = """CREATE TABLE $schema.interlock_migrations (
    number bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    CONSTRAINT interlock_migrations_pkey PRIMARY KEY (number)
)"""
_SEAL = """CREATE TRIGGER interlock_migrations_insert BEFORE INSERT ON $schema.interlock_migrations
FOR EACH ROW
EXECUTE FUNCTION $schema.refuse('interlock: migrations are applied when a store is opened')"""
_RECORD = "INSERT INTO $schema.interlock_migrations VALUES ($number, '$name', now())"
_READ_LEDGER = "SELECT coalesce(max(number), 0) FROM $schema.interlock_migrations"
_UNSEAL = "DROP TRIGGER IF EXISTS interlock_migrations_insert ON $schema.interlock_migrations"


def quote_identifier(name: str) -> str:
    """Write the name of a schema or role as SQL does.

    Raises:
        ValueError: it cannot be one. The sentence says why.
    """
    fault = text_fault(name, _NAME_BYTES)
    if fault is None and any(category(character) == "Cc" for character in name):
        fault = "holds a control character, such as a line break; use printable ones"
    if fault is None and "$$" in name:
        fault = "holds `$$`, which ends the body of a function; use another name"
    if fault:
        raise ValueError(f"the name {quoted(repr(name)[1:-1])} {fault}")
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def prepare(schema: str, *, create: bool = True) -> Steps[None]:
    """Find the store in a schema, or make it, or bring it up to date.

    Args:
        create: whether anything may be made.

    Raises:
        StorageFailure: it is newer, or there is none and none can be made.
    """
    where = f"the schema {quoted(schema)}"
    applied = yield from _applied(schema, where)
    if applied == len(MIGRATIONS):
        return
    if not create:
        if applied is None and not (yield from _tables(schema)):
            what = "holds no store; opened without `mode` it is made"
            raise StorageFailure(f"{where} {what}", kind="missing")
        raise StorageFailure(f"{where} holds no interlock store of this version", kind="foreign")
    yield "BEGIN ISOLATION LEVEL READ COMMITTED", ()
    try:
        # Others who open the same store at this moment wait here, and then find it made.
        yield f"SELECT pg_advisory_xact_lock({_lock_key(schema)})", ()
        applied = yield from _applied(schema, where)
        if applied != len(MIGRATIONS):
            yield from _check_server(where)
            yield from _apply(schema, applied, where)
        yield "COMMIT", ()
    except Exception:
        with suppress(Exception):
            yield "ROLLBACK", ()
        raise


def grants(
    schema: str, *, role: str | None = None, eraser: str | None = None, reader: str | None = None
) -> list[str]:
    """Give the statements of `roles.sql` for the roles named; an eraser may do what a role may."""
    parts = {"role": [role, eraser], "eraser": [eraser], "reader": [reader]}
    place = quote_identifier(schema)
    return [
        _filled(statement, schema=place, **{part: quote_identifier(name)})
        for statement in map(_bare, split_statements(ROLES.read_text()))
        for part, names in parts.items()
        if f"${part}" in statement
        for name in names
        if name is not None
    ]


def split_statements(script: str) -> list[str]:
    """Cut a script into statements, without their semicolons; comments go with what follows."""
    statements, piece = [], ""
    for line in script.splitlines(keepends=True):
        piece += line
        ends = line.rstrip().endswith(";") and not line.startswith("--")
        if ends and piece.count("$$") % 2 == 0:
            statements.append(piece.strip().removesuffix(";"))
            piece = ""
    return statements


def _filled(statement: str, **names: str) -> str:
    """Put names where a statement has `$` and their word; in one pass, as a name may hold such."""
    return re.sub(r"\$(\w+)", lambda found: names.get(found[1], found[0]), statement)


def _bare(statement: str) -> str:
    """Take away the comments before a statement."""
    return re.sub(r"\A(\s*(--.*)?\n)+", "", statement)


def _applied(schema: str, where: str) -> Steps[int | None]:
    """Count the migrations that were applied; None: the schema holds no store.

    Raises:
        StorageFailure: there are more than this code knows.
    """
    found = yield from _tables(schema)
    if found.get("interlock_migrations") != _LEDGER_COLUMNS:
        return None
    rows = yield _filled(_READ_LEDGER, schema=quote_identifier(schema)), ()
    applied = int(rows[0][0])
    if applied > len(MIGRATIONS):
        raise StorageFailure(
            f"{where}: the store is newer than this program: it is at schema {applied}, "
            f"and this program knows {len(MIGRATIONS)}; upgrade interlock",
            kind="newer",
        )
    return applied


def _tables(schema: str) -> Steps[dict[str, str]]:
    """Find what stands under the names of our tables, each with the names of its columns."""
    rows = yield _TABLES.format(schema=quote_literal(schema), tables=_own_tables()), ()
    return dict(rows)


def _check_server(where: str) -> Steps[None]:
    ((encoding, version),) = yield (
        "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int",
        (),
    )
    if encoding != "UTF8":
        what = f"the text of its database is {encoding}, and a store needs UTF8"
        raise StorageFailure(f"{where}: {what}", kind="foreign")
    if version < _VERSION:
        what = f"a store needs PostgreSQL {_VERSION // 10000} or later"
        raise StorageFailure(f"{where}: {what}", kind="foreign")


def _apply(schema: str, applied: int | None, where: str) -> Steps[None]:
    place = quote_identifier(schema)
    if applied is None:
        taken = sorted((yield from _tables(schema)))
        if taken:
            raise StorageFailure(
                f"{where}: not a store of ours: another program keeps {', '.join(taken)} "
                "in this schema; use a schema of its own for the store",
                kind="foreign",
            )
        if not (yield _IS_SCHEMA.format(schema=quote_literal(schema)), ()):
            # Not IF NOT EXISTS: that needs leave to create even where nothing is to be created.
            yield f"CREATE SCHEMA {place}", ()
        yield _filled(_MAKE_LEDGER, schema=place), ()
    else:
        yield _filled(_UNSEAL, schema=place), ()
    for number, path in enumerate(MIGRATIONS[applied or 0 :], (applied or 0) + 1):
        for statement in split_statements(path.read_text()):
            yield _filled(statement, schema=place), ()
        yield _filled(_RECORD, schema=place, number=str(number), name=path.stem), ()
    yield _filled(_SEAL, schema=place), ()


class _Object(NamedTuple):
    """Something in a schema: what it is, of which table, and its name."""

    type: str
    table: str
    name: str

    def __str__(self) -> str:
        if self.type == "row security":
            return f"the row security of `{self.table}`"
        place = f" on `{self.table}`" if self.type == "policy" else ""  # called alike everywhere
        return f"the {self.type} `{self.name}`{place}"


def schema_faults(schema: str) -> Steps[list[str]]:
    """Say where a schema is not the one that the migrations make.

    What the server says of each object is compared with what the migrations say, both without what
    it may write either way: parentheses, casts, spaces, letter case, the name of the schema. The
    bodies of functions are compared as they are. What a caller keeps beside the store is no concern
    of it, except for triggers, rules, policies and unique indexes on its tables.
    """
    rows = yield _CATALOGUE.format(schema=quote_literal(schema), tables=_own_tables()), ()
    found = {
        _Object(type, table or "", name): (_plain(said, schema), body or "")
        for type, table, name, said, body in rows
    }
    place = quote_identifier(schema)
    own = {
        what: (_plain(_filled(said, schema=place), schema), _filled(body, schema=place))
        for what, (said, body) in _own_schema().items()
    }
    faults = []
    for what, (said, body) in own.items():
        if what not in found:
            faults.append(f"{what} is missing")
        elif found[what] != (said, body):
            faults.append(f"{what} is not as it was made")
    guarded = ("trigger", "rule", "policy", "unique index")
    for what in found.keys() - own.keys():
        kept = what._replace(type="constraint") in own  # the index of a key of ours
        if what.type in guarded and not kept:
            faults.append(f"the {what.type} `{what.name}` on `{what.table}` was added")
    return faults


def _plain(said: str, schema: str) -> str:
    """Take away from a definition what servers write either way."""
    said = said.lower()
    for place in (quote_identifier(schema), schema):
        said = said.replace(f"{place.lower()}.", "")
    return re.sub(r'::\w+|[\s()"]', "", said)


# Parts of a migration, in the form that they are written in.
_TABLE = re.compile(r"CREATE TABLE \$schema\.(\w+) \(\n(.*?)\n\)", re.DOTALL)
_COLUMN = re.compile(r"(\w+) (.+?)( COLLATE \"C\")?( NOT NULL)?")
_CONSTRAINT = re.compile(r"CONSTRAINT (\w+) (.*)")
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX (\w+) ON \$schema\.(\w+) .*", re.DOTALL)
_FUNCTION = re.compile(
    r"CREATE FUNCTION \$schema\.(\w+\(.*?\)) (RETURNS .*?) AS \$\$(.*)\$\$", re.DOTALL
)
_TRIGGER = re.compile(
    r"CREATE (?:CONSTRAINT )?TRIGGER (\w+) .*?\sON \$schema\.(\w+)\n.*", re.DOTALL
)
_ADDED = re.compile(r"ALTER TABLE \$schema\.(\w+) ADD CONSTRAINT (\w+) (.*)")
_COLUMN_ADDED = re.compile(r"ALTER TABLE \$schema\.(\w+) ADD COLUMN (.*)")
_SECURITY = re.compile(r"ALTER TABLE \$schema\.(\w+) (ENABLE ROW LEVEL SECURITY, FORCE .*)")
_POLICY = re.compile(r"CREATE POLICY (\w+) ON \$schema\.(\w+)\n(.*)", re.DOTALL)


@cache
def _own_schema() -> dict[_Object, tuple[str, str]]:
    """Read from the migrations what they make: the definition and, of functions, the body."""
    scripts = [path.read_text() for path in MIGRATIONS]
    made = [_MAKE_LEDGER, *(piece for text in scripts for piece in split_statements(text)), _SEAL]
    own: dict[_Object, tuple[str, str]] = {}
    for piece in made:
        statement = _bare(piece)
        if found := _TABLE.match(statement):
            own.update(_table(found[1], found[2].split("\n")))
        elif found := _INDEX.match(statement):
            own[_Object("unique index" if found[1] else "index", found[3], found[2])] = found[0], ""
        elif found := _FUNCTION.match(statement):
            own[_Object("function", "", found[1])] = found[2], found[3]
        elif found := _TRIGGER.match(statement):
            own[_Object("trigger", found[2], found[1])] = found[0], ""
        elif found := _ADDED.match(statement):
            own[_Object("constraint", found[1], found[2])] = found[3], ""
        elif found := _COLUMN_ADDED.match(statement):
            table = _Object("table", found[1], found[1])
            own[table] = f"{own[table][0]}, {found[2]}", ""
        elif found := _SECURITY.match(statement):
            own[_Object("row security", found[1], found[1])] = found[2], ""
        elif found := _POLICY.match(statement):
            own[_Object("policy", found[2], found[1])] = found[3], ""
    return own


def _table(table: str, lines: Iterable[str]) -> dict[_Object, tuple[str, str]]:
    columns, own = [], {}
    for line in lines:
        part = line.strip().removesuffix(",")
        if found := _CONSTRAINT.fullmatch(part):
            own[_Object("constraint", table, found[1])] = found[2], ""
        elif found := _COLUMN.fullmatch(part):
            columns.append(part)
    return {_Object("table", table, table): (", ".join(columns), ""), **own}


def _own_tables() -> str:
    return ", ".join(f"'{what.name}'" for what in _own_schema() if what.type == "table")


def quote_literal(text: str) -> str:
    """Write text as SQL does, whatever the session takes backslashes for."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def _lock_key(schema: str) -> int:
    digest = hashlib.sha256(b"interlock migrations " + schema.encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


_IS_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = {schema}"
_TABLES = """
SELECT c.relname::text, array_to_string(ARRAY(
    SELECT a.attname FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
), ' ')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND c.relname IN ({tables})
"""

# What the server knows of our tables: type, table, name, definition, body. A definition to which a
# word of ours was added is of something that no longer does its work.
_CATALOGUE = """
WITH place AS (
    SELECT oid FROM pg_namespace WHERE nspname = {schema}
), tables AS (
    SELECT c.* FROM pg_class AS c JOIN place ON place.oid = c.relnamespace
    WHERE c.relname IN ({tables})
)
SELECT 'table', t.relname::text, t.relname::text, (
    SELECT coalesce(string_agg(
        a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attcollation = 0 THEN '' ELSE ' COLLATE ' || c.collname END
        || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        || CASE WHEN a.atthasdef OR a.attidentity <> '' THEN ' DEFAULT' ELSE '' END,
        ', ' ORDER BY a.attnum
    ), '')
    FROM pg_attribute AS a LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
) || CASE WHEN t.relkind = 'r' AND t.relpersistence = 'p' THEN '' ELSE ' altered' END, NULL
FROM tables AS t
UNION ALL
SELECT 'row security', t.relname::text, t.relname::text,
    concat_ws(', ', CASE WHEN t.relrowsecurity THEN 'ENABLE ROW LEVEL SECURITY' END,
        CASE WHEN t.relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END), NULL
FROM tables AS t
UNION ALL
SELECT 'constraint', t.relname::text, c.conname::text, pg_get_constraintdef(c.oid), NULL
FROM pg_constraint AS c JOIN tables AS t ON t.oid = c.conrelid
UNION ALL
SELECT CASE WHEN i.indisunique THEN 'unique index' ELSE 'index' END, t.relname::text,
    c.relname::text, pg_get_indexdef(c.oid)
    || CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN '' ELSE ' invalid' END, NULL
FROM pg_index AS i JOIN tables AS t ON t.oid = i.indrelid JOIN pg_class AS c ON c.oid = i.indexrelid
UNION ALL
SELECT 'function', NULL, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
    'RETURNS ' || format_type(p.prorettype, NULL) || ' LANGUAGE ' || l.lanname
    || CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
    || coalesce(' SET ' || array_to_string(p.proconfig, ' SET '), ''), p.prosrc
FROM pg_proc AS p
JOIN place ON place.oid = p.pronamespace
JOIN pg_language AS l ON l.oid = p.prolang
UNION ALL
SELECT 'trigger', t.relname::text, g.tgname::text, pg_get_triggerdef(g.oid)
    || CASE WHEN g.tgenabled IN ('O', 'A') THEN '' ELSE ' disabled' END, NULL
FROM pg_trigger AS g JOIN tables AS t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal
UNION ALL
SELECT 'rule', t.relname::text, r.rulename::text, pg_get_ruledef(r.oid), NULL
FROM pg_rewrite AS r JOIN tables AS t ON t.oid = r.ev_class
UNION ALL
SELECT 'policy', t.relname::text, p.polname::text,
    CASE WHEN p.polpermissive THEN '' ELSE 'RESTRICTIVE ' END
    || CASE WHEN p.polcmd = '*' THEN '' ELSE 'FOR ' || p.polcmd::text END
    || CASE WHEN p.polroles = '{{0}}' THEN '' ELSE 'TO some ' END
    || 'USING ' || coalesce(pg_get_expr(p.polqual, p.polrelid), '')
    || 'WITH CHECK ' || coalesce(pg_get_expr(p.polwithcheck, p.polrelid), ''), NULL
FROM pg_policy AS p JOIN tables AS t ON t.oid = p.polrelid
"""
