-- The declared machine: declarations, instances, their history, and payloads.
--
-- One INSERT into history is the only write of a fire: its triggers check the move against the
-- declaration and move the instance. No other data-changing SQL of an ordinary client can change a
-- state, a version, an entry or a declaration. SQLite's clients run with foreign keys off and may
-- write OR REPLACE, which deletes the row in its way without firing delete triggers; so every rule
-- is a trigger, no table has a rowid to collide on, and every insert first looks for a row in its
-- way. Foreign keys are declared for readers, and for clients that switch them on.
--
-- Times are UTC microseconds since the epoch. Digests are SHA-256: of the text, in hexadecimal, for
-- a declaration; 32 bytes elsewhere. Declarations are shared by every root of a tenant; every other
-- key begins with (tenant, root).

CREATE TABLE declarations (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    initial_state TEXT NOT NULL,
    transition_count INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT, WITHOUT ROWID;

-- Finds a declaration without its text, which may be megabytes: to compare the key of a row in a table
-- without rowids, SQLite reads the whole row.
CREATE UNIQUE INDEX declarations_by_digest
    ON declarations (tenant, digest, initial_state, transition_count);

-- The transitions of a declaration as rows, made by the database from the text and by nobody else.
CREATE TABLE declared_transitions (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    from_state TEXT NOT NULL,
    action TEXT NOT NULL,
    to_state TEXT NOT NULL,
    guard TEXT,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest, from_state, action),
    UNIQUE (tenant, digest, ordinal),
    FOREIGN KEY (tenant, digest) REFERENCES declarations (tenant, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE instances (
    tenant TEXT NOT NULL,
    root TEXT NOT NULL,
    id TEXT NOT NULL,
    declaration_digest TEXT NOT NULL,
    current_state TEXT NOT NULL,
    next_sequence_number INTEGER NOT NULL,
    head_digest BLOB NOT NULL,
    instantiated_at INTEGER NOT NULL,
    actor_ref TEXT,
    subject_ref TEXT,
    metadata_id TEXT,
    metadata_digest BLOB,
    idempotency_key TEXT,
    request_digest BLOB,
    genesis_digest BLOB NOT NULL,
    PRIMARY KEY (tenant, root, id),
    FOREIGN KEY (tenant, declaration_digest) REFERENCES declarations (tenant, digest)
) STRICT, WITHOUT ROWID;

-- No index on current_state: each fire would pay for it. Lists by state filter a page's walk.
CREATE INDEX instances_by_declaration ON instances (tenant, declaration_digest, root, id);
CREATE INDEX instances_by_subject ON instances (tenant, subject_ref, root, id)
    WHERE subject_ref IS NOT NULL;

CREATE TABLE history (
    tenant TEXT NOT NULL,
    root TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    transition_id TEXT NOT NULL,
    from_state TEXT NOT NULL,
    action TEXT NOT NULL,
    to_state TEXT NOT NULL,
    actor_ref TEXT,
    fired_at INTEGER NOT NULL,
    guard_satisfied INTEGER,
    reason_id TEXT,
    reason_digest BLOB,
    correlation_id TEXT,
    causation_id TEXT,
    worker_id TEXT,
    idempotency_key TEXT,
    request_digest BLOB,
    entry_digest BLOB NOT NULL,
    PRIMARY KEY (tenant, root, instance_id, sequence_number),
    FOREIGN KEY (tenant, root, instance_id) REFERENCES instances (tenant, root, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX history_by_key ON history (tenant, root, instance_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- The one place where bytes can lawfully be destroyed: content and salt become NULL together.
CREATE TABLE payloads (
    tenant TEXT NOT NULL,
    root TEXT NOT NULL,
    id TEXT NOT NULL,
    salt BLOB,
    content BLOB,
    PRIMARY KEY (tenant, root, id)
) STRICT, WITHOUT ROWID;

-- An instance as readers see it: its row with the bytes of its metadata.
CREATE VIEW instance_records AS
SELECT i.*, p.content AS metadata
FROM instances AS i
LEFT JOIN payloads AS p ON p.tenant = i.tenant AND p.root = i.root AND p.id = i.metadata_id;

-- Which instance an idempotency key began: keys of births hold across roots, so they have a table of
-- their own, made by the database from the instances and by nobody else.
CREATE TABLE start_keys (
    tenant TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
) STRICT, WITHOUT ROWID;

-- declarations

CREATE TRIGGER declarations_insert BEFORE INSERT ON declarations
WHEN EXISTS (
    SELECT 1 FROM declarations INDEXED BY declarations_by_digest
    WHERE tenant = NEW.tenant AND digest = NEW.digest
)
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration never changes');
END;

-- A declaration is well formed, and its transitions become rows. A name twice among the transitions
-- of a state breaks the key of declared_transitions. Blank is what ASCII calls white space; the
-- store itself is stricter.
CREATE TRIGGER declarations_inserted AFTER INSERT ON declarations
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration has four keys, once each, of their types')
    WHERE json_type(NEW.text) IS NOT 'object'
        OR (SELECT group_concat(key) FROM (SELECT key FROM json_each(NEW.text) ORDER BY key))
            IS NOT 'initial_state,states,terminal_states,transitions'
        OR json_type(NEW.text, '$.states') IS NOT 'array'
        OR json_type(NEW.text, '$.transitions') IS NOT 'array'
        OR json_type(NEW.text, '$.initial_state') IS NOT 'text'
        OR json_type(NEW.text, '$.terminal_states') IS NOT 'array';
    SELECT RAISE(ABORT, 'interlock: what is read of a declaration is what its text says')
    WHERE NEW.initial_state IS NOT json_extract(NEW.text, '$.initial_state')
        OR NEW.transition_count IS NOT json_array_length(NEW.text, '$.transitions');
    SELECT RAISE(ABORT, 'interlock: states are distinct names')
    WHERE json_array_length(NEW.text, '$.states') = 0
        OR EXISTS (
            SELECT 1 FROM json_each(NEW.text, '$.states')
            WHERE type <> 'text' OR trim(value, char(9, 10, 11, 12, 13, 32)) = ''
        )
        OR (SELECT count(DISTINCT value) FROM json_each(NEW.text, '$.states'))
            <> json_array_length(NEW.text, '$.states');
    SELECT RAISE(ABORT, 'interlock: terminal states are distinct states')
    WHERE EXISTS (
            SELECT 1 FROM json_each(NEW.text, '$.terminal_states')
            WHERE type <> 'text' OR value NOT IN (SELECT value FROM json_each(NEW.text, '$.states'))
        )
        OR (SELECT count(DISTINCT value) FROM json_each(NEW.text, '$.terminal_states'))
            <> json_array_length(NEW.text, '$.terminal_states');
    SELECT RAISE(ABORT, 'interlock: the initial state is a state, and not terminal')
    WHERE NEW.initial_state NOT IN (SELECT value FROM json_each(NEW.text, '$.states'))
        OR NEW.initial_state IN (SELECT value FROM json_each(NEW.text, '$.terminal_states'));
    SELECT RAISE(ABORT, 'interlock: a transition has three keys, or four, once each')
    FROM json_each(NEW.text, '$.transitions') AS listed
    WHERE listed.type <> 'object'
        OR (SELECT group_concat(key) FROM (SELECT key FROM json_each(listed.value) ORDER BY key))
            NOT IN ('action,from_state,guard,to_state', 'action,from_state,to_state')
        OR json_type(listed.value, '$.action') IS NOT 'text'
        OR trim(json_extract(listed.value, '$.action'), char(9, 10, 11, 12, 13, 32)) = ''
        OR coalesce(json_type(listed.value, '$.guard'), 'null') NOT IN ('null', 'text')
        OR json_type(listed.value, '$.guard') IS NULL  -- absent, or spelt with an escape
            AND (SELECT count(*) FROM json_each(listed.value)) = 4
        OR trim(json_extract(listed.value, '$.guard'), char(9, 10, 11, 12, 13, 32)) = '';
    SELECT RAISE(ABORT, 'interlock: a transition leads from a state that is not terminal to a state')
    FROM json_each(NEW.text, '$.transitions') AS listed
    WHERE json_type(listed.value, '$.from_state') IS NOT 'text'
        OR json_type(listed.value, '$.to_state') IS NOT 'text'
        OR json_extract(listed.value, '$.from_state')
            NOT IN (SELECT value FROM json_each(NEW.text, '$.states'))
        OR json_extract(listed.value, '$.from_state')
            IN (SELECT value FROM json_each(NEW.text, '$.terminal_states'))
        OR json_extract(listed.value, '$.to_state')
            NOT IN (SELECT value FROM json_each(NEW.text, '$.states'));
    INSERT INTO declared_transitions (tenant, digest, from_state, action, to_state, guard, ordinal)
    SELECT
        NEW.tenant,
        NEW.digest,
        json_extract(listed.value, '$.from_state'),
        json_extract(listed.value, '$.action'),
        json_extract(listed.value, '$.to_state'),
        json_extract(listed.value, '$.guard'),
        listed.key
    FROM json_each(NEW.text, '$.transitions') AS listed;
END;

CREATE TRIGGER declarations_update BEFORE UPDATE ON declarations
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration never changes');
END;

CREATE TRIGGER declarations_delete BEFORE DELETE ON declarations
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration is never removed');
END;

-- declared_transitions: full from the moment the declaration exists, so no place is ever free.

CREATE TRIGGER declared_transitions_insert BEFORE INSERT ON declared_transitions
WHEN NEW.ordinal IS NULL
    OR NEW.ordinal < 0
    OR NEW.ordinal >= coalesce(
        (
            SELECT transition_count FROM declarations INDEXED BY declarations_by_digest
            WHERE tenant = NEW.tenant AND digest = NEW.digest
        ),
        0
    )
    OR EXISTS (
        SELECT 1 FROM declared_transitions
        WHERE tenant = NEW.tenant AND digest = NEW.digest AND ordinal = NEW.ordinal
    )
    OR EXISTS (
        SELECT 1 FROM declared_transitions
        WHERE tenant = NEW.tenant AND digest = NEW.digest
            AND from_state = NEW.from_state AND action = NEW.action
    )
BEGIN
    SELECT RAISE(ABORT, 'interlock: transitions are declared by their declaration alone');
END;

CREATE TRIGGER declared_transitions_update BEFORE UPDATE ON declared_transitions
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration never changes');
END;

CREATE TRIGGER declared_transitions_delete BEFORE DELETE ON declared_transitions
BEGIN
    SELECT RAISE(ABORT, 'interlock: a declaration never changes');
END;

-- instances

CREATE TRIGGER instances_insert BEFORE INSERT ON instances
BEGIN
    SELECT RAISE(ABORT, 'interlock: an instance begins once')
    WHERE EXISTS (
        SELECT 1 FROM instances WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.id
    );
    SELECT RAISE(ABORT, 'interlock: an instance begins in the initial state of its declaration')
    WHERE NEW.current_state IS NOT (
        SELECT initial_state FROM declarations INDEXED BY declarations_by_digest
        WHERE tenant = NEW.tenant AND digest = NEW.declaration_digest
    );
    SELECT RAISE(ABORT, 'interlock: an instance begins without history')
    WHERE NEW.next_sequence_number IS NOT 1 OR NEW.head_digest IS NOT NEW.genesis_digest;
    SELECT RAISE(ABORT, 'interlock: the root of an instance is the part of its id before the dot')
    WHERE NEW.root IS NOT substr(NEW.id, 1, instr(NEW.id || '.', '.') - 1);
    SELECT RAISE(ABORT, 'interlock: a moment lies in the years 1 to 9999')
    WHERE NEW.instantiated_at NOT BETWEEN -62135596800000000 AND 253402300799999999;
    SELECT RAISE(ABORT, 'interlock: an idempotency key comes with the digest of its request')
    WHERE (NEW.idempotency_key IS NULL) IS NOT (NEW.request_digest IS NULL);
END;

CREATE TRIGGER instances_inserted AFTER INSERT ON instances
WHEN NEW.idempotency_key IS NOT NULL
BEGIN
    INSERT INTO start_keys (tenant, idempotency_key, instance_id)
    VALUES (NEW.tenant, NEW.idempotency_key, NEW.id);
END;

CREATE TRIGGER instances_update BEFORE UPDATE OF
    tenant, root, id, declaration_digest, instantiated_at, actor_ref, subject_ref, metadata_id,
    metadata_digest, idempotency_key, request_digest, genesis_digest
ON instances
BEGIN
    SELECT RAISE(ABORT, 'interlock: how an instance began never changes');
END;

-- Only the entry that is already in history moves an instance, by one.
CREATE TRIGGER instances_move BEFORE UPDATE OF
    current_state, next_sequence_number, head_digest
ON instances
WHEN NEW.next_sequence_number IS NOT OLD.next_sequence_number + 1
    OR NOT EXISTS (
        SELECT 1 FROM history
        WHERE tenant = OLD.tenant AND root = OLD.root AND instance_id = OLD.id
            AND sequence_number = OLD.next_sequence_number
            AND from_state = OLD.current_state
            AND to_state = NEW.current_state
            AND entry_digest = NEW.head_digest
    )
BEGIN
    SELECT RAISE(ABORT, 'interlock: only an entry of history moves an instance');
END;

CREATE TRIGGER instances_delete BEFORE DELETE ON instances
BEGIN
    SELECT RAISE(ABORT, 'interlock: an instance is never removed');
END;

-- history

-- The condition is what every fire pays; the body only says which part of it failed.
CREATE TRIGGER history_insert BEFORE INSERT ON history
WHEN NOT EXISTS (
        SELECT 1
        FROM instances AS i
        JOIN declared_transitions AS d
            ON d.tenant = i.tenant AND d.digest = i.declaration_digest
                AND d.from_state = i.current_state AND d.action = NEW.action
        WHERE i.tenant = NEW.tenant AND i.root = NEW.root AND i.id = NEW.instance_id
            AND i.next_sequence_number = NEW.sequence_number
            AND i.current_state = NEW.from_state
            AND d.to_state = NEW.to_state
            AND NEW.fired_at BETWEEN i.instantiated_at AND 253402300799999999
            AND NEW.guard_satisfied IS CASE WHEN d.guard IS NULL THEN NULL ELSE 1 END
    )
    OR NEW.idempotency_key IS NOT NULL
        AND EXISTS (
            SELECT 1 FROM history
            WHERE tenant = NEW.tenant AND root = NEW.root AND instance_id = NEW.instance_id
                AND idempotency_key = NEW.idempotency_key
        )
BEGIN
    SELECT CASE
        WHEN i.id IS NULL
            THEN RAISE(ABORT, 'interlock: an entry belongs to an instance')
        WHEN NEW.sequence_number IS NOT i.next_sequence_number
            THEN RAISE(ABORT, 'interlock: an entry takes the next sequence number')
        WHEN NEW.from_state IS NOT i.current_state
            THEN RAISE(ABORT, 'interlock: an entry starts from the current state')
        WHEN NEW.to_state IS NOT d.to_state
            THEN RAISE(ABORT, 'interlock: an entry is a declared transition')
        WHEN NEW.fired_at NOT BETWEEN i.instantiated_at AND 253402300799999999
            THEN RAISE(ABORT, 'interlock: an entry is dated after the birth, before the year 10000')
        WHEN NEW.guard_satisfied IS NOT CASE WHEN d.guard IS NULL THEN NULL ELSE 1 END
            THEN RAISE(ABORT, 'interlock: a guard is asserted where one is declared, nowhere else')
        ELSE RAISE(ABORT, 'interlock: an idempotency key is never used again')
    END
    FROM (SELECT 1)
    LEFT JOIN instances AS i
        ON i.tenant = NEW.tenant AND i.root = NEW.root AND i.id = NEW.instance_id
    LEFT JOIN declared_transitions AS d
        ON d.tenant = NEW.tenant AND d.digest = i.declaration_digest
            AND d.from_state = NEW.from_state AND d.action = NEW.action;
END;

CREATE TRIGGER history_inserted AFTER INSERT ON history
BEGIN
    UPDATE instances
    SET current_state = NEW.to_state,
        next_sequence_number = NEW.sequence_number + 1,
        head_digest = NEW.entry_digest
    WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id;
END;

CREATE TRIGGER history_update BEFORE UPDATE ON history
BEGIN
    SELECT RAISE(ABORT, 'interlock: history is append-only');
END;

CREATE TRIGGER history_delete BEFORE DELETE ON history
BEGIN
    SELECT RAISE(ABORT, 'interlock: history is append-only');
END;

-- payloads

CREATE TRIGGER payloads_insert BEFORE INSERT ON payloads
BEGIN
    SELECT RAISE(ABORT, 'interlock: a payload is written once')
    WHERE NEW.salt IS NULL
        OR NEW.content IS NULL
        OR EXISTS (
            SELECT 1 FROM payloads WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.id
        );
    SELECT RAISE(ABORT, 'interlock: a payload is JSON')
    WHERE NOT json_valid(CAST(NEW.content AS TEXT));
END;

CREATE TRIGGER payloads_update BEFORE UPDATE ON payloads
WHEN NEW.tenant IS NOT OLD.tenant
    OR NEW.root IS NOT OLD.root
    OR NEW.id IS NOT OLD.id
    OR NEW.salt IS NOT NULL
    OR NEW.content IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'interlock: a payload can only be destroyed, content and salt together');
END;

CREATE TRIGGER payloads_delete BEFORE DELETE ON payloads
BEGIN
    SELECT RAISE(ABORT, 'interlock: the row of a payload stays when its bytes are destroyed');
END;

-- start_keys

CREATE TRIGGER start_keys_insert BEFORE INSERT ON start_keys
BEGIN
    SELECT RAISE(ABORT, 'interlock: an idempotency key is never used again')
    WHERE EXISTS (
        SELECT 1 FROM start_keys
        WHERE tenant = NEW.tenant AND idempotency_key = NEW.idempotency_key
    );
    SELECT RAISE(ABORT, 'interlock: an idempotency key names the instance that it began')
    WHERE NOT EXISTS (
        SELECT 1 FROM instances
        WHERE tenant = NEW.tenant
            AND root = substr(NEW.instance_id, 1, instr(NEW.instance_id || '.', '.') - 1)
            AND id = NEW.instance_id AND idempotency_key = NEW.idempotency_key
    );
END;

CREATE TRIGGER start_keys_update BEFORE UPDATE ON start_keys
BEGIN
    SELECT RAISE(ABORT, 'interlock: an idempotency key keeps its first answer');
END;

CREATE TRIGGER start_keys_delete BEFORE DELETE ON start_keys
BEGIN
    SELECT RAISE(ABORT, 'interlock: an idempotency key keeps its first answer');
END;

-- interlock_migrations: the ledger of what was applied; `migrate` seals it against further rows. An
-- update that changes nothing is let by: it is how a store writes without changing anything.

CREATE TRIGGER interlock_migrations_update BEFORE UPDATE ON interlock_migrations
WHEN NEW.number IS NOT OLD.number
    OR NEW.name IS NOT OLD.name
    OR NEW.applied_at IS NOT OLD.applied_at
BEGIN
    SELECT RAISE(ABORT, 'interlock: a migration that was applied stays in the ledger');
END;

CREATE TRIGGER interlock_migrations_delete BEFORE DELETE ON interlock_migrations
BEGIN
    SELECT RAISE(ABORT, 'interlock: a migration that was applied stays in the ledger');
END;
