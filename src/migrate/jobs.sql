/*
 * A merge by several workers: background workers in this database with the caller's rights (jobs.cpp).
 *
 * The queue is in the plan.  A unit of it is a table of a source, a cycle's tables of a source, or, of a table that is
 * larger than a batch, one of the ranges in plan_batches.  A unit may be copied when nothing is left of the tables that
 * its foreign keys lead to.  A worker takes one by a lock on its row, which it passes over where another has it, copies
 * it, and writes what is done in the same transaction: so whatever becomes of the worker, the unit is either done or in
 * the queue.
 *
 * Locking: the caller holds FOR NO KEY UPDATE on the targets' rows and the run's for as long as there are workers, in
 * one transaction, and each of theirs holds FOR KEY SHARE.  Both keep out whoever wants FOR UPDATE, as another call of
 * merge() or rollback() does, until the last of them has ended; and the workers do not keep out each other.  Workers
 * end with the caller's transaction, however that ends.
 *
 * Deadlocks: rows of the queue are never waited for.  Of what a batch refers to, rows are locked FOR KEY SHARE; nobody
 * changes their keys, as their table is done.  The maps let no two rows have the same key, or the same unique value
 * otherwise.  A worker that is the victim of a deadlock with somebody else tries again.
 */

CREATE FUNCTION snowflake_migrate_internal.start_workers(run bigint, jobs int, settings text) RETURNS int
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_start_workers';
COMMENT ON FUNCTION snowflake_migrate_internal.start_workers(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: starts workers, which end with the transaction';
/* So that not everybody may use up the server's workers. */
REVOKE EXECUTE ON FUNCTION snowflake_migrate_internal.start_workers(bigint, int, text) FROM PUBLIC;

CREATE FUNCTION snowflake_migrate_internal.wait_for_workers(milliseconds int) RETURNS int
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_wait_for_workers';
COMMENT ON FUNCTION snowflake_migrate_internal.wait_for_workers(int)
	IS 'for snowflake_migrate.merge()''s own use: waits for workers, and raises their errors';

CREATE FUNCTION snowflake_migrate_internal.set_unit(unit text) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_set_unit';
COMMENT ON FUNCTION snowflake_migrate_internal.set_unit(text)
	IS 'for snowflake_migrate.merge()''s own use: what a worker is at, for its errors';

/* Raises an error where there can't be so many jobs. */
CREATE FUNCTION snowflake_migrate_internal.check_jobs(jobs int, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF jobs IS NULL OR jobs NOT BETWEEN 1 AND 64 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'jobs must be between 1 and 64',
			DETAIL = format('It is %s.', coalesce(jobs::text, 'null'));
	ELSIF jobs > 1 AND NOT dry_run AND NOT has_function_privilege(
			'snowflake_migrate_internal.start_workers(bigint, int, text)', 'EXECUTE') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'permission denied to start workers',
			HINT = format('As a superuser: SELECT snowflake_migrate.grant_to(%L);', quote_ident(current_user));
	ELSIF jobs > 1 AND dry_run THEN
		RAISE NOTICE USING MESSAGE = 'a dry run has one job',
			DETAIL = 'It is one transaction, which no other session could go on with.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_jobs(int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: an error where there can''t be so many jobs';

/* How many jobs a run can have. */
CREATE FUNCTION snowflake_migrate_internal.jobs_of(run_ bigint, jobs int, dry_run boolean) RETURNS int
LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF jobs > 1 AND snowflake_migrate_internal.is_in_use(run_) THEN
		RAISE NOTICE USING MESSAGE = 'a merge into a target that is in use has one job',
			DETAIL = 'What clashes with its users'' rows is resolved again for all tables that are not copied yet.';
		RETURN 1;
	END IF;
	RETURN CASE WHEN dry_run THEN 1 ELSE jobs END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.jobs_of(bigint, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: how many jobs a run can have';

CREATE FUNCTION snowflake_migrate_internal.undefined_settings() RETURNS text[]
LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS '$libdir/snowflake_migrate', 'snowflake_migrate_undefined_settings';
COMMENT ON FUNCTION snowflake_migrate_internal.undefined_settings()
	IS 'for snowflake_migrate.merge()''s own use: the names of settings that no library has defined';

/*
 * The settings of a session, for a worker: those that may change what a query means or takes.  Also those that the
 * session has not changed: whom the worker connects as may have others.  And those that no library has defined, which
 * the code of an application reads.  What each transaction sets for itself, and what belongs to the session, is left
 * out.
 */
CREATE FUNCTION snowflake_migrate_internal.session_settings() RETURNS text
LANGUAGE sql STABLE PARALLEL RESTRICTED
AS $$
	SELECT coalesce(pg_catalog.jsonb_object_agg(x.name, pg_catalog.current_setting(x.name))::pg_catalog.text, '{}')
	FROM (
		SELECT s.name
		FROM pg_catalog.pg_settings AS s
		WHERE (s.context OPERATOR(pg_catalog.=) 'user'
				OR s.context OPERATOR(pg_catalog.=) 'superuser'
					AND pg_catalog.has_parameter_privilege(s.name, 'SET'))
			AND s.name OPERATOR(pg_catalog.!~) ('^(role|session_.*|seed|client_encoding|log_.*|'
				'(default_)?transaction_(isolation|read_only|deferrable))$')
		UNION ALL
		SELECT pg_catalog.unnest(snowflake_migrate_internal.undefined_settings())
	) AS x
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.session_settings()
	IS 'for snowflake_migrate.merge()''s own use: the settings of a session';

/* Takes the caller's settings.  Those of a library that the worker has not loaded yet wait for it. */
CREATE FUNCTION snowflake_migrate_internal.take_settings(settings text) RETURNS int
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
BEGIN
	PERFORM pg_catalog.set_config(s.key, s.value, false)
		FROM pg_catalog.jsonb_each_text(settings::pg_catalog.jsonb) AS s
		/* Whose path the worker has, IS DISTINCT FROM would look for their operator. */
		WHERE (pg_catalog.current_setting(s.key, true) OPERATOR(pg_catalog.=) s.value) IS NOT TRUE;
	RETURN 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.take_settings(text)
	IS 'for snowflake_migrate.merge()''s own use: a worker takes its caller''s settings';

/* What is left to copy. */
CREATE FUNCTION snowflake_migrate_internal.open_sources(run_ bigint, OUT no int, OUT source int) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.no, s.source
	FROM snowflake_migrate_internal.plan_sources AS s
	WHERE s.run = run_ AND NOT s.done
		AND (NOT s.is_split OR EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_batches AS b
				WHERE b.run = run_ AND b.no = s.no AND b.source = s.source AND b.copied_by IS NULL))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.open_sources(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of sources of which something is left to copy';

/*
 * The tables of which something is left to copy and may be copied, and those of them of which nothing is copied yet,
 * while the target's rows are to get new ranks or other values first (first_alone): these come with the first unit.
 */
CREATE FUNCTION snowflake_migrate_internal.ready_tables(run_ bigint, OUT ready int[], OUT first_alone int[])
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH o AS MATERIALIZED (
		SELECT DISTINCT s.no FROM snowflake_migrate_internal.open_sources(run_) AS s
	)
	SELECT coalesce(array_agg(t.no), '{}'),
		coalesce(array_agg(t.no) FILTER (WHERE
			EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
					WHERE c.run = run_ AND c.no = t.no AND (c.changed_by = 'rerank' OR c.in_target))
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
							WHERE s.run = run_ AND s.no = t.no AND s.copied_by <> '{}')
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_batches AS b
							WHERE b.run = run_ AND b.no = t.no AND b.copied_by IS NOT NULL)), '{}')
	FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = run_ AND t.no IN (SELECT o.no FROM o)
		/* As a value: hashed once, and not a join for each table. */
		AND (SELECT bool_or(p.no IN (SELECT o.no FROM o)) FROM unnest(t.parents) AS p (no)) IS NOT TRUE
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ready_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables that may be copied';

/* Splits one table of one source into batches. */
CREATE FUNCTION snowflake_migrate_internal.split(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb;
BEGIN
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'source', source_,
			'n', k.n,
			'batch_size', r.batch_size,
			'position', s.position,
			'behind', coalesce(' AND ' || b.of_map, ''))
		INTO STRICT names
		FROM snowflake_migrate_internal.plan_sources AS s
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
			CROSS JOIN LATERAL snowflake_migrate_internal.range_key(t.relation, t.key) AS k
			CROSS JOIN LATERAL snowflake_migrate_internal.key_range(run_, no_, source_, s.position, NULL) AS b
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate_internal.plan_batches (run, no, source, batch, after, position)
		SELECT {run}, {no}, {source}, row_number() OVER w, coalesce(lag(b.last) OVER w, {'position'}), b.last
		FROM (
			SELECT DISTINCT q.key, q.key::text
			FROM (
				SELECT m.o{n}, row_number() OVER (ORDER BY m.o{n})
				FROM {map} AS m
				WHERE m.source = {source} AND m.action IN ('c', 'r'){behind}
			) AS q (key, place)
			WHERE q.place % {batch_size} = 0
			UNION ALL
			SELECT NULL, NULL
		) AS b (key, last)
		WINDOW w AS (ORDER BY b.key NULLS LAST)
	$query$, names);
	UPDATE snowflake_migrate_internal.plan_sources AS s SET is_split = true
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.split(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: splits a table into batches';

/* Splits the largest table that is more than a batch, and not split yet.  Returns whether there was one. */
CREATE FUNCTION snowflake_migrate_internal.split_next(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	next record;
BEGIN
	SELECT s.no, s.source, t.relation INTO next
		FROM snowflake_migrate_internal.plan_sources AS s
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
		WHERE s.run = run_ AND NOT s.done AND NOT s.is_split AND NOT t.cyclic AND t.kind <> 'none'
			AND s.rows_to_do - s.rows_done > r.batch_size
			AND (SELECT k.n IS NOT NULL FROM snowflake_migrate_internal.range_key(t.relation, t.key) AS k)
		ORDER BY s.rows_to_do - s.rows_done DESC, s.no, s.source
		LIMIT 1
		FOR UPDATE OF s SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM snowflake_migrate_internal.set_unit(format('table %s, to be split into batches', next.relation));
	PERFORM snowflake_migrate_internal.split(run_, next.no, next.source);
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.split_next(bigint)
	IS 'for snowflake_migrate.merge()''s own use: splits a table that is more than a batch';

/*
 * Takes a unit that may be copied, and that no other worker has: by a lock on its row, until the end of the
 * transaction.  Null: there is none.  The first of a transaction may be any, more only tables that have no more than
 * rows_left rows.  Of a cycle, its first table stands for all; its sources come one after the other, since rows of one
 * may refer to rows that another one has brought.
 */
CREATE FUNCTION snowflake_migrate_internal.take_unit(
	run_ bigint,
	rows_left bigint,
	is_first boolean,
	OUT no int,
	OUT source int,
	OUT batch int)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	tables CONSTANT record := snowflake_migrate_internal.ready_tables(run_);
BEGIN
	SELECT s.no, s.source, 0 INTO no, source, batch
		FROM snowflake_migrate_internal.plan_sources AS s
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t
		WHERE s.run = run_ AND NOT s.done AND NOT s.is_split AND s.no = ANY (tables.ready)
			AND (is_first OR NOT t.cyclic AND s.rows_to_do - s.rows_done <= rows_left)
			AND NOT (t.cyclic AND EXISTS (
					SELECT FROM snowflake_migrate_internal.plan_sources AS o
						JOIN snowflake_migrate_internal.plan_tables AS c USING (run, no)
					WHERE o.run = run_ AND c.copy_step = t.copy_step AND NOT o.done
						AND (o.source, o.no) < (s.source, s.no)))
			AND NOT (s.no = ANY (tables.first_alone) AND EXISTS (
					SELECT FROM snowflake_migrate_internal.open_sources(run_) AS o
					WHERE o.no = s.no AND o.source < s.source))
		ORDER BY t.copy_step, s.source, s.no
		LIMIT 1
		FOR UPDATE OF s SKIP LOCKED;
	IF FOUND OR NOT is_first THEN
		RETURN;
	END IF;
	SELECT b.no, b.source, b.batch INTO no, source, batch
		FROM snowflake_migrate_internal.plan_batches AS b
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, b.no) AS t
		WHERE b.run = run_ AND b.copied_by IS NULL AND b.no = ANY (tables.ready)
			AND NOT (b.no = ANY (tables.first_alone) AND (b.batch > 1 OR EXISTS (
					SELECT FROM snowflake_migrate_internal.open_sources(run_) AS o
					WHERE o.no = b.no AND o.source < b.source)))
		ORDER BY t.copy_step, b.source, b.no, b.batch
		LIMIT 1
		FOR UPDATE OF b SKIP LOCKED;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.take_unit(bigint, bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: takes a unit of the queue';

/* A unit, for people. */
CREATE FUNCTION snowflake_migrate_internal.unit_text(run_ bigint, no_ int, source_ int, batch_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT concat_ws(', ',
			CASE WHEN t.cyclic THEN 'the cycle of table ' ELSE 'table ' END || t.relation,
			'source ' || r.sources[source_],
			'batch ' || b.batch,
			'keys after ' || b.after,
			'keys up to ' || b.position)
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate.runs AS r USING (run)
		LEFT JOIN snowflake_migrate_internal.plan_batches AS b ON b.run = run_ AND b.no = no_
			AND b.source = source_ AND b.batch = batch_
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unit_text(bigint, int, int, int)
	IS 'for snowflake_migrate.merge()''s own use: what a worker is at';

/*
 * One transaction of a worker's copying: a unit, or small tables that fit into a batch together.
 * Returns false where there was none to take.
 */
CREATE FUNCTION snowflake_migrate_internal.copy_units(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	rows_left bigint := (SELECT r.batch_size FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	unit record;
	cycle int;
BEGIN
	IF snowflake_migrate_internal.split_next(run_) THEN
		RETURN true;
	END IF;
	FOR taken IN 1 .. snowflake_migrate_internal.tables_at_once() LOOP
		unit := snowflake_migrate_internal.take_unit(run_, rows_left, taken = 1);
		IF unit.no IS NULL THEN
			RETURN taken > 1;
		END IF;
		PERFORM snowflake_migrate_internal.set_unit(
			snowflake_migrate_internal.unit_text(run_, unit.no, unit.source, unit.batch));
		SELECT t.copy_step INTO cycle FROM snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.no = unit.no AND t.cyclic;
		IF FOUND THEN
			PERFORM snowflake_migrate_internal.copy_cycle(run_, cycle, unit.source);
			EXIT;
		END IF;
		rows_left := rows_left - snowflake_migrate_internal.copy(run_, unit.no, unit.source, unit.batch);
		EXIT WHEN unit.batch > 0;
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy_units(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of a worker''s copying';

/* Begins a proof: nothing is proved yet. */
CREATE FUNCTION snowflake_migrate_internal.begin_proof(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	DELETE FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error';
	UPDATE snowflake_migrate_internal.plan_tables AS t SET proved = false WHERE t.run = run_ AND t.proved
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.begin_proof(bigint)
	IS 'for snowflake_migrate.merge()''s own use: begins a proof';

/* The tables that are not proved yet. */
CREATE FUNCTION snowflake_migrate_internal.unproved_tables(run_ bigint, OUT no int, OUT rows bigint)
RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.no, sum(s.rows_to_do)::bigint
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND NOT t.proved
	GROUP BY t.no
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unproved_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables that are not proved yet';

/* Proves tables, and adds to the report what is not as it should be. */
CREATE FUNCTION snowflake_migrate_internal.prove(run_ bigint, tables int[]) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.add_to_report(
			run_, v.severity, v.source, v.relation, NULL, v.problem, v.count, v.example)
		FROM snowflake_migrate_internal.verify_run(run_, tables) AS v;
	UPDATE snowflake_migrate_internal.plan_tables AS t SET proved = true WHERE t.run = run_ AND t.no = ANY (tables)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.prove(bigint, int[])
	IS 'for snowflake_migrate.merge()''s own use: proves tables';

/*
 * One transaction of a worker's proof: the largest table that no other worker has, or small ones, as copy_units().  A
 * table may get more processes than one: PostgreSQL's parallel workers, by its share of the rows that are left.
 */
CREATE FUNCTION snowflake_migrate_internal.prove_tables(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	rows_left bigint := (SELECT r.batch_size FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	unit record;
BEGIN
	FOR taken IN 1 .. snowflake_migrate_internal.tables_at_once() LOOP
		SELECT t.no, u.rows, sum_.rows AS all_rows INTO unit
			FROM snowflake_migrate_internal.plan_tables AS t
				JOIN (SELECT p.* FROM snowflake_migrate_internal.unproved_tables(run_) AS p OFFSET 0) AS u USING (no)
				CROSS JOIN (SELECT sum(p.rows) AS rows FROM snowflake_migrate_internal.unproved_tables(run_) AS p)
					AS sum_
			WHERE t.run = run_ AND NOT t.proved AND (taken = 1 OR u.rows <= rows_left)
			ORDER BY u.rows DESC, t.no
			LIMIT 1
			FOR UPDATE OF t SKIP LOCKED;
		IF NOT FOUND THEN
			RETURN taken > 1;
		END IF;
		PERFORM snowflake_migrate_internal.set_unit('the proof of ' ||
			snowflake_migrate_internal.unit_text(run_, unit.no, 0, 0));
		PERFORM set_config('max_parallel_workers_per_gather', greatest(0,
			round(snowflake_migrate_internal.workers() * unit.rows / greatest(unit.all_rows, 1)) - 1)::int::text, true);
		PERFORM snowflake_migrate_internal.prove(run_, ARRAY[unit.no]);
		rows_left := rows_left - unit.rows;
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.prove_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of a worker''s proof';

/* One transaction of a worker.  0: nothing is left; 1: something was done; 2: others must end first. */
CREATE FUNCTION snowflake_migrate_internal.work(run_ bigint) RETURNS int
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
DECLARE
	/* Nothing is on the search path from here on. */
	state CONSTANT pg_catalog.text :=
		snowflake_migrate_internal.begin(run_, '{copying,verifying}', 'KEY SHARE');
	is_copying boolean;
BEGIN
	IF state = 'verifying' THEN
		/* Tables that others have need nobody to wait for them. */
		RETURN snowflake_migrate_internal.prove_tables(run_)::int;
	END IF;
	/* Before it looks for work: what others copy meanwhile may leave an index to build. */
	is_copying := EXISTS (SELECT FROM snowflake_migrate_internal.open_sources(run_));
	IF snowflake_migrate_internal.copy_units(run_) OR snowflake_migrate_internal.build_index(run_, true) THEN
		RETURN 1;
	END IF;
	RETURN CASE WHEN is_copying THEN 2 ELSE 0 END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.work(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of a worker';

/* Counts what of the batches is copied in the rows of their tables. */
CREATE FUNCTION snowflake_migrate_internal.settle_batches(run_ bigint) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH copied AS (
		DELETE FROM snowflake_migrate_internal.plan_batches AS b
		WHERE b.run = run_ AND b.copied_by IS NOT NULL
		RETURNING b.*
	),
	total AS (
		SELECT c.no, c.source, sum(c.rows_done) AS rows_done, sum(c.busy) AS busy, array_agg(c.copied_by) AS copied_by
		FROM copied AS c
		GROUP BY c.no, c.source
	)
	UPDATE snowflake_migrate_internal.plan_sources AS s
	SET rows_done = s.rows_done + t.rows_done, busy = s.busy + t.busy, copied_by = s.copied_by || t.copied_by,
		done = NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_batches AS b
						   WHERE b.run = run_ AND b.no = s.no AND b.source = s.source AND b.copied_by IS NULL)
	FROM total AS t
	WHERE s.run = run_ AND s.no = t.no AND s.source = t.source
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.settle_batches(bigint)
	IS 'for snowflake_migrate.merge()''s own use: counts the batches that are copied';

/* Begins the caller's transaction, and starts the workers, where the run is in this state. */
CREATE FUNCTION snowflake_migrate_internal.lead(run_ bigint, jobs int, state text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
DECLARE
	settings CONSTANT pg_catalog.text := snowflake_migrate_internal.session_settings();
	/* Nothing is on the search path from here on. */
	is_state CONSTANT pg_catalog.text :=
		snowflake_migrate_internal.begin(run_, '{copying,verifying,done}', 'NO KEY UPDATE');
	started int;
BEGIN
	IF is_state <> state THEN
		RETURN;
	END IF;
	started := snowflake_migrate_internal.start_workers(run_, jobs, settings);
	IF started < jobs THEN
		RAISE WARNING USING MESSAGE = format('merge %s has %s of %s workers', run_, started, jobs),
			HINT = 'There may be as many as max_worker_processes, of all kinds together.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lead(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: starts the workers';

/* How far the tables of a run are copied. */
CREATE FUNCTION snowflake_migrate_internal.progress_of(
	run_ bigint,
	OUT no int,
	OUT rows_done bigint,
	OUT rows_to_do bigint) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.no, (s.rows_done + coalesce((
			SELECT sum(b.rows_done)
			FROM snowflake_migrate_internal.plan_batches AS b
			WHERE b.run = run_ AND b.no = s.no AND b.source = s.source AND b.copied_by IS NOT NULL), 0))::bigint,
		s.rows_to_do
	FROM snowflake_migrate_internal.plan_sources AS s
	WHERE s.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.progress_of(bigint)
	IS 'for snowflake_migrate.merge()''s own use: how far the tables of a run are copied';

/*
 * Tells the caller, if it is time to, how far a run is, since when it copies and how many rows there were then; or how
 * many tables are proved.
 */
CREATE FUNCTION snowflake_migrate_internal.tell_progress(
	run_ bigint,
	state text,
	since timestamptz,
	rows_before bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	p record;
BEGIN
	IF NOT snowflake_migrate_internal.is_time_to_tell() THEN
		RETURN;
	ELSIF state = 'verifying' THEN
		PERFORM snowflake_migrate_internal.tell_tables(run_, 'proved', count(*) FILTER (WHERE t.proved), count(*))
			FROM snowflake_migrate_internal.merged_tables(run_) AS m
				JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = m.no;
		RETURN;
	END IF;
	SELECT count(*) AS tables, count(*) FILTER (WHERE t.is_done) AS tables_done, sum(t.rows) AS rows,
			sum(t.rows_done) AS rows_done,
			(sum(t.rows_done) - rows_before) / nullif(extract(epoch FROM clock_timestamp() - since), 0) AS rate
		INTO p
		FROM (
			SELECT bool_and(q.rows_done >= q.rows_to_do) AS is_done, sum(q.rows_to_do) AS rows,
				sum(q.rows_done) AS rows_done
			FROM snowflake_migrate_internal.progress_of(run_) AS q
			GROUP BY q.no
		) AS t;
	RAISE NOTICE USING MESSAGE = format('merge %s: %s of %s tables, %s of %s rows are copied', run_,
			p.tables_done, p.tables, p.rows_done, p.rows)
		|| CASE WHEN p.rate > 0 THEN format(', %s rows a second, %s left', round(p.rate),
				make_interval(secs => round((p.rows - p.rows_done) / p.rate)::float8)) ELSE '' END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tell_progress(bigint, text, timestamptz, bigint)
	IS 'for snowflake_migrate.merge()''s own use: tells how far a merge is';

/* How many rows of a run are copied. */
CREATE FUNCTION snowflake_migrate_internal.rows_copied(run_ bigint) RETURNS bigint
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(sum(p.rows_done), 0)::bigint FROM snowflake_migrate_internal.progress_of(run_) AS p
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_copied(bigint)
	IS 'for snowflake_migrate.merge()''s own use: how many rows are copied';

/*
 * Has workers do what can be done by several, and waits for them.  What they leave, the caller does, as if there had
 * been none.
 */
CREATE PROCEDURE snowflake_migrate_internal.work_together(run bigint, jobs int, state text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
	since pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	rows_before bigint;
BEGIN
	/* Indexes are dropped before the first row is copied. */
	WHILE state OPERATOR(pg_catalog.=) 'copying'
		AND snowflake_migrate_internal.begin(run, '{copying,verifying,done}') OPERATOR(pg_catalog.=) state
		AND snowflake_migrate_internal.drop_indexes(run)
	LOOP
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	END LOOP;
	COMMIT;
	/* Who waits sees what workers commit. */
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM snowflake_migrate_internal.lead(run, jobs, state);
	rows_before := snowflake_migrate_internal.rows_copied(run);
	WHILE snowflake_migrate_internal.wait_for_workers(1000) OPERATOR(pg_catalog.>) 0 LOOP
		PERFORM snowflake_migrate_internal.tell_progress(run, state, since, rows_before);
	END LOOP;
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate_internal.work_together(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: what several workers do';
