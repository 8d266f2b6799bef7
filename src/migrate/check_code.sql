/*
 * Code of other roles that a merge would run with the rights of who merges: functions that the owners of tables, types
 * and views have put there.  A superuser's merge is refused before a row is read; of others, the check says so.
 */

/*
 * The relations that a run reads, and those that it writes to.  Those of the sources that nothing is merged from are
 * read by the check alone.
 */
CREATE FUNCTION snowflake_migrate_internal.run_relations(
	run_ bigint,
	OUT read oid[],
	OUT written oid[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH w AS MATERIALIZED (
		SELECT t.relation::oid AS oid FROM snowflake_migrate_internal.merged_tables(run_) AS t
		UNION
		SELECT c.oid
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'snowflake_merge_' || run_ AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	)
	SELECT
		ARRAY(
			SELECT t.relation::oid FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_
			UNION
			SELECT s.relation::oid FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_
			UNION
			SELECT f.source_relation::oid FROM snowflake_migrate_internal.former_tables(run_) AS f
			WHERE f.source_relation IS NOT NULL
			UNION
			/* Foreign keys are checked at both ends, also those of one partition, or to one. */
			SELECT k.oid
			FROM pg_constraint AS f, unnest(ARRAY[f.conrelid, f.confrelid]) AS k (oid)
			WHERE f.contype = 'f'
				AND (coalesce(pg_partition_root(f.conrelid), f.conrelid) IN (SELECT w.oid FROM w)
					 OR coalesce(pg_partition_root(f.confrelid), f.confrelid) IN (SELECT w.oid FROM w))
			EXCEPT
			SELECT w.oid FROM w
			ORDER BY 1),
		ARRAY(SELECT w.oid FROM w ORDER BY 1)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_relations(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the relations that a run reads and writes to';

/*
 * The columns whose values a run casts, by their types' owners' casts: those that are merged, keys, what refers to
 * others (cast_columns); and those that no default is taken for, as the rows are stored with them and all sources have
 * them (given_columns).  A column that was added since the run was planned is not among them.
 */
CREATE FUNCTION snowflake_migrate_internal.run_columns(
	run_ bigint,
	OUT cast_columns snowflake_internal.table_column[],
	OUT given_columns snowflake_internal.table_column[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH merged AS MATERIALIZED (
		SELECT t.no, t.relation::oid AS oid FROM snowflake_migrate_internal.merged_tables(run_) AS t
	),
	stored AS MATERIALIZED (
		SELECT m.no, m.oid, a.attname AS name
		FROM merged AS m JOIN pg_attribute AS a ON a.attrelid = m.oid AND a.attnum > 0 AND NOT a.attisdropped
	),
	lacking AS MATERIALIZED (
		SELECT s.no, s.source, c.name
		FROM snowflake_migrate_internal.plan_sources AS s JOIN stored AS c ON c.no = s.no
		WHERE s.run = run_
		EXCEPT
		SELECT s.no, s.source, c.attname
		FROM snowflake_migrate_internal.plan_sources AS s
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(s.relation) AS c
		WHERE s.run = run_
	)
	SELECT
		ARRAY(
			SELECT (c.oid, c.name)::snowflake_internal.table_column FROM stored AS c
			UNION
			SELECT (s.relation::oid, c.name)::snowflake_internal.table_column
			FROM snowflake_migrate_internal.plan_sources AS s JOIN stored AS c ON c.no = s.no
			WHERE s.run = run_
			UNION
			SELECT (t.relation::oid, k.name)::snowflake_internal.table_column
			FROM snowflake_migrate_internal.plan_tables AS t, unnest(t.key) AS k (name)
			WHERE t.run = run_
			UNION
			SELECT (f.source_relation::oid, k.name)::snowflake_internal.table_column
			FROM snowflake_migrate_internal.former_tables(run_) AS f
				CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, f.no) AS t
				CROSS JOIN LATERAL unnest(t.key) AS k (name)
			WHERE f.source_relation IS NOT NULL
				AND snowflake_migrate_internal.has_columns(f.source_relation, ARRAY[k.name])
			UNION
			SELECT (t.relation::oid, r.name)::snowflake_internal.table_column
			FROM snowflake_migrate_internal.plan_references AS r
				CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, r.no) AS t
			WHERE r.run = run_
			UNION
			SELECT (a.attrelid, a.attname)::snowflake_internal.table_column
			FROM pg_constraint AS f
				CROSS JOIN LATERAL (VALUES (f.conrelid, f.conkey), (f.confrelid, f.confkey)) AS k (relation, columns)
				JOIN pg_attribute AS a ON a.attrelid = k.relation AND a.attnum = ANY (k.columns)
			WHERE f.contype = 'f'
				AND (coalesce(pg_partition_root(f.conrelid), f.conrelid) IN (SELECT m.oid FROM merged AS m)
					 OR coalesce(pg_partition_root(f.confrelid), f.confrelid) IN (SELECT m.oid FROM merged AS m))
			ORDER BY 1),
		ARRAY(
			SELECT (c.oid, c.name)::snowflake_internal.table_column
			FROM stored AS c
				JOIN snowflake_migrate_internal.plan_columns AS p ON p.run = run_ AND p.no = c.no AND p.name = c.name
			WHERE NOT p.generated AND (c.no, c.name) NOT IN (SELECT l.no, l.name FROM lacking AS l)
			ORDER BY 1)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the columns whose values a run casts, and those that it is given';

/*
 * Expressions that a run reads anew, as text, of tables, their partitions and the domains of their columns.
 * given_columns: as run_columns() has them.  is_kept: while the table is locked, none is dropped, so that nobody can
 * drop what it depends on with it.
 */
CREATE FUNCTION snowflake_migrate_internal.run_expressions(
	run_ bigint,
	given_columns snowflake_internal.table_column[],
	OUT relation regclass,
	OUT classid oid,
	OUT objid oid,
	OUT tree text,
	OUT is_kept boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH merged AS MATERIALIZED (
		SELECT t.relation::oid AS oid FROM snowflake_migrate_internal.merged_tables(run_) AS t
	),
	part AS MATERIALIZED (
		SELECT p.oid FROM merged AS m CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(m.oid) AS p (oid)
	),
	/* The types of the columns, and what domains are over; in how many tables does not matter. */
	type AS MATERIALIZED (
		WITH RECURSIVE type (relation, oid, is_given) AS (
			SELECT min(a.attrelid), a.atttypid,
				bool_and(a.atthasdef
						 OR (a.attrelid, a.attname) IN (SELECT g.relation, g.name FROM unnest(given_columns) AS g))
			FROM pg_attribute AS a
			WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT m.oid FROM merged AS m)
			GROUP BY a.atttypid
			UNION
			SELECT t.relation, y.typbasetype, t.is_given
			FROM type AS t JOIN pg_type AS y ON y.oid = t.oid AND y.typtype = 'd'
		)
		SELECT t.relation, t.oid, t.is_given FROM type AS t JOIN pg_type AS y ON y.oid = t.oid AND y.typtype = 'd'
	)
	SELECT c.conrelid, 'pg_constraint'::regclass, c.oid, c.conbin::text, true
	FROM pg_constraint AS c
	WHERE c.contype = 'c' AND c.conrelid IN (SELECT p.oid FROM part AS p)
	UNION ALL
	SELECT t.relation, 'pg_constraint'::regclass, c.oid, c.conbin::text, false
	FROM type AS t JOIN pg_constraint AS c ON c.contypid = t.oid AND c.contype = 'c'
	UNION ALL
	SELECT t.relation, 'pg_type'::regclass, y.oid, y.typdefaultbin::text, false
	FROM type AS t JOIN pg_type AS y ON y.oid = t.oid
	WHERE NOT t.is_given AND y.typdefaultbin IS NOT NULL
	UNION ALL
	SELECT d.adrelid, 'pg_attrdef'::regclass, d.oid, d.adbin::text, true
	FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
	WHERE d.adrelid IN (SELECT m.oid FROM merged AS m)
		AND (a.attgenerated <> '' OR (d.adrelid, a.attname)
			NOT IN (SELECT g.relation, g.name FROM unnest(given_columns) AS g))
	UNION ALL
	SELECT i.indrelid, 'pg_class'::regclass, i.indexrelid, concat(i.indexprs::text, i.indpred::text), true
	FROM pg_index AS i
	WHERE (i.indisunique OR i.indisexclusion) AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
		AND i.indrelid IN (SELECT p.oid FROM part AS p)
	UNION ALL
	SELECT p.partrelid, 'pg_class'::regclass, p.partrelid, p.partexprs::text, true
	FROM pg_partitioned_table AS p
	WHERE p.partexprs IS NOT NULL AND pg_partition_root(p.partrelid) IN (SELECT m.oid FROM merged AS m)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_expressions(bigint, snowflake_internal.table_column[])
	IS 'for snowflake_migrate.merge()''s own use: the expressions that a run reads anew';

/*
 * For the functions and operators of these expressions a run looks by name, and another role could have created one of
 * the same name that fits better, or could do so (overload.sql).  No lock is against that.  That its schema is not
 * renamed, lock_code_schemas() sees to, where the caller can.
 */
CREATE FUNCTION snowflake_migrate_internal.overloads(
	run_ bigint,
	given_columns snowflake_internal.table_column[],
	OUT relation regclass,
	OUT object text,
	OUT problem text,
	OUT advice text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH caller AS MATERIALIZED (
		SELECT s.role, s.is_superuser, snowflake_internal.other_roles() AS other_roles
		FROM snowflake_internal.strongest_role() AS s
	),
	expression AS MATERIALIZED (
		SELECT e.* FROM snowflake_migrate_internal.run_expressions(run_, given_columns) AS e
	),
	found AS MATERIALIZED (
		SELECT e.relation, e.classid, e.objid, e.is_kept, d.refclassid, d.refobjid,
			coalesce(p.pronamespace, o.oprnamespace) AS schema,
			snowflake_migrate_internal.is_vague(e.tree, d.refclassid, d.refobjid) AS is_vague
		FROM expression AS e
			JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.objsubid = 0
			LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
			LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		WHERE p.oid IS NOT NULL OR o.oid IS NOT NULL
	),
	/* In a schema of the same name, or in the place of what is dropped, anything fits. */
	planter AS MATERIALIZED (
		SELECT s.refclassid, s.refobjid, s.is_vague, s.is_kept,
			coalesce(CASE WHEN s.is_vague THEN snowflake_migrate_internal.overloader(s.refclassid, s.refobjid) END,
					 CASE WHEN c.is_superuser AND NOT (s.is_kept AND snowflake_internal.can_lock_schemas())
						THEN (SELECT o.role FROM snowflake_internal.other_schema_owner(s.schema, c.other_roles) AS o
							  WHERE o.can_rename OR NOT s.is_kept) END) AS role
		FROM (SELECT DISTINCT f.refclassid, f.refobjid, f.schema, f.is_vague, f.is_kept FROM found AS f) AS s
			CROSS JOIN caller AS c
	),
	named AS (
		SELECT f.relation, f.classid, f.objid, f.refclassid, f.refobjid, p.role
		FROM found AS f JOIN planter AS p USING (refclassid, refobjid, is_vague, is_kept)
		UNION
		/* Its owner can add casts, which is no news to who is no superuser. */
		SELECT e.relation, e.classid, e.objid, 'pg_type'::regclass, y.oid, y.typowner
		FROM caller AS s
			CROSS JOIN expression AS e
			CROSS JOIN LATERAL snowflake_internal.computed_types(e.tree) AS t (oid)
			JOIN pg_type AS y ON y.oid = t.oid
		/* The types of others have numbers of five digits at least: most expressions need no closer look. */
		WHERE s.is_superuser AND e.tree ~ '[1-9][0-9]{4}' AND y.typowner = ANY (s.other_roles)
	)
	SELECT n.relation::regclass, pg_describe_object(n.classid, n.objid, 0), o.problem, o.advice
	FROM named AS n
		CROSS JOIN LATERAL snowflake_migrate_internal.overload_report(n.role, n.refclassid, n.refobjid) AS o
	WHERE n.role IS NOT NULL
	ORDER BY n.relation::regclass::text COLLATE "C", 2, 3
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.overloads(bigint, snowflake_internal.table_column[])
	IS 'for snowflake_migrate.merge()''s own use: what another role''s code could take the place of';

/*
 * The schemas of others in which a run looks for functions, operators and types keep their names while it does.  No
 * others are locked: whoever owns one could keep the run waiting.
 */
CREATE FUNCTION snowflake_migrate_internal.lock_code_schemas(
	run_ bigint,
	given_columns snowflake_internal.table_column[]) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH used (schema) AS (
		SELECT coalesce(p.pronamespace, o.oprnamespace)
		FROM snowflake_migrate_internal.run_expressions(run_, given_columns) AS e
			JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.objsubid = 0
			LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
			LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		UNION
		SELECT y.typnamespace
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
			JOIN pg_type AS c ON c.oid = a.atttypid
			JOIN pg_type AS y ON y.oid IN (c.oid, c.typbasetype, c.typelem)
	)
	SELECT snowflake_internal.lock_schemas(ARRAY(
		SELECT n.oid
		FROM used AS u JOIN pg_namespace AS n ON n.oid = u.schema
		WHERE n.nspowner = ANY ((SELECT snowflake_internal.other_roles())::oid[])))
	/* Else nothing is locked, and for each batch the catalogs need not be read. */
	WHERE snowflake_internal.can_lock_schemas()
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lock_code_schemas(bigint, snowflake_internal.table_column[])
	IS 'for snowflake_migrate.merge()''s own use: keeps the schemas of functions and types from being renamed';

/*
 * Raises an error where going on with a run would run other roles' code with a superuser's rights.  While it waits for
 * a lock, foreign keys may be added, and columns dropped from a source: it looks until nothing is.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_code(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	relations record;
	columns record;
	overload record;
	seen text;
BEGIN
	LOOP
		SELECT r.read, r.written INTO relations FROM snowflake_migrate_internal.run_relations(run_) AS r;
		columns := snowflake_migrate_internal.run_columns(run_);
		EXIT WHEN concat(relations, columns) = seen;
		PERFORM snowflake_migrate_internal.lock_code_schemas(run_, columns.given_columns);
		PERFORM snowflake_internal.refuse_dangerous_code(relations.read, relations.written,
				columns.cast_columns, columns.given_columns, r.fires_triggers)
			FROM snowflake_migrate.runs AS r WHERE r.run = run_;
		seen := concat(relations, columns);
	END LOOP;
	IF (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s) THEN
		SELECT o.* INTO overload FROM snowflake_migrate_internal.overloads(run_, columns.given_columns) AS o LIMIT 1;
		IF FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = 'cannot run code of other roles with the rights of a superuser',
				DETAIL = format('%s: %s.', overload.object, overload.problem),
				HINT = overload.advice;
		END IF;
		PERFORM snowflake_migrate_internal.refuse_expressions(
			ARRAY(SELECT d.query FROM snowflake_migrate_internal.declared_queries(run_) AS d));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_code(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where others'' code would run with a superuser''s rights';

/* Returns whether rows may be read.  That a type's owner could add code is no news to who is no superuser. */
CREATE FUNCTION snowflake_migrate_internal.check_code(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	relations record;
	columns record;
	seen text;
	caller CONSTANT record := snowflake_internal.strongest_role();
BEGIN
	LOOP
		SELECT r.read || ARRAY(SELECT m.relation::oid FROM snowflake_migrate_internal.not_merged(run_) AS m ORDER BY 1)
				AS read,
				r.written
			INTO relations
			FROM snowflake_migrate_internal.run_relations(run_) AS r;
		columns := snowflake_migrate_internal.run_columns(run_);
		EXIT WHEN NOT caller.is_superuser OR concat(relations, columns) = seen;
		PERFORM snowflake_migrate_internal.lock_code_schemas(run_, columns.given_columns);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, d.relation::text, d.object, d.problem,
				advice => concat_ws(' ', d.advice, CASE
					WHEN NOT has_table_privilege(d.owner, 'snowflake_migrate.runs', 'INSERT')
					THEN format('Role %s needs the rights to merge: SELECT snowflake_migrate.grant_to(%L);',
								d.owner, d.owner) END))
			FROM snowflake_internal.dangerous_code(
				relations.read, relations.written, columns.cast_columns, columns.given_columns) AS d;
		IF FOUND THEN
			RETURN false;
		END IF;
		seen := concat(relations, columns);
	END LOOP;
	PERFORM snowflake_migrate_internal.add_to_report(run_,
			CASE WHEN caller.is_superuser THEN 'error' ELSE 'warning' END, NULL, o.relation::text, o.object, o.problem,
			advice => o.advice)
		FROM snowflake_migrate_internal.overloads(run_, columns.given_columns) AS o;
	IF FOUND AND caller.is_superuser OR NOT snowflake_migrate_internal.check_expressions(run_) THEN
		RETURN false;
	ELSIF NOT caller.is_superuser THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, c.relation::text, c.object,
				format('code of role %s would run with the rights of role %s: %s', c.owner, caller.role, c.code),
				advice => format('Look at what it does, and make sure that you trust role %s.', c.owner))
			FROM snowflake_internal.touched(relations.read, relations.written) AS t
				CROSS JOIN LATERAL snowflake_internal.foreign_code(t.touched, t.all_written,
					columns.cast_columns, columns.given_columns, false, snowflake_internal.other_roles()) AS c
			WHERE NOT c.is_possible;
	END IF;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_code(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds other roles'' code that a merge would run';
