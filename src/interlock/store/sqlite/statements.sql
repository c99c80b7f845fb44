-- The statements of the store, in SQLite's dialect. Every one names its tenant.

-- name: read_declaration
-- parameters: tenant digest
-- The exact text of a declaration.
SELECT digest, text FROM declarations WHERE tenant = :tenant AND digest = :digest;

-- name: append_declaration
-- parameters: tenant digest text
-- Its transitions become rows of declared_transitions by trigger.
INSERT INTO declarations (tenant, digest, initial_state, transition_count, text)
VALUES (
    :tenant, :digest, json_extract(:text, '$.initial_state'),
    json_array_length(:text, '$.transitions'), :text
);

-- name: append_instance
-- parameters: tenant root id declaration_digest current_state instantiated_at actor_ref subject_ref metadata_id metadata_digest idempotency_key request_digest definition_digest genesis_digest
-- A birth: version 1, no history, the head of the chain is the genesis. Its idempotency key becomes
-- a row of start_keys by trigger.
INSERT INTO instances (
    tenant, root, id, declaration_digest, current_state, next_sequence_number, head_digest,
    instantiated_at, actor_ref, subject_ref, metadata_id, metadata_digest, idempotency_key,
    request_digest, definition_digest, genesis_digest
) VALUES (
    :tenant, :root, :id, :declaration_digest, :current_state, 1, :genesis_digest,
    :instantiated_at, :actor_ref, :subject_ref, :metadata_id, :metadata_digest, :idempotency_key,
    :request_digest, :definition_digest, :genesis_digest
);

-- name: append_entry
-- parameters: tenant root instance_id sequence_number transition_id from_state action to_state actor_ref fired_at guard_satisfied reason_id reason_digest correlation_id causation_id worker_id idempotency_key request_digest entry_digest
-- changes: 2
-- The one write of a fire: triggers check it against the declaration and move the instance.
INSERT INTO history (
    tenant, root, instance_id, sequence_number, transition_id, from_state, action, to_state,
    actor_ref, fired_at, guard_satisfied, reason_id, reason_digest, correlation_id, causation_id,
    worker_id, idempotency_key, request_digest, entry_digest
) VALUES (
    :tenant, :root, :instance_id, :sequence_number, :transition_id, :from_state, :action, :to_state,
    :actor_ref, :fired_at, :guard_satisfied, :reason_id, :reason_digest, :correlation_id,
    :causation_id, :worker_id, :idempotency_key, :request_digest, :entry_digest
);

-- name: append_payload
-- parameters: tenant root id salt content
INSERT INTO payloads (tenant, root, id, salt, content) VALUES (:tenant, :root, :id, :salt, :content);

-- name: read_start_key
-- parameters: tenant idempotency_key
-- The instance that the idempotency key of a birth began, and what was asked for.
SELECT k.idempotency_key, i.id, i.request_digest, p.content
FROM start_keys AS k
JOIN instances AS i
    ON i.tenant = k.tenant AND i.root = substr(k.instance_id, 1, instr(k.instance_id || '.', '.') - 1)
        AND i.id = k.instance_id
LEFT JOIN payloads AS p ON p.tenant = i.tenant AND p.root = i.root AND p.id = i.metadata_id
WHERE k.tenant = :tenant AND k.idempotency_key = :idempotency_key;

-- columns: snapshot
-- What a decision needs to know of an instance.
id, declaration_digest, current_state, next_sequence_number, head_digest, instantiated_at,
definition_digest;

-- name: read_snapshot
-- parameters: tenant root id
SELECT $snapshot FROM instances WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: lock_snapshot
-- parameters: tenant root id
-- The same, held until the transaction ends, as everything is once a transaction writes.
SELECT $snapshot FROM instances WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: read_keyed_entry
-- parameters: tenant root instance_id idempotency_key
-- The answer that an idempotency key already had.
SELECT h.instance_id, h.idempotency_key, h.to_state, h.request_digest, p.content
FROM history AS h
LEFT JOIN payloads AS p ON p.tenant = h.tenant AND p.root = h.root AND p.id = h.reason_id
WHERE h.tenant = :tenant AND h.root = :root AND h.instance_id = :instance_id
    AND h.idempotency_key = :idempotency_key;

-- columns: led_to
-- Where an entry led to, with what followed it by itself: the ids of that are its own and a number.
coalesce(
    (
        SELECT f.to_state FROM history AS f
        WHERE f.tenant = h.tenant AND f.root = h.root AND f.instance_id = h.instance_id
            AND f.sequence_number > h.sequence_number
            AND substr(f.transition_id, 1, length(h.transition_id) + 1) = h.transition_id || '.'
        ORDER BY f.sequence_number DESC LIMIT 1
    ),
    h.to_state
);

-- name: read_attempt
-- parameters: tenant root instance_id transition_id
-- What came of an attempt that is in the record. Asked only after a lost answer, so no index serves
-- it.
SELECT $led_to FROM history AS h
WHERE h.tenant = :tenant AND h.root = :root AND h.instance_id = :instance_id
    AND h.transition_id = :transition_id;

-- columns: instance
-- What readers are told of an instance; its metadata comes last.
id, current_state, next_sequence_number, declaration_digest, instantiated_at, actor_ref,
subject_ref, definition_digest, metadata_id, metadata;

-- name: read_instance
-- parameters: tenant root id
SELECT $instance FROM instance_records WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: read_last_entry_until
-- parameters: tenant root instance_id sequence_number fired_at
-- The last entry, by number, that lies within both bounds.
SELECT sequence_number, to_state
FROM history
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id
    AND sequence_number <= :sequence_number AND fired_at <= :fired_at
ORDER BY sequence_number DESC LIMIT 1;

-- name: read_history
-- parameters: tenant root instance_id transition_id from_state to_state action actor_ref start end after before
-- Entries by number; every filter that is not NULL holds.
SELECT
    h.transition_id, h.sequence_number, h.from_state, h.to_state, h.action, h.actor_ref,
    h.fired_at, h.guard_satisfied, h.reason_id, h.correlation_id, h.causation_id, h.worker_id,
    p.content
FROM history AS h
LEFT JOIN payloads AS p ON p.tenant = h.tenant AND p.root = h.root AND p.id = h.reason_id
WHERE h.tenant = :tenant AND h.root = :root AND h.instance_id = :instance_id
    AND h.sequence_number >= coalesce(:start, 0)
    AND h.sequence_number <= coalesce(:end, 9223372036854775807)
    AND (:transition_id IS NULL OR h.transition_id = :transition_id)
    AND (:from_state IS NULL OR h.from_state = :from_state)
    AND (:to_state IS NULL OR h.to_state = :to_state)
    AND (:action IS NULL OR h.action = :action)
    AND (:actor_ref IS NULL OR h.actor_ref = :actor_ref)
    AND (:after IS NULL OR h.fired_at >= :after)
    AND (:before IS NULL OR h.fired_at <= :before)
ORDER BY h.sequence_number;

-- name: list_instances
-- parameters: tenant root id limit state
-- A page after (root, id). Filters may be NULL; the lists below begin with one that has an index.
SELECT $instance FROM instance_records
WHERE tenant = :tenant AND (root, id) > (:root, :id)
    AND (:state IS NULL OR current_state = :state)
ORDER BY root, id LIMIT :limit;

-- name: list_instances_by_declaration
-- parameters: tenant root id limit state declaration_digest
SELECT $instance FROM instance_records
WHERE tenant = :tenant AND declaration_digest = :declaration_digest
    AND (root, id) > (:root, :id)
    AND (:state IS NULL OR current_state = :state)
ORDER BY root, id LIMIT :limit;

-- name: list_instances_by_subject
-- parameters: tenant root id limit state declaration_digest subject_ref
SELECT $instance FROM instance_records
WHERE tenant = :tenant AND subject_ref = :subject_ref
    AND (root, id) > (:root, :id)
    AND (:state IS NULL OR current_state = :state)
    AND (:declaration_digest IS NULL OR declaration_digest = :declaration_digest)
ORDER BY root, id LIMIT :limit;

-- name: read_initial_state
-- parameters: tenant digest
SELECT initial_state FROM declarations WHERE tenant = :tenant AND digest = :digest;

-- name: settle
-- parameters:
-- Changes nothing, but is written: it takes the place in the log of a commit that failed.
UPDATE interlock_migrations SET name = name;

-- name: audit_declarations
-- parameters: tenant digest limit
-- A page of declarations from a digest.
SELECT digest, text, initial_state, transition_count FROM declarations
WHERE tenant = :tenant AND digest >= :digest
ORDER BY digest LIMIT :limit;

-- name: audit_declaration
-- parameters: tenant digest
SELECT digest, text, initial_state, transition_count FROM declarations
WHERE tenant = :tenant AND digest = :digest;

-- name: audit_transitions
-- parameters: tenant digest
SELECT from_state, action, to_state, guard, ordinal FROM declared_transitions
WHERE tenant = :tenant AND digest = :digest
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
FROM instances AS i
LEFT JOIN history AS h
    ON h.tenant = i.tenant AND h.root = i.root AND h.instance_id = i.id
        AND h.sequence_number >= CASE
            WHEN i.root = :root AND i.id = :id THEN :sequence_number
            ELSE -9223372036854775808
        END
WHERE i.tenant = :tenant
    AND (i.root, i.id) >= (:root, :id) AND (i.root, i.id) <= (:last_root, :last_id)
ORDER BY i.root, i.id, h.sequence_number LIMIT :limit;

-- name: audit_strays
-- parameters: tenant root id last_root last_id
-- Entries, from the instance (root, id) to (last_root, last_id), whose instance is gone.
SELECT h.instance_id, count(*), max(h.sequence_number)
FROM history AS h
WHERE h.tenant = :tenant
    AND (h.root, h.instance_id) >= (:root, :id)
    AND (h.root, h.instance_id) <= (:last_root, :last_id)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = h.tenant AND i.root = h.root AND i.id = h.instance_id
    )
GROUP BY h.root, h.instance_id;

-- name: audit_twins
-- parameters: tenant root id last_root last_id
-- Instances that stand twice under one id.
SELECT id FROM instances
WHERE tenant = :tenant AND (root, id) >= (:root, :id) AND (root, id) <= (:last_root, :last_id)
GROUP BY root, id HAVING count(*) > 1;

-- name: audit_numbers
-- parameters: tenant root id last_root last_id
-- Sequence numbers that stand twice in the history of one instance.
SELECT h.instance_id, h.sequence_number
FROM history AS h
WHERE h.tenant = :tenant
    AND (h.root, h.instance_id) >= (:root, :id)
    AND (h.root, h.instance_id) <= (:last_root, :last_id)
GROUP BY h.root, h.instance_id, h.sequence_number
HAVING count(*) > 1;

-- name: audit_repeats
-- parameters: tenant root id last_root last_id
-- Transition ids that stand twice in the history of one instance.
SELECT h.instance_id, max(h.sequence_number), h.transition_id
FROM history AS h
WHERE h.tenant = :tenant
    AND (h.root, h.instance_id) >= (:root, :id)
    AND (h.root, h.instance_id) <= (:last_root, :last_id)
GROUP BY h.root, h.instance_id, h.transition_id
HAVING count(*) > 1;

-- name: audit_payloads
-- parameters: tenant root id last_root last_id
-- Payloads that are not what the record says: gone, or other bytes. Destroyed ones are lawful.
SELECT
    named.instance_id, named.sequence_number, named.what,
    CASE WHEN p.id IS NULL THEN 'is gone' ELSE payload_fault(p.salt, p.content, named.digest) END
FROM (
    SELECT tenant, root, id AS instance_id, NULL AS sequence_number, 'the metadata' AS what,
        metadata_id AS payload_id, metadata_digest AS digest
    FROM instances
    WHERE metadata_id IS NOT NULL AND tenant = :tenant
        AND (root, id) >= (:root, :id) AND (root, id) <= (:last_root, :last_id)
    UNION ALL
    SELECT tenant, root, instance_id, sequence_number, 'the reason', reason_id, reason_digest
    FROM history
    WHERE reason_id IS NOT NULL AND tenant = :tenant
        AND (root, instance_id) >= (:root, :id) AND (root, instance_id) <= (:last_root, :last_id)
    UNION ALL
    SELECT tenant, root, instance_id, sequence_number, 'the payload of change ' || ordinal,
        payload_id, payload_digest
    FROM data_changes
    WHERE tenant = :tenant
        AND (root, instance_id) >= (:root, :id) AND (root, instance_id) <= (:last_root, :last_id)
) AS named
LEFT JOIN payloads AS p
    ON p.tenant = named.tenant AND p.root = named.root AND p.id = named.payload_id
WHERE p.id IS NULL
    OR (p.salt IS NOT NULL OR p.content IS NOT NULL)
        AND payload_fault(p.salt, p.content, named.digest) IS NOT NULL;

-- name: audit_start_keys
-- parameters: tenant idempotency_key limit
-- A page of the idempotency keys of births from a key, each with the instance it names, if any, and
-- with the key that one was begun under.
SELECT k.idempotency_key, k.instance_id, i.id, i.idempotency_key
FROM start_keys AS k
LEFT JOIN instances AS i
    ON i.tenant = k.tenant AND i.root = substr(k.instance_id, 1, instr(k.instance_id || '.', '.') - 1)
        AND i.id = k.instance_id
WHERE k.tenant = :tenant AND k.idempotency_key >= :idempotency_key
ORDER BY k.idempotency_key LIMIT :limit;

-- name: audit_lost_keys
-- parameters: tenant root id last_root last_id
-- Instances that were begun under an idempotency key which would not find them.
SELECT i.id, i.idempotency_key
FROM instances AS i
WHERE i.idempotency_key IS NOT NULL AND i.tenant = :tenant
    AND (i.root, i.id) >= (:root, :id) AND (i.root, i.id) <= (:last_root, :last_id)
    AND NOT EXISTS (
        SELECT 1 FROM start_keys AS k
        WHERE k.tenant = i.tenant AND k.idempotency_key = i.idempotency_key
            AND k.instance_id = i.id
    );

-- name: audit_orphans
-- parameters: tenant
-- Transitions whose declaration is gone.
SELECT t.digest, t.count
FROM (
    SELECT digest, count(*) AS count FROM declared_transitions
    WHERE tenant = :tenant GROUP BY digest
) AS t
WHERE NOT EXISTS (SELECT 1 FROM declarations AS d WHERE d.tenant = :tenant AND d.digest = t.digest);

-- name: audit_strangers
-- parameters: tenant
-- Rows of other tenants that hang on nothing, so that no tenant has them.
SELECT 'instances', count(*) FROM instances AS i
WHERE (i.tenant < :tenant OR i.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM declarations AS d
        WHERE d.tenant = i.tenant AND d.digest = i.declaration_digest
    )
UNION ALL
SELECT 'history', count(*) FROM history AS h
WHERE (h.tenant < :tenant OR h.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = h.tenant AND i.root = h.root AND i.id = h.instance_id
    )
UNION ALL
SELECT 'declared_transitions', count(*) FROM declared_transitions AS t
WHERE (t.tenant < :tenant OR t.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM declarations AS d
        WHERE d.tenant = t.tenant AND d.digest = t.digest
    )
UNION ALL
SELECT 'start_keys', count(*) FROM start_keys AS k
WHERE (k.tenant < :tenant OR k.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = k.tenant AND i.idempotency_key = k.idempotency_key
            AND i.root = substr(k.instance_id, 1, instr(k.instance_id || '.', '.') - 1)
            AND i.id = k.instance_id
    )
UNION ALL
SELECT 'data_changes', count(*) FROM data_changes AS c
WHERE (c.tenant < :tenant OR c.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = c.tenant AND i.root = c.root AND i.id = c.instance_id
    )
UNION ALL
SELECT 'timers', count(*) FROM timers AS t
WHERE (t.tenant < :tenant OR t.tenant > :tenant)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = t.tenant AND i.root = t.root AND i.id = t.instance_id
    );

-- name: audit_misfits
-- parameters:
-- Rows that no key finds, since a part of theirs is not even text. The schema allows none. Of
-- transitions every page is read: elsewhere an index may stand in for a part of their row.
SELECT 'instances', count(*) FROM instances
WHERE typeof(tenant) <> 'text' OR typeof(root) <> 'text' OR typeof(id) <> 'text'
UNION ALL
SELECT 'history', count(*) FROM history
WHERE typeof(tenant) <> 'text' OR typeof(root) <> 'text' OR typeof(instance_id) <> 'text'
UNION ALL
SELECT 'declarations', count(*) FROM declarations
WHERE typeof(tenant) <> 'text' OR typeof(digest) <> 'text'
UNION ALL
SELECT 'declared_transitions', count(*) FROM declared_transitions
WHERE typeof(tenant) <> 'text' OR typeof(digest) <> 'text' OR typeof(to_state) <> 'text'
    OR typeof(ordinal) <> 'integer'
UNION ALL
SELECT 'start_keys', count(*) FROM start_keys
WHERE typeof(tenant) <> 'text' OR typeof(idempotency_key) <> 'text'
    OR typeof(instance_id) <> 'text'
UNION ALL
SELECT 'definitions', count(*) FROM definitions
WHERE typeof(tenant) <> 'text' OR typeof(digest) <> 'text'
UNION ALL
SELECT 'data_changes', count(*) FROM data_changes
WHERE typeof(tenant) <> 'text' OR typeof(root) <> 'text' OR typeof(instance_id) <> 'text'
    OR typeof(sequence_number) <> 'integer' OR typeof(ordinal) <> 'integer'
UNION ALL
SELECT 'timers', count(*) FROM timers
WHERE typeof(tenant) <> 'text' OR typeof(root) <> 'text' OR typeof(instance_id) <> 'text';

-- name: audit_definitions
-- parameters: tenant digest limit
-- A page of definitions from a digest.
SELECT digest, name, version, text, text_digest FROM definitions
WHERE tenant = :tenant AND digest >= :digest
ORDER BY digest LIMIT :limit;

-- name: audit_undefined
-- parameters: tenant root id last_root last_id
-- Instances that an engine began under a definition which is gone.
SELECT i.id, i.definition_digest FROM instances AS i
WHERE i.definition_digest IS NOT NULL AND i.tenant = :tenant
    AND (i.root, i.id) >= (:root, :id) AND (i.root, i.id) <= (:last_root, :last_id)
    AND NOT EXISTS (
        SELECT 1 FROM definitions AS d
        WHERE d.tenant = i.tenant AND d.digest = i.definition_digest
    );

-- name: audit_changes
-- parameters: tenant root id sequence_number ordinal last_root last_id last_number limit
-- A page of changes of data, from one of them to all that came with the entry `last_number` of the
-- instance (last_root, last_id).
SELECT
    root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest, change_digest
FROM data_changes
WHERE tenant = :tenant
    AND (root, instance_id, sequence_number, ordinal) >= (:root, :id, :sequence_number, :ordinal)
    AND (root, instance_id, sequence_number) <= (:last_root, :last_id, :last_number)
ORDER BY root, instance_id, sequence_number, ordinal LIMIT :limit;

-- name: audit_stray_changes
-- parameters: tenant root id last_root last_id
-- Changes of data whose instance is gone.
SELECT c.instance_id, count(*), max(c.sequence_number)
FROM data_changes AS c
WHERE c.tenant = :tenant
    AND (c.root, c.instance_id) >= (:root, :id)
    AND (c.root, c.instance_id) <= (:last_root, :last_id)
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = c.tenant AND i.root = c.root AND i.id = c.instance_id
    )
GROUP BY c.root, c.instance_id;

-- name: audit_ordinals
-- parameters: tenant root id last_root last_id
-- Changes of data that stand twice.
SELECT c.instance_id, c.sequence_number, c.ordinal
FROM data_changes AS c
WHERE c.tenant = :tenant
    AND (c.root, c.instance_id) >= (:root, :id)
    AND (c.root, c.instance_id) <= (:last_root, :last_id)
GROUP BY c.root, c.instance_id, c.sequence_number, c.ordinal
HAVING count(*) > 1;

-- name: audit_stray_timers
-- parameters: tenant root id last_root last_id
-- Timers that belong to no entry of an instance of an engine.
SELECT t.instance_id, t.state, t.name, i.id IS NULL
FROM timers AS t
LEFT JOIN instances AS i ON i.tenant = t.tenant AND i.root = t.root AND i.id = t.instance_id
WHERE t.tenant = :tenant
    AND (t.root, t.instance_id) >= (:root, :id)
    AND (t.root, t.instance_id) <= (:last_root, :last_id)
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
FROM timers
WHERE tenant = :tenant
    AND (root, instance_id) >= (:root, :id) AND (root, instance_id) <= (:last_root, :last_id)
ORDER BY root, instance_id, state, name;

-- name: dump_idle_definitions
-- parameters: tenant digest limit
-- A page of definitions that govern nothing and come after a digest.
SELECT d.digest, d.name, d.version, d.text, d.text_digest FROM definitions AS d
WHERE d.tenant = :tenant AND d.digest > :digest
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = d.tenant AND i.definition_digest = d.digest
    )
ORDER BY d.digest LIMIT :limit;

-- name: clear_all_timers
-- parameters: tenant root instance_id
DELETE FROM timers
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id;

-- name: restore_timer
-- parameters: tenant root instance_id state name sequence_number due_at next_try_at failures failure
-- changes: 1
INSERT INTO timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
) VALUES (
    :tenant, :root, :instance_id, :state, :name, :sequence_number, :due_at, :next_try_at, :failures,
    :failure
);

-- name: dump_payloads
-- parameters: tenant root id
SELECT root, id, salt, content FROM payloads
WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: dump_idle_declarations
-- parameters: tenant digest limit
-- A page of declarations that govern nothing and come after a digest.
SELECT d.digest, d.text FROM declarations AS d
WHERE d.tenant = :tenant AND d.digest > :digest
    AND NOT EXISTS (
        SELECT 1 FROM instances AS i
        WHERE i.tenant = d.tenant AND i.declaration_digest = d.digest
    )
ORDER BY d.digest LIMIT :limit;

-- name: lock_head
-- parameters: tenant root id
-- How an instance began and how far its record goes, held until the transaction ends.
SELECT id, genesis_digest, next_sequence_number, head_digest
FROM instances WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: destroy_payload
-- parameters: tenant root id
-- changes: 1
-- Its row stays.
UPDATE payloads SET salt = NULL, content = NULL
WHERE tenant = :tenant AND root = :root AND id = :id;

-- name: read_definition
-- parameters: tenant digest
-- The document of a definition, and the digest of its text.
SELECT digest, name, version, text, text_digest FROM definitions
WHERE tenant = :tenant AND digest = :digest;

-- name: read_definition_version
-- parameters: tenant name version
-- What a name and version meant when they were used first.
SELECT digest FROM definitions
WHERE tenant = :tenant AND name = :name AND version = :version AND version <> 'dev';

-- name: read_definition_digests
-- parameters: tenant name
SELECT digest FROM definitions WHERE tenant = :tenant AND name = :name ORDER BY digest;

-- name: append_definition
-- parameters: tenant digest name version text text_digest
INSERT INTO definitions (tenant, digest, name, version, text, text_digest)
VALUES (:tenant, :digest, :name, :version, :text, :text_digest);

-- name: list_instances_by_definition
-- parameters: tenant root id limit state definition_digest subject_ref
SELECT $instance FROM instance_records
WHERE tenant = :tenant AND definition_digest = :definition_digest
    AND (root, id) > (:root, :id)
    AND (:state IS NULL OR current_state = :state)
    AND (:subject_ref IS NULL OR subject_ref = :subject_ref)
ORDER BY root, id LIMIT :limit;

-- name: append_change
-- parameters: tenant root instance_id sequence_number ordinal kind payload_id payload_digest change_digest
-- changes: 1
-- What came with the last entry of an instance.
INSERT INTO data_changes (
    tenant, root, instance_id, sequence_number, ordinal, kind, payload_id, payload_digest,
    change_digest
) VALUES (
    :tenant, :root, :instance_id, :sequence_number, :ordinal, :kind, :payload_id, :payload_digest,
    :change_digest
);

-- name: read_changes
-- parameters: tenant root instance_id until
-- What changed of the data up to an entry, from the last time that it was written as a whole.
SELECT c.sequence_number, c.kind, p.content
FROM data_changes AS c
LEFT JOIN payloads AS p ON p.tenant = c.tenant AND p.root = c.root AND p.id = c.payload_id
WHERE c.tenant = :tenant AND c.root = :root AND c.instance_id = :instance_id
    AND c.sequence_number <= :until
    AND c.sequence_number >= coalesce(
        (
            SELECT max(w.sequence_number) FROM data_changes AS w
            WHERE w.tenant = :tenant AND w.root = :root AND w.instance_id = :instance_id
                AND w.sequence_number <= :until AND w.kind = 'whole'
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
FROM history AS h
LEFT JOIN payloads AS r ON r.tenant = h.tenant AND r.root = h.root AND r.id = h.reason_id
LEFT JOIN data_changes AS c
    ON c.tenant = h.tenant AND c.root = h.root AND c.instance_id = h.instance_id
        AND c.sequence_number = h.sequence_number AND c.ordinal = 0 AND c.kind = 'event'
LEFT JOIN payloads AS p ON p.tenant = h.tenant AND p.root = h.root AND p.id = c.payload_id
WHERE h.tenant = :tenant AND h.root = :root AND h.instance_id = :instance_id
    AND h.idempotency_key = :idempotency_key;

-- name: set_timer
-- parameters: tenant root instance_id state name sequence_number due_at
-- changes: 1
INSERT INTO timers (
    tenant, root, instance_id, state, name, sequence_number, due_at, next_try_at, failures, failure
) VALUES (
    :tenant, :root, :instance_id, :state, :name, :sequence_number, :due_at, :due_at, 0, NULL
);

-- name: clear_timers
-- parameters: tenant root instance_id state
-- Of a state that is left.
DELETE FROM timers
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id AND state = :state;

-- name: clear_timer
-- parameters: tenant root instance_id state name
DELETE FROM timers
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id
    AND state = :state AND name = :name;

-- name: postpone_timer
-- parameters: tenant root instance_id state name sequence_number next_try_at failure
-- A timer that failed is tried again later; its own moment stays.
UPDATE timers
SET next_try_at = :next_try_at, failures = failures + 1, failure = :failure
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id
    AND state = :state AND name = :name AND sequence_number = :sequence_number;

-- name: read_timer
-- parameters: tenant root instance_id state name
SELECT sequence_number, due_at FROM timers
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id
    AND state = :state AND name = :name;

-- name: read_timers
-- parameters: tenant root instance_id
SELECT state, name, sequence_number, due_at, failures, failure FROM timers
WHERE tenant = :tenant AND root = :root AND instance_id = :instance_id
ORDER BY due_at, state, name;

-- name: read_due_timers
-- parameters: tenant until limit next_try_at root instance_id state name
-- A page of the timers that are to be looked at by a moment, after one of them.
SELECT next_try_at, root, instance_id, state, name, sequence_number, failures FROM timers
WHERE tenant = :tenant AND next_try_at <= :until
    AND (next_try_at, root, instance_id, state, name)
        > (:next_try_at, :root, :instance_id, :state, :name)
ORDER BY next_try_at, root, instance_id, state, name LIMIT :limit;

-- name: mark_sweep
-- parameters: tenant swept_at
-- changes: 1
INSERT INTO sweeps (tenant, swept_at) VALUES (:tenant, :swept_at)
ON CONFLICT (tenant) DO UPDATE SET swept_at = max(swept_at, excluded.swept_at);

-- name: read_sweep
-- parameters: tenant
SELECT swept_at FROM sweeps WHERE tenant = :tenant;
