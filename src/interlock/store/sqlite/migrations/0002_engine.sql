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

CREATE TABLE definitions (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    text_digest BLOB NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT, WITHOUT ROWID;

-- A version that is called `dev` may come to mean anything.
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

CREATE INDEX timers_by_next_try ON timers (tenant, next_try_at, root, instance_id, state, name);

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
    SELECT RAISE(ABORT, 'interlock: a definition is a JSON object')
    WHERE CASE WHEN json_valid(NEW.text) THEN json_type(NEW.text) IS NOT 'object' ELSE TRUE END;
    SELECT RAISE(ABORT, 'interlock: a definition has a name and a version')
    WHERE trim(NEW.name, char(9, 10, 11, 12, 13, 32)) = ''
        OR trim(NEW.version, char(9, 10, 11, 12, 13, 32)) = '';
    SELECT RAISE(ABORT, 'interlock: a digest has 32 bytes')
    WHERE length(NEW.digest) <> 64
        OR NEW.digest GLOB '*[^0-9a-f]*'
        OR length(NEW.text_digest) <> 32;
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

-- Only the entry that is already in history moves an instance, by one, and only the change of data
-- that came last is its head without moving it.
DROP TRIGGER instances_move;

CREATE TRIGGER instances_move BEFORE UPDATE OF
    current_state, next_sequence_number, head_digest
ON instances
WHEN CASE NEW.next_sequence_number
    WHEN OLD.next_sequence_number + 1 THEN NOT EXISTS (
        SELECT 1 FROM history
        WHERE tenant = OLD.tenant AND root = OLD.root AND instance_id = OLD.id
            AND sequence_number = OLD.next_sequence_number
            AND from_state = OLD.current_state
            AND to_state = NEW.current_state
            AND entry_digest = NEW.head_digest
    )
    WHEN OLD.next_sequence_number THEN NEW.current_state IS NOT OLD.current_state
        OR NEW.head_digest IS NOT (
            SELECT change_digest FROM data_changes
            WHERE tenant = OLD.tenant AND root = OLD.root AND instance_id = OLD.id
                AND sequence_number = OLD.next_sequence_number - 1
            ORDER BY ordinal DESC LIMIT 1
        )
    ELSE TRUE
END
BEGIN
    SELECT RAISE(ABORT, 'interlock: only an entry of history moves an instance');
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
    SELECT RAISE(ABORT, 'interlock: a change of data has a payload, which is a JSON object')
    WHERE NOT EXISTS (
        SELECT 1 FROM payloads
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.payload_id
            AND (content IS NULL OR json_type(CAST(content AS TEXT)) = 'object')
    );
    SELECT RAISE(ABORT, 'interlock: a digest has 32 bytes')
    WHERE length(NEW.payload_digest) <> 32 OR length(NEW.change_digest) <> 32;
END;

CREATE TRIGGER data_changes_inserted AFTER INSERT ON data_changes
BEGIN
    UPDATE instances SET head_digest = NEW.change_digest
    WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id;
END;

CREATE TRIGGER data_changes_update BEFORE UPDATE ON data_changes
BEGIN
    SELECT RAISE(ABORT, 'interlock: changes of data are append-only');
END;

CREATE TRIGGER data_changes_delete BEFORE DELETE ON data_changes
BEGIN
    SELECT RAISE(ABORT, 'interlock: changes of data are append-only');
END;

-- timers: set once, put off and taken away again; the moment of one never changes.

CREATE TRIGGER timers_insert BEFORE INSERT ON timers
BEGIN
    SELECT RAISE(ABORT, 'interlock: a timer is set once')
    WHERE EXISTS (
        SELECT 1 FROM timers
        WHERE tenant = NEW.tenant AND root = NEW.root AND instance_id = NEW.instance_id
            AND state = NEW.state AND name = NEW.name
    );
    SELECT RAISE(ABORT, 'interlock: a timer is set with an entry of an instance of an engine')
    WHERE NOT EXISTS (
        SELECT 1 FROM instances
        WHERE tenant = NEW.tenant AND root = NEW.root AND id = NEW.instance_id
            AND definition_digest IS NOT NULL
            AND NEW.sequence_number >= 0
            AND NEW.sequence_number < next_sequence_number
    );
    SELECT RAISE(ABORT, 'interlock: a moment lies in the years 1 to 9999')
    WHERE NEW.due_at NOT BETWEEN -62135596800000000 AND 253402300799999999
        OR NEW.next_try_at NOT BETWEEN -62135596800000000 AND 253402300799999999;
    SELECT RAISE(ABORT, 'interlock: a timer that failed says how often and why')
    WHERE NEW.failures < 0 OR (NEW.failures > 0) IS NOT (NEW.failure IS NOT NULL);
END;

CREATE TRIGGER timers_keep BEFORE UPDATE OF
    tenant, root, instance_id, state, name, sequence_number, due_at
ON timers
BEGIN
    SELECT RAISE(ABORT, 'interlock: a timer keeps its moment');
END;

CREATE TRIGGER timers_update BEFORE UPDATE OF next_try_at, failures, failure ON timers
BEGIN
    SELECT RAISE(ABORT, 'interlock: a moment lies in the years 1 to 9999')
    WHERE NEW.next_try_at NOT BETWEEN -62135596800000000 AND 253402300799999999;
    SELECT RAISE(ABORT, 'interlock: a timer that failed says how often and why')
    WHERE NEW.failures < 0 OR (NEW.failures > 0) IS NOT (NEW.failure IS NOT NULL);
END;

-- sweeps

CREATE TRIGGER sweeps_insert BEFORE INSERT ON sweeps
WHEN NEW.swept_at NOT BETWEEN -62135596800000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'interlock: a moment lies in the years 1 to 9999');
END;

CREATE TRIGGER sweeps_update BEFORE UPDATE ON sweeps
WHEN NEW.tenant IS NOT OLD.tenant
    OR NEW.swept_at NOT BETWEEN -62135596800000000 AND 253402300799999999
BEGIN
    SELECT RAISE(ABORT, 'interlock: a moment lies in the years 1 to 9999');
END;
