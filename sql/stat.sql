-- The view snowflake_stat and its counters.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'snowflake_stat'::regclass AND attnum > 0 ORDER BY attnum;
SELECT count(*) FROM snowflake_stat;

-- what this server is
SELECT node_id, node_source, layout, layout_ends_at FROM snowflake_stat;

-- what it has made
SELECT snowflake_nextval() AS id \gset
SELECT claim, last_id = :id AS last_id, last_timestamp = snowflake_timestamp(:id) AS last_timestamp,
	drift < interval '1 ms' AS drift, reserved_until > last_timestamp AS reserved,
	reserved_until <= clock_timestamp() + interval '10 s' AS not_too_far FROM snowflake_stat;

-- the counters from here on
SELECT snowflake_stat_reset();
SELECT ids, reservations, clock_rollbacks, max_rollback, forward_jumps, waits, wait_time, errors,
	stats_reset BETWEEN now() - interval '1 min' AND clock_timestamp() AS stats_reset FROM snowflake_stat;

SELECT count(*) FROM (SELECT snowflake_nextval() FROM generate_series(1, 1000) OFFSET 0) made;
SELECT ids FROM snowflake_stat;
SELECT count(*) FROM snowflake_nextval_batch(1000);
SELECT ids FROM snowflake_stat;
-- rolled back, but issued
BEGIN;
SELECT snowflake_nextval() > 0 AS made;
ROLLBACK;
SELECT ids, clock_rollbacks, forward_jumps, errors FROM snowflake_stat;

-- ids ahead of the clock have to wait for it; a slow machine may be there before they are asked for
DO $$
DECLARE
	before record;
BEGIN
	SELECT waits, wait_time INTO before FROM snowflake_stat;
	WHILE EXISTS (SELECT FROM snowflake_stat WHERE waits = before.waits OR wait_time = before.wait_time) LOOP
		PERFORM snowflake_advance_past(snowflake_min_id(clock_timestamp() + interval '100 ms'));
		PERFORM snowflake_nextval();
	END LOOP;
END $$;
SELECT drift < interval '1 ms' AS drift FROM snowflake_stat;
SELECT snowflake_stat_reset();

-- reading, and decoding, counts nothing
SELECT snowflake_lastval() > 0 AS made, snowflake_node(1), snowflake_max_id(now()) > 0 AS bound;
SELECT ids, errors FROM snowflake_stat;

-- ids of other sessions, after they ended too, and of parallel workers
\c
SELECT count(*) FROM snowflake_nextval_batch(7);
\c
SELECT ids FROM snowflake_stat;
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 1000) n;
ANALYZE numbers;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
CREATE TEMP TABLE made AS SELECT snowflake_nextval() AS id FROM numbers;
SELECT ids FROM snowflake_stat;
SELECT last_id = (SELECT max(id) FROM made) AS last_id FROM snowflake_stat;
DROP TABLE numbers;

-- a session that waits no longer than it may: ids refused are errors, and no ids
SET snowflake.max_wait = 0;
SELECT snowflake_advance_past(snowflake_min_id(clock_timestamp() + interval '1 min'));
\set VERBOSITY sqlstate
SELECT snowflake_nextval();
SELECT snowflake_nextval_batch(1);
\set VERBOSITY default
SELECT ids, errors FROM snowflake_stat;
SELECT snowflake_set_reserved_until(clock_timestamp());
RESET snowflake.max_wait;
SELECT snowflake_nextval() > 0 AS made;

-- zeroed for all
SELECT snowflake_stat_reset();
SELECT ids, reservations, waits, wait_time = '0' AS no_wait, errors FROM snowflake_stat;
SELECT snowflake_nextval() > 0 AS made;
SELECT ids FROM snowflake_stat;
