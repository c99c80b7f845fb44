"""A handle on one instance: what programs hold, send events to, and look at."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.core.entry import Entry
from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds
from interlock.core.machine import Request
from interlock.core.rejection import (
    GuardError,
    GuardNotSatisfied,
    InvalidRequest,
    Rejected,
)
from interlock.engine.asked import Asked, fields, labels
from interlock.engine.memory import recall
from interlock.engine.program import Program
from interlock.engine.running import Run
from interlock.engine.sending import find
from interlock.language.chart import Trigger
from interlock.language.definition import Definition
from interlock.store.attempt import prepare_fire
from interlock.store.plan import Plan, Statement
from interlock.store.read import Instance, read_instance

if TYPE_CHECKING:
    from interlock.engine.engine import Engine


class Possible(NamedTuple):
    """Whether an event may be sent now. It is true where it may.

    Attributes:
        reason: why not, as the word on the wire; None where it may be sent.
        message: the same in a sentence.
        guards: labels that have to be asserted.
        action, to_state: what it leads by, and where to; None where that is not known.
    """

    event: str
    allowed: bool
    reason: str | None = None
    message: str | None = None
    guards: tuple[str, ...] = ()
    action: str | None = None
    to_state: str | None = None

    def __bool__(self) -> bool:
        return self.allowed


class Timer(NamedTuple):
    """A timer that runs.

    Attributes:
        state: the path of the state that it is of.
        due_at: when it runs out, or should have; aware UTC.
        failures, failure: how often that failed, and why it did last.
    """

    state: str
    name: str
    due_at: datetime
    failures: int
    failure: str | None


class Handle:
    """An instance that an engine began. Reading it reads the store, so it is never out of date.

    Attributes:
        id: of the instance.
        definition: what it was begun under.
    """

    def __init__(self, engine: "Engine", id: str, definition: Definition) -> None:
        self._engine = engine
        self.id = id
        self.definition = definition

    def __repr__(self) -> str:
        return f"<{self.definition.name} {self.id}>"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def engine(self) -> "Engine":
        """The engine that it is a handle of."""
        return self._engine

    @property
    def state(self) -> str:
        """The flat state that it is in; `definition.leaves(state)` gives the active ones."""
        return self._engine.store.current(self.id)

    @property
    def data(self) -> dict[str, Any]:
        """Its fields as JSON has them: a copy."""
        return self.data_at(None)

    @property
    def version(self) -> int:
        """The number of its last entry plus one."""
        return self.snapshot().version

    @property
    def is_final(self) -> bool:
        """Whether it has come to its end."""
        return self.state in self.definition.flat.final

    @property
    def outcome(self) -> str | None:
        """What its end meant; a machine says that by its final state alone."""
        return self.snapshot().outcome

    @property
    def timers(self) -> list[Timer]:
        """The timers that run, in the order in which they are due."""
        key = (self._engine.runs.context.tenant, root_of(self.id), self.id)

        def read() -> Plan[list[Timer]]:
            rows = yield Statement("read_timers", [key], True)
            return [
                Timer(state, name, from_microseconds(due), failures, failure)
                for state, name, _, due, failures, failure in rows
            ]

        return self._engine.runs.look(read)

    def snapshot(self, *, at_sequence: int | None = None, connection: Any = None) -> Instance:
        """Give it as it is, or as it was after an entry; see `Store.snapshot`."""
        store = self._engine.store
        return store.snapshot(self.id, at_sequence=at_sequence, connection=connection)

    def history(
        self, query: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> list[Entry]:
        """Give its entries; see `Store.history`."""
        return self._engine.store.history(self.id, query, connection=connection)

    def data_at(self, sequence_number: int | None, *, connection: Any = None) -> dict[str, Any]:
        """Rebuild its fields from the record, as they were with an entry; 0 is the birth.

        Args:
            sequence_number: None for the last entry.
            connection: whose transaction to look from; see `Store`.

        Raises:
            InvalidRequest: there is no such entry.
            StorageFailure: a payload that they are made of was destroyed.
        """
        tenant = self._engine.runs.context.tenant

        def read() -> Plan[dict[str, Any]]:
            instance = yield from read_instance(tenant, self.id, last=False)
            number = instance.version - 1 if sequence_number is None else sequence_number
            if type(number) is not int or not 0 <= number < instance.version:
                what = f"`sequence_number` is from 0 to {instance.version - 1}"
                raise InvalidRequest(what, argument="sequence_number")
            asked = (tenant, root_of(self.id), self.id, number)
            rows = yield Statement("read_changes", [asked])
            return {**recall((kind, content) for _, kind, content in rows).data}

        return self._engine.runs.look(read, connection)

    def send(
        self,
        event: str,
        payload: Mapping[str, Any] | None = None,
        *,
        actor_ref: str | None = None,
        asserting: Iterable[str] = (),
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        reason: str | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
        worker_id: str | None = None,
        connection: Any = None,
    ) -> str:
        """Send it an event, and give the state in which all that follows by itself has left it.

        Args:
            payload: the fields of the event, as the definition declares them.
            asserting: labels of guards that the sender asserts, such as a signature.
            expected_version, idempotency_key, reason, correlation_id, causation_id, worker_id: of
                its entry, as of `Store.fire`.
            connection: whose transaction to join; see `Store`.

        Raises:
            InvalidRequest, NotKnown, IdempotencyConflict, VersionConflict, Terminal,
            InvalidTransition, GuardNotSatisfied, GuardError, Nondeterministic, HookFailed,
            StepLimit, StorageFailure, OutcomeUnknown: nothing was written (with the last: perhaps).
        """
        runs = self._engine.runs
        limits = runs.context.limits
        asserted = labels(asserting, limits)
        attempt = prepare_fire(
            runs.new_id(),
            limits,
            self.id,
            event,
            actor_ref,
            None,
            None,
            expected_version,
            idempotency_key,
            reason,
            correlation_id,
            causation_id,
            worker_id,
            told=sorted({*asserted}),
            asked=Asked(Trigger("event", event), "", fields("payload", payload), asserted),
        )
        return self._engine.carry_out(attempt, connection)

    def can(
        self,
        event: str,
        payload: Mapping[str, Any] | None = None,
        *,
        asserting: Iterable[str] = (),
        actor_ref: str | None = None,
        connection: Any = None,
    ) -> Possible:
        """Say whether an event may be sent now, and why not. Nothing is written.

        Guards in Python are asked, on a connection that only reads, or on the caller's.
        """
        asserted = labels(asserting, self._engine.runs.context.limits)
        given = None if payload is None else fields("payload", payload)

        def read() -> Plan[Possible]:
            run, program = yield from self._standing(event, actor_ref)
            return (yield from _possible(run, program, event, given, asserted))

        return self._engine.runs.look(read, connection)

    def possible(
        self,
        *,
        asserting: Iterable[str] = (),
        actor_ref: str | None = None,
        connection: Any = None,
    ) -> list[Possible]:
        """List every event that it knows where it is, with whether it may be sent now.

        An event whose fields decide is `needs-payload`: ask `can` with them.
        """
        asserted = labels(asserting, self._engine.runs.context.limits)

        def read() -> Plan[list[Possible]]:
            run, program = yield from self._standing("", actor_ref)
            found = []
            for event in program.events(run.standing.snapshot.state):
                found.append((yield from _possible(run, program, event, None, asserted)))
            return found

        return self._engine.runs.look(read, connection)

    def _standing(self, event: str, actor_ref: str | None) -> Plan[tuple[Run, Program]]:
        engine, context = self._engine, self._engine.runs.context
        standing = yield from find(context, self.id, held=False)
        program = yield from engine.program(standing.definition or "")
        return Run(engine, context, program, standing, Request(event, actor_ref)), program


def _possible(
    run: Run,
    program: Program,
    event: str,
    given: Mapping[str, Any] | None,
    asserting: tuple[str, ...],
) -> Plan[Possible]:
    """Say whether an event may be sent.

    Args:
        given: its payload; None where nobody knows it yet.
    """
    asked = Asked(Trigger("event", event), "", given or {}, asserting)
    try:
        branch = yield from run.decide(asked, without_payload=given is None)
    except GuardError as refusal:
        properties = program.definition.events.get(event)
        if given is None and properties is not None and properties.fields:
            what = f"its payload decides: {', '.join(properties.fields)}"
            return Possible(event, False, "needs-payload", what)
        return Possible(event, False, refusal.reason, str(refusal))
    except GuardNotSatisfied as refusal:
        return Possible(event, False, refusal.reason, str(refusal), refusal.guards)
    except Rejected as refusal:
        return Possible(event, False, refusal.reason, str(refusal))
    assert branch is not None  # of an event
    return Possible(event, True, None, None, branch.guards, branch.action, branch.to_state)
