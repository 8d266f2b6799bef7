\pset footer off
\pset border 0
CREATE TEMP TABLE made AS SELECT id FROM orders;

\echo Orders by the node that made their id:
SELECT snowflake_node(id) AS node, count(*) AS orders, count(*) / :seconds AS "per second",
	to_char(min(snowflake_timestamp(id)), 'HH24:MI:SS.MS') AS first,
	to_char(max(snowflake_timestamp(id)), 'HH24:MI:SS.MS') AS last,
	repeat('#', (40 * count(*) / max(count(*)) OVER ())::int) AS share
FROM made GROUP BY 1 ORDER BY 1;

SELECT count(*) AS orders, count(*) / :seconds AS "per second", count(*) - count(DISTINCT id) AS duplicates FROM made;

\echo One id laid open:
SELECT id AS newest, snowflake_to_base62(id) AS base62, snowflake_to_base32(id) AS base32 FROM made ORDER BY id DESC LIMIT 1 \gset
\echo :newest, as text :base62 or :base32
SELECT * FROM snowflake_explain(:newest);

\echo The orders of the last second, by their ids alone; the bound in a sub-select, so that the shards look for them:
SELECT snowflake_timestamp(:newest) - interval '1 second' AS since \gset
SELECT count(*) AS "orders of the last second" FROM orders WHERE id >= (SELECT snowflake_min_id(:'since'));
\pset format unaligned
\pset tuples_only
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM orders WHERE id >= (SELECT snowflake_min_id(:'since'));
