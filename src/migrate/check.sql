/*
 * What would stop a merge or surprise those who start it, found before it begins: from the catalogs, and from the rows where
 * the catalogs can't say.  An error is what the merge would fail or go wrong with, and snowflake_migrate.merge() refuses to go on; a
 * warning is what may surprise; the rest is good to know.
 *
 * The functions that look at one subject each return whether the keys can be mapped all the same.  They read the rows of a
 * table only where the caller can see all of them.
 */

/* Raises an error where these can't be the schemas of a merge. */
CREATE FUNCTION snowflake_migrate_internal.check_arguments(sources name[], target name) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	schema name;
BEGIN
	IF sources IS NULL OR target IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'sources and target must not be null';
	ELSIF cardinality(sources) = 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'there is no source', HINT = 'Give the schemas whose rows are to be merged into the target.';
	ELSIF array_ndims(sources) <> 1 OR array_lower(sources, 1) <> 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'sources must be an array of one dimension that begins with 1';
	ELSIF array_position(sources, NULL) IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'a source must not be null';
	END IF;
	SELECT s.name INTO schema FROM unnest(sources) AS s (name) GROUP BY s.name HAVING count(*) > 1 ORDER BY s.name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('source "%s" is given twice', schema);
	ELSIF target = ANY (sources) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('source "%s" is the target', target);
	END IF;
	SELECT s.name INTO schema FROM unnest(sources || target) WITH ORDINALITY AS s (name, n)
		WHERE NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = s.name) ORDER BY s.n LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
			MESSAGE = format('schema "%s" does not exist', schema),
			HINT = 'Sources are schemas of this database; those of another can be had by IMPORT FOREIGN SCHEMA.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_arguments(name[], name)
	IS 'for snowflake_migrate.merge()''s own use: refuses what can''t be its schemas';

/* Whether the caller sees all rows of a table. */
CREATE FUNCTION snowflake_migrate_internal.can_read(relation regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
		AND NOT (c.relkind IN ('r', 'p') AND row_security_active(c.oid))
	FROM pg_class AS c WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_read(regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether the caller sees all rows';

/* Whether the caller may read and set a sequence. */
CREATE FUNCTION snowflake_migrate_internal.can_set(sequence regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT has_sequence_privilege(sequence, 'UPDATE') AND has_sequence_privilege(sequence, 'SELECT, USAGE') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_set(regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether the caller may set a sequence';

/* An expression for what names the row s in a report: its key, or all of it. */
CREATE FUNCTION snowflake_migrate_internal.row_text(key name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(key) WHEN 0 THEN 'left(s::text, 100)' ELSE snowflake_migrate_internal.key_text('s.@', key) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.row_text(name[])
	IS 'for snowflake_migrate.merge()''s own use: an expression for a row''s key';

/* Tables that one side lacks, and those that the caller may not read or write. */
CREATE FUNCTION snowflake_migrate_internal.check_tables(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
	is_filled boolean;
BEGIN
	FOR r IN
		SELECT s.name, s.source
		FROM snowflake_migrate.runs AS u
			CROSS JOIN LATERAL (SELECT u.target, NULL::name UNION ALL SELECT g.name, g.name FROM unnest(u.sources) AS g (name)) AS s (name, source)
			JOIN pg_namespace AS n ON n.nspname = s.name
		WHERE u.run = run_ AND NOT has_schema_privilege(n.oid, 'USAGE')
	LOOP
		can_map := false;
		PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, NULL, format('schema %I', r.name),
			format('permission denied for role %I', current_user), NULL, NULL, format('GRANT USAGE ON SCHEMA %I TO %I;', r.name, current_user));
	END LOOP;

	/* What is imported from another server is a foreign table there be a view or a table; what extensions have, they have on each. */
	FOR r IN
		SELECT s.name AS source, c.oid::regclass AS relation, t.oid::regclass AS there, t.relkind, t.relispartition
		FROM snowflake_migrate.runs AS u
			CROSS JOIN unnest(u.sources) AS s (name)
			JOIN pg_namespace AS n ON n.nspname = s.name
			JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition
			JOIN pg_namespace AS m ON m.nspname = u.target
			LEFT JOIN pg_class AS t ON t.relnamespace = m.oid AND t.relname = c.relname AND t.relkind IN ('r', 'p', 'f', 'v', 'm')
		WHERE u.run = run_
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.relation = t.oid)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation IN (c.oid, t.oid) AND d.mode = 'ignore')
			AND NOT (c.relkind = 'f' AND coalesce(t.relkind IN ('v', 'm'), false))
			AND NOT EXISTS (SELECT FROM pg_depend AS e JOIN pg_class AS x ON x.oid = e.objid AND x.relname = c.relname
							WHERE e.classid = 'pg_class'::regclass AND e.deptype = 'e' AND (x.oid = c.oid OR c.relkind = 'f'))
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p
								JOIN snowflake_migrate_internal.plan_sources AS o USING (run, no)
							WHERE p.run = run_ AND t.relispartition AND p.relation = pg_partition_root(t.oid) AND u.sources[o.source] = s.name)
	LOOP
		is_filled := true;
		IF snowflake_migrate_internal.can_read(r.relation) THEN
			EXECUTE format('SELECT EXISTS (SELECT FROM %s)', snowflake_migrate_internal.only(r.relation)) INTO is_filled;
		END IF;
		PERFORM snowflake_migrate_internal.find(run_, CASE WHEN is_filled THEN 'error' ELSE 'warning' END, r.source, r.relation::text, NULL,
			CASE WHEN r.relispartition THEN format('is a partition in the target, of table %s', pg_partition_root(r.there))
				ELSE CASE r.relkind WHEN 'f' THEN 'is a foreign table in the target' WHEN 'v' THEN 'is a view in the target'
						WHEN 'm' THEN 'is a materialized view in the target' ELSE 'the target has no such table' END END
				|| CASE WHEN is_filled THEN '' ELSE '; it is empty' END,
			NULL, NULL,
			format('Create the table in the target, or leave it out: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.relation, 'ignore'));
	END LOOP;

	FOR r IN
		SELECT p.relation, g.name AS source
		FROM (SELECT p.relation, u.sources, array_agg(s.source) FILTER (WHERE s.source IS NOT NULL) AS having_it
			  FROM snowflake_migrate.runs AS u
				JOIN snowflake_migrate_internal.plan_tables AS p USING (run)
				LEFT JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			  WHERE u.run = run_ AND p.mode <> 'ignore' GROUP BY p.relation, u.sources) AS p
			CROSS JOIN LATERAL (SELECT NULL::name WHERE p.having_it IS NULL
								UNION ALL
								SELECT s.name FROM unnest(p.sources) WITH ORDINALITY AS s (name, n) WHERE s.n <> ALL (p.having_it)) AS g (name)
	LOOP
		PERFORM snowflake_migrate_internal.find(run_, 'info', r.source, r.relation::text, NULL,
			CASE WHEN r.source IS NULL THEN 'no source has such a table' ELSE 'the source has no such table' END, NULL, NULL, NULL);
	END LOOP;

	FOR r IN
		SELECT c.oid::regclass AS relation
		FROM snowflake_migrate.runs AS u
			JOIN pg_namespace AS n ON n.nspname = u.target
			JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind = 'f' AND NOT c.relispartition
		WHERE u.run = run_ AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation = c.oid AND d.mode = 'ignore')
	LOOP
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL, 'is a foreign table, which is not merged into', NULL, NULL,
			format('If that is as it should be: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.relation, 'ignore'));
	END LOOP;

	/* Only where there is something to be merged. */
	FOR r IN
		SELECT p.relation, c.relpersistence, c.relrowsecurity, row_security_active(c.oid) AS is_subject, has_table_privilege(c.oid, 'SELECT') AS can_read,
			(SELECT string_agg(g.privilege, ', ') FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) AS g (privilege)
			 WHERE NOT has_table_privilege(c.oid, g.privilege)) AS denied,
			(SELECT string_agg(i.inhrelid::regclass::text, ', ' ORDER BY i.inhrelid) FROM pg_inherits AS i
			 WHERE i.inhparent = c.oid AND c.relkind = 'r') AS children
		FROM snowflake_migrate_internal.plan_tables AS p JOIN pg_class AS c ON c.oid = p.relation
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		IF r.denied IS NOT NULL THEN
			can_map := can_map AND r.can_read;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, NULL,
				format('role %I has no right to %s', current_user, r.denied), NULL, NULL, format('GRANT %s ON %s TO %I;', r.denied, r.relation, current_user));
		END IF;
		IF r.is_subject THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSIF r.relrowsecurity THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL,
				'policies of row security do not apply to rows that are merged', NULL, NULL, 'Look whether the rows should pass the policies.');
		END IF;
		IF r.relpersistence = 'u' THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL, 'is unlogged: a crash loses its rows, merged ones too', NULL, NULL,
				format('ALTER TABLE %s SET LOGGED;', r.relation));
		END IF;
		IF r.children IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, NULL,
				format('has children, each of which is merged as a table of its own: %s', r.children), NULL, NULL, NULL);
		END IF;
	END LOOP;

	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, s.relation AS source_relation, c.relrowsecurity,
			CASE WHEN c.relkind IN ('r', 'p') THEN row_security_active(c.oid) ELSE false END AS is_subject, has_table_privilege(c.oid, 'SELECT') AS can_read
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN pg_class AS c ON c.oid = s.relation
		WHERE u.run = run_
	LOOP
		IF NOT r.can_read THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, NULL,
				format('role %I has no right to SELECT', current_user), NULL, NULL, format('GRANT SELECT ON %s TO %I;', r.source_relation, current_user));
		ELSIF r.is_subject THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSIF r.relrowsecurity THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', r.source, r.relation::text, NULL,
				'row security does not apply to the current user, who merges all rows', NULL, NULL, NULL);
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with tables';

/*
 * Rights beside those on the tables that are merged, as far as the check does not need them itself: of the merge and its proof, and of
 * a rollback, whose lack is a warning.
 */
CREATE FUNCTION snowflake_migrate_internal.check_rights(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
BEGIN
	FOR r IN
		WITH merged AS MATERIALIZED (
			SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p
			WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		),
		/* What is read though it is not merged. */
		looked_at (severity, relation, object, purpose) AS (
			SELECT 'error', CASE WHEN c.relation IS NULL THEN k.child ELSE k.parent END, f.conname, 'the foreign key could not be checked'
			FROM pg_constraint AS f
				CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass,
										coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass) AS k (child, parent)
				LEFT JOIN merged AS c ON c.relation = k.child LEFT JOIN merged AS p ON p.relation = k.parent
			WHERE f.contype = 'f' AND f.conparentid = 0 AND (c.relation IS NULL) <> (p.relation IS NULL)
			UNION ALL
			SELECT 'error', p.relation, p.key[1], 'it could not be seen which node numbers the ids have'
			FROM snowflake_migrate_internal.plan_tables AS p
			WHERE p.run = run_ AND p.kind = 'id' AND p.no NOT IN (SELECT m.no FROM merged AS m) AND snowflake_migrate_internal.may_hold_ids(p.relation, p.key[1])
			UNION ALL
			SELECT 'warning', p.relation, f.name, 'the merge could not be taken back'
			FROM snowflake_migrate_internal.plan_references AS f JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			WHERE f.run = run_ AND f.declared AND f.no NOT IN (SELECT m.no FROM merged AS m) AND f.referenced IN (SELECT m.no FROM merged AS m)
		),
		/* What expressions call when rows are stored. */
		expression (relation, classid, objid) AS (
			SELECT m.relation, 'pg_constraint'::regclass, c.oid FROM merged AS m JOIN pg_constraint AS c ON c.conrelid = m.relation AND c.contype = 'c'
			UNION ALL
			SELECT m.relation, 'pg_class'::regclass, i.indexrelid FROM merged AS m JOIN pg_index AS i ON i.indrelid = m.relation
			UNION ALL
			SELECT m.relation, 'pg_attrdef'::regclass, d.oid
			FROM merged AS m JOIN pg_attrdef AS d ON d.adrelid = m.relation JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
			WHERE a.attgenerated <> '' OR EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = m.no AND NOT EXISTS (
					SELECT FROM pg_attribute AS o WHERE o.attrelid = s.relation AND o.attname = a.attname AND o.attnum > 0 AND NOT o.attisdropped))
		)
		SELECT 'error' AS severity, NULL::regclass AS relation, format('database %I', d.datname) AS object, g.privilege,
			format('%s ON DATABASE %I', g.privilege, d.datname) AS granted, NULL AS purpose, true AS by_check
		FROM pg_database AS d, unnest('{CREATE,TEMPORARY}'::text[]) AS g (privilege)
		WHERE d.datname = current_database() AND NOT has_database_privilege(d.oid, g.privilege)
		UNION ALL
		/* The check needs the others of these itself. */
		SELECT 'error', NULL, t.relation::regclass::text, t.privilege, format('%s ON %s', t.privilege, t.relation::regclass), NULL, false
		FROM (VALUES ('snowflake_migrate.runs', 'UPDATE'), ('snowflake_migrate.nodes', 'INSERT'),
					 ('snowflake_migrate_internal.plan_tables', 'UPDATE')) AS t (relation, privilege)
		WHERE NOT has_table_privilege(t.relation, t.privilege)
		UNION ALL
		SELECT 'error', NULL, f.oid::regproc::text, 'EXECUTE', format('EXECUTE ON FUNCTION %s', f.oid::regprocedure), NULL, false
		FROM pg_proc AS f WHERE f.oid = 'snowflake_internal.set_aside'::regproc AND NOT has_function_privilege(f.oid, 'EXECUTE')
		UNION ALL
		SELECT 'warning', m.relation, NULL, 'DELETE', format('DELETE ON %s', m.relation), 'the merge could not be taken back', false
		FROM merged AS m WHERE NOT has_table_privilege(m.relation, 'DELETE')
		UNION ALL
		SELECT DISTINCT l.severity, l.relation, l.object, g.privilege, g.privilege || ' ON ' || g.what, l.purpose, false
		FROM looked_at AS l JOIN pg_class AS c ON c.oid = l.relation
			CROSS JOIN LATERAL (SELECT 'SELECT', l.relation::text WHERE NOT has_table_privilege(c.oid, 'SELECT')
								UNION ALL
								SELECT 'USAGE', format('SCHEMA %I', n.nspname) FROM pg_namespace AS n WHERE n.oid = c.relnamespace AND NOT has_schema_privilege(n.oid, 'USAGE')
							   ) AS g (privilege, what)
		UNION ALL
		SELECT DISTINCT 'error', e.relation, x.object, g.privilege, g.privilege || ' ON ' || g.what, NULL, true
		FROM expression AS e JOIN pg_depend AS u ON u.classid = e.classid AND u.objid = e.objid
			CROSS JOIN LATERAL (SELECT f.oid::regproc::text, f.pronamespace, has_function_privilege(f.oid, 'EXECUTE'), 'EXECUTE', 'FUNCTION ' || f.oid::regprocedure
								FROM pg_proc AS f WHERE u.refclassid = 'pg_proc'::regclass AND f.oid = u.refobjid
								UNION ALL
								SELECT c.oid::regclass::text, c.relnamespace, has_sequence_privilege(c.oid, 'USAGE, UPDATE'), 'USAGE', 'SEQUENCE ' || c.oid::regclass
								FROM pg_class AS c WHERE u.refclassid = 'pg_class'::regclass AND c.oid = u.refobjid AND c.relkind = 'S'
							   ) AS x (object, schema, can_use, privilege, what)
			CROSS JOIN LATERAL (SELECT x.privilege, x.what WHERE NOT x.can_use
								UNION ALL
								SELECT 'USAGE', format('SCHEMA %I', n.nspname) FROM pg_namespace AS n WHERE n.oid = x.schema AND NOT has_schema_privilege(n.oid, 'USAGE')
							   ) AS g (privilege, what)
		UNION ALL
		SELECT DISTINCT l.severity, l.relation, NULL, NULL, NULL, NULL, false
		FROM looked_at AS l JOIN pg_class AS c ON c.oid = l.relation
		WHERE has_table_privilege(c.oid, 'SELECT') AND row_security_active(c.oid)
	LOOP
		can_map := can_map AND NOT r.by_check;
		IF r.privilege IS NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, r.severity, NULL, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSE
			PERFORM snowflake_migrate_internal.find(run_, r.severity, NULL, r.relation::text, r.object,
				format('role %I has no right to %s', current_user, r.privilege) || coalesce(': ' || r.purpose, ''), NULL, NULL, format('GRANT %s TO %I;', r.granted, current_user));
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which rights the caller lacks';

/* Columns that one side lacks, and those that differ. */
CREATE FUNCTION snowflake_migrate_internal.check_columns(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	pair record;
	col record;
	rule record;
	is_filled boolean;
	can_read boolean;
	problem text;
	names text[];
	predicates text[];
	problems text[];
	otherwise text[];
	advices text[];
	block boolean[];
	counts bigint[];
	example text;
BEGIN
	FOR pair IN
		SELECT p.*, u.sources[s.source] AS source, s.relation AS source_relation, c.relkind AS source_kind,
			/* What the target lacks of any source, as a declaration replaces the former. */
			(SELECT array_agg(DISTINCT g.name ORDER BY g.name)
			 FROM (SELECT unnest(p.ignored_columns)
				   UNION ALL
				   SELECT a.attname
				   FROM snowflake_migrate_internal.plan_sources AS o JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attnum > 0 AND NOT a.attisdropped
				   WHERE o.run = run_ AND o.no = p.no
						AND NOT EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = p.relation AND t.attname = a.attname AND t.attnum > 0)
				  ) AS g (name)) AS lacking
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN pg_class AS c ON c.oid = s.relation
		WHERE u.run = run_ ORDER BY p.no, s.source
	LOOP
		names := '{}';
		predicates := '{}';
		problems := '{}';
		otherwise := '{}';
		advices := '{}';
		block := '{}';
		can_read := snowflake_migrate_internal.can_read(pair.source_relation);
		is_filled := true;
		IF can_read THEN
			EXECUTE format('SELECT EXISTS (SELECT FROM %s)', snowflake_migrate_internal.only(pair.source_relation)) INTO is_filled;
		END IF;

		FOR col IN
			SELECT attname AS name, t.attnum AS target_position, t.atttypid AS type, t.atttypmod AS typmod,
				t.attnotnull OR coalesce(y.typnotnull, false) AS is_required, t.attgenerated <> '' AS generated, t.attidentity <> '' AS is_identity,
				pg_get_expr(d.adbin, d.adrelid) AS default_value, y.typcategory AS category, coalesce(e.typtype, y.typtype) AS of, coalesce(e.oid, y.oid) AS element,
				s.attnum AS source_position, s.atttypid AS source_type, s.atttypmod AS source_typmod, s.attnotnull AS source_required,
				coalesce(f.oid, z.oid) AS source_element, coalesce(attname = ANY (pair.key), false) AS is_key
			FROM (SELECT a.* FROM pg_attribute AS a WHERE a.attrelid = pair.relation AND a.attnum > 0 AND NOT a.attisdropped) AS t
				FULL JOIN (SELECT a.* FROM pg_attribute AS a WHERE a.attrelid = pair.source_relation AND a.attnum > 0 AND NOT a.attisdropped) AS s
					USING (attname)
				LEFT JOIN pg_attrdef AS d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
				LEFT JOIN pg_type AS y ON y.oid = t.atttypid
				LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
				LEFT JOIN pg_type AS z ON z.oid = s.atttypid
				LEFT JOIN pg_type AS f ON f.oid = z.typelem AND z.typcategory = 'A'
			ORDER BY t.attnum, s.attnum
		LOOP
			IF col.target_position IS NULL THEN
				IF col.name = ANY (pair.ignored_columns) THEN
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, col.name,
						'is left out, as declared: the target has no such column', NULL, NULL, NULL);
				ELSE
					PERFORM snowflake_migrate_internal.find(run_, CASE WHEN is_filled THEN 'error' ELSE 'warning' END, pair.source, pair.relation::text, col.name,
						'the target has no such column' || CASE WHEN is_filled THEN '' ELSE '; the table is empty' END, NULL, NULL,
						format('ALTER TABLE %s ADD COLUMN %I %s; or, to leave it out: SELECT %s(%L, %L%s%s, ignored_columns => %L);', pair.relation, col.name,
							   format_type(col.source_type, col.source_typmod), 'snowflake_migrate.declare_table', pair.relation, pair.mode,
							   CASE WHEN pair.natural_key IS NOT NULL THEN format(', key => %L', pair.natural_key) END,
							   CASE WHEN pair.accept <> '{}' THEN format(', accept => %L', pair.accept) END, pair.lacking));
				END IF;
				CONTINUE;
			ELSIF col.generated THEN
				CONTINUE;
			ELSIF col.source_position IS NULL THEN
				IF col.is_key OR col.name = ANY (pair.natural_key) THEN
					can_map := false;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						format('the source has no such column, which is part of the %skey', CASE WHEN col.is_key THEN '' ELSE 'natural ' END), NULL, NULL,
						'Add the column to the source, or give a view of it that has one.');
				ELSIF col.is_required AND col.default_value IS NULL AND NOT col.is_identity AND is_filled THEN
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						'the source has no such column, which must not be null and has no default', NULL, NULL,
						format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...; or give a view of the source that has the column.', pair.relation, col.name));
				ELSE
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, col.name,
						'the source has no such column: ' || CASE WHEN col.default_value IS NOT NULL THEN 'rows take the default ' || col.default_value
							WHEN col.is_identity THEN 'rows take new values of the identity' ELSE 'rows take NULL' END, NULL, NULL, NULL);
				END IF;
				IF col.name = pair.created AND pair.kind = 'id' AND is_filled THEN
					PERFORM snowflake_migrate_internal.find(run_, 'warning', pair.source, pair.relation::text, col.name,
						'the source does not tell when rows were created: new ids are packed at the start of the merge', NULL, NULL,
						'Give a view of the source that has the column.');
				END IF;
				CONTINUE;
			END IF;

			IF (col.source_type, col.source_typmod) IS DISTINCT FROM (col.type, col.typmod) THEN
				problem := format('type %s becomes %s', format_type(col.source_type, col.source_typmod), format_type(col.type, col.typmod));
				SELECT
					CASE WHEN y.typname IN ('int2', 'int4', 'int8') AND z.typname IN ('int2', 'int4', 'int8') AND y.typlen < z.typlen
							AND NOT (col.is_key AND pair.kind = 'id')
						THEN format('s.%I NOT BETWEEN %s AND %s', col.name, -(2 ^ (8 * y.typlen - 1))::bigint, (2 ^ (8 * y.typlen - 1))::bigint - 1)
						WHEN y.typname = 'varchar' AND col.typmod <> -1 AND (z.typname <> 'varchar' OR col.source_typmod NOT BETWEEN 0 AND col.typmod)
						THEN format('length(rtrim(s.%I::text)) > %s', col.name, col.typmod - 4)
						WHEN col.of = 'e' AND l.missing IS NOT NULL
						THEN format(CASE WHEN col.category = 'A' THEN 's.%I::text[] && %L::text[]' ELSE 's.%I::text = ANY (%L::text[])' END, col.name, l.missing)
						END AS predicate,
					CASE WHEN y.typname = 'varchar' THEN format('values are longer than %s allows', format_type(col.type, col.typmod))
						WHEN col.of = 'e' THEN format('type %s of the target has no %s', col.element::regtype, (SELECT string_agg(quote_literal(m), ', ') FROM unnest(l.missing) AS m))
						ELSE format('values are too great for type %s', format_type(col.type, col.typmod)) END AS problem,
					CASE WHEN y.typname = 'varchar' OR col.of <> 'e' THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', pair.relation, col.name,
																				format_type(col.source_type, col.source_typmod))
						ELSE (SELECT string_agg(format('ALTER TYPE %s ADD VALUE %L;', col.element::regtype, m), ' ') FROM unnest(l.missing) AS m) END AS advice,
					y.typname <> 'varchar' AS blocks,
					/* What depends on more than the value, or keeps fewer digits. */
					CASE WHEN y.typname = 'timestamptz' AND z.typname IN ('timestamp', 'date') THEN 'by the time zone of the session that merges'
						WHEN y.typname IN ('float4', 'float8') AND z.typname IN ('int4', 'int8', 'numeric', 'float8') AND NOT (y.typname = 'float8' AND z.typname = 'int4')
						THEN 'digits may get lost' END AS surprise,
					col.of = 'e' AND z.typname = y.typname AS is_same_enum
				INTO rule
				FROM pg_type AS y
					JOIN pg_type AS z ON z.oid = col.source_type,
					LATERAL (SELECT array_agg(x.enumlabel::text ORDER BY x.enumsortorder) FROM pg_enum AS x
							 WHERE x.enumtypid = col.source_element
								AND NOT EXISTS (SELECT FROM pg_enum AS o WHERE o.enumtypid = col.element AND o.enumlabel = x.enumlabel)) AS l (missing)
				WHERE y.oid = col.type;
				IF snowflake_migrate_internal.cast(col.source_type, col.source_typmod, col.type, col.typmod) IS NULL THEN
					can_map := false;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						format('type %s cannot become %s without a loss', format_type(col.source_type, col.source_typmod), format_type(col.type, col.typmod)),
						NULL, NULL,
						format('ALTER TABLE %s ALTER COLUMN %I TYPE %s; or give a view of the source that converts it.', pair.relation, col.name,
							   format_type(col.source_type, col.source_typmod)));
				ELSIF rule.predicate IS NOT NULL THEN
					names := names || col.name::text;
					predicates := predicates || rule.predicate;
					problems := problems || rule.problem;
					otherwise := otherwise || (problem || '; all values fit');
					advices := advices || rule.advice;
					block := block || rule.blocks;
				/* Of ids, it goes without saying. */
				ELSIF NOT rule.is_same_enum
					AND NOT (col.is_key AND pair.kind = 'id')
					AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = pair.no AND f.name = col.name) THEN
					PERFORM snowflake_migrate_internal.find(run_, CASE WHEN rule.surprise IS NULL THEN 'info' ELSE 'warning' END, pair.source, pair.relation::text,
						col.name, problem || coalesce(': ' || rule.surprise, ''), NULL, NULL,
						CASE WHEN rule.surprise LIKE 'by the time zone%' THEN 'Set timezone to that of the source before the merge.' END);
				END IF;
			END IF;

			IF col.is_required AND NOT col.source_required THEN
				names := names || col.name::text;
				predicates := predicates || format('s.%I IS NULL', col.name);
				problems := problems || CASE WHEN col.is_key THEN 'part of the key is null' ELSE 'is null, which the target does not allow' END;
				/* Columns of a view always may be. */
				otherwise := otherwise || CASE WHEN pair.source_kind IN ('r', 'p', 'f') THEN 'may be null, unlike in the target; it is in no row' END;
				advices := advices || CASE WHEN col.is_key THEN 'Give the rows a key.'
					ELSE format('Give the rows a value, or ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL;', pair.relation, col.name) END;
				block := block || col.is_key;
			END IF;
		END LOOP;

		IF can_read AND predicates <> '{}' THEN
			EXECUTE format('SELECT ARRAY[%s] FROM %s AS s',
				(SELECT string_agg(format('count(*) FILTER (WHERE %s)', p.predicate), ', ' ORDER BY p.n) FROM unnest(predicates) WITH ORDINALITY AS p (predicate, n)),
				snowflake_migrate_internal.only(pair.source_relation)) INTO counts;
			FOR n IN 1 .. cardinality(predicates) LOOP
				IF counts[n] > 0 THEN
					can_map := can_map AND NOT block[n];
					/* A key that the source lacks can't name a row. */
					EXECUTE format('SELECT %s FROM %s AS s WHERE %s ORDER BY 1 LIMIT 1',
						snowflake_migrate_internal.row_text(CASE WHEN EXISTS (SELECT FROM unnest(pair.key) AS k (name) WHERE NOT EXISTS (
								SELECT FROM pg_attribute AS a WHERE a.attrelid = pair.source_relation AND a.attname = k.name AND a.attnum > 0 AND NOT a.attisdropped))
							OR problems[n] = 'part of the key is null' THEN '{}' ELSE pair.key END),
						snowflake_migrate_internal.only(pair.source_relation), predicates[n]) INTO example;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, names[n], problems[n], counts[n], example, advices[n]);
				ELSIF otherwise[n] IS NOT NULL THEN
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, names[n], otherwise[n], NULL, NULL, NULL);
				END IF;
			END LOOP;
		END IF;

		PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, NULL,
			'columns are in another order than in the target; they go by their names', NULL, NULL, NULL)
		FROM pg_attribute AS t
			JOIN pg_attribute AS s ON s.attrelid = pair.source_relation AND s.attname = t.attname AND s.attnum > 0 AND NOT s.attisdropped
		WHERE t.attrelid = pair.relation AND t.attnum > 0 AND NOT t.attisdropped
		HAVING array_agg(t.attname ORDER BY t.attnum) <> array_agg(t.attname ORDER BY s.attnum);
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with columns';

/*
 * What to do about a key that is to be given snowflake ids and can't be.  A key that no sequence gives may mean something, as a season's
 * number does: then it must stay what it is.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_advice(relation regclass, mode text, key name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN mode = 'copy' AND a.attidentity = '' AND NOT a.atthasdef
			THEN format(E'If an equal key is the same row in all databases: SELECT %s(%L, %L);\nIf other columns tell which rows are the same: SELECT %s(%L, %L, %L);\n'
						'Else, as its rows get other keys: ', 'snowflake_migrate.declare_table', relation, 'same_id', 'snowflake_migrate.declare_table', relation, 'match',
						coalesce((SELECT array_agg(o.attname ORDER BY o.attnum)::text
								  FROM pg_index AS i CROSS JOIN LATERAL (SELECT i.indkey[0 : i.indnkeyatts - 1]) AS k (attnums)
									JOIN pg_attribute AS o ON o.attrelid = i.indrelid AND o.attnum = ANY (k.attnums)
								  WHERE i.indrelid = relation AND i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL AND a.attnum <> ALL (k.attnums)
								  GROUP BY i.indexrelid ORDER BY i.indexrelid LIMIT 1), '{?}')) ELSE '' END
		|| format('SELECT %s(ARRAY[%L]::regclass[], ARRAY[%L]::name[]);', 'snowflake_migrate.adopt', relation, key)
	FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = key
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_advice(regclass, text, name)
	IS 'for snowflake_migrate.merge()''s own use: what to do about a key that cannot be given snowflake ids';

/* Keys that can't hold the new ids, and what refers to them; keys that a source has more than once. */
CREATE FUNCTION snowflake_migrate_internal.check_keys(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
	duplicates bigint;
	example text;
BEGIN
	FOR r IN
		SELECT p.relation, p.mode, p.kind, p.key, a.atttypid, format_type(a.atttypid, a.atttypmod) AS type,
			EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
					WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
						AND u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()) AS has_default,
			snowflake_migrate_internal.adopt_advice(p.relation, p.mode, p.key[1]) AS advice
		FROM snowflake_migrate_internal.plan_tables AS p
			LEFT JOIN pg_attribute AS a ON p.kind = 'id' AND a.attrelid = p.relation AND a.attname = p.key[1]
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		IF r.kind = 'none' THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL,
				'has no key: is copied in one transaction, and cannot be taken back', NULL, NULL,
				format('ALTER TABLE %s ADD PRIMARY KEY (...);', r.relation));
		ELSIF r.kind = 'id' AND (r.atttypid <> 'bigint'::regtype OR NOT r.has_default) THEN
			can_map := can_map AND r.atttypid = 'bigint'::regtype;
			/* Rows of shared tables may all be there, so that none is given an id. */
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.mode = 'copy' OR r.atttypid <> 'bigint'::regtype THEN 'error' ELSE 'warning' END,
				NULL, r.relation::text, r.key[1],
				CASE WHEN r.atttypid <> 'bigint'::regtype THEN format('key has the type %s, which snowflake ids do not fit into', r.type)
					ELSE 'key is not given snowflake ids by default' END,
				NULL, NULL, r.advice);
		END IF;
	END LOOP;

	FOR r IN
		SELECT t.relation, f.name, p.relation AS referenced, p.mode, p.key[1] AS key, k.atttypid AS key_type, format_type(a.atttypid, a.atttypmod) AS type,
			bool_or(f.declared) AS declared, a.atttypid IN ('smallint[]'::regtype, 'integer[]'::regtype) AS is_array
		FROM snowflake_migrate_internal.plan_references AS f
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = f.referenced
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = f.name
			JOIN pg_attribute AS k ON k.attrelid = p.relation AND k.attname = p.key[1]
		WHERE f.run = run_ AND f.path IS NULL
			AND (a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype)
				 OR EXISTS (SELECT FROM pg_type AS y WHERE y.oid = a.atttypid AND y.typbasetype IN ('smallint'::regtype, 'integer'::regtype)))
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
		GROUP BY t.relation, f.name, p.relation, p.mode, p.key, k.atttypid, a.atttypid, a.atttypmod
	LOOP
		can_map := false;
		PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, r.name,
			format('has the type %s and refers to ids of %s, which do not fit', r.type, r.referenced), NULL, NULL,
			CASE WHEN NOT r.declared AND r.key_type <> 'bigint'::regtype
				THEN snowflake_migrate_internal.adopt_advice(r.referenced, r.mode, r.key)
				ELSE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', r.relation, r.name, CASE WHEN r.is_array THEN 'bigint[]' ELSE 'bigint' END) END);
	END LOOP;

	/* Where an index of the source does not prove it: in views and foreign tables never. */
	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, s.relation AS source_relation, p.key, v.key_values
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			CROSS JOIN LATERAL (SELECT count(*) AS columns, string_agg(k.value, ', ' ORDER BY k.n) AS key_values
								FROM snowflake_migrate_internal.key_values(p.relation, s.relation, p.key) AS k) AS v
		WHERE u.run = run_ AND p.kind <> 'none' AND v.columns = cardinality(p.key) AND snowflake_migrate_internal.can_read(s.relation)
			AND NOT EXISTS (
				SELECT FROM pg_index AS i
				WHERE i.indrelid = s.relation AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indexprs IS NULL AND i.indpred IS NULL
					AND NOT EXISTS (SELECT FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
									JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE a.attname <> ALL (p.key)))
			/* What can't be converted is reported already. */
			AND NOT EXISTS (
				SELECT FROM pg_attribute AS t JOIN pg_attribute AS o ON o.attrelid = s.relation AND o.attname = t.attname AND o.attnum > 0
				WHERE t.attrelid = p.relation AND t.attname = ANY (p.key)
					AND snowflake_migrate_internal.cast(o.atttypid, o.atttypmod, t.atttypid, t.atttypmod) IS NULL)
	LOOP
		EXECUTE format('SELECT count(*), string_agg(d.key, %L ORDER BY d.n, d.key) FILTER (WHERE d.n <= 3) '
			'FROM (SELECT %s, row_number() OVER (ORDER BY %s) FROM %s AS s GROUP BY %s HAVING count(*) > 1) AS d (key, n)',
			', ', CASE cardinality(r.key) WHEN 1 THEN format('(%s)::text', r.key_values) ELSE format('ROW(%s)::text', r.key_values) END, r.key_values,
			snowflake_migrate_internal.only(r.source_relation), r.key_values) INTO duplicates, example;
		IF duplicates > 0 THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, array_to_string(r.key, ', '),
				'several rows have the same key', duplicates, example, 'Give each row a key of its own, or a view of the source with one row for each key.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with keys';

/* A name in small letters, with an underscore between its words. */
CREATE FUNCTION snowflake_migrate_internal.word(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT lower(regexp_replace(regexp_replace(name, '([a-z0-9])([A-Z])', '\1_\2', 'g'), '\W+', '_', 'g')) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.word(text)
	IS 'for snowflake_migrate.merge()''s own use: a name as it is compared with others';

/* The tables whose ids can be referred to, each by all names that a column could call it, and whether the ids may change. */
CREATE FUNCTION snowflake_migrate_internal.words(run_ bigint, OUT word text, OUT relation regclass, OUT may_change boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT DISTINCT g.word, p.relation, p.mode <> 'same_id'
	FROM snowflake_migrate_internal.plan_tables AS p
		JOIN pg_class AS c ON c.oid = p.relation
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(c.relname)) AS w (word)
		CROSS JOIN LATERAL unnest(ARRAY[w.word, regexp_replace(w.word, 's$', ''), regexp_replace(w.word, 'es$', ''),
										 regexp_replace(w.word, 'ies$', 'y')]) AS g (word)
	WHERE p.run = run_ AND cardinality(p.key) = 1 AND p.mode <> 'ignore'
		AND (p.kind = 'id' OR p.mode = 'same_id'
			 OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = p.no AND f.name = p.key[1]))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.words(bigint)
	IS 'for snowflake_migrate.merge()''s own use: what the tables of a run are called';

/* The table that a word names, or that its end names: players for player, sender_player. */
CREATE FUNCTION snowflake_migrate_internal.named(name text, words text[], relations regclass[], also_end boolean) RETURNS regclass
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT w.relation FROM unnest(words, relations) AS w (word, relation)
	WHERE w.word = name OR (also_end AND right(name, length(w.word) + 1) = '_' || w.word)
	ORDER BY length(w.word) DESC, w.relation LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.named(text, text[], regclass[], boolean)
	IS 'for snowflake_migrate.merge()''s own use: the table that a word names';

/* A path in the documents of a column that looks like one to ids, with the member's name; of the first 1000 rows of a source. */
CREATE FUNCTION snowflake_migrate_internal.document_ids(relation regclass, attname name, OUT path text, OUT name text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE format($query$
		WITH RECURSIVE document (content) AS (SELECT s.%I::jsonb FROM %s AS s WHERE s.%I IS NOT NULL LIMIT 1000),
		part (path, name, content, depth) AS (
			SELECT '$', '', d.content, 0 FROM document AS d
			UNION ALL
			SELECT p.path || n.step, n.name, n.content, p.depth + 1
			FROM part AS p,
				LATERAL (
					SELECT CASE WHEN e.key ~ '^\d+$' THEN '.*' WHEN e.key ~ '^[A-Za-z_]\w*$' THEN '.' || e.key ELSE '.' || to_json(e.key) END,
						CASE WHEN e.key ~ '^\d+$' THEN p.name ELSE e.key END, e.value
					FROM jsonb_each(CASE jsonb_typeof(p.content) WHEN 'object' THEN p.content ELSE '{}' END) AS e
					UNION ALL
					SELECT '[*]', p.name, e.value FROM jsonb_array_elements(CASE jsonb_typeof(p.content) WHEN 'array' THEN p.content ELSE '[]' END) AS e
				) AS n (step, name, content)
			WHERE p.depth < 20
		)
		SELECT f.path, f.name
		FROM (
			SELECT 1, p.path, snowflake_migrate_internal.word(p.name) FROM part AS p
			WHERE p.name ~* 'ids?$' AND snowflake_migrate_internal.word(p.name) ~ '(^|_)ids?$' AND snowflake_migrate_internal.json_id(p.content) IS NOT NULL
			UNION ALL
			SELECT 2, p.path || '.keyvalue().key', snowflake_migrate_internal.word(p.name) FROM part AS p
			WHERE jsonb_typeof(p.content) = 'object' AND EXISTS (SELECT FROM jsonb_object_keys(p.content) AS k (name) WHERE k.name ~ '^\d+$')
		) AS f (rank, path, name)
		ORDER BY f.rank, f.path COLLATE "C" LIMIT 1
		$query$, attname, snowflake_migrate_internal.only(relation), attname) INTO path, name;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_ids(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: where documents seem to hold ids';

/* Conditions that overlap or leave values out; columns that look like references; references to what is not merged. */
CREATE FUNCTION snowflake_migrate_internal.check_references(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	target name;
	r record;
	source record;
	overlapping bigint;
	left_out bigint;
	example text;
	left_example text;
	words text[];
	relations regclass[];
	unchanging regclass[];
	named regclass;
	only_called regclass;	/* named without saying that it holds ids */
	kinds text[];
	more text[];
	path record;
BEGIN
	SELECT u.target INTO STRICT target FROM snowflake_migrate.runs AS u WHERE u.run = run_;

	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, c.relname, s.relation AS source_relation, p.key, f.name, f.path,
			array_agg(DISTINCT f.condition) AS conditions, bool_or(f.condition IS NULL) AS has_other
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN snowflake_migrate_internal.plan_references AS f USING (run, no)
			JOIN pg_class AS c ON c.oid = p.relation
		WHERE u.run = run_ AND snowflake_migrate_internal.can_read(s.relation)
			AND EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = s.relation AND a.attname = f.name AND a.attnum > 0 AND NOT a.attisdropped)
		GROUP BY u.sources, s.source, p.relation, c.relname, s.relation, p.key, f.name, f.path
		HAVING count(f.condition) > 0
	LOOP
		BEGIN
			EXECUTE format('SELECT count(*) FILTER (WHERE s."snowflake conditions" > 1), min(%s) FILTER (WHERE s."snowflake conditions" > 1), '
				'count(*) FILTER (WHERE s."snowflake conditions" = 0), min(%s) FILTER (WHERE s."snowflake conditions" = 0) '
				'FROM (SELECT %I.*, %s AS "snowflake conditions" FROM %s AS %I) AS s WHERE s.%I IS NOT NULL',
				snowflake_migrate_internal.row_text(r.key), snowflake_migrate_internal.row_text(r.key), r.relname,
				(SELECT string_agg(format('((%s) IS TRUE)::int', g.condition), ' + ') FROM unnest(r.conditions) AS g (condition) WHERE g.condition IS NOT NULL),
				snowflake_migrate_internal.only(r.source_relation), r.relname, r.name)
				INTO overlapping, example, left_out, left_example;
		EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, r.name,
				'the condition of the reference cannot be evaluated: ' || SQLERRM, NULL, NULL,
				format('Declare the reference with %s() again, or give a view of the source that has what the condition needs.', 'snowflake_migrate.declare_reference'));
			CONTINUE;
		END;
		IF overlapping > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, r.name,
				'more than one condition of a reference holds', overlapping, example, 'Declare references whose conditions exclude each other.');
		END IF;
		IF left_out > 0 AND NOT r.has_other AND r.path IS NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', r.source, r.relation::text, r.name,
				'no condition of a reference holds: values are copied as they are', left_out, left_example,
				format('If they are ids too: SELECT %s(%L, %L, ''?'', %L);', 'snowflake_migrate.declare_reference', r.relation, r.name, '?'));
		END IF;
	END LOOP;

	SELECT coalesce(array_agg(w.word ORDER BY w.word, w.relation), '{}'), coalesce(array_agg(w.relation ORDER BY w.word, w.relation), '{}'),
		coalesce(array_agg(w.relation) FILTER (WHERE NOT w.may_change), '{}')
		INTO words, relations, unchanging FROM snowflake_migrate_internal.words(run_) AS w;

	FOR r IN
		WITH fk AS MATERIALIZED (SELECT f.* FROM snowflake_migrate_internal.foreign_keys(target) AS f),
		/* Whatever refers to nothing yet, of types that can. */
		candidate AS (
			SELECT p.no, p.relation, a.attname, a.attnum, snowflake_migrate_internal.word(a.attname) AS word,
				y.oid IN ('jsonb'::regtype, 'json'::regtype) AS is_document
			FROM snowflake_migrate_internal.plan_tables AS p
				JOIN pg_attribute AS a ON a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped
				JOIN pg_type AS d ON d.oid = a.atttypid
				JOIN pg_type AS y ON y.oid = coalesce(nullif(d.typbasetype, 0), d.oid)
			WHERE p.run = run_ AND a.attgenerated = ''
				AND y.oid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype, 'bigint[]'::regtype,
							  'jsonb'::regtype, 'json'::regtype)
				AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
				AND NOT (p.kind = 'id' AND p.key = ARRAY[a.attname])
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = p.no AND f.name = a.attname)
				AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS f WHERE f.relation = p.relation AND f.column_name = a.attname)
				AND NOT EXISTS (SELECT FROM fk AS f WHERE f.relation = p.relation AND f.name = a.attname)
		)
		SELECT c.*, g.stem,
			/* What says of which table the id is. */
			CASE WHEN NOT c.is_document THEN
				(SELECT a.attname FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid LEFT JOIN pg_type AS b ON b.oid = y.typbasetype
				 WHERE a.attrelid = c.relation AND a.attnum > 0 AND NOT a.attisdropped AND coalesce(b.typcategory, y.typcategory) IN ('S', 'E')
					AND replace(snowflake_migrate_internal.word(a.attname), '_', '') IN (replace(g.stem, '_', '') || 'type', replace(g.stem, '_', '') || 'kind')
				 ORDER BY a.attnum LIMIT 1) END AS kind_column
		FROM candidate AS c, LATERAL (SELECT CASE WHEN c.word ~ '.ids?$' THEN regexp_replace(c.word, '_?ids?$', '') END) AS g (stem)
		ORDER BY c.no, c.attnum
	LOOP
		IF r.is_document THEN
			SELECT NULL::text AS path, NULL::text AS name INTO path;
			FOR source IN SELECT s.relation FROM snowflake_migrate_internal.plan_sources AS s
				JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attname = r.attname AND a.atttypid IN ('jsonb'::regtype, 'json'::regtype)
				WHERE s.run = run_ AND s.no = r.no AND snowflake_migrate_internal.can_read(s.relation) ORDER BY s.source
			LOOP
				SELECT d.* INTO path FROM snowflake_migrate_internal.document_ids(source.relation, r.attname) AS d;
				EXIT WHEN path.path IS NOT NULL;
			END LOOP;
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.attname, 'may hold ids', NULL, path.path,
				format('If it does: SELECT %s(%L, %L, %L, path => %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname,
					   coalesce(snowflake_migrate_internal.named(regexp_replace(path.name, '_?ids?$', ''), words, relations, true)::text, '?'),
					   coalesce(path.path, '?')));
			CONTINUE;
		END IF;

		named := CASE r.stem WHEN 'parent' THEN r.relation
			ELSE coalesce(snowflake_migrate_internal.named(r.stem, words, relations, true),
						  CASE WHEN r.stem LIKE '%\_parent' AND r.relation = ANY (relations) THEN r.relation END) END;
		only_called := snowflake_migrate_internal.named(r.word, words, relations, false);
		IF coalesce(named, only_called) = ANY (unchanging) THEN
			CONTINUE;
		ELSIF named IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.attname,
				format('looks like a reference to %s, but has no foreign key', named), NULL, NULL,
				format('If it is one: SELECT %s(%L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, named));
		ELSIF r.kind_column IS NOT NULL THEN
			kinds := '{}';
			FOR source IN SELECT s.relation FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = r.no AND snowflake_migrate_internal.can_read(s.relation)
					AND (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = s.relation AND a.attname IN (r.attname, r.kind_column)
							AND a.attnum > 0 AND NOT a.attisdropped) = 2
				ORDER BY s.source
			LOOP
				EXECUTE format('SELECT array_agg(d.kind) FROM (SELECT DISTINCT s.%I::text FROM %s AS s WHERE s.%I IS NOT NULL AND s.%I IS NOT NULL '
					'ORDER BY 1 LIMIT 10) AS d (kind)', r.kind_column, snowflake_migrate_internal.only(source.relation), r.kind_column, r.attname) INTO more;
				kinds := kinds || more;
			END LOOP;
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.attname,
				format('looks like a reference to a table that column %I tells', r.kind_column), NULL, NULL,
				E'For each kind of ids that it holds, with the table:\n'
					|| coalesce((
						SELECT string_agg(format('SELECT %s(%L, %L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname,
							/* The last word: Player of App\Models\Player. */
							coalesce(snowflake_migrate_internal.named(snowflake_migrate_internal.word(substring(k.kind FROM '(\w+)\W*$')), words, relations, false)::text, '?'),
							format('%I = %L', r.kind_column, k.kind)), E'\n' ORDER BY k.kind COLLATE "C")
						FROM (SELECT DISTINCT g.kind FROM unnest(kinds) AS g (kind) ORDER BY 1 LIMIT 10) AS k),
					format('SELECT %s(%L, %L, ''?'', %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, format('%I = ''?''', r.kind_column))));
		ELSIF r.word ~ '_ids?$' OR only_called IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.attname, 'may hold ids', NULL, NULL,
				format('If it does: SELECT %s(%L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, coalesce(only_called::text, '?')));
		END IF;
	END LOOP;

	FOR r IN
		SELECT f.relation, f.name, f.referenced, f.referenced_name,
			EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS o WHERE o.run = run_ AND o.no = p.no AND o.name = f.name) AS is_mapped,
			c.relnamespace <> n.oid AS is_outside, q.mode = 'ignore' AS is_ignored, k.changed_by
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = f.relation
			JOIN pg_class AS c ON c.oid = f.referenced
			JOIN pg_namespace AS n ON n.nspname = target
			LEFT JOIN snowflake_migrate_internal.plan_tables AS q ON q.run = run_ AND q.relation = f.referenced
			LEFT JOIN snowflake_migrate_internal.plan_columns AS k ON k.run = run_ AND k.no = q.no AND k.name = f.referenced_name
		WHERE EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS d WHERE d.relation = f.relation AND d.column_name = f.name)
	LOOP
		IF r.is_outside THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.name,
				format('refers to %s, outside of the target: values are copied as they are, and checked', r.referenced), NULL, NULL, NULL);
		ELSIF r.is_ignored THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.name,
				CASE WHEN r.is_mapped THEN format('refers to %s, which is ignored, so that no row is found', r.referenced)
					ELSE format('refers to %s, which is ignored: values are copied as they are, and checked', r.referenced) END, NULL, NULL,
				format('If an equal key is the same row in all databases: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.referenced, 'same_id'));
		ELSIF r.changed_by IS NOT NULL AND NOT r.is_mapped THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, r.name,
				format('refers to column %I of %s, which the policy %s may change', r.referenced_name, r.referenced, r.changed_by), NULL, NULL,
				'Choose another policy, or let the column refer to the key.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with references, and what may be one';

/* What the target does by itself when rows come in. */
CREATE FUNCTION snowflake_migrate_internal.check_effects(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	has_right CONSTANT boolean := has_parameter_privilege('session_replication_role', 'SET');
	right_advice CONSTANT text := format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user);
	plan record;
	r record;
BEGIN
	IF NOT has_right THEN
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, NULL, 'session_replication_role',
			'cannot be set by the current user: triggers fire, and foreign keys are checked row by row', NULL, NULL, right_advice);
	END IF;

	FOR plan IN
		SELECT p.* FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		ORDER BY p.no
	LOOP
		IF plan.cyclic AND NOT has_right THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, NULL,
				'is in a cycle of foreign keys, and session_replication_role cannot be set by the current user', NULL, NULL, right_advice);
		END IF;

		/* Those for INSERT and UPDATE; a trigger of a partitioned table has copies on partitions. */
		FOR r IN
			SELECT g.fires, g.kind, string_agg(DISTINCT quote_ident(g.name), ', ') AS names
			FROM (
				SELECT t.tgname, 'trigger', t.tgenabled IN ('A', 'R') OR (t.tgenabled = 'O' AND NOT has_right)
				FROM pg_trigger AS t
				WHERE (t.tgrelid = plan.relation OR t.tgrelid IN (SELECT l.relid FROM pg_partition_tree(plan.relation) AS l))
					AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgtype & 20 <> 0 AND t.tgenabled <> 'D'
				UNION ALL
				SELECT w.rulename, 'rule', w.ev_enabled IN ('A', 'R') OR (w.ev_enabled = 'O' AND NOT has_right)
				FROM pg_rewrite AS w
				WHERE w.ev_class = plan.relation AND w.ev_type IN ('2', '3') AND w.ev_enabled <> 'D'
			) AS g (name, kind, fires)
			GROUP BY g.fires, g.kind
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.fires THEN 'warning' ELSE 'info' END, NULL, plan.relation::text, r.names,
				CASE r.kind WHEN 'trigger' THEN CASE WHEN r.fires THEN 'trigger fires for rows that are merged' ELSE 'trigger does not fire for rows that are merged' END
					ELSE CASE WHEN r.fires THEN 'rule applies to rows that are merged' ELSE 'rule does not apply to rows that are merged' END END,
				NULL, NULL, CASE WHEN r.fires THEN format('If it should not: ALTER TABLE %s DISABLE %s ...; else it must name objects with their schema.', plan.relation, upper(r.kind)) END);
		END LOOP;

		FOR r IN
			SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attgenerated <> '') AS generated,
				string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attidentity = 'a') AS always,
				CASE WHEN plan.mode = 'copy' AND plan.kind = 'id' AND plan.created IS NULL
						AND count(*) FILTER (WHERE a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) = 1
					THEN min(a.attname::text) FILTER (WHERE a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) END AS created
			FROM pg_attribute AS a WHERE a.attrelid = plan.relation AND a.attnum > 0 AND NOT a.attisdropped
		LOOP
			IF r.generated IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.generated,
					'generated by the target, whatever the sources have', NULL, NULL, NULL);
			END IF;
			IF r.always IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.always,
					'identity that is generated always: rows that are merged keep their values', NULL, NULL, NULL);
			END IF;
			IF r.created IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.created,
					'new ids are packed at the start of the merge, as nothing tells when rows were created', NULL, NULL,
					format('If this column does: SELECT %s(%L, %L);', 'snowflake_migrate.declare_created', plan.relation, r.created));
			END IF;
		END LOOP;

		FOR r IN
			SELECT DISTINCT a.attname, q.seqrelid::regclass AS sequence, snowflake_migrate_internal.can_set(q.seqrelid) AS can_set
			FROM pg_attribute AS a
				LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
				JOIN pg_depend AS u ON (u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass)
					OR (u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = a.attrelid
						AND u.refobjsubid = a.attnum AND u.deptype IN ('a', 'i'))
				JOIN pg_sequence AS q ON q.seqrelid = CASE u.classid WHEN 'pg_attrdef'::regclass THEN u.refobjid ELSE u.objid END
			WHERE a.attrelid = plan.relation AND a.attnum > 0 AND NOT (plan.kind = 'id' AND plan.key = ARRAY[a.attname])
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.can_set THEN 'info' ELSE 'warning' END, NULL, plan.relation::text, r.attname,
				format(CASE WHEN r.can_set THEN 'sequence %s is set past the values that are merged' ELSE 'sequence %s cannot be set past the values that are merged by the current user' END,
					   r.sequence), NULL, NULL, CASE WHEN NOT r.can_set THEN format('GRANT SELECT, UPDATE ON SEQUENCE %s TO %I;', r.sequence, current_user) END);
		END LOOP;

		FOR r IN
			SELECT DISTINCT x.conname FROM pg_constraint AS x
			WHERE x.contype = 'x' AND (x.conrelid = plan.relation OR x.conrelid IN (SELECT l.relid FROM pg_partition_tree(plan.relation) AS l))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.conname,
				'exclusion constraint: rows that clash in it stop the merge, as no policy is for these', NULL, NULL, NULL);
		END LOOP;

		FOR r IN
			SELECT p.constraint_name FROM snowflake_migrate.declared_policies AS p
			WHERE p.relation = plan.relation
				AND NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
								WHERE i.indrelid = plan.relation AND i.indisunique AND x.relname = p.constraint_name)
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, plan.relation::text, r.constraint_name,
				'a policy is declared for a constraint that does not exist', NULL, NULL,
				format('DELETE FROM %s WHERE relation = %L::regclass AND constraint_name = %L;', 'snowflake_migrate.declared_policies', plan.relation, r.constraint_name));
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_effects(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what the target does by itself';

/* All that can be found before the keys are mapped.  Returns whether they can be. */
CREATE FUNCTION snowflake_migrate_internal.check_schemas(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	rights CONSTANT boolean := snowflake_migrate_internal.check_rights(run_);
	tables CONSTANT boolean := snowflake_migrate_internal.check_tables(run_);
	columns CONSTANT boolean := snowflake_migrate_internal.check_columns(run_);
	keys CONSTANT boolean := snowflake_migrate_internal.check_keys(run_);
	reference CONSTANT boolean := snowflake_migrate_internal.check_references(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_effects(run_);
	RETURN rights AND tables AND columns AND keys AND reference;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_schemas(bigint)
	IS 'for snowflake_migrate.merge()''s own use: adds what it finds to the report of a run';

/* Nothing is left of it: the plan and the maps are made as for a merge, and rolled back. */
CREATE FUNCTION snowflake_migrate.check(
	sources name[],
	target name,
	OUT severity text,
	OUT source name,
	OUT relation text,
	OUT object text,
	OUT problem text,
	OUT count bigint,
	OUT example text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
	nodes bigint[];
	can_map boolean;
	found_ snowflake_migrate.report[];
BEGIN
	PERFORM snowflake_migrate_internal.check_arguments(sources, target);
	BEGIN
		/* From the top, as servers are numbered from the bottom: new ids must not clash by their numbers alone. */
		SELECT coalesce(array_agg(g.node), '{}') INTO nodes
			FROM (SELECT g.node
				  FROM snowflake_migrate_internal.layout() AS l,
					generate_series(l.max_node, greatest(0, l.max_node - cardinality(sources) - (SELECT count(*) FROM snowflake_migrate.nodes)), -1) AS g (node)
				  WHERE NOT EXISTS (SELECT FROM snowflake_migrate.nodes AS n WHERE n.node = g.node)
					AND g.node IS DISTINCT FROM snowflake_migrate_internal.own_node()
				  LIMIT cardinality(sources)) AS g;
		INSERT INTO snowflake_migrate.runs AS r (sources, target, nodes, state, batch_size, started_at)
			VALUES (sources, target, nodes, 'dry run', 1, clock_timestamp()) RETURNING r.run INTO run_;
		PERFORM snowflake_migrate_internal.plan(run_, sources, target);
		can_map := snowflake_migrate_internal.check_schemas(run_);
		IF cardinality(nodes) < cardinality(sources) THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, NULL, NULL, 'too few node numbers were never used to give one to each source',
				cardinality(nodes), NULL, 'Choose a layout with more node numbers.');
		END IF;
		IF can_map THEN
			PERFORM snowflake_migrate_internal.make_maps(run_);
		ELSE
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, NULL, NULL,
				'clashes of rows and references to missing rows were not looked for, as the errors stand in the way', NULL, NULL,
				'Put the errors right, and check again.');
		END IF;
		SELECT array_agg(f ORDER BY array_position('{error,warning,info}', f.severity), f.relation COLLATE "C" NULLS FIRST,
						 f.source COLLATE "C" NULLS FIRST, f.object COLLATE "C" NULLS FIRST, f.problem COLLATE "C") INTO found_
			FROM snowflake_migrate.report AS f WHERE f.run = run_;
		RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the check is rolled back';
	EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
		NULL;
	END;
	RETURN QUERY SELECT f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice
		FROM unnest(found_) WITH ORDINALITY AS f (run, severity, source, relation, object, problem, count, example, advice, n) ORDER BY f.n;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.check(name[], name)
	IS 'what would stop a merge of these schemas into the target, or surprise';
