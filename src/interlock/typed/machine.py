"""What a module of typed states calls: reads an instance as the class of its state, and sends.

A typed state is a value: the instance as it was when it was read. An event that is sent from it is
refused as `version-conflict` if the instance has moved on since, because then the type no longer
says which events there are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

from interlock.core.rejection import DefinitionChanged, InvalidRequest
from interlock.core.text import quoted
from interlock.engine.engine import Engine
from interlock.engine.handle import Handle
from interlock.engine.sending import find
from interlock.language.definition import Definition
from interlock.store.read import list_instances_of
from interlock.typed.values import in_python

S = TypeVar("S")


class Sending(TypedDict, total=False):
    """What may be said beside an event, as of `Handle.send`."""

    actor_ref: str | None
    reason: str | None
    idempotency_key: str | None
    correlation_id: str | None
    causation_id: str | None
    worker_id: str | None
    connection: Any


class Starting(TypedDict, total=False):
    """What may be said beside the data of a new instance, as of `Engine.start`."""

    actor_ref: str | None
    subject_ref: str | None
    idempotency_key: str | None
    connection: Any


class Adopting(Starting, total=False):
    """What may be said beside the data of an instance in mid-life, as of `Engine.adopt`."""

    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedState:
    """An instance as it was when it was read; the classes of states are made of it.

    Attributes:
        handle: on the instance as it is.
        version: of the instance when it was read.
    """

    handle: Handle = field(repr=False)
    version: int

    @property
    def id(self) -> str:
        """The id of the instance."""
        return self.handle.id


@dataclass(frozen=True, kw_only=True)
class TypedMachine(Generic[S]):
    """A definition to the module that was written from it.

    Attributes:
        name, version, digest: of the definition; instances of another one are refused.
        states: the class of each state.
        data: the class of each state's data.
        renamed: fields of the data whose names Python has other uses for, by the names they have.
    """

    name: str
    version: str
    digest: str
    states: Mapping[str, type[Any]]
    data: Mapping[str, type[Any]]
    renamed: Mapping[str, str] = field(default_factory=dict)

    def start(
        self, engine: Engine, definition: Definition, data: Mapping[str, object], how: Starting
    ) -> S:
        """Begin an instance; see `Engine.start`."""
        self.check(definition)
        handle = engine.start(definition, _given(data), **how)
        return self.read(handle, how.get("connection"))

    def adopt(
        self,
        engine: Engine,
        definition: Definition,
        state: str,
        data: Mapping[str, object],
        how: Adopting,
    ) -> S:
        """Begin an instance in mid-life; see `Engine.adopt`."""
        self.check(definition)
        handle = engine.adopt(definition, state, _given(data), **how)
        return self.read(handle, how.get("connection"))

    def get(self, engine: Engine, id: str, connection: Any = None) -> S:
        """Read an instance."""
        return self.read(engine.get(id, connection=connection), connection)

    def find(
        self,
        engine: Engine,
        *,
        state: str | None,
        subject_ref: str | None,
        limit: int,
        after: str | None,
    ) -> list[S]:
        """Read the instances of this version of the machine, by id; see `Engine.find`."""
        runs = engine.runs
        tenant = runs.context.tenant
        make = partial(list_instances_of, tenant, self.digest, state, subject_ref, limit, after)
        return [self.get(engine, row.id) for row in runs.look(make)]

    def read(self, handle: Handle, connection: Any = None) -> S:
        """Read an instance as the class of the state that it is in.

        Raises:
            DefinitionChanged, InvalidRequest: it has another definition than the module.
            NotKnown, StorageFailure.
        """
        self.check(handle.definition)
        runs = handle.engine.runs
        standing = runs.look(partial(find, runs.context, handle.id, held=False), connection)
        state, memory = standing.snapshot.state, standing.memory
        if state not in self.states:
            what = f"`{handle.id}` is in {quoted(state)}, which has no type"
            raise InvalidRequest(what, argument="id")
        properties = handle.definition.data
        values = dict.fromkeys(properties.fields) | in_python(properties, memory.data)
        fields = {self.renamed.get(name, name): value for name, value in values.items()}
        data = self.data[state](**fields)
        found: S = self.states[state](handle=handle, version=standing.snapshot.version, data=data)
        return found

    def send(
        self,
        state: TypedState,
        event: str,
        payload: Mapping[str, object],
        how: Sending,
        asserting: Iterable[str] = (),
    ) -> S:
        """Send an event to an instance that has not moved on, and read where that leads.

        Raises:
            VersionConflict: it has; read it again.
            Rejected: as `Handle.send`.
        """
        state.handle.send(
            event, _given(payload), asserting=asserting, expected_version=state.version, **how
        )
        return self.read(state.handle, how.get("connection"))

    def check(self, definition: Definition) -> None:
        """See that a definition is the one that the module was written from.

        Raises:
            DefinitionChanged: it has the same name and another meaning or version.
            InvalidRequest: it is another machine.
        """
        if definition.digest == self.digest:
            return
        mine = f"these types are of {quoted(self.name)}"
        if definition.name != self.name:
            what = f"{mine}, not of {quoted(definition.name)}"
            raise InvalidRequest(what, argument="definition")
        raise DefinitionChanged(
            f"{mine}, version {quoted(self.version)} (digest {self.digest[:12]}…), and this is "
            f"version {quoted(definition.version)} (digest {definition.digest[:12]}…); "
            "write them anew with `interlock gen types`",
            name=definition.name,
            version=definition.version,
            digest=definition.digest,
        )


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    """Leave out what was not given: no field is ever null."""
    return {name: value for name, value in fields.items() if value is not None}
