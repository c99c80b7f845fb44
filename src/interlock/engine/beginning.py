"""A birth of an engine: the plan that writes an instance with its definition, and begins it."""

from collections.abc import Mapping, Sequence

from interlock.core.identity import root_of
from interlock.core.instant import from_microseconds
from interlock.core.machine import Request, Snapshot
from interlock.core.payload import canonical, decode_payload
from interlock.core.record import text_digest
from interlock.core.rejection import DefinitionChanged, IdempotencyConflict, Rejected
from interlock.core.text import quoted
from interlock.engine.asked import Begin
from interlock.engine.memory import Memory
from interlock.engine.running import Registry, Run
from interlock.engine.sending import kept
from interlock.language.definition import Definition
from interlock.store.attempt import BirthAttempt
from interlock.store.birth import bear
from interlock.store.context import Context, Written
from interlock.store.plan import Plan, Statement
from interlock.store.standings import Standing


def begin(
    registry: Registry,
    context: Context,
    attempts: Sequence[BirthAttempt],
    _known: Mapping[str, Standing],
    *,
    again: bool = False,
    **_how: bool,
) -> Plan[Written]:
    """Write one instance, and do what follows.

    Raises:
        DefinitionChanged: the name and version of its definition meant something else before.
    """
    (attempt,) = attempts
    asked: Begin = attempt.asked
    program = yield from registry.program(asked.digest)
    yield from _define(context, program.definition)
    written = yield from bear(context, attempts, {}, again=again)
    (outcome,) = written.outcomes
    if isinstance(outcome, Rejected):
        raise outcome
    genesis = attempt.genesis
    if outcome != genesis.id:
        yield from _check_alike(context, outcome or "", asked, genesis.idempotency_key)
        return written
    if again and (yield Statement("read_changes", [(*_key(context, genesis.id), 0)])):
        return written
    snapshot = Snapshot(
        genesis.id, attempt.machine.initial_state, 1, from_microseconds(genesis.instantiated_at)
    )
    standing = Standing(
        attempt.machine,
        snapshot,
        genesis.genesis_digest,
        root_of(genesis.id),
        asked.digest,
        Memory(asked.data),
    )
    run = Run(registry, context, program, standing, Request("start", genesis.actor_ref))
    flat = program.definition.flat
    yield from run.begin(flat.hooks if asked.hooks else (), program.entered(snapshot.state))
    return Written([genesis.id], {genesis.id: kept(run.standing)})


def _define(context: Context, definition: Definition) -> Plan[None]:
    """Keep the definition, unless it is kept already."""
    tenant, digest = context.tenant, definition.digest
    if (yield Statement("read_definition", [(tenant, digest)])):
        return
    name, version = definition.name, definition.version
    found = yield Statement("read_definition_version", [(tenant, name, version)])
    if found and found[0][0] == digest:
        return  # another has kept it between the two looks
    if found:
        what = f"version {quoted(version)} of {quoted(name)} was used before with another meaning"
        raise DefinitionChanged(
            f"{what}; give the changed definition a version of its own, or call it `dev`",
            name=name,
            version=version,
            digest=found[0][0],
        )
    text = definition.document
    row = (tenant, digest, name, version, text, text_digest(text))
    yield Statement("append_definition", [row])


def _check_alike(context: Context, id: str, asked: Begin, key: str | None) -> Plan[None]:
    """See that an instance which a key began before was begun with the same data.

    Raises:
        IdempotencyConflict: it was not.
    """
    changes = yield Statement("read_changes", [(*_key(context, id), 0)])
    content = changes[0][2] if changes else None
    begun = Memory(asked.data).whole()
    if content is not None and canonical(decode_payload(content)) != canonical(begun):
        raise IdempotencyConflict(
            f"the idempotency key {quoted(key or '')} was used before, for another request",
            idempotency_key=key,
            instance_id=None,
        )


def _key(context: Context, id: str) -> tuple[str, str, str]:
    return context.tenant, root_of(id), id
