"""The declaration: the map that governs an instance, frozen when the instance is born.

A declaration is a JSON-like mapping, kept and given back exactly as supplied:

    {"states": ["sampled", "testing", "released"],
     "transitions": [
        {"from_state": "sampled", "action": "begin-testing", "to_state": "testing"},
        {"from_state": "testing", "action": "release", "to_state": "released",
         "guard": "QP-sign-off"}],
     "initial_state": "sampled",
     "terminal_states": ["released"]}

`check_declaration` names every defect at once, each with its path. `declaration_text` writes the
one text of a declaration, and `declaration_digest` names that text. Source: the State Machine atom,
"The declaration" and the ten checks of Instantiate; DESIGN, section 4.4.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from interlock.core.text import LIMITS, Limits, clipped, nearest, quoted, text_fault

Path: TypeAlias = tuple[str | int, ...]

KEYS = ("states", "transitions", "initial_state", "terminal_states")
ENDS = ("from_state", "to_state")
TRANSITION_KEYS = ("from_state", "action", "to_state", "guard")

HINTS_MAX = 10

# What authors used to other tools write, and the word that is meant here.
NEIGHBOURS = {
    "initial": "initial_state",
    "final": "terminal_states",
    "final_states": "terminal_states",
    "terminal": "terminal_states",
    "from": "from_state",
    "source": "from_state",
    "to": "to_state",
    "target": "to_state",
    "dest": "to_state",
    "event": "action",
    "trigger": "action",
    "cond": "guard",
    "if": "guard",
    "when": "guard",
}


class Defect(NamedTuple):
    """One fault of a declaration.

    Attributes:
        code: a stable word of the diagnostics, such as `unknown-state`.
        path: keys and positions that lead to the fault, such as `("transitions", 2, "to_state")`.
        message: what is wrong, in one sentence.
        hint: what was probably meant, or where the other half of the fault is.
    """

    code: str
    path: Path
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{path_text(self.path)}: " if self.path else ""
        return where + self.message + (f" ({self.hint})" if self.hint else "")

    def as_dict(self) -> dict[str, object]:
        return {**self._asdict(), "path": path_text(self.path)}


def path_text(path: Path) -> str:
    """Write a path as people do: `transitions[2].to_state`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def declaration_text(declaration: Mapping[str, Any]) -> str:
    """Write a well-formed declaration as the JSON text that is stored, keys in their order."""
    return json.dumps(declaration, ensure_ascii=False, separators=(",", ":"), default=dict)


def declaration_digest(text: str) -> str:
    """Name a declaration by the SHA-256 of its stored text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_declaration(value: object, limits: Limits = LIMITS) -> list[Defect]:
    """List every defect of `value` as a declaration, part by part; a well-formed one has none.

    Never raises, whatever `value` is.
    """
    check = _Check(limits)
    try:
        check.declaration(value)
    except Exception as error:  # a mapping of somebody's own making, which broke when it was read
        check.fault("wrong-type", (), f"the declaration cannot be read ({type(error).__name__})")
    return check.defects


class _Check:
    """One pass over one value, gathering defects.

    `states` and `terminal` hold the sound names, each with its first position. `states` is None
    when there is no list to compare with: that is one defect, not one more for each mention.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.defects: list[Defect] = []
        self.states: dict[str, int] | None = None
        self.terminal: dict[str, int] = {}
        self.hints = 0

    def fault(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        self.defects.append(Defect(code, path, message, hint))

    def declaration(self, value: object) -> None:
        if not isinstance(value, Mapping):
            self.fault("wrong-type", (), f"a declaration is a mapping, not {_kind(value)}")
            return
        self.keys(value, KEYS, required=KEYS, path=())
        self.states = self.names(value, "states")
        if value.get("states") == []:
            self.fault("no-states", ("states",), "a machine has at least one state")
        self.terminal = self.names(value, "terminal_states") or {}
        for name, position in self.terminal.items():
            self.known(name, ("terminal_states", position))
        if "initial_state" in value:
            self.initial(value["initial_state"])
        if "transitions" in value:
            self.transitions(value["transitions"])
        if not self.defects:
            self.size(value)

    def initial(self, name: object) -> None:
        path = ("initial_state",)
        if self.state(name, path) and name in self.terminal:
            message = f"the initial state {quoted(name)} is terminal, so nothing could ever happen"
            self.fault("initial-final", path, message)

    def transitions(self, listed: object) -> None:
        if not isinstance(listed, list):
            self.fault("wrong-type", ("transitions",), f"is a list, not {_kind(listed)}")
            return
        first: dict[tuple[str, str], int] = {}
        for position, transition in enumerate(listed):
            path = ("transitions", position)
            trigger = self.transition(transition, path)
            if trigger and first.setdefault(trigger, position) != position:
                self.fault(
                    "nondeterministic",
                    path,
                    f"{quoted(trigger[1])} from {quoted(trigger[0])} is declared twice",
                    f"first at transitions[{first[trigger]}]",
                )

    def transition(self, value: object, path: Path) -> tuple[str, str] | None:
        """Check one transition; give its (from_state, action) when both are sound."""
        if not isinstance(value, Mapping):
            self.fault("wrong-type", path, f"a transition is a mapping, not {_kind(value)}")
            return None
        self.keys(value, TRANSITION_KEYS, required=TRANSITION_KEYS[:3], path=path)
        sound = [self.state(value[end], (*path, end)) for end in ENDS if end in value]
        acts = "action" in value and self.name(value["action"], (*path, "action"))
        if value.get("guard") is not None:
            self.name(value["guard"], (*path, "guard"))
        if "from_state" not in value or not sound[0]:
            return None
        if value["from_state"] in self.terminal:
            message = f"a transition leaves {quoted(value['from_state'])}, which is terminal"
            self.fault("final-with-transitions", (*path, "from_state"), message)
        return (value["from_state"], value["action"]) if acts else None

    def keys(
        self,
        value: Mapping[Any, Any],
        allowed: Collection[str],
        *,
        required: Collection[str],
        path: Path,
    ) -> None:
        for key in value:
            if isinstance(key, str) and key in allowed:
                continue
            meant = NEIGHBOURS.get(key) if isinstance(key, str) else None
            meant = meant if meant in allowed else nearest(key, allowed)
            hint = f"did you mean `{meant}`?" if meant else f"known keys: {', '.join(allowed)}"
            name = clipped(key)
            self.fault("unknown-key", (*path, name), f"unknown key `{name}`", hint)
        for key in required:
            if key not in value:
                self.fault("missing-key", path, f"the key `{key}` is missing")

    def names(self, value: Mapping[str, Any], key: str) -> dict[str, int] | None:
        """Check a list of distinct names and give the sound ones; None when there is no list."""
        listed = value.get(key)
        if not isinstance(listed, list):
            if key in value:
                self.fault("wrong-type", (key,), f"is a list, not {_kind(listed)}")
            return None
        first: dict[str, int] = {}
        for position, name in enumerate(listed):
            path = (key, position)
            if self.name(name, path) and first.setdefault(name, position) != position:
                self.fault(
                    "name-clash",
                    path,
                    f"{quoted(name)} is listed twice",
                    f"first at {key}[{first[name]}]",
                )
        return first

    def name(self, name: object, path: Path) -> bool:
        fault = text_fault(name, self.limits.name_bytes)
        if fault:
            self.fault("bad-name" if isinstance(name, str) else "wrong-type", path, fault)
        return not fault

    def known(self, name: str, path: Path) -> bool:
        if self.states is None or name in self.states:
            return True
        self.hints += 1  # a guess costs more than a check, so only the first faults get one
        meant = nearest(name, self.states) if self.hints <= HINTS_MAX else None
        hint = f"did you mean {quoted(meant)}?" if meant else None
        self.fault("unknown-state", path, f"unknown state {quoted(name)}", hint)
        return False

    def state(self, name: Any, path: Path) -> bool:
        return self.name(name, path) and self.known(name, path)

    def size(self, value: Mapping[str, Any]) -> None:
        size, most = len(declaration_text(value).encode()), self.limits.declaration_bytes
        if size > most:
            self.fault(
                "budget-exceeded",
                (),
                f"the declaration is {size} bytes long, more than the {most} allowed",
            )


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
