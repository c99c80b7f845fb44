"""One instance while it is being moved: what one event, or one timer, does, step by step.

    decide -> on_exit hooks -> set -> do hooks -> the move -> on_enter hooks -> timers
           -> what is automatic, then what was raised, until nothing is left

Each step is a part of a plan, written as it is taken; all of it is one transaction.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from interlock.core.instant import to_microseconds
from interlock.core.machine import Request, decide, version_conflict
from interlock.core.rejection import (
    GuardError,
    HookFailed,
    InvalidTransition,
    Rejected,
    StepLimit,
    Terminal,
)
from interlock.core.text import quoted
from interlock.engine import taken
from interlock.engine.asked import Asked, size_fault
from interlock.engine.changes import Change, Ledger
from interlock.engine.choosing import Asking, Occasion, choose, no_value, open_branches
from interlock.engine.hooks import Guard, Hook, Raised, Tx, asked, called
from interlock.engine.memory import WHOLE_EVERY, Memory, Patch, difference
from interlock.engine.program import Program
from interlock.language.chart import Hook as Named
from interlock.language.chart import Trigger
from interlock.language.expressions.expression import ExpressionError
from interlock.language.flatten import Branch
from interlock.store.attempt import FireAttempt
from interlock.store.context import Context
from interlock.store.fire import entry_rows
from interlock.store.plan import Call, Plan, Statement
from interlock.store.standings import Standing


class Registry(Protocol):
    """What a plan needs of the engine that it runs for."""

    steps_max: int

    def program(self, digest: str) -> Plan[Program]: ...

    def registered_hook(self, name: str) -> Hook: ...

    def registered_guard(self, name: str) -> Guard: ...

    def fire_other(self, id: str, action: str, **how: Any) -> str: ...

    def moving(self, id: str) -> AbstractContextManager[None]: ...

    def check_not_moving(self, id: str) -> None: ...


class Run:
    """One instance while it is being moved.

    Attributes:
        standing: where it is, once what was yielded so far is written.
        limits: the largest sizes accepted.
        payload: what the event brought, complete, once that was decided.
    """

    def __init__(
        self,
        registry: Registry,
        context: Context,
        program: Program,
        standing: Standing,
        request: Request,
    ) -> None:
        self.standing = standing
        self.limits = context.limits
        self.payload: dict[str, Any] = {}
        self._registry = registry
        self._context = context
        self._program = program
        self._request = request
        # As entries are: a clock that was set back makes nothing earlier than the birth.
        self._now: datetime = max(context.clock(), standing.snapshot.instantiated_at)
        self._raised: deque[Raised] = deque()
        self._taken: list[Branch] = []
        self._first = ""  # the entry, or birth, that the others follow from
        self._followed = 0  # how many did
        self._steps = 0
        self._entry_id = standing.snapshot.instance_id  # the last one written, or the birth
        self._ledger: Ledger | None = None  # of what came with that

    # What is decided

    def decide(self, what: Asked, *, without_payload: bool = False) -> Asking[Branch | None]:
        """Give the branch that an event takes; of a timer None, if none is open.

        Args:
            without_payload: nobody knows yet what the event will bring.

        Raises:
            VersionConflict, Terminal, InvalidTransition, InvalidRequest (of the payload),
            GuardError, GuardNotSatisfied, Nondeterministic: in this order.
        """
        snapshot, program = self.standing.snapshot, self._program
        expected = self._request.expected_version
        if expected is not None and expected != snapshot.version:
            raise version_conflict(snapshot, expected)
        trigger = what.trigger
        branches = program.branches(snapshot.state, trigger, what.owner)
        if not branches:
            self._refuse(trigger.name)
        if not without_payload:
            self.payload = program.payload(trigger, what.payload, self.limits)
        occasion = self._occasion(trigger.name, self.payload, self._request.actor_ref)
        if trigger.kind == "event":
            return (yield from choose(occasion, branches, what.asserting))
        open_ = yield from self._open(occasion, branches)
        return (yield from choose(occasion, open_, ())) if open_ else None

    def is_due(self, what: Asked) -> Plan[bool]:
        """Whether a timer still runs that was found to be due."""
        rows = yield Statement("read_timer", [(*self._key(), what.owner, what.trigger.name)])
        return bool(rows) and rows[0][0] == what.armed_at

    def spend(self, what: Asked) -> Plan[None]:
        """Take away a timer that has run out: it does so once."""
        yield Statement("clear_timer", [(*self._key(), what.owner, what.trigger.name)])

    def _refuse(self, event: str) -> None:
        snapshot = self.standing.snapshot
        state = snapshot.state
        tried = {"instance_id": snapshot.instance_id, "state": state, "action": event}
        if self._program.is_final(state):
            raise Terminal(f"{quoted(state)} is terminal: nothing leaves it", **tried)
        events = self._program.events(state)
        choices = ", ".join(map(quoted, events[:10])) or "none"
        message = f"{quoted(event)} leads nowhere from {quoted(state)} (events there: {choices})"
        raise InvalidTransition(message, **tried, declared=events)

    def _occasion(self, what: str, payload: Mapping[str, Any], actor: str | None) -> Occasion:
        return Occasion(
            self._program,
            self.standing.snapshot,
            self.standing.memory,
            what,
            self._values(payload, actor),
            partial(self._ask, what, payload, actor),
            {},
        )

    def _values(self, payload: Mapping[str, Any], actor: str | None) -> dict[str, Any]:
        """Give what expressions may name; without an actor there is no `actor`."""
        id, state, version, begun = self.standing.snapshot
        instance = {"id": id, "state": state, "version": version, "instantiated_at": begun}
        values = {
            "data": self.standing.memory.data,
            "event": payload,
            "now": self._now,
            "instance": instance,
        }
        return values if actor is None else {**values, "actor": actor}

    def _ask(self, what: str, payload: Mapping[str, Any], actor: str | None, name: str) -> Call:
        guard, state = self._registry.registered_guard(name), self.standing.snapshot.state

        def ask(connection: Any) -> bool | GuardError:
            tx = self._tx(connection, payload, actor, (what, state, None), guards=True)
            with self._registry.moving(tx.id):
                return asked(guard, name, tx, state, what)

        return Call(ask)

    # What is done

    def take(
        self, branch: Branch, payload: Mapping[str, Any], attempt: FireAttempt | None = None
    ) -> Plan[None]:
        """Take a branch: one entry, with what its hooks do.

        Args:
            attempt: the one whose own entry it is; without it, the entry follows from another.
        """
        self._count(branch)
        self._taken.append(branch)
        by_itself = branch.trigger.kind != "event"
        actor = None if by_itself else self._request.actor_ref
        kept: list[Change] = [("event", dict(payload))] if payload else []
        sets = self._sets(branch, self._values(payload, actor)) if branch.sets else {}
        move = (branch.action, branch.from_state, branch.to_state)
        if branch.leaving:
            kept += yield from self._call(branch.leaving, payload, actor, move)
        if sets or branch.remembers:
            kept += self._set(branch, sets)
        if branch.moving:
            kept += yield from self._call(branch.moving, payload, actor, move)
        yield from self._move(branch, actor, attempt)
        if kept:
            yield from self._write_changes(kept)
        for path in branch.left:
            if self._program.timers(path):
                yield Statement("clear_timers", [(*self._key(), path)])
        if branch.entering:
            entered = yield from self._call(branch.entering, payload, actor, move)
            yield from self._write_changes(entered)
        self._check_required(branch.hooks)
        yield from self._arm(branch.entered)

    def settle(self) -> Plan[None]:
        """Take what is automatic, then what was raised, until nothing is left."""
        while True:
            if (yield from self._take_automatic()):
                continue
            if not self._raised:
                if taken.listeners:
                    taken.tell(self._program.definition, self._taken)
                return
            yield from self._take_raised(self._raised.popleft())

    def begin(self, hooks: Sequence[Named], entered: Sequence[str]) -> Plan[None]:
        """Enter the first state of an instance that was just written, and go on from there.

        Args:
            entered: paths of the states whose timers begin to run.
        """
        snapshot, memory = self.standing.snapshot, self.standing.memory
        self._first = snapshot.instance_id
        yield from self._write_changes([("whole", memory.whole())])
        move = (None, None, snapshot.state)
        kept = yield from self._call(hooks, {}, self._request.actor_ref, move)
        yield from self._write_changes(kept)
        self._check_required(hooks)
        yield from self._arm(entered)
        yield from self.settle()

    def _take_automatic(self) -> Plan[bool]:
        for branches in self._program.automatic(self.standing.snapshot.state):
            trigger = branches[0].trigger
            what = f"{trigger.kind}/{branches[0].owner}" if branches[0].owner else trigger.kind
            occasion = self._occasion(what, {}, None)
            if open_ := (yield from self._open(occasion, branches)):
                yield from self.take((yield from choose(occasion, open_, ())), {})
                return True
        return False

    def _open(self, occasion: Occasion, branches: Sequence[Branch]) -> Asking[list[Branch]]:
        """Give the branches that are open to what nobody sends, nor asserts labels for."""
        free = [branch for branch in branches if not branch.guards]
        return (yield from open_branches(occasion, free))

    def _take_raised(self, raised: Raised) -> Plan[None]:
        state = self.standing.snapshot.state
        branches = self._program.branches(state, Trigger("event", raised.event))
        if not branches:
            if raised.asked:
                self._refuse(raised.event)
            return
        payload = self._program.payload(Trigger("event", raised.event), raised.payload, self.limits)
        occasion = self._occasion(raised.event, payload, self._request.actor_ref)
        if not raised.asked and not (branches := (yield from self._open(occasion, branches))):
            return
        yield from self.take((yield from choose(occasion, branches, ())), payload)

    def _count(self, branch: Branch) -> None:
        self._steps += 1
        limit = self._registry.steps_max
        if self._steps > limit:
            snapshot = self.standing.snapshot
            raise StepLimit(
                f"{limit} steps followed one another by themselves, the last to "
                f"{quoted(snapshot.state)}; raise `steps_max`, or let an event stand between them",
                instance_id=snapshot.instance_id,
                state=snapshot.state,
                action=branch.action,
                steps=limit,
            )

    def _move(self, branch: Branch, actor: str | None, attempt: FireAttempt | None) -> Plan[None]:
        """Write the entry; what follows from another names that as its cause, and is called so."""
        asked, standing = self._request, self.standing
        if attempt is not None:
            self._first, new_id = attempt.transition_id, attempt.transition_id
            request = asked._replace(action=branch.action, guard_satisfied=True)
            key, digest = attempt.idempotency_key, attempt.request_digest
        else:
            self._followed += 1
            new_id, key, digest = f"{self._first}.{self._followed}", None, None
            request = Request(
                branch.action,
                actor_ref=actor,
                guard_satisfied=True,
                correlation_id=asked.correlation_id,
                causation_id=self._first,
                worker_id=asked.worker_id,
            )
        limits = self.limits
        decision = decide(
            standing.machine,
            standing.snapshot,
            request,
            now=self._now,
            new_id=new_id,
            limits=limits,
        )
        entry, reason, self.standing = entry_rows(self._context, standing, decision, key, digest)
        yield Statement("append_entry", [entry])
        if reason is not None:
            yield Statement("append_payload", [reason])
        self._entry_id, self._ledger = new_id, None

    def _write_changes(self, changes: Sequence[Change]) -> Plan[None]:
        """Write what came with the last entry."""
        for kind, value in changes:
            yield from self._write_change(kind, value)
        memory: Memory = self.standing.memory
        if changes and memory.patches >= WHOLE_EVERY:
            yield from self._write_change("whole", memory.whole())
            self._remember(Memory(memory.data, memory.remembered))

    def _write_change(self, kind: str, value: Any) -> Plan[None]:
        if self._ledger is None:
            self._ledger = Ledger(self._context, self.standing, self._entry_id)
        head = yield from self._ledger.write(kind, value)
        self.standing = self.standing._replace(head=head)

    def _arm(self, entered: Sequence[str]) -> Plan[None]:
        """Set the timers of states that were entered."""
        number = self.standing.snapshot.version - 1
        for path in entered:
            for timer in self._program.timers(path).values():
                if timer.length is not None:
                    due = to_microseconds(self._now) + timer.length
                else:
                    due = self._moment(path, timer.name)
                yield Statement("set_timer", [(*self._key(), path, timer.name, number, due)])

    def _moment(self, path: str, name: str) -> int:
        """Evaluate the moment that a timer waits for."""
        state = self.standing.snapshot.state
        branch = self._program.branches(state, Trigger("after", name), path)[0]
        expression = self._program.definition.moment(branch)
        assert expression is not None  # of a timer without a length
        try:
            return to_microseconds(expression.evaluate(self._values({}, None)))
        except ExpressionError as error:
            raise no_value(self._occasion(name, {}, None), expression.source, error) from error

    # Data

    def _sets(self, branch: Branch, values: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate what a branch sets; all of it sees the data as it is before."""
        found: dict[str, Any] = {}
        for name, source in branch.sets:
            expression = self._program.definition.setter(name, source, branch)
            if expression is None:
                found[name] = None
                continue
            try:
                found[name] = expression.evaluate(values)
            except ExpressionError as error:
                occasion = self._occasion(branch.action, {}, None)
                raise no_value(occasion, source, error) from error
        return found

    def _set(self, branch: Branch, sets: Mapping[str, Any]) -> list[Change]:
        """Change the data, and what history states remember."""
        memory: Memory = self.standing.memory
        patch: Patch = {}
        if sets:
            data = {name: value for name, value in memory.data.items() if name not in sets}
            data |= {name: value for name, value in sets.items() if value is not None}
            what = f"what {quoted(branch.action)} sets"
            told = {"action": branch.action, "guard": ", ".join(sets)}
            patch |= self._changed(data, GuardError, what, told)
        if branch.remembers:
            remembered = {path: [*states] for path, states in branch.remembers.items()}
            patch |= {"remembered": remembered}
        if patch:
            self._remember(memory.patched(patch))
        return [("patch", patch)] if patch else []

    def _changed(
        self, data: Mapping[str, Any], refusal: type[Rejected], what: str, told: dict[str, str]
    ) -> Patch:
        """Give the patch that makes data of what there is, if it is as declared."""
        snapshot, properties = self.standing.snapshot, self._program.definition.data
        faults = [*map(str, properties.check(data)[:5])]
        whole = {} if faults else properties.encode(properties.complete(data))
        if too_large := size_fault(whole, self.limits):
            faults = [too_large]
        if faults:
            raise refusal(
                f"{what} is not as declared: {'; '.join(faults)}; nothing was written",
                instance_id=snapshot.instance_id,
                state=snapshot.state,
                **told,
            )
        patch = difference(self.standing.memory.data, whole)
        return {"data": patch} if patch else {}

    def _remember(self, memory: Memory) -> None:
        self.standing = self.standing._replace(memory=memory)

    def _check_required(self, hooks: Sequence[Named]) -> None:
        """See that a state has the data that it requires, which hooks may have had to supply."""
        snapshot, data = self.standing.snapshot, self.standing.memory.data
        required = self._program.definition.required(snapshot.state)
        if not required <= data.keys():
            names = ", ".join(map(quoted, sorted(required - data.keys())))
            raise HookFailed(
                f"{quoted(snapshot.state)} requires {names}, which no hook has supplied",
                instance_id=snapshot.instance_id,
                state=snapshot.state,
                action=snapshot.state,
                hook=", ".join(hook.name for hook in hooks if not hook.raises),
            )

    # Hooks

    def _call(
        self,
        hooks: Sequence[Named],
        payload: Mapping[str, Any],
        actor: str | None,
        move: tuple[str | None, str | None, str | None],
    ) -> Plan[list[Change]]:
        """Call hooks, and give the patch of each that changed the data."""
        patches: list[Change] = []
        for named in hooks:
            if named.raises:
                self._raised.append(Raised(named.name, {}, asked=False))
                continue
            hook = self._registry.registered_hook(named.name)
            tx: Tx = yield Call(partial(self._within, hook, named.name, payload, actor, move))
            if not tx.changed:
                continue
            what = f"the data after the hook {quoted(named.name)}"
            told = {"action": move[0] or "start", "hook": named.name}
            patch = self._changed(tx.data, HookFailed, what, told)
            if patch:
                self._remember(self.standing.memory.patched(patch))
                patches.append(("patch", patch))
        return patches

    def _within(
        self,
        hook: Hook,
        name: str,
        payload: Mapping[str, Any],
        actor: str | None,
        move: tuple[str | None, str | None, str | None],
        connection: Any,
    ) -> Tx:
        tx = self._tx(connection, payload, actor, move)
        with self._registry.moving(tx.id):
            called(hook, name, tx, self.standing.snapshot.state, move[0] or "start")
        return tx

    def _tx(
        self,
        connection: Any,
        payload: Mapping[str, Any],
        actor: str | None,
        move: tuple[str | None, str | None, str | None],
        *,
        guards: bool = False,
    ) -> Tx:
        action, origin, target = move
        return Tx(
            connection,
            id=self.standing.snapshot.instance_id,
            data=self.standing.memory.data,
            event=payload,
            actor=actor,
            now=self._now,
            action=action,
            from_state=origin,
            to_state=target,
            raised=None if guards else self._raised,
            fire_other=self._registry.fire_other,
        )

    def _key(self) -> tuple[str, str, str]:
        return self._context.tenant, self.standing.root, self.standing.snapshot.instance_id
