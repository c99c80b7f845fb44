"""Hooks and guards in Python: who is registered, what they are given, and what becomes of it.

A hook is called within the transaction of the fire, with its connection in hand. What it does
there, and what it changes of the data, stands or falls with the fire; it must not commit or roll
back itself. A guard is given the same and only looks.
"""

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, overload

from interlock.core.rejection import GuardError, HookFailed, InvalidRequest
from interlock.core.text import quoted
from interlock.engine.memory import difference

Hook: TypeAlias = Callable[["Tx"], object]
Guard: TypeAlias = Callable[["Tx"], bool]


class Unregistered(InvalidRequest):
    """This process does not know a hook or guard that a definition names."""

    argument = "definition"


class Raised(NamedTuple):
    """An event that comes after what is being done, within the same fire.

    Attributes:
        asked: a hook asked for it, so it has to be taken; otherwise it is passed over where
            nothing waits for it.
    """

    event: str
    payload: Mapping[str, Any]
    asked: bool


class Tx:
    """What a hook or guard is given: the transaction that it is called in.

    Attributes:
        connection: the driver's own, of `sqlite3` or `psycopg`, in the transaction of the fire.
        actor: who sent it, if that was said.
        now: the moment of the fire, aware UTC.
        id: the instance.
        action, from_state, to_state: the transition; of a birth the first two are None. A guard
            knows of no transition yet: its `action` is the event, and `to_state` is None.
    """

    def __init__(
        self,
        connection: Any,
        *,
        id: str,
        data: Mapping[str, Any],
        event: Mapping[str, Any],
        actor: str | None,
        now: datetime,
        action: str | None,
        from_state: str | None,
        to_state: str | None,
        raised: deque[Raised] | None,
        fire_other: Callable[..., str],
    ) -> None:
        self.connection = connection
        self.id = id
        self._before = data
        self._data: dict[str, Any] | None = None
        self._payload = event
        self.actor = actor
        self.now = now
        self.action = action
        self.from_state = from_state
        self.to_state = to_state
        self._raised = raised
        self._fire_other = fire_other

    @property
    def data(self) -> dict[str, Any]:
        """The fields as JSON has them. What a hook alters here is recorded with the entry."""
        if self._data is None:
            self._data = deepcopy(dict(self._before))
        return self._data

    @data.setter
    def data(self, data: dict[str, Any]) -> None:
        self._data = data

    @property
    def changed(self) -> bool:
        """Whether the data was altered."""
        return self._data is not None and bool(difference(self._before, self._data))

    @property
    def event(self) -> dict[str, Any]:
        """The payload that came with the event; empty for a timer or what is automatic."""
        return deepcopy(dict(self._payload))

    @overload
    def fire(self, event: str, payload: Mapping[str, Any] | None = None, /) -> None: ...

    @overload
    def fire(self, id: str, action: str, /, **how: Any) -> str: ...

    def fire(self, first: str, second: Any = None, /, **how: Any) -> str | None:
        """Send this instance a further event, or fire an action of another instance.

        `tx.fire("settle", {"amount": 3})` is taken after what is being done, within the same
        transaction; where nothing waits for it then, everything is refused.
        `tx.fire(id, "close", actor_ref="ann")` is `Store.fire` of an instance that no engine began,
        at once and within this transaction; it gives the new state.
        """
        if isinstance(second, str):
            return self._fire_other(first, second, connection=self.connection, **how)
        if self._raised is None:
            raise InvalidRequest("a guard only looks, and sends nothing", argument="event")
        if how:
            what = "a further event takes a payload and no more"
            raise InvalidRequest(what, argument=next(iter(how)))
        self._raised.append(Raised(first, deepcopy(dict(second or {})), asked=True))
        return None

    def _check(self) -> None:
        """See that a hook has left data that can be recorded; who did not look at it has.

        Raises:
            TypeError: it is no object.
        """
        if self._data is not None and not isinstance(self._data, dict):
            raise TypeError(f"it left `tx.data` as {type(self._data).__name__}, not as a dict")


def called(hook: Hook, name: str, tx: Tx, state: str, action: str) -> object:
    """Call a hook.

    Raises:
        HookFailed: it raised.
    """
    try:
        answer = hook(tx)
        if answer is not None and inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError("it is asynchronous, and was not awaited")
        tx._check()
    except Exception as error:
        what = f"the hook {quoted(name)} raised {type(error).__name__}: {error}"
        raise HookFailed(
            f"{what}; nothing was written", instance_id=tx.id, state=state, action=action, hook=name
        ) from error
    return None


def asked(guard: Guard, name: str, tx: Tx, state: str, action: str) -> bool | GuardError:
    """Ask a guard; what it raises, or an answer that is neither True nor False, is an error."""
    why: Exception | None = None
    try:
        answer = guard(tx)
    except Exception as error:
        what, why = f"raised {type(error).__name__}: {error}", error
    else:
        if answer is True or answer is False:
            return answer
        what = f"gave {quoted(repr(answer))}, which is neither True nor False"
    refusal = GuardError(
        f"the guard {quoted(name)} {what}",
        instance_id=tx.id,
        state=state,
        action=action,
        guard=name,
    )
    refusal.__cause__ = why
    return refusal
