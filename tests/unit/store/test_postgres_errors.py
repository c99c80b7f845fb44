"""Errors of PostgreSQL as ours."""

import asyncio
import time

import psycopg
import pytest
from psycopg import errors

import interlock
from interlock.store.postgres.errors import is_conflict, is_lost, translate
from tests.support.postgres import at, database, server, with_settings

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
    "54000": ("failed", False),
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


MALFORMED = {
    "sslmode": "nope",
    "port": "abc",
    "target_session_attrs": "x",
    "channel_binding": "x",
    "gssencmode": "x",
    "ssl_min_protocol_version": "x",
    "hostaddr": "nowhere",
    "service": "nope",
    "options": "-c%20work_mem%3Dmuch",
}


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("setting", MALFORMED)
def test_a_setting_that_cannot_be_is_no_matter_of_time(setting: str, face: str) -> None:
    url = with_settings(server(), **{setting: MALFORMED[setting]})

    async def open_async() -> None:
        async with interlock.open_async(url):
            pass

    began = time.monotonic()
    with pytest.raises(interlock.InvalidRequest, match="the store's URL") as refusal:
        asyncio.run(open_async()) if face == "async" else interlock.open(url)
    assert time.monotonic() - began < 2
    assert refusal.value.argument == "url"
    if setting != "port":
        assert MALFORMED[setting][-4:] in str(refusal.value)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "5432,x", "9" * 9999, "\u0663"])
def test_a_port_that_cannot_be_is_not_quoted(port: str) -> None:
    with pytest.raises(interlock.InvalidRequest) as refusal:
        interlock.open(f"postgresql://h/d?port={port}")
    assert str(refusal.value) == "the store's URL has a port that is no number from 1 to 65535"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('FATAL:  too many connections for role "app"', "busy"),
        ("FATAL:  sorry, too many clients already", "busy"),
        ("FATAL:  remaining connection slots are reserved for roles with …", "busy"),
        ("server does not support SSL, but SSL was required", "failed"),
        ('root certificate file "/nowhere" does not exist', "failed"),
        ("SSL error: certificate verify failed", "failed"),
        ("Connection refused", "unreachable"),
    ],
)
def test_a_server_that_turns_a_connection_away_is_known_by_its_words(said: str, kind: str) -> None:
    error = psycopg.OperationalError(f'connection to "certificate.example" failed: {said}')
    refusal = translate(error, "w")
    assert (refusal.kind, refusal.retryable) == (kind, kind != "failed")


@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_database_with_no_connection_left_is_busy(face: str) -> None:
    with database() as url:
        with psycopg.connect(server(), autocommit=True) as admin:
            name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
            admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 0")

        async def open_async() -> None:
            async with interlock.open_async(url):
                pass

        with pytest.raises(interlock.StorageFailure, match="too many connections for") as refusal:
            asyncio.run(open_async()) if face == "async" else interlock.open(url)
        assert (refusal.value.kind, refusal.value.retryable) == ("busy", True)


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
