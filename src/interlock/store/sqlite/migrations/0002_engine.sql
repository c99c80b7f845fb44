-- Machines that an engine runs: their definitions, the mark of their instances, what changed of their
-- data, and their timers.
--
-- A definition is kept as the document that was compiled, under the digest of what it means. An
-- instance that an engine began names its definition in its genesis, so that nobody else moves it.
-- What an event brought and what changed are payloads, named by rows of data_changes under the
-- entry (0: the birth) that they came with; each row carries a digest that follows the one before, the
-- first that of the entry. Timers and sweeps are what the engine still has to do, not what happened.

CREATE TABLE definitions (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX definitions_by_version ON definitions (tenant, name, version)
    WHERE version <> 'dev';

CREATE INDEX definitions_by_name ON definitions (tenant, name, digest);

ALTER TABLE instances ADD COLUMN definition_digest TEXT;

CREATE INDEX instances_by_definition ON instances (tenant, definition_digest, root, id)
    WHERE definition_digest IS NOT NULL;

CREATE TABLE data_changes (
    tenant TEXT NOT NULL,
    root TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload_id TEXT NOT NULL,
    payload_digest BLOB NOT NULL,
    change_digest BLOB NOT NULL,
    PRIMARY KEY (tenant, root, instance_id, sequence_number, ordinal),
    FOREIGN KEY (tenant, root, instance_id) REFERENCES instances (tenant, root, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX data_changes_whole ON data_changes (tenant, root, instance_id, sequence_number)
    WHERE kind = 'whole';

CREATE TABLE timers (
    tenant TEXT NOT NULL,
    root TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    state TEXT NOT NULL,
    name TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    next_try_at INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    failure TEXT,
    PRIMARY KEY (tenant, root, instance_id, state, name),
    FOREIGN KEY (tenant, root, instance_id) REFERENCES instances (tenant, root, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_by_next_try ON timers (tenant, next_try_at, root, instance_id);

CREATE TABLE sweeps (
    tenant TEXT NOT NULL PRIMARY KEY,
    swept_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- definitions

CREATE TRIGGER definitions_insert BEFORE INSERT ON definitions
BEGIN
    SELECT RAISE(ABORT, 'interlock: a definition never changes')
    WHERE EXISTS (
        SELECT 1 FROM definitions WHERE tenant = NEW.tenant AND digest = NEW.digest
    );
    SELECT RAISE(ABORT, 'interlock: a used name and version never means something else')
    WHERE NEW.version <> 'dev'
        AND EXISTS (
            SELECT 1 FROM definitions
            WHERE tenant = NEW.tenant AND name = NEW.name AND version = NEW.version
        );
    SELECT RAISE(ABORT, 'interlock: a definition is JSON') WHERE NOT json_valid(NEW.text);
END;

CREATE TRIGGER definitions_update BEFORE UPDATE ON definitions
BEGIN
    SELECT RAISE(ABORT, 'interlock: a definition never changes');
END;

CREATE TRIGGER definitions_delete BEFORE DELETE ON definitions
BEGIN
    SELECT RAISE(ABORT, 'interlock: a definition is never removed');
END;

-- instances

CREATE TRIGGER instances_defined BEFORE INSERT ON instances
WHEN NEW.definition_digest IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM definitions
        WHERE tenant = NEW.tenant AND digest = NEW.definition_digest
    )
BEGIN
    SELECT RAISE(ABORT, 'interlock: the definition of an instance comes before it');
END;

CREATE TRIGGER instances_redefine BEFORE UPDATE OF definition_digest ON instances
BEGIN
    SELECT RAISE(ABORT, 'interlock: how an instance began never changes');
END;

-- data_changes

CREATE TRIGGER data_changes_insert BEFORE INSERT ON data_changes
BEGIN
    SELECT RAISE(ABORT, 'interlock: data changes with the last entry of an instance of an engine')
    WHERE NOT EXISTS (
        SELECT 1 FROM instances
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id
            AND definition_digest IS NOT NULL
            AND next_sequence_number = NEW.sequence_number + 1
    );
    SELECT RAISE(ABORT, 'interlock: changes of data are numbered from 0')
    WHERE NEW.ordinal IS NOT (
        SELECT coalesce(max(ordinal) + 1, 0) FROM data_changes
        WHERE tenant = NEW.tenant AND root = NEW.root AND instance_id = NEW.instance_id
            AND sequence_number = NEW.sequence_number
    );
    SELECT RAISE(ABORT, 'interlock: a change of data is an event, a patch or the whole')
    WHERE NEW.kind NOT IN ('event', 'patch', 'whole');
END;

CREATE TRIGGER data_changes_update BEFORE UPDATE ON data_changes
BEGIN
    SELECT RAISE(ABORT, 'interlock: changes of data are append-only');
END;

CREATE TRIGGER data_changes_delete BEFORE DELETE ON data_changes
BEGIN
    SELECT RAISE(ABORT, 'interlock: changes of data are append-only');
END;

-- timers

CREATE TRIGGER timers_insert BEFORE INSERT ON timers
WHEN NOT EXISTS (
        SELECT 1 FROM instances
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id
            AND definition_digest IS NOT NULL
    )
    OR EXISTS (
        SELECT 1 FROM timers
        WHERE tenant = NEW.tenant AND root = NEW.root AND instance_id = NEW.instance_id
            AND state = NEW.state AND name = NEW.name
    )
BEGIN
    SELECT RAISE(ABORT, 'interlock: a timer is set once, of an instance of an engine');
END;

CREATE TRIGGER timers_update BEFORE UPDATE OF
    tenant, root, instance_id, state, name, sequence_number, due_at
ON timers
BEGIN
    SELECT RAISE(ABORT, 'interlock: a timer keeps its moment');
END;
