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

/* Enters into the report that a condition on the rows that come failed in a source. */
CREATE FUNCTION snowflake_migrate_internal.report_failed_only(
	run_ bigint,
	source name,
	relation text,
	message text) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.add_to_report(run_, 'error', source, relation, 'only',
		'the condition on the rows that come cannot be evaluated: ' || message,
		advice => 'Declare the table with snowflake_migrate.declare_table() again, '
			'or give a view of the source that has what the condition needs.')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_failed_only(bigint, name, text, text)
	IS 'for snowflake_migrate.merge()''s own use: a condition on rows that failed';

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

/* A condition on the rows s of one table of one source: that leave_behind() has not entered them. */
CREATE FUNCTION snowflake_migrate_internal.not_behind(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN t.condition IS NULL THEN 'true'
			ELSE format('NOT EXISTS (SELECT FROM %s AS b WHERE b.source = %s AND b.action = ''b'' AND (%s) = (%s))',
				snowflake_migrate_internal.relation(run_, 'map_' || no_), source_,
				snowflake_migrate_internal.key_list('b.o#', t.key),
				snowflake_migrate_internal.source_values(t.relation, s.relation, t.key)) END
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_behind(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: that rows do not stay behind, as a condition';

/* The rows of one table of one source, as an item after FROM, without those that leave_behind() has entered. */
CREATE FUNCTION snowflake_migrate_internal.coming_rows(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN t.condition IS NULL THEN snowflake_migrate_internal.only(s.relation)
			ELSE format('(SELECT s.* FROM %s AS s WHERE %s)', snowflake_migrate_internal.only(s.relation),
						snowflake_migrate_internal.not_behind(run_, no_, source_)) END
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.coming_rows(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: the rows of a table of a source that come';

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
 * be there.  Each is looked for among as many: in a table of keys that is hashed, as a condition on the source besides
 * the key is none for a join.
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

/* What clashes in one table, once over all its unique indexes.  Returns whether anything changed. */
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

/*
 * The constraints of one table that rows as they become may violate: CHECKs, exclusion constraints, partitions that
 * are missing.  violated is a condition on such a row; one without a problem only computes what could fail: generated
 * columns, what becomes of composite types and arrays, and indexes as far as that is safe (index_planter()).  In an
 * exclusion constraint, a row does not clash with the one of the target that has its key: it is that row, or takes its
 * place.
 */
CREATE FUNCTION snowflake_migrate_internal.violations(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT violated text,
	OUT problem text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	relation CONSTANT regclass := (names ->> 'oid')::oid;
BEGIN
	RETURN QUERY
	SELECT k.label, format('(%s) IS FALSE', k.expression), 'rows as they become violate the CHECK',
		'New ids are in order of time: without a declared time of creation of what the columns refer to, '
			'they are in the order of the old ones. '
			'Else change these rows in the source, or put a view that leaves them out in its place.'
	FROM snowflake_migrate_internal.check_constraints(relation) AS k
	UNION ALL
	SELECT c.label,
		snowflake_migrate_internal.fill($query$
				EXISTS (
					SELECT FROM (SELECT {values} FROM ({become}) AS {"name"} WHERE {indexed}) AS t
					WHERE {same}{and_another})
				AND ({indexed})
			$query$, names || jsonb_build_object(
				'become', snowflake_migrate_internal.target_rows(run_, no_, false),
				'and_another', CASE names ->> 'kind' WHEN 'none' THEN '' ELSE snowflake_migrate_internal.fill(
					' AND NOT (({t."merge k#"}) = ({"merge n#"}))', names) END,
				'indexed', coalesce(c.predicate, 'true'),
				'values', (SELECT string_agg(format('%s AS "merge e%s"', e.expression, e.n), ', ')
						   FROM unnest(c.expressions) WITH ORDINALITY AS e (expression, n))
					|| CASE names ->> 'kind' WHEN 'none' THEN ''
						ELSE ', ' || snowflake_migrate_internal.fill('{@ AS "merge k#"}', names) END,
				'same', (SELECT string_agg(
							snowflake_migrate_internal.compared(e.operator, format('t."merge e%s"', e.n), e.expression),
							' AND ')
						 FROM unnest(c.expressions, c.operators) WITH ORDINALITY AS e (expression, operator, n)))),
		'rows clash with the target''s in the exclusion constraint',
		'Change these rows in the source, or put a view that leaves them out in its place.'
	FROM snowflake_migrate_internal.exclusion_constraints(relation) AS c
	UNION ALL
	SELECT NULL,
		coalesce('(' || string_agg('(' || coalesce(pg_get_partition_constraintdef(l.relid), 'true') || ')', ' OR ')
				 || ') IS NOT TRUE', 'true'),
		'no partition takes the rows', 'Create the partitions that are missing, or a default one.'
	FROM pg_class AS c LEFT JOIN pg_partition_tree(c.oid) AS l ON l.isleaf AND l.relid <> c.oid
	WHERE c.oid = relation AND c.relkind = 'p'
	GROUP BY c.oid
	UNION ALL
	SELECT NULL, string_agg(c.expression || ' < 0', ' OR '), NULL, NULL
	FROM (
		SELECT format('num_nulls(%I)', a.attname)
		FROM snowflake_migrate_internal.columns_of(relation) AS a
			JOIN pg_type AS y ON y.oid = a.atttypid
			LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
		WHERE a.attgenerated <> '' OR y.typtype = 'c' OR e.typtype IN ('c', 'd')
		UNION ALL
		/* What is unique is computed where clashes are looked for. */
		SELECT format('CASE WHEN %s THEN CASE WHEN %s THEN num_nulls(%s) END END',
				coalesce(CASE WHEN i.indrelid <> relation THEN pg_get_partition_constraintdef(i.indrelid) END, 'true'),
				coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
				coalesce((SELECT string_agg(snowflake_migrate_internal.index_expression(i.indexrelid, n), ', ')
						  FROM generate_series(1, i.indnkeyatts) AS n WHERE i.indkey[n - 1] = 0), '1'))
		FROM snowflake_migrate_internal.with_partitions(relation) AS o (oid)
			JOIN pg_index AS i ON i.indrelid = o.oid AND NOT i.indisunique AND NOT i.indisexclusion
				AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
				AND (o.oid = relation OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid))
			CROSS JOIN LATERAL (SELECT concat(i.indexprs::text, i.indpred::text)) AS x (tree)
		/*
		 * A row as it becomes has not the table's type.  Read anew, = is pg_catalog's where a text names no operator;
		 * and it must be no other role's code that is found.
		 */
		WHERE x.tree !~ ':varattno 0 '
			AND NOT (x.tree ~ '[{](DISTINCTEXPR|NULLIFEXPR|CASETESTEXPR) ' AND x.tree ~ ':opno [1-9][0-9]{4}')
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.index_planter(i.indexrelid))
			AND NOT EXISTS (SELECT FROM snowflake_internal.computed_types(x.tree) AS y (oid) JOIN pg_type USING (oid)
							WHERE typowner = ANY ((SELECT snowflake_internal.other_roles())::oid[]))
	) AS c (expression)
	HAVING count(*) > 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.violations(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what rows as they become may violate';

/* The target's rows in which policies change something, as a further part of all_rows(); null: there are none. */
CREATE FUNCTION snowflake_migrate_internal.changed_target_rows(run_ bigint, no_ int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.target_change_names(run_, no_);
BEGIN
	IF names IS NULL THEN
		RETURN NULL;
	END IF;
	RETURN snowflake_migrate_internal.fill($query$
			UNION ALL
			SELECT 0, t.* FROM ({rows}) AS t
			WHERE EXISTS (SELECT FROM {change} AS v WHERE v."merge source" = 0 AND ({v."merge o#"}) = ({t."merge o#"}))
		$query$, names || jsonb_build_object('rows', snowflake_migrate_internal.target_rows(run_, no_, true)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.changed_target_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the target''s rows in which policies change something';

/*
 * Adds to the report which of one table's rows, as they become, violate its constraints: the sources may not have
 * them.
 */
CREATE FUNCTION snowflake_migrate_internal.find_violations(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names jsonb;
	con record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	/* What is copied is in the target; rows of the target that change are looked at as well. */
	names := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'become', to_come || coalesce(snowflake_migrate_internal.changed_target_rows(run_, no_), ''),
		'comes', CASE plan.kind WHEN 'none' THEN 'true' ELSE '"merge action" IN (''c'', ''r'', ''t'')' END);
	IF (SELECT count(*) > 1 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, plan.relation::text, c.conname,
				'rows of different sources that clash in an exclusion constraint are not looked for', NULL, NULL,
				'Merge the sources one after the other.')
			FROM snowflake_migrate_internal.with_partitions(plan.relation) AS o (oid)
				JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'x'
					AND (o.oid = plan.relation OR c.conparentid = 0);
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, plan.relation::text, c.conname,
			'rows that clash with each other in a deferrable exclusion constraint would not be noticed', NULL, NULL,
			'Drop the constraint, and add it as NOT DEFERRABLE.')
		FROM snowflake_migrate_internal.deferrable_constraints(plan.relation) AS c
		WHERE c.contype = 'x' AND has_parameter_privilege('session_replication_role', 'SET');
	FOR con IN SELECT v.* FROM snowflake_migrate_internal.violations(run_, no_) AS v LOOP
		PERFORM snowflake_migrate_internal.report_rows(names,
			snowflake_migrate_internal.fill($query$
				SELECT q.*, row_number() OVER (PARTITION BY q.source ORDER BY q.example)
				FROM (
					SELECT "merge source", {"merge o#"::text} FROM ({become}) AS {"name"} WHERE {comes} AND ({violated})
				) AS q (source, example)
			$query$, names || jsonb_build_object('violated', con.violated)),
			con.label, con.problem, con.advice);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_violations(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: CHECKs and exclusion constraints over rows as they become';

/*
 * Adds to the report which rows of a table without a key clash in its unique indexes: there is nothing by which a
 * policy could tell them.
 */
CREATE FUNCTION snowflake_migrate_internal.find_keyless_clashes(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
	found bigint;
	example text;
BEGIN
	FOR names IN
		SELECT snowflake_migrate_internal.constraint_names(run_, no_, to_jsonb(u))
			|| jsonb_build_object('become', to_come)
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS u
		WHERE u.policy <> 'match'
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH w AS MATERIALIZED (
				SELECT c.* FROM (SELECT {values} FROM ({become}) AS {"name"} WHERE {indexed}) AS c WHERE {compared}
			)
			SELECT count(*), min(ROW (x.*)::text)
			FROM (
				SELECT {w.e#} FROM w GROUP BY {w.e#} HAVING count(*) > 1
				UNION ALL
				SELECT {w.e#} FROM w JOIN (SELECT {values} FROM {target} AS {"name"} WHERE {indexed}) AS t ON {same}
			) AS x
		$query$, names) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, names ->> 'table', names ->> 'label',
				'rows clash, and their table has no key to tell them by', found, example,
				'Give the table a primary key, or change these rows in the source.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_keyless_clashes(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: rows of a table without a key that clash';

/*
 * Adds to the report which of one table's rows, as they become, refer by a foreign key to a row that neither the target
 * has nor a source brings.  Where the value is a renumbered key, count_dangling() has looked.
 */
CREATE FUNCTION snowflake_migrate_internal.find_lost_references(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	fk record;
BEGIN
	FOR fk IN
		SELECT c.conname, c.confrelid::regclass AS parent, p.no AS parent_no,
			snowflake_migrate_internal.foreign_key_names(c.oid) AS names
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'f' AND c.conparentid = 0
			/* Once for each, and not for each table of the run. */
			CROSS JOIN LATERAL (
				SELECT coalesce(pg_partition_root(c.confrelid), c.confrelid)::regclass OFFSET 0) AS root (parent)
			/* By the table, whatever the planner knows of the plan: all of the run would be read for each. */
			LEFT JOIN LATERAL (
				SELECT k.* FROM snowflake_migrate_internal.plan_tables AS k
				WHERE k.relation = root.parent OFFSET 0) AS p
				ON p.run = run_ AND EXISTS (
					SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		WHERE t.run = run_ AND t.no = no_
			/* A right that is missing is in the report. */
			AND snowflake_migrate_internal.can_read(root.parent)
			AND NOT (p.kind IS NOT DISTINCT FROM 'id' AND cardinality(c.conkey) = 1
					 AND c.confkey = (SELECT array_agg(a.attnum) FROM pg_attribute AS a
									  WHERE a.attrelid = c.confrelid AND a.attname = p.key[1]))
		ORDER BY c.conname
	LOOP
		PERFORM snowflake_migrate_internal.report_rows(names,
			snowflake_migrate_internal.fill($query$
				SELECT t."merge source", concat_ws(', ', {columns}),
					row_number() OVER (PARTITION BY t."merge source" ORDER BY concat_ws(', ', {columns}))
				FROM (SELECT * FROM ({become}) AS {"name"} WHERE {in_child}) AS t
				WHERE {comes} AND {given_to_come}
					AND NOT EXISTS (SELECT FROM {parent} AS p WHERE {same}){and_not_brought}
			$query$, names || fk.names || jsonb_build_object(
				'become', snowflake_migrate_internal.all_rows(run_, no_),
				'and_not_brought', CASE WHEN fk.parent_no IS NULL THEN '' ELSE snowflake_migrate_internal.fill(
					$q$ AND NOT EXISTS (
						SELECT FROM (SELECT * FROM ({rows}) AS {"name"} WHERE {in_parent}) AS p
						WHERE {comes} AND {same_to_come})$q$,
					fk.names || snowflake_migrate_internal.names(run_, fk.parent_no) || jsonb_build_object(
						'rows', snowflake_migrate_internal.all_rows(run_, fk.parent_no))) END)),
			fk.conname, format('rows refer to rows of %s that are in neither the target nor a source', fk.parent),
			'Bring these rows into the target, or change what refers to them.');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_lost_references(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: rows that refer to what nobody has';

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

/* Puts on record which values of rows a policy changed: of the sources', and of the target's. */
CREATE FUNCTION snowflake_migrate_internal.record_changes(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate.records
			(run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value)
		SELECT {run}, ({'sources'}::name[])[v."merge source"], {'table'}, {'label'}, {'policy'},
			{m.o#::text}, {m.n#::text}, {'changed'}, v.{"old_changed"}, v.{"changed"}
		FROM {change} AS v JOIN {map} AS m ON m.source = v."merge source" AND ({m.o#}) = ({v."merge o#"})
		WHERE v.{"old_changed"} IS NOT NULL
		UNION ALL
		SELECT {run}, NULL, {'table'}, {'label'}, {'policy'},
			NULL, {v."merge o#"::text}, {'changed'}, v.{"old_changed"}, v.{"changed"}
		FROM {change} AS v
		/* One that a source's takes the place of has another value only until then. */
		WHERE v."merge source" = 0 AND v.{"old_changed"} IS NOT NULL
			AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({v."merge o#"}))
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_changes(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: puts on record which values a policy changed';

/* Puts on record, when it is known which rows clash, what became of one table's rows. */
CREATE FUNCTION snowflake_migrate_internal.record_policies(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	plan record;
	u record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	FOR u IN
		SELECT x.*
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x
		WHERE x.policy IN ('rerank', 'suffix', 'next_free')
	LOOP
		CASE u.policy
		WHEN 'rerank' THEN
			IF snowflake_migrate_internal.is_in_use(run_) THEN
				PERFORM snowflake_migrate_internal.place_ranks(run_, no_, to_jsonb(u));
			ELSE
				PERFORM snowflake_migrate_internal.policy_rerank(run_, no_, to_jsonb(u));
			END IF;
		WHEN 'suffix', 'next_free' THEN
			PERFORM snowflake_migrate_internal.record_changes(names || jsonb_build_object(
				'label', u.label, 'policy', u.policy, 'changed', u.changed,
				'old_changed', snowflake_migrate_internal.beside('old', u.changed)));
		END CASE;
	END LOOP;
	INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key)
	SELECT run_, m.source, m.relation, p.constraint_name, 'renumber', m.old_key, m.new_key
	FROM snowflake_migrate.declared_policies AS p
		JOIN snowflake_migrate.map AS m ON m.run = run_ AND m.relation = plan.relation::text
	WHERE p.relation = plan.relation AND p.policy = 'renumber'
		AND plan.kind = 'id' AND m.action = 'copied' AND m.new_key <> m.old_key
		AND m.old_key::bigint > snowflake_migrate_internal.last_serial();
	/* What a row became may have changed once more since it was put on record. */
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE snowflake_migrate.records AS r
		SET new_key = CASE WHEN m.action NOT IN ('s', 'b') THEN {m.n#::text} END,
			policy = CASE WHEN m.action = 'k' AND r.policy = 'keep_source' THEN 'keep_target' ELSE r.policy END
		FROM {map} AS m
		WHERE r.run = {run} AND r.relation = {'table'} AND r.source = ({'sources'}::name[])[m.source]
			AND r.policy IN ('keep_target', 'keep_source', 'keep_first') AND r.old_key = {m.o#::text}
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_policies(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: puts on record what policies did';

/*
 * Adds to the report how many rows of one table of one source are there already, how many of them differ elsewhere, and
 * in which columns; of those entries m of the map for which a condition holds.
 */
CREATE FUNCTION snowflake_migrate_internal.report_matched(
	run_ bigint,
	no_ int,
	source_ int,
	of_entries text DEFAULT 'true') RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	sources name[];
	names jsonb;
	found bigint;
	example text;
	columns text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT r.sources INTO STRICT sources FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'source', source_,
			'origin', p.origin,
			'of_entries', of_entries,
			'differs', snowflake_migrate_internal.differs(plan.relation,
				array_agg(e.name) FILTER (WHERE e.name IS NOT NULL),
				array_agg(e.expression) FILTER (WHERE e.name IS NOT NULL)),
			'columns', 'array_to_string(ARRAY[' || string_agg(format('CASE WHEN bool_or(%s) THEN %L END',
				snowflake_migrate_internal.differs(plan.relation, ARRAY[e.name], ARRAY[e.expression]), e.name), ', ')
				FILTER (WHERE e.name IS NOT NULL) || '], '', '')')
		INTO names
		FROM snowflake_migrate_internal.rows_parts(run_, no_, source_, true, false) AS p
			LEFT JOIN LATERAL unnest(p.names, p.expressions) AS e (name, expression)
				ON e.name <> ALL (plan.key::text[]) AND e.name <> ALL (coalesce(plan.natural_key, '{}')::text[])
					AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
									WHERE c.run = run_ AND c.no = no_ AND c.name = e.name AND c.combine IS NOT NULL)
		GROUP BY p.origin;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*) FROM {map} AS m WHERE m.source = {source} AND m.action = 'm'
	$query$, names) INTO found;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', sources[source_], plan.relation::text, NULL,
			'rows are there already', found);
	END IF;
	/* Than the target's, or than the row of another source that is added. */
	IF names ->> 'differs' IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({m.o#::text}), {columns}
			FROM {origin} JOIN {target} AS t ON ({t.@}) = ({m.n#})
			WHERE m.action = 'm' AND {of_entries} AND {differs}
		$query$, names) INTO found, example, columns;
		IF found = 0 AND cardinality(sources) > 1 THEN
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(*), min({m.o#::text}), {columns}
				FROM {origin} JOIN ({become}) AS t ON t."merge action" IN ('c', 'r') AND ({t.@}) = ({m.n#})
				WHERE m.action = 'm' AND {of_entries} AND {differs}
			$query$, names || jsonb_build_object('become', snowflake_migrate_internal.all_rows(run_, no_)))
				INTO found, example, columns;
		END IF;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_,
				CASE WHEN plan.mode = 'same_id' OR 'differences' = ANY (plan.accept) THEN 'warning' ELSE 'error' END,
				sources[source_], plan.relation::text, columns,
				'rows that are there already differ in other columns', found, example,
				CASE WHEN plan.mode = 'match' AND NOT 'differences' = ANY (plan.accept)
					THEN 'Make them equal, or accept differences: the values that are there stay.'
					ELSE 'The values that are there stay.' END);
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_matched(bigint, int, int, text)
	IS 'for snowflake_migrate.merge()''s own use: rows that are there already';

/*
 * Adds to the report how many rows of one table of one source stay behind with others, and which of its references that
 * lead to rows that stay behind become null.
 */
CREATE FUNCTION snowflake_migrate_internal.report_behind(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('source', source_);
	source_name CONSTANT name := (SELECT r.sources[source_] FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	found bigint;
BEGIN
	IF names ->> 'kind' <> 'none' THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) FROM {map} AS m WHERE m.source = {source} AND m.action = 'b'
		$query$, names) INTO found;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source_name, names ->> 'table', NULL,
				'rows stay behind to which declared references lead that are not renumbered', found, NULL,
				'Leave the condition out, or let the table have a key that is renumbered.')
			WHERE found > 0 AND names ->> 'kind' = 'key' AND EXISTS (
				SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = (names ->> 'oid')::oid);
		found := found - coalesce((
			SELECT f.count FROM snowflake_migrate.report AS f
			WHERE f.run = run_ AND f.relation = names ->> 'table' AND f.source = source_name AND f.object = 'only'
				AND f.problem = 'rows stay behind'), 0);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', source_name, names ->> 'table', 'only',
				'rows stay behind with rows that they must refer to', found)
			WHERE found > 0;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_behind(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: reports what stays behind with others';

/*
 * Reports which references of one table of a source lose what they lead to: rows that do not come, by this action in
 * their map.  No nested loops: see set_clashing().
 */
CREATE FUNCTION snowflake_migrate_internal.report_emptied(
	run_ bigint,
	no_ int,
	source_ int,
	action "char",
	why text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names jsonb;
	found bigint;
BEGIN
	FOR names IN SELECT r FROM snowflake_migrate_internal.reference_names(run_, no_, source_) AS r LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.has_action(names ->> 'parent_map', source_, action);
		names := names || jsonb_build_object('action', action);
		EXECUTE 'SELECT count(*) FROM ' || snowflake_migrate_internal.referring_rows(names)
			|| snowflake_migrate_internal.fill(concat(
				CASE WHEN names ->> 'kind' <> 'none' THEN ' AND m.action IN (''c'', ''r'')' END,
				CASE WHEN names -> 'is_plain' = 'true' THEN ' AND r{id}.action = {''action''}'
					ELSE ' AND EXISTS (SELECT FROM {parent_map} AS f
								WHERE f.source = {source} AND f.o1 = e.id AND f.action = {''action''})' END), names)
			INTO found;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', names ->> 'source_name', names ->> 'table',
				names ->> 'column', format('references to rows of %s that %s %s', names ->> 'parent', why,
					CASE WHEN names -> 'elements' = 'true' THEN 'are taken out' ELSE 'become null' END), found)
			WHERE found > 0;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_emptied(bigint, int, int, "char", text)
	IS 'for snowflake_migrate.merge()''s own use: references to rows that do not come';

/*
 * Adds to the report, in one pass over all maps, which keys may mean something by themselves (low: numbers below 1),
 * and which ids of times to come are kept: a server with their node number, this one (own) or another (others), would
 * make them again.
 */
CREATE FUNCTION snowflake_migrate_internal.find_odd_keys(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	own_node CONSTANT bigint := snowflake_migrate_internal.own_node();
	odd record;
BEGIN
	FOR odd IN EXECUTE snowflake_migrate_internal.fill($query$
		SELECT k.kind, m.no, m.source, count(*),
			CASE k.kind WHEN 'low' THEN min(m.o1) ELSE max(m.o1) END::text AS example
		FROM {map} AS m
			CROSS JOIN LATERAL (
				SELECT CASE WHEN m.o1 < 1 THEN 'low'
					WHEN snowflake_migrate_internal.node(m.n1) = {'own_node'} THEN 'own' ELSE 'others' END) AS k (kind)
		WHERE m.action = 'c' AND (m.o1 < 1 OR m.n1 = m.o1 AND m.n1 > {newest})
		GROUP BY k.kind, m.no, m.source
		ORDER BY k.kind, m.no, m.source
	$query$, jsonb_build_object(
		'map', snowflake_migrate_internal.relation(run_, 'map'),
		'own_node', own_node::text,
		'newest', snowflake_migrate_internal.max_id(snowflake_migrate_internal.own_time())))
	LOOP
		PERFORM snowflake_migrate_internal.add_to_report(run_, CASE odd.kind WHEN 'own' THEN 'error' ELSE 'warning' END,
				r.sources[odd.source], t.relation::text, t.key[1],
				CASE odd.kind WHEN 'low' THEN 'keys below 1 get new ones, as all others do'
					WHEN 'own' THEN format('ids of times to come have the node number of this server, %s: '
										   'it would make them again', own_node)
					ELSE 'ids are of times to come' END,
				odd.count, odd.example,
				CASE odd.kind
					WHEN 'low' THEN 'If they mean something to the application, put a view without these rows in the '
						'place of the table, and declare references to it with dangling => ''keep''.'
					WHEN 'own' THEN 'Give these rows other ids in the source, or merge when their times are over.'
					ELSE 'No server must make ids with their node numbers before their times are over.' END)
			FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate.runs AS r USING (run)
			WHERE t.run = run_ AND t.no = odd.no;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_odd_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: keys that mean something, and ids that may be made again';

/* Adds to the report what policies did to how many rows of one table. */
CREATE FUNCTION snowflake_migrate_internal.report_policies(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', x.source, x.relation, x.constraint_name,
		CASE x.policy
			WHEN 'suffix' THEN CASE WHEN x.source IS NULL THEN 'rows clash: those of the target get a suffix'
				ELSE 'rows clash: they get a suffix' END
			WHEN 'next_free' THEN CASE WHEN x.source IS NULL
				THEN 'rows clash: those of the target get the next free number'
				ELSE 'rows clash: they get the next free number' END
			WHEN 'keep_first' THEN 'rows clash: the row that ranks first stays'
			WHEN 'combine' THEN format('values of column %I are combined', x.column_name)
			WHEN 'keep_target' THEN 'rows clash: the row that was there first stays'
			WHEN 'keep_source' THEN 'rows clash: the source''s row takes the place'
			WHEN 'skip' THEN 'rows are skipped'
			WHEN 'rerank' THEN 'ranks are numbered anew'
			WHEN 'renumber' THEN 'snowflake ids clash: they get new ones' END,
		x.count, x.example)
	FROM (
		SELECT r.source, r.relation, r.constraint_name, r.policy, c.column_name, count(*),
			min(concat_ws(' ', r.old_key, r.old_value || ' -> ' || r.new_value)) AS example
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate.records AS r ON r.run = run_ AND r.relation = t.relation::text
			CROSS JOIN LATERAL (SELECT CASE r.policy WHEN 'combine' THEN r.column_name END) AS c (column_name)
		WHERE t.run = run_ AND t.no = no_
		GROUP BY r.source, r.relation, r.constraint_name, r.policy, c.column_name
		ORDER BY r.source, r.constraint_name, r.policy
	) AS x;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_policies(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: reports what policies did';

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
 * Rows of the target to which others refer by a foreign key of the id and further columns, where a source's row takes
 * the place and has other values there.
 */
CREATE FUNCTION snowflake_migrate_internal.find_changed_references(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	fk record;
	found bigint;
	example text;
BEGIN
	FOR fk IN
		SELECT f.conname, k.parent_columns, snowflake_migrate_internal.foreign_key_names(f.oid) AS names,
			snowflake_migrate_internal.can_read(f.conrelid) AS can_read
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(t.relation) AS f ON f.conparentid = 0
			CROSS JOIN LATERAL snowflake_migrate_internal.foreign_key_columns(f.oid) AS k
		WHERE t.run = run_ AND t.no = no_ AND t.kind = 'id' AND t.key <@ k.parent_columns
			AND cardinality(k.parent_columns) > 1
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({p.@::text})
			FROM ({to_come}) AS w JOIN {target} AS p ON ({p.@}) = ({w."merge n#"})
			WHERE w."merge action" = 'r' AND ({parent_columns}) IS DISTINCT FROM ({given}){and_referred}
		$query$, fk.names || snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'to_come', to_come,
			'parent_columns', snowflake_migrate_internal.key_list('p.@', fk.parent_columns),
			'given', snowflake_migrate_internal.key_list('w.@', fk.parent_columns),
			'and_referred', CASE WHEN fk.can_read THEN snowflake_migrate_internal.fill(
				' AND EXISTS (SELECT FROM {child} AS t WHERE {same})', fk.names) ELSE '' END)) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, fk.conname,
					'rows take the place of others to which this foreign key refers by other values', found, example,
					'Choose another policy, or give the rows of the source the same values.')
				FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_changed_references(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: finds references to rows that change';

/*
 * Rows of a table of mode match that are the same as others by their natural key, which in the end are not there: these
 * are skipped, or a row with another natural key takes their place.
 */
CREATE FUNCTION snowflake_migrate_internal.find_unmatched(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || (
		SELECT jsonb_build_object(
			'become', snowflake_migrate_internal.all_rows(run_, no_),
			/* Records need no operator by its name. */
			'same', format('ROW (%s)::record OPERATOR(pg_catalog.=) ROW (%s)::record',
				snowflake_migrate_internal.key_list('t.@', p.natural_key),
				snowflake_migrate_internal.key_list('w.@', p.natural_key)))
		FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.no = no_);
	found bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH b AS MATERIALIZED (
			SELECT * FROM ({become}) AS b WHERE b."merge action" IN ('c', 'm', 'r')
		)
		SELECT count(*), min({w."merge o#"::text})
		FROM b AS w
		WHERE w."merge action" = 'm'
			AND NOT EXISTS (
				SELECT FROM b AS t
				WHERE t."merge action" IN ('c', 'r') AND ({t."merge n#"}) = ({w."merge n#"}) AND {same})
			AND NOT EXISTS (
				SELECT FROM {target} AS t
				WHERE ({t.@}) = ({w."merge n#"}) AND {same} AND NOT EXISTS (
					SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({t.@})))
	$query$, names) INTO found, example;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, names ->> 'table', NULL,
			'rows are the same as others by the natural key, which are skipped or give way to rows with another one',
			found, example, 'Choose another policy for the other constraints, or change these rows in the source.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_unmatched(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: finds rows that match what is not there in the end';

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
				GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
				/* It tells what to do; those of PostgreSQL's parser do not. */
				IF hint <> '' AND SQLSTATE NOT LIKE '42%' OR SQLSTATE = '42501' THEN
					RAISE;
				END IF;
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL,
						string_agg(t.relation::text, ', ' ORDER BY t.no), NULL,
						'rows as they become cannot be computed: ' || SQLERRM,
						advice => CASE WHEN SQLSTATE LIKE '42%'
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
