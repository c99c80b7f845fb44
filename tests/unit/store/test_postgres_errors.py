"""Errors of PostgreSQL as ours."""

import psycopg
import pytest
from psycopg import errors

from interlock.store.postgres.errors import is_conflict, is_lost, translate
from tests.support.postgres import at, database, server

CODES = {
    "40001": ("conflict", True),
    "40P01": ("conflict", True),
    "53300": ("busy", True),
    "55P03": ("busy", True),
    "57014": ("busy", True),
    "53100": ("full", True),
    "58030": ("io", True),
    "25006": ("read-only", False),
    "42501": ("read-only", False),
    "23505": ("refused", False),
    "23514": ("refused", False),
    "P0001": ("refused", False),
    "XX001": ("damaged", False),
    "XX002": ("damaged", False),
    "3D000": ("missing", False),
    "3F000": ("missing", False),
    "42P01": ("missing", False),
    "08006": ("unreachable", True),
    "57P01": ("unreachable", True),
    "57P02": ("unreachable", True),
    "57P03": ("unreachable", True),
    "42601": ("failed", False),
    "XX000": ("failed", False),
}


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_its_kind(code: str) -> None:
    error = errors.lookup(code)("what the server said")
    assert error.sqlstate == code
    refusal = translate(error, "`db/orders`")
    assert (refusal.kind, refusal.retryable) == CODES[code]
    assert str(refusal).startswith("`db/orders`: ")
    assert "what the server said" in str(refusal)
    assert is_lost(error) == (refusal.kind == "unreachable")
    assert is_conflict(error) == (code in ("40001", "40P01"))


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://ann:hunter2@127.0.0.1:1/orders",
        "host=/nowhere user=ann password=hunter2",
        "host=/nowhere user=ann password='hunter2 and more'",
    ],
)
def test_a_server_that_is_not_there_is_unreachable(uri: str) -> None:
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(uri)
    refusal = translate(raised.value, "`db/orders`")
    assert (refusal.kind, refusal.retryable) == ("unreachable", True)
    assert is_lost(raised.value)
    assert "hunter2" not in str(refusal)


@pytest.mark.parametrize("uri", ["postgresql://ann:hunter%2@h/x", "hunter2", "hunter2 x=1"])
def test_what_is_no_connection_string_is_not_quoted(uri: str) -> None:
    with pytest.raises(psycopg.ProgrammingError) as raised:
        psycopg.connect(uri)
    refusal = translate(raised.value, "`db/orders`")
    assert (refusal.kind, refusal.retryable) == ("failed", False)
    assert not is_lost(raised.value)
    assert "hunter" not in str(refusal)


def test_a_password_in_what_was_said_is_left_out() -> None:
    for said in ("password=hunter2 x", "no postgresql://ann:hunter2@h/x", "password='hunter2 2'"):
        assert "hunter2" not in str(translate(psycopg.OperationalError(said), "w"))


def test_a_database_or_role_that_is_not_there_is_no_matter_of_time() -> None:
    for uri, kind in (
        (at(server(), database="nowhere"), "missing"),
        (at(server(), user="nobody"), "failed"),
    ):
        with pytest.raises(psycopg.OperationalError) as raised:
            psycopg.connect(uri)
        refusal = translate(raised.value, "w")
        assert (refusal.kind, refusal.retryable) == (kind, False)


def test_a_session_that_was_ended_is_lost() -> None:
    with database() as uri, psycopg.connect(uri, autocommit=True) as connection:
        with psycopg.connect(server(), autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        with pytest.raises(psycopg.OperationalError) as first:
            connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError) as second:
            connection.execute("SELECT 1")
        for raised in (first, second):
            assert is_lost(raised.value)
            assert translate(raised.value, "w").kind == "unreachable"
