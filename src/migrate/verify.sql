/*
 * The proof of a merge.  Each row of a source is compared with the row of the target that the map names, column by column, bit by
 * bit: what is no reference must be equal, what is one must be what the map says of the source's value.  As the map leads from
 * each row of the source to one of the target, and a new key is used once, no row is missing and none is somebody else's.
 */

/* The rows of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.verify_source(
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
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	given text;
	expected text;
	differs text;
	unmapped text;
	in_source bigint;
	in_map bigint;
	joined bigint;
	missing bigint;
	differing bigint;
	gone bigint;
	unmapped_rows bigint;
	others bigint;
	other text;
	bounds text := '';
	key_text text;
	is_own CONSTANT text := 'm.action IN (''c'', ''r'')';		-- has values of the source
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation INTO STRICT source_relation FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	SELECT string_agg(format('t.%I', e.name), ', ' ORDER BY e.n), string_agg(e.expression, ', ' ORDER BY e.n) INTO given, expected
		FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n);

	differs := snowflake_migrate_internal.differs(plan.relation, parts.names, parts.expressions);

	IF plan.kind = 'none' THEN
		/* As often as there, at least: by their text, since not every type can be grouped. */
		EXECUTE format('SELECT sum(s.n - coalesce(t.n, 0)), min(s.r) FROM (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s GROUP BY 1) AS s '
			'LEFT JOIN (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s AS t GROUP BY 1) AS t USING (r) WHERE coalesce(t.n, 0) < s.n',
			expected, parts.origin, given, snowflake_migrate_internal.only(plan.relation)) INTO missing, example;
		IF missing > 0 THEN
			problem := 'rows are missing in the target';
			count := missing;
			RETURN NEXT;
		END IF;
		RETURN;
	END IF;

	key_text := snowflake_migrate_internal.key_text('m.o#', plan.key);
	SELECT string_agg(format('(s.%I IS NOT NULL AND r%s.o1 IS NULL%s)', r.name, r.id, CASE WHEN r.condition IS NULL THEN '' ELSE format(' AND s.%I', 'snowflake condition ' || r.id) END), ' OR ') INTO unmapped
		FROM snowflake_migrate_internal.plan_references AS r
		WHERE r.run = run_ AND r.no = no_ AND r.dangling = 'error' AND r.path IS NULL AND NOT r.elements AND r.name <> ALL (plan.key) AND r.name::text = ANY (parts.names);

	/* A row that stands for the source's has its natural key, or its key. */
	SELECT coalesce(string_agg(format('(t.%I %s %s) IS NOT TRUE AND NOT (t.%I IS NULL AND %s IS NULL)', k.name, u.operators[k.n],
									  parts.expressions[array_position(parts.names, k.name::text)], k.name,
									  parts.expressions[array_position(parts.names, k.name::text)]), ' OR '), 'false') INTO other
		FROM snowflake_migrate_internal.unique(run_, no_) AS u, unnest(plan.natural_key) WITH ORDINALITY AS k (name, n)
		WHERE u.policy = 'match';
	/* New ids lie close together: the rest of the target need not be looked at. */
	IF plan.kind = 'id' THEN
		EXECUTE format('SELECT format('' AND t.%%I BETWEEN %%s AND %%s'', %L::text, min(m.n1), max(m.n1)) FROM %s AS m WHERE m.source = %s AND m.action <> ''s''', plan.key[1], map, source_)
			INTO bounds;
		bounds := CASE WHEN bounds LIKE '%BETWEEN  AND %' THEN '' ELSE bounds END;
	END IF;
	unmapped := coalesce(is_own || ' AND (' || unmapped || ')', 'false');
	EXECUTE format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(source_relation)) INTO in_source;
	EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.source = %s', map, source_) INTO in_map;
	/* What is dear to compute, whether a row differs, stands here once. */
	EXECUTE format(
		'SELECT count(*), count(*) FILTER (WHERE %s AND t.%I IS NULL), count(*) FILTER (WHERE %s AND t.%I IS NOT NULL AND %s), '
		'count(*) FILTER (WHERE m.action IN (''m'', ''k'') AND t.%I IS NULL), count(*) FILTER (WHERE %s), '
		'count(*) FILTER (WHERE m.action = ''m'' AND t.%I IS NOT NULL AND %s), '
		'min(%s) FILTER (WHERE m.action <> ''s'' AND t.%I IS NULL OR %s) FROM %s LEFT JOIN %s AS t ON %s',
		is_own, plan.key[1], is_own, plan.key[1], differs, plan.key[1], unmapped, plan.key[1], other, key_text, plan.key[1], unmapped,
		parts.origin, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND ') || bounds)
		INTO joined, missing, differing, gone, unmapped_rows, others, example;
	IF missing > 0 THEN
		problem := 'rows are missing in the target';
		count := missing;
		RETURN NEXT;
	END IF;
	IF differing > 0 THEN
		problem := 'rows of the target are not what they should be';
		count := differing;
		EXECUTE format('SELECT string_agg(format(''%%s -> %%s: %%s'', x.o, x.n, x.columns), ''; '') FROM (SELECT %s AS o, %s AS n, concat_ws('', '', %s) AS columns '
			'FROM %s JOIN %s AS t ON %s WHERE m.action IN (''c'', ''r'') AND %s LIMIT 3) AS x',
			key_text, snowflake_migrate_internal.key_text('m.n#', plan.key),
			(SELECT string_agg(format('CASE WHEN ROW (t.%I)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record THEN %L END', e.name, e.expression, e.name), ', ' ORDER BY e.n)
			 FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)),
			parts.origin, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), differs) INTO example;
		RETURN NEXT;
	END IF;
	IF gone > 0 THEN
		problem := 'rows of the target that stand for the source''s are gone';
		count := gone;
		RETURN NEXT;
	END IF;
	IF others > 0 THEN
		problem := 'rows of the target that stand for the source''s are others';
		count := others;
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
COMMENT ON FUNCTION snowflake_migrate_internal.verify_source(bigint, int, int) IS 'for snowflake_migrate.verify(): the rows of a table of a source';

/*
 * What a table of the target has that it should not.  Where every row of the map is there (complete), it is enough to count: the map
 * has each new key once.  When the target has been opened again, or another merge has followed, it may have more rows whose keys do
 * not tell where they came from: then only what the merge's own node numbers made, and copies of its rows, can be told.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_target(
	run_ bigint,
	no_ int,
	complete boolean,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	fk record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	target CONSTANT text := snowflake_migrate_internal.only((SELECT t.relation FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_));
	followed boolean;
	counts text;
	in_map bigint[];
	in_target bigint[];		-- all, of the merge's nodes, of keys made since it began
	former bigint;
	boundary bigint;
	others text;
	state text;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	followed := EXISTS (SELECT FROM snowflake_migrate.runs AS r
						WHERE r.target = run_row.target AND r.started_at > run_row.started_at AND r.state IN ('copying', 'verifying', 'done', 'rolling back'));
	boundary := snowflake_migrate_internal.max_id(run_row.started_at);
	IF plan.kind = 'none' THEN
		EXECUTE format('SELECT ARRAY[count(*), 0, 0] FROM %s', target) INTO in_target;
		SELECT ARRAY[sum(s.rows_done), 0, 0] INTO in_map FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_;
	ELSE
		counts := CASE plan.kind WHEN 'id' THEN
			format('SELECT ARRAY[count(*), count(*) FILTER (WHERE x.k > %s AND snowflake_migrate_internal.node(x.k) = ANY (%L::bigint[])), count(*) FILTER (WHERE x.k > %s)]',
				   snowflake_migrate_internal.last_serial(), run_row.nodes, boundary) ELSE 'SELECT ARRAY[count(*), 0, 0]' END;
		EXECUTE format('%s FROM (SELECT t.%I AS k FROM %s AS t) AS x', counts, plan.key[1], target) INTO in_target;
		EXECUTE format('%s FROM (SELECT m.n1 AS k FROM %s AS m WHERE m.action = ''c'') AS x', counts, map) INTO in_map;
		IF NOT complete OR in_target[2] <> in_map[2] OR in_target[3] <> in_map[3] THEN
			EXECUTE format('%s FROM (SELECT t.%I AS k FROM %s AS t JOIN %s AS m ON m.action = ''c'' AND %s) AS x', counts, plan.key[1], target, map,
						   snowflake_migrate_internal.key_list('m.n# = t.@', plan.key, ' AND ')) INTO in_map;
		END IF;
		IF in_target[2] > in_map[2] THEN
			problem := 'ids have a node number of the merge and are not in the map';
			count := in_target[2] - in_map[2];
			RETURN NEXT;
		END IF;
		SELECT string_agg(format('t.%I', c.name), ', ' ORDER BY c.position) INTO others
			FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.name <> ALL (plan.key);
		IF in_target[3] > in_map[3] AND others IS NOT NULL THEN
			EXECUTE format('SELECT count(*), min(x.key) FROM (SELECT t.%I::text AS key, ROW (%s)::text AS r FROM %s AS t WHERE t.%I > %s AND NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''c'' AND m.n1 = t.%I)) AS x '
				'WHERE x.r IN (SELECT ROW (%s)::text FROM %s AS t JOIN %s AS m ON m.action = ''c'' AND m.n1 = t.%I)',
				plan.key[1], others, target, plan.key[1], boundary, map, plan.key[1], others, target, map, plan.key[1]) INTO count, example;
			IF count > 0 THEN
				problem := 'rows are in the target twice, under another key';
				RETURN NEXT;
			END IF;
		END IF;
	END IF;
	former := in_target[1] - in_map[1] - CASE plan.kind WHEN 'id' THEN in_target[3] - in_map[3] ELSE 0 END;
	IF former < plan.former_rows AND run_row.state <> 'done' THEN
		problem := 'rows that the target had are gone';
		count := plan.former_rows - former;
		example := NULL;
		RETURN NEXT;
	ELSIF former > plan.former_rows AND NOT followed AND (plan.kind = 'id' OR run_row.state <> 'done') THEN
		problem := 'rows are in the target that neither it nor a source had';
		count := former - plan.former_rows;
		example := NULL;
		RETURN NEXT;
	ELSIF former > plan.former_rows AND plan.kind = 'none' AND NOT followed THEN
		EXECUTE format('SELECT sum(x.n - x.m), min(x.r) FROM (SELECT q.r, sum(q.n) AS n, sum(q.m) AS m FROM (SELECT ROW (t.*)::text AS r, 1 AS n, 0 AS m FROM %s AS t%s) AS q GROUP BY q.r) AS x '
			'WHERE x.m > 0 AND x.n > x.m', target,
			(SELECT string_agg(format(' UNION ALL SELECT ROW (t.*)::text, 0, 1 FROM (%s) AS t', snowflake_migrate_internal.rows(run_, no_, s.source)), '')
			 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_)) INTO count, example;
		IF count > 0 THEN
			problem := 'rows are in the target more often than they should be';
			RETURN NEXT;
		END IF;
	END IF;

	/* Triggers that check them may have been off. */
	example := NULL;
	FOR fk IN
		SELECT f.conname, coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass AS child, coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass AS parent,
			string_agg(format('t.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n) || snowflake_migrate_internal.in_part(f.conrelid, 't') AS given,
			string_agg(format('p.%I OPERATOR(%I.%s) t.%I', b.attname, s.nspname, o.oprname, a.attname), ' AND ' ORDER BY k.n)
				|| snowflake_migrate_internal.in_part(f.confrelid, 'p') AS same
		FROM pg_constraint AS f
			CROSS JOIN LATERAL unnest(f.conkey, f.confkey, f.conpfeqop) WITH ORDINALITY AS k (attnum, parent_attnum, operator, n)
			JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
			JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
			JOIN pg_operator AS o ON o.oid = k.operator JOIN pg_namespace AS s ON s.oid = o.oprnamespace
		WHERE f.contype = 'f' AND f.conparentid = 0
			AND (coalesce(pg_partition_root(f.conrelid), f.conrelid) = plan.relation
				 /* From tables that are not merged. */
				 OR coalesce(pg_partition_root(f.confrelid), f.confrelid) = plan.relation AND coalesce(pg_partition_root(f.conrelid), f.conrelid) NOT IN (
						SELECT o.relation FROM snowflake_migrate_internal.plan_tables AS o JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no) WHERE o.run = run_))
		GROUP BY f.oid, f.conname, f.conrelid, f.confrelid ORDER BY f.conname
	LOOP
		EXECUTE format('SELECT count(*) FROM %s AS t WHERE %s AND NOT EXISTS (SELECT FROM %s AS p WHERE %s)', snowflake_migrate_internal.only(fk.child), fk.given,
					   snowflake_migrate_internal.only(fk.parent), fk.same) INTO count;
		IF count > 0 THEN
			problem := format('rows that the foreign key %I refers to are not there', fk.conname);
			RETURN NEXT;
		END IF;
	END LOOP;
	state := snowflake_migrate_internal.state(plan.relation);
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
COMMENT ON FUNCTION snowflake_migrate_internal.verify_target(bigint, int, boolean) IS 'for snowflake_migrate.verify(): what a table of the target has that it should not';

/*
 * A row for each thing that is not as it should be after a merge; none: it is proved.  Sources and target must not have changed
 * since: rows that somebody changed, or another merge, are named like any that the merge got wrong.
 */
CREATE FUNCTION snowflake_migrate.verify(
	run bigint,
	OUT source name,
	OUT relation text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
	SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	t record;
	s record;
	complete boolean;
	work_mem CONSTANT text := current_setting('work_mem');
BEGIN
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = verify.run;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge with the number %s', verify.run),
			HINT = 'See snowflake_migrate.runs.';
	ELSIF run_row.state NOT IN ('verifying', 'done') THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('the merge with the number %s is %s', run_row.run, run_row.state);
	END IF;
	/* These hash whole tables, as CREATE INDEX sorts them. */
	PERFORM set_config('work_mem', current_setting('maintenance_work_mem'), true);
	FOR t IN SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_row.run ORDER BY p.no LOOP
		relation := t.relation::text;
		complete := true;
		FOR s IN SELECT p.source FROM snowflake_migrate_internal.plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no ORDER BY p.source LOOP
			source := run_row.sources[s.source];
			FOR problem, count, example IN SELECT v.* FROM snowflake_migrate_internal.verify_source(run_row.run, t.no, s.source) AS v LOOP
				complete := false;
				RETURN NEXT;
			END LOOP;
		END LOOP;
		source := NULL;
		CONTINUE WHEN NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no);
		FOR problem, count, example IN SELECT v.* FROM snowflake_migrate_internal.verify_target(run_row.run, t.no, complete) AS v LOOP
			RETURN NEXT;
		END LOOP;
	END LOOP;
	PERFORM set_config('work_mem', work_mem, true);
END
$$;
COMMENT ON FUNCTION snowflake_migrate.verify(bigint) IS 'proves a merge row by row: what is not as it should be';
