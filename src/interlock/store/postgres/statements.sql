-- The statements of the store, in PostgreSQL's dialect. Every one names its tenant, as the policies
-- of the tables do once more.
--
-- What plans call with many rows stands twice: `NAME/many` takes each parameter as an array. Every
-- parameter has one type, said by its cast, wherever it stands.
--
-- Prepared plans outlive the statistics that they were made by: what was cheapest in an empty store
-- would read whole tables in a full one. So rows are found by lookups that leave the planner no
-- other way (LATERAL with OFFSET 0 or a lock, subqueries of one row), and connections set
-- `enable_seqscan = off`. Behind a policy an index is searched only by what cannot leak a row; a
-- function's result is compared with it only when it was worked out before.

-- name: read_declaration
-- parameters: tenant digest
-- The exact text of a declaration.
SELECT digest, text FROM $schema.declarations
WHERE tenant = :tenant::text AND digest = :digest::text;

-- name: read_declaration/many
-- arrays: tenant digest
SELECT found.digest, found.text
FROM unnest(:tenant::text[], :digest::text[]) AS a (tenant, digest)
CROSS JOIN LATERAL (
    SELECT d.digest, d.text FROM $schema.declarations AS d
    WHERE d.tenant = a.tenant AND d.digest = a.digest OFFSET 0
) AS found;

-- name: append_declaration
-- parameters: tenant digest text
-- Its transitions become rows of declared_transitions by trigger. Another transaction may have
-- appended it at the same moment.
INSERT INTO $schema.declarations (tenant, digest, initial_state, transition_count, text)
VALUES (
    :tenant::text, :digest::text, :text::text::json ->> 'initial_state',
    json_array_length(:text::text::json -> 'transitions'), :text::text
)
ON CONFLICT DO NOTHING;

-- name: append_declaration/many
-- arrays: tenant digest text
INSERT INTO $schema.declarations (tenant, digest, initial_state, transition_count, text)
SELECT
    a.tenant, a.digest, a.text::json ->> 'initial_state',
    json_array_length(a.text::json -> 'transitions'), a.text
FROM unnest(:tenant::text[], :digest::text[], :text::text[]) AS a (tenant, digest, text)
ORDER BY a.tenant COLLATE "C", a.digest COLLATE "C"
ON CONFLICT DO NOTHING;

-- name: append_instance
-- parameters: tenant root id declaration_digest current_state instantiated_at actor_ref subject_ref metadata_id metadata_digest idempotency_key request_digest definition_digest genesis_digest
-- changes: 1
-- A birth: version 1, no history, the head of the chain is the genesis. Its idempotency key becomes
-- a row of start_keys by trigger.
INSERT INTO $schema.instances (
    tenant, root, id, declaration_digest, current_state, next_sequence_number, head_digest,
    instantiated_at, actor_ref, subject_ref, metadata_id, metadata_digest, idempotency_key,
    request_digest, definition_digest, genesis_digest
) VALUES (
    :tenant::text, :root::text, :id::text, :declaration_digest::text, :current_state::text, 1,
    :genesis_digest::bytea, :instantiated_at::bigint, :actor_ref::text, :subject_ref::text,
    :metadata_id::text, :metadata_digest::bytea, :idempotency_key::text, :request_digest::bytea,
    :definition_digest::text, :genesis_digest::bytea
);

-- name: append_instance/many
-- arrays: tenant root id declaration_digest current_state instantiated_at actor_ref subject_ref metadata_id metadata_digest idempotency_key request_digest definition_digest genesis_digest
-- changes: 1
INSERT INTO $schema.instances (
    tenant, root, id, declaration_digest, current_state, next_sequence_number, head_digest,
    instantiated_at, actor_ref, subject_ref, metadata_id, metadata_digest, idempotency_key,
    request_digest, definition_digest, genesis_digest
)
SELECT
    a.tenant, a.root, a.id, a.declaration_digest, a.current_state, 1, a.genesis_digest,
    a.instantiated_at, a.actor_ref, a.subject_ref, a.metadata_id, a.metadata_digest,
    a.idempotency_key, a.request_digest, a.definition_digest, a.genesis_digest
FROM unnest(
    :tenant::text[], :root::text[], :id::text[], :declaration_digest::text[],
    :current_state::text[], :instantiated_at::bigint[], :actor_ref::text[], :subject_ref::text[],
    :metadata_id::text[], :metadata_digest::bytea[], :idempotency_key::text[],
    :request_digest::bytea[], :definition_digest::text[], :genesis_digest::bytea[]
) AS a (
    tenant, root, id, declaration_digest, current_state, instantiated_at, actor_ref, subject_ref,
    metadata_id, metadata_digest, idempotency_key, request_digest, definition_digest,
    genesis_digest
);

-- columns: entry
-- An entry as it is written; what follows gives each of these, beside the tenant, in this order.
tenant, root, instance_id, sequence_number, transition_id, from_state, action, to_state, actor_ref,
fired_at, guard_satisfied, reason_id, reason_digest, correlation_id, causation_id, worker_id,
idempotency_key, request_digest, entry_digest;

-- columns: of_entry
:root::text, :instance_id::text, :sequence_number::bigint, :transition_id::text,
:from_state::text, :action::text, :to_state::text, :actor_ref::text, :fired_at::bigint,
:guard_satisfied::bigint, :reason_id::text, :reason_digest::bytea, :correlation_id::text,
:causation_id::text, :worker_id::text, :idempotency_key::text, :request_digest::bytea,
:entry_digest::bytea;

-- columns: of_entries
a.root, a.instance_id, a.sequence_number, a.transition_id, a.from_state, a.action,
a.to_state, a.actor_ref, a.fired_at, a.guard_satisfied, a.reason_id, a.reason_digest,
a.correlation_id, a.causation_id, a.worker_id, a.idempotency_key, a.request_digest,
a.entry_digest;

-- columns: arrays_of_entries
:tenant::text[], :root::text[], :instance_id::text[], :sequence_number::bigint[],
:transition_id::text[], :from_state::text[], :action::text[], :to_state::text[],
:actor_ref::text[], :fired_at::bigint[], :guard_satisfied::bigint[], :reason_id::text[],
:reason_digest::bytea[], :correlation_id::text[], :causation_id::text[], :worker_id::text[],
:idempotency_key::text[], :request_digest::bytea[], :entry_digest::bytea[];

-- name: append_entry
-- parameters: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest
-- changes: 1
-- The one write of a fire: a trigger checks it against the declaration and moves the instance.
INSERT INTO $schema.history ($entry) VALUES (:tenant::text, $of_entry);

-- name: append_entry/many
-- arrays: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest
-- changes: 1
-- In the order of keys, which is the order in which their instances are locked.
INSERT INTO $schema.history ($entry)
SELECT a.tenant, $of_entries
FROM unnest($arrays_of_entries) AS a ($entry)
ORDER BY
    a.tenant COLLATE "C", a.root COLLATE "C", a.instance_id COLLATE "C", a.sequence_number;

-- name: append_free_entry
-- parameters: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest first_number
-- Writes, and gives a row, only if the instance still stands there and nobody holds it.
INSERT INTO $schema.history ($entry)
SELECT :tenant::text, $of_entry
FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :instance_id::text
    AND i.next_sequence_number = :first_number::bigint
FOR NO KEY UPDATE SKIP LOCKED
RETURNING instance_id, sequence_number;

-- name: append_free_entry/many
-- arrays: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest first_number
-- Runs of entries, each whole or not at all: written are those of instances that stand where their
-- run begins, at `first_number`, and that nobody holds. An instance is locked once, since a holder
-- might let go between two entries of its run.
INSERT INTO $schema.history ($entry)
WITH asked AS (
    SELECT * FROM unnest($arrays_of_entries, :first_number::bigint[]) AS a ($entry, first_number)
), free AS (
    SELECT held.*
    FROM (SELECT * FROM asked WHERE sequence_number = first_number) AS a
    CROSS JOIN LATERAL (
        SELECT i.tenant, i.root, i.id FROM $schema.instances AS i
        WHERE i.tenant = a.tenant AND i.root = a.root AND i.id = a.instance_id
            AND i.next_sequence_number = a.first_number
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS held
)
SELECT a.tenant, $of_entries
FROM asked AS a
JOIN free ON free.tenant = a.tenant AND free.root = a.root AND free.id = a.instance_id
ORDER BY free.tenant, free.root, free.id, a.sequence_number
RETURNING instance_id, sequence_number;

-- name: append_unheld_entry
-- parameters: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest
-- changes: 1
-- As append_entry, but where another holds the instance it is refused, for want of a tenant, instead
-- of waiting.
INSERT INTO $schema.history ($entry)
SELECT
    (
        SELECT i.tenant FROM $schema.instances AS i
        WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :instance_id::text
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    $of_entry;

-- name: append_unheld_entry/many
-- arrays: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest
-- changes: 1
INSERT INTO $schema.history ($entry)
SELECT held.tenant, $of_entries
FROM unnest($arrays_of_entries) AS a ($entry)
LEFT JOIN LATERAL (
    SELECT i.tenant FROM $schema.instances AS i
    WHERE i.tenant = a.tenant AND i.root = a.root AND i.id = a.instance_id
    FOR NO KEY UPDATE SKIP LOCKED
) AS held ON true
ORDER BY
    a.tenant COLLATE "C", a.root COLLATE "C", a.instance_id COLLATE "C", a.sequence_number;

-- name: append_payload
-- parameters: tenant root id salt content
INSERT INTO $schema.payloads (tenant, root, id, salt, content)
VALUES (:tenant::text, :root::text, :id::text, :salt::bytea, :content::bytea);

-- name: append_payload/many
-- arrays: tenant root id salt content
INSERT INTO $schema.payloads (tenant, root, id, salt, content)
SELECT a.tenant, a.root, a.id, a.salt, a.content
FROM unnest(
    :tenant::text[], :root::text[], :id::text[], :salt::bytea[], :content::bytea[]
) AS a (tenant, root, id, salt, content);

-- name: read_start_key
-- parameters: tenant idempotency_key
-- The instance that the idempotency key of a birth began, and what was asked for.
SELECT
    k.idempotency_key, i.id, i.request_digest, (
        SELECT p.content FROM $schema.payloads AS p
        WHERE p.tenant = i.tenant AND p.root = i.root AND p.id = i.metadata_id
    )
FROM $schema.start_keys AS k
CROSS JOIN LATERAL (SELECT split_part(k.instance_id, '.', 1) AS root OFFSET 0) AS born
JOIN $schema.instances AS i ON i.tenant = k.tenant AND i.root = born.root AND i.id = k.instance_id
WHERE k.tenant = :tenant::text AND k.idempotency_key = :idempotency_key::text;

-- name: read_start_key/many
-- arrays: tenant idempotency_key
SELECT found.*
FROM unnest(:tenant::text[], :idempotency_key::text[]) AS a (tenant, idempotency_key)
CROSS JOIN LATERAL (
    SELECT
        k.idempotency_key, i.id, i.request_digest, (
            SELECT p.content FROM $schema.payloads AS p
            WHERE p.tenant = i.tenant AND p.root = i.root AND p.id = i.metadata_id
        )
    FROM $schema.start_keys AS k
    CROSS JOIN LATERAL (SELECT split_part(k.instance_id, '.', 1) AS root OFFSET 0) AS born
    JOIN $schema.instances AS i
        ON i.tenant = k.tenant AND i.root = born.root AND i.id = k.instance_id
    WHERE k.tenant = a.tenant AND k.idempotency_key = a.idempotency_key OFFSET 0
) AS found;

-- columns: snapshot
-- What a decision needs to know of an instance.
i.id, i.declaration_digest, i.current_state, i.next_sequence_number, i.head_digest,
i.instantiated_at, i.definition_digest;

-- name: read_snapshot
-- parameters: tenant root id
SELECT $snapshot FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :id::text;

-- name: read_snapshot/many
-- arrays: tenant root id
SELECT found.*
FROM unnest(:tenant::text[], :root::text[], :id::text[]) AS a (tenant, root, id)
CROSS JOIN LATERAL (
    SELECT $snapshot FROM $schema.instances AS i
    WHERE i.tenant = a.tenant AND i.root = a.root AND i.id = a.id OFFSET 0
) AS found;

-- name: lock_snapshot
-- parameters: tenant root id
-- As read_snapshot, and held until the transaction ends: nobody moves the instance meanwhile. Who
-- had to wait reads where it stands afterwards.
SELECT $snapshot FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :id::text
FOR NO KEY UPDATE;

-- name: lock_snapshot/many
-- arrays: tenant root id
-- Locked in the order of keys, so that two who want the same instances do not wait for each other.
SELECT found.*
FROM (
    SELECT * FROM unnest(:tenant::text[], :root::text[], :id::text[]) AS a (tenant, root, id)
    ORDER BY a.tenant COLLATE "C", a.root COLLATE "C", a.id COLLATE "C"
) AS a
CROSS JOIN LATERAL (
    SELECT $snapshot FROM $schema.instances AS i
    WHERE i.tenant = a.tenant AND i.root = a.root AND i.id = a.id
    FOR NO KEY UPDATE
) AS found;

-- name: read_keyed_entry
-- parameters: tenant root instance_id idempotency_key
-- The answer that an idempotency key already had.
SELECT
    h.instance_id, h.idempotency_key, h.to_state, h.request_digest, (
        SELECT p.content FROM $schema.payloads AS p
        WHERE p.tenant = h.tenant AND p.root = h.root AND p.id = h.reason_id
    )
FROM $schema.history AS h
WHERE h.tenant = :tenant::text AND h.root = :root::text AND h.instance_id = :instance_id::text
    AND h.idempotency_key = :idempotency_key::text;

-- name: read_keyed_entry/many
-- arrays: tenant root instance_id idempotency_key
SELECT found.*
FROM unnest(
    :tenant::text[], :root::text[], :instance_id::text[], :idempotency_key::text[]
) AS a (tenant, root, instance_id, idempotency_key)
CROSS JOIN LATERAL (
    SELECT
        h.instance_id, h.idempotency_key, h.to_state, h.request_digest, (
            SELECT p.content FROM $schema.payloads AS p
            WHERE p.tenant = h.tenant AND p.root = h.root AND p.id = h.reason_id
        )
    FROM $schema.history AS h
    WHERE h.tenant = a.tenant AND h.root = a.root AND h.instance_id = a.instance_id
        AND h.idempotency_key = a.idempotency_key OFFSET 0
) AS found;

-- columns: led_to
-- Where an entry led to, with what followed it by itself: the ids of that are its own and a number.
coalesce(
    (
        SELECT f.to_state FROM $schema.history AS f
        WHERE f.tenant = h.tenant AND f.root = h.root AND f.instance_id = h.instance_id
            AND f.sequence_number > h.sequence_number
            AND starts_with(f.transition_id, h.transition_id || '.')
        ORDER BY f.sequence_number DESC LIMIT 1
    ),
    h.to_state
);

-- name: read_attempt
-- parameters: tenant root instance_id transition_id
-- What came of an attempt that is in the record. Asked only after a lost answer, so no index serves
-- it.
SELECT $led_to FROM $schema.history AS h
WHERE h.tenant = :tenant::text AND h.root = :root::text AND h.instance_id = :instance_id::text
    AND h.transition_id = :transition_id::text;

-- columns: instance
-- What readers are told of an instance; its metadata comes last.
i.id, i.current_state, i.next_sequence_number, i.declaration_digest, i.instantiated_at,
i.actor_ref, i.subject_ref, i.definition_digest, i.metadata_id, (
    SELECT p.content FROM $schema.payloads AS p
    WHERE p.tenant = i.tenant AND p.root = i.root AND p.id = i.metadata_id
);

-- name: read_instance
-- parameters: tenant root id
SELECT $instance FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :id::text;

-- name: read_last_entry_until
-- parameters: tenant root instance_id sequence_number fired_at
-- The last entry, by number, that lies within both bounds.
SELECT sequence_number, to_state
FROM $schema.history
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
    AND sequence_number <= :sequence_number::bigint AND fired_at <= :fired_at::bigint
ORDER BY sequence_number DESC LIMIT 1;

-- name: read_history
-- parameters: tenant root instance_id transition_id from_state to_state action actor_ref start end after before
-- Entries by number; every filter that is not NULL holds.
SELECT
    h.transition_id, h.sequence_number, h.from_state, h.to_state, h.action, h.actor_ref,
    h.fired_at, h.guard_satisfied, h.reason_id, h.correlation_id, h.causation_id, h.worker_id,
    (
        SELECT p.content FROM $schema.payloads AS p
        WHERE p.tenant = h.tenant AND p.root = h.root AND p.id = h.reason_id
    )
FROM $schema.history AS h
WHERE h.tenant = :tenant::text AND h.root = :root::text AND h.instance_id = :instance_id::text
    AND h.sequence_number >= coalesce(:start::bigint, 0)
    AND h.sequence_number <= coalesce(:end::bigint, 9223372036854775807)
    AND (:transition_id::text IS NULL OR h.transition_id = :transition_id::text)
    AND (:from_state::text IS NULL OR h.from_state = :from_state::text)
    AND (:to_state::text IS NULL OR h.to_state = :to_state::text)
    AND (:action::text IS NULL OR h.action = :action::text)
    AND (:actor_ref::text IS NULL OR h.actor_ref = :actor_ref::text)
    AND (:after::bigint IS NULL OR h.fired_at >= :after::bigint)
    AND (:before::bigint IS NULL OR h.fired_at <= :before::bigint)
ORDER BY h.sequence_number;

-- name: list_instances
-- parameters: tenant root id limit state
-- A page after (root, id). Filters may be NULL; the lists below begin with one that has an index.
SELECT $instance FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND (i.root, i.id) > (:root::text, :id::text)
    AND (:state::text IS NULL OR i.current_state = :state::text)
ORDER BY i.root, i.id LIMIT :limit::bigint;

-- name: list_instances_by_declaration
-- parameters: tenant root id limit state declaration_digest
SELECT $instance FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.declaration_digest = :declaration_digest::text
    AND (i.root, i.id) > (:root::text, :id::text)
    AND (:state::text IS NULL OR i.current_state = :state::text)
ORDER BY i.root, i.id LIMIT :limit::bigint;

-- name: list_instances_by_subject
-- parameters: tenant root id limit state declaration_digest subject_ref
SELECT $instance FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.subject_ref = :subject_ref::text
    AND (i.root, i.id) > (:root::text, :id::text)
    AND (:state::text IS NULL OR i.current_state = :state::text)
    AND (:declaration_digest::text IS NULL OR i.declaration_digest = :declaration_digest::text)
ORDER BY i.root, i.id LIMIT :limit::bigint;

-- name: read_initial_state
-- parameters: tenant digest
SELECT initial_state FROM $schema.declarations
WHERE tenant = :tenant::text AND digest = :digest::text;

-- name: settle
-- parameters:
-- Changes nothing: what a commit that failed has left is the server's to settle.
SELECT 1;

-- name: audit_declarations
-- parameters: tenant digest limit
-- A page of declarations from a digest.
SELECT digest, text, initial_state, transition_count FROM $schema.declarations
WHERE tenant = :tenant::text AND digest >= :digest::text
ORDER BY digest LIMIT :limit::bigint;

-- name: audit_declaration
-- parameters: tenant digest
SELECT digest, text, initial_state, transition_count FROM $schema.declarations
WHERE tenant = :tenant::text AND digest = :digest::text;

-- name: audit_transitions
-- parameters: tenant digest
SELECT from_state, action, to_state, guard, ordinal FROM $schema.declared_transitions
WHERE tenant = :tenant::text AND digest = :digest::text
ORDER BY ordinal;

-- name: audit_records
-- parameters: tenant root id sequence_number last_root last_id limit
-- A page of instances joined with their entries, from the entry (root, id, sequence_number) to the
-- end of the instance (last_root, last_id). An instance without entries is one row.
SELECT
    h.sequence_number, h.transition_id, h.from_state, h.action, h.to_state, h.actor_ref, h.fired_at,
    h.guard_satisfied, h.reason_id, h.reason_digest, h.correlation_id, h.causation_id, h.worker_id,
    h.idempotency_key, h.request_digest, h.entry_digest,
    i.id, i.declaration_digest, i.instantiated_at, i.actor_ref, i.subject_ref, i.metadata_id,
    i.metadata_digest, i.idempotency_key, i.request_digest, i.definition_digest, i.genesis_digest,
    i.current_state, i.next_sequence_number, i.head_digest, i.root
FROM $schema.instances AS i
LEFT JOIN LATERAL (
    SELECT * FROM $schema.history AS h
    WHERE h.tenant = i.tenant AND h.root = i.root AND h.instance_id = i.id
        AND h.sequence_number >= CASE
            WHEN i.root = :root::text AND i.id = :id::text THEN :sequence_number::bigint
            ELSE '-9223372036854775808'::bigint
        END
    ORDER BY h.sequence_number LIMIT :limit::bigint  -- or a page reads a long history to its end
) AS h ON true
WHERE i.tenant = :tenant::text
    AND (i.root, i.id) >= (:root::text, :id::text)
    AND (i.root, i.id) <= (:last_root::text, :last_id::text)
ORDER BY i.root, i.id, h.sequence_number LIMIT :limit::bigint;

-- name: audit_strays
-- parameters: tenant root id last_root last_id
-- Entries, from the instance (root, id) to (last_root, last_id), whose instance is gone.
SELECT h.instance_id, count(*), max(h.sequence_number)
FROM $schema.history AS h
WHERE h.tenant = :tenant::text
    AND (h.root, h.instance_id) >= (:root::text, :id::text)
    AND (h.root, h.instance_id) <= (:last_root::text, :last_id::text)
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = h.tenant AND i.root = h.root AND i.id = h.instance_id
    )
GROUP BY h.root, h.instance_id;

-- name: audit_twins
-- parameters: tenant root id last_root last_id
-- Instances that stand twice under one id.
SELECT i.id FROM $schema.instances AS i
WHERE i.tenant = :tenant::text
    AND (i.root, i.id) >= (:root::text, :id::text)
    AND (i.root, i.id) <= (:last_root::text, :last_id::text)
GROUP BY i.root, i.id HAVING count(*) > 1;

-- name: audit_numbers
-- parameters: tenant root id last_root last_id
-- Sequence numbers that stand twice in the history of one instance.
SELECT h.instance_id, h.sequence_number
FROM $schema.history AS h
WHERE h.tenant = :tenant::text
    AND (h.root, h.instance_id) >= (:root::text, :id::text)
    AND (h.root, h.instance_id) <= (:last_root::text, :last_id::text)
GROUP BY h.root, h.instance_id, h.sequence_number
HAVING count(*) > 1;

-- name: audit_repeats
-- parameters: tenant root id last_root last_id
-- Transition ids that stand twice in the history of one instance.
SELECT h.instance_id, max(h.sequence_number), h.transition_id
FROM $schema.history AS h
WHERE h.tenant = :tenant::text
    AND (h.root, h.instance_id) >= (:root::text, :id::text)
    AND (h.root, h.instance_id) <= (:last_root::text, :last_id::text)
GROUP BY h.root, h.instance_id, h.transition_id
HAVING count(*) > 1;

-- name: audit_payloads
-- parameters: tenant root id last_root last_id
-- Payloads that are not what the record says: gone, or other bytes. Destroyed ones are lawful.
SELECT named.instance_id, named.sequence_number, named.what, judged.fault
FROM (
    SELECT i.tenant, i.root, i.id AS instance_id, NULL::bigint AS sequence_number,
        'the metadata' AS what, i.metadata_id AS payload_id, i.metadata_digest AS digest
    FROM $schema.instances AS i
    WHERE i.metadata_id IS NOT NULL AND i.tenant = :tenant::text
        AND (i.root, i.id) >= (:root::text, :id::text)
        AND (i.root, i.id) <= (:last_root::text, :last_id::text)
    UNION ALL
    SELECT h.tenant, h.root, h.instance_id, h.sequence_number, 'the reason', h.reason_id,
        h.reason_digest
    FROM $schema.history AS h
    WHERE h.reason_id IS NOT NULL AND h.tenant = :tenant::text
        AND (h.root, h.instance_id) >= (:root::text, :id::text)
        AND (h.root, h.instance_id) <= (:last_root::text, :last_id::text)
    UNION ALL
    SELECT c.tenant, c.root, c.instance_id, c.sequence_number,
        'the payload of change ' || c.ordinal, c.payload_id, c.payload_digest
    FROM $schema.data_changes AS c
    WHERE c.tenant = :tenant::text
        AND (c.root, c.instance_id) >= (:root::text, :id::text)
        AND (c.root, c.instance_id) <= (:last_root::text, :last_id::text)
) AS named
LEFT JOIN LATERAL (
    SELECT * FROM $schema.payloads AS p
    WHERE p.tenant = named.tenant AND p.root = named.root AND p.id = named.payload_id OFFSET 0
) AS p ON true
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN p.id IS NULL THEN 'is gone'
        WHEN p.salt IS NOT NULL OR p.content IS NOT NULL
            THEN $schema.payload_fault(p.salt, p.content, named.digest)
    END AS fault
    OFFSET 0  -- judged once, not wherever the fault is named
) AS judged
WHERE judged.fault IS NOT NULL;

-- name: audit_start_keys
-- parameters: tenant idempotency_key limit
-- A page of the idempotency keys of births from a key, each with the instance it names, if any, and
-- with the key that one was begun under.
SELECT k.idempotency_key, k.instance_id, i.id, i.idempotency_key
FROM $schema.start_keys AS k
CROSS JOIN LATERAL (SELECT split_part(k.instance_id, '.', 1) AS root OFFSET 0) AS born
LEFT JOIN $schema.instances AS i
    ON i.tenant = k.tenant AND i.root = born.root AND i.id = k.instance_id
WHERE k.tenant = :tenant::text AND k.idempotency_key >= :idempotency_key::text
ORDER BY k.idempotency_key LIMIT :limit::bigint;

-- name: audit_lost_keys
-- parameters: tenant root id last_root last_id
-- Instances that were begun under an idempotency key which would not find them.
SELECT i.id, i.idempotency_key
FROM $schema.instances AS i
WHERE i.idempotency_key IS NOT NULL AND i.tenant = :tenant::text
    AND (i.root, i.id) >= (:root::text, :id::text)
    AND (i.root, i.id) <= (:last_root::text, :last_id::text)
    AND NOT EXISTS (
        SELECT 1 FROM $schema.start_keys AS k
        WHERE k.tenant = i.tenant AND k.idempotency_key = i.idempotency_key
            AND k.instance_id = i.id
    );

-- name: audit_orphans
-- parameters: tenant
-- Transitions whose declaration is gone.
SELECT t.digest, t.count
FROM (
    SELECT digest, count(*) AS count FROM $schema.declared_transitions
    WHERE tenant = :tenant::text GROUP BY digest
) AS t
WHERE NOT EXISTS (
    SELECT 1 FROM $schema.declarations AS d WHERE d.tenant = :tenant::text AND d.digest = t.digest
);

-- name: audit_misfits
-- parameters:
-- Nothing: no column holds a value of another type than its own.
SELECT '', 0 WHERE false;

-- name: audit_strangers
-- parameters: tenant
-- Rows of other tenants that hang on nothing, so that no tenant has them. Seen by whom the policies
-- of the tables do not bind.
SELECT 'instances', count(*) FROM $schema.instances AS i
WHERE i.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.declarations AS d
        WHERE d.tenant = i.tenant AND d.digest = i.declaration_digest
    )
UNION ALL
SELECT 'history', count(*) FROM $schema.history AS h
WHERE h.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = h.tenant AND i.root = h.root AND i.id = h.instance_id
    )
UNION ALL
SELECT 'declared_transitions', count(*) FROM $schema.declared_transitions AS t
WHERE t.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.declarations AS d
        WHERE d.tenant = t.tenant AND d.digest = t.digest
    )
UNION ALL
SELECT 'start_keys', count(*) FROM $schema.start_keys AS k
WHERE k.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = k.tenant AND i.root = split_part(k.instance_id, '.', 1)
            AND i.id = k.instance_id AND i.idempotency_key = k.idempotency_key
    )
UNION ALL
SELECT 'data_changes', count(*) FROM $schema.data_changes AS c
WHERE c.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = c.tenant AND i.root = c.root AND i.id = c.instance_id
    )
UNION ALL
SELECT 'timers', count(*) FROM $schema.timers AS t
WHERE t.tenant <> :tenant::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = t.tenant AND i.root = t.root AND i.id = t.instance_id
    );

-- name: identify
-- parameters:
-- What tells this store from every other: a run of a server, a database, a table. Told to whoever
-- asks, permitted to read the table or not.
SELECT
    extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text,  -- in no zone or style
    (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()),
    (
        SELECT c.oid FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = 'history' AND n.nspname = $literal
    );

-- name: dump_payloads
-- parameters: tenant root id
SELECT root, id, salt, content FROM $schema.payloads
WHERE tenant = :tenant::text AND root = :root::text AND id = :id::text;

-- name: dump_payloads/many
-- arrays: tenant root id
SELECT found.*
FROM unnest(:tenant::text[], :root::text[], :id::text[]) AS a (tenant, root, id)
CROSS JOIN LATERAL (
    SELECT p.root, p.id, p.salt, p.content FROM $schema.payloads AS p
    WHERE p.tenant = a.tenant AND p.root = a.root AND p.id = a.id OFFSET 0
) AS found;

-- name: dump_idle_declarations
-- parameters: tenant digest limit
-- A page of declarations that govern nothing and come after a digest.
SELECT d.digest, d.text FROM $schema.declarations AS d
WHERE d.tenant = :tenant::text AND d.digest > :digest::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = d.tenant AND i.declaration_digest = d.digest OFFSET 0
    )
ORDER BY d.digest LIMIT :limit::bigint;

-- name: lock_head
-- parameters: tenant root id
-- How an instance began and how far its record goes, held until the transaction ends.
SELECT i.id, i.genesis_digest, i.next_sequence_number, i.head_digest
FROM $schema.instances AS i
WHERE i.tenant = :tenant::text AND i.root = :root::text AND i.id = :id::text
FOR NO KEY UPDATE;

-- name: lock_head/many
-- arrays: tenant root id
-- Locked in the order of keys, so that two who want the same instances do not wait for each other.
SELECT found.*
FROM (
    SELECT * FROM unnest(:tenant::text[], :root::text[], :id::text[]) AS a (tenant, root, id)
    ORDER BY a.tenant COLLATE "C", a.root COLLATE "C", a.id COLLATE "C"
) AS a
CROSS JOIN LATERAL (
    SELECT i.id, i.genesis_digest, i.next_sequence_number, i.head_digest
    FROM $schema.instances AS i
    WHERE i.tenant = a.tenant AND i.root = a.root AND i.id = a.id
    FOR NO KEY UPDATE
) AS found;

-- name: destroy_payload
-- parameters: tenant root id
-- Its row stays.
UPDATE $schema.payloads SET salt = NULL, content = NULL
WHERE tenant = :tenant::text AND root = :root::text AND id = :id::text;

-- name: destroy_payload/many
-- arrays: tenant root id
UPDATE $schema.payloads AS p SET salt = NULL, content = NULL
FROM unnest(:tenant::text[], :root::text[], :id::text[]) AS a (tenant, root, id)
CROSS JOIN LATERAL (
    SELECT found.ctid FROM $schema.payloads AS found
    WHERE found.tenant = a.tenant AND found.root = a.root AND found.id = a.id
    FOR NO KEY UPDATE
) AS found
WHERE p.ctid = found.ctid;

-- name: read_definition
-- parameters: tenant digest
-- The document of a definition, and the digest of its text.
SELECT digest, name, version, text, text_digest FROM $schema.definitions
WHERE tenant = :tenant::text AND digest = :digest::text;

-- name: read_definition_version
-- parameters: tenant name version
-- What a name and version meant when they were used first.
SELECT digest FROM $schema.definitions
WHERE tenant = :tenant::text AND name = :name::text AND version = :version::text
    AND version <> 'dev';

-- name: read_definition_digests
-- parameters: tenant name
SELECT digest FROM $schema.definitions
WHERE tenant = :tenant::text AND name = :name::text ORDER BY digest;

-- name: append_definition
-- parameters: tenant digest name version text text_digest
-- Another transaction may have appended it at the same moment.
INSERT INTO $schema.definitions (tenant, digest, name, version, text, text_digest)
VALUES (
    :tenant::text, :digest::text, :name::text, :version::text, :text::text, :text_digest::bytea
)
ON CONFLICT (tenant, digest) DO NOTHING;

-- name: append_definition/many
-- arrays: tenant digest name version text text_digest
INSERT INTO $schema.definitions (tenant, digest, name, version, text, text_digest)
SELECT a.tenant, a.digest, a.name, a.version, a.text, a.text_digest
FROM unnest(
    :tenant::text[], :digest::text[], :name::text[], :version::text[], :text::text[],
    :text_digest::bytea[]
) AS a (tenant, digest, name, version, text, text_digest)
ORDER BY a.tenant COLLATE "C", a.digest COLLATE "C"
ON CONFLICT (tenant, digest) DO NOTHING;

-- name: read_definition/many
-- arrays: tenant digest
SELECT found.*
FROM unnest(:tenant::text[], :digest::text[]) AS a (tenant, digest)
CROSS JOIN LATERAL (
    SELECT d.digest, d.name, d.version, d.text, d.text_digest FROM $schema.definitions AS d
    WHERE d.tenant = a.tenant AND d.digest = a.digest OFFSET 0
) AS found;

-- name: read_definition_version/many
-- arrays: tenant name version
SELECT found.*
FROM unnest(:tenant::text[], :name::text[], :version::text[]) AS a (tenant, name, version)
CROSS JOIN LATERAL (
    SELECT d.digest FROM $schema.definitions AS d
    WHERE d.tenant = a.tenant AND d.name = a.name AND d.version = a.version
        AND d.version <> 'dev' OFFSET 0
) AS found;

-- name: list_instances_by_definition
-- parameters: tenant root id limit state definition_digest subject_ref
SELECT $instance FROM $schema.instances AS i
WHERE tenant = :tenant::text AND definition_digest = :definition_digest::text
    AND (root, id) > (:root::text, :id::text)
    AND (:state::text IS NULL OR current_state = :state::text)
    AND (:subject_ref::text IS NULL OR subject_ref = :subject_ref::text)
ORDER BY root, id LIMIT :limit::bigint;

-- name: append_change
-- parameters: tenant root instance_id sequence_number ordinal kind payload_id payload_digest change_digest
-- changes: 1
-- What came with the last entry of an instance.
INSERT INTO $schema.data_changes (
    tenant, root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest,
    change_digest
) VALUES (
    :tenant::text, :root::text, :instance_id::text, :sequence_number::bigint, :ordinal::bigint,
    :kind::text, :payload_id::text, :payload_digest::bytea, :change_digest::bytea
);

-- name: append_change/many
-- arrays: tenant root instance_id sequence_number ordinal kind payload_id payload_digest change_digest
-- changes: 1
-- In the order of keys, which is the order in which their instances are locked.
INSERT INTO $schema.data_changes (
    tenant, root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest,
    change_digest
)
SELECT
    a.tenant, a.root, a.instance_id, a.sequence_number, a.ordinal, a.kind, a.payload_id,
    a.payload_digest, a.change_digest
FROM unnest(
    :tenant::text[], :root::text[], :instance_id::text[], :sequence_number::bigint[],
    :ordinal::bigint[], :kind::text[], :payload_id::text[], :payload_digest::bytea[],
    :change_digest::bytea[]
) AS a (
    tenant, root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest,
    change_digest
)
ORDER BY
    a.tenant COLLATE "C", a.root COLLATE "C", a.instance_id COLLATE "C", a.sequence_number,
    a.ordinal;

-- name: read_changes
-- parameters: tenant root instance_id until
-- What changed of the data up to an entry, from the last time that it was written as a whole.
SELECT c.sequence_number, c.kind, p.content
FROM $schema.data_changes AS c
LEFT JOIN $schema.payloads AS p ON p.tenant = c.tenant AND p.root = c.root AND p.id = c.payload_id
WHERE c.tenant = :tenant::text AND c.root = :root::text AND c.instance_id = :instance_id::text
    AND c.sequence_number <= :until::bigint
    AND c.sequence_number >= coalesce(
        (
            SELECT max(w.sequence_number) FROM $schema.data_changes AS w
            WHERE w.tenant = :tenant::text AND w.root = :root::text
                AND w.instance_id = :instance_id::text
                AND w.sequence_number <= :until::bigint AND w.kind = 'whole'
        ),
        0
    )
    AND c.kind <> 'event'
ORDER BY c.sequence_number, c.ordinal;

-- name: read_keyed_send
-- parameters: tenant root instance_id idempotency_key
-- The answer that the idempotency key of an event already had: where it led to, what was asked for,
-- and what came with it.
SELECT
    $led_to,
    h.request_digest, r.content, p.content, c.payload_id
FROM $schema.history AS h
LEFT JOIN $schema.payloads AS r ON r.tenant = h.tenant AND r.root = h.root AND r.id = h.reason_id
LEFT JOIN $schema.data_changes AS c
    ON c.tenant = h.tenant AND c.root = h.root AND c.instance_id = h.instance_id
        AND c.sequence_number = h.sequence_number AND c.ordinal = 0 AND c.kind = 'event'
LEFT JOIN $schema.payloads AS p ON p.tenant = h.tenant AND p.root = h.root AND p.id = c.payload_id
WHERE h.tenant = :tenant::text AND h.root = :root::text AND h.instance_id = :instance_id::text
    AND h.idempotency_key = :idempotency_key::text;

-- name: set_timer
-- parameters: tenant root instance_id state name sequence_number due_at
-- changes: 1
INSERT INTO $schema.timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
) VALUES (
    :tenant::text, :root::text, :instance_id::text, :state::text, :name::text,
    :sequence_number::bigint, :due_at::bigint, :due_at::bigint, 0, NULL
);

-- name: set_timer/many
-- arrays: tenant root instance_id state name sequence_number due_at
-- changes: 1
INSERT INTO $schema.timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
)
SELECT
    a.tenant, a.root, a.instance_id, a.state, a.name, a.sequence_number, a.due_at, a.due_at, 0, NULL
FROM unnest(
    :tenant::text[], :root::text[], :instance_id::text[], :state::text[], :name::text[],
    :sequence_number::bigint[], :due_at::bigint[]
) AS a (tenant, root, instance_id, state, name, sequence_number, due_at);

-- name: clear_timers
-- parameters: tenant root instance_id state
-- Of a state that is left.
DELETE FROM $schema.timers
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
    AND state = :state::text;

-- name: clear_timers/many
-- arrays: tenant root instance_id state
DELETE FROM $schema.timers AS t
USING unnest(
    :tenant::text[], :root::text[], :instance_id::text[], :state::text[]
) AS a (tenant, root, instance_id, state)
CROSS JOIN LATERAL (
    SELECT found.ctid FROM $schema.timers AS found
    WHERE found.tenant = a.tenant AND found.root = a.root AND found.instance_id = a.instance_id
        AND found.state = a.state
    FOR UPDATE
) AS found
WHERE t.ctid = found.ctid;

-- name: clear_all_timers
-- parameters: tenant root instance_id
DELETE FROM $schema.timers
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text;

-- name: clear_all_timers/many
-- arrays: tenant root instance_id
DELETE FROM $schema.timers AS t
USING unnest(:tenant::text[], :root::text[], :instance_id::text[]) AS a (tenant, root, instance_id)
CROSS JOIN LATERAL (
    SELECT found.ctid FROM $schema.timers AS found
    WHERE found.tenant = a.tenant AND found.root = a.root AND found.instance_id = a.instance_id
    FOR UPDATE
) AS found
WHERE t.ctid = found.ctid;

-- name: restore_timer
-- parameters: tenant root instance_id state name sequence_number due_at next_try_at failures failure
-- changes: 1
INSERT INTO $schema.timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
) VALUES (
    :tenant::text, :root::text, :instance_id::text, :state::text, :name::text,
    :sequence_number::bigint, :due_at::bigint, :next_try_at::bigint, :failures::bigint,
    :failure::text
);

-- name: restore_timer/many
-- arrays: tenant root instance_id state name sequence_number due_at next_try_at failures failure
-- changes: 1
INSERT INTO $schema.timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
)
SELECT
    a.tenant, a.root, a.instance_id, a.state, a.name, a.sequence_number, a.due_at, a.next_try_at,
    a.failures, a.failure
FROM unnest(
    :tenant::text[], :root::text[], :instance_id::text[], :state::text[], :name::text[],
    :sequence_number::bigint[], :due_at::bigint[], :next_try_at::bigint[], :failures::bigint[],
    :failure::text[]
) AS a (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
);

-- name: clear_timer
-- parameters: tenant root instance_id state name
DELETE FROM $schema.timers
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
    AND state = :state::text AND name = :name::text;

-- name: postpone_timer
-- parameters: tenant root instance_id state name sequence_number next_try_at failure
-- A timer that failed is tried again later; its own moment stays.
UPDATE $schema.timers
SET next_try_at = :next_try_at::bigint, failures = failures + 1, failure = :failure::text
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
    AND state = :state::text AND name = :name::text AND sequence_number = :sequence_number::bigint;

-- name: read_timer
-- parameters: tenant root instance_id state name
SELECT sequence_number, due_at FROM $schema.timers
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
    AND state = :state::text AND name = :name::text;

-- name: read_timers
-- parameters: tenant root instance_id
SELECT state, name, sequence_number, due_at, failures, failure FROM $schema.timers
WHERE tenant = :tenant::text AND root = :root::text AND instance_id = :instance_id::text
ORDER BY due_at, state, name;

-- name: read_due_timers
-- parameters: tenant until limit next_try_at root instance_id state name
-- A page of the timers that are to be looked at by a moment, after one of them.
SELECT next_try_at, root, instance_id, state, name, sequence_number, failures FROM $schema.timers
WHERE tenant = :tenant::text AND next_try_at <= :until::bigint
    AND (next_try_at, root, instance_id, state, name)
        > (:next_try_at::bigint, :root::text, :instance_id::text, :state::text, :name::text)
ORDER BY next_try_at, root, instance_id, state, name LIMIT :limit::bigint;

-- name: mark_sweep
-- parameters: tenant swept_at
-- changes: 1
INSERT INTO $schema.sweeps AS sweeps (tenant, swept_at) VALUES (:tenant::text, :swept_at::bigint)
ON CONFLICT (tenant) DO UPDATE SET swept_at = greatest(sweeps.swept_at, excluded.swept_at);

-- name: read_sweep
-- parameters: tenant
SELECT swept_at FROM $schema.sweeps WHERE tenant = :tenant::text;

-- name: audit_definitions
-- parameters: tenant digest limit
-- A page of definitions from a digest.
SELECT digest, name, version, text, text_digest FROM $schema.definitions
WHERE tenant = :tenant::text AND digest >= :digest::text
ORDER BY digest LIMIT :limit::bigint;

-- name: audit_undefined
-- parameters: tenant root id last_root last_id
-- Instances that an engine began under a definition which is gone.
SELECT i.id, i.definition_digest FROM $schema.instances AS i
WHERE i.definition_digest IS NOT NULL AND i.tenant = :tenant::text
    AND (i.root, i.id) >= (:root::text, :id::text)
    AND (i.root, i.id) <= (:last_root::text, :last_id::text)
    AND NOT EXISTS (
        SELECT 1 FROM $schema.definitions AS d
        WHERE d.tenant = i.tenant AND d.digest = i.definition_digest
    );

-- name: audit_changes
-- parameters: tenant root id sequence_number ordinal last_root last_id last_number limit
-- A page of changes of data, from one of them to all that came with the entry `last_number` of the
-- instance (last_root, last_id).
SELECT
    root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest, change_digest
FROM $schema.data_changes
WHERE tenant = :tenant::text
    AND (root, instance_id, sequence_number, ordinal)
        >= (:root::text, :id::text, :sequence_number::bigint, :ordinal::bigint)
    AND (root, instance_id, sequence_number)
        <= (:last_root::text, :last_id::text, :last_number::bigint)
ORDER BY root, instance_id, sequence_number, ordinal LIMIT :limit::bigint;

-- name: audit_stray_changes
-- parameters: tenant root id last_root last_id
-- Changes of data whose instance is gone.
SELECT c.instance_id, count(*), max(c.sequence_number)
FROM $schema.data_changes AS c
WHERE c.tenant = :tenant::text
    AND (c.root, c.instance_id) >= (:root::text, :id::text)
    AND (c.root, c.instance_id) <= (:last_root::text, :last_id::text)
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = c.tenant AND i.root = c.root AND i.id = c.instance_id
    )
GROUP BY c.root, c.instance_id;

-- name: audit_ordinals
-- parameters: tenant root id last_root last_id
-- Changes of data that stand twice.
SELECT c.instance_id, c.sequence_number, c.ordinal
FROM $schema.data_changes AS c
WHERE c.tenant = :tenant::text
    AND (c.root, c.instance_id) >= (:root::text, :id::text)
    AND (c.root, c.instance_id) <= (:last_root::text, :last_id::text)
GROUP BY c.root, c.instance_id, c.sequence_number, c.ordinal
HAVING count(*) > 1;

-- name: audit_stray_timers
-- parameters: tenant root id last_root last_id
-- Timers that belong to no entry of an instance of an engine.
SELECT t.instance_id, t.state, t.name, i.id IS NULL
FROM $schema.timers AS t
LEFT JOIN $schema.instances AS i ON i.tenant = t.tenant AND i.root = t.root AND i.id = t.instance_id
WHERE t.tenant = :tenant::text
    AND (t.root, t.instance_id) >= (:root::text, :id::text)
    AND (t.root, t.instance_id) <= (:last_root::text, :last_id::text)
    AND (
        i.id IS NULL
        OR i.definition_digest IS NULL
        OR t.sequence_number < 0
        OR t.sequence_number >= i.next_sequence_number
    );

-- name: dump_timers
-- parameters: tenant root id last_root last_id
-- The timers of the instances from (root, id) to (last_root, last_id).
SELECT root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
FROM $schema.timers
WHERE tenant = :tenant::text
    AND (root, instance_id) >= (:root::text, :id::text)
    AND (root, instance_id) <= (:last_root::text, :last_id::text)
ORDER BY root, instance_id, state, name;

-- name: dump_idle_definitions
-- parameters: tenant digest limit
-- A page of definitions that govern nothing and come after a digest.
SELECT d.digest, d.name, d.version, d.text, d.text_digest FROM $schema.definitions AS d
WHERE d.tenant = :tenant::text AND d.digest > :digest::text
    AND NOT EXISTS (
        SELECT 1 FROM $schema.instances AS i
        WHERE i.tenant = d.tenant AND i.definition_digest = d.digest OFFSET 0
    )
ORDER BY d.digest LIMIT :limit::bigint;
