"""The plan of births: instances begin, each with its declaration should the store lack it."""

from collections.abc import Mapping, Sequence

from interlock.core.identity import root_of
from interlock.core.rejection import Rejected
from interlock.store.attempt import BirthAttempt
from interlock.store.context import Answer, Context, Outcome, Written
from interlock.store.machines import owed_declarations
from interlock.store.plan import Plan, Row, Statement
from interlock.store.read import find_attempts
from interlock.store.standings import Standing


def bear(
    context: Context,
    attempts: Sequence[BirthAttempt | Rejected],
    _known: Mapping[str, Standing],
    *,
    again: bool = False,
    **_how: bool,
) -> Plan[Written]:
    """Write births; an attempt that was refused before it could be made is its own outcome.

    Args:
        again: the same attempts were sent before; those in the record are done.
    """
    tenant = context.tenant
    births = [attempt for attempt in attempts if not isinstance(attempt, Rejected)]
    done = (yield from find_attempts(tenant, births)) if again else {}
    names = dict.fromkeys(birth.machine.digest for birth in births)
    rows = yield Statement("read_declaration", [(tenant, name) for name in names])
    known: dict[str, str] = dict(rows)
    asked = [birth.genesis.idempotency_key for birth in births]
    keys = [(tenant, key) for key in asked if key is not None]
    found = (yield Statement("read_start_key", keys)) if keys else []
    answers = {key: Answer(*answer) for key, *answer in found}
    outcomes: list[Outcome] = []
    told: dict[str, str] = {}
    payloads: list[Row] = []
    instances: list[Row] = []
    for birth in attempts:
        if isinstance(birth, Rejected):
            outcomes.append(birth)
            continue
        genesis = birth.genesis
        if genesis.id in done:
            outcomes.append(genesis.id)
            continue
        key, request = genesis.idempotency_key, genesis.request_digest
        if key is not None and request is not None:
            content = birth.metadata and birth.metadata.content
            if key in answers:
                outcomes.append(answers[key].repeat(request, content, key, None))
                continue
            answers[key] = Answer(genesis.id, request, content)
        digest = genesis.declaration_digest
        told[digest] = birth.text
        root = root_of(genesis.id)
        if birth.metadata:
            payloads.append((tenant, root, *birth.metadata))
        begun = (genesis.id, digest, birth.machine.initial_state)
        instances.append((tenant, root, *begun, *genesis[2:]))
        outcomes.append(genesis.id)
    for name, rows in (
        ("append_declaration", owed_declarations(tenant, told, known)),
        ("append_payload", payloads),
        ("append_instance", instances),
    ):
        if rows:
            yield Statement(name, rows)
    return Written(outcomes, {})
