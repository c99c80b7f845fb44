"""The engine: runs definitions on a store.

engine = interlock.Engine(store)

@engine.hook("reserve_stock")
def reserve_stock(tx):
    tx.connection.execute("INSERT INTO reservations VALUES (?, ?)", (tx.id, tx.data["qty"]))

order = engine.start(interlock.load("order.machine.yaml"), data={"qty": 3})
order.send("submit", actor_ref="ann")
order.state                                    # "submitted"
"""

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from interlock.core.instant import from_microseconds, to_microseconds
from interlock.core.machine import Request, check_text
from interlock.core.rejection import InvalidRequest, OutcomeUnknown, Rejected, StorageFailure
from interlock.core.text import clipped, nearest, quoted
from interlock.engine.asked import Asked, Begin, complete, fields
from interlock.engine.beginning import begin
from interlock.engine.handle import Handle, Possible
from interlock.engine.hooks import Guard, Hook, Unregistered
from interlock.engine.program import Program
from interlock.engine.sending import find, send
from interlock.engine.timers import FIRST, DueTimer, read_due
from interlock.engine.together import send_each
from interlock.language.chart import Trigger
from interlock.language.definition import Definition, restore
from interlock.store.attempt import (
    Birth,
    Declared,
    FireAttempt,
    prepare_birth,
    prepare_declaration,
)
from interlock.store.face import check_page
from interlock.store.plan import Plan, Statement
from interlock.store.read import list_instances_of
from interlock.store.store import PlanRunner, Store

STEPS_MAX = 100  # entries of one call
SWEPT_WITHIN = timedelta(minutes=5)  # or `start` warns that nobody looks for timers
FIRST_DELAY = timedelta(seconds=1)  # before a timer that failed is tried again; then twice as long
LONGEST_DELAY = timedelta(hours=1)

#: Kinds of failures that are of one instance, and keep no other from being looked at.
_OF_ONE = ("unreadable", "damaged", "refused", "failed")

F = TypeVar("F", bound=Callable[..., object])

#: By thread: the instances, of whatever engine, whose moves have called a hook that is not done.
_moving = threading.local()


class Engine:
    """Runs definitions on a store. Safe to share between threads.

    Args:
        store: an open store, of either database.
        steps_max: entries that one call may write, its own and those that follow by themselves.

    Attributes:
        store: as given.
        runs: what runs its plans there.
    """

    def __init__(self, store: Store, *, steps_max: int = STEPS_MAX) -> None:
        if not isinstance(store, Store):
            what = f"`store` is an open `interlock.Store`, not {type(store).__name__}"
            raise InvalidRequest(what, argument="store")
        if type(steps_max) is not int or steps_max < 1:
            raise InvalidRequest("`steps_max` is a whole number from 1", argument="steps_max")
        self.store = store
        self.runs = PlanRunner(store)
        self.steps_max = steps_max
        self._hooks: dict[str, Hook] = {}
        self._guards: dict[str, Guard] = {}
        self._programs: dict[str, Program] = {}
        self._lock = threading.Lock()
        self._send = partial(send, self, self.runs.context)
        self._events = self.runs.group(partial(send_each, self, self.runs.context))

    # What definitions name

    def hook(self, name: str) -> Callable[[F], F]:
        """Register a function under the name by which definitions call it as a hook.

        It is given a `Tx`, within the transaction of the fire; what it raises undoes all of that.
        """
        return self._registering(self._hooks, "hook", name)

    def guard(self, name: str) -> Callable[[F], F]:
        """Register a function under the name by which `when: {check: NAME}` asks it.

        It is given a `Tx` and gives True or False; anything else, or an error, is `guard-error`.
        """
        return self._registering(self._guards, "guard", name)

    def _registering(self, kept: dict[str, Any], what: str, name: object) -> Callable[[F], F]:
        if callable(name):
            why = f'it is registered under a name: `@engine.{what}("…")`'
            raise InvalidRequest(f"a {what} has a name of its own; {why}", argument="name")
        told = check_text("name", name, self.runs.context.limits.name_bytes)
        return partial(self._register, kept, what, told)

    def _register(self, kept: dict[str, Any], what: str, name: str, function: F) -> F:
        given: Any = function
        if not callable(given) or inspect.iscoroutinefunction(given):
            why = "it is called within a transaction, and cannot be awaited"
            raise InvalidRequest(f"a {what} is a function that is not async: {why}", argument=what)
        if kept.setdefault(name, function) is not function:
            raise InvalidRequest(f"another {what} is registered as {quoted(name)}", argument="name")
        return function

    # Instances

    def start(
        self,
        definition: Definition,
        data: Mapping[str, Any] | None = None,
        *,
        workflow_id: str | None = None,
        subject_ref: str | None = None,
        actor_ref: str | None = None,
        connection: Any = None,
        idempotency_key: str | None = None,
    ) -> Handle:
        """Begin an instance of a definition, and give a handle on it.

        Its `on_enter` hooks are called, its timers set, and what is automatic taken, all in one
        transaction with its birth.

        Args:
            data: the fields that it declares; those with a default may be left out.
            subject_ref: the entity whose life it governs.
            actor_ref: who begins it.
            connection: whose transaction to join; see `Store`.
            idempotency_key: the same key with the same request gives the same instance again.

        Raises:
            InvalidRequest: an argument is malformed, the data is not as declared, or a hook or
                guard is not registered.
            DefinitionChanged, IdempotencyConflict, GuardError, HookFailed, Nondeterministic,
            StepLimit, StorageFailure, OutcomeUnknown: nothing was begun (with the last: perhaps).
        """
        if workflow_id is not None:
            what = "`workflow_id` names a chain of runs, and a machine has none"
            raise InvalidRequest(f"{what}; use `subject_ref`", argument="workflow_id")
        program = self._checked(definition)
        born = Birth(actor_ref, subject_ref, None, None, idempotency_key)
        return self._begin(program, program.declared, born, data, connection, hooks=True)

    def adopt(
        self,
        definition: Definition,
        state: str,
        data: Mapping[str, Any] | None = None,
        *,
        subject_ref: str | None = None,
        actor_ref: str | None = None,
        reason: str | None = None,
        connection: Any = None,
        idempotency_key: str | None = None,
    ) -> Handle:
        """Begin an instance in mid-life, for a case that began elsewhere.

        No hook is called for a state that it is in already; its timers begin to run. Its genesis
        says that it was adopted, and why. What history states would remember is not known.

        Args:
            state: the flat state that it is in.
            reason: why, kept with its birth.

        Raises:
            InvalidRequest: there is no such state, or nothing leaves it; and as `start`.
        """
        program = self._checked(definition)
        if state not in definition.states or program.is_final(state):
            names = [name for name in definition.states if not program.is_final(name)]
            close = nearest(str(state), names)
            hint = f"; did you mean {quoted(close)}?" if close else ""
            what = f"{quoted(clipped(str(state)))} is no state that an instance could be in"
            raise InvalidRequest(f"`state` {what}{hint}", argument="state")
        declaration = {**definition.declaration, "initial_state": state}
        declared = prepare_declaration(declaration, self.runs.context.limits)
        if reason is not None:
            reason = check_text("reason", reason, self.runs.context.limits.reason_bytes)
        told: dict[str, Any] = {
            "adopted": {"state": state, **({"reason": reason} if reason else {})}
        }
        born = Birth(actor_ref, subject_ref, told, None, idempotency_key)
        return self._begin(program, declared, born, data, connection, hooks=False)

    def get(self, id: str, *, connection: Any = None) -> Handle:
        """Give a handle on an instance that an engine began.

        Raises:
            InvalidRequest, NotKnown, StorageFailure.
        """
        id = check_text("id", id, self.runs.context.limits.reference_bytes)
        make = partial(find, self.runs.context, id, held=False)
        standing = self.runs.look(make, connection)
        program = self.runs.look(partial(self.program, standing.definition or ""), connection)
        return Handle(self, id, program.definition)

    def find(
        self,
        definition: Definition | str,
        *,
        subject_ref: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Handle]:
        """Give handles on the instances of a definition, of whatever version, by id.

        Args:
            definition: it, or its name.
            subject_ref: those that govern this subject.
            state: those that are in this flat state.
            limit, after: of the page, as of `Store.instances`.
        """
        limits = self.runs.context.limits
        check_page(limits, limit, subject_ref=subject_ref, state=state, after=after)
        if not isinstance(definition, Definition | str):
            what = f"`definition` is one, or its name, not {type(definition).__name__}"
            raise InvalidRequest(what, argument="definition")
        name = definition if isinstance(definition, str) else definition.name
        digests = self.runs.look(partial(self._digests, name))
        found: list[Handle] = []
        for digest in digests:
            program = self.runs.look(partial(self.program, digest))
            asked = (self.runs.context.tenant, digest, state, subject_ref, limit, after)
            rows = self.runs.look(partial(list_instances_of, *asked))
            found += [Handle(self, row.id, program.definition) for row in rows]
        found.sort(key=lambda handle: handle.id)
        return found[:limit]

    def can(
        self,
        order: Handle,
        *,
        asserting: Any = (),
        actor_ref: str | None = None,
        connection: Any = None,
    ) -> list[Possible]:
        """List every event that an instance knows where it is: what may be sent, and why not."""
        if not isinstance(order, Handle):
            what = f"`order` is what `start` and `get` give, not {type(order).__name__}"
            raise InvalidRequest(what, argument="order")
        return order.possible(asserting=asserting, actor_ref=actor_ref, connection=connection)

    def carry_out(self, attempt: FireAttempt, connection: Any = None) -> str:
        """Carry out an event, and give the state that it leads to; see `Handle.send`.

        One that calls nothing shares its commit with others that wait.
        """
        if connection is None and self.runs.together and not self._may_call(attempt):
            return self.runs.submit(self._events, attempt)
        return self.runs.perform(self._send, attempt, connection)

    def _may_call(self, attempt: FireAttempt) -> bool:
        """Whether an event may call hooks or guards, as far as is known without looking."""
        standing = self.runs.known(attempt.instance_id)
        program = self._programs.get(standing.definition or "") if standing else None
        if standing is None or program is None:
            return True
        what: Asked = attempt.asked
        return program.may_call(standing.snapshot.state, what.trigger, what.owner)

    # Timers

    def tick(self, *, limit: int | None = None) -> int:
        """Sweep once: let every timer that is due run out, and give how many took a transition.

        Any number of processes may sweep at once: each timer runs out exactly once, however late.
        One whose guard or hook fails is kept and tried again later; `Handle.timers` shows why.

        Args:
            limit: look at no more timers than this, beside those that this process cannot run.
        """
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InvalidRequest("`limit` is a whole number from 1", argument="limit")
        until = to_microseconds(self.runs.context.clock())
        fired = looked = 0
        left: dict[str, None] = {}
        for timer in self._due(until):
            if looked == limit:
                break
            try:
                fired += self._run_out(timer)
            except Unregistered as unknown:
                left[str(unknown)] = None  # another process may know what is called
                continue
            looked += 1
        if left:
            what = "; ".join(left)
            warnings.warn(f"due timers were left alone: {what}", RuntimeWarning, stacklevel=2)
        self.runs.write(partial(self._mark_sweep, until))
        return fired

    def _run_out(self, timer: DueTimer) -> bool:
        """Let a timer run out, and say whether that took a transition."""
        asked = Asked(Trigger("after", timer.name), timer.state, armed_at=timer.armed_at)
        request = Request(f"after/{timer.name}")
        attempt = FireAttempt(timer.id, request, self.runs.new_id(), None, None, asked)
        try:
            return bool(self.runs.perform(self._send, attempt))
        except (Unregistered, OutcomeUnknown):
            raise
        except Rejected as refusal:
            if isinstance(refusal, StorageFailure) and refusal.kind not in _OF_ONE:
                raise
            told = clipped(f"{refusal.reason}: {refusal}", 500)
            self.runs.write(partial(self._postpone, timer, told))
            return False

    def _postpone(self, timer: DueTimer, failure: str) -> Plan[None]:
        delay = min(FIRST_DELAY * 2 ** min(timer.failures, 20), LONGEST_DELAY)
        next_try = to_microseconds(self.runs.context.clock() + delay)
        key = (self.runs.context.tenant, *timer[1:5], timer.armed_at)
        yield Statement("postpone_timer", [(*key, next_try, failure)])

    def _due(self, until: int) -> Iterator[DueTimer]:
        """Give every timer that is to be looked at by a moment, each once."""
        after = FIRST
        while page := self.runs.look(partial(read_due, self.runs.context.tenant, until, after)):
            yield from page
            after = page[-1]

    def _mark_sweep(self, at: int) -> Plan[None]:
        yield Statement("mark_sweep", [(self.runs.context.tenant, at)])

    def _read_sweep(self) -> Plan[datetime | None]:
        rows = yield Statement("read_sweep", [(self.runs.context.tenant,)], True)
        return from_microseconds(rows[0][0]) if rows else None

    def _warn_unless_swept(self, definition: Definition) -> None:
        swept = self.runs.look(self._read_sweep)
        now = self.runs.context.clock()
        if swept is None or now - swept > SWEPT_WITHIN:
            when = "never" if swept is None else f"not since {swept.isoformat()}"
            what = f"`{definition.name}` has timers, and this store was swept {when}"
            warnings.warn(
                f"{what}: nothing runs out until somebody calls `engine.tick()`",
                RuntimeWarning,
                stacklevel=4,
            )

    # What plans ask

    def program(self, digest: str) -> Plan[Program]:
        """Give the program of a definition that is kept in the store.

        Raises:
            StorageFailure: it is gone, or is not what it was.
        """
        program = self._programs.get(digest)
        if program is not None:
            return program
        rows = yield Statement("read_definition", [(self.runs.context.tenant, digest)])
        if not rows:
            what = f"the store has lost the definition {digest}; run `verify`"
            raise StorageFailure(what, kind="damaged")
        definition = restore(rows[0][3])
        if definition.digest != digest:
            what = f"the definition {digest} was altered, or another version compiled it"
            raise StorageFailure(f"{what}; run `verify`", kind="damaged")
        return self._keep(definition)

    def registered_hook(self, name: str) -> Hook:
        """Give a hook.

        Raises:
            Unregistered: none is registered under the name.
        """
        hook = self._hooks.get(name)
        if hook is None:
            raise Unregistered(f"no hook is registered as {quoted(name)} in this process")
        return hook

    def registered_guard(self, name: str) -> Guard:
        """Give a guard.

        Raises:
            Unregistered: none is registered under the name.
        """
        guard = self._guards.get(name)
        if guard is None:
            raise Unregistered(f"no guard is registered as {quoted(name)} in this process")
        return guard

    def fire_other(self, id: str, action: str, **how: Any) -> str:
        """Fire another instance from within a hook."""
        return self.store.fire(id, action, **how)

    @contextmanager
    def moving(self, id: str) -> Iterator[None]:
        """Say that a hook of this thread is being called by a move of an instance."""
        ids: list[tuple[str, str]] = _moving.__dict__.setdefault("ids", [])
        ids.append((self.runs.where, id))
        try:
            yield
        finally:
            ids.pop()

    def check_not_moving(self, id: str) -> None:
        """Refuse to move an instance from within a hook of its own move.

        Raises:
            InvalidRequest: it would be moved under the feet of the move that called the hook.
        """
        if (self.runs.where, id) in _moving.__dict__.get("ids", ()):
            what = f"{quoted(id)} is being moved, and this is a hook of that move"
            raise InvalidRequest(f'{what}; send it a further event by `tx.fire("event")`')

    def _begin(
        self,
        program: Program,
        declared: Declared,
        born: Birth,
        data: Mapping[str, Any] | None,
        connection: Any,
        *,
        hooks: bool,
    ) -> Handle:
        definition, context = program.definition, self.runs.context
        whole = complete("data", definition.data, fields("data", data), context.limits)
        state = declared.machine.initial_state
        missing = sorted(definition.required(state) - whole.keys())
        if missing and not hooks:  # which might supply it
            listed = ", ".join(map(quoted, missing))
            what = f"`data` lacks {listed}, which {quoted(state)} requires"
            raise InvalidRequest(what, argument="data")
        if program.has_timers:
            self._warn_unless_swept(definition)
        attempt = prepare_birth(
            declared,
            born,
            now=context.clock(),
            new_id=self.runs.new_id(),
            salt=context.salt(),
            limits=context.limits,
            definition=definition.digest,
        )._replace(asked=Begin(definition.digest, whole, hooks))
        id = self.runs.perform(partial(begin, self, context), attempt, connection)
        return Handle(self, id, definition)

    def _checked(self, definition: Definition) -> Program:
        """Give the program of a definition whose hooks and guards are all registered.

        Raises:
            InvalidRequest: it is none, or one of them is not.
        """
        if not isinstance(definition, Definition):
            what = f"`definition` is what `interlock.load` gives, not {type(definition).__name__}"
            raise InvalidRequest(what, argument="definition")
        if definition.plan is not None:
            what = f"`{definition.name}` is a workflow, and so far only machines are run"
            raise InvalidRequest(what, argument="definition")
        program = self._programs.get(definition.digest) or self._keep(definition)
        missing = [*_missing("hook", program.hooks(), self._hooks)]
        missing += _missing("guard", program.guards(), self._guards)
        if missing:
            raise Unregistered(f"`{definition.name}` names {'; '.join(missing)}")
        return program

    def _keep(self, definition: Definition) -> Program:
        with self._lock:
            return self._programs.setdefault(definition.digest, Program(definition))

    def _digests(self, name: str) -> Plan[list[str]]:
        rows = yield Statement("read_definition_digests", [(self.runs.context.tenant, name)], True)
        return [digest for (digest,) in rows]


def _missing(what: str, names: set[str], registered: Mapping[str, object]) -> Iterator[str]:
    for name in sorted(names - registered.keys()):
        close = nearest(name, sorted(registered))
        hint = f" (did you mean {quoted(close)}?)" if close else ""
        yield f"the {what} {quoted(name)}, which is not registered{hint}"
