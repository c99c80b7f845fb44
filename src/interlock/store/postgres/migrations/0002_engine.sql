-- Machines that an engine runs: their definitions, the mark of their instances, what changed of their
-- data, and their timers.
--
-- A definition is kept as the document that was compiled, under the digest of what it means. What that
-- is only an engine can tell, so its text has a digest of its own. An instance that an engine began
-- names its definition in its genesis, so that nobody else moves it.
--
-- What an event brought and what changed are payloads, named by rows of data_changes under the entry
-- (0: the birth) that they came with. They are links of the instance's one chain: the first follows
-- the entry, each the one before, and the next entry the last of them. So the head of an instance is
-- the digest of the last of both.
--
-- Timers and sweeps are what the engine still has to do, not what happened: they come and go.

CREATE TABLE $schema.definitions (
    tenant text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    text_digest bytea NOT NULL,
    CONSTRAINT definitions_pkey PRIMARY KEY (tenant, digest),
    CONSTRAINT definitions_text_digest CHECK (text_digest = sha256(convert_to(text, 'UTF8')))
);

-- A version that is called `dev` may come to mean anything.
CREATE UNIQUE INDEX definitions_by_version ON $schema.definitions USING btree (tenant, name, version) WHERE (version <> 'dev');
CREATE INDEX definitions_by_name ON $schema.definitions USING btree (tenant, name, digest);

ALTER TABLE $schema.instances ADD COLUMN definition_digest text COLLATE "C";

CREATE INDEX instances_by_definition ON $schema.instances USING btree (tenant, definition_digest, root, id) WHERE (definition_digest IS NOT NULL);

CREATE TABLE $schema.data_changes (
    tenant text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    ordinal bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    payload_id text COLLATE "C" NOT NULL,
    payload_digest bytea NOT NULL,
    change_digest bytea NOT NULL,
    CONSTRAINT data_changes_pkey PRIMARY KEY (tenant, root, instance_id, sequence_number, ordinal)
);

CREATE INDEX data_changes_whole ON $schema.data_changes USING btree (tenant, root, instance_id, sequence_number) WHERE (kind = 'whole');

CREATE TABLE $schema.timers (
    tenant text COLLATE "C" NOT NULL,
    root text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    due_at bigint NOT NULL,
    next_try_at bigint NOT NULL,
    failures bigint NOT NULL,
    failure text COLLATE "C",
    CONSTRAINT timers_pkey PRIMARY KEY (tenant, root, instance_id, state, name),
    CONSTRAINT timers_due_at CHECK (due_at >= '-62135596800000000'::bigint AND due_at <= '253402300799999999'::bigint),
    CONSTRAINT timers_next_try_at CHECK (next_try_at >= '-62135596800000000'::bigint AND next_try_at <= '253402300799999999'::bigint),
    CONSTRAINT timers_failure CHECK (failures >= 0 AND (failures > 0) = (failure IS NOT NULL))
);

CREATE INDEX timers_by_next_try ON $schema.timers USING btree (tenant, next_try_at, root, instance_id, state, name);

CREATE TABLE $schema.sweeps (
    tenant text COLLATE "C" NOT NULL,
    swept_at bigint NOT NULL,
    CONSTRAINT sweeps_pkey PRIMARY KEY (tenant),
    CONSTRAINT sweeps_swept_at CHECK (swept_at >= '-62135596800000000'::bigint AND swept_at <= '253402300799999999'::bigint)
);

-- definitions

CREATE FUNCTION $schema.is_json_object(content bytea) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce(json_typeof(convert_from(content, 'UTF8')::json) = 'object', false);
EXCEPTION
    WHEN data_exception OR program_limit_exceeded THEN
        RETURN false;
END
$$;

CREATE FUNCTION $schema.definitions_insert() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    blanks CONSTANT text := E' \t\n\x0b\x0c\r';
    fault text;
BEGIN
    IF NOT $schema.is_json_object(convert_to(NEW.text, 'UTF8')) THEN
        fault := 'interlock: a definition is a JSON object';
    ELSIF btrim(NEW.name, blanks) = '' OR btrim(NEW.version, blanks) = '' THEN
        fault := 'interlock: a definition has a name and a version';
    ELSIF NEW.digest !~ '^[0-9a-f]{64}$' THEN
        fault := 'interlock: a digest has 32 bytes';
    ELSE
        RETURN NEW;
    END IF;
    RAISE check_violation USING MESSAGE = fault;
END
$$;

CREATE TRIGGER definitions_insert BEFORE INSERT ON $schema.definitions
FOR EACH ROW EXECUTE FUNCTION $schema.definitions_insert();

CREATE TRIGGER definitions_update BEFORE UPDATE ON $schema.definitions
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a definition never changes');

CREATE TRIGGER definitions_delete BEFORE DELETE ON $schema.definitions
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a definition is never removed');

CREATE TRIGGER definitions_truncate BEFORE TRUNCATE ON $schema.definitions
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: a definition is never removed');

-- instances

CREATE FUNCTION $schema.instances_defined() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM $schema.definitions
        WHERE tenant = NEW.tenant AND digest = NEW.definition_digest
    ) THEN
        RAISE check_violation USING
            MESSAGE = 'interlock: the definition of an instance comes before it';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER instances_defined BEFORE INSERT ON $schema.instances
FOR EACH ROW WHEN (NEW.definition_digest IS NOT NULL)
EXECUTE FUNCTION $schema.instances_defined();

CREATE TRIGGER instances_redefine BEFORE UPDATE OF
    definition_digest
ON $schema.instances
FOR EACH ROW WHEN (NEW.* IS DISTINCT FROM OLD.*)
EXECUTE FUNCTION $schema.refuse('interlock: how an instance began never changes');

-- Only the trigger of history moves an instance, by one, and only that of data_changes gives it
-- another head without moving it.
DROP TRIGGER instances_move ON $schema.instances;

CREATE TRIGGER instances_move BEFORE UPDATE OF
    current_state, next_sequence_number, head_digest
ON $schema.instances
FOR EACH ROW WHEN (
    pg_trigger_depth() = 0 AND NEW.* IS DISTINCT FROM OLD.*
    OR pg_trigger_depth() > 0 AND NEW.next_sequence_number IS DISTINCT FROM OLD.next_sequence_number + 1
        AND (
            OLD.definition_digest IS NULL
            OR NEW.next_sequence_number IS DISTINCT FROM OLD.next_sequence_number
            OR NEW.current_state IS DISTINCT FROM OLD.current_state
        )
)
EXECUTE FUNCTION $schema.refuse('interlock: only an entry of history moves an instance');

-- A hook has the connection in hand, and must not commit half of what is being done: while one is
-- called, `interlock.calling` is on, and then a commit is undone.
CREATE FUNCTION $schema.instances_called() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('interlock.calling', true) = 'on' THEN
        RAISE EXCEPTION USING ERRCODE = '2D000',
            MESSAGE = 'interlock: a hook must not end the transaction that it is called in';
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER instances_called AFTER INSERT OR UPDATE ON $schema.instances
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.definition_digest IS NOT NULL)
EXECUTE FUNCTION $schema.instances_called();

-- data_changes

-- The head of the instance is written before the change is there, as it is moved by an entry: who
-- writes a change so holds its instance, and numbers are looked at while nobody else can write any.
-- Where its row went is noted for the entry that comes next; see history_insert.
CREATE FUNCTION $schema.data_changes_insert() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    fault text;
    place tid;
BEGIN
    UPDATE $schema.instances AS i
    SET head_digest = NEW.change_digest
    WHERE i.tenant = NEW.tenant AND i.root = NEW.root AND i.id = NEW.instance_id
        AND i.definition_digest IS NOT NULL
        AND i.next_sequence_number = NEW.sequence_number + 1
    RETURNING i.ctid INTO place;
    IF place IS NULL THEN
        fault := 'interlock: data changes with the last entry of an instance of an engine';
    ELSIF NEW.ordinal IS DISTINCT FROM (
        SELECT coalesce(max(ordinal) + 1, 0) FROM $schema.data_changes
        WHERE tenant = NEW.tenant AND root = NEW.root AND instance_id = NEW.instance_id
            AND sequence_number = NEW.sequence_number
    ) THEN
        fault := 'interlock: changes of data are numbered from 0';
    ELSIF NEW.kind NOT IN ('event', 'patch', 'whole') THEN
        fault := 'interlock: a change of data is an event, a patch or the whole';
    ELSIF NOT EXISTS (
        SELECT 1 FROM $schema.payloads
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.payload_id
            AND (content IS NULL OR $schema.is_json_object(content))
    ) THEN
        fault := 'interlock: a change of data has a payload, which is a JSON object';
    ELSIF octet_length(NEW.payload_digest) <> 32 OR octet_length(NEW.change_digest) <> 32 THEN
        fault := 'interlock: a digest has 32 bytes';
    ELSE
        PERFORM set_config('interlock.moved', concat(place, ' ', NEW.instance_id), true);
        RETURN NEW;
    END IF;
    RAISE check_violation USING MESSAGE = fault;
END
$$;

CREATE TRIGGER data_changes_insert BEFORE INSERT ON $schema.data_changes
FOR EACH ROW EXECUTE FUNCTION $schema.data_changes_insert();

CREATE TRIGGER data_changes_update BEFORE UPDATE ON $schema.data_changes
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: changes of data are append-only');

CREATE TRIGGER data_changes_delete BEFORE DELETE ON $schema.data_changes
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: changes of data are append-only');

CREATE TRIGGER data_changes_truncate BEFORE TRUNCATE ON $schema.data_changes
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: changes of data are append-only');

-- timers: set once, put off and taken away again; the moment of one never changes.

CREATE FUNCTION $schema.timers_insert() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM $schema.instances
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id
            AND definition_digest IS NOT NULL
            AND NEW.sequence_number >= 0
            AND NEW.sequence_number < next_sequence_number
    ) THEN
        RAISE check_violation USING
            MESSAGE = 'interlock: a timer is set with an entry of an instance of an engine';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER timers_insert BEFORE INSERT ON $schema.timers
FOR EACH ROW EXECUTE FUNCTION $schema.timers_insert();

CREATE TRIGGER timers_update BEFORE UPDATE OF
    tenant, root, instance_id, state, name, sequence_number, due_at
ON $schema.timers
FOR EACH ROW EXECUTE FUNCTION $schema.refuse('interlock: a timer keeps its moment');

CREATE TRIGGER timers_truncate BEFORE TRUNCATE ON $schema.timers
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: timers are taken away one by one');

CREATE TRIGGER sweeps_truncate BEFORE TRUNCATE ON $schema.sweeps
FOR EACH STATEMENT EXECUTE FUNCTION $schema.refuse('interlock: the rows of other tenants stay');

-- A connection reads and writes the rows of one tenant.

ALTER TABLE $schema.definitions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.data_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.timers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE $schema.sweeps ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY own_tenant ON $schema.definitions
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.data_changes
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.timers
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

CREATE POLICY own_tenant ON $schema.sweeps
USING (tenant = COALESCE(current_setting('interlock.tenant', true), ''))
WITH CHECK (tenant = COALESCE(current_setting('interlock.tenant', true), ''));

REVOKE ALL ON
    $schema.definitions, $schema.data_changes, $schema.timers, $schema.sweeps
FROM PUBLIC;

REVOKE ALL ON FUNCTION
    $schema.definitions_insert(), $schema.instances_defined(), $schema.instances_called(),
    $schema.data_changes_insert(),
    $schema.timers_insert(), $schema.is_json_object(bytea)
FROM PUBLIC;
