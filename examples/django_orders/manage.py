"""Orders of a shop, with Django: a row and its state are committed together, or neither is.

    python examples/django_orders/manage.py migrate
    python examples/django_orders/manage.py story

The database is the file shop.db, or the one that DATABASE_URL names (postgresql://…).
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    execute_from_command_line(sys.argv)
