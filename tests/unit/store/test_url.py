"""Where a store is: every form of the URL, and what is said of those that are none."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

import interlock
from interlock.core.rejection import InvalidRequest
from interlock.store.sqlite.database import Settings
from interlock.store.url import parse_postgres, parse_url


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("sqlite://", Settings(None)),
        ("sqlite:///:memory:", Settings(None)),
        ("sqlite:///batches.db", Settings(Path("batches.db"))),
        ("sqlite:////var/lib/batches.db", Settings(Path("/var/lib/batches.db"))),
        ("sqlite:///a%20b%3Fc.db", Settings(Path("a b?c.db"))),
        ("sqlite:///100%.db", Settings(Path("100%.db"))),
        ("sqlite:///x.db?synchronous=normal", Settings(Path("x.db"), synchronous="NORMAL")),
        ("sqlite:///x.db?mode=ro", Settings(Path("x.db"), read_only=True, create=False)),
        ("sqlite:///x.db?mode=rw&busy_ms=5", Settings(Path("x.db"), busy_ms=5, create=False)),
        ("sqlite:///x.db?mode=rwc", Settings(Path("x.db"))),
    ],
)
def test_urls(url: str, settings: Settings) -> None:
    assert parse_url(url) == settings


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("batches.db", "did you mean `sqlite:///batches.db`"),
        ("", "no store"),
        (None, "not NoneType"),
        (7, "not int"),
        ("postgresql://host/db", "`postgresql` is not known"),
        ("mysql:///x", "`mysql` is not known"),
        ("sqlite://batches.db", "three slashes"),
        ("sqlite:///x.db?synchronus=full", "did you mean `synchronous`"),
        ("sqlite:///x.db?sync=full", "known: synchronous, mode, busy_ms"),
        ("sqlite:///x.db?synchronous=off", "full, normal"),
        ("sqlite:///x.db?mode=", "rwc, rw, ro"),
        ("sqlite:///x.db?busy_ms=-1", "whole number"),
        ("sqlite:///x.db?busy_ms=soon", "whole number"),
        ("sqlite:///a\0b", "NUL"),
        ("sqlite:///a%00b", "NUL"),
    ],
)
def test_what_is_no_url_is_refused_with_what_to_do(url: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match="store's URL") as refusal:
        parse_url(url)
    assert said in str(refusal.value)
    assert refusal.value.argument == "url"


@pytest.mark.parametrize(
    ("tenant", "limits", "said"),
    [
        ("", {"name_bytes": 1253}, "`name_bytes` of 1253, .* at most 1252"),
        ("", {"reference_bytes": 2505}, "`reference_bytes` of 2505, .* at most 2504"),
        ("t" * 1024, {"name_bytes": 741}, "at most 740"),
        ("t" * 1024, {"reference_bytes": 1481}, "at most 1480"),
        ("\u00e9", {"reference_bytes": 2503}, "at most 2502"),
    ],
)
def test_limits_that_an_index_could_not_hold_are_refused_before_anything_is_sent(
    tenant: str, limits: dict[str, int], said: str
) -> None:
    for opened in (interlock.open, interlock.open_async):
        with pytest.raises(InvalidRequest, match=said) as refusal:
            opened("postgresql://nowhere/d", tenant=tenant, limits=interlock.Limits(**limits))
        assert refusal.value.argument == "limits"
    with interlock.open("sqlite://", tenant=tenant, limits=interlock.Limits(**limits)):
        pass  # which has no such bound


def test_limits_are_limits() -> None:
    with pytest.raises(InvalidRequest, match=r"`limits` is an `interlock\.Limits`, not int"):
        interlock.open("sqlite://", limits=5)  # type: ignore[arg-type]


SECRET = "S3CRETpw"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://u:{SECRET}@h/db",
        f"Postgresql://u:{SECRET}@h/db",
        f"mysql://u:{SECRET}@h/db",
        f" postgresql://u:{SECRET}@h/db",
        f"postgresql:/u:{SECRET}@h/db",
        f"postgres:u:{SECRET}@h/db",
        f"sqlite://u:{SECRET}@h/db",
        f"postgresql://u:{SECRET}%ZZ@h/db",
        f"postgresql://u:{SECRET}%00@h/db",
        f"postgresql://u:{SECRET}@[::1/db",
        f"postgresql://u:{SECRET}/x@h/db",
        f"postgresql://u:a@{SECRET}@h/db",
        f"postgresql://u@h/db?password={SECRET}&nonsense=1",
        f"postgresql://u@h/db?pasword={SECRET}",
        f"postgresql://u:x?{SECRET}@h/db",
        "postgresql://h/d\ud800b",
    ],
)
def test_a_url_that_is_refused_tells_no_password(url: str) -> None:
    with pytest.raises(interlock.InvalidRequest) as caught:
        interlock.open(url)
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.as_dict())


def test_a_password_that_ends_in_a_question_mark_and_a_setting_is_not_told() -> None:
    with pytest.raises(interlock.InvalidRequest) as caught:
        interlock.open("postgresql://u:secret?mode7@h/db")
    assert "mode7" not in str(caught.value)
    assert "%40 for @" in str(caught.value)


def test_every_parameter_of_the_client_library_is_handed_on() -> None:
    for option in Conninfo.get_defaults():
        name = option.keyword.decode()
        settings = parse_postgres(f"postgresql://h/d?{name}=1", None)
        assert conninfo_to_dict(settings.conninfo)[name] == "1"
    assert parse_postgres("postgresql://h/d?ssl=true", None).conninfo.endswith("ssl=true")


@pytest.mark.parametrize(
    ("url", "schema", "fault"),
    [
        ("postgresql://h/d?schema=a&schema=b", None, "twice"),
        ("postgresql://h/d?schema=a", "b", "says schema `a`"),
        ("postgresql://h/d?pool_max=0", None, "at least 1"),
        ("postgresql://h/d?busy_ms=soon", None, "milliseconds"),
        ("postgresql://h/d?together=perhaps", None, "one of yes, no"),
        ("postgresql://h/d?mode=x", None, "one of rwc, rw, ro"),
        ("postgresql://h/d?shema=a", None, "no setting `shema`; did you mean `schema`"),
        ("postgresql://h/d?mod=ro", None, "no setting `mod`; did you mean `mode`"),
        ("postgresql://h/d?pool_maxx=3", None, "no setting `pool_maxx`; did you mean `pool_max`"),
        ("postgresql://h/d?MODE=ro", None, "no setting `MODE`; did you mean `mode`"),
        ("postgresql://h/d?sslmode=disable&busyms=3", None, "did you mean `busy_ms`"),
        ("postgresql://h/d?ssl_mode=disable", None, "did you mean `sslmode`"),
        ("postgresql://h/d?nonsense=1", None, "neither ours .schema, busy_ms, .* nor of Postgre"),
        ("postgresql://h/d", "$$", "ends the body"),
        ("postgresql://h/d", "a\nb", "`schema`: .* holds a control character"),
        ("postgresql://h/d?schema=a%0Ab", None, "`schema`: .* holds a control character"),
        ("postgresql://h/d", "x" * 64, "`schema`: .* is 64 bytes long, more than the 63 allowed"),
        ("sqlite://", "a", "for PostgreSQL"),
    ],
)
def test_what_is_wrong_with_a_url_of_postgresql_is_said(
    url: str, schema: str | None, fault: str
) -> None:
    with pytest.raises(interlock.InvalidRequest, match=fault):
        interlock.open(url, schema=schema)
