-- Every function of the extension, compiled just in time with all optimization: the server must survive it.
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;

SELECT count(snowflake_nextval()), count(snowflake_from_base62(lpad(i::text, 11, '0'))),
	count(snowflake_from_base32(lpad(i::text, 13, '0'))), count(snowflake_to_base62(i)), count(snowflake_to_base32(i)),
	count(snowflake_decode(i)), count(snowflake_decode(i, 'game')), count(snowflake_timestamp(i)),
	count(snowflake_timestamp(i, 'game')), count(snowflake_node(i)), count(snowflake_sequence(i)),
	count(snowflake_field(i, 'worker')), count(snowflake_encode(snowflake_timestamp(i), 1, 1)),
	count(snowflake_min_id(snowflake_timestamp(i))), count(snowflake_max_id(snowflake_timestamp(i), 'leaf')),
	count(snowflake_layout('timestamp:41 sequence:' || 1 + i % 5 || ' epoch:0')), count(snowflake_lastval())
FROM generate_series(1, 100) i;
SELECT count(*) FROM (SELECT snowflake_nextval_batch(10), snowflake_explain(i) FROM generate_series(1, 10) i) s;
SELECT count(*) FROM generate_series(1, 10) i WHERE snowflake_node(i::bigint << 12, 'leaf') = i;
SELECT count(*) FROM snowflake_stat, snowflake_layouts;

RESET jit;
RESET jit_above_cost;
RESET jit_inline_above_cost;
RESET jit_optimize_above_cost;
