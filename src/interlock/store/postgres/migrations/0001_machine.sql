-- The declared machine: declarations, instances, their history, and payloads.
--
-- One INSERT into history is the only write of a fire: its trigger checks the move against the
-- declaration and moves the instance. No other data-changing SQL, the owner's included, can change a
-- state, a version, an entry or a declaration. TRUNCATE fires no row triggers, so every table has a
-- trigger against it. What only a trigger may write is known by the depth of triggers; functions that
-- write run as the owner, and nobody else may execute them: on a table of another's own they would
-- move instances without history.
--
-- `$schema` stands for the schema of the store, so that nothing hangs on a search_path. Text is
-- compared by its bytes. Times are UTC microseconds since the epoch. Digests are SHA-256: of the
-- text, in hexadecimal, for a declaration; 32 bytes elsewhere. Declarations are shared by every root
-- of a tenant; every other key begins with (tenant, root).
--
-- `schema_faults` reads this file: it knows CREATE TABLE, INDEX, FUNCTION, TRIGGER and POLICY, each
-- written as it is here.

CREATE TABLE $schema.declarations (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    initial_state text COLLATE "C" NOT NULL,
    transition_count bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    CONSTRAINT declarations_pkey PRIMARY KEY (tenant, digest),
    CONSTRAINT declarations_digest CHECK (digest = encode(sha256(convert_to(text, 'UTF8')), 'hex'))
);

-- The transitions of a declaration as rows, made by the database from the text and by nobody else.
-- No second index: every fire looks for one row by its whole key, and a plan made while the table is
-- small might take the other and read all the transitions of a declaration.
CREATE TABLE $schema.declared_transitions (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    from_state text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    to_state text COLLATE "C" NOT NULL,
    guard text COLLATE "C",
    ordinal bigint NOT NULL,
    CONSTRAINT declared_transitions_pkey PRIMARY KEY (tenant, digest, from_state, action),
    CONSTRAINT declared_transitions_declaration FOREIGN KEY (tenant, digest) REFERENCES $schema.declarations (tenant, digest)
);

-- A fire updates the row in place while its page has room, and no index holds what it changes.
CREATE TABLE $schema.instances (
    tenant text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    declaration_digest text COLLATE "C" NOT NULL,
    current_state text COLLATE "C" NOT NULL,
    next_sequence_number bigint NOT NULL,
    head_digest bytea NOT NULL,
    instantiated_at bigint NOT NULL,
    actor_ref text COLLATE "C",
    subject_ref text COLLATE "C",
    metadata_id text COLLATE "C",
    metadata_digest bytea,
    idempotency_key text COLLATE "C",
    request_digest bytea,
    genesis_digest bytea NOT NULL,
    CONSTRAINT instances_declaration FOREIGN KEY (tenant, declaration_digest) REFERENCES $schema.declarations (tenant, digest)
) WITH (fillfactor = 70);

-- No index on current_state: each fire would pay for it. Lists by state filter a page's walk.
CREATE INDEX instances_by_declaration ON $schema.instances USING btree (tenant, declaration_digest, root, id);
CREATE INDEX instances_by_subject ON $schema.instances USING btree (tenant, subject_ref, root, id) WHERE (subject_ref IS NOT NULL);

-- Made last: of two indexes that cost the same, as all do while a table is small, PostgreSQL takes the
-- younger, and a prepared plan keeps it when the table has grown.
ALTER TABLE $schema.instances ADD CONSTRAINT instances_pkey PRIMARY KEY (tenant, root, id);

-- No foreign key to instances: the trigger that moves the instance gives the same guarantee, rows of
-- instances are never removed, and the check would cost every entry some 20 microseconds.
CREATE TABLE $schema.history (
    tenant text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    transition_id text COLLATE "C" NOT NULL,
    from_state text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    to_state text COLLATE "C" NOT NULL,
    actor_ref text COLLATE "C",
    fired_at bigint NOT NULL,
    guard_satisfied bigint,
    reason_id text COLLATE "C",
    reason_digest bytea,
    correlation_id text COLLATE "C",
    causation_id text COLLATE "C",
    worker_id text COLLATE "C",
    idempotency_key text COLLATE "C",
    request_digest bytea,
    entry_digest bytea NOT NULL,
    CONSTRAINT history_pkey PRIMARY KEY (tenant, root, instance_id, sequence_number),
    CONSTRAINT history_entry_digest CHECK (octet_length(entry_digest) = 32)
);

CREATE UNIQUE INDEX history_by_key ON $schema.history USING btree (tenant, root, instance_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

-- The one place where bytes can lawfully be destroyed: content and salt become NULL together.
CREATE TABLE $schema.payloads (
    tenant text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    salt bytea,
    content bytea,
    CONSTRAINT payloads_pkey PRIMARY KEY (tenant, root, id)
);

-- Which instance an idempotency key began: keys of births hold across roots, so they have a table of
-- their own, made by the database from the instances and by nobody else.
CREATE TABLE $schema.start_keys (
    tenant text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    CONSTRAINT start_keys_pkey PRIMARY KEY (tenant, idempotency_key)
);

-- What triggers refuse with; their argument says which rule it is.
CREATE FUNCTION $schema.refuse() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '23514', MESSAGE = TG_ARGV[0];
END
$$;

-- declarations

-- A declaration is well formed, and its transitions become rows. Checked after the insert, so that
-- one which is there already is passed over by ON CONFLICT. The type json, unlike jsonb, shows a key
-- that stands twice. A name twice among the transitions of a state breaks the key of
-- declared_transitions. Blank is what Python calls white space.
CREATE FUNCTION $schema.declarations_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    blanks CONSTANT text := E' \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003'
        '\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000';
    document json;
    states text[];
    terminal_states text[];
    is_odd boolean;
    fault text;
BEGIN
    fault := 'interlock: a declaration has four keys, once each, of their types';
    document := NEW.text::json;
    IF json_typeof(document) <> 'object'
        OR ARRAY(SELECT key FROM json_each(document) ORDER BY key COLLATE "C")
            <> ARRAY['initial_state', 'states', 'terminal_states', 'transitions']
        OR json_typeof(document -> 'states') <> 'array'
        OR json_typeof(document -> 'transitions') <> 'array'
        OR json_typeof(document -> 'initial_state') <> 'string'
        OR json_typeof(document -> 'terminal_states') <> 'array'
    THEN
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    fault := 'interlock: what is read of a declaration is what its text says';
    IF NEW.initial_state <> document ->> 'initial_state'
        OR NEW.transition_count <> json_array_length(document -> 'transitions')
    THEN
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    fault := 'interlock: states are distinct names';
    SELECT array_agg(listed #>> '{}'),
        coalesce(bool_or(json_typeof(listed) <> 'string' OR btrim(listed #>> '{}', blanks) = ''), true)
            OR count(DISTINCT listed #>> '{}') <> count(*)
    INTO states, is_odd
    FROM json_array_elements(document -> 'states') AS listed;
    IF is_odd THEN
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    fault := 'interlock: terminal states are distinct states';
    SELECT coalesce(array_agg(listed #>> '{}'), '{}'),
        coalesce(bool_or(json_typeof(listed) <> 'string'), false)
            OR count(DISTINCT listed #>> '{}') <> count(*)
    INTO terminal_states, is_odd
    FROM json_array_elements(document -> 'terminal_states') AS listed;
    IF is_odd OR EXISTS (SELECT unnest(terminal_states) EXCEPT SELECT unnest(states)) THEN
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    IF NEW.initial_state <> ALL (states) OR NEW.initial_state = ANY (terminal_states) THEN
        fault := 'interlock: the initial state is a state, and not terminal';
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    fault := 'interlock: a transition has three keys, or four, once each';
    IF EXISTS (
        SELECT 1
        FROM json_array_elements(document -> 'transitions') AS listed
        CROSS JOIN LATERAL (
            SELECT array_agg(key ORDER BY key COLLATE "C") AS keys,
                bool_and(
                    CASE json_typeof(value)
                        WHEN 'string'
                            THEN key NOT IN ('action', 'guard') OR btrim(value #>> '{}', blanks) <> ''
                        ELSE key = 'guard' AND json_typeof(value) = 'null'
                    END
                ) AS are_typed
            FROM json_each(listed)
        ) AS found
        WHERE found.keys IS DISTINCT FROM ARRAY['action', 'from_state', 'to_state']
            AND found.keys IS DISTINCT FROM ARRAY['action', 'from_state', 'guard', 'to_state']
            OR found.are_typed IS NOT TRUE
    ) THEN
        RAISE check_violation USING MESSAGE = fault;
    END IF;

    INSERT INTO $schema.declared_transitions (
        tenant, digest, from_state, action, to_state, guard, ordinal
    )
    SELECT
        NEW.tenant, NEW.digest, listed ->> 'from_state', listed ->> 'action', listed ->> 'to_state',
        listed ->> 'guard', place - 1
    FROM json_array_elements(document -> 'transitions') WITH ORDINALITY AS listed (listed, place);

    IF EXISTS (
        SELECT 1 FROM $schema.declared_transitions
        WHERE tenant = NEW.tenant AND digest = NEW.digest
            AND (
                from_state NOT IN (SELECT unnest(states))
                OR from_state IN (SELECT unnest(terminal_states))
                OR to_state NOT IN (SELECT unnest(states))
            )
    ) THEN
        fault := 'interlock: a transition leads from a state that is not terminal to a state';
        RAISE check_violation USING MESSAGE = fault;
    END IF;
    RETURN NULL;
EXCEPTION
    WHEN data_exception OR statement_too_complex THEN  -- no JSON, or not where it is looked for
        RAISE check_violation USING MESSAGE = fault;
END
$$;

CREATE TRIGGER declarations_inserted AFTER INSERT ON $schema.declarations
FOR EACH ROW EXECUTE FUNCTION $schema.declarations_inserted();

CREATE TRIGGER declarations_update BEFORE UPDATE ON $schema.declarations
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a declaration never changes');

CREATE TRIGGER declarations_delete BEFORE DELETE ON $schema.declarations
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a declaration is never removed');

CREATE TRIGGER declarations_truncate BEFORE TRUNCATE ON $schema.declarations
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: a declaration is never removed');

-- declared_transitions

CREATE TRIGGER declared_transitions_insert BEFORE INSERT ON $schema.declared_transitions
FOR EACH ROW WHEN (pg_trigger_depth() = 0)
EXECUTE FUNCTION $schema.refuse('interlock: transitions are declared by their declaration alone');

CREATE TRIGGER declared_transitions_update BEFORE UPDATE ON $schema.declared_transitions
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a declaration never changes');

CREATE TRIGGER declared_transitions_delete BEFORE DELETE ON $schema.declared_transitions
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a declaration never changes');

CREATE TRIGGER declared_transitions_truncate BEFORE TRUNCATE ON $schema.declared_transitions
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: a declaration never changes');

-- instances

CREATE FUNCTION $schema.instances_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    fault text;
BEGIN
    IF NEW.current_state IS DISTINCT FROM (
        SELECT initial_state FROM $schema.declarations
        WHERE tenant = NEW.tenant AND digest = NEW.declaration_digest
    ) THEN
        fault := 'interlock: an instance begins in the initial state of its declaration';
    ELSIF NEW.next_sequence_number IS DISTINCT FROM 1
        OR NEW.head_digest IS DISTINCT FROM NEW.genesis_digest
    THEN
        fault := 'interlock: an instance begins without history';
    ELSIF octet_length(NEW.genesis_digest) <> 32 THEN
        fault := 'interlock: a digest has 32 bytes';
    ELSIF NEW.root IS DISTINCT FROM split_part(NEW.id, '.', 1) THEN
        fault := 'interlock: the root of an instance is the part of its id before the dot';
    ELSIF NEW.instantiated_at NOT BETWEEN -62135596800000000 AND 253402300799999999 THEN
        fault := 'interlock: a moment lies in the years 1 to 9999';
    ELSIF (NEW.idempotency_key IS NULL) <> (NEW.request_digest IS NULL) THEN
        fault := 'interlock: an idempotency key comes with the digest of its request';
    ELSE
        RETURN NEW;
    END IF;
    RAISE check_violation USING MESSAGE = fault;
END
$$;

CREATE TRIGGER instances_insert BEFORE INSERT ON $schema.instances
FOR EACH ROW EXECUTE FUNCTION $schema.instances_insert();

CREATE FUNCTION $schema.instances_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO $schema.start_keys (tenant, idempotency_key, instance_id)
    VALUES (NEW.tenant, NEW.idempotency_key, NEW.id);
    RETURN NULL;
END
$$;

CREATE TRIGGER instances_inserted AFTER INSERT ON $schema.instances
FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
EXECUTE FUNCTION $schema.instances_inserted();

-- A condition is looked at only where a column that is its own is set: every fire would pay for more.
-- An update that changes nothing is let by, as it is in a lock.
CREATE TRIGGER instances_update BEFORE UPDATE OF
    tenant, root, id, declaration_digest, instantiated_at, actor_ref, subject_ref, metadata_id,
    metadata_digest, idempotency_key, request_digest, genesis_digest
ON $schema.instances
FOR EACH ROW WHEN (NEW.* IS DISTINCT FROM OLD.*)
EXECUTE FUNCTION $schema.refuse('interlock: how an instance began never changes');

-- Only the trigger of history moves an instance, by one.
CREATE TRIGGER instances_move BEFORE UPDATE OF
    current_state, next_sequence_number, head_digest
ON $schema.instances
FOR EACH ROW WHEN (
    pg_trigger_depth() = 0 AND NEW.* IS DISTINCT FROM OLD.*
    OR pg_trigger_depth() > 0 AND NEW.next_sequence_number IS DISTINCT FROM OLD.next_sequence_number + 1
)
EXECUTE FUNCTION $schema.refuse('interlock: only an entry of history moves an instance');

CREATE TRIGGER instances_delete BEFORE DELETE ON $schema.instances
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: an instance is never removed');

CREATE TRIGGER instances_truncate BEFORE TRUNCATE ON $schema.instances
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: an instance is never removed');

-- history

-- The instance is moved before its entry is there, so that whoever writes an entry holds its instance:
-- two who write the same ones in the order of keys never wait for each other. A statement that then
-- leaves the entry out (ON CONFLICT) could only do so for its idempotency key, which is looked for.
-- The update is what every fire pays; the rest only says which part of its condition failed. Whoever
-- moved the instance meanwhile is waited for, and then the condition is looked at again. A search_path
-- of its own would cost each call a third more: so the update names each operator by its schema, and
-- the path is set only where the function is about to raise, which undoes it.
-- The declared transition is a subquery, so that no plan begins with it.
-- Each move leaves a version of the instance's row behind until the transaction ends, and the key finds
-- them all. So where the row went is noted for the transaction, and a run of entries finds it there at
-- once. The note is only a place to look first: what is found has to fit all the same.
CREATE FUNCTION $schema.history_insert() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    fault text;
    place tid;
BEGIN
    IF pg_catalog.split_part(pg_catalog.current_setting('interlock.moved', true), ' ', 2)
        OPERATOR(pg_catalog.=) NEW.instance_id
    THEN
        UPDATE $schema.instances AS i
        SET current_state = NEW.to_state,
            next_sequence_number = NEW.sequence_number OPERATOR(pg_catalog.+) 1,
            head_digest = NEW.entry_digest
        WHERE i.ctid OPERATOR(pg_catalog.=) pg_catalog.split_part(
                pg_catalog.current_setting('interlock.moved'), ' ', 1
            )::pg_catalog.tid
            AND i.tenant OPERATOR(pg_catalog.=) NEW.tenant
            AND i.root OPERATOR(pg_catalog.=) NEW.root
            AND i.id OPERATOR(pg_catalog.=) NEW.instance_id
            AND i.next_sequence_number OPERATOR(pg_catalog.=) NEW.sequence_number
            AND i.current_state OPERATOR(pg_catalog.=) NEW.from_state
            AND NEW.fired_at OPERATOR(pg_catalog.>=) i.instantiated_at
            AND NEW.fired_at OPERATOR(pg_catalog.<=) 253402300799999999
            AND (
                SELECT CASE
                    WHEN d.guard IS NULL THEN NEW.guard_satisfied IS NULL
                    ELSE NEW.guard_satisfied OPERATOR(pg_catalog.=) 1
                END
                FROM $schema.declared_transitions AS d
                WHERE d.tenant OPERATOR(pg_catalog.=) NEW.tenant
                    AND d.digest OPERATOR(pg_catalog.=) i.declaration_digest
                    AND d.from_state OPERATOR(pg_catalog.=) NEW.from_state
                    AND d.action OPERATOR(pg_catalog.=) NEW.action
                    AND d.to_state OPERATOR(pg_catalog.=) NEW.to_state
            )
        RETURNING i.ctid INTO place;
    END IF;
    IF place IS NULL THEN
        UPDATE $schema.instances AS i
        SET current_state = NEW.to_state,
            next_sequence_number = NEW.sequence_number OPERATOR(pg_catalog.+) 1,
            head_digest = NEW.entry_digest
        WHERE i.tenant OPERATOR(pg_catalog.=) NEW.tenant
            AND i.root OPERATOR(pg_catalog.=) NEW.root
            AND i.id OPERATOR(pg_catalog.=) NEW.instance_id
            AND i.next_sequence_number OPERATOR(pg_catalog.=) NEW.sequence_number
            AND i.current_state OPERATOR(pg_catalog.=) NEW.from_state
            AND NEW.fired_at OPERATOR(pg_catalog.>=) i.instantiated_at
            AND NEW.fired_at OPERATOR(pg_catalog.<=) 253402300799999999
            AND (
                SELECT CASE
                    WHEN d.guard IS NULL THEN NEW.guard_satisfied IS NULL
                    ELSE NEW.guard_satisfied OPERATOR(pg_catalog.=) 1
                END
                FROM $schema.declared_transitions AS d
                WHERE d.tenant OPERATOR(pg_catalog.=) NEW.tenant
                    AND d.digest OPERATOR(pg_catalog.=) i.declaration_digest
                    AND d.from_state OPERATOR(pg_catalog.=) NEW.from_state
                    AND d.action OPERATOR(pg_catalog.=) NEW.action
                    AND d.to_state OPERATOR(pg_catalog.=) NEW.to_state
            )
        RETURNING i.ctid INTO place;
    END IF;
    IF place IS NOT NULL THEN
        PERFORM pg_catalog.set_config('interlock.moved', pg_catalog.concat(place, ' ', NEW.instance_id), true);
        IF NEW.idempotency_key IS NOT NULL AND EXISTS (
            SELECT 1 FROM $schema.history AS h
            WHERE h.tenant OPERATOR(pg_catalog.=) NEW.tenant
                AND h.root OPERATOR(pg_catalog.=) NEW.root
                AND h.instance_id OPERATOR(pg_catalog.=) NEW.instance_id
                AND h.idempotency_key OPERATOR(pg_catalog.=) NEW.idempotency_key
        ) THEN
            RAISE unique_violation USING
                MESSAGE = 'interlock: an idempotency key is never used again';
        END IF;
        RETURN NEW;
    END IF;

    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT CASE
        WHEN i.id IS NULL
            THEN 'interlock: an entry belongs to an instance'
        WHEN NEW.sequence_number <> i.next_sequence_number
            THEN 'interlock: an entry takes the next sequence number'
        WHEN NEW.from_state <> i.current_state
            THEN 'interlock: an entry starts from the current state'
        WHEN NEW.to_state IS DISTINCT FROM d.to_state
            THEN 'interlock: an entry is a declared transition'
        WHEN NEW.fired_at NOT BETWEEN i.instantiated_at AND 253402300799999999
            THEN 'interlock: an entry is dated after the birth, before the year 10000'
        WHEN NEW.guard_satisfied IS DISTINCT FROM CASE WHEN d.guard IS NULL THEN NULL ELSE 1 END
            THEN 'interlock: a guard is asserted where one is declared, nowhere else'
        ELSE 'interlock: an entry moves its instance'  -- another trigger stood in the way
    END
    INTO fault
    FROM (SELECT 1) AS one
    LEFT JOIN $schema.instances AS i
        ON i.tenant = NEW.tenant AND i.root = NEW.root AND i.id = NEW.instance_id
    LEFT JOIN $schema.declared_transitions AS d
        ON d.tenant = NEW.tenant AND d.digest = i.declaration_digest
            AND d.from_state = NEW.from_state AND d.action = NEW.action;
    RAISE check_violation USING MESSAGE = fault;
END
$$;

CREATE TRIGGER history_insert BEFORE INSERT ON $schema.history
FOR EACH ROW EXECUTE FUNCTION $schema.history_insert();

CREATE TRIGGER history_update BEFORE UPDATE ON $schema.history
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: history is append-only');

CREATE TRIGGER history_delete BEFORE DELETE ON $schema.history
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: history is append-only');

CREATE TRIGGER history_truncate BEFORE TRUNCATE ON $schema.history
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: history is append-only');

-- payloads

CREATE FUNCTION $schema.is_json(content bytea) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN convert_from(content, 'UTF8')::json IS NOT NULL;
EXCEPTION
    WHEN data_exception OR program_limit_exceeded THEN
        RETURN false;
END
$$;

-- What keeps a payload from being the one that the record names, if anything does.
CREATE FUNCTION $schema.payload_fault(salt bytea, content bytea, digest bytea) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE
        WHEN salt IS NULL OR content IS NULL
            THEN 'was altered: a part of it is gone'
        WHEN digest IS DISTINCT FROM sha256(
            convert_to(octet_length(salt)::text, 'UTF8') || '\x00'::bytea || salt || content
        )
            THEN 'was altered: its digest differs'
        WHEN NOT $schema.is_json(content)
            THEN 'is no JSON'
    END;
END
$$;

CREATE FUNCTION $schema.payloads_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.salt IS NULL OR NEW.content IS NULL THEN
        RAISE check_violation USING MESSAGE = 'interlock: a payload is written once';
    END IF;
    IF NOT $schema.is_json(NEW.content) THEN
        RAISE check_violation USING MESSAGE = 'interlock: a payload is JSON';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER payloads_insert BEFORE INSERT ON $schema.payloads
FOR EACH ROW EXECUTE FUNCTION $schema.payloads_insert();

CREATE TRIGGER payloads_update BEFORE UPDATE ON $schema.payloads
FOR EACH ROW WHEN (
    NEW.tenant IS DISTINCT FROM OLD.tenant
    OR NEW.root IS DISTINCT FROM OLD.root
    OR NEW.id IS DISTINCT FROM OLD.id
    OR NEW.salt IS NOT NULL
    OR NEW.content IS NOT NULL
)
EXECUTE FUNCTION $schema.refuse('interlock: a payload can only be destroyed, content and salt together');

CREATE TRIGGER payloads_delete BEFORE DELETE ON $schema.payloads
FOR EACH ROW
EXECUTE FUNCTION $schema.refuse('interlock: the row of a payload stays when its bytes are destroyed');

CREATE TRIGGER payloads_truncate BEFORE TRUNCATE ON $schema.payloads
FOR EACH STATEMENT
EXECUTE FUNCTION $schema.refuse('interlock: the row of a payload stays when its bytes are destroyed');

-- start_keys

CREATE TRIGGER start_keys_insert BEFORE INSERT ON $schema.start_keys
FOR EACH ROW WHEN (pg_trigger_depth() = 0)
EXECUTE FUNCTION $schema.refuse('interlock: an idempotency key names the instance that it began');

CREATE TRIGGER start_keys_update BEFORE UPDATE ON $schema.start_keys
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: an idempotency key keeps its first answer');

CREATE TRIGGER start_keys_delete BEFORE DELETE ON $schema.start_keys
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: an idempotency key keeps its first answer');

CREATE TRIGGER start_keys_truncate BEFORE TRUNCATE ON $schema.start_keys
FOR EACH STATEMENT
EXECUTE FUNCTION $schema.refuse('interlock: an idempotency key keeps its first answer');

-- interlock_migrations: the ledger of what was applied; `migrate` seals it against further rows.

CREATE TRIGGER interlock_migrations_update BEFORE UPDATE ON $schema.interlock_migrations
FOR EACH ROW WHEN (NEW.* IS DISTINCT FROM OLD.*)
EXECUTE FUNCTION $schema.refuse('interlock: a migration that was applied stays in the ledger');

CREATE TRIGGER interlock_migrations_delete BEFORE DELETE ON $schema.interlock_migrations
FOR EACH ROW
EXECUTE FUNCTION $schema.refuse('interlock: a migration that was applied stays in the ledger');

CREATE TRIGGER interlock_migrations_truncate BEFORE TRUNCATE ON $schema.interlock_migrations
FOR EACH STATEMENT
EXECUTE FUNCTION $schema.refuse('interlock: a migration that was applied stays in the ledger');

-- A connection reads and writes the rows of one tenant, the owner's own and its triggers' included.

ALTER TABLE $schema.declarations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.declared_transitions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.instances ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.history ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.payloads ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.start_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY own_tenant ON $schema.declarations
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.declared_transitions
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.instances
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.history
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.payloads
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.start_keys
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

-- Who may do what is granted role by role (`roles.sql`). A trigger needs nobody's leave to fire.

REVOKE ALL ON
    $schema.declarations, $schema.declared_transitions, $schema.instances, $schema.history,
    $schema.payloads, $schema.start_keys, $schema.interlock_migrations
FROM PUBLIC;

REVOKE ALL ON FUNCTION
    $schema.refuse(), $schema.declarations_inserted(), $schema.instances_insert(),
    $schema.instances_inserted(), $schema.history_insert(),
    $schema.payloads_insert(), $schema.is_json(bytea), $schema.payload_fault(bytea, bytea, bytea)
FROM PUBLIC;
