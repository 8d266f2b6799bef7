/*
 * The merge itself: rows are copied in batches, parents before children; each batch commits its rows and its position together.
 *
 * Locking: a transaction of a merge holds an advisory lock on the target's name and the run's row, so that another session's is an
 * error; the position is read under them.  Between two batches nothing is locked, but no other run can begin on the target.
 *
 * The transaction's settings: nothing on the search path that somebody else could have put there, rows that row security hides are
 * an error, and triggers do not fire where the right is there to say so; references are then checked for the batch as a set.
 */

/* Begins a transaction of a run, which must be in one of these states. */
CREATE FUNCTION snowflake_migrate_internal.begin(run_ bigint, states text[]) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	PERFORM set_config('row_security', 'off', true), set_config('jit', 'off', true);
	/* Keys and rows are kept and compared as texts as well, whoever goes on. */
	PERFORM set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true), set_config('extra_float_digits', '1', true),
		set_config('bytea_output', 'hex', true);
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge with the number %s', run_),
			HINT = 'See snowflake_migrate.runs.';
	ELSIF NOT pg_try_advisory_xact_lock(hashtext('snowflake_migrate.merge'), hashtext(run_row.target)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('another session merges into schema "%s"', run_row.target),
			HINT = 'See snowflake_migrate.progress.';
	END IF;
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_ FOR UPDATE;
	IF run_row.state <> ALL (states) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('the merge with the number %s is %s', run_, run_row.state);
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.relation)) THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_table', MESSAGE = format('tables of the merge with the number %s are gone', run_),
			HINT = 'It can be neither gone on with nor taken back.';
	END IF;
	IF has_parameter_privilege('session_replication_role', 'SET') THEN
		PERFORM set_config('session_replication_role', 'replica', true);
	END IF;
	RETURN run_row.state;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.begin(bigint, text[])
	IS 'for snowflake_migrate.merge()''s own use: begins a transaction of a run';

/* The constraints and triggers of a table, and whether they are in force: a merge leaves them as they are. */
CREATE FUNCTION snowflake_migrate_internal.state(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(string_agg(x.state, ', ' ORDER BY x.state), '')
	FROM (SELECT format('constraint %I%s', c.conname, CASE WHEN NOT c.convalidated THEN ' not valid' END) FROM pg_constraint AS c WHERE c.conrelid = relation AND c.contype <> 'n'
		  UNION ALL
		  SELECT format('trigger %I %s', CASE WHEN t.tgisinternal THEN regexp_replace(t.tgname, '\d+$', '') ELSE t.tgname END, t.tgenabled) FROM pg_trigger AS t WHERE t.tgrelid = relation) AS x (state)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.state(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the constraints and triggers of a table';

/* Raises an error where these can't be the node numbers of new ids: one that has made ids could make one of them again. */
CREATE FUNCTION snowflake_migrate_internal.check_nodes(sources name[], nodes bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	max_node CONSTANT bigint := (SELECT l.max_node FROM snowflake_migrate_internal.layout() AS l);
	n bigint;
	used record;
BEGIN
	IF nodes IS NULL OR array_position(nodes, NULL) IS NOT NULL OR array_ndims(nodes) <> 1 OR cardinality(nodes) <> cardinality(sources) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a merge needs a node number for each of its sources',
			DETAIL = format('There are %s sources, and the node numbers are %s.', cardinality(sources), coalesce(nodes::text, 'null'));
	ELSIF (SELECT count(DISTINCT u.node) FROM unnest(nodes) AS u (node)) < cardinality(nodes) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('node numbers are given twice: %s', nodes);
	END IF;
	FOREACH n IN ARRAY nodes LOOP
		IF n NOT BETWEEN 0 AND max_node THEN
			RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range', MESSAGE = format('node number %s is out of range', n),
				DETAIL = format('In the server''s layout, node numbers are from 0 to %s.', max_node);
		END IF;
		SELECT u.* INTO used FROM snowflake_migrate.nodes AS u WHERE u.node = n;
		IF FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('node number %s was used by a merge already', n),
				DETAIL = format('Merge %s made ids with it for schema "%s".', used.run, used.source), HINT = 'Give one that was never used.';
		ELSIF n = snowflake_migrate_internal.own_node() THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('node number %s is this server''s own', n), HINT = 'Give one that was never used.';
		END IF;
		PERFORM snowflake_internal.set_aside(n, '-infinity');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_nodes(name[], bigint[])
	IS 'for snowflake_migrate.merge()''s own use: whether nodes can be used';

/* No two rows become one; and who looks for a row of the target finds where it came from. */
CREATE FUNCTION snowflake_migrate_internal.index_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('CREATE UNIQUE INDEX ON %s (%s) WHERE action = ''c''', snowflake_migrate_internal.relation(run_, 'map_' || no_),
		(SELECT snowflake_migrate_internal.key_list('n#', t.key) FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the index of a map by new keys';

/* Whether a column of integers is wide enough for snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.may_hold_ids(relation regclass, attname name) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(nullif(y.typbasetype, 0), y.oid) NOT IN ('smallint'::regtype, 'integer'::regtype)
	FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = relation AND a.attname = may_hold_ids.attname
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.may_hold_ids(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: whether snowflake ids fit into a column';

/* Adds to the report which of the run's nodes occur in ids of the target, what is not merged included, or of a source. */
CREATE FUNCTION snowflake_migrate_internal.find_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	t record;
	found bigint;
	example text;
BEGIN
	FOR t IN
		SELECT p.relation, p.key[1] AS key, NULL::name AS source, p.relation AS target, r.nodes
		FROM snowflake_migrate_internal.plan_tables AS p JOIN snowflake_migrate.runs AS r USING (run) WHERE p.run = run_ AND p.kind = 'id'
		UNION ALL
		SELECT s.relation, p.key[1], r.sources[s.source], p.relation, r.nodes
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run) WHERE p.run = run_ AND p.kind = 'id'
	LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.may_hold_ids(t.relation, t.key);
		EXECUTE format('SELECT count(*), min(t.%I)::text FROM %s AS t WHERE t.%I > %s AND snowflake_migrate_internal.node(t.%I::bigint) = ANY (%L::bigint[])',
			t.key, snowflake_migrate_internal.only(t.relation), t.key, snowflake_migrate_internal.last_serial(), t.key, t.nodes) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', t.source, t.target::text, t.key,
				format('ids have a node number of %s already', t.nodes), found, example, 'Give node numbers that were never used.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_nodes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether nodes occur in ids';

/* Reserves the run's nodes, where there is a registry, up to the end of the newest new id's tick, or the start of the merge. */
CREATE FUNCTION snowflake_migrate_internal.set_aside_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	tick CONSTANT interval := (SELECT l.tick FROM snowflake_migrate_internal.layout() AS l);
	t record;
	newest bigint;
BEGIN
	/* None is used up where another can't be had. */
	FOR t IN SELECT u.node FROM snowflake_migrate.runs AS r, unnest(r.nodes) AS u (node) WHERE r.run = run_ LOOP
		IF NOT snowflake_internal.set_aside(t.node, '-infinity') THEN
			RETURN;
		END IF;
	END LOOP;
	FOR t IN SELECT u.node, u.source, r.started_at FROM snowflake_migrate.runs AS r, unnest(r.nodes) WITH ORDINALITY AS u (node, source) WHERE r.run = run_ LOOP
		EXECUTE format('SELECT max(m.n1) FROM %s AS m WHERE m.source = %s AND m.n1 > %s AND snowflake_migrate_internal.node(m.n1) = %s',
					   snowflake_migrate_internal.relation(run_, 'map'), t.source, snowflake_migrate_internal.last_serial(), t.node) INTO newest;
		PERFORM snowflake_internal.set_aside(t.node, greatest(t.started_at, snowflake_migrate_internal.timestamp(newest) + tick));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_aside_nodes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: reserves nodes in the registry';

/* The number of the run that goes on, or of a new one, whose plan and maps are made. */
CREATE FUNCTION snowflake_migrate_internal.start(sources_ name[], target_ name, nodes_ bigint[], batch_size_ int, dry_run boolean, given bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
	known record;
	t record;
	n bigint;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	PERFORM snowflake_migrate_internal.check_arguments(sources_, target_);
	IF batch_size_ IS NULL OR batch_size_ < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('the size of a batch must be at least 1, not %s', coalesce(batch_size_::text, 'null'));
	END IF;
	SELECT r.* INTO known FROM snowflake_migrate.runs AS r
		WHERE r.target = target_ AND r.state <> 'dry run'
			AND CASE WHEN given IS NOT NULL THEN r.run = given
				ELSE r.state IN ('copying', 'verifying', 'rolling back') OR (r.sources, r.nodes, r.state) = (sources_, nodes_, 'done') END
		ORDER BY r.state = 'done' LIMIT 1;
	IF NOT FOUND AND given IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge into schema "%s" with the number %s', target_, given), HINT = 'See snowflake_migrate.runs.';
	ELSIF known.run IS NOT NULL THEN
		IF dry_run OR (known.sources, known.nodes) IS DISTINCT FROM (sources_, nodes_) THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('merge %s into schema "%s" is %s', known.run, target_, known.state),
				DETAIL = format('It is called with the sources %s and the nodes %s.', known.sources, known.nodes),
				HINT = CASE WHEN known.state IN ('copying', 'verifying', 'rolling back') THEN 'Let it end, or take it back with snowflake_migrate.rollback().' END;
		END IF;
		PERFORM snowflake_migrate_internal.begin(known.run, ARRAY['copying', 'verifying', 'done']);
		UPDATE snowflake_migrate.runs AS r SET batch_size = batch_size_ WHERE r.run = known.run AND r.state <> 'done';
		RETURN known.run;
	END IF;

	IF NOT pg_try_advisory_xact_lock(hashtext('snowflake_migrate.merge'), hashtext(target_)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('another session merges into schema "%s"', target_);
	END IF;
	SELECT r.* INTO known FROM snowflake_migrate.runs AS r WHERE r.target = target_ AND r.state = 'done' AND r.sources && sources_ LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('a source was merged into schema "%s" already', target_),
			DETAIL = format('Merge %s had the sources %s and the nodes %s.', known.run, known.sources, known.nodes),
			HINT = 'Take it back with snowflake_migrate.rollback(), or, if these are other rows, give the schema another name.';
	END IF;
	PERFORM snowflake_migrate_internal.check_nodes(sources_, nodes_);
	INSERT INTO snowflake_migrate.runs (sources, target, nodes, state, batch_size, started_at)
		VALUES (sources_, target_, nodes_, 'copying', batch_size_, clock_timestamp()) RETURNING run INTO run_;
	INSERT INTO snowflake_migrate.nodes (node, run, source) SELECT u.node, run_, u.source FROM unnest(nodes_, sources_) AS u (node, source);
	PERFORM snowflake_migrate_internal.begin(run_, ARRAY['copying']);
	PERFORM snowflake_migrate_internal.plan(run_, sources_, target_);
	PERFORM snowflake_migrate_internal.check_schemas(run_);
	PERFORM snowflake_migrate_internal.refuse(run_);
	PERFORM snowflake_migrate_internal.find_nodes(run_);
	PERFORM snowflake_migrate_internal.make_maps(run_);
	PERFORM snowflake_migrate_internal.refuse(run_);
	PERFORM snowflake_migrate_internal.index_map(run_, p.no) FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.kind <> 'none';

	FOR t IN SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		EXECUTE format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(t.relation)) INTO n;
		UPDATE snowflake_migrate_internal.plan_tables AS p SET former_rows = n, former_state = snowflake_migrate_internal.state(t.relation)
			WHERE p.run = run_ AND p.no = t.no;
	END LOOP;
	UPDATE snowflake_migrate.runs AS r SET mapped_at = clock_timestamp() WHERE r.run = run_;
	/* The last, since no rollback takes it back. */
	IF NOT dry_run THEN
		PERFORM snowflake_migrate_internal.set_aside_nodes(run_);
	END IF;
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.start(name[], name, bigint[], int, boolean, bigint)
	IS 'for snowflake_migrate.merge()''s own use: the run to go on with';

/* Raises an error where the report of a run has errors. */
CREATE FUNCTION snowflake_migrate_internal.refuse(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(concat_ws(': ', concat_ws(', ', 'source ' || f.source, 'table ' || f.relation, f.object),
								concat_ws(' ', f.problem, '(' || f.count || ')', 'for example ' || f.example)), E'\n' ORDER BY f.relation, f.source, f.object)
		INTO problems
		FROM (SELECT f.* FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error' ORDER BY f.relation, f.source, f.object LIMIT 20) AS f;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'cannot merge the schemas as they are', DETAIL = problems,
			HINT = 'snowflake_migrate.check() tells what to do about each.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where the report has errors';

/*
 * A query that locks the rows that these rows refer to and counts those that are not there, for each foreign key one column; rows is
 * the name of a query with the table's columns and tableoid.  Null where there is nothing to check.
 */
CREATE FUNCTION snowflake_migrate_internal.reference_check(relation regclass, rows text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH fk AS (
		SELECT row_number() OVER (ORDER BY f.oid) AS n, f.*,
			(SELECT string_agg(format('x.%I', a.attname), ', ' ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum) AS columns,
			(SELECT string_agg(format('x.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum) AS given,
			(SELECT string_agg(format('p.%I OPERATOR(%I.%s) d.%I', b.attname, s.nspname, o.oprname, a.attname), ' AND ' ORDER BY k.n)
			 FROM unnest(f.conkey, f.confkey, f.conpfeqop) WITH ORDINALITY AS k (attnum, parent_attnum, operator, n)
				JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
				JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
				JOIN pg_operator AS o ON o.oid = k.operator JOIN pg_namespace AS s ON s.oid = o.oprnamespace) AS same
		FROM pg_constraint AS f
		WHERE f.contype = 'f'
			AND ((f.conrelid = relation AND f.conparentid = 0)
				 /* Of a partition alone. */
				 OR (f.conparentid = 0 AND f.conrelid <> relation AND pg_partition_root(f.conrelid) = relation))
			/* Not one that stands for a partition of what is referred to. */
			AND NOT EXISTS (SELECT FROM pg_constraint AS w WHERE w.oid = f.conparentid)
	)
	SELECT string_agg(format(
			', d%s AS (SELECT DISTINCT %s FROM %s AS x WHERE %s%s), l%s AS (SELECT 0 FROM %s AS p JOIN d%s AS d ON %s%s)',
			f.n, f.columns, rows, f.given,
			snowflake_migrate_internal.in_part(f.conrelid, 'x'),
			f.n, snowflake_migrate_internal.only(coalesce(pg_partition_root(f.confrelid), f.confrelid)), f.n, f.same || snowflake_migrate_internal.in_part(f.confrelid, 'p'),
			CASE WHEN has_table_privilege(coalesce(pg_partition_root(f.confrelid), f.confrelid), 'UPDATE') THEN ' FOR KEY SHARE OF p' ELSE '' END), '' ORDER BY f.n)
		|| ' SELECT (SELECT count(*) FROM ' || rows || '), ARRAY[' ||
		string_agg(format('(SELECT count(*) FROM d%s) - (SELECT count(*) FROM l%s)', f.n, f.n), ', ' ORDER BY f.n) || '], ARRAY['
		|| string_agg(quote_literal(f.conname), ', ' ORDER BY f.n) || ']'
	FROM fk AS f
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.reference_check(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: a query that checks foreign keys';

/* What that query needs of rows that are written, as a RETURNING clause. */
CREATE FUNCTION snowflake_migrate_internal.returning(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ' RETURNING ' || coalesce(string_agg(DISTINCT format('t.%I', a.attname), ', ') || ', ', '') || 't.tableoid'
	FROM pg_constraint AS f JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
	WHERE f.contype = 'f' AND coalesce(pg_partition_root(f.conrelid), f.conrelid) = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.returning(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the columns that foreign keys need';

/* Raises an error where rows that these refer to are not there. */
CREATE FUNCTION snowflake_migrate_internal.refuse_missing(relation regclass, missing bigint[], names text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	n int;
BEGIN
	SELECT i INTO n FROM generate_subscripts(missing, 1) AS i WHERE missing[i] > 0 ORDER BY i LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			MESSAGE = format('rows of table %s violate the foreign key constraint "%s"', relation, names[n]),
			DETAIL = format('%s rows that they refer to are not in the target.', missing[n]),
			HINT = 'Look whether the source or the target changed since the merge began.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_missing(regclass, bigint[], text[])
	IS 'for snowflake_migrate.merge()''s own use: an error where rows are missing';

/* Gives the target's rows their new ranks, or (back) the former ones: over null, or values that no row has, as they are unique. */
CREATE FUNCTION snowflake_migrate_internal.apply_ranks(run_ bigint, no_ int, back boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	changed name;
	rank CONSTANT text := snowflake_migrate_internal.relation(run_, 'rank_' || no_);
	nullable boolean;
	offset_ bigint;
	same text;
BEGIN
	IF to_regclass(rank) IS NULL THEN
		RETURN;
	END IF;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT c.name INTO STRICT changed FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.changed_by = 'rerank';
	same := snowflake_migrate_internal.key_list('t.@ = r.n#', plan.key, ' AND ');
	SELECT NOT a.attnotnull AND NOT back
			AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = plan.relation AND i.indnullsnotdistinct AND a.attnum = ANY (i.indkey))
			AND NOT EXISTS (SELECT FROM pg_constraint AS c WHERE c.conrelid = plan.relation AND c.contype = 'c' AND a.attnum = ANY (c.conkey))
		INTO nullable FROM pg_attribute AS a WHERE a.attrelid = plan.relation AND a.attname = changed;
	EXECUTE format('SELECT greatest((SELECT max(%I) FROM %s), (SELECT max(greatest(r.old, r.new)) FROM %s AS r))', changed,
				   snowflake_migrate_internal.only(plan.relation), rank) INTO offset_;
	EXECUTE format('UPDATE %s AS t SET %I = %s FROM %s AS r WHERE %s AND t.%I = r.%I', snowflake_migrate_internal.only(plan.relation),
				   changed, CASE WHEN nullable THEN 'NULL' ELSE format('t.%I + %s', changed, offset_) END, rank, same, changed, CASE WHEN back THEN 'new' ELSE 'old' END);
	EXECUTE format('UPDATE %s AS t SET %I = r.%I FROM %s AS r WHERE %s AND %s', snowflake_migrate_internal.only(plan.relation),
				   changed, CASE WHEN back THEN 'old' ELSE 'new' END, rank, same,
				   CASE WHEN nullable THEN format('t.%I IS NULL', changed) ELSE format('t.%I = r.%I + %s', changed, CASE WHEN back THEN 'new' ELSE 'old' END, offset_) END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.apply_ranks(bigint, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: gives the target''s rows their new ranks';

/*
 * The next batch of one table of one source, from where the last one ended, as a condition on the map's columns m and on the source's
 * columns s, the end of it, and whether it is the last; entries says which of the map's entries count.
 */
CREATE FUNCTION snowflake_migrate_internal.range(
	run_ bigint,
	no_ int,
	source_ int,
	batch_size int,
	entries text,
	OUT of_map text,
	OUT of_source text,
	OUT range_end text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	progress record;
	range_key record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.* INTO STRICT progress FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	SELECT k.* INTO range_key FROM snowflake_migrate_internal.key_values(plan.relation, plan.relation, plan.key) AS k WHERE k.can_range ORDER BY k.n LIMIT 1;
	of_map := format('m.source = %s AND %s', source_, entries);
	of_source := '';
	IF plan.kind = 'none' THEN
		of_map := NULL;
		RETURN;
	ELSIF plan.cyclic OR range_key IS NULL THEN
		RETURN;
	END IF;
	IF progress.position IS NOT NULL THEN
		of_map := of_map || format(' AND m.o%s > %L::%s', range_key.n, progress.position, range_key.type);
		of_source := format(' AND s.%I > %L::%s', plan.key[range_key.n], progress.position, range_key.type);
	END IF;
	EXECUTE format('SELECT m.o%s::text FROM %s AS m WHERE %s ORDER BY m.o%s OFFSET %s LIMIT 1', range_key.n, snowflake_migrate_internal.relation(run_, 'map_' || no_),
				   of_map, range_key.n, batch_size - 1) INTO range_end;
	IF range_end IS NOT NULL THEN
		of_map := of_map || format(' AND m.o%s <= %L::%s', range_key.n, range_end, range_key.type);
		of_source := of_source || format(' AND s.%I <= %L::%s', plan.key[range_key.n], range_end, range_key.type);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.range(bigint, int, int, int, text)
	IS 'for snowflake_migrate.merge()''s own use: the next batch of a table';

/* Copies one batch of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.copy(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	part record;
	parts record;
	insert_text text;
	update_text text := '';
	replaced boolean;
	returned text;
	check_text text;
	copied bigint;
	missing bigint[];
	names text[];
	started CONSTANT timestamptz := clock_timestamp();
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.copied_by <> '{}') THEN
		PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, false);
	END IF;
	part := snowflake_migrate_internal.range(run_, no_, source_, run_row.batch_size, 'm.action IN (''c'', ''r'')');
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	returned := snowflake_migrate_internal.returning(plan.relation);

	insert_text := format('INSERT INTO %s AS t (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s%s', plan.relation,
		(SELECT string_agg(quote_ident(n), ', ' ORDER BY i) FROM unnest(parts.names) WITH ORDINALITY AS u (n, i)),
		array_to_string(parts.expressions, ', '), parts.origin, ' WHERE ' || part.of_map || part.of_source || ' AND m.action = ''c''' || CASE plan.kind WHEN 'id' THEN ' ORDER BY m.n1' ELSE '' END);
	IF to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || no_)) IS NOT NULL THEN
		EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE %s AND m.action = ''r'')', map, part.of_map) INTO replaced;
		IF replaced THEN
			/* Once for people, and once as it was. */
			EXECUTE format('INSERT INTO %s SELECT t.* FROM %s AS t JOIN %s AS m ON %s WHERE %s AND m.action = ''r''',
				snowflake_migrate_internal.relation(run_, 'former_' || no_), snowflake_migrate_internal.only(plan.relation), map,
				snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), part.of_map);
			EXECUTE format('UPDATE snowflake_migrate.records AS c SET former_row = to_jsonb(t) FROM %s AS m JOIN %s AS t ON %s '
				'WHERE %s AND m.action = ''r'' AND c.run = %s AND c.relation = %L AND c.source = %L AND c.policy = ''keep_source'' AND c.old_key = %s',
				map, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '),
				part.of_map, run_, plan.relation, run_row.sources[source_], snowflake_migrate_internal.key_text('m.o#', plan.key));
			SELECT format(', u AS (UPDATE %s AS t SET (%s) = ROW (%s) FROM (SELECT %s, %s FROM %s WHERE %s%s AND m.action = ''r'') AS q WHERE %s%s), '
					'b AS (SELECT * FROM i UNION ALL SELECT * FROM u)',
					snowflake_migrate_internal.only(plan.relation), string_agg(quote_ident(e.name), ', ' ORDER BY e.n), string_agg(format('q.%I', e.name), ', ' ORDER BY e.n),
					snowflake_migrate_internal.key_list('m.n# AS "merge n#"', plan.key), string_agg(format('%s AS %I', e.expression, e.name), ', ' ORDER BY e.n),
					parts.origin, part.of_map, part.of_source, snowflake_migrate_internal.key_list('t.@ = q."merge n#"', plan.key, ' AND '), returned)
				INTO update_text
				FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)
					JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = e.name
				WHERE e.name <> ALL (plan.key::text[]) AND a.attidentity <> 'a';
			update_text := coalesce(update_text, '');
		END IF;
	END IF;

	/* Where triggers are on, they check the foreign keys; where tables refer to each other, it is done when all of them are copied. */
	check_text := CASE WHEN current_setting('session_replication_role') = 'replica' AND NOT plan.cyclic
		THEN snowflake_migrate_internal.reference_check(plan.relation, CASE WHEN update_text = '' THEN 'i' ELSE 'b' END) END;
	IF check_text IS NULL AND update_text = '' THEN
		EXECUTE insert_text;
		GET DIAGNOSTICS copied = ROW_COUNT;
	ELSE
		EXECUTE format('WITH i AS (%s%s)%s%s', insert_text, returned, update_text,
			coalesce(check_text, format(' SELECT (SELECT count(*) FROM %s), NULL::bigint[], NULL::text[]', CASE WHEN update_text = '' THEN 'i' ELSE 'b' END)))
			INTO copied, missing, names;
		PERFORM snowflake_migrate_internal.refuse_missing(plan.relation, missing, names);
	END IF;

	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET rows_done = s.rows_done + copied, position = part.range_end, done = part.range_end IS NULL,
			busy = s.busy + (clock_timestamp() - started), copied_by = s.copied_by || pg_current_xact_id()
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: copies a batch';

/* What one transaction of the copying does: a batch, or all tables of a cycle.  Returns false when there is nothing left. */
CREATE FUNCTION snowflake_migrate_internal.step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	next record;
	member record;
	check_text text;
	copied bigint;
	missing bigint[];
	names text[];
BEGIN
	SELECT s.no, s.source, t.copy_step, t.cyclic INTO next
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND NOT s.done ORDER BY t.copy_step, s.source, s.no LIMIT 1;
	IF NOT FOUND THEN
		RETURN false;
	ELSIF NOT next.cyclic THEN
		PERFORM snowflake_migrate_internal.copy(run_, next.no, next.source);
		RETURN true;
	END IF;
	FOR member IN SELECT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = next.copy_step AND s.source = next.source ORDER BY s.no
	LOOP
		PERFORM snowflake_migrate_internal.copy(run_, member.no, next.source);
	END LOOP;
	FOR member IN SELECT s.no, t.relation, t.key FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = next.copy_step AND s.source = next.source AND t.kind <> 'none' ORDER BY s.no
	LOOP
		check_text := snowflake_migrate_internal.reference_check(member.relation, 'i');
		CONTINUE WHEN check_text IS NULL;
		EXECUTE format('WITH i AS (SELECT t.*, t.tableoid FROM %s AS t JOIN %s AS m ON m.source = %s AND m.action IN (''c'', ''r'') AND %s)%s',
			snowflake_migrate_internal.only(member.relation), snowflake_migrate_internal.relation(run_, 'map_' || member.no), next.source,
			snowflake_migrate_internal.key_list('t.@ = m.n#', member.key, ' AND '), check_text) INTO copied, missing, names;
		PERFORM snowflake_migrate_internal.refuse_missing(member.relation, missing, names);
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.step(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of the copying';

/*
 * Sets the sequences of columns that are not renumbered past the merged values; those of renumbered ones stay as they are.  A dry
 * run only reports it, as it could not be rolled back.
 */
CREATE FUNCTION snowflake_migrate_internal.set_sequences(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	seq record;
	last bigint;
	reached bigint;
BEGIN
	FOR seq IN
		SELECT DISTINCT t.relation, a.attname, q.seqrelid::regclass AS sequence, q.seqincrement > 0 AS ascending
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
			LEFT JOIN pg_attrdef AS d ON d.adrelid = t.relation AND d.adnum = a.attnum
			JOIN pg_depend AS u ON (u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = t.relation AND u.refobjsubid = a.attnum
									AND u.deptype IN ('a', 'i'))
				OR (u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass)
			JOIN pg_sequence AS q ON q.seqrelid IN (u.objid, u.refobjid)
		WHERE t.run = run_ AND t.mode <> 'ignore' AND NOT (t.kind = 'id' AND a.attname = t.key[1])
			AND a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
		ORDER BY 1, 2
	LOOP
		EXECUTE format('SELECT %s(%I) FROM %s', CASE WHEN seq.ascending THEN 'max' ELSE 'min' END, seq.attname, snowflake_migrate_internal.only(seq.relation)) INTO reached;
		CONTINUE WHEN reached IS NULL;
		IF NOT snowflake_migrate_internal.can_set(seq.sequence) THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, seq.relation::text, seq.attname,
				format('permission denied to set sequence %s past the merged values', seq.sequence), NULL, reached::text,
				format('Before the table is written to: SELECT setval(%L, %s);', seq.sequence, reached));
			CONTINUE;
		END IF;
		last := pg_sequence_last_value(seq.sequence);
		IF (last IS NULL OR CASE WHEN seq.ascending THEN reached > last ELSE reached < last END) THEN
			IF NOT dry_run THEN
				PERFORM setval(seq.sequence, reached);
			END IF;
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, seq.relation::text, seq.attname, format('sequence %s is set past the merged values', seq.sequence),
													 NULL, reached::text, NULL);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_sequences(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: sets sequences past the merged values';

/* After the last batch: sequences, and the report of what was copied. */
CREATE FUNCTION snowflake_migrate_internal.end_of_copy(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	grown regclass;
BEGIN
	PERFORM snowflake_migrate_internal.set_sequences(run_, dry_run);
	PERFORM snowflake_migrate_internal.find(run_, 'info', r.sources[s.source], t.relation::text, NULL, 'rows are copied', s.rows_done, NULL, NULL)
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
		WHERE s.run = run_ ORDER BY s.source, s.no;
	/* They have grown so much that the planner should know. */
	IF NOT dry_run THEN
		FOR grown IN SELECT t.relation FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
			WHERE t.run = run_ AND pg_has_role(c.relowner, 'USAGE')
				AND (SELECT sum(s.rows_done) FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no) > t.former_rows / 10 + 1000
		LOOP
			EXECUTE format('ANALYZE %s', grown);
		END LOOP;
	END IF;
	UPDATE snowflake_migrate.runs AS r SET state = 'verifying', copied_at = clock_timestamp() WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.end_of_copy(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: what follows the last batch';

/* Verifies a run, adds to its report what it finds, and returns whether that is nothing: then the run is done. */
CREATE FUNCTION snowflake_migrate_internal.end(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	proved boolean;
BEGIN
	DELETE FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error';
	INSERT INTO snowflake_migrate.report (run, severity, source, relation, problem, count, example)
		SELECT run_, 'error', v.source, v.relation, v.problem, v.count, v.example FROM snowflake_migrate.verify(run_) AS v;
	proved := NOT FOUND;
	UPDATE snowflake_migrate.runs AS r SET state = 'done', finished_at = clock_timestamp() WHERE r.run = run_ AND proved;
	RETURN proved;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.end(bigint)
	IS 'for snowflake_migrate.merge()''s own use: verifies a run';

/* Puts on record what a dry run found, after it was rolled back. */
CREATE FUNCTION snowflake_migrate_internal.record_dry_run(sources_ name[], target_ name, nodes_ bigint[], batch_size_ int, started timestamptz, report jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
BEGIN
	INSERT INTO snowflake_migrate.runs (sources, target, nodes, state, batch_size, started_at, finished_at)
		VALUES (sources_, target_, nodes_, 'dry run', batch_size_, started, clock_timestamp()) RETURNING run INTO run_;
	INSERT INTO snowflake_migrate.report
		SELECT run_, f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice
		FROM jsonb_to_recordset(report) AS f (severity text, source name, relation text, object text, problem text, count bigint, example text, advice text);
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_dry_run(name[], name, bigint[], int, timestamptz, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps the report of a dry run';

/*
 * Merges schemas into one.  Nothing is copied before everything that can be known to stop it is known.  To be called outside of a
 * transaction block; the same call goes on with a run that was interrupted.
 *
 * sources: schemas of this database; nodes: for each, a node number that no id has; batch_size: rows in a transaction, but that a
 * cycle of tables and tables without a key are one; dry_run: all of it, rolled back but for the report; run: the number of the run.
 */
CREATE PROCEDURE snowflake_migrate.merge(
	sources name[],
	target name,
	nodes bigint[],
	batch_size int DEFAULT 10000,
	dry_run boolean DEFAULT false,
	INOUT run bigint DEFAULT NULL)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
	started timestamptz := pg_catalog.clock_timestamp();
	state text;
	proved boolean;
	report jsonb;
BEGIN
	run := snowflake_migrate_internal.start(sources, target, nodes, batch_size, dry_run IS TRUE, run);
	IF dry_run IS NOT TRUE THEN
		COMMIT;
	END IF;
	LOOP
		state := snowflake_migrate_internal.begin(run, ARRAY['copying', 'verifying', 'done']);
		IF state = 'done' THEN
			RAISE NOTICE 'merge % is done already', run;
			RETURN;
		END IF;
		EXIT WHEN state = 'verifying';
		IF NOT snowflake_migrate_internal.step(run) THEN
			PERFORM snowflake_migrate_internal.end_of_copy(run, dry_run IS TRUE);
		END IF;
		IF dry_run IS NOT TRUE THEN
			COMMIT;
		END IF;
	END LOOP;
	proved := snowflake_migrate_internal.end(run);
	IF dry_run IS TRUE THEN
		SELECT jsonb_agg(to_jsonb(f)) INTO report FROM snowflake_migrate.report AS f WHERE f.run = merge.run;
		ROLLBACK;
		run := snowflake_migrate_internal.record_dry_run(sources, target, nodes, batch_size, started, report);
	END IF;
	COMMIT;
	IF NOT proved THEN
		RAISE EXCEPTION USING ERRCODE = 'data_exception', MESSAGE = pg_catalog.format('merge %s does not pass its verification', run),
			HINT = 'See snowflake_migrate.report; put it right and call snowflake_migrate.merge() again, or take it back with snowflake_migrate.rollback().';
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.merge(name[], name, bigint[], int, boolean, bigint) IS 'merges schemas into one';

/* One map, for people. */
CREATE FUNCTION snowflake_migrate_internal.read_map(
	run_ bigint,
	no_ int,
	OUT source int,
	OUT action text,
	OUT old_key text,
	OUT new_key text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET bytea_output = 'hex'
AS $$
#variable_conflict use_column
DECLARE
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	key name[];
BEGIN
	IF to_regclass(map) IS NOT NULL THEN
		SELECT t.key INTO key FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
		RETURN QUERY EXECUTE format('SELECT m.source, CASE m.action WHEN ''c'' THEN ''copied'' WHEN ''m'' THEN ''matched'' WHEN ''k'' THEN ''kept_target'' '
			'WHEN ''r'' THEN ''kept_source'' WHEN ''s'' THEN ''skipped'' END, %s, CASE WHEN m.action <> ''s'' THEN %s END FROM %s AS m',
			snowflake_migrate_internal.key_text('m.o#', key), snowflake_migrate_internal.key_text('m.n#', key), map);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.read_map(bigint, int) IS 'for the view snowflake_migrate.map: one map';

/* As the report and the records have it, whatever the caller's search path. */
CREATE FUNCTION snowflake_migrate_internal.table_name(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT relation::text $$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_name(regclass) IS 'for views: the name of a table with its schema';

CREATE VIEW snowflake_migrate.map AS
SELECT t.run, r.sources[m.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation, m.action, m.old_key, m.new_key
  FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate.runs AS r USING (run), LATERAL snowflake_migrate_internal.read_map(t.run, t.no) AS m
 WHERE t.kind OPERATOR(pg_catalog.<>) 'none';
COMMENT ON VIEW snowflake_migrate.map IS 'which row of which source became which of the target';

CREATE VIEW snowflake_migrate.progress AS
SELECT s.run, r.state, r.sources[s.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation, s.rows_done, s.rows_to_do,
	pg_catalog.round((s.rows_done / nullif(extract(epoch FROM s.busy), 0))) AS rate,
	CASE WHEN s.done OR s.rows_done = 0 THEN CASE WHEN s.done THEN '0'::interval END
		 ELSE s.busy * ((s.rows_to_do - s.rows_done) / s.rows_done::float8) END AS time_left
  FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no) JOIN snowflake_migrate.runs AS r USING (run);
COMMENT ON VIEW snowflake_migrate.progress IS 'how far merges are, by table; rate in rows a second';
