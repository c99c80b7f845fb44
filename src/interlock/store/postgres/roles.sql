-- Who may do what, by least privilege. The owner of the schema migrates; the program that uses the
-- store had better be another role, which can append and can neither change nor remove. `$schema`,
-- `$role`, `$eraser` and `$reader` stand for names. Whoever is granted nothing here has no access.
--
-- The policies of the tables show each session the rows of one tenant, the one named by its setting
-- `interlock.tenant`. Any client may set it: it guards against mistakes, not against a client that
-- would see another tenant's rows.

-- $role: the program. It reads, appends, and locks instances, for which PostgreSQL asks for UPDATE of
-- a column; a trigger refuses every change of it.
GRANT USAGE ON SCHEMA $schema TO $role;
GRANT SELECT ON
    $schema.declarations, $schema.declared_transitions, $schema.instances, $schema.history,
    $schema.payloads, $schema.start_keys, $schema.interlock_migrations,
    $schema.definitions, $schema.data_changes, $schema.timers, $schema.sweeps
TO $role;
GRANT INSERT ON
    $schema.declarations, $schema.instances, $schema.history, $schema.payloads,
    $schema.definitions, $schema.data_changes
TO $role;
GRANT UPDATE (id) ON $schema.instances TO $role;
GRANT INSERT, UPDATE, DELETE ON $schema.timers TO $role;
GRANT INSERT, UPDATE ON $schema.sweeps TO $role;
GRANT EXECUTE ON FUNCTION $schema.is_json(bytea), $schema.payload_fault(bytea, bytea, bytea) TO $role;

-- $eraser: what $role may, and destroy payloads: salt and content become NULL together.
GRANT UPDATE (salt, content) ON $schema.payloads TO $eraser;

-- $reader: reports and `verify`.
GRANT USAGE ON SCHEMA $schema TO $reader;
GRANT SELECT ON
    $schema.declarations, $schema.declared_transitions, $schema.instances, $schema.history,
    $schema.payloads, $schema.start_keys, $schema.interlock_migrations,
    $schema.definitions, $schema.data_changes, $schema.timers, $schema.sweeps
TO $reader;
GRANT EXECUTE ON FUNCTION $schema.is_json(bytea), $schema.payload_fault(bytea, bytea, bytea) TO $reader;
