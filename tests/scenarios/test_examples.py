"""The examples run, on both databases, and tell the story that they are there to tell."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import interlock
from tests.docs.pages import ROOT
from tests.support.postgres import database

STORY = """\
placed: green tea is placed, payments: 0
a negative payment, which the table refuses: green tea is placed, payments: 0
paid: green tea is paid, payments: 1
paid again, which the machine refuses: green tea is paid, payments: 1
1. placed -> paid
"""
DJANGO = Path("examples/django_orders/manage.py")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/shop.db"
    else:
        with database() as url:
            yield url


def run(place: Path, program: Path, *words: str, url: str | None = None) -> str:
    """Run an example as a user would, and give what it prints; it is to warn of nothing."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"DATABASE_URL": url} if url else {}
    command = [sys.executable, "-W", "error", str(program), *words]
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(url: str, table: str) -> int:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found
        return int(found[0])


def test_orders_with_sqlalchemy(url: str, tmp_path: Path) -> None:
    words = [] if url.startswith("sqlite") else [url]
    for times in (1, 2):
        assert run(tmp_path, Path("examples/sqlalchemy_orders.py"), *words) == STORY
        assert rows(url, "shop_orders") == rows(url, "shop_payments") == times
    with interlock.open(url) as store:
        assert [order.state for order in store.instances(subject_ref="green tea")] == ["paid"] * 2
        assert store.verify().ok


def test_orders_with_django(url: str, tmp_path: Path) -> None:
    given = None if url.startswith("sqlite") else url
    run(tmp_path, DJANGO, "migrate", "--verbosity=0", url=given)
    for times in (1, 2):
        assert run(tmp_path, DJANGO, "story", url=given) == STORY
        assert rows(url, "shop_order") == rows(url, "shop_payment") == times
    with interlock.open(url) as store:
        assert [order.state for order in store.instances(subject_ref="green tea")] == ["paid"] * 2
        assert store.verify().ok


def test_the_migrations_of_the_django_project_make_its_models(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    told = run(tmp_path, DJANGO, "makemigrations", "--check", "--dry-run")
    assert told == "No changes detected\n"
    assert run(tmp_path, DJANGO, "check").startswith("System check identified no issues")
