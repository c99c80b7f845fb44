"""A case tried on an engine: what comes of it is compared with what the definition says.

    trial = Trial(definition)
    trial.run(case)                 # AssertionError: it says what differs

Each case has a store of its own, in memory, with a clock that is moved by hand. Guards in Python
say what the case says; hooks are written down, and supply what a state requires. A hook that is
given is called as well, with everything that it does.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import interlock
from interlock.core.instant import MICROSECOND
from interlock.core.rejection import Rejected
from interlock.engine.engine import Engine
from interlock.engine.handle import Handle
from interlock.engine.hooks import Hook, Tx
from interlock.engine.program import Program
from interlock.language.definition import Definition
from interlock.store.store import Store
from interlock.testing.clock import ManualClock
from interlock.witness.case import Begin, Case
from interlock.witness.model import Outcome, Send, Step, supplied

Opening = Callable[..., Store]


class Played:
    """An engine on a store, whose hooks are written down and whose guards say what they are told.

    Args:
        hooks: functions that are called as the hooks of these names.

    Attributes:
        calls: the hooks that were called, in order; also those of a fire that came to nothing.
        says: what guards say, by name; one that is not there says no.
    """

    def __init__(
        self,
        definition: Definition,
        store: Store,
        clock: ManualClock,
        hooks: Mapping[str, Hook] | None = None,
    ) -> None:
        self.definition = definition
        self.clock = clock
        self.engine = Engine(store)
        self.calls: list[str] = []
        self.says: Mapping[str, bool] = {}
        self._hooks = dict(hooks or {})
        program = Program(definition)
        for name in sorted(program.hooks()):
            self.engine.hook(name)(partial(self._call, name))
        for name in sorted(program.guards()):
            self.engine.guard(name)(partial(self._ask, name))
        unknown = sorted(self._hooks.keys() - program.hooks())
        if unknown:
            raise ValueError(f"`{definition.name}` calls no hook `{'`, `'.join(unknown)}`")

    def _call(self, name: str, tx: Tx) -> None:
        self.calls.append(name)
        if name in self._hooks:
            self._hooks[name](tx)
        state = tx.to_state
        if state is not None:
            tx.data.update(supplied(self.definition, state, tx.data))

    def _ask(self, name: str, _: Tx) -> bool:
        return self.says.get(name, False)

    def begin(self, begin: Begin) -> Handle:
        """Begin an instance."""
        self.clock.move_to(max(begin.at, self.clock()))
        self.says = begin.guards
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nobody sweeps, but for the case
            if begin.state is None:
                return self.engine.start(self.definition, begin.data, actor_ref=begin.actor)
            return self.engine.adopt(
                self.definition, begin.state, begin.data, actor_ref=begin.actor
            )

    def step(self, handle: Handle, step: Step) -> str | None:
        """Do a step; give the word of its refusal, if it is refused."""
        self.says = step.guards
        if step.at is not None:
            self.clock.move_to(max(step.at, self.clock()))
        if not isinstance(step, Send):
            self.engine.tick()
            return None
        try:
            handle.send(step.event, step.payload, actor_ref=step.actor, asserting=step.asserting)
        except Rejected as refusal:
            return refusal.reason
        return None


class Trial:
    """Tries cases of one definition, each on a store of its own.

    Args:
        hooks: functions that are called as the hooks of these names; what they do to the data, and
            what they send, is theirs, so then only the branch itself is compared.
        open_store: as `interlock.open`, for another database.
    """

    def __init__(
        self,
        definition: Definition,
        hooks: Mapping[str, Hook] | None = None,
        open_store: Opening | None = None,
    ) -> None:
        self._definition = definition
        self._hooks = dict(hooks or {})
        self._open = open_store or partial(interlock.open, "sqlite://")

    @contextmanager
    def played(self, begin: Begin) -> Iterator[Played]:
        """Open a store, with an engine on it."""
        clock = ManualClock(begin.at)
        with self._open(clock=clock) as store:
            yield Played(self._definition, store, clock, self._hooks)

    def run(self, case: Case) -> None:
        """Try a case.

        Raises:
            AssertionError: the engine does something else than the definition says.
        """
        with self.played(case.begin) as played:
            handle, done, called = played.begin(case.begin), 0, 0
            for number, outcome in enumerate(case.outcomes):
                refused = None
                if number:
                    if number == len(case.outcomes) - 1:
                        self._check_early(played, handle, case.steps[-1])
                        called = len(played.calls)
                    refused = played.step(handle, case.steps[number - 1])
                entries = handle.history()
                actions = tuple(entry.action for entry in entries[done:])
                hooks = tuple(played.calls[called:])
                done, called = len(entries), len(played.calls)
                found = Outcome(handle.state, handle.data, actions, hooks, refused)
                if outcome is not None:
                    self._compare(case, number, found, outcome)
            check_record(played, handle, case.name)

    def _compare(self, case: Case, number: int, found: Outcome, wanted: Outcome) -> None:
        what = f"{case.name}: " + (f"step {number}" if number else "the beginning")
        if self._hooks and not wanted.refused:
            found = found._replace(data={}, hooks=())
            wanted = wanted._replace(data={}, hooks=())
            first = wanted.actions[:1]
            assert found.actions[:1] == first, _told(what, "entries", found.actions, first)
            return
        for name, has, wants in zip(Outcome._fields, found, wanted, strict=True):
            if name != "hooks" or not wanted.refused:  # it is no matter how far a refused one came
                assert has == wants, _told(what, name, has, wants)

    def _check_early(self, played: Played, handle: Handle, step: Step) -> None:
        """See that a timer does not run out before it is due, if no other one is due before."""
        due = [timer.due_at for timer in handle.timers]
        if isinstance(step, Send) or not due or min(due) <= played.clock():
            return
        before = handle.version
        played.clock.move_to(min(due) - MICROSECOND)
        played.engine.tick()
        assert handle.version == before, "a timer ran out before it was due"


def check_record(played: Played, handle: Handle, what: str) -> None:
    """See that a record is sound, replays to the state and the data, and is as declared.

    Raises:
        AssertionError: it is not.
    """
    declared = {
        (row["from_state"], row["action"]): row["to_state"]
        for row in played.definition.declaration["transitions"]
    }
    state = handle.snapshot(at_sequence=0).state
    for entry in handle.history():
        assert entry.from_state == state, _told(what, "from_state", entry.from_state, state)
        state = declared[entry.from_state, entry.action]
        assert entry.to_state == state, _told(what, "to_state", entry.to_state, state)
    assert handle.state == state, _told(what, "state", handle.state, state)
    data = handle.data
    faults = played.definition.data.check(data)
    assert not faults, f"{what}: the data is not as declared: {faults}"
    missing = played.definition.required(state) - data.keys()
    assert not missing, f"{what}: `{state}` requires {sorted(missing)}"
    report = handle.engine.store.verify(handle.id)
    assert report.ok, f"{what}: {report.findings}"


def _told(what: str, name: str, found: Any, wanted: Any) -> str:
    return f"{what}: {name} is {found!r}, and the definition says {wanted!r}"
