"""The buggy twins: the real code with one promise dropped around it.

A check that does not notice a twin has no teeth. No twin copies the code, so none can grow old.
The specification's buggy model drops three promises; one of them, TerminalNoOutgoingDecl, is kept
twice by the real one: a declaration with a way out of a terminal state is not admitted, and would
not be followed.
"""

from collections.abc import Iterable, Sequence
from copy import copy

from interlock.core.audit import Fault, Trail
from interlock.core.entry import Entry
from interlock.core.machine import Decision, Machine, Request, Snapshot, Transition, replay
from interlock.core.record import HistoryRow
from interlock.core.rejection import InvalidTransition
from tests.formal.bridge import engine


def fires_the_undeclared(machine: Machine, snapshot: Snapshot, request: Request) -> Decision:
    """Drop EveryEntryDeclared: what is not declared leads to the initial state."""
    try:
        return engine(machine, snapshot, request)
    except InvalidTransition:
        home = Transition(machine.initial_state, None)
        return engine(_with(machine, {(snapshot.state, request.action): home}), snapshot, request)


def leaves_a_terminal_state(machine: Machine, snapshot: Snapshot, request: Request) -> Decision:
    """Drop TerminalNoOutgoingDecl: no state counts as terminal, and what is declared is done."""
    blind = copy(machine)
    blind.terminal_states = frozenset()
    return engine(blind, snapshot, request)


def stands_still(machine: Machine, snapshot: Snapshot, request: Request) -> Decision:
    """Drop ChainConsistency: the entry is written, and the state stays where it was."""
    entry, after = engine(machine, snapshot, request)
    return Decision(entry, after._replace(state=snapshot.state))


def asserts_for_the_caller(machine: Machine, snapshot: Snapshot, request: Request) -> Decision:
    """Drop guard-gating: the guard counts as asserted, whatever the caller says."""
    return engine(machine, snapshot, request._replace(guard_satisfied=True))


def blind_to(*invariants: int) -> type[Trail]:
    """Make an auditor that reads entries and never reports these invariants."""

    class Blind(Trail):
        __slots__ = ()

        def entry(self, row: HistoryRow) -> Sequence[Fault]:
            return [fault for fault in super().entry(row) if fault.invariant not in invariants]

    return Blind


def replays_any_number(machine: Machine, entries: Iterable[Entry]) -> str:
    """Overlook sequence numbers."""
    renumbered = [entry._replace(sequence_number=n) for n, entry in enumerate(entries, 1)]
    return replay(machine, renumbered)


def replays_any_start(machine: Machine, entries: Iterable[Entry]) -> str:
    """Overlook where an entry starts: replay each alone, as if all had led to its start."""
    led_to = machine.initial_state
    for number, entry in enumerate(entries):
        there = copy(machine)
        there.initial_state = entry.from_state
        first = entry._replace(sequence_number=entry.sequence_number - number)
        led_to = replay(there, [first])
    return led_to


def replays_any_move(machine: Machine, entries: Iterable[Entry]) -> str:
    """Overlook what is declared, as long as one trigger leads to one state."""
    moves = [*entries]
    rows = {(move.from_state, move.action): Transition(move.to_state, None) for move in moves}
    return replay(_with(machine, rows), moves)


def _with(machine: Machine, rows: dict[tuple[str, str], Transition]) -> Machine:
    lax = copy(machine)
    lax.lookup = {**machine.lookup, **rows}
    return lax
