/* What ids a column holds. */

/*
 * One row for each node number, in the server's layout, and one for each kind of what is no id of this layout, or can't
 * be one yet; read in one pass.
 *
 * An id is from the future where its time is further ahead of the clock than snowflake.max_drift, which is how far ids
 * run ahead on purpose, and snowflake.max_wait (100 ms at least), within which the clocks of servers may differ: a call
 * that had to sort after it would rather fail than wait.  An id of the first day after the epoch was taken from a
 * sequence, which would have to count to 3.6e14 in the layout "twitter" to leave it; a layout whose epoch is today
 * can't tell.
 *
 * The caller needs SELECT on the column; that row security hides rows is an error, and so is other roles' code in the
 * table or the view, where a superuser would run it.  Without constraint exclusion, that is not so of CHECKs.
 */
CREATE FUNCTION @extschema@.snowflake_audit(
	relation regclass,
	column_name name,
	OUT node bigint,
	OUT ids bigint,
	OUT first_id bigint,
	OUT last_id bigint,
	OUT first_time timestamptz,
	OUT last_time timestamptz,
	OUT remark text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
SET row_security = off SET constraint_exclusion = off
AS $$
DECLARE
	relation_kind "char";
	column_type oid;
	layout record;
	slack interval;
BEGIN
	SELECT c.relkind INTO relation_kind FROM pg_class AS c WHERE c.oid = relation;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_table',
			MESSAGE = format('table with OID %s does not exist', relation::oid);
	ELSIF relation_kind NOT IN ('r', 'p', 'f', 'v', 'm') THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('%s is not a table', relation),
			HINT = 'Give a table, a foreign table, a view or a materialized view.';
	END IF;

	/* Before the column is looked at: it locks the table where its owner could give the column another type. */
	PERFORM snowflake_internal.refuse_dangerous_code(ARRAY[relation::oid], '{}');

	WITH RECURSIVE base (oid, next) AS (
		SELECT t.oid, t.typbasetype FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
			WHERE a.attrelid = relation AND a.attname = column_name AND a.attnum > 0
		UNION ALL
		SELECT t.oid, t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.next
	)
	SELECT b.oid INTO column_type FROM base AS b WHERE b.next = 0;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', column_name, relation);
	ELSIF column_type NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s has the type %s', column_name, relation, column_type::regtype),
			HINT = 'Give a column of the type bigint, integer or smallint.';
	END IF;

	SELECT l.epoch, (2::numeric ^ (l.timestamp_bits + l.node_bits + l.sequence_bits) - 1)::bigint AS max_id
		INTO layout FROM snowflake_internal.layout AS l;
	/* In ms; where the library was neither preloaded nor used yet, there are no settings. */
	SELECT interval '1 ms' * (coalesce(max(g.setting::float8) FILTER (WHERE g.name = 'snowflake.max_drift'), 0)
			+ greatest(coalesce(max(g.setting::float8) FILTER (WHERE g.name = 'snowflake.max_wait'), 2000), 100))
		INTO slack FROM pg_settings AS g WHERE g.name IN ('snowflake.max_drift', 'snowflake.max_wait');

	RETURN QUERY EXECUTE format(
		$query$
		SELECT CASE WHEN r.kind < 3 THEN r.node END, r.ids, r.first_id, r.last_id,
			CASE WHEN r.kind < 3 THEN r.first_time END, CASE WHEN r.kind < 3 THEN r.last_time END,
			(ARRAY[NULL, 'from the future', 'serial: the first day after the epoch', 'negative', 'beyond the layout',
				   'null'])[r.kind]
		FROM (
			SELECT k.kind, CASE WHEN k.kind < 3 THEN snowflake_internal.node(t.id) END AS node, count(*) AS ids,
				min(t.id) AS first_id, max(t.id) AS last_id, min(t.ts) AS first_time, max(t.ts) AS last_time
			FROM (SELECT i.id, CASE WHEN i.id BETWEEN 0 AND $1 THEN snowflake_internal.timestamp(i.id) END AS ts
				  FROM (SELECT %I::bigint AS id FROM %s) AS i
				  /* The time is decoded once. */
				  OFFSET 0) AS t,
				LATERAL (SELECT CASE WHEN t.ts >= $3 THEN 2 WHEN t.ts >= $2 THEN 1 WHEN t.ts IS NOT NULL THEN 3
									 WHEN t.id < 0 THEN 4 WHEN t.id > 0 THEN 5 ELSE 6 END) AS k (kind)
			GROUP BY 1, 2
		) AS r
		ORDER BY r.kind, r.node
		$query$, column_name, relation)
		USING layout.max_id, layout.epoch + interval '24 hours', clock_timestamp() + slack;
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_audit(regclass, name)
	IS 'the ids in a column: how many of each node and when, and what is no id';
