/*
 * Taking a merge back: the rows that it brought are deleted, children before parents, in batches that commit; rows and
 * ranks that it replaced come back.  That nothing newer refers to them is known before the first is deleted, since ON
 * DELETE CASCADE would remove it silently, and without triggers it would be left dangling.  Each batch locks its rows,
 * and looks again, as users write meanwhile.
 *
 * A row that changed since it was copied has another xmin than the transactions that copied it, unless a later merge
 * changed it, and has given back what it had (as_left).  Of a table without a key, the run's rows are those whose xmin
 * is one of these transactions, and that refer to a row that the run brought.
 *
 * rollback_start() refuses what would lose something: newer references, rows that changed, ranks and values that were
 * given away since, rows that come back and refer to nothing, rows of tables without a key that refer to nothing.
 * Where it goes on, it does so for what is left (left_of_map).
 */

/* A condition on the entries m of a table's map whose rows are still to be taken back; false: none. */
CREATE FUNCTION snowflake_migrate_internal.left_of_map(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN r.state <> 'rolling back' THEN 'true' ELSE coalesce((
			SELECT '(' || string_agg(format('(m.source = %s AND %s)', s.source, coalesce(n.of_map, 'true')), ' OR '
									 ORDER BY s.source) || ')'
			FROM snowflake_migrate_internal.plan_sources AS s
				CROSS JOIN LATERAL snowflake_migrate_internal.not_copied(run_, no_, s.source) AS n
			WHERE s.run = run_ AND s.no = no_ AND NOT s.done), 'false') END
	FROM snowflake_migrate.runs AS r
	WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.left_of_map(bigint, int)
	IS 'for snowflake_migrate.rollback(): which rows of a table are still to be taken back';

/* The tables of which something is still to be taken back; of_map: which entries m of the map that is. */
CREATE FUNCTION snowflake_migrate_internal.tables_left(
	run_ bigint,
	OUT no int,
	OUT relation regclass,
	OUT kind text,
	OUT key name[],
	OUT of_map text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.no, t.relation, t.kind, t.key, l.of_map
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.left_of_map(run_, t.no)) AS l (of_map)
	WHERE l.of_map <> 'false'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tables_left(bigint)
	IS 'for snowflake_migrate.rollback(): the tables of which something is to be taken back';

/* A query for the target's rows in which policies changed something, as they will be when it is taken back. */
CREATE FUNCTION snowflake_migrate_internal.target_rows_before(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.with_generated(p.relation, snowflake_migrate_internal.fill($query$
			SELECT {others}, f.*
			FROM {target} AS t
				JOIN {change} AS v ON v."merge source" = 0 AND ({t.@}) = ({v."merge o#"})
				CROSS JOIN LATERAL (SELECT {before}) AS f ({columns})
		$query$, snowflake_migrate_internal.target_change_names(run_, no_) || jsonb_build_object(
			'others', (SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum)
					   FROM snowflake_migrate_internal.columns_of(p.relation) AS a
					   WHERE a.attgenerated = '' AND NOT EXISTS (
							SELECT FROM snowflake_migrate_internal.plan_columns AS k
							WHERE k.run = run_ AND k.no = no_ AND k.name = a.attname AND k.in_target)))))
	FROM snowflake_migrate_internal.plan_tables AS p
	WHERE p.run = run_ AND p.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.target_rows_before(bigint, int)
	IS 'for snowflake_migrate.rollback(): the rows of the target that changed, as they were';

/*
 * A query for the target's rows that a run has replaced, as they will be when they come back: those that are left, or
 * (of_map) those of entries m of the map for which a condition holds.  What a column was is not known of one that was
 * added since.  Null: there are none.
 */
CREATE FUNCTION snowflake_migrate_internal.former_rows(run_ bigint, no_ int, of_map text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.fill($query$
			SELECT {columns}
			FROM {former} AS f JOIN {target} AS t ON ({t.@}) = ({f.@})
			WHERE EXISTS (SELECT FROM {map} AS m WHERE m.action = 'r' AND {of_map} AND ({m.n#}) = ({f.@}))
		$query$, n.names || jsonb_build_object(
			'of_map', coalesce(former_rows.of_map, snowflake_migrate_internal.left_of_map(run_, no_)), 'columns', (
			SELECT string_agg(format(CASE WHEN o.attname IS NULL THEN 't.%I' ELSE 'f.%I' END, a.attname), ', '
							  ORDER BY a.attnum)
			FROM pg_attribute AS a
				LEFT JOIN pg_attribute AS o ON o.attrelid = f.oid AND o.attname = a.attname AND NOT o.attisdropped
			WHERE a.attrelid = (n.names ->> 'oid')::oid AND a.attnum > 0 AND NOT a.attisdropped)))
	FROM (SELECT snowflake_migrate_internal.names(run_, no_)) AS n (names)
		CROSS JOIN LATERAL (SELECT to_regclass(n.names ->> 'former')::oid) AS f (oid)
	WHERE f.oid IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.former_rows(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): the rows of the target that were replaced, as they come back';

/*
 * The foreign keys, of whatever table, that lead to the tables of a run: which table refers (child), and how (refers,
 * what follows FROM {child} AS x in a query for its rows that refer to a row that the run brought).
 *
 * To any such row that is left; or to one of the entries of one map (parent_no) for which a condition holds (of_map).
 * Then, a foreign key to the key is compared with the map, since the row may be deleted by now.  One to other columns
 * may also hold a value that the rollback takes away from a row of the target.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys_to_run(
	run_ bigint,
	parent_no int,
	of_map text,
	OUT child regclass,
	OUT object text,
	OUT refers text) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass,
		f.conname || CASE WHEN w.before IS NULL THEN '' ELSE ' (values that do not stay)' END,
		snowflake_migrate_internal.fill(w.refers, n.names || to_jsonb(v) || jsonb_build_object('before', w.before))
	FROM snowflake_migrate_internal.plan_tables AS t
		CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
		JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(o.oid) AS f ON f.conparentid = 0
		CROSS JOIN LATERAL (
			SELECT array_agg(b.attname) <@ t.key AS by_key
			FROM pg_attribute AS b WHERE b.attrelid = f.confrelid AND b.attnum = ANY (f.confkey)) AS i
		CROSS JOIN LATERAL (
			SELECT string_agg(snowflake_migrate_internal.compared(
					k.operator, format('p.%I', b.attname), c.value), ' AND ' ORDER BY k.n) AS of_parent,
				string_agg(snowflake_migrate_internal.compared(
					k.operator, 'm.n' || array_position(t.key, b.attname), c.value), ' AND ' ORDER BY k.n) AS of_entry,
				string_agg(snowflake_migrate_internal.compared(
					k.parent_operator, format('p.%I', b.attname), format('b.%I', b.attname)), ' AND '
					ORDER BY k.n) AS stays
			FROM unnest(f.conkey, f.confkey, f.conpfeqop, f.conppeqop)
					WITH ORDINALITY AS k (attnum, parent_attnum, operator, parent_operator, n)
				JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
				JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
				CROSS JOIN LATERAL snowflake_migrate_internal.collated(
					format('x.%I', a.attname), a.attcollation, b.attcollation) AS c (value)) AS v
		CROSS JOIN LATERAL (
			SELECT snowflake_migrate_internal.names(run_, t.no) || jsonb_build_object(
				'of_map', coalesce(of_map, snowflake_migrate_internal.left_of_map(run_, t.no))) AS names) AS n
		CROSS JOIN LATERAL (
			SELECT CASE WHEN parent_no IS NULL OR NOT i.by_key THEN $query$
					JOIN {target} AS p ON {of_parent}
					JOIN {map} AS m ON m.action = 'c' AND {of_map} AND ({m.n#}) = ({p.@})
				$query$ ELSE $query$
					JOIN {map} AS m ON m.action = 'c' AND {of_map} AND {of_entry}
				$query$ END, NULL
			UNION ALL
			SELECT $query$
					JOIN {target} AS p ON {of_parent}
					JOIN ({before}) AS b ON ({b.@}) = ({p.@}) AND ({stays}) IS NOT TRUE
				$query$, o.before
			FROM (
					SELECT snowflake_migrate_internal.former_rows(run_, t.no, of_map) WHERE NOT i.by_key
					UNION ALL
					SELECT snowflake_migrate_internal.target_rows_before(run_, t.no) WHERE NOT i.by_key
				) AS o (before)
			WHERE o.before IS NOT NULL
		) AS w (refers, before)
	WHERE t.run = run_ AND t.kind <> 'none'
		/* All, or one by the primary key. */
		AND t.no BETWEEN coalesce(parent_no, 0) AND coalesce(parent_no, 2147483647)
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys_to_run(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): foreign keys that lead to the tables of a run';

/*
 * The same for the declared references of the tables of the run; or (of_keyless) for all references of its tables
 * without a key, by the maps alone, as the rows that they lead to may be gone.
 */
CREATE FUNCTION snowflake_migrate_internal.declared_references_to_run(
	run_ bigint,
	parent_no int,
	of_map text,
	of_keyless boolean,
	OUT child regclass,
	OUT object text,
	OUT refers text) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT k.relation, r.name,
		snowflake_migrate_internal.fill(
			CASE WHEN r.path IS NOT NULL THEN $query$
				CROSS JOIN LATERAL (
					SELECT snowflake_migrate_internal.json_id(q.part)
					FROM jsonb_path_query(x.{"column"}::jsonb, {'path'}, silent => true) AS q (part)) AS i (id)
			$query$ WHEN r.elements THEN $query$
				CROSS JOIN LATERAL (SELECT e.id FROM {elements_of}) AS i (id)
			$query$ ELSE $query$
				CROSS JOIN LATERAL (SELECT {id_of_column}) AS i (id)
			$query$ END || $query$
				JOIN {map} AS m ON m.action = 'c' AND m.n1 = i.id AND {of_map}
			$query$
			/* As it was tried when it was declared: under the table's name. */
			|| CASE WHEN r.condition IS NULL THEN '' ELSE $query$
					AND (SELECT ({condition}) IS TRUE FROM (SELECT x.*) AS {"child_name"})
			$query$ END,
			snowflake_migrate_internal.names(run_, r.referenced) || jsonb_build_object(
				'column', r.name, 'path', r.path, 'condition', r.condition, 'child_name', c.relname,
				'id_of_column', snowflake_migrate_internal.id_of(format('x.%I', r.name), a.atttypid),
				'elements_of', snowflake_migrate_internal.elements_of(format('x.%I', r.name), a.atttypid),
				'of_map', CASE WHEN of_keyless THEN 'true'
					ELSE coalesce(of_map, snowflake_migrate_internal.left_of_map(run_, r.referenced)) END))
	FROM snowflake_migrate_internal.plan_references AS r
		CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, r.no) AS k
		JOIN pg_class AS c ON c.oid = k.relation
		JOIN pg_attribute AS a ON a.attrelid = k.relation AND a.attname = r.name
	WHERE r.run = run_ AND (parent_no IS NULL OR r.referenced = parent_no)
		AND CASE WHEN of_keyless THEN k.kind = 'none' ELSE r.declared END
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = r.referenced)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.declared_references_to_run(bigint, int, text, boolean)
	IS 'for snowflake_migrate.rollback(): declared references that lead to the tables of a run';

/*
 * The names in a query for the rows x of a table that are not of the run: child, how an example of them is shown, and
 * the condition is_newer.  A row that took a source's values is of the run until it has its former ones again.
 */
CREATE FUNCTION snowflake_migrate_internal.newer_names(run_ bigint, child_ regclass) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT jsonb_build_object(
		'child', snowflake_migrate_internal.only(child_),
		'example', CASE WHEN k.key <> '{}' THEN snowflake_migrate_internal.key_text('x.@', k.key)
			ELSE 'ROW (x.*)::text' END,
		'is_newer', CASE WHEN k.kind <> 'none' THEN snowflake_migrate_internal.fill($query$
				NOT EXISTS (SELECT FROM {map} AS m WHERE m.action IN ('c', 'r') AND {left} AND ({m.n#}) = ({x.@}))
			$query$, snowflake_migrate_internal.names(run_, k.no) || jsonb_build_object(
				/* What was taken back may have been written again. */
				'left', snowflake_migrate_internal.left_of_map(run_, k.no)))
			WHEN k.no IS NULL THEN 'true'
			ELSE format('x.xmin <> ALL (%L::xid[])', snowflake_migrate_internal.run_transactions(run_)) END)
	FROM (SELECT) AS one
		LEFT JOIN snowflake_migrate_internal.plan_tables AS k ON k.run = run_ AND k.relation = child_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.newer_names(bigint, regclass)
	IS 'for snowflake_migrate.rollback(): the names in the queries for rows that are not of a run';

/* A query for the rows that a run brought into a table without a key, as (tableoid, ctid); null: nothing tells them. */
CREATE FUNCTION snowflake_migrate_internal.keyless_rows(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(snowflake_migrate_internal.fill(
			'SELECT x.tableoid, x.ctid FROM {child} AS x {refers} WHERE NOT ({is_newer})',
			snowflake_migrate_internal.newer_names(run_, t.relation) || jsonb_build_object('refers', f.refers)),
		' UNION ')
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN (
			SELECT * FROM snowflake_migrate_internal.foreign_keys_to_run(run_, NULL, NULL)
			UNION ALL
			SELECT * FROM snowflake_migrate_internal.declared_references_to_run(run_, NULL, NULL, true)
		) AS f ON f.child = t.relation
	WHERE t.run = run_ AND t.no = no_ AND t.kind = 'none'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keyless_rows(bigint, int)
	IS 'for snowflake_migrate.rollback(): the rows of a run in a table without a key';

/* As foreign_keys_to_run(), for those that lead to other columns of its tables without a key. */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys_to_keyless(
	run_ bigint,
	parent_no int,
	OUT child regclass,
	OUT object text,
	OUT refers text) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass, f.conname,
		snowflake_migrate_internal.fill($query$
				JOIN {target} AS p ON {same} AND (p.tableoid, p.ctid) IN ({rows})
			$query$, snowflake_migrate_internal.names(run_, t.no) || jsonb_build_object('rows', k.rows)
				|| to_jsonb(v))
	FROM snowflake_migrate_internal.plan_tables AS t
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.keyless_rows(run_, t.no)) AS k (rows)
		CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
		JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(o.oid) AS f ON f.conparentid = 0
		CROSS JOIN LATERAL (
			SELECT snowflake_migrate_internal.refers_by(f.oid, 'p', 'x') AS same) AS v
	WHERE t.run = run_ AND t.kind = 'none' AND k.rows IS NOT NULL
		AND t.no BETWEEN coalesce(parent_no, 0) AND coalesce(parent_no, 2147483647)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys_to_keyless(bigint, int)
	IS 'for snowflake_migrate.rollback(): foreign keys that lead to tables without a key';

/*
 * Of the rows that a run brought into a table without a key, how many nothing tells from others (untold; null: none can
 * be told), and how many are not there any more as it wrote them (gone).
 */
CREATE FUNCTION snowflake_migrate_internal.untold_rows(run_ bigint, no_ int, OUT untold bigint, OUT gone bigint)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	rows CONSTANT text := snowflake_migrate_internal.keyless_rows(run_, no_);
	brought CONSTANT bigint := (SELECT coalesce(sum(s.rows_done), 0) FROM snowflake_migrate_internal.plan_sources AS s
								WHERE s.run = run_ AND s.no = no_);
	written bigint;
	told bigint := 0;
BEGIN
	EXECUTE snowflake_migrate_internal.fill('SELECT count(*) FROM {target} AS t WHERE t.xmin = ANY ({''xids''}::xid[])',
		snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'xids', snowflake_migrate_internal.run_transactions(run_))) INTO written;
	IF rows IS NOT NULL THEN
		/* A row may refer to several. */
		EXECUTE format('SELECT count(*) FROM (SELECT DISTINCT * FROM (%s) AS r) AS r', rows) INTO told;
	END IF;
	gone := greatest(brought - written, 0);
	/* Where more rows than were copied look like the merge's, triggers wrote some. */
	IF told <= brought THEN
		untold := written - told;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.untold_rows(bigint, int)
	IS 'for snowflake_migrate.rollback(): rows of a table without a key that nothing tells from others';

/* What refers to the rows that a run brought and is not of that run: one row for each reference. */
CREATE FUNCTION snowflake_migrate_internal.newer_references(
	run_ bigint,
	parent_no int,
	of_map text,
	OUT relation regclass,
	OUT object text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	ref record;
BEGIN
	FOR ref IN
		SELECT * FROM snowflake_migrate_internal.foreign_keys_to_run(run_, parent_no, of_map)
		UNION ALL
		SELECT * FROM snowflake_migrate_internal.declared_references_to_run(run_, parent_no, of_map, false)
		UNION ALL
		SELECT * FROM snowflake_migrate_internal.foreign_keys_to_keyless(run_, parent_no)
	LOOP
		/* A row may refer to several. */
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), string_agg(y.example, '; ') FILTER (WHERE y.n <= 3)
			FROM (
				SELECT z.example, row_number() OVER (ORDER BY z.example) AS n
				FROM (
					SELECT DISTINCT left({example}, 100) AS example
					FROM {child} AS x {refers}
					WHERE {is_newer}
				) AS z
			) AS y
		$query$, snowflake_migrate_internal.newer_names(run_, ref.child)
			|| jsonb_build_object('refers', ref.refers)) INTO count, example;
		IF count > 0 THEN
			relation := ref.child;
			object := ref.object;
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.newer_references(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): what refers to the rows of a run';

/* Raises an error where anything does. */
CREATE FUNCTION snowflake_migrate_internal.refuse_newer(run_ bigint, parent_no int, of_map text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s, %s: %s rows, for example %s.', r.relation, r.object, r.count, r.example),
					  E'\n' ORDER BY r.relation::text, r.object)
		INTO problems
		FROM snowflake_migrate_internal.newer_references(run_, parent_no, of_map) AS r;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			MESSAGE = format('cannot roll back merge %s because other rows refer to its rows', run_),
			DETAIL = problems,
			HINT = 'Delete these rows, or let them refer to others.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_newer(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): an error where newer rows refer to those of a run';

/* Raises an error where a later merge has found references by the maps of a run (merged_before()). */
CREATE FUNCTION snowflake_migrate_internal.refuse_followed(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	later bigint;
BEGIN
	SELECT l.run INTO later
		FROM snowflake_migrate.runs AS r
			JOIN snowflake_migrate.runs AS l ON l.started_at > r.started_at AND l.targets && r.targets
				AND snowflake_migrate_internal.can_be_taken_back(l.state)
				/* Nobody else may use the maps of a run that the current role takes back. */
				AND snowflake_migrate_internal.is_trusted(l.merged_by)
			CROSS JOIN LATERAL snowflake_migrate_internal.schemas_of(r.schemas, r.targets) AS s
			JOIN LATERAL snowflake_migrate_internal.schemas_of(l.schemas, l.targets) AS o
				ON (o.schema, o.target) = (s.schema, s.target)
		WHERE r.run = run_
		ORDER BY l.run DESC LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('cannot roll back merge %s because merge %s has found references by its maps',
							 run_, later),
			HINT = format('Take merge %s back first.', later);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_followed(bigint)
	IS 'for snowflake_migrate.rollback(): an error where a later merge needs the maps of a run';

/*
 * Raises an error where rows that another merge has replaced refer to rows of a run: when that one is taken back, they
 * come back, and would dangle.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_needed(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	ref record;
	n bigint;
BEGIN
	FOR ref IN
		SELECT f.*, o.run AS other, k.no AS other_no
		FROM (
				SELECT * FROM snowflake_migrate_internal.foreign_keys_to_run(run_, NULL, NULL)
				UNION ALL
				SELECT * FROM snowflake_migrate_internal.declared_references_to_run(run_, NULL, NULL, false)
			) AS f
			JOIN snowflake_migrate_internal.plan_tables AS k ON k.relation = f.child AND k.run <> run_
			JOIN snowflake_migrate.runs AS o ON o.run = k.run
		WHERE snowflake_migrate_internal.can_be_taken_back(o.state)
			AND snowflake_migrate_internal.has_run_table(k.run, 'map_' || k.no)
			/* Else, it will be refused to bring them back. */
			AND snowflake_migrate_internal.has_run_table(k.run, 'former_' || k.no)
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) FROM ({former_rows}) AS x {refers}
		$query$, jsonb_build_object('refers', ref.refers,
			'former_rows', snowflake_migrate_internal.former_rows(ref.other, ref.other_no, NULL))) INTO n;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use',
				MESSAGE = format('cannot roll back merge %s because rows that merge %s has replaced refer to its rows',
								 run_, ref.other),
				DETAIL = format('Table %s, %s: %s rows.', ref.child, ref.object, n),
				HINT = format('Take merge %s back first.', ref.other);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_needed(bigint)
	IS 'for snowflake_migrate.rollback(): an error where rows that another merge replaced refer to those of a run';

/*
 * A query for the rows of the target that a run is about, by their keys, n1 ..., and what it has done: the action of an
 * entry m of its map for which a condition holds, or v, it changed values of the row, or n, also one by which others
 * may find the row.
 */
CREATE FUNCTION snowflake_migrate_internal.touched_rows(run_ bigint, no_ int, of_map text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.fill(
		'SELECT {m.n#}, m.action FROM {map} AS m WHERE m.action IN (''c'', ''r'', ''m'', ''k'') AND {of_map}'
			|| CASE WHEN snowflake_migrate_internal.has_run_table(run_, 'change_' || no_)
				THEN ' UNION ALL SELECT {v."merge o#"}, (CASE WHEN {is_renamed} THEN ''n'' ELSE ''v'' END)::"char" '
					'FROM {change} AS v WHERE v."merge source" = 0'
				ELSE '' END
			|| CASE WHEN snowflake_migrate_internal.has_run_table(run_, 'rank_' || no_)
				THEN ' UNION ALL SELECT {r.n#}, ''v'' FROM {rank} AS r' ELSE '' END,
		snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('of_map', of_map, 'is_renamed', (
			SELECT coalesce(string_agg(format('v.%I IS NOT NULL', c.name), ' OR '), 'false')
			FROM snowflake_migrate_internal.plan_columns AS c
			WHERE c.run = run_ AND c.no = no_ AND c.changed_by IN ('suffix', 'next_free'))))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.touched_rows(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): the rows that a run has brought, replaced, found or changed';

/*
 * Raises an error where a later merge has replaced or changed rows that a run has: the values that it would give back
 * are the run's.  Likewise where rows that the run brought stand for those of its sources, which it did not copy.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_replaced(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	both_have record;
	n bigint;
BEGIN
	FOR both_have IN
		SELECT p.no, p.relation, p.of_map, k.run AS later, k.no AS later_no
		FROM snowflake_migrate.runs AS r
			CROSS JOIN LATERAL snowflake_migrate_internal.tables_left(run_) AS p
			CROSS JOIN LATERAL snowflake_migrate_internal.other_runs(run_, p.no) AS k
			JOIN snowflake_migrate.runs AS o ON o.run = k.run
		WHERE r.run = run_ AND o.started_at > r.started_at
			AND snowflake_migrate_internal.can_be_taken_back(o.state)
			AND snowflake_migrate_internal.has_run_table(k.run, 'map_' || k.no)
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(DISTINCT ({m.n#}))
			FROM ({rows}) AS m JOIN ({later_rows}) AS o ON ({o.n#}) = ({m.n#})
			WHERE m.action IN ('c', 'r') AND o.action IN ('r', 'm', 'k')
				OR m.action IN ('r', 'v', 'n') AND o.action IN ('r', 'v', 'n')
				OR m.action = 'n' AND o.action IN ('m', 'k')
		$query$, snowflake_migrate_internal.names(run_, both_have.no) || jsonb_build_object(
			'rows', snowflake_migrate_internal.touched_rows(run_, both_have.no, both_have.of_map),
			'later_rows', snowflake_migrate_internal.touched_rows(both_have.later, both_have.later_no, 'true'))) INTO n;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use',
				MESSAGE = format('cannot roll back merge %s because merge %s has found or changed rows of it',
								 run_, both_have.later),
				DETAIL = format('Table %s: %s rows.', both_have.relation, n),
				HINT = format('Take merge %s back first.', both_have.later);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_replaced(bigint)
	IS 'for snowflake_migrate.rollback(): an error where a later merge has replaced rows of a run';

/* Whether rows that the target had may have other values, which come back. */
CREATE FUNCTION snowflake_migrate_internal.gives_back_values(run_ bigint, no_ int) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT to_regclass(snowflake_migrate_internal.relation(run_, 'rank_' || no_)) IS NOT NULL
		OR to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || no_)) IS NOT NULL
		OR snowflake_migrate_internal.target_change_names(run_, no_) IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.gives_back_values(bigint, int)
	IS 'for snowflake_migrate.rollback(): whether rows that the target had may have other values';

/* Raises an error where the caller lacks a right to the tables. */
CREATE FUNCTION snowflake_migrate_internal.refuse_denied_rollback(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	lacking text[];
	grants text;
	problems text;
BEGIN
	SELECT string_agg(format('Role %I has no right to %s on table %s.', current_user, d.denied, p.relation),
					  E'\n' ORDER BY p.no),
			array_agg(p.relation::text ORDER BY p.no),
			string_agg(format('GRANT %s ON %s TO %I;', d.denied, p.relation, current_user), ' ' ORDER BY p.no)
		INTO problems, lacking, grants
		FROM snowflake_migrate_internal.tables_left(run_) AS p,
			LATERAL (
				SELECT string_agg(g.privilege, ', ')
				FROM unnest('{SELECT,UPDATE,DELETE}'::text[]) AS g (privilege)
				WHERE NOT has_table_privilege(p.relation, g.privilege)
			) AS d (denied)
		WHERE d.denied IS NOT NULL
			AND (p.kind <> 'none' OR snowflake_migrate_internal.keyless_rows(run_, p.no) IS NOT NULL);
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied for table %s', lacking[1]),
			DETAIL = problems,
			HINT = grants;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_denied_rollback(bigint)
	IS 'for snowflake_migrate.rollback(): an error where the caller lacks a right';

/* Raises an error where a publication keeps rows from being taken back. */
CREATE FUNCTION snowflake_migrate_internal.refuse_published(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s: %s.', p.relation, k.problem), E'\n' ORDER BY p.no)
		INTO problems
		FROM snowflake_migrate_internal.tables_left(run_) AS p
			CROSS JOIN LATERAL (SELECT coalesce(
				snowflake_migrate_internal.kept_by_publication(p.relation, 'DELETE'),
				CASE WHEN snowflake_migrate_internal.gives_back_values(run_, p.no)
					THEN snowflake_migrate_internal.kept_by_publication(p.relation, 'UPDATE') END)) AS k (problem)
		WHERE k.problem IS NOT NULL;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('cannot roll back merge %s because of a publication', run_),
			DETAIL = problems,
			HINT = 'Give each a replica identity, by ALTER TABLE ... REPLICA IDENTITY FULL or USING INDEX.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_published(bigint)
	IS 'for snowflake_migrate.rollback(): an error where a publication keeps rows';

/* Raises an error where columns were renamed: the plan knows them by their names. */
CREATE FUNCTION snowflake_migrate_internal.refuse_renamed(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Column %I of table %s is called %I.', c.name, p.relation, a.attname), E'\n'
					  ORDER BY p.no, c.position)
		INTO problems
		FROM snowflake_migrate_internal.tables_left(run_) AS p
			JOIN snowflake_migrate_internal.plan_columns AS c ON c.run = run_ AND c.no = p.no
			/* After a dump and restore, others may be at its place. */
			JOIN pg_attribute AS a ON a.attrelid = p.relation AND a.attnum = c.position AND NOT a.attisdropped
		WHERE NOT snowflake_migrate_internal.has_columns(p.relation, ARRAY[c.name])
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_columns AS k
				WHERE (k.run, k.no, k.name) = (run_, p.no, a.attname));
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('cannot roll back merge %s because columns were renamed since', run_),
			DETAIL = problems,
			HINT = 'Give them their former names until the merge is taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_renamed(bigint)
	IS 'for snowflake_migrate.rollback(): an error where columns were renamed';

/* Raises an error where key columns were dropped. */
CREATE FUNCTION snowflake_migrate_internal.refuse_without_key(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s has no column "%s" any more.', p.relation, k.name), E'\n' ORDER BY p.no, k.n)
		INTO problems
		FROM snowflake_migrate_internal.tables_left(run_) AS p
			CROSS JOIN LATERAL unnest(p.key) WITH ORDINALITY AS k (name, n)
		WHERE NOT snowflake_migrate_internal.has_columns(p.relation, ARRAY[k.name]);
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('cannot roll back merge %s because key columns were dropped since', run_),
			DETAIL = problems,
			HINT = 'The rows that it brought cannot be told from others there. Where such a table is dropped, too, the '
				'rest can be taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_without_key(bigint)
	IS 'for snowflake_migrate.rollback(): an error where key columns were dropped';

/* Raises an error where nothing tells the rows of a table without a key from others. */
CREATE FUNCTION snowflake_migrate_internal.refuse_untold(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s has no key by which %s rows of the merge could be told from others.', p.relation,
							 coalesce(u.untold::text, 'all')), E'\n' ORDER BY p.no)
		INTO problems
		FROM snowflake_migrate_internal.tables_left(run_) AS p
			CROSS JOIN LATERAL snowflake_migrate_internal.untold_rows(run_, p.no) AS u
		WHERE p.kind = 'none' AND u.untold IS DISTINCT FROM 0;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('cannot roll back all of merge %s', run_),
			DETAIL = problems,
			HINT = 'Call snowflake_migrate.rollback() with force => true to leave these rows where they are.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_untold(bigint)
	IS 'for snowflake_migrate.rollback(): an error where nothing tells rows from others';

/*
 * What must be unique in the rows of one table that come back, as constraint_names() takes it; and which of its
 * columns the run has ranked.  What was declared then may have been declared otherwise since.
 */
CREATE FUNCTION snowflake_migrate_internal.constraints_back(
	run_ bigint,
	no_ int,
	OUT constraint_ jsonb,
	OUT ranked name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT to_jsonb(u), (
			SELECT c.name FROM snowflake_migrate_internal.plan_columns AS c
			WHERE c.run = run_ AND c.no = no_ AND c.changed_by = 'rerank'
				AND snowflake_migrate_internal.column_expression(c.name) = ANY (u.expressions))
	FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS u
	WHERE u.policy <> 'match' AND NOT u.is_key
	UNION ALL
	SELECT to_jsonb(e), NULL
	FROM snowflake_migrate_internal.plan_tables AS t
		CROSS JOIN LATERAL snowflake_migrate_internal.exclusion_constraints(t.relation) AS e
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.constraints_back(bigint, int)
	IS 'for snowflake_migrate.rollback(): what must be unique in rows that come back';

/* Raises an error where newer rows have ranks that come back. */
CREATE FUNCTION snowflake_migrate_internal.refuse_ranks(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	t record;
	position_ int;
	n bigint;
	example text;
BEGIN
	FOR t IN
		SELECT p.no, p.relation, c.ranked, c.constraint_, c.constraint_ ->> 'label' AS label,
			ARRAY(SELECT jsonb_array_elements_text(c.constraint_ -> 'expressions')) AS expressions
		FROM snowflake_migrate_internal.tables_left(run_) AS p,
			snowflake_migrate_internal.constraints_back(run_, p.no) AS c
		WHERE p.kind <> 'none' AND c.ranked IS NOT NULL
			AND to_regclass(snowflake_migrate_internal.relation(run_, 'rank_' || p.no)) IS NOT NULL
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
						WHERE s.run = run_ AND s.no = p.no AND s.copied_by <> '{}')
	LOOP
		position_ := array_position(t.expressions, snowflake_migrate_internal.column_expression(t.ranked));
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH q AS (
				SELECT {@ AS t#}, {values} FROM {target} AS {"name"} WHERE {indexed}
			)
			SELECT count(*), min({t.t#::text})
			FROM {rank} AS r
				JOIN q AS f ON ({f.t#}) = ({r.n#}) AND f.e{position} IS NOT DISTINCT FROM r.new
				JOIN q AS t ON t.e{position} = r.old{and_same}
			WHERE NOT EXISTS (SELECT FROM {rank} AS o WHERE ({o.n#}) = ({t.t#}) AND t.e{position} = o.new)
				/* A row that has taken the place of one without a rank has no former rank. */
				AND NOT EXISTS (
					SELECT FROM {map} AS m
					WHERE ({m.n#}) = ({t.t#})
						AND (m.action = 'c'
							 OR m.action = 'r' AND NOT EXISTS (SELECT FROM {rank} AS o WHERE ({o.n#}) = ({t.t#}))))
		$query$, snowflake_migrate_internal.constraint_names(run_, t.no, t.constraint_) || jsonb_build_object(
			'position', position_,
			'and_same', (SELECT coalesce(string_agg(format(' AND t.e%s IS NOT DISTINCT FROM f.e%s', i, i), ''), '')
						 FROM generate_subscripts(t.expressions, 1) AS i WHERE i <> position_))) INTO n, example;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'unique_violation',
				MESSAGE = format('cannot roll back merge %s because newer rows have ranks that come back', run_),
				DETAIL = format('Table %s, "%s": %s rows, for example %s.', t.relation, t.label, n, example),
				HINT = format('Give these rows other values of column "%s".', t.ranked);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_ranks(bigint)
	IS 'for snowflake_migrate.rollback(): an error where newer rows have ranks that come back';

/*
 * Raises an error where newer rows have what must be unique in what comes back: {rows}, an item after FROM; with
 * {and_newer}, a condition on t more, and called {come_back}.  The other names are those of a constraint.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_taken(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	n bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min({t.t#::text})
		FROM (SELECT {values} FROM {rows} AS {"name"} WHERE {indexed}) AS w JOIN {taken} AS t ON {same}
		WHERE NOT EXISTS (SELECT FROM {map} AS m WHERE m.action IN ('c', 'r') AND ({m.n#}) = ({t.t#})){and_newer}
	$query$, names) INTO n, example;
	IF n > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'unique_violation',
			MESSAGE = format('cannot roll back merge %s because newer rows clash with %s that come back',
							 names ->> 'run', names ->> 'come_back'),
			DETAIL = format('Table %s, "%s": %s rows, for example %s.',
							names ->> 'table', names ->> 'label', n, example),
			HINT = 'Give these rows other values.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_taken(jsonb)
	IS 'for snowflake_migrate.rollback(): an error where newer rows have what comes back';

/* Raises an error where newer rows have what must be unique in rows that were replaced and come back. */
CREATE FUNCTION snowflake_migrate_internal.refuse_taken_rows(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.refuse_taken(c.names || jsonb_build_object(
			'rows', format('(%s)', f.rows), 'and_newer', '', 'come_back', 'rows'))
	FROM snowflake_migrate_internal.plan_tables AS p
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.former_rows(run_, p.no, NULL)) AS f (rows)
		CROSS JOIN LATERAL snowflake_migrate_internal.constraints_back(run_, p.no) AS u
		CROSS JOIN LATERAL (
			SELECT snowflake_migrate_internal.constraint_names(run_, p.no, u.constraint_)) AS c (names)
	WHERE p.run = run_ AND p.kind <> 'none' AND u.ranked IS NULL AND f.rows IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_taken_rows(bigint)
	IS 'for snowflake_migrate.rollback(): an error where newer rows clash with rows that come back';

/*
 * Raises an error where rows of one table that were replaced, and come back, refer to rows that are gone: of those left
 * in the map, or (of_map) of a batch, which locks what they refer to.  A foreign key that was never validated says
 * nothing of rows that were there.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_orphans(run_ bigint, no_ int, of_map text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'former_rows', snowflake_migrate_internal.former_rows(run_, no_, of_map));
	fk record;
	n bigint;
	example text;
BEGIN
	IF names ->> 'former_rows' IS NULL THEN
		RETURN;
	END IF;
	FOR fk IN
		SELECT f.conname, snowflake_migrate_internal.foreign_key_names(f.oid) AS names
		FROM snowflake_migrate_internal.with_partitions((names ->> 'oid')::oid::regclass) AS p (oid)
			JOIN pg_constraint AS f ON f.conrelid = p.oid AND f.contype = 'f' AND f.conparentid = 0 AND f.convalidated
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH d AS MATERIALIZED (
				SELECT DISTINCT {columns}
				FROM (SELECT * FROM ({former_rows}) AS {"name"} WHERE {in_child}) AS t
				WHERE {given_to_come}
			),
			l AS MATERIALIZED (
				SELECT {columns} FROM {parent} AS p JOIN d AS t ON {same} {locked}
			)
			SELECT count(*), min(x::text) FROM (SELECT * FROM d EXCEPT SELECT * FROM l) AS x
		$query$, names || fk.names || CASE WHEN of_map IS NULL THEN '{"locked": ""}' ELSE '{}' END::jsonb)
			INTO n, example;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
				MESSAGE = format('cannot roll back merge %s because rows that come back refer to rows that are gone',
								 run_),
				DETAIL = format('Table %s, %s: %s rows that they refer to, for example %s.',
								names ->> 'table', fk.conname, n, example),
				HINT = 'Insert these rows again.';
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_orphans(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): an error where rows that come back refer to rows that are gone';

/* Raises an error where newer rows have what must be unique in values of the target's rows that come back. */
CREATE FUNCTION snowflake_migrate_internal.refuse_taken_values(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.refuse_taken(
		snowflake_migrate_internal.constraint_names(run_, p.no, u.constraint_) || jsonb_build_object(
			'rows', format('(%s)', snowflake_migrate_internal.target_rows_before(run_, p.no)),
			'and_newer', snowflake_migrate_internal.fill(
				$q$ AND NOT EXISTS (
					SELECT FROM {change} AS v WHERE v."merge source" = 0 AND ({v."merge o#"}) = ({t.t#}))$q$,
				snowflake_migrate_internal.names(run_, p.no)),
			'come_back', 'values'))
	FROM snowflake_migrate_internal.tables_left(run_) AS p
		CROSS JOIN LATERAL snowflake_migrate_internal.constraints_back(run_, p.no) AS u
	WHERE p.kind <> 'none' AND u.ranked IS NULL
		AND snowflake_migrate_internal.target_change_names(run_, p.no) IS NOT NULL
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
					WHERE s.run = run_ AND s.no = p.no AND s.copied_by <> '{}')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_taken_values(bigint)
	IS 'for snowflake_migrate.rollback(): an error where newer rows clash with values that come back';

/* Raises an error where rows that a run brought, or values that it gave the target's, have changed since. */
CREATE FUNCTION snowflake_migrate_internal.refuse_changed(run_ bigint, changed text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF changed <> '{}' THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('cannot roll back merge %s because rows that it wrote have changed since', run_),
			DETAIL = array_to_string(changed, E'\n'),
			HINT = 'Call snowflake_migrate.rollback() with force => true to take the merge back all the same. '
				'Rows of the target keep the values that were changed.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_changed(bigint, text[])
	IS 'for snowflake_migrate.rollback(): an error where rows of a run have changed';

/*
 * Locks the rows of some entries of a table's map until they are taken back, and says how many of them the run brought,
 * how many it replaced, and how many have changed since, as a line for an error; null: none.  Who refers to one of them
 * has committed, and is seen, or waits.
 */
CREATE FUNCTION snowflake_migrate_internal.lock_rows(
	run_ bigint,
	no_ int,
	of_map text,
	OUT brought bigint,
	OUT replaced bigint,
	OUT changed text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		/* All are locked: a condition on a subquery would be tried before its rows are. */
		WITH locked AS MATERIALIZED (
			SELECT {m.n#::text} AS key, m.action, {as_left} AS as_left
			FROM {target} AS t JOIN {map} AS m ON m.action IN ('c', 'r') AND ({t.@}) = ({m.n#})
			WHERE {of_map}
			FOR UPDATE OF t
		)
		SELECT (SELECT count(*) FROM locked AS l WHERE l.action = 'c'),
			(SELECT count(*) FROM locked AS l WHERE l.action = 'r'), (
				SELECT format('Table %s: %s rows, for example %s.', {'table'}, count(*),
							  string_agg(x.key, ', ') FILTER (WHERE x.n <= 3))
				FROM (
					SELECT l.key, row_number() OVER () AS n
					FROM locked AS l
					WHERE NOT l.as_left
				) AS x
				HAVING count(*) > 0)
	$query$, snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('of_map', of_map,
		'as_left', snowflake_migrate_internal.as_left(run_, no_))) INTO brought, replaced, changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lock_rows(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): locks what a batch takes back, and says what has changed';

/*
 * Takes back the rows of some entries of a table's map that lock_rows() has locked: those that the run brought are
 * deleted, and those that it replaced get their former values.  Returns how many of each.  A trigger that fires may
 * keep a row, or give it other values: that is an error, as the target would not be as it was.
 */
CREATE FUNCTION snowflake_migrate_internal.take_back(
	run_ bigint,
	no_ int,
	of_map text,
	brought bigint,
	replaced bigint,
	OUT deleted bigint,
	OUT restored bigint)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('of_map', of_map);
	problem text;
	wrong bigint := 0;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		DELETE FROM {target} AS t USING {map} AS m WHERE ({t.@}) = ({m.n#}) AND {of_map} AND m.action = 'c'
	$query$, names);
	GET DIAGNOSTICS deleted = ROW_COUNT;
	IF deleted < brought THEN
		/* A trigger may have deleted some before. */
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({m.n#::text})
			FROM {target} AS t JOIN {map} AS m ON ({t.@}) = ({m.n#})
			WHERE {of_map} AND m.action = 'c'
		$query$, names) INTO wrong, example;
		problem := 'were not deleted';
	END IF;
	restored := 0;
	IF wrong = 0 AND replaced > 0 THEN
		SELECT names || jsonb_build_object(
				'columns', string_agg(quote_ident(c.name), ', ' ORDER BY c.position),
				'columns_now', string_agg('t.' || quote_ident(c.name), ', ' ORDER BY c.position),
				'columns_then', string_agg('f.' || quote_ident(c.name), ', ' ORDER BY c.position),
				/* Its type may be another by now. */
				'as_now', string_agg(format('CAST(f.%I AS %s)', c.name, format_type(a.atttypid, a.atttypmod)), ', '
									 ORDER BY c.position))
			INTO names
			FROM snowflake_migrate_internal.plan_columns AS c
				JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
				JOIN pg_attribute AS a ON a.attrelid = p.relation AND a.attname = c.name
			WHERE c.run = run_ AND c.no = no_ AND NOT c.generated AND a.attidentity <> 'a' AND c.name <> ALL (p.key);
		IF names ->> 'columns' IS NOT NULL THEN
			EXECUTE snowflake_migrate_internal.fill($query$
				WITH u AS (
					UPDATE {target} AS t
					SET ({columns}) = ROW ({columns_then})
					FROM {map} AS m JOIN {former} AS f ON ({f.@}) = ({m.n#})
					WHERE ({t.@}) = ({m.n#}) AND {of_map} AND m.action = 'r'
					RETURNING {m.n#::text} AS key,
						ROW ({columns_now})::record OPERATOR(pg_catalog.*<>) ROW ({as_now})::record AS differs
				)
				SELECT count(*), greatest({replaced} - count(*), 0) + count(*) FILTER (WHERE differs),
					min(key) FILTER (WHERE differs)
				FROM u
			$query$, names || jsonb_build_object('replaced', replaced)) INTO restored, wrong, example;
			problem := 'did not get their former values';
		END IF;
	END IF;
	IF wrong > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'data_exception',
			MESSAGE = format('rows of table %s %s', names ->> 'table', problem),
			DETAIL = format('%s rows%s.', wrong, ', for example ' || example),
			HINT = 'Disable the triggers that keep or change rows, until the merge is taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.take_back(bigint, int, text, bigint, bigint)
	IS 'for snowflake_migrate.rollback(): deletes rows, or gives them their former values';

/*
 * The rows that a run brought and that have changed since, and the values that it gave rows of the target and that
 * have: a line for each, of each table.  The report says so, too, of all: a rollback that goes on has less left.
 */
CREATE FUNCTION snowflake_migrate_internal.find_changed(run_ bigint) RETURNS text[]
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	taken_back CONSTANT text := 'rows were taken back that had changed since the merge';
	kept CONSTANT text := 'rows of the target keep values that were changed since the merge';
	t record;
	names jsonb;
	n bigint;
	example text;
	changed text[] := '{}';
BEGIN
	FOR t IN
		SELECT p.* FROM snowflake_migrate_internal.tables_left(run_) AS p WHERE p.kind <> 'none' ORDER BY p.no
	LOOP
		names := snowflake_migrate_internal.names(run_, t.no);
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), string_agg(x.key, ', ') FILTER (WHERE x.n <= 3)
			FROM (
				SELECT {m.n#::text} AS key, row_number() OVER () AS n
				FROM {target} AS t JOIN {map} AS m ON m.action IN ('c', 'r') AND ({t.@}) = ({m.n#})
				WHERE {of_map} AND NOT {as_left}
			) AS x
		$query$, names || jsonb_build_object(
			'as_left', snowflake_migrate_internal.as_left(run_, t.no), 'of_map', t.of_map)) INTO n, example;
		IF n > 0 THEN
			changed := changed || format('Table %s: %s rows, for example %s.', t.relation, n, example);
			PERFORM snowflake_migrate_internal.add_to_report(
					run_, 'warning', NULL, t.relation::text, NULL, taken_back, n, example, NULL)
				WHERE NOT EXISTS (SELECT FROM snowflake_migrate.report AS f
								  WHERE f.run = run_ AND f.relation = t.relation::text AND f.problem = taken_back);
		END IF;
		names := snowflake_migrate_internal.target_change_names(run_, t.no);
		CONTINUE WHEN names IS NULL OR NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_sources AS s
			WHERE s.run = run_ AND s.no = t.no AND s.copied_by <> '{}');
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({v."merge o#"::text})
			FROM {change} AS v JOIN {target} AS t ON ({t.@}) = ({v."merge o#"})
			WHERE v."merge source" = 0 AND ({differ})
		$query$, names) INTO n, example;
		IF n > 0 THEN
			changed := changed || format('Table %s: %s rows of the target, for example %s.', t.relation, n, example);
			PERFORM snowflake_migrate_internal.add_to_report(
					run_, 'warning', NULL, t.relation::text, NULL, kept, n, example, NULL)
				WHERE NOT EXISTS (SELECT FROM snowflake_migrate.report AS f
								  WHERE f.run = run_ AND f.relation = t.relation::text AND f.problem = kept);
		END IF;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_changed(bigint)
	IS 'for snowflake_migrate.rollback(): rows that changed since they were merged';

/*
 * Warns of rows that a run brought and that are not there any more by keys that are no ids, or of a table without a
 * key: they may be there otherwise.  A renumbered id, nobody changes.
 */
CREATE FUNCTION snowflake_migrate_internal.warn_of_gone(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	t record;
	n bigint;
	example text;
	problem text;
BEGIN
	FOR t IN
		SELECT p.* FROM snowflake_migrate_internal.tables_left(run_) AS p WHERE p.kind IN ('key', 'none') ORDER BY p.no
	LOOP
		IF t.kind = 'none' THEN
			SELECT u.gone, NULL INTO n, example FROM snowflake_migrate_internal.untold_rows(run_, t.no) AS u;
			problem := 'rows are not there any more as the merge wrote them: '
				'they were deleted, or have changed, and stay';
		ELSE
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(*), min({m.n#::text}) FROM {map} AS m
				WHERE m.action = 'c' AND {of_map} AND NOT EXISTS (SELECT FROM {target} AS t WHERE ({t.@}) = ({m.n#}))
			$query$, snowflake_migrate_internal.names(run_, t.no) || jsonb_build_object('of_map', t.of_map))
				INTO n, example;
			problem := 'rows are not there any more by the keys that the merge gave them: '
				'they were deleted, or have other keys by now, and stay';
		END IF;
		IF n > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(
				run_, 'warning', NULL, t.relation::text, NULL, problem, n, example, NULL);
			RAISE WARNING USING MESSAGE = format('table %s: %s', t.relation, problem),
				DETAIL = format('%s rows%s.', n, ', for example ' || example);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.warn_of_gone(bigint)
	IS 'for snowflake_migrate.rollback(): warns of rows that are not there any more as they were';

/* Begins to take a run back, or goes on: checks what is in the way first. */
CREATE FUNCTION snowflake_migrate_internal.rollback_start(run_ bigint, force boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	was pg_catalog.text;
	changed pg_catalog.text[];
BEGIN
	was := snowflake_migrate_internal.begin(run_, snowflake_migrate_internal.states_to_take_back());
	PERFORM snowflake_migrate_internal.refuse_maps(run_);
	PERFORM snowflake_migrate_internal.settle_batches(run_);
	/* Somebody may have written rows under keys that an unfinished run was still to bring: these are not the run's. */
	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET not_brought = (SELECT nullif(coalesce(n.of_map, 'true'), 'false')
						   FROM snowflake_migrate_internal.not_copied(run_, s.no, s.source) AS n)
		WHERE s.run = run_ AND was = 'copying';
	PERFORM snowflake_migrate_internal.occupy(run_);
	PERFORM snowflake_migrate_internal.refuse_followed(run_);
	PERFORM snowflake_migrate_internal.refuse_denied_rollback(run_);
	PERFORM snowflake_migrate_internal.refuse_published(run_);
	PERFORM snowflake_migrate_internal.refuse_renamed(run_);
	PERFORM snowflake_migrate_internal.refuse_without_key(run_);
	PERFORM snowflake_migrate_internal.refuse_untold(run_) WHERE NOT force;
	PERFORM snowflake_migrate_internal.refuse_newer(run_, NULL, NULL);
	PERFORM snowflake_migrate_internal.refuse_needed(run_);
	PERFORM snowflake_migrate_internal.refuse_replaced(run_);
	PERFORM snowflake_migrate_internal.refuse_ranks(run_);
	PERFORM snowflake_migrate_internal.refuse_taken_rows(run_);
	PERFORM snowflake_migrate_internal.refuse_orphans(run_, p.no)
		FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.kind <> 'none';
	PERFORM snowflake_migrate_internal.refuse_taken_values(run_);
	changed := snowflake_migrate_internal.find_changed(run_);
	IF NOT force THEN
		PERFORM snowflake_migrate_internal.refuse_changed(run_, changed);
	END IF;
	/* Where it was broken off, it goes on. */
	IF was = 'rolling back' THEN
		RETURN;
	END IF;
	PERFORM snowflake_migrate_internal.warn_of_gone(run_);
	DELETE FROM snowflake_migrate_internal.plan_batches AS b WHERE b.run = run_;
	UPDATE snowflake_migrate_internal.plan_sources AS s SET position = NULL, done = false, is_split = false
		WHERE s.run = run_;
	UPDATE snowflake_migrate.runs AS r SET state = 'rolling back', finished_at = NULL WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rollback_start(bigint, boolean)
	IS 'for snowflake_migrate.rollback(): checks what is in the way';

/* Takes back a batch of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.uncopy(run_ bigint, no_ int, source_ int, force boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	part record;
	locked record;
	deleted bigint := 0;
	restored bigint := 0;
	started CONSTANT timestamptz := clock_timestamp();
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	rows text;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	part := snowflake_migrate_internal.next_batch(
		run_, no_, source_, 0, run_row.batch_size, 'm.action IN (''c'', ''r'')');
	IF plan.kind = 'none' THEN
		/* Those of all sources. */
		rows := snowflake_migrate_internal.keyless_rows(run_, no_);
		IF rows IS NOT NULL THEN
			IF EXISTS (SELECT FROM snowflake_migrate_internal.foreign_keys_to_keyless(run_, no_)) THEN
				/* Who refers to one of them has committed, and is seen, or waits. */
				EXECUTE snowflake_migrate_internal.fill(
					'SELECT FROM {target} AS t WHERE (t.tableoid, t.ctid) IN ({rows}) FOR UPDATE',
					names || jsonb_build_object('rows', rows));
				PERFORM snowflake_migrate_internal.refuse_newer(run_, no_, 'true');
			END IF;
			EXECUTE snowflake_migrate_internal.fill('DELETE FROM {target} AS t WHERE (t.tableoid, t.ctid) IN ({rows})',
				names || jsonb_build_object('rows', rows));
			GET DIAGNOSTICS deleted = ROW_COUNT;
		END IF;
	ELSE
		UPDATE snowflake_migrate_internal.plan_sources AS s
			SET taken_back_by = s.taken_back_by || pg_current_xact_id()
			WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
		locked := snowflake_migrate_internal.lock_rows(run_, no_, part.of_map);
		IF NOT force THEN
			PERFORM snowflake_migrate_internal.refuse_changed(run_, array_remove(ARRAY[locked.changed], NULL));
		END IF;
		PERFORM snowflake_migrate_internal.refuse_newer(run_, no_, part.of_map);
		PERFORM snowflake_migrate_internal.refuse_orphans(run_, no_, part.of_map) WHERE locked.replaced > 0;
		SELECT b.deleted, b.restored INTO STRICT deleted, restored
			FROM snowflake_migrate_internal.take_back(run_, no_, part.of_map, locked.brought, locked.replaced) AS b;
	END IF;
	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET rows_done = CASE
				/* Those that are left where they are are counted once, as all sources' went together. */
				WHEN plan.kind = 'none' THEN CASE s.source WHEN source_ THEN greatest((
						SELECT sum(o.rows_done) FROM snowflake_migrate_internal.plan_sources AS o
						WHERE o.run = run_ AND o.no = no_) - deleted, 0) ELSE 0 END
				/* Somebody may have deleted some since. */
				WHEN part.range_end IS NULL THEN 0
				ELSE greatest(s.rows_done - deleted - restored, 0) END,
			position = part.range_end,
			done = part.range_end IS NULL,
			busy = s.busy + CASE s.source WHEN source_ THEN clock_timestamp() - started ELSE interval '0' END
		WHERE s.run = run_ AND s.no = no_ AND (s.source = source_ OR plan.kind = 'none');
	/* When the last of the table's merged rows is gone, the ranks are free again. */
	IF (SELECT bool_and(s.done) AND bool_or(s.copied_by <> '{}') FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_) THEN
		PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, true),
			snowflake_migrate_internal.apply_changes(run_, no_, true);
	END IF;
	RETURN deleted + restored;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.uncopy(bigint, int, int, boolean)
	IS 'for snowflake_migrate.rollback(): takes back a batch';

/*
 * What one transaction takes back: as step() copies them, batches of tables that fit into one together, or the rest of
 * a cycle.  Returns false when there is nothing left, and the run is rolled back.
 */
CREATE FUNCTION snowflake_migrate_internal.rollback_step(run_ bigint, force boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	rows_left bigint := (SELECT r.batch_size FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	batches CONSTANT jsonb[] := ARRAY(
		SELECT jsonb_build_object('no', s.no, 'source', s.source, 'to_do', s.rows_done, 'copy_step', t.copy_step,
				'cyclic', t.cyclic)
			FROM snowflake_migrate_internal.plan_sources AS s
				CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t
			WHERE s.run = run_ AND NOT s.done
			ORDER BY t.copy_step DESC, s.no DESC, s.source DESC
			LIMIT snowflake_migrate_internal.tables_at_once(in_use));
	batch jsonb;
	is_first boolean := true;
	is_cyclic boolean;
	is_done boolean;
	to_do bigint;
	no_ int;
	source_ int;
	member record;
BEGIN
	IF batches = '{}' THEN
		/* Those that could not be built beside the run's rows. */
		IF snowflake_migrate_internal.build_indexes(run_) THEN
			RETURN true;
		END IF;
		PERFORM snowflake_migrate_internal.refuse_unbuilt(run_);
		UPDATE snowflake_migrate.runs AS r
			SET state = 'rolled back', finished_at = clock_timestamp()
			WHERE r.run = run_;
		RETURN false;
	END IF;
	FOREACH batch IN ARRAY batches LOOP
		is_cyclic := (batch ->> 'cyclic')::boolean;
		no_ := (batch ->> 'no')::int;
		source_ := (batch ->> 'source')::int;
		to_do := (batch ->> 'to_do')::bigint;
		EXIT WHEN NOT is_first AND (is_cyclic OR to_do > rows_left);
		is_first := false;
		IF is_cyclic THEN
			FOR member IN
				SELECT s.no, s.source
				FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND NOT s.done AND s.no = ANY (ARRAY(
					SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
					WHERE t.run = run_ AND t.copy_step = (batch ->> 'copy_step')::int))
				ORDER BY s.no DESC, s.source DESC
			LOOP
				PERFORM snowflake_migrate_internal.uncopy(run_, member.no, member.source, force);
			END LOOP;
			EXIT;
		END IF;
		LOOP
			rows_left := rows_left - snowflake_migrate_internal.uncopy(run_, no_, source_, force);
			SELECT s.done, s.rows_done INTO is_done, to_do FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
			EXIT WHEN is_done OR in_use OR to_do > rows_left;
		END LOOP;
		/* What a table refers to waits for the rest of it. */
		EXIT WHEN NOT is_done;
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rollback_step(bigint, boolean)
	IS 'for snowflake_migrate.rollback(): one of its transactions';

/*
 * Takes a merge back, also one that is not finished.  To be called outside of a transaction block; the same call goes
 * on where it was interrupted.  An error names the newer rows that refer to merged ones.  force: rows that changed
 * since are taken back as well, and those of tables without a key that refer to nothing stay.
 */
CREATE PROCEDURE snowflake_migrate.rollback(run bigint, force boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
	states CONSTANT pg_catalog.text[] := snowflake_migrate_internal.states_to_take_back();
	more boolean;
BEGIN
	IF run IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'run must not be null',
			HINT = 'snowflake_migrate.runs lists the merges.';
	END IF;
	PERFORM snowflake_migrate_internal.warn_of_limits();
	/* Without its indexes, a run that was not finished would take long, and not see what clashes. */
	PERFORM snowflake_migrate_internal.begin(run, states);
	PERFORM snowflake_migrate_internal.retry_indexes(run);
	/* A batch sees what was committed before each of its statements. */
	WHILE snowflake_migrate_internal.build_indexes(run) LOOP
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM snowflake_migrate_internal.begin(run, states);
	END LOOP;
	PERFORM snowflake_migrate_internal.refuse_unbuilt(run, true);
	/* What could not be built may be when the run's rows are gone. */
	PERFORM snowflake_migrate_internal.retry_indexes(run);
	PERFORM snowflake_migrate_internal.rollback_start(run, force IS TRUE);
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	LOOP
		PERFORM snowflake_migrate_internal.begin(run, ARRAY['rolling back']);
		more := snowflake_migrate_internal.rollback_step(run, force IS TRUE);
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		EXIT WHEN NOT more;
	END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.rollback(bigint, boolean) IS 'takes a merge back';
