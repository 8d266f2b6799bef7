/*
 * The proof of a merge.  Each row of a source is compared with the row of the target that the map names, column by
 * column, bit by bit: what is no reference must be equal, what is one must be what the map says of the source's value.
 * As the map leads from each row of the source to one of the target, and a new key is used once, no row is missing and
 * none is somebody else's.
 *
 * Where the target is in use (in_use.sql), users may have changed or deleted rows that the run had brought, and
 * inserted others.  A batch was proved before it was committed, and how many rows it inserted is on record.  So what
 * another transaction wrote since, and what is gone though it was inserted, is users' doing, and only counted: an info.
 *
 * The queries read whole tables, of which nobody need have made statistics: a nested loop, which the planner takes for
 * one row where it knows of none, would take the square of the time (enable_nestloop).  Those that read the catalogs
 * need nested loops: what they give comes as an argument.
 */

/*
 * The names for the queries that compare one table of one source with the target: there, s is the source's row, m its
 * entry in the map, t the row of the target.  Conditions: differs, unmapped (it refers to what the map does not have),
 * other (the target's row that stands for it is another one).
 */
CREATE FUNCTION snowflake_migrate_internal.verify_names(run_ bigint, no_ int, source_ int) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	parts record;
	columns record;
	unmapped text;
	other text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	SELECT string_agg(format('t.%I', e.name), ', ' ORDER BY e.n) AS given,
			string_agg(e.expression, ', ' ORDER BY e.n) AS expected,
			string_agg(format('CASE WHEN ROW (t.%I)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record THEN %L END',
							  e.name, e.expression, e.name), ', ' ORDER BY e.n) AS differing
		INTO columns
		FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n);
	SELECT string_agg(format('(s.%I IS NOT NULL AND r%s.o1 IS NULL%s)', r.name, r.id,
							 ' AND s.' || snowflake_migrate_internal.condition_column(r.id, r.condition)), ' OR ')
		INTO unmapped
		FROM snowflake_migrate_internal.plan_references AS r
		WHERE r.run = run_ AND r.no = no_ AND r.dangling = 'error' AND r.path IS NULL AND NOT r.elements
			AND r.name <> ALL (plan.key) AND r.name::text = ANY (parts.names);
	/* A row that stands for the source's has its natural key. */
	SELECT string_agg(format('((%s) IS NOT TRUE AND NOT (t.%I IS NULL AND %s IS NULL))',
							 snowflake_migrate_internal.compared(
								u.operators[k.n], format('t.%I', k.name), e.expression),
							 k.name, e.expression), ' OR ')
		INTO other
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS u,
			unnest(plan.natural_key) WITH ORDINALITY AS k (name, n),
			LATERAL (SELECT parts.expressions[array_position(parts.names, k.name::text)]) AS e (expression)
		WHERE u.policy = 'match';
	RETURN snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'source', source_,
		'source_table', (SELECT snowflake_migrate_internal.only(s.relation)
						 FROM snowflake_migrate_internal.plan_sources AS s
						 WHERE s.run = run_ AND s.no = no_ AND s.source = source_),
		'origin', parts.origin,
		'given', columns.given,
		'expected', columns.expected,
		'differing_columns', columns.differing,
		'differs', snowflake_migrate_internal.differs(plan.relation, parts.names, parts.expressions),
		'unmapped', coalesce(unmapped, 'false'),
		'other', coalesce(other, 'false'));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_names(bigint, int, int)
	IS 'for snowflake_migrate.verify(): the names in queries that compare a source with the target';

/* Of a table without a key: as often as in the source, at least; by their text, since not every type can be grouped. */
CREATE FUNCTION snowflake_migrate_internal.verify_multiset(
	names jsonb,
	OUT severity text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH expected AS (
			SELECT ROW ({expected})::text AS r, count(*) AS n FROM {origin} GROUP BY 1
		),
		given AS (
			SELECT ROW ({given})::text AS r, count(*) AS n FROM {target} AS t GROUP BY 1
		)
		SELECT sum(e.n - coalesce(g.n, 0)), min(e.r)
		FROM expected AS e LEFT JOIN given AS g USING (r)
		WHERE coalesce(g.n, 0) < e.n
	$query$, names) INTO count, example;
	IF count > 0 THEN
		severity := 'error';
		problem := 'rows are missing in the target';
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_multiset(jsonb)
	IS 'for snowflake_migrate.verify(): the rows of a table without a key';

/*
 * The same where the target is in use: of the rows that are as the run wrote them, none that the source does not have;
 * how many were written; and how many were changed or deleted since.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_multiset_in_use(
	names jsonb,
	OUT severity text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	run_ CONSTANT bigint := (names ->> 'run')::bigint;
	no_ CONSTANT int := (names ->> 'no')::int;
	source_ CONSTANT int := (names ->> 'source')::int;
	found record;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH expected AS (
			SELECT ROW ({expected})::text AS r, count(*) AS n FROM {origin} GROUP BY 1
		),
		given AS (
			SELECT ROW ({given})::text AS r, count(*) AS n FROM {target} AS t
			WHERE t.xmin = ANY ({'xids'}::xid[]) GROUP BY 1
		)
		SELECT sum(e.n) AS rows, sum(g.n - coalesce(e.n, 0)) FILTER (WHERE g.n > coalesce(e.n, 0)) AS wrong,
			min(g.r) FILTER (WHERE g.n > coalesce(e.n, 0)) AS example,
			sum(e.n - coalesce(g.n, 0)) FILTER (WHERE e.n > coalesce(g.n, 0)) AS changed
		FROM expected AS e FULL JOIN given AS g USING (r)
	$query$, names || jsonb_build_object('xids', snowflake_migrate_internal.run_transactions(run_, no_, source_)))
		INTO found;
	RETURN QUERY SELECT p.*
		FROM snowflake_migrate_internal.plan_sources AS s
			CROSS JOIN LATERAL (VALUES
				('error', 'rows are missing in the target', (found.rows - s.rows_done)::bigint, NULL),
				('error', 'rows of the target are not what they should be', found.wrong::bigint, found.example),
				('info', 'rows that the merge brought were changed or deleted since',
				 found.changed::bigint - greatest((found.rows - s.rows_done)::bigint, 0), NULL))
				AS p (severity, problem, count, example)
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_ AND p.count > 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_multiset_in_use(jsonb)
	IS 'for snowflake_migrate.verify(): the rows of a table without a key, of a target in use';

/* New ids lie close together, so that the rest of the target need not be looked at: a condition that follows others. */
CREATE FUNCTION snowflake_migrate_internal.verify_bounds(names jsonb) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	low bigint;
	high bigint;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT min(m.n1), max(m.n1) FROM {map} AS m WHERE m.source = {source} AND m.action NOT IN ('s', 'b')
	$query$, names) INTO low, high;
	RETURN coalesce(format(' AND t.%I BETWEEN %s AND ', names ->> 'first_key', low) || high, '');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_bounds(jsonb)
	IS 'for snowflake_migrate.verify(): between which ids a source''s rows are';

/* Up to three rows that differ, and in which columns. */
CREATE FUNCTION snowflake_migrate_internal.verify_example(names jsonb) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT string_agg(format('%s -> %s: %s', x.o, x.n, x.columns), '; ')
		FROM (
			SELECT {m.o#::text} AS o, {m.n#::text} AS n, array_to_string(ARRAY[{differing_columns}], ', ') AS columns
			FROM {origin} JOIN {target} AS t ON ({t.@}) = ({m.n#})
			WHERE m.action IN ('c', 'r') AND {differs} AND NOT {changed}
			LIMIT 3
		) AS x
	$query$, names) INTO example;
	RETURN example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_example(jsonb)
	IS 'for snowflake_migrate.verify(): rows that differ';

/* The rows of one table of one source, with names as verify_names() gives them. */
CREATE FUNCTION snowflake_migrate_internal.verify_source(
	names jsonb,
	OUT severity text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	run_ CONSTANT bigint := (names ->> 'run')::bigint;
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	in_source bigint;
	in_map bigint;
	found record;
	lost bigint;		-- that were never inserted
	differing_rows CONSTANT text := 'rows of the target are not what they should be';
BEGIN
	IF names ->> 'kind' = 'none' THEN
		RETURN QUERY SELECT v.* FROM snowflake_migrate_internal.verify_multiset(names) AS v WHERE NOT in_use;
		RETURN QUERY SELECT v.* FROM snowflake_migrate_internal.verify_multiset_in_use(names) AS v WHERE in_use;
		RETURN;
	END IF;
	names := names || jsonb_build_object(
		'changed', CASE WHEN in_use
			THEN format('(t.xmin <> ALL (%L::xid[]) OR NOT %s)', snowflake_migrate_internal.run_transactions(run_),
						snowflake_migrate_internal.not_edited(run_, (names ->> 'no')::int))
			ELSE 'false' END,
		'bounds', CASE names ->> 'kind' WHEN 'id' THEN snowflake_migrate_internal.verify_bounds(names) ELSE '' END);
	EXECUTE snowflake_migrate_internal.fill('SELECT count(*) FROM {source_table}', names) INTO in_source;
	EXECUTE snowflake_migrate_internal.fill('SELECT count(*) FROM {map} AS m WHERE m.source = {source}', names)
		INTO in_map;
	/* Whether a row differs is expensive to compute: one pass over the map counts everything. */
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*) AS joined,
			count(*) FILTER (WHERE w.is_own AND NOT w.is_there) AS missing,
			count(*) FILTER (WHERE w.is_own) AS own,
			count(*) FILTER (WHERE w.is_own AND w.is_there AND w.differs AND NOT w.changed) AS differing,
			count(*) FILTER (WHERE w.is_own AND w.is_there AND w.differs AND w.changed) AS changed,
			count(*) FILTER (WHERE w.action IN ('m', 'k') AND NOT w.is_there) AS gone,
			count(*) FILTER (WHERE w.is_own AND w.unmapped) AS unmapped,
			count(*) FILTER (WHERE w.action = 'm' AND w.is_there AND w.other) AS others,
			min(w.old_key) FILTER (WHERE w.action NOT IN ('s', 'b') AND NOT w.is_there OR w.is_own AND w.unmapped)
				AS example,
			min(w.old_key) FILTER (WHERE w.is_own AND w.is_there AND w.differs AND w.changed) AS changed_example,
			min(w.old_key) FILTER (WHERE w.action = 'm' AND w.is_there AND w.other) AS other_example
		FROM (
			SELECT m.action, m.action IN ('c', 'r') AS is_own, t.{"first_key"} IS NOT NULL AS is_there,
				{m.o#::text} AS old_key, {differs} AS differs, {changed} AS changed, ({unmapped}) AS unmapped,
				({other}) AS other
			FROM {origin} LEFT JOIN {target} AS t ON ({t.@}) = ({m.n#}){bounds}
		) AS w
	$query$, names) INTO found;
	SELECT CASE WHEN in_use THEN least(greatest(found.own - s.rows_done, 0), found.missing) ELSE found.missing END
		INTO lost
		FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = (names ->> 'no')::int AND s.source = (names ->> 'source')::int;
	FOR severity, problem, count, example IN
		SELECT coalesce(p.severity, 'error'), p.problem, p.count, p.example FROM (VALUES
			(NULL, 'rows are missing in the target', lost, found.example),
			('info', 'rows that the merge brought were deleted since', found.missing - lost, found.example),
			(NULL, differing_rows, found.differing, NULL),
			('info', 'rows that the merge brought were changed since', found.changed, found.changed_example),
			(CASE WHEN in_use THEN 'info' END,
			 'rows of the target that stand for the source''s are gone', found.gone, found.example),
			(CASE WHEN in_use THEN 'info' END,
			 'the map leads to other rows of the target than it did', found.others, found.other_example),
			(NULL, 'rows refer to rows that the map does not have', found.unmapped, found.example),
			(NULL, 'rows of the source are not in the map: it changed', in_source - found.joined, NULL),
			(NULL, 'rows in the map are no longer in the source: it changed', in_map - found.joined, NULL))
			AS p (severity, problem, count, example)
		WHERE p.count > 0
	LOOP
		IF problem = differing_rows THEN
			example := snowflake_migrate_internal.verify_example(names);
		END IF;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_source(jsonb)
	IS 'for snowflake_migrate.verify(): the rows of a table of a source';

/* What of two lists, separated by commas, is in one of them alone. */
CREATE FUNCTION snowflake_migrate_internal.differing_items(former text[], given text[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(coalesce(n.item, 'no ' || f.item), ', ' ORDER BY coalesce(n.item, f.item))
	FROM unnest(given) AS n (item) FULL JOIN unnest(former) AS f (item) ON f.item = n.item
	WHERE f.item IS NULL OR n.item IS NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.differing_items(text[], text[])
	IS 'for snowflake_migrate.verify(): what is in one of two lists alone';

/*
 * What ids tell of who made them: is_made, whether x.k has a node number of the merge; boundary, the greatest id that
 * could be made before it began.
 */
CREATE FUNCTION snowflake_migrate_internal.with_marks(names jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT names || jsonb_build_object(
			'is_made', format('(x.k > %s AND snowflake_migrate_internal.node(x.k) = ANY (%L::bigint[]))',
							  snowflake_migrate_internal.last_serial(), r.nodes),
			'boundary', snowflake_migrate_internal.max_id(r.started_at))
		FROM snowflake_migrate.runs AS r
		WHERE r.run = (names ->> 'run')::bigint);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.with_marks(jsonb)
	IS 'for snowflake_migrate.verify(): what ids tell of who made them';

/*
 * How many rows a table of the target has, and how many of them the map explains: all; those with a node number of the
 * merge; those whose keys were made since it began.  Where every row of the map is there (complete), it is enough to
 * count the map.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_counts(
	names jsonb,
	complete boolean,
	OUT in_target bigint[],
	OUT in_map bigint[])
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
	IF names ->> 'kind' = 'none' THEN
		EXECUTE snowflake_migrate_internal.fill('SELECT ARRAY[count(*), 0, 0] FROM {target}', names) INTO in_target;
		SELECT ARRAY[sum(s.rows_done), 0, 0] INTO in_map FROM snowflake_migrate_internal.plan_sources AS s
			WHERE s.run = (names ->> 'run')::bigint AND s.no = (names ->> 'no')::int;
		RETURN;
	END IF;
	names := snowflake_migrate_internal.with_marks(names);
	names := names || jsonb_build_object('counts', CASE names ->> 'kind'
		WHEN 'id' THEN snowflake_migrate_internal.fill($query$
			ARRAY[count(*), count(*) FILTER (WHERE {is_made}), count(*) FILTER (WHERE x.k > {boundary})]
		$query$, names) ELSE 'ARRAY[count(*), 0, 0]' END);
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT {counts} FROM (SELECT t.{"first_key"} AS k FROM {target} AS t) AS x
	$query$, names) INTO in_target;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT {counts} FROM (SELECT m.n1 AS k FROM {map} AS m WHERE m.action = 'c') AS x
	$query$, names) INTO in_map;
	IF NOT complete OR in_target[2] <> in_map[2] OR in_target[3] <> in_map[3] THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT {counts}
			FROM (
				SELECT t.{"first_key"} AS k FROM {target} AS t JOIN {map} AS m ON m.action = 'c' AND ({m.n#}) = ({t.@})
			) AS x
		$query$, names) INTO in_map;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_counts(jsonb, boolean)
	IS 'for snowflake_migrate.verify(): how many rows a table of the target has';

/* Rows with keys made since the merge began that are copies, under other keys, of rows that it brought. */
CREATE FUNCTION snowflake_migrate_internal.verify_copies(names jsonb, OUT count bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	run_ CONSTANT bigint := (names ->> 'run')::bigint;
	others text;
BEGIN
	SELECT string_agg(format('t.%I', c.name), ', ' ORDER BY c.position) INTO others
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE c.run = run_ AND c.no = (names ->> 'no')::int AND c.name <> ALL (t.key);
	IF others IS NULL THEN
		RETURN;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min(x.key)
		FROM (
			SELECT t.{"first_key"}::text AS key, ROW ({others})::text AS r
			FROM {target} AS t
			WHERE t.{"first_key"} > {boundary}
				AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action = 'c' AND m.n1 = t.{"first_key"})
		) AS x
		WHERE x.r IN (
			SELECT ROW ({others})::text
			FROM {target} AS t JOIN {map} AS m ON m.action = 'c' AND m.n1 = t.{"first_key"})
	$query$, snowflake_migrate_internal.with_marks(names) || jsonb_build_object('others', others))
		INTO count, example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_copies(jsonb)
	IS 'for snowflake_migrate.verify(): rows that are in the target twice';

/*
 * Of a target in use, rows that the run wrote and its map does not have; but those of the target whose ranks it has
 * changed.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_written(names jsonb, OUT count bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min({t.@::text})
		FROM {target} AS t
		WHERE t.xmin = ANY ({'xids'}::xid[])
			AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action IN ('c', 'r') AND ({m.n#}) = ({t.@})){and_not_ranked}
	$query$, names || jsonb_build_object(
		'xids', snowflake_migrate_internal.run_transactions((names ->> 'run')::bigint, (names ->> 'no')::int),
		'and_not_ranked', CASE WHEN to_regclass(names ->> 'rank') IS NULL THEN '' ELSE snowflake_migrate_internal.fill(
			' AND NOT EXISTS (SELECT FROM {rank} AS r WHERE ({r.n#}) = ({t.@}))', names) END)) INTO count, example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_written(jsonb)
	IS 'for snowflake_migrate.verify(): rows that the run wrote and its map does not have';

/* Rows of a table without a key that are in the target more often than it and the sources had them. */
CREATE FUNCTION snowflake_migrate_internal.verify_surplus(run_ bigint, no_ int, OUT count bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT sum(x.n - x.m), min(x.r)
		FROM (
			SELECT q.r, sum(q.n) AS n, sum(q.m) AS m
			FROM (SELECT ROW (t.*)::text AS r, 1 AS n, 0 AS m FROM {target} AS t {source_rows}) AS q
			GROUP BY q.r
		) AS x
		WHERE x.m > 0 AND x.n > x.m
	$query$, snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('source_rows',
		(SELECT string_agg(format('UNION ALL SELECT ROW (t.*)::text, 0, 1 FROM (%s) AS t',
								  snowflake_migrate_internal.source_rows(run_, no_, s.source)), ' ')
		 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_)))
		INTO count, example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_surplus(bigint, int)
	IS 'for snowflake_migrate.verify(): rows that are in the target more often than they should be';

/*
 * How many rows refer to rows that are not there, by one foreign key, with names as foreign_key_names() gives them; and
 * to what one of them refers.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_foreign_key(names jsonb, OUT missing bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min(concat_ws(', ', {columns})) FROM {child} AS t
		WHERE {given} AND NOT EXISTS (SELECT FROM {parent} AS p WHERE {same})
	$query$, names) INTO missing, example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_foreign_key(jsonb)
	IS 'for snowflake_migrate.verify(): rows that refer to rows that are not there';

/*
 * The foreign keys of a table, and those that lead to it from tables that are not merged: triggers that check them may
 * have been off.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_foreign_keys(
	run_ bigint,
	no_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	relations CONSTANT oid[] := ARRAY(
		SELECT o.oid
		FROM snowflake_migrate_internal.plan_tables AS p
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(p.relation) AS o (oid)
		WHERE p.run = run_ AND p.no = no_);
	fk record;
BEGIN
	FOR fk IN
		SELECT f.conname, snowflake_migrate_internal.foreign_key_names(f.oid) AS names
		FROM (
			SELECT c.oid, c.conname
			FROM pg_constraint AS c
			WHERE c.conrelid = ANY (relations) AND c.contype = 'f' AND c.conparentid = 0
			UNION
			SELECT c.oid, c.conname
			FROM unnest(relations) AS o (oid)
				CROSS JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(o.oid) AS c
			WHERE c.conparentid = 0
				AND coalesce(pg_partition_root(c.conrelid), c.conrelid) <> ALL (ARRAY(
					SELECT m.relation::oid FROM snowflake_migrate_internal.merged_tables(run_) AS m))
		) AS f
		ORDER BY f.conname
	LOOP
		SELECT v.missing, v.example INTO count, example
			FROM snowflake_migrate_internal.verify_foreign_key(fk.names) AS v;
		IF count > 0 THEN
			problem := format('rows that the foreign key %I refers to are not there', fk.conname);
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_foreign_keys(bigint, int)
	IS 'for snowflake_migrate.verify(): whether the rows that others refer to are there';

/* Rows of the target that are not what policies made of them. */
CREATE FUNCTION snowflake_migrate_internal.verify_changes(run_ bigint, no_ int, OUT count bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.target_change_names(run_, no_);
BEGIN
	IF names IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({v."merge o#"::text})
			FROM {change} AS v LEFT JOIN {target} AS t ON ({t.@}) = ({v."merge o#"})
			WHERE v."merge source" = 0 AND (t.{"first_key"} IS NULL OR {differ})
		$query$, names) INTO count, example;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_changes(bigint, int)
	IS 'for snowflake_migrate.verify(): rows of the target that are not what policies made of them';

/* Rows whose combined values are not what comes of the rows of the sources, and the former ones of the target. */
CREATE FUNCTION snowflake_migrate_internal.verify_combined(run_ bigint, no_ int, OUT count bigint, OUT example text)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.combine_names(run_, no_);
BEGIN
	IF names IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({q."merge n#"::text})
			FROM ({combined}) AS q
				LEFT JOIN {change} AS v
					ON v."merge source" = q."merge source" AND ({v."merge o#"}) = ({q."merge o#"})
						AND v."merge combined"
			WHERE {differs}
		$query$, names) INTO count, example;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_combined(bigint, int)
	IS 'for snowflake_migrate.verify(): rows whose combined values are not what they should be';

/*
 * For an example: the least id of the target that is not in the map, and has a node number of the merge (is_made), or
 * was made since it began (x.k > {boundary}).
 */
CREATE FUNCTION snowflake_migrate_internal.verify_unmapped(names jsonb, condition text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	example text;
BEGIN
	names := snowflake_migrate_internal.with_marks(names);
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT min(x.k)
		FROM (SELECT t.{"first_key"} AS k FROM {target} AS t) AS x
		WHERE {condition} AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action = 'c' AND m.n1 = x.k)
	$query$, names || jsonb_build_object('condition', snowflake_migrate_internal.fill(condition, names))) INTO example;
	RETURN example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_unmapped(jsonb, text)
	IS 'for snowflake_migrate.verify(): an id of the target that is not in the map';

/*
 * What a table of the target has that it should not.  When the target has been opened again, or another merge has
 * followed, it may have more rows whose keys do not tell where they came from: then only what the merge's own node
 * numbers made, and copies of its rows, can be told.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_target(
	run_ bigint,
	no_ int,
	complete boolean,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	counts record;
	copies record;
	followed boolean;		-- by another merge
	former bigint;
	since bigint := 0;		-- of a table whose keys tell, rows that are neither the map's nor of before
	surplus bigint;
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	followed := EXISTS (SELECT FROM snowflake_migrate.runs AS r
						WHERE r.targets && run_row.targets AND r.started_at > run_row.started_at
							AND snowflake_migrate_internal.can_be_taken_back(r.state));
	SELECT v.* INTO counts FROM snowflake_migrate_internal.verify_counts(names, complete) AS v;
	IF run_row.target_in_use THEN
		RETURN QUERY SELECT 'rows are in the target that the merge wrote, and its map does not have', v.count, v.example
			FROM snowflake_migrate_internal.verify_written(names) AS v WHERE plan.kind <> 'none' AND v.count > 0;
	END IF;
	IF plan.kind = 'id' THEN
		since := greatest(counts.in_target[3] - counts.in_map[3] - plan.former_ahead, 0);
	END IF;
	former := counts.in_target[1] - counts.in_map[1] - since;
	SELECT v.* INTO copies FROM snowflake_migrate_internal.verify_copies(names) AS v
		WHERE since > 0 AND NOT run_row.target_in_use;
	/* Until it is done, the target is closed: what came since is as wrong as anything else. */
	surplus := greatest(former - plan.former_rows, 0)
		+ CASE run_row.state WHEN 'done' THEN 0 ELSE greatest(since - coalesce(copies.count, 0), 0) END;
	IF counts.in_target[2] > counts.in_map[2] THEN
		RETURN QUERY VALUES ('ids have a node number of the merge and are not in the map',
							 counts.in_target[2] - counts.in_map[2],
							 snowflake_migrate_internal.verify_unmapped(names, '{is_made}'));
	END IF;
	IF copies.count > 0 THEN
		RETURN QUERY VALUES ('rows are in the target twice, under another key', copies.count, copies.example);
	END IF;
	IF NOT run_row.target_in_use AND run_row.state <> 'done' AND former < plan.former_rows THEN
		RETURN QUERY VALUES ('rows that the target had are gone', plan.former_rows - former, NULL::text);
	END IF;
	IF run_row.target_in_use OR followed OR surplus = 0 THEN
		NULL;
	ELSIF plan.kind = 'id' OR run_row.state <> 'done' THEN
		/* Nothing tells which they are among rows as old as those that it had, or as new, or among copies. */
		RETURN QUERY VALUES ('rows are in the target that neither it nor a source had', surplus,
							 CASE WHEN since > 0 AND plan.former_ahead = 0 AND coalesce(copies.count, 0) = 0
								THEN snowflake_migrate_internal.verify_unmapped(names, 'x.k > {boundary}') END);
	ELSIF plan.kind = 'none' THEN
		RETURN QUERY SELECT 'rows are in the target more often than they should be', v.count, v.example
			FROM snowflake_migrate_internal.verify_surplus(run_, no_) AS v WHERE v.count > 0;
	END IF;
	RETURN QUERY SELECT 'rows of the target are not what policies made of them', v.count, v.example
		FROM snowflake_migrate_internal.verify_changes(run_, no_) AS v WHERE v.count > 0;
	RETURN QUERY SELECT 'combined values are not what the rows say: a source changed', v.count, v.example
		FROM snowflake_migrate_internal.verify_combined(run_, no_) AS v WHERE v.count > 0;
	RETURN QUERY SELECT v.problem, v.count, v.example
		FROM snowflake_migrate_internal.verify_foreign_keys(run_, no_) AS v;
	RETURN QUERY SELECT 'constraints or triggers are not as they were', NULL::bigint,
			snowflake_migrate_internal.differing_items(plan.former_state, x.state)
		FROM snowflake_migrate_internal.table_state(plan.relation) AS x (state)
		WHERE x.state <> plan.former_state;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_target(bigint, int, boolean)
	IS 'for snowflake_migrate.verify(): what a table of the target has that it should not';

/*
 * Rows of a table that clash in a deferrable unique constraint: no trigger has fired.  The maps let none of the run's
 * clash, but somebody may have written to a target that was to be closed.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_deferrable(
	run_ bigint,
	no_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
BEGIN
	FOR names IN
		SELECT jsonb_build_object('label', k.conname, 'table', snowflake_migrate_internal.only(k.conrelid::regclass),
				'columns', string_agg(quote_ident(a.attname), ', ' ORDER BY c.n),
				'given', CASE WHEN i.indnullsnotdistinct THEN 'true'
					ELSE string_agg(format('%I IS NOT NULL', a.attname), ' AND ') END)
			FROM snowflake_migrate_internal.plan_tables AS t
				CROSS JOIN LATERAL snowflake_migrate_internal.deferrable_constraints(t.relation) AS k
				JOIN pg_index AS i ON i.indexrelid = k.conindid
				CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS c (attnum, n)
				JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = c.attnum
			WHERE t.run = run_ AND t.no = no_ AND k.contype IN ('p', 'u')
			GROUP BY k.oid, k.conname, k.conrelid, i.indnullsnotdistinct
			ORDER BY k.conname
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT sum(q.n), min(q.example)
			FROM (
				SELECT count(*) - 1 AS n, format('%s', ROW ({columns})) AS example
				FROM {table} AS t WHERE {given} GROUP BY {columns} HAVING count(*) > 1
			) AS q
		$query$, names) INTO count, example;
		IF count > 0 THEN
			problem := format('rows clash in the deferrable constraint "%s"', names ->> 'label');
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_deferrable(bigint, int)
	IS 'for snowflake_migrate.verify(): rows that clash in a deferrable constraint';

/*
 * What is not as it should be after a merge (error), and what users have changed since (info), in these tables, or
 * (null) in all, by one snapshot.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_run(
	run_ bigint,
	tables int[],
	OUT severity text,
	OUT source name,
	OUT relation text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	sources name[];
	t record;
	s record;
	complete boolean;
	proved bigint := 0;
	to_prove CONSTANT bigint := (SELECT count(*) FROM snowflake_migrate_internal.merged_tables(run_) AS m
								 WHERE tables IS NULL OR m.no = ANY (tables));
	work_mem CONSTANT text := current_setting('work_mem');
BEGIN
	SELECT r.sources INTO STRICT sources FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	PERFORM snowflake_migrate_internal.allow_memory();
	FOR t IN
		SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = p.run AND s.no = p.no)
			AND (tables IS NULL OR p.no = ANY (tables))
		ORDER BY p.no
	LOOP
		relation := t.relation::text;
		complete := true;
		FOR s IN
			SELECT p.source FROM snowflake_migrate_internal.plan_sources AS p
			WHERE p.run = run_ AND p.no = t.no ORDER BY p.source
		LOOP
			source := sources[s.source];
			FOR severity, problem, count, example IN
				SELECT v.* FROM snowflake_migrate_internal.verify_source(
					snowflake_migrate_internal.verify_names(run_, t.no, s.source)) AS v
			LOOP
				complete := false;
				RETURN NEXT;
			END LOOP;
		END LOOP;
		source := NULL;
		severity := 'error';
		FOR problem, count, example IN
			SELECT v.* FROM snowflake_migrate_internal.verify_target(run_, t.no, complete) AS v
			UNION ALL
			SELECT v.* FROM snowflake_migrate_internal.verify_indexes(run_, t.no) AS v
			UNION ALL
			SELECT v.* FROM snowflake_migrate_internal.verify_deferrable(run_, t.no) AS v
		LOOP
			RETURN NEXT;
		END LOOP;
		proved := proved + 1;
		PERFORM snowflake_migrate_internal.tell_tables(run_, 'proved', proved, to_prove)
			WHERE snowflake_migrate_internal.is_time_to_tell();
	END LOOP;
	PERFORM set_config('work_mem', work_mem, true);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_run(bigint, int[])
	IS 'for snowflake_migrate.verify(): what is not as it should be';

/*
 * Tables that a source has by now, and had not when the run was planned: the run has brought nothing of them.  Not
 * those of a schema of which it has brought nothing at all, as an earlier run had.
 */
CREATE FUNCTION snowflake_migrate_internal.unplanned_tables(run_ bigint, OUT source name, OUT relation regclass)
RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH p AS MATERIALIZED (
		SELECT t.no, t.relation, t.mode, c.relname, c.relnamespace
		FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_
	),
	brought AS MATERIALIZED (
		SELECT p.no, p.relnamespace, s.source
		FROM p JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = p.no
	)
	SELECT s.source, p.relation
	FROM snowflake_migrate_internal.source_schemas(run_) AS s
		JOIN p ON p.relnamespace = s.target AND p.mode <> 'ignore'
		JOIN pg_class AS c ON c.relnamespace = s.schema AND c.relname = p.relname
			AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition
	WHERE (s.source_no, p.relnamespace) IN (SELECT b.source, b.relnamespace FROM brought AS b)
		AND (s.source_no, p.no) NOT IN (SELECT b.source, b.no FROM brought AS b)
	ORDER BY s.source_no, p.no
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unplanned_tables(bigint)
	IS 'for snowflake_migrate.verify(): tables of sources that a run does not know';

/*
 * A row for each thing that is not as it should be after a merge; none: it is proved.  Sources and target must not have
 * changed since: rows that somebody changed, or another merge, are named like any that the merge got wrong.
 *
 * The snapshot of the query that calls it may be older than what it looks at and locks: the proof has one of its own.
 */
CREATE FUNCTION snowflake_migrate.verify(
	run bigint,
	OUT source name,
	OUT relation text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
	SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
	SET array_nulls = on SET quote_all_identifiers = off SET timezone = 'UTC' SET lc_monetary = 'C'
AS $$
DECLARE
	run_row snowflake_migrate.runs;
BEGIN
	run_row := snowflake_migrate_internal.own_run(verify.run);
	/* The run's, until this returns. */
	PERFORM set_config('timezone', run_row.time_zone, true), set_config('lc_monetary', run_row.lc_monetary, true);
	IF run_row.state NOT IN ('verifying', 'done') THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('merge %s is %s', run_row.run, run_row.state);
	END IF;
	PERFORM snowflake_migrate_internal.refuse_lost_sources(run_row.run);
	PERFORM snowflake_migrate_internal.refuse_lost_columns(run_row.run);
	PERFORM snowflake_migrate_internal.refuse_maps(run_row.run);
	PERFORM snowflake_migrate_internal.refuse_code(run_row.run);
	RETURN QUERY SELECT v.source, v.relation, v.problem, v.count, v.example
		FROM snowflake_migrate_internal.verify_run(run_row.run, NULL) AS v WHERE v.severity = 'error'
		UNION ALL
		SELECT u.source, u.relation::text, 'the source did not have this table when it was merged', NULL, NULL
		FROM snowflake_migrate_internal.unplanned_tables(run_row.run) AS u;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.verify(bigint) IS 'proves a merge row by row: what is not as it should be';
