"""Where a store is: every form of the URL, and what is said of those that are none."""

from pathlib import Path

import pytest

from interlock.core.rejection import InvalidRequest
from interlock.store.sqlite.database import Settings
from interlock.store.url import parse_url


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
