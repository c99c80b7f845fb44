"""What the schema of workflow documents cannot say.

Names are names, lengths and schedules mean something, and everything that takes time has an end.
Whatever is read here is of its type already.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from interlock.core.declaration import Path
from interlock.core.text import quoted
from interlock.language.beside import Checks
from interlock.language.diagnostic import Diagnostic
from interlock.language.document import Document
from interlock.language.duration import DurationError, parse_duration
from interlock.language.names import field_fault, label_fault

#: Keys under which a length of time stands, in a `retry` or a `repeat`.
_LENGTHS = ("delay", "max_delay", "every")
#: Of a leap year: what does not come from here on never does.
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def check_beside(document: Document, sound: Mapping[str, Any]) -> list[Diagnostic]:
    """Check what is sound of a document for what its schema cannot say."""
    checks = _Checks(document)
    checks.workflow(sound)
    return checks.found


class _Checks(Checks):
    def workflow(self, sound: Mapping[str, Any]) -> None:
        self._identity("workflow")
        self._fields(sound.get("input") or {}, ("input",))
        self._length(sound.get("timeout"), ("timeout",))
        defaults = sound.get("defaults") or {}
        self._timeouts(defaults.get("timeout"), ("defaults", "timeout"))
        self._lengths(defaults.get("retry"), ("defaults", "retry"))
        self._held(defaults, "queue", ("defaults",))
        for name, step in (sound.get("steps") or {}).items():
            where = ("steps", name)
            self._named("step", name, where, field_fault(name), is_key=True)
            if step:
                self._step(step, where, has_timeout="timeout" in defaults)

    def _step(self, step: Mapping[str, Any], where: Path, *, has_timeout: bool) -> None:
        for key in ("activity", "queue"):
            self._held(step, key, where)
        for key in ("with", "returns"):
            self._fields(step.get(key) or {}, (*where, key))
        for key in ("repeat", "retry"):
            self._lengths(step.get(key), (*where, key))
        if "wait" in step:
            self._wait(step, where)
        elif "timeout" in step:
            self._timeouts(step["timeout"], (*where, "timeout"))
        elif not has_timeout:
            what = f"{quoted(where[-1])} may take for ever: it has no `timeout`"
            hint = "give it one, or all of them under `defaults`"
            self._report("missing-timeout", what, where, hint, is_key=True)
        if "repeat" in step and "for_each" in step:
            what = "a step is repeated or done for each item, not both"
            self._report("wrong-type", what, (*where, "repeat"), None, is_key=True)
        undo = step.get("compensate")
        if isinstance(undo, str):
            undo = {"activity": undo}
        if undo:
            at = (*where, "compensate")
            for key in ("activity", "queue"):
                self._held(undo, key, at)
            self._fields(undo.get("with") or {}, (*at, "with"))
            self._lengths(undo.get("retry"), (*at, "retry"))
            if "timeout" in undo:
                self._timeouts(undo["timeout"], (*at, "timeout"))
            elif not has_timeout and ("wait" in step or "timeout" not in step):
                what = f"the undo of {quoted(where[-1])} may take for ever: it has no `timeout`"
                self._report("missing-timeout", what, at, "give it one", is_key=True)

    def _wait(self, step: Mapping[str, Any], where: Path) -> None:
        reason, awaited = next(iter(step["wait"].items()), ("", None))
        at = (*where, "wait", reason)
        length = step.get("timeout")
        if length is None and reason != "timer":
            what = f"{quoted(where[-1])} may wait for ever: it has no `timeout`"
            hint = "say how long it waits; `timeout: none` if that is what it is to do"
            self._report("missing-timeout", what, where, hint, is_key=True)
        elif length != "none":
            self._length(length, (*where, "timeout"))
        if "on_refused" in step and reason != "approval":
            what = "only an approval is ever refused"
            self._report("unknown-key", what, (*where, "on_refused"), None, is_key=True)
        if reason == "timer" and isinstance(awaited, str):
            self._length(awaited, at)
        if reason == "cron":
            self._schedule(awaited, at)

    def _schedule(self, awaited: Any, where: Path) -> None:
        is_map = isinstance(awaited, dict)
        text = awaited.get("cron") if is_map else awaited
        if isinstance(text, str) and (fault := schedule_fault(text)):
            at = (*where, "cron") if is_map else where
            self._report("bad-schedule", f"{quoted(text)} {fault}", at, "such as `30 6 * * 1-5`")
        zone = awaited.get("zone") if is_map else None
        if isinstance(zone, str) and not _is_zone(zone):
            hint = "such as `Europe/Paris`"
            self._report("bad-schedule", f"there is no zone {quoted(zone)}", (*where, "zone"), hint)

    def _timeouts(self, written: Any, where: Path) -> None:
        if not isinstance(written, dict):
            self._length(written, where)
            return
        for key, length in written.items():
            self._length(length, (*where, key))

    def _lengths(self, written: Any, where: Path) -> None:
        """Check the lengths of a part."""
        for key, value in written.items() if isinstance(written, dict) else ():
            if key in _LENGTHS:
                self._length(value, (*where, key))

    def _length(self, length: Any, where: Path) -> None:
        if not isinstance(length, str):
            return
        try:
            parse_duration(length)
        except DurationError as fault:
            self._report("bad-duration", f"{quoted(length)} {fault}", where, None)

    def _held(self, written: Mapping[str, Any], key: str, where: Path) -> None:
        name = written.get(key)
        if isinstance(name, str) and (fault := label_fault(name)):
            self._report("bad-name", f"{quoted(name)} {fault.what}", (*where, key), fault.hint)


def schedule_fault(text: str) -> str | None:
    """Say what keeps a text from being a schedule of five fields that ever comes."""
    fields = text.split()
    if len(fields) != 5:
        return "is no schedule of five fields"
    if _comes(text):
        return None
    minute, hour, day, _, weekday = fields
    is_in_other_months = _comes(f"{minute} {hour} {day} * {weekday}")
    return "never comes" if is_in_other_months else "is no schedule"


def _comes(text: str) -> bool:
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(text, _SOME_DAY))
    except (CronSimError, StopIteration):
        return False
    return True


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
