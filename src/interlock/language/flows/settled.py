"""A workflow document with everything settled that it leaves out.

Lengths are in microseconds. Two documents that mean the same come to the same, so the digest is
made of it, and neither it nor what it takes for left out ever changes.
"""

from collections.abc import Mapping
from typing import Any

from interlock.language.duration import parse_duration

QUEUE = "default"
ITEMS_MAX = ROUNDS_MAX = 1000
RETRY: Mapping[str, Any] = {
    "attempts": 3,
    "delay": "1s",
    "factor": 2,
    "max_delay": "1h",
    "jitter": 0.1,
    "except": [],
}


def settled(written: Mapping[str, Any]) -> dict[str, Any]:
    """Settle a document that is sound."""
    defaults = written.get("defaults") or {}
    return {
        "workflow": written["workflow"],
        "version": str(written.get("version", "dev")),
        "input": written.get("input") or {},
        "timeout": _length(written.get("timeout")),
        "compensate_on": sorted(set(written.get("compensate_on") or ["failed"])),
        "steps": {name: _step(step, defaults) for name, step in written["steps"].items()},
        "output": written.get("output"),
    }


def _step(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    needs: Any = step.get("needs") or []
    is_any = isinstance(needs, dict)
    listed = [needs] if isinstance(needs, str) else needs["any"] if is_any else needs
    told: dict[str, Any] = {
        "needs": sorted(listed),
        "any": is_any,
        "when": step.get("when"),
        "if_skipped": step.get("if_skipped"),
        "compensate": _undo(step, defaults),
    }
    if "wait" in step:
        length = step.get("timeout")
        return told | {
            "wait": {reason: _awaited(reason, of) for reason, of in step["wait"].items()},
            "timeout": None if length == "none" else _length(length),
            "on_refused": step.get("on_refused"),
        }
    return told | {
        **_activity(step, defaults),
        "with": step.get("with") or {},
        "priority": step.get("priority", 0),
        "returns": step.get("returns"),
        "for_each": _fan_out(step.get("for_each")),
        "repeat": _repeat(step.get("repeat")),
    }


def _awaited(reason: str, written: Any) -> Any:
    if isinstance(written, dict):
        return {"zone": "UTC", **written} if reason == "cron" else written
    return {"for": _length(written)} if reason == "timer" else {"cron": written, "zone": "UTC"}


def _activity(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "activity": step["activity"],
        "queue": step.get("queue", defaults.get("queue", QUEUE)),
        "retry": _retry(step.get("retry"), defaults.get("retry")),
        "timeouts": _timeouts(step.get("timeout", defaults.get("timeout"))),
    }


def _undo(step: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Settle an undo: it may take as long as its step, unless it says otherwise."""
    undo = step.get("compensate")
    if undo is None:
        return None
    if isinstance(undo, str):
        undo = {"activity": undo}
    own = {} if "wait" in step else {key: step[key] for key in ("timeout",) if key in step}
    return {
        **_activity({**own, **undo}, defaults),
        "with": undo.get("with"),
        "priority": step.get("priority", 0),
    }


def _retry(written: Any, default: Any) -> dict[str, Any]:
    """Settle a retry; what a step says of it stands beside what `defaults` say."""
    if written == "never":
        whole = {**RETRY, "attempts": 1}
    else:
        inherited = {"attempts": 1} if default == "never" else default or {}
        whole = {**RETRY, **inherited, **(written or {})}
    return {
        "attempts": whole["attempts"],
        "delay": _length(whole["delay"]),
        "factor": float(whole["factor"]),
        "max_delay": _length(whole["max_delay"]),
        "jitter": float(whole["jitter"]),
        "excluded": sorted(set(whole["except"])),
    }


def _timeouts(written: Any) -> dict[str, Any]:
    told = {"start_to_close": written} if isinstance(written, str) else written
    return {
        "start_to_close": _length(told["start_to_close"]),
        "heartbeat": _length(told.get("heartbeat", told["start_to_close"])),
        "schedule_to_start": _length(told.get("schedule_to_start")),
        "schedule_to_close": _length(told.get("schedule_to_close")),
    }


def _fan_out(written: Any) -> dict[str, Any] | None:
    if written is None:
        return None
    told = {"in": written} if isinstance(written, str) else written
    most = told.get("max", ITEMS_MAX)
    return {"in": told["in"], "max": most, "at_once": told.get("at_once")}


def _repeat(written: Any) -> dict[str, Any] | None:
    if written is None:
        return None
    every = written.get("every")
    return {
        "until": written["until"],
        "every": 0 if every is None else _length(every),
        "max": written.get("max", ROUNDS_MAX),
    }


def _length(text: str | None) -> int | None:
    return None if text is None else parse_duration(text)
