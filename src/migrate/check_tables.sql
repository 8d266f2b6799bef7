/*
 * Tables that one side lacks, tables that are not merged as they are, and those that the caller may not read or write.
 */

/* Schemas that the caller may not look into. */
CREATE FUNCTION snowflake_migrate_internal.check_usage(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', s.source, NULL, format('schema %I', s.name),
			format('permission denied for role %I', current_user),
			advice => format('GRANT USAGE ON SCHEMA %I TO %I;', s.name, current_user))
		FROM snowflake_migrate.runs AS r
			CROSS JOIN LATERAL (
				SELECT t.name, NULL::name FROM unnest(r.targets) AS t (name)
				UNION ALL
				SELECT r.schemas[g.n][t.n], r.sources[g.n]
				FROM generate_subscripts(r.schemas, 1) AS g (n)
					CROSS JOIN generate_subscripts(r.schemas, 2) AS t (n)) AS s (name, source)
			JOIN pg_namespace AS n ON n.nspname = s.name
		WHERE r.run = run_ AND NOT has_schema_privilege(n.oid, 'USAGE');
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_usage(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which schemas the caller may not look into';

/* The tables of sources that are merged into no table, and what the target has by the name. */
CREATE FUNCTION snowflake_migrate_internal.not_merged(
	run_ bigint,
	OUT source name,
	OUT relation regclass,
	OUT problem text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.source, c.oid::regclass,
		CASE WHEN t.relispartition THEN format('is a partition in the target, of table %s', pg_partition_root(t.oid))
			WHEN t.relkind = 'f' THEN 'is a foreign table in the target'
			WHEN t.relkind = 'v' THEN 'is a view in the target'
			WHEN t.relkind = 'm' THEN 'is a materialized view in the target'
			ELSE 'the target has no such table' END
	FROM snowflake_migrate_internal.source_schemas(run_) AS s
		JOIN pg_class AS c ON c.relnamespace = s.schema AND c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition
		LEFT JOIN pg_class AS t
			ON t.relnamespace = s.target AND t.relname = c.relname AND t.relkind IN ('r', 'p', 'f', 'v', 'm')
	WHERE NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.relation = t.oid)
		AND NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation IN (c.oid, t.oid) AND d.mode = 'ignore')
		/* IMPORT FOREIGN SCHEMA makes foreign tables of views, too. */
		AND NOT (c.relkind = 'f' AND coalesce(t.relkind IN ('v', 'm'), false))
		/* What extensions have, they have on each server. */
		AND NOT EXISTS (
			SELECT FROM pg_depend AS e JOIN pg_class AS x ON x.oid = e.objid AND x.relname = c.relname
			WHERE e.classid = 'pg_class'::regclass AND e.deptype = 'e' AND (x.oid = c.oid OR c.relkind = 'f'))
		/* A partition comes with its table, where the source has that. */
		AND NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.source_tables(run_) AS o
			WHERE t.relispartition AND o.relation = pg_partition_root(t.oid) AND o.source = s.source)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_merged(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of sources that are merged into no table';

CREATE FUNCTION snowflake_migrate_internal.check_not_merged(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	missing record;
	is_filled boolean;
BEGIN
	FOR missing IN SELECT m.* FROM snowflake_migrate_internal.not_merged(run_) AS m LOOP
		is_filled := snowflake_migrate_internal.may_have_rows(missing.relation);
		PERFORM snowflake_migrate_internal.add_to_report(run_, CASE WHEN is_filled THEN 'error' ELSE 'warning' END,
			missing.source, missing.relation::text, NULL,
			missing.problem || CASE WHEN is_filled THEN '' ELSE '; it is empty' END,
			advice => 'Create the table in the target, or leave it out: '
				|| snowflake_migrate_internal.table_declaration(missing.relation, 'ignore'));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_not_merged(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which tables of sources are merged into no table';

/* Tables of the target that nothing is merged into. */
CREATE FUNCTION snowflake_migrate_internal.check_not_merged_into(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text, NULL,
			'no source has such a table')
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.mode <> 'ignore'
			AND t.no NOT IN (SELECT m.no FROM snowflake_migrate_internal.merged_tables(run_) AS m);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', s.name, NULL, NULL,
			'the source has none of the target''s tables',
			advice => 'Name the schema that has them. If they are on another server: IMPORT FOREIGN SCHEMA.')
		FROM snowflake_migrate.runs AS r
			CROSS JOIN unnest(r.sources) WITH ORDINALITY AS s (name, n)
		WHERE r.run = run_
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p
						WHERE p.run = run_ AND p.mode <> 'ignore')
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS p
							WHERE p.run = run_ AND p.source = s.n)
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.merged_before(r.schemas, r.targets) AS b
							WHERE b.source_no = s.n);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', s.name, t.relation::text, NULL,
			'the source has no such table')
		FROM snowflake_migrate.runs AS r
			CROSS JOIN unnest(r.sources) AS s (name)
			CROSS JOIN snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE r.run = run_
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate_internal.source_tables(run_) AS o
				WHERE o.no = t.no AND o.source = s.name);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, c.oid::regclass::text, NULL,
			'is a foreign table, which is not merged into',
			advice => 'If that is as it should be: '
				|| snowflake_migrate_internal.table_declaration(c.oid::regclass, 'ignore'))
		FROM snowflake_migrate.runs AS r
			JOIN pg_namespace AS n ON n.nspname = ANY (r.targets)
			JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind = 'f' AND NOT c.relispartition
		WHERE r.run = run_
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation = c.oid AND d.mode = 'ignore');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_not_merged_into(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which tables of the target nothing is merged into';

/* Rights on the tables of the target, and row security. */
CREATE FUNCTION snowflake_migrate_internal.check_target_access(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', NULL, t.relation::text, NULL, d.privileges,
			t.relation::text)
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL (
				SELECT string_agg(g.privilege, ', ') AS privileges
				FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) AS g (privilege)
				WHERE NOT has_table_privilege(t.relation, g.privilege)) AS d
		WHERE d.privileges IS NOT NULL;
	PERFORM snowflake_migrate_internal.report_hidden_rows(run_, 'error', NULL, t.relation::text)
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE row_security_active(t.relation);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, NULL,
			'policies of row security do not apply to rows that are merged',
			advice => 'Check whether the rows should pass the policies.')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_class AS c ON c.oid = t.relation
		WHERE c.relrowsecurity AND NOT row_security_active(t.relation);
	RETURN NOT EXISTS (
		SELECT FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE NOT has_table_privilege(t.relation, 'SELECT') OR row_security_active(t.relation));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_target_access(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which tables of the target the caller may not read or write';

/* A table that rows are copied into, and that a source's view reads, itself or through others; or null. */
CREATE FUNCTION snowflake_migrate_internal.table_behind(run_ bigint, view regclass) RETURNS regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE behind (oid) AS (
		SELECT view::oid
		UNION
		SELECT d.refobjid
		FROM behind AS b
			JOIN pg_class AS c ON c.oid = b.oid AND c.relkind = 'v'
			JOIN pg_rewrite AS w ON w.ev_class = c.oid AND w.ev_type = '1'
			JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
				AND d.refclassid = 'pg_class'::regclass
	)
	SELECT min(t.relation::oid)::regclass
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.merged_tables(run_) AS m ON m.no = t.no
		CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS p (oid)
		JOIN behind AS b ON b.oid = p.oid
	WHERE t.run = run_ AND t.mode = 'copy'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_behind(bigint, regclass)
	IS 'for snowflake_migrate.merge()''s own use: a table of the target behind a view of a source';

/* Rights on the tables of the sources, and row security. */
CREATE FUNCTION snowflake_migrate_internal.check_source_access(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean := true;
	r record;
	cause text;
	changed regclass;
BEGIN
	FOR r IN
		SELECT s.source, s.relation::text, s.source_relation::text, c.relrowsecurity, c.relkind,
			row_security_active(c.oid) AS is_subject, has_table_privilege(c.oid, 'SELECT') AS can_read
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN pg_class AS c ON c.oid = s.source_relation
	LOOP
		IF NOT r.can_read THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.report_missing_right(run_, 'error', r.source, r.relation, NULL, 'SELECT',
				r.source_relation);
		ELSIF r.is_subject THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.report_hidden_rows(run_, 'error', r.source, r.relation);
		ELSIF r.relrowsecurity THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', r.source, r.relation, NULL,
				'row security does not apply to the current user, who merges all rows');
		ELSIF r.relkind IN ('v', 'm') THEN
			cause := snowflake_migrate_internal.unreadable(r.source_relation::regclass);
			IF cause IS NOT NULL THEN
				can_map := false;
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', r.source, r.relation, NULL,
					format('view %s cannot be read: %s', r.source_relation, cause),
					advice => CASE WHEN r.relkind = 'm' THEN format('REFRESH MATERIALIZED VIEW %s;', r.source_relation)
						ELSE 'Let a role that may read all rows behind the view own it: the owner of the tables, or one'
							' with BYPASSRLS.' END);
			END IF;
			changed := CASE r.relkind
				WHEN 'v' THEN snowflake_migrate_internal.table_behind(run_, r.source_relation::regclass) END;
			IF changed IS NOT NULL THEN
				can_map := false;
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', r.source, r.relation, NULL,
					format('view %s reads table %s, which the merge changes', r.source_relation, changed),
					advice => 'Let the view read the source alone, or put its rows into a table first.');
			END IF;
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_source_access(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which tables of sources the caller may not read';

/* Tables of the target that are not as most are. */
CREATE FUNCTION snowflake_migrate_internal.check_kinds(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, NULL,
			'is unlogged: a crash loses its rows, merged ones too',
			advice => format('ALTER TABLE %s SET LOGGED;', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_class AS c ON c.oid = t.relation
		WHERE c.relpersistence = 'u';
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text, NULL,
			format('has children, each of which is merged as a table of its own: %s',
				   string_agg(i.inhrelid::regclass::text, ', ' ORDER BY i.inhrelid)))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_class AS c ON c.oid = t.relation AND c.relkind = 'r'
			JOIN pg_inherits AS i ON i.inhparent = c.oid
		GROUP BY t.relation;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_kinds(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds tables that are not as most are';

/*
 * The tables of a server that have children (parents), and those that have row security (secured), as far as it can be
 * asked: null where it is none of PostgreSQL, or the caller may not make foreign tables of it, nor read them.
 */
CREATE FUNCTION snowflake_migrate_internal.remote_tables(server_ oid, OUT parents text[], OUT secured text[])
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	server CONSTANT name := (
		SELECT s.srvname
		FROM pg_foreign_server AS s
			JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
			JOIN pg_proc AS p ON p.oid = w.fdwhandler AND p.proname = 'postgres_fdw_handler'
		WHERE s.oid = server_);
	with_children text[];
	with_security text[];
BEGIN
	IF server IS NULL THEN
		RETURN;
	END IF;
	BEGIN
		EXECUTE snowflake_migrate_internal.fill($query$
			CREATE FOREIGN TABLE pg_temp.snowflake_pg_inherits (inhparent oid)
				SERVER {"server"} OPTIONS (schema_name 'pg_catalog', table_name 'pg_inherits');
			CREATE FOREIGN TABLE pg_temp.snowflake_pg_class (
				oid oid, relname name, relnamespace oid, relkind "char", relrowsecurity boolean)
				SERVER {"server"} OPTIONS (schema_name 'pg_catalog', table_name 'pg_class');
			CREATE FOREIGN TABLE pg_temp.snowflake_pg_namespace (oid oid, nspname name)
				SERVER {"server"} OPTIONS (schema_name 'pg_catalog', table_name 'pg_namespace')
		$query$, jsonb_build_object('server', server));
		EXECUTE $query$
			SELECT
				ARRAY(
					SELECT DISTINCT format('%I.%I', n.nspname, c.relname)
					FROM pg_temp.snowflake_pg_inherits AS i
						JOIN pg_temp.snowflake_pg_class AS c ON c.oid = i.inhparent
						JOIN pg_temp.snowflake_pg_namespace AS n ON n.oid = c.relnamespace
					WHERE c.relkind = 'r'),
				ARRAY(
					SELECT format('%I.%I', n.nspname, c.relname)
					FROM pg_temp.snowflake_pg_class AS c
						JOIN pg_temp.snowflake_pg_namespace AS n ON n.oid = c.relnamespace
					WHERE c.relrowsecurity)
		$query$ INTO with_children, with_security;
	/* Who reads its tables may be another, whose views they are in: then who merges may have no user mapping. */
	EXCEPTION WHEN others THEN
		RETURN;
	END;
	parents := with_children;
	secured := with_security;
	DROP FOREIGN TABLE pg_temp.snowflake_pg_inherits, pg_temp.snowflake_pg_class, pg_temp.snowflake_pg_namespace;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.remote_tables(oid)
	IS 'for snowflake_migrate.merge()''s own use: the tables of a server of which more, or less, could come';

/*
 * Foreign tables whose rows are not theirs alone, or may not be all: what a foreign data wrapper reads from the other
 * server has no ONLY, so that the rows of the table's children come with its own, and row security there leaves rows
 * out without a word.  Where the server can't be asked, the target tells whether a table has children, and a view with
 * ONLY is taken for what is called otherwise there.  Returns whether there are no parents.
 */
CREATE FUNCTION snowflake_migrate_internal.check_foreign_tables(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	far record;
	are_none boolean := true;
BEGIN
	FOR far IN
		WITH foreign_table AS MATERIALIZED (
			SELECT s.source, s.relation, t.relation AS foreign_relation, f.ftserver, c.relname,
				o.table_name AS table_option, coalesce(o.schema_name, n.nspname) AS remote_schema,
				coalesce(o.table_name, c.relname) AS remote_name
			FROM snowflake_migrate_internal.source_tables(run_) AS s
				CROSS JOIN LATERAL snowflake_migrate_internal.foreign_tables(s.source_relation) AS t (relation)
				JOIN pg_foreign_table AS f ON f.ftrelid = t.relation
				JOIN pg_class AS c ON c.oid = t.relation
				JOIN pg_namespace AS n ON n.oid = c.relnamespace
				CROSS JOIN LATERAL (
					SELECT max(o.option_value) FILTER (WHERE o.option_name = 'schema_name'),
						max(o.option_value) FILTER (WHERE o.option_name = 'table_name')
					FROM pg_options_to_table(f.ftoptions) AS o
				) AS o (schema_name, table_name)
		),
		server AS MATERIALIZED (
			SELECT d.ftserver, o.srvname, r.parents, r.secured,
				(SELECT p.option_value
				 FROM pg_options_to_table(o.srvoptions) AS p WHERE p.option_name = 'options') AS options
			FROM (SELECT DISTINCT t.ftserver FROM foreign_table AS t) AS d
				JOIN pg_foreign_server AS o ON o.oid = d.ftserver
				CROSS JOIN LATERAL snowflake_migrate_internal.remote_tables(d.ftserver) AS r
		)
		SELECT t.*, k.*, s.srvname, s.options
		FROM foreign_table AS t
			JOIN server AS s USING (ftserver)
			CROSS JOIN LATERAL (SELECT format('%I.%I', t.remote_schema, t.remote_name)) AS n (name)
			CROSS JOIN LATERAL (
				SELECT CASE WHEN s.parents IS NOT NULL THEN n.name = ANY (s.parents)
						ELSE t.remote_name = t.relname AND EXISTS (
							SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhparent AND c.relkind = 'r'
							WHERE i.inhparent = t.relation) END,
					n.name = ANY (s.secured) AND coalesce(s.options, '') !~ 'row_security *= *(off|false|0|no)'
			) AS k (is_parent, is_secured)
		WHERE k.is_parent OR k.is_secured
	LOOP
		IF far.is_secured THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', far.source, far.relation::text, NULL,
				format('foreign table %s is of a table with row security: rows that the role there may not see would '
						   'be missing, without a word', far.foreign_relation),
				advice => format('Let it be an error there: ALTER SERVER %I OPTIONS (%s options %L);', far.srvname,
								 CASE WHEN far.options IS NULL THEN 'ADD' ELSE 'SET' END,
								 concat_ws(' ', far.options, '-c row_security=off')));
		END IF;
		CONTINUE WHEN NOT far.is_parent;
		are_none := false;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', far.source, far.relation::text, NULL,
			format('foreign table %s is of a table that has children: their rows come with its own',
				   far.foreign_relation),
			advice => format(E'On the source''s server: CREATE VIEW %I.%I AS SELECT * FROM ONLY %I.%I;\n'
								 'Here: ALTER FOREIGN TABLE %s OPTIONS (%s table_name %L);',
							 far.remote_schema, far.remote_name || '_only',
							 far.remote_schema, far.remote_name, far.foreign_relation,
							 CASE WHEN far.table_option IS NULL THEN 'ADD' ELSE 'SET' END,
							 far.remote_name || '_only'));
	END LOOP;
	RETURN are_none;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_foreign_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds foreign tables of which more, or less, could come';

/*
 * Declarations about tables of sources, where the target's are meant: they say nothing.  A warning, as that source may
 * be the target of another merge.
 */
CREATE FUNCTION snowflake_migrate_internal.check_declared(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, o.oid::text, NULL,
			format('what is declared about table %s of a source does not count', d.relation),
			advice => format('If this merge is meant, declare it about %s.', o.oid))
		FROM (SELECT relation FROM snowflake_migrate.declared_tables
			  UNION SELECT relation FROM snowflake_migrate.declared_references
			  UNION SELECT relation FROM snowflake_migrate.declared_no_references
			  UNION SELECT relation FROM snowflake_migrate.declared_created
			  UNION SELECT relation FROM snowflake_migrate.declared_policies) AS d
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.target_of(run_, d.relation) AS oid) AS o
		WHERE o.oid IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_declared(bigint)
	IS 'for snowflake_migrate.merge()''s own use: declarations about tables of sources';

CREATE FUNCTION snowflake_migrate_internal.check_tables(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	schemas CONSTANT boolean := snowflake_migrate_internal.check_usage(run_);
	targets CONSTANT boolean := snowflake_migrate_internal.check_target_access(run_);
	sources CONSTANT boolean := snowflake_migrate_internal.check_source_access(run_);
	parents CONSTANT boolean := snowflake_migrate_internal.check_foreign_tables(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_not_merged(run_);
	PERFORM snowflake_migrate_internal.check_not_merged_into(run_);
	PERFORM snowflake_migrate_internal.check_kinds(run_);
	PERFORM snowflake_migrate_internal.check_declared(run_);
	RETURN schemas AND targets AND sources AND parents;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with tables';
