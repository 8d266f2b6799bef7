/*
 * Ids for rows that are older than the database: each tells the time when its row was made.
 *
 * They are made under a node number that is used up by that, once and for ever, so that nothing has to be known of ids
 * that were made before.  It is on record, in a transaction of its own that commits before the first id is made: what
 * was seen of ids whose transaction was lost can't be made again under another load.
 */

CREATE TABLE snowflake_migrate.backfills (
	node bigint PRIMARY KEY,			-- never to be used again
	relation text NOT NULL,
	until timestamptz NOT NULL,			-- no id is later: so far it is set aside
	began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	filled_by name NOT NULL DEFAULT current_user
);
COMMENT ON TABLE snowflake_migrate.backfills IS 'the node numbers under which snowflake_migrate.backfill() made ids';

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.backfills', '');

/* It says nothing about rows, and snowflake_migrate.check() looks at it. */
GRANT SELECT ON snowflake_migrate.backfills TO PUBLIC;

/* Locks a table, and raises an error where it can't be given ids for times. */
CREATE FUNCTION snowflake_migrate_internal.check_backfill(relation regclass, id_column name, created_column name)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	name CONSTANT text := relation;
	types regtype[];
BEGIN
	IF relation IS NULL OR id_column IS NULL OR created_column IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'the table and its columns must not be null';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, '{}');
	IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relkind IN ('r', 'p')) THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type', MESSAGE = format('%s is not a table', relation);
	END IF;
	/*
	 * Nobody adds rows, moves them, or puts code there that is not looked at; nor another table or type in the place of
	 * the one that is.  Its triggers fire.
	 */
	EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', name);
	IF to_regclass(name) IS DISTINCT FROM relation THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('table %s was renamed while it was to be locked', name);
	END IF;
	PERFORM snowflake_internal.refuse_dangerous_code(
		ARRAY[relation::oid], ARRAY[relation::oid], fires_triggers => true);
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[id_column, created_column]);
	types := ARRAY(
		SELECT a.atttypid FROM unnest(ARRAY[id_column, created_column]) WITH ORDINALITY AS g (name, n)
			JOIN pg_attribute AS a ON a.attrelid = relation AND a.attname = g.name ORDER BY g.n);
	IF types[1] <> 'bigint'::regtype THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s is not bigint', id_column, relation),
			DETAIL = format('The column has type %s.', types[1]);
	ELSIF types[2] NOT IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s holds no time', created_column, relation),
			DETAIL = format('The column has type %s.', types[2]),
			HINT = 'Give a column of type timestamp with time zone, timestamp without time zone or date.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_backfill(regclass, name, name)
	IS 'for snowflake_migrate.backfill()''s own use: an error where a table can''t be given ids';

/* The names for the queries about the rows of a table without an id. */
CREATE FUNCTION snowflake_migrate_internal.backfill_names(
	relation regclass,
	id_column name,
	created_column name,
	node bigint) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.slots_of(node, now()) || jsonb_build_object(
		'table', snowflake_migrate_internal.only(relation),
		'id', id_column,
		'created', created_column)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.backfill_names(regclass, name, name, bigint)
	IS 'for snowflake_migrate.backfill()''s own use: the names in its queries';

/* Raises an error where rows without an id have no time, or one that no id tells. */
CREATE FUNCTION snowflake_migrate_internal.check_times(
	relation regclass,
	names jsonb,
	OUT rows bigint,
	OUT latest timestamptz)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	epoch CONSTANT timestamptz := (SELECT l.epoch FROM snowflake_migrate_internal.layout() AS l);
	found record;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*) AS rows, count(*) FILTER (WHERE t.{"created"} IS NULL) AS timeless,
			min(t.{"created"}::timestamptz) AS earliest, max(t.{"created"}::timestamptz) AS latest
		FROM {table} AS t WHERE t.{"id"} IS NULL
	$query$, names) INTO found;
	IF found.timeless > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('%s rows of table %s have no time', found.timeless, relation),
			HINT = 'Give them one, for example that of the row before.';
	ELSIF found.earliest < epoch THEN
		RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
			MESSAGE = format('rows of table %s are older than the layout''s epoch', relation),
			DETAIL = format('The earliest is of %s; the epoch is %s.', found.earliest, epoch),
			HINT = 'Give them a later time, or choose a layout with an earlier epoch.';
	ELSIF found.latest > now() THEN
		RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
			MESSAGE = format('times of table %s are in the future', relation),
			DETAIL = format('The latest is of %s.', found.latest),
			HINT = 'Ids that are made for times to come would come before those of rows that are made then.';
	END IF;
	rows := found.rows;
	latest := found.latest;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_times(regclass, jsonb)
	IS 'for snowflake_migrate.backfill()''s own use: an error where rows have no time that an id can tell';

/* Raises an error where ids of the table have this node number already: it was used, whatever is on record of that. */
CREATE FUNCTION snowflake_migrate_internal.refuse_used(relation regclass, names jsonb, node bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	example bigint;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT min(t.{"id"}) FROM {table} AS t
		WHERE t.{"id"} > {last_serial} AND snowflake_migrate_internal.node(t.{"id"}) = {node}
	$query$, names || jsonb_build_object(
		'node', node, 'last_serial', snowflake_migrate_internal.last_serial())) INTO example;
	IF example IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('ids of table %s have node number %s already', relation, node),
			DETAIL = format('One is %s.', example),
			HINT = 'Give one that was never used.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_used(regclass, jsonb, bigint)
	IS 'for snowflake_migrate.backfill()''s own use: an error where a node number was used';

/* As record_node(). */
CREATE FUNCTION snowflake_migrate_internal.record_backfill(node bigint, relation regclass, until timestamptz)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
BEGIN
	INSERT INTO snowflake_migrate.backfills (node, relation, until) VALUES (node, relation::text, until);
EXCEPTION WHEN lock_not_available THEN
	PERFORM snowflake_migrate_internal.refuse_locked_node(node);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_backfill(bigint, regclass, timestamptz)
	IS 'for snowflake_migrate.backfill()''s own use: puts the use of a node number on record';

/* Uses a node number up: puts it on record, and sets it aside in the registry, where there is one. */
CREATE FUNCTION snowflake_migrate_internal.begin_backfill(
	relation regclass,
	id_column name,
	created_column name,
	node bigint) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
DECLARE
	names jsonb;
	times record;
	until timestamptz;
BEGIN
	PERFORM snowflake_migrate_internal.check_backfill(relation, id_column, created_column);
	IF node IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'the node number must not be null';
	END IF;
	PERFORM snowflake_migrate_internal.check_node(node);
	names := snowflake_migrate_internal.backfill_names(relation, id_column, created_column, node);
	times := snowflake_migrate_internal.check_times(relation, names);
	PERFORM snowflake_migrate_internal.refuse_used(relation, names, node);
	/* Where the rows get to, were they all made at the latest time. */
	SELECT greatest(clock_timestamp(), times.latest + l.tick * (2 + times.rows / (names ->> 'slots')::bigint))
		INTO until FROM snowflake_migrate_internal.layout() AS l;
	PERFORM snowflake_migrate_internal.record_backfill(node, relation, until);
	/* Whoever sees the ids must not lose the record of their number to a crash. */
	PERFORM set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
	/* The last, since no rollback takes it back. */
	PERFORM snowflake_internal.set_aside(node, until);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.begin_backfill(regclass, name, name, bigint)
	IS 'for snowflake_migrate.backfill()''s own use: uses a node number up';

/* Gives the rows without an id theirs, in order of time; returns how many there were.  As in numbering.sql. */
CREATE FUNCTION snowflake_migrate_internal.fill_ids(
	relation regclass,
	id_column name,
	created_column name,
	node bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET quote_all_identifiers = off
AS $$
DECLARE
	names jsonb;
	wanted bigint;
	made record;
BEGIN
	PERFORM snowflake_migrate_internal.check_backfill(relation, id_column, created_column);
	/* Since it is locked, its name stays what it is. */
	names := snowflake_migrate_internal.backfill_names(relation, id_column, created_column, node);
	wanted := (snowflake_migrate_internal.check_times(relation, names)).rows;
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH made AS (
			UPDATE {table} AS t
			SET {"id"} = {zero} + z.slot / {slots} * {tick_unit} + z.slot % {slots} * {sequence_unit}
			FROM (
				SELECT s.tableoid AS part, s.ctid AS place,
					snowflake_migrate_internal.free_slot(
						snowflake_migrate_internal.max_id(s.{"created"}::timestamptz) / {tick_unit} * {slots}) OVER (
							ORDER BY s.{"created"}, s.tableoid, s.ctid ROWS UNBOUNDED PRECEDING) AS slot
				FROM {table} AS s WHERE s.{"id"} IS NULL
			) AS z
			WHERE t.tableoid = z.part AND t.ctid = z.place AND t.{"id"} IS NULL AND z.slot BETWEEN 0 AND {last_slot}
			RETURNING t.{"id"}
		)
		SELECT count(*) AS rows, max(m.{"id"}) AS newest FROM made AS m
	$query$, names) INTO made;
	IF made.rows <> wanted THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('only %s of %s rows of table %s were given ids', made.rows, wanted, relation),
			DETAIL = 'The layout has no room for them, or a trigger kept rows from being changed.';
	ELSIF NOT coalesce(snowflake_migrate_internal.timestamp(made.newest)
					   < (SELECT b.until FROM snowflake_migrate.backfills AS b WHERE b.node = fill_ids.node),
					   wanted = 0) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('rows were added to table %s meanwhile', relation),
			HINT = 'Call it again, with another node number.';
	END IF;
	RETURN made.rows;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_ids(regclass, name, name, bigint)
	IS 'for snowflake_migrate.backfill()''s own use: gives rows their ids';

/*
 * Gives each row of a table without an id one that tells when it was made, in order of time, under a node number that
 * was never used, and never will be again.  To be called outside of a transaction block: the number is used up, and
 * that is durable, before the first id is made, whatever becomes of the rows.
 */
CREATE PROCEDURE snowflake_migrate.backfill(
	relation regclass,
	id_column name,
	created_column name,
	node bigint,
	INOUT rows bigint DEFAULT NULL)
LANGUAGE plpgsql
AS $$
BEGIN
	/* An error in a transaction block: before the registry is asked, which no rollback takes back. */
	COMMIT;
	/* What was committed while it waited for its lock is seen. */
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM snowflake_migrate_internal.begin_backfill(relation, id_column, created_column, node);
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	rows := snowflake_migrate_internal.fill_ids(relation, id_column, created_column, node);
	COMMIT;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.backfill(regclass, name, name, bigint, bigint)
	IS 'gives rows ids of the times when they were made';
