"""The parts of an event among named attributes, where each event may have others (JSON, XES)."""

from collections.abc import Mapping
from dataclasses import asdict

from interlock.core.text import clipped, nearest
from interlock.eventlog.event import CUSTOMARY, Columns, LogError, customary_place
from interlock.eventlog.logfile import LogFile


def missing(
    file: LogFile, part: str, named: str | None, found: list[str], *, line: int | None
) -> LogError:
    """Make the error for a part of which the log has no column.

    Args:
        found: the columns that there are.
        line: the header, where there is one.
    """
    listed = ", ".join(f"`{clipped(name)}`" for name in found) or "none"
    if named is None:
        tried = ", ".join(f"`{name}`" for name in CUSTOMARY[part])
        hint = f"looked for {tried}; columns found: {listed}; name it (`--{part}-column`)"
        return LogError(file.name, line, f"no column holds the {part}", hint)
    meant = nearest(named, found)
    did = f"did you mean `{clipped(meant)}`? " if meant else ""
    what = f"no column `{clipped(named)}`, which was to hold the {part}"
    return LogError(file.name, line, what, f"{did}columns found: {listed}")


_NAMES_KEPT = 1000


class Attributes:
    """Picks case, action, time and actor out of the attributes of each event.

    A part is taken from the first of its names that an event has, and is empty where it has none.
    The first event must have case and action, and some event each part that was named.
    """

    def __init__(self, file: LogFile, columns: Columns) -> None:
        self._file = file
        self._named = asdict(columns)
        self._names: dict[str, list[str]] = {
            part: [] if named is None else [named] for part, named in self._named.items()
        }
        self._known: set[str] = set()  # attributes that were met, and are in `_names` if customary
        self._unseen = {part for part, named in self._named.items() if named is not None}
        self._unseen |= {"case", "action"}
        self._found: dict[str, None] = {}
        self._begun = False

    def pick(self, attributes: Mapping[str, object]) -> list[object]:
        """Give the values of the four parts, in order.

        Raises:
            LogError: this is the first event, and has no case or no action.
        """
        if not attributes.keys() <= self._known:
            self._learn(attributes.keys() - self._known)
        if self._unseen:
            self._look(attributes)
        picked: list[object] = []
        for names in self._names.values():
            for name in names:
                if name in attributes:
                    picked.append(attributes[name])
                    break
            else:
                picked.append("")
        return picked

    def finish(self) -> None:
        """See to it, after the last event, that every part that was named was somewhere.

        Raises:
            LogError: one was not.
        """
        if self._begun:
            self._complain(self._unseen)

    def _learn(self, names: set[str]) -> None:
        """Take up names that are customary for a part which has no name of its own."""
        if len(self._known) > _NAMES_KEPT:
            self._known.clear()
        self._known |= names
        for part, named in self._named.items():
            if named is None:
                known = {*self._names[part], *names}
                places = {name: customary_place(part, name) for name in known}
                ranked = [(place, name) for name, place in places.items() if place is not None]
                self._names[part] = [name for _, name in sorted(ranked)]

    def _look(self, attributes: Mapping[str, object]) -> None:
        if len(self._found) < _NAMES_KEPT:  # they are only for a message
            self._found |= dict.fromkeys(attributes)
        self._unseen -= {
            part for part in self._unseen if any(name in attributes for name in self._names[part])
        }
        if not self._begun:
            self._begun = True
            self._complain(self._unseen & {"case", "action"})

    def _complain(self, unseen: set[str]) -> None:
        for part in self._names:
            if part in unseen:
                raise missing(self._file, part, self._named[part], list(self._found), line=None)
