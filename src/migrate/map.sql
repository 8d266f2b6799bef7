/*
 * The maps of a run: which row of a source becomes which of the target.  All of them are made in one transaction,
 * before the first row is copied, so that everything that would stop the merge is known by then.
 *
 * make_maps() creates the maps, enters the rows that stay behind, gives the others ids (numbering.sql), and goes
 * through the tables, parents first: fill_map() adds keys that are made of others' keys, pass() looks for what clashes
 * and dangles until nothing changes any more (clash.sql, dangling.sql), and finish_map() reports what came of it.
 */

/* The maps of one table, empty. */
CREATE FUNCTION snowflake_migrate_internal.create_map(run_ bigint, no_ int, maps text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names jsonb;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'maps', maps,
			'old_columns', string_agg(format('o%s %s', k.n, k.type), ', ' ORDER BY k.n),
			'new_columns', string_agg(format('n%s %s', k.n, k.type), ', ' ORDER BY k.n),
			'changed_keys', string_agg(format('"merge o%s" %s', k.n, k.type), ', ' ORDER BY k.n))
		INTO names
		FROM snowflake_migrate_internal.key_values(plan.relation, plan.relation, plan.key) AS k;
	EXECUTE snowflake_migrate_internal.fill(CASE plan.kind
		WHEN 'id' THEN 'CREATE TABLE {map} PARTITION OF {maps} FOR VALUES IN ({no})'
		ELSE 'CREATE TABLE {map} (source int NOT NULL, {old_columns}, {new_columns}, action "char" NOT NULL)' END,
		names);
	IF EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p
			   WHERE p.relation = plan.relation AND p.policy IN ('keep_source', 'keep_first'))
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		EXECUTE snowflake_migrate_internal.fill('CREATE TABLE {former} (LIKE {table})', names);
	END IF;
	/* That there is no other run is sooner known. */
	IF EXISTS (SELECT FROM snowflake_migrate.runs AS r WHERE r.run <> run_)
		AND EXISTS (SELECT FROM snowflake_migrate_internal.earlier_runs(run_, no_)) THEN
		EXECUTE snowflake_migrate_internal.fill('CREATE TABLE {unchanged} (run bigint NOT NULL, {new_columns})', names);
	END IF;
	IF snowflake_migrate_internal.is_in_use(run_) THEN
		PERFORM snowflake_migrate_internal.create_maps_in_use(names);
	END IF;
	SELECT names || jsonb_build_object(
			'changes', string_agg(
				format('%I %s, %I text', c.name, format_type(a.atttypid, a.atttypmod),
					   snowflake_migrate_internal.beside('old', c.name)), ', '))
		INTO names
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = c.name
		WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL;
	IF names ->> 'changes' IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			CREATE TABLE {change} (
				"merge source" int NOT NULL, {changed_keys}, "merge tries" int NOT NULL, "merge combined" boolean,
				{changes}, PRIMARY KEY ("merge source", {"merge o#"}))
		$query$, names);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_map(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: creates the maps of a table';

/*
 * Enters the rows of one table of one source that stay behind, since its condition does not hold for them, into the
 * map: no other query asks for it, so that whatever it depends on, as the time does, is asked once.
 */
CREATE FUNCTION snowflake_migrate_internal.leave_behind(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || (
		SELECT jsonb_build_object(
			'source', source_,
			'named_rows', snowflake_migrate_internal.named_rows(s.relation, t.relation),
			'condition', t.condition,
			'values', snowflake_migrate_internal.source_values(t.relation, s.relation, t.key))
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_);
	found bigint;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {map} ({of_map_no}source, {o#}, action)
		SELECT {map_no}{source}, {values}, 'b'
		FROM (SELECT * FROM {named_rows} WHERE ({condition}) IS NOT TRUE) AS s
	$query$, names);
	GET DIAGNOSTICS found = ROW_COUNT;
	IF found > 0 THEN
		EXECUTE snowflake_migrate_internal.fill('ANALYZE {map}', names);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', r.sources[source_], names ->> 'table', 'only',
				'rows stay behind', found)
			FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	END IF;
EXCEPTION WHEN data_exception THEN
	PERFORM snowflake_migrate_internal.report_failed_only(run_, r.sources[source_], names ->> 'table', SQLERRM)
		FROM snowflake_migrate.runs AS r WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.leave_behind(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: enters the rows that stay behind';

/*
 * The names for the queries about one table of one source whose key is not renumbered; keys is a query for the
 * source's keys o1 .. and what n1 .. becomes of each.
 */
CREATE FUNCTION snowflake_migrate_internal.key_names(run_ bigint, no_ int, source_ int) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'source', source_,
		'keys', format('SELECT %s, %s FROM %s WHERE %s',
			(SELECT string_agg(format('%s AS o%s', k.value, k.n), ', ' ORDER BY k.n)
			 FROM snowflake_migrate_internal.key_values(t.relation, s.relation, t.key) AS k),
			(SELECT string_agg(format('%s AS n%s', p.expressions[array_position(p.names, k.name::text)], k.n), ', '
							   ORDER BY k.n)
			 FROM unnest(t.key) WITH ORDINALITY AS k (name, n)),
			p.origin, snowflake_migrate_internal.not_behind(run_, no_, source_)))
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no),
		snowflake_migrate_internal.rows_parts(run_, no_, source_, false, false) AS p
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_names(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries about keys that are not renumbered';

/* Fills the map of a table whose key is not renumbered, and indexes the map of any. */
CREATE FUNCTION snowflake_migrate_internal.fill_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	range_key record;
	source int;
	has_entries boolean;
	detail text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' THEN
		FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s
			WHERE s.run = run_ AND s.no = no_ ORDER BY s.source
		LOOP
			EXECUTE snowflake_migrate_internal.fill(
				'INSERT INTO {map} (source, {o#}, {n#}, action) SELECT {source}, q.*, ''c'' FROM ({keys}) AS q',
				snowflake_migrate_internal.key_names(run_, no_, source));
		END LOOP;
	END IF;
	EXECUTE snowflake_migrate_internal.fill('SELECT EXISTS (SELECT FROM {map})', names) INTO has_entries;
	IF NOT has_entries THEN
		RETURN;
	END IF;
	/* A subtransaction: its end reads the cache of all tables that there are by now. */
	BEGIN
		/* The source last, as it tells the least. */
		EXECUTE snowflake_migrate_internal.fill('CREATE UNIQUE INDEX ON {map} ({o#}, source)', names);
	EXCEPTION WHEN unique_violation THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RAISE EXCEPTION USING ERRCODE = 'unique_violation',
			MESSAGE = format('a source has several rows of table %s with the same key', plan.relation),
			DETAIL = detail, HINT = 'In the detail, source is a place in the list of the sources.';
	END;
	/* A batch is a range of another column, where the first is of a type that can't be one. */
	SELECT k.n INTO range_key FROM snowflake_migrate_internal.range_key(plan.relation, plan.key) AS k;
	IF range_key.n > 1 THEN
		EXECUTE snowflake_migrate_internal.fill(
			'CREATE INDEX ON {map} (source, o{n})', names || jsonb_build_object('n', range_key.n));
	END IF;
	EXECUTE snowflake_migrate_internal.fill('ANALYZE {map}', names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: fills and indexes the map of a table';

/*
 * The keys of one table that are made of others' keys, anew, where those may have changed since and no row was copied.
 * Returns whether any did.
 */
CREATE FUNCTION snowflake_migrate_internal.refresh_map(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	source int;
	done bigint;
	changed boolean := false;
BEGIN
	FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_ ORDER BY s.source
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			UPDATE {map} AS m
			SET ({n#}, action) = ROW ({q.n#}, m.action)
			FROM ({keys}) AS q
			WHERE m.source = {source} AND m.action = 'c' AND ({m.o#}) = ({q.o#}) AND ({m.n#}) IS DISTINCT FROM ({q.n#})
				AND {to_come}
		$query$, snowflake_migrate_internal.key_names(run_, no_, source)
			|| jsonb_build_object('to_come', snowflake_migrate_internal.entries_to_come(run_, no_)));
		GET DIAGNOSTICS done = ROW_COUNT;
		changed := done > 0 OR changed;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refresh_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: makes keys of keys anew';

/*
 * Snowflake ids that a source and the target, or two sources, both have: new ids are in no table, only kept ones can
 * be there.  The keys to look for are a table of their own, which is hashed: a join with the map by a condition on the
 * source, besides the key, would not be.
 */
CREATE FUNCTION snowflake_migrate_internal.find_equal_ids(names jsonb, label name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	found bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH kept AS MATERIALIZED (
			SELECT m.n1, m.source FROM {map} AS m WHERE m.action = 'c' AND m.n1 = m.o1 AND {to_come}
		)
		SELECT count(*), min(x.n1)::text
		FROM (
			SELECT k.n1, k.source FROM kept AS k JOIN {target} AS t ON t.{"first_key"} = k.n1
			UNION
			SELECT k.n1, k.source
			FROM kept AS k
				JOIN (SELECT f.n1, min(f.source) AS source FROM {map} AS f WHERE f.action = 'c' GROUP BY f.n1) AS f
					ON f.n1 = k.n1 AND f.source < k.source
		) AS x
	$query$, names || jsonb_build_object('to_come', snowflake_migrate_internal.entries_to_come(
		(names ->> 'run')::bigint, (names ->> 'no')::int))) INTO found, example;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error', NULL,
			names ->> 'table', label,
			'snowflake ids of a source are in the target, or in another source, as well', found, example,
			format('If these are other rows: SELECT %s(%L, %L, ''renumber'');',
				   'snowflake_migrate.declare_policy', names ->> 'table', label));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_equal_ids(jsonb, name)
	IS 'for snowflake_migrate.merge()''s own use: snowflake ids that are there already';

/*
 * One pass over a table: keys that are made of others' keys anew, references that dangle, and each unique constraint.
 * Returns whether anything changed.
 */
CREATE FUNCTION snowflake_migrate_internal.pass(run_ bigint, no_ int, to_come text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	/* Arrays: at its end, a loop over a query that uses several tables looks at all locks that there are. */
	sources CONSTANT int[] := ARRAY(
		SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_ ORDER BY s.source);
	source int;
	u jsonb;
	changed boolean := false;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS t
									 WHERE t.run = run_ AND t.map_step = plan.map_step AND t.no <> no_) THEN
		changed := snowflake_migrate_internal.refresh_map(run_, no_);
	END IF;
	FOREACH source IN ARRAY sources LOOP
		changed := snowflake_migrate_internal.dangling(run_, no_, source) > 0 OR changed;
	END LOOP;
	IF plan.kind = 'none' THEN
		RETURN changed;
	END IF;
	FOREACH u IN ARRAY ARRAY(
		SELECT to_jsonb(x) FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x
		WHERE x.policy <> 'rerank')
	LOOP
		IF plan.kind <> 'id' OR NOT u -> 'expressions' ? snowflake_migrate_internal.column_expression(plan.key[1]) THEN
			changed := snowflake_migrate_internal.resolve(run_, no_, u, to_come) > 0 OR changed;
		ELSE
			PERFORM snowflake_migrate_internal.find_equal_ids(
				snowflake_migrate_internal.names(run_, no_), (u ->> 'label')::name);
		END IF;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.pass(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: what clashes in a table';

/* Whether any source has rows of a table. */
CREATE FUNCTION snowflake_migrate_internal.has_rows(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	read text;
	found boolean;
BEGIN
	FOREACH read IN ARRAY ARRAY(
		SELECT DISTINCT CASE t.kind WHEN 'none' THEN snowflake_migrate_internal.only(s.relation)
				ELSE snowflake_migrate_internal.relation(run_, 'map_' || no_) END
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		WHERE t.run = run_ AND t.no = no_)
	LOOP
		EXECUTE format('SELECT EXISTS (SELECT FROM %s)', read) INTO found;
		EXIT WHEN found;
	END LOOP;
	RETURN coalesce(found, false);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.has_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: whether any source has rows of a table';

/* Counts the rows of one table of one source that are copied, or are to be. */
CREATE FUNCTION snowflake_migrate_internal.count_rows(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	found bigint;
BEGIN
	EXECUTE (
		SELECT snowflake_migrate_internal.fill(CASE t.kind
				WHEN 'none' THEN 'SELECT count(*) FROM {source_table}'
				ELSE 'SELECT count(*) FROM {map} AS m WHERE m.source = {source} AND m.action IN (''c'', ''r'')' END,
			snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
				'source', source_, 'source_table', snowflake_migrate_internal.only(s.relation)))
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_) INTO found;
	UPDATE snowflake_migrate_internal.plan_sources AS s SET rows_to_do = found
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.count_rows(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: counts the rows that are to be copied';

/*
 * What is left to do for one table when it is known which of its rows clash, and what is reported of it.  to_come: its
 * rows_to_come(), or null where no source has rows of it.
 */
CREATE FUNCTION snowflake_migrate_internal.finish_map(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	some_stay CONSTANT boolean := snowflake_migrate_internal.leaves_rows_behind(run_);
	/* It reads all references of the run: only for a table of which rows come. */
	some_are_skipped CONSTANT boolean := to_come IS NOT NULL AND snowflake_migrate_internal.skips_rows(run_);
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind <> 'none' THEN
		PERFORM snowflake_migrate_internal.record_policies(run_, no_)
			WHERE EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation);
	ELSIF to_come IS NOT NULL THEN
		PERFORM snowflake_migrate_internal.find_keyless_clashes(run_, no_, to_come);
	END IF;
	IF to_come IS NOT NULL THEN
		PERFORM snowflake_migrate_internal.ask_about_lost_rows(run_, no_) WHERE plan.kind <> 'none';
		PERFORM snowflake_migrate_internal.combine_rows(run_, no_)
			WHERE plan.kind <> 'none' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
												  WHERE c.run = run_ AND c.no = no_ AND c.combine IS NOT NULL);
		PERFORM snowflake_migrate_internal.find_violations(run_, no_, to_come);
		PERFORM snowflake_migrate_internal.find_lost_references(run_, no_);
		PERFORM snowflake_migrate_internal.find_changed_references(run_, no_, to_come);
		PERFORM snowflake_migrate_internal.find_unmatched(run_, no_)
			WHERE plan.mode = 'match' AND EXISTS (
				SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation);
	END IF;
	PERFORM snowflake_migrate_internal.report_policies(run_, no_);

	FOREACH source IN ARRAY ARRAY(
		SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_ ORDER BY s.source)
	LOOP
		IF some_stay THEN
			PERFORM snowflake_migrate_internal.report_behind(run_, no_, source);
			PERFORM snowflake_migrate_internal.report_emptied(run_, no_, source, 'b', 'stay behind');
		END IF;
		IF some_are_skipped THEN
			PERFORM snowflake_migrate_internal.report_emptied(run_, no_, source, 's', 'are skipped');
		END IF;
		IF plan.mode IN ('match', 'same_id') THEN
			PERFORM snowflake_migrate_internal.report_matched(run_, no_, source);
		END IF;
		PERFORM snowflake_migrate_internal.find_conditions_on_ids(run_, no_, source)
			WHERE to_come IS NOT NULL AND EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_references AS r
				WHERE r.run = run_ AND r.no = no_ AND r.condition IS NOT NULL);
		PERFORM snowflake_migrate_internal.count_rows(run_, no_, source) WHERE to_come IS NOT NULL;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.finish_map(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: completes the map of a table';

/*
 * The maps of the tables of one step, which refer to each other: passes until nothing changes, as what becomes of one
 * row decides about others.
 */
CREATE FUNCTION snowflake_migrate_internal.resolve_step(run_ bigint, step int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	tables CONSTANT int[] := ARRAY(
		SELECT t.no
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.map_step = step
			/* OFFSET: as a join, of tables without statistics, it would read all sources in each step. */
			AND EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no OFFSET 0)
		ORDER BY 1);
	/*
	 * The rows to come of each, which are the same in all passes, as nothing is copied; null of a table without rows,
	 * of which nothing clashes, and nothing dangles.
	 */
	to_come CONSTANT text[] := ARRAY(
		SELECT CASE WHEN snowflake_migrate_internal.has_rows(run_, t.no)
			THEN snowflake_migrate_internal.rows_to_come(run_, t.no) END
		FROM unnest(tables) WITH ORDINALITY AS t (no, n)
		ORDER BY t.n);
	changed boolean;
BEGIN
	FOR pass IN 1 .. 101 LOOP
		IF pass > 100 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL,
				(SELECT string_agg(t.relation::text, ', ') FROM snowflake_migrate_internal.plan_tables AS t
				 WHERE t.run = run_ AND t.map_step = step),
				NULL, 'rows still clash after 100 passes of the policies', NULL, NULL,
				'Choose another policy. A suffix may not change the values of the unique index.');
			EXIT;
		END IF;
		/*
		 * Of what clashes, only that of the last pass counts: what has the same id may be the same row by now.  And
		 * rows that stay behind may have dangled before.
		 */
		DELETE FROM snowflake_migrate.report AS f USING snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.map_step = step AND f.run = run_ AND f.relation = t.relation::text
				AND (f.severity = 'error'
						AND (f.problem = 'rows clash' OR f.problem LIKE 'rows clash with different rows %'
							 OR f.problem LIKE 'snowflake ids of a source are in the target%')
					 OR f.problem LIKE 'references to % dangle%');
		changed := false;
		FOR n IN 1 .. cardinality(tables) LOOP
			changed := coalesce(snowflake_migrate_internal.pass(run_, tables[n], to_come[n]), false) OR changed;
		END LOOP;
		EXIT WHEN NOT changed;
	END LOOP;
	FOR n IN 1 .. cardinality(tables) LOOP
		PERFORM snowflake_migrate_internal.finish_map(run_, tables[n], to_come[n]);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve_step(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the maps of tables that refer to each other';

/*
 * Enters rows that a former merge has brought into one map, from that merge's; those that are gone are as unknown as
 * any that the source does not have.
 */
CREATE FUNCTION snowflake_migrate_internal.fill_map_from(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	found bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {map} (no, source, o1, n1, action)
		SELECT {no}, {source}, f.o1, f.n1, CASE WHEN f.n1 IS NULL THEN f.action ELSE 'm' END
		FROM {former_map} AS f
		WHERE f.source = {former_source}
			AND (f.n1 IS NULL OR EXISTS (SELECT FROM {target} AS t WHERE t.{"first_key"} = f.n1))
	$query$, names);
	IF names ->> 'source_table' IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min(s.{"first_key"}::text)
			FROM {source_table} AS s
			WHERE NOT EXISTS (SELECT FROM {former_map} AS f
							  WHERE f.source = {former_source} AND f.o1 = s.{"first_key"})
		$query$, names) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'warning',
				names ->> 'source_name', names ->> 'table', NULL,
				format('rows that merge %s did not bring do not come by this one either', names ->> 'former_run'),
				found, example,
				'If they are to come, take that merge back, and merge all schemas in one run.');
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_map_from(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: enters rows that a former merge has brought into a map';

/*
 * Enters the rows that former merges have brought into the maps of a run.  A source may have got a table of the name
 * after check_code() had looked: so it is looked at here.
 */
CREATE FUNCTION snowflake_migrate_internal.fill_maps_from_former(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	former record;
BEGIN
	FOR former IN
		SELECT f.*, t.key, r.sources[f.source_no] AS source_name
		FROM snowflake_migrate.runs AS r
			CROSS JOIN snowflake_migrate_internal.former_tables(run_) AS f
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, f.no) AS t
		WHERE r.run = run_
		ORDER BY f.no, f.source_no
	LOOP
		PERFORM snowflake_internal.refuse_dangerous_code(
			array_remove(ARRAY[former.source_relation::oid], NULL), '{}');
		PERFORM snowflake_migrate_internal.fill_map_from(
			snowflake_migrate_internal.names(run_, former.no) || jsonb_build_object(
				'source', former.source_no,
				'source_name', former.source_name,
				'former_run', former.former,
				'former_source', former.former_source,
				'former_map', snowflake_migrate_internal.relation(former.former, 'map_' || former.former_no),
				'source_table', CASE
					WHEN snowflake_migrate_internal.can_read(former.source_relation)
						AND snowflake_migrate_internal.has_columns(former.source_relation, former.key)
					THEN snowflake_migrate_internal.only(former.source_relation) END));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_maps_from_former(bigint)
	IS 'for snowflake_migrate.merge()''s own use: enters rows that former merges have brought';

/* All maps of a run, with nothing but what former merges have brought. */
CREATE FUNCTION snowflake_migrate_internal.create_maps(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	/* A partition costs the more to create the more there are beside it: so they are in groups. */
	group_size CONSTANT int := 32;
	names jsonb := jsonb_build_object('map', snowflake_migrate_internal.relation(run_, 'map'));
	group_no int;
	table_no int;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TABLE {map} (no int NOT NULL, source int NOT NULL, o1 bigint NOT NULL, n1 bigint, action "char" NOT NULL)
			PARTITION BY RANGE (no)
	$query$, names);
	FOR group_no IN
		SELECT DISTINCT t.no / group_size
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.kind <> 'none'
		ORDER BY 1
	LOOP
		names := names || jsonb_build_object('maps', snowflake_migrate_internal.relation(run_, 'maps_' || group_no),
			'from', group_no * group_size, 'to', (group_no + 1) * group_size);
		EXECUTE snowflake_migrate_internal.fill(
			'CREATE TABLE {maps} PARTITION OF {map} FOR VALUES FROM ({from}) TO ({to}) PARTITION BY LIST (no)', names);
		FOR table_no IN
			SELECT t.no
			FROM snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.kind <> 'none' AND t.no / group_size = group_no
			ORDER BY t.no
		LOOP
			PERFORM snowflake_migrate_internal.create_map(run_, table_no, names ->> 'maps');
		END LOOP;
	END LOOP;
	PERFORM snowflake_migrate_internal.fill_maps_from_former(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_maps(bigint)
	IS 'for snowflake_migrate.merge()''s own use: creates the maps of a run';

/* Fills the maps of the tables of one step, and resolves what clashes. */
CREATE FUNCTION snowflake_migrate_internal.make_maps_of(run_ bigint, step int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	table_no int;
BEGIN
	FOR table_no IN SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.map_step = step AND t.kind <> 'none' ORDER BY t.kind = 'key', t.no
	LOOP
		PERFORM snowflake_migrate_internal.fill_map(run_, table_no);
	END LOOP;
	PERFORM snowflake_migrate_internal.resolve_step(run_, step);
	/* Counted for those only who are told: it reads all tables. */
	IF snowflake_migrate_internal.is_time_to_tell() THEN
		PERFORM snowflake_migrate_internal.tell_tables(
				run_, 'mapped', count(*) FILTER (WHERE t.map_step <= step), count(*))
			FROM snowflake_migrate_internal.merged_tables(run_) AS t;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.make_maps_of(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: makes the maps of one step';

/*
 * Makes all maps of a run in its schema, and adds to its report what stands in the way.  Returns whether they are
 * complete: they are not where values of rows as they become can't be computed, as the report says then.
 */
CREATE FUNCTION snowflake_migrate_internal.make_maps(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	steps CONSTANT int[] := ARRAY(
		SELECT DISTINCT t.map_step FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ ORDER BY 1);
	step int;
	has_failed boolean := false;
	hint text;
	context text;
BEGIN
	PERFORM snowflake_migrate_internal.allow_memory();
	PERFORM snowflake_migrate_internal.create_maps(run_);
	PERFORM snowflake_migrate_internal.leave_behind(run_, t.no, s.source)
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		WHERE t.run = run_ AND t.condition IS NOT NULL AND t.kind <> 'none';
	PERFORM snowflake_migrate_internal.number_source(run_, n)
		FROM (SELECT generate_subscripts(r.sources, 1) FROM snowflake_migrate.runs AS r WHERE r.run = run_) AS s (n);

	BEGIN
		FOREACH step IN ARRAY steps LOOP
			PERFORM snowflake_migrate_internal.make_maps_of(run_, step);
		END LOOP;
	EXCEPTION
		WHEN insufficient_privilege THEN
			RAISE;
		WHEN data_exception OR check_violation OR not_null_violation OR raise_exception OR feature_not_supported
			OR syntax_error_or_access_rule_violation THEN
			has_failed := true;
	END;
	IF has_failed THEN
		/* Once more, step by step: which tables it is. */
		FOREACH step IN ARRAY steps LOOP
			BEGIN
				PERFORM snowflake_migrate_internal.make_maps_of(run_, step);
			EXCEPTION WHEN data_exception OR check_violation OR not_null_violation OR raise_exception
				OR feature_not_supported OR syntax_error_or_access_rule_violation THEN
				GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
				/* It tells what to do; those of PostgreSQL's parser do not. */
				IF hint <> '' AND SQLSTATE NOT LIKE '42%' OR SQLSTATE = '42501' THEN
					RAISE;
				END IF;
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL,
						string_agg(t.relation::text, ', ' ORDER BY t.no), NULL,
						'rows as they become cannot be computed: ' || SQLERRM,
						advice => CASE WHEN strpos(context, 'remote SQL command: ') > 0
							THEN 'The source''s server says so. If its table was changed since, import the foreign '
								'table again, or ALTER FOREIGN TABLE ... OPTIONS (SET column_name ...) for it.'
							WHEN SQLSTATE LIKE '42%'
							THEN 'A function that is called for a constraint, an index or a generated column needs '
								'names with schemas, or: ALTER FUNCTION ... SET search_path = ...;'
							ELSE 'Change these rows in the source, put a view in its place, or change the target''s '
								'column, domain or constraint. New ids have up to 19 digits.' END)
					FROM snowflake_migrate_internal.plan_tables AS t
					WHERE t.run = run_ AND t.map_step = step;
				RETURN false;
			END;
		END LOOP;
	END IF;
	PERFORM snowflake_migrate_internal.find_odd_keys(run_);
	PERFORM snowflake_migrate_internal.check_conditions(run_, 'with maps');
	PERFORM snowflake_migrate_internal.find_changing_conditions(run_);
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.make_maps(bigint)
	IS 'for snowflake_migrate.merge()''s own use: makes the maps of a run';
