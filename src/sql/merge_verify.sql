/*
 * The proof of a merge.  Each row of a source is compared with the row of the target that the map names, column by column, bit by
 * bit: what is no reference must be equal, what is one must be what the map says of the source's value.  As the map leads from
 * each row of the source to one of the target, and a new key is used once, no row is missing and none is somebody else's.
 */

/* The rows of one table of one source. */
CREATE FUNCTION snowflake_merge_verify_source(
	run_ bigint,
	no_ int,
	source_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source_relation regclass;
	parts record;
	map CONSTANT text := @extschema@.snowflake_merge_relation(run_, 'map_' || no_);
	given text;
	expected text;
	unmapped text;
	in_source bigint;
	in_map bigint;
	joined bigint;
	missing bigint;
	differing bigint;
	gone bigint;
	unmapped_rows bigint;
	key_text text;
BEGIN
	SELECT t.* INTO STRICT plan FROM @extschema@.snowflake_merge_plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation INTO STRICT source_relation FROM @extschema@.snowflake_merge_plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	parts := @extschema@.snowflake_merge_rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	SELECT string_agg(format('t.%I', e.name), ', ' ORDER BY e.n), string_agg(e.expression, ', ' ORDER BY e.n) INTO given, expected
		FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n);

	IF plan.kind = 'none' THEN
		/* As often as there, at least: by their text, since not every type can be grouped. */
		EXECUTE format('SELECT sum(s.n - coalesce(t.n, 0)), min(s.r) FROM (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s GROUP BY 1) AS s '
			'LEFT JOIN (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s AS t GROUP BY 1) AS t USING (r) WHERE coalesce(t.n, 0) < s.n',
			expected, parts.origin, given, @extschema@.snowflake_merge_only(plan.relation)) INTO missing, example;
		IF missing > 0 THEN
			problem := 'rows are missing in the target';
			count := missing;
			RETURN NEXT;
		END IF;
		RETURN;
	END IF;

	key_text := @extschema@.snowflake_merge_key_text('m.o#', plan.key);
	SELECT string_agg(format('(s.%I IS NOT NULL AND r%s.o1 IS NULL%s)', r.name, r.id, CASE WHEN r.condition IS NULL THEN '' ELSE format(' AND s.%I', 'snowflake condition ' || r.id) END), ' OR ') INTO unmapped
		FROM @extschema@.snowflake_merge_plan_references AS r
		WHERE r.run = run_ AND r.no = no_ AND r.dangling = 'error' AND r.path IS NULL AND NOT r.elements AND r.name <> ALL (plan.key) AND r.name::text = ANY (parts.names);

	EXECUTE format('SELECT count(*) FROM %s', @extschema@.snowflake_merge_only(source_relation)) INTO in_source;
	EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.source = %s', map, source_) INTO in_map;
	EXECUTE format(
		'SELECT count(*), count(*) FILTER (WHERE x.missing), count(*) FILTER (WHERE x.differs), count(*) FILTER (WHERE x.gone), count(*) FILTER (WHERE x.unmapped), '
		'min(x.key) FILTER (WHERE x.missing OR x.differs OR x.gone OR x.unmapped) FROM (SELECT %s AS key, '
		'm.action IN (''c'', ''r'') AND t.%I IS NULL AS missing, '
		'm.action IN (''c'', ''r'') AND t.%I IS NOT NULL AND ROW (%s)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record AS differs, '
		'm.action IN (''m'', ''k'') AND t.%I IS NULL AS gone, %s AS unmapped FROM %s LEFT JOIN %s AS t ON %s) AS x',
		'CASE WHEN m.source = 0 THEN '''' ELSE ' || key_text || ' END', plan.key[1], plan.key[1], given, expected, plan.key[1],
		coalesce('m.action IN (''c'', ''r'') AND (' || unmapped || ')', 'false'),
		parts.origin, @extschema@.snowflake_merge_only(plan.relation), @extschema@.snowflake_merge_key_list('t.@ = m.n#', plan.key, ' AND '))
		INTO joined, missing, differing, gone, unmapped_rows, example;
	IF missing > 0 THEN
		problem := 'rows are missing in the target';
		count := missing;
		RETURN NEXT;
	END IF;
	IF differing > 0 THEN
		problem := 'rows of the target are not what they should be';
		count := differing;
		EXECUTE format('SELECT string_agg(format(''%%s -> %%s: %%s'', x.o, x.n, x.columns), ''; '') FROM (SELECT %s AS o, %s AS n, concat_ws('', '', %s) AS columns '
			'FROM %s JOIN %s AS t ON %s WHERE m.action IN (''c'', ''r'') AND ROW (%s)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record LIMIT 3) AS x',
			key_text, @extschema@.snowflake_merge_key_text('m.n#', plan.key),
			(SELECT string_agg(format('CASE WHEN ROW (t.%I)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record THEN %L END', e.name, e.expression, e.name), ', ' ORDER BY e.n)
			 FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)),
			parts.origin, @extschema@.snowflake_merge_only(plan.relation), @extschema@.snowflake_merge_key_list('t.@ = m.n#', plan.key, ' AND '), given, expected) INTO example;
		RETURN NEXT;
	END IF;
	IF gone > 0 THEN
		problem := 'rows of the target that stand for the source''s are gone';
		count := gone;
		RETURN NEXT;
	END IF;
	IF unmapped_rows > 0 THEN
		problem := 'rows refer to rows that the map does not have';
		count := unmapped_rows;
		RETURN NEXT;
	END IF;
	IF in_source > joined THEN
		problem := 'rows of the source are not in the map: it changed';
		count := in_source - joined;
		example := NULL;
		RETURN NEXT;
	END IF;
	IF in_map > joined THEN
		problem := 'rows in the map are no longer in the source: it changed';
		count := in_map - joined;
		example := NULL;
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_merge_verify_source(bigint, int, int) IS 'for snowflake_merge_verify(): the rows of a table of a source';

/* What a table of the target has that it should not. */
CREATE FUNCTION snowflake_merge_verify_target(
	run_ bigint,
	no_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	map CONSTANT text := @extschema@.snowflake_merge_relation(run_, 'map_' || no_);
	target CONSTANT text := @extschema@.snowflake_merge_only((SELECT t.relation FROM @extschema@.snowflake_merge_plan_tables AS t WHERE t.run = run_ AND t.no = no_));
	copied bigint;
	total bigint;
	joined bigint;
	former bigint;
	foreign_nodes bigint;
	newer bigint;
	boundary bigint;
	others text;
	missing bigint[];
	names text[];
	check_text text;
	state text;
BEGIN
	SELECT r.* INTO STRICT run_row FROM @extschema@.snowflake_merge_runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM @extschema@.snowflake_merge_plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	boundary := @extschema@.snowflake_max_id(run_row.started_at);
	IF plan.kind = 'none' THEN
		EXECUTE format('SELECT count(*) FROM %s', target) INTO total;
		SELECT sum(s.rows_done) INTO copied FROM @extschema@.snowflake_merge_plan_sources AS s WHERE s.run = run_ AND s.no = no_;
		former := total - copied;
	ELSE
		EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.action = ''c''', map) INTO copied;
		EXECUTE format('SELECT count(*) FROM %s', target) INTO total;
		EXECUTE format('SELECT count(*), count(*) FILTER (WHERE m.action IS NULL AND %s), count(*) FILTER (WHERE m.action IS NULL AND %s), count(*) FILTER (WHERE m.action IS NULL AND %s) '
			'FROM %s AS t LEFT JOIN %s AS m ON m.action = ''c'' AND %s',
			CASE WHEN plan.kind = 'id' THEN format('t.%I <= %s', plan.key[1], boundary) ELSE 'true' END,
			CASE WHEN plan.kind = 'id' THEN format('t.%I > %s AND @extschema@.snowflake_node(t.%I) = ANY (%L::bigint[])', plan.key[1], @extschema@.snowflake_merge_last_serial(),
													plan.key[1], run_row.nodes) ELSE 'false' END,
			CASE WHEN plan.kind = 'id' THEN format('t.%I > %s', plan.key[1], boundary) ELSE 'false' END,
			target, map, @extschema@.snowflake_merge_key_list('m.n# = t.@', plan.key, ' AND ')) INTO joined, former, foreign_nodes, newer;
		IF joined > total THEN
			problem := 'several rows of the sources became one';
			count := joined - total;
			RETURN NEXT;
		END IF;
		IF foreign_nodes > 0 THEN
			problem := 'ids have a node number of the merge and are not in the map';
			count := foreign_nodes;
			RETURN NEXT;
			former := former - foreign_nodes;
		END IF;
		SELECT string_agg(format('t.%I', c.name), ', ' ORDER BY c.position) INTO others
			FROM @extschema@.snowflake_merge_plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.name <> ALL (plan.key);
		IF newer > 0 AND plan.kind = 'id' AND others IS NOT NULL THEN
			EXECUTE format('SELECT count(*), min(x.key) FROM (SELECT t.%I::text AS key, ROW (%s)::text AS r FROM %s AS t WHERE t.%I > %s AND NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''c'' AND m.n1 = t.%I)) AS x '
				'WHERE x.r IN (SELECT ROW (%s)::text FROM %s AS t JOIN %s AS m ON m.action = ''c'' AND m.n1 = t.%I)',
				plan.key[1], others, target, plan.key[1], boundary, map, plan.key[1], others, target, map, plan.key[1]) INTO newer, example;
			IF newer > 0 THEN
				problem := 'rows are in the target twice, under another key';
				count := newer;
				RETURN NEXT;
			END IF;
		END IF;
	END IF;
	/* When the target has been opened again, it may have more rows whose keys do not tell when they were made. */
	IF former > plan.former_rows AND (plan.kind = 'id' OR run_row.state <> 'done') THEN
		problem := 'rows are in the target that neither it nor a source had';
		count := former - plan.former_rows;
		example := NULL;
		RETURN NEXT;
	ELSIF plan.kind = 'none' AND former > plan.former_rows THEN
		EXECUTE format('SELECT sum(x.n - x.m), min(x.r) FROM (SELECT q.r, sum(q.n) AS n, sum(q.m) AS m FROM (SELECT ROW (t.*)::text AS r, 1 AS n, 0 AS m FROM %s AS t%s) AS q GROUP BY q.r) AS x '
			'WHERE x.m > 0 AND x.n > x.m AND %s', target,
			(SELECT string_agg(format(' UNION ALL SELECT ROW (t.*)::text, 0, 1 FROM (%s) AS t', @extschema@.snowflake_merge_rows(run_, no_, s.source)), '')
			 FROM @extschema@.snowflake_merge_plan_sources AS s WHERE s.run = run_ AND s.no = no_),
			former - plan.former_rows || ' > 0') INTO newer, example;
		IF newer > 0 THEN
			problem := 'rows are in the target more often than they should be';
			count := newer;
			RETURN NEXT;
		END IF;
	END IF;

	check_text := replace(coalesce(@extschema@.snowflake_merge_reference_check(plan.relation, 'i'), ''), ' FOR KEY SHARE OF p', '');
	IF check_text <> '' AND plan.kind <> 'none' THEN
		EXECUTE format('WITH i AS (SELECT t.*, t.tableoid FROM %s AS t JOIN %s AS m ON m.action IN (''c'', ''r'') AND %s)%s',
			target, map, @extschema@.snowflake_merge_key_list('t.@ = m.n#', plan.key, ' AND '), check_text) INTO total, missing, names;
		FOR n IN 1 .. cardinality(missing) LOOP
			IF missing[n] > 0 THEN
				problem := format('rows that the foreign key %I refers to are not there', names[n]);
				count := missing[n];
				example := NULL;
				RETURN NEXT;
			END IF;
		END LOOP;
	END IF;
	state := @extschema@.snowflake_merge_state(plan.relation);
	IF state <> plan.former_state THEN
		problem := 'constraints or triggers are not as they were';
		count := NULL;
		SELECT string_agg(coalesce(n.item, 'no ' || f.item), ', ') INTO example
			FROM unnest(string_to_array(state, ', ')) AS n (item) FULL JOIN unnest(string_to_array(plan.former_state, ', ')) AS f (item) ON f.item = n.item
			WHERE f.item IS NULL OR n.item IS NULL;
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_merge_verify_target(bigint, int) IS 'for snowflake_merge_verify(): what a table of the target has that it should not';

/*
 * A row for each thing that is not as it should be after a merge; none: it is proved.  Sources and target must not have changed
 * since: rows that somebody changed are named like any that the merge got wrong.
 */
CREATE FUNCTION snowflake_merge_verify(
	run bigint,
	OUT source name,
	OUT "table" text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	t record;
	s record;
	work_mem CONSTANT text := current_setting('work_mem');
BEGIN
	SELECT r.* INTO run_row FROM @extschema@.snowflake_merge_runs AS r WHERE r.run = snowflake_merge_verify.run;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge with the number %s', snowflake_merge_verify.run),
			HINT = 'See snowflake_merge_runs.';
	ELSIF run_row.state NOT IN ('verifying', 'done') THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('the merge with the number %s is %s', run_row.run, run_row.state);
	END IF;
	/* These hash whole tables, as CREATE INDEX sorts them. */
	PERFORM set_config('work_mem', current_setting('maintenance_work_mem'), true);
	FOR t IN SELECT p.no, p.relation FROM @extschema@.snowflake_merge_plan_tables AS p WHERE p.run = run_row.run ORDER BY p.no LOOP
		"table" := t.relation::text;
		FOR s IN SELECT p.source FROM @extschema@.snowflake_merge_plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no ORDER BY p.source LOOP
			source := run_row.sources[s.source];
			FOR problem, count, example IN SELECT v.* FROM @extschema@.snowflake_merge_verify_source(run_row.run, t.no, s.source) AS v LOOP
				RETURN NEXT;
			END LOOP;
		END LOOP;
		source := NULL;
		CONTINUE WHEN NOT EXISTS (SELECT FROM @extschema@.snowflake_merge_plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no);
		FOR problem, count, example IN SELECT v.* FROM @extschema@.snowflake_merge_verify_target(run_row.run, t.no) AS v LOOP
			RETURN NEXT;
		END LOOP;
	END LOOP;
	PERFORM set_config('work_mem', work_mem, true);
END
$$;
COMMENT ON FUNCTION snowflake_merge_verify(bigint) IS 'proves a merge row by row: what is not as it should be';
