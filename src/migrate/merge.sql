/*
 * The merge itself: its transactions, from the plan to the proof.  Rows are copied in batches, parents before children;
 * each batch commits its rows and its position together.
 *
 * Locking: a transaction of a merge locks its targets' rows in the table targets and the run's row, so that another
 * session's is an error; the position is read under them.  Between two batches nothing is locked, but no other run can
 * begin on a target (occupy()).  These are locks on rows, and not advisory ones, since anybody who may connect could
 * take those.
 *
 * The transaction's settings: nothing on the search path that somebody else could have put there, rows that row
 * security hides are an error, and triggers do not fire where the right is there to say so.
 *
 * Procedures that commit, and what they call first, set the search path themselves.  The types of their variables are
 * looked up before they do, so they name the schema.
 */

/* Schemas as errors name them. */
CREATE FUNCTION snowflake_migrate_internal.schemas_text(schemas name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(schemas) WHEN 1 THEN 'schema ' ELSE 'schemas ' END
		|| string_agg(format('"%s"', s.name), ', ' ORDER BY s.n)
	FROM unnest(schemas) WITH ORDINALITY AS s (name, n)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.schemas_text(name[])
	IS 'for snowflake_migrate.merge()''s own use: schemas as errors name them';

/* Locks targets until the end of the transaction, or raises an error where another session merges into one of them. */
CREATE FUNCTION snowflake_migrate_internal.lock_targets(targets name[], strength text DEFAULT 'UPDATE') RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	locked name;
BEGIN
	FOREACH locked IN ARRAY targets LOOP
		IF NOT snowflake_migrate_internal.lock_name(locked, strength) THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use',
				MESSAGE = format('another session is merging into schema "%s"', locked),
				HINT = 'See snowflake_migrate.progress.';
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lock_targets(name[], text)
	IS 'for snowflake_migrate.merge()''s own use: locks targets';

/*
 * Makes a run the only one that is not finished of those into its targets, which are locked: an error where there is
 * another.  A transaction that looked before it had the locks may not know of it; it can't lock rows that have changed
 * since.
 */
CREATE FUNCTION snowflake_migrate_internal.occupy(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	own CONSTANT name[] := snowflake_migrate_internal.targets_of(run_);
	other snowflake_migrate.runs;
BEGIN
	SELECT r.* INTO other
		FROM snowflake_migrate.runs AS r
		WHERE r.run <> run_ AND r.targets && own AND snowflake_migrate_internal.is_unfinished(r.state)
		LIMIT 1;
	IF FOUND THEN
		PERFORM snowflake_migrate_internal.refuse_in_use(other);
	END IF;
	UPDATE snowflake_migrate_internal.targets AS t SET target = t.target WHERE t.target = ANY (own);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.occupy(bigint)
	IS 'for snowflake_migrate.merge()''s own use: lets no other run begin on the targets of one';

/* Raises an error where tables of the sources were dropped, without which a run is neither continued nor proved. */
CREATE FUNCTION snowflake_migrate_internal.refuse_lost_sources(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	lost text;
BEGIN
	SELECT string_agg(format('Source "%s" has no table for %s any more.', r.sources[s.source], t.relation), E'\n'
					  ORDER BY s.source, s.no)
		INTO lost
		FROM (
				SELECT s.run, s.source, s.no FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.relation)
				ORDER BY s.source, s.no
				LIMIT 20) AS s
			JOIN snowflake_migrate.runs AS r USING (run)
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t;
	IF lost IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_table',
			MESSAGE = format('tables of the sources of merge %s no longer exist', run_),
			DETAIL = lost,
			HINT = 'Without them, the merge can be neither continued nor proved. It can be taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_lost_sources(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where tables of the sources were dropped';

/* Raises an error where columns of the target were dropped or renamed since: the plan knows them by their names. */
CREATE FUNCTION snowflake_migrate_internal.refuse_lost_columns(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	lost text;
BEGIN
	SELECT string_agg(format('Table %s has no column "%s" any more.', l.relation, l.name), E'\n'
					  ORDER BY l.no, l.position)
		INTO lost
		FROM (
				SELECT t.no, t.relation, c.position, c.name
				FROM snowflake_migrate_internal.plan_tables AS t
					JOIN snowflake_migrate_internal.plan_columns AS c USING (run, no)
				WHERE t.run = run_
					AND NOT EXISTS (SELECT FROM pg_attribute AS a
									WHERE a.attrelid = t.relation AND a.attname = c.name AND NOT a.attisdropped)
					AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
								WHERE s.run = run_ AND s.no = t.no)
				ORDER BY t.no, c.position
				LIMIT 20) AS l;
	IF lost IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('columns of the target of merge %s were dropped or renamed since', run_),
			DETAIL = lost,
			HINT = 'Without them, the merge can be neither continued nor proved. It can be taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_lost_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where columns of the target were dropped or renamed';

/* Takes tables that were dropped out of the plan of a run that is taken back: their rows are gone with them. */
CREATE FUNCTION snowflake_migrate_internal.forget_dropped(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	dropped CONSTANT int[] := ARRAY(
		SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.relation));
BEGIN
	DELETE FROM snowflake_migrate_internal.plan_references AS r
		WHERE r.run = run_ AND (r.no = ANY (dropped) OR r.referenced = ANY (dropped));
	DELETE FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = ANY (dropped);
	DELETE FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = ANY (dropped);
	DELETE FROM snowflake_migrate_internal.plan_indexes AS i WHERE i.run = run_ AND i.no = ANY (dropped);
	DELETE FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = ANY (dropped);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, NULL, NULL,
		'tables of the merge no longer exist: nothing of them is taken back', cardinality(dropped));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.forget_dropped(bigint)
	IS 'for snowflake_migrate.rollback(): takes tables that were dropped out of a plan';

/*
 * Begins a transaction of a run, which must be in one of these states.  strength is that of its locks (jobs.sql):
 * UPDATE for a session that works alone, KEY SHARE for a worker, NO KEY UPDATE for a caller that waits for its workers.
 * Such a caller executes nothing of the plan and locks no tables, or its workers would wait for it.
 */
CREATE FUNCTION snowflake_migrate_internal.begin(
	run_ bigint,
	states text[],
	strength text DEFAULT 'UPDATE') RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	run_row snowflake_migrate.runs;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	PERFORM set_config('row_security', 'off', true), set_config('jit', 'off', true);
	/* Keys and rows are kept and compared as texts as well, whoever goes on. */
	PERFORM set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true),
		set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true),
		set_config('array_nulls', 'on', true);
	/* So are names of tables and columns.  Definitions of indexes are read again as they were written. */
	PERFORM set_config('quote_all_identifiers', 'off', true), set_config('standard_conforming_strings', 'on', true);
	PERFORM snowflake_migrate_internal.lock_targets(r.targets, strength)
		FROM snowflake_migrate_internal.own_run(run_) AS r;
	EXECUTE format('SELECT r.* FROM snowflake_migrate.runs AS r WHERE r.run = $1 FOR %s', strength)
		INTO run_row USING run_;
	PERFORM set_config('timezone', run_row.time_zone, true), set_config('lc_monetary', run_row.lc_monetary, true);
	IF run_row.state <> ALL (states) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('merge %s is %s', run_, run_row.state);
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p
			   WHERE p.run = run_ AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.relation)) THEN
		IF 'rolling back' <> ALL (states) THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_table',
				MESSAGE = format('tables of merge %s no longer exist', run_),
				HINT = 'The merge cannot be continued. Take it back with snowflake_migrate.rollback().';
		END IF;
		PERFORM snowflake_migrate_internal.forget_dropped(run_);
	END IF;
	IF run_row.state <> 'done' AND 'rolling back' <> ALL (states) THEN
		PERFORM snowflake_migrate_internal.refuse_lost_sources(run_);
	END IF;
	/* A run that is done needs none to be continued. */
	IF run_row.state <> 'done' THEN
		PERFORM snowflake_migrate_internal.refuse_maps(run_);
	END IF;
	IF strength <> 'NO KEY UPDATE' THEN
		PERFORM snowflake_migrate_internal.refuse_code(run_);
	END IF;
	/* For all of its rows, triggers fire, or do not. */
	IF NOT run_row.fires_triggers THEN
		PERFORM snowflake_migrate_internal.refuse_triggers(run_);
		PERFORM set_config('session_replication_role', 'replica', true);
	END IF;
	RETURN run_row.state;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.begin(bigint, text[], text)
	IS 'for snowflake_migrate.merge()''s own use: begins a transaction of a run';

/* Raises an error where triggers would fire, which have not fired for the first rows of a run. */
CREATE FUNCTION snowflake_migrate_internal.refuse_triggers(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT has_parameter_privilege('session_replication_role', 'SET') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'permission denied to set parameter "session_replication_role"',
			DETAIL = format('Merge %s began with that right: from now on, triggers would fire.', run_),
			HINT = format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_triggers(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where triggers would fire from now on';

/* What a run was called with, as errors say it. */
CREATE FUNCTION snowflake_migrate_internal.call_text(called snowflake_migrate.runs) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('the sources %s and the nodes %s',
				  CASE cardinality(called.targets) WHEN 1 THEN called.sources ELSE called.schemas END, called.nodes)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.call_text(snowflake_migrate.runs)
	IS 'for snowflake_migrate.merge()''s own use: what a run was called with';

/* Raises an error: a run is in the way of another. */
CREATE FUNCTION snowflake_migrate_internal.refuse_in_use(known snowflake_migrate.runs) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'object_in_use',
		MESSAGE = format('merge %s into %s is %s', known.run, snowflake_migrate_internal.schemas_text(known.targets),
						 known.state),
		DETAIL = format('It was called with %s.', snowflake_migrate_internal.call_text(known)),
		HINT = CASE WHEN snowflake_migrate_internal.is_unfinished(known.state)
			THEN 'Let it end, or take it back with snowflake_migrate.rollback().'
			ELSE 'See snowflake_migrate.runs.' END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_in_use(snowflake_migrate.runs)
	IS 'for snowflake_migrate.merge()''s own use: an error where a run is in the way of another';

/* The run that a call goes on with; null where it is a new one, and an error where the run is for something else. */
CREATE FUNCTION snowflake_migrate_internal.run_to_continue(
	schemas_ name[],
	targets_ name[],
	nodes_ bigint[],
	dry_run boolean,
	given bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	known snowflake_migrate.runs;
BEGIN
	SELECT r.* INTO known
		FROM snowflake_migrate.runs AS r
		WHERE r.targets && targets_ AND r.state <> 'dry run'
			AND CASE WHEN given IS NOT NULL THEN r.run = given
				ELSE snowflake_migrate_internal.is_unfinished(r.state)
					OR (r.schemas, r.targets, r.nodes, r.state) = (schemas_, targets_, nodes_, 'done') END
		ORDER BY r.state = 'done'
		LIMIT 1;
	IF NOT FOUND THEN
		IF given IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_object',
				MESSAGE = format('merge %s into %s does not exist', given,
								 snowflake_migrate_internal.schemas_text(targets_)),
				HINT = 'See snowflake_migrate.runs.';
		END IF;
		RETURN NULL;
	ELSIF dry_run OR (known.schemas, known.targets, known.nodes) IS DISTINCT FROM (schemas_, targets_, nodes_) THEN
		PERFORM snowflake_migrate_internal.refuse_in_use(known);
	END IF;
	RETURN known.run;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_to_continue(name[], name[], bigint[], boolean, bigint)
	IS 'for snowflake_migrate.merge()''s own use: the run to go on with';

/* Puts a new run on record, and uses its nodes up. */
CREATE FUNCTION snowflake_migrate_internal.create_run(
	schemas_ name[],
	targets_ name[],
	nodes_ bigint[],
	batch_size_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
	known snowflake_migrate.runs;
BEGIN
	PERFORM snowflake_migrate_internal.lock_targets(targets_);
	SELECT r.* INTO known
		FROM snowflake_migrate.runs AS r
		WHERE r.targets && targets_ AND r.state = 'done' AND EXISTS (
			SELECT FROM generate_subscripts(schemas_, 1) AS s (n) CROSS JOIN generate_subscripts(schemas_, 2) AS t (n)
			WHERE schemas_[s.n][t.n] = ANY (r.schemas) AND NOT EXISTS (
				SELECT FROM snowflake_migrate_internal.merged_before(schemas_, targets_) AS b
				WHERE b.source_no = s.n AND b.schema = schemas_[s.n][t.n]))
		ORDER BY r.run LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('a source has already been merged into %s',
							 snowflake_migrate_internal.schemas_text(known.targets)),
			DETAIL = format('Merge %s had %s.', known.run, snowflake_migrate_internal.call_text(known)),
			HINT = 'Take it back with snowflake_migrate.rollback(), or, '
				'if these are other rows, give the schema another name.';
	END IF;
	PERFORM snowflake_migrate_internal.check_nodes(array_length(schemas_, 1), nodes_);
	run_ := snowflake_migrate_internal.new_run_with_schema();
	PERFORM snowflake_migrate_internal.write_run(
		run_, schemas_, targets_, nodes_, 'copying', batch_size_, clock_timestamp());
	PERFORM snowflake_migrate_internal.occupy(run_);
	PERFORM snowflake_migrate_internal.record_node(u.node, run_, u.source)
		FROM snowflake_migrate.runs AS r CROSS JOIN LATERAL unnest(r.nodes, r.sources) AS u (node, source)
		WHERE r.run = run_;
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_run(name[], name[], bigint[], int)
	IS 'for snowflake_migrate.merge()''s own use: puts a new run on record';

/* The constraints and triggers of a table, and whether they are in force: a merge leaves them as they are. */
CREATE FUNCTION snowflake_migrate_internal.table_state(relation regclass) RETURNS text[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ARRAY(
		SELECT format('constraint %I %s', c.conname, pg_get_constraintdef(c.oid))
		FROM pg_constraint AS c
		WHERE c.conrelid = relation AND c.contype <> 'n'
			/* A foreign key to a partitioned table has one for each partition, which may be new. */
			AND NOT EXISTS (SELECT FROM pg_constraint AS p WHERE p.oid = c.conparentid AND p.conrelid = relation)
		UNION ALL
		SELECT format('column %I NOT NULL', a.attname)
		FROM snowflake_migrate_internal.columns_of(relation) AS a
		WHERE a.attnotnull
		UNION ALL
		SELECT pg_get_indexdef(i.indexrelid)
		FROM pg_index AS i
		WHERE i.indrelid = relation AND i.indisunique
			AND NOT EXISTS (SELECT FROM pg_constraint AS c WHERE c.conindid = i.indexrelid AND c.conrelid = relation)
		UNION ALL
		SELECT format('trigger %I %s', t.tgname, t.tgenabled)
		FROM pg_trigger AS t
		WHERE t.tgrelid = relation AND NOT t.tgisinternal
		UNION ALL
		/* A foreign key has some in both tables: another table's, which may be new, only where they don't fire. */
		SELECT DISTINCT format('triggers of constraint %I of %s %s', c.conname, c.conrelid::regclass, t.tgenabled)
		FROM pg_trigger AS t JOIN pg_constraint AS c ON c.oid = t.tgconstraint
		WHERE t.tgrelid = relation AND t.tgisinternal AND (c.conrelid = relation OR t.tgenabled <> 'O')
			AND NOT EXISTS (SELECT FROM pg_constraint AS p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid)
		ORDER BY 1)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_state(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the constraints and triggers of a table';

/* Puts on record how the tables of the target are before the first row is copied. */
CREATE FUNCTION snowflake_migrate_internal.record_former_state(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	t record;
	n bigint;
	n_ahead bigint;
BEGIN
	FOR t IN
		SELECT p.no, p.relation,
			CASE p.kind WHEN 'id' THEN format('count(*) FILTER (WHERE t.%I > %s)', p.key[1],
											  snowflake_migrate_internal.max_id(r.started_at))
				ELSE '0' END AS ahead
		FROM snowflake_migrate_internal.plan_tables AS p JOIN snowflake_migrate.runs AS r USING (run)
		WHERE p.run = run_
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		EXECUTE format('SELECT count(*), %s FROM %s AS t', t.ahead, snowflake_migrate_internal.only(t.relation))
			INTO n, n_ahead;
		UPDATE snowflake_migrate_internal.plan_tables AS p
			SET former_rows = n, former_ahead = n_ahead,
				former_state = snowflake_migrate_internal.table_state(t.relation)
			WHERE p.run = run_ AND p.no = t.no;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_former_state(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the target before the merge';

/*
 * Indexes the maps by new keys: no two rows become one, and a row of the target is found in the map.  Of a target in
 * use, keys that are made of others' may be equal while they are resolved again; find_equal_keys() looks then.
 */
CREATE FUNCTION snowflake_migrate_internal.index_maps(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	map record;
BEGIN
	FOR map IN
		SELECT p.no, CASE WHEN in_use AND p.kind = 'key' THEN 'INDEX' ELSE 'UNIQUE INDEX' END AS index
		FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND p.kind <> 'none'
		ORDER BY p.no
	LOOP
		EXECUTE snowflake_migrate_internal.fill('CREATE {index} ON {map} ({n#}) WHERE action = ''c''',
			snowflake_migrate_internal.names(run_, map.no) || jsonb_build_object('index', map.index));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_maps(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the indexes of the maps by new keys';

/* Raises an error where the report of a run has errors. */
CREATE FUNCTION snowflake_migrate_internal.refuse_errors(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(e.text, E'\n' ORDER BY e.n)
		INTO problems
		FROM (SELECT snowflake_migrate_internal.problem_text(f) AS text,
				row_number() OVER (ORDER BY f.relation, f.source, f.object) AS n
			  FROM snowflake_migrate.report AS f
			  WHERE f.run = run_ AND f.severity = 'error'
			  ORDER BY n
			  LIMIT 20) AS e;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'cannot merge the schemas as they are', DETAIL = problems,
			HINT = 'snowflake_migrate.check() tells what to do about each.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_errors(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where the report has errors';

/*
 * Raises an error where columns may be references, and nobody has said what they are; or where rows would be lost
 * (without a column, ask_about_lost_rows()).
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_questions(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	questions text;
	has_rows boolean;
	has_columns boolean;
	message text;
	hint text;
BEGIN
	/* About rows first: these would be lost.  No more than 20. */
	SELECT string_agg(format('table %s: %s', concat_ws(', ', f.relation, f.object), f.problem), E'\n' ORDER BY f.n)
				FILTER (WHERE f.n <= 20),
			bool_or(f.object IS NULL), bool_or(f.object IS NOT NULL)
		INTO questions, has_rows, has_columns
		FROM (SELECT f.*, row_number() OVER (ORDER BY f.object IS NOT NULL, f.relation, f.object) AS n
			  FROM snowflake_migrate.report AS f
			  WHERE f.run = run_ AND f.is_question) AS f;
	IF questions IS NULL THEN
		RETURN;
	END IF;
	message := CASE WHEN has_rows AND has_columns
			THEN 'rows would be lost, and columns may hold ids, and nothing says what they are'
		WHEN has_rows THEN 'rows would be lost, and nothing says that they are the same as others'
		ELSE 'columns may hold ids, and nothing says of which table' END;
	hint := CASE WHEN has_rows THEN 'Do as snowflake_migrate.check() advises'
		ELSE 'Answer each with snowflake_migrate.declare_reference() or '
			'snowflake_migrate.declare_no_reference(), as snowflake_migrate.check() advises' END
		|| ', or call with accept_warnings => true.';
	IF dry_run THEN
		RAISE WARNING USING MESSAGE = message, DETAIL = questions,
			HINT = 'Without dry_run, this is an error. ' || hint;
	ELSE
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = message, DETAIL = questions, HINT = hint;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_questions(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: an error where the report asks something';

/* Lets a run go on: batch_size may be another than in the first call, target_in_use may not. */
CREATE FUNCTION snowflake_migrate_internal.go_on(run_ bigint, batch_size_ int, in_use boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	run_row snowflake_migrate.runs;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	IF run_row.state = 'done' THEN
		RETURN;
	ELSIF run_row.target_in_use <> in_use THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('merge %s has begun with target_in_use => %s', run_, run_row.target_in_use::text),
			HINT = 'Call snowflake_migrate.merge() with the same, or snowflake_migrate.rollback().';
	END IF;
	PERFORM snowflake_migrate_internal.refuse_rules_in_use(run_) WHERE in_use;
	UPDATE snowflake_migrate.runs AS r SET batch_size = batch_size_ WHERE r.run = run_;
	UPDATE snowflake_migrate_internal.plan_sources AS s SET batch_rows = NULL, failures = 0
		WHERE s.run = run_ AND (s.batch_rows IS NOT NULL OR s.failures > 0);
	PERFORM snowflake_migrate_internal.retry_indexes(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.go_on(bigint, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a run goes on';

/* The number of the run that goes on, or of a new one, whose plan and maps are made. */
CREATE FUNCTION snowflake_migrate_internal.start(
	sources_ name[],
	targets_ name[],
	nodes_ bigint[],
	batch_size_ int,
	dry_run boolean,
	in_use boolean,
	rebuild_indexes boolean,
	given bigint,
	accept_warnings boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	schemas_ pg_catalog.name[];
	run_ bigint;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	schemas_ := snowflake_migrate_internal.grouped(sources_, targets_);
	PERFORM snowflake_migrate_internal.check_arguments(schemas_, targets_);
	PERFORM snowflake_migrate_internal.refuse_publications();
	IF batch_size_ IS NULL OR batch_size_ < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'batch_size must be at least 1',
			DETAIL = format('It is %s.', coalesce(batch_size_::text, 'null'));
	END IF;
	PERFORM snowflake_migrate_internal.refuse_locks(dry_run, rebuild_indexes) WHERE in_use;
	run_ := snowflake_migrate_internal.run_to_continue(schemas_, targets_, nodes_, dry_run, given);
	IF run_ IS NOT NULL THEN
		PERFORM snowflake_migrate_internal.begin(run_, ARRAY['copying', 'verifying', 'done']);
		UPDATE snowflake_migrate.runs AS r SET accept_warnings = true WHERE r.run = run_ AND start.accept_warnings;
		PERFORM snowflake_migrate_internal.refuse_lost_columns(run_);
		PERFORM snowflake_migrate_internal.go_on(run_, batch_size_, in_use);
		RETURN run_;
	END IF;

	run_ := snowflake_migrate_internal.create_run(schemas_, targets_, nodes_, batch_size_);
	UPDATE snowflake_migrate.runs AS r SET target_in_use = in_use, accept_warnings = start.accept_warnings,
			fires_triggers = NOT has_parameter_privilege('session_replication_role', 'SET')
		WHERE r.run = run_;
	PERFORM snowflake_migrate_internal.begin(run_, ARRAY['copying']);
	PERFORM snowflake_migrate_internal.plan(run_);
	PERFORM snowflake_migrate_internal.refuse_unlocked(run_), snowflake_migrate_internal.refuse_deferrable(run_)
		WHERE in_use;
	PERFORM snowflake_migrate_internal.refuse_foreign_keys_in_use(run_) WHERE in_use AND NOT start.accept_warnings;
	PERFORM snowflake_migrate_internal.check_schemas(run_);
	PERFORM snowflake_migrate_internal.refuse_errors(run_);
	PERFORM snowflake_migrate_internal.find_nodes(run_);
	IF snowflake_migrate_internal.make_maps(run_) THEN
		PERFORM snowflake_migrate_internal.check_target(run_);
	END IF;
	PERFORM snowflake_migrate_internal.refuse_errors(run_);
	PERFORM snowflake_migrate_internal.take_samples(run_);
	PERFORM snowflake_migrate_internal.check_undeclared(run_);
	PERFORM snowflake_migrate_internal.refuse_questions(run_, dry_run) WHERE NOT start.accept_warnings;
	PERFORM snowflake_migrate_internal.drop_samples(run_);
	PERFORM snowflake_migrate_internal.index_maps(run_);
	PERFORM snowflake_migrate_internal.record_former_state(run_);
	PERFORM snowflake_migrate_internal.write_indexes(run_) WHERE rebuild_indexes;
	/* So that users do not draw what is to come. */
	PERFORM snowflake_migrate_internal.set_sequences(run_, dry_run) WHERE in_use;
	UPDATE snowflake_migrate.runs AS r SET mapped_at = clock_timestamp() WHERE r.run = run_;
	IF NOT dry_run THEN
		PERFORM snowflake_migrate_internal.seal(run_);
		/* The last, since no rollback takes it back. */
		PERFORM snowflake_migrate_internal.set_aside_nodes(run_);
	END IF;
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.start(
		name[], name[], bigint[], int, boolean, boolean, boolean, bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: begins a run, or goes on with one';

/* Analyzes the tables that have grown so much that the planner should know. */
CREATE FUNCTION snowflake_migrate_internal.analyze_grown(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	grown regclass;
BEGIN
	FOR grown IN
		SELECT t.relation
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND pg_has_role(c.relowner, 'USAGE')
			AND (SELECT sum(s.rows_done) FROM snowflake_migrate_internal.plan_sources AS s
				 WHERE s.run = run_ AND s.no = t.no) > t.former_rows / 10 + 1000
	LOOP
		EXECUTE format('ANALYZE %s', grown);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.analyze_grown(bigint)
	IS 'for snowflake_migrate.merge()''s own use: analyzes the tables that have grown';

/* After the last batch: sequences, and the report of what was copied. */
CREATE FUNCTION snowflake_migrate_internal.end_of_copy(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	PERFORM snowflake_migrate_internal.settle_batches(run_);
	PERFORM snowflake_migrate_internal.set_sequences(run_, dry_run);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', r.sources[s.source], t.relation::text, NULL,
			'rows are copied', s.rows_done)
		FROM snowflake_migrate_internal.plan_sources AS s
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
		WHERE s.run = run_
		ORDER BY s.source, s.no;
	IF NOT dry_run THEN
		PERFORM snowflake_migrate_internal.analyze_grown(run_);
	END IF;
	UPDATE snowflake_migrate.runs AS r SET state = 'verifying', copied_at = clock_timestamp() WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.end_of_copy(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: what follows the last batch';

/* Proves what of a run is not proved yet.  Returns whether nothing was found, by workers either: then it is done. */
CREATE FUNCTION snowflake_migrate_internal.finish(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	proved boolean;
BEGIN
	PERFORM snowflake_migrate_internal.prove(run_, ARRAY(
		SELECT u.no FROM snowflake_migrate_internal.unproved_tables(run_) AS u));
	proved := NOT EXISTS (SELECT FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error');
	UPDATE snowflake_migrate.runs AS r
		SET state = 'done', finished_at = clock_timestamp()
		WHERE r.run = run_ AND proved;
	RETURN proved;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.finish(bigint)
	IS 'for snowflake_migrate.merge()''s own use: verifies a run';

/* Puts on record what a dry run found, after it was rolled back. */
CREATE FUNCTION snowflake_migrate_internal.record_dry_run(
	run_ bigint,
	sources_ name[],
	targets_ name[],
	nodes_ bigint[],
	batch_size_ int,
	started timestamptz,
	report jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	PERFORM snowflake_migrate_internal.write_run(
		run_, snowflake_migrate_internal.grouped(sources_, targets_), targets_, nodes_,
		'dry run', batch_size_, started);
	UPDATE snowflake_migrate.runs AS r SET finished_at = clock_timestamp() WHERE r.run = run_;
	INSERT INTO snowflake_migrate.report
		SELECT run_, f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice,
			f.is_question
		FROM jsonb_populate_recordset(NULL::snowflake_migrate.report, report) AS f;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_dry_run(bigint, name[], name[], bigint[], int, timestamptz, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps the report of a dry run';

/*
 * Merges schemas into others.  Nothing is copied before everything that can be known to stop it is known.  To be called
 * outside of a transaction block; the same call goes on with a run that was interrupted.
 *
 * sources: for each source an array of its schemas, in this database, one for each of the targets; nodes: for each
 * source, a node number that no id has; batch_size: rows in a transaction, of which a cycle of tables, or a table
 * without a key, is always one; jobs: so many workers work side by side; dry_run: all of it, rolled back but for the
 * report; target_in_use: its users go on meanwhile; rebuild_indexes: secondary indexes of tables that grow by more
 * than a third are dropped before the copy and built again after it; run: the number of the run; accept_warnings:
 * columns that may be references, and are not declared, are none.
 */
CREATE PROCEDURE snowflake_migrate.merge(
	sources name[],
	targets name[],
	nodes bigint[],
	batch_size int DEFAULT 10000,
	jobs int DEFAULT 1,
	dry_run boolean DEFAULT false,
	target_in_use boolean DEFAULT false,
	rebuild_indexes boolean DEFAULT false,
	INOUT run bigint DEFAULT NULL,
	accept_warnings boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
	started pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	copying_since pg_catalog.timestamptz;
	rows_before bigint;
	state pg_catalog.text;
	proved boolean;
	report pg_catalog.jsonb;
BEGIN
	PERFORM snowflake_migrate_internal.check_jobs(jobs, dry_run IS TRUE);
	PERFORM snowflake_migrate_internal.warn_of_limits(target_in_use IS TRUE);
	PERFORM snowflake_migrate_internal.set_telling(true);
	PERFORM snowflake_migrate_internal.allow_parallel(jobs);
	run := snowflake_migrate_internal.start(
		sources, targets, nodes, batch_size, dry_run IS TRUE, target_in_use IS TRUE, rebuild_indexes IS TRUE, run,
		accept_warnings IS TRUE);
	jobs := snowflake_migrate_internal.jobs_of(run, jobs, dry_run IS TRUE);
	/* A batch sees what was committed before each of its statements. */
	IF dry_run IS NOT TRUE THEN
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		IF jobs OPERATOR(pg_catalog.>) 1 THEN
			CALL snowflake_migrate_internal.work_together(run, jobs, 'copying');
		END IF;
	END IF;
	copying_since := pg_catalog.clock_timestamp();
	rows_before := snowflake_migrate_internal.rows_copied(run);
	LOOP
		state := snowflake_migrate_internal.begin(run, ARRAY['copying', 'verifying', 'done']);
		IF state = 'done' THEN
			RAISE NOTICE 'merge % is done already', run;
			PERFORM snowflake_migrate_internal.set_telling(false);
			RETURN;
		END IF;
		EXIT WHEN state = 'verifying';
		IF dry_run IS NOT TRUE AND snowflake_migrate_internal.drop_indexes(run) THEN
			NULL;
		ELSIF snowflake_migrate_internal.next_step(run) THEN
			NULL;
		ELSIF NOT snowflake_migrate_internal.build_indexes(run) THEN
			PERFORM snowflake_migrate_internal.refuse_unbuilt(run);
			PERFORM snowflake_migrate_internal.end_of_copy(run, dry_run IS TRUE);
		END IF;
		PERFORM snowflake_migrate_internal.tell_progress(run, 'copying', copying_since, rows_before);
		IF dry_run IS NOT TRUE THEN
			COMMIT;
			SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		END IF;
	END LOOP;
	PERFORM snowflake_migrate_internal.begin_proof(run);
	IF jobs OPERATOR(pg_catalog.>) 1 THEN
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		CALL snowflake_migrate_internal.work_together(run, jobs, 'verifying');
		PERFORM snowflake_migrate_internal.begin(run, ARRAY['verifying']);
	END IF;
	proved := snowflake_migrate_internal.finish(run);
	IF dry_run IS TRUE THEN
		SELECT jsonb_agg(to_jsonb(f)) INTO report FROM snowflake_migrate.report AS f WHERE f.run = merge.run;
		ROLLBACK;
		PERFORM snowflake_migrate_internal.record_dry_run(run, sources, targets, nodes, batch_size, started, report);
	END IF;
	PERFORM snowflake_migrate_internal.set_telling(false);
	COMMIT;
	IF NOT proved THEN
		RAISE EXCEPTION USING ERRCODE = 'data_exception',
			MESSAGE = pg_catalog.format('merge %s does not pass its verification', run),
			HINT = CASE WHEN dry_run IS TRUE THEN 'See snowflake_migrate.report, and put right what it says.'
				ELSE 'See snowflake_migrate.report. Put right what it says and call snowflake_migrate.merge() again, '
					'or take the merge back with snowflake_migrate.rollback().' END;
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.merge(
		name[], name[], bigint[], int, int, boolean, boolean, boolean, bigint, boolean)
	IS 'merges groups of schemas into others';

/* The same with one target, and for each source the schema that is merged into it. */
CREATE PROCEDURE snowflake_migrate.merge(
	sources name[],
	target name,
	nodes bigint[],
	batch_size int DEFAULT 10000,
	jobs int DEFAULT 1,
	dry_run boolean DEFAULT false,
	target_in_use boolean DEFAULT false,
	rebuild_indexes boolean DEFAULT false,
	INOUT run bigint DEFAULT NULL,
	accept_warnings boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
BEGIN
	CALL snowflake_migrate.merge(
		sources, ARRAY[target], nodes, batch_size, jobs, dry_run, target_in_use, rebuild_indexes, run,
		accept_warnings);
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.merge(
		name[], name, bigint[], int, int, boolean, boolean, boolean, bigint, boolean)
	IS 'merges schemas into one';

/* One map, for people. */
CREATE FUNCTION snowflake_migrate_internal.read_map(
	run_ bigint,
	no_ int,
	OUT source int,
	OUT action text,
	OUT old_key text,
	OUT new_key text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres'
	SET extra_float_digits = 1 SET bytea_output = 'hex' SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	/* Not by its name, which is an error where the caller may not use the schema. */
	map CONSTANT regclass := (
		SELECT c.oid
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'snowflake_merge_' || run_ AND c.relname = 'map_' || no_);
	names jsonb;
BEGIN
	IF map IS NULL THEN
		RETURN;
	ELSIF NOT (SELECT has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
			   FROM pg_class AS c WHERE c.oid = map) THEN
		RAISE WARNING USING MESSAGE = format('map of merge %s is not shown', run_),
			DETAIL = format('The current user has no right to read %s.', map);
		RETURN;
	ELSIF NOT snowflake_migrate_internal.is_safe_map(map) THEN
		RAISE WARNING USING MESSAGE = format('map of merge %s is not shown', run_),
			DETAIL = format('%s, or its schema, does not belong to a superuser.', map);
		RETURN;
	END IF;
	/* By the types' output functions, and not by casts that their owners may have made. */
	SELECT jsonb_build_object(
			'map', map::text,
			'key', t.key,
			'old_key', snowflake_migrate_internal.key_text(replace(v.value, 'k#', 'm.o#'), t.key),
			'new_key', snowflake_migrate_internal.key_text(replace(v.value, 'k#', 'm.n#'), t.key))
		INTO names
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL (
				SELECT CASE WHEN bool_and(snowflake_migrate_internal.is_trusted_type(a.atttypid)) THEN 'k#'
						ELSE 'format(''%s'', k#)' END,
					count(*)
				FROM pg_attribute AS a
				WHERE a.attrelid = map AND NOT a.attisdropped
					AND a.attname IN (SELECT format('%s%s', x.side, k.n)
									  FROM unnest('{o,n}'::text[]) AS x (side),
										generate_subscripts(t.key, 1) AS k (n))) AS v (value, columns)
		WHERE t.run = run_ AND t.no = no_
			AND v.columns = 2 * cardinality(t.key)
			AND (SELECT count(*) = 2 FROM pg_attribute AS a
				 WHERE a.attrelid = map AND NOT a.attisdropped
					AND (a.attname, a.atttypid) IN (('source', 'int'::regtype), ('action', '"char"'::regtype)));
	IF names IS NULL THEN
		RAISE WARNING USING MESSAGE = format('map of merge %s is not shown', run_),
			DETAIL = format('%s has other columns than its plan says.', map);
		RETURN;
	END IF;
	RETURN QUERY EXECUTE snowflake_migrate_internal.fill($query$
		SELECT m.source,
			CASE m.action
				WHEN 'c' THEN 'copied'
				WHEN 'm' THEN 'matched'
				WHEN 'k' THEN 'kept_target'
				WHEN 'r' THEN 'kept_source'
				WHEN 's' THEN 'skipped'
				WHEN 'b' THEN 'left_behind' END,
			{old_key},
			CASE WHEN m.action NOT IN ('s', 'b') THEN {new_key} END
		FROM {map} AS m
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.read_map(bigint, int) IS 'for the view snowflake_migrate.map: one map';

CREATE VIEW snowflake_migrate.map AS
SELECT t.run, r.sources[m.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation,
	m.action, m.old_key, m.new_key
  FROM snowflake_migrate_internal.plan_tables AS t
	JOIN snowflake_migrate.runs AS r USING (run),
	LATERAL snowflake_migrate_internal.read_map(t.run, t.no) AS m
 WHERE t.kind OPERATOR(pg_catalog.<>) 'none';
COMMENT ON VIEW snowflake_migrate.map IS 'which row of which source became which of the target';

CREATE VIEW snowflake_migrate.progress AS
SELECT s.run, r.state, r.sources[s.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation,
	greatest(least(d.rows, 9223372036854775807), -9223372036854775808)::bigint AS rows_done, s.rows_to_do,
	pg_catalog.round(d.rows / nullif(d.seconds, 0)) AS rate,
	/* Whoever merges writes these numbers: none may make an error of others' rows.  1e11 seconds are 3,000 years. */
	CASE WHEN s.done THEN '0'::interval
		 WHEN pg_catalog.abs(e.seconds) < 1e11 THEN pg_catalog.make_interval(secs => e.seconds::float8) END AS time_left
  FROM snowflake_migrate_internal.plan_sources AS s
	JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
	JOIN snowflake_migrate.runs AS r USING (run),
	/* What several workers have done is added to it when they have ended. */
	LATERAL (SELECT s.rows_done + coalesce(pg_catalog.sum(b.rows_done), 0),
				extract(epoch FROM s.busy) + coalesce(pg_catalog.sum(extract(epoch FROM b.busy)), 0)
			 FROM snowflake_migrate_internal.plan_batches AS b
			 WHERE b.run = s.run AND b.no = s.no AND b.source = s.source AND b.copied_by IS NOT NULL)
		AS d (rows, seconds),
	LATERAL (SELECT d.seconds * (s.rows_to_do - d.rows) / nullif(d.rows, 0)) AS e (seconds);
COMMENT ON VIEW snowflake_migrate.progress IS 'how far merges are, by table; rate in rows a second';
