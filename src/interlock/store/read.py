"""The reading plans, and the values that they give."""

from collections.abc import Iterable
from datetime import datetime
from json import loads
from typing import Any, NamedTuple

from interlock.core.entry import PURGED, Entry, Purged
from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds, to_microseconds
from interlock.core.payload import decode_payload
from interlock.core.query import HistoryQuery
from interlock.core.rejection import InvalidRequest, NotKnown
from interlock.core.text import quoted
from interlock.store.attempt import Attempt, BirthAttempt
from interlock.store.plan import Plan, Row, Statement

_LAST = 2**63 - 1


class Instance(NamedTuple):
    """An instance as it is, or as it was at one of its versions.

    Attributes:
        state: the state it is in, or was in at that version.
        version: sequence number of its last entry plus one; 1 is the genesis.
        definition: the digest of its declaration.
        metadata: as supplied at its birth; `PURGED` once its bytes were destroyed.
        outcome: what its end meant, where a layer above records one; a bare machine has none.
        definition_digest: of the definition that an engine began it under; None without an engine.
    """

    id: str
    state: str
    version: int
    definition: str
    instantiated_at: datetime
    actor_ref: str | None
    subject_ref: str | None
    metadata: Any | Purged | None
    outcome: str | None = None
    definition_digest: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give the instance as JSON-like values, leaving out what is absent."""
        values = {**self._asdict(), "instantiated_at": self.instantiated_at.isoformat()}
        if self.metadata is PURGED:
            values["metadata"] = {"purged": True}
        return {name: value for name, value in values.items() if value is not None}


def read_instance(tenant: str, id: str, *, last: bool = True) -> Plan[Instance]:
    """Read one instance as it is now.

    Args:
        last: nothing else is read in this plan.

    Raises:
        NotKnown: there is none.
    """
    rows = yield Statement("read_instance", [(tenant, root_of(id), id)], last)
    if not rows:
        raise not_known(id)
    return _instance(rows[0])


def read_current(tenant: str, id: str) -> Plan[str]:
    """Read the current state of an instance."""
    rows = yield Statement("read_snapshot", [(tenant, root_of(id), id)], last=True)
    if not rows:
        raise not_known(id)
    state: str = rows[0][2]
    return state


def read_declaration(tenant: str, id: str) -> Plan[dict[str, Any]]:
    """Read an instance's declaration."""
    rows = yield Statement("read_snapshot", [(tenant, root_of(id), id)])
    if not rows:
        raise not_known(id)
    declared = yield Statement("read_declaration", [(tenant, rows[0][1])])
    if not declared:
        raise ValueError(f"the declaration {rows[0][1]} is gone")
    declaration: dict[str, Any] = loads(declared[0][1])
    return declaration


def read_history(tenant: str, id: str, query: HistoryQuery) -> Plan[list[Entry]]:
    """Read the entries of an instance that a query asks for, in order."""
    key = (tenant, root_of(id), id)
    if not (yield Statement("read_snapshot", [key])):
        raise not_known(id)
    *texts, start, end, after, before = query
    times = (bound and to_microseconds(bound) for bound in (after, before))
    rows = yield Statement("read_history", [(*key, *texts, start, end, *times)])
    return [_entry(row) for row in rows]


def read_instance_at(
    tenant: str, id: str, sequence: int | None, moment: datetime | None
) -> Plan[Instance]:
    """Read an instance as it was after its last entry within both bounds.

    Raises:
        InvalidRequest: it had not begun then, or has no entry of that number yet.
    """
    instance = yield from read_instance(tenant, id, last=False)
    if sequence is not None and sequence >= instance.version:
        last = instance.version - 1
        raise InvalidRequest(
            f"`at_sequence` {sequence} lies after the last entry, {last}", argument="at_sequence"
        )
    if moment is not None and moment < instance.instantiated_at:
        begun = instance.instantiated_at.isoformat()
        raise InvalidRequest(
            f"`at` {moment.isoformat()} lies before the instance began, {begun}", argument="at"
        )
    bounds = (
        _LAST if sequence is None else sequence,
        _LAST if moment is None else to_microseconds(moment),
    )
    rows = yield Statement("read_last_entry_until", [(tenant, root_of(id), id, *bounds)])
    if rows:
        number, state = rows[0]
        return instance._replace(version=number + 1, state=state)
    machine = yield Statement("read_initial_state", [(tenant, instance.definition)])
    return instance._replace(version=1, state=machine[0][0])


def list_instances(
    tenant: str,
    state: str | None,
    subject_ref: str | None,
    definition: str | None,
    limit: int,
    after: str,
) -> Plan[list[Instance]]:
    """Read a page of instances by id, those after the id `after` (all ids come after "").

    Args:
        definition: the digest of a declaration, or of the definition of an engine.
    """
    filters = [state]
    name = "list_instances"
    if definition is not None and (yield Statement("read_definition", [(tenant, definition)])):
        return (yield from list_instances_of(tenant, definition, state, subject_ref, limit, after))
    if subject_ref is not None:
        name, filters = "list_instances_by_subject", [state, definition, subject_ref]
    elif definition is not None:
        name, filters = "list_instances_by_declaration", [state, definition]
    rows = yield Statement(name, [(tenant, root_of(after), after, limit, *filters)], last=True)
    return [_instance(row) for row in rows]


def list_instances_of(
    tenant: str,
    definition: str,
    state: str | None,
    subject_ref: str | None,
    limit: int,
    after: str | None,
) -> Plan[list[Instance]]:
    """Read a page of the instances that an engine began under a definition, by its digest."""
    key = (tenant, root_of(after or ""), after or "", limit, state, definition, subject_ref)
    rows = yield Statement("list_instances_by_definition", [key], last=True)
    return [_instance(row) for row in rows]


def find_attempts(tenant: str, attempts: Iterable[Attempt]) -> Plan[dict[str, str]]:
    """Look in the records for attempts whose answer was lost.

    Gives the outcomes of those that are there, by the identity of the attempt.
    """
    outcomes: dict[str, str] = {}
    for attempt in attempts:
        own_id = attempt.own_id
        if isinstance(attempt, BirthAttempt):
            asked = Statement("read_snapshot", [(tenant, root_of(own_id), own_id)])
        else:
            id = attempt.instance_id
            asked = Statement("read_attempt", [(tenant, root_of(id), id, own_id)])
        for row in (yield asked):
            outcomes[own_id] = row[0]
    return outcomes


def not_known(id: str) -> NotKnown:
    return NotKnown(f"no instance {quoted(id)} in this store", instance_id=id)


def _instance(row: Row) -> Instance:
    id, state, version, declaration, begun, actor, subject, definition, payload_id, content = row
    metadata, moment = _payload(payload_id, content), from_microseconds(begun)
    about = (declaration, moment, actor, subject, metadata)
    return Instance(id, state, version, *about, definition_digest=definition)


def _entry(row: Row) -> Entry:
    id, number, origin, target, action, actor, fired_at, guard, reason_id, *refs, content = row
    moment, asserted = from_microseconds(fired_at), True if guard else None
    reason = _payload(reason_id, content)
    return Entry(id, number, origin, target, action, actor, moment, asserted, reason, *refs)


def _payload(id: str | None, content: bytes | None) -> Any | Purged | None:
    if id is None:
        return None
    return PURGED if content is None else decode_payload(content)
