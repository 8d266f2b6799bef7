/*
 * The new ids of a run.  Those that were taken from a sequence are renumbered under the source's node number, in order
 * of time over all of its tables.
 *
 * A place in time is a slot: the tick times the ids of a tick, plus the sequence.  A row goes to the first that is free
 * from its tick on (free_slot()), so that a full tick spills into the next.
 *
 * Rows that are older than the epoch are an error, or packed: in order of time, from the second day after the epoch on,
 * as ids of the first count as taken from a sequence.
 */

/* The greatest id that counts as taken from a sequence: of the first day after the layout's epoch. */
CREATE FUNCTION snowflake_migrate_internal.last_serial() RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.min_id(l.epoch + interval '1 day') - 1
	FROM snowflake_migrate_internal.layout() AS l
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.last_serial()
	IS 'for snowflake_migrate.merge()''s own use: the greatest id that counts as taken from a sequence';

/*
 * The layout's numbers for the queries that make ids under a node number: zero (the id of slot 0), slots (of a tick),
 * tick_unit (between the ids of a tick and the next), sequence_unit (between one and the next), last_slot, and
 * start_slot (of a time).
 */
CREATE FUNCTION snowflake_migrate_internal.slots_of(node bigint, at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT jsonb_build_object(
		'zero', z.zero,
		'slots', 1::bigint << l.sequence_bits,
		'tick_unit', t.tick_unit,
		'sequence_unit', snowflake_migrate_internal.encode(l.epoch, node, 1) - z.zero,
		'last_slot', (2::numeric ^ (l.timestamp_bits + l.sequence_bits) - 1)::bigint,
		'start_slot', snowflake_migrate_internal.max_id(at) / t.tick_unit * (1::bigint << l.sequence_bits))
	FROM snowflake_migrate_internal.layout() AS l,
		LATERAL (SELECT snowflake_migrate_internal.encode(l.epoch, node, 0) AS zero) AS z,
		LATERAL (SELECT snowflake_migrate_internal.encode(l.epoch + l.tick, node, 0) - z.zero AS tick_unit) AS t
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.slots_of(bigint, timestamptz)
	IS 'for snowflake_migrate.merge()''s own use: the numbers of the layout under a node number';

/* The same for one source of a run, from its start on, and first_slot (for rows before packed_until). */
CREATE FUNCTION snowflake_migrate_internal.slot_names(run_ bigint, source_ int) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.names || jsonb_build_object(
		'run', run_,
		'source', source_,
		'source_name', r.sources[source_],
		'all_maps', snowflake_migrate_internal.relation(run_, 'map'),
		'last_serial', snowflake_migrate_internal.last_serial(),
		'epoch', l.epoch,
		'packed_until', l.epoch + interval '1 day',
		'first_slot', (snowflake_migrate_internal.last_serial() + 1) / (s.names ->> 'tick_unit')::bigint
			* (s.names ->> 'slots')::bigint)
	FROM snowflake_migrate.runs AS r,
		snowflake_migrate_internal.layout() AS l,
		LATERAL (SELECT snowflake_migrate_internal.slots_of(r.nodes[source_], r.started_at)) AS s (names)
	WHERE r.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.slot_names(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the numbers of the layout in queries';

/*
 * The tables of a source whose keys are renumbered, each with the names for the queries about it: there, a row s gets a
 * new id where serial holds, and at tells when it was created.
 */
CREATE FUNCTION snowflake_migrate_internal.numbered_tables(run_ bigint, source_ int) RETURNS SETOF jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH slot AS MATERIALIZED (
		SELECT snowflake_migrate_internal.slot_names(run_, source_) AS names
	),
	named AS MATERIALIZED (
		SELECT t.no,
			slot.names
				|| snowflake_migrate_internal.names(run_, t.no)
				|| jsonb_build_object(
					'no', t.no,
					'source_table', snowflake_migrate_internal.coming_rows(run_, t.no, source_),
					'created', c.attname,
					'early', d.early,
					'created_at', coalesce('s.' || quote_ident(c.attname), 'NULL') || '::timestamptz',
					'renumber', EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p
										WHERE p.relation = t.relation AND p.policy = 'renumber')) AS names
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = t.no AND s.source = source_
			LEFT JOIN pg_attribute AS c ON c.attrelid = s.relation AND c.attname = t.created AND NOT c.attisdropped
			LEFT JOIN snowflake_migrate.declared_created AS d ON d.relation = t.relation
			CROSS JOIN slot
		WHERE t.run = run_ AND t.kind = 'id' AND t.mode <> 'ignore'
	)
	SELECT n.names || jsonb_build_object(
		'is_timed', n.names ->> 'created' IS NOT NULL OR n.names -> 'renumber' = 'true',
		'serial', snowflake_migrate_internal.fill(CASE WHEN n.names -> 'renumber' = 'true' THEN $query$
				(s.{"first_key"} <= {last_serial}
				 OR EXISTS (SELECT FROM {target} AS t WHERE t.{"first_key"} = s.{"first_key"})
				 OR EXISTS (SELECT FROM {all_maps} AS m
							WHERE m.no = {no} AND m.source < {source} AND m.n1 = s.{"first_key"}))
			$query$ ELSE 's.{"first_key"} <= {last_serial}' END, n.names),
		/* An id that is there already gets another, at the time that it tells. */
		'at', snowflake_migrate_internal.fill(CASE WHEN n.names -> 'renumber' = 'true' THEN $query$
				CASE WHEN s.{"first_key"} <= {last_serial} THEN {created_at}
					ELSE snowflake_migrate_internal.timestamp(s.{"first_key"}::bigint) END
			$query$ ELSE '{created_at}' END, n.names))
	FROM named AS n
	ORDER BY n.no
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.numbered_tables(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the tables whose keys are renumbered';

/*
 * The slots of rows in order of time, as a window function: the first slot of the row's tick, or the one after the row
 * before, whichever comes later.
 */
CREATE FUNCTION snowflake_migrate_internal.next_slot(last bigint, at bigint) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_next_slot';
COMMENT ON FUNCTION snowflake_migrate_internal.next_slot(bigint, bigint)
	IS 'for snowflake_migrate.merge()''s own use: the slot after that of the row before';
CREATE AGGREGATE snowflake_migrate_internal.free_slot(at bigint) (
	SFUNC = snowflake_migrate_internal.next_slot,
	STYPE = bigint,
	PARALLEL = SAFE);
COMMENT ON AGGREGATE snowflake_migrate_internal.free_slot(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the slots of rows in order of time';

/* Adds rows that are older than the layout's epoch to the report. */
CREATE FUNCTION snowflake_migrate_internal.find_early(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	early bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min({"first_key"}::text) FROM {source_table} AS s WHERE {serial} AND {at} < {'epoch'}
	$query$, names) INTO early, example;
	IF early > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint,
			CASE names ->> 'early' WHEN 'pack' THEN 'warning' ELSE 'error' END, names ->> 'source_name',
			names ->> 'table', names ->> 'created',
			format('rows were created before the layout''s epoch, %s', (names ->> 'epoch')::timestamptz),
			early, example,
			CASE names ->> 'early'
				WHEN 'pack' THEN 'Their new ids are the first of the day after, in order of time.'
				ELSE format('If their ids need not tell when that was: SELECT %s(%L, %L, ''pack''); '
							'or merge under a layout with an earlier epoch.',
							'snowflake_migrate.declare_created', names ->> 'table', names ->> 'created') END);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_early(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: rows that are older than the layout';

/*
 * Gives rows the first slots that are free from their time on, and puts their new ids into the map.  {untimed} is a
 * query for the rows without a time (no, o: table and old id), {and_timed} adds the others (and at: the first slot of
 * their tick; early: the time of those that are packed), {early} is "p.early, " where there are such.  Rows without a
 * time end at the start of the merge.
 */
CREATE FUNCTION snowflake_migrate_internal.assign_ids(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	overflow boolean;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {all_maps} (no, source, o1, n1, action)
		SELECT z.no, {source}, z.o,
			CASE WHEN z.slot BETWEEN 0 AND {last_slot}
				THEN {zero} + z.slot / {slots} * {tick_unit} + z.slot % {slots} * {sequence_unit} END,
			'c'
		FROM (
			SELECT p.no, p.o,
				snowflake_migrate_internal.free_slot(p.at) OVER (
					ORDER BY p.at, {early}p.no, p.o ROWS UNBOUNDED PRECEDING) AS slot
			FROM (
				SELECT u.no, u.o,
					{start_slot} - count(*) OVER () + row_number() OVER (ORDER BY u.no, u.o) - 1 AS at,
					NULL::timestamptz AS early
				FROM ({untimed}) AS u
				{and_timed}
			) AS p
		) AS z
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT EXISTS (SELECT FROM {all_maps} AS m WHERE m.source = {source} AND m.n1 IS NULL AND m.action = 'c')
	$query$, names) INTO overflow;
	IF overflow THEN
		PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error', names ->> 'source_name',
			NULL, NULL, 'the layout has no room for the new ids between its epoch and its end', NULL, NULL,
			'Merge under another layout.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.assign_ids(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: gives rows new ids in order of time';

/* The new ids of one source, and the ids that it keeps. */
CREATE FUNCTION snowflake_migrate_internal.number_source(run_ bigint, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
	timed text[] := '{}';
	untimed text[] := '{}';
	early text := '';
BEGIN
	FOR names IN SELECT t FROM snowflake_migrate_internal.numbered_tables(run_, source_) AS t LOOP
		IF names ->> 'early' = 'pack' THEN
			early := 'p.early, ';
		END IF;
		IF names -> 'is_timed' = 'true' THEN
			PERFORM snowflake_migrate_internal.find_early(names);
			timed := timed || snowflake_migrate_internal.fill($query$
				SELECT {no} AS no, s.{"first_key"}::bigint AS o,
					least(CASE WHEN {is_packed} THEN {first_slot}
						ELSE snowflake_migrate_internal.max_id({at}) / {tick_unit} * {slots} END, {start_slot}) AS at,
					CASE WHEN {is_packed} THEN {at} END AS early
				FROM {source_table} AS s WHERE {serial} AND {at} IS NOT NULL
			$query$, names || jsonb_build_object('is_packed', CASE names ->> 'early'
				WHEN 'pack' THEN snowflake_migrate_internal.fill('{at} < {''packed_until''}', names)
				ELSE 'false' END));
		END IF;
		untimed := untimed || snowflake_migrate_internal.fill($query$
				SELECT {no} AS no, s.{"first_key"}::bigint AS o FROM {source_table} AS s WHERE {serial}
			$query$ || CASE WHEN names -> 'is_timed' = 'true' THEN 'AND {at} IS NULL' ELSE '' END, names);
		/* Rows that have a snowflake id keep it. */
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {all_maps} (no, source, o1, n1, action)
			SELECT {no}, {source}, s.{"first_key"}, s.{"first_key"}, 'c' FROM {source_table} AS s WHERE NOT {serial}
		$query$, names);
	END LOOP;
	IF untimed <> '{}' THEN
		PERFORM snowflake_migrate_internal.assign_ids(
			snowflake_migrate_internal.slot_names(run_, source_) || jsonb_build_object(
				'early', early,
				'untimed', array_to_string(untimed, ' UNION ALL '),
				'and_timed', coalesce('UNION ALL ' || nullif(array_to_string(timed, ' UNION ALL '), ''), '')));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.number_source(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the new ids of a source';
