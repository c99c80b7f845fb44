"""Event logs: read, replayed against a declaration, or turned into a first one.

declaration = discover(read_log("permits.csv"))
report = ingest(store, declaration, "permits.csv")
"""

from interlock.eventlog.discover import discover
from interlock.eventlog.event import CUSTOMARY, Columns, Event, LogError
from interlock.eventlog.ingest import IngestReport, Progress, Refusal, ingest
from interlock.eventlog.reader import FORMATS, read_log

__all__ = [
    "CUSTOMARY",
    "FORMATS",
    "Columns",
    "Event",
    "IngestReport",
    "LogError",
    "Progress",
    "Refusal",
    "discover",
    "ingest",
    "read_log",
]
