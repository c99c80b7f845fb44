"""The settings of the project: one database, for the shop and for the store."""

import os
from typing import Any

INTERLOCK_STORE = os.environ.get("DATABASE_URL", "sqlite:///shop.db")


def database(url: str) -> dict[str, Any]:
    """Give Django's words for the database that the store is in."""
    if url.startswith("sqlite:///"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}

    from psycopg.conninfo import conninfo_to_dict

    options = conninfo_to_dict(url)
    name = options.pop("dbname")
    return {"ENGINE": "django.db.backends.postgresql", "NAME": name, "OPTIONS": options}


DATABASES = {"default": database(INTERLOCK_STORE)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop"]
USE_TZ = True
