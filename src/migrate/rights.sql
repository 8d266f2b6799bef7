/*
 * What a role needs of the extension and of this database to adopt, declare, merge, verify and take back.  What it
 * needs of the tables that are merged depends on them: snowflake_migrate.check(), called by that role, says what is
 * missing.
 *
 * For superusers: nobody else may grant SET on session_replication_role.
 */
CREATE FUNCTION snowflake_migrate.grant_to(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = role AND NOT r.rolsuper)
		AND EXISTS (SELECT FROM pg_database AS d
					WHERE d.datname = current_database() AND pg_has_role(role, d.datdba, 'MEMBER')) THEN
		RAISE WARNING USING MESSAGE = format('role %s can switch off triggers and foreign keys for everybody', role),
			DETAIL = 'It owns this database, and gets the right to set session_replication_role.',
			HINT = 'Better give the rights to another role.';
	END IF;
	EXECUTE format('GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO %s', current_database(), role);
	EXECUTE format('GRANT SET ON PARAMETER session_replication_role TO %s', role);
	EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_internal.set_aside TO %s', role);
	EXECUTE format('GRANT USAGE ON SEQUENCE snowflake_migrate_internal.run_number TO %s', role);
	EXECUTE format('GRANT INSERT (node, relation, until) ON snowflake_migrate.backfills TO %s', role);
	EXECUTE format('GRANT SELECT ON snowflake_migrate.map, snowflake_migrate.progress TO %s', role);
	EXECUTE format('GRANT SELECT, INSERT ON
			snowflake_migrate.runs, snowflake_migrate.nodes, snowflake_migrate.report, snowflake_migrate.records,
			snowflake_migrate_internal.targets, snowflake_migrate_internal.plan_tables,
			snowflake_migrate_internal.plan_columns, snowflake_migrate_internal.plan_references,
			snowflake_migrate_internal.plan_sources, snowflake_migrate_internal.plan_batches,
			snowflake_migrate_internal.plan_indexes TO %s', role);
	EXECUTE format('GRANT UPDATE ON snowflake_migrate.runs, snowflake_migrate.records,
			snowflake_migrate_internal.targets, snowflake_migrate_internal.plan_tables,
			snowflake_migrate_internal.plan_columns, snowflake_migrate_internal.plan_sources,
			snowflake_migrate_internal.plan_batches, snowflake_migrate_internal.plan_indexes TO %s', role);
	EXECUTE format('GRANT DELETE ON snowflake_migrate.report, snowflake_migrate.records,
			snowflake_migrate_internal.plan_tables, snowflake_migrate_internal.plan_columns,
			snowflake_migrate_internal.plan_references, snowflake_migrate_internal.plan_sources,
			snowflake_migrate_internal.plan_batches, snowflake_migrate_internal.plan_indexes TO %s', role);
	EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_migrate_internal.start_workers TO %s', role);
	EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON
			snowflake_migrate.declared_tables, snowflake_migrate.declared_references,
			snowflake_migrate.declared_no_references,
			snowflake_migrate.declared_created, snowflake_migrate.declared_policies TO %s', role);
END
$$;
COMMENT ON FUNCTION snowflake_migrate.grant_to(regrole)
	IS 'gives a role the rights that migrating needs, but those on the tables that are migrated';
