/*
 * The plan of a merge: which tables in which order, and what each of their columns refers to, read from the target's
 * catalogs and the declarations once, so that a merge that goes on after a crash goes on by the same plan.
 *
 * Tables have numbers, parents before children where there is no cycle.
 */

/* Adds to the report of a run what was found; what is found again is there once. */
CREATE FUNCTION snowflake_migrate_internal.add_to_report(
	run bigint,
	severity text,
	source name,
	relation text,
	object text,
	problem text,
	count bigint DEFAULT NULL,
	example text DEFAULT NULL,
	advice text DEFAULT NULL,
	is_question boolean DEFAULT false) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	DELETE FROM snowflake_migrate.report AS f
		/* Of a run with many tables, the index finds those of one. */
		WHERE f.run = add_to_report.run
			AND (f.relation = add_to_report.relation OR f.relation IS NULL AND add_to_report.relation IS NULL)
			AND (f.severity, f.source, f.object, f.problem)
				IS NOT DISTINCT FROM (add_to_report.severity, add_to_report.source,
									  add_to_report.object, add_to_report.problem);
	INSERT INTO snowflake_migrate.report
		VALUES (run, severity, source, relation, object, problem, count, example, advice, is_question)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.add_to_report(
		bigint, text, name, text, text, text, bigint, text, text, boolean)
	IS 'for snowflake_migrate.merge()''s own use: adds to its report';

/* Puts a run on record. */
CREATE FUNCTION snowflake_migrate_internal.write_run(
	run bigint,
	schemas name[],
	targets name[],
	nodes bigint[],
	state text,
	batch_size int,
	started_at timestamptz) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	INSERT INTO snowflake_migrate.runs (run, sources, schemas, targets, nodes, state, batch_size, started_at)
		VALUES (run, ARRAY(SELECT schemas[s.n][1] FROM generate_subscripts(schemas, 1) AS s (n) ORDER BY s.n),
				schemas, targets, nodes, state, batch_size, started_at)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_run(bigint, name[], name[], bigint[], text, int, timestamptz)
	IS 'for snowflake_migrate.merge()''s own use: puts a run on record';

/* Schemas of sources, as runs have them, each with the target that it is merged into.  One pass over them. */
CREATE FUNCTION snowflake_migrate_internal.schemas_of(
	schemas name[],
	targets name[],
	OUT source_no int,
	OUT schema name,
	OUT target name) RETURNS SETOF record
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ((s.n - 1) / c.width + 1)::int, s.schema, t.target
	FROM (SELECT nullif(cardinality(targets), 0)) AS c (width)
		CROSS JOIN unnest(schemas) WITH ORDINALITY AS s (schema, n)
		JOIN unnest(targets) WITH ORDINALITY AS t (target, n) ON t.n = (s.n - 1) % c.width + 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.schemas_of(name[], name[])
	IS 'for snowflake_migrate.merge()''s own use: the schemas of sources with their targets';

/* The schemas of a run's sources, each with the target that it is merged into. */
CREATE FUNCTION snowflake_migrate_internal.source_schemas(
	run_ bigint,
	OUT source_no int,
	OUT source name,
	OUT schema regnamespace,
	OUT target regnamespace) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.source_no, r.sources[s.source_no], n.oid, m.oid
	FROM snowflake_migrate.runs AS r
		CROSS JOIN LATERAL snowflake_migrate_internal.schemas_of(r.schemas, r.targets) AS s
		JOIN pg_namespace AS n ON n.nspname = s.schema
		JOIN pg_namespace AS m ON m.nspname = s.target
	WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.source_schemas(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the schemas of a run''s sources';

/* The table of the target that a source's table is merged into; null: there is none, or it is no source's. */
CREATE FUNCTION snowflake_migrate_internal.target_of(run_ bigint, of_source regclass) RETURNS regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT min(t.oid)::regclass
	FROM pg_class AS c
		JOIN snowflake_migrate_internal.source_schemas(run_) AS s ON s.schema = c.relnamespace
		JOIN pg_class AS t ON t.relnamespace = s.target AND t.relname = c.relname AND t.relkind IN ('r', 'p')
	WHERE c.oid = of_source
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.target_of(bigint, regclass)
	IS 'for snowflake_migrate.merge()''s own use: the table that a source''s table is merged into';

/*
 * Which schemas of sources a merge that is done has brought into the same target, and by which of its sources.  They
 * count where others of their source are new: their rows do not come again, but the maps of that merge know them.  That
 * merge may not have had another schema for a target of this one: it would be another source.
 */
CREATE FUNCTION snowflake_migrate_internal.merged_before(
	schemas_ name[],
	targets_ name[],
	OUT source_no int,
	OUT schema name,
	OUT target name,
	OUT former bigint,
	OUT former_source int) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE
/* A planner that takes the arrays for a thousand elements would make hash tables for millions of rows. */
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
	WITH pair AS (
		SELECT s.* FROM snowflake_migrate_internal.schemas_of(schemas_, targets_) AS s
	),
	known AS (
		/* Once, whatever a role has written into its own rows. */
		SELECT DISTINCT ON (p.source_no, p.target, r.run)
			p.*, r.run, r.started_at, f.source_no AS former_source, r.schemas, r.targets
		FROM snowflake_migrate.runs AS r
			CROSS JOIN LATERAL snowflake_migrate_internal.schemas_of(r.schemas, r.targets) AS f
			JOIN pair AS p ON p.target = f.target AND p.schema = f.schema
		WHERE r.state = 'done' AND r.targets && targets_
		ORDER BY p.source_no, p.target, r.run, f.source_no
	)
	/* A later one that had the schema in this way has the same in its maps. */
	SELECT DISTINCT ON (k.source_no, k.target) k.source_no, k.schema, k.target, k.run, k.former_source
	FROM known AS k
	WHERE EXISTS (SELECT FROM pair AS p
				  WHERE p.source_no = k.source_no AND p.target NOT IN (SELECT o.target FROM known AS o
																	   WHERE o.source_no = k.source_no))
		AND NOT EXISTS (SELECT FROM known AS o JOIN pair AS p USING (source_no)
						WHERE o.source_no = k.source_no AND p.target = ANY (o.targets)
							AND o.schemas[o.former_source][array_position(o.targets, p.target)] <> p.schema)
	ORDER BY k.source_no, k.target, k.started_at
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.merged_before(name[], name[])
	IS 'for snowflake_migrate.merge()''s own use: which schemas were merged before';

/*
 * The tables of a run whose rows a former merge has brought from a source, with their numbers in both, and what the
 * source has by the name: until the maps are made, the rows there are counted.
 * In PL/pgSQL, which keeps the query's plan.
 */
CREATE FUNCTION snowflake_migrate_internal.former_tables(
	run_ bigint,
	OUT no int,
	OUT source_no int,
	OUT former bigint,
	OUT former_source int,
	OUT former_no int,
	OUT source_relation regclass) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
		SELECT t.no, b.source_no, b.former, b.former_source, p.no, s.oid::regclass
		FROM snowflake_migrate.runs AS r
			CROSS JOIN LATERAL snowflake_migrate_internal.merged_before(r.schemas, r.targets) AS b
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.kind = 'id'
			JOIN pg_class AS c ON c.oid = t.relation
			JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = b.target
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = b.former AND p.relation = t.relation
				AND p.key = t.key
			LEFT JOIN pg_namespace AS m ON m.nspname = b.schema
			LEFT JOIN pg_class AS s ON s.relnamespace = m.oid AND s.relname = c.relname
				AND s.relkind IN ('r', 'p', 'f', 'v', 'm')
		WHERE r.run = run_ AND r.mapped_at IS NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.former_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables whose rows a former merge has brought';

/* Whether the target of a run is in use while it is merged into (in_use.sql). */
CREATE FUNCTION snowflake_migrate_internal.is_in_use(run_ bigint) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.target_in_use FROM snowflake_migrate.runs AS r WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_in_use(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether the target of a run is in use';

/* The schemas that a run merges into. */
CREATE FUNCTION snowflake_migrate_internal.targets_of(run_ bigint) RETURNS name[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.targets FROM snowflake_migrate.runs AS r WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.targets_of(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the targets of a run';

/*
 * References by foreign keys of the tables of schemas, column by column: of a partitioned table those of any of its
 * partitions count as its own.  In PL/pgSQL, which keeps the query's plan.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys(
	targets name[],
	OUT relation regclass,
	OUT name name,
	OUT referenced regclass,
	OUT referenced_name name) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
		SELECT DISTINCT r.root::regclass, a.attname, p.root::regclass, b.attname
		FROM pg_constraint AS f
			JOIN pg_class AS c ON c.oid = f.conrelid
			CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)) AS r (root)
			CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.confrelid), f.confrelid)) AS p (root)
			CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, referenced_attnum)
			JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
			JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.referenced_attnum
			JOIN pg_class AS t ON t.oid = r.root
			JOIN pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = ANY (targets)
		WHERE f.contype = 'f'
			/* Of no other schemas' tables, which may be many more, the root is looked for. */
			AND (c.relispartition
				 OR c.relnamespace IN (SELECT s.oid FROM pg_namespace AS s WHERE s.nspname = ANY (targets)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys(name[])
	IS 'for snowflake_migrate.merge()''s own use: the references by foreign keys of schemas';

/*
 * An order of the tables in which parents come first: the number of tables that each reaches, and for those that reach
 * each other, one step.
 */
CREATE FUNCTION snowflake_migrate_internal.dependency_order(
	tables oid[],
	children oid[],
	parents oid[],
	OUT relation oid,
	OUT step int,
	OUT cyclic boolean) RETURNS SETOF record
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE reach (child, parent) AS (
		SELECT e.child, e.parent FROM unnest(children, parents) AS e (child, parent) WHERE e.parent = ANY (tables)
		UNION
		SELECT r.child, e.parent
		FROM reach AS r JOIN unnest(children, parents) AS e (child, parent) ON e.child = r.parent
		WHERE e.parent = ANY (tables)
	),
	reached (relation, tables) AS (
		SELECT r.child, count(*) FILTER (WHERE r.parent <> r.child) FROM reach AS r GROUP BY r.child
	),
	mutual (relation, first) AS (
		SELECT r.child, min(r.parent)
		FROM reach AS r JOIN reach AS b ON b.child = r.parent AND b.parent = r.child
		GROUP BY r.child
	),
	own (relation, reached, first, cyclic) AS (
		SELECT t.oid, coalesce(r.tables, 0), coalesce(m.first, t.oid), m.first IS NOT NULL
		FROM unnest(tables) AS t (oid)
			LEFT JOIN reached AS r ON r.relation = t.oid
			LEFT JOIN mutual AS m ON m.relation = t.oid
	)
	SELECT o.relation, dense_rank() OVER (ORDER BY o.reached, o.first)::int, o.cyclic FROM own AS o
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.dependency_order(oid[], oid[], oid[])
	IS 'for snowflake_migrate.merge()''s own use: an order in which parents come first';

/* The tables of targets that are planned, with what is declared of them: not those of extensions, nor partitions. */
CREATE FUNCTION snowflake_migrate_internal.target_tables(
	targets name[],
	OUT relation regclass,
	OUT mode text,
	OUT natural_key name[],
	OUT accept text[],
	OUT ignored_columns name[],
	OUT condition text,
	OUT declared_by name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT c.oid, coalesce(d.mode, 'copy'), d.key, coalesce(d.accept, '{}'), coalesce(d.ignored_columns, '{}'),
		d.condition, d.declared_by
	FROM pg_class AS c
		JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = ANY (targets)
		LEFT JOIN snowflake_migrate.declared_tables AS d ON d.relation = c.oid
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND NOT EXISTS (SELECT FROM pg_depend AS e
						WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.target_tables(name[])
	IS 'for snowflake_migrate.merge()''s own use: the tables of targets';

/*
 * The steps in which the tables of targets are copied, by foreign keys, and mapped, by declared references as well.
 * Tables that refer to each other in a cycle share a step; cyclic: by foreign keys.
 */
CREATE FUNCTION snowflake_migrate_internal.table_steps(
	targets name[],
	OUT relation regclass,
	OUT copy_step int,
	OUT map_step int,
	OUT cyclic boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH merged (tables) AS MATERIALIZED (
		SELECT array_agg(t.relation::oid) FROM snowflake_migrate_internal.target_tables(targets) AS t
	),
	edge (child, parent, is_declared) AS MATERIALIZED (
		SELECT f.relation::oid, f.referenced::oid, false FROM snowflake_migrate_internal.foreign_keys(targets) AS f
		UNION ALL
		SELECT r.relation::oid, r.referenced::oid, true
		FROM merged AS t JOIN snowflake_migrate.declared_references AS r ON r.relation = ANY (t.tables)
	),
	foreign_keys AS MATERIALIZED (
		SELECT coalesce(array_agg(e.child ORDER BY e.child, e.parent), '{}') AS children,
			coalesce(array_agg(e.parent ORDER BY e.child, e.parent), '{}') AS parents
		FROM edge AS e WHERE NOT e.is_declared
	),
	edges AS MATERIALIZED (
		SELECT coalesce(array_agg(e.child ORDER BY e.child, e.parent), '{}') AS children,
			coalesce(array_agg(e.parent ORDER BY e.child, e.parent), '{}') AS parents
		FROM edge AS e
	)
	SELECT c.relation, c.step, m.step, c.cyclic
	FROM merged AS t
		CROSS JOIN foreign_keys AS f
		CROSS JOIN edges AS e
		CROSS JOIN LATERAL snowflake_migrate_internal.dependency_order(t.tables, f.children, f.parents) AS c
		JOIN LATERAL snowflake_migrate_internal.dependency_order(t.tables, e.children, e.parents) AS m USING (relation)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_steps(name[])
	IS 'for snowflake_migrate.merge()''s own use: the order of the tables of targets';

/*
 * The key of each table: the columns of the index that says what a row is, the primary key or else a unique one without
 * nulls, expressions and conditions.
 */
CREATE FUNCTION snowflake_migrate_internal.table_keys(
	targets name[],
	OUT relation regclass,
	OUT key name[]) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT DISTINCT ON (i.indrelid) i.indrelid, k.names
	FROM pg_index AS i
		JOIN snowflake_migrate_internal.target_tables(targets) AS t ON t.relation = i.indrelid
		CROSS JOIN LATERAL (
			SELECT array_agg(a.attname ORDER BY u.n) AS names, bool_and(a.attnotnull) AS are_not_null
			FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS u (attnum, n)
				JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = u.attnum) AS k
	WHERE i.indisunique AND i.indisvalid AND i.indexprs IS NULL AND i.indpred IS NULL
		AND (i.indisprimary OR k.are_not_null)
	ORDER BY i.indrelid, i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, i.indexrelid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_keys(name[])
	IS 'for snowflake_migrate.merge()''s own use: the keys of the tables of targets';

/*
 * The column of each table that may be renumbered: the key, where it is one integer column, or else the integer
 * column that gets numbers by default, of the key if there is one.  A reference is none, as it follows what it refers
 * to.
 */
CREATE FUNCTION snowflake_migrate_internal.number_columns(
	targets name[],
	OUT relation regclass,
	OUT name name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH fk AS MATERIALIZED (
		SELECT f.relation, f.name, f.referenced, f.referenced_name
		FROM snowflake_migrate_internal.foreign_keys(targets) AS f
	)
	SELECT DISTINCT ON (t.relation) t.relation, a.attname
	FROM snowflake_migrate_internal.target_tables(targets) AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0
		/* A domain over integers can't hold new ids, which the check says. */
		JOIN pg_type AS y ON y.oid = a.atttypid
			AND CASE y.typtype WHEN 'd' THEN (snowflake_migrate_internal.base_type(y.oid, -1)).base ELSE y.oid END
				IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
		LEFT JOIN snowflake_migrate_internal.table_keys(targets) AS k ON k.relation = t.relation
	WHERE a.attgenerated = ''
		AND (k.key = ARRAY[a.attname]
			 OR (k.key IS NULL OR a.attname = ANY (k.key))
				AND snowflake_migrate_internal.makes_numbers(t.relation, a.attnum))
		/* A reference that leads back to the column itself is none. */
		AND NOT EXISTS (
			SELECT FROM fk AS f
			WHERE f.relation = t.relation AND f.name = a.attname AND NOT EXISTS (
				WITH RECURSIVE reached (relation, name) AS (
					SELECT f.referenced, f.referenced_name
					UNION
					SELECT g.referenced, g.referenced_name
					FROM reached AS r JOIN fk AS g ON g.relation = r.relation AND g.name = r.name)
				SELECT FROM reached AS r WHERE r.relation = t.relation AND r.name = a.attname))
		AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS d
						WHERE d.relation = t.relation AND d.column_name = a.attname)
	ORDER BY t.relation, k.key IS NOT DISTINCT FROM ARRAY[a.attname] DESC, a.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.number_columns(name[])
	IS 'for snowflake_migrate.merge()''s own use: the columns whose values may be renumbered';

/* Writes the tables of a plan.  Where an equal id is the same row, it is not renumbered. */
CREATE FUNCTION snowflake_migrate_internal.write_tables(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH numbered (no, relation, mode, kind, key, natural_key, accept, ignored_columns, condition, declared_by,
				   created, map_step, copy_step, cyclic) AS MATERIALIZED (
		SELECT row_number() OVER (ORDER BY s.copy_step, s.map_step, t.relation::oid), t.relation, t.mode,
			CASE WHEN n.name IS NOT NULL AND t.mode <> 'same_id' THEN 'id'
				WHEN k.key IS NOT NULL OR n.name IS NOT NULL THEN 'key'
				ELSE 'none' END,
			CASE WHEN n.name IS NOT NULL AND t.mode <> 'same_id' THEN ARRAY[n.name]
				ELSE coalesce(k.key, array_remove(ARRAY[n.name], NULL)) END,
			t.natural_key, t.accept, t.ignored_columns, t.condition, t.declared_by, c.column_name,
			s.map_step, s.copy_step, s.cyclic
		FROM snowflake_migrate_internal.target_tables(snowflake_migrate_internal.targets_of(run_)) AS t
			JOIN snowflake_migrate_internal.table_steps(snowflake_migrate_internal.targets_of(run_)) AS s
				USING (relation)
			LEFT JOIN snowflake_migrate_internal.table_keys(snowflake_migrate_internal.targets_of(run_)) AS k
				USING (relation)
			LEFT JOIN snowflake_migrate_internal.number_columns(snowflake_migrate_internal.targets_of(run_)) AS n
				USING (relation)
			LEFT JOIN snowflake_migrate.declared_created AS c ON c.relation = t.relation
	),
	edge AS MATERIALIZED (
		SELECT DISTINCT c.copy_step, p.no
		FROM snowflake_migrate_internal.foreign_keys(snowflake_migrate_internal.targets_of(run_)) AS f
			JOIN numbered AS c ON c.relation = f.relation
			JOIN numbered AS p ON p.relation = f.referenced
		WHERE p.copy_step <> c.copy_step
	)
	INSERT INTO snowflake_migrate_internal.plan_tables
		(run, no, relation, mode, kind, key, natural_key, accept, ignored_columns, condition, declared_by, created,
		 map_step, copy_step, cyclic, parents)
	SELECT run_, n.*, ARRAY(SELECT e.no FROM edge AS e WHERE e.copy_step = n.copy_step ORDER BY e.no)
	FROM numbered AS n
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of a plan';

/*
 * Writes the columns of a plan, and which policy may change each.  Of declared references that are not in the plan, as
 * what they lead to keeps its keys, the conditions are kept: they tell such values from those of which nothing is
 * declared.
 */
CREATE FUNCTION snowflake_migrate_internal.write_columns(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	INSERT INTO snowflake_migrate_internal.plan_columns
		(run, no, name, position, generated, changed_by, in_target, combine, combined_by, declared_by, kept_conditions,
		 kept_declared_by)
	SELECT run_, t.no, a.attname, a.attnum, a.attgenerated <> '',
		coalesce(x.policy, CASE WHEN k.way IS NOT NULL THEN 'combine' END),
		coalesce(x.in_target, k.way IS NOT NULL), k.way, k.constraint_name, k.declared_by, u.conditions, u.declared_by
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN LATERAL (
			SELECT p.policy, p.precedence IS NOT NULL AND p.policy IN ('suffix', 'next_free')
			FROM snowflake_migrate.declared_policies AS p
			WHERE p.relation = t.relation AND p.policy IN ('suffix', 'next_free', 'rerank')
				AND a.attname = ANY (snowflake_migrate_internal.policy_columns(t.relation, p.constraint_name, p.policy))
			ORDER BY 2 DESC, p.constraint_name
			LIMIT 1) AS x (policy, in_target) ON true
		LEFT JOIN LATERAL (
			SELECT p.combine ->> a.attname, p.constraint_name, p.declared_by
			FROM snowflake_migrate.declared_policies AS p
			WHERE p.relation = t.relation AND p.combine ? a.attname
			ORDER BY p.constraint_name
			LIMIT 1) AS k (way, constraint_name, declared_by) ON true
		LEFT JOIN LATERAL (
			SELECT array_agg(r.condition ORDER BY r.condition),
				array_agg(r.declared_by) FILTER (WHERE r.condition IS NOT NULL)
			FROM snowflake_migrate.declared_references AS r
			WHERE r.relation = t.relation AND r.column_name = a.attname AND r.path IS NULL
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
								WHERE f.run = run_ AND f.no = t.no AND f.name = a.attname AND f.declared
									AND f.condition IS NOT DISTINCT FROM r.condition)
			) AS u (conditions, declared_by)
			ON NOT (t.kind = 'id' AND t.key = ARRAY[a.attname]) AND t.mode <> 'ignore' AND a.attgenerated = ''
	WHERE t.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the columns of a plan';

/*
 * Writes the references of a plan.  A column refers to the key whose map applies to it: through chains of foreign keys,
 * as those of one-to-one tables are, and of the parts of composite keys.  What is declared of a column takes the place
 * of its foreign keys.
 */
CREATE FUNCTION snowflake_migrate_internal.write_references(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_nestloop = off
AS $$
	WITH RECURSIVE edge (relation, name, referenced, referenced_name, condition, path, dangling, declared_by) AS (
		SELECT r.relation, r.column_name, r.referenced, p.key[1], coalesce(r.condition, o.condition), r.path,
			r.dangling,
			CASE WHEN r.condition IS NULL AND o.condition IS NOT NULL THEN o.declared_by ELSE r.declared_by END
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = r.referenced
			/* The others of the column: one without a condition is for the values for which none of these holds. */
			CROSS JOIN LATERAL (
				SELECT 'NOT (' || string_agg(format('(%s) IS TRUE', c.condition), ' OR ' ORDER BY c.condition) || ')',
					(array_agg(c.declared_by ORDER BY c.declared_by = current_user,
								snowflake_migrate_internal.is_superuser(c.declared_by)))[1]
				FROM snowflake_migrate.declared_references AS c
				WHERE c.relation = r.relation AND c.column_name = r.column_name AND c.path IS NOT DISTINCT FROM r.path
					AND c.condition IS NOT NULL
			) AS o (condition, declared_by)
		UNION ALL
		SELECT f.relation, f.name, f.referenced, f.referenced_name, NULL, NULL, 'error', NULL
		FROM snowflake_migrate_internal.foreign_keys(snowflake_migrate_internal.targets_of(run_)) AS f
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS r
						  WHERE r.relation = f.relation AND r.column_name = f.name)
	),
	followed (relation, name, at, at_name, condition, path, dangling, declared_by) AS (
		SELECT e.* FROM edge AS e
		UNION
		SELECT o.relation, o.name, e.referenced, e.referenced_name, o.condition, o.path, o.dangling, o.declared_by
		FROM followed AS o
			JOIN edge AS e ON e.relation = o.at AND e.name = o.at_name AND e.condition IS NULL AND e.path IS NULL
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at
				AND NOT (p.kind = 'id' AND p.key = ARRAY[o.at_name])
	)
	INSERT INTO snowflake_migrate_internal.plan_references
		(run, no, id, name, referenced, condition, path, elements, dangling, declared, declared_by)
	SELECT run_, t.no, row_number() OVER (ORDER BY t.no, o.name, p.no), o.name, p.no, o.condition, o.path,
		y.typcategory = 'A', o.dangling, o.declared_by IS NOT NULL, o.declared_by
	FROM (SELECT DISTINCT f.* FROM followed AS f) AS o
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = o.relation
		JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at
			AND p.kind = 'id' AND p.key = ARRAY[o.at_name]
		JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attname = o.name
		JOIN pg_type AS y ON y.oid = a.atttypid
	/* A key that is renumbered refers to nothing. */
	WHERE NOT (t.kind = 'id' AND t.key = ARRAY[o.name]) AND t.mode <> 'ignore' AND a.attgenerated = ''
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the references of a plan';

/*
 * Adds to the report generated columns that refer to what is renumbered, where the columns that they are made of do
 * not; and declared references that lead to nothing that is renumbered.
 */
CREATE FUNCTION snowflake_migrate_internal.check_planned_references(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, f.name,
			format('the column is generated and refers to %s, whose keys are renumbered', f.referenced), NULL, NULL,
			format('Declare what the columns that it is made of refer to: SELECT %s(%L, ..., %L, ...);',
				   'snowflake_migrate.declare_reference', t.relation, f.referenced))
		FROM snowflake_migrate_internal.foreign_keys(snowflake_migrate_internal.targets_of(run_)) AS f
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = f.relation
				AND t.mode <> 'ignore'
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = f.referenced
				AND p.kind = 'id' AND p.key = ARRAY[f.referenced_name]
			JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attname = f.name AND a.attgenerated <> ''
		WHERE NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.made_of(f.relation, f.name) AS m (name)
				JOIN snowflake_migrate_internal.plan_references AS r ON r.run = run_ AND r.no = t.no
					AND r.name = m.name AND r.referenced = p.no);
	PERFORM snowflake_migrate_internal.add_to_report(run_, CASE WHEN o.oid IS NULL THEN 'warning' ELSE 'error' END,
			NULL, t.relation::text, r.column_name,
			format(CASE WHEN o.oid IS NULL
					THEN 'the declared reference to %s leads to no key that is renumbered: values stay as they are'
					ELSE 'the declared reference leads to %s, a table of a source' END, r.referenced),
			NULL, NULL,
			CASE WHEN o.oid IS NULL THEN 'If the values are the keys of another table, declare that one.'
				ELSE format('Let it lead to the target''s table: DELETE FROM snowflake_migrate.declared_references '
							'WHERE relation = %1$L::regclass AND column_name = %2$L; '
							'SELECT snowflake_migrate.declare_reference(%1$L, %2$L, %3$L);',
							t.relation, r.column_name, o.oid) END)
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation
				AND t.mode <> 'ignore'
			LEFT JOIN LATERAL (
				SELECT snowflake_migrate_internal.target_of(run_, r.referenced) AS oid
			) AS o ON true
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
						  WHERE f.run = run_ AND f.no = t.no AND f.name = r.column_name AND f.declared);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_planned_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: references that a plan cannot follow';

/* Writes which sources have which tables of a plan. */
CREATE FUNCTION snowflake_migrate_internal.write_sources(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	INSERT INTO snowflake_migrate_internal.plan_sources (run, no, source, relation)
	SELECT run_, t.no, s.source_no, c.oid
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_class AS r ON r.oid = t.relation
		JOIN snowflake_migrate_internal.source_schemas(run_) AS s ON s.target = r.relnamespace
		JOIN pg_class AS c ON c.relnamespace = s.schema AND c.relname = r.relname
			AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition
	WHERE t.run = run_ AND t.mode <> 'ignore'
		AND NOT EXISTS (
			SELECT FROM snowflake_migrate.runs AS u
				CROSS JOIN LATERAL snowflake_migrate_internal.merged_before(u.schemas, u.targets) AS f
				JOIN pg_namespace AS n ON n.nspname = f.target
			WHERE u.run = run_ AND f.source_no = s.source_no AND n.oid = s.target)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_sources(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the sources of a plan';

/*
 * Raises an error where a policy could change rows of a target in use: its users change them meanwhile, and what they
 * rank by.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_rules_in_use(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	declared record;
BEGIN
	SELECT p.relation, p.constraint_name, p.policy,
			CASE WHEN p.combine IS NULL THEN 'a precedence' ELSE 'combine' END AS without
		INTO declared
		FROM snowflake_migrate.declared_policies AS p JOIN snowflake_migrate_internal.plan_tables AS t USING (relation)
		WHERE t.run = run_
			AND (p.combine IS NOT NULL
				 OR p.precedence IS NOT NULL AND p.policy IN ('suffix', 'next_free', 'keep_first'))
		ORDER BY t.no, p.constraint_name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = format('policy "%s" of constraint "%s" cannot be followed with target_in_use',
							 declared.policy, declared.constraint_name),
			DETAIL = format('With %s, it could change rows of table %s, which users of the target change meanwhile.',
							declared.without, declared.relation),
			HINT = format('Merge with the target closed, or declare the policy without %s.', declared.without);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_rules_in_use(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where policies could change rows of a target in use';

/*
 * Raises an error where rows of a source refer to others of it by columns that are not the key: users of a target in
 * use could give these to other rows meanwhile.  What is shared by them is the same row, whoever has them.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_foreign_keys_in_use(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	fk record;
BEGIN
	SELECT f.conname, t.relation, p.relation AS parent
		INTO fk
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_constraint AS f ON f.conrelid = o.oid AND f.contype = 'f' AND f.conparentid = 0
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.mode = 'copy'
				AND p.relation = coalesce(pg_partition_root(f.confrelid), f.confrelid)
			CROSS JOIN LATERAL snowflake_migrate_internal.foreign_key_columns(f.oid) AS k
		WHERE t.run = run_ AND NOT (p.kind <> 'none' AND p.key <@ k.parent_columns)
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
						WHERE s.run = run_ AND s.no = t.no
							AND snowflake_migrate_internal.has_columns(s.relation, k.columns))
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		ORDER BY t.no, f.conname LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('foreign key "%s" may lead to other rows with target_in_use', fk.conname),
			DETAIL = format('Table %s refers by it to columns of table %s that are not its key. Users of the target '
							'could give them to other rows meanwhile.', fk.relation, fk.parent),
			HINT = 'Merge with the target closed, or, where they do not do that, call with accept_warnings => true.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_foreign_keys_in_use(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where names could get to other rows of a target in use';

/*
 * Adds to the report which schemas were merged before.  Users of a target in use could delete what they brought while
 * this run refers to it, which the run looks for among its own rows alone.
 */
CREATE FUNCTION snowflake_migrate_internal.report_merged_before(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	f record;
BEGIN
	FOR f IN
		SELECT b.*, r.sources[b.source_no] AS source, o.merged_by
		FROM snowflake_migrate.runs AS r
			CROSS JOIN LATERAL snowflake_migrate_internal.merged_before(r.schemas, r.targets) AS b
			JOIN snowflake_migrate.runs AS o ON o.run = b.former
		WHERE r.run = run_
		ORDER BY b.source_no, b.target
	LOOP
		IF snowflake_migrate_internal.is_in_use(run_) THEN
			RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
				MESSAGE = format('the maps of merge %s cannot be used with target_in_use', f.former),
				DETAIL = format('That merge has brought schema "%s", to which others of its source may refer.',
								f.schema),
				HINT = 'Merge with the target closed.';
		END IF;
		/* Without it, rows could come again; but who may merge could have made it up. */
		IF NOT snowflake_migrate_internal.is_trusted(f.merged_by) THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = format('the maps of merge %s belong to role "%s"', f.former, f.merged_by),
				DETAIL = format('By its record, that merge has brought schema "%s", to which others of its source may '
								'refer.', f.schema),
				HINT = format('Connect as that role. If there was no such merge, a superuser can remove its record: '
							  'DELETE FROM snowflake_migrate.runs WHERE run = %s;', f.former);
		END IF;
		PERFORM snowflake_migrate_internal.own_run(f.former), snowflake_migrate_internal.refuse_maps(f.former);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', f.source, NULL, f.schema,
			format('merge %s has brought the rows of this schema: they do not come again, and references to them are '
				   'found by its maps', f.former));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_merged_before(bigint)
	IS 'for snowflake_migrate.merge()''s own use: reports which schemas were merged before';

/* Writes the plan of a run. */
CREATE FUNCTION snowflake_migrate_internal.plan(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.report_merged_before(run_);
	PERFORM snowflake_migrate_internal.write_tables(run_);
	PERFORM snowflake_migrate_internal.write_references(run_);
	PERFORM snowflake_migrate_internal.write_columns(run_);
	PERFORM snowflake_migrate_internal.write_steps_in_use(run_);
	PERFORM snowflake_migrate_internal.refuse_rules_in_use(run_) WHERE snowflake_migrate_internal.is_in_use(run_);
	/* As they are in the plan: the declarations may be others by now. */
	PERFORM snowflake_migrate_internal.refuse_declared(t.declared_by, t.relation, 'only')
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.condition IS NOT NULL;
	PERFORM snowflake_migrate_internal.refuse_declared(c.declared_by, t.relation, c.combined_by)
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE c.run = run_ AND c.combine IS NOT NULL;
	PERFORM snowflake_migrate_internal.refuse_declared(r.declared_by, t.relation, r.name)
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE r.run = run_ AND r.condition IS NOT NULL;
	PERFORM snowflake_migrate_internal.refuse_declared(d.declared_by, t.relation, c.name)
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			CROSS JOIN LATERAL unnest(c.kept_declared_by) AS d (declared_by)
		WHERE c.run = run_;
	PERFORM snowflake_migrate_internal.refuse_declared(p.declared_by, p.relation, p.constraint_name)
		FROM snowflake_migrate.declared_policies AS p JOIN snowflake_migrate_internal.plan_tables AS t USING (relation)
		WHERE t.run = run_ AND (p.policy = 'rerank' OR p.precedence IS NOT NULL);
	PERFORM snowflake_migrate_internal.check_planned_references(run_);
	PERFORM snowflake_migrate_internal.write_sources(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.plan(bigint)
	IS 'for snowflake_migrate.merge()''s own use: writes the plan of a run';

/* The tables of the target that a source has, too. */
CREATE FUNCTION snowflake_migrate_internal.merged_tables(run_ bigint)
RETURNS SETOF snowflake_migrate_internal.plan_tables
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.*
	FROM snowflake_migrate_internal.plan_tables AS t
	/* An array: as a join, of tables without statistics, it would read all sources again for each table. */
	WHERE t.run = run_
		AND t.no = ANY (ARRAY(SELECT s.no FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.merged_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables that rows are merged into';

/* The tables of the sources, each with the table of the target that its rows are merged into. */
CREATE FUNCTION snowflake_migrate_internal.source_tables(
	run_ bigint,
	OUT no int,
	OUT source_no int,
	OUT source name,
	OUT relation regclass,
	OUT source_relation regclass) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.no, s.source, r.sources[s.source], t.relation, s.relation
	FROM snowflake_migrate.runs AS r
		JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
		JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
	WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.source_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables whose rows are merged';

/*
 * What a relation reads: itself, its partitions, or those of a view, and of the views in it (relations); and the
 * functions that views call, but PostgreSQL's own (pg_proc).  with_children: those that inherit, as well.  left_out: a
 * view that is not looked into.
 */
CREATE FUNCTION snowflake_migrate_internal.read_by(
	relation regclass,
	with_children boolean,
	left_out oid DEFAULT 0,
	OUT class regclass,
	OUT oid oid) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH RECURSIVE read (class, oid) AS (
		SELECT 'pg_class'::regclass, relation::oid
		UNION
		SELECT n.class, n.oid
		FROM read AS v
			CROSS JOIN LATERAL (
				SELECT CASE d.refclassid WHEN 'pg_operator'::regclass THEN 'pg_proc'::regclass ELSE d.refclassid END,
					coalesce(o.oprcode, d.refobjid)
				FROM (
						SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite AS r
						WHERE v.class = 'pg_class'::regclass AND r.ev_class = v.oid AND v.oid <> left_out
							AND r.ev_type = '1'
						UNION ALL
						/* The body of a function that is no text. */
						SELECT v.class, v.oid WHERE v.class = 'pg_proc'::regclass
					) AS c (class, oid)
					JOIN pg_depend AS d ON d.classid = c.class AND d.objid = c.oid
						AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass)
					LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
				UNION ALL
				SELECT 'pg_class'::regclass, i.inhrelid
				FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhparent AND (c.relkind = 'p' OR with_children)
				WHERE v.class = 'pg_class'::regclass AND i.inhparent = v.oid
			) AS n (class, oid)
	)
	SELECT r.class, r.oid FROM read AS r
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.read_by(regclass, boolean, oid)
	IS 'for snowflake_migrate.merge()''s own use: what a relation reads';

/* The foreign tables that a relation reads. */
CREATE FUNCTION snowflake_migrate_internal.foreign_tables(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid
	FROM snowflake_migrate_internal.read_by(relation, false) AS r JOIN pg_class AS c USING (oid)
	WHERE r.class = 'pg_class'::regclass AND c.relkind = 'f'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_tables(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the foreign tables that a relation reads';
