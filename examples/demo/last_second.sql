\pset format unaligned
\pset tuples_only
ANALYZE orders;
SELECT snowflake_timestamp(max(id)) AS newest FROM orders \gset
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF)
SELECT * FROM orders
WHERE id BETWEEN snowflake_min_id(timestamptz :'newest' - interval '1 second') AND snowflake_max_id(:'newest');
