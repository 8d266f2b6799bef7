/*
 * The rights that a merge and its proof need, and those of a rollback, whose lack is a warning; but those to read and
 * write the tables that are merged are looked at with these tables (check_tables.sql).
 */

/*
 * Rights on the database and on what the extensions have, as far as the check does not need them itself; and to
 * delete rows.
 */
CREATE FUNCTION snowflake_migrate_internal.check_own_rights(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
BEGIN
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, NULL, format('database %I', d.datname),
			g.privilege, format('DATABASE %I', d.datname))
		FROM pg_database AS d, unnest('{CREATE,TEMPORARY}'::text[]) AS g (privilege)
		WHERE d.datname = current_database() AND NOT has_database_privilege(d.oid, g.privilege);
	can_map := NOT FOUND;
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, NULL, t.relation::text, t.privilege,
			t.relation::text)
		FROM (VALUES ('snowflake_migrate.runs'::regclass, 'UPDATE'),
					 ('snowflake_migrate.nodes', 'INSERT'),
					 ('snowflake_migrate_internal.targets', 'SELECT'),
					 ('snowflake_migrate_internal.targets', 'INSERT'),
					 ('snowflake_migrate_internal.targets', 'UPDATE'),
					 ('snowflake_migrate_internal.plan_tables', 'UPDATE'),
					 ('snowflake_migrate_internal.plan_batches', 'SELECT'),
					 ('snowflake_migrate_internal.plan_batches', 'DELETE'),
					 ('snowflake_migrate_internal.plan_indexes', 'SELECT')) AS t (relation, privilege)
		WHERE NOT has_table_privilege(t.relation, t.privilege);
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, NULL, f.oid::regproc::text, 'EXECUTE',
			'FUNCTION ' || f.oid::regprocedure)
		FROM pg_proc AS f
		WHERE f.oid = 'snowflake_internal.set_aside'::regproc AND NOT has_function_privilege(f.oid, 'EXECUTE');
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'warning', NULL, t.relation::text, NULL, 'DELETE',
			t.relation::text, 'the merge could not be taken back')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE NOT has_table_privilege(t.relation, 'DELETE');
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_own_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds missing rights on the database and the extensions';

/* The tables that are read though nothing is merged into them. */
CREATE FUNCTION snowflake_migrate_internal.read_besides(
	run_ bigint,
	OUT severity text,
	OUT relation regclass,
	OUT object text,
	OUT purpose text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH merged AS MATERIALIZED (
		SELECT t.no, t.relation FROM snowflake_migrate_internal.merged_tables(run_) AS t
	)
	SELECT 'error', CASE WHEN c.relation IS NULL THEN k.child ELSE k.parent END, f.conname::text,
		'the foreign key could not be checked'
	FROM pg_constraint AS f
		CROSS JOIN LATERAL (
			SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass,
				coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass) AS k (child, parent)
		LEFT JOIN merged AS c ON c.relation = k.child
		LEFT JOIN merged AS p ON p.relation = k.parent
	WHERE f.contype = 'f' AND f.conparentid = 0 AND (c.relation IS NULL) <> (p.relation IS NULL)
	UNION ALL
	SELECT 'error', t.relation, t.key[1]::text, 'it could not be seen which node numbers the ids have'
	FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = run_ AND t.kind = 'id' AND t.no NOT IN (SELECT m.no FROM merged AS m)
		AND snowflake_migrate_internal.may_hold_ids(t.relation, t.key[1])
	UNION ALL
	SELECT 'warning', t.relation, f.name::text, 'the merge could not be taken back'
	FROM snowflake_migrate_internal.plan_references AS f
		JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
	WHERE f.run = run_ AND f.declared
		AND f.no NOT IN (SELECT m.no FROM merged AS m) AND f.referenced IN (SELECT m.no FROM merged AS m)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.read_besides(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables that are read though they are not merged';

/* Rights to read these. */
CREATE FUNCTION snowflake_migrate_internal.check_reading_rights(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.report_missing_right(run_, b.severity, NULL, b.relation::text, b.object,
			'SELECT', b.relation::text, b.purpose)
		FROM snowflake_migrate_internal.read_besides(run_) AS b
		WHERE NOT has_table_privilege(b.relation, 'SELECT');
	PERFORM snowflake_migrate_internal.report_missing_right(run_, b.severity, NULL, b.relation::text, b.object, 'USAGE',
			format('SCHEMA %I', n.nspname), b.purpose)
		FROM snowflake_migrate_internal.read_besides(run_) AS b
			JOIN pg_class AS c ON c.oid = b.relation
			JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE NOT has_schema_privilege(n.oid, 'USAGE');
	PERFORM snowflake_migrate_internal.report_hidden_rows(run_, b.severity, NULL, b.relation::text)
		FROM snowflake_migrate_internal.read_besides(run_) AS b
		WHERE has_table_privilege(b.relation, 'SELECT') AND row_security_active(b.relation);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_reading_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which rights to read the caller lacks';

/* The expressions that are evaluated when rows are stored, as pg_depend names them. */
CREATE FUNCTION snowflake_migrate_internal.stored_expressions(
	run_ bigint,
	OUT relation regclass,
	OUT classid regclass,
	OUT objid oid) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.relation, 'pg_constraint'::regclass, c.oid
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		JOIN pg_constraint AS c ON c.conrelid = t.relation AND c.contype = 'c'
	UNION ALL
	SELECT t.relation, 'pg_class'::regclass, i.indexrelid
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		JOIN pg_index AS i ON i.indrelid = t.relation
	UNION ALL
	/* Defaults of columns that a source lacks. */
	SELECT t.relation, 'pg_attrdef'::regclass, d.oid
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		JOIN pg_attrdef AS d ON d.adrelid = t.relation
		JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
	WHERE a.attgenerated <> '' OR EXISTS (
		SELECT FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = t.no AND NOT snowflake_migrate_internal.has_columns(s.relation, ARRAY[a.attname]))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.stored_expressions(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the expressions that are evaluated when rows are stored';

/* The functions and sequences that these expressions call, and what the caller needs for it. */
CREATE FUNCTION snowflake_migrate_internal.called(
	run_ bigint,
	OUT relation regclass,
	OUT object text,
	OUT schema oid,
	OUT privilege text,
	OUT grant_on text,
	OUT can_use boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT e.relation, f.oid::regproc::text, f.pronamespace, 'EXECUTE', 'FUNCTION ' || f.oid::regprocedure,
		has_function_privilege(f.oid, 'EXECUTE')
	FROM snowflake_migrate_internal.stored_expressions(run_) AS e
		JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.refclassid = 'pg_proc'::regclass
		JOIN pg_proc AS f ON f.oid = d.refobjid
	UNION ALL
	SELECT e.relation, c.oid::regclass::text, c.relnamespace, 'USAGE', 'SEQUENCE ' || c.oid::regclass,
		has_sequence_privilege(c.oid, 'USAGE, UPDATE')
	FROM snowflake_migrate_internal.stored_expressions(run_) AS e
		JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.refclassid = 'pg_class'::regclass
		JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.called(bigint)
	IS 'for snowflake_migrate.merge()''s own use: what is called when rows are stored';

/* Rights to call these.  The maps can't be made without: they show which rows CHECKs and indexes would refuse. */
CREATE FUNCTION snowflake_migrate_internal.check_calling_rights(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
BEGIN
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, c.relation::text, c.object,
			c.privilege, c.grant_on)
		FROM snowflake_migrate_internal.called(run_) AS c
		WHERE NOT c.can_use;
	can_map := NOT FOUND;
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, c.relation::text, c.object, 'USAGE',
			format('SCHEMA %I', n.nspname))
		FROM snowflake_migrate_internal.called(run_) AS c
			JOIN pg_namespace AS n ON n.oid = c.schema
		WHERE NOT has_schema_privilege(n.oid, 'USAGE');
	RETURN can_map AND NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_calling_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which rights to call functions the caller lacks';

CREATE FUNCTION snowflake_migrate_internal.check_rights(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	own CONSTANT boolean := snowflake_migrate_internal.check_own_rights(run_);
	calling CONSTANT boolean := snowflake_migrate_internal.check_calling_rights(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_reading_rights(run_);
	RETURN own AND calling;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which rights the caller lacks';
