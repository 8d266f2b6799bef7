/*
 * What a merge keeps on record, and its plan: which tables in which order, and what each of their columns refers to, read from
 * the target's catalogs and the declarations once, so that a merge that goes on after a crash goes on by the same plan.
 *
 * Tables have numbers, parents before children where there is no cycle.  The maps from old keys to new ones are tables in a
 * schema of the run's own, snowflake_merge_RUN, which belongs to whoever merges.
 */

CREATE SEQUENCE snowflake_migrate_internal.run_number;

/* A number whose schema is not there from a time when the extension was another. */
CREATE FUNCTION snowflake_migrate_internal.new_run() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	run bigint;
BEGIN
	LOOP
		run := nextval('snowflake_migrate_internal.run_number');
		EXIT WHEN to_regnamespace('snowflake_merge_' || run) IS NULL;
	END LOOP;
	RETURN run;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.new_run()
	IS 'for snowflake_migrate.merge()''s own use: the number of a new run';

CREATE TABLE snowflake_migrate.runs (
	run bigint PRIMARY KEY DEFAULT snowflake_migrate_internal.new_run(),
	sources name[] NOT NULL,
	target name NOT NULL,
	nodes bigint[] NOT NULL,
	state text NOT NULL CHECK (state IN ('copying', 'verifying', 'done', 'rolling back', 'rolled back', 'dry run')),
	batch_size int NOT NULL,
	started_at timestamptz NOT NULL,
	mapped_at timestamptz,				-- when all keys had their new ones
	copied_at timestamptz,
	finished_at timestamptz,			-- when it was verified, or taken back
	merged_by name NOT NULL DEFAULT current_user
);
COMMENT ON TABLE snowflake_migrate.runs IS 'the merges into schemas of this database';

/* Of a target that is in the middle of a merge, no other may begin. */
CREATE UNIQUE INDEX runs_unfinished ON snowflake_migrate.runs (target)
	WHERE state IN ('copying', 'verifying', 'rolling back');

CREATE TABLE snowflake_migrate.nodes (
	node bigint PRIMARY KEY,			-- never to be used again
	run bigint NOT NULL,
	source name NOT NULL
);
COMMENT ON TABLE snowflake_migrate.nodes IS 'the node numbers under which rows were renumbered';

CREATE TABLE snowflake_migrate_internal.plan_tables (
	run bigint NOT NULL,
	no int NOT NULL,
	relation regclass NOT NULL,
	mode text NOT NULL,
	kind text NOT NULL CHECK (kind IN ('id', 'key', 'none')),	-- id: renumbered; key: has one all the same
	key name[] NOT NULL,
	natural_key name[],
	accept text[] NOT NULL,
	ignored_columns name[] NOT NULL,
	created name,
	map_step int NOT NULL,				-- tables that refer to each other in a cycle share it
	copy_step int NOT NULL,				-- likewise, by foreign keys alone
	cyclic boolean NOT NULL,			-- by foreign keys
	former_rows bigint,					-- of the target, before
	former_state text,					-- its constraints and triggers, before
	PRIMARY KEY (run, no)
);

CREATE TABLE snowflake_migrate_internal.plan_columns (
	run bigint NOT NULL,
	no int NOT NULL,
	name name NOT NULL,
	position int NOT NULL,
	generated boolean NOT NULL,
	changed_by text,					-- the policy that may change it
	PRIMARY KEY (run, no, name)
);

CREATE TABLE snowflake_migrate_internal.plan_references (
	run bigint NOT NULL,
	no int NOT NULL,
	id int NOT NULL,					-- in the run
	name name NOT NULL,
	referenced int NOT NULL,			-- a table's no, whose map applies
	condition text,
	path text,
	elements boolean NOT NULL,			-- of an array
	dangling text NOT NULL,
	declared boolean NOT NULL,
	PRIMARY KEY (run, id)
);

/* A table of a source, and how far it is copied, or taken back. */
CREATE TABLE snowflake_migrate_internal.plan_sources (
	run bigint NOT NULL,
	no int NOT NULL,
	source int NOT NULL,				-- its place in sources
	relation regclass NOT NULL,
	rows_to_do bigint NOT NULL DEFAULT 0,
	rows_done bigint NOT NULL DEFAULT 0,
	position text,						-- the last key of the last batch, of the key's first column that can be compared
	done boolean NOT NULL DEFAULT false,
	busy interval NOT NULL DEFAULT '0',
	copied_by xid8[] NOT NULL DEFAULT '{}',		-- the transactions
	PRIMARY KEY (run, no, source)
);

CREATE TABLE snowflake_migrate.report (
	run bigint NOT NULL,
	severity text NOT NULL CHECK (severity IN ('error', 'warning', 'info')),
	source name,
	relation text,
	object text,
	problem text NOT NULL,
	count bigint,
	example text,
	advice text
);
COMMENT ON TABLE snowflake_migrate.report IS 'what a merge found and did';

CREATE TABLE snowflake_migrate.records (
	run bigint NOT NULL,
	source name,						-- null: a row of the target
	relation text NOT NULL,
	constraint_name name NOT NULL,
	policy text NOT NULL,
	old_key text,
	new_key text,
	column_name name,
	old_value text,
	new_value text,
	former_row jsonb
);
COMMENT ON TABLE snowflake_migrate.records IS 'what the policies of a merge did to each row';
CREATE INDEX ON snowflake_migrate.records (run, relation);
CREATE INDEX ON snowflake_migrate.report (run);

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.runs', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.run_number', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.nodes', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_tables', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_columns', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_sources', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.report', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.records', '');

CREATE FUNCTION snowflake_migrate_internal.find(
	run bigint,
	severity text,
	source name,
	relation text,
	object text,
	problem text,
	count bigint,
	example text,
	advice text) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	/* What is found again is found once. */
	DELETE FROM snowflake_migrate.report AS f
		WHERE (f.run, f.severity, f.source, f.relation, f.object, f.problem)
			IS NOT DISTINCT FROM (find.run, find.severity, find.source, find.relation,
								  find.object, find.problem);
	INSERT INTO snowflake_migrate.report VALUES (run, severity, source, relation, object, problem, count, example, advice)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find(bigint, text, name, text, text, text, bigint, text, text)
	IS 'for snowflake_migrate.merge()''s own use: adds to its report';

/*
 * References by foreign keys between the tables of a schema, column by column: of a partitioned table those of any of its
 * partitions count as its own.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys(
	target name,
	OUT conoid oid,
	OUT relation regclass,
	OUT name name,
	OUT referenced regclass,
	OUT referenced_name name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT ON (r.root, a.attname, p.root, b.attname) f.oid, r.root, a.attname, p.root, b.attname
	FROM pg_constraint AS f
		JOIN pg_class AS c ON c.oid = f.conrelid
		CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)) AS r (root)
		CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.confrelid), f.confrelid)) AS p (root)
		CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, referenced_attnum)
		JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
		JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.referenced_attnum
		JOIN pg_class AS t ON t.oid = r.root
		JOIN pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = target
	WHERE f.contype = 'f'
	ORDER BY r.root, a.attname, p.root, b.attname, f.conparentid <> 0, f.oid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys(name)
	IS 'for snowflake_migrate.merge()''s own use: the references by foreign keys in a schema';

/*
 * An order of the tables in which parents come first: the number of tables that each reaches, and for those that reach each
 * other, one step.
 */
CREATE FUNCTION snowflake_migrate_internal.order(
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
		SELECT r.child, e.parent FROM reach AS r JOIN unnest(children, parents) AS e (child, parent) ON e.child = r.parent
		WHERE e.parent = ANY (tables)
	),
	reached (relation, tables) AS (SELECT r.child, count(*) FILTER (WHERE r.parent <> r.child) FROM reach AS r GROUP BY r.child),
	mutual (relation, first) AS (
		SELECT r.child, min(r.parent) FROM reach AS r JOIN reach AS b ON b.child = r.parent AND b.parent = r.child GROUP BY r.child
	),
	own (relation, reached, first, cyclic) AS (
		SELECT t.oid, coalesce(r.tables, 0), coalesce(m.first, t.oid), m.first IS NOT NULL
		FROM unnest(tables) AS t (oid) LEFT JOIN reached AS r ON r.relation = t.oid LEFT JOIN mutual AS m ON m.relation = t.oid
	)
	SELECT o.relation, dense_rank() OVER (ORDER BY o.reached, o.first)::int, o.cyclic FROM own AS o
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.order(oid[], oid[], oid[])
	IS 'for snowflake_migrate.merge()''s own use: an order in which parents come first';

/*
 * Writes the plan of a run.  A key is renumbered where it is one integer column: the primary key, or the column that has a
 * sequence, an identity or snowflake_nextval() as its default; but not a key that is a reference, which follows what it refers
 * to, and not where an equal id is the same row.
 */
CREATE FUNCTION snowflake_migrate_internal.plan(run_ bigint, sources name[], target name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	WITH relation AS MATERIALIZED (
		SELECT c.oid, coalesce(d.mode, 'copy') AS mode, d.key AS natural_key, coalesce(d.accept, '{}') AS accept,
			coalesce(d.ignored_columns, '{}') AS ignored_columns
		FROM pg_class AS c
			JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = target
			LEFT JOIN snowflake_migrate.declared_tables AS d ON d.relation = c.oid
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
	),
	fk AS MATERIALIZED (SELECT f.relation, f.name, f.referenced, f.referenced_name FROM snowflake_migrate_internal.foreign_keys(target) AS f),
	declared AS MATERIALIZED (
		SELECT r.* FROM snowflake_migrate.declared_references AS r WHERE r.relation IN (SELECT c.oid FROM relation AS c)
	),
	copy_order AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.order((SELECT array_agg(c.oid) FROM relation AS c),
			coalesce((SELECT array_agg(f.relation ORDER BY f.relation, f.name) FROM fk AS f)::oid[], '{}'),
			coalesce((SELECT array_agg(f.referenced ORDER BY f.relation, f.name) FROM fk AS f)::oid[], '{}')) AS o
	),
	map_order AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.order((SELECT array_agg(c.oid) FROM relation AS c),
			coalesce((SELECT array_agg(e.child ORDER BY e.child, e.parent)
			 FROM (SELECT f.relation, f.referenced FROM fk AS f UNION ALL SELECT d.relation, d.referenced FROM declared AS d) AS e (child, parent)
			)::oid[], '{}'),
			coalesce((SELECT array_agg(e.parent ORDER BY e.child, e.parent)
			 FROM (SELECT f.relation, f.referenced FROM fk AS f UNION ALL SELECT d.relation, d.referenced FROM declared AS d) AS e (child, parent)
			)::oid[], '{}')) AS o
	),
	/* The index that says what a row is: the primary key, or else a unique one without nulls, expressions and conditions. */
	key AS MATERIALIZED (
		SELECT DISTINCT ON (i.indrelid) i.indrelid, i.indisprimary,
			(SELECT array_agg(a.attname ORDER BY k.n) FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) AS names
		FROM pg_index AS i JOIN relation AS c ON c.oid = i.indrelid
		WHERE i.indisunique AND i.indisvalid AND i.indexprs IS NULL AND i.indpred IS NULL
			AND (i.indisprimary
				 OR NOT EXISTS (SELECT FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
								JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND NOT a.attnotnull))
		ORDER BY i.indrelid, i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, i.indexrelid
	),
	numbered AS MATERIALIZED (
		SELECT DISTINCT ON (c.oid) c.oid, a.attname
		FROM relation AS c
			JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
			/* A domain over integers can't hold new ids, which the check says. */
			JOIN pg_type AS y ON y.oid = a.atttypid
				AND coalesce(nullif(y.typbasetype, 0), y.oid) IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			LEFT JOIN key AS k ON k.indrelid = c.oid
			LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE a.attgenerated = ''
			AND (k.names = ARRAY[a.attname]
				 OR ((k.names IS NULL OR a.attname = ANY (k.names))
					 AND (a.attidentity <> ''
						  OR EXISTS (SELECT FROM pg_depend AS u
									 WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
										AND ((u.refclassid = 'pg_proc'::regclass
											  AND u.refobjid = snowflake_migrate_internal.default_function())
											 OR (u.refclassid = 'pg_class'::regclass
												 AND EXISTS (SELECT FROM pg_sequence AS q WHERE q.seqrelid = u.refobjid)))))))
			/* A reference that leads back to the column itself is none. */
			AND NOT EXISTS (SELECT FROM fk AS f WHERE f.relation = c.oid AND f.name = a.attname AND NOT EXISTS (
				WITH RECURSIVE w (relation, name) AS (
					SELECT f.referenced, f.referenced_name
					UNION
					SELECT g.referenced, g.referenced_name FROM w JOIN fk AS g ON g.relation = w.relation AND g.name = w.name)
				SELECT FROM w WHERE w.relation = c.oid AND w.name = a.attname))
			AND NOT EXISTS (SELECT FROM declared AS f WHERE f.relation = c.oid AND f.column_name = a.attname)
		ORDER BY c.oid, k.names IS NOT DISTINCT FROM ARRAY[a.attname] DESC, a.attnum
	)
	INSERT INTO snowflake_migrate_internal.plan_tables (run, no, relation, mode, kind, key, natural_key, accept, ignored_columns, created,
														  map_step, copy_step, cyclic)
	SELECT run_, row_number() OVER (ORDER BY p.step, m.step, c.oid), c.oid, c.mode,
		CASE WHEN n.attname IS NOT NULL AND c.mode <> 'same_id' THEN 'id' WHEN k.names IS NOT NULL OR n.attname IS NOT NULL THEN 'key' ELSE 'none' END,
		CASE WHEN n.attname IS NOT NULL AND c.mode <> 'same_id' THEN ARRAY[n.attname] ELSE coalesce(k.names, array_remove(ARRAY[n.attname], NULL)) END,
		c.natural_key, c.accept, c.ignored_columns, t.column_name, m.step, p.step, p.cyclic
	FROM relation AS c
		JOIN copy_order AS p ON p.relation = c.oid
		JOIN map_order AS m ON m.relation = c.oid
		LEFT JOIN key AS k ON k.indrelid = c.oid
		LEFT JOIN numbered AS n ON n.oid = c.oid
		LEFT JOIN snowflake_migrate.declared_created AS t ON t.relation = c.oid;

	INSERT INTO snowflake_migrate_internal.plan_columns (run, no, name, position, generated, changed_by)
	SELECT run_, t.no, a.attname, a.attnum, a.attgenerated <> '',
		(SELECT p.policy FROM snowflake_migrate.declared_policies AS p
		 WHERE p.relation = t.relation AND p.policy IN ('suffix', 'rerank')
			AND a.attname = ANY (snowflake_migrate_internal.policy_columns(t.relation, p.constraint_name, p.policy)) LIMIT 1)
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
	WHERE t.run = run_;

	/*
	 * A column refers to the key whose map applies to it: through chains of foreign keys, as those of one-to-one tables are, and of
	 * the parts of composite keys.  What is declared of a column takes the place of its foreign keys.
	 */
	WITH RECURSIVE
	edge (relation, name, referenced, referenced_name, condition, path, dangling, declared) AS (
		SELECT r.relation, r.column_name, r.referenced, p.key[1], r.condition, r.path, r.dangling, true
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = r.referenced
		UNION ALL
		SELECT f.relation, f.name, f.referenced, f.referenced_name, NULL, NULL, 'error', false
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.relation = f.relation AND r.column_name = f.name)
	),
	followed (relation, name, at, at_name, condition, path, dangling, declared) AS (
		SELECT e.* FROM edge AS e
		UNION
		SELECT o.relation, o.name, e.referenced, e.referenced_name, o.condition, o.path, o.dangling, o.declared
		FROM followed AS o JOIN edge AS e ON e.relation = o.at AND e.name = o.at_name AND e.condition IS NULL AND e.path IS NULL
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at AND NOT (p.kind = 'id' AND p.key = ARRAY[o.at_name])
	)
	INSERT INTO snowflake_migrate_internal.plan_references (run, no, id, name, referenced, condition, path, elements, dangling, declared)
	SELECT run_, t.no, row_number() OVER (ORDER BY t.no, o.name, p.no), o.name, p.no, o.condition, o.path, y.typcategory = 'A', o.dangling, o.declared
	FROM (SELECT DISTINCT o.relation, o.name, o.at, o.at_name, o.condition, o.path, o.dangling, o.declared FROM followed AS o) AS o
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = o.relation
		JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at AND p.kind = 'id' AND p.key = ARRAY[o.at_name]
		JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attname = o.name
		JOIN pg_type AS y ON y.oid = a.atttypid
	/* A key that is renumbered refers to nothing. */
	WHERE NOT (t.kind = 'id' AND t.key = ARRAY[o.name]) AND t.mode <> 'ignore' AND a.attgenerated = '';

	/* What is generated refers to what the columns refer to that it is made of. */
	PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, t.relation::text, f.name,
			format('the column is generated and refers to %s, whose keys are renumbered', f.referenced), NULL, NULL,
			format('Declare what the columns that it is made of refer to: SELECT %s(%L, ..., %L, ...);', 'snowflake_migrate.declare_reference', t.relation, f.referenced))
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = f.relation AND t.mode <> 'ignore'
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = f.referenced AND p.kind = 'id' AND p.key = ARRAY[f.referenced_name]
			JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attname = f.name AND a.attgenerated <> ''
			JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE NOT EXISTS (SELECT FROM pg_depend AS u JOIN pg_attribute AS b ON b.attrelid = u.refobjid AND b.attnum = u.refobjsubid
							JOIN snowflake_migrate_internal.plan_references AS r ON r.run = run_ AND r.no = t.no AND r.name = b.attname AND r.referenced = p.no
						  WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass AND u.refobjid = a.attrelid);
	PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, t.relation::text, r.column_name,
			format('the declared reference to %s leads to no key that is renumbered: values stay as they are', r.referenced), NULL, NULL, NULL)
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation AND t.mode <> 'ignore'
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = t.no AND f.name = r.column_name AND f.declared);

	INSERT INTO snowflake_migrate_internal.plan_sources (run, no, source, relation)
	SELECT run_, t.no, s.n, c.oid
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_class AS r ON r.oid = t.relation
		CROSS JOIN unnest(sources) WITH ORDINALITY AS s (name, n)
		JOIN pg_namespace AS n ON n.nspname = s.name
		JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = r.relname AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition
	WHERE t.run = run_ AND t.mode <> 'ignore';
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.plan(bigint, name[], name)
	IS 'for snowflake_migrate.merge()''s own use: writes the plan of a run';
