"""Attempts: calls made ready to be written.

An attempt has been checked for what can be checked without the store, and carries its own identity,
made before anything is sent: whatever happens to the answer, the record can be asked whether that
very attempt is in it. Births and fires are what there is to attempt.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from json import loads
from typing import Any, NamedTuple, TypeAlias

from interlock.core.declaration import check_declaration, declaration_digest, declaration_text
from interlock.core.instant import parse_instant, to_microseconds
from interlock.core.machine import Machine, Request, check_moment, check_text
from interlock.core.payload import canonical, decode_payload, encode_payload
from interlock.core.record import Genesis, genesis_digest, payload_digest
from interlock.core.rejection import InvalidDeclaration, InvalidRequest
from interlock.core.text import Limits
from interlock.store.machines import compiled

_new = tuple.__new__  # see core.machine


class Fire(NamedTuple):
    """One fire of `fire_many` or `fire_each`, with the arguments of `Store.fire`."""

    id: str
    action: str
    actor_ref: str | None = None
    guard_satisfied: bool | None = None
    fired_at: datetime | str | None = None
    expected_version: int | None = None
    idempotency_key: str | None = None
    reason: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    worker_id: str | None = None


class Birth(NamedTuple):
    """One birth of `instantiate_each`, with the arguments of `Store.instantiate`."""

    actor_ref: str | None = None
    subject_ref: str | None = None
    instance_metadata: Any = None
    instantiated_at: datetime | str | None = None
    idempotency_key: str | None = None


class FireAttempt(NamedTuple):
    """A fire made ready; `request_digest` is made only where there is an idempotency key.

    Attributes:
        asked: what an engine is asked to do, and what its own plan does.
    """

    instance_id: str
    request: Request
    transition_id: str
    idempotency_key: str | None
    request_digest: bytes | None
    asked: Any = None

    @property
    def own_id(self) -> str:
        """The identity by which the record can be asked for this very attempt."""
        return self.transition_id


class BirthAttempt(NamedTuple):
    """A birth made ready: the declaration as it will be stored, the genesis, its metadata.

    Attributes:
        asked: what an engine begins, by its own plan.
    """

    machine: Machine
    text: str
    genesis: Genesis
    metadata: "Payload | None"
    asked: Any = None

    @property
    def own_id(self) -> str:
        """The identity by which the record can be asked for this very attempt."""
        return self.genesis.id


class Payload(NamedTuple):
    """Bytes for `payloads`, with the salt that makes their digest tell nothing without it."""

    id: str
    salt: bytes
    content: bytes


Attempt: TypeAlias = FireAttempt | BirthAttempt


class Declared(NamedTuple):
    """A declaration found well formed: its look-up, and the text that will be stored."""

    machine: Machine
    text: str


def prepare_declaration(declaration: object, limits: Limits) -> Declared:
    """Check a declaration and compile it from its own text, so that later edits cannot reach it.

    Raises:
        InvalidDeclaration: with every defect.
    """
    defects = check_declaration(declaration, limits)
    if defects or not isinstance(declaration, Mapping):
        listed = "; ".join(map(str, defects[:5])) + ("; …" if len(defects) > 5 else "")
        count = f"{len(defects)} defects: " if len(defects) > 1 else ""
        raise InvalidDeclaration(
            f"the declaration is not well formed: {count}{listed}", defects=defects
        )
    text = declaration_text(declaration)
    return Declared(compiled(declaration_digest(text), text), text)


def prepare_birth(
    declared: Declared,
    birth: Birth,
    *,
    now: datetime,
    new_id: str,
    salt: bytes,
    limits: Limits,
    definition: str | None = None,
) -> BirthAttempt:
    """Check a birth and make its genesis.

    Args:
        definition: the digest of the definition, of an instance that an engine begins.

    Raises:
        InvalidRequest: an argument is malformed, or lies in the future.
    """
    actor_ref, subject_ref, metadata, instantiated_at, key = birth
    if actor_ref is not None:
        actor_ref = check_text("actor_ref", actor_ref, limits.reference_bytes)
    if subject_ref is not None:
        subject_ref = check_text("subject_ref", subject_ref, limits.reference_bytes)
    payload = None if metadata is None else _metadata(metadata, new_id, salt, limits)
    moment = now
    if instantiated_at is not None:
        moment = check_moment("instantiated_at", instantiated_at, now=now)
    digest = None
    if key is not None:
        key = check_text("idempotency_key", key, limits.reference_bytes)
        told = payload is not None  # its content is compared by itself
        asked = (actor_ref, subject_ref, told, _asked_time(instantiated_at))
        what = _canonical_digest(declared.text) if definition is None else definition
        digest = _digest((what, *asked), new_id)
    genesis = Genesis(
        new_id,
        declared.machine.digest,
        to_microseconds(moment),
        actor_ref,
        subject_ref,
        payload and payload.id,
        payload and payload_digest(payload.salt, payload.content),
        key,
        digest,
        definition,
        b"",
    )
    genesis = genesis._replace(genesis_digest=genesis_digest(genesis))
    return BirthAttempt(declared.machine, declared.text, genesis, payload)


def prepare_fire(
    new_id: str,
    limits: Limits,
    id: object,
    action: object,
    actor_ref: str | None = None,
    guard_satisfied: bool | None = None,
    fired_at: datetime | str | None = None,
    expected_version: int | None = None,
    idempotency_key: str | None = None,
    reason: str | None = None,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    worker_id: str | None = None,
    *,
    told: Iterable[object] = (),
    asked: Any = None,
) -> FireAttempt:
    """Check what comes before everything else about a fire: identity, action, version, key.

    The rest of its arguments, in the order of `Fire`, is checked by the decision, in the order of
    the refusals.

    Args:
        told: what else makes it another request, under the same idempotency key.
        asked: of an engine; see `FireAttempt`.

    Raises:
        InvalidRequest: one of the four is malformed.
    """
    id = check_text("id", id, limits.reference_bytes)
    action = check_text("action", action, limits.reference_bytes)
    if expected_version is not None and not is_version(expected_version):
        raise InvalidRequest(
            "`expected_version` is a whole number from 1", argument="expected_version"
        )
    why = (reason, correlation_id, causation_id, worker_id)
    what = (action, actor_ref, guard_satisfied, fired_at, expected_version)
    request = _new(Request, (*what, *why))
    if idempotency_key is not None:
        key = check_text("idempotency_key", idempotency_key, limits.reference_bytes)
        asserted, moment = guard_satisfied is True, _asked_time(fired_at)
        same = (action, actor_ref, asserted, moment, expected_version, reason is not None, *why[1:])
        return FireAttempt(id, request, new_id, key, _digest((*same, *told), new_id), asked)
    return _new(FireAttempt, (id, request, new_id, None, None, asked))


def is_version(value: object) -> bool:
    return type(value) is int and value >= 1


@lru_cache(16)
def _canonical_digest(text: str) -> str:
    """Name a declaration so that the order of its keys makes no other request."""
    return hashlib.sha256(canonical(loads(text))).hexdigest()


def _digest(asked: object, own_id: str) -> bytes:
    """Make the digest of a request, for its idempotency key.

    A request that JSON cannot say is like no other: it is refused, unless its key is known.
    """
    try:
        return hashlib.sha256(canonical(asked)).digest()
    except Exception:
        return hashlib.sha256(own_id.encode()).digest()


def _asked_time(value: object) -> object:
    """Give a time as asked, so that two spellings of one moment are the same request."""
    try:
        return ["us", to_microseconds(parse_instant(value))]  # like no value that is refused
    except ValueError:
        return value


def _metadata(value: object, payload_id: str, salt: bytes, limits: Limits) -> Payload:
    try:
        content = encode_payload(value)
    except ValueError as error:
        fault: str | None = str(error)
    else:
        fault = _metadata_fault(content, limits)
    if fault:
        raise InvalidRequest(f"`instance_metadata` {fault}", argument="instance_metadata")
    return Payload(payload_id, salt, content)


def _metadata_fault(content: bytes, limits: Limits) -> str | None:
    if content in (b"{}", b"[]", b'""'):
        return "is empty"
    if content.startswith(b'"') and decode_payload(content).isspace():
        return "is blank"
    if len(content) > limits.metadata_bytes:
        return f"is {len(content)} bytes long, more than the {limits.metadata_bytes} allowed"
    return None
