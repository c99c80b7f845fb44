"""A machine at work: one look-up made from a declaration, and the decision about one fire.

`decide` says what an action does to an instance that stands where a snapshot says. It gives the
entry that will be recorded and the snapshot after it, or raises the refusal; it reads nothing but
its arguments. A transition is a row of the look-up, and a missing row is the refusal.

    machine = compile_machine(declaration)
    before = Snapshot("wf-1", machine.initial_state, 1, now)
    entry, after = decide(machine, before, Request("begin-testing"), now=now, new_id="t-1")
    after.state, after.version                      # ("testing", 2)

Source: the State Machine atom, Fire and Invariants 3, 4, 6 to 9; DESIGN, sections 4.5 and 4.6.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.entry import Entry
from interlock.core.instant import parse_instant
from interlock.core.rejection import (
    GuardNotSatisfied,
    InvalidRequest,
    InvalidTransition,
    Terminal,
    VersionConflict,
)
from interlock.core.text import LIMITS, Limits, clipped, quoted, text_fault

# Makes a NamedTuple from all of its fields in order, without the Python frame of its constructor:
# a decision is made on every fire, often with cold caches.
_new = tuple.__new__


class Transition(NamedTuple):
    """Where an action leads, and the label that the caller must assert, if any."""

    to_state: str
    guard: str | None


class Machine:
    """A well-formed declaration, compiled once for its digest.

    `lookup` maps (state, action) to its transition. Terminal states of a well-formed declaration
    have no rows, and `decide` follows none.
    """

    __slots__ = ("digest", "initial_state", "lookup", "states", "terminal_states")

    def __init__(self, declaration: Mapping[str, Any], digest: str) -> None:
        self.digest = digest
        self.states: tuple[str, ...] = tuple(declaration["states"])
        self.initial_state: str = declaration["initial_state"]
        self.terminal_states = frozenset(declaration["terminal_states"])
        self.lookup = {
            (row["from_state"], row["action"]): Transition(row["to_state"], row.get("guard"))
            for row in declaration["transitions"]
        }

    def actions(self, state: str) -> list[str]:
        """List the actions declared from `state`, in the order of the declaration."""
        return [action for from_state, action in self.lookup if from_state == state]


def compile_machine(declaration: Mapping[str, Any]) -> Machine:
    """Compile a declaration that `check_declaration` found well formed."""
    return Machine(declaration, declaration_digest(declaration_text(declaration)))


class Snapshot(NamedTuple):
    """Where an instance stands, as far as a decision needs to know.

    Attributes:
        version: sequence number of the next entry; 1 is the genesis, before any entry.
        instantiated_at: aware UTC; no entry may be earlier.
    """

    instance_id: str
    state: str
    version: int
    instantiated_at: datetime


class Request(NamedTuple):
    """What a caller asks of one instance, as given: the decision checks it, in order.

    Attributes:
        guard_satisfied: asserts the transition's guard when it is the value True, nothing else.
        fired_at: aware datetime or its ISO 8601 text; None leaves the stamp to the engine.
        expected_version: refuse unless the instance is at this version.
    """

    action: str
    actor_ref: str | None = None
    guard_satisfied: bool | None = None
    fired_at: datetime | str | None = None
    expected_version: int | None = None
    reason: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    worker_id: str | None = None


class Decision(NamedTuple):
    """The entry that is owed to the record, and where the instance stands after it."""

    entry: Entry
    after: Snapshot


def decide(
    machine: Machine,
    snapshot: Snapshot,
    request: Request,
    *,
    now: datetime,
    new_id: str,
    limits: Limits = LIMITS,
) -> Decision:
    """Say what `request` does to `snapshot`. Equal inputs give an equal decision.

    Args:
        request: its action is already known to be text.
        now: aware UTC, the engine's clock.
        new_id: the identity of the entry, should there be one.

    Raises:
        VersionConflict, Terminal, InvalidTransition, GuardNotSatisfied, InvalidRequest: in this
            order, the first that applies.
    """
    instance_id, state, version, instantiated_at = snapshot
    action, actor_ref, asserted, fired_at, expected, reason, correlation, causation, worker = (
        request
    )
    if expected is not None and expected != version:
        raise version_conflict(snapshot, expected)
    transition = machine.lookup.get((state, action))
    if transition is None or state in machine.terminal_states:  # whatever a declaration says
        _refuse_move(machine, snapshot, action)
    to_state, guard = transition
    if guard is None:
        asserted = None
    elif asserted is not True:
        raise GuardNotSatisfied(
            f"{quoted(action)} from {quoted(state)} needs its guard {quoted(guard)} asserted",
            instance_id=instance_id,
            state=state,
            action=action,
            guard=guard,
        )
    if actor_ref is not None:
        actor_ref = check_text("actor_ref", actor_ref, limits.reference_bytes)
    if reason is not None:
        reason = check_text("reason", reason, limits.reason_bytes)
    if correlation is not None:
        correlation = check_text("correlation_id", correlation, limits.reference_bytes)
    if causation is not None:
        causation = check_text("causation_id", causation, limits.reference_bytes)
    if worker is not None:
        worker = check_text("worker_id", worker, limits.reference_bytes)
    if fired_at is None:
        stamp = now if now >= instantiated_at else instantiated_at
    else:
        stamp = check_moment("fired_at", fired_at, now=now)
        if stamp < instantiated_at:
            begun = instantiated_at.isoformat()
            what = f"`fired_at` {stamp.isoformat()} lies before the instance began, {begun}"
            raise InvalidRequest(what, argument="fired_at")
    after = _new(Snapshot, (instance_id, to_state, version + 1, instantiated_at))
    moved = (new_id, version, state, to_state, action, actor_ref, stamp, asserted)
    entry = _new(Entry, (*moved, reason, correlation, causation, worker))
    return _new(Decision, (entry, after))


def version_conflict(snapshot: Snapshot, expected: int) -> VersionConflict:
    """Make the refusal for an instance that is not at the version that was expected."""
    return VersionConflict(
        f"{quoted(snapshot.instance_id)} is at version {snapshot.version}, not {clipped(expected)}",
        instance_id=snapshot.instance_id,
        expected_version=expected,
        version=snapshot.version,
    )


def _refuse_move(machine: Machine, snapshot: Snapshot, action: str) -> NoReturn:
    tried = {"instance_id": snapshot.instance_id, "state": snapshot.state, "action": action}
    if snapshot.state in machine.terminal_states:
        raise Terminal(f"{quoted(snapshot.state)} is terminal: nothing leaves it", **tried)
    declared = machine.actions(snapshot.state)
    choices = ", ".join(f"{quoted(name)}" for name in declared[:10]) or "nothing"
    raise InvalidTransition(
        f"{quoted(action)} is not declared from {quoted(snapshot.state)} (declared: {choices})",
        **tried,
        declared=declared,
    )


def check_text(argument: str, value: object, max_bytes: int) -> str:
    """Give a supplied text as a plain `str`, refusing one that is blank, malformed or too long."""
    if (  # the common case, in one look
        type(value) is str
        and len(value) <= max_bytes
        and value.isascii()
        and value.isprintable()
        and value.strip()
    ):
        return value
    if isinstance(value, str):
        value = str.__str__(value)  # of an enumeration its text, and of any subclass what it holds
    fault = text_fault(value, max_bytes)
    if fault or not isinstance(value, str):
        raise InvalidRequest(f"`{argument}` {fault}", argument=argument)
    return value


def check_moment(argument: str, value: object, *, now: datetime | None) -> datetime:
    """Read a supplied moment, refusing what is no moment, has no offset, or lies after `now`."""
    try:
        moment = parse_instant(value)
    except ValueError as fault:
        raise InvalidRequest(f"`{argument}` {fault}", argument=argument) from None
    if now is not None and moment > now:
        raise InvalidRequest(
            f"`{argument}` {moment.isoformat()} lies in the future", argument=argument
        )
    return moment


def replay(machine: Machine, entries: Iterable[Entry]) -> str:
    """Walk `entries` from the initial state and give the state they lead to (Invariant 7).

    Raises:
        ValueError: an entry is out of sequence, does not start where the one before it ended, or
            is not a declared transition; the sentence names it.
    """
    state = machine.initial_state
    for number, entry in enumerate(entries, 1):
        if entry.sequence_number != number:
            raise ValueError(f"entry {number} is missing, found {entry.sequence_number}")
        transition = machine.lookup.get((entry.from_state, entry.action))
        if entry.from_state != state:
            stood = f"starts from {quoted(entry.from_state)}, but the state was {quoted(state)}"
            raise ValueError(f"entry {number} {stood}")
        if transition is None or transition.to_state != entry.to_state:
            by, target = clipped(entry.action), quoted(entry.to_state)
            move = f"{quoted(entry.from_state)} --{by}--> {target}"
            raise ValueError(f"entry {number} is not declared: {move}")
        state = entry.to_state
    return state
